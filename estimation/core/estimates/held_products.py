"""Products of every two runs of pairs, held so that sums of them for any weights are one pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import pieces

if TYPE_CHECKING:
    from ..arrays import FloatArray, Indices, SparseMatrix

# Runs of a pair whose products are held one by one, and how many products are: 18 MB.
MOST_COUPLED, MOST_COUPLES = 21, 1_500_000
PIECE = 2_000  # pairs whose products are multiplied at once


def few_runs(number: Indices) -> int:
    """Return the most runs of pairs whose products are held one by one.

    From the number of runs that return each pair.
    """
    runs = np.arange(MOST_COUPLED + 1)
    pairs = np.bincount(np.minimum(number, MOST_COUPLED + 1), minlength=MOST_COUPLED + 2)[:-1]
    held = np.cumsum(pairs * runs * (runs + 1) // 2)
    return int(np.count_nonzero(held <= MOST_COUPLES)) - 1


@dataclass(frozen=True, eq=False)
class Couples:
    """The products of every two runs of some pairs: sums of them for any weights are one pass.

    Attributes
    ----------
    first : int
        The position of the first of the pairs; all behind it are among them.
    cells : csr_array, shape (pairs, k k)
        a_ij a_il for j <= l.
    """

    first: int
    cells: SparseMatrix

    @classmethod
    def of(cls, rows: SparseMatrix, first: int) -> Couples:
        """Multiply out the last pairs.

        Parameters
        ----------
        rows : csr_array, shape (n, k)
            a_ij, columns ascending; of pairs of few runs (`few_runs`) behind the first ones.
        first : int
        """
        bounds, runs = rows.indptr[first:].astype(np.int64), rows.shape[1]
        number = np.diff(bounds)
        ends = np.append(0, np.cumsum(number * (number + 1) // 2))
        shape = len(number), runs**2
        narrow = sparse.get_index_dtype(maxval=max(shape[1], int(ends[-1])))
        cells, data = np.empty(ends[-1], dtype=narrow), np.empty(ends[-1])
        for piece in pieces(len(number), PIECE):
            pairs = slice(piece.start, min(piece.stop, len(number)))
            entry = np.arange(bounds[pairs.start], bounds[pairs.stop])
            behind = np.repeat(bounds[1:][pairs], number[pairs]) - entry  # with itself
            other = np.repeat(entry - (np.cumsum(behind) - behind), behind)
            other += np.arange(len(other))
            here = slice(ends[pairs.start], ends[pairs.stop])
            cells[here] = np.repeat(rows.indices[entry] * runs, behind) + rows.indices[other]
            data[here] = np.repeat(rows.data[entry], behind) * rows.data[other]
        return cls(first, sparse.csr_array((data, cells, ends.astype(narrow)), shape=shape))

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return sum_i weight_i a_ij a_il over these pairs, of weights of all n, shape (k, k)."""
        found: FloatArray = self.grams(weights[self.first :, None])[0]
        return found

    def grams(self, weights: FloatArray) -> FloatArray:
        """Return the same for several weights of these pairs alone, (pairs, n): (n, k, k)."""
        total = np.asarray(self.cells.T @ weights, dtype=np.float64).T
        runs = math.isqrt(total.shape[1])
        above = total.reshape(-1, runs, runs)
        return np.asarray(above + np.triu(above, 1).transpose(0, 2, 1), dtype=np.float64)

    @property
    def nbytes(self) -> int:
        """What they take in memory."""
        return sum(each.nbytes for each in (self.cells.data, self.cells.indices))
