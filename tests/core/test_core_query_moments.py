"""Moments of a topic's value under a grade model, against every label vector; grade models.

Each statement comes with a broken twin that the same check must catch.
"""

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.topics.grade_models import (
    GradeModel,
    GradeModelError,
    document_gains,
    predicted_grades,
    uniform_grades,
)
from estimation.core.rounds.topics.moments import (
    difference_moments,
    expected_squares,
    product_moments,
    value_moments,
)
from estimation.core.sampling import goals
from estimation.core.sampling.goals import Goal

EXACT = {"rel": 1e-12, "abs": 1e-12}
Lists = Callable[[dict[str, str]], RankedLists]
MEASURES = [
    "ERR",
    "ERR@2",
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
            if str(measure).startswith("ERR"):
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


@pytest.mark.parametrize("text", MEASURES)
def test_moments_are_those_of_all_label_vectors(pool: Pool, model: GradeModel, text: str) -> None:
    measure = parse_measure(text)
    every = Enumeration(pool, model, measure)
    for j, tag in enumerate(pool.runs):
        found = value_moments(pool, run=tag, measure=measure, model=model)
        mean = every.mean(lambda values, j=j: values[:, j])
        second = every.mean(lambda values, j=j: values[:, j] ** 2)
        assert found.mean == pytest.approx(mean, **EXACT)
        assert found.second == pytest.approx(second, **EXACT)
        assert found.variance == pytest.approx(second - mean**2, **EXACT)
        assert found.mean[3] == 0.0
        assert found.mean**2 != pytest.approx(second, rel=1e-3)  # twin: no spread


@pytest.mark.parametrize("text", MEASURES)
def test_products_of_two_runs_are_those_of_all_label_vectors(
    pool: Pool, model: GradeModel, text: str
) -> None:
    measure = parse_measure(text)
    every = Enumeration(pool, model, measure)
    for a, b in product(range(3), repeat=2):
        runs = (pool.runs[a], pool.runs[b])
        found = product_moments(pool, runs=runs, measure=measure, model=model)
        truth = every.mean(lambda values, a=a, b=b: values[:, a] * values[:, b])
        assert found == pytest.approx(truth, **EXACT)
        means = [value_moments(pool, run=tag, measure=measure, model=model).mean for tag in runs]
        assert means[0] * means[1] != pytest.approx(truth, rel=1e-6)  # twin: independent runs
        difference = difference_moments(pool, runs=runs, measure=measure, model=model)
        square = every.mean(lambda values, a=a, b=b: (values[:, a] - values[:, b]) ** 2)
        assert difference.mean == pytest.approx(means[0] - means[1], **EXACT)
        assert difference.second == pytest.approx(square, **EXACT)
        assert difference.variance == pytest.approx(square - difference.mean**2, **EXACT)


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


@pytest.mark.parametrize("kind", GOALS)
@pytest.mark.parametrize("text", ["ERR", "DCG@3"])
def test_goals_expect_the_squares_of_all_label_vectors(
    pool: Pool, model: GradeModel, kind: str, text: str
) -> None:
    goal, square = GOALS[kind]
    measure = parse_measure(text)
    means = np.array(
        [value_moments(pool, run=tag, measure=measure, model=model).mean for tag in RUNS]
    )
    every = Enumeration(pool, model, measure)
    everything = np.ones(4, dtype=bool)
    for estimator, center in [("unbiased", np.zeros(3)), ("ratio", means.mean(axis=1))]:
        truth = every.mean(lambda values, c=center: square(*(values - c).T))
        found = expected_squares(
            pool, goal=goal, measure=measure, model=model, estimator=estimator, topics=everything
        )
        assert found == pytest.approx(truth, **EXACT)
        twin = square(*(means - center[:, None]))
        assert twin != pytest.approx(truth, rel=1e-3)  # twin: expectations without their variance


# --------------------------------------------------------------------------------- grade models


def test_predictions_fill_the_model_and_the_rest_is_uniform(pool: Pool) -> None:
    columns = {
        "topics": ["t2", "t1", "t9"],
        "docnos": ["x", "a", "a"],
        "probabilities": [[0.5, 0.3, 0.1999], [0, 0, 1], [1, 0, 0]],
    }
    found = predicted_grades(pool, **columns)
    keys = zip(pool.topic.tolist(), pool.docno.tolist(), strict=True)
    place = {(pool.topics[t], docno.decode()): pair for pair, (t, docno) in enumerate(keys)}
    assert found.probability[place["t1", "a"]].tolist() == [0, 0, 1]
    assert found.probability.sum(axis=1) == pytest.approx(np.ones(len(pool)), **EXACT)
    assert found.probability[place["t2", "y"]] == pytest.approx(np.full(3, 1 / 3), **EXACT)
    assert np.flatnonzero(found.predicted).tolist() == sorted([place["t1", "a"], place["t2", "x"]])
    shuffled = predicted_grades(pool, **{k: [v[i] for i in (2, 0, 1)] for k, v in columns.items()})
    assert np.array_equal(shuffled.probability, found.probability)
    nothing = predicted_grades(pool, topics=[], docnos=[], probabilities=np.empty((0, 3)))
    flat = uniform_grades(pool, max_grade=2)
    assert nothing.probability == pytest.approx(flat.probability, **EXACT)
    assert flat.max_grade == 2


@pytest.mark.parametrize(
    ("docno", "row", "said"),
    [
        ("b", [0.5, 0.6, 0.0], "'t1', docno 'b' must be at least 0 and sum to 1"),
        ("b", [1.5, -0.5, 0.0], "'b'"),
        ("b", [math.nan, 0.5, 0.5], "'b'"),
        ("b", [math.inf, 0.5, 0.5], "'b'"),
        ("a", [1.0, 0.0, 0.0], "topic 't1', docno 'a' has two predictions"),
    ],
)
def test_bad_predictions_are_named(pool: Pool, docno: str, row: list[float], said: str) -> None:
    rows = [[1.0, 0.0, 0.0], row]
    with pytest.raises(GradeModelError, match=said):
        predicted_grades(pool, topics=["t1", "t1"], docnos=["a", docno], probabilities=rows)


def test_models_that_do_not_fit_are_refused(pool: Pool, model: GradeModel) -> None:
    chances = model.probability.copy()
    chances[4, 0] += 1e-6
    for broken, said in [(chances, "docno 'e'"), (chances[1:], "one row for each")]:
        wrong = GradeModel("predicted", broken, model.predicted)
        with pytest.raises(GradeModelError, match=said):
            value_moments(pool, run="beta", measure=parse_measure("ERR"), model=wrong)
    with pytest.raises(GradeModelError, match=r"max_grade must be a whole number .*, not 0"):
        uniform_grades(pool, max_grade=0)
    with pytest.raises(MeasureError, match="No grade"):
        value_moments(pool, run="beta", measure=parse_measure("P(rel=3)@2"), model=model)


def test_query_measures_are_read_and_written() -> None:
    assert [str(parse_measure(text)) for text in (" err@20", "ERR", "p@5")] == [
        "ERR@20",
        "ERR",
        "P@5",
    ]
    for text in ("ERR@0", "ERR(a=1)", "ERRR"):
        with pytest.raises(MeasureError):
            parse_measure(text)
