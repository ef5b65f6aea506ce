"""A prefix of a sample with its probabilities: which estimators it allows, and their errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import (
    BoolArray,
    Digests,
    FloatArray,
    Int32Array,
    IntArray,
    SparseMatrix,
    array_digest,
    column_sums,
    divided,
    index_array,
    shown,
)
from ..data.labels import PairLabels, pair_name
from .estimators import horvitz_thompson_iid, horvitz_thompson_poisson, importance_sampling

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..data.pool import Pool
    from ..data.scope import Scope
    from ..sampling.designs import Design
    from ..sampling.samples import Sample
    from .terms import Terms
    from .totals import Totals


@dataclass(frozen=True, eq=False)
class Drawn:
    """The pairs of the first batches, and the probabilities that belong to just these batches.

    Attributes
    ----------
    pair : ndarray of int64, shape (n,)
        Sampled pairs, ascending.
    inclusion : ndarray of float64, shape (N,)
        Probability of every pair of the pool to be among them.
    expected : ndarray of float64, shape (N,)
        How often the design expects to take a pair.
    probability : ndarray of float64, shape (n,)
        With replacement: Q_i, the mean probability of a draw; otherwise the inclusion
        probability.
    counts : ndarray of int64, shape (n,), or None
        With replacement: how often each pair was drawn.
    stratum : ndarray of int64, shape (n,), or None
        ``per-query``: the topic of each pair.
    row : ndarray of int64, shape (m,), or None
        Several rounds of draws: a pair that more than one of them drew stands in as many rows.
        The position in `pair` of each row; `probability`, `counts` and `stratum` are then of the
        rows, and the strata are the rounds.
    belief : ndarray of float64, shape (N,), or None
        What the prior believed of every pair, as a share of the best utility, where that is known.
    rate : ndarray of float64, shape (N,), or None
        Of one round: what probabilities are made from, however many batches are drawn.
    digests : tuple of (ndarray, bytes)
        Digests of arrays that may be among these, as their design has them.
    """

    pair: IntArray
    inclusion: FloatArray
    expected: FloatArray
    probability: FloatArray
    counts: IntArray | None = None
    stratum: IntArray | None = None
    row: IntArray | None = None
    belief: FloatArray | None = None
    rate: FloatArray | None = None
    digests: Digests = ()

    @classmethod
    def of(cls, design: Design, sample: Sample, batches: int, *, topic: Int32Array) -> Drawn:
        """Return what the first batches of a sample hold, given the topic of each of the N pairs.

        ValueError if `batches` is not between 1 and the number of the design's batches.
        """
        step, prefix = design.step(batches), sample.prefix(batches)
        number = design.draws(batches)
        if number is None:
            if len(sample.constants):
                step = float(sample.constants[batches - 1])
            inclusion = design.inclusion_after(step)
            return cls(
                pair=prefix,
                inclusion=inclusion,
                expected=inclusion,
                probability=inclusion[prefix],
                belief=design.belief,
                rate=design.size,
                digests=design.digests,
            )
        draws = sample.draws[:number]
        chance = np.minimum(design.size, 1.0)
        return cls(
            pair=prefix,
            inclusion=design.inclusion_after(step),
            expected=number * chance,
            probability=chance[prefix],
            counts=np.bincount(draws, minlength=len(topic))[prefix],
            stratum=topic[prefix].astype(np.int64) if design.by_topic else None,
            belief=design.belief,
            rate=design.size,
            digests=design.digests,
        )

    def over(self, scope: Scope) -> Drawn:
        """Return the same sample as one of the pairs of a scope: those added had no chance."""
        if scope.is_sampled:
            return self
        return replace(
            self,
            pair=scope.places(self.pair),
            inclusion=scope.spread(self.inclusion),
            expected=scope.spread(self.expected),
            belief=None if self.belief is None else scope.spread(self.belief),
            rate=None if self.rate is None else scope.spread(self.rate),
        )

    @cached_property
    def key(self) -> Hashable:
        """What tells apart any two rounds, but not the batches of one, in one process."""
        belief = None if self.belief is None else array_digest(self.belief, self.digests)
        return array_digest(self._rate, self.digests), belief

    @property
    def _rate(self) -> FloatArray:
        return self.inclusion if self.rate is None else self.rate

    @property
    def eligible(self) -> BoolArray:
        """Which pairs some batches can take, shape (N,)."""
        return np.asarray(self._rate > 0.0)

    @cached_property
    def usual_belief(self) -> float:
        """What is believed of the pairs of a sample, on average; 1 where that is not known."""
        if self.belief is None:
            return 1.0
        total = max(float(self.inclusion.sum()), 1e-300)
        return float((self.inclusion * self.belief).sum()) / total

    @cached_property
    def factor(self) -> FloatArray:
        """`factors` of all pairs, shape (N,)."""
        return self.factors(np.arange(len(self.inclusion)))

    def factors(self, pairs: IntArray) -> FloatArray:
        """What products of what a pair adds are multiplied by in variances of sums, shape (n,).

        (1 - pi) / pi; with replacement one over how often the pair is expected, since no pair is
        certain then. 0 of certain pairs and of those out of reach.
        """
        if self.counts is None:
            chance = self.inclusion[pairs]
            return divided(1.0 - chance, chance, (chance > 0.0) & (chance < 1.0))
        often = self.expected[pairs]
        return divided(np.ones_like(often), often, often > 0.0)

    def varies(self, pairs: IntArray) -> BoolArray:
        """Whether pairs have a factor above 0, shape (n,)."""
        if self.counts is None:
            chance = self.inclusion[pairs]
            return np.asarray((chance > 0.0) & (chance < 1.0))
        return np.asarray(self.expected[pairs] > 0.0)

    @cached_property
    def uncertain(self) -> IntArray:
        """The pairs that may or may not be sampled, ascending."""
        often = self.inclusion if self.counts is None else self.expected
        possible = often > 0.0
        return np.flatnonzero(possible & (often < 1.0) if self.counts is None else possible)

    @cached_property
    def certain(self) -> IntArray:
        """The pairs that are sampled for certain, ascending."""
        return np.flatnonzero(self.inclusion == 1.0)

    @property
    def per_topic(self) -> bool:
        """Whether draws with replacement were made topic by topic."""
        return self.stratum is not None and self.row is None

    @property
    def primary(self) -> str:
        """The estimator to show: ``is`` with replacement, else ``ht``."""
        return "ht" if self.counts is None else "is"

    @property
    def multiplier(self) -> FloatArray:
        """What the primary estimator multiplies the contribution of each sampled pair by."""
        if self.counts is None:
            return 1.0 / self.probability
        shares = np.asarray(self.counts / (self.counts.sum() * self.probability), dtype=np.float64)
        return shares if self.row is None else column_sums(self.row, shares, number=len(self.pair))

    @property
    def draws(self) -> int | None:
        """Number of draws, repetitions included; None without replacement."""
        return None if self.counts is None else int(self.counts.sum())

    def estimates(self, terms: Terms) -> dict[str, Totals]:
        """Estimate the k totals of what the sampled pairs contribute, by every estimator.

        Beside ``is``, what contributes to ``ht`` is not counted: runs are compared by ``is``.
        """
        found = self._estimates(terms)
        if terms.noise is None:
            return found
        noise, likely = terms.noise_of_runs(1.0 / self.inclusion[self.pair])
        return {
            name: replace(
                each,
                covariance=each.covariance + noise,
                noise=each.noise + noise,
                noise_by_grades=each.likely_noise + likely,
            )
            for name, each in found.items()
        }

    def _estimates(self, terms: Terms) -> dict[str, Totals]:
        weights, labels, inclusion = terms.weights, terms.labels, self.inclusion[self.pair]
        chance, products, found = self.probability, terms.products, None
        if self.row is None:
            found = terms.found
        else:
            weights, labels, inclusion = _repeated(weights, labels, inclusion, self.row)
            products = None
        if self.counts is None:
            of_all = horvitz_thompson_poisson(
                weights, labels, probability=chance, products=products, found=found
            )
            return {"ht": of_all}
        primary = importance_sampling(
            weights,
            labels,
            probability=chance,
            counts=self.counts,
            inclusion=inclusion,
            stratum=self.stratum,
            products=products,
            found=found,
        )
        if self.stratum is not None:
            return {"is": primary}
        secondary = horvitz_thompson_iid(
            weights,
            labels,
            probability=chance,
            draws=int(self.counts.sum()),
            count_contributions=False,
            products=products,
            found=found,
        )
        return {"is": primary, "ht": secondary}


def _repeated(
    weights: SparseMatrix, labels: PairLabels, inclusion: FloatArray, row: IntArray
) -> tuple[SparseMatrix, PairLabels, FloatArray]:
    """The pairs of every row. A pair's disagreement is there once, in its first row."""
    first = np.zeros(len(row), dtype=bool)
    first[np.unique(row, return_index=True)[1]] = True
    repeated = labels.of(row)
    once = replace(
        repeated,
        variance=np.where(first, repeated.variance, 0.0),
        expected=None if repeated.expected is None else np.where(first, repeated.expected, 0.0),
    )
    return weights[row], once, inclusion[row]


def check_sample(pool: Pool, design: Design, sample: Sample) -> None:
    """Raise ValueError unless a sample is of a design of a pool.

    They must belong together, and the design give every sampled pair a probability.
    """
    if not pool.digest == design.pool_digest == sample.pool_digest:
        raise ValueError("pool, design and sample do not belong together")
    pairs = index_array(sample.pair, below=len(pool), name="sample.pair")
    impossible = ~(design.size[pairs] > 0.0)
    if impossible.any():
        pair = int(pairs[np.argmax(impossible)])
        given = f"the design's size for it is {shown(design.size[pair])}"
        raise ValueError(f"{pair_name(pair, pool)} was sampled but has no probability: {given}")
