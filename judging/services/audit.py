"""Audit rows. Call ``record`` inside the transaction of the change it tells of."""

from typing import Any

from django.db.models import Model

from judging.models import AuditEntry, Campaign, User


def record(
    action: str,
    *,
    by: User | None,
    campaign: Campaign | int | None = None,
    target: Model | None = None,
    **data: Any,
) -> None:
    AuditEntry.objects.create(
        actor=by,
        campaign_id=campaign.pk if isinstance(campaign, Campaign) else campaign,
        action=action,
        target=f"{target._meta.model_name} {target.pk}" if target is not None else "",
        data=data,
    )
