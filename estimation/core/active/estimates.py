"""Estimates of every run from an active sample, with their covariance.

Per topic, over the sampled documents S with relevance y, ranks r and inclusion probabilities pi_i
and pi_il of `estimation.core.active.sampling` (Li and Kanoulas 2017, section 3):

    R^     = sum_S y_i / pi_i
    P@c^   = sum_S [r_i <= c] y_i / pi_i / c, and so any linear measure with its weights for 1/c
    AP^    = sum_S sum_S [r_l <= r_i] y_i y_l / (pi_il r_i) / R^, with pi_ii = pi_i
    Rprec^ = sum_S [r_i <= R^] y_i / pi_i / R^

There are three forms. ``corrected`` is what stands above. ``paper`` is what the paper prints: in AP
1/(pi_i pi_l) for 1/pi_il, also for i = l, which is far too much in small samples. Both are biased,
because pi reacts to what was found (see `active.sampling`): on TREC-8 at 10 % of the pool R^
is 11 % too small. ``sequential`` puts the weights of `sequential_weights` in the place of 1/pi: R^
and linear measures are exactly unbiased, and from AP the bias of a ratio is subtracted to second
order. The bias that AP and Rprec keep falls with the size of the sample.

Variance
--------
An estimator that is a function of totals is replaced by the total of its linearized values z_i
(delta method), and the covariance of two totals is a quadratic form sum_S V_il z_i z_l'. For
inclusion probabilities V_il = (pi_il - pi_i pi_l)/(pi_il pi_i pi_l), which can come out negative.
With 1[r_l <= r_i]/r_i + 1[r_i <= r_l]/r_l = min(1/r_i, 1/r_l) for i != l, and 1/r = 0 where a run
does not return the document, AP needs no sorting: all runs share one loop over the *relevant*
judged documents, the only ones with z_i != 0. The variance is about the choice of documents only:
disagreement between assessors is not in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from estimation.core.active.lists import ActiveError, ActiveFrame, TopicLists
from estimation.core.active.sampling import ActiveState
from estimation.core.active.weights import (
    Weights,
    inclusion_weights,
    joint_inclusion,
    sequential_weights,
)
from estimation.core.arrays import FloatArray, IntArray
from estimation.core.labels import LabelRows, pair_labels, select_rows
from estimation.core.measures import MAX_GRADE, Measure, parse_measure

Form: TypeAlias = Literal["corrected", "paper", "sequential"]
RATIOS = ("AP", "Rprec")
FORMS = get_args(Form)


@dataclass(frozen=True, eq=False)
class ActiveEstimate:
    """Estimated values of k runs under one measure.

    Attributes
    ----------
    measure : str
    value : ndarray of float64, shape (k,)
        Mean over the |X| topics of the pool; a topic without a relevant judged document has 0.
    covariance : ndarray of float64, shape (k, k)
        Of the values; symmetric, the diagonal may be negative (rarely).
    topic_value, topic_variance : ndarray of float64, shape (|X|, k)
    relevant, relevant_variance : ndarray of float64, shape (|X|,)
        R^, for grades from the state's `relevant_from` on, and its estimated variance.
    judged, found : ndarray of int64, shape (|X|,)
        Sampled documents, and how many of them an assessor found relevant.
    """

    measure: str
    value: FloatArray
    covariance: FloatArray
    topic_value: FloatArray
    topic_variance: FloatArray
    relevant: FloatArray
    relevant_variance: FloatArray
    judged: IntArray
    found: IntArray

    @property
    def se(self) -> FloatArray:
        """Standard errors, shape (k,); 0 where the variance came out negative."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))


# ------------------------------------------------------------------------------------ one topic


@dataclass(frozen=True, eq=False)
class _TopicSample:
    """The m judged documents of a topic that have any positive grade."""

    rank: FloatArray  # (m, k), infinite where a run does not return the document
    lengths: IntArray  # (k,) documents that each run returns
    weights: Weights


@dataclass(frozen=True, eq=False)
class _TopicResult:
    value: FloatArray  # (k,)
    covariance: FloatArray  # (k, k)


def _linear(sample: _TopicSample, measure: Measure, utility: FloatArray) -> _TopicResult:
    returned = np.isfinite(sample.rank)
    lengths = np.maximum(sample.lengths, 1)[None, :]
    weights = measure.weights(np.where(returned, sample.rank, 1.0), lengths=lengths)
    z = np.where(returned, weights, 0.0) * utility[:, None]
    return _TopicResult(_added(sample.weights.single, z), _covariance(z, sample.weights))


def _average_precision(sample: _TopicSample, y: FloatArray, form: Form) -> _TopicResult:
    single, pair = sample.weights.single, sample.weights.pair
    if form == "paper":
        pair = np.multiply.outer(single, single)
    reciprocal = 1.0 / sample.rank
    shares = np.multiply.outer(y, y) * pair
    np.fill_diagonal(shares, 0.0)
    alone = (y * np.diag(pair))[:, None] * reciprocal  # documents as pairs with themselves
    paired = np.empty_like(reciprocal)
    for i, row in enumerate(reciprocal):
        paired[i] = _added(shares[i], np.minimum(row, reciprocal))
    numerator = paired.sum(axis=0) / 2.0 + alone.sum(axis=0)
    z = (paired + alone) / single[:, None]
    return _ratio(sample.weights, y, numerator, z, unbiased=form == "sequential")


def _r_precision(sample: _TopicSample, y: FloatArray) -> _TopicResult:
    """The cutoff is estimated too, so the linearization needs the share of relevant documents
    around rank R^, taken from the ranks between R^/2 and 3 R^/2."""
    share = y * sample.weights.single
    relevant = float(share.sum())
    inside = (sample.rank <= relevant) * y[:, None]
    near = np.abs(sample.rank - relevant) <= relevant / 2.0
    density = np.minimum(_added(share, near.astype(np.float64)) / max(relevant, 1.0), 1.0)
    numerator = _added(sample.weights.single, inside)
    return _ratio(sample.weights, y, numerator, inside + np.multiply.outer(y, density))


def _ratio(
    weights: Weights,
    y: FloatArray,
    numerator: FloatArray,
    z: FloatArray,
    *,
    unbiased: bool = False,
) -> _TopicResult:
    """The numerator over R^, linearized; 0 if no relevant document was found.

    With `unbiased`, less the bias of a ratio to second order, - Cov(z - value y, R^) / R^2.
    """
    relevant = float((y * weights.single).sum())
    if relevant == 0.0:
        runs = len(numerator)
        return _TopicResult(np.zeros(runs), np.zeros((runs, runs)))
    value = numerator / relevant
    linearized = (z - np.multiply.outer(y, value)) / relevant
    if unbiased:
        value = value + _added(_added(y, weights.quadratic), linearized) / relevant
    return _TopicResult(value, _covariance(linearized, weights))


def _added(factors: FloatArray, rows: FloatArray) -> FloatArray:
    """Sum of factors times rows."""
    return np.asarray(np.einsum("l,lj->j", factors, rows))


def _covariance(z: FloatArray, weights: Weights) -> FloatArray:
    # A sparse array times a dense one adds in a fixed order, on every machine and core.
    product = sparse.csr_array(z.T) @ (sparse.csr_array(weights.quadratic) @ z)
    return np.asarray((product + product.T) / 2.0)


# ----------------------------------------------------------------------------------- all topics


def estimate(
    frame: ActiveFrame,
    state: ActiveState,
    *,
    labels: LabelRows,
    measures: Sequence[str],
    form: Form = "corrected",
) -> tuple[ActiveEstimate, ...]:
    """Estimate measures of every run from the judgments of an active sample.

    Parameters
    ----------
    frame : ActiveFrame
    state : ActiveState
    labels : LabelRows
        Judgments of all sampled pairs, in any order.
    measures : sequence of str
        ``AP``, ``Rprec``, and linear measures of grades such as ``P@30``.
    form : {"corrected", "paper", "sequential"}
        See the module's text.

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
    pairs = np.sort(state.pair)
    rows = select_rows(labels, sampled=pairs, prefix=pairs, max_grade=MAX_GRADE, pool=frame.pool)
    wanted = [parse_measure(f"P(rel={state.relevant_from})@1"), *parsed]
    utilities = [pair_labels(rows, pairs=len(pairs), measure=each).mean for each in wanted]
    utility = np.stack(utilities, axis=1)
    tables = _Tables.empty(len(frame.pool.topics), len(frame.pool.runs), len(measures))
    spans = _grouped(frame.pool.topic[pairs], len(tables.judged))[1]
    history = _History.of(frame, state)
    for topic in np.unique(frame.pool.topic[pairs]).tolist():
        span = spans[topic]
        tables.judged[topic] = span.stop - span.start
        useful = span.start + np.flatnonzero((utility[span] > 0.0).any(axis=1))
        if len(useful):
            sample = _topic_sample(frame.lists(topic), history, topic, pairs[useful], form)
            tables.add(topic, sample, parsed, utility[useful], form)
    return tuple(tables.estimate(place, name) for place, name in enumerate(measures))


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


def _grouped(topic: NDArray[np.integer], number: int) -> tuple[IntArray, list[slice]]:
    """Order by topic, otherwise as it was, and the slice of each topic."""
    order = np.argsort(topic, kind="stable")
    bounds = np.searchsorted(topic[order], np.arange(number + 1)).tolist()
    return order, [slice(first, last) for first, last in pairwise(bounds)]


@dataclass(frozen=True, eq=False)
class _History:
    """A state, by topic: its rounds, and its sampled pairs in the order of drawing."""

    state: ActiveState
    rounds: list[IntArray]
    drawn: list[IntArray]

    @classmethod
    def of(cls, frame: ActiveFrame, state: ActiveState) -> "_History":
        number = len(frame.pool.topics)
        rounds, round_spans = _grouped(state.round_topic, number)
        drawn, drawn_spans = _grouped(frame.pool.topic[state.pair], number)
        return cls(state, [rounds[s] for s in round_spans], [drawn[s] for s in drawn_spans])


def _topic_sample(
    lists: TopicLists, history: _History, topic: int, pairs: IntArray, form: Form
) -> _TopicSample:
    documents = pairs - lists.start
    place = np.full(len(lists), -1)
    place[documents] = np.arange(len(documents))
    entries = np.flatnonzero(place[lists.document] >= 0)
    rank = np.full((len(documents), lists.chances.shape[1]), np.inf)
    rank[place[lists.document[entries]], lists.run[entries]] = lists.rank[entries]
    make = _by_step if form == "sequential" else _by_inclusion
    weights = make(lists, history, topic, documents)
    return _TopicSample(rank, np.diff(lists.run_start), weights)


def _by_inclusion(lists: TopicLists, history: _History, topic: int, documents: IntArray) -> Weights:
    state, rounds = history.state, history.rounds[topic]
    chances = lists.chances[documents] @ state.run_probability[rounds].T
    probability = np.minimum(np.ascontiguousarray(chances.T), 1.0)
    return inclusion_weights(joint_inclusion(probability, draws=state.round_draws[rounds]))


def _by_step(lists: TopicLists, history: _History, topic: int, documents: IntArray) -> Weights:
    state, drawn = history.state, history.drawn[topic]
    order = state.pair[drawn] - lists.start
    conditional = np.empty(len(drawn))
    unknown = np.ones(len(lists), dtype=np.bool_)
    for row in history.rounds[topic]:
        chance = lists.document_probability(state.run_probability[row])
        for step in np.flatnonzero(state.pair_round[drawn] == row).tolist():
            conditional[step] = chance[order[step]] / chance[unknown].sum()
            unknown[order[step]] = False
    place = np.argsort(order)
    steps = place[np.searchsorted(order[place], documents)]
    conditional = np.minimum(conditional, 1.0)  # a last document may come out above by rounding
    return sequential_weights(conditional, documents=len(lists), steps=steps)


@dataclass(frozen=True, eq=False)
class _Tables:
    """Results by measure and topic, filled in topic by topic."""

    value: FloatArray  # (measures, |X|, k)
    variance: FloatArray  # (measures, |X|, k)
    covariance: FloatArray  # (measures, k, k), summed over topics
    relevant: FloatArray  # (|X|, 2): R^ and its variance
    judged: IntArray
    found: IntArray

    @classmethod
    def empty(cls, topics: int, runs: int, measures: int) -> "_Tables":
        return cls(
            value=np.zeros((measures, topics, runs)),
            variance=np.zeros((measures, topics, runs)),
            covariance=np.zeros((measures, runs, runs)),
            relevant=np.zeros((topics, 2)),
            judged=np.zeros(topics, dtype=np.int64),
            found=np.zeros(topics, dtype=np.int64),
        )

    def add(
        self,
        topic: int,
        sample: _TopicSample,
        measures: Sequence[Measure],
        utility: FloatArray,
        form: Form,
    ) -> None:
        """Fill in a topic; `utility` is the relevance, then one column for each measure."""
        relevance = utility[:, :1]
        self.found[topic] = np.count_nonzero(relevance)
        self.relevant[topic] = (
            _added(sample.weights.single, relevance)[0],
            _covariance(relevance, sample.weights)[0, 0],
        )
        for place, measure in enumerate(measures):
            result = _topic_result(sample, measure, utility[:, place + 1], form)
            self.value[place, topic] = result.value
            self.variance[place, topic] = np.diag(result.covariance)
            self.covariance[place] += result.covariance

    def estimate(self, place: int, name: str) -> ActiveEstimate:
        topics = len(self.judged)
        return ActiveEstimate(
            measure=name,
            value=self.value[place].sum(axis=0) / topics,
            covariance=self.covariance[place] / topics**2,
            topic_value=self.value[place],
            topic_variance=self.variance[place],
            relevant=self.relevant[:, 0],
            relevant_variance=self.relevant[:, 1],
            judged=self.judged,
            found=self.found,
        )


def _topic_result(
    sample: _TopicSample, measure: Measure, utility: FloatArray, form: Form
) -> _TopicResult:
    if measure.name == "AP":
        return _average_precision(sample, utility, form)
    if measure.name == "Rprec":
        return _r_precision(sample, utility)
    return _linear(sample, measure, utility)
