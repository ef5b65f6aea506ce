"""The difference estimator: predictions for all pairs, corrected by the judged ones.

With a prediction m_i of every label, and a coefficient b,

    U^_j = b sum_i w_ij m_i + sum_S w_ij (v_i - b m_i) / pi_i

is unbiased for every fixed b (Särndal, Swensson and Wretman 1992, section 6.3), and b = 0 is
Horvitz-Thompson. The better the predictions, the smaller the residuals v - b m that carry the
variance; bad predictions make b small and cost nothing.
"""

from dataclasses import replace

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, column_sums, index_array, refuse
from estimation.core.draws import folds
from estimation.core.estimators import Estimate, horvitz_thompson_poisson
from estimation.core.labels import PairLabels
from estimation.core.measures import Measure, check_is_measure
from estimation.core.pool import Pool

FOLDS = 5


def difference_estimate(
    pool: Pool,
    *,
    measure: Measure,
    pairs: IntArray,
    labels: PairLabels,
    inclusion: FloatArray,
    predictions: FloatArray,
    coefficient: float | None = None,
) -> Estimate:
    """Estimate values from a Poisson sample with the help of predicted utilities.

    The coefficient is fitted by cross-fitting: pairs are hashed to folds, and the b of a fold is
    the one that gives the pairs of all *other* folds the smallest estimated variance. Pairs enter
    a Poisson sample independently, and so do their labels; b therefore does not depend on what it
    is used on, and the estimate stays exactly unbiased. A b fitted on the very pairs it is used
    on would not be.

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
        m_i, fixed before the sample was drawn: predicted utilities of all pairs.
    coefficient : float, optional
        b for all pairs, chosen before the sample was drawn; by default fitted.

    Raises
    ------
    ValueError
        If predictions are not N finite numbers, inclusion not N probabilities, above 0 for the
        sampled pairs, or the measure is of another family.
    """
    _check(pool, measure, predictions, pairs, inclusion)
    chance = inclusion[pairs]
    fold = folds(pool, number=FOLDS)
    by_fold = np.full(FOLDS, coefficient, dtype=np.float64)
    if coefficient is None:
        by_fold = _coefficients(pool, measure, pairs, labels, chance, predictions, fold)
    expected = by_fold[fold] * predictions
    residual = replace(labels, mean=labels.mean - expected[pairs])
    corrected = horvitz_thompson_poisson(pool.weights(measure, pairs), residual, probability=chance)
    entries = (
        pool.entry_weights(measure) * np.where(inclusion > 0.0, expected, 0.0)[pool.entry_pair]
    )
    predicted = column_sums(pool.run, entries, number=len(pool.runs))
    return Estimate(predicted + corrected.value, corrected.covariance, corrected.contributions)


def _coefficients(
    pool: Pool,
    measure: Measure,
    pairs: IntArray,
    labels: PairLabels,
    chance: FloatArray,
    predictions: FloatArray,
    fold: IntArray,
) -> FloatArray:
    """The b of each fold: sum c v m / sum c m^2 over the sampled pairs of the others, c their
    factor (1 - pi)/pi^2 sum_j w_ij^2 in the variance, summed over the runs."""
    weights = pool.weights(measure, pairs)
    importance = (1.0 - chance) / chance**2 * weights.power(2).sum(axis=1)
    predicted = predictions[pairs]
    products = column_sums(fold[pairs], importance * labels.mean * predicted, number=FOLDS)
    squares = column_sums(fold[pairs], importance * predicted**2, number=FOLDS)
    others = 1.0 - np.eye(FOLDS)
    fitted = np.divide(
        others @ products, others @ squares, out=np.zeros(FOLDS), where=others @ squares > 0.0
    )
    return np.asarray(fitted, dtype=np.float64)


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
    refuse(~np.isfinite(predictions), predictions, name="predictions", rule="be finite")
    index_array(pairs, below=len(pool), name="pairs")
    if inclusion.shape != (len(pool),):
        shape = f"not of the shape {inclusion.shape}"
        raise ValueError(f"inclusion must be one number per pair, {len(pool)}, {shape}")
    wrong = ~((inclusion >= 0.0) & (inclusion <= 1.0))
    refuse(wrong, inclusion, name="inclusion", rule="lie between 0 and 1")
    chance = inclusion[pairs]
    refuse(chance <= 0.0, chance, name="inclusion[pairs]", rule="be above 0")
