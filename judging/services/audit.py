"""Audit rows. Call ``record`` inside the transaction of the change it tells of."""

import json
from typing import Any

from django.db.models import Model

from judging.models import AuditEntry, Campaign, User
from judging.statements import Slot, inserts

_COLUMNS = ("actor_id", "campaign_id", "action", "target", "data")
_ENTRY = inserts(AuditEntry, {name: Slot(name) for name in _COLUMNS})


def record(
    action: str,
    *,
    by: User | None,
    campaign: Campaign | int | None = None,
    target: Model | None = None,
    **data: Any,
) -> None:
    _ENTRY.rows(
        actor_id=by.pk if by is not None else None,
        campaign_id=campaign.pk if isinstance(campaign, Campaign) else campaign,
        action=action,
        target=f"{target._meta.model_name} {target.pk}" if target is not None else "",
        data=json.dumps(data),
    )
