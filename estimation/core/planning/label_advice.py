"""What one, two or three labels per pair would have given for the same work, from a judged sample.

A label of a pair that has one already costs as much as the first label of another pair: whoever
gives it reads the document too. So the work is the number of labels, and more labels of each pair
mean fewer pairs. With r labels on every sampled pair, a Horvitz-Thompson estimate from a Poisson
sample has the variance sum_i (1 - pi_i) / pi_i w_i^2 v_i^2 + sum_i w_i^2 s2_i / (r pi_i): what
pairs differ in, and what assessors differ in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, special

from ..arrays import BoolArray, FloatArray, IntArray, SparseMatrix, check_confidence
from ..data.entries import weights_of
from ..data.labels import LabelRows, PairLabels, pair_labels, select_rows
from ..estimates.drawn import check_sample
from ..estimates.estimators import importance_sampling
from ..sampling.designs import Design
from ..sampling.methods import SAMPLING_METHODS
from ..sampling.probabilities import drawn_probabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..data.pool import Pool
    from ..estimates.drawn import Drawn
    from ..measures.table import Measure
    from ..rounds.rounds import PairRound
    from ..sampling.samples import Sample

NUMBERS = (1, 2, 3)
"""Labels per pair that are compared."""
BISECTIONS = 100
NEAR = 1e-13  # of a root: there, sums in floating point say which side it is
FINEST = 1e-15
Scales = dict[float, tuple[float, FloatArray] | None]
ROUNDING = 1e-9


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
    if not isinstance(design, Design) or measure.family != "gain":
        return False
    return SAMPLING_METHODS[design.method].draws == "pairs" and not design.by_topic


def compare_labels(
    pool: Pool,
    part: PairRound,
    *,
    labels: LabelRows,
    wanted: IntArray,
    measures: Sequence[Measure],
    max_grade: int,
    numbers: Sequence[int] = NUMBERS,
    confidence: float = 0.95,
) -> tuple[LabelComparison, ...]:
    """Predict half widths for the labels there are, spent on fewer or more labels per pair.

    Variances are those of `predicted_variances`. The optimum of two-stage sampling, r* = sqrt(c_p /
    c_l * within / between), is 0 where labels are all that costs: where every pair is uncertain,
    one label per pair is best. More are better only where certain pairs, or a pool that is judged
    completely, leave nothing else to spend labels on.

    Parameters
    ----------
    pool, labels, measures, max_grade, confidence
        As for `evaluation.evaluate`.
    part : PairRound
        What was drawn, with the batches that are judged; design and measures must be such that
        `supports` is true.
    wanted : ndarray of int64, shape (n,)
        Labels that each sampled pair was to have, decided at random (`extra_labels`). Only pairs
        that were to have two say how much assessors differ; labels that came in some other way
        count for the mean only.
    numbers : sequence of int
        Labels per pair to compare, each at least 1.

    Returns
    -------
    tuple of LabelComparison
        One per measure.

    Raises
    ------
    ValueError
        If design or a measure are not supported, `wanted` has another shape, or a number is out of
        range.
    LabelError
        As `evaluate`.
    """
    design, sample = part.design, part.sample
    _check(design, sample, measures, wanted, confidence)
    check_sample(pool, design, sample)
    drawn = part.drawn(pool.topic)
    rows = select_rows(labels, sampled=sample.pair, prefix=drawn.pair, max_grade=max_grade)
    used = np.zeros(len(pool), dtype=np.bool_)
    used[drawn.pair] = True
    wanted = wanted[used[sample.pair]]
    expected = None if drawn.counts is not None else _expected(part, drawn)
    there = float((1.0 / drawn.inclusion[drawn.pair]).sum())
    work, scales = len(rows.pair), Scales()

    def compared(measure: Measure) -> LabelComparison:
        found = pair_labels(rows, pairs=len(drawn.pair), measure=measure)
        planned = _as_planned(found, wanted)
        repeated = int(np.count_nonzero(planned.number >= 2))
        if repeated == 0:
            return LabelComparison(work, 0, ())
        weights = weights_of(pool, measure, drawn.pair, wanted=_counting(planned, drawn))
        judged = JudgedSample(
            weights,
            planned,
            drawn.probability,
            drawn.counts,
            expected,
            scales=scales,
            repeated=_chance_of_two(rows, len(drawn.pair)),
        )
        choices = (_choice(judged, number, work, there, confidence) for number in numbers)
        return LabelComparison(work, repeated, tuple(choices))

    return tuple(map(compared, measures))


def _check(
    design: Design,
    sample: Sample,
    measures: Sequence[Measure],
    wanted: IntArray,
    confidence: float,
) -> None:
    for measure in measures:
        if not supports(design, measure):
            about = f"{measure} and the method {design.method!r}"
            raise ValueError(f"labels are not compared for {about}")
    if wanted.shape != sample.pair.shape:
        raise ValueError(f"wanted has the shape {wanted.shape}, not {sample.pair.shape}")
    check_confidence(confidence)


def _as_planned(labels: PairLabels, wanted: IntArray) -> PairLabels:
    """Pairs that were to have one label do not measure disagreement, whatever they have."""
    return replace(labels, number=np.where(wanted >= 2, labels.number, 1))


def _counting(labels: PairLabels, drawn: Drawn) -> BoolArray:
    """Pairs whose weights are in a sum: of a Poisson sample only some of those with two labels."""
    some = (labels.mean > 0.0) | (labels.variance > 0.0)
    return some if drawn.counts is not None else some & (labels.number >= 2)


def _chance_of_two(rows: LabelRows, pairs: int) -> FloatArray | None:
    if rows.repeated is None:
        return None
    found = np.ones(pairs)
    found[rows.pair] = rows.repeated
    return found


def _expected(part: PairRound, drawn: Drawn) -> FloatArray:
    """c * size of the drawn pairs; for a census, the least c that takes all with certainty."""
    design, constants = part.design, part.sample.constants
    constant = float(constants[part.used - 1]) if len(constants) else design.step(part.used)
    if math.isinf(constant):
        constant = 1.0 / float(design.size[design.eligible].min())
    return np.asarray(constant * design.size[drawn.pair], dtype=np.float64)


def _choice(
    judged: JudgedSample, number: int, work: int, there: float, confidence: float
) -> Choice:
    pairs = min(work / number, there)
    variance = predicted_variances(judged, labels=number, pairs=pairs)
    middle = math.nan if variance is None else float(np.median(variance))
    if not (math.isfinite(middle) and middle > 0.0):
        return Choice(number, pairs, None)
    quantile = float(special.ndtri(0.5 + confidence / 2.0))
    return Choice(number, pairs, quantile * math.sqrt(middle))


# ------------------------------------------------------------------------ predicted variances


@dataclass(frozen=True, eq=False)
class JudgedSample:
    """Judged pairs and how they were sampled: what predictions are made from.

    Attributes
    ----------
    weights : csr_array, shape (n, k)
        Rows of the sampled pairs.
    labels : PairLabels
        Of the same pairs. Either all have two labels or more, or it was decided at random which
        (`extra_labels`); some have.
    probability : ndarray of float64, shape (n,)
        ``poisson``: pi_i. ``iid``: Q_i, the probability of one draw.
    counts : ndarray of int64, shape (n,), optional
        ``iid`` only: how often each pair was drawn.
    expected : ndarray of float64, shape (n,), optional
        ``poisson`` only: c * size, so that pi = min(1, c * size): says at which smaller sample a
        certain pair becomes uncertain. By default certain pairs remain so at every size.
    scales : dict
        By numbers of pairs, at which scale the design expects so many, with the probabilities
        then, or None; shared by samples that differ in weights and labels alone.
    repeated : ndarray of float64, shape (n,), optional
        The chance of each pair to have two labels or more. By default the same for all.
    """

    weights: SparseMatrix
    labels: PairLabels
    probability: FloatArray
    counts: IntArray | None = None
    expected: FloatArray | None = None
    scales: Scales = field(default_factory=dict)
    repeated: FloatArray | None = None

    def inclusion(self, scale: float) -> FloatArray:
        """Return the probability of each pair to be in a sample of `scale` times the size."""
        if self.counts is not None:
            return drawn_probabilities(self.probability, draws=scale * float(self.counts.sum()))
        if self.expected is None:
            larger = np.minimum(1.0, scale * self.probability)
            return np.where(self.probability < 1.0, larger, 1.0)
        return np.where(np.isinf(self.expected), 1.0, np.minimum(1.0, scale * self.expected))

    @cached_property
    def chance(self) -> FloatArray:
        """The probabilities with which the sample was drawn."""
        return self.inclusion(1.0)

    @cached_property
    def squares(self) -> SparseMatrix:
        """Squares of the weights, shape (k, n)."""
        return self.weights.power(2).T

    @cached_property
    def telling(self) -> tuple[IntArray, SparseMatrix]:
        """The m pairs of which a moment is not 0, and squares of their weights, shape (k, m)."""
        utility, spread = self.moments
        some = np.flatnonzero((utility != 0.0) | (spread != 0.0))
        return some, self.weights[some].power(2).T

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Unbiased v^2 and s2 from pairs with two labels or more, 0 for the others."""
        labels = self.labels
        repeated = labels.number >= 2
        share = self.repeated if self.repeated is not None else float(repeated.mean())
        spread = np.where(repeated, labels.variance, 0.0) / share
        utility = np.where(repeated, labels.mean**2, 0.0) / share - spread / labels.number
        return utility, spread

    @cached_property
    def every(self) -> float:
        """How many distinct pairs are expected at most: just what `expects` comes to."""
        if self._certain_from is None:
            return float((1.0 / self.chance).sum())
        return float(self._certain_from[1][-1])

    @cached_property
    def _certain_from(self) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """From which scales on pairs are certain, ascending, (n,); how many the first of them are
        then, and what the others add for each unit of scale, (n + 1,)."""
        if self.expected is None or np.isinf(self.expected).any():
            return None
        scale = np.sort(1.0 / self.expected)  # min(1, scale * expected) / min(1, expected)
        others = np.cumsum(np.maximum(1.0, 1.0 / scale)[::-1])[::-1]
        return scale, np.append(0.0, np.cumsum(np.maximum(1.0, scale))), np.append(others, 0.0)

    def expects(self, scale: float) -> float:
        """How many distinct pairs the design expects at a finite scale."""
        if self._certain_from is None:
            return float((self.inclusion(scale) / self.chance).sum())
        certain_from, certain, others = self._certain_from
        first = int(np.searchsorted(certain_from, scale, side="right"))
        return float(certain[first] + scale * others[first])


def predicted_variances(sample: JudgedSample, *, labels: int, pairs: float) -> FloatArray | None:
    """Predict the variance of every run, (k,), if so many pairs got so many labels each.

    The design is scaled until it expects so many distinct pairs: ``poisson`` by its constant c,
    ``iid`` by its number of draws. Estimated without bias, but for the scale itself, if all pairs
    have two labels or more. None where there are not as many pairs, or fewer than are certain at
    every size.
    """
    if pairs not in sample.scales:
        sample.scales[pairs] = _scaled(sample, pairs)
    scaled = sample.scales[pairs]
    if scaled is None:
        return None
    (scale, later), chance = scaled, sample.chance
    utility, spread = sample.moments
    if sample.counts is None:
        some, squares = sample.telling
        chance, later = chance[some], later[some]
        of_pairs = utility[some] * (1.0 - later) / later + spread[some] / (labels * later)
        return np.asarray(squares @ (of_pairs / chance))
    draws = scale * float(sample.counts.sum())
    repeats = 1.0 / (draws * sample.probability)
    terms = utility * repeats + spread / labels * (repeats + 1.0 - 1.0 / draws)
    found = importance_sampling(
        sample.weights, sample.labels, probability=sample.probability, counts=sample.counts
    )
    squared_values = found.value**2 - np.diag(found.covariance)
    return np.asarray(sample.squares @ (terms / chance) - squared_values / draws)


def _scaled(sample: JudgedSample, pairs: float) -> tuple[float, FloatArray] | None:
    """The scale at which the design expects so many distinct pairs, and their probabilities then;
    None if there is none."""
    every = sample.every
    always = float(np.count_nonzero(sample.inclusion(0.0) > 0.0))
    if not always <= pairs <= every * (1.0 + ROUNDING):
        return None
    wanted = min(pairs, every)

    expects = cache(sample.expects)  # the ends of a bisection are asked for again
    high = 1.0
    while expects(high) < wanted:
        high *= 2.0
    scale = _bisected(lambda scale: expects(scale) - wanted, high)
    return scale, sample.inclusion(scale)


def _bisected(excess: Callable[[float], float], high: float) -> float:
    """The end of a bisection between 0 and a number from which on there is no lack.

    What is not near the end is known from a root that is found in a few steps.
    """
    low, root = 0.0, 0.0
    if excess(low) < 0.0 < excess(high):
        root = optimize.brentq(excess, low, high, xtol=FINEST, rtol=NEAR)
    known = 8.0 * (NEAR * root + FINEST)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        away = middle - root
        lacking = away < 0.0 if root and abs(away) > known else excess(middle) < 0.0
        low, high = (middle, high) if lacking else (low, middle)
    return high
