"""Judged collections that keep the ranked lists of the runs they were drawn for.

From pairs that were drawn one by one a run is told whatever other runs there were. Where topics are
judged whole, or batches are planned from judgments, it is not so: what was drawn, and how likely
that was, follows from the lists of all runs together. How much a document of an active round counts
follows from p_t(i) = sum_k p_t(k) p(r_k(i)), batch by batch, in the order in which documents were
new.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ..arrays import IntArray, check_whole
from ..data.labels import LabelRows, pair_name
from ..data.pool import Pool
from ..measures.table import Measure
from ..rounds.active.rounds import ActiveRound
from ..rounds.rounds import TopicRound
from .base import Collection, CollectionError, ordered_labels

Ranked: TypeAlias = TopicRound | ActiveRound


@dataclass(frozen=True, eq=False)
class RankedCollection(Collection):
    """The complete batches of a round over a pool, the pool, and the judgments.

    Build one with `RankedCollection.of`.

    Attributes
    ----------
    pool : Pool
        With all runs, as it was when the round was drawn, but without scores.
    drawn : TopicRound or ActiveRound
        The round of these batches. The order of draws of topics within a batch is not kept; the
        seed of an active round is empty if `seed` is None.
    made_for : tuple of Measure
        At least one; tells where the collection comes from and has no influence.
    seed : str or None
        The seed of the draw, where it may be known.
    """

    pool: Pool
    drawn: Ranked
    made_for: tuple[Measure, ...]
    seed: str | None

    @classmethod
    def of(
        cls,
        pool: Pool,
        drawn: Ranked,
        *,
        labels: LabelRows,
        batches: int,
        max_grade: int,
        version: str,
        seed: str | None = None,
        measures: Sequence[Measure] = (),
    ) -> "RankedCollection":
        """Collect the first batches of a round.

        Parameters
        ----------
        pool, drawn : Pool, TopicRound or ActiveRound
            As they were when the sample was drawn.
        labels : LabelRows
            Judgments of the documents of these batches, as positions in the pool; those of others
            are left out.
        batches : int
            Number of batches, counted from the first, of which every document is judged.
        max_grade, version
            As the attributes.
        seed : str, optional
            The seed of the draw. It is kept if these are all batches: later ones follow from it.
        measures : sequence of Measure, optional
            What the round was made for; by default the round's own.

        Raises
        ------
        CollectionError
            If pool and round do not belong together, a document of an active round's pool is in no
            run's list, or a document of these batches is not judged.
        ValueError
            If `batches` is not between 1 and the number of batches.
        """
        _check(pool, drawn, batches)
        told = seed if drawn.is_whole(batches) else None
        bare = pool if pool.score is None else replace(pool, score=None)
        return cls.holding(
            bare,
            _over(bare, drawn.prefix(pool, batches), told),
            labels,
            max_grade=max_grade,
            version=version,
            made_for=tuple(measures) or (drawn.measure,),
            seed=told,
        )

    @classmethod
    def holding(
        cls,
        pool: Pool,
        drawn: Ranked,
        labels: LabelRows,
        *,
        max_grade: int,
        version: str,
        made_for: tuple[Measure, ...],
        seed: str | None,
    ) -> "RankedCollection":
        """Return the collection of all batches of a round, with the judgments of its pairs."""
        kept = np.isin(labels.pair, drawn.served(pool).pair)
        return cls(
            topics=pool.topics,
            depth=pool.depth,
            topic=pool.topic,
            docno=pool.docno,
            labels=ordered_labels(LabelRows(labels.pair[kept], labels.grade[kept])),
            max_grade=max_grade,
            version=version,
            pool=pool,
            drawn=drawn,
            made_for=made_for,
            seed=seed,
        )

    @property
    def pool_digest(self) -> str:
        """Digest of the pool that the sample was drawn from."""
        return self.pool.digest

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What the sample was drawn for; the first is the goal's."""
        return self.made_for

    @property
    def sampled(self) -> IntArray:
        """The documents that are judged, as positions among the N, ascending."""
        return self.drawn.served(self.pool).pair

    @property
    def _sampled_pool(self) -> Pool:
        return self.pool


def _check(pool: Pool, drawn: Ranked, batches: int) -> None:
    if not pool.digest == drawn.design.pool_digest == drawn.sample.pool_digest:
        raise CollectionError("pool, design and sample do not belong together")
    if pool.is_of_preferences:
        raise CollectionError("preferences between documents do not make a judged collection")
    if isinstance(drawn, TopicRound):
        return
    check_whole(batches, name="batches", most=drawn.sample.batches)
    if np.any(np.diff(pool.indptr) == 0):
        name = pair_name(int(np.argmin(np.diff(pool.indptr))), pool)
        raise CollectionError(f"{name} is in no list: it could not be drawn")


def _over(pool: Pool, drawn: Ranked, seed: str | None) -> Ranked:
    """The round as one of the pool without scores."""
    digest = pool.digest
    if isinstance(drawn, TopicRound):
        return TopicRound(
            replace(drawn.design, pool_digest=digest), replace(drawn.sample, pool_digest=digest)
        )
    return ActiveRound(
        replace(drawn.design, pool_digest=digest),
        replace(drawn.sample, pool_digest=digest, seed=seed or ""),
    )
