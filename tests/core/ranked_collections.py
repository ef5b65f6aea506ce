"""What the tests of judged collections with ranked lists share."""

from collections.abc import Callable

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.data.ranked_lists import PoolError, RankedLists
from estimation.core.rounds.results import Evaluation, MeasureResult
from tests.core.comparing import OF_ONE_RUN, close
from tests.core.test_core_later_runs import LATE

MATRICES = ("covariance", "difference_df")
"""What replaces fields of a collection."""


def evaluated(collection: RoundCollection, runs: dict[str, RankedLists]) -> Evaluation:
    return collection.evaluate(runs, measures=collection.measures)


def assert_same(then: MeasureResult, now: MeasureResult, tags: tuple[str, ...]) -> None:
    """But for rounding: numbers `now` of runs, and `then` of the same ones by these tags."""
    at = [then.runs.index(tag) for tag in tags]
    assert len(now.runs) == len(tags)
    assert (now.measure, now.primary) == (then.measure, then.primary)
    assert list(now.estimators) == list(then.estimators)
    for name, before in then.estimators.items():
        after = now.estimators[name]
        for field in OF_ONE_RUN:
            assert getattr(after, field) == close(getattr(before, field)[at]), field
        for field in MATRICES:
            cells = getattr(before, field)[np.ix_(at, at)]
            assert getattr(after, field) == close(cells), field
    assert now.support == close(then.support[at])
    assert now.effective_sample_size == close(then.effective_sample_size[at])
    assert now.by_topic == close(then.by_topic[:, at])
    assert now.label_noise_measured == then.label_noise_measured
    found = [None if r.relevant_found is None else r.relevant_found.tolist() for r in (then, now)]
    assert found[0] == found[1]


def assert_same_ranking(then: MeasureResult, now: MeasureResult) -> None:
    for field in vars(then.ranking):
        before, after = (getattr(each.ranking, field) for each in (then, now))
        assert after == close(before), field


def assert_same_as_in_the_round(
    then: Evaluation, collection: RoundCollection, runs: dict[str, RankedLists]
) -> None:
    """Runs of the round have the numbers that they had there."""
    now, tags = evaluated(collection, runs), tuple(runs)
    for fact in ("batches", "judged_pairs", "judgments", "draws", "confidence"):
        assert getattr(now, fact) == getattr(then, fact)
    for before, after in zip(then.results, now.results, strict=True):
        assert after.runs == tags
        assert_same(before, after, tags)
        if tags == before.runs:
            assert_same_ranking(before, after)


def assert_the_rows_of_judgments_have_no_order(
    collected: Callable[[LabelRows], RoundCollection], rows: LabelRows
) -> None:
    shuffled = np.random.default_rng(2).permutation(len(rows.pair))
    one = collected(rows)
    other = collected(LabelRows(rows.pair[shuffled], rows.grade[shuffled]))
    assert one.labels.pair.tolist() == other.labels.pair.tolist()
    assert one.labels.grade.tolist() == other.labels.grade.tolist()


# ------------------------------------------------------------------------------- bad input


def assert_questions_without_answer_are_refused(good: RoundCollection) -> None:
    with pytest.raises(PoolError, match="one run"):
        evaluated(good, {})
    with pytest.raises(ValueError, match="must be a measure"):
        good.evaluate(LATE, measures=[])
    with pytest.raises(ValueError, match="confidence"):
        good.evaluate(LATE, measures=good.measures, confidence=1.0)
    with pytest.raises(ValueError, match="interval must be one of student for the method"):
        good.evaluate(LATE, measures=good.measures, interval="chernoff")
