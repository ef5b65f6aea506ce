"""No file costs more than its length: the work of every reader grows with what it reads.

Processor time of two sizes is compared, so that a slow or busy machine changes nothing: eight
times the input may cost 8 times, and would cost 64 times where the work is quadratic.
"""

import io
import time
from collections.abc import Callable, Iterable

import pytest

from estimation.formats.predictions import read_predictions
from estimation.formats.runs import read_run
from judging.formats.documents import read_documents
from judging.formats.problems import Problems, UnreadableError
from judging.formats.qrels import read_qrels
from judging.formats.sgml import Block
from judging.formats.topics import read_topics

SMALL, TIMES = 8 * 1024, 8
TOO_MUCH = 3 * TIMES


def _topic(line: str) -> Callable[[int], bytes]:
    head = "<top>\n<num> 1\n<title> one\n"
    return lambda size: (head + line * (size // len(line)) + "\n</top>\n").encode()


def _document(line: str) -> Callable[[int], bytes]:
    head = "<DOC>\n<DOCNO>a</DOCNO>\n"
    return lambda size: (head + line * (size // len(line)) + "\n</DOC>\n").encode()


def _lines(line: str) -> Callable[[int], bytes]:
    return lambda size: (line * (size // len(line))).encode()


HOSTILE_TOPICS = {
    "unknown sections": _topic("<a>\n"),
    "unknown sections in one line": _topic("<desc><narr "),
    "closing tags": _topic("</title>"),
    "open tags": _topic("<title"),
    "indented lines": _topic("\n" + " " * 40),
    "empty lines": _topic("\n"),
    "references": _topic("&#"),
    "declarations": _topic("<!"),
    "one endless line": _topic(" "),
    "records": _lines("<top>\n<num> 1 <title> a </top>\n"),
    "records never closed": _lines("<top>\n"),
    "tabs": _lines("1\t"),
    "braces": _lines('{"a":'),
    "quotes": _lines('{"a": "\\u0041'),
}
HOSTILE_DOCUMENTS = {
    "sections never closed": _document("<TEXT>"),
    "sections": _document("<TEXT>a</TEXT>\n"),
    "titles": _document("<TITLE></TITLE><HL>"),
    "open tags": _document("<HEAD "),
    "docnos": _document("<DOCNO>a</DOCNO>\n"),
    "white space": _document("\n \n"),
}


def _exhaust(records: Iterable[object]) -> None:
    try:
        for _ in records:
            pass
    except UnreadableError:
        pass


def cost(read: Callable[[bytes], Iterable[object]], content: bytes) -> float:
    """Seconds of processor time of this thread, the least of three."""
    seconds = []
    for _ in range(3):
        started = time.thread_time()
        _exhaust(read(content))
        seconds.append(time.thread_time() - started)
    return min(seconds)


def growth(
    read: Callable[[bytes], Iterable[object]], made: Callable[[int], bytes], small: int = SMALL
) -> float:
    return cost(read, made(small * TIMES)) / max(cost(read, made(small)), 1e-4)


def topics(content: bytes) -> Iterable[object]:
    return read_topics(io.BytesIO(content), Problems("f"))


def documents(content: bytes) -> Iterable[object]:
    return read_documents(io.BytesIO(content), Problems("f"))


def qrels(content: bytes) -> Iterable[object]:
    yield read_qrels(io.BytesIO(content), Problems("f"))


def run(content: bytes) -> Iterable[object]:
    yield read_run(io.BytesIO(content), Problems("f"))


def predictions(content: bytes) -> Iterable[object]:
    yield read_predictions(io.BytesIO(content), Problems("f"), max_grade=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE_TOPICS)
def test_topics_cost_what_their_length_is(name: str) -> None:
    assert growth(topics, HOSTILE_TOPICS[name]) < TOO_MUCH


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE_DOCUMENTS)
def test_documents_cost_what_their_length_is(name: str) -> None:
    assert growth(documents, HOSTILE_DOCUMENTS[name]) < TOO_MUCH


@pytest.mark.slow
@pytest.mark.parametrize("line", ["1 0 a 1\n", "1 " * 20, "\n", "1 0 a 1", " "])
def test_qrels_cost_what_their_length_is(line: str) -> None:
    assert growth(qrels, _lines(line)) < TOO_MUCH


@pytest.mark.slow
@pytest.mark.parametrize("line", ["1 Q0 a 1 1.0 s\n", "1 Q0 a 1 1.0 ", "1 Q0 a 1 \n", "\\ \n"])
def test_runs_cost_what_their_length_is(line: str) -> None:
    assert growth(run, _lines(line)) < TOO_MUCH


@pytest.mark.slow
@pytest.mark.parametrize("line", ["1 a 1\n", "1 a 1 ", "1 a\n", "1 a .1 .2 .3 .4\n"])
def test_predicted_grades_cost_what_their_length_is(line: str) -> None:
    assert growth(predictions, _lines(line)) < TOO_MUCH


@pytest.mark.slow
def test_a_reader_that_counts_lines_from_the_start_for_every_section_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def line_at(block: Block, position: int) -> int:
        body = "\n".join(block.texts)
        return block.numbers[body.count("\n", 0, position)]

    monkeypatch.setattr(Block, "line_at", line_at)

    assert growth(topics, HOSTILE_TOPICS["unknown sections"], SMALL // 2) >= TOO_MUCH


def test_lines_of_a_record_are_numbered_as_in_the_file() -> None:
    block = Block(3, [3, 4, 7], ["", "ab", "c"])

    numbers = [block.line_at(position) for position in range(len("\nab\nc") + 1)]

    assert numbers == [3, 4, 4, 4, 7, 7]
