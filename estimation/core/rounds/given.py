"""A sample that somebody else drew, of which the probabilities are known: prels, qrels with strata.

Every judged pair counts one over its probability (Horvitz-Thompson), which is unbiased however the
pairs were drawn together, as long as every pair with a weight could be drawn. Two things are not in
the files, and are assumed:

How likely two pairs were drawn together
    Pairs are taken to have been drawn independently of each other (Poisson). Values do not depend
    on it, intervals and verdicts do. Where the number of judged pairs was fixed, in a stratum or a
    topic, two of its pairs come together a little less often than that, and the intervals are on
    the whole too wide rather than too narrow; for a sample that was drawn in clusters, whole lists
    for example, they are too narrow.
How likely the pairs were that were not drawn
    Prels do not list them. Intervals need to know how much may have been missed: see
    `GivenRound.of`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, Int32Array, IntArray, check_fraction, column_sums, frozen, listed
from ..data.qrels import SampledQrels, find_rows
from ..estimates.drawn import Drawn
from ..sampling.samples import Served
from .pair_estimates import estimates_of_pairs
from .results import Asked, DrawnRound, Evaluation

if TYPE_CHECKING:
    from ..data.pool import Pool
    from ..data.scope import Scope


class GivenError(ValueError):
    """A sample that no pool of this kind can be estimated from; the message names the topics."""


@dataclass(frozen=True, eq=False, repr=False)
class GivenRound(DrawnRound):
    """A round that somebody else drew from a pool.

    Build one with `GivenRound.of`.

    Attributes
    ----------
    pair : ndarray of int64, shape (n,)
        The judged pairs, ascending.
    inclusion : ndarray of float64, shape (N,)
        Probability of every pair of the pool to be judged; 0 of those out of reach.
    pool_digest : str
    """

    pair: IntArray
    inclusion: FloatArray
    pool_digest: str

    @classmethod
    def of(cls, pool: Pool, sampled: SampledQrels, *, unlisted: float | None = None) -> GivenRound:
        """Return the part of a sample that is of a pool.

        Parameters
        ----------
        pool : Pool
            Of documents; its topics are among those of the sample.
        sampled : SampledQrels
        unlisted : float, optional
            The probability of pairs of the pool that the file does not list. No value depends on
            it but those of ratios, by half of what is expected of their bias; intervals and
            supports do. 0: they were out of reach, as for runs that were no part
            of the sampled pool; values are then lower bounds. By default 0 where the file lists all
            that could be judged, and else, topic by topic, the mean probability of what was not
            drawn, as the sample estimates it: sum of (1 - pi) over sum of (1 - pi) / pi.

        Raises
        ------
        GivenError
            If the sample has nothing of a topic of the pool, whose values would count as 0.
        """
        missing = sorted(set(pool.topics) - set(sampled.topics))
        if missing:
            several = f"{len(missing)} topics of the pool: {listed(missing)}"
            raise GivenError(
                f"the sample has no judgment of {several}; pool the topics of the sample alone"
            )
        if unlisted is not None:
            check_fraction(unlisted, name="unlisted", error=GivenError)
        inclusion = _unlisted(pool, sampled, unlisted)
        topic, docno, chance = sampled.others
        other, place = find_rows(pool, topic, docno), sampled.places(pool)
        inclusion[other[other >= 0]] = chance[other >= 0]
        inclusion[place[place >= 0]] = sampled.probability[place >= 0]
        return cls(frozen(np.unique(place[place >= 0])), frozen(inclusion), pool.digest)

    method = "given"  # which is no way of sampling of ours
    batches = 1  # there is no telling what was judged first

    def pairs(self, pool: Pool) -> IntArray:
        """Return the pairs that were judged."""
        return self.pair

    def served(self, pool: Pool) -> Served:
        """Return what was judged."""
        once = np.ones(len(self.pair), dtype=np.int64)
        batch = np.ones(len(self.pair), dtype=np.int32)
        return Served(self.pair, batch, self.inclusion[self.pair], once, pool)

    def answer(self, scope: Scope, asked: Asked) -> Evaluation:
        """Estimate the runs of a scope; see `evaluation.evaluate`."""
        if scope.sampled is not None and scope.sampled.digest != self.pool_digest:
            raise GivenError("the round belongs to another pool")
        drawn = Drawn(self.pair, self.inclusion, self.inclusion, self.inclusion[self.pair])
        return estimates_of_pairs(scope, drawn, asked, sampled=self.pair, batches=1)


def _unlisted(pool: Pool, sampled: SampledQrels, chance: float | None) -> FloatArray:
    """The probability of every pair of the pool if the file did not list it."""
    if chance is None and sampled.lists_all:
        chance = 0.0
    if chance is not None:
        return np.full(len(pool), chance)
    code = _topics_of_rows(pool, sampled)
    inside = code >= 0
    absent, topics = 1.0 - sampled.probability[inside], len(pool.topics)
    weights = column_sums(code[inside], absent / sampled.probability[inside], number=topics)
    shares = column_sums(code[inside], absent, number=topics)
    mean = np.divide(shares, weights, out=np.zeros(topics), where=weights > 0.0)
    return np.asarray(mean[pool.topic])


def _topics_of_rows(pool: Pool, sampled: SampledQrels) -> Int32Array:
    known = {name.encode(): at for at, name in enumerate(pool.topics)}
    return np.array([known.get(name, -1) for name in sampled.topic.tolist()], dtype=np.int32)
