"""Stored columns: mapped and shared by processes, and held against the size of the file."""

import io
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from estimation.core.archives import (
    BOUNDARY,
    ArchiveError,
    form_of,
    read_archive,
    write_archive,
)
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from tests.core.mapped import is_mapped

FORM = "some-form-1"
COLUMNS = {
    "whole": np.arange(5000),
    "single": np.linspace(0.0, 1.0, 777, dtype=np.float32),
    "names": np.array([b"a", b"abcdefg", b"\xc3\xa9"]),
    "table": np.arange(12.0).reshape(3, 4),
    "by column": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "truths": np.array([True, False, True]),
    "none": np.zeros(0, dtype=np.int32),
}
PROCESS = Path("/proc/self/smaps_rollup")
needs_proc = pytest.mark.skipif(not PROCESS.exists(), reason="the kernel does not tell memory")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_archive(tmp_path / "stored", FORM, {"a": [1, "é"]}, COLUMNS)
    return tmp_path / "stored"


def written_before(path: Path, form: str, **columns: np.ndarray) -> None:
    """As `np.savez` writes it, with arrays wherever they happen to stand."""
    header = f'{{"facts": {{}}, "form": "{form}"}}'.encode()
    with path.open("wb") as file:
        np.savez(file, header=np.frombuffer(header, dtype=np.uint8), **columns)


def test_columns_of_a_path_are_mapped_where_processors_read_them_and_cannot_be_changed(
    path: Path,
) -> None:
    facts, found = read_archive(path, FORM, COLUMNS)
    assert facts == {"a": [1, "é"]}
    for name, column in COLUMNS.items():
        np.testing.assert_array_equal(found[name], column, strict=True)
        assert is_mapped(found[name])
        assert not found[name].flags.writeable
        assert column.size == 0 or found[name].ctypes.data % BOUNDARY == 0


def test_columns_of_an_open_file_are_copied_and_are_the_same(path: Path) -> None:
    _, found = read_archive(io.BytesIO(path.read_bytes()), FORM, COLUMNS)
    for name, column in COLUMNS.items():
        np.testing.assert_array_equal(found[name], column, strict=True)
        assert not is_mapped(found[name])
        assert not found[name].flags.writeable
    _, copied = read_archive(path, FORM, COLUMNS, mapped=False)
    assert not any(map(is_mapped, copied.values()))


def test_numpy_and_zip_read_the_same_file(path: Path) -> None:
    assert zipfile.ZipFile(path).testzip() is None
    with np.load(path) as found:
        for name, column in COLUMNS.items():
            np.testing.assert_array_equal(found[name], column, strict=True)


@pytest.mark.slow
def test_files_of_versions_that_put_arrays_anywhere_are_read(tmp_path: Path) -> None:
    """Some happen to stand at a boundary: neither may be wrong."""
    mapped = set()
    for length in range(1, 200):
        column = np.arange(float(length))
        names = np.array([b"x" * length])
        written_before(tmp_path / "old", FORM, names=names, values=column)
        _, found = read_archive(tmp_path / "old", FORM, ["values", "names"])
        np.testing.assert_array_equal(found["values"], column, strict=True)
        assert found["values"].flags.aligned
        mapped.add(is_mapped(found["values"]))
    assert mapped == {True, False}


def test_a_file_that_is_replaced_or_removed_stays_what_it_was_to_who_has_it(path: Path) -> None:
    _, found = read_archive(path, FORM, ["whole"])
    write_archive(path, FORM, {}, {"whole": np.zeros(3, dtype=np.int64)})
    np.testing.assert_array_equal(found["whole"], COLUMNS["whole"])
    _, again = read_archive(path, FORM, ["whole"])
    path.unlink()
    assert again["whole"].tolist() == [0, 0, 0]
    assert not list(path.parent.iterdir()), "no draft is left"


def test_what_cannot_be_written_leaves_the_file_as_it_was(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(ValueError, match="Object arrays"):
        write_archive(path, FORM, {}, COLUMNS | {"last": np.array([None])})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_link_leads_on_to_the_file_that_is_written(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path.name)
    write_archive(link, FORM, {}, {"whole": np.arange(2)})
    assert link.is_symlink()
    assert read_archive(path, FORM, ["whole"])[1]["whole"].tolist() == [0, 1]


def test_a_file_that_is_cut_off_anywhere_is_refused(path: Path) -> None:
    """Where a mapping goes on behind the end of a file, looking at it ends the process."""
    content = path.read_bytes()
    for length in [*range(0, len(content), 997), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(ArchiveError, match="damaged"):
            read_archive(path, FORM, COLUMNS)


def test_an_array_that_is_said_to_be_longer_than_the_file_is_refused(path: Path) -> None:
    """The directory at the end is whole, and what it says of the last array is not so."""
    content = path.read_bytes()
    last = zipfile.ZipFile(path).infolist()[-1]
    at = content.rindex(b"PK\1\2")
    assert struct.unpack_from("<II", content, at + 20) == (last.file_size,) * 2
    for size in (len(content), 2**31):
        forged = bytearray(content)
        struct.pack_into("<II", forged, at + 20, size, size)
        path.write_bytes(forged)
        with pytest.raises(ArchiveError, match=r"none\.npy is cut off"):
            read_archive(path, FORM, COLUMNS)


@pytest.mark.parametrize("shape", [b"(5001,)", b"(500, )", b"(1, 2)", b"(-1,) "])
def test_an_array_that_is_not_as_long_as_its_header_says_is_refused(
    path: Path, shape: bytes
) -> None:
    forged = path.read_bytes().replace(b"'shape': (5000,)", b"'shape': " + shape.ljust(7))
    assert forged != path.read_bytes()
    path.write_bytes(forged)
    with pytest.raises(ArchiveError):
        read_archive(path, FORM, COLUMNS)


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    with (tmp_path / "objects").open("wb") as file:
        header = np.frombuffer(b'{"facts": {}, "form": "some-form-1"}', dtype=np.uint8)
        np.savez(file, header=header, whole=np.array([{}], dtype=object))
    for mapped in (True, False):
        with pytest.raises(ArchiveError):
            read_archive(tmp_path / "objects", FORM, ["whole"], mapped=mapped)


def test_the_name_of_what_is_missing_or_other_is_told(path: Path) -> None:
    with pytest.raises(ArchiveError, match="expected a file of the form other, found some-form-1"):
        read_archive(path, "other", [])
    with pytest.raises(ArchiveError, match=r"not_there\.npy"):
        read_archive(path, FORM, ["not_there"])
    assert form_of(path) == FORM
    assert set(read_archive(path, FORM, ["whole"], optional=["table", "other"])[1]) == {
        "whole", "table",
    }  # fmt: skip
    with pytest.raises(FileNotFoundError):
        read_archive(path.with_name("nothing"), FORM, [])


# ------------------------------------------------------------------------------------- memory

LOAD = """
import re, sys
from pathlib import Path
from estimation.core.data.pool import Pool
from estimation.core.archives import read_archive

def own():
    return int(re.search(r"Anonymous:\\s+(\\d+)", Path("/proc/self/smaps_rollup").read_text())[1])

read_archive(sys.argv[1], "evalsite-pool-1", ())
before = own()
if sys.argv[2] == "copied":
    found = read_archive(sys.argv[1], "evalsite-pool-1", ["run", "rank"], mapped=False)[1]
else:
    pool = Pool.load(sys.argv[1], check=sys.argv[2] == "checked")
    found = {name: getattr(pool, name) for name in ("run", "rank")}
assert sum(int(column.sum()) for column in found.values()) > 0
print(own() - before)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool of 8 runs and 50 topics, with 400 000 entries: 3.2 MB of runs and ranks."""
    docnos = np.array([f"d{number:04}".encode() for number in range(1000)] * 50)
    bounds = np.arange(51) * 1000
    lists = RankedLists(tuple(f"t{number:02}" for number in range(50)), bounds, docnos)
    pool = build_pool(lists.topics, {f"r{number}": lists for number in range(8)}, depth=1000)
    path = tmp_path_factory.mktemp("pools") / "large"
    pool.save(path)
    return path


def own_kilobytes(path: Path, how: str) -> int:
    """What a process holds for itself of a pool that it has loaded and looked at."""
    command = [sys.executable, "-c", LOAD, str(path), how]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True, input="")
    return int(done.stdout)


@pytest.mark.slow
@needs_proc
def test_a_process_holds_nothing_of_a_pool_for_itself(large: Path) -> None:
    assert own_kilobytes(large, "unchecked") < 300
    assert own_kilobytes(large, "checked") < 700, "a buffer or two, not the columns"
    assert own_kilobytes(large, "copied") > 3000, "which is seen where it is so"


@pytest.mark.slow
@needs_proc
def test_pages_of_a_pool_are_shared_by_the_processes_that_look_at_them(large: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LOAD, str(large), "checked"],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        pool = Pool.load(large)
        shared = kilobytes_of(large, "Shared_Clean") + kilobytes_of(large, "Shared_Dirty")
        other.communicate()
    assert shared > 3000
    assert pool.run.nbytes + pool.rank.nbytes == 3_200_000


def kilobytes_of(path: Path, kind: str) -> int:
    """What the kernel tells of this process's mapping of a file."""
    of_file = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split()[0]
        if "-" in first:
            of_file = line.endswith(str(path))
        elif of_file and first == f"{kind}:":
            return int(line.split()[1])
    return 0


def test_a_pool_that_is_not_checked_has_the_digest_that_its_file_tells(large: Path) -> None:
    assert Pool.load(large, check=False).digest == Pool.load(large).digest
