"""Logistic ridge regression of shares on sparse features, until rounding is all that is left.

One for each level of the model of `grades`; with and without what scores of runs tell (`scoring`).
"""

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
    from .scoring import Scoring

MOST_STEPS, MOST_HALVED = 50, 30
LAST_STEP = 1e-6  # of a coefficient; what is left of the error after it is about its square
INEXACT = 0.1  # share of the slope that a step may leave, at most
ROUNDING = 1e-12  # of a loss
LEAST_TOLD = 1.0  # of twice a loss, for each feature that is doubted
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
    offset : ndarray of float64, shape (n,), or None
        Where log-odds begin, if not at 0.
    """

    rows: SparseMatrix
    shares: FloatArray
    ridge: FloatArray
    offset: FloatArray | None = None

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
        return RidgeLogistic(self.rows[:, some], self.shares, self.ridge[some], self.offset)

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
        if asked.offset is not None:
            scores += asked.offset
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


@dataclass(frozen=True, eq=False)
class FittedLevels:
    """Coefficients of all levels, (p,) each, and what they were asked for."""

    asked: list[RidgeLogistic]
    fitted: list[FloatArray]

    @property
    def loss(self) -> float:
        """The sum of what fits make least."""
        return float(sum(map(RidgeLogistic.loss, self.asked, self.fitted)))


@dataclass(frozen=True, eq=False)
class LevelFits:
    """What the fits of all levels share.

    Attributes
    ----------
    rows : csr_array of float64, shape (n, p)
        Features of judged pairs.
    reached : ndarray of float64, shape (n, L)
        Share of their judgments that reach each level.
    ridge : ndarray of float64, shape (p,)
    doubted : ndarray of int64
        Features that have coefficients only where they tell enough together.
    """

    rows: SparseMatrix
    reached: FloatArray
    ridge: FloatArray
    doubted: IntArray

    def fit(self, before: FloatArray | None, offset: FloatArray | None = None) -> FittedLevels:
        """Fit all levels, from coefficients before, (L, q). Log-odds have an offset, (L, n)."""
        starts = _begin(before, self.reached, self.rows.shape[1], usual=offset is None)
        asked = [
            RidgeLogistic(self.rows, shares, self.ridge, None if offset is None else offset[level])
            for level, shares in enumerate(self.reached.T)
        ]
        every = zip(asked, starts, strict=True)
        fitted = [_fit(each, start, self.doubted) for each, start in every]
        return FittedLevels(asked, fitted)

    def fit_scored(
        self,
        scoring: Scoring,
        offset: FloatArray,
        before: FloatArray | None,
        told: Scoring | None,
        *,
        as_told: bool,
    ) -> tuple[Scoring, list[FloatArray]]:
        """Fit them as well where scores say log-odds begin, (L, n), and take what fits better.

        `told` is what was taken before, and with `as_told` is taken again.
        """
        tried = []
        for each, begin in ((scoring.silent(), None), (scoring, offset)):
            alike = told is not None and told.tells == each.tells
            if alike or not as_told:
                tried.append((each, self.fit(before if alike else None, begin)))
        taken, best = min(tried, key=lambda one: one[1].loss)
        return taken, best.fitted


def _fit(asked: RidgeLogistic, start: FloatArray, doubted: IntArray) -> FloatArray:
    """The coefficients, (p,): 0 of doubted features, unless these tell enough together."""
    if not len(doubted):
        return asked.fit(start)
    trusted = np.delete(np.arange(len(start)), doubted)
    without = np.zeros_like(start)
    without[trusted] = asked.of(trusted).fit(start[trusted])
    with_all = asked.fit(without)
    gained = 2.0 * (asked.loss(without) - asked.loss(with_all))
    return with_all if gained > LEAST_TOLD * len(doubted) else without


def _begin(
    before: FloatArray | None, reached: FloatArray, parameters: int, *, usual: bool
) -> FloatArray:
    """Where fits begin, (L, parameters): at the usual share of each level, unless more is known."""
    if before is None:
        start = np.zeros((reached.shape[1], parameters))
        if usual:
            start[:, 0] = special.logit((reached.sum(axis=0) + 0.5) / (len(reached) + 1.0))
        return start
    missing = parameters - before.shape[1]
    return np.pad(before, ((0, 0), (0, missing)))
