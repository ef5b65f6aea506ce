"""What is asked of a round, and what it answers: estimates of every run, measure by measure."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..inference.tiers import tiers
from ..inference.unknown import Reason, Reasons, name_of
from ..measures.kinds import MeasureError
from ..measures.table import Measure, parse_measure
from ..sampling.methods import interval_kinds
from ..tables import Columns, FactSheet, Tabled, by_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..arrays import BoolArray, FloatArray, IntArray
    from ..data.labels import LabelRows
    from ..data.pool import Pool
    from ..data.scope import Scope
    from ..inference.equivalence import Equivalence, Negligible
    from ..inference.intervals import Bound
    from ..inference.looks import Look
    from ..inference.missed import Missed
    from ..inference.outlook import Outlook
    from ..inference.ranks import Ranking
    from ..sampling.interval_kinds import IntervalKind


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of a round of a pool of N pairs; see `evaluation.evaluate`.

    Attributes
    ----------
    labels : LabelRows
        `pair` counts the N pairs.
    measures : tuple of Measure
    max_grade : int
        The best grade of the scale that the judgments are on.
    confidence : float
    interval : IntervalKind
    predictions : ndarray of float64, shape (N,), or None
    outlook : Outlook or None
        Of the N pairs.
    look : Look or None
        Which of the planned looks this is, if what is told shall hold at all of them at once.
    negligible : Negligible or None
        Which differences do not matter, under one of the measures, if any was named before the
        sample was drawn.
    """

    labels: LabelRows
    measures: tuple[Measure, ...]
    max_grade: int
    confidence: float = 0.95
    interval: IntervalKind = "student"
    predictions: FloatArray | None = None
    outlook: Outlook | None = None
    look: Look | None = None
    negligible: Negligible | None = None

    def within(self, measure: Measure) -> float:
        """Return up to which size differences under a measure do not matter; 0: all do."""
        found = self.negligible
        return found.difference if found is not None and found.measure == measure else 0.0

    @property
    def at_this_look(self) -> float:
        """The confidence at which everything is worked out: see `looks`."""
        return self.confidence if self.look is None else self.look.confidence(self.confidence)


@dataclass(frozen=True, eq=False)
class EstimatorResult:
    """Estimates of the k runs' values by one estimator.

    Attributes
    ----------
    value, se, df, low, high : ndarray of float64, shape (k,)
        Estimate, standard error (`uncertainty.variances`), degrees of freedom, ends of the
        confidence interval (`uncertainty.value_limits`; Student's for ratios). No
        value can be negative or above `Measure.largest_value`, and intervals are cut there, unless
        the estimate itself lies above, where they end. With a guaranteed kind of interval `se`
        and `df` have no part in the ends.
    covariance : ndarray of float64, shape (k, k)
        Covariance of the values as the sample estimates it, without bias.
    difference_df : ndarray of float64, shape (k, k)
        Degrees of freedom of each difference. Of ``ht`` beside ``is``, by which runs are not
        compared, they are not worked out: they are 1, the least there can be.
    unknown : ndarray of int8, shape (k,)
        Why a value is not known, a `Reason`; 0 where it is known. What is not known has numbers
        all the same, unbiased ones, but nobody should read anything into them.
    difference_unknown : ndarray of int8, shape (k, k)
        The same of the differences.
    difference_few : ndarray of bool, shape (k, k), or None
        Which differences too few finds carry for a verdict, however far apart the values are.
    expected : ndarray of float64, shape (k, k), or None
        Covariance expected of what the sample may have missed, or of topics as all runs have them;
        see `uncertainty`. None where there is no such model: variances are by the sample alone.
    expected_of_sample : ndarray of float64, shape (k, k), or None
        Of sums: the part of `expected` without disagreement between assessors.
    finds : ndarray of float64, shape (k, k), or None
        How many finds values and differences come from; see `uncertainty.variances`.
    freedom : float or None
        Of whole topics: degrees of freedom of the covariance; see `uncertainty.Pooled`.
    difference_least : ndarray of float64, shape (k, k), or None
        Standard errors that those of differences are at least.
    missed : Missed or None
        What may have been missed: differences with a verdict are beyond it, whatever their errors.
    difference_margin : ndarray of float64, shape (k, k), or None
        Half widths that those of differences, each taken alone, are at least (`missed.Missed`).
    difference_bound : Bound or None
        With a guaranteed kind of interval: the guarantee for the differences.
    noise : ndarray of float64, shape (k,), or None
        What disagreement between assessors adds to the squared standard errors; None: not told.
    """

    value: FloatArray
    se: FloatArray
    df: FloatArray
    low: FloatArray
    high: FloatArray
    covariance: FloatArray
    difference_df: FloatArray
    unknown: Reasons
    difference_unknown: Reasons
    difference_few: BoolArray | None = None
    expected: FloatArray | None = None
    expected_of_sample: FloatArray | None = None
    finds: FloatArray | None = None
    freedom: float | None = None
    difference_least: FloatArray | None = None
    missed: Missed | None = None
    difference_margin: FloatArray | None = None
    difference_bound: Bound | None = None
    noise: FloatArray | None = None

    @property
    def half_width(self) -> FloatArray:
        """The longer side of each interval, shape (k,): one that is cut is not symmetric."""
        return np.maximum(self.high - self.value, self.value - self.low)

    def without(self, runs: BoolArray, most: FloatArray) -> EstimatorResult:
        """Return the same with nothing known of some runs, (k,), but how high they can be."""
        return replace(
            self,
            low=np.where(runs, 0.0, self.low),
            high=np.where(runs, most, self.high),
            unknown=np.where(runs, np.int8(Reason.TOO_LITTLE), self.unknown),
        )


class DrawnRound(FactSheet):
    """What was drawn: in a round of any method, or in several that are estimated together."""

    FACTS: ClassVar = ("method", "batches", "intervals")

    @property
    @abstractmethod
    def method(self) -> str:
        """The way of sampling: a name of `methods.SAMPLING_METHODS`, or ``given``."""

    @property
    @abstractmethod
    def batches(self) -> int:
        """Number of batches."""

    @property
    def planned(self) -> int:
        """Number of batches whose pairs are known by now; later ones hang on judgments."""
        return self.batches

    @property
    def intervals(self) -> tuple[IntervalKind, ...]:
        """The kinds of intervals that there are, the usual one first."""
        return interval_kinds(self.method)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What it was drawn for, the goal's first; none where that is not known."""
        return ()

    @abstractmethod
    def pairs(self, pool: Pool) -> IntArray:
        """Return the pairs of the pool that are to be judged, ascending."""

    def prefix(self, pool: Pool, batches: int) -> DrawnRound:
        """Return what the first batches hold. What is no round of ours is one whole."""
        return self

    @abstractmethod
    def answer(self, scope: Scope, asked: Asked) -> Evaluation:
        """Estimate the runs of a scope; see `evaluation.evaluate`."""


PAIR = ("run", "other", "difference", "margin", "adjusted p", "verdict", "unknown")


@dataclass(frozen=True, eq=False, repr=False)
class Verdicts(Tabled):
    """Every two runs, and which of them is surely better.

    Attributes
    ----------
    runs : tuple of str
    ranking : Ranking
        Of these runs.
    """

    runs: tuple[str, ...]
    ranking: Ranking

    @property
    def caption(self) -> str:
        """How many of the comparisons have a verdict."""
        pairs = len(self.runs) * (len(self.runs) - 1) // 2
        return f"{np.count_nonzero(self.ranking.verdicts == 1)} verdicts on {pairs} pairs of runs"

    def columns(self) -> Columns:
        """Return a row for every two runs, the one with the better rank first: `PAIR`.

        A difference that is not known is None, and so are its margin and p.
        """
        order = self.ranking.order.tolist()
        pairs = [(i, j) for at, i in enumerate(order) for j in order[at + 1 :]]
        return by_rows(PAIR, [self._row(i, j) for i, j in pairs])

    def _row(self, i: int, j: int) -> list[Any]:
        found, why = self.ranking, name_of(int(self.ranking.unknown[i, j]))
        numbers = (found.difference[i, j], found.margin[i, j], found.adjusted_p[i, j])
        verdict = ("worse", "", "better")[int(found.verdicts[i, j]) + 1]
        told = (None if why else float(number) for number in numbers)
        return [self.runs[i], self.runs[j], *told, verdict, why or ""]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MeasureResult(Tabled):
    """Estimates of runs under one measure, and how the runs compare.

    Attributes
    ----------
    measure : Measure
    runs : tuple of str
        The k run tags: the order of every vector and matrix.
    estimators : mapping of str to EstimatorResult
        ``is`` (importance sampling) for designs with replacement, ``ht`` (Horvitz-Thompson) for
        the others and for ``iid``; with predictions also ``di`` (difference).
    primary : str
        The estimator that is shown and ranked by: ``is`` or ``di`` where there is one, else
        ``ht``. Ratio measures have ``ht`` only, for every design.
    effective_sample_size : ndarray of float64, shape (k,)
        Number of equally weighted pairs that the sample is worth for the run.
    label_noise_measured : bool
        Whether any pair has two judgments, so that disagreement is part of the standard errors.
    by_topic : ndarray of float64, shape (T, k)
        What each topic of the pool contributes to the primary estimate of each run.
    variance_by_topic : ndarray of float64, shape (T, k), or None
        Sums of gains over distinct pairs: the variance of ``ht`` from each topic, if pairs were
        drawn independently (`by_topic.variance_by_topic`).
    ratio_bias : ndarray of float64, shape (k,), or None
        Ratio measures: what was taken off the value for the bias of a ratio, in the measure's
        unit. It is known to second order only: where it is not small against the standard error,
        as much again may be left.
    relevant_found : ndarray of int64, shape (T,), or None
        Ratio measures: sampled pairs of each topic with any utility. Where they are few, neither
        the bias is known nor the interval reliable.
    interval : IntervalKind
        The kind of the primary estimator's intervals, verdicts and possible ranks: the one that
        was asked for, or ``student`` for a measure that has no other.
    ranking : Ranking
        By the primary estimator.
    support : ndarray of float64, shape (k,)
        Share of the run's weight on pairs that could be sampled. Below 1 the estimate is of a
        lower bound only, and so is its interval; verdicts hold whatever the rest is (`slack`). At 0
        the value is not known (`knowledge`).
    outlook : Outlook or None
        The grades that were expected of the pairs; None where nothing is.
    equivalence : Equivalence or None
        Which runs are as good as equal, where some differences under the measure do not matter.
    """

    measure: Measure
    runs: tuple[str, ...]
    estimators: Mapping[str, EstimatorResult]
    primary: str
    effective_sample_size: FloatArray
    label_noise_measured: bool
    by_topic: FloatArray
    ranking: Ranking
    support: FloatArray
    variance_by_topic: FloatArray | None = None
    ratio_bias: FloatArray | None = None
    relevant_found: IntArray | None = None
    interval: IntervalKind = "student"
    outlook: Outlook | None = None
    equivalence: Equivalence | None = None

    @property
    def estimate(self) -> EstimatorResult:
        """The result of the primary estimator."""
        return self.estimators[self.primary]

    @property
    def verdicts(self) -> Verdicts:
        """Every two runs, and which of them is surely better."""
        return Verdicts(self.runs, self.ranking)

    @property
    def tiers(self) -> IntArray:
        """The tier of each run, (k,), 1 the best; 0 where its value is not known (`tiers`)."""
        return tiers(self.ranking.verdicts, self.estimate.unknown == Reason.KNOWN)

    @property
    def caption(self) -> str:
        """The measure, and what its intervals are."""
        return f"{self.measure}, {self.interval} intervals"

    def columns(self) -> Columns:
        """Return a row for every run, best first: `ROW`.

        A value that is not known is None, and so are the ends of its interval; ``unknown`` says
        why, by a name of `Reason`, and is empty where the value is known.
        """
        return by_rows(ROW, [self._row(run) for run in self.ranking.order.tolist()])

    def _row(self, run: int) -> list[Any]:
        found, ranking, why = self.estimate, self.ranking, name_of(int(self.estimate.unknown[run]))
        numbers = (found.value[run], found.low[run], found.high[run])
        return [
            self.runs[run],
            *(None if why else float(number) for number in numbers),
            int(ranking.rank[run]),
            f"{ranking.rank_low[run]}-{ranking.rank_high[run]}",
            float(self.support[run]),
            why or "",
        ]


ROW = ("run", "value", "low", "high", "rank", "possible ranks", "support", "unknown")


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Tabled):
    """What a prefix of batches says.

    Attributes
    ----------
    batches : int
        Number of batches used.
    judged_pairs, judgments : int
        Distinct sampled pairs of these batches, and their label rows.
    draws : int or None
        With replacement: number of draws in these batches, repetitions included.
    confidence : float
        At this look, or at all looks together.
    results : tuple of MeasureResult
        In the order in which the measures were asked for.
    look : Look or None
        Which of the planned looks this is, where everything holds at all of them at once; None
        where it holds at this one.
    """

    batches: int
    judged_pairs: int
    judgments: int
    draws: int | None
    confidence: float
    results: tuple[MeasureResult, ...]
    look: Look | None = None

    MOST_ROWS: ClassVar = 60

    @property
    def caption(self) -> str:
        """What the numbers rest on."""
        share = f"{100 * self.confidence:.4g} % intervals"
        if self.look is not None:
            share += f" at all {self.look.planned} looks, this is look {self.look.number}"
        return f"{self.judged_pairs} judged pairs, {self.judgments} judgments, {share}"

    def columns(self) -> Columns:
        """Return a row for every measure and run: the measure, and what `MeasureResult` has."""
        every = [(str(each.measure), each.columns()) for each in self.results]
        measures = [name for name, columns in every for _ in columns["run"]]
        joined = {name: [cell for _, columns in every for cell in columns[name]] for name in ROW}
        return {"measure": measures, **joined}

    def __getitem__(self, measure: str | Measure) -> MeasureResult:
        """Return the result of a measure; MeasureError if it was not asked for."""
        wanted = parse_measure(measure) if isinstance(measure, str) else measure
        for each in self.results:
            if each.measure == wanted:
                return each
        told = ", ".join(str(each.measure) for each in self.results)
        raise MeasureError(f"{wanted} was not estimated; there is {told}")
