"""What predicted grades save in a round: how many judgments they are worth there.

The variance of the values of runs is estimated from one sample without the grades and with them.
Then as many pairs are added as would lower the first to the second by themselves. Nothing of this
goes back into a design or an estimate.
"""

from dataclasses import replace

import numpy as np

from estimation.core.arrays import FloatArray
from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import PairLabels, pair_labels, select_rows
from estimation.core.estimates.topic_sums import judged_sums
from estimation.core.measures.table import Measure
from estimation.services.pair_weights import pair_weights

STEPS = 60
LEAST = 1e-3
"""Of all chances: no number of judgments below it is told apart."""


def worth_without_replacement(
    collection: RoundCollection, measure: Measure, grades: FloatArray
) -> float:
    """How many judgments grades, (N,), are worth by the variances of ``ht`` and ``di``.

    Below 0 where they do harm; nan where too little is known of the runs.
    """
    helped = replace(collection, predictions=grades)
    found = helped.evaluate(collection.pool, measures=[measure]).results[0]
    plain, corrected = found.estimators["ht"], found.estimators["di"]
    before, after = float(np.mean(plain.se**2)), float(np.mean(corrected.se**2))
    if (plain.unknown > 0).all() or not (before > 0.0 and after > 0.0):
        return float("nan")
    squares = squares_of_runs(collection, measure) * labels_of(collection, measure).mean ** 2
    return further_judgments(after / before, weight=weights_of(collection), squares=squares)


def further_judgments(share: float, *, weight: FloatArray, squares: FloatArray) -> float:
    """How many more pairs of a pool bring a variance down to a share of what it is.

    The chances p of all pairs grow alike, until they are 1: pairs that are certain to be judged
    add nothing any more, so that the variance falls faster than one over their number.

    Parameters
    ----------
    share : float
    weight : ndarray of float64, shape (n,)
        1 / p of each judged pair, which stands for as many of the pool.
    squares : ndarray of float64, shape (n,)
        Of what each adds to the values of runs where nothing is known of it.

    Returns
    -------
    float
        Below 0 for a share above 1; nan where all pairs are certain, or none adds anything.
    """
    weight = np.maximum(weight, 1.0)

    def variance(times: float) -> float:
        more = np.maximum(weight / times, 1.0)
        return float((weight * squares * (more - 1.0)).sum())

    def pairs(times: float) -> float:
        return float(np.minimum(weight, times).sum())

    now = variance(1.0)
    if not now > 0.0:
        return float("nan")
    low, high = LEAST, float(weight.max())
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if variance(middle) > share * now else (low, middle)
    return pairs(high) - pairs(1.0)


def weights_of(collection: RoundCollection) -> FloatArray:
    """One over the chance of each judged pair, shape (n,)."""
    known = pair_weights(collection)
    return np.ones(len(collection.sampled)) if known is None else known[collection.sampled]


def labels_of(collection: RoundCollection, measure: Measure) -> PairLabels:
    """Of the judged pairs, in their order."""
    pairs, most = collection.sampled, collection.max_grade
    rows = select_rows(collection.labels, sampled=pairs, prefix=pairs, max_grade=most)
    return pair_labels(rows, pairs=len(pairs), measure=measure)


def squares_of_runs(collection: RoundCollection, measure: Measure) -> FloatArray:
    """The squared weights of each judged pair, summed over the runs, shape (n,)."""
    weights = judged_sums(collection.pool, measure, collection.sampled).weights
    return np.asarray(weights.power(2).sum(axis=1), dtype=np.float64).ravel()
