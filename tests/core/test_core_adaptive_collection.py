"""Judged collections of adaptive rounds: the numbers of the round, and of runs that come later."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.collections.base import CollectionError, RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import Evaluation
from estimation.core.sampling import goals
from estimation.research.simulation import true_values
from tests.core.collecting import publish
from tests.core.ranked_collections import (
    assert_questions_without_answer_are_refused,
    assert_same,
    assert_same_as_in_the_round,
    assert_same_ranking,
    assert_the_rows_of_judgments_have_no_order,
)
from tests.core.test_core_adaptive import (
    EXACT,
    GRADES,
    begun,
    every_round,
    labels_of,
    plan_for,
    played,
    pool,
)
from tests.core.test_core_later_runs import LATE, RUNS, TOPICS, pool_of

__all__ = ["pool"]  # a fixture

BEST, DCG = 3, parse_measure("DCG@5")
MEASURES = [DCG, *map(parse_measure, ("P@10", "RBP(p=0.8)", "AP@5", "nDCG@5"))]


class Case:
    """An adaptive round over runs with scores, two judgments of every third pair, and its plan."""

    def __init__(self, pool: Pool | None = None, *, grade: int | None = None, **options) -> None:
        self.pool = pool_of(RUNS) if pool is None else pool
        self.grades = grades_of(self.pool)
        if grade is not None:
            self.grades[:] = grade
        given = {"budget": 60, "batches": 4, "max_grade": BEST, "measure": DCG}
        plan = plan_for(self.pool, **given | {"reported": MEASURES[1:]} | options)
        self.drawn, once = played(self.pool, self.grades, plan)
        again = once.pair[::3]
        grades = np.append(once.grade, (self.grades[again] + again % 2) % (BEST + 1))
        self.labels = LabelRows(np.append(once.pair, again), grades)

    def asked(self, batches: int | None = None, **options) -> Evaluation:
        return evaluate(
            self.pool, self.drawn, labels=self.labels, measures=MEASURES, max_grade=BEST,
            batches=batches, **options,
        )  # fmt: skip

    def collected(self, batches: int | None = None, **options) -> RoundCollection:
        settings = {"max_grade": BEST, "version": "0.1", "labels": self.labels} | options
        settings = {"measures": MEASURES} | settings
        return publish(self.pool, self.drawn, batches=batches, **settings)


def grades_of(pool: Pool) -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.choice(BEST + 1, size=len(pool), p=(0.55, 0.2, 0.15, 0.1))


def with_predictions() -> Case:
    """Of two: one tells much of every pair, the other nothing, now and then."""
    pool = pool_of(RUNS)
    rng = np.random.default_rng(4)
    some = np.where(rng.random(len(pool)) < 0.3, rng.normal(size=len(pool)), np.nan)
    much = grades_of(pool) + 0.2 * rng.random(len(pool))
    return Case(predicted=np.stack([much, some], axis=1), budget=120)


def with_costs() -> Case:
    costs = np.random.default_rng(5).uniform(0.5, 3.0, size=len(pool_of(RUNS)))
    return Case(costs=costs, budget=90.5)


def with_more_pairs() -> Case:
    """Some are in no run's list, as after an earlier round."""
    extra = {topic: ["d00", "nobody"] for topic in TOPICS}
    return Case(build_pool(TOPICS, RUNS, depth=10, extra=extra))


CASES: dict[str, Callable[[], Case]] = {
    "plain": Case,
    "predictions": with_predictions,
    "costs": with_costs,
    "more pairs": with_more_pairs,
    "census": lambda: Case(budget=len(pool_of(RUNS)), batches=2),
    "nothing learned": lambda: Case(grade=0),
    "one batch": lambda: Case(batches=1),
    "race": lambda: Case(goal=goals.winner(*RUNS)),
    "race of some": lambda: Case(goal=goals.winner("run0", "run2")),
    "no floor": lambda: Case(floor=0.0, reported=[]),
    "ratio": lambda: Case(measure=parse_measure("nDCG@5"), reported=[*MEASURES[:4]]),
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


@pytest.fixture(scope="module")
def plain() -> Case:
    return Case()


# ------------------------------------------------------------------ the same as it was there


@pytest.mark.slow
@pytest.mark.parametrize("batches", [1, None])
def test_a_run_of_the_pool_gets_the_numbers_of_the_round(case: Case, batches: int | None) -> None:
    then, collection = case.asked(batches), case.collected(batches)
    for tags in (tuple(RUNS), ("run0", "run2")):
        assert_same_as_in_the_round(then, collection, {tag: RUNS[tag] for tag in tags})


def test_the_pool_of_the_collection_gets_the_same_bits(case: Case) -> None:
    collection = case.collected()
    now = collection.evaluate(collection.pool, measures=MEASURES)
    for before, after in zip(case.asked().results, now.results, strict=True):
        for name in ("value", "se", "df", "low", "high", "covariance"):
            numbers = (getattr(each.estimate, name).tolist() for each in (before, after))
            assert next(numbers) == next(numbers), name


@pytest.mark.slow
@pytest.mark.parametrize("batches", [2, None])
def test_a_later_run_gets_the_numbers_it_would_have_in_the_round(
    plain: Case, batches: int | None
) -> None:
    collection = plain.collected(batches)
    then = plain.asked(batches, joined=pool_of(RUNS | LATE))
    for asked in (LATE, {"run0": RUNS["run0"]} | LATE, RUNS | LATE):
        now = collection.evaluate(asked, measures=MEASURES)
        for before, after in zip(then.results, now.results, strict=True):
            assert after.runs == tuple(sorted(asked))
            assert_same(before, after, after.runs)
            assert after.support[after.runs.index("another")] < 1.0
    for before, after in zip(then.results, now.results, strict=True):
        assert_same_ranking(before, after)


# ------------------------------------------------------------------------- over all rounds


def expectation(
    pool: Pool,
    plan: AdaptivePlan,
    joined: Pool,
    change: Callable[[RoundCollection], RoundCollection] = lambda collection: collection,
) -> np.ndarray:
    """What runs get from what is published of all rounds of two batches."""
    measure, value = plan.measure, np.zeros(len(joined.runs))
    for chance, drawn in every_round(pool, begun(plan), batches=2):
        labels = labels_of(drawn.sample.pair)
        collection = publish(pool, drawn, labels=labels, max_grade=2, version="0.1")
        found = change(collection).evaluate(joined, measures=[measure]).results[0]
        value += chance * found.estimate.value
    return value


@pytest.fixture
def joined(ranked: Callable) -> Pool:
    runs = {
        "a": ranked({"1": "uv", "2": "pq"}),
        "b": ranked({"1": "wu", "2": "qp"}),
        "later": ranked({"1": "vw", "2": "q"}),
    }
    return build_pool(["1", "2"], runs, depth=3)


@pytest.mark.slow
def test_runs_are_unbiased_over_all_rounds(pool: Pool, joined: Pool, eager: None) -> None:
    plan = plan_for(pool)
    expected = true_values(joined, grades=GRADES, measure=plan.measure)
    assert expectation(pool, plan, joined) == pytest.approx(expected, **EXACT)


@pytest.mark.slow
def test_twin_that_forgets_what_was_learned_is_caught(
    pool: Pool, joined: Pool, eager: None
) -> None:
    def forgotten(collection: RoundCollection) -> RoundCollection:
        state = collection.drawn.sample
        steps = tuple(replace(step, model=None) for step in state.steps)
        return replace(
            collection, drawn=replace(collection.drawn, sample=replace(state, steps=steps))
        )

    plan = plan_for(pool)
    expected = true_values(joined, grades=GRADES, measure=plan.measure)
    assert np.abs(expectation(pool, plan, joined, forgotten) - expected).max() > 1e-3


# --------------------------------------------------------------------------- what is kept


def test_nothing_is_kept_of_batches_that_are_not_complete(plain: Case) -> None:
    part, whole = (plain.collected(batches, seeds=["s"]) for batches in (2, None))
    assert (part.seeds, part.drawn.sample.seed) == ((None,), "")
    assert (whole.seeds, whole.drawn.sample.seed) == (("s",), "s")
    assert [each.drawn.planned for each in (part, whole)] == [2, 4]
    assert set(part.labels.pair) == set(part.sampled) < set(whole.sampled)


def test_the_scores_of_the_runs_are_not_kept(plain: Case) -> None:
    found = plain.collected()
    assert plain.pool.score is not None
    assert found.pool.score is None
    assert found.drawn.design.pool_digest == found.pool.digest != plain.pool.digest


def test_the_rows_of_judgments_have_no_order(plain: Case) -> None:
    assert_the_rows_of_judgments_have_no_order(
        lambda labels: plain.collected(labels=labels), plain.labels
    )


def test_measures_are_those_of_the_plan(plain: Case) -> None:
    assert plain.collected(measures=()).measures == tuple(MEASURES)
    assert plain.collected().intervals == ("student",)


# ------------------------------------------------------------------------------- bad input


def test_what_does_not_belong_together(plain: Case) -> None:
    with pytest.raises(CollectionError, match="do not belong together"):
        publish(
            pool_of(RUNS | LATE), plain.drawn, labels=plain.labels, max_grade=BEST, version="0.1"
        )
    with pytest.raises(ValueError, match="batches must be a whole number between 1 and 4"):
        plain.collected(9)
    few = LabelRows(plain.labels.pair[:5], plain.labels.grade[:5])
    with pytest.raises(CollectionError, match="was sampled but is not judged"):
        plain.collected(labels=few)
    with pytest.raises(CollectionError, match="must be 3, by which the round was planned, not 4"):
        plain.collected(max_grade=4)


def test_a_plan_without_beliefs_is_refused(plain: Case) -> None:
    plan = plain.drawn.design
    bare = replace(plan, design=replace(plan.design, belief=None))
    with pytest.raises(CollectionError, match="lacks beliefs"):
        publish(
            plain.pool, replace(plain.drawn, design=bare), labels=plain.labels, max_grade=BEST,
            version="0.1",
        )  # fmt: skip


def test_preferences_on_another_scale_are_refused(plain: Case) -> None:
    of_two = preference_pool(plain.pool, depth=2)
    plan = plain.drawn.design
    plan = AdaptivePlan(replace(plan.design, pool_digest=of_two.digest), BEST)
    with pytest.raises(CollectionError, match="max_grade must be 2"):
        publish(
            of_two, AdaptiveRound(plan, plain.drawn.sample), labels=plain.labels, max_grade=BEST,
            version="0.1",
        )  # fmt: skip


@pytest.mark.parametrize(
    "measure", [parse_measure(text) for text in ("ERR@5", "#ofSwaps")], ids=str
)
def test_measures_that_cannot_be_estimated(plain: Case, measure: Measure) -> None:
    why = "judged on pairs" if str(measure) == "#ofSwaps" else "not estimated from adaptive rounds"
    for runs in ({"run0": RUNS["run0"]}, LATE):
        with pytest.raises(MeasureError, match=why):
            plain.collected().evaluate(runs, measures=[measure])


def test_questions_that_have_no_answer(plain: Case) -> None:
    assert_questions_without_answer_are_refused(plain.collected())
