"""Lists of runs, rounds and report files, for pages and answers."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, QuerySet, Sum

from estimation.models import Report, Round, Run
from estimation.selectors import rounds_of
from judging.models import Batch, Campaign


@dataclass(frozen=True)
class ListedRun:
    tag: str
    topics: int
    lines: int
    warnings: int
    upload: int
    created: datetime


def runs_of(campaign: Campaign) -> list[ListedRun]:
    shown = ("tag", "topic_count", "line_count", "upload__warning_count", "upload_id", "created")
    rows = Run.objects.filter(campaign=campaign).values_list(*shown)
    return [ListedRun(*row) for row in rows]


@dataclass(frozen=True)
class ListedRound:
    """A round with how much of it is judged, for lists."""

    round: Round
    batches: int
    complete: int
    pairs: int
    finished: int


def round_rows(campaign: Campaign) -> list[ListedRound]:
    """All rounds of the campaign, latest first, in one query."""
    started = Q(round_batches__batch__state__in=[Batch.State.OPEN, Batch.State.COMPLETE])
    rows = (
        rounds_of(campaign)
        .annotate(
            batch_count=Count("round_batches"),
            complete=Count("pk", filter=Q(round_batches__batch__state=Batch.State.COMPLETE)),
            pairs=Sum("round_batches__batch__pair_count"),
            served=Sum("round_batches__batch__pair_count", filter=started),
            left=Sum("round_batches__batch__remaining", filter=started),
        )
        .defer("preview", "provenance")
    )
    return [
        ListedRound(
            row, row.batch_count, row.complete, row.pairs or 0, (row.served or 0) - (row.left or 0)
        )
        for row in rows.order_by("-number")
    ]


def reports_of(row: Round) -> QuerySet[Report]:
    """The round's report files, those of the latest estimates first."""
    reports = Report.objects.filter(estimate_set__round=row).select_related("estimate_set")
    return reports.defer("estimate_set__provenance").order_by("-estimate_set__number", "name")
