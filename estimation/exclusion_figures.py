"""How far the numbers move without the exclusions, in words and as lines of tables.

For the tab *Quality*, REST and the report. The worker has worked it out (`services.taken_back`);
nothing is computed here but places of runs by their values, and how far values are apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from estimation.core.inference.orders import places
from estimation.figures import number
from estimation.findings import NOTE, OPEN, Finding
from estimation.scales import MAX_DECIMALS, common_decimals
from judging.models import Exclusion

ALL = "All excluded work"
NOT_YET = (
    "How far the numbers move without the exclusions is not known yet: no worker has looked since "
    "they changed."
)
NONE_OF_THESE = (
    "No excluded work is about the pairs that these estimates rest on, so that no number moves."
)
NAMED = 3
STILL = 1e-9
"""Of a half width: a smaller move is one of the last digits."""
VERDICTS = {
    "appear": ("appears", "appear"),
    "fall": ("falls", "fall"),
    "turn": ("turns round", "turn round"),
}


@dataclass(frozen=True)
class MovedRun:
    """As printed. ``half_widths``: the move as a multiple of the half width of the estimate."""

    run: str
    place: str
    value: str
    other_place: str
    other_value: str
    move: str
    half_widths: str
    moved: bool


@dataclass(frozen=True)
class MovedMeasure:
    """By a measure, as printed: the largest move of a value, and the largest in half widths;
    how many runs change places, which verdicts appear or fall."""

    measure: str
    most: str
    half_widths: str
    places: int
    verdicts: str
    finding: Finding
    runs: list[MovedRun]


@dataclass(frozen=True)
class Way:
    """What counts again: all, or what was excluded on one ground."""

    name: str
    looks_at_grades: bool
    people: int
    labels: int
    measures: list[MovedMeasure]


@dataclass(frozen=True)
class ExclusionFigure:
    """``known``: whether a worker has looked at the exclusions as they are; else ``findings`` says
    so, and there are no ways. The first way is all of it."""

    known: bool
    findings: list[Finding]
    ways: list[Way]

    @property
    def all(self) -> Way | None:
        """None where no number moves, as nothing of it is about these pairs, or not known."""
        return self.ways[0] if self.ways and self.ways[0].labels else None

    @property
    def by_ground(self) -> list[Way]:
        return self.ways[1:] if self.all else []


def exclusion_figure(
    found: Mapping[str, Any], exclusions: Sequence[Exclusion]
) -> ExclusionFigure | None:
    """Of stored facts, and of the exclusions in force; None where nobody's work is excluded."""
    if not exclusions:
        return None
    told = found.get("excluded")
    if told is None or told["exclusions"] != sorted(row.pk for row in exclusions):
        return ExclusionFigure(False, [Finding(OPEN, NOT_YET)], [])
    ways = [_way(each) for each in told["ways"]]
    if not ways[0].labels:
        return ExclusionFigure(True, [Finding(NOTE, NONE_OF_THESE)], ways)
    return ExclusionFigure(True, [each.finding for each in ways[0].measures], ways)


def _way(told: Mapping[str, Any]) -> Way:
    ground = told["ground"]
    return Way(
        name=Exclusion.Ground(ground).label if ground else ALL,
        looks_at_grades=Exclusion(ground=ground).looks_at_grades,
        people=told["people"],
        labels=told["labels"],
        measures=[_Moved(each).figure for each in told["measures"] if each["runs"]],
    )


class _Moved:
    """The facts of a measure, with what follows from them for each run, in the order of the runs.

    ``moves`` and ``shares`` of half widths are None where a value is not known both ways.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.measure: str = told["measure"]
        self.runs: list[str] = told["runs"]
        self.lower: bool = told["lower"]
        self.verdicts: Mapping[str, Any] = told["verdicts"]
        self.both: list[tuple[float | None, float | None]] = list(
            zip(told["values"], told["otherwise"], strict=True)
        )
        self.widths: list[float] = [width for width in told["half_widths"] if width]
        self.moves = [None if None in two else two[1] - two[0] for two in self.both]  # type: ignore[operator]
        self.shares = [
            abs(move) / width if move is not None and width else None
            for move, width in zip(self.moves, told["half_widths"], strict=True)
        ]
        self.digits = min(1 + common_decimals(self.widths), MAX_DECIMALS)  # moves are small

    @cached_property
    def places(self) -> list[tuple[int | None, int | None]]:
        """Of the runs whose values are known, now and otherwise."""
        now, then = (self._places(column) for column in zip(*self.both, strict=True))
        return list(zip(now, then, strict=True))

    def _places(self, values: Sequence[float | None]) -> list[int | None]:
        known = np.array([value for value in values if value is not None], dtype=np.float64)
        found = iter(places(known, lower_is_better=self.lower).tolist())
        return [None if value is None else next(found) for value in values]

    @property
    def figure(self) -> MovedMeasure:
        far, wide = self._largest(self.moves), self._largest(self.shares)
        counts = {words[1]: self.verdicts[kind]["count"] for kind, words in VERDICTS.items()}
        return MovedMeasure(
            measure=self.measure,
            most="–" if far is None else number(abs(self.moves[far] or 0.0), self.digits),
            half_widths="–" if wide is None else number(self.shares[wide], 2),
            places=len(self._moved_places),
            verdicts=", ".join(f"{count} {word}" for word, count in counts.items() if count) or "–",
            finding=self._finding(),
            runs=self._lines(),
        )

    def _largest(self, column: Sequence[float | None]) -> int | None:
        known = [at for at, value in enumerate(column) if value is not None]
        return max(known, key=lambda at: abs(column[at] or 0.0), default=None)

    @cached_property
    def _moved_places(self) -> list[str]:
        return [
            f"{run} from {now} to {then}"
            for run, (now, then) in zip(self.runs, self.places, strict=True)
            if now and then and now != then
        ]

    def _lines(self) -> list[MovedRun]:
        """In the order of the estimates; those that are not known last."""
        last = len(self.runs) + 1
        order = sorted(
            range(len(self.runs)), key=lambda at: (self.places[at][0] or last, self.runs[at])
        )
        return [self._line(at) for at in order]

    def _line(self, at: int) -> MovedRun:
        (value, other), (place, other_place) = self.both[at], self.places[at]
        move = self.moves[at]
        return MovedRun(
            run=self.runs[at],
            place=str(place or "–"),
            value=number(value, self.digits),
            other_place=str(other_place or "–"),
            other_value=number(other, self.digits),
            move=("+" if (move or 0.0) > 0.0 else "") + number(move, self.digits),
            half_widths=number(self.shares[at], 2),
            moved=place != other_place,
        )

    def _finding(self) -> Finding:
        lost = sum((now is None) != (then is None) for now, then in self.both)
        parts = [self._how_far(), self._which_places(), self._which_verdicts()]
        if lost:
            verb = "is" if lost == 1 else "are"
            parts.append(f"{lost} of {len(self.runs)} values {verb} known one way alone")
        decided = any(kind["count"] for kind in self.verdicts.values())
        kind = OPEN if lost or decided or self._leads() else NOTE
        return Finding(kind, f"{self.measure}: {'; '.join(filter(None, parts))}.")

    def _how_far(self) -> str:
        far, wide = self._largest(self.moves), self._largest(self.shares)
        if far is None:
            return "no value is known both ways"
        most = abs(self.moves[far] or 0.0)
        if most <= STILL * min(self.widths, default=1.0):
            return "no value moves"
        said = f"values move by {number(most, self.digits)} at most"
        if wide is None:
            return f"{said} ({self.runs[far]})"
        share = number(self.shares[wide], 2)
        if wide == far:
            return f"{said}, {share} of the half width ({self.runs[far]})"
        of_width = f"by {share} of the half width at most ({self.runs[wide]})"
        return f"{said} ({self.runs[far]}), and {of_width}"

    def _which_places(self) -> str:
        moved = self._moved_places
        if not moved:
            return "no run changes its place"
        verb = "run changes its place" if len(moved) == 1 else "runs change places"
        named = ", ".join(moved[:NAMED]) + (", …" if len(moved) > NAMED else "")
        of_known = sum(None not in two for two in self.places)
        return "; ".join(
            filter(None, [f"{len(moved)} of {of_known} {verb} ({named})", self._leads()])
        )

    def _leads(self) -> str:
        """Who leads otherwise; nothing where it is the same run, or not known."""
        now, then = (list(column) for column in zip(*self.places, strict=True))
        if 1 not in now or 1 not in then or now.index(1) == then.index(1):
            return ""
        return f"{self.runs[then.index(1)]} leads instead of {self.runs[now.index(1)]}"

    def _which_verdicts(self) -> str:
        parts = []
        for kind, (one, many) in VERDICTS.items():
            count, named = self.verdicts[kind]["count"], self.verdicts[kind]["named"]
            if count:
                pairs = [f"{better} surely better than {worse}" for better, worse in named[:NAMED]]
                more = ", …" if count > NAMED else ""
                verb = f"verdict {one}" if count == 1 else f"verdicts {many}"
                parts.append(f"{count} {verb} ({', '.join(pairs)}{more})")
        return " and ".join(parts) or "no verdict appears or falls"
