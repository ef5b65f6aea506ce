"""What budgets reach: the curve with which a round is planned, in pictures and as a table."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from estimation.charts.lines import LineChart, lines
from estimation.core.planning.reached import Reached, ReachedByBudget
from estimation.models import Round
from estimation.scales import (
    PLOT_HEIGHT,
    Scale,
    common_decimals,
    down,
    from_zero,
    label,
    plus_minus,
)
from estimation.unknown import hoped_if
from judging.models import Campaign

ROWS = 14
"""So many budgets stand in the table, evenly spread."""
HOURS_A_DAY = 2.0
"""Of each person, where nobody has judged lately."""
ALONE = 1.5
"""With fewer judged pairs than so many, a topic has one judged document or none."""


@dataclass(frozen=True)
class Calendar:
    """``per_day``: judgments lately, 0 for none; ``people``: how many judge."""

    per_day: float = 0.0
    people: int = 0

    def days(self, labels: float, hours: float) -> float:
        """Days of so many judgments, or hours of work where no pace was seen."""
        if self.per_day > 0.0:
            return labels / self.per_day
        return hours / (HOURS_A_DAY * max(1, self.people))

    @property
    def words(self) -> str:
        """What days are reckoned with."""
        if self.per_day > 0.0:
            pace = f"{self.per_day:,.0f}"
            few = {"0": "less than 1 judgment", "1": "1 judgment"}
            said = few.get(pace, f"{pace} judgments")
            return f"at the pace of the last days, {said} a day"
        many = "one person" if self.people <= 1 else f"each of {self.people} people"
        return f"if {many} judges {HOURS_A_DAY:g} hours a day"


@dataclass(frozen=True)
class Work:
    """Labels of a pair, and hours of a unit of `Reached.work`, whose cost the campaign tells.

    ``again``: draws are with replacement, so that no number of them judges the whole pool.
    """

    labels_each: float
    hours_each: float
    campaign: Campaign = field(default_factory=Campaign)
    again: bool = False


@dataclass(frozen=True)
class ReachedLine:
    """Ranges where nobody knows how much is relevant, and how far the runs differ."""

    budget: str
    half_width: str
    decided: str
    best: str


@dataclass(frozen=True)
class RangeWords:
    """What both ends of half widths are called."""

    hoped: str
    careful: str


EXPECTED = RangeWords("as the prior expects", "if much more is relevant")
LEARNING = RangeWords("at best, as it was played", "at worst, as it was played")


@dataclass(frozen=True)
class Dot:
    """The chosen budget: ``x`` in percent, ``y`` in pixels."""

    x: float
    y: float


@dataclass(frozen=True)
class ReachFigure:
    """What the chosen budget reaches, or as much of it as there is to judge, and others.

    ``fields`` are the same as `forms.TargetForm` shows them, and ``facts`` all that the curve needs
    to be moved along without asking again, as JSON.
    """

    measure: str
    budget: int
    table: ReachedByBudget
    chosen: ReachedLine
    words: RangeWords
    scale: str
    hours: str
    cost: str
    days: str
    pace: str
    widths: LineChart
    chances: LineChart
    width_dot: Dot | None
    chance_dot: Dot | None
    lines: list[ReachedLine]
    fields: dict[str, str]
    facts: str
    lonely: bool
    least: int
    most: int

    @property
    def decided(self) -> str:
        return self.chosen.decided

    @property
    def half_width(self) -> str:
        return self.chosen.half_width


def reach_figure(
    preview: Mapping[str, Any],
    *,
    budget: int,
    work: Work | None = None,
    calendar: Calendar | None = None,
) -> ReachFigure | None:
    """None for a round whose precision nobody can tell beforehand."""
    if not preview.get("reached"):
        return None
    table, measure = ReachedByBudget.of_facts(preview["reached"]), preview["measures"][0]["measure"]
    work, calendar = work or Work(1.0, 1.0), calendar or Calendar()
    known = [each for each in table.lines if math.isfinite(each.half_width_most)]
    digits = common_decimals(each.half_width for each in known)
    here, ends = table.at(float(budget)), (table.lines[0].budget, table.lines[-1].budget)
    top = from_zero(each.half_width_most for each in known).high
    runs = len(preview["measures"][0]["half_widths"])
    every = max(1, math.ceil(len(table.lines) / ROWS))
    words = LEARNING if preview.get("learns") else EXPECTED
    widths, chances = _charts(table, known, measure, budget, words)
    share = _lonely_share(preview)
    scale = preview.get("scale_end")
    facts = {
        "lines": preview["reached"], "digits": digits, "ends": ends, "top": top, "runs": runs,
        "height": PLOT_HEIGHT, "labels": work.labels_each, "hours": work.hours_each,
        "hourCost": work.campaign.hour_cost, "currency": work.campaign.currency,
        "across": [_ends(known), _ends(table.lines)],
        "perDay": calendar.per_day, "hoursADay": HOURS_A_DAY * max(1, calendar.people),
        "lonely": share, "hoped": hoped_if(preview),
        "whole": math.ceil(ends[1]),
        "draws": math.ceil(ends[1]) if work.again else 0,
    }  # fmt: skip
    hours = here.work * work.hours_each
    return ReachFigure(
        measure=measure,
        budget=min(budget, math.ceil(ends[1])),
        table=table,
        chosen=_line(here, digits, runs),
        words=words,
        scale="" if not scale else label(scale, max(0, min(digits, 2))),
        hours=in_hours(hours),
        cost=work.campaign.cost_of(hours),
        days=_days(calendar.days(_pairs(here) * work.labels_each, hours)),
        pace=calendar.words,
        widths=widths,
        chances=chances,
        width_dot=_dot(widths, top, here.half_width_most),
        chance_dot=_dot(chances, 1.0, here.best_least),
        lines=[_line(each, digits, runs) for each in table.lines[::every]],
        fields=_fields(here, digits, hours, runs),
        facts=json.dumps(facts, allow_nan=False),
        lonely=share * _pairs(here) < ALONE,
        least=math.ceil(ends[0]),
        most=math.ceil(ends[1]),
    )


def _pairs(here: Reached) -> float:
    """What is to be judged, without the reading of topics, which is work as well."""
    return here.pairs or here.work


def _dot(chart: LineChart, top: float, value: float) -> Dot | None:
    if chart.chosen is None or not math.isfinite(value):
        return None
    return Dot(chart.chosen, down(Scale(0.0, top), PLOT_HEIGHT, value))


def _ends(rows: Sequence[Reached]) -> list[float]:
    """Of the axis of budgets, as `charts.lines` has it."""
    return [max(1.0, row.budget) for row in (rows[0], rows[-1])] if rows else [1.0, 1.0]


def sentence_of(row: Round, *, reached: ReachFigure | None, middle: str, people: int = 0) -> str:
    """What a drafted round with a preview would draw, and what for: said where it is asked for.

    ``middle``: the half width of the middle run, for methods without a curve.
    """
    preview = row.preview
    batches = f"{preview['batches']:,} batch{'es' if preview['batches'] != 1 else ''}"
    pairs, new = label(preview["expected_pairs"], 0), "new " if preview.get("of_all") else ""
    who = f" of {people} people" if people > 1 else " of one person" if people else ""
    hours = in_hours(preview["hours"])
    cost = row.campaign.cost_of(preview["hours"])
    cost = f" ({cost})" if cost else ""
    width = reached.half_width if reached else plus_minus(middle)
    known = "" if width.endswith("–") else f"{width} "
    scale = f" on a scale to {reached.scale}" if known and reached and reached.scale else ""
    return (
        f"About {pairs} {new}pair{'' if pairs == '1' else 's'} of {preview['pool_pairs']:,}, "
        f"{batches}, {hours}"
        f"{who}{cost}, {known}for {row.measure}{scale}."
    )


def in_hours(hours: float) -> str:
    return "less than 0.1 hours" if hours < 0.05 else f"about {label(hours, 1)} hours"


def _line(each: Reached, digits: int, runs: int) -> ReachedLine:
    ends = (each.half_width, each.half_width_most)
    low, high = (label(width, digits) if math.isfinite(width) else "–" for width in ends)
    return ReachedLine(
        f"{each.budget:,.0f}",
        plus_minus(low if low == high else f"{low} to {high}"),
        _percent(each.decided_least, each.decided_most, runs),
        _percent(each.best_least, each.best_most, runs),
    )


def _percent(least: float, most: float, runs: int) -> str:
    if runs < 2:
        return "–"
    low, high = label(100 * least, 0), label(100 * most, 0)
    return f"{high} %" if low == high else f"{low} to {high} %"


def _fields(here: Reached, digits: int, hours: float, runs: int) -> dict[str, str]:
    """The careful end of each range: what is reached at least."""
    width = here.half_width_most
    found = {"half_width": f"{width:.{digits}f}" if math.isfinite(width) else ""}
    if runs > 1:
        found |= {"best": f"{100 * here.best_least:.0f}"}
        found |= {"decided": f"{100 * here.decided_least:.0f}"}
    return found | {"hours": f"{hours:.1f}"}


def _charts(
    table: ReachedByBudget, known: Sequence[Reached], measure: str, budget: int, words: RangeWords
) -> tuple[LineChart, LineChart]:
    widths = lines(
        [
            (words.careful, "early", _of(known, "half_width_most")),
            (words.hoped, "came", _of(known, "half_width")),
        ],
        title="Half width against budget",
        description=f"Expected half width of {measure} of the middle run, between two lines.",
        chosen=float(budget),
    )
    chances = lines(
        [
            ("at least", "early", _of(table.lines, "best_least", 100)),
            ("at most", "came", _of(table.lines, "best_most", 100)),
        ],
        title="Chance to tell the best two apart against budget",
        description="The chance that the best two runs have a verdict, between two lines.",
        chosen=float(budget),
        top=100.0,
    )
    return widths, chances


def _lonely_share(preview: Mapping[str, Any]) -> float:
    """What the middle topic has of all pairs, as expected."""
    expected = [line["expected"] for line in preview["pairs_per_topic"]]
    total = sum(expected)
    return median(expected) / total if total else 0.0


def _days(days: float) -> str:
    if days < 1.0:
        return "less than a day"
    whole = math.ceil(days - 1e-9)
    return f"{whole:,} day{'s' * (whole != 1)}"


def _of(rows: Any, name: str, times: float = 1.0) -> list[tuple[float, float]]:
    return [(each.budget, times * getattr(each, name)) for each in rows]
