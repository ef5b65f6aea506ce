"""nDCG of adaptive rounds by a line, where little is known of the ideal list of a topic."""

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.ratio_frames import Frame, Gains
from estimation.core.estimates.ratio_lines import Tangent
from estimation.core.inference import ratio_outlook
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.research.simulation import true_values
from tests.core.test_core_adaptive import played
from tests.core.test_core_adaptive_ratios import plan_of

NDCG = parse_measure("nDCG@5")
TOPICS, DEPTH, TRIALS = 150, 20, 8


@pytest.fixture(scope="module")
def many_topics() -> tuple[Pool, np.ndarray]:
    """Topics with two to eight relevant documents, of which few can be judged."""
    generator = np.random.default_rng(5)
    topics = [f"t{number:03}" for number in range(TOPICS)]
    relevant = 2 + np.arange(TOPICS) % 7
    runs = {}
    for run, strength in enumerate([2.0, 1.7, 1.4, 1.1]):
        scores = generator.normal(size=(TOPICS, 50))
        scores += strength * (np.arange(50) < relevant[:, None])
        best = np.argsort(-scores, axis=1)[:, :DEPTH]
        docnos = np.array([f"d{document:02}".encode() for document in best.ravel()])
        runs["abcd"[run]] = RankedLists(tuple(topics), np.arange(TOPICS + 1) * DEPTH, docnos)
    pool = build_pool(topics, runs, depth=DEPTH)
    documents = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return pool, (documents < relevant[pool.topic]).astype(np.int64)


def off(pool: Pool, grades: np.ndarray) -> np.ndarray:
    """By how much the values of every sample are off, shape (TRIALS, k)."""
    truth = true_values(pool, grades=grades, measure=NDCG)
    plan = plan_of(pool, NDCG, budget=2 * TOPICS, batches=5)
    found = []
    for trial in range(TRIALS):
        drawn, labels = played(pool, grades, plan, seed=f"l{trial}")
        asked = {"labels": labels, "measures": [NDCG], "max_grade": 3}
        found.append(evaluate(pool, drawn, **asked).results[0].estimate.value - truth)
    return np.array(found)


@pytest.mark.slow
def test_little_known_of_many_ideal_lists_leaves_less_bias(
    many_topics: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin divides estimates by estimates, whatever is known of these."""
    by_line = off(*many_topics)
    monkeypatch.setattr(ratio_outlook, "BENT", 0.0)
    divided = off(*many_topics)
    error = 3.0 * (by_line - divided).mean(axis=1).std() / np.sqrt(TRIALS)
    assert abs(by_line.mean()) + error < abs(divided.mean())
    assert (by_line**2).mean() < 0.6 * (divided**2).mean()


def test_along_a_line_ratios_move_as_its_slopes_say(many_topics: tuple) -> None:
    """From where it touches, where it says what is so, pair by pair."""
    pool, grades = many_topics
    generator = np.random.default_rng(1)
    reach = (0.2 + 0.6 * grades)[None, :]
    gains = Gains(np.array([1.0]), reach, np.arange(len(pool)), np.ones(len(pool)))
    line = Tangent.of(Frame.of(pool, NDCG, gains, None), NDCG)
    assert line.along(reach) == pytest.approx(line.by_topic)
    moved = generator.normal(0.0, 0.1, size=reach.shape)
    rows = line.moved(np.arange(len(pool)), moved)
    expected = line.by_topic.copy()
    np.add.at(expected, pool.topic, rows)
    assert line.along(reach + moved) == pytest.approx(expected)
    near = 1e-6 * moved
    closer = Gains(gains.gain, reach + near, gains.pair, gains.inclusion)
    ratio = Tangent.of(Frame.of(pool, NDCG, closer, None), NDCG).by_topic
    assert line.along(reach + near) == pytest.approx(ratio, abs=1e-9)
