"""Whoever counts in few pairs is not exact because two who judged each of these agree.

Two judge every document and err one time in five. One run returns four documents of one topic of
six, the others all; about all four the two agree in one campaign of five.
"""

from collections.abc import Callable

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows, PairLabels
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates import ratio_moments
from estimation.core.estimates.ratios import ratios_of_shares
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.active.rounds import ActiveRound, make_plan
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import DrawnRound, MeasureResult
from estimation.core.rounds.rounds import PairRound, TopicRound
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.draws import draw_queries
from estimation.core.rounds.topics.grade_models import uniform_grades
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from tests.core.test_core_adaptive import plan_for

WRONG, TRIALS, DEPTH, RUNS_SEED = 0.2, 250, 10, 3
PRECISION, AP = parse_measure("P@10"), parse_measure("AP")


def pool_of(**runs: list[list[int]]) -> Pool:
    """Of runs with a list of documents for each topic."""
    topics = tuple(f"t{number:02}" for number in range(len(next(iter(runs.values())))))
    lists = {
        tag: RankedLists(
            topics,
            np.append(0, np.cumsum([len(each) for each in of_topics])),
            np.array([f"d{at:02}".encode() for each in of_topics for at in each]),
        )
        for tag, of_topics in runs.items()
    }
    return build_pool(topics, lists, depth=DEPTH)


def census_of_pairs(pool: Pool, measure: Measure) -> DrawnRound:
    about = {"goal": goals.absolute(*pool.runs), "measure": measure, "max_grade": 1}
    prior = make_prior(pool, name="rank", **about)
    whole = {"budget": len(pool), "batch_size": len(pool)}
    design = make_design(pool, prior=prior, **whole, **about)
    return PairRound(design, draw(pool, design, seed="s"))


def census_of_topics(pool: Pool, measure: Measure) -> DrawnRound:
    about = {"goal": goals.absolute(*pool.runs), "measure": measure}
    model = uniform_grades(pool, max_grade=1)
    design = make_query_design(pool, model=model, budget=len(pool), **about)
    return TopicRound(design, draw_queries(pool, design, seed="s"))


def active_census(pool: Pool, measure: Measure) -> DrawnRound:
    plan = make_plan(pool, measures=[measure], budget=len(pool), batch_size=len(pool))
    return ActiveRound.begin(pool, plan, seed="s")


def adaptive_census(pool: Pool, measure: Measure) -> DrawnRound:
    options = {"budget": len(pool), "batches": 1, "max_grade": 1, "reported": []}
    return AdaptiveRound.begin(pool, plan_for(pool, measure=measure, **options), seed="s")


def judged(
    pool: Pool, drawn: DrawnRound, measure: Measure, grades: np.ndarray, trial: int
) -> MeasureResult:
    """What two who err one time in five say of everything."""
    pairs = np.repeat(np.arange(len(pool)), 2)
    wrong = np.random.default_rng(trial).random(len(pairs)) < WRONG
    labels = LabelRows(pairs, np.where(wrong, 1 - grades[pairs], grades[pairs]))
    return evaluate(pool, drawn, labels=labels, measures=[measure], max_grade=1).results[0]


def covered(begin: Callable[[Pool, Measure], DrawnRound]) -> float:
    """How often the run with four documents is, in campaigns that judge everything twice."""
    lists, nothing = [list(range(4)) for _ in range(6)], [[] for _ in range(5)]
    pool = pool_of(few=[lists[0], *nothing], all=lists, back=[each[::-1] for each in lists])
    grades = (np.arange(len(pool)) % 4 == 0).astype(np.int64)
    few = pool.run_index("few")
    useful = WRONG + (1.0 - 2.0 * WRONG) * grades
    truth = pool.weights(PRECISION, np.arange(len(pool))).toarray()[:, few] @ useful
    drawn = begin(pool, PRECISION)
    told = [judged(pool, drawn, PRECISION, grades, trial).estimate for trial in range(TRIALS)]
    return float(np.mean([each.low[few] <= truth <= each.high[few] for each in told]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "begin", [census_of_pairs, adaptive_census, census_of_topics, active_census]
)
def test_who_counts_in_few_pairs_is_covered(
    begin: Callable[[Pool, Measure], DrawnRound], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin believes what two said of a pair, also where they agree."""
    assert covered(begin) >= 0.93
    monkeypatch.setattr(PairLabels, "likely_noise", None)
    assert covered(begin) < 0.8


def false_verdicts(begin: Callable[[Pool, Measure], DrawnRound]) -> float:
    """How often some verdict on AP is false, next to nothing being relevant.

    Four runs order three documents of each of seven topics, of which one is relevant, each in its
    own way: what two say wrongly of a useless one moves the value of a topic by a third or more.
    """
    random = np.random.default_rng(RUNS_SEED)
    orders = {f"r{at}": [random.permutation(3).tolist() for _ in range(7)] for at in range(4)}
    pool = pool_of(**orders)
    grades = np.zeros(len(pool), dtype=np.int64)
    grades[0] = 1
    useful = WRONG + (1.0 - 2.0 * WRONG) * grades
    truth = ratios_of_shares(pool, AP, gain=np.ones(1), reach=useful[None, :]).mean(axis=0)
    better = np.sign(np.subtract.outer(truth, truth).round(12))
    drawn = begin(pool, AP)
    told = (judged(pool, drawn, AP, grades, trial).ranking.verdicts for trial in range(TRIALS))
    return float(np.mean([np.any((each != 0) & (each != better)) for each in told]))


@pytest.mark.slow
@pytest.mark.parametrize("begin", [census_of_pairs, adaptive_census, census_of_topics])
def test_nor_are_runs_told_apart_by_ratios_where_two_agree(
    begin: Callable[[Pool, Measure], DrawnRound], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin believes them."""
    assert false_verdicts(begin) <= 0.05
    alone = ratio_moments._moments
    monkeypatch.setattr(ratio_moments, "_moments", lambda *asked: (alone(*asked)[0],) * 2)
    assert false_verdicts(begin) > 0.08
