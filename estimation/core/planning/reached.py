"""From a budget to what it reaches, and from what shall be reached to the budget.

Both ways are read off one table, so that they agree. Between its lines half widths are taken to
fall, and shares of decided differences to rise, as straight lines, which is right to about 2 %.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ..tables import Columns, Tabled, by_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

Target: TypeAlias = Literal["half_width", "decided", "best", "hours"]
TARGETS: tuple[Target, ...] = get_args(Target)


@dataclass(frozen=True)
class Reached:
    """What a budget is expected to reach.

    Attributes
    ----------
    budget : float
        In the unit of the design.
    work : float
        Distinct pairs to be judged, as expected; or what they count for as work.
    half_width, half_width_most : float
        Of the interval of the middle one of the runs whose values the sample supports: as the prior
        expects, and if much more is relevant; of a round that learns, in the kindest of the worlds
        in which it was played, and in the other ones. Infinite where it supports none.
    decided_least, decided_most : float
        Share of the differences between two runs that have a verdict: between these.
    best_least, best_most : float
        Chance that the best two runs are told apart: between these.
    pairs : float
        Distinct pairs alone, whatever else there is to do; 0 where it was not worked out.
    """

    budget: float
    work: float
    half_width: float
    half_width_most: float
    decided_least: float
    decided_most: float
    best_least: float = 0.0
    best_most: float = 0.0
    pairs: float = 0.0


@dataclass(frozen=True)
class Answer:
    """Budgets that reach something.

    Attributes
    ----------
    hoped : float or None
        Enough if all is as the prior expects, or at best; None: not even the whole pool is.
    careful : float or None
        Enough as well if it is not.
    """

    hoped: float | None
    careful: float | None


@dataclass(frozen=True, repr=False)
class ReachedByBudget(Tabled):
    """What budgets reach, ascending; the last is for all that can be judged, if that has an end."""

    lines: tuple[Reached, ...]

    def columns(self) -> Columns:
        """Return a row for every budget."""
        names = tuple(Reached.__dataclass_fields__)
        rows = [list(asdict(each).values()) for each in self.lines]
        return by_rows(tuple(name.replace("_", " ") for name in names), rows)

    def facts(self) -> list[dict[str, float | None]]:
        """Return it in plain values, None for what is infinite; `of_facts` gives it back."""
        return [
            {name: value if math.isfinite(value) else None for name, value in asdict(each).items()}
            for each in self.lines
        ]

    @classmethod
    def of_facts(cls, facts: list[Mapping[str, Any]]) -> ReachedByBudget:
        """Read what `facts` gave."""
        given = ({name: _number(value) for name, value in each.items()} for each in facts)
        return cls(tuple(Reached(**each) for each in given))

    def at(self, budget: float) -> Reached:
        """Return what a budget reaches, at the ends what the first or last one does."""
        first, last = self.lines[0], self.lines[-1]
        if not first.budget < budget < last.budget:
            return first if budget <= first.budget else last
        before, after = next(two for two in pairwise(self.lines) if budget <= two[1].budget)
        if budget == after.budget:  # what is infinite has nothing between
            return after
        part = (budget - before.budget) / (after.budget - before.budget)
        low, high = asdict(before), asdict(after)
        return Reached(**{name: (1.0 - part) * low[name] + part * high[name] for name in low})

    def budget_for(self, target: Target, wanted: float, *, hours_each: float = 0.0) -> Answer:
        """Return the least budgets that reach something.

        Parameters
        ----------
        target : {"half_width", "decided", "best", "hours"}
            Of hours the largest budget that they pay for, both times.
        wanted : float
            A half width in the measure's unit, a share or a chance from 0 to 1, or hours, > 0.
        hours_each : float
            For a unit of `Reached.work`; of hours alone.

        Raises
        ------
        ValueError
            If it is no number above 0, or hours are asked for and none are given for a unit.

        Examples
        --------
        >>> some = Reached(100.0, 100.0, 0.4, 0.6, 0.1, 0.3)
        >>> more = Reached(300.0, 300.0, 0.2, 0.4, 0.3, 0.5)
        >>> table = ReachedByBudget((some, more))
        >>> answer = table.budget_for("half_width", 0.3)
        >>> round(answer.hoped), answer.careful
        (200, None)
        >>> table.budget_for("hours", 2.0, hours_each=0.01).hoped
        200.0
        """
        if not wanted > 0.0:
            raise ValueError(f"wanted must be above 0, not {wanted!r}")
        if target == "hours":
            if not hours_each > 0.0:
                raise ValueError(f"hours_each must be above 0, not {hours_each!r}")
            return self._paid_for(wanted / hours_each)
        if target == "half_width":
            hoped = [(each.budget, -each.half_width) for each in self.lines]
            careful = [(each.budget, -each.half_width_most) for each in self.lines]
            return Answer(_first(hoped, -wanted), _first(careful, -wanted))
        most = [(each.budget, getattr(each, f"{target}_most")) for each in self.lines]
        least = [(each.budget, getattr(each, f"{target}_least")) for each in self.lines]
        return Answer(_first(most, wanted), _first(least, wanted))

    def _paid_for(self, work: float) -> Answer:
        last = self.lines[-1]
        found = _first([(each.budget, each.work) for each in self.lines], min(work, last.work))
        return Answer(found, found)


def _number(value: float | None) -> float:
    return math.inf if value is None else float(value)


def _first(points: list[tuple[float, float]], level: float) -> float | None:
    """Where straight lines through points first reach a level; before the first, in proportion."""
    before: tuple[float, float] | None = None
    for x, y in points:
        if y >= level:
            if before is None or y <= before[1] or math.isinf(before[1]):
                return x * (level / y if before is None and 0.0 < level < y else 1.0)
            return before[0] + (level - before[1]) / (y - before[1]) * (x - before[0])
        before = (x, y)
    return None
