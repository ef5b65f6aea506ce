"""What the choices of a round may be at most, by its campaign's scale and depth."""

from estimation.models import Round
from estimation.plans import RoundPlan
from estimation.unknown import largest_value
from judging.errors import UserError
from judging.models import Campaign


def check_in_unit(campaign: Campaign, plan: RoundPlan, measure: str) -> None:
    """Of a larger difference than there is, all runs are as good as equal, whatever is judged; and
    to a larger half width all are known as soon as they are known at all.

    Raises UserError ``round_invalid``.
    """
    most = largest_value(campaign, measure, depth=plan.depth or campaign.depth)
    given = {"negligible": plan.negligible}
    if plan.stop_when == Round.Stop.WIDTH:
        given["stop_width"] = plan.stop_width
    for field, value in given.items():
        message = f"Expected at most {most:g}, the largest value that a run can have by {measure}."
        require(value <= most, field, message)


def require(condition: bool, field_name: str, message: str) -> None:
    if not condition:
        raise UserError("round_invalid", message, field=field_name)
