"""Adaptive rounds of preferences: what is theirs alone, and told again from a file."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.data.scope import Scope
from estimation.core.inference.uncertainty import level
from estimation.core.measures.table import Measure
from estimation.core.rounds.adaptive.by_run import ByRun
from estimation.core.rounds.adaptive.comparing import numbers_of_two
from estimation.core.rounds.adaptive.finds import Finds
from estimation.core.rounds.adaptive.grades import Features
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.evaluation import evaluate
from estimation.research.simulation import true_values
from tests.core.adaptive_by_run import (
    COMPARED,
    EXACT,
    PREFERENCES,
    SWAPS,
    WEIGHTED,
    compared,
    moments,
    off_by,
    plan_for,
    played,
    rounds_of,
    run_totals,
    told,
    truth_of,
    usual_rounds,
)
from tests.core.collecting import publish
from tests.core.test_core_adaptive import _each, begun
from tests.core.test_core_preferences import scored


@pytest.mark.slow
@pytest.mark.parametrize("measure", PREFERENCES, ids=str)
def test_with_topics_together_values_are_unbiased(eager: None, measure: Measure) -> None:
    pool = COMPARED.pool_of()
    plan = plan_for(pool, measure, topic_minimum=1.5)
    mean, covariance, estimated = moments(rounds_of(pool, plan, measure), measure)
    assert mean == pytest.approx(truth_of(pool, measure), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("measure", PREFERENCES, ids=str)
def test_with_one_prediction_for_all_runs_the_squares_would_be_wrong(
    monkeypatch: pytest.MonkeyPatch, eager: None, measure: Measure
) -> None:
    """The twin: what a batch expects of the mean run is taken off the finds of each of them.

    Values would be unbiased if it were put back for the mean run as well; what batches predicted
    is put back as it was for each run, so that it must be taken off so, too.
    """
    right = ByRun._predicted.func

    def of_mean_run(self: ByRun) -> np.ndarray:
        told, weight = right(self), np.diff(self.terms.weights.indptr)
        pair = np.repeat(np.arange(len(weight)), weight)
        return (np.bincount(pair, told, len(weight)) / np.maximum(weight, 1))[pair]

    monkeypatch.setattr(ByRun, "_predicted", property(of_mean_run))
    assert off_by(usual_rounds(measure), measure) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("measure", PREFERENCES, ids=str)
def test_two_people_who_disagree_make_the_variance_larger_by_what_they_cost(
    eager: None, measure: Measure
) -> None:
    """Over all samples and all labels: two labels of a pair, each by the toss of a coin."""
    pool = COMPARED.pool_of()
    plan, scope = plan_for(pool, measure, budget=2, batches=2), Scope.of(pool)
    mean, square, estimated, truth = 0.0, 0.0, 0.0, 0.0
    for given in product([0, 2], repeat=2):
        first, second = COMPARED.grades.copy(), COMPARED.grades.copy()
        first[0], second[0] = given
        truth = truth + sum(
            true_values(pool, grades=each, measure=measure) / 8 for each in (first, second)
        )
        drawn = begun(plan)
        for chance, whole in _judged_twice(pool, drawn, first, second, batches=2):
            pairs = whole.sample.pair
            both = np.sort(np.stack([first[pairs], second[pairs]], axis=1))
            rows = LabelRows(np.repeat(np.arange(len(pairs)), 2), both.ravel())
            found = run_totals(whole, scope, measure, rows).estimate()
            mean = mean + chance / 4 * found.value
            square = square + chance / 4 * np.multiply.outer(found.value, found.value)
            estimated = estimated + chance / 4 * found.covariance
    assert mean == pytest.approx(truth, **EXACT)
    assert estimated == pytest.approx(square - np.multiply.outer(mean, mean), rel=1e-10, abs=1e-12)


def _judged_twice(
    pool: Pool, drawn: AdaptiveRound, first: np.ndarray, second: np.ndarray, *, batches: int
) -> Iterator[tuple[float, AdaptiveRound]]:
    """As `every_round`, with two labels of each pair."""
    if batches == 0:
        yield 1.0, drawn
        return
    pairs = drawn.sample.pair
    rows = LabelRows(np.repeat(pairs, 2), np.stack([first[pairs], second[pairs]], axis=1).ravel())
    for share, longer in _each(drawn, drawn.next_batch(pool, labels=rows)):
        for rest, whole in _judged_twice(pool, longer, first, second, batches=batches - 1):
            yield share * rest, whole


# ------------------------------------------------------------------------------ of usual size


@pytest.fixture(scope="module")
def large() -> tuple[Pool, np.ndarray]:
    return compared()


def test_the_level_is_told_by_the_squares_of_the_goals_runs(large: tuple[Pool, np.ndarray]) -> None:
    pool, drawn, labels = published_of(large)
    rows = LabelRows(np.arange(len(labels.pair)), labels.grade)
    found = run_totals(drawn, Scope.of(pool), SWAPS, rows)
    judged, missed = found.weights.of_judged(found.pairs), found.missed.toarray()[:, :2]
    counted = judged.on_find**2 * (1.0 - judged.chance)
    values = counted * (missed**2).sum(axis=1)
    apart = counted * (missed[:, 0] - missed[:, 1]) ** 2 / 2.0
    each = values.sum() / 8.0
    by_hand = max(level(values, 2.0 * each), level(apart, each))
    of_two = np.arange(len(pool.runs)) < 2
    assert by_hand > 1.0
    assert found.level(each * np.eye(len(pool.runs)), of_two) == pytest.approx(by_hand)
    assert found.level(1000.0 * each * np.eye(len(pool.runs)), of_two) == 1.0


def test_sizes_are_how_far_utilities_of_all_runs_may_be_apart(
    large: tuple[Pool, np.ndarray],
) -> None:
    """By hand, of the goal of all values: not of one utility for all runs."""
    pool, drawn, _ = published_of(large)
    frame, learned = drawn.design.frame(pool), drawn.sample.steps[-1].model
    none = np.zeros(len(pool), dtype=np.bool_)
    reached = learned.reach(frame.features)
    shares = np.stack([1.0 - reached[0], reached[0] - reached[1], reached[1]])
    shares = np.maximum(shares, 1e-4)
    shares /= shares.sum(axis=0)
    added = [
        pool.by_pair(pool.entry_weights(SWAPS) * pool.entry_utilities(SWAPS, grade)).toarray()
        for grade in range(3)
    ]
    mean = sum(share[:, None] * each for share, each in zip(shares, added, strict=True))
    parts = list(zip(shares, added, strict=True))
    variance = sum(share * ((each - mean) ** 2).sum(axis=1) for share, each in parts)
    square = sum(share * (each**2).sum(axis=1) for share, each in parts)
    size = np.sqrt(np.maximum(variance, 0.1 * square))
    floor = drawn.design.design.floor
    expected = (1.0 - floor) * size / size.sum() + floor / len(pool)
    assert frame.sizes(learned, none) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("grade", [0, 1, 2])
def test_where_all_judgments_are_alike_values_are_finite_and_within_their_limits(
    large: tuple[Pool, np.ndarray], grade: int
) -> None:
    pool, grades = large[0], np.full(len(large[0]), grade)
    drawn, labels = played(pool, grades, plan_for(pool, SWAPS, budget=80, batches=4), seed="s")
    found, truth = told(pool, drawn, labels, SWAPS), true_values(pool, grades=grades, measure=SWAPS)
    assert np.all(np.isfinite(found.estimate.covariance))
    assert np.all((found.estimate.low <= truth) & (truth <= found.estimate.high))
    assert np.all((found.estimate.low >= 0.0) & (found.estimate.high <= 1.0))


def test_one_topic_and_runs_that_are_alike(large: tuple[Pool, np.ndarray]) -> None:
    lists = {"1": {f"d{number:02}": float(-number) for number in range(12)}}
    turned = {"1": {docno: -score for docno, score in lists["1"].items()}}
    runs = {"a": scored(lists), "b": scored(turned), "c": scored(lists)}
    pool = COMPARED.pool_of(runs, depth=8, topics=["1"])
    grades = np.random.default_rng(1).choice(3, size=len(pool))
    drawn, labels = played(pool, grades, plan_for(pool, SWAPS, budget=25, batches=3), seed="s")
    found = told(pool, drawn, labels, SWAPS)
    assert found.estimate.value[0] == found.estimate.value[2]
    assert found.ranking.difference[0, 2] == 0.0
    assert not found.ranking.adjusted_p[0, 2] < 0.05


def test_when_all_is_judged_values_are_exact(large: tuple[Pool, np.ndarray]) -> None:
    pool, grades = large
    drawn, labels = played(pool, grades, plan_for(pool, WEIGHTED, budget=len(pool)), seed="s")
    found = told(pool, drawn, labels, WEIGHTED).estimate
    truth = true_values(pool, grades=grades, measure=WEIGHTED)
    assert found.value == pytest.approx(truth, rel=1e-9)
    assert found.high - found.low == pytest.approx(0.0, abs=1e-12)


def test_a_judged_pair_does_not_count_for_itself(large: tuple[Pool, np.ndarray]) -> None:
    """What is told of a pair by the others is the same whatever was said of it."""
    pool, grades = large
    features, pairs = Features.of(pool), np.arange(0, len(pool), 7)
    rows = []
    for grade in (0, 2):
        given = grades[pairs].copy()
        given[3] = grade
        reach = np.stack([given >= 1, given >= 2], axis=1).astype(float)
        rows.append(features.of_finds(Finds.of(pairs, reach))[pairs])
    assert rows[0][3] == pytest.approx(rows[1][3], abs=1e-12)
    assert np.any(rows[0] != rows[1])
    assert np.any(rows[0][:, 0] != 0.0)


def test_which_document_comes_first_says_nothing() -> None:
    """With other names, in the contrary order, features that have a sign are the same turned."""
    names = "abcdefgh"
    lists = {"1": {name: float(score) for score, name in enumerate("cagbdhef")}}
    other = {"1": {name: float(score) for score, name in enumerate("gfabhcde")}}
    turned = dict(zip(names, reversed(names), strict=True))
    runs = [{"r": scored(lists), "s": scored(other)}]
    runs.append(
        {
            tag: scored({"1": {turned[name]: score for name, score in each["1"].items()}})
            for tag, each in (("r", lists), ("s", other))
        }
    )
    pools = [COMPARED.pool_of(each, depth=8, topics=["1"]) for each in runs]
    numbers = [np.stack(numbers_of_two(pool), axis=1) for pool in pools]
    named = [
        {(a.decode(), b.decode()): row for a, b, row in zip(p.docno, p.other, n, strict=True)}
        for p, n in zip(pools, numbers, strict=True)
    ]
    for (first, second), row in named[0].items():
        same = named[1][turned[second], turned[first]]
        assert same == pytest.approx(row * [1.0, -1.0, -1.0])


# ------------------------------------------------------------------------------------- the file


def published_of(large: tuple[Pool, np.ndarray]) -> tuple[Pool, AdaptiveRound, LabelRows]:
    pool, grades = large
    plan = plan_for(pool, SWAPS, budget=120, batches=4, reported=[WEIGHTED])
    return pool, *played(pool, grades, plan, seed="s")


def test_a_published_round_tells_the_same_of_its_runs_and_of_later_ones(
    large: tuple[Pool, np.ndarray],
) -> None:
    pool, drawn, labels = published_of(large)
    found = publish(
        pool, drawn, labels=labels, max_grade=COMPARED.best, version="0.1", measures=PREFERENCES
    )
    before = evaluate(pool, drawn, labels=labels, measures=PREFERENCES, max_grade=1)
    now = found.evaluate(found.pool, measures=PREFERENCES)
    for one, two in zip(before.results, now.results, strict=True):
        assert one.estimate.value.tolist() == two.estimate.value.tolist()
        assert one.estimate.high.tolist() == two.estimate.high.tolist()
    later = {"later": scored({name: {"d00": 2.0, "d01": 1.0} for name in pool.topics})}
    of_later = found.evaluate(later, measures=[SWAPS]).results[0]
    assert of_later.runs == ("later",)
    assert 0.0 <= of_later.support[0] <= 1.0
