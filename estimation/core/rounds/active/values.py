"""The estimates of one topic from an active sample, as `active.estimates` defines them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse

from ...estimates.ratio_lines import share_within
from .expected import Linearized

if TYPE_CHECKING:
    from ...arrays import FloatArray, IntArray, SparseMatrix
    from ...measures.table import Measure
    from .lists import TopicLists
    from .weights import Weights

Form: TypeAlias = Literal["corrected", "paper", "sequential"]
FORMS = get_args(Form)


@dataclass(frozen=True, eq=False)
class TopicSample:
    """The m judged documents of a topic that have any positive grade; build with `of`.

    ``places`` says where the N documents of the topic that are sampled stand in the lists of the k
    runs whose values are estimated; others are never judged.
    """

    lists: TopicLists
    places: IntArray  # (N,)
    documents: IntArray  # (m,), among these N
    rank: FloatArray  # (m, k), infinite where a run does not return the document
    weights: Weights

    @classmethod
    def of(
        cls,
        lists: TopicLists,
        documents: IntArray,
        weights: Weights,
        *,
        places: IntArray | None = None,
    ) -> TopicSample:
        """Look up the ranks of documents; by default all documents of the lists are sampled."""
        places = np.arange(len(lists)) if places is None else places
        row = np.full(len(lists), -1)
        row[places[documents]] = np.arange(len(documents))
        entries = np.flatnonzero(row[lists.document] >= 0)
        rank = np.full((len(documents), lists.chances.shape[1]), np.inf)
        rank[row[lists.document[entries]], lists.run[entries]] = lists.rank[entries]
        return cls(lists, places, documents, rank, weights)


@dataclass(frozen=True, eq=False)
class TopicResult:
    """Values of k runs, and how they depend on the m utilities y."""

    value: FloatArray  # (k,)
    moved: FloatArray  # (m, k): z_i y_i; the value moves as sum w_i z_i y_i does
    level: FloatArray  # (k,)
    scale: float  # see `expected.Linearized`; 0 if a ratio has no denominator
    bias: FloatArray  # (k,): of ratios, to second order, -Cov(z, R^) / R
    density: FloatArray | None = None  # (k, k): of Rprec, d_jj' - d_j d_j'


def topic_result(
    sample: TopicSample, measure: Measure, utility: FloatArray, form: Form
) -> TopicResult:
    """Estimate a measure of every run in one topic."""
    if measure.name == "AP":
        return _average_precision(sample, utility, form)
    if measure.name == "Rprec":
        return _r_precision(sample, utility)
    return _linear(sample, measure, utility)


def topic_line(
    sample: TopicSample, measure: Measure, utility: FloatArray, result: TopicResult
) -> Linearized:
    """Linearize a result with a scale above 0 in all documents of the topic that are sampled."""
    lists = sample.lists
    if measure.name == "AP":
        slope = _precision_slopes(sample, utility)
    elif measure.name == "Rprec":
        slope = share_within(lists.rank, result.scale)
    else:
        lengths = np.diff(lists.run_start)[lists.run]
        slope = measure.weights(lists.rank, lengths=lengths)
    array: SparseMatrix = sparse.csr_array(
        (slope, (lists.document, lists.run)), shape=lists.chances.shape
    )
    array.eliminate_zeros()
    return Linearized(array[sample.places], result.level, result.scale)


def _precision_slopes(sample: TopicSample, y: FloatArray) -> FloatArray:
    """How the numerator of AP rises with y_i: (1 + y above) / rank + y below over its ranks."""
    lists = sample.lists
    share = np.zeros(len(lists))
    share[sample.places[sample.documents]] = y * sample.weights.single
    gain = share[lists.document]
    shared = gain / lists.rank
    first = lists.run_start[lists.run]
    above = np.append(0.0, np.cumsum(gain))
    below = np.append(0.0, np.cumsum(shared))
    last = lists.run_start[lists.run + 1]
    rising = (1.0 + above[:-1] - above[first]) / lists.rank
    return np.asarray(rising + below[last] - below[1:])


def _linear(sample: TopicSample, measure: Measure, utility: FloatArray) -> TopicResult:
    returned = np.isfinite(sample.rank)
    lengths = np.maximum(np.diff(sample.lists.run_start), 1)[None, :]
    weights = measure.weights(np.where(returned, sample.rank, 1.0), lengths=lengths)
    moved = np.where(returned, weights, 0.0) * utility[:, None]
    nothing = np.zeros(sample.rank.shape[1])
    return TopicResult(_added(sample.weights.single, moved), moved, nothing, 1.0, nothing)


def _average_precision(sample: TopicSample, y: FloatArray, form: Form) -> TopicResult:
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


def _r_precision(sample: TopicSample, y: FloatArray) -> TopicResult:
    """The cutoff is estimated too, so the linearization needs the share of relevant documents
    around rank R^, taken from the ranks between R^/2 and 3 R^/2."""
    share = y * sample.weights.single
    relevant = float(share.sum())
    inside = share_within(sample.rank, relevant) * y[:, None]
    near = (np.abs(sample.rank - relevant) <= relevant / 2.0).astype(np.float64)
    shared = added_products(near, share / max(relevant, 1.0))
    density = np.minimum(np.diag(shared), 1.0)
    numerator = _added(sample.weights.single, inside)
    result = _ratio(sample.weights, y, numerator, inside + np.multiply.outer(y, density))
    spread = shared - np.multiply.outer(density, density)
    return replace(result, level=result.level - density, density=spread)


def _ratio(
    weights: Weights,
    y: FloatArray,
    numerator: FloatArray,
    z: FloatArray,
    *,
    unbiased: bool = False,
) -> TopicResult:
    """The numerator over R^, linearized; 0 if no relevant document was found.

    With `unbiased`, less its bias to second order.
    """
    relevant = float((y * weights.single).sum())
    if relevant == 0.0:
        nothing = np.zeros(len(numerator))
        return TopicResult(nothing, np.zeros_like(z), nothing, 0.0, nothing)
    ratio = numerator / relevant
    moved = (z - np.multiply.outer(y, ratio)) / relevant
    bias = -_added(_added(y, weights.quadratic), moved) / relevant
    value = ratio - bias if unbiased else ratio
    return TopicResult(value, moved, ratio, relevant, bias)


def _added(factors: FloatArray, rows: FloatArray) -> FloatArray:
    """Sum of factors times rows."""
    return np.asarray(np.einsum("l,lj->j", factors, rows))


def added_products(rows: FloatArray, factors: FloatArray) -> FloatArray:
    """sum_i factors_i rows_ij rows_il, added in a fixed order."""
    product = sparse.csr_array(rows.T) @ (rows * factors[:, None])
    return np.asarray((product + product.T) / 2.0)


def quadratic_form(moved: FloatArray, weights: Weights) -> FloatArray:
    """sum V_il of rows i and l, shape (k, k); of z_i y_i the covariance by the design."""
    # A sparse array times a dense one adds in a fixed order, on every machine and core.
    product = sparse.csr_array(moved.T) @ (sparse.csr_array(weights.quadratic) @ moved)
    return np.asarray((product + product.T) / 2.0)
