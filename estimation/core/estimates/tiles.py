"""Products of tiles of pairs by runs, which are too small to be split between threads.

See `products`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..arrays import FloatArray, Indices

TILE_RUNS, TILE_PAIRS = 48, 96


def tiled(data: FloatArray, cells: Indices, shape: tuple[int, ...]) -> FloatArray:
    """Return numbers of pairs and runs as tiles of both, filled up with zeros.

    Parameters
    ----------
    data : ndarray of float64, shape (e,)
    cells : ndarray of int, shape (e,)
        Where each stands among the tiles of all runs, pair by pair.
    shape : tuple of int
        Numbers of pairs and of runs.

    Returns
    -------
    ndarray of float64, shape (tiles of pairs, TILE_PAIRS, tiles of runs, TILE_RUNS)
    """
    pairs, runs = -(-shape[0] // TILE_PAIRS), padded(shape[1])
    dense = np.zeros((pairs, TILE_PAIRS, runs // TILE_RUNS, TILE_RUNS))
    dense.reshape(-1)[cells] = data
    return dense


def padded(runs: int) -> int:
    """Return how many runs the tiles of so many have room for."""
    return -(-runs // TILE_RUNS) * TILE_RUNS


def _widths(runs: int) -> list[int]:
    """How many runs of each tile are multiplied: of the last one as many eights as it needs."""
    return [min(TILE_RUNS, -(-left // 8) * 8) for left in range(runs, 0, -TILE_RUNS)]


def symmetric_product(tiles: FloatArray, runs: int) -> FloatArray:
    """Return the product of tiles with themselves, (runs, runs): one half is that of the other."""
    widths = _widths(runs)
    total = np.empty((len(widths), TILE_RUNS, len(widths), TILE_RUNS))
    for first, high in enumerate(widths):
        for second, wide in enumerate(widths[first:], first):
            tile = _tile_product(tiles[:, :, first, :high], tiles[:, :, second, :wide])
            total[first, :high, second, :wide] = tile
            total[second, :wide, first, :high] = tile.T
    return total.reshape(len(widths) * TILE_RUNS, -1)[:runs, :runs]


def product(left: FloatArray, runs: int, right: FloatArray, columns: int) -> FloatArray:
    """Return the product of tiles with those of other numbers of the pairs, (runs, columns)."""
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
