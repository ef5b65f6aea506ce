"""Taking somebody's work out of a campaign, and taking that back. Nothing that was said is lost.

The labels of an excluded assessor stay stored, visible as excluded, and count nowhere: in each of
their assignments ``revision``, which says what counts, is 0, and ``set_aside`` keeps what it was.
The places they took are offered again, and complete batches that lack labels now are served again.

Estimates rest on complete batches, so that they are those of a campaign in which the person never
judged: first of fewer batches, and of all once others have judged the freed places. They are
unbiased where the ground of an exclusion has nothing to do with the grades. Who excludes somebody
for their grades picks labels by their values, and nothing computed from the rest can tell what that
changed: such an exclusion is allowed, and said wherever it matters.

Gold is part of the person's work and goes along, though it never counted: who they are is told by
it whether they are excluded or not.

Locks: the campaign, the person's memberships, all of their assignments, then pairs and batches. A
judgment that is being saved is waited for and set aside; one that comes later finds its assignment
excluded, and is stored aside. Nobody is handed a new pair meanwhile, as that takes one of these
locks.
"""

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Greatest, Now

from judging import gold_answers
from judging.accounts import QRELS
from judging.errors import UserError
from judging.models import Assignment, Campaign, Decision, Exclusion, Pair, User
from judging.services import audit, batches, campaigns
from judging.signals import labels_counted_anew

State = Assignment.State


def exclude(
    *,
    campaign: Campaign,
    assessor: User,
    by: User,
    ground: str,
    reason: str,
    by_rule: bool = False,
) -> Exclusion:
    """From now on nothing counts that the person said, or will still say, in this campaign.

    ``by_rule``: a rule that ``by`` has set finds so (`quality`).

    Raises UserError ``ground_unknown``, ``ground_untrue``, ``reason_missing``, ``no_assessor``
    (404: was never given a pair here, and does not judge), ``excluded_already`` (409).
    """
    if ground not in Exclusion.Ground.values:
        expected = ", ".join(Exclusion.Ground.values)
        message = f"Choose why: the estimates depend on it. Expected one of {expected}."
        raise UserError("ground_unknown", message, field="ground")
    reason = _reason(reason)
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        theirs = _locked(campaign, assessor)
        _refuse_unless_assessor(campaign, assessor, theirs)
        if ground == Exclusion.Ground.GOLD:
            _refuse_without_wrong_gold(campaign, assessor)
        row = Exclusion.objects.create(
            campaign=campaign,
            assessor=assessor,
            ground=ground,
            reason=reason,
            decided_by=by,
            by_rule=by_rule,
        )
        judged, reopened = _set_aside(theirs)
        audit.record(
            "exclude work",
            by=by,
            campaign=campaign,
            target=row,
            user=assessor.username,
            ground=ground,
            reason=reason,
            by_rule=by_rule,
            judgments=judged,
            batches=reopened,
        )
        labels_counted_anew.send(sender=Campaign, campaign=campaign)
    return row


def take_back(*, exclusion: Exclusion, by: User, reason: str) -> int:
    """All that the person said counts again; returns how many judgments that are.

    Where others have judged in their place meanwhile, both count: a pair then has more labels than
    were wanted, whatever their grades. A grade that an organizer gave a freed pair meanwhile goes,
    as there is a judgment; the audit log has it.

    Raises UserError ``reason_missing``, ``taken_back`` (409).
    """
    reason = _reason(reason)
    campaign = exclusion.campaign
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        values = {"ended": Now(), "ended_by": by, "ended_reason": reason}
        if not Exclusion.objects.filter(pk=exclusion.pk, ended=None).update(**values):
            message = "This exclusion was taken back already."
            raise UserError("taken_back", message, status=409)
        restored = _put_back(_locked(campaign, exclusion.assessor))
        audit.record(
            "take back exclusion",
            by=by,
            campaign=campaign,
            target=exclusion,
            user=exclusion.assessor.username,
            reason=reason,
            judgments=restored,
        )
        labels_counted_anew.send(sender=Campaign, campaign=campaign)
    return restored


def _reason(given: str) -> str:
    reason = given.strip()[:500]
    if not reason:
        message = "Say why in a few words: the decision is recorded with it."
        raise UserError("reason_missing", message, field="reason")
    return reason


def _refuse_without_wrong_gold(campaign: Campaign, assessor: User) -> None:
    """Of this ground it is said that it looks at no grade that counts, which must be true."""
    score = gold_answers.scores(campaign, only=assessor).get(assessor.pk)
    if score is None or score.right == score.answers:
        message = f"No answer of {assessor} to gold is wrong: choose what it really rests on."
        raise UserError("ground_untrue", message, field="ground")


def _locked(campaign: Campaign, assessor: User) -> QuerySet[Assignment]:
    """The person's assignments, all locked, and none can come: memberships are locked before them.

    A save that is under way may hand out one more pair in its transaction, so it is looked again
    until there are no more.
    """
    memberships = campaign.memberships.filter(user=assessor).order_by("pk")
    list(memberships.select_for_update().values_list("pk", flat=True))
    theirs = Assignment.objects.filter(assessor=assessor, campaign=campaign)
    known = -1
    while True:
        rows = theirs.order_by("pk").select_for_update(of=("self",))
        found = len(rows.values_list("pk", flat=True))
        if found == known:
            return theirs
        known = found


def _refuse_unless_assessor(
    campaign: Campaign, assessor: User, theirs: QuerySet[Assignment]
) -> None:
    known = campaign.memberships.filter(user=assessor, role="assessor").exists()
    if assessor.username == QRELS or not (known or theirs.exists()):
        message = "This is nobody who judges in this campaign, or has judged in it."
        raise UserError("no_assessor", message, status=404)
    if Exclusion.objects.filter(campaign=campaign, assessor=assessor, ended=None).exists():
        message = f"The work of {assessor} is excluded already."
        raise UserError("excluded_already", message, status=409)


def _set_aside(theirs: QuerySet[Assignment]) -> tuple[int, int]:
    """How many judgments count no more, and how many batches lack labels by it."""
    judged = theirs.filter(state=State.JUDGED)
    leased = theirs.filter(state=State.LEASED)
    freed = list(judged.order_by().values_list("pair_id", flat=True))
    held = list(leased.order_by().values_list("pair_id", flat=True))
    counted = judged.filter(gold=False).count()
    touched = Pair.every.filter(pk__in=[*freed, *held])
    batches.lock_pairs(touched)
    touched.filter(pk__in=held).update(held=F("held") - 1)
    touched.filter(pk__in=freed).update(held=F("held") - 1, judged=F("judged") - 1)
    empty = touched.filter(decided=True, judged=0, decision__kind=Decision.Kind.AS_IS)
    Pair.objects.filter(pk__in=list(empty.values_list("pk", flat=True))).update(decided=False)
    theirs.filter(gold=True).update(state=State.EXCLUDED)
    others = theirs.filter(gold=False)
    others.update(state=State.EXCLUDED, set_aside=F("revision"), revision=0)
    return counted, batches.reopen(Pair.objects.filter(pk__in=freed))


def _put_back(theirs: QuerySet[Assignment]) -> int:
    aside = theirs.filter(state=State.EXCLUDED)
    said = aside.filter(set_aside__gte=1)
    pairs = list(said.order_by().values_list("pair_id", flat=True))
    counted = said.filter(gold=False).count()
    touched = Pair.every.filter(pk__in=pairs)
    batches.lock_pairs(touched)
    touched.update(
        judged=F("judged") + 1, held=F("held") + 1, wanted=Greatest(F("wanted"), F("held") + 1)
    )
    by_grade = Decision.objects.filter(pair__in=pairs, kind=Decision.Kind.GRADE)
    replaced = list(by_grade.values_list("pair_id", flat=True))
    by_grade.delete()
    Pair.objects.filter(pk__in=replaced).update(decided=False)
    closed = Decision.objects.filter(pair__in=pairs, kind=Decision.Kind.AS_IS)
    Pair.objects.filter(pk__in=list(closed.values_list("pair_id", flat=True))).update(decided=True)
    aside.filter(set_aside=0).exclude(skip_reason="").update(state=State.SKIPPED)
    aside.filter(set_aside=0, skip_reason="").update(state=State.LAPSED)
    said.filter(gold=True).update(state=State.JUDGED)
    others = said.filter(gold=False)
    others.update(state=State.JUDGED, revision=F("set_aside"), set_aside=0)
    batches.reopen(Pair.objects.filter(pk__in=replaced))
    batches.settle_all(pairs)
    return counted
