"""Charts of what an assessor did, for their page."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from django import template

from estimation.charts.bars import day_bars

register = template.Library()


@register.inclusion_tag("charts/bars.svg")
def judged_by_day(days: Sequence[tuple[date, int]]) -> dict[str, Any]:
    """Bars of the judgments of each day."""
    return {"chart": day_bars([(f"{day:%-d %B}", float(judged)) for day, judged in days])}


@register.filter
def height(above: float) -> str:
    """How far their grades are from those of others, in words."""
    size = f"{abs(above):.1f}"
    if size == "0.0":
        return "neither above nor below them"
    return f"{size} grades {'above' if above > 0 else 'below'} them on average"


@register.filter
def apart(drift: float) -> str:
    """How far grades have moved, before "their first ones"."""
    return f"{abs(drift):.1f} grades {'more lenient' if drift > 0 else 'more severe'} than"
