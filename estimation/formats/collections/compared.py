"""How the runs of an adaptive round rank the documents of which two at a time were compared.

``lists.tsv.gz``
    topic, docno, other, run, rank, other_rank: of every two documents that a run returns, down to
    the pool's depth, where it has either. They must be those of ranked lists.
"""

import numpy as np

from estimation.core.arrays import IntArray, frozen
from estimation.core.collections.base import RoundCollection
from estimation.core.collections.published import narrowed, pairs_alone
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import PoolError, RankedLists
from estimation.core.measures.kinds import PREFERENCE_MAX_GRADE
from estimation.formats.collections.archive import FACTS
from estimation.formats.collections.pair_facts import MAX_PREFERENCE_DEPTH
from estimation.formats.collections.ranked import LISTS, MAX_ENTRIES, RankedFacts, RankedReading
from estimation.formats.collections.reading import Row
from estimation.formats.collections.tables import TWO, Form, Table, name, whole
from judging.formats.problems import Problems


def compared_form(facts: RankedFacts) -> Form:
    """The table."""
    ranks = [whole(each, 1, facts.depth) for each in ("rank", "other_rank")]
    columns = [name("run", facts.runs, f"a run of {FACTS}"), *ranks]
    return Form(LISTS, TWO, columns, most=MAX_ENTRIES)


def is_of_two(facts: RankedFacts) -> bool:
    """Whether two documents at a time were judged."""
    return bool(facts.drawn["measure"].family == "preference")


def check_scale(facts: RankedFacts, problems: Problems) -> None:
    """Refuse another scale than that of preferences, and a depth that no reader takes."""
    if facts.max_grade != PREFERENCE_MAX_GRADE:
        found = f"found {facts.max_grade}"
        problems.error(
            None, "max_grade", f"expected {PREFERENCE_MAX_GRADE} for preferences, {found}"
        )
    if not 2 <= facts.depth <= MAX_PREFERENCE_DEPTH:
        wanted = f"a whole number from 2 to {MAX_PREFERENCE_DEPTH} for preferences"
        problems.error(None, "depth", f"expected {wanted}, found {facts.depth}")


def compared_rows(collection: RoundCollection) -> Row:
    """Return its rows, by run, then by pair."""
    pool = collection.pool
    pair = pool.entry_pair
    order = np.lexsort((pair, pool.run))
    columns = {"run": pool.run, "rank": pool.rank, "other_rank": pool.other_rank}
    return LISTS, pair[order], {name: np.asarray(each)[order] for name, each in columns.items()}


def read_compared(reading: RankedReading, pairs: Table, known: str) -> Pool:
    """Return the pool of preferences; RefusedError after an error.

    `pairs` ascend by (topic, docno); `known` names their table, which has every pair of the lists.
    """
    facts, table = reading.facts, reading.table(LISTS)
    reading.go_on()
    run = table.whole("run")

    def named(row: int) -> str:
        return f"{table.pair(row)} in the list of {facts.runs[run[row]]}"

    reading.refuse_repeats(table, (table.docno, table.topic, run), named, "docno")
    place = table.places(pairs.topic, pairs.docno)
    reading.refuse(table, place < 0, "docno", f"a pair of {known}", table.pair)
    reading.go_on()
    order = np.lexsort((run, place))
    alone = pairs_alone(
        facts.topics,
        facts.depth,
        frozen(pairs.topic.astype(np.int32)),
        pairs.docno,
        of_two=True,
    )
    numbers = np.bincount(place, minlength=len(alone))
    ranks = (frozen(table.whole(each)[order].astype(np.int32)) for each in ("rank", "other_rank"))
    rank, other_rank = ranks
    pool = Pool(
        topics=facts.topics,
        runs=facts.runs,
        depth=facts.depth,
        topic=alone.topic,
        docno=alone.docno,
        indptr=frozen(np.append(0, np.cumsum(numbers))),
        run=frozen(run[order].astype(np.int32)),
        rank=rank,
        other=alone.other,
        other_rank=other_rank,
    )
    if pool.digest != facts.pool_digest:
        wanted = f"{pool.digest}, which follows from the tables"
        reading.error(FACTS, None, "pool", wanted, facts.pool_digest)
    elif _of_lists(pool) != pool.digest:
        reading.error(LISTS, None, "rank", "ranks that are those of one list for each run")
    reading.go_on()
    return pool


def _of_lists(pool: Pool) -> str:
    """The digest of the pool of preferences that the ranks of every two documents make up."""
    entries = pool.entry_pair
    documents = np.concatenate([pool.docno[entries], np.asarray(pool.other)[entries]])
    ranks = np.concatenate([pool.rank, np.asarray(pool.other_rank)]).astype(np.int64)
    topic, run = (np.tile(each, 2).astype(np.int64) for each in (pool.topic[entries], pool.run))
    cell = run * len(pool.topics) + topic
    order = np.lexsort((documents, ranks, cell))
    same = (np.diff(cell[order]) == 0) & (np.diff(ranks[order]) == 0)
    same &= documents[order][1:] == documents[order][:-1]
    kept = order[np.append(True, ~same)] if len(order) else order
    try:
        lists = _lists(pool, cell[kept], documents[kept])
        made = preference_pool(build_pool(pool.topics, lists, depth=pool.depth), depth=pool.depth)
    except PoolError:
        return ""
    return narrowed(made).digest


def _lists(pool: Pool, cell: IntArray, documents: np.ndarray) -> dict[str, RankedLists]:
    topics, every = len(pool.topics), np.arange(len(pool.topics) * len(pool.runs) + 1)
    bounds = np.searchsorted(cell, every)
    lists = {}
    for number, tag in enumerate(pool.runs):
        own = bounds[number * topics : (number + 1) * topics + 1]
        lists[tag] = RankedLists(pool.topics, own - own[0], documents[own[0] : own[-1]])
    return lists
