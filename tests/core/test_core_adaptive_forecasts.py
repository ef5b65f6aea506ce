"""What an adaptive round foretells of its later batches, against what they brought."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.scope import Scope
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning.adaptive_ahead import ahead_of_batches
from estimation.core.planning.adaptive_missed import SquaresMissed
from estimation.core.planning.forecasts import forecast
from estimation.core.planning.foretold import Forecast
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.sampling import goals
from estimation.core.sampling.goals import Goal
from tests.core.simulated_pools import helpful_predictions, simulated_pool
from tests.core.test_core_adaptive import plan_for

POOL, GRADES = simulated_pool()
MEASURE, BEST = parse_measure("DCG@30"), 3
NOTHING = np.zeros_like(GRADES)


def plan(
    pool: Pool = POOL,
    *,
    budget: int = 640,
    batches: int = 8,
    goal: Goal | None = None,
    measure: Measure = MEASURE,
    max_grade: int = BEST,
    **given: object,
) -> AdaptivePlan:
    return plan_for(
        pool,
        budget=budget,
        batches=batches,
        goal=goal or goals.ranking(*pool.runs),
        measure=measure,
        max_grade=max_grade,
        **{"reported": (), **given},
    )


def labels_of(drawn: AdaptiveRound, grades: np.ndarray = GRADES) -> LabelRows:
    return LabelRows(drawn.sample.pair, grades[drawn.sample.pair])


def played(
    planned: AdaptivePlan,
    batches: int,
    *,
    seed: str = "x",
    pool: Pool = POOL,
    grades: np.ndarray = GRADES,
) -> AdaptiveRound:
    drawn = AdaptiveRound.begin(pool, planned, seed=seed)
    for _ in range(batches - 1):
        drawn = drawn.extended(pool, labels=labels_of(drawn, grades))
    return drawn


def looked(
    drawn: AdaptiveRound, *, pool: Pool = POOL, grades: np.ndarray = GRADES, **more: object
) -> MeasureResult:
    asked = {"measures": [drawn.design.measure], "max_grade": drawn.design.max_grade}
    return evaluate(pool, drawn, labels=labels_of(drawn, grades), **asked, **more).results[0]


def told(
    drawn: AdaptiveRound, *, pool: Pool = POOL, grades: np.ndarray = GRADES, **more: object
) -> Forecast:
    return forecast(
        Scope.of(pool),
        drawn,
        batches=drawn.planned,
        result=looked(drawn, pool=pool, grades=grades, **more),
        max_grade=drawn.design.max_grade,
        labels=labels_of(drawn, grades),
    )


def middle(found: MeasureResult) -> float:
    return float(np.median(found.estimate.half_width))


def end(found: Forecast) -> float:
    return next(each.half_width for each in reversed(found.steps) if each.batches is not None)


def rows(found: Forecast) -> np.ndarray:
    return np.array([list(vars(each).values())[1:5] for each in found.steps], dtype=float)


# ----------------------------------------------------------------------------- against what came


@pytest.mark.slow
def test_later_half_widths_and_verdicts_come_as_foretold(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a twin that plans on as if nothing had been learned."""
    planned, ratios, twin, decided = plan(), [], [], []
    for seed in map(str, range(10)):
        early, late = (looked(played(planned, batches, seed=seed)) for batches in (2, 8))
        drawn = played(planned, 2, seed=seed)
        found = told(drawn)
        assert found.steps[0].half_width == middle(early)
        assert found.steps[0].pairs == len(drawn.sample.pair)
        assert found.steps[0].decided == np.count_nonzero(early.ranking.verdicts == 1)
        ratios.append(end(found) / middle(late))
        at_end = next(each for each in found.steps if each.batches == 8)
        decided.append(at_end.decided - np.count_nonzero(late.ranking.verdicts == 1))
        with monkeypatch.context() as patch:
            patch.setattr(AdaptiveRound, "learned", lambda *_: None)
            twin.append(end(told(drawn)) / middle(late))
    assert 0.85 < np.median(ratios) < 1.15
    assert abs(np.mean(decided)) < 2.0, "of 15"
    assert np.median(twin) > 1.15


def test_the_present_is_what_the_estimates_expect_under_the_same_model() -> None:
    drawn = played(plan(), 3)
    labels = labels_of(drawn)
    learned = drawn.learned(drawn.design.frame(POOL), labels)
    assert learned is not None
    outlook = KnownOutlook(learned.levels, learned.reach(drawn.design.frame(POOL).features))
    result = looked(drawn, outlook=outlook)
    ahead = ahead_of_batches(Scope.of(POOL), drawn, 3, result, labels)
    assert ahead.covariance == pytest.approx(result.estimate.expected, rel=1e-9)


def test_what_is_left_is_that_of_one_sample_with_all_chances_together() -> None:
    """On average over whether the pair was judged; the twin lets judged pairs keep their squares.

    Of one batch with chance p, after which a pair has the chance q.
    """
    p, q, variance = (each.ravel() for each in np.meshgrid([0.01, 0.3, 0.9], [0.02, 0.5, 1.0], 2.0))
    squares, together = variance * (1.0 - p) / p, p + (1.0 - p) * q
    still_open = SquaresMissed(squares, variance, p, np.ones(9, dtype=bool))
    was_judged = replace(still_open, open=np.zeros(9, dtype=bool))
    average = (1.0 - p) * still_open.after(q) + p * was_judged.after(q)
    assert average == pytest.approx(variance * (1.0 - together) / together)
    twin = (1.0 - p) * still_open.after(q) + p * squares
    assert np.all(twin > 1.0001 * average)


def test_what_an_earlier_round_missed_stays_and_its_shares_leave_the_rest() -> None:
    """The twin takes the squares of a round that is continued for some of its own."""
    p, q, variance = (each.ravel() for each in np.meshgrid([0.01, 0.3, 0.9], [0.02, 0.5], 2.0))
    earlier, left, together = 3.0, 0.3, p + (1.0 - p) * q
    own = left**2 * variance * (1.0 - p) / p
    fixed = earlier / (earlier + own)
    still_open = SquaresMissed(earlier + own, variance, p, np.ones(6, dtype=bool), fixed, left)

    def average(of: SquaresMissed) -> np.ndarray:
        was_judged = replace(of, open=np.zeros(6, dtype=bool))
        return (1.0 - p) * of.after(q) + p * was_judged.after(q)

    then = earlier + left**2 * variance * (1.0 - together) / together
    assert average(still_open) == pytest.approx(then)
    assert np.all(np.abs(average(replace(still_open, fixed=0.0)) / then - 1.0) > 1e-3)
    assert np.all(np.abs(average(replace(still_open, left=1.0)) / then - 1.0) > 1e-3)


@pytest.mark.parametrize("passed", [0.0, 1e-300, 1e-12, 0.5, 1.0 - 1e-12])
@pytest.mark.parametrize("chance", [0.0, 1e-300, 1e-12, 0.5, 1.0])
def test_chances_next_to_nothing_and_certainty_divide_by_nothing(
    passed: float, chance: float
) -> None:
    missed = SquaresMissed(*(np.array([each]) for each in (7.0, 2.0, passed, True)))
    (left,) = missed.after(np.array([chance]))
    assert np.isfinite(left)
    assert left == pytest.approx(7.0) if chance == 0.0 else left >= 0.0
    if chance == 1.0:
        assert left == 0.0


def test_nothing_is_drawn_or_planned_by_a_forecast() -> None:
    drawn = played(plan(), 3)
    before = drawn.next_batch(POOL, labels=labels_of(drawn))
    told(drawn)
    after = drawn.next_batch(POOL, labels=labels_of(drawn))
    assert np.array_equal(before.chances.by(0), after.chances.by(0))
    assert np.array_equal(before.draws(seed="x"), after.draws(seed="x"))


@pytest.mark.slow
def test_batches_that_were_planned_meanwhile_are_not_looked_at() -> None:
    early, longer = played(plan(), 2), played(plan(), 4)
    about = {"batches": 2, "result": looked(early), "max_grade": BEST}
    found = forecast(Scope.of(POOL), longer, labels=labels_of(longer), **about)
    assert found.steps == told(early).steps


# --------------------------------------------------------------------------------- every question


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"goal": goals.absolute(*POOL.runs)},
        {"goal": Goal("winner", tuple(POOL.runs))},
        {"topic_minimum": 4.0},
        {"costs": np.linspace(0.5, 1.5, len(POOL))},
        {"predicted": helpful_predictions(GRADES)[:, None]},
        {"floor": 0.0},
        {"measure": parse_measure("P@5")},
        {"budget": 1700},
    ],
    ids=lambda given: next(iter(given)),
)
def test_every_kind_of_plan_has_a_forecast_up_to_everything(given: dict[str, object]) -> None:
    planned = plan(**given)
    for batches in (1, 2, planned.batches):
        drawn = played(planned, batches)
        found = told(drawn)
        numbers = rows(found)
        assert np.all(np.isfinite(numbers))
        assert np.all(np.diff(numbers[:, 0]) >= 0.0), "pairs"
        assert np.all(np.diff(numbers[:, 1]) <= 1e-9), "half widths"
        drawable = float(np.count_nonzero(planned.design.eligible))
        assert numbers[-1, 0] == pytest.approx(drawable)
        assert numbers[-1, 1] == pytest.approx(0.0, abs=1e-9)
        ends = [each.batches for each in found.steps if each.batches is not None]
        assert ends[0] == batches
        assert ends[-1] == planned.batches


@pytest.mark.slow
def test_a_run_that_came_later_is_foretold_with_the_others() -> None:
    runs = {tag: _lists(tag) for tag in POOL.runs}
    pool = build_pool(POOL.topics, {tag: runs[tag] for tag in POOL.runs[:-1]}, depth=POOL.depth)
    joined = build_pool(POOL.topics, runs, depth=POOL.depth)
    grades = {
        (int(topic), docno): int(grade)
        for topic, docno, grade in zip(POOL.topic, POOL.docno.tolist(), GRADES, strict=True)
    }
    of_pool = np.array(
        [grades[int(t), d] for t, d in zip(pool.topic, pool.docno.tolist(), strict=True)]
    )
    asked = [(goals.ranking(*pool.runs), MEASURE), (Goal("winner", tuple(pool.runs)), MEASURE)]
    for goal, measure in [*asked, (goals.ranking(*pool.runs), parse_measure("AP"))]:
        drawn = played(plan(pool, goal=goal, measure=measure), 3, pool=pool, grades=of_pool)
        result = looked(drawn, pool=pool, grades=of_pool, joined=joined)
        found = forecast(
            Scope.of(pool, joined), drawn, batches=3, result=result, max_grade=BEST,
            labels=labels_of(drawn, of_pool),
        )  # fmt: skip
        assert found.differences == 15
        assert np.all(np.isfinite(rows(found)))


def _lists(tag: str) -> RankedLists:
    own = POOL.run == POOL.run_index(tag)
    pair = POOL.entry_pair[own]
    order = np.lexsort((POOL.rank[own], POOL.topic[pair]))
    docnos = POOL.docno[pair[order]]
    counts = np.bincount(POOL.topic[pair], minlength=len(POOL.topics))
    return RankedLists(tuple(POOL.topics), np.append(0, np.cumsum(counts)), docnos)


@pytest.mark.slow
def test_disagreement_between_assessors_stays_when_everything_is_judged() -> None:
    drawn = played(plan(), 3)
    rng, pair = np.random.default_rng(9), drawn.sample.pair
    other = np.where(rng.random(len(pair)) < 0.2, rng.integers(0, 4, len(pair)), GRADES[pair])
    labels = LabelRows(np.tile(pair, 2), np.concatenate([GRADES[pair], other]))
    asked = {"measures": [MEASURE], "max_grade": BEST}
    result = evaluate(POOL, drawn, labels=labels, **asked).results[0]
    found = forecast(Scope.of(POOL), drawn, batches=3, result=result, max_grade=BEST, labels=labels)
    assert found.steps[-1].half_width > 0.02 * found.steps[0].half_width
    assert told(drawn).steps[-1].half_width == pytest.approx(0.0, abs=1e-9)


def test_a_forecast_needs_labels_and_a_measure_that_has_one() -> None:
    drawn = played(plan(), 2)
    result = looked(drawn)
    about = {"batches": 2, "max_grade": BEST}
    with pytest.raises(ValueError, match="an adaptive round needs its labels"):
        forecast(Scope.of(POOL), drawn, result=result, **about)
    other = replace(result, measure=parse_measure("ERR@30"))
    with pytest.raises(ValueError, match="no forecast for ERR@30 and 'adaptive'"):
        forecast(Scope.of(POOL), drawn, result=other, labels=labels_of(drawn), **about)


# ------------------------------------------------------------------------------- degenerate rounds


def test_from_a_batch_that_drew_nothing_nothing_is_foretold() -> None:
    drawn = played(plan(budget=2, batches=2), 1, seed="1")
    assert not len(drawn.sample.pair)
    with pytest.raises(ValueError, match="without a judged pair"):
        told(drawn)


@pytest.mark.parametrize("grades", [NOTHING, np.full_like(GRADES, BEST)], ids=["none", "all"])
def test_nothing_learned_is_foretold_by_the_design(grades: np.ndarray) -> None:
    for batches in (1, 4, 8):
        found = told(played(plan(), batches, grades=grades), grades=grades)
        assert np.all(np.isfinite(rows(found)))


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.9, 0.99, 1.0])
@pytest.mark.parametrize("batches", [1, 2, 4])
def test_next_to_everything_judged(share: float, batches: int) -> None:
    planned = plan(budget=int(share * len(POOL)), batches=4)
    found = told(played(planned, min(batches, planned.batches)))
    numbers = rows(found)
    assert np.all(np.isfinite(numbers))
    assert numbers[-1, 1] == pytest.approx(0.0, abs=1e-9)
    if share == 1.0:
        assert all(each.batches is not None for each in found.steps)


@pytest.mark.parametrize("grades", [[0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [1, 0, 1, 0, 1]])
@pytest.mark.parametrize("budget", [2, 4, 5])
def test_one_run_equal_runs_and_rounds_that_find_nothing_or_all(
    grades: list[int], budget: int
) -> None:
    def tiny(runs: dict[str, str], most: int) -> Forecast:
        lists = {
            tag: RankedLists(("t",), np.array([0, 3]), np.array([d.encode() for d in docnos]))
            for tag, docnos in runs.items()
        }
        pool, truth = build_pool(("t",), lists, depth=3), np.array(grades)
        planned = plan(
            pool, budget=min(budget, most), batches=2, measure=parse_measure("P@3"), max_grade=1,
            goal=goals.absolute(*pool.runs),
        )  # fmt: skip
        return told(played(planned, 1, pool=pool, grades=truth), pool=pool, grades=truth)

    alone = tiny({"a": "123"}, 3)
    assert alone.differences == 0
    assert alone.of_ranking().state == "decided"
    equal = tiny({"a": "123", "b": "123"}, 3)
    assert equal.until_best() is None
    assert equal.of_best().state == "out of reach"
    assert np.all(np.isfinite(rows(tiny({"a": "123", "b": "345"}, 5))))
