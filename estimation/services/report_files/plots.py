"""The plots of the report as drawings for a paper, each with its styles inside."""

import io
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from django.template.loader import render_to_string
from django.utils.text import slugify

from estimation import listings, report_data
from estimation.charts import bars
from estimation.figures import pairwise_figure, ranking_figure
from estimation.forecasts import forecast_figure
from estimation.formats.svg_styles import Room, standing_alone
from estimation.history_figures import history_figure, lines_of_all
from estimation.models import EstimateSet, Round
from estimation.scales import shortened
from estimation.selectors import RankingTable
from estimation.services.report_files.kinds import ReportKind
from estimation.services.report_files.styles import styles

SHEETS = ("css/tokens.css", "css/charts.css")
FRAMED = Room(560, 200, left=56, top=12, right=24, bottom=30)
AROUND = Room(560, 200, left=8, top=8, right=24, bottom=8)
EACH, PLOT, CHARACTER, MOST_GUTTER = 22, 380, 7.2, 300
LINE = 24
ACROSS, PANEL, BETWEEN = 3, 200, 56
PANELS = Room(1, 1, left=44, top=8, right=12, bottom=8)
IN_GUTTER, IN_PANEL = int((MOST_GUTTER - 14) / CHARACTER), int(PANEL / CHARACTER)
"""Characters of a name that there is room for; titles have the whole of it."""
WHEN = (1980, 1, 1, 0, 0, 0)
"""Of all files in the archive, so that the same drawings are the same bytes."""


def make(row: Round, shown: EstimateSet) -> bytes:
    sheets = styles(*SHEETS)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, template, context, room in _plots(row, shown):
            drawing = render_to_string(f"charts/{template}.svg", dict(context))
            entry = zipfile.ZipInfo(f"{name}.svg", WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, standing_alone(drawing, sheets, room))
    return buffer.getvalue()


Plot = tuple[str, str, Mapping[str, Any], Room]


def _plots(row: Round, shown: EstimateSet) -> Iterator[Plot]:
    """Name, template, what it draws, and its place."""
    report = report_data.report(row, shown)
    for table in report.tables:
        yield from _of_measure(table)
        yield from _of_history(row, table)
    given = zip(report.scale, report.grades, strict=True)
    named = [(f"{at} {grade['name']}", count) for at, (grade, count) in enumerate(given)]
    chart = bars.grade_bars(named)
    rows = [(share, at * LINE) for at, share in enumerate(chart.rows)]
    context = {"chart": chart, "rows": rows, "height": LINE * len(rows)}
    yield "grades", "shares_whole", context, AROUND
    moments = listings.race(row) if row.goal == Round.Goal.WINNER else []
    if len(moments) > 1:
        counted = [(f"Batch {each.batches}", float(len(each.runs))) for each in moments]
        chart_of_race = bars.race_bars(counted, planned=shown.looks)
        yield "race", "bars", {"chart": chart_of_race}, FRAMED


def _of_measure(table: RankingTable) -> Iterator[Plot]:
    name = slugify(table.measure.replace("@", "-"))
    forest = ranking_figure(table).forest
    longest = max((len(each.label) for each in forest.rows), default=0)
    gutter = min(MOST_GUTTER, CHARACTER * longest + 14)
    bottom = EACH * len(forest.rows)
    context = {
        "chart": forest,
        "rows": [
            (each, shortened(each.label, IN_GUTTER), at * EACH)
            for at, each in enumerate(forest.rows)
        ],
        "each": EACH,
        "plot": PLOT,
        "gutter": gutter,
        "bottom": bottom,
        "width": gutter + PLOT,
        "height": bottom + 18,
    }
    yield f"ranking-{name}", "forest_whole", context, AROUND
    if table.pairs is not None and len(table.rows) > 1:
        matrix = pairwise_figure(table, table.pairs).matrix
        yield f"verdicts-{name}", "matrix", {"chart": matrix, "compare": ""}, AROUND
    foretold = forecast_figure(table)
    if foretold is not None and len(foretold.lines) > 1:
        yield f"forecast-{name}", "lines", {"chart": foretold.chart}, FRAMED


def _of_history(row: Round, table: RankingTable) -> Iterator[Plot]:
    """Panels of all runs that were known after some batch, and their lines on one scale."""
    name = slugify(table.measure.replace("@", "-"))
    points = listings.history(row, table.measure)
    figure = history_figure(table, points, whole=True)
    chart = figure.drawn
    if len(chart.batches) < 2:
        return
    places = [
        (
            panel,
            shortened(panel.label, IN_PANEL),
            at % ACROSS * (PANEL + BETWEEN),
            at // ACROSS * (chart.height + 44),
        )
        for at, panel in enumerate(chart.panels)
    ]
    context = {
        "chart": chart,
        "panels": places,
        "each": PANEL,
        "width": ACROSS * (PANEL + BETWEEN) - BETWEEN,
        "height": -(-len(chart.panels) // ACROSS) * (chart.height + 44) - 16,
    }
    yield f"history-{name}", "panels_whole", context, PANELS
    yield f"history-{name}-all", "overview", {"chart": lines_of_all(table, points)}, FRAMED


PLOTS = ReportKind(
    "plots.zip",
    "Every plot of the report as SVG, in light colors and with its styles inside.",
    content_type="application/zip",
    make=make,
    group="For a paper",
)
