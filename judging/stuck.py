"""Pairs that wait for the organizer, and who could still judge the others."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery

from judging import golds
from judging.coming import open_links
from judging.guests import done
from judging.models import (
    Assignment,
    Batch,
    BatchPair,
    Campaign,
    Exclusion,
    Membership,
    Pair,
    User,
)
from judging.statements import Slot, counts, reads


@dataclass(frozen=True)
class StuckPair:
    """A pair that waits for the organizer: nobody is left who could judge it, or it was skipped."""

    pair: int
    topic_id: str
    title: str
    docno: str
    other: str
    scale: list[dict[str, str]]
    wanted: int
    judged: int
    skips: list[str]
    nobody_left: bool


def stuck(campaign: Campaign) -> QuerySet[Pair]:
    """Unfinished pairs of open batches that were skipped, or that no assessor could still take.

    Who has to wait or to learn may take them when that is over, and who comes by a crowd link that
    has free places. Nothing waits for an organizer where nobody judges yet. Whoever met the
    document as gold is not handed it again (`golds`).
    """
    return _in_order(campaign, how_many_could(campaign))


def _in_order(campaign: Campaign, total: int) -> QuerySet[Pair]:
    return _stuck_rows(campaign, total).order_by("topic__topic_id", "docno", "other")


def stuck_ids(campaign: Campaign) -> list[int]:
    """Row ids of these, in no order: what every page of an organizer asks.

    Links are only looked at where something would be stuck without them.
    """
    judging = how_many_judge(campaign)
    found = _stuck_ids(campaign, judging)
    free = open_links(campaign).free if found else 0
    return _stuck_ids(campaign, judging + free) if free else found


def _stuck_ids(campaign: Campaign, total: int) -> list[int]:
    return [pk for (pk,) in _STUCK.rows(campaign=campaign.pk, total=total)]


def how_many_could(campaign: Campaign) -> int:
    """Of `may_judge`, with who may still come."""
    return how_many_judge(campaign) + open_links(campaign).free


def how_many_judge(campaign: Campaign) -> int:
    """Of `may_judge`."""
    ((found,),) = _ASSESSORS.rows(campaign=campaign.pk)
    return int(found)


def how_many_have_come(campaign: Campaign) -> int:
    """Of `may_judge`, who is not only invited, with a link that nobody has followed."""
    invited = {"password__startswith": UNUSABLE_PASSWORD_PREFIX, "is_guest": False}
    here = User.objects.filter(pk__in=may_judge(campaign))
    return here.exclude(last_login=None, **invited).count()


def _stuck_rows(campaign: Campaign | Slot, total: int | Slot) -> QuerySet[Pair]:
    assessors = may_judge(campaign)
    mine = Q(pair=OuterRef("pk"), state__in=[Assignment.State.JUDGED, Assignment.State.SKIPPED])
    same = Assignment.objects.filter(**golds.same_document(), assessor__in=assessors)
    spent = same.filter(mine | Q(gold=True)).order_by()
    of_campaign = spent.values("pair__campaign")  # one row, whatever pairs these are of
    count = of_campaign.annotate(n=Count("assessor", distinct=True)).values("n")
    opened = BatchPair.objects.filter(
        batch__campaign=campaign, batch__state=Batch.State.OPEN, labels__gt=F("pair__judged")
    )
    skipped = Assignment.objects.filter(pair=OuterRef("pk"), state=Assignment.State.SKIPPED)
    unfinished = Pair.objects.filter(campaign=campaign, pk__in=opened.values("pair"), decided=False)
    spent_by = unfinished.annotate(spent=Subquery(count)).order_by()
    return spent_by.filter(Exists(skipped) | Q(spent__gte=total))


def may_judge(campaign: Campaign | Slot) -> QuerySet[Membership, Any]:
    """The assessors who are handed pairs, now or once they need not wait or learn any more."""
    excluded = Exclusion.objects.filter(campaign=campaign, ended=None).values("assessor")
    rows = Membership.objects.filter(campaign=campaign, role=Membership.Role.ASSESSOR)
    return rows.exclude(user__in=excluded).exclude(user__in=done(campaign)).values("user")


_STUCK = reads(lambda: _stuck_rows(Slot("campaign"), Slot("total")).values_list("pk"))
_ASSESSORS = counts(lambda: may_judge(Slot("campaign")), judge=Count("pk"))


def handed_pairs(campaign: Campaign) -> QuerySet[Membership, Any]:
    """The assessors who are handed pairs now."""
    return may_judge(campaign).filter(held=None, learns=False)


def stuck_pairs(
    campaign: Campaign, limit: int = 200, *, only: Collection[int] | None = None
) -> list[StuckPair]:
    """Those pairs in full, or some of them."""
    total = how_many_could(campaign)
    rows = _in_order(campaign, total)
    if only is not None:
        rows = rows.filter(pk__in=only)
    full = rows.select_related("topic", "campaign").prefetch_related("assignments")
    return [_stuck(pair, total) for pair in full[:limit]]


def _stuck(pair: Pair, assessors: int) -> StuckPair:
    skips = [a.skip_reason for a in pair.assignments.all() if a.state == Assignment.State.SKIPPED]
    spent = getattr(pair, "spent", None) or 0
    return StuckPair(
        pair=pair.pk,
        topic_id=pair.topic.topic_id,
        title=pair.topic.title,
        docno=pair.docno,
        other=pair.other,
        scale=pair.scale,
        wanted=pair.wanted,
        judged=pair.judged,
        skips=skips,
        nobody_left=spent >= assessors,
    )
