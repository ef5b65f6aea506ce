"""The variance that an active sample leads one to expect, from what is likely to be relevant.

Given the past, step s of a topic has the variance sum_i z_i^2 / q_s(i) - (sum_i z_i)^2 over the
documents i that are unknown before it: all of them, not only the one that came. The estimate
of `sequential_weights` looks at those that came. It is unbiased, but rests on the few documents
with large weights, and is small exactly when none of them came and the total is too small as well.
Here every document counts: those that were judged with their labels, the others with the
probability of being relevant that a logistic model gives them. The model knows of a document how
likely it was drawn when all runs were alike and how likely it is drawn now, and of its topic how
much was found lately. It is fitted to the later half of the steps of every topic, in which much is
known about the runs. Which document comes depends on the past only through its probability,
which is in the model, so that no weights are needed.

The model may be wrong. `active.estimates` takes the mean of both variances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ...arrays import share_of
from ...inference.missed import Missed
from .weights import tails

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ...arrays import BoolArray, FloatArray, IntArray, SparseMatrix
    from .steps import Steps

RIDGE = 1.0  # of slopes per standard deviation: a document or two
LARGEST_STEP, STEPS, CLOSE = 2.0, 100, 1e-10


@dataclass(frozen=True, eq=False)
class Linearized:
    """A measure as a sum over the N documents of a topic: z_ij = (slope_ij - level_j) / scale."""

    slope: SparseMatrix  # (N, k): for documents that the run returns
    level: FloatArray  # (k,): through the denominator of a ratio, for every document
    scale: float  # the denominator; 1 for sums

    def rows(self, documents: IntArray) -> FloatArray:
        """Return z of some documents, shape (m, k)."""
        slope: FloatArray = self.slope[documents].toarray()
        return (slope - self.level) / self.scale

    def products(self, documents: IntArray, factors: FloatArray) -> FloatArray:
        """Return sum_i f_i z_ij z_il over some documents, added in a fixed order, shape (k, k)."""
        some = np.flatnonzero(factors)
        slope, factor = self.slope[documents[some]], factors[some]
        times = sparse.csr_array(slope * factor[:, None])
        both = np.asarray((sparse.csr_array(slope.T) @ times).toarray(), dtype=np.float64)
        once = np.multiply.outer(np.asarray(times.sum(axis=0)).ravel(), self.level)
        whole = both - once - once.T + factor.sum() * np.multiply.outer(self.level, self.level)
        return np.asarray((whole + whole.T) / (2.0 * self.scale**2), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class LikelyUtility:
    """What is known or likely of the utility y of the N documents of a topic.

    ``mean``, ``square``: of y, shape (N,); y and its square where the document was judged.
    """

    mean: FloatArray
    square: FloatArray


def expected_moments(
    steps: Mapping[int, Steps], utility: Mapping[int, FloatArray]
) -> dict[int, LikelyUtility]:
    """Fit the model to all topics, and return what it says of each.

    ``steps`` and, for the document of each step, its mean ``utility`` are by topic.
    """
    known = [features(steps[topic], utility[topic]) for topic in steps]
    late = [each.known[len(each.known) // 2 :] for each in known]
    halves = [utility[topic][len(steps[topic]) // 2 :] for topic in steps]
    labels = np.concatenate(halves)
    model = Logistic.fit(np.concatenate(late), labels > 0.0)
    every = np.concatenate([utility[topic] for topic in steps])
    found = every[every > 0.0]
    first = float(found.mean()) if len(found) else 0.0
    second = float((found**2).mean()) if len(found) else 0.0
    return {
        topic: _moments(steps[topic], utility[topic], model.chance(each.every), first, second)
        for topic, each in zip(steps, known, strict=True)
    }


def _moments(
    steps: Steps, utility: FloatArray, chance: FloatArray, first: float, second: float
) -> LikelyUtility:
    mean, square = chance * first, chance * second
    mean[steps.document], square[steps.document] = utility, utility**2
    return LikelyUtility(mean, square)


@dataclass(frozen=True, eq=False)
class _Features:
    known: FloatArray  # (n, 3), of the document of each step at that time
    every: FloatArray  # (N, 3), of all documents after the last step


def features(steps: Steps, utility: FloatArray) -> _Features:
    """What the model knows of the documents of a topic."""
    lists, number = steps.lists, len(steps)
    alike = np.log(len(lists) * lists.document_probability(lists.uniform))
    late = utility[number // 2 :]
    rate = np.log((np.count_nonzero(late) + 0.5) / (len(late) + 1.0))
    own = np.empty(number)
    for span, chance in steps.rounds():
        own[span] = np.log(len(lists) * chance[steps.document[span]])
    known = [alike[steps.document], own, np.full(number, rate)]
    every = [alike, np.log(len(lists) * chance), np.full(len(lists), rate)]
    return _Features(np.stack(known, axis=1), np.stack(every, axis=1))


@dataclass(frozen=True, eq=False)
class Logistic:
    """A logistic regression on standardized features, with an intercept."""

    center: FloatArray
    scale: FloatArray
    coefficient: FloatArray

    @classmethod
    def fit(cls, rows: FloatArray, positive: BoolArray) -> Logistic:
        """Fit by Newton's method with a ridge and one row in the middle that is half positive.

        That row keeps the probability above 0 while nothing is positive.
        """
        center, scale = rows.mean(axis=0), rows.std(axis=0)
        scale = np.where(scale > 1e-12, scale, 1.0)
        middle = np.zeros((1, rows.shape[1]))
        design = _with_one(np.concatenate([(rows - center) / scale, middle]))
        target = np.append(np.asarray(positive, dtype=np.float64), 0.5)
        ridge = np.append(np.full(rows.shape[1], RIDGE), 0.0)
        coefficient = np.zeros(design.shape[1])
        coefficient[-1] = np.log(target.mean() / (1.0 - target.mean()))
        for _ in range(STEPS):
            fitted = _logistic(design, coefficient)
            slope = np.einsum("n,nj->j", target - fitted, design) - ridge * coefficient
            curve = np.einsum("n,nj,nl->jl", fitted * (1.0 - fitted), design, design)
            change = np.linalg.solve(curve + np.diag(ridge), slope)
            size = float(np.abs(change).max())
            coefficient = coefficient + change * min(1.0, LARGEST_STEP / max(size, CLOSE))
            if size < CLOSE:
                break
        return cls(center, scale, coefficient)

    def chance(self, rows: FloatArray) -> FloatArray:
        """Return the probability of each row."""
        return _logistic(_with_one((rows - self.center) / self.scale), self.coefficient)


def _with_one(rows: FloatArray) -> FloatArray:
    return np.concatenate([rows, np.ones((len(rows), 1))], axis=1)


def _logistic(rows: FloatArray, coefficient: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-np.einsum("nj,j->n", rows, coefficient))))


def expected_covariance(
    steps: Steps, line: Linearized, moments: LikelyUtility, *, spread: FloatArray
) -> FloatArray:
    """Return sum_s c_s^2 (sum_i z_ij z_il / q_s(i) - Z_sj Z_sl), shape (k, k).

    Z_s is what is unknown before s, z of the `line` of k runs, and `spread` from `Steps.spread`. If
    the moments are the truth, it has the covariance of the estimates as its expectation.
    """
    factor = spread * moments.square
    cross = (line.slope.T @ line.slope.multiply(factor[:, None]).tocsr()).toarray()
    total = cross - _crossed(line.slope.T @ factor, line.level)
    total += factor.sum() * np.multiply.outer(line.level, line.level)
    whole = (line.slope.T @ moments.mean) - moments.mean.sum() * line.level
    squares = steps.share**2
    useful = np.flatnonzero(moments.mean[steps.document])
    documents = steps.document[useful]
    known = line.rows(documents) * (line.scale * moments.mean[documents])[:, None]
    later = tails(squares)
    both = sparse.csr_array(later[np.maximum.outer(useful, useful)])
    before = np.einsum("i,ij->j", later[useful], known)
    total -= squares.sum() * np.multiply.outer(whole, whole) - _crossed(whole, before)
    total -= sparse.csr_array(known.T) @ (both @ known)
    return np.asarray((total + total.T) / (2.0 * line.scale**2))


@dataclass(frozen=True, eq=False)
class Left:
    """What is expected of documents of a topic that nobody has judged, to each of k values.

    ``squares``: sum_i E[y_i^2] z_ij z_il, (k, k); ``total``, ``cubes``: of |z_ij| E[y_i] and of
    |z_ij|^3 E[y_i^3], (k,); ``open``, ``judged``, ``largest``: of z_ij^2
    over these documents and over others, and the largest.
    """

    squares: FloatArray
    total: FloatArray
    cubes: FloatArray
    open: FloatArray
    judged: FloatArray
    largest: FloatArray


def left_of(steps: Steps, line: Linearized, moments: LikelyUtility) -> Left:
    """Return what may be missed of a topic with the `line` of k runs."""
    every = line.rows(np.arange(len(steps.lists))) ** 2
    documents = np.setdiff1d(np.arange(len(steps.lists)), steps.document)
    documents = documents[moments.mean[documents] > 0.0]
    mean, square = moments.mean[documents], moments.square[documents]
    rows = line.rows(documents)
    weighted = sparse.csr_array(rows.T) @ (rows * square[:, None])
    size = np.abs(rows)
    return Left(
        squares=np.asarray((weighted + weighted.T) / 2.0),
        total=np.einsum("i,ij->j", mean, size),
        cubes=np.einsum("i,ij->j", square**2 / mean, size**3),
        open=every[documents].sum(axis=0),
        judged=every[steps.document].sum(axis=0),
        largest=every.max(axis=0),
    )


def missed_of_topics(left: Iterable[Left], *, topics: int) -> Missed | None:
    """Return what may be missed of means over so many topics; None if nothing was looked at."""
    every = list(left)
    if not every:
        return None

    def added(part: Callable[[Left], FloatArray]) -> FloatArray:
        return np.asarray(np.sum([part(each) for each in every], axis=0))

    total, cubes = added(lambda each: each.total), added(lambda each: each.cubes)
    largest = np.max([each.largest for each in every], axis=0)
    return Missed(
        squares=added(lambda each: each.squares) / topics**2,
        step=np.sqrt(share_of(cubes, of=total)) / topics,
        left=share_of(added(lambda each: each.open), of=added(lambda each: each.judged) + largest),
    )


def _crossed(first: FloatArray, second: FloatArray) -> FloatArray:
    outer = np.multiply.outer(first, second)
    return np.asarray(outer + outer.T)
