"""Deleting a campaign: for good, with all its rows and files, by a job that ends what it began.

Asked for, the campaign is there for nobody from that moment on, in one transaction: its state says
so (`judging.access`), its members are none, and its work is withdrawn, so that a worker in the
midst of it can write no more (`jobs.Running.fence`). Then rows go kind by kind, those before on
which they rest, some thousand at a time. Every step may be cut off, and is begun again: what is
gone is gone, and what somebody wrote in the last moment is found by the next turn.

The audit log of the site stays: who deleted what, and all that was done in the campaign before.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import Model, QuerySet

from judging import selectors
from judging.errors import UserError
from judging.models import (
    Assignment,
    AuditEntry,
    Batch,
    BatchPair,
    Campaign,
    CrowdGuest,
    CrowdLink,
    Decision,
    Document,
    Exclusion,
    GoldPair,
    Job,
    Judgment,
    KeptManners,
    KnownGrade,
    Letter,
    Membership,
    NormingAnswer,
    NormingComment,
    NormingPair,
    NormingPerson,
    NormingSession,
    Pair,
    QualityRules,
    SeenItem,
    SeniorGrade,
    Topic,
    Training,
    TrainingAnswer,
    TrainingPair,
    TrainingTry,
    Upload,
    User,
)
from judging.services import audit, campaigns, jobs
from judging.services.duplicates import COPY_KNOWN

DELETE = "delete-campaign"
CHUNK = 2000
AGAIN_SECONDS = 5
STILL_AT_WORK = "Somebody was still at work in it."
Rows = tuple[type[Model], str]
"""A kind of row, and the way from it to its campaign."""

OWN: tuple[Rows, ...] = (
    (Judgment, "assignment__campaign"),
    (Assignment, "campaign"),
    (Decision, "pair__campaign"),
    (SeniorGrade, "pair__campaign"),
    (SeenItem, "campaign"),
    (KeptManners, "campaign"),
    (Exclusion, "campaign"),
    (CrowdGuest, "link__campaign"),
    (CrowdLink, "campaign"),
    (Letter, "campaign"),
    (BatchPair, "batch__campaign"),
    (Batch, "campaign"),
    (NormingComment, "pair__session__campaign"),
    (NormingAnswer, "pair__session__campaign"),
    (NormingPerson, "session__campaign"),
    (NormingPair, "session__campaign"),
    (NormingSession, "campaign"),
    (TrainingAnswer, "attempt__campaign"),
    (TrainingTry, "campaign"),
    (TrainingPair, "campaign"),
    (Training, "campaign"),
    (GoldPair, "campaign"),
    (QualityRules, "campaign"),
    (Pair, "campaign"),
    (KnownGrade, "campaign"),
    (Document, "campaign"),
    (Topic, "campaign"),
)
LAST: tuple[Rows, ...] = ((Membership, "campaign"), (Job, "campaign"))
_before: list[Rows] = []
_afterwards: list[Callable[[], None]] = []


def goes_first(*rows: Rows, afterwards: Callable[[], None]) -> None:
    """Registers rows that rest on those of this side, in the order in which they go.

    ``afterwards`` is called in the transaction in which the campaign's own row goes.
    """
    _before[:] = rows
    _afterwards[:] = [afterwards]


@dataclass(frozen=True)
class Contents:
    """What goes with a campaign."""

    judgments: int
    people: int
    topics: int
    documents: int
    files: int


def contents(campaign: Campaign) -> Contents:
    """What somebody is about to delete."""
    judged = Judgment.objects.filter(assignment__pair__campaign=campaign)
    return Contents(
        judgments=judged.count(),
        people=judged.order_by().values("assessor").distinct().count(),
        topics=campaign.topics.count(),
        documents=selectors.document_count(campaign),
        files=campaign.uploads.count(),
    )


def why_not(campaign: Campaign) -> str:
    """What must end before the campaign may be deleted; or nothing."""
    if campaign.state in (Campaign.State.OPEN, Campaign.State.PAUSED):
        return "People may judge in this campaign. Close it first."
    if selectors.is_being_drawn(campaign):
        return "A round is being drawn right now. Wait until the draw is done."
    copied = Job.objects.filter(kind__in=(selectors.COPY, COPY_KNOWN), state__in=Job.PENDING)
    if any(data.get("campaign") == campaign.pk for data in copied.values_list("data", flat=True)):
        return "Its files are being copied to another campaign. Wait until they are."
    return ""


def _as_shown(name: str) -> str:
    """What can be told of a name on a page, and typed: no two spaces in a row, no line breaks, no
    ways of encoding the same letters."""
    return " ".join(unicodedata.normalize("NFC", name).split())


def request(*, campaign: Campaign, by: User, name: str) -> None:
    """Takes the campaign away from everybody, and has a worker remove it for good.

    ``name`` is the campaign's, as whoever asks has typed it. Raises UserError ``name_differs``,
    and ``in_use`` (409) where something must end first: `why_not`.
    """
    with transaction.atomic():
        now = campaigns.lock(campaign.pk)
        if _as_shown(name) != _as_shown(now.name):
            message = "This is not the name of the campaign. Type it as it is written above."
            raise UserError("name_differs", message, field="name")
        if why := why_not(now):
            raise UserError("in_use", why, status=409)
        found = contents(now)
        told = {"slug": now.slug, "name": now.name, **vars(found)}
        audit.record("delete campaign", by=by, campaign=now, target=now, **told)
        Campaign.objects.filter(pk=now.pk).update(state=Campaign.State.DELETING)
        _withdraw_work(now.pk)
        now.memberships.all().delete()
        jobs.request(DELETE, now.pk, data={"slug": now.slug, "name": now.name})


def has_deleted(user: User, slug: str) -> bool:
    """Whether they have deleted the campaign of this slug, and there is none now."""
    if Campaign.objects.filter(slug=slug).exclude(state=Campaign.State.DELETING).exists():
        return False
    told = AuditEntry.objects.filter(actor=user, action="delete campaign")
    return any(data.get("slug") == slug for data in told.values_list("data", flat=True))


def _withdraw_work(campaign: int) -> None:
    """What is under way writes no more, and nothing of it comes back."""
    for kind, target in Job.objects.filter(campaign=campaign).values_list("kind", "target"):
        jobs.withdraw(kind, target)


def delete(job: jobs.Running) -> None:
    """The job. Asked for anew, or taken over by another worker, it goes on where it is."""
    campaign = Campaign.objects.filter(pk=job.target, state=Campaign.State.DELETING).first()
    if campaign is None:  # gone by an earlier turn
        return
    steps = (*_before, *OWN)
    try:
        for at, (model, way) in enumerate(steps):
            job.report(at / len(steps), str(model._meta.verbose_name_plural))
            _delete_all(job, model._base_manager.filter(**{way: campaign.pk}))
        _delete_uploads(job, campaign)
        for model, way in LAST:
            _delete_all(job, model._base_manager.filter(**{way: campaign.pk}))
        _let_go_of_the_log(job, campaign)
        _delete_itself(job, campaign)
    except IntegrityError:  # somebody was just about to write: no one can begin to any more
        raise jobs.NotYet(AGAIN_SECONDS, STILL_AT_WORK) from None


def _delete_all(job: jobs.Running, rows: "QuerySet[Model]") -> None:
    """Some at a time, so that nobody waits long for the database; each step is done for ever."""
    while pks := list(rows.order_by("pk").values_list("pk", flat=True)[:CHUNK]):
        with transaction.atomic():
            job.fence_progress()
            some = rows.model._base_manager.filter(pk__in=pks)
            some._raw_delete(some.db)  # what rests on them is gone


def _delete_uploads(job: jobs.Running, campaign: Campaign) -> None:
    """Each file before its row: as long as the row is there, the file is known of."""
    for upload in Upload.objects.filter(campaign=campaign).order_by("pk").iterator(CHUNK):
        upload.file.delete(save=False)
        with transaction.atomic():
            job.fence_progress()
            Job.objects.filter(kind="upload", target=upload.pk).delete()
            same = Upload.objects.filter(pk=upload.pk)
            same._raw_delete(same.db)


def _let_go_of_the_log(job: jobs.Running, campaign: Campaign) -> None:
    """Entries stay, and name the campaign by what they tell of."""
    rows = AuditEntry.objects.filter(campaign=campaign).order_by("pk")
    while pks := list(rows.values_list("pk", flat=True)[:CHUNK]):
        with transaction.atomic():
            job.fence_progress()
            AuditEntry.objects.filter(pk__in=pks).update(campaign=None)


def _delete_itself(job: jobs.Running, campaign: Campaign) -> None:
    """Unless somebody has brought a row meanwhile; while it is locked, nobody can."""
    with transaction.atomic():
        job.fence()
        rows = Campaign.objects.filter(pk=campaign.pk)
        list(rows.select_for_update())
        every: tuple[Rows, ...] = (*_before, *OWN, (Upload, "campaign"), *LAST)
        if any(kind._base_manager.filter(**{way: campaign.pk}).exists() for kind, way in every):
            raise jobs.NotYet(AGAIN_SECONDS, STILL_AT_WORK)
        audit.record("campaign deleted", by=None, target=campaign, slug=campaign.slug)
        rows._raw_delete(rows.db)
        for act in _afterwards:
            act()
