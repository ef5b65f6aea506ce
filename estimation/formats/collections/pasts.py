"""What was there before an adaptive round began, as its judged collection has it.

``known.tsv.gz``
    topic, docno; where the round continues another, label, find, chance and reached_1, reached_2, …
    as well: the pairs that were judged, and what `past.EarlierSums` says of these. They are in the
    sample for certain, and no batch drew them.
``past.tsv.gz``
    topic, docno, left, planned: of every pair of the pool, see `past.Past`; where the round
    continues another, spread, once, cubes, shared_1, …, moved_1, … and products_1_1, … as well. The
    numbers behind are levels of the model.

A round that tops up alone has these tables, and says so in ``collection.json``; others have none.
"""

from collections.abc import Iterator

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, frozen
from estimation.core.data.pool import Pool
from estimation.core.rounds.adaptive.grades import grade_levels
from estimation.core.rounds.adaptive.past import EarlierSums, Past
from estimation.formats.collections import facts as common
from estimation.formats.collections.ranked import RankedFacts, RankedReading
from estimation.formats.collections.reading import Row
from estimation.formats.collections.tables import PAIR, Column, Form, Numbers, Table, real

KNOWN, PAST = "known.tsv.gz", "past.tsv.gz"
ALONE, CONTINUED = "alone", "continued"
MOST = 1e30  # of weights: squares of products of them are still numbers
FIELD = common.Field(
    f"{ALONE} or {CONTINUED}",
    lambda told: told in (ALONE, CONTINUED),
    lambda past: ALONE if past.sums is None else CONTINUED,
    may_be_missing=True,
    known=(ALONE, CONTINUED),
)
_OF_JUDGED = {"label": "on_label", "find": "on_find", "chance": "chance"}
_OF_PAIRS = "spread", "once", "cubes"


def past_forms(facts: RankedFacts) -> list[Form]:
    """The tables of a round that adds to what is judged; none of others."""
    told = facts.drawn["past"]
    if told is None:
        return []
    of_judged: list[Column] = []
    of_pairs = [real("left", 0.0, 1.0), real("planned", 0.0, 1.0)]
    if told == CONTINUED:
        levels = len(grade_levels(facts.max_grade))
        of_judged = [real("label", 0.0, MOST), real("find", 0.0, MOST), real("chance", 0.0, 1.0)]
        of_judged += [real(name, 0.0, 1.0) for name in _by_level("reached", levels)]
        of_pairs += [real(name, 0.0, MOST) for name in _names_of_sums(levels)]
    return [Form(KNOWN, PAIR, of_judged), Form(PAST, PAIR, of_pairs)]


def past_rows(pool: Pool, past: Past) -> Iterator[Row]:
    """Yield the rows of these tables."""
    of_judged: Numbers = {}
    of_pairs: Numbers = {"left": past.left, "planned": past.planned}
    if (sums := past.sums) is not None:
        reached = dict(zip(_by_level("reached", len(sums.reached)), sums.reached, strict=True))
        of_judged = {name: getattr(sums, each) for name, each in _OF_JUDGED.items()} | reached
        rows = [*(getattr(sums, name) for name in _OF_PAIRS)]
        rows += [*sums.shared, *sums.moved, *sums.products]
        names = _names_of_sums(len(sums.shared))
        of_pairs = {**of_pairs, **dict(zip(names, rows, strict=True))}
    yield KNOWN, past.judged, of_judged
    yield PAST, np.arange(len(pool)), of_pairs


def read_past(reading: RankedReading, pool: Pool) -> Past | None:
    """Return what was there before; None where nothing counts that was."""
    told = reading.facts.drawn["past"]
    if told is None:
        return None
    known, pairs = reading.table(KNOWN), reading.table(PAST)
    for table in (known, pairs):
        reading.refuse_repeated_pairs(table)
        foreign = table.places(pool.topic, pool.docno) < 0
        reading.refuse(table, foreign, "docno", "a pair of pairs.tsv.gz", table.pair)
    if len(pairs) != len(pool):
        reading.error(PAST, None, "docno", f"{len(pool)} pairs, those of the pool", len(pairs))
    reading.go_on()
    known, judged = _in_order(known, pool)
    pairs, _ = _in_order(pairs, pool)
    numbers = pairs.numbers
    left, planned = (frozen(numbers[name]) for name in ("left", "planned"))
    unplanned = planned[judged] == 0.0
    reading.refuse(
        known, unplanned, "docno", f"pairs whose planned in {PAST} is above 0", known.pair
    )
    if told == CONTINUED:
        impossible = known.numbers["chance"] == 0.0
        reading.refuse(known, impossible, "chance", "a number above 0", known.pair)
    reading.go_on()
    sums = _sums(known, pairs, reading.facts.max_grade) if told == CONTINUED else None
    return Past(frozen(judged), left, planned, sums)


def _in_order(table: Table, pool: Pool) -> tuple[Table, IntArray]:
    place = table.places(pool.topic, pool.docno)
    return table.ordered(place), np.sort(place)


def _sums(known: Table, pairs: Table, max_grade: int) -> EarlierSums:
    levels = len(grade_levels(max_grade))

    def rows(table: Table, names: list[str]) -> FloatArray:
        return frozen(np.stack([table.numbers[name] for name in names]))

    of_judged = {each: frozen(known.numbers[name]) for name, each in _OF_JUDGED.items()}
    return EarlierSums(
        **{name: frozen(pairs.numbers[name]) for name in _OF_PAIRS},
        **of_judged,
        shared=rows(pairs, _by_level("shared", levels)),
        moved=rows(pairs, _by_level("moved", levels)),
        products=rows(pairs, _by_levels(levels)),
        reached=rows(known, _by_level("reached", levels)),
    )


def _names_of_sums(levels: int) -> list[str]:
    of_levels = [*_by_level("shared", levels), *_by_level("moved", levels)]
    return [*_OF_PAIRS, *of_levels, *_by_levels(levels)]


def _by_level(name: str, levels: int) -> list[str]:
    return [f"{name}_{level}" for level in range(1, levels + 1)]


def _by_levels(levels: int) -> list[str]:
    first, second = (1 + each for each in np.triu_indices(levels))
    return [f"products_{one}_{two}" for one, two in zip(first, second, strict=True)]
