"""Reads that cross tables, as plain data. Pages, REST answers and reports share them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import check_password
from django.db.models import (
    Case,
    CharField,
    Count,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Now

from judging import golds, lessons
from judging.clock import seconds_from_now
from judging.guests import SAID, SKIPPED, is_full
from judging.models import (
    ApiToken,
    Assignment,
    Batch,
    BatchPair,
    Campaign,
    Decision,
    Document,
    Exclusion,
    IsWritten,
    Job,
    Judgment,
    Membership,
    SeniorGrade,
    Upload,
    User,
)
from judging.signals import work_to_come
from judging.statements import Slot, reads


def keys_of(user: User) -> QuerySet[ApiToken]:
    """The user's keys, latest first, each with its ``state``: works, expired, or ended.

    Ended: the password was changed since, or the account was blocked.
    """
    ended = When(~Q(epoch=F("user__key_epoch")), then=Value("ended"))
    expired = When(expires__lte=Now(), then=Value("expired"))
    state = Case(ended, expired, default=Value("works"), output_field=CharField())
    return ApiToken.objects.filter(user=user).annotate(state=state).order_by("-pk")


def campaigns_of(user: User) -> QuerySet[Campaign]:
    """The campaigns the user may see: all for an admin, else those of the user's memberships."""
    there = Campaign.objects.exclude(state=Campaign.State.DELETING)
    if user.is_superuser:
        return there
    mine = Membership.objects.filter(campaign=OuterRef("pk"), user=user)
    return there.filter(Exists(mine))


def job_of(kind: str, target: int) -> Job | None:
    return Job.objects.filter(kind=kind, target=target).first()


BULK_JOBS = {
    "judge-from-qrels": "Judging from the qrels",
    "decide-rest": "Deciding the rest",
}


def bulk_jobs(campaign: Campaign) -> list[tuple[str, Job]]:
    """Decisions about many pairs, asked for last: what is done, under way, or failed."""
    rows = Job.objects.filter(kind__in=BULK_JOBS, target=campaign.pk).order_by("-due")
    return [(BULK_JOBS[row.kind], row) for row in rows]


COPY = "copy-files"
DRAW = "draw"
"""Kinds of jobs: to copy another campaign's files, and to draw, which is the estimation side's."""


def is_drawn(campaign: Campaign) -> bool:
    """Whether something was drawn from the campaign, so that its material and scale are fixed.

    Batches in preparation do not count: whoever prepares them may yet give up.
    """
    return campaign.batches.exclude(state=Batch.State.PREPARING).exists()


def is_being_drawn(campaign: Campaign) -> bool:
    """Whether a draw was asked for and is neither done nor given up."""
    return Job.objects.filter(kind=DRAW, campaign=campaign, state__in=Job.PENDING).exists()


def documents(campaign: Campaign) -> QuerySet[Document]:
    """Documents of accepted uploads; those still being loaded are not there yet."""
    return campaign.documents.filter(upload__state=Upload.State.ACCEPTED)


def document_count(campaign: Campaign) -> int:
    """How many there are, by the index of uploads alone: rows with their texts are not read."""
    accepted = campaign.uploads.filter(state=Upload.State.ACCEPTED)
    return Document.objects.filter(upload__in=accepted).count()


def uploads(campaign: Campaign) -> list[tuple[Upload, Job | None]]:
    """Uploads, newest first, each with the job that reads it."""
    rows = list(campaign.uploads.select_related("created_by").defer("errors", "warnings"))
    jobs = {job.target: job for job in Job.objects.filter(kind="upload", campaign=campaign)}
    return [(row, jobs.get(row.pk)) for row in rows]


CANCELED = "canceled"
"""In the summary of a file whose reading somebody canceled: who."""


def refused() -> Q:
    """Files that somebody wanted in; a new version of a run is always checked at first. Not those
    whose reading somebody canceled."""
    wanted = Q(check_only=False) | Q(replaces__isnull=False)
    return Q(state=Upload.State.REJECTED) & wanted & ~Q(summary__has_key=CANCELED)


def _checked() -> Q:
    kinds = (Upload.Kind.TOPICS, Upload.Kind.DOCUMENTS, Upload.Kind.RUN)
    return Q(state=Upload.State.CHECKED, replaces__isnull=True, kind__in=kinds)


def is_being_copied(campaign: Campaign) -> bool:
    return Job.objects.filter(kind=COPY, target=campaign.pk, state__in=Job.PENDING).exists()


@dataclass(frozen=True)
class Material:
    """``uploads_checked``: good topics, documents and runs that were only checked, but for new
    versions; ``uploads_rejected``: of those that were to be taken in; ``copying``: more are to
    come."""

    topics: int
    documents: int
    known_grades: int
    uploads_pending: int
    uploads_rejected: int
    uploads_checked: int = 0
    copying: bool = False


def material(campaign: Campaign) -> Material:
    states = campaign.uploads.aggregate(
        pending=Count("pk", filter=Q(state__in=[Upload.State.STORED, Upload.State.READING])),
        rejected=Count("pk", filter=refused()),
        checked=Count("pk", filter=_checked()),
    )
    return Material(
        topics=campaign.topics.count(),
        documents=document_count(campaign),
        known_grades=campaign.known_grades.count(),
        uploads_pending=states["pending"],
        uploads_rejected=states["rejected"],
        uploads_checked=states["checked"],
        copying=is_being_copied(campaign),
    )


TO_COME = (Batch.State.WAITING, Batch.State.HELD)


@dataclass(frozen=True)
class BatchProgress:
    id: int
    number: int
    state: str
    pairs: int
    finished: int
    opened: datetime | None
    completed: datetime | None


def progress_of(batch: Batch) -> BatchProgress:
    """How many of its pairs are finished."""
    started = batch.state not in (Batch.State.PREPARING, Batch.State.WAITING)
    finished = batch.pair_count - batch.remaining if started else 0
    return BatchProgress(
        batch.pk,
        batch.number,
        batch.state,
        batch.pair_count,
        finished,
        batch.opened,
        batch.completed,
    )


def finished_ahead(batches: Sequence[BatchProgress]) -> dict[int, int]:
    """How many pairs of batches that were not opened yet have all their labels, by batch, as other
    batches asked for them before: of the first batches of a campaign nothing is asked."""
    to_come = [each.id for each in batches if each.state in TO_COME and each.opened is None]
    if not to_come or min(each.number for each in batches) == 1:
        return {}
    done = BatchPair.objects.filter(
        Q(pair__decided=True) | Q(pair__judged__gte=F("labels")), batch__in=to_come
    )
    counted = done.order_by().values("batch").annotate(count=Count("pk"))
    return dict(counted.values_list("batch", "count"))


@dataclass(frozen=True)
class OwnProgress:
    """How far one assessor is in a campaign."""

    judged: int
    judged_today: int
    skipped: int


def own_progress(campaign: Campaign, user: User) -> OwnProgress:
    mine = Assignment.objects.filter(assessor=user, campaign=campaign)
    day = seconds_from_now(-86400)
    counts = mine.aggregate(
        judged=Count("pk", filter=SAID),
        today=Count("pk", filter=SAID & Q(created__gte=day)),
        skipped=Count("pk", filter=SKIPPED),
    )
    return OwnProgress(counts["judged"], counts["today"], counts["skipped"])


@dataclass(frozen=True)
class OwnJudgment:
    assignment: int
    topic_id: str
    title: str
    docno: str
    other: str
    grade: int
    revision: int
    comment: str
    changed: datetime


def own_judgments(campaign: Campaign, user: User, limit: int = 100) -> list[OwnJudgment]:
    """The assessor's own judgments, latest first; theirs, whether they count or not."""
    current = given_judgments().filter(assessor=user, assignment__pair__campaign=campaign)
    rows = current.select_related("assignment__pair__topic").order_by("-assignment__changed", "-pk")
    return [own_judgment(row, row.assignment) for row in rows[:limit]]


def own_judgment(row: Judgment, assignment: Assignment) -> OwnJudgment:
    pair = assignment.pair
    return OwnJudgment(
        assignment=assignment.pk,
        topic_id=pair.topic.topic_id,
        title=pair.topic.title,
        docno=pair.docno,
        other=pair.other,
        grade=row.grade,
        revision=row.revision,
        comment=row.comment,
        changed=assignment.changed,
    )


@dataclass(frozen=True)
class TopicProgress:
    """The assessor's pairs of one topic in the open batches: judged, and still free for them."""

    judged: int
    left: int

    @property
    def total(self) -> int:
        return self.judged + self.left


def current_judgments() -> QuerySet[Judgment]:
    """Judgments that count: the latest revision of every assignment, but for excluded work."""
    return Judgment.objects.filter(revision=F("assignment__revision"))


def given_judgments() -> QuerySet[Judgment]:
    """The latest revision of every assignment, whether it counts or its assessor is excluded.

    One of the two numbers is 0; their sum can be looked up in an index, either of two cannot.
    """
    return Judgment.objects.filter(revision=F("assignment__revision") + F("assignment__set_aside"))


def exclusions(campaign: Campaign) -> QuerySet[Exclusion]:
    """Of assessors' work: those that hold, and those that were taken back; the latest first."""
    return campaign.exclusions.select_related("assessor", "decided_by", "ended_by")


def compares_alone(campaign: Campaign) -> bool:
    """Whether all that was drawn are two documents to compare; gold is not drawn."""
    drawn = campaign.pairs.all()
    return drawn.exists() and not drawn.filter(other="").exists()


def is_excluded(campaign: Campaign, user: User) -> bool:
    return bool(_EXCLUDED.rows(campaign=campaign.pk, user=user.pk))


def _excluded() -> QuerySet[Any, Any]:
    theirs = Exclusion.objects.filter(campaign=Slot("campaign"), assessor=Slot("user"), ended=None)
    return theirs.order_by().values_list("pk")[:1]


_EXCLUDED = reads(_excluded)


def is_held(campaign: Campaign, user: User) -> bool:
    """Whether they are handed nothing new until an organizer has looked at their work."""
    theirs = campaign.memberships.filter(user=user, role=Membership.Role.ASSESSOR)
    return theirs.filter(held__isnull=False).exists()


def commented(campaign: Campaign) -> QuerySet[Judgment]:
    """Judgments that say something, by the index of all that do: they are few."""
    said = Judgment.objects.filter(IsWritten("comment"))
    return given_judgments().filter(pk__in=said.values("pk"), assignment__pair__campaign=campaign)


def comments(campaign: Campaign) -> QuerySet[Judgment]:
    """Judgments that say something, latest first; of excluded work too."""
    named = commented(campaign).select_related("assignment__pair__topic", "assessor")
    return named.order_by("-assignment__changed", "-pk")


def decisions(campaign: Campaign) -> QuerySet[Decision]:
    """That hold: one that rested on judgments which are excluded now does not."""
    return Decision.objects.filter(pair__campaign=campaign, pair__decided=True).select_related(
        "pair__topic", "decided_by"
    )


def senior_grades(campaign: Campaign) -> QuerySet[SeniorGrade]:
    """Those in force, and those before them; the latest first."""
    rows = SeniorGrade.objects.filter(pair__campaign=campaign).order_by("-pk")
    return rows.select_related("pair__topic", "pair__campaign", "given_by", "ended_by")


@dataclass(frozen=True)
class GivenLabel:
    """One label of a pair: a judgment that counts, or what the organizer decided on it.

    The grade of a preference is 2 if ``Pair.docno`` is better, 1 equally good, 0 ``Pair.other``.
    """

    pair: int
    assessor: str
    grade: int
    decided: bool


def labels(pair_ids: QuerySet[Any, Any]) -> list[GivenLabel]:
    """All labels of the pairs (a query of their ids), in no particular order.

    A senior grade that counts is the only one. Databases collate differently: whoever needs an
    order sorts.
    """
    seniors = SeniorGrade.objects.filter(pair__in=pair_ids, counts=True)
    senior = dict(seniors.values_list("pair_id", "grade"))
    judged = current_judgments().filter(assignment__pair__in=pair_ids)
    rows = judged.values_list("assignment__pair_id", "assessor__username", "grade")
    given = Decision.objects.filter(pair__in=pair_ids, kind=Decision.Kind.GRADE)
    decided = {pair: grade or 0 for pair, grade in given.values_list("pair_id", "grade")} | senior
    return [GivenLabel(*row, decided=False) for row in rows if row[0] not in senior] + [
        GivenLabel(pair, "", grade, decided=True) for pair, grade in decided.items()
    ]


def members(campaign: Campaign) -> QuerySet[Membership]:
    """Members with how much they have judged here."""
    judged = Count(
        "user__assignments",
        filter=Q(
            user__assignments__campaign=campaign,
            user__assignments__state=Assignment.State.JUDGED,
        ),
    )
    rows = campaign.memberships.select_related("user").annotate(judged=judged)
    return rows.order_by("role", "user__username")


def free_places(assessor: Any, *, gold: bool) -> QuerySet[BatchPair]:
    """Places that the assessor, a row id or an expression for one, may take.

    ``gold``: whether the campaign mixes gold in; who met a document as gold does not get it again.
    """
    used = Assignment.objects.filter(pair=OuterRef("pair"), assessor=assessor)
    places = BatchPair.objects.filter(~golds.met(assessor)) if gold else BatchPair.objects.all()
    return places.filter(
        ~Exists(used.exclude(state=Assignment.State.LAPSED)),
        pair__decided=False,
        pair__held__lt=F("labels"),
    )


def empty_queue(campaign: Campaign, user: User | None = None) -> str:
    """Why there is nothing to judge: draft, paused, closed, excluded, looked (at), enough, nothing
    (drawn yet), held, others, chosen, halted, complete.

    ``excluded``: the user's work is; ``looked``: they wait until an organizer has looked at it;
    ``training``: they have not passed that yet;
    ``enough``: a guest has judged as many as they may; ``held``: what is left is kept back for a
    while; ``others``: pairs are left, but other assessors hold them or this one has answered them
    all; ``chosen``: none are left, and the next ones are being chosen; ``halted``: that has failed.
    """
    if campaign.state != Campaign.State.OPEN:
        return campaign.state
    if user is not None and (why := _nothing_for(campaign, user)):
        return why
    states = set(
        campaign.batches.exclude(state=Batch.State.PREPARING)
        .order_by()
        .values_list("state", flat=True)
        .distinct()
    )
    if not states:
        return "nothing"
    to_come = states - {Batch.State.COMPLETE, Batch.State.DROPPED}
    if to_come:
        return "held" if to_come == {Batch.State.HELD} else "others"
    answers = {answer for _, answer in work_to_come.send(sender=Campaign, campaign=campaign)}
    return next((why for why in ("chosen", "halted") if why in answers), "complete")


def _nothing_for(campaign: Campaign, user: User) -> str:
    """Why this user is handed nothing, whatever there is."""
    if is_excluded(campaign, user):
        return "excluded"
    if is_held(campaign, user):
        return "looked"
    if lessons.is_learning(campaign, user):
        return "training"
    return "enough" if is_full(user) else ""


def demo_sign_ins() -> list[tuple[str, str, str]]:
    """(user name, password, what it is for) of the demo accounts with which one can sign in."""
    offered = getattr(settings, "DEMO_SIGN_INS", [])
    active = User.objects.filter(username__in=[name for name, _, _ in offered], is_active=True)
    stored = dict(active.values_list("username", "password"))
    return [row for row in offered if row[0] in stored and _matches(row[1], stored[row[0]])]


@lru_cache(maxsize=16)
def _matches(password: str, encoded: str) -> bool:
    return check_password(password, encoded)
