"""Judged collections as files: nothing is lost, and nothing that is wrong is taken."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest

from estimation.core import goals
from estimation.core.combining import Part
from estimation.core.designs import METHODS, make_design
from estimation.core.draws import draw
from estimation.core.labels import LabelRows
from estimation.core.measures import parse_measure
from estimation.core.pair_collection import PairCollection
from estimation.core.pool import Pool, RankedLists, build_pool
from estimation.core.priors import make_prior
from estimation.formats.collections import archive, pair_facts, pairs, tables
from estimation.formats.collections.archive import FACTS
from estimation.formats.collections.files import read_collection, write_collection
from estimation.formats.collections.pairs import DRAWS, INELIGIBLE, JUDGMENTS, MEMBERS, PAIRS
from judging.formats.problems import Problems, UnreadableError

MEASURE = parse_measure("DCG@5")


def lists(seed: int) -> RankedLists:
    rng = np.random.default_rng(seed)
    docnos = [f"dé{number}".encode() for number in range(30)]
    rows = [rng.permutation(docnos)[:8] for _ in range(4)]
    return RankedLists(tuple(f"t{n}" for n in range(4)), np.arange(5) * 8, np.concatenate(rows))


def pooled() -> Pool:
    return build_pool([f"t{n}" for n in range(5)], {f"r{n}": lists(n) for n in range(3)}, depth=8)


def part(pool: Pool, method: str, seed: str, **options) -> Part:
    """A round, or its first two batches."""
    goal = goals.absolute("r0", "r1")
    prior = make_prior(pool, name="rank", goal=goal, measure=MEASURE, max_grade=3)
    settings = {"budget": 24, "batch_size": 8, "reported": [parse_measure("P@5")]} | options
    design = make_design(pool, goal=goal, measure=MEASURE, prior=prior, method=method, **settings)
    sample = draw(pool, design, seed=seed)
    return Part(design, sample, min(2, design.batches), numbers=seed)


def collected(pool: Pool, parts: list[Part], **more) -> PairCollection:
    drawn = [each.sample.prefix(each.used) for each in parts]
    pairs = np.repeat(np.unique(np.concatenate(drawn)), 2)
    grades = np.random.default_rng(1).integers(0, 4, len(pairs))
    labels = LabelRows(pairs, grades)
    return PairCollection.of(pool, parts, labels=labels, max_grade=3, version="0.1", **more)


def collection(method: str = "poisson", **options) -> PairCollection:
    pool = pooled()
    return collected(pool, [part(pool, method, "s", **options)], seeds=["süß"])


def written(given: PairCollection) -> bytes:
    buffer = io.BytesIO()
    write_collection(buffer, given)
    return buffer.getvalue()


def read(content: bytes) -> tuple[PairCollection | None, Problems]:
    problems = Problems("c.zip")
    try:
        found = read_collection(io.BytesIO(content), problems)
    except UnreadableError:
        found = None
    assert (found is not None) == problems.ok
    assert found is None or isinstance(found, PairCollection)
    return found, problems


def assert_equal(one: object, other: object) -> None:
    """Field by field, arrays to the last bit."""
    for field in fields(one):  # type: ignore[arg-type]
        first, second = getattr(one, field.name), getattr(other, field.name)
        if isinstance(first, np.ndarray):
            assert first.dtype == second.dtype, field.name
            assert first.tolist() == second.tolist(), field.name
        elif field.name in ("design", "sample", "labels"):
            assert_equal(first, second)
        elif field.name == "parts":
            assert len(first) == len(second)
            for each, again in zip(first, second, strict=True):
                assert_equal(each, again)
        else:
            assert first == second, field.name


@pytest.mark.parametrize("method", METHODS)
def test_what_is_written_is_read_back_to_the_bit(method: str) -> None:
    given = collection(method)
    found, problems = read(written(given))
    assert problems.as_dict()["errors"] == []
    assert found is not None
    assert_equal(given, found)
    assert written(found) == written(given)


def test_a_census_has_an_infinite_step() -> None:
    given = collection(budget=len(pooled()), batch_size=1000)
    found, _ = read(written(given))
    assert found is not None
    assert found.parts[0].design.is_census
    assert_equal(given, found)
    assert json.loads(member(written(given), FACTS))["rounds"][0]["steps"] == ["inf"]


def member(content: bytes, name: str) -> bytes:
    raw = zipfile.ZipFile(io.BytesIO(content)).read(name)
    return gzip.decompress(raw) if name.endswith(".gz") else raw


def test_everything_is_plain_and_tells_nothing_of_assessors_and_time() -> None:
    content = written(collection("iid"))
    archive = zipfile.ZipFile(io.BytesIO(content))
    assert archive.namelist() == list(MEMBERS)
    assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    headers = {name: member(content, name).decode().splitlines()[0] for name in MEMBERS[1:]}
    assert headers == {
        PAIRS: "topic\tdocno\tround\tsize\tprobability",
        INELIGIBLE: "topic\tdocno",
        DRAWS: "topic\tdocno\tround\tbatch\tcount",
        JUDGMENTS: "topic\tdocno\tgrade",
    }
    judgments = member(content, JUDGMENTS).decode().splitlines()[1:]
    assert judgments == sorted(judgments, key=lambda line: line.encode())


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
        parts=(replace(only, sample=sample),),
        labels=LabelRows(given.labels.pair[:0], given.labels.grade[:0]),
    )
    found, problems = read(written(empty))
    assert problems.errors == []
    assert found is not None
    assert len(found.sampled) == 0


# --------------------------------------------------------------------------------- hostile

GOOD = written(collection("poisson"))
GOOD_IID = written(collection("iid"))


def repacked(content: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """The archive with one member changed; tables are unpacked and packed again."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for each in MEMBERS:
            data = member(content, each)
            data = change(data) if each == name else data
            archive.writestr(each, gzip.compress(data) if each.endswith(".gz") else data)
    return buffer.getvalue()


def line(number: int, cells: Callable[[list[str]], list[str]]) -> Callable[[bytes], bytes]:
    """A change of one line of a table; the header has the number 1."""

    def change(data: bytes) -> bytes:
        lines = data.decode().splitlines()
        lines[number - 1] = "\t".join(cells(lines[number - 1].split("\t")))
        return ("\n".join(lines) + "\n").encode()

    return change


def cell(number: int, column: int, value: str) -> Callable[[bytes], bytes]:
    return line(number, lambda cells: [*cells[:column], value, *cells[column + 1 :]])


def twice(number: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        return data + data.splitlines()[number - 1] + b"\n"

    return change


def fact(name: str, value: object) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps(json.loads(data) | {name: value}).encode()


def of_round(number: int, name: str, value: object) -> Callable[[bytes], bytes]:
    """A change of a fact of one round; the first has the number 1."""

    def change(data: bytes) -> bytes:
        facts = json.loads(data)
        facts["rounds"][number - 1][name] = value
        return json.dumps(facts).encode()

    return change


def first(content: bytes) -> tuple[str, int | None, str, str]:
    found, problems = read(content)
    assert found is None
    problem = problems.errors[0]
    return problem.file, problem.line, problem.field, problem.message


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
        (PAIRS, lambda data: data.splitlines(keepends=True)[0], None, PAIRS, "expected pairs"),
        (PAIRS, twice(2), None, "docno", "once, found it on line 2 of pairs.tsv.gz already"),
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
    name: str, change: Callable[[bytes], bytes], number: int | None, field: str, message: str
) -> None:
    file, at, where, told = first(repacked(GOOD, name, change))
    assert file in (f"c.zip/{name}", "c.zip")
    assert number is None or at == number
    assert where == field
    assert message in told


def test_a_judged_pair_that_was_not_sampled_is_named() -> None:
    """It is in the pool and could have been drawn, but was not."""
    drawn = {tuple(row.split("\t")[:2]) for row in member(GOOD, DRAWS).decode().splitlines()}
    pairs = [row.split("\t")[:2] for row in member(GOOD, PAIRS).decode().splitlines()[1:]]
    topic, docno = next(pair for pair in pairs if tuple(pair) not in drawn)
    change = line(2, lambda cells: [topic, docno, cells[2]])
    file, at, field, message = first(repacked(GOOD, JUDGMENTS, change))
    assert (file, at, field) == (f"c.zip/{JUDGMENTS}", 2, "docno")
    assert message == f"expected a pair of {DRAWS}, found docno {docno!r} of topic {topic!r}"


def test_a_sampled_pair_without_judgment_is_named() -> None:
    lost = member(GOOD, DRAWS).decode().splitlines()[3].split("\t")[:2]

    def without(data: bytes) -> bytes:
        rows = data.decode().splitlines()
        return "\n".join(row for row in rows if row.split("\t")[:2] != lost).encode()

    file, at, field, message = first(repacked(GOOD, JUDGMENTS, without))
    assert (file, at, field) == (f"c.zip/{DRAWS}", 4, "docno")
    assert "expected a judgment of" in message


def test_a_pair_is_eligible_or_not() -> None:
    pair = member(GOOD, PAIRS).decode().splitlines()[1].split("\t")[:2]
    added = "\t".join(pair).encode() + b"\n"
    file, _, field, message = first(repacked(GOOD, INELIGIBLE, lambda data: data + added))
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
    file, _, where, told = first(repacked(GOOD, FACTS, fact(field, value)))
    assert file == f"c.zip/{FACTS}"
    assert where.strip("'") == field
    assert message in told


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("method", "guess", "one of poisson, priority, iid, per-query, found 'guess'"),
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


def test_a_file_of_an_earlier_form_says_what_to_do() -> None:
    old = first(repacked(GOOD, FACTS, fact("format", "evalsite-collection-1")))[3]
    assert "found 'evalsite-collection-1', of an earlier evalsite: export the report again" in old
    assert "again" not in first(repacked(GOOD, FACTS, fact("format", ["a"])))[3]


def test_draws_with_replacement_are_whole_and_finite() -> None:
    for steps in ([8.5, 16], [8, "inf"], [8, 10**12]):
        _, _, field, message = first(repacked(GOOD_IID, FACTS, of_round(1, "steps", steps)))
        assert field == "round 1: steps"
        assert "whole numbers of draws" in message


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1]", b"[" * 100_000, b'{"a": 1, "a": 2}', b'{"depth": NaN}', b"\xff\xfe",
     b'{"depth": ' + b"9" * 5000 + b"}"],
)  # fmt: skip
def test_facts_that_are_no_json(content: bytes) -> None:
    file, _, _, message = first(repacked(GOOD, FACTS, lambda _: content))
    assert file == f"c.zip/{FACTS}"
    assert message.startswith("expected")


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


# --------------------------------------------------------------------------------- archives


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x05\x06", b"not a zip file", GOOD[:-30], GOOD[40:], b"PK\x05\x06" + b"\xff" * 18],
)
def test_what_is_no_zip_file(content: bytes) -> None:
    file, _, _, message = first(content)
    assert file == "c.zip"
    assert "zip file" in message or "files" in message


def test_every_flipped_byte_is_refused_or_harmless() -> None:
    rng = np.random.default_rng(3)
    for place in rng.integers(0, len(GOOD), 300).tolist():
        broken = bytearray(GOOD)
        broken[place] ^= 1 << int(rng.integers(8))
        found, _ = read(bytes(broken))
        assert found is None or written(found) == GOOD


def packed(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def raw_members(content: bytes) -> dict[str, bytes]:
    archive = zipfile.ZipFile(io.BytesIO(content))
    return {name: archive.read(name) for name in MEMBERS}


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "pairs.tsv", "more.txt"])
def test_other_files_are_refused(name: str) -> None:
    _, _, _, message = first(packed(raw_members(GOOD) | {name: b"x"}))
    assert message.startswith("expected the files collection.json, pairs.tsv.gz")


def test_missing_and_repeated_files_are_refused() -> None:
    members = raw_members(GOOD)
    members.pop(INELIGIBLE)
    assert "and no others" in first(packed(members))[3]
    buffer = io.BytesIO(packed(raw_members(GOOD)))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(FACTS, b"{}")
    assert first(buffer.getvalue())[3] == "expected the file collection.json, once"


def test_a_packed_archive_is_read_as_well() -> None:
    found, _ = read(packed(raw_members(GOOD)))
    assert found is not None


def test_gzip_bombs_are_refused() -> None:
    lines = (b" " * 65535 + b"\n") * 400
    bomb = gzip.compress(b"topic\tdocno\tgrade\n" + lines, compresslevel=9)
    file, _, _, message = first(packed(raw_members(GOOD) | {JUDGMENTS: bomb}))
    assert file == f"c.zip/{JUDGMENTS}"
    assert "compression of at most 100 to 1" in message


def test_zip_bombs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FACTS", 1000)
    file, _, field, message = first(packed(raw_members(GOOD) | {FACTS: b" " * 1001}))
    assert (file, field, message) == ("c.zip", FACTS, "expected at most 1000 bytes, found more")


def test_an_endless_list_of_files_is_not_read() -> None:
    _, _, _, message = first(packed({f"file{n}": b"" for n in range(3000)}))
    assert message == "expected a zip file of a few files"


def test_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_ROWS", 5)
    assert first(GOOD)[3] == "expected at most 5 rows, found more"
    monkeypatch.setattr(tables, "MAX_ROWS", 10**6)
    monkeypatch.setattr(tables, "MAX_DOCNO_BYTES", 20)
    assert first(GOOD)[3].startswith("expected shorter docnos or fewer rows")
    monkeypatch.undo()
    monkeypatch.setattr(pair_facts, "MAX_DRAWS", 10)
    assert first(GOOD_IID)[2] == "round 1: steps"
    monkeypatch.undo()
    monkeypatch.setattr(pairs, "MAX_DRAWS", 10)
    assert "at most 10 draws" in first(repacked(GOOD_IID, DRAWS, lambda data: data))[3]


def test_ids_that_no_reader_would_take_are_not_written() -> None:
    given = collection()
    docno = given.docno.copy()
    docno[0] = b"a b"
    with pytest.raises(ValueError, match="white space"):
        written(replace(given, docno=docno))
