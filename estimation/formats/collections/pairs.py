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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimation.core.arrays import BoolArray, BytesArray, FloatArray, IntArray, frozen
from estimation.core.collections.base import RoundCollection
from estimation.core.collections.published import checked, pairs_alone
from estimation.core.data.labels import LabelRows
from estimation.core.rounds.combining import as_one
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.designs import Design
from estimation.core.sampling.methods import SAMPLING_METHODS
from estimation.core.sampling.samples import Sample
from estimation.formats.collections import pair_facts
from estimation.formats.collections.archive import DRAWS, JUDGMENTS, TooLargeError, inside
from estimation.formats.collections.outlooks import (
    OUTLOOK,
    Expected,
    expected_of,
    outlook_form,
    outlook_rows,
    read_outlook,
)
from estimation.formats.collections.pair_facts import MAX_DRAWS, PairFacts, RoundFacts
from estimation.formats.collections.reading import (
    CollectionReading,
    Kind,
    Row,
    judgment_rows,
    judgments,
)
from estimation.formats.collections.tables import PAIR, TWO, Form, Table, share, whole

PAIRS, INELIGIBLE = "pairs.tsv.gz", "ineligible.tsv.gz"
MAX_SIZES = 40_000_000

_SAME = 1e-9


def _forms(facts: PairFacts) -> list[Form]:
    key = TWO if facts.of_preferences else PAIR
    number = whole("round", 1, len(facts.rounds))
    batch = whole("batch", 1, max(len(each.design["steps"]) for each in facts.rounds))
    again = any(each.with_replacement for each in facts.rounds)
    return [
        Form(PAIRS, key, [number, share("size"), share("probability")]),
        Form(INELIGIBLE, key),
        Form(DRAWS, key, [number, batch, whole("count", 1, MAX_DRAWS if again else 1)]),
        judgments(facts, key),
        outlook_form(facts, key),
    ]


# --------------------------------------------------------------------------------- writing


def _refuse_large(collection: RoundCollection) -> None:
    if len(collection) * len(collection.parts) > MAX_SIZES:
        raise TooLargeError(f"at most {MAX_SIZES} pairs times rounds")
    most = pair_facts.MAX_PREFERENCE_DEPTH
    if collection.is_of_preferences and collection.depth > most:
        raise TooLargeError(f"pairs of documents down to a depth of at most {most}")


def _rows(collection: RoundCollection) -> Iterator[Row]:
    yield PAIRS, *_by_round(collection, _sizes_of)
    yield INELIGIBLE, np.flatnonzero(~collection.within_reach), {}
    yield DRAWS, *_by_round(collection, _draws_of)
    yield judgment_rows(collection)
    outlook = outlook_rows(collection)
    if outlook is not None:
        yield outlook


Columns = dict[str, Any]


def _by_round(
    collection: RoundCollection, tell: Callable[[PairRound], tuple[IntArray, Columns]]
) -> tuple[IntArray, Columns]:
    """The rows of all rounds, one after the other."""
    pairs, columns = zip(*map(tell, collection.parts), strict=True)
    number = np.repeat(np.arange(len(pairs)) + 1, [len(each) for each in pairs])
    told = {name: np.concatenate([each[name] for each in columns]) for name in columns[0]}
    return np.concatenate(pairs), {"round": number, **told}


def _sizes_of(part: PairRound) -> tuple[IntArray, Columns]:
    """By pair."""
    pairs = np.flatnonzero(part.design.eligible)
    return pairs, {
        "size": part.design.size[pairs],
        "probability": part.design.inclusion()[pairs],
    }


def _draws_of(part: PairRound) -> tuple[IntArray, Columns]:
    """By batch, then pair."""
    sample, design = part.sample, part.design
    batch, pair = sample.batch.astype(np.int64), sample.pair
    if design.with_replacement:
        ends = (design.steps * design.strata).astype(np.int64)
        batch = np.searchsorted(ends, np.arange(len(sample.draws)), side="right") + 1
        pair = sample.draws
    (batch, pair), counts = np.unique(np.stack([batch, pair]), axis=1, return_counts=True)
    return pair, {"batch": batch, "count": counts}


# --------------------------------------------------------------------------------- reading


def _read(reading: CollectionReading[PairFacts]) -> RoundCollection:
    facts = reading.facts
    tables = {name: reading.table(name) for name in (PAIRS, INELIGIBLE, DRAWS, JUDGMENTS)}
    if reading.has(OUTLOOK):
        tables[OUTLOOK] = read_outlook(reading)
    pairs = _merged(reading, tables[PAIRS], tables[INELIGIBLE])
    expected = _expected(reading, tables, pairs)
    designs = [
        _design(facts, each, pairs.topic, size, belief)
        for each, size, belief in zip(facts.rounds, pairs.size, expected.beliefs, strict=True)
    ]
    _check_probabilities(reading, tables[PAIRS], pairs, designs)
    place = tables[DRAWS].places(pairs.topic, pairs.docno)
    _check_draws(reading, tables[DRAWS], place, pairs, designs)
    labels = _labels(reading, tables, pairs, place)
    reading.go_on()
    pool = pairs_alone(
        facts.topics,
        facts.depth,
        frozen(pairs.topic.astype(np.int32)),
        frozen(pairs.docno),
        of_two=facts.of_preferences,
    )
    parts = [
        PairRound(design, _sample(tables[DRAWS], place, design, number), numbers=each.numbers)
        for number, (design, each) in enumerate(zip(designs, facts.rounds, strict=True), start=1)
    ]
    return checked(
        RoundCollection(
            pool=pool,
            drawn=as_one(parts),
            labels=labels,
            max_grade=facts.max_grade,
            version=facts.version,
            seeds=tuple(each.seed for each in facts.rounds),
            outlook=expected.outlook,
            look=facts.look,
            negligible=facts.negligible,
        )
    )


@dataclass(frozen=True, eq=False)
class _Pairs:
    """All N pairs in canonical order, their sizes in R rounds, and where the rows of `pairs` are.

    ``size``: shape (R, N), 0 where a pair could not be drawn. ``place``: the pair of each row.
    """

    topic: IntArray
    docno: BytesArray
    size: FloatArray
    place: IntArray


def _merged(reading: CollectionReading[PairFacts], pairs: Table, never: Table) -> _Pairs:
    """Eligible and ineligible pairs together.

    A pair is there once for every round that could draw it, or once as ineligible.
    """
    in_round, rounds = pairs.whole("round") - 1, len(reading.facts.rounds)
    if not len(pairs):
        reading.error(PAIRS, None, "", "pairs", "none")
    reading.refuse_repeats(pairs, (pairs.docno, pairs.topic, in_round), pairs.pair, "docno")
    reading.refuse_repeated_pairs(never)
    reading.go_on()
    topic = np.concatenate([pairs.topic, never.topic])
    docno = np.concatenate([pairs.docno, never.docno])
    order = np.lexsort((docno, topic))
    topic, docno = topic[order], docno[order]
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (topic[1:] != topic[:-1]) | (docno[1:] != docno[:-1])
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(fresh) - 1
    place, of_never = np.split(place, [len(pairs)])
    number = np.count_nonzero(fresh)
    line = np.zeros(number, dtype=np.int64)
    line[place[::-1]] = pairs.line[::-1]
    for row in np.flatnonzero(line[of_never]).tolist():
        found = f"it on line {line[of_never[row]]} of {PAIRS} already"
        reading.error(never, row, "docno", f"{never.pair(row)} once", found)
    if number * rounds > MAX_SIZES:
        message = f"expected at most {MAX_SIZES} pairs times rounds, found {number} times {rounds}"
        reading.problems.fatal(None, PAIRS, message)
    reading.go_on()
    size = np.zeros((rounds, number))
    size[in_round, place] = pairs.numbers["size"]
    return _Pairs(topic[fresh], docno[fresh], size, place)


def _expected(
    reading: CollectionReading[PairFacts], tables: Mapping[str, Table], pairs: _Pairs
) -> Expected:
    """What was expected of the pairs that a round could draw: of all of them, and of no others."""
    table, rounds = tables.get(OUTLOOK), len(pairs.size)
    if table is None:
        return Expected((None,) * rounds, None)
    reading.refuse_repeated_pairs(table)
    place = table.places(pairs.topic, pairs.docno)
    foreign = ~np.isin(place, pairs.place)
    reading.refuse(table, foreign, "docno", f"a pair of {PAIRS}", table.pair)
    lost, rows = np.unique(pairs.place, return_index=True)
    for row in rows[~np.isin(lost, place)].tolist():
        wanted = f"{tables[PAIRS].pair(row)} in {OUTLOOK} as well"
        reading.error(tables[PAIRS], row, "docno", wanted, "nothing")
    return expected_of(table, place, pairs=len(pairs.topic), rounds=rounds)


def _design(
    facts: PairFacts,
    told: RoundFacts,
    topic: IntArray,
    size: FloatArray,
    belief: FloatArray | None,
) -> Design:
    per_topic = SAMPLING_METHODS[told.design["method"]].by_topic
    return Design(
        size=frozen(size),
        strata=len(np.unique(topic[size > 0.0])) if per_topic else 1,
        belief=belief,
        pool_digest=facts.pool_digest,
        **told.design,
    )


def _check_probabilities(
    reading: CollectionReading[PairFacts], table: Table, pairs: _Pairs, designs: Sequence[Design]
) -> None:
    expected, found = np.empty(len(table)), table.numbers["probability"]
    for number, design in enumerate(designs, start=1):
        rows = table.whole("round") == number
        expected[rows] = design.inclusion()[pairs.place[rows]]
    for row in np.flatnonzero(np.abs(found - expected) > _SAME * expected).tolist():
        wanted = f"{expected[row]}, which follows from the size"
        reading.error(table, row, "probability", wanted, found[row])


def _check_draws(
    reading: CollectionReading[PairFacts],
    draws: Table,
    place: IntArray,
    pairs: _Pairs,
    designs: Sequence[Design],
) -> None:
    """Rounds drew their own pairs, each once, or with replacement once per batch."""
    batch, count, in_round = draws.whole("batch"), draws.whole("count"), draws.whole("round") - 1
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
    replaced = np.array([design.with_replacement for design in designs])[in_round]
    keys = draws.docno, draws.topic, np.where(replaced, batch, 0), in_round
    reading.refuse_repeats(draws, keys, draws.pair, "docno")
    for number, design in enumerate(designs, start=1):
        rows = in_round == number - 1
        _check_counts(reading, draws, rows, design, f"round {number}")


def _check_counts(
    reading: CollectionReading[PairFacts], draws: Table, rows: BoolArray, design: Design, which: str
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
        wanted = f"{expected[at]:.15g} draws in batch {at + 1} of {which}"
        reading.error(DRAWS, None, "count", wanted, f"{found[at]:.15g}")


def _sample(draws: Table, place: IntArray, design: Design, number: int) -> Sample:
    rows = np.flatnonzero(draws.whole("round") == number)
    rows = rows[np.lexsort((place[rows], draws.whole("batch")[rows]))]
    place, batch, count = place[rows], draws.whole("batch")[rows], draws.whole("count")[rows]
    pair, first = np.unique(place, return_index=True)
    return Sample(
        pair=frozen(pair),
        batch=frozen(batch[first].astype(np.int32)),
        probability=frozen(design.inclusion()[pair]),
        draws=frozen(np.repeat(place, count) if design.with_replacement else place[:0]),
        pool_digest=design.pool_digest,
        constants=frozen(design.steps if design.method == "priority" else design.steps[:0]),
    )


def _labels(
    reading: CollectionReading[PairFacts],
    tables: Mapping[str, Table],
    pairs: _Pairs,
    drawn: IntArray,
) -> LabelRows:
    """The judgments: at least one of every pair that is drawn and none of others."""
    draws, known = tables[DRAWS], drawn[drawn >= 0]
    place = tables[JUDGMENTS].places(pairs.topic, pairs.docno)
    labels = reading.labels(place, tables[JUDGMENTS], known, f"a pair of {DRAWS}")
    for row in np.flatnonzero((drawn >= 0) & ~np.isin(drawn, labels.pair)).tolist():
        reading.error(draws, row, "docno", f"a judgment of {draws.pair(row)}", "none")
    return labels


KIND = Kind(pair_facts.FIELDS, _refuse_large, pair_facts.make_facts, _forms, _rows, _read)
