"""What every two runs have in common, against the smaller weight of every two, pair by pair."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import sparse

from estimation.core.inference import in_common as module
from estimation.core.inference.in_common import in_common

ROUNDING = 1e-12


def one_by_one(weights: np.ndarray) -> np.ndarray:
    smaller = np.minimum(weights[:, :, None], weights[:, None, :]).sum(axis=0)
    np.fill_diagonal(smaller, 0.0)
    return np.asarray(smaller)


def random_weights(runs: int, pairs: int = 200, seed: int = 1) -> np.ndarray:
    """Pairs that few runs return and pairs that all do; some weights are equal, some tiny."""
    rng = np.random.default_rng(seed)
    there = rng.random((pairs, runs)) < rng.random(pairs)[:, None] ** 2
    weights = np.where(rng.random((pairs, runs)) < 0.3, 0.25, rng.random((pairs, runs)) ** 8)
    return there * weights


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("least_filled", [0.0, 0.3, 2.0])
def test_it_is_the_sum_of_the_smaller_weights(
    runs: int, least_filled: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the work is divided: all runs at once, those that return a pair, in small blocks."""
    monkeypatch.setattr(module, "LEAST_FILLED", least_filled)
    weights = random_weights(runs)
    expected = one_by_one(weights)
    found = in_common(sparse.csr_array(weights))
    assert found == pytest.approx(expected, rel=ROUNDING, abs=ROUNDING)
    assert (found == found.T).all()
    assert not found.diagonal().any()
    monkeypatch.setattr(module, "BLOCK", 1)
    monkeypatch.setattr(module, "_AT_ONCE", 1)
    assert in_common(sparse.csr_array(weights)) == pytest.approx(
        expected, rel=ROUNDING, abs=ROUNDING
    )


def test_nothing_is_in_common_where_there_is_nothing() -> None:
    for pairs in (0, 5):
        assert not in_common(sparse.csr_array((pairs, 3))).any()


def test_runs_that_are_equal_have_all_in_common_to_the_last_bit() -> None:
    weights = np.repeat(random_weights(1), 2, axis=1)
    rows = sparse.csr_array(weights)
    assert in_common(rows)[0, 1] == pytest.approx(weights[:, 0].sum(), rel=1e-15)


def unmasked(rows: sparse.csr_array, pairs: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The twin: what stands behind a pair is taken for part of it."""
    starts, counts = rows.indptr[pairs], np.diff(rows.indptr)[pairs]
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        places = np.arange(start, min(start + count + 1, rows.nnz))[:, None]
        yield rows.indices[places], rows.data[places]


def test_the_twin_that_reads_on_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = random_weights(40)
    monkeypatch.setattr(module, "_of_few_runs", unmasked)
    found = in_common(sparse.csr_array(weights))
    assert found != pytest.approx(one_by_one(weights), rel=1e-3)
