"""Weights and utilities by hand, and the notation."""

import math

import numpy as np
import pytest

from estimation.core.measures.kinds import KINDS, MeasureError
from estimation.core.measures.table import Measure, parse_measure

LOG3 = math.log2(3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P@2", [0.5, 0.5, 0.0]),
        ("Gain@2", [0.5, 0.5, 0.0]),
        ("DCG", [1.0, 1 / LOG3, 0.5]),
        ("DCG@2", [1.0, 1 / LOG3, 0.0]),
        ("DCG(dcg='ln')@3", [1 / math.log(2), 1 / math.log(3), 1 / math.log(4)]),
        ("RBP(p=0.8)", [0.2, 0.16, 0.128]),
        ("RBP(p=0.5)@2", [0.5, 0.25, 0.0]),
    ],
)
def test_weights_of_the_first_three_ranks(text: str, expected: list[float]) -> None:
    assert parse_measure(text).weights([1, 2, 3]) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P@10", [0, 1, 1, 1]),
        ("P(rel=2)@10", [0, 0, 1, 1]),
        ("RBP", [0, 1, 1, 1]),
        ("RBP(p=0.5, rel=3)", [0, 0, 0, 1]),
        ("DCG", [0, 1, 2, 3]),
        ("DCG(dcg='ln')", [0, 1, 2, 3]),
        ("DCG(dcg='exp-log2')", [0, 1, 3, 7]),
        ("DCG(dcg='exp-ln')", [0, 1, 3, 7]),
        ("Gain@3", [0, 1, 2, 3]),
        ("Gain(gain='exp')@3", [0, 1, 3, 7]),
    ],
)
def test_utilities_of_grades_0_to_3(text: str, expected: list[int]) -> None:
    measure = parse_measure(text)
    assert measure.utilities(np.arange(4)).tolist() == expected
    assert measure.max_utility(3) == expected[-1]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("p@10", "P@10"),
        (" P(rel=1)@10 ", "P@10"),
        ("P( REL = 2 )@010", "P(rel=2)@10"),
        ("dcg", "DCG"),
        ('DCG(dcg="ln")@100', "DCG(dcg='ln')@100"),
        ("DCG(dcg=log2)@5", "DCG@5"),
        ("gain(gain='EXP')@5", "Gain(gain='exp')@5"),
        ("rbp", "RBP(p=0.8)"),
        ("RBP(rel=2,p=.50)@20", "RBP(p=0.5,rel=2)@20"),
    ],
)
def test_canonical_name_reads_back_to_an_equal_measure(text: str, canonical: str) -> None:
    measure = parse_measure(text)
    assert str(measure) == canonical
    assert parse_measure(canonical) == measure
    assert len({measure, parse_measure(canonical)}) == 1


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "P@10, DCG@100"),
        ("MAP", "'MAP' is not a known measure"),
        ("P", "P needs a cutoff"),
        ("P@0", "between 1 and"),
        ("P@1.5", "is written like"),
        ("P@-1", "is written like"),
        ("P(rel=0)@5", "rel of P must be a grade"),
        ("P(rel=x)@5", "rel of P must be a grade"),
        ("P(rel=1,rel=2)@5", "each once"),
        ("P(p=0.5)@5", "takes the parameters rel"),
        ("DCG(dcg='log10')", "one of 'log2'"),
        ("RBP(p=1)", "strictly between 0 and 1"),
        ("RBP(p=nan)", "strictly between 0 and 1"),
        ("RBP(p)", "each once"),
        ("P@10;" + "x" * 1000, "is written like"),
    ],
)
def test_what_is_no_measure_is_refused_with_what_is_allowed(text: str, named: str) -> None:
    with pytest.raises(MeasureError, match=named.replace("(", r"\(").replace("'", ".")):
        parse_measure(text)


def test_a_measure_built_by_hand_is_checked_too() -> None:
    with pytest.raises(MeasureError, match="not a known measure"):
        Measure("p", 10, (("rel", 1),))
    with pytest.raises(MeasureError, match="takes the parameters"):
        Measure("P", 10, ())


def test_grades_and_ranks_out_of_range_are_refused() -> None:
    measure = parse_measure("DCG@10")
    with pytest.raises(ValueError, match=r"ranks must start at 1, not 0\.0 \(item 0\)"):
        measure.weights([0, 1])
    with pytest.raises(ValueError, match="between 0 and"):
        measure.utilities(np.array([-1]))
    with pytest.raises(ValueError, match="integers"):
        measure.utilities(np.array([0.5]))
    with pytest.raises(MeasureError, match="No grade from 0 to 1"):
        parse_measure("P(rel=2)@10").max_utility(1)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_entry_of_the_table_keeps_what_the_estimators_rely_on(kind) -> None:
    measure = parse_measure(kind.example)
    weights = measure.weights(np.arange(1, 200), lengths=199, other_ranks=200)
    grades = np.arange(6)
    for prediction in (1.0, -1.0):
        utilities = measure.entry_utilities(grades, np.full(6, prediction))
        assert np.all(np.isfinite(utilities))
        assert np.all(utilities >= 0)
    if measure.family not in ("prediction", "preference"):
        assert np.array_equal(measure.utilities(grades), utilities)
        assert utilities[0] == 0
        assert np.all(np.diff(utilities) >= 0)
    assert np.all(np.isfinite(weights))
    assert np.all(weights >= 0)
    assert weights[0] > 0


@pytest.mark.parametrize("measure", ["P@5", "P(rel=2)@5", "DCG@5", "DCG(dcg='exp-log2')@5"])
def test_one_ranking_agrees_with_ir_measures(measure: str) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    grades = np.array([2, 0, 1, 3, 0, 1, 0, 2])
    qrels = [ir_measures.Qrel("1", f"d{i}", int(grade)) for i, grade in enumerate(grades)]
    run = [ir_measures.ScoredDoc("1", f"d{i}", -float(i)) for i in range(len(grades))]
    theirs = ir_measures.parse_measure(measure.replace("DCG", "nDCG"))
    expected = ir_measures.calc_aggregate([theirs], qrels, run)[theirs]
    mine = parse_measure(measure)
    gains, weights = mine.utilities(grades), mine.weights(np.arange(1, 9))
    ideal = (weights * np.sort(gains)[::-1]).sum() if "DCG" in measure else 1.0
    printed_digits = 5e-6 if "exp" in measure else 1e-12
    assert (weights * gains).sum() / ideal == pytest.approx(expected, abs=printed_digits)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mean(max=4)", [1 / 4, 1 / 4, 1 / 4]),
        ("mae", [1 / 4, 1 / 4, 1 / 4]),
        ("#ofSwaps", [1 / 4, 1 / 4, 1 / 4]),
        ("wswaps", [1 / 8, 1 / 24, 1 / 48]),
    ],
)
def test_measures_of_whole_lists_share_their_weight_among_the_parts(text, expected) -> None:
    weights = parse_measure(text).weights([1, 2, 3], lengths=4, other_ranks=[2, 3, 4])
    assert weights == pytest.approx(expected, abs=1e-15)


def test_weights_of_average_precision_are_sums_of_reciprocal_ranks() -> None:
    weights = parse_measure("AP").weights([1, 2, 3], lengths=[3, 3, 3])
    assert weights == pytest.approx([(1 + 11 / 6) / 3, (1 + 5 / 6) / 3, (1 + 1 / 3) / 3])
    cut = parse_measure("AP@2").weights([1, 2, 3], lengths=3)
    assert cut == pytest.approx([(1 + 3 / 2) / 2, (1 + 1 / 2) / 2, 0.0])


@pytest.mark.parametrize(
    ("text", "grades", "predictions", "expected"),
    [
        ("MAE", [0, 3, 2], [0.5, 1.0, 2.0], [0.5, 2.0, 0.0]),
        ("MSE", [0, 3, 2], [0.5, 1.0, 2.0], [0.25, 4.0, 0.0]),
        ("Accuracy", [0, 3, 2], [0.5, 3.0, 2.0], [0, 1, 1]),
        ("#ofSwaps", [2, 1, 0, 2, 1, 0], [1, 1, 1, -1, -1, -1], [0, 0, 1, 1, 0, 0]),
        ("P(rel=2)@3", [1, 2, 3], [9, 9, 9], [0, 1, 1]),
    ],
)
def test_utilities_that_compare_the_grade_with_what_the_run_said(
    text, grades, predictions, expected
) -> None:
    found = parse_measure(text).entry_utilities(np.array(grades), np.array(predictions, float))
    assert found.tolist() == expected


def test_only_some_measures_take_a_cutoff_or_a_utility_without_the_run() -> None:
    for text in ("MAE@10", "#ofSwaps@5", "Mean@3", "Rprec@4"):
        with pytest.raises(MeasureError, match="takes no cutoff"):
            parse_measure(text)
    with pytest.raises(MeasureError, match="depends on the run"):
        parse_measure("MAE").utilities(np.array([1]))
