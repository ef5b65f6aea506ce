"""Judged collections of pairs that were drawn.

``collection.json``
    Topics, depth, grade scale, the method of sampling and its steps, and where it all comes from.
``pairs.tsv.gz``
    topic, docno, size, probability: every pair that could be drawn, drawn or not. The probability
    to be in the sample follows from the size and the last step.
``ineligible.tsv.gz``
    topic, docno: pairs of the pool that could not be drawn.
``draws.tsv.gz``
    topic, docno, batch, count: what was drawn; more than once only with replacement.
``judgments.tsv.gz``
    topic, docno, grade: one row per judgment.
"""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from estimation.core.arrays import BytesArray, FloatArray, IntArray, frozen
from estimation.core.collection import CollectionError, JudgedCollection, find_pairs
from estimation.core.designs import WITH_REPLACEMENT, Design
from estimation.core.draws import Sample
from estimation.core.labels import LabelRows
from estimation.formats.collections.archive import FACTS, check_members, inside, write_members
from estimation.formats.collections.pair_facts import MAX_DRAWS, Facts, facts_bytes, read_facts
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

_SAME = 1e-9


def write_pairs(file: IO[bytes], collection: JudgedCollection) -> None:
    """Write a collection; ValueError for an id that no reader would take."""
    contents = {
        FACTS: facts_bytes(collection),
        PAIRS: table_bytes(("size", "probability"), _pair_rows(collection)),
        INELIGIBLE: table_bytes((), _ineligible_rows(collection)),
        DRAWS: table_bytes(("batch", "count"), _draw_rows(collection)),
        JUDGMENTS: table_bytes(("grade",), _judgment_rows(collection)),
    }
    write_members(file, contents)


def _keys(collection: JudgedCollection, pairs: IntArray) -> Iterator[tuple[str, str]]:
    topics, docnos = collection.topic[pairs].tolist(), collection.docno[pairs].tolist()
    for topic, docno in zip(topics, docnos, strict=True):
        yield collection.topics[topic], docno.decode()


def _pair_rows(collection: JudgedCollection) -> Iterator[tuple[str, str, float, float]]:
    design = collection.design
    pairs = np.flatnonzero(design.eligible)
    sizes, chances = design.size[pairs].tolist(), design.inclusion()[pairs].tolist()
    for key, size, chance in zip(_keys(collection, pairs), sizes, chances, strict=True):
        yield *key, size, chance


def _ineligible_rows(collection: JudgedCollection) -> Iterator[tuple[str, str]]:
    return _keys(collection, np.flatnonzero(~collection.design.eligible))


def _draw_rows(collection: JudgedCollection) -> Iterator[tuple[str, str, int, int]]:
    """By batch, then pair."""
    sample, design = collection.sample, collection.design
    batch, pair = sample.batch.astype(np.int64), sample.pair
    if design.with_replacement:
        ends = (design.steps * design.strata).astype(np.int64)
        batch = np.searchsorted(ends, np.arange(len(sample.draws)), side="right") + 1
        pair = sample.draws
    (batch, pair), counts = np.unique(np.stack([batch, pair]), axis=1, return_counts=True)
    keys = _keys(collection, pair)
    for key, number, count in zip(keys, batch.tolist(), counts.tolist(), strict=True):
        yield *key, number, count


def _judgment_rows(collection: JudgedCollection) -> Iterator[tuple[str, str, int]]:
    labels = collection.labels
    for key, grade in zip(_keys(collection, labels.pair), labels.grade.tolist(), strict=True):
        yield *key, grade


# --------------------------------------------------------------------------------- reading


def read_pairs(
    archive: zipfile.ZipFile, found: Mapping[str, Any], problems: Problems
) -> JudgedCollection | None:
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
    design = _design(pairs, facts)
    sample = _sample(tables.draws, pairs, design, facts, problems)
    _check_probabilities(tables.pairs, pairs, design, problems)
    labels = _labels(tables, pairs, sample, facts, problems)
    if not problems.ok:
        return None
    return _collection(facts, pairs, design, sample, labels, problems)


@dataclass(frozen=True, eq=False)
class _Tables:
    pairs: Table
    ineligible: Table
    draws: Table
    judgments: Table


@dataclass(frozen=True, eq=False)
class _Pairs:
    """All pairs in canonical order, with the row of `pairs` that each comes from, or -1."""

    topic: IntArray
    docno: BytesArray
    size: FloatArray
    row: IntArray

    def find(self, table: Table) -> IntArray:
        """Positions of a table's pairs; -1 for those that could not be drawn."""
        place = find_pairs(table.topic, table.docno, among_topic=self.topic, among_docno=self.docno)
        return np.where((place >= 0) & (self.row[place] >= 0), place, -1)


def _read_tables(archive: zipfile.ZipFile, facts: Facts, problems: Problems) -> _Tables:
    topics = {topic: place for place, topic in enumerate(facts.topics)}
    most = MAX_DRAWS if facts.design["method"] in WITH_REPLACEMENT else 1
    columns: Mapping[str, Sequence[Column]] = {
        PAIRS: (share("size"), share("probability")),
        INELIGIBLE: (),
        DRAWS: (whole("batch", 1, len(facts.steps)), whole("count", 1, most)),
        JUDGMENTS: (whole("grade", 0, facts.max_grade),),
    }
    found = []
    for name, wanted in columns.items():
        with inside(problems, name) as member, archive.open(name) as file:
            found.append(read_table(file, member, columns=wanted, topics=topics))
    return _Tables(*found)


def _merged(tables: _Tables, facts: Facts, problems: Problems) -> _Pairs:
    """Eligible and ineligible pairs together; each must be there once."""
    both = (tables.pairs, tables.ineligible)
    topic = np.concatenate([table.topic for table in both])
    docno = np.concatenate([table.docno for table in both])
    row = np.concatenate([np.arange(len(tables.pairs)), np.full(len(tables.ineligible), -1)])
    size = np.concatenate([tables.pairs.numbers["size"], np.zeros(len(tables.ineligible))])
    order = np.lexsort((docno, topic))
    _refuse_repeats(both, topic[order], docno[order], order, facts, problems)
    return _Pairs(topic[order], docno[order], size[order], row[order])


def _refuse_repeats(
    both: tuple[Table, Table],
    topic: IntArray,
    docno: BytesArray,
    order: IntArray,
    facts: Facts,
    problems: Problems,
) -> None:
    """Name every row whose pair stands in an earlier one, of the same table or the other."""
    same = np.flatnonzero((topic[1:] == topic[:-1]) & (docno[1:] == docno[:-1]))
    line = np.concatenate([table.line for table in both])
    names = (PAIRS, INELIGIBLE)
    for which, table in enumerate(both):
        start = which * len(both[0])
        with inside(problems, names[which]) as member:
            for at in same[(order[same + 1] >= len(both[0])) == bool(which)].tolist():
                first, row = int(order[at]), int(order[at + 1])
                earlier = f"on line {line[first]} of {names[first >= len(both[0])]}"
                pair = table.pair(row - start, facts.topics)
                message = f"expected {pair} once, found it {earlier} already"
                member.error(int(line[row]), "docno", message)


def _design(pairs: _Pairs, facts: Facts) -> Design:
    per_topic = facts.design["method"] == "per-query"
    strata = len(np.unique(pairs.topic[pairs.size > 0.0])) if per_topic else 1
    settings: dict[str, Any] = dict(facts.design)
    return Design(size=frozen(pairs.size), steps=frozen(facts.steps), strata=strata, **settings)


def _sample(
    draws: Table, pairs: _Pairs, design: Design, facts: Facts, problems: Problems
) -> Sample:
    place, batch, count = pairs.find(draws), draws.whole("batch"), draws.whole("count")
    with inside(problems, DRAWS) as member:
        for row in np.flatnonzero(place < 0).tolist():
            found = draws.pair(row, facts.topics)
            member.error(
                int(draws.line[row]), "docno", f"expected a pair of {PAIRS}, found {found}"
            )
        _check_counts(draws, place, design, facts, member)
    known = place >= 0
    place, batch, count = place[known], batch[known], count[known]
    order = np.lexsort((place, batch))
    place, batch, count = place[order], batch[order], count[order]
    pair, first = np.unique(place, return_index=True)
    replaced = design.with_replacement and problems.ok
    no_constants = design.steps[:0]
    return Sample(
        pair=frozen(pair),
        batch=frozen(batch[first].astype(np.int32)),
        probability=frozen(design.inclusion()[pair]),
        draws=frozen(np.repeat(place, count) if replaced else place[:0]),
        pool_digest=design.pool_digest,
        constants=frozen(design.steps if design.method == "priority" else no_constants),
    )


def _check_counts(
    draws: Table, place: IntArray, design: Design, facts: Facts, problems: Problems
) -> None:
    """A pair comes once, or once per batch with as many draws in each as the steps say."""
    batch, count = draws.whole("batch"), draws.whole("count")
    within = batch if design.with_replacement else np.zeros(len(draws), dtype=np.int64)
    order = np.lexsort((place, within))
    same = (within[order][1:] == within[order][:-1]) & (place[order][1:] == place[order][:-1])
    for before, row in zip(order[:-1][same].tolist(), order[1:][same].tolist(), strict=True):
        if place[row] >= 0:
            pair, line = draws.pair(row, facts.topics), draws.line[before]
            message = f"expected {pair} once, found it on line {line} already"
            problems.error(int(draws.line[row]), "docno", message)
    if not design.with_replacement:
        return
    if count.sum() > MAX_DRAWS:
        problems.fatal(None, "count", f"expected at most {MAX_DRAWS} draws, found more")
    wanted = np.diff(design.steps, prepend=0.0) * design.strata
    found = np.bincount(batch - 1, weights=count, minlength=design.batches)
    for at in np.flatnonzero(wanted != found).tolist():
        message = f"expected {wanted[at]:.15g} draws in batch {at + 1}, found {found[at]:.15g}"
        problems.error(None, "count", message)


def _check_probabilities(table: Table, pairs: _Pairs, design: Design, problems: Problems) -> None:
    expected = np.empty(len(table))
    expected[pairs.row[pairs.row >= 0]] = design.inclusion()[pairs.row >= 0]
    found = table.numbers["probability"]
    with inside(problems, PAIRS) as member:
        for row in np.flatnonzero(np.abs(found - expected) > _SAME * expected).tolist():
            told, right = float(found[row]), float(expected[row])
            message = f"expected {right!r}, which follows from the size, found {told!r}"
            member.error(int(table.line[row]), "probability", message)


def _labels(
    tables: _Tables, pairs: _Pairs, sample: Sample, facts: Facts, problems: Problems
) -> LabelRows:
    judgments, place = tables.judgments, pairs.find(tables.judgments)
    with inside(problems, JUDGMENTS) as member:
        for row in np.flatnonzero(~np.isin(place, sample.pair)).tolist():
            message = f"expected a pair of {DRAWS}, found {judgments.pair(row, facts.topics)}"
            member.error(int(judgments.line[row]), "docno", message)
    drawn = pairs.find(tables.draws)
    with inside(problems, DRAWS) as member:
        for row in np.flatnonzero((drawn >= 0) & ~np.isin(drawn, place)).tolist():
            message = f"expected a judgment of {tables.draws.pair(row, facts.topics)}, found none"
            member.error(int(tables.draws.line[row]), "docno", message)
    grade = judgments.whole("grade")
    order = np.lexsort((grade, place))
    return LabelRows(frozen(place[order]), frozen(grade[order]))


def _collection(
    facts: Facts,
    pairs: _Pairs,
    design: Design,
    sample: Sample,
    labels: LabelRows,
    problems: Problems,
) -> JudgedCollection | None:
    try:
        return JudgedCollection(
            topics=facts.topics,
            depth=facts.depth,
            topic=frozen(pairs.topic.astype(np.int32)),
            docno=frozen(pairs.docno),
            design=design,
            sample=sample,
            labels=labels,
            max_grade=facts.max_grade,
            version=facts.version,
            seed=facts.seed,
        )
    except CollectionError as error:
        problems.error(None, "", str(error))
        return None
