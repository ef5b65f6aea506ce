"""Who judges, and how: figures of each person, from the judgments they have given.

Nothing here hangs on which answers count: work that is excluded is told of like any other, and is
held against answers that count. All is told to organizers alone.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Count, Exists, F, Max, Model, OuterRef, QuerySet

from judging import gold_answers
from judging.accounts import QRELS
from judging.gold_scores import NO_SCORE, GoldScore
from judging.guests import SAID, SKIPPED
from judging.manners import NO_MANNER, Manner, manners
from judging.models import (
    Assignment,
    Batch,
    BatchPair,
    Campaign,
    Exclusion,
    Membership,
    User,
)

Rows = TypeVar("Rows", bound=Model)


@dataclass(frozen=True)
class Person:
    """A member, or somebody who left and has judged.

    ``left`` are pairs in open batches that they could still judge. ``gold_is_low``: their score is
    surely below that from which the campaign's rules warn.
    """

    user: User
    roles: dict[str, Membership]
    judged: int = 0
    left: int = 0
    skips: int = 0
    last: datetime | None = None
    manner: Manner = NO_MANNER
    exclusion: Exclusion | None = None
    gold: GoldScore = NO_SCORE
    gold_is_low: bool = False

    @property
    def judges(self) -> bool:
        return Membership.Role.ASSESSOR in self.roles

    @property
    def held(self) -> Membership | None:
        """Their membership, where they wait until an organizer has looked at their work."""
        row = self.roles.get(Membership.Role.ASSESSOR)
        return row if row and row.held else None

    @property
    def has_left(self) -> bool:
        return not self.roles

    @property
    def is_invited(self) -> bool:
        """Whether they have never signed in, as they have no password yet."""
        waits = self.user.is_active and not self.user.is_guest
        return waits and not self.user.has_usable_password()

    @property
    def is_excluded(self) -> bool:
        return self.exclusion is not None

    @property
    def excludable(self) -> bool:
        return self.user.username != QRELS and (self.judges or self.judged > 0)


def known(campaign: Campaign) -> QuerySet[User]:
    """Members, and whoever was given a pair."""
    had = Assignment.objects.filter(assessor=OuterRef("pk"), campaign=campaign)
    member = campaign.memberships.filter(user=OuterRef("pk"))
    return User.objects.filter(Exists(had) | Exists(member)).order_by("username")


def people(
    campaign: Campaign,
    *,
    words: str = "",
    only: User | None = None,
    kept: Mapping[int, Manner] | None = None,
) -> list[Person]:
    """By name, in a fixed number of statements whatever their number and that of judgments.

    ``kept`` is what was told of their manners lately, by row id; without it, it is told anew.
    """
    roles: dict[int, dict[str, Membership]] = defaultdict(dict)
    for row in _theirs(campaign.memberships.order_by("role"), only, "user"):
        roles[row.user_id][row.role] = row
    counted = _counted(campaign, only)
    found = [only] if only else _named({*roles, *counted}, words)
    left, used = _left(campaign, only)
    told = manners(campaign) if kept is None else kept
    scores, warn = gold_answers.scores(campaign, only=only), None
    if scores:
        warn = gold_answers.rules(campaign).warn_below
    excluded = {row.assessor_id: row for row in campaign.exclusions.filter(ended=None)}
    none: dict[str, Any] = {}
    every = []
    for user in found:
        judges = Membership.Role.ASSESSOR in roles[user.pk] and user.pk not in excluded
        gold = scores.get(user.pk, NO_SCORE)
        every.append(
            Person(
                user,
                dict(roles[user.pk]),
                left=max(0, left - used.get(user.pk, 0)) if judges else 0,
                manner=told.get(user.pk, NO_MANNER),
                exclusion=excluded.get(user.pk),
                gold=gold,
                gold_is_low=None not in (gold.high, warn) and gold.high < warn,  # type: ignore[operator]
                **counted.get(user.pk, none),
            )
        )
    return every


def _theirs(rows: QuerySet[Rows], only: User | None, whose: str = "assessor") -> QuerySet[Rows]:
    """Of everybody, or of one of them."""
    return rows if only is None else rows.filter(**{whose: only})


def _named(people: set[int], words: str) -> list[User]:
    users = User.objects.filter(pk__in=people)
    if words:
        users = users.filter(username__icontains=words)
    return list(users.order_by("username"))


def _counted(campaign: Campaign, only: User | None) -> dict[int, dict[str, Any]]:
    """Of everybody who was given a pair, or of one of them."""
    theirs = _theirs(Assignment.objects.filter(campaign=campaign).order_by(), only)
    rows = theirs.values("assessor").annotate(
        judged=Count("pk", filter=SAID), skips=Count("pk", filter=SKIPPED), last=Max("changed")
    )
    return {
        row["assessor"]: {
            "judged": row["judged"],
            "skips": row["skips"],
            "last": row["last"],
        }
        for row in rows
    }


def _left(campaign: Campaign, only: User | None) -> tuple[int, dict[int, int]]:
    """Free pairs of open batches, and how many of these each person has had already."""
    asked = BatchPair.objects.filter(
        batch__campaign=campaign, batch__state=Batch.State.OPEN, labels__gt=F("pair__held")
    )
    free = campaign.pairs.filter(pk__in=asked.values("pair"), decided=False)
    had = _theirs(Assignment.objects.filter(pair__in=free), only)
    had = had.exclude(state=Assignment.State.LAPSED)
    used = had.order_by().values("assessor").annotate(n=Count("pk")).values_list("assessor", "n")
    return free.count(), dict(used)
