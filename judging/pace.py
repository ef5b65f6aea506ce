"""How fast a campaign is judged: first answers by day, and how long the rest takes at that pace."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

import numpy as np
from django.db.models import Count, Max, Min, QuerySet
from django.utils import timezone

from judging.clock import seconds_from_now
from judging.labels import EpochSeconds, number_columns
from judging.models import Assignment, Campaign

WINDOW = 7
"""Days whose judgments make the pace."""
DAY = 86_400.0
HALF_MILLISECOND = 0.0005
"""`EpochSeconds` of the first moment of a day may be a little below it."""


@dataclass(frozen=True)
class Pace:
    """``judged`` in the last `WINDOW` days, from ``first`` to ``latest`` of them."""

    judged: int
    first: datetime | None
    latest: datetime | None
    now: datetime

    @property
    def per_day(self) -> float:
        """Judgments a day, since the first of the window and over a day at least."""
        if self.first is None:
            return 0.0
        return self.judged / max(1.0, (self.now - self.first).total_seconds() / DAY)

    @property
    def idle(self) -> timedelta | None:
        """How long nobody has judged; None if nobody did in the window."""
        return None if self.latest is None else self.now - self.latest

    def days_for(self, judgments: float) -> float | None:
        """Days that so many more judgments take; None where nobody has judged lately."""
        return judgments / self.per_day if self.per_day else None


def pace(campaign: Campaign) -> Pace:
    """One statement. Answers of assessors count once, whether corrected since or not."""
    lately = _judged(campaign).filter(created__gte=seconds_from_now(-WINDOW * DAY))
    found = lately.aggregate(judged=Count("pk"), first=Min("created"), latest=Max("created"))
    return Pace(**found, now=timezone.now())


def by_day(campaign: Campaign, days: int = 14) -> Sequence[tuple[date, int]]:
    """Judgments of each of the last days, the oldest first; 0 where there was none."""
    today = timezone.localdate()
    every = [today - timedelta(days=before) for before in reversed(range(days))]
    begins = [timezone.make_aware(datetime.combine(day, time())) for day in every]
    rows = _judged(campaign).filter(created__gte=begins[0])
    # by times as numbers: SQLite asks Python for the day of every row
    (at,) = number_columns(rows.annotate(at=EpochSeconds("created")), "at")
    edges = np.array([begin.timestamp() for begin in begins[1:]]) - HALF_MILLISECOND
    counts = np.bincount(np.searchsorted(edges, at, side="right"), minlength=days)
    return list(zip(every, counts.tolist(), strict=True))


def _judged(campaign: Campaign) -> QuerySet[Assignment]:
    """Of pairs that were drawn: gold brings nobody nearer to the end."""
    mine = Assignment.objects.filter(pair__campaign=campaign, gold=False)
    return mine.filter(state=Assignment.State.JUDGED)
