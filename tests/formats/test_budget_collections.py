"""Judged collections of adaptive rounds that keep to hours: what every batch was planned for."""

import json
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.formats.collections.archive import FACTS
from tests.core.test_core_adaptive import labels_of
from tests.core.test_core_adaptive_collection import MEASURES, Case
from tests.formats.collection_files import assert_bad_fact, member, read, written

BUDGETS = (None, 45.0, 90.5, 71.25)


def paced(planned: int) -> Case:
    case = Case()
    drawn = AdaptiveRound.begin(case.pool, case.drawn.design, seed="s")
    for budget in BUDGETS[1:planned]:
        labels = labels_of(drawn.sample.pair, case.grades)
        drawn = drawn.extended(case.pool, labels=labels, budget=budget)
    case.drawn, case.labels = drawn, labels_of(drawn.sample.pair, case.grades)
    return case


CASE = paced(4)
GOOD, SOME = written(CASE.collected(4)), written(CASE.collected(3))


def test_numbers_and_pairs_are_those_of_the_round() -> None:
    found, problems = read(GOOD)
    assert found is not None, problems.as_dict()
    assert isinstance(found.drawn, AdaptiveRound)
    assert found.drawn.budgets == CASE.drawn.budgets == BUDGETS
    again = found.drawn.redrawn(found.pool, seed="s").sample
    for name in ("pair", "batch", "chance"):
        np.testing.assert_array_equal(getattr(again, name), getattr(CASE.drawn.sample, name))
    now = found.evaluate(found.pool, measures=MEASURES)
    for before, after in zip(CASE.asked().results, now.results, strict=True):
        assert before.estimate.value.tolist() == after.estimate.value.tolist()
        assert before.estimate.covariance.tolist() == after.estimate.covariance.tolist()


def test_some_batches_have_the_budgets_of_these() -> None:
    found, problems = read(SOME)
    assert found is not None, problems.as_dict()
    assert found.drawn.budgets == BUDGETS[:3]


def test_rounds_that_keep_to_no_hours_say_nothing_of_it() -> None:
    plain = written(Case().collected(4))
    assert "budgets" not in json.loads(member(plain, FACTS))
    assert read(plain)[0].drawn.budgets is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "a number of at least 0 for each planned batch, or null"),
        ([None, -1.0, 2.0, 3.0], "a number of at least 0 for each planned batch, or null"),
        ([None, float("nan"), 2.0, 3.0], None),
        ([None, "1", 2.0, 3.0], "a number of at least 0 for each planned batch, or null"),
        ([None, 1.0], "4 of them, one per planned batch"),
    ],
)
def test_a_bad_budget_is_named(value: object, message: str | None) -> None:
    assert_bad_fact(GOOD, "budgets", value, message)


def test_a_state_with_other_budgets_is_another() -> None:
    """What was worked out of a state is kept for one that begins as it did."""
    state = CASE.drawn.sample
    assert state.following(state) is not state
    for budget in (None, 1.0):
        other = replace(state, steps=tuple(replace(step, budget=budget) for step in state.steps))
        assert other.following(state) is other
    *first, last = state.steps
    other = replace(state, steps=(*first, replace(last, budget=1.0)))
    assert other.following(state) is other
