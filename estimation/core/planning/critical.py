"""The critical value that verdicts have, where differences are expected and not observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..inference.multiplicity import largest_deviates
from ..upper import above, mirrored

if TYPE_CHECKING:
    from ..arrays import FloatArray

LEAST_P, MOST_P = 1e-300, 1.0 - 1e-9


def adjusted_p_values(z: FloatArray, covariance: FloatArray) -> FloatArray:
    """Adjust the p-values of differences between k values by the product's step-down procedure.

    Parameters
    ----------
    z : ndarray of float64, shape (n,)
        Differences of every two values in standard errors, by row of the upper triangle.
    covariance : ndarray of float64, shape (k, k)

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    matrix = mirrored(_single(z), len(covariance))
    return above(largest_deviates(matrix, covariance))


def critical_value(z: FloatArray, adjusted: FloatArray, error: float) -> float:
    """Return from which size on differences have a verdict, in standard errors.

    Read off the difference whose adjusted p-value is next to the error: it is compared with so many
    independent ones as give it that p-value (Sidak 1967), and these have the critical value.

    Parameters
    ----------
    z, adjusted : ndarray of float64, shape (n,)
        Differences in standard errors, at least one, and their adjusted p-values.
    error : float
        Of all verdicts together.

    Examples
    --------
    >>> alone = np.array([2.0])
    >>> round(critical_value(alone, adjusted_p_values(alone, np.eye(2)), 0.05), 2)
    1.96
    """
    return critical_value_of(independent_number(z, adjusted, error), error)


def independent_number(z: FloatArray, adjusted: FloatArray, error: float) -> float:
    """Return as how many independent ones differences are compared; the others as above."""
    near = int(np.argmin(np.abs(np.log(np.maximum(adjusted, LEAST_P) / error))))
    single = float(_single(z[near : near + 1])[0])
    among = np.log1p(-min(adjusted[near], MOST_P)) / np.log1p(-min(single, MOST_P))
    return min(max(float(among), 1.0), float(len(z)))


def critical_value_of(number: float, error: float) -> float:
    """Return the critical value of so many independent differences (Sidak 1967)."""
    return float(-special.ndtri(-np.expm1(np.log1p(-error) / number) / 2.0))


def _single(z: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(2.0 * special.ndtr(-np.abs(z)), LEAST_P), dtype=np.float64)
