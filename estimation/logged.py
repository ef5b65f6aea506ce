"""The audit log of a campaign, in which rounds and batches are called as pages call them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.apps import apps
from django.db.models import CharField, Q, QuerySet, Value
from django.db.models.functions import Cast, Concat

from estimation.models import Round, RoundBatch
from judging import browsing
from judging.models import AuditEntry, Campaign

GONE = "a discarded round"
CHUNK = 2000
WORDS = {
    str(model._meta.model_name): str(model._meta.verbose_name)
    for app in ("judging", "estimation")
    for model in apps.get_app_config(app).get_models()
}
"""Of the kinds of things that entries are of."""


@dataclass(frozen=True)
class Logged:
    """An entry, and what it is ``of``: its target, by the name that pages have for it."""

    entry: AuditEntry
    of: str


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


def all_named(campaign: Campaign, rows: QuerySet[AuditEntry]) -> Iterator[Logged]:
    """As many entries as there are, with the names of all that the campaign has."""
    links = RoundBatch.objects.filter(round__campaign=campaign)
    names = _names(campaign.rounds.all(), links)
    return (Logged(entry, name_of(entry, names)) for entry in rows.iterator(chunk_size=CHUNK))


def name_of(entry: AuditEntry, names: Mapping[str, str]) -> str:
    """Other things than rounds and batches have no number but that of their row."""
    kind, _, row = entry.target.partition(" ")
    word = GONE if kind == "round" else f"{WORDS.get(kind, kind)} {row}".strip()
    return names.get(entry.target, word)


def names_of(entries: Iterable[AuditEntry]) -> dict[str, str]:
    """How rounds and batches are called that entries have as rows, by what stands there."""
    targets = [entry.target.split(" ", 1) for entry in entries if " " in entry.target]
    rounds, batches = (_ids(targets, kind) for kind in ("round", "batch"))
    links = RoundBatch.objects.filter(batch__in=batches)
    return _names(Round.objects.filter(pk__in=rounds), links)


def _names(rounds: QuerySet[Round], links: QuerySet[RoundBatch]) -> dict[str, str]:
    of_rounds = {f"round {pk}": f"round {n}" for pk, n in rounds.values_list("pk", "number")}
    of_batches = {
        f"batch {pk}": f"batch {number} of round {of}"
        for pk, number, of in links.values_list("batch", "number", "round__number")
    }
    return of_rounds | of_batches


def _ids(targets: Sequence[Sequence[str]], kind: str) -> list[int]:
    return [int(pk) for name, pk in targets if name == kind]
