"""What is known already, beside what a drafted round is expected to buy.

A further round that is estimated alone may know less than the round before it: of pairs that
nobody judged it has its own sample alone. Whoever plans it is told so, and from which budget on it
is otherwise. Nothing is chosen here, and no estimate changes.
"""

import math
from dataclasses import dataclass
from statistics import median

from estimation.core.planning.reached import ReachedByBudget
from estimation.models import Estimate, Round
from estimation.scales import decimals, label, plus_minus
from estimation.selectors import latest_estimates, measures_of, rounds_of
from estimation.unknown import hoped_if

ROUNDING = 1e-6


@dataclass(frozen=True)
class KnownNow:
    """The half width of the middle run, of those with a value, in a round's latest estimates: the
    longer side, as the ranking tells it."""

    round: int
    batches: int
    half_width: float

    @property
    def width(self) -> str:
        return plus_minus(label(self.half_width, decimals(self.half_width)))


def known_now(row: Round) -> KnownNow | None:
    """The narrowest there is of the measure of a drafted round; None if no round estimates it."""
    drawn = rounds_of(row.campaign).exclude(state__in=Round.NOT_DRAWN).exclude(pk=row.pk)
    found = [known_of(other, row.measure) for other in drawn if row.measure in measures_of(other)]
    return min((each for each in found if each), key=lambda each: each.half_width, default=None)


def known_of(other: Round, measure: str) -> KnownNow | None:
    """What a round tells of a measure; None before its first batch, or where it tells no value."""
    shown = latest_estimates(other)
    if shown is None:
        return None
    rows = Estimate.objects.filter(estimate_set=shown, measure=measure, primary=True, unknown=0)
    told = rows.values_list("low", "value", "high")
    widths = [max(high - value, value - low) for low, value, high in told]
    return KnownNow(other.number, shown.batches, median(widths)) if widths else None


def said_against(known: KnownNow | None, row: Round, target: float | None) -> str:
    """The half width so far beside the planned one, of a round that has no forecast to say so."""
    if known is None:
        return ""
    digits = decimals(known.half_width)
    planned = "" if target is None else f"; planned was {plus_minus(label(target, digits))} or less"
    return f"{row.measure} of the middle run is known to {known.width}{planned}."


def less_than_known(row: Round, known: KnownNow | None, table: ReachedByBudget) -> str:
    """That a round may know less than is known now, and what would mend it; empty if it does not.

    It is held against what the round is expected to reach as the prior has it, and if much more is
    relevant.
    """
    here = table.at(float(row.budget))
    if known is None or not math.isfinite(here.half_width_most) or _is_of_a_part(row):
        return ""
    if here.half_width_most <= known.half_width:
        return ""
    digits = decimals(known.half_width)
    low, high = (label(each, digits) for each in (here.half_width, here.half_width_most))
    is_less = here.half_width > known.half_width
    says = (
        f"Less than round {known.round} knows now" if is_less
        else f"Maybe less than round {known.round} knows now{_careful_if(row)}"
    )  # fmt: skip
    came = plus_minus(low if low == high else f"{low} to {high}")
    return (
        f"{says}: {known.width} for the middle run there, {came} here. {_why(row)}"
        f"{_from(row, table, known.half_width)}"
    )


def _careful_if(row: Round) -> str:
    return "" if row.preview.get("learns") else ", if much more is relevant than found"


def _is_of_a_part(row: Round) -> bool:
    """Whether earlier rounds count with it, and what it is expected to reach is without them."""
    return row.with_earlier and not row.preview.get("of_all")


def _why(row: Round) -> str:
    if row.with_earlier:
        return ""
    if row.top_up:
        return "What is not judged yet is drawn anew, and the draws before say nothing of it. "
    return "This round is estimated alone. "


def _from(row: Round, table: ReachedByBudget, half_width: float) -> str:
    if not half_width > 0.0:
        return "Only where everything is judged it is as narrow."
    answer = table.budget_for("half_width", half_width)
    if answer.hoped is None:
        return "No budget of this design makes it as narrow."
    hoped = math.ceil(answer.hoped - ROUNDING)
    if answer.careful is None:
        enough = row.in_units(hoped)
        return f"From about {enough} on it is as narrow, {hoped_if(row.preview)}."
    careful = math.ceil(answer.careful - ROUNDING)
    many = row.in_units(careful)
    if hoped != careful:
        many = f"{hoped:,} to {many}"
    return f"From about {many} on it is as narrow."
