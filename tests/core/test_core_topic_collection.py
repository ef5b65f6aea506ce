"""Judged collections of whole topics: the numbers of the round, and of runs that come later."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.collections.base import CollectionError, RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.scope import find_pairs
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import TopicRound
from tests.core.collecting import publish
from tests.core.ranked_collections import (
    assert_questions_without_answer_are_refused,
    assert_same,
    assert_same_as_in_the_round,
    assert_same_ranking,
    assert_the_rows_of_judgments_have_no_order,
    evaluated,
)
from tests.core.test_core_later_runs import LATE, RUNS, pool_of
from tests.core.test_core_later_topics import (
    AP,
    BEST,
    CASES,
    DCG,
    ERR,
    EXACT,
    NDCG,
    Case,
    case_of,
    census_of,
    design_of,
    judgments,
    runs_of,
    values_of,
    worthless_out_of_reach,
)
from tests.core.test_core_query_ratios import every_sample

TOPICS = ["t1", "t2", "t3", "t4"]
NEW = {
    "known": {"t1": "ca", "t2": "xz", "t3": "nl"},
    "novel": {"t1": "uca", "t2": "yz", "t3": "om", "t4": "w"},
}


def collected(case: Case, batches: int = 2, **options) -> RoundCollection:
    settings = {"max_grade": BEST, "version": "0.1", "labels": case.asked["labels"]} | options
    drawn = case.drawn
    return publish(
        case.pool, drawn, batches=batches, measures=case.asked["measures"],
        **settings,
    )  # fmt: skip


# ------------------------------------------------------------------ the same as it was there


@pytest.mark.slow
@pytest.mark.parametrize("subset", [tuple(RUNS), ("run0",), ("run0", "run2")], ids=str)
@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_a_run_of_the_round_gets_the_same_bits(
    name: str, batches: int, subset: tuple[str, ...]
) -> None:
    case = case_of(name)
    tags = tuple(tag for tag in subset if tag in case.design.runs)
    then = evaluate(case.pool, case.drawn, batches=batches, **case.asked)
    assert_same_as_in_the_round(then, collected(case, batches), {tag: RUNS[tag] for tag in tags})


def test_without_the_lists_of_the_other_runs_the_numbers_would_not_stay() -> None:
    """Disagreement is counted over the documents of all runs of the round."""
    case = case_of("draws")
    then = evaluate(case.pool, case.drawn, **case.asked).results
    alone = build_pool(case.pool.topics, {"run0": RUNS["run0"]}, depth=10)
    design = replace(case.design, runs=("run0",), pool_digest=alone.digest)
    sample = replace(case.drawn.sample, pool_digest=alone.digest)
    place = find_pairs(
        case.pool.topic, case.pool.docno, among_topic=alone.topic, among_docno=alone.docno
    )
    rows = case.asked["labels"]
    moved = place[rows.pair]
    labels = LabelRows(moved[moved >= 0], rows.grade[moved >= 0])
    now = evaluate(
        alone,
        TopicRound(design, sample),
        labels=labels,
        measures=case.asked["measures"],
        max_grade=BEST,
    ).results
    for before, after in zip(then, now, strict=True):
        assert after.estimate.value == pytest.approx(before.estimate.value[:1], **EXACT)
    with pytest.raises(AssertionError):
        assert_same(then[0], now[0], ("run0",))


# -------------------------------------------------------------------------------- later runs


@pytest.mark.slow
@pytest.mark.parametrize("late", [tuple(LATE), ("another",)], ids=str)
@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_a_later_run_gets_the_numbers_it_would_have_in_the_round(
    name: str, batches: int, late: tuple[str, ...]
) -> None:
    case = case_of(name)
    runs = {tag: LATE[tag] for tag in late}
    then = evaluate(
        case.pool, case.drawn, joined=pool_of(RUNS | runs), batches=batches, **case.asked
    )
    collection = collected(case, batches)
    of_round = {tag: RUNS[tag] for tag in case.design.runs}
    for asked in (runs, {"run0": RUNS["run0"]} | runs, of_round | runs):
        now = evaluated(collection, asked)
        assert (now.draws, now.judgments) == (then.draws, then.judgments)
        for before, after in zip(then.results, now.results, strict=True):
            assert after.runs == tuple(sorted(asked))
            assert_same(before, after, after.runs)
            assert after.support[after.runs.index("another")] < 1.0
    for before, after in zip(then.results, now.results, strict=True):
        assert_same_ranking(before, after)


def test_only_the_runs_that_are_asked_for_are_compared() -> None:
    case = case_of("draws")
    collection = collected(case)
    one, other = evaluated(collection, LATE).results[0], case.together()[0]
    assert one.ranking.rank.tolist() in ([1, 2], [2, 1])
    at = [other.runs.index(tag) for tag in one.runs]
    assert one.ranking.difference_se[0, 1] == other.ranking.difference_se[at[0], at[1]]
    assert one.ranking.adjusted_p[0, 1] <= other.ranking.adjusted_p[at[0], at[1]]


@pytest.mark.slow
def test_another_run_by_the_tag_of_one_of_the_round_is_a_later_run() -> None:
    collection = collected(case_of("self-normalized"))
    for tag in RUNS:
        then = evaluated(collection, {"another": LATE["another"]}).results
        now = evaluated(collection, {tag: LATE["another"]}).results
        for before, after in zip(then, now, strict=True):
            assert after.runs == (tag,)
            assert_same(before, after, ("another",))


def test_a_run_of_the_pool_that_is_not_judged_is_a_later_run() -> None:
    case = case_of("one run")
    assert case.design.runs == ("run0",)
    collection = collected(case)
    then = evaluated(collection, {"copy": RUNS["run1"]}).results[0]
    now = evaluated(collection, {"run1": RUNS["run1"]}).results[0]
    assert_same(then, now, ("copy",))
    assert now.support[0] < 1.0


def test_documents_out_of_reach_speak_for_a_later_run(ranked) -> None:
    """As good as the best as far as it was judged, and as bad as the worst: nobody can say."""
    old = {"best": ranked({"t1": "ab", "t2": "cd"}), "worst": ranked({"t1": "xy", "t2": "zw"})}
    late = {"novel": ranked({"t1": "uv", "t2": "st"})}
    pool = build_pool(["t1", "t2"], old, depth=2)
    design = design_of(pool, DCG, budget=8.0)
    sample = census_of(pool, design)
    sample = replace(sample, draws=sample.draws[:0], draw_batch=sample.draw_batch[:0])
    grades = np.where(np.isin(pool.docno, [b"a", b"b", b"c", b"d"]), BEST, 0)
    collection = publish(
        pool, TopicRound(design, sample),
        labels=LabelRows(np.arange(8), grades), batches=1, max_grade=BEST,
        version="0.1",
    )  # fmt: skip
    result = collection.evaluate(old | late, measures=[DCG]).results[0]
    assert result.runs == ("best", "novel", "worst")
    assert result.support.tolist() == [1.0, 0.0, 1.0]
    assert result.ranking.verdicts.tolist() == [[0, 0, 1], [0, 0, 0], [-1, 0, 0]]


# ------------------------------------------------------------------------- over all samples


@pytest.fixture
def pool(ranked) -> Pool:
    """Four topics, the last without documents."""
    return build_pool(TOPICS, runs_of(ranked), depth=3)


def moments(
    pool: Pool,
    late: dict[str, RankedLists],
    measure: Measure,
    change: Callable[[RoundCollection], RoundCollection] = lambda collection: collection,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expectation and covariance of the values, and what the covariance is said to be."""
    design = design_of(pool, measure)
    value, square, told = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2))
    for chance, sample in every_sample(design, draws=2):
        collection = change(
            publish(
        pool, TopicRound(design, sample),
        labels=judgments(pool, design, sample), batches=1,
                max_grade=BEST, version="0.1",
            )
        )  # fmt: skip
        estimate = collection.evaluate(late, measures=[measure]).results[0].estimate
        value += chance * estimate.value
        square += chance * np.multiply.outer(estimate.value, estimate.value)
        told += chance * estimate.covariance
    return value, square - np.multiply.outer(value, value), told


def expected_of(pool: Pool, late: dict[str, RankedLists], runs, measure: Measure) -> np.ndarray:
    joined = build_pool(TOPICS, runs | late, depth=3)
    grades = worthless_out_of_reach(pool, joined, design_of(pool, measure))
    values = values_of(joined, grades, measure)
    return values[[joined.runs.index(tag) for tag in late]]


@pytest.mark.parametrize("measure", [DCG, ERR, AP, NDCG], ids=str)
def test_later_runs_are_unbiased_over_all_samples_of_topics(
    pool: Pool, ranked, measure: Measure
) -> None:
    late = {tag: ranked(lists) for tag, lists in NEW.items()}
    value, covariance, told = moments(pool, late, measure)
    assert value == pytest.approx(expected_of(pool, late, runs_of(ranked), measure), **EXACT)
    assert told == pytest.approx(covariance, **EXACT)
    assert np.diag(covariance).min() > 1e-3


@pytest.mark.parametrize("measure", [DCG, ERR, AP, NDCG], ids=str)
def test_twin_that_takes_all_topics_for_equally_likely_is_caught(
    pool: Pool, ranked, measure: Measure
) -> None:
    def alike(collection: RoundCollection) -> RoundCollection:
        drawn = collection.drawn
        eligible = drawn.design.eligible
        even = eligible / np.count_nonzero(eligible)
        design = replace(drawn.design, probability=even)
        return replace(collection, drawn=TopicRound(design, drawn.sample))

    late = {tag: ranked(lists) for tag, lists in NEW.items()}
    value, _, _ = moments(pool, late, measure, alike)
    expected = expected_of(pool, late, runs_of(ranked), measure)
    assert np.abs(value - expected).max() > 0.002


# --------------------------------------------------------------------------- what is kept


def test_nothing_is_kept_of_batches_that_are_not_complete() -> None:
    case = case_of("draws")
    one, both = collected(case, 1), collected(case, 2, seeds=["s"])
    assert (one.seeds, both.seeds) == ((None,), ("s",))
    assert one.drawn.design.steps.tolist() == both.drawn.design.steps[:1].tolist()
    assert one.drawn.sample.batch.tolist() == [1] * len(one.drawn.sample.topic)
    assert len(one.drawn.sample.topic) < len(both.drawn.sample.topic)
    assert set(one.drawn.sample.draws) == set(one.drawn.sample.topic)
    assert set(one.labels.pair) == set(one.sampled) < set(both.sampled)


def test_the_order_of_draws_within_a_batch_is_not_kept() -> None:
    case = case_of("self-normalized")
    sample = case.drawn.sample
    order = np.lexsort((-sample.draws, sample.draw_batch))
    turned = replace(sample, draws=sample.draws[order])
    assert turned.draws.tolist() != sample.draws.tolist()
    then = collected(case).drawn.sample.draws.tolist()
    case.drawn = TopicRound(case.design, turned)
    assert collected(case).drawn.sample.draws.tolist() == then
    for batch in (1, 2):
        drawn = np.sort(sample.draws[sample.draw_batch == batch]).tolist()
        assert [then[at] for at in np.flatnonzero(sample.draw_batch == batch)] == drawn


def test_the_rows_of_judgments_have_no_order() -> None:
    case = case_of("shallow")
    assert_the_rows_of_judgments_have_no_order(
        lambda labels: collected(case, labels=labels), case.asked["labels"]
    )


def test_measures_are_those_of_the_round_or_of_the_goal() -> None:
    case = case_of("ratios")
    assert collected(case).measures == tuple(case.asked["measures"])
    without = publish(
        case.pool, TopicRound(case.design, case.drawn.sample),
        labels=case.asked["labels"], batches=2,
        max_grade=BEST, version="0.1",
    )  # fmt: skip
    assert without.measures == (parse_measure("AP"),)
    assert without.intervals == ("student",)
    assert without.pool_digest == replace(case.pool, score=None).digest


# ------------------------------------------------------------------------------- bad input


@pytest.fixture(scope="module")
def good() -> RoundCollection:
    return collected(case_of("draws"), seeds=["s"])


def test_what_does_not_belong_together() -> None:
    case = case_of("draws")
    with pytest.raises(CollectionError, match="do not belong together"):
        publish(
        case.joined, TopicRound(case.design, case.drawn.sample),
        labels=case.asked["labels"], batches=1,
            max_grade=BEST, version="0.1",
        )  # fmt: skip
    with pytest.raises(ValueError, match="batches must be a whole number between 1 and 2, not 3"):
        collected(case, 3)
    rows = case.asked["labels"]
    with pytest.raises(CollectionError, match="was sampled but is not judged"):
        collected(case, labels=LabelRows(rows.pair[:5], rows.grade[:5]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MAE", "cannot be computed from topics that are judged whole"),
        ("#ofSwaps", "judged on pairs|judged whole"),
        ("AP", "AP needs every document of a topic judged"),
        ("DCG@9", "DCG@9 looks deeper than the 3 judged ranks"),
    ],
)
def test_measures_that_cannot_be_estimated(text: str, message: str) -> None:
    collection = collected(case_of("shallow"))
    for runs in ({"run0": RUNS["run0"]}, LATE):
        with pytest.raises(MeasureError, match=message):
            collection.evaluate(runs, measures=[parse_measure(text)])


def test_questions_that_have_no_answer(good: RoundCollection) -> None:
    assert_questions_without_answer_are_refused(good)
