"""What a round foretells of its later batches, against what they brought."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.core.arrays import frozen
from estimation.core.data.labels import LabelRows
from estimation.core.data.scope import Scope
from estimation.core.inference.intervals import difference_variances
from estimation.core.inference.looked_at import Rows, looked_at
from estimation.core.measures.table import parse_measure
from estimation.core.planning import contenders, forecasts
from estimation.core.planning.ahead import After, ahead_of_pairs
from estimation.core.planning.contenders import Contenders, Horizon
from estimation.core.planning.critical import adjusted_p_values, critical_value
from estimation.core.planning.forecasts import forecast
from estimation.core.planning.foretold import Forecast, Foretold, Prospect, crossing
from estimation.core.planning.shrinkage import fit_spread
from estimation.core.planning.tabulated import Tabulated
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from tests.core.simulated_pools import simulated_pool

POOL, GRADES = simulated_pool()
MEASURE, BEST = parse_measure("DCG@30"), 3
FACTOR = 1.5


def design(method: str = "poisson", *, budget: int = 600, batch: int = 150) -> Design:
    about = {"goal": goals.ranking(*POOL.runs), "measure": MEASURE, "max_grade": BEST}
    prior = make_prior(POOL, name="rank", **about)
    return make_design(POOL, prior=prior, budget=budget, batch_size=batch, method=method, **about)


def looked(of: Design, seed: str, batches: int, grades: np.ndarray = GRADES):
    part = PairRound(of, draw(POOL, of, seed=seed))
    labels = LabelRows(part.sample.pair, grades[part.sample.pair])
    found = evaluate(
        POOL, part, labels=labels, measures=[MEASURE], max_grade=BEST, batches=batches
    ).results[0]
    return part, found


def told(of: Design, seed: str, batches: int = 1) -> Forecast:
    part, found = looked(of, seed, batches)
    about = {"batches": batches, "result": found, "max_grade": BEST}
    return forecast(Scope.of(POOL), part, **about)


def middle(found) -> float:
    return float(np.median(found.estimate.half_width))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "priority", "iid"])
def test_the_present_is_as_it_is_and_later_half_widths_come_as_foretold(method: str) -> None:
    planned = design(method)
    ratios, decided = [], []
    for seed in map(str, range(12)):
        found, later = looked(planned, seed, 1)[1], looked(planned, seed, planned.batches)[1]
        of_seed = told(planned, seed)
        end = next(each for each in of_seed.steps if each.batches == planned.batches)
        assert of_seed.steps[0].half_width == middle(found)
        assert of_seed.steps[0].decided == np.count_nonzero(found.ranking.verdicts == 1)
        ratios.append(end.half_width / middle(later))
        decided.append(end.decided - np.count_nonzero(later.ranking.verdicts == 1))
    assert 0.9 < np.median(ratios) < 1.15
    assert abs(np.mean(decided)) < 1.5, "of 15"


@pytest.mark.slow
def test_a_forecast_that_forgets_that_certain_pairs_need_no_weight_is_caught() -> None:
    """The broken twin: half widths that fall with the root of the budget alone."""
    planned, ratios = design(budget=1800, batch=450), []
    for seed in map(str, range(8)):
        early, late = (looked(planned, seed, batches)[1] for batches in (1, 4))
        ratios.append(middle(early) / 2.0 / middle(late))
    assert np.median(ratios) > 1.15


def test_of_many_differences_critical_values_go_with_how_many_are_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Against the step-down procedure of then; the twin compares as many as now, for good."""
    rng, runs, error = np.random.default_rng(8), 70, 0.05
    above, covariance = np.triu_indices(runs, 1), np.diag(rng.uniform(0.5, 2.0, runs))
    value = np.linspace(0.0, 12.0, runs) + np.sqrt(np.diag(covariance)) * rng.normal(size=runs)
    z = np.subtract.outer(value, value) / np.sqrt(difference_variances(covariance) + np.eye(runs))
    adjusted = np.ones((runs, runs))
    adjusted[above] = adjusted_p_values(z[above], covariance)
    later = [After(2, 400.0, covariance / 50.0)]
    width = np.ones(runs)
    present = forecasts._Present(
        judged=100.0,
        covariance=covariance,
        value=value,
        variance=np.diag(covariance),
        half_width=width,
        lopsided=width - 1.0,
        z=z[above],
        exact=1.0,
        slack=np.zeros_like(covariance),
    )
    found = present.critical_values(later, adjusted, error)[-1]
    monkeypatch.setattr(forecasts, "MOST_DIFFERENCES", len(z[above]))
    exact = replace(present).critical_values(later, adjusted, error)[-1]
    as_now = critical_value(z[above], adjusted[above], error)
    assert abs(found - exact) < 0.1 < as_now - exact


def test_with_everything_judged_nothing_is_open() -> None:
    steps = told(design(), "x").steps
    assert steps[-1].pairs == pytest.approx(design().reachable_pairs)
    assert steps[-1].half_width == pytest.approx(0.0, abs=1e-9)
    assert [each.pairs for each in steps] == sorted(each.pairs for each in steps)
    assert [each.half_width for each in steps] == sorted(
        (each.half_width for each in steps), reverse=True
    )


def test_draws_with_replacement_never_end_it() -> None:
    found = told(design("iid"), "x")
    assert found.until_half_width(found.steps[-1].half_width / 2.0) is None
    now = found.steps[0]
    assert found.steps[1].half_width < now.half_width


def test_what_is_foretold_does_not_depend_on_later_judgments() -> None:
    planned, other = design(), GRADES.copy()
    part, _ = looked(planned, "x", 1)
    late = part.sample.pair[part.sample.batch > 1]
    other[late] = BEST - other[late]
    changed = looked(planned, "x", 1, grades=other)
    about = {"batches": 1, "result": changed[1], "max_grade": BEST}
    assert forecast(Scope.of(POOL), changed[0], **about).steps == told(planned, "x").steps


def test_measures_without_an_expected_variance_have_no_forecast() -> None:
    part, found = looked(design(), "x", 1)
    other = replace(found, measure=parse_measure("ERR@30"))
    with pytest.raises(ValueError, match="no forecast for ERR@30"):
        forecast(Scope.of(POOL), part, batches=1, result=other, max_grade=BEST)


def test_the_first_crossing_counts_and_falls_between_points() -> None:
    assert crossing([(10.0, 0.0), (1000.0, 1.0)], 0.5) == pytest.approx(100.0)
    assert crossing([(10.0, 0.7), (1000.0, 1.0)], 0.5) == 10.0
    assert crossing([(10.0, 0.0), (20.0, 0.0)], 0.5) is None


def one(*steps: tuple[int | None, float, float, float]) -> Forecast:
    told = (Foretold(batch, pairs, 1.0, decided, best) for batch, pairs, decided, best in steps)
    return Forecast(1, 10, tuple(told))


def test_the_rule_in_words() -> None:
    decided = one((1, 100.0, 9.0, 1.0), (2, 200.0, 10.0, 1.0))
    assert decided.of_best() == decided.of_ranking() == Prospect("decided", 0.0)
    on = one((1, 100.0, 5.0, 0.0), (2, 400.0, 9.5, 1.0), (None, 800.0, 10.0, 1.0))
    assert on.of_best() == Prospect(
        "go on", *map(pytest.approx, (100.0, 100 * 4**0.1 - 100, 100 * 4**0.9 - 100, 1.0))
    )
    assert on.of_ranking().state == "go on"
    later = one((1, 100.0, 5.0, 0.0), (2, 400.0, 6.0, 0.0), (None, 1600.0, 8.0, 1.0))
    best = later.of_best()
    assert (best.state, best.more) == ("out of reach", pytest.approx(700.0))
    assert later.of_ranking() == Prospect("out of reach", None)
    assert Forecast.of_facts(later.facts()) == later


# ------------------------------------------------------------------------- what may really be so


@pytest.mark.parametrize("spread", [0.3, 1.0, 4.0])
def test_differences_regress_as_far_as_bayes_says(spread: float) -> None:
    """Against normal true differences, of which the posterior mean is known."""
    rng = np.random.default_rng(4)
    true = spread * rng.normal(size=4000)
    seen = true + rng.normal(size=4000)
    wanted = seen * spread**2 / (1.0 + spread**2)
    left = np.full(4000, 1e-9)
    found = fit_spread(seen).of(seen).expected(left) * np.sqrt(left)
    assert np.sqrt(np.mean((found - wanted) ** 2)) < 0.15 * max(spread, 1.0)
    assert np.mean((found - true) ** 2) < np.mean((seen - true) ** 2)


def test_verdicts_to_come_are_counted_right() -> None:
    """Nested observations with a quarter of the variance left: simulated against foretold."""
    rng = np.random.default_rng(5)
    true = 2.0 * rng.normal(size=20_000)
    later = true + 0.5 * rng.normal(size=20_000)
    seen = later + np.sqrt(0.75) * rng.normal(size=20_000)
    foretold = fit_spread(seen).of(seen).later(np.full(20_000, 0.25)).decided(3.0).mean()
    assert foretold == pytest.approx(np.mean(np.abs(later) > 1.5), abs=0.025)
    as_seen = np.mean(np.abs(seen) > 1.5)
    assert as_seen > foretold + 0.03, "taking what is seen for true promises more"


def chance(seen: np.ndarray, now: np.ndarray, *later: np.ndarray, critical: float = 3.0) -> float:
    steps = [Horizon(each, critical) for each in later]
    return float(Contenders.of(seen, now).decided(steps)[-1])


@pytest.mark.slow
def test_what_is_read_off_a_table_is_what_is_worked_out_for_each() -> None:
    """Of 8 000 differences; the twin takes the same share of the variance to be left of all."""
    rng = np.random.default_rng(10)
    z, left = 3.0 * rng.normal(size=8000), rng.uniform(0.02, 0.6, 8000)
    spread = fit_spread(z)
    exact, read = spread.of(z), Tabulated(z, spread)
    for share in (left, np.full(8000, 0.3), np.full(8000, 1e-12)):
        off = read.decided(share, 3.5) - exact.decided(share, 3.5)
        assert np.abs(off).max() < 0.03
        assert abs(off.mean()) < 0.002
    expected = exact.expected(left)
    assert read.expected(left) == pytest.approx(expected, rel=0.02, abs=0.05)
    twin = read.decided(np.full(8000, left.mean()), 3.5) - exact.decided(left, 3.5)
    assert np.abs(twin).max() > 0.1


@pytest.mark.slow
def test_the_best_of_equals_is_not_foretold_to_be_known() -> None:
    rng = np.random.default_rng(6)
    chances, lucky = [], []
    for _ in range(100):
        seen = rng.normal(size=12)
        chances.append(chance(seen, np.eye(12), np.eye(12) * 0.04))
        top = np.sort(seen)[::-1]
        lucky.append(top[0] - top[1] > 3.0 * np.sqrt(0.08))
    assert np.mean(lucky) > 0.1 > 2.0 * np.mean(chances), (
        "the twin that takes the leader's lead for true is caught"
    )


def test_a_clear_best_is_foretold_at_once_and_one_run_is_alone() -> None:
    seen = np.append(9.0, np.linspace(-1.0, 1.0, 11))
    assert chance(seen, 0.01 * np.eye(12), 0.005 * np.eye(12)) > 0.99
    assert chance(np.array([1.0]), np.eye(1), np.eye(1)) == 1.0
    assert not len(Contenders.of(seen, np.eye(12)).decided([]))


@pytest.mark.slow
def test_chances_are_right_when_true_values_are_as_taken() -> None:
    """Of trials with about the same foretold chance, so many had their best run decided."""
    rng = np.random.default_rng(7)
    foretold, came = [], []
    for _ in range(400):
        true = 2.0 * rng.normal(size=6)
        later = true + 0.3 * rng.normal(size=6)
        seen = later + np.sqrt(1.0 - 0.09) * rng.normal(size=6)
        foretold.append(chance(seen, np.eye(6), 0.09 * np.eye(6)))
        top = np.sort(later)[::-1]
        came.append(top[0] - top[1] > 3.0 * np.sqrt(0.18))
    assert np.mean(foretold) == pytest.approx(np.mean(came), abs=0.08)
    likely = np.array(foretold) > 0.5
    assert np.mean(np.array(came)[likely]) > np.mean(np.array(came)[~likely]) + 0.25


FALLING = 0.75 ** np.arange(13)  # what is left of variances at later looks


def played(rng: np.random.Generator, spread: float) -> tuple[np.ndarray, int]:
    """What is seen of ten runs that differ by so much, and the look at which the best is known."""
    value = spread * rng.normal(size=10)
    estimates = [value + np.sqrt(FALLING[-1]) * rng.normal(size=10)]
    for less in -np.diff(FALLING)[::-1]:
        estimates.append(estimates[-1] + np.sqrt(less) * rng.normal(size=10))
    top = [np.sort(each)[::-1] for each in reversed(estimates)]
    needed = 3.0 * np.sqrt(2.0 * FALLING)
    apart = [each[0] - each[1] > wanted for each, wanted in zip(top, needed, strict=True)]
    return estimates[-1], apart.index(True) if True in apart else len(FALLING)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.5, 1.5])
def test_when_the_best_is_known_is_foretold_with_a_range_that_holds(
    spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin takes what was observed for true, but for its error: it says too early."""
    rng = np.random.default_rng(11)
    steps = [Horizon(left * np.eye(10), 3.0) for left in FALLING[1:]]
    trials = [trial for trial in (played(rng, spread) for _ in range(200)) if trial[1]]

    def sooner() -> np.ndarray:
        """The share of futures that end sooner than it came, and of those that end by then."""
        found = [Contenders.of(seen, np.eye(10)).decided(steps) for seen, _ in trials]
        ends = np.array([[0.0, *chances, 1.0] for chances in found])
        at, look = np.arange(len(trials)), np.array([look for _, look in trials])
        return np.stack([ends[at, look - 1], ends[at, look]])

    before, by = sooner()
    assert 0.75 < np.mean((by >= 0.1) & (before <= 0.9)) < 0.97
    assert 0.36 < np.mean((before + by) / 2.0) < 0.54
    monkeypatch.setattr(contenders, "_prior", lambda *_: (0.0, 1e12))
    monkeypatch.setattr(contenders, "_widths", lambda _, number: np.full(number, 1e6))
    assert np.mean(sooner()) > np.mean([before, by]) + 0.1


def test_a_near_copy_of_the_leader_keeps_the_best_run_open() -> None:
    """The two differ by what their errors say, not by as much as others; beliefs differ."""
    seen = np.append([3.0, 2.95], np.linspace(1.0, -3.0, 8))
    now = np.eye(10)
    now[0, 1] = now[1, 0] = 0.98
    copies = chance(seen, now, 0.05 * now)
    assert copies < 0.4
    assert copies < chance(seen, np.eye(10), 0.05 * np.eye(10))


def test_what_was_decided_at_some_look_stays_so_and_more_looks_decide_more() -> None:
    seen = np.linspace(2.0, -2.0, 8)
    steps = [Horizon(left * np.eye(8), 3.0) for left in (0.5, 0.2, 0.1, 0.02)]
    found = Contenders.of(seen, np.eye(8))
    chances = found.decided(steps)
    assert np.all(np.diff(chances) >= 0.0)
    assert chances[-1] > found.decided(steps[-1:])[0]
    assert np.array_equal(chances, Contenders.of(seen, np.eye(8)).decided(steps))


def test_nothing_else_changes_with_the_budget() -> None:
    """The forecast rests on the first batch: a round with more batches after it says the same."""
    short, long = design(budget=300), design(budget=600)
    ends = {}
    for planned in (short, long):
        same = replace(planned, steps=frozen(planned.steps[:2]))
        ends[planned.budget] = told(same, "x").steps[1]
    assert ends[300].half_width == pytest.approx(ends[600].half_width)


# ------------------------------------------------------------------------------- degenerate rounds


def tiny(runs: dict[str, list[str]], *, budget: int, grades: list[int]) -> Forecast:
    from estimation.core.data.pool import build_pool
    from estimation.core.data.ranked_lists import RankedLists

    of_runs = {
        tag: RankedLists(("t",), np.array([0, len(docnos)]), np.array([d.encode() for d in docnos]))
        for tag, docnos in runs.items()
    }
    pool, measure = build_pool(("t",), of_runs, depth=3), parse_measure("P@3")
    about = {"goal": goals.absolute(*pool.runs), "measure": measure, "max_grade": 1}
    planned = make_design(
        pool, prior=make_prior(pool, name="rank", **about), budget=budget, batch_size=2, **about
    )
    part = PairRound(planned, draw(pool, planned, seed="x"))
    labels = LabelRows(part.sample.pair, np.array(grades)[part.sample.pair])
    found = evaluate(pool, part, labels=labels, measures=[measure], max_grade=1, batches=1)
    more = {"batches": 1, "result": found.results[0], "max_grade": 1}
    return forecast(Scope.of(pool), part, **more)


@pytest.mark.parametrize("grades", [[0, 0, 0, 0, 0], [1, 1, 1, 1, 1]])
@pytest.mark.parametrize("budget", [2, 4, 5])
def test_one_run_equal_runs_and_rounds_that_find_nothing_or_all(
    grades: list[int], budget: int
) -> None:
    alone = tiny({"a": ["1", "2", "3", "4", "5"]}, budget=min(budget, 3), grades=grades)
    assert alone.differences == 0
    assert alone.of_ranking().state == "decided"
    equal = tiny({"a": ["1", "2", "3"], "b": ["1", "2", "3"]}, budget=min(budget, 3), grades=grades)
    assert equal.until_best() is None
    assert equal.of_best().state == "out of reach"
    other = tiny({"a": ["1", "2", "3"], "b": ["3", "4", "5"]}, budget=budget, grades=grades)
    told_steps = [list(vars(each).values())[1:5] for each in other.steps]
    assert np.all(np.isfinite(np.array(told_steps, dtype=float)))


def test_disagreement_between_assessors_stays_when_everything_is_judged() -> None:
    """Two labels a pair, of which one in five is another grade: half widths do not fall to 0."""
    planned = design()
    part = PairRound(planned, draw(POOL, planned, seed="x"))
    rng, pair = np.random.default_rng(9), part.sample.pair
    other = np.where(rng.random(len(pair)) < 0.2, rng.integers(0, 4, len(pair)), GRADES[pair])
    labels = LabelRows(np.tile(pair, 2), np.concatenate([GRADES[pair], other]))
    found = evaluate(POOL, part, labels=labels, measures=[MEASURE], max_grade=BEST, batches=2)
    about = {"batches": 2, "result": found.results[0], "max_grade": BEST}
    steps = forecast(Scope.of(POOL), part, **about).steps
    assert 0.02 * steps[0].half_width < steps[-1].half_width < steps[0].half_width / 2.0


def test_what_may_have_been_missed_by_now_is_taken_from_the_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the bit what it would be if it were added up again, where assessors disagree as well."""
    planned = design()
    part = PairRound(planned, draw(POOL, planned, seed="disagreement")).prefix(POOL, 2)
    pairs = part.pairs(POOL)
    again = np.concatenate([pairs, pairs[::7]])
    other = np.concatenate([GRADES[pairs], np.minimum(GRADES[pairs[::7]] + 1, BEST)])
    labels = LabelRows(again, other)
    about = {"labels": labels, "measures": [MEASURE], "max_grade": BEST}
    found = evaluate(POOL, part, **about).results[0]
    rows = looked_at(POOL, part.drawn(POOL.topic), MEASURE)
    anew = rows.gram(found.outlook.moments(MEASURE, rows.pair)[1])
    assert np.array_equal(found.estimate.expected_of_sample, anew)
    assert np.all(np.diag(found.estimate.expected - anew) > 0.0), "disagreement"
    monkeypatch.delattr(Rows, "gram")
    ahead = ahead_of_pairs(Scope.of(POOL), part, 2, found)
    assert np.allclose(ahead.covariance, found.estimate.expected, rtol=1e-12)
