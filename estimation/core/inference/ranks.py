"""Which run is better, and which ranks are possible."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..arrays import BoolArray, FloatArray, IntArray, check_confidence, refuse
from ..upper import above, mirrored
from .intervals import ROUNDING, Bound, student_quantile
from .multiplicity import holm, largest_deviates
from .settled import as_far_as_certain
from .uncertainty import AS_NORMAL, variances_of_differences
from .unknown import Reason, Reasons, all_known

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .missed import Missed

# Guaranteed p-values: the smallest one, and halvings of its logarithm on the way to each.
LEAST_P = 1e-12
HALVINGS = 32
NEXT_TO_NOTHING = 1e-290  # p-values too small to be told: 0 is for what is certain


@dataclass(frozen=True, eq=False)
class Ranking:
    """The runs in order, and what is certain about it.

    Attributes
    ----------
    order : ndarray of int64, shape (k,)
        Positions of the runs, best first: value descending, equal values by tag.
    rank : ndarray of int64, shape (k,)
        1-based place of each run in `order`.
    rank_low, rank_high : ndarray of int64, shape (k,)
        Best and worst possible rank of each run. At the ranking's confidence all true ranks lie
        within these limits at once.
    verdicts : ndarray of int8, shape (k, k)
        1 where the row's run is surely better than the column's, -1 where it is surely worse.
    difference, difference_se, difference_df : ndarray of float64, shape (k, k)
        Row's value less column's value, its standard error and degrees of freedom.
    margin : ndarray of float64, shape (k, k)
        Half width of the interval of each difference taken alone, at the confidence; of a
        guaranteed one that is not symmetric, the wider half.
    adjusted_p : ndarray of float64, shape (k, k)
        Two-sided p-values of "no difference", adjusted over all pairs of runs; 1 on the diagonal.
        0 where which is better is certain, and nowhere else.
    unknown : ndarray of int8, shape (k, k)
        Why a difference is not known, a `Reason`; 0 where it is known, and on the diagonal. No
        verdict is about a difference that is not known.
    """

    order: IntArray
    rank: IntArray
    rank_low: IntArray
    rank_high: IntArray
    verdicts: NDArray[np.int8]
    difference: FloatArray
    difference_se: FloatArray
    difference_df: FloatArray
    margin: FloatArray
    adjusted_p: FloatArray
    unknown: Reasons

    def without(self, differences: BoolArray) -> Ranking:
        """Return the same with some differences that have no verdict, (k, k), not known."""
        return replace(
            self,
            adjusted_p=np.where(differences, 1.0, self.adjusted_p),
            unknown=np.where(differences, np.int8(Reason.TOO_LITTLE), self.unknown),
        )


def rank_runs(
    value: FloatArray,
    *,
    covariance: FloatArray,
    df: FloatArray,
    tags: tuple[str, ...],
    confidence: float = 0.95,
    expected: FloatArray | None = None,
    finds: FloatArray | None = None,
    freedom: float | None = None,
    least: FloatArray | None = None,
    missed: Missed | None = None,
    least_margin: FloatArray | None = None,
    unknown: Reasons | None = None,
    few: BoolArray | None = None,
    slack: FloatArray | None = None,
    surely: FloatArray | None = None,
    bound: Bound | None = None,
) -> Ranking:
    """Compare every two runs and rank them all.

    A run is surely better than another if their difference is significant in a two-sided t test
    by the step-down procedure of `largest_deviates`, or by a guaranteed bound and Holm's
    procedure, over all k (k - 1) / 2 pairs: the probability of any false verdict is at most
    1 - confidence. Run j's rank is then at least 1 + #(surely better than j) and at most
    k - #(surely worse than j).

    A difference that is `surely` above 0 has p = 0: it is the first to be rejected, and the others
    are compared without it. That needs no part of the error. Whatever else is settled, all true
    hypotheses are among those that are left, so that the largest deviate of these is not larger.
    It gives a verdict where the estimate is on its side, so that no verdict is against the order.
    Other estimates are tested where they are as near to the truth as is certain, which only makes
    them err less: one that is on the wrong side for certain has no verdict.

    Parameters
    ----------
    value : ndarray of float64, shape (k,)
    covariance : ndarray of float64, shape (k, k)
        Of the values, by the sample.
    df : ndarray of float64, shape (k, k)
        Degrees of freedom of each difference, >= 1; symmetric.
    tags : tuple of str
        Run tags: equal values are ordered by them.
    confidence : float
        Strictly between 0 and 1.
    expected, finds : ndarray of float64, shape (k, k), optional
        The covariance that is expected of the values, and from how many finds they come; see
        `uncertainty.variances`.
    freedom : float, optional
        Of whole topics; see there.
    least : ndarray of float64, shape (k, k), optional
        Standard errors that those of differences are not taken to be below for verdicts.
    missed : Missed, optional
        What may have been missed: a difference that this may make gives no verdict, however small
        its error.
    least_margin : ndarray of float64, shape (k, k), optional
        Half widths that those of differences, each taken alone, are at least.
    unknown : ndarray of int8, shape (k, k), optional
        Which differences are not known, symmetric: they give no verdict. By default none.
    few : ndarray of bool, shape (k, k), optional
        Which differences too few finds carry, symmetric: neither do they. By default none.
    slack : ndarray of float64, shape (k, k), optional
        By how much the true difference, row less column, may be smaller than what is estimated,
        because part of a run was out of the sample's reach; >= 0, by default 0. Only what a
        difference has beyond it counts as evidence, so that verdicts hold whatever the rest is.
    surely : ndarray of float64, shape (k, k), optional
        What true differences, row less column, are at least for certain (`settled`).
    bound : Bound, optional
        A guarantee for the differences: p-values and margins are then by it, not by t.

    Raises
    ------
    ValueError
        If shapes differ, a value is not finite, a slack is negative, or the confidence is out of
        range.
    """
    _check_ranking(value, covariance, df, tags, confidence)
    order = np.array(sorted(range(len(tags)), key=lambda j: (-value[j], tags[j])), dtype=np.int64)
    difference = np.subtract.outer(value, value)
    unknown = all_known(len(tags), len(tags)) if unknown is None else unknown
    se = np.sqrt(variances_of_differences(covariance, expected, finds, freedom))
    possible = difference if surely is None else _possible(difference, surely)
    certain = _without_rounding(possible if slack is None else _beyond(possible, slack), value)
    certain[(unknown != Reason.KNOWN) | (False if few is None else few)] = 0.0
    if bound is None:
        margin = half_widths(se, df, confidence)
        margin = margin if least_margin is None else np.maximum(margin, least_margin)
        errors = se if least is None else np.maximum(se, least)
        single = _p_values(certain, errors, df)
        single[(single == 0.0) & (errors > 0.0)] = NEXT_TO_NOTHING
    else:
        margin = np.maximum(bound.below(confidence), bound.above(confidence))
        single = guaranteed_p_values(certain, bound)
    settled = None
    if surely is not None:
        settled = (surely > 0.0) & (difference > 0.0) & (unknown == Reason.KNOWN)
        settled |= settled.T
        margin = as_far_as_certain(margin, difference, surely)
    of_missed = None if missed is None else adjusted_by_missed(missed, certain, settled)
    if of_missed is not None:
        no_verdict = min(1.0, 2.0 * (1.0 - confidence))
        within = of_missed > 1.0 - confidence
        single = np.where(within, np.maximum(single, no_verdict), single)
    if settled is not None:
        single = np.where(settled, 0.0, single)
    if bound is None:
        whole = covariance if expected is None else covariance + expected
        adjusted = largest_deviates(single, whole, error=1.0 - confidence)
    else:
        adjusted = holm(single)
    if of_missed is not None:
        adjusted = np.maximum(adjusted, of_missed)
    verdicts = np.where(adjusted <= 1.0 - confidence, np.sign(difference), 0.0).astype(np.int8)
    rank = np.empty(len(tags), dtype=np.int64)
    rank[order] = np.arange(1, len(tags) + 1)
    return Ranking(
        order=order,
        rank=rank,
        rank_low=1 + np.count_nonzero(verdicts == -1, axis=1),
        rank_high=len(tags) - np.count_nonzero(verdicts == 1, axis=1),
        verdicts=verdicts,
        difference=difference,
        difference_se=se,
        difference_df=df,
        margin=margin,
        adjusted_p=adjusted,
        unknown=unknown,
    )


def adjusted_by_missed(
    missed: Missed, difference: FloatArray, settled: BoolArray | None = None
) -> FloatArray:
    """Return p-values of "a tie that was made a difference by what was missed", adjusted over all.

    By Holm's procedure: differences that are beyond all that may have been missed leave the others
    fewer to be compared with, as those do that standard errors tell apart. Where `Missed.few` are
    expected all are compared, whatever was told apart, as the ends of their distributions are not
    known well. Of true ties any is told apart in no more than so large a share of the trials.

    Parameters
    ----------
    missed : Missed
    difference : ndarray of float64, shape (k, k)
        Antisymmetric.
    settled : ndarray of bool, shape (k, k), optional
        Differences that are so whatever was missed, symmetric: 0.
    """
    single = missed.p_values(difference)
    if settled is not None:
        single = np.where(settled, 0.0, single)
    compared = len(single) * (len(single) - 1) // 2
    adjusted = np.where(missed.few(), np.minimum(compared * single, 1.0), holm(single))
    np.fill_diagonal(adjusted, 1.0)
    return np.asarray(adjusted, dtype=np.float64)


def guaranteed_p_values(difference: FloatArray, bound: Bound) -> FloatArray:
    """Return the smallest errors at which a guarantee excludes that there is no difference.

    Of antisymmetric differences, (k, k), and a bound for them; symmetric, from `LEAST_P` to 1, and
    never below the exact p-value.
    """
    excluded, open_ = np.zeros_like(difference), np.full(difference.shape, math.log(LEAST_P))
    for _ in range(HALVINGS):
        middle = (excluded + open_) / 2.0
        holds = bound.below(-np.expm1(middle)) < difference
        excluded, open_ = np.where(holds, middle, excluded), np.where(holds, open_, middle)
    single = np.exp(excluded)
    return np.minimum(single, single.T)


def _check_ranking(
    value: FloatArray,
    covariance: FloatArray,
    df: FloatArray,
    tags: tuple[str, ...],
    confidence: float,
) -> None:
    check_confidence(confidence)
    square = (len(tags), len(tags))
    if value.shape != square[:1] or covariance.shape != square or df.shape != square:
        shapes = f"{value.shape}, {covariance.shape} and {df.shape} for {len(tags)} runs"
        raise ValueError(f"value, covariance and df must be those of the runs, not {shapes}")
    refuse(~np.isfinite(value), value, name="value", rule="be finite")
    refuse(np.isnan(covariance), covariance, name="covariance", rule="be a number")


def _beyond(difference: FloatArray, slack: FloatArray) -> FloatArray:
    """What is left of the differences, an antisymmetric matrix, when slack is taken off."""
    if slack.shape != difference.shape or not np.all(slack >= 0.0):
        raise ValueError(f"slack must be a matrix of the runs, nowhere below 0, not {slack}")
    ahead = np.where(difference > 0.0, np.maximum(difference - slack, 0.0), 0.0)
    return np.asarray(ahead - ahead.T, dtype=np.float64)


def _possible(difference: FloatArray, surely: FloatArray) -> FloatArray:
    """Differences brought to where they can lie; 0 where that is on the other side."""
    found = np.clip(difference, surely, -surely.T)
    return np.where(found * difference > 0.0, found, 0.0)


def _without_rounding(difference: FloatArray, value: FloatArray) -> FloatArray:
    size = np.abs(value)
    return np.where(np.abs(difference) > ROUNDING * np.add.outer(size, size), difference, 0.0)


def _p_values(difference: FloatArray, se: FloatArray, df: FloatArray) -> FloatArray:
    """Of Student's t, two-sided. They are symmetric, and the distribution takes its time."""
    runs, difference, se, df = len(df), np.abs(above(difference)), above(se), above(df)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(difference != 0.0, difference / se, 0.0)
    tail = special.ndtr(-ratio)
    if np.any(free := df < AS_NORMAL):
        tail[free] = special.stdtr(df[free], -ratio[free])
    return mirrored(2.0 * tail, runs)


def half_widths(se: FloatArray, df: FloatArray, confidence: float) -> FloatArray:
    """Half widths of differences, each taken alone, shape (k, k); exactly symmetric."""
    margin = student_quantile(above(df), confidence=confidence) * above(se)
    return mirrored(margin, len(df), diagonal=0.0)
