"""One assessor, looked at by an organizer: when they judged, what they gave, and how long it took.

What others said of the same pairs stands beside it. Whether somebody judged too fast is told from
their own times and the length of documents (`conduct`), and never from grades: an exclusion on such
a ground leaves the estimates unbiased.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Case, When
from django.db.models.functions import Coalesce
from django.utils import timezone
from numpy.typing import NDArray

from judging import gold_answers
from judging.accounts import QRELS
from judging.conduct import LEAST_TIMES, Change, ReadingPace, floor, over_time
from judging.labels import EpochSeconds, number_columns
from judging.manners import (
    LATEST,
    UNTOLD,
    Manner,
    by_both_clocks,
    in_all,
    lengths,
    read_at_once,
)
from judging.models import Assignment, Campaign, Exclusion, Judgment, User
from judging.people import Person, people
from judging.selectors import current_judgments
from judging.signals import competence_asked

DAYS = 28
FAR, QUICK_MOST = 10, 20
WHY_UNTOLD = {
    "few": "fewer than 20 of the pairs that count were judged by others too",
    "one": "their pairs have been judged by one other person only",
    "two": "fewer than three people have judged, and two cannot tell who of them is right",
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
    def given(self) -> int:
        return sum(self.theirs)

    @property
    def shared(self) -> int:
        return sum(self.same_pairs)


@dataclass(frozen=True)
class LookedAt:
    """``timed``: judgments of which the time and the length of the text are known; of too few
    nothing is told of haste. ``quick``: the quickest of the ``quick_count`` ones, in full."""

    person: Person
    days: list[JudgedDay]
    grades: GradesGiven
    timed: int
    quick_count: int
    quick: list[Quick]
    apart: list[FarFromOthers]
    change: Change | None
    competence: dict[str, Any] | None
    exclusions: list[Exclusion]
    gold: list[gold_answers.GoldAnswer]

    @property
    def tells_haste(self) -> bool:
        return self.timed >= LEAST_TIMES

    @property
    def untold(self) -> str:
        """Why the model of competence does not tell of them; empty if it does."""
        return WHY_UNTOLD.get(self.competence["untold"], "") if self.competence else ""


@dataclass(frozen=True, eq=False)
class _Theirs:
    """What they gave, a row each in the order of ``pk``.

    ``at``: `EpochSeconds`; ``seconds``: `manners.in_all`; ``length``: characters that were
    to be read, -1 where not all texts are there. ``preference``: so that its answer has no height,
    or gold, which is told of elsewhere. ``others``: how many labels of others there are of the
    pair, ``total`` their sum.
    """

    pk: NDArray[np.int64]
    pair: NDArray[np.int64]
    grade: NDArray[np.int64]
    preference: NDArray[np.bool_]
    at: NDArray[np.float64]
    seconds: NDArray[np.float64]
    length: NDArray[np.float64]
    others: NDArray[np.int64]
    total: NDArray[np.float64]


def look_at(
    campaign: Campaign, user: User, *, kept: Mapping[int, Manner] | None = None
) -> LookedAt:
    """In a fixed number of statements, whatever they judged; ``kept`` as of `people.people`."""
    (person,) = people(campaign, only=user, kept=kept)
    others = _others(campaign, user)
    given = _given(campaign, user, others)
    known = (given.seconds != UNTOLD) & (given.length >= 0)
    every_quick = _quick(given, known)
    quick = dict(itertools.islice(every_quick.items(), QUICK_MOST))
    apart = _apart(given)
    full = _in_full(given.pk[[*quick, *apart]].tolist())
    said = _said(campaign, user, given.pair[apart].tolist())
    return LookedAt(
        person=person,
        days=_days(given),
        grades=_grades(campaign, given, others),
        timed=int(known.sum()),
        quick_count=len(every_quick),
        quick=[Quick(full[int(given.pk[at])], *times) for at, times in quick.items()],
        apart=[
            FarFromOthers(full[pk], said[pair])
            for pk, pair in zip(given.pk[apart].tolist(), given.pair[apart].tolist(), strict=True)
        ],
        change=_change(given),
        competence=_competence(campaign, user),
        exclusions=list(
            campaign.exclusions.filter(assessor=user).select_related("decided_by", "ended_by")
        ),
        gold=gold_answers.answers(campaign, user) if person.gold.answers else [],
    )


def _given(campaign: Campaign, user: User, others: "_Others") -> _Theirs:
    rows = Judgment.objects.filter(assessor=user, assignment__pair__campaign=campaign)
    is_other = Case(
        When(assignment__gold=True, then=1), When(assignment__pair__other="", then=0), default=1
    )
    told = rows.annotate(
        preference=is_other,
        at=EpochSeconds("created"),
        took=Coalesce("seconds", UNTOLD),
        current=Case(When(LATEST, then=1), default=0),
        **lengths(campaign),
    )
    names = ("assignment__pair_id", "at", "took", "current", "grade", "preference", "one", "two")
    pk, pair, at, took, current, *said = number_columns(told, "pk", *names)
    nobody, is_person = np.zeros_like(at), np.full(len(at), user.username != QRELS)
    took = in_all(nobody, pair, by_both_clocks(nobody, pk, at, took, person=is_person))
    order = np.argsort(pk)
    order = order[current[order] > 0]
    pk, pair, at, took, grade, preference, first, second = (
        column[order] for column in (pk, pair, at, took, *said)
    )
    length = read_at_once(first, second)
    count, total = others.of(pair.astype(np.int64))
    return _Theirs(
        pk=pk.astype(np.int64),
        pair=pair.astype(np.int64),
        grade=grade.astype(np.int64),
        preference=preference > 0,
        at=at,
        seconds=took,
        length=length,
        others=count,
        total=total,
    )


@dataclass(frozen=True, eq=False)
class _Others:
    """Labels by others that count, of pairs that they judged: in the order of ``pair``."""

    pair: NDArray[np.int64]
    grade: NDArray[np.int64]

    def of(self, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """How many there are of each pair, and their sum."""
        first = np.searchsorted(self.pair, pairs, side="left")
        last = np.searchsorted(self.pair, pairs, side="right")
        sums = np.concatenate([[0.0], np.cumsum(self.grade)])
        return last - first, sums[last] - sums[first]


def _others(campaign: Campaign, user: User) -> _Others:
    had = Assignment.objects.filter(assessor=user, campaign=campaign).values("pair")
    rows = current_judgments().filter(assignment__pair__in=had).exclude(assessor=user)
    pair, grade = number_columns(rows, "assignment__pair_id", "grade")
    order = np.argsort(pair, kind="stable")
    return _Others(pair[order].astype(np.int64), grade[order].astype(np.int64))


def _in_full(ids: Sequence[int]) -> dict[int, Judgment]:
    rows = Judgment.objects.filter(pk__in=ids)
    return {row.pk: row for row in rows.select_related("assignment__pair__topic", "assessor")}


def _said(campaign: Campaign, user: User, pairs: Sequence[int]) -> dict[int, list[tuple[str, int]]]:
    """What others said of some pairs that counts, by the row id of the pair."""
    given = current_judgments().filter(assignment__pair__in=pairs).exclude(assessor=user)
    said: dict[int, list[tuple[str, int]]] = defaultdict(list)
    columns = ("assignment__pair_id", "assessor__username", "grade")
    for pair, name, grade in given.order_by("assessor__username").values_list(*columns):
        said[pair].append((name, grade))
    return said


def _days(given: _Theirs) -> list[JudgedDay]:
    """Of the last weeks in which they judged, the oldest day first; 0 where they did not."""
    zone = timezone.get_current_timezone()
    counted = Counter(datetime.fromtimestamp(at, zone).date() for at in given.at.tolist())
    if not counted:
        return []
    last = max(counted)
    first = max(min(counted), last - timedelta(days=DAYS - 1))
    length = max((last - first).days + 1, 7)
    every = [last - timedelta(days=before) for before in reversed(range(length))]
    return [JudgedDay(day, counted[day]) for day in every]


def _grades(campaign: Campaign, given: _Theirs, others: _Others) -> GradesGiven:
    """Of ordinary pairs: an answer to a preference is no grade."""
    scale, plain = len(campaign.grades), ~given.preference
    shared = plain & (given.others > 0)
    theirs, same = (np.bincount(given.grade[each], minlength=scale) for each in (plain, shared))
    said = others.grade[np.isin(others.pair, given.pair[shared])]
    counts = (theirs, same, np.bincount(said, minlength=scale))
    return GradesGiven(*(each[:scale].tolist() for each in counts))


def _quick(given: _Theirs, known: NDArray[np.bool_]) -> dict[int, tuple[float, float, bool]]:
    """The rows of quick ones, the quickest first beside what they usually need: `Quick`."""
    rows = np.flatnonzero(known)
    seconds, characters = given.seconds[rows], given.length[rows]
    pace = ReadingPace.of(seconds, characters)
    if pace is None:
        return {}
    usual, nobody = pace.usual(characters), seconds < floor(characters)
    found = np.flatnonzero(pace.too_fast(seconds, characters))
    found = found[np.argsort(seconds[found] / usual[found], kind="stable")]
    columns = (each[found].tolist() for each in (rows, seconds, usual, nobody))
    return {row: (took, need, ever) for row, took, need, ever in zip(*columns, strict=True)}


def _change(given: _Theirs) -> Change | None:
    """From the first judgment to the last. An answer to a preference has no height."""
    times = [each if each != UNTOLD else None for each in given.seconds.tolist()]
    above = given.grade - given.total / np.maximum(given.others, 1)
    has_height = (given.others > 0) & ~given.preference
    heights = zip(above.tolist(), has_height.tolist(), strict=True)
    return over_time(times, [height if known else None for height, known in heights])


def _competence(campaign: Campaign, user: User) -> dict[str, Any] | None:
    """What was found with the latest estimates; None without any, and of who is not in them."""
    answers: Any = competence_asked.send(sender=Campaign, campaign=campaign, username=user.username)
    return next((answer for _, answer in answers if answer), None)


def _apart(given: _Theirs) -> list[int]:
    """Rows that differ most from the mean of others."""
    away = np.abs(given.grade - given.total / np.maximum(given.others, 1))
    away[given.others == 0] = 0.0
    found = np.flatnonzero(away > 0)
    ordered: list[int] = found[np.lexsort((given.pk[found], -away[found]))][:FAR].tolist()
    return ordered
