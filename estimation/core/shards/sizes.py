"""Sizes of pairs in shards, and the few sums of them that all shards must know.

What is summed over pairs is summed within topics first, and over topics by `math.fsum`, which
rounds once: neither the shards nor their order can change a bit.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import column_sums
from ..sampling.allocation import LEAST_SIZE, raised_sizes, relative_sizes, touched_pairs
from ..sampling.goals import effective_weights
from ..sampling.priors import make_prior
from .pools import read_pool
from .running import ShardStep, StepResult
from .store import read_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..arrays import FloatArray, IntArray
    from ..data.pool import Pool
    from ..measures.table import Measure
    from ..sampling.designs import Rule
    from ..sampling.goals import Goal
    from .frames import ShardFrame
    from .places import Place


@dataclass(frozen=True)
class DesignPurpose:
    """What a design is for, as `allocation.make_design` takes it."""

    goal: Goal
    measure: Measure
    prior: str
    rule: Rule
    reported: tuple[Measure, ...]
    max_grade: int
    floor: float

    @property
    def told(self) -> list[Any]:
        """All of it as JSON."""
        goal = [self.goal.kind, self.goal.runs, self.goal.against]
        measures = [str(measure) for measure in (self.measure, *self.reported)]
        return [goal, measures, self.prior, self.rule, self.max_grade, self.floor]


@dataclass(frozen=True)
class RawSizes(ShardStep):
    """Sizes of the pairs of a shard before all shards are weighed against each other.

    The result has ``size``, ``touched`` and ``belief``, (n,) each, and of every topic of the
    campaign with a pair here ``topic``, ``total``, ``number`` of touched pairs, ``largest`` and
    ``least`` size.
    """

    frame: ShardFrame
    pool: Place
    purpose: DesignPurpose

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.pool.name, self.purpose.told

    def work(self) -> StepResult:
        """Work out weights, beliefs and sizes."""
        pool, why = read_pool(self.frame, self.pool), self.purpose
        weights = effective_weights(pool, why.goal, why.measure, max_grade=why.max_grade)
        prior = make_prior(
            pool, name=why.prior, goal=why.goal, measure=why.measure, max_grade=why.max_grade
        )
        touched = touched_pairs(pool, (why.measure, *why.reported))
        size = relative_sizes(weights, prior, why.rule, touched)
        topic, ends = ends_of_topics(pool)
        positive = np.where(size > 0.0, size, np.inf)
        columns = {
            "topic": topic,
            "total": topic_sums(size, ends),
            "number": topic_sums(touched.astype(np.float64), ends).astype(np.int64),
            "largest": np.maximum.reduceat(size, ends[:-1]) if len(topic) else size,
            "least": np.minimum.reduceat(positive, ends[:-1]) if len(topic) else positive,
        }
        belief = prior.expected**2 / prior.second_moment
        return {}, {"size": size, "touched": touched, "belief": belief, **columns}


@dataclass(frozen=True)
class RaisedSizes(ShardStep):
    """Totals of sizes by topic where some are next to 0 and raised (`allocation`)."""

    frame: ShardFrame
    pool: Place
    raw: Place
    largest: float

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.raw.name, self.largest

    def work(self) -> StepResult:
        """Raise them, and add up."""
        _, columns = read_columns(self.raw, ["size"])
        topic, ends = ends_of_topics(read_pool(self.frame, self.pool))
        raised = raised_sizes(columns["size"], self.largest)
        return {}, {"topic": topic, "total": topic_sums(raised, ends)}


@dataclass(frozen=True)
class SizeScale:
    """What sizes of all shards are relative to.

    Attributes
    ----------
    total : float
        Of all sizes, after they were raised.
    touched : int
        Pairs with a weight under any measure.
    largest : float or None
        The largest size, if sizes next to 0 are raised to a share of it.
    """

    total: float
    touched: int
    largest: float | None

    def of(self, size: FloatArray, touched: FloatArray, floor: float) -> FloatArray:
        """Return sizes that sum, over all shards, to 1."""
        even = touched.astype(np.float64) / self.touched
        raised = size if self.largest is None else raised_sizes(size, self.largest)
        return (1.0 - floor) * (raised / self.total) + floor * even


@dataclass(frozen=True)
class ShardSizes(ShardStep):
    """Sizes of the pairs of a shard that sum to 1 over all shards, and what constants need.

    The result has ``size``, (n,); ``rising``, the positive ones of each topic in rising order;
    ``below``, their sums from the first of the topic on; ``ends``, where they end, by ``topic``.
    """

    frame: ShardFrame
    pool: Place
    raw: Place
    floor: float
    scale: SizeScale

    @property
    def inputs(self) -> tuple[Any, ...]:
        scale = self.scale.total, self.scale.touched, self.scale.largest
        return self.raw.name, self.floor, scale

    def work(self) -> StepResult:
        """Scale them, and put those of each topic in order."""
        pool = read_pool(self.frame, self.pool)
        _, columns = read_columns(self.raw, ["size", "touched"])
        size = self.scale.of(columns["size"], columns["touched"], self.floor)
        topic, bounds = ends_of_topics(pool)
        rising, below, ends = [], [], [0]
        for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            ordered = np.sort(size[start:stop])
            ordered = ordered[np.searchsorted(ordered, 0.0, side="right") :]
            rising.append(ordered)
            below.append(np.cumsum(ordered))
            ends.append(ends[-1] + len(ordered))
        nothing = [np.array([])]
        return {}, {
            "size": size,
            "rising": np.concatenate(rising or nothing),
            "below": np.concatenate(below or nothing),
            "ends": np.array(ends),
            "topic": topic,
        }


@dataclass(frozen=True, eq=False)
class CertainPairs:
    """How constants divide pairs, those of a shard or of all: each with B constants.

    Attributes
    ----------
    number : ndarray of int64, shape (B,)
        Pairs that are certain.
    least : ndarray of float64, shape (B,)
        The smallest of their sizes; infinite if there is none.
    topic : ndarray of int64, shape (T,)
        Topics with a pair.
    rest : ndarray of float64, shape (T, B)
        Sum of the sizes of their other pairs.
    """

    number: IntArray
    least: FloatArray
    topic: IntArray
    rest: FloatArray


def divided(sizes: Place, constants: FloatArray) -> CertainPairs:
    """Divide the pairs of a shard: certain are those of sizes of at least 1 / c, shape (B,)."""
    _, columns = read_columns(sizes, ["rising", "below", "ends", "topic"], check=False)
    rising, below, ends = columns["rising"], columns["below"], columns["ends"].tolist()
    number, least = np.zeros(len(constants), dtype=np.int64), np.full(len(constants), np.inf)
    rest = np.zeros((len(columns["topic"]), len(constants)))
    for place, (start, stop) in enumerate(itertools.pairwise(ends)):
        cut = np.searchsorted(rising[start:stop], 1.0 / constants)
        number += stop - start - cut
        some = cut > 0
        rest[place, some] = below[start + cut[some] - 1]
        capped = start + cut < stop
        least[capped] = np.minimum(least[capped], rising[start + cut[capped]])
    return CertainPairs(number, least, columns["topic"], rest)


def joined(parts: Sequence[CertainPairs]) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return number, least and the sum of the rest over all shards, (B,) each."""
    number = np.sum([part.number for part in parts], axis=0)
    least = np.min([part.least for part in parts], axis=0)
    rest = np.concatenate([part.rest for part in parts])
    return number, least, np.array([over_topics(column) for column in rest.T])


def scale_of(raws: Sequence[Place], raised: Sequence[Place] = ()) -> SizeScale | None:
    """Return the scale of all shards' sizes; None if there is nothing to sample.

    Totals are those of `raised` shards where these are given, or else must be: see `needs_raising`.
    """
    columns = [read_columns(raw, ["total", "number", "largest"])[1] for raw in raws]
    totals = [read_columns(place, ["total"])[1] for place in raised] or columns
    total = over_topics(np.concatenate([each["total"] for each in totals]))
    if total <= 0.0:
        return None
    touched = sum(int(each["number"].sum()) for each in columns)
    largest = max(float(each["largest"].max(initial=0.0)) for each in columns)
    return SizeScale(total, touched, largest if raised else None)


def extremes(raws: Sequence[Place]) -> tuple[float, float]:
    """Return the largest and the least positive size of all shards."""
    columns = [read_columns(raw, ["largest", "least"])[1] for raw in raws]
    largest = max(float(each["largest"].max(initial=0.0)) for each in columns)
    return largest, min(float(each["least"].min(initial=np.inf)) for each in columns)


def needs_raising(largest: float, least: float) -> bool:
    """Whether some sizes are so near to 0 that one over them might be infinite."""
    return least <= LEAST_SIZE * largest


def ends_of_topics(pool: Pool) -> tuple[IntArray, IntArray]:
    """Return the topics with a pair, and where their pairs begin, and end at last."""
    topic, start = np.unique(pool.topic, return_index=True)
    return topic.astype(np.int64), np.append(start, len(pool)).astype(np.int64)


def over_topics(sums: FloatArray) -> float:
    """Add up sums of topics, in any order, rounding once."""
    return math.fsum(sums)


def topic_sums(values: FloatArray, ends: IntArray) -> FloatArray:
    """Add up values of pairs within each topic, from the first to the last."""
    of = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    return column_sums(of, values, number=len(ends) - 1)
