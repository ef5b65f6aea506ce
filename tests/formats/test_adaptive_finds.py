"""What was found before batches of ratios, in judged collections: chances follow from it."""

import pytest

from estimation.core.rounds.adaptive.grades import OF_FINDS
from estimation.formats.collections.adaptive import PAIRS
from estimation.formats.collections.adaptive_models import MODELS
from estimation.formats.collections.archive import DRAWS, JUDGMENTS
from tests.core.test_core_adaptive_collection import CASES
from tests.formats.collection_files import (
    cell,
    first,
    only,
    repacked,
    rows_of,
    without,
    written,
)

GOOD, RATIO = (written(CASES[name]().collected()) for name in ("plain", "ratio"))
PARAMETERS = [row[2] for row in rows_of(GOOD, MODELS)].index("0")
DECLINE, DECLINE_OF_RATIO = (
    str(PARAMETERS + len(rows_of(archive, PAIRS)) + 1) for archive in (GOOD, RATIO)
)


def find_rows() -> list[tuple[int, list[str]]]:
    """Lines of what was found before batches were planned, with their cells."""
    rows = rows_of(RATIO, MODELS)
    assert [row[2] for row in rows].index("0") == PARAMETERS
    of_pairs = range(PARAMETERS + 1, int(DECLINE_OF_RATIO))
    return [(at, row) for at, row in enumerate(rows, start=2) if int(row[2]) in of_pairs]


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


def test_chances_follow_from_what_was_judged_before() -> None:
    """A pair in which nothing was found, told to be of the batch after its own."""
    graded = {tuple(row[:2]) for row in rows_of(GOOD, JUDGMENTS) if row[2] != "0"}
    rows = enumerate(rows_of(GOOD, DRAWS), start=2)
    at = next(at for at, row in rows if row[2] == "1" and tuple(row[:2]) not in graded)
    file, _, field, message = first(repacked(GOOD, DRAWS, cell(at, 2, "2")))
    assert (file, field) == (f"c.zip/{DRAWS}", "chance")
    assert "which follows from the steps, found" in message


def of_earlier(archive: bytes, *parameters: str) -> bytes:
    """The same of a version whose models had no such parameters."""
    return repacked(archive, MODELS, only(lambda row: row[2] not in parameters))


@pytest.mark.parametrize("archive", [GOOD, RATIO], ids=["sum", "ratio"])
def test_models_of_earlier_versions_had_no_decline(archive: bytes) -> None:
    """Their chances are others, which is what is wrong here, and nothing in their models."""
    file, _, field, message = first(of_earlier(archive, DECLINE, DECLINE_OF_RATIO))
    assert (file, field) == (f"c.zip/{DRAWS}", "chance"), message


def test_finds_belong_to_ratios_and_to_models_that_look_at_neighbors() -> None:
    for archive, refused in ((GOOD, True), (RATIO, False)):
        _, _, field, message = first(of_earlier(archive, "0", DECLINE, DECLINE_OF_RATIO))
        assert (field == "parameter") == refused, message


def test_a_decline_belongs_to_models_that_look_at_neighbors() -> None:
    rows = enumerate(rows_of(RATIO, MODELS), start=2)
    number = next(at for at, row in rows if row[2] == DECLINE_OF_RATIO)
    file, at, field, message = first(of_earlier(RATIO, "0"))
    assert (file, field) == (f"c.zip/{MODELS}", "parameter")
    assert at == number - 1, "without that of neighbors"
    assert f"found parameter {DECLINE_OF_RATIO} of level 1 in batch 2" in message


@pytest.mark.parametrize("parameter", ["0", DECLINE])
def test_a_level_without_what_was_found_is_named(parameter: str) -> None:
    rows = enumerate(rows_of(GOOD, MODELS), start=2)
    number = next(at for at, row in rows if row[2] == parameter)
    file, _, field, message = first(repacked(GOOD, MODELS, without(number)))
    assert (file, field) == (f"c.zip/{MODELS}", "coefficient")
    assert f"{PARAMETERS + OF_FINDS} coefficients in batch 2" in message
