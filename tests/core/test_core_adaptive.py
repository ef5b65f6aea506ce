"""Adaptive rounds: unbiased whatever the model says, planned the same way everywhere."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from estimation.core.data.labels import LabelError, LabelRows, PairLabels, pair_labels
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.scope import Scope
from estimation.core.estimates.difference import DifferenceEstimate
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.adaptive.batch_weights import BatchWeights
from estimation.core.rounds.adaptive.estimates import estimate_totals
from estimation.core.rounds.adaptive.outlooks import Missing
from estimation.core.rounds.adaptive.rounds import AdaptiveRound, PlannedBatch
from estimation.core.rounds.adaptive.sampled import weighed
from estimation.core.rounds.adaptive.sampling import reached
from estimation.core.rounds.adaptive.state import AdaptiveError, AdaptivePlan, AdaptiveState, walk
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import draw_round, load_round
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values
from tests.core.length import bounded
from tests.core.simulated_pools import harmful_predictions, helpful_predictions, simulated_pool

DCG, PRECISION = parse_measure("DCG@3"), parse_measure("P@2")
GRADES = np.array([2, 0, 1, 0, 2])
EXACT = {"rel": 1e-12, "abs": 1e-12}
BATCHES = bounded(2, 3)  # of rounds that are enumerated; the second is planned by what was learned


@pytest.fixture
def pool(ranked: Callable) -> Pool:
    """Five pairs, two runs."""
    runs = {"a": ranked({"1": "uv", "2": "pq"}), "b": ranked({"1": "wu", "2": "qp"})}
    return build_pool(["1", "2"], runs, depth=3)


def plan_for(pool: Pool, *, budget: float = 3, batches: int = 3, **options) -> AdaptivePlan:
    measure = options.pop("measure", DCG)
    goal = options.pop("goal", goals.absolute(*pool.runs))
    max_grade = options.pop("max_grade", 2)
    own = ("costs", "predicted", "topic_minimum", "even_topics")
    given = {name: options.pop(name) for name in own if name in options}
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=max_grade)
    design = make_design(
        pool,
        goal=goal,
        measure=measure,
        prior=prior,
        budget=budget,
        batch_size=budget / batches if "costs" in given else -(-budget // batches),
        method="adaptive",
        costs=given.get("costs"),
        reported=options.pop("reported", [PRECISION]),
        **options,
    )
    return AdaptivePlan(design, max_grade, **given)


def labels_of(pairs: np.ndarray, grades: np.ndarray = GRADES, *, times: int = 1) -> LabelRows:
    return LabelRows(np.repeat(pairs, times), np.repeat(grades[pairs], times))


def begun(plan: AdaptivePlan) -> AdaptiveRound:
    none = np.array([], dtype=np.int64)
    empty = AdaptiveState("", none, none.astype(np.int32), none * 1.0, ())
    return AdaptiveRound(plan, empty.after(plan.past))


def every_round(
    pool: Pool, drawn: AdaptiveRound, *, batches: int, grades: np.ndarray = GRADES
) -> Iterator[tuple[float, AdaptiveRound]]:
    """All rounds that can come to be, with their probabilities."""
    if batches == 0:
        yield 1.0, drawn
        return
    planned = drawn.next_batch(pool, labels=labels_of(drawn.sample.pair, grades))
    for share, longer in _each(drawn, planned):
        for rest, whole in every_round(pool, longer, batches=batches - 1, grades=grades):
            yield share * rest, whole


def _each(drawn: AdaptiveRound, planned: PlannedBatch) -> Iterator[tuple[float, AdaptiveRound]]:
    """Every way in which a planned batch can come out."""
    chance = planned.chances.by(0)
    possible = np.flatnonzero(chance > 0.0)
    for number in range(len(possible) + 1):
        for pairs in combinations(possible.tolist(), number):
            taken = np.isin(possible, pairs)
            sure = np.where(taken, chance[possible], 1.0 - chance[possible])
            if (share := float(np.prod(sure))) > 0.0:
                at = planned.frame.at[np.array(pairs, dtype=np.int64)]
                yield share, drawn.with_batch(planned, at)


def estimated_by(
    pool: Pool, drawn: AdaptiveRound, measure: Measure, joined: Pool | None
) -> DifferenceEstimate:
    """The totals alone: all that is published besides rests on them."""
    frame, pairs = drawn.design.frame(pool), drawn.sample.pair
    weights = BatchWeights.of(frame, walk(frame, drawn.sample), [measure], drawn.planned)
    number = np.ones(len(pairs), dtype=np.int64)
    labels = PairLabels(measure.utilities(GRADES[pairs]), number, np.zeros(len(pairs)), False)
    scope = Scope.of(pool, joined)
    return estimate_totals(scope, weights, 0, measure=measure, pairs=pairs, labels=labels)


def moments(
    pool: Pool, plan: AdaptivePlan, *, batches: int, measure=DCG, joined: Pool | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Mean and covariance of the values, mean of the estimated covariance, and all chances."""
    mean, square, estimated, total = 0.0, 0.0, 0.0, 0.0
    for chance, drawn in every_round(pool, begun(plan), batches=batches):
        found = estimated_by(pool, drawn, measure, joined)
        mean = mean + chance * found.value
        square = square + chance * np.multiply.outer(found.value, found.value)
        estimated = estimated + chance * found.covariance
        total += chance
    return mean, square - np.multiply.outer(mean, mean), estimated, total


@pytest.mark.slow
@pytest.mark.parametrize("batches", [1, 2, 3])
def test_values_are_unbiased_at_every_batch_and_so_are_their_variances(
    pool: Pool, eager: None, batches: int
) -> None:
    mean, covariance, estimated, total = moments(pool, plan_for(pool), batches=batches)
    assert total == pytest.approx(1.0, **EXACT)
    assert mean == pytest.approx(true_values(pool, grades=GRADES, measure=DCG), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"measure": PRECISION, "reported": [DCG]},
        {"goal": goals.pair("a", "b")},
        {"goal": goals.single("a")},
        {"predicted": np.array([[0.1], [np.nan], [2.0], [1.0], [0.0]])},
        {"predicted": np.array([[0.1, 2], [np.nan, 1], [2, 1], [1, np.nan], [0, 0]])},
        {"costs": np.array([1.0, 2.0, 0.5, 1.0, 3.0])},
        {"floor": 0.5},
    ],
    ids=["binary", "pair", "one of two runs", "predicted", "by two", "costs", "floor"],
)
def test_whatever_the_plan_rests_on_values_are_unbiased(
    pool: Pool, eager: None, options: dict
) -> None:
    mean, covariance, estimated, _ = moments(pool, plan_for(pool, **options), batches=BATCHES)
    assert mean == pytest.approx(true_values(pool, grades=GRADES, measure=DCG), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


def test_batches_that_a_model_plans_serve_the_runs_beside_the_goal(pool: Pool, eager: None) -> None:
    """The twin: a round that was begun by a version with an even floor is planned on with it."""
    plan = plan_for(pool, goal=goals.single("a"), budget=4)
    drawn, _ = played(pool, GRADES, plan, seed="s")
    even = replace(plan, design=replace(plan.design, for_all_runs=0.0))
    judged = np.zeros(len(pool), dtype=np.bool_)
    of_model = drawn.sample.steps[-1].model
    found = plan.frame(pool).sizes(of_model, judged)
    before = even.frame(pool).sizes(of_model, judged)
    beside = pool.weights(DCG, np.arange(len(pool))).toarray()[:, 0] == 0.0
    assert found.sum() == pytest.approx(before.sum()) == pytest.approx(1.0)
    assert found[beside] != pytest.approx(before[beside])
    assert np.all(found >= 0.02 / len(pool))
    goal_alone = (before - 0.1 / len(pool)) / 0.9
    every = (found - 0.9 * goal_alone - 0.02 / len(pool)) / 0.08
    assert np.all(every >= -1e-12)
    assert every.sum() == pytest.approx(1.0)
    assert np.all(every[beside] > 0.0)


@pytest.mark.parametrize(
    "options", [{"measure": parse_measure("ERR@5")}, {"reported": [parse_measure("ERR@5")]}]
)
def test_measures_that_only_whole_topics_tell_are_refused(pool: Pool, options: dict) -> None:
    with pytest.raises(AdaptiveError, match="do not estimate ERR@5"):
        plan_for(pool, **options)


def test_a_round_follows_from_its_seed_and_what_was_learned(pool: Pool, eager: None) -> None:
    drawn, _ = played(pool, GRADES, plan_for(pool, budget=4), seed="s")
    again, other = drawn.redrawn(pool, seed="s"), drawn.redrawn(pool, seed="t")
    for name in ("pair", "batch", "chance"):
        np.testing.assert_array_equal(getattr(again.sample, name), getattr(drawn.sample, name))
    for one, two in zip(again.sample.steps, drawn.sample.steps, strict=True):
        np.testing.assert_array_equal(one.constants, two.constants)
    assert other.sample.pair.tolist() != drawn.sample.pair.tolist()


@pytest.mark.slow
def test_another_measure_than_the_goals_is_unbiased_too(pool: Pool, eager: None) -> None:
    mean, _, _, _ = moments(pool, plan_for(pool), batches=BATCHES, measure=PRECISION)
    assert mean == pytest.approx(true_values(pool, grades=GRADES, measure=PRECISION), **EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("goal", [goals.ranking("a", "b"), goals.single("a")])
def test_a_run_that_joins_later_is_unbiased(
    pool: Pool, eager: None, ranked: Callable, goal: goals.Goal
) -> None:
    runs = {
        "a": ranked({"1": "uv", "2": "pq"}),
        "b": ranked({"1": "wu", "2": "qp"}),
        "later": ranked({"1": "vw", "2": "q"}),
    }
    joined = build_pool(["1", "2"], runs, depth=3)
    mean, _, _, _ = moments(pool, plan_for(pool, goal=goal), batches=2, joined=joined)
    assert mean == pytest.approx(true_values(joined, grades=GRADES, measure=DCG), **EXACT)


@pytest.mark.slow
def test_weights_by_all_chances_together_would_be_biased(pool: Pool, eager: None) -> None:
    """The twin: one over the chance to be drawn by any batch, as if it had been fixed before."""
    weights, mean = pool.weights(DCG, np.arange(5)).toarray(), 0.0
    for chance, drawn in every_round(pool, begun(plan_for(pool)), batches=2):
        *_, last = walk(drawn.design.frame(pool), drawn.sample)
        pairs, together = drawn.sample.pair, reached(last.before, last.chances)
        mean = mean + chance * (weights[pairs].T @ (GRADES[pairs] / together[pairs]))
    truth = true_values(pool, grades=GRADES, measure=DCG)
    assert np.abs(mean - truth).max() > 1e-3 * truth.max()


@pytest.mark.slow
def test_squares_that_were_found_expect_what_the_truth_expects(pool: Pool, eager: None) -> None:
    """Over all rounds of three batches, pair by pair; not so if each counted as it was found."""
    found, expected, unweighted = np.zeros((3, 5))
    reached = np.stack([grade <= GRADES for grade in (1, 2)]).astype(np.float64)
    truth = KnownOutlook(np.array([1, 2]), reached)
    for share, drawn in every_round(pool, begun(plan_for(pool)), batches=3):
        frame, pairs = drawn.design.frame(pool), drawn.sample.pair
        weights = weighed(frame, drawn.sample, (DCG,)).weights
        missing = Missing(weights, 0, DCG)
        number = np.ones(len(pairs), dtype=np.int64)
        labels = PairLabels(DCG.utilities(GRADES[pairs]), number, np.zeros(len(pairs)), False)
        squares = missing.found(pairs, labels)
        found[pairs] += share * squares
        unweighted[pairs] += share * squares * weights.chance[pairs]
        expected += share * missing.expected(truth, np.arange(5))
    assert found == pytest.approx(expected, rel=1e-9)
    assert unweighted != pytest.approx(expected, rel=0.05)


@pytest.mark.slow
def test_two_people_who_disagree_make_the_variance_larger_by_what_they_cost(
    pool: Pool, eager: None
) -> None:
    """Over all samples and all labels: of one pair grades 0 or 2 by the toss of a coin."""
    plan, mean, square, estimated = plan_for(pool), 0.0, 0.0, 0.0
    for given in product([0, 2], repeat=2):
        grades = np.array([given, (0, 0), (1, 1), (0, 0), (2, 2)])
        for chance, drawn in _judged_twice(pool, begun(plan), grades, batches=2):
            frame, pairs = drawn.design.frame(pool), drawn.sample.pair
            weights = BatchWeights.of(frame, walk(frame, drawn.sample), [PRECISION], 2)
            rows = LabelRows(np.repeat(np.arange(len(pairs)), 2), np.sort(grades[pairs]).ravel())
            found = estimate_totals(
                Scope.of(pool),
                weights,
                0,
                measure=PRECISION,
                pairs=pairs,
                labels=pair_labels(rows, pairs=len(pairs), measure=PRECISION),
            )
            mean = mean + chance / 4 * found.value
            square = square + chance / 4 * np.multiply.outer(found.value, found.value)
            estimated = estimated + chance / 4 * found.covariance
    truth = pool.weights(PRECISION, np.arange(5)).T @ np.array([0.5, 0.0, 1.0, 0.0, 1.0])
    assert mean == pytest.approx(truth, **EXACT)
    assert estimated == pytest.approx(square - np.multiply.outer(mean, mean), rel=1e-10, abs=1e-12)


def _judged_twice(
    pool: Pool, drawn: AdaptiveRound, grades: np.ndarray, *, batches: int
) -> Iterator[tuple[float, AdaptiveRound]]:
    """As `every_round`, with two labels of each pair."""
    if batches == 0:
        yield 1.0, drawn
        return
    pairs = drawn.sample.pair
    rows = LabelRows(np.repeat(pairs, 2), grades[pairs].ravel())
    for share, longer in _each(drawn, drawn.next_batch(pool, labels=rows)):
        for rest, whole in _judged_twice(pool, longer, grades, batches=batches - 1):
            yield share * rest, whole


# ------------------------------------------------------------------------------ of usual size


@pytest.fixture(scope="module")
def large() -> tuple[Pool, np.ndarray]:
    return simulated_pool()


NDCG = parse_measure("DCG@10")


def played(
    pool: Pool, grades: np.ndarray, plan: AdaptivePlan, *, seed: str = "s"
) -> tuple[AdaptiveRound, LabelRows]:
    drawn = AdaptiveRound.begin(pool, plan, seed=seed)
    while drawn.planned < drawn.batches:
        drawn = drawn.extended(pool, labels=labels_of(drawn.sample.pair, grades))
    return drawn, labels_of(drawn.sample.pair, grades)


def plan_of(pool: Pool, **options) -> AdaptivePlan:
    given = {"budget": 200, "batches": 5, "max_grade": 3, "measure": NDCG, "reported": []}
    return plan_for(pool, **given | options)


def values(pool: Pool, drawn: AdaptiveRound, labels: LabelRows, **options):
    found = evaluate(pool, drawn, labels=labels, measures=[NDCG], max_grade=3, **options)
    return found.results[0].estimate


def test_it_learns_and_spends_its_budget(large: tuple) -> None:
    drawn, _ = played(*large, plan_of(large[0]))
    steps = drawn.sample.steps
    assert [step.model is not None for step in steps] == [False, True, True, True, True]
    assert abs(len(drawn.sample.pair) - 200) < 4 * np.sqrt(40)  # as one batch varies, not all


def test_the_same_seed_and_judgments_give_the_same_round_to_the_bit(large: tuple) -> None:
    pool, grades = large
    one, labels = played(pool, grades, plan_of(pool))
    other, _ = played(pool, grades, plan_of(pool))
    assert one.sample.pair.tolist() == other.sample.pair.tolist()
    order = np.random.default_rng(1).permutation(len(labels.pair))
    mixed = LabelRows(labels.pair[order], labels.grade[order])
    assert values(pool, one, labels).value.tolist() == values(pool, other, mixed).value.tolist()


def test_another_seed_gives_another_round(large: tuple) -> None:
    one, _ = played(*large, plan_of(large[0]))
    other, _ = played(*large, plan_of(large[0]), seed="t")
    assert one.sample.pair.tolist() != other.sample.pair.tolist()


def test_a_prefix_is_the_round_as_it_was(large: tuple) -> None:
    pool, grades = large
    begun = AdaptiveRound.begin(pool, plan_of(pool), seed="s")
    drawn = begun.extended(pool, labels=labels_of(begun.pairs(pool), grades))
    whole, labels = played(pool, grades, plan_of(pool))
    first = whole.prefix(pool, 2)
    assert first.sample.pair.tolist() == drawn.sample.pair.tolist()
    early = values(pool, drawn, labels_of(drawn.sample.pair, grades))
    assert values(pool, whole, labels, batches=2).value.tolist() == early.value.tolist()


def test_what_was_saved_is_the_same_round(large: tuple, tmp_path) -> None:
    pool, grades = large
    plan = plan_of(pool, predicted=helpful_predictions(grades)[:, None])
    drawn, labels = played(pool, grades, plan)
    drawn.design.save(tmp_path / "design"), drawn.sample.save(tmp_path / "sample")
    again = load_round(tmp_path / "design", tmp_path / "sample")
    assert isinstance(again, AdaptiveRound)
    assert values(pool, again, labels).value.tolist() == values(pool, drawn, labels).value.tolist()


def test_a_census_is_exact(large: tuple) -> None:
    pool, grades = large
    plan = plan_of(pool, budget=len(pool), batches=4)
    drawn, labels = played(pool, grades, plan)
    assert drawn.sample.pair.tolist() == np.flatnonzero(plan.design.eligible).tolist()
    found = values(pool, drawn, labels)
    assert found.value == pytest.approx(true_values(pool, grades=grades, measure=NDCG), **EXACT)
    assert found.high - found.low == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("grade", [0, 3])
def test_grades_that_are_all_alike_teach_nothing_and_break_nothing(
    large: tuple, grade: int
) -> None:
    pool, _ = large
    drawn, labels = played(pool, np.full(len(pool), grade), plan_of(pool))
    assert all(step.model is None for step in drawn.sample.steps)
    found = values(pool, drawn, labels)
    assert np.all(np.isfinite(found.low) & np.isfinite(found.high) & (found.low <= found.high))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["noise", "heavy tails", "constant", "upside down"])
def test_nonsense_for_predictions_hardly_costs_anything(large: tuple, kind: str) -> None:
    """By what is expected of the error, which is far less noisy than the error of few rounds."""
    pool, grades = large
    bad = harmful_predictions(grades)[kind][:, None]

    def error(plan: AdaptivePlan) -> float:
        rounds = [played(pool, grades, plan, seed=str(seed)) for seed in range(3)]
        return float(np.mean([values(pool, *each).covariance.trace() for each in rounds]))

    assert error(plan_of(pool, predicted=bad)) < 1.2 * error(plan_of(pool))


def test_extreme_predictions_leave_all_numbers_finite(large: tuple) -> None:
    pool, grades = large
    wild = np.where(np.arange(len(pool)) % 7 == 0, 1e300, -1e-300)[:, None]
    drawn, labels = played(pool, grades, plan_of(pool, predicted=wild))
    assert np.all(np.isfinite(values(pool, drawn, labels).value))


def test_what_hardly_counts_leaves_all_chances_large_enough_to_divide_by(large: tuple) -> None:
    """Under a measure that looks at hardly more than the first rank, without a floor."""
    steep = parse_measure("RBP(p=0.01)")
    drawn, _ = played(*large, plan_of(large[0], measure=steep, floor=0.0))
    passed = list(walk(drawn.design.frame(large[0]), drawn.sample))
    assert passed[-1].step.model is not None
    chances = np.concatenate([each.chances.by(0) for each in passed])
    assert chances[chances > 0.0].min() > 1e-40


def test_what_models_say_is_kept_by_what_they_learned(large: tuple) -> None:
    """Each batch has its own, in whatever order and from whatever frame they are asked for."""
    pool, grades = large
    drawn, labels = played(pool, grades, plan_of(pool))
    models = [step.model for step in drawn.sample.steps if step.model is not None]
    assert len(models) > 1
    frame, fresh = drawn.design.frame(pool), drawn.design.frame(pool).features.of_pairs
    for learned in [*models, *reversed(models)]:
        said = learned.reach(fresh(frame.at))
        assert np.array_equal(frame.reached(learned), said)
        assert np.array_equal(drawn.design.frame(pool).reached(replace(learned)), said)
    assert not np.array_equal(frame.reached(models[0]), frame.reached(models[-1]))

    evaluated = [values(pool, drawn, labels).value]
    pool.kept.clear()
    evaluated.append(values(pool, drawn, labels).value)
    assert np.array_equal(*evaluated)


@pytest.mark.slow
def test_intervals_hold_and_what_is_learned_helps(large: tuple) -> None:
    pool, grades = large
    truth, plan = true_values(pool, grades=grades, measure=NDCG), plan_of(pool)
    found = [values(pool, *played(pool, grades, plan, seed=str(s))) for s in range(40)]
    inside = [(each.low <= truth) & (truth <= each.high) for each in found]
    assert 0.90 <= np.mean(inside) <= 0.995
    assert np.mean(inside, axis=0).min() >= 0.83
    chance = plan.design.inclusion()
    weights = pool.weights(NDCG, np.arange(len(pool))).toarray()
    gained = (weights * NDCG.utilities(grades)[:, None]) ** 2
    known = chance > 0.0
    static = ((1.0 - chance[known]) / chance[known]) @ gained[known]
    errors = np.mean([(each.value - truth) ** 2 for each in found], axis=0)
    assert errors.sum() < 0.8 * static.sum()


# ------------------------------------------------------------------------------------ bad input


def test_a_pair_without_a_label_is_named(large: tuple) -> None:
    pool, grades = large
    drawn = AdaptiveRound.begin(pool, plan_of(pool), seed="s")
    with pytest.raises(LabelError, match=r"document '.*' of topic"):
        drawn.extended(pool, labels=labels_of(drawn.sample.pair[1:], grades))


def test_a_plan_of_another_pool_is_refused(large: tuple, pool: Pool) -> None:
    with pytest.raises(AdaptiveError, match="another pool"):
        AdaptiveRound.begin(pool, plan_of(large[0]), seed="s")


def test_a_design_of_another_method_is_refused(large: tuple) -> None:
    design = replace(plan_of(large[0]).design, method="poisson")
    with pytest.raises(AdaptiveError, match="must be of the method adaptive, not poisson"):
        AdaptivePlan(design, 3)


def test_predictions_of_another_pool_are_refused(large: tuple) -> None:
    with pytest.raises(AdaptiveError, match="predicted must be one per pair"):
        AdaptivePlan(plan_of(large[0]).design, 3, predicted=np.ones((4, 1)))


def test_a_measure_that_is_no_sum_and_no_ratio_is_refused(large: tuple) -> None:
    drawn, labels = played(*large, plan_of(large[0]))
    with pytest.raises(ValueError, match="ERR@5 is not estimated from adaptive rounds"):
        evaluate(large[0], drawn, labels=labels, measures=[parse_measure("ERR@5")], max_grade=3)


def test_a_design_of_the_method_is_drawn_like_any_other(large: tuple) -> None:
    plan = plan_of(large[0])
    assert draw_round(large[0], plan, seed="s").batches == 5
