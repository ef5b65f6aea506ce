"""Who judges, and how: figures of each person, from the judgments they have given.

Nothing here hangs on which answers count: work that is excluded is told of like any other, and is
held against answers that count. All is told to organizers alone.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from numpy.typing import NDArray

from judging.accounts import QRELS
from judging.conduct import Pattern
from judging.habits import SaidOfPair, patterns
from judging.models import (
    Assignment,
    Batch,
    BatchPair,
    Campaign,
    Exclusion,
    Judgment,
    Membership,
    User,
)
from judging.selectors import given_judgments

LEAST = 5
"""Judgments, or pairs in common, from which something is told."""
PAUSE = 10 * 60.0
"""Seconds between two judgments after which somebody was away."""


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
    users = known(campaign)
    if words:
        users = users.filter(username__icontains=words)
    if only is not None:
        users = users.filter(pk=only.pk)
    found = list(users)
    roles: dict[int, dict[str, Membership]] = defaultdict(dict)
    for row in campaign.memberships.order_by("role"):
        roles[row.user_id][row.role] = row
    counted = _counted(campaign)
    left, used = _left(campaign)
    paces, orders = _in_order(campaign)
    shared = _shared(campaign)
    agreed = _agreements(shared)
    names = dict(known(campaign).values_list("pk", "username"))
    habits = patterns(orders, shared, grades=len(campaign.grades), names=names)
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


def _counted(campaign: Campaign) -> dict[int, dict[str, Any]]:
    theirs = Assignment.objects.filter(pair__campaign=campaign).order_by()
    said = Q(state=Assignment.State.JUDGED) | Q(set_aside__gte=1)
    skipped = Q(state=Assignment.State.SKIPPED) | Q(
        state=Assignment.State.EXCLUDED, set_aside=0, skip_reason__gt=""
    )
    rows = theirs.values("assessor").annotate(
        judged=Count("pk", filter=said), skips=Count("pk", filter=skipped), last=Max("changed")
    )
    comments = given_judgments().filter(assignment__pair__campaign=campaign).exclude(comment="")
    counts = dict(
        comments.order_by().values("assessor").annotate(n=Count("pk")).values_list("assessor", "n")
    )
    return {
        row["assessor"]: {
            "judged": row["judged"],
            "skips": row["skips"],
            "last": row["last"],
            "comments": counts.get(row["assessor"], 0),
        }
        for row in rows
    }


def _left(campaign: Campaign) -> tuple[int, dict[int, int]]:
    """Free pairs of open batches, and how many of these each person has had already."""
    asked = BatchPair.objects.filter(
        pair=OuterRef("pk"), batch__state=Batch.State.OPEN, labels__gt=OuterRef("held")
    )
    free = campaign.pairs.filter(Exists(asked), decided=False)
    had = Assignment.objects.filter(pair__in=free).exclude(state=Assignment.State.LAPSED)
    used = had.order_by().values("assessor").annotate(n=Count("pk")).values_list("assessor", "n")
    return free.count(), dict(used)


def _in_order(campaign: Campaign) -> tuple[dict[int, dict[str, Any]], dict[int, list[int]]]:
    """Of everybody, from what they said first of each pair and in its order: how fast they are,
    and their grades. A preference is no grade."""
    first = Judgment.objects.filter(assignment__pair__campaign=campaign, revision=1)
    columns = ("assessor", "created", "seconds", "grade", "assignment__pair__other")
    rows = first.order_by("assessor", "created", "pk").values_list(*columns)
    times: dict[int, list[float]] = defaultdict(list)
    seconds: dict[int, list[float]] = defaultdict(list)
    grades: dict[int, list[int]] = defaultdict(list)
    for who, created, took, grade, other in rows.iterator(chunk_size=5000):
        times[who].append(created.timestamp())
        if took is not None:
            seconds[who].append(took)
        if not other:
            grades[who].append(grade)
    paces = {
        who: {"per_hour": _per_hour(np.array(each)), "seconds": _median(seconds[who])}
        for who, each in times.items()
    }
    return paces, grades


def _per_hour(times: NDArray[np.float64]) -> float | None:
    gaps = np.diff(times)
    gaps = gaps[gaps <= PAUSE]
    total = float(gaps.sum())
    return 3600.0 * len(gaps) / total if len(gaps) >= LEAST and total > 0.0 else None


def _median(seconds: Sequence[float]) -> float | None:
    return float(np.median(seconds)) if len(seconds) >= LEAST else None


@dataclass
class _Compared:
    pairs: int = 0
    equal: float = 0.0
    heights: list[float] = field(default_factory=list)


def agreements(campaign: Campaign) -> dict[int, WithOthers]:
    """Of everybody who shares enough pairs with others, by row id.

    Each pair weighs the same, however many others judged it.
    """
    return _agreements(_shared(campaign))


def _agreements(shared: Mapping[int, Sequence[SaidOfPair]]) -> dict[int, WithOthers]:
    found: dict[int, _Compared] = defaultdict(_Compared)
    for labels in shared.values():
        for said in labels:
            others = [each.grade for each in labels if each.counts and each.who != said.who]
            if not others:
                continue
            mine = found[said.who]
            mine.pairs += 1
            mine.equal += sum(each == said.grade for each in others) / len(others)
            if not said.preference:
                mine.heights.append(said.grade - sum(others) / len(others))
    return {
        who: WithOthers(
            each.pairs,
            each.equal / each.pairs,
            float(np.mean(each.heights)) if each.heights else None,
        )
        for who, each in found.items()
        if each.pairs >= LEAST
    }


def _shared(campaign: Campaign) -> dict[int, list[SaidOfPair]]:
    """What was said of pairs that were to have several labels, or have, by the pair's row id."""
    rows = given_judgments().filter(assignment__pair__campaign=campaign).order_by()
    several = Q(assignment__pair__wanted__gte=2) | Q(assignment__pair__judged__gte=2)
    rows = rows.filter(several)
    columns = rows.annotate(
        counts=Q(assignment__set_aside=0), is_other=~Q(assignment__pair__other="")
    )
    labels: dict[int, list[SaidOfPair]] = defaultdict(list)
    for pair, who, at, grade, counts, other in columns.values_list(
        "assignment__pair_id", "assessor_id", "pk", "grade", "counts", "is_other"
    ).iterator(chunk_size=5000):
        labels[pair].append(SaidOfPair(who, at, grade, bool(counts), bool(other)))
    return labels
