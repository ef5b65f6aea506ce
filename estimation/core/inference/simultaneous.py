"""Intervals of all differences at once, by which runs are called equivalent (`equivalence`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .equivalence import SHARE, Equivalence
from .intervals import student_quantile
from .settled import as_far_as_certain

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray
    from .intervals import Bound
    from .ranks import Ranking


def equivalence(
    ranking: Ranking,
    within: float,
    *,
    confidence: float,
    slack: FloatArray,
    least: FloatArray | None = None,
    few: BoolArray | None = None,
    surely: FloatArray | None = None,
    bound: Bound | None = None,
) -> Equivalence:
    """Return the simultaneous intervals of all differences; see the module's text.

    Parameters
    ----------
    ranking : Ranking
        By values of which the larger is the better.
    within : float
        Differences up to this one are negligible.
    confidence : float
        Of verdicts and equivalence together.
    slack : ndarray of float64, shape (k, k)
        As for `rank_runs`.
    least : ndarray of float64, shape (k, k), optional
        As for `rank_runs`.
    few : ndarray of bool, shape (k, k), optional
        As for `rank_runs`: intervals of these differences are never within what is negligible.
    surely : ndarray of float64, shape (k, k), optional
        As for `rank_runs`: no interval reaches beyond what is certain, or lies outside of it.
    bound : Bound, optional
        As for `rank_runs`.
    """
    runs = len(ranking.order)
    error = SHARE * (1.0 - confidence) / max(runs * (runs - 1) // 2, 1)
    if bound is None:
        reach = student_quantile(ranking.difference_df, confidence=1.0 - 2.0 * error)
        se = ranking.difference_se
        below = above = reach * (se if least is None else np.maximum(se, least))
    else:
        below, above = bound.below(1.0 - error), bound.above(1.0 - error)
    if few is not None:
        apart = np.where(few, 2.0 * within, 0.0)
        below, above = np.maximum(below, apart), np.maximum(above, apart)
    low = ranking.difference - below - slack
    high = ranking.difference + above + slack.T
    if surely is not None:
        low, high = (np.clip(end, surely, -surely.T) for end in (low, high))
    return Equivalence(within, low, high)


def margins(
    ranking: Ranking,
    confidence: float,
    bound: Bound | None = None,
    least: FloatArray | None = None,
    surely: FloatArray | None = None,
) -> FloatArray:
    """Return half widths of the differences, each taken alone, as `Ranking.margin`, (k, k)."""
    if bound is not None:
        margin = np.maximum(bound.below(confidence), bound.above(confidence))
    else:
        reach = student_quantile(ranking.difference_df, confidence=confidence)
        margin = np.maximum(reach * ranking.difference_se, 0.0 if least is None else least)
    return margin if surely is None else as_far_as_certain(margin, ranking.difference, surely)
