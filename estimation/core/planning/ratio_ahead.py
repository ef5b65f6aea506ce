"""What is left of the expected covariance of ratios (AP, nDCG, Rprec) after later steps.

A ratio is linearized where judged pairs have their labels, or every pair what is expected of it
(`inference.ratio_outlook.AtOutlook`), and stays linearized there: what a pair moves it by is the
same then as now. What falls is what the sample misses of every pair, and with it the relative
variance of the denominators, by which a tangent errs. The bias is not foretold by itself; it falls
faster than the variance does.

Why this biases nothing: see `forecasts`; no estimate, design or batch knows of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import share_of
from ..estimates.products import cross_products
from ..inference.intervals import difference_variances
from ..inference.of_all_runs import FINDS_OF_ALL_BELIEVED
from ..inference.ratio_knowledge import FREEDOM_OF_FINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..arrays import FloatArray
    from ..inference.ratio_outlook import AtOutlook
    from ..rounds.results import MeasureResult


def ratio_noise(result: MeasureResult) -> FloatArray:
    """Disagreement between assessors, (k, k): of two runs as if they shared no document.

    So that of a difference is too large where they do, and its forecast too late.
    """
    noise = result.estimate.noise
    if noise is None or not result.label_noise_measured:
        return np.zeros_like(result.estimate.covariance)
    return np.diag(noise)


def ratio_exactness(result: MeasureResult) -> float:
    """What differences of ratios really err by, as a share of their standard errors, at most 1.

    Standard errors of ratios allow for what a linearization leaves out and for a bias that may be
    left, and are too large by as much as two times where little is judged: true differences would
    seem to be nothing but error. The squares of all differences together tell by how much, as far
    as there are finds: five finds for each, in the median, count half.
    """
    found, two = result.estimate, np.triu_indices(len(result.runs), k=1)
    squares = float(difference_variances(found.covariance)[two].sum())
    usual = float((result.ranking.difference_se[two] ** 2).sum())
    if not usual > 0.0:
        return 1.0
    finds = float(np.median(found.difference_df[two])) / FREEDOM_OF_FINDS
    share = min(squares / usual, 1.0)
    return float(np.sqrt(1.0 + (share - 1.0) * finds / (finds + FINDS_OF_ALL_BELIEVED)))


def with_inclusion(at: AtOutlook, inclusion: FloatArray) -> AtOutlook:
    """Return the same of a sample with other inclusion probabilities, shape (N,)."""
    return replace(at, factor=share_of(1.0 - inclusion, of=inclusion))


def covariances_then(later: Iterable[AtOutlook]) -> list[FloatArray]:
    """Return E, (k, k), at each of some steps, which are all linearized at the same place.

    With half the digits: they say what share of E now is left. Of every step one number a pair is
    held.
    """
    slopes, scales, below = None, [], []
    for each in later:
        slopes = each.tangent.slopes
        scales.append(each.scale)
        below.append(each.by_denominators)
    if slopes is None:
        return []
    own = cross_products(slopes, np.stack(scales), roughly=True)
    return [of + rest for of, rest in zip(own, below, strict=True)]


@dataclass(frozen=True, eq=False)
class RatiosMissed:
    """What an adaptive round expects of the squares that it misses of M pairs, now and later.

    Attributes
    ----------
    now : AtOutlook
        Its factor is that of what batches up to now missed.
    spread : tuple of ndarray of float64, shape (M,)
        The moments of `AtOutlook` about what is expected, as it will be predicted.
    """

    now: AtOutlook
    spread: tuple[FloatArray, FloatArray, FloatArray]

    def after(self, kept: FloatArray, to_come: FloatArray) -> AtOutlook:
        """Return the same where batches to come have their part, (M,) each.

        See `adaptive_missed.parts_then`.
        """
        at, held = self.now, kept * self.now.factor
        squares, crossed, falling = (
            held * before + to_come * of_open
            for before, of_open in zip(
                (at.squares, at.crossed, at.falling), self.spread, strict=True
            )
        )
        return replace(
            at, factor=np.ones_like(held), squares=squares, crossed=crossed, falling=falling
        )
