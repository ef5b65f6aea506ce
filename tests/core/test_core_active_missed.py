"""What may have been missed by an active round of which most documents are judged."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import build_pool
from estimation.core.inference.intervals import difference_variances
from estimation.core.inference.ranks import adjusted_by_missed
from estimation.core.inference.ratio_knowledge import INEXACT
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.active.estimates import ActiveEstimate, estimate
from estimation.core.rounds.active.expected import LikelyUtility, left_of, missed_of_topics
from estimation.core.rounds.active.lists import ActiveFrame, make_frame
from estimation.core.rounds.active.rounds import ActiveRound, make_plan
from estimation.core.rounds.active.steps import History, Steps
from estimation.core.rounds.active.values import TopicSample, topic_line, topic_result
from estimation.core.rounds.comparison import _least_of_all
from estimation.core.rounds.evaluation import evaluate
from tests.core.simulated_pools import simulated_pool

RUNS = {"alpha": "abcde", "beta": "bdca", "gamma": "ebd"}
MEASURE = parse_measure("P@2")


@pytest.fixture
def frame(ranked) -> ActiveFrame:
    runs = {tag: ranked({"t1": letters}) for tag, letters in RUNS.items()}
    return make_frame(build_pool(["t1"], runs, depth=5))


def judged(pool, grades: np.ndarray, share: float, measure: str = "P@10") -> tuple:
    """A round of a share of a pool, and its judgments."""
    plan = make_plan(
        pool,
        measures=[parse_measure(measure)],
        budget=round(share * len(pool)),
        batch_size=len(pool) // 4,
    )
    drawn = ActiveRound.begin(pool, plan, seed="s")
    while drawn.planned < drawn.batches:
        labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
        drawn = drawn.extended(pool, labels=labels)
    return drawn, LabelRows(drawn.sample.pair, grades[drawn.sample.pair])


def estimated(share: float, form: str = "sequential") -> ActiveEstimate:
    pool, grades = simulated_pool()
    drawn, labels = judged(pool, grades, share)
    (found,) = estimate(make_frame(pool), drawn.sample, labels=labels, measures=["P@10"], form=form)
    return found


def test_what_is_left_of_a_topic_by_hand(frame) -> None:
    """Of five documents three are judged; the two others are relevant with .2 and .4."""
    grades = np.array([1, 0, 1, 1, 0])
    drawn, _ = judged(frame.pool, grades, 0.6, "P@2")
    steps = Steps.of(frame.lists(0), History.of(frame, drawn.sample), 0)
    documents = np.sort(drawn.sample.pair)
    left = np.setdiff1d(np.arange(5), documents)
    mean = grades.astype(np.float64)
    mean[left] = (0.2, 0.4)
    sample = TopicSample.of(frame.lists(0), documents, steps.weights(documents))
    utility = grades[documents].astype(np.float64)
    line = topic_line(
        sample, MEASURE, utility, topic_result(sample, MEASURE, utility, "sequential")
    )
    found = left_of(steps, line, LikelyUtility(mean, mean))
    weight = frame.pool.weights(MEASURE, np.arange(5)).toarray()
    assert found.squares == pytest.approx(np.einsum("i,ij,il->jl", mean[left], *2 * [weight[left]]))
    assert found.total == pytest.approx(mean[left] @ weight[left])
    assert found.cubes == pytest.approx(mean[left] @ weight[left] ** 3)
    missed = missed_of_topics([found, found], topics=2)
    assert missed.squares == pytest.approx(found.squares / 2.0)
    returned = found.total > 0.0
    assert missed.step[returned] == pytest.approx(0.25), "one of two ranks of one of two topics"
    some, rest = (weight[each] ** 2 for each in (left, documents))
    share = 2.0 * some.sum(axis=0) / (2.0 * rest.sum(axis=0) + (weight**2).max(axis=0))
    assert missed.left == pytest.approx(share)


@pytest.mark.slow
def test_only_where_most_is_judged_can_one_document_matter() -> None:
    assert estimated(0.2).missed is None
    assert estimated(0.8, form="corrected").missed is None
    missed = estimated(0.8).missed
    assert np.all(missed.step > 0.0)
    assert np.all(np.diag(missed.squares) >= 0.0)


@pytest.mark.slow
def test_no_difference_is_told_by_less_than_may_have_been_missed() -> None:
    """Nor by less than half of what was expected, where the squares come out below 0."""
    pool, grades = simulated_pool()
    drawn, labels = judged(pool, grades, 0.8)
    given = {"labels": labels, "measures": [parse_measure("P@10")], "max_grade": 3}
    (result,) = evaluate(pool, drawn, **given).results
    found, shown = estimated(0.8), result.estimate
    inexact = np.add.outer(found.value**2, found.value**2) * INEXACT**2 * (1.0 - np.eye(6))
    half = np.sqrt(difference_variances(found.likely) / 2.0 + inexact)
    least = found.missed.least_errors(confidence=0.95)
    assert shown.difference_least == pytest.approx(half)
    assert _least_of_all(shown, 0.95) == pytest.approx(np.maximum(half, least))
    assert np.any(least > half)
    by_missed = adjusted_by_missed(shown.missed, result.ranking.difference)
    assert np.any(by_missed[~np.eye(len(half), dtype=bool)] > 0.05)
    assert not result.ranking.verdicts[by_missed > 0.05].any()
    reach = found.value + found.missed.least_reach(confidence=0.95)
    assert np.all(shown.high >= np.minimum(reach, 1.0) - 1e-12)


@pytest.mark.slow
def test_a_census_has_missed_nothing() -> None:
    pool, grades = simulated_pool()
    drawn, labels = judged(pool, grades, 1.0)
    given = {"labels": labels, "measures": [parse_measure("P@10")], "max_grade": 3}
    shown = evaluate(pool, drawn, **given).results[0].estimate
    assert shown.high == pytest.approx(shown.value)
    assert shown.difference_least == pytest.approx(0.0, abs=1e-7)
