"""What budgets reach before anything is judged: half widths and verdicts, as ranges.

Nobody knows then how many documents are relevant, nor how far the runs differ. Both are taken from
ranges that are stated, and a false exact number is told of neither.

Relevance
    As the prior expects, and *plentiful*: every pair has at least a quarter (`PLENTIFUL`) of the
    largest squared utility. On Cranfield, TREC Deep Learning 2019 and TREC-8 half widths came to
    lie between 0.65 times the first and 1.05 times the second.
Differences
    The difference of two runs is normal about 0, with a spread of `SPREADS` times sqrt(sum_i
    (w_ij - w_il)^2 s2_i): that is 1 for runs that are equally good but for chance, and was 4 to 13
    on those collections. The fewest verdicts are to be expected with the first and plentiful
    relevance, the most with the second and relevance as the prior expects.

A difference has a verdict if its estimate is beyond the critical value of the product's own
step-down procedure, for differences as large as these are on average.

The best two are closer to one another than any two runs are. Which two they are, and how close, is
played: values of all runs are normal, with the same spread and so that every difference is as
above, and the lead of the first over the second is compared with its error and that critical value.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special
from scipy.interpolate import PchipInterpolator

from ..arrays import check_confidence
from ..inference.intervals import difference_variances
from ..inference.looked_at import LIKELY
from ..inference.normal import normal_vectors, root
from ..inference.out_of_reach import OutOfReach
from .critical import adjusted_p_values, critical_value
from .planning import expected_covariances, half_width_curves
from .reached import Reached, ReachedByBudget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..arrays import BoolArray, FloatArray, IntArray
    from ..data.pool import Pool
    from ..measures.table import Measure
    from ..sampling.designs import Design
    from ..sampling.priors import Prior

PLENTIFUL = 0.25
SPREADS = (3.0, 8.0)
AVERAGE = float(np.sqrt(2.0 / np.pi))  # of the size of a normal number
POINTS, WORKED_OUT = 28, 18  # budgets at least, and those of them for which verdicts are worked out
SURE = 1e9  # standard errors of what is known
MANY, FEWER = 2_000_000, 5  # entries of a pool for which verdicts are worked out for so few
NEAR_ALL = 9.0  # half widths fall steeply there: budgets without a quarter of all, an eighth, …
LEAST, APART = 10.0, 1.45  # the first budget, or half of all; each at most so many times the last
NEVER, DIGITS = 1e-9, 6  # of shares that are told
HALVED = 8  # how often the place between two budgets is halved that is looked for
FUTURES = 512  # values of all runs that are played
DRAWN_AGAIN = 4.0  # draws with replacement have no end: up to so many times the pool


def reached_by_budget(
    pool: Pool,
    design: Design,
    *,
    measure: Measure,
    prior: Prior,
    max_grade: int,
    costs: FloatArray | None = None,
    work: FloatArray | None = None,
    besides: Callable[[FloatArray, float], float] | None = None,
    confidence: float = 0.95,
) -> ReachedByBudget:
    """Foretell what any budget of a design reaches, from a few pairs up to all there are.

    Parameters
    ----------
    pool, design, prior : Pool, Design, Prior
    measure : Measure
        Any that `planning.expected_half_widths` takes.
    max_grade : int
        The best grade of the scale.
    costs : ndarray of float64, shape (N,), optional
        Those that the design was made with.
    work : ndarray of float64, shape (N,), optional
        What each pair counts for in `Reached.work`, by default 1.
    besides : callable, optional
        What is to be done besides, in the same unit, from the chances of pairs and a budget.
    confidence : float
        Of intervals, and of all verdicts together.

    Returns
    -------
    ReachedByBudget
        The budget of the design is one of its lines, for which half widths and work are exact. What
        is said of any budget is the same whichever budget the design has, from the first common
        line on: shares that are decided are worked out for some budgets of the pool alone.

    Raises
    ------
    ValueError
        As `planning.half_width_curve`.
    """
    check_confidence(confidence)
    budgets, grid = budgets_of(design, costs)
    beliefs = prior, plentiful(prior, measure, max_grade)
    about = {"measure": measure, "max_grade": max_grade}
    reachable = OutOfReach.of(pool, design.eligible).support(measure) == 1.0
    known = reachable if reachable.any() else np.ones_like(reachable)
    curves = half_width_curves(
        pool, design, beliefs=beliefs, budgets=budgets.tolist(), costs=costs,
        confidence=confidence, **about,  # type: ignore[arg-type]
    )  # fmt: skip
    widths = [np.median(curve[:, known], axis=1) for curve in curves]
    number = WORKED_OUT if len(pool.run) < MANY else FEWER
    worked_out = _worked_out(design, grid, number, costs)
    steps = design.steps_for(worked_out.tolist(), costs=costs)
    found = expected_covariances(pool, design, beliefs=beliefs, steps=steps.tolist(), **about)  # type: ignore[arg-type]
    seen = list(zip(*found, strict=True))
    most, least = (
        decided_by_budget(*each, spread, reachable=reachable, error=1.0 - confidence)
        for spread, each in zip(SPREADS[::-1], seen, strict=True)
    )
    shares = shares_of(before_nearly_all(design, steps, least), most, worked_out, grid, budgets)
    counted = {"costs": costs, "work": work, "besides": besides}
    return table_of(design, budgets, widths, shares, **counted)  # type: ignore[arg-type]


def budgets_of(design: Design, costs: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the budgets of a table, and those of them that have nothing to do with the design's.

    Where its own is below all others, it is one of both.
    """
    grid = _grid(design, costs)
    budgets = np.union1d(grid, [min(max(float(design.budget), 1.0), grid[-1])])
    return budgets, budgets if budgets[0] < grid[0] else grid


def shares_of(
    least: FloatArray,
    most: FloatArray,
    worked_out: FloatArray,
    grid: FloatArray,
    budgets: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return what is decided at least and most, and the chances of the best two, by budget.

    Parameters
    ----------
    least, most : ndarray of float64, shape (m, 2)
        As `decided_by_budget` has them at the budgets that are `worked_out`, shape (m,).
    grid, budgets : ndarray of float64
        See `budgets_of`.
    """
    risen = np.maximum.accumulate(np.concatenate([least, most], axis=1), axis=0)
    normal = special.ndtri(np.clip(risen, NEVER, 1.0 - NEVER))
    if len(worked_out) > 1:
        places = np.log(np.clip(grid, worked_out[0], worked_out[-1]))
        normal = PchipInterpolator(np.log(worked_out), normal)(places)
    between = np.round(special.ndtr(normal), DIGITS)
    decided_least, best_least, decided_most, best_most = (
        np.interp(budgets, grid, each) for each in between.T
    )
    return decided_least, decided_most, best_least, best_most


def table_of(
    design: Design,
    budgets: FloatArray,
    widths: Sequence[FloatArray],
    shares: Sequence[FloatArray],
    *,
    costs: FloatArray | None,
    work: FloatArray | None,
    besides: Callable[[FloatArray, float], float] | None,
) -> ReachedByBudget:
    """Put a table together from what is reached, and what it takes by the design."""
    chances = map(design.new_after, design.steps_for(budgets.tolist(), costs=costs).tolist())
    works, pairs = zip(
        *(
            (_worth(chance, work, budget, besides), chance.sum())
            for chance, budget in zip(chances, budgets.tolist(), strict=True)
        ),
        strict=True,
    )
    lines = zip(budgets, works, *widths, *shares, pairs, strict=True)
    return ReachedByBudget(tuple(Reached(*map(float, each)) for each in lines))


def _grid(design: Design, costs: FloatArray | None) -> FloatArray:
    """Budgets from few to all, the same ones whichever the design has."""
    paid = design.payable
    whole = float(paid.sum() if costs is None else (paid * costs).sum())
    first = max(1.0, min(LEAST, whole / 2.0))
    if design.with_replacement:
        whole *= DRAWN_AGAIN
        first = max(first, float(design.strata), 2.0)
    last = max(whole, first)
    missing = 0.5 ** np.arange(2.0, NEAR_ALL)
    towards_all = np.zeros(0) if design.with_replacement else last * (1.0 - missing)
    points = max(POINTS, math.ceil(math.log(last / first) / math.log(APART)) + 1)
    spread = np.geomspace(first, last, points)
    budgets = np.concatenate([spread, towards_all])
    return np.unique(budgets[budgets >= first])


def _worked_out(
    design: Design, grid: FloatArray, number: int, costs: FloatArray | None
) -> FloatArray:
    """So many budgets evenly, and those at both ends of where the fewest verdicts rise no more:
    the last one before nearly all is judged, and the last but all."""
    evenly = grid[np.linspace(0, len(grid) - 1, number).astype(int)]
    low, high = 0, len(grid) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_nearly_all(design, grid[middle], costs) else (middle, high)
    before, after = grid[low], grid[high]
    for _ in range(HALVED):
        middle = (before + after) / 2.0
        nearly = _is_nearly_all(design, middle, costs)
        before, after = (before, middle) if nearly else (middle, after)
    return np.unique(np.concatenate([evenly, [before], grid[-2:]]))


def plentiful(prior: Prior, measure: Measure, max_grade: int) -> Prior:
    """Return the same with relevant documents everywhere."""
    best = measure.max_utility(max_grade) if measure.family == "gain" else 1.0
    return replace(prior, second_moment=np.maximum(prior.second_moment, PLENTIFUL * best**2))


def before_nearly_all(design: Design, steps: FloatArray, shares: FloatArray) -> FloatArray:
    """Shares, by rows, that rise no more where few documents, if missed, make up the differences.

    How few there are is not known beforehand (`missed.Missed`); with everything judged it no
    longer matters.
    """
    kept: list[FloatArray] = []
    for step, share in zip(steps.tolist(), shares, strict=True):
        kept.append(kept[-1] if kept and _likely(design, step) else share)
    return np.stack(kept)


def _is_nearly_all(design: Design, budget: float, costs: FloatArray | None) -> bool:
    return _likely(design, float(design.steps_for([budget], costs=costs)[0]))


def _likely(design: Design, step: float) -> bool:
    """Whether the middle one of the pairs that may be missed is not."""
    chance = design.new_after(step)[design.eligible]
    uncertain = chance[chance < 1.0]
    return bool(len(uncertain)) and bool(np.median(uncertain) >= LIKELY)


def _worth(
    chance: FloatArray,
    work: FloatArray | None,
    budget: float,
    besides: Callable[[FloatArray, float], float] | None,
) -> float:
    more = 0.0 if besides is None else besides(chance, budget)
    return float(chance.sum() if work is None else np.sum(chance * work)) + more


def decided_by_budget(
    covariances: Iterable[FloatArray],
    products: FloatArray,
    spread: float,
    *,
    reachable: BoolArray,
    error: float,
) -> FloatArray:
    """Return what is decided, and the chance of the best two, (m, 2), for m covariances, (k, k).

    Parameters
    ----------
    covariances : iterable of ndarray of float64, shape (k, k)
    products : ndarray of float64, shape (k, k)
        What values vary by, as `planning.value_products` has it.
    spread : float
        How many times that differences of values are spread.
    reachable : ndarray of bool, shape (k,)
        Whose values the design reaches.
    error : float
        Of all verdicts together.
    """
    told = (
        _decided(each, products, spread, reachable=reachable, error=error) for each in covariances
    )
    return np.array(list(told))


def _decided(
    covariance: FloatArray,
    products: FloatArray,
    spread: float,
    *,
    reachable: BoolArray,
    error: float,
) -> tuple[float, float]:
    """The share of all differences that have a verdict, none of what is out of reach has; and the
    chance that that of the best two is among them."""
    pairs = np.triu_indices(len(covariance), 1)
    if not len(pairs[0]):
        return 1.0, 1.0
    variance = difference_variances(covariance)
    true = spread**2 * difference_variances(products)[pairs]
    seen = np.sqrt(true + variance[pairs])
    some = variance[pairs] > 0.0
    size = np.divide(seen, np.sqrt(variance[pairs]), out=np.full_like(seen, SURE), where=some)
    expected = AVERAGE * size
    critical = critical_value(expected, adjusted_p_values(expected, covariance), error)
    share = 2.0 * special.ndtr(-critical / size)
    both = (reachable[:, None] & reachable[None, :])[pairs]
    best = _best_apart(variance, spread**2 * products, critical, np.flatnonzero(reachable))
    return float(np.where(both & (true > 0.0), share, 0.0).mean()), best


def _best_apart(variance: FloatArray, true: FloatArray, critical: float, runs: IntArray) -> float:
    """The chance that the lead of the best of some runs over the second one has a verdict.

    ``variance`` are those of estimated differences, (k, k), ``true`` is the covariance of values.
    """
    if len(runs) < 2:
        return 0.0
    values = normal_vectors(FUTURES, len(runs)) @ root(true[np.ix_(runs, runs)]).T
    order = np.argsort(-values, axis=1, kind="stable")[:, :2]
    first, second = np.take_along_axis(values, order, axis=1).T
    deviation = np.sqrt(variance[runs[order[:, 0]], runs[order[:, 1]]])
    lead = first - second
    sure = np.where(lead > 0.0, SURE, 0.0)
    size = np.divide(lead, deviation, out=sure, where=deviation > 0.0)
    return float(special.ndtr(size - critical).mean())
