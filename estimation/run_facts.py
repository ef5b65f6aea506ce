"""What there is to say of one run, for its page and for programs."""

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db.models import Q

from estimation import selectors
from estimation.charts.bars import StackedBar, stacked
from estimation.formats.overlaps import overlaps
from estimation.models import Estimate, EstimateSet, Round, Run
from estimation.numbers import EstimateLine, estimate_lines
from estimation.scales import decimals
from estimation.standing import JudgedSoFar, RoundsAsJudged, ranking_of
from estimation.unknown import is_bounded
from judging.models import Upload

ALIKE = 12
"""So many of the runs that are most alike are shown at once."""


@dataclass(frozen=True)
class RunVersion:
    """An upload that brought the run, or would: ``run`` is what of it takes or took part.

    ``state``: counts, withdrawn, earlier (before any draw), waiting (for somebody to confirm it),
    reading, rejected.
    """

    number: int
    upload: Upload
    run: Run | None
    state: str


@dataclass(frozen=True)
class AlikeRun:
    """``shallow`` and ``deep``: the shares of this run's first 10 and 100 documents of every topic
    that the other one returns there too. ``same``: all of the latter, in the same order."""

    id: int
    tag: str
    withdrawn: bool
    shallow: float
    deep: float
    same: bool


@dataclass(frozen=True)
class CurrentEstimate:
    """What is told of the run in the round shown first."""

    round: Round
    estimate_set: EstimateSet
    line: EstimateLine

    @property
    def bounded(self) -> bool:
        return is_bounded(self.round.measure)

    @property
    def digits(self) -> int:
        """As many decimals as the interval justifies."""
        return decimals((self.line.high - self.line.low) / 2)


@dataclass(frozen=True)
class RunFacts:
    """``is_alone``: the campaign has no other run."""

    run: Run
    upload: Upload
    versions: list[RunVersion]
    standings: list[tuple[JudgedSoFar, StackedBar]]
    is_alone: bool
    estimate: CurrentEstimate | None

    @property
    def team(self) -> str:
        return str(self.upload.about.get("team", ""))

    @property
    def description(self) -> str:
        return str(self.upload.about.get("description", ""))

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The campaign's fields, with what is said of this run."""
        said = self.upload.about.get("fields", {})
        return [(name, said.get(name, "")) for name in self.run.campaign.run_fields]

    @property
    def ir_metadata(self) -> list[tuple[str, str]]:
        """What the head of its file says."""
        return [(name, value) for name, value in self.upload.summary.get("ir_metadata", [])]

    @property
    def waiting(self) -> RunVersion | None:
        """The latest version that waits to be confirmed."""
        found = [each for each in self.versions if each.state == "waiting"]
        return found[-1] if found else None

    @property
    def refused(self) -> RunVersion | None:
        """The last version, if it was rejected."""
        return self.versions[-1] if self.versions[-1].state == "rejected" else None

    @property
    def newer(self) -> RunVersion | None:
        """The version that counts in place of this one."""
        mine = next(each.number for each in self.versions if each.upload.pk == self.upload.pk)
        later = [each for each in self.versions if each.run and each.number > mine]
        return later[-1] if later else None


def run_facts(run: Run) -> RunFacts:
    """All of it, in a number of queries that hangs neither on runs nor on topics."""
    campaign = run.campaign
    every = list(campaign.runs.all())
    standings = RoundsAsJudged(campaign).of(ranking_of(run))
    return RunFacts(
        run=run,
        upload=run.upload,
        versions=_versions(run, every),
        standings=[(each, stacked(each.parts)) for each in standings],
        is_alone=len(every) == 1,
        estimate=current_estimate(run),
    )


def _versions(run: Run, every: list[Run]) -> list[RunVersion]:
    """The uploads that replaced one another, the first of them first."""
    linked = Q(replaces__isnull=False) | Q(replaced_by__isnull=False) | Q(pk=run.upload_id)
    rows = run.campaign.uploads.filter(linked, kind=Upload.Kind.RUN).distinct().order_by("pk")
    uploads = {row.pk: row for row in rows.select_related("created_by").defer("errors", "warnings")}
    brought = {each.upload_id: each for each in every}
    mine, grown = {run.upload_id}, True
    while grown:
        found = {
            pk
            for pk, row in uploads.items()
            if pk in mine or row.replaces_id in mine or _replaced(uploads, pk) & mine
        }
        grown, mine = found != mine, found
    return [
        RunVersion(number, uploads[pk], brought.get(pk), _state(uploads[pk], brought.get(pk)))
        for number, pk in enumerate(sorted(mine), start=1)
    ]


def _replaced(uploads: dict[int, Upload], pk: int) -> set[int]:
    return {row.pk for row in uploads.values() if row.replaces_id == pk}


def _state(upload: Upload, run: Run | None) -> str:
    if run is not None:
        return "withdrawn" if run.withdrawn else "counts"
    states = Upload.State
    told = {states.ACCEPTED: "earlier", states.CHECKED: "waiting", states.REJECTED: "rejected"}
    return told.get(states(upload.state), "reading")


@dataclass(frozen=True)
class AlikeRuns:
    """The other runs, the most alike first."""

    every: list[AlikeRun]

    @property
    def same(self) -> list[AlikeRun]:
        return [each for each in self.every if each.same]

    @property
    def most(self) -> list[AlikeRun]:
        return self.every[:ALIKE]

    @property
    def less(self) -> list[AlikeRun]:
        return self.every[ALIKE:]


def alike_runs(run: Run) -> AlikeRuns:
    """Told apart from the other facts: it takes the files of all runs."""
    others = list(run.campaign.runs.exclude(pk=run.pk))
    root = Path(settings.MEDIA_ROOT)
    paths = tuple(str(root / each.file) for each in others)
    found = overlaps(str(root / run.file), paths)
    rows = [
        AlikeRun(each.pk, each.tag, each.withdrawn is not None, o.shallow, o.deep, o.same)
        for each, o in zip(others, found, strict=True)
    ]
    rows.sort(key=lambda row: (not row.same, -row.deep, -row.shallow, row.tag))
    return AlikeRuns(rows)


def current_estimate(run: Run) -> CurrentEstimate | None:
    row = selectors.current_round(run.campaign)
    shown = selectors.latest_estimates(row) if row and row.is_drawn else None
    if row is None or shown is None:
        return None
    mine = Estimate.objects.filter(
        estimate_set=shown, run=run, measure=row.measure, primary=True
    ).select_related("run")
    lines = estimate_lines(row, shown, mine)
    return CurrentEstimate(row, shown, lines[0]) if lines else None
