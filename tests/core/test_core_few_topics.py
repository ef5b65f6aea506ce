"""What all runs and their lists let one expect of values on topics (`topics.alike`)."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.inference.intervals import difference_variances
from estimation.core.inference.uncertainty import (
    WORTH,
    Pooled,
    variances,
    variances_of_differences,
)
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.topics.alike import Alike, JudgedGains, distances, least_spread
from tests.core.simulated_pools import simulated_pool

POOL, GRADES = simulated_pool()
EVERY = np.arange(len(POOL.runs))
FACTOR = np.random.default_rng(3).random(len(POOL.topics))
GAINS = JudgedGains(0.2, 0.1)


def apart(text: str, columns: np.ndarray = EVERY, judged: np.ndarray | None = None) -> np.ndarray:
    return distances(
        POOL,
        columns,
        measure=parse_measure(text),
        judged=np.ones(len(POOL), dtype=bool) if judged is None else judged,
        factor=FACTOR,
        gains=GAINS,
    )


@pytest.mark.parametrize("text", ["P@10", "DCG@20", "ERR@10", "AP", "nDCG@10"])
def test_distances_are_those_of_lists(text: str) -> None:
    """By hand, one pair of runs after the other; a pair that is not judged is in no list."""
    ranks = np.arange(1, 31)
    by_rank = {
        "P@10": (ranks <= 10) / 10.0,
        "DCG@20": (ranks <= 20) / np.log2(ranks + 1.0),
        # d/dg_r of sum_r g/r (1 - g)^(r - 1) with all g = .2
        "ERR@10": [
            0.8 ** (r - 1) * (1 / r - sum(0.2 / s * 0.8 ** (s - r - 1) for s in range(r + 1, 11)))
            if r <= 10
            else 0.0
            for r in range(1, 31)
        ],
        "AP": 1.0 / ranks,
        "nDCG@10": (ranks <= 10) / ranks,
    }[text]
    judged = np.random.default_rng(4).random(len(POOL)) < 0.7
    weight = np.zeros((len(POOL), len(POOL.runs)))
    weight[POOL.entry_pair, POOL.run] = np.asarray(by_rank)[POOL.rank - 1]
    weight[~judged] = 0.0
    wanted = np.einsum("i,ij,il->jl", FACTOR[POOL.topic], weight, weight)
    assert apart(text, judged=judged) == pytest.approx(wanted, rel=1e-12)


def test_the_numbers_of_two_runs_do_not_depend_on_others() -> None:
    some = np.array([4, 1])
    assert apart("P@10", some).tolist() == apart("P@10")[np.ix_(some, some)].tolist()


def test_all_runs_together_have_the_squares_that_were_found() -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(3, len(EVERY))) + rng.normal(size=(3, 1))
    covariance, lists = rows.T @ rows, apart("P@10")
    alike = Alike.of(covariance, lists, 0.0)
    expected = alike.pooled(lists, 2.0).covariance
    assert difference_variances(expected).sum() == pytest.approx(
        difference_variances(covariance).sum()
    )
    assert np.trace(expected) == pytest.approx(np.trace(covariance))
    ratio = difference_variances(expected) / (difference_variances(lists) + np.eye(len(EVERY)))
    assert ratio[~np.eye(len(EVERY), dtype=bool)] == pytest.approx(alike.spread)
    assert 1.0 < alike.ways < len(EVERY) - 1.0


def test_two_topics_that_agree_are_no_certainty() -> None:
    """Without any squares there is the least spread; with them as little as there is."""
    lists = apart("P@10")
    nothing = np.zeros_like(lists)
    least = least_spread(parse_measure("P@10"), GAINS)
    assert Alike.of(nothing, lists, least).spread == least == 0.05
    assert least_spread(parse_measure("AP"), GAINS) == 0.0
    assert Alike.of(lists, lists, least).spread == pytest.approx(1.0)
    one = Alike.of(np.array([[2.0]]), np.array([[3.0]]), 0.0)
    assert (one.level, one.spread, one.ways) == (2.0, 0.0, 1.0)
    two = Alike.of(np.array([[2.0, 1.0], [1.0, 2.0]]), np.eye(2), 0.0)
    assert (two.level, two.spread, two.ways) == (1.0, 1.0, 1.0)


def test_what_is_expected_counts_for_less_the_more_topics_there_are() -> None:
    squares, expected = np.diag([4.0, 9.0]), np.diag([1.0, 1.0])
    for freedom in (1.0, 10.0, 1e9):
        share = WORTH / (WORTH + freedom)
        found = variances(squares, expected, freedom=freedom)
        assert found == pytest.approx(share + (1 - share) * np.array([4.0, 9.0]))
        between = variances_of_differences(squares, expected, freedom=freedom)[0, 1]
        assert between == pytest.approx(share * 2.0 + (1 - share) * 13.0)


def test_degrees_of_freedom_are_those_that_other_runs_tell() -> None:
    alone, many = (Pooled(np.eye(2), 3.0, ways, np.eye(2)) for ways in (1.0, 1e9))
    finds = np.array([[2.0, 1.5], [1.5, 3.0]])
    assert alone.freedom_of_differences(finds).tolist() == finds.tolist()
    assert many.freedom_of_differences(finds) == pytest.approx(finds + WORTH, abs=1e-6)
    own = np.array([2.0, 3.0])
    assert alone.freedom_of_values(own)[1] == pytest.approx(3.0)
    assert alone.freedom_of_values(own)[0] == pytest.approx(3.0 * (WORTH + 2.0) / (WORTH + 3.0))
    assert many.freedom_of_values(own) == pytest.approx(alone.freedom_of_values(own) + 1.0)


def test_gains_are_those_of_judgments_of_some_pairs_in_any_order() -> None:
    some = POOL.topic < 3
    pairs = np.flatnonzero(some)
    labels = LabelRows(np.arange(len(POOL)), GRADES)
    found = JudgedGains.of(labels, some, parse_measure("P@10"), 3)
    relevant = GRADES[pairs] > 0
    assert found.mean == pytest.approx(relevant.mean())
    assert found.variance == pytest.approx(relevant.var())
    turned = LabelRows(labels.pair[::-1], labels.grade[::-1])
    assert JudgedGains.of(turned, some, parse_measure("P@10"), 3) == found
