"""Results at addresses: the same as in folders, whole or not there, and fetched once."""

import io
import json
import pickle
import uuid
from pathlib import Path

import numpy as np
import pytest

from estimation.core.archives import ArchiveError
from estimation.core.shards import store
from estimation.core.shards.building import build_shards
from estimation.core.shards.places import Remote, copies, copy_of, place_of
from estimation.core.shards.pools import read_pool
from estimation.core.shards.running import SerialExecutor
from estimation.core.shards.store import (
    column_names,
    is_written,
    read_columns,
    read_facts,
    read_rows,
    seal_of,
    write_columns,
)
from tests.core.sharded_pools import DEPTH, write_inputs

pytest.importorskip("fsspec")
pytestmark = pytest.mark.usefixtures("no_disk_waits")
COLUMNS = {"code": np.arange(7), "name": np.array([b"a", b"bcd"]), "none": np.empty(0)}


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Remote:
    """In the memory of this process: a store without folders, as object storage is."""
    monkeypatch.setenv("EVALSITE_COPIES", str(tmp_path / "copies"))
    return Remote(f"memory://{uuid.uuid4().hex}") / "r"


def column_file(numbers: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, numbers)
    return file.getvalue()


def remove(place: Remote) -> None:
    system, path = place._found
    system.rm_file(path)


def test_what_is_written_at_an_address_is_read_from_there(remote: Remote) -> None:
    assert not is_written(remote)
    write_columns(remote, {"kind": "test"}, COLUMNS)
    assert is_written(remote)
    assert column_names(remote) == tuple(sorted(COLUMNS))
    facts, columns = read_columns(remote)
    assert facts == read_facts(remote) == {"kind": "test"}
    for name, expected in COLUMNS.items():
        np.testing.assert_array_equal(columns[name], expected)
        assert columns[name].dtype == expected.dtype
    assert remote.name == "r"
    assert (remote / "x").name == "x"


def test_it_has_the_bytes_and_the_seal_of_a_folder(remote: Remote, tmp_path: Path) -> None:
    for place in (remote, tmp_path / "folder"):
        write_columns(place, {"kind": "test"}, COLUMNS)
    for path in (tmp_path / "folder").iterdir():
        assert path.read_bytes() == (remote / path.name).read()
    assert seal_of(remote) == seal_of(tmp_path / "folder")


def test_columns_without_facts_do_not_count(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(store, "_told_as", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_columns(remote, {}, COLUMNS)
    assert (remote / "code.npy").read()
    assert not is_written(remote)
    with pytest.raises(ArchiveError, match="is no folder of columns, or damaged"):
        read_columns(remote)
    write_columns(remote, {}, COLUMNS)
    assert is_written(remote)


def test_what_is_damaged_or_missing_is_named(
    remote: Remote, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_columns(remote, {}, COLUMNS)
    monkeypatch.setenv("EVALSITE_COPIES", str(tmp_path / "other"))
    (remote / "code.npy").write(column_file(np.arange(7)[::-1]))
    with pytest.raises(ArchiveError, match="'code' is damaged"):
        read_columns(remote, ["code"])
    assert not list(copies().iterdir()), "nothing of it is kept"
    remove(remote / "name.npy")
    for name in ("name", "other"):
        with pytest.raises(ArchiveError, match=f"there is no column '{name}'"):
            read_columns(remote, [name])


def test_a_copy_is_never_of_what_was_there_before(remote: Remote) -> None:
    for number in (7, 9):
        write_columns(remote, {}, {"code": np.arange(number)})
        assert len(read_columns(remote)[1]["code"]) == number
    assert len(list(copies().rglob("*.npy"))) == 2


def test_a_damaged_copy_is_told_from_the_column(remote: Remote) -> None:
    write_columns(remote, {}, COLUMNS)
    digest = store._told(remote)["columns"]["code"]
    np.save(copy_of(digest), np.zeros(7, dtype=int))
    with pytest.raises(ArchiveError, match=f"'code' is damaged: .* of the copy .*{digest}"):
        read_columns(remote, ["code"])


def test_rows_are_fetched_alone(
    remote: Remote, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    long = {"code": np.arange(100_000), "name": np.array([b"abc", b"d"] * 50_000), "none": []}
    columns = {name: np.asarray(each) for name, each in long.items()}
    write_columns(remote, {}, columns)
    with_copy = read_rows(remote, columns, 40, 45)
    monkeypatch.setenv("EVALSITE_COPIES", str(tmp_path / "other"))
    fetched, read = [], Remote.read

    def counting(self: Remote, *ends: int) -> bytes:
        fetched.append(len(found := read(self, *ends)))
        return found

    monkeypatch.setattr(Remote, "read", counting)
    for start, stop in ((40, 45), (0, 0), (99_999, 100_000), (0, 1)):
        for name, rows in read_rows(remote, ["code", "name"], start, stop).items():
            np.testing.assert_array_equal(rows, columns[name][start:stop])
            assert rows.dtype == columns[name].dtype
    assert read_rows(remote, ["none"], 0, 0)["none"].dtype == columns["none"].dtype
    assert sum(fetched) < 10_000
    assert not copies().exists()
    np.testing.assert_array_equal(with_copy["code"], np.arange(40, 45))


@pytest.mark.slow
def test_shards_at_an_address_are_those_of_a_folder(remote: Remote, tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path / "inputs")
    here = build_shards(SerialExecutor(), tmp_path / "folder", inputs, shards=3, depth=DEPTH)
    there = build_shards(SerialExecutor(), remote, inputs, shards=3, depth=DEPTH)
    assert [seal_of(place) for place in there.places] == [seal_of(place) for place in here.places]
    assert read_pool(there.frame, there.places[0]).digest == (
        read_pool(here.frame, here.places[0]).digest
    )


def test_addresses_are_told_from_folders(tmp_path: Path) -> None:
    assert place_of("s3://bucket/prefix") == Remote("s3://bucket/prefix")
    assert place_of(str(tmp_path)) == place_of(f"file://{tmp_path}") == tmp_path.resolve()
    assert str(Remote("s3://bucket/prefix/") / "facts.json") == "s3://bucket/prefix/facts.json"


def test_what_an_address_needs_is_said() -> None:
    with pytest.raises(ImportError, match=r"gcs://b/x needs the packages fsspec and that of its"):
        Remote("gcs://b/x").read()
    with pytest.raises(ValueError, match="nowhere"):
        Remote("nowhere://b/x").read()


def test_an_address_that_cannot_be_written_is_named(remote: Remote) -> None:
    (remote / "file").write(b"")
    with pytest.raises(OSError, match=r"r/file/x cannot be written"):
        (remote / "file" / "x").write(b"")


class OfProtocolError(Exception):
    """As those of botocore are: no OSError, and not to be sent between processes."""

    def __init__(self, *, why: str) -> None:
        super().__init__(why)


@pytest.mark.parametrize(
    ("call", "act", "done"),
    [
        ("cat_file", lambda place, _: is_written(place), "read"),
        ("cat_file", lambda place, _: read_facts(place), "read"),
        ("pipe_file", lambda place, _: place.write(b""), "written"),
        ("put_file", lambda place, file: place.send(file), "written"),
        ("get_file", lambda place, file: place.fetch(file), "copied to this machine"),
    ],
)
def test_errors_of_a_protocol_come_out_as_those_of_the_system(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, act, done: str
) -> None:
    (tmp_path / "file").write_bytes(b"")

    def refused(*_: object, **__: object) -> None:
        raise OfProtocolError(why="no credentials")

    monkeypatch.setattr(type(remote._found[0]), call, refused)
    with pytest.raises(OSError, match=f"^memory://.* cannot be {done}: no credentials") as told:
        act(remote, tmp_path / "file")
    assert isinstance(pickle.loads(pickle.dumps(told.value)), OSError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file[:-8], "'code' ends before row 7"),
        (lambda file: b"no column" + file, "'code' is damaged"),
        (None, "there is no column 'code'"),
    ],
)
def test_rows_of_a_damaged_column_are_refused(
    remote: Remote, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change, message: str
) -> None:
    """Of one row that is left in the place of two, NumPy would make two."""
    write_columns(remote, {}, COLUMNS)
    monkeypatch.setenv("EVALSITE_COPIES", str(tmp_path / "other"))
    file = (remote / "code.npy").read()
    remove(remote / "code.npy")
    if change is not None:
        (remote / "code.npy").write(change(file))
    with pytest.raises(ArchiveError, match=message):
        read_rows(remote, ["code"], 5, 7)


@pytest.mark.parametrize(("name", "digest"), [("../code", "0" * 64), ("code", "../" * 22)])
def test_names_that_leave_the_place_are_refused(remote: Remote, name: str, digest: str) -> None:
    told = {"form": store.FORM, "facts": {}, "columns": {name: digest}}
    (remote / "facts.json").write(json.dumps(told).encode())
    with pytest.raises(ArchiveError, match="names columns or digests that are none"):
        read_columns(remote)
