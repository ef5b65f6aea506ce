"""Samples of ours as files that others read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data.labels import LabelError, LabelRows, pair_name
from ..sampling.designs import DesignError
from ..sampling.methods import SAMPLING_METHODS
from .arguments import check_drawn, check_kind, check_pool

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from ..data.pool import Pool
    from ..data.trec import Place
    from ..rounds.rounds import Round


def write_prels(place: Place, pool: Pool, drawn: Round, *, labels: LabelRows) -> int:
    """Write the judged pairs of a round as prels, with their probabilities; return how many.

    The columns are topic, docno, grade, method (1: sampled) and the probability to be among all
    batches, which `read_prels` and programs for prels read. Rounds whose batches are planned from
    judgments have no such file: one over the probability with which a pair came, given that it had
    not come before, would make every value wrong.

    Raises
    ------
    DesignError
        If batches were planned from the judgments of those before.
    LabelError
        If a drawn pair has no judgment, or more than one, for which prels have no place.

    Examples
    --------
    >>> pool = pool_runs({"a": rank_scores({"1": {"d1": 2.0, "d2": 1.0}})}, depth=2)
    >>> design = make_design(pool, measure="P@2", budget=2, goal="absolute")
    >>> drawn = draw_round(pool, design, seed="any text")
    >>> labels = Qrels.of({"1": {"d1": 1, "d2": 0}}).labels(pool)
    >>> write_prels("our.prels", pool, drawn, labels=labels)
    2
    >>> read_prels("our.prels").grade
    array([1, 0])
    """
    check_pool(pool)
    check_drawn(drawn)
    check_kind(labels, LabelRows, name="labels", see="Qrels.labels", error=LabelError)
    if SAMPLING_METHODS[drawn.method].draws == "batches":
        told = "nobody knows with which probability a pair comes into any of their batches"
        raise DesignError(f"Rounds by {drawn.method} do not fit into prels: {told}.")
    served = drawn.served(pool)
    lines = prels_lines(pool, served.pair, _grades(pool, labels), served.probability)
    with open(place, "w", encoding="utf-8") as file:
        file.writelines(lines)
    return len(lines)


def prels_lines(
    pool: Pool, pair: IntArray, grades: FloatArray, probability: FloatArray
) -> list[str]:
    """Return the lines of prels.

    Parameters
    ----------
    pool : Pool
        Of documents.
    pair : ndarray of int64, shape (n,)
        The pairs that were judged, as positions in the pool.
    grades : ndarray of float64, shape (N,)
        The grade of every pair of the pool; NaN where there is none.
    probability : ndarray of float64, shape (n,)
        That each of the n was to be judged.

    Raises
    ------
    LabelError
        If one of the pairs has no grade.
    """
    rows = zip(
        pair.tolist(),
        pool.topic[pair].tolist(),
        pool.docno[pair].tolist(),
        grades[pair].tolist(),
        probability.tolist(),
        strict=True,
    )
    lines = []
    for at, topic, docno, grade, chance in rows:
        if np.isnan(grade):
            raise LabelError(f"{pair_name(at, pool)} was drawn but has no judgment")
        lines.append(f"{pool.topics[topic]} {docno.decode()} {int(grade)} 1 {chance!r}\n")
    return lines


def strata_lines(
    pool: Pool, pair: IntArray, grades: FloatArray, inclusion: FloatArray
) -> list[str]:
    """Return the lines of qrels with strata: all pairs within reach, -1 where none was judged.

    A stratum is made of the pairs of a topic that had equal chances; its number is the same in
    all topics, 1 for the likeliest. Given how many of a stratum were drawn, every set of so many
    was as likely as any other, whatever drew them one by one or so many of all. So who counts, as
    readers of such files do, estimates without bias. Where that count is 0 nothing can be counted:
    whether it is says nothing of grades, but the file would say that its pairs are worth nothing.

    Parameters
    ----------
    pool, pair, grades
        As in `prels_lines`.
    inclusion : ndarray of float64, shape (N,)
        That each pair of the pool was to be judged; 0 of those out of reach.

    Raises
    ------
    DesignError
        If there is a stratum without a judged pair: chances were not equal, or too few were drawn.
    LabelError
        If one of the pairs has no grade.

    Examples
    --------
    >>> pool = pool_runs({"a": rank_scores({"1": {"d1": 2.0, "d2": 1.0}})}, depth=2)
    >>> strata_lines(pool, np.array([1]), np.array([np.nan, 2.0]), np.array([0.5, 0.5]))
    ['1 0 d1 1 -1\\n', '1 0 d2 1 2\\n']
    """
    missing = pair[np.isnan(grades[pair])]
    if len(missing):
        raise LabelError(f"{pair_name(int(missing[0]), pool)} was drawn but has no judgment")
    within = np.flatnonzero(inclusion > 0.0)
    chances, stratum = np.unique(-np.round(inclusion[within], 12), return_inverse=True)
    judged = np.zeros(len(pool), dtype=bool)
    judged[pair] = True
    place = pool.topic[within].astype(np.int64) * len(chances) + stratum
    number = np.bincount(place)
    empty = int(np.count_nonzero((number > 0) & (np.bincount(place, weights=judged[within]) == 0)))
    if empty:
        raise DesignError(
            f"pairs had {len(chances):,} different chances, and of {empty:,} of the "
            f"{int(np.count_nonzero(number)):,} sets of pairs of a topic with equal chances none "
            "was judged"
        )
    rows = zip(
        pool.topic[within].tolist(),
        pool.docno[within].tolist(),
        (stratum + 1).tolist(),
        np.where(judged[within], np.nan_to_num(grades[within]), -1.0).tolist(),
        strict=True,
    )
    return [
        f"{pool.topics[topic]} 0 {docno.decode()} {which} {int(grade)}\n"
        for topic, docno, which, grade in rows
    ]


def _grades(pool: Pool, labels: LabelRows) -> FloatArray:
    """The grade of every pair of the pool; NaN where there is none."""
    twice = np.flatnonzero(np.bincount(labels.pair, minlength=len(pool)) > 1)
    if len(twice):
        name = pair_name(int(twice[0]), pool)
        raise LabelError(f"{name} has several judgments; prels have place for one")
    grades = np.full(len(pool), np.nan)
    grades[labels.pair] = labels.grade
    return grades
