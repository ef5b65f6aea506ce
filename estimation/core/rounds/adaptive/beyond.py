"""What unbiased sums say of the ratios of topics in which nothing relevant was found.

Estimates of single pairs are unbiased, and those of a topic without a find are low, as those of one
with a find are high: what is expected less what was not found of it, over small chances. Sums of
gains make up for the one by the other. Ratios do not: none is above 1, however much was found. So a
value may be told too low, the more, the better the run and the fewer topics have a find. With one
relevant document in each of 50 topics (10 % judged, a find in a third of them) AP of the best run
was told .60 for .91, and differences held .71 to .83 times.

But the sums say what the topics without a find hold, all together: what they are expected to, and
what estimates of all pairs add up to beyond what was judged or is expected. With w_ij the measure's
weights (`Measure.weights`), u_i what was judged or is expected and u^_i what is estimated,

    f_j = (sum_o w_ij u_i + sum w_ij (u^_i - u_i)) / (sum_o u_i + sum (u^_i - u_i))
          / (sum_o w_ij u_i / sum_o u_i),

sums over the pairs of topics without a find (o) and over all; a ratio that is expected of such a
topic is taken to be f_j times as large, and at most 1. What is told of these topics falls short of
that by a number that is no part of any variance. It is believed as far as it is more than chance,
and taken for an error of values and differences. No value hangs on it. Where more is told than the
sums say, the ratio is too high, as the second-order bias has ratios of few finds: that is expected
and allowed for by itself (`BiasLeft`), and goes for nothing here.

How many of these topics have anything relevant is not known. That one has none has the chance P0 if
its pairs are relevant or not independently, and values count 1 - P0 of it. But where one document
is known to be there, and to be the only one, they are anything but independent. Whatever they are,
the chance of any is at most the expected number, -log P0 where single chances are small, so that a
topic counts as much as that, up to 1 (`share_at_most`). Rprec of a topic of which less than one
document is expected counts as many ranks, and what comes of it is the chance that the first
document is relevant: it has the chance of any in it already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import share_of
from ...data.entries import weights_of

if TYPE_CHECKING:
    from ...arrays import FloatArray, IntArray
    from ...data.scope import Scope
    from ...measures.table import Measure

NEVER = 1e-300  # chances are not taken below it, for their logarithms
LEAST_LEFT = 0.25  # of the documents that are expected: fewer are not taken to be there


@dataclass(frozen=True, eq=False)
class Beyond:
    """What unbiased sums say of topics in which nothing relevant was found.

    Attributes
    ----------
    topics : ndarray of int64
        These topics.
    times : ndarray of float64, shape (k,)
        f_j: what their ratios are multiplied by.
    error : ndarray of float64, shape (k,)
        Standard error of that, by the squares.
    """

    topics: IntArray
    times: FloatArray
    error: FloatArray

    @classmethod
    def of(
        cls,
        scope: Scope,
        measure: Measure,
        topics: IntArray,
        *,
        estimated: FloatArray,
        likely: FloatArray,
        judged: IntArray,
        squares: FloatArray,
    ) -> Beyond:
        """Compare the estimated utility of every pair with the judged or expected one.

        Parameters
        ----------
        scope, measure : Scope, Measure
        topics : ndarray of int64
            In which nothing relevant was found.
        estimated, likely : ndarray of float64, shape (M,)
            u^_i and u_i.
        judged, squares : ndarray of int64 and float64, shape (n,)
            The judged pairs, and estimates of the variance of what each adds to the sums.
        """
        pool, none = scope.pool, np.ones(len(scope.pool.runs))
        here = np.flatnonzero(np.isin(pool.topic, topics))
        below = float(likely[here].sum())
        if not below > 0.0:
            return cls(topics, none, 0.0 * none)
        every = np.ones(len(pool), dtype=np.bool_)
        weights = weights_of(pool, measure, np.arange(len(pool)), wanted=every)
        more, rows = estimated - likely, weights[judged]
        above = weights[here].T @ likely[here]
        of_all = max(below + float(more.sum()), LEAST_LEFT * below)
        ratio = np.maximum(above + weights.T @ more, 0.0) / of_all
        spread = rows.power(2).T @ squares - 2.0 * ratio * (rows.T @ squares)
        spread = np.maximum(spread + ratio**2 * squares.sum(), 0.0)
        usual = above / below
        times = np.where(usual > 0.0, share_of(ratio, of=usual), 1.0)
        return cls(topics, times, share_of(np.sqrt(spread) / of_all, of=usual))

    def told_low(self, told: FloatArray, ratios: FloatArray, share: FloatArray) -> FloatArray:
        """Return by how much less is told of these topics than sums say, beyond chance, <= 0, (k,).

        Parameters
        ----------
        told, ratios : ndarray of float64, shape (T, k)
            What is told of each topic, and the ratio of what was judged or is expected, over T.
        share : ndarray of float64, shape (T,)
            `share_at_most`.
        """
        at, most = self.topics, share[self.topics, None]
        there = np.minimum(self.times * ratios[at], 1.0 / len(share))
        less = told[at].sum(axis=0) - (most * there).sum(axis=0)
        chance = self.error * (most * ratios[at]).sum(axis=0)
        beyond = np.sqrt(np.maximum(less**2 - chance**2, 0.0))
        return np.asarray(np.where(less < 0.0, -beyond, 0.0), dtype=np.float64)


def share_at_most(nothing: FloatArray, measure: Measure) -> FloatArray:
    """Return the chance of topics to have anything relevant, at most, (T,), by P0, (T,)."""
    if measure.name == "Rprec":
        return np.ones_like(nothing)
    return np.asarray(np.minimum(-np.log(np.maximum(nothing, NEVER)), 1.0), dtype=np.float64)
