"""Names for assessors in files that leave the site: always the same in a campaign, and of nobody.

They are made from the row id of the user and a secret of the campaign, so that neither a new user
name nor the order in which people joined changes or betrays one. Who is who stands in no file: it
is handed to organizers who ask for it, and the audit log says so.
"""

import hashlib
import secrets
from base64 import b32encode
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction

from judging.models import Campaign, Judgment, User
from judging.services import audit

LETTERS = 8
"""Of 32 each: among a thousand people two meet once in two million campaigns."""


@dataclass(frozen=True)
class Pseudonym:
    """Who is behind a pseudonym."""

    pseudonym: str
    username: str
    name: str


def pseudonyms(campaign: Campaign, users: Iterable[int]) -> dict[int, str]:
    """The pseudonyms of users of the campaign, by their row ids."""
    salt = _salt(campaign)
    return {user: _pseudonym(salt, campaign.pk, user) for user in users}


def by_name(campaign: Campaign, names: Iterable[str]) -> dict[str, str]:
    """The same by user names; that of nobody, which is empty, stays empty."""
    rows = User.objects.filter(username__in=list(names)).values_list("pk", "username")
    known = dict(rows)
    return {"": ""} | {known[pk]: name for pk, name in pseudonyms(campaign, known).items()}


def reveal(*, campaign: Campaign, by: User) -> list[Pseudonym]:
    """Who is who among all that have judged in the campaign; the audit log has who asked."""
    judged = Judgment.objects.filter(assignment__pair__campaign=campaign).order_by()
    users = User.objects.filter(pk__in=judged.values("assessor")).order_by("username")
    with transaction.atomic():
        audit.record("reveal names", by=by, campaign=campaign, target=campaign)
        names = pseudonyms(campaign, [user.pk for user in users])
    return [Pseudonym(names[u.pk], u.get_username(), u.get_full_name()) for u in users]


def _salt(campaign: Campaign) -> str:
    """The campaign's secret, made when it is asked for first: of two who do so, one wins."""
    rows = Campaign.objects.filter(pk=campaign.pk)
    rows.filter(salt="").update(salt=secrets.token_hex(16))
    return rows.values_list("salt", flat=True).get()


def _pseudonym(salt: str, campaign: int, user: int) -> str:
    digest = hashlib.sha256(f"{salt}/{campaign}/{user}".encode()).digest()
    return f"assessor-{b32encode(digest).decode()[:LETTERS].lower()}"
