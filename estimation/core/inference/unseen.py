"""The variance to be expected of a sample, over all pairs that it could have missed.

The squares of the pairs that happened to be found estimate the variance of a value without bias,
and say next to nothing where little was found: they are 0 if nothing was. What a sample may have
missed follows from its design, if the grades are those of an `Outlook`: for ``poisson`` and
``priority``

    Cov(U^_j, U^_l) = sum_i (1 - pi_i) / pi_i E[y_ij y_il],

y_ij = w_ij u_ij what pair i adds to run j, and for draws with replacement, e_i being how often a
pair is expected,

    Cov(U^_j, U^_l) = sum_i E[y_ij y_il] / e_i - U_j U_l / n,

with U the expected values; under ``per-query``, topic by topic. All pairs of the pool count, not
only sampled ones, which makes this stable where the squares are not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import divided, share_of
from ..data.pool_ranks import total_weights
from ..estimates.products import cross_product
from .looked_at import LIKELY, Rows, belief_in, doubt_of, looked_at, missed_of
from .uncertainty import Losses, Unseen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..arrays import FloatArray, IntArray
    from ..data.pool import Pool
    from ..estimates.drawn import Drawn
    from ..measures.table import Measure
    from .outlook import Outlook
    from .reach import Reach


def unseen(reach: Reach, drawn: Drawn, outlook: Outlook, *, measure: Measure) -> Unseen:
    """Work out what is expected of the pairs that were not certain to be sampled.

    Parameters
    ----------
    reach, drawn : Reach, Drawn
        Of one pool.
    outlook : Outlook
        Of the pairs of the pool.
    measure : Measure
        Of the family gain, prediction or preference.

    Raises
    ------
    MeasureError
        If the pool lacks what the measure is about.
    """
    runs = len(reach.pool.runs)
    rows = looked_at(reach.pool, drawn, measure)
    chance = drawn.inclusion[rows.pair]
    left = _left(rows, chance)
    factors = [rows.factor] if left is None else [rows.factor, left.factor]
    squares, (totals, cubes) = np.zeros((len(factors), runs, runs)), np.zeros((2, 2, runs))
    expected = _expectation(rows, measure, outlook)
    belief = belief_in(rows, drawn)
    believed = _believed(belief, measure, expected)
    by_topic = np.zeros((len(reach.pool.topics), runs)) if drawn.per_topic else None
    size = _sizes(rows, chance if drawn.counts is None else drawn.expected[rows.pair])
    for each, (first, second, third) in _terms(rows, measure, outlook, expected):
        squares += each.grams([factor * second for factor in factors])
        totals += [each.total(first), each.total(believed * first)]
        cubes += [each.cubes(size * third), each.cubes(size * (believed * third))]
        if by_topic is not None:
            by_topic += each.by_topic(first)
    covariance = squares[0]
    if drawn.counts is not None:
        covariance = covariance - _of_means(drawn, reach.pool, totals[0], by_topic)
    found, prior = share_of(cubes, of=totals)  # samples that miss heavy finds expect none
    find = np.maximum(found, np.sqrt(found * prior))
    doubt = doubt_of(rows, drawn, belief=belief, total=total_weights(reach.pool, measure))
    missed = None
    if left is not None:
        lost = np.zeros(runs) if measure.family == "gain" else None  # a find only raises values
        missed = missed_of(_terms(left, measure, outlook, expected), squares[1], lost)
    return Unseen(covariance, np.sqrt(find), doubt, missed=missed, usual=totals[0])


def unseen_residuals(
    reach: Reach,
    drawn: Drawn,
    moments: Callable[[IntArray], FloatArray],
    *,
    measure: Measure,
    predicted: FloatArray,
) -> Unseen:
    """Work out the same of what predictions leave over, for the difference estimator.

    Of one pool and a sample by the method ``poisson``; `moments` says what is expected of the
    residuals of pairs (`Residuals.moments`), `predicted` what they are residuals of, shape (N,).
    The measure is of the family gain.
    """
    rows = looked_at(reach.pool, drawn, measure)
    chance = drawn.inclusion[rows.pair]
    size = _sizes(rows, chance)
    (gain, gain2, gain3), (loss, loss2, loss3) = moments(rows.pair)
    gains, losses = (rows.sums(rows.factor * each, power=2) for each in (gain2, loss2))
    left, both = _left(rows, chance), np.array([gain + loss, gain2 + loss2, gain3 + loss3])
    factors = [rows.factor] if left is None else [rows.factor, left.factor]
    covariance, *of_left = rows.grams([factor * both[1] for factor in factors])
    return Unseen(
        covariance,
        np.sqrt(share_of(rows.cubes(size * gain3), of=rows.total(gain))),
        doubt_of(
            rows, drawn, belief=belief_in(rows, drawn), total=total_weights(reach.pool, measure)
        ),
        Losses(
            np.sqrt(share_of(rows.cubes(size * loss3), of=rows.total(loss))),
            share_of(losses, of=gains + losses),
        ),
        None if left is None else missed_of([(left, both)], of_left[0]),
        rows.total(predicted[rows.pair] + gain - loss),
    )


def _left(rows: Rows, chance: FloatArray) -> Rows | None:
    """Rows by how likely they are not in the sample; None unless most of them are likely in it.

    Where less is sampled, errors come from what is found, which counts for more, and the expected
    covariance has it.
    """
    uncertain = chance[rows.weight > 0.0]
    if not len(uncertain) or _median_is_below(LIKELY, uncertain):
        return None
    return replace(rows, factor=rows.weight * (1.0 - chance))


def _median_is_below(limit: float, values: FloatArray) -> bool:
    """Whether it is; they are put in order only where the two in the middle differ in this."""
    below = np.count_nonzero(values < limit)
    if 2 * below == len(values):
        return bool(np.median(values) < limit)
    return bool(2 * below > len(values))


def _sizes(rows: Rows, often: FloatArray) -> FloatArray:
    """What a find of each pair counts for, one over how often it is expected; certain pairs 0."""
    return divided(np.ones_like(often), often, rows.factor > 0.0)


def _of_means(
    drawn: Drawn, pool: Pool, total: FloatArray, by_topic: FloatArray | None
) -> FloatArray:
    """What draws do not vary by: their mean, or those of the topics that they are drawn in."""
    draws = float(drawn.draws or 1)
    if by_topic is not None:
        topics = len(np.unique(pool.topic[drawn.uncertain]))
        return cross_product(sparse.csr_array(by_topic), np.full(len(by_topic), topics / draws))
    return np.asarray(np.multiply.outer(total, total) / draws, dtype=np.float64)


def _expectation(rows: Rows, measure: Measure, outlook: Outlook) -> FloatArray:
    """What is expected of each pair: moments of its utility, (3, m), or where that depends on the
    run the share of each grade, (L + 1, m)."""
    if measure.family == "gain":
        return outlook.moments(measure, rows.pair)
    return outlook.shares(rows.pair)


def _believed(belief: FloatArray | None, measure: Measure, expected: FloatArray) -> FloatArray:
    """By how much the prior expects more of each pair than judgments let one; 0 without a prior."""
    if belief is None:
        return np.zeros(expected.shape[1])
    usual = expected[0] if measure.family == "gain" else expected.sum(axis=0)
    return share_of(belief, of=usual)


def _terms(
    rows: Rows, measure: Measure, outlook: Outlook, expected: FloatArray
) -> Iterator[tuple[Rows, FloatArray]]:
    """Rows y_ij, and by how much a pair counts in sums of y, of y^2 and of y^3, shape (3, m).

    Where the utility depends on the run, there is a set of rows for every grade.
    """
    if measure.family == "gain":
        yield rows, expected
        return
    for grade, share in zip(outlook.grades.tolist(), expected, strict=True):
        counted = np.broadcast_to(share, (3, len(share)))
        yield rows.times(rows.pool.entry_utilities(measure, grade)[rows.entry]), counted
