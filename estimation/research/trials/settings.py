"""What a simulated evaluation is about: a judged collection, a goal, a budget, and who judges.

Budgets. A method that never draws a pair twice spends a budget of n on n judged pairs (``poisson``:
n on average; ``deep`` and ``query``: as whole topics allow). For draws with replacement (``iid``,
``per-query``) the unit matters: of n draws some meet a pair that is judged already. To compare at
equal numbers of judged pairs, the unit "pairs" fixes the number of draws before the first one, such
that the *expected* number of distinct pairs, sum_i 1 - (1 - Q_i)^n, comes closest to the budget.
Drawing on until the number is reached would make the number of draws depend on what was drawn.

Noise. With assessors who err, each judgment is the true grade with probability 1 - P and otherwise
one of the other grades, all equally likely. What is estimated is then the expected utility over
assessors, and that is the truth that estimates are compared with: a systematic error of
the assessors is not the method's.

Looks. Whoever watches a campaign looks at it several times. With N looks the budget is cut into N
batches of the same size, the last of which takes what is left, and everything is estimated after
each. A method without batches has one look. `Setting.anytime` has everything told twice: as if each
look were the only one, and so that it holds at all of them at once.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, check_fraction, check_whole
from estimation.core.data.labels import LabelRows, check_grades
from estimation.core.data.pool import Pool
from estimation.core.estimates.complete import complete_values, expected_values
from estimation.core.estimates.ratios import ratios_of_shares
from estimation.core.inference.equivalence import Negligible
from estimation.core.measures.kinds import MAX_GRADE
from estimation.core.measures.table import Measure, check_is_measure, document_gains
from estimation.core.planning.stopping import StoppingRule
from estimation.core.sampling.designs import Rule
from estimation.core.sampling.goals import Goal, check_goal
from estimation.core.sampling.interval_kinds import INTERVAL_KINDS, IntervalKind
from estimation.core.sampling.random_numbers import permanent_random_numbers

Unit: TypeAlias = Literal["draws", "pairs"]
UNITS: tuple[Unit, ...] = ("draws", "pairs")


class TrialError(ValueError):
    """A setting that cannot be simulated; the message names the argument."""


@dataclass(frozen=True)
class Assessors:
    """Who judges: independent assessors of equal reliability.

    Attributes
    ----------
    labels : int
        R, judgments of every judged pair, each by another assessor.
    noise : float
        P, probability that a judgment is one of the other grades.
    """

    labels: int = 1
    noise: float = 0.0

    def __post_init__(self) -> None:
        check_whole(self.labels, name="labels", error=TrialError)
        check_fraction(self.noise, name="noise", error=TrialError)

    def expected(self, values: FloatArray) -> FloatArray:
        """Return the expectation, over judgments, of `values` of the grades 0..G, by true grade."""
        others = (values.sum() - values) / (len(values) - 1)
        return np.asarray((1.0 - self.noise) * values + self.noise * others)

    def judge(
        self, pool: Pool, grades: IntArray, *, max_grade: int, seed: str, pairs: IntArray
    ) -> IntArray:
        """Return R grades of each of some pairs, shape (R, n).

        They depend on seed, pair and assessor only, not on what else is judged.
        """
        true = grades[pairs]
        if self.noise == 0.0:
            return np.tile(true, (self.labels, 1))
        given = np.empty((self.labels, len(pairs)), dtype=np.int64)
        for assessor in range(self.labels):
            number = permanent_random_numbers(pool, seed=f"assessor {assessor} {seed}", pairs=pairs)
            other = np.minimum((number / self.noise * max_grade).astype(np.int64), max_grade - 1)
            other += other >= true
            given[assessor] = np.where(number < self.noise, other, true)
        return given


@dataclass(frozen=True, eq=False)
class Setting:
    """What is simulated, whatever the method.

    Attributes
    ----------
    pool : Pool
        Its N pairs are what can be judged.
    grades : ndarray of int64, shape (N,)
        The true grade of every pair.
    max_grade : int
        The best grade of the scale.
    goal, measure : Goal, Measure
    budget : int
        Between 1 and N.
    unit : {"draws", "pairs"}
        Of budgets of draws with replacement; see the module's text.
    prior : str
        Name of a prior, for designs that have one.
    predicted : ndarray of float64, shape (N,) or (N, S), optional
        Predicted grades, for the prior "scores" and the methods "adaptive", which alone takes
        those of several, and "difference".
    rule : {"first", "second"}, optional
        By default the one of the design.
    assessors : Assessors
    interval : IntervalKind
        The kind of the intervals; not every method and measure has each.
    looks : int
        How often the estimates are looked at while the budget is spent, at least 1; not every
        method can be looked at more than once.
    anytime : bool
        Whether what holds at all looks at once is told as well.
    stop : StoppingRule, optional
        Looked at after each look.
    negligible : float
        Differences up to this one do not matter; 0: all do.

    Raises
    ------
    TrialError
        If the grades do not fit the pool, the budget is out of range, the measure has no such
        intervals, or there is no look.
    PoolError
        If the pool lacks a run of the goal.
    """

    pool: Pool
    grades: IntArray
    max_grade: int
    goal: Goal
    measure: Measure
    budget: int
    unit: Unit = "draws"
    prior: str = "rank"
    predicted: FloatArray | None = None
    rule: Rule | None = None
    assessors: Assessors = Assessors()
    interval: IntervalKind = "student"
    looks: int = 1
    anytime: bool = False
    stop: StoppingRule | None = None
    negligible: float = 0.0

    def __post_init__(self) -> None:
        pairs = len(self.pool)
        check_whole(self.max_grade, name="max_grade", most=MAX_GRADE, error=TrialError)
        check_grades(self.grades, pairs=pairs, most=self.max_grade, error=TrialError)
        check_is_measure(self.measure)
        check_goal(self.goal, self.pool.runs)
        if self.unit not in UNITS:
            raise TrialError(f"unit must be one of {', '.join(UNITS)}, not {self.unit!r}")
        check_whole(
            self.budget, name="budget", most=pairs, of="pairs of the pool", error=TrialError
        )
        check_whole(self.looks, name="looks", error=TrialError)
        if self.interval not in INTERVAL_KINDS:
            kinds = ", ".join(INTERVAL_KINDS)
            raise TrialError(f"interval must be one of {kinds}, not {self.interval!r}")
        if self.interval != "student" and self.measure.family != "gain":
            raise TrialError(f"interval must be student for {self.measure}, not {self.interval!r}")

    @property
    def within(self) -> Negligible | None:
        """Which differences do not matter."""
        return Negligible(self.measure, self.negligible) if self.negligible else None

    @property
    def runs(self) -> IntArray:
        """Positions in the pool of the goal's runs, the baseline last."""
        return np.array([self.pool.run_index(tag) for tag in self.goal.all_runs], dtype=np.int64)

    def judged(self, seed: str, pairs: IntArray) -> IntArray:
        """Return the R grades that assessors give to pairs in the trial of a seed, shape (R, n)."""
        return self.assessors.judge(
            self.pool, self.grades, max_grade=self.max_grade, seed=seed, pairs=pairs
        )

    def rows(self, seed: str, pairs: IntArray) -> LabelRows:
        """Return the same grades as label rows."""
        given = self.judged(seed, pairs)
        return LabelRows(np.tile(pairs, len(given)), given.ravel())

    def truth(self) -> FloatArray:
        """Return the value of every run of the pool from all grades, in expectation over noise.

        Of ratio measures: from the share of judgments of each pair that would reach each level of
        utility, if as many people judged it as one likes.

        Returns
        -------
        ndarray of float64, shape (k,)
        """
        pool, measure, best = self.pool, self.measure, self.max_grade
        if measure.family == "ratio":
            return np.asarray(self._ratios().mean(axis=0))
        if measure.is_by_run:
            return self._of_runs()
        stops = measure.family == "query"
        gains = (
            document_gains(measure, max_grade=best)
            if stops
            else measure.utilities(np.arange(best + 1))
        )
        expected = self.assessors.expected(gains)
        values = expected_values(pool, grades=self.grades, measure=measure, gains=expected)
        return np.asarray(values.mean(axis=0))

    def _of_runs(self) -> FloatArray:
        """Of measures whose utility depends on the run: each grade by how likely it is given."""
        pool, number = self.pool, np.diff(self.pool.indptr)
        scale, weight = np.arange(self.max_grade + 1), self.pool.entry_weights(self.measure)
        added = np.zeros(len(pool.run))
        for grade in scale.tolist():
            chance = self.assessors.expected((scale == grade).astype(np.float64))[self.grades]
            added += np.repeat(chance, number) * pool.entry_utilities(self.measure, grade)
        return np.asarray(pool.by_pair(weight * added).T @ np.ones(len(pool)))

    def _ratios(self) -> FloatArray:
        pool, measure = self.pool, self.measure
        scale = np.arange(self.max_grade + 1)
        gain = np.diff(measure.utilities(scale))
        rising = np.flatnonzero(gain > 0.0)
        if self.assessors.noise == 0.0 or not len(rising):
            (values,) = complete_values(pool, grades=self.grades, measures=[measure])
            return np.asarray(values)
        reach = [self.assessors.expected((scale > each).astype(np.float64)) for each in rising]
        by_grade = np.stack(reach)
        return ratios_of_shares(pool, measure, gain=gain[rising], reach=by_grade[:, self.grades])
