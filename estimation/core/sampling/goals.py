"""What a sample is optimized for: the goals, and the effective weight each gives to a pair."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, IntArray, check_whole, listed, nearest, no_run
from ..data.blocks import by_block
from ..data.ranked_lists import PoolError
from ..measures.kinds import MAX_GRADE, PREFERENCE_MAX_GRADE
from ..measures.table import Measure, check_is_measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..data.pool import Pool

KINDS = ("single", "absolute", "pair", "baseline", "ranking", "winner")
LEAST_RUNS = {"pair": 2, "ranking": 2, "winner": 2}  # 1 for the other kinds
MOST_RUNS = {"single": 1, "pair": 2}  # any number for the other kinds
ONLY_BY = {"winner": ("adaptive",)}  # methods that can have a goal; all that have any, otherwise
# Weights below this share of a pair's total weight are rounding, not a difference between runs.
NEGLIGIBLE = 1e-12


class GoalError(ValueError):
    """A goal that names too few runs, or a run twice."""


@dataclass(frozen=True)
class Goal:
    """What is to be estimated as exactly as possible.

    Build one with `single`, `absolute`, `pair`, `baseline`, `ranking` or `winner`.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    runs : tuple of str
        The runs whose values or differences are wanted.
    against : str or None
        The baseline, for the kind "baseline" only.

    Raises
    ------
    GoalError
        If the number of runs does not fit the kind, or a run is named twice.
    """

    kind: str
    runs: tuple[str, ...]
    against: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            meant = nearest(self.kind, KINDS)
            raise GoalError(f"the goal is one of {', '.join(KINDS)}, not {self.kind!r}{meant}")
        for tag in self.all_runs:
            if not isinstance(tag, str):
                raise GoalError(f"the goal {self.kind!r} names runs by texts, not {tag!r}")
        least, most = LEAST_RUNS.get(self.kind, 1), MOST_RUNS.get(self.kind)
        if len(self.runs) < least or (most is not None and len(self.runs) > most):
            needed = f"at least {least}" if most is None else f"exactly {most}"
            unit = "run" if least == 1 else "runs"
            raise GoalError(f"the goal {self.kind!r} needs {needed} {unit}, not {self._named}")
        if self.kind == "baseline" and self.against is None:
            raise GoalError(f"the goal 'baseline' needs a baseline; against is {self.against!r}")
        if self.kind != "baseline" and self.against is not None:
            raise GoalError(f"the goal {self.kind!r} has no baseline; against is {self.against!r}")
        for tag, number in Counter(self.all_runs).items():
            if number > 1:
                raise GoalError(f"the goal {self.kind!r} names the run {tag!r} twice")

    def __str__(self) -> str:
        """Return the kind and the first runs."""
        beside = "" if self.against is None else f" against {self.against}"
        return f"{self.kind} of {listed(self.runs, most=5)}{beside}"

    @property
    def _named(self) -> str:
        return f"{len(self.runs)} ({listed(self.runs)})" if self.runs else "0"

    @property
    def all_runs(self) -> tuple[str, ...]:
        """The runs that the goal involves, the baseline last."""
        return self.runs if self.against is None else (*self.runs, self.against)


def single(run: str) -> Goal:
    """Estimate the value of one run (Schnabel et al. 2016, eq. 4).

    >>> str(single("a"))
    'single of a'
    """
    return Goal("single", (run,))


def absolute(*runs: str) -> Goal:
    """Estimate the values of k runs (Schnabel, Swaminathan and Joachims, eq. 10-11: SQRT).

    >>> str(absolute("a", "b"))
    'absolute of a, b'
    """
    return Goal("absolute", runs)


def pair(run: str, other: str) -> Goal:
    """Estimate the difference between two runs (Schnabel et al. 2016, eq. 9).

    >>> str(pair("a", "b"))
    'pair of a, b'
    """
    return Goal("pair", (run, other))


def baseline(*runs: str, against: str) -> Goal:
    """Estimate the differences of k runs from a baseline (Schnabel et al. 2016, eq. 11).

    >>> str(baseline("a", "b", against="c"))
    'baseline of a, b against c'
    """
    return Goal("baseline", runs, against)


def ranking(*runs: str) -> Goal:
    """Rank k runs (Schnabel et al. 2016, eq. 13).

    >>> str(ranking("a", "b"))
    'ranking of a, b'
    """
    return Goal("ranking", runs)


def winner(*runs: str) -> Goal:
    """Find the best of k runs: of adaptive rounds alone, which learn who is still in the race.

    >>> str(winner("a", "b", "c"))
    'winner of a, b, c'
    """
    return Goal("winner", runs)


def kinds_for(method: str) -> tuple[str, ...]:
    """Return the kinds of goals that a way of sampling can have.

    >>> [method for method in ("adaptive", "poisson") if "winner" in kinds_for(method)]
    ['adaptive']
    """
    return tuple(kind for kind in KINDS if method in ONLY_BY.get(kind, (method,)))


def check_serves(goal: Goal, method: str) -> None:
    """Raise GoalError if a way of sampling cannot have a goal."""
    if goal.kind not in kinds_for(method):
        needed = f"the method {' or '.join(ONLY_BY[goal.kind])}"
        why = "which learns who is still in the race"
        raise GoalError(f"the goal {goal.kind!r} needs {needed}, {why}, not {method!r}")


@dataclass(frozen=True, eq=False)
class Race:
    """Which differences matter for the goal "winner", as far as is known.

    Attributes
    ----------
    leader : int
        The run that the others are compared with, as a position among the pool's k runs.
    priority : ndarray of int64, shape (k,)
        How much the difference of each run from the leader matters, up to a factor: at least 1 for
        all other runs of the goal, 0 for the leader and for runs that the goal does not name.
        Whole numbers, so that sums of them are the same everywhere.
    """

    leader: int
    priority: IntArray


def effective_weights(
    pool: Pool,
    goal: Goal,
    measure: Measure,
    *,
    max_grade: int | None = None,
    race: Race | None = None,
) -> FloatArray:
    """Return the weight a_i of every pair for the goal.

    With w_ij the weight of pair i in the value of run j:

    ========= ==========================================
    goal      a_i
    ========= ==========================================
    single    w_i
    absolute  sqrt(sum_j w_ij^2)
    pair      abs(w_i1 - w_i2)
    baseline  sqrt(sum_j (w_ij - w_i0)^2)
    ranking   sqrt(sum_j (w_ij - mean_j w_ij)^2)
    winner    sqrt(sum_j q_j (w_ij - w_il)^2)
    ========= ==========================================

    with l the leader of the race and q_j the priorities of the others; as ``ranking`` before
    anything is known of it.

    Where the utility depends on the run (predictions, preferences), the y_ij = w_ij u_ij of a
    grade take the place of w_ij, and a_i is the root of the mean of a_i^2 over the grades.

    Parameters
    ----------
    pool, goal, measure : Pool, Goal, Measure
    max_grade : int, optional
        The best grade of the scale; needed where the utility depends on the run's score.
    race : Race, optional
        For the goal "winner" alone.

    Returns
    -------
    ndarray of float64, shape (N,)
        Exactly 0 where the pair cannot matter for the goal.

    Raises
    ------
    PoolError
        If the goal names a run that the pool does not have.
    MeasureError
        If the pool lacks what the measure is about.
    """
    check_is_measure(measure)
    check_goal(goal, pool.runs)
    pool.check_measure(measure)
    if measure.family not in ("prediction", "preference"):
        return by_block(
            pool, lambda some: goal_weights(some, goal, some.entry_weights(measure), race)
        )
    best = PREFERENCE_MAX_GRADE if measure.family == "preference" else max_grade
    if best is None:
        raise GoalError(f"max_grade is needed for {measure}, whose utility depends on the run")
    check_whole(best, name="max_grade", most=MAX_GRADE, error=GoalError)
    return by_block(pool, lambda some: _of_grades(some, goal, measure, best, race))


def _of_grades(
    pool: Pool, goal: Goal, measure: Measure, best: int, race: Race | None
) -> FloatArray:
    """The root of the mean of the squares of the weights by each grade."""
    entries = pool.entry_weights(measure)
    squares = [
        goal_weights(pool, goal, entries * pool.entry_utilities(measure, grade), race) ** 2
        for grade in range(best + 1)
    ]
    return np.asarray(np.sqrt(np.mean(squares, axis=0)), dtype=np.float64)


def beside(goal: Goal, runs: Sequence[str]) -> Goal | None:
    """Return the values of all runs, where a goal leaves some of them out; None where it does not.

    >>> str(beside(single("a"), ["a", "b"]))
    'absolute of a, b'
    """
    return None if set(runs) <= set(goal.all_runs) else absolute(*runs)


def check_goal(goal: object, runs: Sequence[str]) -> None:
    """Raise an error unless it is a goal, and its runs and its baseline are among some runs.

    GoalError if it is no `Goal`; PoolError if one of its runs is not there, which says whether it
    is the baseline.
    """
    if not isinstance(goal, Goal):
        raise GoalError(f"goal must be a Goal (see goals.absolute and the like), not {goal!r}")
    known = set(runs)
    for tag in goal.all_runs:
        if tag not in known:
            named = "the baseline of the goal" if tag == goal.against else "which the goal names"
            raise PoolError(no_run(tag, runs, named=f", {named}"))


def indicator(pool: Pool, tags: tuple[str, ...]) -> FloatArray:
    """Return 1 for some runs and 0 for the others, shape (k,)."""
    chosen = np.zeros(len(pool.runs))
    chosen[[pool.run_index(tag) for tag in tags]] = 1.0
    return chosen


def goal_weights(
    pool: Pool, goal: Goal, entries: FloatArray, race: Race | None = None
) -> FloatArray:
    """Return the goal's weight of every pair, (N,), from what each entry adds to its run, (E,)."""
    chosen = _Chosen.of(pool, goal.runs, entries)
    if goal.kind in ("single", "absolute"):
        return np.sqrt(chosen.raw_squares())
    if race is not None:
        center = _Chosen.of(pool, (pool.runs[race.leader],), entries).total
        chosen = _Chosen(pool, race.priority.astype(np.float64), entries)
    elif goal.kind in ("ranking", "winner"):
        center = chosen.total / len(goal.runs)
    elif goal.kind == "pair":
        center = _Chosen.of(pool, goal.runs[1:], entries).total
        chosen = _Chosen.of(pool, goal.runs[:1], entries)
    else:
        center = _Chosen.of(pool, goal.all_runs[-1:], entries).total
    squares = chosen.squares(center)
    scale = chosen.raw_squares() + center**2
    return np.where(squares > NEGLIGIBLE**2 * scale, np.sqrt(squares), 0.0)


@dataclass(frozen=True, eq=False)
class _Chosen:
    """Sums over the entries of some runs, pair by pair."""

    pool: Pool
    chosen: FloatArray  # (k,) how often each run counts: 1 or 0, and its priority in a race
    entries: FloatArray  # (E,)

    @classmethod
    def of(cls, pool: Pool, tags: tuple[str, ...], entries: FloatArray) -> _Chosen:
        return cls(pool, indicator(pool, tags), entries)

    @property
    def total(self) -> FloatArray:
        """Sum of the weights of every pair, shape (N,)."""
        return self._sums(self.entries)

    def raw_squares(self) -> FloatArray:
        """Sum over runs of w_ij^2."""
        return self._sums(np.square(self.entries))

    def squares(self, center: FloatArray) -> FloatArray:
        """Sum over runs of (w_ij - center_i)^2, without forming the absent entries."""
        stored = self._sums((self.entries - np.repeat(center, np.diff(self.pool.indptr))) ** 2)
        absent = self.chosen.sum() - self._sums(np.ones(len(self.entries)))
        return np.asarray(stored + absent * center**2, dtype=np.float64)

    def _sums(self, values: FloatArray) -> FloatArray:
        return np.asarray(self.pool.by_pair(values) @ self.chosen, dtype=np.float64)
