"""From the selectors' plain data to charts and to numbers as they are printed.

Pages and the report share these shapes; templates only place them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from estimation import reach_figures
from estimation.charts import bars, curves, forests, matrices
from estimation.comparisons import RunComparison
from estimation.core.inference.unknown import Reason
from estimation.numbers import UnknownDifferences, unknown_differences
from estimation.scales import common_decimals, decimals, plus_minus, share_reached
from estimation.selectors import Pairwise, RankedRun, RankingTable
from estimation.unknown import largest_value

MANY_RUNS = 30
"""From more runs on a ranking is folded."""
LEAST_ABOVE = 1e-9
"""What estimates lie above the largest value there can be by rounding, as a share of it."""


@dataclass(frozen=True)
class RankedLine:
    """A line of the ranking as it is shown; ``note`` is the number of the reason for no value.

    ``begins``: whether it is the first of its tier.
    """

    run: RankedRun
    place: forests.ForestRow
    value: str
    half_width: str
    low: str
    high: str
    note: int
    begins: bool = False

    @property
    def ranks(self) -> str:
        return span(self.run.rank_low, self.run.rank_high)

    @property
    def news(self) -> str:
        """What the possible ranks were in the estimates before; an arrow only for a sure change."""
        before = self.run.ranks_before
        if self.run.unknown:
            return "–"
        if before is None:
            return "new"
        if self.run.moved:
            return f"{'▲' if self.run.moved > 0 else '▼'} was {span(*before)}"
        same = before == (self.run.rank_low, self.run.rank_high)
        return "·" if same else f"was {span(*before)}"

    @property
    def open_part(self) -> bool:
        """Whether the value takes part of what counts for not relevant."""
        return self.run.support < 1.0 and not self.run.unknown

    @property
    def joined(self) -> str:
        """How well the sample knows a run that joined later."""
        reached = f"The sample reaches {share_reached(self.run.support)} of its weight"
        size = f"effective sample size {number(self.run.sample_size, 0)}"
        return f"Joined after the sample was drawn. {reached}; {size}."


@dataclass(frozen=True)
class UnknownNote:
    """Why values are not known, and whose."""

    number: int
    why: str
    tags: list[str]


@dataclass(frozen=True)
class RankingFigure:
    table: RankingTable
    forest: forests.Forest
    lines: list[RankedLine]
    notes: list[UnknownNote]
    plus_minus: bool
    """Whether half widths say all of the intervals, because their two sides are equal."""

    @property
    def many(self) -> bool:
        """Whether there are so many runs that long tiers are folded."""
        return len(self.lines) > MANY_RUNS

    @cached_property
    def best(self) -> bool:
        """Whether the leader is surely better than all others, also than those not known."""
        tied = sum(line.run.as_good_as_leader for line in self.lines)
        return tied == 1 and not self.table.unknown_rivals

    @cached_property
    def exceeded(self) -> str:
        """The largest value that a run can have, if a value, or the end of the interval of a run
        whose value is not told, lies above it."""
        row = self.table.round
        depth = row.depth or row.campaign.depth
        most = largest_value(row.campaign, self.table.measure, depth=depth)
        told = (run.high if run.value is None else run.value for run in self.table.rows)
        above = any(end > most * (1.0 + LEAST_ABOVE) for end in told)
        return f"{most:.6g}" if above else ""


def ranking_figure(table: RankingTable) -> RankingFigure:
    """The ranking with its forest plot; all values with the same number of decimals."""
    intervals = [
        forests.ForestValue(
            row.tag, row.value, row.low, row.high, row.as_good_as_leader, faint=bool(row.unknown)
        )
        for row in table.rows
    ]
    forest = forests.forest(
        intervals,
        title=f"Runs by {table.measure}",
        description=_described(table),
    )
    digits = common_decimals(half_width(row) for row in table.known or table.rows)
    notes, tiers = _notes(table), [row.tier for row in table.rows]
    numbers = {tag: note.number for note in notes for tag in note.tags}
    lines = [
        RankedLine(
            run=row,
            place=place,
            value=number(row.value, digits),
            half_width=number(half_width(row), digits),
            low=number(row.low, digits),
            high=number(row.high, digits),
            note=numbers.get(row.tag, 0),
            begins=row.tier != above,
        )
        for row, place, above in zip(table.rows, forest.rows, [0, *tiers], strict=False)
    ]
    plus_minus = not table.guaranteed and all(_symmetric(row, digits) for row in table.known)
    return RankingFigure(table, forest, lines, notes, plus_minus)


def _described(table: RankingTable) -> str:
    known, unknown = len(table.known), len(table.unknown)
    best_first = "Estimate of 1 run with its 95 % interval."
    if known > 1:
        best_first = f"Estimates of {known} runs with their 95 % intervals, the best tier first."
    more = f"Values not known: {unknown}." if unknown else ""
    return " ".join(filter(None, (best_first if known else "", more)))


def _notes(table: RankingTable) -> list[UnknownNote]:
    """The reasons for values that are not known, in the order of the runs."""
    said: dict[str, list[str]] = {}
    for row in table.unknown:
        said.setdefault(row.unknown_why or "", []).append(row.tag)
    return [UnknownNote(at, why, tags) for at, (why, tags) in enumerate(said.items(), start=1)]


def span(low: int, high: int) -> str:
    """Ranks from one to another, or the only one."""
    return str(low) if low == high else f"{low}–{high}"


def half_width(row: RankedRun) -> float:
    """The longer side of the interval: one that was cut at 0 is not symmetric."""
    if row.value is None:
        return (row.high - row.low) / 2
    return max(row.high - row.value, row.value - row.low)


def _symmetric(row: RankedRun, digits: int) -> bool:
    """Whether both sides of an interval are printed as the same number."""
    value = row.value or 0.0
    return number(value - row.low, digits) == number(row.high - value, digits)


def number(value: float | None, digits: int) -> str:
    """A number for people; what is not finite is a dash."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def signed(value: float | None, digits: int) -> str:
    """A difference for people, with its sign."""
    return ("+" if value and value > 0 else "") + number(value, digits)


def p_value(p: float) -> str:
    """A p-value: three decimals, or that it is smaller than they show."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


@dataclass(frozen=True)
class PairwiseLine:
    """One run against all others, in words: the table beside the matrix."""

    tier: int | None
    tag: str
    better: int
    open: int
    worse: int
    alike: int
    unknown: int
    rivals: list[str]

    @property
    def rivals_named(self) -> str:
        """In one piece: a page of a hundred runs names thousands."""
        return ", ".join(self.rivals)


@dataclass(frozen=True)
class PairwiseFigure:
    """``notes``: why differences are not known, with an example each. ``within``: what is
    negligible, or 0."""

    measure: str
    tags: list[str]
    matrix: matrices.VerdictMatrix
    lines: list[PairwiseLine]
    notes: list[UnknownDifferences]
    within: float = 0.0


def pairwise_figure(table: RankingTable, pairs: Pairwise) -> PairwiseFigure:
    """The verdicts in the order of the ranking."""
    tags = [row.tag for row in table.rows]
    order = [pairs.runs.index(tag) for tag in tags]
    verdicts = _shown_verdicts(pairs, order)
    lines = [
        _pairwise_line(row, tags, line) for row, line in zip(table.rows, verdicts, strict=True)
    ]
    matrix = matrices.verdict_matrix(tags, verdicts, measure=table.measure, ranked=len(table.known))
    notes = unknown_differences(pairs, table.purpose)
    within = pairs.equivalence.within if pairs.equivalence else 0.0
    return PairwiseFigure(table.measure, tags, matrix, lines, notes, within)


def _shown_verdicts(pairs: Pairwise, order: Sequence[int]) -> list[list[matrices.Verdict]]:
    """With what is not known and what is equivalent, in this order of runs."""
    alike = pairs.equivalent & (pairs.verdicts == 0)
    shown = np.where(alike, matrices.ALIKE, pairs.verdicts).astype(object)
    shown[pairs.unknown != Reason.KNOWN] = None
    rows: list[list[matrices.Verdict]] = shown[np.ix_(order, order)].tolist()
    return rows


def _pairwise_line(
    row: RankedRun, tags: Sequence[str], verdicts: Sequence[matrices.Verdict]
) -> PairwiseLine:
    others = [(tag, found) for tag, found in zip(tags, verdicts, strict=True) if tag != row.tag]
    rivals = [tag for tag, found in others if found == 0]
    return PairwiseLine(
        tier=row.tier,
        tag=row.tag,
        better=verdicts.count(1),
        open=len(rivals),
        worse=verdicts.count(-1),
        alike=verdicts.count(matrices.ALIKE),
        unknown=verdicts.count(None),
        rivals=rivals,
    )


@dataclass(frozen=True)
class ComparisonFigure:
    """Without a drawing and numbers where the difference is not known."""

    comparison: RunComparison
    forest: forests.Forest | None
    difference: str
    low: str
    high: str
    p: str
    verdict: str
    notes: list[str]


def comparison_figure(found: RunComparison) -> ComparisonFigure:
    digits = decimals(((found.high or 0.0) - (found.low or 0.0)) / 2)
    return ComparisonFigure(
        comparison=found,
        forest=None if found.unknown else _difference_forest(found),
        difference=signed(found.difference, digits),
        low=signed(found.low, digits),
        high=signed(found.high, digits),
        p=p_value(found.adjusted_p),
        verdict=_verdict(found),
        notes=[] if found.unknown else _notes_of_reach(found),
    )


def _difference_forest(found: RunComparison) -> forests.Forest:
    first, second = found.first.tag, found.second.tag
    interval = forests.ForestValue(
        f"{first} less {second}", found.difference, found.low, found.high, bool(found.verdict)
    )
    return forests.forest(
        [interval, forests.ForestValue("no difference", 0.0, 0.0, 0.0)],
        title=f"Difference by {found.measure}",
        description=f"{first} less {second}, with the 95 % interval of this difference alone.",
    )


def _notes_of_reach(found: RunComparison) -> list[str]:
    return [_note(row, found.measure) for row in (found.first, found.second) if row.open_part]


def _note(row: RankedRun, measure: str) -> str:
    reached = f"{share_reached(row.support)} of what {measure} counts for"
    return (
        f"{row.tag} joined after the sample was drawn, which reaches {reached} it. "
        if row.late
        else f"The sample reaches {reached} {row.tag}. "
    ) + "The difference is that of the sampled part; verdict and p allow for the rest."


def _verdict(found: RunComparison) -> str:
    first, second = found.first.tag, found.second.tag
    if found.unknown:
        return f"Whether {first} or {second} is better is not known."
    if found.verdict == 0 and found.within:
        return f"{first} and {second} are equivalent."
    if found.verdict == 0:
        return f"{first} and {second} cannot be told apart."
    better, worse = (first, second) if found.verdict > 0 else (second, first)
    return f"{better} is surely better than {worse}."


@dataclass(frozen=True)
class LabelLine:
    """So many labels per pair: what the work pays for, and what comes of it."""

    labels: int
    pairs: str
    half_width: str
    best: bool


@dataclass(frozen=True)
class LabelFigure:
    """Numbers of labels per pair compared; no sentence if the labels do not tell."""

    work: int
    repeated_pairs: int
    sentence: str
    lines: list[LabelLine]

    @property
    def best(self) -> int:
        return next((line.labels for line in self.lines if line.best), 0)


def label_figure(found: Mapping[str, Any]) -> LabelFigure:
    """A `LabelComparison` with its conclusion: the number that gives the narrowest intervals."""
    widths = {each["labels"]: each["half_width"] for each in found["choices"]}
    known = {labels: width for labels, width in widths.items() if width is not None}
    best = min(known, key=lambda labels: (known[labels], labels), default=0)
    digits = decimals(known.get(best))
    lines = [
        LabelLine(
            labels=each["labels"],
            pairs=number(each["pairs"], 0),
            half_width=number(each["half_width"], digits),
            best=each["labels"] == best,
        )
        for each in found["choices"]
    ]
    return LabelFigure(found["work"], found["repeated_pairs"], _label_sentence(lines, best), lines)


def _label_sentence(lines: Sequence[LabelLine], best: int) -> str:
    shown = [
        f"{plus_minus(line.half_width)} with {line.labels}"
        for line in lines
        if line.half_width != "–"
    ]
    if not shown:
        return ""
    gives = "1 label per pair gives" if best == 1 else f"{best} labels per pair give"
    return (
        f"With judgments as consistent as these, {gives} the narrowest intervals for the same "
        f"work: {', '.join(shown)}."
    )


@dataclass(frozen=True)
class WidthLine:
    place: forests.ForestRow
    half_width: str


@dataclass(frozen=True)
class MeasurePreview:
    """Expected half widths under one measure, narrowest first."""

    measure: str
    forest: forests.Forest
    lines: list[WidthLine]
    middle: str
    difference: str


@dataclass(frozen=True)
class PreviewFigures:
    """A round's preview (estimation.services.previews) made ready to be shown."""

    measures: list[MeasurePreview]
    curve: curves.Curve | None
    curve_rows: list[tuple[int, str]]
    topics: bars.BarChart
    share: float
    reached: reach_figures.ReachFigure | None = None


def preview_figures(
    preview: Mapping[str, Any],
    *,
    budget: int,
    work: reach_figures.Work | None = None,
    calendar: reach_figures.Calendar | None = None,
) -> PreviewFigures:
    points = [(point["budget"], point["half_width"]) for point in preview["curve"]]
    digits = common_decimals(width for _, width in points if width is not None)
    per_topic = [(line["topic"], line["expected"]) for line in preview["pairs_per_topic"]]
    return PreviewFigures(
        measures=[_measure_preview(found) for found in preview["measures"]],
        curve=_budget_curve(preview, points, budget),
        curve_rows=[(at, number(width, digits)) for at, width in points],
        topics=bars.topic_bars(per_topic),
        share=100 * preview["expected_pairs"] / max(1, preview["pool_pairs"]),
        reached=reach_figures.reach_figure(preview, budget=budget, work=work, calendar=calendar),
    )


def _budget_curve(
    preview: Mapping[str, Any], points: list[tuple[int, float | None]], budget: int
) -> curves.Curve | None:
    """None for a round whose precision nobody can tell beforehand."""
    if not points:
        return None
    chosen = budget if any(at == budget for at, _ in points) else max(at for at, _ in points)
    return curves.budget_curve(points, chosen=chosen, measure=preview["measures"][0]["measure"])


def _measure_preview(found: Mapping[str, Any]) -> MeasurePreview:
    widths = [(line["run"], line["half_width"]) for line in found["half_widths"]]
    widths.sort(key=lambda line: (line[1] is None, line[1] or 0.0, line[0]))
    digits = common_decimals(width for _, width in widths if width is not None)
    forest = forests.widths_forest(widths, measure=found["measure"])
    at_best = {line["run"]: line.get("half_width_least") for line in found["half_widths"]}
    shown = [_range(at_best[run], width, digits) for run, width in widths]
    return MeasurePreview(
        measure=found["measure"],
        forest=forest,
        lines=[WidthLine(*line) for line in zip(forest.rows, shown, strict=True)],
        middle=shown[len(shown) // 2],
        difference=_range(found.get("difference_least"), found["difference"], digits),
    )


def _range(least: float | None, most: float | None, digits: int) -> str:
    """Both ends, of a round of which it was played what it learns; else one number."""
    low, high = number(most if least is None else least, digits), number(most, digits)
    return high if low == high else f"{low} to {high}"
