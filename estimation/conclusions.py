"""What may be concluded of two runs: one of a few states, and how many judgments it is away.

*Decided*: one is surely better. *Equivalent*: their difference is surely no larger than what is
negligible. *Go on*: with even chances one of these within the budget. *Out of reach* with this
budget. *Open*: not told apart, where nothing is foretold or the round has stopped. *Unknown*: the
difference is not known. Decided and equivalent rest on the same simultaneous numbers as everything
else (`equivalence`); the others are forecasts, and claim nothing.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimation.core.planning.foretold import NEVER
from estimation.models import Round
from estimation.selectors import Pairwise

DECIDED, EQUIVALENT, GO_ON = "decided", "equivalent", "go on"
OUT_OF_REACH, OPEN, UNKNOWN = "out of reach", "open", "unknown"
STATES = (DECIDED, EQUIVALENT, GO_ON, OUT_OF_REACH, OPEN, UNKNOWN)


@dataclass(frozen=True, eq=False)
class PairStates:
    """The state of every two runs, in the order of ``Pairwise.runs``; empty on the diagonal.

    ``more``: judgments until it is settled, to two digits; NaN where no number is foretold.
    """

    state: NDArray[np.str_]
    more: NDArray[np.float64]


def pair_states(row: Round, pairs: Pairwise) -> PairStates:
    """Of every two runs."""
    going = row.state != Round.State.STOPPED
    foretold = going and pairs.forecast is not None and pairs.until is not None
    until = _until(pairs)
    now, end = (pairs.forecast.steps[0].pairs, pairs.forecast.end) if pairs.forecast else (0.0, 0.0)
    if pairs.forecast and len(pairs.forecast.steps) == 1:  # nothing is left to judge
        foretold = False
    settled = (pairs.verdicts != 0) | pairs.equivalent | (pairs.unknown != 0)
    within = (until != NEVER) & (until <= end) & foretold
    state = np.select(
        [pairs.unknown != 0, pairs.verdicts != 0, pairs.equivalent, within],
        [UNKNOWN, DECIDED, EQUIVALENT, GO_ON],
        OUT_OF_REACH if foretold else OPEN,
    )
    np.fill_diagonal(state, "")
    more = np.maximum(until - now, 1.0) * row.labels_each
    more = np.where(settled | (until == NEVER) | (not foretold), np.nan, more)
    np.fill_diagonal(more, np.nan)
    return PairStates(state, np.vectorize(_rounded, otypes=[float])(more))


def _until(pairs: Pairwise) -> NDArray[np.float64]:
    """Of the only two runs there are, one is the best when they are told apart: what is foretold
    of the one is so of the other."""
    if pairs.until is None:
        return np.full(pairs.verdicts.shape, NEVER)
    if len(pairs.runs) > 2 or pairs.forecast is None or pairs.equivalence is not None:
        return pairs.until
    best = pairs.forecast.until_best()
    return np.full_like(pairs.until, NEVER if best is None else best)


def _rounded(number: float) -> float:
    return float(in_two_digits(number)) if math.isfinite(number) else math.nan


def in_two_digits(number: float) -> int:
    """More would pretend to know."""
    power: int = 10 ** max(0, math.floor(math.log10(max(number, 1))) - 1)
    return max(1, math.ceil(number / power - 0.5) * power)


def judgments(number: float) -> str:
    """About so many more of them."""
    return f"about {number:,.0f} more judgment{'' if number == 1 else 's'}"


def what_next(state: str, more: float, *, equivalence: bool) -> str:
    """What the state of a pair that is not settled means; nothing for others."""
    apart = "they are told apart" + (", or known to be equivalent" if equivalence else "")
    if state == GO_ON:
        return f"Go on: {judgments(more)} until {apart}."
    if state == OUT_OF_REACH and math.isfinite(more):
        return f"Out of reach with this budget: it takes {judgments(more)} until {apart}."
    if state == OUT_OF_REACH:
        return "Not even the whole pool is foretold to tell them apart: they may be equally good."
    return ""
