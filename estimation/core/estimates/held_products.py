"""Products of every two runs of pairs, held so that sums of them for any weights are one pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from ..arrays import FloatArray, Indices, SparseMatrix

# Runs of a pair whose products are held one by one, and how many products are: 18 MB.
MOST_COUPLED, MOST_COUPLES = 21, 1_500_000


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
        number = np.diff(rows.indptr)[first:].astype(np.int64)
        ends = np.append(0, np.cumsum(number * (number + 1) // 2))
        cells, data = np.empty(ends[-1], dtype=np.int64), np.empty(ends[-1])
        for runs in np.flatnonzero(np.bincount(number)).tolist():
            pairs = np.flatnonzero(number == runs)
            place = rows.indptr[first + pairs, None] + np.arange(runs)
            one, other = np.triu_indices(runs)
            here = ends[pairs, None] + np.arange(len(one))
            columns, values = rows.indices[place], rows.data[place]
            cells[here] = columns[:, one] * np.int64(rows.shape[1]) + columns[:, other]
            data[here] = values[:, one] * values[:, other]
        shape = rows.shape[0] - first, rows.shape[1] ** 2
        narrow = sparse.get_index_dtype(maxval=max(shape[1], len(cells)))
        place = cells.astype(narrow), ends.astype(narrow)
        return cls(first, sparse.csr_array((data, *place), shape=shape))

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
