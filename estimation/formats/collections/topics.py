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

from collections.abc import Iterator, Mapping
from typing import Any

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
from estimation.formats.collections.archive import DRAWS, FACTS
from estimation.formats.collections.ranked import RankedFacts, RankedReading
from estimation.formats.collections.reading import Kind, Row, judgment_rows, judgments
from estimation.formats.collections.tables import PAIR, TOPIC, Form, Table, positive, share, whole
from judging.formats.problems import Problems, show

FORMAT = "evalsite-topic-collection-1"
TOPICS, PAIRS, OTHERS = "topics.tsv.gz", "pairs.tsv.gz", "others.tsv.gz"
SUM_TOLERANCE = 1e-6
LEAST_DRAWS = 2  # fewer show no variance

_OF_DESIGN = common.within(
    "drawn.design",
    {
        "judged_runs": ranked.RUNS.of("runs"),
        "judged_depth": common.optional(common.whole(1, common.MAX_DEPTH)).of("depth"),
        "steps": common.steps(
            f"a list of 1 to {MAX_BATCHES} positive numbers", common.is_above_zero
        ),
        "goal": common.GOAL,
        "measure": common.MEASURE,
        "rule": common.one_of(*RULES),
        "model": common.TEXT,
        "estimator": common.one_of(*ESTIMATORS),
        "floor": common.FLOOR,
    },
)


def _facts(found: Mapping[str, Any], problems: Problems) -> RankedFacts:
    facts = ranked.make_facts(found, _OF_DESIGN, problems)
    judged = facts.drawn["runs"]
    for tag in judged:
        if tag not in facts.runs:
            problems.error(None, "judged_runs", f"expected one of the runs, found {show(tag)}")
    if list(judged) != [tag for tag in facts.runs if tag in set(judged)]:
        problems.error(None, "judged_runs", "expected the order of the runs, each once")
    return facts


def _forms(facts: RankedFacts) -> list[Form]:
    batch = whole("batch", 1, len(facts.drawn["steps"]))
    return [
        Form(TOPICS, TOPIC, [positive("cost"), share("probability")]),
        Form(PAIRS, PAIR),
        Form(OTHERS, PAIR),
        ranked.lists_form(facts),
        Form(DRAWS, TOPIC, [batch, whole("count", 1, MAX_DRAWS)]),
        judgments(facts),
    ]


# --------------------------------------------------------------------------------- writing


def _rows(collection: RoundCollection) -> Iterator[Row]:
    if not isinstance(collection.drawn, TopicRound):
        raise TypeError("this is no collection of whole topics")
    design, sample = collection.drawn.design, collection.drawn.sample
    topics = np.flatnonzero(design.eligible)
    yield TOPICS, topics, {"cost": design.cost[topics], "probability": design.probability[topics]}
    judged = labeled_pairs(collection.pool, runs=design.runs, depth=design.depth)
    yield PAIRS, np.flatnonzero(judged), {}
    yield OTHERS, np.flatnonzero(~judged), {}
    yield ranked.list_rows(collection)
    yield _draw_rows(design, sample)
    yield judgment_rows(collection)


def _draw_rows(design: QueryDesign, sample: QuerySample) -> Row:
    """By batch, then topic."""
    batch, topic = sample.draw_batch.astype(np.int64), sample.draws
    if design.is_census:
        rest = sample.topic[sample.batch == design.batches]
        batch = np.append(batch, np.full(len(rest), design.batches))
        topic = np.append(topic, rest)
    (batch, topic), counts = np.unique(np.stack([batch, topic]), axis=1, return_counts=True)
    return DRAWS, topic, {"batch": batch, "count": counts}


# --------------------------------------------------------------------------------- reading


def _read(reading: RankedReading) -> RoundCollection:
    pool = _read_pool(reading)
    design = _read_design(reading, pool)
    drawn = TopicRound(design, _read_draws(reading, design))
    return ranked.collected(reading, pool, drawn, f"a document of a topic of {DRAWS}")


def _judged(reading: RankedReading, pool: Pool) -> BoolArray:
    told = reading.facts.drawn
    return labeled_pairs(pool, runs=told["runs"], depth=told["depth"])


def _read_pool(reading: RankedReading) -> Pool:
    """The pool, if the judged pairs are those that follow from the lists."""
    pairs, others = reading.table(PAIRS), reading.table(OTHERS)
    lists = ranked.read_lists(reading)
    for table in (pairs, others):
        reading.refuse_repeated_pairs(table)
    if not len(pairs):
        reading.error(PAIRS, None, "", "pairs", "none")
    reading.go_on()
    topic = np.concatenate([pairs.topic, others.topic])
    docno = np.concatenate([pairs.docno, others.docno])
    order = np.lexsort((docno, topic))
    known = f"{PAIRS} or {OTHERS}"
    pool = ranked.read_pool(reading, topic[order], docno[order], lists, known)
    judged = _judged(reading, pool)
    wrong = ~judged[pairs.places(pool.topic, pool.docno)]
    rule = "a pair that is judged where its topic is drawn"
    reading.refuse(pairs, wrong, "docno", rule, pairs.pair)
    wrong = judged[others.places(pool.topic, pool.docno)]
    reading.refuse(others, wrong, "docno", "a pair that is not judged", others.pair)
    reading.go_on()
    return pool


def _read_design(reading: RankedReading, pool: Pool) -> QueryDesign:
    """The design, if the topics are those with something to judge."""
    table = reading.table(TOPICS)
    reading.refuse_repeats(table, (table.topic,), table.topic_of, "topic")
    needed = np.zeros(len(pool.topics), dtype=np.bool_)
    needed[pool.topic[_judged(reading, pool)]] = True
    wrong = ~needed[table.topic]
    reading.refuse(table, wrong, "topic", f"a topic with pairs in {PAIRS}", table.topic_of)
    needed[table.topic] = False
    for topic in np.flatnonzero(needed).tolist():
        wanted = f"topic {show(pool.topics[topic])}, which has pairs"
        reading.error(TOPICS, None, "topic", wanted, "nothing")
    total = table.numbers["probability"].sum()
    if abs(total - 1.0) > SUM_TOLERANCE:
        reading.error(TOPICS, None, "probability", "numbers that add up to 1", total)
    reading.go_on()
    design = QueryDesign(
        cost=_by_topic(table, "cost", pool),
        probability=_by_topic(table, "probability", pool),
        pool_digest=pool.digest,
        **reading.facts.drawn,
    )
    _check_steps(reading, design)
    return design


def _by_topic(table: Table, name: str, pool: Pool) -> FloatArray:
    values = np.zeros(len(pool.topics))
    values[table.topic] = table.numbers[name]
    return frozen(values)


def _check_steps(reading: RankedReading, design: QueryDesign) -> None:
    """They pay for the two most expensive topics at once, and for no more than all."""
    first, last = design.steps[[0, -1]]
    total, dearest = design.cost.sum(), np.sort(design.cost)[-2:].sum()
    if first * (1.0 + ROUNDING) < dearest:
        wanted = f"a first step of at least {dearest}, the cost of the two most expensive topics"
        reading.error(FACTS, None, "steps", wanted, first)
    if last > total * (1.0 + ROUNDING):
        wanted = f"a last step of at most {total}, what all topics cost"
        reading.error(FACTS, None, "steps", wanted, last)
    reading.go_on()


def _read_draws(reading: RankedReading, design: QueryDesign) -> QuerySample:
    """The topics that were drawn, if the steps pay for them."""
    table = reading.table(DRAWS)
    batch, count = table.whole("batch"), table.whole("count")
    reading.refuse_repeats(table, (table.topic, batch), table.batch_of, "topic")
    never = ~design.eligible[table.topic]
    reading.refuse(table, never, "topic", f"a topic of {TOPICS}", table.topic_of)
    if count.sum() > MAX_DRAWS:
        reading.error(DRAWS, None, "count", f"at most {MAX_DRAWS} draws")
    reading.go_on()
    if design.is_census:
        _check_rest(reading, design, table)
    sample = _sample(design, table.ordered(table.topic, batch))
    _check_draws(reading, design, sample)
    reading.go_on()
    return sample


def _is_rest(design: QueryDesign, table: Table) -> BoolArray:
    """Which rows are of the last batch of a census, which takes all topics that are left."""
    return np.asarray((table.whole("batch") == design.batches) & design.is_census)


def _sample(design: QueryDesign, table: Table) -> QuerySample:
    """What the rows, by batch, then topic, say was drawn."""
    batch = table.whole("batch").astype(np.int32)
    count = np.where(_is_rest(design, table), 0, table.whole("count"))
    topic, first = np.unique(table.topic, return_index=True)
    return QuerySample(
        topic=frozen(topic),
        batch=frozen(batch[first]),
        draws=frozen(np.repeat(table.topic, count)),
        draw_batch=frozen(np.repeat(batch, count)),
        pool_digest=design.pool_digest,
    )


def _check_rest(reading: RankedReading, design: QueryDesign, table: Table) -> None:
    """The last batch of a census: every topic that was not drawn, once."""
    rest = _is_rest(design, table)
    again = np.isin(table.topic, table.topic[~rest]) | (table.whole("count") != 1)
    wanted = "a topic that was not drawn before, once, in the last batch, which takes all"
    reading.refuse(table, rest & again, "topic", wanted, table.topic_of)
    left = design.eligible.copy()
    left[table.topic] = False
    for topic in np.flatnonzero(left).tolist():
        wanted = f"topic {show(table.topics[topic])} in the last batch, which takes all"
        reading.error(DRAWS, None, "topic", wanted, "nothing")


def _check_draws(reading: RankedReading, design: QueryDesign, sample: QuerySample) -> None:
    """The topics of the batches 1..b cost no more than their steps allow."""
    cost = design.cost[sample.topic]
    spent = np.cumsum(np.bincount(sample.batch - 1, weights=cost, minlength=design.batches))
    for at in np.flatnonzero(spent > design.steps * (1.0 + ROUNDING)).tolist():
        wanted = f"topics that cost at most {design.steps[at]} in the batches up to {at + 1}"
        reading.error(DRAWS, None, "batch", wanted, spent[at])
    draws = np.count_nonzero(sample.draw_batch == 1)
    if draws < LEAST_DRAWS and not (design.is_census and design.batches == 1):
        wanted = f"at least {LEAST_DRAWS} draws in batch 1"
        reading.error(DRAWS, None, "count", wanted, draws)


KIND = Kind({**ranked.FIELDS, **_OF_DESIGN}, ranked.refuse_large, _facts, _forms, _rows, _read)
