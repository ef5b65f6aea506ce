import json

import pytest

from judging.formats.problems import (
    MAX_ERRORS,
    Problems,
    UnreadableError,
    id_problem,
    line_problem,
    show,
    text_problem,
)

GOOD_IDS = [
    *("401", "FBIS4-20472", "clueweb12-0000tw-05-12114", "a/b", "http://example.org/a?b=c#d"),
    *("a..b", "_x", "1", "é", "文書1", "x" * 255, "10.1000/182", "a~b", "doc:1"),
]
BAD_IDS = {
    "": "of 1 to 255 characters",
    "x" * 256: "of 1 to 255 characters",
    "a b": "without white space",
    "a\tb": "without white space",
    "a\u00a0b": "without white space",
    "a\u2028b": "without white space",
    "a\x00b": "without white space, control",
    "a\x9fb": "without white space, control",
    "a\u202eb": "invisible",
    "a\u200bb": "invisible",
    "\ufeffa": "invisible",
    "a\ud800b": "invisible",
    "/etc/passwd": "that is no path",
    "~root": "that is no path",
    "..": "that is no path",
    ".": "that is no path",
    "../x": "that is no path",
    "a/../b": "that is no path",
    "a/..": "that is no path",
    "a\\b": "no backslash",
    "C:x": "no drive letter",
    "c:": "no drive letter",
}


@pytest.mark.parametrize("text", GOOD_IDS)
def test_good_ids_are_accepted(text: str) -> None:
    assert id_problem(text) is None


@pytest.mark.parametrize(("text", "reason"), BAD_IDS.items(), ids=ascii)
def test_bad_ids_are_refused_saying_what_was_expected(text: str, reason: str) -> None:
    message = id_problem(text, "topic")
    assert message is not None
    assert message.startswith("expected a topic ")
    assert reason in message
    assert message.isprintable()
    message.encode()


@pytest.mark.parametrize("text", ["", "a\tb\nc\r\n", "naïve 文書 😀", "\u2028"])
def test_ordinary_text_is_accepted(text: str) -> None:
    assert text_problem(text) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [("a\0", "U+0000"), ("\x1b[1m", "U+001B"), ("\x7f", "U+007F"), ("\x85", "U+0085")],
)
def test_control_characters_are_named(text: str, code: str) -> None:
    assert text_problem(text) == f"expected text without control characters, found {code}"


@pytest.mark.parametrize("text", ["", "naïve 文書 😀", "👩\u200d🚀", "نمی\u200cخواهم", "שלום (2)"])
def test_ordinary_names_are_one_line(text: str) -> None:
    assert line_problem(text) is None


@pytest.mark.parametrize("sign", "\t\n\r\0\x1b\u2028\u202e\u2066\udfff")
def test_what_breaks_or_turns_a_line_is_named(sign: str) -> None:
    assert f"U+{ord(sign):04X}" in str(line_problem(f"a{sign}b"))


def test_lone_surrogates_are_named() -> None:
    assert text_problem("é\udfff") == "expected Unicode text, found the lone surrogate U+DFFF"


def test_fifty_problems_of_each_severity_are_kept_and_all_are_counted() -> None:
    problems = Problems("a.txt")
    for line in range(1, 121):
        problems.error(line, "docno", "bad")
        problems.warning(line, "rank", "odd")
    found = problems.as_dict()
    assert (found["error_count"], found["warning_count"]) == (120, 120)
    assert [each["line"] for each in found["errors"]] == list(range(1, 51))
    assert [each["line"] for each in found["warnings"]] == list(range(1, 51))
    expected = {"file": "a.txt", "line": 1, "field": "docno", "message": "bad"}
    assert found["errors"][0] == expected | {"severity": "error"}
    assert not problems.ok


def test_warnings_alone_are_no_reason_to_refuse() -> None:
    problems = Problems("a.txt")
    problems.warning(1, "", "odd")
    assert problems.ok


def test_a_fatal_problem_is_kept_even_behind_fifty_others() -> None:
    problems = Problems("a.txt")
    for line in range(1, 61):
        problems.error(line, "", "bad")
    with pytest.raises(UnreadableError) as raised:
        problems.fatal(61, "", "the end")
    assert problems.errors[-1] == raised.value.problem
    assert (len(problems.errors), problems.error_count) == (50, 61)


def test_reading_stops_at_ten_thousand_errors() -> None:
    problems = Problems("a.txt")
    for line in range(1, MAX_ERRORS):
        problems.error(line, "", "bad")
    with pytest.raises(UnreadableError, match="more than 10000 errors"):
        problems.error(MAX_ERRORS, "", "bad")


def test_problems_can_be_stored_whatever_the_file_is_called() -> None:
    problems = Problems("a\0b\ud800.txt")
    problems.error(1, "docno", show("x\0\ud800" + "y" * 1000))
    stored = json.dumps(problems.as_dict(), ensure_ascii=False)
    stored.encode()
    assert "\\u0000" not in stored
    assert len(stored) < 300
