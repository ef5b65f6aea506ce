"""Effective weights, sizes and thresholds by hand; what a design promises."""

import io
import math
from itertools import product

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import PoolError
from estimation.core.measures.table import parse_measure
from estimation.core.planning.planning import expected_half_widths, half_width_curve
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design, DesignError
from estimation.core.sampling.goals import Goal, GoalError, effective_weights
from estimation.core.sampling.priors import Prior, PriorError, make_prior
from estimation.core.sampling.probabilities import poisson_thresholds

DCG = parse_measure("DCG@2")
SECOND = 1 / math.log2(3)
RUNS = ("alpha", "beta", "gamma")


ALL = goals.absolute(*RUNS)


def design_of(pool: Pool, goal: Goal = ALL, **options) -> Design:
    measure = options.pop("measure", DCG)
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=1)
    smallest = 2 if options.get("method") == "iid" else 1
    settings = {"budget": 3, "batch_size": smallest} | options
    return make_design(pool, goal=goal, measure=measure, prior=prior, **settings)


# alpha: a b / x y; beta: b c / x; gamma: - / y x. Rows: a b c x y.
WEIGHTS = np.array(
    [[1, 0, 0], [SECOND, 1, 0], [0, SECOND, 0], [1, 1, SECOND], [SECOND, 0, 1]]
) / 3  # fmt: skip


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        (goals.single("alpha"), WEIGHTS[:, 0]),
        (goals.absolute(*RUNS), np.sqrt((WEIGHTS**2).sum(axis=1))),
        (goals.absolute("gamma", "alpha"), np.sqrt((WEIGHTS[:, [0, 2]] ** 2).sum(axis=1))),
        (goals.pair("alpha", "beta"), np.abs(WEIGHTS[:, 0] - WEIGHTS[:, 1])),
        (
            goals.baseline("alpha", "beta", against="gamma"),
            np.sqrt(((WEIGHTS[:, :2] - WEIGHTS[:, 2:]) ** 2).sum(axis=1)),
        ),
        (
            goals.ranking(*RUNS),
            np.sqrt(((WEIGHTS - WEIGHTS.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)),
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, Goal) else "",
)
def test_effective_weights_by_hand(tiny_pool: Pool, goal: Goal, expected) -> None:
    found = effective_weights(tiny_pool, goal, DCG)
    assert found == pytest.approx(expected, abs=1e-15)
    assert np.array_equal(found == 0.0, expected == 0.0)


def test_weights_in_a_race_by_hand(tiny_pool: Pool) -> None:
    goal = goals.winner(*RUNS)
    for leader, priority in ((0, [0, 3, 1]), (2, [1, 5, 0])):
        ahead = WEIGHTS[:, [leader]]
        expected = np.sqrt((np.array(priority) * (WEIGHTS - ahead) ** 2).sum(axis=1))
        race = goals.Race(leader, np.array(priority))
        found = effective_weights(tiny_pool, goal, DCG, race=race)
        assert found == pytest.approx(expected, abs=1e-15)
        assert np.array_equal(found == 0.0, expected == 0.0)


def test_nobody_is_ahead_before_the_race(tiny_pool: Pool) -> None:
    found = effective_weights(tiny_pool, goals.winner(*RUNS), DCG)
    assert found.tolist() == effective_weights(tiny_pool, goals.ranking(*RUNS), DCG).tolist()


def test_pairs_on_which_all_runs_agree_have_no_weight_for_a_ranking(ranked) -> None:
    runs = {
        tag: ranked({"t": "ab", "u": row}) for tag, row in [("r", "cd"), ("s", "dc"), ("t", "cd")]
    }
    pool = build_pool(list("tuvwxyz"), runs, depth=2)
    for goal in (goals.ranking(*"rst"), goals.baseline("r", "s", against="t")):
        found = effective_weights(pool, goal, parse_measure("RBP(p=0.7)"))
        assert (found > 0).tolist() == [False, False, True, True]
    race = goals.Race(0, np.array([0, 999_983, 17]))
    found = effective_weights(pool, goals.winner(*"rst"), parse_measure("RBP(p=0.7)"), race=race)
    assert (found > 0).tolist() == [False, False, True, True]


def test_rank_prior_is_the_mean_over_the_goals_runs(tiny_pool: Pool) -> None:
    goal = goals.absolute("alpha", "gamma")
    prior = make_prior(tiny_pool, name="rank", goal=goal, measure=DCG, max_grade=4)
    first, second, below = 16 / 35, 16 / 36, 16 / 37
    expected = [first / 2, second / 2, below / 2, (first + second) / 2, (first + second) / 2]
    assert prior.expected == pytest.approx(4 * np.array(expected))
    assert prior.second_moment == pytest.approx(4 * prior.expected)


def test_rank_prior_counts_the_baseline_among_the_runs(tiny_pool: Pool) -> None:
    goal = goals.baseline("alpha", against="beta")
    prior = make_prior(tiny_pool, name="rank", goal=goal, measure=DCG, max_grade=1)
    first, second, below = 16 / 35, 16 / 36, 16 / 37
    expected = np.array([first, first + second, second, 2 * first, second]) / 2
    assert prior.expected == pytest.approx(expected)
    alone = make_prior(tiny_pool, name="rank", goal=goals.single("gamma"), measure=DCG, max_grade=1)
    assert alone.expected == pytest.approx([below, below, below, second, first])


def test_constant_prior_expects_the_best_grade(tiny_pool: Pool) -> None:
    goal = goals.single("alpha")
    prior = make_prior(tiny_pool, name="constant", goal=goal, measure=DCG, max_grade=3)
    assert prior.expected.tolist() == [3.0] * 5
    assert prior.second_moment.tolist() == [9.0] * 5


def test_priors_that_do_not_exist_or_are_not_positive_are_refused(tiny_pool: Pool) -> None:
    with pytest.raises(PriorError, match="constant, rank"):
        make_prior(tiny_pool, name="x", goal=goals.single("alpha"), measure=DCG, max_grade=1)
    with pytest.raises(PriorError, match="positive"):
        Prior("mine", np.array([1.0, 0.0]), np.ones(2))


def test_iid_follows_the_papers_rule_with_eps_on_the_scale_of_the_discount(tiny_pool: Pool) -> None:
    design = design_of(tiny_pool, goals.single("alpha"), method="iid", eps=0.1)
    belief = np.array([16 / 35, 16 / 36, 16 / 37, 16 / 35, 16 / 36])
    size = WEIGHTS[:, 0] * belief + 0.1 / 3
    assert design.size == pytest.approx(size / size.sum())
    assert design.rule == "first"


def test_iid_without_eps_samples_the_goals_pairs_only(tiny_pool: Pool) -> None:
    design = design_of(tiny_pool, goals.single("beta"), method="iid")
    assert design.eligible.tolist() == [False, True, True, True, False]


def test_poisson_follows_the_second_moment_above_a_floor(tiny_pool: Pool) -> None:
    design = design_of(tiny_pool, goals.single("alpha"), floor=0.2)
    belief = np.sqrt([16 / 35, 16 / 36, 16 / 37, 16 / 35, 16 / 36])
    size = WEIGHTS[:, 0] * belief
    assert design.size == pytest.approx(0.8 * size / size.sum() + 0.2 / 5)
    assert design.rule == "second"


@pytest.mark.parametrize("costs", [None, np.array([1.0, 4.0, 1.0, 9.0, 1.0])])
def test_most_of_the_floor_serves_the_runs_that_the_goal_of_an_adaptive_round_leaves_out(
    tiny_pool: Pool, costs: np.ndarray | None
) -> None:
    goal, floor = goals.single("alpha"), 0.2
    design = design_of(tiny_pool, goal, method="adaptive", floor=floor, costs=costs)
    belief = np.sqrt([16 / 35, 16 / 36, 16 / 37, 16 / 35, 16 / 36])
    belief = belief if costs is None else belief / np.sqrt(costs)
    size, every = WEIGHTS[:, 0] * belief, np.sqrt((WEIGHTS**2).sum(axis=1)) * belief
    expected = 0.8 * size / size.sum() + 0.04 / 5 + 0.16 * every / every.sum()
    assert design.size == pytest.approx(expected)
    assert design.for_all_runs == pytest.approx(0.16)


def test_half_of_the_floor_for_ndcg_serves_values(tiny_pool: Pool) -> None:
    """Also if all are of the goal: below the cutoff documents count for ideal lists alone."""
    for_ndcg = {"method": "adaptive", "measure": parse_measure("nDCG@1")}
    values = design_of(tiny_pool, goals.absolute(*RUNS), floor=0.0, **for_ndcg).size
    for goal in (goals.absolute(*RUNS), goals.ranking(*RUNS)):
        design = design_of(tiny_pool, goal, floor=0.2, **for_ndcg)
        goal_alone = design_of(tiny_pool, goal, floor=0.0, **for_ndcg).size
        assert design.for_all_runs == pytest.approx(0.1)
        assert design.size == pytest.approx(0.8 * goal_alone + 0.1 / 5 + 0.1 * values)


@pytest.mark.parametrize(
    ("goal", "method"),
    [
        (goals.ranking(*RUNS), "adaptive"),
        (goals.baseline(*RUNS[1:], against="alpha"), "adaptive"),
        (goals.single("alpha"), "poisson"),
    ],
)
@pytest.mark.parametrize("measure", [DCG, parse_measure("nDCG@2"), parse_measure("nDCG")], ids=str)
def test_any_other_floor_is_even(tiny_pool: Pool, goal: Goal, method: str, measure) -> None:
    design = design_of(tiny_pool, goal, method=method, measure=measure, floor=0.2)
    assert design.for_all_runs == 0.0
    assert design.size.min() >= 0.2 / 5


def test_without_a_floor_only_pairs_of_the_goal_are_drawn(tiny_pool: Pool) -> None:
    design = design_of(tiny_pool, goals.single("beta"), method="adaptive", floor=0.0)
    assert design.for_all_runs == 0.0
    assert design.eligible.tolist() == [False, True, True, True, False]


def test_the_floor_of_a_design_of_an_earlier_version_is_even(tiny_pool: Pool) -> None:
    facts, arrays = design_of(tiny_pool, goals.single("alpha"), method="adaptive").stored()
    assert Design.restored(dict(facts), arrays).for_all_runs == pytest.approx(0.08)
    del facts["for_all_runs"]
    assert Design.restored(facts, arrays).for_all_runs == 0.0


def test_floor_reaches_reported_measures_but_not_pairs_without_weight(tiny_pool: Pool) -> None:
    first = parse_measure("P@1")
    alone = design_of(tiny_pool, measure=first)
    assert alone.eligible.tolist() == [True, True, False, True, True]
    with_reported = design_of(tiny_pool, measure=first, reported=[DCG])
    assert with_reported.eligible.all()


@pytest.mark.parametrize("target", [0.5, 1.0, 2.5, 3.0, 4.9])
def test_thresholds_solve_for_the_expected_number(target: float) -> None:
    size = np.array([0.5, 0.0, 0.2, 0.15, 0.1, 0.05])
    (found,) = poisson_thresholds(size, targets=np.array([target]))
    assert np.minimum(1.0, found * size).sum() == pytest.approx(target, abs=1e-12)


def test_thresholds_of_equal_sizes_and_of_everything() -> None:
    found = poisson_thresholds(np.full(4, 0.25), targets=np.array([1.0, 2.0, 4.0, 9.0]))
    assert found.tolist() == [1.0, 2.0, math.inf, math.inf]


def test_thresholds_survive_sizes_that_vanish_beside_others() -> None:
    size = np.array([1.0, 1.0, 1e-20, 1e-20])
    found = poisson_thresholds(size, targets=np.array([1.0, 2.0, 3.0]))
    expected = [np.minimum(1.0, c * size).sum() for c in found]
    assert expected == pytest.approx([1.0, 2.0, 3.0])


def test_batches_take_the_budget_in_steps(tiny_pool: Pool) -> None:
    design = design_of(tiny_pool, budget=4, batch_size=3)
    assert [design.inclusion(b).sum() for b in (1, 2)] == pytest.approx([3.0, 4.0])
    assert design_of(tiny_pool, method="iid", budget=7, batch_size=3).steps.tolist() == [3, 6, 7]
    assert design_of(tiny_pool, method="iid", budget=6, batch_size=3).steps.tolist() == [3, 6]


def test_a_budget_for_everything_is_a_census(tiny_pool: Pool) -> None:
    design = design_of(tiny_pool, budget=5, batch_size=2)
    assert design.is_census
    assert design.batches == 3
    assert design.inclusion().tolist() == [1.0] * 5
    assert design.inclusion(2).sum() == pytest.approx(4.0)
    for budget in (6, 10**6):
        with pytest.raises(DesignError, match=f"budget must be at most 5, .* not {budget}"):
            design_of(tiny_pool, budget=budget, batch_size=2)
    assert not design_of(tiny_pool, budget=4).is_census


def test_the_cost_of_everything_is_a_census_in_whatever_order_it_is_summed() -> None:
    rng = np.random.default_rng(1)
    for pairs in rng.integers(5, 3000, size=100).tolist():
        size, costs = rng.random(pairs), rng.random(pairs) * 3 + 0.1
        costs /= costs.mean()
        whole = float(costs.sum())
        found = poisson_thresholds(size, targets=np.array([0.999 * whole, whole]), costs=costs)
        assert np.isinf(found).tolist() == [False, True], pairs


def test_iid_inclusion_is_that_of_any_draw(tiny_pool: Pool) -> None:
    design = design_of(tiny_pool, method="iid", budget=3, batch_size=2)
    assert design.inclusion(1) == pytest.approx(1 - (1 - design.size) ** 2)
    assert design.inclusion() == pytest.approx(1 - (1 - design.size) ** 3)


def test_goals_that_leave_nothing_to_sample_are_refused(ranked) -> None:
    runs = {"r": ranked({"t": "ab"}), "s": ranked({"t": "ab"}), "e": ranked({"u": "a"})}
    pool = build_pool(["t"], runs, depth=2)
    with pytest.raises(DesignError, match="do not differ under DCG@2"):
        design_of(pool, goals.pair("r", "s"), budget=2)
    with pytest.raises(DesignError, match="no document of e has a weight"):
        design_of(pool, goals.single("e"), budget=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "at least 1"),
        ({"batch_size": 0}, "at least 1"),
        ({"batch_size": 1, "method": "iid"}, "at least 2 draws"),
        ({"budget": 1, "batch_size": 2, "method": "iid"}, "at least 2 draws"),
        ({"budget": 10**7, "method": "iid"}, "at most 100000 batches"),
        ({"floor": 1.5}, "floor must lie"),
        ({"eps": float("nan"), "method": "iid"}, "eps must be"),
        ({"method": "systematic"}, "The method is one of"),
        ({"rule": "third"}, "The rule is one of"),
    ],
)
def test_numbers_out_of_range_are_refused(tiny_pool: Pool, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        design_of(tiny_pool, **options)


@pytest.mark.parametrize(
    ("kind", "runs", "against"),
    [
        ("best", ("a",), None),
        ("single", ("a", "b"), None),
        ("absolute", (), None),
        ("pair", ("a",), None),
        ("pair", ("a", "a"), None),
        ("ranking", ("a",), None),
        ("baseline", ("a",), None),
        ("baseline", ("a", "b"), "a"),
        ("single", ("a",), "b"),
    ],
)
def test_goals_that_name_the_wrong_runs_are_refused(kind, runs, against) -> None:
    with pytest.raises(GoalError):
        Goal(kind, runs, against)


def test_unknown_runs_and_batches_are_refused(tiny_pool: Pool) -> None:
    with pytest.raises(PoolError, match="no run 'delta'"):
        design_of(tiny_pool, goals.single("delta"))
    for batches in (0, 4):
        with pytest.raises(ValueError, match="between 1 and 3"):
            design_of(tiny_pool).inclusion(batches)


@pytest.mark.parametrize("method", ["iid", "poisson"])
def test_saved_design_is_the_same_design(tiny_pool: Pool, method: str) -> None:
    goal = goals.baseline("alpha", "beta", against="gamma")
    design = design_of(
        tiny_pool, goal, method=method, budget=5, batch_size=4, eps=0.1,
        reported=[parse_measure("P@1"), parse_measure("RBP(p=0.3)")],
    )  # fmt: skip
    file = io.BytesIO()
    design.save(file)
    file.seek(0)
    loaded = Design.load(file)
    for name in design.__dataclass_fields__:
        assert np.array_equal(getattr(loaded, name), getattr(design, name)), name


# ------------------------------------------------------------------------ expected half widths


def all_utilities(prior: Prior, best: float):
    """Every 0/best utility vector of a pool with its probability under the prior."""
    chance = prior.expected / best
    for vector in product([0, 1], repeat=len(chance)):
        hit = np.array(vector)
        yield best * hit, float(np.prod(np.where(hit, chance, 1 - chance)))


# Intervals so short that none is cut at what values can be.
SHORT, SHORT_QUANTILE = {"confidence": 0.2}, 0.2533471031357997


@pytest.mark.parametrize("batches", [1, 2])
def test_expected_half_widths_are_the_mean_variance_over_the_prior(tiny_pool, batches) -> None:
    goal = goals.absolute(*RUNS)
    prior = make_prior(tiny_pool, name="rank", goal=goal, measure=DCG, max_grade=2)
    design = make_design(tiny_pool, goal=goal, measure=DCG, prior=prior, budget=3, batch_size=2)
    chance = design.inclusion(batches)
    variance, difference = np.zeros(3), 0.0
    for utility, probability in all_utilities(prior, 2.0):
        gains = WEIGHTS * utility[:, None]
        factor = (probability * (1 - chance) / chance)[:, None]
        variance += (factor * gains**2).sum(axis=0)
        difference += (factor[:, 0] * (gains[:, 0] - gains[:, 1]) ** 2).sum()
    expected = expected_half_widths(
        tiny_pool, design, measure=DCG, prior=prior, batches=batches, **SHORT
    )
    assert expected.half_width == pytest.approx(SHORT_QUANTILE * np.sqrt(variance))
    found = expected.difference_half_width[0, 1]
    assert found == pytest.approx(SHORT_QUANTILE * math.sqrt(difference))


def test_expected_half_width_of_iid_by_hand(tiny_pool: Pool) -> None:
    goal = goals.single("alpha")
    prior = make_prior(tiny_pool, name="rank", goal=goal, measure=DCG, max_grade=1)
    design = make_design(
        tiny_pool, goal=goal, measure=DCG, prior=prior, budget=8, batch_size=8, method="iid"
    )
    w, q, p = WEIGHTS[design.eligible, 0], design.size[design.eligible], prior.expected
    p = p[design.eligible]
    variance = ((w**2 * p / q).sum() - (w * p).sum() ** 2) / 8
    expected = expected_half_widths(tiny_pool, design, measure=DCG, prior=prior)
    assert expected.half_width[0] == pytest.approx(1.959963984540054 * math.sqrt(variance))


@pytest.mark.parametrize("method", ["iid", "poisson"])
def test_curve_agrees_with_single_predictions_and_falls(tiny_pool: Pool, method: str) -> None:
    goal = goals.absolute(*RUNS)
    prior = make_prior(tiny_pool, name="rank", goal=goal, measure=DCG, max_grade=1)
    curve = half_width_curve(
        tiny_pool, design_of(tiny_pool, method=method), measure=DCG, prior=prior,
        budgets=[2, 3, 4], **SHORT,
    )  # fmt: skip
    for row, budget in zip(curve, [2, 3, 4], strict=True):
        design = design_of(tiny_pool, method=method, budget=budget, batch_size=budget)
        single = expected_half_widths(tiny_pool, design, measure=DCG, prior=prior, **SHORT)
        assert row == pytest.approx(single.half_width)
    assert np.all(np.diff(curve, axis=0) < 0)


COSTS = np.array([0.5, 2.0, 1.0, 0.25, 3.0])


@pytest.mark.parametrize("method", ["iid", "poisson"])
def test_curve_with_costs_agrees_with_single_predictions(tiny_pool: Pool, method: str) -> None:
    goal = goals.absolute(*RUNS)
    prior = make_prior(tiny_pool, name="rank", goal=goal, measure=DCG, max_grade=1)
    made = {"method": method, "costs": COSTS, "floor": 0.0}
    first = design_of(tiny_pool, budget=3.0, batch_size=3.0, **made)
    one_draw = float(first.size @ COSTS)
    budgets = [n * one_draw for n in (2, 3, 5)] if method == "iid" else [2.0, 3.5, 6.75]
    asked = {"measure": DCG, "prior": prior, **SHORT}
    curve = half_width_curve(tiny_pool, first, budgets=budgets, costs=COSTS, **asked)
    for row, budget in zip(curve, budgets, strict=True):
        design = design_of(tiny_pool, budget=budget, batch_size=budget, **made)
        single = expected_half_widths(tiny_pool, design, **asked)
        assert row == pytest.approx(single.half_width)
    if method == "poisson":
        assert curve[-1].tolist() == [0.0] * 3
    without = half_width_curve(tiny_pool, first, budgets=budgets, **asked)
    assert without[0] != pytest.approx(curve[0]), "the same budget buys another number of pairs"


@pytest.mark.parametrize(
    ("method", "costs", "message"),
    [
        ("priority", COSTS, "costs must be None: a design by 'priority' is made without"),
        ("poisson", COSTS[:4], r"costs must hold one number per pair, 5, not \(4,\)"),
        ("iid", COSTS - 0.5, r"costs must be positive, from .*, not 0\.0 \(item 0\)"),
    ],
)
def test_curves_refuse_costs_that_do_not_fit(tiny_pool: Pool, method, costs, message) -> None:
    prior = make_prior(tiny_pool, name="rank", goal=ALL, measure=DCG, max_grade=1)
    design = design_of(tiny_pool, method=method)
    with pytest.raises(ValueError, match=message):
        half_width_curve(tiny_pool, design, measure=DCG, prior=prior, budgets=[2], costs=costs)


def test_runs_out_of_reach_have_no_finite_half_width(tiny_pool: Pool) -> None:
    goal = goals.single("alpha")
    prior = make_prior(tiny_pool, name="rank", goal=goal, measure=DCG, max_grade=1)
    design = design_of(tiny_pool, goal, method="iid")
    expected = expected_half_widths(tiny_pool, design, measure=DCG, prior=prior)
    assert np.isfinite(expected.half_width).tolist() == [True, False, True]
    assert np.isfinite(expected.difference_half_width[0]).tolist() == [True, False, True]
    curve = half_width_curve(tiny_pool, design, measure=DCG, prior=prior, budgets=[5])
    assert np.isfinite(curve[0]).tolist() == [True, False, True]


def test_a_census_promises_certainty(tiny_pool: Pool) -> None:
    prior = make_prior(tiny_pool, name="rank", goal=goals.absolute(*RUNS), measure=DCG, max_grade=1)
    expected = expected_half_widths(
        tiny_pool, design_of(tiny_pool, budget=5), measure=DCG, prior=prior
    )
    assert expected.half_width.tolist() == [0.0] * 3
    assert expected.difference_half_width.max() == 0.0


# ---------------------------------------------------------------------------------- extremes


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["poisson", "priority", "iid", "per-query"])
@pytest.mark.parametrize("eps", [0.0, 5e-324, 1.7e308])
@pytest.mark.parametrize("text", ["RBP(p=1e-40)", "RBP(p=5e-324)", "DCG@2"])
def test_extreme_weights_give_sizes_that_can_be_divided_by(
    tiny_pool: Pool, text: str, eps: float, method: str
) -> None:
    found = design_of(
        tiny_pool, measure=parse_measure(text), method=method, eps=eps, floor=0.0, budget=4,
        batch_size=4,
    )  # fmt: skip
    reached = found.size[found.eligible]
    assert np.isfinite(found.size).all()
    assert found.size.sum() == pytest.approx(1.0)
    assert np.isfinite(1.0 / reached**4).all()
    assert found.inclusion().sum() == pytest.approx(min(4, len(reached)), abs=4.0)
    assert np.all((found.inclusion() > 0.0) == found.eligible)


def test_raised_sizes_leave_estimates_unbiased(tiny_pool: Pool) -> None:
    """Over every sample: a pair counts with one over the probability that it then has."""
    measure = parse_measure("RBP(p=1e-40)")
    found = design_of(tiny_pool, measure=measure, floor=0.0, budget=2, batch_size=2)
    chance, reached = found.inclusion(), found.eligible
    assert 0.0 < chance[reached].min() < 1e-29
    gains = tiny_pool.weights(measure).toarray() * np.array([1, 0, 1, 1, 1])[:, None]
    expectation = np.zeros(3)
    for sample in product([False, True], repeat=len(tiny_pool)):
        taken = np.array(sample)
        if np.any(taken & ~reached):
            continue
        likely = np.prod(np.where(taken, chance, 1.0 - chance))
        expectation += likely * (gains[taken] / chance[taken, None]).sum(axis=0)
    assert expectation == pytest.approx(gains[reached].sum(axis=0), rel=0, abs=1e-12)


@pytest.mark.parametrize("cost", [1e-300, 1e300, np.inf, np.nan, -1.0, 0.0])
def test_costs_beyond_reason_are_refused_by_place(tiny_pool: Pool, cost: float) -> None:
    costs = COSTS.copy()
    costs[3] = cost
    with pytest.raises(DesignError, match=r"costs must be positive, from 1e-15 to .* \(item 3\)"):
        design_of(tiny_pool, costs=costs)
