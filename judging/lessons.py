"""How far somebody is with a campaign's training, and how it went with all.

A training pair is no pair of a round, and what is said of it is no label: whoever has not passed is
handed nothing else (`services.assignments`). Who passes hangs on their answers to these pairs
alone, and on no label, so that labels are missing at random: the estimates are about people who
pass. The same document may be drawn in a round as well. Whoever learned on it is not kept from it,
and has been told its grade: of that pair the labels are about people who were taught it.
"""

import hashlib
from collections import defaultdict
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from judging.models import (
    Campaign,
    CrowdGuest,
    Membership,
    Training,
    TrainingAnswer,
    TrainingPair,
    TrainingTry,
    User,
)


@dataclass(frozen=True)
class Lesson:
    """Where somebody is. ``state``: ``new`` (not begun), ``learning`` (``pair`` is next),
    ``passed``, ``again`` (not passed, and may try once more) or ``failed``.

    ``left``: tries that they still have, None for any number. ``attempt`` is the latest try.
    """

    state: str
    training: Training
    asked: int
    done: int = 0
    right: int = 0
    left: int | None = None
    pair: TrainingPair | None = None
    attempt: TrainingTry | None = None

    @property
    def needed(self) -> int:
        """So many of the pairs must be right."""
        return right_needed(self.training, self.asked)


def right_needed(training: Training, asked: int) -> int:
    return next(n for n in range(asked + 1) if n >= training.threshold * asked - 1e-9)


def training_of(campaign: Campaign) -> Training:
    """As it is set, or would be at first."""
    return Training.objects.filter(campaign=campaign).first() or Training(campaign=campaign)


def lesson(campaign: Campaign, user: User) -> Lesson:
    training, attempt = training_of(campaign), latest(campaign, user)
    number = attempt.number if attempt else 0
    left = max(training.tries - number, 0) if training.tries else None
    if attempt is None:
        return Lesson("new", training, campaign.training_pairs.count(), left=left)
    if attempt.ended:
        over = left == 0 or (user.is_guest and failed_guests().filter(account=user).exists())
        state = "passed" if attempt.passed else "failed" if over else "again"
        told = (state, training, attempt.asked, attempt.asked, attempt.right)
        return Lesson(*told, left=left, attempt=attempt)
    pairs = ordered(campaign, attempt)
    said = dict(attempt.answers.values_list("pair", "right"))
    following = next((pair for pair in pairs if pair.pk not in said), None)
    numbers = len(pairs), len(said), sum(said.values())
    return Lesson("learning", training, *numbers, left=left, pair=following, attempt=attempt)


def failed_guests() -> QuerySet[CrowdGuest]:
    """Who left their place as they failed, and judge nothing before somebody lets them in."""
    return CrowdGuest.objects.filter(failed__isnull=False)


def latest(campaign: Campaign, user: User) -> TrainingTry | None:
    return TrainingTry.objects.filter(campaign=campaign, user=user).order_by("number").last()


def ordered(campaign: Campaign, attempt: TrainingTry) -> list[TrainingPair]:
    """In another order in every try and for everybody, topic by topic."""

    def turn(*of: object) -> bytes:
        told = "/".join(map(str, (attempt.user_id, attempt.number, *of)))
        return hashlib.sha256(told.encode()).digest()

    pairs = campaign.training_pairs.select_related("topic")
    return sorted(pairs, key=lambda pair: (turn("topic", pair.topic_id), turn("pair", pair.pk)))


@dataclass(frozen=True)
class PairLine:
    """A training pair, how often it was answered, and how often rightly."""

    pair: TrainingPair
    answers: int
    right: int

    @property
    def is_hard(self) -> bool:
        """Five people or more have answered it, most of them otherwise."""
        return self.answers >= 5 and 2 * self.right < self.answers


def lines(campaign: Campaign) -> list[PairLine]:
    right = Count("answers", filter=Q(answers__right=True))
    rows = campaign.training_pairs.select_related("topic").annotate(n=Count("answers"), k=right)
    return [PairLine(row, row.n, row.k) for row in rows.order_by("topic__topic_id", "docno")]


@dataclass(frozen=True)
class Learner:
    """A member and their tries, the latest last."""

    membership: Membership
    tries: list[TrainingTry]

    @property
    def last(self) -> TrainingTry | None:
        return self.tries[-1] if self.tries else None


def learners(campaign: Campaign) -> list[Learner]:
    """Assessors who learn, or have tried; by name."""
    tries = defaultdict(list)
    for row in TrainingTry.objects.filter(campaign=campaign).order_by("number"):
        tries[row.user_id].append(row)
    rows = campaign.memberships.filter(role=Membership.Role.ASSESSOR).select_related("user")
    those = rows.filter(Q(learns=True) | Q(user__in=list(tries)))
    return [Learner(row, tries[row.user_id]) for row in those.order_by("user__username")]


def is_learning(campaign: Campaign, user: User) -> bool:
    """Whether they are handed nothing before they have passed."""
    theirs = campaign.memberships.filter(user=user, role=Membership.Role.ASSESSOR)
    return theirs.filter(learns=True).exists()


def answer_of(attempt: TrainingTry, pair: int) -> TrainingAnswer | None:
    rows = TrainingAnswer.objects.select_related("pair__topic", "attempt")
    return rows.filter(attempt=attempt, pair=pair).first()
