"""Disagreement between assessors in rounds of whole topics, over draws and judgments.

Each statement comes with a broken twin that the same check must catch.
"""

import math
from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows, PairLabels
from estimation.core.data.pool import Pool, build_pool
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import EstimatorResult
from estimation.core.rounds.rounds import TopicRound
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.designs import QueryDesign
from estimation.core.rounds.topics.draws import QuerySample, draw_queries
from estimation.core.rounds.topics.estimators import (
    Disagreement,
    QueryEstimate,
    ratio_estimate,
    unbiased_estimate,
)
from estimation.core.rounds.topics.grade_models import uniform_grades
from estimation.core.rounds.topics.moments import err_slopes, err_values
from estimation.core.rounds.topics.values import judged_topics
from estimation.core.sampling import goals
from tests.core.length import bounded
from tests.core.ratio_pools import EXACT, RATIOS, grades_of, three_runs

LINEAR = [parse_measure(text) for text in ("P@2", "DCG(dcg='exp-log2')@2", "RBP(p=0.6)")]
ERR = parse_measure("ERR@2")
RUNS = ("alpha", "beta")
CHANCES = (0.3, 0.6, 0.5, 0.8)  # of a judgment of each pair to be a 2, else it is a 1 or a 0
LABELS = (2, 3, 2, 2)


@pytest.fixture
def pool(ranked) -> Pool:
    runs = {
        "alpha": ranked({"t1": "ab", "t2": "x", "t3": "m"}),
        "beta": ranked({"t1": "ba", "t2": "x"}),
    }
    return build_pool(["t1", "t2", "t3"], runs, depth=2)


def design_of(pool: Pool, measure: Measure, **options: object) -> QueryDesign:
    settings = {
        "goal": goals.absolute(*pool.runs), "measure": measure, "budget": 3.0,
        "model": uniform_grades(pool, max_grade=3), "estimator": "unbiased", "floor": 0.5,
    }  # fmt: skip
    return make_query_design(pool, **(settings | options))


def judgments(numbers: tuple[int, ...] = LABELS) -> Iterator[tuple[float, LabelRows]]:
    """Every outcome of the judgments of the four pairs, each a 2 or a (pair % 2)."""
    for high in product(*(range(number + 1) for number in numbers)):
        chance, pairs, grades = 1.0, [], []
        for pair, (number, more) in enumerate(zip(numbers, high, strict=True)):
            p = CHANCES[pair]
            chance *= math.comb(number, more) * p**more * (1.0 - p) ** (number - more)
            pairs += [pair] * number
            grades += [2] * more + [pair % 2] * (number - more)
        yield chance, LabelRows(np.array(pairs), np.array(grades))


def samples(design: QueryDesign, draws: int) -> Iterator[tuple[float, QuerySample]]:
    for drawn in combinations_with_replacement(range(3), draws):
        counts = np.bincount(drawn).tolist()
        ways = math.factorial(draws) / math.prod(map(math.factorial, counts))
        topic, ones = np.unique(drawn), np.ones(draws, dtype=np.int32)
        digest = design.pool_digest
        sample = QuerySample(topic, ones[: len(topic)], np.array(drawn), ones, digest)
        yield ways * float(np.prod(design.probability[list(drawn)])), sample


def moments(
    found: Iterator[tuple[float, EstimatorResult]], exact: dict[str, float] = EXACT
) -> tuple[np.ndarray, ...]:
    """Mean value, covariance of the values, mean of the estimated covariance."""
    chance, value, told = map(
        np.array, zip(*((each, r.value, r.covariance) for each, r in found), strict=True)
    )
    assert chance.sum() == pytest.approx(1.0, **exact)
    mean = chance @ value
    square = np.einsum("s,sj,sl->jl", chance, value, value)
    return mean, square - np.multiply.outer(mean, mean), np.tensordot(chance, told, 1)


def true_values(pool: Pool, measure: Measure) -> np.ndarray:
    """Values from the expected utilities."""
    low, high = measure.utilities(np.arange(4) % 2), measure.utilities(np.full(4, 2))
    utility = np.array(CHANCES) * high + (1.0 - np.array(CHANCES)) * low
    return pool.weights(measure).T @ utility


# ------------------------------------------------------------------- over draws and judgments


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
@pytest.mark.parametrize("measure", LINEAR, ids=str)
def test_variances_are_unbiased_over_draws_and_judgments(pool: Pool, measure: Measure) -> None:
    """The twin takes the judgments as they are: short by the sum of p^2 N over all topics."""
    design = design_of(pool, measure)
    weight = 1.0 / (3.0 * design.probability)

    def every(noise: bool) -> Iterator[tuple[float, EstimatorResult | QueryEstimate]]:
        for likely, sample in samples(design, draws=3):
            for chance, labels in judgments():
                options = {"labels": labels, "measures": [measure], "max_grade": 2}
                if noise:
                    (found,) = evaluate(pool, TopicRound(design, sample), **options).results
                    assert found.label_noise_measured
                    found = found.estimate
                else:
                    topic, counts = np.unique(sample.draws, return_counts=True)
                    values = judged_topics(
                        pool, labels=labels, measure=measure, max_grade=2, topics=topic
                    ).value
                    found = unbiased_estimate(values, weight=weight[topic], counts=counts)
                yield likely * chance, found

    mean, covariance, told = moments(every(noise=True))
    assert mean == pytest.approx(true_values(pool, measure), **EXACT)
    assert told == pytest.approx(covariance, **EXACT)
    _, again, twin = moments(every(noise=False))
    assert again == pytest.approx(covariance, **EXACT)
    short = label_covariance(pool, measure, LABELS)
    assert twin + short == pytest.approx(covariance, **EXACT)
    assert np.diag(short).min() > 0.05 * np.diag(covariance).min()


def label_covariance(pool: Pool, measure: Measure, numbers: tuple[int, ...]) -> np.ndarray:
    """sum over pairs of w_ij w_il Var(u_i) / r_i."""
    low, high = measure.utilities(np.arange(4) % 2), measure.utilities(np.full(4, 2))
    chance, weights = np.array(CHANCES), pool.weights(measure).toarray()
    variance = chance * (1.0 - chance) * (high - low) ** 2 / np.array(numbers)
    return np.einsum("ij,i,il->jl", weights, variance, weights)


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
@pytest.mark.parametrize("measure", LINEAR, ids=str)
def test_a_census_has_the_variance_of_its_judgments(
    pool: Pool, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly, where pairs with two judgments stand for the others: these are like them.

    What one judgment lets one expect is nearly that (`test_core_expected_disagreement`).
    """
    monkeypatch.setattr(PairLabels, "with_expected", lambda labels: labels)
    design = design_of(pool, measure, budget=4.0)
    sample = draw_queries(pool, design, seed="s")
    assert design.is_census

    def evaluated(labels: LabelRows) -> EstimatorResult:
        options = {"labels": labels, "measures": [measure], "max_grade": 2}
        return evaluate(pool, TopicRound(design, sample), **options).results[0].estimate

    mean, covariance, told = moments((chance, evaluated(rows)) for chance, rows in judgments())
    assert mean == pytest.approx(true_values(pool, measure), **EXACT)
    assert told == pytest.approx(covariance, **EXACT)
    assert covariance == pytest.approx(label_covariance(pool, measure, LABELS), **EXACT)

    def half_twice() -> Iterator[tuple[float, LabelRows]]:
        """Which two pairs are judged twice is decided at random."""
        for twice in combinations(range(4), 2):
            numbers = tuple(1 + (pair in twice) for pair in range(4))
            for chance, rows in judgments(numbers):
                yield chance / 6.0, rows

    mean, covariance, told = moments((chance, evaluated(rows)) for chance, rows in half_twice())
    assert mean == pytest.approx(true_values(pool, measure), **EXACT)
    assert told == pytest.approx(covariance, **EXACT)
    once = label_covariance(pool, measure, (2, 2, 2, 2))
    assert np.abs(once - covariance).max() > 0.1 * np.abs(covariance).max()  # twin: all twice


@pytest.mark.slow
@pytest.mark.usefixtures("estimates_alone")
def test_err_is_unbiased_and_its_variance_not_too_small(pool: Pool) -> None:
    """Over every judgment in a census; the twin takes the gains for a sum over ranks."""
    design = design_of(pool, ERR, budget=4.0)
    sample = draw_queries(pool, design, seed="s")

    def evaluated(labels: LabelRows) -> EstimatorResult:
        options = {"labels": labels, "measures": [ERR], "max_grade": 2}
        return evaluate(pool, TopicRound(design, sample), **options).results[0].estimate

    mean, covariance, told = moments((chance, evaluated(rows)) for chance, rows in judgments())
    low, high = (2.0 ** (np.arange(4) % 2) - 1) / 4, 0.75
    a, b, x, m = np.array(CHANCES) * high + (1.0 - np.array(CHANCES)) * low
    expected = [a + (1 - a) * b / 2 + x + m, b + (1 - b) * a / 2 + x]
    assert mean == pytest.approx(np.array(expected) / 3, **EXACT)
    ratio = np.diag(told) / np.diag(covariance)
    assert np.all((ratio >= 1.0) & (ratio < 1.05))
    sums = label_covariance(pool, ERR, LABELS) / 4**2
    assert np.all(np.diag(sums) / np.diag(covariance) > 1.1)  # twin: no derivative


def test_slopes_of_err_are_its_derivatives() -> None:
    rng = np.random.default_rng(3)
    slots = np.array([[0, 1, 2, 3], [4, 5, -1, -1]])
    gain = np.append(rng.random(6), 0.0)
    found = err_slopes(slots, gain)
    for topic, rank in [(0, 0), (0, 1), (0, 3), (1, 0), (1, 1)]:
        ends = []
        for step in (1e-6, -1e-6):
            moved = gain.copy()
            moved[slots[topic, rank]] += step
            ends.append(err_values(slots, moved)[topic])
        assert found[topic, rank] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7)
    assert found[0, 3] != pytest.approx(0.25, rel=0.1)  # twin: as if nobody had stopped before


# ------------------------------------------------------------------------- draws to a budget

CHANCE = np.array([0.22, 0.26, 0.28, 0.24])
COST = np.array([2.0, 3.0, 3.0, 2.5])
BUDGET = 6.0  # for any two topics, for no three
VALUES = np.array([[1.0, 0.2], [0.3, 0.0], [0.1, 0.9], [0.7, 0.5]])
MOVES = np.array([[0.3, 0.1], [0.2, -0.4], [0.0, 0.5], [0.6, 0.2]])  # of a judgment of +1
WEIGHT = 1.0 / (4.0 * CHANCE)
TWO_JUDGMENTS = [(0.25, -1.0, 0.0), (0.5, 0.0, 1.0), (0.25, 1.0, 0.0)]  # chance, mean, s2 / 2


LONGEST = bounded(24, 48)
"""Draws that are enumerated; more of them have a chance of TAIL together."""
TAIL = 3.0 * 0.54**LONGEST


def to_the_budget(longest: int = LONGEST) -> Iterator[tuple[float, np.ndarray]]:
    """Counts of the draws before the first that cannot be paid, with their chance."""
    for topics in (pair for size in (1, 2) for pair in combinations(range(4), size)):
        paid = COST[list(topics)].sum()
        over = [t for t in range(4) if t not in topics and paid + COST[t] > BUDGET]
        for draws in range(1, longest):
            for first in [draws] if len(topics) == 1 else range(1, draws):
                counts = np.zeros(4, dtype=np.int64)
                counts[list(topics)] = (first, draws - first)[: len(topics)]
                ways = math.comb(draws, first)
                yield ways * float(np.prod(CHANCE**counts)) * CHANCE[over].sum(), counts


@pytest.mark.slow
def test_variances_are_unbiased_for_draws_to_a_budget() -> None:
    every: list[tuple[float, QueryEstimate]] = []
    for likely, counts in to_the_budget():
        hit = np.flatnonzero(counts)
        for outcome in product(TWO_JUDGMENTS, repeat=len(hit)) if likely > 0.0 else ():
            chance, mean, spread = np.array(outcome).T
            values = VALUES[hit] + mean[:, None] * MOVES[hit]
            rows = np.sqrt(spread)[:, None] * MOVES[hit]
            found = unbiased_estimate(
                values, weight=WEIGHT[hit], counts=counts[hit],
                disagreement=Disagreement(rows, np.arange(len(hit)), 0.25),
            )  # fmt: skip
            every.append((likely * float(np.prod(chance)), found))
    exact = {"rel": 1e-12 + 10.0 * TAIL, "abs": 1e-12 + 10.0 * TAIL}
    mean, covariance, told = moments(iter(every), exact)
    assert mean == pytest.approx(VALUES.mean(axis=0), **exact)
    assert told == pytest.approx(covariance, **exact)
    twin = told - np.einsum("xj,xl->jl", MOVES, MOVES) / 2.0 / 16.0  # judgments as they are
    assert np.all(np.diag(twin) < 0.93 * np.diag(covariance))


# ------------------------------------------------------------------------------------ seeded


@pytest.mark.slow
def test_self_normalized_variances_count_disagreement() -> None:
    """40 draws of 4 topics, so that all recur; without the term most of the variance is lost."""
    rng, repeats, draws = np.random.default_rng(5), 3000, 40
    values, told, twin = [], [], []
    for _ in range(repeats):
        counts = rng.multinomial(draws, CHANCE)
        hit = np.flatnonzero(counts)
        both = rng.choice([-1.0, 1.0], size=(2, len(hit)))
        judged = VALUES[hit] + both.mean(axis=0)[:, None] * MOVES[hit]
        rows = np.sqrt(both.var(axis=0, ddof=1) / 2.0)[:, None] * MOVES[hit]
        options = {"weight": 3.0 * WEIGHT[hit], "counts": counts[hit]}
        dispute = Disagreement(rows, np.arange(len(hit)), 0.25)
        found = ratio_estimate(judged, disagreement=dispute, **options)
        values.append(found.value)
        told.append(np.diag(found.covariance))
        twin.append(np.diag(ratio_estimate(judged, **options).covariance))
    spread = np.var(values, axis=0)
    assert np.mean(told, axis=0) / spread == pytest.approx(np.ones(2), abs=0.12)
    assert np.all(np.mean(twin, axis=0) / spread < 0.6)


@pytest.mark.slow
@pytest.mark.parametrize("measure", RATIOS, ids=str)
def test_ratios_of_a_census_have_the_variance_of_their_judgments(measure: Measure) -> None:
    """Two assessors who often disagree; the twin takes s2 for the variance of their mean."""
    pool, rng = three_runs(), np.random.default_rng(7)
    model = uniform_grades(pool, max_grade=3)
    design = make_query_design(
        pool, goal=goals.absolute(*pool.runs), measure=measure, model=model, budget=len(pool)
    )
    sample, true = draw_queries(pool, design, seed="s"), np.tile(grades_of(pool), 2)
    pair = np.tile(np.arange(len(pool)), 2)
    found = []
    for _ in range(300):
        other = rng.integers(0, 4, size=len(true))
        rows = LabelRows(pair, np.where(rng.random(len(true)) < 0.3, other, true))
        options = {"labels": rows, "measures": [measure], "max_grade": 3}
        results = evaluate(pool, TopicRound(design, sample), **options).results
        found += [each.estimate for each in results]
    values = np.array([each.value for each in found])
    told = np.mean([each.covariance for each in found], axis=0)
    spread = np.cov(values.T)
    ratio = np.diag(told) / np.diag(spread)
    assert ratio == pytest.approx(np.ones(3), abs=0.25)
    assert np.all(2.0 * ratio > 1.25)  # twin
    between = told[0, 0] + told[2, 2] - 2.0 * told[0, 2]
    limit = 0.4 if measure.name == "Rprec" else 0.2  # the list is cut where R is uncertain
    assert between / (values[:, 0] - values[:, 2]).var() == pytest.approx(1.0, abs=limit)
    assert 5.0 < np.mean([each.df for each in found]) < 19.0
    inside = np.abs(values - values.mean(axis=0)) <= [each.high - each.value for each in found]
    assert inside.mean() == pytest.approx(0.97, abs=0.02)


# ----------------------------------------------------------------------------------- what is said


@pytest.mark.parametrize("text", ["DCG", "ERR", "AP"])
def test_rounds_say_whether_disagreement_was_measured(pool: Pool, text: str) -> None:
    measure = parse_measure(text)
    design = design_of(pool, measure, budget=4.0)
    drawn = TopicRound(design, draw_queries(pool, design, seed="s"))
    grades = np.array([2, 0, 1, 1])
    once, twice = (
        LabelRows(np.arange(4), grades),
        LabelRows(np.append(np.arange(4), [1]), np.append(grades, [2])),
    )
    for labels, measured in [(once, False), (twice, True)]:
        (found,) = evaluate(pool, drawn, labels=labels, measures=[measure], max_grade=2).results
        assert found.label_noise_measured is measured
        assert bool(found.estimate.se[1] > 0.0) is measured
        assert bool(found.estimate.high[1] > found.estimate.value[1]) is measured
    outside = LabelRows(np.append(np.arange(4), [0, 0]), np.append(grades, [2, 2]))
    small = design_of(pool, measure)
    sample = QuerySample(
        np.array([1]), np.ones(1, np.int32), np.array([1, 1]), np.ones(2, np.int32), pool.digest
    )
    (found,) = evaluate(
        pool, TopicRound(small, sample), labels=outside, measures=[measure], max_grade=2
    ).results
    assert not found.label_noise_measured  # two judgments of a topic that was not drawn
