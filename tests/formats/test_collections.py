"""Judged collections as files: nothing is lost, and nothing that is wrong is taken."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.methods import OF_PAIRS as METHODS
from estimation.core.sampling.priors import make_prior
from estimation.formats.collections import pair_facts, pairs, tables
from estimation.formats.collections.archive import DRAWS, FACTS, JUDGMENTS
from estimation.formats.collections.pairs import INELIGIBLE, PAIRS
from judging.formats.problems import id_problem
from tests.core.collecting import publish
from tests.formats.collection_files import (
    Change,
    assert_bad_fact,
    assert_read_back,
    cell,
    facts_of,
    first,
    first_with,
    header_alone,
    line,
    of_round,
    read,
    repacked,
    rows_of,
    twice,
    with_row,
    written,
)

MEASURE = parse_measure("DCG@5")


def lists(seed: int) -> RankedLists:
    rng = np.random.default_rng(seed)
    docnos = [f"dé{number}".encode() for number in range(30)]
    rows = [rng.permutation(docnos)[:8] for _ in range(4)]
    return RankedLists(tuple(f"t{n}" for n in range(4)), np.arange(5) * 8, np.concatenate(rows))


def pooled() -> Pool:
    return build_pool([f"t{n}" for n in range(5)], {f"r{n}": lists(n) for n in range(3)}, depth=8)


def part(pool: Pool, method: str, seed: str, **options) -> PairRound:
    """A round, or its first two batches."""
    goal = goals.absolute("r0", "r1")
    prior = make_prior(pool, name="rank", goal=goal, measure=MEASURE, max_grade=3)
    settings = {"budget": 24, "batch_size": 8, "reported": [parse_measure("P@5")]} | options
    design = make_design(pool, goal=goal, measure=MEASURE, prior=prior, method=method, **settings)
    sample = draw(pool, design, seed=seed)
    return PairRound(design, sample, min(2, design.batches), numbers=seed)


def collected(pool: Pool, parts: list[PairRound], **more) -> RoundCollection:
    drawn = [each.sample.prefix(each.used) for each in parts]
    pairs = np.repeat(np.unique(np.concatenate(drawn)), 2)
    grades = np.random.default_rng(1).integers(0, 4, len(pairs))
    labels = LabelRows(pairs, grades)
    return publish(pool, parts, labels=labels, max_grade=3, version="0.1", **more)


def collection(method: str = "poisson", **options) -> RoundCollection:
    pool = pooled()
    return collected(pool, [part(pool, method, "s", **options)], seeds=["süß"])


@pytest.mark.parametrize("method", METHODS)
def test_what_is_written_is_read_back_to_the_bit(method: str) -> None:
    assert_read_back(collection(method))


def test_many_numbers_take_less_room_than_packed_as_text_usually_is() -> None:
    given, rng = collection(), np.random.default_rng(1)
    about = rng.integers(0, len(given), 5000)
    form = tables.Form("t.tsv.gz", tables.PAIR, [tables.share("size"), tables.share("chance")])
    packed = form.written(given, about, {"size": rng.random(5000), "chance": rng.random(5000)})
    assert len(packed) < len(gzip.compress(gzip.decompress(packed), 6))


def test_a_census_has_an_infinite_step() -> None:
    given = collection(budget=len(pooled()), batch_size=1000)
    found = assert_read_back(given)
    assert isinstance(found, RoundCollection)
    assert found.parts[0].design.is_census
    assert facts_of(written(given))["rounds"][0]["steps"] == ["inf"]


def test_a_step_may_be_as_large_as_the_smallest_size_needs() -> None:
    """Without a floor, what a pair was not believed to be worth has next to no size."""
    given = collection()
    (only,) = given.parts
    design = replace(only.design, steps=np.append(only.design.steps[:-1], 1e25))
    sample = replace(only.sample, probability=design.inclusion()[only.sample.pair])
    found = assert_read_back(replace(given, drawn=replace(only, design=design, sample=sample)))
    assert found.parts[0].design.steps[-1] == 1e25


def test_an_empty_sample_is_read() -> None:
    """A first Poisson batch may hold nothing."""
    given = collection(budget=2, batch_size=1)
    (only,) = given.parts
    sample = replace(
        only.sample, pair=only.sample.pair[:0], batch=only.sample.batch[:0],
        probability=only.sample.probability[:0],
    )  # fmt: skip
    empty = replace(
        given,
        drawn=replace(only, sample=sample),
        labels=LabelRows(given.labels.pair[:0], given.labels.grade[:0]),
    )
    found, problems = read(written(empty))
    assert problems.errors == []
    assert found is not None
    assert len(found.sampled) == 0


# --------------------------------------------------------------------------------- hostile

GOOD = written(collection("poisson"))
GOOD_IID = written(collection("iid"))


@pytest.mark.parametrize(
    ("name", "change", "number", "field", "message"),
    [
        (PAIRS, cell(3, 3, "0"), 3, "size", "above 0 and at most 1, found '0'"),
        (PAIRS, cell(3, 3, "nan"), 3, "size", "found 'nan'"),
        (PAIRS, cell(3, 3, "-0.1"), 3, "size", "found '-0.1'"),
        (PAIRS, cell(3, 4, "0.0"), 3, "probability", "above 0 and at most 1, found '0.0'"),
        (PAIRS, cell(3, 4, "1.5"), 3, "probability", "at most 1, found '1.5'"),
        (PAIRS, cell(3, 4, "inf"), 3, "probability", "found 'inf'"),
        (PAIRS, cell(3, 4, "1_0"), 3, "probability", "found '1_0'"),
        (PAIRS, cell(3, 4, "0.9"), 3, "probability", "which follows from the size, found 0.9"),
        (PAIRS, cell(3, 0, "t9"), 3, "topic", "a topic of collection.json, found 't9'"),
        (PAIRS, cell(3, 1, "../x"), 3, "docno", "that is no path"),
        (PAIRS, line(4, lambda cells: cells[:3]), 4, "columns", "expected 5 columns"),
        (PAIRS, cell(1, 3, "weight"), 1, "columns", "expected the header"),
        (PAIRS, lambda data: b"", 1, "columns", "expected the header"),
        (PAIRS, header_alone, None, "", "expected pairs, found none"),
        (PAIRS, twice(2), None, "docno", "once, found it on line 2 already"),
        (DRAWS, cell(2, 3, "0"), 2, "batch", "from 1 to 2, found '0'"),
        (DRAWS, cell(2, 3, "3"), 2, "batch", "from 1 to 2, found '3'"),
        (DRAWS, cell(2, 4, "2"), 2, "count", "from 1 to 1, found '2'"),
        (DRAWS, cell(2, 1, "nobody"), 2, "docno", "a pair of pairs.tsv.gz, found docno 'nobody'"),
        (DRAWS, twice(2), None, "docno", "once, found it on line 2 already"),
        (JUDGMENTS, cell(2, 2, "4"), 2, "grade", "from 0 to 3, found '4'"),
        (JUDGMENTS, cell(2, 2, "-1"), 2, "grade", "from 0 to 3, found '-1'"),
        (JUDGMENTS, cell(2, 2, "1.5"), 2, "grade", "found '1.5'"),
        (JUDGMENTS, cell(2, 1, "nobody"), 2, "docno", "of draws.tsv.gz, found docno 'nobody'"),
    ],
)
def test_a_bad_line_is_named(
    name: str, change: Change, number: int | None, field: str, message: str
) -> None:
    file, at, where, told = first(repacked(GOOD, name, change))
    assert file == f"c.zip/{name}"
    assert number is None or at == number
    assert where == field
    assert message in told


def test_a_judged_pair_that_was_not_sampled_is_named() -> None:
    """It is in the pool and could have been drawn, but was not."""
    drawn = {tuple(row[:2]) for row in rows_of(GOOD, DRAWS)}
    topic, docno = next(row[:2] for row in rows_of(GOOD, PAIRS) if tuple(row[:2]) not in drawn)
    change = line(2, lambda cells: [topic, docno, cells[2]])
    file, at, field, message = first(repacked(GOOD, JUDGMENTS, change))
    assert (file, at, field) == (f"c.zip/{JUDGMENTS}", 2, "docno")
    assert message == f"expected a pair of {DRAWS}, found docno {docno!r} of topic {topic!r}"


def test_a_sampled_pair_without_judgment_is_named() -> None:
    lost = rows_of(GOOD, DRAWS)[2][:2]

    def judged(data: bytes) -> bytes:
        rows = data.decode().splitlines()
        return "\n".join(row for row in rows if row.split("\t")[:2] != lost).encode()

    file, at, field, message = first(repacked(GOOD, JUDGMENTS, judged))
    assert (file, at, field) == (f"c.zip/{DRAWS}", 4, "docno")
    assert "expected a judgment of" in message


def test_a_pair_is_eligible_or_not() -> None:
    pair = rows_of(GOOD, PAIRS)[0][:2]
    file, _, field, message = first(repacked(GOOD, INELIGIBLE, with_row(*pair)))
    assert (file, field) == (f"c.zip/{INELIGIBLE}", "docno")
    assert "on line 2 of pairs.tsv.gz already" in message


def test_draws_must_be_as_many_as_the_steps_say() -> None:
    _, _, field, message = first(repacked(GOOD_IID, DRAWS, cell(2, 4, "5")))
    assert field == "count"
    assert "expected 8 draws in batch 1 of round 1, found" in message


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", "evalsite-collection-9", "expected one of evalsite-pair-collection-2"),
        ("topics", [], "a list of 1 to"),
        ("topics", ["t1", "/etc/passwd"], "a list of 1 to"),
        ("depth", 0, "a whole number from 1"),
        ("depth", 10**9, "a whole number from 1"),
        ("depth", True, "a whole number from 1"),
        ("max_grade", -1, "a whole number from 1"),
        ("pool", "abc", "64 hexadecimal digits"),
        ("rounds", [], "a list of 1 to 1000 objects"),
        ("rounds", {}, "a list of 1 to 1000 objects"),
        ("rounds", [3], "a list of 1 to 1000 objects"),
        ("rounds", [{}] * 1001, "a list of 1 to 1000 objects"),
        ("extra", 1, "expected no such field"),
    ],
)
def test_a_bad_fact_is_named(field: str, value: object, message: str) -> None:
    assert_bad_fact(GOOD, field, value, message)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("method", "guess", f"one of {', '.join(METHODS)}, found 'guess'"),
        ("method", "adaptive", f"one of {', '.join(METHODS)}, found 'adaptive'"),
        ("steps", [], "positive numbers"),
        ("steps", [0], "positive numbers"),
        ("steps", ["nan"], "positive numbers"),
        ("steps", [5, 4], "steps that never fall"),
        ("numbers", 0, "a whole number from 1 to 1000, found 0"),
        ("numbers", "s", "a whole number from 1"),
        ("measure", "Fancy@10", "Fancy"),
        ("reported", "P@5", "a list of names of measures"),
        ("goal", {"kind": "peace", "runs": ["a"], "against": None}, "the goal is one of"),
        ("goal", {"kind": "single", "runs": 3}, "a list of runs"),
        ("seed", 5, "null or a short text"),
        ("floor", 2, "from 0 to 1"),
        ("extra", 1, "expected no such field"),
    ],
)
def test_a_bad_fact_of_a_round_is_named(field: str, value: object, message: str) -> None:
    file, _, where, told = first(repacked(GOOD, FACTS, of_round(1, field, value)))
    assert file == f"c.zip/{FACTS}"
    assert where.replace("'", "") == f"round 1: {field}"
    assert message in told


def test_draws_with_replacement_are_whole_and_finite() -> None:
    for steps in ([8.5, 16], [8, "inf"], [8, 10**12]):
        _, _, field, message = first(repacked(GOOD_IID, FACTS, of_round(1, "steps", steps)))
        assert field == "round 1: steps"
        assert "whole numbers of draws" in message


def test_sizes_that_are_no_distribution() -> None:
    def halved(data: bytes) -> bytes:
        rows = [row.split("\t") for row in data.decode().splitlines()]
        steps = 16
        for row in rows[1:]:
            size = float(row[3]) / 2
            row[3:] = [repr(size), repr(float(-np.expm1(steps * np.log1p(-size))))]
        return "\n".join("\t".join(row) for row in rows).encode()

    _, _, _, message = first(repacked(GOOD_IID, PAIRS, halved))
    assert "the sizes of all pairs must make up a whole" in message


def test_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(content: bytes, *limit: object) -> tuple[str, str, str]:
        return first_with(monkeypatch, limit, content)

    rows = "expected at most 5 rows, found more"
    assert refused(GOOD, tables, "MAX_ROWS", 5) == (f"c.zip/{PAIRS}", "", rows)
    docnos = refused(GOOD, tables, "MAX_DOCNO_BYTES", 20)[2]
    assert docnos.startswith("expected shorter docnos or fewer rows")
    assert refused(GOOD_IID, pair_facts, "MAX_DRAWS", 10)[1] == "round 1: steps"
    draws = "expected a whole number from 1 to 7, found '8'"
    few = repacked(GOOD_IID, DRAWS, cell(2, 4, "8"))
    assert refused(few, pairs, "MAX_DRAWS", 7) == (f"c.zip/{DRAWS}", "count", draws)
    draws = "expected at most 10 draws, found more"
    assert refused(GOOD_IID, pairs, "MAX_DRAWS", 10) == (f"c.zip/{DRAWS}", "count", draws)


def test_ids_that_no_reader_would_take_are_not_written() -> None:
    given = collection()
    docno = given.docno.copy()
    docno[0] = b"a b"
    with pytest.raises(ValueError, match="white space"):
        written(replace(given, pool=replace(given.pool, docno=docno)))


@pytest.mark.slow
@given(st.lists(st.text("aZ0-_ ./é\x00", max_size=4), min_size=1, max_size=3))
@example(["a" * 255])
@example(["a" * 256])
@example(["-a", "_"])
def test_ids_that_are_simple_are_ids_that_readers_take(ids: list[str]) -> None:
    column = np.array([each.encode() for each in ids], dtype=np.bytes_)
    held = [each.decode() for each in column.tolist()]
    simple = tables._are_simple(column)
    assert not (simple and any(map(id_problem, held)))
    assert simple or not all(each.isascii() and each.isalnum() for each in held) or len(held[0]) > 9
