"""One judgment and the next pair, in one transaction and few statements: what most requests ask.

The usual case has this way of its own: the assessor holds the pair that they judge, and another of
its topic is free that they have never had. Everything else (the topic or the batch is at its end,
somebody else is at that pair just now, the lease had run out, the judgment is sent again) goes the
long way, ``judgments.record`` and then ``assignments.claim_next``.

The next pair is the one that the long way would take: of the first open batch that has a place for
the assessor, the topic in hand, and of its places that which comes first by the assessor's hash.
Neither looks at a grade, so that labels are missing at random.

What the long way holds by the lock of the membership is held here by the lease in hand. Its row is
changed first: until the commit everybody sees the assessor with the old pair, and from then on with
the new one, so that nobody claims another for them. Whoever ends the membership makes the leases
run out, and so has done it before, which is seen here, or waits for this.

Rows are locked in the order of a save, and after them nothing is waited for: a pair that somebody
else has locked is left to the long way.
"""

from datetime import timedelta
from typing import Any

from django.db import IntegrityError
from django.db.models import CharField, Exists, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import SHA256, Cast, Concat

from judging import golds
from judging.guests import has_room
from judging.models import (
    Assignment,
    Batch,
    BatchPair,
    Campaign,
    GoldPair,
    Membership,
    Pair,
    User,
)
from judging.selectors import free_places
from judging.services import assignments, judgments, steps
from judging.services.assignments import LEASED
from judging.services.judgments import Recorded, Saying
from judging.sheets import Sheet, document, how_far, laid_out, place_of_chosen, sheet_of, turns
from judging.statements import Row, Slot, Statement, changes, columns_of, reads, row_of


class Shuffled(SHA256):
    """The bytes by which ``assignments`` shuffles, or text in their order."""

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        template = "SHA256((%(expressions)s)::bytea)"
        return super().as_sql(compiler, connection, template=template, **extra)


def _by_hash() -> Shuffled:
    return Shuffled(
        Concat(Slot("salt", CharField()), Cast("pair", CharField()), output_field=CharField())
    )


def _told(rows: QuerySet[Any], labels: str) -> QuerySet[Any, Any]:
    """Labels, pair, and the texts of its documents."""
    texts = {
        f"{column}_of_{docno}": Subquery(
            document(OuterRef(f"pair__{docno}"), Slot("campaign")).values(column)
        )
        for docno in ("docno", "other")
        for column in ("title", "text")
    }
    found: QuerySet[Any, Any] = rows.annotate(**texts)
    return found.values_list(labels, *columns_of(Pair, "pair__"), *texts)


def _chosen(*, gold: bool) -> QuerySet[Any, Any]:
    """The place, its pair, and the texts of its documents; no row where an earlier batch has a
    place, of another topic."""
    free = free_places(Slot("assessor"), gold=gold)
    had = Assignment.objects.filter(pair=OuterRef("pair"), assessor=Slot("assessor"))
    open_ones = Batch.objects.filter(campaign=Slot("campaign"), state=Batch.State.OPEN)
    # The sum keeps databases from going through batches, which have many topics, for one of them.
    of_topic = free.alias(within=F("batch_id") + 0).filter(
        ~Exists(had), pair__topic=Slot("topic"), within__in=open_ones.values("pk")
    )
    best = of_topic.order_by("within", _by_hash()).values("pk")[:1]
    earlier = free.filter(
        batch__campaign=Slot("campaign"),
        batch__state=Batch.State.OPEN,
        batch__number__lt=OuterRef("batch__number"),
    )
    rows = BatchPair.objects.filter(~Exists(earlier), pk=Subquery(best)).order_by()
    return _told(rows, "labels")


def _chosen_gold() -> QuerySet[Any, Any]:
    """The same of a gold pair of the topic, whether it is its turn or not."""
    best = golds.free(Slot("assessor"), Slot("topic")).order_by(_by_hash()).values("pk")[:1]
    return _told(GoldPair.objects.filter(pk=Subquery(best)).order_by(), "pair__wanted")


def _taken() -> tuple[QuerySet[Pair], dict[str, object]]:
    role = Membership.Role.ASSESSOR
    member = Membership.objects.filter(
        campaign=OuterRef("campaign"), user=Slot("assessor"), role=role, held=None, learns=False
    )
    free = Pair.every.filter(
        Exists(member), pk=Slot("pair"), decided=False, held__lt=Slot("labels")
    )
    return free.select_for_update(skip_locked=True, no_key=True), {"held": F("held") + 1}


def _next(*, topic: bool, gold: bool) -> Statement:
    """With gold both are read always, so that what is asked is the same whichever is taken."""
    place = reads(lambda: _chosen(gold=gold))
    return how_far(topic=topic, chosen=[turns(), place, reads(_chosen_gold)] if gold else [place])


_NEXT = {
    (topic, gold): _next(topic=topic, gold=gold)
    for topic in (True, False)
    for gold in (True, False)
}
_TAKEN = changes(_taken)


def judge(
    *, assignment: Assignment, by: User, saying: Saying, topic: bool = False
) -> tuple[Recorded, Sheet | None]:
    """Stores the judgment as ``judgments.record`` does, and claims the next pair.

    Both are committed when it returns. The sheet, with the progress in its topic if that is asked
    for, is None where there is nothing to judge at the moment. Raises what ``record`` does.
    """
    following = None
    if usual := _usual(assignment, by, topic=topic):
        try:
            with steps.whole():
                recorded = judgments.record(assignment=assignment, by=by, saying=saying)
                if recorded.created and recorded.counts:
                    following = _claimed(assignment, by, usual, topic=topic)
        except IntegrityError:  # the same key, or the same pair in another tab, at this moment
            recorded = judgments.record(assignment=assignment, by=by, saying=saying)
    else:
        recorded = judgments.record(assignment=assignment, by=by, saying=saying)
    if usual and following:
        return recorded, laid_out(following, usual, topic=topic)
    return recorded, next_sheet(campaign=assignment.pair.campaign, by=by, topic=topic)


def next_sheet(*, campaign: Campaign, by: User, topic: bool = False) -> Sheet | None:
    """What ``assignments.claim_next`` gives, with its texts and progress."""
    following = assignments.claim_next(campaign=campaign, by=by)
    if following is None:
        return None
    following.pair.campaign = campaign
    return sheet_of(following, topic=topic)


def _usual(assignment: Assignment, by: User, *, topic: bool) -> Row | None:
    """The next pair, as far as can be seen before the judgment is stored; as if it were.

    Progress, and then what ``_told`` tells.
    """
    pair = assignment.pair
    mixed = pair.campaign.gold_every > 0
    leased = assignment.state == Assignment.State.LEASED and assignment.assessor_id == by.pk
    if not leased or pair.campaign.state != Campaign.State.OPEN:
        return None
    (row,) = _NEXT[topic, mixed].rows(
        assessor=by.pk,
        campaign=pair.campaign_id,
        topic=pair.topic_id,
        saved=assignment.pk,
        hand=0,
        salt=f"{by.pk}/",
    )
    if mixed:
        row = _with_gold(row, pair.campaign, by, topic=topic)
    return row if row[place_of_chosen(topic=topic)] is not None else None


def _with_gold(row: Row, campaign: Campaign, by: User, *, topic: bool) -> Row:
    """Gold in the place of the sampled pair, if there is both, it is its turn, and that pair is a
    single document too."""
    place = place_of_chosen(topic=topic)
    had, gold, *told = row[place:]
    half = len(told) // 2
    sampled, instead = told[:half], told[half:]
    is_due = golds.is_due(campaign, by, had=had, gold=gold)
    there = None not in (sampled[0], instead[0])
    alone = there and not row_of(Pair, sampled[1:-4]).other
    taken = instead if is_due and alone else sampled
    return (*row[:place], *taken)


def _claimed(assignment: Assignment, by: User, row: Row, *, topic: bool) -> Assignment | None:
    """The pair that was chosen, under a lease; None if it is no longer free, or locked."""
    labels, *columns = row[place_of_chosen(topic=topic) : -4]
    pair = row_of(Pair, columns)
    if not has_room(by):  # their row is locked since the judgment was stored
        return None
    if not _TAKEN.rows(pair=pair.pk, labels=labels, assessor=by.pk):
        return None
    pair.topic, pair.campaign = assignment.pair.topic, assignment.pair.campaign
    lease = timedelta(minutes=pair.campaign.lease_minutes)
    ((pk, until, created),) = LEASED.rows(
        campaign_id=pair.campaign_id, pair_id=pair.pk, assessor_id=by.pk, lease=lease,
        gold=pair.gold,
    )  # fmt: skip
    return Assignment(
        pk=pk, campaign=pair.campaign, pair=pair, assessor=by, gold=pair.gold, lease_until=until,
        created=created,
    )  # fmt: skip
