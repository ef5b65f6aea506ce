"""Signing in with a password, and how often one may try.

Tries are counted in the database, so that all processes count together: per account and origin,
per origin over all accounts, and per account over all origins. An origin is an IPv4 address or an
IPv6 network of 64 bits, which is what one subscriber has at least. A success forgets the account's
tries from there and uses up none of the other two.
"""

import hashlib
import ipaddress

from django.contrib.auth import authenticate as check_credentials
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from judging import names
from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import SignInTries, User

WINDOW_SECONDS = 15 * 60
TRIES_PER_ACCOUNT = 10
TRIES_PER_ADDRESS = 100
TRIES_PER_NAME = 50
IPV6_ORIGIN_BITS = 64
EVERYWHERE = "everywhere"


def authenticate(*, username: str, password: str, address: str) -> User:
    """The active account with this name and password.

    Raises UserError ``sign_in_refused`` (401; it does not tell whether there is such an account)
    or ``too_many_tries`` (429, with ``retry_after`` seconds in its data).
    """
    name, origin = names.skeleton(username), _origin(address)
    here, everybody, everywhere = _key(name, origin), _key("", origin), _key(name, EVERYWHERE)
    _spend(here, TRIES_PER_ACCOUNT)
    _spend(everybody, TRIES_PER_ADDRESS)
    _spend(everywhere, TRIES_PER_NAME)
    user = check_credentials(username=username, password=password)
    if not isinstance(user, User):
        message = "User name and password do not fit together."
        raise UserError("sign_in_refused", message, status=401)
    SignInTries.objects.filter(key=here).delete()
    for key in (everybody, everywhere):
        SignInTries.objects.filter(key=key, tries__gt=0).update(tries=F("tries") - 1)
    return user


def _origin(address: str) -> str:
    """What counts as one place; an IPv4 address is itself, also when it is written as IPv6."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), IPV6_ORIGIN_BITS), strict=False))


def _key(name: str, origin: str) -> str:
    return hashlib.sha256(f"{origin}\n{name}".encode("utf-8", "replace")).hexdigest()


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
