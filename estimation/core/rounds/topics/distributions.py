"""With which probabilities topics are best drawn, given what they tell and cost.

n draws cost n sum_x cost q on average, so that q is the better the smaller is

    (sum_x p^2 S / q - M) * sum_x cost q,

S(x) what a topic contributes to the variance, M what of it the mean takes away again. For the
self-normalized estimator S = E (L - R)^2 and M = 0, and the best q is that of Sawade et al. (2013),
Theorems 1 and 2, p sqrt(S / cost). For the unnormalized one S = E L^2 and M = R^2 (of several runs
or differences: the sums), and by Lagrange the best q is p sqrt(S / (cost + c)) for some c >= 0:
where values vary little, cheap topics must not be preferred by much, because their weights p/q
would vary instead. This is ours; with c = 0 AP and nDCG are worse off than with a passive sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ...arrays import BoolArray, FloatArray

SHARES = np.linspace(0.0, 1.0, 101)  # of an average cost in what topics are taken to cost


def proportional(
    squares: FloatArray, cost: FloatArray, *, eligible: BoolArray, floor: float
) -> FloatArray:
    """Return q proportional to sqrt(S / cost), mixed with the passive distribution p, shape (T,).

    S (``squares``) is not 0 for all eligible topics, which are those that can be drawn, and their
    costs are above 0; p is even over them, and ``floor`` its share.
    """
    size = np.where(eligible, np.sqrt(squares / np.where(eligible, cost, 1.0)), 0.0)
    mixed = (1.0 - floor) * size / size.sum() + floor * eligible / np.count_nonzero(eligible)
    return np.asarray(mixed / mixed.sum(), dtype=np.float64)


def least_error(
    squares: FloatArray, cost: FloatArray, *, level: float, eligible: BoolArray, floor: float
) -> FloatArray:
    """Return the q of the smallest error for its cost; see the module's text.

    ``level`` is M >= 0; c = 0 is best if it is 0. Otherwise c is searched, to a hundredth of its
    share of an average cost. The others are as in `proportional`.
    """
    shares = SHARES if level > 0.0 else SHARES[:1]
    average = cost[eligible].mean()
    chances = [
        proportional(
            squares, (1.0 - share) * cost + share * average, eligible=eligible, floor=floor
        )
        for share in shares
    ]
    errors = [_error(each, squares, cost, level=level, eligible=eligible) for each in chances]
    return chances[int(np.argmin(errors))]


def _error(
    chance: FloatArray, squares: FloatArray, cost: FloatArray, *, level: float, eligible: BoolArray
) -> float:
    number = np.count_nonzero(eligible)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(squares[eligible] > 0.0, squares[eligible] / chance[eligible], 0.0)
    return float((terms.sum() / number**2 - level) * (cost @ chance))
