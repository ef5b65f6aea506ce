"""Judged collections of adaptive rounds of preferences as files."""

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.pool import build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.rounds.evaluation import evaluate
from estimation.formats.collections import adaptive
from estimation.formats.collections.adaptive import MODELS, PAIRS
from estimation.formats.collections.archive import DRAWS, FACTS, JUDGMENTS
from estimation.formats.collections.ranked import LISTS
from tests.core.adaptive_by_run import (
    COMPARED,
    PREFERENCES,
    SWAPS,
    WEIGHTED,
    plan_for,
    played,
)
from tests.core.collecting import publish
from tests.formats.collection_files import (
    Change,
    assert_read_back,
    cell,
    fact,
    facts_of,
    first,
    member,
    read,
    repacked,
    rows_of,
    twice,
    without,
    written,
)
from tests.formats.test_collections import lists

TOPICS = [f"t{number}" for number in range(8)]
RUNS = {f"r{number}": lists(number) for number in range(3)}


class Case:
    """Three batches, of which a model planned the last."""

    def __init__(self) -> None:
        self.pool = preference_pool(build_pool(TOPICS, RUNS, depth=4), depth=4)
        grades = np.random.default_rng(2).choice(3, size=len(self.pool))
        plan = plan_for(self.pool, WEIGHTED, budget=60, batches=3, reported=[SWAPS])
        self.drawn, self.labels = played(self.pool, grades, plan, seed="s")
        assert self.drawn.sample.steps[-1].model is not None

    def collected(self) -> RoundCollection:
        return publish(
            self.pool, self.drawn, labels=self.labels, max_grade=COMPARED.best, version="0.1",
            measures=PREFERENCES, seeds=["s"],
        )  # fmt: skip


CASE = Case()
GOOD = written(CASE.collected())


def test_what_is_written_is_read_back_to_the_bit() -> None:
    assert_read_back(CASE.collected())


def test_what_is_read_back_has_the_estimates_of_the_round_and_of_later_runs() -> None:
    found, problems = read(GOOD)
    assert found is not None, problems.as_dict()
    told = evaluate(
        CASE.pool, CASE.drawn, labels=CASE.labels, measures=PREFERENCES, max_grade=1
    ).results
    again = found.evaluate(found.pool, measures=PREFERENCES).results
    for one, two in zip(told, again, strict=True):
        for name in ("value", "low", "high", "covariance"):
            np.testing.assert_array_equal(getattr(one.estimate, name), getattr(two.estimate, name))
    later = {"later": lists(9)}
    before = CASE.collected().evaluate(later, measures=PREFERENCES).results
    after = found.evaluate(later, measures=PREFERENCES).results
    for one, two in zip(before, after, strict=True):
        assert one.estimate.value.tolist() == two.estimate.value.tolist()
        assert one.estimate.high.tolist() == two.estimate.high.tolist()


def test_every_row_of_pairs_lists_and_judgments_names_two_documents() -> None:
    assert facts_of(GOOD)["format"] == adaptive.OF_PREFERENCES
    for name in (PAIRS, LISTS, DRAWS, JUDGMENTS):
        assert member(GOOD, name).decode().startswith("topic\tdocno\tother\t")
    assert member(GOOD, LISTS).decode().startswith("topic\tdocno\tother\trun\trank\tother_rank\n")


def test_a_document_that_is_compared_with_none_takes_no_room() -> None:
    """Its long name makes the docnos of the pool wider, and is in no table."""
    alone = {tag: lists(number) for number, tag in enumerate(("r0", "r1", "r2"))}
    docnos = alone["r2"].docnos.astype("S40")
    cut = type(alone["r2"])(("t9",), np.array([0, 1]), np.array([b"x" * 40]))
    assert docnos.dtype.itemsize == 40
    made = Case()
    pool = preference_pool(build_pool([*TOPICS, "t9"], {**alone, "r3": cut}, depth=4), depth=4)
    grades = np.random.default_rng(2).choice(3, size=len(pool))
    made.drawn, made.labels = played(
        pool, grades, plan_for(pool, WEIGHTED, budget=60, batches=3, reported=[SWAPS]), seed="s"
    )
    made.pool = pool
    found, problems = read(written(made.collected()))
    assert found is not None, problems.as_dict()
    assert found.pool.docno.dtype.itemsize < pool.docno.dtype.itemsize


# ----------------------------------------------------------------------------------- spoilt


@pytest.mark.parametrize(
    ("change", "field", "told"),
    [
        (fact("depth", 1), "depth", "a whole number from 2 to 200 for preferences, found 1"),
        (fact("max_grade", 3), "max_grade", "2 for preferences, found 3"),
        (fact("format", adaptive.FORMAT), "measure", "a sum of gains or a ratio, found wSwaps"),
        (fact("reported", ["P@5"]), "reported", "a measure of preferences, found P@5"),
    ],
)
def test_a_fact_that_does_not_go_with_preferences_is_named(
    change: Change, field: str, told: str
) -> None:
    file, _, where, message = first(repacked(GOOD, FACTS, change))
    assert (file, where, message) == (f"c.zip/{FACTS}", field, f"expected {told}")


def test_ranks_that_are_of_no_lists_are_refused() -> None:
    """Whoever changes one, and the digest with it."""
    rows = rows_of(GOOD, LISTS)
    number, row = next((at, each) for at, each in enumerate(rows, start=2) if each[4] == "1")
    changed = "3" if row[5] != "3" else "4"
    spoilt = repacked(GOOD, LISTS, cell(number, 4, changed))
    file, _, field, message = first(spoilt)
    assert (file, field) == (f"c.zip/{FACTS}", "pool")
    digest = message.removeprefix("expected ").split(",")[0]
    file, _, field, message = first(repacked(spoilt, FACTS, fact("pool", digest)))
    assert (file, field) == (f"c.zip/{LISTS}", "rank")
    assert message == "expected ranks that are those of one list for each run"


def test_a_pair_that_stands_twice_in_a_list_or_in_none_of_the_pairs_is_named() -> None:
    row = rows_of(GOOD, LISTS)[0]
    assert f"in the list of {row[3]} once" in first(repacked(GOOD, LISTS, twice(2)))[3]
    message = first(repacked(GOOD, LISTS, cell(2, 2, "zzz")))[3]
    assert message.startswith(f"expected a pair of {PAIRS}, found documents")


def test_a_judgment_that_is_missing_is_named_by_both_documents() -> None:
    topic, docno, other, *_ = rows_of(GOOD, JUDGMENTS)[0]
    message = first(repacked(GOOD, JUDGMENTS, without(2)))[3]
    told = f"a judgment of documents {docno!r} and {other!r} of topic {topic!r}"
    assert told in message


def test_a_chance_that_does_not_follow_is_refused() -> None:
    number = next(at for at, row in enumerate(rows_of(GOOD, DRAWS), start=2) if row[4] != "1.0")
    spoilt = repacked(GOOD, DRAWS, cell(number, 4, "0.9876"))
    assert first(spoilt)[3].endswith("found 0.9876")
    assert rows_of(GOOD, MODELS)
