"""From labels to numbers: the recompute after a batch.

Every recompute starts from what the database holds: the round's frozen design and sample, and the
labels of its batches. Only the complete batches in a row from the first are used, because every
such prefix is an exact sample of the design; which pairs they hold was settled before any grade
was known. The same rows give the same bits, in whatever order they come.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from django.db import transaction
from django.db.models import Max

from estimation.core.archives import write_archive
from estimation.core.evaluation import EstimatorResult, Evaluation, MeasureResult
from estimation.core.labels import LabelRows
from estimation.core.pool import Pool as Columns
from estimation.core.rounds import Round as Drawn
from estimation.core.rounds import load_round
from estimation.models import Draw, Estimate, EstimateSet, Round
from estimation.selectors import MATRICES_FORMAT, complete_batches
from estimation.services import designing, drawing, files
from judging import selectors
from judging.services import jobs


@dataclass(frozen=True)
class Inputs:
    """What a recompute rests on."""

    pool: Columns
    drawn: Drawn
    batches: int
    labels: LabelRows
    label_digest: str
    decided: int


@dataclass(frozen=True)
class Outcome:
    """What a recompute gives. ``digest`` covers every number, as hexadecimal floats."""

    inputs: Inputs
    evaluation: Evaluation
    digest: str
    seconds: float


def recompute(job: jobs.Running) -> None:
    """The job: estimates of the round from all its complete batches. Idempotent.

    Nothing is written if neither batches nor labels have changed since the last estimates.
    """
    row = Round.objects.select_related("campaign", "pool").get(pk=job.target)
    if row.state == Round.State.DRAFTED or complete_batches(row) == 0:
        return
    inputs = gather(row)
    last = row.estimate_sets.last()
    if last and (last.batches, last.label_digest) == (inputs.batches, inputs.label_digest):
        return
    outcome = compute(row, inputs)
    matrices = files.keep_written(
        "matrices", lambda file: write_archive(file, MATRICES_FORMAT, *_matrices(outcome))
    )
    with transaction.atomic():
        job.fence()
        _store(row, outcome, matrices)
        _advance(row, outcome)
        if row.method == Round.Method.ACTIVE:
            jobs.request("plan-batch", row.pk, campaign=row.campaign)


def from_scratch(row: Round) -> Outcome | None:
    """Computes the round's estimates without looking at earlier ones; None before any batch."""
    return compute(row, gather(row)) if complete_batches(row) else None


def gather(row: Round) -> Inputs:
    pool, drawn = columns_of(row)
    batches = complete_batches(row)
    draws = Draw.objects.filter(round=row, batch_number__lte=batches)
    positions = dict(draws.values_list("pair_id", "position"))
    labels = [
        (positions[label.pair], label.assessor, label.grade, label.decided)
        for label in selectors.labels(draws.values("pair"))
        if label.pair in positions
    ]
    labels.sort()
    return Inputs(
        pool=pool,
        drawn=drawn,
        batches=batches,
        labels=LabelRows(
            pair=np.array([label[0] for label in labels], dtype=np.int64),
            grade=np.array([label[2] for label in labels], dtype=np.int64),
        ),
        label_digest=hashlib.sha256(json.dumps(labels).encode()).hexdigest(),
        decided=sum(label[3] for label in labels),
    )


def columns_of(row: Round) -> tuple[Columns, Drawn]:
    """The pool of a drawn round, and what was drawn from it."""
    if row.pool is None:
        raise ValueError(f"round {row.pk} has not been drawn")
    stored = files.path_of(row.design_file), files.path_of(row.sample_file)
    return _pool(row.pool.file), load_round(*stored)


@lru_cache(maxsize=4)
def _pool(name: str) -> Columns:
    """A pool file never changes: its name is the digest of its content."""
    return Columns.load(files.path_of(name))


def compute(row: Round, inputs: Inputs) -> Outcome:
    start = time.perf_counter()
    evaluation = inputs.drawn.evaluate(
        inputs.pool,
        labels=inputs.labels,
        measures=designing.measures_of(row),
        max_grade=row.campaign.max_grade,
        batches=inputs.batches,
    )
    seconds = time.perf_counter() - start
    return Outcome(inputs, evaluation, _digest(evaluation), seconds)


def _digest(evaluation: Evaluation) -> str:
    digest = hashlib.sha256()
    for result in evaluation.results:
        digest.update(f"{result.measure} {result.primary}\n".encode())
        for name, numbers in _numbers(result):
            exact = " ".join(float(number).hex() for number in numbers.ravel().tolist())
            digest.update(f"{name} {exact}\n".encode())
    return digest.hexdigest()


def _numbers(result: MeasureResult) -> Iterator[tuple[str, np.ndarray]]:
    for name, estimator in sorted(result.estimators.items()):
        for field in ("value", "se", "df", "low", "high", "covariance"):
            yield f"{name}.{field}", getattr(estimator, field)
    yield "support", result.support
    yield "effective_sample_size", result.effective_sample_size
    for field in ("rank", "rank_low", "rank_high", "verdicts", "margin", "adjusted_p"):
        yield f"ranking.{field}", getattr(result.ranking, field)


def _matrices(outcome: Outcome) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    arrays: dict[str, np.ndarray] = {}
    for index, result in enumerate(outcome.evaluation.results):
        arrays[f"covariance_{index}"] = result.estimate.covariance
        arrays[f"by_topic_{index}"] = result.by_topic
        for field in ("margin", "adjusted_p", "verdicts"):
            arrays[f"{field}_{index}"] = getattr(result.ranking, field)
    results = outcome.evaluation.results
    facts: dict[str, object] = {
        "runs": results[0].runs,
        "measures": [str(result.measure) for result in results],
    }
    return facts, arrays


def _store(row: Round, outcome: Outcome, matrices: str) -> None:
    inputs, evaluation = outcome.inputs, outcome.evaluation
    last = row.estimate_sets.aggregate(last=Max("number"))["last"] or 0
    estimate_set = EstimateSet.objects.create(
        round=row,
        number=last + 1,
        batches=inputs.batches,
        pair_count=evaluation.judged_pairs,
        label_count=evaluation.judgments,
        decided_count=inputs.decided,
        matrices_file=matrices,
        label_digest=inputs.label_digest,
        digest=outcome.digest,
        provenance=drawing.provenance(inputs.pool),
        noise_measured=evaluation.results[0].label_noise_measured,
        relevant_found=_relevant_found(evaluation),
        seconds=outcome.seconds,
    )
    runs = dict(row.campaign.runs.values_list("tag", "pk"))
    Estimate.objects.bulk_create(
        estimate
        for result in evaluation.results
        for name, estimator in result.estimators.items()
        for estimate in _rows(estimate_set, runs, result, name, estimator)
    )


def _relevant_found(evaluation: Evaluation) -> float | None:
    """Ratio measures rest on the relevant documents of a topic: the median number found."""
    found = [each.relevant_found for each in evaluation.results if each.relevant_found is not None]
    return float(min(np.median(each) for each in found)) if found else None


def _rows(
    estimate_set: EstimateSet,
    runs: dict[str, int],
    result: MeasureResult,
    name: str,
    estimator: EstimatorResult,
) -> Iterator[Estimate]:
    primary = name == result.primary
    ranking = result.ranking
    for index, tag in enumerate(result.runs):
        yield Estimate(
            estimate_set=estimate_set,
            run_id=runs[tag],
            measure=str(result.measure),
            estimator=name,
            primary=primary,
            value=float(estimator.value[index]),
            se=float(estimator.se[index]),
            df=float(estimator.df[index]),
            low=float(estimator.low[index]),
            high=float(estimator.high[index]),
            support=float(result.support[index]),
            sample_size=float(result.effective_sample_size[index]),
            rank=int(ranking.rank[index]) if primary else None,
            rank_low=int(ranking.rank_low[index]) if primary else None,
            rank_high=int(ranking.rank_high[index]) if primary else None,
        )


def _advance(row: Round, outcome: Outcome) -> None:
    done = outcome.inputs.batches == outcome.inputs.drawn.batches
    state = Round.State.COMPLETE if done else Round.State.JUDGING
    Round.objects.filter(pk=row.pk, state__in=[Round.State.DRAWN, Round.State.JUDGING]).update(
        state=state
    )
