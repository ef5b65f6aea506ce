"""Sums over pairs of products of two runs' numbers: what covariances are made of.

Where runs return the same pairs, BLAS adds these up many times faster than a sparse product does.
But it splits a large product between threads, and then adds in another order. So it gets tiles
that are too small to be split (OpenBLAS: m n k <= 2^18), and they are added up here, in order.
48 runs fill the registers of every kernel, and eights parts of them: within a tile, too, each sum
is one chain in the order of the pairs. The bits do not depend on the number of threads, nor, among
machines with fused multiply-add, on the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import FloatArray, Indices, IntArray, SparseMatrix, column_sums
from .every_two import EveryTwo, are_few
from .rows import many_first

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TILE_RUNS, TILE_PAIRS = 48, 96
BLOCK_PAIRS = 10 * TILE_PAIRS  # pairs whose numbers are held densely at a time
LEAST_FILLED = 0.15  # share of a tile's numbers that are not 0 from which on tiles are faster
NEGLIGIBLE = 1e-18  # share of a root sum of squares: 1e5 pairs of it are still 3e-16
FAR_FROM_DENORMAL = 1e-72  # share of the largest square; the fourth power is its square


@dataclass(frozen=True, eq=False)
class PowerSums:
    """Sums over pairs i of powers of a_ij, for all pairs of runs, shape (k, k)."""

    squares: FloatArray  # a_ij a_il
    fourths: FloatArray  # a_ij^2 a_il^2
    thirds: FloatArray  # a_ij^3 a_il

    def add(self, more: PowerSums) -> None:
        """Add the sums over other pairs to these, in place."""
        for name in ("squares", "fourths", "thirds"):
            total: FloatArray = getattr(self, name)
            total += getattr(more, name)

    def mirrored(self) -> PowerSums:
        """The same, symmetric sums from what they have above the diagonal."""
        return PowerSums(_mirrored(self.squares), _mirrored(self.fourths), self.thirds)


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """Sums over pairs i of a_ij and their products, weighted by numbers of the pairs."""

    products: FloatArray  # f_i a_ij a_il, shape (k, k)
    columns: FloatArray  # a_ij c_i for each column c, shape (k, c)


@dataclass(frozen=True, eq=False)
class RootScaled:
    """sqrt(scale_i) w_ij of the pairs that count: most sampled pairs are not relevant."""

    rows: SparseMatrix
    pairs: IntArray
    roots: FloatArray


def gram(rows: SparseMatrix) -> FloatArray:
    """Return sum_i a_ij a_il for all pairs of runs, shape (k, k), exactly symmetric."""
    return grams([rows])[0]


def grams(
    alike: Sequence[SparseMatrix], *, twos: dict[int, EveryTwo] | None = None
) -> list[FloatArray]:
    """Return the same of arrays that have the same entries, with other numbers.

    `twos` are the entries of blocks two by two, by their first entry: what was found before, and
    what is found now.
    """
    totals = np.zeros((len(alike), alike[0].shape[1], alike[0].shape[1]))
    for _, block in _blocks(alike[0], twos):
        for place, rows in enumerate(alike):
            totals[place] += (block.like(rows) if place else block).upper_gram()
    return [_mirrored(total) for total in totals]


def cross_product(weights: SparseMatrix, scale: FloatArray) -> FloatArray:
    """sum_i scale_i w_ij w_il for all pairs of runs; exactly symmetric (scale >= 0)."""
    return gram(root_scaled(weights, scale).rows)


def cross_products_alike(
    weights: SparseMatrix,
    scales: Sequence[FloatArray],
    *,
    twos: dict[int, EveryTwo] | None = None,
) -> list[FloatArray]:
    """The same for several scales, to the same bits: what they have in common is found once.

    `twos` are as in `grams`, of all pairs.
    """
    scaled = [root_scaled(weights, scale) for scale in scales]
    if all(np.array_equal(each.pairs, scaled[0].pairs) for each in scaled[1:]):
        every = len(scaled[0].pairs) == weights.shape[0]
        return grams([each.rows for each in scaled], twos=twos if every else None)
    return [gram(each.rows) for each in scaled]


def cross_products(
    weights: SparseMatrix, scales: FloatArray, *, roughly: bool = False
) -> FloatArray:
    """The same for several scales, (n, pairs), but for rounding: shape (n, k, k).

    ``roughly``: with products of half the digits, in half the time, for what is no estimate.
    """
    runs, roots = weights.shape[1], np.sqrt(scales)
    totals = np.zeros((len(scales), runs, runs))
    if roughly:
        roots = roots.astype(np.float32)
    for pairs, block in _blocks(weights):
        used = block.rough() if roughly and isinstance(block, _Filled) else block
        for place, root in enumerate(roots):
            totals[place] += used.gram(root[pairs])
    return totals


def root_scaled(weights: SparseMatrix, scale: FloatArray) -> RootScaled:
    """Leave out the pairs whose scale is 0, or that no run returns."""
    pairs = np.flatnonzero((scale > 0.0) & (np.diff(weights.indptr) > 0))
    rows = weights if len(pairs) == weights.shape[0] else weights[pairs]
    roots = np.sqrt(scale[pairs])
    return RootScaled(_times(rows, roots), pairs, roots)


def _times(rows: SparseMatrix, roots: FloatArray) -> SparseMatrix:
    """The rows, each multiplied by a number: the same entries, without the negligible."""
    data = rows.data * np.repeat(roots, np.diff(rows.indptr))
    scaled = sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
    leave_out_negligible(scaled)
    return scaled


def power_sums(rows: SparseMatrix) -> PowerSums:
    """Add up the powers that a covariance and the number of its contributions need."""
    (rows,) = many_first(rows, above=BLOCK_PAIRS)
    sums = PowerSums(*np.zeros((3, rows.shape[1], rows.shape[1])))
    for _, block in _blocks(rows):
        sums.add(block.powers())
    return sums.mirrored()


def powers_and_gram(
    rows: SparseMatrix, other: SparseMatrix, *, alike: bool
) -> tuple[PowerSums, FloatArray]:
    """Return `power_sums` of an array and `gram` of another, in one pass if they are `alike`.

    They are if they have the same entries, with other numbers.
    """
    if not alike:
        total = gram(other)
        return power_sums(rows), total
    rows, other = many_first(rows, other, above=BLOCK_PAIRS)
    sums = PowerSums(*np.zeros((3, rows.shape[1], rows.shape[1])))
    total = np.zeros_like(sums.squares)
    for _, block in _blocks(rows):
        sums.add(block.powers())
        total += block.like(other).upper_gram()
    return sums.mirrored(), _mirrored(total)


def weighted_sums(rows: SparseMatrix, *, factors: FloatArray, columns: FloatArray) -> WeightedSums:
    """Add up what the covariance of coupled pairs needs, in one pass: with factors f_i >= 0."""
    runs, roots = rows.shape[1], np.sqrt(factors)
    products, totals = np.zeros((runs, runs)), np.zeros((runs, columns.shape[1]))
    for pairs, block in _blocks(rows):
        products += block.gram(roots[pairs])
        totals += block.columns(columns[pairs])
    return WeightedSums(products, totals)


def leave_out_negligible(rows: SparseMatrix) -> None:
    """Put 0 for entries below `NEGLIGIBLE` of every run's root sum of squares.

    They cannot change a sum by more than rounding, and their powers may be denormal, which is slow:
    where none is near that, all stay.
    """
    squares = np.square(rows.data)
    if not len(squares) or squares.min() >= FAR_FROM_DENORMAL * squares.max():
        return
    of_runs = column_sums(rows.indices, squares, number=rows.shape[1])
    least = np.min(of_runs, where=of_runs > 0.0, initial=np.inf)
    rows.data *= squares >= NEGLIGIBLE**2 * least


@dataclass(frozen=True, eq=False)
class _Filled:
    """A block of pairs of which runs return many.

    `tiles` are of the shape (tiles, pairs, tiles, runs); `entries` says which of the array's the
    block has, `cells` where they are in the tiles.
    """

    tiles: FloatArray
    runs: int
    entries: slice
    cells: Indices

    def like(self, rows: SparseMatrix) -> _Filled:
        """The same block of an array that has the same entries, with other numbers."""
        tiles = np.zeros(self.tiles.shape)
        tiles.reshape(-1)[self.cells] = rows.data[self.entries]
        return replace(self, tiles=tiles)

    def rough(self) -> _Filled:
        """The same with half the digits."""
        return replace(self, tiles=self.tiles.astype(np.float32))

    def gram(self, factors: FloatArray | None = None) -> FloatArray:
        """Return sum_i f_i^2 a_ij a_il."""
        tiles = self.tiles
        if factors is not None:
            padded = np.zeros(tiles.shape[:2], dtype=tiles.dtype)
            padded.reshape(-1)[: len(factors)] = factors
            tiles = tiles * padded[:, :, None, None]
        return _symmetric_product(tiles, self.runs)

    def upper_gram(self) -> FloatArray:
        """Return sum_i a_ij a_il for j <= l; what is below the diagonal does not count."""
        return self.gram()

    def powers(self) -> PowerSums:
        """Return the sums of powers; of symmetric ones only what is above the diagonal counts."""
        second, runs = np.square(self.tiles), self.runs
        return PowerSums(
            _symmetric_product(self.tiles, runs),
            _symmetric_product(second, runs),
            _product(second * self.tiles, runs, self.tiles, runs),
        )

    def columns(self, numbers: FloatArray) -> FloatArray:
        """Return sum_i a_ij c_i for each column c, shape (k, c)."""
        pair, column = np.divmod(np.arange(numbers.size), numbers.shape[1])
        cells = pair * _padded(numbers.shape[1]) + column
        tiles = _tiles(numbers.ravel(), cells, numbers.shape)
        return _product(self.tiles, self.runs, tiles, numbers.shape[1])


@dataclass(frozen=True, eq=False)
class _Sparse:
    """A block of pairs of which runs return few: the entries of each, as in a csr_array.

    `room` are zeros, shape (pairs or more, runs), where numbers are for as long as they are used;
    `are_few` says whether its entries two by two take less time than all runs.
    """

    data: FloatArray
    runs: Indices
    bounds: Indices
    entries: slice
    room: FloatArray
    are_few: bool
    twos: dict[int, EveryTwo]

    def like(self, rows: SparseMatrix) -> _Sparse:
        """The same block of an array that has the same entries, with other numbers."""
        return replace(self, data=rows.data[self.entries])

    @property
    def every_two(self) -> EveryTwo:
        first = self.entries.start
        if first not in self.twos:
            self.twos[first] = EveryTwo.of(self.runs, self.bounds, self.room.shape[1])
        return self.twos[first]

    def gram(self, factors: FloatArray | None = None) -> FloatArray:
        data = self.data
        if factors is not None:
            data = data * np.repeat(factors, np.diff(self.bounds))
        elif self.are_few:
            return _mirrored(self.upper_gram())
        return self._products([data], data)[0]

    def upper_gram(self) -> FloatArray:
        return self.every_two.upper_gram(self.data) if self.are_few else self.gram()

    def powers(self) -> PowerSums:
        second, third = np.square(self.data), self.data**3
        if self.are_few:
            two = self.every_two
            squares, fourths = two.upper_gram(self.data), two.upper_gram(second)
            return PowerSums(squares, fourths, two.products(third, self.data))
        squares, thirds = self._products([self.data, third], self.data)
        (fourths,) = self._products([second], second)
        return PowerSums(squares, fourths, thirds)

    def columns(self, numbers: FloatArray) -> FloatArray:
        return np.asarray(self._turned(self.data) @ numbers, dtype=np.float64)

    def _products(self, several: Sequence[FloatArray], right: FloatArray) -> list[FloatArray]:
        """Sums of products with numbers of the entries, of several ones."""
        pairs, room = len(self.bounds) - 1, self.room.reshape(-1)
        cells = np.repeat(np.arange(pairs) * self.room.shape[1], np.diff(self.bounds)) + self.runs
        room[cells] = right
        found = [
            np.asarray(self._turned(left) @ self.room[:pairs], dtype=np.float64) for left in several
        ]
        room[cells] = 0.0
        return found

    def _turned(self, data: FloatArray) -> SparseMatrix:
        shape = self.room.shape[1], len(self.bounds) - 1
        return sparse.csc_array((data, self.runs, self.bounds), shape=shape)


def _blocks(
    rows: SparseMatrix, twos: dict[int, EveryTwo] | None = None
) -> Iterator[tuple[slice, _Filled | _Sparse]]:
    """Cut an array into pieces that are small enough to be held densely."""
    room = np.zeros((min(BLOCK_PAIRS, rows.shape[0]), rows.shape[1]))
    for start in range(0, rows.shape[0], BLOCK_PAIRS):
        pairs = slice(start, min(start + BLOCK_PAIRS, rows.shape[0]))
        bounds = rows.indptr[start : pairs.stop + 1]
        entries = slice(int(bounds[0]), int(bounds[-1]))
        data, runs = rows.data[entries], rows.indices[entries]
        shape = pairs.stop - start, rows.shape[1]
        if len(data) >= LEAST_FILLED * shape[0] * _padded(shape[1]):
            cells = np.repeat(np.arange(shape[0]) * _padded(shape[1]), np.diff(bounds)) + runs
            yield pairs, _Filled(_tiles(data, cells, shape), shape[1], entries, cells)
        else:
            few = are_few(bounds, shape[1])
            bounds, kept = bounds - bounds[0], {} if twos is None else twos
            yield pairs, _Sparse(data, runs, bounds, entries, room, few, kept)


def _tiles(data: FloatArray, cells: Indices, shape: tuple[int, ...]) -> FloatArray:
    """Numbers of pairs and runs as tiles of both, filled up with zeros."""
    pairs, runs = -(-shape[0] // TILE_PAIRS), _padded(shape[1])
    dense = np.zeros((pairs, TILE_PAIRS, runs // TILE_RUNS, TILE_RUNS))
    dense.reshape(-1)[cells] = data
    return dense


def _padded(runs: int) -> int:
    return -(-runs // TILE_RUNS) * TILE_RUNS


def _widths(runs: int) -> list[int]:
    """How many runs of each tile are multiplied: of the last one as many eights as it needs."""
    return [min(TILE_RUNS, -(-left // 8) * 8) for left in range(runs, 0, -TILE_RUNS)]


def _mirrored(upper: FloatArray) -> FloatArray:
    """The symmetric matrix of what stands on the diagonal and above."""
    return np.where(np.tri(len(upper), k=-1, dtype=bool), upper.T, upper)


def _symmetric_product(tiles: FloatArray, runs: int) -> FloatArray:
    """The product of tiles with themselves: one half of it is that of the other."""
    widths = _widths(runs)
    total = np.empty((len(widths), TILE_RUNS, len(widths), TILE_RUNS))
    for first, high in enumerate(widths):
        for second, wide in enumerate(widths[first:], first):
            tile = _tile_product(tiles[:, :, first, :high], tiles[:, :, second, :wide])
            total[first, :high, second, :wide] = tile
            total[second, :wide, first, :high] = tile.T
    return total.reshape(len(widths) * TILE_RUNS, -1)[:runs, :runs]


def _product(left: FloatArray, runs: int, right: FloatArray, columns: int) -> FloatArray:
    heights, widths = _widths(runs), _widths(columns)
    total = np.empty((len(heights), TILE_RUNS, len(widths), TILE_RUNS))
    for first, high in enumerate(heights):
        for second, wide in enumerate(widths):
            tile = _tile_product(left[:, :, first, :high], right[:, :, second, :wide])
            total[first, :high, second, :wide] = tile
    return total.reshape(len(heights) * TILE_RUNS, -1)[:runs, :columns]


def _tile_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Products of runs, shape (runs, runs), from tiles of pairs by runs, (tiles, pairs, runs)."""
    products: FloatArray = np.matmul(left.transpose(0, 2, 1), right)
    total: FloatArray = np.add.reduce(products, axis=0)
    return total
