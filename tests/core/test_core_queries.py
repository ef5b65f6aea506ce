"""Whole topics under labeling costs: sampling distributions, draws and estimates.

Each statistical statement comes with a broken twin that the same check must catch.
"""

import io
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import TopicRound
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.designs import QueryDesign, QueryError, labeling_costs
from estimation.core.rounds.topics.distributions import proportional
from estimation.core.rounds.topics.draws import QuerySample, draw_queries
from estimation.core.rounds.topics.grade_models import GradeModel, uniform_grades
from estimation.core.rounds.topics.moments import goal_moments
from estimation.core.rounds.topics.values import judged_topics
from estimation.core.sampling import goals
from estimation.core.sampling.goals import Goal
from estimation.research.simulation import true_values
from tests.core.length import bounded

EXACT = {"rel": 1e-12, "abs": 1e-12}
Lists = Callable[[dict[str, str]], RankedLists]
RUNS = ("alpha", "beta", "gamma")


@pytest.fixture
def pool(ranked: Lists) -> Pool:
    """Overlapping lists of different lengths; topic t3 has documents of one run, t4 none."""
    runs = {
        "alpha": ranked({"t1": "abc", "t2": "xy"}),
        "beta": ranked({"t1": "cbda", "t2": "yzx"}),
        "gamma": ranked({"t1": "eb", "t2": "xy", "t3": "m"}),
    }
    return build_pool(["t1", "t2", "t3", "t4"], runs, depth=4)


@pytest.fixture
def model(pool: Pool) -> GradeModel:
    chances = np.random.default_rng(3).dirichlet(np.ones(3), size=len(pool))
    return GradeModel("predicted", chances, np.ones(len(pool), dtype=bool))


# -------------------------------------------------------------------- sampling distributions


def synthetic(topics: int, seed: int) -> tuple[Pool, np.ndarray, GradeModel]:
    """Three runs that rank by relevance with more and more noise; topics of unequal size."""
    rng = np.random.default_rng(seed)
    names = [f"t{number:03}" for number in range(topics)]
    sizes = rng.integers(2, 13, size=topics)
    hardness = rng.beta(1.2, 2.0, size=topics)
    grades = [
        rng.binomial(3, share, size=size) for share, size in zip(hardness, sizes, strict=True)
    ]
    runs = {}
    for tag, noise in zip(RUNS, (0.3, 1.0, 3.0), strict=True):
        orders = [np.argsort(-(each + noise * rng.normal(size=len(each)))) for each in grades]
        docnos = np.array([f"d{d:02}".encode() for order in orders for d in order])
        runs[tag] = RankedLists(tuple(names), np.concatenate([[0], np.cumsum(sizes)]), docnos)
    pool = build_pool(names, runs, depth=12)
    grade = np.concatenate(grades)
    share = (0.15 + 0.4 * hardness[pool.topic] + 0.1 * grade)[:, None]
    binomial = np.array([math.comb(3, y) for y in range(4)])
    chances = binomial * share ** np.arange(4) * (1 - share) ** (3 - np.arange(4))
    model = GradeModel("predicted", chances, np.ones(len(pool), dtype=bool))
    return pool, grade, model


def variance_times_cost(q: np.ndarray, squares: np.ndarray, cost: np.ndarray) -> float:
    return float(np.sum(squares / q) * np.sum(cost * q))


@pytest.mark.parametrize("goal", [goals.single("beta"), goals.pair("alpha", "gamma")])
def test_no_other_distribution_has_a_smaller_error_for_its_cost(goal: Goal) -> None:
    pool, _, model = synthetic(30, seed=1)
    measure = parse_measure("ERR")
    options = {"goal": goal, "measure": measure, "model": model, "budget": 60, "floor": 0.0}
    told = goal_moments(pool, goal=goal, measure=measure, model=model)
    squares = told.squares("ratio", np.ones(30, dtype=bool))
    best = make_query_design(pool, **options)
    least = variance_times_cost(best.probability, squares, best.cost)
    rng = np.random.default_rng(4)
    for _ in range(200):
        other = best.probability * np.exp(0.1 * rng.normal(size=30))
        assert variance_times_cost(other / other.sum(), squares, best.cost) > least
    for rule in ("uniC", "uniform"):  # twins
        twin = make_query_design(pool, rule=rule, **options)
        assert variance_times_cost(twin.probability, squares, twin.cost) > least * 1.001


@pytest.mark.parametrize("goal", [goals.single("beta"), goals.absolute(*RUNS)])
@pytest.mark.parametrize("text", ["ERR", "DCG", "AP"])
def test_no_other_distribution_is_better_for_the_unnormalized_mean(text: str, goal: Goal) -> None:
    """Of which the square of the mean is taken away; twins: Theorem 1, and costs left out."""
    pool, _, model = synthetic(30, seed=1)
    measure, cost = parse_measure(text), np.linspace(1.0, 9.0, 30)
    options = {"goal": goal, "measure": measure, "model": model}
    told = goal_moments(pool, **options)
    every = np.ones(30, dtype=bool)
    squares = told.squares("unbiased", every)

    def error(q: np.ndarray) -> float:
        return (float(np.sum(squares / q)) / 30**2 - told.level(every)) * float(cost @ q)

    best = make_query_design(
        pool, costs=cost, budget=60, floor=0.0, estimator="unbiased", **options
    ).probability
    rng = np.random.default_rng(4)
    for _ in range(200):
        other = best * np.exp(0.1 * rng.normal(size=30))
        assert error(other / other.sum()) > error(best)
    for paid in (cost, np.ones(30)):
        twin = proportional(squares, paid, eligible=every, floor=0.0)
        assert error(twin) > error(best) * 1.001


def test_names_have_no_influence(pool: Pool, ranked: Lists) -> None:
    """The same lists under other tags, in another order, and with other topic names."""
    renamed = build_pool(
        ["d", "c", "b", "a"],
        {
            "z": ranked({"d": "abc", "c": "xy"}),
            "y": ranked({"c": "yzx", "d": "cbda"}),
            "x": ranked({"b": "m", "d": "eb", "c": "xy"}),
        },
        depth=4,
    )
    for kind in ("ERR", "DCG@3"):
        found = [
            make_query_design(
                each,
                goal=goal,
                measure=parse_measure(kind),
                model=uniform_grades(each, max_grade=2),
                budget=9,
            ).probability
            for each, goal in [(pool, goals.ranking(*RUNS)), (renamed, goals.ranking(*"zyx"))]
        ]
        assert found[1][::-1] == pytest.approx(found[0], **EXACT)
        assert found[1] != pytest.approx(found[0], rel=1e-3)


def test_costs_are_the_documents_of_the_compared_runs(pool: Pool, model: GradeModel) -> None:
    assert labeling_costs(pool, runs=["alpha", "beta"], depth=2).tolist() == [3, 3, 0, 0]
    assert labeling_costs(pool, runs=RUNS, depth=4).tolist() == [5, 3, 1, 0]
    design = make_query_design(
        pool,
        goal=goals.pair("alpha", "beta"),
        measure=parse_measure("ERR@2"),
        model=model,
        budget=7,
        reported=["gamma"],
    )
    assert design.runs == RUNS
    assert design.cost.tolist() == [4, 3, 1, 0]
    assert design.probability[3] == 0.0
    assert design.probability[:3].min() >= 0.1 / 3
    assert design.probability.sum() == pytest.approx(1.0, **EXACT)
    assert design.planned_draws() == pytest.approx(7 / (design.cost @ design.probability))


def test_designs_refuse_what_cannot_be_drawn(pool: Pool, model: GradeModel) -> None:
    def design(**changed: object) -> QueryDesign:
        options = {
            "goal": goals.single("alpha"),
            "measure": parse_measure("ERR"),
            "model": model,
            "budget": 5,
        }
        return make_query_design(pool, **(options | changed))

    for changed, said in [
        ({"budget": 4}, "must be at least 5, to pay for the two"),
        ({"budget": math.inf}, "budget"),
        ({"batch_budget": 7}, "batch_budget"),
        ({"batch_budget": 3}, "two most expensive topics, 't1' and 't2'"),
        ({"costs": [1, 0, 1, 1]}, "cost of topic 't2'"),
        ({"costs": [1, math.nan, 1, 1]}, "cost of topic 't2'"),
        ({"costs": [1, 1]}, "4 numbers"),
        ({"rule": "best"}, "rule"),
        ({"estimator": "best"}, "estimator"),
        ({"depth": 3}, "depth must be a whole number of at least 4, not 3"),
        ({"reported": ["gamma"], "floor": 0.0, "estimator": "unbiased", "budget": 9}, "'t3' would"),
    ]:
        with pytest.raises(QueryError, match=said):
            design(**changed)
    with pytest.raises(ValueError, match="floor"):
        design(floor=1.5)
    same = build_pool(pool.topics, dict.fromkeys(["a", "b"], lists_of(pool)), depth=2)
    with pytest.raises(QueryError, match="no topic tells anything"):
        make_query_design(
            same,
            goal=goals.pair("a", "b"),
            measure=parse_measure("ERR"),
            model=uniform_grades(same, max_grade=2),
            budget=6,
        )


def lists_of(pool: Pool) -> RankedLists:
    docnos = np.array([b"a", b"b", b"c", b"d"])
    return RankedLists(pool.topics[:2], np.array([0, 2, 4]), docnos)


# --------------------------------------------------------------------------------------- draws


def drawn_topics(design: QueryDesign, sample: QuerySample, batches: int) -> np.ndarray:
    draws = sample.draws[sample.draw_batch <= batches]
    assert np.array_equal(np.unique(draws), sample.topic[sample.batch <= batches])
    return draws


def test_a_batch_stops_before_the_draw_that_would_exceed_its_budget() -> None:
    pool, _, model = synthetic(40, seed=2)
    options = {
        "goal": goals.absolute(*RUNS),
        "measure": parse_measure("ERR"),
        "model": model,
        "costs": np.linspace(0.5, 3.0, 40),
    }
    design = make_query_design(pool, budget=30, batch_budget=7, **options)
    assert design.steps.tolist() == [7, 14, 21, 28, 30]
    sample = draw_queries(pool, design, seed="s")
    large = draw_queries(pool, make_query_design(pool, budget=60, **options), seed="s")
    for batch, step in enumerate(design.steps, start=1):
        draws = drawn_topics(design, sample, batch)
        spent = design.cost[np.unique(draws)].sum()
        assert spent <= step
        following = large.draws[len(draws)]
        assert following not in draws
        assert spent + design.cost[following] > step
        alone = make_query_design(pool, budget=float(step), **options)
        assert np.array_equal(draw_queries(pool, alone, seed="s").draws, draws)
        assert np.array_equal(large.draws[: len(draws)], draws)
    assert len(sample.draws) > len(sample.topic)  # some topic was drawn again
    again = draw_queries(pool, design, seed="s")
    assert np.array_equal(again.draws, sample.draws)
    assert not np.array_equal(draw_queries(pool, design, seed="t").draws, sample.draws)
    with pytest.raises(QueryError, match="another pool"):
        draw_queries(synthetic(40, seed=3)[0], design, seed="s")


def test_designs_and_samples_are_stored_bit_by_bit(pool: Pool, model: GradeModel) -> None:
    goal, measure = goals.baseline("beta", against="alpha"), parse_measure("ERR@2")
    design = make_query_design(pool, goal=goal, measure=measure, model=model, budget=6, floor=0.3)
    sample = draw_queries(pool, design, seed="s")
    for stored in (design, sample):
        file = io.BytesIO()
        stored.save(file)
        file.seek(0)
        loaded = type(stored).load(file)
        for name, value in vars(stored).items():
            assert np.array_equal(getattr(loaded, name), value), name
    assert isinstance(design.goal, Goal)


def test_a_budget_for_everything_is_a_census() -> None:
    pool, grades, model = synthetic(12, seed=5)
    measure = parse_measure("ERR")
    goal = goals.absolute(*RUNS)
    total = labeling_costs(pool, runs=RUNS, depth=12).sum()
    design = make_query_design(
        pool, goal=goal, measure=measure, model=model, budget=total, batch_budget=40
    )
    assert design.is_census
    assert design.steps[-2] < total <= design.steps[-1]
    sample = draw_queries(pool, design, seed="s")
    labels = LabelRows(np.arange(len(pool)), grades)
    found = evaluate(
        pool, TopicRound(design, sample), labels=labels, measures=[measure], max_grade=3
    )
    truth = judged_topics(pool, labels=labels, measure=measure, max_grade=3).value.mean(axis=0)
    assert found.results[0].estimate.value == pytest.approx(truth, **EXACT)
    assert found.results[0].estimate.se.tolist() == [0, 0, 0]
    assert (found.judged_pairs, found.draws) == (len(pool), None) == (total, None)
    part = evaluate(
        pool, TopicRound(design, sample), labels=labels, measures=[measure], max_grade=3, batches=1
    )
    first = sample.topic[sample.batch == 1]
    assert part.judged_pairs == design.cost[first].sum() <= 40
    assert part.results[0].estimate.se.min() > 0.0
    assert len(first) < 12


# ----------------------------------------------------------------------------------- estimates

REPEATS = bounded(400, 800)
WIDER = math.sqrt(800 / REPEATS)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["ratio", "unbiased"])
def test_standard_errors_and_intervals_keep_their_word(estimator: str) -> None:
    """Differences between two runs, in seeded campaigns; the twin takes every topic as equal."""
    pool, grades, model = synthetic(150, seed=6)
    measure = parse_measure("ERR")
    labels = LabelRows(np.arange(len(pool)), grades)
    truth = judged_topics(pool, labels=labels, measure=measure, max_grade=3).value.mean(axis=0)
    design = make_query_design(
        pool,
        goal=goals.absolute(*RUNS),
        measure=measure,
        model=model,
        budget=300,
        estimator=estimator,
    )
    found = []
    for seed in range(REPEATS):
        sample = draw_queries(pool, design, seed=f"coverage-{seed}")
        options = {"labels": labels, "measures": [measure], "max_grade": 3}
        found.append(evaluate(pool, TopicRound(design, sample), **options).results[0].estimate)
    values = np.array([each.value for each in found])
    tolerance = 4.0 * values.std(axis=0) / math.sqrt(REPEATS)
    assert np.all(np.abs(values.mean(axis=0) - truth) < tolerance + (estimator == "ratio") * 0.002)
    spread = np.cov(values.T)
    told = np.mean([each.covariance for each in found], axis=0)
    assert told / spread == pytest.approx(np.ones((3, 3)), abs=0.15 * WIDER)
    inside = [(each.low <= truth) & (truth <= each.high) for each in found]
    assert np.all(np.abs(np.mean(inside, axis=0) - 0.96) < 0.025 * WIDER)
    narrow = [np.abs(each.value - truth) <= 1.4 * each.se for each in found]
    assert np.abs(np.mean(narrow, axis=0) - 0.96).min() > 0.06 * WIDER  # twin: intervals too short


# ------------------------------------------------------------------------------ values of topics


def test_values_are_those_of_the_formulas() -> None:
    pool, grades, _ = synthetic(20, seed=7)
    labels = LabelRows(np.arange(len(pool)), grades)
    for text in ("DCG@5", "RBP(p=0.7)", "P(rel=2)@3"):
        measure = parse_measure(text)
        values = judged_topics(pool, labels=labels, measure=measure, max_grade=3).value
        truth = true_values(pool, grades=grades, measure=measure)
        assert values.mean(axis=0) == pytest.approx(truth, **EXACT)
    err = judged_topics(pool, labels=labels, measure=parse_measure("ERR@2"), max_grade=3).value
    kept = (pool.run == 0) & (pool.topic[pool.entry_pair] == 4)
    y = grades[pool.entry_pair[kept]][np.argsort(pool.rank[kept])]
    g = (2.0 ** y[:2] - 1) / 8
    assert err[4, 0] == pytest.approx(g[0] + (1 - g[0]) * g[1] / 2, **EXACT)
    some = judged_topics(
        pool,
        labels=labels,
        measure=parse_measure("ERR@2"),
        max_grade=3,
        topics=np.array([7, 4]),
        runs=["gamma", "alpha"],
    ).value
    assert np.array_equal(some, err[[7, 4]][:, [2, 0]])


def test_several_judgments_count_by_the_mean_of_their_gains(pool: Pool) -> None:
    pair = np.array([0, 0, 0, 1, 2])
    grade = np.array([0, 2, 2, 1, 0])
    options = {"max_grade": 2, "topics": np.array([0]), "runs": ["alpha"]}
    g = [(0 + 0.75 + 0.75) / 3, 0.25]
    for order in ([0, 1, 2, 3, 4], [4, 2, 3, 1, 0]):
        found = judged_topics(
            pool,
            labels=LabelRows(pair[order], grade[order]),
            measure=parse_measure("ERR@3"),
            **options,
        ).value
        assert found[0, 0] == pytest.approx(g[0] + (1 - g[0]) * g[1] / 2, **EXACT)


def test_missing_and_impossible_judgments_are_named(pool: Pool) -> None:
    measure = parse_measure("ERR")
    for pair, grade, said in [
        ([0, 2], [0, 0], "topic 't1', docno 'b' has no judgment"),
        ([0, 99], [0, 0], "pair must lie between"),
        ([0, 1], [0, 3], "grade must lie between 0 and 2"),
        ([0, 1], [0, -1], "grade must lie between 0 and 2"),
    ]:
        rows = LabelRows(np.array(pair), np.array(grade))
        with pytest.raises(QueryError, match=said):
            judged_topics(pool, labels=rows, measure=measure, max_grade=2, runs=["alpha"])
    with pytest.raises(QueryError, match="topics"):
        judged_topics(pool, labels=rows, measure=measure, max_grade=2, topics=np.array([4]))


def test_estimates_are_shares_of_all_topics(pool: Pool, model: GradeModel) -> None:
    """Three of four topics can be drawn; the fourth is known to be worth nothing."""
    measure = parse_measure("ERR")
    design = make_query_design(
        pool, goal=goals.ranking(*RUNS), measure=measure, model=model, budget=8
    )
    sample = draw_queries(pool, design, seed="s")
    labels = LabelRows(np.arange(len(pool)), np.arange(len(pool)) % 3)
    values = judged_topics(pool, labels=labels, measure=measure, max_grade=2).value[sample.draws]
    weight = 1.0 / (3.0 * design.probability[sample.draws])[:, None]
    n, options = len(values), {"labels": labels, "measures": [measure], "max_grade": 2}
    assert len(np.unique(sample.draws)) == 2 < n
    found = evaluate(pool, TopicRound(design, sample), **options).results[0].estimate
    value = np.sum(weight * values, axis=0) / np.sum(weight)
    residual = weight * (values - value)
    variance = n / (n - 1) * np.sum(residual**2, axis=0) / np.sum(weight) ** 2
    assert found.value == pytest.approx(0.75 * value, **EXACT)
    assert np.diag(found.covariance) == pytest.approx(0.75**2 * variance, **EXACT)
    terms = weight * values
    unbiased = replace(design, estimator="unbiased")
    plain = evaluate(pool, TopicRound(unbiased, sample), **options)
    assert plain.results[0].estimate.value == pytest.approx(0.75 * terms.mean(axis=0), **EXACT)
    squares = 0.75**2 * terms.var(axis=0, ddof=1) / n
    assert np.diag(plain.results[0].estimate.covariance) == pytest.approx(squares, **EXACT)
    assert plain.results[0].effective_sample_size == pytest.approx(
        weight.sum() ** 2 / np.sum(weight**2)
    )
    assert plain.draws == n
    assert plain.judged_pairs == design.cost[np.unique(sample.draws)].sum()


def test_topics_without_documents_and_runs_without_gain(pool: Pool, model: GradeModel) -> None:
    """Topic t4 is a quarter of every mean; a run of zeros has an interval all the same."""
    measure = parse_measure("ERR")
    design = make_query_design(
        pool, goal=goals.absolute(*RUNS), measure=measure, model=model, budget=9
    )
    sample = draw_queries(pool, design, seed="s")
    grades = np.where(pool.docno == b"e", 2, 0)
    rows = LabelRows(np.arange(len(pool)), grades)
    options = {"labels": rows, "max_grade": 2}
    found = (
        evaluate(pool, TopicRound(design, sample), measures=[measure], **options)
        .results[0]
        .estimate
    )
    assert found.value == pytest.approx([0, 0, 0.75 / 4], **EXACT)
    assert found.high[:2].tolist() == [0.0, 0.0]  # a census has no doubt
    small = make_query_design(
        pool, goal=goals.absolute(*RUNS), measure=measure, model=model, budget=8.5
    )
    assert not small.is_census
    drawn = draw_queries(pool, small, seed="s")
    none = LabelRows(np.arange(len(pool)), np.zeros(len(pool), dtype=np.int64))
    part = evaluate(pool, TopicRound(small, drawn), labels=none, measures=[measure], max_grade=2)
    assert part.results[0].estimate.value.tolist() == [0, 0, 0]
    high = part.results[0].estimate.high
    assert np.all((high > 0.0) & (high <= 0.75))
    goal, first = goals.single("alpha"), parse_measure("ERR@1")
    shallow = make_query_design(pool, goal=goal, measure=first, model=model, budget=2)
    top = draw_queries(pool, shallow, seed="s")
    with pytest.raises(QueryError, match="looks deeper"):
        evaluate(pool, TopicRound(shallow, top), measures=[measure], **options)
