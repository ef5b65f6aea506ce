"""Many people at once, and links that are handed out anew: by letters, or to be passed on by hand.

A list is checked as a whole first. Where a line of it cannot be taken, all that is wrong is told by
line, and nobody is added; nor is anybody where something changes between the check and the end.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from judging import names
from judging.accounts import QRELS, User
from judging.errors import UserError
from judging.models import Campaign, Letter, Membership
from judging.services import audit, campaigns, letters, members

MOST = 500
"""People in a list."""
MOST_CHARACTERS = 200_000
COLUMNS = {
    **dict.fromkeys(("name", "user", "username", "user name", "login"), "username"),
    **dict.fromkeys(("address", "email", "e-mail", "mail", "email address"), "address"),
    "role": "role",
}
"""What headings of a table are called, and what stands below them."""
ROLES = Membership.Role.values
FIELDS = ("username", "role")


@dataclass(frozen=True)
class AskedFor:
    """Somebody who is asked for; ``number`` is that of the line, from 1."""

    number: int
    username: str
    role: str
    address: str = ""


def expiry() -> datetime:
    """Until when a link works that is shown now."""
    return timezone.now() + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)


def read(text: str, role: str) -> tuple[list[AskedFor], list[dict[str, Any]]]:
    """The people of a list or CSV, one a line, and what is wrong with its lines.

    A line is a name or an e-mail address, and after a comma, a semicolon or a tab possibly an
    address and a role; without one it is ``role``. Below a line of headings cells are what these
    say, in any order, and columns of other names are passed over, as empty lines are.
    """
    lines: list[AskedFor] = []
    problems: list[dict[str, Any]] = []
    order: list[str] | None = None
    for number, given in enumerate(text.lstrip("\ufeff").splitlines(), start=1):
        cells = _cells(given)
        if not any(cells):
            continue
        if number == 1 and cells[0].casefold() in COLUMNS:
            order = [COLUMNS.get(cell.casefold(), "") for cell in cells]
            continue
        named, told = _by_heading(cells, order) if order else _by_kind(cells)
        if told:
            problems.append(_problem(number, "role", told))
        else:
            lines.append(_asked_for(number, named, role))
    return lines, problems


Named = dict[str, str]


def _asked_for(number: int, named: Named, role: str) -> AskedFor:
    """Who is given an address alone is called by it."""
    address = named.get("address", "")
    name = named.get("username", "") or address
    if "@" in name and not address and letters.address_problem(name) is None:
        address = name
    return AskedFor(number, name, named.get("role", "").casefold() or role, address)


def _by_heading(cells: list[str], order: list[str]) -> tuple[Named, str]:
    named = {name: cell for name, cell in zip(order, cells, strict=False) if name and cell}
    if named.get("role", "").casefold() not in ("", *ROLES):
        return named, f"Expected a role: {' or '.join(ROLES)}."
    return named, ""


def _by_kind(cells: list[str]) -> tuple[Named, str]:
    """Without headings: a name first, then what is a role or looks like an address."""
    named = {"username": cells[0]}
    for cell in filter(None, cells[1:]):
        kind = "role" if cell.casefold() in ROLES else "address" if "@" in cell else ""
        if not kind or kind in named:
            expected = f"nothing, an e-mail address, or a role: {' or '.join(ROLES)}"
            return named, f"After the name expected {expected}. One person a line."
        named[kind] = cell
    return named, ""


def _cells(line: str) -> list[str]:
    mark = next((sign for sign in "\t;," if sign in line), ",")
    try:
        (cells,) = csv.reader([line], delimiter=mark, strict=True) if line.strip() else ([""],)
    except csv.Error:
        return [line.strip()]
    return [cell.strip() for cell in cells]


def _problem(line: int | None, field: str | None, message: str) -> dict[str, Any]:
    return {"line": line, "field": field, "message": message}


def invite_many(
    *, campaign: Campaign, by: User, text: str, role: str, leave_out_members: bool = False
) -> list[Membership]:
    """Makes all people of a list members; returns the new memberships in the order of the list.

    With ``leave_out_members`` those who are members in that role already are passed over; without,
    they are problems as others are. Raises UserError ``role_unknown``, or ``people_invalid`` with
    ``errors`` by line: nobody has been added then.
    """
    if role not in ROLES:
        expected = " or ".join(ROLES)
        raise UserError("role_unknown", f"No such role. Expected {expected}.", field="role")
    if len(text) > MOST_CHARACTERS:
        message = f"The list is longer than {MOST_CHARACTERS:,} characters. Divide it."
        raise UserError("people_invalid", message, field="people")
    lines, problems = read(text, role)
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        known = _members(campaign)
        if leave_out_members:
            lines = [line for line in lines if (_same(line), line.role) not in known]
        problems += _problems(lines, known)
        _refuse(lines, problems, leave_out_members=leave_out_members)
        made = _add_all(campaign, by, lines)
        count = len(made)
        audit.record("invite many", by=by, campaign=campaign, people=count)
    return made


def _same(line: AskedFor) -> str:
    return names.same(line.username)


def _members(campaign: Campaign) -> set[tuple[str, str]]:
    rows = campaign.memberships.values_list("user__username", "role")
    return {(names.same(name), role) for name, role in rows}


def _problems(lines: Sequence[AskedFor], known: set[tuple[str, str]]) -> list[dict[str, Any]]:
    """What is wrong with names, each by itself and beside the others and the members."""
    found = []
    first: dict[str, AskedFor] = {}
    for line in lines:
        told = names.problem(line.username)
        key = names.skeleton(line.username)
        if told is None and key == QRELS:
            told = "This name stands for grades from uploaded qrels. Choose another one."
        if told is None and (_same(line), line.role) in known:
            told = f"{line.username} is a member as {line.role} already."
        if told is None and key in first:
            other = first[key]
            alike = "is there already" if _same(other) == _same(line) else "looks the same"
            told = f"{line.username} comes twice: line {other.number} {alike}."
        first.setdefault(key, line)
        if told:
            found.append(_problem(line.number, "username", told))
        if line.address and (told := letters.address_problem(line.address)):
            found.append(_problem(line.number, "address", told))
    return found


def _refuse(
    lines: Sequence[AskedFor], problems: list[dict[str, Any]], *, leave_out_members: bool
) -> None:
    if not lines and not problems:
        message = "There is nobody in the list: write one name or address a line."
        if leave_out_members:
            message = "There is nobody in the list who is no member yet."
        raise UserError("people_invalid", message, field="people")
    if len(lines) > MOST:
        message = f"The list has {len(lines):,} people; at most {MOST} are taken at once."
        raise UserError("people_invalid", message, field="people")
    if problems:
        raise _invalid(problems)


def _invalid(problems: list[dict[str, Any]]) -> UserError:
    count = len(problems)
    told = "A line" if count == 1 else f"{count} lines"
    message = f"{told} of the list cannot be taken, so nobody has been added."
    ordered = sorted(problems, key=lambda problem: problem["line"] or 0)
    return UserError("people_invalid", message, field="people", data={"errors": ordered})


def _add_all(campaign: Campaign, by: User, lines: Sequence[AskedFor]) -> list[Membership]:
    """All or none: what one line raises takes back those before it."""
    made, problems = [], []
    for line in lines:
        try:
            with transaction.atomic():
                row, _ = members.add(
                    campaign=campaign,
                    by=by,
                    username=line.username,
                    role=line.role,
                    address=line.address,
                )
        except UserError as error:
            problems.append(_problem(line.number, "username", error.message))
        else:
            made.append(row)
    if problems:
        raise _invalid(problems)
    return made


def invite_again(*, membership: Membership, by: User) -> tuple[str, str]:
    """A new link for somebody who has no password yet; all earlier ones are void from now on.

    It is sent to them, where they have an address and the site sends e-mail.

    Raises UserError ``not_invited`` (409): the account has a password, or others invited it.
    """
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).get(pk=membership.user_id)
        if members.invitation(user, by=by) is None:
            message = (
                f"{user} has a password, or was invited by somebody else, who can give a new link."
            )
            raise UserError("not_invited", message, status=409)
        user.set_unusable_password()  # another one each time, on which links rest
        user.save(update_fields=["password"])
        audit.record(
            "invite again", by=by, campaign=membership.campaign_id, target=user, user=user.username
        )
        letters.invite(user=user, by=by, campaign=membership.campaign_id)
        link = members.invitation(user, by=by)
    if link is None:
        raise AssertionError("an account without a password can be invited")
    return link


def waiting(*, campaign: Campaign, by: User) -> list[Membership]:
    """Members who have no password yet and whose links ``by`` may hand out, by name."""
    rows = campaign.memberships.filter(user__is_active=True).select_related("user", "campaign")
    found = rows.order_by("user__username", "role")
    return [row for row in found if members.invitation(row.user, by=by) is not None]


def invite_all_again(*, campaign: Campaign, by: User) -> int:
    """New links for all who wait; returns how many people that are.

    Raises UserError ``nobody_waits`` (409).
    """
    rows = {row.user_id: row for row in waiting(campaign=campaign, by=by)}
    if not rows:
        raise UserError("nobody_waits", "Nobody waits for an invitation of yours.", status=409)
    with transaction.atomic():
        for row in rows.values():
            invite_again(membership=row, by=by)
    return len(rows)


def links(*, campaign: Campaign, by: User) -> list[tuple[Membership, tuple[str, str]]]:
    """Those who wait, each with (uid, token) of their link: one of somebody with two roles."""
    found = {row.user_id: row for row in reversed(waiting(campaign=campaign, by=by))}
    told = [(row, members.invitation(row.user, by=by)) for row in reversed(found.values())]
    return [(row, link) for row, link in told if link]


def letters_of(campaign: Campaign) -> dict[int, Letter]:
    """The last invitation that was sent, or shall be, to each member."""
    rows = campaign.letters.filter(kind=Letter.Kind.INVITATION).order_by("pk")
    return {row.user_id: row for row in rows if row.user_id}
