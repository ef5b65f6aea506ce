"""What couples two pairs among draws with replacement: their joint inclusion probability.

pi_i = 1 - (1 - Q_i)^n and pi_il = pi_i + pi_l - 1 + (1 - Q_i - Q_l)^n, exactly. All couples are
looked at one by one where there are few, or where a probability is large; else their terms are
expanded into products of a factor of i and a factor of l, each of which is added up alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .products import WeightedSums, gram, weighted_sums

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray, SparseMatrix

BLOCK_CELLS = 4_000_000  # joint probabilities held at a time: 32 MB per array
# Where the series holds: at least so many draws, n o_i o_l at most so large; and how far it goes.
# With fewer draws there are few pairs, and the blocks are fast.
SERIES_DRAWS, SERIES_LIMIT = 1000, 0.5
SERIES_POWER, SERIES_DEGREE = 6, 20
SURE_DRAWS = 60.0  # expected draws of a pair that couples with others below 1e-14


def coupled_products(
    rows: SparseMatrix, label: FloatArray, chances: FloatArray, draws: int
) -> FloatArray:
    """Return `gram` of pairs, and what couples of them add to it in a covariance, shape (k, k).

    Couples add the sum of (pi_il - pi_i pi_l) / (pi_il pi_i pi_l) y_ij y_lj' over i != l, with
    y_ij = a_ij label_i, a_ij the rows, labels >= 0 and chances Q_i in (0, 1]. Pairs that are all
    but sure to be drawn are left out: coupled with l they add, relative to the standard errors of
    y_i / pi_i and y_l / pi_l, at most x exp(-x / 2) / n with x = n Q_i.
    """
    sure = (draws >= SERIES_DRAWS) & (draws * chances > SURE_DRAWS)
    pairs = np.flatnonzero((label > 0.0) & ~sure)
    largest = float(np.max(chances[pairs], initial=0.0))
    if draws >= SERIES_DRAWS and draws * largest**2 <= SERIES_LIMIT * (1.0 - largest) ** 2:
        series = _Series.of(label, chances, pairs, draws)
        return series.total(weighted_sums(rows, factors=1.0 + series.same, columns=series.factors))
    values = rows[pairs]
    values.data *= np.repeat(label[pairs], np.diff(values.indptr))
    return gram(rows) + _by_blocks(values, chances[pairs], draws)


def _by_blocks(values: SparseMatrix, chances: FloatArray, draws: int) -> FloatArray:
    """Work through all i and l: the time grows with the square of the number of pairs."""
    total = np.zeros((values.shape[1], values.shape[1]))
    step = max(1, BLOCK_CELLS // max(1, len(chances)))
    transposed = values.T.tocsr()
    for start in range(0, len(chances), step):
        block = slice(start, min(start + step, len(chances)))
        odds, absence, present = _odds(chances, draws)
        factors = _dependence(
            np.multiply.outer(odds[block], odds),
            np.multiply.outer(absence[block], absence),
            np.multiply.outer(present[block], present),
            draws,
        )
        rows = np.arange(block.start, block.stop)
        factors[rows - block.start, rows] = 0.0
        total += values[block].T.tocsr() @ (transposed @ factors.T).T
    return (total + total.T) / 2.0


def _odds(chances: FloatArray, draws: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Q / (1 - Q), and the probabilities of not being among the draws and of being there."""
    with np.errstate(divide="ignore"):
        logs = draws * np.log1p(-chances)
        return chances / (1.0 - chances), np.exp(logs), -np.expm1(logs)


def _dependence(
    odds: FloatArray, absent: FloatArray, present: FloatArray, draws: int
) -> FloatArray:
    """(pi_il - pi_i pi_l) / (pi_il pi_i pi_l), from the products of what `_odds` returns.

    pi_il - pi_i pi_l = (1 - Q_i)^n (1 - Q_l)^n ((1 - o_i o_l)^n - 1) with the odds
    o = Q / (1 - Q), which loses no digits however small Q is.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        difference = absent * np.expm1(draws * np.log1p(-odds))
        return np.asarray(difference / ((present + difference) * present), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Series:
    """Couples of i and l as a sum of products of one factor of each.

    With g = (1 - Q)^n / pi and the odds o, the factor of `_dependence` is z / (1 + z) / (pi_i
    pi_l), z = g_i g_l ((1 - x/n)^n - 1) = -(b_i b_l / n) h(x), x = n o_i o_l, b = n o g, and
    h(x) = 1 - (n - 1)/n x/2! + ... Because (1 + o)^n >= 1 + n o, b <= 1, so that z^q adds at
    most n^-q: every factor is -sum_q (b_i b_l / n)^q h(x)^q / (pi_i pi_l) to its last digits.

    Attributes
    ----------
    factors : ndarray of float64, shape (n_pairs, c)
        label b^q (n^(1/2) o)^r / pi of each pair, for c pairs of exponents.
    coefficients : ndarray of float64, shape (c,)
    same : ndarray of float64, shape (n_pairs,)
        What a couple of a pair with itself would add, which is none, less than nothing.
    """

    factors: FloatArray
    coefficients: FloatArray
    same: FloatArray

    @classmethod
    def of(cls, label: FloatArray, chances: FloatArray, pairs: IntArray, draws: int) -> _Series:
        """Expand the couples of some of the pairs; the others have zeros."""
        odds, absent, present = _odds(chances[pairs], draws)
        powers, ranks, coefficients = _series(draws, draws * float(np.max(odds, initial=0.0)) ** 2)
        b, root = draws * odds * absent / present, np.sqrt(draws) * odds
        factors = np.zeros((len(chances), len(coefficients)))
        factors[pairs] = _powers(b, powers) * _powers(root, ranks)
        factors[pairs] *= (label[pairs] / present)[:, None]
        same = np.zeros(len(chances))
        same[pairs] = -_dependence(odds**2, absent**2, present**2, draws) * label[pairs] ** 2
        return cls(factors, coefficients, same)

    def total(self, sums: WeightedSums) -> FloatArray:
        """Return the terms of all couples, from sums that hold those of a pair with itself."""
        total = sums.products
        for coefficient, column in zip(self.coefficients.tolist(), sums.columns.T, strict=True):
            total -= coefficient * np.multiply.outer(column, column)
        return total


def _powers(base: FloatArray, exponents: IntArray) -> FloatArray:
    """base^e for every exponent, shape (n, c), by multiplication: many times faster than `**`."""
    table = np.ones((int(exponents.max()) + 1, len(base)))
    for exponent in range(1, len(table)):
        np.multiply(table[exponent - 1], base, out=table[exponent])
    return np.ascontiguousarray(table[exponents].T)


def _series(draws: int, limit: float) -> tuple[IntArray, IntArray, FloatArray]:
    """Exponents q and r, and coefficients, of the (b_i b_l)^q x^r that matter for x <= limit.

    Left out is what is below 1e-18 of the first term; with `SERIES_DRAWS` and `SERIES_LIMIT` all
    of it together, and what the exponents do not reach, is below 1e-16 of every factor.
    """
    degrees = np.arange(1, SERIES_DEGREE + 1)
    h = np.cumprod(np.append(1.0, -(draws - degrees) / (draws * (degrees + 1.0))))
    power, found = np.append(1.0, np.zeros(SERIES_DEGREE)), []
    for q in range(1, SERIES_POWER + 1):
        power = np.convolve(power, h)[: len(h)]
        found += [(q, r, c * float(draws) ** -q) for r, c in enumerate(power.tolist())]
    kept = [(q, r, c) for q, r, c in found if abs(c) * limit**r * draws > 1e-18]
    powers, ranks, coefficients = zip(*kept, strict=True)
    return np.array(powers), np.array(ranks), np.array(coefficients)
