"""Charts of the rows: lines over budgets, one panel for each collection, light and dark."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from benchmarks.judgments.cells import Row
from benchmarks.judgments.material import REPEATED
from benchmarks.judgments.players import METHODS

# Color: how pairs are chosen. Dashed: with a machine's grades.
DRAWN: Mapping[str, str] = {
    "adaptive": "adaptive",
    "adaptive-machine": "adaptive machine",
    "poisson": "poisson",
    "iid": "papers",
    "uniform": "uniform",
    "ppi": "uniform machine",
    "pooling": "pooling",
    "condensed": "condensed",
    "mtf": "mtf",
    "lara-expected": "lara machine",
}
ACROSS, WIDTH, HEIGHT = 3, 264, 190
LEFT, TOP, GAP, UNDER, RIGHT = 52, 136, 62, 20, 24  # around panels

STYLE = """
svg { --page: #ffffff; --ink: #1a1f25; --muted: #58626e; --line: #dbe0e5; --adaptive: #0a6672;
  --poisson: #2f63c8; --papers: #8445b5; --uniform: #6f7985; --pooling: #b45309;
  --condensed: #5b8410; --mtf: #8a7a3a; --lara: #a0205a; }
@media (prefers-color-scheme: dark) {
  svg { --page: #1a1e22; --ink: #e4e7ea; --muted: #9ca6b1; --line: #343c44; --adaptive: #62c3cc;
    --poisson: #86aaf7; --papers: #c79af0; --uniform: #a3adb8; --pooling: #efaa5e;
    --condensed: #a9cf63; --mtf: #d8cf9a; --lara: #f07ab8; } }
text { font: 12px system-ui, sans-serif; fill: var(--muted); }
.title { font-size: 16px; font-weight: 600; fill: var(--ink); }
.name { font-size: 13px; font-weight: 600; fill: var(--ink); }
.page { fill: var(--page); }
.grid { stroke: var(--line); }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.machine { stroke-dasharray: 6 4; }
.adaptive { stroke: var(--adaptive); stroke-width: 3; }
.poisson { stroke: var(--poisson); }
.papers { stroke: var(--papers); }
.uniform { stroke: var(--uniform); }
.pooling { stroke: var(--pooling); }
.condensed { stroke: var(--condensed); }
.mtf { stroke: var(--mtf); }
.lara { stroke: var(--lara); }
"""


@dataclass(frozen=True)
class Chart:
    """What is drawn: ``number`` of a row between ``least`` and ``most``, ticks with words."""

    title: str
    number: Callable[[Row], float | None]
    ticks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def height(self, number: float) -> float:
        """Return how far up a number is, from 0 to 1; what is beyond is at the edge."""
        scale = math.log if self.logarithmic else float
        least, most = scale(self.ticks[0][0]), scale(self.ticks[-1][0])
        up = (scale(max(number, 1e-9)) - least) / (most - least)
        return min(max(up, 0.0), 1.0)


CHARTS: Mapping[str, Chart] = {
    "error": Chart(
        "Error of the values, in % of the mean value, by judged pairs: lower is better",
        lambda row: 100.0 * row.error,
        [(each, f"{each:g} %") for each in (0.3, 1, 3, 10, 30, 100)],
        logarithmic=True,
    ),
    "decided": Chart(
        "True verdicts, in % of all pairs of runs, by judged pairs: higher is better",
        lambda row: None if row.decided is None else 100.0 * row.decided,
        [(each, f"{each} %") for each in (0, 25, 50, 75, 100)],
    ),
    "tau": Chart(
        "Kendall's tau of the estimated order with the true one, by judged pairs: higher is better",
        lambda row: row.tau,
        [(each, f"{each:g}") for each in (0.4, 0.6, 0.8, 1.0)],
    ),
}


def drawing(chart: Chart, rows: Sequence[Row]) -> str:
    """Return an SVG with a panel for each collection."""
    shown = [row for row in rows if row.collection not in REPEATED and row.method in DRAWN]
    panels = [(name, list(group)) for name, group in groupby(shown, lambda row: row.collection)]
    down = -(-len(panels) // ACROSS)
    width = LEFT + ACROSS * WIDTH + (ACROSS - 1) * GAP + RIGHT
    height = TOP + down * (HEIGHT + GAP + UNDER) - GAP + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        f' aria-labelledby="title"><title id="title">{chart.title}</title>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}" rx="8"/>',
        f'<text class="title" x="16" y="28">{chart.title}</text>',
        *_legend(width),
    ]
    for place, (name, group) in enumerate(panels):
        x = LEFT + (place % ACROSS) * (WIDTH + GAP)
        y = TOP + (place // ACROSS) * (HEIGHT + GAP + UNDER)
        parts += [
            f'<g transform="translate({x} {y})">',
            *_panel(chart, name, group),
            "</g>",
        ]
    return "\n".join([*parts, "</svg>", ""])


def _legend(width: int) -> list[str]:
    parts, step = [], (width - 24) // 3
    for place, (method, style) in enumerate(DRAWN.items()):
        x, y = 16 + (place % 3) * step, 48 + (place // 3) * 18
        parts.append(f'<path class="line {style}" d="M{x} {y}h30"/>')
        parts.append(f'<text x="{x + 38}" y="{y + 4}">{METHODS[method].label}</text>')
    return parts


def _panel(chart: Chart, name: str, rows: Sequence[Row]) -> list[str]:
    budgets = sorted({row.budget for row in rows})

    def across(budget: int) -> float:
        if len(budgets) == 1:
            return WIDTH / 2
        first, last = math.log(budgets[0]), math.log(budgets[-1])
        return (math.log(budget) - first) / (last - first) * WIDTH

    def up(number: float) -> float:
        return HEIGHT * (1.0 - chart.height(number))

    parts = [f'<text class="name" x="0" y="-8">{name}, {rows[0].measure}</text>']
    for number, words in chart.ticks:
        y = up(number)
        parts.append(f'<path class="grid" d="M0 {y:.1f}h{WIDTH}"/>')
        parts.append(f'<text x="-8" y="{y + 4:.1f}" text-anchor="end">{words}</text>')
    for budget in budgets:
        words = f'x="{across(budget):.1f}" y="{HEIGHT + 18}" text-anchor="middle"'
        parts.append(f"<text {words}>{budget}</text>")
    for method, style in DRAWN.items():
        told = [(row.budget, chart.number(row)) for row in rows if row.method == method]
        points = [(across(at), up(number)) for at, number in told if number is not None]
        if points:
            line = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            parts.append(f'<path class="line {style}" d="M{line}"/>')
    return parts
