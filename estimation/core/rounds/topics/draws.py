"""Drawing topics to the budgets of batches, from the probabilities of a design.

When to stop
------------
Algorithm 1 draws until the budget is spent, so the number of draws depends on which topics were
drawn. Here the draw that would exceed the budget is *not* kept. Whether n draws are kept then
depends on the set of those n topics and on the next topic, never on the order of the n: given
them, every order is equally likely, each of the n is distributed as the first draw is, and the
first draw follows q. So the mean over the kept draws of (p/q) L is exactly unbiased, and their
sample variance over n is exactly unbiased for its variance, if at least one or two draws fit
every budget; designs see to that. Keeping the draw that exceeds the budget would break this: an
expensive topic would be more likely to be the last one than an earlier one, and the mean biased.

The same holds for every batch: batch b goes on from where batch b - 1 stopped, up to a larger
budget, and the draws of the batches 1..b are what a budget of that size alone would have drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...archives import ArchiveFile, read_archive, write_archive
from ...arrays import FloatArray, Int32Array, IntArray, check_seed, frozen
from ...sampling.random_numbers import uniform_numbers
from .designs import ROUNDING, QueryDesign, QueryError, affordable

if TYPE_CHECKING:
    from ...data.pool import Pool

MAX_DRAWS = 5_000_000
FORMAT = "evalsite-query-sample-1"


@dataclass(frozen=True, eq=False)
class QuerySample:
    """Topics drawn for a design.

    Attributes
    ----------
    topic : ndarray of int64, shape (u,)
        Distinct topics to judge, ascending, as positions in the pool's topics.
    batch : ndarray of int32, shape (u,)
        Batch, from 1, in which the topic is judged.
    draws : ndarray of int64, shape (n,)
        The topics as they were drawn. The last batch of a census has no draws.
    draw_batch : ndarray of int32, shape (n,)
        Batch of each draw, ascending.
    pool_digest : str
        The pool the sample belongs to.
    """

    topic: IntArray
    batch: Int32Array
    draws: IntArray
    draw_batch: Int32Array
    pool_digest: str

    def save(self, file: ArchiveFile) -> None:
        """Write the sample to a path or a binary file."""
        columns = {name: getattr(self, name) for name in _SAMPLE_COLUMNS}
        write_archive(file, FORMAT, {"pool_digest": self.pool_digest}, columns)

    @classmethod
    def load(cls, file: ArchiveFile) -> QuerySample:
        """Read what `save` wrote; raise ValueError if it is damaged or something else."""
        facts, columns = read_archive(file, FORMAT, _SAMPLE_COLUMNS)
        arrays = {name: frozen(columns[name]) for name in _SAMPLE_COLUMNS}
        return cls(**arrays, pool_digest=facts["pool_digest"])


_SAMPLE_COLUMNS = ("topic", "batch", "draws", "draw_batch")


def draw_queries(pool: Pool, design: QueryDesign, *, seed: str) -> QuerySample:
    """Draw topics to the budget of every batch (Sawade et al. 2013, Algorithm 1).

    Draw t is the topic in whose stretch of the cumulated q the t-th uniform number of the seed
    falls. A batch ends before the draw that would exceed its budget; see the module's text.

    Parameters
    ----------
    pool, design : Pool, QueryDesign
        The design must have been made for this pool.
    seed : str
        Any text.

    Raises
    ------
    QueryError
        If the design belongs to another pool, or the budget would take more than `MAX_DRAWS`.
    """
    check_seed(seed)
    if design.pool_digest != pool.digest:
        raise QueryError("the design belongs to another pool")
    steps = design.steps[:-1] if design.is_census else design.steps
    draws, spent = _draw_beyond(design, float(steps[-1]), seed) if len(steps) else _NO_DRAWS
    ends = np.searchsorted(spent, steps * (1.0 + ROUNDING), side="right")
    kept = draws[: ends[-1]] if len(ends) else draws
    draw_batch = np.searchsorted(ends, np.arange(len(kept)), side="right") + 1
    batch = np.full(len(pool.topics), design.batches)
    topics, first = np.unique(kept, return_index=True)
    batch[topics] = draw_batch[first]
    chosen = np.flatnonzero(design.eligible) if design.is_census else topics
    return QuerySample(
        topic=frozen(chosen.astype(np.int64)),
        batch=frozen(batch[chosen].astype(np.int32)),
        draws=frozen(kept),
        draw_batch=frozen(draw_batch.astype(np.int32)),
        pool_digest=pool.digest,
    )


_NO_DRAWS = (np.array([], dtype=np.int64), np.array([], dtype=np.float64))


def _draw_beyond(design: QueryDesign, budget: float, seed: str) -> tuple[IntArray, FloatArray]:
    """Draws until the budget is exceeded, and what they cost together up to each."""
    cumulated = np.cumsum(design.probability)
    cumulated /= cumulated[-1]
    draws, spent = _NO_DRAWS
    wanted = 2 * int(design.planned_draws()) + 100
    while not len(spent) or affordable(float(spent[-1]), budget):
        if len(draws) >= MAX_DRAWS:
            raise QueryError(f"the budget takes over {MAX_DRAWS} draws; use a larger floor")
        uniforms = uniform_numbers(seed, number=wanted - len(draws), start=len(draws))
        more = np.searchsorted(cumulated, uniforms, side="right").astype(np.int64)
        draws = np.concatenate([draws, more])
        topics, first = np.unique(draws, return_index=True)
        paid = np.zeros(len(draws))
        paid[first] = design.cost[topics]
        spent, wanted = np.cumsum(paid), 2 * wanted
    return draws, spent
