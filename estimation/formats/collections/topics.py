"""Judged collections of whole topics that were drawn.

``collection.json``
    Topics, depth, grade scale and runs, the steps of the budget, how the topics were given their
    probabilities, and where it all comes from.
``topics.tsv.gz``
    topic, cost, probability: every topic that could be drawn. The probability is that of one draw.
``pairs.tsv.gz``
    topic, docno: what is judged where its topic is drawn.
``others.tsv.gz``
    topic, docno: the other pairs of the pool.
``lists.tsv.gz``
    See `ranked`.
``draws.tsv.gz``
    topic, batch, count: how often a topic was drawn; the last batch of a census takes every topic
    that is left, once.
``judgments.tsv.gz``
    topic, docno, grade: one row per judgment.
"""

import zipfile
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import IO, Any

import numpy as np

from estimation.core.arrays import BoolArray, FloatArray, frozen
from estimation.core.collections.base import RoundCollection
from estimation.core.data.pool import Pool
from estimation.core.rounds.rounds import TopicRound
from estimation.core.rounds.topics.designs import (
    ESTIMATORS,
    ROUNDING,
    RULES,
    QueryDesign,
    labeled_pairs,
)
from estimation.core.rounds.topics.draws import MAX_DRAWS, QuerySample
from estimation.core.sampling.designs import MAX_BATCHES
from estimation.formats.collections import facts as common
from estimation.formats.collections import ranked
from estimation.formats.collections.archive import (
    DRAWS,
    FACTS,
    JUDGMENTS,
    check_members,
    inside,
    write_members,
)
from estimation.formats.collections.facts import Fields
from estimation.formats.collections.ranked import LISTS, RankedFacts, RankedReading
from estimation.formats.collections.rows import judgment_rows, keys
from estimation.formats.collections.tables import (
    PAIR,
    TOPIC,
    Table,
    positive,
    share,
    table_bytes,
    whole,
)
from judging.formats.problems import Problems, show

FORMAT = "evalsite-topic-collection-1"
TOPICS, PAIRS, OTHERS = "topics.tsv.gz", "pairs.tsv.gz", "others.tsv.gz"
MEMBERS = (FACTS, TOPICS, PAIRS, OTHERS, LISTS, DRAWS, JUDGMENTS)
SUM_TOLERANCE = 1e-6
LEAST_DRAWS = 2  # fewer show no variance

_STEPS = common.list_of(
    f"a list of 1 to {MAX_BATCHES} positive numbers",
    lambda value: common.is_number(value) and value > 0,
    1,
    MAX_BATCHES,
)
_DEPTH = common.whole(1, common.MAX_DEPTH)
_FIELDS: Fields = {
    "judged_runs": ranked.RUNS,
    "judged_depth": common.Field(
        f"null or {_DEPTH.expected}", lambda value: value is None or _DEPTH.check(value)
    ),
    "steps": _STEPS,
    "goal": common.GOAL,
    "measure": common.MEASURE,
    "rule": common.one_of(*RULES),
    "model": common.TEXT,
    "estimator": common.one_of(*ESTIMATORS),
    "floor": common.real("a number from 0 to 1", 0.0, 1.0),
}
_OF_DESIGN = ("rule", "model", "estimator", "floor")


def write_topics(file: IO[bytes], collection: RoundCollection) -> None:
    """Write a collection; TooLargeError, or another ValueError, for what no reader would take."""
    design, sample = _round(collection)
    reached = labeled_pairs(collection.pool, runs=design.runs, depth=design.depth)
    judged, others = np.flatnonzero(reached), np.flatnonzero(~reached)
    contents = {
        FACTS: ranked.facts_bytes(collection, FORMAT, _facts_of(design)),
        TOPICS: table_bytes(("cost", "probability"), _topic_rows(collection, design), key=TOPIC),
        PAIRS: table_bytes((), keys(collection, judged)),
        OTHERS: table_bytes((), keys(collection, others)),
        LISTS: ranked.lists_bytes(collection),
        DRAWS: table_bytes(("batch", "count"), _draw_rows(collection, design, sample), key=TOPIC),
        JUDGMENTS: table_bytes(("grade",), judgment_rows(collection)),
    }
    write_members(file, contents)


def _facts_of(design: QueryDesign) -> dict[str, Any]:
    return {
        "judged_runs": design.runs,
        "judged_depth": design.depth,
        "steps": design.steps.tolist(),
        "goal": common.goal_facts(design.goal),
        "measure": str(design.measure),
        **{name: getattr(design, name) for name in _OF_DESIGN},
    }


def _round(collection: RoundCollection) -> tuple[QueryDesign, QuerySample]:
    if not isinstance(collection.drawn, TopicRound):
        raise TypeError("this is no collection of whole topics")
    return collection.drawn.design, collection.drawn.sample


def _topic_rows(
    collection: RoundCollection, design: QueryDesign
) -> Iterator[tuple[str, float, float]]:
    for place in np.flatnonzero(design.eligible).tolist():
        cost, chance = float(design.cost[place]), float(design.probability[place])
        yield collection.topics[place], cost, chance


def _draw_rows(
    collection: RoundCollection, design: QueryDesign, sample: QuerySample
) -> Iterator[tuple[str, int, int]]:
    """By batch, then topic."""
    batch, topic = sample.draw_batch.astype(np.int64), sample.draws
    if design.is_census:
        rest = sample.topic[sample.batch == design.batches]
        batch = np.append(batch, np.full(len(rest), design.batches))
        topic = np.append(topic, rest)
    (batch, topic), counts = np.unique(np.stack([batch, topic]), axis=1, return_counts=True)
    rows = zip(topic.tolist(), batch.tolist(), counts.tolist(), strict=True)
    yield from ((collection.topics[place], number, count) for place, number, count in rows)


# --------------------------------------------------------------------------------- reading


def read_topics(
    archive: zipfile.ZipFile, found: Mapping[str, Any], problems: Problems
) -> RoundCollection | None:
    """Read the collection of an archive whose facts were `found`; None when it has an error.

    Costs, probabilities, draws and judgments must fit each other, and the pool its digest. Raises
    `UnreadableError`, its problem recorded, when reading cannot go on.
    """
    check_members(archive, MEMBERS, problems)
    with inside(problems, FACTS) as member:
        facts = ranked.read_facts(found, FORMAT, _FIELDS, member)
        told = None if facts is None else _read_design(facts, member)
    if facts is None or told is None:
        return None
    reading = RankedReading(archive, facts, problems)
    pool = _read_pool(reading, told)
    if pool is None:
        return None
    design = _design(reading, told, pool)
    if design is None:
        return None
    sample = _read_draws(reading, design)
    if sample is None:
        return None
    drawn = TopicRound(design, sample)
    labels = reading.judged(pool, drawn.served(pool).pair, f"a document of a topic of {DRAWS}")
    if not problems.ok:
        return None
    return reading.built(lambda: RoundCollection(pool, drawn, labels, **facts.told))


def _read_design(facts: RankedFacts, problems: Problems) -> dict[str, Any] | None:
    """The arguments of the design, but for what stands in tables."""
    rest = facts.rest
    steps = [float(step) for step in rest["steps"]]
    if any(after < before for before, after in pairwise(steps)):
        problems.error(None, "steps", "expected steps that never fall")
    judged = rest["judged_runs"]
    for tag in judged:
        if tag not in facts.runs:
            problems.error(None, "judged_runs", f"expected one of the runs, found {show(tag)}")
    if list(judged) != [tag for tag in facts.runs if tag in set(judged)]:
        problems.error(None, "judged_runs", "expected the order of the runs, each once")
    goal = common.read_goal(rest["goal"], problems)
    measure = common.read_measure(rest["measure"], "measure", problems)
    if not problems.ok:
        return None
    named = {name: rest[name] for name in _OF_DESIGN}
    return named | {
        "runs": tuple(judged),
        "depth": rest["judged_depth"],
        "steps": frozen(np.array(steps)),
        "goal": goal,
        "measure": measure,
        "pool_digest": facts.pool,
    }


def _read_pool(reading: RankedReading, told: Mapping[str, Any]) -> Pool | None:
    """The pool, if the judged pairs are those that follow from the lists."""
    tables = {member: reading.table(member, key=PAIR) for member in (PAIRS, OTHERS)}
    lists = reading.lists()
    for table in tables.values():
        reading.refuse_repeated_pairs(table)
    if not len(tables[PAIRS]):
        reading.member_error(PAIRS, None, "", "expected pairs, found none")
    if not reading.problems.ok:
        return None
    topic = np.concatenate([table.topic for table in tables.values()])
    docno = np.concatenate([table.docno for table in tables.values()])
    order = np.lexsort((docno, topic))
    pool = reading.pool(topic[order], docno[order], lists, f"{PAIRS} or {OTHERS}")
    if pool is None:
        return None
    reached = labeled_pairs(pool, runs=told["runs"], depth=told["depth"])
    for member, table in tables.items():
        rule = "is judged where its topic is drawn" if member == PAIRS else "is not judged"
        wrong = reached[reading.places(table, pool)] != (member == PAIRS)
        reading.refuse(table, wrong, "docno", f"a pair that {rule}", table.pair)
    return pool if reading.problems.ok else None


def _design(reading: RankedReading, told: Mapping[str, Any], pool: Pool) -> QueryDesign | None:
    """The design, if the topics are those with something to judge."""
    table = reading.table(TOPICS, positive("cost"), share("probability"), key=TOPIC)
    reading.refuse_repeats(table, (table.topic,), table.topic_of, "topic")
    needed = np.zeros(len(pool.topics), dtype=np.bool_)
    needed[pool.topic[labeled_pairs(pool, runs=told["runs"], depth=told["depth"])]] = True
    wrong = ~needed[table.topic]
    reading.refuse(table, wrong, "topic", f"a topic with pairs in {PAIRS}", table.topic_of)
    needed[table.topic] = False
    for topic in np.flatnonzero(needed).tolist():
        message = f"expected topic {show(pool.topics[topic])}, which has pairs, found nothing"
        reading.member_error(TOPICS, None, "topic", message)
    total = float(table.numbers["probability"].sum())
    if abs(total - 1.0) > SUM_TOLERANCE:
        message = f"expected numbers that add up to 1, found {total!r}"
        reading.member_error(TOPICS, None, "probability", message)
    if not reading.problems.ok:
        return None
    design = QueryDesign(
        cost=_by_topic(table, "cost", pool),
        probability=_by_topic(table, "probability", pool),
        **told,
    )
    _check_steps(reading, design)
    return design if reading.problems.ok else None


def _by_topic(table: Table, name: str, pool: Pool) -> FloatArray:
    values = np.zeros(len(pool.topics))
    values[table.topic] = table.numbers[name]
    return frozen(values)


def _check_steps(reading: RankedReading, design: QueryDesign) -> None:
    """They pay for the two most expensive topics at once, and for no more than all."""
    total, dearest = float(design.cost.sum()), float(np.sort(design.cost)[-2:].sum())
    with inside(reading.problems, FACTS) as problems:
        if design.steps[0] * (1.0 + ROUNDING) < dearest:
            rule = "the cost of the two most expensive topics"
            message = f"expected a first step of at least {dearest!r}, {rule}"
            problems.error(None, "steps", f"{message}, found {float(design.steps[0])!r}")
        if design.steps[-1] > total * (1.0 + ROUNDING):
            message = f"expected a last step of at most {total!r}, what all topics cost"
            problems.error(None, "steps", f"{message}, found {float(design.steps[-1])!r}")


def _read_draws(reading: RankedReading, design: QueryDesign) -> QuerySample | None:
    """The topics that were drawn, if the steps pay for them."""
    columns = whole("batch", 1, design.batches), whole("count", 1, MAX_DRAWS)
    table = reading.table(DRAWS, *columns, key=TOPIC)
    batch, count = table.whole("batch"), table.whole("count")
    reading.refuse_repeats(table, (table.topic, batch), table.batch_of, "topic")
    never = ~design.eligible[table.topic]
    reading.refuse(table, never, "topic", f"a topic of {TOPICS}", table.topic_of)
    if count.sum() > MAX_DRAWS:
        reading.member_error(DRAWS, None, "count", f"expected at most {MAX_DRAWS} draws")
    if not reading.problems.ok:
        return None
    rest = np.full(len(table), design.is_census) & (batch == design.batches)
    sample = _sample(design, table, rest)
    if design.is_census:
        _check_rest(reading, design, table, rest)
    _check_draws(reading, design, sample)
    return sample if reading.problems.ok else None


def _sample(design: QueryDesign, table: Table, rest: BoolArray) -> QuerySample:
    batch, count = table.whole("batch"), table.whole("count")
    order = np.lexsort((table.topic, batch))
    topic, first = np.unique(table.topic[order], return_index=True)
    drawn = order[~rest[order]]
    return QuerySample(
        topic=frozen(topic),
        batch=frozen(batch[order][first].astype(np.int32)),
        draws=frozen(np.repeat(table.topic[drawn], count[drawn])),
        draw_batch=frozen(np.repeat(batch[drawn], count[drawn]).astype(np.int32)),
        pool_digest=design.pool_digest,
    )


def _check_rest(reading: RankedReading, design: QueryDesign, table: Table, rest: BoolArray) -> None:
    """The last batch of a census: every topic that was not drawn, once."""
    count = table.whole("count")
    earlier = np.isin(table.topic, table.topic[~rest])
    wanted = "a topic that was not drawn before, once, in the last batch, which takes all"
    reading.refuse(table, rest & (earlier | (count != 1)), "topic", wanted, table.topic_of)
    left = design.eligible.copy()
    left[table.topic] = False
    for topic in np.flatnonzero(left).tolist():
        named = f"topic {show(reading.facts.topics[topic])}"
        message = f"expected {named} in the last batch, which takes all, found nothing"
        reading.member_error(DRAWS, None, "topic", message)


def _spent_by_batch(design: QueryDesign, sample: QuerySample) -> FloatArray:
    """What the topics of the batches 1..b cost together, shape (B,)."""
    cost = np.bincount(
        sample.batch - 1, weights=design.cost[sample.topic], minlength=design.batches
    )
    return np.cumsum(cost)


def _check_draws(reading: RankedReading, design: QueryDesign, sample: QuerySample) -> None:
    spent = _spent_by_batch(design, sample)
    for at in np.flatnonzero(spent > design.steps * (1.0 + ROUNDING)).tolist():
        wanted = f"expected topics that cost at most {float(design.steps[at])!r}"
        message = f"{wanted} in the batches up to {at + 1}, found {float(spent[at])!r}"
        reading.member_error(DRAWS, None, "batch", message)
    draws = int(np.count_nonzero(sample.draw_batch == 1))
    if draws < LEAST_DRAWS and not (design.is_census and design.batches == 1):
        message = f"expected at least {LEAST_DRAWS} draws in batch 1, found {draws}"
        reading.member_error(DRAWS, None, "count", message)
