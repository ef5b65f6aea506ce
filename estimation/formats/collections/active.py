"""Judged collections of active rounds.

``collection.json``
    Topics, depth, grade scale and runs, the plan, and where it all comes from. The limits, in the
    order of the topics, say how many documents of each will be judged in all.
``lists.tsv.gz``
    See `ranked`.
``rounds.tsv.gz``
    topic, batch, draws: every round of a topic, with all of its draws, repetitions included.
``chances.tsv.gz``
    topic, batch, run, probability: how likely a draw of the round went to the run's list.
``draws.tsv.gz``
    topic, docno, batch, place: the documents of a round, in the order in which they were new.
``judgments.tsv.gz``
    topic, docno, grade: one row per judgment.
"""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np

from estimation.core.arrays import BoolArray, BytesArray, FloatArray, Int32Array, IntArray, frozen
from estimation.core.collections.ranked import RankedCollection
from estimation.core.data.pool import Pool
from estimation.core.measures.kinds import MAX_GRADE
from estimation.core.rounds.active.lists import make_frame
from estimation.core.rounds.active.rounds import ActivePlan, ActiveRound, log_absent
from estimation.core.rounds.active.sampling import ActiveState
from estimation.core.sampling.designs import MAX_BATCHES
from estimation.formats.collections import facts as common
from estimation.formats.collections import ranked
from estimation.formats.collections.archive import (
    DRAWS,
    FACTS,
    JUDGMENTS,
    TooLargeError,
    check_members,
    inside,
    write_members,
)
from estimation.formats.collections.facts import Fields
from estimation.formats.collections.ranked import (
    LISTS,
    MAX_CELLS,
    MAX_ENTRIES,
    RankedFacts,
    RankedReading,
)
from estimation.formats.collections.rows import judgment_rows, keys
from estimation.formats.collections.tables import (
    MAX_ROWS,
    PAIR,
    TOPIC,
    Table,
    name,
    share,
    table_bytes,
    whole,
)
from estimation.formats.columns import MAX_TOPICS
from judging.formats.problems import Problems, show

FORMAT = "evalsite-active-collection-1"
ROUNDS, CHANCES = "rounds.tsv.gz", "chances.tsv.gz"
MEMBERS = (FACTS, LISTS, ROUNDS, CHANCES, DRAWS, JUDGMENTS)
MAX_JUDGED = 10_000
"""Documents of a topic that are judged; every two of them are looked at."""
MAX_DRAWS = 10**14
"""Of a round; a new document may have a chance of as little as 1e-12."""
SUM_TOLERANCE = 1e-6  # of the chances of a round
ROUNDING = 1e-9
MAX_CHANCES = 10**10
"""Chances to be drawn, which every round of a topic gives to all documents of its lists."""

_LIMIT = common.whole(0, MAX_ROWS)
_FIELDS: Fields = {
    "relevant_from": common.whole(1, MAX_GRADE),
    "per_batch": common.whole(1, MAX_ROWS),
    "uniform_share": common.real("a number above 0 and at most 1", 5e-324, 1.0),
    "limits": common.list_of("a list of numbers of documents", _LIMIT.check, 1, MAX_TOPICS),
}


def write_active(file: IO[bytes], collection: RankedCollection) -> None:
    """Write a collection; TooLargeError, or another ValueError, for what no reader would take."""
    plan, state = _round(collection)
    if np.bincount(collection.topic[state.pair]).max() > MAX_JUDGED:
        raise TooLargeError(f"at most {MAX_JUDGED} judged documents of a topic")
    if state.run_probability.size > MAX_CELLS:
        raise TooLargeError(f"at most {MAX_CELLS} rounds times runs")
    if _chances_to_be_drawn(collection.pool, state.round_topic) > MAX_CHANCES:
        raise TooLargeError(f"at most {MAX_CHANCES} rounds times documents of lists")
    rest = {
        "relevant_from": plan.relevant_from,
        "per_batch": plan.per_batch,
        "uniform_share": state.uniform_share,
        "limits": plan.limits.tolist(),
    }
    contents = {
        FACTS: ranked.facts_bytes(collection, FORMAT, rest),
        LISTS: ranked.lists_bytes(collection),
        ROUNDS: table_bytes(("batch", "draws"), _round_rows(collection, state), key=TOPIC),
        CHANCES: table_bytes(
            ("batch", "run", "probability"),
            _chance_rows(collection, state),
            key=TOPIC,
            most=MAX_ENTRIES,
        ),
        DRAWS: table_bytes(("batch", "place"), _draw_rows(collection, state)),
        JUDGMENTS: table_bytes(("grade",), judgment_rows(collection)),
    }
    write_members(file, contents)


def _round(collection: RankedCollection) -> tuple[ActivePlan, ActiveState]:
    if not isinstance(collection.drawn, ActiveRound):
        raise TypeError("this is no collection of an active round")
    return collection.drawn.design, collection.drawn.sample


def _round_rows(collection: RankedCollection, state: ActiveState) -> Iterator[tuple[str, int, int]]:
    columns = (state.round_topic, state.round_batch, state.round_draws)
    for topic, batch, draws in zip(*(column.tolist() for column in columns), strict=True):
        yield collection.topics[topic], batch, draws


def _chance_rows(
    collection: RankedCollection, state: ActiveState
) -> Iterator[tuple[str, int, str, float]]:
    """By round, then run, those above 0."""
    runs = collection.pool.runs
    rounds = zip(state.round_topic.tolist(), state.round_batch.tolist(), strict=True)
    for (topic, batch), chances in zip(rounds, state.run_probability, strict=True):
        for run in np.flatnonzero(chances).tolist():
            yield collection.topics[topic], batch, runs[run], float(chances[run])


def _draw_rows(
    collection: RankedCollection, state: ActiveState
) -> Iterator[tuple[str, str, int, int]]:
    batch = state.round_batch[state.pair_round].tolist()
    place = _counted(state.pair_round).tolist()
    yield from (
        (*key, *numbers)
        for key, *numbers in zip(keys(collection, state.pair), batch, place, strict=True)
    )


def _chances_to_be_drawn(pool: Pool, rounds: IntArray | Int32Array) -> int:
    """How many there are, for rounds of these topics."""
    return int(pool.list_lengths.sum(axis=1)[rounds].sum())


def _counted(group: IntArray) -> IntArray:
    """The place of each row in its group, from 1; groups ascend."""
    return np.arange(len(group)) - np.searchsorted(group, group) + 1


# --------------------------------------------------------------------------------- reading


def read_active(
    archive: zipfile.ZipFile, found: Mapping[str, Any], problems: Problems
) -> RankedCollection | None:
    """Read the collection of an archive whose facts were `found`; None when it has an error.

    Rounds, chances, draws and judgments must fit each other, and the pool its digest. Raises
    `UnreadableError`, its problem recorded, when reading cannot go on.
    """
    check_members(archive, MEMBERS, problems)
    with inside(problems, FACTS) as member:
        facts = ranked.read_facts(found, FORMAT, _FIELDS, member)
    if facts is None:
        return None
    reading = RankedReading(archive, facts, problems)
    lists = reading.lists()
    pool = reading.pool(*_pairs_of(lists), lists) if problems.ok else None
    plan = None if pool is None else _plan(reading, pool)
    if pool is None or plan is None:
        return None
    rounds = _read_rounds(reading, plan, pool)
    if rounds is None:
        return None
    draws = _read_draws(reading, plan, pool, rounds)
    if draws is None:
        return None
    state = _state(facts, pool, rounds, draws)
    labels = reading.judged(pool, np.sort(state.pair), f"a document of {DRAWS}")
    if not problems.ok:
        return None
    return reading.built(
        lambda: RankedCollection.holding(pool, ActiveRound(plan, state), labels, **facts.told)
    )


def _pairs_of(lists: Table) -> tuple[IntArray, BytesArray]:
    """The pairs of the lists by (topic, docno), repetitions included."""
    order = np.lexsort((lists.docno, lists.topic))
    return lists.topic[order], lists.docno[order]


def _plan(reading: RankedReading, pool: Pool) -> ActivePlan | None:
    """The plan, if there are limits for the topics and documents for the limits."""
    rest = reading.facts.rest
    limits = np.array(rest["limits"], dtype=np.int64)
    sizes = np.bincount(pool.topic, minlength=len(pool.topics))
    with inside(reading.problems, FACTS) as problems:
        if len(limits) != len(sizes):
            message = f"expected {len(sizes)} numbers, one per topic, found {len(limits)}"
            problems.error(None, "limits", message)
            return None
        for at in np.flatnonzero(limits > sizes).tolist():
            named = f"{sizes[at]} documents of topic {show(pool.topics[at])}"
            problems.error(None, "limits", f"expected at most the {named}, found {limits[at]}")
    if not reading.problems.ok:
        return None
    return ActivePlan(frozen(limits), rest["per_batch"], rest["relevant_from"], pool.digest)


@dataclass(frozen=True, eq=False)
class _Rounds:
    """m rounds by (batch, topic), with their chances of k runs."""

    topic: IntArray
    batch: IntArray
    draws: IntArray
    chances: FloatArray  # (m, k)

    def find(self, topic: IntArray, batch: IntArray) -> IntArray:
        """The round of each topic and batch; -1 if there is none."""
        most = 1 + int(max(self.topic.max(), topic.max(initial=0)))
        known, wanted = self.batch * most + self.topic, batch * most + topic
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, place, -1)

    def named(self, at: int, topics: Sequence[str]) -> str:
        """Name a round for a message."""
        return f"topic {show(topics[self.topic[at]])} in batch {self.batch[at]}"


def _read_rounds(reading: RankedReading, plan: ActivePlan, pool: Pool) -> _Rounds | None:
    columns = whole("batch", 1, MAX_BATCHES), whole("draws", 1, MAX_DRAWS)
    table = reading.table(ROUNDS, *columns, key=TOPIC)
    batch = table.whole("batch")
    reading.refuse_repeats(table, (table.topic, batch), table.batch_of, "topic")
    never = plan.limits[table.topic] == 0
    reading.refuse(table, never, "topic", "a topic with a limit above 0", table.topic_of)
    planned = np.bincount(batch, minlength=2)[1:]
    for at in np.flatnonzero(planned == 0).tolist():
        reading.member_error(ROUNDS, None, "batch", f"expected rounds in batch {at + 1}")
    if len(table) * len(pool.runs) > MAX_CELLS:
        reading.member_error(ROUNDS, None, "", f"expected at most {MAX_CELLS} rounds times runs")
    if _chances_to_be_drawn(pool, table.topic) > MAX_CHANCES:
        message = f"expected at most {MAX_CHANCES} rounds times documents of lists"
        reading.member_error(ROUNDS, None, "", message)
    if not reading.problems.ok:
        return None
    order = np.lexsort((table.topic, batch))
    draws = table.whole("draws")[order]
    nothing = np.zeros((len(order), len(pool.runs)))
    rounds = _Rounds(table.topic[order], batch[order], draws, nothing)
    return _with_chances(reading, rounds, pool)


def _with_chances(reading: RankedReading, rounds: _Rounds, pool: Pool) -> _Rounds | None:
    """The rounds, if a draw of each surely goes to a list, and perhaps to any."""
    tags = {tag: place for place, tag in enumerate(pool.runs)}
    columns = whole("batch", 1, MAX_BATCHES), name("run", tags, f"a run of {FACTS}")
    table = reading.table(CHANCES, *columns, share("probability"), key=TOPIC, most=MAX_ENTRIES)
    batch, run = table.whole("batch"), table.whole("run")

    def named(row: int) -> str:
        return f"the run {show(pool.runs[run[row]])} for {table.batch_of(row)}"

    reading.refuse_repeats(table, (run, table.topic, batch), named, "topic")
    place = rounds.find(table.topic, batch)
    reading.refuse(table, place < 0, "batch", f"one of {ROUNDS}", table.batch_of)
    returned = pool.list_lengths > 0
    for row in np.flatnonzero(~returned[table.topic, run]).tolist():
        message = f"expected a run that returns something for {table.topic_of(row)}"
        reading.error(table, row, "run", f"{message}, found {show(pool.runs[run[row]])}")
    if not reading.problems.ok:
        return None
    chances = np.zeros_like(rounds.chances)
    chances[place, run] = table.numbers["probability"]
    _check_chances(reading, rounds, chances, returned)
    return replace(rounds, chances=chances) if reading.problems.ok else None


def _check_chances(
    reading: RankedReading, rounds: _Rounds, chances: FloatArray, returned: BoolArray
) -> None:
    """They add up to 1, and every run that returns something has its uniform share."""
    topics, totals = reading.facts.topics, chances.sum(axis=1)
    for at in np.flatnonzero(~(np.abs(totals - 1.0) <= SUM_TOLERANCE)).tolist():
        named = rounds.named(at, topics)
        message = f"expected chances of {named} that add up to 1, found {float(totals[at])!r}"
        reading.member_error(CHANCES, None, "probability", message)
    least = reading.facts.rest["uniform_share"] / np.maximum(returned.sum(axis=1), 1)
    for at, topic in enumerate(rounds.topic.tolist()):
        lacking = returned[topic] & (chances[at] < least[topic] * (1.0 - ROUNDING))
        for run in np.flatnonzero(lacking).tolist():
            named = f"the run {show(reading.facts.runs[run])} for {rounds.named(at, topics)}"
            message = f"expected {named} to have its uniform share,"
            found = f"{float(least[topic])!r}, or more, found {float(chances[at, run])!r}"
            reading.member_error(CHANCES, None, "probability", f"{message} {found}")


@dataclass(frozen=True, eq=False)
class _Draws:
    """The sampled pairs as they were drawn, and their rounds."""

    pair: IntArray
    round: IntArray


def _read_draws(
    reading: RankedReading, plan: ActivePlan, pool: Pool, rounds: _Rounds
) -> _Draws | None:
    columns = whole("batch", 1, MAX_BATCHES), whole("place", 1, plan.per_batch)
    table = reading.table(DRAWS, *columns, key=PAIR)
    reading.refuse_repeated_pairs(table)
    pair, batch = reading.places(table, pool), table.whole("batch")
    within = rounds.find(table.topic, batch)
    reading.refuse(table, pair < 0, "docno", f"a document of {LISTS}", table.pair)
    reading.refuse(table, within < 0, "batch", f"one of {ROUNDS}", table.batch_of)
    if not reading.problems.ok:
        return None
    _check_places(reading, table, within)
    _check_numbers(reading, plan, rounds, np.bincount(within, minlength=len(rounds.topic)))
    order = np.lexsort((table.whole("place"), within))
    return _Draws(pair[order], within[order]) if reading.problems.ok else None


def _check_places(reading: RankedReading, table: Table, within: IntArray) -> None:
    """The documents of a round are counted from 1."""
    place = table.whole("place")
    order = np.lexsort((place, within))
    expected = _counted(within[order])
    for at in np.flatnonzero(place[order] != expected).tolist():
        row = int(order[at])
        message = f"expected place {expected[at]} next for {table.batch_of(row)}"
        reading.error(table, row, "place", f"{message}, found {place[row]}")


def _check_numbers(
    reading: RankedReading, plan: ActivePlan, rounds: _Rounds, found: IntArray
) -> None:
    """Every round has new documents, no more than draws; no topic has more than its limit."""
    topics = reading.facts.topics
    for at in np.flatnonzero(found == 0).tolist():
        message = f"expected new documents of {rounds.named(at, topics)}, found none"
        reading.member_error(DRAWS, None, "docno", message)
    for at in np.flatnonzero(rounds.draws < found).tolist():
        message = f"expected {found[at]} draws or more for {rounds.named(at, topics)}"
        message += f", which has so many new documents, found {rounds.draws[at]}"
        reading.member_error(ROUNDS, None, "draws", message)
    taken = np.bincount(rounds.topic, weights=found, minlength=len(topics)).astype(np.int64)
    most = np.minimum(plan.limits, MAX_JUDGED)
    for at in np.flatnonzero(taken > most).tolist():
        message = f"expected at most {most[at]} documents of topic {show(topics[at])}"
        reading.member_error(DRAWS, None, "docno", f"{message}, found {taken[at]}")
    if reading.facts.seed is not None and found.sum() < plan.budget:
        with inside(reading.problems, FACTS) as problems:
            problems.error(None, "seed", "expected null, because the budget is not spent")


def _state(facts: RankedFacts, pool: Pool, rounds: _Rounds, draws: _Draws) -> ActiveState:
    """What was sampled; the chances of all pairs follow from the rounds."""
    state = ActiveState(
        seed=facts.seed or "",
        batch_size=facts.rest["per_batch"],
        relevant_from=facts.rest["relevant_from"],
        uniform_share=float(facts.rest["uniform_share"]),
        pool_digest=pool.digest,
        pair=frozen(draws.pair),
        pair_round=frozen(draws.round),
        round_topic=frozen(rounds.topic.astype(np.int32)),
        round_batch=frozen(rounds.batch.astype(np.int32)),
        round_draws=frozen(rounds.draws),
        run_probability=frozen(rounds.chances),
        log_absent=frozen(np.zeros(len(pool))),
    )
    return replace(state, log_absent=frozen(log_absent(make_frame(pool), state)))
