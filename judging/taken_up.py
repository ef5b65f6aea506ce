"""Open batches that others have to end: all that is left of them is in hand, or answered by some.

When a batch is so hangs on leases and on who has answered, never on a grade.
"""

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from judging.clock import seconds_from_now
from judging.models import Assignment, Batch, BatchPair, Campaign


def taken_up(campaign: Campaign) -> QuerySet[Batch]:
    """Those of which every pair that is left is in somebody's hands, and has been for no longer
    than a lease, or has been answered and wants labels of others.

    Who skips a pair answers it, where it wants several labels. Where it wants one, anybody else may
    take it at once.
    """
    alone = _left().exclude(Exists(_answers()), labels__gt=1)
    leased = Assignment.objects.filter(pair=OuterRef("pair"), state=Assignment.State.LEASED)
    long_ago = seconds_from_now(-60.0 * campaign.lease_minutes)
    return _open(campaign).filter(
        ~Exists(alone.filter(pair__held__lt=F("labels"))),
        ~Exists(alone.filter(Exists(leased.filter(changed__lt=long_ago)))),
    )


def left_to_others(campaign: Campaign) -> QuerySet[Batch]:
    """Those of which every pair that is left was answered, wants labels of others, and is in
    nobody's hands."""
    leased = Assignment.objects.filter(pair=OuterRef("pair"), state=Assignment.State.LEASED)
    asks = Q(labels__gt=1) & Exists(_answers()) & ~Exists(leased)
    return _open(campaign).filter(Exists(_left()), ~Exists(_left().exclude(asks)))


def pairs_left(batch: int) -> int:
    """How many pairs of a batch, by its row id, want more labels."""
    mine = BatchPair.objects.filter(batch=batch, pair__decided=False)
    return mine.filter(pair__judged__lt=F("labels")).count()


def _open(campaign: Campaign) -> QuerySet[Batch]:
    return Batch.objects.filter(campaign=campaign, state=Batch.State.OPEN)


def _left() -> QuerySet[BatchPair]:
    return BatchPair.objects.filter(
        batch=OuterRef("pk"), pair__decided=False, pair__judged__lt=F("labels")
    )


def _answers() -> QuerySet[Assignment]:
    answered = [Assignment.State.JUDGED, Assignment.State.SKIPPED]
    return Assignment.objects.filter(pair=OuterRef("pair"), state__in=answered, gold=False)
