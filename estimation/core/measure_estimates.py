"""What a sample says of one measure: the estimates of all estimators, before any interval."""

from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray, IntArray
from estimation.core.difference import DifferenceEstimate, difference_estimate
from estimation.core.drawn import Drawn
from estimation.core.estimators import Estimate, topic_contributions
from estimation.core.guarantees import Guarantee, guarantee
from estimation.core.interval_kinds import IntervalKind
from estimation.core.labels import LabelRows
from estimation.core.measures import Measure, MeasureError
from estimation.core.outlook import Outlook
from estimation.core.pool import Pool
from estimation.core.ratio_knowledge import RatioKnowledge, ratio_knowledge
from estimation.core.ratios import estimate_ratios
from estimation.core.reach import Reach
from estimation.core.residuals import fit_residuals
from estimation.core.terms import Terms, linear_terms
from estimation.core.unseen import Unseen, unseen, unseen_residuals


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of every measure; see `evaluation.evaluate_drawn`."""

    max_grade: int
    confidence: float
    interval: IntervalKind
    predictions: FloatArray | None
    fitted_runs: IntArray | None
    outlook: Outlook


@dataclass(frozen=True, eq=False)
class Found:
    """Estimates by estimator, what is expected beside some, and what else `MeasureResult` holds."""

    estimates: dict[str, Estimate]
    unseen: dict[str, Unseen]
    primary: str
    by_topic: FloatArray
    noise_measured: bool
    ratio_bias: FloatArray | None = None
    relevant_found: IntArray | None = None
    guarantee: Guarantee | None = None
    ratio_knowledge: RatioKnowledge | None = None


def find(
    reach: Reach, drawn: Drawn, rows: LabelRows, measure: Measure, question: Question
) -> Found:
    """Estimate a measure for every run of the pool.

    Raises
    ------
    MeasureError
        If only rounds of whole topics can be asked for the measure, or the pool lacks what it is
        about.
    """
    if measure.family == "query":
        raise MeasureError(f"{measure} is estimated from rounds of whole topics only")
    if measure.family == "ratio":
        return _ratio(reach.pool, drawn, rows, measure, question.outlook)
    return _linear(reach, drawn, rows, measure, question)


def _linear(
    reach: Reach, drawn: Drawn, rows: LabelRows, measure: Measure, question: Question
) -> Found:
    pool = reach.pool
    terms = linear_terms(pool, measure, pairs=drawn.pair, rows=rows)
    by_topic = topic_contributions(
        terms.weights,
        terms.labels.mean * drawn.multiplier,
        topic=pool.topic[drawn.pair].astype(np.int64),
        topics=len(pool.topics),
    )
    estimates, primary = drawn.estimates(terms), drawn.primary
    missed = {primary: unseen(reach, drawn, question.outlook, measure=measure)}
    predictions = question.predictions
    if predictions is not None and measure.family == "gain":
        helped = _difference(pool, drawn, terms, measure, question, predictions)
        left = terms.labels.mean - helped.expected[drawn.pair]
        residuals = fit_residuals(pool, drawn, left, predictions=predictions)
        missed["di"] = unseen_residuals(reach, drawn, residuals, measure=measure)
        estimates, primary, by_topic = {**estimates, "di": helped}, "di", helped.by_topic
    return Found(
        estimates,
        missed,
        primary,
        by_topic,
        terms.noise_measured,
        guarantee=guarantee(
            question.interval,
            pool=pool,
            drawn=drawn,
            terms=terms,
            value=estimates[primary].value,
            measure=measure,
            max_grade=question.max_grade,
        ),
    )


def _difference(
    pool: Pool,
    drawn: Drawn,
    terms: Terms,
    measure: Measure,
    question: Question,
    grades: FloatArray,
) -> DifferenceEstimate:
    return difference_estimate(
        pool,
        measure=measure,
        pairs=drawn.pair,
        labels=terms.labels,
        inclusion=drawn.inclusion,
        predictions=grades,
        fitted_runs=question.fitted_runs,
    )


def _ratio(pool: Pool, drawn: Drawn, rows: LabelRows, measure: Measure, outlook: Outlook) -> Found:
    found = estimate_ratios(pool, measure, drawn=drawn, rows=rows)
    return Found(
        estimates={"ht": found.estimate},
        unseen={},
        primary="ht",
        by_topic=found.by_topic,
        noise_measured=found.noise_measured,
        ratio_bias=found.bias,
        relevant_found=found.found,
        ratio_knowledge=ratio_knowledge(pool, measure, drawn=drawn, outlook=outlook, found=found),
    )
