"""``outlook.tsv.gz``: what was expected of the pairs of a collection.

topic, docno, belief_1, belief_2, …, reach_1, reach_2, …: one row for every pair that could be drawn
in a round. ``belief_2`` is what the prior of round 2 believed of the pair, as a share of the best
utility; ``reach_3`` the expected share of judgments with grade 3 or better. A round of which it is
not known what was believed has no column, nor has a grade that the model does not tell apart.

Values do not depend on any of it, but intervals and verdicts do. They do not on pairs that no round
could draw, which have no row: whatever would be expected of them, no sample could have missed them.
No run is named, but pairs of a topic with the same numbers were mostly returned by the same runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, frozen
from estimation.core.collections.base import RoundCollection
from estimation.core.inference.outlook import KnownOutlook
from estimation.formats.collections.pair_facts import PairFacts
from estimation.formats.collections.reading import CollectionReading, Row
from estimation.formats.collections.tables import Form, Table, fraction

OUTLOOK = "outlook.tsv.gz"


def outlook_form(facts: PairFacts, key: Sequence[str]) -> Form:
    """The table, in which any columns may be missing."""
    names = [_belief(number) for number in range(1, len(facts.rounds) + 1)]
    names += [_reach(level) for level in range(1, facts.max_grade + 1)]
    return Form(OUTLOOK, key, list(map(fraction, names)), optional=True)


def outlook_rows(collection: RoundCollection) -> Row | None:
    """Return the rows of the table, by pair; None if it would have no columns."""
    beliefs = [part.design.belief for part in collection.parts]
    columns = {_belief(n): each for n, each in enumerate(beliefs, start=1) if each is not None}
    if collection.outlook is not None:
        levels, reach = collection.outlook.levels.tolist(), collection.outlook.reached
        columns |= {_reach(level): each for level, each in zip(levels, reach, strict=True)}
    pairs = np.flatnonzero(collection.within_reach)
    told = {name: column[pairs] for name, column in columns.items()}
    return (OUTLOOK, pairs, told) if told else None


def _belief(number: int) -> str:
    return f"belief_{number}"


def _reach(level: int) -> str:
    return f"reach_{level}"


# --------------------------------------------------------------------------------- reading


@dataclass(frozen=True, eq=False)
class Expected:
    """What each of R rounds believed of N pairs, (N,) or None, and their outlook."""

    beliefs: tuple[FloatArray | None, ...]
    outlook: KnownOutlook | None


def read_outlook(reading: CollectionReading[PairFacts]) -> Table:
    """Read the table; what is expected of better grades must not be more."""
    table = reading.table(OUTLOOK)
    if not table.numbers:
        names = [column.name for column in reading.forms[OUTLOOK].columns]
        wanted = f"one of the columns {names[0]} to {names[-1]}"
        reading.error(OUTLOOK, 1, "columns", wanted, "none")
    for before, after in pairwise(map(_reach, _levels(table))):
        least, found = table.numbers[before], table.numbers[after]
        for row in np.flatnonzero(found > least).tolist():
            wanted = f"at most {least[row]}, which is {before}"
            reading.error(table, row, after, wanted, found[row])
    return table


def _levels(table: Table) -> list[int]:
    """The grades that have a column, ascending."""
    kinds = (name.split("_") for name in table.numbers)
    return [int(number) for kind, number in kinds if kind == "reach"]


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
