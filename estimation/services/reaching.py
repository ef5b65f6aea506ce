"""What do you want to reach? From a half width, what is told apart, or hours to a budget.

It is read off the table that the preview has, so that nothing is computed in a request, and page
and REST interface answer alike. A budget is chosen before anything is drawn, from design and prior
alone: no judgment has a part in it, so that it biases nothing.
"""

import math
from dataclasses import dataclass
from decimal import Decimal

from estimation.core.measures.table import parse_measure
from estimation.core.planning.reached import Reached, ReachedByBudget, Target
from estimation.known_now import KnownNow, known_now, less_than_known
from estimation.models import Round
from estimation.plans import OPTIONS, plan_of, with_budget
from estimation.scales import plus_minus
from estimation.services import choices, rounds
from estimation.unknown import hoped_if
from judging.errors import UserError
from judging.models import User

MOST_BATCHES = rounds.MAX_BATCHES
SECONDS = 3600


@dataclass(frozen=True)
class BudgetReply:
    """Which budget reaches what is wanted, and what it reaches; ``budget`` is the one to take.

    That is the careful one where there is one: judging can stop as soon as the forecast of the
    round says that it is enough, and a larger budget costs nothing until it is judged. Where
    nothing is wanted, it is the round's own, and ``known`` what other rounds tell now.
    """

    target: Target | None
    wanted: float | None
    hoped: int | None
    careful: int | None
    budget: int | None
    hours: float | None
    reached: Reached | None
    text: str
    known: KnownNow | None = None


def hours_each(row: Round) -> float:
    """Hours of work for one pair, or one document of average length, topics not counted."""
    return row.labels_each * row.seconds / SECONDS


def reach(*, row: Round, by: User, target: Target, wanted: float) -> BudgetReply:
    """Takes the budget that reaches what is wanted; its preview is due then.

    Batches follow it as `plans.with_budget` says. Raises UserError ``out_of_reach`` (409) with the
    sentence, and as `answered` and `rounds.amend`.
    """
    found, chosen = chosen_for(row, target, wanted)
    rounds.amend(row=row, by=by, chosen=chosen)
    return found


def chosen_for(row: Round, target: Target, wanted: float) -> tuple[BudgetReply, dict[str, int]]:
    """The answer, and what to choose for it; raises as `reach`, and nothing is changed."""
    found = answered(row, target, wanted)
    if found.budget is None:
        raise UserError("out_of_reach", found.text, status=409, field="budget")
    least = -(-found.budget // MOST_BATCHES)
    size = with_budget(plan_of(row), found.budget).batch_size or 1
    return found, {"budget": found.budget, "batch_size": max(least, size)}


def answered(row: Round, target: Target, wanted: float) -> BudgetReply:
    """The answer alone; nothing is changed.

    Raises UserError ``not_worked_out`` (409) while there is no preview of the round as it is,
    ``not_foretold`` (409) for methods of which nobody can tell it, ``reach_invalid``.
    """
    table = _table(row)
    is_share = target in ("decided", "best")
    most = 1.0 if is_share else math.inf
    if not (math.isfinite(wanted) and 0.0 < wanted <= most):
        expected = "a share above 0, up to 1" if is_share else "a number above 0"
        raise UserError("reach_invalid", f"Expected {expected}, not {wanted:g}.", field="wanted")
    found = table.budget_for(target, wanted, hours_each=hours_each(row))
    hoped, careful = (_whole(row, table, each, target) for each in (found.hoped, found.careful))
    taken = careful if careful is not None else hoped
    reached = None if taken is None else table.at(float(taken))
    hours = None if reached is None else reached.work * hours_each(row)
    if hours is not None and taken is not None and taken < (least := table.lines[0].budget):
        reached, hours = None, hours * taken / least  # what less reaches is not worked out
    text = _said(row, target, wanted, (hoped, careful), hours)
    return BudgetReply(target, wanted, hoped, careful, taken, hours, reached, text)


def of_budget(row: Round) -> BudgetReply:
    """What the round's own budget reaches, as far as that is worked out and can be told."""
    known = known_now(row)
    try:
        table = _table(row)
    except UserError as error:
        return BudgetReply(None, None, None, None, row.budget, None, None, error.message, known)
    reached = table.at(float(row.budget))
    hours, less = reached.work * hours_each(row), less_than_known(row, known, table)
    text = f"A budget of {row.budget_told} takes {_takes(row, hours)}."
    text = f"{text} {less}".rstrip()
    return BudgetReply(None, None, None, None, row.budget, hours, reached, text, known)


def _table(row: Round) -> ReachedByBudget:
    preview = row.preview
    if not row.is_drawn and choices.is_outdated(row, choices.digest_of(row)):
        message = f"What this was worked out from has changed since. {choices.AGAIN}. Then ask."
        raise UserError("not_worked_out", message, status=409)
    if not preview or preview.get("error"):
        waits = "What budgets reach is not worked out yet. Wait for the preview, and ask again."
        message = preview.get("error") or waits
        raise UserError("not_worked_out", message, status=409)
    if not preview.get("reached"):
        message = "Nobody can tell for this method beforehand what a budget reaches."
        raise UserError("not_foretold", message, status=409, field="method")
    return ReachedByBudget.of_facts(preview["reached"])


def _whole(row: Round, table: ReachedByBudget, budget: float | None, target: Target) -> int | None:
    """Rounded up, as far as a budget may be; what hours pay for is rounded down."""
    if budget is None:
        return None
    least, most = 2 if row.draws_again else 1, OPTIONS["budget"].most or math.inf
    whole = math.floor(budget + 1e-6) if target == "hours" else math.ceil(budget - 1e-6)
    return int(min(max(whole, least), most, math.ceil(table.lines[-1].budget)))


def _no_values(row: Round, target: Target) -> bool:
    """Whether no budget tells a value, as of designs for a difference alone."""
    return target == "half_width" and row.preview["reached"][-1]["half_width"] is None


def _said(
    row: Round,
    target: Target,
    wanted: float,
    budgets: tuple[int | None, int | None],
    hours: float | None,
) -> str:
    hoped, careful = budgets
    what = {
        "half_width": f"{plus_minus(f'{wanted:g}')} for the middle run",
        "decided": f"{100 * wanted:g} % of the differences decided",
        "best": f"the best two runs told apart with a chance of {100 * wanted:g} %",
        "hours": _hours(wanted),
    }[target]
    if hoped is None and _no_values(row, target):
        return "The sample for this goal supports no values: ask for hours, or spread it evenly."
    most = math.ceil(row.preview["reached"][-1]["budget"])
    every = row.in_units(most) if row.draws_again else "the whole pool"
    if hoped is None:
        judged = "" if row.draws_again else " judged"
        return f"Not even with {every}{judged}: {what} is out of reach."
    if target == "hours":
        short = (hours or 0.0) > wanted * (1.0 + 1e-6)
        budget = row.in_units(hoped)
        least = f"less than {budget}, the least" if short else f"a budget of {budget}"
        return f"{what} {'pays' if wanted == 1 else 'pay'} for {least}."
    takes = _takes(row, hours or 0.0)
    if careful is None:
        return (
            f"For {what} it takes {row.in_units(hoped)} {hoped_if(row.preview)}, {takes}; "
            f"otherwise not even {every} may do."
        )
    if careful == hoped:
        return f"For {what} it takes {row.in_units(careful)}, {takes}."
    return (
        f"For {what} it takes between {hoped:,} and {careful:,} {row.unit}: nobody knows yet how "
        f"many documents are relevant, and how far the runs differ. {careful:,} take {takes}; "
        f"{_earlier(row)}."
    )


def _hours(wanted: float) -> str:
    """As people write them: no 1e+06."""
    return f"{Decimal(f'{wanted:.10g}'):,f} {'hour' if wanted == 1 else 'hours'}"


def _earlier(row: Round) -> str:
    """How one knows that less was enough: by a forecast, which sums of gains and ratios have."""
    if row.sampling.foretold and parse_measure(row.measure).family in ("gain", "ratio"):
        return "stop earlier when the forecast of the round says that it is enough"
    return "a rule to stop early ends the round when less is enough"


def _takes(row: Round, hours: float) -> str:
    cost = row.campaign.cost_of(hours)
    return f"about {hours:,.1f} hours{f', {cost}' if cost else ''}"
