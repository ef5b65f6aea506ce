"""What the report and the page of labels say, as plain data."""

from dataclasses import dataclass, field

import numpy as np
from django.db.models import Exists, F, OuterRef, QuerySet

from estimation.core.measures.table import parse_measure
from estimation.exclusion_figures import ExclusionFigure, exclusion_figure
from estimation.figures import label_figure
from estimation.label_figures import QualityFigure, quality_figure
from estimation.models import EstimateSet, Round
from estimation.noise_figures import NoiseFigure, noise_figure
from estimation.selectors import (
    Pairwise,
    RankingTable,
    RoundProgress,
    draws_behind,
    label_comparison,
    label_noise,
    label_quality,
    machines_compared,
    measures_of,
    ranking_table,
    round_progress,
)
from judging import selectors as judging
from judging.labels import Column, LabelColumns, PlacedPairs, label_columns
from judging.models import Campaign, Decision, Exclusion, Pair, preference_scale


@dataclass(frozen=True)
class Agreement:
    """How often two assessors of one pair gave the same grade, and how far apart they were."""

    pairs: int
    same: float
    mean_distance: float


@dataclass(frozen=True)
class AssessorFacts:
    """One assessor's labels, and how they stand to those that others gave to the same pairs.

    ``shared`` comparisons with a label of somebody else; ``same`` of them are of one grade, and
    ``above`` is by how many grades the assessor's own are higher on average. ``mean`` grade.
    """

    name: str
    labels: int
    mean: float
    shared: int
    same: float | None
    above: float | None


@dataclass(frozen=True)
class ExcludedWork:
    """Whose work counts nowhere, and why; ``by_rule``: a rule of the organizer found them."""

    who: str
    ground: str
    reason: str
    looks_at_grades: bool
    by_rule: bool

    @property
    def why(self) -> str:
        """The ground, and what must be known of it."""
        rule = "found by a rule" if self.by_rule else ""
        grades = "depends on grades" if self.looks_at_grades else ""
        return "; ".join(filter(None, (self.ground, rule, grades)))


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
    seniors: int
    exclusions: list[ExcludedWork]
    people: list[AssessorFacts]
    without_exclusions: ExclusionFigure | None = None
    quality: QualityFigure | None = None
    noise: NoiseFigure | None = None

    @property
    def scale(self) -> list[dict[str, str]]:
        return scale_of(self.round)

    @property
    def measures(self) -> list[str]:
        return [table.measure for table in self.tables]

    @property
    def guaranteed(self) -> list[str]:
        """Measures whose intervals hold for any sample; the goal's is among them if any is."""
        return [table.measure for table in self.tables if table.guaranteed]

    @property
    def not_guaranteed(self) -> list[str]:
        return [table.measure for table in self.tables if not table.guaranteed]

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
    people: list[AssessorFacts] = field(default_factory=list)


def label_facts(row: Round, shown: EstimateSet) -> LabelFacts:
    scale = scale_of(row)
    drawn = draws_behind(shown).annotate(of=F("pair_id")).distinct()
    placed = PlacedPairs.of(drawn, "of")  # a label counts once, whatever rounds drew its pair
    found = label_columns(placed)
    compared = _Compared.of(found)
    people = _people(found, compared)
    given = found.grade[~found.decided]
    of_decision = draws_behind(shown).filter(pair=OuterRef("pair"))
    return LabelFacts(
        assessors={each.name: each.labels for each in people},
        grades=np.bincount(given, minlength=len(scale)).tolist()[: len(scale)],
        agreement=compared.agreement,
        decided=judging.decisions(row.campaign).filter(Exists(of_decision)).count(),
        scale=scale,
        people=people,
    )


def scale_of(row: Round) -> list[dict[str, str]]:
    """What the grades of the round's judgments mean, from 0 upwards."""
    if parse_measure(row.measure).family == "preference":
        return preference_scale("first", "second")
    grades: list[dict[str, str]] = row.campaign.grades
    return grades


def _pairs_behind(shown: EstimateSet) -> QuerySet[Pair, int]:
    """Row ids of the pairs in the batches that the estimates rest on."""
    drawn = draws_behind(shown).values("pair")
    return Pair.objects.filter(pk__in=drawn).values_list("pk", flat=True)


def report(row: Round, shown: EstimateSet) -> ReportData:
    found = [ranking_table(row, measure, shown) for measure in measures_of(row)]
    tables = [table for table in found if table is not None]
    facts, quality = label_facts(row, shown), quality_of(row, shown)
    pairs = _pairs_behind(shown)
    return ReportData(
        round=row,
        campaign=row.campaign,
        estimate_set=shown,
        tables=tables,
        pairwise=[table.pairs for table in tables if table.pairs is not None],
        progress=round_progress(row),
        pool_pairs=row.pool.pair_count if row.pool else 0,
        assessors=facts.assessors,
        grades=facts.grades,
        agreement=facts.agreement,
        seniors=judging.senior_grades(row.campaign).filter(ended=None, pair__in=pairs).count(),
        decisions=list(judging.decisions(row.campaign).filter(pair__in=pairs)),
        exclusions=excluded_work(row),
        people=facts.people,
        without_exclusions=without_exclusions(row, shown),
        quality=quality,
        noise=noise_of(row, shown, row.measure, quality),
    )


def quality_of(row: Round, shown: EstimateSet) -> QualityFigure | None:
    """How good the labels are that estimates rest on; for the tab, REST and the report."""
    found = label_quality(shown)
    return quality_figure(found, scale_of(row), machines_compared(row)) if found else None


def without_exclusions(row: Round, shown: EstimateSet) -> ExclusionFigure | None:
    """How far the numbers move without the exclusions; for the tab and REST. None without any."""
    return exclusion_figure(label_quality(shown), list(_in_force(row)))


def excluded_work(row: Round) -> list[ExcludedWork]:
    return [
        ExcludedWork(
            who=each.assessor.get_username(),
            ground=each.get_ground_display(),
            reason=each.reason,
            looks_at_grades=each.looks_at_grades,
            by_rule=each.by_rule,
        )
        for each in _in_force(row)
    ]


def _in_force(row: Round) -> QuerySet[Exclusion]:
    return judging.exclusions(row.campaign).filter(ended=None)


def noise_of(
    row: Round, shown: EstimateSet, measure: str, quality: QualityFigure | None
) -> NoiseFigure | None:
    """What people's disagreement adds to intervals; for the tab, REST and the report."""
    shares = label_noise(shown, measure)
    if not shares:
        return None
    compared = label_comparison(shown, measure)
    best = label_figure(compared).best if compared else 0
    return noise_figure(row, shown, measure, shares, quality, best)


@dataclass(frozen=True, eq=False)
class _Compared:
    """Every two labels of one pair: who gave them, and by how much the first grade is higher.

    ``pairs`` have two labels at least.
    """

    first: Column
    second: Column
    higher: Column
    pairs: int

    @classmethod
    def of(cls, found: LabelColumns) -> "_Compared":
        """Without decisions, which are nobody's."""
        said = ~found.decided
        order = np.lexsort((found.assessor[said], found.places[0][said]))
        pair, who, grade = (
            column[said][order] for column in (found.places[0], found.assessor, found.grade)
        )
        number = np.unique(pair, return_counts=True)[1]
        parts = []
        for apart in range(1, int(number.max(initial=1))):  # labels of a pair stand together
            at = np.flatnonzero(pair[apart:] == pair[:-apart])
            parts.append((who[at], who[at + apart], grade[at] - grade[at + apart]))
        empty = np.zeros(0, dtype=np.int64)
        parts.append((empty, empty, empty))
        first, second, higher = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls(first, second, higher, int(np.count_nonzero(number > 1)))

    @property
    def agreement(self) -> Agreement | None:
        """Over all of them; None without any."""
        if not len(self.higher):
            return None
        apart = np.abs(self.higher)
        return Agreement(self.pairs, float(np.mean(apart == 0)), float(np.mean(apart)))


def _people(found: LabelColumns, compared: _Compared) -> list[AssessorFacts]:
    """Everybody who gave a label, by name."""
    size, said = len(found.names), ~found.decided
    labels = np.bincount(found.assessor[said], minlength=size)
    grades = np.bincount(found.assessor[said], weights=found.grade[said], minlength=size)
    both = np.concatenate([compared.first, compared.second])
    higher = np.concatenate([compared.higher, -compared.higher])
    shared = np.bincount(both, minlength=size)
    same = np.bincount(both[higher == 0], minlength=size)
    above = np.bincount(both, weights=higher, minlength=size)
    return [
        AssessorFacts(
            name=found.names[at],
            labels=int(labels[at]),
            mean=float(grades[at] / labels[at]),
            shared=int(shared[at]),
            same=float(same[at] / shared[at]) if shared[at] else None,
            above=float(above[at] / shared[at]) if shared[at] else None,
        )
        for at in np.flatnonzero(labels).tolist()
    ]
