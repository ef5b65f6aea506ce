"""What was said, topic by topic: how much is judged, and where people disagree."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from django.db.models import Count, F, Max, Min, Q, QuerySet

from judging.models import Campaign, Decision, Pair, Topic
from judging.selectors import labels
from judging.statements import Slot, reads

SURPRISING = 0.01
"""A topic is noisy if as much disagreement as there is would come by chance less often than so."""


@dataclass(frozen=True)
class AnswersApart:
    """Of the pairs that several people judged (``double``), those with answers that ``differ``.

    ``usual``: the share of pairs whose answers differ in the whole campaign.
    """

    double: int = 0
    differ: int = 0
    usual: float = 0.0

    @property
    def noisy(self) -> bool:
        """Whether people disagree more here than chance would have it, if all topics were alike."""
        if not self.differ or self.differ <= self.usual * self.double:
            return False
        return _at_least(self.differ, self.double, self.usual) < SURPRISING


def _at_least(successes: int, tries: int, chance: float) -> float:
    """The probability of at least so many successes: an exact binomial tail."""
    return sum(
        comb(tries, k) * chance**k * (1 - chance) ** (tries - k)
        for k in range(successes, tries + 1)
    )


def agreements(campaign: Campaign) -> dict[int, AnswersApart]:
    """By the row id of each topic that has pairs with several answers, in one query."""
    double: dict[int, int] = {}
    differ: dict[int, int] = {}
    for _, topic, low, high in _ENDS.rows(campaign=campaign.pk):
        double[topic] = double.get(topic, 0) + 1
        differ[topic] = differ.get(topic, 0) + (high > low)
    usual = sum(differ.values()) / max(1, sum(double.values()))
    return {topic: AnswersApart(count, differ[topic], usual) for topic, count in double.items()}


def _ends() -> QuerySet[Any, Any]:
    """Of pairs with several answers, in the order of their row ids, in which they are grouped."""
    several = Pair.objects.filter(campaign=Slot("campaign"), judged__gte=2).order_by()
    told = several.filter(assignments__judgments__revision=F("assignments__revision"))
    grade = "assignments__judgments__grade"
    ends = told.values("pk", "topic").annotate(low=Min(grade), high=Max(grade), count=Count(grade))
    return ends.filter(count__gte=2).values_list("pk", "topic", "low", "high")


_ENDS = reads(_ends)


@dataclass(frozen=True)
class TopicWork:
    """A topic with how many of its pairs are asked for, and how many of these have an answer."""

    topic: Topic
    pairs: int
    judged: int
    agreement: AnswersApart


def topic_rows(campaign: Campaign, topics: Sequence[Topic]) -> list[TopicWork]:
    """Topics in their order, in two queries whatever their number."""
    counts = _counts(campaign, [topic.pk for topic in topics])
    said = agreements(campaign)
    return [
        TopicWork(topic, *counts.get(topic.pk, (0, 0)), said.get(topic.pk, AnswersApart()))
        for topic in topics
    ]


def _counts(campaign: Campaign, topics: Iterable[int]) -> dict[int, tuple[int, int]]:
    rows = Pair.objects.filter(campaign=campaign, topic__in=topics).order_by().values("topic")
    counted: QuerySet[Any, Any] = rows.annotate(
        pairs=Count("pk"), answered=Count("pk", filter=Q(judged__gt=0) | Q(decided=True))
    )
    return {topic: (n, m) for topic, n, m in counted.values_list("topic", "pairs", "answered")}


@dataclass(frozen=True)
class AnsweredPair:
    """A pair of a topic with the grades that count: of judgments, or of the decision on it."""

    docno: str
    other: str
    grades: tuple[int, ...]

    @property
    def relevant(self) -> bool:
        """Whether a document has more than grade 0 on average."""
        return not self.other and any(self.grades)


def pairs_of(topic: Topic) -> list[AnsweredPair]:
    """All pairs of a topic that are asked for, with what was said of them; in three queries."""
    rows = Pair.objects.filter(topic=topic).order_by("docno", "other")
    said: dict[int, list[int]] = {}
    decided = set(
        Decision.objects.filter(pair__topic=topic, kind=Decision.Kind.GRADE).values_list(
            "pair_id", flat=True
        )
    )
    for label in labels(Pair.objects.filter(topic=topic).values("pk")):
        if label.decided or label.pair not in decided:
            said.setdefault(label.pair, []).append(label.grade)
    return [
        AnsweredPair(docno, other, tuple(sorted(said.get(pk, ()))))
        for pk, docno, other in rows.values_list("pk", "docno", "other")
    ]


def grade_counts(pairs: Iterable[AnsweredPair], grades: int) -> list[int]:
    """How often each grade was given to a document."""
    counts = [0] * grades
    for pair in pairs:
        for grade in pair.grades:
            if not pair.other and grade < grades:
                counts[grade] += 1
    return counts
