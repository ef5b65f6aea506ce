"""What predicted grades save in a round: how many judgments they are worth there.

The variance of the values of runs is estimated from one sample without the grades and with them.
Then as many pairs are added as would lower the first to the second by themselves. Nothing of this
goes back into a design or an estimate.

In adaptive rounds predicted grades are features of a model (`core.rounds.adaptive.grades`), and an
estimate is as exact as the model is right. So models with the grades and without them are fitted to
four fifths of the judged pairs, by turns, and tell the others; what is left over of these is the
variance. A model is not asked about pairs that it was fitted to: grades that tell nothing would
seem to save judgments, as a fit follows them.
"""

from dataclasses import replace

import numpy as np

from estimation.core.arrays import FloatArray, IntArray
from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows, PairLabels, pair_labels, select_rows
from estimation.core.estimates.topic_sums import judged_sums
from estimation.core.measures.table import Measure
from estimation.core.rounds.adaptive.frame import utility_steps
from estimation.core.rounds.adaptive.grades import Features, fit_grades, grade_levels
from estimation.services.pair_weights import pair_weights

FOLDS = 5
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


def worth_to_models(collection: RoundCollection, measure: Measure, grades: FloatArray) -> float:
    """How many judgments grades, (N,), are worth to the model of an adaptive round.

    Below 0 where they do harm; nan where what was judged is too little, or too much alike, to learn
    from.
    """
    without = _left_over(collection, measure, None)
    having = _left_over(collection, measure, grades[:, np.newaxis])
    if without is None or having is None:
        return float("nan")
    weight, squares = weights_of(collection), squares_of_runs(collection, measure)
    open_still = weight * np.maximum(weight - 1.0, 0.0) * squares
    before, after = (float((open_still * each**2).sum()) for each in (without, having))
    if not before > 0.0:
        return float("nan")
    return further_judgments(after / before, weight=weight, squares=squares * without**2)


def _left_over(
    collection: RoundCollection, measure: Measure, predicted: FloatArray | None
) -> FloatArray | None:
    """What models of other judged pairs leave over of the label of each, (n,)."""
    pairs, levels = collection.sampled, grade_levels(collection.max_grade)
    features = Features.of(collection.pool, predicted)
    of_judged, left = features.of_pairs(pairs), labels_of(collection, measure).mean.copy()
    reached = _reached(_rows(collection), len(pairs), levels)
    for fold in range(FOLDS):  # pairs stand by topic, so that a fold has some of each
        told = np.arange(len(pairs)) % FOLDS == fold
        model = fit_grades(features, pairs[~told], reached[~told], levels=levels)
        if model is None:
            return None
        left[told] -= utility_steps(measure, levels) @ model.reach(of_judged)[:, told]
    return left


def _reached(rows: LabelRows, pairs: int, levels: IntArray) -> FloatArray:
    """The share of the judgments of each pair that reach each level, shape (n, L)."""
    number = np.bincount(rows.pair, minlength=pairs)
    above = (rows.pair[rows.grade >= level] for level in levels.tolist())
    return np.stack([np.bincount(each, minlength=pairs) / number for each in above], axis=1)


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
    return pair_labels(_rows(collection), pairs=len(collection.sampled), measure=measure)


def _rows(collection: RoundCollection) -> LabelRows:
    pairs, most = collection.sampled, collection.max_grade
    return select_rows(collection.labels, sampled=pairs, prefix=pairs, max_grade=most)


def squares_of_runs(collection: RoundCollection, measure: Measure) -> FloatArray:
    """The squared weights of each judged pair, summed over the runs, shape (n,)."""
    weights = judged_sums(collection.pool, measure, collection.sampled).weights
    return np.asarray(weights.power(2).sum(axis=1), dtype=np.float64).ravel()
