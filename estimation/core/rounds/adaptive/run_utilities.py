"""What grades mean to every run, where a measure compares them with what the run says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ...arrays import FloatArray, IntArray
    from ...data.pool import Pool
    from ...measures.table import Measure

LEAST_SHARE = 1e-4


def shares_of_grades(reached: FloatArray) -> FloatArray:
    """Return the share of 0 and of each level, (L + 1, n), from what reaches each level, (L, n).

    >>> shares_of_grades(np.array([[0.75], [0.25]])).ravel().tolist()
    [0.25, 0.5, 0.25]
    """
    none = np.zeros((1, reached.shape[1]))
    return np.asarray(-np.diff(np.concatenate([none + 1.0, reached, none]), axis=0))


def possible_shares(reached: FloatArray) -> FloatArray:
    """Return the same with a share of every grade.

    So no pair which may count is out of reach, whatever a model says.
    """
    shares = np.maximum(shares_of_grades(reached), LEAST_SHARE)
    shares /= shares.sum(axis=0)
    return shares


def added_by_grade(pool: Pool, measure: Measure, levels: IntArray) -> list[FloatArray]:
    """Return what each entry adds to its run at 0 and at each level, w_ij u_j, (E,) each."""
    weight = pool.entry_weights(measure)
    grades = [0, *levels.tolist()]
    return [weight * pool.entry_utilities(measure, grade) for grade in grades]


def expected_entries(pool: Pool, added: list[FloatArray], shares: FloatArray) -> FloatArray:
    """Return sum_g x_ig y_ij(g) of every entry, (E,), from `added_by_grade` and shares, (G, N)."""
    number, found = np.diff(pool.indptr), np.zeros(len(pool.run))
    for of_grade, share in zip(added, shares, strict=True):
        found += of_grade * np.repeat(share, number)
    return found
