"""From labels to numbers: the recompute after a batch.

Every recompute makes the collection of the round anew (`services.collections`) and asks it. Runs
that were accepted after the draw are estimated from the same labels and take part in the ranking
(see `estimation.core.data.scope`).
"""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from django.db import transaction
from django.db.models import QuerySet

from estimation.core.archives import write_archive
from estimation.core.collections.base import RoundCollection
from estimation.core.data.pool import Pool
from estimation.core.inference.looks import Look
from estimation.core.rounds.results import Evaluation, MeasureResult
from estimation.core.sampling.interval_kinds import IntervalKind
from estimation.models import EstimateSet, Round
from estimation.selectors import complete_batches
from estimation.services import (
    by_topic,
    collections,
    files,
    finite,
    forecasting,
    label_advice,
    pools,
    stopping,
    storing,
    together,
)
from estimation.services.collections import Gathered
from estimation.stored import MATRICES_FORMAT
from estimation.work import QUALITY
from judging.models import Job
from judging.services import jobs
from judging.statements import Slot, changes


@dataclass(frozen=True)
class Inputs:
    """What a recompute rests on: the collection of the round, and what came beside it.

    ``batches`` are the complete ones of the round, ``earlier`` those of the rounds that are
    estimated together with it, by their number. ``looks`` were planned, one for every batch; the
    collection's look says which this is, where more are to come. ``joined`` is the pool with the
    runs that came after the draw, and ``late`` are their tags; ``left_out`` are those of runs that
    came then and cannot take part. Runs that were ``withdrawn`` are not in it; the sample, and what
    is known of its pairs, stay what they were.
    """

    gathered: Gathered
    batches: int
    earlier: dict[str, int]
    looks: int
    joined: Pool
    left_out: list[str]
    withdrawn: list[str]

    @property
    def collection(self) -> RoundCollection:
        return self.gathered.collection

    @property
    def look(self) -> int:
        """The number of the look; 0 if the last is reached, and all holds at this one."""
        found = self.collection.look
        return found.number if found else 0

    @property
    def late(self) -> list[str]:
        return sorted(set(self.joined.runs) - set(self.collection.pool.runs))


@dataclass(frozen=True)
class Recomputed:
    """What a recompute gives. ``digest`` covers every number, to its last bit."""

    inputs: Inputs
    evaluation: Evaluation
    digest: str
    seconds: float


def recompute(job: jobs.Running) -> None:
    """The job: estimates of the round from all its complete batches. Idempotent.

    No estimates are written if neither batches nor labels nor runs have changed since the last
    ones; what is due after them is asked for all the same, as it may have failed.
    """
    row = storing.round_of(job.target)
    if not row.is_drawn or complete_batches(row) == 0:
        return
    inputs = gather(row, job)
    if _is_known(storing.latest(row), inputs):
        with transaction.atomic():
            job.fence()
            if not _is_overtaken(row, inputs):
                _ask_for_what_follows(row)
                _advance(row, inputs)
        return
    outcome = compute(row, inputs)
    facts, arrays = _matrices(outcome)
    _check_numbers(outcome, arrays)
    facts["labels"] = label_advice.compared(row, inputs.collection)
    of_goal = outcome.evaluation.results[0]
    told = None  # what budgets reach is foretold of all runs that a sample was made for
    if not inputs.withdrawn:
        told = forecasting.foretold(inputs.collection, inputs.joined, of_goal)
    facts["forecast"] = told and told.facts()
    if told and told.until is not None:
        arrays["until_0"] = told.until
    matrices = files.keep_written(
        "matrices", lambda file: write_archive(file, MATRICES_FORMAT, facts, arrays)
    )
    ended = inputs.batches == inputs.gathered.batches
    stops = stopping.comes_true(row, of_goal, ended=ended)
    with transaction.atomic():
        job.fence()
        if _is_overtaken(row, inputs):
            return
        _ask_for_what_follows(row, stops=stops)  # jobs are locked before rounds
        shown = storing.store(row, outcome, matrices)
        if stops:
            stopping.note(row, shown, planned=inputs.gathered.batches)
        _advance(row, inputs)


def _ask_for_what_follows(row: Round, *, stops: bool = False) -> None:
    """The end, if the rule of the round has come true; else the next batch, if they are planned one
    by one. A round that has ended has neither. What labels are like is looked at apart from this:
    it takes longer, and nobody waits for it."""
    jobs.request(QUALITY, row.pk, campaign=row.campaign)
    if row.has_ended:
        return
    if stops or row.stopping:
        jobs.request(stopping.STOP, row.pk, campaign=row.campaign)
    elif row.sampling.draws == "batches":
        jobs.request("plan-batch", row.pk, campaign=row.campaign)


def _is_known(last: EstimateSet | None, inputs: Inputs) -> bool:
    if last is None:
        return False
    runs = (storing.late_tags(last), last.left_out, last.withdrawn)
    runs_now = (set(inputs.late), inputs.left_out, inputs.withdrawn)
    known = (last.batches, last.earlier, last.look, last.label_digest)
    now = (inputs.batches, inputs.earlier, inputs.look, inputs.gathered.label_digest)
    return (known, runs) == (now, runs_now)


def is_due(row: Round, inputs: Inputs) -> bool:
    """Whether there is something that the latest estimates do not rest on, and work that will."""
    pending = Job.objects.filter(kind="recompute", target=row.pk, state__in=Job.PENDING)
    return pending.exists() and not _is_known(storing.latest(row), inputs)


def from_scratch(row: Round) -> Recomputed | None:
    """Computes the round's estimates without looking at earlier ones; None before any batch."""
    return compute(row, gather(row)) if complete_batches(row) else None


def gather(row: Round, job: jobs.Running | None = None) -> Inputs:
    """What the round's estimates rest on.

    While batches are to come, intervals and verdicts hold at all planned looks at once. When all
    are complete they hold at that one look, which was fixed before the draw; but not in a round
    with a rule, which may have ended before, so that its last look is one of all as well.
    """
    every = together.counted(row)
    *earlier, last = counted = [each for each in every[:-1] if each.batches] + every[-1:]
    gathered = collections.gather(row, counted)
    number, planned = together.look(every, gathered.batches)
    if number < planned or row.stop_when:
        gathered = gathered.at(Look(number, planned))
    every_run, left_out = pools.joined(row.campaign, gathered.collection.pool, job)
    joined, withdrawn = pools.without_withdrawn(row.campaign, every_run)
    batches = {str(each.row.number): each.batches for each in earlier}
    return Inputs(gathered, last.batches, batches, planned, joined, left_out, withdrawn)


def compute(row: Round, inputs: Inputs) -> Recomputed:
    start = time.perf_counter()
    evaluation = inputs.collection.evaluate(
        inputs.joined,
        measures=inputs.collection.measures,
        interval=cast(IntervalKind, row.interval),
    )
    seconds = time.perf_counter() - start
    return Recomputed(inputs, evaluation, _digest(evaluation), seconds)


def _digest(evaluation: Evaluation) -> str:
    digest = hashlib.sha256()
    for result in evaluation.results:
        digest.update(f"{result.measure} {result.primary}\n".encode())
        for name, numbers in _numbers(result):
            digest.update(f"{name} {numbers.shape}\n".encode())
            digest.update(np.ascontiguousarray(numbers, dtype="<f8").data)
    return digest.hexdigest()


def _numbers(result: MeasureResult) -> Iterator[tuple[str, np.ndarray]]:
    """Every number; of what is unknown only where something is, which keeps older digests equal."""
    for name, estimator in sorted(result.estimators.items()):
        for field in ("value", "se", "df", "low", "high", "covariance"):
            yield f"{name}.{field}", getattr(estimator, field)
        if estimator.unknown.any():
            yield f"{name}.unknown", estimator.unknown
    yield "support", result.support
    yield "effective_sample_size", result.effective_sample_size
    for field in ("rank", "rank_low", "rank_high", "verdicts", "margin", "adjusted_p"):
        yield f"ranking.{field}", getattr(result.ranking, field)
    if result.ranking.unknown.any():
        yield "ranking.unknown", result.ranking.unknown
    if result.equivalence:
        yield "margin.low", result.equivalence.low
        yield "margin.high", result.equivalence.high


def _matrices(outcome: Recomputed) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    arrays: dict[str, np.ndarray] = {}
    for index, result in enumerate(outcome.evaluation.results):
        arrays[f"covariance_{index}"] = result.estimate.covariance
        arrays[f"by_topic_{index}"] = result.by_topic
        for field in ("margin", "adjusted_p", "verdicts", "unknown"):
            arrays[f"{field}_{index}"] = getattr(result.ranking, field)
        if result.equivalence:
            arrays[f"margin_low_{index}"] = result.equivalence.low
            arrays[f"margin_high_{index}"] = result.equivalence.high
    results, inputs = outcome.evaluation.results, outcome.inputs
    arrays |= by_topic.topic_arrays(inputs.collection, inputs.joined, results)
    facts: dict[str, object] = {
        "runs": results[0].runs,
        "topics": outcome.inputs.collection.topics,
        "measures": [str(result.measure) for result in results],
        "negligible": outcome.inputs.collection.negligible,
        "noise": {str(each.measure): _noise_shares(each) for each in results},
    }
    return facts, arrays


def _noise_shares(result: MeasureResult) -> list[float | None] | None:
    """The share of each run's variance that people's disagreement gives, where that is known."""
    estimate = result.estimate
    if estimate.noise is None or not result.label_noise_measured:
        return None
    squares = estimate.se**2
    shares = np.divide(estimate.noise, squares, out=np.zeros_like(squares), where=squares > 0.0)
    known = (squares > 0.0) & (estimate.unknown == 0)
    return [
        min(share, 1.0) if told else None
        for share, told in zip(shares.tolist(), known.tolist(), strict=True)
    ]


def _check_numbers(outcome: Recomputed, arrays: dict[str, np.ndarray]) -> None:
    """Nothing but numbers is stored. Margins are infinite where nothing limits a difference."""
    of_estimates = {
        f"{name} of {result.measure}": numbers
        for result in outcome.evaluation.results
        for name, numbers in _numbers(result)
    }
    checked = {id(numbers) for numbers in of_estimates.values()}
    others = {name: each for name, each in arrays.items() if id(each) not in checked}
    found = of_estimates | others
    finite.check(found, may_be_infinite=[name for name in found if "margin" in name])


def _is_overtaken(row: Round, inputs: Inputs) -> bool:
    """Whether batches that were gathered lack labels by now, as work was excluded meanwhile.

    Asked under the lock of the job. Who excludes asks for a recompute in that transaction, and so
    was either seen here or waits, and then finds the state that this one leaves.
    """
    return complete_batches(row) < inputs.batches


def _advance(row: Round, inputs: Inputs) -> None:
    done = inputs.batches == inputs.gathered.batches
    _ADVANCED.rows(pk=row.pk, state=Round.State.COMPLETE if done else Round.State.JUDGING)


def _advanced() -> tuple[QuerySet[Round], dict[str, object]]:
    going_on = [Round.State.DRAWN, Round.State.JUDGING]
    return Round.objects.filter(pk=Slot("pk"), state__in=going_on), {"state": Slot("state")}


_ADVANCED = changes(_advanced)
