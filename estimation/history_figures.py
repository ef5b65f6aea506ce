"""Values batch by batch, as the history of a round draws them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from estimation.charts import histories
from estimation.listings import HistoryPoint
from estimation.selectors import RankingTable

FIRST_PANELS = 24
"""So many runs have a history panel at once; the rest on demand."""
HIGHLIGHTED = 5
"""So many of the first runs stand out among the lines of all, unless others are chosen."""


@dataclass(frozen=True)
class HistoryFigure:
    """Panels of runs, of ``runs`` that have some; ``never`` was known after no batch.

    ``overview``: lines of all runs, where not all have a panel.
    """

    drawn: histories.HistoryChart
    runs: int
    never: list[str]
    overview: histories.OverviewChart | None = None


def drawn_first(
    table: RankingTable, known: Collection[str], *, whole: bool, chosen: Collection[str] = ()
) -> list[str]:
    """The runs that have a panel: those that were chosen, else the first of the ranking."""
    tags = [row.tag for row in table.rows if row.tag in known]
    picked = [tag for tag in tags if tag in chosen]
    return picked or (tags if whole else tags[:FIRST_PANELS])


def history_figure(
    table: RankingTable,
    points: Mapping[str, Sequence[HistoryPoint]],
    *,
    whole: bool,
    known: Collection[str] | None = None,
    chosen: Collection[str] = (),
) -> HistoryFigure:
    """Values by batch, in the order of the ranking; only the first of them unless ``whole``, or
    those that were ``chosen``.

    ``known``: the runs whose value was known after some batch, where ``points`` has only those
    that are drawn.
    """
    if known is None:
        known = {tag for tag, line in points.items() if any(p.value is not None for p in line)}
    rows = [row for row in table.rows if row.tag in known]
    panels = drawn_first(table, known, whole=whole, chosen=chosen)
    moments = _moments([row.tag for row in rows], points)
    tied = {row.tag for row in table.rows if row.as_good_as_leader}
    of_panels = {tag: moments[tag] for tag in panels}
    drawn = histories.history(of_panels, measure=table.measure, marked=tied)
    never = [row.tag for row in table.rows if row.tag not in known]
    overview = None
    if len(panels) < len(rows) and len(drawn.batches) > 1:
        marked = [tag for tag in panels if tag in chosen] or panels[:HIGHLIGHTED]
        overview = histories.overview(moments, measure=table.measure, marked=marked)
    return HistoryFigure(drawn, len(rows), never, overview)


def lines_of_all(
    table: RankingTable, points: Mapping[str, Sequence[HistoryPoint]]
) -> histories.OverviewChart:
    """All runs on one scale, the first of the ranking highlighted."""
    known = {tag for tag, line in points.items() if any(p.value is not None for p in line)}
    tags = [row.tag for row in table.rows if row.tag in known]
    marked = tags[:HIGHLIGHTED]
    return histories.overview(_moments(tags, points), measure=table.measure, marked=marked)


def _moments(
    tags: Sequence[str], points: Mapping[str, Sequence[HistoryPoint]]
) -> dict[str, list[histories.PanelPoint]]:
    return {
        tag: [histories.PanelPoint(p.batches, p.value, p.low, p.high) for p in points.get(tag, ())]
        for tag in tags
    }
