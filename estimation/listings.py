"""Lists of runs, report files, and of values batch by batch, for pages and answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from estimation.core.sampling.methods import SAMPLING_METHODS
from estimation.models import Estimate, EstimateSet, Report, Round, Run
from estimation.selectors import complete_batches
from judging.models import Campaign


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
    about: dict[str, Any]

    @property
    def team(self) -> str:
        return str(self.about.get("team", ""))


def runs_of(campaign: Campaign) -> list[ListedRun]:
    shown = (
        "pk", "tag", "topic_count", "line_count", "upload__warning_count", "upload_id", "withdrawn",
        "created", "upload__about",
    )  # fmt: skip
    rows = Run.objects.filter(campaign=campaign).values_list(*shown)
    return [ListedRun(*row) for row in rows]


@dataclass(frozen=True)
class ShownResult:
    """The result of a drawn round: its own, or together with the rounds in ``earlier``.

    ``measure`` is that of its goal; ``known`` tells whether there are estimates yet; ``counting``
    are the earlier rounds that were planned to count with it, whether a batch is complete or not.
    One that ``goes_on`` has what they count for from its draw, and waits for no batch of theirs.
    """

    number: int
    measure: str
    earlier: tuple[int, ...]
    known: bool
    counting: tuple[int, ...] = ()
    goes_on: bool = False

    @property
    def name(self) -> str:
        """Which rounds it tells of."""
        if not self.earlier:
            return f"Round {self.number}"
        numbers = [*self.earlier, self.number]
        in_a_row = numbers == list(range(numbers[0], numbers[-1] + 1))
        named = f"{numbers[0]} to {numbers[-1]}" if in_a_row and len(numbers) > 2 else None
        return f"Rounds {named or listed(numbers)} together"

    @property
    def without(self) -> str:
        """Rounds that are to count and tell nothing yet, or no more; empty where all do."""
        missing = [number for number in self.counting if number not in self.earlier]
        if not missing or not self.known or self.goes_on:
            return ""
        name = f"round{'' if len(missing) == 1 else 's'} {listed(missing)}"
        return f"without {name}, of which no batch is complete"


def listed(numbers: list[int]) -> str:
    return " and ".join(filter(None, (", ".join(map(str, numbers[:-1])), str(numbers[-1]))))


def results_of(campaign: Campaign) -> list[ShownResult]:
    """Of every drawn round, the latest first, in one query.

    Which rounds count together was chosen when they were planned, and is not chosen by who looks:
    estimates over rounds of whose numbers somebody has picked the best would not be unbiased.
    """
    sets = EstimateSet.objects.filter(round=OuterRef("pk")).order_by("-number")
    rows = Round.objects.filter(campaign=campaign).exclude(state__in=Round.NOT_DRAWN)
    told = rows.annotate(
        number_of_set=Subquery(sets.values("number")[:1]),
        together=Subquery(sets.values("earlier")[:1]),
    )
    columns = (
        "number", "measure", "together", "number_of_set", "preview__earlier__counting", "method",
    )  # fmt: skip
    return [
        ShownResult(
            number,
            measure,
            tuple(sorted(map(int, earlier or {}))),
            known is not None,
            tuple(counting or ()),
            SAMPLING_METHODS[method].draws == "batches",
        )
        for number, measure, earlier, known, counting, method in (
            told.order_by("-number").values_list(*columns)
        )
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


def _sets_by_batch(row: Round) -> dict[int, int]:
    """The last set of every number of batches, as far as they are complete still."""
    shown = row.estimate_sets.filter(batches__lte=complete_batches(row))
    return dict(shown.order_by("number").values_list("batches", "pk"))


def _by_batch(row: Round, measure: str) -> QuerySet[Estimate]:
    """Of the last set of every number of batches."""
    sets = _sets_by_batch(row)
    return Estimate.objects.filter(estimate_set__in=sets.values(), measure=measure, primary=True)


def history(row: Round, measure: str | None = None) -> dict[str, list[HistoryPoint]]:
    """Per run its estimates batch by batch."""
    rows = _by_batch(row, measure or row.measure)
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
    sets = _sets_by_batch(row)
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
