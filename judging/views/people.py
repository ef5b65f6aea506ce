"""Members of a campaign, the links that invite them, and whose work counts."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from judging import people as figures
from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.formats.csvfile import csv_lines
from judging.forms import MemberForm, blame
from judging.forms_people import ExclusionForm, HoldForm, ManyForm, TakeBackForm
from judging.models import Campaign, Letter, Membership, User
from judging.person import QUICK_SHOWN, look_at
from judging.services import exclusions, invitations, looks, members, quality
from judging.views.already import leads_back, there
from judging.workers import serving

BY_HAND = "Pass the links of those who are new on."


@dataclass(frozen=True)
class Pending:
    """Somebody without a password; ``link`` is empty where another organizer invited them.

    ``letter`` is the last one that was to invite them here.
    """

    user: User
    membership: Membership
    link: str
    letter: Letter | None = None


@never_cache
def people(request: HttpRequest, slug: str) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    form = MemberForm(request.POST or None)
    if form.is_valid():
        try:
            membership, created = members.add(campaign=campaign, by=user, **form.cleaned_data)
        except UserError as error:
            blame(form, error)
        else:
            told = "is a member now" if created else "was a member already"
            messages.success(request, f"{membership.user} {told}.")
            return redirect("people", slug=slug)
    return _page(request, campaign, form=form)


def _page(
    request: HttpRequest, campaign: Campaign, *, status: int = 200, **forms: Any
) -> HttpResponse:
    words = "".join(filter(str.isprintable, request.GET.get("q", "")))[:150].strip()
    looked = looks.kept(campaign)
    found = figures.people(campaign, words=words, kept=looked.manners)
    pending = _all_pending(request, campaign, found)
    context = {
        "campaign": campaign,
        **_of_look(looked),
        "found": [person for person in found if not person.is_invited or person.judged],
        "words": words,
        "pending": pending,
        "links": "\n".join(f"{each.user}\t{each.link}" for each in pending if each.link),
        "expiry": invitations.expiry(),
        "mail": settings.MAIL_ON,
        "form": MemberForm(),
        "many": ManyForm(),
        **forms,
    }
    return render(request, "judging/people.html", context, status=status)


def _of_look(looked: looks.Looked) -> dict[str, Any]:
    return {"looked": looked, "workers": serving(looks.LOOK)}


def _rows_of_invited(person: figures.Person) -> list[Membership]:
    rows = list(person.roles.values()) if person.is_invited else []
    for row in rows:
        row.user = person.user
    return rows


def _all_pending(
    request: HttpRequest, campaign: Campaign, found: list[figures.Person]
) -> list[Pending]:
    rows = [row for person in found for row in _rows_of_invited(person)]
    letters = invitations.letters_of(campaign) if rows else {}
    return [_pending(request, row, letters.get(row.user_id)) for row in rows]


def _pending(request: HttpRequest, row: Membership, letter: Letter | None) -> Pending:
    link = members.invitation(row.user, by=user_of(request))
    address = request.build_absolute_uri(reverse("join", args=link)) if link else ""
    return Pending(row.user, row, address, letter)


@require_POST
def many(request: HttpRequest, slug: str) -> HttpResponse:
    """All people of a list, or nobody."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    form = ManyForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, campaign, many=form, status=400)
    try:
        made = invitations.invite_many(campaign=campaign, by=user, **form.asked())
    except UserError as error:
        form.blame(error)
        problems = error.data.get("errors", [])
        return _page(request, campaign, many=form, problems=problems, status=400)
    count = len(made)
    told = "One person is" if count == 1 else f"{count} people are"
    sent = "Letters are on their way to those who are new and have an address. Pass on"
    next_step = f"{sent} the links of the others." if settings.MAIL_ON else BY_HAND
    messages.success(request, f"{told} added. {next_step}")
    return redirect(f"{reverse('people', args=[slug])}#main")


@require_POST
@leads_back("people", "slug")
def again(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A new link; the old one is void."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    membership = there(campaign.memberships.select_related("user"), "This membership", pk=pk)
    invitations.invite_again(membership=membership, by=user)
    messages.success(request, f"{membership.user} has a new link. Earlier ones do not work now.")
    return redirect(f"{reverse('people', args=[slug])}#invited")


@require_POST
def all_again(request: HttpRequest, slug: str) -> HttpResponse:
    """New links for all who wait, and letters to those who have an address."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    count = invitations.invite_all_again(campaign=campaign, by=user)
    told = "One person has a new link" if count == 1 else f"{count} people have new links"
    messages.success(request, f"{told}. Earlier ones do not work now.")
    return redirect(f"{reverse('people', args=[slug])}#invited")


@never_cache
@require_GET
def links_file(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Whoever waits, with their link, as CSV: to be passed on by hand, or by one's own program."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    until = invitations.expiry().isoformat(timespec="minutes")
    rows = [
        (
            row.user.username,
            row.user.email,
            request.build_absolute_uri(reverse("join", args=link)),
            until,
        )
        for row, link in invitations.links(campaign=campaign, by=user)
    ]
    lines = csv_lines(("name", "address", "link", "until"), rows)
    answer = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{slug}-invitations.csv"'
    return answer


@require_POST
@leads_back("people", "slug")
def remove(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    membership = there(campaign.memberships.select_related("user"), "This membership", pk=pk)
    members.remove(membership=membership, by=user)
    messages.success(request, f"{membership.user} left the campaign. Their judgments stay.")
    return redirect("people", slug=slug)


@require_GET
def person(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """One of them, and what they did."""
    campaign = organized_campaign(user_of(request), slug)
    return _person(request, campaign, _known(campaign, pk), ExclusionForm())


def _known(campaign: Campaign, pk: int) -> User:
    return get_object_or_404(figures.known(campaign), pk=pk)


def _person(
    request: HttpRequest,
    campaign: Campaign,
    who: User,
    form: ExclusionForm | TakeBackForm,
    *,
    holding: HoldForm | None = None,
) -> HttpResponse:
    looked = looks.kept(campaign)
    shown = look_at(campaign, who, kept=looked.manners)
    excluded = shown.person.exclusion
    context = {
        "campaign": campaign,
        **_of_look(looked),
        "shown": shown,
        "person": shown.person,
        "quick": shown.quick[:QUICK_SHOWN],
        "form": form if form.is_bound else (TakeBackForm() if excluded else form),
        "holding": holding or HoldForm(),
    }
    status = 400 if form.errors or holding else 200
    return render(request, "judging/person.html", context, status=status)


@require_POST
def exclude(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Their work does not count from now on."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    who, form = _known(campaign, pk), ExclusionForm(request.POST)
    if not form.is_valid():
        return _person(request, campaign, who, form)
    exclusions.exclude(campaign=campaign, assessor=who, by=user, **form.cleaned_data)
    told = f"The work of {who} does not count from now on; their places are offered again."
    messages.success(request, told)
    return redirect("person", slug=slug, pk=pk)


@require_POST
def hold(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """They are handed nothing new until somebody has looked."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    who, form = _known(campaign, pk), HoldForm(request.POST)
    if not form.is_valid():
        return _person(request, campaign, who, ExclusionForm(), holding=form)
    quality.hold(campaign=campaign, assessor=who, by=user, **form.cleaned_data)
    messages.success(request, f"{who} is handed nothing new until you let them go on.")
    return redirect("person", slug=slug, pk=pk)


@require_POST
def let_go_on(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    who = _known(campaign, pk)
    quality.let_go_on(campaign=campaign, assessor=who, by=user)
    messages.success(request, f"{who} is handed pairs again.")
    return redirect("person", slug=slug, pk=pk)


@require_POST
@leads_back("people", "slug")
def take_back(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Their work counts again."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    rows = campaign.exclusions.select_related("assessor", "campaign")
    row, form = get_object_or_404(rows, pk=pk), TakeBackForm(request.POST)
    if not form.is_valid():
        return _person(request, campaign, row.assessor, form)
    count = exclusions.take_back(exclusion=row, by=user, **form.cleaned_data)
    told = f"{count} judgment{'' if count == 1 else 's'} of {row.assessor} count again."
    messages.success(request, told)
    return redirect("person", slug=slug, pk=row.assessor_id)
