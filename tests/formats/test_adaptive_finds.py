"""What was found before batches of ratios, in judged collections: chances follow from it."""

import pytest

from estimation.formats.collections.adaptive import PAIRS
from estimation.formats.collections.adaptive_models import MODELS
from estimation.formats.collections.archive import DRAWS
from tests.core.test_core_adaptive_collection import CASES
from tests.formats.collection_files import (
    cell,
    first,
    repacked,
    rows_of,
    with_row,
    without,
    written,
)

GOOD, RATIO = (written(CASES[name]().collected()) for name in ("plain", "ratio"))
PARAMETERS = max(int(row[2]) for row in rows_of(GOOD, MODELS))


def find_rows() -> list[tuple[int, list[str]]]:
    """Lines of what was found before batches were planned, with their cells."""
    rows = rows_of(RATIO, MODELS)
    parameters = min(int(row[2]) for row in rows if int(row[2]) > PARAMETERS) - 1
    assert parameters >= PARAMETERS
    return [(at, row) for at, row in enumerate(rows, start=2) if int(row[2]) > PARAMETERS]


def test_what_was_found_is_what_chances_follow_from() -> None:
    line_number, _ = find_rows()[0]
    file, _, field, _ = first(repacked(RATIO, MODELS, without(line_number)))
    assert (file, field) in ((f"c.zip/{DRAWS}", "chance"), (f"c.zip/{MODELS}", "parameter"))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (3, "0.0", "a share of judgments, above 0 and at most 1"),
        (3, "1.5", "a share of judgments, above 0 and at most 1"),
        (2, str(PARAMETERS + 10**6), "that the lists and predictions make"),
    ],
)
def test_finds_are_shares_of_judgments_of_pairs(column: int, value: str, message: str) -> None:
    line_number, _ = find_rows()[0]
    file, number, _, told = first(repacked(RATIO, MODELS, cell(line_number, column, value)))
    assert (file, number) == (f"c.zip/{MODELS}", line_number)
    assert message in told


def test_what_was_found_was_drawn_before() -> None:
    drawn = {tuple(row[:2]) for row in rows_of(RATIO, DRAWS)}
    pairs = sorted((row[:2] for row in rows_of(RATIO, PAIRS)), key=tuple)
    never = next(at for at, row in enumerate(pairs) if tuple(row) not in drawn)
    line_number, _ = find_rows()[0]
    change = cell(line_number, 2, str(PARAMETERS + 1 + never))
    file, _, field, told = first(repacked(RATIO, MODELS, change))
    assert (file, field) == (f"c.zip/{MODELS}", "parameter")
    assert "finds of batches before" in told


def test_finds_belong_to_ratios() -> None:
    row = [*rows_of(GOOD, MODELS)[0][:2], str(PARAMETERS + 1), "1.0"]
    assert first(repacked(GOOD, MODELS, with_row(*row)))[2] == "parameter"
