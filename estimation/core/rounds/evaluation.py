"""From a sample and its judgments to estimates, intervals and a ranking: the one entry point.

A round draws; what was drawn estimates totals over any runs, which are compared by one rule
(`comparison`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..arrays import FloatArray, check_confidence, check_whole
from ..data.scope import Scope
from ..estimates.difference import check_predictions
from ..measures.kinds import MAX_GRADE, PREFERENCE_MAX_GRADE
from ..measures.table import Measure, check_measures
from ..sampling.methods import check_interval, with_option
from .results import Asked, DrawnRound, Evaluation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..data.labels import LabelRows
    from ..data.pool import Pool
    from ..inference.equivalence import Negligible
    from ..inference.looks import Look
    from ..inference.outlook import Outlook
    from ..sampling.interval_kinds import IntervalKind


def evaluate(
    pool: Pool,
    drawn: DrawnRound,
    *,
    labels: LabelRows,
    measures: Sequence[Measure],
    max_grade: int,
    joined: Pool | None = None,
    batches: int | None = None,
    confidence: float = 0.95,
    interval: IntervalKind = "student",
    predictions: FloatArray | None = None,
    outlook: Outlook | None = None,
    look: Look | None = None,
    negligible: Negligible | None = None,
) -> Evaluation:
    """Estimate every measure for every run from the first batches that were drawn.

    The result is a function of its arguments to the last bit: the order of the label rows,
    the number of threads and the process have no influence.

    Parameters
    ----------
    pool : Pool
        As it was when the sample was drawn.
    drawn : DrawnRound
        A round (`rounds`), or several of pairs together.
    labels : LabelRows
        One row per judgment of a sampled pair of `pool`; an organizer's decision is a row like
        others. Rows of pairs that enter in later batches are not used.
    measures : sequence of Measure
        At least one.
    max_grade : int
        The best grade of the scale.
    joined : Pool, optional
        Of the same topics and depth, with all runs of `pool` and later ones: all of them are
        estimated and ranked together, see `scope`. Values, intervals and supports of the runs of
        `pool` are what they are without; verdicts and possible ranks are not, as with more runs
        there are more comparisons.
    batches : int, optional
        Use the first so many batches of a round; by default all. Every prefix is an exact sample
        of the same design with a smaller budget. Several rounds say it each for itself.
    confidence : float
        Of the intervals, and of all verdicts of a measure together.
    interval : IntervalKind
        One of the intervals of `drawn`; see `guarantees`. Measures without such a bound, ratios
        for one, keep ``student``: `MeasureResult.interval` says which it is. Estimators that are
        not the primary one always have ``student``.
    predictions : ndarray of float64, shape (N,), optional
        Rounds by ``poisson``: the predicted (expected) grade of every pair of `pool`, fixed
        before the sample was drawn, NaN where nothing is predicted. Measures of gains then have
        the estimator ``di`` as well, which is the primary one: see `difference`. It is unbiased
        whatever is predicted. Other measures are estimated as without.
    outlook : Outlook, optional
        What to expect of the pairs of the pool; by default fitted to these labels.
    look : Look, optional
        Which of how many looks this is, both fixed before the draw: with one for every complete
        batch, ``Look(batches, drawn.batches)``. Intervals of values and of differences, each taken
        alone, all verdicts of a measure, and its possible ranks then hold at all these looks at
        once, with `confidence`; see `looks`. By default they hold at this one, if it was fixed
        beforehand that this is when they count. Estimates do not depend on it.
    negligible : Negligible, optional
        Differences under one of the measures that do not matter, fixed before the sample was drawn:
        which runs are equivalent is then told, in `MeasureResult.equivalence`, and shares the error
        with the verdicts of that measure; see `equivalence`.

    Raises
    ------
    ValueError
        If pool, design and sample do not belong together, a sampled pair has the probability 0,
        a number is out of range, the method does not allow the interval or predictions,
        predictions come with a guaranteed interval, or `joined` does not go with `pool`: only one
        is of preferences, topics or depth differ, or it lacks a run or a pair.
    MeasureError
        (A ValueError.) If one of `measures` is no `Measure`, or cannot be estimated.
    LabelError
        (A ValueError.) If a sampled pair of these batches has no row, a row belongs to no
        sampled pair, or a grade is off the scale; the message names topic and docno.
    """
    used = drawn if batches is None else drawn.prefix(pool, batches)
    every = tuple(measures)
    asked = Asked(
        labels, every, max_grade, confidence, interval, predictions, outlook, look, negligible
    )
    return evaluate_scope(Scope.of(pool, joined), used, asked)


def evaluate_scope(scope: Scope, drawn: DrawnRound, asked: Asked) -> Evaluation:
    """Do the same for the runs of a scope; see `evaluate`."""
    check_whole(asked.max_grade, name="max_grade", most=MAX_GRADE)
    if scope.pool.is_of_preferences:  # they have a scale of their own
        asked = replace(asked, max_grade=PREFERENCE_MAX_GRADE)
    _check(scope, drawn, asked)
    return drawn.answer(scope, asked)


def _check(scope: Scope, drawn: DrawnRound, asked: Asked) -> None:
    if not asked.measures:
        raise ValueError("there must be a measure to estimate; measures holds none")
    check_measures(asked.measures, name="measures")
    check_confidence(asked.confidence)
    check_interval(asked.interval, method=drawn.method)
    if asked.interval not in drawn.intervals:
        others = ", ".join(drawn.intervals)
        raise ValueError(
            f"interval must be one of {others} for several rounds, whose draws are not alike, "
            f"not {asked.interval!r}"
        )
    if asked.predictions is not None:
        _check_help(scope, drawn, asked, asked.predictions)


def _check_help(scope: Scope, drawn: DrawnRound, asked: Asked, predictions: FloatArray) -> None:
    if drawn.method not in (able := with_option("difference")):
        allowed = " or ".join(able)
        raise ValueError(f"predictions are for designs of the method {allowed}, not {drawn.method}")
    if asked.interval != "student":
        given = f"interval {asked.interval!r}"
        raise ValueError(f"predictions do not go with the guaranteed {given}, only with 'student'")
    check_predictions(predictions, pairs=len(scope.place), max_grade=asked.max_grade)
