"""Reads of rounds and their numbers, as plain data: one shape for page, REST answer and report."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import Count, Q, QuerySet, Sum
from numpy.typing import NDArray

from estimation.core.archives import read_archive
from estimation.core.measures import parse_measure
from estimation.models import Draw, Estimate, EstimateSet, Report, Round, RoundBatch, Run
from judging import selectors as judging
from judging.models import Batch, Campaign, Decision, Job, Pair, preference_scale

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
        """Whether it joined after the draw with documents that could not be drawn."""
        return self.late and self.support < 1.0


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


@dataclass(frozen=True)
class Agreement:
    """How often two assessors of one pair gave the same grade, and how far apart they were."""

    pairs: int
    same: float
    mean_distance: float


@dataclass(frozen=True)
class ReportData:
    """What the report says, from one estimate set."""

    round: Round
    campaign: Campaign
    estimate_set: EstimateSet
    tables: list[RankingTable]
    pairwise: list[Pairwise]
    progress: RoundProgress
    pool_pairs: int
    assessors: dict[str, int]
    grades: list[int]
    agreement: Agreement | None
    decisions: list[Decision]

    @property
    def scale(self) -> list[dict[str, str]]:
        return scale_of(self.round)

    @property
    def is_of_preferences(self) -> bool:
        return parse_measure(self.round.measure).family == "preference"


@dataclass(frozen=True)
class LabelFacts:
    """What assessors said of the pairs that estimates rest on; ``decided`` by the organizer."""

    assessors: dict[str, int]
    grades: list[int]
    agreement: Agreement | None
    decided: int
    scale: list[dict[str, str]]


def label_facts(row: Round, shown: EstimateSet) -> LabelFacts:
    pairs = _pairs_behind(row, shown)
    said = [label for label in judging.labels(pairs) if not label.decided]
    counts = Counter(label.grade for label in said)
    return LabelFacts(
        assessors=dict(sorted(Counter(label.assessor for label in said).items())),
        grades=[counts[grade] for grade in range(len(scale_of(row)))],
        agreement=agreement(said),
        decided=judging.decisions(row.campaign).filter(pair__in=pairs).count(),
        scale=scale_of(row),
    )


def scale_of(row: Round) -> list[dict[str, str]]:
    """What the grades of the round's judgments mean, from 0 upwards."""
    if parse_measure(row.measure).family == "preference":
        return preference_scale("first", "second")
    grades: list[dict[str, str]] = row.campaign.grades
    return grades


def _pairs_behind(row: Round, shown: EstimateSet) -> QuerySet[Pair, int]:
    """Row ids of the pairs in the batches that the estimates rest on."""
    draws = Draw.objects.filter(round=row, batch_number__lte=shown.batches)
    return Pair.objects.filter(pk__in=draws.values("pair")).values_list("pk", flat=True)


def report(row: Round, shown: EstimateSet) -> ReportData:
    tables = [ranking_table(row, measure, shown) for measure in measures_of(row)]
    facts = label_facts(row, shown)
    pairs = _pairs_behind(row, shown)
    return ReportData(
        round=row,
        campaign=row.campaign,
        estimate_set=shown,
        tables=[table for table in tables if table is not None],
        pairwise=[pairwise(shown, measure) for measure in measures_of(row)],
        progress=round_progress(row),
        pool_pairs=row.pool.pair_count if row.pool else 0,
        assessors=facts.assessors,
        grades=facts.grades,
        agreement=facts.agreement,
        decisions=list(judging.decisions(row.campaign).filter(pair__in=pairs)),
    )


def agreement(labels: Sequence[judging.LabelRow]) -> Agreement | None:
    """Over all pairs of assessors of the same (topic, document) pair; None without any."""
    grades: dict[int, list[int]] = {}
    for label in labels:
        grades.setdefault(label.pair, []).append(label.grade)
    distances = [abs(a - b) for given in grades.values() for a, b in combinations(given, 2)]
    if not distances:
        return None
    return Agreement(
        pairs=sum(len(given) > 1 for given in grades.values()),
        same=distances.count(0) / len(distances),
        mean_distance=sum(distances) / len(distances),
    )
