"""Ratio measures from samples: errors against simulation, planning, and true values."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.ratios import prior_slopes
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning.planning import expected_half_widths, half_width_curve
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import Prior, make_prior
from estimation.research.simulation import true_topic_values, true_values
from tests.core.length import bounded
from tests.core.ratio_pools import (
    AP,
    METHODS,
    RATIOS,
    TOPICS,
    design_for,
    grades_of,
    results,
    shuffled,
    three_runs,
)


@pytest.fixture
def pool() -> Pool:
    return three_runs()


# ---------------------------------------------------------------- variances, by simulation


def campaigns_of(pool: Pool, design: Design, judge, number: int) -> tuple[np.ndarray, ...]:
    """Values, variances and corrections of many campaigns, each (campaigns, measures, k)."""
    found = []
    for campaign in range(number):
        sample = draw(pool, design, seed=f"campaign {campaign}")
        labels = judge(sample.pair, np.random.default_rng(campaign))
        each = evaluate(
            pool, PairRound(design, sample), labels=labels, measures=RATIOS, max_grade=3
        ).results
        variances = [np.diag(result.estimate.covariance) for result in each]
        values = [result.estimate.value for result in each]
        found.append((values, variances, [result.ratio_bias for result in each]))
    return tuple(np.array(column) for column in zip(*found, strict=True))


@pytest.fixture(scope="module")
def rich() -> tuple[Pool, np.ndarray]:
    """Six topics with some 45 relevant documents each: ratios are nearly linear there."""
    topics = TOPICS[:6]
    runs = {tag: shuffled(seed, topics, 120) for seed, tag in enumerate("abc")}
    pool = build_pool(topics, runs, depth=80)
    grades = np.random.default_rng(5).choice([0, 1, 2, 3], len(pool), p=[0.5, 0.2, 0.2, 0.1])
    return pool, grades


def even_design(pool: Pool, method: str, budget: int) -> Design:
    goal = goals.absolute(*pool.runs)
    prior = make_prior(pool, name="constant", goal=goal, measure=AP, max_grade=3)
    return make_design(
        pool, goal=goal, measure=AP, prior=prior, budget=budget, batch_size=budget,
        method=method, floor=0.7, eps=0.3,
    )  # fmt: skip


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "budget"), [("poisson", 300), ("priority", 300), ("iid", 400), ("per-query", 400)]
)
def test_delta_method_variance_is_that_of_simulated_campaigns(rich, method, budget) -> None:
    """Mean estimated over simulated variance of the plain ratio, the mean over the runs.

    Over 200 campaigns a simulated variance of one run is uncertain by 10 %, over 120 by 13 %, and
    with so few documents the delta method is not exact. The twin leaves the factor 1 - pi out, as
    if every pair could come again.
    """
    pool, grades = rich
    design = even_design(pool, method, budget)
    values, variances, bias = campaigns_of(
        pool, design, lambda pairs, rng: LabelRows(pairs, grades[pairs]), bounded(120, 200)
    )
    ratio = (variances.mean(axis=0) / (values + bias).var(axis=0, ddof=1)).mean(axis=1)
    apart = bounded(0.35, 0.3)
    assert ratio == pytest.approx(np.ones(len(RATIOS)), abs=apart)
    inclusion = design.inclusion()
    certain = (inclusion**2).sum() / inclusion.sum()
    assert np.all(ratio / (1.0 - certain) > 1.0 + apart)


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
@pytest.mark.parametrize("fewest", [1, 2])
def test_disagreement_between_assessors_is_in_the_variance(rich, fewest: int) -> None:
    """A census with one or two judgments of each pair, or always two: noise alone.

    Rprec is left out where half of the pairs have one judgment: one wrong document more or less
    moves the rank at which it cuts, and the delta method overstates that (by 36 % here).
    """
    pool, _ = rich
    rng = np.random.default_rng(7)
    share = np.where(rng.random(len(pool)) < 0.6, rng.uniform(0.6, 1.0, len(pool)), 0.0)

    def judge(pairs: np.ndarray, rng: np.random.Generator) -> LabelRows:
        pair = np.repeat(pairs, rng.integers(fewest, 3, len(pairs)))
        grade = np.where(rng.random(len(pair)) < share[pair], rng.integers(1, 4, len(pair)), 0)
        return LabelRows(pair, grade)

    values, variances, bias = campaigns_of(
        pool, even_design(pool, "poisson", len(pool)), judge, bounded(150, 300)
    )
    assert np.all(bias[:, -1] == 0.0)
    kept = slice(None, 4 if fewest == 1 else None)
    ratio = (variances.mean(axis=0) / values.var(axis=0, ddof=1)).mean(axis=1)[kept]
    apart = bounded(0.25, 0.2)
    assert ratio == pytest.approx(np.ones(len(ratio)), abs=apart)
    assert np.all(1.5 * ratio > 1.0 + apart)
    assert np.all(0.6 * ratio < 1.0 - apart)


def test_one_judgment_each_says_that_no_noise_was_measured(pool: Pool) -> None:
    assert not any(found.label_noise_measured for found in results(pool, "poisson"))


SHOWN = [parse_measure(text) for text in ("AP", "nDCG", "Rprec")]
TREC8_CAMPAIGNS = bounded(16, 40)


@pytest.fixture(scope="module")
def trec8_campaigns(trec8) -> tuple[np.ndarray, np.ndarray]:
    """Campaigns of 20 000 of the 108 819 pairs: low, high, value, bias; and the truth."""
    pool = trec8.pool(depth=100)
    grades = trec8.grades(pool)
    goal = goals.absolute(*pool.runs)
    first = parse_measure("P@10")
    prior = make_prior(pool, name="rank", goal=goal, measure=first, max_grade=1)
    design = make_design(pool, goal=goal, measure=AP, prior=prior, budget=20_000, batch_size=20_000)
    found = []
    for number in range(TREC8_CAMPAIGNS):
        sample = draw(pool, design, seed=f"trec8 {number}")
        labels = LabelRows(sample.pair, grades[sample.pair])
        each = evaluate(
            pool, PairRound(design, sample), labels=labels, measures=SHOWN, max_grade=1
        ).results
        parts = [(r.estimate.low, r.estimate.high, r.estimate.value, r.ratio_bias) for r in each]
        found.append(parts)
    truth = [true_values(pool, grades=grades, measure=measure) for measure in SHOWN]
    return np.array(found), np.array(truth)


@pytest.mark.slow
def test_intervals_cover_on_trec8(trec8_campaigns) -> None:
    """At least 95 % but for 1.5 errors, and at most 99.5 %: the mean over 129 runs and campaigns.

    Of nDCG and Rprec, which allow for where they bend, 99.8 and 99.99 %.

    Runs share their judged pairs, so that their intervals are not independent: the binomial error
    of the campaigns, 5.4 points for 16, is the largest that the mean can have. The twins' intervals
    are .4 times as long (but for Rprec), or twice.
    """
    least = 0.95 - 1.5 * np.sqrt(0.95 * 0.05 / TREC8_CAMPAIGNS)
    found, truth = trec8_campaigns
    low, high = found[:, :, 0], found[:, :, 1]
    covered = ((low <= truth) & (truth <= high)).mean(axis=(0, 2))
    assert np.all((covered >= least) & (covered <= [0.995, 0.998, 0.9999])), covered
    center, margin = (low + high) / 2, (high - low) / 2
    short = (np.abs(center - truth) <= 0.4 * margin).mean(axis=(0, 2))
    long = (np.abs(center - truth) <= 2.0 * margin).mean(axis=(0, 2))
    assert np.all(short[:2] < least), "Rprec allows for its last rank, and holds more"
    assert np.all(long > 0.995)


@pytest.mark.slow
def test_the_correction_takes_most_of_the_bias_on_trec8(trec8_campaigns) -> None:
    found, truth = trec8_campaigns
    left = (found[:, :, 2].mean(axis=0) - truth).mean(axis=1)
    plain = ((found[:, :, 2] + found[:, :, 3]).mean(axis=0) - truth).mean(axis=1)
    assert np.all(plain > 0.001)
    assert np.all(np.abs(left) < 0.6 * plain)


# ----------------------------------------------------------------------------- planning


def dense_plan(pool: Pool, design: Design, prior: Prior, measure: Measure) -> np.ndarray:
    """The covariance of the linearized ratio, pair by pair and run by run."""
    best = float((prior.second_moment / prior.expected).max())
    slopes = prior_slopes(pool, measure, expected=prior.expected, best=best)
    moves = slopes.slope.toarray() - slopes.topic_slope[pool.topic]
    chance = design.inclusion()
    covariance = (moves * (prior.second_moment * (1 - chance) / chance)[:, None]).T @ moves
    if design.with_replacement:
        rows = pool.topic if design.method == "per-query" else np.zeros(len(pool), dtype=int)
        draws = design.step() * design.strata * design.size
        drawn = moves * (prior.expected * draws * (1 - chance) / chance)[:, None]
        for row in np.unique(rows):
            total = drawn[rows == row].sum(axis=0)
            covariance -= np.multiply.outer(total, total) / design.step()
    return covariance


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("measure", RATIOS, ids=str)
def test_planned_half_widths_are_those_of_the_linearized_ratio(pool, method, measure) -> None:
    design = design_for(pool, method)
    prior = make_prior(pool, name="rank", goal=design.goal, measure=measure, max_grade=3)
    covariance = dense_plan(pool, design, prior, measure)
    found = expected_half_widths(pool, design, measure=measure, prior=prior)
    quantile = 1.959963984540054
    assert found.half_width == pytest.approx(quantile * np.sqrt(np.diag(covariance)))
    difference = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert found.difference_half_width[0, 1] == pytest.approx(quantile * np.sqrt(difference))
    budget = design.draws() or design.budget
    curve = half_width_curve(pool, design, measure=measure, prior=prior, budgets=[budget])
    if method != "per-query":
        assert curve[0] == pytest.approx(found.half_width)


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "iid", "per-query"])
def test_planned_half_widths_come_true_when_the_prior_is_true(rich, method: str) -> None:
    """Simulated sd where relevance is drawn from the prior, the mean over runs and truths."""
    pool, _ = rich
    measures = [AP, parse_measure("nDCG"), parse_measure("nDCG@10")]
    design = even_design(pool, method, 300)
    expected = np.full(len(pool), 0.5)
    prior, spread = Prior("even", expected, expected), []
    for truth in range(bounded(4, 6)):
        grades = (np.random.default_rng(truth).random(len(pool)) < 0.5).astype(int)
        values = []
        for number in range(60):
            sample = draw(pool, design, seed=f"{truth} {number}")
            labels = LabelRows(sample.pair, grades[sample.pair])
            each = evaluate(
                pool, PairRound(design, sample), labels=labels, measures=measures, max_grade=1
            )
            values.append([r.estimate.value + r.ratio_bias for r in each.results])
        spread.append(np.var(values, axis=0, ddof=1))
    found = [expected_half_widths(pool, design, measure=m, prior=prior) for m in measures]
    planned = np.array([each.half_width for each in found]) / 1.959963984540054
    ratio = (np.sqrt(np.mean(spread, axis=0)) / planned).mean(axis=1)
    assert ratio == pytest.approx(np.ones(3), abs=0.15)


def test_a_run_out_of_reach_has_no_planned_half_width(pool: Pool) -> None:
    design = design_for(pool, "poisson")
    size = design.size.copy()
    size[5] = 0.0
    design = replace(design, size=size / size.sum())
    prior = make_prior(pool, name="rank", goal=design.goal, measure=AP, max_grade=1)
    found = expected_half_widths(pool, design, measure=AP, prior=prior)
    assert np.all(np.isinf(found.half_width))
    assert np.isinf(found.difference_half_width[0, 1])


@pytest.fixture
def scored() -> Pool:
    scores = np.random.default_rng(3).integers(0, 4, 60).astype(float)
    runs = {}
    for place, tag in enumerate(("a", "b")):
        docnos = np.array([f"d{n}".encode() for n in range(10)] * 3)
        given = scores[place * 30 : place * 30 + 30]
        runs[tag] = RankedLists(("t1", "t2", "t3"), np.arange(0, 31, 10), docnos, given)
    return build_pool(["t1", "t2", "t3"], runs, depth=10, scores=True)


@pytest.mark.parametrize("text", ["MAE", "MSE", "Accuracy"])
def test_predictions_are_planned_for_every_grade_alike(scored: Pool, text: str) -> None:
    measure, ones = parse_measure(text), np.ones(len(scored))
    prior = Prior("constant", ones, ones)
    design = make_design(
        scored, goal=goals.absolute("a", "b"), measure=measure, prior=prior, budget=9,
        batch_size=9, max_grade=3,
    )  # fmt: skip
    chance, predicted = design.inclusion(), np.zeros((len(scored), 2))
    predicted[scored.entry_pair, scored.run] = scored.score
    squares, products = np.zeros(2), 0.0
    for grade in range(4):
        utility = measure.entry_utilities(np.full(predicted.shape, grade), predicted) / 30
        squares += (utility**2 * ((1 - chance) / chance)[:, None]).sum(axis=0) / 4
        products += (np.diff(utility, axis=1)[:, 0] ** 2 * (1 - chance) / chance).sum() / 4
    found = expected_half_widths(scored, design, measure=measure, prior=prior, max_grade=3)
    assert found.half_width == pytest.approx(1.959963984540054 * np.sqrt(squares))
    expected = 1.959963984540054 * np.sqrt(products)
    assert found.difference_half_width[0, 1] == pytest.approx(expected)
    curve = half_width_curve(scored, design, measure=measure, prior=prior, budgets=[9], max_grade=3)
    assert curve[0] == pytest.approx(found.half_width)
    with pytest.raises(ValueError, match="max_grade"):
        expected_half_widths(scored, design, measure=measure, prior=prior)


# ----------------------------------------------------------------------------- true values


def test_true_values_of_predictions(scored: Pool) -> None:
    grades = np.arange(len(scored)) % 4
    found = true_topic_values(scored, grades=grades, measure=parse_measure("MAE"))
    for topic, run in product(range(3), range(2)):
        entries = np.flatnonzero((scored.topic[scored.entry_pair] == topic) & (scored.run == run))
        errors = np.abs(scored.score[entries] - grades[scored.entry_pair[entries]])
        assert found[topic, run] == pytest.approx(errors.mean())
    mean = true_values(scored, grades=grades, measure=parse_measure("MAE"))
    assert mean == pytest.approx(found.mean(axis=0))


def test_true_values_of_swaps() -> None:
    from estimation.core.data.preferences import preference_pool

    ranked = build_pool(
        ["t"], {"r": RankedLists(("t",), np.array([0, 3]), np.array([b"b", b"a", b"c"]))}, depth=3
    )
    pairs = preference_pool(ranked, depth=3)  # ab, ac, bc; the run has b before a
    for grades, swapped in (([2, 2, 2], 1), ([0, 2, 2], 0), ([0, 0, 1], 1), ([1, 1, 1], 0)):
        found = true_values(pairs, grades=np.array(grades), measure=parse_measure("#ofSwaps"))
        assert found == pytest.approx([swapped / 3])


def test_true_values_refuse_what_does_not_fit(pool: Pool) -> None:
    with pytest.raises(ValueError, match="one grade per pair"):
        true_topic_values(pool, grades=np.array([1]), measure=AP)
    with pytest.raises(MeasureError, match="ERR@5"):
        true_values(pool, grades=grades_of(pool), measure=parse_measure("ERR@5"))
