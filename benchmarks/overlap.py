"""Further labels where they pay, beside as many labels for each pair: error at equal labels.

    python -m benchmarks.overlap                      every cell, from EVALSITE_TEST_DATA
    python -m benchmarks.overlap --trials 40 --method adaptive --cell trec --share 0.5 --each 2

Two crowds. ``trec``: the votes of the TREC 2011 crowd on the pairs that have ten or more; what
assessors say of a pair is what its voters said, and whoever judges is one of these at random,
nobody twice, as on the site. ``made up``: fifty people as `research.crowds` makes them, a tenth of
whom do not read. The truth is the mean over all of them. Runs are made up: they rank by the truth
with more and more noise.

Each cell has a number of labels: so many pairs with two, or three, each. The same labels are spent

same pairs
    on as many pairs, one label each, a tenth with a second by chance, and the rest of the labels
    where they pay;
best split
    on as many pairs as `planning.splits` says, further labels where they pay;
one each
    on as many pairs as there can be, one label each and a tenth with a second, the rest evenly;
twin
    on the same pairs as with two each: two labels, and further ones until two agree, with the plain
    mean. It must be caught: it is biased.

Printed are errors over that of fixed labels (roots of mean squares over runs, of values or for the
goal ranking of differences from the mean of the runs): exact ones, over all samples and answers of
a Poisson design. With ``--trials`` rounds are played by either method, and printed are the error
that came, the bias of the mean over runs and of the worst run, in standard errors of its mean, and
how often 95 % intervals hold the truth, on average and for the worst run.
"""

import argparse
import gzip
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from benchmarks.public import FOLDER, collection_in
from estimation.core.arrays import FloatArray, IntArray
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.library.designing import make_design, pool_runs, rank_scores
from estimation.core.measures.table import parse_measure
from estimation.core.planning.splits import best_split
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.overlap import plan_of_design, plan_of_round
from estimation.core.rounds.rounds import draw_round
from estimation.core.sampling.methods import MOST_FURTHER
from estimation.core.sampling.overlap import LabelPlan
from estimation.research.crowds import CrowdPlan, every_answer

SHARE, BATCHES = 0.1, 10


@dataclass(frozen=True)
class World:
    """A pool, and what may be said of each pair, padded with -1."""

    pool: Pool
    said: np.ndarray  # (N, most)
    voices: np.ndarray  # (N,)
    max_grade: int


def trec_world(runs: int, *, depth: int, seed: int) -> World:
    votes: dict[tuple[str, str], list[int]] = defaultdict(list)
    there = collection_in(FOLDER, "crowd-trec2011")
    with gzip.open(there / "labels.tsv.gz", "rt") as lines:
        next(lines)
        for line in lines:
            topic, docno, _, label, *_ = line.split("\t")
            votes[topic, docno].append(int(label))
    kept = {pair: given for pair, given in votes.items() if len(given) >= 10}
    truth = {pair: float(np.mean(given)) for pair, given in kept.items()}
    pool = _ranked(truth, runs, depth=depth, seed=seed, noise=(0.1, 0.6))
    names = _names(pool)
    most = max(len(given) for given in kept.values())
    said = np.full((len(pool), most), -1)
    for at, name in enumerate(names):
        said[at, : len(kept[name])] = kept[name]
    return World(pool, said, (said >= 0).sum(axis=1), 1)


def made_up_world(runs: int, *, depth: int, seed: int) -> World:
    random = np.random.default_rng(seed)
    level = {
        (f"t{topic:02d}", f"d{document:03d}"): float(np.clip(random.normal(0.5, 1.2), 0, 3))
        for topic in range(30)
        for document in range(80)
    }
    pool = _ranked(level, runs, depth=depth, seed=seed, noise=(0.3, 2.0))
    levels = np.array([level[name] for name in _names(pool)])
    said = every_answer(CrowdPlan(), levels, seed=seed)
    return World(pool, said, np.full(len(pool), said.shape[1]), 3)


def _ranked(
    truth: dict[tuple[str, str], float], runs: int, *, depth: int, seed: int,
    noise: tuple[float, float],
) -> Pool:  # fmt: skip
    random = np.random.default_rng(seed)
    ranked = {}
    for number, blur in enumerate(np.linspace(*noise, runs)):
        scores: dict[str, dict[str, float]] = defaultdict(dict)
        for (topic, docno), value in truth.items():
            if random.random() < 0.9:
                scores[topic][docno] = value + blur * random.normal()
        ranked[f"run{number:02d}"] = rank_scores(scores)
    return pool_runs(ranked, depth=depth)


def _names(pool: Pool) -> list[tuple[str, str]]:
    topics, docnos = pool.topic.tolist(), pool.docno.tolist()
    return [(pool.topics[t], d.decode()) for t, d in zip(topics, docnos, strict=True)]


@dataclass(frozen=True)
class Asked:
    """How labels are spent: so many pairs, and of each."""

    pairs: int
    labels: int
    share: float = 0.0
    further: float = 0.0
    until_two_agree: bool = False


@dataclass(frozen=True)
class Cell:
    """What is asked of a world, with `each` labels of `pairs` pairs."""

    world: World
    measure: str
    goal: str
    method: str
    pairs: int
    each: int

    def design(self, pairs: int):
        batch = -(-pairs // BATCHES) if self.method == "adaptive" else pairs
        return make_design(
            self.world.pool, measure=self.measure, budget=pairs, batch_size=batch,
            goal=self.goal, method=self.method, max_grade=self.world.max_grade,
        )  # fmt: skip

    def ways(self) -> dict[str, Asked]:
        """The same number of labels, in several ways."""
        work, base = self.pairs * self.each, 1.0 + SHARE
        planned = self.design(self.pairs)
        design = planned if self.method == "poisson" else planned.design
        reach = design.reachable_pairs
        split = best_split(self.world.pool, design, work=work, share=SHARE)
        every = min(reach, int(work / base))
        even = round(work / every)
        rest = max(0.0, min(work / every - even, 1.0))
        ways = {
            "fixed": Asked(self.pairs, self.each),
            "same pairs": Asked(self.pairs, 1, SHARE, self.each - base),
            "best split": Asked(
                round(split.pairs), 1, SHARE, max(0.0, work / round(split.pairs) - base)
            ),
            "one each": Asked(every, max(1, even), rest if work / every > 1 + SHARE else SHARE),
        }
        return ways | {"twin": Asked(self.pairs, 2, until_two_agree=True)}


def trial(cell: Cell, asked: Asked, seed: int) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Values, half widths' ends, and the number of labels of one round."""
    world, random = cell.world, np.random.default_rng(seed)
    order = np.argsort(np.where(world.said < 0, 2.0, random.random(world.said.shape)), axis=1)
    said = np.take_along_axis(world.said, order, axis=1)
    drawn = draw_round(world.pool, cell.design(asked.pairs), seed=f"overlap {seed}")
    number = np.zeros(len(world.pool), dtype=np.int64)
    chance = np.ones(len(world.pool))
    while True:
        pairs = _numbers(cell, drawn, asked, seed, number, chance, said)
        judged = np.flatnonzero(number)
        rows = _rows(judged, number[judged], said, chance if asked.further or asked.share else None)
        if not isinstance(drawn, AdaptiveRound) or drawn.planned == drawn.batches:
            break
        assert len(pairs) >= 0
        drawn = drawn.extended(world.pool, labels=rows)
    measure = parse_measure(cell.measure)
    found = evaluate(world.pool, drawn, labels=rows, measures=[measure], max_grade=world.max_grade)
    answer = found.results[0]
    result = answer.estimators[answer.primary]
    return result.value, result.low, result.high, len(rows.pair)


def _numbers(cell, drawn, asked, seed, number, chance, said) -> IntArray:
    pool = cell.world.pool
    if asked.further > 0.0 or asked.share > 0.0:
        given = int((number[number > 0] - asked.labels).sum())
        pairs, plan = plan_of_round(
            pool, drawn, labels=asked.labels, share=asked.share,
            further=min(asked.further, MOST_FURTHER), given=given,
        )  # fmt: skip
        number[pairs] = plan.drawn(pool, seed=f"overlap {seed}", pairs=pairs)
        chance[pairs] = plan.repeated
        return pairs
    pairs = drawn.pairs(pool)
    pairs = pairs[number[pairs] == 0]
    number[pairs] = asked.labels
    if asked.until_two_agree:
        number[pairs] += (said[pairs, 0] != said[pairs, 1]).astype(np.int64)
    return pairs


def _rows(
    pairs: IntArray, number: IntArray, said: np.ndarray, chance: FloatArray | None
) -> LabelRows:
    place = np.repeat(pairs, number)
    nth = np.arange(len(place)) - np.repeat(np.cumsum(number) - number, number)
    return LabelRows(place, said[place, nth], None if chance is None else chance[place])


@dataclass(frozen=True)
class Told:
    """What came of a way: see the module's text."""

    error: float
    bias: float
    worst_bias: float
    covers: float
    worst_covers: float
    labels: float


def play(cell: Cell, asked: Asked, trials: int) -> Told:
    """Play the trials of a way."""
    world, measure = cell.world, parse_measure(cell.measure)
    best = np.arange(world.max_grade + 1)
    utility = measure.utilities(best)[np.maximum(world.said, 0)] * (world.said >= 0)
    mean = utility.sum(axis=1) / world.voices
    truth = world.pool.weights(measure, np.arange(len(world.pool))).T @ mean
    value, low, high, labels = zip(*(trial(cell, asked, s) for s in range(trials)), strict=True)
    errors = np.stack(value) - truth
    covered = (np.stack(low) <= truth) & (truth <= np.stack(high))
    middle, overall = errors.mean(axis=0), errors.mean(axis=1)
    scale = np.sqrt(trials)
    away = errors - errors.mean(axis=1, keepdims=True) if cell.goal == "ranking" else errors
    return Told(
        error=float(np.sqrt((away**2).mean())),
        bias=float(overall.mean() / (overall.std(ddof=1) / scale)),
        worst_bias=float(np.abs(middle / (errors.std(axis=0, ddof=1) / scale)).max()),
        covers=float(covered.mean()),
        worst_covers=float(covered.mean(axis=0).min()),
        labels=float(np.mean(labels)),
    )


WORLDS = {
    "trec": lambda: trec_world(12, depth=50, seed=0),
    "made up": lambda: made_up_world(12, depth=50, seed=0),
}


def exact(cell: Cell, asked: Asked) -> float:
    """The error of a way over all samples and answers, of a Poisson design: nothing is played.

    What r people of R say has the variance S^2 / r (1 - r / R); by chance r is one more.
    """
    world, measure, pool = cell.world, parse_measure(cell.measure), cell.world.pool
    design = cell.design(asked.pairs)
    scale = measure.utilities(np.arange(world.max_grade + 1))
    utility = scale[np.maximum(world.said, 0)] * (world.said >= 0)
    mean = utility.sum(axis=1) / world.voices
    squares = (utility**2).sum(axis=1) / world.voices
    spread = (squares - mean**2) * world.voices / (world.voices - 1)
    plan = LabelPlan(np.full(len(pool), asked.labels), np.full(len(pool), asked.share))
    if asked.further:
        plan = plan_of_design(
            pool, design, labels=asked.labels, share=asked.share,
            further=min(asked.further, MOST_FURTHER),
        )  # fmt: skip
    inverse = (1.0 - plan.more) / plan.least + plan.more / (plan.least + 1)
    chance, weights = design.inclusion(), pool.weights(measure, np.arange(len(pool))).toarray()
    some = chance > 0.0
    if cell.goal == "ranking":
        weights = weights - weights.mean(axis=1, keepdims=True)
    noise = spread * (inverse - 1.0 / world.voices)
    each = ((1.0 - chance) * mean**2 + noise)[some] / chance[some]
    return float(np.sqrt(((weights[some] ** 2).T @ each).mean()))


SHARES = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
WORLDS = {
    "trec": lambda: trec_world(12, depth=50, seed=0),
    "trec, 4 runs": lambda: trec_world(4, depth=50, seed=1),
    "made up": lambda: made_up_world(12, depth=50, seed=0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=0, help="play so many; 0: exact errors")
    parser.add_argument("--cell", choices=WORLDS, action="append")
    parser.add_argument("--method", choices=["poisson", "adaptive"], action="append")
    parser.add_argument("--measure", action="append")
    parser.add_argument("--goal", action="append")
    parser.add_argument("--share", type=float, action="append", help="of the pool that is judged")
    parser.add_argument("--each", type=int, action="append", help="labels of a pair")
    given = parser.parse_args()
    played = bool(given.trials)
    ways = f"{'same':>7}{'split':>7}{'pairs':>7}{'one':>7}"
    print(
        ways
        if not played
        else f"{'way':>45}{'labels':>8}{'error':>7}{'bias':>7}{'worst':>7} covers"
    )
    for name in given.cell or WORLDS:
        world = WORLDS[name]()
        for method in (given.method or ["poisson"]) if played else ["poisson"]:
            for measure in given.measure or ["DCG@10", "P@10", "RBP(p=0.8)", "DCG@50"]:
                for goal in given.goal or ["absolute", "ranking"]:
                    for share in given.share or SHARES:
                        for each in given.each or (2, 3):
                            cell = _cell(world, method, measure, goal, share, each)
                            told = f"{name:13}{method:9}{measure:11}{goal[:8]:9}"
                            told += f"{cell.pairs:>5} x {each}"
                            _play(told, cell, given.trials) if played else _tell(told, cell)


def _cell(world: World, method: str, measure: str, goal: str, share: float, each: int) -> Cell:
    every = Cell(world, measure, goal, "poisson", len(world.pool), each).design(len(world.pool))
    return Cell(world, measure, goal, method, int(share * every.reachable_pairs), each)


def _tell(told: str, cell: Cell) -> None:
    ways = cell.ways()
    fixed, same, split, one = (
        exact(cell, ways[way]) for way in ("fixed", "same pairs", "best split", "one each")
    )
    pairs = ways["best split"].pairs
    print(
        f"{told} {same / fixed:6.2f} {split / fixed:6.2f} {pairs:6} {one / fixed:6.2f}", flush=True
    )


def _play(told: str, cell: Cell, trials: int) -> None:
    fixed = None
    for way, asked in cell.ways().items():
        found = play(cell, asked, trials)
        fixed = fixed or found
        print(
            f"{told} {way:>10} {found.labels:7.0f} {found.error / fixed.error:6.2f}"
            f" {found.bias:6.1f} {found.worst_bias:6.1f}"
            f" {found.covers:.3f} {found.worst_covers:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
