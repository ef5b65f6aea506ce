"""Judged collections of rounds that look for the best run: the race is in them, and checked."""

import pytest

from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.sampling import goals
from estimation.formats.collections.archive import DRAWS
from estimation.formats.collections.races import RACES
from tests.core.test_core_adaptive_collection import CASES, Case
from tests.core.test_core_later_runs import RUNS
from tests.formats.collection_files import (
    Change,
    assert_bad_fact,
    cell,
    first,
    header_alone,
    line,
    member,
    read,
    repacked,
    rows_of,
    twice,
    with_row,
    without,
    written,
)

GOOD = written(CASES["race"]().collected(3))
SOME = written(CASES["race of some"]().collected(3))
LEADER = next(at for at, row in enumerate(rows_of(GOOD, RACES)) if row[2] == "0")
"""The row of the run that leads before batch 2."""


def test_the_race_of_every_batch_that_learned_is_told() -> None:
    drawn = CASES["race"]().drawn
    told = [tuple(row) for row in rows_of(GOOD, RACES)]
    races = {at: step.race for at, step in enumerate(drawn.sample.steps[:3], start=1) if step.race}
    assert sorted(races) == [2, 3]
    assert told == [
        (str(at), tag, str(priority))
        for at, race in races.items()
        for tag, priority in zip(RUNS, race.priority.tolist(), strict=True)
    ]


@pytest.mark.slow
def test_what_is_read_back_is_drawn_again_without_labels() -> None:
    found, problems = read(GOOD)
    assert found is not None, problems.as_dict()
    assert isinstance(found.drawn, AdaptiveRound)
    given = CASES["race"]().drawn
    again = found.drawn.redrawn(found.pool, seed=given.sample.seed)
    whole = given.prefix(found.pool, 3).sample
    assert again.sample.pair.tolist() == whole.pair.tolist()
    assert again.sample.batch.tolist() == whole.batch.tolist()


def test_other_goals_have_no_such_table() -> None:
    plain = written(Case().collected(3))
    with pytest.raises(KeyError):
        member(plain, RACES)
    assert read(plain)[0] is not None


def changed_leader() -> Change:
    return line(LEADER + 2, lambda row: [*row[:2], "7"])


@pytest.mark.parametrize(
    ("change", "number", "field", "message"),
    [
        (cell(2, 0, "1"), 2, "batch", "a whole number from 2 to 4, found '1'"),
        (cell(2, 0, "4"), 2, "batch", "a planned batch before which something was learned, found"),
        (cell(2, 1, "run9"), 2, "run", "a run of collection.json, found 'run9'"),
        (cell(2, 2, "-1"), 2, "priority", "a whole number from 0 to 1000000, found '-1'"),
        (cell(2, 2, "1000001"), 2, "priority", "a whole number from 0 to 1000000, found '1000001'"),
        (cell(2, 2, "nan"), 2, "priority", "a whole number from 0 to 1000000, found 'nan'"),
        (twice(2), None, "run", "in batch 2 once, found it on line 2 already"),
        (without(2), None, "run", "a priority of each of the"),
        (with_row("3", "run9", "5"), None, "run", "a run of collection.json, found 'run9'"),
        (changed_leader(), None, "priority", "one run with the priority 0 in batch 2, which leads"),
    ],
)
def test_a_bad_line_is_named(change: Change, number: int | None, field: str, message: str) -> None:
    file, at, where, told = first(repacked(GOOD, RACES, change))
    assert number is None or at == number
    assert (file, where) == (f"c.zip/{RACES}", field)
    assert message in told


def test_only_runs_of_the_goal_race() -> None:
    (other,) = {*RUNS} - {row[1] for row in rows_of(SOME, RACES)}
    file, _, field, told = first(repacked(SOME, RACES, cell(2, 1, other)))
    assert (file, field) == (f"c.zip/{RACES}", "run")
    assert "expected a run of the goal, found" in told


@pytest.mark.parametrize("change", [header_alone, cell(LEADER + 3, 2, "999999")])
def test_chances_follow_from_the_race(change: Change) -> None:
    file, _, field, told = first(repacked(GOOD, RACES, change))
    assert (file, field) == (f"c.zip/{DRAWS}", "chance")
    assert "which follows from the steps" in told


def test_a_race_of_one_is_none() -> None:
    goal = vars(goals.winner(*RUNS))
    assert_bad_fact(GOOD, "goal", goal | {"runs": ["run0"]}, "needs at least 2 runs, not 1")
