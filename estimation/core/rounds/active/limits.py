"""Intervals of active rounds, and where they withhold a ratio."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...inference.intervals import degrees_of_freedom, difference_variances, student_intervals
from ...inference.ratio_knowledge import INEXACT
from ...inference.unknown import Reason, all_known, none_known
from ..results import EstimatorResult

if TYPE_CHECKING:
    from ...arrays import FloatArray, IntArray
    from ...measures.table import Measure
    from .estimates import ActiveEstimate

LEAST_FOUND = 35.0  # relevant documents in a topic, see `too_few_found`


def too_few_found(measure: Measure, found: ActiveEstimate, documents: IntArray) -> bool:
    """Say whether AP and Rprec are withheld, as the bias they keep is too large for intervals.

    In every topic it falls with the relevant documents found, of which there is one more by
    chance, and with the square of the share of its `documents`, (T,), that nobody judged: fewer
    were missed, and those that were found weigh less. Of a census nothing is left. No value
    depends on it; whether values are told does, on how much was found.
    """
    if measure.family != "ratio":
        return False
    left = 1.0 - found.judged / np.maximum(documents, 1)
    return bool((left**2 / (found.found + 1.0)).mean() > 1.0 / LEAST_FOUND)


def withheld(found: EstimatorResult) -> EstimatorResult:
    """The same with nothing known, of values and of differences."""
    runs = len(found.value)
    return replace(
        found,
        unknown=np.full(runs, Reason.FEW_RELEVANT, dtype=np.int8),
        difference_unknown=none_known(runs, Reason.FEW_RELEVANT),
    )


def with_intervals(
    found: ActiveEstimate,
    largest: FloatArray,
    confidence: float,
    *,
    is_census: bool,
    is_ratio: bool,
) -> EstimatorResult:
    """Student intervals; what is known of the variance comes from the relevant documents.

    It is at least half of what was expected, as the other half can come out below 0, and but for a
    census no value is taken for more exact than `INEXACT` of itself.

    Intervals end at the largest value, unless the estimate itself lies above. Where most documents
    are judged they reach up by those that may have been missed (`missed.Missed`). Those of
    ratios reach down as well: a document of other runs takes from them.

    As long as nothing was found no difference is known: all are 0, and so are their squares.
    """
    runs = len(found.value)
    degrees = degrees_of_freedom(np.full((runs, runs), float(found.found.sum())))
    inexact = np.zeros(runs) if is_census else (INEXACT * found.value) ** 2
    variance = np.maximum(np.diag(found.covariance), np.diag(found.likely) / 2.0) + inexact
    student = student_intervals(
        found.value, variance=variance, df=np.diag(degrees), confidence=confidence
    )
    low, high, margins, reach = student.low, student.high, None, np.zeros(runs)
    if found.missed is not None:
        reach = found.missed.least_reach(confidence=confidence)
        high = np.maximum(high, found.value + reach)
        low = np.minimum(low, found.value - reach) if is_ratio else low
        margins = found.missed.least_margins(confidence=confidence)
    unseen = ((found.value <= 0.0) | (student.se == 0.0)) & (reach == 0.0) & (not is_census)
    highest = np.maximum(largest, found.value)
    differences = all_known(runs, runs)
    if not is_census and not found.value.any():
        differences = none_known(runs, Reason.TOO_LITTLE)
    return EstimatorResult(
        value=found.value,
        se=student.se,
        df=student.df,
        low=np.maximum(np.where(unseen, 0.0, low), 0.0),
        high=np.where(unseen, highest, np.minimum(high, highest)),
        covariance=found.covariance,
        difference_df=degrees,
        unknown=all_known(runs),
        difference_unknown=differences,
        difference_least=_least_errors(found, inexact),
        missed=found.missed,
        difference_margin=margins,
    )


def _least_errors(found: ActiveEstimate, inexact: FloatArray) -> FloatArray:
    """Standard errors below which no difference is told, (k, k).

    Half of the expected variance, which is left where the other half comes out below 0, and what
    both values are inexact by.
    """
    least = np.sqrt(difference_variances(found.likely) / 2.0 + np.add.outer(inexact, inexact))
    np.fill_diagonal(least, 0.0)
    return np.asarray(least, dtype=np.float64)
