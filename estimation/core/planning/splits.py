"""As many labels, on more pairs or on fewer: what is expected of each way to spend them.

Before anybody has judged, a design says how much of a pair it expects: its size is the weight times
the root of E[u^2], u what somebody says. With a share `apart` of E[u^2] by which assessors differ,
the variance of a Poisson sample is, up to a factor,

    sum_i size_i^2 ((1 - apart) (1 - pi_i) / pi_i + apart E[1 / r_i] / pi_i),

r_i as `sampling.overlap` plans them. Where pairs are left to draw, a further one is nearly always
worth more than a second label, whatever people disagree by: it halves both parts. Further labels
pay for pairs that are certain, and far above the threshold from which they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, check_whole, pieces
from ..rounds.overlap import expected_distances, plan_of_distances
from ..sampling.methods import MOST_FURTHER
from ..sampling.probabilities import poisson_probabilities

if TYPE_CHECKING:
    from ..data.pool import Pool
    from ..sampling.designs import Design
    from ..sampling.overlap import LabelPlan

APART = 1 / 3
"""The share by which assessors differ, where nothing is known: as votes of crowds have it."""
STEPS = 12  # numbers of pairs that are looked at
USUAL_SHARE = 0.1
"""Of pairs that are judged twice, so that disagreement is measured."""


@dataclass(frozen=True)
class Split:
    """So many pairs, as expected, and what further labels each gets on average beyond a share.

    ``variance`` is that of other ways to spend as many labels in the same unit, and ``labels`` how
    many there are.
    """

    pairs: float
    further: float
    labels: float
    variance: float


def best_split(
    pool: Pool,
    design: Design,
    *,
    work: float,
    labels: int = 1,
    share: float = USUAL_SHARE,
    apart: float = APART,
) -> Split:
    """Find how many pairs, with further labels where they pay, so many labels serve best.

    Parameters
    ----------
    pool, design : Pool, Design
        A sum of gains, without replacement. Its budget has no influence.
    work : float
        Labels in all.
    labels, share
        That every pair gets, and the share of one more.
    apart : float
        The share by which assessors differ.
    """
    most = min(float(design.reachable_pairs), work / (labels + share))
    least = min(most, work / (labels + share + MOST_FURTHER))
    distances, found = expected_distances(pool, design), []
    if design.reachable_pairs < len(pool):  # of the others nothing is expected
        some = np.flatnonzero(design.eligible)
        distances, design = distances[some], design.of(some)
    for pairs in np.geomspace(max(least, 1.0), max(most, 1.0), STEPS).tolist():
        further = min(max(work / pairs - labels - share, 0.0), float(MOST_FURTHER))
        one = with_pairs(design, pairs)
        plan = plan_of_distances(distances, one, labels=labels, share=share, further=further)
        found.append(Split(pairs, further, work, expected_variance(one, plan, apart=apart)))
    return min(found, key=lambda each: (each.variance, -each.pairs))


def fixed(design: Design, *, pairs: float, labels: int, apart: float = APART) -> Split:
    """Return what so many pairs with as many labels each give, in the unit of `best_split`."""
    check_whole(labels, name="labels")
    one = with_pairs(design, pairs)
    every = np.full(len(design.size), labels, dtype=np.int64)
    return Split(pairs, 0.0, pairs * labels, _variance(one, 1.0 / every, apart))


def with_pairs(design: Design, pairs: float) -> Design:
    """Return the design with one batch that is expected to have so many pairs."""
    return replace(design, steps=design.steps_for([pairs]))


def expected_variance(design: Design, plan: LabelPlan, *, apart: float = APART) -> float:
    """Return the variance that is expected of a design with a plan of labels, in some unit."""
    total = 0.0
    for piece in pieces(len(design.size)):
        least, more = plan.least[piece], plan.more[piece]
        total += _variance(design.of(piece), (1.0 - more) / least + more / (least + 1), apart)
    return total


def _variance(design: Design, inverse: FloatArray, apart: float) -> float:
    chance = poisson_probabilities(design.size, constant=design.step())
    some = chance > 0.0
    parts = (1.0 - apart) * (1.0 - chance[some]) + apart * inverse[some]
    return float((design.size[some] ** 2 * parts / chance[some]).sum())
