"""A campaign begun anew from another: its settings, and on request the files it was made from.

The files are read again, as if they had been uploaded, by the job of every upload: one way for
data to go. Once they are, training and gold follow, which name topics and documents. No judgment
comes along, nor anything that rests on one.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.db import transaction

from judging import lessons
from judging.errors import UserError
from judging.formats.known_pairs import KnownPair
from judging.formats.problems import Problems
from judging.models import Campaign, GoldPair, Job, QualityRules, TrainingPair, Upload, User
from judging.selectors import COPY
from judging.services import (
    audit,
    campaigns,
    described,
    gold,
    jobs,
    quality,
    training,
    uploads,
)
from judging.services.training import TrainingPlan
from judging.signals import left_out_asked

COPY_KNOWN = "copy-known-pairs"
AGAIN_SECONDS = 5
BEING_READ = "Training and gold follow when all files are read."


def duplicate(*, campaign: Campaign, by: User, name: str, with_files: bool) -> Campaign:
    """A new campaign in draft, with ``by`` as its organizer; its files follow by a job.

    Raises UserError as `campaigns.create` does, and ``gone`` (404) while the other is deleted.
    """
    like = campaigns.plan_of(campaign)
    plan = replace(like, name=name, slug=campaigns.free_slug(name))
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        made = campaigns.create(by=by, plan=plan, like=like)
        audit.record("duplicate campaign", by=by, campaign=campaign, target=made, files=with_files)
        if campaign.run_fields:
            described.set_fields(campaign=made, by=by, names=campaign.run_fields)
        if QualityRules.objects.filter(campaign=campaign).exists():
            quality.set_rules(campaign=made, by=by, plan=quality.plan_of(campaign))
        if with_files:
            asked = {"campaign": campaign.pk, "by": by.pk}
            jobs.request(COPY, made.pk, campaign=made, data=asked)
            if campaign.training_pairs.exists() or campaign.gold_pairs.exists():
                jobs.request(COPY_KNOWN, made.pk, campaign=made, data=asked)
    return made


def copy_files(job: jobs.Running) -> None:
    """The job: stores the accepted files of the other campaign. Safe to run again at any point.

    A file that has been stored before, by its digest and name, is not stored again; the files of an
    archive are files by themselves. Runs that take part come along with what is said of them,
    whichever version that is; those that were withdrawn or replaced stay where they are.
    """
    made = Campaign.objects.get(pk=job.target)
    by = User.objects.get(pk=job.data["by"])
    accepted = Upload.objects.filter(campaign=job.data["campaign"], state=Upload.State.ACCEPTED)
    other = Campaign.objects.get(pk=job.data["campaign"])
    asked: Any = left_out_asked.send(sender=Campaign, campaign=other)
    left_out = {pk for _, told in asked for pk in told}
    files = accepted.exclude(kind=Upload.Kind.ARCHIVE).order_by("pk")
    rows = [row for row in files if row.pk not in left_out]
    for done, row in enumerate(rows):
        job.report(done / len(rows), row.name)
        if not made.uploads.filter(sha256=row.sha256, name=row.name).exists():
            _store_again(row, made, by)


def _store_again(row: Upload, made: Campaign, by: User) -> None:
    try:
        with row.file.open("rb") as file:
            uploads.store(
                campaign=made, by=by, file=file, name=row.name, kind=row.kind, about=row.about
            )
    except FileNotFoundError:
        raise UserError("file_gone", f"{row.name}: the site has lost this file.") from None
    except UserError as error:
        raise UserError(error.code, f"{row.name}: {error.message}") from error


def copy_known(job: jobs.Running) -> None:
    """The job: training and gold of the other campaign, with what was said about them there.

    Waits for the files; safe to run again at any point. Gold that is retired stays where it
    is, and so does what people are told of where it would go.
    """
    made = Campaign.objects.get(pk=job.target)
    other = Campaign.objects.get(pk=job.data["campaign"])
    by = User.objects.get(pk=job.data["by"])
    copying = Job.objects.filter(kind=COPY, target=made.pk, state__in=Job.PENDING)
    reading = made.uploads.filter(state__in=[Upload.State.STORED, Upload.State.READING])
    if copying.exists() or reading.exists():
        raise jobs.NotYet(AGAIN_SECONDS, BEING_READ)
    rows = other.training_pairs.select_related("topic")
    if taught := _new(made, rows):
        training.add(campaign=made, by=by, found=taught, problems=Problems(""))
    pairs = other.gold_pairs.filter(retired=None).select_related("pair__topic")
    if mixed := _new(made, pairs):
        gold.add(campaign=made, by=by, found=mixed, problems=Problems(""))
    plan = lessons.training_of(other)
    if made.training_pairs.exists():
        values = {name: getattr(plan, name) for name in ("obligatory", "threshold", "tries")}
        training.set_plan(campaign=made, by=by, plan=TrainingPlan(**values))
    if other.gold_every and made.gold_pairs.exists():
        gold.mix(campaign=made, by=by, every=other.gold_every)


def _new(made: Campaign, rows: Iterable[TrainingPair | GoldPair]) -> list[KnownPair]:
    """As a file has them; without those that are known there already, or whose topic did not
    come."""
    mixed = made.gold_pairs.values_list("pair__topic__topic_id", "pair__docno")
    known = {*mixed, *gold.told(made)}
    topics = set(made.topics.values_list("topic_id", flat=True))
    found: list[KnownPair] = []
    for row in rows:
        pair = row.pair if isinstance(row, GoldPair) else row
        topic, docno = pair.topic.topic_id, pair.docno
        if topic in topics and (topic, docno) not in known:
            grades = tuple(row.accepted)
            found.append(KnownPair(len(found) + 1, topic, docno, grades, row.reason))
    return found
