"""Poisson designs and their draws in shards: one constant is all that shards must agree on.

The constant of a batch solves sum_i min(1, c s_i) = n. From c = n / sum s on, every step takes the
pairs with c s_i >= 1 for certain and solves for the others; c rises, and when no pair more becomes
certain it is the solution, after a handful of steps. A step asks every shard for whole numbers and
for sums within topics, so that no bit hangs on the number of shards. One process solves it from
sums in falling order of all sizes (`probabilities.poisson_thresholds`), and divides by sums in
another order: its constants differ from these by rounding, 6e-13 of each with 1e7 lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..arrays import FloatArray, check_fraction, check_seed, frozen
from ..sampling.allocation import check_budget, nothing_to_sample
from ..sampling.designs import Design, DesignError, Rule, cumulative
from ..sampling.draws import draw
from ..sampling.goals import Goal, check_goal, check_serves
from ..sampling.priors import PRIORS, PriorError
from ..sampling.probabilities import ROUNDING
from .pools import read_pool
from .running import ShardStep, StepResult, do_steps
from .sizes import (
    DesignPurpose,
    RaisedSizes,
    RawSizes,
    ShardSizes,
    SizeScale,
    divided,
    extremes,
    joined,
    needs_raising,
    scale_of,
)
from .store import read_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from ..arrays import BytesArray, Int32Array, IntArray
    from ..measures.table import Measure
    from .building import ShardedPool
    from .frames import ShardFrame
    from .places import Place

    Divided: TypeAlias = tuple[IntArray, FloatArray, FloatArray]

LEAST_CONSTANT = 1e-300  # with which no pair is certain
MOST_STEPS = 1000  # of solving for a constant; five are usual
MOST_CELLS = 4_000_000  # topics times batches whose sums are held at once


@dataclass(frozen=True, eq=False)
class ShardedDesign:
    """A Poisson design of a pool in shards.

    Build one with `design_shards`.

    Attributes
    ----------
    pool : ShardedPool
    purpose : DesignPurpose
    raws, sizes : tuple of Place
        Of `RawSizes` and `ShardSizes`, shard by shard.
    steps : ndarray of float64, shape (B,)
        The constant c_b of each batch, increasing; infinite when every eligible pair is certain.
    budget, batch_size : int
    """

    pool: ShardedPool
    purpose: DesignPurpose
    raws: tuple[Place, ...]
    sizes: tuple[Place, ...]
    steps: FloatArray
    budget: int
    batch_size: int


def design_shards(
    executor: Executor,
    pool: ShardedPool,
    *,
    goal: Goal,
    measure: Measure,
    budget: int,
    batch_size: int,
    prior: str = "rank",
    rule: Rule = "second",
    reported: Sequence[Measure] = (),
    floor: float = 0.1,
    max_grade: int = 1,
) -> ShardedDesign:
    """Compute the sampling probabilities that serve a goal best: ``poisson``, without costs.

    Parameters are those of `allocation.make_design`; `prior` is a name of `priors.PRIORS`, all of
    which look at one topic at a time.

    Raises
    ------
    DesignError, GoalError, PriorError, MeasureError, PoolError
        As `make_design` and `make_prior` do; PriorError also for the prior ``scores``, which
        looks at all topics.
    """
    check_goal(goal, pool.frame.runs)
    check_serves(goal, "poisson")
    if prior not in PRIORS:
        raise PriorError(f"In shards the prior is one of {', '.join(PRIORS)}, not {prior!r}.")
    check_budget(budget, batch_size, None, pairs=pool.pairs, again=False)
    check_fraction(floor, name="floor", error=DesignError)
    purpose = DesignPurpose(goal, measure, prior, rule, tuple(reported), max_grade, floor)
    root, frame = pool.root, pool.frame
    raws = do_steps(executor, [RawSizes(root, frame, each, purpose) for each in pool.places])
    scale = _scale(executor, pool, raws)
    if scale is None:
        raise DesignError(nothing_to_sample(goal, measure))
    steps = [
        ShardSizes(root, frame, place, raw, floor, scale)
        for place, raw in zip(pool.places, raws, strict=True)
    ]
    sizes = do_steps(executor, steps)
    constants = _constants(executor, sizes, budget, batch_size, topics=len(frame.topics))
    return ShardedDesign(
        pool, purpose, tuple(raws), tuple(sizes), frozen(constants), budget, batch_size
    )


def _scale(executor: Executor, pool: ShardedPool, raws: Sequence[Place]) -> SizeScale | None:
    largest, least = extremes(raws)
    if not needs_raising(largest, least) or largest == 0.0:
        return scale_of(raws)
    steps = [
        RaisedSizes(pool.root, pool.frame, place, raw, largest)
        for place, raw in zip(pool.places, raws, strict=True)
    ]
    return scale_of(raws, do_steps(executor, steps))


def _constants(
    executor: Executor, sizes: Sequence[Place], budget: int, batch_size: int, *, topics: int
) -> FloatArray:
    """The constant of each batch, some batches at a time."""

    def sums(constants: FloatArray) -> Divided:
        return joined(list(executor.map(partial(divided, constants=constants), sizes)))

    whole = int(sums(np.array([np.inf]))[0][0])
    targets = cumulative(min(budget, whole), batch_size)
    some = max(1, MOST_CELLS // topics)
    parts = [solved(targets[at : at + some], sums, whole) for at in range(0, len(targets), some)]
    return np.concatenate(parts)


def solved(targets: FloatArray, sums: Callable[[FloatArray], Divided], whole: int) -> FloatArray:
    """Solve sum_i min(1, c s_i) = target for c, for each of B targets > 0.

    Parameters
    ----------
    targets : ndarray of float64, shape (B,)
    sums : callable
        Of constants, (B,): returns how many pairs have c s_i >= 1, the smallest size of these, and
        the sum of the sizes of the others, (B,) each.
    whole : int
        Number of positive sizes.

    Returns
    -------
    ndarray of float64, shape (B,)
        Infinite where the target reaches the number of all positive sizes.
    """
    census = targets >= whole * (1.0 - ROUNDING)
    number, least, total = sums(np.full(len(targets), LEAST_CONSTANT))
    constants = targets / total
    for _ in range(MOST_STEPS):
        known = number
        number, least, rest = sums(constants)
        if np.array_equal(number[~census], known[~census]):
            break
        better = np.divide(targets - number, rest, out=constants.copy(), where=rest > 0.0)
        constants = np.maximum(constants, better)  # rounding must not undo what is certain
    else:
        raise DesignError("The constants of the design were not found.")
    constants = np.maximum(constants, 1.0 / least)
    return np.where(census, np.inf, constants)


# -------------------------------------------------------------------------------------- the draw


@dataclass(frozen=True)
class ShardDraw(ShardStep):
    """The sample of a shard: each pair by its own permanent random number.

    The result has ``pair``, positions in the shard's pool, ``batch`` and ``probability``, (n,)
    each, with ``topic`` (of the campaign) and ``docno``.
    """

    frame: ShardFrame
    pool: Place
    sizes: Place
    raw: Place
    purpose: DesignPurpose
    steps: tuple[float, ...]
    budget: int
    batch_size: int
    seed: str

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.sizes.name, [each.hex() for each in self.steps], self.seed

    def work(self) -> StepResult:
        """Draw."""
        pool = read_pool(self.frame, self.pool)
        _, sizes = read_columns(self.sizes, ["size"])
        _, raw = read_columns(self.raw, ["belief"])
        sample = draw(pool, self._design(pool.digest, sizes["size"], raw["belief"]), seed=self.seed)
        columns = {name: getattr(sample, name) for name in ("pair", "batch", "probability")}
        of_pairs = {"topic": pool.topic[sample.pair], "docno": pool.docno[sample.pair]}
        return {}, {**columns, **of_pairs}

    def _design(self, digest: str, size: FloatArray, belief: FloatArray) -> Design:
        why = self.purpose
        return Design(
            method="poisson",
            size=size,
            steps=np.array(self.steps),
            goal=why.goal,
            measure=why.measure,
            reported=why.reported,
            prior=why.prior,
            rule=why.rule,
            budget=self.budget,
            batch_size=self.batch_size,
            eps=0.0,
            floor=why.floor,
            pool_digest=digest,
            belief=belief,
        )


@dataclass(frozen=True, eq=False)
class ShardedSample:
    """What was drawn from all shards, by topic and docno.

    Attributes
    ----------
    places : tuple of Place
        Of `ShardDraw`, shard by shard.
    topic : ndarray of int32, shape (n,)
        Positions among the topics of the campaign, ascending.
    docno : ndarray of bytes, shape (n,)
    batch : ndarray of int32, shape (n,)
        1-based.
    probability : ndarray of float64, shape (n,)
        To be in the sample of all batches.
    """

    places: tuple[Place, ...]
    topic: Int32Array
    docno: BytesArray
    batch: Int32Array
    probability: FloatArray


def draw_shards(executor: Executor, design: ShardedDesign, *, seed: str) -> ShardedSample:
    """Draw from every shard; the sample is that of `draws.draw`, given the same design.

    ValueError if the seed is no text.
    """
    check_seed(seed)
    pool = design.pool
    constants = tuple(design.steps.tolist())
    shards = zip(pool.places, design.sizes, design.raws, strict=True)
    steps = [
        ShardDraw(
            pool.root, pool.frame, *places, design.purpose, constants,
            design.budget, design.batch_size, seed,
        )
        for places in shards
    ]  # fmt: skip
    places = do_steps(executor, steps)
    names = ("topic", "docno", "batch", "probability")
    parts = [read_columns(place, names)[1] for place in places]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    order = np.argsort(columns["topic"], kind="stable")  # a topic is in one shard, sorted there
    return ShardedSample(tuple(places), **{n: frozen(c[order]) for n, c in columns.items()})
