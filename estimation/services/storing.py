"""The rows of estimates: what was found last, and what a recompute adds to it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db import connection
from django.db.models import Max, QuerySet

from estimation.core.rounds.results import Evaluation, MeasureResult
from estimation.models import Estimate, EstimateSet, Round, Run, StoredPool
from estimation.services import drawing
from judging.models import Campaign
from judging.services import bulk
from judging.statements import Slot, columns_of, counts, reads, row_of

if TYPE_CHECKING:
    from estimation.services.estimates import Inputs, Recomputed

OF_ROUND = [name for name in columns_of(Round) if name != "preview"]


def round_of(pk: int) -> Round:
    """A round with its campaign and its pool. Its preview is read where it is looked at."""
    values = _ROUND.first(pk=pk)
    if values is None:
        raise Round.DoesNotExist(f"round {pk}")
    own, of_campaign = len(OF_ROUND), len(columns_of(Campaign))
    row = Round.from_db(connection.alias, OF_ROUND, values[:own])
    row.campaign = row_of(Campaign, values[own : own + of_campaign])
    if row.pool_id is not None:
        row.pool = row_of(StoredPool, values[own + of_campaign :])
    return row


def latest(row: Round) -> EstimateSet | None:
    """The latest estimates of a round."""
    found = _LATEST.first(round=row.pk)
    return None if found is None else row_of(EstimateSet, found)


def late_tags(shown: EstimateSet) -> set[str]:
    """Of the runs that came after the draw, and are estimated."""
    return {tag for (tag,) in _LATE.rows(estimate_set=shown.pk)}


def _late() -> QuerySet[Estimate, tuple[str]]:
    late = Estimate.objects.filter(estimate_set=Slot("estimate_set"), late=True)
    return late.order_by().values_list("run__tag").distinct()


def _sets() -> QuerySet[EstimateSet]:
    return EstimateSet.objects.filter(round=Slot("round")).order_by("-number")


def store(row: Round, outcome: "Recomputed", matrices: str) -> EstimateSet:
    """Writes the numbers of a recompute; its ``matrices`` are in a file of this name. Call in a
    transaction that holds the job."""
    inputs, evaluation = outcome.inputs, outcome.evaluation
    ((last,),) = _NUMBERS.rows(round=row.pk)
    estimate_set = EstimateSet.objects.create(
        round=row,
        number=(last or 0) + 1,
        batches=inputs.batches,
        look=inputs.look,
        looks=inputs.looks,
        earlier=inputs.earlier,
        pair_count=evaluation.judged_pairs,
        label_count=evaluation.judgments,
        decided_count=inputs.gathered.decided,
        left_out=inputs.left_out,
        withdrawn=inputs.withdrawn,
        matrices_file=matrices,
        label_digest=inputs.gathered.label_digest,
        digest=outcome.digest,
        intervals={str(each.measure): each.interval for each in evaluation.results},
        provenance=_provenance(inputs),
        noise_measured=evaluation.results[0].label_noise_measured,
        relevant_found=_relevant_found(evaluation),
        ratio_bias=dict(_ratio_biases(evaluation)),
        seconds=outcome.seconds,
    )
    runs: dict[str, int] = dict(_RUNS.rows(campaign=row.campaign_id))
    late = frozenset(inputs.late)
    every = [
        _columns(runs, late, result, name)
        for result in evaluation.results
        for name in result.estimators
    ]
    columns = {name: [cell for each in every for cell in each[name]] for name in every[0]}
    bulk.insert(Estimate, columns | {"estimate_set": estimate_set.pk})
    return estimate_set


def _provenance(inputs: "Inputs") -> dict[str, str]:
    made_with = drawing.provenance(inputs.collection.pool)
    return made_with | ({"joined_pool": inputs.joined.digest} if inputs.late else {})


def _relevant_found(evaluation: Evaluation) -> float | None:
    """Ratio measures rest on the relevant documents of a topic: the median number found."""
    found = [each.relevant_found for each in evaluation.results if each.relevant_found is not None]
    return float(min(np.median(each) for each in found)) if found else None


def _ratio_biases(evaluation: Evaluation) -> Iterator[tuple[str, float]]:
    """What was taken off the known values by each ratio measure, on average over runs."""
    for each in evaluation.results:
        known = each.estimate.unknown == 0
        if each.ratio_bias is not None and known.any():
            yield str(each.measure), float(each.ratio_bias[known].mean())


def _columns(
    runs: dict[str, int], late: frozenset[str], result: MeasureResult, name: str
) -> dict[str, list[Any]]:
    """Of the estimates of all runs by one estimator, a row for each run."""
    primary, number = name == result.primary, len(result.runs)
    ranking, estimator = result.ranking, result.estimators[name]
    places, none = _places(result), [None] * number
    return {
        "run": [runs[tag] for tag in result.runs],
        "measure": [str(result.measure)] * number,
        "estimator": [name] * number,
        "primary": [primary] * number,
        "value": estimator.value.tolist(),
        "se": estimator.se.tolist(),
        "df": estimator.df.tolist(),
        "low": estimator.low.tolist(),
        "high": estimator.high.tolist(),
        "support": result.support.tolist(),
        "sample_size": result.effective_sample_size.tolist(),
        "late": [tag in late for tag in result.runs],
        "unknown": estimator.unknown.tolist(),
        "rank": [places.get(index) for index in range(number)] if primary else none,
        "rank_low": ranking.rank_low.tolist() if primary else none,
        "rank_high": ranking.rank_high.tolist() if primary else none,
    }


def _places(result: MeasureResult) -> dict[int, int]:
    """Ranks among the runs whose value is known, by position; the others have none."""
    unknown = result.estimate.unknown
    known = [index for index in result.ranking.order.tolist() if not unknown[index]]
    return {index: place for place, index in enumerate(known, start=1)}


def _round() -> QuerySet[Round]:
    with_it = *columns_of(Campaign, "campaign__"), *columns_of(StoredPool, "pool__")
    return Round.objects.filter(pk=Slot("pk")).values_list(*OF_ROUND, *with_it)


_ROUND = reads(_round)
_LATE = reads(_late)
_LATEST = reads(lambda: _sets().values_list(*columns_of(EstimateSet))[:1])
_NUMBERS = counts(_sets, last=Max("number"))
_RUNS = reads(
    lambda: Run.objects.filter(campaign=Slot("campaign")).order_by().values_list("tag", "pk")
)
