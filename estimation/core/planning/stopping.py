"""Rules by which a round ends before its budget is spent, chosen before anything was drawn.

A rule is looked at after every complete batch, with what is told there: intervals, verdicts and
equivalence that hold at all planned looks at once (`inference.looks`). A round that has one is told
so to its last batch, also where this is the planned end.

Why stopping biases no coverage: with F_b that anything told at look b is false, P(any F_b, b = 1,
..., B) <= alpha. When a round stops, at a look T that hangs on the judgments and on all that was
told, what is told in the end is what was told at look T, and P(F_T) <= P(any F_b) <= alpha,
whatever the rule. Numbers that hold at one look fixed beforehand would not do: a rule looks for a
verdict, or for short intervals, and so for the looks at which chance has made them.

Intervals and verdicts are guarded so; estimates at a time that hangs on them are not unbiased. A
round that stops when its best run is known stops sooner where this run's estimate happens to be
high. The bias is within the interval, which covers the true value as often as it says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from ..arrays import check_whole
from ..inference.equivalence import best_or_equivalent
from ..inference.unknown import Reason

if TYPE_CHECKING:
    from ..arrays import BoolArray
    from ..rounds.results import MeasureResult

StopKind: TypeAlias = Literal["best", "top", "width"]
STOP_KINDS: tuple[StopKind, ...] = get_args(StopKind)


@dataclass(frozen=True)
class StoppingRule:
    """When a round ends early.

    Attributes
    ----------
    kind : {"best", "top", "width"}
        A run is surely better than every other one, or equivalent to it; each of the first runs is,
        compared with every run outside of them; every value is known to a half width.
    top : int
        How many are the first, for ``top``.
    width : float
        The half width, for ``width``: the longer side of an interval.

    Raises
    ------
    ValueError
        If the kind is unknown, or a number is out of range.
    """

    kind: StopKind
    top: int = 1
    width: float = np.inf

    def __post_init__(self) -> None:
        if self.kind not in STOP_KINDS:
            raise ValueError(f"a stopping rule is one of {', '.join(STOP_KINDS)}, not {self.kind}")
        check_whole(self.top, name="top")
        if not self.width > 0.0:
            raise ValueError(f"the half width to stop at must be above 0, not {self.width}")

    def holds(self, result: MeasureResult) -> bool:
        """Say whether it is so by now, of the measure that the round was made for.

        Never of what is not known: such a run may be the best, and is known to no half width.
        """
        if self.kind == "width":
            return self._is_narrow(result)
        equivalent = _equivalent(result)
        if self.kind == "best":
            best = best_or_equivalent(result.ranking.verdicts, equivalent)
            return len(best) > 1 and bool(best.any())
        return _are_first(result, equivalent, self.top)

    def _is_narrow(self, result: MeasureResult) -> bool:
        found = result.estimate
        known = found.unknown == Reason.KNOWN
        return bool(np.all(known & (found.half_width <= self.width)))


def _equivalent(result: MeasureResult) -> BoolArray:
    if result.equivalence is None:
        return np.zeros(result.ranking.verdicts.shape, dtype=np.bool_)
    return result.equivalence.pairs(result.ranking.unknown)


def _are_first(result: MeasureResult, equivalent: BoolArray, number: int) -> bool:
    """Whether the first runs by estimate are settled against all others.

    By verdicts alone no other runs could be: whoever is surely better has the better estimate.
    """
    order, settled = result.ranking.order, (result.ranking.verdicts == 1) | equivalent
    first, rest = order[:number], order[number:]
    return len(rest) > 0 and bool(settled[np.ix_(first, rest)].all())
