"""Other numbers of labels per pair, compared with a round's own; stored with its matrices."""

from dataclasses import asdict
from typing import Any

from estimation.core.arrays import IntArray
from estimation.core.collections.base import RoundCollection
from estimation.core.data.kept import kept
from estimation.core.data.pool import Pool
from estimation.core.planning.label_advice import NUMBERS, compare_labels, supports
from estimation.core.rounds.overlap import plan_of_round
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.random_numbers import extra_labels
from estimation.models import Round


def compared(row: Round, collection: RoundCollection) -> dict[str, dict[str, Any]]:
    """`LabelComparison` as JSON per measure; measures and methods without one are missing.

    Advice is about the labels of one round: there is none for several together.
    """
    pool, drawn = collection.pool, collection.drawn
    if not isinstance(drawn, PairRound):
        return {}
    measures = [each for each in collection.measures if supports(drawn.design, each)]
    if not measures:
        return {}
    wanted = kept(
        pool.kept,
        "wanted labels",
        (row.sample_file, row.seed, row.labels, row.extra_share, row.further),
        lambda: _wanted(row, pool, drawn),
    )
    found = compare_labels(
        pool,
        drawn,
        labels=collection.labels,
        wanted=wanted,
        measures=measures,
        max_grade=row.campaign.max_grade,
        numbers=sorted({*NUMBERS, row.labels}),
    )
    return {
        str(measure): asdict(comparison)
        for measure, comparison in zip(measures, found, strict=True)
    }


def _wanted(row: Round, pool: Pool, drawn: PairRound) -> IntArray:
    """How many labels each sampled pair was to have, as it was decided when it was drawn."""
    asked = {"labels": row.labels, "share": row.extra_share}
    if not row.further:
        return extra_labels(pool, seed=row.seed, pairs=drawn.sample.pair, **asked)  # type: ignore[arg-type]
    pairs, plan = plan_of_round(pool, drawn, **asked, further=row.further)  # type: ignore[arg-type]
    return plan.drawn(pool, seed=row.seed, pairs=pairs)
