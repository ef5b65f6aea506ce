"""The next batch of a round that is planned as it goes, from the judgments of all before it."""

from typing import Any

import numpy as np
from django.db import transaction

from estimation.core.data.pool import Pool
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.rounds import PlannedRound
from estimation.models import Round
from estimation.selectors import complete_batches
from estimation.services import collections, drawing, estimates, files, hours, leftovers, pausing
from estimation.services.hours import HoursSoFar
from judging.services import audit, batches, jobs


def plan_batch(job: jobs.Running) -> None:
    """The job: adds a batch to the round once all are complete. Safe to run again at any point.

    What is planned depends on nothing but the seed and the labels of the batches before, and where
    the round keeps to hours their times, so that a second attempt plans the same pairs; the round's
    sample changes in the same commit in which the batch is released.
    """
    row = Round.objects.select_related("campaign", "pool").get(pk=job.target)
    if row.stopping:
        leftovers.discard(row)
    if row.state != Round.State.JUDGING or row.stopping:
        return
    leftovers.discard(row)
    pool, drawn = collections.columns_of(row)
    if not isinstance(drawn, PlannedRound) or complete_batches(row) < drawn.planned:
        return
    inputs, so_far = estimates.gather(row, job), hours.hours_so_far(row, pool, drawn)
    longer, paces = _extended(row, pool, drawn, inputs, so_far)
    if longer is drawn:
        Round.objects.filter(pk=row.pk, state=Round.State.JUDGING).update(
            state=Round.State.COMPLETE
        )
        return
    served = longer.served(pool)
    batch_ids = drawing.prepare(row, pool, longer, job)
    sample = files.keep_written("samples", longer.sample.save)
    with transaction.atomic():
        job.fence()
        going = Round.objects.filter(pk=row.pk, state=Round.State.JUDGING)
        changed = going.filter(sample_file=row.sample_file).update(sample_file=sample, paces=paces)
        if changed:
            batches.release(batch_ids)
            if Round.objects.filter(pk=row.pk, paused__isnull=False).exists():
                pausing.hold_back(row)
            audit.record(
                "plan batch",
                by=None,
                campaign=row.campaign_id,
                target=row,
                batch=longer.planned,
                pairs=int(np.count_nonzero(served.batch == longer.planned)),
            )
    if not changed:  # the round was stopped meanwhile
        leftovers.discard(row)
        return
    row.sample_file, row.paces = sample, paces
    _work_ahead(row, inputs)


def _extended(
    row: Round, pool: Pool, drawn: PlannedRound, inputs: estimates.Inputs, so_far: HoursSoFar | None
) -> tuple[PlannedRound, list[dict[str, Any]]]:
    """The round with its next batch, and what its batches were planned by to keep to the hours.

    Differences that do not matter were named before the draw.
    """
    labels, negligible = inputs.collection.labels, row.negligible
    if not isinstance(drawn, AdaptiveRound):
        return drawn.extended(pool, labels=labels), row.paces
    if so_far is None or drawn.planned == drawn.batches:
        return drawn.extended(pool, labels=labels, negligible=negligible), row.paces
    planned = drawn.next_batch(pool, labels=labels, negligible=negligible, budget=so_far.budget)
    longer = drawn.with_batch(planned, planned.draws(seed=drawn.sample.seed))
    expected = len(drawn.sample.pair) + planned.expected_ahead
    return longer, [*row.paces, so_far.told(batch=planned.number, expected=expected)]


def _work_ahead(row: Round, inputs: estimates.Inputs) -> None:
    """What the recompute after the batch will take and no judgment is in, while people judge it.

    A worker that recomputes without it works it out then, to the same bits.
    """
    collection, (_, drawn) = inputs.collection, collections.columns_of(row)
    if isinstance(drawn, AdaptiveRound) and isinstance(collection.drawn, AdaptiveRound):
        measures = collection.measures
        drawn.work_ahead(collection.scope_of(inputs.joined, measures), measures)
