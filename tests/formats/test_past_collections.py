"""Judged collections of adaptive rounds that add to what was judged, as files."""

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.measures.table import parse_measure
from estimation.formats.collections.archive import DRAWS
from estimation.formats.collections.pasts import KNOWN, PAST
from tests.core.collecting import publish
from tests.core.test_core_adaptive_top_ups import BEST, a_top_up, larger
from tests.formats.collection_files import (
    Change,
    assert_bad_fact,
    assert_read_back,
    cell,
    facts_of,
    first,
    header_alone,
    read,
    repacked,
    rows_of,
    twice,
    with_row,
    without,
    written,
)

__all__ = ["larger"]  # a fixture
MEASURES = [parse_measure(name) for name in ("DCG@3", "P@2")]


@pytest.fixture(scope="module", params=[True, False], ids=["alone", "continued"])
def collected(larger: tuple, request: pytest.FixtureRequest) -> RoundCollection:
    _, pool, grades = larger
    drawn = a_top_up(larger, alone=request.param)
    labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
    return publish(pool, drawn, labels=labels, measures=MEASURES, max_grade=BEST, version="0.1")


@pytest.fixture(scope="module")
def good(collected: RoundCollection) -> bytes:
    return written(collected)


@pytest.mark.slow
def test_what_is_written_is_read_back_to_the_bit(collected: RoundCollection) -> None:
    found = assert_read_back(collected)
    then, now = (
        each.evaluate(each.pool, measures=MEASURES).results[0].estimate
        for each in (collected, found)
    )
    np.testing.assert_array_equal(then.value, now.value)
    np.testing.assert_array_equal(then.covariance, now.covariance)


@pytest.mark.slow
def test_what_was_judged_before_no_batch_has_drawn(collected: RoundCollection, good: bytes) -> None:
    judged = {tuple(row[:2]) for row in rows_of(good, KNOWN)}
    assert len(judged) == len(collected.drawn.design.past.judged)
    assert not judged & {tuple(row[:2]) for row in rows_of(good, DRAWS)}
    sums = collected.drawn.design.past.sums
    assert facts_of(good)["past"] == ("alone" if sums is None else "continued")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change", "field", "message"),
    [
        (KNOWN, twice(2), "docno", "once, found it on line 2 already"),
        (KNOWN, cell(2, 1, "nobody"), "docno", "a pair of pairs.tsv.gz, found"),
        (PAST, cell(2, 2, "1.5"), "left", "a number from 0 to 1, found '1.5'"),
        (PAST, cell(2, 2, "nan"), "left", "a number from 0 to 1, found 'nan'"),
        (PAST, cell(2, 3, "-1"), "planned", "a number from 0 to 1, found '-1'"),
        (PAST, twice(2), "docno", "once, found it on line 2 already"),
        (PAST, without(2), "docno", "pairs, those of the pool, found"),
        (PAST, header_alone, "docno", "pairs, those of the pool, found 0"),
    ],
)
def test_a_bad_line_is_named(
    good: bytes, name: str, change: Change, field: str, message: str
) -> None:
    file, _, where, told = first(repacked(good, name, change))
    assert (file, where) == (f"c.zip/{name}", field)
    assert message in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "column", "value", "message"),
    [
        (KNOWN, "label", "1e31", "a number from 0 to 1e+30"),
        (KNOWN, "find", "inf", "a number from 0 to 1e+30"),
        (KNOWN, "chance", "0", "a number above 0"),
        (KNOWN, "reached_1", "2", "a number from 0 to 1"),
        (PAST, "spread", "1e999", "a number from 0 to 1e+30"),
        (PAST, "products_1_3", "-1", "a number from 0 to 1e+30"),
    ],
)
def test_what_earlier_batches_say_is_within_bounds(
    good: bytes, name: str, column: str, value: str, message: str
) -> None:
    if facts_of(good)["past"] == "alone":
        assert len(rows_of(good, KNOWN)[0]) == 2, "nothing is said of them"
        return
    names = _header(good, name)
    file, line, where, told = first(repacked(good, name, cell(2, names.index(column), value)))
    assert (file, line, where) == (f"c.zip/{name}", 2, column)
    assert message in told


def _header(content: bytes, name: str) -> list[str]:
    found: list[list[str]] = []

    def look(data: bytes) -> bytes:
        found.append(data.decode().splitlines()[0].split("\t"))
        return data

    repacked(content, name, look)
    return found[0]


@pytest.mark.slow
def test_what_can_be_drawn_was_not_judged_before(good: bytes) -> None:
    """Nor is what no design could have drawn by then."""
    known, planned = rows_of(good, KNOWN)[0], {}
    for row in rows_of(good, PAST):
        planned[tuple(row[:2])] = float(row[3])
    for row in {planned[tuple(each[:2])] > 0.0: each for each in rows_of(good, DRAWS)}.values():
        file, _, field, told = first(repacked(good, KNOWN, with_row(*row[:2], *known[2:])))
        if planned[tuple(row[:2])] > 0.0:
            assert (file, field) == ("c.zip/pairs.tsv.gz", "size")
            assert "0, of the pairs of known.tsv.gz" in told
        else:
            assert (file, field) == (f"c.zip/{KNOWN}", "docno")
            assert "pairs whose planned in past.tsv.gz is above 0" in told


@pytest.mark.slow
@pytest.mark.parametrize("value", ["both", 1, None])
def test_how_it_adds_is_one_of_two_ways(good: bytes, value: object) -> None:
    assert_bad_fact(good, "past", value, "expected alone or continued")


@pytest.mark.slow
def test_what_is_lost_of_the_past_is_missed(good: bytes) -> None:
    lost = rows_of(good, KNOWN)[0][1]
    found, problems = read(repacked(good, KNOWN, without(2)))
    assert found is None
    assert lost in " ".join(each.message for each in problems.errors)
