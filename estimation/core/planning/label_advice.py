"""What one, two or three labels per pair would have given for the same work, from a judged sample.

A label of a pair that has one already costs as much as the first label of another pair: whoever
gives it reads the document too. So the work is the number of labels, and more labels of each pair
mean fewer pairs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from ..arrays import FloatArray, IntArray, check_confidence
from ..data.labels import LabelRows, PairLabels, select_rows
from ..data.pool import Pool
from ..estimates.drawn import Drawn, check_sample
from ..estimates.terms import linear_terms
from ..measures.table import Measure
from ..sampling.designs import Design
from ..sampling.samples import Sample
from .label_planning import JudgedSample, predicted_variances

METHODS = ("poisson", "priority", "iid")
NUMBERS = (1, 2, 3)
"""Labels per pair that are compared."""


@dataclass(frozen=True)
class Choice:
    """What so many labels per pair would give.

    Attributes
    ----------
    labels : int
        Labels per pair.
    pairs : float
        Pairs that the work pays for; not more than there are to sample.
    half_width : float or None
        Expected half width of the interval of the middle run, in the measure's unit. None if the
        work does not reach for the pairs that are certain to be sampled, or the variance that the
        sample suggests is not positive.
    """

    labels: int
    pairs: float
    half_width: float | None


@dataclass(frozen=True)
class LabelComparison:
    """Numbers of labels per pair, compared for the work that was spent on a sample.

    Attributes
    ----------
    work : int
        Labels given to the sampled pairs.
    repeated_pairs : int
        Pairs that were to have two labels or more and have them: what the comparison rests on.
        Which pairs these are was decided at random.
    choices : tuple of Choice
        By number of labels; none if no pair was labeled twice.
    """

    work: int
    repeated_pairs: int
    choices: tuple[Choice, ...]


def supports(design: object, measure: Measure) -> bool:
    """Return whether labels can be compared for the design and the measure."""
    return isinstance(design, Design) and design.method in METHODS and measure.family == "gain"


def compare_labels(
    pool: Pool,
    design: Design,
    sample: Sample,
    *,
    labels: LabelRows,
    wanted: IntArray,
    measure: Measure,
    max_grade: int,
    batches: int,
    numbers: Sequence[int] = NUMBERS,
    confidence: float = 0.95,
) -> LabelComparison:
    """Predict half widths for the labels there are, spent on fewer or more labels per pair.

    Variances are those of `predicted_variances` with pair_cost 0 and label_cost 1. The optimum of
    two-stage sampling, r* = sqrt(c_p / c_l * within / between), is 0 then: where every pair is
    uncertain, one label per pair is best. More are better only where certain pairs, or a pool that
    is judged completely, leave nothing else to spend labels on.

    Parameters
    ----------
    pool, design, sample, labels, measure, max_grade, batches, confidence
        As for `evaluation.evaluate`; design and measure must be such that `supports` is true.
    wanted : ndarray of int64, shape (len(sample),)
        Labels that each sampled pair was to have, decided at random (`extra_labels`). Only pairs
        that were to have two say how much assessors differ; labels that came in some other way
        count for the mean only.
    numbers : sequence of int
        Labels per pair to compare, each at least 1.

    Raises
    ------
    ValueError
        If design or measure are not supported, `wanted` has another shape, or a number is out of
        range.
    LabelError
        As `evaluate`.
    """
    _check(design, sample, measure, wanted, confidence)
    check_sample(pool, design, sample)
    drawn = Drawn.of(design, sample, batches, topic=pool.topic)
    rows = select_rows(labels, sampled=sample.pair, prefix=drawn.pair, max_grade=max_grade)
    work = len(rows.pair)
    terms = linear_terms(pool, measure, pairs=drawn.pair, rows=rows)
    planned = _as_planned(terms.labels, wanted[np.searchsorted(sample.pair, drawn.pair)])
    repeated = int(np.count_nonzero(planned.number >= 2))
    if repeated == 0:
        return LabelComparison(work, 0, ())
    judged = JudgedSample(
        weights=terms.weights,
        labels=planned,
        probability=drawn.probability,
        counts=drawn.counts,
        expected=None if drawn.counts is not None else _expected(design, sample, drawn, batches),
    )
    there = float((1.0 / drawn.inclusion[drawn.pair]).sum())
    choices = (_choice(judged, number, work, there, confidence) for number in numbers)
    return LabelComparison(work, repeated, tuple(choices))


def _check(
    design: Design, sample: Sample, measure: Measure, wanted: IntArray, confidence: float
) -> None:
    if not supports(design, measure):
        raise ValueError(f"labels are not compared for {measure} and the method {design.method!r}")
    if wanted.shape != sample.pair.shape:
        raise ValueError(f"wanted has the shape {wanted.shape}, not {sample.pair.shape}")
    check_confidence(confidence)


def _as_planned(labels: PairLabels, wanted: IntArray) -> PairLabels:
    """Pairs that were to have one label do not measure disagreement, whatever they have."""
    return replace(labels, number=np.where(wanted >= 2, labels.number, 1))


def _expected(design: Design, sample: Sample, drawn: Drawn, batches: int) -> FloatArray:
    """c * size of the drawn pairs; for a census, the least c that takes all with certainty."""
    constant = design.step(batches)
    if len(sample.constants):
        constant = float(sample.constants[batches - 1])
    if math.isinf(constant):
        constant = 1.0 / float(design.size[design.eligible].min())
    return np.asarray(constant * design.size[drawn.pair], dtype=np.float64)


def _choice(
    judged: JudgedSample, number: int, work: int, there: float, confidence: float
) -> Choice:
    pairs = min(work / number, there)
    variance = predicted_variances(
        judged, labels_per_pair=[number], budget=pairs * number, pair_cost=0.0, label_cost=1.0
    )
    middle = float(np.median(variance))
    if not (math.isfinite(middle) and middle > 0.0):
        return Choice(number, pairs, None)
    quantile = float(special.ndtri(0.5 + confidence / 2.0))
    return Choice(number, pairs, quantile * math.sqrt(middle))
