"""Moments of a topic's value under a grade model, against every label vector; grade models.

Each statement comes with a broken twin that the same check must catch.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import Measure, document_gains, parse_measure
from estimation.core.rounds.topics.grade_models import (
    GradeModel,
    GradeModelError,
    predicted_grades,
    uniform_grades,
)
from estimation.core.rounds.topics.moments import (
    goal_moments,
    value_moments,
)
from estimation.core.sampling import goals
from estimation.core.sampling.goals import Goal

EXACT = {"rel": 1e-12, "abs": 1e-12}
Lists = Callable[[dict[str, str]], RankedLists]
MEASURES = [
    "ERR",
    "ERR@2",
    "RR",
    "RR(rel=2)@2",
    "DCG",
    "DCG(dcg='exp-log2')@3",
    "DCG(dcg='exp-ln')",
    "P@2",
    "RBP(p=0.7)",
]
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


def list_value(pool: Pool, topic: int, tag: str, measure: Measure, gain: np.ndarray) -> float:
    """A value by the formulas' own loops, from the gain of every pair."""
    kept = (pool.run == pool.run_index(tag)) & (pool.topic[pool.entry_pair] == topic)
    total, going_on = 0.0, 1.0
    for entry in sorted(np.flatnonzero(kept), key=lambda each: pool.rank[each]):
        rank, g = int(pool.rank[entry]), gain[pool.entry_pair[entry]]
        if measure.cutoff is None or rank <= measure.cutoff:
            if measure.family == "query":
                total += going_on * g / rank
                going_on *= 1.0 - g
            else:
                total += measure.weights([rank])[0] * g
    return total


def label_vectors(pool: Pool, model: GradeModel, topic: int) -> Iterator[tuple[float, np.ndarray]]:
    """Every vector of grades of a topic, with its probability."""
    pairs = np.flatnonzero(pool.topic == topic)
    for grades in product(range(model.max_grade + 1), repeat=len(pairs)):
        vector = np.zeros(len(pool), dtype=np.int64)
        vector[pairs] = grades
        yield float(np.prod(model.probability[pairs, list(grades)])), vector


class Enumeration:
    """The values of all runs under every label vector of every topic."""

    def __init__(self, pool: Pool, model: GradeModel, measure: Measure) -> None:
        gains = document_gains(measure, max_grade=model.max_grade)
        self.topics = []
        for t in range(len(pool.topics)):
            chances, vectors = zip(*label_vectors(pool, model, t), strict=True)
            values = [
                [list_value(pool, t, tag, measure, gains[grades]) for tag in pool.runs]
                for grades in vectors
            ]
            self.topics.append((np.array(chances), np.array(values)))

    def mean(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Expectation, topic by topic, of a function of values (vectors, runs)."""
        return np.array([np.sum(chances * function(values)) for chances, values in self.topics])


# ------------------------------------------------------------------------------------- moments


@pytest.mark.slow
@pytest.mark.parametrize("text", MEASURES)
def test_moments_are_those_of_all_label_vectors(pool: Pool, model: GradeModel, text: str) -> None:
    measure = parse_measure(text)
    every = Enumeration(pool, model, measure)
    for j, tag in enumerate(pool.runs):
        found = value_moments(pool, runs=[tag], measure=measure, model=model)
        mean = every.mean(lambda values, j=j: values[:, j])
        second = every.mean(lambda values, j=j: values[:, j] ** 2)
        assert found.mean[:, 0] == pytest.approx(mean, **EXACT)
        assert found.second[:, 0] == pytest.approx(second, **EXACT)
        assert found.variance[:, 0] == pytest.approx(second - mean**2, **EXACT)
        assert found.mean[3, 0] == 0.0
        assert found.mean[:, 0] ** 2 != pytest.approx(second, rel=1e-3)  # twin: no spread


@pytest.mark.slow
@pytest.mark.parametrize("text", MEASURES)
def test_differences_of_two_runs_are_those_of_all_label_vectors(
    pool: Pool, model: GradeModel, text: str
) -> None:
    """And so their product, 2 ab = a^2 + b^2 - (a - b)^2; the twin takes runs as independent."""
    measure = parse_measure(text)
    every = Enumeration(pool, model, measure)
    for a, b in permutations(range(3), 2):
        runs = [pool.runs[a], pool.runs[b]]
        found = goal_moments(pool, goal=goals.pair(*runs), measure=measure, model=model)
        single = value_moments(pool, runs=runs, measure=measure, model=model)
        difference = every.mean(lambda values, a=a, b=b: values[:, a] - values[:, b])
        square = every.mean(lambda values, a=a, b=b: (values[:, a] - values[:, b]) ** 2)
        assert found.mean[:, 0] == pytest.approx(difference, **EXACT)
        assert found.variance == pytest.approx(square - difference**2, **EXACT)
        independent = single.variance.sum(axis=1)
        assert independent != pytest.approx(square - difference**2, rel=1e-6)


@pytest.mark.parametrize("certain", [{0: 1}, {0: 2, 2: 0}, {1: 1, 4: 2}])
@pytest.mark.parametrize("text", ["RR", "RR@2", "ERR"])
def test_documents_that_are_relevant_for_certain_end_what_is_expected(
    pool: Pool, model: GradeModel, text: str, certain: dict[int, int]
) -> None:
    """Under RR nobody goes on from them: E(1 - g) is 0, by which nothing can be divided."""
    chance = model.probability.copy()
    for pair, grade in certain.items():
        chance[pair] = np.eye(3)[grade]
    believed, measure = replace(model, probability=chance), parse_measure(text)
    every = Enumeration(pool, believed, measure)
    for a, b in permutations(range(3), 2):
        runs = [pool.runs[a], pool.runs[b]]
        found = goal_moments(pool, goal=goals.pair(*runs), measure=measure, model=believed)
        difference = every.mean(lambda values, a=a, b=b: values[:, a] - values[:, b])
        square = every.mean(lambda values, a=a, b=b: (values[:, a] - values[:, b]) ** 2)
        assert found.mean[:, 0] == pytest.approx(difference, **EXACT)
        assert found.variance == pytest.approx(square - difference**2, **EXACT)


GOALS: dict[str, tuple[Goal, Callable[..., np.ndarray]]] = {
    "single": (goals.single("beta"), lambda a, b, c: b**2),
    "absolute": (goals.absolute(*RUNS), lambda a, b, c: a**2 + b**2 + c**2),
    "pair": (goals.pair("alpha", "gamma"), lambda a, b, c: (a - c) ** 2),
    "baseline": (
        goals.baseline("gamma", "alpha", against="beta"),
        lambda a, b, c: (a - b) ** 2 + (c - b) ** 2,
    ),
    "ranking": (
        goals.ranking(*RUNS),
        lambda a, b, c: ((a - b) ** 2 + (a - c) ** 2 + (b - c) ** 2) / 3,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", GOALS)
@pytest.mark.parametrize("text", ["ERR", "RR", "DCG@3"])
def test_goals_expect_the_squares_of_all_label_vectors(
    pool: Pool, model: GradeModel, kind: str, text: str
) -> None:
    goal, square = GOALS[kind]
    measure = parse_measure(text)
    means = value_moments(pool, runs=RUNS, measure=measure, model=model).mean.T
    every = Enumeration(pool, model, measure)
    everything = np.ones(4, dtype=bool)
    for estimator, center in [("unbiased", np.zeros(3)), ("ratio", means.mean(axis=1))]:
        truth = every.mean(lambda values, c=center: square(*(values - c).T))
        told = goal_moments(pool, goal=goal, measure=measure, model=model)
        found = told.squares(estimator, everything)
        assert found == pytest.approx(truth, **EXACT)
        twin = square(*(means - center[:, None]))
        assert twin != pytest.approx(truth, rel=1e-3)  # twin: expectations without their variance


# --------------------------------------------------------------------------------- grade models


def test_predictions_fill_the_model_and_the_rest_is_uniform(pool: Pool) -> None:
    rows = np.array([[0.5, 0.3, 0.2], [0, 0, 1]])
    found = predicted_grades(pool, pairs=np.array([5, 0]), probability=rows, max_grade=2)
    assert found.probability[[5, 0]].tolist() == rows.tolist()
    assert found.probability.sum(axis=1) == pytest.approx(np.ones(len(pool)), **EXACT)
    assert found.probability[1] == pytest.approx(np.full(3, 1 / 3), **EXACT)
    assert np.flatnonzero(found.predicted).tolist() == [0, 5]
    none = np.array([], dtype=np.int64)
    nothing = predicted_grades(pool, pairs=none, probability=np.empty((0, 3)), max_grade=2)
    flat = uniform_grades(pool, max_grade=2)
    assert nothing.probability == pytest.approx(flat.probability, **EXACT)
    assert flat.max_grade == 2


@pytest.mark.parametrize(
    "row", [[0.5, 0.6, 0.0], [1.5, -0.5, 0.0], [math.nan, 0.5, 0.5], [math.inf, 0.5, 0.5]]
)
def test_bad_predictions_are_named(pool: Pool, row: list[float]) -> None:
    rows, said = np.array([[1.0, 0.0, 0.0], row]), "document 'b' of topic 't1' must be at least 0"
    with pytest.raises(GradeModelError, match=said):
        predicted_grades(pool, pairs=np.array([0, 1]), probability=rows, max_grade=2)


def test_models_that_do_not_fit_are_refused(pool: Pool, model: GradeModel) -> None:
    chances = model.probability.copy()
    chances[4, 0] += 1e-6
    for broken, said in [(chances, "document 'e'"), (chances[1:], "one row for each")]:
        wrong = GradeModel("predicted", broken, model.predicted)
        with pytest.raises(GradeModelError, match=said):
            value_moments(pool, runs=["beta"], measure=parse_measure("ERR"), model=wrong)
    with pytest.raises(GradeModelError, match=r"max_grade must be a whole number .*, not 0"):
        uniform_grades(pool, max_grade=0)
    with pytest.raises(MeasureError, match="No grade"):
        value_moments(pool, runs=["beta"], measure=parse_measure("P(rel=3)@2"), model=model)


def test_query_measures_are_read_and_written() -> None:
    assert [str(parse_measure(text)) for text in (" err@20", "ERR", "p@5")] == [
        "ERR@20",
        "ERR",
        "P@5",
    ]
    for text in ("ERR@0", "ERR(a=1)", "ERRR"):
        with pytest.raises(MeasureError):
            parse_measure(text)
