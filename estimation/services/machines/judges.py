"""What organizers do with machine judges: add, change, start, stop, remove."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max

from estimation.endpoints import Endpoint
from estimation.listings import listed
from estimation.machine_versions import origins_of
from estimation.machines import AGREEMENT, ASKING
from estimation.models import MachineAnswer, MachineJudge, MachinePrompt
from estimation.services.machines import prompts
from judging.errors import UserError
from judging.models import Campaign, Job, User
from judging.services import audit, campaigns, jobs, present

MAX_NAME = 60
MOST_CALLS = 1_000_000


@dataclass(frozen=True)
class MachinePlan:
    """What is chosen of a machine judge. ``max_cost`` in units of its endpoint's prices."""

    name: str
    endpoint: str
    model: str
    max_calls: int
    max_cost: float | None = None
    prompt: str = prompts.DEFAULT
    with_schema: bool = True
    document_chars: int = prompts.DEFAULT_CHARS


def plan_of(judge: MachineJudge) -> MachinePlan:
    """What was chosen of a machine judge, as it is."""
    names = [field.name for field in fields(MachinePlan) if field.name != "prompt"]
    chosen = {name: getattr(judge, name) for name in names}
    return MachinePlan(prompt=_latest(judge).text, **chosen)


def create(*, campaign: Campaign, by: User, plan: MachinePlan) -> MachineJudge:
    """A machine judge that was not asked yet.

    Raises UserError ``machine_invalid`` or ``prompt_invalid`` with the field at fault,
    ``name_taken`` (409), ``campaign_closed`` (409).
    """
    campaigns.refuse_if_closed(campaign)
    values = _checked(plan)
    text = prompts.check(plan.prompt)
    try:
        with transaction.atomic():
            judge = MachineJudge.objects.create(campaign=campaign, created_by=by, **values)
            _version(judge, by=by, text=text)
            audit.record("add machine judge", by=by, campaign=campaign, target=judge)
    except IntegrityError:
        message = f"The campaign has a machine judge “{plan.name.strip()}” already."
        raise UserError("name_taken", message, status=409, field="name") from None
    return judge


def change(*, judge: MachineJudge, by: User, chosen: Mapping[str, Any]) -> None:
    """Changes some of ceilings, schema and prompt; the others stay what they are by then.

    Name, endpoint and model stay: another model is another machine judge. Whatever changes what is
    asked is a new version of the prompt, with no answers yet; those of the version before are kept.
    Raises UserError as ``create`` does, ``at_work`` (409) while it is asking, ``gone`` (404).
    """
    with transaction.atomic():
        row = _locked(judge)
        if row.is_at_work:
            raise UserError("at_work", "It is asking just now. Stop it first.", status=409)
        now = plan_of(row)
        plan = replace(now, **chosen)
        fixed = ("name", "endpoint", "model")
        same = all(getattr(plan, name) == getattr(now, name) for name in fixed)
        _require(same, "model", "Name, endpoint and model stay. Add another machine judge.")
        values, text = _checked(plan), prompts.check(plan.prompt)
        made = f"It has made {_calls(row.calls)}."
        _require(plan.max_calls >= row.calls, "max_calls", made)
        MachineJudge.objects.filter(pk=row.pk).update(**values)
        row.refresh_from_db()
        before = _latest(row).pk
        if _version(row, by=by, text=text).pk != before:  # of which nothing was asked yet
            MachineJudge.objects.filter(pk=row.pk).update(planned=0, order="")
        audit.record("change machine judge", by=by, campaign=row.campaign_id, target=row)
    judge.refresh_from_db()


def start(*, judge: MachineJudge, by: User) -> None:
    """Has a worker ask, from the best pair that was not answered yet.

    Pairs of which the endpoint has told nothing are asked about again. Raises UserError
    ``at_work`` (409), ``campaign_closed`` (409), ``ceiling`` (409), ``no_endpoint`` (409), ``gone``
    (404).
    """
    with transaction.atomic():
        jobs.request(ASKING, judge.pk, campaign=judge.campaign_id)  # a job is locked before its row
        row = _locked(judge)
        campaigns.refuse_if_closed(row.campaign)
        if row.is_at_work:
            raise UserError("at_work", "It is asking already.", status=409)
        endpoint_of(row)
        if row.calls >= row.max_calls:
            message = f"{ceiling_reached(row)} Raise it first."
            raise UserError("ceiling", message, status=409, field="max_calls")
        prompt = _version(row, by=by, text=_latest(row).text)
        answers = MachineAnswer.objects.filter(prompt=prompt)
        answers.filter(outcome=MachineAnswer.Outcome.DOWN).delete()
        asked = {"state": MachineJudge.State.ASKING, "ended": "", "asked_by": by, "pauses": 0}
        MachineJudge.objects.filter(pk=row.pk).update(**asked, plan_file="", planned=0, order="")
        audit.record("start machine judge", by=by, campaign=row.campaign_id, target=row)
    judge.refresh_from_db()


def stop(*, judge: MachineJudge, by: User) -> None:
    """Sends nothing more; what was sent is waited for, and what was answered is handed in.

    Raises UserError ``not_asking`` (409), ``gone`` (404).
    """
    with transaction.atomic():
        jobs.request(ASKING, judge.pk, campaign=judge.campaign_id)
        asks = MachineJudge.objects.filter(pk=judge.pk, state=MachineJudge.State.ASKING)
        if not asks.update(state=MachineJudge.State.STOPPING):
            present.refuse_if_gone(MachineJudge.objects.filter(pk=judge.pk), judge.name)
            raise UserError("not_asking", "It is not asking, so nothing is to stop.", status=409)
        audit.record("stop machine judge", by=by, campaign=judge.campaign_id, target=judge)
    judge.refresh_from_db()


def remove(*, judge: MachineJudge, by: User) -> None:
    """Takes it and its answers away. Predicted grades that it handed in stay, as files do.

    Raises UserError ``at_work`` (409), ``in_use`` (409) while a round names such grades, of which
    nobody would know any more what they are, ``gone`` (404).
    """
    with transaction.atomic():
        campaign = campaigns.lock(judge.campaign_id)  # no round names more of them meanwhile
        Job.objects.filter(kind__in=[ASKING, AGREEMENT], target=judge.pk).exclude(
            state=Job.State.RUNNING, kind=ASKING
        ).delete()
        row = _locked(judge)
        if row.is_at_work:
            raise UserError("at_work", "It is asking just now. Stop it first.", status=409)
        _refuse_if_named(row, campaign)
        audit.record(
            "remove machine judge", by=by, campaign=row.campaign_id, target=row, name=row.name
        )
        row.delete()


def _refuse_if_named(judge: MachineJudge, campaign: Campaign) -> None:
    origins = origins_of(campaign)
    own = [upload for upload, origin in origins.items() if origin.judge.pk == judge.pk]
    names = set(campaign.predictions.filter(upload__in=own).values_list("name", flat=True))
    rounds = campaign.rounds.select_related("predictions").order_by("number")
    naming = [row.number for row in rounds if names.intersection(row.predicted_by)]
    if naming:
        those = f"Round {naming[0]} uses" if len(naming) == 1 else f"Rounds {listed(naming)} use"
        message = (
            f"{those} its grades, so that prompt and answers stay: they say what these are. A "
            "drafted round can be changed or discarded first."
        )
        raise UserError("in_use", message, status=409)


def endpoint_of(judge: MachineJudge) -> Endpoint:
    """Raises UserError ``no_endpoint`` (409) when the site's administrator has taken it away."""
    found: Endpoint | None = settings.MACHINE_ENDPOINTS.get(judge.endpoint)
    if found is None or judge.model not in found.models:
        what = f"{judge.model} at the endpoint “{judge.endpoint}”"
        message = f"This site does not offer {what} any more. Ask its administrator."
        raise UserError("no_endpoint", message, status=409)
    return found


def ceiling_reached(judge: MachineJudge) -> str:
    return f"Its ceiling of {_calls(judge.max_calls)} is reached."


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number:,} calls"


def _locked(judge: MachineJudge) -> MachineJudge:
    rows = MachineJudge.objects.select_for_update(of=("self",)).select_related("campaign")
    return present.now(rows.filter(pk=judge.pk), judge.name)


def _latest(judge: MachineJudge) -> MachinePrompt:
    found = judge.prompts.last()
    if found is None:
        raise ValueError(f"machine judge {judge.pk} has no prompt")
    return found


def _version(judge: MachineJudge, *, by: User, text: str) -> MachinePrompt:
    """The latest version if it asks the same, else a new one."""
    grades = judge.campaign.grades
    body = prompts.settings_of(
        endpoint_of(judge),
        model=judge.model,
        max_grade=len(grades) - 1,
        with_schema=judge.with_schema,
    )
    digest = prompts.digest(text, grades=grades, chars=judge.document_chars, body=body)
    last = judge.prompts.last()
    if last is not None and last.digest == digest:
        return last
    number = (judge.prompts.aggregate(last=Max("number"))["last"] or 0) + 1
    return MachinePrompt.objects.create(
        judge=judge, number=number, text=text, grades=grades, digest=digest, created_by=by
    )


def _checked(plan: MachinePlan) -> dict[str, object]:
    """The columns of a machine judge with these choices."""
    name = " ".join(plan.name.split())
    good = 0 < len(name) <= MAX_NAME and name.isprintable() and not set(name) & set("/\\")
    _require(good, "name", f"Expected 1 to {MAX_NAME} characters without slashes.")
    known = settings.MACHINE_ENDPOINTS
    _require(plan.endpoint in known, "endpoint", _one_of(known, "endpoint"))
    endpoint = known[plan.endpoint]
    _require(plan.model in endpoint.models, "model", _one_of(endpoint.models, "model"))
    _require(1 <= plan.max_calls <= MOST_CALLS, "max_calls", f"Expected 1 to {MOST_CALLS:,}.")
    least, most = prompts.LEAST_CHARS, prompts.MOST_CHARS
    fits = least <= plan.document_chars <= most
    _require(fits, "document_chars", f"Expected {least} to {most:,}.")
    if plan.max_cost is not None:
        good = math.isfinite(plan.max_cost) and 0 < plan.max_cost <= 1e6
        _require(good, "max_cost", "Expected a number above 0.")
        priced = endpoint.prices is not None
        _require(priced, "max_cost", "This endpoint has no prices, so costs are not known.")
    chosen = vars(plan) | {"name": name}
    return {field: value for field, value in chosen.items() if field != "prompt"}


def _one_of(names: Iterable[str], what: str) -> str:
    listed = ", ".join(names)
    if listed:
        return f"Expected one of {listed}."
    return f"This site offers no {what} yet. Its administrator declares them."


def _require(condition: bool, field: str, message: str) -> None:
    if not condition:
        raise UserError("machine_invalid", message, field=field)
