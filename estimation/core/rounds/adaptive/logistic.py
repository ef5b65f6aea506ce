"""Logistic ridge regression of shares on sparse features, until rounding is all that is left."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import special
from scipy.sparse.linalg import LinearOperator, cg

from ...estimates.tiles import padded, symmetric_product, tiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...arrays import FloatArray, IntArray, SparseMatrix

MOST_STEPS, MOST_HALVED = 50, 30
LAST_STEP = 1e-6  # of a coefficient; what is left of the error after it is about its square
INEXACT = 0.1  # share of the slope that a step may leave, at most
ROUNDING = 1e-12  # of a loss
# Pairs that stand for all where steps are scaled, and features up to which they are by a matrix.
ENOUGH_PAIRS, MOST_FEATURES = 2048, 1024


@dataclass(frozen=True, eq=False)
class RidgeLogistic:
    """The regression of n shares on p features.

    Attributes
    ----------
    rows : csr_array of float64, shape (n, p)
        The features.
    shares : ndarray of float64, shape (n,)
        Between 0 and 1.
    ridge : ndarray of float64, shape (p,)
        By how much each coefficient is shrunk, positive.
    """

    rows: SparseMatrix
    shares: FloatArray
    ridge: FloatArray

    def fit(self, start: FloatArray) -> FloatArray:
        """Return the coefficients that fit best, shape (p,): one minimum, wherever one starts.

        Newton's method with inexact steps (Dembo, Eisenstat and Steihaug 1982, *SIAM Journal on
        Numerical Analysis* 19), halved where they overshoot, until the steps are next to nothing. A
        solver that ends where it is near enough ends elsewhere on another processor, whose sums
        differ in their last bits. All products are of sparse arrays, and one small matrix is
        inverted: on small dense ones the threads of a BLAS wait for each other, many times as long
        as they work.
        """
        at = _Place(self, start)
        scaled = self.scaled(at.curve)
        for _ in range(MOST_STEPS):
            at, step = self._along(at, at.newton_step(scaled))
            if float(np.abs(step).max()) <= LAST_STEP:
                break
        return at.coefficients

    def of(self, some: IntArray) -> RidgeLogistic:
        """The regression on some of the features."""
        return RidgeLogistic(self.rows[:, some], self.shares, self.ridge[some])

    def loss(self, coefficients: FloatArray) -> float:
        """What `fit` makes least: minus the logarithm of the likelihood, and half the penalty."""
        return _Place(self, coefficients).loss

    def _along(self, at: _Place, step: FloatArray) -> tuple[_Place, FloatArray]:
        """The end of a step, or of as small a part of it that the loss does not rise."""
        for _ in range(MOST_HALVED):
            end = _Place(self, at.coefficients + step)
            if end.loss <= at.loss + ROUNDING * abs(at.loss):
                return end, step
            step = step / 2.0
        return at, np.zeros_like(step)

    @cached_property
    def columns(self) -> SparseMatrix:
        """The features by rows, (p, n)."""
        return self.rows.T.tocsr()

    def hessian(self, curve: FloatArray) -> FloatArray:
        """About the second derivatives of the loss, (p, p): from some pairs, evenly taken."""
        every = max(1, len(curve) // ENOUGH_PAIRS)
        rows, weights = self.rows[::every], np.sqrt(every * curve[::every])
        pairs, entries = np.arange(len(weights)), np.diff(rows.indptr)
        cells = np.repeat(pairs * padded(rows.shape[1]), entries) + rows.indices
        tiles = tiled(rows.data * np.repeat(weights, entries), cells, rows.shape)
        return symmetric_product(tiles, rows.shape[1]) + np.diag(self.ridge)

    def scaled(self, curve: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """What turns a slope, (p,), into about the step from there, for conjugate gradients.

        Where these end does not hang on it. Runs return much the same, so that coefficients hang
        together: with the diagonal of the Hessian alone it takes five times as many products. That
        of the place where a fit begins serves for all of its steps.
        """
        if len(self.ridge) > MOST_FEATURES:
            diagonal = self.columns.power(2) @ curve + self.ridge
            return lambda slope: np.asarray(slope / diagonal, dtype=np.float64)
        inverse = np.linalg.inv(self.hessian(curve))
        return lambda slope: np.asarray((inverse * slope).sum(axis=1), dtype=np.float64)


class _Place:
    """Coefficients, and what is known of the loss there."""

    def __init__(self, asked: RidgeLogistic, coefficients: FloatArray) -> None:
        self.asked, self.coefficients = asked, coefficients
        scores = asked.rows @ coefficients
        self._shrunk, self._expected = asked.ridge * coefficients, special.expit(scores)
        misfit = np.logaddexp(0.0, scores) - asked.shares * scores
        self.loss = float(misfit.sum() + 0.5 * (coefficients @ self._shrunk))

    @property
    def curve(self) -> FloatArray:
        """Second derivatives of the loss by scores, (n,)."""
        return np.asarray(self._expected * (1.0 - self._expected), dtype=np.float64)

    def newton_step(self, scaled: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """By conjugate gradients; the less is left of it, the flatter it is here already."""
        asked, curve = self.asked, self.curve
        slope = asked.columns @ (self._expected - asked.shares) + self._shrunk

        def curved(step: FloatArray) -> FloatArray:
            """The Hessian matrix times a step."""
            change: FloatArray = curve * (asked.rows @ step)
            return np.asarray(asked.columns @ change + asked.ridge * step, dtype=np.float64)

        shape, steep = (len(slope), len(slope)), float(np.linalg.norm(slope)) / len(curve)
        step, _ = cg(
            LinearOperator(shape, matvec=curved, dtype=np.float64),
            -slope,
            rtol=min(INEXACT, steep**0.75),
            M=LinearOperator(shape, matvec=scaled, dtype=np.float64),
        )
        return np.asarray(step, dtype=np.float64)
