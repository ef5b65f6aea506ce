"""Who plays: every way of judging, ready to be played as often as wanted.

Ours and the papers' are those of ``manage.py simulate``, for the goal *absolute* unless another is
named. Budgets are distinct judged pairs: draws with replacement are as many as are expected to hit
so many.

A method says something of differences in one of three ways. Rounds of the application have
verdicts. Samples of pairs that come with a covariance get the same simultaneous test of all pairs
of runs (`ranks.rank_runs`). The rest, which has no sampling error or judges whole topics, is read
as is usual: a paired t test over its topics for every two runs, with Holm's correction over all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy import special

from benchmarks.judgments.lara import lara_chances
from benchmarks.judgments.material import Material
from benchmarks.judgments.ppi import prediction_powered_mean
from estimation.core.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from estimation.core.inference.intervals import student_intervals
from estimation.core.inference.multiplicity import holm
from estimation.core.inference.ranks import rank_runs
from estimation.core.sampling.goals import Goal
from estimation.core.sampling.methods import SAMPLING_METHODS
from estimation.core.sampling.random_numbers import permanent_random_numbers
from estimation.research.baselines.select import select
from estimation.research.trials.honesty import Signs
from estimation.research.trials.methods import METHODS as SIMULATED
from estimation.research.trials.methods import Outcome, prepare
from estimation.research.trials.settings import Setting

ERROR = 0.05
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Told:
    """What a method says after one trial: values, intervals if it has any, and verdicts.

    Attributes
    ----------
    judged_pairs : int
    value : ndarray of float64, shape (k,)
    limits : (low, high), each (k,), or None
        NaN where a value is withheld as not known.
    verdicts : ndarray of int8, shape (k, k), or None
        1 where the row's run is called better. None where the method cannot say.
    """

    judged_pairs: int
    value: FloatArray
    limits: tuple[FloatArray, FloatArray] | None
    verdicts: Signs | None


Player: TypeAlias = Callable[[str], Told]


@dataclass(frozen=True)
class Method:
    """A way of judging.

    Attributes
    ----------
    name, label : str
    prepare : callable
        Takes material and budget, and returns what plays the trial of a seed. ValueError if the
        method cannot work with the budget.
    chance : bool
        Whether trials differ.
    asks : bool
        Whether the machine has a part.
    """

    name: str
    label: str
    prepare: Callable[[Material, int], Player]
    chance: bool = True
    asks: bool = False


# ------------------------------------------------------------------------- those of `simulate`


def _simulated(
    name: str,
    material: Material,
    budget: int,
    *,
    goal: str = "absolute",
    helped: bool = False,
) -> Player:
    pool = material.pool
    setting = Setting(
        pool=pool,
        grades=material.grades,
        max_grade=material.max_grade,
        goal=Goal(goal, pool.runs),
        measure=material.measure,
        budget=budget,
        unit="pairs",
        predicted=material.machine if helped else None,
    )
    play = prepare(setting, name)
    return lambda seed: _of_outcome(play(seed), pool.runs)


def _of_outcome(outcome: Outcome, runs: tuple[str, ...]) -> Told:
    if not outcome.looks:
        return Told(outcome.judged_pairs, outcome.value, None, None)
    (claims,) = outcome.looks
    low, high = (np.where(claims.shown, each, np.nan) for each in (claims.low, claims.high))
    limits = np.asarray(low), np.asarray(high)
    if claims.standings is not None:
        return Told(outcome.judged_pairs, outcome.value, limits, claims.standings.verdicts)
    assert outcome.spread is not None
    found = _compared(outcome.value, outcome.spread.covariance, outcome.spread.df, runs)
    return Told(outcome.judged_pairs, outcome.value, limits, found)


def _whole_topics(material: Material, budget: int) -> Player:
    """What is judged completely can be tested topic by topic."""
    pool, grades = material.pool, material.grades
    values = material.topic_values(material.utilities(grades))
    play = _simulated("deep", material, budget)

    def tested(seed: str) -> Told:
        chosen = select(pool, "deep", grades=grades, budget=budget, seed=seed).topics
        verdicts = paired_verdicts(values[chosen]) if len(chosen) > 1 else None
        return replace(play(seed), verdicts=verdicts)

    return tested


def _compared(
    value: FloatArray, covariance: FloatArray, df: FloatArray, runs: tuple[str, ...]
) -> Signs:
    return rank_runs(value, covariance=covariance, df=df, tags=runs).verdicts


# ---------------------------------------------------------------------- what is not sampled


def _selected(
    name: str,
    values: Callable[[Material, BoolArray], FloatArray],
    material: Material,
    budget: int,
) -> Player:
    """A baseline whose unjudged documents count as something: `values` are of topics and runs."""
    pool, grades = material.pool, material.grades

    def play(seed: str) -> Told:
        judged = np.zeros(len(pool), dtype=bool)
        judged[select(pool, name, grades=grades, budget=budget, seed=seed).pair] = True
        return _by_topic(budget, values(material, judged))

    select(pool, name, grades=grades, budget=budget, seed="")  # refuses a budget if it must
    return play


def _unjudged_as_irrelevant(material: Material, judged: BoolArray) -> FloatArray:
    return material.topic_values(np.where(judged, material.utilities(material.grades), 0.0))


def _unjudged_left_out(material: Material, judged: BoolArray) -> FloatArray:
    return material.condensed_values(judged)


def _lara(fill: Callable[[FloatArray], FloatArray], material: Material, budget: int) -> Player:
    utilities = material.utilities(np.arange(material.max_grade + 1))

    def play(seed: str) -> Told:
        judged, chances = lara_chances(
            material.machine,
            material.grades,
            max_grade=material.max_grade,
            budget=min(budget, len(material.pool)),
            numbers=permanent_random_numbers(material.pool, seed=seed),
        )
        return _by_topic(len(judged), material.topic_values(fill(chances) @ utilities))

    return play


def _most_likely(chances: FloatArray) -> FloatArray:
    return np.asarray(np.eye(chances.shape[1])[np.argmax(chances, axis=1)])


def _machine_alone(material: Material, _budget: int) -> Player:
    return lambda _seed: _by_topic(0, material.topic_values(material.utilities(material.machine)))


def _by_topic(judged_pairs: int, values: FloatArray) -> Told:
    return Told(judged_pairs, values.mean(axis=0), None, paired_verdicts(values))


def paired_verdicts(values: FloatArray) -> Signs:
    """Return which runs a paired t test over topics calls better, with Holm's correction.

    Parameters
    ----------
    values : ndarray of float64, shape (T, k)
        Of every run for every topic.
    """
    topics, runs = values.shape
    value, covariance = values.mean(axis=0), np.atleast_2d(np.cov(values, rowvar=False))
    variance = np.diag(covariance)
    both = np.add.outer(variance, variance)
    spread = (both - 2.0 * covariance) / topics
    difference = np.subtract.outer(value, value)
    known = spread > ROUNDING * both  # a difference without any spread is of too few topics
    ratio = np.abs(difference) / np.sqrt(np.where(known, spread, np.inf))
    adjusted = holm(2.0 * special.stdtr(topics - 1.0, -ratio)) if runs > 1 else np.ones((1, 1))
    return np.where(adjusted <= ERROR, np.sign(difference), 0.0).astype(np.int8)


# ------------------------------------------------------------------- prediction-powered inference


def _prediction_powered(material: Material, budget: int) -> Player:
    """A simple random sample of the pool, and the machine's grades of all of it."""
    pool = material.pool
    weights = pool.weights(material.measure) * len(pool)
    labels, said = material.utilities(material.grades), material.utilities(material.machine)
    if not 1 < budget < len(pool):
        raise ValueError(f"budget must lie between 2 and {len(pool) - 1}, not {budget}")

    def play(seed: str) -> Told:
        order = np.argsort(permanent_random_numbers(pool, seed=seed), kind="stable")
        sample, rest = np.sort(order[:budget]), np.sort(order[budget:])
        found = prediction_powered_mean(
            _rows(weights, labels, sample), _rows(weights, said, sample), _rows(weights, said, rest)
        )
        df = np.full(found.covariance.shape, budget - 1.0)
        limits = student_intervals(found.value, variance=np.diag(found.covariance), df=np.diag(df))
        verdicts = _compared(found.value, found.covariance, df, pool.runs)
        return Told(budget, found.value, (limits.low, limits.high), verdicts)

    return play


def _rows(weights: SparseMatrix, values: FloatArray, pairs: IntArray) -> FloatArray:
    return np.asarray(weights[pairs].toarray() * values[pairs, None])


# ---------------------------------------------------------------------------------- all of them


def _table(*methods: Method) -> Mapping[str, Method]:
    return {method.name: method for method in methods}


def _ours() -> list[Method]:
    return [
        Method(name, entry.short, partial(_simulated, name))
        for name, entry in SAMPLING_METHODS.items()
        if name in SIMULATED
    ]


METHODS: Mapping[str, Method] = _table(
    *(
        replace(each, label="independent draws (the papers' Q*)") if each.name == "iid" else each
        for each in _ours()
    ),
    Method(
        "adaptive-machine",
        "adaptive, with predictions",
        partial(_simulated, "adaptive", helped=True),
        asks=True,
    ),
    Method(
        "adaptive-ranking",
        "adaptive, goal ranking",
        partial(_simulated, "adaptive", goal="ranking"),
    ),
    Method(
        "adaptive-ranking-machine",
        "adaptive, goal ranking, with predictions",
        partial(_simulated, "adaptive", goal="ranking", helped=True),
        asks=True,
    ),
    Method(
        "poisson-machine",
        "Poisson, with predictions",
        partial(_simulated, "difference", helped=True),
        asks=True,
    ),
    Method("uniform", "uniform sample", partial(_simulated, "uniform")),
    Method("stratified", "stratified sample", partial(_simulated, "stratified")),
    Method("deep", "whole topics by chance", _whole_topics),
    Method(
        "pooling",
        "depth-k pooling, unjudged irrelevant",
        partial(_selected, "top", _unjudged_as_irrelevant),
        chance=False,
    ),
    Method(
        "condensed",
        "depth-k pooling, condensed lists",
        partial(_selected, "top", _unjudged_left_out),
        chance=False,
    ),
    Method("mtf", "Move-to-Front", partial(_selected, "mtf", _unjudged_as_irrelevant)),
    Method("mab", "bandit (MM-NS)", partial(_selected, "mab", _unjudged_as_irrelevant)),
    Method("ppi", "prediction-powered inference (PPI++)", _prediction_powered, asks=True),
    Method("lara", "LARA", partial(_lara, _most_likely), asks=True),
    Method("lara-expected", "LARA, expected gains", partial(_lara, np.asarray), asks=True),
    Method("machine", "the machine alone", _machine_alone, chance=False, asks=True),
)
