"""Judged collections of active rounds as files: nothing is lost, and nothing wrong is taken."""

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import build_pool
from estimation.core.rounds.active.rounds import ActiveRound, make_plan
from estimation.formats.collections import active, archive, ranked, tables
from estimation.formats.collections.active import CHANCES, ROUNDS
from estimation.formats.collections.archive import DRAWS, FACTS, JUDGMENTS
from estimation.formats.collections.ranked import LISTS
from tests.core.collecting import publish
from tests.core.conftest import lists
from tests.core.ranked_collections import assert_same, evaluated
from tests.core.test_core_active_collection import collected
from tests.core.test_core_later_active import CASES, DCG, LINEAR, Case
from tests.core.test_core_later_runs import LATE, RUNS
from tests.formats.collection_files import (
    Change,
    assert_a_lost_judgment_is_named,
    assert_bad_fact,
    assert_read_back,
    cell,
    facts_of,
    first,
    first_with,
    header_alone,
    line,
    member,
    read,
    repacked,
    rows_of,
    twice,
    with_row,
    without,
    written,
)


@pytest.mark.parametrize("batches", [1, 2, None])
@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_read_back_to_the_bit(name: str, batches: int | None) -> None:
    found = assert_read_back(collected(CASES[name](), batches, seeds=["süß"]))
    assert isinstance(found, RoundCollection)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_is_read_back_has_the_same_estimates(name: str) -> None:
    given = collected(CASES[name]())
    found, _ = read(written(given))
    assert isinstance(found, RoundCollection)
    runs = {"run0": RUNS["run0"]} | LATE
    for then, now in zip(evaluated(given, runs).results, evaluated(found, runs).results,
                         strict=True):  # fmt: skip
        assert_same(then, now, then.runs)


def test_the_order_in_which_documents_were_new_is_told() -> None:
    given = collected(Case(*LINEAR))
    state, rows = given.drawn.sample, rows_of(written(given), DRAWS)
    assert [row[1].encode() for row in rows] == given.docno[state.pair].tolist()
    told = [(int(row[2]), int(row[3])) for row in rows if row[0] == "t0"]
    assert told == sorted(told)
    assert [place for batch, place in told if batch == 1] == list(
        range(1, 1 + given.drawn.design.per_batch)
    )


def test_nothing_is_told_of_batches_that_are_not_complete() -> None:
    case = Case(*LINEAR)
    whole, part = (written(collected(case, batches, seeds=["secret"])) for batches in (None, 1))
    assert b"secret" in member(whole, FACTS)
    assert b"secret" not in member(part, FACTS)
    for name, column in ((ROUNDS, 1), (CHANCES, 1), (DRAWS, 2)):
        assert {row[column] for row in rows_of(part, name)} == {"1"}
        assert len({row[column] for row in rows_of(whole, name)}) > 1
    judged = {tuple(row[:2]) for row in rows_of(part, JUDGMENTS)}
    assert judged == {tuple(row[:2]) for row in rows_of(part, DRAWS)}


# --------------------------------------------------------------------------------- hostile

GOOD = written(collected(Case(*LINEAR), 2))
TOPIC, DOCNO = rows_of(GOOD, DRAWS)[0][:2]
PER_BATCH = facts_of(GOOD)["per_batch"]


def undrawn() -> list[str]:
    drawn = {tuple(row[:2]) for row in rows_of(GOOD, DRAWS)}
    return next(row[:2] for row in rows_of(GOOD, LISTS) if tuple(row[:2]) not in drawn)


@pytest.mark.parametrize(
    ("name", "change", "number", "field", "message"),
    [
        (LISTS, cell(2, 2, "run9"), 2, "run", "a run of collection.json, found 'run9'"),
        (LISTS, cell(2, 3, "0"), 2, "rank", "a whole number from 1 to 10, found '0'"),
        (LISTS, cell(2, 3, "11"), 2, "rank", "a whole number from 1 to 10, found '11'"),
        (LISTS, cell(3, 3, "1"), 3, "rank", "expected rank 2 next in the list of 'run0'"),
        (LISTS, without(2), 2, "rank", "expected rank 1 next in the list of 'run0' for topic 't0'"),
        (LISTS, twice(2), None, "docno", "in the list of 'run0' once, found it on line 2 already"),
        (LISTS, cell(3, 1, "../x"), 3, "docno", "that is no path"),
        (LISTS, cell(3, 0, "t9"), 3, "topic", "a topic of collection.json, found 't9'"),
        (LISTS, cell(3, 1, "x"), None, "pool", "which follows from the tables, found"),
        (LISTS, without(11), None, "pool", "which follows from the tables, found"),
        (LISTS, header_alone, None, "pool", "which follows from the tables, found"),
        (ROUNDS, cell(2, 0, "t6"), 2, "topic", "a topic with a limit above 0, found topic 't6'"),
        (ROUNDS, cell(2, 1, "0"), 2, "batch", "a whole number from 1 to 100000, found '0'"),
        (ROUNDS, cell(2, 1, "9"), None, "batch", "expected rounds in batch 3"),
        (ROUNDS, cell(2, 2, "0"), 2, "draws", "a whole number from 1 to 1000"),
        (ROUNDS, cell(2, 2, "1"), None, "draws", "which has so many new documents, found 1"),
        (ROUNDS, cell(2, 2, "1e3"), 2, "draws", "found '1e3'"),
        (ROUNDS, twice(2), None, "topic", "topic 't0' in batch 1 once, found it on line 2 already"),
        (ROUNDS, header_alone, None, "batch", "expected rounds in batch 1"),
        (CHANCES, cell(2, 1, "3"), 2, "batch", "one of rounds.tsv.gz, found topic 't0' in batch 3"),
        (CHANCES, cell(2, 2, "run9"), 2, "run", "a run of collection.json, found 'run9'"),
        (CHANCES, cell(2, 3, "0"), 2, "probability", "above 0 and at most 1, found '0'"),
        (CHANCES, cell(2, 3, "inf"), 2, "probability", "found 'inf'"),
        (CHANCES, cell(2, 3, "0.9"), None, "probability", "in batch 1 that add up to 1, found 1."),
        (CHANCES, cell(2, 3, "0.01"), None, "probability", "in batch 1 that add up to 1, found 0."),
        (CHANCES, without(2), None, "probability", "in batch 1 that add up to 1, found 0.66"),
        (CHANCES, twice(2), None, "topic", "'run0' for topic 't0' in batch 1 once, found it on li"),
        (CHANCES, header_alone, None, "probability", "in batch 1 that add up to 1, found 0.0"),
        (CHANCES, line(2, lambda cells: cells[:3]), 2, "columns", "expected 4 columns"),
        (DRAWS, cell(2, 1, "nobody"), 2, "docno", "a document of lists.tsv.gz, found docno 'nobod"),
        (DRAWS, cell(2, 2, "3"), 2, "batch", "one of rounds.tsv.gz, found topic 't0' in batch 3"),
        (DRAWS, cell(2, 3, "0"), 2, "place", f"a whole number from 1 to {PER_BATCH}, found '0'"),
        (DRAWS, cell(2, 3, "99"), 2, "place", f"a whole number from 1 to {PER_BATCH}, found '99'"),
        (DRAWS, cell(2, 3, "2"), 2, "place", "expected place 1 next for topic 't0' in batch 1"),
        (DRAWS, cell(3, 3, "1"), 3, "place", "expected place 2 next for topic 't0' in batch 1"),
        (DRAWS, twice(2), None, "docno", "once, found it on line 2 already"),
        (DRAWS, with_row(TOPIC, DOCNO, "2", "1"), None, "docno", "found it on line 2 already"),
        (DRAWS, header_alone, None, "docno", "new documents of topic 't0' in batch 1, found none"),
        (JUDGMENTS, cell(2, 2, "4"), 2, "grade", "from 0 to 3, found '4'"),
        (JUDGMENTS, cell(2, 2, "-1"), 2, "grade", "from 0 to 3, found '-1'"),
        (JUDGMENTS, cell(2, 1, "nobody"), 2, "docno", "of draws.tsv.gz, found docno 'nobody'"),
        (JUDGMENTS, with_row(*undrawn(), "1"), None, "docno", "a document of draws.tsv.gz, found"),
        (JUDGMENTS, header_alone, None, "docno", "a document of draws.tsv.gz, found none"),
    ],
)
def test_a_bad_line_is_named(
    name: str, change: Change, number: int | None, field: str, message: str
) -> None:
    file, at, where, told = first(repacked(GOOD, name, change))
    assert file == "c.zip/" + (FACTS if field == "pool" else name)
    assert number is None or at == number
    assert where == field
    assert message in told


def test_every_run_that_returns_something_has_its_uniform_share() -> None:
    """The chances add up to 1, but a run that returns a list for the topic has none."""
    rows = rows_of(GOOD, CHANCES)
    both = repr(float(rows[0][3]) + float(rows[1][3]))
    spoilt = repacked(repacked(GOOD, CHANCES, cell(2, 3, both)), CHANCES, without(3))
    file, _, field, message = first(spoilt)
    assert (file, field) == (f"c.zip/{CHANCES}", "probability")
    assert "the run 'run1' for topic 't0' in batch 1 to have its uniform share, 0.0333" in message
    assert message.endswith("found 0.0")


def test_a_run_that_returns_nothing_has_no_chance() -> None:
    pool = build_pool(["t1"], {"a": lists({"t1": "xy"}), "b": lists({})}, depth=2)
    plan = make_plan(pool, measures=[DCG], budget=1, batch_size=1)
    drawn = ActiveRound.begin(pool, plan, seed="s")
    content = written(
        publish(
            pool, drawn, labels=LabelRows(drawn.sample.pair, np.array([1])), batches=1,
            max_grade=1, version="0.1",
        )
    )  # fmt: skip
    assert read(content)[1].ok
    assert rows_of(content, CHANCES) == [["t1", "1", "a", "1.0"]]
    file, at, field, message = first(
        repacked(content, CHANCES, with_row("t1", "1", "b", "0.0000001"))
    )
    assert (file, at, field) == (f"c.zip/{CHANCES}", 3, "run")
    assert message == "expected a run that returns something for topic 't1', found 'b'"


def test_a_document_without_judgment_is_named() -> None:
    assert_a_lost_judgment_is_named(GOOD)


LIMITS = facts_of(GOOD)["limits"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", "evalsite-active-collection-9", "evalsite-active-collection-1"),
        ("topics", [], "a list of 1 to"),
        ("topics", ["t1", "t0"], "to ascend, each once, found 't0'"),
        ("depth", 0, "a whole number from 1"),
        ("depth", 12, None),
        ("max_grade", 0, "a whole number from 1"),
        ("max_grade", 2, None),
        ("pool", "0" * 64, "which follows from the tables, found 000"),
        ("measures", [], "a list of 1 to 100 names"),
        ("measures", ["Fancy@10"], "Fancy"),
        ("runs", ["run0", "run0", "run2"], "to ascend, each once, found 'run0' after 'run0'"),
        ("runs", ["run0", "run1"], None),
        ("runs", ["run0", "run1", "run2", "run3"], None),
        ("seed", 5, "null or a short text"),
        ("seed", "s", "expected null, because the budget is not spent"),
        ("relevant_from", 0, "a whole number from 1"),
        ("per_batch", 0, "a whole number from 1"),
        ("per_batch", PER_BATCH - 1, None),
        ("uniform_share", 0, "a number above 0 and at most 1, found 0"),
        ("uniform_share", 1.5, "a number above 0 and at most 1, found 1.5"),
        ("uniform_share", 0.9, None),
        ("limits", [], "a list of numbers of documents"),
        ("limits", [-1], "a list of numbers of documents"),
        ("limits", LIMITS[1:], "expected 7 numbers, one per topic, found 6"),
        ("limits", [1000, *LIMITS[1:]], "documents of topic 't0', found 1000"),
        ("limits", [1, *LIMITS[1:]], None),
        ("extra", 1, "expected no such field"),
    ],
)
def test_a_bad_fact_is_named(field: str, value: object, message: str | None) -> None:
    assert_bad_fact(GOOD, field, value, message)


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*limit: object) -> tuple[str, str, str]:
        return first_with(monkeypatch, limit, GOOD)

    rows = "expected at most 5 rows, found more"
    assert refused(tables, "MAX_ROWS", 5) == (f"c.zip/{ROUNDS}", "", rows)
    assert refused(tables, "MAX_DOCNO_BYTES", 20)[2].startswith("expected shorter docnos")
    assert refused(ranked, "MAX_ENTRIES", 5) == (f"c.zip/{LISTS}", "", rows)
    assert refused(active, "MAX_ENTRIES", 5) == (f"c.zip/{CHANCES}", "", rows)
    cells = "expected at most 20 runs times topics, found more"
    assert refused(ranked, "MAX_CELLS", 20) == (f"c.zip/{FACTS}", "runs", cells)
    cells = "expected at most 20 rounds times runs"
    assert refused(active, "MAX_CELLS", 20) == (f"c.zip/{ROUNDS}", "", cells)
    chances = "expected at most 20 rounds times documents of lists"
    assert refused(active, "MAX_CHANCES", 20) == (f"c.zip/{ROUNDS}", "", chances)
    judged = refused(active, "MAX_JUDGED", 3)
    assert judged[:2] == (f"c.zip/{DRAWS}", "docno")
    assert judged[2].startswith("expected at most 3 documents of topic 't0', found")
    facts = refused(archive, "MAX_FACTS", 9)
    assert facts == ("c.zip", FACTS, "expected at most 9 bytes, found more")


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        (ranked, "MAX_ENTRIES", "at most 9 rows, with topic, docno, run, rank"),
        (ranked, "MAX_CELLS", "at most 9 runs times topics"),
        (active, "MAX_CELLS", "at most 9 rounds times runs"),
        (active, "MAX_CHANCES", "at most 9 rounds times documents of lists"),
        (active, "MAX_JUDGED", "at most 9 judged documents of a topic"),
    ],
)
def test_what_no_reader_would_take_is_not_written(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, message: str
) -> None:
    given = collected(Case(*LINEAR))
    monkeypatch.setattr(module, name, 9)
    with pytest.raises(ValueError, match=message):
        written(given)
