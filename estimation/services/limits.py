"""What the choices of a round may be at most, by its campaign's scale and depth."""

from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import Measure
from estimation.plans import RoundPlan
from judging.errors import UserError
from judging.models import Campaign


def check_negligible(campaign: Campaign, plan: RoundPlan, measure: Measure) -> None:
    """Of a larger difference than there is, all runs are as good as equal, whatever is judged.

    Raises UserError ``round_invalid``. A measure without values on this scale is told elsewhere.
    """
    depth = plan.depth or campaign.depth
    try:
        most = measure.largest_value(max_grade=campaign.max_grade, depth=depth)
    except MeasureError:
        return
    if plan.negligible > most:
        message = f"Expected at most {most:g}, the largest value that a run can have by {measure}."
        raise UserError("round_invalid", message, field="negligible")
