"""What later batches leave of variances, and who wins: fast ways say what plain ones say."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from estimation.core.arrays import FloatArray
from estimation.core.estimates import products
from estimation.core.estimates.held_products import Couples
from estimation.core.inference.intervals import difference_variances
from estimation.core.inference.looked_at import Rows
from estimation.core.planning import fading
from estimation.core.planning.contenders import Contenders
from estimation.core.planning.fading import fading_covariances
from tests.core.simulated_pools import simulated_pool

POOL = simulated_pool()[0]
CONSTANTS = np.array([0.5, 2.0, 7.0, 40.0, np.inf])


def some_rows(runs: int, pairs: int = 3000, *, kept: bool) -> tuple[Rows, FloatArray, FloatArray]:
    """Rows of few and of many runs, expected squares and sizes; some stand for none or several."""
    rng = np.random.default_rng([runs, pairs])
    number = np.where(rng.random(pairs) < 0.3, rng.integers(1, runs + 1, pairs), 1 + pairs % 2)
    number = -np.sort(-number)
    returned = np.argsort(rng.random((pairs, runs)), axis=1)[:, :runs]
    dense = np.zeros((pairs, runs))
    for row, many in enumerate(number.tolist()):
        dense[row, returned[row, :many]] = rng.exponential(size=many)
    if not kept:
        dense = rng.permutation(dense)
    matrix = sparse.csr_array(dense)
    weight = rng.choice([0.0, 1.0, 2.5], pairs)
    couples = Couples.of(matrix, int(np.count_nonzero(number > 21))) if kept else None
    entry = np.arange(matrix.nnz)
    rows = Rows(POOL, np.arange(pairs), weight, entry, matrix, np.ones(pairs), couples)
    size = rng.exponential(size=pairs)
    size[rng.random(pairs) < 0.1] = 1.0 / 7.0  # certain at one of the constants, to the last bit
    return rows, rng.random(pairs), size


def plainly(rows: Rows, squares: FloatArray, size: FloatArray) -> FloatArray:
    """Each constant by itself, as a Poisson sample with it would miss the pairs."""
    found = []
    for constant in CONSTANTS.tolist():
        chance = np.minimum(1.0, constant * size)
        found.append(replace(rows, factor=rows.weight * (1.0 - chance) / chance).gram(squares))
    return np.stack(found)


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "not kept"])
@pytest.mark.parametrize("runs", [1, 5, 60])
def test_covariances_are_those_of_each_constant_by_itself(runs: int, kept: bool) -> None:
    rows, squares, size = some_rows(runs, kept=kept)
    coupled = rows.coupled()
    order = coupled.pair
    assert (rows.matrix.data[coupled.entry] == coupled.matrix.data).all()
    expected = plainly(rows, squares, size)
    found = fading_covariances(coupled, squares[order], size[order], CONSTANTS)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12 * expected.max())
    for plain, fast in zip(expected, found, strict=True):
        wanted = pytest.approx(difference_variances(plain), rel=1e-9, abs=1e-12 * plain.max())
        assert difference_variances(fast) == wanted
    assert not found[-1].any(), "with everything judged nothing is left"


@pytest.mark.slow
@pytest.mark.parametrize("runs", [5, 60])
def test_rough_products_have_half_the_digits(runs: int) -> None:
    rows, squares, _ = some_rows(runs, kept=False)
    scales = np.stack([squares, squares / 3.0])
    exact = products.cross_products(rows.matrix, scales)
    rough = products.cross_products(rows.matrix, scales, roughly=True)
    assert rough == pytest.approx(exact, rel=1e-5, abs=1e-6 * exact.max())
    assert rough.dtype == np.float64
    assert np.array_equal(rough, rough.transpose(0, 2, 1))


def test_a_twin_in_which_groups_do_not_rise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_alone(rows: sparse.csr_array, scales: FloatArray) -> FloatArray:
        found = products.cross_products(rows, scales)
        found[1:] = 0.0
        return found

    asked = some_rows(60, kept=True)
    monkeypatch.setattr(fading, "cross_products", first_alone)
    found = fading_covariances(*asked, CONSTANTS)
    assert np.abs(found - plainly(*asked)).max() > 0.01 * found.max()


def every_run_against_every_other(of: Contenders, played: FloatArray, needed: FloatArray) -> object:
    runs = len(of.runs)
    ahead = played[:, :, None] - played[:, None, :] > needed
    ahead[:, of._known] = (np.subtract.outer(of.value, of.value) > 0.0)[of._known]
    ahead[:, np.arange(runs), np.arange(runs)] = True
    return np.any(np.all(ahead, axis=2), axis=1).tolist()


@pytest.mark.parametrize("known", ["nothing", "ahead", "tied", "everything"])
def test_games_are_won_as_when_every_run_is_compared_with_every_other(known: str) -> None:
    rng, runs = np.random.default_rng(3), 8
    value, error = rng.normal(size=runs), 0.7 * rng.normal(size=(runs, runs))
    if known in ("ahead", "tied"):  # the first two runs err alike: their difference is known
        error[1] = error[0]
    if known == "tied":
        value[1] = value[0]
    covariance = np.ones((runs, runs)) if known == "everything" else error @ error.T
    of = Contenders.of(value, covariance)
    assert of._known.any() == (known != "nothing")
    played = of.value + rng.normal(size=(4000, runs))
    needed = np.sqrt(rng.random((runs, runs)))
    needed = np.minimum(needed, needed.T)
    won = of._won(played, needed).tolist()
    assert won == every_run_against_every_other(of, played, needed)
    assert known in ("tied", "everything") or 0 < sum(won) < len(won)
