"""Whatever the bytes, the readers end with records, problems or the one declared exception."""

import gzip
import io
import os
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estimation.formats.predictions as predictions_module
import estimation.formats.runs as runs_module
import judging.formats.cells as cells_module
import judging.formats.columns as columns_module
import judging.formats.qrels as qrels_module
from estimation.formats.predictions import PredictionFile, read_predictions, save_predictions
from estimation.formats.runs import RunFile, read_run, save_run
from judging.formats.columns import Lines
from judging.formats.documents import read_documents
from judging.formats.guess import guess_kind
from judging.formats.lines import BinaryFile
from judging.formats.problems import Problems, UnreadableError, id_problem, text_problem
from judging.formats.qrels import grades_by_pair, qrels_lines, read_qrels
from judging.formats.topics import read_topics
from tests.formats.run_files import run_lines

FUZZ = settings(deadline=None, max_examples=int(os.environ.get("EVALSITE_FUZZ_EXAMPLES", "300")))

TOPICS = (
    "<top>\n\n<num> Number: 401 \n<title> foreign minorities, Germany\n\n"
    "<desc> Description: \nWhat language\n\n<narr> Narrative: \nA relevant &amp; one\n\n</top>\n"
    * 2
)
TOPICS_TSV = "id\ttitle\tdescription\n401\ta b\tc\n402\tb\r\n403\té\td\n"
TOPICS_JSON = '{"id": "401", "title": "a\\u00e9", "narrative": null}\n{"qid": 402, "query": "x"}\n'
DOCS = (
    "<DOC>\n<DOCNO> FT-1 </DOCNO>\n<HEADLINE>a</HEADLINE>\n<TEXT>\nb <i>c</i>\n</TEXT>\n</DOC>\n"
    "<DOC>\n<DOCNO> FT-2 </DOCNO>\n<p>x&lt;\n</DOC>\n"
)
DOCS_JSON = '{"docno": "FT-1", "title": "t", "text": "x\\n"}\n{"_id": "2", "contents": "y"}\n'
QRELS = "401 0 FT-1 1\n401 0 FT-2 0\n402 0 FT-1 -1\n" * 2
RUN = "".join(f"40{n % 3} Q0 FT-{n} {n} {9.5 - n} tag\n" for n in range(12))
LETTERS = RUN.replace("FT", "Straße-東").replace("tag", "Müller")
GRADES = "".join(f"40{n % 3} FT-{n} {n / 4}\n" for n in range(12))
PROBABILITIES = "".join(f"40{n % 3} FT-{n} 0.{n:02} 0 0.{99 - n:02} 0.01\n" for n in range(12))
TEXTS = (TOPICS, TOPICS_TSV, TOPICS_JSON, DOCS, DOCS_JSON, QRELS, RUN, GRADES, PROBABILITIES)
SEEDS = [text.encode() for text in TEXTS]

PIECES = st.sampled_from(
    [
        *(b"\0", b"\n", b"\r", b"\r\n", b"\t", b" ", b"\xef\xbb\xbf", b"\xff", b"\xed\xa0\x80"),
        *(b"\xc2\xa0", b"\xe2\x80\xa8", b"\x85", b"\x1b", b"<", b">", b"</", b"<top>", b"</top>"),
        *(b"<DOC>", b"</DOC>", b"<DOCNO>", b"</DOCNO>", b"<TEXT>", b"<num>", b"<title>", b"&#0;"),
        *(b"&#x110000;", b"&#55296;", b"&amp;", b'"', b"\\", b"\\ud800", b"\\u0000", b"{", b"[["),
        *(b"}", b"null", b"NaN", b"1e999", b"9" * 4301, b"-", b"inf", b"1_0", b"\xd9\xa1", b"../"),
        *(b"~", b"/", b"C:", b"\x1f\x8b", b"=", b"0x1", b"1.5", b"tag2", b'"id":', b"Number:"),
        *(b"x" * 300, b"401", b"FT-1", "ü".encode() * 128, "u\u0308".encode(), "東".encode()),
        *(b"\xc2\x85", "\u2003".encode(), "\u200b".encode(), "\ue000".encode(), b"\xbc", b"\xf5"),
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A real-looking file with bytes put in, taken out, doubled or moved; gzipped now and then."""
    data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 6))):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
        action = draw(st.integers(0, 3))
        piece = draw(st.one_of(PIECES, st.binary(max_size=4)))
        if action == 0:
            data = data[:start] + piece + data[start:]
        elif action == 1:
            data = data[:start] + piece + data[min(end, start + 8) :]
        elif action == 2:
            data = data[:end] + data[start:end] + data[end:]
        else:
            data = data[:start] + data[end:] + data[start:end]
    if draw(st.integers(0, 4)) == 0:
        data = gzip.compress(data)
        cut = draw(st.integers(0, len(data)))
        data = draw(st.sampled_from([data, data[:cut], data[:cut] + b"\x55" + data[cut + 1 :]]))
    return data


BLANKS = st.sampled_from([b" ", b"\t", b"  ", b" \t "])

Reader = Callable[[BinaryFile, Problems], Any]
READERS: list[Reader] = [
    lambda file, problems: list(read_topics(file, problems)),
    lambda file, problems: list(read_topics(file, problems, format="trec")),
    lambda file, problems: list(read_topics(file, problems, format="jsonl")),
    lambda file, problems: list(read_topics(file, problems, format="tsv")),
    lambda file, problems: list(read_documents(file, problems)),
    lambda file, problems: list(read_documents(file, problems, format="trec")),
    read_qrels,
    lambda file, problems: read_run(file, problems, topics=["400", "401"]),
    lambda file, problems: read_predictions(file, problems, max_grade=3, topics=["400", "401"]),
]


def read(reader: Reader, data: bytes) -> tuple[Any, Problems]:
    problems = Problems("f")
    try:
        found = reader(io.BytesIO(data), problems)
    except UnreadableError:
        found = None
    assert found or not problems.ok
    check_storable(*(problem.message for problem in problems.errors + problems.warnings))
    return found, problems


def check_storable(*texts: str) -> None:
    for text in texts:
        assert text_problem(text) is None
        text.encode()


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS, ids=range(len(READERS)))
def test_random_bytes_raise_nothing_else(reader: Reader) -> None:
    @FUZZ
    @given(st.binary(max_size=200))
    def run(data: bytes) -> None:
        read(reader, data)
        guess_kind("x", data)

    run()


def test_a_topic_of_nothing_is_no_crash() -> None:
    _, problems = read(READERS[0], b"<top>\nx\n</top>\n")
    assert [p.field for p in problems.errors] == ["topic", "title"]


@pytest.mark.slow
@FUZZ
@given(mutated())
def test_mutated_files_raise_nothing_else_and_give_sound_records(data: bytes) -> None:
    guess_kind("topics", data)
    for reader in READERS[:4]:
        for topic in read(reader, data)[0] or []:
            assert id_problem(topic.topic_id) is None
            assert topic.title.strip()
            check_storable(topic.title, topic.description, topic.narrative)
    for reader in READERS[4:6]:
        for document in read(reader, data)[0] or []:
            assert id_problem(document.docno) is None
            check_storable(document.title, document.text)
    judged = read(READERS[6], data)[0]
    pairs = {} if judged is None else grades_by_pair(judged)
    rows = [(topic, docno, grade) for (topic, docno), grade in pairs.items()]
    assert len(list(qrels_lines(rows))) == len(judged or ())
    check_run(read(READERS[7], data)[0])
    check_predictions(read(READERS[8], data)[0])


def check_run(run: RunFile | None) -> None:
    if run is not None:
        assert len(list(run_lines(run))) == run.lines - run.dropped == len(run.scores)
        assert set(run.lists.topics) <= {"400", "401"}


def check_predictions(found: PredictionFile | None) -> None:
    if found is not None:
        assert set(found.topics) <= {"400", "401"}
        assert all(id_problem(docno.decode()) is None for docno in found.docnos.tolist())
        assert found.expected_grades().min() >= 0
        assert found.expected_grades().max() <= 3
        assert abs(found.distributions().sum(axis=1) - 1.0).max() < 1e-9


COSTS = "topic docno cost\n" + "".join(f"40{n % 3} FT-{n} {n + 0.5}\n" for n in range(12))


@st.composite
def mutated_lines(draw: st.DrawFn, text: str) -> bytes:
    """Lines with cells changed, blanks of several kinds, and ends of several kinds."""
    lines = text.encode().splitlines(keepends=True)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        cells = lines[at].split(b" ")
        place = draw(st.integers(0, len(cells) - 1))
        cells[place] = draw(st.one_of(PIECES, st.binary(max_size=3), st.just(cells[place] + b"1")))
        lines[at] = draw(BLANKS).join(cells)
    ending = draw(st.sampled_from([b"\n", b"\r\n", b" \n", b"\n\n"]))
    return b"".join(lines).replace(b"\n", ending)


def saved(found: RunFile | PredictionFile | Lines | None) -> bytes:
    """All that was read, as bytes."""
    file = io.BytesIO()
    if isinstance(found, RunFile):
        save_run(file, found)
    elif isinstance(found, PredictionFile):
        save_predictions(file, found)
    elif found is not None:
        columns = (found.topic, found.number, found.values)
        told = [found.names, found.docno.tolist(), *(column.tolist() for column in columns)]
        return repr(told).encode()
    return file.getvalue()


WAYS: dict[str, tuple[str, ModuleType, Reader]] = {
    "runs": (RUN, runs_module, READERS[7]),
    "runs of letters": (LETTERS, runs_module, READERS[7]),
    "qrels": (QRELS, qrels_module, READERS[6]),
    "qrels of letters": (QRELS.replace("FT", "文書ü"), qrels_module, READERS[6]),
    "qrels of a scale": (
        QRELS,
        qrels_module,
        lambda f, p: read_qrels(f, p, grades=[-1, 0, 1]),
    ),
    "grades": (GRADES, predictions_module, READERS[8]),
    "grades of letters": (GRADES.replace("FT", "😀"), predictions_module, READERS[8]),
    "probabilities": (PROBABILITIES, predictions_module, READERS[8]),
    "costs": (COSTS, predictions_module, READERS[8]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_reading_by_chunk_and_by_line_agree(name: str) -> None:
    text, module, reader = WAYS[name]

    @FUZZ
    @given(mutated_lines(text))
    def run(data: bytes) -> None:
        assert_ways_agree(module, reader, data)

    run()


def assert_ways_agree(module: ModuleType, reader: Reader, data: bytes) -> None:
    fast, fast_problems = read(reader, data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "split_cells", lambda *_: None)
        slow, slow_problems = read(reader, data)
    assert fast_problems == slow_problems, data
    assert saved(fast) == saved(slow), data


HOSTILE = [
    *(
        each.encode()
        for each in "\x80\x85\x9f\xa0\xad\u0301\u0661\u1680\u2003\u200b\u2028\u202e\u212a"
    ),
    *(each.encode() for each in "\u3000\ufeff\ue000\uffff\U000e0001\U0010ffffé東\uff11\uff0e"),
    *(b"\xff", b"\xc3", b"\xbc", b"\xed\xa0\x80", b"\xc0\xa0", b"\xf4\x90\x80\x80"),
]


def with_a_letter_somewhere(text: str, letter: bytes) -> Iterator[bytes]:
    """A letter before, in, behind and in the place of each cell of a line, and between two."""
    lines = text.encode().splitlines(keepends=True)
    cells = lines[5].split(b" ")
    for place, cell in enumerate(cells):
        for changed in (letter + cell, cell[:1] + letter + cell[1:], cell.strip() + letter, letter):
            end = b"\n" if place == len(cells) - 1 else b""
            other = [*cells[:place], changed.strip(b"\n") + end, *cells[place + 1 :]]
            yield b"".join([*lines[:5], b" ".join(other), *lines[6:]])
    yield b"".join([*lines[:5], letter.join(cells), *lines[6:]])
    yield b"".join([*lines[:5], letter, b"\n", *lines[5:]])


@pytest.mark.parametrize("name", WAYS)
def test_whatever_letter_stands_anywhere_is_read_as_by_line(name: str) -> None:
    text, module, reader = WAYS[name]
    for letter in HOSTILE:
        for data in with_a_letter_somewhere(text, letter):
            assert_ways_agree(module, reader, data)


@pytest.mark.parametrize("twin", [lambda _: False, lambda text: "\xa0" in text])
def test_letters_that_nobody_sees_taken_for_others_are_found_out(
    twin: Callable[[str], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells_module, "has_invisible", twin)
    with pytest.raises(AssertionError):
        test_whatever_letter_stands_anywhere_is_read_as_by_line("runs")


@pytest.mark.parametrize("name", [each for each in WAYS if each != "costs"])
def test_sound_files_are_not_read_by_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, _, reader = WAYS[name]
    for module in (columns_module, qrels_module):
        for decode in ("decode_line", "chunk_lines"):
            monkeypatch.setattr(module, decode, None, raising=False)
    for data in (text, text.replace(" ", " \t"), text.replace("\n", "\r\n"), text.rstrip("\n")):
        _, problems = read(reader, data.encode())
        assert problems.ok, problems.errors
