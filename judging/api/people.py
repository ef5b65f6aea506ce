"""Members of a campaign, what they did, whose work counts, and what was done in it."""

from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from judging import people, selectors
from judging.api.base import ORGANIZER, CampaignView, page
from judging.api.fields import Body, Flag, NoBody, OneOf, Text, checked
from judging.api.pagination import PageQuery, page_shape
from judging.api.serializers import MemberRow, NewMemberRow
from judging.api.serializers_people import AddedRow, ExclusionRow, PersonDetailRow, PersonRow
from judging.models import Exclusion, Letter, Membership, User
from judging.person import look_at
from judging.services import exclusions, invitations, members


class MemberBody(Body):
    username = Text(max_length=150)
    role = OneOf(Membership.Role.choices)
    address = Text(
        max_length=254,
        default="",
        allow_blank=True,
        help_text="Where a new account is invited, if the site sends e-mail.",
    )


class InvitingView(CampaignView):
    section = "People"
    refusals = {"POST": (429,)}

    def told(self, row: Membership, link: tuple[str, str] | None = None) -> Membership:
        """The membership with its link, of an account that has no password yet."""
        link = link or members.invitation(row.user, by=self.user)
        address = reverse("join", args=link) if link else None
        row.invitation = address and self.request.build_absolute_uri(address)  # type: ignore[attr-defined]
        row.letter = self.letters.get(row.user_id) if link else None  # type: ignore[attr-defined]
        return row

    @cached_property
    def letters(self) -> dict[int, Letter]:
        return invitations.letters_of(self.campaign)


class Members(InvitingView):
    query = PageQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}

    @extend_schema(responses=page_shape(MemberRow))
    def get(self, request: Request, slug: str) -> Response:
        """The members of a campaign, with how much they have judged."""
        return page(request, selectors.members(self.campaign), MemberRow)

    @extend_schema(request=MemberBody, responses={200: NewMemberRow, 201: NewMemberRow})
    def post(self, request: Request, slug: str) -> Response:
        """Make somebody a member; an account that is not there yet is made.

        200: was a member already. An account without a password comes with an invitation: the
        address where its owner sets one. Pass it on; whoever has it first has the account.
        """
        given = checked(MemberBody, request.data)
        row, created = members.add(campaign=self.campaign, by=self.user, **given)
        return Response(NewMemberRow(self.told(row)).data, status=201 if created else 200)


class ManyBody(Body):
    people = Text(
        max_length=invitations.MOST_CHARACTERS,
        trim_whitespace=False,
        help_text="A name or address a line; after commas possibly an address and a role. Or a"
        " table whose first line names its columns: name, address, role.",
    )
    role = OneOf(Membership.Role.choices, default=Membership.Role.ASSESSOR)
    leave_out_members = Flag(default=False, help_text="Pass over those who are members already.")


class ManyMembers(InvitingView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=ManyBody, responses={201: AddedRow})
    def post(self, request: Request, slug: str) -> Response:
        """Make all people of a list members, or nobody: `errors` name what is wrong, by line."""
        given = checked(ManyBody, request.data)
        text = given.pop("people")
        made = invitations.invite_many(campaign=self.campaign, by=self.user, text=text, **given)
        return Response(AddedRow({"added": [self.told(row) for row in made]}).data, 201)


class Member(CampaignView):
    section = "People"
    access = {"DELETE": ORGANIZER}

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, slug: str, member: int) -> Response:
        """End a membership. Pairs in hand go back; judgments stay."""
        rows = self.campaign.memberships.select_related("user", "campaign")
        members.remove(membership=get_object_or_404(rows, pk=member), by=self.user)
        return Response(status=204)


class Invitation(InvitingView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses={201: NewMemberRow})
    def post(self, request: Request, slug: str, member: int) -> Response:
        """A new link for a member without a password. Earlier ones are void from now on."""
        checked(NoBody, request.data)
        rows = self.campaign.memberships.select_related("user", "campaign")
        row = get_object_or_404(rows, pk=member)
        link = invitations.invite_again(membership=row, by=self.user)
        return Response(NewMemberRow(self.told(row, link)).data, 201)


class Invitations(InvitingView):
    access = {"GET": ORGANIZER, "POST": ORGANIZER}

    @extend_schema(responses=NewMemberRow(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Members without a password whom you invited: their links, and what became of letters."""
        found = invitations.links(campaign=self.campaign, by=self.user)
        rows = [self.told(row, link) for row, link in found]
        return Response(NewMemberRow(rows, many=True).data)

    @extend_schema(request=None, responses={201: NewMemberRow(many=True)})
    def post(self, request: Request, slug: str) -> Response:
        """New links for all of them, and letters to those who have an address."""
        checked(NoBody, request.data)
        invitations.invite_all_again(campaign=self.campaign, by=self.user)
        found = invitations.links(campaign=self.campaign, by=self.user)
        rows = [self.told(row, link) for row, link in found]
        return Response(NewMemberRow(rows, many=True).data, 201)


class People(CampaignView):
    section = "People"
    query = PageQuery
    access = {"GET": ORGANIZER}

    @extend_schema(responses=page_shape(PersonRow))
    def get(self, request: Request, slug: str) -> Response:
        """Members, and whoever has judged here: how much, how fast, how far they agree."""
        return page(request, people.people(self.campaign), PersonRow)


class PersonDetail(CampaignView):
    section = "People"
    access = {"GET": ORGANIZER}

    @extend_schema(responses=PersonDetailRow)
    def get(self, request: Request, slug: str, person: int) -> Response:
        """What somebody did: by day, by grade beside others, too fast, and apart from others."""
        who = get_object_or_404(people.known(self.campaign), pk=person)
        return Response(PersonDetailRow(look_at(self.campaign, who)).data)


class ExclusionBody(Body):
    assessor = Text(max_length=150, help_text="The user name.")
    ground = OneOf(
        Exclusion.Ground.choices,
        help_text="Estimates stay unbiased only if it has nothing to do with grades.",
    )
    reason = Text(max_length=500)


class ReasonBody(Body):
    reason = Text(max_length=500)


class Exclusions(CampaignView):
    section = "People"
    query = PageQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}

    @extend_schema(responses=page_shape(ExclusionRow))
    def get(self, request: Request, slug: str) -> Response:
        """Whose work does not count, and whose did not for a while; the latest first."""
        return page(request, selectors.exclusions(self.campaign).order_by("-pk"), ExclusionRow)

    @extend_schema(request=ExclusionBody, responses={201: ExclusionRow})
    def post(self, request: Request, slug: str) -> Response:
        """Exclude the work of somebody: stored, visible, and counted nowhere.

        Their places are offered again; batches that lack labels now open again, and estimates rest
        on those that are complete.
        """
        given = checked(ExclusionBody, request.data)
        who: User = get_object_or_404(people.known(self.campaign), username=given.pop("assessor"))
        row = exclusions.exclude(campaign=self.campaign, assessor=who, by=self.user, **given)
        row.refresh_from_db()
        return Response(ExclusionRow(row).data, 201)


class ExclusionBack(CampaignView):
    section = "People"
    access = {"POST": ORGANIZER}

    @extend_schema(request=ReasonBody, responses=ExclusionRow)
    def post(self, request: Request, slug: str, exclusion: int) -> Response:
        """Take an exclusion back: everything they said counts again."""
        given = checked(ReasonBody, request.data)
        rows = selectors.exclusions(self.campaign).select_related("campaign", "assessor")
        row = get_object_or_404(rows, pk=exclusion)
        exclusions.take_back(exclusion=row, by=self.user, **given)
        row.refresh_from_db()
        return Response(ExclusionRow(row).data)
