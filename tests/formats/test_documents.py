import io
import json
import re
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from judging.formats import sgml
from judging.formats.documents import MAX_TEXT, DocumentRecord, read_documents
from judging.formats.lines import Limits
from judging.formats.problems import Problems, UnreadableError
from tests.support.growth import LINEAR, growth

MEBIBYTE = 1 << 20


def read(data: str | bytes, **options: Any) -> tuple[list[DocumentRecord], Problems]:
    problems = Problems("d")
    raw = data.encode() if isinstance(data, str) else data
    return list(read_documents(io.BytesIO(raw), problems, **options)), problems


def errors(data: str | bytes) -> list[tuple[int | None, str, str]]:
    return [(p.line, p.field, p.message) for p in read(data)[1].errors]


@pytest.mark.parametrize("key", ["docno", "id", "doc_id", "_id"])
@pytest.mark.parametrize("text", ["text", "body", "contents"])
def test_json_documents_go_by_many_keys(key: str, text: str) -> None:
    data = json.dumps({key: "D-1", "title": "t", text: "a <b>b</b>\nc", "other": [1]})
    assert read(data) == ([DocumentRecord("D-1", "t", "a <b>b</b>\nc", 1)], Problems("d"))


TREC = """<DOC>
<DOCNO> FT-1 </DOCNO>
<HEADLINE>
FT  14 MAY / <b>Title</b> &amp;
more
</HEADLINE>
<TEXT>
First <F P=105>line</F>   \t
a < b and 2 > 1 &lt;tag&gt; &unknown; &#233;
</TEXT>
<DATE>not used</DATE>
<TEXT>second</TEXT>
</DOC>
<doc><docno>FT-2</docno><p>Everything but</p> the number</doc>
"""


def test_trec_documents_lose_their_tags_and_keep_their_text() -> None:
    documents, problems = read(TREC)
    text = "First  line\na < b and 2 > 1 <tag> &unknown; é\n\n\nsecond"
    assert documents == [
        DocumentRecord("FT-1", "FT 14 MAY / Title & more", text, 1),
        DocumentRecord("FT-2", "", "Everything but  the number", 14),
    ]
    assert (problems.errors, problems.warnings) == ([], [])


def test_trec_problems_have_the_line_of_their_field() -> None:
    data = (
        "<DOC>\n<TEXT>a</TEXT>\n</DOC>\n"  # 1-3
        "<DOC>\n\n<DOCNO>a b</DOCNO>\n<TEXT>a</TEXT></DOC>\n"  # 4-7
        "<DOC><DOCNO>1</DOCNO><TEXT>a</TEXT></DOC>\n"  # 8: good
        "<DOC>\n<DOCNO>1</DOCNO><TEXT>a</TEXT></DOC>\n"  # 9-10: again
        "<DOC><DOCNO>2</DOCNO><DOCNO>3</DOCNO></DOC>\n"  # 11
        "<DOC>\n<DOCNO>4</DOCNO>\n<TEXT>a\n"  # 12-14: not closed
        "<DOC><DOCNO>5</DOCNO><TEXT></TEXT></DOC>\n"  # 15: empty
    )
    assert errors(data) == [
        (1, "docno", "expected one <DOCNO> in a document, found none"),
        (
            6,
            "docno",
            "expected a docno without white space, control or invisible characters, found 'a b'",
        ),
        (10, "docno", "docno '1' is on line 8 already"),
        (11, "docno", "expected one <DOCNO> in a document, found 2"),
        (12, "", "expected </DOC> after the <DOC> of this line"),
    ]
    documents, problems = read(data)
    assert [document.docno for document in documents] == ["1", "5"]
    assert [(p.line, p.field, p.message) for p in problems.warnings] == [
        (15, "text", "document '5' has no text")
    ]


def test_nothing_outside_the_file_is_resolved() -> None:
    data = (
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;"><!ENTITY c SYSTEM "/etc/passwd">]>\n'
        "<DOC><DOCNO>1</DOCNO><TEXT>&b; &c; <img src='http://example.org'></TEXT></DOC>"
    )
    documents, problems = read(data)
    assert [document.text for document in documents] == ["&b; &c;"]
    assert problems.ok


def test_json_problems_have_line_and_field() -> None:
    lines = [
        '{"docno": "a", "text": "x"}',
        '{"text": "x"}',
        '{"docno": "/etc/passwd", "text": "x"}',
        '{"docno": "b", "text": 3}',
        '{"docno": "c", "text": "x\\u0000"}',
        '{"docno": "d", "title": "\\udc00", "text": "x"}',
        '{"docno": "a", "text": "y"}',
        "[" * 100_000,
        '{"docno": "e", "text": "", "title": "t"}',
        '{"docno": "f", "text": "a\\u000cb\\u001bc", "title": "t\\u0085"}',
    ]
    documents, problems = read("\n".join(lines))
    assert [(p.line, p.field) for p in problems.errors] == [
        *[(2, "docno"), (3, "docno"), (4, "text"), (5, "text"), (6, "title")],
        *[(7, "docno"), (8, "")],
    ]
    assert [(p.line, p.field, p.message) for p in problems.warnings] == [
        (9, "text", "document 'e' has no text"),
        (10, "title", "control characters were replaced by spaces"),
        (10, "text", "control characters were replaced by spaces"),
    ]
    assert documents[-1] == DocumentRecord("f", "t", "a b c", 10)
    assert [document.docno for document in documents] == ["a", "e", "f"]


@pytest.mark.slow
def test_a_text_is_bounded_however_it_is_written() -> None:
    full = "é" * (MAX_TEXT // 2)
    for ascii_only in (True, False):
        good = json.dumps({"docno": "1", "text": full}, ensure_ascii=ascii_only)
        assert [len(document.text) for document in read(good)[0]] == [MAX_TEXT // 2]
        bad = json.dumps({"docno": "1", "text": full + "x"}, ensure_ascii=ascii_only)
        message = f"expected at most {MAX_TEXT} bytes of text, found {MAX_TEXT + 1}"
        assert errors(bad) == [(1, "text", message)]
    body = ("x" * 999 + "\n") * 2200
    ends = "<DOC><DOCNO>1</DOCNO><TEXT>\n", "</TEXT></DOC>\n"
    found = errors(f"{ends[0]}{body}{ends[1]}{ends[0]}ok{ends[1]}")
    assert [(line, field) for line, field, _ in found] == [(1, "")]
    assert "characters between the tags" in found[0][2]


def test_limits_of_the_caller_hold() -> None:
    data = json.dumps({"docno": "1", "text": "x" * 2 * MEBIBYTE})
    assert read(data, limits=Limits(max_bytes=10 * MEBIBYTE))[1].error_count == 1
    with pytest.raises(UnreadableError, match="lines of at most 1048576 bytes"):
        read(data, limits=Limits(max_line=MEBIBYTE))
    rows = "".join(json.dumps({"docno": str(n), "text": "x"}) + "\n" for n in range(6))
    with pytest.raises(UnreadableError, match="at most 5 records") as raised:
        read(rows, max_documents=5)
    assert raised.value.problem.line == 6


@pytest.mark.parametrize("data", ["", "\n", "<xml></xml>", "\ufeff"])
def test_a_file_without_a_document_is_an_error(data: str) -> None:
    assert errors(data) == [(None, "", "expected documents, found none in the file")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "inside",
    [
        *("<", "<b>", "<!--", "</", "<a href='", "&", "&#", "<DOCNO>", "<TEXT>", "<TEXT></TEXT>"),
        *("</TEXT ", "<TEXT ", " ", "\t", "<HEADLINE>x</HEADLINE>", "<b><i>", "<!", "<?"),
    ],
)
def test_no_markup_takes_more_than_linear_time(inside: str) -> None:
    assert growth(markup_of(inside), MAX_TEXT // 16) < LINEAR


def markup_of(inside: str) -> Callable[[int], None]:
    def work(size: int) -> None:
        markup = inside * (size // len(inside))
        read(f"<DOC>\n{markup}\n</DOC>\n", limits=Limits(max_line=2 * MEBIBYTE))
        read(f"<DOC><DOCNO>1</DOCNO><TEXT>\n{markup}\n</TEXT></DOC>\n")

    return work


@pytest.mark.slow
def test_tags_that_are_looked_for_to_the_end_from_everywhere_are_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sgml, "_TAG", re.compile("<[^>]*>"))
    assert growth(markup_of("<"), 4096) > LINEAR


@pytest.mark.slow
def test_documents_are_read_as_a_stream() -> None:
    class Documents:
        """A file of 64 MiB, made as it is read."""

        def __init__(self) -> None:
            self.number = 0

        def read(self, size: int, /) -> bytes:
            self.number += 1
            record = {"docno": str(self.number), "text": "x" * 60_000}
            return b"" if self.number > 1100 else json.dumps(record).encode() + b"\n"

    tracemalloc.start()
    try:
        count = sum(1 for _ in read_documents(Documents(), Problems("d")))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 1100
    assert peak < 8 * MEBIBYTE
