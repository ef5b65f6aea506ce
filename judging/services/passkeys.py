"""Passkeys (WebAuthn): a key pair in somebody's device, whose private half never leaves it.

The browser signs a challenge that this server made for this session and takes once, together with
the address of the site that it shows; so nothing that was signed elsewhere, or before, opens
anything here. A device that checks who holds it (a finger, a PIN) stands for password and second
factor together; where the password was asked for already, presence is enough.

What browsers say is checked by the library fido2, which is loaded with the first passkey: it takes
12 MB.
"""

import base64
import hashlib
import ipaddress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac

from judging.errors import UserError
from judging.models import SecondFactor, User
from judging.services import factors

if TYPE_CHECKING:
    from fido2.server import Fido2Server
    from fido2.webauthn import AttestedCredentialData

Options = dict[str, Any]
State = dict[str, Any]
"""What the session keeps between the challenge and the answer."""
UNUSABLE = "passkeys_unusable"


def why_not() -> str:
    """Why no passkey can be used at the address of this site; empty where they can."""
    address = urlsplit(settings.SITE_URL)
    host = address.hostname or ""
    if address.scheme != "https" and host != "localhost":
        return "Browsers offer passkeys at https addresses alone (or at localhost)."
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return ""
    return "Browsers offer passkeys where a site has a name, not a number, for its address."


def _server() -> "Fido2Server":
    if told := why_not():
        raise UserError(UNUSABLE, told, status=409)
    from fido2.server import Fido2Server  # noqa: PLC0415
    from fido2.webauthn import PublicKeyCredentialRpEntity  # noqa: PLC0415

    party = PublicKeyCredentialRpEntity(name="evalsite", id=urlsplit(settings.SITE_URL).hostname)
    return Fido2Server(party, verify_origin=lambda origin: origin == _origin())


def _origin() -> str:
    """Of this site, as browsers say it: in small letters, and without the port of its scheme."""
    address = urlsplit(settings.SITE_URL)
    usual = {"https": 443, "http": 80}[address.scheme]
    port = "" if address.port in (None, usual) else f":{address.port}"
    return f"{address.scheme}://{address.hostname}{port}"


def begin_adding(user: User) -> tuple[Options, State]:
    """What the browser is asked for. Raises UserError ``passkeys_unusable`` (409)."""
    server = _server()
    entity = {"id": _handle(user), "name": user.get_username(), "displayName": user.get_username()}
    options, state = server.register_begin(
        entity,  # type: ignore[arg-type]
        credentials=[_credential(row) for row in _rows(user)],
        resident_key_requirement="preferred",  # type: ignore[arg-type]
        user_verification="preferred",  # type: ignore[arg-type]
    )
    return dict(options)["publicKey"], {**state, "user": user.pk}


def add(*, user: User, name: str, state: State | None, answer: Any) -> tuple[str, list[str]]:
    """Keeps the new passkey; returns its name, and recovery codes if there were none.

    Raises UserError ``passkey_wrong``, ``too_many_factors`` or ``passkey_taken`` (409).
    """
    if not state or state.get("user") != user.pk:
        raise _wrong()
    found = _checked(lambda: _server().register_complete(state, answer))
    data = found.credential_data
    with transaction.atomic():
        row = factors.lock_for_another(user)
        try:
            with transaction.atomic():
                factor = SecondFactor.objects.create(
                    user=row,
                    kind=factors.PASSKEY,
                    name=factors.free_name(row, name),
                    secret=base64.b64encode(data).decode(),
                    credential=_digest(data.credential_id),
                    counter=found.counter,
                )
        except IntegrityError:
            message = "This passkey is set up already."
            raise UserError("passkey_taken", message, status=409) from None
        return factor.name, factors.added(factor)


def begin_asking(user: User | None) -> tuple[Options, State]:
    """A challenge for the passkeys of an account; or, without one, for whoever has one here."""
    rows = _rows(user) if user else []
    needed = "discouraged" if user else "required"
    options, state = _server().authenticate_begin(
        credentials=[_credential(row) for row in rows] or None,
        user_verification=needed,  # type: ignore[arg-type]
    )
    return dict(options)["publicKey"], {**state, "user": user.pk if user else None}


def verify(*, state: State | None, answer: Any, pending: User | None) -> User:
    """Whose passkey answered the challenge. Raises UserError ``passkey_wrong`` (401).

    ``pending`` gave their password lately. A challenge of an account, which presence alone answers,
    is taken from its own passkeys while its password counts, and from nobody else. A signature
    counter that does not grow is that of a copy; passkeys that are kept on several devices have
    none, and say 0.
    """
    factor = _factor(answer)
    if not state or factor is None:
        raise _wrong()
    asked = state["user"]
    if asked is not None and not (pending and asked == pending.pk == factor.user_id):
        raise _wrong()
    server, credential = _server(), _credential(factor)
    _checked(lambda: server.authenticate_complete(state, [credential], answer))
    counter = _checked(lambda: _counter(answer))
    rows = SecondFactor.objects.filter(pk=factor.pk, user__is_active=True)
    grown = rows.filter(counter__lt=counter) if counter else rows.filter(counter=0)
    if not grown.update(counter=counter, last_used=Now()):
        raise _wrong()
    return factor.user


def _counter(answer: Any) -> int:
    from fido2.webauthn import AuthenticationResponse  # noqa: PLC0415

    return int(AuthenticationResponse.from_dict(answer).response.authenticator_data.counter)


def _factor(answer: Any) -> SecondFactor | None:
    """By the id of the credential, as base64 for addresses."""
    given = answer.get("rawId") if isinstance(answer, dict) else None
    if not isinstance(given, str):
        return None
    try:
        credential = base64.urlsafe_b64decode(given + "=" * (-len(given) % 4))
    except ValueError:
        return None
    rows = SecondFactor.objects.select_related("user")
    return rows.filter(kind=factors.PASSKEY, credential=_digest(credential)).first()


def _checked(look: Any) -> Any:
    """What the library raises for an answer that is none comes in many kinds."""
    try:
        return look()
    except UserError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, LookupError) as error:
        raise _wrong() from error


def _wrong() -> UserError:
    message = "The passkey was not accepted. Try again, or use another way."
    return UserError("passkey_wrong", message, status=401)


def _rows(user: User) -> list[SecondFactor]:
    return list(user.factors.filter(kind=factors.PASSKEY).order_by("pk"))


def _credential(row: SecondFactor) -> "AttestedCredentialData":
    from fido2.webauthn import AttestedCredentialData  # noqa: PLC0415

    return AttestedCredentialData(base64.b64decode(row.secret))


def _digest(credential: bytes) -> str:
    return hashlib.sha256(credential).hexdigest()


def _handle(user: User) -> bytes:
    """What a device files the passkey under; it says nothing of the person."""
    return salted_hmac("judging.services.passkeys", str(user.pk), algorithm="sha256").digest()
