"""Judging from qrels that the organizer brought along.

The grades are recorded as the judgments of one more assessor, an account nobody can sign in to.
Which pairs have a known grade was settled before the draw, so answering all of them at once picks
nothing by its value; pairs without one stay with the assessors or the organizer's decision.
"""

from typing import Any

from django.db import connection, transaction
from django.db.models import F, OuterRef, QuerySet, Subquery

from judging.accounts import QRELS
from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import Assignment, Campaign, Job, Judgment, KnownGrade, Pair, User
from judging.qrels_left import qrels_left
from judging.services import audit, batches, bulk, jobs
from judging.services.jobs import Progress, untold

CHUNK = 2000


def request(*, campaign: Campaign, by: User) -> Job:
    """Has a worker judge from the qrels (see answer).

    Raises UserError ``campaign_not_open`` (409), ``scale_changed`` (409).
    """
    _refuse_unless_open(campaign)
    _refuse_of_another_scale(campaign)
    with transaction.atomic():
        audit.record("ask for qrels", by=by, campaign=campaign)
        data = {"by": by.pk}
        return jobs.request("judge-from-qrels", campaign.pk, campaign=campaign, data=data)


def judge(job: jobs.Running) -> None:
    """The job of request. Run again it goes on with what is left, which its note tells."""
    campaign = Campaign.objects.get(pk=job.target)
    done = answer(campaign=campaign, by=User.objects.get(pk=job.data["by"]), progress=job.report)
    judged = f"{done:,} pair{'' if done == 1 else 's'} judged. {qrels_left(campaign).said}"
    job.report(1.0, judged.strip())


def answer(*, campaign: Campaign, by: User, progress: Progress = untold) -> int:
    """Judges every free pair of the drawn batches whose grade is known; returns how many.

    Raises UserError as ``request`` does.
    """
    _refuse_unless_open(campaign)
    _refuse_of_another_scale(campaign)
    while batches.open_next(campaign.pk):
        pass
    assessor = _assessor()
    ids = list(_answerable(campaign, assessor).order_by("pk").values_list("pk", flat=True))
    done = 0
    for start in range(0, len(ids), CHUNK):
        done += _answer_chunk(campaign, assessor, by, ids[start : start + CHUNK])
        progress((start + CHUNK) / len(ids), f"{done:,} pairs judged")
    return done


def _refuse_unless_open(campaign: Campaign) -> None:
    if campaign.state != Campaign.State.OPEN:
        raise UserError("campaign_not_open", "Open the campaign for judging first.", status=409)


def _refuse_of_another_scale(campaign: Campaign) -> None:
    """Qrels may have been read before the scale became what it is."""
    rows = campaign.known_grades.filter(grade__gt=campaign.max_grade).select_related("upload")
    if row := rows.order_by("-grade", "pk").first():
        message = (
            f"{row.upload} has grades up to {row.grade}, but the scale goes to"
            f" {campaign.max_grade} now. Remove it, and upload qrels of this scale."
        )
        raise UserError("scale_changed", message, status=409)


def _assessor() -> User:
    user, created = User.objects.get_or_create(
        username=QRELS, defaults={"is_active": False, "first_name": "Imported qrels"}
    )
    if created:
        user.set_unusable_password()
        user.save()
    return user


def _answerable(campaign: Campaign, assessor: User) -> QuerySet[Pair]:
    """Ordinary pairs only: two known grades do not say which document somebody would prefer."""
    known = KnownGrade.objects.filter(
        campaign=campaign, topic=OuterRef("topic"), docno=OuterRef("docno")
    )
    return (
        Pair.objects.filter(campaign=campaign, other="", decided=False, held__lt=F("wanted"))
        .filter(pk__in=batches.unfinished_pairs(campaign.pk))
        .exclude(assignments__assessor=assessor)
        .annotate(grade=Subquery(known.values("grade")[:1]))
        .filter(grade__isnull=False)
    )


def _answer_chunk(campaign: Campaign, assessor: User, by: User, ids: list[int]) -> int:
    with transaction.atomic():
        batches.lock_pairs(Pair.objects.filter(pk__in=ids))
        chosen: Any = _answerable(campaign, assessor).filter(pk__in=ids).order_by("pk")
        grades: dict[int, int] = dict(chosen.values_list("pk", "grade"))
        pairs = list(grades)
        Pair.objects.filter(pk__in=pairs).update(held=F("held") + 1, judged=F("judged") + 1)
        _record(campaign, assessor, grades)
        audit.record("judge from qrels", by=by, campaign=campaign, pairs=len(pairs))
        batches.settle_all(pairs)
        batches.tell_of_labels(pairs)
    return len(pairs)


def _record(campaign: Campaign, assessor: User, grades: dict[int, int]) -> None:
    """The grades of pairs as judgments of the assessor; qrels may have a hundred thousand."""
    now = User.objects.values_list(seconds_from_now(0), flat=True).get(pk=assessor.pk)
    held = {"pair": list(grades), "assessor": assessor.pk}
    state = {
        "campaign": campaign.pk, "state": Assignment.State.JUDGED, "revision": 1, "skip_reason": "",
    }  # fmt: skip
    ended = {"lease_until": connection.ops.adapt_datetimefield_value(now)}
    given = {"grade": list(grades.values())}
    bulk.insert(Assignment, held | given | state | ended)
    ids = bulk.find(Assignment, held)
    said = given | {"key": [f"qrels-{pk}" for pk in ids], "comment": ""}
    by = {"assessor": assessor.pk, "max_grade": campaign.max_grade}
    bulk.insert(Judgment, {"assignment": ids} | by | said)
