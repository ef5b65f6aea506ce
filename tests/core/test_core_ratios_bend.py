"""Where ratios bend, at the last rank of Rprec, and limits of runs that are known by few finds."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.drawn import Drawn
from estimation.core.inference import ratio_knowledge
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.inference.ratio_outlook import AtOutlook
from estimation.core.measures.table import Measure
from estimation.core.rounds import limits
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values
from tests.core.test_core_adaptive_ratios import NDCG, RPREC

TOPICS, DOCUMENTS, RUNS, RELEVANT, TRIALS = 60, 16, 8, 6, 60


def campaign(seed: int) -> tuple[Pool, np.ndarray]:
    """Runs that rank the same documents differently; as many of each topic are relevant."""
    generator = np.random.default_rng(seed)
    topics = [f"t{number:02}" for number in range(TOPICS)]
    names = np.array([f"d{at:02}".encode() for at in range(DOCUMENTS)])
    common = generator.normal(size=(TOPICS, DOCUMENTS))
    bounds = np.arange(TOPICS + 1) * DOCUMENTS
    runs = {
        f"run{run}": RankedLists(
            tuple(topics),
            bounds,
            np.concatenate(
                [names[np.argsort(-(c + generator.normal(size=DOCUMENTS)))] for c in common]
            ),
        )
        for run in range(RUNS)
    }
    pool = build_pool(topics, runs, depth=DOCUMENTS)
    good = common + generator.normal(size=common.shape)
    best = {(topics[t], names[d]) for t in range(TOPICS) for d in np.argsort(-good[t])[:RELEVANT]}
    pairs = zip(pool.topic.tolist(), pool.docno.tolist(), strict=True)
    return pool, np.array([(topics[t], d) in best for t, d in pairs], dtype=np.int64)


def covered(pool: Pool, grades: np.ndarray, measure: Measure, *, share: float) -> np.ndarray:
    """How often the interval of each run holds its true value."""
    about = {"goal": goals.absolute(*pool.runs), "measure": measure, "max_grade": 1}
    prior, budget = make_prior(pool, name="rank", **about), int(share * len(pool))
    planned = make_design(pool, prior=prior, budget=budget, batch_size=budget, **about)
    truth, held = true_values(pool, grades=grades, measure=measure), []
    for trial in range(TRIALS):
        sample = draw(pool, planned, seed=f"b{trial}")
        labels, part = LabelRows(sample.pair, grades[sample.pair]), PairRound(planned, sample)
        asked = {"labels": labels, "measures": [measure], "max_grade": 1}
        found = evaluate(pool, part, **asked).results[0].estimate
        assert not found.unknown.any()
        held.append((found.low <= truth + 1e-9) & (truth <= found.high + 1e-9))
    return np.mean(held, axis=0)


@pytest.mark.slow
def test_rprec_allows_for_what_stands_next_to_the_last_rank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin takes Rprec for as straight as its tangent where the number of relevant moves."""
    found = campaign(2)
    told = covered(*found, RPREC, share=0.85)
    assert told.min() > 0.9
    monkeypatch.setattr(ratio_knowledge, "LAST_RANK", 0.0)
    assert covered(*found, RPREC, share=0.85).min() < 0.85


def test_so_many_documents_as_r_is_off_by_stand_next_to_the_last_rank() -> None:
    """Of several the root, where all pairs are certain none, of no topic more than all."""
    pool, _ = campaign(2)
    inclusion = np.where(pool.topic == 0, 1.0, np.where(pool.topic == 1, 0.9, 0.2))
    drawn = Drawn(np.zeros(0, dtype=np.int64), inclusion, inclusion, np.zeros(0))
    chances = np.where(pool.topic == 2, 0.001, 0.4)
    at = AtOutlook.of(pool, RPREC, drawn, KnownOutlook(np.array([1]), chances[None, :]))
    expected = 0.0
    for topic in range(TOPICS):
        here = pool.topic == topic
        number = chances[here].sum()
        error = ((1.0 / inclusion[here] - 1.0) * chances[here]).sum() ** 0.5
        expected += min(1.0, min(error**2, error) / number**2) / TOPICS**2
    assert at.by_last_rank == pytest.approx(expected)


def test_values_reach_up_by_half_a_find_more_and_nothing_else_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool, grades = campaign(2)
    about = {"goal": goals.absolute(*pool.runs), "measure": NDCG, "max_grade": 1}
    prior = make_prior(pool, name="rank", **about)
    planned = make_design(pool, prior=prior, budget=400, batch_size=400, **about)
    sample = draw(pool, planned, seed="b")
    labels, part = LabelRows(sample.pair, grades[sample.pair]), PairRound(planned, sample)
    asked = {"labels": labels, "measures": [NDCG], "max_grade": 1}
    found = evaluate(pool, part, **asked).results[0]
    monkeypatch.setattr(limits, "HALF", 0.0)
    less = evaluate(pool, part, **asked).results[0]
    assert np.all(found.estimate.high > less.estimate.high + 0.001)
    np.testing.assert_array_equal(found.estimate.low, less.estimate.low)
    np.testing.assert_array_equal(found.estimate.expected, less.estimate.expected)
    np.testing.assert_array_equal(found.estimate.difference_df, less.estimate.difference_df)
