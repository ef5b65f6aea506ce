"""What guaranteed bounds are built from, and how a kind of interval builds them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..data.labels import PairLabels
from ..estimates.estimators import importance_sampling
from .ranges import BoundError

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray, SparseMatrix
    from ..estimates.drawn import Drawn
    from ..estimates.terms import Terms
    from .intervals import Bound


@dataclass(frozen=True, eq=False)
class Basis(ABC):
    """The n pairs that can be drawn, and what is known of k values: before the draw what to expect.

    Attributes
    ----------
    weights : csr_array, shape (n, k)
    chance : ndarray of float64, shape (n,)
        Probability of one draw, or of inclusion.
    best : float
        M, the utility of the best grade.
    draws : int
        With replacement; else 0.
    value : ndarray of float64, shape (k,)
        Estimates: importance sampling with draws, else Horvitz-Thompson.
    """

    weights: SparseMatrix
    chance: FloatArray
    best: float
    draws: int
    value: FloatArray

    @property
    @abstractmethod
    def spread(self) -> FloatArray:
        """Variance of a draw's term of each value, shape (k,)."""


@dataclass(frozen=True, eq=False)
class Foreseen(Basis):
    """Before the draw; `second_moment`, (n,), is that of the utilities, as the prior expects it."""

    second_moment: FloatArray

    @property
    def spread(self) -> FloatArray:
        """As the prior expects it."""
        squares: FloatArray = self.weights.power(2).T @ (self.second_moment / self.chance)
        return np.maximum(squares - self.value**2, 0.0)


@dataclass(frozen=True, eq=False)
class Found(Basis):
    """What was drawn, and what it contributes."""

    drawn: Drawn
    terms: Terms

    @property
    def spread(self) -> FloatArray:
        """Of the draws there are."""
        return np.diag(self.covariance)

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the terms of a draw, shape (k, k)."""
        assert self.drawn.counts is not None  # noqa: S101 - kinds of draws are asked for draws
        return draw_covariance(
            self.terms.weights,
            self.terms.labels,
            probability=self.drawn.probability,
            counts=self.drawn.counts,
        )


class Guaranteed(Protocol):
    """A kind of guaranteed interval."""

    def values(self, basis: Basis) -> Bound:
        """Return the bound for values."""

    def differences(self, found: Found) -> Bound:
        """Return the bound for the differences of every two values."""


def draw_covariance(
    weights: SparseMatrix, labels: PairLabels, *, probability: FloatArray, counts: IntArray
) -> FloatArray:
    """Return the sample covariance (divisor n - 1) of the draws z_tj = v w_ij / Q_i, shape (k, k).

    Its diagonal is the V of `bounds.empirical_bernstein_half_widths`; `difference_variances` of it
    are those of the differences. Arguments are those of `importance_sampling`; ValueError as there,
    or if there are fewer than 2 draws.
    """
    draws = int(counts.sum())
    if draws < 2:
        raise BoundError(f"counts must add up to at least 2 draws, not {draws}")
    silent = PairLabels(labels.mean, labels.number, np.zeros_like(labels.mean), False)
    found = importance_sampling(weights, silent, probability=probability, counts=counts)
    return draws * found.covariance
