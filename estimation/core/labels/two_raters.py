"""Two raters at a time: their table of grades, and weighted kappa.

With shares p_ck of a table and its margins, kappa = 1 - sum p_ck d_ck / sum p_c. p_.k d_ck, where d
is |c - k| (linear), (c - k)^2 (quadratic), or 1 for any two grades that differ (Cohen 1960, 1968).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from ..arrays import column_sums
from .ratings import checked_weight

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from .ratings import Ratings

KappaWeights: TypeAlias = Literal["equal", "linear", "quadratic"]


@dataclass(frozen=True, eq=False)
class TwoRaters:
    """Two raters who graded the same pairs.

    Attributes
    ----------
    first, second : int
        `first` has the lower number.
    counts : ndarray of int64, shape (G, G)
        Pairs by the grade of the first (row) and of the second (column).
    shares : ndarray of float64, shape (G, G)
        The same by the weights of the pairs; sums to 1.
    """

    first: int
    second: int
    counts: IntArray
    shares: FloatArray

    @property
    def pairs(self) -> int:
        """The pairs that both graded."""
        return int(self.counts.sum())


def weighted_kappa(table: FloatArray | IntArray, weights: KappaWeights = "quadratic") -> float:
    """Return kappa of a table of grades, shape (G, G), of any scale; nan without disagreement
    to expect.

    Raises
    ------
    ValueError
        If there are no such weights.
    """
    grade = np.arange(len(table), dtype=np.float64)
    apart = np.abs(grade[:, None] - grade)
    if weights == "quadratic":
        apart = apart**2
    elif weights == "equal":
        apart = (apart > 0).astype(np.float64)
    elif weights != "linear":
        raise ValueError(f"weights must be one of {get_args(KappaWeights)}, not {weights!r}")
    share = table / table.sum() if table.sum() else np.zeros(table.shape)
    chance = share.sum(axis=1)[:, None] * share.sum(axis=0)
    expected = float((chance * apart).sum())
    return 1.0 - float((share * apart).sum()) / expected if expected > 0.0 else float("nan")


def every_two(
    ratings: Ratings, *, least: int = 1, weight: FloatArray | None = None
) -> list[TwoRaters]:
    """Return all couples of raters with `least` pairs in common or more, by their numbers."""
    given = checked_weight(weight, ratings.pairs)
    twos = ratings.twos
    couple, which = np.unique(twos.first * ratings.raters + twos.second, return_inverse=True)
    grades = ratings.grades
    cells = which * grades**2 + twos.first_grade * grades + twos.second_grade
    size, shape = len(couple) * grades**2, (len(couple), grades, grades)
    counts = np.bincount(cells, minlength=size).reshape(shape)
    heavy = column_sums(cells, given[twos.pair], number=size).reshape(shape)
    found = []
    for at in np.flatnonzero(counts.sum(axis=(1, 2)) >= least).tolist():
        first, second = divmod(int(couple[at]), ratings.raters)
        total = heavy[at].sum()
        shares = heavy[at] / total if total > 0.0 else heavy[at]
        found.append(TwoRaters(first, second, counts[at], shares))
    return found
