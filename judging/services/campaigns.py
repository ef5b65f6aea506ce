"""Campaigns and their life: draft, open, paused, closed; archived, and begun anew from one."""

import itertools
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils.text import slugify

from judging import selectors
from judging.errors import UserError
from judging.formats.problems import line_problem
from judging.models import MAX_GRADE, Campaign, Membership, SeniorGrade, User
from judging.services import audit, batches, present
from judging.signals import labels_counted_anew, seniors_changed

DEFAULT_GRADES = [
    {"name": "Not relevant", "meaning": "Does not help with the topic."},
    {"name": "Related", "meaning": "Touches the topic without answering it."},
    {"name": "Relevant", "meaning": "Answers the topic in part."},
    {"name": "Perfect", "meaning": "Answers the topic fully."},
]
MOST_HOUR_COST = 1_000_000
CURRENCY = re.compile(r"[A-Z]{3}")
RESERVED_SLUGS = frozenset({"new"})  # /c/new/ is the page that makes a campaign


@dataclass(frozen=True)
class CampaignPlan:
    """What a campaign is made of. ``grades``: ``[{"name", "meaning"}, ...]`` from 0 upwards."""

    name: str
    slug: str = ""
    guidelines: str = ""
    grades: list[dict[str, str]] = field(default_factory=lambda: list(DEFAULT_GRADES))
    depth: int = 100
    lease_minutes: int = 20
    hour_cost: float = 0.0
    currency: str = ""
    senior_grades: str = Campaign.Seniors.BESIDE


def create(*, by: User, plan: CampaignPlan, like: CampaignPlan | None = None) -> Campaign:
    """A new campaign in draft, with ``by`` as its organizer; ``like``: another one's, to be copied.

    Raises UserError ``may_not_create`` (403), ``slug_taken`` (409) or ``plan_invalid``.
    """
    if not (by.is_organizer or by.is_superuser):
        raise UserError("may_not_create", "Ask an admin to let you create campaigns.", status=403)
    _check(plan, before=like)
    slug = plan.slug or slugify(plan.name)[:60] or free_slug("")
    if slug in RESERVED_SLUGS:
        raise _slug_taken(slug)
    try:
        with transaction.atomic():
            campaign = Campaign.objects.create(
                slug=slug,
                name=plan.name.strip(),
                guidelines=plan.guidelines,
                grades=plan.grades,
                depth=plan.depth,
                lease_minutes=plan.lease_minutes,
                hour_cost=plan.hour_cost,
                currency=plan.currency,
                senior_grades=plan.senior_grades,
                created_by=by,
            )
            role = Membership.Role.ORGANIZER
            Membership.objects.create(campaign=campaign, user=by, role=role)
            audit.record("create campaign", by=by, campaign=campaign, target=campaign, slug=slug)
    except IntegrityError:
        if not Campaign.objects.filter(slug=slug).exists():
            raise
        raise _slug_taken(slug) from None
    return campaign


def _slug_taken(slug: str) -> UserError:
    message = f"The address “{slug}” is taken. Choose another one."
    return UserError("slug_taken", message, status=409, field="slug")


def change(*, campaign: Campaign, by: User, plan: CampaignPlan) -> None:
    """Changes all of a campaign but its address: see ``amend``."""
    amend(campaign=campaign, by=by, chosen=asdict(plan))


def amend(
    *,
    campaign: Campaign,
    by: User,
    chosen: Mapping[str, Any],
    seen: Mapping[str, Any] | None = None,
) -> None:
    """Changes some of a campaign's settings; the others stay what they are by then.

    Of two who change different ones at the same moment, neither undoes what the other has done.
    Whoever says what he has ``seen`` replaces nothing else: ``changed_meanwhile`` (409). Scale and
    depth are fixed once a round is drawn: numbers rest on them. Raises UserError
    ``plan_invalid``, ``fixed`` (409), and ``being_drawn`` (409) while a draw is under way.
    """
    with transaction.atomic():
        now = lock(campaign.pk)
        _refuse_to_replace(now, chosen, seen or {})
        plan = replace(plan_of(now), **chosen)
        _check(plan, before=plan_of(now))
        values = {
            "name": plan.name.strip(),
            "guidelines": plan.guidelines,
            "grades": plan.grades,
            "depth": plan.depth,
            "lease_minutes": plan.lease_minutes,
            "hour_cost": plan.hour_cost,
            "currency": plan.currency,
            "senior_grades": plan.senior_grades,
        }
        if (plan.grades, plan.depth) != (now.grades, now.depth):
            _refuse_if_fixed(now)
            _refuse_without_known_grades(now, len(plan.grades))
        Campaign.objects.filter(pk=campaign.pk).update(**values)
        if plan.senior_grades != now.senior_grades:
            _count_seniors(campaign, plan.senior_grades)
        told = _changed(now, values)
        audit.record("change campaign", by=by, campaign=campaign, target=campaign, **told)


def _changed(now: Campaign, values: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry says of a change: texts and scales are named, and not quoted."""
    before = {name: getattr(now, name) for name in values}
    names = [name for name, value in values.items() if value != before[name]]
    short = [name for name in names if name not in ("guidelines", "grades")]
    told = {"before": before, "after": values}
    return {
        "changed": names,
        **{key: {name: of[name] for name in short} for key, of in told.items() if short},
    }


def _count_seniors(campaign: Campaign, rule: str) -> None:
    """What holds for the senior grades that are in force."""
    rows = SeniorGrade.objects.filter(pair__campaign=campaign, ended=None)
    if rows.update(counts=rule == Campaign.Seniors.SUPERSEDE):
        labels_counted_anew.send(sender=Campaign, campaign=campaign)
        seniors_changed.send(sender=Campaign, campaign=campaign)


def _refuse_to_replace(now: Campaign, chosen: Mapping[str, Any], seen: Mapping[str, Any]) -> None:
    """What somebody else has written meanwhile is not lost unseen; the data name what it is."""
    names = [
        name
        for name, wanted in chosen.items()
        if name in seen and getattr(now, name) not in (seen[name], wanted)
    ]
    if names:
        message = "Somebody else has changed the same since you opened the page."
        raise UserError("changed_meanwhile", message, status=409, data={"names": names})


def plan_of(campaign: Campaign) -> CampaignPlan:
    return CampaignPlan(
        name=campaign.name,
        guidelines=campaign.guidelines,
        grades=campaign.grades,
        depth=campaign.depth,
        lease_minutes=campaign.lease_minutes,
        hour_cost=campaign.hour_cost,
        currency=campaign.currency,
        senior_grades=campaign.senior_grades,
    )


def refuse_if_closed(campaign: Campaign) -> None:
    if campaign.state == Campaign.State.CLOSED:
        raise UserError("campaign_closed", "This campaign is closed.", status=409)


def lock(campaign_id: int) -> Campaign:
    """Locks the campaign's row, before any other lock, and reads it.

    Whoever asks for a draw and whoever changes what draws rest on take this lock, so that each
    sees what the other has done. Rows that merely refer to the campaign are not held up. Raises
    UserError ``gone`` (404) where it is being deleted.
    """
    there = Campaign.objects.exclude(state=Campaign.State.DELETING)
    return present.now(there.select_for_update(no_key=True).filter(pk=campaign_id), "The campaign")


def refuse_while_drawn(campaign: Campaign, *, field: str | None = None) -> None:
    """Call under its lock. Raises UserError ``being_drawn`` (409) while a draw is under way."""
    if selectors.is_being_drawn(campaign):
        message = "A round is being drawn from this right now. Wait until the draw is done."
        raise UserError("being_drawn", message, status=409, field=field)


def _refuse_if_fixed(campaign: Campaign) -> None:
    if selectors.is_drawn(campaign):
        message = "The grade scale and the depth are fixed: a round has been drawn with them."
        raise UserError("fixed", message, status=409, field="grades")
    refuse_while_drawn(campaign, field="grades")


def _refuse_without_known_grades(campaign: Campaign, grades: int) -> None:
    """Nobody could answer rightly any more, nor pass a training, which may be asked of them."""
    for kind, rows in (("gold", campaign.gold_pairs), ("training", campaign.training_pairs)):
        accepted = rows.values_list("accepted", flat=True)
        if any(max(each) >= grades for each in accepted):
            message = f"The scale must keep all grades that are right for a {kind} pair."
            raise UserError("fixed", message, status=409, field="grades")


def open_for_judging(*, campaign: Campaign, by: User) -> None:
    """Assessors are served what is drawn from now on. UserError ``nothing_drawn`` (409)."""
    if not selectors.is_drawn(campaign):
        message = "Nothing is drawn yet, so there is nothing to judge. Draw a round first."
        raise UserError("nothing_drawn", message, status=409)
    if campaign.archived is not None:
        message = "The campaign is archived. Take it out of the archive first."
        raise UserError("archived", message, status=409)
    state = Campaign.State
    _move(campaign, by, state.OPEN, state.DRAFT, state.PAUSED, state.CLOSED)
    transaction.on_commit(partial(batches.open_judged, campaign.pk), robust=True)


def pause(*, campaign: Campaign, by: User) -> None:
    """Nothing more is handed out; what assessors have in hand they can still answer."""
    _move(campaign, by, Campaign.State.PAUSED, Campaign.State.OPEN)


def close(*, campaign: Campaign, by: User) -> None:
    _move(campaign, by, Campaign.State.CLOSED, Campaign.State.OPEN, Campaign.State.PAUSED)


def archive(*, campaign: Campaign, by: User) -> None:
    """Puts a campaign that nobody judges in away; nothing of it is lost, or changes.

    Raises UserError ``wrong_state`` (409) while it is open or paused, and ``being_drawn`` (409)
    while a draw is under way, which may be to open it when it ends.
    """
    with transaction.atomic():
        refuse_while_drawn(lock(campaign.pk))
        over = [Campaign.State.DRAFT, Campaign.State.CLOSED]
        rows = Campaign.objects.filter(pk=campaign.pk, state__in=over, archived=None)
        if not rows.update(archived=Now()):
            message = "Only a campaign that is a draft or closed can be archived. Close it first."
            raise UserError("wrong_state", message, status=409)
        audit.record("archive campaign", by=by, campaign=campaign, target=campaign)
    campaign.refresh_from_db(fields=["archived"])


def unarchive(*, campaign: Campaign, by: User) -> None:
    with transaction.atomic():
        if Campaign.objects.filter(pk=campaign.pk).exclude(archived=None).update(archived=None):
            audit.record("unarchive campaign", by=by, campaign=campaign, target=campaign)
    campaign.archived = None


def free_slug(name: str) -> str:
    """An address for a campaign of this name that none has yet."""
    base = slugify(name)[:54] or "campaign"
    taken = set(Campaign.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    taken |= RESERVED_SLUGS
    numbered = (f"{base}-{number}" for number in itertools.count(2))
    return next(slug for slug in itertools.chain([base], numbered) if slug not in taken)


def _move(campaign: Campaign, by: User, to: Campaign.State, *expected: Campaign.State) -> None:
    with transaction.atomic():
        moved = Campaign.objects.filter(pk=campaign.pk, state__in=expected).update(state=to)
        if not moved:
            now = Campaign.objects.values_list("state", flat=True).get(pk=campaign.pk)
            message = f"The campaign cannot become {to}: it is {now}."
            if now == to:
                message = f"The campaign is {to} already."
            raise UserError("wrong_state", message, status=409)
        audit.record(f"campaign {to}", by=by, campaign=campaign, target=campaign)
    campaign.state = to


def _check(plan: CampaignPlan, *, before: CampaignPlan | None = None) -> None:
    """What a campaign has already, ``before``, may be from before names were one line."""
    kept = [before.name, *_names(before)] if before else []

    def require(condition: bool, field_name: str, message: str) -> None:
        if not condition:
            raise UserError("plan_invalid", message, field=field_name)

    def require_line(name: str, field_name: str) -> None:
        problem = line_problem(name) if name not in kept else None
        require(problem is None, field_name, f"The name cannot be kept: {problem}.")

    require(bool(plan.name.strip()) and len(plan.name) <= 200, "name", "Give a name.")
    require_line(plan.name.strip(), "name")
    good_slug = not plan.slug or (slugify(plan.slug) == plan.slug and len(plan.slug) <= 60)
    require(good_slug, "slug", "Use a-z, 0-9 and hyphens, at most 60 characters.")
    count = len(plan.grades)
    require(2 <= count <= MAX_GRADE + 1, "grades", f"Expected 2 to {MAX_GRADE + 1} grades.")
    require(all(name.strip() for name in _names(plan)), "grades", "Every grade needs a name.")
    for name in _names(plan):
        require_line(name, "grades")
    require(1 <= plan.depth <= 10_000, "depth", "Expected a depth from 1 to 10,000.")
    require(1 <= plan.lease_minutes <= 1440, "lease_minutes", "Expected 1 to 1,440 minutes.")
    most = f"Expected 0 to {MOST_HOUR_COST:,}."
    require(0.0 <= plan.hour_cost <= MOST_HOUR_COST, "hour_cost", most)
    told = bool(CURRENCY.fullmatch(plan.currency)) or not (plan.currency or plan.hour_cost)
    require(told, "currency", "Expected three capital letters, such as EUR.")
    rules = Campaign.Seniors.values
    require(plan.senior_grades in rules, "senior_grades", f"Expected {' or '.join(rules)}.")


def _names(plan: CampaignPlan) -> list[str]:
    """Those of its grades."""
    return [grade.get("name", "") for grade in plan.grades]
