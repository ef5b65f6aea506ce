"""Coming in by a crowd link, and being done: accounts of guests, and their codes.

All that is told to somebody is committed. Whoever comes again, in another tab or with another
browser, is the guest that they were: by the participant id of the platform, or by the device where
there is none, also if they had an id before. A participant id is no secret: whoever knows the link
and somebody's id comes in as that guest, which opens that guest's work in one campaign and nothing
else.

Locks: the campaign, then the link, while a place on it is taken; then as for every judgment. See
`judging.guests`.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac

from judging import coming, guests, selectors
from judging.errors import UserError
from judging.formats.problems import text_problem
from judging.models import Campaign, CrowdGuest, CrowdLink, Exclusion, User
from judging.services import assignments, audit, campaigns, crowd_links, members, tries

PARTICIPANTS = ("PROLIFIC_PID", "workerId", "participant")
UNFILLED = re.compile(r"\{\{%.*%\}\}|\$\{.*\}")
"""In the place of an id, where the address was opened without the platform."""
PREVIEW = ("assignmentId", "ASSIGNMENT_ID_NOT_AVAILABLE")
"""What Mechanical Turk says where somebody looks without having taken the task."""
MOST_PARAMETERS, MOST_NAME, MOST_VALUE, MOST_PARTICIPANT = 20, 40, 200, 100
GUESTS_PER_ADDRESS = 500
NAME_SIGNS, NAME_TRIES = 5, 20


@dataclass(frozen=True)
class Visitor:
    """Somebody at a link: what the platform says of them, and the keyed hash of their device."""

    participant: str
    parameters: dict[str, str]
    device: str
    is_preview: bool = False

    @property
    def identity(self) -> str:
        return _digest(f"p/{self.participant}") if self.participant else self.of_device

    @property
    def of_device(self) -> str:
        """The identity of whoever has no id on this device."""
        return _digest(f"d/{self.device}")


def _digest(told: str) -> str:
    return hashlib.sha256(told.encode()).hexdigest()


def visitor(query: Iterable[tuple[str, str]], device: str) -> Visitor:
    """From the parameters of the address: a bounded number of plain, short ones are kept.

    Raises UserError ``participant_invalid``: two people must not become one by cutting an id, or as
    the platform has filled none in.
    """
    given = dict(query)
    ids = (given.get(name, "").strip() for name in PARTICIPANTS)
    participant = next(filter(None, ids), "")
    is_none = UNFILLED.fullmatch(participant) or text_problem(participant)
    if len(participant) > MOST_PARTICIPANT or is_none:
        message = (
            "The participant id in this address cannot be used: it was not filled in, or was "
            "changed on the way. Open the link from the platform."
        )
        raise UserError("participant_invalid", message)
    kept = {name: value for name, value in given.items() if _is_plain(name, value)}
    kept = dict(list(kept.items())[:MOST_PARAMETERS])
    hashed = salted_hmac("judging.services.entering", device, algorithm="sha256").hexdigest()
    return Visitor(participant, kept, hashed, given.get(PREVIEW[0]) == PREVIEW[1])


def _is_plain(name: str, value: str) -> bool:
    short = 0 < len(name) <= MOST_NAME and len(value) <= MOST_VALUE
    return short and text_problem(name + value) is None


def known(link: CrowdLink, who: Visitor) -> CrowdGuest | None:
    """Without an id also who had one on this device, the latest: else leaving it out of the address
    would be a second try at the question, or a second account."""
    rows = CrowdGuest.objects.select_related("account", "link__campaign").filter(link=link)
    guest = rows.filter(identity=who.identity).first()
    if guest is None and not who.participant:
        guest = rows.filter(device=who.device).order_by("-pk").first()
    return guest


def count_opened(link: CrowdLink) -> None:
    CrowdLink.objects.filter(pk=link.pk).update(opened=F("opened") + 1)


def count_declined(link: CrowdLink) -> None:
    """Of who declines nothing is kept but that somebody did."""
    CrowdLink.objects.filter(pk=link.pk).update(declined=F("declined") + 1)


def why_not(link: CrowdLink) -> UserError | None:
    """Why nobody new comes in at the moment."""
    if CrowdLink.objects.filter(pk=link.pk, expires__lte=Now()).exists():
        return UserError("link_expired", "The time for taking part is over.", status=410)
    if link.closed is not None:
        return UserError("link_closed", "No more people are needed at the moment.", status=410)
    if link.campaign.state != Campaign.State.OPEN:
        return UserError(
            "campaign_not_open", "There is nothing to judge yet, or for now.", status=409
        )
    if link.people >= link.most_people or not coming.enough_left(link.campaign, link.least_left):
        return UserError("link_full", "Everybody who was needed has come.", status=409)
    return None


def enter(*, link: CrowdLink, who: Visitor, answer: str, address: str) -> CrowdGuest:
    """The guest that the visitor is from now on, or was before; who agrees has called this.

    A new one has an account of their own and is an assessor, or is screened out by their answer
    and has none. Raises UserError ``answer_missing``, ``too_many_tries`` (429), ``link_expired``,
    ``link_closed`` (410), ``link_full``, ``campaign_not_open``, ``out_already`` (409),
    ``guest_barred`` (403).
    """
    if guest := known(link, who):
        return _admitted(guest, who)
    if refusal := why_not(link):
        raise refusal
    is_out = _screened_out(link, answer)
    tries.spend(tries.key("crowd link", tries.origin(address)), GUESTS_PER_ADDRESS)
    for _ in range(NAME_TRIES):
        try:
            with transaction.atomic():
                return _made(link, who, answer, is_out=is_out)
        except IntegrityError:  # the same person in another tab; or the name is somebody's
            if guest := known(link, who):
                return _admitted(guest, who)
    raise AssertionError("no name is free among millions")


def _screened_out(link: CrowdLink, answer: str) -> bool:
    if not link.question:
        return False
    out = {each["text"]: bool(each["out"]) for each in link.answers}
    if answer not in out:
        raise UserError("answer_missing", "Choose one of the answers.", field="answer")
    return out[answer]


def _made(link: CrowdLink, who: Visitor, answer: str, *, is_out: bool) -> CrowdGuest:
    campaigns.lock(link.campaign_id)  # as who excludes somebody does
    _refuse_back(link, who)
    account = None if is_out else _account(link)
    guest = CrowdGuest.objects.create(
        link=link,
        account=account,
        identity=who.identity,
        participant=who.participant,
        parameters=who.parameters,
        device=who.device,
        consent=hashlib.sha256(link.consent.encode()).hexdigest(),
        answer=answer if link.question else "",
    )
    if account is not None:
        members.join(campaign=link.campaign, by=link.created_by, user=account, role="assessor")
    audit.record(
        "screen out guest" if is_out else "admit guest",
        by=account,
        campaign=link.campaign_id,
        target=guest,
        link=link.name,
    )
    return guest


def _account(link: CrowdLink) -> User:
    """With one place of the link, which nobody else gets. Raises UserError ``link_full`` (409)."""
    now = Q(expires=None) | Q(expires__gt=Now())
    rows = CrowdLink.objects.filter(now, pk=link.pk, closed=None, people__lt=F("most_people"))
    if not rows.update(people=F("people") + 1):
        raise UserError("link_full", "Everybody who was needed has come.", status=409)
    name = f"guest-{crowd_links.new_code(NAME_SIGNS).lower()}"
    account = User(username=name, is_guest=True, invited_by=link.created_by)
    account.set_unusable_password()
    account.save()
    return account


def _refuse_back(link: CrowdLink, who: Visitor) -> None:
    """Who was excluded, failed the training, or did not fit by the same question does not come in
    again by another link of the campaign. Others may, and are shown to the organizer.

    Whoever has no id is the device, and so may be anybody who came from it."""
    guests = CrowdGuest.objects.filter(link__campaign=link.campaign_id)
    at_home = Q(identity=who.of_device) if who.participant else Q(device=who.device)
    same = guests.filter(Q(identity=who.identity) | at_home)
    excluded = Exclusion.objects.filter(campaign=link.campaign_id, ended=None)
    is_out = Q(account__in=excluded.values("assessor")) | Q(failed__isnull=False)
    if link.question:
        is_out |= Q(account=None, link__question=link.question)
    if same.filter(is_out).exclude(link=link, identity=who.identity).exists():
        message = "Your part in this is over already: it cannot begin again."
        raise UserError("out_already", message, status=409)


def _admitted(guest: CrowdGuest, who: Visitor) -> CrowdGuest:
    """A link opens a guest's account only, and none that may do more or is blocked by now."""
    account = guest.account
    keep_parameters(guest, who)
    if account is not None:
        more = account.is_superuser or account.is_staff or account.is_organizer
        if more or not account.is_guest or not account.is_active:
            message = "This account is not open to you any more."
            raise UserError("guest_barred", message, status=403)
    return guest


def keep_parameters(guest: CrowdGuest, who: Visitor) -> None:
    """What the platform says now, until they are done: a task that was given back and taken again
    has another number, and is paid by that. What it does not say again stays; a preview has no
    number."""
    said = dict(list((guest.parameters | who.parameters).items())[:MOST_PARAMETERS])
    if guest.finished is None and not who.is_preview and said != guest.parameters:
        CrowdGuest.objects.filter(pk=guest.pk, finished=None).update(parameters=said)
        guest.parameters = said


def note_if_done(user: User) -> None:
    """With the last judgment of a guest, in its transaction: they are handed nothing more."""
    progress = guests.progress(user)
    if progress is not None and progress.is_full:
        _end(user)


def _end(user: User) -> None:
    rows = CrowdGuest.objects.filter(account=user, finished=None)
    if rows.update(finished=Now()):
        guest = CrowdGuest.objects.select_related("link").get(account=user)
        audit.record("finish guest", by=user, campaign=guest.link.campaign_id, target=guest)


def finish(*, guest: CrowdGuest) -> bool:
    """Whether the guest is done; if they are to have a code of their own, they get it now.

    Done is who has judged as many as were asked for; or who has judged some, and no fewer than
    they skipped, when nothing is left for them. Asked again, the same code is told again.
    """
    account = guest.account
    if (
        account is None
        or guest.is_out
        or not (guest.finished or _is_done(guest.link.campaign, account))
    ):
        return False
    with transaction.atomic():
        _end(account)
        if guest.link.code_kind == CrowdLink.CodeKind.EACH:
            rows = CrowdGuest.objects.filter(pk=guest.pk, code="")
            rows.update(code=crowd_links.new_code())
    guest.refresh_from_db(fields=["finished", "code"])
    return True


def _is_done(campaign: Campaign, account: User) -> bool:
    progress = guests.progress(account)
    if progress is None or progress.is_full:
        return progress is not None
    if assignments.claim_next(campaign=campaign, by=account) is not None:
        return False
    over = selectors.empty_queue(campaign, account) in ("complete", "closed", "others")
    return over and progress.judged >= max(1, progress.skipped)


def way_back(link: CrowdLink, code: str) -> str:
    """The address of the platform with the code in it; empty where the link has none."""
    return link.return_address.replace("{code}", code) if code else ""
