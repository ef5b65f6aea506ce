"""Judged collections of active rounds.

How much a judged document counts follows from p_t(i) = sum_k p_t(k) p(r_k(i)), round by round, in
the order in which documents were new: a collection has the lists of the pool's runs, the rounds and
this order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import (
    IntArray,
    check_whole,
)
from ..data.labels import LabelRows, pair_name
from ..data.pool import Pool
from ..measures.table import Measure, parse_measure
from ..rounds.active.rounds import ActivePlan, ActiveRound
from ..rounds.active.sampling import ActiveState
from .base import CollectionError
from .ranked import (
    RankedCollection,
    check_round,
    pooled,
    without_scores,
)


@dataclass(frozen=True, eq=False)
class ActiveCollection(RankedCollection):
    """Batches that were planned one after the other, and their judgments.

    Build one with `ActiveCollection.of`.

    Attributes
    ----------
    plan : ActivePlan
        Of the pool.
    state : ActiveState
        What was sampled in these batches. Its seed is empty if `seed` is None.
    """

    plan: ActivePlan
    state: ActiveState

    @classmethod
    def of(
        cls,
        pool: Pool,
        drawn: ActiveRound,
        *,
        labels: LabelRows,
        batches: int,
        max_grade: int,
        version: str,
        seed: str | None = None,
        measures: Sequence[Measure] = (),
    ) -> "ActiveCollection":
        """Collect the first batches of an active round.

        Parameters
        ----------
        pool, drawn : Pool, ActiveRound
        labels : LabelRows
            Judgments of the documents of these batches, as positions in the pool; those of others
            are left out.
        batches : int
            Number of batches, counted from the first, of which every document is judged.
        max_grade, version
            As the attributes.
        seed : str, optional
            The seed of the round. It is kept if the budget is spent: later batches follow from it.
        measures : sequence of Measure, optional
            What the round was made for; by default AP of the plan's relevant grades.

        Raises
        ------
        CollectionError
            If pool and round do not belong together, a document of the pool is in no run's list,
            or a document of these batches is not judged.
        ValueError
            If `batches` is not between 1 and the number of planned batches.
        """
        check_round(pool, drawn)
        if np.any(np.diff(pool.indptr) == 0):
            name = pair_name(int(np.argmin(np.diff(pool.indptr))), pool)
            raise CollectionError(f"{name} is in no list: it could not be drawn")
        check_whole(batches, name="batches", most=drawn.sample.batches)
        state = drawn.prefix(pool, batches).sample
        pool = without_scores(pool)
        told = seed if _is_spent(drawn.design, state) else None
        usual = parse_measure(f"AP(rel={drawn.design.relevant_from})")
        return cls(
            **pooled(pool, labels, sampled=state.pair),
            max_grade=max_grade,
            version=version,
            made_for=tuple(measures) or (usual,),
            seed=told,
            plan=replace(drawn.design, pool_digest=pool.digest),
            state=replace(state, seed=told or "", pool_digest=pool.digest),
        )

    @property
    def drawn(self) -> ActiveRound:
        """The round of these batches."""
        return ActiveRound(self.plan, self.state)

    @property
    def sampled(self) -> IntArray:
        """The documents that are judged, as positions among the N, ascending."""
        return np.sort(self.state.pair)


def _is_spent(plan: ActivePlan, state: ActiveState) -> bool:
    return len(state.pair) >= plan.budget
