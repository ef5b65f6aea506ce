"""What an upload brought, in words."""

from typing import Any

from django import template
from django.template.context import RequestContext

from judging.forms_material import UploadForm
from judging.models import Campaign, Upload

register = template.Library()

UNITS = {
    "topics": ("topic", "topics"),
    "documents": ("document", "documents"),
    "lines": ("line", "lines"),
    "qrels": ("judged pair", "judged pairs"),
    "lines_left_out": ("line left out", "lines left out"),
    "predictions": ("predicted grade", "predicted grades"),
    "files": ("file", "files"),
    "costs": ("cost of a pair", "costs of pairs"),
    "pairs_left_out": ("pair of an unknown topic left out", "pairs of unknown topics left out"),
}


@register.inclusion_tag("judging/_upload_drawer.html", takes_context=True)
def upload_drawer(context: RequestContext, campaign: Campaign) -> dict[str, Any]:
    """The form that takes files, over any page of a campaign's data."""
    token = context.get("csrf_token")
    return {"campaign": campaign, "form": UploadForm(auto_id="drawer-%s"), "csrf_token": token}


@register.filter
def brought(upload: Upload) -> str:
    """For example: run bm25, 225 topics, 11,250 lines."""
    summary = upload.summary
    parts = [f"run {summary['tag']}"] if "tag" in summary else []
    for key, (one, many) in UNITS.items():
        if count := summary.get(key):
            parts.append(f"{count:,} {one if count == 1 else many}")
    return ", ".join(parts)


@register.filter
def reason(upload: Upload) -> str:
    """Why the file as a whole was rejected; empty where its lines are told of one by one."""
    if upload.error_count != 1 or not upload.errors:
        return ""
    only = upload.errors[0]
    return "" if only["line"] or only["field"] else str(only["message"])
