"""The geometry of charts: within bounds, monotonic, labels apart, and whole for odd input."""

import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from django.template.loader import render_to_string
from hypothesis import assume, given
from hypothesis import strategies as st

from estimation import scales
from estimation.charts import (
    bars,
    confusions,
    curves,
    differences,
    dots,
    forests,
    histories,
    lines,
    matrices,
)
from tests.support.site import REPO

LIMITS = st.floats(-1e6, 1e6, allow_nan=False)


def boxes(ticks: tuple[scales.Tick, ...], width: float) -> list[tuple[float, float]]:
    """Left and right end of every label, in pixels."""
    halves = [(tick.at / 100 * width, len(tick.label) * scales.CHARACTER / 2) for tick in ticks]
    return [(middle - half, middle + half) for middle, half in halves]


def assert_apart(ticks: tuple[scales.Tick, ...], width: float = scales.NARROW) -> None:
    for (_, right), (left, _) in pairwise(boxes(ticks, width)):
        assert right < left


# ------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("half_width", "expected"),
    [(0.021, 3), (0.8, 2), (1.5, 1), (12.0, 0), (340.0, 0), (1e-9, 6), (0.0, 3), (math.inf, 3)],
)
def test_decimals_are_those_the_half_width_justifies(half_width: float, expected: int) -> None:
    assert scales.decimals(half_width) == expected
    assert scales.decimals(None) == 3


def test_a_column_takes_the_decimals_of_its_middle_half_width() -> None:
    assert scales.common_decimals([math.inf, 0.02, 0.03, 400.0, 0.0]) == 3
    assert scales.common_decimals([math.inf, 0.0]) == 3


@given(LIMITS, st.floats(1e-6, 1e6), st.integers(1, 8))
def test_nice_values_are_evenly_spaced_within_the_limits(
    low: float, span: float, most: int
) -> None:
    assume(span > 1e-9 * abs(low))  # else limits themselves are rounded
    values = scales.nice_values(low, low + span, most)
    assert 0 < len(values) <= most + 1 or values == []
    assert all(low - 1e-6 * span <= value <= low + span * (1 + 1e-6) for value in values)
    steps = [right - left for left, right in pairwise(values)]
    assert all(math.isclose(step, steps[0], rel_tol=1e-3) for step in steps)


@given(LIMITS, st.floats(1e-3, 1e6), st.booleans())
def test_labels_of_ticks_never_touch(low: float, span: float, logarithmic: bool) -> None:
    start = abs(low) + 1 if logarithmic else low
    assert_apart(scales.Scale(start, start + span, logarithmic).ticks())


@given(st.lists(LIMITS, min_size=2, max_size=20))
def test_positions_grow_with_values_and_stay_on_the_drawing(values: list[float]) -> None:
    scale = scales.around(values)
    places = [scale.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)


def test_what_lies_outside_the_scale_is_put_on_its_edge() -> None:
    scale = scales.Scale(1.0, 2.0)
    assert [scale.at(value) for value in (-5, 1.5, 99)] == [0.0, 50.0, 100.0]


def test_a_scale_of_one_value_has_room_around_it() -> None:
    scale = scales.around([3.0, 3.0, None, math.inf])
    assert scale.low < 3.0 < scale.high
    assert scale.at(3.0) == 50.0


# --------------------------------------------------------------------------------- forest plot


def forest(*rows: forests.ForestValue) -> forests.Forest:
    return forests.forest(rows, title="t", description="d")


def test_forest_places_values_between_their_limits_in_order() -> None:
    drawn = forest(
        forests.ForestValue("a", 0.5, 0.4, 0.6, marked=True),
        forests.ForestValue("b", 0.3, 0.1, 0.5),
    )
    a, b = drawn.rows
    assert a.x is not None
    assert b.x is not None
    assert b.left < b.x < b.right
    assert b.x < a.left < a.x < a.right
    assert (a.marked, b.marked) == (True, False)
    assert_apart(drawn.ticks)


def test_forest_shows_zero_only_when_it_is_in_sight() -> None:
    assert forest(forests.ForestValue("a", 5.0, 4.0, 6.0)).zero is None
    assert forest(forests.ForestValue("a", 0.0, -1.0, 1.0)).zero == 50.0


@pytest.mark.parametrize("endless", [None, math.inf, math.nan])
def test_a_limit_that_does_not_exist_runs_to_the_edge(endless: float | None) -> None:
    drawn = forest(
        forests.ForestValue("a", 1.0, 0.5, endless), forests.ForestValue("b", 1.0, 0.0, 2.0)
    )
    row = drawn.rows[0]
    assert row.open_right
    assert not row.open_left
    assert row.right == 100.0
    assert "▸" in drawn.drawn(row, 26)


def test_forests_of_one_run_of_equal_values_and_of_nothing() -> None:
    assert forest(forests.ForestValue("a", 0.2, 0.2, 0.2)).rows[0].x == 50.0
    equal = forest(*(forests.ForestValue(name, 1.0, 1.0, 1.0) for name in "abc"))
    assert {row.x for row in equal.rows} == {50.0}
    assert forest().rows == ()
    assert forest(forests.ForestValue("a", None, None, None)).rows[0].width == 100.0


def test_expected_widths_are_drawn_around_zero_and_in_proportion() -> None:
    drawn = forests.widths_forest([("a", 0.1), ("b", 0.2), ("c", None)], measure="P@10")
    a, b, c = drawn.rows
    assert drawn.zero == 50.0
    assert b.width == pytest.approx(2 * a.width, rel=1e-3)
    assert (c.open_left, c.open_right, c.x) == (True, True, None)


def test_forest_of_129_runs() -> None:
    rows = [
        forests.ForestValue(f"run{n}", n / 129, n / 129 - 0.1, n / 129 + 0.1) for n in range(129)
    ]
    places = [row.x or 0.0 for row in forest(*rows).rows]
    assert len(places) == 129
    assert places == sorted(places)


def test_a_few_huge_intervals_run_off_the_edge_instead_of_squeezing_the_others() -> None:
    usual = [forests.ForestValue(f"run{n}", 1.0, 0.5, 1.5) for n in range(19)]
    huge = forests.ForestValue("huge", 2.0, 0.0, 99.0)
    drawn = forest(huge, *usual)
    assert drawn.rows[0].open_right
    assert drawn.rows[1].width > 50
    assert not any(row.open_left or row.open_right for row in drawn.rows[1:])
    whole = forest(huge, *usual[:3])
    assert not whole.rows[0].open_right, "among few runs every interval is shown whole"


def test_a_value_that_is_not_known_has_no_point_and_does_not_widen_the_scale() -> None:
    known = [forests.ForestValue("a", 0.5, 0.4, 0.6), forests.ForestValue("b", 0.3, 0.1, 0.5)]
    drawn = forest(*known, forests.ForestValue("c", None, 0.0, 99.0, faint=True))
    assert drawn.ticks == forest(*known).ticks
    row = drawn.rows[2]
    assert (row.x, row.open_left, row.open_right) == (None, True, True)
    svg = drawn.drawn(row, 26)
    assert "circle" not in svg
    assert "faint" in svg
    alone = forest(forests.ForestValue("c", None, 0.0, 99.0, faint=True)).rows[0]
    assert not alone.open_right


# ------------------------------------------------------------------------------- curve and bars


def test_budget_curve_falls_and_marks_the_choice() -> None:
    points = [(100, 0.4), (200, 0.3), (400, 0.2), (800, 0.1)]
    curve = curves.budget_curve(points, chosen=400, measure="P@10")
    xy = [tuple(map(float, point.split(","))) for point in curve.line.split()]
    assert [x for x, _ in xy] == sorted(x for x, _ in xy)
    assert [y for _, y in xy] == sorted(y for _, y in xy), "down is up in SVG"
    assert xy[0][0] == 0.0
    assert xy[-1][0] == 100.0
    assert xy[1][0] == pytest.approx(100 / 3, abs=0.01), "the budget's axis is logarithmic"
    assert curve.chosen == (pytest.approx(200 / 3, abs=0.01), pytest.approx(curve.height / 2))
    assert_apart(curve.x_ticks)


def test_lines_share_one_scale_and_mark_what_was_chosen() -> None:
    steep, flat = [(10.0, 1.0), (1000.0, 0.0)], [(100.0, 0.5)]
    drawn = lines.lines(
        [("a", "came", steep), ("b", "foretold", flat), ("c", "early", [])],
        title="t", description="d", chosen=100.0, dotted=("came",),
    )  # fmt: skip
    assert [line.name for line in drawn.lines] == ["a", "b"]
    assert drawn.lines[0].points == "0,0 100,100"
    assert drawn.lines[0].dots == ((0.0, 0.0), (100.0, drawn.height))
    assert (drawn.lines[1].points, drawn.chosen) == ("", 50.0)
    assert_apart(drawn.x_ticks)
    assert lines.lines([], title="t", description="d").lines == ()


def test_budget_curve_without_any_width_and_with_one_point() -> None:
    empty = curves.budget_curve([(10, None), (20, None)], chosen=10, measure="P@10")
    assert (empty.line, empty.chosen) == ("", None)
    one = curves.budget_curve([(10, 0.5)], chosen=10, measure="P@10")
    assert one.chosen is not None


def test_bars_stand_beside_each_other_on_the_ground() -> None:
    assert bars.race_bars([("Batch 1", 4.0), ("Batch 2", 1.0)], planned=3).bars[1].height == (
        bars.race_bars([("Batch 1", 4.0)], planned=12).bars[0].height / 4
    )
    drawn = bars.topic_bars([(f"t{n}", n / 10) for n in range(225)])
    assert all(left.x + left.width <= right.x for left, right in pairwise(drawn.bars))
    assert all(bar.y + bar.height == pytest.approx(drawn.height, abs=0.02) for bar in drawn.bars)
    heights = [bar.height for bar in drawn.bars]
    assert heights == sorted(heights)
    assert drawn.bars[-1].x + drawn.bars[-1].width <= 100
    assert bars.topic_bars([]).bars == ()
    assert bars.topic_bars([("t", 0.0)]).bars[0].height == 0


def test_dots_of_grades_stand_on_the_scale_and_tell_how_many_people() -> None:
    drawn = dots.grade_dots([0, 0, 3], [0, 0, 3], highest=4)
    assert [(dot.x, dot.label) for dot in drawn.lines[0].dots] == [(10.0, "2"), (70.0, "")]
    assert (len(drawn.lines), drawn.description) == (1, "2 people 0, 1 person 3")
    two = dots.grade_dots([0, 0, 3], [0, 2, 3], highest=4)
    assert [line.name for line in two.lines] == ["Before", "After"]
    assert two.height > drawn.height
    assert dots.grade_dots([], [], highest=4).description == "Nobody answered"
    many = dots.grade_dots([20, 20], [20, 20], highest=3)
    assert many.lines[0].dots[0].label == "", "there is no room for it"
    assert [tick.label for tick in many.ticks] == ["0", "4", "8", "12", "16", "20"]
    for highest in range(1, 40):
        ticks = dots.grade_dots([0], [0], highest=highest).ticks
        apart = ticks[1].at - ticks[0].at  # percent of 100 pixels
        assert apart >= 7.0 * len(ticks[-1].label) + 1.0, highest
    svg = render_to_string("charts/dots.svg", {"chart": two})
    assert svg.count("<circle") == 5


def test_grades_are_drawn_in_proportion_to_the_most_frequent() -> None:
    drawn = bars.grade_bars([("0 no", 30), ("1 some", 15), ("2 yes", 0)])
    assert [row.width for row in drawn.rows] == [100.0, 50.0, 0.0]
    assert sum(row.percent for row in drawn.rows) == pytest.approx(100)
    assert [row.width for row in bars.grade_bars([("0", 0)]).rows] == [0.0]


# ------------------------------------------------------------------------------------- history


def moments(*values: float, spread: float = 0.1) -> list[histories.PanelPoint]:
    return [
        histories.PanelPoint(n, v, v - spread, v + spread) for n, v in enumerate(values, start=1)
    ]


def test_history_panels_share_one_scale() -> None:
    drawn = histories.history(
        {"a": moments(1, 2, 3), "b": moments(0, 0, 0)}, measure="m", marked="a"
    )
    a, b = drawn.panels
    assert drawn.batches == (1, 2, 3)
    assert [point.split(",")[0] for point in a.lines[0].split()] == ["0", "50", "100"]
    assert a.dots[0][1] < b.dots[0][1], "the better run ends higher up"
    assert (a.marked, b.marked) == (True, False)
    assert a.values == ("1.00", "2.00", "3.00")


def test_the_first_wide_intervals_do_not_flatten_the_history() -> None:
    line = [histories.PanelPoint(1, 1.0, -99.0, 101.0), *moments(1, 1.0, 1.0, 1.0)[1:]]
    drawn = histories.history({"a": line}, measure="m")
    band = [tuple(map(float, point.split(","))) for point in drawn.panels[0].bands[0].split()]
    later = [y for x, y in band if x > 50]
    assert max(later) - min(later) > 50
    assert all(0 <= y <= 100 for _, y in band)


def test_history_of_one_batch_of_infinite_widths_and_of_nothing() -> None:
    endless = histories.PanelPoint(1, 0.5, -math.inf, math.inf)
    panel = histories.history({"a": [endless]}, measure="m").panels[0]
    assert "inf" not in panel.bands[0]
    assert "nan" not in panel.bands[0]
    assert panel.lines == ()
    assert histories.history({}, measure="m").panels == ()
    assert histories.history({"a": []}, measure="m").panels == ()


def test_nothing_is_drawn_where_a_value_was_not_known() -> None:
    line = moments(1, 2, 3, 4, 5)
    line[2] = histories.PanelPoint(3, None, -50.0, 50.0)
    gap, ended = histories.history({"a": line, "b": line[:3]}, measure="m").panels
    assert (len(gap.lines), len(gap.bands)) == (2, 2)
    assert not any(point.startswith("50,") for part in gap.lines for point in part.split())
    assert gap.values[2] == "not known"
    assert len(gap.dots) == 1
    assert (len(ended.lines), ended.dots) == (1, ())
    high = [float(point.split(",")[1]) for point in gap.bands[0].split()]
    assert max(high) - min(high) > 10, "the wide interval does not flatten the others"


def test_a_run_that_was_never_known_has_an_empty_panel() -> None:
    line = [histories.PanelPoint(n, None, 0.0, 9.0) for n in (1, 2)]
    (panel,) = histories.history({"a": line}, measure="m").panels
    assert (panel.lines, panel.bands, panel.dots) == ((), (), ())


# -------------------------------------------------------------------------------------- matrix


def verdicts(count: int, reach: int) -> list[list[int]]:
    """Runs in rank order of which each surely beats those ``reach`` places further down."""
    return [[(j - i >= reach) - (i - j >= reach) for j in range(count)] for i in range(count)]


def area(drawn: matrices.VerdictMatrix, verdict: str) -> int:
    return sum(cell.span for cell in drawn.cells if cell.verdict == verdict)


@pytest.mark.parametrize(("count", "reach"), [(1, 1), (2, 1), (18, 5), (24, 3), (129, 40)])
def test_matrix_shows_every_verdict_once_and_leaves_out_the_diagonal(
    count: int, reach: int
) -> None:
    table = verdicts(count, reach)
    drawn = matrices.verdict_matrix([f"run{n}" for n in range(count)], table, measure="m")
    flat = [verdict for line in table for verdict in line]
    assert area(drawn, matrices.BETTER) == flat.count(1)
    assert area(drawn, matrices.WORSE) == flat.count(-1)
    assert area(drawn, matrices.UNDECIDED) == flat.count(0) - count
    corners = {
        (cell.x + step * drawn.side, cell.y) for cell in drawn.cells for step in range(cell.span)
    }
    assert len(corners) == count * count - count
    assert not corners & {(n * drawn.side, n * drawn.side) for n in range(count)}


def test_a_small_matrix_names_its_runs_and_a_large_one_stays_small() -> None:
    small = matrices.verdict_matrix([f"run{n}" for n in range(18)], verdicts(18, 5), measure="m")
    large = matrices.verdict_matrix([f"run{n}" for n in range(129)], verdicts(129, 40), measure="m")
    assert small.each
    assert "run17" in small.rows[-1].label
    assert small.cells[4].sentence == "run0 is surely better than run5"
    assert not large.each
    assert large.width < 1000
    assert len(large.cells) < 4 * 129
    for ticks in (large.columns, small.columns):
        for left, right in pairwise(ticks):
            room = (len(left.label) + len(right.label)) * scales.CHARACTER / 2
            assert right.at - left.at > room - 1


def test_a_large_matrix_is_drawn_as_one_outline_a_verdict_with_every_band_in_it() -> None:
    drawn = matrices.verdict_matrix([f"run{n}" for n in range(30)], verdicts(30, 7), measure="m")
    for verdict in (matrices.BETTER, matrices.WORSE, matrices.UNDECIDED):
        (outline,) = [each.outline for each in drawn.bands if each.verdict == verdict]
        boxes = re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)", outline)
        covered = sum(float(width) * float(height) for *_, width, height in boxes)
        assert covered == area(drawn, verdict) * drawn.side**2
        places = [(float(x), float(y)) for x, y, *_ in boxes]
        assert places == [(each.x, each.y) for each in drawn.cells if each.verdict == verdict]
    assert drawn.said[0].sentence == "1 run0: better than 23, worse than 0, not told from 6"
    assert render_to_string("charts/matrix.svg", {"chart": drawn}).count("<rect") == 31


def test_a_verdict_is_told_by_a_symbol_as_well_as_by_a_color() -> None:
    drawn = matrices.verdict_matrix(["a", "b", "c"], verdicts(3, 2), measure="m")
    svg = render_to_string("charts/matrix.svg", {"chart": drawn})
    assert svg.count("▲") == 1
    assert svg.count("▽") == 1
    assert svg.count("·") == 4


@pytest.mark.parametrize("count", [3, 30])
def test_what_is_not_known_looks_unlike_what_is_not_decided(count: int) -> None:
    table: list[list[matrices.Verdict]] = [list(line) for line in verdicts(count, 2)]
    for index in range(count - 1):
        table[index][-1] = table[-1][index] = None
    tags = [f"run{n}" for n in range(count)]
    drawn = matrices.verdict_matrix(tags, table, measure="m", ranked=count - 1)
    assert drawn.unknown
    assert drawn.description.endswith(f"; {count - 1} are not known.")
    assert area(drawn, matrices.UNKNOWN) == 2 * (count - 1)
    svg = render_to_string("charts/matrix.svg", {"chart": drawn})
    if drawn.each:
        assert svg.count(">?<") == 4
        assert [tick.label for tick in drawn.columns] == ["1", "2", "(3)"]
        assert "run0 against run2: not known" in svg
    else:
        (through,) = re.findall(r'<path class="unknown middle" d="([^"]*)"', svg)
        assert through.count("M") == count, "a band of each row, and of the last"
    ET.fromstring(svg)


def test_where_all_is_known_nothing_speaks_of_what_is_not() -> None:
    drawn = matrices.verdict_matrix(["a", "b", "c"], verdicts(3, 2), measure="m")
    svg = render_to_string("charts/matrix.svg", {"chart": drawn})
    assert not drawn.unknown
    assert "known" not in svg
    assert "?" not in svg


# ------------------------------------------------------------------------------------ drawings


def examples() -> dict[str, dict[str, object]]:
    """Something to draw for every template, with names that must be escaped."""
    forest = forests.forest([forests.ForestValue("<a>", 1, 0, 2)], title="<b>", description="&")
    curve = curves.budget_curve([(10, 0.5), (99, 0.1)], chosen=10, measure="<b>&")
    grades, whole = bars.grade_bars([("<0>", 1)]), {"width": 400, "height": 60}
    history = histories.history({"<a>": moments(1, 2)}, measure="m")
    return {
        "bars": {"chart": bars.topic_bars([("<t>", 1.0)])},
        "dots": {"chart": dots.grade_dots([0, 0, 2], [1, 0, 2], highest=3)},
        "budget": {"chart": curve, "dot": {"x": 1, "y": 2}, "name": "widths"},
        "confusion": {
            "chart": confusions.confusion(["<0>", "&"], [[0.5, 0.2], [0.0, 0.3]], [[5, 2], [0, 3]])
        },
        "curve": {"chart": curve},
        "differences": {
            "chart": differences.difference_bars(
                [("1", "<t>", 1.0), ("2", "&", None)], first="<a>", second="&"
            ),
            "links": "/x/", "query": "a=1",
        },
        "forest_axis": {"chart": forest},
        "forest_whole": {
            "chart": forest, "rows": [(forest.rows[0], "<a…>", 0)], "each": 30, "plot": 300,
            "gutter": 80, "bottom": 30, **whole,
        },
        "lines": {
            "chart": lines.lines([("<a>", "came", [(1, 2), (9, 1)])], title="<b>", description="&")
        },
        "matrix": {
            "chart": matrices.verdict_matrix(["<a>", "b"], verdicts(2, 1), measure="m"),
            "compare": "/x/", "measure": "m",
        },
        "overview": {
            "chart": histories.overview({"<a>": moments(1, 2), "&": moments(2, 1)}, measure="m")
        },
        "panels_whole": {
            "chart": history, "panels": [(history.panels[0], "<a…>", 0, 0)], "each": 200, **whole,
        },
        "panel": {"chart": history, "panel": history.panels[0]},
        "shares": {"chart": grades},
        "shares_whole": {"chart": grades, "rows": [(grades.rows[0], 0)], **whole},
    }  # fmt: skip


DRAWINGS = sorted((REPO / "templates" / "charts").glob("*.svg"))


@pytest.mark.parametrize("name", [path.stem for path in DRAWINGS])
def test_charts_are_well_formed_titled_and_free_of_styles_the_policy_forbids(name: str) -> None:
    svg = render_to_string(f"charts/{name}.svg", examples()[name])
    page = ET.fromstring(f"<div>{svg}</div>")
    within = {inner for outer in page.iter("svg") for inner in outer.iter("svg") if inner != outer}
    drawings = [each for each in page.iter("svg") if each not in within]
    assert drawings
    for drawing in drawings:  # what is hidden stands in a table that says it
        said = {child.tag for child in drawing} >= {"title", "desc"}
        assert said or drawing.get("aria-hidden") == "true"
    assert "style=" not in svg


def test_a_single_moment_has_a_band_that_can_be_seen_and_no_line() -> None:
    drawn = histories.history({"a": [histories.PanelPoint(1, 0.5, 0.4, 0.6)]}, measure="P@10")
    (panel,) = drawn.panels
    corners = [tuple(map(float, point.split(","))) for point in panel.bands[0].split()]
    assert len({x for x, _ in corners}) == 2
    assert len({y for _, y in corners}) == 2
    assert panel.lines == ()
    assert len(panel.dots) == 1


def test_a_curve_of_one_budget_is_a_point_without_a_line() -> None:
    drawn = curves.budget_curve([(1, 0.2)], chosen=1, measure="P@10")
    assert drawn.line == ""
    assert drawn.chosen is not None


@pytest.mark.parametrize("count", [3, 25, 37, 64])
def test_the_matrix_names_every_row_as_long_as_there_is_room(count: int) -> None:
    tags = [f"run-{n}" for n in range(count)]
    drawn = matrices.verdict_matrix(tags, verdicts(count, 2), measure="m")
    assert [tick.label.split()[0] for tick in drawn.rows] == tags
    steps = [after.at - before.at for before, after in pairwise(drawn.rows)]
    assert min(steps) >= 14
