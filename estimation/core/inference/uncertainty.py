"""How far values and differences may be off: the one place where variances come from.

Two estimates of the same variance go together. The *squares* of what was found, the design's own
estimate, are unbiased, but 0 where nothing was found, and noisy. What is *expected* of the pairs
that may have been missed (`unseen`) is stable, and as right as a model of grades is. A variance is

    expected + (squares - expected) / 2                        if squares > expected
    expected + (squares - expected) / 2 * finds / (finds + 5) otherwise:

half way to the squares where these are larger, because a run whose documents are unlike those of
others is known by its squares alone, and down to smaller ones only as far as there are finds to
believe them: few finds are an accident, and with few of them the estimate is low as well. In
simulations on four collections this covers as well as the larger of the two, at nine tenths of its
width (``docs/methods/intervals.md``). The rule holds for a value, a difference or any other
contrast alike; it is applied to each by itself, because the rule's results for values do not say
what those for differences are.

At least half of such a variance does not hang on what the sample happened to find, and differences
that few finds carry give no verdict (`knowledge`). So quantiles are those of a normal distribution,
or of a gamma distribution for values (`intervals.gamma_limits`). Without an expectation the degrees
of freedom are those of the squares: their number of finds less one, counted as Kish does, (sum c)^2
/ sum c^2 over the squared contributions c of the found pairs. So are those of the one difference of
an adaptive round for two runs: what is expected of it has its level from these squares
(`rounds.adaptive.outlooks`), and is as uncertain as they are.

Of whole topics there are no pairs to be missed, but few topics: what is expected comes from all
runs and their lists (`Pooled`), and the more topics were drawn, the less it counts beside the
squares, as where variances of many things that were measured a few times each are moderated (Smyth
2004, *Linear models and empirical Bayes methods*). A variance is then

    (WORTH expected + f squares) / (WORTH + f)

with f degrees of freedom of the squares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .intervals import (
    degrees_of_freedom,
    difference_variances,
    gamma_limits,
    normal_quantile,
)

if TYPE_CHECKING:
    from ..arrays import FloatArray
    from ..estimates.totals import Totals
    from .missed import Missed

WORTH = 10.0  # degrees of freedom that what is expected of pooled runs counts for
FINDS_BELIEVED = 5.0  # so many that squares below what is expected count half of what they can
MOSTLY = 0.3  # a chance of uncertain pairs, in the median, above which what is missed can matter
AS_NORMAL = 1000.0  # degrees of freedom: Student's quantiles are within 1 % of normal ones


@dataclass(frozen=True, eq=False)
class Losses:
    """What is expected of pairs that lower a value: less relevant than was predicted.

    Attributes
    ----------
    find : ndarray of float64, shape (k,)
        As that of `Unseen`, of what such pairs take away.
    share : ndarray of float64, shape (k,)
        Their share of the variance, from 0 to 1.
    """

    find: FloatArray
    share: FloatArray


@dataclass(frozen=True, eq=False)
class Unseen:
    """What is expected of the pairs that were not certain to be sampled.

    Attributes
    ----------
    covariance : ndarray of float64, shape (k, k)
        Of the estimated values, without disagreement between assessors.
    find : ndarray of float64, shape (k,)
        What a find adds to each value, y_ij over its probability: its root mean square, each find
        counted as much as it adds; as the judgments have it, or half way to what the prior has if
        that is more.
    doubt : ndarray of float64, shape (k,)
        Standard error of each value as the prior alone has it, as a share of the value that the run
        would have if the belief in all its documents were that in the pairs of a sample, on
        average. It depends neither on judgments, so that whether a value counts as known does not
        (the values for which much was found would be the lucky ones), nor on other runs.
    losses : Losses or None
        Where pairs can lower a value as well as raise it: with predictions.
    missed : Missed or None
        Where most uncertain pairs are likely to be in the sample; else it would change nothing.
    usual : ndarray of float64, shape (k,), or None
        What is expected of each value on uncertain pairs; None where that is not worked out.
    alone : (int, int), optional
        Two runs whose difference alone tells how much is to be expected of it.
    """

    covariance: FloatArray
    find: FloatArray
    doubt: FloatArray
    losses: Losses | None = None
    missed: Missed | None = None
    usual: FloatArray | None = None
    alone: tuple[int, int] | None = None

    def times(self, factor: float) -> Unseen:
        """Return the same if so many times as much is expected."""
        missed = self.missed
        if missed is not None:
            missed = replace(missed, squares=factor * missed.squares)
        return replace(self, covariance=factor * self.covariance, missed=missed)


@dataclass(frozen=True, eq=False)
class Pooled:
    """What is expected of values that come from whole topics, by all runs of a round.

    Attributes
    ----------
    covariance : ndarray of float64, shape (k, k)
        Of the estimated values.
    freedom : float
        Degrees of freedom of the squares: topics, as the design counts them, less one; >= 1.
    ways : float
        In how many ways the runs of the round differ from one another, >= 1.
    apart : ndarray of float64, shape (k, k)
        What the documents of the lists let one expect of the covariance but for a factor: its
        differences are 0 for runs whose lists are the same.
    """

    covariance: FloatArray
    freedom: float
    ways: float
    apart: FloatArray

    def freedom_of_values(self, finds: FloatArray) -> FloatArray:
        """Return degrees of freedom of values, (k,), from those of their squares.

        What all runs have in common, easy topics and hard ones, no other run tells more of: the
        topics are as few for all. So the others are worth one degree of freedom at most.
        """
        own = self.freedom * (WORTH + finds) / (WORTH + self.freedom)
        return np.asarray(own + (1.0 - 1.0 / self.ways), dtype=np.float64)

    def freedom_of_differences(self, finds: FloatArray) -> FloatArray:
        """Return degrees of freedom of differences, (k, k), from those of their squares.

        What is expected is worth `WORTH`, so far as other differences tell it.
        """
        others = (self.ways - 1.0) * self.freedom
        return finds + WORTH * others / (WORTH + others)


def variances(
    covariance: FloatArray,
    expected: FloatArray | None,
    finds: FloatArray | None = None,
    freedom: float | None = None,
) -> FloatArray:
    """Return the variances of k values, shape (k,).

    Parameters
    ----------
    covariance : ndarray of float64, shape (k, k)
        By the squares.
    expected : ndarray of float64, shape (k, k), or None
        As expected; None if nothing is.
    finds : ndarray of float64, shape (k, k), or None
        From how many finds each square comes, as Kish counts them: of values on the diagonal, of
        differences beside it. None if that is not known: then no variance is below the expected.
    freedom : float or None
        Of whole topics: `Pooled.freedom`.
    """
    squares = np.maximum(np.diag(covariance), 0.0)
    if expected is None:
        return squares
    number = None if finds is None else np.diag(finds)
    return _variance(squares, np.diag(expected), number, freedom)


def variances_of_differences(
    covariance: FloatArray,
    expected: FloatArray | None,
    finds: FloatArray | None = None,
    freedom: float | None = None,
) -> FloatArray:
    """Return the variances of the differences between k values, shape (k, k); 0 on the diagonal."""
    squares = difference_variances(covariance)
    if expected is None:
        return squares
    return _variance(squares, difference_variances(expected), finds, freedom)


def variances_of_contrasts(
    contrasts: FloatArray,
    covariance: FloatArray,
    expected: FloatArray | None,
    finds: FloatArray | None = None,
    freedom: float | None = None,
) -> FloatArray:
    """Return the variances of c sums of values, (c,), from the factors of the k values, (c, k).

    The others as for `variances`; finds are of the sums, (c,).
    """

    def of(matrix: FloatArray) -> FloatArray:
        sums = np.einsum("cj,jl,cl->c", contrasts, matrix, contrasts, optimize=True)
        return np.asarray(sums, dtype=np.float64)

    squares = np.maximum(of(covariance), 0.0)
    return squares if expected is None else _variance(squares, of(expected), finds, freedom)


def level(squares: FloatArray, expected: float) -> float:
    """Return what all that is expected is multiplied by, because it is too small, at least 1.

    The squares of all runs of a round together are unbiased as those of one are, and come from many
    more finds. Where they are larger than what is expected of all, the model is wrong about all,
    and they are believed as far as there are finds; where they are smaller, what is expected stays,
    because a sample that found little has small squares *and* low values.

    Parameters
    ----------
    squares : ndarray of float64, shape (n,)
        What each judged pair adds to the variances of all runs; >= 0.
    expected : float
        What is expected that all pairs add.
    """
    total, fourth = float(squares.sum()), float((squares**2).sum())
    if not (fourth > 0.0 and expected > 0.0):
        return 1.0
    finds = total**2 / fourth
    return max(1.0, 1.0 + (total / expected - 1.0) * finds / (finds + FINDS_BELIEVED))


def value_limits(
    estimate: Totals, unseen: Unseen, variance: FloatArray, *, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals for k values, shape (k,) each.

    Gamma limits (`intervals.gamma_limits`) of what uncertain pairs add, and of what others take
    away, where predictions were too high: two sums over different pairs, which are independent, so
    that how far the value may be off follows from how far either may be, in quadrature (MOVER: Zou
    and Donner 2008, *Construction of confidence limits about effect measures*). The find more that
    limits allow for is one in all, in quadrature as well, parted between the two sums as the
    variance is: what can hardly be taken away leaves the limits of gains alone. With half a find
    for each, predictions that say nothing, and so take little away, left one run of Cranfield
    covered .80 times. Disagreement between assessors, which is as likely either way, is added in
    the same way.

    Parameters
    ----------
    estimate, unseen : Totals, Unseen
    variance : ndarray of float64, shape (k,)
        From `variances`.
    confidence : float
        Strictly between 0 and 1.
    """
    noise = variances(estimate.noise, estimate.likely_noise, estimate.contributions)
    of_pairs = np.maximum(variance - noise, 0.0)
    more = normal_quantile(confidence=confidence) ** 2 * noise
    gains, losses = estimate.gains_and_losses()
    least = 0.0 if unseen.missed is None else unseen.missed.least_reach(confidence=confidence)
    if unseen.losses is None:
        below, above = reach_of(gains, of_pairs, unseen.find, confidence)
        high = np.maximum(np.sqrt(above + more), least)
        return estimate.value - np.sqrt(below + more), estimate.value + high
    lost = unseen.losses.share
    kept = 1.0 - lost
    more_found, more_lost = np.sqrt(kept) * unseen.find, np.sqrt(lost) * unseen.losses.find
    below, above = reach_of(gains, kept * of_pairs, more_found, confidence)
    rise, fall = reach_of(losses, lost * of_pairs, more_lost, confidence)
    low, high = np.sqrt(below + fall + more), np.sqrt(above + rise + more)
    return estimate.value - low, estimate.value + np.maximum(high, least)


def reach_of(
    found: FloatArray, variance: FloatArray, step: FloatArray, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Squares of how far the limits lie below and above what was found."""
    low, high = gamma_limits(found, variance=variance, step=step, confidence=confidence)
    return (found - low) ** 2, (high - found) ** 2


def freedom(
    finds: FloatArray, expected: FloatArray | None, alone: tuple[int, int] | None = None
) -> FloatArray:
    """Return degrees of freedom, >= 1, from the numbers of finds; see the module's text."""
    of_squares = degrees_of_freedom(finds)
    if expected is None:
        return of_squares
    found = np.full_like(finds, AS_NORMAL)
    if alone is not None:
        first, second = alone
        found[first, second] = found[second, first] = min(AS_NORMAL, of_squares[first, second])
    return found


def _variance(
    squares: FloatArray, expected: FloatArray, finds: FloatArray | None, freedom: float | None
) -> FloatArray:
    if freedom is None:
        return _together(squares, expected, finds)
    return np.asarray((WORTH * expected + freedom * squares) / (WORTH + freedom), dtype=np.float64)


def _together(squares: FloatArray, expected: FloatArray, finds: FloatArray | None) -> FloatArray:
    believed = 0.0 if finds is None else finds / (finds + FINDS_BELIEVED)
    found = squares - expected
    found *= np.where(found > 0.0, 1.0, believed)
    found /= 2.0
    found += expected
    return np.asarray(found, dtype=np.float64)
