"""All campaigns, people and work of the site, as an admin looks through them."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from estimation.work import NAMES
from judging.models import (
    ApiToken,
    Assignment,
    AuditEntry,
    Campaign,
    Job,
    Membership,
    Pair,
    User,
    WorkerHeartbeat,
)
from judging.workers import living

MOST_JOBS = 100
"""Of each state that are listed."""


@dataclass(frozen=True)
class SiteCampaign:
    """A campaign as the site sees it; ``judged`` counts judgments that stand."""

    pk: int
    slug: str
    name: str
    state: str
    archived: bool
    owner: str
    created: datetime
    judged: int
    last: datetime


def campaigns(words: str = "") -> QuerySet[Campaign]:
    """Those whose name, address or owner has the words, what changed last first."""
    entries = AuditEntry.objects.filter(campaign=OuterRef("pk")).order_by("-pk")
    rows = Campaign.objects.select_related("created_by").annotate(
        last=Coalesce(Subquery(entries.values("created")[:1]), "created")
    )
    if words:
        named = Q(name__icontains=words) | Q(slug__icontains=words)
        rows = rows.filter(named | Q(created_by__username__icontains=words))
    return rows.order_by("-last", "-pk")


def listed_campaigns(rows: list[Campaign]) -> list[SiteCampaign]:
    """A page of them with what is judged, in one query for all."""
    pairs = Pair.objects.filter(campaign__in=rows).order_by().values("campaign")
    judged = dict(pairs.annotate(n=Sum("judged")).values_list("campaign", "n"))
    return [
        SiteCampaign(
            pk=row.pk,
            slug=row.slug,
            name=row.name,
            state=row.state,
            archived=row.archived is not None,
            owner=row.created_by.get_username(),
            created=row.created,
            judged=judged.get(row.pk) or 0,
            last=getattr(row, "last", row.created),
        )
        for row in rows
    ]


@dataclass(frozen=True)
class ListedPerson:
    """An account; ``seen`` is when it last signed in, used a key, or did something that was kept.

    ``organizes`` and ``assesses``: names and addresses of campaigns. ``joined``: a password is set.
    """

    pk: int
    username: str
    admin: bool
    may_create: bool
    active: bool
    second_factor: bool
    joined: bool
    seen: datetime | None
    created: datetime
    organizes: list[tuple[str, str]]
    assesses: list[tuple[str, str]]
    judged: int


def people(words: str = "") -> QuerySet[User]:
    rows = User.objects.filter(username__icontains=words) if words else User.objects.all()
    return rows.order_by("username")


def listed_people(rows: list[User]) -> list[ListedPerson]:
    """A page of them, in one query for each of what is told beside the account."""
    judged = _last_and_count(rows)
    keys = ApiToken.objects.filter(user__in=rows).order_by().values("user")
    used = dict(keys.annotate(last=Max("last_used")).values_list("user", "last"))
    acts = AuditEntry.objects.filter(actor__in=rows).order_by().values("actor")
    acted = dict(acts.annotate(last=Max("created")).values_list("actor", "last"))
    roles: dict[tuple[int, str], list[tuple[str, str]]] = defaultdict(list)
    members = Membership.objects.filter(user__in=rows).order_by("campaign__name")
    for user, role, name, slug in members.values_list(
        "user", "role", "campaign__name", "campaign__slug"
    ):
        roles[user, role].append((name, slug))
    return [
        ListedPerson(
            pk=row.pk,
            username=row.get_username(),
            admin=row.is_superuser,
            may_create=row.is_organizer,
            active=row.is_active,
            second_factor=row.has_second_factor,
            joined=row.has_usable_password() or row.is_guest,
            seen=max(
                filter(
                    None,
                    (row.last_login, used.get(row.pk), acted.get(row.pk), judged[row.pk][0]),
                ),
                default=None,
            ),
            created=row.date_joined,
            organizes=roles[row.pk, Membership.Role.ORGANIZER],
            assesses=roles[row.pk, Membership.Role.ASSESSOR],
            judged=judged[row.pk][1],
        )
        for row in rows
    ]


def _last_and_count(rows: list[User]) -> dict[int, tuple[datetime | None, int]]:
    """When each of them judged last, and how much."""
    given = Assignment.objects.filter(assessor__in=rows, state=Assignment.State.JUDGED)
    counted = given.order_by().values("assessor").annotate(last=Max("changed"), n=Count("pk"))
    found: dict[int, tuple[datetime | None, int]] = defaultdict(lambda: (None, 0))
    for user, last, number in counted.values_list("assessor", "last", "n"):
        found[user] = (last, number)
    return found


@dataclass(frozen=True)
class SiteJob:
    """Work in the background; ``name`` says what it is, and ``due`` whether it could begin."""

    job: Job
    due: bool = True

    @property
    def name(self) -> str:
        return NAMES.get(self.job.kind, self.job.kind)


@dataclass(frozen=True)
class SeenWorker:
    name: str
    queues: str
    seen: datetime
    alive: bool


@dataclass(frozen=True)
class WorkOverview:
    """``counts`` by state, of all; of each state the first hundred are listed."""

    running: list[SiteJob]
    waiting: list[SiteJob]
    failed: list[SiteJob]
    counts: dict[str, int]
    workers: list[SeenWorker]


def work() -> WorkOverview:
    states = Job.objects.order_by().values("state").annotate(n=Count("pk"))
    rows = Job.objects.select_related("campaign").defer("data")
    return WorkOverview(
        running=_jobs(rows.filter(state=Job.State.RUNNING).order_by("started")),
        waiting=_jobs(rows.filter(state=Job.State.QUEUED).order_by("due")),
        failed=_jobs(rows.filter(state=Job.State.FAILED).order_by("-finished")),
        counts=dict(states.values_list("state", "n")),
        workers=_workers(),
    )


def _jobs(rows: QuerySet[Job]) -> list[SiteJob]:
    return [SiteJob(job) for job in rows[:MOST_JOBS]]


def _workers() -> list[SeenWorker]:
    alive = set(living().values_list("pk", flat=True))
    rows = WorkerHeartbeat.objects.order_by("name")
    return [SeenWorker(row.name, row.queues, row.seen, row.pk in alive) for row in rows]
