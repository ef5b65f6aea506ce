"""Topics, and documents of two runs, as charts and as numbers that are printed."""

from collections.abc import Sequence
from dataclasses import dataclass

from estimation.charts import bars, differences
from estimation.comparisons import RunComparison
from estimation.core.measures.table import parse_measure
from estimation.documents_compared import DocumentsCompared
from estimation.scales import common_decimals, decimals
from estimation.selectors import RankingTable
from estimation.topic_results import TopicSpread, topic_results

ROW_HEIGHT = 76
"""Pixels that a document takes on either side, so that lines meet the middle of theirs."""


def difference_chart(found: RunComparison) -> differences.DifferenceChart:
    """Topic by topic, in the order of the comparison; each bar is named by the topic's row id."""
    values = [
        (str(row.pk), f"{row.topic_id} {row.title}"[:80], row.difference) for row in found.topics
    ]
    return differences.difference_bars(values, first=found.first.tag, second=found.second.tag)


@dataclass(frozen=True)
class TopicLine:
    """A topic of the table; widths are in percent of the largest."""

    topic: TopicSpread
    judged_share: float
    spread: str
    spread_width: float
    uncertainty: str
    uncertainty_width: float


@dataclass(frozen=True)
class TopicFigure:
    """``by``: what the topics are in the order of; ``leaders``: the two first runs, if there are.

    ``told``: whether the sample tells uncertainty topic by topic, and ``why_not_told`` otherwise;
    ``without``: so many topics have nothing judged.
    """

    by: str
    orders: dict[str, str]
    chart: bars.BarChart
    lines: list[TopicLine]
    leaders: tuple[str, str] | None
    told: bool
    why_not_told: str
    counted: bool
    without: int


ORDERS = {
    "spread": "Runs differ most",
    "uncertainty": "Most uncertainty",
    "judged": "Least judged",
    "topic": "By topic",
}


def topic_figure(table: RankingTable, by: str) -> TopicFigure:
    """All topics in an order that was asked for: by default where runs differ most."""
    found = topic_results(table)
    told = any(row.uncertainty is not None for row in found)
    orders = {name: said for name, said in ORDERS.items() if told or name != "uncertainty"}
    by = by if by in orders else "spread"
    ordered = _ordered(found, by)
    digits = common_decimals(row.spread for row in found if row.spread)
    most_spread = max((row.spread or 0.0 for row in found), default=0.0) or 1.0
    most_uncertain = max((row.uncertainty or 0.0 for row in found), default=0.0) or 1.0
    lines = [
        TopicLine(
            topic=row,
            judged_share=round(100 * row.judged / row.pairs, 2) if row.pairs else 0.0,
            spread="nothing judged" if not row.judged else _printed(row.spread, digits),
            spread_width=round(100 * (row.spread or 0.0) / most_spread, 2),
            uncertainty=_percent(row.uncertainty),
            uncertainty_width=round(100 * (row.uncertainty or 0.0) / most_uncertain, 2),
        )
        for row in ordered
    ]
    leading = [row.tag for row in table.by_estimate[:2]]
    return TopicFigure(
        by=by,
        orders=orders,
        chart=_chart(ordered, by),
        lines=lines,
        leaders=(leading[0], leading[1]) if len(leading) == 2 else None,
        told=told,
        why_not_told="" if told else _why_not_told(table),
        counted=all(row.pairs for row in found),
        without=sum(not row.judged for row in found),
    )


def _why_not_told(table: RankingTable) -> str:
    """Why no share of the uncertainty stands beside a topic."""
    told_of = "Where the uncertainty comes from is not told topic by topic: "
    sampling, family = table.round.sampling, parse_measure(table.measure).family
    if sampling.draws == "topics":
        why = "whole topics were drawn, so that it comes from which ones, and not from inside them."
    elif family == "ratio":
        why = f"{table.measure} is a ratio, whose errors are worked out for all topics together."
    elif family != "gain":
        why = f"under {table.measure}, errors are worked out for all topics together."
    elif sampling.independent or sampling.name == "adaptive":
        why = "these estimates are not sums of what each topic’s own judged pairs say."
    elif sampling.by_topic:
        why = "each topic has its own few draws, whose spread is worked out for all together."
    else:
        why = (
            "the sample has a fixed number of draws, so that what one topic gets others lack, and "
            "variances of topics do not add up."
        )
    return told_of + why


def _ordered(found: Sequence[TopicSpread], by: str) -> list[TopicSpread]:
    """Topics of which nothing is known come last, but where what is least judged is asked for."""
    if by == "judged":
        return sorted(found, key=lambda row: (row.judged, row.topic_id))
    if by == "topic":
        return list(found)

    def place(row: TopicSpread) -> tuple[bool, float]:
        value = row.spread if by == "spread" else row.uncertainty
        return value is None, -(value or 0.0)

    return sorted(found, key=place)


def _chart(ordered: Sequence[TopicSpread], by: str) -> bars.BarChart:
    named = [(f"{row.topic_id} {row.title}"[:80], row) for row in ordered]
    if by == "judged":
        return bars.result_bars("Judged pairs", [(name, row.judged) for name, row in named])
    if by == "uncertainty":
        shares = [(name, 100 * (row.uncertainty or 0.0)) for name, row in named]
        return bars.result_bars("Percent of the sampling variance", shares)
    spreads = [(name, row.spread or 0.0) for name, row in named]
    return bars.result_bars("Standard deviation among runs", spreads)


def _printed(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


# ------------------------------------------------------------------------- documents of two runs


@dataclass(frozen=True)
class CommonLine:
    """A document that both sides show: from its row on the left to that on the right, in pixels."""

    left: float
    right: float
    state: str


@dataclass(frozen=True)
class SideBySide:
    found: DocumentsCompared
    links: list[CommonLine]
    height: int
    row_height: int = ROW_HEIGHT


def side_by_side(found: DocumentsCompared) -> SideBySide:
    """The two lists with lines between what they have in common."""
    places = {line.known.docno: line.rank for line in found.second}
    links = [
        CommonLine(_middle(line.rank), _middle(places[line.known.docno]), _state(line.known.grade))
        for line in found.first
        if line.known.docno in places
    ]
    rows = max(len(found.first), len(found.second))
    return SideBySide(found, links, rows * ROW_HEIGHT)


def _middle(rank: int) -> float:
    return (rank - 0.5) * ROW_HEIGHT


def _state(grade: float | None) -> str:
    if grade is None:
        return "unjudged"
    return "relevant" if grade > 0 else "not-relevant"


def chance(probability: float) -> str:
    """A probability with the digits that it has: 0.3, 0.042."""
    if probability >= 1.0:
        return "1"
    return f"{probability:.{max(2, decimals(probability))}f}"
