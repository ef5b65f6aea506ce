"""What the report and the page of labels say, as plain data."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from django.db.models import QuerySet

from estimation.core.measures.table import parse_measure
from estimation.models import EstimateSet, Round
from estimation.selectors import (
    Pairwise,
    RankingTable,
    RoundProgress,
    draws_behind,
    measures_of,
    ranking_table,
    round_progress,
)
from judging import selectors as judging
from judging.models import Campaign, Decision, Exclusion, Pair, preference_scale


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
    exclusions: list[Exclusion]

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


def label_facts(row: Round, shown: EstimateSet) -> LabelFacts:
    pairs = _pairs_behind(shown)
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


def _pairs_behind(shown: EstimateSet) -> QuerySet[Pair, int]:
    """Row ids of the pairs in the batches that the estimates rest on."""
    drawn = draws_behind(shown).values("pair")
    return Pair.objects.filter(pk__in=drawn).values_list("pk", flat=True)


def report(row: Round, shown: EstimateSet) -> ReportData:
    found = [ranking_table(row, measure, shown) for measure in measures_of(row)]
    tables = [table for table in found if table is not None]
    facts = label_facts(row, shown)
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
        decisions=list(judging.decisions(row.campaign).filter(pair__in=pairs)),
        exclusions=list(judging.exclusions(row.campaign).filter(ended=None)),
    )


def agreement(labels: Sequence[judging.GivenLabel]) -> Agreement | None:
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
