import gzip
import io
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimation.core.archives import write_archive
from estimation.formats.predictions import (
    FORMAT,
    PredictionFile,
    load_predictions,
    read_predictions,
    save_predictions,
)
from judging.formats import columns
from judging.formats.problems import Problems, UnreadableError, id_problem
from tests.formats.generated import Generated

MEBIBYTE = 1 << 20
LETTERS = st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="/\\~.:")
IDS = st.text(LETTERS, min_size=1, max_size=12).filter(lambda text: id_problem(text) is None)

GRADES = "402 b 2.5\n401 x 0\n402 a 3\n402 é 1e0\n401 y .25\n"
PROBABILITIES = "402 b 0 0 0.25 0.75\n401 x 1 0 0 0\n402 a 0.1 0.2 0.3 0.4\n"


def read(data: str | bytes, **options: Any) -> tuple[PredictionFile | None, Problems]:
    problems = Problems("p")
    raw = data.encode() if isinstance(data, str) else data
    options = {"max_grade": 3} | options
    return read_predictions(io.BytesIO(raw), problems, **options), problems


def accepted(data: str | bytes, **options: Any) -> PredictionFile:
    found, problems = read(data, **options)
    assert found is not None, problems.errors
    return found


def errors(data: str | bytes, **options: Any) -> list[tuple[int | None, str, str]]:
    found, problems = read(data, **options)
    assert (found is None) == (problems.error_count > 0)
    return [(p.line, p.field, p.message) for p in problems.errors]


def pairs(found: PredictionFile) -> list[tuple[str, str]]:
    topics = np.repeat(np.array(found.topics), np.diff(found.indptr)).tolist()
    return list(zip(topics, [name.decode() for name in found.docnos.tolist()], strict=True))


def as_dict(found: PredictionFile) -> dict[tuple[str, str], Any]:
    return dict(zip(pairs(found), found.values.tolist(), strict=True))


@pytest.mark.parametrize(
    "change", [str, lambda s: "\ufeff" + s.replace("\n", "\r\n"), str.rstrip,
               lambda s: s.replace(" ", "\t"), lambda s: "\n" + s.replace(" ", " \t ")]
)  # fmt: skip
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_both_forms_are_read_by_topic_then_docno(change: Any, pack: Any) -> None:
    grades = accepted(pack(change(GRADES).encode()))
    assert pairs(grades) == [("401", "x"), ("401", "y"), ("402", "a"), ("402", "b"), ("402", "é")]
    assert grades.values.tolist() == [0.0, 0.25, 3.0, 2.5, 1.0]
    assert (grades.form, grades.lines, grades.dropped) == ("grades", 5, 0)
    whole = accepted(pack(change(PROBABILITIES).encode()))
    assert pairs(whole) == [("401", "x"), ("402", "a"), ("402", "b")]
    assert whole.form == "probabilities"
    assert whole.values.tolist() == [[1, 0, 0, 0], [0.1, 0.2, 0.3, 0.4], [0, 0, 0.25, 0.75]]


BAD = [
    ("1 a 4", "grade", "from 0 to 3, found '4'"),
    ("1 a -0.01", "grade", "'-0.01'"),
    ("1 a 3.0000001", "grade", "from 0 to 3"),
    ("1 a nan", "grade", "'nan'"),
    ("1 a inf", "grade", "'inf'"),
    ("1 a -inf", "grade", "'-inf'"),
    ("1 a high", "grade", "'high'"),
    ("1 a 1_0", "grade", "'1_0'"),
    ("1 a 1,5", "grade", "'1,5'"),
    ("1 a ١", "grade", "from 0 to 3"),
    ("1 a " + "0" * 401, "grade", "from 0 to 3"),
    ("1 ../a 1", "docno", "no path"),
    ("1 " + "a" * 256 + " 1", "docno", "255"),
    ("1 a\u00a0b 1", "docno", "white space"),
    ("/1 a 1", "topic", "no path"),
    ("1 a\0 1", "", "NUL"),
    ("1 a\x1b 1", "", "control"),
    ("1 a", "columns", "expected 3 columns (topic, docno, grade) as on line 1, found 2"),
    ("1 0 a 1", "columns", "as on line 1, found 4"),
    ("1 a 0 0 0 1", "columns", "as on line 1, found 6"),
    ("1 Q0 a 1 2.5 tag x", "columns", "found 7"),
]


@pytest.mark.parametrize(("line", "field", "message"), BAD)
def test_a_bad_line_of_grades_is_told_by_line_and_field(
    line: str, field: str, message: str
) -> None:
    found = errors(f"1 first 1\n{line}\n1 last 2\n")
    assert [(number, name) for number, name, _ in found] == [(2, field)]
    assert message in found[0][2]


COSTS = "topic docno cost\n402 b 2.5\n401 x 0.25\n402 a 1e3\n"
BAD_COSTS = [
    ("1 a 0", "cost", "from 0.000001 to 1000000, found '0'"),
    ("1 a -1", "cost", "found '-1'"),
    ("1 a 1e7", "cost", "found '1e7'"),
    ("1 a nan", "cost", "'nan'"),
    ("1 a high", "cost", "'high'"),
    ("1 a 1 2", "columns", "expected 3 columns (topic, docno, cost) as on line 1, found 4"),
    ("topic docno cost", "cost", "found 'cost'"),
    ("1 ../a 1", "docno", "no path"),
]


@pytest.mark.parametrize(
    "text",
    [COSTS, "\ufeff" + COSTS, COSTS.rstrip(), "\n" + COSTS.replace(" ", " \t"), COSTS.title()],
)
def test_costs_are_told_by_their_header(text: str) -> None:
    found = accepted(text)
    names = [(topic, docno.lower()) for topic, docno in pairs(found)]
    assert names == [("401", "x"), ("402", "a"), ("402", "b")]
    assert (found.form, found.values.tolist()) == ("costs", [0.25, 1000.0, 2.5])
    assert (found.max_grade, found.lines) == (0, 3)
    for use in (found.expected_grades, found.distributions):
        with pytest.raises(ValueError, match="costs are no predicted grades"):
            use()


@pytest.mark.parametrize(("line", "field", "message"), BAD_COSTS)
def test_a_bad_line_of_costs_is_told_by_line_and_field(line: str, field: str, message: str) -> None:
    found = errors(f"topic\tdocno\tcost\n{line}\n1 last 2\n")
    assert [(number, name) for number, name, _ in found] == [(2, field)]
    assert message in found[0][2]


def test_costs_are_stored_and_are_not_the_same_as_grades() -> None:
    found, grades = accepted(COSTS), accepted("402 b 2.5\n401 x 0.25\n402 a 3\n")
    stored = io.BytesIO()
    save_predictions(stored, found)
    stored.seek(0)
    again = load_predictions(stored)
    assert (again.form, again.digest, as_dict(again)) == ("costs", found.digest, as_dict(found))
    like = accepted("topic docno cost\n402 b 2.5\n401 x 0.25\n402 a 3\n")
    assert like.values.tolist() == grades.values.tolist()
    assert like.digest != grades.digest


def test_costs_alone_are_no_file_and_other_headers_are_no_lines() -> None:
    assert errors("topic docno cost\n") == [
        (None, "", "expected lines of costs, found none in the file")
    ]
    found, problems = read("topic docno cost\n1 a 1\n2 b 1\n", topics=["1", "3"])
    assert found is not None
    assert any("without any cost" in each.message for each in problems.warnings)
    assert errors("topic docno grade\n1 a 1\n")[0][:2] == (1, "grade")


BAD_PROBABILITIES = [
    ("1 a 0.5 0.6 0 0", "probabilities", "sum to 1, found a sum of 1.1"),
    ("1 a 0 0 0 0", "probabilities", "found a sum of 0"),
    ("1 a 0.25 0.25 0.25 0.248", "probabilities", "found a sum of 0.998"),
    ("1 a 1.5 -0.5 0 0", "p0", "from 0 to 1, found '1.5'"),
    ("1 a 0.5 nan 0.5 0", "p1", "'nan'"),
    ("1 a 0.5 0 inf 0", "p2", "'inf'"),
    ("1 a 0.5 0.5 0 -1e-9", "p3", "'-1e-9'"),
    ("1 a 0.5 0.5 0 p", "p3", "'p'"),
    ("1 a 0.5 0.5 0", "columns", "probabilities of the grades 0 to 3) as on line 1, found 5"),
    ("1 a 2", "columns", "expected 6 columns"),
]


@pytest.mark.parametrize(("line", "field", "message"), BAD_PROBABILITIES)
def test_a_bad_line_of_probabilities_is_told_by_line_and_field(
    line: str, field: str, message: str
) -> None:
    found = errors(f"1 first 0 0 0 1\n{line}\n1 last 1 0 0 0\n")
    assert (found[0][0], found[0][1]) == (2, field)
    assert {number for number, _, _ in found} == {2}
    assert message in found[0][2]


@pytest.mark.parametrize("row", ["0.333 0.333 0.333", "0.3337 0.3337 0.3336", "1 0 0"])
def test_rounded_probabilities_are_taken_and_divided_by_their_sum(row: str) -> None:
    found = accepted(f"1 a {row}\n", max_grade=2)
    given = np.array(row.split(), dtype=float)
    assert found.values.tolist() == [given.tolist()]
    assert found.distributions() == pytest.approx(given[None] / given.sum(), abs=1e-15)
    assert errors("1 a 0.333 0.333 0.3329\n", max_grade=2)


def test_neither_form_names_both() -> None:
    ((line, field, message),) = errors("1 a\n")
    assert (line, field) == (1, "columns")
    assert "3 columns (topic, docno, grade) or 6 columns (topic, docno, prob" in message


def test_a_file_of_nothing_is_refused() -> None:
    for data in ("", "\n \n", b"\xef\xbb\xbf"):
        assert [(line, field) for line, field, _ in errors(data)] == [(None, "")]


def test_every_repeated_pair_names_both_lines() -> None:
    found = errors("1 a 1\n2 a 1\n1 b 0\n1 a 1\n2 a 2\n1 a 3\n")
    assert [(line, field) for line, field, _ in found] == [(4, "docno"), (5, "docno"), (6, "docno")]
    assert "'a' of topic '1' once, found it on line 1 already" in found[0][2]
    assert "topic '2' once, found it on line 2" in found[1][2]
    assert "line 1" in found[2][2]


def test_fifty_errors_are_kept_and_all_counted_up_to_ten_thousand() -> None:
    _, problems = read("1 a x\n" * 70)
    assert (len(problems.errors), problems.error_count) == (50, 70)
    with pytest.raises(UnreadableError, match="more than 10000 errors"):
        read("1 a x\n" * 20_000)


def test_unknown_topics_are_left_out_with_one_warning_and_missing_ones_told() -> None:
    data = "9 " + "long" * 40 + " 1\n1 a 1\n8 b 2\n"
    found, problems = read(data, topics=["1", "2", "3"])
    assert found is not None
    assert as_dict(found) == {("1", "a"): 1.0}
    assert (found.lines, found.dropped, found.topics) == (3, 2, ("1",))
    assert found.docnos.dtype == "S1"
    first, second = problems.warnings
    assert (first.line, first.field) == (1, "topic")
    assert first.message == (
        "2 topics ('9', '8') are not among the known topics; 2 lines are left out"
    )
    assert second.message == "2 topics ('2', '3') are without any predicted grade"
    assert [message for _, _, message in errors("9 a 1\n", topics=["1"])] == [
        "expected lines of known topics, found none"
    ]


def test_a_line_of_an_unknown_topic_is_checked_all_the_same() -> None:
    assert [line for line, _, _ in errors("1 a 1\n9 b 7\n", topics=["1"])] == [2]


def test_means_and_distributions_fit_each_other() -> None:
    grades = accepted("1 a 0\n1 b 0.75\n1 c 1\n1 d 2.5\n1 e 3\n")
    expected = [[1, 0, 0, 0], [0.25, 0.75, 0, 0], [0, 1, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0, 1]]
    assert grades.distributions().tolist() == expected
    assert grades.expected_grades().tolist() == [0, 0.75, 1, 2.5, 3]
    whole = accepted("1 a 0.1 0.2 0.3 0.4\n1 b 0 0 0 1.0009\n")
    assert whole.expected_grades() == pytest.approx([2.0, 3.0], abs=1e-12)
    assert whole.expected_grades().max() <= 3.0


@pytest.mark.slow
@given(
    st.dictionaries(st.tuples(IDS, IDS), st.floats(0, 5), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
)
def test_every_grade_arrives_whatever_the_order(rows: dict[Any, float], random: Any) -> None:
    lines = [f"{topic} {docno} {grade!r}\n" for (topic, docno), grade in rows.items()]
    found = accepted("".join(lines), max_grade=5)
    assert as_dict(found) == rows
    keys = [(topic.encode(), docno.encode()) for topic, docno in pairs(found)]
    assert keys == sorted(keys)
    assert found.expected_grades() == pytest.approx(
        found.distributions() @ np.arange(6.0), abs=1e-12
    )
    random.shuffle(lines)
    assert accepted("".join(lines), max_grade=5).digest == found.digest
    unlike = accepted("".join(lines[1:]) + "added docno 0.5\n", max_grade=5)
    assert unlike.digest != found.digest


@pytest.mark.slow
@given(
    st.dictionaries(
        st.tuples(IDS, IDS),
        st.lists(st.integers(0, 99), min_size=4, max_size=4).filter(any),
        min_size=1,
        max_size=20,
    )
)
def test_every_distribution_arrives_and_is_stored(rows: dict[Any, list[int]]) -> None:
    given_ = {key: [count / sum(counts) for count in counts] for key, counts in rows.items()}
    data = "".join(f"{t}\t{d}\t{' '.join(map(repr, p))}\n" for (t, d), p in given_.items())
    found = accepted(data)
    assert as_dict(found) == given_
    stored = io.BytesIO()
    save_predictions(stored, found)
    stored.seek(0)
    again = load_predictions(stored)
    assert (again.digest, again.lines, again.max_grade) == (found.digest, found.lines, 3)
    assert as_dict(again) == given_


def test_grades_are_stored_too_and_damage_is_noticed() -> None:
    found = accepted(GRADES)
    stored = io.BytesIO()
    save_predictions(stored, found)
    stored.seek(0)
    again = load_predictions(stored)
    assert as_dict(again) == as_dict(found)
    assert again.form == "grades"
    for damaged in (b"", b"PK", stored.getvalue()[:100]):
        with pytest.raises(ValueError, match=r"damaged|not a file|pickle"):
            load_predictions(io.BytesIO(damaged))
    facts = {"topics": found.topics, "indptr": found.indptr, "docnos": found.docnos, "lines": 5}
    for form, values in (
        ("grades", np.ones((5, 4))), ("probabilities", np.ones(5)), ("costs", np.ones(4)),
        ("", found.values),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="a grade, probabilities of all grades, or a cost"):
            PredictionFile(max_grade=3, form=form, values=values, **facts)


def test_a_stored_file_has_one_form() -> None:
    """One without, or with two, was not written by us."""
    facts = {"max_grade": 3, "topics": ["1"], "lines": 1}
    arrays = {"indptr": np.array([0, 1]), "docnos": np.array([b"a"])}
    for forms in ([], ["grades", "costs"]):
        file = io.BytesIO()
        write_archive(file, FORMAT, facts, arrays | dict.fromkeys(forms, np.ones(1)))
        file.seek(0)
        with pytest.raises(ValueError, match="a grade, probabilities of all grades, or a cost"):
            load_predictions(file)


@pytest.mark.slow
def test_ten_million_lines_are_refused_before_most_are_read() -> None:
    file = Generated(1000, lambda n: f"{n % 50} d{n} 1.5\n")
    with pytest.raises(UnreadableError, match="at most 100000 lines"):
        read_predictions(file, Problems("p"), max_grade=3, max_lines=100_000)
    assert file.number < 45


@pytest.mark.slow
def test_one_long_docno_costs_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_DOCNO_BYTES", 8 * MEBIBYTE)
    file = Generated(1000, lambda n: f"1 {'é' * 255 if n % 5000 == 0 else n} 1\n")
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableError, match="shorter docnos"):
            read_predictions(file, Problems("p"), max_grade=3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * MEBIBYTE


def test_too_many_topics_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_TOPICS", 9)
    with pytest.raises(UnreadableError, match="at most 9 topics"):
        read("".join(f"{n} a 1\n" for n in range(10)))
    assert accepted("".join(f"{n} a 1\n" for n in range(9))).topics == tuple("012345678")
