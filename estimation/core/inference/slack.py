"""How far verdicts stand back because some pairs can never be sampled.

An estimate says nothing of a pair that has probability 0: a document that only a later run returns,
or one that the design left out. One run is therefore called better than another only if that holds
whatever the grades of these pairs are (`slack`). This depends on weights alone, not on grades.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, SparseMatrix, array_digest, column_sums
from ..data.pool_ranks import total_weights
from .in_common import in_common, of_shared_pairs
from .intervals import ROUNDING

if TYPE_CHECKING:
    from ..data.pool import Pool
    from ..measures.table import Measure
    from .out_of_reach import OutOfReach

LITTLE = 1e-6  # share of every run's weight that is allowed for in full, without a closer look
# Where more is out of reach than can be compared: the share of a list's weight, at its end, that is
# allowed for in full; of the ranks that can be compared those that are compared first, one in so
# many; and the share of these that runs have in common which are compared further.
TAIL, FIRST, ALIKE = 1e-3, 3, 0.995


def slack(
    out: OutOfReach, measure: Measure, *, max_grade: int, added: BoolArray | None = None
) -> FloatArray:
    """Return by how much each difference of runs may be smaller than within reach.

    Sums of gains or losses: what the pairs out of reach can take from the difference at the grades
    that are worst for it, pair by pair. A document that counts alike for two runs leaves their
    difference alone, whatever its grade; so a design for differences, which leaves such documents
    out, has no slack for them.

    ERR: a document out of reach can only add to a value, a topic's value is at most 1, and so the
    column's run gains at most the share of topics where it has one. Ratio measures: a pair of the
    pool changes the number of relevant documents for every run, and a difference within a topic by
    at most 2; a pair that only later runs return counts for these alone, whose values in the topic
    it may raise or lower by at most 1.

    To compare every two runs pair by pair takes longer than all the rest of an evaluation where
    many runs are deep. Under a measure of gains by rank some of what runs gain is then allowed for
    in full, as if no other run had it, which can only make a slack larger (`_in_common`).

    Parameters
    ----------
    out : OutOfReach
        Of a pool of N pairs and k runs: which of them could not be sampled.
    measure : Measure
    max_grade : int
        The best grade of the scale.
    added : ndarray of bool, shape (N,), optional
        The pairs that only later runs return, none of them eligible; by default none.

    Returns
    -------
    ndarray of float64, shape (k, k)
        Of the difference by which the row's run is better than the column's, as `rank_runs` takes
        it; >= 0, and 0 on the diagonal.
    """
    key = "slack", measure, max_grade, None if added is None else array_digest(added)
    return out.remembered(key, lambda: _slack(out, measure, max_grade, added))


def most_added(out: OutOfReach, measure: Measure, *, max_grade: int) -> FloatArray:
    """Return what pairs out of reach can add to each value at most, shape (k,)."""
    pool, runs = out.pool, len(out.pool.runs)
    if measure.family == "gain":
        return out.missing(measure) * measure.max_utility(max_grade)
    if measure.family in ("ratio", "query"):
        return np.ones(runs)
    entries, terms = _terms_out_of_reach(pool, measure, out.eligible, max_grade)
    return column_sums(pool.run[entries], terms.max(axis=0), number=runs)


def _slack(
    out: OutOfReach, measure: Measure, max_grade: int, added: BoolArray | None
) -> FloatArray:
    pool, eligible = out.pool, out.eligible
    if measure.family == "gain":
        most = _of_gains(out, measure, max_grade)
    elif np.all(out.support(measure) == 1.0):
        most = np.zeros((len(pool.runs), len(pool.runs)))
    elif measure.family in ("ratio", "query"):
        most = _of_topics(pool, measure, eligible, added)
    else:
        gains = _most_gained(pool, measure, eligible, max_grade)
        most = gains.T if measure.lower_is_better else gains
    np.fill_diagonal(most, 0.0)
    return most


def _of_topics(
    pool: Pool, measure: Measure, eligible: BoolArray, added: BoolArray | None
) -> FloatArray:
    """Shares of topics, times what a difference there can lose."""
    topics, runs = len(pool.topics), len(pool.runs)
    of_all, of_one = np.zeros((topics, 1)), np.zeros((topics, runs))
    entries = _entries_out_of_reach(pool, eligible)
    if measure.family != "ratio":  # there a document below the cutoff counts as well: in R
        entries = entries[pool.entry_weights(measure)[entries] > 0.0]
    of_one[pool.topic[pool.entry_pair[entries]], pool.run[entries]] = 1.0
    if measure.family == "ratio":
        of_all[pool.topic[~eligible if added is None else ~(eligible | added)]] = 1.0
    own = (of_one * (1.0 - of_all)).sum(axis=0) / topics
    if measure.family != "ratio":
        return np.tile(own, (runs, 1))
    return np.asarray(2.0 * of_all.sum() / topics + np.add.outer(own, own), dtype=np.float64)


def _of_gains(out: OutOfReach, measure: Measure, max_grade: int) -> FloatArray:
    """The column's weight out of reach less what both runs have in common there, in gains."""
    missing = out.missing(measure)
    if not missing.any():
        return np.zeros((len(missing), len(missing)))
    if np.any(missing >= LITTLE * total_weights(out.pool, measure), where=missing > 0.0):
        gains = missing[None, :] - _in_common(out, measure)
    else:
        gains = np.tile(missing, (len(missing), 1))
    rounding = ROUNDING * np.add.outer(missing, missing)
    return np.maximum(gains + rounding, 0.0) * measure.max_utility(max_grade)


def _in_common(out: OutOfReach, measure: Measure) -> FloatArray:
    """What every two runs have in common out of reach, (k, k), or less where that takes long.

    Exact where all ranks can be compared (`OutOfReach.compared`). Else what lists have at their
    end, below `TAIL` of their weight, counts as nothing; and where a measure counts more ranks than
    can be compared, so do the deeper ones. But runs that have nearly all in common above are
    compared until `LITTLE` is left: between these alone differences can be as small as what grades
    make of them. Who is compared depends on weights, not on grades, and to compare less makes
    verdicts stand back more.
    """
    table = out.pool.rank_weights(measure)
    if table is None:
        return in_common(out.pool.weights(measure, out.pairs))
    rank, deepest = _ranks_to_compare(out, table)
    first = _weights_of_ranks(out.first_ranks(rank), table, min(rank, deepest))
    common = in_common(first)
    if deepest > rank:
        alike = _alike(common, column_sums(first.indices, first.data, number=len(common)))
        if len(alike):
            ranks = out.ranks_of(alike, deepest)
            common[np.ix_(alike, alike)] = in_common(_weights_of_ranks(ranks, table, deepest))
    return common


def _ranks_to_compare(out: OutOfReach, table: FloatArray) -> tuple[int, int]:
    """Down to which rank to compare every two runs, and those that are alike."""
    most, depth = out.compared, out.pool.depth
    if most == depth:
        return depth, depth
    enough, first = _last_rank(table, TAIL), max(1, most // FIRST)
    return most if first < enough <= most else first, _last_rank(table, LITTLE)


def _last_rank(table: FloatArray, share: float) -> int:
    """The rank below which less than a share of the weight of a full list is left."""
    below = np.cumsum(table[::-1])[::-1]
    return int(np.count_nonzero(below >= share * below[0])) - 1


def _weights_of_ranks(ranks: SparseMatrix, table: FloatArray, deepest: int) -> SparseMatrix:
    """The entries down to a rank, with the weights of their ranks."""
    entries = np.flatnonzero(ranks.data <= deepest)
    place = ranks.indices[entries], np.searchsorted(entries, ranks.indptr).astype(np.int32)
    return type(ranks)((table[ranks.data[entries]], *place), shape=ranks.shape)


def _alike(common: FloatArray, own: FloatArray) -> IntArray:
    """The runs that have nearly all in common with another one, ascending.

    Two runs of which nothing was compared have nothing that is different either.
    """
    both = np.add.outer(own, own)
    alike = 2.0 * common >= ALIKE * both
    np.fill_diagonal(alike, False)
    return np.flatnonzero(alike.any(axis=1))


def _most_gained(pool: Pool, measure: Measure, eligible: BoolArray, max_grade: int) -> FloatArray:
    """Sum over pairs of the most by which the column's term exceeds the row's, at least 0, (k, k).

    The best of the column's terms less the worst of the row's, except where a pair has both: there
    both are of one grade.
    """
    runs = len(pool.runs)
    entries, terms = _terms_out_of_reach(pool, measure, eligible, max_grade)
    best, least = (
        column_sums(pool.run[entries], ends, number=runs)
        for ends in (terms.max(axis=0), terms.min(axis=0))
    )
    in_common = np.zeros(runs * runs)
    starts = np.flatnonzero(np.diff(pool.entry_pair[entries], prepend=-1))
    for rows in of_shared_pairs(starts, np.diff(starts, append=len(entries))):
        run, term = pool.run[entries[rows]].astype(np.int64), terms[:, rows]
        ahead = np.max(term[:, :, None, :] - term[:, :, :, None], axis=0)
        apart = term.max(axis=0)[:, None, :] - term.min(axis=0)[:, :, None]
        cells = run[:, :, None] * runs + run[:, None, :]
        in_common += np.bincount(cells.ravel(), (ahead - apart).ravel(), runs * runs)
    gains = best[None, :] - least[:, None] + in_common.reshape(runs, runs)
    rounding = ROUNDING * np.add.outer(best, best)  # large terms that both have may hide small ones
    return np.maximum(gains + rounding, 0.0)


def _terms_out_of_reach(
    pool: Pool, measure: Measure, eligible: BoolArray, max_grade: int
) -> tuple[IntArray, FloatArray]:
    """Entries out of reach with a weight, (n,), and what each adds at every grade."""
    entries = _entries_out_of_reach(pool, eligible)
    weights = pool.entry_weights(measure)[entries]
    entries, weights = entries[weights > 0.0], weights[weights > 0.0]
    grades = range(max_grade + 1)
    utilities = [pool.entry_utilities(measure, grade)[entries] for grade in grades]
    return entries, weights * np.array(utilities)


def _entries_out_of_reach(pool: Pool, eligible: BoolArray) -> IntArray:
    return np.flatnonzero(~eligible[pool.entry_pair])
