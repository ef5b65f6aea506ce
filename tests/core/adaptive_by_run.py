"""Adaptive rounds of measures whose utility depends on the run: tiny ones in full, and played."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.scope import Scope
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.adaptive.by_run import ByRun
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.sampled import weighed
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import DrawnRound, MeasureResult
from estimation.core.rounds.rounds import draw_round
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values
from tests.core.length import bounded
from tests.core.test_core_adaptive import begun, every_round
from tests.core.test_core_adaptive_topics import _outcomes
from tests.core.test_core_preferences import RUNS, TOPICS, scored

EXACT = {"rel": 1e-11, "abs": 1e-12}
SWAPS, WEIGHTED = PREFERENCES = [parse_measure(text) for text in ("#ofSwaps", "wSwaps")]
ACCURACY, MAE, MSE = ERRORS = [parse_measure(text) for text in ("Accuracy", "MAE", "MSE")]
LATER = scored({"1": {"y": 2.0, "x": 1.0, "z": 0.0}, "2": {"q": 3.0, "p": 1.0}})
BATCHES = bounded(2, 3)  # of rounds that are enumerated; the second is planned by what was learned

Rounds = Iterable[tuple[float, AdaptiveRound]]
"""Rounds that can come to be, with their probabilities."""


@dataclass(frozen=True, eq=False)
class Kind:
    """Measures that say the same of what is judged, and grades of the pairs of the tiny pool.

    `depth` is how deep runs of usual size are judged, `documents` how many these have of a topic,
    and `odds` how often these have each grade.
    """

    of_two: bool
    best: int
    grades: np.ndarray
    documents: int
    depth: int
    odds: tuple[float, ...]

    def pool_of(
        self, runs: dict[str, RankedLists] = RUNS, *, depth: int = 3, topics: list[str] = TOPICS
    ) -> Pool:
        """By default three runs, and six documents or five pairs of these."""
        if self.of_two:
            return preference_pool(build_pool(topics, runs, depth=depth), depth=depth)
        return build_pool(topics, runs, depth=depth, scores=True)

    def collection(self, scales: list[float]) -> tuple[Pool, np.ndarray]:
        """Runs over twenty topics whose scores are off by so much; the better one is preferred."""
        rng, topics = np.random.default_rng(5), 20
        quality = rng.choice(4, size=(topics, self.documents), p=self.odds)
        names, runs = [f"t{topic:02}" for topic in range(topics)], {}
        for run, scale in enumerate(scales):
            scores = quality + rng.normal(scale=scale, size=quality.shape)
            listed = [{f"d{at:02}": float(each) for at, each in enumerate(row)} for row in scores]
            runs[f"r{run}"] = scored(dict(zip(names, listed, strict=True)))
        pool = self.pool_of(runs, depth=self.depth, topics=names)

        def of(docnos: np.ndarray) -> np.ndarray:
            return quality[pool.topic, [int(docno[1:]) for docno in docnos.tolist()]]

        return pool, 1 + np.sign(of(pool.docno) - of(pool.other)) if self.of_two else of(pool.docno)


COMPARED = Kind(True, 2, np.array([2, 0, 1, 0, 2]), 30, 8, (0.6, 0.2, 0.12, 0.08))
PREDICTED = Kind(False, 3, np.array([1, 3, 0, 2, 0, 1]), 40, 40, (0.5, 0.25, 0.15, 0.1))


def kind_of(measure: Measure) -> Kind:
    return COMPARED if measure.family == "preference" else PREDICTED


def compared() -> tuple[Pool, np.ndarray]:
    """Six runs that are less and less right which document is the better one."""
    return COMPARED.collection([0.6 + run / 4.0 for run in range(6)])


def noisy(off: float) -> tuple[Pool, np.ndarray]:
    """Five runs whose scores tell grades, the first of them off by so much and others by more."""
    return PREDICTED.collection([off * (1.0 + run / 4.0) for run in range(5)])


def design_for(
    pool: Pool, measure: Measure, *, budget: float = 3, batches: int = 3, **options
) -> Design:
    goal, best = options.pop("goal", goals.absolute(*pool.runs)), best_of(pool)
    prior = make_prior(pool, name="constant", goal=goal, measure=measure, max_grade=best)
    given = {"goal": goal, "measure": measure, "prior": prior, "method": "adaptive"} | options
    return make_design(
        pool, budget=budget, batch_size=-(-budget // batches), max_grade=best, **given
    )


def plan_for(pool: Pool, measure: Measure, **options) -> AdaptivePlan:
    together = options.pop("topic_minimum", 0.0)
    design = design_for(pool, measure, **options)
    return AdaptivePlan(design, best_of(pool), options.get("costs"), topic_minimum=together)


def best_of(pool: Pool) -> int:
    return (COMPARED if pool.is_of_preferences else PREDICTED).best


# ----------------------------------------------------------------------------- all tiny rounds


def usual_rounds(measure: Measure, batches: int = 2) -> Rounds:
    """All rounds by the usual plan, for tests that take `eager`; of two batches found once."""
    if batches == 2:
        return _of_two_batches(measure)
    pool = kind_of(measure).pool_of()
    return rounds_of(pool, plan_for(pool, measure), measure, batches=batches)


@cache
def _of_two_batches(measure: Measure) -> list[tuple[float, AdaptiveRound]]:
    pool = kind_of(measure).pool_of()
    return list(rounds_of(pool, plan_for(pool, measure), measure))


def rounds_of(
    pool: Pool, plan: AdaptivePlan, measure: Measure, *, batches: int = 2
) -> Iterator[tuple[float, AdaptiveRound]]:
    """All rounds by a plan; pairs have the grades of the measure's kind."""
    play = _by_topics if plan.together else every_round
    return play(pool, begun(plan), batches=batches, grades=kind_of(measure).grades)


def _by_topics(
    pool: Pool, drawn: AdaptiveRound, *, batches: int, grades: np.ndarray
) -> Iterator[tuple[float, AdaptiveRound]]:
    """As `every_round`, where topics take part by chance."""
    if batches == 0:
        yield 1.0, drawn
        return
    pairs = drawn.sample.pair
    planned = drawn.next_batch(pool, labels=LabelRows(pairs, grades[pairs]))
    for share, taken in _outcomes(pool, planned):
        longer = drawn.with_batch(planned, taken)
        for rest, whole in _by_topics(pool, longer, batches=batches - 1, grades=grades):
            yield share * rest, whole


def run_totals(drawn: AdaptiveRound, scope: Scope, measure: Measure, rows: LabelRows) -> ByRun:
    frame = drawn.design.frame(scope.sampled or scope.pool)
    weights = weighed(frame, drawn.sample, (measure,)).weights
    return ByRun(frame, scope, weights, measure, drawn.sample.pair, rows)


def judged_totals(drawn: AdaptiveRound, scope: Scope, measure: Measure) -> ByRun:
    """With one label of each pair, by the grades of the measure's kind."""
    pairs = drawn.sample.pair
    rows = LabelRows(np.arange(len(pairs)), kind_of(measure).grades[pairs])
    return run_totals(drawn, scope, measure, rows)


def moments(
    rounds: Rounds, measure: Measure, scope: Scope | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and covariance of the values, and mean of the estimated covariance."""
    scope, mean, square, estimated = scope or Scope.of(kind_of(measure).pool_of()), 0.0, 0.0, 0.0
    for chance, drawn in rounds:
        found = judged_totals(drawn, scope, measure).estimate()
        mean = mean + chance * found.value
        square = square + chance * np.multiply.outer(found.value, found.value)
        estimated = estimated + chance * found.covariance
    return mean, square - np.multiply.outer(mean, mean), estimated


def truth_of(pool: Pool, measure: Measure) -> np.ndarray:
    return true_values(pool, grades=kind_of(measure).grades, measure=measure)


def off_by(rounds: Rounds, measure: Measure) -> float:
    """By how much the mean value of a run is off, over the largest value there is."""
    truth = truth_of(kind_of(measure).pool_of(), measure)
    return float(np.abs(moments(rounds, measure)[0] - truth).max() / truth.max())


# ------------------------------------------------------------------------------ of usual size


def played(
    pool: Pool, grades: np.ndarray, plan: AdaptivePlan, *, seed: str
) -> tuple[AdaptiveRound, LabelRows]:
    drawn = AdaptiveRound.begin(pool, plan, seed=seed)
    while drawn.planned < drawn.batches:
        pairs = drawn.pairs(pool)
        drawn = drawn.extended(pool, labels=LabelRows(pairs, grades[pairs]))
    pairs = drawn.pairs(pool)
    return drawn, LabelRows(pairs, grades[pairs])


def told(pool: Pool, drawn: DrawnRound, labels: LabelRows, measure: Measure) -> MeasureResult:
    asked = {"measures": [measure], "max_grade": best_of(pool)}
    return evaluate(pool, drawn, labels=labels, **asked).results[0]


def in_poisson(pool: Pool, grades: np.ndarray, design: Design, seed: str) -> MeasureResult:
    drawn = draw_round(pool, design, seed=seed)
    pairs = drawn.pairs(pool)
    return told(pool, drawn, LabelRows(pairs, grades[pairs]), design.measure)
