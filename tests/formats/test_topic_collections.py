"""Judged collections of whole topics as files: nothing is lost, and nothing wrong is taken."""

import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.pool import Pool, build_pool
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.rounds import TopicRound
from estimation.core.rounds.topics.draws import draw_queries
from estimation.formats.collections import archive, ranked, tables, topics
from estimation.formats.collections.archive import DRAWS, FACTS, JUDGMENTS
from estimation.formats.collections.ranked import LISTS
from estimation.formats.collections.topics import OTHERS, PAIRS, TOPICS
from tests.core.collecting import publish
from tests.core.conftest import lists
from tests.core.ranked_collections import assert_same, evaluated
from tests.core.test_core_later_runs import LATE, RUNS
from tests.core.test_core_later_topics import BEST, CASES, case_of, design_of, judgments
from tests.core.test_core_topic_collection import collected
from tests.formats.collection_files import (
    Change,
    assert_a_lost_judgment_is_named,
    assert_bad_fact,
    assert_read_back,
    cell,
    fact,
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


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_read_back_to_the_bit(name: str, batches: int) -> None:
    found = assert_read_back(collected(case_of(name), batches, seeds=["süß"]))
    assert isinstance(found, RoundCollection)


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_back_has_the_same_estimates(name: str) -> None:
    given = collected(case_of(name))
    found, _ = read(written(given))
    assert isinstance(found, RoundCollection)
    runs = {"run0": RUNS["run0"]} | LATE
    for then, now in zip(evaluated(given, runs).results, evaluated(found, runs).results,
                         strict=True):  # fmt: skip
        assert_same(then, now, then.runs)


def test_documents_that_no_run_returns_are_kept(ranked_pool: Pool) -> None:
    """For a ratio they are judged as well."""
    for text, table in (("AP", PAIRS), ("DCG@2", OTHERS)):
        design = design_of(ranked_pool, parse_measure(text), budget=8.0)
        sample = draw_queries(ranked_pool, design, seed="s")
        given = publish(
        ranked_pool, TopicRound(design, sample),
        labels=judgments(ranked_pool, design, sample), batches=1,
            max_grade=BEST, version="0.1",
        )  # fmt: skip
        assert_read_back(given)
        assert ["t2", "q"] in rows_of(written(given), table)


@pytest.fixture
def ranked_pool() -> Pool:
    runs = {
        "a": lists({"t1": "abcd", "t2": "xyz"}),
        "b": lists({"t1": "ce", "t2": "z", "t3": "lm"}),
    }
    return build_pool(["t1", "t2", "t3", "t4"], runs, depth=3, extra={"t2": ["q"]})


def test_nothing_is_told_of_batches_that_are_not_complete() -> None:
    case = case_of("draws")
    whole, part = collected(case, 2, seeds=["secret"]), collected(case, 1)
    content = written(part)
    assert b"secret" in member(written(whole), FACTS)
    assert b"secret" not in member(content, FACTS)
    assert facts_of(content)["steps"] == facts_of(written(whole))["steps"][:1]
    drawn = {row[0] for row in rows_of(content, DRAWS)}
    assert {row[0] for row in rows_of(content, JUDGMENTS)} == drawn
    assert drawn < {row[0] for row in rows_of(written(whole), DRAWS)}
    assert {row[1] for row in rows_of(content, DRAWS)} == {"1"}


def test_a_census_tells_what_was_left_for_its_last_batch() -> None:
    census = collected(case_of("census"))
    rows = rows_of(written(census), DRAWS)
    assert {row[0] for row in rows} == {f"t{number}" for number in range(6)}
    last = {row[0]: row[2] for row in rows if row[1] == "2"}
    assert last
    assert set(last.values()) == {"1"}
    assert not set(last) & {row[0] for row in rows if row[1] == "1"}


# --------------------------------------------------------------------------------- hostile

GOOD = written(collected(case_of("shallow")))
CENSUS = written(collected(case_of("census")))


@pytest.mark.parametrize(
    ("name", "change", "number", "field", "message"),
    [
        (TOPICS, cell(3, 1, "0"), 3, "cost", "above 0 and below 1e15, found '0'"),
        (TOPICS, cell(3, 1, "inf"), 3, "cost", "found 'inf'"),
        (TOPICS, cell(3, 1, "1e15"), 3, "cost", "found '1e15'"),
        (TOPICS, cell(3, 1, "-1"), 3, "cost", "found '-1'"),
        (TOPICS, cell(3, 2, "0"), 3, "probability", "above 0 and at most 1, found '0'"),
        (TOPICS, cell(3, 2, "1.5"), 3, "probability", "at most 1, found '1.5'"),
        (TOPICS, cell(3, 2, "nan"), 3, "probability", "found 'nan'"),
        (TOPICS, cell(3, 2, "0.9"), None, "probability", "numbers that add up to 1, found 1."),
        (TOPICS, cell(3, 0, "t9"), 3, "topic", "a topic of collection.json, found 't9'"),
        (TOPICS, cell(3, 0, "t6"), 3, "topic", "a topic with pairs in pairs.tsv.gz, found"),
        (TOPICS, without(3), None, "topic", "expected topic 't1', which has pairs, found nothing"),
        (TOPICS, twice(2), 8, "topic", "expected topic 't0' once, found it on line 2 already"),
        (TOPICS, line(4, lambda cells: cells[:2]), 4, "columns", "expected 3 columns"),
        (TOPICS, cell(1, 0, "docno"), 1, "columns", "expected the header"),
        (PAIRS, cell(3, 1, "../x"), 3, "docno", "that is no path"),
        (PAIRS, lambda data: b"", 1, "columns", "expected the header"),
        (PAIRS, header_alone, None, "", "expected pairs, found none"),
        (PAIRS, twice(2), None, "docno", "once, found it on line 2 already"),
        (PAIRS, without(2), None, "docno", "a pair of pairs.tsv.gz or others.tsv.gz, found docno"),
        (PAIRS, with_row("t6", "more"), None, "pool", "which follows from the tables, found"),
        (OTHERS, without(2), None, "docno", "a pair of pairs.tsv.gz or others.tsv.gz, found docno"),
        (OTHERS, with_row("t6", "more"), None, "pool", "which follows from the tables, found"),
        (OTHERS, with_row("t6", "a b"), None, "docno", "without white space"),
        (LISTS, cell(2, 2, "run9"), 2, "run", "a run of collection.json, found 'run9'"),
        (LISTS, cell(2, 3, "0"), 2, "rank", "a whole number from 1 to 10, found '0'"),
        (LISTS, cell(2, 3, "11"), 2, "rank", "a whole number from 1 to 10, found '11'"),
        (LISTS, cell(3, 3, "3"), 3, "rank", "rank 2 next in the list of 'run0' for topic 't0'"),
        (LISTS, cell(3, 3, "1"), 3, "rank", "rank 2 next in the list of 'run0' for topic 't0'"),
        (LISTS, without(2), 2, "rank", "expected rank 1 next in the list of 'run0' for topic 't0'"),
        (LISTS, twice(2), None, "docno", "in the list of 'run0' once, found it on line 2 already"),
        (LISTS, cell(3, 1, "x"), 3, "docno", "a pair of pairs.tsv.gz or others.tsv.gz, found"),
        (LISTS, without(11), None, "pool", "which follows from the tables, found"),
        (DRAWS, cell(2, 0, "t6"), 2, "topic", "a topic of topics.tsv.gz, found topic 't6'"),
        (DRAWS, cell(2, 1, "0"), 2, "batch", "from 1 to 2, found '0'"),
        (DRAWS, cell(2, 1, "3"), 2, "batch", "from 1 to 2, found '3'"),
        (DRAWS, cell(2, 2, "0"), 2, "count", "from 1 to 5000000, found '0'"),
        (DRAWS, twice(2), None, "topic", "in batch 1 once, found it on line 2 already"),
        (DRAWS, header_alone, None, "count", "at least 2 draws in batch 1, found 0"),
        (JUDGMENTS, cell(2, 2, "4"), 2, "grade", "from 0 to 3, found '4'"),
        (JUDGMENTS, cell(2, 2, "-1"), 2, "grade", "from 0 to 3, found '-1'"),
        (JUDGMENTS, cell(2, 2, "1.5"), 2, "grade", "found '1.5'"),
        (JUDGMENTS, cell(2, 1, "nobody"), 2, "docno", "of draws.tsv.gz, found docno 'nobody'"),
        (JUDGMENTS, header_alone, None, "docno", "document of a topic of draws.tsv.gz, found none"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(
    name: str, change: Change, number: int | None, field: str, message: str
) -> None:
    file, at, where, told = first(repacked(GOOD, name, change))
    assert file in ("c.zip/" + (FACTS if field == "pool" else name), f"c.zip/{LISTS}")
    assert number is None or at == number
    assert where == field
    assert message in told


def test_a_pair_is_judged_or_not_as_the_lists_say() -> None:
    one, other = (rows_of(GOOD, table)[0] for table in (PAIRS, OTHERS))
    both = repacked(GOOD, OTHERS, with_row(*one))
    file, _, field, message = first(both)
    assert (file, field) == (f"c.zip/{OTHERS}", "docno")
    assert f"expected a pair that is not judged, found docno {one[1]!r}" in message
    moved = repacked(repacked(GOOD, OTHERS, without(2)), PAIRS, with_row(*other))
    file, _, field, message = first(moved)
    assert (file, field) == (f"c.zip/{PAIRS}", "docno")
    assert f"judged where its topic is drawn, found docno {other[1]!r}" in message


def test_a_judged_document_of_a_topic_that_was_not_drawn_is_named() -> None:
    drawn = {row[0] for row in rows_of(GOOD, DRAWS)}
    topic, docno = next(row for row in rows_of(GOOD, PAIRS) if row[0] not in drawn)
    change = line(2, lambda cells: [topic, docno, cells[2]])
    file, at, field, message = first(repacked(GOOD, JUDGMENTS, change))
    assert (file, at, field) == (f"c.zip/{JUDGMENTS}", 2, "docno")
    assert message.startswith("expected a document of a topic of draws.tsv.gz, found docno")


def test_a_document_without_judgment_is_named() -> None:
    assert_a_lost_judgment_is_named(GOOD)


def test_topics_that_cost_more_than_the_steps_allow() -> None:
    drawn = {row[0] for row in rows_of(GOOD, DRAWS)}
    more = [row[0] for row in rows_of(GOOD, TOPICS) if row[0] not in drawn]
    rows = "".join(f"{topic}\t1\t1\n" for topic in more).encode()
    file, _, field, message = first(repacked(GOOD, DRAWS, lambda data: data + rows))
    assert (file, field) == (f"c.zip/{DRAWS}", "batch")
    assert message.startswith("expected topics that cost at most 20.0 in the batches up to 1,")


def test_a_census_takes_all_that_is_left_and_nothing_else() -> None:
    last = [number for number, row in enumerate(rows_of(CENSUS, DRAWS), 2) if row[1] == "2"]
    early = rows_of(CENSUS, DRAWS)[0][0]
    for change, field, told in (
        (without(last[0]), "topic", "in the last batch, which takes all, found nothing"),
        (cell(last[0], 2, "2"), "topic", "once, in the last batch, which takes all, found topic"),
        (with_row(early, "2", "1"), "topic", f"which takes all, found topic {early!r}"),
    ):
        file, _, where, message = first(repacked(CENSUS, DRAWS, change))
        assert (file, where) == (f"c.zip/{DRAWS}", field)
        assert told in message


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", "evalsite-topic-collection-9", "evalsite-topic-collection-1"),
        ("topics", [], "a list of 1 to"),
        ("topics", ["t1", "t0", "t2", "t3", "t4", "t5", "t6"], "to ascend, each once, found 't0'"),
        ("topics", ["t0", "t0", "t2", "t3", "t4", "t5", "t6"], "to ascend, each once, found 't0'"),
        ("depth", 0, "a whole number from 1"),
        ("depth", 12, None),
        ("max_grade", -1, "a whole number from 1"),
        ("pool", "abc", "64 hexadecimal digits"),
        ("pool", "0" * 64, "which follows from the tables, found 000"),
        ("measures", [], "a list of 1 to 100 names"),
        ("measures", ["Fancy@10"], "Fancy"),
        ("runs", [], "a list of 1 to 1000 tags"),
        ("runs", ["run0", "a b", "run2"], "a list of 1 to 1000 tags"),
        ("runs", ["run0", "run2", "run1"], "to ascend, each once, found 'run1' after 'run2'"),
        ("judged_runs", ["run0", "run9"], "expected one of the runs, found 'run9'"),
        ("judged_runs", ["run1", "run0"], "expected the order of the runs, each once"),
        ("judged_runs", ["run0"], None),
        ("judged_depth", 0, "null or a whole number from 1"),
        ("judged_depth", 5, None),
        ("steps", [], "positive numbers"),
        ("steps", [0], "positive numbers"),
        ("steps", ["inf"], "positive numbers"),
        ("steps", [20, 19], "steps that never fall"),
        ("steps", [5, 40], "a first step of at least"),
        ("steps", [20, 4000], "a last step of at most"),
        ("goal", {"kind": "peace", "runs": ["a"], "against": None}, "the goal is one of"),
        ("measure", "Fancy@10", "Fancy"),
        ("rule", "guess", "one of active, uniC, uniform, found 'guess'"),
        ("estimator", "guess", "one of ratio, unbiased, found 'guess'"),
        ("model", 3, "a short text"),
        ("floor", 2, "from 0 to 1"),
        ("seed", 5, "null or a short text"),
        ("extra", 1, "expected no such field"),
    ],
)
def test_a_bad_fact_is_named(field: str, value: object, message: str | None) -> None:
    assert_bad_fact(GOOD, field, value, message)


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*limit: object) -> tuple[str, str, str]:
        return first_with(monkeypatch, limit, GOOD)

    assert refused(tables, "MAX_ROWS", 5)[2] == "expected at most 5 rows, found more"
    assert refused(tables, "MAX_DOCNO_BYTES", 20)[2].startswith("expected shorter docnos")
    lists = refused(ranked, "MAX_ENTRIES", 9)
    assert lists == (f"c.zip/{LISTS}", "", "expected at most 9 rows, found more")
    cells = refused(ranked, "MAX_CELLS", 20)
    assert cells == (f"c.zip/{FACTS}", "runs", "expected at most 20 runs times topics, found more")
    assert refused(archive, "MAX_FACTS", 9) == (
        "c.zip",
        FACTS,
        "expected at most 9 bytes, found more",
    )
    assert refused(topics, "MAX_DRAWS", 1)[0] == f"c.zip/{DRAWS}"


def test_what_it_was_made_for_says_nothing_of_what_was_judged() -> None:
    """It is only told, and what cannot be estimated is said when it is asked for."""
    found, _ = read(repacked(GOOD, FACTS, fact("measures", ["wSwaps"])))
    assert found is not None
    assert not found.is_of_preferences
    with pytest.raises(MeasureError, match="wSwaps cannot be computed from topics"):
        found.evaluate({"run0": RUNS["run0"]}, measures=found.measures)
    assert found.evaluate({"run0": RUNS["run0"]}, measures=[parse_measure("P@2")]).results


def test_what_no_reader_would_take_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    given = collected(case_of("shallow"))
    monkeypatch.setattr(ranked, "MAX_ENTRIES", 9)
    with pytest.raises(ValueError, match="at most 9 rows, with topic, docno, run, rank"):
        written(given)
    monkeypatch.undo()
    monkeypatch.setattr(ranked, "MAX_CELLS", 9)
    with pytest.raises(ValueError, match="at most 9 runs times topics"):
        written(given)
    monkeypatch.undo()
    pool = build_pool(given.topics, {"a b": RUNS["run0"]}, depth=10)
    design = design_of(pool, parse_measure("DCG@2"), budget=12.0)
    sample = draw_queries(pool, design, seed="s")
    odd = publish(
        pool, TopicRound(design, sample),
        labels=judgments(pool, design, sample), batches=1, max_grade=BEST,
        version="0.1",
    )  # fmt: skip
    with pytest.raises(ValueError, match="runs: expected a list of 1 to 1000 tags of runs"):
        written(odd)
