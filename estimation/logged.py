"""The audit log of a campaign, in which things are called as pages call them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.apps import apps
from django.db.models import CharField, Model, Q, QuerySet, Value
from django.db.models.functions import Cast, Concat

from estimation.machines import MachineJudge
from estimation.models import Round, RoundBatch, Run
from judging import browsing
from judging.models import (
    Assignment,
    AuditEntry,
    Campaign,
    CrowdGuest,
    CrowdLink,
    Exclusion,
    GoldPair,
    Judgment,
    Membership,
    NormingSession,
    Pair,
    Upload,
    User,
)

GONE = "a discarded round"
CHUNK = 1000
WORDS = {
    str(model._meta.model_name): str(model._meta.verbose_name)
    for app in ("judging", "estimation")
    for model in apps.get_app_config(app).get_models()
}
WORDS |= {
    "upload": "file",
    "pair": "document",
    "membership": "",
    "job": "work that had failed",
    "qualityrules": "rules about people",
    "trainingtry": "training",
}
"""Of the kinds of things that entries are of."""
SEEN = {"apart": "pair", "comment": "assignment"}
"""Of what items of the queue are that were marked as seen."""


@dataclass(frozen=True)
class Logged:
    """An entry, and what it is ``of``: its target, by the name that pages have for it."""

    entry: AuditEntry
    of: str

    @property
    def details(self) -> dict[str, Any]:
        """What else the entry says, without row ids."""
        rows = ("of",) if _is_seen(self.entry) else ("pair",)
        return {name: value for name, value in self.entry.data.items() if name not in rows}

    @property
    def told(self) -> dict[str, Any]:
        """The same for a page."""
        return {name: _told(value) for name, value in self.details.items()}


def _told(value: Any) -> Any:
    """In words, and not in those of Python."""
    if isinstance(value, dict):
        value = [f"{name} {_told(each)}" for name, each in value.items()]
    if isinstance(value, list):
        return ", ".join(str(_told(each)) for each in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None or value == "" else value


def log(
    campaign: Campaign, *, action: str = "", actor: str = "", number: int | None = None
) -> QuerySet[AuditEntry]:
    """What was done in the campaign, latest first: of one kind, by one person, in the round of this
    number and its batches, or everything."""
    rows = browsing.log(campaign, action=action, actor=actor)
    if number is None:
        return rows
    row = Round.objects.filter(campaign=campaign, number=number).first()
    if row is None:
        return rows.none()
    batch = Concat(Value("batch "), Cast("batch_id", CharField()))
    batches = RoundBatch.objects.filter(round=row).values_list(batch)
    return rows.filter(Q(target=f"round {row.pk}") | Q(target__in=batches))


def numbers(campaign: Campaign) -> list[int]:
    """Of the rounds that there are."""
    return list(campaign.rounds.order_by("number").values_list("number", flat=True))


def named(entries: Iterable[AuditEntry]) -> list[Logged]:
    """A page of entries with the names of what they are of."""
    entries = list(entries)
    names = names_of(entries)
    return [Logged(entry, name_of(entry, names)) for entry in entries]


def all_named(rows: QuerySet[AuditEntry]) -> Iterator[Logged]:
    """As many entries as there are, with the names of so many at once."""
    entries = rows.iterator(chunk_size=CHUNK)
    while several := list(islice(entries, CHUNK)):
        yield from named(several)


def name_of(entry: AuditEntry, names: Mapping[str, str]) -> str:
    """What is removed is called as its entry calls it, if that does."""
    target = _target(entry)
    if not target or target in names:
        return names.get(target, "")
    kind, _, _row = target.partition(" ")
    if kind == "round":
        return GONE
    word, called = WORDS.get(kind, kind), CALLED.get(kind, "")
    return " ".join(filter(None, (word, str(entry.data.get(called, "")))))


def names_of(entries: Iterable[AuditEntry]) -> dict[str, str]:
    """How things are called that entries have as rows, by what stands there; one statement for each
    kind of thing."""
    ids: dict[str, set[int]] = defaultdict(set)
    for entry in entries:
        kind, _, row = _target(entry).partition(" ")
        if kind in KINDS:
            ids[kind].add(int(row))
    return {
        f"{kind} {pk}": KINDS[kind].said(*columns)
        for kind, several in ids.items()
        for pk, *columns in KINDS[kind].rows(several)
    }


def _is_seen(entry: AuditEntry) -> bool:
    return entry.action in ("mark as seen", "mark as unseen")


def _target(entry: AuditEntry) -> str:
    """What is seen is called as that of which it is."""
    seen = SEEN.get(str(entry.data.get("kind", ""))) if _is_seen(entry) else None
    return f"{seen} {entry.data['of']}" if seen and "of" in entry.data else entry.target


@dataclass(frozen=True)
class Thing:
    """Things that an entry may be of: the columns from which their name is ``said``."""

    model: type[Model]
    columns: Sequence[str]
    said: Callable[..., str]
    key: str = "pk"

    def rows(self, several: Iterable[int]) -> Iterable[tuple[Any, ...]]:
        found: QuerySet[Any, Any] = self.model._base_manager.filter(**{f"{self.key}__in": several})
        return found.order_by().values_list(self.key, *self.columns)


def _pair(topic: str, docno: str, other: str) -> str:
    both = f"documents {docno} and {other}" if other else f"document {docno}"
    return f"topic {topic}, {both}"


def _of_pair(model: type[Model], before: str = "") -> Thing:
    names = ("topic__topic_id", "docno", "other")
    return Thing(model, [f"{before}{name}" for name in names], _pair)


KINDS = {
    "round": Thing(Round, ["number"], "round {}".format),
    "batch": Thing(
        RoundBatch, ["number", "round__number"], "batch {} of round {}".format, key="batch"
    ),
    "upload": Thing(Upload, ["name"], "file {}".format),
    "run": Thing(Run, ["tag"], "run {}".format),
    "campaign": Thing(Campaign, ["slug"], "campaign {}".format),
    "pair": _of_pair(Pair),
    "assignment": _of_pair(Assignment, "pair__"),
    "judgment": _of_pair(Judgment, "assignment__pair__"),
    "goldpair": _of_pair(GoldPair, "pair__"),
    "user": Thing(User, ["username"], str),
    "membership": Thing(Membership, ["user__username"], str),
    "exclusion": Thing(Exclusion, ["assessor__username"], str),
    "crowdguest": Thing(CrowdGuest, ["account__username"], str),
    "crowdlink": Thing(CrowdLink, ["name"], "crowd link {}".format),
    "normingsession": Thing(NormingSession, ["title"], "norming session {}".format),
    "machinejudge": Thing(MachineJudge, ["name"], "machine judge {}".format),
}
"""As pages call them; what else there is has no name but that of its kind."""
CALLED = {
    "upload": "file",
    "run": "run",
    "pair": "docno",
    "membership": "user",
    "machinejudge": "name",
    "crowdlink": "name",
    "normingsession": "title",
}
"""Where an entry itself says what it is of."""
