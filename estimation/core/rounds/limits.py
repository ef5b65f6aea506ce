"""Estimated values with their standard errors and intervals, and what is not known of them.

What is expected of pairs that were not judged is said in three ways, of sums, of ratios, or not at
all, and each has a function. No interval ends above `highest`, the largest value that there is, or
below 0, unless the estimate itself lies there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..inference.intervals import difference_variances, normal_quantile, student_intervals
from ..inference.knowledge import few_finds, unknown_differences, unknown_values
from ..inference.ranks import half_widths
from ..inference.uncertainty import freedom, reach_of, value_limits, variances
from ..inference.unknown import all_known
from .results import EstimatorResult

HALF = 0.5  # a find more, for the upper limit of ratios

if TYPE_CHECKING:
    from ..arrays import FloatArray
    from ..estimates.totals import Totals
    from ..inference.missed import Missed
    from ..inference.ratio_knowledge import RatioKnowledge
    from ..inference.uncertainty import Unseen


def limits_by_squares(estimate: Totals, confidence: float, highest: float) -> EstimatorResult:
    """Return estimates with intervals by what was found alone."""
    df = freedom(estimate.contributions, None)
    told = student_intervals(
        estimate.value,
        variance=variances(estimate.covariance, None),
        df=np.diag(df),
        confidence=confidence,
    )
    return _result(estimate, (told.low, told.high), highest, se=told.se, difference_df=df)


def limits_of_sums(
    estimate: Totals, unseen: Unseen, confidence: float, highest: float
) -> EstimatorResult:
    """Return sums of gains with intervals that allow for pairs that may have been missed."""
    expected, finds = unseen.covariance + estimate.likely_noise, estimate.contributions
    variance = variances(estimate.covariance, expected, finds)
    usual = estimate.value if unseen.usual is None else estimate.sure + unseen.usual
    return _result(
        estimate,
        value_limits(estimate, unseen, variance, confidence=confidence),
        highest,
        se=np.sqrt(np.maximum(variance, 0.0)),
        difference_df=freedom(finds, expected, unseen.alone),
        unknown=unknown_values(unseen.doubt),
        difference_unknown=unknown_differences(usual, estimate.covariance, expected),
        difference_few=few_finds(estimate.carried, estimate.covariance, expected),
        expected=expected,
        expected_of_sample=unseen.covariance,
        finds=finds,
        **_of_missed(unseen.missed, confidence),
    )


def limits_of_ratios(
    estimate: Totals, known: RatioKnowledge, confidence: float, highest: float
) -> EstimatorResult:
    """Return ratios with intervals that allow for what is left of their bias, and single pairs.

    They reach up at least as far as gamma limits of what uncertain pairs add do, with half a find
    more: a run whose documents nobody else returns is low, and its squares are, where these were
    missed. What others take through the denominator is as likely either way. Half widths of single
    differences are at least those by the squares alone, as errors of values are. As long as nothing
    relevant was found, a value can be all that values can: errors are shares of it.
    """
    expected, value = known.expected + estimate.likely_noise, estimate.value
    told = student_intervals(
        value,
        variance=variances(estimate.covariance, np.diag(known.of_values) + estimate.likely_noise),
        df=np.diag(known.freedom),
        confidence=confidence,
    )
    low, high = told.low, told.high
    if known.gains is not None and known.find is not None:
        noise = variances(estimate.noise, estimate.likely_noise)
        of_pairs = np.maximum(told.se**2 - noise, 0.0)
        _, above = reach_of(known.gains, of_pairs, HALF * known.find, confidence)
        more = normal_quantile(confidence=confidence) ** 2 * noise
        high = np.maximum(high, value + np.sqrt(above + more))
    if known.missed is not None and known.elsewhere is not None:
        high = np.maximum(high, value + known.missed.least_reach(confidence=confidence))
        low = np.minimum(low, value - known.elsewhere.least_reach(confidence=confidence))
    if known.nothing:
        low, high = np.zeros_like(low), np.full_like(high, highest)
    return _result(
        estimate,
        (low, high),
        highest,
        se=told.se,
        difference_df=known.freedom,
        unknown=known.unknown,
        difference_unknown=known.difference_unknown,
        expected=expected,
        **_at_least(_of_missed(known.missed, confidence), known, estimate, confidence),
    )


def _at_least(
    least: dict[str, Any], known: RatioKnowledge, estimate: Totals, confidence: float
) -> dict[str, Any]:
    """The same, and no half width below that by the squares."""
    error = np.maximum(np.sqrt(difference_variances(estimate.covariance)), known.least)
    margin = half_widths(error, known.freedom, confidence)
    return least | {
        "difference_least": known.least,
        "difference_margin": np.maximum(margin, least.get("difference_margin", 0.0)),
    }


def _of_missed(missed: Missed | None, confidence: float) -> dict[str, Any]:
    """What may have been missed, and what half widths of single differences are at least."""
    if missed is None:
        return {}
    return {
        "missed": missed,
        "difference_margin": missed.least_margins(confidence=confidence),
    }


def _result(
    estimate: Totals,
    limits: tuple[FloatArray, FloatArray],
    highest: float,
    *,
    difference_df: FloatArray,
    **more: Any,
) -> EstimatorResult:
    """Cut intervals at the ends of what values can be; `more` are fields of the result."""
    runs, (low, high) = len(estimate.value), limits
    low = np.maximum(low, 0.0)
    high = np.maximum(np.minimum(high, np.maximum(estimate.value, highest)), low)
    known = {"unknown": all_known(runs), "difference_unknown": all_known(runs, runs)}
    return EstimatorResult(
        value=estimate.value,
        df=np.diag(difference_df),
        low=low,
        high=high,
        covariance=estimate.covariance,
        difference_df=difference_df,
        noise=np.diag(estimate.noise).copy(),
        **(known | more),
    )
