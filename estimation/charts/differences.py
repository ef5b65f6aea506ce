"""Differences by topic: upright bars on both sides of zero, in the order given."""

from collections.abc import Sequence
from dataclasses import dataclass

from estimation.scales import PLOT_HEIGHT, Scale, Tick, down, label, levels, nice_step, nice_values

MIDDLE, GAP = 0.86, 0.07  # share of the room of a bar that it fills, and that before it


@dataclass(frozen=True)
class DifferenceBar:
    """``x`` and ``width`` in percent across, ``y`` and ``height`` in whole pixels down.

    Without a value it stands for what is not known: a mark on the line of zero.
    """

    key: str
    label: str
    value: float | None
    x: float
    width: float
    y: float
    height: float

    @property
    def side(self) -> str:
        """For whom it speaks, as a class of the drawing."""
        if self.value is None:
            return "unknown"
        return "first" if self.value > 0 else "second"

    @property
    def sentence(self) -> str:
        if self.value is None:
            return f"{self.label}: nothing judged"
        sign = "+" if self.value > 0 else ""
        return f"{self.label}: {sign}{label(self.value, 4)}"


@dataclass(frozen=True)
class DifferenceChart:
    title: str
    description: str
    height: float
    zero: float
    bars: tuple[DifferenceBar, ...]
    y_ticks: tuple[Tick, ...]


def difference_bars(
    values: Sequence[tuple[str, str, float | None]], *, first: str, second: str
) -> DifferenceChart:
    """Key, label and value of each topic, None where nothing is judged."""
    known = [value for _, _, value in values if value is not None]
    upright = _around_zero(known)
    room = 100 / max(len(values), 12)
    zero = round(down(upright, PLOT_HEIGHT, 0.0))

    def bar(at: int, key: str, name: str, value: float | None) -> DifferenceBar:
        end = zero if value is None else round(down(upright, PLOT_HEIGHT, value))
        return DifferenceBar(
            key=key,
            label=name,
            value=value,
            x=round(room * (at + GAP), 3),
            width=round(room * MIDDLE, 3),
            y=min(zero, end),
            height=max(abs(end - zero), 1),
        )

    for_first, for_second = sum(v > 0 for v in known), sum(v < 0 for v in known)
    return DifferenceChart(
        title=f"{first} less {second}, topic by topic",
        description=f"Of {len(values)} topics {for_first} speak for {first}, {for_second} for "
        f"{second}; of {len(values) - len(known)} nothing is judged.",
        height=PLOT_HEIGHT,
        zero=zero,
        bars=tuple(bar(at, *row) for at, row in enumerate(values)),
        y_ticks=levels(upright, PLOT_HEIGHT),
    )


def _around_zero(values: Sequence[float]) -> Scale:
    """From a round number below all values to one above, zero among them."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return Scale(-1.0, 1.0)
    step = nice_step(high - low, 4)
    ends = nice_values(low - step * (low < 0), high + step * (high > 0), 8)
    below = max((end for end in ends if end <= low), default=low)
    above = min((end for end in ends if end >= high), default=high)
    return Scale(below, above)
