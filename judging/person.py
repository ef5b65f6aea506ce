"""One assessor, looked at by an organizer: when they judged, what they gave, and how long it took.

What others said of the same pairs stands beside it. Whether somebody judged too fast is told from
their own times and the length of documents (`conduct`), and never from grades: an exclusion on such
a ground leaves the estimates unbiased.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np
from django.db.models import QuerySet
from django.db.models.functions import Length
from django.utils import timezone

from judging.conduct import LEAST_TIMES, Change, ReadingPace, floor, over_time
from judging.models import Campaign, Exclusion, Judgment, Pair, User
from judging.people import Person, people
from judging.selectors import current_judgments, documents, given_judgments
from judging.signals import competence_asked

DAYS = 28
FAR = 10
UNTOLD = {
    "few": "fewer than 20 of the pairs that count were judged by others too",
    "one": "their pairs have been judged by one other person only",
    "two": "only two people have judged, and two cannot tell who of them is right",
}
"""Why nothing is told of somebody's competence."""
QUICK_SHOWN = 10


class JudgedDay(NamedTuple):
    day: date
    judged: int


@dataclass(frozen=True)
class Quick:
    """A judgment that took ``seconds``, where they usually need ``usual`` for so long a text.

    ``nobody``: no reader is so fast, whoever it is.
    """

    judgment: Judgment
    seconds: float
    usual: float
    nobody: bool = False


@dataclass(frozen=True)
class FarFromOthers:
    """A pair of which they differ from the mean of ``others``."""

    judgment: Judgment
    others: list[tuple[str, int]]

    @property
    def difference(self) -> float:
        return self.judgment.grade - sum(grade for _, grade in self.others) / len(self.others)


@dataclass(frozen=True)
class GradesGiven:
    """How often each grade was given by them and, of the same pairs, by others."""

    theirs: list[int]
    same_pairs: list[int]
    others: list[int]

    @property
    def shared(self) -> int:
        return sum(self.same_pairs)


@dataclass(frozen=True)
class LookedAt:
    """``timed``: judgments of which the time and the length of the text are known; of too few
    nothing is told of haste."""

    person: Person
    days: list[JudgedDay]
    grades: GradesGiven
    timed: int
    quick: list[Quick]
    apart: list[FarFromOthers]
    change: Change | None
    competence: dict[str, Any] | None
    exclusions: list[Exclusion]

    @property
    def tells_haste(self) -> bool:
        return self.timed >= LEAST_TIMES

    @property
    def untold(self) -> str:
        """Why the model of competence does not tell of them; empty if it does."""
        return UNTOLD.get(self.competence["untold"], "") if self.competence else ""


def look_at(campaign: Campaign, user: User) -> LookedAt:
    """In a fixed number of statements, whatever they judged."""
    (person,) = people(campaign, only=user)
    rows = list(_given(campaign, user))
    said = _others(rows, user)
    timed = _timed(campaign, rows)
    return LookedAt(
        person=person,
        days=_days(rows),
        grades=_grades(campaign, rows, said),
        timed=len(timed),
        quick=_quick(timed),
        apart=_apart(rows, said),
        change=_change(rows, said),
        competence=_competence(campaign, user),
        exclusions=list(
            campaign.exclusions.filter(assessor=user).select_related("decided_by", "ended_by")
        ),
    )


def _competence(campaign: Campaign, user: User) -> dict[str, Any] | None:
    """What was found with the latest estimates; None without any, and of who is not in them."""
    answers: Any = competence_asked.send(sender=Campaign, campaign=campaign, username=user.username)
    return next((answer for _, answer in answers if answer), None)


def _given(campaign: Campaign, user: User) -> QuerySet[Judgment]:
    rows = given_judgments().filter(assessor=user, assignment__pair__campaign=campaign)
    return rows.select_related("assignment__pair__topic").order_by("pk")


def _others(rows: Sequence[Judgment], user: User) -> dict[int, list[tuple[str, int]]]:
    """What others said that counts, by the row id of the pair."""
    pairs = Pair.objects.filter(assignments__judgments__in=[row.pk for row in rows])
    given = current_judgments().filter(assignment__pair__in=pairs).exclude(assessor=user)
    said: dict[int, list[tuple[str, int]]] = defaultdict(list)
    columns = ("assignment__pair_id", "assessor__username", "grade")
    for pair, name, grade in given.order_by("assessor__username").values_list(*columns):
        said[pair].append((name, grade))
    return said


def _days(rows: Sequence[Judgment]) -> list[JudgedDay]:
    """Of the last weeks in which they judged, the oldest day first; 0 where they did not."""
    counted = Counter(timezone.localdate(row.created) for row in rows)
    if not counted:
        return []
    last = max(counted)
    first = max(min(counted), last - timedelta(days=DAYS - 1))
    length = max((last - first).days + 1, 7)
    every = [last - timedelta(days=before) for before in reversed(range(length))]
    return [JudgedDay(day, counted[day]) for day in every]


def _grades(
    campaign: Campaign, rows: Sequence[Judgment], said: dict[int, list[tuple[str, int]]]
) -> GradesGiven:
    """Of ordinary pairs: an answer to a preference is no grade."""
    scale = range(len(campaign.grades))
    plain = [row for row in rows if not row.assignment.pair.other]
    shared = [row for row in plain if said.get(row.assignment.pair_id)]
    theirs, same = (Counter(row.grade for row in each) for each in (plain, shared))
    others = Counter(g for row in shared for _, g in said[row.assignment.pair_id])
    return GradesGiven(*([each[grade] for grade in scale] for each in (theirs, same, others)))


def _timed(campaign: Campaign, rows: Sequence[Judgment]) -> list[tuple[Judgment, float, int]]:
    """Judgments with seconds and the number of characters that were to be read."""
    names = {name for row in rows for name in _documents(row)}
    texts = documents(campaign).filter(docno__in=names)
    lengths = dict(texts.annotate(length=Length("text")).values_list("docno", "length"))
    return [
        (row, row.seconds, sum(lengths[name] for name in _documents(row)))
        for row in rows
        if row.seconds is not None and all(name in lengths for name in _documents(row))
    ]


def _documents(row: Judgment) -> list[str]:
    pair = row.assignment.pair
    return [name for name in (pair.docno, pair.other) if name]


def _quick(timed: Sequence[tuple[Judgment, float, int]]) -> list[Quick]:
    """The quickest first, beside what they usually need."""
    seconds, characters = (np.array([each[at] for each in timed], float) for at in (1, 2))
    pace = ReadingPace.of(seconds, characters)
    if pace is None:
        return []
    usual, least = pace.usual(characters), floor(characters)
    found = [
        Quick(timed[at][0], timed[at][1], float(usual[at]), bool(seconds[at] < least[at]))
        for at in np.flatnonzero(pace.too_fast(seconds, characters)).tolist()
    ]
    return sorted(found, key=lambda each: each.seconds / each.usual)


def _change(rows: Sequence[Judgment], said: dict[int, list[tuple[str, int]]]) -> Change | None:
    """From the first judgment to the last. An answer to a preference has no height."""
    apart = [
        row.grade - sum(grade for _, grade in others) / len(others)
        if (others := said.get(row.assignment.pair_id)) and not row.assignment.pair.other
        else None
        for row in rows
    ]
    return over_time([row.seconds for row in rows], apart)


def _apart(rows: Sequence[Judgment], said: dict[int, list[tuple[str, int]]]) -> list[FarFromOthers]:
    found = [
        FarFromOthers(row, said[row.assignment.pair_id])
        for row in rows
        if said.get(row.assignment.pair_id)
    ]
    found = [each for each in found if each.difference]
    return sorted(found, key=lambda each: (-abs(each.difference), each.judgment.pk))[:FAR]
