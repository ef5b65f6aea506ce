"""Plain chunks are cut and read as numbers at once: the same as line by line, to the bit."""

import math
import random
import re
import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from estimation.core.arrays import FloatArray
from judging.formats import cells as cells_module
from judging.formats.cells import (
    MAX_NUMBER,
    are_plain_ids,
    as_bytes,
    changes,
    distinct,
    parsed_number,
    split_cells,
)
from judging.formats.columns import may_repeat
from judging.formats.problems import has_invisible, id_problem

MANY = settings(deadline=None, max_examples=400)
NUMBERS = (
    *(
        "0",
        "-0",
        "-0.0",
        "5.",
        ".5",
        "-.5",
        ".",
        "-",
        "-.",
        "+5",
        "1e5",
        "1e400",
        "-1e400",
        "1E-400",
    ),
    *(
        "nan",
        "inf",
        "-inf",
        "infinity",
        "0x10",
        "1_000",
        "1,5",
        "1.2.3",
        "1..2",
        "1-2",
        "--2",
        "1/2",
    ),
    *("1.-5", "1:2", "5;", "1e", "a", "1.5f", "99999999", "123456789", "12345678.", "12345678.5"),
    *("1234567.8", "12345678.12345678", "123456.123456789012", "0.1234567890123456"),
    *("0.12345678901234567", "0.00000000000000001", "00000000000012.5", "00000000.00000001"),
    *("9007199254740991", "9007199254740992", "9007199254740993", "900719925474.0993"),
    *(".12345678", ".123456789", "-.12345678901234567", "2.2250738585072011e-308"),
    *("9" * 30, "9" * 300, "1." + "1" * (MAX_NUMBER - 2), "1." + "1" * (MAX_NUMBER - 1)),
)


def numbers(texts: list[str]) -> FloatArray:
    """The numbers of texts in the second column of lines."""
    cells = split_cells("".join(f"q {text}\n" for text in texts).encode(), 2)
    assert cells is not None
    return cells.numbers(1)


def same(first: float, second: float) -> bool:
    both = math.isnan(first) and math.isnan(second)
    return both or struct.pack("d", first) == struct.pack("d", second)


def differing(texts: list[str]) -> list[str]:
    found = zip(texts, numbers(texts).tolist(), strict=True)
    return [text for text, value in found if not same(value, parsed_number(text))]


def written(count: int) -> list[str]:
    """Numbers as programs write them, and texts that nearly are numbers."""
    rng = random.Random("numbers")
    ways: list[Callable[[], str]] = [
        lambda: repr(rng.uniform(-100, 100))[: rng.randint(1, 20)],
        lambda: f"{rng.uniform(-1e9, 1e9):.{rng.randint(0, 10)}f}",
        lambda: repr(rng.gauss(0, 1) * 10 ** rng.randint(-20, 20)),
        lambda: repr(float(np.float32(rng.gauss(0, 10)))),
        lambda: str(rng.randint(-(10**16), 10**16)),
        lambda: "".join(rng.choices("0123456789.-+e/:", k=rng.randint(1, 18))),
    ]
    return [rng.choice(ways)() for _ in range(count)]


def test_numbers_are_those_of_each_line_to_the_bit() -> None:
    assert differing([*NUMBERS, *written(30_000)]) == []


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_alone_is_that_of_its_line(text: str) -> None:
    assert differing([text]) == []


@pytest.mark.slow
@MANY
@given(st.lists(st.text("0123456789.-+eEinfa_/:x", min_size=1, max_size=24), min_size=1))
def test_any_text_is_the_number_of_its_line_or_none(texts: list[str]) -> None:
    assert differing(texts) == []


def test_signs_beside_the_digits_taken_for_digits_are_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digits = cells_module._digits
    monkeypatch.setattr(
        cells_module, "_digits", lambda word, count: (digits(word, count)[0], count >= 0)
    )
    assert {"1/2", "1-2", "--2"} <= set(differing(list(NUMBERS)))


def test_more_digits_than_a_number_holds_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells_module, "_EXACT", np.uint64(1 << 63))
    assert differing(["9007199.254740993"] * 2 + written(3000))


@pytest.mark.skipif(not cells_module._HAS_64_DIGITS, reason="the machine has floats of 53 digits")
def test_a_quotient_of_64_digits_is_rounded_again_only_where_that_is_sure() -> None:
    rng = np.random.default_rng(7)
    number = rng.integers(2**53, 10**18, 50_000).astype(np.uint64)
    digits = rng.integers(1, 17, len(number))
    texts = zip(number.tolist(), digits.tolist(), strict=True)
    right = np.array([float(f"{whole}e-{places}") for whole, places in texts])
    values, sure = cells_module._quotients(number, digits)
    assert np.array_equal(values[sure], right[sure])
    assert 0.99 < np.mean(sure) < 1.0
    assert np.any(values[~sure] != right[~sure]), "others are off at times"


def test_numbers_of_seventeen_digits_need_python_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, asked = random.Random("long"), []
    texts = [repr(rng.uniform(1, 100)) for _ in range(5000)]
    parsed = cells_module.PlainLines._parsed
    monkeypatch.setattr(
        cells_module.PlainLines,
        "_parsed",
        lambda *given: asked.extend(given[2].tolist()) or parsed(*given),
    )
    assert differing(texts) == []
    assert len(asked) < 50 or not cells_module._HAS_64_DIGITS


def test_what_is_alike_at_some_bits_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    for columns in (1, 3):
        words = rng.integers(0, 4, (300, columns)).astype(np.uint64)
        found = distinct(words)
        monkeypatch.setattr(cells_module, "_TABLE_BITS", 1)
        again = distinct(words)
        monkeypatch.undo()
        rows = [tuple(row) for row in words.tolist()]
        first, like = (part.tolist() for part in found)
        assert [rows[at] for at in first] == list(dict.fromkeys(rows))
        assert [rows[first[which]] for which in like] == rows
        assert [part.tolist() for part in again] == [first, like]


LINES = st.lists(
    st.lists(
        st.text("ab/.~:C9é東\x7f\x1f\u200b", min_size=1, max_size=20),
        min_size=2,
        max_size=4,
    ),
    min_size=1,
    max_size=8,
)
BLANKS = st.sampled_from([" ", "\t", "  ", " \t ", "\t\t"])
ENDS = st.sampled_from(["\n", "\r\n", " \n", "\n\n", "\t\r\n", "\r", "\n "])


@st.composite
def chunks(draw: st.DrawFn) -> bytes:
    text = draw(st.sampled_from(["", " ", "\n"]))
    for cells in draw(LINES):
        blank = draw(BLANKS)
        text += blank.join(cells) + draw(ENDS)
    return draw(st.sampled_from([text, text.rstrip()])).encode()


@pytest.mark.slow
@MANY
@given(chunks(), st.integers(2, 4))
@example(b"a b", 2)
@example(b" a\t\tb \r\n  c d\n", 2)
@example(b"a b c\n", 2)
@example(b"a\nb c d\n", 2)
def test_what_is_cut_is_what_lines_hold(chunk: bytes, columns: int) -> None:
    found = split_cells(chunk, columns)
    rows = [line.split() for line in chunk.removesuffix(b"\n").split(b"\n")]
    plain = not has_invisible(re.sub(r"[ \t\r\n]", "", chunk.decode()))
    plain = plain and b"\r" not in chunk.replace(b"\r\n", b"\n")
    plain = plain and all(len(row) == columns for row in rows)
    assert (found is not None) >= plain  # a carriage return at the very end may or may not be one
    if found is None:
        return
    assert plain
    for column in range(columns):
        wanted = [row[column] for row in rows]
        assert [found.cell(column, line) for line in range(len(found))] == wanted
        words, width = found.words(column), max(map(len, wanted))
        assert as_bytes(words, width).tolist() == wanted
        assert as_bytes(words, width).dtype == np.array(wanted).dtype
        fresh = [n for n, cell in enumerate(wanted) if n == 0 or cell != wanted[n - 1]]
        assert changes(words).tolist() == fresh
        first, place = distinct(words)
        assert [wanted[line] for line in first.tolist()] == list(dict.fromkeys(wanted))
        assert [wanted[first[which]] for which in place.tolist()] == wanted
        assert found.is_constant(column) == (len(set(wanted)) == 1)


IDS = st.lists(st.text("aé東/.~:C9\\", min_size=1, max_size=6), min_size=1, max_size=3)


@pytest.mark.slow
@MANY
@given(IDS)
@example(["a" * 255])
@example(["a" * 256])
@example(["é" * 127])
@example(["é" * 128])
@example(["http://a.b/c.d"])
@example(["a/..b", "a./b", ".a"])
def test_ids_of_a_column_are_good_if_each_is(ids: list[str]) -> None:
    cells = split_cells("".join(f"{each} x\n" for each in ids).encode(), 2)
    assert cells is not None
    plain = all(id_problem(each) is None and len(each.encode()) <= 255 for each in ids)
    assert are_plain_ids(cells, 0) == plain


def test_each_letter_of_a_chunk_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(cells_module, "has_invisible", looked.append)
    texts = [f"{'äß東'[number % 3]}{number} Müller\n" for number in range(3000)]
    assert split_cells("".join(texts).encode(), 2) is not None
    assert looked == ["ßäü東"]


@pytest.mark.slow
@MANY
@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(["a", "b", "ab", "a" * 9, "é"]))))
def test_pairs_that_come_once_are_told_from_others(pairs: list[tuple[int, str]]) -> None:
    topic = np.array([topic for topic, _ in pairs], dtype=np.int64)
    docno = np.array([docno.encode() for _, docno in pairs] or [b""][:0], dtype=np.bytes_)
    assert may_repeat(topic, docno) == (len(set(pairs)) < len(pairs))


def test_one_repeated_pair_among_very_many_is_found() -> None:
    topic = np.repeat(np.arange(50), 1000)
    docno = np.array([f"document-{n}" for n in range(50_000)], dtype=np.bytes_)
    assert not may_repeat(topic, docno)
    for first, second in [(0, 999), (1000, 1001), (49_000, 49_999)]:
        again = docno.copy()
        again[second] = docno[first]
        assert may_repeat(topic, again)
