"""What is believed about the utility of pairs before anything is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, check_whole, column_sums, frozen, nearest, refuse, sealed
from ..data.blocks import by_block
from ..measures.kinds import MAX_GRADE
from ..measures.table import Measure, check_is_measure
from .calibration import agreement, order_bins, put_together
from .goals import Goal, check_goal, effective_weights, indicator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..data.pool import Pool


class PriorError(ValueError):
    """A prior that does not exist, or that no pool of this kind can have."""


@dataclass(frozen=True, eq=False)
class Prior:
    """Prior moments of the utility of every pair of a pool.

    Attributes
    ----------
    name : str
        A key of `PRIORS`.
    expected : ndarray of float64, shape (N,)
        p_i > 0, the expected utility.
    second_moment : ndarray of float64, shape (N,)
        s2_i > 0, the expected squared utility.

    Raises
    ------
    PriorError
        If a moment is not positive and finite, or there are not as many of both.
    """

    name: str
    expected: FloatArray
    second_moment: FloatArray

    def __post_init__(self) -> None:
        if self.expected.ndim != 1 or self.expected.shape != self.second_moment.shape:
            shapes = f"{self.expected.shape} and {self.second_moment.shape}"
            raise PriorError(f"expected and second_moment must be of one length, not {shapes}")
        for name in ("expected", "second_moment"):
            moment = getattr(self, name)
            wrong = ~(np.isfinite(moment) & (moment > 0.0))
            refuse(wrong, moment, name=name, rule="be positive and finite", error=PriorError)

    def of(self, pairs: slice) -> Prior:
        """Return the same of some pairs alone."""
        return Prior(self.name, self.expected[pairs], self.second_moment[pairs])


def make_prior(
    pool: Pool,
    *,
    name: str,
    goal: Goal,
    measure: Measure,
    max_grade: int,
    grades: FloatArray | None = None,
) -> Prior:
    """Compute a prior for a pool.

    A utility is believed to be 0 or M, the utility of the best grade, so that the second moment
    is M times the expectation.

    Parameters
    ----------
    name : {"constant", "rank", "fusion", "scores"}
        ``constant``: every pair is expected to have utility M; the only prior of measures whose
        utility depends on the run.
        ``rank``: a document at rank r of a run is relevant with probability 16 / (r + 34)
        (Schnabel et al. 2016, section 6, TREC-8); a pair has the mean over the goal's runs, 0
        where a run does not return it. Pairs that only other runs return get what they would
        have just below the depth of one of the goal's runs.
        ``fusion``: the more weight the runs together give to a document, the likelier it is
        relevant: W / (W + mean of W in the topic), W being the sum of its weights over the runs
        of the pool under the measure.
        ``scores``: the prior ``rank``, raised where predicted grades are high. Only their order is
        used, and only as far as what the runs return bears it out (`calibration.agreement`);
        no pair is believed less likely than under ``rank``. The root of a chance is raised to at
        most four times itself, and all are raised by so little that with the rule "second" the
        sum of the sizes grows by half at most: whatever is predicted, a sample of half as many
        pairs more is as good as one by rank. Predictions that are the same for all pairs, noise,
        or upside down, change little or nothing.
    goal, measure : Goal, Measure
    max_grade : int
        The best grade of the campaign's scale.
    grades : ndarray of float64, shape (N,) or (N, S), optional
        For ``scores``: the predicted grade of each pair, from 0 to max_grade; NaN where nothing is
        predicted: such a pair has its chance by rank. A grade off the scale is refused, though
        another scale would change nothing: it is the sign of a wrong file. With a column for each
        of S who predicted grades, these are put together first (`calibration.put_together`).

    Raises
    ------
    PriorError
        If there is no prior of this name, the measure has only the constant one, a predicted
        grade is off the scale, or `max_grade` is out of range.
    MeasureError
        If no grade of the scale has any utility under the measure.
    PoolError
        If the goal names a run that the pool does not have.

    Examples
    --------
    >>> pool = pool_runs({"a": rank_scores({"1": {"d1": 2.0, "d2": 1.0}})}, depth=2)
    >>> measure = parse_measure("P@2")
    >>> prior = make_prior(pool, name="rank", goal=single("a"), measure=measure, max_grade=1)
    >>> prior.expected.round(3)
    array([0.457, 0.444])
    """
    if name not in NAMES:
        meant = nearest(name, NAMES)
        raise PriorError(f"The prior is one of {', '.join(NAMES)}, not {name!r}{meant}.")
    check_whole(max_grade, name="max_grade", most=MAX_GRADE, error=PriorError)
    check_is_measure(measure)
    check_goal(goal, pool.runs)
    if measure.family in ("prediction", "preference"):
        return _of_runs(pool, name, measure)
    best = measure.max_utility(max_grade)
    if name == "scores":
        expected = best * _scores(pool, goal, measure, _checked(pool, max_grade, grades))
    else:
        expected = best * by_block(pool, lambda some: PRIORS[name](some, goal, measure))
    return Prior(name, sealed(expected), sealed(best * expected))


def _of_runs(pool: Pool, name: str, measure: Measure) -> Prior:
    """The effective weights hold the utilities, of every grade alike: nothing is left to say."""
    if name != "constant":
        raise PriorError(f"{measure} compares grades with what runs say: use the prior constant.")
    return Prior(name, frozen(np.ones(len(pool))), frozen(np.ones(len(pool))))


def rank_relevance(ranks: FloatArray) -> FloatArray:
    """Return the probability 16 / (r + 34) that the document at rank r is relevant."""
    return np.asarray(16.0 / (ranks + 34.0), dtype=np.float64)


def _constant(pool: Pool, goal: Goal, measure: Measure) -> FloatArray:
    return np.ones(len(pool))


def _rank(pool: Pool, goal: Goal, measure: Measure) -> FloatArray:
    by_rank = rank_relevance(np.arange(pool.depth + 2.0))
    total = pool.by_pair(by_rank[pool.rank]) @ indicator(pool, goal.all_runs)
    believed = np.where(total > 0.0, total, by_rank[-1]) / len(goal.all_runs)
    return np.asarray(believed, dtype=np.float64)


def _fusion(pool: Pool, goal: Goal, measure: Measure) -> FloatArray:
    weights = pool.by_pair(pool.entry_weights(measure))
    total: FloatArray = weights @ np.ones(len(pool.runs))
    pairs = np.bincount(pool.topic, minlength=len(pool.topics))
    topic_total = column_sums(pool.topic, total, number=len(pool.topics))
    mean = (topic_total / np.maximum(pairs, 1))[pool.topic]
    relevance = np.divide(total, total + mean, out=np.zeros_like(total), where=total > 0.0)
    return np.maximum(relevance, LEAST)


def _scores(pool: Pool, goal: Goal, measure: Measure, grades: FloatArray) -> FloatArray:
    """The chance by rank, its root raised by what predictions promise, by `MOST_GROWTH` at most."""
    by_rank = by_block(pool, lambda some: _rank(some, goal, measure))
    raised = agreement(order_bins(put_together(grades, by_rank)), by_rank)
    size = effective_weights(pool, goal, measure) * np.sqrt(by_rank)
    growth = float((size * raised).sum())
    if growth > 0.0:
        raised = raised * min(1.0, MOST_GROWTH * float(size.sum()) / growth)
    return np.minimum(by_rank * (1.0 + raised) ** 2, 1.0)


def _checked(pool: Pool, max_grade: int, grades: FloatArray | None) -> FloatArray:
    if grades is None or grades.ndim not in (1, 2) or len(grades) != len(pool) or not grades.size:
        given = "none" if grades is None else f"the shape {grades.shape}"
        needed = f"one predicted grade per pair, {len(pool)}"
        raise PriorError(f"The prior scores needs {needed}; grades has {given}.")
    wrong = np.argwhere(~(np.isnan(grades) | ((grades >= 0.0) & (grades <= max_grade))))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        name = f"{pool.docno[place[0]].decode()!r} of topic {pool.topics[pool.topic[place[0]]]!r}"
        found = f"{grades[place]:g}, outside 0 to {max_grade}"
        raise PriorError(f"The predicted grade of {name} is {found}.")
    return grades


MOST_GROWTH = 0.5  # of the sum of sizes, by which predictions may raise some of them
LEAST = 0.01  # of the best utility: no pair is believed to be worthless for sure
PRIORS: Mapping[str, Callable[[Pool, Goal, Measure], FloatArray]] = {
    "constant": _constant,
    "rank": _rank,
    "fusion": _fusion,
}
NAMES = (*PRIORS, "scores")
