"""What pages and answers show of machine judges, as plain data."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Avg, Count, OuterRef, Q, QuerySet, Subquery, Sum

from estimation.endpoints import Endpoint
from estimation.machines import ASKING
from estimation.models import MachineAnswer, MachineJudge, MachinePrompt
from judging import selectors as judging
from judging.models import Campaign, Job

LATEST = 10
Outcome = MachineAnswer.Outcome


def endpoints() -> list[Endpoint]:
    """What the site's administrator declares, by name."""
    declared: dict[str, Endpoint] = settings.MACHINE_ENDPOINTS
    return [declared[name] for name in sorted(declared)]


def judges_of(campaign: Campaign) -> QuerySet[MachineJudge]:
    """The machine judges of a campaign, each with ``graded``, as the latest version has it."""
    versions = MachinePrompt.objects.filter(judge=OuterRef("pk")).order_by("-number")
    latest = Q(prompts=Subquery(versions.values("pk")[:1]))
    of_latest = latest & Q(prompts__answers__outcome=Outcome.GRADED)
    graded = Count("prompts__answers", filter=of_latest)
    rows = campaign.machine_judges.select_related("campaign", "upload__prediction")
    return rows.annotate(graded=graded).order_by("pk")


@dataclass(frozen=True)
class Failure:
    """How often one thing went wrong, and what came back the last time."""

    outcome: str
    name: str
    count: int
    example: str


@dataclass(frozen=True)
class MachineStanding:
    """How far a machine judge is with the latest version of its prompt.

    ``models``: what the endpoint called the models that answered, which it may change at any time.
    """

    judge: MachineJudge
    prompt: MachinePrompt
    job: Job | None
    answered: int
    graded: int
    failures: list[Failure]
    tokens_in: int
    tokens_out: int
    seconds: float | None
    models: list[str]
    latest: list[MachineAnswer]
    endpoint: Endpoint | None

    @property
    def failed(self) -> int:
        return self.answered - self.graded

    @property
    def percent(self) -> int:
        """Of the pairs that are to be asked about."""
        return min(100, 100 * self.answered // max(self.judge.planned, 1))

    @property
    def calls_left(self) -> int:
        """As many as may still be made."""
        return self.judge.max_calls - self.judge.calls

    @property
    def waits(self) -> str:
        """What its job waits for, in words, while it asks."""
        return self.job.note if self.job is not None and self.judge.is_at_work else ""

    @property
    def priced(self) -> bool:
        return self.endpoint is not None and self.endpoint.prices is not None


def standing(judge: MachineJudge) -> MachineStanding:
    prompt = judge.prompts.last()
    if prompt is None:
        raise ValueError(f"machine judge {judge.pk} has no prompt")
    answers = MachineAnswer.objects.filter(prompt=prompt)
    counts = dict(answers.values_list("outcome").annotate(n=Count("pk")).order_by())
    sums = answers.aggregate(
        tokens_in=Sum("tokens_in"), tokens_out=Sum("tokens_out"), seconds=Avg("seconds")
    )
    return MachineStanding(
        judge=judge,
        prompt=prompt,
        job=judging.job_of(ASKING, judge.pk),
        answered=sum(counts.values()),
        graded=counts.get(Outcome.GRADED, 0),
        failures=_failures(answers, counts),
        tokens_in=sums["tokens_in"] or 0,
        tokens_out=sums["tokens_out"] or 0,
        seconds=sums["seconds"],
        models=_models(answers),
        latest=list(answers.select_related("topic").order_by("-pk")[:LATEST]),
        endpoint=settings.MACHINE_ENDPOINTS.get(judge.endpoint),
    )


def compared_grades(judge: MachineJudge) -> list[dict[str, str]] | None:
    """The scale as the version told it whose answers were compared with people; None before."""
    number = int(judge.agreement["prompt"]) if judge.agreement else 0
    return judge.prompts.filter(number=number).values_list("grades", flat=True).first()


def _models(answers: QuerySet[MachineAnswer]) -> list[str]:
    named = answers.exclude(model="").order_by("model").values_list("model", flat=True)
    return list(named.distinct())


def _failures(answers: QuerySet[MachineAnswer], counts: dict[Any, int]) -> list[Failure]:
    """The most frequent first."""
    found = []
    for outcome in Outcome:
        if outcome == Outcome.GRADED or not counts.get(outcome):
            continue
        last = answers.filter(outcome=outcome).order_by("-pk").values_list("reply", flat=True)
        found.append(Failure(outcome, str(outcome.label), counts[outcome], last[0]))
    return sorted(found, key=lambda failure: -failure.count)
