"""What is believed about grades before judging.

A grade model gives every pair of the pool probabilities of the grades 0..G; the grades of a
topic's documents are taken to be independent (Sawade et al. 2013, eq. 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import BoolArray, FloatArray, IntArray, check_whole, frozen
from ...data.labels import pair_name
from ...measures.kinds import MAX_GRADE

if TYPE_CHECKING:
    from ...data.pool import Pool

SUM_TOLERANCE = 1e-9


class GradeModelError(ValueError):
    """Probabilities of grades that make no model; the message names topic and docno."""


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
    pool: Pool, *, pairs: IntArray, probability: FloatArray, max_grade: int
) -> GradeModel:
    """Believe what is predicted of some pairs, and every grade of the others equally likely.

    Parameters
    ----------
    pool : Pool
    pairs : ndarray of int64, shape (m,)
        Each once.
    probability : ndarray of float64, shape (m, G + 1)
    max_grade : int

    Raises
    ------
    GradeModelError
        As `check_grade_model`.
    """
    every = np.array(uniform_grades(pool, max_grade=max_grade).probability)
    every[pairs] = probability
    predicted = np.zeros(len(pool), dtype=bool)
    predicted[pairs] = True
    model = GradeModel("predicted", frozen(every), frozen(predicted))
    check_grade_model(pool, model)
    return model


def check_grade_model(pool: Pool, model: GradeModel) -> None:
    """Raise GradeModelError unless the model has a distribution for every pair of the pool."""
    if model.probability.ndim != 2 or len(model.probability) != len(pool):
        needed = f"one row for each of {len(pool)} pairs"
        shape = model.probability.shape
        raise GradeModelError(f"the grade model must have {needed}, not the shape {shape}")
    _check_scale(model.max_grade)
    chance = model.probability
    valid = np.isfinite(chance) & (chance >= 0.0)
    total = np.where(valid, chance, 0.0).sum(axis=1)
    wrong = (np.abs(total - 1.0) > SUM_TOLERANCE) | ~np.all(valid, axis=1)
    if wrong.any():
        pair = int(np.argmax(wrong))
        rule = "must be at least 0 and sum to 1"
        raise GradeModelError(
            f"the probabilities of the grades of {pair_name(pair, pool)} {rule}; "
            f"they are {chance[pair].tolist()}"
        )


def _check_scale(max_grade: int) -> None:
    check_whole(max_grade, name="max_grade", most=MAX_GRADE, error=GradeModelError)
