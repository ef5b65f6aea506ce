"""What is believed about grades before judging.

A grade model gives every pair of the pool probabilities of the grades 0..G; the grades of a
topic's documents are taken to be independent (Sawade et al. 2013, eq. 3).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import BoolArray, FloatArray, IntArray, check_whole, frozen
from ...data.pool import Pool
from ...measures.kinds import MAX_GRADE, MeasureError
from ...measures.table import Measure

SUM_TOLERANCE = 1e-9
UPLOAD_TOLERANCE = 1e-3  # sums of probabilities that were written with few decimals


class GradeModelError(ValueError):
    """Probabilities of grades that make no model; the message names topic and docno."""


def document_gains(measure: Measure, *, max_grade: int) -> FloatArray:
    """Return the gain of each grade 0..max_grade.

    The utility, or for ERR the probability g = (2^grade - 1) / 2^max_grade that the user stops
    (Chapelle et al. 2009; Sawade et al. 2013, eq. 2).

    Raises
    ------
    MeasureError
        If no grade of the scale counts under the measure, or it is about predictions or
        preferences.
    """
    if measure.family not in ("gain", "ratio", "query"):
        raise MeasureError(f"{measure} cannot be computed from topics that are judged whole")
    measure.max_utility(max_grade)
    gains = measure.utilities(np.arange(max_grade + 1))
    return gains / 2.0**max_grade if measure.family == "query" else gains


# --------------------------------------------------------------------------------- grade models


@dataclass(frozen=True, eq=False)
class GradeModel:
    """Probabilities p(grade | topic, document) of all pairs of a pool.

    Build one with `uniform_grades` or `predicted_grades`.

    Attributes
    ----------
    name : str
        "uniform" or "predicted".
    probability : ndarray of float64, shape (N, G + 1)
        Probabilities of the grades 0..G; rows sum to 1.
    predicted : ndarray of bool, shape (N,)
        Whether the pair has a prediction of its own.
    """

    name: str
    probability: FloatArray
    predicted: BoolArray

    @property
    def max_grade(self) -> int:
        """G, the best grade of the scale."""
        return int(self.probability.shape[1]) - 1


def uniform_grades(pool: Pool, *, max_grade: int) -> GradeModel:
    """Believe every grade of every pair equally likely (Sawade et al. 2013, section 5: uniD).

    Raises
    ------
    GradeModelError
        If the scale has fewer than two grades, or more than `MAX_GRADE`.
    """
    _check_scale(max_grade)
    grades = max_grade + 1
    probability = np.full((len(pool), grades), 1.0 / grades)
    return GradeModel("uniform", frozen(probability), frozen(np.zeros(len(pool), dtype=bool)))


def predicted_grades(
    pool: Pool, *, topics: ArrayLike, docnos: ArrayLike, probabilities: ArrayLike
) -> GradeModel:
    """Build a grade model from uploaded probabilities.

    Pairs of the pool without a row get the uniform distribution; rows of pairs outside the pool
    are left out. A row whose sum is off by no more than `UPLOAD_TOLERANCE` is divided by it.

    Parameters
    ----------
    pool : Pool
    topics, docnos : array_like of str or UTF-8 bytes, shape (m,)
    probabilities : array_like of float, shape (m, G + 1)
        Probabilities of the grades 0..G.

    Raises
    ------
    GradeModelError
        If the shapes differ; a probability is negative or not finite; a row does not sum to 1; a
        pair occurs twice. The message names the first offending pair.
    """
    topic, docno = _encoded(topics, "topics"), _encoded(docnos, "docnos")
    given = np.asarray(probabilities, dtype=np.float64)
    if given.ndim != 2 or not len(topic) == len(docno) == len(given):
        found = f"not {len(topic)}, {len(docno)} and the shape {given.shape}"
        raise GradeModelError(f"there must be one topic, docno and row per pair, {found}")
    _check_scale(given.shape[1] - 1)
    _check_rows(given, topic, docno)
    rows, pairs = _matched(pool, topic, docno)
    grades = given.shape[1]
    probability = np.full((len(pool), grades), 1.0 / grades)
    probability[pairs] = given[rows] / given[rows].sum(axis=1, keepdims=True)
    predicted = np.zeros(len(pool), dtype=bool)
    predicted[pairs] = True
    return GradeModel("predicted", frozen(probability), frozen(predicted))


def check_grade_model(pool: Pool, model: GradeModel) -> None:
    """Raise GradeModelError unless the model has a distribution for every pair of the pool."""
    if model.probability.ndim != 2 or len(model.probability) != len(pool):
        needed = f"one row for each of {len(pool)} pairs"
        shape = model.probability.shape
        raise GradeModelError(f"the grade model must have {needed}, not the shape {shape}")
    _check_scale(model.max_grade)
    wrong = _wrong_rows(model.probability, SUM_TOLERANCE)
    if wrong.any():
        pair = int(np.argmax(wrong))
        topic = pool.topics[pool.topic[pair]]
        raise GradeModelError(_row_message(model.probability[pair], topic, pool.docno[pair]))


def _check_scale(max_grade: int) -> None:
    check_whole(max_grade, name="max_grade", most=MAX_GRADE, error=GradeModelError)


def _encoded(names: ArrayLike, what: str) -> list[bytes]:
    values = np.asarray(names)
    if values.ndim != 1:
        raise GradeModelError(f"{what} must be a vector, not of the shape {values.shape}")
    return [name if isinstance(name, bytes) else str(name).encode() for name in values.tolist()]


def _wrong_rows(probability: FloatArray, tolerance: float) -> BoolArray:
    valid = np.isfinite(probability) & (probability >= 0.0)
    total = np.where(valid, probability, 0.0).sum(axis=1)
    return np.asarray((np.abs(total - 1.0) > tolerance) | ~np.all(valid, axis=1))


def _check_rows(given: FloatArray, topic: list[bytes], docno: list[bytes]) -> None:
    wrong = _wrong_rows(given, UPLOAD_TOLERANCE)
    if wrong.any():
        row = int(np.argmax(wrong))
        name = topic[row].decode(errors="replace")
        raise GradeModelError(_row_message(given[row], name, docno[row]))


def _row_message(row: FloatArray, topic: str, docno: bytes) -> str:
    return (
        f"the probabilities of topic {topic!r}, docno {docno.decode(errors='replace')!r} must be"
        f" at least 0 and sum to 1; they are {row.tolist()}"
    )


def _matched(pool: Pool, topic: list[bytes], docno: list[bytes]) -> tuple[IntArray, IntArray]:
    """Rows of pairs of the pool, and those pairs."""
    names = [name.encode() for name in pool.topics]
    known = zip([names[each] for each in pool.topic.tolist()], pool.docno.tolist(), strict=True)
    place = {key: pair for pair, key in enumerate(known)}
    seen: dict[tuple[bytes, bytes], int] = {}
    for row, key in enumerate(zip(topic, docno, strict=True)):
        if key in seen:
            first, second = (part.decode(errors="replace") for part in key)
            raise GradeModelError(f"topic {first!r}, docno {second!r} has two predictions")
        seen[key] = row
    found = [(row, place[key]) for key, row in seen.items() if key in place]
    columns = np.array(found, dtype=np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]
