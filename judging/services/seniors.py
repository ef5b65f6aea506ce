"""Senior grades: what an organizer says of a pair after looking at what assessors said.

Where the campaign says so, a senior grade is the pair's label in place of theirs; else it stands
beside them, and estimates know nothing of it. Nothing that was said is lost either way.

What is estimated then. Without senior grades the value v of a pair is the mean of what its
assessors say. With senior grades that count it is what the pair ends with: the senior grade where
one was given, that mean elsewhere. Which pairs get one may hang on their own labels, and on nothing
that was drawn beside them: then every pair of the pool has one value that it would end with, drawn
or not, the draw does not look at it, and the weighted sums are unbiased for the sum of *these*
values (each pair counts 1/π times with chance π). They are no longer about the mean assessor, so
that the page, the report and the audit log tell how many there are. An organizer who corrects the
pairs of one run and leaves those of another as they are makes numbers about his taste; nothing
computed from the labels could tell.

Locks: the campaign, then the pair, as an exclusion does. What holds for grades that are in force
when the campaign says otherwise is settled by `campaigns.amend`.
"""

from django.db import transaction
from django.db.models.functions import Now

from judging.errors import UserError
from judging.models import Campaign, Pair, SeniorGrade, User
from judging.services import audit, batches, campaigns
from judging.signals import judgment_corrected, seniors_changed

CHANGED = "Another senior grade was given."


def give(*, pair: Pair, by: User, grade: int, reason: str) -> SeniorGrade:
    """From now on this is the senior grade of the pair; sent twice, it is stored once.

    Raises UserError ``grade_out_of_scale``, ``reason_missing``, ``not_judged`` (409).
    """
    if not 0 <= grade <= pair.max_grade:
        expected = f"Expected a whole number from 0 to {pair.max_grade}."
        raise UserError("grade_out_of_scale", f"No such grade. {expected}", field="grade")
    reason = _reason(reason, "Say why in a few words: the decision is recorded with it.")
    with transaction.atomic():
        campaign = campaigns.lock(pair.campaign_id)
        batches.lock_pairs(Pair.objects.filter(pk=pair.pk))
        before = SeniorGrade.objects.filter(pair=pair, ended=None).first()
        if before is not None and (before.grade, before.reason) == (grade, reason):
            return before
        if not Pair.objects.filter(pk=pair.pk, judged__gte=1).exists():
            message = "Nobody has judged this pair. Give it a grade among the pairs that wait."
            raise UserError("not_judged", message, status=409)
        if before is not None:
            _end(before, by, CHANGED)
        counts = campaign.senior_grades == Campaign.Seniors.SUPERSEDE
        row = SeniorGrade.objects.create(
            pair=pair, grade=grade, reason=reason, counts=counts, given_by=by
        )
        audit.record(
            "give senior grade", by=by, campaign=campaign, target=pair, grade=grade,
            reason=reason, counts=counts,
        )  # fmt: skip
        _tell(campaign, pair.pk, counts=counts)
    return row


def take_back(*, senior: SeniorGrade, by: User, reason: str) -> None:
    """What assessors said counts again, if it did not.

    Raises UserError ``reason_missing``, ``taken_back`` (409).
    """
    reason = _reason(reason, "Say why in a few words: it is recorded with the grade.")
    with transaction.atomic():
        campaign = campaigns.lock(senior.pair.campaign_id)
        batches.lock_pairs(Pair.objects.filter(pk=senior.pair_id))
        now = SeniorGrade.objects.filter(pk=senior.pk, ended=None).first()
        if now is None:
            message = "This senior grade was taken back, or replaced, already."
            raise UserError("taken_back", message, status=409)
        counted = now.counts
        _end(now, by, reason)
        audit.record(
            "take back senior grade", by=by, campaign=campaign, target=senior.pair, reason=reason
        )
        _tell(campaign, senior.pair_id, counts=counted)


def _end(row: SeniorGrade, by: User, reason: str) -> None:
    values = {"ended": Now(), "ended_by": by, "ended_reason": reason, "counts": False}
    SeniorGrade.objects.filter(pk=row.pk).update(**values)


def _tell(campaign: Campaign, pair: int, *, counts: bool) -> None:
    if counts:
        judgment_corrected.send(sender=Pair, pair=pair)
    seniors_changed.send(sender=Campaign, campaign=campaign)


def _reason(given: str, message: str) -> str:
    reason = given.strip()[:500]
    if not reason:
        raise UserError("reason_missing", message, field="reason")
    return reason
