"""What guests of a crowd link are due, and what the organizer should look at before paying.

Minutes are told by the server's clock alone: from agreeing to the first answer, and from each
answer of the training, judgment or skip to the next; of a gap longer than `manners.PAUSE` that much
counts, as somebody was away. They are rounded to tenths and pay is worked out from the rounded
ones, so that everybody can work it out again. Pay and bonus of each guest are rounded to cents, and
sums are sums of these.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from judging.guests import SAID, SKIPPED
from judging.manners import PAUSE
from judging.models import Assignment, Campaign, CrowdGuest, CrowdLink, Judgment, TrainingAnswer

CENT, TENTH = Decimal("0.01"), Decimal("0.1")
SCREENED, FINISHED, LEFT, TIMED_OUT, WORKING = STATES = (
    "screened out", "finished", "left", "timed out", "working",
)  # fmt: skip
NAMED = 3


@dataclass(frozen=True)
class Due:
    """A guest and what they are due. ``alike`` says who may be the same person.

    ``state``: ``left`` were removed from the campaign, ``timed out`` have not answered for longer
    than a pair is kept for somebody.
    """

    guest: CrowdGuest
    state: str
    judgments: int
    skipped: int
    minutes: Decimal
    pay: Decimal
    bonus: Decimal
    last: datetime
    excluded: bool
    alike: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.guest.account.username if self.guest.account else ""

    @property
    def total(self) -> Decimal:
        return self.pay + self.bonus


@dataclass(frozen=True)
class Payments:
    """All guests of a link in the order in which they came."""

    rows: tuple[Due, ...]
    currency: str

    @property
    def judgments(self) -> int:
        return sum(row.judgments for row in self.rows)

    @property
    def skipped(self) -> int:
        return sum(row.skipped for row in self.rows)

    @property
    def minutes(self) -> Decimal:
        return sum((row.minutes for row in self.rows), Decimal(0))

    @property
    def pay(self) -> Decimal:
        return sum((row.pay for row in self.rows), Decimal("0.00"))

    @property
    def bonus(self) -> Decimal:
        return sum((row.bonus for row in self.rows), Decimal("0.00"))

    @property
    def total(self) -> Decimal:
        return self.pay + self.bonus

    @property
    def counts(self) -> dict[str, int]:
        """How many guests are in which state, by its name with underscores."""
        there = [row.state for row in self.rows]
        return {state.replace(" ", "_"): there.count(state) for state in STATES}


def links(campaign: Campaign) -> QuerySet[CrowdLink]:
    """The latest first, each with how many are ``finished``, were ``screened`` out."""
    done = Count("guests", filter=Q(guests__finished__isnull=False))
    out = Count("guests", filter=Q(guests__account=None, guests__isnull=False))
    return campaign.crowd_links.annotate(finished=done, screened=out).order_by("-pk")


def payments(link: CrowdLink) -> Payments:
    """In a fixed number of statements, however many guests there are."""
    guests = list(link.guests.select_related("account").order_by("pk"))
    accounts = [guest.account_id for guest in guests if guest.account_id]
    times, counted = _times(link), _counted(link)
    here = set(link.campaign.memberships.filter(user__in=accounts).values_list("user", flat=True))
    excluded = set(link.campaign.exclusions.filter(ended=None).values_list("assessor", flat=True))
    alike, now = _alike(link.campaign), timezone.now()
    rows = []
    for guest in guests:
        guest.link = link
        at = sorted(times[guest.account_id or 0])
        judged, skipped = counted.get(guest.account_id or 0, (0, 0))
        last = max([guest.agreed, *at])
        idle = now - last > timedelta(minutes=link.campaign.lease_minutes)
        state = _state(guest, judged, idle=idle, here=guest.account_id in here)
        minutes = _minutes([guest.agreed, *at]) if at else Decimal("0.0")
        pay, bonus = _dues(link, state, judged, minutes)
        is_excluded = guest.account_id in excluded
        told = tuple(alike[guest.pk])
        rows.append(
            Due(guest, state, judged, skipped, minutes, pay, bonus, last, is_excluded, told)
        )
    return Payments(tuple(rows), link.currency)


def _times(link: CrowdLink) -> dict[int, list[datetime]]:
    """When everybody learned, judged or skipped something; a correction is no further work."""
    first = Judgment.objects.filter(assessor__crowd_guest__link=link, revision=1)
    skips = Assignment.objects.filter(SKIPPED, assessor__crowd_guest__link=link)
    found = defaultdict(list)
    for who, at in first.values_list("assessor", "created"):
        found[who].append(at)
    for who, at in skips.values_list("assessor", "changed"):
        found[who].append(at)
    learned = TrainingAnswer.objects.filter(attempt__user__crowd_guest__link=link)
    for who, at in learned.values_list("attempt__user", "created"):
        found[who].append(at)
    return found


def _counted(link: CrowdLink) -> dict[int, tuple[int, int]]:
    """How many pairs everybody judged, and skipped."""
    theirs = Assignment.objects.filter(assessor__crowd_guest__link=link).order_by()
    rows = theirs.values("assessor").annotate(
        judged=Count("pk", filter=SAID), skipped=Count("pk", filter=SKIPPED)
    )
    return {row["assessor"]: (row["judged"], row["skipped"]) for row in rows}


def _state(guest: CrowdGuest, judged: int, *, idle: bool, here: bool) -> str:
    if guest.is_out:
        return SCREENED
    if guest.finished or judged >= guest.link.judgments:
        return FINISHED
    if not here:
        return LEFT
    return TIMED_OUT if idle else WORKING


def _minutes(times: Sequence[datetime]) -> Decimal:
    gaps = [(after - before).total_seconds() for before, after in itertools.pairwise(times)]
    seconds = sum(min(max(gap, 0.0), PAUSE) for gap in gaps)
    return Decimal(seconds / 60).quantize(TENTH, ROUND_HALF_UP)


def _dues(link: CrowdLink, state: str, judged: int, minutes: Decimal) -> tuple[Decimal, Decimal]:
    """Pay and bonus. The least time is for those who finished."""
    if state == SCREENED:
        return link.out_pay.quantize(CENT, ROUND_HALF_UP), Decimal("0.00")
    paid = max(minutes, Decimal(link.least_minutes)) if state == FINISHED else minutes
    pay = link.per_judgment * judged + link.per_hour * paid / 60
    bonus = link.bonus * max(0, judged - link.bonus_above)
    return pay.quantize(CENT, ROUND_HALF_UP), bonus.quantize(CENT, ROUND_HALF_UP)


def _alike(campaign: Campaign) -> dict[int, list[str]]:
    """Guests of the campaign, by any of its links, who share a device or a participant id."""
    found: dict[int, list[str]] = defaultdict(list)
    guests = CrowdGuest.objects.filter(link__campaign=campaign).select_related("account", "link")
    everybody = list(guests.order_by("pk"))
    for what in ("device", "participant"):
        groups = defaultdict(list)
        for guest in everybody:
            groups[getattr(guest, what)].append(guest)
        for shared, group in groups.items():
            if shared and len(group) > 1:
                for guest in group:
                    others = [other for other in group if other is not guest]
                    found[guest.pk].append(f"Same {what} as {_names(others, guest)}")
    return found


def _names(others: Iterable[CrowdGuest], beside: CrowdGuest) -> str:
    names = [
        (other.account.username if other.account else "somebody screened out")
        + (f" ({other.link})" if other.link_id != beside.link_id else "")
        for other in others
    ]
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
