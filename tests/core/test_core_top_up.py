"""Top-ups: exact over all samples of tiny rounds, and as good as a budget allows."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.data.scope import place_of_pairs
from estimation.core.library import growing
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning.planning import expected_half_widths, half_width_curve
from estimation.core.planning.prospects import reached_by_budget
from estimation.core.rounds.combining import (
    CombiningError,
    RoundsTogether,
    part_over,
    union_of,
)
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design, DesignError
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import Prior, make_prior
from estimation.core.sampling.samples import Sample
from estimation.core.sampling.top_up import TopUp, beside, filling_constants, top_up
from estimation.research.simulation import true_values
from tests.core.simulated_pools import simulated_pool
from tests.core.test_core_combining import (
    DCG,
    EXACT,
    GRADES,
    design_of,
    draws_of,
    moments,
    poisson_of,
)
from tests.core.test_core_union_pools import grades_in, larger

__all__ = ["larger"]
Outcomes = Iterator[tuple[float, np.ndarray, np.ndarray]]


def absolute(pool: Pool, budget: float, *, batch_size: float | None = None, **options) -> Design:
    goal = goals.absolute(*pool.runs)
    return make_design(
        pool, goal=goal, measure=measure_of(pool), prior=prior_of(pool), budget=budget,
        batch_size=batch_size or budget, **options,
    )  # fmt: skip


def measure_of(pool: Pool) -> Measure:
    return DCG if pool.depth == 2 else parse_measure("DCG@20")


def prior_of(pool: Pool) -> Prior:
    goal = goals.absolute(*pool.runs)
    return make_prior(pool, name="rank", goal=goal, measure=measure_of(pool), max_grade=3)


def so_far(smaller: Pool, pool: Pool, first: Design) -> np.ndarray:
    chance = np.zeros(len(pool))
    chance[place_of_pairs(smaller, pool)] = first.inclusion()
    return chance


def estimated(pool: Pool, drawn, grades: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    pairs = drawn.pairs(pool)
    labels = LabelRows(pairs, grades[pairs])
    found = evaluate(pool, drawn, labels=labels, measures=[DCG], max_grade=3).results[0].estimate
    return found.value, found.covariance


# --------------------------------------------------------------- together with Poisson rounds


def union(smaller: Pool, pool: Pool) -> Outcomes:
    first = design_of(smaller, "poisson", "alpha")
    second = top_up(absolute(pool, 2), so_far(smaller, pool, first)).own(alone=False)
    grades = grades_in(pool, smaller)
    later = [(two, PairRound(second, b)) for two, b in poisson_of(second)]
    for one, a in poisson_of(first):
        part = part_over(PairRound(first, a), pool=smaller, joined=pool, like=second)
        for two, other in later:
            yield one * two, *estimated(pool, RoundsTogether((part, other)), grades)


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
def test_a_union_with_a_top_up_is_unbiased_with_its_covariance(
    tiny_pool: Pool, larger: Pool
) -> None:
    mean, covariance, told = moments(union(tiny_pool, larger))
    truth = true_values(larger, grades=grades_in(larger, tiny_pool), measure=DCG)
    assert mean == pytest.approx(truth, **EXACT)
    assert told == pytest.approx(covariance, **EXACT)


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
def test_twin_whose_chances_follow_from_what_was_drawn_is_caught(
    tiny_pool: Pool, larger: Pool
) -> None:
    """A union with rounds that decided where the later one looks has no such probabilities."""
    first = design_of(tiny_pool, "poisson", "alpha")
    grades, mean = grades_in(larger, tiny_pool), 0.0
    place = place_of_pairs(tiny_pool, larger)
    for one, a in poisson_of(first):
        judged = np.zeros(len(larger))
        judged[place[a.pair]] = 1.0
        second = top_up(absolute(larger, 2), judged).own(alone=False)
        part = part_over(PairRound(first, a), pool=tiny_pool, joined=larger, like=second)
        for two, b in poisson_of(second):
            value, _ = estimated(larger, RoundsTogether((part, PairRound(second, b))), grades)
            mean = mean + one * two * value
    truth = true_values(larger, grades=grades, measure=DCG)
    assert np.abs(mean / truth - 1).max() > 0.03


# ------------------------------------------------------------------- judged pairs for certain

Past = Callable[[Pool], Iterator[tuple[float, np.ndarray]]]


def by_poisson(pool: Pool) -> Iterator[tuple[float, np.ndarray]]:
    for chance, sample in poisson_of(design_of(pool, "poisson", "alpha")):
        yield chance, sample.pair


def by_draws(pool: Pool) -> Iterator[tuple[float, np.ndarray]]:
    for chance, sample in draws_of(design_of(pool, "iid", "alpha")):
        yield chance, sample.pair


def by_grades(pool: Pool) -> Iterator[tuple[float, np.ndarray]]:
    """One pair by chance, and after a relevant one all others of its topic, else one more."""
    for first in range(len(pool)):
        if GRADES[first] > 1:
            yield 1.0 / len(pool), np.flatnonzero(pool.topic == pool.topic[first])
            continue
        others = np.setdiff1d(np.arange(len(pool)), [first])
        for other in others.tolist():
            yield 1.0 / len(pool) / len(others), np.unique([first, other])


def given(smaller: Pool, pool: Pool, past: Past, *, wrong: bool = False) -> Outcomes:
    grades, place = grades_in(pool, smaller), place_of_pairs(smaller, pool)
    for one, found in past(smaller):
        judged = np.zeros(len(pool))
        judged[place[found]] = 1.0
        second = top_up(absolute(pool, 2), judged).own(alone=True)
        for two, b in list(poisson_of(second)):
            sample = without(b, place[found]) if wrong else b
            yield one * two, *estimated(pool, PairRound(second, sample), grades)


def without(sample: Sample, judged: np.ndarray) -> Sample:
    pair = np.setdiff1d(sample.pair, judged)
    return replace(sample, pair=pair, batch=np.ones(len(pair), dtype=np.int32))


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
@pytest.mark.parametrize("past", [by_poisson, by_draws, by_grades])
def test_judged_pairs_for_certain_are_unbiased_whatever_the_past(
    tiny_pool: Pool, larger: Pool, past: Past
) -> None:
    """Also with its covariance: given any past the expectation is the truth."""
    mean, covariance, told = moments(given(tiny_pool, larger, past))
    truth = true_values(larger, grades=grades_in(larger, tiny_pool), measure=DCG)
    assert mean == pytest.approx(truth, **EXACT)
    assert told == pytest.approx(covariance, **EXACT)


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
def test_twin_that_leaves_out_what_was_judged_is_caught(tiny_pool: Pool, larger: Pool) -> None:
    mean = moments(given(tiny_pool, larger, by_grades, wrong=True))[0]
    truth = true_values(larger, grades=grades_in(larger, tiny_pool), measure=DCG)
    assert np.abs(mean / truth - 1).max() > 0.1


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
def test_twin_that_weights_judged_pairs_by_their_new_chance_is_caught(
    tiny_pool: Pool, larger: Pool
) -> None:
    """As if they had come by the sizes of a round that knows nothing of the past."""
    grades, place, mean = grades_in(larger, tiny_pool), place_of_pairs(tiny_pool, larger), 0.0
    plain = absolute(larger, 2)
    for one, found in by_grades(tiny_pool):
        for two, b in list(poisson_of(plain)):
            pair = np.union1d(b.pair, place[found])
            sample = Sample(
                pair, np.ones(len(pair), dtype=np.int32), plain.inclusion()[pair],
                np.array([], dtype=np.int64), plain.pool_digest,
            )  # fmt: skip
            mean = mean + one * two * estimated(larger, PairRound(plain, sample), grades)[0]
    truth = true_values(larger, grades=grades, measure=DCG)
    assert np.abs(mean / truth - 1).max() > 0.1


# -------------------------------------------------------------------------------- what it buys


@pytest.fixture(scope="module")
def pool() -> Pool:
    return simulated_pool()[0]


def some_chances(pool: Pool, rng: np.random.Generator) -> np.ndarray:
    chance = absolute(pool, 150).inclusion() * rng.random(len(pool))
    chance[rng.random(len(pool)) < 0.3] = 0.0
    chance[rng.random(len(pool)) < 0.05] = 1.0
    return chance


@pytest.mark.parametrize("with_costs", [False, True])
def test_every_batch_is_paid_for_by_new_pairs(pool: Pool, with_costs: bool) -> None:
    rng = np.random.default_rng(3)
    costs = rng.random(len(pool)) + 0.5 if with_costs else None
    earlier, paid = some_chances(pool, rng), 1.0 if costs is None else costs
    plan = top_up(absolute(pool, 200, batch_size=60, costs=costs), earlier, costs=costs)
    own = plan.own(alone=True, costs=costs)
    for number, spent in enumerate([60, 120, 180, 200], start=1):
        new = plan.new_after(plan.step(number))
        assert np.sum(new * paid) == pytest.approx(spent, rel=1e-9)
        drawn = own.inclusion(number)
        assert np.sum((1 - earlier) * drawn * paid) == pytest.approx(spent, rel=1e-9)
    both = union_of([("a", earlier), ("b", own.inclusion())])
    assert both == pytest.approx(plan.inclusion(), rel=1e-9)
    assert np.all(own.inclusion(1)[earlier == 1.0] == 1.0)
    beside = plan.own(alone=False, costs=costs)
    assert np.all(beside.inclusion()[earlier == 1.0] == 0.0)
    rest = earlier < 1.0
    assert beside.inclusion(2)[rest] == pytest.approx(own.inclusion(2)[rest], rel=1e-12)
    assert np.all(np.diff(own.steps) > 0)


def test_nothing_buys_less_variance(pool: Pool) -> None:
    """Against other ways to spend as much: shifts between any two pairs, and the plain design."""
    rng = np.random.default_rng(4)
    earlier, plain = some_chances(pool, rng), absolute(pool, 200)
    plan = top_up(plain, earlier)
    best, weights = plan.inclusion(), plain.size**2
    movable = np.flatnonzero((plain.size > 0) & (earlier < 1))

    def variance(chance: np.ndarray) -> float:
        return float(np.sum(weights[movable] / chance[movable]))

    for _ in range(2000):
        one, other = rng.choice(movable, 2, replace=False)
        most = min(best[one] - earlier[one], 1.0 - best[other])
        shifted = best.copy()
        shifted[[one, other]] += np.array([-1.0, 1.0]) * most * rng.random()
        assert variance(shifted) >= variance(best) * (1 - 1e-12)
    spent = np.sum(best - earlier)
    chances = plain.inclusion()
    scale = spent / np.sum((1 - earlier) * chances)
    alike = union_of([("a", earlier), ("b", np.minimum(1.0, scale * chances))])
    assert variance(best) < 0.99 * variance(alike)


def test_with_nothing_before_it_is_the_plain_design(pool: Pool) -> None:
    plain = absolute(pool, 200, batch_size=60)
    plan = top_up(plain, np.zeros(len(pool)))
    assert plan.inclusion() == pytest.approx(plain.inclusion(), rel=1e-12)
    assert plan.own(alone=True).inclusion() == pytest.approx(plain.inclusion(), rel=1e-12)


def test_a_budget_for_all_that_is_left_takes_it(pool: Pool) -> None:
    earlier = some_chances(pool, np.random.default_rng(5))
    plain = absolute(pool, 200, batch_size=60)
    plan = top_up(replace(plain, budget=float(len(pool))), earlier)
    assert plan.is_census
    own = plan.own(alone=True)
    assert np.all(own.inclusion()[plain.size > 0] == 1.0)
    rest = (plain.size > 0) & (earlier < 1)
    first = own.inclusion(1)[rest]
    assert np.sum((1 - earlier[rest]) * first) == pytest.approx(60, rel=1e-9)
    assert np.corrcoef(first, plain.size[rest])[0, 1] > 0.9
    with pytest.raises(DesignError, match="judged already"):
        top_up(plain, np.where(plain.size > 0, 1.0, 0.0))


@pytest.mark.slow
def test_constants_spend_their_targets_whatever_the_sizes() -> None:
    rng = np.random.default_rng(1)
    for turn in range(500):
        number = int(rng.integers(2, 40))
        size = rng.exponential(size=number) ** 3 * (rng.random(number) < 0.9)
        earlier = rng.random(number) ** rng.integers(1, 5) * (rng.random(number) < 0.7)
        earlier[rng.random(number) < 0.1] = 1.0
        costs = None if turn % 2 else rng.random(number) + 0.1
        paid = np.ones(number) if costs is None else costs
        whole = float(np.sum((paid * (1 - earlier))[size > 0]))
        if whole <= 0:
            continue
        targets = whole * np.sort(rng.random(4))
        found = filling_constants(size, earlier=earlier, targets=targets, costs=costs)
        for kappa, target in zip(found, targets, strict=True):
            filled = np.where(size > 0, np.minimum(1, kappa * size), 0)
            spent = np.sum(paid * (np.maximum(earlier, filled) - earlier))
            assert spent == pytest.approx(target, abs=1e-11 * whole)
        assert np.isinf(
            filling_constants(size, earlier=earlier, targets=np.array([whole]), costs=costs)
        ).all()


def test_promises_are_those_of_the_union(pool: Pool) -> None:
    """Half widths follow from the union's probabilities; work counts new pairs alone."""
    earlier = some_chances(pool, np.random.default_rng(6))
    plan = top_up(absolute(pool, 200), earlier)
    prior, union = prior_of(pool), plan.inclusion()
    assert isinstance(plan, TopUp)
    twin = replace(absolute(pool, 200), size=union, steps=np.array([1.0]))
    found, expected = (
        expected_half_widths(pool, each, measure=measure_of(pool), prior=prior, max_grade=3)
        for each in (plan, twin)
    )
    assert found.half_width == pytest.approx(expected.half_width, rel=1e-9)
    alone = expected_half_widths(
        pool, plan.own(alone=True), measure=measure_of(pool), prior=prior, max_grade=3
    )
    assert np.all(found.half_width < alone.half_width)
    curve = half_width_curve(
        pool, plan, measure=measure_of(pool), prior=prior, budgets=[50, 200, 400], max_grade=3
    )
    assert curve[1] == pytest.approx(found.half_width, rel=1e-9)
    assert np.all(np.diff(curve, axis=0) <= 0)
    reached = reached_by_budget(pool, plan, measure=measure_of(pool), prior=prior, max_grade=3)
    assert reached.at(200.0).work == pytest.approx(200, rel=1e-6)


def test_promises_of_rounds_together_are_those_of_their_union(pool: Pool) -> None:
    earlier, plain = some_chances(pool, np.random.default_rng(8)), absolute(pool, 200)
    plan = beside(plain, earlier)
    union = union_of([("a", earlier), ("b", plain.inclusion())])
    assert plan.inclusion() == pytest.approx(union, rel=1e-12)
    assert plan.expected_pairs == pytest.approx(np.sum((1 - earlier) * plain.inclusion()))
    assert np.array_equal(plan.own(alone=False).inclusion(), plain.inclusion())
    widths = [
        expected_half_widths(
            pool, each, measure=measure_of(pool), prior=prior_of(pool), max_grade=3
        ).half_width
        for each in (top_up(replace(plain, budget=plan.expected_pairs), earlier), plan, plain)
    ]
    assert np.all(np.diff(np.mean(widths, axis=1)) > 0)


def test_what_cannot_be_topped_up_is_told(pool: Pool) -> None:
    earlier = np.zeros(len(pool))
    with pytest.raises(DesignError, match="Only rounds by adaptive, poisson add"):
        top_up(absolute(pool, 60, method="iid"), earlier)
    with pytest.raises(ValueError, match="a probability for every pair"):
        top_up(absolute(pool, 60), earlier[1:])
    for wrong in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="be a probability"):
            top_up(absolute(pool, 60), np.where(np.arange(len(pool)) == 3, wrong, 0.0))


def test_the_library_names_what_does_not_go_together(tiny_pool: Pool, larger: Pool) -> None:
    first = design_of(tiny_pool, "poisson", "alpha")
    drawn, plain = PairRound(first, draw(tiny_pool, first, seed="s")), absolute(larger, 2)
    for given in ({}, {"rounds": [drawn], "seeds": ["s"], "judged": [1]}):
        with pytest.raises(CombiningError, match="either rounds and their seeds, or judged"):
            growing.top_up(plain, **given)
    with pytest.raises(CombiningError, match=r"rounds\[0\] belongs to another pool"):
        growing.top_up(plain, rounds=[drawn], seeds=["s"])
    iid = design_of(larger, "iid", "alpha")
    other = PairRound(iid, draw(larger, iid, seed="s"))
    with pytest.raises(CombiningError, match=r"rounds\[0\] is by iid"):
        growing.top_up(plain, rounds=[other], seeds=["s"])
    with pytest.raises(ValueError, match="judged"):
        growing.top_up(plain, judged=[len(larger)])
    before = growing.carry_over(drawn, tiny_pool, larger=larger, like=plain)
    found = growing.top_up(plain, rounds=[before], seeds=["s"])
    expected = top_up(plain, so_far(tiny_pool, larger, first)).own(alone=False)
    assert np.array_equal(found.inclusion(), expected.inclusion())


def test_draws_of_a_top_up_hold_what_is_judged(pool: Pool) -> None:
    judged = (np.random.default_rng(7).random(len(pool)) < 0.1).astype(float)
    plan = top_up(absolute(pool, 100, batch_size=25), judged)
    sample = draw(pool, plan.own(alone=True), seed="new")
    first = sample.prefix(1)
    assert set(np.flatnonzero(judged).tolist()) <= set(first.tolist())
    assert 60 < len(sample.pair) - judged.sum() < 140
