"""The pages of a crowd link: what a guest agrees to, and the code with which they leave.

Who is signed in with an account of their own is not let in: the work would be paid to one person
and stand under another name, and the link's number of judgments would hold for all their work.
"""

import secrets
from typing import Any

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from judging import guests, selectors
from judging.access import ASSESSOR, address_of, crowd_link
from judging.errors import UserError
from judging.models import CrowdGuest, CrowdLink, User
from judging.services import entering
from judging.services.entering import Visitor
from judging.views.sign_in import BACKEND

DEVICE, OPENED = "evalsite_device", "evalsite_opened"
DEVICE_SALT = "judging.views.work"
DEVICE_SECONDS = 365 * 24 * 3600


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def begin(request: HttpRequest, key: str) -> HttpResponse:
    """What the work is and what is agreed to; agreeing makes the guest, or finds them again."""
    link = crowd_link(key)
    known = request.get_signed_cookie(DEVICE, default="", salt=DEVICE_SALT)
    device = str(known) or secrets.token_urlsafe(16)
    who = _visitor(request, device)
    answered = request.method == "POST"
    answer = _answered(request, link, who) if answered else _asked(request, link, who)
    _count(request, link, answer)
    answer.set_signed_cookie(
        DEVICE,
        device,
        salt=DEVICE_SALT,
        max_age=DEVICE_SECONDS,
        httponly=True,
        secure=request.is_secure(),
        samesite="Lax",
    )
    return answer


def _visitor(request: HttpRequest, device: str) -> Visitor:
    return entering.visitor(((name, str(value)) for name, value in request.GET.items()), device)


def _asked(request: HttpRequest, link: CrowdLink, who: Visitor) -> HttpResponse:
    if _has_own_account(request):
        return _page(request, link, "own")
    if guest := _guest(request, link, who):
        return _again(request, guest, who)
    if who.is_preview:
        return _page(request, link, "preview")
    if refusal := entering.why_not(link):
        return _page(request, link, "over", refusal=refusal, status=refusal.status)
    return _page(request, link, "consent")


def _has_own_account(request: HttpRequest) -> bool:
    return request.user.is_authenticated and not request.user.is_guest


def _guest(request: HttpRequest, link: CrowdLink, who: Visitor) -> CrowdGuest | None:
    """Who they are by the platform; by their session or the device, where it says nothing."""
    here = None if who.participant else _signed_in(request, link)
    return here or entering.known(link, who)


def _signed_in(request: HttpRequest, link: CrowdLink) -> CrowdGuest | None:
    rows = CrowdGuest.objects.select_related("link__campaign", "account").filter(link=link)
    return rows.filter(account=request.user).first() if request.user.is_authenticated else None


def _again(request: HttpRequest, guest: CrowdGuest, who: Visitor) -> HttpResponse:
    if guest.is_out:
        return _page(request, guest.link, "out", code=guest.told_code)
    if request.user != guest.account:
        return _page(request, guest.link, "back", guest=guest)
    entering.keep_parameters(guest, who)
    return _onwards(guest)


def _onwards(guest: CrowdGuest) -> HttpResponse:
    if guest.finished or not _is_here(guest):
        return redirect("work-done", key=guest.link.token)
    return redirect("judge", slug=guest.link.campaign.slug)


def _is_here(guest: CrowdGuest) -> bool:
    """Whether they are still an assessor; organizers may have removed them."""
    mine = guest.link.campaign.memberships.filter(user=guest.account_id)
    return mine.filter(role=ASSESSOR).exists()


def _count(request: HttpRequest, link: CrowdLink, answer: HttpResponse) -> None:
    """Once for each browser, which remembers it itself: no row is made for who only looks."""
    if OPENED not in request.COOKIES and not _has_own_account(request):
        entering.count_opened(link)
        path = reverse("work", args=[link.token])
        answer.set_cookie(OPENED, "1", DEVICE_SECONDS, path=path, httponly=True, samesite="Lax")


def _answered(request: HttpRequest, link: CrowdLink, who: Visitor) -> HttpResponse:
    if _has_own_account(request):
        return _page(request, link, "own", status=409)
    if request.POST.get("action") == "decline":
        entering.count_declined(link)
        return _page(request, link, "declined")
    answer = request.POST.get("answer", "")
    try:
        guest = entering.enter(link=link, who=who, answer=answer, address=address_of(request))
    except UserError as error:
        if error.field == "answer":
            return _page(request, link, "consent", refusal=error, status=error.status)
        return _page(request, link, "over", refusal=error, status=error.status)
    if guest.account is None:
        return redirect(request.get_full_path())
    login(request, guest.account, backend=BACKEND)
    return _onwards(guest)


def _page(
    request: HttpRequest, link: CrowdLink, stage: str, *, status: int = 200, **more: Any
) -> HttpResponse:
    back = entering.way_back(link, more.get("code", ""))
    context = {"link": link, "stage": stage, "back": back, **more}
    return render(request, "judging/work.html", context, status=status)


@login_not_required
@never_cache
@require_GET
def done(request: HttpRequest, key: str) -> HttpResponse:
    """The code, once all is judged, told again whenever it is asked for; until then, what is left.

    Who looks at it when they are done is noted as done: that grants what was earned, and no more.
    """
    link = crowd_link(key)
    guest = _signed_in(request, link)
    if guest is None or not isinstance(guest.account, User):
        return redirect("work", key=key)
    if guest.is_out:
        return redirect("work", key=key)
    is_done = entering.finish(guest=guest)
    code = guest.told_code
    context = {
        "link": link,
        "guest": guest,
        "is_done": is_done,
        "code": code,
        "back": entering.way_back(link, code),
        "progress": guests.progress(guest.account),
        "why": "" if is_done else _why(guest, guest.account),
        "go": reverse("judge", args=[link.campaign.slug]),
    }
    return render(request, "judging/work_done.html", context)


def _why(guest: CrowdGuest, account: User) -> str:
    """Why they have no code: ``left`` if they may go on."""
    if not _is_here(guest):
        excluded = selectors.is_excluded(guest.link.campaign, account)
        return "excluded" if excluded else "removed"
    if guests.has_a_pair(account):
        return "left"
    return selectors.empty_queue(guest.link.campaign, account)
