"""What drawn pairs say of every run: estimates by all estimators, with their intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..data.labels import LabelRows, select_rows
from ..estimates.by_topic import variance_by_topic
from ..estimates.difference import difference_estimate
from ..estimates.ratios import estimate_ratios
from ..estimates.terms import Terms, linear_terms
from ..estimates.topic_sums import TopicSums
from ..inference.drawn_at_once import following, of_sample, share_followed
from ..inference.fitting import fit_outlook, fit_residuals
from ..inference.guarantees import RunBounds, guarantee
from ..inference.ideal_lists import IdealLists
from ..inference.outlook import Outlook, OutlookOver
from ..inference.ratio_knowledge import RatioKnowledge, knowledge_at
from ..inference.ratio_outlook import AtOutlook
from ..inference.reach import Reach
from ..inference.unseen import unseen, unseen_residuals
from ..measures.kinds import MeasureError
from .comparison import Comparison
from .limits import limits_by_squares, limits_of_ratios, limits_of_sums
from .results import Asked, EstimatorResult, Evaluation, MeasureResult

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from ..data.pool import Pool
    from ..data.scope import Scope
    from ..estimates.drawn import Drawn
    from ..estimates.ratio_labels import RatioEstimate
    from ..estimates.totals import DifferenceEstimate, Totals
    from ..inference.uncertainty import Unseen
    from ..measures.table import Measure


def estimates_of_pairs(
    scope: Scope, drawn: Drawn, asked: Asked, *, sampled: IntArray, batches: int
) -> Evaluation:
    """Estimate every measure for every run of a scope from drawn pairs and their judgments.

    What the judgments let one expect, of pairs and of what predictions leave over, is fitted where
    the sample was drawn: to the runs of the sampled pool, as far as they are known.

    Parameters
    ----------
    scope : Scope
    drawn : Drawn
        Of the N sampled pairs.
    asked : Asked
        `Asked.max_grade` is the best grade of the judgments.
    sampled : ndarray of int64
        The pairs that judgments may be of, ascending: also those of later batches.
    batches : int
        Number of batches that were drawn, as a fact for the result.
    """
    rows = select_rows(
        asked.labels,
        sampled=sampled,
        prefix=drawn.pair,
        max_grade=asked.max_grade,
        pool=scope.sampled,
    )
    question = _Question.of(scope, drawn, rows, asked)
    return Evaluation(
        batches=batches,
        judged_pairs=len(drawn.pair),
        judgments=len(rows.pair),
        draws=drawn.draws,
        confidence=asked.confidence,
        results=tuple(question.answer(measure) for measure in asked.measures),
        look=asked.look,
    )


@dataclass(frozen=True, eq=False)
class _Found:
    """Estimates by estimator, what is expected beside some, and what else a result holds."""

    estimates: dict[str, Totals]
    unseen: dict[str, Unseen]
    primary: str
    by_topic: FloatArray
    noise_measured: bool
    variance_by_topic: FloatArray | None = None
    ratio_bias: FloatArray | None = None
    relevant_found: IntArray | None = None
    guarantee: RunBounds | None = None
    ratio_knowledge: RatioKnowledge | None = None

    def limits(self, name: str, confidence: float, highest: float) -> EstimatorResult:
        """Return what an estimator says, with intervals that allow for all that is known."""
        estimate, unseen = self.estimates[name], self.unseen.get(name)
        if self.ratio_knowledge is not None:
            return limits_of_ratios(estimate, self.ratio_knowledge, confidence, highest)
        if unseen is not None:
            return limits_of_sums(estimate, unseen, confidence, highest)
        return limits_by_squares(estimate, confidence, highest)


@dataclass(frozen=True, eq=False)
class _Question:
    """What is asked of every measure; `over`, `outlook` and `reach` are of the scope's pairs."""

    scope: Scope
    drawn: Drawn
    over: Drawn
    rows: LabelRows
    asked: Asked
    outlook: Outlook
    reach: Reach
    comparison: Comparison

    @classmethod
    def of(cls, scope: Scope, drawn: Drawn, rows: LabelRows, asked: Asked) -> _Question:
        over = drawn.over(scope)
        if asked.outlook is not None:
            outlook = asked.outlook.over(scope)
        elif scope.sampled is not None:
            fitted = fit_outlook(scope.sampled, drawn, rows, max_grade=asked.max_grade)
            outlook = fitted.over(scope)
        else:
            outlook = fit_outlook(scope.pool, over, rows, max_grade=asked.max_grade)
        reach = Reach(scope.pool, over.pair, over.inclusion)
        comparison = Comparison.of(scope, asked, over.inclusion > 0.0, judged=over.pair, rows=rows)
        return cls(scope, drawn, over, rows, asked, outlook, reach, comparison)

    @cached_property
    def topic(self) -> IntArray:
        """Of each sampled pair."""
        return self.scope.pool.topic[self.over.pair].astype(np.int64)

    def answer(self, measure: Measure) -> MeasureResult:
        asked, pool = self.asked, self.scope.pool
        found = self._found(measure)
        highest = measure.largest_value(max_grade=asked.max_grade, depth=pool.depth)
        estimators = {
            name: found.limits(name, asked.at_this_look, highest) for name in found.estimates
        }
        if found.guarantee is not None:
            most = self.reach.largest_values(measure, asked.max_grade)
            estimators[found.primary] = _guaranteed(
                estimators[found.primary], found.guarantee, asked.at_this_look, most
            )
        return self.comparison.result(
            measure,
            pool.runs,
            estimators,
            found.primary,
            effective_sample_size=self.reach.effective_sample_size(measure),
            label_noise_measured=found.noise_measured,
            by_topic=found.by_topic,
            variance_by_topic=found.variance_by_topic,
            ratio_bias=found.ratio_bias,
            relevant_found=found.relevant_found,
            interval="student" if found.guarantee is None else asked.interval,
            outlook=self.outlook,
        )

    def _found(self, measure: Measure) -> _Found:
        if measure.family == "query":
            raise MeasureError(f"{measure} is estimated from rounds of whole topics only")
        return self._ratio(measure) if measure.family == "ratio" else self._linear(measure)

    def _linear(self, measure: Measure) -> _Found:
        pool, drawn = self.scope.pool, self.over
        terms = linear_terms(pool, measure, pairs=drawn.pair, rows=self.rows)
        labels = terms.labels.mean
        sums = TopicSums.of_found(terms.found, self.topic, len(pool.topics))
        by_topic = sums.of(labels * drawn.multiplier)
        estimates, primary = drawn.estimates(terms), drawn.primary
        missed = {primary: unseen(self.reach, drawn, self.outlook, measure=measure)}
        predictions, sampled = self.asked.predictions, self.scope.sampled
        if predictions is not None and sampled is not None and measure.family == "gain":
            helped, missed["di"] = self._difference(terms, measure, sampled, predictions)
            estimates, primary, by_topic = {**estimates, "di": helped}, "di", helped.by_topic
        bound = guarantee(
            self.asked.interval,
            pool=pool,
            drawn=drawn,
            terms=terms,
            value=estimates[primary].value,
            measure=measure,
            max_grade=self.asked.max_grade,
        )
        return _Found(
            estimates,
            missed,
            primary,
            by_topic,
            terms.noise_measured,
            variance_by_topic=self._variance_by_topic(measure, terms, sums),
            guarantee=bound,
        )

    def _variance_by_topic(
        self, measure: Measure, terms: Terms, sums: TopicSums
    ) -> FloatArray | None:
        if measure.family != "gain" or self.over.counts is not None:
            return None
        return variance_by_topic(sums, terms.labels.mean, self.over.probability)

    def _difference(
        self, terms: Terms, measure: Measure, sampled: Pool, predictions: FloatArray
    ) -> tuple[DifferenceEstimate, Unseen]:
        """The estimate by the help of predictions, and what may be missing of it."""
        scope, over = self.scope, self.over
        helped = difference_estimate(
            scope.pool,
            measure=measure,
            pairs=over.pair,
            labels=terms.labels,
            inclusion=over.inclusion,
            predictions=scope.spread(predictions, np.nan),
            fitted_runs=scope.positions(sampled.runs),
        )
        left = terms.labels.mean - helped.expected[over.pair]
        largest = measure.max_utility(self.asked.max_grade)
        fitted = fit_residuals(sampled, self.drawn, left, predictions=predictions, largest=largest)

        def moments(pairs: IntArray) -> FloatArray:
            return fitted.moments(scope.origin[pairs])

        left_over = unseen_residuals(
            self.reach, over, moments, measure=measure, predicted=helped.expected
        )
        return helped, left_over

    def _ratio(self, measure: Measure) -> _Found:
        pool, drawn = self.scope.pool, self.over
        at, found = _estimated(pool, measure, drawn=drawn, rows=self.rows, outlook=self.outlook)
        further = of_sample(at, measure, self.outlook, drawn=drawn, rows=self.rows)
        if further is not None:
            found = following(found, further, self._followed(measure, found, further))
        of_lists = None
        if found.parts is not None and at.factor.any():
            ideal = IdealLists.of(pool, measure, drawn, self.rows, self.outlook)
            of_lists = ideal.covariance(found.parts)
        return _Found(
            estimates={"ht": found.estimate},
            unseen={},
            primary="ht",
            by_topic=found.by_topic,
            noise_measured=found.noise_measured,
            ratio_bias=found.bias,
            relevant_found=found.found,
            ratio_knowledge=knowledge_at(at, measure, found, of_lists=of_lists),
        )

    def _followed(self, measure: Measure, found: RatioEstimate, further: FloatArray) -> float:
        """How far the runs of the round follow the second order: the same, whoever is asked for."""
        sampled, pool = self.scope.sampled, self.scope.pool
        if sampled is None or sampled is pool:
            return share_followed(found, further)
        if set(sampled.runs) <= set(pool.runs):
            return share_followed(found, further, self.scope.positions(sampled.runs))
        outlook = self.outlook.sampled if isinstance(self.outlook, OutlookOver) else self.outlook
        drawn, rows = self.drawn, self.rows
        at, of_round = _estimated(sampled, measure, drawn=drawn, rows=rows, outlook=outlook)
        alone = of_sample(at, measure, outlook, drawn=drawn, rows=rows)
        return 0.0 if alone is None else share_followed(of_round, alone)


def _estimated(
    pool: Pool, measure: Measure, *, drawn: Drawn, rows: LabelRows, outlook: Outlook
) -> tuple[AtOutlook, RatioEstimate]:
    at = AtOutlook.of(pool, measure, drawn, outlook)
    bias, more = at.bias_by_topic(), at.more
    found = estimate_ratios(pool, measure, drawn=drawn, rows=rows, expected_bias=bias, more=more)
    return at, found


def _guaranteed(
    student: EstimatorResult, guarantee: RunBounds, confidence: float, most: FloatArray
) -> EstimatorResult:
    """The same with the guarantee's intervals, as far as values can lie: between 0 and `most`.

    An estimate can come out above `most`; its interval then ends at the estimate.
    """
    values = guarantee.values
    return replace(
        student,
        low=np.maximum(student.value - values.below(confidence), 0.0),
        high=np.minimum(student.value + values.above(confidence), np.maximum(student.value, most)),
        difference_bound=guarantee.differences,
    )
