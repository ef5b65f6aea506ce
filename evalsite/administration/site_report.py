"""What the site did in a period: judgments, people, hours, costs, and how far people agreed."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

import numpy as np
from django.db.models import Count, F, Sum

from estimation.models import MachineAnswer
from judging.formats.csvfile import Cell
from judging.labels import PlacedPairs, label_columns
from judging.models import BatchPair, Campaign, Judgment

NANO = 10**9
COLUMNS = (
    "campaign", "name", "state", "judgments", "corrections", "assessors", "hours", "timed",
    "same_grade", "compared", "machine_cost", "people_cost", "currency",
)  # fmt: skip


@dataclass(frozen=True)
class Period:
    """From the first day to the last, both whole, in UTC."""

    since: date
    until: date

    @property
    def begins(self) -> datetime:
        return datetime.combine(self.since, time(), UTC)

    @property
    def ends(self) -> datetime:
        """The last moment of it; the last day of all has no day after it."""
        return datetime.combine(self.until, time.max, UTC)


@dataclass(frozen=True)
class CampaignWork:
    """What was done in a campaign in the period.

    ``judgments``: pairs judged by somebody for the first time; ``corrections`` on top. ``hours``
    are those that assessors took for ``timed`` of the judgments: others did not tell. ``same`` is
    the share of ``compared`` pairs of labels that agree, of all labels that count so far. ``cost``
    is that of the answers of machine judges, in the unit of their endpoints' prices: a request
    without an answer has no day, and a machine judge counts the most that it can have cost.
    """

    campaign: Campaign
    judgments: int
    corrections: int
    assessors: int
    seconds: float
    timed: int
    same: float | None
    compared: int
    cost: float

    @property
    def hours(self) -> float:
        return self.seconds / 3600

    @property
    def people_cost(self) -> float:
        return self.hours * self.campaign.hour_cost

    @property
    def cells(self) -> tuple[Cell, ...]:
        return (
            self.campaign.slug, self.campaign.name, self.campaign.state, self.judgments,
            self.corrections, self.assessors, round(self.hours, 3), self.timed, self.same,
            self.compared, self.cost, round(self.people_cost, 2), self.campaign.currency,
        )  # fmt: skip


@dataclass(frozen=True)
class SiteReport:
    """``created``: campaigns that began in the period; ``assessors``: different people."""

    period: Period
    rows: list[CampaignWork]
    created: int
    assessors: int

    @property
    def judgments(self) -> int:
        return sum(row.judgments for row in self.rows)

    @property
    def corrections(self) -> int:
        return sum(row.corrections for row in self.rows)

    @property
    def hours(self) -> float:
        return sum(row.hours for row in self.rows)

    @property
    def timed(self) -> int:
        return sum(row.timed for row in self.rows)

    @property
    def cost(self) -> float:
        return sum(row.cost for row in self.rows)

    @property
    def people_cost(self) -> dict[str, float]:
        """Of the hours that were told, by currency."""
        found: dict[str, float] = defaultdict(float)
        for row in self.rows:
            if row.people_cost:
                found[row.campaign.currency] += row.people_cost
        return dict(found)

    @property
    def compared(self) -> int:
        return sum(row.compared for row in self.rows)

    @property
    def same(self) -> float | None:
        """Over all campaigns, by comparisons."""
        if not self.compared:
            return None
        return sum((row.same or 0.0) * row.compared for row in self.rows) / self.compared

    def csv_rows(self) -> Iterator[tuple[Cell, ...]]:
        return (row.cells for row in self.rows)


def site_report(period: Period) -> SiteReport:
    """Of campaigns in which something was judged or asked in the period, the busiest first."""
    within = {"created__gte": period.begins, "created__lte": period.ends}
    said = Judgment.objects.filter(**within).order_by()
    own = "assignment__pair__campaign"
    first = _by(said.filter(revision=1).values(own).annotate(n=Count("pk")), own)
    later = _by(said.filter(revision__gt=1).values(own).annotate(n=Count("pk")), own)
    people = _by(said.values(own).annotate(n=Count("assessor", distinct=True)), own)
    timed = said.filter(seconds__isnull=False).values(own)
    took = _by(timed.annotate(n=Sum("seconds")), own)
    known = _by(timed.annotate(n=Count("pk")), own)
    of_judge = "prompt__judge__campaign"
    answers = MachineAnswer.objects.filter(**within).order_by().values(of_judge)
    spent = _by(answers.annotate(n=Sum("cost")), of_judge)
    named = Campaign.objects.in_bulk({*first, *later, *spent})
    agreed = _agreement(list(named))
    rows = [
        CampaignWork(
            campaign=campaign,
            judgments=int(first.get(pk, 0)),
            corrections=int(later.get(pk, 0)),
            assessors=int(people.get(pk, 0)),
            seconds=float(took.get(pk, 0.0)),
            timed=int(known.get(pk, 0)),
            same=agreed[pk][0],
            compared=agreed[pk][1],
            cost=spent.get(pk, 0) / NANO,
        )
        for pk, campaign in named.items()
    ]
    return SiteReport(
        period,
        rows=sorted(rows, key=lambda row: (-row.judgments, row.campaign.slug)),
        created=Campaign.objects.filter(**within).count(),
        assessors=said.aggregate(n=Count("assessor", distinct=True))["n"],
    )


def _by(rows: object, key: str) -> dict[int, float]:
    return dict(rows.values_list(key, "n"))  # type: ignore[attr-defined]


def _agreement(campaigns: list[int]) -> dict[int, tuple[float | None, int]]:
    """Share of equal grades among every two labels of a pair, and how many of these there are."""
    found: dict[int, tuple[float | None, int]] = defaultdict(lambda: (None, 0))
    if not campaigns:  # a query of nothing cannot be compiled
        return found
    twice = BatchPair.objects.filter(pair__campaign__in=campaigns, pair__judged__gte=2)
    columns = twice.annotate(owner=F("pair__campaign"), of=F("pair_id")).distinct()
    labels = label_columns(PlacedPairs.of(columns, "owner", "of"))
    said = ~labels.decided
    owner, pair = (column[said] for column in labels.places)
    grade = labels.grade[said]
    order = np.argsort(pair, kind="stable")
    owner, pair, grade = owner[order], pair[order], grade[order]
    compared: dict[int, int] = defaultdict(int)
    equal: dict[int, int] = defaultdict(int)
    for apart in range(1, int(np.unique(pair, return_counts=True)[1].max(initial=1))):
        at = np.flatnonzero(pair[apart:] == pair[:-apart])
        same = grade[at] == grade[at + apart]
        for campaign in np.unique(owner[at]).tolist():
            own = owner[at] == campaign
            compared[campaign] += int(own.sum())
            equal[campaign] += int(same[own].sum())
    for campaign, number in compared.items():
        found[campaign] = (equal[campaign] / number, number)
    return found
