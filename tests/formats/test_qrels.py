import gzip
import io
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judging.formats.problems import Problems, UnreadableError, id_problem
from judging.formats.qrels import grades_by_pair, qrels_lines, read_qrels

IDS = st.text(min_size=1, max_size=20).filter(lambda text: id_problem(text) is None)


Row = tuple[str, str, int, int]


def read(data: bytes, **options: Any) -> tuple[list[Row], Problems]:
    """Topic, docno, grade and line of every judgment."""
    problems = Problems("q")
    found = read_qrels(io.BytesIO(data), problems, **options)
    pairs = grades_by_pair(found).items()
    numbers = found.number.tolist()
    rows = [(*pair, grade, line) for (pair, grade), line in zip(pairs, numbers, strict=True)]
    return rows, problems


def test_four_columns_are_read() -> None:
    data = b"401 0 FT-1 1\n401\t0\tFT-2\t0\r\n\n 402  Q0 FT-1 -1 \n"
    found, problems = read(data)
    assert found == [
        ("401", "FT-1", 1, 1),
        ("401", "FT-2", 0, 2),
        ("402", "FT-1", -1, 4),
    ]
    assert (problems.errors, problems.warnings) == ([], [])
    assert read(gzip.compress(data))[0] == found


def test_problems_have_line_and_field() -> None:
    data = (
        "1 0 a 1\n1 0 b\n1 0 c 1 x\n1 0 d one\n1 0 e 1.0\n1 0 ../f 1\n"
        "1 0 a 1\n1 0 a 2\n~1 0 g 3\n1 0 h 99999\n1 0 i 3\n1 0 j\u00a0k 1\n1 0 l 1_0\n1 0 m ١\n"
    )
    found, problems = read(data.encode(), grades=range(3))
    assert sorted((p.line or 0, p.field) for p in problems.errors) == [
        *[(2, "columns"), (3, "columns"), (4, "grade"), (5, "grade"), (6, "docno")],
        *[(8, "grade"), (9, "grade"), (9, "topic"), (10, "grade"), (11, "grade")],
        *[(12, "docno"), (13, "grade"), (14, "grade")],
    ]
    messages = {p.line: p.message for p in problems.errors}
    assert messages[2] == "expected 4 columns (topic, iteration, docno, grade), found 3"
    assert messages[5] == "expected a whole number of at most four digits, found '1.0'"
    assert messages[8] == (
        "expected one grade for topic '1' and docno 'a', found 1 on line 1 and 2"
    )
    assert messages[11] == "expected one of the grades 0, 1, 2, found 3"
    assert [(p.line, p.field, p.message) for p in problems.warnings] == [
        (7, "docno", "topic '1' and docno 'a' have this grade on line 1 already")
    ]
    assert found == [("1", "a", 1, 1)]


def test_a_file_without_a_judgment_is_an_error() -> None:
    _, problems = read(b"\n")
    assert [p.message for p in problems.errors] == ["expected judgments, found none in the file"]


@pytest.mark.slow
def test_the_number_of_judgments_is_bounded() -> None:
    data = b"".join(b"1 0 %d 1\n" % n for n in range(6))
    assert len(read(data, max_lines=6)[0]) == 6
    with pytest.raises(UnreadableError, match="at most 5 lines"):
        read(data, max_lines=5)
    many = "".join(f"{n} 0 a 1\n" for n in range(100_001)).encode()
    with pytest.raises(UnreadableError, match="at most 100000 topics"):
        read(many)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.tuples(IDS, IDS), st.integers(-9, 9), min_size=1, max_size=20))
def test_what_is_written_is_read_back(pairs: dict[tuple[str, str], int]) -> None:
    rows = [(topic, docno, grade) for (topic, docno), grade in pairs.items()]
    found, problems = read("".join(qrels_lines(rows)).encode())
    assert [row[:3] for row in found] == rows
    assert (problems.errors, problems.warnings) == ([], [])


def test_lines_are_byte_exact() -> None:
    assert "".join(qrels_lines([("401", "FT-1", 2), ("402", "é", 0)])) == (
        "401 0 FT-1 2\n402 0 é 0\n"
    )


@pytest.mark.parametrize("row", [("a b", "c", 1), ("a", "..", 1), ("", "c", 1), ("a", "c\n", 1)])
def test_ids_that_no_reader_takes_are_not_written(row: tuple[str, str, int]) -> None:
    with pytest.raises(ValueError, match="expected a"):
        list(qrels_lines([row]))


@pytest.mark.slow
def test_many_judgments_take_little_memory() -> None:
    class File:
        left = 50

        def read(self, size: int, /) -> bytes:
            self.left -= 1
            lines = (f"{self.left} 0 FBIS4-{n} 1\n" for n in range(1000))
            return "".join(lines).encode() if self.left >= 0 else b""

    tracemalloc.start()
    try:
        count = len(read_qrels(File(), Problems("q")))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 50_000
    assert peak < 50_000 * 280
