"""Tables for LaTeX with booktabs, whatever their cells say.

Every cell is text and no command: what is special to LaTeX is escaped, and a cell cannot end its
row, its column, or the table. Tables of more than a page are `longtable`s.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "–": "--", "—": "---", "−": "$-$", "±": r"$\pm$", "≥": r"$\ge$", "≈": r"$\approx$",
    "…": r"\dots{}", "“": "``", "”": "''", "’": "'", "‘": "`", "\u00a0": "~", "\u2009": r"\,",
    "\u200b": r"\allowbreak{}",
}  # fmt: skip
KEPT = "\u00a0\u2009\u200b"
"""Spaces that are no breaks, and a break that is no space."""
PACKAGES = ("array", "booktabs", "longtable")
NARROW = r"\small\setlength{\tabcolsep}{4pt}"
"""So that tables of seven columns fit between the margins of LaTeX's own classes."""
SHORT = 12
"""Letters of names that stand in one line."""
A_PAGE = 35
"""Tables of more rows go over several pages: so many and a caption fill one of letter paper."""
WIDE, QUARTER = r"p{0.4\linewidth}", r"p{0.25\linewidth}"
"""Columns whose text is broken into lines."""


def head() -> str:
    """What a document needs to read the tables."""
    needs = " ".join(f"\\usepackage{{{name}}}" for name in PACKAGES)
    fonts = "\\usepackage[T1]{fontenc}"
    return (
        f"% Needs {needs} and, under pdfLaTeX, {fonts}.\n"
        "% Names in other scripts than Latin need XeLaTeX or LuaLaTeX.\n"
    )


def escaped(text: str) -> str:
    """As LaTeX prints it, in one line: breaks of lines and control characters are spaces."""
    words = "".join(c if c.isprintable() or c in KEPT else " " for c in text).split(" ")
    plain = " ".join(filter(None, words)).replace("--", "-\0-").replace("--", "-\0-")
    return "".join(SPECIAL.get(c, c) for c in plain).replace("\0", "{}")


def column_of_names(names: Iterable[str], share: float) -> str:
    """A column as wide as the names; where some are long, of a share of the line, and broken."""
    if all(len(name) <= SHORT for name in names):
        return "l"
    return rf">{{\raggedright\arraybackslash}}p{{{share:g}\linewidth}}"


def breakable(name: str) -> str:
    """A name that may be broken where its parts end."""
    return re.sub(r"(?<=[_./:+-])(?=\w)", "\u200b", name)


def table(
    caption: str, columns: Sequence[str], header: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """A table of rows of text; `caption` is text, too.

    Raises ValueError where a row has not as many cells as there are columns.
    """
    for row in (header, *rows):
        if len(row) != len(columns):
            raise ValueError(f"a row of {len(row)} cells in a table of {len(columns)} columns")
    make = _long if len(rows) > A_PAGE else _short
    return "\n".join(make(escaped(caption), "".join(columns), _row(header), list(map(_row, rows))))


def _short(caption: str, columns: str, header: str, rows: list[str]) -> Iterator[str]:
    yield from ("\\begin{table}", f"\\caption{{{caption}}}", "\\centering", NARROW)
    yield from (f"\\begin{{tabular}}{{{columns}}}", "\\toprule", header, "\\midrule", *rows)
    yield from ("\\bottomrule", "\\end{tabular}", "\\end{table}", "")


def _long(caption: str, columns: str, header: str, rows: list[str]) -> Iterator[str]:
    yield from (f"{{{NARROW}", f"\\begin{{longtable}}{{{columns}}}")
    yield f"\\caption{{{caption}}} \\\\"
    yield from ("\\toprule", header, "\\midrule", "\\endfirsthead")
    yield from ("\\toprule", header, "\\midrule", "\\endhead", "\\bottomrule", "\\endfoot")
    yield from (*rows, "\\end{longtable}}", "")


def _row(cells: Sequence[str]) -> str:
    return f"{' & '.join(map(_cell, cells))} \\\\"


def _cell(text: str) -> str:
    """What begins a row must not be taken for an option of the end of the row before."""
    safe = escaped(text)
    return f"{{}}{safe}" if safe.startswith(("[", "*")) else safe
