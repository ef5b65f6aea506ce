"""Weights of ranks and utilities of grades, from which `measures.KINDS` is put together."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray

if TYPE_CHECKING:
    from .table import Measure


@dataclass(frozen=True, eq=False)
class Place:
    """Where parts stand in lists; arrays of one shape."""

    rank: FloatArray
    length: FloatArray
    other_rank: FloatArray


def uniform_discount(place: Place, measure: "Measure") -> FloatArray:
    return np.full_like(place.rank, 1.0 / (measure.cutoff or 1))


def logarithmic_discount(place: Place, measure: "Measure") -> FloatArray:
    logarithm = np.log2 if str(measure["dcg"]).endswith("log2") else np.log
    return np.asarray(1.0 / logarithm(1.0 + place.rank), dtype=np.float64)


def geometric_discount(place: Place, measure: "Measure") -> FloatArray:
    p = float(measure["p"])
    return np.asarray((1.0 - p) * p ** (place.rank - 1.0), dtype=np.float64)


def list_share(place: Place, measure: "Measure") -> FloatArray:
    return np.asarray(1.0 / place.length, dtype=np.float64)


def top_heavy_share(place: Place, measure: "Measure") -> FloatArray:
    return np.asarray(1.0 / (place.length * place.rank * place.other_rank), dtype=np.float64)


def precision_sums(place: Place, measure: "Measure") -> FloatArray:
    """(1 + 1/r + 1/(r + 1) + ... + 1/L) / L (Li and Kanoulas 2017, the prior of AP)."""
    length = place.length if measure.cutoff is None else np.minimum(place.length, measure.cutoff)
    longest = int(max(length.max(initial=1.0), place.rank.max(initial=1.0)))
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, longest + 1))])
    below = harmonic[place.rank.astype(np.int64) - 1]
    tail = harmonic[np.maximum(length, place.rank).astype(np.int64)] - below
    return np.asarray((1.0 + tail) / length, dtype=np.float64)


def reciprocal_rank(place: Place, measure: "Measure") -> FloatArray:
    return np.asarray(1.0 / place.rank, dtype=np.float64)


def binary_gain(grade: FloatArray, measure: "Measure") -> FloatArray:
    return np.asarray(grade >= float(measure["rel"]), dtype=np.float64)


def dcg_gain(grade: FloatArray, measure: "Measure") -> FloatArray:
    return exponential(grade) if str(measure["dcg"]).startswith("exp") else grade


def named_gain(grade: FloatArray, measure: "Measure") -> FloatArray:
    return exponential(grade) if measure["gain"] == "exp" else grade


def share_of_largest(grade: FloatArray, measure: "Measure") -> FloatArray:
    return np.asarray(grade / float(measure["max"]), dtype=np.float64)


def exponential_gain(grade: FloatArray, measure: "Measure") -> FloatArray:
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
