"""Rows of long tables, each written in one piece.

A hundred rows of a dozen places each would take a template most of the time of a page.
"""

from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Any
from urllib.parse import quote
from zlib import crc32

from django import template
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify

from estimation.charts.histories import HistoryChart
from estimation.figures import RankedLine, RankingFigure, number
from estimation.label_figures import OtherPlaces, QualityFigure
from estimation.noise_figures import NoiseFigure
from estimation.scales import plus_minus
from estimation.selectors import RankingTable
from estimation.templatetags.figures import percent, thousands

register = template.Library()

ONE_GRADE = '<span class="muted">one grade</span>'


@register.simple_tag
def noise_rows(noise: NoiseFigure) -> SafeString:
    """What disagreement adds, by run."""
    return _of_numbers(
        (line.run, (percent(line.share), percent(line.narrower))) for line in noise.lines
    )


@register.simple_tag
def batch_rows(history: HistoryChart) -> SafeString:
    """Values by batch, by run."""
    return _of_numbers((panel.label, panel.values) for panel in history.panels)


@register.simple_tag
def run_options(table: RankingTable, chosen: Collection[str]) -> SafeString:
    """Every run, to choose some of them."""
    return _joined(
        f"<option{' selected' if row.tag in chosen else ''}>{escape(row.tag)}</option>"
        for row in table.rows
    )


@register.simple_tag
def couple_rows(quality: QualityFigure) -> SafeString:
    """How far every two people agree."""
    kappas = ["linear", "quadratic"] + ["drawn"] * quality.weighted
    return _of_numbers(
        (
            f"{each['first']} and {each['second']}",
            (thousands(each["pairs"]), *(number(each[kappa], 2) for kappa in kappas)),
        )
        for each in quality.couples
    )


@register.simple_tag
def topic_rows(quality: QualityFigure) -> SafeString:
    """How far people agree, by topic."""

    def alphas(each: dict[str, Any]) -> Iterable[str]:
        yield ONE_GRADE if each["alpha"] is None else number(each["alpha"], 2)
        if quality.weighted:
            yield number(each["drawn"], 2)

    return _of_numbers(
        (each["topic"], (thousands(each["pairs"]), *alphas(each))) for each in quality.topics
    )


@register.simple_tag
def place_rows(runs: Sequence[OtherPlaces]) -> SafeString:
    """Place and value of each run, by each way to put labels together."""
    return _joined(
        f"<tr{MOVED if run.moved else ''}>"
        f'<th scope="row" class="anywhere">{escape(run.run)}</th>{_both(run)}</tr>'
        for run in runs
    )


MOVED = ' class="moved"'


def _both(run: OtherPlaces) -> str:
    return "".join(
        f'<td class="num">{place}</td><td class="num muted">{value}</td>'
        for place, value in run.both
    )


@register.simple_tag(takes_context=True)
def ranked_rows(context: template.Context, figure: RankingFigure) -> SafeString:
    """The rows of a ranking, as the table around them is shown: with links, or to be read alone.

    Names and what is told of them are escaped here; all else is numbers as they are printed.
    """
    linked, compare = context["linked"], escape(context["compare"])
    others, slug = (context["leader"], context["second"]), slugify(context["measure"])
    rows = []
    for at, line in enumerate(figure.lines):
        tag, tier = escape(line.run.tag), line.run.tier
        name = _compared(line.run.tag, compare, *others) if compare else tag
        cells = (
            _opening(line, tag, first=not at, folds=linked and figure.many),
            f'<td class="num">{"–" if tier is None else tier}</td>',
            f'<th scope="row" class="run" title="{tag}"><span><span class="tag">{name}</span>'
            f"{_marks(figure, line)}</span></th>",
            f'<td class="plot">{figure.forest.drawn(line.place, 30)}</td>',
            f'<td class="num">{_value(figure, line, slug)}</td>',
            f'<td class="num extra muted">{line.low} – {line.high}</td>',
            f'<td class="num ranks"><span class="narrow-show muted small">{_ranks(line)}</span>'
            f"{line.ranks}</td>",
            _news(line) if linked else "",
            "</tr>",
        )
        rows.append("\n".join(cells))
    return mark_safe("\n".join(rows))  # noqa: S308


def _opening(line: RankedLine, tag: str, *, first: bool, folds: bool) -> str:
    run = line.run
    begins = "begins " if line.begins and not first else ""
    style = "tied" if run.as_good_as_leader else "unknown" if run.unknown else ""
    folded = f' data-tier="{run.tier}" data-tag="{tag}"' if folds else ""
    return f'<tr{folded} class="{begins}{style}">'


def _compared(tag: str, compare: str, leader: str, second: str) -> str:
    """The run, with a way to the comparison with the first; of the first, with the second.

    Its id is the run's own: the keyboard stays at the run when its place is another.
    """
    other = escape(quote(second if tag == leader else tag))
    return f'<a id="run-{crc32(tag.encode()):x}" href="{compare}{other}">{escape(tag)}</a>'


def _marks(figure: RankingFigure, line: RankedLine) -> str:
    found = ""
    if line.run.as_good_as_leader:
        best = 'class="mark">★ best'
        may_be = 'class="mark" title="No run is surely better">may be best'
        found = f" <span {best if figure.best else may_be}</span>"
    if line.run.late:
        found += f'<span class="mark late" title="{escape(line.joined)}">joined later</span>'
    return found


def _value(figure: RankingFigure, line: RankedLine, slug: str) -> str:
    if line.run.unknown:
        why = f'href="#why-{slug}-{line.note}" title="{escape(line.run.unknown_why or "")}"'
        note = f"<sup>{line.note}</sup>" if len(figure.notes) > 1 else ""
        return f'<a class="not-known" {why}>not known{note}</a>'
    bound = ""
    if line.open_part:
        bound = LOWER_BOUND if figure.table.bounded else EITHER_WAY
    beside = f'<span class="muted narrow-show">{line.low} – {line.high}</span>'
    if figure.plus_minus:
        beside = f'<span class="muted">{plus_minus(line.half_width)}</span>'
    return f'{bound}<span class="value">{line.value}</span> {beside}'


def _ranks(line: RankedLine) -> str:
    """What the head of the column says, for a phone, which has no room for it."""
    return "rank " if line.run.rank_low == line.run.rank_high else "ranks "


def _news(line: RankedLine) -> str:
    """What the possible ranks were, where they have changed."""
    moved = line.run.moved or 0
    style = "up" if moved > 0 else "down" if moved < 0 else "muted"
    return f'<td class="extra small {style}">{line.news}</td>'


LOWER_BOUND = '<abbr title="A lower bound: the sample leaves out part of this run">≥</abbr> '
EITHER_WAY = (
    '<abbr title="The sample leaves out part of what counts, and the value takes it for not '
    'relevant: it may be off either way">~</abbr> '
)


def _of_numbers(rows: Iterable[tuple[str, Iterable[str]]]) -> SafeString:
    """Rows of a name and of numbers as they are printed."""
    return _joined(
        f'<tr><th scope="row" class="anywhere">{escape(name)}</th>{_cells(numbers)}</tr>'
        for name, numbers in rows
    )


def _cells(numbers: Iterable[str]) -> str:
    return "".join(f'<td class="num">{each}</td>' for each in numbers)


def _joined(rows: Iterable[str]) -> SafeString:
    return mark_safe("".join(rows))  # noqa: S308 (names are escaped, all else is ours)
