"""How far verdicts stand back because some pairs can never be sampled.

An estimate says nothing of a pair that has probability 0: a document that only a later run returns,
or one that the design left out. One run is therefore called better than another only if that holds
whatever the grades of these pairs are (`slack`). This depends on weights alone, not on grades.
"""

from collections.abc import Iterator

import numpy as np

from estimation.core.arrays import BoolArray, FloatArray, IntArray, column_sums
from estimation.core.intervals import ROUNDING
from estimation.core.measures import Measure
from estimation.core.pool import Pool
from estimation.core.reach import Reach

# Entries whose weight is a smaller share of the largest are not compared, but allowed for in full.
NEGLIGIBLE = 1e-9
LITTLE = 1e-6  # share of a run's weight
_AT_ONCE = 1 << 21  # comparisons of two entries of one pair, to bound memory


def slack(
    reach: Reach, measure: Measure, *, max_grade: int, added: BoolArray | None = None
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

    Where less than `LITTLE` of every run's weight is out of reach, gains are allowed for in full,
    without a look at every entry, which takes longer than all the rest where runs are deep.

    Parameters
    ----------
    reach : Reach
        Of a pool of N pairs and k runs: which of them could be sampled.
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
    pool, missing = reach.pool, 1.0 - reach.support(measure)
    if not missing.any():
        return np.zeros((len(pool.runs), len(pool.runs)))
    eligible = reach.inclusion > 0.0
    if measure.family in ("ratio", "query"):
        most = _of_topics(pool, measure, eligible, added)
    elif measure.family == "gain" and missing.max() < LITTLE:
        values = reach.largest_values(measure, max_grade)
        most = np.tile((missing + ROUNDING) * values, (len(values), 1))
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
    weights = pool.entry_weights(measure)
    heavy = np.flatnonzero(weights[entries] > NEGLIGIBLE * weights.max())
    entries, terms = entries[heavy], terms[:, heavy]
    for rows in _of_shared_pairs(pool.entry_pair[entries]):
        run, term = pool.run[entries[rows]].astype(np.int64), terms[:, rows]
        ahead = np.max(term[:, :, None, :] - term[:, :, :, None], axis=0)
        apart = term.max(axis=0)[:, None, :] - term.min(axis=0)[:, :, None]
        cells = run[:, :, None] * runs + run[:, None, :]
        in_common += np.bincount(cells.ravel(), (ahead - apart).ravel(), runs * runs)
    gains = best[None, :] - least[:, None] + in_common.reshape(runs, runs)
    rounding = ROUNDING * np.add.outer(best, best)  # large terms that both have may hide small ones
    return np.maximum(gains + rounding, 0.0)


def _of_shared_pairs(entry_pair: IntArray) -> Iterator[IntArray]:
    """Places of the entries of pairs that m runs return, for every m >= 2, in blocks (n, m)."""
    _, starts, counts = np.unique(entry_pair, return_index=True, return_counts=True)
    for number in np.unique(counts[counts > 1]).tolist():
        first = starts[counts == number]
        blocks = -(-len(first) * number**2 // _AT_ONCE)
        for some in np.array_split(first, blocks):
            yield some[:, None] + np.arange(number)


def _terms_out_of_reach(
    pool: Pool, measure: Measure, eligible: BoolArray, max_grade: int
) -> tuple[IntArray, FloatArray]:
    """Entries out of reach with a weight, (n,), and what each adds at grades: the ends, or all."""
    entries = _entries_out_of_reach(pool, eligible)
    weights = pool.entry_weights(measure)[entries]
    entries, weights = entries[weights > 0.0], weights[weights > 0.0]
    grades = (0, max_grade) if measure.family == "gain" else range(max_grade + 1)
    utilities = [pool.entry_utilities(measure, grade)[entries] for grade in grades]
    return entries, weights * np.array(utilities)


def _entries_out_of_reach(pool: Pool, eligible: BoolArray) -> IntArray:
    return np.flatnonzero(~eligible[pool.entry_pair])
