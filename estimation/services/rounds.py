"""Rounds: a design is drafted, previewed, drawn once, and then frozen.

This module is what pages and the REST interface call; the arithmetic is done by the worker
(previews, drawing).
"""

import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet

from estimation.core.arrays import nearest
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.sampling.methods import SAMPLING_METHODS
from estimation.material import taking_part
from estimation.models import Prediction, Round, Run
from estimation.options import label_of, one_of
from estimation.plans import (
    GRADES,
    MAX_MEASURES,
    MAX_PREDICTIONS,
    NAMED,
    OPTIONS,
    TABLES,
    RoundPlan,
    completed,
    plan_of,
    why_not_usual,
)
from estimation.services import choices, leftovers, of_measures
from estimation.services.limits import require as _require
from judging.errors import UserError
from judging.models import Campaign, Job, User
from judging.services import audit, campaigns, jobs, present

MAX_BATCHES = 10_000


def draft(*, campaign: Campaign, by: User, plan: RoundPlan) -> Round:
    """A new round of the campaign; its preview is due at once.

    Raises UserError ``round_invalid`` with the field at fault, ``campaign_closed`` (409).
    """
    with transaction.atomic():
        campaign = campaigns.lock(campaign.pk)
        campaigns.refuse_if_closed(campaign)
        values = _checked(campaign, plan)
        _check_seed(completed(plan), campaign.rounds.all(), campaign.rounds.none())
        last = campaign.rounds.aggregate(last=Max("number"))["last"] or 0
        row = Round.objects.create(campaign=campaign, number=last + 1, created_by=by, **values)
        audit.record("draft round", by=by, campaign=campaign, target=row)
        jobs.request("preview", row.pk, campaign=campaign)
    return row


def change(*, row: Round, by: User, plan: RoundPlan) -> None:
    """Changes all choices of a drafted round and makes its preview due again: see ``amend``."""
    amend(row=row, by=by, chosen=asdict(plan))


def amend(*, row: Round, by: User, chosen: Mapping[str, Any]) -> None:
    """Changes some choices of a drafted round; the others stay what they are by then.

    Of two who change different ones at the same moment, neither undoes what the other has done:
    the round is read under the lock of its campaign. Makes its preview due again. Raises UserError
    ``being_drawn`` (409) while it is drawn, ``frozen`` (409) from then on, ``gone`` (404) when it
    was discarded.
    """
    with transaction.atomic():
        campaign = campaigns.lock(row.campaign_id)
        plan = replace(plan_of(_drafted(row)), **chosen)
        values = _checked(campaign, plan)
        others = campaign.rounds
        earlier, later = others.filter(number__lt=row.number), others.filter(number__gt=row.number)
        _check_seed(completed(plan), earlier, later)
        jobs.request("preview", row.pk, campaign=row.campaign_id)  # a job is locked before its row
        drafted = Round.objects.filter(pk=row.pk, state=Round.State.DRAFTED)
        if not drafted.update(preview={}, **values):
            raise _frozen()
        failed = Job.objects.filter(kind="draw", target=row.pk, state=Job.State.FAILED)
        failed.delete()  # it was another design
        audit.record("change round", by=by, campaign=row.campaign_id, target=row)
        row.refresh_from_db()


def differences(*, row: Round, plan: RoundPlan) -> list[str]:
    """In which choices a plan is not what the round is. Raises UserError ``round_invalid``."""
    wanted = _checked(row.campaign, plan)
    return [name for name, value in wanted.items() if getattr(row, name) != value]


def request_draw(
    *, row: Round, by: User, design: str | None = None, and_open: bool = False
) -> None:
    """Has the worker draw the round; from now on nothing changes that the draw rests on.

    With ``and_open`` a campaign that is a draft is opened in the commit that ends the draw.
    With the name of a design (`choices.digest_of`) that one or none: UserError ``design_changed``.
    Asking again while it is on its way changes nothing. Raises UserError ``run_withdrawn`` (409:
    one that it names), ``frozen`` (409), ``campaign_closed`` (409), ``gone`` (404).
    """
    with transaction.atomic():
        choices.refuse_if_over(campaigns.lock(row.campaign_id))
        there = _now(row)
        is_draft = there.state == Round.State.DRAFTED
        if is_draft and (gone := choices.withdrawn_choice(there)):
            raise UserError("run_withdrawn", gone, status=409, field="run")
        if is_draft and design is not None:
            choices.require(there, design)
        drafted = Round.objects.filter(pk=row.pk, state=Round.State.DRAFTED)
        if is_draft and drafted.update(state=Round.State.DRAWING):
            audit.record("ask for draw", by=by, campaign=row.campaign_id, target=row)
            named = {"design": design} if design is not None else {}
            opens = {"open_by": by.pk} if and_open else {}
            jobs.request("draw", row.pk, campaign=row.campaign_id, data=named | opens)
        elif there.is_drawn:
            raise _frozen()
        row.refresh_from_db(fields=["state"])


def discard(*, row: Round, by: User) -> None:
    """Removes a drafted round, with what a draw that failed may have left of it.

    Raises UserError ``being_drawn`` (409) while it is drawn, ``frozen`` (409) from then on, and
    ``gone`` (404) when somebody else has discarded it.
    """
    with transaction.atomic():
        campaigns.lock(row.campaign_id)
        _drafted(row)
        Job.objects.filter(kind__in=["preview", "draw"], target=row.pk).delete()
        leftovers.discard(row)
        of = row.campaign_id
        audit.record("discard round", by=by, campaign=of, target=row, number=row.number)
        Round.objects.filter(pk=row.pk, state=Round.State.DRAFTED).delete()


def _now(row: Round) -> Round:
    rows = Round.objects.select_related("campaign", *NAMED).filter(pk=row.pk)
    return present.now(rows, f"Round {row.number}")


def _drafted(row: Round) -> Round:
    """The round as it is now. Under the campaign's lock it stays a draft: all who ask for a draw or
    discard one take it."""
    there = _now(row)
    if there.is_drawn:
        raise _frozen()
    if there.state == Round.State.DRAWING:
        message = "This round is being drawn. Wait until the draw is done."
        raise UserError("being_drawn", message, status=409)
    return there


def _frozen() -> UserError:
    message = "This round has been drawn and is frozen. Draft another one."
    return UserError("frozen", message, status=409)


def _checked(campaign: Campaign, plan: RoundPlan) -> dict[str, object]:
    """The columns of a round with these choices."""
    _check_named_once(plan)
    full = completed(_first_of_several(plan))
    try:
        return _columns(campaign, full)
    except UserError as error:
        if plan.method:
            raise
        raise _of_no_choice(error, full) from None


def _of_no_choice(error: UserError, plan: RoundPlan) -> UserError:
    """Says first why the round has the method that is refused, as nobody chose it."""
    method, why = label_of(plan.method), why_not_usual(plan)
    if method not in error.message:
        return error
    begin = f"No method was chosen{f': as {why}' if why else ''}, it is {method}."
    return UserError(error.code, f"{begin} {error.message}", field=error.field)


def _columns(campaign: Campaign, plan: RoundPlan) -> dict[str, object]:
    """The same, of a plan that is complete."""
    _require(plan.method in Round.Method.values, "method", one_of(Round.Method.values))
    for name, option in OPTIONS.items():
        fault = option.fault(getattr(plan, name), method=plan.method)
        _require(not fault, name, fault)
    least = max(1, -(-plan.budget // MAX_BATCHES))
    sizes = least <= (plan.batch_size or 0) <= plan.budget
    _require(sizes, "batch_size", f"Expected {least} to {plan.budget:,}, the budget.")
    _check_estimating(plan)
    _check_stopping(campaign, plan)
    _check_hours(plan)
    if plan.depth is not None:
        deepest = campaign.depth
        _require(1 <= plan.depth <= deepest, "depth", f"Expected 1 to {deepest:,}.")
    measure, reported = _measure(plan.measure, "measure"), _reported(plan)
    of_measures.check(campaign, plan, measure, reported)
    return vars(plan) | {
        "measure": measure,
        "reported": reported,
        "predictions": _predictions(campaign, plan, measure),
        "more_predictions": _more_predictions(campaign, plan),
        "cost_table": _cost_table(campaign, plan, measure),
        "seed": plan.seed or secrets.token_hex(8),
        **_runs(campaign, plan),
    }


def _check_estimating(plan: RoundPlan) -> None:
    if plan.estimator:
        message = "The difference estimator has Student intervals only."
        _require(plan.interval == Round.Interval.STUDENT, "interval", message)
    if plan.with_earlier:
        learns = SAMPLING_METHODS[plan.method].draws == "batches"
        message = (
            "Adaptive rounds count an earlier one where they continue it: top up what is judged."
        )
        _require(plan.top_up or not learns, "with_earlier", message)
        message = "Rounds are estimated together by the method's own estimator."
        _require(not plan.estimator, "estimator", message)
        others = SAMPLING_METHODS[plan.method].intervals_together
        message = f"{one_of(others)[:-1]}, where rounds are estimated together."
        _require(plan.interval in others, "interval", message)


def _check_stopping(campaign: Campaign, plan: RoundPlan) -> None:
    """A rule that could never come true, or always is, would not be what somebody meant."""
    if plan.stop_when == Round.Stop.WIDTH:
        _require(plan.stop_width > 0, "stop_width", "Expected a half width above 0 to stop at.")
    if plan.stop_when in (Round.Stop.BEST, Round.Stop.TOP):
        runs = taking_part(campaign).count()
        message = f"Expected two runs or more to find the best of; the campaign has {runs}."
        _require(runs > 1, "stop_when", message)
        message = f"Expected 1 to {runs - 1}: fewer first runs than the campaign has runs."
        is_top = plan.stop_when == Round.Stop.TOP
        _require(not is_top or plan.stop_top < runs, "stop_top", message)


def _check_hours(plan: RoundPlan) -> None:
    """The pace is that of pairs that cost alike, and is known after the first batch."""
    if not plan.keeps_hours:
        return
    message = (
        "A round that keeps to the hours measures what pairs cost by itself: choose that every "
        "pair costs the same."
    )
    _require(plan.costs == Round.Costs.EQUAL, "costs", message)
    message = "Further labels come last, when the hours may be used up. Take 0 to keep to them."
    _require(not plan.further, "further", message)
    message = "Expected two batches or more to keep to the hours: the first one tells the pace."
    _require((plan.batch_size or 0) < plan.budget, "batch_size", message)


def _check_seed(plan: RoundPlan, earlier: QuerySet[Round], later: QuerySet[Round]) -> None:
    """Draws with the seed of another round are its draws again, and no second sample.

    Rounds that are estimated together have seeds of their own: with the earlier ones if this round
    counts them, and with all if a later round counts this one.
    """
    method = SAMPLING_METHODS[plan.method]
    if not (method.again and "with_earlier" in method.options):
        return
    seeds = list(earlier.filter(method=plan.method).values_list("seed", flat=True))
    different = not plan.with_earlier or len(set(seeds)) == len(seeds)
    repeated = "Two earlier rounds of draws have the same seed, so they hold the same draws."
    _require(different, "with_earlier", repeated)
    counting = later.filter(method=plan.method, with_earlier=True).exists()
    if counting:
        seeds += later.filter(method=plan.method).values_list("seed", flat=True)
    alone = not (plan.with_earlier or counting)
    message = "Draws that are estimated together need a seed of their own. Leave it empty."
    _require(alone or plan.seed not in seeds, "seed", message)


def _predictions(campaign: Campaign, plan: RoundPlan, measure: str) -> Prediction | None:
    """Kept only where they are used: as prior, to choose topics, to learn or estimate with.

    Never where two documents at a time are compared, as they are grades of single ones.
    """
    if not plan.predictions:
        message = "This prior needs predicted grades. Upload some."
        _require(plan.prior != Round.Prior.SCORES, "predictions", message)
        message = "The difference estimator needs predicted grades. Upload some."
        _require(not plan.estimator, "predictions", message)
        return None
    there = {row.name: row for row in GRADES.rows(campaign)}
    meant = nearest(plan.predictions, there)
    message = f"The campaign has no predicted grades of this name{meant}."
    _require(plan.predictions in there, "predictions", message)
    method, scores = SAMPLING_METHODS[plan.method], plan.prior == Round.Prior.SCORES
    learned = "predictions" in method.options and parse_measure(measure).family != "preference"
    used = method.draws == "topics" or learned
    return there[plan.predictions] if used or scores or plan.estimator else None


def _check_named_once(plan: RoundPlan) -> None:
    """Who names one twice may have meant another. That the first is among the others, as boxes of
    the form have it, says nothing wrong."""
    names = plan.more_predictions
    twice = next((name for name in names if names.count(name) > 1), "")
    message = f"Expected each name once: “{twice}” is there more than once."
    _require(not twice, "more_predictions", message)


def _first_of_several(plan: RoundPlan) -> RoundPlan:
    """Each name once, the first of them in its own place. A model takes them all alike."""
    first, *rest = dict.fromkeys([plan.predictions, *plan.more_predictions])
    if not first and rest:
        first, *rest = rest
    return replace(plan, predictions=first, more_predictions=rest)


def _more_predictions(campaign: Campaign, plan: RoundPlan) -> list[str]:
    """Rounds keep what they name (`receivers`)."""
    known = set(GRADES.rows(campaign).values_list("name", flat=True))
    for name in plan.more_predictions:
        _require(name in known, "more_predictions", _no_grades(name))
    most = MAX_PREDICTIONS - 1
    message = f"Expected at most {most} further predicted grades."
    _require(len(plan.more_predictions) <= most, "more_predictions", message)
    return plan.more_predictions


def _no_grades(name: str) -> str:
    return f"The campaign has no predicted grades “{name}”."


def _cost_table(campaign: Campaign, plan: RoundPlan, measure: str) -> Prediction | None:
    if plan.costs != Round.Costs.UPLOADED:
        return None
    on_pairs = parse_measure(measure).family == "preference"
    message = "Tables hold costs of single documents, and this measure compares two at a time."
    _require(not on_pairs, "costs", message)
    found = TABLES.rows(campaign).filter(name=plan.cost_table).first()
    message = "The campaign has no table of costs of this name. Upload one, or choose other costs."
    _require(found is not None, "cost_table", message)
    return found


def _runs(campaign: Campaign, plan: RoundPlan) -> dict[str, Run | None]:
    needs_run = plan.goal in (Round.Goal.SINGLE, Round.Goal.PAIR)
    needs_baseline = plan.goal in (Round.Goal.BASELINE, Round.Goal.PAIR)
    run = _run(campaign, plan.run, "run") if needs_run else None
    baseline = _run(campaign, plan.baseline, "baseline") if needs_baseline else None
    _require(run is None or run != baseline, "baseline", "Expected another run than the first.")
    return {"run": run, "baseline": baseline}


def _run(campaign: Campaign, tag: str, field_name: str) -> Run:
    runs = {run.tag: run for run in Run.objects.filter(campaign=campaign)}
    _require(tag in runs, field_name, f"This goal needs a run of the campaign{nearest(tag, runs)}.")
    return runs[tag]


def _reported(plan: RoundPlan) -> list[str]:
    goal = _measure(plan.measure, "measure")
    names = [_measure(text, "reported") for text in plan.reported]
    _require(
        len(names) <= MAX_MEASURES, "reported", f"Expected at most {MAX_MEASURES} further measures."
    )
    return [name for name in dict.fromkeys(names) if name != goal]


def _measure(text: str, field_name: str) -> str:
    try:
        return str(parse_measure(text))
    except MeasureError as error:
        raise UserError("round_invalid", str(error), field=field_name) from None
