"""How fast a campaign is judged: first answers by day, and how long the rest takes at that pace."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.db.models import Count, QuerySet
from django.utils import timezone

from judging.clock import seconds_from_now
from judging.models import Assignment, Campaign
from judging.statements import Slot, Statement, beside, counts, reads, renamed

WINDOW = 7
"""Days whose judgments make the pace."""
DAY = 86_400.0


@dataclass(frozen=True)
class Pace:
    """``judged`` in the last `WINDOW` days, since ``first`` of them; ``latest`` of all."""

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
        """How long nobody has judged; None if nobody ever did."""
        return None if self.latest is None else self.now - self.latest

    def days_for(self, judgments: float) -> float | None:
        """Days that so many more judgments take; None where nobody has judged lately."""
        return judgments / self.per_day if self.per_day else None


def pace(campaign: Campaign) -> Pace:
    """One statement. Answers of assessors count once, whether corrected since or not."""
    ((judged, first, latest),) = _LATELY.rows(campaign=campaign.pk)
    return Pace(judged, first, latest, now=timezone.now())


def _ever() -> QuerySet[Assignment]:
    return _judged(Slot("campaign"))


def _lately() -> QuerySet[Assignment]:
    return _ever().filter(created__gte=seconds_from_now(-WINDOW * DAY))


def _end(rows: Callable[[], QuerySet[Assignment]], order: str) -> Statement:
    """The first or the last of them: an index ends with it, so that no other is looked at."""
    return reads(lambda: rows().order_by(order).values_list("created")[:1])


_LATELY = beside(
    counts(_lately, judged=Count("pk")), _end(_lately, "created"), _end(_ever, "-created")
)


def by_day(campaign: Campaign, days: int = 14) -> Sequence[tuple[date, int]]:
    """Judgments of each of the last days, the oldest first; 0 where there was none."""
    today = timezone.localdate()
    every = [today - timedelta(days=before) for before in reversed(range(days))]
    begins = [timezone.make_aware(datetime.combine(day, time())) for day in every]
    begins.append(begins[-1] + timedelta(days=2))  # of today, all that came since it began
    edges = {f"day{number}": begin for number, begin in enumerate(begins)}
    (found,) = _of_days(days).rows(campaign=campaign.pk, **edges)
    return list(zip(every, found, strict=True))


def _between() -> QuerySet[Assignment]:
    created = Assignment._meta.get_field("created")
    return _ever().filter(created__gte=Slot("begin", created), created__lt=Slot("end", created))


_BETWEEN = counts(_between, judged=Count("pk"))


@functools.cache
def _of_days(days: int) -> Statement:
    """A number for each, from an index alone."""
    return beside(
        *(renamed(_BETWEEN, begin=f"day{number}", end=f"day{number + 1}") for number in range(days))
    )


def _judged(campaign: Campaign | Slot) -> QuerySet[Assignment]:
    """Of pairs that were drawn: gold brings nobody nearer to the end."""
    mine = Assignment.objects.filter(campaign=campaign, gold=False)
    return mine.filter(state=Assignment.State.JUDGED)
