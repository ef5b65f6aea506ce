"""Second factors: codes of an app (RFC 6238), recovery codes, and what all kinds have in common.

A code is taken once: its time step goes up in the row by one conditional UPDATE, so that of two
processes that see the same code one finds it used. Tries are counted per account, from wherever
they come; whoever makes them knows the password already.
"""

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING

import pyotp
from django.conf import settings
from django.core import signing
from django.db import transaction
from django.db.models.functions import Now

from judging.errors import UserError
from judging.models import RecoveryCode, SecondFactor, SignInTries, User
from judging.services import audit, members, tries

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

STEP_SECONDS, STEPS_ASIDE = 30, 1
"""A clock may be off by a step."""
TRIES_OF_CODES = 5
RECOVERY_CODES, RECOVERY_BYTES = 10, 10
DRAFT_SECONDS = 3600
DRAFTS = "judging.services.factors.draft"
MOST_FACTORS = 10
CODES, PASSKEY = SecondFactor.Kind.CODES, SecondFactor.Kind.PASSKEY


@dataclass(frozen=True)
class Draft:
    """Codes that are not set up yet: nothing of it is stored. ``token`` has the secret, signed."""

    secret: str
    address: str
    token: str


def draft(*, user: User) -> Draft:
    """A secret for an app to hold. Raises UserError ``is_guest`` or ``codes_there`` (409)."""
    members.refuse_guest(user)
    if user.factors.filter(kind=CODES).exists():
        message = "Codes are set up already. Remove them first to use another app."
        raise UserError("codes_there", message, status=409)
    return _drafted(user, pyotp.random_base32())


def _drafted(user: User, secret: str) -> Draft:
    token = signing.dumps([user.pk, secret], salt=DRAFTS)
    address = pyotp.TOTP(secret).provisioning_uri(name=user.get_username(), issuer_name="evalsite")
    return Draft(secret, address, token)


def drafted(*, user: User, token: str) -> Draft:
    """What ``draft`` made within the hour. Raises UserError ``draft_invalid``."""
    try:
        pk, secret = signing.loads(token, salt=DRAFTS, max_age=DRAFT_SECONDS)
    except (signing.BadSignature, ValueError):
        pk, secret = None, ""
    if pk != user.pk:
        raise UserError("draft_invalid", "This took too long. Begin again.", status=409)
    return Draft(secret, _drafted(user, secret).address, token)


def set_up_codes(*, user: User, token: str, code: str) -> list[str]:
    """Codes of the app are asked for from now on, as the first one fits.

    Returns recovery codes if there were none. Raises UserError ``draft_invalid``, ``codes_there``
    (409) or ``code_wrong``.
    """
    secret = drafted(user=user, token=token).secret
    step = _step_of(secret, code)
    if step is None:
        raise UserError("code_wrong", "This is not the code the app shows now.", field="code")
    with transaction.atomic():
        row = _locked(user)
        if row.factors.filter(kind=CODES).exists():
            raise UserError("codes_there", "Codes are set up already.", status=409)
        name = free_name(row, "Authenticator app")
        factor = SecondFactor.objects.create(
            user=row, kind=CODES, name=name, secret=_sealed(secret), counter=step
        )
        return added(factor)


def added(factor: SecondFactor) -> list[str]:
    """Inside the transaction that made a factor, under the account's lock."""
    user = factor.user
    User.objects.filter(pk=user.pk).update(has_second_factor=True)
    audit.record("add second factor", by=user, target=user, kind=factor.kind, name=factor.name)
    return [] if user.recovery_codes.exists() else _new_recovery_codes(user)


def _locked(user: User) -> User:
    return User.objects.select_for_update(no_key=True).get(pk=user.pk)


def lock_for_another(user: User) -> User:
    """The account under its lock, if it may have one factor more. Raises UserError (409)."""
    row = _locked(user)
    members.refuse_guest(row)
    if row.factors.count() >= MOST_FACTORS:
        message = f"An account has at most {MOST_FACTORS} second factors. Remove one first."
        raise UserError("too_many_factors", message, status=409)
    return row


def free_name(user: User, name: str) -> str:
    """The name, with a number where another factor of the account has it, under its lock.

    It is not refused: the device keeps a passkey already when its name comes here.
    """
    taken = {each.casefold() for each in user.factors.values_list("name", flat=True)}
    names = chain([name[:100]], (f"{name[:90]} ({number})" for number in count(2)))
    return next(each for each in names if each.casefold() not in taken)


def remove(*, factor: SecondFactor, by: User) -> None:
    """Ends one; with the last, recovery codes go too. Raises UserError ``gone`` (404)."""
    with transaction.atomic():
        user = _locked(factor.user)
        gone, _ = SecondFactor.objects.filter(pk=factor.pk).delete()
        if not gone:
            raise UserError("gone", f"“{factor.name}” is no longer there.", status=404)
        _note_what_is_left(user)
        audit.record("remove second factor", by=by, target=user, kind=factor.kind, name=factor.name)


def _note_what_is_left(user: User) -> None:
    if not user.factors.exists():
        User.objects.filter(pk=user.pk).update(has_second_factor=False)
        user.recovery_codes.all().delete()


def take_off(*, user: User, by: User) -> int:
    """An admin removes all second factors of somebody who lost them; returns how many there were.

    Raises UserError ``not_an_admin`` (403), ``own_factors`` or ``no_factors`` (409).
    """
    with transaction.atomic():
        rows = User.objects.select_for_update().filter(pk__in=[user.pk, by.pk]).order_by("pk")
        found = {row.pk: row for row in rows}
        if not (found[by.pk].is_superuser and found[by.pk].is_active):
            raise UserError("not_an_admin", "You are no admin any more.", status=403)
        if user.pk == by.pk:
            message = "Remove your own on your account page, where you are asked who you are."
            raise UserError("own_factors", message, status=409)
        count, _ = SecondFactor.objects.filter(user=user).delete()
        if not count:
            raise UserError("no_factors", f"{user} has no second factor.", status=409)
        _note_what_is_left(found[user.pk])
        audit.record(
            "take off second factors", by=by, target=user, user=user.username, factors=count
        )
    return count


# ------------------------------------------------------------------------------ recovery codes


def renew_recovery_codes(*, user: User) -> list[str]:
    """New ones, told this once; earlier ones are void. Raises UserError ``no_factors`` (409)."""
    with transaction.atomic():
        row = _locked(user)
        if not row.has_second_factor:
            message = "Set up a second factor first: recovery codes stand in for it."
            raise UserError("no_factors", message, status=409)
        row.recovery_codes.all().delete()
        audit.record("renew recovery codes", by=user, target=user)
        return _new_recovery_codes(row)


def _new_recovery_codes(user: User) -> list[str]:
    codes = [_grouped(secrets.token_bytes(RECOVERY_BYTES)) for _ in range(RECOVERY_CODES)]
    rows = [RecoveryCode(user=user, digest=_digest(code)) for code in codes]
    RecoveryCode.objects.bulk_create(rows)
    return codes


def _grouped(random: bytes) -> str:
    letters = base64.b32encode(random).decode().lower()
    return "-".join(letters[place : place + 4] for place in range(0, len(letters), 4))


def _digest(code: str) -> str:
    letters = "".join(filter(str.isalnum, code)).lower()
    return hashlib.sha256(letters.encode()).hexdigest()


def unused_recovery_codes(user: User) -> int:
    return user.recovery_codes.filter(used=None).count()


# ------------------------------------------------------------------------------ being asked


def ask(*, user: User, code: str) -> None:
    """For programs that sign in: the code, where the account has a second factor.

    Raises UserError ``second_factor_needed`` (401), or what ``verify`` does.
    """
    if user.has_second_factor:
        if not code:
            message = "This account has a second factor: send the code of its app as `code`."
            raise UserError("second_factor_needed", message, status=401, field="code")
        verify(user=user, code=code)


def verify(*, user: User, code: str) -> None:
    """Takes a code of the app, or a recovery code, once.

    Raises UserError ``code_wrong`` (401) or ``too_many_tries`` (429).
    """
    key = tries.key(str(user.pk), "second factor")
    tries.spend(key, TRIES_OF_CODES)
    if not (_take_code(user, code) or _take_recovery_code(user, code)):
        message = "This code does not fit, or was used before. Wait for the next one."
        raise UserError("code_wrong", message, status=401, field="code")
    SignInTries.objects.filter(key=key).delete()


def _take_code(user: User, code: str) -> bool:
    factor = user.factors.filter(kind=CODES).first()
    secret = _opened(factor.secret) if factor else None
    step = _step_of(secret, code) if secret else None
    if factor is None or step is None:
        return False
    unused = SecondFactor.objects.filter(pk=factor.pk, counter__lt=step)
    return bool(unused.update(counter=step, last_used=Now()))


def _step_of(secret: str, code: str) -> int | None:
    """The time step, now or beside it, of which this is the code. All are looked at."""
    given = "".join(code.split())
    now = int(time.time()) // STEP_SECONDS
    totp = pyotp.TOTP(secret, interval=STEP_SECONDS)
    steps = range(now - STEPS_ASIDE, now + STEPS_ASIDE + 1)
    fits = [step for step in steps if pyotp.utils.strings_equal(totp.generate_otp(step), given)]
    return fits[0] if fits else None


def _take_recovery_code(user: User, code: str) -> bool:
    rows = RecoveryCode.objects.filter(user=user, digest=_digest(code), used=None)
    with transaction.atomic():
        taken = bool(rows.update(used=Now()))
        if taken:
            audit.record("use recovery code", by=user, target=user)
    return taken


# ------------------------------------------------------------------------------ the secret


def _sealed(secret: str) -> str:
    return _fernet().encrypt(secret.encode()).decode()


def _opened(sealed: str) -> str | None:
    """None where the site has another key than it had: then no code fits."""
    from cryptography.fernet import InvalidToken  # noqa: PLC0415  (10 MB, where codes are used)

    try:
        return _fernet().decrypt(sealed.encode()).decode()
    except InvalidToken:
        return None


def _fernet() -> "Fernet":
    """With a key of its own, made of the site's."""
    from cryptography.fernet import Fernet  # noqa: PLC0415

    key = hmac.digest(settings.SECRET_KEY.encode(), b"judging.services.factors", "sha256")
    return Fernet(base64.urlsafe_b64encode(key))


# ------------------------------------------------------------------------------ who must have one


def is_asked_for(user: User) -> bool:
    """Whether the site wants a second factor of this account, which has none."""
    wanted: Iterable[str] = settings.SECOND_FACTOR_FOR
    if not wanted or user.has_second_factor or user.is_guest:
        return False
    if user.is_superuser or user.is_staff:
        return True
    return "organizers" in wanted and (
        user.is_organizer or user.memberships.filter(role="organizer").exists()
    )


def refuse_without(user: User) -> None:
    """Raises UserError ``second_factor_wanted`` (403) for those of whom the site wants one."""
    if is_asked_for(user):
        message = "This site wants a second factor of you. Set one up on the account page first."
        raise UserError("second_factor_wanted", message, status=403)
