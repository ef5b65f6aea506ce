"""Who judges what next: claims, leases, skips.

A place on a pair is taken by one conditional UPDATE (``held < wanted``), so concurrent assessors
never get more places than there are labels wanted. Which assessor gets which pair depends on
hashes of their ids and on who is there, never on a grade: labels are missing at random, and the
mean over the assessors of a pair stays unbiased. So they are where gold is mixed in (`golds`), and
where a guest of a crowd link has as many pairs as they may have, and gets no more
(`judging.guests`).
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
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
from judging.signals import opening_asked
from judging.statements import Row, Slot, Statement, changes, columns_of, inserts, reads, row_of

TRIES = 8
LEASE_END = from_now(Slot("lease", DurationField()))


def claim_next(*, campaign: Campaign, by: User) -> Assignment | None:
    """The assessor's next pair, under a lease: the one already held, else a free place.

    Serves open batches in order and, within a batch, topic by topic; opens the next batch when
    the assessor finds no place in the open ones, unless that is to wait for pairs in other
    hands (``opening_asked``). None: nothing can be had at the moment. Nor
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
        if not _memberships(campaign.pk, by.pk).exists() or is_excluded(campaign, by):
            return None
        if is_full(by):
            return None
        more = release_lapsed(campaign) or _open_next(campaign)
        # Somebody else may have opened the next batch since we looked.
        if not more and _open_batches(campaign) == opened:
            return None


def _open_next(campaign: Campaign) -> Batch | None:
    """Which batches wait hangs on leases and on what is complete, never on a grade."""
    answers: list[Any] = opening_asked.send(sender=Campaign, campaign=campaign)
    but = [pk for _, waiting in answers for pk in waiting]
    return batches.open_next(campaign.pk, but=but)


def _held_or_claimed(opened: list[int], campaign: Campaign, by: User) -> Assignment | None:
    """One step under the lock of the membership: two tabs of one assessor share one lease."""
    with transaction.atomic():
        if not _MEMBER.rows(campaign=campaign.pk, assessor=by.pk):
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


def _memberships(campaign: Any, assessor: Any) -> QuerySet[Membership]:
    """The two are row ids, or expressions for them."""
    role = Membership.Role.ASSESSOR
    rows = Membership.objects.filter(campaign=campaign, user=assessor, role=role)
    return rows.filter(held=None, learns=False)


def _locked_member() -> QuerySet[Any, Any]:
    rows = _memberships(Slot("campaign"), Slot("assessor"))
    return rows.select_for_update().values_list("pk")


_MEMBER = reads(_locked_member)


def held_by(*, campaign: Campaign, by: User) -> Assignment | None:
    """The live lease of the assessor in this campaign, prolonged.

    None also if the lease had run out and was taken back between the look and the prolonging.
    """
    row = _HELD.first(assessor=by.pk, campaign=campaign.pk)
    if row is None:
        return None
    prolonged = _PROLONGED.first(pk=row[0], lease=_duration(campaign))
    if not prolonged:
        return None
    assignment = _assignment_of(row)
    assignment.lease_until = prolonged[0]
    assignment.pair.campaign, assignment.assessor = campaign, by
    return assignment


def _assignment_of(row: Row) -> Assignment:
    """From a row of the assignment, its pair and its topic."""
    first, second = len(columns_of(Assignment)), len(columns_of(Assignment)) + len(columns_of(Pair))
    assignment, pair = row_of(Assignment, row[:first]), row_of(Pair, row[first:second])
    assignment.pair, pair.topic = pair, row_of(Topic, row[second:])
    return assignment


def _held() -> QuerySet[Any, Any]:
    mine = Assignment.objects.filter(
        assessor=Slot("assessor"),
        campaign=Slot("campaign"),
        state=Assignment.State.LEASED,
    )
    return _with_pair(mine.order_by("pk")[:1])


def _with_pair(rows: QuerySet[Assignment]) -> QuerySet[Any, Any]:
    """The columns of the assignment, its pair and its topic."""
    tables = ((Assignment, ""), (Pair, "pair__"), (Topic, "pair__topic__"))
    columns = [name for kind, prefix in tables for name in columns_of(kind, prefix)]
    return rows.values_list(*columns)


def _prolonged() -> tuple[QuerySet[Assignment], dict[str, object]]:
    """Whether there is still a lease to prolong."""
    leased = Assignment.objects.filter(pk=Slot("pk"), state=Assignment.State.LEASED)
    return leased, {"lease_until": LEASE_END}


_HELD = reads(_held)
_PROLONGED = changes(_prolonged, returning=("lease_until",))


def _duration(campaign: Campaign) -> timedelta:
    return timedelta(minutes=campaign.lease_minutes)


def _open_batches(campaign: Campaign) -> list[int]:
    return [pk for (pk,) in _OPENED.rows(campaign=campaign.pk)]


def _opened() -> QuerySet[Any, Any]:
    opened = Batch.objects.filter(campaign=Slot("campaign"), state=Batch.State.OPEN)
    return opened.order_by("number").values_list("pk")


_OPENED = reads(_opened)


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
    other: str = ""

    def order(self, assessor: int) -> tuple[bool, bytes]:
        return self.seen, _shuffle(assessor, self.pair)


def _candidates(batch_id: int, campaign: Campaign, by: User) -> list[_Place]:
    """Places of one topic that the assessor may take: the topic in hand, else one chosen by hash.

    Shuffled by hash; pairs that the assessor has had before and put off come last. Where it is the
    turn of gold, one of the topic comes first, in the place of a single document.
    """
    mixed = campaign.gold_every > 0
    topic = _topic_in_hand(by)
    places = _places_of(batch_id, topic, by, mixed=mixed)
    if not places:
        topics = _TOPICS[mixed].rows(batch=batch_id, assessor=by.pk)
        topic = min((pk for (pk,) in topics), key=lambda pk: _shuffle(by.pk, pk), default=None)
        places = _places_of(batch_id, topic, by, mixed=mixed)
    places = sorted(places, key=lambda place: place.order(by.pk))
    sampled = next((place for place in places if not place.gold), None)
    if mixed and topic is not None and sampled and not sampled.other:
        places = _gold_of(campaign, topic, by) + places
    return places


def _places_of(batch_id: int, topic_id: int | None, by: User, *, mixed: bool) -> list[_Place]:
    if topic_id is None:
        return []
    rows = _PLACES[mixed].rows(batch=batch_id, topic=topic_id, assessor=by.pk)
    places = [_Place(pair, labels, seen, other=other) for pair, labels, seen, other in rows]
    if mixed:
        put_off = golds.put_off(by.pk, topic_id).values_list("pair_id", flat=True)
        places += [_Place(pair, golds.MOST_LABELS, seen=True, gold=True) for pair in put_off]
    return places


def _free(*, gold: bool) -> QuerySet[BatchPair]:
    return free_places(Slot("assessor"), gold=gold).filter(batch_id=Slot("batch")).order_by()


def _topics_with_places(*, gold: bool) -> QuerySet[Any, Any]:
    return _free(gold=gold).values_list("pair__topic_id").distinct()


def _places_of_topic(*, gold: bool) -> QuerySet[Any, Any]:
    own = Assignment.objects.filter(pair=OuterRef("pair"), assessor=Slot("assessor"))
    seen = Exists(own.filter(state=Assignment.State.LAPSED))
    rows = _free(gold=gold).filter(pair__topic=Slot("topic"))
    return rows.annotate(seen=seen).values_list("pair_id", "labels", "seen", "pair__other")


def _without_and_with_gold(build: Callable[..., QuerySet[Any, Any]]) -> dict[bool, Statement]:
    return {gold: reads(partial(build, gold=gold)) for gold in (False, True)}


_TOPICS = _without_and_with_gold(_topics_with_places)
_PLACES = _without_and_with_gold(_places_of_topic)


def _gold_of(campaign: Campaign, topic: int, by: User) -> list[_Place]:
    """One that comes before all others, if it is its turn. What is asked is the same if it is not:
    who measures how long an answer takes learns nothing."""
    mine = Assignment.objects.filter(assessor=by, campaign=campaign)
    found = list(golds.free(by.pk, topic).values_list("pair_id", flat=True))
    if not golds.is_due(campaign, by, **mine.aggregate(**golds.turns())) or not found:
        return []
    chosen = min(found, key=lambda pair: _shuffle(by.pk, pair))
    return [_Place(chosen, golds.MOST_LABELS, seen=False, gold=True)]


def _topic_in_hand(by: User) -> int | None:
    last = _LAST.first(assessor=by.pk)
    return last[0] if last else None


def _last() -> QuerySet[Any, Any]:
    own = Assignment.objects.filter(assessor=Slot("assessor"))
    last = own.exclude(state=Assignment.State.LEASED).order_by("-changed")
    return last.values_list("pair__topic_id")[:1]


_LAST = reads(_last)


def _shuffle(assessor: int, item: int | None) -> bytes:
    return hashlib.sha256(f"{assessor}/{item}".encode()).digest()


class _Full(Exception):
    """Somebody else took the last place, or the pair was decided."""


def _take(place: _Place, campaign: Campaign, by: User) -> Assignment | None:
    """The assignment first, then the pair, as a save locks them: no two ever wait in a circle."""
    try:
        with transaction.atomic():
            assignment = _lease(place, campaign, by)
            if not _HELD_ONE_MORE.rows(pair=place.pair, labels=place.labels):
                raise _Full
            return assignment
    except (_Full, IntegrityError):  # the latter: claimed or judged in another tab at this moment
        return None


def _held_one_more() -> tuple[QuerySet[Pair], dict[str, object]]:
    free = Pair.every.filter(pk=Slot("pair"), decided=False, held__lt=Slot("labels"))
    return free, {"held": F("held") + 1}


_HELD_ONE_MORE = changes(_held_one_more)


def _lease(place: _Place, campaign: Campaign, by: User) -> Assignment:
    pair, lease = place.pair, _duration(campaign)
    if not _RENEWED.rows(pair=pair, assessor=by.pk, lease=lease):
        LEASED.rows(
            campaign_id=campaign.pk, pair_id=pair, assessor_id=by.pk, lease=lease, gold=place.gold
        )
    (row,) = _OF_PAIR.rows(pair=pair, assessor=by.pk)
    return _assignment_of(row)


def _of_pair() -> QuerySet[Any, Any]:
    return _with_pair(Assignment.objects.filter(pair=Slot("pair"), assessor=Slot("assessor")))


_OF_PAIR = reads(_of_pair)


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
