"""Linear measures of a ranking, named as ir-measures names them.

A measure is a weight for every rank and a utility for every grade: run j scores
U_j = mean over topics of sum over returned documents of weight(rank) * utility(grade).

To add a measure, add one entry to `KINDS`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from estimation.core.arrays import FloatArray

Value: TypeAlias = int | float | str
MAX_CUTOFF = 1_000_000
MAX_GRADE = 50  # 2**50 is still exact as a float


class MeasureError(ValueError):
    """A text that names no measure; the message says what is allowed."""


@dataclass(frozen=True)
class Measure:
    """A linear measure, for example ``DCG(dcg='ln')@100``; equal measures hash alike.

    Build one with `parse_measure`.

    Attributes
    ----------
    name : str
        Canonical name: a key of `KINDS`.
    cutoff : int or None
        Ranks beyond it have weight 0. None means the whole list.
    params : tuple of (str, value)
        Every parameter of the measure, defaults included, in the order of `KINDS`.

    Raises
    ------
    MeasureError
        If the measure is unknown, lacks its cutoff, or a parameter is out of range.
    """

    name: str
    cutoff: int | None
    params: tuple[tuple[str, Value], ...]

    def __post_init__(self) -> None:
        if self.name not in KINDS:
            raise MeasureError(f"{self.name!r} is not a known measure; known are {_examples()}")
        kind = KINDS[self.name]
        if self.cutoff is None and kind.needs_cutoff:
            raise MeasureError(f"{self.name} needs a cutoff, for example {kind.example}")
        if self.cutoff is not None and not 1 <= self.cutoff <= MAX_CUTOFF:
            raise MeasureError(f"The cutoff of {self.name} must be between 1 and {MAX_CUTOFF}")
        if tuple(key for key, _ in self.params) != tuple(kind.parameters):
            raise MeasureError(f"{self.name} takes {_listed(kind.parameters)}")
        for key, value in self.params:
            kind.parameters[key].check(self.name, key, value)

    def __str__(self) -> str:
        """Return the canonical name; `parse_measure` reads it back to an equal measure."""
        parameters = KINDS[self.name].parameters
        shown = [
            f"{key}={value!r}"
            for key, value in self.params
            if parameters[key].always_shown or value != parameters[key].default
        ]
        inside = f"({','.join(shown)})" if shown else ""
        return f"{self.name}{inside}" + (f"@{self.cutoff}" if self.cutoff is not None else "")

    def __getitem__(self, parameter: str) -> Value:
        """Return the value of a parameter."""
        return dict(self.params)[parameter]

    def weights(self, ranks: ArrayLike) -> FloatArray:
        """Return the weight lambda of each rank.

        Parameters
        ----------
        ranks : array_like of int
            Ranks, the first being 1.

        Returns
        -------
        ndarray of float64, same shape
            Weights >= 0; 0 past the cutoff.

        Raises
        ------
        ValueError
            If a rank is below 1.
        """
        rank = np.asarray(ranks, dtype=np.float64)
        if rank.size and rank.min() < 1:
            raise ValueError("ranks start at 1")
        weights = KINDS[self.name].discount(rank, self)
        return weights if self.cutoff is None else np.where(rank <= self.cutoff, weights, 0.0)

    def utilities(self, grades: ArrayLike) -> FloatArray:
        """Return the utility (gain) of each grade.

        Parameters
        ----------
        grades : array_like of int
            Grades between 0 and `MAX_GRADE`.

        Returns
        -------
        ndarray of float64, same shape
            Utilities >= 0, nondecreasing in the grade, 0 for grade 0.

        Raises
        ------
        ValueError
            If a grade is no integer or out of range.
        """
        grade = np.asarray(grades)
        if grade.size and not np.issubdtype(grade.dtype, np.integer):
            raise ValueError("grades must be integers")
        if grade.size and (grade.min() < 0 or grade.max() > MAX_GRADE):
            raise ValueError(f"grades must lie between 0 and {MAX_GRADE}")
        return KINDS[self.name].gain(grade.astype(np.float64), self)

    def max_utility(self, max_grade: int) -> float:
        """Return the utility of the best grade of a scale 0..max_grade.

        Raises
        ------
        MeasureError
            If no grade of the scale has any utility, as for ``P(rel=2)@10`` on a 0/1 scale.
        """
        best = float(self.utilities(np.array([max_grade]))[0])
        if best <= 0.0:
            raise MeasureError(f"No grade from 0 to {max_grade} counts under {self}")
        return best


def parse_measure(text: str) -> Measure:
    """Read a measure in ir-measures' notation, without regard to case.

    ``P@10``, ``P(rel=2)@10``, ``DCG``, ``DCG@100``, ``DCG(dcg='exp-log2')@10``, ``Gain@5``,
    ``Gain(gain='exp')@5``, ``RBP(p=0.8)``, ``RBP(p=0.8,rel=2)@20``.

    Raises
    ------
    MeasureError
        If the text is no measure; the message says what is allowed.
    """
    match = _NOTATION.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if match is None:
        raise MeasureError(f"A measure is written like {_examples()}")
    kind = _kind(match["name"])
    cutoff = int(match["cutoff"]) if match["cutoff"] else None
    return Measure(kind.name, cutoff, _read_parameters(kind, match["inside"] or ""))


# ---------------------------------------------------------------------- the table of measures


@dataclass(frozen=True)
class Parameter:
    """A named parameter: its default, how its text is read, which values are allowed."""

    default: Value
    read: Callable[[str], Value]
    is_allowed: Callable[[Value], bool]
    allowed: str
    always_shown: bool = False

    def check(self, measure: str, key: str, value: Value) -> None:
        """Raise MeasureError unless the value is allowed."""
        if type(value) is not type(self.default) or not self.is_allowed(value):
            raise MeasureError(f"{key} of {measure} must be {self.allowed}")


@dataclass(frozen=True)
class Kind:
    """A family of measures: weight of a rank, utility of a grade, parameters."""

    name: str
    needs_cutoff: bool
    example: str
    parameters: Mapping[str, Parameter]
    discount: Callable[[FloatArray, Measure], FloatArray]
    gain: Callable[[FloatArray, Measure], FloatArray]


def _choice(default: str, *others: str) -> Parameter:
    options = (default, *others)
    return Parameter(
        default=default,
        read=lambda text: text.strip("'\"").lower(),
        is_allowed=lambda value: value in options,
        allowed="one of " + ", ".join(map(repr, options)),
    )


_REL = Parameter(
    default=1,
    read=int,
    is_allowed=lambda value: isinstance(value, int) and 1 <= value <= MAX_GRADE,
    allowed=f"a grade between 1 and {MAX_GRADE}",
)
_PERSISTENCE = Parameter(
    default=0.8,
    read=float,
    is_allowed=lambda value: isinstance(value, float) and 0.0 < value < 1.0,
    allowed="a number strictly between 0 and 1",
    always_shown=True,
)


def _uniform_discount(rank: FloatArray, measure: Measure) -> FloatArray:
    return np.full_like(rank, 1.0 / (measure.cutoff or 1))


def _logarithmic_discount(rank: FloatArray, measure: Measure) -> FloatArray:
    logarithm = np.log2 if str(measure["dcg"]).endswith("log2") else np.log
    return np.asarray(1.0 / logarithm(1.0 + rank), dtype=np.float64)


def _geometric_discount(rank: FloatArray, measure: Measure) -> FloatArray:
    p = float(measure["p"])
    return np.asarray((1.0 - p) * p ** (rank - 1.0), dtype=np.float64)


def _binary_gain(grade: FloatArray, measure: Measure) -> FloatArray:
    return np.asarray(grade >= float(measure["rel"]), dtype=np.float64)


def _dcg_gain(grade: FloatArray, measure: Measure) -> FloatArray:
    return _exponential(grade) if str(measure["dcg"]).startswith("exp") else grade


def _named_gain(grade: FloatArray, measure: Measure) -> FloatArray:
    return _exponential(grade) if measure["gain"] == "exp" else grade


def _exponential(grade: FloatArray) -> FloatArray:
    return np.asarray(np.ldexp(1.0, grade.astype(np.int64)) - 1.0, dtype=np.float64)


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("P", True, "P@10", {"rel": _REL}, _uniform_discount, _binary_gain),
        Kind(
            "DCG",
            False,
            "DCG@100",
            {"dcg": _choice("log2", "exp-log2", "ln", "exp-ln")},
            _logarithmic_discount,
            _dcg_gain,
        ),
        Kind(
            "Gain", True, "Gain@10", {"gain": _choice("linear", "exp")},
            _uniform_discount, _named_gain,
        ),
        Kind(
            "RBP",
            False,
            "RBP(p=0.8)",
            {"p": _PERSISTENCE, "rel": _REL},
            _geometric_discount,
            _binary_gain,
        ),
    )
}  # fmt: skip

# ------------------------------------------------------------------------------- the notation

MAX_LENGTH = 100
_NOTATION = re.compile(
    r"\s*(?P<name>[A-Za-z]+)\s*(?:\((?P<inside>[^()]*)\))?\s*(?:@\s*(?P<cutoff>[0-9]{1,7}))?\s*"
)


def _kind(name: str) -> Kind:
    for known, kind in KINDS.items():
        if known.lower() == name.lower():
            return kind
    raise MeasureError(f"{name!r} is not a known measure; known are {_examples()}")


def _read_parameters(kind: Kind, inside: str) -> tuple[tuple[str, Value], ...]:
    given: dict[str, Value] = {}
    for assignment in filter(None, map(str.strip, inside.split(","))):
        key, separator, text = (part.strip() for part in assignment.partition("="))
        key = key.lower()
        if not separator or key not in kind.parameters or key in given:
            raise MeasureError(f"{kind.name} takes {_listed(kind.parameters)}, each once")
        given[key] = _read_value(kind, key, text)
    return tuple((key, given.get(key, spec.default)) for key, spec in kind.parameters.items())


def _read_value(kind: Kind, key: str, text: str) -> Value:
    parameter = kind.parameters[key]
    try:
        return parameter.read(text)
    except ValueError:
        raise MeasureError(f"{key} of {kind.name} must be {parameter.allowed}") from None


def _listed(parameters: Mapping[str, Parameter]) -> str:
    described = (f"{key} ({spec.allowed})" for key, spec in parameters.items())
    return "the parameters " + ", ".join(described)


def _examples() -> str:
    return ", ".join(kind.example for kind in KINDS.values())
