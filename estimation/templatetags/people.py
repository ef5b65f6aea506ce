"""Charts of what assessors did, for pages about people."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from django import template

from estimation.charts.bars import day_bars
from estimation.charts.dots import grade_dots
from judging.models import Campaign
from judging.norming import Discussed

register = template.Library()


@register.inclusion_tag("charts/bars.svg")
def judged_by_day(days: Sequence[tuple[date, int]]) -> dict[str, Any]:
    """Bars of the judgments of each day."""
    return {"chart": day_bars([(f"{day:%-d %B}", float(judged)) for day, judged in days])}


@register.inclusion_tag("charts/dots.svg")
def dots_of(campaign: Campaign, found: Discussed) -> dict[str, Any]:
    """The grades that people gave to a pair, and those that they stand by."""
    return {"chart": grade_dots(found.first, found.now, highest=campaign.max_grade)}


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
