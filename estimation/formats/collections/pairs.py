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
"""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from estimation.core.arrays import BoolArray, BytesArray, FloatArray, IntArray, frozen
from estimation.core.carrying import find_pairs
from estimation.core.collection import CollectionError, ordered_labels
from estimation.core.combining import Part
from estimation.core.designs import Design
from estimation.core.draws import Sample
from estimation.core.labels import LabelRows
from estimation.core.pair_collection import PairCollection
from estimation.formats.collections.archive import FACTS, check_members, inside, write_members
from estimation.formats.collections.pair_facts import (
    MAX_DRAWS,
    Facts,
    RoundFacts,
    facts_bytes,
    read_facts,
)
from estimation.formats.collections.tables import (
    Column,
    Table,
    read_table,
    share,
    table_bytes,
    whole,
)
from judging.formats.problems import Problems

PAIRS, INELIGIBLE = "pairs.tsv.gz", "ineligible.tsv.gz"
DRAWS, JUDGMENTS = "draws.tsv.gz", "judgments.tsv.gz"
MEMBERS = (FACTS, PAIRS, INELIGIBLE, DRAWS, JUDGMENTS)
MAX_SIZES = 40_000_000

_SAME = 1e-9


def write_pairs(file: IO[bytes], collection: PairCollection) -> None:
    """Write a collection; ValueError for an id that no reader would take."""
    contents = {
        FACTS: facts_bytes(collection),
        PAIRS: table_bytes(("round", "size", "probability"), _pair_rows(collection)),
        INELIGIBLE: table_bytes((), _ineligible_rows(collection)),
        DRAWS: table_bytes(("round", "batch", "count"), _draw_rows(collection)),
        JUDGMENTS: table_bytes(("grade",), _judgment_rows(collection)),
    }
    write_members(file, contents)


def _keys(collection: PairCollection, pairs: IntArray) -> Iterator[tuple[str, str]]:
    topics, docnos = collection.topic[pairs].tolist(), collection.docno[pairs].tolist()
    for topic, docno in zip(topics, docnos, strict=True):
        yield collection.topics[topic], docno.decode()


def _pair_rows(collection: PairCollection) -> Iterator[tuple[str, str, int, float, float]]:
    """By round, then pair."""
    for number, part in enumerate(collection.parts, start=1):
        design = part.design
        pairs = np.flatnonzero(design.eligible)
        sizes, chances = design.size[pairs].tolist(), design.inclusion()[pairs].tolist()
        for key, size, chance in zip(_keys(collection, pairs), sizes, chances, strict=True):
            yield *key, number, size, chance


def _ineligible_rows(collection: PairCollection) -> Iterator[tuple[str, str]]:
    eligible = np.any([part.design.eligible for part in collection.parts], axis=0)
    return _keys(collection, np.flatnonzero(~eligible))


def _draw_rows(collection: PairCollection) -> Iterator[tuple[str, str, int, int, int]]:
    """By round, then batch, then pair."""
    for number, part in enumerate(collection.parts, start=1):
        sample, design = part.sample, part.design
        batch, pair = sample.batch.astype(np.int64), sample.pair
        if design.with_replacement:
            ends = (design.steps * design.strata).astype(np.int64)
            batch = np.searchsorted(ends, np.arange(len(sample.draws)), side="right") + 1
            pair = sample.draws
        (batch, pair), counts = np.unique(np.stack([batch, pair]), axis=1, return_counts=True)
        keys = _keys(collection, pair)
        for key, entered, count in zip(keys, batch.tolist(), counts.tolist(), strict=True):
            yield *key, number, entered, count


def _judgment_rows(collection: PairCollection) -> Iterator[tuple[str, str, int]]:
    labels = collection.labels
    for key, grade in zip(_keys(collection, labels.pair), labels.grade.tolist(), strict=True):
        yield *key, grade


# --------------------------------------------------------------------------------- reading


def read_pairs(
    archive: zipfile.ZipFile, found: Mapping[str, Any], problems: Problems
) -> PairCollection | None:
    """Read the collection of an archive whose facts were `found`; None when it has an error.

    Probabilities, draws and judgments must fit each other. Raises `UnreadableError`, its problem
    recorded, when reading cannot go on.
    """
    check_members(archive, MEMBERS, problems)
    with inside(problems, FACTS) as member:
        facts = read_facts(found, member)
    if facts is None:
        return None
    tables = _read_tables(archive, facts, problems)
    if not len(tables.pairs):
        problems.error(None, PAIRS, "expected pairs, found none")
    if not problems.ok:
        return None
    pairs = _merged(tables, facts, problems)
    if not problems.ok:
        return None
    designs = [
        _design(pairs, each, size) for each, size in zip(facts.rounds, pairs.size, strict=True)
    ]
    _check_probabilities(tables.pairs, pairs, designs, problems)
    samples = _samples(tables.draws, pairs, designs, facts, problems)
    labels = _labels(tables, pairs, facts, problems)
    if not problems.ok:
        return None
    return _collection(facts, pairs, designs, samples, labels, problems)


@dataclass(frozen=True, eq=False)
class _Tables:
    pairs: Table
    ineligible: Table
    draws: Table
    judgments: Table


@dataclass(frozen=True, eq=False)
class _Pairs:
    """All N pairs in canonical order, their sizes in R rounds, and where the rows of `pairs` are.

    ``size``: shape (R, N), 0 where a pair could not be drawn. ``place``: the pair of each row.
    """

    topic: IntArray
    docno: BytesArray
    size: FloatArray
    place: IntArray

    def find(self, table: Table) -> IntArray:
        """Positions of a table's pairs; -1 for those that are not there."""
        return find_pairs(table.topic, table.docno, among_topic=self.topic, among_docno=self.docno)


def _read_tables(archive: zipfile.ZipFile, facts: Facts, problems: Problems) -> _Tables:
    topics = {topic: place for place, topic in enumerate(facts.topics)}
    number = whole("round", 1, len(facts.rounds))
    batches = max(len(each.steps) for each in facts.rounds)
    most = MAX_DRAWS if any(each.with_replacement for each in facts.rounds) else 1
    columns: Mapping[str, Sequence[Column]] = {
        PAIRS: (number, share("size"), share("probability")),
        INELIGIBLE: (),
        DRAWS: (number, whole("batch", 1, batches), whole("count", 1, most)),
        JUDGMENTS: (whole("grade", 0, facts.max_grade),),
    }
    found = []
    for name, wanted in columns.items():
        with inside(problems, name) as member, archive.open(name) as file:
            found.append(read_table(file, member, columns=wanted, topics=topics))
    return _Tables(*found)


def _merged(tables: _Tables, facts: Facts, problems: Problems) -> _Pairs:
    """Eligible and ineligible pairs together.

    A pair is there once for every round that could draw it, or once as ineligible.
    """
    both, rounds = (tables.pairs, tables.ineligible), len(facts.rounds)
    topic = np.concatenate([table.topic for table in both])
    docno = np.concatenate([table.docno for table in both])
    in_round = tables.pairs.whole("round") - 1
    in_any = np.concatenate([in_round, np.full(len(tables.ineligible), rounds)])
    order = np.lexsort((in_any, docno, topic))
    topic, docno, in_any = topic[order], docno[order], in_any[order]
    is_same = (topic[1:] == topic[:-1]) & (docno[1:] == docno[:-1])
    repeated = is_same & ((in_any[1:] == in_any[:-1]) | (in_any[1:] == rounds))
    _refuse_repeats(both, order, np.flatnonzero(repeated), facts, problems)
    is_first = np.concatenate([[True], ~is_same])
    number = np.count_nonzero(is_first)
    if number * rounds > MAX_SIZES:
        message = f"expected at most {MAX_SIZES} pairs times rounds, found {number} times {rounds}"
        problems.fatal(None, PAIRS, message)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(is_first) - 1
    place = place[: len(tables.pairs)]
    size = np.zeros((rounds, number))
    size[in_round, place] = tables.pairs.numbers["size"]
    return _Pairs(topic[is_first], docno[is_first], size, place)


def _refuse_repeats(
    both: tuple[Table, Table],
    order: IntArray,
    repeated: IntArray,
    facts: Facts,
    problems: Problems,
) -> None:
    """Name every row whose pair stands in an earlier one, of the same table or the other."""
    line = np.concatenate([table.line for table in both])
    names = (PAIRS, INELIGIBLE)
    for which, table in enumerate(both):
        start = which * len(both[0])
        with inside(problems, names[which]) as member:
            for at in repeated[(order[repeated + 1] >= len(both[0])) == bool(which)].tolist():
                first, row = int(order[at]), int(order[at + 1])
                earlier = f"on line {line[first]} of {names[first >= len(both[0])]}"
                pair = table.pair(row - start, facts.topics)
                message = f"expected {pair} once, found it {earlier} already"
                member.error(int(line[row]), "docno", message)


def _design(pairs: _Pairs, facts: RoundFacts, size: FloatArray) -> Design:
    per_topic = facts.design["method"] == "per-query"
    strata = len(np.unique(pairs.topic[size > 0.0])) if per_topic else 1
    settings: dict[str, Any] = dict(facts.design)
    return Design(size=frozen(size), steps=frozen(facts.steps), strata=strata, **settings)


def _check_probabilities(
    table: Table, pairs: _Pairs, designs: Sequence[Design], problems: Problems
) -> None:
    expected, in_round = np.empty(len(table)), table.whole("round") - 1
    for number, design in enumerate(designs):
        rows = in_round == number
        expected[rows] = design.inclusion()[pairs.place[rows]]
    found = table.numbers["probability"]
    with inside(problems, PAIRS) as member:
        for row in np.flatnonzero(np.abs(found - expected) > _SAME * expected).tolist():
            told, right = float(found[row]), float(expected[row])
            message = f"expected {right!r}, which follows from the size, found {told!r}"
            member.error(int(table.line[row]), "probability", message)


def _samples(
    draws: Table, pairs: _Pairs, designs: Sequence[Design], facts: Facts, problems: Problems
) -> list[Sample]:
    """What every round drew; empty where a problem is recorded."""
    place, in_round = pairs.find(draws), draws.whole("round") - 1
    batch, count = draws.whole("batch"), draws.whole("count")
    with inside(problems, DRAWS) as member:
        if count.sum() > MAX_DRAWS:
            member.fatal(None, "count", f"expected at most {MAX_DRAWS} draws, found more")
        place[(place >= 0) & (pairs.size[in_round, place] <= 0.0)] = -1
        for row in np.flatnonzero(place < 0).tolist():
            found = f"{draws.pair(row, facts.topics)} in round {in_round[row] + 1}"
            member.error(
                int(draws.line[row]), "docno", f"expected a pair of {PAIRS}, found {found}"
            )
        _check_repeated_draws(draws, place, designs, facts, member)
        for number, design in enumerate(designs):
            _check_counts(draws, in_round == number, design, f"round {number + 1}", member)
    if not problems.ok:
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


def _check_repeated_draws(
    draws: Table, place: IntArray, designs: Sequence[Design], facts: Facts, problems: Problems
) -> None:
    """A pair comes once in a round, or with replacement once per batch."""
    in_round = draws.whole("round") - 1
    replaced = np.array([design.with_replacement for design in designs])[in_round]
    within = np.where(replaced, draws.whole("batch"), 0)
    keys = np.stack([place, within, in_round])
    order = np.lexsort(keys)
    same = np.all(keys[:, order[1:]] == keys[:, order[:-1]], axis=0)
    for before, row in zip(order[:-1][same].tolist(), order[1:][same].tolist(), strict=True):
        if place[row] >= 0:
            pair, line = draws.pair(row, facts.topics), draws.line[before]
            message = f"expected {pair} once, found it on line {line} already"
            problems.error(int(draws.line[row]), "docno", message)


def _check_counts(
    draws: Table, rows: BoolArray, design: Design, which: str, problems: Problems
) -> None:
    """Batches are those of the round, with as many draws in each as its steps say."""
    batch, count = draws.whole("batch")[rows], draws.whole("count")[rows]
    for row in np.flatnonzero(batch > design.batches).tolist():
        message = f"expected a batch from 1 to {design.batches} in {which}, found {batch[row]}"
        problems.error(int(draws.line[rows][row]), "batch", message)
    if not design.with_replacement or np.any(batch > design.batches):
        return
    wanted = np.diff(design.steps, prepend=0.0) * design.strata
    found = np.bincount(batch - 1, weights=count, minlength=design.batches)
    for at in np.flatnonzero(wanted != found).tolist():
        where = f"batch {at + 1} of {which}"
        message = f"expected {wanted[at]:.15g} draws in {where}, found {found[at]:.15g}"
        problems.error(None, "count", message)


def _labels(tables: _Tables, pairs: _Pairs, facts: Facts, problems: Problems) -> LabelRows:
    judgments, place, drawn = (
        tables.judgments,
        pairs.find(tables.judgments),
        pairs.find(tables.draws),
    )
    with inside(problems, JUDGMENTS) as member:
        for row in np.flatnonzero((place < 0) | ~np.isin(place, drawn)).tolist():
            message = f"expected a pair of {DRAWS}, found {judgments.pair(row, facts.topics)}"
            member.error(int(judgments.line[row]), "docno", message)
    with inside(problems, DRAWS) as member:
        for row in np.flatnonzero((drawn >= 0) & ~np.isin(drawn, place)).tolist():
            message = f"expected a judgment of {tables.draws.pair(row, facts.topics)}, found none"
            member.error(int(tables.draws.line[row]), "docno", message)
    return LabelRows(place, judgments.whole("grade"))


def _collection(
    facts: Facts,
    pairs: _Pairs,
    designs: Sequence[Design],
    samples: Sequence[Sample],
    labels: LabelRows,
    problems: Problems,
) -> PairCollection | None:
    rounds = zip(designs, samples, facts.rounds, strict=True)
    try:
        return PairCollection(
            topics=facts.topics,
            depth=facts.depth,
            topic=frozen(pairs.topic.astype(np.int32)),
            docno=frozen(pairs.docno),
            labels=ordered_labels(labels),
            max_grade=facts.max_grade,
            version=facts.version,
            parts=tuple(
                Part(design, sample, numbers=each.numbers) for design, sample, each in rounds
            ),
            seeds=tuple(each.seed for each in facts.rounds),
        )
    except CollectionError as error:
        problems.error(None, "", str(error))
        return None
