"""What an account may do on the whole site: changed by admins, and kept in the audit."""

from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction

from judging.accounts import QRELS
from judging.errors import UserError
from judging.models import User
from judging.services import audit, members

SAVED = ["is_organizer", "is_active", "is_superuser", "is_staff"]
EPOCHS = ["key_epoch", "session_epoch"]
ENDED: dict[str, Any] = {"ended": "all sessions and keys"}


@dataclass(frozen=True)
class Rights:
    """``active``: may sign in; what they said and were given stays either way."""

    creates: bool
    admin: bool
    active: bool

    @classmethod
    def of(cls, user: User) -> "Rights":
        return cls(user.is_organizer, user.is_superuser, user.is_active)


def change(*, user: User, by: User, rights: Rights) -> bool:
    """Gives an account these rights; returns whether they were others.

    Whoever is blocked is signed out, and their keys are void, also if they are let in again.

    Raises UserError as `checked` does.
    """
    with transaction.atomic():
        row = checked(user=user, by=by, rights=rights)
        before = Rights.of(row)
        if rights == before:
            return False
        row.is_organizer, row.is_active = rights.creates, rights.active
        row.is_superuser = row.is_staff = rights.admin
        row.save(update_fields=[*SAVED, *(EPOCHS if end_if_blocked(row, before) else [])])
        record(user=row, by=by, before=before)
    return True


def checked(*, user: User, by: User, rights: Rights) -> User:
    """The account, locked by the transaction around, if it may be given these rights.

    Nobody changes whether they are an admin or may sign in themselves, so that whoever changes
    rights still can, and an admin is left. Accounts of all admins are locked: of two who take
    each other's rights the second has none any more.

    Raises UserError ``own_rights`` (409), ``not_an_admin`` (403: no longer), ``no_account``
    (409: the name that grades from files stand under) or ``is_guest`` (409).
    """
    if user.username == QRELS:
        message = "Nobody signs in by this name: grades from uploaded qrels stand under it."
        raise UserError("no_account", message, status=409)
    locked = {
        row.pk: row
        for row in User.objects.select_for_update()
        .filter(pk__in=[user.pk, *_admins()])
        .order_by("pk")
    }
    acting, row = locked.get(by.pk), locked[user.pk]
    if acting is None or not (acting.is_superuser and acting.is_active):
        raise UserError("not_an_admin", "You are no admin any more.", status=403)
    before = Rights.of(row)
    if row.is_guest and (rights.creates or rights.admin):
        members.refuse_guest(row)
    if row == acting and (rights.admin, rights.active) != (before.admin, before.active):
        message = (
            "You cannot block yourself, nor end being an admin: another admin can. "
            "Nothing was changed."
        )
        raise UserError("own_rights", message, status=409)
    return row


def end_if_blocked(user: User, before: Rights) -> bool:
    """Whether the account is blocked by what is to be saved; nothing opens it then any more."""
    blocked = before.active and not user.is_active
    if blocked:
        user.end_access()
    return blocked


def record(*, user: User, by: User, before: Rights) -> None:
    """An entry of what the account may do now, if that is something else."""
    after = Rights.of(user)
    if after != before:
        ended = ENDED if before.active and not after.active else {}
        audit.record(
            "change rights",
            by=by,
            target=user,
            user=user.username,
            before=asdict(before),
            after=asdict(after),
            **ended,
        )


def _admins() -> list[int]:
    return list(User.objects.filter(is_superuser=True).values_list("pk", flat=True))
