"""Adjusting p-values of all pairs of runs: Holm's procedure, and the largest of many deviates.

Holm's procedure allows for every dependence between the tests. Where the covariance of the values
is known, so is how the differences depend on one another: of k runs there are k (k - 1) / 2
differences, but only k - 1 ways to err. The step-down procedure of Romano and Wolf (2005) compares
each difference with the largest of all that are not yet told apart, as Mogstad, Romano, Shaikh and
Wilhelm (2024, *Inference for ranks*) do for ranks; the distribution of the largest is that of
normal vectors with the estimated correlations, of which a fixed set is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..upper import above, every_two, mirrored
from .normal import normal_vectors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..arrays import FloatArray, IntArray

MOST_VECTORS, LEAST_VECTORS = 4000, 250
MOST_NEEDED = 1000  # vectors; where more are, it is Holm's
LEAST_BEYOND = 12.5  # vectors that shall be beyond the critical value: 250 at an error of 5 %
NEAR, FAR = 1.95, 6.0  # standard errors
MOST_DEVIATES = 2_000_000  # vectors times pairs of runs
NUGGET = 1e-10  # of the largest variance, so that a covariance without full rank has a root
PIECE = 1 << 15  # deviates that are looked at together: 256 KB
SOME_RUNS = 4  # that are compared with all others together
MOST_SCALED = 1e30  # of the largest number, so that single digits hold all deviates
RUNS_AT_ONCE = 1 << 17  # numbers of vectors and runs that are multiplied at once


def holm(p_values: FloatArray) -> FloatArray:
    """Adjust a symmetric matrix of p-values, (k, k), by Holm's step-down procedure.

    Over the k (k - 1) / 2 pairs; the diagonal is ignored, and becomes 1.
    """
    single = above(p_values)
    order = np.argsort(single, kind="stable")
    return mirrored(_holm(single, order), len(p_values))


def _holm(single: FloatArray, order: IntArray) -> FloatArray:
    """The adjusted p-values of some in rising order; which of equal ones is first is all one."""
    steps = np.arange(len(order), 0, -1) * single[order]
    stepped = np.empty_like(single)
    stepped[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return stepped


def largest_deviates(
    p_values: FloatArray, covariance: FloatArray, *, error: float = 0.05
) -> FloatArray:
    """Adjust a symmetric matrix of p-values by how the differences depend on one another.

    Never below what a difference has alone, and never above `holm`, which it is combined with: a
    p-value far below one over the number of drawn vectors is Holm's. All of them are where so many
    vectors would be needed to tell how large the largest deviate is with the probability `error`
    that too few can be drawn: a fixed set may by chance have its few largest ones too low, in every
    campaign. Holm's bound costs little there, because far out the differences hardly ever are large
    together.

    Parameters
    ----------
    p_values : ndarray of float64, shape (k, k)
        Of "no difference" between values, two-sided; symmetric, the diagonal is ignored. Where it
        is 1 for want of knowledge, the difference stays among those that are compared.
    covariance : ndarray of float64, shape (k, k)
        Of the values, up to a factor: only correlations of differences matter.
    error : float
        Adjusted p-values up to this one lead to verdicts; strictly between 0 and 1.

    Returns
    -------
    ndarray of float64, shape (k, k)
        Adjusted p-values; 1 on the diagonal.
    """
    runs = len(p_values)
    rows, columns = every_two(runs)
    if not len(rows):
        return np.ones((runs, runs))
    single = above(p_values)
    rising = np.argsort(-single)  # equal ones are adjusted alike, whichever is first
    stepped, number = _holm(single, rising[::-1]), _vectors(len(rows), error)
    if number is not None:
        wanted = -special.ndtri(np.maximum(single[rising] / 2.0, 1e-300))
        beyond = _beyond(covariance, rows[rising], columns[rising], wanted, number)
        largest = np.maximum.accumulate(beyond[::-1])[::-1]
        stepped[rising] = np.minimum(stepped[rising], largest)
    stepped = np.maximum(stepped, single)  # drawn vectors may say less than the difference alone
    return mirrored(stepped, runs)


def _vectors(differences: int, error: float) -> int | None:
    """How many vectors to draw; None where `MOST_NEEDED` cannot resolve the error.

    The set is the same in every campaign, so that what it is off by never averages out: as many as
    the work allows.
    """
    least = max(LEAST_VECTORS, math.ceil(LEAST_BEYOND / error - 1e-9))
    if least > MOST_NEEDED:
        return None
    return int(np.clip(MOST_DEVIATES // differences, least, MOST_VECTORS))


def _beyond(
    covariance: FloatArray, rows: IntArray, columns: IntArray, wanted: FloatArray, number: int
) -> FloatArray:
    """Share of the vectors of which any of the first differences, up to each, is as large.

    Differences that no test of one alone would call real are compared with all of these at once,
    and what is beyond `FAR` with none.
    """
    near, far = (int(each) for each in np.searchsorted(wanted, [NEAR, FAR]))
    values, scale = _values(covariance, number), _scales(covariance, rows, columns)
    largest = _largest(values, rows[:near], columns[:near], scale[:near])
    reached = [_Reached(np.arange(number), np.full(number, near), largest)]
    for piece, deviates in _deviates(values, rows, columns, scale, range(near, far)):
        reached.append(_Reached.of(deviates, wanted[piece], piece.start))
    count = np.zeros(len(wanted), dtype=np.int64)
    count[:near] = number - np.searchsorted(np.sort(largest), wanted[:near])
    count[near:far] = _vectors_beyond(reached, wanted[:far])[near:]
    return np.asarray((1.0 + count) / (1.0 + number), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Reached:
    """Vectors in which a difference is as large as wanted there, and how large it is."""

    vector: IntArray
    difference: IntArray
    deviate: FloatArray

    @classmethod
    def of(cls, deviates: FloatArray, wanted: FloatArray, start: int) -> _Reached:
        """Those of some differences, of which the first is that at `start`."""
        large = np.flatnonzero(deviates >= wanted[:, None])
        place, vector = np.divmod(large, deviates.shape[1])
        return cls(vector, start + place, deviates.ravel()[large])


def _vectors_beyond(reached: list[_Reached], wanted: FloatArray) -> IntArray:
    """In how many vectors one of the differences up to each is as large as wanted there.

    What is wanted rises, and so do the differences of `reached`: a deviate is large enough from its
    own difference on up to one that only depends on how large it is.
    """
    vector = np.concatenate([each.vector for each in reached])
    order, apart = np.argsort(vector.astype(np.int16), kind="stable"), len(wanted) + 1
    first = np.concatenate([each.difference for each in reached])[order]
    deviate = np.concatenate([each.deviate for each in reached])[order]
    shift = vector[order] * apart  # vectors one behind the other
    ends = np.maximum.accumulate(shift + np.searchsorted(wanted, deviate, side="right"))
    begins = np.maximum(shift + first, np.append(0, ends[:-1]))
    more = ends > begins
    changes = np.bincount(begins[more] % apart, minlength=apart)
    changes -= np.bincount(ends[more] % apart, minlength=apart)
    return np.cumsum(changes)[:-1]


def _scales(covariance: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """One over the standard errors of differences; 0 of those that hardly vary."""
    variance = np.diag(covariance)
    both = variance[rows] + variance[columns]
    spread = both - 2.0 * covariance[rows, columns]
    return np.where(spread > NUGGET * both, 1.0 / np.sqrt(np.maximum(spread, 1e-300)), 0.0)


def _largest(
    values: FloatArray, rows: IntArray, columns: IntArray, scale: FloatArray
) -> FloatArray:
    """The largest absolute standardized difference of each vector, shape (vectors,).

    With half the digits, in less time: of vectors drawn at random the seventh digit says nothing.
    """
    unit = max(float(np.abs(values).max(initial=0.0)), 1e-300)
    scales = np.zeros((len(values), len(values)), dtype=np.float32)
    scales[rows, columns] = np.minimum(scale * unit, MOST_SCALED)
    shares = (values / unit).astype(np.float32)
    largest = np.zeros(values.shape[1], dtype=np.float32)
    room = np.empty((SOME_RUNS, *shares.shape), dtype=np.float32)
    for first in range(0, len(shares), SOME_RUNS):
        some = scales[first : first + SOME_RUNS, first:]
        deviates = room[: len(some), first:]
        np.subtract(shares[first:], shares[first : first + SOME_RUNS, None], out=deviates)
        deviates *= some[:, :, None]
        np.abs(deviates, out=deviates)
        np.maximum(largest, np.maximum.reduce(deviates, axis=(0, 1)), out=largest)
    return largest.astype(np.float64)


def _deviates(
    values: FloatArray, rows: IntArray, columns: IntArray, scale: FloatArray, some: range
) -> Iterator[tuple[slice, FloatArray]]:
    """Absolute standardized differences of vectors, (differences, vectors), of some differences.

    In pieces that a processor's cache holds, each with where it is; the next one overwrites it.
    """
    number = values.shape[1]
    step = max(1, PIECE // number)
    one, other = np.empty((2, step, number))
    for start in range(some.start, some.stop, step):
        piece = slice(start, min(start + step, some.stop))
        deviates, second = (each[: piece.stop - start] for each in (one, other))
        np.take(values, rows[piece], axis=0, out=deviates, mode="clip")
        np.take(values, columns[piece], axis=0, out=second, mode="clip")
        deviates -= second
        np.abs(deviates, out=deviates)
        deviates *= scale[piece, None]
        yield piece, deviates


def _values(covariance: FloatArray, number: int) -> FloatArray:
    """Normal vectors with such a covariance, (runs, vectors).

    The vectors are fixed: runs have their numbers by rising variance, so that nothing that is told
    hangs on what runs are called.
    """
    order = np.argsort(np.diag(covariance), kind="stable")
    values = np.empty((len(covariance), number))
    root = _root(covariance[np.ix_(order, order)])
    values[order] = _product(normal_vectors(number, len(covariance)), root).T
    return values


def _root(covariance: FloatArray) -> FloatArray:
    """L with L L' = covariance (Cholesky), columns added in order on every machine."""
    runs = len(covariance)
    rest = covariance + np.eye(runs) * (NUGGET * max(float(np.diag(covariance).max()), 1e-300))
    root, terms = np.zeros_like(rest), np.empty((runs + 1, runs))  # of the root the transpose
    for run in range(runs):
        below = terms[: run + 1, : runs - run]
        below[0] = rest[run, run:]
        np.multiply(root[:run, run:], root[:run, run, None], out=below[1:])
        column = np.subtract.reduce(below, axis=0)
        if column[0] > 0.0:
            root[run, run:] = column / np.sqrt(column[0])
    return root.T


def _product(vectors: FloatArray, root: FloatArray) -> FloatArray:
    """Vectors times the root, in pieces too small for BLAS to split between threads."""
    runs = len(root)
    rows = max(1, RUNS_AT_ONCE // (runs * runs))
    pieces = [vectors[at : at + rows] @ root.T for at in range(0, len(vectors), rows)]
    return np.concatenate(pieces)
