"""What no estimator can do: tell a ratio from part of a pool without a bias."""

from collections.abc import Callable
from itertools import combinations, product

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.measures.table import parse_measure
from estimation.research.simulation import true_values

PAIRS = 5
LABELS = list(product((0, 1), repeat=PAIRS))


@pytest.fixture
def pool(ranked: Callable) -> Pool:
    """Five pairs of one topic, of which each run returns two."""
    lists = {"a": "uv", "b": "wx", "c": "yu"}
    return build_pool(["1"], {tag: ranked({"1": each}) for tag, each in lists.items()}, depth=2)


def least_bias(true: np.ndarray, most: int) -> float:
    """How far off the best estimator from at most so many pairs is on average, for some labels.

    What an estimator is on average is, over samples and the labels found there, a sum of any
    numbers: what it tells times the chance of the sample. Least squares over all of them are off by
    nothing if one of them is right for all labels.
    """
    told = np.array([
        [all(given[pair] == label for pair, label in found) for given in LABELS]
        for number in range(most + 1)
        for pairs in combinations(range(PAIRS), number)
        for labels in product((0, 1), repeat=number)
        for found in [list(zip(pairs, labels, strict=True))]
    ], dtype=np.float64).T  # fmt: skip
    best, *_ = np.linalg.lstsq(told, true)
    return float(np.abs(told @ best - true).max())


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_no_estimate_of_a_ratio_from_part_of_a_pool_is_unbiased(pool: Pool, most: int) -> None:
    """The twin is P, of which each label tells a part by itself."""
    assert len(pool) == PAIRS
    of_run = {}
    for name in ("AP", "Rprec", "nDCG@2", "P@2"):
        measure = parse_measure(name)
        of_run[name] = np.array([
            true_values(pool, grades=np.array(labels), measure=measure)[0] for labels in LABELS
        ])  # fmt: skip
    assert least_bias(of_run.pop("P@2"), most) < 1e-12
    for name, true in of_run.items():
        assert least_bias(true, most) > 0.002, name
        assert least_bias(true, PAIRS) < 1e-12, name
