"""Runs that arrive after a sample was drawn, estimated and ranked together with those of the pool.

Why such estimates are unbiased, and when they are not, stands in `collection`. Here they take
part in a round's ranking, from one sample, so that differences have a covariance like all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from estimation.core.arrays import FloatArray, IntArray
from estimation.core.collection import carry_over, find_pairs
from estimation.core.designs import Design
from estimation.core.draws import Sample
from estimation.core.evaluation import (
    EstimatorResult,
    Evaluation,
    MeasureResult,
    evaluate,
    ranking_of,
)
from estimation.core.labels import LabelRows
from estimation.core.measures import Measure
from estimation.core.pool import Pool
from estimation.core.reach import Reach

OF_ONE_RUN = ("value", "se", "df", "low", "high")


def evaluate_with_later_runs(
    pool: Pool,
    design: Design,
    sample: Sample,
    *,
    joined: Pool,
    labels: LabelRows,
    measures: Sequence[Measure],
    max_grade: int,
    batches: int | None = None,
    confidence: float = 0.95,
) -> Evaluation:
    """Estimate the runs of a pool and later ones from one sample, and rank them together.

    What is said of a run of the pool alone, its value, interval, support and effective sample
    size, is what `evaluate` says without later runs, to the last bit. Verdicts, possible ranks
    and adjusted p-values are not: with more runs there are more comparisons.

    Documents that only later runs return were never eligible. The value of such a run is a lower
    bound, its support is below 1, and a verdict against it is given only if it would hold even
    if all of these documents had the best grade (see `Reach.unreached`; under a measure of errors
    the same goes for verdicts in its favor). Under ratio measures documents that only later runs
    return count for nobody else: the support of each later run is what it would be if it had
    come alone.

    Parameters
    ----------
    pool, design, sample, labels, measures, max_grade, batches, confidence
        As for `evaluate`.
    joined : Pool
        Of the same topics and depth, with all runs of `pool` and later ones.

    Returns
    -------
    Evaluation
        Of the runs of `joined`.

    Raises
    ------
    ValueError
        As `evaluate`; or if `joined` is of preferences, of other topics or of another depth, or
        lacks a run or a pair of `pool`.
    """
    place = _place_of_pairs(pool, joined)
    carried, moved, rows = carry_over(design, sample, labels, pool=joined, place=place)
    alone = evaluate(
        pool,
        design,
        sample,
        labels=labels,
        measures=measures,
        max_grade=max_grade,
        batches=batches,
        confidence=confidence,
    )
    together = evaluate(
        joined,
        carried,
        moved,
        labels=rows,
        measures=measures,
        max_grade=max_grade,
        batches=batches,
        confidence=confidence,
    )
    parts = _Parts.of(pool, joined, carried, place)
    results = [
        parts.merged(first, second, max_grade, confidence)
        for first, second in zip(alone.results, together.results, strict=True)
    ]
    return replace(together, results=tuple(results))


@dataclass(frozen=True, eq=False)
class _Parts:
    """Which runs are those of the pool, and how much of every run the sample reaches.

    ``own``: share of eligible pairs among those of the pool and of the run itself, shape (k,).
    """

    before: IntArray
    reach: Reach
    own: FloatArray

    @classmethod
    def of(cls, pool: Pool, joined: Pool, carried: Design, place: IntArray) -> "_Parts":
        place_of = {tag: index for index, tag in enumerate(joined.runs)}
        is_new = np.ones(len(joined), dtype=np.bool_)
        is_new[place] = False
        added = np.bincount(joined.run[is_new[joined.entry_pair]], minlength=len(joined.runs))
        pairs = len(place) + added
        return cls(
            before=np.array([place_of[tag] for tag in pool.runs], dtype=np.int64),
            reach=Reach.of_design(joined, carried.size > 0.0),
            own=1.0 - (pairs - np.count_nonzero(carried.size)) / pairs,
        )

    def merged(
        self, alone: MeasureResult, together: MeasureResult, max_grade: int, confidence: float
    ) -> MeasureResult:
        measure = together.measure
        if measure.family == "ratio":
            support = np.minimum(self.reach.share(measure), self.own)
            together = replace(together, support=support)
        open_part = self.reach.unreached(measure, max_grade)
        open_part[self.before] = 0.0
        return _ranked(_with_numbers_of(alone, together, self.before), open_part, confidence)


def _place_of_pairs(pool: Pool, joined: Pool) -> IntArray:
    if pool.is_of_preferences or joined.is_of_preferences:
        raise ValueError("later runs are not estimated from preferences between documents")
    if (pool.topics, pool.depth) != (joined.topics, joined.depth):
        raise ValueError("joined must have the topics and the depth of the pool")
    missing = sorted(set(pool.runs) - set(joined.runs))
    if missing:
        raise ValueError(f"joined lacks the run {missing[0]!r} of the pool")
    place = find_pairs(pool.topic, pool.docno, among_topic=joined.topic, among_docno=joined.docno)
    if np.any(place < 0):
        at = int(np.argmax(place < 0))
        topic, docno = pool.topics[int(pool.topic[at])], pool.docno[at].decode()
        raise ValueError(f"joined lacks docno {docno!r} of topic {topic!r} of the pool")
    return place


def _with_numbers_of(alone: MeasureResult, together: MeasureResult, at: IntArray) -> MeasureResult:
    """The joint result, with what was said of each run of the pool alone at its places."""

    def kept(before: FloatArray, now: FloatArray) -> FloatArray:
        numbers = now.copy()
        numbers[at] = before
        return numbers

    def estimator(name: str, now: EstimatorResult) -> EstimatorResult:
        before = alone.estimators[name]
        numbers = {each: kept(getattr(before, each), getattr(now, each)) for each in OF_ONE_RUN}
        return replace(now, **numbers)

    return replace(
        together,
        estimators={name: estimator(name, now) for name, now in together.estimators.items()},
        support=kept(alone.support, together.support),
        effective_sample_size=kept(alone.effective_sample_size, together.effective_sample_size),
    )


def _ranked(result: MeasureResult, open_part: FloatArray, confidence: float) -> MeasureResult:
    """Rank again: what is open of a run speaks for it, or against it if small values are good."""
    by_run = open_part[:, None] if result.measure.lower_is_better else open_part[None, :]
    slack = np.broadcast_to(by_run, (len(open_part), len(open_part)))
    ranking = ranking_of(
        result.measure, result.estimate, result.runs, confidence, slack=np.asarray(slack)
    )
    return replace(result, ranking=ranking)
