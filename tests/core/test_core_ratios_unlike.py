"""nDCG of adaptive rounds, of a run that finds what no other run does."""

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.inference import second_order
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.adaptive import ratios
from estimation.core.rounds.evaluation import evaluate
from estimation.research.simulation import true_values
from tests.core.test_core_adaptive import played
from tests.core.test_core_adaptive_ratios import plan_of

NDCG = parse_measure("nDCG@10")
TOPICS, DOCUMENTS, DEPTH, TRIALS = 60, 200, 50, 16
ALIKE = {"a": 1.5, "b": 1.5, "c": 1.45, "d": 1.4, "e": 1.4, "f": 1.35, "g": 1.3}


def pool_with_another_kind() -> tuple[Pool, np.ndarray]:
    """Seven runs that err alike, and miss a third of what is relevant, and one of its own."""
    generator = np.random.default_rng(5)
    topics = [f"t{number:02}" for number in range(TOPICS)]
    relevant = np.arange(DOCUMENTS) < 3 + np.arange(TOPICS)[:, None] % 8
    overlooked = np.arange(DOCUMENTS) % 3 == 0
    common = generator.normal(size=relevant.shape)
    scores = {
        tag: common + 0.4 * generator.normal(size=relevant.shape)
        + strength * relevant * np.where(overlooked, 0.2, 1.2)
        for tag, strength in ALIKE.items()
    }  # fmt: skip
    scores["other"] = generator.normal(size=relevant.shape) + 2.2 * relevant
    runs = {}
    for tag, each in scores.items():
        best = np.argsort(-each, axis=1)[:, :DEPTH]
        docnos = np.array([f"d{document:03}".encode() for document in best.ravel()])
        runs[tag] = RankedLists(tuple(topics), np.arange(TOPICS + 1) * DEPTH, docnos)
    pool = build_pool(topics, runs, depth=DEPTH)
    documents = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return pool, relevant[pool.topic, documents].astype(np.int64)


@pytest.mark.slow
def test_finds_tell_that_a_run_unlike_others_has_less_of_their_bias(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin goes by the model, which expects little of what no other run returns."""
    monkeypatch.setattr(second_order, "LEAST_TOPICS", 10**9)  # of what is left of either
    pool, grades = pool_with_another_kind()
    truth = true_values(pool, grades=grades, measure=NDCG)
    plan = plan_of(pool, NDCG, budget=len(pool) // 10, batches=5)
    ahead = {}
    samples = [played(pool, grades, plan, seed=f"u{trial}") for trial in range(TRIALS)]
    for weight in (ratios.EXPECTED, 1e9):
        monkeypatch.setattr(ratios, "EXPECTED", weight)
        asked = {"measures": [NDCG], "max_grade": 3}
        told = [evaluate(pool, drawn, labels=labels, **asked) for drawn, labels in samples]
        errors = np.array([each.results[0].estimate.value - truth for each in told])
        other = pool.run_index("other")
        ahead[weight] = errors[:, other] - np.delete(errors, other, axis=1).mean(axis=1)
    by_finds, by_model = ahead[20.0], ahead[1e9]
    error = 3.0 * (by_finds - by_model).std() / np.sqrt(TRIALS)
    assert by_model.mean() + error < by_finds.mean() < 0.0
