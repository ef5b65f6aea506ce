"""Values of runs where all grades are known: the one way from complete judgments to values.

Nothing is estimated here. Whatever needs a value of complete judgments takes it from here: the
library's `evaluate_complete`, and the truth that simulated rounds are held against. The values are
those of trec_eval (``P``, ``map``, ``ndcg``, ``Rprec``, ``recip_rank`` and their cutoffs), equal
but for rounding: documents without a grade above 0 gain nothing, R and the ideal list are those of
all graded documents of the topic, returned or not, and a topic without any counts 0.

====================  ==========================================================================
family                value of a topic and run; r ranks, u utilities of the returned documents
====================  ==========================================================================
gain                  sum of weight(r) u
ratio                 AP: sum over useful documents of (useful ones down to r) / r, over R;
                      nDCG: sum of weight(r) u over that of the best list; Rprec: useful ones
                      down to rank R, over R
query                 sum of u / r times the product of 1 - u of all documents above: ERR, RR
prediction,           sum of weight(r) u, of all entries: a document of grade 0 has a utility
preference
====================  ==========================================================================
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, IntArray, column_sums
from ..data.graded_lists import GradedLists, lists_of_pool
from ..data.labels import check_grades
from ..measures.kinds import KINDS, MAX_GRADE, MeasureError
from ..measures.table import Measure, check_measures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..arrays import BoolArray
    from ..data.pool import Pool

COMPARED = ("prediction", "preference")  # families whose utilities depend on the run


def complete_values(
    pool: Pool,
    *,
    grades: IntArray,
    measures: Sequence[Measure],
    max_grade: int | None = None,
    known: tuple[IntArray, IntArray] | None = None,
) -> FloatArray:
    """Return the value of every measure, topic and run when the grade of every pair is known.

    Measures share one pass over the entries of documents with a grade above 0; the work grows with
    these entries, down to the deepest rank that a measure counts.

    Parameters
    ----------
    pool : Pool
    grades : ndarray of int64, shape (N,)
        The grade of each pair of the pool; in a pool of preferences 0, 1 or 2.
    measures : sequence of Measure
        M of them.
    max_grade : int, optional
        The best grade of the scale, which ERR and RR need.
    known : tuple of ndarray of int64, each of shape (m,), optional
        Topic and grade of all judged documents, where some are not in the pool.

    Returns
    -------
    ndarray of float64, shape (M, T, k)

    Raises
    ------
    ValueError
        If there is not one grade per pair, or one is above `max_grade`.
    MeasureError
        If the pool lacks what a measure is about, or ERR is asked for without `max_grade`.
    """
    check_measures(measures, name="measures")
    most = MAX_GRADE if max_grade is None else max_grade
    check_grades(grades, pairs=len(pool), most=most)
    for each in measures:
        pool.check_measure(each)
    values = np.zeros((len(measures), len(pool.topics), len(pool.runs)))
    graded = [each for each in measures if each.family not in COMPARED]
    lists = _lists(pool, grades, graded)
    if known is not None:
        lists = replace(lists, topic=known[0][known[1] > 0], best=known[1][known[1] > 0])
    for place, measure in enumerate(measures):
        if measure.family in COMPARED:
            values[place] = _compared(pool, grades, measure)
        else:
            values[place] = list_values(lists, measure, max_grade=max_grade)
    return values


def _lists(
    pool: Pool, grades: IntArray, measures: Sequence[Measure], counted: BoolArray | None = None
) -> GradedLists:
    last = last_rank(measures, pool.depth)
    lists = lists_of_pool(pool, grades, last=last, counted=counted)
    return replace(lists, lengths=pool.list_lengths) if need_lengths(measures) else lists


def expected_values(
    pool: Pool, *, grades: IntArray, measure: Measure, gains: FloatArray
) -> FloatArray:
    """Return the value of every topic and run where each grade stands for an expected gain.

    That is the value in expectation over assessors who err independently, as sums of gains and
    ERR are linear in every single document.

    Parameters
    ----------
    pool : Pool
    grades : ndarray of int64, shape (N,)
    measure : Measure
        Of the family gain or query.
    gains : ndarray of float64, shape (G + 1,)
        What to expect of a document of each grade: its utility, or of ERR the chance to stop.

    Returns
    -------
    ndarray of float64, shape (T, k)
    """
    pool.check_measure(measure)
    check_grades(grades, pairs=len(pool), most=len(gains) - 1)
    lists = _lists(pool, grades, [measure], (gains > 0.0)[grades])
    return _by_gain(lists, measure, gains)


def last_rank(measures: Sequence[Measure], depth: int) -> int:
    """Return the last rank that any of some measures counts in lists that are cut at a depth."""
    return max((min(each.cutoff or depth, depth) for each in measures), default=0)


def need_lengths(measures: Sequence[Measure]) -> bool:
    """Whether any of some measures weighs documents by how many there are in their list."""
    return any(each.family == "gain" and not each.is_by_rank for each in measures)


def list_values(lists: GradedLists, measure: Measure, *, max_grade: int | None) -> FloatArray:
    """Return the value of every topic and run, (T, k); of the families gain, ratio and query.

    `lists` go down to the measure's cutoff at least; no grade is above `max_grade`.
    """
    if measure.family == "ratio":
        return _ratio(lists, measure)
    if measure.family == "gain":
        return _by_gain(lists, measure, measure.utilities(np.arange(MAX_GRADE + 1)))
    if measure.family in COMPARED:
        raise MeasureError(f"{measure} compares grades with what runs say: give a pool of them")
    if max_grade is None:
        raise MeasureError(f"{measure} needs max_grade, the best grade of the scale")
    utilities, stopping = measure.utilities(np.arange(MAX_GRADE + 1)), KINDS[measure.name].stopping
    assert stopping is not None  # noqa: S101 - every kind of the family query has it
    return _by_gain(lists, measure, stopping(utilities, max_grade))


def _useful(lists: GradedLists, measure: Measure, gains: FloatArray) -> GradedLists:
    """The entries and documents that have any gain, the entries down to the cutoff."""
    useful = gains > 0.0
    counted = useful[lists.grade]
    if measure.cutoff is not None:
        counted &= lists.rank <= measure.cutoff
    known = np.flatnonzero(useful[lists.best])
    found = replace(lists, topic=lists.topic[known], best=lists.best[known])
    if counted.all():
        return found
    entries = np.flatnonzero(counted)
    return replace(
        found, cell=lists.cell[entries], rank=lists.rank[entries], grade=lists.grade[entries]
    )


def _by_gain(lists: GradedLists, measure: Measure, gains: FloatArray) -> FloatArray:
    useful = _useful(lists, measure, gains)
    gain = gains[useful.grade]
    if measure.family == "query":
        return _until_stopped(useful, gain)
    return useful.sums(useful.cell, _weights(measure, useful) * gain)


def _weights(measure: Measure, lists: GradedLists) -> FloatArray:
    """The weight of every entry, (e,)."""
    if measure.is_by_rank:
        return measure.weights(np.arange(1, lists.rank.max(initial=1) + 1))[lists.rank - 1]
    assert lists.lengths is not None  # noqa: S101 - `need_lengths`
    return measure.weights(lists.rank, lengths=lists.lengths.ravel()[lists.cell])


# ------------------------------------------------------------------------------------ ratios


def _ratio(lists: GradedLists, measure: Measure) -> FloatArray:
    gains = measure.utilities(np.arange(MAX_GRADE + 1))
    useful = _useful(lists, measure, gains)
    count = np.bincount(useful.topic, minlength=useful.topics)
    if measure.name == "nDCG":
        above = useful.sums(useful.cell, _weights(measure, useful) * gains[useful.grade])
        below = _ideal(useful, measure, gains)
    elif measure.name == "AP":
        above = useful.sums(useful.cell, (_places(useful.cell) + 1) / useful.rank)
        below = count.astype(np.float64)
    else:
        within = useful.rank <= count[useful.cell // useful.runs]
        above = useful.sums(useful.cell[within], np.ones(np.count_nonzero(within)))
        below = count.astype(np.float64)
    share = np.zeros_like(above)
    np.divide(above, below[:, None], out=share, where=below[:, None] > 0.0)
    return share


def _ideal(lists: GradedLists, measure: Measure, gains: FloatArray) -> FloatArray:
    """The DCG of the best list of every topic, of all its graded documents, (T,)."""
    gain = gains[lists.best]
    order = np.lexsort((-gain, lists.topic))
    topic = lists.topic[order]
    weights = measure.weights(_places(topic) + 1)
    return column_sums(topic, weights * gain[order], number=lists.topics)


def _places(group: IntArray) -> IntArray:
    """How many of the same group stand before each, of groups that ascend."""
    if not len(group):
        return group
    number = np.bincount(group)
    return np.arange(len(group)) - (np.cumsum(number) - number)[group]


# ------------------------------------------------------------------------- readers who stop


def _until_stopped(lists: GradedLists, gain: FloatArray) -> FloatArray:
    """Sum over documents of gain / rank times the chance to get there: rank by rank of all lists.

    The longest lists stand first, so that each step is about a beginning of them, and every entry
    is looked at once.
    """
    starts = np.flatnonzero(np.diff(lists.cell, prepend=-1))
    lengths = np.diff(starts, append=len(lists.cell))
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    value, going = np.zeros(len(starts)), np.ones(len(starts))
    for place in range(int(lengths.max(initial=0))):
        some = int(np.searchsorted(-lengths, -place, side="left"))
        at = starts[:some] + place
        value[:some] += going[:some] * gain[at] / lists.rank[at]
        going[:some] *= 1.0 - gain[at]
    values = np.zeros(lists.topics * lists.runs)
    values[lists.cell[starts]] = value
    return values.reshape(lists.topics, lists.runs)


# ---------------------------------------------------------------- grades and what runs say of them


def _compared(pool: Pool, grades: IntArray, measure: Measure) -> FloatArray:
    pair, runs, topics = pool.entry_pair, len(pool.runs), len(pool.topics)
    weights = pool.entry_weights(measure) * topics
    gained = weights * measure.entry_utilities(grades[pair], pool.predictions)
    cells = pool.topic[pair].astype(np.int64) * runs + pool.run
    return column_sums(cells, gained, number=topics * runs).reshape(topics, runs)
