"""Judged collections of rounds, for tests."""

from collections.abc import Sequence

from estimation.core.collections.base import RoundCollection
from estimation.core.collections.published import published
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.measures.table import Measure
from estimation.core.rounds.combining import as_one
from estimation.core.rounds.results import DrawnRound
from estimation.core.rounds.rounds import PairRound


def publish(
    pool: Pool,
    drawn: DrawnRound | Sequence[PairRound],
    *,
    labels: LabelRows,
    max_grade: int,
    version: str,
    batches: int | None = None,
    measures: Sequence[Measure] = (),
    seeds: Sequence[str | None] = (),
) -> RoundCollection:
    """What is published of the first batches of a round, or of several together."""
    whole = drawn if isinstance(drawn, DrawnRound) else as_one(drawn)
    part = whole if batches is None else whole.prefix(pool, batches)
    collection = RoundCollection(pool, part, labels, max_grade, tuple(measures))
    return published(collection, version=version, seeds=seeds)
