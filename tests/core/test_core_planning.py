"""Previewed intervals end at what values can be."""

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning.planning import expected_half_widths, half_width_curve, largest_values
from estimation.core.planning.topic_planning import expected_query_half_widths
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.grade_models import uniform_grades
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values

TOPICS = ("t0", "t1", "t2", "t3")
MAX_GRADE = 3
MEASURES = ("AP@50", "nDCG@10", "Rprec", "P@10", "DCG@10", "RBP(p=0.8)", "Mean(max=3)")


def lists(seed: int, *, topics: int = 4) -> RankedLists:
    rng = np.random.default_rng(seed)
    docnos = [b"d%d" % n for _ in range(topics) for n in rng.permutation(30)[:20]]
    grades = rng.integers(0, MAX_GRADE + 1, len(docnos)).astype(float)
    return RankedLists(TOPICS[:topics], np.arange(0, 20 * topics + 1, 20), np.array(docnos), grades)


def pool_for(measure: Measure) -> Pool:
    """A run of half of the topics is among the three."""
    runs = {"one": lists(1), "two": lists(2), "half": lists(3, topics=2)}
    if measure.family == "preference":
        return preference_pool(build_pool(TOPICS, runs, depth=5), depth=5)
    return build_pool(TOPICS, runs, depth=20, scores=measure.family == "prediction")


def asked(pool: Pool, measure: Measure) -> dict:
    by_run = measure.family in ("prediction", "preference")
    name, goal = "constant" if by_run else "rank", goals.absolute(*pool.runs)
    about = {"goal": goal, "measure": measure, "max_grade": MAX_GRADE}
    return about | {"prior": make_prior(pool, name=name, **about)}


def largest_of(pool: Pool, measure: Measure) -> np.ndarray:
    best = measure.max_utility(MAX_GRADE) if measure.family == "gain" else MAX_GRADE
    return largest_values(pool, measure, best=best)


@pytest.mark.parametrize("method", ["poisson", "priority", "iid", "per-query"])
@pytest.mark.parametrize("text", [*MEASURES, "MAE", "MSE", "Accuracy", "#ofSwaps", "wSwaps"])
def test_previewed_intervals_are_no_longer_than_values_can_be(text: str, method: str) -> None:
    measure = parse_measure(text)
    pool = pool_for(measure)
    about = asked(pool, measure)
    design = make_design(pool, budget=4, batch_size=4, method=method, eps=0.01, **about)
    about.pop("goal")
    found = expected_half_widths(pool, design, confidence=1 - 1e-9, **about)
    most = largest_of(pool, measure)
    assert found.half_width == pytest.approx(most / 2, rel=1e-12)
    between = np.add.outer(most, most) / 2
    assert np.all(found.difference_half_width <= between * (1 + 1e-12))
    curve = half_width_curve(pool, design, budgets=[4, 20], confidence=1 - 1e-9, **about)
    assert curve[0] == pytest.approx(most / 2, rel=1e-12)
    usual = expected_half_widths(pool, design, confidence=1e-3, **about)
    assert np.all(usual.half_width < most / 2)


@pytest.mark.parametrize("text", [*MEASURES, "MAE", "MSE", "Accuracy", "#ofSwaps", "wSwaps"])
def test_no_grades_give_more_than_the_largest_value(text: str) -> None:
    measure = parse_measure(text)
    pool = pool_for(measure)
    most, best = largest_of(pool, measure), 2 if pool.is_of_preferences else MAX_GRADE
    rng = np.random.default_rng(5)
    drawn = [rng.integers(0, best + 1, len(pool)) for _ in range(20)]
    whole = [np.full(len(pool), grade) for grade in range(best + 1)]
    for grades in (*drawn, *whole):
        assert np.all(true_values(pool, grades=grades, measure=measure) <= most * (1 + 1e-12))
    if measure.family == "gain":
        assert true_values(pool, grades=whole[-1], measure=measure) == pytest.approx(most)
    if measure.family in ("ratio", "preference"):
        assert np.all(most <= 1.0 + 1e-12)


@pytest.mark.parametrize("text", ["ERR@20", *MEASURES[:6]])
def test_of_whole_topics_as_well(text: str) -> None:
    measure = parse_measure(text)
    pool = pool_for(measure)
    model = uniform_grades(pool, max_grade=MAX_GRADE)
    design = make_query_design(
        pool, goal=goals.absolute(*pool.runs), measure=measure, model=model, budget=60,
        batch_budget=60, costs=np.full(4, 30.0), reported=pool.runs, estimator="unbiased",
    )  # fmt: skip
    ask = {"measure": measure, "model": model, "budgets": [1, 90]}
    found = expected_query_half_widths(pool, design, confidence=1 - 1e-9, **ask)
    most = largest_of(pool, measure)
    assert np.all(found <= most / 2 * (1 + 1e-12))
    assert found[0] == pytest.approx(most / 2)
