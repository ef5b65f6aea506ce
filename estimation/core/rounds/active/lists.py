"""The ranked lists of each topic of a pool, with the rank prior of active sampling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ...arrays import FloatArray, IntArray, SparseMatrix, frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...data.pool import Pool


class ActiveError(ValueError):
    """Arguments of active sampling that do not fit; the message names the first offender."""


@dataclass(frozen=True, eq=False)
class TopicLists:
    """The ranked lists of one topic. n documents, k runs, E entries (document, run).

    ``chances``: p(r_k(i)), the probability of a document once a run is chosen; columns of runs that
    return something sum to 1. Entries are by run, then by rank.
    """

    start: int  # position in the pool of the topic's first pair
    chances: SparseMatrix  # csr_array, (n, k)
    document: IntArray  # (E,)
    run: IntArray  # (E,)
    rank: FloatArray  # (E,), from 1
    run_start: IntArray  # (k + 1,): entries of run j are run_start[j]:run_start[j + 1]

    def __len__(self) -> int:
        """Return the number of documents."""
        return int(self.chances.shape[0])

    @property
    def uniform(self) -> FloatArray:
        """Equal probability for each run that returns anything, shape (k,)."""
        returning = np.diff(self.run_start) > 0
        return np.asarray(returning / returning.sum(), dtype=np.float64)

    def document_probability(self, run_probability: FloatArray) -> FloatArray:
        """Return p_t(i) = sum_k p_t(k) p(r_k(i)), shape (n,)."""
        # A document that all runs put first may come out a rounding error above 1.
        return np.asarray(np.minimum(self.chances @ run_probability, 1.0), dtype=np.float64)


def rank_prior(ranks: NDArray[np.integer], lengths: NDArray[np.integer]) -> FloatArray:
    """Return the AP prior of ranks in lists of given lengths (Li and Kanoulas 2017, section 2.3).

    w(r) = (1/L) (1 + 1/r + 1/(r+1) + ... + 1/L), divided by its sum over the list, which is 2.
    """
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, lengths.max(initial=0) + 1))])
    return np.asarray((1.0 + harmonic[lengths] - harmonic[ranks - 1]) / (2.0 * lengths))


@dataclass(frozen=True, eq=False)
class ActiveFrame:
    """A pool with its lists prepared for sampling. Build one with `make_frame` and reuse it."""

    pool: Pool
    topics: tuple[TopicLists | None, ...]
    """The lists of each topic of the pool; None for topics without documents."""

    @cached_property
    def sizes(self) -> IntArray:
        """Documents of each topic, shape (|X|,)."""
        return np.bincount(self.pool.topic, minlength=len(self.pool.topics)).astype(np.int64)

    def lists(self, topic: int) -> TopicLists:
        """Return the lists of a topic that has documents."""
        found = self.topics[topic]
        if found is None:
            raise ActiveError(f"topic {self.pool.topics[topic]!r} has no documents in the pool")
        return found


def make_frame(pool: Pool) -> ActiveFrame:
    """Prepare a pool for active sampling."""
    bounds = np.searchsorted(pool.topic, np.arange(len(pool.topics) + 1))
    spans = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    return ActiveFrame(pool, tuple(_topic_lists(pool, *span) for span in spans))


def _topic_lists(pool: Pool, first: int, last: int) -> TopicLists | None:
    if first == last:
        return None
    indptr = pool.indptr[first : last + 1] - pool.indptr[first]
    entries = slice(int(pool.indptr[first]), int(pool.indptr[last]))
    run, rank = pool.run[entries].astype(np.int64), pool.rank[entries].astype(np.int64)
    lengths = np.bincount(run, minlength=len(pool.runs))
    prior = rank_prior(rank, lengths[run])
    order = np.lexsort((rank, run))
    return TopicLists(
        start=first,
        chances=sparse.csr_array((prior, run, indptr), shape=(last - first, len(pool.runs))),
        document=frozen(np.repeat(np.arange(last - first), np.diff(indptr))[order]),
        run=frozen(run[order]),
        rank=frozen(rank[order].astype(np.float64)),
        run_start=frozen(np.concatenate([[0], np.cumsum(lengths)])),
    )
