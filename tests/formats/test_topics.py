import io
import json
from typing import Any

import pytest

from judging.formats.problems import Problems, UnreadableError
from judging.formats.topics import MAX_TEXT, MAX_TITLE, TopicRecord, read_topics


def read(data: str | bytes, **options: Any) -> tuple[list[TopicRecord], Problems]:
    problems = Problems("t")
    raw = data.encode() if isinstance(data, str) else data
    return list(read_topics(io.BytesIO(raw), problems, **options)), problems


def errors(data: str | bytes, **options: Any) -> list[tuple[int | None, str, str]]:
    _, problems = read(data, **options)
    return [(p.line, p.field, p.message) for p in problems.errors]


def jsonl(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


TREC = """<?xml version="1.0"?>
<top>

<num> Number: 401
<title> foreign minorities,
 Germany

<desc> Description:
What is
it?

Second &amp; last paragraph.

<narr> Narrative:
A relevant document &lt;b&gt; has <i>it</i>.
</top>
<TOP><NUM>402</NUM><TITLE>Topic: genes</TITLE></TOP>
"""


def test_trec_topics_are_read_with_and_without_closing_tags() -> None:
    topics, problems = read(TREC)
    description = "What is it?\n\nSecond & last paragraph."
    narrative = "A relevant document <b> has it ."
    assert topics == [
        TopicRecord("401", "foreign minorities, Germany", description, narrative, 2),
        TopicRecord("402", "genes", "", "", 17),
    ]
    assert (problems.errors, problems.warnings) == ([], [])


def test_trec_problems_have_the_line_of_their_field() -> None:
    data = (
        "<top>\n<num> Number: 1\n<title>\n</top>\n"  # 1-4: no title
        "<top>\n<title> a\n</top>\n"  # 5-7: no number
        "<top>\n\n<num> Number: a b\n<title> a\n</top>\n"  # 8-12: bad id
        "<top>\n<num> 2\n<title> a\n"  # 13-15: not closed
        "<top>\n<num> 3\n<title> a\n<title> b\n</top>\n"  # 16-20: two titles
        "</top>\n"  # 21
        "<top>\n<num> 4\n<title> a\n</top>\n"  # 22-25: good
        "<top>\n<num> 4\n<title> b\n</top>\n"  # 26-29: again
        "<top>\n<num> 5"  # 30
    )
    assert errors(data) == [
        (3, "title", "expected a title, found none"),
        (5, "topic", "expected a topic id, found none"),
        (
            10,
            "topic",
            "expected a topic without white space, control or invisible characters, found 'a b'",
        ),
        (13, "", "expected </top> after the <top> of this line"),
        (19, "title", "expected one <title> in a topic, found another"),
        (21, "", "expected <top> before </top>"),
        (27, "topic", "topic '4' is on line 23 already"),
        (30, "", "expected </top> after the <top> of this line"),
    ]
    assert [topic.topic_id for topic in read(data)[0]] == ["4"]


def test_text_and_sections_that_are_not_used_are_told_once() -> None:
    top = "<top>\n<num> {}\n<dom> Law\n<title> a\n<con> b\n</top>\nnotes\n"
    topics, problems = read(top.format(1) + top.format(2))
    assert [topic.title for topic in topics] == ["a", "a"]
    assert [(p.line, p.message) for p in problems.warnings] == [
        (3, "the section <dom> is not used"),
        (5, "the section <con> is not used"),
        (7, "text outside <top> and </top> is not used"),
    ]


def test_entities_and_external_references_resolve_to_nothing() -> None:
    data = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>\n<top><num>1<title>&a; b</top>\n'
    topics, problems = read(data)
    assert problems.ok
    assert [topic.title for topic in topics] == ["&a; b"]


def test_tab_separated_topics_have_two_to_four_columns() -> None:
    topics, problems = read("1\ta b\n\n2\tc\td\r\n3\te\tf\tg")
    assert problems.ok
    assert topics == [
        TopicRecord("1", "a b", "", "", 1),
        TopicRecord("2", "c", "d", "", 3),
        TopicRecord("3", "e", "f", "g", 4),
    ]


@pytest.mark.parametrize("name", ["id", "topic", "qid", "Topic_ID"])
def test_a_header_names_the_columns(name: str) -> None:
    topics, problems = read(f"{name}\tnarrative\tquery\n1\tn\tt\n")
    assert problems.ok
    assert topics == [TopicRecord("1", "t", "", "n", 2)]


@pytest.mark.parametrize("header", ["id\ttext\tother", "id\tdescription", "id\ttitle\tquery"])
def test_a_header_of_other_columns_is_refused(header: str) -> None:
    with pytest.raises(UnreadableError) as raised:
        read(f"{header}\n1\ta\tb\n")
    assert (raised.value.problem.line, raised.value.problem.field) == (1, "columns")


def test_tab_separated_problems_have_line_and_field() -> None:
    wanted = "expected 2 to 4 columns separated by tabs, found"
    assert errors("1\ta\n2 b\n3\t\n\tc\n1\td\n4\ta\tb\tc\td\n../5\te\n") == [
        (2, "columns", f"{wanted} 1"),
        (3, "title", "expected a title, found none"),
        (4, "topic", "expected a topic of 1 to 255 characters, found ''"),
        (5, "topic", "topic '1' is on line 1 already"),
        (6, "columns", f"{wanted} 5"),
        (
            7,
            "topic",
            "expected a topic that is no path (no '.' or '..' as a step), found '../5'",
        ),
    ]


@pytest.mark.parametrize("key", ["id", "topic", "topic_id", "qid", "query_id", "number"])
@pytest.mark.parametrize("title", ["title", "query", "text"])
@pytest.mark.parametrize("value", ["7", 7])
def test_json_topics_go_by_many_keys(key: str, title: str, value: object) -> None:
    record = {key: value, title: " a ", "description": "d", "narrative": None}
    assert read(jsonl(record)) == ([TopicRecord("7", "a", "d", "", 1)], Problems("t"))


def test_json_problems_have_line_and_field() -> None:
    lines = [
        '{"id": 1, "title": "a"}',
        '{"title": "a"}',
        '{"id": true, "title": "a"}',
        '{"id": 2, "title": ["a"]}',
        '{"id": 3}',
        '{"id": 4, "title": "a\\u0000"}',
        '{"id": 5, "title": "a", "narrative": "\\ud800"}',
        '{"id": 6, "id": 7, "title": "a"}',
        '["id"]',
        '{"id": 8, "title": "a"',
        '{"id": 9, "title": NaN}',
        '{"id": ' + "9" * 5000 + ', "title": "a"}',
        '{"id": 1, "title": "b"}',
        '{"id": "\\ud800", "title": "b"}',
        '{"a":' * 200_000,
    ]
    found = [(line, field) for line, field, _ in errors("\n".join(lines))]
    assert found == [
        *[(2, "topic"), (3, "topic"), (4, "title"), (5, "title"), (6, "title")],
        *[(7, "narrative"), (8, ""), (9, ""), (10, ""), (11, ""), (12, ""), (13, "topic")],
        *[(14, "topic"), (15, "")],
    ]
    messages = {line: message for line, _, message in errors("\n".join(lines))}
    assert messages[7] == "expected Unicode text, found the lone surrogate U+D800"
    assert messages[8] == "expected a JSON object: the key 'id' is there twice"
    assert messages[12] == "expected a JSON object: a number of 5000 digits"
    assert messages[15] == "expected a JSON object, found one nested too deeply"


@pytest.mark.parametrize("data", ["", "\n \n", "<topics>\n</topics>\n", "id\ttitle\n"])
def test_a_file_without_a_topic_is_an_error(data: str) -> None:
    assert errors(data) == [(None, "", "expected topics, found none in the file")]


def test_texts_are_bounded_in_bytes() -> None:
    good = {"id": 1, "title": "é" * (MAX_TITLE // 2), "description": "x" * MAX_TEXT}
    assert read(jsonl(good))[1].ok
    bad = {"id": 1, "title": "é" * (MAX_TITLE // 2) + "x", "description": "x" * (MAX_TEXT + 1)}
    assert errors(jsonl(bad)) == [
        (1, "title", "expected at most 10000 bytes of text, found 10001"),
        (1, "description", "expected at most 65536 bytes of text, found 65537"),
    ]


def test_the_number_of_topics_is_bounded() -> None:
    data = "".join(f"{n}\ta\n" for n in range(12))
    assert len(read(data, max_topics=12)[0]) == 12
    with pytest.raises(UnreadableError, match="expected at most 11 records") as raised:
        read(data, max_topics=11)
    assert raised.value.problem.line == 12


def test_the_format_can_be_given() -> None:
    assert [t.title for t in read("<1>\ta\n", format="tsv")[0]] == ["a"]
