"""Products of runs by tiles: equal to the plain formulas, and the same bits in any thread."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from estimation.core.data.labels import PairLabels
from estimation.core.estimates import every_two, held_products, products, tiles
from estimation.core.estimates.estimators import (
    contributions_and_products,
    finds_of,
    finds_up_to,
    horvitz_thompson_poisson,
    importance_sampling,
)
from estimation.core.estimates.rows import many_first as many_runs_first
from estimation.core.estimates.rows import taken

SHAPES = [(1, 1), (95, 47), (96, 48), (97, 49), (961, 5), (2000, 130)]


def rows_of(pairs: int, runs: int, filled: float, seed: int = 1) -> sparse.csr_array:
    rng = np.random.default_rng([seed, pairs, runs])
    return sparse.csr_array(rng.random((pairs, runs)) * (rng.random((pairs, runs)) < filled))


def judged_once(mean: np.ndarray) -> PairLabels:
    return PairLabels(mean, np.ones(len(mean), dtype=np.int64), np.zeros(len(mean)), False)


def close(expected: np.ndarray) -> object:
    return pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("filled", [0.02, 0.7])
def test_sums_are_those_of_the_plain_formulas(shape: tuple[int, int], filled: float) -> None:
    rows = rows_of(*shape, filled)
    a, factors = rows.toarray(), np.random.default_rng(2).random(shape[0])
    columns = np.random.default_rng(3).random((shape[0], 50))
    sums = products.power_sums(rows)
    weighted = products.weighted_sums(rows, factors=factors, columns=columns)
    assert products.gram(rows) == close(a.T @ a)
    assert sums.squares == close(a.T @ a)
    assert sums.fourths == close((a**2).T @ a**2)
    assert sums.thirds == close((a**3).T @ a)
    assert weighted.products == close((a * factors[:, None]).T @ a)
    assert weighted.columns == close(a.T @ columns)


@pytest.mark.parametrize("filled", [0.02, 0.7])
def test_squares_are_symmetric_and_equal_runs_have_equal_sums(filled: float) -> None:
    dense = rows_of(1500, 100, filled).toarray()
    dense[:, 77] = dense[:, 3]
    rows, factors = sparse.csr_array(dense), np.random.default_rng(2).random(1500)
    sums = products.power_sums(rows)
    weighted = products.weighted_sums(rows, factors=factors, columns=np.ones((1500, 1)))
    for total in (sums.squares, sums.fourths, weighted.products):
        assert (total == total.T).all()
        assert (total[77] == total[3]).all()
    assert sums.thirds[77, 77] == sums.thirds[3, 3] == sums.thirds[3, 77]


def test_full_and_empty_blocks_go_together() -> None:
    pieces = [rows_of(1000, 60, 0.8), rows_of(3000, 60, 0.01), sparse.csr_array((2000, 60))]
    rows = sparse.csr_array(sparse.vstack(pieces))
    assert set(kinds_of(rows)) == {"_Filled", "_Few", "_Sparse"}
    assert products.gram(rows) == close(rows.toarray().T @ rows.toarray())


def of_few_runs(pairs: int, runs: int) -> sparse.csr_array:
    """Pairs that no run returns, or one, or a few, with one in ten that many return."""
    rows = [rows_of(pairs, runs, 0.02), rows_of(pairs // 10, runs, 0.14)]
    return sparse.csr_array(sparse.vstack(rows))


@pytest.mark.parametrize("shape", [(1, 3), (2500, 40), (5000, 130)], ids=str)
def test_every_two_entries_give_the_bits_of_blocks(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "MOST_PRODUCTS", 0)  # one block after the other
    rows = of_few_runs(*shape)
    scales = np.random.default_rng(4).random((2, rows.shape[0]))
    taken = products.gram(rows), products.cross_products(rows, scales)
    powers = products.power_sums(rows)
    assert "_Few" in kinds_of(rows)

    monkeypatch.setattr(products, "are_few", lambda number, *_: np.zeros(len(number), bool))
    assert "_Few" not in kinds_of(rows)
    assert np.array_equal(taken[0], products.gram(rows))
    assert np.array_equal(taken[1], products.cross_products(rows, scales))
    for name in ("squares", "fourths", "thirds"):
        assert np.array_equal(getattr(powers, name), getattr(products.power_sums(rows), name))
    if shape[0] > 1:  # a broken twin: the same sum in another order
        backwards = sparse.csr_array(rows[::-1])
        assert not np.array_equal(taken[0], products.gram(backwards))


@pytest.mark.parametrize(
    ("most", "pieces"),
    [
        (1500, 4),
        *(pytest.param(*e, marks=pytest.mark.slow) for e in [(0, 9), (1 << 14, 2), (1 << 40, 2)]),
    ],
)
def test_neighbors_with_few_products_are_one_piece(
    most: int, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "MOST_PRODUCTS", most)
    few, filled = rows_of(3000, 60, 0.02), rows_of(1920, 60, 0.8)
    rows = sparse.csr_array(sparse.vstack([few, sparse.csr_array((2760, 60)), filled, few]))
    blocks = list(products._blocks(rows))
    ends = [pairs.stop for pairs, _ in blocks]
    assert [pairs.start for pairs, _ in blocks] == [0, *ends[:-1]]
    assert ends[-1] == rows.shape[0]
    assert kinds_of(rows).count("_Few") == pieces
    number = every_two.products_of_two(rows)
    for pairs, block in blocks:
        if type(block).__name__ == "_Few" and pairs.stop - pairs.start > products.BLOCK_PAIRS:
            assert number[pairs].sum() <= most

    dense, factors = rows.toarray(), np.random.default_rng(2).random((3, rows.shape[0]))
    expected = [(dense * each[:, None]).T @ dense for each in factors]
    assert products.cross_products(rows, factors) == close(np.array(expected))
    sums = products.power_sums(rows)
    assert sums.squares == close(dense.T @ dense)
    assert sums.thirds == close((dense**3).T @ dense)
    assert products.gram(rows[:-40]) != close(dense.T @ dense)  # a twin that lacks the last


def test_order_of_the_entries_of_a_pair_does_not_matter() -> None:
    """Products of sparse arrays leave them in the order of their making."""
    rows = of_few_runs(2500, 40)
    turned = sparse.csr_array(sparse.diags_array(np.ones(rows.shape[0])) @ rows)
    assert not turned.has_sorted_indices
    assert "_Few" in kinds_of(turned)
    assert np.array_equal(products.gram(turned), products.gram(rows))
    found, expected = products.power_sums(turned), products.power_sums(rows)
    for name in ("squares", "fourths", "thirds"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


def test_contributions_and_products_of_one_pass_are_those_of_two() -> None:
    rows, rng = of_few_runs(2500, 40), np.random.default_rng(4)
    squares = rng.random(rows.shape[0])
    squares[:300] = 0.0
    finds, together = contributions_and_products(rows, squares)
    assert np.array_equal(finds, finds_of(rows, squares))
    assert np.array_equal(together, products.cross_product(rows, squares))
    assert not np.array_equal(together, products.cross_product(rows, squares * (1.0 + 1e-11)))


@pytest.mark.parametrize("enough", [0.5, 4.0, 30.0, 1e9])
def test_finds_up_to_a_number_are_kish_s_below_it(enough: float) -> None:
    """Of runs of few finds, near copies and one of none; what is enough is not more than it."""
    rows, rng = of_few_runs(2500, 30), np.random.default_rng(4)
    squares = rng.random(rows.shape[0])
    near, alone, none = rows[:, :1].copy(), rows[:, 1:2].copy(), rows[:, 2:3].copy()
    near.data[-3:] *= 0.5
    alone.data[:-2] = 0.0
    none.data[:] = 0.0
    rows = sparse.csr_array(sparse.hstack([rows, near, alone, none]))
    exact, told = finds_of(rows, squares), finds_up_to(enough, rows, squares)
    few = exact < enough
    assert np.array_equal(told < enough, few)
    np.testing.assert_allclose(told[few], exact[few], rtol=1e-9)
    assert np.all(told <= exact * (1.0 + 1e-12))
    assert few.any()
    assert few.all() or enough < 1e9


@pytest.mark.parametrize("filled", [0.8, 0.06, 0.01])
def test_squares_that_are_known_are_not_added_up_again(
    filled: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of dense blocks, of sparse ones and of few runs; what is told instead of them is found."""
    (rows,) = many_runs_first(rows_of(1500, 100, filled), above=0)
    whole, squares, added = products.power_sums(rows), products.gram(rows), []
    assert np.array_equal(whole.squares, squares)
    for name in ("symmetric_product", "product", "_columns"):
        plain = getattr(products, name)
        count = lambda *given, plain=plain: added.append(1) or plain(*given)  # noqa: E731
        monkeypatch.setattr(products, name, count)
    two = every_two.EveryTwo.upper_gram
    monkeypatch.setattr(
        every_two.EveryTwo, "upper_gram", lambda *given: added.append(1) or two(*given)
    )
    products.power_sums(rows)
    every = len(added)
    found = products.power_sums(rows, squares=squares)
    assert len(added) - every < every
    for name in ("squares", "fourths", "thirds"):
        assert np.array_equal(getattr(found, name), getattr(whole, name))
    twin = products.power_sums(rows, squares=squares + np.eye(100))
    assert not np.array_equal(twin.squares, whole.squares)


def test_nothing_found_is_none_of_anything() -> None:
    rows = of_few_runs(100, 5)
    assert not finds_up_to(4.0, rows, np.zeros(rows.shape[0])).any()


def test_rows_that_stand_in_the_order_of_products_are_not_copied() -> None:
    rows = of_few_runs(2500, 40)
    (ordered,) = many_runs_first(rows, above=0)
    assert ordered is not rows
    assert many_runs_first(ordered, above=0)[0] is ordered
    assert taken(rows, np.arange(rows.shape[0])) is rows
    assert taken(rows, np.arange(rows.shape[0] - 1)).shape[0] == rows.shape[0] - 1
    backwards = np.arange(rows.shape[0])[::-1]
    assert np.array_equal(taken(rows, backwards).toarray(), rows.toarray()[::-1])


def kinds_of(rows: sparse.csr_array) -> list[str]:
    return [type(block).__name__ for _, block in products._blocks(rows)]


def test_twin_that_loses_the_last_pairs_of_a_block_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, tiled = rows_of(1000, 60, 0.8), products.tiled

    def short(*arguments: object) -> np.ndarray:
        return tiled(*arguments)[:-1]

    monkeypatch.setattr(products, "tiled", short)
    assert products.gram(rows) != close(rows.toarray().T @ rows.toarray())


# ------------------------------------------------------------------------- products that are held


def many_first(rows: sparse.csr_array) -> tuple[sparse.csr_array, int]:
    number = np.diff(rows.indptr)
    many = number > held_products.few_runs(number)
    return rows[np.argsort(~many, kind="stable")], np.count_nonzero(many)


@pytest.mark.parametrize("filled", [0.0, 0.05, 0.4])
@pytest.mark.parametrize(("coupled", "couples"), [(21, 10**6), (4, 10**6), (21, 500), (0, 0)])
def test_sums_of_held_products_are_those_of_the_last_pairs(
    filled: float, coupled: int, couples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_products, "MOST_COUPLED", coupled)
    monkeypatch.setattr(held_products, "MOST_COUPLES", couples)
    rows, first = many_first(rows_of(700, 30, filled))
    held, weights = held_products.Couples.of(rows, first), np.random.default_rng(5).random(700)
    a = rows.toarray()[held.first :]
    assert held.gram(weights) == close(a.T @ (a * weights[held.first :, None]))
    number = np.diff(rows.indptr)[held.first :]
    assert number.max(initial=0) <= coupled
    assert held.cells.nnz == (number * (number + 1) // 2).sum() <= couples
    if first:
        before = np.diff(rows.indptr)[:first]
        more = before[before == before.min()]
        assert before.min() > max(number, default=0)
        assert before.min() > coupled or held.cells.nnz + (more * (more + 1) // 2).sum() > couples


def test_sums_of_held_products_of_equal_runs_are_equal() -> None:
    dense = rows_of(900, 40, 0.1).toarray()
    dense[:, 31] = dense[:, 3]
    rows, first = many_first(sparse.csr_array(dense))
    assert first < 900
    total = held_products.Couples.of(rows, first).gram(np.random.default_rng(5).random(900))
    assert (total == total.T).all()
    assert (total[31] == total[3]).all()
    assert total[3, 31] == total[3, 3] > 0.0


# ---------------------------------------------------------------------------------- same bits

DIGEST = """
import hashlib
import numpy as np
from scipy import sparse
from estimation.core.estimates import estimators
from estimation.core.estimates import products, tiles
from estimation.core.data.labels import PairLabels

{change}
rng = np.random.default_rng(4)
dense = rng.random((3000, 130)) * (rng.random((3000, 130)) < 0.6)
weights, chances = sparse.csr_array(dense), 1e-5 + 1e-3 * rng.random(3000)
counts = 1 + rng.integers(0, 3, size=3000)
labels = PairLabels(rng.random(3000), np.ones(3000, dtype=int), np.zeros(3000), False)
given = dict(probability=chances)
found = [
    estimators.importance_sampling(weights, labels, counts=counts, **given),
    estimators.horvitz_thompson_iid(weights, labels, draws=int(counts.sum()), **given),
    estimators.horvitz_thompson_poisson(weights, labels, **given),
]
digest = hashlib.sha256()
for each in found:
    for array in (each.value, each.covariance, each.contributions):
        digest.update(np.ascontiguousarray(array).tobytes())
print(digest.hexdigest())
"""


def digest(threads: int, change: str = "") -> str:
    number = {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "MKL")}
    found = subprocess.run(
        [sys.executable, "-c", DIGEST.format(change=change)],
        env=os.environ | number,
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout


@pytest.mark.slow
def test_number_of_threads_changes_no_bit() -> None:
    assert len(digest(1)) == 65
    assert digest(1) == digest(2)


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor has no threads to split to")
def test_twin_with_tiles_that_are_split_is_caught() -> None:
    large = "tiles.TILE_RUNS, tiles.TILE_PAIRS, products.BLOCK_PAIRS = 130, 960, 960"
    assert digest(1, large) != digest(2, large)


def test_tiles_are_too_small_to_be_split() -> None:
    assert tiles.TILE_RUNS**2 * tiles.TILE_PAIRS <= 2**18


# -------------------------------------------------------------- contributions of strata


def stratified(sizes: list[int]) -> tuple[np.ndarray, ...]:
    """One row per draw, in strata of these sizes: weights, labels, probabilities, strata."""
    rng, draws = np.random.default_rng(6), sum(sizes)
    weights = rng.random((draws, 3)) * (rng.random((draws, 3)) < 0.8)
    return weights, rng.random(draws), 0.1 + rng.random(draws) / 2, np.repeat([0, 1, 2], sizes)


def contributions(sizes: list[int], *, with_strata: bool = True) -> np.ndarray:
    weights, mean, probability, stratum = stratified(sizes)
    return importance_sampling(
        sparse.csr_array(weights),
        judged_once(mean),
        probability=probability,
        counts=np.ones(len(mean), dtype=np.int64),
        stratum=stratum if with_strata else None,
    ).contributions


def test_strata_of_equal_sizes_leave_the_number_of_contributions_as_it_is() -> None:
    plain = contributions([2, 2, 2], with_strata=False)
    assert plain.max() <= 6.0
    assert contributions([2, 2, 2]) == close(plain)


def test_contributions_of_strata_are_those_to_the_variance() -> None:
    sizes = [2, 5, 9]
    weights, mean, probability, stratum = stratified(sizes)
    factor = (np.array(sizes) / (np.array(sizes) - 1.0))[stratum]
    parts = weights * (np.sqrt(factor) * mean / probability)[:, None]
    difference = (parts[:, :, None] - parts[:, None, :]) ** 2
    single = np.eye(3, dtype=bool)
    shares = np.where(single, parts[:, :, None] ** 2, difference)
    expected = shares.sum(axis=0) ** 2 / (shares**2).sum(axis=0)
    assert contributions(sizes) == pytest.approx(expected, rel=1e-10)
    assert expected.max() <= sum(sizes)


def kish(terms: np.ndarray) -> float:
    return terms.sum() ** 2 / (terms**2).sum()


def test_finds_that_carry_a_value_or_a_difference_are_counted_by_kish() -> None:
    rows, rng = rows_of(60, 3, 0.8), np.random.default_rng(4)
    chance, mean = 0.2 + 0.8 * rng.random(60), rng.integers(0, 3, 60).astype(float)
    found = horvitz_thompson_poisson(rows, judged_once(mean), probability=chance)
    added = rows.toarray() * (mean / chance)[:, None]
    for j in range(3):
        assert found.contributions[j, j] == close(kish(added[:, j] ** 2))
        for other in set(range(3)) - {j}:
            terms = (added[:, j] - added[:, other]) ** 2
            assert found.contributions[j, other] == pytest.approx(kish(terms), rel=1e-9)
