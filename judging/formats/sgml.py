"""The SGML-like records of TREC files: found by their tags, nothing in them is resolved.

All searches are linear in the length of the record, whatever it holds.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from judging.formats.problems import Problems

_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<[!?][^<>]*>", re.ASCII)
_REFERENCE = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,30}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")


@dataclass
class Block:
    """The inside of one record: its lines, each with its number; `line` is the opening tag's.

    `body` and `line_at` are for a record that is whole: they keep what they have worked out.
    """

    line: int
    numbers: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    size: int = 0

    @cached_property
    def body(self) -> str:
        """The lines as one text."""
        return "\n".join(self.texts)

    @cached_property
    def _starts(self) -> list[int]:
        """Where each line begins in `body`, and one place behind the last."""
        return list(accumulate((len(text) + 1 for text in self.texts), initial=0))

    def line_at(self, position: int) -> int:
        """Return the number of the line that holds a position of `body`."""
        if not self.numbers:
            return self.line
        return self.numbers[bisect_right(self._starts, position, hi=len(self.numbers)) - 1]


class BlockReader:
    """Cuts lines into the records between `<tag>` and `</tag>`.

    A record of more than `limit` characters, or without its closing tag, is an error. Text
    outside the records is passed over, with one warning unless it is made of tags alone.
    """

    def __init__(self, tag: str, problems: Problems, *, limit: int) -> None:
        self._tag, self._problems, self._limit = tag, problems, limit
        self._splitter = re.compile(rf"(</?{tag}(?:\s[^<>]*)?>)", re.IGNORECASE | re.ASCII)
        self._block: Block | None = None
        self._warned = False

    def read(self, lines: Iterable[tuple[int, str]]) -> Iterator[Block]:
        """Yield the records in order."""
        for number, text in lines:
            for index, piece in enumerate(self._splitter.split(text)):
                if index % 2 == 0:
                    self._add(number, piece)
                elif piece[1] == "/":
                    yield from self._close(number)
                else:
                    self._open(number)
        self._report_unclosed()

    def _add(self, number: int, piece: str) -> None:
        block = self._block
        if block is None:
            self._warn_outside(number, piece)
            return
        block.size += len(piece) + 1
        if block.size <= self._limit:
            block.numbers.append(number)
            block.texts.append(piece)

    def _warn_outside(self, number: int, piece: str) -> None:
        if not self._warned and _TAG.sub("", piece).strip():
            self._warned = True
            message = f"text outside <{self._tag}> and </{self._tag}> is not used"
            self._problems.warning(number, "", message)

    def _open(self, number: int) -> None:
        self._report_unclosed()
        self._block = Block(number)

    def _close(self, number: int) -> Iterator[Block]:
        block, self._block = self._block, None
        if block is None:
            self._problems.error(number, "", f"expected <{self._tag}> before </{self._tag}>")
        elif block.size > self._limit:
            message = f"expected at most {self._limit} characters between the tags"
            self._problems.error(block.line, "", f"{message}, found {block.size}")
        else:
            yield block

    def _report_unclosed(self) -> None:
        if self._block is not None:
            message = f"expected </{self._tag}> after the <{self._tag}> of this line"
            self._problems.error(self._block.line, "", message)


def sections(body: str, tag: str) -> Iterator[tuple[int, str]]:
    """Yield (position, inside) of every `<tag>…</tag>`; one left open reaches to the end."""
    opening = re.compile(rf"<{tag}(?:\s[^<>]*)?>", re.IGNORECASE | re.ASCII)
    closing = re.compile(rf"</{tag}\s*>", re.IGNORECASE | re.ASCII)
    start = opening.search(body)
    while start is not None:
        end = closing.search(body, start.end())
        if end is None:
            yield start.end(), body[start.end() :]
            return
        yield start.end(), body[start.end() : end.start()]
        start = opening.search(body, end.end())


def without_sections(body: str, tag: str) -> str:
    """Return the text outside of the given sections."""
    kept, position = [], 0
    for start, inside in sections(body, tag):
        kept.append(body[position:start])
        position = start + len(inside)
    return " ".join([*kept, body[position:]])


def plain_text(markup: str) -> str:
    """Return the text without tags, and with its character references replaced, once."""
    return _REFERENCE.sub(lambda found: html.unescape(found[0]), _TAG.sub(" ", markup))


def paragraphs(text: str) -> str:
    """Return the text with its lines joined and its white space collapsed, by paragraph."""
    parts = (" ".join(part.split()) for part in re.split(r"\n[ \t]*\n", text))
    return "\n\n".join(part for part in parts if part)
