"""Documents of two runs, as the page of one topic shows them."""

from collections.abc import Sequence
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from estimation.documents_compared import RankedDocument, ShownDocument
from estimation.topic_figures import chance
from judging.models import Campaign
from judging.templatetags.site import grade_chip, grade_level

register = template.Library()


@register.inclusion_tag("estimation/_ranked_side.html")
def ranked_side(
    lines: Sequence[RankedDocument], campaign: Campaign, tag: str, other: str, length: int
) -> dict[str, Any]:
    """One run's documents, with what is known of each."""
    return {"lines": lines, "campaign": campaign, "tag": tag, "other": other, "length": length}


@register.simple_tag
def mean_grade(campaign: Campaign, grade: float) -> SafeString:
    """The mean of the labels: a grade of the scale with its name, or a number between two."""
    if grade == round(grade):
        return grade_chip(campaign, round(grade))
    level = grade_level(round(grade), campaign)
    return format_html('<span class="grade grade-{}">{}</span>', level, f"{grade:.2f}")


@register.filter
def chances(known: ShownDocument) -> str:
    """With which a document was drawn, by each round that did."""
    if len(known.drawn) == 1:
        return chance(known.drawn[0].probability)
    return ", ".join(f"{chance(each.probability)} in round {each.round}" for each in known.drawn)


@register.filter
def unlocalized(number: float) -> str:
    """A coordinate, as drawings take it."""
    return f"{number:g}"
