"""Judged collections of adaptive rounds.

``collection.json``
    Topics, depth, grade scale and runs, the plan, and where it all comes from.
``lists.tsv.gz``
    See `ranked`, and `compared` where two documents at a time were judged. The model of grades
    learns from them where relevant documents stand, and from scores which grades they predict.
``pairs.tsv.gz``
    topic, docno, size, belief, cost, predicted_1, predicted_2, …: every pair of the pool; the size
    of those that could not be drawn is 0. The cost is there if the plan has costs, and a column for
    each who predicted grades, empty where nothing was predicted.
``steps.tsv.gz``
    batch, until, constant: how each batch was planned. The constant for ``until``, times the sizes,
    gives the chance to be judged by the end of that batch; the first is that of the batch itself.
``models.tsv.gz``
    batch, level, parameter, coefficient: what was learned before the batch, where anything was. The
    parameters, from 1, are the intercept, the numbers of `grades.Features`, the topics, and the
    runs; 0 is that of neighbors. Chances hang on what was found too: parameters after these are
    the pairs, in the order of topics and docnos as bytes, and the number of one is the share of its
    judgments that reached the level by then, above 0. The number behind all pairs is that of the
    decline. Batches of earlier versions have no decline; some looked at no neighbors either, and
    have finds only where the goal's measure is a ratio. Where it is of predictions, parameters
    behind the decline, of the first level alone, are the `scoring.Scoring.numbers` of the batch.
``races.tsv.gz``
    See `races`: who was in the race for the best run, if the round looks for it.
``known.tsv.gz``, ``past.tsv.gz``
    See `pasts`: what was judged before, if the round adds to that.
``draws.tsv.gz``
    topic, docno, batch, chance: the pairs of each batch, with the chance that they then had.
``judgments.tsv.gz``
    topic, docno, grade: one row per judgment.

Where two documents at a time were judged, the docno of the other one stands behind the first, as
in collections of pairs (`pairs`).

With this the batches are gone through again as the server did, so that every number is the same.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from estimation.core.arrays import frozen
from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import pair_name
from estimation.core.data.pool import Pool
from estimation.core.data.preferences import part_names
from estimation.core.rounds.adaptive.frame import AdaptiveFrame
from estimation.core.rounds.adaptive.past import Past
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.sampling import AdaptiveStep
from estimation.core.rounds.adaptive.scoring import OF_SCORES
from estimation.core.rounds.adaptive.state import (
    AdaptivePlan,
    AdaptiveState,
    walk,
)
from estimation.core.sampling.allocation import LEAST_COST, MOST_COST
from estimation.core.sampling.designs import MAX_BATCHES, Design, cumulative
from estimation.core.sampling.methods import MOST_TOGETHER
from estimation.formats.collections import compared, pasts, races, ranked
from estimation.formats.collections import facts as common
from estimation.formats.collections.adaptive_models import (
    MODELS,
    check_finds,
    model_rows,
    read_models,
)
from estimation.formats.collections.adaptive_steps import (
    BUDGETS,
    STEPS,
    constant_column,
    read_budgets,
    read_constants,
    step_rows,
)
from estimation.formats.collections.archive import DRAWS, FACTS, TooLargeError
from estimation.formats.collections.ranked import MAX_ENTRIES, RankedFacts, RankedReading
from estimation.formats.collections.reading import Kind, Row, judgment_rows, judgments
from estimation.formats.collections.tables import (
    PAIR,
    ROUND,
    TWO,
    Column,
    Form,
    Numbers,
    Table,
    real,
    whole,
)
from judging.formats.problems import Problems, show

FORMAT = "evalsite-adaptive-collection-1"
OF_PREFERENCES = "evalsite-adaptive-preference-collection-1"
OF_PREDICTIONS = "evalsite-adaptive-prediction-collection-1"
_FAMILIES = {
    FORMAT: (("gain", "ratio"), "a sum of gains or a ratio"),
    OF_PREFERENCES: (("preference",), "a measure of preferences"),
    OF_PREDICTIONS: (("gain", "ratio", "prediction"), "a sum of gains, a ratio or a prediction"),
}
PAIRS = "pairs.tsv.gz"
MAX_PREDICTED = 20
MAX_WALKED = 2 * 10**9
"""Pairs and entries of lists, for every batch that is gone through again."""
MAX_COEFFICIENT = 1e6  # shrunk ones are next to 0; sums of these are still numbers
MAX_PREDICTION = 1e300
LEAST_CHANCE, LEAST_DRAWN = 1e-100, 1e-60
"""Of a pair, and of one that was drawn: the fourth power of one over it is still a number."""
MOST_FEATURES = 3  # of a pool, and of each column of predictions
SUM_TOLERANCE = 1e-6
SAME = 1e-9

_OF_DESIGN = common.within(
    "drawn.design.design",
    {
        **common.DESIGN,
        "floor": common.FLOOR,
        "for_all_runs": replace(common.FLOOR, may_be_missing=True),
        "steps": common.STEPS,
    },
)
_OF_PLAN = common.within(
    "drawn.design",
    {
        "costs": common.Field(
            "true or false", lambda told: isinstance(told, bool), lambda costs: costs is not None
        ),
        "predicted": common.Field(
            f"a number of columns from 0 to {MAX_PREDICTED}",
            common.whole(0, MAX_PREDICTED).check,
            lambda predicted: 0 if predicted is None else predicted.shape[1],
        ),
        "topic_minimum": common.Field(
            f"a number above 0, up to {MOST_TOGETHER}",
            lambda told: common.is_above_zero(told) and told <= MOST_TOGETHER,
            source="together",
            may_be_missing=True,
        ),
        "even_topics": common.Field(
            "true", lambda told: told is True, source="evenly", may_be_missing=True
        ),
        "past": pasts.FIELD,
    },
)
_OF_ROUND = {**_OF_DESIGN, **_OF_PLAN, **common.within("drawn", {"budgets": BUDGETS})}


def _facts(found: Mapping[str, Any], problems: Problems) -> RankedFacts:
    facts = ranked.make_facts(found, _OF_ROUND, problems)
    told = facts.drawn
    for tag in told["goal"].all_runs:
        if tag not in facts.runs:
            problems.error(None, "goal", f"expected runs of the collection, found {show(tag)}")
    families, wanted = _FAMILIES[found["format"]]
    if found["format"] == OF_PREFERENCES:
        compared.check_scale(facts, problems)
    for name, measures in (("measure", [told["measure"]]), ("reported", told["reported"])):
        for measure in measures:
            if measure.family not in families:
                problems.error(None, name, f"expected {wanted}, found {measure}")
            elif measure.family == "ratio" and told["together"]:
                problems.error(None, "topic_minimum", f"expected sums of gains, not {measure}")
    if (told["for_all_runs"] or 0.0) > told["floor"]:
        problems.error(None, "for_all_runs", "expected a part of the floor")
    _check_batches(told, problems)
    return facts


def _check_batches(told: Mapping[str, Any], problems: Problems) -> None:
    """The budget is cut into as many batches as there are steps, or fewer that take everything."""
    budget, batch_size = told["budget"], told["batch_size"]
    if budget > MAX_BATCHES * batch_size:
        message = f"expected at most {MAX_BATCHES} batches of a budget of {budget}"
        problems.error(None, "batch_size", f"{message}, found {batch_size}")
        return
    batches, found = len(cumulative(budget, batch_size)), len(told["steps"])
    takes_all = 0 < found < batches and told["steps"][-1] == float("inf")
    if found != batches and not takes_all:
        problems.error(None, "steps", f"expected {batches} of them, one per batch, found {found}")


def _forms(facts: RankedFacts) -> list[Form]:
    told, batches = facts.drawn, len(facts.drawn["steps"])
    most = 1 + MOST_FEATURES * (1 + told["predicted"]) + len(facts.topics) + len(facts.runs)
    most += MAX_ENTRIES + 1  # the pairs, and the decline
    most += OF_SCORES + len(facts.runs)
    of_pairs = [real("size", 0.0, 1.0), real("belief", 0.0, 1.0 + SAME)]
    of_pairs += [real("cost", LEAST_COST, MOST_COST)] * told["costs"]
    of_pairs += [_prediction(name) for name in _predicted(told["predicted"])]
    own = whole("batch", 1, batches)
    first = 2 if told["past"] is None else 1  # before it nothing is known
    learned = [
        whole("batch", min(first, batches), batches),
        whole("level", 1, facts.max_grade),
        whole("parameter", 0, most),
        real("coefficient", -MAX_COEFFICIENT, MAX_COEFFICIENT),
    ]
    key = TWO if (of_two := compared.is_of_two(facts)) else PAIR
    scores = any(each.family == "prediction" for each in (told["measure"], *told["reported"]))
    return [
        compared.compared_form(facts) if of_two else ranked.lists_form(facts, scores=scores),
        Form(PAIRS, key, of_pairs),
        Form(STEPS, ROUND, [own, whole("until", 1, batches), constant_column("constant")]),
        Form(MODELS, ROUND, learned, most=MAX_ENTRIES),
        *([races.race_form(facts, batches=batches)] if races.has_races(told["goal"]) else []),
        *pasts.past_forms(facts),
        Form(DRAWS, key, [own, real("chance", LEAST_DRAWN, 1.0)]),
        judgments(facts, key),
    ]


def _predicted(columns: int) -> list[str]:
    return [f"predicted_{number}" for number in range(1, columns + 1)]


def _prediction(name: str) -> Column:
    """A column of numbers some of which are not there."""
    number = real(name, -MAX_PREDICTION, MAX_PREDICTION)
    return Column(
        name,
        f"{number.expected}, or nothing",
        lambda text: number.read(text) if text else math.nan,
        text=lambda value: "" if math.isnan(value) else repr(value),
    )


# --------------------------------------------------------------------------------- writing


def _round_of(collection: RoundCollection) -> AdaptiveRound:
    if not isinstance(collection.drawn, AdaptiveRound):
        raise TypeError("this is no collection of an adaptive round")
    return collection.drawn


def format_of(collection: RoundCollection) -> str:
    """The format of the file that a collection is written to."""
    if collection.is_of_preferences:
        return OF_PREFERENCES
    return FORMAT if collection.pool.score is None else OF_PREDICTIONS


def _refuse_large(collection: RoundCollection) -> None:
    ranked.refuse_large(collection)
    drawn, predicted = _round_of(collection), _round_of(collection).design.predicted
    if predicted is not None and predicted.shape[1] > MAX_PREDICTED:
        raise TooLargeError(f"at most {MAX_PREDICTED} columns of predicted grades")
    if _walked(collection.pool, drawn.planned) > MAX_WALKED:
        raise TooLargeError(f"at most {MAX_WALKED} batches times pairs and entries of lists")


def _walked(pool: Pool, batches: int) -> int:
    return batches * (len(pool) + len(pool.run))


def _rows(collection: RoundCollection) -> Iterator[Row]:
    plan, state = _round_of(collection).design, _round_of(collection).sample
    of_two = collection.is_of_preferences
    yield compared.compared_rows(collection) if of_two else ranked.list_rows(collection)
    yield PAIRS, np.arange(len(collection)), _pair_columns(plan)
    yield step_rows(state)
    yield model_rows(state, plan.frame(collection.pool).features)
    if races.has_races(plan.goal):
        runs = [collection.pool.run_index(tag) for tag in plan.goal.runs]
        yield races.race_rows(state, np.array(runs, dtype=np.int64))
    if plan.past is not None:
        yield from pasts.past_rows(collection.pool, plan.past)
    order = np.lexsort((state.pair, state.batch))
    order = order[state.batch[order] > 0]
    drawn: Numbers = {"batch": state.batch[order], "chance": state.chance[order]}
    yield DRAWS, state.pair[order], drawn
    yield judgment_rows(collection)


def _pair_columns(plan: AdaptivePlan) -> Numbers:
    columns = {"size": plan.design.size, "belief": np.asarray(plan.design.belief)}
    if plan.costs is not None:
        columns["cost"] = plan.costs
    if plan.predicted is not None:
        names = _predicted(plan.predicted.shape[1])
        columns |= dict(zip(names, plan.predicted.T, strict=True))
    return columns


# --------------------------------------------------------------------------------- reading


def _read(reading: RankedReading) -> RoundCollection:
    of_two = compared.is_of_two(reading.facts)
    lists, pairs = None if of_two else ranked.read_lists(reading), reading.table(PAIRS)
    reading.refuse_repeated_pairs(pairs)
    pairs = pairs.ordered(pairs.docno, pairs.topic)
    if lists is None:
        pool = compared.read_compared(reading, pairs, PAIRS)
    else:
        pool = ranked.read_pool(reading, pairs.topic, pairs.docno, lists, PAIRS)
    plan = _plan(reading, pairs, pool, pasts.read_past(reading, pool))
    frame = plan.frame(pool)
    state = _read_draws(reading, frame, _read_steps(reading, frame))
    return ranked.collected(reading, pool, AdaptiveRound(plan, state), f"a pair of {DRAWS}")


def _plan(reading: RankedReading, pairs: Table, pool: Pool, past: Past | None) -> AdaptivePlan:
    """The plan, of pairs in the order of the pool; their sizes make up a whole."""
    told, numbers = dict(reading.facts.drawn), pairs.numbers
    told.pop("past"), told.pop("budgets")
    names, for_all_runs = _predicted(told.pop("predicted")), told.pop("for_all_runs") or 0.0
    together, even = told.pop("together") or 0.0, bool(told.pop("evenly"))
    costs = frozen(numbers["cost"]) if told.pop("costs") else None
    size, belief = frozen(numbers["size"]), frozen(numbers["belief"])
    if not abs(size.sum() - 1.0) <= SUM_TOLERANCE:
        reading.error(PAIRS, None, "size", "numbers that add up to 1", size.sum())
    if past is not None and size[past.judged].any():
        reading.error(PAIRS, None, "size", f"0, of the pairs of {pasts.KNOWN}")
    reading.go_on()
    told |= {"method": "adaptive", "eps": 0.0, "for_all_runs": for_all_runs}
    design = Design(size=size, belief=belief, pool_digest=pool.digest, **told)
    predicted = frozen(np.stack([numbers[name] for name in names], axis=1)) if names else None
    best = reading.facts.max_grade
    return AdaptivePlan(design, best, costs, predicted, together, past, even)


def _read_steps(reading: RankedReading, frame: AdaptiveFrame) -> tuple[AdaptiveStep, ...]:
    """How batches were planned, from the first one on."""
    constants = read_constants(reading)
    if _walked(frame.pool, len(constants)) > MAX_WALKED:
        wanted = f"at most {MAX_WALKED} batches times pairs and entries of lists"
        reading.error(STEPS, None, "", wanted)
    if reading.facts.seeds[0] is not None and len(constants) < frame.design.batches:
        reading.error(FACTS, None, "seed", "null, because there are batches left")
    reading.go_on()
    models = read_models(reading, frame, planned=len(constants))
    goal, planned = frame.design.goal, len(constants)
    found = races.read_races(reading, goal, planned=planned, learned=models)
    budgets = read_budgets(reading, planned=planned)
    return tuple(
        AdaptiveStep(models.get(number), each, found.get(number), budget)
        for number, (each, budget) in enumerate(zip(constants, budgets, strict=True), start=1)
    )


def _read_draws(
    reading: RankedReading, frame: AdaptiveFrame, steps: tuple[AdaptiveStep, ...]
) -> AdaptiveState:
    """What was drawn, if steps like these can have drawn it."""
    table = reading.table(DRAWS)
    reading.refuse_repeated_pairs(table)
    place, batch = table.places(frame.pool.topic, part_names(frame.pool)), table.whole("batch")
    foreign = (place < 0) | ~frame.design.eligible[place]
    wanted = f"a pair of {PAIRS} with a size above 0"
    reading.refuse(table, foreign, "docno", wanted, table.pair)
    late = batch > len(steps)
    reading.refuse(table, late, "batch", f"a batch of {STEPS}", batch.item)
    reading.go_on()
    table, place = table.ordered(place), np.sort(place)
    pair, batches = frozen(place), frozen(table.whole("batch").astype(np.int32))
    drawn = AdaptiveState(
        seed=reading.facts.seeds[0] or "",
        pair=pair,
        batch=batches,
        chance=frozen(table.numbers["chance"]),
        steps=steps,
    )
    state = drawn.after(frame.past)
    check_finds(reading, frame, state)
    _check_chances(reading, frame, state, table)
    return state


def _check_chances(
    reading: RankedReading, frame: AdaptiveFrame, state: AdaptiveState, table: Table
) -> None:
    """Chances are those that follow from the steps, none too small to divide by, and what was
    certain was drawn."""
    expected, drawn = np.zeros(len(table)), state.batch > 0
    pair, batch, told = (each[drawn] for each in (state.pair, state.batch, state.chance))
    for passed in walk(frame, state):
        chance, own = passed.chances.by(0), batch == passed.number
        expected[own] = chance[frame.place(pair[own])]
        least = float(chance.min(where=chance > 0.0, initial=1.0))
        if least < LEAST_CHANCE:
            wanted = f"no chance below {LEAST_CHANCE:g} in batch {passed.number}"
            reading.error(STEPS, None, "constant", wanted, least)
        for pair in frame.at[(chance >= 1.0) & ~passed.drawn].tolist():
            wanted = f"{pair_name(pair, frame.pool)} in batch {passed.number}, where it was certain"
            reading.error(DRAWS, None, "docno", wanted, "nothing")
    for row in np.flatnonzero(~(np.abs(told - expected) <= SAME * expected)).tolist():
        wanted = f"{expected[row]}, which follows from the steps"
        reading.error(table, row, "chance", wanted, told[row])
    reading.go_on()


KIND = Kind({**ranked.FIELDS, **_OF_ROUND}, _refuse_large, _facts, _forms, _rows, _read)
