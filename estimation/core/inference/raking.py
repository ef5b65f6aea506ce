"""What to expect of pairs that were not judged, from where they stand: products, fitted by raking.

What is known of a pair before it is judged is its topic, the probability that the design gave it,
the best rank that any run gives it, how many and which runs return it, and what the prior believed
of it, or what was predicted. Something that judgments tell of a pair, between 0 and 1, is modeled
as

    share_i = base * belief_i * topic factor * class factors * run factors_i,

capped at 1. Classes are by tenths of those numbers among the sampled pairs (of predictions, their
bins); a run factor is the geometric mean over the runs that return the pair, and pairs that few
runs return have a second one: a run made by hand, or by another method than all others, often
differs in what it alone returns, and there its uncertainty lies. Every factor is the ratio of what
was found to what the other factors expect among its sampled pairs, both with a number of pairs
added that draws it towards 1: it is the posterior mean if the prior is a gamma distribution and
counts are Poisson's. Factors are updated in turn (raking, or iterative proportional fitting: Deming
and Stephan 1940). So a run whose documents are found relevant twice as often as others of their
kind gets twice the expectation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from ..arrays import FloatArray, IntArray, SparseMatrix, column_sums, spread_rows
from ..data.pool_ranks import best_rank, number_of_runs
from ..data.returned import is_few, returned_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..data.pool import Pool
    from ..estimates.drawn import Drawn

CLASSES = 10  # of probabilities and of beliefs, each with as many sampled pairs
# Found and expected pairs that are added to each factor of a class, and of a run, which has a share
# of each of its pairs only.
ADDED, ADDED_TO_RUNS = 1.0, 0.1
SWEEPS = 4
LEAST_BELIEF = 1e-3  # as a share of what it is in the sample
MOST_FITTED = 4096  # sampled pairs that a model is fitted to


def fitted_places(drawn: Drawn) -> IntArray:
    """Return positions of the sampled pairs that a model is fitted to: all, or evenly many."""
    every = max(1, -(-len(drawn.pair) // MOST_FITTED))
    return np.arange(0, len(drawn.pair), every)


@dataclass(frozen=True, eq=False)
class Traits:
    """What is known of n pairs apart from their grade.

    Attributes
    ----------
    start : ndarray of float64, shape (n,)
        Logarithm of what the prior says of each before anything is found, up to a constant.
    classes : list of (ndarray of int, shape (n,), int)
        Of topics, of probability, best rank, number of runs, belief and prediction: the class of
        each pair, and how many there are.
    pairs : ndarray of int64, shape (n,)
        The pairs themselves. The last two kinds are all runs that return a pair, in equal parts;
        and those of pairs that at most sqrt(k) runs return.
    """

    start: FloatArray
    classes: list[tuple[NDArray[Any], int]]
    pairs: IntArray


@dataclass(frozen=True, eq=False)
class PairClasses:
    """Puts pairs of a pool into classes, with edges such that each has as many sampled pairs.

    Attributes
    ----------
    pool : Pool
    drawn : Drawn
    sampled : ndarray of int64
        The sampled pairs that the model is fitted to.
    bins : ndarray of int64, shape (N,), or None
        Of predictions, from `calibration.order_bins`. The belief is then one of the classes, but
        not where the fit begins.
    """

    pool: Pool
    drawn: Drawn
    sampled: IntArray
    bins: IntArray | None = None

    def of_pairs(self, pairs: IntArray) -> Traits:
        graded = self._graded(pairs)
        both = zip(graded, self._edges, strict=True)
        classes = [(_classes(each, edges), CLASSES) for each, edges in both]
        topics = self.pool.topic[pairs], len(self.pool.topics)
        if self.bins is not None:
            bins = self.bins + 1
            classes.append((bins[pairs], int(bins.max(initial=0)) + 1))
        return Traits(self._start(graded), [topics, *classes], pairs)

    def _start(self, graded: list[NDArray[Any]]) -> FloatArray:
        """The logarithm of the belief, as a share of what it is among sampled pairs."""
        belief = self.drawn.belief if self.bins is None else None
        if belief is None or not len(self.sampled):
            return np.zeros(len(graded[0]))
        usual = max(float(belief[self.sampled].mean()), 1e-300)
        shares = graded[-1] / usual
        np.maximum(shares, LEAST_BELIEF, out=shares)
        return np.asarray(np.log(shares, out=shares))

    def _graded(self, pairs: IntArray) -> list[NDArray[Any]]:
        """Numbers by which pairs are put into classes, (n,) each; beliefs are the last ones."""
        every: list[NDArray[Any]] = [self.drawn.inclusion]
        every += [best_rank(self.pool), number_of_runs(self.pool)]
        every += [] if self.drawn.belief is None else [self.drawn.belief]
        return [np.take(each, pairs) for each in every]

    @cached_property
    def _edges(self) -> list[NDArray[Any]]:
        """Where classes end."""
        return [_edges(each) for each in self._graded(self.sampled)]


def _runs(rows: SparseMatrix) -> list[SparseMatrix]:
    """All runs of each row, in equal parts; those of rows with few runs, and other rows empty."""
    counts = np.diff(rows.indptr)
    shares = np.repeat(1.0 / np.maximum(counts, 1), counts)
    runs = sparse.csr_array((shares, rows.indices, rows.indptr), shape=rows.shape)
    few = is_few(counts, rows.shape[1])
    return [runs, spread_rows(runs[np.flatnonzero(few)], few)]


def _classes(values: NDArray[Any], edges: NDArray[Any]) -> NDArray[Any]:
    """How many edges lie below each value; a search for each would take longer."""
    if values.dtype.kind == "i":  # ranks and numbers of runs: a search for each that there is
        every = np.arange(1 + int(values.max(initial=0)))
        return np.take(np.searchsorted(edges, every).astype(np.uint8), values)
    found = np.zeros(len(values), dtype=np.uint8)
    for edge in edges:
        found += values > edge
    return found


def _edges(values: NDArray[Any]) -> NDArray[Any]:
    """Where classes with as many values each end."""
    ordered = np.sort(values)
    at = (np.arange(1, CLASSES) * len(ordered)) // CLASSES
    return np.unique(ordered[at]) if len(ordered) else ordered


@dataclass(frozen=True, eq=False)
class _OneEach:
    """Each pair is in one class; `number` says how many there are."""

    of_pair: NDArray[Any]
    number: int

    def sums(self, values: FloatArray) -> FloatArray:
        """Add up numbers of n pairs by class, (n, L) to (classes, L)."""
        columns = [column_sums(self.of_pair, each, number=self.number) for each in values.T]
        return np.stack(columns, axis=1)

    def spread(self, values: FloatArray) -> FloatArray:
        """Give n pairs the numbers of their classes, (classes, L) to (n, L)."""
        spread: FloatArray = values[self.of_pair]
        return spread


@dataclass(frozen=True, eq=False)
class _InParts:
    """Pairs are in several classes, or in none; csr_array, shape (n, classes)."""

    parts: SparseMatrix

    @cached_property
    def _turned(self) -> SparseMatrix:
        return self.parts.T

    def sums(self, values: FloatArray) -> FloatArray:
        return np.asarray(self._turned @ values, dtype=np.float64)

    def spread(self, values: FloatArray) -> FloatArray:
        return np.asarray(self.parts @ values, dtype=np.float64)

    @property
    def number(self) -> int:
        return int(self.parts.shape[1])


_Kind: TypeAlias = _OneEach | _InParts  # a kind of classes, to which pairs belong in parts


@dataclass(frozen=True, eq=False)
class Model:
    """Logarithms of the base, shape (L,), and of factors of each kind, (classes, L), in place."""

    pool: Pool
    base: FloatArray
    factors: list[FloatArray]

    @classmethod
    def of(cls, pool: Pool, traits: Traits, found: FloatArray) -> Model:
        """Fit it by raking to the shares found of n pairs, shape (n, L)."""
        sums = found.sum(axis=0)
        base = np.log((sums + 0.5) / (len(found) + 1.0))
        kinds: list[_Kind] = [_OneEach(*each) for each in traits.classes]
        kinds += [_InParts(each) for each in _runs(pool.by_pair(pool.rank)[traits.pairs])]
        model = cls(pool, base, [np.zeros((kind.number, len(base))) for kind in kinds])
        some = np.flatnonzero(sums)  # without finds nothing tells one pair from another
        if len(some):
            model._rake(kinds, traits.start, found[:, some], some)
        return model

    def _rake(
        self, kinds: list[_Kind], start: FloatArray, found: FloatArray, some: IntArray
    ) -> None:
        logs = self.base[some] + start[:, None]
        added = [ADDED] * (len(kinds) - 2) + [ADDED_TO_RUNS] * 2
        sums = [kind.sums(found) for kind in kinds]
        for _ in range(SWEEPS):
            for number, (kind, factor) in enumerate(zip(kinds, self.factors, strict=True)):
                old = factor[:, some]
                without = kind.sums(_shares(logs)) * np.exp(-old)
                more = added[number]
                new = np.log((sums[number] + more) / (without + more))
                factor[:, some] = new
                logs += kind.spread(new - old)

    def shares(self, traits: Traits, *, often: bool = False) -> FloatArray:
        """The modeled shares of n pairs, shape (L, n).

        Are they asked for often, their runs are kept with the pool.
        """
        logs = np.add.outer(self.base, traits.start)
        runs = returned_by(self.pool, traits.pairs, keep=often)
        *of_classes, of_all, of_few = self.factors
        for level in range(len(logs)):
            if not any(factor[:, level].any() for factor in self.factors):
                continue  # nothing was found that is as good
            for (place, _), factor in zip(traits.classes, of_classes, strict=True):
                logs[level] += np.take(factor[:, level], place)
            logs[level] += runs.means(of_all[:, level], of_few[:, level])
        return _shares(logs)


def _shares(logs: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.minimum(logs, 0.0)), dtype=np.float64)
