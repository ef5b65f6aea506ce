"""The methods that every comparison needs: what judging is usually done with.

Each takes a pool, a budget in judged pairs and a seed, and returns a `Selection`;
`baselines.estimates` turns that and the grades of the judged pairs into values of runs.

Draws with replacement and equal probabilities need nothing of their own: an ``iid`` design whose
`size` is 1/N everywhere.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, frozen
from estimation.core.data.labels import check_grades
from estimation.core.data.pool import Pool
from estimation.core.sampling.random_numbers import permanent_random_numbers, uniform_numbers
from estimation.research.baselines.adjudication import select_mab, select_mtf
from estimation.research.baselines.selections import (
    Budget,
    Selection,
    check_total,
    contribution,
    sampling_budgets,
)
from estimation.research.baselines.stratified import select_stratified


def select_uniform(
    pool: Pool,
    *,
    budget: Budget,
    seed: str,
    runs: Sequence[str] | None = None,
    per_topic: bool = True,
) -> Selection:
    """Draw a simple random sample without replacement, in every topic or over the pool.

    Of N pairs n are drawn: pi_i = n/N, pi_il = n (n - 1)/(N (N - 1)). A larger budget with the
    same seed adds pairs.

    Parameters
    ----------
    budget : int or ndarray of int, shape (T,)
        Judged pairs of all topics together, shared as by `topic_budgets`, or per topic; every
        topic with documents needs one.
    seed : str
    runs : sequence of str, optional
        Runs that contribute documents; by default all.
    per_topic : bool
        False: one sample over all topics; the budget is then one number.

    Raises
    ------
    BudgetError
        If the budget cannot be spent, or leaves out a topic.
    """
    part = contribution(pool, runs)
    candidates = np.flatnonzero(part.eligible)
    if per_topic:
        block, sizes = np.arange(len(pool.topics)), part.sizes
        wanted = sampling_budgets(pool, sizes, budget)
    else:
        block, sizes = np.zeros(len(pool.topics), dtype=np.int64), part.sizes.sum(keepdims=True)
        wanted = np.array([check_total(sizes, budget)])
    numbers = permanent_random_numbers(pool, seed=seed, pairs=candidates)
    return smallest_numbers(pool, candidates, numbers, block=block, wanted=wanted, sizes=sizes)


def smallest_numbers(
    pool: Pool,
    candidates: IntArray,
    numbers: FloatArray,
    *,
    block: IntArray,
    wanted: IntArray,
    sizes: IntArray,
) -> Selection:
    """Select in every block of topics the `wanted` candidates with the smallest numbers.

    Parameters
    ----------
    candidates : ndarray of int64, shape (n,)
        Pairs that can be judged, ascending.
    numbers : ndarray of float64, shape (n,)
        Random numbers of the candidates.
    block : ndarray of int64, shape (T,)
        Block of each topic, nondecreasing.
    wanted, sizes : ndarray of int64, shape (blocks,)
        Pairs to select, and candidates.
    """
    place = block[pool.topic[candidates]]
    order = np.lexsort((numbers, place))
    within = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[place]
    pair = np.sort(candidates[order[within < wanted[place]]])
    many = np.maximum(sizes * (sizes - 1), 1)
    joint = np.where(sizes > 1, wanted * (wanted - 1) / many, 1.0)
    share = wanted / np.maximum(sizes, 1)
    return Selection(
        method="uniform",
        pair=frozen(pair),
        inclusion=frozen(share[block[pool.topic[pair]]]),
        group=frozen(np.zeros(len(pair), dtype=np.int64)),
        block=frozen(block),
        joint=tuple(frozen(np.full((1, 1), each)) for each in joint),
        topics=frozen(np.arange(len(pool.topics))),
        pool_digest=pool.digest,
    )


def select_top(pool: Pool, *, budget: int, runs: Sequence[str] | None = None) -> Selection:
    """Judge the pool of all runs from the top down, as deep as the budget allows.

    ShallowPool of Schnabel et al. 2016, TOP of Schnabel, Swaminathan and Joachims. Pairs are
    judged by their best rank in any run; what is left for the last depth goes to its pairs in
    canonical order. Unjudged pairs count as grade 0.

    Parameters
    ----------
    budget : int
        Judged pairs.
    runs : sequence of str, optional
        Runs that contribute documents; by default all.

    Raises
    ------
    BudgetError
        If the budget is not between 1 and the number of pairs that the runs contribute.
    """
    part = contribution(pool, runs)
    number = check_total(part.sizes, budget)
    best = np.full(len(pool), pool.depth + 1)
    np.minimum.at(best, pool.entry_pair[part.entry], pool.rank[part.entry])
    order = np.argsort(best, kind="stable")[:number]
    return Selection.certain(pool, "top", np.sort(order))


def select_deep(
    pool: Pool, *, budget: int, seed: str, runs: Sequence[str] | None = None
) -> Selection:
    """Judge everything that the runs return for topics chosen at random.

    DeepPool of Schnabel et al. 2016, DEEP of Schnabel, Swaminathan and Joachims: m = ceil(budget
    / mean pairs per topic) topics. m does not depend on which topics are chosen, so that the
    mean over them is unbiased; the judged pairs therefore differ from the budget.

    Parameters
    ----------
    budget : int
        Judged pairs aimed at.
    seed : str
    runs : sequence of str, optional
        Runs that contribute documents; by default all.

    Raises
    ------
    BudgetError
        If the budget is not between 1 and the number of pairs that the runs contribute.
    """
    part = contribution(pool, runs)
    number = len(pool.topics)
    many = -(-check_total(part.sizes, budget) * number // int(part.sizes.sum()))
    return whole_topics(pool, uniform_numbers(seed, number=number), many=many, runs=runs)


def whole_topics(
    pool: Pool, numbers: FloatArray, *, many: int, runs: Sequence[str] | None = None
) -> Selection:
    """Select everything that the runs return for the `many` topics of the smallest numbers.

    Parameters
    ----------
    numbers : ndarray of float64, shape (T,)
        One random number per topic.
    """
    chosen = np.sort(np.argsort(numbers, kind="stable")[:many])
    kept = np.isin(pool.topic, chosen) & contribution(pool, runs).eligible
    return Selection.certain(pool, "deep", np.flatnonzero(kept), topics=chosen)


# ------------------------------------------------------------------------------ all of them


class _Method(Protocol):
    def __call__(
        self,
        pool: Pool,
        *,
        grades: IntArray,
        budget: Budget,
        seed: str,
        runs: Sequence[str] | None = None,
    ) -> Selection: ...


def _uniform(
    pool: Pool, *, grades: IntArray, budget: Budget, seed: str, runs: Sequence[str] | None = None
) -> Selection:
    return select_uniform(pool, budget=budget, seed=seed, runs=runs)


def _stratified(
    pool: Pool, *, grades: IntArray, budget: Budget, seed: str, runs: Sequence[str] | None = None
) -> Selection:
    return select_stratified(pool, budget=budget, seed=seed, runs=runs)


def _top(
    pool: Pool, *, grades: IntArray, budget: Budget, seed: str, runs: Sequence[str] | None = None
) -> Selection:
    sizes = contribution(pool, runs).sizes
    return select_top(pool, budget=check_total(sizes, budget), runs=runs)


def _deep(
    pool: Pool, *, grades: IntArray, budget: Budget, seed: str, runs: Sequence[str] | None = None
) -> Selection:
    sizes = contribution(pool, runs).sizes
    return select_deep(pool, budget=check_total(sizes, budget), seed=seed, runs=runs)


BASELINES: Mapping[str, _Method] = {
    "uniform": _uniform,
    "top": _top,
    "deep": _deep,
    "mtf": select_mtf,
    "mab": select_mab,
    "stratified": _stratified,
}


def select(
    pool: Pool,
    name: str,
    *,
    grades: IntArray,
    budget: Budget,
    seed: str,
    runs: Sequence[str] | None = None,
) -> Selection:
    """Select pairs by the baseline of a name, judging as it goes.

    Parameters
    ----------
    pool : Pool
    name : str
        A key of `BASELINES`.
    grades : ndarray of int64, shape (N,)
        Grade of every pair of the pool; only ``mtf`` and ``mab`` look at those they judge.
    budget : int or ndarray of int, shape (T,)
        Judged pairs; per topic not for ``top`` and ``deep``.
    seed : str
        Without influence on ``top``.
    runs : sequence of str, optional
        Runs that contribute documents; by default all.

    Raises
    ------
    ValueError
        If there is no such baseline (the message lists them), the grades do not fit the pool, or
        the budget cannot be spent.
    """
    if name not in BASELINES:
        raise ValueError(f"name must be one of {', '.join(BASELINES)}, not {name!r}")
    check_grades(grades, pairs=len(pool))
    return BASELINES[name](pool, grades=grades, budget=budget, seed=seed, runs=runs)
