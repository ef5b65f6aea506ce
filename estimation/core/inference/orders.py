"""Orders of values in which what differs by rounding only is equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray

TIED = 1e-12  # of the largest value: differences below it are rounding


def signs(values: FloatArray) -> FloatArray:
    """Return the signs of the differences of values, row less column; 0 where it is rounding.

    Parameters
    ----------
    values : ndarray of float64, shape (k,)

    Returns
    -------
    ndarray of float64, shape (k, k)
        -1, 0 or 1.
    """
    difference = np.subtract.outer(values, values)
    difference[np.abs(difference) <= TIED * np.abs(values).max(initial=0.0)] = 0.0
    return np.asarray(np.sign(difference), dtype=np.float64)


def places(values: FloatArray, *, lower_is_better: bool = False) -> IntArray:
    """Return places from 1, the best first; equal values share the better place.

    Parameters
    ----------
    values : ndarray of float64, shape (k,)

    Returns
    -------
    ndarray of int64, shape (k,)
        In 1..k.
    """
    is_better = signs(values) == (1.0 if lower_is_better else -1.0)
    return np.asarray(1 + np.count_nonzero(is_better, axis=1), dtype=np.int64)


def kendall_tau(estimated: FloatArray, true: FloatArray) -> float | None:
    """Return Kendall's tau-b between two vectors of values.

    Parameters
    ----------
    estimated, true : ndarray of float64, shape (k,)

    Returns
    -------
    float or None
        In [-1, 1]; 1 for an order and itself, ties and all. 0 if all estimates are equal, which
        orders nothing; None if all true values are.

    Notes
    -----
    Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945).
    """
    orders = [signs(estimated), signs(true)]
    pairs = [np.count_nonzero(each) for each in orders]
    if pairs[1] == 0:
        return None
    return float(np.sum(orders[0] * orders[1]) / np.sqrt(pairs[0] * pairs[1])) if pairs[0] else 0.0
