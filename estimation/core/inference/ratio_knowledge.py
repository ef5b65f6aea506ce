"""How far ratio measures may be off, and where a sample says too little about them to show them.

The delta method sees the relevant documents that were found. What may have been missed follows, as
for sums of gains (`unseen`), from an `Outlook` of all pairs: ratios are linearized where every pair
has its expected utility, and the variance of the sum of z_i, with z as in `ratios`, is

    E_jl = sum_i (1 - pi_i) / pi_i E[z_ij z_il] (1 + v_x)^p,    v_x = Var(D^_x) / D_x^2,

D_x the denominator of the topic. The last factor is for what a linearization leaves out. A ratio of
estimates errs by about the relative variance v of the denominator more than its tangent does, and
p = 1; the numerator of AP is a sum of products of two estimates, whose relative variance is
(1 + v)^2 - 1, and p = 2. On TREC-8 and DL 2019 differences of AP had 1.2 to 2 times the variance of
the tangent where v was 0.1 to 0.2, 1.7 to 2.1 times at 0.5, and 2 to 3.4 times above 1.4.

Bias. What is taken off a ratio (`RatioEstimate.bias`) rests on the documents found, of which the
unlikely ones are too few as a rule, so that it is too small. The expected second-order bias of a
topic, -Cov(z, D) / D at the outlook, is too large where v is not small, because the series does not
converge there; divided by 1 + 2 v it was 0.9 to 1.8 times the bias before correction for AP and 0.7
to 2.0 times for Rprec (the same collections, 1 to 20 % of the pool). No series sees topics of which
nothing relevant is found at all, whose ratio is estimated as 0: of an expected share n of the
topics, a value loses n / (1 - n) of what is left of it. What all that leaves over after the
correction, l_j for run j, is added to the variances as l_j l_l: the errors of a value then have the
root mean square sqrt(E_jj + l_j^2), and the difference of two runs gets the difference of their
biases. Unless every pair is certain, a value is moreover never taken for more exact than `INEXACT`
of itself: a relevant document that nobody expects can change the ideal list of a topic.

Withheld is (`Reason.FEW_RELEVANT`)

* a value whose left bias is larger than `MOST_BIAS` standard errors, and every difference that it
  has a part in (of rounds that learn, where the model tells the bias of every run, what two runs
  have in common of it is in no difference): intervals allow for an error that is as likely either
  way, not for this one;
* a value whose standard error is more than `MOST_ERROR` of it;
* a difference whose left bias is larger than `MOST_BIAS_OF_DIFFERENCE` standard errors, or whose
  standard error is a large share of the mean of the two values.

One relevant document that nobody judged may turn a tie into a verdict, where next to all that
matters is judged and next to nothing is expected of the rest; and it moves the value of a run by
more than a normal distribution gives a chance to. Rounds that say which pairs were not judged
(`knowledge_at`) have limits and verdicts that allow for it, as those of sums of gains do
(`uncertainty.Missed`): documents of a run raise it, and those of others take from it.

No estimated value depends on any of this, so that it biases none; what is withheld does
depend on the judgments, through the outlook and the values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import column_sums, frozen, share_of
from ..estimates.products import cross_product
from ..estimates.ratio_lines import Frame, Gains, Tangent
from .intervals import difference_variances
from .uncertainty import Missed, variances, variances_of_differences
from .unknown import MOST_DOUBT, Reason, Reasons, all_known

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray
    from ..data.pool import Pool
    from ..estimates.drawn import Drawn
    from ..estimates.ratio_labels import RatioEstimate
    from ..measures.table import Measure
    from .of_all_runs import OfAllRuns
    from .outlook import Outlook

FREEDOM_OF_FINDS = 8.0  # Satterthwaite 1946, of (squares + expected) / 2
DAMPING = 2.0  # of the expected bias, per relative variance of the denominator
MOST_BIAS, MOST_BIAS_OF_DIFFERENCE = 2.0, 1.0  # standard errors
MOST_ERROR = 0.5  # a standard error, as a share of the value
FINDS_BELIEVED = 60.0  # so many that squares count half
ALMOST_CERTAIN = 1.0 - 1e-9
INEXACT = 0.001  # a standard error that is always possible, as a share of the value


@dataclass(frozen=True, eq=False)
class RatioKnowledge:
    """What is expected of the errors of k ratios, and what is not known.

    Attributes
    ----------
    expected : ndarray of float64, shape (k, k)
        Covariance of the values, with the bias that may be left, without disagreement between
        assessors, as it is believed of differences.
    of_values : ndarray of float64, shape (k,)
        Variances of the values, likewise, as they are believed of values.
    unknown, difference_unknown : ndarray of int8, shapes (k,) and (k, k)
        A `Reason` each.
    finds : ndarray of float64, shape (k, k)
        Finds that carry each value and difference, at least 1: without any, a variance is the
        expected one, and no noisier for that.
    missed, elsewhere : Missed or None
        What is expected of relevant pairs that were not judged: what they would add to runs that
        return them, and take through the denominator. None: nothing is allowed for a single one.
    """

    expected: FloatArray
    of_values: FloatArray
    unknown: Reasons
    difference_unknown: Reasons
    finds: FloatArray
    missed: Missed | None = None
    elsewhere: Missed | None = None

    @property
    def freedom(self) -> FloatArray:
        """Degrees of freedom: half of a variance varies by one over the number of finds."""
        return FREEDOM_OF_FINDS * self.finds


def ratio_knowledge(
    pool: Pool, measure: Measure, *, drawn: Drawn, outlook: Outlook, found: RatioEstimate
) -> RatioKnowledge:
    """Work out how far estimated ratios may be off, and which of them to withhold.

    The outlook is of the pairs of the pool; `found` is what the sample says.
    """
    return knowledge_at(AtOutlook.of(pool, measure, drawn, outlook), measure, found)


def knowledge_at(
    at: AtOutlook,
    measure: Measure,
    found: RatioEstimate,
    *,
    unjudged: BoolArray | None = None,
    of_all: OfAllRuns | None = None,
    goal: BoolArray | None = None,
) -> RatioKnowledge:
    """Work out the same from a linearization at an outlook.

    With the pairs that were not judged, (N,), it is allowed for what a single one would change.
    `of_all` is known of rounds that learn, and which runs are of their goal, (k,).
    """
    (left, of_value), learned = _bias_left(at, found), found.bias_left is not None
    spread, in_common = _believed(at.covariance(measure), found), 0.0
    of_values = np.diag(spread)
    if of_all is not None and goal is not None:
        spread = _believed(of_all.as_far_apart(at.covariance(measure), goal), found)
        in_common = of_all.bias
    if at.factor.any():
        inexact = (INEXACT * found.estimate.value) ** 2
        spread, of_values = spread + np.diag(inexact), of_values + inexact
    expected = spread + np.multiply.outer(left, left) + in_common
    biased = np.abs(of_value) > MOST_BIAS * np.sqrt(np.maximum(of_values, 0.0))
    of_values = of_values + left**2 + in_common
    apart = np.abs(np.subtract.outer(left, left))
    unclear = apart > MOST_BIAS_OF_DIFFERENCE * np.sqrt(difference_variances(spread))
    unclear |= _vague_differences(found, expected)
    if not learned:
        unclear |= np.logical_or.outer(biased, biased)
    np.fill_diagonal(unclear, False)
    return RatioKnowledge(
        expected=expected,
        of_values=of_values,
        unknown=_reasons(biased | _vague_values(found, of_values)),
        difference_unknown=_reasons(unclear),
        finds=np.maximum(found.estimate.contributions, 1.0),
        missed=None if unjudged is None else at.missed(unjudged),
        elsewhere=None if unjudged is None else at.missed_elsewhere(unjudged),
    )


def _bias_left(at: AtOutlook, found: RatioEstimate) -> tuple[FloatArray, FloatArray]:
    """What may be left of the bias of every run, for differences and for values, (k,) each."""
    if found.bias_left is not None and found.bias_of_value is not None:
        return found.bias_left, found.bias_of_value
    left = at.bias() - found.bias
    left = left - found.estimate.value * at.overlooked / (1.0 - at.overlooked)
    return left, left


def _believed(expected: FloatArray, found: RatioEstimate) -> FloatArray:
    """What is expected; of rounds that learn the less, the more finds of each run there are."""
    if found.bias_left is None:
        return expected
    estimate = found.estimate
    finds = np.diag(estimate.contributions)
    share = np.sqrt(finds / (finds + FINDS_BELIEVED))
    rest = np.sqrt(1.0 - share**2)
    squares = estimate.covariance - estimate.noise
    shown = np.multiply.outer(share, share) * squares
    return np.asarray(shown + np.multiply.outer(rest, rest) * expected, dtype=np.float64)


def _reasons(withheld: BoolArray) -> Reasons:
    return np.where(withheld, np.int8(Reason.FEW_RELEVANT), all_known(*withheld.shape))


def _vague_values(found: RatioEstimate, of_values: FloatArray) -> BoolArray:
    estimate = found.estimate
    error = np.sqrt(variances(estimate.covariance, np.diag(of_values) + estimate.noise))
    return np.asarray(error > MOST_ERROR * estimate.value)


def _vague_differences(found: RatioEstimate, expected: FloatArray) -> BoolArray:
    estimate = found.estimate
    mean = np.add.outer(estimate.value, estimate.value) / 2.0
    variance = variances_of_differences(estimate.covariance, expected + estimate.noise)
    return np.asarray(np.sqrt(variance) > MOST_DOUBT * mean)


@dataclass(frozen=True, eq=False)
class AtOutlook:
    """Ratios linearized where every pair has its expected utility, with moments of the sample.

    With F_i = (1 - pi_i) / pi_i, a_ij and b_xj the slopes by numerator and denominator, u_i the
    utility and h_i what the pair moves the denominator by.

    Attributes
    ----------
    tangent : Tangent
        Its frame has all N pairs.
    factor : ndarray of float64, shape (N,)
        F_i; 0 of pairs out of reach.
    squares, crossed, falling : ndarray of float64, shape (N,)
        E[u_i^2], E[u_i h_i] and E[h_i^2].
    overlooked : float
        Expected share of topics that have something relevant, of which nothing is found.
    """

    tangent: Tangent
    factor: FloatArray
    squares: FloatArray
    crossed: FloatArray
    falling: FloatArray
    overlooked: float = 0.0

    @classmethod
    def of(cls, pool: Pool, measure: Measure, drawn: Drawn, outlook: Outlook) -> AtOutlook:
        gain = np.diff(measure.utilities(outlook.grades))
        reach = outlook.reach(np.arange(len(pool))) * (drawn.inclusion > 0.0)
        if gain.any():  # else the scale ends below what counts as relevant: one level without gain
            reach, gain = reach[gain > 0.0], gain[gain > 0.0]
        else:
            reach, gain = 0.0 * reach[:1], gain[:1]
        gains = Gains(gain, reach, np.arange(len(pool)), np.ones(len(pool)))
        tangent = Tangent.of(Frame.of(pool, measure, gains, None), measure)
        shares = -np.diff(reach, axis=0, append=0.0)  # of judgments that reach just this level
        utility = np.cumsum(gain)[:, None]
        falling = np.cumsum(gain[:, None] * tangent.level_slope, axis=0)[:, tangent.frame.topic]
        return cls(
            tangent=tangent,
            factor=share_of(1.0 - drawn.inclusion, of=drawn.inclusion),
            squares=np.add.reduce(shares * utility**2),
            crossed=np.add.reduce(shares * utility * falling),
            falling=np.add.reduce(shares * falling**2),
            overlooked=_overlooked(tangent.frame, reach[0], drawn.inclusion),
        )

    @property
    def relative_variance(self) -> FloatArray:
        """v of every topic's denominator, shape (T,)."""
        return np.asarray(self._variance * self.tangent.reciprocal**2, dtype=np.float64)

    def more(self, measure: Measure) -> FloatArray:
        """(1 + v)^p of every topic, shape (T,)."""
        power = 2.0 if measure.name == "AP" else 1.0
        return np.asarray((1.0 + self.relative_variance) ** power, dtype=np.float64)

    def covariance(self, measure: Measure) -> FloatArray:
        """E, shape (k, k)."""
        if measure not in self._found:
            self._found[measure] = frozen(self._covariance(self.more(measure)))
        return self._found[measure]

    @cached_property
    def _found(self) -> dict[Measure, FloatArray]:
        return {}

    def scale(self, measure: Measure) -> FloatArray:
        """By how much the squared slopes of each pair count in E, shape (N,)."""
        return self._scale(self.more(measure))

    def by_denominators(self, measure: Measure) -> FloatArray:
        """E less what these squared slopes add up to, shape (k, k)."""
        return self._by_denominators(self.more(measure))

    def tangent_covariance(self) -> FloatArray:
        """E where v is 0: of the tangent alone."""
        return self._covariance(np.ones_like(self._variance))

    def _covariance(self, more: FloatArray) -> FloatArray:
        """With so many times the factors of the pairs of each topic, (T,)."""
        own = cross_product(self.tangent.slopes, self._scale(more))
        return own + self._by_denominators(more)

    def _scale(self, more: FloatArray) -> FloatArray:
        return np.asarray(more[self.tangent.frame.topic] * self.factor * self.squares)

    def _by_denominators(self, more: FloatArray) -> FloatArray:
        below = self.tangent.topic_slope
        mixed = _cross_sums(more[:, None] * self._together, below)
        return _cross_sums(below * (more * self._variance)[:, None], below) - mixed - mixed.T

    def missed(self, unjudged: BoolArray) -> Missed:
        """Return what unjudged pairs, (N,), would add to the runs that return them.

        Each is taken for as likely as its square tells, and for as good as can be.
        """
        frame, some = self.tangent.frame, np.flatnonzero(unjudged | (self.factor > 0.0))
        rows, topic, runs = self.tangent.slopes[some], frame.topic[some], frame.runs
        at = np.repeat(np.arange(len(some)), np.diff(rows.indptr))
        step = rows.data * frame.gains.gain.sum() - self._taken[topic[at], rows.indices]
        step = np.maximum(step, 0.0)
        open_pairs, squares = unjudged[some][at], step**2
        likely = step * open_pairs * self.squares[some][at]
        total, cubes, left, sampled = (
            column_sums(rows.indices, each, number=runs)
            for each in (likely, likely * squares, open_pairs * squares, ~open_pairs * squares)
        )
        largest = np.zeros(runs)
        np.maximum.at(largest, rows.indices, squares)
        expected = replace(self, factor=unjudged.astype(np.float64)).tangent_covariance()
        left = share_of(left, of=sampled + largest)
        return Missed(expected, np.sqrt(share_of(cubes, of=total)), left)

    def missed_elsewhere(self, unjudged: BoolArray) -> Missed:
        """Return what they would take from values through the denominator.

        Pairs that a run does return are counted too, so that it is no less than others take.
        """
        per_topic, step = self.tangent.frame.per_topic, np.maximum(self._taken, 0.0)
        likely = per_topic(unjudged * self.squares)[:, None]
        left = per_topic(unjudged.astype(np.float64))[:, None]
        sampled = per_topic((~unjudged & (self.factor > 0.0)).astype(np.float64))[:, None]
        squares = step**2
        total, cubes, expected = (
            (likely * each).sum(axis=0) for each in (step, step * squares, squares)
        )
        of = (sampled * squares).sum(axis=0) + squares.max(axis=0, initial=0.0)
        return Missed(
            np.diag(expected / self.tangent.frame.gains.gain.sum() ** 2),
            np.sqrt(share_of(cubes, of=total)),
            share_of((left * squares).sum(axis=0), of=of),
        )

    @cached_property
    def _taken(self) -> FloatArray:
        """What a pair of the best utility takes from a value through the denominator, (T, k)."""
        tangent = self.tangent
        falls = (tangent.frame.gains.gain[:, None] * tangent.level_slope).sum(axis=0)
        return np.asarray(tangent.topic_slope * falls[:, None], dtype=np.float64)

    def bias(self) -> FloatArray:
        """The expected bias of every run before correction, damped, shape (k,)."""
        return np.asarray(self.bias_by_topic().sum(axis=0), dtype=np.float64)

    def bias_by_topic(self) -> FloatArray:
        """The same of every topic, shape (T, k)."""
        tangent = self.tangent
        together = self._together - tangent.topic_slope * self._variance[:, None]
        scale = tangent.reciprocal / (1.0 + DAMPING * self.relative_variance)
        return np.asarray(-(together * scale[:, None]), dtype=np.float64)

    @cached_property
    def _variance(self) -> FloatArray:
        """sum_i F_i E[h_i^2] over the pairs of each topic, shape (T,)."""
        return self.tangent.frame.per_topic(self.factor * self.falling)

    @cached_property
    def _together(self) -> FloatArray:
        """sum_i F_i E[u_i h_i] a_ij over them, shape (T, k)."""
        frame = self.tangent.frame
        return frame.per_cell(self.tangent.slope * (self.factor * self.crossed)[frame.place])


def _overlooked(frame: Frame, chance: FloatArray, inclusion: FloatArray) -> float:
    """`AtOutlook.overlooked`, from the chances of pairs to be relevant, and to be sampled."""
    logs = np.log1p(-np.minimum(chance * inclusion, ALMOST_CERTAIN))
    nothing_found = np.exp(frame.per_topic(logs))
    logs = np.log1p(-np.minimum(chance, ALMOST_CERTAIN))
    overlooked = np.mean(nothing_found - np.exp(frame.per_topic(logs)))
    return min(float(overlooked), ALMOST_CERTAIN)


def _cross_sums(first: FloatArray, second: FloatArray) -> FloatArray:
    """first' second, (k, k), added up in a fixed order on every machine."""
    return np.asarray(sparse.csr_array(first.T) @ second, dtype=np.float64)
