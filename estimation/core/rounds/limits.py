"""Estimated totals with their standard errors and intervals, and what is not known of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..inference.intervals import student_intervals
from ..inference.knowledge import few_finds, unknown_differences, unknown_values
from ..inference.uncertainty import freedom, value_limits, variances
from ..inference.unknown import all_known
from .results import EstimatorResult

if TYPE_CHECKING:
    from ..estimates.estimators import Totals
    from ..inference.ratio_knowledge import RatioKnowledge
    from ..inference.uncertainty import Unseen


def with_intervals(
    estimate: Totals,
    unseen: Unseen | None,
    confidence: float,
    highest: float,
    *,
    ratios: RatioKnowledge | None = None,
) -> EstimatorResult:
    """Return estimates with the ends of their intervals.

    Parameters
    ----------
    estimate : Totals
    unseen : Unseen or None
        What is expected of pairs that may have been missed, where that is known.
    confidence : float
    highest : float
        No interval ends above it, unless the estimate itself lies there.
    ratios : RatioKnowledge, optional
        What is known of ratios, which are no totals.
    """
    runs, value = len(estimate.value), estimate.value
    expected = None if unseen is None else unseen.covariance + estimate.noise
    alone = None if unseen is None else unseen.alone
    difference_df = freedom(estimate.contributions, expected, alone)
    finds = None if ratios is not None or expected is None else estimate.contributions
    if ratios is not None:
        expected, difference_df = ratios.expected + estimate.noise, ratios.freedom
    variance = variances(estimate.covariance, expected, finds)
    student = student_intervals(
        value, variance=variance, df=np.diag(difference_df), confidence=confidence
    )
    low, high = student.low, student.high
    unknown, difference_unknown, few = all_known(runs), all_known(runs, runs), None
    if ratios is not None:
        unknown, difference_unknown = ratios.unknown, ratios.difference_unknown
    elif unseen is not None and expected is not None:
        unknown = unknown_values(unseen.doubt)
        usual = value if unseen.usual is None else estimate.sure + unseen.usual
        difference_unknown = unknown_differences(usual, estimate.covariance, expected)
        few = few_finds(estimate.carried, estimate.covariance, expected)
        low, high = value_limits(estimate, unseen, variance, confidence=confidence)
    missed = None if unseen is None else unseen.missed
    if ratios is not None and ratios.missed is not None and ratios.elsewhere is not None:
        missed = ratios.missed
        high = np.maximum(high, value + missed.least_reach(confidence=confidence))
        low = np.minimum(low, value - ratios.elsewhere.least_reach(confidence=confidence))
    low = np.maximum(low, 0.0)
    return EstimatorResult(
        value=value,
        se=student.se,
        df=student.df,
        low=low,
        high=np.maximum(np.minimum(high, np.maximum(value, highest)), low),
        covariance=estimate.covariance,
        difference_df=difference_df,
        unknown=unknown,
        difference_unknown=difference_unknown,
        difference_few=few,
        expected=expected,
        finds=finds,
        noise=np.diag(estimate.noise).copy(),
        difference_least=None if missed is None else missed.least_errors(confidence=confidence),
    )
