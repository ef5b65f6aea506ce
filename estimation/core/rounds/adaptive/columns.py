"""Numbers that lists of runs and predictions tell of each pair: columns of `grades.Features`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...arrays import FloatArray, SparseMatrix
    from ...data.pool import Pool


def by_topic_and_run(pool: Pool, entries: NDArray[np.float32]) -> SparseMatrix:
    """A row for each pair, and a column for each topic and run."""
    shape = len(pool), len(pool.topics) * len(pool.runs)
    narrow = sparse.get_index_dtype(maxval=max(shape[1], len(entries)))
    place = pool.entry_cell.astype(narrow), pool.indptr.astype(narrow)
    return sparse.csr_array((entries, *place), shape=shape)


def reciprocal_ranks(pool: Pool) -> FloatArray:
    """The sum of the reciprocal ranks of each pair, (N,)."""
    total = pool.by_pair(1.0 / pool.rank) @ np.ones(len(pool.runs))
    return np.asarray(total, dtype=np.float64)


def numbers_of_predicted(grades: FloatArray) -> list[FloatArray]:
    """A grade, and by its order how rare one as high is; where nothing is predicted, the mean."""
    known = ~np.isnan(grades)
    if not known.any():
        return []
    ordered = np.sort(grades[known])
    below = np.searchsorted(ordered, grades[known], side="left")
    rare = -np.log(1.0 - below / (len(ordered) + 1.0))
    columns = []
    for numbers in (grades[known], rare):
        column = np.full(len(grades), numbers.mean())
        column[known] = numbers
        columns.append(column)
    return columns if known.all() else [*columns, known.astype(np.float64)]
