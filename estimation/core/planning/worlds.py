"""Grades that the pairs of a pool may turn out to have, drawn before anybody has judged.

How a document is returned says how likely it is to be relevant, and how likely it is beside others
is much the same everywhere; how many are relevant is not. With rho_i the mean over all runs of 1 /
rank, 0 where a run does not return pair i, its latent grade is

    z_i = s (a + SLOPE log rho_i + b y_i) + t_g + sum_j v_ij n_gj + e_i,

and its grade the number of thresholds 0, ..., `SPAN` below it. t_g is an effect of its topic, n_gj
one of its topic and run j: v_i is the vector of 1 / sqrt(rank) by run, of length 1, so that
documents that the same runs return at like ranks have like grades. e_i is logistic. y_i is what was
predicted, if anything was, with the mean 0 and the variance 1. The scale s makes up for how effects
flatten the mean over topics.

The constants are what complete judgments of public collections have. A logistic regression on log
rho has slopes of .9, .7, .6 and .3 on Cranfield, TREC Deep Learning 2019, TREC-8 and a
learning-to-rank collection, and with the slope .75 intercepts of .4, 3.2, 2.2 and 2.9 from ten
ranks, -.1, 2.5 and 2.2 of the first three from 50 or 100. So worlds are told by a: with `FEW`
relevant documents, and with `MANY`. Effects of topics, and of neighbors, are such that what a
round's own model of grades learns from drawn grades is what it learns from true ones; so are
precision at ten (.27, .76 and .47 where .29, .81 and .46 are true, each with the intercept of its
collection) and how far runs differ in it.

Where grades were predicted, a world may have them tell something: of 33 language models that
predicted grades of TREC Deep Learning 2023 one standard deviation more was worth .87 in logits (.6
to 1.0 of eight in ten). That is `TRUST`, the b of such a world.

A race for the best run (goal "winner") tells the less of the runs that are behind, the clearer it
is who leads. In these worlds runs differ by what each happens to have in every topic, and the best
of 129 leads the middle one by .10 in precision at ten where .33 is true of TREC-8. So a race is
planned in two more worlds, with an effect of every run that is the same in all topics, q_j with the
standard deviation `APART`:

    sum_j v_ij (n_gj + q_j)

in the place of sum_j v_ij n_gj. There it leads by .35, and the second, third and fifth by .02, .05
and .11 (true: .01, .07 and .08).

Why this biases nothing: drawn grades are no judgments. A round is planned in worlds, never drawn,
weighted or estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..inference.normal import normal_numbers

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from ..data.pool import Pool
    from ..rounds.adaptive.frame import AdaptiveFrame

FEW, MANY = 0.0, 2.5
SLOPE, SPAN = 0.75, 2.0
OF_TOPICS, OF_NEIGHBORS = 1.0, 2.0  # standard deviations of effects
TRUST = 0.9
APART = 4.0  # the standard deviation of effects of runs, in worlds for races
LOGISTIC = np.pi**2 / 3.0  # the variance of e_i


@dataclass(frozen=True)
class World:
    """How much is relevant, and what predicted grades are worth, if there are any.

    Attributes
    ----------
    relevance : float
        The logit of the chance that a document that every run returns first is relevant.
    trust : float
        By how much it rises with a standard deviation of the predicted grades; 0: they tell
        nothing but what the runs tell.
    apart : float
        The standard deviation of effects that runs have in all topics alike.
    """

    relevance: float
    trust: float = 0.0
    apart: float = 0.0


def worlds_of(*, predicted: bool, race: bool = False) -> tuple[World, ...]:
    """Return the worlds in which a round is planned: with few and many relevant documents, where
    grades are predicted with both of what these may be worth, and of a race with runs apart too.
    """
    more = [(TRUST, 0.0)] * predicted + [(0.0, APART)] * race
    kinds = [(0.0, 0.0), *more]
    return tuple(World(relevance, *kind) for relevance in (FEW, MANY) for kind in kinds)


def drawn_grades(frame: AdaptiveFrame, world: World, *, number: int = 0) -> IntArray:
    """Draw a grade for every pair of a pool.

    Parameters
    ----------
    frame : AdaptiveFrame
        Of the round: its pool, scale and predicted grades.
    world : World
    number : int
        Which of several draws, from 0. The same draw is the same on every machine.

    Returns
    -------
    ndarray of int64, shape (N,)
        From 0 to the best grade of the scale.
    """
    pool, likeness = frame.pool, frame.features.likeness
    counts = [len(pool.topics), likeness.shape[1], len(pool)]
    counts += [len(pool.runs)] if world.apart else []
    first = number * sum(counts)
    ends = np.cumsum([first, *counts]).tolist()
    of_topics, of_cells, of_pairs, *of_runs = (
        normal_numbers(np.arange(start, end)) for start, end in pairwise(ends)
    )
    for each in of_runs:  # cells are topic by topic, and in each run by run
        of_cells = of_cells + world.apart / OF_NEIGHBORS * np.tile(each, len(pool.topics))
    trust = 0.0 if frame.predicted is None else world.trust
    effects = OF_TOPICS**2 + OF_NEIGHBORS**2
    flat = np.sqrt((1.0 + effects / LOGISTIC) / (1.0 - trust**2 / LOGISTIC))
    latent = flat * (world.relevance + SLOPE * np.log(_reciprocal_ranks(pool)))
    latent += OF_TOPICS * of_topics[pool.topic] + OF_NEIGHBORS * (likeness @ of_cells)
    if frame.predicted is not None:
        latent += flat * trust * _told(frame.predicted)
    latent += special.logit(special.ndtr(of_pairs))
    thresholds = np.linspace(0.0, SPAN, frame.max_grade) if frame.max_grade > 1 else np.zeros(1)
    found: IntArray = np.searchsorted(thresholds, latent, side="left").astype(np.int64)
    return found


def _reciprocal_ranks(pool: Pool) -> FloatArray:
    """The mean of 1 / rank over all runs, (N,), as if one returned all others below the depth."""
    runs = len(pool.runs)
    mean = pool.by_pair(1.0 / pool.rank) @ np.full(runs, 1.0 / runs)
    return np.asarray(np.maximum(mean, 1.0 / (runs * (pool.depth + 1.0))))


def _told(predicted: FloatArray) -> FloatArray:
    """The mean of the predicted grades of each pair, of mean 0 and variance 1; 0 without any."""
    known = ~np.isnan(predicted)
    number = known.sum(axis=1)
    total = np.where(known, predicted, 0.0).sum(axis=1)
    mean = np.divide(total, number, out=np.zeros(len(total)), where=number > 0)
    some = mean[number > 0]
    spread = float(some.std()) if len(some) else 0.0
    if not spread > 0.0:
        return np.zeros(len(mean))
    return np.where(number > 0, (mean - some.mean()) / spread, 0.0)
