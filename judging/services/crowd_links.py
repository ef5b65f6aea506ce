"""Crowd links: addresses by which many people come to judge who have no account."""

import re
import secrets
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from judging.errors import UserError
from judging.formats.problems import line_problem, text_problem
from judging.models import Campaign, CrowdLink, User
from judging.services import audit, campaigns

MOST_PEOPLE, MOST_JUDGMENTS, MOST_CONSENT, MOST_ANSWERS = 10_000, 10_000, 20_000, 20
MOST_MONEY = Decimal(10_000)
SIGNS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""Of codes and names: none looks like another."""
CODE_SIGNS = 10
WRITTEN_CODE = re.compile(r"[A-Za-z0-9_-]{1,40}")
MONEYS = ("per_judgment", "per_hour", "bonus", "out_pay")


@dataclass(frozen=True)
class LinkPlan:
    """What a crowd link is made of: see `CrowdLink`. Without a ``code`` for all one is made."""

    name: str
    most_people: int
    judgments: int
    consent: str
    expires: datetime | None = None
    least_left: int = 1
    question: str = ""
    answers: list[dict[str, Any]] = field(default_factory=list)
    code_kind: str = CrowdLink.CodeKind.ONE
    code: str = ""
    out_code: str = ""
    return_address: str = ""
    currency: str = "USD"
    per_judgment: Decimal = Decimal(0)
    per_hour: Decimal = Decimal(0)
    least_minutes: int = 0
    bonus: Decimal = Decimal(0)
    bonus_above: int = 0
    out_pay: Decimal = Decimal(0)


def new_code(signs: int = CODE_SIGNS) -> str:
    return "".join(secrets.choice(SIGNS) for _ in range(signs))


def make(*, campaign: Campaign, by: User, plan: LinkPlan) -> CrowdLink:
    """A new link, open at once. Raises UserError ``link_invalid`` with the field at fault."""
    _check(plan)
    values = {each.name: getattr(plan, each.name) for each in fields(plan)}
    values["name"] = plan.name.strip()
    if plan.code_kind == CrowdLink.CodeKind.EACH:
        values["code"] = ""
    elif not plan.code:
        values["code"] = new_code()
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        token = secrets.token_urlsafe(24)
        row = CrowdLink.objects.create(campaign=campaign, created_by=by, token=token, **values)
        audit.record(
            "make crowd link",
            by=by,
            campaign=campaign,
            target=row,
            name=row.name,
            people=row.most_people,
            judgments=row.judgments,
        )
    return row


def close(*, link: CrowdLink, by: User) -> None:
    """Nobody new comes by it; who has begun goes on. UserError ``wrong_state`` (409)."""
    with transaction.atomic():
        if not CrowdLink.objects.filter(pk=link.pk, closed=None).update(closed=Now()):
            raise UserError("wrong_state", "The link is closed already.", status=409)
        audit.record(
            "close crowd link", by=by, campaign=link.campaign_id, target=link, name=link.name
        )


def reopen(*, link: CrowdLink, by: User) -> None:
    """People may come by it again. UserError ``wrong_state`` (409)."""
    with transaction.atomic():
        rows = CrowdLink.objects.filter(pk=link.pk).exclude(closed=None)
        if not rows.update(closed=None):
            raise UserError("wrong_state", "The link is open already.", status=409)
        audit.record(
            "reopen crowd link", by=by, campaign=link.campaign_id, target=link, name=link.name
        )


def _require(condition: bool, name: str, message: str) -> None:
    if not condition:
        raise UserError("link_invalid", message, field=name)


def _check(plan: LinkPlan) -> None:
    of_each = {"name": line_problem, "consent": text_problem, "question": text_problem}
    for name, problem_of in of_each.items():
        problem = problem_of(getattr(plan, name).replace("\r\n", "\n"))
        _require(problem is None, name, f"This text cannot be kept: {problem}.")
    _require(0 < len(plan.name.strip()) <= 100, "name", "Give a name of at most 100 characters.")
    most = f"Expected 1 to {MOST_CONSENT:,} characters: what people agree to."
    _require(0 < len(plan.consent.strip()) <= MOST_CONSENT, "consent", most)
    for name, low, high in (
        ("most_people", 1, MOST_PEOPLE),
        ("judgments", 1, MOST_JUDGMENTS),
        ("least_left", 1, MOST_JUDGMENTS),
        ("least_minutes", 0, 1440),
        ("bonus_above", 0, MOST_JUDGMENTS),
    ):
        inside = low <= getattr(plan, name) <= high
        _require(inside, name, f"Expected a whole number from {low:,} to {high:,}.")
    for name in MONEYS:
        fine = 0 <= getattr(plan, name) <= MOST_MONEY
        _require(fine, name, f"Expected an amount from 0 to {MOST_MONEY:,}.")
    ahead = plan.expires is None or plan.expires > timezone.now()
    _require(ahead, "expires", "Nobody could come: expected a time that is not over.")
    told = "Expected three capital letters, such as USD or EUR."
    _require(bool(campaigns.CURRENCY.fullmatch(plan.currency)), "currency", told)
    _check_question(plan)
    _check_codes(plan)


def _check_question(plan: LinkPlan) -> None:
    _require(len(plan.question) <= 500, "question", "Expected at most 500 characters.")
    if not plan.question.strip():
        _require(not plan.answers, "question", "There are answers: write the question to them.")
        return
    texts = [each["text"] for each in plan.answers]
    fine = all(0 < len(text.strip()) <= 200 and line_problem(text) is None for text in texts)
    told = "Each answer has 1 to 200 characters, in one line."
    _require(fine, "answers", told)
    several = 2 <= len(texts) <= MOST_ANSWERS and len(set(texts)) == len(texts)
    _require(several, "answers", f"Expected 2 to {MOST_ANSWERS} different answers.")
    lets_in = any(not each["out"] for each in plan.answers)
    _require(lets_in, "answers", "At least one answer must let people in.")


def _check_codes(plan: LinkPlan) -> None:
    kinds = CrowdLink.CodeKind.values
    _require(plan.code_kind in kinds, "code_kind", f"Expected {' or '.join(kinds)}.")
    told = "Expected at most 40 of A-Z, a-z, 0-9, - and _."
    for name in ("code", "out_code"):
        code = getattr(plan, name)
        _require(not code or bool(WRITTEN_CODE.fullmatch(code)), name, told)
    if plan.return_address:
        _require(_leads_back(plan.return_address), "return_address", RETURN_EXPECTED)


RETURN_EXPECTED = (
    "Expected an https address of at most 500 characters; {code} in it stands for the code."
)


def _leads_back(address: str) -> bool:
    """Whether browsers may be sent there: https, a host, no user name, nothing but plain signs.

    The code may stand anywhere behind the host.
    """
    if len(address) > 500 or not re.fullmatch(r"[!#-;=?-~]+", address) or "\\" in address:
        return False
    try:
        parts = urlsplit(address)
        fine = parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    braces = re.sub(r"\{code\}", "", address)
    host_is_plain = re.fullmatch(r"[A-Za-z0-9.:-]+", parts.netloc) is not None
    return fine and host_is_plain and "{" not in braces and "}" not in braces
