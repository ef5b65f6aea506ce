"""Letters (e-mail) that shall go out: rows, which a worker sends (`judging.services.sending`).

A site without a mail server writes none; whatever needs one says so, and links are passed on by
hand.
"""

from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils import timezone

from judging.errors import UserError
from judging.formats.problems import text_problem
from judging.models import Campaign, Letter, User
from judging.services import jobs, tries

SEND = "letter"
INVITATIONS_PER_ORGANIZER = 2000
MOST_ADDRESS = 254
KEPT = timedelta(days=90)
Kind = Letter.Kind


def refuse_without_mail() -> None:
    if not settings.MAIL_ON:
        message = "This site sends no e-mail: no mail server is set up (EMAIL_URL)."
        raise UserError("no_mail", message, status=409)


def address_problem(address: str) -> str | None:
    """What is wrong with an address, in a sentence."""
    try:
        validate_email(address)
    except ValidationError:
        return "This is no e-mail address. Expected one like name@example.org."
    if len(address) > MOST_ADDRESS or text_problem(address):
        return f"An e-mail address has at most {MOST_ADDRESS} characters."
    return None


def write(
    kind: Letter.Kind,
    *,
    address: str,
    user: User | None = None,
    by: User | None = None,
    campaign: Campaign | int | None = None,
    text: str = "",
) -> Letter | None:
    """A letter that is due, in the caller's transaction; None on a site that sends none."""
    if not settings.MAIL_ON:
        return None
    campaign_id = campaign.pk if isinstance(campaign, Campaign) else campaign
    letter = Letter.objects.create(
        kind=kind, address=address, user=user, by=by, campaign_id=campaign_id, text=text
    )
    jobs.request(SEND, letter.pk, campaign=campaign_id)
    return letter


def invite(*, user: User, by: User, campaign: Campaign | int) -> Letter | None:
    """The invitation of an account that has an address. Raises UserError ``too_many_tries``."""
    if not (user.email and settings.MAIL_ON):
        return None
    tries.spend(tries.key(str(by.pk), "invitations"), INVITATIONS_PER_ORGANIZER)
    return write(Kind.INVITATION, address=user.email, user=user, by=by, campaign=campaign)


def notice(user: User, text: str, address: str = "") -> None:
    """That something happened to the account which its owner may not have done."""
    if address or (user.address_confirmed and user.email):
        write(Kind.NOTICE, address=address or user.email, user=user, text=text)


def forget_old() -> None:
    """Letters are kept for a while, to say what became of them."""
    Letter.objects.filter(created__lt=timezone.now() - KEPT).delete()
