"""How far ratio measures may be off, and where a sample says too little about them to show them.

The delta method sees the relevant documents that were found. What may have been missed follows, as
for sums of gains (`unseen`), from an `Outlook` of all pairs: ratios are linearized where every pair
has its expected utility, and the variance of the sum of z_i, with z as in `ratios`, is

    E_jl = sum_i (1 - pi_i) / pi_i E[z_ij z_il] (1 + v_x)^p,    v_x = Var(D^_x) / D_x^2,

D_x the denominator of the topic. The last factor is for what a linearization leaves out. A ratio of
estimates errs by about the relative variance v of the denominator more than its tangent does, and
p = 1; the numerator of AP is a sum of products of two estimates, whose relative variance is
(1 + v)^2 - 1, and p = 2. On TREC-8 and DL 2019 differences of AP had 1.2 to 2 times the variance of
the tangent where v was 0.1 to 0.2, 1.7 to 2.1 times at 0.5, and 2 to 3.4 times above 1.4. The
squares of what was found are of tangents as well, and have the same factor. In rounds that learn
p = 1 for AP, too: pairs weigh there as what is expected of them, corrected, and not 1 / pi times.
With p = 2 variances of differences were 2.3 times what these err by (TREC-8, 10 % judged, where v
is .05 in the median and .2 in a tenth of the topics).

A model expects too little of a run whose documents are unlike those of others, the best run, often.
Its squares tell; so no error of a value is below that by its squares alone, and no half width of a
single difference. (TREC-8, nDCG@10, adaptive, 2 and 5 %: the worst run was covered .74 and .82
times.) Verdicts, which hold with margins of several standard errors, mix both (`uncertainty`).

Bias. What finds tell of it rests on the documents found, of which the unlikely ones are too few as
a rule, so that it is too small. The expected second-order bias of a topic, -Cov(z, D) / D at the
outlook, is too large where v is not small, because the series does not converge there; divided by
1 + 2 v it was 0.9 to 1.8 times the bias before correction for AP and 0.7 to 2.0 times for Rprec
(TREC-8 and DL 2019, 1 to 20 % of the pool). The mean of both is taken off (`RatioEstimate.bias`);
differences allow for as much more, values for all that the two are apart. Where v is 0.7 to 3, by
few judgments of Cranfield and DL 2019, the bias of Rprec was 1.1 to 2.6 times the expected one, so
that its values (differences have little of it) allow for 1 + 0.7 v. No series sees topics of which
nothing relevant is found at all, whose ratio is estimated as 0: of an expected share n of the
topics, a value loses n / (1 - n) of what is left of it. What all that leaves over, l_j for run j,
is added to the variances as l_j l_l: the errors of a value then have the root mean square
sqrt(E_jj + l_j^2), and the difference of two runs gets the difference of their biases. By how much
values of rounds that learn are lower than unbiased sums say is allowed for in the same way, as far
as l_j does not allow for it already (`BiasLeft.further_down`); nothing is withheld for it. Unless
every pair is certain, a value is moreover never taken for more exact than `INEXACT` of itself: a
relevant document that nobody expects can change the ideal list of a topic.

Neither series nor tangent sees that a ratio bends: that of nDCG where the ideal list is full, and
Rprec at the last rank that counts, which moves with the estimated number R. By how much R is off,
so many documents next to that rank count that should not, or the reverse, and a run has the same
ones in every sample. Of rounds drawn at once values have twice `INEXACT`, and Rprec an error of
half of these documents, of a third in differences, in every topic (`AtOutlook.by_last_rank`): on
Cranfield, with 8 000 of 15 393 pairs, a value was covered .82 times without it (the worst run .41),
and three campaigns in five had a false verdict.

Where few runs are judged little below the top, ideal lists of nDCG are estimated short, or full,
and no linearization sees it: `ideal_lists`.

Values reach up at least as far as gamma limits with half a find more do (`rounds.limits`): a run
whose documents nobody else returns is low, and its squares are, where these were missed.

A bias that may be left is believed up to so many standard errors, `MOST_BIAS` of a value and
`MOST_BIAS_OF_DIFFERENCE` of a difference. Beyond, the interval is that of a larger one, as many
times as it is beyond: where a series is most of an error, it is known roughly. Such values and
differences were withheld, as intervals allow for an error that is as likely either way and not for
this one; but a difference many times as large as its bias is no less decided for it (decision
0097).

Withheld is (`Reason.FEW_RELEVANT`)

* everything, where the relative variance v of half of the denominators is above `MOST_VARIANCE`
  (in rounds whose model does not tell the bias of every run), or where nothing relevant was found
  and something could have been missed;
* a value whose standard error is more than `MOST_ERROR` of it;
* a difference whose standard error is a large share of the mean of the two values;
* of Rprec in rounds drawn at once the differences of values whose bias is not believed: where it is
  so large, series tell too little of them (Cranfield to rank 10, 1 000 pairs: .90 covered).

One relevant document that nobody judged may turn a tie into a verdict, where next to all that
matters is judged and next to nothing is expected of the rest; and it moves the value of a run by
more than a normal distribution gives a chance to. Rounds that say which pairs were not judged
(`knowledge_at`) have limits and verdicts that allow for it, as those of sums of gains do
(`missed.Missed`): documents of a run raise it, and those of others take from it.

No estimated value depends on what is allowed for or withheld, so that it biases none; what is
withheld does depend on the judgments, through the outlook and the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import share_of
from ..estimates.ratio_labels import BiasLeft
from .intervals import difference_variances
from .ratio_outlook import DAMPING, AtOutlook
from .uncertainty import variances, variances_of_differences
from .unknown import MOST_DOUBT, Reason, Reasons, all_known

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray
    from ..estimates.ratio_labels import RatioEstimate
    from ..measures.table import Measure
    from .missed import Missed
    from .of_all_runs import OfAllRuns

FREEDOM_OF_FINDS = 8.0  # Satterthwaite 1946, of (squares + expected) / 2
DAMPING_OF_RPREC = 0.7
MOST_VARIANCE = 5.0  # relative, of the denominators of half of the topics
MOST_BIAS, MOST_BIAS_OF_DIFFERENCE = 2.0, 1.0  # standard errors
MOST_ERROR = 0.5  # a standard error, as a share of the value
FINDS_BELIEVED = 60.0  # so many that squares count half
INEXACT = 0.001  # a standard error that is always possible, as a share of the value
INEXACT_BENT = 0.002  # of values of rounds drawn at once
MOST_RELEVANT = 0.7  # of all documents, where Rprec goes down to a rank that is not known
LAST_RANK, LAST_RANK_APART = 1 / 2, 1 / 3  # of documents: of values, and as differences have it


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
    least : ndarray of float64, shape (k, k)
        What standard errors of differences are at least.
    gains, find : ndarray of float64, shape (k,), or None
        What uncertain pairs add to each value, and what a find does (`AtOutlook.find`); None where
        errors are about what a model predicted.
    missed, elsewhere : Missed or None
        What is expected of relevant pairs that were not judged: what they would add to runs that
        return them, and take through the denominator. None: nothing is allowed for a single one.
    nothing : bool
        Whether nothing relevant was found, of which errors are shares.
    """

    expected: FloatArray
    of_values: FloatArray
    unknown: Reasons
    difference_unknown: Reasons
    finds: FloatArray
    least: FloatArray
    gains: FloatArray | None = None
    find: FloatArray | None = None
    missed: Missed | None = None
    elsewhere: Missed | None = None
    nothing: bool = False

    @property
    def freedom(self) -> FloatArray:
        """Degrees of freedom: half of a variance varies by one over the number of finds."""
        return FREEDOM_OF_FINDS * self.finds


def knowledge_at(
    at: AtOutlook,
    measure: Measure,
    found: RatioEstimate,
    *,
    unjudged: BoolArray | None = None,
    of_all: OfAllRuns | None = None,
    goal: BoolArray | None = None,
    of_lists: FloatArray | None = None,
) -> RatioKnowledge:
    """Work out how far estimated ratios may be off, and which of them to withhold.

    By a linearization at an outlook; `found` is what the sample says. With the pairs that were not
    judged, (N,), it is allowed for what a single one would change. `of_all` is known of rounds
    that learn, and which runs are of their goal, (k,). `of_lists`, (k, k), is what errors of ideal
    lists add to the covariance.
    """
    left = _bias_left(at, measure, found) if found.left is None else found.left
    known = None if of_all is None or goal is None else (of_all, goal)
    spread, of_values = _spread(at, measure, found, known)
    if of_lists is not None:
        spread, of_values = spread + of_lists, of_values + np.diag(of_lists)
    shared, apart = 0.0 if of_all is None else of_all.bias, left.of_differences
    lower = left.further_down
    expected = spread + shared + np.multiply.outer(apart, apart) + np.multiply.outer(lower, lower)
    squared = left.of_values**2
    doubted = squared > MOST_BIAS**2 * of_values
    times = _how_often(squared, MOST_BIAS**2 * of_values)
    of_values = of_values + times * (squared if of_all is None else apart**2 + shared) + lower**2
    least = _errors_of_differences(found, spread, expected, left)
    unclear = least > MOST_DOUBT * np.add.outer(found.estimate.value, found.estimate.value) / 2.0
    if found.left is None and measure.name == "Rprec":
        unclear |= np.logical_or.outer(doubted, doubted)
    nothing = bool(at.factor.any()) and not found.found.any()
    vague = nothing or (found.left is None and _no_series(at)) or _ends_among_relevant(at, measure)
    unclear |= vague
    np.fill_diagonal(unclear, False)
    return RatioKnowledge(
        expected=expected,
        of_values=of_values,
        unknown=_reasons(vague | _vague_values(found, of_values)),
        difference_unknown=_reasons(unclear),
        finds=np.maximum(found.estimate.contributions, 1.0),
        least=least,
        gains=found.gains,
        find=None if found.gains is None else at.find(),
        missed=None if unjudged is None else at.missed(unjudged),
        elsewhere=None if unjudged is None else at.missed_elsewhere(unjudged),
        nothing=nothing,
    )


def _spread(
    at: AtOutlook, measure: Measure, found: RatioEstimate, known: tuple[OfAllRuns, BoolArray] | None
) -> tuple[FloatArray, FloatArray]:
    """What is expected but for bias: covariance as differences have it, (k, k), and variances of
    values, (k,)."""
    usual, estimate = at.covariance, found.estimate
    spread = _believed(usual, found)
    of_values = np.maximum(np.diag(spread), np.diag(estimate.covariance - estimate.noise))
    of_values = np.maximum(of_values, 0.0)  # sums that cancel leave rounding below it
    if known is not None:
        of_all, goal = known
        spread = _believed(of_all.as_far_apart(usual, goal), found)
    spread, of_values = spread + at.of_nothing, of_values + np.diag(at.of_nothing)
    if not at.factor.any():
        return spread, of_values
    told = found.left is not None
    least = INEXACT, INEXACT if told else INEXACT_BENT
    inexact, of_value = ((each * found.estimate.value) ** 2 for each in least)
    last = 0.0 if told or measure.name != "Rprec" else at.by_last_rank
    apart = inexact + LAST_RANK_APART**2 * last
    return spread + np.diag(apart), of_values + of_value + LAST_RANK**2 * last


def _bias_left(at: AtOutlook, measure: Measure, found: RatioEstimate) -> BiasLeft:
    """What is expected to be left of the bias in rounds drawn at once.

    Taken off is the mean of what the squares and the outlook say: differences allow for as much
    more as that is short of the outlook, values for all that the two are apart. Where second orders
    are followed both allow for the rest of these as well (`drawn_at_once`).
    """
    damping = DAMPING_OF_RPREC if measure.name == "Rprec" else DAMPING
    overlooked = found.estimate.value * at.overlooked / (1.0 - at.overlooked)
    rest = found.rest
    taken = found.bias if rest is None else found.bias + rest.taken
    short = at.bias() - taken
    usual, further = short - overlooked, at.bias(damping) - taken + short - overlooked
    of_values = np.where(np.abs(further) > np.abs(usual), further, usual)
    if rest is None:
        return BiasLeft(usual, of_values)
    of_values = np.where(of_values < 0.0, -1.0, 1.0) * np.sqrt(of_values**2 + rest.of_values)
    return BiasLeft(usual, of_values, apart=rest.of_differences)


def _believed(expected: FloatArray, found: RatioEstimate) -> FloatArray:
    """What is expected; of rounds that learn the less, the more finds of each run there are."""
    if found.left is None:
        return expected
    estimate = found.estimate
    finds = np.diag(estimate.contributions)
    share = np.sqrt(finds / (finds + FINDS_BELIEVED))
    rest = np.sqrt(1.0 - share**2)
    squares = estimate.covariance - estimate.noise
    shown = np.multiply.outer(share, share) * squares
    return np.asarray(shown + np.multiply.outer(rest, rest) * expected, dtype=np.float64)


def _no_series(at: AtOutlook) -> bool:
    """Whether denominators vary too much for any series to tell the bias."""
    some = at.relative_variance[at.relative_variance > 0.0]
    return len(some) > 0 and float(np.median(some)) > MOST_VARIANCE


def _ends_among_relevant(at: AtOutlook, measure: Measure) -> bool:
    """Whether Rprec goes down to a rank that is not known, where most documents are relevant.

    How far it goes down is then worth as much as how many of these are relevant, which no
    linearization of both tells: of pools all of which are relevant, false verdicts were told in up
    to .86 of the rounds. As long as anything is uncertain nothing is told of it.
    """
    if measure.name != "Rprec" or not at.factor.any():
        return False
    expected = at.tangent.frame.gains.utility
    within = expected > 0.0  # not documents of later runs, of which nothing is expected
    return bool(within.any()) and float(expected[within].mean()) > MOST_RELEVANT


def _reasons(withheld: BoolArray) -> Reasons:
    return np.where(withheld, np.int8(Reason.FEW_RELEVANT), all_known(*withheld.shape))


def _vague_values(found: RatioEstimate, of_values: FloatArray) -> BoolArray:
    estimate = found.estimate
    variance = variances(estimate.covariance, np.diag(of_values) + estimate.likely_noise)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)) > MOST_ERROR * estimate.value)


def _errors_of_differences(
    found: RatioEstimate, spread: FloatArray, expected: FloatArray, left: BiasLeft
) -> FloatArray:
    """What standard errors of differences are at least, (k, k).

    `expected` has the bias that is left. What sets two runs apart besides is no other one: products
    of finds see that bias, too, and the larger counts.
    """
    usual = np.subtract.outer(left.of_differences, left.of_differences) ** 2
    bias = usual if left.apart is None else np.maximum(usual, left.apart)
    times = _how_often(bias, MOST_BIAS_OF_DIFFERENCE**2 * difference_variances(spread))
    likely = expected + found.estimate.likely_noise
    variance = variances_of_differences(found.estimate.covariance, likely)
    return np.asarray(np.sqrt(np.maximum(variance + times * bias - usual, 0.0)))


def _how_often(bias: FloatArray, most: FloatArray) -> FloatArray:
    """How often the square of a bias counts that is larger than the most that is believed of it."""
    return np.maximum(share_of(bias, of=most), 1.0)
