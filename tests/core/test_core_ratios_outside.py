"""Ratios of adaptive rounds below 0 and above 1, where an ideal list is full."""

from types import SimpleNamespace

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.adaptive import ratios
from estimation.core.rounds.evaluation import evaluate
from estimation.research.simulation import true_values
from tests.core.test_core_adaptive import played
from tests.core.test_core_adaptive_ratios import plan_of

NDCG = parse_measure("nDCG@5")
TOPICS, DOCUMENTS, RELEVANT, DEPTH, TRIALS = 30, 120, 60, 20, 40


@pytest.fixture(scope="module")
def searched_by_hand() -> tuple[Pool, np.ndarray]:
    """Run "a" has relevant documents first, of which the others return some."""
    generator = np.random.default_rng(3)
    topics = [f"t{number:02}" for number in range(TOPICS)]
    runs = {}
    for run, strength in enumerate([3.0, 0.9, 0.8, 0.6, 0.4]):
        scores = generator.normal(size=(TOPICS, DOCUMENTS))
        scores[:, :RELEVANT] += strength
        if run:
            scores[:, : RELEVANT // 2] -= 1.5  # hard to find
        best = np.argsort(-scores, axis=1)[:, :DEPTH]
        docnos = np.array([f"d{document:02}".encode() for document in best.ravel()])
        runs["abcde"[run]] = RankedLists(tuple(topics), np.arange(TOPICS + 1) * DEPTH, docnos)
    pool = build_pool(topics, runs, depth=DEPTH)
    documents = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return pool, (documents < RELEVANT).astype(np.int64)


def told(pool: Pool, grades: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how much values are off in every sample, and whether they are where it is told."""
    truth = true_values(pool, grades=grades, measure=NDCG)
    plan = plan_of(pool, NDCG, budget=len(pool) // 6, batches=6)
    off, held = [], []
    for trial in range(TRIALS):
        drawn, labels = played(pool, grades, plan, seed=f"o{trial}")
        found = evaluate(pool, drawn, labels=labels, measures=[NDCG], max_grade=3).results[0]
        shown = found.estimate
        off.append(shown.value - truth)
        held.append((shown.low <= truth) & (truth <= shown.high))
    return np.array(off), np.array(held)


@pytest.mark.slow
def test_the_value_of_a_run_that_is_perfect_everywhere_is_not_cut(
    searched_by_hand: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin takes ratios above 1 for 1, and none can make up for what others lie below."""
    off, held = told(*searched_by_hand)
    monkeypatch.setattr(ratios, "outside_of", lambda _tangent, highest, _variance: 0.0 * highest)
    cut, _ = told(*searched_by_hand)
    error = off[:, 0].std() / np.sqrt(TRIALS)
    assert abs(off[:, 0].mean()) + 3.0 * error < abs(cut[:, 0].mean()), "it lies much nearer"
    assert np.all((off**2).mean(axis=0)[:2] < (cut**2).mean(axis=0)[:2])
    assert np.all(held.mean(axis=0) > 0.9)


@pytest.mark.parametrize(("variance", "counts"), [(0.0, 1.0), (0.1, 0.5), (0.2, 0.0), (3.0, 0.0)])
def test_ratios_count_as_they_are_where_their_denominator_is_well_known(
    variance: float, counts: float
) -> None:
    ratio = np.array([[1.3, -0.2, 0.4, 7.0, -5.0]])
    found = ratios.outside_of(
        SimpleNamespace(by_topic=ratio), np.clip(ratio, 0.0, 1.0), np.array([variance])
    )
    assert found == pytest.approx(counts * np.array([[0.3, -0.2, 0.0, 1.0, -1.0]]))
