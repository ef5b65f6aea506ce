"""What a sample is optimized for: the goals, and the effective weight each gives to a pair."""

from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, column_sums
from estimation.core.measures import Measure
from estimation.core.pool import Pool

KINDS = ("single", "absolute", "pair", "baseline", "ranking")
# Weights below this share of a pair's total weight are rounding, not a difference between runs.
NEGLIGIBLE = 1e-12


class GoalError(ValueError):
    """A goal that names too few runs, or a run twice."""


@dataclass(frozen=True)
class Goal:
    """What is to be estimated as exactly as possible.

    Build one with `single`, `absolute`, `pair`, `baseline` or `ranking`.

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
            raise GoalError(f"the goal is one of {', '.join(KINDS)}, not {self.kind!r}")
        least = {"pair": 2, "ranking": 2}.get(self.kind, 1)
        most = {"single": 1, "pair": 2}.get(self.kind, len(self.runs))
        if not least <= len(self.runs) <= most:
            raise GoalError(f"{len(self.runs)} runs do not make the goal {self.kind!r}")
        if (self.against is not None) != (self.kind == "baseline"):
            raise GoalError("the goal 'baseline', and no other, names a baseline")
        if len(set(self.all_runs)) != len(self.all_runs):
            raise GoalError("a goal names a run twice")

    @property
    def all_runs(self) -> tuple[str, ...]:
        """The runs that the goal involves, the baseline last."""
        return self.runs if self.against is None else (*self.runs, self.against)


def single(run: str) -> Goal:
    """Estimate the value of one run (Schnabel et al. 2016, eq. 4)."""
    return Goal("single", (run,))


def absolute(*runs: str) -> Goal:
    """Estimate the values of k runs (Schnabel, Swaminathan and Joachims, eq. 10-11: SQRT)."""
    return Goal("absolute", runs)


def pair(run: str, other: str) -> Goal:
    """Estimate the difference between two runs (Schnabel et al. 2016, eq. 9)."""
    return Goal("pair", (run, other))


def baseline(*runs: str, against: str) -> Goal:
    """Estimate the differences of k runs from a baseline (Schnabel et al. 2016, eq. 11)."""
    return Goal("baseline", runs, against)


def ranking(*runs: str) -> Goal:
    """Rank k runs (Schnabel et al. 2016, eq. 13)."""
    return Goal("ranking", runs)


def effective_weights(pool: Pool, goal: Goal, measure: Measure) -> FloatArray:
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
    ========= ==========================================

    Returns
    -------
    ndarray of float64, shape (N,)
        Exactly 0 where the pair cannot matter for the goal.

    Raises
    ------
    PoolError
        If the goal names a run that the pool does not have.
    """
    chosen = _Chosen.of(pool, goal.runs, measure)
    if goal.kind in ("single", "absolute"):
        return np.sqrt(chosen.squares(np.zeros(len(pool))))
    if goal.kind == "ranking":
        center = chosen.total / len(goal.runs)
    elif goal.kind == "pair":
        center = _Chosen.of(pool, goal.runs[1:], measure).total
        chosen = _Chosen.of(pool, goal.runs[:1], measure)
    else:
        center = _Chosen.of(pool, goal.all_runs[-1:], measure).total
    squares = chosen.squares(center)
    scale = chosen.squares(np.zeros(len(pool))) + center**2
    return np.where(squares > NEGLIGIBLE**2 * scale, np.sqrt(squares), 0.0)


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The entries of some runs: pair, weight; and the sum of weights of every pair."""

    runs: int
    pair: IntArray
    weight: FloatArray
    total: FloatArray

    @classmethod
    def of(cls, pool: Pool, tags: tuple[str, ...], measure: Measure) -> "_Chosen":
        wanted = np.zeros(len(pool.runs), dtype=bool)
        wanted[[pool.run_index(tag) for tag in tags]] = True
        kept = wanted[pool.run]
        pairs, weights = pool.entry_pair[kept], pool.entry_weights(measure)[kept]
        return cls(len(tags), pairs, weights, column_sums(pairs, weights, number=len(pool)))

    def squares(self, center: FloatArray) -> FloatArray:
        """Sum over runs of (w_ij - center_i)^2, without forming the absent entries."""
        number = len(center)
        stored = column_sums(self.pair, (self.weight - center[self.pair]) ** 2, number=number)
        absent = self.runs - np.bincount(self.pair, minlength=number)
        return np.asarray(stored + absent * center**2, dtype=np.float64)
