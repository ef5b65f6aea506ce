"""How far utilities of pairs move the values of runs, and what estimates of these vary by.

Sums over pairs are taken block by block of the pool (`data.blocks`), for all steps of a design and
all beliefs in one go, so that entries are looked at once and no number of each is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import FloatArray, IntArray, SparseMatrix, column_sums
from ..data.blocks import blocks
from ..estimates.products import BLOCK_PAIRS, cross_products
from ..estimates.ratios import prior_slopes
from ..estimates.rows import taken, those_many_first
from ..estimates.topic_sums import TopicSums
from ..measures.kinds import PREFERENCE_MAX_GRADE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..data.pool import Pool
    from ..measures.table import Measure
    from ..sampling.designs import Design
    from ..sampling.priors import Prior

AT_ONCE = 8_000_000
"""Entries of a pool whose values' own covariance is summed up in one go, to the bits that it always
had: which of two runs that are nearly copies leads in a future that is played (`prospects`) hangs
on its rounding."""


def variances(
    pool: Pool,
    design: Design,
    *,
    measure: Measure,
    beliefs: Sequence[Prior],
    steps: Sequence[float],
    max_grade: int | None,
) -> FloatArray:
    """Return the variances of the k estimates that each of b priors expects after each of m steps
    (`Design.step`), shape (b, m, k); see `planning.expected_half_widths`."""
    shape = len(beliefs), len(steps), len(pool.runs)
    expected = _Expected(design, steps, np.zeros(shape), Moves.squares, np.square)
    return expected.over(pool, measure, beliefs, max_grade)


def covariances(
    pool: Pool,
    design: Design,
    *,
    measure: Measure,
    beliefs: Sequence[Prior],
    steps: Sequence[float],
    max_grade: int | None,
) -> FloatArray:
    """Return the covariances, shape (b, m, k, k)."""
    shape = len(beliefs), len(steps), len(pool.runs), len(pool.runs)
    expected = _Expected(design, steps, np.zeros(shape), Moves.products, _outer)
    return expected.over(pool, measure, beliefs, max_grade)


def products(
    pool: Pool,
    *,
    factors: Sequence[FloatArray],
    measure: Measure,
    beliefs: Sequence[Prior],
    max_grade: int | None,
) -> FloatArray:
    """Return sum_i factor_i w_ij w_il over all N pairs, for one vector of factors, (N,), and each
    of b priors, shape (b, k, k)."""
    total = np.zeros((len(beliefs), len(pool.runs), len(pool.runs)))
    for pairs, priors, moves in _moved(pool, measure, beliefs, max_grade, at_once=AT_ONCE):
        some = np.stack([each[pairs] for each in factors])
        if len(moves) < len(priors):
            total += moves[0].products(some)
        else:
            for at, own in enumerate(moves):
                total[at] += own.products(some[at : at + 1])[0]
    return total


def best_of(prior: Prior) -> float:
    """Return the largest utility that a prior thinks of."""
    return float((prior.second_moment / prior.expected).max())


def _moved(
    pool: Pool,
    measure: Measure,
    beliefs: Sequence[Prior],
    max_grade: int | None,
    *,
    at_once: int = 0,
) -> Iterator[tuple[slice, list[Prior], list[Moves]]]:
    """Blocks of pairs, what each prior believes of them, and how they move values: one for all
    priors, or, of ratios, one for each."""
    bests = [best_of(prior) for prior in beliefs] if measure.family == "ratio" else None
    for block in blocks(pool, at_once=at_once):
        own = [prior.of(block.pairs) for prior in beliefs]
        if bests is None:
            yield block.pairs, own, [Moves.of(block.pool, measure, max_grade)]
        else:
            both = zip(own, bests, strict=True)
            yield block.pairs, own, [Moves.of_ratio(block.pool, measure, *each) for each in both]


@dataclass(frozen=True, eq=False)
class _Expected:
    """Sums for b beliefs and m steps that are added up over blocks, in place.

    Attributes
    ----------
    design : Design
    steps : sequence of float
    sums : ndarray of float64, shape (b, m, ...)
    of : callable
        Sums of moves, (m, ...), by factors, (m, n).
    squared : callable
        The same of totals, (m, k), that vary with what is drawn: what is taken off for draws.
    """

    design: Design
    steps: Sequence[float]
    sums: FloatArray
    of: Callable[[Moves, FloatArray], FloatArray]
    squared: Callable[[FloatArray], FloatArray]

    def over(
        self, pool: Pool, measure: Measure, beliefs: Sequence[Prior], max_grade: int | None
    ) -> FloatArray:
        """Add them up over a pool."""
        drawn = np.zeros((len(beliefs), len(self.steps), len(pool.runs)))
        for pairs, priors, moves in _moved(pool, measure, beliefs, max_grade):
            design, alike = self.design.of(pairs), len(moves) < len(priors)
            factors = np.zeros((*self.sums.shape[:2], len(design.size)))
            for prior, rows in zip(priors, factors, strict=True):
                self._factors(design, prior, rows, distinct=moves[0].is_ratio)
            if alike:  # entries are looked at once for all of them
                found = self.of(moves[0], factors.reshape(-1, factors.shape[-1]))
                self.sums[:] += found.reshape(self.sums.shape)
            for at, (prior, own) in enumerate(zip(priors, moves * len(priors), strict=False)):
                if not alike:
                    self.sums[at] += self.of(own, factors[at])
                if self.design.with_replacement:
                    self._take_off(at, design, prior, own, drawn[at])
        if self.design.with_replacement and not self.design.by_topic:
            for at, totals in enumerate(drawn):
                self.sums[at] -= self._per_step(self.squared(totals))
        return self.sums

    def _factors(self, design: Design, prior: Prior, rows: FloatArray, *, distinct: bool) -> None:
        """Put into rows, (m, n), what multiplies w_ij w_il: s2 (1 - pi)/pi, or s2/(n Q) for draws
        of which each counts."""
        for row, step in zip(rows, self.steps, strict=True):
            if design.with_replacement and not distinct:
                numerator, expected = prior.second_moment, step * design.strata * design.size
            else:
                expected = design.inclusion_after(step)
                numerator = prior.second_moment * (1.0 - expected)
            np.divide(numerator, expected, out=row, where=expected > 0.0)

    def _take_off(
        self, at: int, design: Design, prior: Prior, moves: Moves, drawn: FloatArray
    ) -> None:
        """P_j over the eligible pairs of each stratum: topics are, or all of them together."""
        believed = np.where(design.eligible, prior.expected, 0.0)
        totals = np.zeros((0, 0)) if moves.is_ratio else moves.totals(believed)
        for row, step in enumerate(self.steps):
            if moves.is_ratio:
                chance = design.inclusion_after(step)
                often = step * design.strata * design.size * (1.0 - chance)
                times = np.divide(often, chance, out=np.zeros_like(often), where=chance > 0.0)
                totals = moves.totals(believed * times)
            if self.design.by_topic:
                some = totals[totals.any(axis=1)]
                self.sums[at, row] -= self.squared(some).sum(axis=0) / step
            else:
                drawn[row] += totals.sum(axis=0)

    def _per_step(self, sums: FloatArray) -> FloatArray:
        steps = np.reshape(self.steps, (-1, *[1] * (sums.ndim - 1)))
        return np.asarray(sums / steps, dtype=np.float64)


def _outer(totals: FloatArray) -> FloatArray:
    return totals[:, :, None] * totals[:, None, :]


@dataclass(frozen=True, eq=False)
class Moves:
    """By how much a unit of utility of each of n pairs moves the value of each run.

    Attributes
    ----------
    topic : ndarray of int64, shape (n,)
    topics : int
    grades : tuple of csr_array, shape (n, k) each
        One for every equally likely grade.
    topic_slope : ndarray of float64, shape (T, k), or None
        Taken off for every pair of the topic: of ratios.
    """

    topic: IntArray
    topics: int
    grades: tuple[SparseMatrix, ...]
    topic_slope: FloatArray | None = None

    @classmethod
    def of(cls, pool: Pool, measure: Measure, max_grade: int | None) -> Moves:
        """Return those of a measure that is no ratio; ValueError where it needs a best grade."""
        topic, topics = pool.topic.astype(np.int64), len(pool.topics)
        if measure.family == "gain":
            return cls(topic, topics, (pool.weights(measure),))
        best_grade = PREFERENCE_MAX_GRADE if measure.family == "preference" else max_grade
        if best_grade is None:
            raise ValueError(f"max_grade is needed for {measure}, whose utility depends on the run")
        weights = pool.entry_weights(measure)
        grades = (
            pool.by_pair(weights * pool.entry_utilities(measure, grade))
            for grade in range(best_grade + 1)
        )
        return cls(topic, topics, tuple(grades))

    @classmethod
    def of_ratio(cls, pool: Pool, measure: Measure, prior: Prior, best: float) -> Moves:
        """Return those of a ratio, linearized where all have the utility that is expected."""
        slopes = prior_slopes(pool, measure, expected=prior.expected, best=best)
        topic, topics = pool.topic.astype(np.int64), len(pool.topics)
        return cls(topic, topics, (slopes.slope,), slopes.topic_slope)

    @property
    def is_ratio(self) -> bool:
        """Whether it is one of a ratio."""
        return self.topic_slope is not None

    def products(self, factors: FloatArray) -> FloatArray:
        """sum_i factor_i y_ij y_il by m factors, (m, n), the mean over the grades: (m, k, k)."""
        total = np.zeros((len(factors), *[self.grades[0].shape[1]] * 2))
        for each in self.grades:
            order = those_many_first(each, np.arange(each.shape[0]), above=BLOCK_PAIRS)
            total += cross_products(taken(each, order), factors[:, order])
        total /= len(self.grades)
        if self.topic_slope is not None:
            slopes = sparse.csr_array(self.topic_slope.T)  # not dense: BLAS depends on threads
            for at, own in enumerate(factors):
                mixed = slopes @ self._by_topic(own)
                both = slopes @ (self.topic_slope * self._topic_sums(own))
                total[at] += (both + both.T) / 2.0 - mixed - mixed.T
        return total

    @cached_property
    def _squared(self) -> list[SparseMatrix]:
        """What the diagonal of `products` is a sum of, by entry; of ratios without what is the same
        for all pairs of a topic."""
        if self.topic_slope is None:
            return [each.power(2) for each in self.grades]
        (slope,) = self.grades
        of_entries = np.repeat(self.topic, np.diff(slope.indptr)), slope.indices
        data = slope.data * (slope.data - 2.0 * self.topic_slope[of_entries])
        return [sparse.csr_array((data, slope.indices, slope.indptr), slope.shape)]

    def squares(self, factors: FloatArray) -> FloatArray:
        """The diagonals of `products`, shape (m, k)."""
        columns = np.ascontiguousarray(factors.T)
        total = sum((each.T @ columns).T for each in self._squared) / len(self.grades)
        if self.topic_slope is not None:
            square = np.square(self.topic_slope)
            for at, own in enumerate(factors):
                total[at] += (square * self._topic_sums(own)).sum(axis=0)
        return np.asarray(total, dtype=np.float64)

    def totals(self, factors: FloatArray) -> FloatArray:
        """sum_i factor_i y_ij over the pairs of each topic, the mean over the grades, (T, k)."""
        total = self._by_topic(factors)
        if self.topic_slope is not None:
            total = total - self.topic_slope * self._topic_sums(factors)
        return total

    def _by_topic(self, factors: FloatArray) -> FloatArray:
        sums = sum(TopicSums(each, self.topic, self.topics).of(factors) for each in self.grades)
        return np.asarray(sums / len(self.grades), dtype=np.float64)

    def _topic_sums(self, factors: FloatArray) -> FloatArray:
        return column_sums(self.topic, factors, number=self.topics)[:, None]
