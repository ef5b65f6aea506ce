"""What may be concluded of two runs: one of a few states, and how many judgments it is away.

*Decided*: one is surely better. *Equivalent*: their difference is surely no larger than what is
negligible. *Go on*: with even chances one of these within the budget. *Out of reach* with this
budget. *Stopped*: neither when the round ended before its budget was spent. *Open*: not told apart,
where nothing is foretold (`why_open`), or nothing is left to judge. *Unknown*: the
difference is not known. Decided and equivalent rest on the same simultaneous numbers as everything
else (`equivalence`); the others are forecasts, and claim nothing.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimation.core.measures.table import parse_measure
from estimation.core.planning.foretold import NEVER
from estimation.models import EstimateSet, Round
from estimation.selectors import Pairwise

DECIDED, EQUIVALENT, GO_ON = "decided", "equivalent", "go on"
OUT_OF_REACH, STOPPED, OPEN, UNKNOWN = "out of reach", "stopped", "open", "unknown"
STATES = (DECIDED, EQUIVALENT, GO_ON, OUT_OF_REACH, STOPPED, OPEN, UNKNOWN)
FORETOLD = STATES[:5]
"""Of the best run and of the ranking, which a forecast tells of."""


@dataclass(frozen=True, eq=False)
class PairStates:
    """The state of every two runs, in the order of ``Pairwise.runs``; empty on the diagonal.

    ``more``: judgments until it is settled, to two digits, or that it would have taken; NaN where
    no number is foretold.
    """

    state: NDArray[np.str_]
    more: NDArray[np.float64]


def pair_states(row: Round, pairs: Pairwise) -> PairStates:
    """Of every two runs."""
    ended = row.state == Round.State.STOPPED
    foretold = pairs.forecast is not None and pairs.until is not None
    until = _until(pairs)
    now, end = (pairs.forecast.steps[0].pairs, pairs.forecast.end) if pairs.forecast else (0.0, 0.0)
    all_judged = is_all_judged(pairs)
    foretold = foretold and not all_judged
    settled = (pairs.verdicts != 0) | pairs.equivalent | (pairs.unknown != 0)
    within = (until != NEVER) & (until <= end) & foretold & (not ended)
    otherwise = OUT_OF_REACH if foretold else OPEN
    state = np.select(
        [pairs.unknown != 0, pairs.verdicts != 0, pairs.equivalent, within],
        [UNKNOWN, DECIDED, EQUIVALENT, GO_ON],
        STOPPED if ended and not all_judged else otherwise,
    )
    np.fill_diagonal(state, "")
    more = np.maximum(until - now, 1.0) * row.labels_each
    more = np.where(settled | (until == NEVER) | (not foretold), np.nan, more)
    np.fill_diagonal(more, np.nan)
    return PairStates(state, np.vectorize(_rounded, otypes=[float])(more))


def is_all_judged(pairs: Pairwise) -> bool:
    """Whether a forecast tells that nothing is left to judge."""
    return pairs.forecast is not None and len(pairs.forecast.steps) == 1


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


def what_next(state: str, more: float, *, equivalence: bool, why_open: str = "") -> str:
    """What the state of a pair that is not settled means; nothing for others."""
    apart = "they are told apart" + (", or known to be equivalent" if equivalence else "")
    if state == GO_ON:
        return f"Go on: {judgments(more)} until {apart}."
    if state == STOPPED and math.isfinite(more):
        return f"The round has stopped; it would have taken {judgments(more)} until {apart}."
    if state == STOPPED:
        never = "not even the whole pool was foretold to tell them apart: they may be equally good"
        return f"The round has stopped; {'they are not told apart' if why_open else never}."
    if state == OUT_OF_REACH and math.isfinite(more):
        return f"Out of reach with this budget: it takes {judgments(more)} until {apart}."
    if state == OUT_OF_REACH:
        return "Not even the whole pool is foretold to tell them apart: they may be equally good."
    return f"They are not told apart. {why_open}".strip() if state == OPEN else ""


def why_open(row: Round, shown: EstimateSet, pairs: Pairwise) -> str:
    """Why it is not said what more judgments would bring of two runs; empty where it is."""
    if is_all_judged(pairs):
        return "All that there is to judge is judged: they may be equally good."
    if pairs.forecast is not None and pairs.until is not None:
        return ""
    return f"Nothing is foretold of {_without_forecast(row, shown, pairs.measure)}."


def _without_forecast(row: Round, shown: EstimateSet, measure: str) -> str:
    """What of some estimates it is that has no forecast (`services.forecasting`)."""
    interval = shown.intervals.get(measure, Round.Interval.STUDENT)
    causes = (
        (f"{measure}: forecasts are of the round's own measure, {row.measure}",
         measure != row.measure),
        ("rounds that are estimated together", shown.earlier),
        ("a round of whose runs some were withdrawn", shown.withdrawn),
        (f"rounds by {row.sampling.short}", not row.sampling.foretold),
        (measure, parse_measure(measure).family not in ("gain", "ratio")),
        ("guaranteed intervals", interval != Round.Interval.STUDENT),
        ("estimates from predicted grades", row.estimator),
    )  # fmt: skip
    return next((what for what, holds in causes if holds), "these estimates")
