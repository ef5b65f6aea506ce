"""Signing in with a password, and how often one may try.

Tries are counted in the database, so that all processes count together: per account and address,
and per address over all accounts. A success forgets the account's tries.
"""

import hashlib

from django.contrib.auth import authenticate as check_credentials
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import SignInTries, User

WINDOW_SECONDS = 15 * 60
TRIES_PER_ACCOUNT = 10
TRIES_PER_ADDRESS = 100


def authenticate(*, username: str, password: str, address: str) -> User:
    """The active account with this name and password.

    Raises UserError ``sign_in_refused`` (401; it does not tell whether there is such an account)
    or ``too_many_tries`` (429, with ``retry_after`` seconds in its data).
    """
    account, origin = _key(username.casefold(), address), _key("", address)
    _spend(account, TRIES_PER_ACCOUNT)
    _spend(origin, TRIES_PER_ADDRESS)
    user = check_credentials(username=username, password=password)
    if not isinstance(user, User):
        message = "User name and password do not fit together."
        raise UserError("sign_in_refused", message, status=401)
    SignInTries.objects.filter(key=account).delete()
    SignInTries.objects.filter(key=origin, tries__gt=0).update(tries=F("tries") - 1)
    return user


def _key(name: str, address: str) -> str:
    return hashlib.sha256(f"{address}\n{name}".encode()).hexdigest()


def _spend(key: str, most: int) -> None:
    """One try of a window's ``most``, taken before the password is looked at."""
    rows = SignInTries.objects.filter(key=key)
    rows.filter(since__lt=seconds_from_now(-WINDOW_SECONDS)).update(tries=0, since=Now())
    if rows.filter(tries__lt=most).update(tries=F("tries") + 1):
        return
    try:
        with transaction.atomic():
            SignInTries.objects.create(key=key, tries=1)
        _forget_old()
    except IntegrityError:
        if not rows.filter(tries__lt=most).update(tries=F("tries") + 1):
            message = f"Too many tries. Wait {WINDOW_SECONDS // 60} minutes."
            raise UserError(
                "too_many_tries", message, status=429, data={"retry_after": WINDOW_SECONDS}
            ) from None


def _forget_old() -> None:
    """Removes what no longer counts."""
    SignInTries.objects.filter(since__lt=seconds_from_now(-WINDOW_SECONDS)).delete()
