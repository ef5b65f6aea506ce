"""Grades that the other pairs of a pool may turn out to have, where some are judged already.

What was judged tells how much is relevant, and where. A round that tops it up fits its model of
grades to it before its first batch (`rounds.adaptive.grades`), and of that model grades are drawn:
a pair that is not judged reaches each level with the chance that the model has for it. One number
of a pair says of all levels whether it reaches them, so that these go together. There are two
worlds:

kind
    The coefficients are the fitted ones. What they leave of a grade hangs together among neighbors,
    documents that the same runs return at like ranks, so that later batches learn from it: `ALIKE`
    of the variance is an effect of topic and run, as in `worlds`.
careful
    Every draw has coefficients of its own, normal about the fitted ones, with the inverse of the
    second derivatives of the loss as their covariance (Laplace's approximation; MacKay 1992,
    *Neural Computation* 4). Of runs and topics that nothing was judged of they are as wide apart as
    the model's penalty has it. What they leave is chance.

After 500 and 2 000 judged pairs of Cranfield and TREC-8, of two thirds of the runs, the share of
relevant documents among all others was .82 to 1.06 times the true one in kind worlds and .97 to
1.39 times in careful ones; of TREC Deep Learning 2019 1.06 to 1.15 times after 500, and 1.7 to 1.8
times after 2 000 of 2 950, when what is left are the pairs that no model found worth a judgment.

Why this biases nothing: drawn grades are no judgments. A round is planned in worlds, never drawn,
weighted or estimated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse, special

from ..inference.normal import normal_numbers
from ..rounds.adaptive.grades import OF_LISTS
from ..rounds.adaptive.logistic import MOST_FEATURES, RidgeLogistic

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray, IntArray, SparseMatrix
    from ..rounds.adaptive.frame import AdaptiveFrame
    from ..rounds.adaptive.grades import LearnedGrades

ALIKE = 0.5  # of the variance of what a model leaves: of runs and topics in kind worlds


@dataclass(frozen=True, eq=False)
class JudgedWorlds:
    """What a model that was fitted to judged pairs lets the grades of others be.

    Attributes
    ----------
    frame : AdaptiveFrame
    model : LearnedGrades
        That the first batch is planned by.
    roots : tuple of ndarray of float64
        For each level a matrix (p, p) that makes of p independent normal numbers how far its
        coefficients are off, or of very many coefficients their standard deviations, (p,).
    """

    frame: AdaptiveFrame
    model: LearnedGrades
    roots: tuple[FloatArray, ...]

    @classmethod
    def of(cls, frame: AdaptiveFrame, model: LearnedGrades) -> JudgedWorlds:
        """Find how far the coefficients of a model that was fitted may be off."""
        found, features = model.found, frame.features
        if found is None:
            raise TypeError("a model that was fitted knows what was found")
        some = features.of_pairs(found.judged)
        told = sparse.csr_array(features.of_finds_of(some, found))
        rows = sparse.csr_array(sparse.hstack([some.matrix(), told]))
        ridge, predicted = features.ridge(len(found.judged)), np.zeros(rows.shape[1], np.bool_)
        predicted[OF_LISTS : features.columns.shape[1]] = True
        roots = (
            _root(rows, ridge, each, without=predicted & (each == 0.0))
            for each in model.coefficients
        )
        return cls(frame, model, tuple(roots))

    def drawn_grades(self, *, careful: bool, number: int = 0) -> IntArray:
        """Draw a grade for every pair of the pool, also for judged ones.

        Parameters
        ----------
        careful : bool
            In which of the two worlds.
        number : int
            Which of several draws, from 0. The same draw is the same on every machine.

        Returns
        -------
        ndarray of int64, shape (N,)
            0, or a level of the model.
        """
        features, model = self.frame.features, self.model
        counts = model.coefficients.shape[1], features.likeness.shape[1], len(self.frame.pool)
        ends = np.cumsum([number * sum(counts), *counts]).tolist()
        off, of_cells, left = (normal_numbers(np.arange(*each)) for each in pairwise(ends))
        if careful:
            moved = [root @ off if root.ndim == 2 else root * off for root in self.roots]
            model = replace(model, coefficients=model.coefficients + np.stack(moved))
        else:
            left = np.sqrt(1.0 - ALIKE) * left + np.sqrt(ALIKE) * (features.likeness @ of_cells)
        levels = np.count_nonzero(special.ndtr(left) < model.reach(features), axis=0)
        found: IntArray = np.append(0, model.levels)[levels]
        return found


def _root(
    rows: SparseMatrix, ridge: FloatArray, coefficients: FloatArray, *, without: BoolArray
) -> FloatArray:
    """How far the coefficients of a level may be off; those that the model does without are not."""
    expected = special.expit(rows @ coefficients)
    curve = expected * (1.0 - expected)
    asked = RidgeLogistic(rows, expected, ridge)
    if len(ridge) > MOST_FEATURES:
        root = 1.0 / np.sqrt(asked.columns.power(2) @ curve + ridge)
    else:
        root = np.linalg.cholesky(np.linalg.inv(asked.hessian(curve)))
    root[without] = 0.0
    return np.asarray(root)
