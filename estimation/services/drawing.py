"""The draw: from a drafted round to batches that wait to be judged, all or nothing.

The probabilities of all batches are fixed here, before anything is judged, and every drawn pair
goes to the judging side; only (topic, document) pairs and numbers of labels cross over.
"""

import platform
from collections.abc import Sequence

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from estimation.core.designs import Design
from estimation.core.draws import Sample, draw, extra_labels
from estimation.core.pool import Pool as Columns
from estimation.models import Draw, Pool, Round, RoundBatch
from estimation.services import designing, files, pools
from judging.errors import UserError
from judging.models import Campaign, Upload
from judging.services import audit, batches, jobs

CHUNK = 2000


def draw_round(job: jobs.Running) -> None:
    """The job: draws the round. Safe to run again at any point before the last commit."""
    row = Round.objects.select_related("campaign", "run", "baseline").get(pk=job.target)
    if row.state != Round.State.DRAFTED:
        return
    _refuse_while_uploads_pend(row.campaign)
    _discard_remains(row)
    pool_row, pool = pools.ensure(row.campaign)
    design = designing.design_of(row, pool)
    sample = draw(pool, design, seed=row.seed)
    job.report(0.1, f"{len(sample):,} pairs drawn")
    batch_ids = _prepare(row, pool, design, sample, job)
    _freeze(row, pool_row, design, sample, batch_ids, job)


def _refuse_while_uploads_pend(campaign: Campaign) -> None:
    pending = campaign.uploads.filter(
        state__in=[Upload.State.STORED, Upload.State.READING], check_only=False
    )
    if pending.exists():
        raise jobs.NotYet(1.0, "waits for uploads to be read")


def _discard_remains(row: Round) -> None:
    """What an earlier attempt left behind when it was cut off."""
    row.draws.all().delete()
    left = [link.batch for link in row.round_batches.select_related("batch")]
    row.round_batches.all().delete()
    batches.discard(left)


def _prepare(
    row: Round, pool: Columns, design: Design, sample: Sample, job: jobs.Running
) -> list[int]:
    topics = dict(row.campaign.topics.values_list("topic_id", "pk"))
    labels = extra_labels(
        pool, seed=row.seed, pairs=sample.pair, labels=row.labels, share=row.extra_share
    )
    counts = np.bincount(sample.draws, minlength=len(pool)) if len(sample.draws) else None
    ids = []
    for number in range(1, design.batches + 1):
        batch = batches.new_batch(row.campaign)
        RoundBatch.objects.create(round=row, number=number, batch=batch)
        entering = np.flatnonzero(sample.batch == number)
        wanted = [
            batches.WantedPair(
                topic=topics[pool.topics[pool.topic[position]]],
                docno=pool.docno[position].decode(),
                labels=wanted_labels,
            )
            for position, wanted_labels in zip(
                sample.pair[entering].tolist(), labels[entering].tolist(), strict=True
            )
        ]
        pair_ids = batches.prepare(batch, wanted)
        _create_draws(row, number, pair_ids, sample, entering, counts)
        ids.append(batch.pk)
        job.report(0.1 + 0.8 * number / design.batches, f"batch {number} of {design.batches}")
    return ids


def _create_draws(
    row: Round,
    number: int,
    pair_ids: Sequence[int],
    sample: Sample,
    entering: np.ndarray,
    counts: np.ndarray | None,
) -> None:
    draws = [
        Draw(
            round=row,
            pair_id=pair_id,
            position=position,
            batch_number=number,
            count=1 if counts is None else int(counts[position]),
            probability=probability,
        )
        for pair_id, position, probability in zip(
            pair_ids,
            sample.pair[entering].tolist(),
            sample.probability[entering].tolist(),
            strict=True,
        )
    ]
    for start in range(0, len(draws), CHUNK):
        Draw.objects.bulk_create(draws[start : start + CHUNK])


def _freeze(
    row: Round,
    pool_row: Pool,
    design: Design,
    sample: Sample,
    batch_ids: list[int],
    job: jobs.Running,
) -> None:
    frozen = {
        "state": Round.State.DRAWN,
        "pool": pool_row,
        "design_file": files.keep_written("designs", design.save),
        "sample_file": files.keep_written("samples", sample.save),
        "provenance": provenance(design),
        "drawn": Now(),
    }
    with transaction.atomic():
        job.fence()
        if not Round.objects.filter(pk=row.pk, state=Round.State.DRAFTED).update(**frozen):
            raise UserError("frozen", "This round has been drawn already.", status=409)
        batches.release(batch_ids)
        audit.record(
            "draw round",
            by=None,
            campaign=row.campaign_id,
            target=row,
            pairs=len(sample),
            pool=pool_row.digest,
            seed=row.seed,
        )


def provenance(design: Design) -> dict[str, str]:
    """With what the numbers were made, for the report."""
    return {
        "evalsite": settings.VERSION,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "pool": design.pool_digest,
    }
