"""What lies on an assessor's desk: a pair, its texts, and how far they are; in one statement.

Only the assessor's own work is counted: nothing of runs, probabilities or other people.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Now

from judging.clock import seconds_from_now
from judging.models import Assignment, Batch, BatchPair, Campaign, Document, Job, Pair, Upload, User
from judging.selectors import OwnProgress, TopicProgress, free_places
from judging.statements import Row, Slot, Statement, beside, counts, reads

DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Sheet:
    """``documents`` are the texts, by docno, as far as the campaign has them."""

    assignment: Assignment
    documents: dict[str, Document]
    progress: OwnProgress
    topic: TopicProgress


def _mine() -> QuerySet[Assignment]:
    return Assignment.objects.filter(
        assessor=Slot("assessor"), campaign=Slot("campaign")
    ).order_by()


_OWN, _OF_TOPIC = 5, 2
"""Columns of a row of `how_far`: of all work in the campaign, of that in the topic."""


def _state(state: Assignment.State, **more: object) -> Callable[[], QuerySet[Assignment]]:
    """One count each, by an index that ends with it: next to nothing for each earlier answer."""
    return lambda: _mine().filter(state=state, **more)


def _saved() -> QuerySet[Assignment]:
    """What counts as judged already, if it is not."""
    return _mine().filter(pk=Slot("saved")).exclude(state=Assignment.State.JUDGED)


def _own_work() -> Statement:
    """Judged, in the last day, skipped; what is being saved, if that was given in the last day."""
    judged, day = Assignment.State.JUDGED, seconds_from_now(-DAY_SECONDS)
    today = Count("pk", filter=Q(created__gte=day))
    return beside(
        counts(_state(judged), judged=Count("pk")),
        counts(_state(judged, created__gte=day), judged=Count("pk")),
        counts(_state(Assignment.State.SKIPPED), skipped=Count("pk")),
        counts(_saved, saved=Count("pk"), today=today),
    )


def _of_topic() -> QuerySet[Pair]:
    """Pairs of the topic, gold as well, that they have judged: the other topics are left alone."""
    mine = Assignment.objects.filter(assessor=Slot("assessor"), pair=OuterRef("pk"))
    judged = mine.filter(Q(state=Assignment.State.JUDGED) | Q(pk=Slot("saved")))
    return Pair.every.filter(Exists(judged), topic=Slot("topic")).order_by()


def place_of_chosen(*, topic: bool) -> int:
    """Where in a row of `how_far` what else was read begins."""
    return _OWN + (_OF_TOPIC if topic else 0)


def _left() -> QuerySet[Pair]:
    """The topic's pairs in open batches that are still free for the assessor, or in their hand."""
    mine = Assignment.objects.filter(assessor=Slot("assessor"), pair=OuterRef("pk"))
    states = [Assignment.State.JUDGED, Assignment.State.SKIPPED]
    closed = mine.filter(Q(state__in=states) | Q(pk=Slot("saved")))
    opened = BatchPair.objects.filter(pair=OuterRef("pk"), batch__state=Batch.State.OPEN)
    pairs = Pair.objects.filter(topic=Slot("topic"), decided=False).order_by()
    # A value, not EXISTS, which PostgreSQL takes as leave to go through all open batches instead.
    pairs = pairs.alias(opened=Subquery(opened.values("pk")[:1]))
    free = pairs.filter(~Exists(closed), opened__isnull=False)
    return free.filter(Q(held__lt=F("wanted")) | Q(pk=Slot("hand")))


def document(docno: Any, campaign: Any) -> QuerySet[Document]:
    """The text of accepted uploads that has this number."""
    return Document.objects.filter(
        campaign=campaign, docno=docno, upload__state=Upload.State.ACCEPTED
    ).order_by()


def _text(slot: str) -> Statement:
    return reads(lambda: document(Slot(slot), Slot("campaign")).values_list("title", "text"))


def how_far(*, topic: bool, chosen: Sequence[Statement]) -> Statement:
    """An assessor's progress, with that in the topic if asked for, and what else is to be read."""
    of_topic = [counts(_of_topic, judged=Count("pk")), counts(_left, left=Count("pk"))]
    return beside(_own_work(), *(of_topic if topic else []), *chosen)


_SHEETS = {
    topic: how_far(topic=topic, chosen=[_text("docno"), _text("other")]) for topic in (True, False)
}


def in_hand(campaign: Campaign, by: User) -> int:
    """The pair that the assessor holds; 0 for none."""
    held = Assignment.objects.filter(assessor=by, state=Assignment.State.LEASED, campaign=campaign)
    return held.values_list("pair", flat=True).first() or 0


def sheet_of(assignment: Assignment, *, topic: bool, hand: int | None = None) -> Sheet:
    """What the assessor of an assignment sees of it; with their progress in its topic if asked.

    ``hand``: the pair that they hold, if it is another one.
    """
    pair = assignment.pair
    (row,) = _SHEETS[topic].rows(
        assessor=assignment.assessor_id,
        campaign=pair.campaign_id,
        topic=pair.topic_id,
        docno=pair.docno,
        other=pair.other,
        hand=pair.pk if hand is None else hand,
        saved=0,
    )
    return laid_out(assignment, row, topic=topic)


def laid_out(assignment: Assignment, row: Row, *, topic: bool) -> Sheet:
    """From a row of ``how_far`` that ends with titles and texts of the pair's documents."""
    pair, texts = assignment.pair, row[-4:]
    judged, today, skipped, saved, saved_today = row[:_OWN]
    found = {}
    for docno, title, text in ((pair.docno, *texts[:2]), (pair.other, *texts[2:])):
        if docno and text is not None:
            found[docno] = Document(
                campaign_id=pair.campaign_id, docno=docno, title=title, text=text
            )
    of_topic = TopicProgress(*row[_OWN : _OWN + _OF_TOPIC]) if topic else TopicProgress(0, 0)
    return Sheet(
        assignment, found, OwnProgress(judged + saved, today + saved_today, skipped), of_topic
    )


def turns() -> Statement:
    """How many pairs the assessor was handed, and how many of these were gold."""
    return beside(
        counts(_mine, had=Count("pk")), counts(lambda: _mine().filter(gold=True), gold=Count("pk"))
    )


def _had(*, gold: bool) -> QuerySet[Campaign, tuple[object, ...]]:
    """Whether a place is free, a batch waits to be opened, or a lease has run out."""
    batches = Batch.objects.filter(campaign=OuterRef("pk"))
    open_ones = Batch.objects.filter(campaign=Slot("campaign"), state=Batch.State.OPEN)
    free = free_places(Slot("assessor"), gold=gold).filter(batch__in=open_ones)
    leased = Assignment.objects.filter(state=Assignment.State.LEASED)
    lapsed = leased.filter(lease_until__lt=Now(), campaign=OuterRef("pk"))
    held = leased.filter(assessor=Slot("assessor"), campaign=OuterRef("pk"))
    something = Exists(batches.filter(state=Batch.State.WAITING)) | Exists(free) | Exists(lapsed)
    row = Campaign.objects.filter(pk=Slot("campaign")).order_by()
    return row.annotate(something=something | Exists(held)).values_list("state", "something")


def _idle(*, gold: bool) -> Statement:
    return beside(
        counts(
            lambda: Batch.objects.filter(campaign=Slot("campaign")),
            **{state: Count("pk", filter=Q(state=state)) for state in Batch.State.values},
        ),
        counts(
            lambda: Job.objects.filter(campaign=Slot("campaign")),
            asked=Sum("requested"),
            answered=Sum("done"),
            failed=Count("pk", filter=Q(state=Job.State.FAILED)),
        ),
        reads(lambda: _had(gold=gold)),
    )


_IDLE = {gold: _idle(gold=gold) for gold in (False, True)}


def idle_version(campaign: Campaign, by: User) -> str | None:
    """Another one when there may be another reason for which there is nothing to judge.

    None where the assessor may find something, in a campaign that is open.
    """
    (row,) = _IDLE[campaign.gold_every > 0].rows(campaign=campaign.pk, assessor=by.pk)
    if row[-1] and row[-2] == Campaign.State.OPEN:
        return None
    return hashlib.sha256(repr(row[:-1]).encode()).hexdigest()[:20]
