"""What the numbers would be if excluded work counted; worked out after the estimates, beside them.

It is told of the batches that estimates rest on, with all that excluded people said of their pairs
counted beside what others said: what estimates become when the exclusions are taken back, as far
as they rest on the same batches then. So nothing moves but labels; the sample, its looks and the
half widths that a move is held against are the same. Nobody decides an exclusion by it unless they
look, nothing of it goes into an estimate, a design or a plan, and so it biases none.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from django.db.models import Count, F, Max

from estimation.core.rounds.results import Evaluation, MeasureResult
from estimation.core.sampling.interval_kinds import IntervalKind
from estimation.models import EstimateSet, Round
from estimation.services import together
from estimation.services.estimates import Inputs, compute
from estimation.services.round_labels import RoundLabels
from judging.models import Assignment, Exclusion, Judgment

MOST_NAMED = 20
"""Verdicts of a kind that are told one by one; of more there is the number."""
NOTHING: dict[str, Any] = {"exclusions": [], "said": [0, 0]}


def seen(row: Round) -> dict[str, Any]:
    """What is excluded in the campaign: the rows in force, and how much is said aside, up to which
    judgment. Another one whenever what is told here may be."""
    force = Exclusion.objects.filter(campaign=row.campaign_id, ended=None).order_by("pk")
    found = list(force.values_list("pk", "assessor"))
    aside = Judgment.objects.filter(
        assignment__campaign=row.campaign_id,
        assignment__assessor__in=[who for _, who in found],
        assignment__state=Assignment.State.EXCLUDED,
        assignment__gold=False,
        revision=F("assignment__set_aside"),
    )
    said = aside.order_by().aggregate(count=Count("pk"), last=Max("pk"))
    return {"exclusions": [pk for pk, _ in found], "said": [said["count"], said["last"] or 0]}


def facts(row: Round, shown: EstimateSet, inputs: Inputs) -> list[dict[str, Any]]:
    """Of every way: all excluded work first and, where there are several grounds, that of each."""
    force = Exclusion.objects.filter(campaign=row.campaign_id, ended=None)
    of_grounds: dict[str, list[int]] = {}
    for ground, who in force.order_by("pk").values_list("ground", "assessor"):
        of_grounds.setdefault(ground, []).append(who)
    ways = {"": [who for people in of_grounds.values() for who in people]}
    ways |= of_grounds if len(of_grounds) > 1 else {}
    counted, evaluation = together.behind(row, shown), compute(row, inputs).evaluation
    return [
        {"ground": ground, "people": len(people)}
        | _way(row, inputs, evaluation, _labels(row, inputs, counted, people))
        for ground, people in ways.items()
        if people
    ]


def _labels(
    row: Round, inputs: Inputs, counted: Sequence[together.Counted], people: Collection[int]
) -> RoundLabels:
    return RoundLabels.of(row, inputs.collection.pool, counted, taken_back=people)


def _way(row: Round, inputs: Inputs, evaluation: Evaluation, labels: RoundLabels) -> dict[str, Any]:
    """``labels``: how many count that do not now."""
    now = set(inputs.gathered.said.names)
    back = [at for at, name in enumerate(labels.names) if name not in now]
    if not back:
        return {"labels": 0, "measures": _moved(evaluation, evaluation)}
    otherwise = replace(inputs.collection, labels=labels).evaluate(
        inputs.joined,
        measures=inputs.collection.measures,
        interval=cast(IntervalKind, row.interval),
    )
    number = int(np.count_nonzero(np.isin(labels.assessor, back)))
    return {"labels": number, "measures": _moved(evaluation, otherwise)}


def _moved(evaluation: Evaluation, otherwise: Evaluation) -> list[dict[str, Any]]:
    return [
        {
            "measure": str(now.measure),
            "runs": list(now.runs),
            "lower": now.measure.lower_is_better,
            "values": known_values(now),
            "half_widths": _half_widths(now),
            "otherwise": known_values(then),
            "verdicts": _verdicts(now, then),
        }
        for now, then in zip(evaluation.results, otherwise.results, strict=True)
    ]


def known_values(result: MeasureResult) -> list[float | None]:
    """Of each run; None where it is not known."""
    estimate = result.estimate
    known = np.asarray(estimate.unknown) == 0
    return [
        float(value) if fine else None
        for value, fine in zip(estimate.value.tolist(), known.tolist(), strict=True)
    ]


def _half_widths(result: MeasureResult) -> list[float | None]:
    """Of each run, as pages print them; None where there is none or the value is not known."""
    estimate = result.estimate
    half = estimate.half_width
    usable = np.isfinite(half) & (np.asarray(estimate.unknown) == 0)
    return [
        float(width) if fine else None
        for width, fine in zip(half.tolist(), usable.tolist(), strict=True)
    ]


def _verdicts(now: MeasureResult, then: MeasureResult) -> dict[str, Any]:
    """Which verdicts come, go or turn round: how many, and the better and the worse run of some.

    Of those that turn the better one is that of now.
    """
    before, after = now.ranking.verdicts, then.ranking.verdicts
    kinds = {
        "appear": (after == 1) & (before == 0),
        "fall": (before == 1) & (after == 0),
        "turn": (before == 1) & (after == -1),
    }
    told = {}
    for name, which in kinds.items():
        pairs = np.argwhere(which)
        named = [[now.runs[one], now.runs[two]] for one, two in pairs[:MOST_NAMED].tolist()]
        told[name] = {"count": len(pairs), "named": named}
    return told
