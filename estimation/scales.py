"""Numbers on axes: how many decimals, which round values, where they lie.

Of all charts (`charts` has their geometry, templates/charts draws it): positions across are
percentages of the drawing's width and positions down are pixels, so that a chart fills whatever
room it gets and its text keeps its size. Lines that need a path live in a square of 100 by 100 that
is stretched over the plot. Every chart has a title and a description; the numbers stand in a table
beside it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

NARROW = 200
"""Width in pixels at which labels along the axis must still not touch."""
CHARACTER = 7.0
"""Room in pixels that a character of a label takes."""
MAX_DECIMALS = 6
PLOT_HEIGHT = 200.0


def finite(number: float | None) -> float | None:
    """The number, or None for one that cannot be drawn."""
    return number if number is not None and math.isfinite(number) else None


def decimals(half_width: float | None) -> int:
    """Decimals that a half width justifies: its first two digits, as in 0.412 ± 0.021."""
    if half_width is None or not math.isfinite(half_width) or half_width <= 0:
        return 3
    first = math.floor(math.log10(half_width))
    return min(MAX_DECIMALS, max(0, 1 - first))


def common_decimals(half_widths: Iterable[float]) -> int:
    """Decimals of a column of numbers: those of the middle half width."""
    usable = sorted(width for width in half_widths if math.isfinite(width) and width > 0)
    return decimals(usable[len(usable) // 2] if usable else None)


def share_reached(support: float) -> str:
    """A share in percent, rounded down: only a whole is 100 %."""
    return f"{math.floor(1000 * support + 1e-9) / 10:g} %"


def nice_step(span: float, most: int) -> float:
    """The least of 1, 2 and 5 times a power of ten that cuts the span into at most ``most``."""
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))


def nice_values(low: float, high: float, most: int) -> list[float]:
    """Round numbers within the limits, at most ``most`` + 1 of them."""
    if not high > low:
        return [low]
    step = nice_step(high - low, most)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [step * number for number in range(first, last + 1)]


# ------------------------------------------------------------------------------- scales, ticks


@dataclass(frozen=True)
class Tick:
    """A labeled position: percent across, or pixels down."""

    at: float
    label: str


@dataclass(frozen=True)
class Scale:
    """Values on 0..100, straight or logarithmic; what lies outside is put on the edge."""

    low: float
    high: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = (math.log(max(number, 1e-300)) for number in (low, high, value))
        share = 0.5 if high <= low else (value - low) / (high - low)
        return round(100.0 * min(1.0, max(0.0, share)), 3)

    def ticks(self, most: int = 5) -> tuple[Tick, ...]:
        """Ticks whose labels do not touch at ``NARROW`` pixels."""
        for fewer in range(most, 0, -1):
            ticks = self.labeled(fewer)
            if not _touch(ticks):
                return ticks
        return ticks[:1]

    def labeled(self, most: int) -> tuple[Tick, ...]:
        values = self._decades(most) if self.logarithmic else nice_values(self.low, self.high, most)
        step = values[1] - values[0] if len(values) > 1 else abs(values[0])
        digits = 0 if self.logarithmic or not step else -math.floor(math.log10(step) + 1e-9)
        return tuple(Tick(self.at(value), label(value, max(0, digits))) for value in values)

    def _decades(self, most: int) -> list[float]:
        lowest, highest = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for factors in ((1, 2, 5), (1, 3), (1,)):
            values = [
                factor * 10.0**power
                for power in range(lowest, highest + 1)
                for factor in factors
                if self.low <= factor * 10.0**power <= self.high
            ]
            if 2 <= len(values) <= most:
                return values
        return [self.low, self.high] if self.high > self.low else [self.low]


def label(value: float, digits: int) -> str:
    text = f"{value:,.{min(digits, MAX_DECIMALS)}f}"
    return "0" if float(text.replace(",", "")) == 0 else text.replace("-", "−")


def with_end(scale: Scale) -> tuple[Tick, ...]:
    """Ticks with one at the end, which says how far the axis goes, and none that touches it."""
    if not scale.high > scale.low:
        return scale.ticks()
    end = Tick(100.0, label(scale.high, 0))
    return (*(tick for tick in scale.ticks() if not _touch((tick, end))), end)


def plus_minus(half_width: str) -> str:
    """A half width as it stands in a sentence: no line ends before its number."""
    return f"±\N{NO-BREAK SPACE}{half_width}"


def _touch(ticks: Sequence[Tick]) -> bool:
    ends = [(tick.at / 100 * NARROW, len(tick.label) * CHARACTER / 2) for tick in ticks]
    return any(
        right - left < half + other + CHARACTER for (left, half), (right, other) in pairwise(ends)
    )


def around(values: Iterable[float | None], share: float = 0.04) -> Scale:
    """A scale over the finite values, with some room at both ends."""
    usable = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min(usable, default=0.0), max(usable, default=1.0)
    room = (high - low) * share or abs(high) * 0.1 or 0.5
    return Scale(low - room, high + room)


def from_zero(values: Iterable[float | None]) -> Scale:
    """A scale from zero to a round number above all finite values."""
    usable = [value for value in values if value is not None and math.isfinite(value)]
    high = max(usable, default=0.0)
    if high <= 0:
        return Scale(0.0, 1.0)
    step = nice_step(high, 4)
    return Scale(0.0, step * math.ceil(high / step - 1e-9))


def levels(scale: Scale, height: float, most: int = 4) -> tuple[Tick, ...]:
    """Ticks of an upright axis, in pixels from the top; one alone would tell no distance."""
    ticks = scale.labeled(most)
    if len(ticks) < 2:
        ticks = scale.labeled(2 * most)
    return tuple(Tick(round(height * (1 - tick.at / 100), 2), tick.label) for tick in ticks)


def down(scale: Scale, height: float, value: float) -> float:
    return round(height * (1 - scale.at(value) / 100), 2)


def polyline(points: Iterable[tuple[float, float]]) -> str:
    """The points of a line; nothing for a single one, which makes no line."""
    placed = [f"{x:g},{y:g}" for x, y in points]
    return " ".join(placed) if len(placed) > 1 else ""


# ------------------------------------------------------------------------------- times

MOST_DATES = 5
CLOCK_STEPS = [timedelta(minutes=minutes) for minutes in (1, 5, 15, 30, 60, 180, 360, 720)]
DAY_STEPS = (1, 2, 7, 14)
CLOCK_FORM, DAY_FORM = "%H:%M", "%-d %b"
MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120)


def ticks_between(first: datetime, last: datetime) -> list[Tick]:
    """At most `MOST_DATES` round times between two, as percent of the way, as UTC.

    Where there may be two midnights, each is told by its day.
    """
    whole = last - first
    if whole <= timedelta(0):
        return []
    times, form = _round_times(first, last)
    midnights = DAY_FORM if form == CLOCK_FORM and whole > timedelta(days=1) else form
    return [
        Tick(
            round(100.0 * ((time - first) / whole), 3),
            f"{time:{form if time.hour or time.minute else midnights}}",
        )
        for time in times
    ]


def _round_times(first: datetime, last: datetime) -> tuple[list[datetime], str]:
    """Full minutes or hours of the day, midnights, or first days of months; how they are told."""
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    steps = [(step, CLOCK_FORM) for step in CLOCK_STEPS]
    steps += [(timedelta(days=days), DAY_FORM) for days in DAY_STEPS]
    for step, form in steps:
        if (last - first) / step <= MOST_DATES:
            before = midnight + step * ((first - midnight) // step)
            number = (last - before) // step + 1
            times = [before + step * at for at in range(number + 1)]
            return [time for time in times if first <= time <= last], form
    for months in MONTH_STEPS:
        times = [time for time in _first_days(midnight, last, months) if first <= time <= last]
        if len(times) <= MOST_DATES:
            return times, "%b %Y"
    return [], ""


def _first_days(midnight: datetime, last: datetime, months: int) -> Iterator[datetime]:
    """Every so many months, counted from January of a year."""
    number = midnight.year * 12 + midnight.month - 1
    number -= number % months
    while (time := midnight.replace(year=number // 12, month=number % 12 + 1, day=1)) <= last:
        yield time
        number += months


def shortened(text: str, most: int) -> str:
    """Text of at most so many characters, without its middle: names of runs differ at the ends.

    Examples
    --------
    >>> shortened("bm25-rerank-large-2024", 12)
    'bm25-r…-2024'
    """
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"


def decided_of(decided: int, total: int) -> str:
    """How many pairs of runs are decided, of how many."""
    pairs = "1 pair of runs is" if total == 1 else f"{total:,} pairs of runs are"
    return f"{decided:,} of {pairs} decided"
