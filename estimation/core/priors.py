"""What is believed about the utility of pairs before anything is judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray, column_sums, frozen
from estimation.core.goals import Goal
from estimation.core.measures import Measure
from estimation.core.pool import Pool


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
    """

    name: str
    expected: FloatArray
    second_moment: FloatArray

    def __post_init__(self) -> None:
        for moment in (self.expected, self.second_moment):
            if not (np.all(np.isfinite(moment)) and np.all(moment > 0.0)):
                raise PriorError("the moments of a prior must be positive for every pair")


def make_prior(pool: Pool, *, name: str, goal: Goal, measure: Measure, max_grade: int) -> Prior:
    """Compute a prior for a pool.

    A utility is believed to be 0 or M, the utility of the best grade, so that the second moment
    is M times the expectation.

    Parameters
    ----------
    name : {"constant", "rank"}
        ``constant``: every pair is expected to have utility M.
        ``rank``: a document at rank r of a run is relevant with probability 16 / (r + 34)
        (Schnabel et al. 2016, section 6, TREC-8); a pair has the mean over the goal's runs, 0
        where a run does not return it. Pairs that only other runs return get what they would
        have just below the depth of one of the goal's runs.
    goal, measure : Goal, Measure
    max_grade : int
        The best grade of the campaign's scale.

    Raises
    ------
    PriorError
        If there is no prior of this name.
    MeasureError
        If no grade of the scale has any utility under the measure.
    PoolError
        If the goal names a run that the pool does not have.
    """
    if name not in PRIORS:
        raise PriorError(f"the prior is one of {', '.join(PRIORS)}, not {name!r}")
    best = measure.max_utility(max_grade)
    expected = best * PRIORS[name](pool, goal)
    return Prior(name, frozen(expected), frozen(best * expected))


def rank_relevance(ranks: FloatArray) -> FloatArray:
    """Return the probability 16 / (r + 34) that the document at rank r is relevant."""
    return np.asarray(16.0 / (ranks + 34.0), dtype=np.float64)


def _constant(pool: Pool, goal: Goal) -> FloatArray:
    return np.ones(len(pool))


def _rank(pool: Pool, goal: Goal) -> FloatArray:
    wanted = np.zeros(len(pool.runs), dtype=bool)
    wanted[[pool.run_index(tag) for tag in goal.all_runs]] = True
    kept = wanted[pool.run]
    relevance = rank_relevance(pool.rank[kept].astype(np.float64))
    total = column_sums(pool.entry_pair[kept], relevance, number=len(pool))
    below = rank_relevance(np.array([pool.depth + 1.0]))[0]
    return np.where(total > 0.0, total, below) / len(goal.all_runs)


PRIORS: Mapping[str, Callable[[Pool, Goal], FloatArray]] = {"constant": _constant, "rank": _rank}
