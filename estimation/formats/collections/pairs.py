"""Judged collections of pairs that were drawn, in one round or several that go together.

``collection.json``
    Topics, depth and grade scale, and of every round its method, its steps, and where it comes
    from; rounds with the same ``numbers`` share their random numbers.
``pairs.tsv.gz``
    topic, docno, round, size, probability: every pair that could be drawn in a round, drawn or not.
    The probability to be in the sample of the round follows from the size and its last step.
``ineligible.tsv.gz``
    topic, docno: pairs of the pool that could not be drawn in any round.
``draws.tsv.gz``
    topic, docno, round, batch, count: what was drawn; more than once only with replacement.
``judgments.tsv.gz``
    topic, docno, grade: one row per judgment, whichever rounds drew the pair.
``outlook.tsv.gz``
    See `outlooks`. It is not there in collections of an earlier version.

Where two documents at a time were judged, the docno of the other one, which is later in byte
order, stands after the docno; the grade is 2 if the first is better, 0 if the other is, 1 if
neither is.
"""

import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from estimation.core.arrays import BoolArray, BytesArray, FloatArray, IntArray, frozen
from estimation.core.collections.base import ordered_labels
from estimation.core.collections.pairs import PairCollection
from estimation.core.data.labels import LabelRows
from estimation.core.rounds.combining import Part
from estimation.core.sampling.designs import Design
from estimation.core.sampling.samples import Sample
from estimation.formats.collections.archive import (
    DRAWS,
    FACTS,
    JUDGMENTS,
    TooLargeError,
    check_members,
    inside,
    write_members,
)
from estimation.formats.collections.outlooks import (
    OUTLOOK,
    Expected,
    expected_columns,
    expected_of,
    outlook_rows,
    read_outlook,
)
from estimation.formats.collections.pair_facts import (
    MAX_DRAWS,
    PairFacts,
    RoundFacts,
    facts_bytes,
    read_facts,
)
from estimation.formats.collections.reading import Reading
from estimation.formats.collections.rows import judgment_rows, keys
from estimation.formats.collections.tables import PAIR, TWO, Table, share, table_bytes, whole
from judging.formats.problems import Problems

PAIRS, INELIGIBLE = "pairs.tsv.gz", "ineligible.tsv.gz"
MEMBERS, OPTIONAL = (FACTS, PAIRS, INELIGIBLE, DRAWS, JUDGMENTS), (OUTLOOK,)
MAX_SIZES = 40_000_000

_SAME = 1e-9


def write_pairs(file: IO[bytes], collection: PairCollection) -> None:
    """Write a collection; TooLargeError, or another ValueError, for what no reader would take."""
    if len(collection) * len(collection.parts) > MAX_SIZES:
        raise TooLargeError(f"at most {MAX_SIZES} pairs times rounds")
    tables: dict[str, tuple[Sequence[str], Iterable[Sequence[str | int | float]]]] = {
        PAIRS: (("round", "size", "probability"), _pair_rows(collection)),
        INELIGIBLE: ((), keys(collection, np.flatnonzero(~collection.within_reach))),
        DRAWS: (("round", "batch", "count"), _draw_rows(collection)),
        JUDGMENTS: (("grade",), judgment_rows(collection)),
    }
    columns = expected_columns(collection)
    if columns:
        tables[OUTLOOK] = tuple(columns), outlook_rows(collection, columns)
    key = TWO if collection.is_of_preferences else PAIR
    contents = {name: table_bytes(*table, key=key) for name, table in tables.items()}
    contents = {FACTS: facts_bytes(collection), **contents}
    write_members(file, contents)


def _pair_rows(collection: PairCollection) -> Iterator[tuple[str | float, ...]]:
    """By round, then pair."""
    for number, part in enumerate(collection.parts, start=1):
        design = part.design
        pairs = np.flatnonzero(design.eligible)
        sizes, chances = design.size[pairs].tolist(), design.inclusion()[pairs].tolist()
        for key, size, chance in zip(keys(collection, pairs), sizes, chances, strict=True):
            yield *key, number, size, chance


def _draw_rows(collection: PairCollection) -> Iterator[tuple[str | int, ...]]:
    """By round, then batch, then pair."""
    for number, part in enumerate(collection.parts, start=1):
        sample, design = part.sample, part.design
        batch, pair = sample.batch.astype(np.int64), sample.pair
        if design.with_replacement:
            ends = (design.steps * design.strata).astype(np.int64)
            batch = np.searchsorted(ends, np.arange(len(sample.draws)), side="right") + 1
            pair = sample.draws
        (batch, pair), counts = np.unique(np.stack([batch, pair]), axis=1, return_counts=True)
        rows = zip(keys(collection, pair), batch.tolist(), counts.tolist(), strict=True)
        yield from ((*key, number, entered, count) for key, entered, count in rows)


# --------------------------------------------------------------------------------- reading


def read_pairs(
    archive: zipfile.ZipFile, found: Mapping[str, Any], problems: Problems
) -> PairCollection | None:
    """Read the collection of an archive whose facts were `found`; None when it has an error.

    Probabilities, draws and judgments must fit each other. Raises `UnreadableError`, its problem
    recorded, when reading cannot go on.
    """
    check_members(archive, MEMBERS, problems, optional=OPTIONAL)
    with inside(problems, FACTS) as member:
        facts = read_facts(found, member)
    if facts is None:
        return None
    reading = PairReading(archive, facts, problems)
    tables = _read_tables(reading)
    if not len(tables.pairs):
        reading.member_error(PAIRS, None, "", "expected pairs, found none")
    pairs = _merged(reading, tables) if problems.ok else None
    if pairs is None or not problems.ok:
        return None
    expected = _expected(reading, tables, pairs)
    designs = [
        _design(pairs, each, size, belief)
        for each, size, belief in zip(facts.rounds, pairs.size, expected.beliefs, strict=True)
    ]
    _check_probabilities(reading, tables.pairs, pairs, designs)
    samples = _samples(reading, tables.draws, pairs, designs)
    labels = _labels(reading, tables, pairs)
    if not problems.ok:
        return None
    return reading.built(
        lambda: PairCollection(
            topics=facts.topics,
            depth=facts.depth,
            topic=frozen(pairs.topic.astype(np.int32)),
            docno=frozen(pairs.docno),
            labels=ordered_labels(labels),
            max_grade=facts.max_grade,
            version=facts.version,
            parts=tuple(
                Part(design, sample, numbers=each.numbers)
                for design, sample, each in zip(designs, samples, facts.rounds, strict=True)
            ),
            seeds=tuple(each.seed for each in facts.rounds),
            outlook=expected.outlook,
        )
    )


@dataclass(frozen=True, eq=False)
class PairReading(Reading):
    """A collection of pairs that is being read."""

    facts: PairFacts


@dataclass(frozen=True, eq=False)
class _Tables:
    pairs: Table
    ineligible: Table
    draws: Table
    judgments: Table
    outlook: Table | None


@dataclass(frozen=True, eq=False)
class _Pairs:
    """All N pairs in canonical order, their sizes in R rounds, and where the rows of `pairs` are.

    ``size``: shape (R, N), 0 where a pair could not be drawn. ``place``: the pair of each row.
    """

    topic: IntArray
    docno: BytesArray
    size: FloatArray
    place: IntArray


def _read_tables(reading: PairReading) -> _Tables:
    rounds = reading.facts.rounds
    number = whole("round", 1, len(rounds))
    batches = max(len(each.steps) for each in rounds)
    most = MAX_DRAWS if any(each.with_replacement for each in rounds) else 1
    drawn = number, whole("batch", 1, batches), whole("count", 1, most)
    key = TWO if reading.facts.of_preferences else PAIR
    has_outlook = OUTLOOK in reading.archive.namelist()
    return _Tables(
        pairs=reading.table(PAIRS, number, share("size"), share("probability"), key=key),
        ineligible=reading.table(INELIGIBLE, key=key),
        draws=reading.table(DRAWS, *drawn, key=key),
        judgments=reading.judgments(key),
        outlook=read_outlook(reading, len(rounds), key) if has_outlook else None,
    )


def _merged(reading: PairReading, tables: _Tables) -> _Pairs:
    """Eligible and ineligible pairs together.

    A pair is there once for every round that could draw it, or once as ineligible.
    """
    both, rounds = (tables.pairs, tables.ineligible), len(reading.facts.rounds)
    topic = np.concatenate([table.topic for table in both])
    docno = np.concatenate([table.docno for table in both])
    in_round = tables.pairs.whole("round") - 1
    in_any = np.concatenate([in_round, np.full(len(tables.ineligible), rounds)])
    order = np.lexsort((in_any, docno, topic))
    topic, docno, in_any = topic[order], docno[order], in_any[order]
    is_same = (topic[1:] == topic[:-1]) & (docno[1:] == docno[:-1])
    repeated = is_same & ((in_any[1:] == in_any[:-1]) | (in_any[1:] == rounds))
    _refuse_repeats(reading, both, order, np.flatnonzero(repeated))
    is_first = np.concatenate([[True], ~is_same])
    number = np.count_nonzero(is_first)
    if number * rounds > MAX_SIZES:
        message = f"expected at most {MAX_SIZES} pairs times rounds, found {number} times {rounds}"
        reading.problems.fatal(None, PAIRS, message)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(is_first) - 1
    place = place[: len(tables.pairs)]
    size = np.zeros((rounds, number))
    size[in_round, place] = tables.pairs.numbers["size"]
    return _Pairs(topic[is_first], docno[is_first], size, place)


def _refuse_repeats(
    reading: PairReading, both: tuple[Table, Table], order: IntArray, repeated: IntArray
) -> None:
    """Name every row whose pair stands in an earlier one, of the same table or the other."""
    pairs, ineligible = both

    def found_at(place: int) -> tuple[Table, int]:
        return (pairs, place) if place < len(pairs) else (ineligible, place - len(pairs))

    for at in repeated.tolist():
        (earlier, first), (table, row) = map(found_at, order[at : at + 2].tolist())
        found = f"found it on line {earlier.line[first]} of {earlier.name} already"
        reading.error(table, row, "docno", f"expected {table.pair(row)} once, {found}")


def _expected(reading: PairReading, tables: _Tables, pairs: _Pairs) -> Expected:
    """What was expected of the pairs of `tables.pairs`: of all of them, and of no others."""
    table, rounds = tables.outlook, len(pairs.size)
    if table is None:
        return Expected((None,) * rounds, None)
    reading.refuse_repeated_pairs(table)
    place = reading.places(table, pairs)
    foreign = ~np.isin(place, pairs.place)
    reading.refuse(table, foreign, "docno", f"a pair of {PAIRS}", table.pair)
    lost, rows = np.unique(pairs.place, return_index=True)
    for row in rows[~np.isin(lost, place)].tolist():
        message = f"expected {tables.pairs.pair(row)} in {OUTLOOK} as well, found nothing"
        reading.error(tables.pairs, row, "docno", message)
    return expected_of(table, place, pairs=len(pairs.topic), rounds=rounds)


def _design(
    pairs: _Pairs, facts: RoundFacts, size: FloatArray, belief: FloatArray | None
) -> Design:
    per_topic = facts.design["method"] == "per-query"
    strata = len(np.unique(pairs.topic[size > 0.0])) if per_topic else 1
    settings: dict[str, Any] = dict(facts.design)
    settings |= {"steps": frozen(facts.steps), "strata": strata, "belief": belief}
    return Design(size=frozen(size), **settings)


def _check_probabilities(
    reading: PairReading, table: Table, pairs: _Pairs, designs: Sequence[Design]
) -> None:
    expected, in_round = np.empty(len(table)), table.whole("round") - 1
    for number, design in enumerate(designs):
        rows = in_round == number
        expected[rows] = design.inclusion()[pairs.place[rows]]
    found = table.numbers["probability"]
    for row in np.flatnonzero(np.abs(found - expected) > _SAME * expected).tolist():
        told, right = float(found[row]), float(expected[row])
        message = f"expected {right!r}, which follows from the size, found {told!r}"
        reading.error(table, row, "probability", message)


def _samples(
    reading: PairReading, draws: Table, pairs: _Pairs, designs: Sequence[Design]
) -> list[Sample]:
    """What every round drew; empty where a problem is recorded."""
    place, in_round = reading.places(draws, pairs), draws.whole("round") - 1
    batch, count = draws.whole("batch"), draws.whole("count")
    if count.sum() > MAX_DRAWS:
        with inside(reading.problems, DRAWS) as member:
            member.fatal(None, "count", f"expected at most {MAX_DRAWS} draws, found more")
    reading.refuse(
        draws,
        (place < 0) | (pairs.size[in_round, place] <= 0.0),
        "docno",
        f"a pair of {PAIRS}",
        lambda row: f"{draws.pair(row)} in round {in_round[row] + 1}",
    )
    _check_repeated_draws(reading, draws, designs)
    for number, design in enumerate(designs):
        _check_counts(reading, draws, in_round == number, design, f"round {number + 1}")
    if not reading.problems.ok:
        return []
    samples = []
    for number, design in enumerate(designs):
        rows = in_round == number
        samples.append(_sample(place[rows], batch[rows], count[rows], design))
    return samples


def _sample(place: IntArray, batch: IntArray, count: IntArray, design: Design) -> Sample:
    order = np.lexsort((place, batch))
    place, batch, count = place[order], batch[order], count[order]
    pair, first = np.unique(place, return_index=True)
    no_constants = design.steps[:0]
    return Sample(
        pair=frozen(pair),
        batch=frozen(batch[first].astype(np.int32)),
        probability=frozen(design.inclusion()[pair]),
        draws=frozen(np.repeat(place, count) if design.with_replacement else place[:0]),
        pool_digest=design.pool_digest,
        constants=frozen(design.steps if design.method == "priority" else no_constants),
    )


def _check_repeated_draws(reading: PairReading, draws: Table, designs: Sequence[Design]) -> None:
    """A pair comes once in a round, or with replacement once per batch."""
    in_round = draws.whole("round") - 1
    replaced = np.array([design.with_replacement for design in designs])[in_round]
    within = np.where(replaced, draws.whole("batch"), 0)
    keys_of_row = (draws.docno, draws.topic, within, in_round)
    reading.refuse_repeats(draws, keys_of_row, draws.pair, "docno")


def _check_counts(
    reading: PairReading, draws: Table, rows: BoolArray, design: Design, which: str
) -> None:
    """Batches are those of the round, with as many draws in each as its steps say."""
    batch, count = draws.whole("batch"), draws.whole("count")
    late = rows & (batch > design.batches)
    wanted = f"a batch from 1 to {design.batches} in {which}"
    reading.refuse(draws, late, "batch", wanted, lambda row: str(batch[row]))
    if not design.with_replacement or late.any():
        return
    expected = np.diff(design.steps, prepend=0.0) * design.strata
    found = np.bincount(batch[rows] - 1, weights=count[rows], minlength=design.batches)
    for at in np.flatnonzero(expected != found).tolist():
        where = f"batch {at + 1} of {which}"
        message = f"expected {expected[at]:.15g} draws in {where}, found {found[at]:.15g}"
        reading.member_error(DRAWS, None, "count", message)


def _labels(reading: PairReading, tables: _Tables, pairs: _Pairs) -> LabelRows:
    """The judgments: at least one of every pair that is drawn and none of others."""
    draws, drawn = tables.draws, reading.places(tables.draws, pairs)
    known = drawn[drawn >= 0]
    labels = reading.labels(tables.judgments, pairs, known, f"a pair of {DRAWS}")
    for row in np.flatnonzero((drawn >= 0) & ~np.isin(drawn, labels.pair)).tolist():
        reading.error(draws, row, "docno", f"expected a judgment of {draws.pair(row)}, found none")
    return labels
