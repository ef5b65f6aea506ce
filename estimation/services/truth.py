"""The demo's truth: what a census judged without error would give, beside the estimates."""

from dataclasses import dataclass

import numpy as np

from demo.assessors import load_truth
from estimation.core.data.pool import Pool
from estimation.core.estimates.complete import complete_values
from estimation.core.measures.table import parse_measure
from estimation.models import Round
from estimation.selectors import RankedRun, ranking_table
from estimation.services import demo, pools


@dataclass(frozen=True)
class Met:
    """An estimate and the truth that it is about; also of a run whose value is not known."""

    row: RankedRun
    truth: float

    @property
    def inside(self) -> bool:
        return self.row.low <= self.truth <= self.row.high


def met(row: Round, measure: str) -> list[Met]:
    """The ranking of the demo's round by a measure, with the true value of every run."""
    table = ranking_table(row, measure)
    if table is None or row.pool is None:
        return []
    true = _true_values(row, pools.load(row.pool), measure)
    return [Met(ranked, true[ranked.tag]) for ranked in table.rows]


def _true_values(row: Round, pool: Pool, measure: str) -> dict[str, float]:
    truth = load_truth(demo.COLLECTION / "qrels.txt.gz")
    names = zip((pool.topics[at] for at in pool.topic.tolist()), pool.docno.tolist(), strict=True)
    grades = [truth.get((topic, docno.decode()), 0) for topic, docno in names]
    values = complete_values(
        pool,
        grades=np.array(grades, dtype=np.int64),
        measures=[parse_measure(measure)],
        max_grade=row.campaign.max_grade,
    )[0]
    return dict(zip(pool.runs, values.mean(axis=0).tolist(), strict=True))
