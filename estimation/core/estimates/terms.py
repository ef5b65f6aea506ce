"""What sampled pairs add to the values of runs under a linear measure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..data.entries import weights_of
from ..data.labels import (
    LabelRows,
    PairLabels,
    expected_by_grade,
    pair_labels,
)
from .held_products import JudgedProducts
from .products import cross_product
from .rows import found_rows

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray, IntArray, SparseMatrix
    from ..data.pool import Pool
    from ..measures.table import Measure
    from .rows import FoundRows


@dataclass(frozen=True, eq=False)
class Noise:
    """Disagreement between assessors, where it differs from run to run.

    Attributes
    ----------
    rows : csr_array, shape (m, k)
        By how much a grade moves the contribution of its pair from the pair's mean.
    scale : ndarray of float64, shape (m,)
        Factors such that sum over a pair's rows of scale rows_j rows_l estimates, without bias,
        the covariance of its mean contributions to runs j and l.
    pair : ndarray of int64, shape (m,)
        The pair of each row, as a position among the sampled ones.
    """

    rows: SparseMatrix
    scale: FloatArray
    pair: IntArray

    def covariance(self, often: FloatArray) -> FloatArray:
        """Add it up, each of n pairs so often, (n,): shape (k, k)."""
        return cross_product(self.rows, self.scale * often[self.pair])

    def with_more(self, other: Noise) -> Noise:
        """Return the same with the rows of other pairs."""
        rows = sparse.vstack([self.rows, other.rows], format="csr")
        scale, pair = (
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("scale", "pair")
        )
        return Noise(rows, scale, pair)


@dataclass(frozen=True, eq=False)
class Terms:
    """Contributions y_ij = weights_ij * labels.mean_i of n sampled pairs to k runs.

    Attributes
    ----------
    weights : csr_array, shape (n, k)
        Rows of pairs without any gain or disagreement, which add nothing, may be empty.
    labels : PairLabels
        Where the utility depends on the run, the weights hold the mean contributions, the means
        are 1, and their disagreement is in `noise`.
    noise : Noise or None
    noise_by_grades : Noise or None
        The same as the grades of all judgments let one expect it; None: no other than `noise`.
    noise_measured : bool
        Whether any pair has two judgments or more.
    products : JudgedProducts or None
        Of the weights, where pairs disagree.
    """

    weights: SparseMatrix
    labels: PairLabels
    noise: Noise | None
    noise_by_grades: Noise | None
    noise_measured: bool
    products: JudgedProducts | None = None

    def noise_of_runs(self, often: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What `noise` and `noise_by_grades` add up to, each of n pairs so often: (k, k) each."""
        if self.noise is None:
            nothing = np.zeros((self.weights.shape[1],) * 2)
            return nothing, nothing
        noise, likely = self.noise.covariance(often), self.noise_by_grades
        return noise, noise if likely is None else likely.covariance(often)

    @cached_property
    def found(self) -> FoundRows:
        """The rows that add something, which most judged pairs do not, and which they are."""
        return found_rows(self.weights, self.labels.mean)


def linear_terms(pool: Pool, measure: Measure, *, pairs: IntArray, rows: LabelRows) -> Terms:
    """Return what sampled pairs contribute under a measure of gains, predictions or preferences.

    Rows are the judgments of the pairs, sorted by (pair, grade); `pair` counts positions in
    `pairs`. A pair with one judgment has the disagreement that this lets one expect. LabelError if
    a pair has no row; MeasureError if the pool lacks what the measure is about.
    """
    if measure.family == "gain":
        labels = pair_labels(rows, pairs=len(pairs), measure=measure).with_expected()
        weights = weights_of(pool, measure, pairs, wanted=labels.wanted)
        measured = labels.noise_measured
        products = JudgedProducts.of(pool, measure, pairs, weights) if measured else None
        return Terms(weights, labels, None, None, measured, products)
    return _terms_by_run(pool, measure, pairs, rows)


def _terms_by_run(pool: Pool, measure: Measure, pairs: IntArray, rows: LabelRows) -> Terms:
    """Contributions w_ij u_ij, u_ij the mean utility of the pair's grades for run j."""
    number = np.bincount(rows.pair, minlength=len(pairs))
    entries = _Entries.of(pool, measure, pairs)
    grades = np.unique(np.append(0, rows.grade))
    counts = np.stack(
        [np.bincount(rows.pair[rows.grade == g], minlength=len(pairs)) for g in grades]
    )
    by_grade = [entries.contributions(measure, int(grade)) for grade in grades]
    mean = sum(
        contributions * (count / number)[entries.pair]
        for contributions, count in zip(by_grade, counts, strict=True)
    )
    noise = likely = None
    if np.any(number >= 2):
        deviations = [contributions - mean for contributions in by_grade]
        noise = _noise(entries, deviations, counts, number)
        if len(grades) > 1:
            expected = _expected_by_grade(rows, counts, number)[grades]
            of_pairs = partial(_expected_noise, entries, by_grade, counts, number, expected)
            of_singles = of_pairs(number == 1)
            noise, likely = (each.with_more(of_singles) for each in (noise, of_pairs(number >= 2)))
    return Terms(entries.matrix(mean), _ones(number), noise, likely, noise is not None)


def _noise(
    entries: _Entries, deviations: list[FloatArray], counts: IntArray, number: IntArray
) -> Noise:
    """Rows of the pairs with two judgments or more, for each grade its deviation from the mean."""
    share = np.where(number >= 2, 1.0 / number, 0.0) / np.maximum(number - 1, 1)
    scale = np.concatenate([count * share for count in counts])
    pair = np.tile(np.arange(len(number)), len(counts))
    stacked = sparse.vstack([entries.matrix(each) for each in deviations], format="csr")
    kept = scale > 0.0
    return Noise(stacked[kept], scale[kept], pair[kept])


def _expected_by_grade(rows: LabelRows, counts: IntArray, number: IntArray) -> FloatArray:
    """How often two judgments of a pair are of two grades, as one of them lets one expect.

    Of each grade of the judgment, (G, c), for every two of the seen grades (`_couples`). The spread
    within a pair is a sum over these, whatever runs make of grades, so that it is expected as of
    gains (`labels.expected_by_grade`): as if one pair more had two judgments that are one step
    apart, at any of the steps.
    """
    couples, again = _couples(len(counts)), counts[:, number >= 2]
    every = number[number >= 2] * (number[number >= 2] - 1) / 2.0
    spread = np.stack([again[one] * again[other] / every for one, other in couples], axis=1)
    steps = np.array([other == one + 1 for one, other in couples])
    return expected_by_grade(rows, number, spread, apart=steps / np.count_nonzero(steps))


def _expected_noise(
    entries: _Entries,
    by_grade: list[FloatArray],
    counts: IntArray,
    number: IntArray,
    expected: FloatArray,
    wanted: BoolArray,
) -> Noise:
    """Rows of some pairs by their grades: for every two grades, by how much these differ."""
    pairs, couples = np.flatnonzero(wanted), _couples(len(counts))
    often = counts[:, pairs] / number[pairs] ** 2
    scale = (expected.T @ often).ravel() / 2.0
    apart = [entries.matrix(by_grade[one] - by_grade[other])[pairs] for one, other in couples]
    kept = scale > 0.0
    rows = sparse.vstack(apart, format="csr")[kept]
    return Noise(rows, scale[kept], np.tile(pairs, len(couples))[kept])


def _couples(grades: int) -> list[tuple[int, int]]:
    return list(combinations(range(grades), 2))


def _ones(number: IntArray) -> PairLabels:
    return PairLabels(np.ones(len(number)), number, np.zeros(len(number)), False)


@dataclass(frozen=True, eq=False)
class _Entries:
    """Entries (pair, run) of the sampled pairs, with weight and prediction."""

    pair: IntArray
    run: IntArray
    indptr: IntArray
    runs: int
    weight: FloatArray
    prediction: FloatArray

    @classmethod
    def of(cls, pool: Pool, measure: Measure, pairs: IntArray) -> _Entries:
        entry, number = pool.entries_of(pairs)
        return cls(
            pair=np.repeat(np.arange(len(pairs)), number),
            run=pool.run[entry].astype(np.int64),
            indptr=np.append(0, np.cumsum(number)),
            runs=len(pool.runs),
            weight=pool.entry_weights(measure)[entry],
            prediction=pool.predictions[entry],
        )

    def contributions(self, measure: Measure, grade: int) -> FloatArray:
        """What each entry adds to its run if its pair has this grade."""
        grades = np.full(len(self.pair), grade)
        return self.weight * measure.entry_utilities(grades, self.prediction)

    def matrix(self, values: FloatArray) -> SparseMatrix:
        shape = (len(self.indptr) - 1, self.runs)
        return sparse.csr_array((values, self.run, self.indptr), shape=shape)
