"""Ratios of active rounds that find few relevant documents: withheld, as what is told is false."""

from collections.abc import Sequence

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.inference.unknown import Reason
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.active import rounds
from estimation.core.rounds.active.rounds import ActiveRound, make_plan
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.research.simulation import true_values

TOPICS, DOCUMENTS, DEPTH, RUNS, TRIALS = 60, 60, 20, 5, 6
FEW = 0.15  # of the pool
MEASURES = [parse_measure(text) for text in ("AP", "Rprec", "P@10")]


@pytest.fixture(scope="module")
def few() -> tuple[Pool, np.ndarray]:
    """Of sixty documents of a topic about four are relevant, and runs know of them."""
    rng = np.random.default_rng(11)
    grades = (rng.random((TOPICS, DOCUMENTS)) < 4 / DOCUMENTS).astype(np.int64)
    names = tuple(f"t{topic:02}" for topic in range(TOPICS))
    runs = {}
    for run in range(RUNS):
        scores = 1.5 * grades + rng.normal(scale=1.0 + run / 10.0, size=grades.shape)
        order = np.argsort(-scores, axis=1)[:, :DEPTH]
        docnos = np.array([f"d{document:02}".encode() for document in order.ravel()])
        runs[f"r{run}"] = RankedLists(names, np.arange(TOPICS + 1) * DEPTH, docnos)
    pool = build_pool(list(names), runs, depth=DEPTH)
    documents = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return pool, grades[pool.topic, documents]


_drawn: dict[tuple[float, str], ActiveRound] = {}
"""By share and seed: what twins leave out changes what is told of them and nothing else."""


def drawn_to_its_end(pool: Pool, grades: np.ndarray, share: float, seed: str) -> ActiveRound:
    budget = round(share * len(pool))
    plan = make_plan(pool, measures=MEASURES, budget=budget, batch_size=2 * TOPICS)
    drawn = ActiveRound.begin(pool, plan, seed=seed)
    while drawn.planned < drawn.batches:
        labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
        drawn = drawn.extended(pool, labels=labels)
    return drawn


def results(
    pool: Pool,
    grades: np.ndarray,
    share: float,
    seed: str,
    measures: Sequence[Measure] = MEASURES,
) -> tuple[MeasureResult, ...]:
    if (share, seed) not in _drawn:
        _drawn[share, seed] = drawn_to_its_end(pool, grades, share, seed)
    drawn = _drawn[share, seed]
    labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
    return evaluate(pool, drawn, labels=labels, measures=list(measures), max_grade=1).results


def held(pool: Pool, grades: np.ndarray, share: float, at: int) -> float:
    """The share of the values, over all runs and trials, that intervals hold."""
    only = MEASURES[at]
    truth = true_values(pool, grades=grades, measure=only)
    trials = (results(pool, grades, share, f"f{trial}", [only])[0] for trial in range(TRIALS))
    found = [each.estimate for each in trials]
    return float(np.mean([(each.low <= truth) & (truth <= each.high) for each in found]))


@pytest.mark.slow
def test_ratios_are_withheld_where_few_relevant_documents_are_found(few: tuple) -> None:
    average, r_precision, precision = results(*few, FEW, "f0")
    for result in (average, r_precision):
        assert np.all(result.estimate.unknown == Reason.FEW_RELEVANT), result.measure
        apart = ~np.eye(RUNS, dtype=bool)
        assert np.all(result.ranking.unknown[apart] == Reason.FEW_RELEVANT), result.measure
        assert not result.ranking.verdicts.any(), result.measure
    assert not precision.estimate.unknown.any(), "sums of gains have no bias"
    for result in results(*few, 0.97, "f0"):
        assert not result.estimate.unknown.any(), "next to nothing is left to be found"


@pytest.mark.slow
def test_the_twin_that_tells_them_is_caught(few: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "too_few_found", lambda *_: False)
    assert not results(*few, FEW, "f0")[0].estimate.unknown.any()
    assert held(*few, FEW, 0) < 0.6
    assert held(*few, 0.97, 0) > 0.9


@pytest.mark.slow
def test_values_do_not_depend_on_what_is_withheld(
    few: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [result.estimate for result in results(*few, FEW, "f0")]
    monkeypatch.setattr(rounds, "too_few_found", lambda *_: False)
    for before, after in zip(told, results(*few, FEW, "f0"), strict=True):
        for name in ("value", "low", "high", "covariance"):
            assert np.array_equal(getattr(before, name), getattr(after.estimate, name)), name


@pytest.mark.slow
def test_next_to_a_census_no_interval_is_as_long_as_all_values(few: tuple) -> None:
    """Variances come out below 0 there: what was expected, and what is inexact, is left."""
    shown = results(*few, 0.97, "f0")[2].estimate
    assert np.all(np.diag(shown.covariance) < 1e-4)
    assert np.all(shown.high - shown.low < 0.02)
    assert held(*few, 0.97, 2) > 0.9
