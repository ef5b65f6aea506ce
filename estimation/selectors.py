"""Reads of rounds and their numbers, as plain data: one shape for page, REST answer and report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import Count, Q, QuerySet, Sum
from numpy.typing import NDArray

from estimation.core.archives import read_archive
from estimation.models import Draw, Estimate, EstimateSet, Report, Round, RoundBatch, Run
from judging import selectors as judging
from judging.models import Batch, Campaign, Job

MATRICES_FORMAT = "evalsite-matrices-1"


def complete_batches(row: Round) -> int:
    """Complete batches in a row from the first: the prefix that estimates rest on."""
    states = row.round_batches.order_by("number").values_list("batch__state", flat=True)
    count = 0
    for state in states:
        if state != Batch.State.COMPLETE:
            break
        count += 1
    return count


def draws_of(campaign: Campaign, batches: Mapping[int, int]) -> QuerySet[Draw]:
    """What was drawn in the first batches of rounds, by their numbers.

    A pair that several of the rounds drew is there several times.
    """
    wanted = Q(pk__in=[])
    for number, last in batches.items():
        wanted |= Q(round__number=number, batch_number__lte=last)
    return Draw.objects.filter(wanted, round__campaign=campaign)


def draws_behind(shown: EstimateSet) -> QuerySet[Draw]:
    """What was drawn in the batches that estimates rest on."""
    return draws_of(shown.round.campaign, shown.all_batches)


def rounds_of(campaign: Campaign) -> QuerySet[Round]:
    return Round.objects.filter(campaign=campaign).select_related("run", "baseline", "pool")


def current_round(campaign: Campaign) -> Round | None:
    """The round that pages show when none is named: the last drawn one, else the last."""
    drawn = rounds_of(campaign).exclude(state=Round.State.DRAFTED)
    return drawn.order_by("-number").first() or rounds_of(campaign).order_by("-number").first()


@dataclass(frozen=True)
class RoundBatchProgress:
    number: int
    state: str
    pairs: int
    finished: int
    opened: datetime | None
    completed: datetime | None


@dataclass(frozen=True)
class RoundProgress:
    """How far a round is, and whether its numbers are up to date."""

    batches: list[RoundBatchProgress]
    used: int
    pairs: int
    finished: int
    stuck: int
    workers: int
    recompute: Job | None

    @property
    def complete(self) -> int:
        return sum(batch.state == Batch.State.COMPLETE for batch in self.batches)


def round_progress(row: Round) -> RoundProgress:
    links = (
        RoundBatch.objects.filter(round=row).order_by("number").values_list("number", "batch_id")
    )
    numbers = {batch_id: number for number, batch_id in links}
    batches = [
        RoundBatchProgress(
            numbers[batch.id],
            batch.state,
            batch.pairs,
            batch.finished,
            batch.opened,
            batch.completed,
        )
        for batch in judging.batch_progress(row.campaign, numbers)
    ]
    return RoundProgress(
        batches=batches,
        used=complete_batches(row),
        pairs=sum(batch.pairs for batch in batches),
        finished=sum(batch.finished for batch in batches),
        stuck=len(judging.stuck_pairs(row.campaign)),
        workers=judging.workers_alive(),
        recompute=judging.job_of("recompute", row.pk),
    )


@dataclass(frozen=True)
class RankedRun:
    """A row of the ranking. ``moved``: ranks gained since the estimates before (None: new)."""

    tag: str
    rank: int
    rank_low: int
    rank_high: int
    value: float
    se: float
    low: float
    high: float
    support: float
    sample_size: float
    estimator: str
    as_good_as_leader: bool
    moved: int | None
    late: bool = False

    @property
    def open_part(self) -> bool:
        """Whether documents that count for it could not be drawn."""
        return self.support < 1.0


@dataclass(frozen=True)
class RankingTable:
    """The runs in order of estimate under one measure, from one estimate set."""

    round: Round
    estimate_set: EstimateSet
    measure: str
    measures: list[str]
    rows: list[RankedRun]

    @property
    def supported(self) -> bool:
        """Whether the sample covers all weight of all runs: if not, values are lower bounds."""
        return all(row.support >= 1.0 for row in self.rows)

    @property
    def interval(self) -> str:
        """The kind of the intervals, verdicts and possible ranks."""
        kind: str = self.estimate_set.intervals.get(self.measure, Round.Interval.STUDENT)
        return kind

    @property
    def interval_name(self) -> str:
        """Who it is called after."""
        return str(Round.Interval(self.interval).label).partition(":")[0]

    @property
    def guaranteed(self) -> bool:
        """Whether they hold for any sample, and not only about."""
        return self.interval != Round.Interval.STUDENT

    @property
    def late(self) -> list[RankedRun]:
        return [row for row in self.rows if row.late]


def latest_estimates(row: Round) -> EstimateSet | None:
    return row.estimate_sets.order_by("-number").first()


def measures_of(row: Round) -> list[str]:
    return [row.measure, *row.reported]


def ranking_table(
    row: Round, measure: str | None = None, estimate_set: EstimateSet | None = None
) -> RankingTable | None:
    """The ranking by a measure (default: the round's); None before the first batch is complete."""
    shown = estimate_set or latest_estimates(row)
    measure = measure or row.measure
    if shown is None or measure not in measures_of(row):
        return None
    estimates = list(
        Estimate.objects.filter(estimate_set=shown, measure=measure, primary=True)
        .select_related("run")
        .order_by("rank")
    )
    before = _ranks_before(shown, measure)
    tied = _as_good_as_leader(shown, measure, [estimate.run.tag for estimate in estimates])
    rows = [_ranked(estimate, before, tied) for estimate in estimates]
    return RankingTable(row, shown, measure, measures_of(row), rows)


def _ranked(estimate: Estimate, before: dict[int, int], tied: set[str]) -> RankedRun:
    rank = estimate.rank or 0
    earlier = before.get(estimate.run_id)
    return RankedRun(
        tag=estimate.run.tag,
        rank=rank,
        rank_low=estimate.rank_low or 0,
        rank_high=estimate.rank_high or 0,
        value=estimate.value,
        se=estimate.se,
        low=estimate.low,
        high=estimate.high,
        support=estimate.support,
        sample_size=estimate.sample_size,
        estimator=estimate.estimator,
        as_good_as_leader=estimate.run.tag in tied,
        moved=None if earlier is None else earlier - rank,
        late=estimate.late,
    )


def _ranks_before(shown: EstimateSet, measure: str) -> dict[int, int]:
    before = EstimateSet.objects.filter(round=shown.round_id, number=shown.number - 1)
    rows = Estimate.objects.filter(estimate_set__in=before, measure=measure, primary=True)
    return {run: rank or 0 for run, rank in rows.values_list("run_id", "rank")}


def _as_good_as_leader(shown: EstimateSet, measure: str, order: Sequence[str]) -> set[str]:
    """The leader and the runs that are not surely worse than it."""
    if not order:
        return set()
    pairs = pairwise(shown, measure)
    leader = pairs.runs.index(order[0])
    return {
        tag for tag, verdict in zip(pairs.runs, pairs.verdicts[leader], strict=True) if verdict <= 0
    }


@dataclass(frozen=True, eq=False)
class Pairwise:
    """Comparisons of every two runs; rows and columns in the order of ``runs``.

    ``verdicts``: 1 where the row's run is surely better, -1 surely worse, 0 undecided (Holm over
    all pairs). ``margin``: half width of the 95 % interval of one difference taken alone.
    ``by_topic``: what each of ``topics`` (a row) contributes to the runs' values; old estimates
    name none: they are all of the campaign, in the pool's order.
    """

    measure: str
    runs: list[str]
    covariance: NDArray[np.float64]
    margin: NDArray[np.float64]
    adjusted_p: NDArray[np.float64]
    verdicts: NDArray[np.int8]
    by_topic: NDArray[np.float64]
    topics: Sequence[str] = ()


def pairwise(estimate_set: EstimateSet, measure: str) -> Pairwise:
    path = Path(settings.MEDIA_ROOT) / estimate_set.matrices_file
    facts, _ = read_archive(path, MATRICES_FORMAT, ())
    index = facts["measures"].index(measure)
    fields = ("covariance", "margin", "adjusted_p", "verdicts", "by_topic")
    _, arrays = read_archive(path, MATRICES_FORMAT, [f"{name}_{index}" for name in fields])
    matrices = {name: arrays[f"{name}_{index}"] for name in fields}
    return Pairwise(measure, list(facts["runs"]), topics=facts.get("topics", ()), **matrices)


def label_comparison(estimate_set: EstimateSet, measure: str) -> dict[str, Any] | None:
    """What other numbers of labels per pair would give (a `LabelComparison`), where it is known."""
    path = Path(settings.MEDIA_ROOT) / estimate_set.matrices_file
    facts, _ = read_archive(path, MATRICES_FORMAT, ())
    found: dict[str, Any] | None = facts.get("labels", {}).get(measure)
    return found


@dataclass(frozen=True)
class TopicDifference:
    """What one topic contributes to the difference of two runs."""

    topic_id: str
    title: str
    difference: float


@dataclass(frozen=True)
class Comparison:
    """The difference of two runs, first less second."""

    measure: str
    first: RankedRun
    second: RankedRun
    difference: float
    low: float
    high: float
    adjusted_p: float
    verdict: int
    topics: list[TopicDifference]


def compare(table: RankingTable, first: str, second: str) -> Comparison | None:
    """The difference of two runs of a ranking, with its interval; None if there is no such run."""
    rows = {row.tag: row for row in table.rows}
    if first not in rows or second not in rows:
        return None
    pairs = pairwise(table.estimate_set, table.measure)
    i, j = pairs.runs.index(first), pairs.runs.index(second)
    difference, margin = rows[first].value - rows[second].value, float(pairs.margin[i, j])
    return Comparison(
        measure=table.measure,
        first=rows[first],
        second=rows[second],
        difference=difference,
        low=difference - margin,
        high=difference + margin,
        adjusted_p=float(pairs.adjusted_p[i, j]),
        verdict=int(pairs.verdicts[i, j]),
        topics=_by_topic(table.round.campaign, pairs, i, j),
    )


def _by_topic(campaign: Campaign, pairs: Pairwise, i: int, j: int) -> list[TopicDifference]:
    """The topics that contribute to a difference of two runs, the largest first."""
    titles = dict(campaign.topics.values_list("topic_id", "title"))
    topics = pairs.topics or sorted(titles, key=str.encode)
    parts = pairs.by_topic[:, i] - pairs.by_topic[:, j]
    rows = [
        TopicDifference(topic_id, titles[topic_id], part)
        for topic_id, part in zip(topics, parts.tolist(), strict=True)
        if part
    ]
    return sorted(rows, key=lambda row: -abs(row.difference))


@dataclass(frozen=True)
class HistoryPoint:
    batches: int
    pairs: int
    value: float
    low: float
    high: float


def history(row: Round, measure: str | None = None) -> dict[str, list[HistoryPoint]]:
    """Per run its estimates batch by batch (the last set of every number of batches)."""
    last = {s.batches: s.pk for s in row.estimate_sets.order_by("number")}
    estimates = (
        Estimate.objects.filter(
            estimate_set__in=last.values(), measure=measure or row.measure, primary=True
        )
        .select_related("run", "estimate_set")
        .order_by("run__tag", "estimate_set__batches")
    )
    points: dict[str, list[HistoryPoint]] = {}
    for estimate in estimates:
        shown = estimate.estimate_set
        point = HistoryPoint(
            shown.batches, shown.pair_count, estimate.value, estimate.low, estimate.high
        )
        points.setdefault(estimate.run.tag, []).append(point)
    return points


@dataclass(frozen=True)
class RunRow:
    tag: str
    topics: int
    lines: int
    warnings: int
    upload: int
    created: datetime


def runs_of(campaign: Campaign) -> list[RunRow]:
    rows = Run.objects.filter(campaign=campaign).select_related("upload")
    return [
        RunRow(
            run.tag,
            run.topic_count,
            run.line_count,
            run.upload.warning_count,
            run.upload_id,
            run.created,
        )
        for run in rows
    ]


@dataclass(frozen=True)
class RoundRow:
    """A round with how much of it is judged, for lists."""

    round: Round
    batches: int
    complete: int
    pairs: int
    finished: int


def round_rows(campaign: Campaign) -> list[RoundRow]:
    """All rounds of the campaign, latest first, in one query."""
    started = Q(round_batches__batch__state__in=[Batch.State.OPEN, Batch.State.COMPLETE])
    rows = rounds_of(campaign).annotate(
        batch_count=Count("round_batches"),
        complete=Count("pk", filter=Q(round_batches__batch__state=Batch.State.COMPLETE)),
        pairs=Sum("round_batches__batch__pair_count"),
        served=Sum("round_batches__batch__pair_count", filter=started),
        left=Sum("round_batches__batch__remaining", filter=started),
    )
    return [
        RoundRow(
            row, row.batch_count, row.complete, row.pairs or 0, (row.served or 0) - (row.left or 0)
        )
        for row in rows.order_by("-number")
    ]


def reports_of(row: Round) -> QuerySet[Report]:
    """The round's report files, those of the latest estimates first."""
    reports = Report.objects.filter(estimate_set__round=row).select_related("estimate_set")
    return reports.order_by("-estimate_set__number", "name")
