"""The difference estimator: predictions for all pairs, corrected by the judged ones.

With a prediction m_i of every label, and a coefficient b,

    U^_j = b sum_i w_ij m_i + sum_S w_ij (v_i - b m_i) / pi_i

is unbiased for every fixed b (Särndal, Swensson and Wretman 1992, section 6.3), and b = 0 is
Horvitz-Thompson. The better the predictions, the smaller the residuals v - b m that carry the
variance. A prediction that is believed as it stands can also make them large, and so can a b that
has no bounds: a few confident predictions that are wrong multiply the error. m is therefore the
mean of the labels that were seen where predictions are alike, b lies between 0 and 1, and both
come from other pairs than those they are used on (`calibration`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import (
    FloatArray,
    IntArray,
    SparseMatrix,
    frozen,
    index_array,
    refuse,
    shown,
)
from ..data.kept import kept
from ..measures.table import Measure, check_is_measure
from ..sampling.calibration import FOLDS, calibrate, order_bins
from ..sampling.random_numbers import folds
from .estimators import horvitz_thompson_poisson
from .topic_sums import TopicSums, totals_by_topic
from .totals import DifferenceEstimate

if TYPE_CHECKING:
    from ..data.labels import PairLabels
    from ..data.pool import Pool

ROUNDING = 1e-14  # of a label: a prediction that misses it by less is flawless


def difference_estimate(
    pool: Pool,
    *,
    measure: Measure,
    pairs: IntArray,
    labels: PairLabels,
    inclusion: FloatArray,
    predictions: FloatArray,
    coefficient: float | None = None,
    fitted_runs: IntArray | None = None,
) -> DifferenceEstimate:
    """Estimate values from a Poisson sample with the help of predicted utilities.

    Only the order of the predictions counts, so that they may be on any scale, wrong, or upside
    down. What they mean is learned by cross-fitting: pairs are hashed to folds, and the b m of a
    fold come from the sampled pairs of all *other* folds (`calibration.calibrate`). Pairs enter a
    Poisson sample independently, and so do their labels; b m therefore do not depend on what they
    are used on, and the estimate stays exactly unbiased. If they were fitted on the very pairs
    they are used on, it would not be.

    Parameters
    ----------
    pool : Pool
    measure : Measure
        Of the family gain.
    pairs : ndarray of int64, shape (n,)
        The sampled pairs of a ``poisson`` design.
    labels : PairLabels
        Of the same pairs, under the measure.
    inclusion : ndarray of float64, shape (N,)
        pi_i of every pair of the pool; 0 for pairs that cannot be sampled, whose predictions are
        left out: nothing could correct them.
    predictions : ndarray of float64, shape (N,)
        Fixed before the sample was drawn: the higher, the more is expected of a pair. Any finite
        numbers; NaN where nothing is predicted: such a pair is estimated as by Horvitz-Thompson.
    coefficient : float, optional
        b for all pairs, chosen before the sample was drawn; the predictions are then the m_i
        themselves, as they stand, NaN as 0.
    fitted_runs : ndarray of int64, optional
        Positions of the runs whose values and differences the fitted b m make precise; by default
        all.

    Raises
    ------
    ValueError
        If predictions are not N numbers that are finite or NaN, inclusion not N probabilities,
        above 0 for the sampled pairs, or the measure is of another family.
    """
    _check(pool, measure, predictions, pairs, inclusion)
    chance = inclusion[pairs]
    weights = pool.weights(measure, pairs)
    wanted = weights if fitted_runs is None else weights[:, fitted_runs]
    expected = (
        _calibrated(pool, predictions, pairs, labels.mean, wanted, chance)
        if coefficient is None
        else coefficient * np.nan_to_num(predictions)
    )
    missed = labels.mean - expected[pairs]
    missed[np.abs(missed) <= ROUNDING * labels.mean] = 0.0
    residual = replace(labels, mean=missed)
    corrected = horvitz_thompson_poisson(weights, residual, probability=chance)
    uncertain = np.where(chance < 1.0, missed, 0.0) / chance
    predicted = totals_by_topic(pool, measure, np.where(inclusion > 0.0, expected, 0.0))
    sums = TopicSums(weights, pool.topic[pairs].astype(np.int64), len(pool.topics))
    rest = sums.of(residual.mean / chance)
    return DifferenceEstimate(
        predicted.sum(axis=0) + corrected.value,
        corrected.covariance,
        corrected.contributions,
        corrected.noise,
        weights.T @ np.where(chance < 1.0, 0.0, labels.mean),
        predicted + rest,
        expected,
        weights.T @ np.maximum(uncertain, 0.0),
        weights.T @ np.maximum(-uncertain, 0.0),
        noise_by_grades=corrected.noise_by_grades,
    )


def _calibrated(
    pool: Pool,
    predictions: FloatArray,
    pairs: IntArray,
    labels: FloatArray,
    weights: SparseMatrix,
    chance: FloatArray,
) -> FloatArray:
    squares = weights.power(2).sum(axis=1)
    importance = (1.0 - chance) / chance**2 * _about_half_of_mean(weights, squares)
    return calibrate(
        order_bins(predictions),
        _folds_of(pool),
        pairs=pairs,
        labels=labels,
        importance=importance,
    )


def _about_half_of_mean(weights: SparseMatrix, squares: FloatArray) -> FloatArray:
    """sum_j (w_ij - mean_j w_ij / 2)^2: half-way between what values and differences vary by.

    A pair that all runs return at the same rank moves all values and no difference. With
    sum_j w_ij^2 such pairs, of which a design for a ranking takes few, decide what is fitted, and
    differences can lose by it.
    """
    total = weights.sum(axis=1)
    return np.asarray(squares - 0.75 * total**2 / weights.shape[1], dtype=np.float64)


def _folds_of(pool: Pool) -> IntArray:
    """The fold of every pair; hashing all names takes longer than everything else here."""
    return kept(pool.kept, "folds", FOLDS, lambda: frozen(folds(pool, number=FOLDS)))


def check_predictions(grades: FloatArray, *, pairs: int, max_grade: int) -> None:
    """Raise ValueError unless these are predicted grades of so many pairs."""
    given = getattr(grades, "shape", None)
    if given != (pairs,):
        found = shown(grades) if given is None else f"of the shape {given}"
        raise ValueError(
            f"predictions must be one grade per pair of the pool, {pairs}, not {found}"
        )
    off = ~(np.isnan(grades) | ((grades >= 0.0) & (grades <= max_grade)))
    rule = f"lie between 0 and {max_grade}, or be nan"
    refuse(off, grades, name="predictions", rule=rule)


def _check(
    pool: Pool,
    measure: Measure,
    predictions: FloatArray,
    pairs: IntArray,
    inclusion: FloatArray,
) -> None:
    check_is_measure(measure)
    if measure.family != "gain":
        raise ValueError(f"{measure} has no difference estimator: it is no sum of gains")
    if predictions.shape != (len(pool),):
        shape = f"not of the shape {predictions.shape}"
        raise ValueError(f"predictions must be one number per pair, {len(pool)}, {shape}")
    infinite = np.isinf(predictions)
    refuse(infinite, predictions, name="predictions", rule="be finite, or nan")
    index_array(pairs, below=len(pool), name="pairs")
    if inclusion.shape != (len(pool),):
        shape = f"not of the shape {inclusion.shape}"
        raise ValueError(f"inclusion must be one number per pair, {len(pool)}, {shape}")
    wrong = ~((inclusion >= 0.0) & (inclusion <= 1.0))
    refuse(wrong, inclusion, name="inclusion", rule="lie between 0 and 1")
    chance = inclusion[pairs]
    refuse(chance <= 0.0, chance, name="inclusion[pairs]", rule="be above 0")
