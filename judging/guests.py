"""How far a guest of a crowd link is, and whether they may have one more pair.

The cap on a guest's judgments does not bias estimates: it looks at how many pairs somebody has, and
never at a grade. Which pairs these are was chosen by hashes of row ids (``services.assignments``),
and those that a guest no longer gets go to others, so that labels are missing at random.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import F, Q, QuerySet, Sum

from judging.models import Assignment, Batch, BatchPair, Campaign, CrowdGuest, User
from judging.statements import Slot

State = Assignment.State
SAID = Q(state=State.JUDGED) | Q(set_aside__gte=1)
"""Pairs that were judged, whether that counts or the work is excluded."""
SKIPPED = Q(state=State.SKIPPED) | Q(state=State.EXCLUDED, set_aside=0, skip_reason__gt="")
"""Pairs that were skipped, also if the work is excluded since."""


@dataclass(frozen=True)
class GuestProgress:
    """``judged`` of ``most`` pairs; ``token`` is that of the link they came by, ``query`` what its
    address had more."""

    judged: int
    most: int
    skipped: int
    token: str
    finished: datetime | None
    query: str = ""

    @property
    def is_full(self) -> bool:
        return self.judged >= self.most


def progress(user: User) -> GuestProgress | None:
    """None: no guest, or one whose link is gone."""
    if not user.is_guest:
        return None
    row = CrowdGuest.objects.select_related("link").filter(account=user).first()
    if row is None:
        return None
    theirs = Assignment.objects.filter(assessor=user)
    skipped = theirs.filter(SKIPPED).count()
    judged = theirs.filter(SAID).count()
    link, query = row.link, urlencode(row.parameters)
    return GuestProgress(judged, link.judgments, skipped, link.token, row.finished, query)


def has_a_pair(user: User) -> bool:
    """Whether they have one in hand, and so may go on."""
    return Assignment.objects.filter(assessor=user, state=State.LEASED).exists()


def done(campaign: Campaign | Slot) -> QuerySet[CrowdGuest, Any]:
    """The accounts of guests who are handed no more pairs, as their work is done."""
    guests = CrowdGuest.objects.filter(link__campaign=campaign, finished__isnull=False)
    return guests.exclude(account=None).order_by().values("account")


def is_full(user: User) -> bool:
    """Whether a guest is done, or has as many pairs as they may have; a lease in hand counts."""
    return user.is_guest and not _has_room(user, None, CrowdGuest.objects.all())


def has_room(user: User, *, beside: int | None = None) -> bool:
    """Whether the user may have one more pair beside their others, now and until the commit.

    Call it inside a transaction: the guest's row is locked, so that what a guest does in two tabs
    is done one after the other. ``beside``: the assignment that it is about does not count. Always
    true for who is no guest.
    """
    if not user.is_guest:
        return True
    return _has_room(user, beside, CrowdGuest.objects.select_for_update(of=("self",)))


def _has_room(user: User, beside: int | None, guests: QuerySet[CrowdGuest]) -> bool:
    going_on = guests.filter(account=user, finished=None)
    most = next(iter(going_on.values_list("link__judgments", flat=True)), 0)
    taken = Assignment.objects.filter(SAID | Q(state=State.LEASED), assessor=user)
    return (taken.exclude(pk=beside) if beside else taken).count() < most


def left_for_a_newcomer(campaign: Campaign) -> int:
    """Pairs of batches that are open, or wait to be, of which somebody new may get a place."""
    opened = BatchPair.objects.filter(batch__campaign=campaign, batch__state=Batch.State.OPEN)
    free = opened.filter(pair__decided=False, pair__held__lt=F("labels")).count()
    waiting = campaign.batches.filter(state=Batch.State.WAITING)
    to_come: int = waiting.aggregate(n=Sum("pair_count"))["n"] or 0
    return free + to_come
