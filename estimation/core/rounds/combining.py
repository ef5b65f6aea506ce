"""One estimate from several rounds over the same pool.

Draws with replacement
    The balance heuristic (Schnabel et al. 2016, eq. 5): every draw is weighted by the mean
    probability of all rounds, Qbar_i = sum_b n_b Q_b(i) / n, whichever round it came from. A pair
    that one round hardly ever draws and another often then has no huge weight.
Poisson
    The union of the samples is one Poisson sample. With the same permanent random numbers a pair
    is in it when it is in the most generous round, pi_i = max_b pi_b,i; with numbers of their own
    pi_i = 1 - prod_b (1 - pi_b,i).

Both are unbiased if no round's design depends on the labels of another. A round that is designed
after a look at earlier labels, or made because an interval was still too wide, is not covered.
Priority samples are left out: the threshold of each depends on its own pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, Int32Array, IntArray, frozen
from ..data.scope import Scope
from ..estimates.drawn import Drawn
from ..measures.kinds import MeasureError
from ..sampling.methods import SAMPLING_METHODS, draws_again, of_pairs_with
from .pair_estimates import estimates_of_pairs
from .results import Asked, DrawnRound, Evaluation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..data.pool import Pool
    from ..measures.table import Measure
    from ..sampling.designs import Design
    from ..sampling.interval_kinds import IntervalKind
    from .rounds import PairRound


class CombiningError(ValueError):
    """Rounds that cannot be estimated from together; the message names the round."""


@dataclass(frozen=True, eq=False, repr=False)
class RoundsTogether(DrawnRound):
    """Several rounds over one pool that are estimated together.

    Attributes
    ----------
    parts : tuple of PairRound
        All with the method ``iid``, or all with ``poisson``. A pair that several of them drew has
        the same judgments in all.

    Raises
    ------
    CombiningError
        If there is no part, the methods differ or allow no combination, parts are of different
        pools, or parts by ``iid`` share their random numbers: their draws are then the same.
    """

    parts: tuple[PairRound, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)

    @property
    def method(self) -> str:
        """The way of sampling of all of them."""
        return self.parts[0].design.method

    @property
    def batches(self) -> int:
        """The number of batches of all of them."""
        return sum(part.used for part in self.parts)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What the last of them was drawn for, the goal's first."""
        return self.parts[-1].measures

    @property
    def intervals(self) -> tuple[IntervalKind, ...]:
        """Kinds of intervals; not ``empirical-bernstein``: draws of different rounds differ."""
        return SAMPLING_METHODS[self.method].intervals_together

    def pairs(self, pool: Pool) -> IntArray:
        """Return the pairs that any of them drew, ascending."""
        return np.unique(np.concatenate([part.pairs(pool) for part in self.parts]))

    def drawn(self, topic: Int32Array) -> Drawn:
        """Return what the rounds drew, with the probabilities of all of them together.

        `topic` is that of each of the N pairs.
        """
        singles = [part.drawn(topic) for part in self.parts]
        pair = np.unique(np.concatenate([each.pair for each in singles]))
        of_each = [each.inclusion for each in singles]
        inclusion = union_of(zip(_numbers(self.parts), of_each, strict=True))
        belief = _belief(singles)
        if singles[0].counts is None:
            return Drawn(pair, inclusion, inclusion, inclusion[pair], belief=belief)
        expected = np.sum([each.expected for each in singles], axis=0)
        mean = expected / sum(each.draws or 0 for each in singles)
        row = np.concatenate([np.searchsorted(pair, each.pair) for each in singles])
        return Drawn(
            pair=pair,
            inclusion=inclusion,
            expected=expected,
            probability=mean[pair][row],
            counts=np.concatenate([each.counts for each in singles if each.counts is not None]),
            stratum=np.repeat(np.arange(len(singles)), [len(each.pair) for each in singles]),
            row=row,
            belief=belief,
        )

    def answer(self, scope: Scope, asked: Asked) -> Evaluation:
        """Estimate the runs of a scope; see `evaluation.evaluate`.

        Raises
        ------
        CombiningError
            If the rounds belong to another pool.
        MeasureError
            If a measure cannot be estimated from several rounds: ratios from draws.
        LabelError
            If a drawn pair has no judgment.
        """
        if scope.sampled is not None and scope.sampled.digest != self.parts[0].design.pool_digest:
            raise CombiningError("parts[0] belongs to another pool")
        refused = SAMPLING_METHODS[self.method].refused_together(asked.measures)
        if refused:
            several = "cannot be estimated from several rounds of draws"
            raise MeasureError(f"ratio measures {several}: {refused[0]}")
        drawn = self.drawn(scope.topic)
        return estimates_of_pairs(scope, drawn, asked, sampled=drawn.pair, batches=self.batches)


def as_one(parts: Sequence[PairRound]) -> PairRound | RoundsTogether:
    """Return the one round, or several together."""
    return parts[0] if len(parts) == 1 else RoundsTogether(tuple(parts))


def _belief(singles: Sequence[Drawn]) -> FloatArray | None:
    """The mean of what the parts believed of every pair; None unless all of them tell."""
    told = [each.belief for each in singles if each.belief is not None]
    return np.asarray(np.mean(told, axis=0)) if len(told) == len(singles) else None


def union_of(inclusions: Iterable[tuple[str, FloatArray]]) -> FloatArray:
    """Return the probability of every pair to be in the union of Poisson samples, shape (N,).

    Of samples that share their random numbers the most generous counts, others apart. Exactly 0
    where no sample can hold a pair, and exactly what it is where only one can.

    Parameters
    ----------
    inclusions : iterable of (str, ndarray of float64 of shape (N,))
        A name of the random numbers of each, and its probabilities; at least one.
    """
    by_numbers: dict[str, FloatArray] = {}
    for numbers, inclusion in inclusions:
        by_numbers[numbers] = np.maximum(by_numbers.get(numbers, inclusion), inclusion)
    first, *others = by_numbers.values()
    union = first
    for other in others:
        union = union + (1.0 - union) * other
    return union


def _numbers(parts: Sequence[PairRound]) -> list[str]:
    return [
        f"seed {part.numbers}" if part.numbers else f"part {place}"
        for place, part in enumerate(parts)
    ]


def part_over(part: PairRound, *, pool: Pool, joined: Pool, like: Design) -> PairRound:
    """Say an earlier round over the larger pool that a later round was drawn from.

    Pairs keep their probabilities. The others were out of its reach: their probability was 0, so
    that estimates from both rounds give them that of the later one.

    Parameters
    ----------
    part : PairRound
    pool : Pool
        What the part was drawn from.
    joined : Pool
        Of the same topics and depth, with all runs of `pool` and later ones.
    like : Design
        Of a round over `joined`. The part has no belief about pairs out of its reach; theirs is
        taken from here, so that it is what the mean of the rounds says of them.

    Raises
    ------
    ValueError
        If `joined` does not go with `pool`.
    """
    scope, design, sample = Scope.of(pool, joined), part.design, part.sample
    belief = None if design.belief is None else scope.spread(design.belief)
    if belief is not None and like.belief is not None:
        belief = np.where(scope.added, like.belief, belief)
    return replace(
        part,
        design=replace(
            design,
            size=frozen(scope.spread(design.size)),
            belief=None if belief is None else frozen(belief),
            pool_digest=joined.digest,
        ),
        sample=replace(
            sample,
            pair=scope.place[sample.pair],
            draws=scope.place[sample.draws],
            pool_digest=joined.digest,
        ),
    )


def _check_parts(parts: Sequence[PairRound]) -> None:
    if not parts:
        raise CombiningError("parts must hold at least one round")
    methods, able = [part.method for part in parts], of_pairs_with("with_earlier")
    if len(set(methods)) > 1 or methods[0] not in able:
        allowed, told = " or all by ".join(able), ", ".join(methods)
        raise CombiningError(f"several rounds must all be by {allowed}, not {told}")
    for number, part in enumerate(parts):
        digests = {part.design.pool_digest, part.sample.pool_digest}
        if digests != {parts[0].design.pool_digest}:
            raise CombiningError(f"parts[{number}] belongs to another pool")
        shared = part.numbers and part.numbers in [each.numbers for each in parts[:number]]
        if shared and draws_again(part.method):
            raise CombiningError(f"parts[{number}] has the same draws as another part: one seed")
