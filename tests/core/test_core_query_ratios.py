"""AP, nDCG and Rprec from topics that are judged whole: exact values, costs, designs, estimates.

Each statistical statement comes with a broken twin that the same check must catch.
"""

import io
import math
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning.topic_planning import expected_query_half_widths
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound, TopicRound
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.designs import (
    QueryDesign,
    QueryError,
    judged_depth,
    labeled_pairs,
    labeling_costs,
)
from estimation.core.rounds.topics.draws import QuerySample, draw_queries
from estimation.core.rounds.topics.grade_models import GradeModel, uniform_grades
from estimation.core.rounds.topics.moments import (
    goal_moments,
    value_moments,
)
from estimation.core.rounds.topics.values import judged_topics
from estimation.core.sampling import goals
from estimation.core.sampling.draws import draw
from estimation.research.simulation import true_topic_values
from tests.core.length import bounded
from tests.core.plain_estimates import estimates_alone
from tests.core.ratio_pools import EXACT, RATIOS, design_for, grades_of, three_runs

RUNS = ("alpha", "beta", "gamma")
AP = parse_measure("AP")


@pytest.fixture
def pool(ranked) -> Pool:
    """Four topics of unequal size, the last without documents; "q" is returned by nobody."""
    runs = {
        "alpha": ranked({"t1": "abcd", "t2": "xyz", "t3": "lm"}),
        "beta": ranked({"t1": "dbea", "t2": "zx", "t3": "mno"}),
        "gamma": ranked({"t1": "ec", "t2": "y"}),
    }
    return build_pool(["t1", "t2", "t3", "t4"], runs, depth=3, extra={"t2": ["q"]})


def grades_for(pool: Pool) -> np.ndarray:
    """Deep and unreturned documents are relevant too, so that R and the ideal list need them."""
    relevant = {b"a": 2, b"c": 1, b"d": 1, b"q": 2, b"y": 1, b"n": 2}
    return np.array([relevant.get(each, 0) for each in pool.docno.tolist()])


def design_of(pool: Pool, measure: Measure = AP, **options: object) -> QueryDesign:
    settings = {
        "goal": goals.absolute(*RUNS), "measure": measure, "budget": 9.0,
        "model": uniform_grades(pool, max_grade=2), "estimator": "unbiased",
    }  # fmt: skip
    return make_query_design(pool, **(settings | options))


# -------------------------------------------------------------------------- what must be judged


def test_every_document_of_the_pool_is_judged_for_a_ratio(pool: Pool) -> None:
    top, ap = parse_measure("P@1"), parse_measure("AP@1")
    assert judged_depth(pool, [top, parse_measure("DCG@2")]) == 2
    assert judged_depth(pool, [top, ap]) is None
    assert labeling_costs(pool, runs=["beta"], depth=1).tolist() == [1, 1, 1, 0]
    assert labeling_costs(pool, runs=["beta"], depth=None).tolist() == [5, 4, 4, 0]
    assert labeled_pairs(pool, runs=["beta"], depth=None).all()
    for design in (
        design_of(pool, ap, goal=goals.single("beta")),
        design_of(pool, top, goal=goals.single("beta"), measures=[ap]),
    ):
        assert (design.runs, design.depth) == (("beta",), None)
        assert design.cost.tolist() == [5, 4, 4, 0]
        sample = draw_queries(pool, design, seed="s")
        file = io.BytesIO()
        design.save(file)
        file.seek(0)
        served = TopicRound(QueryDesign.load(file), sample).served(pool)
        assert np.array_equal(served.pair, np.flatnonzero(np.isin(pool.topic, sample.topic)))
    with pytest.raises(MeasureError, match=r"measures\[0\] must be a Measure"):
        design_of(pool, top, measures=["AP"])
    with pytest.raises(QueryError, match="depth must be left out: AP@1 needs every document"):
        design_of(pool, top, measures=[ap], depth=3)


def test_a_round_that_had_not_every_document_judged_refuses_ratios(pool: Pool) -> None:
    labels = LabelRows(np.arange(len(pool)), grades_for(pool))
    design = design_of(pool, parse_measure("P@2"), budget=8.0)
    options = {"labels": labels, "max_grade": 2}
    sample = draw_queries(pool, design, seed="s")
    with pytest.raises(
        QueryError, match="nDCG@2 needs every document of a topic judged; here 2 documents"
    ):
        evaluate(pool, TopicRound(design, sample), measures=[parse_measure("nDCG@2")], **options)
    missing = LabelRows(np.arange(len(pool) - 1), np.zeros(len(pool) - 1, dtype=np.int64))
    with pytest.raises(QueryError, match="topic 't3', docno 'o' has no judgment"):
        judged_topics(pool, labels=missing, measure=parse_measure("AP@1"), max_grade=2)
    with pytest.raises(MeasureError, match="MAE cannot be computed from topics"):
        judged_topics(pool, labels=labels, measure=parse_measure("MAE"), max_grade=2)


def test_a_design_of_whole_lists_of_all_runs_serves_ratios_as_well(ranked) -> None:
    lists = {"alpha": ranked({"t1": "ab", "t2": "xy"}), "beta": ranked({"t1": "bc", "t2": "z"})}
    pool = build_pool(["t1", "t2"], lists, depth=2)
    design = design_of(pool, parse_measure("DCG"), goal=goals.absolute("alpha", "beta"), budget=6.0)
    assert design.depth == 2
    sample = draw_queries(pool, design, seed="s")
    labels = LabelRows(np.arange(6), np.array([2, 0, 1, 0, 1, 0]))
    found = evaluate(pool, TopicRound(design, sample), labels=labels, measures=RATIOS, max_grade=2)
    for each in found.results:
        truth = true_topic_values(pool, grades=labels.grade, measure=each.measure)
        assert each.estimate.value == pytest.approx(truth.mean(axis=0), **EXACT)


# --------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("measure", RATIOS, ids=str)
def test_values_of_judged_topics_are_those_of_a_census_of_pairs(measure: Measure) -> None:
    """With several judgments as well, where R and the ideal list count shares of documents."""
    pool = three_runs()
    design = design_for(pool, "poisson", budget=len(pool))
    sample = draw(pool, design, seed="s")
    rng = np.random.default_rng(2)
    more = rng.choice(len(pool), size=200)
    pair = np.concatenate([np.arange(len(pool)), more])
    labels = LabelRows(pair, np.append(grades_of(pool), rng.integers(0, 4, size=200)))
    (census,) = evaluate(
        pool, PairRound(design, sample), labels=labels, measures=[measure], max_grade=3
    ).results
    some = np.array([7, 2, 11])
    found = judged_topics(
        pool, labels=labels, measure=measure, max_grade=3, topics=some, runs=["two", "one"]
    ).value
    expected = census.by_topic[some][:, [2, 0]] * len(pool.topics)
    assert found == pytest.approx(expected, **EXACT)


# ------------------------------------------------------------------------- unbiased over samples


def every_sample(design: QueryDesign, draws: int) -> list[tuple[float, QuerySample]]:
    """All results of so many draws, with their chances; the order of draws has no influence."""
    found = []
    for drawn in combinations_with_replacement(np.flatnonzero(design.eligible).tolist(), draws):
        counts = np.bincount(drawn)
        ways = math.factorial(draws) / math.prod(map(math.factorial, counts.tolist()))
        topic = np.unique(drawn)
        batch = np.ones(len(topic), dtype=np.int32)
        sample = QuerySample(
            topic, batch, np.array(drawn), np.ones(draws, dtype=np.int32), design.pool_digest
        )
        found.append((ways * float(np.prod(design.probability[list(drawn)])), sample))
    return found


@pytest.mark.parametrize("measure", RATIOS, ids=str)
def test_ratios_are_unbiased_over_all_samples_of_topics(pool: Pool, measure: Measure) -> None:
    """Values and covariances; the twin counts the relevant documents of what the runs returned."""
    grades = grades_for(pool)
    labels = LabelRows(np.arange(len(pool)), grades)
    design = design_of(pool, measure, floor=0.4)
    values = true_topic_values(pool, grades=grades, measure=measure)
    truth = values.mean(axis=0)
    every = every_sample(design, draws=3)
    assert sum(chance for chance, _ in every) == pytest.approx(1.0, **EXACT)
    value, square, told = np.zeros(3), np.zeros((3, 3)), np.zeros((3, 3))
    for chance, sample in every:
        (found,) = evaluate(
            pool, TopicRound(design, sample), labels=labels, measures=[measure], max_grade=2
        ).results
        found = found.estimate
        value += chance * found.value
        square += chance * np.multiply.outer(found.value, found.value)
        told += chance * found.covariance
    assert value == pytest.approx(truth, **EXACT)
    assert told == pytest.approx(square - np.multiply.outer(truth, truth), **EXACT)
    assert np.diag(told).min() > 1e-4
    twin = true_topic_values(pool, grades=np.where(pool.docno == b"q", 0, grades), measure=measure)
    assert np.abs(twin.mean(axis=0) - truth).max() > 0.005


# -------------------------------------------------------------------------------------- moments


def random_model(pool: Pool) -> GradeModel:
    chance = np.random.default_rng(1).dirichlet([2.0, 0.6, 0.4, 0.3], size=len(pool))
    return GradeModel("predicted", chance, np.ones(len(pool), dtype=bool))


def drawn_values(pool: Pool, model: GradeModel, measure: Measure, number: int) -> np.ndarray:
    """Values of all topics and runs when grades are drawn from the model, shape (number, T, k)."""
    rng, limits = np.random.default_rng(5), np.cumsum(model.probability, axis=1)[:, :-1]
    grades = [(rng.random((len(pool), 1)) > limits).sum(axis=1) for _ in range(number)]
    return np.array([true_topic_values(pool, grades=each, measure=measure) for each in grades])


@pytest.mark.slow
@pytest.mark.parametrize("measure", RATIOS, ids=str)
def test_moments_are_those_of_drawn_grades_to_first_order(measure: Measure) -> None:
    """The twin takes the denominators, R and the ideal list, as known."""
    pool = three_runs()
    model = random_model(pool)
    values = drawn_values(pool, model, measure, number=400)
    found = value_moments(pool, runs=pool.runs, measure=measure, model=model)
    mean, sd = values.mean(axis=0), values.std(axis=0)
    assert np.abs(found.mean - mean).max() < 0.08
    ratio = np.sqrt(found.variance) / sd
    assert np.median(ratio) == pytest.approx(1.0, abs=0.1)
    assert np.all((ratio > 0.65) & (ratio < 1.35))
    between = goal_moments(pool, goal=goals.pair("one", "two"), measure=measure, model=model)
    spread = (values[:, :, 0] - values[:, :, 2]).std(axis=0)
    assert np.median(np.sqrt(between.variance) / spread) == pytest.approx(1.0, abs=0.1)
    weights, gain = (
        pool.weights(measure).toarray() * len(pool.topics),
        measure.utilities([0, 1, 2, 3]),
    )
    expected = (model.probability * gain).sum(axis=1)
    twin = np.stack(
        [np.bincount(pool.topic, weights=expected * each) for each in weights.T], axis=1
    )
    assert np.abs(twin - mean).max() > 0.1  # twin: the weighted sum that designs over pairs use


@pytest.mark.parametrize("measure", RATIOS, ids=str)
def test_squares_of_goals_are_sums_of_moments(pool: Pool, measure: Measure) -> None:
    model = GradeModel("predicted", random_model(pool).probability, np.ones(len(pool), dtype=bool))
    options = {"measure": measure, "model": model}
    single, every = value_moments(pool, runs=RUNS, **options), np.ones(4, dtype=bool)

    def squares(goal: goals.Goal, estimator: str = "unbiased") -> np.ndarray:
        return goal_moments(pool, goal=goal, **options).squares(estimator, every)

    both = {
        (a, b): squares(goals.pair(a, b))
        for a, b in [("alpha", "beta"), ("alpha", "gamma"), ("beta", "gamma")]
    }
    for goal, expected in [
        (goals.single("beta"), single.second[:, 1]),
        (goals.absolute(*RUNS), single.second.sum(axis=1)),
        (goals.ranking(*RUNS), sum(both.values()) / 3.0),
    ]:
        assert squares(goal) == pytest.approx(expected, **EXACT)
    spread = single.variance[:, 1] + (single.mean[:, 1] - single.mean[:, 1].mean()) ** 2
    assert squares(goals.single("beta"), "ratio") == pytest.approx(spread, **EXACT)
    certain = GradeModel("predicted", np.eye(4)[grades_for(pool)], np.ones(len(pool), dtype=bool))
    sure = value_moments(pool, runs=["alpha"], measure=measure, model=certain)
    truth = true_topic_values(pool, grades=grades_for(pool), measure=measure)[:, 0]
    assert sure.mean[:, 0] == pytest.approx(truth, **EXACT)
    assert sure.variance[:, 0] == pytest.approx(np.zeros(4), abs=1e-15)


@pytest.mark.parametrize("measure", RATIOS, ids=str)
def test_planned_widths_are_those_of_the_grades_that_are_believed(measure: Measure) -> None:
    """Where the model is sure, the spread of one draw is known; in the measure's own unit."""
    pool = three_runs()
    sure = GradeModel("predicted", np.eye(4)[grades_of(pool)], np.ones(len(pool), dtype=bool))
    goal = goals.absolute(*pool.runs)
    design = make_query_design(
        pool, goal=goal, measure=measure, model=sure, budget=150, estimator="unbiased"
    )
    found = expected_query_half_widths(pool, design, measure=measure, model=sure, budgets=[150])
    values = true_topic_values(pool, grades=grades_of(pool), measure=measure)
    terms = values / (len(values) * design.probability[:, None])
    spread = design.probability @ terms**2 - values.mean(axis=0) ** 2
    draws = 150 / (design.cost @ design.probability)
    assert found[0] == pytest.approx(1.959963984540054 * np.sqrt(spread / draws), rel=1e-9)


# ------------------------------------------------------------------------------ seeded campaigns


@pytest.mark.slow
@pytest.mark.parametrize("text", ["AP", "nDCG@10"])
@pytest.mark.parametrize("estimator", ["unbiased", "ratio"])
def test_intervals_of_ratios_keep_their_word(text: str, estimator: str) -> None:
    """A third of what all topics cost; twins leave out the weights and shorten the intervals."""
    pool, grades, model = synthetic(150)
    measure, repeats = parse_measure(text), bounded(300, 600)
    wider = math.sqrt(600 / repeats)
    truth = true_topic_values(pool, grades=grades, measure=measure).mean(axis=0)
    design = make_query_design(
        pool, goal=goals.absolute(*pool.runs), measure=measure, model=model,
        budget=len(pool) / 3.0, estimator=estimator, floor=0.3,
    )  # fmt: skip
    labels, found = LabelRows(np.arange(len(pool)), grades), []
    even = replace(design, probability=design.eligible / np.count_nonzero(design.eligible))
    twins = []
    for seed in range(repeats):
        sample = draw_queries(pool, design, seed=f"ratios-{seed}")
        options = {"labels": labels, "measures": [measure], "max_grade": 3}
        found.append(evaluate(pool, TopicRound(design, sample), **options).results[0].estimate)
        with estimates_alone():
            (twin,) = evaluate(pool, TopicRound(even, sample), **options).results
        twins.append(twin.estimate.value)
    values = np.array([each.value for each in found])
    limit = 4.0 * values.std(axis=0) / math.sqrt(repeats) + 0.005 * (estimator == "ratio")
    assert np.all(np.abs(values.mean(axis=0) - truth) < limit)
    assert np.any(np.abs(np.mean(twins, axis=0) - truth) > limit)  # twin: not weighted
    told = np.mean([np.diag(each.covariance) for each in found], axis=0)
    assert told / values.var(axis=0) == pytest.approx(np.ones(3), abs=0.2 * wider)
    inside = np.mean([(each.low <= truth) & (truth <= each.high) for each in found], axis=0)
    assert inside.mean() == pytest.approx(0.955, abs=0.02 * wider)
    assert inside.min() > 0.955 - 0.025 * wider
    narrow = np.mean([np.abs(each.value - truth) <= 1.4 * each.se for each in found])
    assert narrow < 0.965 - 0.06 * wider  # twin: intervals too short


def synthetic(topics: int) -> tuple[Pool, np.ndarray, GradeModel]:
    """Three runs that rank by relevance with more and more noise; topics of unequal size."""
    rng = np.random.default_rng(11)
    names = [f"t{number:03}" for number in range(topics)]
    sizes = rng.integers(5, 40, size=topics)
    hardness = rng.beta(1.2, 2.5, size=topics)
    grades = [
        rng.binomial(3, share, size=size) for share, size in zip(hardness, sizes, strict=True)
    ]
    runs = {}
    for tag, noise in zip(RUNS, (0.5, 1.5, 4.0), strict=True):
        orders = [np.argsort(-(each + noise * rng.normal(size=len(each)))) for each in grades]
        docnos = np.array([f"d{d:02}".encode() for order in orders for d in order])
        runs[tag] = RankedLists(tuple(names), np.concatenate([[0], np.cumsum(sizes)]), docnos)
    pool = build_pool(names, runs, depth=40)
    grade = np.concatenate(grades)
    share = (0.1 + 0.5 * hardness[pool.topic] + 0.1 * grade)[:, None]
    binomial = np.array([math.comb(3, y) for y in range(4)])
    chances = binomial * share ** np.arange(4) * (1 - share) ** (3 - np.arange(4))
    return pool, grade, GradeModel("predicted", chances, np.ones(len(pool), dtype=bool))
