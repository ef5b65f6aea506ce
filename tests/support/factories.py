"""Small campaigns for tests, made through the services."""

import io
from collections.abc import Iterable
from datetime import timedelta

from django.core.files.base import File
from django.utils import timezone

from judging.models import (
    Assignment,
    Batch,
    Campaign,
    Job,
    Judgment,
    Membership,
    Pair,
    Topic,
    Upload,
    User,
)
from judging.services import assignments, batches, campaigns, jobs, judgments, members, uploads


def user(name: str, **values: object) -> User:
    return User.objects.create(username=name, **values)


def campaign(
    *, by: User | None = None, grades: int = 4, slug: str = "test", topics: int = 2
) -> Campaign:
    organizer = by or user(f"organizer-{slug}", is_organizer=True)
    plan = campaigns.CampaignPlan(
        name=slug,
        slug=slug,
        grades=[{"name": f"grade {grade}", "meaning": ""} for grade in range(grades)],
    )
    made = campaigns.create(by=organizer, plan=plan)
    upload = Upload.objects.create(
        campaign=made,
        kind=Upload.Kind.TOPICS,
        name="topics.tsv",
        file="none",
        size=0,
        sha256="",
        state=Upload.State.ACCEPTED,
        created_by=organizer,
    )
    Topic.objects.bulk_create(
        Topic(campaign=made, upload=upload, topic_id=f"t{n}", title=f"topic {n}")
        for n in range(1, topics + 1)
    )
    return made


def assessors(made: Campaign, *names: str) -> list[User]:
    role = Membership.Role.ASSESSOR
    return [
        members.add(campaign=made, by=made.created_by, username=name, role=role)[0].user
        for name in names
    ]


def released_batch(made: Campaign, docnos: Iterable[str], *, labels: int = 1) -> Batch:
    """A batch that waits, with every docno paired with every topic; the campaign is open."""
    topics = made.topics.order_by("topic_id")
    wanted = [batches.WantedPair(topic.pk, docno, labels) for topic in topics for docno in docnos]
    return _released(made, wanted)


def preference_batch(
    made: Campaign, documents: Iterable[tuple[str, str]], *, labels: int = 1
) -> Batch:
    """A batch that waits, with all the pairs of documents for every topic; the campaign is open."""
    topics = made.topics.order_by("topic_id")
    wanted = [
        batches.WantedPair(topic.pk, docno, labels, other)
        for topic in topics
        for docno, other in documents
    ]
    return _released(made, wanted)


def _released(made: Campaign, wanted: list[batches.WantedPair]) -> Batch:
    batch = batches.new_batch(made)
    batches.prepare(batch, wanted)
    batches.release([batch.pk])
    if made.state != Campaign.State.OPEN:
        campaigns.open_for_judging(campaign=made, by=made.created_by)
    return batch


def judged_batch(made: Campaign, docnos: Iterable[str], by: User) -> Batch:
    """A batch that ended, all of whose pairs somebody has judged: assignments without judgments."""
    batch = released_batch(made, docnos)
    pairs = Pair.objects.filter(batch_pairs__batch=batch)
    Assignment.objects.bulk_create(
        Assignment(
            campaign=made, pair=pair, assessor=by, state="judged", revision=1, grade=0,
            lease_until=timezone.now(),
        )
        for pair in pairs
    )  # fmt: skip
    pairs.update(judged=1, held=1)
    Batch.objects.filter(pk=batch.pk).update(state=Batch.State.COMPLETE, remaining=0)
    return batch


def judge_next(made: Campaign, by: User, grade: int, key: str | None = None) -> Pair | None:
    """Claims the assessor's next pair and judges it; None when there is none."""
    assignment = assignments.claim_next(campaign=made, by=by)
    if assignment is None:
        return None
    saying = judgments.Saying(grade=grade, key=key or f"k{assignment.pk}")
    judgments.record(assignment=assignment, by=by, saying=saying)
    return assignment.pair


def judged_apart(made: Campaign, seconds: float = 60.0) -> None:
    """As if everybody had needed so long for each judgment, by the server's clock."""
    for who in User.objects.filter(judgments__assignment__campaign=made).distinct():
        given = who.judgments.filter(assignment__campaign=made).order_by("-pk")
        for before, pk in enumerate(given.values_list("pk", flat=True)):
            at = timezone.now() - timedelta(seconds=seconds * before)
            Judgment.objects.filter(pk=pk).update(created=at)


def stored_upload(made: Campaign, content: bytes, *, name: str, kind: str | None = None) -> Upload:
    """An upload that has been read, in this process."""
    upload = stored(made, content, name=name, kind=kind)
    run_due_jobs()
    upload.refresh_from_db()
    return upload


def stored(made: Campaign, content: bytes, *, name: str, kind: str | None = None) -> Upload:
    """An upload that waits to be read."""
    file: File[bytes] = File(io.BytesIO(content), name=name)
    return uploads.store(campaign=made, by=made.created_by, file=file, name=name, kind=kind)


def run_due_jobs() -> None:
    """Does everything that is due, as a worker would."""
    while ids := list(Job.objects.filter(jobs.due()).order_by("pk").values_list("pk", flat=True)):
        for job_id in ids:
            jobs.run(job_id)
