"""What files for other programs have of a sample: the judged pairs, one grade each, and chances."""

import hashlib
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray, IntArray
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.rounds.combining import RoundsTogether
from estimation.core.rounds.rounds import PairRound
from estimation.models import EstimateSet, Round
from estimation.services import collections, together
from estimation.services.report_files.kinds import NO_GRADE, NotForThisRound, no_one_chance


@dataclass(frozen=True, eq=False)
class SampledGrades:
    """``pair`` are the judged pairs, ``grades`` and ``inclusion`` of all pairs of the pool."""

    pool: Pool
    pair: IntArray
    grades: FloatArray
    inclusion: FloatArray


def sampled(row: Round, shown: EstimateSet) -> SampledGrades:
    """The sample that the estimates rest on, with the probabilities of just its batches.

    Raises NotForThisRound where such files cannot tell of it.
    """
    if why := no_one_chance(row):
        raise NotForThisRound(why)
    found = collections.gather(row, together.behind(row, shown)).collection
    if found.pool.is_of_preferences:
        raise NotForThisRound(NO_GRADE)
    if not isinstance(found.drawn, PairRound | RoundsTogether):
        raise TypeError(f"no sample of pairs: {type(found.drawn).__name__}")
    drawn = found.drawn.drawn(found.pool.topic)
    grades = one_of_each(found.labels, found.pool, key=row.pool.digest if row.pool else "")
    return SampledGrades(found.pool, drawn.pair, grades, drawn.inclusion)


def one_of_each(labels: LabelRows, pool: Pool, *, key: str) -> FloatArray:
    """One grade for every pair of the pool, NaN where there is none.

    Such files have room for one whole grade. Of several labels a die falls that knows nothing of
    grades: the pair's name and the key are hashed. So what is estimated from the file is on average
    what all labels say (their mean, by which we count), where a rounded mean, the best, or the
    first that came would be off.
    """
    order = np.lexsort((labels.grade, labels.pair))
    pair, grade = labels.pair[order], labels.grade[order]
    places, first, count = np.unique(pair, return_index=True, return_counts=True)
    chosen = np.full(len(pool), np.nan)
    for at, start, among in zip(places.tolist(), first.tolist(), count.tolist(), strict=True):
        chosen[at] = grade[start + (_die(pool, at, key, among) if among > 1 else 0)]
    return chosen


def _die(pool: Pool, pair: int, key: str, sides: int) -> int:
    name = pool.topics[int(pool.topic[pair])].encode() + b" " + bytes(pool.docno[pair])
    return int.from_bytes(hashlib.sha256(key.encode() + b"/" + name).digest()[:8]) % sides
