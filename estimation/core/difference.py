"""The difference estimator: predictions for all pairs, corrected by the judged ones.

With a prediction m_i of every label, and a coefficient b,

    U^_j = b sum_i w_ij m_i + sum_S w_ij (v_i - b m_i) / pi_i

is unbiased for every fixed b (Särndal, Swensson and Wretman 1992, section 6.3), and b = 0 is
Horvitz-Thompson. The better the predictions, the smaller the residuals v - b m that carry the
variance; bad predictions make b small and cost nothing.
"""

from dataclasses import dataclass, replace

import numpy as np

from estimation.core.arrays import (
    FloatArray,
    IntArray,
    SparseMatrix,
    column_sums,
    index_array,
    refuse,
    shown,
)
from estimation.core.draws import folds
from estimation.core.estimators import Estimate, horvitz_thompson_poisson, topic_contributions
from estimation.core.labels import PairLabels
from estimation.core.measures import Measure, check_is_measure
from estimation.core.pool import Pool

FOLDS = 5
ROUNDING = 1e-14  # of a label: a prediction that misses it by less is flawless


@dataclass(frozen=True, eq=False)
class DifferenceEstimate(Estimate):
    """Estimated values of k runs, with what each topic contributes.

    Attributes
    ----------
    by_topic : ndarray of float64, shape (T, k)
        Columns sum, but for rounding, to the values. A contribution can be negative.
    """

    by_topic: FloatArray


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
    fitted_runs : ndarray of int64, optional
        Positions of the runs whose variances the fitted b makes small; by default all.

    Raises
    ------
    ValueError
        If predictions are not N finite numbers, inclusion not N probabilities, above 0 for the
        sampled pairs, or the measure is of another family.
    """
    _check(pool, measure, predictions, pairs, inclusion)
    chance = inclusion[pairs]
    fold = folds(pool, number=FOLDS)
    weights = pool.weights(measure, pairs)
    by_fold = np.full(FOLDS, coefficient, dtype=np.float64)
    if coefficient is None:
        wanted = weights if fitted_runs is None else weights[:, fitted_runs]
        by_fold = _coefficients(wanted, labels, chance, predictions[pairs], fold[pairs])
    expected = by_fold[fold] * predictions
    missed = labels.mean - expected[pairs]
    missed[np.abs(missed) <= ROUNDING * labels.mean] = 0.0
    residual = replace(labels, mean=missed)
    corrected = horvitz_thompson_poisson(weights, residual, probability=chance)
    predicted = _predicted(pool, measure, np.where(inclusion > 0.0, expected, 0.0))
    rest = topic_contributions(
        weights,
        residual.mean / chance,
        topic=pool.topic[pairs].astype(np.int64),
        topics=len(pool.topics),
    )
    return DifferenceEstimate(
        predicted.sum(axis=0) + corrected.value,
        corrected.covariance,
        corrected.contributions,
        predicted + rest,
    )


def expected_utilities(
    measure: Measure, grades: FloatArray, *, pairs: int, max_grade: int
) -> FloatArray:
    """Return the utilities of predicted grades, interpolated between whole grades.

    Parameters
    ----------
    measure : Measure
        Of the family gain.
    grades : ndarray of float64, shape (pairs,)
        Expected grades, from 0 to max_grade; NaN where nothing is predicted, which counts as a
        predicted utility of 0: such a pair is estimated as by Horvitz and Thompson.
    pairs : int
        Number N of pairs.
    max_grade : int
        The best grade of the scale.

    Raises
    ------
    ValueError
        If there is not one grade per pair, or one is off the scale.
    """
    check_predictions(grades, pairs=pairs, max_grade=max_grade)
    scale = np.arange(max_grade + 1)
    known = np.where(np.isnan(grades), 0.0, grades)
    return np.where(np.isnan(grades), 0.0, np.interp(known, scale, measure.utilities(scale)))


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


def _predicted(pool: Pool, measure: Measure, expected: FloatArray) -> FloatArray:
    """sum w_ij m_i over the pairs of each topic, shape (T, k)."""
    runs, topics = len(pool.runs), len(pool.topics)
    entries = pool.entry_weights(measure) * expected[pool.entry_pair]
    cells = pool.topic[pool.entry_pair].astype(np.int64) * runs + pool.run
    return column_sums(cells, entries, number=topics * runs).reshape(topics, runs)


def _coefficients(
    weights: SparseMatrix,
    labels: PairLabels,
    chance: FloatArray,
    predicted: FloatArray,
    fold: IntArray,
) -> FloatArray:
    """The b of each fold: sum c v m / sum c m^2 over the sampled pairs of the others, c their
    factor (1 - pi)/pi^2 sum_j w_ij^2 in the variance, summed over the runs."""
    importance = (1.0 - chance) / chance**2 * weights.power(2).sum(axis=1)
    products = column_sums(fold, importance * labels.mean * predicted, number=FOLDS)
    squares = column_sums(fold, importance * predicted**2, number=FOLDS)
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
