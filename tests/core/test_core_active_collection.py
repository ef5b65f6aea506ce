"""Judged collections of active rounds: the numbers of the round, and of runs that come later."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.collections.active import ActiveCollection, log_absent
from estimation.core.collections.base import CollectionError
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.measures.table import Measure, MeasureError, parse_measure
from estimation.core.rounds.active.lists import make_frame
from estimation.core.rounds.active.rounds import ActiveRound, make_plan
from estimation.core.rounds.evaluation import evaluate
from tests.core import ranked_collections
from tests.core.ranked_collections import (
    Change,
    assert_questions_without_answer_are_refused,
    assert_same,
    assert_same_as_in_the_round,
    assert_same_ranking,
    assert_the_rows_of_judgments_have_no_order,
    changed,
    changing,
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


@pytest.fixture(scope="module", params=CASES)
def case(request) -> Case:
    return CASES[request.param]()


@pytest.fixture(scope="module")
def linear() -> Case:
    return CASES["linear"]()


def collected(case: Case, batches: int | None = None, **options) -> ActiveCollection:
    settings = {"max_grade": BEST, "version": "0.1", "labels": case.asked["labels"]} | options
    used = case.drawn.sample.batches if batches is None else batches
    return ActiveCollection.of(
        case.pool, case.drawn, batches=used, measures=case.asked["measures"], **settings
    )


# ------------------------------------------------------------------ the same as it was there


@pytest.mark.slow
@pytest.mark.parametrize("batches", [1, 2, None])
def test_a_run_of_the_pool_gets_the_same_bits(case: Case, batches: int | None) -> None:
    then = evaluate(case.pool, case.drawn, batches=batches, **case.asked)
    collection = collected(case, batches)
    for tags in (tuple(RUNS), ("run1",), ("run0", "run2")):
        assert_same_as_in_the_round(then, collection, {tag: RUNS[tag] for tag in tags})


@pytest.mark.slow
@pytest.mark.parametrize("batches", [1, 2, None])
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
    ranked, change: Callable[[ActiveCollection], ActiveCollection] = lambda collection: collection
) -> tuple[np.ndarray, np.ndarray]:
    """What later runs get over all plans and judgments, and what they are worth within reach."""
    runs, late = (
        {tag: ranked({"t1": row}) for tag, row in each.items()} for each in (SAMPLED, LATER)
    )
    pool = build_pool(["t1"], runs, depth=5)
    value = np.zeros(len(late))
    for chance, state, labels in every_plan(make_frame(pool), length=2, number=1):
        collection = ActiveCollection.of(
            pool, round_of(pool, state, DCG), labels=labels, batches=2, max_grade=1, version="0.1"
        )
        found = change(collection).evaluate(late, measures=[DCG]).results[0]
        value += chance * found.estimate.value
    joined = build_pool(["t1"], runs | late, depth=5)
    weights = joined.weights(DCG, PLACE).toarray()[:, [joined.runs.index(tag) for tag in late]]
    return value, CHANCES @ weights


def test_later_runs_are_unbiased_over_all_plans_and_judgments(ranked) -> None:
    value, expected = expectation(ranked)
    assert value == pytest.approx(expected, **EXACT)


def test_twin_that_forgets_how_runs_were_chosen_is_caught(ranked) -> None:
    def alike(collection: ActiveCollection) -> ActiveCollection:
        state = collection.state
        even = np.full_like(state.run_probability, 1.0 / len(collection.pool.runs))
        state = replace(state, run_probability=even)
        chances = log_absent(make_frame(collection.pool), state)
        return replace(collection, state=replace(state, log_absent=chances))

    value, expected = expectation(ranked, alike)
    assert np.abs(value - expected).max() > 1e-3


# --------------------------------------------------------------------------- what is kept


def test_nothing_is_kept_of_batches_that_are_not_complete(linear: Case) -> None:
    part, whole = (collected(linear, batches, seed="s") for batches in (1, None))
    assert (part.seed, part.state.seed) == (None, "")
    assert (whole.seed, whole.state.seed) == ("s", "s")
    assert whole.plan.budget == len(whole.state.pair)
    assert part.state.batches == 1
    assert set(part.labels.pair) == set(part.sampled) < set(whole.sampled)
    assert len(part.state.round_topic) < len(whole.state.round_topic)


def test_a_seed_is_not_told_before_the_budget_is_spent(linear: Case) -> None:
    with pytest.raises(CollectionError, match="seed must not be told before the budget is spent"):
        replace(collected(linear, 1), seed="s")


def test_the_rows_of_judgments_have_no_order(linear: Case) -> None:
    assert_the_rows_of_judgments_have_no_order(
        lambda labels: collected(linear, labels=labels), linear.asked["labels"]
    )


def test_measures_are_those_of_the_round_or_precision(linear: Case) -> None:
    assert collected(linear).measures == tuple(linear.asked["measures"])
    plan = replace(linear.drawn.design, relevant_from=2)
    drawn = ActiveRound(plan, replace(linear.drawn.sample, relevant_from=2))
    without = ActiveCollection.of(
        linear.pool, drawn, labels=linear.asked["labels"], batches=1, max_grade=BEST, version="0.1"
    )
    assert without.measures == (parse_measure("AP(rel=2)"),)
    assert without.intervals == ("student",)
    assert without.pool_digest == replace(linear.pool, score=None).digest


# ------------------------------------------------------------------------------- bad input


@pytest.fixture(scope="module")
def good(linear: Case) -> ActiveCollection:
    return collected(linear)


planned, sampled = changing("plan"), changing("state")


def empty_topic(c: ActiveCollection) -> np.ndarray:
    return changed(c.state.round_topic, 0, 6)


BAD: dict[str, Change] = {
    **ranked_collections.BAD,
    "pool, design and sample do not belong": sampled(pool_digest=lambda c: "0" * 64),
    "per_batch must be a whole number": planned(per_batch=lambda c: 0),
    "relevant_from must be a whole number": planned(relevant_from=lambda c: 0),
    "limits must lie between 0 and": planned(limits=lambda c: c.plan.limits - 1000),
    "limits must have a number for each": planned(limits=lambda c: c.plan.limits[1:]),
    "documents of topic 't6', not 1": planned(limits=lambda c: changed(c.plan.limits, 6, 1)),
    "the plan's batch size": sampled(batch_size=lambda c: c.plan.per_batch + 1),
    "uniform_share must be above 0": sampled(uniform_share=lambda c: 0.0),
    "uniform_share must be above 0 and at most 1, not nan": sampled(
        uniform_share=lambda c: float("nan")
    ),
    "the rounds need a topic": sampled(round_draws=lambda c: c.state.round_draws[1:]),
    "chances of all runs": sampled(run_probability=lambda c: c.state.run_probability[:, 1:]),
    "round_topic must lie between": sampled(round_topic=lambda c: c.state.round_topic + 99),
    "round_topic must have documents": sampled(round_topic=empty_topic),
    "counted from 1, none left out": sampled(round_batch=lambda c: c.state.round_batch + 1),
    "must ascend by topic": sampled(round_topic=lambda c: changed(c.state.round_topic, 1, 0)),
    "pair must lie between": sampled(pair=lambda c: c.state.pair + 10_000),
    "pair_round must lie between": sampled(pair_round=lambda c: c.state.pair_round + 10_000),
    "rounds must ascend": sampled(pair_round=lambda c: c.state.pair_round[::-1]),
    "every document needs its round": sampled(pair_round=lambda c: c.state.pair_round[1:]),
    "a document was new twice": sampled(
        pair=lambda c: changed(c.state.pair, 1, c.state.pair[0])
    ),
    "of another topic than its round": sampled(
        pair=lambda c: c.state.pair[::-1]
    ),
    "a round must bring 1 to": lambda c: planned(per_batch=lambda c: 1)(c)
    | sampled(batch_size=lambda c: 1)(c),
    "round_draws must be as many": sampled(round_draws=lambda c: c.state.round_draws * 0),
    "documents of a topic must keep to limits": planned(
        limits=lambda c: changed(c.plan.limits, 0, 1)
    ),
    "must add up to 1, not": sampled(run_probability=lambda c: c.state.run_probability * 1.1),
    "add up to 1, not nan": sampled(run_probability=lambda c: c.state.run_probability * np.nan),
    "must be its uniform share": sampled(
        run_probability=lambda c: changed(c.state.run_probability, 0, np.array([0.0, 0.5, 0.5]))
    ),
    "log_absent must be what follows": sampled(log_absent=lambda c: c.state.log_absent * 2),
}  # fmt: skip


@pytest.mark.parametrize("message", BAD)
def test_parts_that_do_not_fit_are_named(good: ActiveCollection, message: str) -> None:
    with pytest.raises(CollectionError) as refused:
        replace(good, **BAD[message](good))
    assert message in str(refused.value)


def test_a_run_that_returns_nothing_has_no_chance(ranked) -> None:
    pool = build_pool(["t1"], {"a": ranked({"t1": "xy"}), "b": ranked({})}, depth=2)
    collection = small_collection(pool)
    odd = replace(collection.state, run_probability=np.array([[0.5, 0.5]]))
    with pytest.raises(CollectionError, match="of run 'b' must be 0, because it returns nothing"):
        replace(collection, state=odd)


def small_collection(pool: Pool) -> ActiveCollection:
    drawn = ActiveRound.begin(
        pool, make_plan(pool, measures=[DCG], budget=1, batch_size=1), seed="s"
    )
    labels = LabelRows(drawn.sample.pair, np.array([1]))
    return ActiveCollection.of(pool, drawn, labels=labels, batches=1, max_grade=1, version="0.1")


def test_what_does_not_belong_together(linear: Case, ranked) -> None:
    with pytest.raises(CollectionError, match="do not belong together"):
        ActiveCollection.of(
            linear.joined, linear.drawn, labels=linear.asked["labels"], batches=1, max_grade=BEST,
            version="0.1",
        )  # fmt: skip
    with pytest.raises(ValueError, match="batches must be a whole number between 1 and"):
        collected(linear, 99)
    rows = linear.asked["labels"]
    with pytest.raises(CollectionError, match="was sampled but is not judged"):
        collected(linear, labels=LabelRows(rows.pair[:5], rows.grade[:5]))
    runs = {"a": ranked({"t1": "xy"})}
    odd = build_pool(["t1"], runs, depth=2, extra={"t1": ["z"]})
    with pytest.raises(CollectionError, match="docno 'z' of topic 't1' is in no list"):
        small_collection(odd)


def test_preferences_are_refused(linear: Case) -> None:
    pool = preference_pool(linear.pool, depth=2)
    plan = replace(linear.drawn.design, pool_digest=pool.digest)
    drawn = ActiveRound(plan, replace(linear.drawn.sample, pool_digest=pool.digest))
    with pytest.raises(CollectionError, match="preferences between documents"):
        ActiveCollection.of(
            pool, drawn, labels=linear.asked["labels"], batches=1, max_grade=BEST, version="0.1"
        )


@pytest.mark.parametrize(
    "measure", [parse_measure(text) for text in ("nDCG@5", "AP@5", "ERR@5", "MAE", "#ofSwaps")],
    ids=str,
)  # fmt: skip
def test_measures_that_cannot_be_estimated(good: ActiveCollection, measure: Measure) -> None:
    for runs in ({"run0": RUNS["run0"]}, LATE):
        with pytest.raises(MeasureError, match="has no estimator for"):
            good.evaluate(runs, measures=[measure])


def test_questions_that_have_no_answer(good: ActiveCollection) -> None:
    assert_questions_without_answer_are_refused(good)
