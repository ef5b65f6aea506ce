"""Active sampling: which documents of a topic to judge next, in small rounds, from what was judged.

Li and Kanoulas 2017 ("Active Sampling for Large-scale Information Retrieval Evaluation"). In
round t of a topic a document i is drawn with probability p_t(i) = sum_k p_t(k) p(r_k(i)): first a
run k, then a rank of its list. The ranks have the AP prior p(r) ~ 1 + 1/r + ... + 1/L. The runs are
equally likely at first, later in proportion to their average precision as estimated from the
judgments so far. Draws are with replacement and a round ends with its `batch_size`-th new document;
N_t counts all of its draws. `active.estimates` turns the judgments into estimates.

What holds for the inclusion probabilities
------------------------------------------
pi_i = 1 - prod_t (1 - p_t(i))^N_t is the exact inclusion probability for p_t and N_t that were
fixed beforehand. Here p_t depends on the judgments of earlier rounds and N_t on when new documents
came up. A relevant document draws attention to the runs that return it, and so raises its own pi_i
after the fact: the estimators built on pi are biased. That is the published method, given as it is;
the tests and the benchmark show the size of the bias. `active.estimates` also has an estimator for
the same samples that is free of it.

How runs are chosen
-------------------
p_t(k) is proportional to the numerator of the estimated average precision (its denominator, the
number of relevant documents, is the same for all runs), with pi_i pi_l for the joint probability of
two different documents: this only steers the sampling, and the exact joint probability would change
it by little. Runs are equally likely in the first round, when no judged document is relevant, and
when the documents that are still new have a probability below 1e-12; runs that return nothing
have probability 0. The paper has no smoothing: a run without a relevant judged document gets
no draws. With `uniform_share` s, p_t(k) is s times uniform plus 1 - s times that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...archives import ArchiveFile, read_archive, write_archive
from ...arrays import (
    FloatArray,
    Int32Array,
    IntArray,
    check_fraction,
    check_integers,
    check_seed,
    check_whole,
    column_sums,
    frozen,
    refuse,
)
from ...data.labels import LabelError, LabelRows, checked_positions, pair_name
from ...measures.kinds import MAX_GRADE
from ...sampling.random_numbers import uniform_numbers
from .lists import ActiveError, ActiveFrame, TopicLists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from ...data.pool import Pool

FORMAT = "evalsite-active-1"
LEAST_MASS = 1e-12  # probability of a new document below which a distribution is not drawn from


# ------------------------------------------------------------------------------------ the state


@dataclass(frozen=True, eq=False)
class ActiveState:
    """Everything sampled so far: n pairs in m rounds, over N pool pairs and k runs.

    Attributes
    ----------
    seed : str
    batch_size : int
        New documents per round.
    relevant_from : int
        Grades from this one on count as relevant.
    uniform_share : float
        Share of the uniform distribution in p_t(k).
    pool_digest : str
        Digest of the pool.
    pair : ndarray of int64, shape (n,)
        Sampled pairs as positions in the pool, in the order of drawing.
    pair_round : ndarray of int64, shape (n,)
        The round (row of the arrays below) in which each pair was new.
    round_topic : ndarray of int32, shape (m,)
    round_batch : ndarray of int32, shape (m,)
        1-based batch (call of `plan_batch`) of each round.
    round_draws : ndarray of int64, shape (m,)
        N_t, repetitions included.
    run_probability : ndarray of float64, shape (m, k)
        p_t(k).
    log_absent : ndarray of float64, shape (N,)
        log(1 - pi_i) = sum_t N_t log(1 - p_t(i)) of every pair of the pool.
    """

    seed: str
    batch_size: int
    relevant_from: int
    uniform_share: float
    pool_digest: str
    pair: IntArray
    pair_round: IntArray
    round_topic: Int32Array
    round_batch: Int32Array
    round_draws: IntArray
    run_probability: FloatArray
    log_absent: FloatArray

    @property
    def batches(self) -> int:
        """Number of batches that have been planned."""
        return int(self.round_batch[-1]) if len(self.round_batch) else 0

    @property
    def latest(self) -> IntArray:
        """Pairs of the newest batch in the order of drawing: what to judge next."""
        newest = self.round_batch[self.pair_round] == self.batches
        return np.asarray(self.pair[newest], dtype=np.int64)

    def inclusion(self, pairs: IntArray | None = None) -> FloatArray:
        """Return pi_i of pairs (by default all N), as the module's text defines it."""
        logs = self.log_absent if pairs is None else self.log_absent[pairs]
        return np.asarray(-np.expm1(logs))

    def save(self, file: ArchiveFile) -> None:
        """Write the state to a path or a binary file, bit for bit."""
        facts = {name: getattr(self, name) for name in _FACTS}
        write_archive(file, FORMAT, facts, {name: getattr(self, name) for name in _COLUMNS})

    @classmethod
    def load(cls, file: ArchiveFile) -> ActiveState:
        """Read what `save` wrote; raise ValueError if it is damaged or something else."""
        facts, columns = read_archive(file, FORMAT, _COLUMNS)
        fields: dict[str, Any] = {name: frozen(columns[name]) for name in _COLUMNS}
        return cls(**{name: facts[name] for name in _FACTS}, **fields)


_FACTS = ("seed", "batch_size", "relevant_from", "uniform_share", "pool_digest")
_COLUMNS = (
    *("pair", "pair_round", "round_topic", "round_batch", "round_draws"),
    *("run_probability", "log_absent"),
)


def start(
    frame: ActiveFrame,
    *,
    seed: str,
    batch_size: int = 3,
    relevant_from: int = 1,
    uniform_share: float = 0.0,
) -> ActiveState:
    """Return the state before the first batch.

    Parameters
    ----------
    frame : ActiveFrame
    seed : str
        Any text. Round t of a topic uses the uniform numbers of (seed, topic, t) and no others.
    batch_size : int
        New documents per topic and round, at least 1; 3 in the paper.
    relevant_from : int
        Grades from this one on count as relevant.
    uniform_share : float
        Between 0, as in the paper, and 1: share of the uniform distribution in p_t(k). The
        sequential estimator needs it above 0.

    Raises
    ------
    ActiveError
        If batch_size, relevant_from or uniform_share is out of range.
    """
    check_seed(seed)
    check_whole(batch_size, name="batch_size", error=ActiveError)
    check_whole(relevant_from, name="relevant_from", most=MAX_GRADE, error=ActiveError)
    check_fraction(uniform_share, name="uniform_share", error=ActiveError)
    return ActiveState(
        seed=seed,
        batch_size=batch_size,
        relevant_from=relevant_from,
        uniform_share=uniform_share,
        pool_digest=frame.pool.digest,
        pair=frozen(np.empty(0, dtype=np.int64)),
        pair_round=frozen(np.empty(0, dtype=np.int64)),
        round_topic=frozen(np.empty(0, dtype=np.int32)),
        round_batch=frozen(np.empty(0, dtype=np.int32)),
        round_draws=frozen(np.empty(0, dtype=np.int64)),
        run_probability=frozen(np.empty((0, len(frame.pool.runs)))),
        log_absent=frozen(np.zeros(len(frame.pool))),
    )


# -------------------------------------------------------------------------------------- planning


@dataclass(frozen=True, eq=False)
class _Round:
    topic: int
    run_probability: FloatArray
    draws: int
    documents: list[int]  # new ones, within the topic
    log_absent: FloatArray  # what the round adds, for the documents of the topic


def plan_batch(
    frame: ActiveFrame,
    state: ActiveState,
    *,
    labels: LabelRows,
    limits: IntArray | None = None,
) -> ActiveState:
    """Plan one more round in every topic: up to `batch_size` new documents each.

    Depends on nothing but its arguments: the same pool, state and labels give the same bits,
    in whatever order the labels come.

    Parameters
    ----------
    frame : ActiveFrame
    state : ActiveState
    labels : LabelRows
        Judgments of every pair that was sampled in the topics that may have new ones.
    limits : ndarray of int64, shape (|X|,), optional
        Sampled pairs per topic, past and new, that must not be exceeded; by default none.

    Returns
    -------
    ActiveState
        Its `latest` pairs are to be judged next. If nothing is left to sample, the state is
        the one that was passed in.

    Raises
    ------
    ActiveError
        If the state belongs to another pool, or a limit is out of range.
    LabelError
        If a sampled pair of these topics has no label, or a row belongs to no sampled pair.
    """
    if state.pool_digest != frame.pool.digest:
        raise ActiveError("the state belongs to another pool")
    quota = _quota(frame, state, limits)
    wanted = np.flatnonzero(quota > 0)
    sampled = np.sort(state.pair)
    sampled_topic = frame.pool.topic[sampled]
    relevance = _relevance(frame.pool, sampled, labels, relevant_from=state.relevant_from)
    if np.isnan(relevance).any():
        _refuse_missing(frame.pool, sampled[np.isnan(relevance) & np.isin(sampled_topic, wanted)])
    past = np.bincount(state.round_topic, minlength=len(quota))
    rounds = []
    for topic in wanted.tolist():
        span = slice(*sampled_topic.searchsorted([topic, topic + 1]))
        name = frame.pool.topics[topic]
        stream = f"active {len(name)} {name} {past[topic] + 1} {state.seed}"
        uniforms = uniform_numbers(stream, number=2 * int(quota[topic]))
        rounds.append(_plan_round(frame, state, topic, sampled[span], relevance[span], uniforms))
    return _extended(frame, state, rounds) if rounds else state


def _relevance(
    pool: Pool, sampled: IntArray, labels: LabelRows, *, relevant_from: int
) -> FloatArray:
    """Share of the assessors of each sampled pair that found it relevant; nan without a label.

    Whole numbers are counted, so that the order of the rows cannot change a bit.
    """
    place = checked_positions(labels, sampled, MAX_GRADE, pool)
    if not len(labels.pair):
        return np.full(len(sampled), np.nan)
    number = np.bincount(place, minlength=len(sampled))
    relevant = np.bincount(place[labels.grade >= relevant_from], minlength=len(sampled))
    with np.errstate(invalid="ignore"):
        return np.asarray(relevant / number, dtype=np.float64)


def _refuse_missing(pool: Pool, missing: IntArray) -> None:
    if len(missing):
        all_of_them = f"{len(missing)} sampled pairs of these topics have no label"
        raise LabelError(f"{all_of_them}; the first is {pair_name(int(missing[0]), pool)}")


def _quota(frame: ActiveFrame, state: ActiveState, limits: IntArray | None) -> IntArray:
    """New documents that the next round of each topic may bring."""
    number = len(frame.pool.topics)
    taken = np.bincount(frame.pool.topic[state.pair], minlength=number)
    left = frame.sizes - taken
    if limits is not None:
        bounds = np.asarray(limits)
        if bounds.shape != (number,):
            shape = f"not of the shape {bounds.shape}"
            raise ActiveError(f"limits must be {number} numbers, one per topic, {shape}")
        check_integers(bounds, name="limits", error=ActiveError)
        refuse(bounds < 0, bounds, name="limits", rule="not be negative", error=ActiveError)
        left = np.minimum(left, np.maximum(bounds - taken, 0))
    return np.asarray(np.minimum(left, state.batch_size), dtype=np.int64)


def _plan_round(
    frame: ActiveFrame,
    state: ActiveState,
    topic: int,
    pairs: IntArray,
    relevance: FloatArray,
    uniforms: FloatArray,
) -> _Round:
    """One round of a topic: its sampled pairs, their relevance, two numbers per new document."""
    lists = frame.lists(topic)
    documents = pairs - lists.start
    learned = _run_distribution(lists, documents, relevance, state.inclusion(pairs))
    share = state.uniform_share
    mixed = share * lists.uniform + (1.0 - share) * learned if share > 0.0 else learned
    for run_probability in (mixed, lists.uniform):
        chance = lists.document_probability(run_probability)
        fresh = chance.copy()
        fresh[documents] = 0.0
        if fresh.sum() >= LEAST_MASS:
            break
    draws, found = _draw_new(fresh, uniforms)
    with np.errstate(divide="ignore"):
        absent = np.log1p(-chance)
    return _Round(topic, run_probability, draws, found, draws * absent)


def _run_distribution(
    lists: TopicLists, documents: IntArray, relevance: FloatArray, inclusion: FloatArray
) -> FloatArray:
    """p_t(k): proportional to the estimated average precision, or uniform; see the module."""
    share = np.zeros(len(lists))
    share[documents] = relevance / inclusion
    entries = np.flatnonzero(share[lists.document])
    gain, run = share[lists.document[entries]], lists.run[entries]
    before = np.concatenate([[0.0], np.cumsum(gain)])
    first = np.searchsorted(entries, lists.run_start[run])
    above = before[:-1] - before[first]  # sum over the documents that the run ranks higher
    numerator = (gain * above + gain) / lists.rank[entries]
    precision = column_sums(run, numerator, number=lists.chances.shape[1])
    total = precision.sum()
    return precision / total if total > 0.0 else lists.uniform


def _draw_new(fresh: FloatArray, uniforms: FloatArray) -> tuple[int, list[int]]:
    """Draw until there are half as many new documents as uniform numbers; count all draws.

    Which known documents come up in between has no influence on anything, so only their number is
    drawn: the wait for the next new document is geometric. This has exactly the distribution of
    drawing one by one. A round ends early when no new document can come up.
    """
    draws = 0
    found: list[int] = []
    for wait, place in uniforms.reshape(-1, 2).tolist():
        cumulated = np.cumsum(fresh)
        mass = float(cumulated[-1])
        if found and mass < LEAST_MASS:
            break
        draws += 1 if mass >= 1.0 else 1 + int(np.log(wait) / np.log1p(-mass))
        document = int(np.searchsorted(cumulated, place * mass, side="right"))
        found.append(document)
        fresh[document] = 0.0
    return draws, found


def _extended(frame: ActiveFrame, state: ActiveState, rounds: Sequence[_Round]) -> ActiveState:
    log_absent = state.log_absent.copy()
    firsts = [frame.lists(each.topic).start for each in rounds]
    for first, each in zip(firsts, rounds, strict=True):
        log_absent[first : first + len(each.log_absent)] += each.log_absent
    log_absent.flags.writeable = False
    found = [len(each.documents) for each in rounds]
    new = np.concatenate([each.documents for each in rounds]) + np.repeat(firsts, found)
    rows = np.repeat(np.arange(len(rounds)) + len(state.round_topic), found)
    return replace(
        state,
        pair=_appended(state.pair, new),
        pair_round=_appended(state.pair_round, rows),
        round_topic=_appended(state.round_topic, [each.topic for each in rounds]),
        round_batch=_appended(state.round_batch, np.full(len(rounds), state.batches + 1)),
        round_draws=_appended(state.round_draws, [each.draws for each in rounds]),
        run_probability=_appended(state.run_probability, [each.run_probability for each in rounds]),
        log_absent=log_absent,
    )


def _appended(array: NDArray[Any], more: ArrayLike) -> NDArray[Any]:
    return frozen(np.concatenate([array, np.asarray(more, dtype=array.dtype)]))
