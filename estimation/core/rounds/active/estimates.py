"""Estimates of every run from an active sample, with their covariance.

Per topic, over the sampled documents S with relevance y, ranks r and inclusion probabilities pi_i
and pi_il of `estimation.core.rounds.active.sampling` (Li and Kanoulas 2017, section 3):

    R^     = sum_S y_i / pi_i
    P@c^   = sum_S [r_i <= c] y_i / pi_i / c, and so any linear measure with its weights for 1/c
    AP^    = sum_S sum_S [r_l <= r_i] y_i y_l / (pi_il r_i) / R^, with pi_ii = pi_i
    Rprec^ = sum_S clip(R^ - r_i + 1, 0, 1) y_i / pi_i / R^

There are three forms. ``corrected`` is what stands above. ``paper`` is what the paper prints: in AP
1/(pi_i pi_l) for 1/pi_il, also for i = l, which is far too much in small samples. Both are biased,
because pi reacts to what was found (see `active.sampling`): on TREC-8 at 10 % of the pool R^
is 11 % too small. ``sequential`` puts the weights of `sequential_weights` in the place of 1/pi: R^
and linear measures are exactly unbiased, and from AP the bias of a ratio is subtracted to second
order. The bias that AP and Rprec keep falls with the size of the sample.

Variance
--------
An estimator that is a function of totals is replaced by the total of its linearized values z_i y_i
(delta method), and the covariance of two totals is a quadratic form sum_S V_il z_i y_i z_l' y_l.
For inclusion probabilities V_il = (pi_il - pi_i pi_l)/(pi_il pi_i pi_l), which can come out
negative. With 1[r_l <= r_i]/r_i + 1[r_i <= r_l]/r_l = min(1/r_i, 1/r_l) for i != l, and 1/r = 0
where a run does not return the document, AP needs no sorting: all runs share one loop over the
*relevant* judged documents, the only ones with y_i != 0.

The variance of ``sequential`` is the mean of two: V, which is unbiased for totals but low exactly
when the estimate is, because both wait for the same few documents with large weights; and the
one that is to be expected from all documents (`active.expected`), which is steady but trusts a
model. V alone covers 91 % instead of 95 % (TREC-8, linear measures), by too small values only.

The bias of a ratio, -Cov(z, R^) / R to second order, is taken off AP, and not off Rprec. As much
again is left of AP in samples of some 30 relevant documents per topic. So its square is added to
the variance of both (of means over topics, because biases of topics add up).

Rprec is a step function of the cutoff R^. Between R and R^ a run finds relevant documents with some
density d, of which R^ d is in the linearization; that their number is about binomial around it adds
E|R^ - R| (d_jj' - d_j d_j') / R^2, with d_jj' the density of those that both runs return there.

Disagreement between assessors
------------------------------
With independent noise of variance n_i in y_i, the error of a total is a sum of martingale
differences, also when the plan depends on noisy labels: in its step document i brings c_s (z_i
E[y_i] / q_s - what was unknown) + w_i z_i (y_i - E[y_i]), both of which have expectation 0 given
all before. The variance of the second is E[w_i^2] z_i^2 n_i; in V its labels already put E[V_ii]
z_i^2 n_i. sum_S (w_i^2 - V_ii) z_i^2 n_i is missing, and is added with the n_i measured on pairs
with several judgments (`PairLabels.noise`). For inclusion probabilities w_i^2 - V_ii = 1/pi_i, as
everywhere. All sampled documents are in it: of those with one judgment it is what this lets one
expect (`PairLabels.with_expected`), also where it found nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ...inference.uncertainty import MOSTLY
from ...measures.table import Measure, parse_measure
from .expected import (
    Left,
    LikelyUtility,
    Linearized,
    expected_covariance,
    expected_moments,
    left_of,
    missed_of_topics,
)
from .judged import JudgedPairs
from .lists import ActiveError, ActiveFrame, TopicLists
from .steps import History, Steps
from .values import (
    FORMS,
    Form,
    TopicResult,
    TopicSample,
    quadratic_form,
    topic_line,
    topic_result,
)
from .weights import inclusion_weights, joint_inclusion, lacking_of_inclusion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...arrays import FloatArray, IntArray
    from ...data.labels import LabelRows
    from ...inference.missed import Missed
    from .sampling import ActiveState

RATIOS = ("AP", "Rprec")
LEAST_STEPS = 3  # fewer show no variance, see `weights.sequential_weights`


@dataclass(frozen=True, eq=False)
class _Counts:
    """What was found in each topic, see `ActiveEstimate`."""

    relevant: FloatArray
    relevant_variance: FloatArray
    judged: IntArray
    found: IntArray
    noise_measured: bool


@dataclass(frozen=True, eq=False)
class ActiveEstimate(_Counts):
    """Estimated values of k runs under one measure.

    Attributes
    ----------
    measure : str
    value : ndarray of float64, shape (k,)
        Mean over the |X| topics of the pool; a topic without a relevant judged document has 0.
    covariance : ndarray of float64, shape (k, k)
        Of the values; symmetric. Sequential: with the square of the bias of ratios. The diagonal
        may be negative (rarely).
    topic_value, topic_variance : ndarray of float64, shape (|X|, k)
    relevant, relevant_variance : ndarray of float64, shape (|X|,)
        R^, for grades from the state's `relevant_from` on, and the unbiased estimate of its
        variance (0 with fewer than three documents).
    judged, found : ndarray of int64, shape (|X|,)
        Sampled documents, and how many of them an assessor found relevant.
    noise_measured : bool
        Whether any pair has two judgments or more, so that disagreement is in the variances.
    likely : ndarray of float64, shape (k, k)
        The covariance that was to be expected: of disagreement, and if sequential of documents.
    missed : Missed or None
        What is expected of the documents that nobody has judged, where they are few.
    """

    measure: str
    value: FloatArray
    covariance: FloatArray
    topic_value: FloatArray
    topic_variance: FloatArray
    likely: FloatArray
    missed: Missed | None = None

    @property
    def se(self) -> FloatArray:
        """Standard errors, shape (k,); 0 where the variance came out negative."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))


def estimate(
    frame: ActiveFrame,
    state: ActiveState,
    *,
    labels: LabelRows,
    measures: Sequence[str],
    form: Form = "corrected",
    over: ActiveFrame | None = None,
    place: IntArray | None = None,
) -> tuple[ActiveEstimate, ...]:
    """Estimate measures of every run from the judgments of an active sample.

    Parameters
    ----------
    frame : ActiveFrame
        Of the sampled pool.
    state : ActiveState
    labels : LabelRows
        Judgments of all sampled pairs, in any order.
    measures : sequence of str
        ``AP``, ``Rprec``, and linear measures of grades such as ``P@30``.
    form : {"corrected", "paper", "sequential"}
        See the module's text.
    over : ActiveFrame, optional
        Of the runs whose values are wanted; by default those of the sampled pool. Documents outside
        of it are taken for useless. The lists of these runs must not depend on the sample.
    place : ndarray of int64, shape (N,), optional
        Where the pairs of the sampled pool stand in that of `over`, ascending.

    Returns
    -------
    tuple of ActiveEstimate
        One for each measure.

    Raises
    ------
    ActiveError
        If the state belongs to another pool, or there is no estimator for a measure or form.
    LabelError
        If a sampled pair has no label, or a row belongs to no sampled pair.
    """
    if state.pool_digest != frame.pool.digest:
        raise ActiveError("the state belongs to another pool")
    _check_form(state, form)
    parsed = [_supported(name) for name in measures]
    judged = JudgedPairs.of(frame, state, labels, parsed)
    over = frame if over is None else over
    place = np.arange(len(frame.pool)) if place is None else place
    topics = _topics(frame, state, judged, form, over, place)
    counts = _counted(topics, judged, len(frame.pool.topics))
    return tuple(
        _estimate(measure, topics, judged, column, form, counts, runs=len(over.pool.runs))
        for column, measure in enumerate(parsed, start=1)
    )


def _supported(name: str) -> Measure:
    measure = parse_measure(name)
    whole = measure.name in RATIOS and measure.cutoff is None
    if not whole and measure.family != "gain":
        known = f"only for {', '.join(RATIOS)} of whole lists and sums of gains"
        raise ActiveError(f"an active sample has no estimator for {name!r}, {known}")
    return measure


def _check_form(state: ActiveState, form: str) -> None:
    if form not in FORMS:
        raise ActiveError(f"form must be one of {', '.join(FORMS)}, not {form!r}")
    if form == "sequential" and state.uniform_share == 0.0:
        needed = "needs a sample with a uniform_share above 0"
        raise ActiveError(f"the form {form!r} {needed}, not {state.uniform_share!r}")


@dataclass(frozen=True, eq=False)
class _Topic:
    """One topic: ``rows`` are the places of its useful pairs among the sampled ones.

    ``judged`` are all sampled documents, (n,), and ``lacking`` w_i^2 - V_ii of these.
    """

    span: slice
    rows: IntArray
    sample: TopicSample
    judged: IntArray
    lacking: FloatArray
    steps: Steps | None
    spreads: dict[float, FloatArray]  # by limit: measures share them

    def _spread(self, steps: Steps, limit: float) -> FloatArray:
        if limit not in self.spreads:
            self.spreads[limit] = steps.spread(limit)
        return self.spreads[limit]

    def covariance(
        self,
        measure: Measure,
        result: TopicResult,
        utility: FloatArray,
        noise: FloatArray,
        likely: FloatArray,
        moments: LikelyUtility | None,
    ) -> tuple[FloatArray, FloatArray]:
        """The covariance of the values, and what was expected of it; of a ratio of nothing 0."""
        weights = self.sample.weights
        covariance = quadratic_form(result.moved, weights)
        expected = np.zeros_like(covariance)
        if result.scale == 0.0 or (moments is None and not likely.any()):
            return covariance, expected
        line = topic_line(self.sample, measure, utility, result)
        if self.steps is not None and moments is not None:
            limit = np.inf if measure.is_linear else result.scale
            spread = self._spread(self.steps, limit)
            expected = expected_covariance(self.steps, line, moments, spread=spread)
            covariance = _mean_of(covariance, expected, self.steps)
            if result.density is not None:
                design = quadratic_form(utility[:, None], weights)
                relevant = _relevant_variance(self.steps, design, moments, spread)
                away = np.sqrt(2.0 / np.pi * max(relevant, 0.0))  # E|R^ - R|, if it is normal
                covariance = covariance + result.density * away / result.scale**2
        added, usual = (line.products(self.judged, self.lacking * each) for each in (noise, likely))
        return covariance + added, expected + usual

    def left(
        self,
        measure: Measure,
        result: TopicResult,
        utility: FloatArray,
        moments: LikelyUtility | None,
    ) -> Left | None:
        """What is expected of documents that were not judged; None of a ratio of nothing."""
        if self.steps is None or moments is None or result.scale == 0.0:
            return None
        return left_of(self.steps, topic_line(self.sample, measure, utility, result), moments)


def _relevant_variance(
    steps: Steps, design: FloatArray, moments: LikelyUtility, spread: FloatArray
) -> float:
    """The variance of R^."""
    nothing = sparse.csr_array((len(spread), 1))
    line = Linearized(nothing, np.array([-1.0]), 1.0)
    expected = expected_covariance(steps, line, moments, spread=spread)
    return float(_mean_of(design, expected, steps)[0, 0])


def _mean_of(design: FloatArray, expected: FloatArray, steps: Steps) -> FloatArray:
    return expected if len(steps) < LEAST_STEPS else (design + expected) / 2.0


def _topics(
    frame: ActiveFrame,
    state: ActiveState,
    judged: JudgedPairs,
    form: Form,
    over: ActiveFrame,
    place: IntArray,
) -> dict[int, _Topic]:
    """All sampled topics, by their position in the pool."""
    history = History.of(frame, state)
    found = {}
    for topic in np.unique(frame.pool.topic[judged.pairs]).tolist():
        lists, span = frame.lists(topic), judged.spans[topic]
        rows, every = judged.useful(span), judged.pairs[span] - lists.start
        documents = judged.pairs[rows] - lists.start
        steps = Steps.of(lists, history, topic) if form == "sequential" else None
        if steps is None:
            probability, draws = _inclusion(lists, history, topic)
            weights = inclusion_weights(joint_inclusion(probability[:, documents], draws=draws))
            lacking = lacking_of_inclusion(probability[:, every], draws=draws)
        else:
            weights, lacking = steps.weights(documents), steps.lacking(every)
        ranked = over.lists(topic)
        places = place[lists.start : lists.start + len(lists)] - ranked.start
        sample = TopicSample.of(ranked, documents, weights, places=places)
        found[topic] = _Topic(span, rows, sample, every, lacking, steps, {})
    return found


def _moments(
    topics: dict[int, _Topic], judged: JudgedPairs, column: int
) -> dict[int, LikelyUtility]:
    """What the labels of a measure lead to expect in every topic, for sequential weights."""
    steps = {number: each.steps for number, each in topics.items() if each.steps is not None}
    utility = {}
    for number, each in steps.items():
        span = topics[number].span
        places = np.searchsorted(judged.pairs[span] - each.lists.start, each.document)
        utility[number] = judged.labels[column].mean[span][places]
    return expected_moments(steps, utility) if steps else {}


def _inclusion(lists: TopicLists, history: History, topic: int) -> tuple[FloatArray, IntArray]:
    """The chances of all documents in each round of a topic, (T, N), and its draws."""
    state, rounds = history.state, history.rounds[topic]
    chances = lists.chances @ state.run_probability[rounds].T
    return np.minimum(np.ascontiguousarray(chances.T), 1.0), state.round_draws[rounds]


def _counted(topics: dict[int, _Topic], judged: JudgedPairs, number: int) -> _Counts:
    relevant, variance = np.zeros((2, number))
    sampled, found = np.zeros((2, number), dtype=np.int64)
    for at, topic in topics.items():
        relevance, noise, _ = judged.of_column(0, topic.rows, topic.span)
        weights = topic.sample.weights
        sampled[at] = topic.span.stop - topic.span.start
        found[at] = np.count_nonzero(relevance)
        relevant[at] = (weights.single * relevance).sum()
        disagreement = float((topic.lacking * noise).sum())
        variance[at] = quadratic_form(relevance[:, None], weights)[0, 0] + disagreement
    return _Counts(relevant, variance, sampled, found, judged.labels[0].noise_measured)


def _estimate(
    measure: Measure,
    topics: dict[int, _Topic],
    judged: JudgedPairs,
    column: int,
    form: Form,
    counts: _Counts,
    *,
    runs: int,
) -> ActiveEstimate:
    """Topic by topic; biases of topics add up, and so does what is uncertain of them."""
    number, moments = len(counts.judged), _moments(topics, judged, column)
    value, variance = np.zeros((2, number, runs))
    (covariance, likely), bias = np.zeros((2, runs, runs)), np.zeros(runs)
    documents = sum(len(topic.sample.places) for topic in topics.values())
    nearly_all, left = len(judged.pairs) >= MOSTLY * documents, []
    for at, topic in topics.items():
        utility, noise, usual = judged.of_column(column, topic.rows, topic.span)
        result = topic_result(topic.sample, measure, utility, form)
        likely_moments = moments.get(at)
        of_topic, expected = topic.covariance(
            measure, result, utility, noise, usual, likely_moments
        )
        value[at], variance[at] = result.value, np.diag(of_topic)
        covariance += of_topic
        likely += expected
        if topic.steps is not None:
            bias += result.bias
        if nearly_all:
            left.append(topic.left(measure, result, utility, likely_moments))
    return ActiveEstimate(
        measure=str(measure),
        value=value.sum(axis=0) / number,
        covariance=(covariance + np.multiply.outer(bias, bias)) / number**2,
        topic_value=value,
        topic_variance=variance,
        likely=likely / number**2,
        missed=missed_of_topics([each for each in left if each is not None], topics=number),
        **vars(counts),
    )
