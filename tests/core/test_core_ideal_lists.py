"""What is known of the ideal lists of nDCG, where few systems are judged little below the top."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.drawn import Drawn
from estimation.core.estimates.ratio_labels import FoundParts
from estimation.core.inference.ideal_lists import FINDS_BELIEVED, IdealLists, _times
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values

NDCG = parse_measure("nDCG@5")
TOPICS, DEPTH, TRIALS = 30, 40, 60
DISCOUNTS = 1.0 / np.log2(np.arange(2, 12))


@pytest.fixture(scope="module")
def two_systems() -> tuple[Pool, np.ndarray]:
    """Half of the topics have four relevant documents, and half have twenty."""
    generator = np.random.default_rng(8)
    topics = [f"t{number:02}" for number in range(TOPICS)]
    relevant = np.where(np.arange(TOPICS) % 2, 20, 4)
    runs = {}
    for tag, strength in (("a", 1.6), ("b", 1.1)):
        scores = generator.normal(size=(TOPICS, 60))
        scores += strength * (np.arange(60) < relevant[:, None])
        best = np.argsort(-scores, axis=1)[:, :DEPTH]
        docnos = np.array([f"d{document:02}".encode() for document in best.ravel()])
        runs[tag] = RankedLists(tuple(topics), np.arange(TOPICS + 1) * DEPTH, docnos)
    pool = build_pool(topics, runs, depth=DEPTH)
    documents = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return pool, (documents < relevant[pool.topic]).astype(np.int64)


def held(pool: Pool, grades: np.ndarray, *, share: float) -> tuple[np.ndarray, float, float]:
    """How often values lie in their intervals, and the difference; how many values are told."""
    about = {"goal": goals.absolute(*pool.runs), "measure": NDCG, "max_grade": 1}
    prior, budget = make_prior(pool, name="rank", **about), int(share * len(pool))
    planned = make_design(pool, prior=prior, budget=budget, batch_size=budget, **about)
    truth = true_values(pool, grades=grades, measure=NDCG)
    values, differences, told = [], [], []
    for trial in range(TRIALS):
        sample = draw(pool, planned, seed=f"i{trial}")
        labels, part = LabelRows(sample.pair, grades[sample.pair]), PairRound(planned, sample)
        asked = {"labels": labels, "measures": [NDCG], "max_grade": 1}
        found = evaluate(pool, part, **asked).results[0]
        shown, ranking = found.estimate, found.ranking
        values.append((shown.low <= truth + 1e-9) & (truth <= shown.high + 1e-9))
        off = ranking.difference[0, 1] - (truth[0] - truth[1])
        differences.append(abs(off) <= ranking.margin[0, 1] + 1e-9)
        told.append(shown.unknown == 0)
    return np.mean(values, axis=0), float(np.mean(differences)), float(np.mean(told))


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.25, 0.4])
def test_two_systems_of_which_the_top_is_judged_are_told_truly(
    two_systems: tuple, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin believes that lists are as long as the sample says."""
    values, difference, told = held(*two_systems, share=share)
    assert values.min() >= 0.95
    assert difference >= 0.8  # next to .9 of 200 samples: nobody expects topics to be so unlike
    assert told >= 0.9
    monkeypatch.setattr(IdealLists, "covariance", lambda *_: np.zeros((2, 2)))
    values, difference, _ = held(*two_systems, share=share)
    assert min(values.min(), difference) < 0.6, "the twin is caught"


# ------------------------------------------------------------------------------ what is known


def small(documents: int) -> Pool:
    """One run, three topics, with so many documents each."""
    topics = ["t0", "t1", "t2"]
    names = np.array([f"d{at:02}".encode() for at in range(documents)])
    bounds = np.arange(4) * documents
    return build_pool(
        topics, {"a": RankedLists(tuple(topics), bounds, np.tile(names, 3))}, depth=documents
    )


def known(pool: Pool, judged: np.ndarray, grades: np.ndarray, expected: np.ndarray) -> IdealLists:
    inclusion = np.where(judged, 1.0, 0.1)
    pairs = np.flatnonzero(judged)
    drawn = Drawn(pairs, inclusion, inclusion, inclusion[pairs])
    outlook = KnownOutlook(np.array([1]), expected[None, :])
    return IdealLists.of(
        pool, NDCG, drawn, LabelRows(np.arange(len(pairs)), grades[pairs]), outlook
    )


def test_lists_of_which_all_is_judged_are_known() -> None:
    pool = small(8)
    grades = np.zeros(len(pool), dtype=np.int64)
    place = np.flatnonzero(pool.topic == 1)[:3], np.flatnonzero(pool.topic == 2)[:7]
    grades[np.concatenate(place)] = 1
    found = known(pool, np.ones(len(pool), dtype=bool), grades, np.full(len(pool), 0.5))
    ideal = DISCOUNTS[:3].sum(), DISCOUNTS[:5].sum()
    assert found.reciprocal == pytest.approx([0.0, 1.0 / ideal[0], 1.0 / ideal[1]])
    assert found.variance == pytest.approx(np.zeros(3), abs=1e-12)


def test_what_is_not_judged_adds_what_is_expected_of_it_but_for_lists_that_are_full() -> None:
    pool = small(20)
    judged = pool.rank[pool.indptr[:-1]] <= 8
    grades = (pool.topic == 1) & (pool.rank[pool.indptr[:-1]] <= 2)
    grades |= (pool.topic == 2) & (pool.rank[pool.indptr[:-1]] <= 5)
    found = known(pool, judged, grades.astype(np.int64), np.full(len(pool), 0.1))
    assert found.reciprocal[1] < 1.0 / DISCOUNTS[:2].sum(), "there may be more"
    assert found.reciprocal[1] > 1.0 / DISCOUNTS[:5].sum(), "but not for certain"
    assert found.variance[1] > 0.0
    assert found.reciprocal[2] == pytest.approx(1.0 / DISCOUNTS[:5].sum())
    assert found.variance[2] == pytest.approx(0.0, abs=1e-12)


def test_a_sample_tells_how_many_there_are_as_far_as_it_has_finds() -> None:
    """Where none of many that stand for others is relevant, all topics are expected to have less;
    where they are, more."""
    inclusion = np.full(200, 0.1)
    drawn = Drawn(np.arange(20), inclusion, inclusion, inclusion[:20])
    assert _times(np.zeros((1, 20)), drawn, np.array([30.0])) == pytest.approx([1.0])
    found = np.zeros((1, 20))
    found[0, :6] = 1.0
    believed = 6.0 / (6.0 + FINDS_BELIEVED)
    expected = 1.0 + believed * (6 * 9.0 / 30.0 - 1.0)
    assert _times(found, drawn, np.array([30.0])) == pytest.approx([expected])


def test_a_value_errs_by_what_was_found_times_what_its_lists_are_off_by() -> None:
    lists = IdealLists(np.array([0.5, 0.25]), np.array([0.0, 0.01]))
    parts = FoundParts(np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([0.6, 0.25]))
    bias = np.array([0.1, 0.2])
    spread = np.array([[9.0, 0.0], [0.0, 0.0]]) * 0.01
    assert lists.covariance(parts) == pytest.approx(np.multiply.outer(bias, bias) + spread)
