"""Baselines on small pools: every sample, so that expectations are exact; what is refused."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, permutations, product

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.research.baselines.estimates import (
    covariance,
    estimate,
    relevant_estimates,
    topic_estimates,
    values_from_grades,
)
from estimation.research.baselines.select import (
    select,
    select_deep,
    select_top,
    select_uniform,
    smallest_numbers,
    whole_topics,
)
from estimation.research.baselines.selections import BudgetError, Selection
from estimation.research.baselines.stratified import Strata, stratified_selection, stratify, take
from estimation.research.simulation import true_topic_values

EXACT = {"rel": 1e-12, "abs": 1e-12}
LINEAR = [parse_measure("P@2"), parse_measure("DCG@3")]


@pytest.fixture
def small(ranked) -> tuple[Pool, np.ndarray]:
    """Two topics of 4 and 5 pairs, three runs of depth 3, graded."""
    runs = {
        "alpha": ranked({"t1": "abc", "t2": "vwx"}),
        "beta": ranked({"t1": "bda", "t2": "xyz"}),
        "gamma": ranked({"t1": "ca", "t2": "zwv"}),
    }
    return build_pool(["t1", "t2"], runs, depth=3), np.array([1, 0, 2, 1, 0, 1, 2, 0, 1])


Weighted = tuple[float, Selection]


def uniform_selections(pool: Pool) -> Iterator[Weighted]:
    """Two of the four and three of the five pairs."""
    chosen = list(product(combinations(range(4), 2), combinations(range(4, 9), 3)))
    for one, other in chosen:
        numbers = np.ones(9)
        numbers[list(one + other)] = 0.0
        yield (
            1 / len(chosen),
            smallest_numbers(
                pool,
                np.arange(9),
                numbers,
                block=np.arange(2),
                wanted=np.array([2, 3]),
                sizes=np.array([4, 5]),
            ),
        )


def pool_wide_selections(pool: Pool) -> Iterator[Weighted]:
    chosen = list(combinations(range(9), 4))
    for each in chosen:
        numbers = np.ones(9)
        numbers[list(each)] = 0.0
        yield (
            1 / len(chosen),
            smallest_numbers(
                pool,
                np.arange(9),
                numbers,
                block=np.zeros(2, dtype=np.int64),
                wanted=np.array([4]),
                sizes=np.array([9]),
            ),
        )


def outcomes(strata: Strata) -> Iterator[tuple[float, np.ndarray]]:
    """Every sequence of strata with every order of the documents of each stratum."""
    cumulated = np.concatenate([[0.0], np.cumsum(strata.probability)])
    middle = (cumulated[1:] + cumulated[:-1]) / 2
    members = [np.flatnonzero(strata.stratum == h) for h in range(len(strata.probability))]
    orders = list(product(*(permutations(each) for each in members)))
    for sequence in product(range(len(members)), repeat=strata.draws):
        chance = float(np.prod(strata.probability[list(sequence)])) / len(orders)
        for order in orders:
            numbers = np.empty(len(strata.pair))
            numbers[np.concatenate(order)] = np.arange(len(numbers))
            yield chance, take(strata, middle[list(sequence)], numbers)


PRIOR = np.array([0.9, 0.4, 0.9, 0.2, 0.7, 0.1, 0.3, 0.8, 0.5])
TOPIC_STRATA = [(0, np.arange(4), 3), (1, np.arange(4, 9), 2)]  # sizes 3, 1 and 2, 2, 1


def strata_of_topics() -> list[tuple[int, Strata]]:
    return [
        (topic, stratify(pairs, PRIOR[pairs], draws=draws)) for topic, pairs, draws in TOPIC_STRATA
    ]


def merged(samples: Iterable[tuple[float, np.ndarray]]) -> dict[tuple[int, ...], float]:
    chances: dict[tuple[int, ...], float] = {}
    for chance, taken in samples:
        chances[tuple(taken)] = chances.get(tuple(taken), 0.0) + chance
    return chances


def stratified_selections(pool: Pool) -> Iterator[Weighted]:
    (one, first), (other, second) = strata_of_topics()
    for (a, p), (b, q) in product(
        merged(outcomes(first)).items(), merged(outcomes(second)).items()
    ):
        drawn = [(one, first, np.array(a)), (other, second, np.array(b))]
        yield p * q, stratified_selection(pool, drawn)


def deep_selections(pool: Pool) -> Iterator[Weighted]:
    chosen = list(combinations(range(len(pool.topics)), 2))
    for each in chosen:
        numbers = np.ones(len(pool.topics))
        numbers[list(each)] = 0.0
        yield 1 / len(chosen), whole_topics(pool, numbers, many=2)


SAMPLING = {
    "uniform": uniform_selections,
    "pool-wide": pool_wide_selections,
    "stratified": stratified_selections,
}


def mean_of(weighted: Iterable[Weighted], value: Callable[[Selection], np.ndarray]) -> np.ndarray:
    return sum(chance * value(selection) for chance, selection in weighted)


def covariances(pool, grades, measure, weighted) -> tuple[np.ndarray, np.ndarray]:
    """The true covariance of the estimates, and the mean of the estimated one."""
    weighted = list(weighted)
    truth = values_from_grades(pool, grades=grades, measure=measure).mean(axis=0)

    def square(selection: Selection) -> np.ndarray:
        error = estimate(pool, selection, grades=grades, measure=measure) - truth
        return np.multiply.outer(error, error)

    def estimated(selection: Selection) -> np.ndarray:
        return covariance(pool, selection, grades=grades, measure=measure)

    return mean_of(weighted, square), mean_of(weighted, estimated)


@pytest.mark.slow
@pytest.mark.parametrize("measure", LINEAR, ids=str)
@pytest.mark.parametrize("name", SAMPLING)
def test_sampling_is_unbiased_for_linear_measures(small, name: str, measure) -> None:
    pool, grades = small
    truth = values_from_grades(pool, grades=grades, measure=measure)
    weighted = list(SAMPLING[name](pool))
    assert sum(chance for chance, _ in weighted) == pytest.approx(1.0, **EXACT)

    def value(selection: Selection) -> np.ndarray:
        return topic_estimates(pool, selection, grades=grades, measure=measure)

    assert mean_of(weighted, value) == pytest.approx(truth, **EXACT)
    true, estimated = covariances(pool, grades, measure, weighted)
    assert true.max() > 0.01
    assert estimated == pytest.approx(true, **EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLING)
def test_numerator_of_average_precision_and_r_are_unbiased(small, name: str) -> None:
    pool, grades = small
    known = (grades >= 1).astype(np.int64)
    relevant = np.bincount(pool.topic, weights=known)
    truth = values_from_grades(pool, grades=grades, measure="AP") * relevant[:, None]

    def numerator(selection: Selection) -> np.ndarray:
        found = relevant_estimates(pool, selection, grades=grades)
        return topic_estimates(pool, selection, grades=grades, measure="AP") * found[:, None]

    def as_if_independent(selection: Selection) -> np.ndarray:
        joint = tuple(np.full_like(each, selection.inclusion[0] ** 2) for each in selection.joint)
        return numerator(dataclasses.replace(selection, joint=joint))

    weighted = list(SAMPLING[name](pool))
    counted = mean_of(weighted, lambda s: relevant_estimates(pool, s, grades=grades))
    assert counted == pytest.approx(relevant, **EXACT)
    assert mean_of(weighted, numerator) == pytest.approx(truth, **EXACT)
    assert mean_of(weighted, as_if_independent) != pytest.approx(truth, rel=1e-3)


def test_ratios_are_relevant_from_the_grade_that_the_measure_names(small) -> None:
    pool, grades = small
    high = (grades >= 2).astype(np.int64)
    assert 0 < high.sum() < np.count_nonzero(grades)
    for _, selection in SAMPLING["uniform"](pool):
        for name in ("AP", "AP@2", "Rprec"):
            asked = name.replace("AP", "AP(rel=2)").replace("Rprec", "Rprec(rel=2)")
            found = topic_estimates(pool, selection, grades=grades, measure=asked)
            expected = topic_estimates(pool, selection, grades=high, measure=name)
            assert found == pytest.approx(expected, **EXACT)
        with pytest.raises(MeasureError, match="nDCG@2 is not estimated from a sample"):
            topic_estimates(pool, selection, grades=grades, measure="nDCG@2")
        with pytest.raises(MeasureError, match="AP has no covariance"):
            covariance(pool, selection, grades=grades, measure="AP")


def test_what_is_certain_is_the_measure_with_unjudged_pairs_at_grade_0(small) -> None:
    pool, grades = small
    pairs = np.arange(1, len(pool), 2)
    known = np.zeros(len(pool), dtype=np.int64)
    known[pairs] = grades[pairs]
    selection = Selection.certain(pool, "known", pairs)
    for name in ("AP", "Rprec", "nDCG", "nDCG(dcg='exp-log2')@2", "P(rel=2)@2"):
        found = topic_estimates(pool, selection, grades=grades, measure=name)
        truth = true_topic_values(pool, grades=known, measure=parse_measure(name))
        assert np.array_equal(found, truth)
        whole = values_from_grades(pool, grades=grades, measure=name)
        assert not np.array_equal(found, whole)


@pytest.mark.parametrize("topic", [0, 1])
def test_inclusion_probabilities_of_strata(topic: int) -> None:
    strata = strata_of_topics()[topic][1]
    number = len(strata.pair)
    both = np.zeros((number, number))
    for chance, taken in outcomes(strata):
        both[np.ix_(taken, taken)] += chance
    inclusion = strata.inclusion()[strata.stratum]
    joint = strata.joint()[np.ix_(strata.stratum, strata.stratum)]
    np.fill_diagonal(joint, inclusion)
    assert both == pytest.approx(joint, **EXACT)
    full = strata.sizes == strata.draws
    assert strata.inclusion()[full] == pytest.approx(strata.probability[full], **EXACT)
    # What a full stratum would have is not right for a short one.
    proportional = strata.draws * strata.probability / strata.sizes
    assert proportional[-1] > strata.inclusion()[-1] * 1.01
    some = np.array([0, len(strata.sizes) - 1])
    assert strata.joint(some) == pytest.approx(strata.joint()[np.ix_(some, some)], **EXACT)


def test_deep_is_unbiased_with_its_covariance(ranked) -> None:
    runs = {
        "alpha": ranked({"t1": "abc", "t2": "vwx", "t3": "lmn"}),
        "beta": ranked({"t1": "bda", "t2": "xyz"}),
        "gamma": ranked({"t1": "ca", "t2": "zwv", "t3": "mnl"}),
    }
    pool = build_pool(["t1", "t2", "t3"], runs, depth=3)
    grades = np.array([1, 0, 2, 1, 0, 1, 2, 0, 1, 0, 1, 1])
    for measure in (*LINEAR, "AP"):
        truth = values_from_grades(pool, grades=grades, measure=measure).mean(axis=0)

        def value(selection: Selection, measure=measure) -> np.ndarray:
            return estimate(pool, selection, grades=grades, measure=measure)

        def over_all_topics(selection: Selection, value=value) -> np.ndarray:
            return value(dataclasses.replace(selection, topics=np.arange(3)))

        assert mean_of(deep_selections(pool), value) == pytest.approx(truth, **EXACT)
        assert mean_of(deep_selections(pool), over_all_topics) != pytest.approx(truth, rel=0.1)
        true, estimated = covariances(pool, grades, measure, deep_selections(pool))
        assert estimated == pytest.approx(true, **EXACT)
        assert 1.5 * estimated != pytest.approx(true, rel=0.1)


def test_variance_is_too_large_with_one_draw_per_topic(small) -> None:
    pool, grades = small

    def one_each() -> Iterator[Weighted]:
        for pair, other in product(range(4), range(4, 9)):
            numbers = np.ones(9)
            numbers[[pair, other]] = 0.0
            sizes, wanted = np.array([4, 5]), np.array([1, 1])
            yield (
                1 / 20,
                smallest_numbers(
                    pool, np.arange(9), numbers, block=np.arange(2), wanted=wanted, sizes=sizes
                ),
            )

    true, estimated = covariances(pool, grades, LINEAR[1], one_each())
    assert np.all(np.diag(estimated) >= np.diag(true))


# ---------------------------------------------------------------------- top, and errors


def test_top_goes_down_by_best_rank(small) -> None:
    pool, _ = small
    names = [docno.decode() for docno in pool.docno[select_top(pool, budget=8).pair]]
    assert names == ["a", "b", "c", "d", "v", "w", "x", "z"]
    # Depth 1 is a, b, c, v, x, z; of depth 2 (d, w, y) the first in canonical order.
    names = [docno.decode() for docno in pool.docno[select_top(pool, budget=7).pair]]
    assert names == ["a", "b", "c", "d", "v", "x", "z"]


def test_what_cannot_be_done_is_refused(small) -> None:
    pool, grades = small
    with pytest.raises(ValueError, match="one of uniform, top, deep, mtf, mab, stratified"):
        select(pool, "best", grades=grades, budget=2, seed="s")
    with pytest.raises(ValueError, match="one grade per pair"):
        select(pool, "top", grades=grades[1:], budget=2, seed="s")
    for budget in (0, -1, 10, True, 2.5):
        with pytest.raises(BudgetError, match="budget"):
            select(pool, "mtf", grades=grades, budget=budget, seed="s")
    with pytest.raises(BudgetError, match="'t1' must lie between 0 and its 4 pairs, not 5"):
        select(pool, "mtf", grades=grades, budget=np.array([5, 1]), seed="s")
    with pytest.raises(BudgetError, match="one per topic"):
        select(pool, "mtf", grades=grades, budget=np.array([1, 1, 1]), seed="s")
    for name in ("uniform", "stratified"):
        with pytest.raises(BudgetError, match="no pair for topic 't2'"):
            select(pool, name, grades=grades, budget=np.array([1, 0]), seed="s")
    with pytest.raises(BudgetError, match="one whole number"):
        select(pool, "deep", grades=grades, budget=np.array([1, 1]), seed="s")
    with pytest.raises(ValueError, match="at least one run"):
        select_top(pool, budget=1, runs=[])
    with pytest.raises(ValueError, match="no run 'delta'"):
        select_top(pool, budget=1, runs=["delta"])


def test_what_cannot_be_estimated_is_refused(small, tiny_pool) -> None:
    pool, grades = small
    sampled = select_uniform(pool, budget=4, seed="s")
    for measure in ("nDCG", "nDCG@2", "nonsense"):
        with pytest.raises(MeasureError):
            estimate(pool, sampled, grades=grades, measure=measure)
    with pytest.raises(MeasureError):
        covariance(pool, sampled, grades=grades, measure="AP")
    with pytest.raises(ValueError, match="another pool"):
        estimate(tiny_pool, sampled, grades=grades, measure="AP")
    with pytest.raises(ValueError, match="one grade per pair"):
        estimate(pool, sampled, grades=grades[1:], measure="AP")
    one = select_deep(pool, budget=4, seed="s")
    assert len(one.topics) == 1
    assert np.isinf(covariance(pool, one, grades=grades, measure="AP")).all()
