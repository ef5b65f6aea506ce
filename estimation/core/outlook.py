"""What the judgments let one expect of the grade of every pair: a model, fitted by raking.

How uncertain a value is depends on pairs that were not judged. What is known of them is where they
stand: their topic, the probability that the design gave them, what the prior believed of them, and
the runs that return them. For each grade g the share of judgments that reach it is modeled as a
product,

    share_i = base * topic factor * probability factor * belief factor * run factor_i,

capped at 1, the run factor being the geometric mean over the runs that return the pair. Every
factor is the ratio of what was found to what the other factors expect among its sampled pairs, both
with a number of pairs added that draws it towards 1 (`SHRINKAGE`); factors are updated in turn
(raking, or iterative proportional fitting: Deming and Stephan 1940). That is enough: a run whose
documents are found relevant twice as often as others of their kind gets twice the expectation.

The model is for uncertainty alone. No estimated value depends on it, so that it biases none,
however wrong it is; an interval or a verdict is as good as the model and the sample together say
(`uncertainty`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, SparseMatrix
from estimation.core.drawn import Drawn
from estimation.core.labels import LabelRows, select_rows
from estimation.core.measures import Measure
from estimation.core.pool import Pool

CLASSES = 6  # of probabilities and of beliefs, each with as many sampled pairs
MOST_FITTED = 8192  # sampled pairs that the model is fitted to
SHRINKAGE, SHRINKAGE_OF_RUNS = 1.0, 2.0  # found and expected pairs that are added to each factor
SWEEPS = 6


@dataclass(frozen=True, eq=False)
class Outlook:
    """The grades that are expected of the N pairs of a pool.

    Attributes
    ----------
    levels : ndarray of int64, shape (L,)
        Grades above 0, ascending.
    reach : ndarray of float64, shape (L, N)
        Expected share of the judgments of a pair with at least this grade, in [0, 1]; never
        rising from one level to the next.
    """

    levels: IntArray
    reach: FloatArray

    @property
    def grades(self) -> IntArray:
        """The L + 1 grades that have a share: 0, and the levels."""
        return np.append(0, self.levels)

    def shares(self, pairs: IntArray) -> FloatArray:
        """Return the expected share of each of `grades` among judgments, shape (L + 1, n)."""
        reach = self.reach[:, pairs]
        return -np.diff(reach, axis=0, prepend=1.0, append=0.0)

    def moments(self, measure: Measure, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the expected utility and squared utility of pairs, (n,) each.

        The measure is of the family gain: its utilities do not depend on runs.
        """
        utility, shares = measure.utilities(self.grades), self.shares(pairs)
        first = np.add.reduce(utility[:, None] * shares, axis=0)
        return first, np.add.reduce(utility[:, None] ** 2 * shares, axis=0)

    def carried(self, place: IntArray, pairs: int) -> "Outlook":
        """Say the same of a larger pool, in which the N pairs stand at `place`; 0 of the others."""
        reach = np.zeros((len(self.levels), pairs))
        reach[:, place] = self.reach
        return Outlook(self.levels, reach)


def fit_outlook(pool: Pool, drawn: Drawn, rows: LabelRows, *, max_grade: int) -> Outlook:
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
    kinds = _Kinds.of(pool, drawn, some)
    reach = np.empty((len(levels), len(pool)))
    for line, level in zip(reach, levels.tolist(), strict=True):
        reached = np.bincount(rows.pair[rows.grade >= level], minlength=len(drawn.pair))[some]
        line[:] = _expected(pool, kinds, reached / number)
    return Outlook(levels, np.minimum.accumulate(reach, axis=0))


def outlook_of(
    pool: Pool, drawn: Drawn, labels: LabelRows, *, sampled: IntArray, max_grade: int
) -> Outlook:
    """Fit the model to judgments of sampled pairs, of which those of `drawn` are used."""
    rows = select_rows(labels, sampled=sampled, prefix=drawn.pair, max_grade=max_grade, pool=pool)
    return fit_outlook(pool, drawn, rows, max_grade=max_grade)


@dataclass(frozen=True, eq=False)
class _Kinds:
    """What is known of pairs apart from their grade.

    Attributes
    ----------
    classes : tuple of ndarray of int, shape (N,)
        Of every pair of the pool: its topic, and its class by probability and by belief.
    numbers : tuple of int
        How many classes there are.
    pairs : ndarray of int64, shape (n,)
        The sampled pairs that the model is fitted to.
    runs : csr_array, shape (n, k)
        Their runs, each with one over the number of the pair's runs.
    """

    classes: tuple[IntArray, ...]
    numbers: tuple[int, ...]
    pairs: IntArray
    runs: SparseMatrix

    @classmethod
    def of(cls, pool: Pool, drawn: Drawn, some: IntArray) -> "_Kinds":
        pairs = drawn.pair[some]
        graded = [drawn.inclusion, _best_ranks(pool), np.diff(pool.indptr)]
        graded += [] if drawn.belief is None else [drawn.belief]
        edges = [_edges(each[pairs]) for each in graded]
        classes = [np.searchsorted(e, each) for e, each in zip(edges, graded, strict=True)]
        rows = pool.by_pair(np.ones(len(pool.run)))[pairs]
        counts = np.diff(rows.indptr)
        rows.data = np.repeat(1.0 / np.maximum(counts, 1), counts)
        return cls(
            classes=(pool.topic.astype(np.int64), *classes),
            numbers=(len(pool.topics), *(len(e) + 1 for e in edges)),
            pairs=pairs,
            runs=rows,
        )

    def of_pairs(self) -> Iterator[tuple[IntArray, int]]:
        """The classes of the pairs to fit to, kind by kind, and how many there are."""
        for of_all, number in zip(self.classes, self.numbers, strict=True):
            yield of_all[self.pairs], number


def _best_ranks(pool: Pool) -> IntArray:
    """The best rank at which any run has each pair, (N,); beyond all ranks where none has it."""
    best = np.full(len(pool), pool.depth + 1)
    returned = np.flatnonzero(np.diff(pool.indptr))
    if len(returned):
        best[returned] = np.minimum.reduceat(pool.rank, pool.indptr[returned])
    return best


def _edges(values: FloatArray) -> FloatArray:
    """Where classes with as many values each end."""
    ordered = np.sort(values)
    at = (np.arange(1, CLASSES) * len(ordered)) // CLASSES
    return np.unique(ordered[at]) if len(ordered) else ordered


def _expected(pool: Pool, kinds: _Kinds, found: FloatArray) -> FloatArray:
    """The modeled share of every pair of the pool, (N,), from that of the fitted ones, (n,)."""
    base = float(np.log((found.sum() + 0.5) / (len(found) + 1.0)))
    logs, classes = np.full(len(found), base), list(kinds.of_pairs())
    factors = [np.zeros(number) for _, number in classes]
    of_runs, back = np.zeros(len(pool.runs)), kinds.runs.T.tocsr()
    for _ in range(SWEEPS):
        for factor, (of_pair, number) in zip(factors, classes, strict=True):
            expected = np.minimum(np.exp(logs), 1.0)
            change = np.log(
                (np.bincount(of_pair, found, number) + SHRINKAGE)
                / (np.bincount(of_pair, expected, number) + SHRINKAGE)
            )
            np.add(factor, change, out=factor)
            logs += change[of_pair]
        expected = np.minimum(np.exp(logs), 1.0)
        change = np.log((back @ found + SHRINKAGE_OF_RUNS) / (back @ expected + SHRINKAGE_OF_RUNS))
        of_runs += change
        logs += kinds.runs @ change
    everywhere = base + _mean_over_runs(pool, of_runs)
    for factor, of_all in zip(factors, kinds.classes, strict=True):
        everywhere += factor[of_all]
    return np.minimum(np.exp(everywhere), 1.0)


def _mean_over_runs(pool: Pool, of_runs: FloatArray) -> FloatArray:
    """The mean number of the runs that return each pair, (N,); 0 of a pair that none returns."""
    totals = pool.by_pair(np.ones(len(pool.run))) @ of_runs
    return np.asarray(totals / np.maximum(np.diff(pool.indptr), 1), dtype=np.float64)
