"""What a round is foretold to bring: read, said in words, and drawn beside what came."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from estimation.charts.lines import LineChart, lines
from estimation.conclusions import STOPPED, in_two_digits, judgments
from estimation.core.planning.foretold import MOST, SELDOM, Forecast, Prospect
from estimation.core.planning.reached import ReachedByBudget
from estimation.findings import LIMIT, OPEN, SURE
from estimation.models import EstimateSet, Round
from estimation.scales import common_decimals, label
from estimation.selectors import RankingTable
from estimation.stored import stored_facts

SHOWN = 12
"""So many batches, evenly spread, stand beside what was foretold."""


def forecast_of(shown: EstimateSet) -> Forecast | None:
    """What was foretold with some estimates; None where there was no forecast."""
    found: dict[str, Any] | None = stored_facts(shown).get("forecast")
    return Forecast.of_facts(found) if found else None


@dataclass(frozen=True)
class Said:
    """A conclusion of a forecast: ``state`` as in `Prospect`, or that the round has stopped before;
    in words, and the judgments left.

    ``chance``: that it comes true within the budget; None where it is not told.
    """

    about: str
    state: str
    judgments: int | None
    least: int | None
    most: int | None
    chance: float | None
    text: str

    @property
    def kind(self) -> str:
        """As of a finding."""
        stopped = OPEN if self.judgments else LIMIT
        kinds = {"decided": SURE, "equivalent": SURE, "go on": OPEN, STOPPED: stopped}
        return kinds.get(self.state, LIMIT)


def said(row: Round, forecast: Forecast) -> list[Said]:
    """What to make of it, of the best run and of the ranking."""
    best, ranking = forecast.of_best(), forecast.of_ranking()
    share = f"nine tenths of the {forecast.differences:,} differences between two runs"
    decided, which = f"{share} are decided", "which run is the best"
    if forecast.differences == 1:
        share = "the one difference between two runs"
        decided = f"{share} is decided"
        if forecast.steps[0].enough is None:  # which is the best is the same question
            ranking = best
    elif forecast.steps[0].decided >= forecast.differences:
        decided = f"all {forecast.differences:,} differences between two runs are decided"
    of_best, of_share = "the best run is decided", decided
    if forecast.steps[0].enough is not None:
        limit = f"at most {row.negligible:g}"
        of_best, of_share = f"a run is known to be {limit} below the best", f"{decided} or {limit}"
    if best.state == "decided":
        of_best = "the best run is decided"
    if ranking.state == "decided":
        of_share = decided
    all_judged = len(forecast.steps) == 1
    return [
        _said(row, best, "best", of_best, which, all_judged=all_judged),
        _said(row, ranking, "ranking", of_share, f"the ranking ({share})", all_judged=all_judged),
    ]


def _said(
    row: Round, found: Prospect, about: str, done: str, what: str, *, all_judged: bool
) -> Said:
    more, least, most = (_judgments(row, pairs) for pairs in (found.more, found.least, found.most))
    of_ten, settled = _of_ten(least, most), found.state in ("decided", "equivalent")
    stopped = row.state == Round.State.STOPPED and not settled and not all_judged
    state, chance = (STOPPED, None) if stopped else (found.state, found.chance)
    if settled:
        text = f"{done[0].upper()}{done[1:]}."
    elif stopped and more:
        rest = f" ({of_ten})" if of_ten else ""
        text = f"The round has stopped; it would have taken {judgments(more)} until {done}{rest}."
    elif more is None:
        text = f"Not even the whole pool is foretold to decide {what}"
        if all_judged:
            text = f"All that there is to judge is judged, which does not decide {what}"
        elif of_ten:
            text = f"In most cases not even the whole pool decides {what} ({of_ten})"
        text += f": runs may be equally good.{_within(chance)}"
    else:
        takes = f"{judgments(more)} until {done}{f', {of_ten}' if of_ten else ''}"
        it_takes = "" if found.state == "go on" else "it takes "
        text = f"{_begin(found)}: {it_takes}{takes}.{_within(chance)}"
    return Said(about, state, more, least, most, chance, text)


def _judgments(row: Round, pairs: float | None) -> int | None:
    """What judging so many pairs takes; nothing where nothing is left to judge."""
    if not pairs:
        return None if pairs is None else 0
    return in_two_digits(pairs * row.labels_each)


def _begin(found: Prospect) -> str:
    if found.state == "go on":
        return "Go on"
    far = found.chance is None or found.chance < SELDOM
    return f"{'Out of reach with' if far else 'Unlikely within'} this budget"


def _of_ten(least: int | None, most: int | None) -> str:
    """What it takes in eight of ten futures; nothing where hardly any ends, or all end alike."""
    if least is None or least == most:
        return ""
    if most is None:
        return f"in nine of ten cases {least:,} or more, perhaps without end"
    return f"in eight of ten cases {least:,} to {most:,}"


def _within(chance: float | None) -> str:
    if chance is None:
        return ""
    return f" This budget is enough in {in_hundred(chance)} of 100 cases."


def in_hundred(chance: float) -> str:
    """A chance that futures were counted for: more digits would pretend to know."""
    if chance < 0.01:
        return "less than 1"
    return "more than 99" if chance > 0.99 else f"{100.0 * chance:.0f}"


@dataclass(frozen=True)
class ForecastLine:
    """A number of judged pairs: what came, what was foretold early, and what is now.

    ``best``: whether the best run is known, or the chance that it will be.
    """

    batch: str
    pairs: str
    came: str
    early: str
    now: str
    decided: str
    best: str


@dataclass(frozen=True)
class ForecastFigure:
    """What is foretold of a round, in words, as a picture and as a table.

    One that has ``stopped`` is told what more would have brought, and no more to go on.
    """

    measure: str
    half_width: str
    at_end: str
    target: str
    ended: bool
    stopped: bool
    said: list[Said]
    early: int | None
    chart: LineChart
    lines: list[ForecastLine]


def forecast_figure(table: RankingTable) -> ForecastFigure | None:
    """Of the measure that the round was made for; None where nothing is foretold, or known yet."""
    row, shown = table.round, table.estimate_set
    now = forecast_of(shown) if table.measure == row.measure and table.known else None
    if now is None:
        return None
    before = [forecast for each in _before(row, shown) if (forecast := forecast_of(each))]
    early = _early(before, now)
    came = [each.steps[0] for each in (*before, now)]
    later = [each for each in now.steps[1:] if each.batches is not None]
    digits = common_decimals(each.half_width for each in (*came, *later))
    target = target_of(row)
    end = (later or came)[-1]
    return ForecastFigure(
        measure=table.measure,
        half_width=label(now.steps[0].half_width, digits),
        at_end=label(end.half_width, digits),
        target="" if target is None else label(target, digits),
        ended=not later,
        stopped=row.state == Round.State.STOPPED,
        said=said(row, now) if now.differences else [],
        early=early.batches if early else None,
        chart=_chart(table.measure, now, came, early, target),
        lines=_lines(now, came, later, early, digits),
    )


def _before(row: Round, shown: EstimateSet) -> list[EstimateSet]:
    """The last estimates of some earlier numbers of batches, ascending."""
    sets = row.estimate_sets.filter(batches__lt=shown.batches).order_by("number")
    last = {each.batches: each for each in sets.defer("provenance")}
    numbers = sorted(last)
    every = max(1, math.ceil(len(numbers) / SHOWN))
    return [last[number] for number in numbers[::every]]


def _early(before: Sequence[Forecast], now: Forecast) -> Forecast | None:
    """The first forecast from a quarter of the batches on, or the last before it."""
    total = max(each.batches or 0 for each in now.steps)
    late = [each for each in before if each.batches * 4 >= total]
    return late[0] if late else (before[-1] if before else None)


def target_of(row: Round) -> float | None:
    """The half width that the round is to reach: by its rule, or else that with which its budget
    was chosen, the careful end of what the plan told. None where the plan told nothing, or that
    everything is judged."""
    if row.stop_when == Round.Stop.WIDTH:
        return row.stop_width
    if not row.preview.get("reached"):
        return None
    planned = ReachedByBudget.of_facts(row.preview["reached"]).at(float(row.budget))
    most = planned.half_width_most
    return most if math.isfinite(most) and most > 0.0 else None


def _chart(
    measure: str,
    now: Forecast,
    came: Sequence[Any],
    early: Forecast | None,
    target: float | None,
) -> LineChart:
    def points(steps: Sequence[Any]) -> list[tuple[float, float]]:
        return [(each.pairs, each.half_width) for each in steps]

    within = [each for each in now.steps if each.batches is not None]
    of_early = [each for each in early.steps if each.batches is not None] if early else []
    return lines(
        [
            ("foretold early", "early", points(of_early)),
            ("foretold now", "foretold", points(within)),
            ("came", "came", points(came)),
        ],
        title="Half width: foretold and come",
        description=f"Half width of {measure} of the middle run against judged pairs.",
        level=target,
        dotted=("came",),
    )


def _lines(
    now: Forecast,
    came: Sequence[Any],
    later: Sequence[Any],
    early: Forecast | None,
    digits: int,
) -> list[ForecastLine]:
    def line(step: Any, is_there: bool) -> ForecastLine:
        then = early.half_width_at(step.pairs) if early else None
        width = label(step.half_width, digits)
        return ForecastLine(
            batch=str(step.batches),
            pairs=f"{step.pairs:,.0f}",
            came=width if is_there else "",
            early="" if then is None else label(then, digits),
            now="" if is_there else width,
            decided=f"{step.decided:,.0f}",
            best=("yes" if step.known >= 1.0 else "no")
            if is_there
            else f"{in_hundred(step.known)}\u00a0%",
        )

    return [*(line(each, True) for each in came), *(line(each, False) for each in later)]


def forecast_facts(row: Round, shown: EstimateSet, measure: str) -> dict[str, Any] | None:
    """The same for programs: the steps, and what to make of them."""
    found = forecast_of(shown) if measure == row.measure else None
    if found is None:
        return None
    told = {each.about: each for each in said(row, found)}
    return {
        "batches": found.batches,
        "differences": found.differences,
        "share_decided": MOST,
        "steps": found.steps,
        **told,
    }
