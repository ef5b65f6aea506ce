"""What the judgments let one expect of the grade of every pair: a model, fitted by raking.

How uncertain a value is depends on pairs that were not judged. What is known of them is where they
stand: their topic, the probability that the design gave them, the best rank that any run gives
them, how many and which runs return them, and what the prior believed of them. For each grade g
the share of judgments that reach it is modeled as a product,

    share_i = base * belief_i * topic factor * class factors * run factors_i,

capped at 1. The prior's belief is where the fit starts from, and all there is as long as little was
found: a prior that is right about the order of pairs is far better than none, and one that is wrong
is corrected by the factors of its classes. Classes are by tenths of those numbers among the sampled
pairs; a run factor is the geometric mean over the runs that return the pair, and pairs that few
runs return have a second one: a run made by hand, or by another method than all others, often
differs in what it alone returns, and there its uncertainty lies. Every factor is the ratio of what
was found to what the other factors expect among its sampled pairs, both with a number of pairs
added that draws it towards 1: it is the posterior mean if the prior is a gamma distribution and
counts are Poisson's.
Factors are updated in turn (raking, or iterative proportional fitting: Deming and Stephan 1940).
So a run whose documents are found relevant twice as often as others of their kind gets twice the
expectation.

The model is for uncertainty alone. No estimated value depends on it, so that it biases none,
however wrong it is; an interval or a verdict is as good as the model and the sample together say
(`uncertainty`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from estimation.core.arrays import BoolArray, FloatArray, IntArray, SparseMatrix, spread_rows
from estimation.core.drawn import Drawn
from estimation.core.labels import LabelRows, select_rows
from estimation.core.measures import Measure
from estimation.core.pool import Pool

CLASSES = 10  # of probabilities and of beliefs, each with as many sampled pairs
MOST_FITTED = 4096  # sampled pairs that the model is fitted to
# Found and expected pairs that are added to each factor of a class, and of a run, which has a share
# of each of its pairs only.
ADDED, ADDED_TO_RUNS = 1.0, 0.1
SWEEPS = 4
LEAST_BELIEF = 1e-3  # as a share of what it is in the sample


class Outlook(ABC):
    """The grades that are expected of the N pairs of a pool.

    Attributes
    ----------
    levels : ndarray of int64, shape (L,)
        Grades above 0, ascending.
    """

    levels: IntArray

    @abstractmethod
    def reach(self, pairs: IntArray) -> FloatArray:
        """Return the expected share of the judgments of pairs with at least each level, (L, n).

        In [0, 1]; never rising from one level to the next.
        """

    @property
    def grades(self) -> IntArray:
        """The L + 1 grades that have a share: 0, and the levels."""
        return np.append(0, self.levels)

    def shares(self, pairs: IntArray) -> FloatArray:
        """Return the expected share of each of `grades` among judgments, shape (L + 1, n)."""
        return -np.diff(self.reach(pairs), axis=0, prepend=1.0, append=0.0)

    def moments(self, measure: Measure, pairs: IntArray) -> FloatArray:
        """Return what is expected of the utility of pairs, its square and its cube, shape (3, n).

        The measure is of the family gain: its utilities do not depend on runs.
        """
        utility, shares = measure.utilities(self.grades), self.shares(pairs)
        powers = utility[:, None, None] ** np.arange(1, 4)[:, None]
        return np.asarray(np.add.reduce(powers * shares[:, None, :], axis=0))


@dataclass(frozen=True, eq=False)
class KnownOutlook(Outlook):
    """An outlook that was worked out for every pair.

    Attributes
    ----------
    levels : ndarray of int64, shape (L,)
    reached : ndarray of float64, shape (L, N)
        `reach` of all pairs.
    """

    levels: IntArray
    reached: FloatArray

    def reach(self, pairs: IntArray) -> FloatArray:
        """Return what is known of some pairs."""
        return self.reached[:, pairs]

    def carried(self, place: IntArray, pairs: int) -> "KnownOutlook":
        """Say the same of a larger pool, in which the N pairs stand at `place`; 0 of the others."""
        reached = np.zeros((len(self.levels), pairs))
        reached[:, place] = self.reached
        return KnownOutlook(self.levels, reached)


@dataclass(frozen=True, eq=False)
class FittedOutlook(Outlook):
    """The model: a base and factors of every kind, each with a column for every level."""

    levels: IntArray
    kinds: "_Kinds"
    model: "_Model"

    def reach(self, pairs: IntArray) -> FloatArray:
        """Return what the model says of some pairs, each worked out when it is asked for first."""
        reached, known = self._worked_out
        new = pairs[~known[pairs]]
        if len(new):
            shares = self.model.shares(self.kinds.of_pairs(new))
            reached[new] = np.minimum.accumulate(shares, axis=1)
            known[new] = True
        return np.ascontiguousarray(reached[pairs].T)

    def everywhere(self) -> KnownOutlook:
        """Work it out for every pair."""
        return KnownOutlook(self.levels, self.reach(np.arange(len(self.kinds.pool))))

    @cached_property
    def _worked_out(self) -> tuple[FloatArray, BoolArray]:
        pairs = len(self.kinds.pool)
        return np.zeros((pairs, len(self.levels))), np.zeros(pairs, dtype=bool)


def fit_outlook(pool: Pool, drawn: Drawn, rows: LabelRows, *, max_grade: int) -> FittedOutlook:
    """Fit the model to the judgments of a sample.

    Parameters
    ----------
    pool : Pool
        With the runs of the round.
    drawn : Drawn
    rows : LabelRows
        From `select_rows`: sorted, `pair` counting positions in `drawn.pair`.
    max_grade : int
        The best grade of the scale.
    """
    levels = np.unique([1, max_grade, *np.unique(rows.grade[rows.grade > 0]).tolist()])
    every = max(1, -(-len(drawn.pair) // MOST_FITTED))
    some = np.arange(0, len(drawn.pair), every)
    number = np.bincount(rows.pair, minlength=len(drawn.pair))[some]
    reached = [
        np.bincount(rows.pair[rows.grade >= level], minlength=len(drawn.pair))[some] / number
        for level in levels.tolist()
    ]
    kinds = _Kinds(pool, drawn, drawn.pair[some])
    model = _Model.of(kinds.of_pairs(drawn.pair[some]), np.stack(reached, axis=1))
    return FittedOutlook(levels, kinds, model)


def outlook_of(
    pool: Pool, drawn: Drawn, labels: LabelRows, *, sampled: IntArray, max_grade: int
) -> KnownOutlook:
    """Fit the model to judgments of sampled pairs, of which those of `drawn` are used."""
    rows = select_rows(labels, sampled=sampled, prefix=drawn.pair, max_grade=max_grade, pool=pool)
    return fit_outlook(pool, drawn, rows, max_grade=max_grade).everywhere()


@dataclass(frozen=True, eq=False)
class _Known:
    """What is known of n pairs apart from their grade.

    Attributes
    ----------
    start : ndarray of float64, shape (n,)
        Logarithm of what the prior says of each before anything is found, up to a constant.
    kinds : list of csr_arrays, shape (n, classes of the kind)
        How much a pair belongs to each class: of topics, of probability, best rank, number of runs
        and belief one class each, and all runs that return the pair, in equal parts; the last
        kind are the runs of pairs that at most sqrt(k) runs return.
    """

    start: FloatArray
    kinds: list[SparseMatrix]


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Puts pairs of a pool into classes, with edges such that each has as many sampled pairs."""

    pool: Pool
    drawn: Drawn
    sampled: IntArray

    def of_pairs(self, pairs: IntArray) -> _Known:
        rows = self.pool.by_pair(self.pool.rank)
        if len(pairs) < len(self.pool):
            rows = rows[pairs]
        graded = zip(self._graded(pairs, rows), self._edges, strict=True)
        classes = [_one_each(_classes(each, edges), CLASSES) for each, edges in graded]
        topics = _one_each(self.pool.topic[pairs], len(self.pool.topics))
        return _Known(self._start(pairs), [topics, *classes, *_runs(rows)])

    def _start(self, pairs: IntArray) -> FloatArray:
        """The logarithm of the belief, as a share of what it is among sampled pairs."""
        belief = self.drawn.belief
        if belief is None or not len(self.sampled):
            return np.zeros(len(pairs))
        usual = max(float(belief[self.sampled].mean()), 1e-300)
        return np.asarray(np.log(np.maximum(belief[pairs] / usual, LEAST_BELIEF)))

    def _graded(self, pairs: IntArray, rows: SparseMatrix) -> list[NDArray[Any]]:
        """Numbers by which pairs are put into classes, (n,) each; rows hold their ranks."""
        counts = np.diff(rows.indptr)
        best: NDArray[Any] = np.full(len(pairs), self.pool.depth + 1, dtype=np.int32)
        returned = np.flatnonzero(counts)
        if len(returned):
            best[returned] = np.minimum.reduceat(rows.data, rows.indptr[returned])
        graded: list[NDArray[Any]] = [self.drawn.inclusion[pairs], best, counts]
        return graded if self.drawn.belief is None else [*graded, self.drawn.belief[pairs]]

    @cached_property
    def _edges(self) -> list[FloatArray]:
        """Where classes end."""
        rows = self.pool.by_pair(self.pool.rank)[self.sampled]
        return [_edges(each) for each in self._graded(self.sampled, rows)]


def _runs(rows: SparseMatrix) -> list[SparseMatrix]:
    """All runs of each row, in equal parts; those of rows with few runs, and other rows empty."""
    counts = np.diff(rows.indptr)
    shares = np.repeat(1.0 / np.maximum(counts, 1), counts)
    runs = sparse.csr_array((shares, rows.indices, rows.indptr), shape=rows.shape)
    few = counts**2 <= rows.shape[1]
    return [runs, spread_rows(runs[np.flatnonzero(few)], few)]


def _classes(values: NDArray[Any], edges: FloatArray) -> NDArray[Any]:
    """How many edges lie below each value; a search for each would take longer."""
    found = np.zeros(len(values), dtype=np.int32)
    for edge in edges.tolist():
        found += values > edge
    return found


def _edges(values: NDArray[Any]) -> FloatArray:
    """Where classes with as many values each end."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    at = (np.arange(1, CLASSES) * len(ordered)) // CLASSES
    return np.unique(ordered[at]) if len(ordered) else ordered


def _one_each(of_pair: NDArray[Any], number: int) -> SparseMatrix:
    ends = np.arange(len(of_pair) + 1, dtype=np.int32)
    return sparse.csr_array((np.ones(len(of_pair)), of_pair, ends), shape=(len(of_pair), number))


@dataclass(frozen=True, eq=False)
class _Model:
    """Logarithms of the base, shape (L,), and of factors of each kind, (classes, L), in place."""

    base: FloatArray
    factors: list[FloatArray]

    @classmethod
    def of(cls, known: _Known, found: FloatArray) -> "_Model":
        """Fit it by raking to the shares found of n pairs, shape (n, L)."""
        sums = found.sum(axis=0)
        base = np.log((sums + 0.5) / (len(found) + 1.0))
        factors = [np.zeros((kind.shape[1], len(base))) for kind in known.kinds]
        model = cls(base, factors)
        some = np.flatnonzero(sums)  # without finds nothing tells one pair from another
        model._rake(known, found[:, some], some)
        return model

    def _rake(self, known: _Known, found: FloatArray, some: IntArray) -> None:
        logs = self.base[some] + known.start[:, None]
        added = [ADDED] * (len(known.kinds) - 2) + [ADDED_TO_RUNS] * 2
        back = [kind.T.tocsr() for kind in known.kinds]
        sums = [each @ found for each in back]
        for _ in range(SWEEPS):
            for number, (kind, factor) in enumerate(zip(known.kinds, self.factors, strict=True)):
                old = factor[:, some]
                without = (back[number] @ _shares(logs)) * np.exp(-old)
                more = added[number]
                new = np.log((sums[number] + more) / (without + more))
                factor[:, some] = new
                logs += kind @ (new - old)

    def shares(self, known: _Known) -> FloatArray:
        """The modeled shares of n pairs, shape (n, L)."""
        logs = self.base + known.start[:, None]
        for kind, factor in zip(known.kinds, self.factors, strict=True):
            logs += kind @ factor
        return _shares(logs)


def _shares(logs: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.minimum(logs, 0.0)), dtype=np.float64)
