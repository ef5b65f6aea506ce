"""Simulated campaigns on fully judged data: does the method do what it promises?"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, column_sums
from estimation.core.designs import Design
from estimation.core.draws import draw
from estimation.core.evaluation import evaluate
from estimation.core.labels import LabelRows
from estimation.core.measures import Measure
from estimation.core.pool import Pool


@dataclass(frozen=True, eq=False)
class Simulation:
    """Estimates of S simulated campaigns for k runs.

    Attributes
    ----------
    truth : ndarray of float64, shape (k,)
        Values from the complete judgments.
    value, se, low, high : ndarray of float64, shape (S, k)
        What each campaign estimated.
    judged_pairs : ndarray of int64, shape (S,)
        Pairs that each campaign judged.
    """

    truth: FloatArray
    value: FloatArray
    se: FloatArray
    low: FloatArray
    high: FloatArray
    judged_pairs: IntArray

    @property
    def bias(self) -> FloatArray:
        """Mean estimate less truth, shape (k,)."""
        return np.asarray(self.value.mean(axis=0) - self.truth)

    @property
    def sd(self) -> FloatArray:
        """Standard deviation of the estimates over campaigns, shape (k,)."""
        return np.asarray(self.value.std(axis=0, ddof=1))

    @property
    def coverage(self) -> FloatArray:
        """Share of campaigns whose interval holds the truth, shape (k,)."""
        inside = (self.low <= self.truth) & (self.truth <= self.high)
        return np.asarray(inside.mean(axis=0))


def true_values(pool: Pool, *, grades: IntArray, measure: Measure) -> FloatArray:
    """Return the value of every run when the grade of every pair is known.

    Parameters
    ----------
    grades : ndarray of int64, shape (N,)
        The grade of each pair of the pool.

    Returns
    -------
    ndarray of float64, shape (k,)
    """
    if grades.shape != (len(pool),):
        raise ValueError("there must be one grade per pair of the pool")
    gained = pool.entry_weights(measure) * measure.utilities(grades)[pool.entry_pair]
    return column_sums(pool.run, gained, number=len(pool.runs))


def simulate(
    pool: Pool,
    design: Design,
    *,
    grades: IntArray,
    measure: Measure,
    max_grade: int,
    seeds: Iterable[str],
    batches: int | None = None,
    estimator: str | None = None,
    confidence: float = 0.95,
) -> Simulation:
    """Draw, judge without error and evaluate one campaign per seed.

    Parameters
    ----------
    pool, design : Pool, Design
    grades : ndarray of int64, shape (N,)
        The grade of each pair of the pool.
    measure : Measure
        What is estimated.
    max_grade : int
        The best grade of the scale.
    seeds : iterable of str
        One campaign each.
    batches : int, optional
        Stop after so many batches.
    estimator : {"ht", "is"}, optional
        By default the design's primary estimator.
    confidence : float

    Raises
    ------
    ValueError
        As `evaluate`; or if there is no seed.
    """
    truth = true_values(pool, grades=grades, measure=measure)
    rows, judged = [], []
    for seed in seeds:
        sample = draw(pool, design, seed=seed)
        evaluation = evaluate(
            pool,
            design,
            sample,
            labels=LabelRows(sample.pair, grades[sample.pair]),
            measures=[measure],
            max_grade=max_grade,
            batches=batches,
            confidence=confidence,
        )
        result = evaluation.results[0]
        found = result.estimators[estimator or result.primary]
        rows.append((found.value, found.se, found.low, found.high))
        judged.append(evaluation.judged_pairs)
    if not rows:
        raise ValueError("there must be a seed")
    value, se, low, high = (np.stack(column) for column in zip(*rows, strict=True))
    return Simulation(truth, value, se, low, high, np.array(judged, dtype=np.int64))
