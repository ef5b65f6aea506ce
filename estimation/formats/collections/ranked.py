"""What collections with the ranked lists of their pool share: facts, pairs, lists.

``lists.tsv.gz``
    topic, docno, run, rank: what every run of the pool returns, down to the pool's depth. Where
    scores of runs are predictions, score as well.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from estimation.core.arrays import BytesArray, IntArray
from estimation.core.collections.base import RoundCollection
from estimation.core.collections.published import checked
from estimation.core.data.labels import pair_name
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import part_names
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.scores import MOST_SCORE
from estimation.core.measures.table import Measure
from estimation.core.rounds.results import DrawnRound
from estimation.formats.collections import facts as common
from estimation.formats.collections.archive import FACTS, JUDGMENTS, TooLargeError, go_on
from estimation.formats.collections.facts import Facts, Fields
from estimation.formats.collections.reading import CollectionReading, Row, counted
from estimation.formats.collections.tables import PAIR, Form, Numbers, Table, name, real, whole
from judging.formats.problems import Problems, show

LISTS, SCORE = "lists.tsv.gz", "score"
MAX_ENTRIES = 10_000_000
MAX_CELLS = 10_000_000
"""Numbers that are held of all topics, or rounds, and all runs."""


@dataclass(frozen=True, eq=False)
class RankedFacts(Facts):
    """What ``collection.json`` says; `drawn` is what only the kind itself says, of its round."""

    seeds: tuple[str | None]
    made_for: tuple[Measure, ...]
    runs: tuple[str, ...]
    drawn: Mapping[str, Any]


RUNS = common.list_of(
    f"a list of 1 to {common.MAX_RUNS} tags of runs", common.is_id, 1, common.MAX_RUNS
)
FIELDS: Fields = {
    **common.COMMON,
    "seed": replace(common.SEED, dump=lambda seeds: seeds[0], load=lambda seed: (seed,)).of(
        "seeds"
    ),
    "measures": common.measures("a list of 1 to 100 names of measures", 1).of("made_for"),
    "runs": replace(RUNS, load=common.ascending).of("pool.runs"),
}
"""What every kind says that keeps lists."""


def make_facts(found: Mapping[str, Any], own: Fields, problems: Problems) -> RankedFacts:
    """Return the facts of a kind with `own` fields; RefusedError if there is an error."""
    told, drawn = (common.loaded(found, fields, problems) for fields in (FIELDS, own))
    go_on(problems)
    facts = RankedFacts(**told, drawn=drawn)
    if len(facts.topics) * len(facts.runs) > MAX_CELLS:
        problems.error(None, "runs", f"expected at most {MAX_CELLS} runs times topics, found more")
    go_on(problems)
    return facts


def lists_form(facts: RankedFacts, *, scores: bool = False) -> Form:
    """The table of the lists, with scores or without."""
    columns = [name("run", facts.runs, f"a run of {FACTS}"), whole("rank", 1, facts.depth)]
    columns += [real(SCORE, -MOST_SCORE, MOST_SCORE)] * scores
    return Form(LISTS, PAIR, columns, most=MAX_ENTRIES)


# --------------------------------------------------------------------------------- writing


def refuse_large(collection: RoundCollection) -> None:
    """Raise TooLargeError for runs that no reader would take."""
    if len(collection.pool.runs) > common.MAX_RUNS:
        raise TooLargeError(f"at most {common.MAX_RUNS} runs")
    if len(collection.pool.runs) * len(collection.topics) > MAX_CELLS:
        raise TooLargeError(f"at most {MAX_CELLS} runs times topics")


def list_rows(collection: RoundCollection) -> Row:
    """Return the rows of the lists by run, then topic, then rank."""
    pool = collection.pool
    pair = pool.entry_pair
    order = np.lexsort((pool.rank, pool.topic[pair], pool.run))
    columns: Numbers = {"run": pool.run[order], "rank": pool.rank[order]}
    scores = {} if pool.score is None else {SCORE: pool.score[order]}
    return LISTS, pair[order], {**columns, **scores}


# --------------------------------------------------------------------------------- reading

RankedReading = CollectionReading[RankedFacts]


def read_lists(reading: RankedReading) -> Table:
    """Read the lists by run, then topic, then rank: from 1 on, each once, and no document twice."""
    lists = reading.table(LISTS)
    reading.go_on()
    lists = lists.ordered(lists.numbers["rank"], lists.topic, lists.numbers["run"])
    run, rank = lists.whole("run"), lists.whole("rank")

    def list_of(row: int) -> str:
        return f"the list of {show(reading.facts.runs[run[row]])}"

    keys = lists.docno, lists.topic, run
    reading.refuse_repeats(lists, keys, lambda row: f"{lists.pair(row)} in {list_of(row)}", "docno")
    cells = run * len(lists.topics) + lists.topic
    expected = counted(cells)
    wrong = np.flatnonzero(rank != expected)
    for row in wrong[np.unique(cells[wrong], return_index=True)[1]].tolist():
        whose = f"{list_of(row)} for {lists.topic_of(row)}"
        reading.error(lists, row, "rank", f"rank {expected[row]} next in {whose}", rank[row])
    return lists


def read_pool(
    reading: RankedReading, topic: IntArray, docno: BytesArray, lists: Table, known: str = ""
) -> Pool:
    """Return the pool of lists and of pairs that may be in none; RefusedError after an error.

    Pairs ascend by (topic, docno). `known` names the tables of these pairs, if they should have
    every pair of the lists.
    """
    facts = reading.facts
    if known:
        place = lists.places(topic, docno)
        reading.refuse(lists, place < 0, "docno", f"a pair of {known}", lists.pair)
    reading.go_on()
    bounds = np.searchsorted(topic, np.arange(len(facts.topics) + 1)).tolist()
    extra = {
        name: [each.decode() for each in docno[first:last].tolist()]
        for name, (first, last) in zip(facts.topics, pairwise(bounds), strict=True)
    }
    runs = dict(zip(facts.runs, _runs(lists, len(facts.runs)), strict=True))
    scores = SCORE in lists.numbers
    pool = build_pool(facts.topics, runs, depth=facts.depth, scores=scores, extra=extra)
    if pool.digest != facts.pool_digest:
        wanted = f"{pool.digest}, which follows from the tables"
        reading.error(FACTS, None, "pool", wanted, facts.pool_digest)
    reading.go_on()
    return pool


def _runs(lists: Table, number: int) -> Iterator[RankedLists]:
    bounds = np.searchsorted(lists.whole("run"), np.arange(number + 1))
    for first, last in pairwise(bounds.tolist()):
        topic = lists.topic[first:last]
        indptr = np.searchsorted(topic, np.arange(len(lists.topics) + 1)).astype(np.int64)
        scores = lists.numbers[SCORE][first:last] if SCORE in lists.numbers else None
        yield RankedLists(tuple(lists.topics), indptr, lists.docno[first:last], scores)


def collected(reading: RankedReading, pool: Pool, drawn: DrawnRound, what: str) -> RoundCollection:
    """Return the collection, if every document that is served has a judgment, and no other.

    `what` says what every such document is. RefusedError after an error.
    """
    served, facts = drawn.pairs(pool), reading.facts
    judgments = reading.table(JUDGMENTS)
    place = judgments.places(pool.topic, part_names(pool))
    labels = reading.labels(place, judgments, served, what)
    for pair in served[~np.isin(served, labels.pair)].tolist():
        named = f"docno {show(pool.docno[pair].decode())}"
        named += f" of topic {show(pool.topics[int(pool.topic[pair])])}"
        named = pair_name(pair, pool) if pool.is_of_preferences else named
        reading.error(JUDGMENTS, None, "docno", f"a judgment of {named}, {what}", "none")
    reading.go_on()
    return checked(
        RoundCollection(
            pool,
            drawn,
            labels,
            max_grade=facts.max_grade,
            version=facts.version,
            made_for=facts.made_for,
            seeds=facts.seeds,
            look=facts.look,
            negligible=facts.negligible,
        )
    )
