"""Judged collections of active rounds.

How much a judged document counts follows from p_t(i) = sum_k p_t(k) p(r_k(i)), round by round, in
the order in which documents were new: a collection has the lists of the pool's runs, the rounds and
this order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import (
    FloatArray,
    Int32Array,
    IntArray,
    check_whole,
    index_array,
    refuse,
)
from ..data.labels import LabelRows
from ..data.pool import Pool
from ..measures.table import MAX_GRADE, Measure, parse_measure
from ..rounds.active.lists import ActiveFrame, make_frame
from ..rounds.active.rounds import ActivePlan, ActiveRound
from ..rounds.active.sampling import ActiveState
from .base import CollectionError
from .ranked import (
    RankedCollection,
    check_round,
    pooled,
    without_scores,
)

SUM_TOLERANCE = 1e-6  # of the chances of a round
ROUNDING = 1e-9


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

    def _check_drawn(self) -> None:
        pool, plan, state = self.pool, self.plan, self.state
        if np.any(np.diff(pool.indptr) == 0):
            name = self.name_of(int(np.argmin(np.diff(pool.indptr))))
            raise CollectionError(f"{name} is in no list: it could not be drawn")
        _check_plan(plan, pool)
        _check_state(plan, state)
        _check_rounds(state, pool)
        _check_documents(plan, state, pool)
        frame = make_frame(pool)
        _check_chances(frame, state)
        if not np.allclose(state.log_absent, log_absent(frame, state), rtol=ROUNDING, atol=0.0):
            raise CollectionError("log_absent must be what follows from the rounds")
        if self.seed is not None and not _is_spent(plan, state):
            raise CollectionError("seed must not be told before the budget is spent")


def log_absent(frame: ActiveFrame, state: ActiveState) -> FloatArray:
    """Return log(1 - pi_i) of every pair, from the rounds of a state; see `ActiveState`."""
    total = np.zeros(len(frame.pool))
    for topic, draws, chances in zip(
        state.round_topic.tolist(), state.round_draws.tolist(), state.run_probability, strict=True
    ):
        lists = frame.lists(topic)
        with np.errstate(divide="ignore"):
            added = draws * np.log1p(-lists.document_probability(chances))
        total[lists.start : lists.start + len(lists)] += added
    return total


def _is_spent(plan: ActivePlan, state: ActiveState) -> bool:
    return len(state.pair) >= plan.budget


# ---------------------------------------------------------------------------------- checks


def _check_plan(plan: ActivePlan, pool: Pool) -> None:
    check_whole(plan.per_batch, name="per_batch", error=CollectionError)
    check_whole(plan.relevant_from, name="relevant_from", most=MAX_GRADE, error=CollectionError)
    sizes = np.bincount(pool.topic, minlength=len(pool.topics))
    limits = index_array(plan.limits, below=len(pool) + 1, name="limits", error=CollectionError)
    if limits.shape != sizes.shape:
        raise CollectionError("limits must have a number for each of the topics")
    if np.any(limits > sizes):
        at = int(np.argmax(limits > sizes))
        told = f"{sizes[at]} documents of topic {pool.topics[at]!r}, not {limits[at]}"
        raise CollectionError(f"limits must be at most the {told}")


def _check_state(plan: ActivePlan, state: ActiveState) -> None:
    settings = (state.batch_size, state.relevant_from)
    if settings != (plan.per_batch, plan.relevant_from):
        raise CollectionError("the state must have the plan's batch size and relevant grades")
    if not 0.0 < state.uniform_share <= 1.0:
        told = f"above 0 and at most 1, not {state.uniform_share!r}"
        raise CollectionError(f"uniform_share must be {told}")


def _check_rounds(state: ActiveState, pool: Pool) -> None:
    """By (batch, topic), each once; every batch has a round."""
    topic, batch = state.round_topic, state.round_batch
    rounds, runs = len(topic), len(pool.runs)
    shapes = (batch.shape, state.round_draws.shape, state.run_probability.shape)
    if not rounds or shapes != ((rounds,), (rounds,), (rounds, runs)):
        raise CollectionError("the rounds need a topic, a batch, draws and chances of all runs")
    index_array(topic, below=len(pool.topics), name="round_topic", error=CollectionError)
    wrong = np.bincount(pool.topic, minlength=len(pool.topics))[topic] == 0
    refuse(wrong, topic, name="round_topic", rule="have documents", error=CollectionError)
    if batch[0] != 1 or np.any(np.diff(batch) < 0) or np.any(np.diff(batch) > 1):
        raise CollectionError("the batches of rounds must be counted from 1, none left out")
    if np.any((np.diff(batch) == 0) & (np.diff(topic) <= 0)):
        raise CollectionError("the rounds of a batch must ascend by topic, each once")


def _check_documents(plan: ActivePlan, state: ActiveState, pool: Pool) -> None:
    """Of the topic of their round, each once, as many as rounds and topics may have."""
    pair, place = state.pair, state.pair_round
    index_array(pair, below=len(pool), name="pair", error=CollectionError)
    index_array(place, below=len(state.round_topic), name="pair_round", error=CollectionError)
    if len(pair) != len(place) or np.any(np.diff(place) < 0):
        raise CollectionError("every document needs its round, and rounds must ascend")
    if len(np.unique(pair)) < len(pair):
        raise CollectionError("a document was new twice")
    if np.any(pool.topic[pair] != state.round_topic[place]):
        raise CollectionError("a document is of another topic than its round")
    found = np.bincount(place, minlength=len(state.round_topic))
    wrong = (found < 1) | (found > plan.per_batch)
    rule = f"bring 1 to {plan.per_batch} new documents"
    refuse(wrong, found, name="a round", rule=rule, error=CollectionError)
    rule = "be as many as the round's new documents, or more"
    fewer = state.round_draws < found
    refuse(fewer, state.round_draws, name="round_draws", rule=rule, error=CollectionError)
    taken = np.bincount(pool.topic[pair], minlength=len(pool.topics))
    over = taken > plan.limits
    refuse(over, taken, name="documents of a topic", rule="keep to limits", error=CollectionError)


def _check_chances(frame: ActiveFrame, state: ActiveState) -> None:
    """Distributions over runs that return anything, each with its uniform share at least."""
    batches: Int32Array = state.round_batch
    for row, topic in enumerate(state.round_topic.tolist()):
        chances, uniform = state.run_probability[row], frame.lists(topic).uniform
        name = f"of topic {frame.pool.topics[topic]!r} in batch {batches[row]}"
        total = float(chances.sum())
        if not abs(total - 1.0) <= SUM_TOLERANCE:
            raise CollectionError(f"the chances of runs {name} must add up to 1, not {total!r}")
        least = state.uniform_share * uniform * (1.0 - ROUNDING)
        wrong = (chances < least) | ((uniform == 0.0) & (chances != 0.0))
        if wrong.any():
            run = int(np.argmax(wrong))
            told = f"not {float(chances[run])!r}"
            if uniform[run] == 0.0:
                rule = "0, because it returns nothing"
            else:
                rule = f"its uniform share, {least[run]!r}, or more"
            tag = frame.pool.runs[run]
            raise CollectionError(f"the chance {name} of run {tag!r} must be {rule}, {told}")
