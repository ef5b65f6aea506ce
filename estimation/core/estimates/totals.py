"""Estimated values of runs, with what is known of their errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Totals:
    """Estimated values of k runs.

    Attributes
    ----------
    value : ndarray of float64, shape (k,)
        U^_j, unbiased for U_j when every pair with a weight in run j can be sampled.
    covariance : ndarray of float64, shape (k, k)
        Estimated covariance of the values, label noise included; symmetric.
    contributions : ndarray of float64, shape (k, k)
        How many pairs carry a difference U^_j - U^_l, and on the diagonal U^_j:
        (sum_i c_i)^2 / sum_i c_i^2 over the squares c_i of what they add to it (Kish). 0 if none.
    noise : ndarray of float64, shape (k, k)
        The part of the covariance that disagreement between assessors gives.
    sure : ndarray of float64, shape (k,)
        The part of the values that pairs add which were certain to be sampled.
    noise_by_grades : ndarray of float64, shape (k, k), or None
        What the grades of all judgments let one expect of `noise`; None: the same.
    """

    value: FloatArray
    covariance: FloatArray
    contributions: FloatArray
    noise: FloatArray
    sure: FloatArray
    noise_by_grades: FloatArray | None = field(default=None, kw_only=True)

    @property
    def likely_noise(self) -> FloatArray:
        """What is expected of `noise`, (k, k): pairs that agree by chance do not leave it out."""
        return self.noise if self.noise_by_grades is None else self.noise_by_grades

    @property
    def carried(self) -> FloatArray:
        """How many found pairs carry each value and difference, (k, k): too few, and it is unknown.

        They are the `contributions`, unless these are counted in what a model missed.
        """
        return self.contributions

    def gains_and_losses(self) -> tuple[FloatArray, FloatArray]:
        """Return what uncertain pairs add to values and take away, both >= 0, shape (k,) each."""
        return np.maximum(self.value - self.sure, 0.0), np.zeros_like(self.value)


@dataclass(frozen=True, eq=False)
class DifferenceEstimate(Totals):
    """Estimated values of k runs, with what each topic contributes.

    Attributes
    ----------
    by_topic : ndarray of float64, shape (T, k)
        Columns sum, but for rounding, to the values. A contribution can be negative.
    expected : ndarray of float64, shape (N,)
        b m_i of every pair of the pool: the label that was expected of it, from the labels of
        other folds. Those of pairs that could not be sampled are no part of the values.
    gains, losses : ndarray of float64, shape (k,)
        What residuals of uncertain pairs add to values: those above 0, and those below, >= 0 too.
    finds : ndarray of float64, shape (k, k), or None
        As `contributions`, of the labels of found pairs in the place of residuals, up to what is
        enough for a verdict (`finds_up_to`); None: the same as these.
    """

    by_topic: FloatArray
    expected: FloatArray
    gains: FloatArray
    losses: FloatArray
    finds: FloatArray | None = None

    @property
    def carried(self) -> FloatArray:
        """How many found pairs carry each value and difference, (k, k), by their labels, so far
        as that matters."""
        return self.contributions if self.finds is None else self.finds

    def gains_and_losses(self) -> tuple[FloatArray, FloatArray]:
        """Return what residuals of uncertain pairs add, and what they take away."""
        return self.gains, self.losses
