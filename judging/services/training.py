"""Training: the pairs, what is asked of new assessors, and their answers. See `judging.lessons`."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Now

from judging import lessons
from judging.errors import UserError
from judging.formats.known_pairs import KnownPair
from judging.formats.problems import Problems
from judging.lessons import Lesson
from judging.models import (
    Assignment,
    Campaign,
    CrowdGuest,
    CrowdLink,
    Membership,
    Training,
    TrainingAnswer,
    TrainingPair,
    TrainingTry,
    User,
)
from judging.services import audit, campaigns, gold, present

MOST_TRIES = 100
ASSESSOR = Membership.Role.ASSESSOR


@dataclass(frozen=True)
class TrainingPlan:
    """What `Training` is made of."""

    obligatory: bool = False
    threshold: float = 0.7
    tries: int = 2


def add(
    *, campaign: Campaign, by: User, found: Sequence[KnownPair], problems: Problems
) -> list[TrainingPair]:
    """Adds all of them, or none; whoever is in a try meets them there. ``training_invalid``."""
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        named = campaign.topics.filter(topic_id__in={pair.topic for pair in found})
        topics = dict(named.values_list("topic_id", "pk"))
        there = set(campaign.training_pairs.values_list("topic__topic_id", "docno"))
        for pair in found:
            if (pair.topic, pair.docno) in there:
                problems.error(pair.line, "docno", "this pair is in the training already")
        gold.refuse_in_use(campaign, found, problems)
        gold.refuse_faults(problems, "training_invalid")
        made = [
            TrainingPair.objects.create(
                campaign=campaign,
                topic_id=topics[pair.topic],
                docno=pair.docno,
                accepted=list(pair.grades),
                reason=pair.reason,
                created_by=by,
            )
            for pair in found
        ]
        audit.record("add training", by=by, campaign=campaign, pairs=len(made))
    return made


def remove(*, pair: TrainingPair, by: User) -> None:
    """With what was said of it; tries that have ended keep their result.

    Raises UserError ``training_needed`` (409): of a training that is required the last one stays.
    """
    with transaction.atomic():
        campaign = campaigns.lock(pair.campaign_id)
        others = campaign.training_pairs.exclude(pk=pair.pk)
        if lessons.training_of(campaign).obligatory and not others.exists():
            message = "This is the last pair, and new assessors must pass the training first."
            raise UserError("training_needed", message, status=409)
        audit.record("remove training", by=by, campaign=campaign, target=pair, docno=pair.docno)
        pair.delete()


def set_plan(*, campaign: Campaign, by: User, plan: TrainingPlan) -> Training:
    """From now on. If it becomes required, so it is of all assessors who have judged nothing; if it
    is not any more, nobody waits for it but guests who failed, whose places are others' by now.

    Raises UserError ``training_invalid`` with the field.
    """
    _check(plan)
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        if plan.obligatory and not campaign.training_pairs.exists():
            message = "Add pairs with known grades first: there is nothing to learn from yet."
            raise UserError("training_invalid", message, field="obligatory")
        before = lessons.training_of(campaign).obligatory
        row, _ = Training.objects.update_or_create(campaign=campaign, defaults=vars(plan))
        if plan.obligatory != before:
            _ask(campaign, learns=plan.obligatory)
        audit.record("set training", by=by, campaign=campaign, **vars(plan))
    return row


def _check(plan: TrainingPlan) -> None:
    if not 0.0 < plan.threshold <= 1.0:
        message = "Expected a share above 0, up to 1."
        raise UserError("training_invalid", message, field="threshold")
    if not 0 <= plan.tries <= MOST_TRIES:
        message = f"Expected 0 for any number, or up to {MOST_TRIES}."
        raise UserError("training_invalid", message, field="tries")


def _ask(campaign: Campaign, *, learns: bool) -> None:
    rows = campaign.memberships.filter(role=ASSESSOR)
    if learns:
        judged = Assignment.objects.filter(campaign=campaign, assessor=OuterRef("user"))
        passed = TrainingTry.objects.filter(campaign=campaign, user=OuterRef("user"), passed=True)
        rows = rows.filter(~Exists(judged), ~Exists(passed))
    else:
        rows = rows.filter(~Exists(lessons.failed_guests().filter(account=OuterRef("user"))))
    rows.update(learns=learns)


def welcome(membership: Membership) -> None:
    """A new assessor learns first where that is obligatory, unless they have passed before; inside
    the caller's transaction."""
    campaign, user = membership.campaign, membership.user
    if membership.role != ASSESSOR or not lessons.training_of(campaign).obligatory:
        return
    if not TrainingTry.objects.filter(campaign=campaign, user=user, passed=True).exists():
        Membership.objects.filter(pk=membership.pk).update(learns=True)
        membership.learns = True


def admit(*, membership: Membership, by: User) -> None:
    """Lets somebody judge without having passed.

    Raises UserError ``not_learning``, ``link_full`` (409).
    """
    with transaction.atomic():
        rows = Membership.objects.filter(pk=membership.pk, learns=True)
        if not rows.update(learns=False):
            message = f"{membership.user} need not pass the training."
            raise UserError("not_learning", message, status=409)
        _take_place_again(membership.user_id)
        audit.record(
            "admit without training",
            by=by,
            campaign=membership.campaign_id,
            target=membership,
            user=membership.user.username,
        )


def begin(*, campaign: Campaign, by: User) -> Lesson:
    """A try, if none is under way and another one may begin; where they are by then.

    Raises UserError ``no_training`` (404), ``no_assessor`` (403) or ``training_over`` (409).
    """
    with transaction.atomic():
        membership = _locked(campaign, by)
        found = lessons.lesson(campaign, by)
        if found.state == "learning" and found.pair is None and found.attempt:
            _end(found.attempt, membership)  # the last pairs were removed meanwhile
            return lessons.lesson(campaign, by)
        if found.state == "learning":
            return found
        if not campaign.training_pairs.exists():
            raise UserError("no_training", "This campaign has no training.", status=404)
        if found.state in ("passed", "failed"):
            message = "You have passed already." if found.state == "passed" else TOO_OFTEN
            raise UserError("training_over", message, status=409)
        number = found.attempt.number + 1 if found.attempt else 1
        TrainingTry.objects.create(campaign=campaign, user=by, number=number)
        return lessons.lesson(campaign, by)


TOO_OFTEN = "You have used all tries. Ask the organizer if you think that this is a mistake."


def answer(*, campaign: Campaign, by: User, pair: int, grade: int) -> TrainingAnswer:
    """What they say of a pair of the try under way; said again, it is what they said first.

    With the last one the try ends. Raises UserError ``no_assessor`` (403), ``no_try`` (409),
    ``gone`` (404: the pair), ``grade_invalid``.
    """
    if not 0 <= grade <= campaign.max_grade:
        message = f"Expected a grade from 0 to {campaign.max_grade}."
        raise UserError("grade_invalid", message, field="grade")
    with transaction.atomic():
        membership = _locked(campaign, by)
        attempt = lessons.latest(campaign, by)
        if attempt and (said := lessons.answer_of(attempt, pair)):
            return said
        if attempt is None or attempt.ended:
            raise UserError("no_try", "You are not in the training at the moment.", status=409)
        row = present.now(campaign.training_pairs.filter(pk=pair), "The pair")
        right = grade in row.accepted
        said = TrainingAnswer.objects.create(attempt=attempt, pair=row, grade=grade, right=right)
        if lessons.lesson(campaign, by).pair is None:
            _end(attempt, membership)
    return said


def _locked(campaign: Campaign, by: User) -> Membership:
    """What one person does in two tabs is done one after the other."""
    rows = campaign.memberships.filter(user=by, role=ASSESSOR).select_for_update()
    membership = rows.first()
    if membership is None:
        raise UserError("no_assessor", "Only assessors of this campaign learn here.", status=403)
    return membership


def _end(attempt: TrainingTry, membership: Membership) -> None:
    campaign, user = membership.campaign, membership.user
    training = lessons.training_of(campaign)
    said = list(attempt.answers.values_list("right", flat=True))
    asked, right = len(said), sum(said)
    passed = right >= lessons.right_needed(training, asked)
    values = {"ended": Now(), "asked": asked, "right": right, "passed": passed}
    TrainingTry.objects.filter(pk=attempt.pk).update(**values)
    if passed:
        Membership.objects.filter(pk=membership.pk).update(learns=False)
    elif membership.learns and training.tries and attempt.number >= training.tries:
        _screen_out(user)
    audit.record(
        "pass training" if passed else "fail training",
        by=user,
        campaign=campaign,
        target=attempt,
        right=right,
        asked=asked,
    )


def _take_place_again(account: int) -> None:
    """Of the link by which a guest came, who had left it as they failed."""
    failed = CrowdGuest.objects.filter(account=account, failed__isnull=False)
    links = CrowdLink.objects.filter(guests__in=failed).distinct()
    for pk in links.values_list("pk", flat=True):
        room = CrowdLink.objects.filter(pk=pk, people__lt=F("most_people"))
        if not room.update(people=F("people") + 1):
            message = (
                "Somebody else has taken their place by now. Allow the link more people first."
            )
            raise UserError("link_full", message, status=409)
    failed.update(failed=None)


def _screen_out(user: User) -> None:
    """A guest has no organizer to ask: they are told the code of those who do not fit, and leave
    their place to somebody else."""
    guests = CrowdGuest.objects.filter(account=user, failed=None, finished=None)
    links = list(guests.values_list("link", flat=True))
    if guests.update(failed=Now()):
        CrowdLink.objects.filter(pk__in=links).update(people=F("people") - 1)
