"""Gold pairs, and rules about people."""

from dataclasses import replace
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from judging import gold_answers, people
from judging.api.base import ORGANIZER, CampaignView, page
from judging.api.fields import Body, Flag, NoBody, Number, Text, Whole, checked
from judging.api.pagination import PageQuery, page_shape
from judging.api.people import ReasonBody
from judging.api.serializers_people import GoldRow, PersonRow, RulesRow
from judging.formats import known_pairs
from judging.formats.known_pairs import MOST, MOST_REASON, KnownPair
from judging.formats.problems import Problems
from judging.models import Campaign, GoldPair, User
from judging.services import gold, quality

SCORE: dict[str, Any] = {
    "allow_null": True,
    "required": False,
    "help_text": "A score above 0, below 1; null: never.",
}


class KnownPairBody(Body):
    topic = Text(max_length=255)
    docno = Text(max_length=255)
    grades = serializers.ListField(child=Whole(), min_length=1, max_length=21, help_text="Right.")
    reason = Text(max_length=MOST_REASON, default="", allow_blank=True)


class GoldBody(Body):
    pairs = KnownPairBody(many=True, allow_empty=False, max_length=MOST)  # type: ignore[call-arg]


class RulesBody(Body):
    """What is left out stays as it is."""

    every = Whole(required=False, help_text="One pair in so many is gold, from 3; 0 for none.")
    least = Whole(required=False, help_text="Answers from which a score is told.")
    warn_below = Number(**SCORE)
    hold_below = Number(**SCORE)
    exclude_below = Number(**SCORE)
    exclude_hasty = Flag(required=False)


def pairs_of(campaign: Campaign, data: Any) -> tuple[list[KnownPair], Problems]:
    """Pairs with known grades, and what is wrong with them, by place from 1."""
    problems, found = Problems("pairs"), []
    for line, each in enumerate(checked(GoldBody, data)["pairs"], start=1):
        values = {**each, "grade": each["grades"]}
        del values["grades"]
        pair = known_pairs.checked(line, values, problems, max_grade=campaign.max_grade)
        found += [pair] if pair else []
    known_pairs.refuse_twice(found, problems)
    gold.check_material(campaign, found, problems)
    return found, problems


class GoldPairs(CampaignView):
    section = "People"
    query = PageQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}

    @extend_schema(responses=page_shape(GoldRow))
    def get(self, request: Request, slug: str) -> Response:
        """Pairs whose grade you know, and how they were answered; those in use first."""
        return page(request, gold_answers.lines(self.campaign), GoldRow)

    @extend_schema(request=GoldBody, responses={201: GoldRow(many=True)})
    def post(self, request: Request, slug: str) -> Response:
        """Make gold of all of them, or of none: `errors` name what is wrong, by place from 1."""
        found, problems = pairs_of(self.campaign, request.data)
        made = gold.add(campaign=self.campaign, by=self.user, found=found, problems=problems)
        pks = {row.pk for row in made}
        rows = [line for line in gold_answers.lines(self.campaign) if line.gold.pk in pks]
        return Response(GoldRow(rows, many=True).data, 201)


class OneGold(CampaignView):
    section = "People"
    access = {"POST": ORGANIZER}

    def row(self, pk: int) -> GoldPair:
        return get_object_or_404(self.campaign.gold_pairs, pk=pk)

    def told(self, pk: int) -> Response:
        (line,) = [each for each in gold_answers.lines(self.campaign) if each.gold.pk == pk]
        return Response(GoldRow(line).data)


class RetireGold(OneGold):
    @extend_schema(request=None, responses=GoldRow)
    def post(self, request: Request, slug: str, gold_pair: int) -> Response:
        """Hand it to nobody any more. What was said of it still tells of whoever said it."""
        checked(NoBody, request.data)
        gold.retire(gold=self.row(gold_pair), by=self.user)
        return self.told(gold_pair)


class RestoreGold(OneGold):
    @extend_schema(request=None, responses=GoldRow)
    def post(self, request: Request, slug: str, gold_pair: int) -> Response:
        """Mix it in again."""
        checked(NoBody, request.data)
        gold.restore(gold=self.row(gold_pair), by=self.user)
        return self.told(gold_pair)


class Rules(CampaignView):
    section = "People"
    access = {"GET": ORGANIZER, "PATCH": ORGANIZER}

    @extend_schema(responses=RulesRow)
    def get(self, request: Request, slug: str) -> Response:
        """How much gold is mixed in, and what happens by itself to whoever answers badly."""
        return self.told()

    @extend_schema(request=RulesBody, responses=RulesRow)
    def patch(self, request: Request, slug: str) -> Response:
        """Change some. All look at gold and at times, and at no grade that counts."""
        given: dict[str, Any] = checked(RulesBody, request.data)
        every = given.pop("every", None)
        if every is not None:
            gold.mix(campaign=self.campaign, by=self.user, every=every)
        if given:
            plan = replace(quality.plan_of(self.campaign), **given)
            quality.set_rules(campaign=self.campaign, by=self.user, plan=plan)
        return self.told()

    def told(self) -> Response:
        row = gold_answers.rules(self.campaign)
        return Response(RulesRow(row).data)


class OfPerson(CampaignView):
    section = "People"
    access = {"POST": ORGANIZER}

    def who(self, pk: int) -> User:
        return get_object_or_404(people.known(self.campaign), pk=pk)

    def told(self, who: User) -> Response:
        (person,) = people.people(self.campaign, only=who)
        return Response(PersonRow(person).data)


class HoldPerson(OfPerson):
    @extend_schema(request=ReasonBody, responses=PersonRow)
    def post(self, request: Request, slug: str, person: int) -> Response:
        """Hand them nothing new until somebody has looked at their work. What they said counts."""
        who = self.who(person)
        given = checked(ReasonBody, request.data)
        quality.hold(campaign=self.campaign, assessor=who, by=self.user, **given)
        return self.told(who)


class LetGoOn(OfPerson):
    @extend_schema(request=None, responses=PersonRow)
    def post(self, request: Request, slug: str, person: int) -> Response:
        """Hand them pairs again."""
        checked(NoBody, request.data)
        who = self.who(person)
        quality.let_go_on(campaign=self.campaign, assessor=who, by=self.user)
        return self.told(who)
