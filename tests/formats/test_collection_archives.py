"""What holds of the files of judged collections of every kind, above all of hostile ones."""

import gzip
import io
import struct
import zipfile
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from estimation.formats.collections import active, adaptive, archive, facts, pairs, tables, topics
from estimation.formats.collections.archive import DRAWS, FACTS, JUDGMENTS, TooLargeError
from estimation.formats.collections.outlooks import OUTLOOK
from estimation.formats.collections.pairs import INELIGIBLE, PAIRS
from estimation.formats.collections.races import RACES
from estimation.formats.collections.ranked import LISTS
from judging.formats.problems import MAX_ERRORS
from tests.formats import (
    test_active_collections,
    test_adaptive_collections,
    test_collection_rounds,
    test_collections,
    test_preference_collections,
    test_races,
    test_topic_collections,
)
from tests.formats.collection_files import (
    Change,
    cell,
    fact,
    facts_of,
    first,
    first_with,
    header_alone,
    member,
    of_round,
    packed,
    raw_members,
    read,
    repacked,
    rows_of,
    without_fact,
    written,
)


class Kind(NamedTuple):
    """A good file, the names in it, the headers of its tables, and what may be missing."""

    content: bytes
    members: tuple[str, ...]
    headers: tuple[str, ...]
    optional: tuple[str, ...] = ()
    optional_facts: tuple[str, ...] = ()

    @property
    def needed(self) -> tuple[str, ...]:
        return tuple(name for name in self.members if name not in self.optional)


def of_pairs(content: bytes, outlook: str, *, two: bool = False) -> Kind:
    """Of two documents in every row, or of one."""
    headers = (*PAIR_HEADERS, f"topic docno {outlook}")
    if two:
        headers = tuple(header.replace("docno", "docno other") for header in headers)
    return Kind(content, PAIR_MEMBERS, headers, (OUTLOOK,))


PAIR_MEMBERS = (FACTS, PAIRS, INELIGIBLE, DRAWS, JUDGMENTS, OUTLOOK)
TOPIC_MEMBERS = (FACTS, topics.TOPICS, topics.PAIRS, topics.OTHERS, LISTS, DRAWS, JUDGMENTS)
ACTIVE_MEMBERS = (FACTS, LISTS, active.ROUNDS, active.CHANCES, DRAWS, JUDGMENTS)
ADAPTIVE_MEMBERS = (
    FACTS, LISTS, adaptive.PAIRS, adaptive.STEPS, adaptive.MODELS, DRAWS, JUDGMENTS,
)  # fmt: skip
PAIR_HEADERS = (
    "topic docno round size probability", "topic docno", "topic docno round batch count",
    "topic docno grade",
)  # fmt: skip
REACH = "reach_1 reach_2 reach_3"
TOPIC_HEADERS = (
    "topic cost probability", "topic docno", "topic docno", "topic docno run rank",
    "topic batch count", "topic docno grade",
)  # fmt: skip
ACTIVE_HEADERS = (
    "topic docno run rank", "topic batch draws", "topic batch run probability",
    "topic docno batch place", "topic docno grade",
)  # fmt: skip
ADAPTIVE_HEADERS = (
    "topic docno run rank", "topic docno size belief", "batch until constant",
    "batch level parameter coefficient", "topic docno batch chance", "topic docno grade",
)  # fmt: skip
RACE_MEMBERS = (*ADAPTIVE_MEMBERS[:5], RACES, *ADAPTIVE_MEMBERS[5:])
RACE_HEADERS = (*ADAPTIVE_HEADERS[:4], "batch run priority", *ADAPTIVE_HEADERS[4:])
LATER_FACTS = ("for_all_runs",)  # not in files of before
KINDS = {
    "pairs": of_pairs(test_collections.GOOD, f"belief_1 {REACH}"),
    "draws": of_pairs(test_collections.GOOD_IID, f"belief_1 {REACH}"),
    "rounds": of_pairs(test_collection_rounds.GOOD, f"belief_1 belief_2 belief_3 {REACH}"),
    "preferences": of_pairs(test_preference_collections.GOOD, "belief_1 reach_1 reach_2", two=True),
    "topics": Kind(test_topic_collections.GOOD, TOPIC_MEMBERS, TOPIC_HEADERS),
    "census": Kind(test_topic_collections.CENSUS, TOPIC_MEMBERS, TOPIC_HEADERS),
    "active": Kind(test_active_collections.GOOD, ACTIVE_MEMBERS, ACTIVE_HEADERS),
    "adaptive": Kind(
        test_adaptive_collections.GOOD, ADAPTIVE_MEMBERS, ADAPTIVE_HEADERS, (), LATER_FACTS
    ),
    "race": Kind(test_races.GOOD, RACE_MEMBERS, RACE_HEADERS, (), LATER_FACTS),
}
GOOD = test_collections.GOOD
EACH = (
    GOOD, test_topic_collections.GOOD, test_active_collections.GOOD, test_adaptive_collections.GOOD,
)  # fmt: skip
"""One file of each form."""


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def test_everything_is_plain_and_tells_nothing_of_assessors_and_time(kind: Kind) -> None:
    entries = zipfile.ZipFile(io.BytesIO(kind.content)).infolist()
    assert [entry.filename for entry in entries] == list(kind.members)
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    headers = [member(kind.content, name).decode().splitlines()[0] for name in kind.members[1:]]
    assert headers == [header.replace(" ", "\t") for header in kind.headers]
    judgments = member(kind.content, JUDGMENTS).decode().splitlines()[1:]
    assert judgments == sorted(judgments, key=lambda row: row.encode())


# ----------------------------------------------------------------------------------- spoilt


def test_a_missing_fact_is_named(kind: Kind) -> None:
    for field in kind.optional_facts:
        found, problems = read(repacked(kind.content, FACTS, without_fact(field)))
        assert found is not None, problems
    for field in set(facts_of(kind.content)) - set(kind.optional_facts):
        file, _, where, message = first(repacked(kind.content, FACTS, without_fact(field)))
        assert (file, where) == (f"c.zip/{FACTS}", field)
        assert "found nothing" in message or "expected one of" in message


@pytest.mark.parametrize("content", EACH)
def test_topics_ascend(content: bytes) -> None:
    first_two, *rest = facts_of(content)["topics"][:2], *facts_of(content)["topics"][2:]
    for names in (first_two[::-1], first_two[:1] * 2):
        file, _, field, message = first(repacked(content, FACTS, fact("topics", [*names, *rest])))
        assert (file, field) == (f"c.zip/{FACTS}", "topics")
        assert message == f"expected them to ascend, each once, found 't0' after {names[0]!r}"


@pytest.mark.slow
def test_every_flipped_byte_is_refused_or_harmless(kind: Kind) -> None:
    rng = np.random.default_rng(3)
    for place in rng.integers(0, len(kind.content), 200).tolist():
        broken = bytearray(kind.content)
        broken[place] ^= 1 << int(rng.integers(8))
        found, _ = read(bytes(broken))
        assert found is None or written(found) == kind.content


@pytest.mark.slow
def test_every_changed_cell_is_refused_or_read_as_it_stands(kind: Kind) -> None:
    """Nothing is put right in silence: what is taken is written as it was found."""
    rng = np.random.default_rng(4)
    refused = 0
    for name in kind.members[1:]:
        rows = rows_of(kind.content, name)
        for number in rng.integers(0, len(rows), 20 * bool(rows)).tolist():
            column = int(rng.integers(len(rows[number])))
            other = rows[int(rng.integers(len(rows)))][column]
            changed = repacked(kind.content, name, cell(number + 2, column, other))
            found, _ = read(changed)
            refused += found is None
            if found is not None:
                told = {tuple(row) for row in rows_of(written(found), name)}
                assert told == {tuple(row) for row in rows_of(changed, name)}
    assert refused > 25


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "pairs.tsv", "more.txt"])
def test_other_files_are_refused(kind: Kind, name: str) -> None:
    message = first(packed(raw_members(kind.content) | {name: b"x"}))[3]
    perhaps = f", perhaps {', '.join(kind.optional)}," if kind.optional else ""
    assert message == f"expected the files {', '.join(kind.needed)}{perhaps} and no others"


def test_missing_files_are_refused(kind: Kind) -> None:
    for name in kind.needed[1:]:
        members = raw_members(kind.content)
        members.pop(name)
        assert "and no others" in first(packed(members))[3]


@pytest.fixture(scope="module")
def much_of_nothing() -> bytes:
    """Beyond what may compress as well as it likes, 16 MiB; behind a header one member more."""
    return gzip.compress((b" " * 65535 + b"\n") * 280, compresslevel=9)


@pytest.mark.slow
@pytest.mark.parametrize("content", EACH)
def test_gzip_bombs_are_refused(content: bytes, much_of_nothing: bytes) -> None:
    members = raw_members(content)
    for name in members.keys() - {FACTS}:
        bomb = gzip.compress(header_alone(member(content, name))) + much_of_nothing
        file, _, _, message = first(packed(members | {name: bomb}))
        assert file == f"c.zip/{name}"
        assert "compression of at most 100 to 1" in message


@pytest.mark.parametrize("content", EACH)
@pytest.mark.parametrize("name", [DRAWS, JUDGMENTS])
def test_text_that_is_no_utf_8_is_named(content: bytes, name: str) -> None:
    file, at, _, message = first(repacked(content, name, lambda data: data + b"\xff\n"))
    assert (file, at) == (f"c.zip/{name}", 2 + len(rows_of(content, name)))
    assert message == "expected UTF-8, found byte 0xff at column 1"


@pytest.mark.slow
@pytest.mark.parametrize("content", EACH)
def test_reading_stops_at_too_many_errors(content: bytes) -> None:
    """Of all tables together: what refuses them must not take its time."""
    topic, _, grade = rows_of(content, JUDGMENTS)[0]
    more = "".join(f"{topic}\tnobody{n}\t{grade}\n" for n in range(MAX_ERRORS + 1000)).encode()
    _, problems = read(repacked(content, JUDGMENTS, lambda data: data + more))
    assert problems.errors[-1].message == f"more than {MAX_ERRORS} errors: reading stopped here"
    assert problems.error_count == MAX_ERRORS + 1


# ------------------------------------------------------------------------------------ facts


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1]", b"[" * 100_000, b'{"a": 1, "a": 2}', b'{"depth": NaN}', b"\xff\xfe",
     b'{"depth": ' + b"9" * 5000 + b"}", b'{"depth": ' + b"9" * 31 + b"}",
     b'{"\\ud800": 1}', b'{"depth": 1e999}'],
)  # fmt: skip
def test_facts_that_are_no_json(content: bytes) -> None:
    file, _, _, message = first(repacked(GOOD, FACTS, lambda _: content))
    assert file == f"c.zip/{FACTS}"
    assert message.startswith("expected")


def test_a_file_of_an_earlier_form_says_what_to_do() -> None:
    old = first(repacked(GOOD, FACTS, fact("format", "evalsite-collection-1")))[3]
    assert "found 'evalsite-collection-1', of an earlier evalsite: export the report again" in old
    assert "again" not in first(repacked(GOOD, FACTS, fact("format", ["a"])))[3]


@pytest.mark.parametrize("value", ["1e999", "-1e999", "9" * 30, "true", '"8"', "null", "[8]"])
@pytest.mark.parametrize(
    ("content", "field"),
    [
        *((EACH[1], field) for field in ("depth", "floor")),
        *((EACH[2], field) for field in ("uniform_share", "max_grade")),
        *((EACH[3], field) for field in ("budget", "batch_size", "floor", "predicted")),
    ],
)
def test_numbers_that_are_none(content: bytes, field: str, value: str) -> None:
    def change(data: bytes) -> bytes:
        return fact(field, "@")(data).replace(b'"@"', value.encode())

    file, _, where, message = first(repacked(content, FACTS, change))
    assert (file, where) == (f"c.zip/{FACTS}", field)
    assert message.startswith("expected a ")


def test_a_goal_says_nothing_else() -> None:
    goal = facts_of(EACH[1])["goal"] | {"extra": 1}
    file, _, field, message = first(repacked(EACH[1], FACTS, fact("goal", goal)))
    assert (file, field, message) == (
        f"c.zip/{FACTS}", "goal", "expected no such field as 'extra'",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("content", "change", "field"),
    [
        (EACH[0], lambda goal: of_round(1, "goal", goal), "round 1: goal"),
        (EACH[1], lambda goal: fact("goal", goal), "goal"),
        (EACH[3], lambda goal: fact("goal", goal), "goal"),
    ],
)
def test_a_goal_has_no_endless_list_of_runs(
    content: bytes, change: Callable[[object], Change], field: str
) -> None:
    """Every two of them are compared."""
    goal = {"kind": "absolute", "runs": [f"r{n}" for n in range(1002)], "against": None}
    file, _, where, message = first(repacked(content, FACTS, change(goal)))
    assert (file, where) == (f"c.zip/{FACTS}", field)
    assert message == "expected a kind, a list of runs, at most 1000, and perhaps one against"


def test_a_goal_that_no_reader_would_take_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [read(content)[0] for content in EACH[:2]]
    monkeypatch.setattr(facts, "MAX_RUNS", 0)
    for given in found:
        with pytest.raises(TooLargeError, match="at most 0 runs"):
            written(given)


def test_more_rows_than_a_reader_would_take_are_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [read(content)[0] for content in EACH]
    monkeypatch.setattr(tables, "MAX_ROWS", 3)
    for given in found:
        with pytest.raises(TooLargeError, match="at most 3 rows, with topic, "):
            written(given)
    monkeypatch.undo()
    monkeypatch.setattr(pairs, "MAX_SIZES", 3)
    with pytest.raises(TooLargeError, match="at most 3 pairs times rounds"):
        written(found[0])


# --------------------------------------------------------------------------------- archives


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x05\x06", b"not a zip file", GOOD[:-30], GOOD[40:], b"PK\x05\x06" + b"\xff" * 18],
)
def test_what_is_no_zip_file(content: bytes) -> None:
    file, _, _, message = first(content)
    assert file == "c.zip"
    assert "zip file" in message or "files" in message


def test_repeated_files_are_refused() -> None:
    buffer = io.BytesIO(packed(raw_members(GOOD)))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(buffer, "a") as opened:
        opened.writestr(FACTS, b"{}")
    assert first(buffer.getvalue())[3] == "expected the file collection.json, once"


def test_a_packed_archive_is_read_as_well() -> None:
    found, _ = read(packed(raw_members(GOOD)))
    assert found is not None


def test_zip_bombs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in ((FACTS, "MAX_FACTS"), (DRAWS, "MAX_MEMBER")):
        bomb = packed(raw_members(GOOD) | {name: b" " * 100_001})
        refused = first_with(monkeypatch, (archive, limit, 100_000), bomb)
        assert refused == ("c.zip", name, "expected at most 100000 bytes, found more")


def test_an_endless_list_of_files_is_not_read() -> None:
    _, _, _, message = first(packed({f"file{n}": b"" for n in range(3000)}))
    assert message == "expected a zip file of a few files"


@pytest.mark.slow
@pytest.mark.parametrize("comment", [0, 10, 65_500, 65_535])
def test_a_list_of_files_is_not_told_elsewhere(comment: int) -> None:
    """The record of a large archive, before the end, would tell of any number of files."""
    members = packed({f"file{n}": b"" for n in range(3000)})
    at = members.rindex(b"PK\x05\x06")
    size, offset = struct.unpack("<LL", members[at + 12 : at + 20])
    large = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 3000, 3000, size, offset)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 9, 0xFFFFFFFF, comment)
    content = members[:at] + large + locator + end + b" " * comment
    assert len(zipfile.ZipFile(io.BytesIO(content)).infolist()) == 3000
    assert first(content)[3] == "expected a zip file of a few files"


@pytest.mark.parametrize("offset", [len(GOOD), 0xFFFFFFF0])
def test_files_stand_within_the_archive(offset: int) -> None:
    content = bytearray(GOOD)
    at = content.rindex(b"PK\x01\x02", 0, content.rindex(DRAWS.encode()))
    struct.pack_into("<L", content, at + 42, offset)
    _, _, field, message = first(bytes(content))
    assert (field, message) == (DRAWS, "expected a whole zip file, found a part")


def test_no_file_stands_at_a_place_beyond_all_files() -> None:
    """An offset of 64 bits, which stands in the extra field."""
    at = GOOD.rindex(b"PK\x01\x02", 0, GOOD.rindex(DRAWS.encode()))
    extra = struct.pack("<HHQ", 1, 8, 2**63)
    entry = bytearray(GOOD[at : at + 46 + len(DRAWS)])
    struct.pack_into("<H", entry, 30, len(extra))
    struct.pack_into("<L", entry, 42, 0xFFFFFFFF)
    end = GOOD.rindex(b"PK\x05\x06")
    tail = bytearray(GOOD[end:])
    size = struct.unpack_from("<L", tail, 12)[0]
    struct.pack_into("<L", tail, 12, size + len(extra))
    content = GOOD[:at] + bytes(entry) + extra + GOOD[at + len(entry) : end] + bytes(tail)
    assert zipfile.ZipFile(io.BytesIO(content)).getinfo(DRAWS).header_offset == 2**63
    _, _, field, message = first(content)
    assert (field, message) == (DRAWS, "expected a whole zip file, found a part")


def test_a_name_that_is_no_utf_8_is_refused() -> None:
    """In the header of the file itself; the list of contents has the right one."""
    content = bytearray(GOOD)
    at = content.index(DRAWS.encode())
    content[at : at + 2] = b"\xff\xfe"
    struct.pack_into("<H", content, at - 30 + 6, 0x800)
    file, _, _, message = first(bytes(content))
    assert file == "c.zip"
    assert message.startswith("expected a sound zip file: 'utf-8' codec")
