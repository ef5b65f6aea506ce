"""Saving what assessors say. A judgment that was acknowledged is committed, once.

``record`` may be sent any number of times with the same key: it is stored once and answered alike.
Nothing here depends on the grade's value, except that it must lie within the scale; refusing a
late judgment of a pair that has all its labels is therefore no selection by grade.

An answer to a gold pair takes the same statements as any other: whoever measures learns nothing.
Its revision counts in ``set_aside``, as that of excluded work does, so that it is a label nowhere.

Of somebody whose work is excluded (`services.exclusions`) what they still say is stored as well,
set aside: it takes no place and counts nowhere, until the exclusion is taken back.
"""

from dataclasses import dataclass

from django.db import IntegrityError
from django.db.models import F, Min, OuterRef, Q, Subquery
from django.db.models.functions import Now

from judging.errors import UserError
from judging.guests import has_room
from judging.models import Assignment, BatchPair, Campaign, Judgment, Pair, User
from judging.services import audit, batches, entering, steps
from judging.signals import judgment_corrected, said_aside
from judging.statements import Slot, Statement, changes, inserts

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
    """``counts``: it is a label, and not set aside."""

    judgment: Judgment
    created: bool
    counts: bool = True


def record(*, assignment: Assignment, by: User, saying: Saying) -> Recorded:
    """Stores the judgment of an assignment, exactly once for its key.

    Raises UserError: ``grade_out_of_scale`` (400), ``key_reused`` (422: same key, other content),
    ``already_judged`` (409), ``pair_full`` (409: the lease had run out and others took the places),
    ``pair_closed`` (409: the organizer decided on it), ``campaign_not_open`` (409), ``enough``
    (409: a lease of a guest had run out, and they have others now up to their number).
    """
    _check(assignment, by, saying)
    try:
        with steps.step():
            if not _is_open(assignment) and (replayed := _replayed(assignment, by, saying)):
                return replayed
            _refuse_unless_open(assignment)
            if not has_room(by, beside=assignment.pk):
                if replayed := _replayed(assignment, by, saying):
                    return replayed
                message = "You have judged as many documents as were asked of you. Thank you."
                raise UserError("enough", message, status=409)
            recorded = _store_first(assignment, by, saying)
            entering.note_if_done(by)
            return recorded
    except IntegrityError:  # the key was used before, or arrives twice at this moment
        if not steps.is_part() and (replayed := _replayed(assignment, by, saying)):
            return replayed
        raise


def correct(*, assignment: Assignment, by: User, saying: Saying, revision: int) -> Recorded:
    """Supersedes revision ``revision`` of the assessor's own judgment; the old one is kept.

    Raises UserError as ``record`` does, and ``superseded`` (409) if that revision is not current.
    """
    _check(assignment, by, saying)
    try:
        with steps.step():
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


def _is_open(assignment: Assignment) -> bool:
    return assignment.pair.campaign.takes_judgments


def _refuse_unless_open(assignment: Assignment) -> None:
    if not _is_open(assignment):
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
    """Asked twice: work that is taken back between two questions is what the first asked for."""
    stored = _stored(assignment, by, saying) or _stored(assignment, by, saying)
    if stored is None:
        message = "You have judged or skipped this pair already. Correct it from your own work."
        raise UserError("already_judged", message, status=409)
    return stored


def _stored(assignment: Assignment, by: User, saying: Saying) -> Recorded | None:
    """Stored as the place is: held, lapsed, answered with this key, or of excluded work."""
    judged = _JUDGED[assignment.gold]
    said = {"pk": assignment.pk, "grade": saying.grade}
    if judged.rows(state=Assignment.State.LEASED, **said):
        labels, fewest = _take_label(assignment, _LABELED)
    elif judged.rows(state=Assignment.State.LAPSED, **said):
        labels, fewest = _take_label(assignment, _LABELED_LATE)
    elif replayed := _replayed(assignment, by, saying):  # stored while we waited for the row
        return replayed
    else:
        return _store_aside(assignment, by, saying, revision=1, action="judge")
    judgment = _append(assignment, by, saying, revision=1, action="judge")
    batches.pair_finished(assignment.pair_id, labels=labels, fewest=fewest)
    return Recorded(judgment, created=True)


def _first_judged(revision: str) -> Statement:
    """``revision`` is the column that says how often something was said."""
    rows = Assignment.objects.filter(pk=Slot("pk"), state=Slot("state"))
    values = {
        "state": Assignment.State.JUDGED, revision: 1, "grade": Slot("grade"), "changed": Now(),
    }  # fmt: skip
    return changes(lambda: (rows, values))


def _labeled(free: Q, *, held: int) -> Statement:
    """One more label for the pair: how many it has now, and the fewest that a batch asks for.

    ``held`` is 1 when the place itself must be taken again.
    """
    values = {"judged": F("judged") + 1} | ({"held": F("held") + 1} if held else {})
    fewest = BatchPair.objects.order_by().filter(pair=OuterRef("pk")).values("pair")
    return changes(
        lambda: (Pair.every.filter(free, pk=Slot("pair"), decided=False), values),
        returning=("judged", Subquery(fewest.annotate(fewest=Min("labels")).values("fewest"))),
    )


_COUNTED_IN = {False: "revision", True: "set_aside"}
"""The column with an answer's revision, of pairs that are gold and of others."""
_JUDGED = {gold: _first_judged(column) for gold, column in _COUNTED_IN.items()}
_LABELED = _labeled(Q(), held=0)
_LABELED_LATE = _labeled(Q(held__lt=F("wanted")), held=1)


def _take_label(assignment: Assignment, labeled: Statement) -> tuple[int, int]:
    if row := labeled.first(pair=assignment.pair_id):
        labels, fewest = row
        return labels, labels if fewest is None else fewest  # of gold no batch asks for anything
    if Pair.every.filter(pk=assignment.pair_id, decided=True).exists():
        message = "The organizer has closed this pair meanwhile. Your grade was not needed."
        raise UserError("pair_closed", message, status=409)
    message = "Your time for this pair ran out and others have judged it. Take the next one."
    raise UserError("pair_full", message, status=409)


def _store_next(assignment: Assignment, by: User, saying: Saying, revision: int) -> Recorded:
    column = _COUNTED_IN[assignment.gold]
    current = Assignment.objects.filter(
        pk=assignment.pk, state=Assignment.State.JUDGED, **{column: revision}
    )
    if not current.update(changed=Now(), grade=saying.grade, **{column: F(column) + 1}):
        if replayed := _replayed(assignment, by, saying):
            return replayed
        if aside := _store_aside(assignment, by, saying, revision=revision + 1, action="correct"):
            return aside
        message = "This judgment has been corrected meanwhile. Reload the page."
        raise UserError("superseded", message, status=409)
    judgment = _append(assignment, by, saying, revision=revision + 1, action="correct")
    judgment_corrected.send(sender=Pair, pair=assignment.pair_id)
    return Recorded(judgment, created=True)


def _store_aside(
    assignment: Assignment, by: User, saying: Saying, *, revision: int, action: str
) -> Recorded | None:
    """Where the assessor's work is excluded: what they say is kept, beside what counts."""
    excluded = Assignment.objects.filter(
        pk=assignment.pk, state=Assignment.State.EXCLUDED, set_aside=revision - 1
    )
    if not excluded.update(set_aside=revision, grade=saying.grade, changed=Now()):
        return None
    assignment.state, assignment.revision = Assignment.State.EXCLUDED, 0
    assignment.set_aside = revision
    judgment = _append(assignment, by, saying, revision=revision, action=action)
    said_aside.send(sender=Campaign, campaign=assignment.pair.campaign)
    return Recorded(judgment, created=True, counts=False)


_SAID = (
    *("assignment_id", "assessor_id", "revision", "grade", "max_grade"),
    *("comment", "seconds", "key"),
)
_JUDGMENT = inserts(Judgment, {name: Slot(name) for name in _SAID}, returning=("id", "created"))


def _append(
    assignment: Assignment, by: User, saying: Saying, *, revision: int, action: str
) -> Judgment:
    campaign = assignment.pair.campaign
    values = {
        "assignment_id": assignment.pk,
        "assessor_id": by.pk,
        "revision": revision,
        "grade": saying.grade,
        "max_grade": assignment.pair.max_grade,
        "comment": saying.comment,
        "seconds": saying.seconds,
        "key": saying.key,
    }
    ((pk, created),) = _JUDGMENT.rows(**values)
    judgment = Judgment(pk=pk, created=created, **values)
    judgment.assignment, judgment.assessor = assignment, by
    audit.record(action, by=by, campaign=campaign, target=judgment, grade=saying.grade)
    return judgment
