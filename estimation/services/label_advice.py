"""Other numbers of labels per pair, compared with a round's own; stored with its matrices."""

from dataclasses import asdict
from typing import Any

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool as Columns
from estimation.core.planning.label_advice import NUMBERS, compare_labels, supports
from estimation.core.rounds.rounds import PairRound
from estimation.core.rounds.rounds import Round as Drawn
from estimation.core.sampling.random_numbers import extra_labels
from estimation.models import Round
from estimation.services import designing


def compared(
    row: Round, *, pool: Columns, drawn: Drawn, labels: LabelRows, batches: int
) -> dict[str, dict[str, Any]]:
    """`LabelComparison` as JSON per measure; measures and methods without one are missing."""
    if not isinstance(drawn, PairRound):
        return {}
    design, sample = drawn.design, drawn.sample
    measures = [each for each in designing.measures_of(row) if supports(design, each)]
    if not measures:
        return {}
    wanted = extra_labels(
        pool, seed=row.seed, pairs=sample.pair, labels=row.labels, share=row.extra_share
    )
    found = {
        str(measure): compare_labels(
            pool,
            design,
            sample,
            labels=labels,
            wanted=wanted,
            measure=measure,
            max_grade=row.campaign.max_grade,
            batches=batches,
            numbers=sorted({*NUMBERS, row.labels}),
        )
        for measure in measures
    }
    return {measure: asdict(comparison) for measure, comparison in found.items()}
