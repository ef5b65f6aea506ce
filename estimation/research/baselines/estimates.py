"""Values of runs from the pairs that a baseline judged.

Where unjudged pairs count as grade 0 nothing is estimated: it is the measure of the grades that are
known. Where pairs were sampled, Horvitz-Thompson estimators serve sums of gains, AP and Rprec.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from estimation.core.arrays import (
    BoolArray,
    FloatArray,
    Int32Array,
    IntArray,
    column_sums,
    share_of,
)
from estimation.core.data.labels import check_grades
from estimation.core.data.pool import Pool
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import Measure, parse_measure
from estimation.research.baselines.selections import Selection
from estimation.research.simulation import true_topic_values

# Rounding of R^, a sum of 1/pi, must not lose the rank that equals it.
ROUNDING = 1e-9


def estimate(
    pool: Pool, selection: Selection, *, grades: IntArray, measure: Measure | str
) -> FloatArray:
    """Estimate the value of every run: the mean of `topic_estimates`.

    Returns
    -------
    ndarray of float64, shape (k,)
    """
    values = topic_estimates(pool, selection, grades=grades, measure=measure)
    return np.asarray(values.mean(axis=0), dtype=np.float64)


def topic_estimates(
    pool: Pool, selection: Selection, *, grades: IntArray, measure: Measure | str
) -> FloatArray:
    """Estimate the value of every run for every topic of a selection.

    If all probabilities are 1, unjudged pairs count as grade 0: `true_topic_values`. Otherwise,
    linear measures: sum over judged i of lambda v_i / pi_i. With y_i = 1 for relevant pairs and
    R^ = sum y_i / pi_i (Li and Kanoulas 2017, section 3.2): ``AP`` is the sum over judged i, l
    with rank(l) <= rank(i) of y_i y_l / (pi_il rank(i)), pi_ii = pi_i, over R^; ``Rprec`` the sum
    of y_i / pi_i over ranks up to R^, over R^. Both are 0 where R^ is 0.

    Parameters
    ----------
    pool, selection : Pool, Selection
        The selection must have been made for this pool.
    grades : ndarray of int64, shape (N,)
        Grade of every pair; only those of judged pairs matter.
    measure : Measure or str
        Of the family gain or ratio.

    Returns
    -------
    ndarray of float64, shape (topics of the selection, k)

    Raises
    ------
    MeasureError
        If the measure is none of these, or it is nDCG and the pairs were sampled.
    ValueError
        If the selection or the grades do not fit the pool.
    """
    grade = _judged_grades(pool, selection, grades)
    asked = _measure_of(measure)
    if selection.is_certain:
        known = np.zeros(len(pool), dtype=np.int64)
        known[selection.pair] = grade
        return true_topic_values(pool, grades=known, measure=asked)[selection.topics]
    return _sampled(pool, selection, grade, asked)[selection.topics]


def values_from_grades(pool: Pool, *, grades: IntArray, measure: Measure | str) -> FloatArray:
    """Return the value of every run for every topic when all grades are known.

    The mean over topics, ``.mean(axis=0)``, is the value of the run in the campaign. Parameters
    and errors as for `topic_estimates`.

    Returns
    -------
    ndarray of float64, shape (T, k)
    """
    return true_topic_values(pool, grades=grades, measure=_measure_of(measure))


def relevant_estimates(pool: Pool, selection: Selection, *, grades: IntArray) -> FloatArray:
    """Estimate how many documents are relevant for each topic of a selection: R^.

    Returns
    -------
    ndarray of float64, shape (topics of the selection,)
    """
    relevant = _judged_grades(pool, selection, grades) >= 1
    return _relevant(pool, selection, relevant)[selection.topics]


def covariance(
    pool: Pool, selection: Selection, *, grades: IntArray, measure: Measure | str
) -> FloatArray:
    """Estimate the sampling covariance of `estimate`.

    ``deep``: S (1 - m/T)/m with S the covariance of the m topics' values, for every measure;
    infinite if m = 1 < T. Otherwise, for linear measures, sum over judged i, l of (pi_il - pi_i
    pi_l)/(pi_il pi_i pi_l) y_i y_l. That is unbiased if no pi_il is 0, and too large on the
    diagonal if some are, as when a topic has one draw. 0 for a method that does not sample: its
    error is bias.

    Returns
    -------
    ndarray of float64, shape (k, k)

    Raises
    ------
    MeasureError
        If the pairs were sampled and the measure is not linear.
    ValueError
        As `topic_estimates`.
    """
    k, number = len(pool.runs), len(pool.topics)
    if len(selection.topics) < number:
        values = topic_estimates(pool, selection, grades=grades, measure=measure)
        many = len(values)
        if many == 1:
            return np.full((k, k), np.inf)
        spread = np.atleast_2d(np.cov(values, rowvar=False))
        return np.asarray(spread * (1.0 - many / number) / many, dtype=np.float64)
    if selection.is_certain:
        return np.zeros((k, k))
    grade, asked = _judged_grades(pool, selection, grades), _measure_of(measure)
    if asked.family != "gain":
        raise MeasureError(f"{asked} has no covariance from pairs that a baseline samples")
    return _sampling_covariance(pool, selection, grade, asked)


def _measure_of(measure: Measure | str) -> Measure:
    found = parse_measure(measure) if isinstance(measure, str) else measure
    if found.family not in ("gain", "ratio"):
        judged = "the pairs that a baseline judges"
        raise MeasureError(f"{found} is not estimated from {judged}; sums of gains are")
    return found


def _judged_grades(pool: Pool, selection: Selection, grades: IntArray) -> IntArray:
    if selection.pool_digest != pool.digest:
        raise ValueError("the selection belongs to another pool")
    check_grades(grades, pairs=len(pool))
    return grades[selection.pair]


# ----------------------------------------------------------------------------------- entries


@dataclass(frozen=True, eq=False)
class _Entries:
    """The entries of some judged pairs: place in the selection, in the pool, topic x run, rank."""

    at: IntArray
    entry: IntArray
    cell: IntArray
    rank: Int32Array

    @classmethod
    def of(cls, pool: Pool, selection: Selection, kept: IntArray) -> "_Entries":
        pairs = selection.pair[kept]
        first = pool.indptr[pairs]
        counts = pool.indptr[pairs + 1] - first
        at = np.repeat(np.arange(len(pairs)), counts)
        entry = np.arange(len(at)) + (first - (np.cumsum(counts) - counts))[at]
        cell = pool.topic[pairs][at].astype(np.int64) * len(pool.runs) + pool.run[entry]
        return cls(kept[at], entry, cell, pool.rank[entry])

    def sorted(self) -> "_Entries":
        """By cell, then rank."""
        order = np.lexsort((self.rank, self.cell))
        return _Entries(self.at[order], self.entry[order], self.cell[order], self.rank[order])

    def sums(self, pool: Pool, values: FloatArray) -> FloatArray:
        """Add values up by cell, shape (T, k)."""
        shape = (len(pool.topics), len(pool.runs))
        return column_sums(self.cell, values, number=shape[0] * shape[1]).reshape(shape)


def _sampled(pool: Pool, selection: Selection, grade: IntArray, measure: Measure) -> FloatArray:
    if measure.family == "gain":
        return _linear(pool, selection, grade, measure)
    if measure.name not in ("AP", "Rprec"):
        raise MeasureError(f"{measure} is not estimated from a sample: the best ranking is unknown")
    relevant = measure.utilities(grade) > 0.0
    if measure.name == "Rprec":
        return _r_precision(pool, selection, relevant)
    return _average_precision(pool, selection, relevant, measure.cutoff or pool.depth)


def _linear(pool: Pool, selection: Selection, grade: IntArray, measure: Measure) -> FloatArray:
    utility = measure.utilities(grade)
    entries = _Entries.of(pool, selection, np.flatnonzero(utility))
    weights = pool.entry_weights(measure)[entries.entry] * len(pool.topics)
    return entries.sums(pool, weights * (utility / selection.inclusion)[entries.at])


def _relevant(pool: Pool, selection: Selection, relevant: BoolArray) -> FloatArray:
    topics = pool.topic[selection.pair[relevant]]
    return column_sums(topics, 1.0 / selection.inclusion[relevant], number=len(pool.topics))


# ------------------------------------------------------------------------------------ ratios


def _average_precision(
    pool: Pool, selection: Selection, relevant: BoolArray, cutoff: int
) -> FloatArray:
    entries = _Entries.of(pool, selection, np.flatnonzero(relevant)).sorted()
    above = np.zeros(len(entries.at))
    bounds = np.searchsorted(entries.cell, np.arange(len(pool.topics) + 1) * len(pool.runs))
    for topic, block in enumerate(selection.block):
        rows = slice(int(bounds[topic]), int(bounds[topic + 1]))
        group = selection.group[entries.at[rows]]
        above[rows] = _above(entries.cell[rows], group, selection.joint[block])
    share = (1.0 / selection.inclusion[entries.at] + above) / entries.rank
    share[entries.rank > cutoff] = 0.0
    return share_of(entries.sums(pool, share), of=_relevant(pool, selection, relevant)[:, None])


def _above(cell: IntArray, group: IntArray, joint: FloatArray) -> FloatArray:
    """For each entry the sum of 1/pi_il over the entries before it in its cell."""
    if not len(cell):
        return np.zeros(0)
    members = np.zeros((len(cell), len(joint)))
    members[np.arange(len(cell)), group] = 1.0
    before = np.cumsum(members, axis=0) - members
    first = np.searchsorted(cell, cell)
    with np.errstate(divide="ignore"):
        inverse = np.where(joint > 0.0, 1.0 / joint, 0.0)
    return np.asarray(((before - before[first]) * inverse[group]).sum(axis=1))


def _r_precision(pool: Pool, selection: Selection, relevant: BoolArray) -> FloatArray:
    entries = _Entries.of(pool, selection, np.flatnonzero(relevant))
    number = _relevant(pool, selection, relevant)
    inside = entries.rank <= number[entries.cell // len(pool.runs)] + ROUNDING
    share = np.where(inside, 1.0 / selection.inclusion[entries.at], 0.0)
    return share_of(entries.sums(pool, share), of=number[:, None])


# -------------------------------------------------------------------------------- covariance


def _sampling_covariance(
    pool: Pool, selection: Selection, grade: IntArray, measure: Measure
) -> FloatArray:
    kept = np.flatnonzero(measure.utilities(grade))
    pairs, pi = selection.pair[kept], selection.inclusion[kept]
    scaled = sparse.diags_array(measure.utilities(grade[kept]) / pi) @ pool.weights(measure, pairs)
    block, group = selection.block[pool.topic[pairs]], selection.group[kept]
    own = 1.0 - pi
    total = np.zeros((len(pool.runs), len(pool.runs)))
    for place, joint in enumerate(selection.joint):
        rows = np.flatnonzero(block == place)
        if not len(rows):
            continue
        dependence = _dependence(joint, group[rows], pi[rows])
        own[rows] -= np.diag(dependence)[group[rows]]
        member = (np.ones(len(rows)), (group[rows], np.arange(len(rows))))
        sums = sparse.csr_array(member, shape=(len(joint), len(rows))) @ scaled[rows]
        total += sums.T @ (dependence @ sums.toarray())
    total += (scaled.T @ (sparse.diags_array(own) @ scaled)).toarray()
    return np.asarray((total + total.T) / 2.0, dtype=np.float64)


def _dependence(joint: FloatArray, group: IntArray, pi: FloatArray) -> FloatArray:
    """(pi_il - pi_i pi_l) / pi_il between groups that have pairs, 0 where pi_il is 0."""
    inclusion = np.zeros(len(joint))
    inclusion[group] = pi
    independent = np.multiply.outer(inclusion, inclusion)
    return np.divide(joint - independent, joint, out=np.zeros_like(joint), where=joint > 0.0)
