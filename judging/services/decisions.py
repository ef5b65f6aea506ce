"""What the organizer decides about pairs that wait for it. Recorded, and told in reports.

A draw is never dropped: a pair without a label gets a grade from the organizer, and a pair with
fewer labels than wanted is used with those it has (their mean is as unbiased as the mean of more).
"""

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from judging.errors import UserError
from judging.models import Assignment, Campaign, Decision, Job, Pair, User
from judging.services import audit, batches, campaigns, jobs, present
from judging.services.jobs import Progress, untold

CHUNK = 2000


def decide(*, pair: Pair, by: User, grade: int | None, reason: str) -> Decision:
    """Closes the pair: with ``grade`` if it has no judgment yet, as it is (None) if it has some.

    Raises UserError: ``grade_out_of_scale``, ``reason_missing``, ``pair_done`` (409), ``gone``
    (404).
    """
    _check(pair.max_grade, grade, reason)
    return _decide_many(Pair.objects.filter(pk=pair.pk), pair.campaign, by, grade, reason)[0]


def request_rest(*, campaign: Campaign, by: User, grade: int | None, reason: str) -> Job:
    """Has a worker give this grade to every unjudged pair (see decide_rest).

    With None it has those that are judged already, and want more labels, done as they are.

    Raises UserError as ``decide`` does, and ``rest_under_way`` (409) while the rest is being
    decided otherwise.
    """
    _check(campaign.max_grade, grade, reason)
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        _refuse_while_decided_otherwise(campaign, grade, reason)
        asked = "ask for rest" if grade is not None else "ask for labels there are"
        audit.record(asked, by=by, campaign=campaign, grade=grade, reason=reason[:500])
        data = {"by": by.pk, "grade": grade, "reason": reason}
        return jobs.request("decide-rest", campaign.pk, campaign=campaign, data=data)


def _refuse_while_decided_otherwise(campaign: Campaign, grade: int | None, reason: str) -> None:
    """Under the campaign's lock: whoever is told yes gets the grade that was asked for."""
    job = Job.objects.filter(kind="decide-rest", target=campaign.pk, state__in=Job.PENDING).first()
    if job is not None and (job.data["grade"], job.data["reason"]) != (grade, reason):
        given = job.data["grade"]
        how = "with the labels it has" if given is None else f"as grade {given}"
        message = (
            f"The rest is being decided {how} already, because:"
            f" {job.data['reason']}. Wait until that is done; it shows what is left then."
        )
        raise UserError("rest_under_way", message, status=409)


def rest(job: jobs.Running) -> None:
    """The job of request_rest. Run again it goes on with what is left."""
    decide_rest(
        campaign=Campaign.objects.get(pk=job.target),
        by=User.objects.get(pk=job.data["by"]),
        grade=job.data["grade"],
        reason=job.data["reason"],
        progress=job.report,
    )


def decide_rest(
    *, campaign: Campaign, by: User, grade: int | None, reason: str, progress: Progress = untold
) -> int:
    """Gives every unjudged, unassigned pair of the drawn batches this grade; returns how many.

    Opens the batches that wait, so that a census completes. For pairs known to be not relevant;
    preferences are left alone, as none of the campaign's grades answers them.

    With None, pairs of open batches that have labels, and that nobody is at, are done with those:
    which these are hangs on how many labels there are and never on what they say, and the mean of
    fewer is as unbiased as that of more.
    """
    _check(campaign.max_grade, grade, reason)
    while grade is not None and batches.open_next(campaign.pk):
        pass
    free = Q(held=0, other="") if grade is not None else Q(judged__gte=1, held=F("judged"))
    rows = Pair.objects.filter(free, campaign=campaign, decided=False)
    open_pairs = rows.filter(pk__in=batches.unfinished_pairs(campaign.pk))
    ids = list(open_pairs.order_by("pk").values_list("pk", flat=True))
    done = 0
    for start in range(0, len(ids), CHUNK):
        chunk = Pair.objects.filter(free, pk__in=ids[start : start + CHUNK])
        done += len(_decide_many(chunk, campaign, by, grade, reason, required=False))
        progress((start + CHUNK) / len(ids), f"{done:,} pairs decided")
    return done


def ask_again(*, pair: Pair, by: User) -> None:
    """Offers the pair once more to the assessors who skipped it."""
    with transaction.atomic():
        skipped = pair.assignments.filter(state=Assignment.State.SKIPPED)
        list(skipped.order_by("pk").select_for_update().values_list("pk", flat=True))
        again = {"state": Assignment.State.LAPSED, "skip_reason": "", "changed": Now()}
        count = skipped.update(**again)
        audit.record("ask again", by=by, campaign=pair.campaign_id, target=pair, assessors=count)


def _decide_many(
    pairs: QuerySet[Pair],
    campaign: Campaign,
    by: User,
    grade: int | None,
    reason: str,
    *,
    required: bool = True,
) -> list[Decision]:
    with transaction.atomic():
        batches.lock_pairs(pairs)
        allowed = pairs.filter(judged__gte=1) if grade is None else pairs.filter(judged=0)
        chosen = list(allowed.filter(decided=False, judged__lt=F("wanted")))
        if required and not chosen:
            present.refuse_if_gone(pairs, "This pair")
            raise UserError("pair_done", _cannot(grade), status=409)
        Pair.objects.filter(pk__in=[p.pk for p in chosen]).update(decided=True)
        # what rested on judgments that are excluded by now
        Decision.objects.filter(pair__in=chosen).delete()
        decisions = Decision.objects.bulk_create(_decision(p, by, grade, reason) for p in chosen)
        audit.record(
            "decide",
            by=by,
            campaign=campaign,
            target=chosen[0] if len(chosen) == 1 else None,
            pairs=len(chosen),
            grade=grade,
            reason=reason.strip()[:500],
        )
        batches.settle_all(p.pk for p in chosen)
    return decisions


def _check(max_grade: int, grade: int | None, reason: str) -> None:
    if grade is not None and not 0 <= grade <= max_grade:
        expected = f"Expected a whole number from 0 to {max_grade}."
        raise UserError("grade_out_of_scale", f"No such grade. {expected}", field="grade")
    if not reason.strip():
        message = "Say why: the report will state it."
        raise UserError("reason_missing", message, field="reason")


def _cannot(grade: int | None) -> str:
    if grade is None:
        return "This pair has no judgment to use. Give it a grade instead."
    return "This pair has judgments or a decision already. Use the judgments it has."


def _decision(pair: Pair, by: User, grade: int | None, reason: str) -> Decision:
    kind = Decision.Kind.AS_IS if grade is None else Decision.Kind.GRADE
    return Decision(pair=pair, kind=kind, grade=grade, reason=reason.strip()[:500], decided_by=by)
