"""The kinds of measures: which weight a rank has, which utility a grade, by which parameters.

To add a measure, add one entry to `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from ..arrays import FloatArray

Value: TypeAlias = int | float | str
Given: TypeAlias = Mapping[str, Value]  # parameters of a measure
Family: TypeAlias = Literal["gain", "prediction", "preference", "ratio", "query"]
MAX_GRADE = 50  # 2**50 is still exact as a float
PREFERENCE_MAX_GRADE = 2  # 0: the second document is better, 1: equally good, 2: the first is


class MeasureError(ValueError):
    """A text that names no measure; the message says what is allowed."""


@dataclass(frozen=True, eq=False)
class Place:
    """Where parts stand in lists, arrays of one shape; and the rank below which none counts."""

    rank: FloatArray
    length: FloatArray
    other_rank: FloatArray
    cutoff: int | None


def uniform_discount(place: Place, given: Given) -> FloatArray:
    return np.full_like(place.rank, 1.0 / (place.cutoff or 1))


def logarithmic_discount(place: Place, given: Given) -> FloatArray:
    logarithm = np.log2 if str(given["dcg"]).endswith("log2") else np.log
    return np.asarray(1.0 / logarithm(1.0 + place.rank), dtype=np.float64)


def geometric_discount(place: Place, given: Given) -> FloatArray:
    p = float(given["p"])
    return np.asarray((1.0 - p) * p ** (place.rank - 1.0), dtype=np.float64)


def list_share(place: Place, given: Given) -> FloatArray:
    return np.asarray(1.0 / place.length, dtype=np.float64)


def top_heavy_share(place: Place, given: Given) -> FloatArray:
    return np.asarray(1.0 / (place.length * place.rank * place.other_rank), dtype=np.float64)


def precision_sums(place: Place, given: Given) -> FloatArray:
    """(1 + 1/r + 1/(r + 1) + ... + 1/L) / L (Li and Kanoulas 2017, the prior of AP)."""
    length = place.length if place.cutoff is None else np.minimum(place.length, place.cutoff)
    longest = int(max(length.max(initial=1.0), place.rank.max(initial=1.0)))
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, longest + 1))])
    below = harmonic[place.rank.astype(np.int64) - 1]
    tail = harmonic[np.maximum(length, place.rank).astype(np.int64)] - below
    return np.asarray((1.0 + tail) / length, dtype=np.float64)


def reciprocal_rank(place: Place, given: Given) -> FloatArray:
    return np.asarray(1.0 / place.rank, dtype=np.float64)


def binary_gain(grade: FloatArray, given: Given) -> FloatArray:
    return np.asarray(grade >= float(given["rel"]), dtype=np.float64)


def dcg_gain(grade: FloatArray, given: Given) -> FloatArray:
    return exponential(grade) if str(given["dcg"]).startswith("exp") else grade


def named_gain(grade: FloatArray, given: Given) -> FloatArray:
    return exponential(grade) if given["gain"] == "exp" else grade


def share_of_largest(grade: FloatArray, given: Given) -> FloatArray:
    return np.asarray(grade / float(given["max"]), dtype=np.float64)


def exponential_gain(grade: FloatArray, given: Given) -> FloatArray:
    return exponential(grade)


def exponential(grade: FloatArray) -> FloatArray:
    return np.asarray(np.ldexp(1.0, grade.astype(np.int64)) - 1.0, dtype=np.float64)


def absolute_error(grade: FloatArray, prediction: FloatArray) -> FloatArray:
    return np.abs(prediction - grade)


def squared_error(grade: FloatArray, prediction: FloatArray) -> FloatArray:
    return np.square(prediction - grade)


def correct(grade: FloatArray, prediction: FloatArray) -> FloatArray:
    return np.asarray(prediction == grade, dtype=np.float64)


def swapped(grade: FloatArray, prediction: FloatArray) -> FloatArray:
    return np.asarray((grade - 1.0) * prediction < 0.0, dtype=np.float64)


UNBOUNDED = (absolute_error, squared_error)
"""Losses that may exceed 1."""


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
            raise MeasureError(f"{key} of {measure} must be {self.allowed}, not {value!r}")


@dataclass(frozen=True)
class MeasureKind:
    """A kind of measure: weight of a rank, utility of a grade, parameters.

    `gain` gives the utility of a grade; `loss` that of a grade for a prediction, where the
    utility depends on the run. One of the two is there. `stopping` gives, for measures of readers
    who go down a list until they are content (family query), the chance that one is after a gain
    on a scale 0..max_grade.
    """

    name: str
    family: Family
    example: str
    parameters: Mapping[str, Parameter]
    discount: Callable[[Place, Given], FloatArray]
    gain: Callable[[FloatArray, Given], FloatArray] | None = None
    loss: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    stopping: Callable[[FloatArray, int], FloatArray] | None = None
    needs_cutoff: bool = False
    takes_cutoff: bool = True
    by_rank: bool = True  # the weight depends on nothing but the rank
    lower_is_better: bool = False

    def utility(self, grade: FloatArray, prediction: FloatArray, given: Given) -> FloatArray:
        """Utilities of grades, by whichever function the kind has."""
        if self.loss is not None:
            return self.loss(grade, prediction)
        assert self.gain is not None  # noqa: S101 - every kind has one of the two
        return self.gain(grade, given)


def _choice(default: str, *others: str) -> Parameter:
    options = (default, *others)
    return Parameter(
        default=default,
        read=lambda text: text.strip("'\"").lower(),
        is_allowed=lambda value: value in options,
        allowed="one of " + ", ".join(map(repr, options)),
    )


def _grade(what: str) -> Parameter:
    return Parameter(
        default=1,
        read=int,
        is_allowed=lambda value: isinstance(value, int) and 1 <= value <= MAX_GRADE,
        allowed=f"{what} between 1 and {MAX_GRADE}",
    )


_REL, _LARGEST = _grade("a grade"), _grade("the best grade,")
_PERSISTENCE = Parameter(
    default=0.8,
    read=float,
    is_allowed=lambda value: isinstance(value, float) and 0.0 < value < 1.0,
    allowed="a number strictly between 0 and 1",
    always_shown=True,
)


_BASE = _choice("log2", "exp-log2", "ln", "exp-ln")


def _whole_list(
    name: str, family: Family, loss: Callable[[FloatArray, FloatArray], FloatArray]
) -> MeasureKind:
    share = top_heavy_share if name == "wSwaps" else list_share
    errs = loss is not correct
    return MeasureKind(
        name, family, name, {}, share,
        loss=loss, takes_cutoff=False, by_rank=False, lower_is_better=errs,
    )  # fmt: skip


KINDS: Mapping[str, MeasureKind] = {
    kind.name: kind
    for kind in (
        MeasureKind(
            "P", "gain", "P@10", {"rel": _REL},
            uniform_discount, binary_gain, needs_cutoff=True,
        ),
        MeasureKind(
            "DCG", "gain", "DCG@100", {"dcg": _BASE},
            logarithmic_discount, dcg_gain,
        ),
        MeasureKind(
            "Gain", "gain", "Gain@10", {"gain": _choice("linear", "exp")},
            uniform_discount, named_gain, needs_cutoff=True,
        ),
        MeasureKind(
            "RBP", "gain", "RBP(p=0.8)", {"p": _PERSISTENCE, "rel": _REL},
            geometric_discount, binary_gain,
        ),
        MeasureKind(
            "Mean", "gain", "Mean(max=3)", {"max": _LARGEST},
            list_share, share_of_largest, takes_cutoff=False, by_rank=False,
        ),
        _whole_list("MAE", "prediction", absolute_error),
        _whole_list("MSE", "prediction", squared_error),
        _whole_list("Accuracy", "prediction", correct),
        _whole_list("#ofSwaps", "preference", swapped),
        _whole_list("wSwaps", "preference", swapped),
        MeasureKind(
            "AP", "ratio", "AP", {"rel": _REL},
            precision_sums, binary_gain, by_rank=False,
        ),
        MeasureKind(
            "nDCG", "ratio", "nDCG@10", {"dcg": _BASE},
            logarithmic_discount, dcg_gain,
        ),
        MeasureKind(
            "Rprec", "ratio", "Rprec", {"rel": _REL},
            reciprocal_rank, binary_gain, takes_cutoff=False,
        ),
        MeasureKind(
            "ERR", "query", "ERR@20", {}, reciprocal_rank, exponential_gain,
            stopping=lambda gains, max_grade: gains / 2.0**max_grade,
        ),
        MeasureKind(
            "RR", "query", "RR@10", {"rel": _REL}, reciprocal_rank, binary_gain,
            stopping=lambda gains, max_grade: gains,
        ),
    )
}  # fmt: skip
