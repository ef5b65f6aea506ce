"""How far predicted grades agree with judged ones, estimated from a sample of pairs.

Both are grades x (predicted) and y (judged) of the same pairs, each judgment with a weight: one
over the probability with which its pair was drawn, so that all sums stand for the whole pool. With
weighted means m, variances s2 and covariance c, quadratically weighted kappa (Cohen 1968) is

    kappa = 1 - E (x - y)^2 / E (x - y')^2 = 2 c / (s2_x + s2_y + (m_x - m_y)^2),

y' being the grade of another pair: the second form is Lin's (1989) coefficient of concordance, and
has no table in it. Its error comes from the first order of a ratio of means (Särndal, Swensson and
Wretman 1992, section 5.5; for kappa, Fleiss, Cohen and Everitt 1969): judgment i moves kappa by

    z_i = w_i (2 (1 - kappa) dx_i dy_i - kappa (x_i - y_i)^2) / (s2_x + s2_y + (m_x - m_y)^2),

dx and dy being deviations from the means and the w_i summing to 1. Pairs of a topic are alike, so
that the z of a topic are added before they are squared: topics are the units, as if drawn from many
(for the interval, not for the weights).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..arrays import check_confidence, column_sums, frozen, refuse

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray

FEWEST_TOPICS = 2
NO_SPREAD = 1e-12  # of grades: there is nothing to agree on


@dataclass(frozen=True)
class Bounded:
    """An estimate with the ends of its interval; the ends are nan where nothing limits it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class GradeAgreement:
    """How predicted grades agree with judged ones.

    Attributes
    ----------
    kappa : Bounded
        Quadratically weighted. nan where all grades are one and the same.
    bias : Bounded
        Mean of predicted minus judged grades: above 0 the prediction is the more lenient.
    equal : float
        Weighted share of judgments that are equal to the prediction.
    table : ndarray of float64, shape (G + 1, G + 1)
        Weighted share of judgments by judged (row) and predicted (column) grade; sums to 1.
    counts : ndarray of int64, shape (G + 1, G + 1)
        Judgments, not weighted.
    topic_pairs : ndarray of int64, shape (T,)
        Judgments by topic.
    topic_bias, topic_error : ndarray of float64, shape (T,)
        Weighted mean of predicted minus judged grades, and of its absolute value, in every topic;
        nan for a topic without any.
    """

    kappa: Bounded
    bias: Bounded
    equal: float
    table: FloatArray
    counts: IntArray
    topic_pairs: IntArray
    topic_bias: FloatArray
    topic_error: FloatArray


def agreement(
    predicted: IntArray,
    judged: IntArray,
    *,
    weight: FloatArray,
    topic: IntArray,
    topics: int,
    max_grade: int,
    confidence: float = 0.95,
) -> GradeAgreement:
    """Compare predicted grades with judged ones.

    Weighted sums over a probability sample estimate those over the pool without bias; kappa is a
    ratio of such sums, and so has a bias of the order of one over the number of topics. What was
    predicted takes no part in what is drawn here, nor in what is judged.

    Parameters
    ----------
    predicted, judged : ndarray of int64, shape (m,)
        One row per judgment, grades from 0 to `max_grade`.
    weight : ndarray of float64, shape (m,)
        Above 0: one over the pair's inclusion probability and its number of judgments. All alike
        where pairs were not drawn.
    topic : ndarray of int64, shape (m,)
        From 0 to `topics` - 1.
    topics, max_grade : int
    confidence : float
        Of both intervals.

    Raises
    ------
    ValueError
        Without any judgment, or if the arrays are not as they must be.
    """
    _check(predicted, judged, weight, topic, topics, max_grade)
    check_confidence(confidence)
    share = weight / weight.sum()
    x, y = predicted.astype(np.float64), judged.astype(np.float64)
    gap = x - y
    bias = float(share @ gap)
    dx, dy = x - share @ x, y - share @ y
    scale = float(share @ (dx**2 + dy**2)) + bias**2
    spread = scale > NO_SPREAD
    kappa = float(2.0 * (share @ (dx * dy)) / scale) if spread else np.nan
    moved = (2.0 * (1.0 - kappa) * dx * dy - kappa * gap**2) / scale if spread else gap * np.nan
    number = np.bincount(topic, minlength=topics)
    used = number > 0
    degrees = int(used.sum()) - 1
    size = (max_grade + 1) ** 2
    cells = judged * (max_grade + 1) + predicted
    shape = (max_grade + 1, max_grade + 1)
    return GradeAgreement(
        kappa=_concordance_interval(kappa, _se(share * moved, topic, topics), degrees, confidence),
        bias=_plain_interval(bias, _se(share * (gap - bias), topic, topics), degrees, confidence),
        equal=float(share @ (predicted == judged)),
        table=frozen(column_sums(cells, share, number=size).reshape(shape)),
        counts=frozen(np.bincount(cells, minlength=size).reshape(shape)),
        topic_pairs=frozen(number),
        topic_bias=_by_topic(weight, gap, topic, topics),
        topic_error=_by_topic(weight, np.abs(gap), topic, topics),
    )


def _se(moved: FloatArray, topic: IntArray, topics: int) -> float:
    """Of a sum of deviations, by topics: T / (T - 1) sum_t (sum of t)^2."""
    sums = column_sums(topic, moved, number=topics)
    used = len(np.unique(topic))
    if used < FEWEST_TOPICS:
        return float("nan")
    return float(np.sqrt(used / (used - 1.0) * (sums**2).sum()))


def _quantile(degrees: int, confidence: float) -> float:
    return float(special.stdtrit(max(degrees, 1), 0.5 + confidence / 2.0))


def _plain_interval(value: float, se: float, degrees: int, confidence: float) -> Bounded:
    margin = _quantile(degrees, confidence) * se
    return Bounded(value, value - margin, value + margin)


def _concordance_interval(value: float, se: float, degrees: int, confidence: float) -> Bounded:
    """On the scale of Fisher's z, where concordance is closer to normal (Lin 1989), so that no end
    leaves -1 to 1."""
    if not abs(value) < 1.0:  # flawless, upside down, or nan: nothing is known of the error
        return Bounded(value, np.nan, np.nan)
    margin = _quantile(degrees, confidence) * se / (1.0 - value**2)
    middle = np.arctanh(value)
    return Bounded(value, float(np.tanh(middle - margin)), float(np.tanh(middle + margin)))


def _by_topic(weight: FloatArray, values: FloatArray, topic: IntArray, topics: int) -> FloatArray:
    sums = column_sums(topic, weight * values, number=topics)
    total = column_sums(topic, weight, number=topics)
    out = np.full(topics, np.nan)
    return np.asarray(np.divide(sums, total, out=out, where=total > 0.0))


def _check(
    predicted: IntArray,
    judged: IntArray,
    weight: FloatArray,
    topic: IntArray,
    topics: int,
    max_grade: int,
) -> None:
    if not len(predicted) or len({len(a) for a in (predicted, judged, weight, topic)}) > 1:
        raise ValueError("predicted, judged, weight and topic must be of one length, at least 1")
    for name, grades in (("predicted", predicted), ("judged", judged)):
        off = (grades < 0) | (grades > max_grade)
        refuse(off, grades, name=name, rule=f"lie between 0 and {max_grade}")
    refuse(~(weight > 0.0) | np.isinf(weight), weight, name="weight", rule="be above 0 and finite")
    refuse((topic < 0) | (topic >= topics), topic, name="topic", rule=f"be below {topics}")
