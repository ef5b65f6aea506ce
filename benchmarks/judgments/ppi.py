"""Prediction-powered inference: PPI++ of Angelopoulos, Duchi and Zrnic (2023, arXiv:2311.01453).

The pairs of the pool are a population, of which a simple random sample is judged and all have a
machine's grade. The value of a run is the population's mean of N w_ij u_i, estimated by the mean of
predictions times lambda, corrected by the sample; one lambda for all runs makes the sum of their
variances least (*power tuning*). Point, interval and lambda are those of its authors' package
ppi-python 0.2.3, with its default settings; that package is too large (half a gigabyte with what it
needs) to be a part of the tests.
"""

from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Powered:
    """Means (k,), their covariance (k, k), and the weight of predictions."""

    value: FloatArray
    covariance: FloatArray
    tuned: float


def prediction_powered_mean(
    labels: FloatArray, predictions: FloatArray, unlabeled: FloatArray
) -> Powered:
    """Estimate the means of k quantities.

    Parameters
    ----------
    labels, predictions : ndarray of float64, shape (n, k)
        Of the sample.
    unlabeled : ndarray of float64, shape (N, k)
        Predictions of what was not sampled.
    """
    n, many = len(labels), len(unlabeled)
    together = np.concatenate([predictions, unlabeled]).var(axis=0, ddof=1).sum()
    common = ((labels - labels.mean(axis=0)) * predictions).mean(axis=0).sum()
    tuned = float(np.clip(common / ((1.0 + n / many) * together), 0.0, 1.0)) if together else 0.0
    rest = labels - tuned * predictions
    value = tuned * unlabeled.mean(axis=0) + rest.mean(axis=0)
    imputed = tuned**2 * _covariance(unlabeled) / many
    return Powered(value, imputed + _covariance(rest) / n, tuned)


def _covariance(rows: FloatArray) -> FloatArray:
    return np.atleast_2d(np.cov(rows, rowvar=False, ddof=0))
