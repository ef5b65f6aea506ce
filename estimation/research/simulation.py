"""Simulated campaigns on fully judged data: does the method do what it promises?"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, listed
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.estimates.complete import complete_values
from estimation.core.measures.table import Measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw


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
    pool : Pool
    grades : ndarray of int64, shape (N,)
        The grade of each pair of the pool; in a pool of preferences 0, 1 or 2.
    measure : Measure
        Of any family but query.

    Returns
    -------
    ndarray of float64, shape (k,)

    Raises
    ------
    ValueError
        If there is not one grade per pair, or the pool lacks what the measure is about.
    """
    return np.asarray(true_topic_values(pool, grades=grades, measure=measure).mean(axis=0))


def true_topic_values(pool: Pool, *, grades: IntArray, measure: Measure) -> FloatArray:
    """Return the value of every run on every topic when the grade of every pair is known.

    Parameters and errors are those of `true_values`.

    Returns
    -------
    ndarray of float64, shape (T, k)
    """
    values: FloatArray = complete_values(pool, grades=grades, measures=[measure])[0]
    return values


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
        By default the primary estimator.
    confidence : float

    Raises
    ------
    ValueError
        As `evaluate`; or if there is no such estimator for the design, or no seed.
    """
    truth = true_values(pool, grades=grades, measure=measure)
    rows, judged = [], []
    for seed in seeds:
        sample = draw(pool, design, seed=seed)
        evaluation = evaluate(
            pool,
            PairRound(design, sample),
            labels=LabelRows(sample.pair, grades[sample.pair]),
            measures=[measure],
            max_grade=max_grade,
            batches=batches,
            confidence=confidence,
        )
        result = evaluation.results[0]
        name = result.primary if estimator is None else estimator
        if name not in result.estimators:
            raise ValueError(f"estimator must be one of {listed(result.estimators)}, not {name!r}")
        found = result.estimators[name]
        rows.append((found.value, found.se, found.low, found.high))
        judged.append(evaluation.judged_pairs)
    if not rows:
        raise ValueError("there must be a seed; seeds holds none")
    value, se, low, high = (np.stack(column) for column in zip(*rows, strict=True))
    return Simulation(truth, value, se, low, high, np.array(judged, dtype=np.int64))
