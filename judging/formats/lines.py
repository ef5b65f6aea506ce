"""Reads an uploaded file as a stream of lines, within bounds, whatever is in it."""

import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from judging.formats.magic import foreign
from judging.formats.problems import CONTROLS, Problems

MEBIBYTE = 1 << 20
BLOCK = 256 * 1024
MAX_LINE = MEBIBYTE
GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"

_NEWLINE = ord("\n")  # counted by NumPy: `bytes.count` takes ten times as long

_RATIO_FREE = 16 * MEBIBYTE  # small files may compress as well as they like
_MAX_MEMBERS = 100_000  # bgzip makes one member per 64 KiB; each costs time even when empty
_LINE_CONTROLS = re.compile(r"\r|" + CONTROLS.pattern)
_BARE_CR = "U+000D (a CR alone ends no line: save the file with LF or CR LF)"


class BinaryFile(Protocol):
    """What the readers need of an open file."""

    def read(self, size: int, /) -> bytes:
        """Return `size` bytes, fewer at the end of the file only."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a file: bytes in all and per line, both uncompressed; compression ratio.

    `max_line` is the reader's own when None: `MAX_LINE`, and more for documents.
    """

    max_bytes: int = 512 * MEBIBYTE
    max_line: int | None = None
    max_ratio: int = 100


DEFAULT_LIMITS = Limits()


def read_chunks(
    file: BinaryFile, problems: Problems, limits: Limits = DEFAULT_LIMITS
) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the first line, bytes of whole lines), without byte order mark.

    Every chunk but the last ends in a line feed. Raises `UnreadableError` when the file is
    no text, a broken gzip file, or over a limit; memory stays at a few blocks.
    """
    line, carry = 1, b""
    longest = MAX_LINE if limits.max_line is None else limits.max_line
    try:
        for block in _blocks(file, limits):
            data = carry + block
            if len(data) > longest:
                _check_line_lengths(data, line, longest, problems)
            end = data.rfind(b"\n") + 1
            if end:
                yield line, data[:end]
                line += int(np.count_nonzero(np.frombuffer(data, np.uint8, end) == _NEWLINE))
            carry = data[end:]
    except _ForeignError as error:
        problems.fatal(None, "", str(error))
    except _BrokenError as error:
        problems.fatal(line, "", str(error))
    if carry:
        yield line, carry


def read_lines(
    file: BinaryFile,
    problems: Problems,
    limits: Limits = DEFAULT_LIMITS,
    *,
    controls: Literal["refuse", "replace"] = "refuse",
) -> Iterator[tuple[int, str]]:
    """Yield (line number, text without its line end).

    A line with a NUL character or invalid UTF-8 is reported and left out; so is one with other
    control characters (tabs are none), or they become spaces, with a warning.
    """
    for first, chunk in read_chunks(file, problems, limits):
        yield from chunk_lines(first, chunk, problems, controls=controls)


def chunk_lines(
    first: int,
    chunk: bytes,
    problems: Problems,
    *,
    controls: Literal["refuse", "replace"] = "refuse",
) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of whole lines, the first of which has the number `first`."""
    for number, raw in enumerate(chunk.removesuffix(b"\n").split(b"\n"), first):
        text = decode_line(raw, number, problems, controls=controls)
        if text is not None:
            yield number, text


def decode_line(
    raw: bytes,
    number: int,
    problems: Problems,
    *,
    controls: Literal["refuse", "replace"] = "refuse",
) -> str | None:
    """Return a line's text, or None after reporting what is wrong with it."""
    try:
        text = raw.removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        byte = f"0x{raw[error.start]:02x}"
        problems.error(number, "", f"expected UTF-8, found byte {byte} at column {error.start + 1}")
        return None
    found = _LINE_CONTROLS.search(text)
    if found is None:
        return text
    code = _BARE_CR if found[0] == "\r" else f"U+{ord(found[0]):04X}"
    if controls == "refuse" or "\0" in text:
        code = "U+0000 (NUL)" if "\0" in text else code
        problems.error(number, "", f"expected text without control characters, found {code}")
        return None
    problems.warning(number, "", f"control characters such as {code} were replaced by spaces")
    return _LINE_CONTROLS.sub(" ", text)


def filled(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Leave out lines of white space alone."""
    return (line for line in lines if line[1].strip())


def file_head(head: bytes) -> bytes:
    """Return the uncompressed beginning of a file whose first bytes are `head`, without mark."""
    if head.startswith(GZIP_MAGIC):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, 64 * 1024)
        except zlib.error:
            head = b""
    return head.removeprefix(BOM)


def _check_line_lengths(data: bytes, line: int, longest: int, problems: Problems) -> None:
    for number, text in enumerate(data.split(b"\n"), line):
        if len(text) > longest:
            message = f"expected lines of at most {longest} bytes, found a longer one"
            if b"\r" in text[:-1]:
                message += f" with {_BARE_CR}"
            problems.fatal(number, "", message)


class _BrokenError(Exception):
    """The file cannot be read any further; the message says what was expected."""


class _ForeignError(_BrokenError):
    """It is another kind of file, and has no lines."""


def _blocks(file: BinaryFile, limits: Limits) -> Iterator[bytes]:
    """Yield the uncompressed bytes in blocks of about `BLOCK`, the first without mark."""
    head = file.read(BLOCK)
    gzipped = head.startswith(GZIP_MAGIC)
    total = 0
    for block in _coalesced(_gunzip(head, file, limits) if gzipped else _plain(head, file)):
        if total == 0:
            _refuse_other_kinds(block)
        total += len(block)
        if total > limits.max_bytes:
            raise _BrokenError(f"expected at most {limits.max_bytes} bytes of text, found more")
        yield block.removeprefix(BOM) if total == len(block) else block


def _refuse_other_kinds(block: bytes) -> None:
    other = foreign(block)
    if other is not None:
        found = f"expected UTF-8 text, plain or gzip, found {other.name}"
        raise _ForeignError(f"{found}: {other.advice}")


def _plain(head: bytes, file: BinaryFile) -> Iterator[bytes]:
    block = head
    while block:
        yield block
        block = file.read(BLOCK)


def _coalesced(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Join small blocks: a file of a thousand tiny members shall not cost a thousand joins."""
    parts: list[bytes] = []
    size = 0
    try:
        for block in blocks:
            parts.append(block)
            size += len(block)
            if size >= BLOCK:
                yield b"".join(parts)
                parts, size = [], 0
    except _BrokenError:
        if parts:
            yield b"".join(parts)
        raise
    if parts:
        yield b"".join(parts)


class _Input:
    """The compressed side: hands out bytes, takes back what was not used, counts."""

    def __init__(self, head: bytes, file: BinaryFile) -> None:
        self.pending, self.file, self.count = head, file, len(head)

    def take(self) -> bytes:
        data, self.pending = self.pending, b""
        if not data:
            data = self.file.read(BLOCK)
            self.count += len(data)
        return data


def _gunzip(head: bytes, file: BinaryFile, limits: Limits) -> Iterator[bytes]:
    source, total = _Input(head, file), 0
    for _ in range(_MAX_MEMBERS):
        for block in _gunzip_member(source):
            total += len(block)
            if total > _RATIO_FREE and total > limits.max_ratio * source.count:
                raise _BrokenError(f"expected a compression of at most {limits.max_ratio} to 1")
            yield block
        if not _another_member(source):
            return
    raise _BrokenError(f"expected at most {_MAX_MEMBERS} members in a gzip file")


def _gunzip_member(source: _Input) -> Iterator[bytes]:
    inflater = zlib.decompressobj(wbits=31)
    while not inflater.eof:
        data = source.take()
        try:
            block = inflater.decompress(data, BLOCK)
        except zlib.error:
            raise _BrokenError("expected a sound gzip file, found corrupt data") from None
        if not (data or block or inflater.eof):
            raise _BrokenError("expected a whole gzip file, found a truncated one")
        source.pending = inflater.unconsumed_tail or inflater.unused_data
        if block:
            yield block


def _another_member(source: _Input) -> bool:
    """Skip the zero bytes that may pad a gzip file; tell whether a further member follows."""
    while data := source.take():
        source.pending = data.lstrip(b"\0")
        if source.pending:
            if source.pending[:1] != GZIP_MAGIC[:1]:
                raise _BrokenError("expected nothing after the gzip data, found more bytes")
            return True
    return False
