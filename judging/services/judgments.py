"""Saving what assessors say. A judgment that was acknowledged is committed, once.

``record`` may be sent any number of times with the same key: it is stored once and answered alike.
Nothing here depends on the grade's value, except that it must lie within the scale; refusing a
late judgment of a pair that has all its labels is therefore no selection by grade.
"""

from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from judging.errors import UserError
from judging.models import Assignment, Campaign, Judgment, Pair, User
from judging.services import audit, batches
from judging.signals import judgment_corrected

MAX_COMMENT = 2000
MAX_KEY = 64


@dataclass(frozen=True)
class Saying:
    """What an assessor says of a pair, and the key under which it is sent."""

    grade: int
    key: str
    comment: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class Recorded:
    judgment: Judgment
    created: bool


def record(*, assignment: Assignment, by: User, saying: Saying) -> Recorded:
    """Stores the judgment of an assignment, exactly once for its key.

    Raises UserError: ``grade_out_of_scale`` (400), ``key_reused`` (422: same key, other content),
    ``already_judged`` (409), ``pair_full`` (409: the lease had run out and others took the places),
    ``pair_closed`` (409: the organizer decided on it), ``campaign_not_open`` (409).
    """
    _check(assignment, by, saying)
    try:
        with transaction.atomic():
            if replayed := _replayed(assignment, by, saying):
                return replayed
            _refuse_unless_open(assignment)
            return _store_first(assignment, by, saying)
    except IntegrityError:  # the same key arrived twice at the same moment
        if replayed := _replayed(assignment, by, saying):
            return replayed
        raise


def correct(*, assignment: Assignment, by: User, saying: Saying, revision: int) -> Recorded:
    """Supersedes revision ``revision`` of the assessor's own judgment; the old one is kept.

    Raises UserError as ``record`` does, and ``superseded`` (409) if that revision is not current.
    """
    _check(assignment, by, saying)
    try:
        with transaction.atomic():
            if replayed := _replayed(assignment, by, saying):
                return replayed
            _refuse_unless_open(assignment)
            return _store_next(assignment, by, saying, revision)
    except IntegrityError:
        if replayed := _replayed(assignment, by, saying):
            return replayed
        raise


def _check(assignment: Assignment, by: User, saying: Saying) -> None:
    if assignment.assessor_id != by.pk:
        raise UserError("not_yours", "This pair is assigned to somebody else.", status=404)
    max_grade = assignment.pair.max_grade
    if not 0 <= saying.grade <= max_grade:
        expected = f"Expected a whole number from 0 to {max_grade}."
        raise UserError("grade_out_of_scale", f"No such grade. {expected}", field="grade")
    if not 1 <= len(saying.key) <= MAX_KEY:
        expected = f"Expected a key of 1 to {MAX_KEY} characters."
        raise UserError("key_invalid", expected, field="key")
    if "\x00" in saying.key + saying.comment or len(saying.comment) > MAX_COMMENT:
        expected = f"Expected at most {MAX_COMMENT} characters of text."
        raise UserError("comment_invalid", expected, field="comment")


def _refuse_unless_open(assignment: Assignment) -> None:
    if assignment.pair.campaign.state != Campaign.State.OPEN:
        raise UserError("campaign_not_open", "This campaign is not open for judging.", status=409)


def _replayed(assignment: Assignment, by: User, saying: Saying) -> Recorded | None:
    stored = Judgment.objects.filter(assessor=by, key=saying.key).first()
    if stored is None:
        return None
    same = (stored.assignment_id, stored.grade, stored.comment)
    if same != (assignment.pk, saying.grade, saying.comment):
        message = "This key was used for another judgment. Send a new key."
        raise UserError("key_reused", message, status=422, field="key")
    return Recorded(stored, created=False)


def _store_first(assignment: Assignment, by: User, saying: Saying) -> Recorded:
    mine = Assignment.objects.filter(pk=assignment.pk)
    values = {"state": Assignment.State.JUDGED, "revision": 1, "changed": Now()}
    if mine.filter(state=Assignment.State.LEASED).update(**values):
        _take_label(assignment, held=0)
    elif mine.filter(state=Assignment.State.LAPSED).update(**values):
        _take_label(assignment, held=1)
    elif replayed := _replayed(assignment, by, saying):  # stored while we waited for the row
        return replayed
    else:
        message = "You have judged or skipped this pair already. Correct it from your own work."
        raise UserError("already_judged", message, status=409)
    judgment = _append(assignment, by, saying, revision=1, action="judge")
    judged = Pair.objects.values_list("judged", flat=True).get(pk=assignment.pair_id)
    batches.pair_finished(assignment.pair_id, labels=judged)
    return Recorded(judgment, created=True)


def _take_label(assignment: Assignment, *, held: int) -> None:
    """One more label for the pair; ``held`` is 1 when the place itself must be taken again."""
    free = Q(decided=False, held__lt=F("wanted")) if held else Q(decided=False)
    pair = Pair.objects.filter(free, pk=assignment.pair_id)
    if pair.update(judged=F("judged") + 1, held=F("held") + held):
        return
    if Pair.objects.filter(pk=assignment.pair_id, decided=True).exists():
        message = "The organizer has closed this pair meanwhile. Your grade was not needed."
        raise UserError("pair_closed", message, status=409)
    message = "Your time for this pair ran out and others have judged it. Take the next one."
    raise UserError("pair_full", message, status=409)


def _store_next(assignment: Assignment, by: User, saying: Saying, revision: int) -> Recorded:
    current = Assignment.objects.filter(
        pk=assignment.pk, state=Assignment.State.JUDGED, revision=revision
    )
    if not current.update(revision=F("revision") + 1, changed=Now()):
        if replayed := _replayed(assignment, by, saying):
            return replayed
        message = "This judgment has been corrected meanwhile. Reload the page."
        raise UserError("superseded", message, status=409)
    judgment = _append(assignment, by, saying, revision=revision + 1, action="correct")
    judgment_corrected.send(sender=Pair, pair=assignment.pair_id)
    return Recorded(judgment, created=True)


def _append(
    assignment: Assignment, by: User, saying: Saying, *, revision: int, action: str
) -> Judgment:
    campaign = assignment.pair.campaign
    judgment = Judgment.objects.create(
        assignment=assignment,
        assessor=by,
        revision=revision,
        grade=saying.grade,
        max_grade=assignment.pair.max_grade,
        comment=saying.comment,
        seconds=saying.seconds,
        key=saying.key,
    )
    audit.record(action, by=by, campaign=campaign, target=judgment, grade=saying.grade)
    return judgment
