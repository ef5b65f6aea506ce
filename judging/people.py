"""Who judges, and how: figures of each person, from the judgments they have given.

Nothing here hangs on which answers count: work that is excluded is told of like any other, and is
held against answers that count. All is told to organizers alone.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db.models import Case, Count, Exists, F, Max, OuterRef, Q, QuerySet, When
from django.db.models.functions import Coalesce
from numpy.typing import NDArray

from judging.accounts import QRELS
from judging.conduct import Pattern
from judging.habits import SaidOfPair, patterns
from judging.labels import EpochSeconds, number_columns
from judging.models import (
    MAX_GRADE,
    Assignment,
    Batch,
    BatchPair,
    Campaign,
    Exclusion,
    Judgment,
    Membership,
    User,
)

LEAST = 5
"""Judgments, or pairs in common, from which something is told."""
PAUSE = 10 * 60.0
"""Seconds between two judgments after which somebody was away."""
UNTOLD = -1.0
"""In the place of seconds that are not known."""


@dataclass(frozen=True)
class WithOthers:
    """With others, of ``pairs`` that both judged: the share of equal answers, and by how many
    grades they are above others on average (None: preferences, which have no height)."""

    pairs: int
    share: float
    above: float | None


@dataclass(frozen=True)
class Person:
    """A member, or somebody who left and has judged.

    ``left`` are pairs in open batches that they could still judge. ``per_hour`` leaves out pauses
    over ten minutes; it and ``seconds``, the median, are None where too few are known.
    """

    user: User
    roles: dict[str, Membership]
    judged: int = 0
    left: int = 0
    comments: int = 0
    skips: int = 0
    last: datetime | None = None
    per_hour: float | None = None
    seconds: float | None = None
    agreement: WithOthers | None = None
    exclusion: Exclusion | None = None
    patterns: tuple[Pattern, ...] = ()

    @property
    def judges(self) -> bool:
        return Membership.Role.ASSESSOR in self.roles

    @property
    def has_left(self) -> bool:
        return not self.roles

    @property
    def is_invited(self) -> bool:
        """Whether they have never signed in, as they have no password yet."""
        return self.user.is_active and not self.user.has_usable_password()

    @property
    def is_excluded(self) -> bool:
        return self.exclusion is not None

    @property
    def excludable(self) -> bool:
        return self.user.username != QRELS and (self.judges or self.judged > 0)


def known(campaign: Campaign) -> QuerySet[User]:
    """Members, and whoever was given a pair."""
    had = Assignment.objects.filter(assessor=OuterRef("pk"), pair__campaign=campaign)
    member = campaign.memberships.filter(user=OuterRef("pk"))
    return User.objects.filter(Exists(had) | Exists(member)).order_by("username")


def people(campaign: Campaign, *, words: str = "", only: User | None = None) -> list[Person]:
    """By name, in a fixed number of statements whatever their number and that of judgments."""
    roles: dict[int, dict[str, Membership]] = defaultdict(dict)
    for row in campaign.memberships.order_by("role"):
        roles[row.user_id][row.role] = row
    given = _given(campaign)
    counted = _counted(campaign, only, given)
    users = User.objects.filter(pk__in=[only.pk] if only else {*roles, *counted})
    if words:
        users = users.filter(username__icontains=words)
    found = list(users.order_by("username"))
    left, used = _left(campaign)
    paces, agreed = _paces(given), _agreements(given)
    names = dict(known(campaign).values_list("pk", "username"))
    habits = patterns(_orders(given), _shared(given), grades=len(campaign.grades), names=names)
    excluded = {row.assessor_id: row for row in campaign.exclusions.filter(ended=None)}
    none: dict[str, Any] = {}
    told = []
    for user in found:
        judges = Membership.Role.ASSESSOR in roles[user.pk] and user.pk not in excluded
        told.append(
            Person(
                user,
                dict(roles[user.pk]),
                left=max(0, left - used.get(user.pk, 0)) if judges else 0,
                agreement=agreed.get(user.pk),
                exclusion=excluded.get(user.pk),
                patterns=tuple(habits.get(user.pk, ())),
                **counted.get(user.pk, none),
                **paces.get(user.pk, none),
            )
        )
    return told


@dataclass(frozen=True, eq=False)
class _Answers:
    """All judgments of a campaign, a row each, as what is usual is told by all.

    ``at``: `EpochSeconds`; ``seconds`` may be `UNTOLD`. ``current`` ones are the latest of their
    assignments, whether they count or are excluded; ``several``: the pair was to have several
    labels, or has.
    """

    pk: NDArray[np.int64]
    pair: NDArray[np.int64]
    who: NDArray[np.int64]
    grade: NDArray[np.int64]
    at: NDArray[np.float64]
    seconds: NDArray[np.float64]
    first: NDArray[np.bool_]
    current: NDArray[np.bool_]
    counts: NDArray[np.bool_]
    several: NDArray[np.bool_]
    preference: NDArray[np.bool_]
    commented: NDArray[np.bool_]


def _given(campaign: Campaign) -> _Answers:
    rows = Judgment.objects.filter(assignment__pair__campaign=campaign)
    latest = Q(revision=F("assignment__revision")) | Q(revision=F("assignment__set_aside"))
    several = Q(assignment__pair__wanted__gte=2) | Q(assignment__pair__judged__gte=2)
    told = rows.annotate(
        at=EpochSeconds("created"),
        took=Coalesce("seconds", UNTOLD),
        current=_flag(latest),
        counts=_flag(Q(assignment__set_aside=0)),
        several=_flag(several),
        preference=_flag(~Q(assignment__pair__other="")),
        commented=_flag(~Q(comment="")),
    )
    names = ("pk", "assignment__pair_id", "assessor_id", "grade", "at", "took", "revision")
    flags = ("current", "counts", "several", "preference", "commented")
    pk, pair, who, grade, at, took, revision, *said = number_columns(told, *names, *flags)
    return _Answers(
        pk=pk.astype(np.int64),
        pair=pair.astype(np.int64),
        who=who.astype(np.int64),
        grade=grade.astype(np.int64),
        at=at,
        seconds=took,
        first=revision == 1,
        **{name: column > 0 for name, column in zip(flags, said, strict=True)},
    )


def _flag(condition: Q) -> Case:
    return Case(When(condition, then=1), default=0)


def _counted(campaign: Campaign, only: User | None, given: _Answers) -> dict[int, dict[str, Any]]:
    """Of everybody who was given a pair, or of one of them."""
    theirs = Assignment.objects.filter(pair__campaign=campaign).order_by()
    if only is not None:
        theirs = theirs.filter(assessor=only)
    said = Q(state=Assignment.State.JUDGED) | Q(set_aside__gte=1)
    skipped = Q(state=Assignment.State.SKIPPED) | Q(
        state=Assignment.State.EXCLUDED, set_aside=0, skip_reason__gt=""
    )
    rows = theirs.values("assessor").annotate(
        judged=Count("pk", filter=said), skips=Count("pk", filter=skipped), last=Max("changed")
    )
    comments = Counter(given.who[given.current & given.commented].tolist())
    return {
        row["assessor"]: {
            "judged": row["judged"],
            "skips": row["skips"],
            "last": row["last"],
            "comments": comments[row["assessor"]],
        }
        for row in rows
    }


def _left(campaign: Campaign) -> tuple[int, dict[int, int]]:
    """Free pairs of open batches, and how many of these each person has had already."""
    asked = BatchPair.objects.filter(
        batch__campaign=campaign, batch__state=Batch.State.OPEN, labels__gt=F("pair__held")
    )
    free = campaign.pairs.filter(pk__in=asked.values("pair"), decided=False)
    had = Assignment.objects.filter(pair__in=free).exclude(state=Assignment.State.LAPSED)
    used = had.order_by().values("assessor").annotate(n=Count("pk")).values_list("assessor", "n")
    return free.count(), dict(used)


def _paces(given: _Answers) -> dict[int, dict[str, Any]]:
    """From first answers: a correction is no further pair."""
    people, at, took = (column[given.first] for column in (given.who, given.at, given.seconds))
    found = {}
    for who in np.unique(people).tolist():
        theirs = people == who
        seconds = took[theirs]
        found[who] = {
            "per_hour": _per_hour(np.sort(at[theirs])),
            "seconds": _median(seconds[seconds != UNTOLD]),
        }
    return found


def _orders(given: _Answers) -> dict[int, list[int]]:
    """Everybody's grades in the order of judging, by what they said first of each pair."""
    plain = given.first & ~given.preference
    people, grade = given.who[plain], given.grade[plain]
    order = np.lexsort((given.pk[plain], given.at[plain], people))
    people, grade = people[order], grade[order]
    who, first = np.unique(people, return_index=True)
    parts = np.split(grade, first[1:])
    return {each: part.tolist() for each, part in zip(who.tolist(), parts, strict=False)}


def _shared(given: _Answers) -> dict[int, list[SaidOfPair]]:
    """What was said of pairs that were to have several labels, or have, by the pair's row id."""
    rows = np.flatnonzero(given.current & given.several)
    columns = (given.pair, given.who, given.pk, given.grade, given.counts, given.preference)
    labels: dict[int, list[SaidOfPair]] = defaultdict(list)
    for pair, *said in zip(*(column[rows].tolist() for column in columns), strict=True):
        labels[pair].append(SaidOfPair(*said))
    return labels


def _per_hour(times: NDArray[np.float64]) -> float | None:
    gaps = np.diff(times)
    gaps = gaps[gaps <= PAUSE]
    total = float(gaps.sum())
    return 3600.0 * len(gaps) / total if len(gaps) >= LEAST and total > 0.0 else None


def _median(seconds: NDArray[np.float64]) -> float | None:
    return float(np.median(seconds)) if len(seconds) >= LEAST else None


def _agreements(given: _Answers) -> dict[int, WithOthers]:
    """Of everybody who shares enough pairs with others, by row id.

    Each pair weighs the same, however many others judged it.
    """
    shared = given.current & given.several
    columns = (given.pair, given.who, given.grade, given.counts, given.preference)
    pair, people, grade, counts, preference = (column[shared] for column in columns)
    code = np.unique(pair, return_inverse=True)[1]
    others = _summed(code, counts) - counts
    kept = others > 0
    equal = _summed(code * (MAX_GRADE + 1) + grade, counts) - counts
    total = _summed(code, counts * grade) - counts * grade
    share, mean = equal[kept] / others[kept], total[kept] / others[kept]
    people, above, has_height = people[kept], grade[kept] - mean, ~preference[kept]
    found = {}
    for who in np.unique(people).tolist():
        theirs = people == who
        heights = above[theirs & has_height]
        if theirs.sum() >= LEAST:
            height = float(heights.mean()) if len(heights) else None
            found[who] = WithOthers(int(theirs.sum()), float(share[theirs].mean()), height)
    return found


def _summed(code: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float64]:
    """The sum over all rows that have the code of a row, for every row."""
    if not len(code):
        return np.zeros(0)
    return np.bincount(code, values)[code].astype(np.float64)
