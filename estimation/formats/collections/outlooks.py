"""``outlook.tsv.gz``: what was expected of the pairs of a collection.

topic, docno, belief_1, belief_2, …, reach_1, reach_2, …: one row for every pair that could be drawn
in a round. ``belief_2`` is what the prior of round 2 believed of the pair, as a share of the best
utility; ``reach_3`` the expected share of judgments with grade 3 or better. A round of which it is
not known what was believed has no column, nor has a grade that the model does not tell apart.

Values do not depend on any of it, but intervals and verdicts do. They do not on pairs that no round
could draw, which have no row: whatever would be expected of them, no sample could have missed them.
No run is named, but pairs of a topic with the same numbers were mostly returned by the same runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, frozen
from estimation.core.collections.base import RoundCollection
from estimation.core.inference.outlook import KnownOutlook
from estimation.formats.collections.reading import Reading
from estimation.formats.collections.rows import keys
from estimation.formats.collections.tables import Table, fraction

OUTLOOK = "outlook.tsv.gz"


@dataclass(frozen=True, eq=False)
class Expected:
    """What each of R rounds believed of N pairs, (N,) or None, and their outlook."""

    beliefs: tuple[FloatArray | None, ...]
    outlook: KnownOutlook | None


def expected_columns(collection: RoundCollection) -> dict[str, FloatArray]:
    """Return the columns of the table by their names, (N,) each; none if there is no table."""
    beliefs = [part.design.belief for part in collection.parts]
    columns = {_belief(n): each for n, each in enumerate(beliefs, start=1) if each is not None}
    if collection.outlook is not None:
        levels, reach = collection.outlook.levels.tolist(), collection.outlook.reached
        columns |= {_reach(level): each for level, each in zip(levels, reach, strict=True)}
    return columns


def outlook_rows(
    collection: RoundCollection, columns: Mapping[str, FloatArray]
) -> Iterator[tuple[str | float, ...]]:
    """Yield the rows of the table, by pair."""
    pairs = np.flatnonzero(collection.within_reach)
    numbers = zip(*(column[pairs].tolist() for column in columns.values()), strict=True)
    for key, each in zip(keys(collection, pairs), numbers, strict=True):
        yield *key, *each


def _belief(number: int) -> str:
    return f"belief_{number}"


def _reach(level: int) -> str:
    return f"reach_{level}"


# --------------------------------------------------------------------------------- reading


def read_outlook(reading: Reading, rounds: int, key: Sequence[str]) -> Table:
    """Read the table; what is expected of better grades must not be more."""
    names = [_belief(number) for number in range(1, rounds + 1)]
    names += [_reach(level) for level in range(1, reading.facts.max_grade + 1)]
    columns = [fraction(name, optional=True) for name in names]
    table = reading.table(OUTLOOK, *columns, key=key)
    if not table.numbers:
        wanted = f"expected one of the columns {names[0]} to {names[-1]}, found none"
        reading.member_error(OUTLOOK, 1, "columns", wanted)
    for before, after in pairwise(_levels(table)):
        _refuse_rising(reading, table, _reach(before), _reach(after))
    return table


def _levels(table: Table) -> list[int]:
    """The grades that have a column, ascending."""
    kinds = (name.split("_") for name in table.numbers)
    return [int(number) for kind, number in kinds if kind == "reach"]


def _refuse_rising(reading: Reading, table: Table, before: str, after: str) -> None:
    least, found = table.numbers[before], table.numbers[after]
    for row in np.flatnonzero(found > least).tolist():
        message = f"expected at most {float(least[row])!r}, which is {before}"
        reading.error(table, row, after, f"{message}, found {float(found[row])!r}")


def expected_of(table: Table, place: IntArray, *, pairs: int, rounds: int) -> Expected:
    """Return what a table says of N pairs, its rows being at `place`; 0 of pairs without a row."""

    def spread(name: str) -> FloatArray:
        values = np.zeros(pairs)
        values[place] = table.numbers[name]
        return frozen(values)

    beliefs = (_belief(number) for number in range(1, rounds + 1))
    levels = _levels(table)
    reach = frozen(np.array([spread(_reach(level)) for level in levels]))
    return Expected(
        beliefs=tuple(spread(name) if name in table.numbers else None for name in beliefs),
        outlook=KnownOutlook(frozen(np.array(levels)), reach) if levels else None,
    )
