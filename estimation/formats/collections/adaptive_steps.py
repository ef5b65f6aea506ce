"""How batches of an adaptive round were planned, as its collection has it: see `adaptive`."""

import math

import numpy as np

from estimation.core.arrays import FloatArray, frozen
from estimation.core.rounds.adaptive.state import AdaptiveState
from estimation.formats.collections import facts as common
from estimation.formats.collections.archive import FACTS
from estimation.formats.collections.ranked import RankedReading
from estimation.formats.collections.reading import Row
from estimation.formats.collections.tables import Column, real

STEPS = "steps.tsv.gz"
BUDGETS = common.Field(
    "a number of at least 0 for each planned batch, or null",
    lambda told: isinstance(told, list) and all(map(_is_budget, told)),
    list,
    tuple,
    may_be_missing=True,
)
"""What the round was to spend when each batch was planned, of rounds that keep to hours."""


def constant_column(name: str) -> Column:
    """A column of constants; what makes all pairs certain is infinite."""
    number = real(name, 0.0, np.finfo(np.float64).max)
    wanted = "a number of at least 0, or inf"
    return Column(name, wanted, lambda text: math.inf if text == "inf" else number.read(text))


def _is_budget(told: object) -> bool:
    return told is None or common.is_above_zero(told) or told == 0


def read_budgets(reading: RankedReading, *, planned: int) -> tuple[float | None, ...]:
    """Of each of so many batches, or of none."""
    found: tuple[float | None, ...] | None = reading.facts.drawn["budgets"]
    if found is not None and len(found) != planned:
        wanted = f"{planned} of them, one per planned batch"
        reading.error(FACTS, None, "budgets", wanted, f"{len(found)}")
        reading.go_on()
    return found or (None,) * planned


def step_rows(state: AdaptiveState) -> Row:
    """By batch, then the batch that the constant leads to."""
    numbered = list(enumerate((step.constants for step in state.steps), start=1))
    batch = np.repeat(*np.array([(number, len(each)) for number, each in numbered]).T)
    until = np.concatenate([number + np.arange(len(each)) for number, each in numbered])
    constant = np.concatenate([each for _, each in numbered])
    return STEPS, batch, {"batch": batch, "until": until, "constant": constant}


def read_constants(reading: RankedReading) -> list[FloatArray]:
    """Of each batch a constant for itself and all after it, which never fall."""
    table, batches = reading.table(STEPS), len(reading.facts.drawn["steps"])
    batch, until = table.whole("batch"), table.whole("until")

    def named(row: int) -> str:
        return f"the constant of batch {batch[row]} for batch {until[row]}"

    reading.refuse_repeats(table, (until, batch), named, "until")
    reading.refuse(table, until < batch, "until", "the batch itself or a later one", named)
    reading.go_on()
    found = np.bincount(batch, minlength=2)[1:]
    needed = batches - np.arange(len(found))
    for at in np.flatnonzero(found != needed).tolist():
        wanted = f"constants of batch {at + 1} for each batch from {at + 1} to {batches}"
        reading.error(STEPS, None, "until", wanted, f"{found[at]} of them")
    reading.go_on()
    table = table.ordered(until, batch)
    batch, until, constant = table.whole("batch"), table.whole("until"), table.numbers["constant"]
    falls = np.append(False, (constant[1:] < constant[:-1]) & (batch[1:] == batch[:-1]))
    reading.refuse(table, falls, "constant", "constants that never fall", constant.item)
    reading.go_on()
    return [frozen(each) for each in np.split(constant, np.cumsum(needed)[:-1])]
