"""Ratios of adaptive rounds where counts of relevant documents are large: errors, and bias."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.inference.ratio_outlook import OF_PRODUCTS
from estimation.core.measures.table import Measure
from estimation.core.rounds.adaptive import answers, ratios
from estimation.core.rounds.adaptive.slopes import SteadySlopes, at_outlook
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.research.simulation import true_values
from tests.core.test_core_adaptive import played
from tests.core.test_core_adaptive_ratios import AP, RPREC, plan_of

TOPICS, DOCUMENTS, DEPTH, RUNS = 20, 120, 60, 8
TRIALS = 30


@pytest.fixture(scope="module")
def world() -> tuple[Pool, np.ndarray]:
    """Runs of like strength; 10 to 40 of the documents of a topic are relevant."""
    generator = np.random.default_rng(2)
    topics = [f"t{number:02}" for number in range(TOPICS)]
    docnos = np.array([f"d{number:03}".encode() for number in range(DOCUMENTS)])
    relevance = np.zeros((TOPICS, DOCUMENTS), dtype=int)
    for row in relevance:
        row[generator.permutation(DOCUMENTS)[: generator.integers(10, 41)]] = 1
    runs, bounds = {}, np.arange(TOPICS + 1) * DEPTH
    for number in range(RUNS):
        scores = relevance + generator.normal(scale=0.9 + 0.05 * number, size=relevance.shape)
        order = np.argsort(-scores, axis=1)[:, :DEPTH]
        runs[f"run{number}"] = RankedLists(tuple(topics), bounds, docnos[order].ravel())
    pool = build_pool(topics, runs, depth=DEPTH)
    place = {docno: at for at, docno in enumerate(docnos.tolist())}
    columns = [place[docno] for docno in pool.docno.tolist()]
    return pool, relevance[pool.topic, columns]


def results(world: tuple, measure: Measure, judged: int, trials: int) -> list[MeasureResult]:
    pool, grades = world
    plan, asked = plan_of(pool, measure, budget=judged, batches=4), {"measures": [measure]}
    found = []
    for seed in range(trials):
        drawn, labels = played(pool, grades, plan, seed=f"s{seed}")
        found += evaluate(pool, drawn, labels=labels, max_grade=1, **asked).results
    return found


def of_differences(world: tuple, measure: Measure, judged: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the differences of every two runs, and their margins, (trials, pairs)."""
    pool, grades = world
    truth = true_values(pool, grades=grades, measure=measure)
    true, two = np.subtract.outer(truth, truth), np.triu_indices(RUNS, 1)
    rankings = [each.ranking for each in results(world, measure, judged, TRIALS)]
    errors = np.array([(each.difference - true)[two] for each in rankings])
    return errors, np.array([each.margin[two] for each in rankings])


def of_tangents(line: SteadySlopes) -> SteadySlopes:
    """The twin: errors by the slope at the last rank that counts."""
    return replace(line, smooth=line.free, bounds=line.free.bounds)


def of_products(line: SteadySlopes) -> SteadySlopes:
    """The twin: as much more than tangents say as samples that are drawn at once err by."""
    return replace(line, smooth=replace(line.smooth, power=OF_PRODUCTS))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "twin", "judged", "less"),
    [(RPREC, of_tangents, 600, 0.9), (AP, of_products, 300, 0.95)],
    ids=["Rprec", "AP"],
)
def test_differences_are_told_as_close_as_they_are(
    world: tuple,
    measure: Measure,
    twin: Callable[[SteadySlopes], SteadySlopes],
    judged: int,
    less: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors, margins = of_differences(world, measure, judged)
    covered = (np.abs(errors) <= margins).mean()
    assert 0.93 < covered < 0.985
    linearized = lambda *given, **more: twin(at_outlook(*given, **more))  # noqa: E731
    monkeypatch.setattr(answers, "at_outlook", linearized)
    same, wider = of_differences(world, measure, judged)
    assert same == pytest.approx(errors)
    assert (margins**2).mean() < less * (wider**2).mean()


@pytest.mark.slow
@pytest.mark.parametrize("measure", [AP, RPREC], ids=str)
def test_what_counts_that_were_raised_take_is_made_up_for(
    world: tuple, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three in five judged; the twin tells values too low."""
    pool, grades = world
    truth = true_values(pool, grades=grades, measure=measure)

    def off() -> float:
        """The mean error over its standard error."""
        told = results(world, measure, 1500, 2 * TRIALS)
        errors = np.array([(each.estimate.value - truth).mean() for each in told])
        return float(errors.mean() / errors.std(ddof=1) * np.sqrt(len(errors)))

    made_up = off()
    monkeypatch.setitem(ratios.MADE_UP, measure.name, 0.0)
    assert abs(made_up) < 2.0
    assert off() < min(-2.0, made_up - 1.0)
