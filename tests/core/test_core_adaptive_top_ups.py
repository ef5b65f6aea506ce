"""Adaptive rounds that add to what is judged: unbiased over a pool that has grown."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows, PairLabels
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.restriction import restricted
from estimation.core.data.scope import Scope
from estimation.core.estimates.difference import DifferenceEstimate
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning.adaptive_ahead import ahead_of_batches
from estimation.core.rounds.adaptive import top_ups
from estimation.core.rounds.adaptive.batch_weights import BatchWeights
from estimation.core.rounds.adaptive.estimates import estimate_totals
from estimation.core.rounds.adaptive.past import Past
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptiveError, AdaptivePlan, walk
from estimation.core.rounds.adaptive.top_ups import continued, topped_up
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import load_round
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import DesignError
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values
from tests.core.length import bounded
from tests.core.simulated_pools import simulated_pool
from tests.core.test_core_adaptive import begun, every_round

DCG, PRECISION = parse_measure("DCG@3"), parse_measure("P@2")
EXACT = {"rel": 1e-12, "abs": 1e-12}
BEST = 3
TIMES = bounded(1, 2)  # batches of a first round that are enumerated


@pytest.fixture
def pool(ranked: Callable) -> Pool:
    """Four pairs, one run."""
    return build_pool(["1", "2"], {"a": ranked({"1": "uv", "2": "pq"})}, depth=3)


@pytest.fixture
def grown(ranked: Callable) -> Pool:
    """Two more pairs, of two runs that joined."""
    return build_pool(["1", "2"], _lists(ranked), depth=3)


def _lists(ranked: Callable) -> dict:
    return {
        "a": ranked({"1": "uv", "2": "pq"}),
        "b": ranked({"1": "wu", "2": "qp"}),
        "c": ranked({"1": "vw", "2": "rq"}),
    }


@pytest.fixture
def grades(grown: Pool) -> np.ndarray:
    """Of the grown pool."""
    return np.array([2, 0, 1, 0, 2, 1])[: len(grown)]


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares are made for a quarter more, so that rounds that are continued count for a part."""
    monkeypatch.setattr(top_ups, "extended", lambda more: 1.25)


def plan_for(
    pool: Pool, budget: float, *, batches: int = 2, measure: Measure = DCG
) -> AdaptivePlan:
    goal = goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=BEST)
    design = make_design(
        pool,
        goal=goal,
        measure=measure,
        prior=prior,
        budget=budget,
        batch_size=budget / batches,
        method="adaptive",
        costs=np.ones(len(pool)),
        reported=[PRECISION],
    )
    return AdaptivePlan(design, BEST)


def estimated(
    pool: Pool, drawn: AdaptiveRound, grades: np.ndarray, measure: Measure
) -> DifferenceEstimate:
    frame, pairs = drawn.design.frame(pool), drawn.sample.pair
    weights = BatchWeights.of(frame, walk(frame, drawn.sample), [measure], drawn.planned)
    number = np.ones(len(pairs), dtype=np.int64)
    labels = PairLabels(measure.utilities(grades[pairs]), number, np.zeros(len(pairs)), False)
    return estimate_totals(Scope.of(pool), weights, 0, measure=measure, pairs=pairs, labels=labels)


def moments(
    pool: Pool, rounds: Iterator[tuple[float, AdaptiveRound]], grades: np.ndarray, measure=DCG
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and covariance of the values, and the mean of the estimated covariance."""
    mean, square, told = 0.0, 0.0, 0.0
    for chance, drawn in rounds:
        found = estimated(pool, drawn, grades, measure)
        mean = mean + chance * found.value
        square = square + chance * np.multiply.outer(found.value, found.value)
        told = told + chance * found.covariance
    return mean, square - np.multiply.outer(mean, mean), told


def top_up_of(
    pool: Pool, grown: Pool, first: AdaptiveRound, *, budget: float, others: tuple[int, ...] = ()
) -> AdaptivePlan:
    """What continues a round; `others` are judged pairs of the grown pool besides."""
    scope = Scope.of(pool, grown)
    judged = np.union1d(scope.places(first.sample.pair), np.array(others, dtype=np.int64))
    frame = first.design.frame(pool)
    past = continued(scope, frame, first.sample, judged, budget=budget)
    return topped_up(plan_for(grown, budget, batches=min(2, int(budget))), past)


def continuing(
    pool: Pool, grown: Pool, grades: np.ndarray, *, budget: float = 2.0, batches: int = 2, **given
) -> Iterator[tuple[float, AdaptiveRound]]:
    """All top-ups of all first rounds; of those in which nothing is left to draw the first."""
    of_first = grades[Scope.of(pool, grown).place]
    for chance, first in every_round(
        pool, begun(plan_for(pool, 2.0)), batches=TIMES, grades=of_first
    ):
        plan = top_up_of(pool, grown, first, budget=budget, **given)
        for rest, drawn in every_round(grown, begun(plan), batches=batches, grades=grades):
            yield chance * rest, drawn


@pytest.mark.slow
@pytest.mark.parametrize(("batches", "measure"), [(1, DCG), (1, PRECISION), (2, DCG)], ids=str)
def test_a_round_that_is_continued_is_unbiased_and_so_are_its_variances(
    pool: Pool, grown: Pool, grades: np.ndarray, eager: None, batches: int, measure: Measure
) -> None:
    """With twice its budget all pairs are certain: all that counts is left to the top-up."""
    rounds = continuing(pool, grown, grades, batches=batches)
    mean, covariance, told = moments(grown, rounds, grades, measure)
    assert mean == pytest.approx(true_values(grown, grades=grades, measure=measure), **EXACT)
    assert told == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
def test_what_a_first_round_counts_for_is_unbiased(
    pool: Pool, grown: Pool, grades: np.ndarray, eager: None, counting: None
) -> None:
    mean, covariance, told = moments(grown, continuing(pool, grown, grades, batches=1), grades)
    assert mean == pytest.approx(true_values(grown, grades=grades, measure=DCG), **EXACT)
    assert told == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
def test_pairs_that_others_judged_are_certain_and_count_with_what_is_left(
    pool: Pool, grown: Pool, grades: np.ndarray, eager: None
) -> None:
    rounds = continuing(pool, grown, grades, others=(0, 4))
    mean, covariance, told = moments(grown, rounds, grades)
    assert mean == pytest.approx(true_values(grown, grades=grades, measure=DCG), **EXACT)
    assert told == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
def test_what_was_continued_is_continued_again(
    pool: Pool, grades: np.ndarray, eager: None, counting: None, ranked: Callable
) -> None:
    """Each time with a pair more, or with two and then with one more."""
    lists = {tag: each for tag, each in _lists(ranked).items() if tag in bounded("ab", "abc")}
    grown = build_pool(["1", "2"], lists, depth=3)
    lists["d"] = ranked({"1": "xu", "2": "pq"})
    again = build_pool(["1", "2"], lists, depth=3)
    grades, every = grades[: len(grown)], np.full(len(again), 1)
    every[Scope.of(grown, again).place] = grades

    def rounds() -> Iterator[tuple[float, AdaptiveRound]]:
        for chance, second in continuing(pool, grown, grades, batches=1):
            plan = top_up_of(grown, again, second, budget=1.0)
            for rest, third in every_round(again, begun(plan), batches=1, grades=every):
                yield chance * rest, third

    mean, covariance, told = moments(again, rounds(), every)
    assert mean == pytest.approx(true_values(again, grades=every, measure=DCG), **EXACT)
    assert told == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
def test_alone_it_is_unbiased_given_whatever_was_judged(
    grown: Pool, grades: np.ndarray, eager: None
) -> None:
    truth = true_values(grown, grades=grades, measure=DCG)
    for judged in ([], [0], [1, 2], [0, 3, 4]):
        past = Past.alone(np.array(judged, dtype=np.int64), pairs=len(grown))
        plan = topped_up(plan_for(grown, 2.0), past)
        rounds = every_round(grown, begun(plan), batches=2, grades=grades)
        mean, covariance, told = moments(grown, rounds, grades)
        assert mean == pytest.approx(truth, **EXACT)
        assert told == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
def test_shares_that_follow_from_what_a_batch_found_would_be_biased(
    pool: Pool, grown: Pool, grades: np.ndarray, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: much is left to the top-up where little was found."""
    found = {}
    monkeypatch.setattr(top_ups, "extended", lambda more: 5.0 if found["few"] else 1.25)
    real = top_ups.continued

    def by_finds(scope, frame, state, judged, *, budget):
        found["few"] = not np.any(grades[scope.places(state.pair)] > 1)
        return real(scope, frame, state, judged, budget=budget)

    monkeypatch.setitem(globals(), "continued", by_finds)
    mean, _, _ = moments(grown, continuing(pool, grown, grades), grades)
    truth = true_values(grown, grades=grades, measure=DCG)
    assert np.abs(mean - truth).max() > 1e-3 * truth.max()


# --------------------------------------------------------------------- larger ones, as people have


@pytest.fixture(scope="module")
def larger() -> tuple[Pool, Pool, np.ndarray]:
    """Three runs, all six of them, and the grades of the pool of all."""
    every, grades = simulated_pool()
    some = restricted(every, set(every.runs[:3]))
    return some, every, grades


def judged_to_the_end(
    pool: Pool, plan: AdaptivePlan, grades: np.ndarray, seed: str
) -> AdaptiveRound:
    known = np.array([], dtype=np.int64) if plan.past is None else plan.past.judged
    drawn = AdaptiveRound.begin(pool, plan, seed=seed, labels=LabelRows(known, grades[known]))
    while drawn.planned < drawn.batches:
        pairs = drawn.sample.pair
        drawn = drawn.extended(pool, labels=LabelRows(pairs, grades[pairs]))
    return drawn


def a_top_up(
    larger: tuple[Pool, Pool, np.ndarray], *, alone: bool = False, seed: str = "s"
) -> AdaptiveRound:
    some, every, grades = larger
    scope = Scope.of(some, every)
    plan, of_some = plan_for(some, 40.0, batches=4), grades[scope.place]
    first = judged_to_the_end(some, plan, of_some, f"first {seed}")
    judged = scope.places(first.sample.pair)
    past = Past.alone(judged, pairs=len(every))
    if not alone:
        frame = first.design.frame(some)
        past = continued(scope, frame, first.sample, judged, budget=30.0)
    plan = topped_up(plan_for(every, 30.0, batches=3), past)
    return judged_to_the_end(every, plan, grades, seed)


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "continued"])
def test_it_learns_before_its_first_batch_and_pays_for_new_pairs_alone(
    larger: tuple[Pool, Pool, np.ndarray], alone: bool
) -> None:
    drawn = a_top_up(larger, alone=alone)
    state, judged = drawn.sample, drawn.design.past.judged
    assert state.steps[0].model is not None
    assert state.of_batch(0).tolist() == judged.tolist()
    assert drawn.spent == len(state.pair) - len(judged)
    assert abs(drawn.spent - 30.0) < 15.0
    served = drawn.served(larger[1])
    assert set(judged.tolist()) <= set(served.pair[served.batch == 1].tolist())
    assert np.all(served.probability[np.isin(served.pair, judged)] == 1.0)
    again = drawn.redrawn(larger[1], seed="s")
    np.testing.assert_array_equal(again.sample.pair, state.pair)
    np.testing.assert_array_equal(again.sample.chance, state.chance)


@pytest.mark.parametrize("measure", ["DCG@3", "P@2", "AP", "nDCG@5"])
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "continued"])
def test_what_is_stored_gives_the_same_numbers(
    larger: tuple[Pool, Pool, np.ndarray], tmp_path: Path, alone: bool, measure: str
) -> None:
    _, every, grades = larger
    drawn = a_top_up(larger, alone=alone)
    drawn.design.save(tmp_path / "design.npz")
    drawn.sample.save(tmp_path / "sample.npz")
    loaded = load_round(tmp_path / "design.npz", tmp_path / "sample.npz")
    labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
    one, two = (
        evaluate(every, each, labels=labels, measures=[parse_measure(measure)], max_grade=BEST)
        for each in (drawn, loaded)
    )
    np.testing.assert_array_equal(one.results[0].estimate.value, two.results[0].estimate.value)
    np.testing.assert_array_equal(
        one.results[0].estimate.half_width, two.results[0].estimate.half_width
    )
    assert np.all(np.isfinite(one.results[0].estimate.value))


@pytest.mark.slow
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "continued"])
def test_what_it_will_bring_comes_as_foretold(
    larger: tuple[Pool, Pool, np.ndarray], alone: bool
) -> None:
    _, every, grades = larger
    ratios = []
    for seed in range(bounded(6, 20)):
        drawn = a_top_up(larger, alone=alone, seed=f"{seed}")
        results = []
        for batches in (1, 3):
            part = drawn.prefix(every, batches)
            labels = LabelRows(part.sample.pair, grades[part.sample.pair])
            found = evaluate(every, part, labels=labels, measures=[DCG], max_grade=BEST)
            results.append((part, labels, found.results[0]))
        (part, labels, early), (*_, late) = results

        ahead = ahead_of_batches(Scope.of(every), part, 1, early, labels)
        then = next(step for step in ahead.later if step.batches == 3)
        foretold, came = (
            float(np.median(np.sqrt(np.diag(each))))
            for each in (then.covariance, late.estimate.expected)
        )
        ratios.append(foretold / came)
    assert 0.9 < np.median(ratios) < 1.2


def test_where_all_is_judged_nothing_is_left_to_draw(larger: tuple[Pool, Pool, np.ndarray]) -> None:
    every = larger[1]
    past = Past.alone(np.arange(len(every)), pairs=len(every))
    with pytest.raises(DesignError, match="nothing is left"):
        topped_up(plan_for(every, 30.0), past)


def test_judged_pairs_cannot_be_drawn_again(larger: tuple[Pool, Pool, np.ndarray]) -> None:
    every = larger[1]
    plan = plan_for(every, 30.0)
    past = Past.alone(np.flatnonzero(plan.design.eligible)[:2], pairs=len(every))
    with pytest.raises(AdaptiveError, match="judged before cannot be drawn"):
        AdaptivePlan(plan.design, BEST, past=past)
