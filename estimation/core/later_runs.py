"""Runs that arrive after a sample was drawn, estimated and ranked together with those of the pool.

Why such estimates are unbiased, and when they are not, stands in `collection`. Here they take
part in a round's ranking, from the same sample, so that differences have a covariance like all
others. A round is one of pairs, of documents or of preferences, several of pairs that are estimated
together, one of topics, or an active one.

What is said of a run of the pool alone, its value, interval, support and effective sample size, is
what is said without later runs, to the last bit. Verdicts, possible ranks and adjusted p-values
are not: with more runs there are more comparisons.

Documents that the sample does not reach
----------------------------------------
Documents that only later runs return were never eligible. The value of such a run is a lower
bound, its support is below 1, and a verdict against it is given only if it would hold even if all
of these documents had the best grade (see `slack`; under a measure of errors the same goes for
verdicts in its favor), for a guaranteed kind of interval as for ``student``. Under ratio measures
documents that only later runs return count for nobody else: the support of each later run is what
it would be if it had come alone. They may raise its value or lower it, so that verdicts allow for
both.

Of preferences the same goes for pairs of documents that no run of the pool returned together. How
much a pair counts for a run follows from its own list alone: from the ranks of the two documents,
and from how many documents it has.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np

from estimation.core.active.lists import Valued, make_frame
from estimation.core.active.rounds import ActiveRound
from estimation.core.arrays import BoolArray, FloatArray, IntArray, frozen
from estimation.core.carrying import carry_over, carry_part, find_pairs
from estimation.core.combining import Part, drawn_together, evaluate_together
from estimation.core.designs import Design
from estimation.core.drawn import Drawn
from estimation.core.draws import Sample
from estimation.core.evaluation import (
    EstimatorResult,
    Evaluation,
    MeasureResult,
    evaluate,
    evaluate_drawn,
    rank_again,
)
from estimation.core.interval_kinds import IntervalKind
from estimation.core.labels import LabelRows, pair_name, select_rows
from estimation.core.measures import PREFERENCE_MAX_GRADE, Measure
from estimation.core.out_of_reach import OutOfReach
from estimation.core.outlook import outlook_of
from estimation.core.pool import Pool
from estimation.core.preferences import part_names
from estimation.core.queries.designs import labeled_pairs
from estimation.core.rounds import TopicRound

OF_ONE_RUN = ("value", "se", "df", "low", "high", "unknown")
OF_TWO_RUNS = ("covariance", "expected")


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
    interval: IntervalKind = "student",
    predictions: FloatArray | None = None,
) -> Evaluation:
    """Estimate the runs of a pool and later ones from one sample, and rank them together.

    See the module's text. Predictions are fitted to the runs of the pool alone.

    Parameters
    ----------
    pool, design, sample, labels, measures, max_grade, batches, confidence, interval, predictions
        As for `evaluate`; predictions are of the pairs of `pool`.
    joined : Pool
        Of the same topics and depth, with all runs of `pool` and later ones.

    Returns
    -------
    Evaluation
        Of the runs of `joined`.

    Raises
    ------
    ValueError
        As `evaluate`; or if only one of `pool` and `joined` is of preferences, or `joined` is of
        other topics or of another depth, or lacks a run or a pair of `pool`.
    """
    place, best = place_of_pairs(pool, joined), _best_grade(joined, max_grade)
    used = design.batches if batches is None else batches
    outlook = outlook_of(
        pool, Drawn.of(pool, design, sample, used), labels, sampled=sample.pair, max_grade=best
    )
    alone = evaluate(
        pool,
        design,
        sample,
        labels=labels,
        measures=measures,
        max_grade=max_grade,
        batches=batches,
        confidence=confidence,
        interval=interval,
        predictions=predictions,
        outlook=outlook,
    )
    carried, moved, rows = carry_over(design, sample, labels, pool=joined, place=place)
    news = _News.of(joined, carried.size > 0.0, place)
    drawn = Drawn.of(joined, carried, moved, alone.batches)
    together = evaluate_drawn(
        joined,
        drawn,
        rows=select_rows(rows, sampled=moved.pair, prefix=drawn.pair, max_grade=best),
        measures=measures,
        max_grade=best,
        batches=alone.batches,
        confidence=confidence,
        interval=interval,
        predictions=None if predictions is None else news.of_all_pairs(predictions),
        fitted_runs=_positions(pool.runs, among=joined.runs),
        outlook=outlook.carried(place, len(joined)),
    )
    return news.merged(alone, together, best)


def evaluate_together_with_later_runs(
    pool: Pool,
    parts: Sequence[Part],
    *,
    joined: Pool,
    labels: LabelRows,
    measures: Sequence[Measure],
    max_grade: int,
    confidence: float = 0.95,
    interval: IntervalKind = "student",
) -> Evaluation:
    """Estimate the runs of a pool and later ones from several rounds over the pool.

    A pair is out of reach if none of the rounds could draw it; see the module's text.

    Parameters
    ----------
    pool, parts, labels, measures, max_grade, confidence, interval
        As for `evaluate_together`.
    joined : Pool
        As for `evaluate_with_later_runs`.

    Returns
    -------
    Evaluation
        Of the runs of `joined`.

    Raises
    ------
    ValueError
        As `evaluate_together`; or if `joined` does not go with `pool`.
    """
    place, best = place_of_pairs(pool, joined), _best_grade(joined, max_grade)
    asked: _Asked = {"measures": measures, "max_grade": max_grade, "confidence": confidence}
    drawn = drawn_together(pool, parts)
    outlook = outlook_of(pool, drawn, labels, sampled=drawn.pair, max_grade=best)
    alone = evaluate_together(
        pool, parts, labels=labels, interval=interval, outlook=outlook, **asked
    )
    together = evaluate_together(
        joined,
        [carry_part(part, pool=joined, place=place) for part in parts],
        labels=LabelRows(place[labels.pair], labels.grade),
        interval=interval,
        outlook=outlook.carried(place, len(joined)),
        **asked,
    )
    eligible = np.zeros(len(joined), dtype=np.bool_)
    eligible[place] = np.any([part.design.eligible for part in parts], axis=0)
    news = _News.of(joined, eligible, place)
    return news.merged(alone, together, best)


def part_over(part: Part, *, pool: Pool, joined: Pool, like: Design) -> Part:
    """Say an earlier round over the larger pool that a later round was drawn from.

    Pairs keep their probabilities. The others were out of its reach: their probability was 0, so
    that estimates from both rounds give them that of the later one (see `combining`).

    Parameters
    ----------
    part : Part
    pool : Pool
        What the part was drawn from.
    joined : Pool
        As for `evaluate_with_later_runs`.
    like : Design
        Of a round over `joined`. The part has no belief about pairs out of its reach; theirs is
        taken from here, so that it is what the mean of the rounds says of them.

    Raises
    ------
    ValueError
        If `joined` does not go with `pool`.
    """
    place = place_of_pairs(pool, joined)
    carried = carry_part(part, pool=joined, place=place)
    if part.design.belief is None or like.belief is None:
        return carried
    belief = like.belief.copy()
    belief[place] = part.design.belief
    return replace(carried, design=replace(carried.design, belief=frozen(belief)))


def evaluate_topics_with_later_runs(
    pool: Pool,
    drawn: TopicRound,
    *,
    joined: Pool,
    labels: LabelRows,
    measures: Sequence[Measure],
    max_grade: int,
    batches: int | None = None,
    confidence: float = 0.95,
) -> Evaluation:
    """Estimate the runs of a design of whole topics and later ones from the topics that were drawn.

    Within reach are the documents that are judged where their topic is drawn, topic by topic;
    which these are was known before the draw. A later run is estimated as any other run, its
    other documents being taken for useless: the value is a lower bound for sums of gains and for
    ERR, and the support is the share of the run's weight within reach. See the module's text.

    Parameters
    ----------
    pool, labels, measures, max_grade, batches, confidence
        As for `TopicRound.evaluate`.
    drawn : TopicRound
    joined : Pool
        As for `evaluate_with_later_runs`.

    Returns
    -------
    Evaluation
        Of the runs of the design and those that only `joined` has, in the order of `joined`.

    Raises
    ------
    ValueError
        As `evaluate_queries`; or if `joined` does not go with `pool`.
    """
    place = place_of_pairs(pool, joined)
    asked: _Asked = {"measures": measures, "max_grade": max_grade, "confidence": confidence}
    alone = drawn.evaluate(pool, labels=labels, batches=batches, **asked)
    design = drawn.design
    judged = np.zeros(len(joined), dtype=np.bool_)
    judged[place] = labeled_pairs(pool, runs=design.runs, depth=design.depth)
    outside = set(pool.runs) - set(design.runs)
    carried = TopicRound(
        replace(
            design,
            runs=tuple(tag for tag in joined.runs if tag not in outside),
            pool_digest=joined.digest,
        ),
        replace(drawn.sample, pool_digest=joined.digest),
    )
    together = carried.evaluate(
        joined,
        labels=LabelRows(place[labels.pair], labels.grade),
        batches=batches,
        judged=judged,
        **asked,
    )
    return _News.of(joined, judged, place).merged(alone, together, max_grade)


def evaluate_active_with_later_runs(
    pool: Pool,
    drawn: ActiveRound,
    *,
    joined: Pool,
    labels: LabelRows,
    measures: Sequence[Measure],
    max_grade: int,
    batches: int | None = None,
    confidence: float = 0.95,
) -> Evaluation:
    """Estimate the runs of an active round and later ones from the batches that were planned.

    Every document of the pool is within reach. What was planned, and how likely every document
    was, is a matter of the runs of the pool alone. The weights of judged documents are right for
    the total of any numbers that do not depend on the sample, however it was steered
    (`active.weights.sequential_weights`): for the ranks of later runs as for those of others. Under
    AP and Rprec, R is the number of relevant documents of the pool. See the module's text.

    Parameters
    ----------
    pool, labels, measures, max_grade, batches, confidence
        As for `ActiveRound.evaluate`.
    drawn : ActiveRound
    joined : Pool
        As for `evaluate_with_later_runs`.

    Returns
    -------
    Evaluation
        Of the runs of `joined`.

    Raises
    ------
    ValueError
        As `ActiveRound.evaluate`; or if `joined` does not go with `pool`.
    """
    valued = Valued(make_frame(joined), place_of_pairs(pool, joined))
    asked: _Asked = {"measures": measures, "max_grade": max_grade, "confidence": confidence}
    alone = drawn.evaluate(pool, labels=labels, batches=batches, **asked)
    together = drawn.evaluate(pool, labels=labels, batches=batches, valued=valued, **asked)
    news = _News.of(joined, valued.could_be_drawn, valued.place)
    return news.merged(alone, together, max_grade)


class _Asked(TypedDict):
    """What two evaluations are asked alike."""

    measures: Sequence[Measure]
    max_grade: int
    confidence: float


@dataclass(frozen=True, eq=False)
class _News:
    """What the sample does not reach of every run of a joined pool.

    ``place``: where the pairs of the pool stand among all; ``added``: all others.
    """

    place: IntArray
    added: BoolArray
    out: OutOfReach

    @classmethod
    def of(cls, joined: Pool, eligible: BoolArray, place: IntArray) -> "_News":
        added = np.ones(len(joined), dtype=np.bool_)
        added[place] = False
        return cls(place, added, OutOfReach.of(joined, eligible))

    def of_all_pairs(self, predictions: FloatArray) -> FloatArray:
        """Predictions of the pool's pairs; NaN for those that only later runs have."""
        every = np.full(len(self.out.pool), np.nan)
        every[self.place] = predictions
        return every

    def merged(self, alone: Evaluation, together: Evaluation, max_grade: int) -> Evaluation:
        """The joint evaluation, with what was said of each run of the pool alone at its place."""
        merged = map(self._merged, alone.results, together.results)
        return rank_again(
            replace(alone, results=tuple(merged)),
            self.out,
            added=self.added,
            max_grade=max_grade,
        )

    def _merged(self, alone: MeasureResult, together: MeasureResult) -> MeasureResult:
        measure, before = together.measure, _positions(alone.runs, among=together.runs)
        columns = _positions(together.runs, among=self.out.pool.runs)
        if measure.family == "ratio":
            support = self.out.support(measure, self.added)[columns]
            together = replace(together, support=support)
        return _with_numbers_of(alone, together, before)


def _positions(tags: Sequence[str], *, among: Sequence[str]) -> IntArray:
    place_of = {tag: index for index, tag in enumerate(among)}
    return np.array([place_of[tag] for tag in tags], dtype=np.int64)


def place_of_pairs(pool: Pool, joined: Pool) -> IntArray:
    """Where the pairs of a pool stand in a larger one; ValueError if that lacks one or a run."""
    if pool.is_of_preferences != joined.is_of_preferences:
        raise ValueError("joined must be of preferences if the pool is, and of documents if not")
    if (pool.topics, pool.depth) != (joined.topics, joined.depth):
        raise ValueError("joined must have the topics and the depth of the pool")
    missing = sorted(set(pool.runs) - set(joined.runs))
    if missing:
        raise ValueError(f"joined lacks the run {missing[0]!r} of the pool")
    place = find_pairs(
        pool.topic,
        part_names(pool),
        among_topic=joined.topic,
        among_docno=part_names(joined),
    )
    if np.any(place < 0):
        lacking = pair_name(int(np.argmax(place < 0)), pool)
        raise ValueError(f"joined lacks {lacking} of the pool")
    return place


def _best_grade(pool: Pool, max_grade: int) -> int:
    return PREFERENCE_MAX_GRADE if pool.is_of_preferences else max_grade


def _with_numbers_of(alone: MeasureResult, together: MeasureResult, at: IntArray) -> MeasureResult:
    """The joint result, with what was said of each run of the pool alone at its places."""

    def kept(before: FloatArray, now: FloatArray) -> FloatArray:
        numbers = now.copy()
        numbers[at] = before
        return numbers

    def estimator(name: str, now: EstimatorResult) -> EstimatorResult:
        before = alone.estimators[name]
        of_one: dict[str, Any] = {
            each: kept(getattr(before, each), getattr(now, each)) for each in OF_ONE_RUN
        }
        among = np.ix_(at, at)
        for each in OF_TWO_RUNS:
            of_two, known = getattr(now, each), getattr(before, each)
            if of_two is not None:
                of_one[each] = of_two.copy()
                of_one[each][among] = known
        return replace(now, **of_one)

    by_topic = together.by_topic.copy()
    by_topic[:, at] = alone.by_topic

    return replace(
        together,
        estimators={name: estimator(name, now) for name, now in together.estimators.items()},
        support=kept(alone.support, together.support),
        effective_sample_size=kept(alone.effective_sample_size, together.effective_sample_size),
        by_topic=by_topic,
    )
