"""Comments before a run, and the ir_metadata in them, whatever is in it."""

import io

import pytest

from estimation.formats.comment_head import MAX_HEAD_BYTES, HeadError, read_metadata
from estimation.formats.runs import RunFile, read_run
from judging.formats.guess import Guess, guess_kind
from judging.formats.problems import Problems, UnreadableError

HEAD = b"""# ir_metadata.start
# schema-version: 0.1
# tag: bm25
# actor:
#   name: A. Person
#   team: The Team
#   fields:
#   - nlp
#   - ir
# method:
#   retrieval:
#     - name: bm25
#       b: 0.4
#     - name: rm3
# ir_metadata.end
"""
LINES = b"1 Q0 a 1 2.0 bm25\n1 Q0 b 2 1.0 bm25\n"


def read(content: bytes) -> tuple[RunFile | None, Problems]:
    problems = Problems("a.run")
    return read_run(io.BytesIO(content), problems), problems


def lines(text: str) -> list[bytes]:
    return [f"# {line}\n".encode() for line in text.splitlines()]


def test_what_the_head_says_is_kept_beside_the_run() -> None:
    run, problems = read(HEAD + LINES)
    assert run is not None
    assert problems.warning_count == 0
    assert dict(run.metadata) == {
        "schema-version": "0.1",
        "tag": "bm25",
        "actor / name": "A. Person",
        "actor / team": "The Team",
        "actor / fields": "nlp, ir",
        "method / retrieval / name": "bm25, rm3",
        "method / retrieval / b": "0.4",
    }


def test_the_run_is_the_same_without_its_head() -> None:
    with_head, alone = read(HEAD + LINES)[0], read(LINES)[0]
    assert with_head is not None
    assert alone is not None
    assert with_head.lists.docnos.tolist() == alone.lists.docnos.tolist()
    assert (with_head.lines, with_head.tag) == (alone.lines, alone.tag)


def test_lines_keep_their_numbers_below_a_head() -> None:
    _, problems = read(HEAD + b"1 Q0 a 1 2.0 bm25\n1 Q0 b 2 what bm25\n")
    assert [each.line for each in problems.errors] == [17]


def test_a_comment_further_down_is_an_error() -> None:
    _, problems = read(LINES + b"# a remark\n")
    assert [(each.line, each.field) for each in problems.errors] == [(3, "columns")]


def test_a_topic_may_begin_with_the_sign() -> None:
    run, problems = read(b"#1 Q0 a 1 2.0 t\n#1 Q0 b 2 1.0 t\n")
    assert problems.ok
    assert run is not None
    assert (run.lists.topics, run.lines) == (("#1",), 2)


def test_comments_that_are_no_metadata_are_passed_over() -> None:
    run, problems = read(b"# made on a Monday: by hand\n# [what\n" + LINES)
    assert run is not None
    assert (run.metadata, problems.warning_count) == ((), 0)


HOSTILE = {
    "aliases": "ir_metadata.start\na: &x [1, 1]\nb: &y [*x, *x]\nc: [*y, *y]",
    "a merge": "ir_metadata.start\na: &x {b: 1}\nc: {<<: *x}",
    "depth": "ir_metadata.start\na: " + "[" * 500,
    "many": "ir_metadata.start\na: [" + "1, " * 500 + "]",
    "a key that is a list": "ir_metadata.start\n? [a, b]\n: c",
    "a list": "ir_metadata.start\n- a\n- b",
    "a word": "ir_metadata.start\nword",
    "no YAML": "ir_metadata.start\na: b: c",
    "a large one": "ir_metadata.start\n" + "a: b\n" * (MAX_HEAD_BYTES // 4),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_yaml_is_refused_by_name(text: str) -> None:
    with pytest.raises(HeadError):
        read_metadata(lines(text))


def test_what_cannot_be_read_keeps_no_run_out() -> None:
    run, problems = read(b"".join(lines(HOSTILE["aliases"])) + LINES)
    assert run is not None
    assert run.metadata == ()
    assert "anchors" in problems.warnings[0].message


def test_tags_construct_nothing() -> None:
    """Loaded and not parsed, each of these would be made, or refused as unknown."""
    text = "ir_metadata.start\na: !!python/object/apply:time.sleep [30]\nb: 2001-99-99\nc: 0o9_"
    assert read_metadata(lines(text)) == [("a", "30"), ("b", "2001-99-99"), ("c", "0o9_")]


def test_a_head_without_end_is_an_error_of_the_file() -> None:
    problems = Problems("a.run")
    content = b"# x\n" * (MAX_HEAD_BYTES // 4 + 1) + LINES
    with pytest.raises(UnreadableError):
        read_run(io.BytesIO(content), problems)
    assert "comments before the run" in problems.errors[0].message


def test_values_hold_nothing_that_a_database_refuses() -> None:
    found = read_metadata([b"# ir_metadata.start\n", b"# a: x\x00y\xff z\n"])
    assert all("\x00" not in value for _, value in found)


def test_a_run_below_comments_is_known_as_one() -> None:
    found = guess_kind("x", HEAD + LINES)
    assert found == Guess("run", "trec")
    assert found is not None
    assert "below 15 lines of comments" in found.why
    assert guess_kind("x", b"# a\tb\n1\tc\n") == Guess("topics", "tsv")
