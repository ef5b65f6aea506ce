"""Looking through what was said: judgments that count, found by what organizers ask for."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from django.db.models import F, Max, Min, OuterRef, Q, QuerySet, Subquery

from judging.models import (
    Assignment,
    AuditEntry,
    BatchPair,
    Campaign,
    IsWritten,
    Judgment,
    Pair,
    User,
)
from judging.selectors import current_judgments, given_judgments

ONE_TOPIC = "topic:"
ORDERS = {
    "latest": ("-assignment__changed", "-pk"),
    "topic": ("assignment__pair__topic__topic_id", "assignment__pair__docno", "pk"),
    "apart": ("-spread", "assignment__pair", "pk"),
    "quick": (F("seconds").asc(nulls_last=True), "pk"),
}


@dataclass(frozen=True)
class JudgmentFilter:
    """What is looked for; empty fields leave all in.

    ``words``: how the topic or the document begins, or words of the topic's title; after ``topic:``
    one topic and no other. ``apart``: the
    labels of the pair differ by so many grades at least. ``seconds``: given within so many.
    """

    words: str = ""
    assessor: int | None = None
    grade: int | None = None
    apart: int | None = None
    seconds: float | None = None
    since: date | None = None
    until: date | None = None
    comment: bool = False
    corrected: bool = False
    excluded: bool | None = None
    gold: bool | None = None
    order: str = "latest"


def judgments(campaign: Campaign, asked: JudgmentFilter) -> QuerySet[Judgment]:
    """Judgments that fit, with topic and assessor, in the order asked for.

    Those of excluded work are among them, and say so; nothing else that no longer counts.
    """
    rows = given_judgments().filter(assignment__campaign=campaign)
    rows = rows.select_related("assignment__pair__topic", "assessor")
    if asked.words:
        rows = rows.filter(_about(asked.words))
    if asked.assessor is not None:
        rows = rows.filter(assessor=asked.assessor)
    if asked.grade is not None:
        rows = rows.filter(grade=asked.grade)
    if asked.seconds is not None:
        rows = rows.filter(seconds__lte=asked.seconds)
    if asked.since is not None:
        rows = rows.filter(assignment__changed__date__gte=asked.since)
    if asked.until is not None:
        rows = rows.filter(assignment__changed__date__lte=asked.until)
    if asked.comment:
        rows = rows.filter(IsWritten("comment"))
    if asked.corrected:
        rows = rows.filter(revision__gt=1)
    if asked.excluded is not None:
        rows = (
            rows.filter(assignment__state=Assignment.State.EXCLUDED)
            if asked.excluded
            else rows.exclude(assignment__state=Assignment.State.EXCLUDED)
        )
    if asked.gold is not None:
        rows = rows.filter(assignment__gold=asked.gold)
    if asked.apart is not None:
        rows = rows.filter(assignment__pair__in=_apart(campaign, asked.apart))
    if asked.order == "apart":
        rows = rows.annotate(spread=_spread())
    return rows.order_by(*ORDERS[asked.order])


def in_full(ids: Sequence[int]) -> list[Judgment]:
    """Judgments with topic and assessor, in the order of their row ids given."""
    rows = Judgment.objects.filter(pk__in=ids)
    found = {row.pk: row for row in rows.select_related("assignment__pair__topic", "assessor")}
    return [found[pk] for pk in ids if pk in found]


def _about(words: str) -> Q:
    pair = "assignment__pair__"
    if words.startswith(ONE_TOPIC):
        return Q(**{f"{pair}topic__topic_id": words.removeprefix(ONE_TOPIC)})
    return (
        Q(**{f"{pair}topic__topic_id__startswith": words})
        | Q(**{f"{pair}topic__title__icontains": words})
        | Q(**{f"{pair}docno__startswith": words})
        | Q(**{f"{pair}other__startswith": words})
    )


def _apart(campaign: Campaign, least: int) -> QuerySet[Judgment, int]:
    """Pairs whose labels differ by so many grades at least."""
    given = current_judgments().filter(assignment__pair__campaign=campaign)
    ends = given.order_by().values("assignment__pair").annotate(high=Max("grade"), low=Min("grade"))
    return ends.filter(high__gte=F("low") + least).values_list("assignment__pair", flat=True)


def _spread() -> Subquery:
    """Between the highest and the lowest label of a judgment's pair."""
    given = current_judgments().filter(assignment__pair=OuterRef("assignment__pair")).order_by()
    ends = given.values("assignment__pair").annotate(spread=Max("grade") - Min("grade"))
    return Subquery(ends.values("spread"))


def others(rows: Sequence[Judgment]) -> dict[int, list[tuple[str, int]]]:
    """What others said of the same pairs, (who, grade), by the row id of each judgment."""
    pairs = {row.assignment.pair_id for row in rows}
    given = current_judgments().filter(assignment__pair__in=pairs).order_by("assessor__username")
    said = defaultdict(list)
    for pair, who, name, grade in given.values_list(
        "assignment__pair", "assessor", "assessor__username", "grade"
    ):
        said[pair].append((who, name, grade))
    return {
        row.pk: [(n, g) for who, n, g in said[row.assignment.pair_id] if who != row.assessor_id]
        for row in rows
    }


def assessors(campaign: Campaign) -> QuerySet[User]:
    """Everybody who was given a pair, whether a member still or not."""
    given = Assignment.objects.filter(campaign=campaign).values("assessor")
    return User.objects.filter(pk__in=given).order_by("username")


@dataclass(frozen=True)
class PairAnswers:
    """One assessor's part in a pair: what is so, and all that was said, the latest first."""

    assignment: Assignment
    said: list[Judgment]


def answers(pair: Pair) -> list[PairAnswers]:
    """Of everybody who was given the pair, in the order in which they were."""
    rows = pair.assignments.select_related("assessor").order_by("pk")
    said = Judgment.objects.filter(assignment__pair=pair).order_by("-revision")
    by_assignment = defaultdict(list)
    for row in said:
        by_assignment[row.assignment_id].append(row)
    return [PairAnswers(row, by_assignment[row.pk]) for row in rows]


def served_in(pair: Pair) -> QuerySet[BatchPair]:
    """The batches that ask for labels of the pair."""
    return pair.batch_pairs.select_related("batch").order_by("batch__number")


def log(campaign: Campaign, *, action: str = "", actor: str = "") -> QuerySet[AuditEntry]:
    """What was done in the campaign, latest first: of one kind, by one person, or everything."""
    rows = AuditEntry.objects.filter(campaign=campaign).select_related("actor").order_by("-pk")
    if action:
        rows = rows.filter(action=action)
    return rows.filter(actor__username=actor) if actor else rows


def log_kinds(campaign: Campaign) -> Iterable[str]:
    """The kinds of entries that there are."""
    rows = AuditEntry.objects.filter(campaign=campaign).order_by("action")
    return rows.values_list("action", flat=True).distinct()
