"""Norming: people judge the same pairs alone, and then see what the others said, and talk."""

import hashlib
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from judging import norming
from judging.access import norming_part, norming_seat
from judging.api.base import ASSESSOR, MEMBER, ORGANIZER, CampaignView, page
from judging.api.fields import Body, Flag, NoBody, Text, Whole, checked
from judging.api.pagination import PageQuery, Pages, page_shape
from judging.api.serializers_norming import (
    NormingAnswerRow,
    NormingCommentRow,
    NormingDetailRow,
    NormingDiscussedRow,
    NormingPairRow,
    NormingRow,
    NormingTurnRow,
    OwnNormingRow,
)
from judging.errors import UserError
from judging.formats import known_pairs
from judging.formats.known_pairs import KnownPair
from judging.formats.problems import Problems
from judging.models import Campaign, NormingPair, NormingPerson, NormingSession, User
from judging.norms import LONGEST_COMMENT
from judging.services import gold
from judging.services import norming as services
from judging.services.norming import LONGEST_TITLE, MOST_PAIRS, MOST_PEOPLE, SessionPlan
from judging.sheets import document


def pairs_of(campaign: Campaign, given: list[dict[str, Any]]) -> tuple[list[KnownPair], Problems]:
    """Pairs without grades, and what is wrong with them, by place from 1."""
    problems = Problems("pairs")
    asked: dict[str, Any] = {"max_grade": campaign.max_grade, "graded": False}
    checks = (known_pairs.checked(n, each, problems, **asked) for n, each in enumerate(given, 1))
    found = [pair for pair in checks if pair is not None]
    known_pairs.refuse_twice(found, problems)
    gold.check_material(campaign, found, problems)
    return found, problems


def users_of(campaign: Campaign, names: list[str]) -> list[User]:
    """Who may be asked, by user names. UserError ``norming_invalid``."""
    users = list(norming.candidates(campaign).filter(username__in=names))
    if lacking := sorted(set(names) - {user.get_username() for user in users}):
        message = f"No assessor who may be asked has the user name {lacking[0]}."
        raise UserError("norming_invalid", message, field="people")
    return users


class NormingPairBody(Body):
    topic = Text(max_length=255)
    docno = Text(max_length=255)


class NormingPairsBody(Body):
    pairs = NormingPairBody(many=True, allow_empty=False, max_length=MOST_PAIRS)  # type: ignore[call-arg]


class NormingPeopleBody(Body):
    people = serializers.ListField(
        child=Text(max_length=150), max_length=MOST_PEOPLE, help_text="User names of assessors."
    )


class NormingBody(Body):
    title = Text(max_length=LONGEST_TITLE)
    by_itself = Flag(default=True, help_text="The discussion begins when everybody has answered.")
    named = Flag(default=False, help_text="Those who take part see user names, and no numbers.")


class NormingView(CampaignView):
    """Of organizers."""

    section = "People"

    def session(self, pk: int) -> NormingSession:
        row = get_object_or_404(norming.sessions(self.campaign), pk=pk)
        row.campaign = self.campaign
        return row

    def told(self, pk: int, status: int = 200) -> Response:
        row: Any = self.session(pk)
        row.listed = row.pairs.select_related("topic")
        row.assessors = norming.people(row)
        row.findings = norming.findings(norming.Seat(row, self.user, True))
        return Response(NormingDetailRow(row).data, status)


class NormingSessions(NormingView):
    query = PageQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}

    @extend_schema(responses=page_shape(NormingRow))
    def get(self, request: Request, slug: str) -> Response:
        """Sessions in which people judge the same pairs alone and then talk; the latest first."""
        return page(request, norming.sessions(self.campaign), NormingRow)

    @extend_schema(request=NormingBody, responses={201: NormingDetailRow})
    def post(self, request: Request, slug: str) -> Response:
        """Make a draft, in which all assessors take part at first who came by no crowd link."""
        plan = SessionPlan(**checked(NormingBody, request.data))
        made = services.create(campaign=self.campaign, by=self.user, plan=plan)
        return self.told(made.pk, 201)


class OneNorming(NormingView):
    access = {"GET": ORGANIZER, "DELETE": ORGANIZER}

    @extend_schema(responses=NormingDetailRow)
    def get(self, request: Request, slug: str, norm: int) -> Response:
        """One of them: who is how far and, once the discussion has begun, what it tells."""
        return self.told(norm)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, norm: int) -> Response:
        """Remove it, while nobody has answered."""
        services.delete(session=self.session(norm), by=self.user)
        return Response(status=204)


class NormingPairs(NormingView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=NormingPairsBody, responses={201: NormingPairRow(many=True)})
    def post(self, request: Request, slug: str, norm: int) -> Response:
        """Add all pairs to a draft, or none: `errors` name what is wrong, by place from 1."""
        session = self.session(norm)
        given = checked(NormingPairsBody, request.data)["pairs"]
        found, problems = pairs_of(self.campaign, given)
        made = services.add(session=session, by=self.user, found=found, problems=problems)
        rows = session.pairs.select_related("topic").filter(pk__in=[row.pk for row in made])
        return Response(NormingPairRow(rows, many=True).data, 201)


class OneNormingPair(NormingView):
    access = {"DELETE": ORGANIZER}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, norm: int, norm_pair: int) -> Response:
        """Take a pair out of a draft."""
        row = get_object_or_404(self.session(norm).pairs, pk=norm_pair)
        services.remove(pair=row, by=self.user)
        return Response(status=204)


class NormingPeople(NormingView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=NormingPeopleBody, responses=NormingDetailRow)
    def post(self, request: Request, slug: str, norm: int) -> Response:
        """Say who takes part, until the discussion begins. Whoever has answered stays."""
        session = self.session(norm)
        names = checked(NormingPeopleBody, request.data)["people"]
        people = users_of(self.campaign, names)
        services.set_people(session=session, by=self.user, people=people)
        return self.told(norm)


class BeginNorming(NormingView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses=NormingDetailRow)
    def post(self, request: Request, slug: str, norm: int) -> Response:
        """Have people judge, each alone. The pairs stay from then on."""
        checked(NoBody, request.data)
        services.begin(session=self.session(norm), by=self.user)
        return self.told(norm)


class DiscussNorming(NormingView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses=NormingDetailRow)
    def post(self, request: Request, slug: str, norm: int) -> Response:
        """Show everybody what everybody said, and have them talk. Nobody answers blind any more."""
        checked(NoBody, request.data)
        services.discuss(session=self.session(norm), by=self.user)
        return self.told(norm)


class CloseNorming(NormingView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses=NormingDetailRow)
    def post(self, request: Request, slug: str, norm: int) -> Response:
        """End the discussion. It can be read from then on."""
        checked(NoBody, request.data)
        services.close(session=self.session(norm), by=self.user)
        return self.told(norm)


# ------------------------------------------------------------------------------- who takes part


class PartView(CampaignView):
    section = "Judging"

    def part(self, pk: int) -> NormingPerson:
        return norming_part(self.user, self.campaign.slug, pk)


class OwnNorming(PartView):
    query = PageQuery
    access = {"GET": ASSESSOR}

    @extend_schema(responses=page_shape(OwnNormingRow))
    def get(self, request: Request, slug: str) -> Response:
        """Norming sessions in which you take part, the latest first."""
        return page(request, norming.own(self.user, self.campaign), OwnNormingRow)


class NextNorming(PartView):
    access = {"GET": ASSESSOR}

    @extend_schema(responses=NormingTurnRow)
    def get(self, request: Request, slug: str, norm: int) -> Response:
        """What to answer next, alone."""
        return turn_of(self.part(norm))


def turn_of(person: NormingPerson) -> Response:
    """What somebody answers next; nothing once the discussion has begun."""
    turn: Any = norming.turn(person)
    is_blind = person.session.is_blind
    row = turn.pair if is_blind else None
    told = {"state": person.session.state, "asked": turn.asked, "done": turn.done, "pair": row}
    found: Any = NormingTurnRow(told).data
    if row is not None:
        text = document(row.docno, person.session.campaign).first()
        found["document"] = {"title": text.title, "text": text.text} if text else None
    return Response(found)


class NormingAnswerBody(Body):
    pair = Whole(min_value=1, help_text="The `id` of the pair.")
    grade = Whole(min_value=0)


class AnswerNorming(PartView):
    access = {"POST": ASSESSOR}

    @extend_schema(request=NormingAnswerBody, responses=NormingAnswerRow)
    def post(self, request: Request, slug: str, norm: int) -> Response:
        """Answer a pair, alone. Sent again it changes nothing: the first answer is the one."""
        session = self.part(norm).session
        given = checked(NormingAnswerBody, request.data)
        said = services.answer(session=session, by=self.user, **given)
        return Response(NormingAnswerRow(said).data)


class ReviseNorming(PartView):
    access = {"POST": ASSESSOR}

    @extend_schema(request=NormingAnswerBody, responses=NormingAnswerRow)
    def post(self, request: Request, slug: str, norm: int) -> Response:
        """Say what you say of a pair after the discussion. The first grade stays beside it."""
        session = self.part(norm).session
        given = checked(NormingAnswerBody, request.data)
        said = services.revise(session=session, by=self.user, **given)
        return Response(NormingAnswerRow(said).data)


# ------------------------------------------------------------------------------- who talks


class TalkView(CampaignView):
    """Of organizers, and of those who take part: what is said after the blind part."""

    section = "Judging"
    refusals = {"GET": (409,)}
    query = PageQuery

    def seat(self, pk: int) -> norming.Seat:
        found = norming_seat(self.user, self.campaign.slug, pk)
        norming.refuse_blind(found.session)
        return found

    def paged(self, rows: QuerySet[Any], seat: norming.Seat, row: type[Any], tell: Any) -> Response:
        pages = Pages()
        shown = pages.paginate_queryset(rows, self.request)
        return pages.get_paginated_response(row(tell(seat, shown or []), many=True).data)


class NormingDiscussion(TalkView):
    access = {"GET": MEMBER}

    @extend_schema(responses=page_shape(NormingDiscussedRow))
    def get(self, request: Request, slug: str, norm: int) -> Response:
        """What everybody said of each pair; those on which people were farthest apart first."""
        seat = self.seat(norm)
        return self.paged(
            norming.by_spread(seat.session), seat, NormingDiscussedRow, norming.discussed
        )


class NormingCommentBody(Body):
    text = Text(max_length=LONGEST_COMMENT, help_text="Plain text.")
    key = Text(
        max_length=64,
        required=False,
        help_text="Of your choice, one for each comment: sent again with it, it is the same"
        " comment. Left out, it is made of the text.",
    )


class NormingComments(TalkView):
    access = {"GET": MEMBER, "POST": MEMBER}

    @extend_schema(responses=page_shape(NormingCommentRow))
    def get(self, request: Request, slug: str, norm: int, norm_pair: int) -> Response:
        """What people wrote of a pair, the newest last."""
        seat = self.seat(norm)
        rows = norming.thread(get_object_or_404(seat.session.pairs, pk=norm_pair))
        return self.paged(rows, seat, NormingCommentRow, norming.comments_told)

    @extend_schema(request=NormingCommentBody, responses={201: NormingCommentRow})
    def post(self, request: Request, slug: str, norm: int, norm_pair: int) -> Response:
        """Write something of a pair."""
        seat = self.seat(norm)
        given = checked(NormingCommentBody, request.data)
        given.setdefault("key", hashlib.sha256(given["text"].encode()).hexdigest())
        row = get_object_or_404(NormingPair, session=seat.session, pk=norm_pair)
        said = {**given, "pair": row.pk, "organizes": seat.organizes}
        made = services.comment(session=seat.session, by=self.user, **said)
        (told,) = norming.comments_told(seat, [made])
        return Response(NormingCommentRow(told).data, 201)
