"""How everybody answers is told by a worker, when an organizer looks, and kept for pages.

It takes the answers of all to tell it, seconds where there are many. Nothing of it goes into an
estimate or decides what is handed out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from judging.manners import Manner, manners
from judging.models import AuditEntry, Campaign, Job, KeptManners, Membership
from judging.services import jobs

LOOK = "look-at-people"
FRESH, FRESH_ENOUGH = 60, 600
"""Seconds for which what was told is shown as it is, whatever has been judged since: where people
are looked at, and where somebody is only told of them."""


@dataclass(frozen=True)
class Looked:
    """What was told by row id of the person, and when; nothing before a worker has ever looked.

    ``looking``: one was asked to look again; ``failed`` says why the last one could not.
    """

    manners: Mapping[int, Manner]
    told: datetime | None
    looking: bool
    failed: str


def kept(campaign: Campaign, fresh: float = FRESH) -> Looked:
    """What is kept; where something was done since, a worker is asked to look again."""
    row = KeptManners.objects.filter(campaign=campaign).first()
    job = Job.objects.filter(kind=LOOK, target=campaign.pk).first()
    pending = job is not None and job.state in Job.PENDING
    failed = job.error if job is not None and job.state == Job.State.FAILED else ""
    if not (pending or failed or (row is not None and _is_fresh(row, fresh))):
        jobs.request(LOOK, campaign.pk, campaign=campaign)
        pending = True
    told = {int(pk): Manner.of_json(each) for pk, each in row.value.items()} if row else {}
    return Looked(told, row.told if row else None, pending, failed)


def look(job: jobs.Running) -> None:
    """The job. Idempotent."""
    campaign = Campaign.objects.get(pk=job.target)
    entry = _entries(campaign.pk).values_list("pk", flat=True).first() or 0
    value = {str(pk): each.as_json() for pk, each in manners(campaign).items()}
    with transaction.atomic():
        job.fence()
        KeptManners.objects.update_or_create(
            campaign=campaign, defaults={"value": value, "entry": entry, "told": timezone.now()}
        )


def _is_fresh(row: KeptManners, fresh: float) -> bool:
    """An entry has its number before its commit: only where the latest is old enough when a worker
    looked can there be none of an earlier number that was not seen."""
    if abs((timezone.now() - row.told).total_seconds()) < fresh:  # not of a clock that was ahead
        return True
    last = _entries(row.campaign_id).first()
    settled = last is None or last.created < row.told - timedelta(seconds=FRESH)
    return settled and row.entry == (last.pk if last else 0)


def _entries(campaign: int) -> QuerySet[AuditEntry]:
    """The latest first. Whatever anybody does in a campaign leaves one."""
    return AuditEntry.objects.filter(campaign=campaign).order_by("-pk")


def hasty(campaign: Campaign) -> list[str]:
    """Names of members who seem not to read, and whose work counts; as it was told lately."""
    told = kept(campaign, FRESH_ENOUGH).manners
    found = [pk for pk, manner in told.items() if manner.is_hasty]
    if not found:
        return []
    out = campaign.exclusions.filter(ended=None).values("assessor")
    rows = campaign.memberships.filter(role=Membership.Role.ASSESSOR, user__in=found)
    names = rows.exclude(user__in=out).order_by("user__username")
    return list(names.values_list("user__username", flat=True))
