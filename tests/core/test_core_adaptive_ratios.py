"""AP, nDCG and Rprec from adaptive rounds: what they rest on is unbiased, and how far they err."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.estimates.ratio_frames import Frame, Gains
from estimation.core.estimates.ratio_labels import levels_reached
from estimation.core.estimates.ratio_lines import Numerator, Tangent
from estimation.core.inference import ratio_outlook
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.adaptive import ratios
from estimation.core.rounds.adaptive.batch_weights import BatchWeights
from estimation.core.rounds.adaptive.ratios import estimated_reach
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import walk
from estimation.core.rounds.adaptive.weights import Known, ratio_weights
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import draw_round, load_round
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values
from tests.core.simulated_pools import simulated_pool
from tests.core.test_core_adaptive import GRADES, begun, every_round, plan_for, played, pool

__all__ = ["pool"]  # the fixture

AP, NDCG, RPREC = map(parse_measure, ("AP", "nDCG@3", "Rprec"))
EXACT = {"rel": 1e-12, "abs": 1e-12}


def parts(pool: Pool, measure: Measure, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numerators and the counts of each level that pairs with such shares make up."""
    gain = np.diff(measure.utilities(np.arange(len(reach) + 1)))
    frame = Frame.of(
        pool, measure, Gains(gain, reach, np.arange(len(pool)), np.ones(len(pool))), None
    )
    counts = np.array([frame.per_topic(each) for each in reach])
    return Numerator.of(frame, measure).total, counts


@pytest.mark.slow
@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("measure", [AP, NDCG], ids=str)
def test_numerators_and_counts_are_unbiased_over_all_rounds(
    pool: Pool, eager: None, batches: int, measure: Measure
) -> None:
    plan, numerator, counts = plan_for(pool, measure=measure, reported=[]), 0.0, 0.0
    for chance, drawn in every_round(pool, begun(plan), batches=batches):
        reach, _ = estimated_reach(*_given(pool, drawn, measure))
        above, below = parts(pool, measure, reach)
        numerator, counts = numerator + chance * above, counts + chance * below
    truth = np.unique(GRADES[GRADES > 0])[:, None] <= GRADES
    gains = np.diff(measure.utilities(np.arange(3))) > 0.0
    above, below = parts(pool, measure, truth.astype(float)[gains])
    assert counts == pytest.approx(below, **EXACT)
    assert numerator == pytest.approx(above, **EXACT)


def _given(pool: Pool, drawn: AdaptiveRound, measure: Measure) -> tuple:
    frame, pairs = drawn.design.frame(pool), drawn.sample.pair
    weights = BatchWeights.of(frame, walk(frame, drawn.sample), [measure], drawn.planned)
    rows = LabelRows(np.arange(len(pairs)), GRADES[pairs])
    return frame, weights, levels_reached(rows, len(pairs), measure, also=frame.levels), pairs


@pytest.mark.slow
def test_the_squares_of_an_estimate_in_the_place_of_products_would_be_biased(
    pool: Pool, eager: None
) -> None:
    """The twin: a pair with itself is no pair of two, and its square is too large."""
    plan, square = plan_for(pool, measure=AP, reported=[]), 0.0
    for chance, drawn in every_round(pool, begun(plan), batches=2):
        reach, _ = estimated_reach(*_given(pool, drawn, AP))
        square = square + chance * reach[0] ** 2
    assert (square - (GRADES > 0)).max() > 0.1


@pytest.mark.parametrize("measure", [AP, NDCG, RPREC], ids=str)
@pytest.mark.parametrize(
    "goal",
    [
        goals.absolute("a", "b"),
        goals.single("b"),
        goals.pair("a", "b"),
        goals.ranking("a", "b", "c"),
        goals.baseline("a", "c", against="b"),
    ],
    ids=lambda goal: goal.kind,
)
def test_weights_are_what_a_unit_of_utility_moves_the_goal_by(
    ranked: Callable, measure: Measure, goal: goals.Goal
) -> None:
    runs = {
        "a": ranked({"1": "uv", "2": "pq"}),
        "b": ranked({"1": "wu", "2": "qp"}),
        "c": ranked({"1": "vwu", "2": "q"}),
    }
    pool, generator = build_pool(["1", "2"], runs, depth=3), np.random.default_rng(3)
    reached = np.sort(generator.uniform(0.1, 0.9, size=(1, len(pool))), axis=0)
    found = ratio_weights(pool, goal, measure, levels=np.array([1]), reached=reached)
    gain = measure.utilities(np.array([1]))
    gains = Gains(gain, reached, np.arange(len(pool)), np.ones(len(pool)))
    tangent = Tangent.of(Frame.of(pool, measure, gains, None), measure)
    moved = tangent.moved(np.arange(len(pool)), np.ones((1, len(pool)))) / gain
    contrasts = {
        "absolute": np.eye(3)[:, :2],
        "single": np.eye(3)[:, 1:2],
        "pair": np.array([[1.0], [-1.0], [0.0]]),
        "ranking": np.eye(3) - 1.0 / 3.0,
        "baseline": np.array([[1.0, 0.0], [-1.0, -1.0], [0.0, 1.0]]),
    }[goal.kind]
    wanted = np.sqrt(((moved @ contrasts) ** 2).sum(axis=1))
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)


# ------------------------------------------------------------------------------ of usual size


@pytest.fixture(scope="module")
def large() -> tuple[Pool, np.ndarray]:
    return simulated_pool()


def plan_of(pool: Pool, measure: Measure, **options):
    given = {"budget": 150, "batches": 4, "max_grade": 3, "measure": measure, "reported": []}
    return plan_for(pool, **given | options)


def estimated(pool: Pool, drawn, labels: LabelRows, measure: Measure):
    found = evaluate(pool, drawn, labels=labels, measures=[measure], max_grade=3)
    return found.results[0].estimate


@pytest.mark.parametrize("measure", [AP, parse_measure("nDCG@10"), RPREC], ids=str)
def test_a_census_is_exact(large: tuple, measure: Measure) -> None:
    pool, grades = large
    drawn, labels = played(pool, grades, plan_of(pool, measure, budget=len(pool)))
    found = estimated(pool, drawn, labels, measure)
    assert found.value == pytest.approx(true_values(pool, grades=grades, measure=measure), **EXACT)
    assert found.high - found.low == pytest.approx(0.0, abs=1e-9)


def errors(
    pool: Pool, grades: np.ndarray, measure: Measure, *, trials: int = 20
) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the values, (trials, k), and whether intervals hold the truth."""
    truth, plan = true_values(pool, grades=grades, measure=measure), plan_of(pool, measure)
    missed, covered = [], []
    for trial in range(trials):
        found = estimated(pool, *played(pool, grades, plan, seed=f"t{trial}"), measure)
        missed.append(found.value - truth)
        known = found.unknown == 0
        covered.append(~known | ((found.low <= truth) & (truth <= found.high)))
    return np.array(missed), np.array(covered)


def poisson_errors(pool: Pool, grades: np.ndarray, measure: Measure, *, trials: int = 20):
    """Those of a round of as many pairs that is drawn at once."""
    goal = goals.absolute(*pool.runs)
    design = make_design(
        pool,
        goal=goal,
        measure=measure,
        prior=make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=3),
        budget=150,
        batch_size=150,
        method="poisson",
    )
    truth, missed = true_values(pool, grades=grades, measure=measure), []
    for trial in range(trials):
        drawn = draw_round(pool, design, seed=f"t{trial}")
        pairs = drawn.pairs(pool)
        labels = LabelRows(pairs, grades[pairs])
        missed.append(estimated(pool, drawn, labels, measure).value - truth)
    return np.array(missed)


@pytest.mark.slow
@pytest.mark.parametrize("measure", [AP, parse_measure("nDCG@10"), RPREC], ids=str)
def test_it_errs_less_than_a_round_that_is_drawn_at_once_and_intervals_hold(
    large: tuple, measure: Measure
) -> None:
    missed, covered = errors(*large, measure)
    at_once = poisson_errors(*large, measure)
    assert np.sqrt((missed**2).mean() / (at_once**2).mean()) < 0.85
    assert covered.mean() > 0.93
    assert covered.mean(axis=0).min() > 0.75
    assert np.abs(missed.mean()) < 0.65 * np.sqrt((missed**2).mean())


@pytest.mark.slow
def test_a_bias_taken_off_whole_would_err_more(
    large: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: where a topic's denominator is next to nothing known, the series diverges."""
    missed, _ = errors(*large, AP)
    for each in (ratios, ratio_outlook):
        monkeypatch.setattr(each, "DAMPING", 0.0)
    worse, _ = errors(*large, AP)
    assert (worse**2).mean() > 1.1 * (missed**2).mean()


def test_what_a_batch_was_planned_by_is_stored_with_it(large: tuple, tmp_path) -> None:
    pool, grades = large
    drawn, _ = played(pool, grades, plan_of(pool, AP))
    assert all(step.model.found is not None for step in drawn.sample.steps[1:])
    drawn.design.save(tmp_path / "design"), drawn.sample.save(tmp_path / "sample")
    again = load_round(tmp_path / "design", tmp_path / "sample").redrawn(pool, seed="s")
    assert np.array_equal(again.sample.pair, drawn.sample.pair)
    assert np.array_equal(again.sample.chance, drawn.sample.chance)
    steps = [
        step if step.model is None else replace(step, model=replace(step.model, found=None))
        for step in drawn.sample.steps
    ]
    other = replace(drawn, sample=replace(drawn.sample, steps=tuple(steps)))
    chance = drawn.sample.chance
    assert not np.array_equal(other.redrawn(pool, seed="s").sample.chance, chance)


def test_an_ideal_list_that_is_known_needs_no_more_judgments(ranked: Callable) -> None:
    """Two of ten documents are ideal: with two found others move nothing, with one they do."""
    pool = build_pool(["1"], {"a": ranked({"1": "abcdefghij"})}, depth=10)
    measure, judged = parse_measure("nDCG@2"), np.arange(10) < 4
    reached = np.full((1, 10), 0.3)
    few, enough = (
        ratio_weights(
            pool,
            goals.absolute("a"),
            measure,
            levels=np.array([1]),
            reached=reached,
            known=Known(judged, np.arange(found), np.ones((1, found))),
        )
        for found in (1, 2)
    )
    assert (few[4:] > 0.0).all()
    assert enough[4:] == pytest.approx(0.0, abs=1e-12)
    by_model = ratio_weights(
        pool, goals.absolute("a"), measure, levels=np.array([1]), reached=reached
    )
    assert by_model[4:] == pytest.approx(
        0.0, abs=1e-12
    )  # the twin: three are expected, two will do


@pytest.mark.slow
def test_slopes_are_steady_where_next_to_nothing_was_judged(large: tuple) -> None:
    """Standard errors are those of errors; the twin, slopes at the estimates, may be anything."""
    pool, grades = large
    plan, truth = plan_of(pool, AP, budget=120), true_values(pool, grades=grades, measure=AP)
    missed, shown, twin = [], [], []
    for trial in range(8):
        drawn, labels = played(pool, grades, plan, seed=f"t{trial}")
        found = estimated(pool, drawn, labels, AP)
        missed.append(found.value - truth)
        shown.append(np.diag(found.covariance))
        frame, weights, pairs = plan.frame(pool), None, drawn.sample.pair
        weights = BatchWeights.of(frame, walk(frame, drawn.sample), [AP], drawn.planned)
        reached = levels_reached(labels_at(labels, pairs), len(pairs), AP, also=frame.levels)
        reach, surprise = estimated_reach(frame, weights, reached, pairs)
        gains = Gains(reached.gain, reach, np.arange(len(pool)), np.ones(len(pool)))
        moved = Tangent.of(Frame.of(pool, AP, gains, None), AP).moved(pairs, surprise)
        twin.append(((1.0 - weights.chance[pairs])[:, None] * moved**2).sum(axis=0))
    error = np.mean(np.square(missed))
    assert 0.5 * error < np.mean(shown) < 4.0 * error
    assert np.mean(twin) > 8.0 * error


def labels_at(labels: LabelRows, pairs: np.ndarray) -> LabelRows:
    return LabelRows(np.searchsorted(pairs, labels.pair), labels.grade)
