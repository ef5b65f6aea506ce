"""Whether anything of a round may look otherwise than before: asked with every poll, at once.

A version is another one whenever something changes that the pages of a round tell: what people do
leaves an audit row, numbers are a new set of estimates, work is a change of its job, and batches
and workers are counted. It may be another one where nothing on the page is.
"""

import hashlib

from django.conf import settings
from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery, Sum, TextField
from django.db.models.functions import Cast

from estimation.models import EstimateSet, Round
from estimation.work import SHOWN
from judging.models import AuditEntry, Batch, Campaign, Job
from judging.statements import Row, Slot, beside, counts, reads
from judging.workers import living

NO_ROUND = ""
_CAMPAIGN = Subquery(Campaign.objects.filter(slug=Slot("slug")).order_by().values("pk")[:1])


def _round() -> QuerySet[Round, tuple[object, ...]]:
    sets = EstimateSet.objects.filter(round=OuterRef("pk")).order_by("-number")
    entries = AuditEntry.objects.filter(campaign=OuterRef("campaign")).order_by("-pk")
    row = Round.objects.filter(campaign=_CAMPAIGN, number=Slot("number")).order_by()
    told = row.annotate(
        ended=Cast("stopping", TextField()),
        latest=Subquery(sets.values("number")[:1]),
        said=Subquery(entries.values("pk")[:1]),
    )
    return told.values_list("pk", "state", "campaign__state", "ended", "latest", "said")


def _jobs() -> QuerySet[Job]:
    rounds = Round.objects.filter(campaign=_CAMPAIGN, number=Slot("number"))
    return Job.objects.filter(kind__in=SHOWN, target__in=rounds.values("pk"))


_SERVES = Q(queues="") | Q(queues__contains=settings.CELERY_TASK_DEFAULT_QUEUE)
VERSION = beside(
    counts(
        lambda: Batch.objects.filter(campaign=_CAMPAIGN),
        pairs=Sum("pair_count"),
        remaining=Sum("remaining"),
        **{state: Count("pk", filter=Q(state=state)) for state in Batch.State.values},
    ),
    counts(
        _jobs,
        asked=Sum("requested"),
        answered=Sum("done"),
        tries=Sum("attempts"),
        **{state: Count("pk", filter=Q(state=state)) for state in Job.State.values},
        last=Max("finished"),
    ),
    counts(living, alive=Count("pk"), serving=Count("pk", filter=_SERVES)),
    reads(_round),
)


def of_round(slug: str, number: int) -> str:
    """The version of what the pages of a campaign's round tell; empty if there is no such round."""
    (row,) = VERSION.rows(slug=slug, number=number)
    return told(row)


def told(row: Row) -> str:
    """The same, of a row of `VERSION`."""
    if row[-6] is None:
        return NO_ROUND
    *told, alive, serving = row[:-6]
    parts = (*told, bool(alive), bool(serving), *row[-6:])
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]
