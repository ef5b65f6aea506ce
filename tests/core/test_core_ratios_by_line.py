"""nDCG of adaptive rounds where little is known of the ideal list of a topic: lines, and bias."""

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.ratio_frames import Frame, Gains
from estimation.core.estimates.ratio_lines import Tangent
from estimation.core.inference import ratio_knowledge, ratio_outlook, second_order
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.adaptive import ratios, slopes
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.research.simulation import true_values
from tests.core.test_core_adaptive import played
from tests.core.test_core_adaptive_ratios import plan_of

NDCG = parse_measure("nDCG@5")
TOPICS, DEPTH, TRIALS = 150, 20, 8


def pool_of(relevant: np.ndarray) -> tuple[Pool, np.ndarray]:
    """So many relevant documents of 50 in each topic, and four runs that find some of them."""
    generator = np.random.default_rng(5)
    topics = [f"t{number:03}" for number in range(len(relevant))]
    runs = {}
    for run, strength in enumerate([2.0, 1.7, 1.4, 1.1]):
        scores = generator.normal(size=(len(topics), 50))
        scores += strength * (np.arange(50) < relevant[:, None])
        best = np.argsort(-scores, axis=1)[:, :DEPTH]
        docnos = np.array([f"d{document:02}".encode() for document in best.ravel()])
        runs["abcd"[run]] = RankedLists(tuple(topics), np.arange(len(topics) + 1) * DEPTH, docnos)
    pool = build_pool(topics, runs, depth=DEPTH)
    documents = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return pool, (documents < relevant[pool.topic]).astype(np.int64)


@pytest.fixture(scope="module")
def many_topics() -> tuple[Pool, np.ndarray]:
    """Topics with two to eight relevant documents, of which few can be judged."""
    return pool_of(2 + np.arange(TOPICS) % 7)


def samples(pool: Pool, grades: np.ndarray, budget: int) -> list[tuple]:
    plan = plan_of(pool, NDCG, budget=budget, batches=5)
    return [played(pool, grades, plan, seed=f"l{trial}") for trial in range(TRIALS)]


def told(pool: Pool, sample: tuple) -> MeasureResult:
    drawn, labels = sample
    return evaluate(pool, drawn, labels=labels, measures=[NDCG], max_grade=3).results[0]


def off(pool: Pool, grades: np.ndarray, budget: int) -> np.ndarray:
    """By how much the values of every sample are off, shape (TRIALS, k)."""
    truth = true_values(pool, grades=grades, measure=NDCG)
    drawn = samples(pool, grades, budget)
    return np.array([told(pool, each).estimate.value - truth for each in drawn])


@pytest.mark.slow
def test_little_known_of_many_ideal_lists_leaves_less_bias(
    many_topics: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin divides estimates by estimates, whatever is known of these."""
    by_line = off(*many_topics, 2 * TOPICS)
    monkeypatch.setattr(ratio_outlook, "BENT", 0.0)
    divided = off(*many_topics, 2 * TOPICS)
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


@pytest.mark.slow
def test_of_two_biases_the_larger_counts_more(
    many_topics: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin takes their mean, though one is blind to what the other sees."""
    by_size = off(*many_topics, 6 * TOPICS)
    monkeypatch.setattr(ratios, "_by_size", lambda bias, other: (bias + other) / 2.0)
    mean = off(*many_topics, 6 * TOPICS)
    error = 3.0 * (by_size - mean).mean(axis=1).std() / np.sqrt(TRIALS)
    assert abs(by_size.mean()) + error < abs(mean.mean())


@pytest.mark.slow
def test_lists_that_are_full_of_what_was_found_vary_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin takes slopes as they are: documents of small chances, of which each stands for many,
    would make lists vary that are nearly full anyway."""
    monkeypatch.setattr(second_order, "LEAST_TOPICS", 10**9)  # of what is left of either
    pool, grades = pool_of(4 + np.arange(80) % 16)
    limited = off(pool, grades, 3 * len(pool) // 10)
    monkeypatch.setattr(slopes, "_limited", lambda at, *_: at)
    free = off(pool, grades, 3 * len(pool) // 10)
    error = 3.0 * (limited - free).mean(axis=1).std() / np.sqrt(TRIALS)
    assert abs(limited.mean()) + error < abs(free.mean()) / 2.0


def test_each_bias_counts_as_much_as_it_is_of_a_run() -> None:
    some, other = np.array([[0.01, 0.0, 0.0], [0.02, 0.0, 0.0]]), np.full((2, 3), 0.01)
    other[:, 2] = 0.0
    expected = 0.6 * some + 0.4 * other
    expected[:, 1:] = other[:, 1:]
    np.testing.assert_allclose(ratios._by_size(some, other), expected)
    np.testing.assert_allclose(ratios._by_size(-some, other)[:, 0], other[:, 0])


@pytest.mark.slow
def test_a_bias_that_may_be_left_hides_no_difference_and_no_verdict(many_topics: tuple) -> None:
    """Of 48 differences 4 were not told, and 7 verdicts not given, each of them true; now three
    are not, for what products of finds leave open."""
    pool, grades = many_topics
    truth = true_values(pool, grades=grades, measure=NDCG)
    true, given = np.subtract.outer(truth, truth), []
    for sample in samples(pool, grades, 6 * TOPICS):
        ranking = told(pool, sample).ranking
        assert not ranking.unknown.any()
        assert np.all(ranking.verdicts * true >= 0.0)
        given.append(np.count_nonzero(ranking.verdicts) / 2)
        assert np.all(np.abs(ranking.difference - true) <= ranking.margin)
    assert sum(given) >= 45


@pytest.mark.slow
def test_a_bias_beyond_what_is_believed_of_it_counts_more_the_larger_it_is(
    many_topics: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is believed counts once, as does any by the twin, which believes all."""
    pool, grades = many_topics
    sample = samples(pool, grades, 6 * TOPICS)[1]
    usual = told(pool, sample)
    margins, widths, off_diagonal = [], [], ~np.eye(4, dtype=bool)
    for believed in (1e9, 1.0, 0.1, 0.05):
        monkeypatch.setattr(ratio_knowledge, "MOST_BIAS", 2.0 * believed)
        monkeypatch.setattr(ratio_knowledge, "MOST_BIAS_OF_DIFFERENCE", believed)
        found = told(pool, sample)
        margins.append(found.ranking.margin[off_diagonal])
        widths.append(found.estimate.se)
        least = found.estimate.difference_least
        assert least is not None
        assert np.array_equal(least, least.T)
        assert np.all(least[off_diagonal] > 0.0)
        assert np.array_equal(found.estimate.value, usual.estimate.value)
    assert np.all(np.diff(margins, axis=0) >= 0.0)
    assert np.all(np.diff(widths, axis=0) >= 0.0)
    assert np.all(widths[0] < widths[-1])
    assert np.mean(margins[0] < margins[-1]) > 0.5
