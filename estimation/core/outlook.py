"""What the judgments let one expect of the grade of every pair: a model, fitted by raking.

How uncertain a value is depends on pairs that were not judged. What is known of them is where they
stand: their topic, the probability that the design gave them, the best rank that any run gives
them, how many and which runs return them, and what the prior believed of them. For each grade g
the share of judgments that reach it is modeled as a product,

    share_i = base * topic factor * class factors * run factor_i,

capped at 1. Classes are by sixths of those numbers among the sampled pairs; the run factor is the
geometric mean over the runs that return the pair. Every factor is the ratio of what was found to
what the other factors expect among its sampled pairs, both with a number of pairs added that draws
it towards 1 (`SHRINKAGE`); factors are updated in turn (raking, or iterative proportional fitting:
Deming and Stephan 1940). That is enough: a run whose documents are found relevant twice as often
as others of their kind gets twice the expectation.

The model is for uncertainty alone. No estimated value depends on it, so that it biases none,
however wrong it is; an interval or a verdict is as good as the model and the sample together say
(`uncertainty`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from estimation.core.arrays import FloatArray, IntArray, SparseMatrix, column_sums
from estimation.core.drawn import Drawn
from estimation.core.labels import LabelRows, select_rows
from estimation.core.measures import Measure
from estimation.core.pool import Pool

CLASSES = 6  # of probabilities and of beliefs, each with as many sampled pairs
MOST_FITTED = 8192  # sampled pairs that the model is fitted to
SHRINKAGE, SHRINKAGE_OF_RUNS = 1.0, 2.0  # found and expected pairs that are added to each factor
SWEEPS = 6


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

    def moments(self, measure: Measure, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the expected utility and squared utility of pairs, (n,) each.

        The measure is of the family gain: its utilities do not depend on runs.
        """
        utility, shares = measure.utilities(self.grades), self.shares(pairs)
        first = np.add.reduce(utility[:, None] * shares, axis=0)
        return first, np.add.reduce(utility[:, None] ** 2 * shares, axis=0)


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
    """The model: factors of the base, of classes of pairs and of runs, one set for each level."""

    levels: IntArray
    kinds: "_Kinds"
    models: tuple["_Model", ...]

    def reach(self, pairs: IntArray) -> FloatArray:
        """Return what the model says of some pairs."""
        known = self.kinds.of_pairs(pairs)
        found = [model.expected(known) for model in self.models]
        return np.minimum.accumulate(np.stack(found), axis=0)

    def everywhere(self) -> KnownOutlook:
        """Work it out for every pair."""
        return KnownOutlook(self.levels, self.reach(np.arange(len(self.kinds.pool))))


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
    kinds = _Kinds.of(pool, drawn, drawn.pair[some])
    known = kinds.of_pairs(drawn.pair[some])
    models = []
    for level in levels.tolist():
        reached = np.bincount(rows.pair[rows.grade >= level], minlength=len(drawn.pair))[some]
        models.append(_Model.of(known, reached / number))
    return FittedOutlook(levels, kinds, tuple(models))


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
    classes : tuple of ndarray of int64, shape (n,)
        Their topics, and their classes by probability, best rank, number of runs and belief.
    numbers : tuple of int
        How many classes there are of each kind.
    runs : csr_array, shape (n, k)
        Their runs, each with one over the number of the pair's runs.
    """

    classes: tuple[IntArray, ...]
    numbers: tuple[int, ...]
    runs: SparseMatrix


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Puts pairs of a pool into classes, with edges such that each has as many sampled pairs."""

    pool: Pool
    drawn: Drawn
    edges: tuple[FloatArray, ...]

    @classmethod
    def of(cls, pool: Pool, drawn: Drawn, pairs: IntArray) -> "_Kinds":
        return cls(pool, drawn, tuple(map(_edges, _graded(pool, drawn, pairs))))

    def of_pairs(self, pairs: IntArray) -> _Known:
        pool, graded = self.pool, _graded(self.pool, self.drawn, pairs)
        rows = pool.by_pair(pool.run)[pairs]
        counts = np.diff(rows.indptr)
        shares = np.repeat(1.0 / np.maximum(counts, 1), counts)
        place = rows.indices, rows.indptr
        return _Known(
            classes=(pool.topic[pairs].astype(np.int64), *map(_classes, graded, self.edges)),
            numbers=(len(pool.topics), *(len(each) + 1 for each in self.edges)),
            runs=sparse.csr_array((shares, *place), shape=rows.shape),
        )


def _graded(pool: Pool, drawn: Drawn, pairs: IntArray) -> list[FloatArray | IntArray]:
    """Numbers by which pairs are put into classes, (n,) each."""
    ranks, counts = pool.by_pair(pool.rank)[pairs], np.diff(pool.indptr)[pairs]
    best = np.full(len(pairs), pool.depth + 1)
    returned = np.flatnonzero(counts)
    if len(returned):
        best[returned] = np.minimum.reduceat(ranks.data, ranks.indptr[returned])
    graded = [drawn.inclusion[pairs], best, counts]
    return graded if drawn.belief is None else [*graded, drawn.belief[pairs]]


def _classes(values: FloatArray | IntArray, edges: FloatArray) -> IntArray:
    """How many edges lie below each value; a search for each would take longer."""
    found = np.zeros(len(values), dtype=np.int64)
    for edge in edges.tolist():
        found += values > edge
    return found


def _edges(values: FloatArray | IntArray) -> FloatArray:
    """Where classes with as many values each end."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    at = (np.arange(1, CLASSES) * len(ordered)) // CLASSES
    return np.unique(ordered[at]) if len(ordered) else ordered


@dataclass(frozen=True, eq=False)
class _Model:
    """Logarithms of the base, of the factor of every class of each kind, and of every run, (k,)."""

    base: float
    factors: tuple[FloatArray, ...]
    of_runs: FloatArray

    @classmethod
    def of(cls, known: _Known, found: FloatArray) -> "_Model":
        """Fit it by raking to the shares found of n pairs."""
        base = float(np.log((found.sum() + 0.5) / (len(found) + 1.0)))
        factors = tuple(np.zeros(number) for number in known.numbers)
        model = cls(base, factors, np.zeros(known.runs.shape[1]))
        if found.any():  # else nothing tells one pair from another
            model._rake(known, found)
        return model

    def _rake(self, known: _Known, found: FloatArray) -> None:
        logs, back = np.full(len(found), self.base), known.runs.T.tocsr()
        for _ in range(SWEEPS):
            for factor, of_pair in zip(self.factors, known.classes, strict=True):
                expected = column_sums(of_pair, np.minimum(np.exp(logs), 1.0), number=len(factor))
                sums = column_sums(of_pair, found, number=len(factor))
                change = _log_ratio(sums, expected, SHRINKAGE)
                np.add(factor, change, out=factor)
                logs += change[of_pair]
            expected = np.minimum(np.exp(logs), 1.0)
            change = _log_ratio(back @ found, back @ expected, SHRINKAGE_OF_RUNS)
            np.add(self.of_runs, change, out=self.of_runs)
            logs += known.runs @ change

    def expected(self, known: _Known) -> FloatArray:
        """The modeled share of n pairs."""
        logs = self.base + known.runs @ self.of_runs
        for factor, of_pair in zip(self.factors, known.classes, strict=True):
            logs += factor[of_pair]
        return np.asarray(np.minimum(np.exp(logs), 1.0), dtype=np.float64)


def _log_ratio(found: FloatArray, expected: FloatArray, shrinkage: float) -> FloatArray:
    return np.asarray(np.log((found + shrinkage) / (expected + shrinkage)), dtype=np.float64)
