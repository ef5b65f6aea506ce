"""Runs that leave rankings, and come back: the sample and every judgment stay what they are.

A run that is left out changes no value of another: each is estimated from its own documents, by
probabilities that were fixed before. Verdicts and possible ranks are those of fewer runs, which
share the error between them. Whoever withdraws a run because of its numbers picks what is told:
the audit log, the ranking and the report say that it was there.
"""

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from estimation.material import taking_part
from estimation.models import Round, Run
from estimation.services.runs import make_estimates_due
from judging.errors import UserError
from judging.models import Campaign, User
from judging.services import audit, campaigns


def withdraw(*, run: Run, by: User) -> None:
    """Leaves a run out of all rankings, and of rounds that are drawn from now on.

    Raises UserError ``being_drawn`` (409) while a draw is under way, ``in_use`` (409) for the run
    or the baseline that a drawn round is about, and for the last run that takes part.
    """
    with transaction.atomic():
        _refuse(run, campaigns.lock(run.campaign_id))
        move(run=run, by=by, action="withdraw run", withdrawn=True)


def why_not(run: Run) -> str:
    """Why a run cannot be withdrawn as things stand; empty if it can."""
    try:
        _refuse(run, run.campaign)
    except UserError as error:
        return error.message
    return ""


def _refuse(run: Run, campaign: Campaign) -> None:
    campaigns.refuse_while_drawn(campaign)
    refuse_if_asked_about(run)
    if not taking_part(campaign).exclude(pk=run.pk).exists():
        raise UserError("in_use", "It is the only run that takes part.", status=409)


def refuse_if_asked_about(run: Run) -> None:
    """UserError ``in_use`` (409) for the run or the baseline that a drawn round is about."""
    drawn = run.campaign.rounds.exclude(state__in=Round.NOT_DRAWN)
    if row := drawn.filter(Q(run=run) | Q(baseline=run)).order_by("number").first():
        message = f"Round {row.number} is about {run.tag}: without it, it would say nothing."
        raise UserError("in_use", message, status=409)


def take_back(*, run: Run, by: User) -> None:
    """Puts a run that was withdrawn back into all rankings. UserError ``being_drawn`` (409)."""
    with transaction.atomic():
        campaigns.refuse_while_drawn(campaigns.lock(run.campaign_id))
        move(run=run, by=by, action="take run back", withdrawn=False)


def move(*, run: Run, by: User, action: str, withdrawn: bool) -> None:
    """What withdrawing and taking back come to, for whoever has made sure that it may be."""
    rows = Run.objects.filter(pk=run.pk, withdrawn__isnull=withdrawn)
    if rows.update(withdrawn=Now() if withdrawn else None):
        audit.record(action, by=by, campaign=run.campaign_id, target=run, run=run.tag)
        make_estimates_due(run.campaign)
    run.refresh_from_db(fields=["withdrawn"])
