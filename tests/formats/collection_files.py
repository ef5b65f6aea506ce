"""Files of judged collections: written, read, and spoilt in one place."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.rounds.combining import as_one
from estimation.formats.collections.archive import FACTS, JUDGMENTS
from estimation.formats.collections.files import read_collection, write_collection
from judging.formats.problems import Problems, UnreadableError

Change = Callable[[bytes], bytes]


def written(given: RoundCollection) -> bytes:
    buffer = io.BytesIO()
    write_collection(buffer, given)
    return buffer.getvalue()


def read(content: bytes) -> tuple[RoundCollection | None, Problems]:
    problems = Problems("c.zip")
    try:
        found = read_collection(io.BytesIO(content), problems)
    except UnreadableError:
        found = None
    assert (found is not None) == problems.ok
    return found, problems


def assert_equal(one: object, other: object) -> None:
    """Field by field, arrays to the last bit."""
    assert type(one) is type(other)
    for field in fields(one):  # type: ignore[arg-type]
        first, second = getattr(one, field.name), getattr(other, field.name)
        if isinstance(first, np.ndarray):
            assert first.dtype == second.dtype, field.name
            assert str(first.tolist()) == str(second.tolist()), field.name  # of nan and -0.0 too
        elif is_dataclass(first) and field.name != "goal":
            assert_equal(first, second)
        elif field.name in ("parts", "steps"):  # of several rounds together, of an adaptive one
            for each, again in zip(first, second, strict=True):
                assert_equal(each, again)
        else:
            assert first == second, field.name


def within_reach(given: RoundCollection) -> RoundCollection:
    """As a file tells it: what is expected of pairs that no round could draw is not kept."""
    reached = given.within_reach

    def kept(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else values * reached

    parts = [
        replace(part, design=replace(part.design, belief=kept(part.design.belief)))
        for part in given.parts
    ]
    assert given.outlook is not None
    outlook = replace(given.outlook, reached=kept(given.outlook.reached))
    return replace(given, drawn=as_one(parts), outlook=outlook)


def assert_read_back(given: RoundCollection) -> RoundCollection:
    """To the last bit, and written again as the same file."""
    found, problems = read(written(given))
    assert problems.as_dict()["errors"] == []
    assert found is not None
    assert_equal(within_reach(given) if given.parts else given, found)
    assert written(found) == written(given)
    return found


def member(content: bytes, name: str) -> bytes:
    raw = zipfile.ZipFile(io.BytesIO(content)).read(name)
    return gzip.decompress(raw) if name.endswith(".gz") else raw


def rows_of(content: bytes, name: str) -> list[list[str]]:
    """The cells of a table, without its header."""
    return [line.split("\t") for line in member(content, name).decode().splitlines()[1:]]


def packed(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def raw_members(content: bytes) -> dict[str, bytes]:
    archive = zipfile.ZipFile(io.BytesIO(content))
    return {name: archive.read(name) for name in archive.namelist()}


def repacked(content: bytes, name: str, change: Change) -> bytes:
    """The archive with one member changed; a table is unpacked and packed again."""
    data = change(member(content, name))
    data = gzip.compress(data) if name.endswith(".gz") else data
    return packed(raw_members(content) | {name: data})


def line(number: int, cells: Callable[[list[str]], list[str]]) -> Change:
    """A change of one line of a table; the header has the number 1."""

    def change(data: bytes) -> bytes:
        lines = data.decode().splitlines()
        lines[number - 1] = "\t".join(cells(lines[number - 1].split("\t")))
        return ("\n".join(lines) + "\n").encode()

    return change


def cell(number: int, column: int, value: str) -> Change:
    return line(number, lambda cells: [*cells[:column], value, *cells[column + 1 :]])


def twice(number: int) -> Change:
    return lambda data: data + data.splitlines()[number - 1] + b"\n"


def without(number: int) -> Change:
    def change(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        return b"".join(lines[: number - 1] + lines[number:])

    return change


def only(wanted: Callable[[list[str]], bool]) -> Change:
    """Keep the header, and the rows whose cells are wanted."""

    def change(data: bytes) -> bytes:
        header, *rows = data.decode().splitlines()
        kept = [row for row in rows if wanted(row.split("\t"))]
        return ("\n".join([header, *kept]) + "\n").encode()

    return change


def with_row(*cells: str) -> Change:
    return lambda data: data + "\t".join(cells).encode() + b"\n"


def header_alone(data: bytes) -> bytes:
    return data.splitlines(keepends=True)[0]


def fact(name: str, value: object) -> Change:
    return lambda data: json.dumps(json.loads(data) | {name: value}).encode()


def without_fact(name: str) -> Change:
    def change(data: bytes) -> bytes:
        found = json.loads(data)
        del found[name]
        return json.dumps(found).encode()

    return change


def of_round(number: int, name: str, value: object) -> Change:
    """A change of a fact of one round; the first has the number 1."""

    def change(data: bytes) -> bytes:
        facts = json.loads(data)
        facts["rounds"][number - 1][name] = value
        return json.dumps(facts).encode()

    return change


def facts_of(content: bytes) -> dict:
    return json.loads(member(content, FACTS))


def first(content: bytes) -> tuple[str, int | None, str, str]:
    """File, line, field and message of the first problem."""
    found, problems = read(content)
    assert found is None
    problem = problems.errors[0]
    return problem.file, problem.line, problem.field, problem.message


def assert_bad_fact(content: bytes, field: str, value: object, message: str | None) -> None:
    """It is named; or, where no message is expected, the table that it does not fit."""
    file, _, where, told = first(repacked(content, FACTS, fact(field, value)))
    if message is not None:
        assert file == f"c.zip/{FACTS}"
        assert where.strip("'") == field
        assert message in told
    else:
        assert told.startswith("expected")


def first_with(
    monkeypatch: pytest.MonkeyPatch, limit: tuple[object, str, int], content: bytes
) -> tuple[str, str, str]:
    """File, field and message of the first problem if a limit, in a module by a name, is lower."""
    with monkeypatch.context() as patch:
        patch.setattr(*limit)
        file, _, field, message = first(content)
    return file, field, message


def assert_a_lost_judgment_is_named(content: bytes) -> None:
    lost = rows_of(content, JUDGMENTS)[4][:2]

    def change(data: bytes) -> bytes:
        kept = [row for row in data.decode().splitlines() if row.split("\t")[:2] != lost]
        return "\n".join(kept).encode()

    file, _, field, message = first(repacked(content, JUDGMENTS, change))
    assert (file, field) == (f"c.zip/{JUDGMENTS}", "docno")
    assert f"expected a judgment of docno {lost[1]!r} of topic {lost[0]!r}" in message
