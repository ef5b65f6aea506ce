"""The demo's truth: what a census judged without error would give, beside the estimates."""

from dataclasses import dataclass

import numpy as np

from demo.assessors import load_truth
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.models import Round
from estimation.selectors import RankedRun, ranking_table
from estimation.services import demo, designing, pools


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
    [chosen] = [m for m in designing.measures_of(row) if str(m) == measure]
    everything = make_design(
        pool,
        goal=designing.goal_of(row, pool),
        measure=chosen,
        prior=designing.prior_of(row, pool),
        budget=len(pool),
        batch_size=len(pool),
    )
    census = draw(pool, everything, seed="census")
    names = [
        (pool.topics[pool.topic[pair]], pool.docno[pair].decode()) for pair in census.pair.tolist()
    ]
    grades = np.array([truth.get(name, 0) for name in names], dtype=np.int64)
    evaluation = evaluate(
        pool,
        PairRound(everything, census),
        labels=LabelRows(pair=census.pair, grade=grades),
        measures=[chosen],
        max_grade=row.campaign.max_grade,
    )
    result = evaluation.results[0]
    return dict(zip(result.runs, result.estimate.value.tolist(), strict=True))
