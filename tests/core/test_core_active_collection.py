"""Judged collections of active rounds: the numbers of the round, and of runs that come later."""

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
from estimation.core.rounds.active.lists import make_frame
from estimation.core.rounds.active.rounds import ActiveRound, log_absent, make_plan
from estimation.core.rounds.evaluation import evaluate
from tests.core.collecting import publish
from tests.core.length import bounded
from tests.core.ranked_collections import (
    assert_questions_without_answer_are_refused,
    assert_same,
    assert_same_as_in_the_round,
    assert_same_ranking,
    assert_the_rows_of_judgments_have_no_order,
    evaluated,
)
from tests.core.test_core_active_variance import CHANCES
from tests.core.test_core_active_variance import RUNS as SAMPLED
from tests.core.test_core_later_active import (
    BEST,
    CASES,
    DCG,
    EXACT,
    LATER,
    PLACE,
    Case,
    every_plan,
    round_of,
)
from tests.core.test_core_later_runs import LATE, RUNS, pool_of

BATCHES = bounded([1, None], [1, 2, None])
"""So many of the first batches; by default all."""


@pytest.fixture(scope="module", params=CASES)
def case(request) -> Case:
    return CASES[request.param]()


@pytest.fixture(scope="module")
def linear() -> Case:
    return CASES["linear"]()


def collected(case: Case, batches: int | None = None, **options) -> RoundCollection:
    settings = {"max_grade": BEST, "version": "0.1", "labels": case.asked["labels"]} | options
    used = case.drawn.sample.batches if batches is None else batches
    return publish(case.pool, case.drawn, batches=used, measures=case.asked["measures"], **settings)


# ------------------------------------------------------------------ the same as it was there


@pytest.mark.slow
@pytest.mark.parametrize("batches", BATCHES)
def test_a_run_of_the_pool_gets_the_same_bits(case: Case, batches: int | None) -> None:
    then = evaluate(case.pool, case.drawn, batches=batches, **case.asked)
    collection = collected(case, batches)
    for tags in (tuple(RUNS), ("run1",), ("run0", "run2")):
        assert_same_as_in_the_round(then, collection, {tag: RUNS[tag] for tag in tags})


@pytest.mark.slow
@pytest.mark.parametrize("batches", BATCHES)
def test_a_later_run_gets_the_numbers_it_would_have_in_the_round(
    case: Case, batches: int | None
) -> None:
    collection = collected(case, batches)
    for late in (LATE, {"another": LATE["another"]}):
        then = evaluate(
            case.pool, case.drawn, joined=pool_of(RUNS | late), batches=batches, **case.asked
        )
        for asked in (late, {"run0": RUNS["run0"]} | late, RUNS | late):
            now = evaluated(collection, asked)
            for before, after in zip(then.results, now.results, strict=True):
                assert after.runs == tuple(sorted(asked))
                assert_same(before, after, after.runs)
                assert after.support[after.runs.index("another")] < 1.0
        for before, after in zip(then.results, now.results, strict=True):
            assert_same_ranking(before, after)


@pytest.mark.slow
def test_another_run_by_the_tag_of_one_of_the_pool_is_a_later_run(linear: Case) -> None:
    collection = collected(linear)
    then = evaluated(collection, {"another": LATE["another"]}).results
    now = evaluated(collection, {"run1": LATE["another"]}).results
    for before, after in zip(then, now, strict=True):
        assert after.runs == ("run1",)
        assert_same(before, after, ("another",))


def test_the_chances_are_worked_out_again_to_the_last_bit(case: Case) -> None:
    state = case.drawn.sample
    assert log_absent(make_frame(case.pool), state).tolist() == state.log_absent.tolist()


# ------------------------------------------------------------------------- over all plans


def expectation(
    ranked, change: Callable[[RoundCollection], RoundCollection] = lambda collection: collection
) -> tuple[np.ndarray, np.ndarray]:
    """What later runs get over all plans and judgments, and what they are worth within reach."""
    runs, late = (
        {tag: ranked({"t1": row}) for tag, row in each.items()} for each in (SAMPLED, LATER)
    )
    pool = build_pool(["t1"], runs, depth=5)
    value = np.zeros(len(late))
    for chance, state, labels in every_plan(make_frame(pool), length=2, number=1):
        collection = publish(
            pool, round_of(pool, state, DCG), labels=labels, batches=2, max_grade=1, version="0.1"
        )
        found = change(collection).evaluate(late, measures=[DCG]).results[0]
        value += chance * found.estimate.value
    joined = build_pool(["t1"], runs | late, depth=5)
    weights = joined.weights(DCG, PLACE).toarray()[:, [joined.runs.index(tag) for tag in late]]
    return value, CHANCES @ weights


@pytest.mark.slow
def test_later_runs_are_unbiased_over_all_plans_and_judgments(ranked) -> None:
    value, expected = expectation(ranked)
    assert value == pytest.approx(expected, **EXACT)


@pytest.mark.slow
def test_twin_that_forgets_how_runs_were_chosen_is_caught(ranked) -> None:
    def alike(collection: RoundCollection) -> RoundCollection:
        plan, state = collection.drawn.design, collection.drawn.sample
        even = np.full_like(state.run_probability, 1.0 / len(collection.pool.runs))
        state = replace(state, run_probability=even)
        chances = log_absent(make_frame(collection.pool), state)
        drawn = ActiveRound(plan, replace(state, log_absent=chances))
        return replace(collection, drawn=drawn)

    value, expected = expectation(ranked, alike)
    assert np.abs(value - expected).max() > 1e-3


# --------------------------------------------------------------------------- what is kept


def test_nothing_is_kept_of_batches_that_are_not_complete(linear: Case) -> None:
    part, whole = (collected(linear, batches, seeds=["s"]) for batches in (1, None))
    assert (part.seeds, part.drawn.sample.seed) == ((None,), "")
    assert (whole.seeds, whole.drawn.sample.seed) == (("s",), "s")
    assert whole.drawn.design.budget == len(whole.drawn.sample.pair)
    assert part.drawn.sample.batches == 1
    assert set(part.labels.pair) == set(part.sampled) < set(whole.sampled)
    assert len(part.drawn.sample.round_topic) < len(whole.drawn.sample.round_topic)


def test_a_seed_is_not_told_before_the_budget_is_spent(linear: Case) -> None:
    assert collected(linear, 1, seeds=["s"]).seeds == (None,)


def test_the_rows_of_judgments_have_no_order(linear: Case) -> None:
    assert_the_rows_of_judgments_have_no_order(
        lambda labels: collected(linear, labels=labels), linear.asked["labels"]
    )


def test_measures_are_those_of_the_round_or_precision(linear: Case) -> None:
    assert collected(linear).measures == tuple(linear.asked["measures"])
    plan = replace(linear.drawn.design, relevant_from=2)
    drawn = ActiveRound(plan, replace(linear.drawn.sample, relevant_from=2))
    without = publish(
        linear.pool, drawn, labels=linear.asked["labels"], batches=1, max_grade=BEST, version="0.1"
    )
    assert without.measures == (parse_measure("AP(rel=2)"),)
    assert without.intervals == ("student",)
    assert without.pool_digest == replace(linear.pool, score=None).digest


# ------------------------------------------------------------------------------- bad input


@pytest.fixture(scope="module")
def good(linear: Case) -> RoundCollection:
    return collected(linear)


def small_collection(pool: Pool) -> RoundCollection:
    drawn = ActiveRound.begin(
        pool, make_plan(pool, measures=[DCG], budget=1, batch_size=1), seed="s"
    )
    labels = LabelRows(drawn.sample.pair, np.array([1]))
    return publish(pool, drawn, labels=labels, batches=1, max_grade=1, version="0.1")


def test_what_does_not_belong_together(linear: Case, ranked) -> None:
    with pytest.raises(CollectionError, match="do not belong together"):
        publish(
            linear.joined, linear.drawn, labels=linear.asked["labels"], max_grade=BEST,
            version="0.1",
        )  # fmt: skip
    with pytest.raises(ValueError, match="batches must be a whole number between 1 and"):
        collected(linear, 99)
    rows = linear.asked["labels"]
    with pytest.raises(CollectionError, match="was sampled but is not judged"):
        collected(linear, labels=LabelRows(rows.pair[:5], rows.grade[:5]))
    runs = {"a": ranked({"t1": "xy"})}
    odd = build_pool(["t1"], runs, depth=2, extra={"t1": ["z"]})
    with pytest.raises(CollectionError, match="document 'z' of topic 't1' is in no list"):
        small_collection(odd)


def test_preferences_are_refused(linear: Case) -> None:
    pool = preference_pool(linear.pool, depth=2)
    plan = replace(linear.drawn.design, pool_digest=pool.digest)
    drawn = ActiveRound(plan, replace(linear.drawn.sample, pool_digest=pool.digest))
    with pytest.raises(CollectionError, match="preferences between documents"):
        publish(
            pool, drawn, labels=linear.asked["labels"], batches=1, max_grade=BEST, version="0.1"
        )


@pytest.mark.parametrize(
    "measure", [parse_measure(text) for text in ("nDCG@5", "AP@5", "ERR@5", "MAE", "#ofSwaps")],
    ids=str,
)  # fmt: skip
def test_measures_that_cannot_be_estimated(good: RoundCollection, measure: Measure) -> None:
    for runs in ({"run0": RUNS["run0"]}, LATE):
        with pytest.raises(MeasureError, match="has no estimator for"):
            good.evaluate(runs, measures=[measure])


def test_questions_that_have_no_answer(good: RoundCollection) -> None:
    assert_questions_without_answer_are_refused(good)
