"""The draw: from a drafted round to batches that wait to be judged, all or nothing.

The probabilities of all batches are fixed here, before anything is judged, and every drawn pair
goes to the judging side; only (topic, document) pairs and numbers of labels cross over.
"""

import platform
from collections.abc import Mapping, Sequence
from itertools import repeat

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import F, Sum
from django.db.models.functions import Now

from estimation.core.arrays import FloatArray, IntArray
from estimation.core.data.pool import Pool
from estimation.core.rounds.overlap import plan_of_round
from estimation.core.rounds.rounds import Round as Drawn
from estimation.core.rounds.rounds import draw_round as draw
from estimation.core.sampling.random_numbers import extra_labels
from estimation.core.sampling.samples import Served
from estimation.models import Draw, Round, RoundBatch, StoredPool
from estimation.plans import NAMED
from estimation.services import (
    choices,
    designing,
    files,
    finite,
    leftovers,
    quoting,
    together,
    topping,
)
from judging.errors import UserError
from judging.models import Batch, BatchPair, Campaign, Upload, User
from judging.services import audit, batches, bulk, campaigns, jobs


def draw_round(job: jobs.Running) -> None:
    """The job: draws the round. Safe to run again at any point before the last commit.

    From the wish to the end of the draw the services refuse to change what it rests on
    (`judging.services.campaigns.lock`).
    """
    row = _row(job.target)
    if row.state != Round.State.DRAWING:
        return
    _refuse_while_uploads_pend(row.campaign)
    leftovers.discard(row)
    pool_row, pool = designing.pool_for(row, job)
    if "design" in job.data:  # a run may have come in since the button was pressed
        choices.require(row, job.data["design"])
    adds_to = choices.topped_up(row)
    design, labels = designing.design_of(row, pool), topping.labels_of(row, pool)
    choices.require_topped_up(row, adds_to)  # labels are of what the design has as judged
    drawn = draw(pool, design, seed=row.seed, labels=labels)
    served = drawn.served(pool)
    finite.check({"probability": served.probability})
    job.report(0.1, f"{len(served.pair):,} pairs drawn")
    made_with = provenance(pool) | _added_to(row, pool)
    choices.require_topped_up(row, adds_to)
    batch_ids = prepare(row, pool, drawn, job)
    row.refresh_from_db(fields=["preview"])
    if row.with_earlier and row.preview:  # another round may have been drawn since then
        row.preview["earlier"] = together.told(row, pool)
    _freeze(row, pool_row, made_with, drawn, batch_ids, job)


def _row(pk: int) -> Round:
    named = ("campaign", *NAMED)
    return Round.objects.select_related(*named).get(pk=pk)


def give_back(pk: int, _error: str) -> None:
    """A draw that failed for good: the round is a draft again, and nothing of the attempt stays."""
    if Round.objects.filter(pk=pk, state=Round.State.DRAWING).update(state=Round.State.DRAFTED):
        leftovers.discard(Round.objects.get(pk=pk))


def _refuse_while_uploads_pend(campaign: Campaign) -> None:
    pending = campaign.uploads.filter(
        state__in=[Upload.State.STORED, Upload.State.READING], check_only=False
    )
    if pending.exists():
        raise jobs.NotYet(1.0, "waits for uploads to be read")


def prepare(row: Round, pool: Pool, drawn: Drawn, job: jobs.Running) -> list[int]:
    """Prepares the planned batches that are not there yet; returns their row ids.

    Batches without a pair of their own are among them: draws may repeat earlier ones, and a sample
    may happen to be empty. They are complete when they are opened, and count as what they are.
    """
    topics = dict(row.campaign.topics.values_list("topic_id", "pk"))
    served = drawn.served(pool)
    labels, repeated = _labels(row, pool, drawn, served)
    there = set(row.round_batches.values_list("number", flat=True))
    missing = [n for n in range(1, drawn.planned + 1) if n not in there]
    ids = []
    for done, number in enumerate(missing, start=1):
        batch = _new_batch(row, number, job)
        entering = np.flatnonzero(served.batch == number)
        wanted = _wanted(pool, topics, served.pair[entering], labels[entering])
        pair_ids = batches.prepare(batch, wanted)
        _create_draws(row, number, pair_ids, served, entering, repeated)
        ids.append(batch.pk)
        job.report(0.1 + 0.8 * done / len(missing), f"batch {number} of {missing[-1]}")
    return ids


def _labels(
    row: Round, pool: Pool, drawn: Drawn, served: Served
) -> tuple[IntArray, FloatArray | None]:
    """How many labels each served pair gets, and with which chance two or more; None: as the share.

    Both are fixed before anybody judges the pair. Where further labels go where they pay, those of
    the batches that are there stand in their rows, and count for nothing here; what the earlier
    batches of an adaptive round asked for lessens what is left for the last.
    """
    each, share = row.labels, row.extra_share
    if not row.further:
        labels = extra_labels(pool, seed=row.seed, pairs=served.pair, labels=each, share=share)
        if row.top_up:  # what is judged is not judged again
            labels[topping.judged_in(row.campaign, pool)[served.pair]] = 1
        return labels, None
    pairs, plan = plan_of_round(
        pool, drawn, labels=each, share=share, further=row.further, given=_given(row)
    )
    labels, repeated = np.full(len(served.pair), row.labels), np.ones(len(served.pair))
    place = np.searchsorted(served.pair, pairs)
    labels[place] = plan.drawn(pool, seed=row.seed, pairs=pairs)
    repeated[place] = plan.repeated
    return labels, repeated


def _given(row: Round) -> int:
    """Labels beyond those of every pair that the batches that are there ask for."""
    asked = BatchPair.objects.filter(batch__in=row.round_batches.values("batch"))
    return int(asked.aggregate(given=Sum(F("labels") - row.labels))["given"] or 0)


def _new_batch(row: Round, number: int, job: jobs.Running) -> Batch:
    """A batch and its place in the round in one commit, so that a kill leaves none without."""
    with transaction.atomic():
        batch = batches.new_batch(row.campaign)
        job.fence()
        RoundBatch.objects.create(round=row, number=number, batch=batch)
        return batch


def _wanted(
    pool: Pool, topics: Mapping[str, int], pairs: np.ndarray, labels: np.ndarray
) -> list[batches.WantedPair]:
    """With the row ids of topics by their names, and in a pool of preferences the other docno."""
    row_ids = [topics[pool.topics[place]] for place in pool.topic[pairs].tolist()]
    others = repeat("") if pool.other is None else _text(pool.other[pairs])
    columns = zip(row_ids, _text(pool.docno[pairs]), labels.tolist(), others, strict=False)
    return list(map(batches.WantedPair._make, columns))


def _text(names: np.ndarray) -> list[str]:
    return [name.decode() for name in names.tolist()]


def _create_draws(
    row: Round,
    number: int,
    pair_ids: Sequence[int],
    served: Served,
    entering: np.ndarray,
    repeated: FloatArray | None,
) -> None:
    drawn = {
        "position": served.pair[entering].tolist(),
        "count": served.draws[entering].tolist(),
        "probability": served.probability[entering].tolist(),
    }
    if repeated is not None:
        drawn["repeated"] = repeated[entering].tolist()
    fixed = {"round": row.pk, "batch_number": number}
    bulk.insert(Draw, fixed | drawn | {"pair": list(pair_ids)})


def _freeze(
    row: Round,
    pool_row: StoredPool,
    made_with: dict[str, str],
    drawn: Drawn,
    batch_ids: list[int],
    job: jobs.Running,
) -> None:
    frozen = {
        "state": Round.State.DRAWN,
        "pool": pool_row,
        "design": quoting.columns_of(row, pool_row),
        "design_file": files.keep_written("designs", drawn.design.save),
        "sample_file": files.keep_written("samples", drawn.sample.save),
        "preview": row.preview,
        "provenance": made_with,
        "drawn": Now(),
    }
    with transaction.atomic():
        job.fence()
        if not Round.objects.filter(pk=row.pk, state=Round.State.DRAWING).update(**frozen):
            raise UserError("frozen", "This round is not being drawn any more.", status=409)
        batches.release(batch_ids)
        audit.record(
            "draw round",
            by=None,
            campaign=row.campaign_id,
            target=row,
            pairs=row.draws.count(),
            pool=pool_row.digest,
            seed=row.seed,
        )
        if "open_by" in job.data:
            _open(row.campaign_id, job.data["open_by"])


def _open(campaign_id: int, by: int) -> None:
    """Opens a campaign that is a draft, as was asked for with the draw; any other stays so."""
    campaign = Campaign.objects.get(pk=campaign_id)
    if campaign.state == Campaign.State.DRAFT and campaign.archived is None:
        campaigns.open_for_judging(campaign=campaign, by=User.objects.get(pk=by))


def _added_to(row: Round, pool: Pool) -> dict[str, str]:
    """The rounds that a top-up adds to, as pages and reports say them."""
    if not row.top_up:
        return {}
    found = topping.added_to(row, pool).items()
    told = [f"round {number} ({batches} batch{'es' * (batches > 1)})" for number, batches in found]
    if choices.takes_kept(row) and (kept := len(choices.kept_pairs(row.campaign))):
        told.append(f"batches that were left open ({kept} judged pair{'s' * (kept > 1)})")
    return {"added_to": ", ".join(told)}


def provenance(pool: Pool) -> dict[str, str]:
    """With what the numbers were made, for the report."""
    return {
        "evalsite": settings.VERSION,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "pool": pool.digest,
    }
