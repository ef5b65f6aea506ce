"""The lines of TREC's files, split into columns; what is wrong is named by file, line and field."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..measures.kinds import MAX_GRADE
from .known_documents import document_hashes
from .plain_cells import PlainCells, cut_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ..arrays import BoolArray, BytesArray, FloatArray, IntArray


class TrecError(ValueError):
    """A file that is not what it should be; the message names file, line and field."""


@dataclass(frozen=True, eq=False)
class TrecLines:
    """The lines of a file, split into columns."""

    path: Path
    names_of_columns: Sequence[str]
    number: Sequence[int]  # of each line in the file
    columns: Sequence[Sequence[bytes]] | PlainCells

    @classmethod
    def of(cls, path: Path, names: Sequence[str]) -> TrecLines:
        content = _content(path)
        plain = cut_plain(content, len(names))
        if plain is not None:
            return cls(path, names, range(1, len(plain) + 1), plain)
        rows: list[list[bytes]] = []
        number: list[int] = []
        for at, line in enumerate(content.splitlines(), 1):
            fields = line.split()
            if not fields:
                continue
            if len(fields) != len(names):
                wanted = f"expected {len(names)} fields ({' '.join(names)}), found {len(fields)}"
                raise TrecError(f"{path}, line {at}: {wanted}")
            rows.append(fields)
            number.append(at)
        if not rows:
            raise TrecError(f"{path}: expected lines of {' '.join(names)}, found none")
        return cls(path, names, number, list(zip(*rows, strict=True)))

    def names(self, column: str) -> BytesArray:
        """A column of names: UTF-8 without the byte 0, which arrays of bytes would lose."""
        values = self._column(column)
        if isinstance(values, np.ndarray):  # UTF-8 without control characters
            return values
        for at, name in enumerate(values):
            if not name.isascii() or b"\0" in name:
                self._check_name(at, column, name)
        return np.array(values, dtype=np.bytes_)

    def scores(self) -> FloatArray:
        return self._numbers("score", "a finite number", np.isfinite)

    def probabilities(self) -> FloatArray:
        wanted = "a probability above 0 and at most 1"
        return self._numbers("probability", wanted, lambda chance: (chance > 0) & (chance <= 1))

    def grades(self) -> IntArray:
        return self.integers("grade", MAX_GRADE)

    def integers(self, column: str, most: int) -> IntArray:
        wanted = f"a whole number of at most {most}"
        numbers = self._numbers(
            column, wanted, lambda n: (n == np.floor(n)) & (n <= most) & (n >= -9999)
        )
        return numbers.astype(np.int64)

    def refuse_twice(self) -> None:
        """Raise an error if two lines are of one pair: millions are seen to differ by hashes."""
        _, topic_code = np.unique(self.names("topic"), return_inverse=True)
        hashes = document_hashes(topic_code, self.names("docno"))
        if len(np.unique(hashes)) == len(hashes):
            return
        seen: dict[tuple[bytes, bytes], int] = {}
        pairs = zip(*map(self._listed, ("topic", "docno")), strict=True)
        for at, pair in enumerate(pairs):
            first = seen.setdefault(pair, at)
            if first != at:
                topic, docno = (name.decode(errors="replace") for name in pair)
                twice = (
                    f"docno {docno!r} of topic {topic!r} stands in line {self.number[first]} too"
                )
                raise TrecError(f"{self.path}, line {self.number[at]}, docno: {twice}")

    def _column(self, name: str) -> Sequence[bytes] | BytesArray:
        return self.columns[self.names_of_columns.index(name)]

    def _listed(self, name: str) -> Sequence[bytes]:
        values = self._column(name)
        return values.tolist() if isinstance(values, np.ndarray) else values

    def _numbers(
        self, column: str, wanted: str, are_good: Callable[[FloatArray], BoolArray]
    ) -> FloatArray:
        values = self._listed(column)
        try:
            numbers = np.fromiter(map(float, values), np.float64, len(values))
        except ValueError:
            numbers = np.array(list(map(_number, values)))
        wrong = ~are_good(numbers)
        if wrong.any():
            raise self._unlike(int(np.argmax(wrong)), column, wanted)
        return numbers

    def _check_name(self, at: int, column: str, name: bytes) -> None:
        try:
            name.decode()
        except UnicodeDecodeError:
            raise self._unlike(at, column, "UTF-8") from None
        if b"\0" in name:
            raise self._unlike(at, column, "a name without the byte 0")

    def _unlike(self, at: int, column: str, wanted: str) -> TrecError:
        found = self._listed(column)[at][:40].decode(errors="replace")
        place = f"{self.path}, line {self.number[at]}, {column}"
        return TrecError(f"{place}: expected {wanted}, found {found!r}")


def _number(value: bytes) -> float:
    """What a text says, NaN if it says no number."""
    try:
        return float(value)
    except ValueError:
        return np.nan


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except OSError as error:
        raise TrecError(f"{path}: {error.strerror or error}") from None
    except (EOFError, zlib.error):
        raise TrecError(
            f"{path}: expected a whole gzip file; this one is cut off or damaged"
        ) from None
