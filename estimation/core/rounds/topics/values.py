"""Exact values of topics whose documents are all judged, and how far assessors disagree on them.

A topic's value is a function of the mean utilities of its documents. What disagreement between
assessors does to it, with d_ij the derivative of run j's value by the mean of document i, s2_i the
variance of its r_i judgments:

gain
    L_j = sum lambda_ij v_i, so that Cov(L_j, L_l) = sum lambda_ij lambda_il Var(v_i) exactly, and
    s2_i / r_i estimates Var(v_i) without bias.
ERR
    L is linear in every single document, with the derivative
    d_i = prod_{l<i} (1 - g_l) (1/i - sum_{l>i} g_l/l prod_{i<m<l} (1 - g_m)). So L has no bias,
    and sum d_i^2 s2_i / r_i does not underestimate its variance: d_i does not depend on document
    i's own judgments, and the inequality of Efron and Stein (1981) holds.
ratio
    By the delta method, with the derivatives that `estimation.core.estimates.ratios` takes.

A document with one judgment has the s2 that it lets one expect (`labels`); of ratios, those with
more stand for it. What the grades of all judgments let one expect is told beside it: documents that
agree by chance leave nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import BoolArray, FloatArray, IntArray, index_array
from ...data.labels import LabelRows, pair_labels
from ...estimates.ratios import judged_ratios
from ...measures.table import document_gains
from .designs import QueryError, judged_depth, labeled_pairs
from .moments import entry_sums, err_slopes, err_values, ranked_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...data.pool import Pool
    from ...measures.table import Measure


@dataclass(frozen=True, eq=False)
class JudgedTopics:
    """Values of k runs on u topics whose documents are all judged.

    ``deviation`` is disagreement between assessors: sum over a topic's rows of d_j d_l estimates
    the covariance that it gives the topic's values of runs j and l. ``likely`` is what grades let
    one expect of these, added up over the topics; None where nothing is measured.
    """

    value: FloatArray  # (u, k)
    deviation: FloatArray  # (m, k)
    topic: IntArray  # (m,): the topic of each row, as a position among the u
    likely: FloatArray | None  # (k, k)
    noise_measured: bool  # whether any document has two judgments; without, there are no rows


def judged_topics(
    pool: Pool,
    *,
    labels: LabelRows,
    measure: Measure,
    max_grade: int,
    topics: IntArray | None = None,
    runs: Sequence[str] | None = None,
    judged: BoolArray | None = None,
    shared: BoolArray | None = None,
) -> JudgedTopics:
    """Return the value of every run on topics whose documents are all judged.

    The gain of a pair with several judgments is the mean of its gains, never of its grades. ERR
    is then the expectation over assessors who judge documents independently. The ratios AP, nDCG
    and Rprec count relevant documents, and rank the best ones, over the whole pool of a topic.

    Parameters
    ----------
    pool : Pool
    labels : LabelRows
        Rows of any pairs in any order; those that no value depends on are left out.
    measure : Measure
        Of the family gain, ratio or query.
    max_grade : int
        The best grade of the scale.
    topics : ndarray of int64, shape (u,), optional
        Positions in the pool's topics, each once; by default all.
    runs : sequence of str, optional
        By default all runs of the pool.
    judged : ndarray of bool, shape (N,), optional
        Which pairs are judged where their topic is; the others count as useless. All of them say
        what a judgment lets one expect: the same ones whichever runs are estimated, so that a run's
        numbers do not hang on others. By default all that the measure depends on.
    shared : ndarray of bool, shape (N,), optional
        Pairs that say whether disagreement was measured. By default all that these runs need.

    Raises
    ------
    QueryError
        If a grade is off the scale, a pair is not in the pool, a document that the measure
        depends on has no judgment, the message naming the first, or `judged` is not of the pool.
    MeasureError
        If topics that are judged whole do not tell the measure.
    """
    every = len(pool.topics)
    wanted = np.arange(every) if topics is None else topics
    chosen = index_array(wanted, below=every, name="topics", error=QueryError)
    tags = pool.runs if runs is None else tuple(runs)
    gains = document_gains(measure, max_grade=max_grade)
    rows = _checked_rows(pool, labels, max_grade)
    needed = needed_pairs(pool, runs=tags, depth=judged_depth(pool, [measure]), judged=judged)
    inside = np.isin(pool.topic, chosen)
    needed &= inside
    sharing = np.bincount(rows.pair, minlength=len(pool))[
        (needed if shared is None else shared) & inside
    ]
    said, rows = rows, rows.chosen(needed[rows.pair])
    number = np.bincount(rows.pair, minlength=len(pool))
    _check_complete(pool, needed & (number == 0))
    place = np.full(len(pool.topics), -1)
    place[chosen] = np.arange(len(chosen))
    if measure.family == "ratio":
        value, deviation, topic, likely = _ratio_values(pool, tags, measure, rows)
    else:
        compute = _err_values if measure.family == "query" else _linear_values
        among = inside & (needed if judged is None else judged | needed)
        found = _Gains.of(pool, said.chosen(among[said.pair]), measure, gains, needed=needed)
        value, slopes = compute(pool, tags, measure, found)
        deviation, topic, likely = found.disagreement(pool, slopes)
    repeated = bool(np.any(sharing >= 2))
    return JudgedTopics(value[chosen], deviation, place[topic], likely, repeated)


def needed_pairs(
    pool: Pool, *, runs: Sequence[str], depth: int | None, judged: BoolArray | None
) -> BoolArray:
    """Return `labeled_pairs`, of `judged` ones alone if there is such a limit, shape (N,).

    Raises
    ------
    QueryError
        If `judged` is not one truth value per pair of the pool.
    """
    needed = labeled_pairs(pool, runs=runs, depth=depth)
    if judged is None:
        return needed
    if judged.shape != needed.shape or judged.dtype != np.bool_:
        given = f"{judged.dtype} of the shape {judged.shape}"
        raise QueryError(f"judged must be {len(needed)} truth values, one per pair, not {given}")
    return np.asarray(needed & judged)


# ------------------------------------------------------------------------------------ families

Found = tuple[FloatArray, FloatArray]  # values (T, k); slopes (m, k) of the documents in dispute


@dataclass(frozen=True, eq=False)
class _Gains:
    """Mean gain of every pair, and 0 as the last entry for no document; documents in dispute.

    ``deviation``: root of the estimated variance of the mean gain of each pair of ``disputed``;
    ``likely``: the same as grades let one expect it; None where nothing is measured.
    """

    gain: FloatArray  # (N + 1,)
    disputed: IntArray  # (m,)
    deviation: FloatArray  # (m,)
    likely: FloatArray | None  # (m,)

    @classmethod
    def of(
        cls, pool: Pool, rows: LabelRows, measure: Measure, gains: FloatArray, *, needed: BoolArray
    ) -> _Gains:
        """Those of needed pairs, from the judgments of these and of others."""
        judged, place = np.unique(rows.pair, return_inverse=True)
        found = pair_labels(LabelRows(place, rows.grade), pairs=len(judged), measure=measure)
        found = found.with_expected()
        unit = gains[-1] / measure.utilities(np.array([len(gains) - 1]))[0]
        gain = np.zeros(len(pool) + 1)
        gain[judged] = np.where(needed[judged], found.mean * unit, 0.0)
        noise, likely = found.noise, found.likely_noise
        some = noise > 0.0 if likely is None else (noise > 0.0) | (likely > 0.0)
        disputed = np.flatnonzero(some & needed[judged])
        deviation = unit * np.sqrt(noise[disputed])
        usual = None if likely is None else unit * np.sqrt(likely[disputed])
        return cls(gain, judged[disputed], deviation, usual)

    def disagreement(
        self, pool: Pool, slopes: FloatArray
    ) -> tuple[FloatArray, IntArray, FloatArray | None]:
        """`JudgedTopics.deviation`, the topics of its rows in the pool, and `likely`."""
        deviation = slopes * self.deviation[:, None]
        noisy = np.flatnonzero(self.deviation > 0.0)
        topic = pool.topic[self.disputed[noisy]].astype(np.int64)
        if self.likely is None:
            return deviation[noisy], topic, None
        usual = slopes * self.likely[:, None]
        return deviation[noisy], topic, np.einsum("mj,ml->jl", usual, usual)


def _linear_values(pool: Pool, tags: Sequence[str], measure: Measure, gains: _Gains) -> Found:
    columns, topics = [pool.run_index(tag) for tag in tags], len(pool.topics)
    gained = pool.entry_weights(measure) * topics * gains.gain[pool.entry_pair]
    values = entry_sums(pool, gained)[:, columns]
    return values, pool.weights(measure, gains.disputed).toarray()[:, columns] * topics


def _err_values(pool: Pool, tags: Sequence[str], measure: Measure, gains: _Gains) -> Found:
    slots = [ranked_pairs(pool, tag, depth=measure.cutoff) for tag in tags]
    values = np.stack([err_values(each, gains.gain) for each in slots], axis=1)
    slopes = np.zeros((len(gains.disputed), len(tags)))
    if len(gains.disputed):
        for column, each in enumerate(slots):
            by_pair = np.zeros(len(pool) + 1)
            by_pair[each] = err_slopes(each, gains.gain)
            slopes[:, column] = by_pair[gains.disputed]
    return values, slopes


def _ratio_values(
    pool: Pool, tags: Sequence[str], measure: Measure, rows: LabelRows
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray | None]:
    columns = [pool.run_index(tag) for tag in tags]
    found = judged_ratios(pool, measure, rows=rows)
    likely = None if found.likely is None else found.likely[np.ix_(columns, columns)]
    return found.value[:, columns], found.deviation[:, columns], found.topic, likely


# ------------------------------------------------------------------------------ what is checked


def _checked_rows(pool: Pool, labels: LabelRows, max_grade: int) -> LabelRows:
    """The rows by (pair, grade)."""
    pair = index_array(labels.pair, below=len(pool), name="labels: pair", error=QueryError)
    most = max_grade + 1
    grade = index_array(labels.grade, below=most, name="labels: grade", error=QueryError)
    order = np.lexsort((grade, pair))
    return LabelRows(pair[order], grade[order])


def _check_complete(pool: Pool, missing: BoolArray) -> None:
    if missing.any():
        pair = int(np.argmax(missing))
        topic, docno = pool.topics[pool.topic[pair]], pool.docno[pair].decode()
        raise QueryError(
            f"topic {topic!r}, docno {docno!r} has no judgment"
            f" ({np.count_nonzero(missing)} are missing)"
        )
