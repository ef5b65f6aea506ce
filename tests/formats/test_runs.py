import gzip
import io
import os
import platform
import random
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estimation.formats.runs as runs_module
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.scores import MOST_SCORE
from estimation.formats.run_columns import read_columns
from estimation.formats.runs import (
    RunFile,
    load_lists,
    rank_contradictions,
    read_run,
    save_run,
)
from judging.formats import columns
from judging.formats.problems import Problems, UnreadableError, id_problem
from tests.formats.generated import Generated
from tests.formats.run_files import run_lines

MEBIBYTE = 1 << 20
IDS = st.text(min_size=1, max_size=12).filter(lambda text: id_problem(text) is None)
SCORES = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1.0, 1.0 + 1e-12, 16777216.0, 16777217.0, 1e300, 1e301, -0.0, 5e-324]),
)


def read(data: str | bytes, **options: Any) -> tuple[RunFile | None, Problems]:
    problems = Problems("r")
    raw = data.encode() if isinstance(data, str) else data
    return read_run(io.BytesIO(raw), problems, **options), problems


def accepted(data: str | bytes, **options: Any) -> RunFile:
    run, problems = read(data, **options)
    assert run is not None, problems.errors
    return run


def errors(data: str | bytes, **options: Any) -> list[tuple[int | None, str, str]]:
    run, problems = read(data, **options)
    assert (run is None) == (problems.error_count > 0)
    return [(p.line, p.field, p.message) for p in problems.errors]


def warnings(data: str, **options: Any) -> list[tuple[int | None, str, str]]:
    run, problems = read(data, **options)
    assert run is not None
    return [(p.line, p.field, p.message) for p in problems.warnings]


def content(run: RunFile) -> tuple[Any, ...]:
    lists = run.lists
    docnos = [name.decode() for name in lists.docnos.tolist()]
    return run.tag, lists.topics, lists.indptr.tolist(), docnos, run.scores.tolist()


@pytest.fixture(params=["whole chunks", "line by line"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test by the fast way (which may fall back) and by the slow way alone."""
    if request.param == "line by line":
        monkeypatch.setattr(runs_module, "split_cells", lambda *_: None)
    return str(request.param)


RUN = """402 Q0 b 1 2.5 t
401 Q0 x 1 -1 t
402 Q0 a 2 2.5 t
402 Q0 c 3 7e1 t
401 Q0 y 2 -1.5 t
"""


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("change", [str, lambda s: "\ufeff" + s.replace("\n", "\r\n"), str.rstrip])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_order_is_by_score_then_docno_both_descending(change: Any, pack: Any) -> None:
    run = accepted(pack(change(RUN).encode()))
    scores = [-1.0, -1.5, 70.0, 2.5, 2.5]
    assert content(run) == ("t", ("401", "402"), [0, 2, 5], ["x", "y", "c", "b", "a"], scores)
    assert (run.lines, run.dropped) == (5, 0)
    assert run.scores.dtype == np.float64
    assert run.lists.docnos.dtype.kind == "S"


@pytest.mark.usefixtures("way")
def test_scores_equal_in_single_precision_are_ties_and_kept_in_double() -> None:
    run = accepted("1 Q0 a 1 16777217 t\n1 Q0 b 2 16777216 t\n1 Q0 é 3 16777216.5 t\n")
    assert content(run)[3:] == (["é", "b", "a"], [16777216.5, 16777216.0, 16777217.0])


def test_docnos_are_compared_as_bytes() -> None:
    names = ["a", "B", "é", "Z", "😀", "\uffee", "10", "9"]
    run = accepted("".join(f"1 Q0 {name} 1 0 t\n" for name in names))
    assert content(run)[3] == sorted(names, key=str.encode, reverse=True)


@pytest.mark.usefixtures("way")
def test_every_wrong_line_is_an_error_with_its_field() -> None:
    data = (
        "1 Q0 a 1 9 t\n1 Q0 b 2 8\n1 Q0 c 3 7 t x\n1 Q0 d 4 nan t\n1 Q0 e 5 inf t\n"
        "1 Q0 f 6 -Infinity t\n1 Q0 g 7 x t\n1 Q0 h 8 1_0 t\n1 Q0 i 9 1,5 t\n"
        "1 Q0 ../j 10 1 t\n/1 Q0 k 11 1 t\n1 Q0 l 12 1 C:t\n1 Q0 m 13 1e999 t\n"
        "1 Q0 n\u00a0o 14 1 t\n1 Q0 a\\b 15 1 t\n1 Q0 p 16 0x1 t\n\n   \n1 Q0 q 17 1 t\n"
        "1 Q0 r\0 18 1 t\n1 Q0 s 19 ١ t\n1 Q0 ~u 20 1 t\n1 Q0 v/./w 21 1 t\n"
    )
    found = errors(data)
    assert [(line, field) for line, field, _ in found] == [
        *[(2, "columns"), (3, "columns"), (4, "score"), (5, "score"), (6, "score"), (7, "score")],
        *[(8, "score"), (9, "score"), (10, "docno"), (11, "topic"), (12, "tag"), (13, "score")],
        *[(14, "docno"), (15, "docno"), (16, "score"), (20, ""), (21, "score"), (22, "docno")],
        (23, "docno"),
    ]
    messages = {line: message for line, _, message in found}
    six = "expected 6 columns (topic, Q0, docno, rank, score, tag), found"
    assert messages[2] == f"{six} 5"
    assert messages[3] == f"{six} 7"
    assert messages[4] == "expected a finite number, found 'nan'"
    assert messages[9] == "expected a finite number, found '1,5'"


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "line",
    [
        *("1 Q0 b 2 8", "1 Q0 b 2 nan t", "1 Q0 b 2 inf t", "1 Q0 b 2 1_0 t", "1 Q0 b 2 8 u"),
        *("1 Q0 /b 2 8 t", "1 Q0 b/.. 2 8 t", "1 Q0 .. 2 8 t", "1 Q0 c:b 2 8 t", "~1 Q0 b 2 8 t"),
        *("1 Q0 b\\ 2 8 t", "1 Q0 b\x07 2 8 t", "1 Q0 b\r 2 8 t", "1 Q0 b\x0c2 8 t x"),
        *("1 Q0 " + "b" * 256 + " 2 8 t", "1 Q0 b 2 0." + "1" * 399 + " t", "1 Q0 a 2 8 t"),
        *("1 Q0 b 2 1e400 t", "1 Q0 b\x1f 2 8 t", "1\x0bQ0 b 2 8 t", "1 Q0 b\u0085 2 8 t"),
    ],
)
@pytest.mark.parametrize("place", [1, 2, 500])
def test_one_wrong_line_among_many_is_found_at_its_place(line: str, place: int) -> None:
    lines = [f"1 Q0 d{n} {n} {1000 - n} t" for n in range(1, 501)]
    lines[0] = "1 Q0 a 1 2000 t"
    lines.insert(place, line)
    assert [number for number, _, _ in errors("\n".join(lines))] == [place + 1]


@pytest.mark.usefixtures("way")
def test_a_repeated_docno_names_both_lines() -> None:
    data = "1 Q0 a 1 5 t\n2 Q0 a 1 5 t\n1 Q0 b 2 4 t\n\n1 Q0 a 3 3 t\n1 Q0 a 4 2 t\n2 Q0 a 2 5 t\n"
    assert errors(data) == [
        (5, "docno", "expected docno 'a' of topic '1' once, found it on line 1 already"),
        (6, "docno", "expected docno 'a' of topic '1' once, found it on line 1 already"),
        (7, "docno", "expected docno 'a' of topic '2' once, found it on line 2 already"),
    ]


@pytest.mark.usefixtures("way")
def test_each_further_tag_is_reported_once() -> None:
    data = "1 Q0 a 1 5 t\n1 Q0 b 2 4 u\n1 Q0 c 3 3 u\n1 Q0 d 4 2 v\n1 Q0 e 5 1 t\n"
    wanted = "expected the tag 't' of line 1 in the whole file, found"
    assert errors(data) == [(2, "tag", f"{wanted} 'u'"), (4, "tag", f"{wanted} 'v'")]


@pytest.mark.slow
def test_a_second_tag_in_a_later_chunk_is_found() -> None:
    lines = [f"{n % 50} Q0 d{n} {n} {-n} t" for n in range(60_000)]
    lines[50_000] = lines[50_000][:-1] + "u"
    assert [(line, field) for line, field, _ in errors("\n".join(lines))] == [(50_001, "tag")]


@pytest.mark.parametrize("data", ["", "\n\n", "\ufeff"])
def test_an_empty_run_is_an_error(data: str) -> None:
    assert errors(data) == [(None, "", "expected the lines of a run, found none in the file")]


@pytest.mark.usefixtures("way")
def test_ranks_against_scores_are_one_warning() -> None:
    data = "1 Q0 a 1 5 t\n1 Q0 b 2 7 t\n1 Q0 c 3 6 t\n2 Q0 a 1 9 t\n1 Q0 d 4 1 t\n2 Q0 b 0 1 t\n"
    message = "3 lines score higher than a line with a better rank in their topic"
    assert warnings(data) == [(2, "rank", f"{message}; the order is by score")]


def test_ties_in_score_or_rank_are_no_warning() -> None:
    assert warnings("1 Q0 a 1 5 t\n1 Q0 b 2 5 t\n1 Q0 c 2 4 t\n1 Q0 d 2 3 t\n2 Q0 a 9 8 t\n") == []
    assert warnings("1 Q0 a 2 16777216 t\n1 Q0 b 3 16777217 t\n") == []


@pytest.mark.usefixtures("way")
def test_ranks_that_are_no_numbers_are_one_warning_and_do_not_matter() -> None:
    data = "1 Q0 a 1 5 t\n1 Q0 b x 4 t\n1 Q0 c nan 3 t\n1 Q0 d 1_0 2 t\n1 Q0 e 2 1 t\n"
    message = "the rank of 3 lines is no number; the order is by score"
    assert warnings(data) == [(2, "rank", message)]


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, 2), SCORES, st.integers(0, 4)), max_size=25)
    | st.lists(st.tuples(st.integers(0, 2), SCORES, st.sampled_from([-1.5, 0.0, 0.5, 3e10])))
)
def test_contradictions_equal_their_definition(rows: list[tuple[int, float, float]]) -> None:
    topic, score, rank = (
        (np.array(column) for column in zip(*rows, strict=True))
        if rows
        else (np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    )
    with np.errstate(all="ignore"):
        single = score.astype(np.float32)
    expected = [
        any(topic[j] == topic[i] and rank[j] < rank[i] and single[j] < single[i] for j in range(n))
        for n in [len(rows)]
        for i in range(n)
    ]
    assert rank_contradictions(topic, score, rank.astype(float)).tolist() == expected


@pytest.mark.usefixtures("way")
def test_unknown_topics_are_dropped_and_missing_ones_told() -> None:
    data = "9 Q0 a 1 5 t\n1 Q0 a 1 5 t\n9 Q0 b 2 4 t\n8 Q0 a 1 5 t\n1 Q0 b 2 4 t\n"
    run = accepted(data, topics=["1", "2", "3"])
    assert content(run) == ("t", ("1",), [0, 2], ["a", "b"], [5.0, 4.0])
    assert (run.lines, run.dropped) == (5, 3)
    assert warnings(data, topics=["1", "2", "3"]) == [
        (1, "topic", "2 topics ('9', '8') are not among the known topics; 3 lines are left out"),
        (None, "topic", "2 topics ('2', '3') are missing: the run returns nothing there"),
    ]
    assert warnings(data, topics={"1", "8", "9"}) == []
    assert warnings(data, topics={"1", "8", "9", "7"}) == [
        (None, "topic", "topic '7' is missing: the run returns nothing there")
    ]


def test_at_most_five_topics_are_named() -> None:
    data = "".join(f"{n} Q0 a 1 5 t\n" for n in range(1, 9))
    known = ["1", *(f"m{n}" for n in range(7))]
    assert [message for _, _, message in warnings(data, topics=known)] == [
        "7 topics ('2', '3', '4', '5', '6', …) are not among the known topics; "
        "7 lines are left out",
        "7 topics ('m0', 'm1', 'm2', 'm3', 'm4', …) are missing: the run returns nothing there",
    ]


def test_a_run_of_unknown_topics_alone_is_an_error() -> None:
    found = errors("9 Q0 a 1 5 t\n", topics=["1"])
    assert found == [(None, "topic", "expected lines of known topics, found none")]


def runs() -> st.SearchStrategy[RunFile]:
    docs = st.dictionaries(IDS, SCORES, min_size=1, max_size=6)
    return st.builds(make_run, IDS, st.dictionaries(IDS, docs, min_size=1, max_size=4))


def make_run(tag: str, topics: dict[str, dict[str, float]]) -> RunFile:
    """Build a run by sorting in plain Python, apart from the code under test."""
    names = sorted(topics, key=str.encode)
    entries: list[tuple[str, float]] = []
    indptr = [0]
    for name in names:
        rows = sorted(topics[name].items(), key=lambda row: row[0].encode(), reverse=True)
        with np.errstate(all="ignore"):
            rows.sort(key=lambda row: -np.float64(row[1]).astype(np.float32))
        entries += rows
        indptr.append(len(entries))
    docnos = np.array([docno.encode() for docno, _ in entries], dtype=np.bytes_)
    lists = RankedLists(tuple(names), np.array(indptr, dtype=np.int64), docnos)
    scores = np.array([score for _, score in entries], dtype=np.float64)
    return RunFile(tag, lists, scores, len(entries), 0)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(runs())
def test_what_is_written_is_read_back(run: RunFile) -> None:
    lines = list(run_lines(run))
    assert len(lines) == run.lines
    back, problems = read("".join(lines))
    warned = any(abs(score) > MOST_SCORE for score in run.scores.tolist())
    assert (problems.errors, len(problems.warnings)) == ([], warned)
    assert back is not None
    assert content(back) == content(run)
    assert [x.hex() for x in back.scores.tolist()] == [x.hex() for x in run.scores.tolist()]


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(runs())
def test_what_is_saved_is_loaded_back(run: RunFile) -> None:
    file, again = io.BytesIO(), io.BytesIO()
    save_run(file, run)
    save_run(again, run)
    assert file.getvalue() == again.getvalue()
    file.seek(0)
    facts, _ = read_columns(file)
    back, ranked = (load_lists(file, scores=scores) for scores in (True, False))
    assert back.scores is not None
    assert content(replace(run, lists=back, scores=back.scores)) == content(run)
    assert content(replace(run, lists=ranked)) == content(run)
    assert ranked.scores is None
    told = [facts[name] for name in ("tag", "lines", "dropped")]
    assert told == [run.tag, run.lines, run.dropped]


def test_lines_are_byte_exact() -> None:
    assert "".join(run_lines(accepted(RUN))) == (
        "401 Q0 x 1 -1.0 t\n401 Q0 y 2 -1.5 t\n"
        "402 Q0 c 1 70.0 t\n402 Q0 b 2 2.5 t\n402 Q0 a 3 2.5 t\n"
    )


def test_damaged_files_are_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    save_run(path, accepted(RUN))
    data = path.read_bytes()
    assert load_lists(path, scores=True).docnos.tolist() == [b"x", b"y", b"c", b"b", b"a"]
    for broken in (b"", b"x", data[: len(data) // 2], b"\x80\x04N."):
        with pytest.raises(ValueError, match=r".+"):
            load_lists(io.BytesIO(broken), scores=True)
    objects = io.BytesIO()
    np.savez(objects, header=np.array([{}], dtype=object))
    objects.seek(0)
    with pytest.raises(ValueError, match=r".+"):
        load_lists(objects, scores=True)


def test_lines_topics_and_docnos_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = "".join(f"{n} Q0 a 1 5 t\n" for n in range(10))
    assert accepted(data, max_lines=10).lines == 10
    with pytest.raises(UnreadableError, match="at most 9 lines"):
        read(data, max_lines=9)
    monkeypatch.setattr(columns, "MAX_TOPICS", 9)
    with pytest.raises(UnreadableError, match="at most 9 topics"):
        read(data)
    monkeypatch.setattr(columns, "MAX_TOPICS", 10)
    monkeypatch.setattr(columns, "MAX_DOCNO_BYTES", 9)
    with pytest.raises(UnreadableError, match="shorter docnos or fewer lines"):
        read(data)


@pytest.mark.slow
def test_ten_thousand_errors_end_the_reading() -> None:
    with pytest.raises(UnreadableError, match="more than 10000 errors"):
        read("1 Q0 a\n" * 20_000)


@pytest.mark.slow
def test_ten_million_lines_are_refused_before_most_are_read() -> None:
    problems = Problems("r")
    file = Generated(1000, lambda n: f"{n % 50} Q0 d{n} 1 {n} t\n")
    with pytest.raises(UnreadableError, match="at most 300000 lines"):
        read_run(file, problems, max_lines=300_000)
    assert file.number < 45


def peak_of(lines: list[str]) -> int:
    data = "\n".join(lines).encode()
    tracemalloc.start()
    try:
        accepted(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("shuffled", [False, True])
def test_as_many_lines_as_may_be_fit_into_the_memory_that_reading_may_use(shuffled: bool) -> None:
    lines = [f"{n // 1000} Q0 cw-{n:022d} {n % 1000} {2000 - n % 1000} t" for n in range(250_000)]
    if shuffled:
        random.Random("lines").shuffle(lines)
    a_line = (peak_of(lines) - peak_of(lines[:150_000])) / 100_000
    assert 50 < a_line < 150
    assert a_line * columns.MAX_LINES < 2048 * MEBIBYTE, "UPLOAD_MEMORY_MB by default"
    assert columns.MAX_DOCNO_BYTES >= 25 * columns.MAX_LINES


FAULTS = """
import resource, sys
from estimation.formats.runs import read_run
from judging.formats import columns
from judging.formats.problems import Problems

columns._KEPT_BYTES = int(sys.argv[2])
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    with open(sys.argv[1], "rb") as file:
        assert read_run(file, Problems("r")).lines == 50_000
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(min(faults() for _ in range(5)))
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries keep other memory")
def test_a_file_is_read_in_the_memory_of_the_one_before(tmp_path: Path) -> None:
    """Pages that are given back are asked for again with every chunk, which takes half the time."""
    path, root = tmp_path / "run", Path(__file__).resolve().parents[2]
    lines = (f"{n // 1000} Q0 d{n:07d} {n % 1000} {2000 - n % 1000}.5 t\n" for n in range(50_000))
    path.write_text("".join(lines))
    plain = {name: value for name, value in os.environ.items() if "MALLOC" not in name}

    def faults(kept: int) -> int:
        command = [sys.executable, "-c", FAULTS, str(path), str(kept)]
        done = subprocess.run(command, cwd=root, env=plain, check=True, capture_output=True)
        return int(done.stdout)

    assert faults(columns._KEPT_BYTES) < 100
    assert faults(1) > 500, "which is seen where it is so"


@pytest.mark.slow
def test_one_long_docno_in_every_chunk_costs_bounded_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "MAX_DOCNO_BYTES", 32 * MEBIBYTE)
    problems = Problems("r")
    file = Generated(1000, lambda n: f"1 Q0 {'é' * 255 if n % 5000 == 0 else n} 1 1 t\n")
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableError, match="shorter docnos"):
            read_run(file, problems)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 80 * MEBIBYTE
