"""What was judged before an adaptive round began, and what earlier batches say of every pair.

A *top-up* is drawn over a pool in which pairs are judged already: these are in it for certain, at
no cost, and what they say is learned before its first batch. Given all that happened until then,
their labels are known, and those of all others are estimated without bias from the batches to come
(`sampling`). So the estimate is unbiased, however pairs came to be judged: a top-up *alone*.

It forgets what earlier batches said of the pairs that they did not draw. A top-up that *continues*
an earlier adaptive round keeps it: its batches are further ones of the same martingale. With the
shares A_ti of the earlier batches and B_si of its own the estimate of pair i is

    v^_i = sum_t A_ti V_ti + sum_s B_si V_si,    sum_t A_ti + sum_s B_si = 1,

V_ti as in `sampling`. Of pairs that only the grown pool holds earlier batches say nothing: A_ti is
0. With the sizes of batch t the share A_ti is the odds of p_ti over those of the chance to be
judged when the top-up ends (`top_ups.EXTENSIONS`), and what the shares leave is the top-up's. All
of this is settled by what was known before batch t, so that each A_ti (V_ti - u_i), and each
B_si (V_si - u_i), is 0 on average given all before it: the sum is exactly unbiased, and the
variances of all batches add up. That holds if there was to be a top-up of about this budget,
whatever the earlier round would find, as when runs join: what it found may say where the top-up
draws, but not that there is one. A top-up alone needs no such thing.

What would be biased, even so: shares that follow from the grades of the batch that they are of.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import frozen

if TYPE_CHECKING:
    from ...arrays import FloatArray, IntArray

LEFT = 1.0  # of pairs of which no earlier batch says anything


@dataclass(frozen=True, eq=False)
class EarlierSums:
    """What earlier batches count each of N pairs for, whatever the measure; see `BatchWeights`.

    Attributes
    ----------
    spread, once, cubes : ndarray of float64, shape (N,)
        As those of `BatchWeights`.
    shared, moved : ndarray of float64, shape (L, N)
        sum_b A_b r_b and sum_b A_b^2 (1 - p_b) / p_b r_b over batches before which the pair was
        open, r_b being the expected shares of judgments that reach each level of the model.
    products : ndarray of float64, shape (L (L + 1) / 2, N)
        The second of these with r_b r_b' in the place of r_b, of levels and those not below them.
    on_label, on_find, chance : ndarray of float64, shape (n,)
        Of the judged pairs, as those of `BatchWeights`.
    reached : ndarray of float64, shape (L, n)
        r_b of the batch in which they were judged.
    """

    spread: FloatArray
    once: FloatArray
    cubes: FloatArray
    shared: FloatArray
    moved: FloatArray
    products: FloatArray
    on_label: FloatArray
    on_find: FloatArray
    chance: FloatArray
    reached: FloatArray


SUMS = tuple(each.name for each in fields(EarlierSums))
OF_JUDGED = "on_label", "on_find", "chance", "reached"  # sums that only judged pairs have
PAST_ARRAYS = tuple(f"past {name}" for name in ("judged", "left", "planned", *SUMS))


@dataclass(frozen=True, eq=False)
class Past:
    """What was there before a round began.

    Attributes
    ----------
    judged : ndarray of int64, shape (n,)
        The judged pairs, ascending.
    left : ndarray of float64, shape (N,)
        What the shares of earlier batches left of 1: all of it where these do not count.
    planned : ndarray of float64, shape (N,)
        With which chance each pair was to be judged, as far as designs say it, and 1 of pairs that
        are judged and that no batch which counts could have drawn. No value hangs on it.
    sums : EarlierSums or None
        None if no earlier batch counts.
    """

    judged: IntArray
    left: FloatArray
    planned: FloatArray
    sums: EarlierSums | None = None

    @classmethod
    def alone(cls, judged: IntArray, *, pairs: int) -> Past:
        """Return that of a round that takes judged pairs of N for certain, and counts nothing."""
        planned = np.zeros(pairs)
        planned[judged] = 1.0
        return cls(frozen(judged), frozen(np.full(pairs, LEFT)), frozen(planned))

    def of_pairs(self, pairs: IntArray) -> Past:
        """Return what was there of some pairs, ascending, as the pool of these alone has them."""
        kept = np.isin(self.judged, pairs)
        judged = np.searchsorted(pairs, self.judged[kept])
        given = frozen(judged), frozen(self.left[pairs]), frozen(self.planned[pairs])
        if self.sums is None:
            return Past(*given)
        sums = {
            name: frozen(getattr(self.sums, name)[..., kept if name in OF_JUDGED else pairs])
            for name in SUMS
        }
        return Past(*given, EarlierSums(**sums))

    def stored(self) -> dict[str, FloatArray | IntArray]:
        """Return the arrays that `restored` makes it of."""
        found = {name: getattr(self.sums, name) for name in SUMS if self.sums is not None}
        own = {"judged": self.judged, "left": self.left, "planned": self.planned}
        return {f"past {name}": each for name, each in (own | found).items()}

    @classmethod
    def restored(cls, arrays: dict[str, Any]) -> Past | None:
        """Return what `stored` gave, taken out of arrays; None if it is not among them."""
        named = [name for name in arrays if name.startswith("past ")]
        found = {name.removeprefix("past "): frozen(arrays.pop(name)) for name in named}
        if not found:
            return None
        sums = {name: found.pop(name) for name in SUMS if name in found}
        return cls(**found, sums=EarlierSums(**sums) if sums else None)

    def sums_of(self, levels: int) -> EarlierSums:
        """Return what earlier batches count for: nothing if none counts but certain pairs."""
        if self.sums is not None:
            return self.sums
        pairs, judged = len(self.left), len(self.judged)
        none, by_level = np.zeros(pairs), np.zeros((levels, pairs))
        return EarlierSums(
            spread=none,
            once=none,
            cubes=none,
            shared=by_level,
            moved=by_level,
            products=np.zeros((number_of_products(levels), pairs)),
            on_label=self.left[self.judged],
            on_find=np.zeros(judged),
            chance=np.ones(judged),
            reached=np.zeros((levels, judged)),
        )


def number_of_products(levels: int) -> int:
    """Return how many products of two levels there are."""
    return levels * (levels + 1) // 2


def products_of(reached: FloatArray) -> FloatArray:
    """Return the products of levels and those not below them, (L (L + 1) / 2, N), of (L, N)."""
    first, second = np.triu_indices(len(reached))
    return reached[first] * reached[second]


def in_squares(rise: FloatArray) -> FloatArray:
    """Return how often each of these products counts in the square of a mean utility."""
    first, second = np.triu_indices(len(rise))
    return rise[first] * rise[second] * np.where(first == second, 1.0, 2.0)
