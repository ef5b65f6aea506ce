"""Races of adaptive rounds that look for the best run: a table of their own.

``races.tsv.gz``
    batch, run, priority: which differences mattered when the batch was planned, of every run of the
    goal; 0 is the one that led, and that the others were compared with. Only batches of which
    something was learned have rows. The table is there if the goal of the round is "winner".
"""

from collections.abc import Container

import numpy as np

from estimation.core.arrays import IntArray, frozen
from estimation.core.rounds.adaptive.race import WHOLE
from estimation.core.rounds.adaptive.state import AdaptiveState
from estimation.core.sampling.goals import Goal, Race
from estimation.formats.collections.archive import FACTS
from estimation.formats.collections.ranked import MAX_ENTRIES, RankedFacts, RankedReading
from estimation.formats.collections.reading import Row
from estimation.formats.collections.tables import ROUND, Form, Table, name, whole
from judging.formats.problems import show

RACES = "races.tsv.gz"


def has_races(goal: Goal) -> bool:
    """Return whether a round with a goal has the table."""
    return goal.kind == "winner"


def race_form(facts: RankedFacts, *, batches: int) -> Form:
    """The table of a round of so many batches; before the first nothing is known."""
    batch = whole("batch", min(2, batches), batches)
    run = name("run", facts.runs, f"a run of {FACTS}")
    return Form(RACES, ROUND, [batch, run, whole("priority", 0, WHOLE)], most=MAX_ENTRIES)


def race_rows(state: AdaptiveState, runs: IntArray) -> Row:
    """Return the rows by batch, then run; `runs` are those of the goal, by place in the pool."""
    own = np.sort(runs)
    races = [(at, step.race) for at, step in enumerate(state.steps, start=1) if step.race]
    batch = np.repeat(np.array([at for at, _ in races], dtype=np.int64), len(own))
    empty = np.array([], dtype=np.int64)
    priority = np.concatenate([empty, *(race.priority[own] for _, race in races)])
    return RACES, batch, {"batch": batch, "run": np.tile(own, len(races)), "priority": priority}


def read_races(
    reading: RankedReading, goal: Goal, *, planned: int, learned: Container[int]
) -> dict[int, Race]:
    """Return the races by batch: each of all runs of the goal, and one of them leads.

    `planned` is the number of planned batches, `learned` are those with a model.
    """
    if not has_races(goal):
        return {}
    table = reading.table(RACES)
    batch, run = table.whole("batch"), table.whole("run")

    def named(row: int) -> str:
        return f"run {show(reading.facts.runs[run[row]])} in batch {batch[row]}"

    reading.refuse_repeats(table, (run, batch), named, "run")
    foreign = ~np.isin(run, _places(reading, goal))
    reading.refuse(table, foreign, "run", "a run of the goal", named)
    known = [at for at in range(1, planned + 1) if at in learned]
    wanted = "a planned batch before which something was learned"
    reading.refuse(table, ~np.isin(batch, known), "batch", wanted, named)
    reading.go_on()
    return _by_batch(reading, goal, table)


def _places(reading: RankedReading, goal: Goal) -> IntArray:
    place = {tag: at for at, tag in enumerate(reading.facts.runs)}
    return np.array([place[tag] for tag in goal.runs], dtype=np.int64)


def _by_batch(reading: RankedReading, goal: Goal, table: Table) -> dict[int, Race]:
    batch, run, priority = (table.whole(each) for each in ("batch", "run", "priority"))
    found, needed = {}, len(goal.runs)
    for number in np.unique(batch).tolist():
        own = batch == number
        ahead = run[own & (priority == 0)]
        if np.count_nonzero(own) != needed:
            wanted = f"a priority of each of the {needed} runs of the goal in batch {number}"
            reading.error(RACES, None, "run", wanted, f"{np.count_nonzero(own)} of them")
        elif len(ahead) != 1:
            wanted = f"one run with the priority 0 in batch {number}, which leads"
            reading.error(RACES, None, "priority", wanted, f"{len(ahead)} of them")
        else:
            every = np.zeros(len(reading.facts.runs), dtype=np.int64)
            every[run[own]] = priority[own]
            found[number] = Race(int(ahead[0]), frozen(every))
    reading.go_on()
    return found
