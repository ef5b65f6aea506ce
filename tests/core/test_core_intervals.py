"""Intervals, Holm's procedure and rank limits on cases small enough for a pencil."""

import math

import numpy as np
import pytest
from scipy import stats

from estimation.core.inference.intervals import (
    degrees_of_freedom,
    difference_variances,
    student_intervals,
    student_quantile,
    zero_limit,
)
from estimation.core.inference.multiplicity import holm
from estimation.core.inference.ranks import rank_runs


def test_student_interval_by_the_table() -> None:
    found = student_intervals(
        np.array([5.0, 5.0]), variance=np.array([4.0, -1e-9]), df=np.array([10.0, 10.0])
    )
    assert found.low == pytest.approx([5 - 2 * 2.228139, 5], abs=1e-5)
    assert found.high == pytest.approx([5 + 2 * 2.228139, 5], abs=1e-5)
    assert found.se.tolist() == [2.0, 0.0]


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999, 1.0 - 1e-7])
def test_quantiles_are_those_of_the_distribution(confidence: float) -> None:
    """They are taken from a series, but for the few that are too far from it."""
    freedom = np.concatenate([[1.0, 3.9, np.inf, 1e12], np.geomspace(1.0, 1e5, 396)])
    found = student_quantile(freedom, confidence=confidence)
    assert found == pytest.approx(stats.t.ppf(0.5 + confidence / 2.0, freedom), rel=1e-13)
    square = student_quantile(freedom.reshape(20, 20), confidence=confidence)
    assert square.ravel().tolist() == found.tolist()
    alone = [student_quantile(each, confidence=confidence) for each in freedom[:50]]
    assert np.array(alone).tolist() == found[:50].tolist()


def test_intervals_refuse_numbers_out_of_range() -> None:
    one = np.array([1.0])
    with pytest.raises(ValueError, match="at least 1"):
        student_intervals(one, variance=one, df=np.array([0.5]))
    for confidence in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match="strictly between"):
            student_intervals(one, variance=one, df=one, confidence=confidence)


def test_student_intervals_of_a_normal_sample_cover_and_normal_ones_do_not() -> None:
    samples = np.random.default_rng(1).normal(size=(20_000, 5))
    mean, variance = samples.mean(axis=1), samples.var(axis=1, ddof=1) / 5
    found = student_intervals(mean, variance=variance, df=np.full(20_000, 4.0))
    assert ((found.low <= 0) & (found.high >= 0)).mean() == pytest.approx(0.95, abs=0.005)
    normal = np.abs(mean) <= 1.96 * np.sqrt(variance)
    assert normal.mean() < 0.9


def test_degrees_of_freedom_follow_the_contributions() -> None:
    contributions = np.array([0.0, 1.0, 11.0, 300.0])
    assert degrees_of_freedom(contributions).tolist() == [1.0, 1.0, 10.0, 299.0]
    assert degrees_of_freedom(contributions, draws=100).tolist() == [1.0, 1.0, 10.0, 99.0]


def test_difference_variances_by_hand_and_above_rounding() -> None:
    covariance = np.array([[4.0, 1.0, 4.0], [1.0, 9.0, 1.0], [4.0, 1.0, 4.0]])
    found = difference_variances(covariance)
    assert found[0, 1] == 11.0
    assert 0.0 < found[0, 2] < 1e-11
    assert np.diag(found).tolist() == [0.0] * 3


@pytest.mark.parametrize("seed", range(5))
def test_zero_limit_holds_for_the_most_hidden_utilities(seed: int) -> None:
    """A run whose value exceeds the limit shows only zeros with probability below alpha / 2."""
    rng = np.random.default_rng(seed)
    weights, chances = rng.uniform(0.1, 1.0, 6), rng.uniform(0.05, 0.5, 6)
    limit = zero_limit(np.array([(weights / chances).max()]), max_utility=3.0)[0]
    for utility in 3.0 * (rng.random((500, 6)) < 0.7):
        all_zero = np.prod(np.where(utility > 0, 1 - chances, 1.0))
        if weights @ utility > limit:
            assert all_zero <= 0.025
    assert limit == pytest.approx(3.0 * math.log(40) * (weights / chances).max())


def symmetric(upper: list[float], k: int) -> np.ndarray:
    matrix = np.ones((k, k))
    rows, columns = np.triu_indices(k, 1)
    matrix[rows, columns] = matrix[columns, rows] = upper
    return matrix


def test_holm_by_hand() -> None:
    p_values = symmetric([0.01, 0.04, 0.03], 3)
    assert holm(p_values) == pytest.approx(symmetric([0.03, 0.06, 0.06], 3))
    assert holm(symmetric([0.5, 0.9, 0.7], 3)) == pytest.approx(np.ones((3, 3)))


def test_holm_of_one_run_and_of_two() -> None:
    assert holm(np.ones((1, 1))).tolist() == [[1.0]]
    assert holm(symmetric([0.02], 2)) == pytest.approx(symmetric([0.02], 2))


def ranking_of(values: list[float], *, variance: float = 1.0, covariance: float = 0.0, **options):
    k = len(values)
    matrix = np.full((k, k), covariance) + (variance - covariance) * np.eye(k)
    tags = options.pop("tags", tuple("abcdefgh"[:k]))
    df = np.full((k, k), 1e6)
    return rank_runs(np.array(values), covariance=matrix, df=df, tags=tags, **options)


def test_three_clear_groups() -> None:
    found = ranking_of([0.0, 20.0, 10.0, 10.1])
    assert found.order.tolist() == [1, 3, 2, 0]
    assert found.rank.tolist() == [4, 1, 3, 2]
    assert found.rank_low.tolist() == [4, 1, 2, 2]
    assert found.rank_high.tolist() == [4, 1, 3, 3]
    assert found.verdicts.tolist() == [[0, -1, -1, -1], [1, 0, 1, 1], [1, -1, 0, 0], [1, -1, 0, 0]]
    assert found.difference[1, 0] == 20.0


def test_the_verdict_is_for_all_differences_and_not_for_a_single_one() -> None:
    step = 2.2 * math.sqrt(2)  # z = 2.2 alone: p = 0.028
    assert ranking_of([0.0, step]).verdicts[1, 0] == 1
    three = ranking_of([0.0, step, step / 2])
    assert three.verdicts.tolist() == np.zeros((3, 3)).tolist()
    assert three.rank_low.tolist() == [1, 1, 1]
    assert three.rank_high.tolist() == [3, 3, 3]
    assert 0.05 < three.adjusted_p[0, 1] < 3 * 2 * stats.norm.sf(2.2)  # Holm's


def test_shared_noise_makes_small_differences_certain() -> None:
    assert ranking_of([0.0, 1.0], covariance=0.99).verdicts[1, 0] == 1
    assert ranking_of([0.0, 1.0], covariance=0.0).verdicts[1, 0] == 0


def test_margin_is_the_half_width_of_a_difference() -> None:
    found = ranking_of([0.0, 1.0], covariance=0.5)
    assert found.margin[0, 1] == pytest.approx(1.959964, abs=1e-4)
    assert found.difference_se[0, 1] == pytest.approx(1.0)


def test_equal_values_are_ordered_by_tag_and_never_decided() -> None:
    found = ranking_of([1.0, 1.0, 1.0], variance=0.0, tags=("c", "a", "b"))
    assert found.order.tolist() == [1, 2, 0]
    assert not found.verdicts.any()


def test_exact_values_decide_but_rounding_does_not() -> None:
    found = ranking_of([1.0, 2.0, 2.0 + 1e-15], variance=0.0)
    assert found.verdicts.tolist() == [[0, -1, -1], [1, 0, 0], [1, 0, 0]]
    twins = ranking_of([3.0, 3.0 + 1e-14], variance=4.0, covariance=4.0)
    assert not twins.verdicts.any()


def test_one_run_has_rank_one() -> None:
    found = ranking_of([2.0])
    assert (found.rank_low[0], found.rank_high[0]) == (1, 1)


def test_ranks_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="those of the runs"):
        ranking_of([1.0, 2.0], tags=("a",))
    with pytest.raises(ValueError, match="finite"):
        ranking_of([1.0, float("nan")])


def false_verdicts(alpha_spent: bool) -> float:
    """Share of simulated rankings of 6 equal runs with any false verdict."""
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(2000):
        values = rng.normal(size=6)
        if alpha_spent:
            wrong += bool(ranking_of(values.tolist()).verdicts.any())
        else:
            z = np.abs(np.subtract.outer(values, values)) / math.sqrt(2)
            wrong += bool((z > 1.96).any())
    return wrong / 2000


@pytest.mark.slow
def test_family_wise_error_is_below_five_percent_and_single_tests_are_not() -> None:
    assert 0.035 < false_verdicts(alpha_spent=True) < 0.06  # 0.05, 2000 rankings, 2 se
    assert false_verdicts(alpha_spent=False) > 0.3
