"""Rules about people, and waiting for an organizer: what happens by itself, and can be undone.

Every rule looks at answers to gold, or at times, and at no grade of a sampled pair; so which labels
are left does not depend on what they are (`judging.gold_scores` says why, `exclusions` what an
exclusion does). A rule holds the end of an interval against a bound: it finds somebody when it is
sure. Nobody is found again by a rule whose exclusion an organizer took back; and whoever an
organizer let go on is held again only after as many further answers as a score needs.
"""

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from judging import gold_answers
from judging.errors import UserError
from judging.gold_scores import NO_SCORE, GoldScore
from judging.known import LEAST_ANSWERS
from judging.manners import NO_MANNER, manners
from judging.models import AuditEntry, Campaign, Exclusion, Job, Membership, QualityRules, User
from judging.services import audit, campaigns, exclusions, jobs

APPLY = "apply-quality-rules"
EVERY_SECONDS = 60
"""Between two looks at a campaign whose rules are at work."""
MOST_LEAST = 1000
ACTS = Q(hold_below__isnull=False) | Q(exclude_below__isnull=False) | Q(exclude_hasty=True)
ENDS = ("warn_below", "hold_below", "exclude_below")
Ground = Exclusion.Ground


@dataclass(frozen=True)
class RulesPlan:
    """What `QualityRules` are made of."""

    least: int = LEAST_ANSWERS
    warn_below: float | None = 0.6
    hold_below: float | None = None
    exclude_below: float | None = None
    exclude_hasty: bool = False


def plan_of(campaign: Campaign) -> RulesPlan:
    """The rules as they are."""
    row = gold_answers.rules(campaign)
    return RulesPlan(**{each.name: getattr(row, each.name) for each in fields(RulesPlan)})


def set_rules(*, campaign: Campaign, by: User, plan: RulesPlan) -> QualityRules:
    """From now on; a worker looks at once. Raises UserError ``rules_invalid`` with the field."""
    _check(plan)
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        values = vars(plan) | {"set_by": by, "changed": timezone.now()}
        row, _ = QualityRules.objects.update_or_create(campaign=campaign, defaults=values)
        audit.record("set quality rules", by=by, campaign=campaign, **vars(plan))
        if QualityRules.objects.filter(ACTS, pk=row.pk).exists():
            jobs.request(APPLY, campaign.pk, campaign=campaign)
    return row


def _check(plan: RulesPlan) -> None:
    if not LEAST_ANSWERS <= plan.least <= MOST_LEAST:
        message = f"Expected a whole number from {LEAST_ANSWERS} to {MOST_LEAST:,}."
        raise UserError("rules_invalid", message, field="least")
    for name in ENDS:
        value = getattr(plan, name)
        if value is not None and not 0.0 < value < 1.0:
            message = "Expected a score between 0 and 1, such as 0.4, or nothing."
            raise UserError("rules_invalid", message, field=name)


def hold(*, campaign: Campaign, assessor: User, by: User | None, reason: str) -> None:
    """They are handed nothing new until an organizer has looked; what is in hand they may answer.

    Raises UserError ``reason_missing``, ``no_assessor`` (404), ``held_already`` (409).
    """
    reason = reason.strip()[:500]
    if not reason:
        raise UserError("reason_missing", "Say why in a few words.", field="reason")
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        row = _membership(campaign, assessor)
        rows = Membership.objects.filter(pk=row.pk, held=None)
        if not rows.update(held=Now(), held_why=reason):
            message = f"{assessor} waits already until somebody has looked."
            raise UserError("held_already", message, status=409)
        audit.record(
            "hold assessor", by=by, campaign=campaign, target=row, user=str(assessor), reason=reason
        )


def let_go_on(*, campaign: Campaign, assessor: User, by: User) -> None:
    """They are handed pairs again. Raises UserError ``no_assessor`` (404), ``not_held`` (409)."""
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        row = _membership(campaign, assessor)
        seen = gold_answers.scores(campaign, only=assessor).get(assessor.pk, NO_SCORE).answers
        rows = Membership.objects.filter(pk=row.pk, held__isnull=False)
        if not rows.update(held=None, held_why="", held_after=seen):
            raise UserError("not_held", f"{assessor} does not wait for anybody.", status=409)
        audit.record("let assessor go on", by=by, campaign=campaign, target=row, user=str(assessor))


def _membership(campaign: Campaign, assessor: User) -> Membership:
    role = Membership.Role.ASSESSOR
    row = campaign.memberships.filter(user=assessor, role=role).select_for_update().first()
    if row is None:
        raise UserError("no_assessor", "This is nobody who judges in this campaign.", status=404)
    return row


def wake() -> None:
    """Has workers apply the rules of campaigns in which something was said since they last did."""
    for rules in QualityRules.objects.filter(ACTS, campaign__state=Campaign.State.OPEN):
        asked = Job.objects.filter(kind=APPLY, target=rules.campaign_id)
        job = asked.annotate(now=Now()).first()
        if job is None or _is_behind(job, job.now):
            jobs.request(APPLY, rules.campaign_id, campaign=rules.campaign_id)


def _is_behind(job: Job, now: datetime) -> bool:
    """``now`` by the database's clock: one that was ahead, and is set back, says nothing."""
    if job.state != Job.State.DONE or job.started is None:
        return False
    if job.started > now:
        return True
    latest = AuditEntry.objects.filter(campaign=job.campaign_id).order_by("-pk").first()
    settled = now - timedelta(seconds=EVERY_SECONDS)
    return job.started < settled and latest is not None and latest.created >= job.started


def apply(job: jobs.Running) -> None:
    """The job. Each act is a transaction of its own; asked again, it acts on nobody twice."""
    campaign = Campaign.objects.get(pk=job.target)
    rules = gold_answers.rules(campaign)
    if rules.set_by is None:
        return
    scores = gold_answers.scores(campaign)
    told = manners(campaign) if rules.exclude_hasty else {}
    spared = set(
        campaign.exclusions.filter(by_rule=True).values_list("assessor", "ground")
    )  # those that hold too: nobody is excluded twice
    rows = campaign.memberships.filter(role=Membership.Role.ASSESSOR).select_related("user")
    out = set(campaign.exclusions.filter(ended=None).values_list("assessor", flat=True))
    for row in rows.exclude(user__in=out).order_by("user"):
        job.prolong()
        score = scores.get(row.user_id, NO_SCORE)
        is_hasty = told.get(row.user_id, NO_MANNER).is_hasty
        _act_on(campaign, row, rules, score, is_hasty=is_hasty, spared=spared)


def _act_on(
    campaign: Campaign,
    row: Membership,
    rules: QualityRules,
    score: GoldScore,
    *,
    is_hasty: bool,
    spared: set[tuple[int, str]],
) -> None:
    ground = ""
    if _is_below(score, rules.exclude_below) and (row.user_id, Ground.GOLD) not in spared:
        ground, why = Ground.GOLD, f"{_told(score)}, surely below {rules.exclude_below}"
    elif is_hasty and (row.user_id, Ground.TIME) not in spared:
        ground, why = Ground.TIME, "Judged too fast to have read, by the rule about times"
    found: dict[str, Any] = {"campaign": campaign, "assessor": row.user}
    try:
        if ground:
            found |= {"by": rules.set_by, "ground": ground, "reason": why, "by_rule": True}
            exclusions.exclude(**found)
        elif row.held is None and _is_below(score, rules.hold_below) and _is_new(score, row, rules):
            why = f"{_told(score)}, surely below {rules.hold_below}"
            hold(**found, by=None, reason=why)
    except UserError as error:
        if error.code not in ("excluded_already", "held_already", "no_assessor"):
            raise


def _is_below(score: GoldScore, bound: float | None) -> bool:
    return bound is not None and score.high is not None and score.high < bound


def _is_new(score: GoldScore, row: Membership, rules: QualityRules) -> bool:
    return not row.held_after or score.answers >= row.held_after + rules.least


def _told(score: GoldScore) -> str:
    return f"Gold: {score.right} of {score.answers} right, score {score.score:.2f}"
