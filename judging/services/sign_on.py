"""Sign-on by an OpenID provider: what it says of somebody, and which account that opens.

Authlib does the protocol (code flow with PKCE, state and nonce; the signature of the identity token
by the provider's keys) and is loaded by the first who signs on. Which account is whose is decided
here: the identity is the pair of issuer and subject, which the provider never gives to anybody
else. An address links an identity to an account once, if the provider says that it has verified the
address, and only where that can give nobody's account away: to one whose owner has confirmed the
same address here, or to one that was invited with it and has never been opened. An account that
somebody has a password of, and whose address was never confirmed, may be a trap that was laid out
for its owner: it is connected by who is signed in to it.
"""

import secrets
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import IntegrityError, transaction

from judging import names
from judging.errors import UserError
from judging.models import Identity, User
from judging.services import addresses, audit, letters, members

if TYPE_CHECKING:
    from authlib.integrations.django_client import DjangoOAuth2App
    from django.http import HttpRequest, HttpResponse

TIMEOUT_SECONDS = 10
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
"""Of signatures by keys of the provider's own: none that a client's secret could make."""
MOST_SUBJECT = 255


@dataclass(frozen=True)
class Claimed:
    """What the provider says of who signed on; ``address`` is empty unless it has verified it."""

    subject: str
    address: str = ""
    name: str = ""


def refuse_without() -> None:
    if not settings.OIDC_ISSUER:
        message = "This site has no sign-on: no provider is set up (OIDC_ISSUER)."
        raise UserError("no_sign_on", message, status=404)


@lru_cache(maxsize=1)
def _client(issuer: str, client: str, secret: str) -> "DjangoOAuth2App":
    from authlib.integrations.django_client import OAuth  # noqa: PLC0415

    made = OAuth()
    made.register(
        name="provider",
        client_id=client,
        client_secret=secret,
        server_metadata_url=f"{issuer}/.well-known/openid-configuration",
        client_kwargs={
            "scope": "openid email profile",
            "code_challenge_method": "S256",
            "default_timeout": TIMEOUT_SECONDS,
        },
    )
    return made.create_client("provider")


def provider() -> "DjangoOAuth2App":
    """Raises UserError ``provider_away`` (502) if it does not answer, or is another one."""
    refuse_without()
    client = _client(settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET)
    told = _asked(client.load_server_metadata)
    if str(told.get("issuer", "")).rstrip("/") != settings.OIDC_ISSUER:
        _client.cache_clear()
        raise _away(f"it says that it is {told.get('issuer')!r}")
    offered = told.get("id_token_signing_alg_values_supported") or ["RS256"]
    told["id_token_signing_alg_values_supported"] = [a for a in offered if a in ALGORITHMS]
    return client


def _asked(ask: Any) -> Any:
    """What the libraries raise on the way comes in many kinds; none of it is ours to mend."""
    from authlib.common.errors import AuthlibBaseError  # noqa: PLC0415
    from joserfc.errors import JoseError  # noqa: PLC0415

    try:
        return ask()
    except (AuthlibBaseError, JoseError, OSError, ValueError, KeyError, TypeError) as error:
        raise _away(f"{type(error).__name__}: {error}") from error


def _away(why: str) -> UserError:
    message = f"The sign-on did not work ({why[:200]}). Try again, or sign in with your password."
    return UserError("sign_on_failed", message, status=502)


def redirect_to(request: "HttpRequest", back: str) -> "HttpResponse":
    """To the provider; what it must answer to is kept in the session."""
    client = provider()
    sent: HttpResponse = _asked(lambda: client.authorize_redirect(request, back))
    return sent


def claimed(request: "HttpRequest") -> Claimed:
    """What the provider says, once signature, issuer, audience, time, state and nonce were checked.

    Raises UserError ``sign_on_failed`` (502).
    """
    client = provider()
    said = _asked(lambda: client.authorize_access_token(request)).get("userinfo")
    subject = said.get("sub") if said else None
    if not isinstance(subject, str) or not 0 < len(subject) <= MOST_SUBJECT:
        raise _away("it does not say who you are")
    address, verified = said.get("email"), said.get("email_verified") is True
    good = isinstance(address, str) and letters.address_problem(address) is None
    named = said.get("preferred_username")
    name = named if isinstance(named, str) else ""
    return Claimed(subject, address if verified and good else "", name)


def account(said: Claimed) -> User:
    """Whose account it opens. Raises UserError ``nobody_here`` or ``account_barred`` (403)."""
    try:
        user = _known(said) or _by_address(said) or _new(said)
    except IntegrityError:  # the same person, in another tab
        user = _known(said)
    if user is None:
        message = (
            "No account here belongs to you. Ask an organizer to invite you with the e-mail address"
            " that you sign on with; or sign in with your password, and connect it on your account"
            " page."
        )
        raise UserError("nobody_here", message, status=403)
    if not user.is_active or user.is_guest:
        raise UserError("account_barred", "This account is not open to you.", status=403)
    return user


def _known(said: Claimed) -> User | None:
    rows = Identity.objects.select_related("user")
    found = rows.filter(issuer=settings.OIDC_ISSUER, subject=said.subject).first()
    return found.user if found else None


def _by_address(said: Claimed) -> User | None:
    """The account that the address gives away to nobody but its owner."""
    if not said.address:
        return None
    with transaction.atomic():
        rows = User.objects.select_for_update(no_key=True).filter(
            email__iexact=said.address, is_active=True, is_guest=False
        )
        mine = [user for user in rows if user.address_confirmed]
        waiting = [user for user in rows if _never_opened(user)]
        user = mine[0] if mine else waiting[0] if len(waiting) == 1 else None
        if user is None or user.identities.filter(issuer=settings.OIDC_ISSUER).exists():
            return None
        return _linked(user, said)


def _never_opened(user: User) -> bool:
    """Invited, and no admin: nobody is one by an invitation."""
    barred = user.is_superuser or user.is_staff or user.is_organizer
    return not user.has_usable_password() and user.invited_by_id is not None and not barred


def _linked(user: User, said: Claimed) -> User:
    """Links of invitations end with it: the account has a password, which nobody knows."""
    Identity.objects.create(
        user=user, issuer=settings.OIDC_ISSUER, subject=said.subject, address=said.address
    )
    if not user.has_usable_password():
        user.set_password(secrets.token_urlsafe(32))
        user.save(update_fields=["password"])
        addresses.take(user, said.address)
    audit.record("link sign-on", by=user, target=user, issuer=settings.OIDC_ISSUER)
    return user


def _new(said: Claimed) -> User | None:
    """An account of its own, where the site wants that (OIDC_NEW_ACCOUNTS)."""
    if not (settings.OIDC_NEW_ACCOUNTS and said.address):
        return None
    if User.objects.filter(email__iexact=said.address).exists():
        return None
    for name in (said.name, said.address):
        if not name or names.problem(name) or User.objects.named(name):
            continue
        try:
            with transaction.atomic():
                user = User(username=names.plain(name), email=said.address)
                user.set_unusable_password()
                user.save()
                return _linked(user, said)
        except IntegrityError:
            continue
    return None


def connect(*, user: User, said: Claimed) -> None:
    """For who is signed in. Raises UserError ``is_guest`` or ``identity_taken`` (409)."""
    members.refuse_guest(user)
    try:
        with transaction.atomic():
            _linked(user, said)
    except IntegrityError:
        message = "This account, or the one you signed on with, is connected already."
        raise UserError("identity_taken", message, status=409) from None


def disconnect(*, user: User) -> None:
    with transaction.atomic():
        gone, _ = user.identities.filter(issuer=settings.OIDC_ISSUER).delete()
        if gone:
            audit.record("end sign-on", by=user, target=user, issuer=settings.OIDC_ISSUER)
