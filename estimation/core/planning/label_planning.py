"""How many labels a pair should get: more labels of each pair, or more pairs?

With r labels on every sampled pair, a Horvitz-Thompson estimate from a Poisson sample has the
variance sum_i (1 - pi_i) / pi_i w_i^2 v_i^2 + sum_i w_i^2 s2_i / (r pi_i): what pairs differ in,
and what assessors differ in. If a pair costs c_p and each of its labels c_l, a budget buys fewer
pairs the more labels each gets.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import (
    FloatArray,
    IntArray,
    SparseMatrix,
    check_number,
    refuse,
)
from ..data.labels import LabelError, PairLabels
from ..estimates.estimators import importance_sampling
from ..estimates.products import BLOCK_ROWS
from ..sampling.goals import Goal, check_goal
from ..sampling.probabilities import drawn_probabilities

BISECTIONS = 100
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class LabelAdvice:
    """The number of labels per pair that makes estimates most exact for their cost.

    Attributes
    ----------
    between : ndarray of float64, shape (c,)
        Unbiased estimate of sigma2_between of each run or contrast: the part of the variance that
        shrinks with the number of pairs only. Can be negative if there are few judgments.
    within : ndarray of float64, shape (c,)
        Unbiased estimate of sigma2_within: the part that shrinks with the number of labels too,
        at one label per pair.
    optimum : ndarray of float64, shape (c,)
        r* = sqrt(c_p / c_l * within / between). Infinite if `between` is not positive, because
        disagreement drowns what pairs differ in; NaN if both are 0: no judged pair of the run is
        uncertain, or none has any utility.
    labels : ndarray of float64, shape (c,)
        The best whole number of labels, at least 1; infinite or NaN with `optimum`.
    goal_optimum, goal_labels : float
        The same for the sum of the variances of all runs or contrasts.
    repeated_pairs : int
        Pairs with two labels or more: what the advice rests on.
    """

    between: FloatArray
    within: FloatArray
    optimum: FloatArray
    labels: FloatArray
    goal_optimum: float
    goal_labels: float
    repeated_pairs: int


@dataclass(frozen=True, eq=False)
class JudgedSample:
    """Judged pairs and how they were sampled: what planning learns from.

    Attributes
    ----------
    weights : csr_array, shape (n, k)
        Rows of the sampled pairs.
    labels : PairLabels
        Of the same pairs. Either all have two labels or more, or it was decided at random which
        (`extra_labels`).
    probability : ndarray of float64, shape (n,)
        ``poisson``: pi_i. ``iid``: Q_i, the probability of one draw.
    counts : ndarray of int64, shape (n,), optional
        ``iid`` only: how often each pair was drawn.
    expected : ndarray of float64, shape (n,), optional
        ``poisson`` only: c * size, so that pi = min(1, c * size): says at which smaller budget a
        certain pair becomes uncertain. By default certain pairs remain so at every budget.
    contrasts : ndarray of float64, shape (k, c), optional
        From `goal_contrasts`; by default the runs themselves.
    repeat_share : float, optional
        Probability with which a sampled pair gets two labels or more; by default the share that
        did.

    Raises
    ------
    ValueError
        If shapes differ or a number is out of range.
    LabelError
        If no pair has two labels.
    """

    weights: SparseMatrix
    labels: PairLabels
    probability: FloatArray
    counts: IntArray | None = None
    expected: FloatArray | None = None
    contrasts: FloatArray | None = None
    repeat_share: float | None = None

    def __post_init__(self) -> None:
        pairs, runs = self.weights.shape
        for name in ("probability", "counts", "expected"):
            column = getattr(self, name)
            if column is not None and column.shape != (pairs,):
                raise ValueError(f"{name} has the shape {column.shape}, not {(pairs,)}")
        if len(self.labels.mean) != pairs:
            raise ValueError(f"labels describe {len(self.labels.mean)} pairs, weights {pairs}")
        if self.contrasts is not None and (self.contrasts.ndim != 2 or len(self.contrasts) != runs):
            raise ValueError(f"contrasts has the shape {self.contrasts.shape}, not ({runs}, c)")
        if self.counts is not None and self.expected is not None:
            raise ValueError("expected is for Poisson samples, counts for draws: not both")
        self._check_values()

    def _check_values(self) -> None:
        chance = self.probability
        unlikely = ~((chance > 0.0) & (chance <= 1.0))
        refuse(unlikely, chance, name="probability", rule="lie in (0, 1]")
        if self.counts is not None:
            refuse(self.counts < 1, self.counts, name="counts", rule="be at least 1")
        if self.expected is not None:
            differs = ~np.isclose(np.minimum(self.expected, 1.0), chance, rtol=1e-9, atol=0.0)
            refuse(differs, self.expected, name="expected", rule="agree with probability up to 1")
        share = self.repeat_share
        if share is not None and not 0.0 < share <= 1.0:
            raise ValueError(f"repeat_share must lie in (0, 1], not {share!r}")
        wrong = ~np.isfinite(self.weights.data)
        refuse(wrong, self.weights.data, name="weights", rule="be finite")
        if not np.any(self.labels.number >= 2):
            raise LabelError("No pair has two labels: disagreement cannot be measured.")


def goal_contrasts(goal: Goal, *, runs: Sequence[str]) -> FloatArray:
    """Return the combinations of runs whose variances a goal wants small, as columns.

    Parameters
    ----------
    goal : Goal
    runs : sequence of str
        The k runs of the pool, in its order.

    Returns
    -------
    ndarray of float64, shape (k, c)
        single, absolute: each run; pair: the difference; baseline: each run less the baseline;
        ranking: each run less the mean of the goal's runs.

    Raises
    ------
    PoolError
        If the goal names a run that is not among `runs`.
    """
    place = {tag: index for index, tag in enumerate(runs)}
    check_goal(goal, runs)
    unit = np.eye(len(place))
    columns = unit[:, [place[tag] for tag in goal.runs]]
    if goal.kind == "pair":
        return columns[:, :1] - columns[:, 1:]
    if goal.against is not None:
        return columns - unit[:, [place[goal.against]]]
    return columns - columns.mean(axis=1, keepdims=True) if goal.kind == "ranking" else columns


def recommended_labels(
    weights: SparseMatrix,
    labels: PairLabels,
    *,
    probability: FloatArray,
    pair_cost: float,
    label_cost: float,
    counts: IntArray | None = None,
    contrasts: FloatArray | None = None,
    repeat_share: float | None = None,
) -> LabelAdvice:
    """Recommend a number of labels per pair, from judged pairs.

    ``poisson``, over pairs with pi < 1: between = sum w^2 v^2 / pi and within = sum w^2 s2 / pi,
    estimated by sum_S w^2 (mean^2 - s2 / r) / pi^2 and sum_S w^2 s2 / pi^2 over the pairs S with
    r >= 2 labels. ``iid``, in units of one sample: between = (sum w^2 v^2 / Q - U^2) / n and
    within = sum w^2 s2 (1 / Q - 1) / n. The optimum r* is that of two-stage sampling (Cochran
    1977, section 10.6).

    Parameters
    ----------
    weights, labels, probability, counts, contrasts, repeat_share
        See `JudgedSample`.
    pair_cost : float
        c_p >= 0: what a pair costs once, however many label it.
    label_cost : float
        c_l > 0: what each of its labels costs.

    Raises
    ------
    ValueError
        As `JudgedSample`; or if a cost is out of range.
    LabelError
        If no pair has two labels.
    """
    _check_costs(pair_cost, label_cost)
    sample = JudgedSample(weights, labels, probability, counts, None, contrasts, repeat_share)
    between, within = _components(sample)
    costs = pair_cost, label_cost
    total = np.array([between.sum()]), np.array([within.sum()])
    goal_optimum = _optimum(*total, *costs)
    return LabelAdvice(
        between=between,
        within=within,
        optimum=_optimum(between, within, *costs),
        labels=_best_whole(between, within, *costs),
        goal_optimum=float(goal_optimum[0]),
        goal_labels=float(_best_whole(*total, *costs)[0]),
        repeated_pairs=int(np.count_nonzero(labels.number >= 2)),
    )


def predicted_variances(
    sample: JudgedSample,
    *,
    labels_per_pair: Sequence[int],
    budget: float,
    pair_cost: float,
    label_cost: float,
) -> FloatArray:
    """Predict variances if a budget bought pairs with r labels each, from judged pairs.

    The design is scaled until its expected cost, (c_p + r c_l) times the expected number of
    distinct pairs, is the budget: ``poisson`` by its constant c, ``iid`` by its number of draws.
    Estimated without bias, but for the scale itself, if all pairs have two labels or more.

    Parameters
    ----------
    sample : JudgedSample
    labels_per_pair : sequence of int
        Numbers r to compare, each at least 1.
    budget : float
        In the unit of the costs.
    pair_cost, label_cost : float
        As in `recommended_labels`.

    Returns
    -------
    ndarray of float64, shape (len(labels_per_pair), c)
        Variances of the runs or contrasts; NaN where the budget is more than all pairs cost, or
        less than the pairs that are certain whatever the budget.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    _check_costs(pair_cost, label_cost)
    numbers = np.asarray(labels_per_pair)
    refuse(~(numbers >= 1), numbers, name="labels_per_pair", rule="be at least 1")
    check_number(budget, name="budget")
    columns = sample.weights.shape[1] if sample.contrasts is None else sample.contrasts.shape[1]
    predicted = np.full((len(numbers), columns), np.nan)
    for row, number in zip(predicted, numbers.tolist(), strict=True):
        scale = _affordable_scale(sample, budget / (pair_cost + number * label_cost))
        if scale is not None:
            row[:] = _variance(sample, scale, number)
    return predicted


def _components(sample: JudgedSample) -> tuple[FloatArray, FloatArray]:
    """Unbiased estimates of sigma2_between and sigma2_within, at the present size."""
    chance = _inclusion(sample, 1.0)
    utility, spread = _moments(sample)
    if sample.counts is None:
        uncertain = np.where(chance < 1.0, 1.0 / chance**2, 0.0)
        return _weighted(sample, utility * uncertain), _weighted(sample, spread * uncertain)
    draws, single = int(sample.counts.sum()), sample.probability
    first = _weighted(sample, utility / (draws * single * chance))
    noise = _weighted(sample, spread * (1.0 / single - 1.0) / (draws * chance))
    return first - _squared_values(sample, sample.counts) / draws, noise


def _variance(sample: JudgedSample, scale: float, number: int) -> FloatArray:
    """Var(U^) under the design times `scale`, with `number` labels per pair."""
    chance, later = _inclusion(sample, 1.0), _inclusion(sample, scale)
    utility, spread = _moments(sample)
    if sample.counts is None:
        terms = utility * (1.0 - later) / later + spread / (number * later)
        return _weighted(sample, terms / chance)
    draws = scale * float(sample.counts.sum())
    repeats = 1.0 / (draws * sample.probability)
    terms = utility * repeats + spread / number * (repeats + 1.0 - 1.0 / draws)
    return _weighted(sample, terms / chance) - _squared_values(sample, sample.counts) / draws


def _moments(sample: JudgedSample) -> tuple[FloatArray, FloatArray]:
    """Unbiased v^2 and s2 from pairs with two labels or more, 0 for the others."""
    labels, repeated = sample.labels, sample.labels.number >= 2
    share = sample.repeat_share or float(repeated.mean())
    spread = np.where(repeated, labels.variance, 0.0) / share
    utility = np.where(repeated, labels.mean**2, 0.0) / share - spread / labels.number
    return utility, spread


def _squared_values(sample: JudgedSample, counts: IntArray) -> FloatArray:
    """Unbiased estimates of U^2: the squared estimate less its variance."""
    found = importance_sampling(
        sample.weights, sample.labels, probability=sample.probability, counts=counts
    )
    if sample.contrasts is None:
        return np.asarray(found.value**2 - np.diag(found.covariance))
    variance = (sample.contrasts * (found.covariance @ sample.contrasts)).sum(axis=0)
    return np.asarray((found.value @ sample.contrasts) ** 2 - variance)


def _weighted(sample: JudgedSample, terms: FloatArray) -> FloatArray:
    """sum_i w_ij^2 term_i for every run or contrast j."""
    if sample.contrasts is None:
        return np.asarray(sample.weights.power(2).T @ terms)
    total = np.zeros(sample.contrasts.shape[1])
    for start in range(0, len(terms), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        total += ((sample.weights[block] @ sample.contrasts) ** 2 * terms[block, None]).sum(axis=0)
    return total


def _inclusion(sample: JudgedSample, scale: float) -> FloatArray:
    """The probability that each pair is in a sample of `scale` times the present size."""
    if sample.counts is not None:
        return drawn_probabilities(sample.probability, draws=scale * float(sample.counts.sum()))
    expected = sample.expected
    if expected is None:
        return np.where(sample.probability < 1.0, np.minimum(1.0, scale * sample.probability), 1.0)
    return np.where(np.isinf(expected), 1.0, np.minimum(1.0, scale * expected))


def _affordable_scale(sample: JudgedSample, pairs: float) -> float | None:
    """The scale at which the design expects so many distinct pairs; None if there is none."""
    chance = _inclusion(sample, 1.0)
    every = float((1.0 / chance).sum())
    always = float(np.count_nonzero(_inclusion(sample, 0.0) > 0.0))
    if not always <= pairs <= every * (1.0 + ROUNDING):
        return None
    wanted = min(pairs, every)

    def expects(scale: float) -> float:
        return float((_inclusion(sample, scale) / chance).sum())

    low, high = 0.0, 1.0
    while expects(high) < wanted:
        high *= 2.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if expects(middle) < wanted else (low, middle)
    return high


def _optimum(
    between: FloatArray, within: FloatArray, pair_cost: float, label_cost: float
) -> FloatArray:
    """r*; infinite where pairs do not vary, NaN where nothing does."""
    ratio = np.divide(within, between, out=np.full_like(within, np.inf), where=between > 0.0)
    ratio[(within == 0.0) & (between == 0.0)] = np.nan
    free = np.where(np.isnan(ratio), np.nan, 0.0)
    return np.sqrt(pair_cost / label_cost * ratio) if pair_cost > 0.0 else free


def _best_whole(
    between: FloatArray, within: FloatArray, pair_cost: float, label_cost: float
) -> FloatArray:
    """The neighbor of r* at which (c_p + r c_l) (between + within / r) is smaller."""
    optimum = _optimum(between, within, pair_cost, label_cost)
    finite = np.where(np.isfinite(optimum), optimum, 1.0)
    lower, upper = np.maximum(1.0, np.floor(finite)), np.maximum(1.0, np.ceil(finite))

    def price(number: FloatArray) -> FloatArray:
        return (pair_cost + number * label_cost) * (between + within / number)

    best = np.where(price(lower) <= price(upper), lower, upper)
    return np.where(np.isfinite(optimum), best, optimum)


def _check_costs(pair_cost: float, label_cost: float) -> None:
    check_number(pair_cost, name="pair_cost", least=0.0)
    check_number(label_cost, name="label_cost")
