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
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import FloatArray, Indices, IntArray, SparseMatrix, column_sums
from ..upper import with_below
from .every_two import EveryTwo, are_few, products_of_two
from .rows import many_first, taken, those_many_first
from .tiles import TILE_PAIRS, padded, product, symmetric_product, tiled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BLOCK_PAIRS = 10 * TILE_PAIRS  # pairs whose numbers are held densely at a time
MOST_PRODUCTS = 1 << 14  # of two entries of pairs that few runs return, at a time: a cache holds it
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
        return PowerSums(with_below(self.squares), with_below(self.fourths), self.thirds)


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
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for _, block in _blocks(rows):
        total += block.upper_gram()
    return with_below(total)


def cross_product(weights: SparseMatrix, scale: FloatArray) -> FloatArray:
    """sum_i scale_i w_ij w_il for all pairs of runs; exactly symmetric (scale >= 0)."""
    pairs = those_many_first(weights, _counted(weights, scale), above=BLOCK_PAIRS)
    return gram(_times(taken(weights, pairs), np.sqrt(scale[pairs])))


def with_others(
    total: FloatArray, weights: SparseMatrix, scale: FloatArray, other: FloatArray
) -> FloatArray:
    """sum_i other_i w_ij w_il, shape (k, k), from the `total` of another scale.

    From the pairs alone of which the two are not the same, but for rounding.
    """
    some = np.flatnonzero(scale != other)
    rows = taken(weights, some)
    return np.asarray(total + cross_product(rows, other[some]) - cross_product(rows, scale[some]))


def cross_products(
    weights: SparseMatrix, scales: FloatArray, *, roughly: bool = False
) -> FloatArray:
    """The same for several scales, (n, pairs), but for rounding: shape (n, k, k).

    ``roughly``: with products of half the digits, in half the time, for what is no estimate.
    """
    totals = np.zeros((len(scales), weights.shape[1], weights.shape[1]))
    for pairs, block in _blocks(weights):
        used = block.rough() if roughly and isinstance(block, _Filled) else block
        for place, scale in enumerate(scales):
            totals[place] += used.upper_gram(scale[pairs])
    return with_below(totals)


def root_scaled(weights: SparseMatrix, scale: FloatArray) -> RootScaled:
    """Leave out the pairs whose scale is 0, or that no run returns."""
    pairs = _counted(weights, scale)
    roots = np.sqrt(scale[pairs])
    return RootScaled(_times(taken(weights, pairs), roots), pairs, roots)


def _counted(weights: SparseMatrix, scale: FloatArray) -> IntArray:
    return np.flatnonzero((scale > 0.0) & (np.diff(weights.indptr) > 0))


def _times(rows: SparseMatrix, roots: FloatArray) -> SparseMatrix:
    """The rows, each multiplied by a number: the same entries, without the negligible."""
    data = rows.data * np.repeat(roots, np.diff(rows.indptr))
    scaled = sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
    leave_out_negligible(scaled)
    return scaled


def power_sums(rows: SparseMatrix, *, squares: FloatArray | None = None) -> PowerSums:
    """Add up the powers that a covariance and the number of its contributions need.

    `squares` are the sums of squares, (k, k), where they are known.
    """
    (rows,) = many_first(rows, above=BLOCK_PAIRS)
    sums = PowerSums(*np.zeros((3, rows.shape[1], rows.shape[1])))
    for _, block in _blocks(rows):
        sums.add(block.powers(squares=squares is None))
    return (sums if squares is None else replace(sums, squares=squares)).mirrored()


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
    return sums.mirrored(), with_below(total)


def weighted_sums(rows: SparseMatrix, *, factors: FloatArray, columns: FloatArray) -> WeightedSums:
    """Add up what the covariance of coupled pairs needs, in one pass: with factors f_i >= 0."""
    runs = rows.shape[1]
    products, totals = np.zeros((runs, runs)), np.zeros((runs, columns.shape[1]))
    for pairs, block in _blocks(rows):
        products += block.upper_gram(factors[pairs])
        totals += block.columns(columns[pairs])
    return WeightedSums(with_below(products), totals)


def leave_out_negligible(rows: SparseMatrix) -> None:
    """Put 0 for entries below `NEGLIGIBLE` of every run's root sum of squares.

    They cannot change a sum by more than rounding, and their powers may be denormal, which is slow:
    where none is near that, all stay.
    """
    if not len(rows.data):
        return
    least, most = rows.data.min(), rows.data.max()
    if least**2 >= FAR_FROM_DENORMAL * most**2 and least >= 0.0:  # the usual case
        return
    squares = np.square(rows.data)
    if squares.min() >= FAR_FROM_DENORMAL * squares.max():
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

    def upper_gram(self, scale: FloatArray | None = None) -> FloatArray:
        """Return sum_i scale_i a_ij a_il for j <= l; what is below the diagonal does not count."""
        tiles = self.tiles
        if scale is not None:
            padded = np.zeros(tiles.shape[:2], dtype=tiles.dtype)
            padded.reshape(-1)[: len(scale)] = np.sqrt(scale)
            tiles = tiles * padded[:, :, None, None]
        return symmetric_product(tiles, self.runs)

    def powers(self, *, squares: bool = True) -> PowerSums:
        """Return the sums of powers; of symmetric ones only what is above the diagonal counts.

        Without `squares` these are 0.
        """
        second, runs = np.square(self.tiles), self.runs
        return PowerSums(
            symmetric_product(self.tiles, runs) if squares else np.zeros((runs, runs)),
            symmetric_product(second, runs),
            product(second * self.tiles, runs, self.tiles, runs),
        )

    def columns(self, numbers: FloatArray) -> FloatArray:
        """Return sum_i a_ij c_i for each column c, shape (k, c)."""
        pair, column = np.divmod(np.arange(numbers.size), numbers.shape[1])
        cells = pair * padded(numbers.shape[1]) + column
        tiles = tiled(numbers.ravel(), cells, numbers.shape)
        return product(self.tiles, self.runs, tiles, numbers.shape[1])


@dataclass(frozen=True, eq=False)
class _Sparse:
    """A block of pairs of which runs return fewer: the entries of each, as in a csr_array.

    `room` are zeros, shape (pairs or more, runs), where numbers are for as long as they are used.
    """

    data: FloatArray
    runs: Indices
    bounds: Indices
    entries: slice
    room: FloatArray

    def like(self, rows: SparseMatrix) -> _Sparse:
        """The same block of an array that has the same entries, with other numbers."""
        return replace(self, data=rows.data[self.entries])

    def upper_gram(self, scale: FloatArray | None = None) -> FloatArray:
        data = _scaled(self.data, scale, self.bounds)
        return self._products([data], data)[0]

    def powers(self, *, squares: bool = True) -> PowerSums:
        second, runs = np.square(self.data), self.room.shape[1]
        left = [second * self.data, self.data] if squares else [second * self.data]
        thirds, *found = self._products(left, self.data)
        (fourths,) = self._products([second], second)
        return PowerSums(found[0] if found else np.zeros((runs, runs)), fourths, thirds)

    def columns(self, numbers: FloatArray) -> FloatArray:
        return _columns(self.data, self.runs, self.bounds, numbers, self.room.shape[1])

    def _products(self, several: Sequence[FloatArray], right: FloatArray) -> list[FloatArray]:
        """Sums of products with numbers of the entries, of several ones."""
        pairs, runs = len(self.bounds) - 1, self.room.shape[1]
        room = self.room.reshape(-1)
        cells = np.repeat(np.arange(pairs) * runs, np.diff(self.bounds)) + self.runs
        room[cells] = right
        found = [
            _columns(left, self.runs, self.bounds, self.room[:pairs], runs) for left in several
        ]
        room[cells] = 0.0
        return found


@dataclass(frozen=True, eq=False)
class _Few:
    """Pairs that so few runs return that products of every two entries take the least time."""

    data: FloatArray
    runs: Indices
    bounds: Indices
    entries: slice
    number: int
    two: EveryTwo | None = None

    def like(self, rows: SparseMatrix) -> _Few:
        """The same pairs of an array that has the same entries, with other numbers."""
        return replace(self, data=rows.data[self.entries], two=self.every_two)

    @cached_property
    def every_two(self) -> EveryTwo:
        return self.two or EveryTwo.of(self.runs, self.bounds, self.number)

    def upper_gram(self, scale: FloatArray | None = None) -> FloatArray:
        return self.every_two.upper_gram(_scaled(self.data, scale, self.bounds))

    def powers(self, *, squares: bool = True) -> PowerSums:
        two, second = self.every_two, np.square(self.data)
        thirds, number = two.products(second * self.data, self.data), self.number
        found = two.upper_gram(self.data) if squares else np.zeros((number, number))
        return PowerSums(found, two.upper_gram(second), thirds)

    def columns(self, numbers: FloatArray) -> FloatArray:
        return _columns(self.data, self.runs, self.bounds, numbers, self.number)


def _scaled(data: FloatArray, scale: FloatArray | None, bounds: Indices) -> FloatArray:
    """Numbers of entries, each times the root of the scale of its pair."""
    return data if scale is None else data * np.repeat(np.sqrt(scale), np.diff(bounds))


def _columns(
    data: FloatArray, runs: Indices, bounds: Indices, numbers: FloatArray, number: int
) -> FloatArray:
    """Return sum_i a_ij c_i for each column c, shape (k, c)."""
    turned = sparse.csc_array((data, runs, bounds), shape=(number, len(bounds) - 1))
    return np.asarray(turned @ numbers, dtype=np.float64)


Block = _Filled | _Sparse | _Few


def _blocks(rows: SparseMatrix) -> Iterator[tuple[slice, Block]]:
    """Cut an array into pieces that are small enough to be held densely, or have few products."""
    room: FloatArray | None = None
    for pairs, few in _pieces(rows):
        bounds = rows.indptr[pairs.start : pairs.stop + 1]
        entries = slice(int(bounds[0]), int(bounds[-1]))
        data, runs = rows.data[entries], rows.indices[entries]
        shape = pairs.stop - pairs.start, rows.shape[1]
        bounds = bounds - bounds[0]
        if len(data) >= LEAST_FILLED * shape[0] * padded(shape[1]):
            cells = np.repeat(np.arange(shape[0]) * padded(shape[1]), np.diff(bounds)) + runs
            yield pairs, _Filled(tiled(data, cells, shape), shape[1], entries, cells)
        elif few:
            yield pairs, _Few(data, runs, bounds, entries, shape[1])
        else:
            if room is None:
                room = np.zeros((min(BLOCK_PAIRS, rows.shape[0]), shape[1]))
            yield pairs, _Sparse(data, runs, bounds, entries, room)


def _pieces(rows: SparseMatrix) -> list[tuple[slice, bool]]:
    """Blocks of pairs, and whether they have few products: such are one with their neighbors."""
    starts = np.arange(0, rows.shape[0], BLOCK_PAIRS)
    ends = np.minimum(starts + BLOCK_PAIRS, rows.shape[0])
    products = np.add.reduceat(products_of_two(rows), starts)
    few = are_few(products, rows.indptr[ends] - rows.indptr[starts], rows.shape[1])
    found: list[tuple[slice, bool]] = []
    first, held = 0, 0  # pair and products of the piece that goes on
    for start, end, here, more in zip(
        starts.tolist(), ends.tolist(), few.tolist(), products.tolist(), strict=True
    ):
        if here and found and found[-1][1] and held + more <= MOST_PRODUCTS:
            held += more
            found[-1] = slice(first, end), True
        else:
            first, held = start, more
            found.append((slice(start, end), here))
    return found
