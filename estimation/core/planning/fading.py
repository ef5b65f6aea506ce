"""What later batches leave of an expected variance, for several of them at once.

A pair with the size s_i is missed by a Poisson sample with the constant c as far as

    (1 - pi_i) / pi_i = max(0, 1 / (c s_i) - 1),

which falls in proportion to u = 1 / c until the pair is certain. So pairs go into groups by the
last of the constants at which they are not, and each group is added up twice, whatever the number
of constants: as it is missed at that one, and what it gains for every 1 more of u.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..estimates.products import cross_products

if TYPE_CHECKING:
    from ..arrays import FloatArray, SparseMatrix
    from ..inference.looked_at import Rows


def fading_covariances(
    rows: Rows, squares: FloatArray, size: FloatArray, constants: FloatArray
) -> FloatArray:
    """Return sum_i weight_i max(0, 1 / (c s_i) - 1) squares_i y_ij y_il for every constant c.

    Parameters
    ----------
    rows : Rows
        `Rows.coupled`. Pairs with a weight have a size above 0.
    squares, size : ndarray of float64, shape (m,)
        Of the pairs of `rows`: expected squares of their utilities, and s_i.
    constants : ndarray of float64, shape (n,)
        Ascending, above 0; they may be infinite.

    Returns
    -------
    ndarray of float64, shape (n, k, k)
    """
    unit, weight = 1.0 / constants, rows.weight * squares
    slope = np.divide(weight, size, out=np.zeros_like(weight), where=weight > 0.0)
    if (couples := rows.couples) is None:
        raise ValueError("rows must be coupled")
    first = couples.first
    missed = np.multiply.outer(slope[first:], unit)
    missed -= weight[first:, None]
    found = couples.grams(np.maximum(missed, 0.0, out=missed))
    return found + _of_many(couples.head, slope[:first], weight[:first], size[:first], unit)


def _of_many(
    rows: SparseMatrix, slope: FloatArray, weight: FloatArray, size: FloatArray, unit: FloatArray
) -> FloatArray:
    """The same of the first pairs, group by group from the last constant on."""
    runs = rows.shape[1]
    found = np.zeros((len(unit), runs, runs))
    total, rise = np.zeros((2, runs, runs))
    last = np.count_nonzero(np.less.outer(size, unit), axis=1) - 1
    above = 0.0
    for place, here in reversed(list(enumerate(unit.tolist()))):
        total = total + (here - above) * rise
        group, above = np.flatnonzero((last == place) & (slope > 0.0)), here
        if len(group):
            missed = np.maximum(slope[group] * here - weight[group], 0.0)
            more = cross_products(rows[group], np.stack([missed, slope[group]])[: 1 + (place > 0)])
            total, rise = total + more[0], rise + more[-1]
        found[place] = total
    return found
