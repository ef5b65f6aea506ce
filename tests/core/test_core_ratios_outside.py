"""Ratios of adaptive rounds below 0 and above 1, where an ideal list is full."""

from types import SimpleNamespace

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.adaptive import ratios
from estimation.core.rounds.evaluation import evaluate
from estimation.core.sampling import allocation
from estimation.research.simulation import true_values
from tests.core.test_core_adaptive import played
from tests.core.test_core_adaptive_ratios import plan_of

NDCG = parse_measure("nDCG@5")
TOPICS, DOCUMENTS, RELEVANT, DEPTH, TRIALS = 30, 120, 60, 20, 40
DEEP, FEWER = 60, 12


@pytest.fixture(scope="module")
def searched_by_hand() -> tuple[Pool, np.ndarray]:
    """Run "a" has relevant documents first, of which the others return some."""
    generator, scores = np.random.default_rng(3), []
    for run, strength in enumerate([3.0, 0.9, 0.8, 0.6, 0.4]):
        scores.append(generator.normal(size=(TOPICS, DOCUMENTS)))
        scores[run][:, :RELEVANT] += strength
        if run:
            scores[run][:, : RELEVANT // 2] -= 1.5  # hard to find
    return pool_of(scores, DEPTH)


def searched_deep() -> tuple[Pool, np.ndarray]:
    """Lists as long as there are relevant documents, which are more than ideal lists need."""
    generator, scores = np.random.default_rng(3), []
    for run, strength in enumerate([2.0, 1.5, 1.2, 0.9, 0.6]):
        scores.append(generator.normal(size=(TOPICS, 300)))
        scores[run][:, :RELEVANT] += strength
    return pool_of(scores, DEEP)


def pool_of(scores: list[np.ndarray], depth: int) -> tuple[Pool, np.ndarray]:
    """Runs by their scores of documents, (topics, documents) each: the first ones are relevant."""
    topics, runs = [f"t{number:02}" for number in range(TOPICS)], {}
    for run, each in enumerate(scores):
        best = np.argsort(-each, axis=1)[:, :depth]
        docnos = np.array([f"d{document:03}".encode() for document in best.ravel()])
        runs["abcde"[run]] = RankedLists(tuple(topics), np.arange(TOPICS + 1) * depth, docnos)
    pool = build_pool(topics, runs, depth=depth)
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


@pytest.mark.slow
def test_few_judgments_go_below_lists_where_ideal_ones_are_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin spreads all of its floor evenly, as earlier versions did."""
    pool, grades = searched_deep()
    truth, errors, below = true_values(pool, grades=grades, measure=NDCG), [], []
    best = np.full(len(pool), DEEP)
    np.minimum.at(best, pool.entry_pair, pool.rank)
    for served in (allocation._served_by_the_floor, lambda *_: (None, 0.0)):
        monkeypatch.setattr(allocation, "_served_by_the_floor", served)
        plan = plan_of(pool, NDCG, budget=300, batches=6)
        samples = [played(pool, grades, plan, seed=f"o{trial}") for trial in range(FEWER)]
        found = [
            evaluate(pool, drawn, labels=labels, measures=[NDCG], max_grade=3).results[0]
            for drawn, labels in samples
        ]
        errors.append(np.mean([(each.estimate.value - truth) ** 2 for each in found]))
        below.append(np.mean([np.mean(best[drawn.sample.pair] > 5) for drawn, _ in samples]))
    assert errors[0] < 0.9 * errors[1]
    assert below[0] < 0.9 * below[1]


@pytest.mark.parametrize(("variance", "counts"), [(0.0, 1.0), (0.1, 0.5), (0.2, 0.0), (3.0, 0.0)])
def test_ratios_count_as_they_are_where_their_denominator_is_well_known(
    variance: float, counts: float
) -> None:
    ratio = np.array([[1.3, -0.2, 0.4, 7.0, -5.0]])
    found = ratios.outside_of(
        SimpleNamespace(by_topic=ratio), np.clip(ratio, 0.0, 1.0), np.array([variance])
    )
    assert found == pytest.approx(counts * np.array([[0.3, -0.2, 0.0, 1.0, -1.0]]))
