"""Lists of runs, rounds, report files, and of values batch by batch, for pages and answers."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, QuerySet, Sum

from estimation.core.inference.unknown import Reason
from estimation.models import Estimate, EstimateSet, Report, Round, Run
from estimation.selectors import rounds_of
from judging.models import Batch, Campaign


@dataclass(frozen=True)
class ListedRun:
    id: int
    tag: str
    topics: int
    lines: int
    warnings: int
    upload: int
    withdrawn: datetime | None
    created: datetime


def runs_of(campaign: Campaign) -> list[ListedRun]:
    shown = (
        "pk", "tag", "topic_count", "line_count", "upload__warning_count", "upload_id", "withdrawn",
        "created",
    )  # fmt: skip
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
    made = Report.objects.filter(estimate_set__round=row, refused="")
    reports = made.select_related("estimate_set")
    return reports.defer("estimate_set__provenance").order_by("-estimate_set__number", "name")


def refused_reports(shown: EstimateSet) -> list[Report]:
    """The files that there are not of these estimates, each with why."""
    return list(shown.reports.exclude(refused="").order_by("name"))


@dataclass(frozen=True)
class HistoryPoint:
    """``value`` is None where it was not known."""

    batches: int
    pairs: int
    value: float | None
    low: float
    high: float


def ever_known(row: Round, measure: str) -> set[str]:
    """The runs whose value was known after some batch."""
    known = _by_batch(row, measure).filter(unknown=Reason.KNOWN)
    tags = Run.objects.filter(pk__in=known.values("run")).values_list("tag", flat=True)
    return set(tags)


def _by_batch(row: Round, measure: str) -> QuerySet[Estimate]:
    """Of the last set of every number of batches."""
    sets = dict(row.estimate_sets.order_by("number").values_list("batches", "pk"))
    return Estimate.objects.filter(estimate_set__in=sets.values(), measure=measure, primary=True)


def history(
    row: Round, measure: str | None = None, runs: Collection[str] | None = None
) -> dict[str, list[HistoryPoint]]:
    """Per run its estimates batch by batch; of all runs, or of those named."""
    rows = _by_batch(row, measure or row.measure)
    if runs is not None:
        rows = rows.filter(run__tag__in=runs)
    estimates = rows.order_by("run__tag", "estimate_set__batches").values_list(
        *("run__tag", "estimate_set__batches", "estimate_set__pair_count"),
        *("unknown", "value", "low", "high"),
    )
    points: dict[str, list[HistoryPoint]] = {}
    for tag, batches, pairs, unknown, value, low, high in estimates:
        point = HistoryPoint(batches, pairs, None if unknown else value, low, high)
        points.setdefault(tag, []).append(point)
    return points


@dataclass(frozen=True)
class RaceMoment:
    """Who may have been the best after a number of batches: nobody was surely better."""

    batches: int
    pairs: int
    runs: list[str]


def race(row: Round) -> list[RaceMoment]:
    """Who was still in the race, batch by batch, under the measure of the round."""
    sets = dict(row.estimate_sets.order_by("number").values_list("batches", "pk"))
    found = (
        Estimate.objects.filter(
            estimate_set__in=sets.values(), measure=row.measure, primary=True, rank_low=1
        )
        .order_by("estimate_set__batches", "rank", "run__tag")
        .values_list("estimate_set__batches", "estimate_set__pair_count", "run__tag")
    )
    moments: dict[int, RaceMoment] = {}
    for batches, pairs, tag in found:
        moments.setdefault(batches, RaceMoment(batches, pairs, [])).runs.append(tag)
    return list(moments.values())
