"""How often something may be tried in a while, counted in the database by all processes together.

An origin is an IPv4 address or an IPv6 network of 64 bits, which is what one subscriber has at
least.
"""

import hashlib
import ipaddress

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import SignInTries

WINDOW_SECONDS = 15 * 60
IPV6_ORIGIN_BITS = 64


def origin(address: str) -> str:
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


def key(name: str, place: str) -> str:
    return hashlib.sha256(f"{place}\n{name}".encode("utf-8", "replace")).hexdigest()


def spend(key: str, most: int) -> None:
    """One try of a window's ``most``, taken before what is tried is looked at.

    Raises UserError ``too_many_tries`` (429, with ``retry_after`` seconds in its data).
    """
    rows = SignInTries.objects.filter(key=key)
    rows.filter(_is_over()).update(tries=0, since=Now())
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


def _is_over() -> Q:
    """A window that lies a whole one ahead was begun under a clock that has been set back."""
    past, ahead = seconds_from_now(-WINDOW_SECONDS), seconds_from_now(WINDOW_SECONDS)
    return Q(since__lt=past) | Q(since__gt=ahead)


def _forget_old() -> None:
    """Removes what no longer counts."""
    SignInTries.objects.filter(_is_over()).delete()
