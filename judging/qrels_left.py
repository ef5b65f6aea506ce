"""What judging from qrels leaves of the drawn pairs, and why."""

from dataclasses import dataclass

from django.db.models import Count, Exists, F, OuterRef, Q

from judging.accounts import QRELS
from judging.models import Assignment, Batch, BatchPair, Campaign, KnownGrade, Pair


@dataclass(frozen=True)
class QrelsLeft:
    """Pairs that open batches wait for: each counts once, by what keeps it from its end.

    ``further``: qrels have given their one label, and more are wanted. ``known``: they would be
    judged if qrels were asked now. ``held``: their grade is known, and assessors are at them.
    ``unknown``: not among the qrels. ``compared``: comparisons, which qrels do not answer.
    """

    further: int
    known: int
    held: int
    unknown: int
    compared: int

    @property
    def pairs(self) -> int:
        return self.further + self.known + self.held + self.unknown + self.compared

    @property
    def said(self) -> str:
        """For example: 12 pairs are left: 8 want more labels than the one of the qrels, …"""
        if not self.pairs:
            return ""
        parts = [
            (self.further, "want more labels than the one of the qrels"),
            (self.unknown, "not in the qrels"),
            (self.compared, "comparisons of two documents"),
            (self.held, "held or judged by assessors"),
            (self.known, "can be judged if qrels are asked again"),
        ]
        told = ", ".join(f"{count:,} {why}" for count, why in parts if count)
        return f"{self.pairs:,} pair{' is' if self.pairs == 1 else 's are'} left: {told}."


def qrels_left(campaign: Campaign) -> QrelsLeft:
    """In one query."""
    waited_for = BatchPair.objects.filter(
        batch__campaign=campaign, batch__state=Batch.State.OPEN, pair__judged__lt=F("labels")
    )
    mine = Assignment.objects.filter(
        pair=OuterRef("pk"), assessor__username=QRELS, state=Assignment.State.JUDGED
    )
    grade = KnownGrade.objects.filter(
        campaign=campaign, topic=OuterRef("topic"), docno=OuterRef("docno")
    )
    rows = Pair.objects.filter(campaign=campaign, decided=False, pk__in=waited_for.values("pair"))
    rows = rows.annotate(said=Exists(mine), there=Exists(grade))
    left, one = Q(said=False, there=True, other=""), Q(other="")
    counted = rows.aggregate(
        further=Count("pk", filter=Q(said=True)),
        known=Count("pk", filter=left & Q(held__lt=F("wanted"))),
        held=Count("pk", filter=left & Q(held__gte=F("wanted"))),
        unknown=Count("pk", filter=one & Q(said=False, there=False)),
        compared=Count("pk", filter=~one),
    )
    return QrelsLeft(**counted)
