"""Rounds in which nothing was found, or nothing varies, do not say that runs are alike.

Squares are then 0, and so is what is expected by what was found: as if all were known.
"""

from collections.abc import Callable

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.inference.equivalence import Negligible
from estimation.core.inference.unknown import Reason, all_known
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.active import limits
from estimation.core.rounds.active.rounds import ActiveRound, make_plan
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import DrawnRound, MeasureResult
from estimation.core.rounds.rounds import TopicRound
from estimation.core.rounds.topics import estimates
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.draws import draw_queries
from estimation.core.rounds.topics.grade_models import uniform_grades
from estimation.core.sampling import goals
from tests.core.test_core_agreement_by_chance import pool_of

TOPICS, PRECISION, AP = 12, parse_measure("P@3"), parse_measure("AP")
LISTS = [[0, 1, 2, 3, 4] for _ in range(TOPICS)]
POOL = pool_of(a=LISTS, b=[each[::-1] for each in LISTS], copy=LISTS)
A, B, COPY = map(POOL.run_index, ("a", "b", "copy"))
NONE = np.zeros(len(POOL), dtype=np.int64)
Begin = Callable[[Measure], DrawnRound]


def some_topics(measure: Measure) -> DrawnRound:
    """Three topics of twelve, or four."""
    model = uniform_grades(POOL, max_grade=1)
    about = {"goal": goals.absolute(*POOL.runs), "measure": measure}
    design = make_query_design(POOL, model=model, budget=0.3 * len(POOL), **about)
    return TopicRound(design, draw_queries(POOL, design, seed="s"))


def active(measure: Measure) -> DrawnRound:
    plan = make_plan(POOL, measures=[measure], budget=20, batch_size=20)
    return ActiveRound.begin(POOL, plan, seed="s")


def told(drawn: DrawnRound, measure: Measure, grades: np.ndarray) -> MeasureResult:
    pairs = drawn.pairs(POOL)
    asked = {"measures": [measure], "negligible": Negligible(measure, 0.01), "max_grade": 1}
    return evaluate(POOL, drawn, labels=LabelRows(pairs, grades[pairs]), **asked).results[0]


def equivalent(found: MeasureResult) -> np.ndarray:
    assert found.equivalence is not None
    return found.equivalence.pairs(found.ranking.unknown)


@pytest.mark.parametrize("measure", [PRECISION, AP], ids=str)
def test_topics_in_which_nothing_was_found_tell_of_no_difference(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only runs with the same lists are as good as one another, found or not."""
    drawn = some_topics(measure)
    found = told(drawn, measure, NONE)
    assert found.ranking.unknown[A, B] == found.ranking.unknown[B, COPY] == Reason.TOO_LITTLE
    assert found.ranking.unknown[A, COPY] == Reason.KNOWN
    assert equivalent(found).sum() == 2
    monkeypatch.setattr(estimates, "unvaried_differences", lambda *_: all_known(3, 3))
    assert equivalent(told(drawn, measure, NONE)).sum() == 6, "the twin"


def test_topics_of_one_value_do_not_tell_it_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """One document of each list is relevant, which one run has first and another last.

    How ratios vary is known from those of the drawn topics alone.
    """
    grades = np.array([docno == b"d00" for docno in POOL.docno.tolist()]).astype(np.int64)
    drawn = some_topics(AP)
    found = told(drawn, AP, grades)
    assert found.estimate.value[[A, B]] == pytest.approx([1.0, 0.2])
    assert found.estimate.low[A] < 0.5
    assert found.estimate.high[B] > 0.5
    assert found.ranking.verdicts[A, B] == 0
    assert not equivalent(found)[A, B]
    monkeypatch.setattr(estimates, "unvaried_differences", lambda *_: all_known(3, 3))
    assert told(drawn, AP, grades).ranking.verdicts[A, B] == 1, "the twin"


def test_an_active_round_that_found_nothing_tells_of_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = active(PRECISION)
    found = told(drawn, PRECISION, NONE)
    assert found.ranking.unknown[A, B] == Reason.TOO_LITTLE
    assert not equivalent(found).any()
    monkeypatch.setattr(limits, "none_known", lambda runs, _: all_known(runs, runs))
    assert equivalent(told(drawn, PRECISION, NONE)).all(where=~np.eye(3, dtype=bool)), "the twin"


@pytest.mark.parametrize("begin", [some_topics, active])
def test_a_census_that_found_nothing_is_known(begin: Begin) -> None:
    """Everything is judged: all runs have the value 0."""
    if begin is active:
        plan = make_plan(POOL, measures=[PRECISION], budget=len(POOL), batch_size=len(POOL))
        drawn: DrawnRound = ActiveRound.begin(POOL, plan, seed="s")
    else:
        model = uniform_grades(POOL, max_grade=1)
        about = {"goal": goals.absolute(*POOL.runs), "measure": PRECISION}
        design = make_query_design(POOL, model=model, budget=len(POOL), **about)
        drawn = TopicRound(design, draw_queries(POOL, design, seed="s"))
    found = told(drawn, PRECISION, NONE)
    assert not found.ranking.unknown.any()
    assert equivalent(found).sum() == 6
    assert found.estimate.high.tolist() == [0.0, 0.0, 0.0]
