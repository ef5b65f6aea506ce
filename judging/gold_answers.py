"""What people said of gold: their scores, and how each pair was answered. For organizers alone."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from judging.gold_scores import GoldScore, score_of
from judging.known import LEAST_ANSWERS
from judging.models import Campaign, GoldPair, Judgment, QualityRules, User
from judging.selectors import given_judgments


@dataclass(frozen=True)
class GoldAnswer:
    """What somebody said of a gold pair, for the last time."""

    judgment: Judgment
    accepted: list[int]
    reason: str

    @property
    def is_right(self) -> bool:
        return self.judgment.grade in self.accepted


@dataclass(frozen=True)
class GoldLine:
    """A gold pair with how often it was answered, and how often rightly."""

    gold: GoldPair
    answers: int
    right: int
    by_grade: list[int]

    @property
    def is_odd(self) -> bool:
        """Whether most people contradict it: then the grade may be wrong, not the people."""
        return self.answers >= LEAST_ODD and self.right * 2 < self.answers


LEAST_ODD = 5


def rules(campaign: Campaign) -> QualityRules:
    """As set, or as they are before anybody sets them."""
    row = QualityRules.objects.filter(campaign=campaign).first()
    return row or QualityRules(campaign=campaign)


def scores(campaign: Campaign, *, only: User | None = None) -> dict[int, GoldScore]:
    """Of everybody who has answered gold, by row id of the person; in two statements."""
    said: Mapping[int, list[tuple[int, list[int]]]] = defaultdict(list)
    rows = _given(campaign, only).order_by("pk")
    columns = ("assessor", "grade", "assignment__pair__gold_pair__accepted")
    for who, grade, accepted in rows.values_list(*columns):
        said[who].append((grade, accepted))
    least = rules(campaign).least if said else LEAST_ANSWERS
    return {who: score_of(each, least=least) for who, each in said.items()}


def answers(campaign: Campaign, user: User) -> list[GoldAnswer]:
    """What one person said, wrong answers first, then the latest."""
    rows = _given(campaign, user).select_related("assignment__pair__topic")
    rows = rows.select_related("assignment__pair__gold_pair").order_by("-pk")
    found = [_answer(row) for row in rows]
    return sorted(found, key=lambda each: each.is_right)


def _answer(row: Judgment) -> GoldAnswer:
    gold = row.assignment.pair.gold_pair
    return GoldAnswer(row, gold.accepted, gold.reason)


def lines(campaign: Campaign) -> list[GoldLine]:
    """All gold pairs, those in use first, by topic; in two statements."""
    counted: dict[int, Counter[int]] = defaultdict(Counter)
    for pair, grade in _given(campaign, None).values_list("assignment__pair", "grade"):
        counted[pair][grade] += 1
    rows = campaign.gold_pairs.select_related("pair__topic", "created_by")
    found = [_line(row, counted[row.pair_id], len(campaign.grades)) for row in rows]
    return sorted(found, key=_order)


def _line(row: GoldPair, counted: Counter[int], grades: int) -> GoldLine:
    right = sum(counted[grade] for grade in row.accepted)
    return GoldLine(row, counted.total(), right, [counted[grade] for grade in range(grades)])


def _order(line: GoldLine) -> Any:
    pair = line.gold.pair
    return line.gold.retired is not None, pair.topic.topic_id, pair.docno


def _given(campaign: Campaign, only: User | None) -> QuerySet[Judgment]:
    """The latest answers, whether the work of whoever gave them is excluded or not."""
    rows = given_judgments().filter(assignment__gold=True, assignment__pair__campaign=campaign)
    if only is not None:  # twice: an index has those that were gold by who had them
        rows = rows.filter(assessor=only, assignment__assessor=only)
    return rows
