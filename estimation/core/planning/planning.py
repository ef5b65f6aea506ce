"""What precision a design promises before anything is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..arrays import BoolArray, FloatArray, check_confidence, column_sums, refuse
from ..data.blocks import blocks
from ..data.pool_ranks import total_weights
from ..inference.intervals import ROUNDING, difference_variances
from ..inference.out_of_reach import OutOfReach
from ..measures.kinds import PREFERENCE_MAX_GRADE
from ..sampling.allocation import refuse_costs
from ..sampling.methods import with_option
from ..tables import Columns, Tabled
from .moves import best_of, covariances, products, variances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..data.pool import Pool
    from ..measures.table import Measure
    from ..sampling.designs import Design
    from ..sampling.priors import Prior


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedPrecision(Tabled):
    """Half widths of intervals to be expected.

    Attributes
    ----------
    runs : tuple of str
        The k runs of the pool.
    half_width : ndarray of float64, shape (k,)
        Of the interval of each run's value, at most half of `largest_values`; infinite for a run
        with weight on pairs that the design cannot sample.
    difference_half_width : ndarray of float64, shape (k, k)
        Of the interval of each difference, at most half of what lies between the largest lead of
        either run; infinite where two runs differ in their weight on a pair that the design cannot
        sample.
    """

    runs: tuple[str, ...]
    half_width: FloatArray
    difference_half_width: FloatArray

    def columns(self) -> Columns:
        """Return the half width of every run's value, the smallest first."""
        order = np.argsort(self.half_width, kind="stable").tolist()
        return {
            "run": [self.runs[at] for at in order],
            "half width": self.half_width[order].tolist(),
        }


def expected_half_widths(
    pool: Pool,
    design: Design,
    *,
    measure: Measure,
    prior: Prior,
    max_grade: int | None = None,
    batches: int | None = None,
    confidence: float = 0.95,
) -> ExpectedPrecision:
    """Predict interval half widths from the prior, by the normal approximation.

    With prior moments p_i and s2_i, Cov(U^_j, U^_l) is sum_i (1 - pi_i)/pi_i w_ij w_il s2_i for
    ``poisson`` and ``priority``, and (sum_i w_ij w_il s2_i / Q_i - P_j P_l) / n with P_j = sum_i
    w_ij p_i for ``iid``; ``per-query`` is that within every topic. Where the utility depends on
    the run (predictions, preferences), w_ij w_il becomes the mean of y_ij y_il over the grades.

    Ratio measures are linearized where every pair has its expected utility, w_ij being the slope,
    and estimated from distinct pairs: s2 (1 - pi)/pi for draws too, and with t = n Q (1 - pi)/pi in
    P_j = sum_i w_ij t_i p_i. Their bias, and disagreement between assessors, are not included.

    No interval is longer than what values can be: half widths end at half of it.

    Parameters
    ----------
    pool, design, prior : Pool, Design, Prior
    measure : Measure
        Any measure, not only the design's own.
    max_grade : int, optional
        The best grade of the scale; needed for measures of predictions. Without it the largest
        gain is the one that the prior thinks of.
    batches : int, optional
        After so many batches; by default all.
    confidence : float
        Strictly between 0 and 1.

    Raises
    ------
    ValueError
        If design or prior belong to another pool, or a number is out of range.
    """
    _check_planning(pool, design, prior, confidence)
    about = {"measure": measure, "max_grade": max_grade}
    steps = [design.step(batches)]
    ((covariance,),) = covariances(pool, design, beliefs=[prior], steps=steps, **about)  # type: ignore[arg-type]
    quantile = special.ndtri(0.5 + confidence / 2.0)
    most = _most(pool, measure, prior, max_grade)
    single = np.minimum(quantile * np.sqrt(np.maximum(np.diag(covariance), 0.0)), most / 2.0)
    single[OutOfReach.of(pool, design.eligible).support(measure) < 1.0] = np.inf
    differences = quantile * np.sqrt(difference_variances(covariance))
    differences = np.minimum(differences, np.add.outer(most, most) / 2.0)
    if not design.eligible.all():
        out = [(~design.eligible).astype(np.float64)]
        (missed,) = products(pool, factors=out, beliefs=[prior], **about)  # type: ignore[arg-type]
        differences[_differ(missed)] = np.inf
    return ExpectedPrecision(pool.runs, single, differences)


def half_width_curve(
    pool: Pool,
    design: Design,
    *,
    measure: Measure,
    prior: Prior,
    budgets: Sequence[float],
    costs: FloatArray | None = None,
    max_grade: int | None = None,
    confidence: float = 0.95,
) -> FloatArray:
    """Predict the half width of every run's interval for several budgets of one design.

    Parameters
    ----------
    budgets : sequence of float
        Numbers of draws with replacement, or expected numbers of pairs, each at least 1; with
        costs what they cost, as in `make_design`.
    costs : ndarray of float64, shape (N,), optional
        Those that the design was made with.

    Other parameters are those of `expected_half_widths`.

    Returns
    -------
    ndarray of float64, shape (len(budgets), k)
    """
    (curve,) = half_width_curves(
        pool, design, measure=measure, beliefs=[prior], budgets=budgets, costs=costs,
        max_grade=max_grade, confidence=confidence,
    )  # fmt: skip
    return np.asarray(curve, dtype=np.float64)


def half_width_curves(
    pool: Pool,
    design: Design,
    *,
    measure: Measure,
    beliefs: Sequence[Prior],
    budgets: Sequence[float],
    costs: FloatArray | None = None,
    max_grade: int | None = None,
    confidence: float = 0.95,
) -> FloatArray:
    """Return `half_width_curve` for each of several priors, shape (b, len(budgets), k)."""
    for prior in beliefs:
        _check_planning(pool, design, prior, confidence)
    targets = np.asarray(budgets, dtype=np.float64)
    if targets.ndim != 1:
        raise ValueError(f"budgets must be a vector, not of the shape {targets.shape}")
    wrong = ~(np.isfinite(targets) & (targets >= 1))
    refuse(wrong, targets, name="budgets", rule="be finite and at least 1")
    _check_costs(pool, design, costs)
    steps = design.steps_for(budgets, costs=costs).tolist()
    variance = variances(
        pool, design, measure=measure, beliefs=beliefs, steps=steps, max_grade=max_grade
    )
    out_of_reach = OutOfReach.of(pool, design.eligible).support(measure) < 1.0
    most = np.stack([_most(pool, measure, prior, max_grade) for prior in beliefs])[:, None, :]
    quantile = special.ndtri(0.5 + confidence / 2.0)
    widths = np.minimum(quantile * np.sqrt(np.maximum(variance, 0.0)), most / 2.0)
    return np.asarray(np.where(out_of_reach, np.inf, widths), dtype=np.float64)


def expected_covariances(
    pool: Pool,
    design: Design,
    *,
    measure: Measure,
    beliefs: Sequence[Prior],
    steps: Sequence[float],
    max_grade: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Predict the covariances of the k estimates, and what the values themselves vary by.

    Parameters
    ----------
    beliefs : sequence of Prior
    steps : sequence of float
        Constants or numbers of draws; see `Design.step`.

    Other parameters are those of `expected_half_widths`.

    Returns
    -------
    covariances : ndarray of float64, shape (len(beliefs), len(steps), k, k)
    products : ndarray of float64, shape (len(beliefs), k, k)
        Of each prior sum_i s2_i w_ij w_il over all pairs, reachable or not.
    """
    for prior in beliefs:
        _check_planning(pool, design, prior, 0.5)
    about = {"measure": measure, "beliefs": beliefs, "max_grade": max_grade}
    moments = [prior.second_moment for prior in beliefs]
    found = covariances(pool, design, steps=steps, **about)  # type: ignore[arg-type]
    return found, products(pool, factors=moments, **about)  # type: ignore[arg-type]


def value_products(
    pool: Pool, *, measure: Measure, prior: Prior, max_grade: int | None = None
) -> FloatArray:
    """Return sum_i s2_i w_ij w_il over all pairs, what values vary by, shape (k, k)."""
    moments, about = [prior.second_moment], {"measure": measure, "max_grade": max_grade}
    (found,) = products(pool, factors=moments, beliefs=[prior], **about)  # type: ignore[arg-type]
    return np.asarray(found, dtype=np.float64)


def largest_values(pool: Pool, measure: Measure, *, best: float) -> FloatArray:
    """Return the largest value that every run can have, whatever is found, shape (k,).

    Sums of gains: at the best grades throughout, `best` being the largest utility; errors: at the
    worst grades, `best` being the best grade of the scale. Ratio and query measures are at most 1
    in every topic for which the run returns anything.
    """
    if measure.family in ("ratio", "query"):
        return np.asarray(np.count_nonzero(pool.list_lengths, axis=0) / len(pool.topics))
    if measure.family == "gain":
        return total_weights(pool, measure) * best
    grades = PREFERENCE_MAX_GRADE if measure.family == "preference" else int(best)
    errors = [pool.entry_utilities(measure, grade) for grade in range(grades + 1)]
    worst = pool.entry_weights(measure) * np.max(errors, axis=0)
    return column_sums(pool.run, worst, number=len(pool.runs))


def largest_effect(pool: Pool, measure: Measure, expected: FloatArray) -> tuple[float, int, int]:
    """Return the largest w / pi of a pair that may be missed, the pair, and which of all entries.

    Parameters
    ----------
    measure : Measure
        A sum of gains.
    expected : ndarray of float64, shape (N,)
        How often each pair is expected in the sample, pi or n Q; pairs of 0, and of 1 or more, do
        not count.
    """
    largest, found, before = -np.inf, (0, 0), 0
    for block in blocks(pool):
        some, chance = block.pool, expected[block.pairs]
        open_pairs = (chance > 0.0) & (chance < 1.0)
        steps = np.divide(1.0, chance, out=np.zeros(len(some)), where=open_pairs)
        effects = some.entry_weights(measure) * np.repeat(steps, np.diff(some.indptr))
        at = int(np.argmax(effects)) if len(effects) else 0
        if len(effects) and effects[at] > largest:
            pair = int(np.searchsorted(some.indptr, at, side="right")) - 1
            largest, found = effects[at], (block.pairs.start + pair, before + at)
        before += len(effects)
    return float(largest), *found


def _most(pool: Pool, measure: Measure, prior: Prior, max_grade: int | None) -> FloatArray:
    """`largest_values` on the scale, or as far as the prior thinks of without one."""
    if max_grade is None or measure.family != "gain":
        return largest_values(pool, measure, best=max_grade or best_of(prior))
    return largest_values(pool, measure, best=measure.max_utility(max_grade))


def _check_planning(pool: Pool, design: Design, prior: Prior, confidence: float) -> None:
    if design.pool_digest != pool.digest:
        raise ValueError("the design belongs to another pool")
    if len(prior.expected) != len(pool):
        described = f"it describes {len(prior.expected)} pairs, the pool has {len(pool)}"
        raise ValueError(f"the prior belongs to another pool: {described}")
    check_confidence(confidence)


def _check_costs(pool: Pool, design: Design, costs: FloatArray | None) -> None:
    if costs is None:
        return
    if design.method not in with_option("costs"):
        raise ValueError(f"costs must be None: a design by {design.method!r} is made without")
    if costs.shape != (len(pool),):
        raise ValueError(f"costs must hold one number per pair, {len(pool)}, not {costs.shape}")
    refuse_costs(costs, error=ValueError)


def _differ(products: FloatArray) -> BoolArray:
    """Whether two runs have different weights on some of the pairs that these are of, (k, k)."""
    single = np.diag(products)
    both = np.add.outer(single, single)
    return np.asarray(both - 2.0 * products > ROUNDING * both)
