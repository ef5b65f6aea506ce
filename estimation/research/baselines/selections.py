"""Which pairs a baseline judges, with which probability, and how a budget is shared by topics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimation.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    check_fraction,
    frozen,
    in_proportion,
    shown,
)
from estimation.core.data.pool import Pool

Budget: TypeAlias = int | NDArray[np.integer]


class BudgetError(ValueError):
    """A budget that cannot be spent; the message names the budget or the first bad topic."""


@dataclass(frozen=True, eq=False)
class Selection:
    """The pairs that a baseline judges.

    Pairs of one group have the same inclusion probability, and how likely two pairs are judged
    together depends on their groups alone. Pairs of different blocks are drawn independently.
    A method that counts unjudged pairs as grade 0 has probability 1 everywhere.

    Attributes
    ----------
    method : str
        Name of the baseline.
    pair : ndarray of int64, shape (n,)
        Judged pairs as positions in the pool; ``mtf`` and ``mab``: in the order of judging
        within a topic.
    inclusion : ndarray of float64, shape (n,)
        pi_i, in (0, 1].
    group : ndarray of int64, shape (n,)
        Group of each pair within its block.
    block : ndarray of int64, shape (T,)
        Block of each topic of the pool.
    joint : tuple of ndarray of float64, shape (groups, groups)
        Per block: probability pi_il that two different pairs of two groups are both judged.
    topics : ndarray of int64, shape (m,)
        Topics, as positions in ``pool.topics``, over which values are averaged: all of them,
        but for ``deep`` the chosen ones.
    pool_digest : str
        Digest of the pool.
    """

    method: str
    pair: IntArray
    inclusion: FloatArray
    group: IntArray
    block: IntArray
    joint: tuple[FloatArray, ...]
    topics: IntArray
    pool_digest: str

    def __len__(self) -> int:
        """Return the number of judged pairs."""
        return len(self.pair)

    @property
    def is_certain(self) -> bool:
        """Whether every probability is 1: unjudged pairs count as grade 0."""
        return bool(np.all(self.inclusion == 1.0))

    @classmethod
    def certain(
        cls, pool: Pool, method: str, pair: IntArray, *, topics: IntArray | None = None
    ) -> "Selection":
        """Select pairs with probability 1, all others counting as grade 0."""
        number = len(pool.topics)
        return cls(
            method=method,
            pair=frozen(pair),
            inclusion=frozen(np.ones(len(pair))),
            group=frozen(np.zeros(len(pair), dtype=np.int64)),
            block=frozen(np.zeros(number, dtype=np.int64)),
            joint=(frozen(np.ones((1, 1))),),
            topics=frozen(np.arange(number) if topics is None else topics),
            pool_digest=pool.digest,
        )


@dataclass(frozen=True, eq=False)
class Contribution:
    """What some runs of a pool contribute to it.

    Attributes
    ----------
    entry : ndarray of bool, shape (E,)
        Which entries belong to these runs.
    eligible : ndarray of bool, shape (N,)
        Which pairs at least one of them returns.
    sizes : ndarray of int64, shape (T,)
        Eligible pairs per topic.
    """

    entry: BoolArray
    eligible: BoolArray
    sizes: IntArray


def contribution(pool: Pool, runs: Sequence[str] | None) -> Contribution:
    """Find what runs contribute (None: all runs).

    Raises
    ------
    PoolError
        If the pool has no such run.
    ValueError
        If `runs` is empty.
    """
    wanted = np.ones(len(pool.runs), dtype=bool)
    if runs is not None:
        if not runs:
            raise ValueError(f"runs must name at least one run, not {runs!r}")
        wanted[:] = False
        wanted[[pool.run_index(tag) for tag in runs]] = True
    entry = wanted[pool.run]
    eligible = np.zeros(len(pool), dtype=bool)
    eligible[pool.entry_pair[entry]] = True
    sizes = np.bincount(pool.topic[eligible], minlength=len(pool.topics)).astype(np.int64)
    return Contribution(entry, eligible, sizes)


def topic_budgets(pool: Pool, *, budget: int, runs: Sequence[str] | None = None) -> IntArray:
    """Share a number of pairs among topics in proportion to their pools.

    Every topic gets the whole part of its share; the largest fractions, earlier topics first,
    get the rest.

    Parameters
    ----------
    budget : int
        Between 1 and the number of pairs that the runs contribute.
    runs : sequence of str, optional
        Runs that contribute documents; by default all.

    Returns
    -------
    ndarray of int64, shape (T,)
        Adds up to `budget`.

    Raises
    ------
    BudgetError
        If the budget is out of range.
    """
    return resolve_budget(pool, contribution(pool, runs).sizes, budget)


def share_budgets(pool: Pool, *, share: float, runs: Sequence[str] | None = None) -> IntArray:
    """Give every topic the same share of its pool, rounded half up (Li and Kanoulas 2017).

    Parameters
    ----------
    share : float
        Between 0 and 1.
    runs : sequence of str, optional
        Runs that contribute documents; by default all.

    Returns
    -------
    ndarray of int64, shape (T,)
    """
    check_fraction(share, name="share")
    shares = np.floor(share * contribution(pool, runs).sizes + 0.5)
    return np.asarray(shares, dtype=np.int64)


def resolve_budget(pool: Pool, sizes: IntArray, budget: Budget) -> IntArray:
    """Return the judged pairs per topic for a total, or check a budget given by topic."""
    if isinstance(budget, np.ndarray) and budget.ndim > 0:
        return _checked(pool, sizes, budget)
    return in_proportion(sizes, check_total(sizes, budget))


def check_total(sizes: IntArray, budget: Budget) -> int:
    """Return a budget for all topics together; raise BudgetError if it is out of range."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer):
        raise BudgetError(f"budget must be one whole number, not {budget!r}")
    most = int(sizes.sum())
    if not 1 <= budget <= most:
        allowed = f"between 1 and the {most} pairs of the pool"
        raise BudgetError(f"budget must lie {allowed}, not {shown(budget)}")
    return int(budget)


def _checked(pool: Pool, sizes: IntArray, budget: NDArray[np.integer]) -> IntArray:
    if budget.shape != sizes.shape or not np.issubdtype(budget.dtype, np.integer):
        found = f"not an array of {budget.dtype} of the shape {budget.shape}"
        needed = f"one whole number, or {len(sizes)}, one per topic"
        raise BudgetError(f"budget must be {needed}, {found}")
    wrong = (budget < 0) | (budget > sizes)
    if wrong.any():
        topic = int(np.argmax(wrong))
        raise BudgetError(
            f"the budget of topic {pool.topics[topic]!r} must lie between 0 and its "
            f"{sizes[topic]} pairs, not {budget[topic]}"
        )
    if not budget.any():
        raise BudgetError(f"budget must be above 0 for at least one topic, not {budget.tolist()}")
    return budget.astype(np.int64)


def sampling_budgets(pool: Pool, sizes: IntArray, budget: Budget) -> IntArray:
    """As `resolve_budget`; refuse to leave out a topic, which would bias the estimates."""
    found = resolve_budget(pool, sizes, budget)
    missing = (found == 0) & (sizes > 0)
    if missing.any():
        topic = pool.topics[int(np.argmax(missing))]
        raise BudgetError(f"the budget leaves no pair for topic {topic!r}; sample at least one")
    return found
