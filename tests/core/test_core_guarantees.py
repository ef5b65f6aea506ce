"""Guaranteed kinds of intervals in an evaluation: what is chosen, what it covers, what it says.

The bounds themselves are tested in `test_core_bounds`. Here whole evaluations are: exactly, over
all Poisson samples of a tiny pool, and by seeded campaigns that come close to the worst case, where
narrower intervals fail.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.inference.bounds import hoeffding_half_widths, label_noise_ranges
from estimation.core.inference.poisson_bounds import chernoff_limits
from estimation.core.inference.ranges import draw_ranges
from estimation.core.inference.ranks import guaranteed_p_values
from estimation.core.inference.reach import Reach
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.combining import RoundsTogether
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.methods import check_interval, interval_kinds
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample
from estimation.research.simulation import true_values
from tests.core.length import bounded
from tests.core.test_core_bounds import poisson_half_widths

DCG = parse_measure("DCG@2")
BEST = 3
GUARANTEED = [
    ("iid", "hoeffding"),
    ("iid", "hoeffding-paper"),
    ("iid", "empirical-bernstein"),
    ("poisson", "bernstein"),
    ("poisson", "chernoff"),
]
EVERY_KIND = pytest.mark.parametrize(("method", "kind"), GUARANTEED)


def design_of(
    pool: Pool, method: str, budget: int, *, measure: Measure = DCG, prior: str = "rank"
) -> Design:
    goal = goals.absolute(*pool.runs)
    believed = make_prior(pool, name=prior, goal=goal, measure=measure, max_grade=BEST)
    return make_design(
        pool, goal=goal, measure=measure, prior=believed, method=method, budget=budget,
        batch_size=budget,
    )  # fmt: skip


def asked(
    pool: Pool, design: Design, sample: Sample, grades: np.ndarray, kind: str, **options
) -> MeasureResult:
    settings = {
        "labels": LabelRows(sample.pair, grades[sample.pair]), "measures": [DCG],
        "max_grade": BEST, "interval": kind,
    }  # fmt: skip
    return evaluate(pool, PairRound(design, sample), **(settings | options)).results[0]


# ---------------------------------------------------------------------------- which kinds there are


def test_kinds_that_do_not_exist_or_go_together_are_refused(tiny_pool: Pool) -> None:
    with pytest.raises(ValueError, match=r"interval must be one of student, .*, not 'normal'$"):
        check_interval("normal", method="iid")
    with pytest.raises(ValueError, match=r"interval must be one of .*, not \['student'\]$"):
        check_interval(["student"], method="iid")
    for method, kind in [("poisson", "hoeffding"), ("iid", "chernoff"), ("priority", "bernstein")]:
        design = design_of(tiny_pool, method, 3)
        sample, allowed = draw(tiny_pool, design, seed="s"), ", ".join(interval_kinds(method))
        message = f"interval must be one of {allowed} for the method {method}, not '{kind}'"
        with pytest.raises(ValueError, match=message):
            asked(tiny_pool, design, sample, np.zeros(5, dtype=np.int64), kind)


def test_draws_of_several_rounds_are_not_alike(tiny_pool: Pool) -> None:
    design = design_of(tiny_pool, "iid", 3)
    parts = [PairRound(design, draw(tiny_pool, design, seed=seed)) for seed in "ab"]
    pairs = np.unique(np.concatenate([part.sample.pair for part in parts]))
    options = {"labels": LabelRows(pairs, pairs % 4), "measures": [DCG], "max_grade": BEST}
    message = "one of student, hoeffding, hoeffding-paper for several rounds, .* not 'empirical-b"
    with pytest.raises(ValueError, match=message):
        evaluate(tiny_pool, RoundsTogether(tuple(parts)), **options, interval="empirical-bernstein")
    found = evaluate(
        tiny_pool, RoundsTogether(tuple(parts)), **options, interval="hoeffding"
    ).results[0]
    assert found.interval == "hoeffding"
    with pytest.raises(ValueError, match="for the method iid, not 'chernoff'"):
        evaluate(tiny_pool, RoundsTogether(tuple(parts)), **options, interval="chernoff")


@pytest.mark.parametrize(
    ("method", "kind"), [each for each in GUARANTEED if each[1] != "empirical-bernstein"]
)
def test_one_round_alone_is_several_rounds_of_one(tiny_pool: Pool, method: str, kind: str) -> None:
    design = design_of(tiny_pool, method, 4)
    sample, grades = draw(tiny_pool, design, seed="s"), np.array([3, 0, 1, 2, 1])
    alone = asked(tiny_pool, design, sample, grades, kind)
    together = evaluate(
        tiny_pool, RoundsTogether((PairRound(design, sample),)),
        labels=LabelRows(sample.pair, grades[sample.pair]),
        measures=[DCG], max_grade=BEST, interval=kind,
    ).results[0]  # fmt: skip
    assert together.interval == kind
    for field in ("low", "high"):
        expected = getattr(alone.estimate, field)
        assert getattr(together.estimate, field) == pytest.approx(expected, rel=1e-12)
    assert together.ranking.margin == pytest.approx(alone.ranking.margin, rel=1e-12)
    assert together.ranking.adjusted_p == pytest.approx(alone.ranking.adjusted_p, rel=1e-9)


@EVERY_KIND
def test_measures_without_a_bound_keep_student_and_say_so(
    tiny_pool: Pool, method: str, kind: str
) -> None:
    design = design_of(tiny_pool, method, 4)
    sample, grades = draw(tiny_pool, design, seed="s"), np.array([3, 0, 1, 2, 1])
    measures = [DCG, parse_measure("AP"), parse_measure("P@1")]
    rows = LabelRows(sample.pair, grades[sample.pair])
    options = {"labels": rows, "measures": measures, "max_grade": BEST}
    usual = evaluate(tiny_pool, PairRound(design, sample), **options).results
    found = evaluate(tiny_pool, PairRound(design, sample), **options, interval=kind).results
    assert [each.interval for each in usual] == ["student"] * 3
    assert [each.interval for each in found] == [kind, "student", kind]
    for before, now in zip(usual, found, strict=True):
        for name, estimator in now.estimators.items():
            student = before.estimators[name]
            assert np.array_equal(estimator.value, student.value)
            assert np.array_equal(estimator.se, student.se)
            if name != now.primary or now.interval == "student":
                assert np.array_equal(estimator.high, student.high)
                assert estimator.difference_bound is None
    assert not np.any(found[0].estimate.high == usual[0].estimate.high)
    assert found[0].estimate.difference_bound is not None
    assert np.array_equal(found[1].ranking.adjusted_p, usual[1].ranking.adjusted_p)


# -------------------------------------------------------------------- what the ends are, by formula


def test_ends_are_those_of_the_bounds(tiny_pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reach, "largest_values", lambda *_: np.full(3, np.inf))
    grades, weights = np.array([3, 0, 1, 2, 1]), tiny_pool.weights(DCG)
    design = design_of(tiny_pool, "iid", 6)
    sample = draw(tiny_pool, design, seed="s")
    ranges = draw_ranges(weights, probability=design.size, max_utility=BEST)
    noise = label_noise_ranges(weights, max_utility=BEST)
    half = hoeffding_half_widths(ranges, draws=6, confidence=0.95)
    half = half + hoeffding_half_widths(noise, draws=1, confidence=0.95)
    found = asked(tiny_pool, design, sample, grades, "hoeffding", confidence=0.9).estimate
    assert found.high == pytest.approx(found.value + half)
    assert found.low == pytest.approx(np.maximum(found.value - half, 0.0))
    paper = hoeffding_half_widths(ranges, draws=6, confidence=0.9, form="paper")
    found = asked(tiny_pool, design, sample, grades, "hoeffding-paper", confidence=0.9).estimate
    assert found.high == pytest.approx(found.value + np.maximum(paper, half))
    design = design_of(tiny_pool, "poisson", 3)
    sample, options = draw(tiny_pool, design, seed="s"), {"max_utility": BEST, "confidence": 0.9}
    half = poisson_half_widths(weights, probability=design.inclusion(), **options)
    found = asked(tiny_pool, design, sample, grades, "bernstein", confidence=0.9).estimate
    assert found.high == pytest.approx(found.value + half)
    scale = draw_ranges(weights, probability=design.inclusion(), max_utility=BEST)
    found = asked(tiny_pool, design, sample, grades, "chernoff", confidence=0.9).estimate
    low, high = chernoff_limits(found.value, scale=scale, confidence=0.9)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.slow
@EVERY_KIND
def test_no_interval_goes_beyond_what_a_value_can_be(
    tiny_pool: Pool, method: str, kind: str
) -> None:
    design, grades = design_of(tiny_pool, method, 2), np.array([3, 0, 1, 2, 1])
    largest = tiny_pool.weights(DCG).sum(axis=0) * BEST
    beyond = []
    for number in range(20):
        sample = draw(tiny_pool, design, seed=f"s{number}")
        found = asked(tiny_pool, design, sample, grades, kind).estimate
        assert np.all(found.low <= found.value)
        assert np.all(found.high <= np.maximum(found.value, largest) * (1 + 1e-12))
        beyond.append(found.value > largest)
    assert np.any(beyond)  # then the estimate is the end


@EVERY_KIND
def test_pairs_out_of_reach_have_no_part_in_the_interval(
    tiny_pool: Pool, method: str, kind: str
) -> None:
    """The interval is of the lower bound that is estimated, as if the pair had no weight."""
    design = design_of(tiny_pool, method, 4)
    size = np.where(np.arange(5) == 0, 0.0, design.size)
    narrow = replace(design, size=size / size.sum())
    sample, grades = draw(tiny_pool, narrow, seed="s"), np.array([3, 2, 1, 2, 1])
    found = asked(tiny_pool, narrow, sample, grades, kind)
    assert found.support.min() < 1.0
    usual = asked(tiny_pool, narrow, sample, grades, "student")
    assert np.all(np.isfinite(found.estimate.high))
    assert np.all(found.estimate.high > usual.estimate.value)
    runs = {
        "alpha": _only(b"b", b"xy"), "beta": _only(b"bc", b"x"), "gamma": _only(b"", b"yx")
    }  # fmt: skip
    smaller = build_pool(["t1", "t2", "t3"], runs, depth=2)
    assert len(smaller) == 4
    lacking = replace(
        narrow, size=narrow.size[1:], belief=narrow.belief[1:], pool_digest=smaller.digest
    )
    moved = replace(
        sample, pair=sample.pair - 1, draws=sample.draws - 1, pool_digest=smaller.digest
    )
    without = asked(smaller, lacking, moved, grades[1:], kind)
    others = [1, 2]  # alpha returns what cannot be sampled above what can be
    assert found.estimate.high[others] == pytest.approx(without.estimate.high[others], rel=1e-12)


def _only(first_topic: bytes, second_topic: bytes) -> RankedLists:
    docnos = [bytes([letter]) for letter in first_topic + second_topic]
    bounds = np.array([0, len(first_topic), len(docnos)])
    return RankedLists(("t1", "t2"), bounds, np.array(docnos, dtype=np.bytes_))


# ------------------------------------------------------------- exactly, over all samples of a pool


def outcomes(design: Design) -> Iterator[tuple[float, Sample]]:
    inclusion = design.inclusion()
    for taken in product([False, True], repeat=len(inclusion)):
        chance = float(np.prod(np.where(taken, inclusion, 1 - inclusion)))
        pair, none = np.flatnonzero(taken), np.array([], dtype=np.int64)
        batch = np.ones(len(pair), dtype=np.int32)
        if chance > 0:
            yield chance, Sample(pair, batch, inclusion[pair], none, design.pool_digest)


GRADES = [np.array(each) for each in product([0, 3], [0, 3], [0, 3], [0, 2], [1])]
GRADES = GRADES[:: bounded(3, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bernstein", "chernoff"])
def test_poisson_kinds_cover_in_every_case(tiny_pool: Pool, kind: str) -> None:
    """Values, differences, and all verdicts at once, whatever the grades."""
    design = design_of(tiny_pool, "poisson", 2)
    values, differences, verdicts = [], [], []
    for grades in GRADES:
        truth = true_values(tiny_pool, grades=grades, measure=DCG)
        apart = np.subtract.outer(truth, truth)
        inside, within, false = np.zeros(3), np.zeros((3, 3)), 0.0
        for chance, sample in outcomes(design):
            result = asked(tiny_pool, design, sample, grades, kind, confidence=0.5)
            found, ranking = result.estimate, result.ranking
            inside += chance * ((found.low <= truth + 1e-9) & (truth <= found.high + 1e-9))
            bound = found.difference_bound
            low, high = (ranking.difference - bound.below(0.5)), bound.above(0.5)
            high = ranking.difference + high
            within += chance * ((low <= apart + 1e-9) & (apart <= high + 1e-9))
            false += chance * bool(np.any((ranking.verdicts == 1) & (apart <= 1e-12)))
        values.append(inside.min())
        differences.append(within.min())
        verdicts.append(false)
    assert min(values) >= 0.5
    assert min(differences) >= 0.5
    assert max(verdicts) <= 0.5


# ----------------------------------------------------------- campaigns that are hard for each kind


def uniform_pool(topics: int, documents: int) -> Pool:
    """One run, whose pairs all have the same weight under P at its depth."""
    names = tuple(f"t{number:03d}" for number in range(topics))
    docnos = np.array([b"d%05d" % number for number in range(documents)] * topics)
    lists = RankedLists(names, np.arange(topics + 1) * documents, docnos)
    return build_pool(list(names), {"r": lists}, depth=documents)


def errors_and_widths(
    pool: Pool, method: str, kind: str, *, budget: int, share: float, campaigns: int
) -> tuple[np.ndarray, np.ndarray]:
    """Errors, and the half widths on their side, where a share of the pairs is relevant."""
    measure = parse_measure(f"P@{pool.depth}")
    design = design_of(pool, method, budget, measure=measure, prior="constant")
    grades = (np.arange(len(pool)) % 100 < 100 * share).astype(np.int64)
    errors, widths = [], []
    for seed in range(campaigns):
        sample = draw(pool, design, seed=f"{kind} {seed}")
        found = asked(pool, design, sample, grades, kind, measures=[measure]).estimate
        error = share - found.value[0]
        errors.append(error)
        high = found.high[0] - found.value[0]
        widths.append(high if error > 0 else found.value[0] - found.low[0])
    return np.abs(errors), np.array(widths)


@pytest.mark.usefixtures("guarantees_alone")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "kind", "pool", "budget", "share", "part"),
    [
        ("iid", "hoeffding", (20, 100), 40, 0.5, 1 / 2),
        ("iid", "hoeffding-paper", (20, 100), 40, 0.5, 1 / 4),
        ("iid", "empirical-bernstein", (50, 400), 2000, 0.5, 1 / 3),
        ("poisson", "bernstein", (20, 100), 100, 1.0, 1 / 2),
        ("poisson", "chernoff", (20, 100), 100, 1.0, 1 / 2),
    ],
)
def test_guaranteed_intervals_cover_and_narrower_ones_do_not(
    method: str, kind: str, pool: tuple[int, int], budget: int, share: float, part: float
) -> None:
    """At 95 %, close to the worst case of each. The twins have half of the width, or, where a bound
    is no closer than that, a third or a quarter of it."""
    errors, widths = errors_and_widths(
        uniform_pool(*pool), method, kind, budget=budget, share=share, campaigns=300
    )
    covered = np.mean(errors <= widths + 1e-12)
    assert covered >= 0.95
    assert np.mean(errors <= part * widths) < 0.92


@pytest.mark.usefixtures("guarantees_alone")
@pytest.mark.slow
def test_assessors_who_disagree_are_covered(monkeypatch) -> None:
    """Every pair has one judgment, a coin's; draws are many, so that coins are all there is."""
    pool = uniform_pool(4, 25)
    measure, rng = parse_measure("P@25"), np.random.default_rng(4)
    design = design_of(pool, "iid", 4000, measure=measure, prior="constant")
    sample = draw(pool, design, seed="s")
    coins = rng.integers(0, 2, size=(200, 100))

    def covered() -> float:
        inside = []
        for grades in coins:
            found = asked(pool, design, sample, grades, "hoeffding", measures=[measure]).estimate
            inside.append(found.low[0] <= 0.5 <= found.high[0])
        return float(np.mean(inside))

    assert covered() >= 0.95
    monkeypatch.setattr(
        "estimation.core.inference.bounds.label_noise_ranges",
        lambda weights, **_: np.zeros(weights.shape[1]),
    )
    assert covered() < 0.8


# ------------------------------------------------------------------------------ verdicts and ranks


@EVERY_KIND
def test_p_values_are_where_intervals_begin_to_exclude_zero(
    tiny_pool: Pool, method: str, kind: str
) -> None:
    design = design_of(tiny_pool, method, 4)
    sample, grades = draw(tiny_pool, design, seed="s"), np.array([3, 2, 0, 3, 0])
    bound = asked(tiny_pool, design, sample, grades, kind).estimate.difference_bound
    assert bound is not None
    wide = np.subtract.outer([40.0, 20.0, 1.0], [40.0, 20.0, 1.0])
    found = guaranteed_p_values(wide, bound)
    assert np.array_equal(found, found.T)
    assert np.diag(found).tolist() == [1.0] * 3
    seen = set()
    for error in np.geomspace(1e-10, 0.9, 60):
        excludes = bound.below(1.0 - error) < wide
        for row, column in [(0, 1), (0, 2), (1, 2)]:
            p_value = found[row, column]
            if abs(p_value / error - 1.0) > 1e-3:
                assert excludes[row, column] == (p_value < error)
                seen.add(bool(excludes[row, column]))
    assert seen == {False, True}


@EVERY_KIND
def test_a_run_that_is_far_better_gets_its_verdict(method: str, kind: str) -> None:
    names = tuple(f"t{number:02d}" for number in range(20))
    docnos = {letter: [f"{letter}{n:02d}".encode() for n in range(40)] for letter in "gbc"}

    def run(letters: str) -> RankedLists:
        rows = np.array([d for letter in letters for d in docnos[letter]] * 20)
        return RankedLists(names, np.arange(21) * 40, rows)

    pool = build_pool(list(names), {"good": run("g"), "bad": run("b"), "worse": run("c")}, depth=40)
    measure = parse_measure("P@40")
    budget = 60_000 if method == "iid" else 1200
    design = design_of(pool, method, budget, measure=measure, prior="constant")
    grades = np.array([int(docno.startswith(b"g")) for docno in pool.docno])
    sample = draw(pool, design, seed="s")
    result = asked(pool, design, sample, grades, kind, measures=[measure])
    good, bad, worse = (result.runs.index(tag) for tag in ("good", "bad", "worse"))
    ranking = result.ranking
    assert ranking.verdicts[good, bad] == ranking.verdicts[good, worse] == 1
    assert ranking.verdicts[bad, good] == -1
    assert ranking.verdicts[bad, worse] == 0
    assert (ranking.rank_low[good], ranking.rank_high[good]) == (1, 1)
    assert (ranking.rank_low[bad], ranking.rank_high[bad]) == (2, 3)
    assert ranking.margin[good, bad] < ranking.difference[good, bad]
