"""The judged collection of a round: what estimates of runs that arrive later need."""

import io
from typing import Any

import numpy as np

from estimation.core.collections.base import Collection
from estimation.core.collections.pairs import PairCollection
from estimation.core.collections.ranked import RankedCollection
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.measures.kinds import PREFERENCE_MAX_GRADE
from estimation.core.rounds.rounds import PairRound
from estimation.formats.collections.archive import TooLargeError
from estimation.formats.collections.files import write_collection
from estimation.models import EstimateSet, Round
from estimation.selectors import draws_behind
from estimation.services import designing
from estimation.services.estimates import columns_of
from estimation.services.together import Counted, parts_of, positions_of
from judging import selectors as judging
from judging.errors import UserError


def collection_zip(row: Round, shown: EstimateSet) -> bytes:
    """The file, from the batches that the estimates rest on.

    Raises UserError ``collection_too_large`` where the round is larger than a file may be.
    """
    buffer = io.BytesIO()
    try:
        write_collection(buffer, collection_of(row, shown))
    except TooLargeError as error:
        message = f"collection.zip cannot be made of this round: it can hold {error}."
        raise UserError("collection_too_large", message) from None
    return buffer.getvalue()


def collection_of(row: Round, shown: EstimateSet) -> Collection:
    """Everything that the estimates rest on."""
    pool, drawn = columns_of(row)
    kept: dict[str, Any] = {
        "labels": _labels(pool, shown),
        "max_grade": PREFERENCE_MAX_GRADE if pool.is_of_preferences else row.campaign.max_grade,
        "version": shown.provenance["evalsite"],
    }
    secret = _seeds_of_open_rounds(row)
    if isinstance(drawn, PairRound):
        counted = _counted(row, shown)
        seeds = [_unless(each.row.seed, secret) for each in counted]
        return PairCollection.of(pool, parts_of(pool, counted), seeds=seeds, **kept)
    kept |= {
        "batches": shown.batches,
        "seed": _unless(row.seed, secret),
        "measures": designing.measures_of(row),
    }
    return RankedCollection.of(pool, drawn, **kept)


def _counted(row: Round, shown: EstimateSet) -> list[Counted]:
    """The rounds that the estimates rest on, in their order: earlier ones, then this one."""
    batches = shown.all_batches
    rows = Round.objects.filter(campaign=row.campaign_id, number__in=batches)
    rows = rows.select_related("pool").order_by("number")
    return [Counted(each, batches[each.number]) for each in rows]


def _seeds_of_open_rounds(row: Round) -> set[str]:
    """Whoever has such a seed knows what comes next in a round that has a batch left."""
    rounds = Round.objects.filter(campaign=row.campaign_id).exclude(state=Round.State.COMPLETE)
    return set(rounds.values_list("seed", flat=True))


def _unless(seed: str, secret: set[str]) -> str | None:
    return None if seed in secret else seed


def _labels(pool: Pool, shown: EstimateSet) -> LabelRows:
    """Pairs that several rounds drew stand at one place in the pool of the last."""
    draws = draws_behind(shown)
    positions = positions_of(pool, shown.round, draws)
    rows = sorted(
        (positions[label.pair], label.grade) for label in judging.labels(draws.values("pair"))
    )
    pairs, grades = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return LabelRows(pairs, grades)
