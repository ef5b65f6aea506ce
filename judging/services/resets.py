"""A new password for who forgot theirs, by a letter to the address that they confirmed.

Asking takes the same statements whether there is such an account or not: the worker that sends the
letter looks who it is. So neither what a page says nor how long it takes tells who has an account.
The link is good for an hour and for one use; the page that it opens changes nothing until its form
is sent, as scanners of mail open links too. A second factor is asked for afterwards as ever.
"""

from datetime import datetime

from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.encoding import force_bytes
from django.utils.http import base36_to_int, urlsafe_base64_decode, urlsafe_base64_encode

from judging.errors import UserError
from judging.models import Letter, User
from judging.services import audit, letters, tries

GOOD_FOR_SECONDS = 3600
ASKED_PER_ADDRESS, ASKED_PER_NAME = 20, 4


class ResetTokens(PasswordResetTokenGenerator):
    """Void once the password or the address is another one, or somebody has signed in, or the
    account was blocked."""

    key_salt = "judging.services.resets.ResetTokens"

    def _make_hash_value(self, user: User, timestamp: int) -> str:
        return f"{super()._make_hash_value(user, timestamp)}{user.session_epoch}"

    def check_token(self, user: User | None, token: str | None) -> bool:
        if user is None or not token or not super().check_token(user, token):
            return False
        made = base36_to_int(token.partition("-")[0])
        now = int((datetime.now() - datetime(2001, 1, 1)).total_seconds())  # noqa: DTZ001, DTZ005
        return now - made <= GOOD_FOR_SECONDS


tokens = ResetTokens()


def ask(*, who: str, address: str) -> None:
    """A letter to whoever has this name or this confirmed address, if anybody has.

    ``address`` is where the request comes from. Raises UserError ``no_mail`` (409) or
    ``too_many_tries`` (429).
    """
    letters.refuse_without_mail()
    who = who.strip()[: letters.MOST_ADDRESS]
    tries.spend(tries.key("reset", tries.origin(address)), ASKED_PER_ADDRESS)
    tries.spend(tries.key(who.casefold(), "reset"), ASKED_PER_NAME)
    with transaction.atomic():
        letters.write(Letter.Kind.RESET, address=who)


def reachable() -> QuerySet[User]:
    """Accounts that can be reset: their owners have shown that letters reach them."""
    return User.objects.filter(is_active=True, is_guest=False, address_confirmed=True)


def asked_for(who: str) -> User | None:
    named = User.objects.named(who)
    mine = Q(email__iexact=who) | Q(pk=named.pk if named else None)
    found = [user for user in reachable().filter(mine) if user.has_usable_password()]
    return min(found, key=lambda user: user.email.casefold() != who.casefold(), default=None)


def link(user: User) -> tuple[str, str]:
    return urlsafe_base64_encode(force_bytes(user.pk)), tokens.make_token(user)


def found(uid: str, token: str) -> User:
    """Whose password the link sets. Raises UserError ``reset_invalid`` (404)."""
    return _found(uid, token, reachable())


def _found(uid: str, token: str, users: QuerySet[User]) -> User:
    try:
        user = users.get(pk=int(urlsafe_base64_decode(uid)))
    except (ValueError, OverflowError, User.DoesNotExist):
        user = None
    if user is None or not tokens.check_token(user, token):
        message = "This link was used or is older than an hour. Ask for another one."
        raise UserError("reset_invalid", message, status=404)
    return user


def set_password(*, uid: str, token: str, password: str) -> User:
    """Sets it; sessions and keys end with the old one.

    Raises as ``found``, or UserError ``password_weak``.
    """
    try:
        validate_password(password, found(uid, token))
    except ValidationError as error:
        raise UserError("password_weak", " ".join(error.messages), field="password") from None
    with transaction.atomic():
        user = _found(uid, token, reachable().select_for_update(no_key=True))
        user.set_password(password)
        user.save(update_fields=["password"])
        audit.record("reset password", by=user, target=user)
        letters.notice(user, "Your password was changed by a link in an earlier letter.")
    return user
