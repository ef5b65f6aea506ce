import gzip
import io
import random
import struct
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from judging.formats.lines import BLOCK, DEFAULT_LIMITS, Limits, file_head, read_chunks, read_lines
from judging.formats.problems import Problems, UnreadableError

MEBIBYTE = 1 << 20
BARE_CR = "U+000D (a CR alone ends no line: save the file with LF or CR LF)"


def lines_of(data: bytes, limits: Limits = DEFAULT_LIMITS) -> list[tuple[int, str]]:
    problems = Problems("x")
    found = list(read_lines(io.BytesIO(data), problems, limits))
    assert problems.ok, problems.errors
    return found


def failure(data: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[int | None, str]:
    problems = Problems("x")
    with pytest.raises(UnreadableError) as raised:
        list(read_lines(io.BytesIO(data), problems, limits))
    assert problems.errors[-1] == raised.value.problem
    return raised.value.problem.line, raised.value.problem.message


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_lines_are_numbered_whatever_their_ends_and_packing(
    pack: Callable[[bytes], bytes], mark: bytes, end: bytes, last: bool
) -> None:
    data = mark + end.join(["é one".encode(), b"", b"three"]) + (end if last else b"")
    assert lines_of(pack(data)) == [(1, "é one"), (2, ""), (3, "three")]


def test_an_empty_file_has_no_lines() -> None:
    assert lines_of(b"") == lines_of(gzip.compress(b"")) == lines_of(b"\xef\xbb\xbf") == []


def test_lines_that_cross_blocks_stay_whole() -> None:
    wanted = [(n, "é" * (n * 37 % 5000)) for n in range(1, 1001)]
    data = "\n".join(text for _, text in wanted).encode()
    assert len(data) > 4 * BLOCK
    assert lines_of(data) == lines_of(gzip.compress(data)) == wanted


def test_gzip_members_follow_one_another_and_may_be_padded_by_zeros() -> None:
    data = gzip.compress(b"a\nb") + gzip.compress(b"") + gzip.compress(b"c\n") + bytes(600)
    assert lines_of(data) == [(1, "a"), (2, "bc")]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"a\0b", "expected text without control characters, found U+0000 (NUL)"),
        (b"\x1b[31m", "expected text without control characters, found U+001B"),
        (b"a\rb", f"expected text without control characters, found {BARE_CR}"),
        (b"a\x7f", "expected text without control characters, found U+007F"),
        ("a\x85".encode(), "expected text without control characters, found U+0085"),
        (b"ab\xff", "expected UTF-8, found byte 0xff at column 3"),
        (b"\xed\xa0\x80", "expected UTF-8, found byte 0xed at column 1"),
        (b"\xc0\xaf", "expected UTF-8, found byte 0xc0 at column 1"),
    ],
)
def test_bad_lines_are_reported_and_left_out(raw: bytes, message: str) -> None:
    problems = Problems("x")
    data = b"one\n" + raw + b"\nthree\n"
    assert list(read_lines(io.BytesIO(data), problems)) == [(1, "one"), (3, "three")]
    assert [(p.line, p.field, p.message) for p in problems.errors] == [(2, "", message)]


def test_control_characters_may_become_spaces_but_nul_may_not() -> None:
    problems = Problems("x")
    lines = read_lines(io.BytesIO(b"a\x0cb\tc\nd\0\x0c\n"), problems, controls="replace")
    assert list(lines) == [(1, "a b\tc")]
    assert [(p.line, p.severity) for p in problems.warnings] == [(1, "warning")]
    assert [(p.line, "NUL" in p.message) for p in problems.errors] == [(2, True)]


def test_a_file_whose_lines_end_in_cr_alone_is_told_so_whatever_it_is_refused_for() -> None:
    limits = Limits(max_line=100)
    message = f"expected lines of at most 100 bytes, found a longer one with {BARE_CR}"
    assert failure(b"1 0 d1 1\r" * 20, limits) == (1, message)
    problems = Problems("x")
    lines = read_lines(io.BytesIO(b"{}\r{}\r"), problems, controls="replace")
    assert list(lines) == [(1, "{} {}")]
    warning = f"control characters such as {BARE_CR} were replaced by spaces"
    assert [each.message for each in problems.warnings] == [warning]


@pytest.mark.slow
def test_a_truncated_gzip_file_is_refused_after_the_lines_that_are_there() -> None:
    random.seed(1)
    text = "".join(f"{random.random()}\n" for _ in range(50_000)).encode()
    data = gzip.compress(text)
    problems = Problems("x")
    seen: list[tuple[int, str]] = []
    with pytest.raises(UnreadableError, match="truncated"):
        seen.extend(read_lines(io.BytesIO(data[:-1000]), problems))
    assert len(seen) > 45_000
    assert problems.errors[0].line == len(seen) + 1
    assert failure(data[:-4])[1] == "expected a whole gzip file, found a truncated one"
    assert failure(data[:2]) == (1, "expected a whole gzip file, found a truncated one")


def test_a_corrupt_gzip_file_is_refused() -> None:
    data = bytearray(gzip.compress(b"one\ntwo\n" * 100))
    data[-8] ^= 1  # the checksum
    assert "corrupt" in failure(bytes(data))[1]
    assert failure(b"\x1f\x8b" + b"x" * 50) == (
        1,
        "expected a sound gzip file, found corrupt data",
    )
    assert "nothing after" in failure(gzip.compress(b"a\n") + b"trailing")[1]


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"PK\x03\x04", "a zip archive"),
        (b"\xfd7zXZ\x00", "an xz archive"),
        (b"BZh9", "a bzip2 archive"),
        (b"%PDF-1.7", "a PDF document"),
        ("one\n".encode("utf-16"), "UTF-16 text"),
        (gzip.compress(gzip.compress(b"one\n")), "gzip inside gzip"),
        (gzip.compress(b"PK\x03\x04"), "a zip archive"),
    ],
)
def test_other_kinds_of_file_are_named(start: bytes, kind: str) -> None:
    expected = f"expected UTF-8 text, plain or gzip, found {kind}"
    line, message = failure(start)
    assert (line, message.partition(": ")[0]) == (None, expected)


def test_the_longest_line_allowed_is_read_and_a_longer_one_is_refused_with_its_number() -> None:
    limits = Limits(max_line=100)
    assert lines_of(b"a\n" + b"b" * 100 + b"\n", limits) == [(1, "a"), (2, "b" * 100)]
    message = "expected lines of at most 100 bytes, found a longer one"
    assert failure(b"a\n" + b"b" * 101 + b"\nc\n", limits) == (2, message)
    assert failure(b"a\n" * 5 + b"b" * 101, limits) == (6, message)
    wide = b"x" * MEBIBYTE
    assert [len(text) for _, text in lines_of(wide + b"\n" + wide)] == [MEBIBYTE, MEBIBYTE]
    assert failure(b"a\n" + wide + b"x\n")[0] == 2


@pytest.mark.slow
def test_a_file_over_the_size_limit_is_refused_with_the_line_it_got_to() -> None:
    data = b"0123456789\n" * 100_000
    assert len(lines_of(data, Limits(max_bytes=len(data)))) == 100_000
    line, message = failure(data, Limits(max_bytes=len(data) - 1))
    assert message == f"expected at most {len(data) - 1} bytes of text, found more"
    assert 1 < (line or 0) <= 100_000
    assert "bytes of text" in failure(gzip.compress(data), Limits(max_bytes=MEBIBYTE))[1]


class Endless:
    """A file of one byte without end, up to a size that no reader should ask for."""

    def __init__(self, byte: bytes, size: int) -> None:
        self.byte, self.left, self.given = byte, size, 0

    def read(self, size: int, /) -> bytes:
        size = min(size, self.left)
        self.left -= size
        self.given += size
        return self.byte * size


def peak_memory(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("byte", [b"x", b" ", b"{", b"<", b"1"])
def test_one_line_of_100_mb_is_refused_without_reading_it(byte: bytes) -> None:
    problems, file = Problems("x"), Endless(byte, 100_000_000)

    def read() -> None:
        with pytest.raises(UnreadableError, match="lines of at most"):
            list(read_lines(file, problems))

    assert peak_memory(read) < 8 * MEBIBYTE
    assert file.given <= 2 * MEBIBYTE
    assert problems.errors[0].line == 1


def bomb(size: int, piece: bytes) -> bytes:
    """Packed once: behind a full flush the same bytes can come again."""
    block = piece * (MEBIBYTE // len(piece))
    packer, times = zlib.compressobj(9, wbits=-15), size // len(block)
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    check = 0
    for _ in range(times):
        check = zlib.crc32(block, check)
    head, end = b"\x1f\x8b\x08" + bytes(6) + b"\xff", zlib.compressobj(wbits=-15).flush()
    return head + packed * times + end + struct.pack("<LL", check, times * len(block))


@pytest.mark.slow
@pytest.mark.parametrize("piece", [bytes(4096), b"a b c d e f\n" * 512])
def test_a_gzip_bomb_is_refused_early_and_in_little_memory(piece: bytes) -> None:
    data = bomb(256 * MEBIBYTE, piece)
    assert len(data) < 2 * MEBIBYTE
    problems = Problems("x")
    sizes: list[int] = []

    def read() -> None:
        with pytest.raises(UnreadableError):
            sizes.extend(len(chunk) for _, chunk in read_chunks(io.BytesIO(data), problems))

    assert peak_memory(read) < 8 * MEBIBYTE
    assert sum(sizes) <= 100 * len(data)
    assert problems.error_count == 1


@pytest.mark.slow
def test_a_file_that_compresses_well_but_is_small_is_no_bomb() -> None:
    data = bomb(8 * MEBIBYTE, b"a b c d e f\n" * 512)
    assert sum(1 for _ in read_lines(io.BytesIO(data), Problems("x"))) > 600_000
    with pytest.raises(UnreadableError, match="compression of at most 100 to 1"):
        list(read_lines(io.BytesIO(bomb(200 * MEBIBYTE, b"a b c d e f\n" * 512)), Problems("x")))


@pytest.mark.slow
def test_very_many_gzip_members_are_refused() -> None:
    data = gzip.compress(b"") * 100_001
    assert failure(data)[1] == "expected at most 100000 members in a gzip file"
    short = (gzip.compress(b"0123456789") * 50_000, Limits(max_line=1000))
    assert "lines of at most 1000" in failure(*short)[1]


def test_the_head_of_a_file_is_seen_through_gzip() -> None:
    data = b"\xef\xbb\xbf" + b"one two\n" * 100_000
    assert file_head(data[:100]) == data[3:100]
    assert file_head(gzip.compress(data)[:4096]).startswith(b"one two\n")
    assert file_head(b"\x1f\x8bxxx") == b""
