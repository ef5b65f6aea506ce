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

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from estimation.core.arrays import FloatArray, Int32Array, IntArray, frozen
from estimation.core.collections.base import RoundCollection
from estimation.core.data.pool import Pool
from estimation.core.measures.kinds import MAX_GRADE
from estimation.core.rounds.active.lists import make_frame
from estimation.core.rounds.active.rounds import ActivePlan, ActiveRound, log_absent
from estimation.core.rounds.active.sampling import ActiveState
from estimation.core.sampling.designs import MAX_BATCHES
from estimation.formats.collections import facts as common
from estimation.formats.collections import ranked
from estimation.formats.collections.archive import DRAWS, FACTS, TooLargeError
from estimation.formats.collections.ranked import (
    LISTS,
    MAX_CELLS,
    MAX_ENTRIES,
    RankedFacts,
    RankedReading,
)
from estimation.formats.collections.reading import Kind, Row, counted, judgment_rows, judgments
from estimation.formats.collections.tables import (
    MAX_ROWS,
    PAIR,
    TOPIC,
    Form,
    Numbers,
    Table,
    name,
    share,
    whole,
)
from judging.formats.columns import MAX_TOPICS
from judging.formats.problems import Problems, show

FORMAT = "evalsite-active-collection-1"
ROUNDS, CHANCES = "rounds.tsv.gz", "chances.tsv.gz"
MAX_JUDGED = 10_000
"""Documents of a topic that are judged; every two of them are looked at."""
MAX_DRAWS = 10**14
"""Of a round; a new document may have a chance of as little as 1e-12."""
SUM_TOLERANCE = 1e-6  # of the chances of a round
ROUNDING = 1e-9
MAX_CHANCES = 10**10
"""Chances to be drawn, which every round of a topic gives to all documents of its lists."""

_LIMITS = common.list_of(
    "a list of numbers of documents",
    common.whole(0, MAX_ROWS).check,
    1,
    MAX_TOPICS,
    dump=np.ndarray.tolist,
    load=lambda limits: frozen(np.array(limits, dtype=np.int64)),
)
_OF_ROUND = common.within(
    "drawn",
    {
        "relevant_from": common.whole(1, MAX_GRADE).of("design.relevant_from"),
        "per_batch": common.whole(1, MAX_ROWS).of("design.per_batch"),
        "uniform_share": common.real("a number above 0 and at most 1", 5e-324, 1.0).of(
            "sample.uniform_share"
        ),
        "limits": _LIMITS.of("design.limits"),
    },
)


def _facts(found: Mapping[str, Any], problems: Problems) -> RankedFacts:
    return ranked.make_facts(found, _OF_ROUND, problems)


def _forms(facts: RankedFacts) -> list[Form]:
    batch = whole("batch", 1, MAX_BATCHES)
    run = name("run", facts.runs, f"a run of {FACTS}")
    return [
        ranked.lists_form(facts),
        Form(ROUNDS, TOPIC, [batch, whole("draws", 1, MAX_DRAWS)]),
        Form(CHANCES, TOPIC, [batch, run, share("probability")], most=MAX_ENTRIES),
        Form(DRAWS, PAIR, [batch, whole("place", 1, facts.drawn["per_batch"])]),
        judgments(facts),
    ]


# --------------------------------------------------------------------------------- writing


def _state_of(collection: RoundCollection) -> ActiveState:
    if not isinstance(collection.drawn, ActiveRound):
        raise TypeError("this is no collection of an active round")
    return collection.drawn.sample


def _refuse_large(collection: RoundCollection) -> None:
    ranked.refuse_large(collection)
    state = _state_of(collection)
    if np.bincount(collection.topic[state.pair]).max() > MAX_JUDGED:
        raise TooLargeError(f"at most {MAX_JUDGED} judged documents of a topic")
    if state.run_probability.size > MAX_CELLS:
        raise TooLargeError(f"at most {MAX_CELLS} rounds times runs")
    if _chances_to_be_drawn(collection.pool, state.round_topic) > MAX_CHANCES:
        raise TooLargeError(f"at most {MAX_CHANCES} rounds times documents of lists")


def _chances_to_be_drawn(pool: Pool, rounds: IntArray | Int32Array) -> int:
    """How many there are, for rounds of these topics."""
    return int(pool.list_lengths.sum(axis=1)[rounds].sum())


def _rows(collection: RoundCollection) -> Iterator[Row]:
    state = _state_of(collection)
    topic, batch = state.round_topic, state.round_batch
    yield ranked.list_rows(collection)
    yield ROUNDS, topic, {"batch": batch, "draws": state.round_draws}
    place, run = np.nonzero(state.run_probability)
    chances = {"run": run, "probability": state.run_probability[place, run]}
    yield CHANCES, topic[place], {"batch": batch[place], **chances}
    places: Numbers = {"batch": batch[state.pair_round], "place": counted(state.pair_round)}
    yield DRAWS, state.pair, places
    yield judgment_rows(collection)


# --------------------------------------------------------------------------------- reading


def _read(reading: RankedReading) -> RoundCollection:
    lists = ranked.read_lists(reading)
    order = np.lexsort((lists.docno, lists.topic))
    pool = ranked.read_pool(reading, lists.topic[order], lists.docno[order], lists)
    plan = _plan(reading, pool)
    rounds = _read_rounds(reading, plan, pool)
    chances = _read_chances(reading, rounds, pool)
    pair, within = _read_draws(reading, plan, pool, rounds)
    told = reading.facts.drawn
    state = ActiveState(
        seed=reading.facts.seeds[0] or "",
        batch_size=told["per_batch"],
        relevant_from=told["relevant_from"],
        uniform_share=float(told["uniform_share"]),
        pool_digest=pool.digest,
        pair=frozen(pair),
        pair_round=frozen(within),
        round_topic=frozen(rounds.topic.astype(np.int32)),
        round_batch=frozen(rounds.whole("batch").astype(np.int32)),
        round_draws=frozen(rounds.whole("draws")),
        run_probability=frozen(chances),
        log_absent=frozen(np.zeros(len(pool))),
    )
    state = replace(state, log_absent=frozen(log_absent(make_frame(pool), state)))
    return ranked.collected(reading, pool, ActiveRound(plan, state), f"a document of {DRAWS}")


def _plan(reading: RankedReading, pool: Pool) -> ActivePlan:
    """The plan, if there are limits for the topics and documents for the limits."""
    told = reading.facts.drawn
    limits = told["limits"]
    sizes = np.bincount(pool.topic, minlength=len(pool.topics))
    if len(limits) != len(sizes):
        wanted = f"{len(sizes)} numbers, one per topic"
        reading.error(FACTS, None, "limits", wanted, len(limits))
    reading.go_on()
    for at in np.flatnonzero(limits > sizes).tolist():
        wanted = f"at most the {sizes[at]} documents of topic {show(pool.topics[at])}"
        reading.error(FACTS, None, "limits", wanted, limits[at])
    reading.go_on()
    return ActivePlan(limits, told["per_batch"], told["relevant_from"], pool.digest)


def _read_rounds(reading: RankedReading, plan: ActivePlan, pool: Pool) -> Table:
    """The m rounds by (batch, topic)."""
    table = reading.table(ROUNDS)
    batch = table.whole("batch")
    reading.refuse_repeats(table, (table.topic, batch), table.batch_of, "topic")
    never = plan.limits[table.topic] == 0
    reading.refuse(table, never, "topic", "a topic with a limit above 0", table.topic_of)
    planned = np.bincount(batch, minlength=2)[1:]
    for at in np.flatnonzero(planned == 0).tolist():
        reading.error(ROUNDS, None, "batch", f"rounds in batch {at + 1}")
    if len(table) * len(pool.runs) > MAX_CELLS:
        reading.error(ROUNDS, None, "", f"at most {MAX_CELLS} rounds times runs")
    if _chances_to_be_drawn(pool, table.topic) > MAX_CHANCES:
        reading.error(ROUNDS, None, "", f"at most {MAX_CHANCES} rounds times documents of lists")
    reading.go_on()
    return table.ordered(table.topic, batch)


def _find_rounds(table: Table, rounds: Table) -> IntArray:
    """The round of the topic and the batch of each row; -1 if there is none."""
    most = 1 + int(max(rounds.topic.max(), table.topic.max(initial=0)))
    known, wanted = (each.whole("batch") * most + each.topic for each in (rounds, table))
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[place] == wanted, place, -1)


def _read_chances(reading: RankedReading, rounds: Table, pool: Pool) -> FloatArray:
    """How likely a draw of each round is to go to the list of each run, shape (m, k)."""
    table = reading.table(CHANCES)
    batch, run = table.whole("batch"), table.whole("run")

    def named(row: int) -> str:
        return f"the run {show(pool.runs[run[row]])} for {table.batch_of(row)}"

    reading.refuse_repeats(table, (run, table.topic, batch), named, "topic")
    place = _find_rounds(table, rounds)
    reading.refuse(table, place < 0, "batch", f"one of {ROUNDS}", table.batch_of)
    returned = pool.list_lengths > 0
    for row in np.flatnonzero(~returned[table.topic, run]).tolist():
        wanted = f"a run that returns something for {table.topic_of(row)}"
        reading.error(table, row, "run", wanted, show(pool.runs[run[row]]))
    reading.go_on()
    chances = np.zeros((len(rounds), len(pool.runs)))
    chances[place, run] = table.numbers["probability"]
    _check_chances(reading, rounds, chances, pool)
    return chances


def _check_chances(reading: RankedReading, rounds: Table, chances: FloatArray, pool: Pool) -> None:
    """They add up to 1, and every run that returns something has its uniform share."""
    totals, returned = chances.sum(axis=1), pool.list_lengths > 0
    for at in np.flatnonzero(~(np.abs(totals - 1.0) <= SUM_TOLERANCE)).tolist():
        wanted = f"chances of {rounds.batch_of(at)} that add up to 1"
        reading.error(CHANCES, None, "probability", wanted, totals[at])
    least = reading.facts.drawn["uniform_share"] / np.maximum(returned.sum(axis=1), 1)
    least = least[rounds.topic, None]
    lacking = returned[rounds.topic] & (chances < least * (1.0 - ROUNDING))
    for at, run in zip(*np.nonzero(lacking), strict=True):
        named = f"the run {show(pool.runs[run])} for {rounds.batch_of(at)}"
        wanted = f"{named} to have its uniform share, {least[at, 0]}, or more"
        reading.error(CHANCES, None, "probability", wanted, chances[at, run])
    reading.go_on()


def _read_draws(
    reading: RankedReading, plan: ActivePlan, pool: Pool, rounds: Table
) -> tuple[IntArray, IntArray]:
    """The sampled pairs as they were drawn, and their rounds."""
    table = reading.table(DRAWS)
    reading.refuse_repeated_pairs(table)
    pair, within = table.places(pool.topic, pool.docno), _find_rounds(table, rounds)
    reading.refuse(table, pair < 0, "docno", f"a document of {LISTS}", table.pair)
    reading.refuse(table, within < 0, "batch", f"one of {ROUNDS}", table.batch_of)
    reading.go_on()
    place = table.whole("place")
    order = np.lexsort((place, within))
    expected = np.empty(len(order), dtype=np.int64)
    expected[order] = counted(within[order])
    for row in np.flatnonzero(place != expected).tolist():
        wanted = f"place {expected[row]} next for {table.batch_of(row)}"
        reading.error(table, row, "place", wanted, place[row])
    _check_numbers(reading, plan, rounds, np.bincount(within, minlength=len(rounds)))
    reading.go_on()
    return pair[order], within[order]


def _check_numbers(
    reading: RankedReading, plan: ActivePlan, rounds: Table, found: IntArray
) -> None:
    """Every round has new documents, no more than draws; no topic has more than its limit."""
    draws, topics = rounds.whole("draws"), reading.facts.topics
    for at in np.flatnonzero(found == 0).tolist():
        reading.error(DRAWS, None, "docno", f"new documents of {rounds.batch_of(at)}", "none")
    for at in np.flatnonzero(draws < found).tolist():
        wanted = f"{found[at]} draws or more for {rounds.batch_of(at)}"
        wanted += ", which has so many new documents"
        reading.error(ROUNDS, None, "draws", wanted, draws[at])
    taken = np.bincount(rounds.topic, weights=found, minlength=len(topics)).astype(np.int64)
    most = np.minimum(plan.limits, MAX_JUDGED)
    for at in np.flatnonzero(taken > most).tolist():
        wanted = f"at most {most[at]} documents of topic {show(topics[at])}"
        reading.error(DRAWS, None, "docno", wanted, taken[at])
    if reading.facts.seeds[0] is not None and found.sum() < plan.budget:
        reading.error(FACTS, None, "seed", "null, because the budget is not spent")


KIND = Kind({**ranked.FIELDS, **_OF_ROUND}, _refuse_large, _facts, _forms, _rows, _read)
