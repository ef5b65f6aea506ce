"""Adjudication: the next document to judge comes from the run that looks best so far.

Both methods work topic by topic and count unjudged documents as not relevant, so their estimates
are biased towards zero, less so for runs that resemble the best ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from estimation.core.data.labels import check_grades
from estimation.core.data.pool import Pool
from estimation.core.sampling.random_numbers import uniform_numbers
from estimation.research.baselines.selections import (
    Budget,
    Contribution,
    Selection,
    contribution,
    resolve_budget,
)


def select_mtf(
    pool: Pool, *, grades: IntArray, budget: Budget, seed: str, runs: Sequence[str] | None = None
) -> Selection:
    """Judge by Move-to-Front (Cormack, Palmer and Clarke 1998).

    All runs of a topic start with the same priority. A run of the highest priority is chosen, of
    several one at random, and its first unjudged document is judged, and the next, until one is
    not relevant; that lowers the run's priority by 1, and a run is chosen again. Runs without an
    unjudged document drop out.

    Parameters
    ----------
    grades : ndarray of int64, shape (N,)
        Grade of every pair; from 1 on a document is relevant. Only judged grades are used.
    budget : int or ndarray of int, shape (T,)
        Judged pairs of all topics together, shared as by `topic_budgets`, or per topic.
    seed : str
        Decides between equal priorities.
    runs : sequence of str, optional
        Runs that contribute documents; by default all.

    Raises
    ------
    ValueError
        If the grades do not fit the pool or the budget cannot be spent.
    """
    return _select(pool, "mtf", _MTF, grades, budget, seed, runs)


def select_mab(
    pool: Pool, *, grades: IntArray, budget: Budget, seed: str, runs: Sequence[str] | None = None
) -> Selection:
    """Judge by the bandit MM-NS (Losada, Parapar and Barreiro 2016).

    Max-mean, non-stationary: run s has the mean (1 + a_s)/(2 + b_s) of a Beta distribution; for
    every judged document that s returns, a_s becomes rate a_s + relevance and b_s becomes
    rate b_s + 1, with the authors' rate 0: only the last of them counts, and the mean is 2/3 after
    a relevant document, 1/3 after another, 1/2 before. Before every judgment a run of the highest
    mean is chosen, of several one at random; its first unjudged document is judged.

    Parameters and errors as for `select_mtf`.
    """
    return _select(pool, "mab", _MM_NS, grades, budget, seed, runs)


@dataclass(frozen=True)
class _Policy:
    """Scores of runs: the first, whether a run is kept while it succeeds, and the update."""

    start: float
    stays: bool
    update: Callable[[FloatArray, int, Int32Array, bool], None]


def _lower_priority(score: FloatArray, run: int, finders: Int32Array, relevant: bool) -> None:
    if not relevant:
        score[run] -= 1.0


def _last_mean(score: FloatArray, run: int, finders: Int32Array, relevant: bool) -> None:
    score[finders] = 2.0 / 3.0 if relevant else 1.0 / 3.0


_MTF = _Policy(0.0, True, _lower_priority)
_MM_NS = _Policy(0.5, False, _last_mean)


def _select(
    pool: Pool,
    method: str,
    policy: _Policy,
    grades: IntArray,
    budget: Budget,
    seed: str,
    runs: Sequence[str] | None,
) -> Selection:
    check_grades(grades, pairs=len(pool))
    part = contribution(pool, runs)
    wanted = resolve_budget(pool, part.sizes, budget)
    starts = np.searchsorted(pool.topic, np.arange(len(pool.topics) + 1))
    relevant = grades >= 1
    chosen = [np.array([], dtype=np.int64)]
    for place, topic in enumerate(pool.topics):
        pairs = slice(int(starts[place]), int(starts[place + 1]))
        numbers = uniform_numbers(f"{method} {seed} {topic}", number=int(wanted[place]))
        lists = _TopicLists.of(pool, part, pairs)
        chosen.append(pairs.start + _adjudicate(lists, relevant[pairs], numbers, policy))
    return Selection.certain(pool, method, np.concatenate(chosen))


@dataclass(frozen=True, eq=False)
class _TopicLists:
    """The ranked lists of one topic; pairs count from 0.

    Attributes
    ----------
    ranked : list of list of int
        Pairs of each run, best first.
    finders : list of ndarray
        Runs that return each pair.
    """

    ranked: list[list[int]]
    finders: list[Int32Array]

    @classmethod
    def of(cls, pool: Pool, part: Contribution, pairs: slice) -> "_TopicLists":
        entries = slice(int(pool.indptr[pairs.start]), int(pool.indptr[pairs.stop]))
        kept = part.entry[entries]
        counts = np.diff(pool.indptr[pairs.start : pairs.stop + 1])
        pair = np.repeat(np.arange(len(counts)), counts)[kept]
        run, rank = pool.run[entries][kept], pool.rank[entries][kept]
        order = np.lexsort((rank, run))
        ends = np.searchsorted(run[order], np.arange(1, len(pool.runs)))
        ranked = [each.tolist() for each in np.split(pair[order], ends)]
        finders = np.split(run, np.searchsorted(pair, np.arange(1, len(counts))))
        return cls(ranked, finders)


def _adjudicate(
    lists: _TopicLists, relevant: BoolArray, numbers: FloatArray, policy: _Policy
) -> IntArray:
    """Return the judged pairs of a topic, in order; the s-th number decides the s-th tie."""
    score = np.full(len(lists.ranked), policy.start)
    remaining = np.array([len(ranked) for ranked in lists.ranked])
    position = [0] * len(lists.ranked)
    judged = [False] * len(relevant)
    order: list[int] = []
    run, keeps = 0, False
    for number in numbers.tolist():
        if not (keeps and remaining[run]):
            run = _best(score, remaining, number)
        ranked, at = lists.ranked[run], position[run]
        while judged[ranked[at]]:
            at += 1
        pair, position[run] = ranked[at], at + 1
        judged[pair] = True
        order.append(pair)
        remaining[lists.finders[pair]] -= 1
        policy.update(score, run, lists.finders[pair], bool(relevant[pair]))
        keeps = policy.stays and bool(relevant[pair])
    return np.array(order, dtype=np.int64)


def _best(score: FloatArray, remaining: IntArray, number: float) -> int:
    open_runs = np.flatnonzero(remaining)
    scores = score[open_runs]
    ties = open_runs[scores == scores.max()]
    return int(ties[int(number * len(ties))])
