"""Rprec where nearly everything is relevant: how far lists go down is as unknown as the rest."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.inference import ratio_knowledge
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from tests.core.test_core_agreement_by_chance import pool_of

RPREC, TOPICS, TRIALS = parse_measure("Rprec"), 20, 60
WHOLE = [list(range(4)) for _ in range(TOPICS)]
POOL = pool_of(
    a=WHOLE,
    b=[each[::-1] for each in WHOLE],
    c=[each[:2] for each in WHOLE],
    d=WHOLE[:12] + [[]] * 8,
)


def told(budget: int, trial: int) -> MeasureResult:
    about = {"goal": goals.ranking(*POOL.runs), "measure": RPREC, "max_grade": 1}
    prior = make_prior(POOL, name="rank", **about)
    design = make_design(POOL, prior=prior, budget=budget, batch_size=budget, **about)
    sample = draw(POOL, design, seed=str(trial))
    labels = LabelRows(sample.pair, np.ones(len(sample.pair), dtype=np.int64))
    part = PairRound(design, sample)
    return evaluate(POOL, part, labels=labels, measures=[RPREC], max_grade=1).results[0]


def false_verdicts() -> float:
    """How often two runs that have all that is relevant first are told apart, or another two."""
    truth = np.array([{"a": 1.0, "b": 1.0, "c": 0.5, "d": 0.6}[tag] for tag in POOL.runs])
    better = np.sign(np.subtract.outer(truth, truth))
    every = [told(40, trial).ranking.verdicts for trial in range(TRIALS)]
    return float(np.mean([np.any((each != 0) & (each != better)) for each in every]))


def test_nothing_is_told_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin tells of it what a linearization does."""
    found = told(40, 0)
    assert found.estimate.unknown.all()
    assert not found.ranking.verdicts.any()
    assert false_verdicts() == 0.0
    monkeypatch.setattr(ratio_knowledge, "MOST_RELEVANT", 1.1)
    assert not told(40, 0).estimate.unknown.all()
    assert false_verdicts() > 0.1


def test_where_all_is_judged_all_is_told() -> None:
    found = told(len(POOL), 0)
    assert not found.estimate.unknown.any()
    assert found.estimate.value == pytest.approx(
        [{"a": 1.0, "b": 1.0, "c": 0.5, "d": 0.6}[tag] for tag in POOL.runs]
    )
