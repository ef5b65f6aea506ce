"""Who judges what next: claims, leases, skips.

A place on a pair is taken by one conditional UPDATE (``held < wanted``), so concurrent assessors
never get more places than there are labels wanted. Which assessor gets which pair depends on
hashes of their ids and on who is there, never on a grade: labels are missing at random, and the
mean over the assessors of a pair stays unbiased. So they are where gold is mixed in (`golds`), and
where a guest of a crowd link has as many pairs as they may have, and gets no more
(`judging.guests`).
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import DurationField, Exists, F, OuterRef, QuerySet
from django.db.models.functions import Now

from judging import golds
from judging.clock import from_now
from judging.errors import UserError
from judging.guests import has_room, is_full
from judging.models import Assignment, Batch, BatchPair, Campaign, Membership, Pair, Topic, User
from judging.selectors import free_places, is_excluded
from judging.services import audit, batches
from judging.statements import Row, Slot, changes, columns_of, inserts, reads, row_of

TRIES = 8
LEASE_END = from_now(Slot("lease", DurationField()))


def claim_next(*, campaign: Campaign, by: User) -> Assignment | None:
    """The assessor's next pair, under a lease: the one already held, else a free place.

    Serves open batches in order and, within a batch, topic by topic; opens the next batch when
    the assessor finds no place in the open ones. None: nothing can be had at the moment. Nor
    can one whose membership has ended meanwhile: nobody would give the place back; nor one whose
    work is excluded, or who waits until an organizer has looked at it, or has yet to pass the
    training; nor a guest who has as many as they may have.
    """
    if campaign.state != Campaign.State.OPEN:
        return None
    if assignment := held_by(campaign=campaign, by=by):
        return assignment
    while True:
        opened = _open_batches(campaign)
        if assignment := _held_or_claimed(opened, campaign, by):
            return assignment
        if not _memberships(campaign, by).exists() or is_excluded(campaign, by):
            return None
        if is_full(by):
            return None
        more = release_lapsed(campaign) or batches.open_next(campaign.pk)
        # Somebody else may have opened the next batch since we looked.
        if not more and _open_batches(campaign) == opened:
            return None


def _held_or_claimed(opened: list[int], campaign: Campaign, by: User) -> Assignment | None:
    """One step under the lock of the membership: two tabs of one assessor share one lease."""
    with transaction.atomic():
        if not list(_memberships(campaign, by).select_for_update()):
            return None
        if assignment := held_by(campaign=campaign, by=by):
            return assignment
        if opened and is_excluded(campaign, by):  # by now: whoever excludes them has held this lock
            return None
        if not has_room(by):
            return None
        for batch_id in opened:
            if assignment := _claim_in(batch_id, campaign, by):
                return assignment
    return None


def _memberships(campaign: Campaign, by: User) -> QuerySet[Membership]:
    role = Membership.Role.ASSESSOR
    rows = Membership.objects.filter(campaign=campaign, user=by, role=role)
    return rows.filter(held=None, learns=False)


def held_by(*, campaign: Campaign, by: User) -> Assignment | None:
    """The live lease of the assessor in this campaign, prolonged.

    None also if the lease had run out and was taken back between the look and the prolonging.
    """
    row = _HELD.first(assessor=by.pk, campaign=campaign.pk)
    if row is None:
        return None
    prolonged = _PROLONGED.first(pk=row[0], lease=_duration(campaign))
    return _leased(row, prolonged[0], campaign, by) if prolonged else None


def _leased(row: Row, lease_until: datetime, campaign: Campaign, by: User) -> Assignment:
    """From a row of the assignment, its pair and its topic."""
    first, second = len(columns_of(Assignment)), len(columns_of(Assignment)) + len(columns_of(Pair))
    assignment, pair = row_of(Assignment, row[:first]), row_of(Pair, row[first:second])
    pair.topic, pair.campaign = row_of(Topic, row[second:]), campaign
    assignment.pair, assignment.assessor = pair, by
    assignment.lease_until = lease_until
    return assignment


def _held() -> QuerySet[Any, Any]:
    mine = Assignment.objects.filter(
        assessor=Slot("assessor"),
        campaign=Slot("campaign"),
        state=Assignment.State.LEASED,
    )
    tables = ((Assignment, ""), (Pair, "pair__"), (Topic, "pair__topic__"))
    columns = [name for kind, prefix in tables for name in columns_of(kind, prefix)]
    return mine.order_by("pk").values_list(*columns)[:1]


def _prolonged() -> tuple[QuerySet[Assignment], dict[str, object]]:
    """Whether there is still a lease to prolong."""
    leased = Assignment.objects.filter(pk=Slot("pk"), state=Assignment.State.LEASED)
    return leased, {"lease_until": LEASE_END}


_HELD = reads(_held)
_PROLONGED = changes(_prolonged, returning=("lease_until",))


def _duration(campaign: Campaign) -> timedelta:
    return timedelta(minutes=campaign.lease_minutes)


def _open_batches(campaign: Campaign) -> list[int]:
    opened = Batch.objects.filter(campaign=campaign, state=Batch.State.OPEN)
    return list(opened.order_by("number").values_list("pk", flat=True))


def claim(*, pair: Pair, by: User) -> Assignment | None:
    """This very pair for this assessor, if a place is free; for imported and simulated work."""
    mine = Assignment.objects.filter(pair=pair, assessor=by)
    if mine.exclude(state=Assignment.State.LAPSED).exists() or is_excluded(pair.campaign, by):
        return None
    with transaction.atomic():
        if not has_room(by):
            return None
        return _take(_Place(pair.pk, pair.wanted, seen=False), pair.campaign, by)


def _claim_in(batch_id: int, campaign: Campaign, by: User) -> Assignment | None:
    for _ in range(TRIES):
        candidates = _candidates(batch_id, campaign, by)
        if not candidates:
            return None
        for place in candidates[:TRIES]:
            if assignment := _take(place, campaign, by):
                return assignment
    return None


@dataclass(frozen=True)
class _Place:
    pair: int
    labels: int
    seen: bool
    gold: bool = False

    def order(self, assessor: int) -> tuple[bool, bool, bytes]:
        """Of those that were not seen yet gold comes first: it is there at its turn alone."""
        return self.seen, self.seen or not self.gold, _shuffle(assessor, self.pair)


def _candidates(batch_id: int, campaign: Campaign, by: User) -> list[_Place]:
    """Places of one topic that the assessor may take: the topic in hand, else one chosen by hash.

    Shuffled by hash; pairs that the assessor has had before and put off come last. Where it is the
    turn of gold, one of the topic comes first.
    """
    mixed = campaign.gold_every > 0
    free = free_places(by.pk, gold=mixed).filter(batch_id=batch_id)
    topic = _topic_in_hand(by)
    places = _places_of(free, topic, by, mixed=mixed)
    if not places:
        topics = free.order_by().values_list("pair__topic_id", flat=True).distinct()
        topic = min(topics, key=lambda topic: _shuffle(by.pk, topic), default=None)
        places = _places_of(free, topic, by, mixed=mixed)
    if mixed and topic is not None and any(not place.gold for place in places):
        places += _gold_of(campaign, topic, by)
    return sorted(places, key=lambda place: place.order(by.pk))


def _places_of(
    free: QuerySet[BatchPair], topic_id: int | None, by: User, *, mixed: bool
) -> list[_Place]:
    if topic_id is None:
        return []
    seen = Exists(_own(by).filter(state=Assignment.State.LAPSED))
    rows = free.filter(pair__topic=topic_id).annotate(seen=seen)
    places = [_Place(row.pair_id, row.labels, row.seen) for row in rows]
    if mixed:
        put_off = golds.put_off(by.pk, topic_id).values_list("pair_id", flat=True)
        places += [_Place(pair, golds.MOST_LABELS, seen=True, gold=True) for pair in put_off]
    return places


def _gold_of(campaign: Campaign, topic: int, by: User) -> list[_Place]:
    """One that comes before all others, if it is its turn. What is asked is the same if it is not:
    who measures how long an answer takes learns nothing."""
    mine = Assignment.objects.filter(assessor=by, campaign=campaign)
    found = list(golds.free(by.pk, topic).values_list("pair_id", flat=True))
    if not golds.is_due(campaign, by, **mine.aggregate(**golds.turns())) or not found:
        return []
    chosen = min(found, key=lambda pair: _shuffle(by.pk, pair))
    return [_Place(chosen, golds.MOST_LABELS, seen=False, gold=True)]


def _own(by: User) -> QuerySet[Assignment]:
    return Assignment.objects.filter(pair=OuterRef("pair"), assessor=by)


def _topic_in_hand(by: User) -> int | None:
    last = Assignment.objects.filter(assessor=by).exclude(state=Assignment.State.LEASED)
    return last.order_by("-changed").values_list("pair__topic_id", flat=True).first()


def _shuffle(assessor: int, item: int | None) -> bytes:
    return hashlib.sha256(f"{assessor}/{item}".encode()).digest()


class _Full(Exception):
    """Somebody else took the last place, or the pair was decided."""


def _take(place: _Place, campaign: Campaign, by: User) -> Assignment | None:
    """The assignment first, then the pair, as a save locks them: no two ever wait in a circle."""
    free = Pair.every.filter(pk=place.pair, decided=False, held__lt=place.labels)
    try:
        with transaction.atomic():
            assignment = _lease(place, campaign, by)
            if not free.update(held=F("held") + 1):
                raise _Full
            return assignment
    except (_Full, IntegrityError):  # the latter: claimed or judged in another tab at this moment
        return None


def _lease(place: _Place, campaign: Campaign, by: User) -> Assignment:
    pair, lease = place.pair, _duration(campaign)
    if not _RENEWED.rows(pair=pair, assessor=by.pk, lease=lease):
        LEASED.rows(
            campaign_id=campaign.pk, pair_id=pair, assessor_id=by.pk, lease=lease, gold=place.gold
        )
    return Assignment.objects.select_related("pair__topic").get(pair_id=pair, assessor=by)


def _renewed() -> tuple[QuerySet[Assignment], dict[str, object]]:
    lapsed = Assignment.objects.filter(
        pair=Slot("pair"), assessor=Slot("assessor"), state=Assignment.State.LAPSED
    )
    return lapsed, {
        "state": Assignment.State.LEASED,
        "lease_until": LEASE_END,
        "changed": Now(),
    }


_RENEWED = changes(_renewed)
LEASED = inserts(
    Assignment,
    {
        "campaign_id": Slot("campaign_id"),
        "pair_id": Slot("pair_id"),
        "assessor_id": Slot("assessor_id"),
        "lease_until": LEASE_END,
        "gold": Slot("gold"),
    },
    returning=("id", "lease_until", "created"),
)


def release_lapsed(campaign: Campaign | None = None) -> int:
    """Gives back the places of leases that have run out on the database's clock."""
    lapsed = Assignment.objects.filter(state=Assignment.State.LEASED, lease_until__lt=Now())
    if campaign is not None:
        lapsed = lapsed.filter(campaign=campaign)
    return sum(_release(pk, pair_id) for pk, pair_id in lapsed.values_list("pk", "pair_id")[:500])


def _release(assignment_id: int, pair_id: int) -> int:
    with transaction.atomic():
        released = Assignment.objects.filter(
            pk=assignment_id, state=Assignment.State.LEASED, lease_until__lt=Now()
        ).update(state=Assignment.State.LAPSED, changed=Now())
        if released:
            Pair.every.filter(pk=pair_id).update(held=F("held") - 1)
        return released


def skip(*, assignment: Assignment, by: User, reason: str) -> None:
    """The assessor cannot judge this pair: the place goes to somebody else, the draw stays."""
    reason = reason.strip()[:500]
    if not reason:
        raise UserError("reason_missing", "Say in a few words why you skip it.", field="reason")
    with transaction.atomic():
        _give_back(assignment, by, state=Assignment.State.SKIPPED, skip_reason=reason)
        audit.record(
            "skip", by=by, campaign=assignment.pair.campaign_id, target=assignment, reason=reason
        )


def put_off(*, assignment: Assignment, by: User) -> None:
    """The assessor would rather judge this pair later: it comes back after the topic's others."""
    with transaction.atomic():
        _give_back(assignment, by, state=Assignment.State.LAPSED)


def _give_back(assignment: Assignment, by: User, **values: str) -> None:
    given_back = Assignment.objects.filter(
        pk=assignment.pk, assessor=by, state=Assignment.State.LEASED
    ).update(changed=Now(), **values)
    if not given_back:
        raise UserError("not_held", "You do not hold this pair any more.", status=409)
    Pair.every.filter(pk=assignment.pair_id).update(held=F("held") - 1)
