import csv
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judging.formats.csvfile import cell_text, csv_lines

FORMULA_STARTS = "=+-@\t\r\n＝＋－＠"


def parsed(header: list[str], *rows: list[Any]) -> list[list[str]]:
    return list(csv.reader(io.StringIO("".join(csv_lines(header, rows)), newline="")))


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u00a0=1"),
        *("-", "=cmd|' /C calc'!A0", "＝1", '="x"', "-d-é"),
    ],
)
def test_text_like_a_formula_gets_an_apostrophe(text: str) -> None:
    assert cell_text(text) == "'" + text
    assert parsed(["a"], [text]) == [["a"], ["'" + text]]


@pytest.mark.parametrize("text", ["a=1", "1-2", "a@b.org", "'=1", "401", "", " a", 'é, "b"\nc;'])
def test_other_text_is_untouched(text: str) -> None:
    assert parsed(["a", "b"], [text, "x"])[1] == [text, "x"]


def test_numbers_are_exact_and_untouched() -> None:
    row: list[Any] = [
        -1,
        -0.1,
        1e-300,
        np.float64(0.1) + np.float64(0.2),
        np.int64(-7),
        None,
        True,
        False,
    ]
    expected = ["-1", "-0.1", "1e-300", "0.30000000000000004", "-7", "", "true", "false"]
    assert parsed(list("abcdefgh"), row)[1] == expected


def test_lines_end_and_quote_as_rfc_4180_says() -> None:
    rows = [["x,y", 'say "hi"'], ["two\nlines", 1]]
    assert list(csv_lines(["a", "=b"], rows)) == [
        "a,'=b\r\n",
        '"x,y","say ""hi"""\r\n',
        '"two\nlines",1\r\n',
    ]


def test_rows_must_fit_the_header_and_hold_known_types() -> None:
    with pytest.raises(ValueError, match="expected 2 cells"):
        list(csv_lines(["a", "b"], [["x"]]))
    with pytest.raises(TypeError):
        list(csv_lines(["a"], [[b"=1"]]))  # type: ignore[list-item]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(TEXT, st.one_of(TEXT, st.floats(allow_nan=False))), max_size=5))
def test_no_text_is_lost_and_none_is_a_formula(rows: list[tuple[str, str | float]]) -> None:
    found = parsed(["a", "b"], *[list(row) for row in rows])[1:]
    assert len(found) == len(rows)
    for cells, row in zip(found, rows, strict=True):
        for cell, value in zip(cells, row, strict=True):
            if isinstance(value, str):
                assert not cell.startswith(tuple(FORMULA_STARTS))
                assert cell in {value, "'" + value}
            else:
                assert float(cell) == value
