"""Reads tables as LaTeX would: a strict grammar of what may stand in them, in place of LaTeX.

What this reads has balanced groups, known commands alone, no character that is special to LaTeX
outside of its meaning, and in every row as many cells as the table has columns.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

TOKEN = re.compile(r"\\[A-Za-z]+|\\.|%[^\n]*\n|[{}&#$^_~]|\n\s*\n|.", re.DOTALL)
SYMBOLS = {
    r"\textbackslash": "\\", r"\textasciitilde": "~", r"\textasciicircum": "^", r"\textless": "<",
    r"\textgreater": ">", r"\textbar": "|", r"\textquotedbl": '"', r"\dots": "…", r"\pm": "±",
    r"\ge": "≥", r"\approx": "≈", r"\,": "\u2009", r"\&": "&", r"\%": "%", r"\$": "$", r"\#": "#",
    r"\_": "_", r"\{": "{", r"\}": "}", "~": "\u00a0", r"\allowbreak": "",
}  # fmt: skip
IN_MATH = {r"\pm", r"\ge", r"\approx", "-"}
RULES = (r"\toprule", r"\midrule", r"\bottomrule")
LONG = (r"\endfirsthead", r"\endhead", r"\endfoot")


class NotLatex(AssertionError):
    """What LaTeX would stumble over, or print otherwise than it was meant."""


@dataclass
class Table:
    """As it would be printed; ``header`` stands once, also where it is repeated on every page."""

    caption: str
    columns: list[str]
    header: list[str]
    rows: list[list[str]]
    long: bool


def tables(text: str) -> list[Table]:
    """All tables of a file that holds nothing else but comments."""
    tokens = _Tokens(text)
    found = []
    while not tokens.done():
        grouped = tokens.peek() == "{"
        if grouped:
            tokens.expect("{")
            _narrow(tokens)
        kind = tokens.begun()
        found.append(_table(tokens) if kind == "table" else _long(tokens, kind))
        if grouped:
            tokens.expect("}")
    return found


def _narrow(tokens: "_Tokens") -> None:
    """Of smaller letters, and with less between columns."""
    for token in (r"\small", r"\setlength"):
        tokens.expect(token)
    if (found := tokens.group(), tokens.group()) != (r"\tabcolsep", "4pt"):
        raise NotLatex(f"a length {found}")


class _Tokens:
    def __init__(self, text: str) -> None:
        if not text.endswith("\n"):
            raise NotLatex("no end of the last line")
        found = [each for each in TOKEN.findall(text) if not each.startswith("%")]
        self.left = found[::-1]

    def done(self) -> bool:
        self.skip()
        return not self.left

    def skip(self) -> None:
        while self.left and self.left[-1].isspace():
            self.left.pop()

    def next(self) -> str:
        if not self.left:
            raise NotLatex("the end comes too early")
        return self.left.pop()

    def peek(self) -> str:
        self.skip()
        return self.left[-1] if self.left else ""

    def expect(self, wanted: str) -> None:
        self.skip()
        if (found := self.next()) != wanted:
            raise NotLatex(f"{found!r} in the place of {wanted!r}")

    def group(self) -> str:
        """The text of a group, as it is written."""
        self.expect("{")
        depth, parts = 1, []
        while depth:
            token = self.next()
            depth += (token == "{") - (token == "}")
            parts.append(token)
        return "".join(parts[:-1])

    def begun(self) -> str:
        self.expect(r"\begin")
        return self.group()

    def ended(self, name: str) -> None:
        self.expect(r"\end")
        if (found := self.group()) != name:
            raise NotLatex(f"{name} is ended as {found}")


def _table(tokens: _Tokens) -> Table:
    tokens.expect(r"\caption")
    caption = printed(tokens.group())
    tokens.expect(r"\centering")
    _narrow(tokens)
    if tokens.begun() != "tabular":
        raise NotLatex("a table without a tabular")
    columns = list(_columns(tokens.group()))
    tokens.expect(r"\toprule")
    header = _row(tokens, columns)
    tokens.expect(r"\midrule")
    rows = []
    while tokens.peek() != r"\bottomrule":
        rows.append(_row(tokens, columns))
    tokens.expect(r"\bottomrule")
    tokens.ended("tabular")
    tokens.ended("table")
    return Table(caption, columns, header, rows, long=False)


def _long(tokens: _Tokens, kind: str) -> Table:
    if kind != "longtable":
        raise NotLatex(f"an environment {kind}")
    columns = list(_columns(tokens.group()))
    tokens.expect(r"\caption")
    caption = printed(tokens.group())
    tokens.expect(r"\\")
    headers = []
    for ends in LONG[:2]:
        tokens.expect(r"\toprule")
        headers.append(_row(tokens, columns))
        tokens.expect(r"\midrule")
        tokens.expect(ends)
    tokens.expect(r"\bottomrule")
    tokens.expect(LONG[2])
    if headers[0] != headers[1]:
        raise NotLatex("other headers on later pages")
    rows = []
    while tokens.peek() != r"\end":
        rows.append(_row(tokens, columns))
    tokens.ended("longtable")
    return Table(caption, columns, headers[0], rows, long=True)


def _columns(said: str) -> Iterator[str]:
    """Of l, c, r and p{width}."""
    rest = said
    while rest:
        found = re.match(
            r"(>\{\\raggedright\\arraybackslash\})?([lcr]|p\{[0-9.]+\\linewidth\})", rest
        )
        if found is None:
            raise NotLatex(f"columns {said}")
        yield found[2][0]
        rest = rest[found.end() :]


def _row(tokens: _Tokens, columns: list[str]) -> list[str]:
    tokens.skip()
    cells, parts, depth = [], [], 0
    while (token := tokens.next()) != r"\\" or depth:
        depth += (token == "{") - (token == "}")
        if depth < 0:
            raise NotLatex("a group ends that was not begun")
        if token == "&" and not depth:
            cells.append("".join(parts))
            parts = []
        else:
            parts.append(token)
    if tokens.left and tokens.peek() in ("[", "*"):
        raise NotLatex(f"{tokens.peek()} is taken for an option of the row before")
    cells.append("".join(parts))
    if len(cells) != len(columns):
        raise NotLatex(f"{len(cells)} cells in {len(columns)} columns: {cells}")
    return [printed(cell).strip() for cell in cells]


def printed(text: str) -> str:
    """What LaTeX prints of it."""
    parts, math = [], False
    for token in TOKEN.findall(text):
        if token == "$":
            math = not math
        elif math:
            if token not in IN_MATH:
                raise NotLatex(f"{token!r} in a formula")
            parts.append("−" if token == "-" else SYMBOLS[token])
        elif token in "{}":
            parts.append("\0")
        elif token in SYMBOLS and token not in IN_MATH:
            parts.append(SYMBOLS[token])
        elif token.startswith(("\\", "%")) or token in "&#^_<>|":
            raise NotLatex(f"{token!r} in {text!r}")
        elif token.isspace() and token.count("\n") > 1:
            raise NotLatex(f"a paragraph ends in {text!r}")
        elif not token.isprintable() and not token.isspace():
            raise NotLatex(f"{token!r} in {text!r}")
        else:
            parts.append(token)
    if math:
        raise NotLatex(f"a formula does not end in {text!r}")
    whole = "".join(parts).replace("---", "—").replace("--", "–").replace("``", "“")
    return whole.replace("''", "”").replace("'", "’").replace("\0", "")
