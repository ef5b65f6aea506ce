"""The job that sends a letter. What a link in it opens is made here, and stored nowhere.

A letter is sent at least once: a worker that dies after the mail server took it sends it again.
What the server refuses for good is told where the letter was asked for; what it refuses for now is
tried again for a day.
"""

import smtplib
from datetime import timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from judging.models import Letter, User
from judging.services import addresses, jobs, letters, members, resets

AGAIN_SECONDS, GIVE_UP_AFTER = 60, timedelta(days=1)
Kind, State = Letter.Kind, Letter.State
Text = tuple[str, str, str]
"""To whom, about what, and what it says."""


def send(job: jobs.Running) -> None:
    """The job. Done again, it sends nothing that was sent."""
    letter = Letter.objects.select_related("user", "by", "campaign").filter(pk=job.target).first()
    if letter is None or letter.state != State.WAITING:
        return
    text = _composed(letter) if settings.MAIL_ON else None
    error = _sent(letter, *text) if text else "There is nobody to send it to any more."
    with transaction.atomic():
        job.fence()
        _note(letter, error)


def _note(letter: Letter, error: str) -> None:
    """Who asked for a reset, and whether there is such an account, is kept nowhere."""
    row = Letter.objects.filter(pk=letter.pk)
    if letter.kind == Kind.RESET:
        row.delete()
    elif error:
        row.update(state=State.REFUSED, error=error[:300])
    else:
        row.update(state=State.SENT, sent=Now(), error="")
        letters.forget_old()


def _sent(letter: Letter, address: str, subject: str, body: str) -> str:
    """Empty, or why the mail server refuses it for good. Raises NotYet where it may not later."""
    message = EmailMessage(" ".join(subject.split()), body, settings.MAIL_FROM, [address])
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused as error:
        code, said = next(iter(error.recipients.values()))
        return _refused(letter, code, _words(said))
    except smtplib.SMTPResponseException as error:
        return _refused(letter, error.smtp_code, _words(error.smtp_error))
    except (OSError, smtplib.SMTPException) as error:
        return _refused(letter, 400, f"The mail server does not answer: {error}")
    return ""


def _words(said: bytes | str) -> str:
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _refused(letter: Letter, code: int, words: str) -> str:
    words = f"{code} {words}" if code != 400 else words
    if code >= 500 or timezone.now() - letter.created > GIVE_UP_AFTER:
        return words
    raise jobs.NotYet(AGAIN_SECONDS, words[:200])


def _composed(letter: Letter) -> Text | None:
    if letter.kind == Kind.RESET:
        return _reset(resets.asked_for(letter.address))
    if letter.user is None:
        return None
    if letter.kind == Kind.INVITATION:
        return _invitation(letter, letter.user)
    if letter.kind == Kind.CONFIRM:
        return _confirmation(letter, letter.user)
    about = f"Your account {letter.user} at {settings.SITE_URL}"
    body = f"{letter.text}\n\nIf this was not you, tell an admin of the site."
    return letter.address, about, _signed(body)


def _reset(user: User | None) -> Text | None:
    if user is None:
        return None
    address = _link("reset", *resets.link(user))
    body = (
        f"Somebody, you we hope, forgot the password of the account {user}.\n\n"
        f"Choose a new one here within an hour:\n{address}\n\n"
        "If it was not you, there is nothing to do: nothing has changed."
    )
    return user.email, "A new password", _signed(body)


def _invitation(letter: Letter, user: User) -> Text | None:
    """Nothing, if they have come, or were removed, since it was asked for."""
    campaign, by = letter.campaign, letter.by
    if campaign is None or by is None or user.email != letter.address:
        return None
    link = members.invitation(user, by=by)
    if link is None or not user.memberships.filter(campaign=campaign).exists():
        return None
    address = f"{_link('join', *link)}?by={addresses.proof(user)}"
    days = settings.PASSWORD_RESET_TIMEOUT // 86_400
    body = (
        f"{by} invites you to “{campaign.name}” as {user}.\n\n"
        f"Open this link within {days} days, and choose a password:\n{address}\n\n"
        "It works once, and is yours alone: do not pass it on."
    )
    return letter.address, f"You are invited: {campaign.name}", _signed(body)


def _confirmation(letter: Letter, user: User) -> Text:
    address = _link("address-confirm", addresses.token_for(user, letter.address))
    body = (
        f"Is this your address, and {user} your account?\n\n"
        f"Then say so here, within a day, where you are signed in:\n{address}\n\n"
        "If not, there is nothing to do."
    )
    return letter.address, "Confirm your address", _signed(body)


def _link(name: str, *arguments: str) -> str:
    return f"{settings.SITE_URL}{reverse(name, args=arguments)}"


def _signed(body: str) -> str:
    return f"{body}\n\n-- \nevalsite at {settings.SITE_URL}\n"
