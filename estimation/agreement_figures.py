"""How far labels agree, as lines of tables: of people, and of machine judges against them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estimation.figures import number

METRICS = {
    "ordinal": ("Ordinal", "Grades are in an order"),
    "interval": ("Interval", "Grades are equally far apart"),
    "nominal": ("Nominal", "Grades are just different"),
}


@dataclass(frozen=True)
class AlphaLine:
    """Alpha by a metric: of the judged pairs, and of the pool as the draw lets it be estimated.

    ``people``: beside that of a machine, theirs among themselves for the same pairs.
    """

    name: str
    meaning: str
    judged: str
    pool: str
    people: str


@dataclass(frozen=True)
class GradeAlphaLine:
    name: str
    again: float | None
    alpha: str
    pool: str


@dataclass(frozen=True)
class AgreementFigure:
    """Of a machine judge and people. ``weighted``: whether what pairs stand for is known.
    ``alone``: how many of these pairs two people or more judged."""

    alphas: list[AlphaLine]
    grades: list[GradeAlphaLine]
    batches: list[dict[str, Any]]
    weighted: bool
    alone: int


def agreement_figure(
    found: Mapping[str, Any], scale: Sequence[Mapping[str, str]]
) -> AgreementFigure | None:
    """Of what is stored of a machine judge; None where that is of a version that told no alpha."""
    if "plain" not in found:
        return None
    alone = found["alone"] or {}
    return AgreementFigure(
        alphas=alpha_lines(found, alone),
        grades=grade_lines([str(grade["name"]) for grade in scale], found["grades"]),
        batches=found["batches"],
        weighted=found["drawn"] is not None,
        alone=alone.get("pairs", 0),
    )


def alpha_lines(
    found: Mapping[str, Any], alone: Mapping[str, Any] | None = None
) -> list[AlphaLine]:
    drawn, among_people = found["drawn"] or {}, alone or {}
    return [
        AlphaLine(
            *words,
            bounded(found["plain"][metric]),
            bounded(drawn.get(metric)),
            bounded(among_people.get(metric)),
        )
        for metric, words in METRICS.items()
    ]


def grade_lines(names: Sequence[str], grades: Mapping[str, Any]) -> list[GradeAlphaLine]:
    """What is stored may be of a version that told none of the pool."""
    pool = grades.get("drawn") or [None] * len(grades["alpha"])
    told = zip(names, grades["again"], grades["alpha"], pool, strict=False)
    return [
        GradeAlphaLine(f"{at} {name}", again, number(alpha, 2), number(heavy, 2))
        for at, (name, again, alpha, heavy) in enumerate(told)
    ]


def bounded(interval: Sequence[float | None] | None) -> str:
    if interval is None or interval[0] is None:
        return "–"
    value, low, high = interval
    if low is None or high is None:
        return number(value, 2)
    return f"{number(value, 2)} ({number(low, 2)} to {number(high, 2)})"
