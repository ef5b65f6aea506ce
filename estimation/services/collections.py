"""The judged collection of a round: what its estimates rest on, and those of runs that come later.

It is made from what the database holds whenever it is asked: the round's frozen design and sample,
and the labels of its complete batches in a row from the first. Every such prefix is an exact sample
of the design; which pairs it holds was settled before any grade was known.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from estimation.core.collections.base import CollectionError, RoundCollection
from estimation.core.collections.published import published
from estimation.core.data.pool import Pool
from estimation.core.inference.looks import Look
from estimation.core.measures.kinds import PREFERENCE_MAX_GRADE
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.combining import as_one
from estimation.core.rounds.results import DrawnRound
from estimation.core.rounds.rounds import PairRound, load_round
from estimation.core.rounds.rounds import Round as Drawn
from estimation.formats.collections.archive import TooLargeError
from estimation.formats.collections.files import write_collection
from estimation.models import EstimateSet, Round
from estimation.services import designing, files, pools, predictions, together
from estimation.services.round_labels import RoundLabels
from estimation.services.together import Counted
from judging.errors import UserError


@dataclass(frozen=True)
class Gathered:
    """The collection of a round, how many batches the round has in all, and of all labels who gave
    them, their digest and how many the organizer decided."""

    collection: RoundCollection
    batches: int
    label_digest: str
    decided: int
    said: RoundLabels

    def at(self, look: Look | None) -> "Gathered":
        """The same, of which everything holds at all planned looks at once."""
        return replace(self, collection=replace(self.collection, look=look))


def columns_of(row: Round) -> tuple[Pool, Drawn]:
    """The pool of a drawn round, and what was drawn from it."""
    if row.pool is None:
        raise ValueError(f"round {row.pk} has not been drawn")
    return pools.load(row.pool), _load(row.design_file, row.sample_file)


@lru_cache(maxsize=2)
def _load(design: str, sample: str) -> Drawn:
    """What was drawn. Such files never change: their names are the digests of their content.

    A round whose batches are planned one by one has another file with every batch. What a worker
    found out of the one before holds as far as that is the beginning of this one.
    """
    found, latest = load_round(files.path_of(design), files.path_of(sample)), _latest(design)
    if isinstance(found, AdaptiveRound):
        latest[:] = [found.following(latest[0]) if latest else found]
        return latest[0]
    return found


@lru_cache(maxsize=2)
def _latest(design: str) -> list[AdaptiveRound]:
    """The round of a design that was read last."""
    return []


def gather(row: Round, counted: Sequence[Counted]) -> Gathered:
    """The collection of a round, with the earlier ones that count with it; it is the last.

    The same rows give the same bits, in whatever order they come.
    """
    pool, drawn = columns_of(row)
    labels = RoundLabels.of(row, pool, counted)
    best = PREFERENCE_MAX_GRADE if pool.is_of_preferences else row.campaign.max_grade
    collection = RoundCollection(
        pool,
        _counting(pool, drawn, counted),
        labels,
        max_grade=best,
        made_for=tuple(designing.measures_of(row)),
        predictions=_predictions(row, pool) if len(counted) == 1 else None,
        negligible=row.negligible or None,
    )
    decided = int(np.count_nonzero(labels.decided))
    return Gathered(collection, drawn.batches, labels.digest(), decided, labels)


def _counting(pool: Pool, drawn: Drawn, counted: Sequence[Counted]) -> DrawnRound:
    """The complete batches of the round, alone or together with the earlier ones."""
    own = drawn.prefix(pool, counted[-1].batches)
    if isinstance(own, PairRound):
        return as_one(together.parts_of(pool, own, counted))
    return own


def _predictions(row: Round, pool: Pool) -> np.ndarray | None:
    """Predicted grades, where the round is estimated with their help."""
    helps = row.estimator == Round.Estimator.DIFFERENCE
    return predictions.grades_for(row.predictions, pool) if row.predictions and helps else None


# ---------------------------------------------------------------------------- what is published


def collection_zip(row: Round, shown: EstimateSet) -> bytes:
    """The file, from the batches that the estimates rest on.

    Raises UserError ``collection_too_large`` where the round is larger than a file may be, and
    ``collection_impossible`` where there is no file of such rounds.
    """
    buffer = io.BytesIO()
    try:
        write_collection(buffer, collection_of(row, shown))
    except TooLargeError as error:
        message = f"collection.zip cannot be made of this round: it can hold {error}."
        raise UserError("collection_too_large", message) from None
    except CollectionError as error:
        message = f"collection.zip cannot be made of this round: {error}."
        raise UserError("collection_impossible", message) from None
    return buffer.getvalue()


def collection_of(row: Round, shown: EstimateSet) -> RoundCollection:
    """Everything that the estimates rest on, as it is published."""
    counted = together.behind(row, shown)
    secret = _seeds_of_open_rounds(row)
    seeds = [None if each.row.seed in secret else each.row.seed for each in counted]
    look = Look(shown.look, shown.looks) if shown.look else None
    collection = gather(row, counted).at(look).collection
    return published(collection, version=shown.provenance["evalsite"], seeds=seeds)


def _seeds_of_open_rounds(row: Round) -> set[str]:
    """Whoever has such a seed knows what comes next in a round that has a batch left."""
    rounds = Round.objects.filter(campaign=row.campaign_id).exclude(state__in=Round.ENDED)
    return set(rounds.values_list("seed", flat=True))
