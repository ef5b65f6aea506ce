"""What needs an organizer's eye: pairs that wait, labels far apart, comments; and what is done.

Light keys of everything are read first, put in order, and counted; only a page of them is then read
in full. Nothing here changes a label; the order is that of a list for organizers alone. Pairs with
labels far apart can be looked at and be given a senior grade, which settles them, and not handed
out again: further labels, asked for because of the grades that came, would make the mean of a pair
a biased one.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import (
    Count,
    Exists,
    F,
    IntegerField,
    Max,
    Min,
    OuterRef,
    QuerySet,
    Sum,
)

from judging.clock import seconds_from_now
from judging.models import (
    DOCUMENT_BETTER,
    Assignment,
    Campaign,
    Judgment,
    Membership,
    Pair,
    SeenItem,
    SeniorGrade,
)
from judging.selectors import commented, current_judgments, given_judgments
from judging.signals import weights_asked
from judging.statements import Slot, reads
from judging.stuck import StuckPair, handed_pairs, stuck_ids, stuck_pairs

WAITING, APART, COMMENT = "waiting", "apart", "comment"
KINDS = (WAITING, APART, COMMENT)
"""In the order in which they matter: what waits keeps a batch from its end."""

Version = tuple[str, int, str]
"""Kind, target and version of a key: what is seen once."""


@dataclass(frozen=True)
class Key:
    """``target`` is the row id of a pair, or of an assignment for a comment. ``version`` is what it
    was like when it was read; ``weight`` how many pairs it stands for, if that is known."""

    kind: str
    target: int
    pair: int
    version: str
    when: datetime | None = None
    spread: int = 0
    weight: float = 1.0

    @property
    def order(self) -> tuple[int, float, float, int]:
        late = -self.when.timestamp() if self.when else 0.0
        return KINDS.index(self.kind), -self.spread * self.weight, late, self.target


class AssessorGrade(NamedTuple):
    assessor: str
    grade: int


@dataclass(frozen=True)
class Item:
    """One thing to look at, in full: ``waits``, ``labels`` or ``said``, as its kind is."""

    key: Key
    pair: Pair
    waits: StuckPair | None = None
    labels: list[AssessorGrade] = field(default_factory=list)
    said: Judgment | None = None
    seen: SeenItem | None = None


@dataclass(frozen=True)
class Todo:
    """Keys in order, those that were seen apart, latest first."""

    todo: list[Key]
    done: list[tuple[Key, SeenItem]]

    def of(self, kind: str) -> list[Key]:
        return [key for key in self.todo if not kind or key.kind == kind]

    @property
    def counts(self) -> dict[str, int]:
        return {kind: len(self.of(kind)) for kind in KINDS}


def queue(campaign: Campaign) -> Todo:
    """All of it, in a fixed number of statements."""
    keys = [*_waiting(campaign), *_apart(campaign), *_comments(campaign)]
    seen = {
        (row.kind, row.target, row.version): row
        for row in campaign.seen_items.select_related("seen_by").order_by("pk")
    }
    todo = [key for key in keys if (key.kind, key.target, key.version) not in seen]
    done = [
        (key, seen[key.kind, key.target, key.version])
        for key in keys
        if (key.kind, key.target, key.version) in seen
    ]
    return Todo(
        sorted(todo, key=lambda key: key.order),
        sorted(done, key=lambda each: each[1].pk, reverse=True),
    )


def todo_count(campaign: Campaign) -> int:
    """How much of it there is, without its order."""
    return todo_counts(campaign, KINDS).total()


def todo_counts(campaign: Campaign, kinds: Collection[str]) -> Counter[str]:
    """By kind, of some kinds."""
    seen = set(campaign.seen_items.order_by().values_list("kind", "target", "version"))
    found = (key for kind in kinds for key in _VERSIONS[kind](campaign))
    return Counter(key[0] for key in found if key not in seen)


def silent(campaign: Campaign, days: int) -> list[str]:
    """Names of those who were handed pairs for so long, and have judged nothing in it."""
    since = seconds_from_now(-days * 86_400.0)
    judged = Assignment.objects.filter(campaign=campaign, state=Assignment.State.JUDGED)
    # what was created since has changed since: their index begins with assessor, state and change
    lately = judged.filter(assessor=OuterRef("user"), changed__gte=since, created__gte=since)
    rows = campaign.memberships.filter(role=Membership.Role.ASSESSOR, created__lt=since)
    rows = rows.filter(~Exists(lately), user__in=handed_pairs(campaign))
    return list(rows.order_by("user__username").values_list("user__username", flat=True))


def least_spread(campaign: Campaign) -> int:
    """Grades from which on labels are far apart: half of the scale."""
    return max(1, (campaign.max_grade + 1) // 2)


def _waiting(campaign: Campaign) -> list[Key]:
    return [Key(WAITING, pair, pair, "") for pair in stuck_ids(campaign)]


def _apart(campaign: Campaign) -> list[Key]:
    found = _labels_apart(campaign)
    weights = _weights(campaign, [row.pair for row in found])
    return [
        Key(
            APART,
            row.pair,
            row.pair,
            row.version,
            spread=row.spread,
            weight=weights.get(row.pair, 1.0),
        )
        for row in found
    ]


class _Labels(NamedTuple):
    """Those that count of one pair."""

    pair: int
    other: str
    low: int
    high: int
    total: int
    given: int

    @property
    def spread(self) -> int:
        return self.high - self.low

    @property
    def version(self) -> str:
        return f"{self.given}/{self.total}/{self.low}/{self.high}"


def _labels_apart(campaign: Campaign) -> list[_Labels]:
    far = least_spread(campaign)
    rows = _FAR.rows(campaign=campaign.pk, least=min(far, DOCUMENT_BETTER))
    told = map(_Labels._make, rows)
    return [row for row in told if row.spread >= (DOCUMENT_BETTER if row.other else far)]


def _far_apart() -> QuerySet[Any, Any]:
    """Pairs without a senior grade, in the order of their row ids, in which they are grouped."""
    senior = SeniorGrade.objects.filter(pair=OuterRef("pk"), ended=None)
    several = Pair.objects.filter(~Exists(senior), campaign=Slot("campaign"), judged__gte=2)
    grade = "assignments__judgments__grade"
    told = several.filter(assignments__judgments__revision=F("assignments__revision")).order_by()
    ends = told.values("pk", "other").annotate(low=Min(grade), high=Max(grade))
    ends = ends.annotate(total=Sum(grade), count=Count(grade))
    return ends.filter(high__gte=F("low") + Slot("least", IntegerField())).values_list(
        "pk", "other", "low", "high", "total", "count"
    )


_FAR = reads(_far_apart)


def _weights(campaign: Campaign, pairs: Sequence[int]) -> dict[int, float]:
    if not pairs:
        return {}
    found: dict[int, float] = {}
    answers: Any = weights_asked.send(sender=Campaign, campaign=campaign, pairs=pairs)
    for _, told in answers:
        found |= told
    return found


def _waiting_versions(campaign: Campaign) -> Iterator[Version]:
    return ((WAITING, pk, "") for pk in stuck_ids(campaign))


def _apart_versions(campaign: Campaign) -> Iterator[Version]:
    return ((APART, row.pair, row.version) for row in _labels_apart(campaign))


def _comment_versions(campaign: Campaign) -> Iterator[Version]:
    said = commented(campaign).order_by().values_list("assignment_id", "revision")
    return ((COMMENT, pk, str(revision)) for pk, revision in said)


_VERSIONS: dict[str, Callable[[Campaign], Iterator[Version]]] = {
    WAITING: _waiting_versions,
    APART: _apart_versions,
    COMMENT: _comment_versions,
}


def _comments(campaign: Campaign) -> list[Key]:
    columns = ("assignment_id", "assignment__pair_id", "revision", "created")
    return [
        Key(COMMENT, assignment, pair, str(revision), when=created)
        for assignment, pair, revision, created in commented(campaign)
        .order_by()
        .values_list(*columns)
    ]


def in_full(
    campaign: Campaign, keys: Sequence[Key], seen: Sequence[SeenItem] | None = None
) -> list[Item]:
    """The items of some keys, in their order, in a fixed number of statements."""
    ids = {key.pair for key in keys}
    rows = Pair.every.filter(pk__in=ids).select_related("topic", "campaign")
    pairs = {row.pk: row for row in rows}
    waits = {
        row.pair: row
        for row in stuck_pairs(campaign, only=[k.pair for k in keys if k.kind == WAITING])
    }
    labels = _labels([key.pair for key in keys if key.kind == APART])
    said = {
        row.assignment_id: row
        for row in given_judgments()
        .filter(assignment__in=[key.target for key in keys if key.kind == COMMENT])
        .select_related("assessor", "assignment")
    }
    marks: Sequence[SeenItem | None] = seen or [None] * len(keys)
    return [
        Item(
            key,
            pairs[key.pair],
            waits=waits.get(key.pair) if key.kind == WAITING else None,
            labels=labels[key.pair] if key.kind == APART else [],
            said=said.get(key.target) if key.kind == COMMENT else None,
            seen=mark,
        )
        for key, mark in zip(keys, marks, strict=True)
        if key.pair in pairs
    ]


def _labels(pairs: Sequence[int]) -> dict[int, list[AssessorGrade]]:
    given = current_judgments().filter(assignment__pair__in=pairs).order_by("assessor__username")
    found: dict[int, list[AssessorGrade]] = defaultdict(list)
    columns: Any = ("assignment__pair_id", "assessor__username", "grade")
    for pair, name, grade in given.values_list(*columns):
        found[pair].append(AssessorGrade(name, grade))
    return found
