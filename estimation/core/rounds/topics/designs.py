"""Choosing whole topics to judge, under labeling costs (Sawade et al. 2013).

Topics are drawn with replacement from q; all documents that the runs return for a drawn topic are
judged, which serves measures that are no sums over documents: ERR, and the ratios AP, nDCG and
Rprec. Ratios depend on every document of the topic's pool, so that for them the whole pool of the
topic is judged, whatever the cutoff. A topic that is drawn again costs nothing more.

When to stop
------------
Algorithm 1 draws until the budget is spent, so the number of draws depends on which topics were
drawn. Here the draw that would exceed the budget is *not* kept. Whether n draws are kept then
depends on the set of those n topics and on the next topic, never on the order of the n: given
them, every order is equally likely, each of the n is distributed as the first draw is, and the
first draw follows q. So the mean over the kept draws of (p/q) L is exactly unbiased, and their
sample variance over n is exactly unbiased for its variance, if at least one or two draws fit
every budget; designs see to that. Keeping the draw that exceeds the budget would break this: an
expensive topic would be more likely to be the last one than an earlier one, and the mean biased.

The same holds for every batch: batch b goes on from where batch b - 1 stopped, up to a larger
budget, and the draws of the batches 1..b are what a budget of that size alone would have drawn.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from ...archives import ArchiveFile, read_archive, write_archive
from ...arrays import (
    BoolArray,
    FloatArray,
    Int32Array,
    IntArray,
    check_fraction,
    check_number,
    check_seed,
    check_whole,
    column_sums,
    frozen,
)
from ...data.pool import Pool
from ...measures.table import Measure, check_is_measure, check_measures, parse_measure
from ...sampling.goals import Goal, check_goal
from ...sampling.random_numbers import uniform_numbers
from ...tables import FactSheet
from .distributions import least_error
from .grade_models import GradeModel, check_grade_model
from .moments import Estimator, goal_moments

Rule = Literal["active", "uniC", "uniform"]
RULES: tuple[Rule, ...] = ("active", "uniC", "uniform")
ESTIMATORS: tuple[Estimator, ...] = ("ratio", "unbiased")
ROUNDING = 1e-9  # budgets that a sum of costs exceeds by no more than this share are kept
MAX_DRAWS = 5_000_000
FORMAT, SAMPLE_FORMAT = "evalsite-query-design-1", "evalsite-query-sample-1"


class QueryError(ValueError):
    """Costs, budgets or labels with which no topics can be drawn or evaluated."""


@dataclass(frozen=True, eq=False, repr=False)
class QueryDesign(FactSheet):
    """Probabilities of drawing topics, fixed before anything is judged.

    Build one with `make_query_design`.

    Attributes
    ----------
    probability : ndarray of float64, shape (T,)
        q, sums to 1; 0 only for topics without a document to judge, whose values are 0.
    cost : ndarray of float64, shape (T,)
        What judging a topic costs; 0 for topics without a document to judge.
    steps : ndarray of float64, shape (B,)
        What the batches 1..b may cost together.
    goal, measure : Goal, Measure
        What the probabilities are optimized for.
    runs : tuple of str
        Runs whose documents are judged, and which can be evaluated.
    depth : int or None
        Ranks that are judged; None: every pair of the pool, as ratio measures need.
    rule, model, estimator, floor
        As given to `make_query_design`; the model's name.
    pool_digest : str
        The pool the design belongs to.
    """

    probability: FloatArray
    cost: FloatArray
    steps: FloatArray
    goal: Goal
    measure: Measure
    runs: tuple[str, ...]
    depth: int | None
    rule: Rule
    model: str
    estimator: Estimator
    floor: float
    pool_digest: str
    FACTS: ClassVar = (
        *("goal", "measure", "depth", "rule", "model", "estimator"),
        *("batches", "budget", "is_census"),
    )

    @property
    def budget(self) -> float:
        """What all batches may cost together."""
        return float(self.steps[-1])

    @property
    def batches(self) -> int:
        """Number of batches."""
        return len(self.steps)

    @property
    def eligible(self) -> BoolArray:
        """Whether a topic can be drawn, shape (T,)."""
        return np.asarray(self.probability > 0.0)

    @property
    def is_census(self) -> bool:
        """Whether the last batch takes all topics that are left."""
        return _affordable(float(self.cost.sum()), float(self.steps[-1]))

    def step(self, batches: int | None = None) -> float:
        """Return what the first batches may cost together; by default all."""
        number = self.batches if batches is None else batches
        check_whole(number, name="batches", most=self.batches, error=QueryError)
        return float(self.steps[number - 1])

    def planned_draws(self, batches: int | None = None) -> float:
        """Return budget / sum cost q, the number of draws if none recurred (Theorem 1)."""
        return self.step(batches) / float(np.sum(self.cost * self.probability))

    def expected_cost(self, draws: float) -> float:
        """Return what so many draws cost on average, a recurring topic costing nothing more."""
        with np.errstate(divide="ignore"):  # a single eligible topic has probability 1
            reached = -np.expm1(draws * np.log1p(-self.probability))
        return float(np.sum(self.cost * reached))

    def save(self, file: ArchiveFile) -> None:
        """Write the design to a path or a binary file; `load` gives back the same bits."""
        facts = {name: getattr(self, name) for name in _PLAIN}
        facts |= {"goal": asdict(self.goal), "measure": str(self.measure), "runs": self.runs}
        write_archive(file, FORMAT, facts, {name: getattr(self, name) for name in _COLUMNS})

    @classmethod
    def load(cls, file: ArchiveFile) -> "QueryDesign":
        """Read what `save` wrote; raise ValueError if it is damaged or something else."""
        facts, columns = read_archive(file, FORMAT, _COLUMNS)
        goal = facts["goal"]
        facts["goal"] = Goal(goal["kind"], tuple(goal["runs"]), goal["against"])
        facts["measure"] = parse_measure(facts["measure"])
        facts["runs"] = tuple(facts["runs"])
        facts |= {name: frozen(columns[name]) for name in _COLUMNS}
        return cls(**facts)


_PLAIN = ("depth", "rule", "model", "estimator", "floor", "pool_digest")
_COLUMNS = ("probability", "cost", "steps")


@dataclass(frozen=True, eq=False)
class QuerySample:
    """Topics drawn for a design.

    Attributes
    ----------
    topic : ndarray of int64, shape (u,)
        Distinct topics to judge, ascending, as positions in the pool's topics.
    batch : ndarray of int32, shape (u,)
        Batch, from 1, in which the topic is judged.
    draws : ndarray of int64, shape (n,)
        The topics as they were drawn. The last batch of a census has no draws.
    draw_batch : ndarray of int32, shape (n,)
        Batch of each draw, ascending.
    pool_digest : str
        The pool the sample belongs to.
    """

    topic: IntArray
    batch: Int32Array
    draws: IntArray
    draw_batch: Int32Array
    pool_digest: str

    def prefix(self, batches: int) -> IntArray:
        """Return the distinct topics of the first batches, ascending."""
        return self.topic[self.batch <= batches]

    def drawn(self, batches: int) -> IntArray:
        """Return the draws of the first batches, in order."""
        return self.draws[self.draw_batch <= batches]

    def save(self, file: ArchiveFile) -> None:
        """Write the sample to a path or a binary file."""
        columns = {name: getattr(self, name) for name in _SAMPLE_COLUMNS}
        write_archive(file, SAMPLE_FORMAT, {"pool_digest": self.pool_digest}, columns)

    @classmethod
    def load(cls, file: ArchiveFile) -> "QuerySample":
        """Read what `save` wrote; raise ValueError if it is damaged or something else."""
        facts, columns = read_archive(file, SAMPLE_FORMAT, _SAMPLE_COLUMNS)
        arrays = {name: frozen(columns[name]) for name in _SAMPLE_COLUMNS}
        return cls(**arrays, pool_digest=facts["pool_digest"])


_SAMPLE_COLUMNS = ("topic", "batch", "draws", "draw_batch")


def judged_depth(pool: Pool, measures: Sequence[Measure]) -> int | None:
    """Return how many ranks must be judged for some measures; None: every pair of the pool."""
    if any(measure.family == "ratio" for measure in measures):
        return None
    return min(pool.depth, max(measure.cutoff or pool.depth for measure in measures))


def labeled_pairs(pool: Pool, *, runs: Sequence[str], depth: int | None) -> BoolArray:
    """Return which pairs must be judged: those in the top `depth` of any of the runs.

    With the depth None it is every pair of the pool, whoever returned it.

    Returns
    -------
    ndarray of bool, shape (N,)

    Raises
    ------
    PoolError
        If the pool does not have one of the runs.
    """
    wanted = np.zeros(len(pool.runs), dtype=bool)
    wanted[[pool.run_index(tag) for tag in runs]] = True
    if depth is None:
        return np.ones(len(pool), dtype=bool)
    needed = np.zeros(len(pool), dtype=bool)
    needed[pool.entry_pair[wanted[pool.run] & (pool.rank <= depth)]] = True
    return needed


def labeling_costs(pool: Pool, *, runs: Sequence[str], depth: int | None) -> FloatArray:
    """Return the number of documents to judge for each topic, shape (T,); see `labeled_pairs`."""
    needed = labeled_pairs(pool, runs=runs, depth=depth)
    return column_sums(pool.topic, needed.astype(np.float64), number=len(pool.topics))


def make_query_design(
    pool: Pool,
    *,
    goal: Goal,
    measure: Measure,
    model: GradeModel,
    budget: float,
    batch_budget: float | None = None,
    costs: ArrayLike | None = None,
    rule: Rule = "active",
    reported: Sequence[str] = (),
    measures: Sequence[Measure] = (),
    depth: int | None = None,
    floor: float = 0.1,
    estimator: Estimator = "ratio",
) -> QueryDesign:
    """Compute the probabilities of topics that serve a goal best.

    Rule "active": for the estimator "ratio" q proportional to p/sqrt(cost) * sqrt(
    `expected_squares`), which is Theorem 1 for the goals "single" and "absolute" and Theorem 2 for
    "pair", with an expectation under the grade model instead of the truth (Corollary 1); for
    "unbiased" as `queries.distributions` says. Several runs or differences count by the sum of
    their variances, our generalization. Rule "uniC": costs are not considered in q (but still
    paid). Rule "uniform": q = p, the passive sample. Then q is mixed with p.

    Parameters
    ----------
    pool : Pool
    goal, measure, model
        What the sample is optimized for.
    budget : float
        What all batches may cost together, in the unit of the costs. At most the cost of all
        topics, which makes the design a census.
    batch_budget : float, optional
        What one batch may cost, at least the two most expensive topics. By default there is one
        batch; the last batch takes what is left.
    costs : array_like of float, shape (T,), optional
        Cost of each topic, above 0; by default the number of documents to judge.
    rule : {"active", "uniC", "uniform"}
    reported : sequence of str
        Further runs whose documents are judged, so that they can be evaluated as well.
    measures : sequence of Measure
        Further measures that shall be estimated.
    depth : int, optional
        Ranks to judge; by default what the measures need, `judged_depth`. Ratio measures need
        every pair of the pool and leave no choice.
    floor : float
        Share of q that is spread evenly over the topics: p/q is at most 1/floor.
    estimator : {"ratio", "unbiased"}
        The estimator that q is optimized for.

    Raises
    ------
    QueryError
        If a number is out of range, a name is unknown, a topic could never be drawn, or the
        batches cannot pay for the two most expensive topics.
    ValueError
        As `GainMoments.of` and `Pool.run_index`.
    """
    _check_choices(rule, estimator, floor)
    check_is_measure(measure)
    check_measures(measures, name="measures")
    check_goal(goal, pool.runs)
    ranks = _checked_depth(pool, (measure, *measures), depth)
    tags = {*goal.all_runs, *reported}
    runs = tuple(tag for tag in pool.runs if tag in tags)
    needed = labeling_costs(pool, runs=(*goal.all_runs, *reported), depth=ranks)
    cost = _checked_costs(pool, needed, costs)
    check_grade_model(pool, model)
    eligible = cost > 0.0
    probability = eligible / np.count_nonzero(eligible)
    if rule != "uniform":
        told = goal_moments(pool, goal=goal, measure=measure, model=model)
        squares = np.where(eligible, told.squares(estimator, eligible), 0.0)
        if not squares.any():
            raise QueryError("under the grade model no topic tells anything about the goal")
        paid = cost if rule == "active" else eligible.astype(np.float64)
        level = told.level(eligible) if estimator == "unbiased" and rule == "active" else 0.0
        probability = least_error(squares, paid, level=level, eligible=eligible, floor=floor)
        _check_drawable(pool, eligible & (probability <= 0.0))
    return QueryDesign(
        probability=frozen(probability),
        cost=frozen(cost),
        steps=frozen(_steps(pool, cost, budget, batch_budget)),
        goal=goal,
        measure=measure,
        runs=runs,
        depth=ranks,
        rule=rule,
        model=model.name,
        estimator=estimator,
        floor=floor,
        pool_digest=pool.digest,
    )


def _check_choices(rule: str, estimator: str, floor: float) -> None:
    if rule not in RULES:
        raise QueryError(f"the rule is one of {', '.join(RULES)}, not {rule!r}")
    if estimator not in ESTIMATORS:
        raise QueryError(f"the estimator is one of {', '.join(ESTIMATORS)}, not {estimator!r}")
    check_fraction(floor, name="floor", error=QueryError)


def _checked_depth(pool: Pool, measures: Sequence[Measure], depth: int | None) -> int | None:
    deepest = judged_depth(pool, measures)
    if depth is None:
        return deepest
    if deepest is None:
        ratio = next(measure for measure in measures if measure.family == "ratio")
        raise QueryError(f"depth must be left out: {ratio} needs every document judged")
    check_whole(depth, name="depth", least=deepest, error=QueryError)
    return depth


def _checked_costs(pool: Pool, needed: FloatArray, costs: ArrayLike | None) -> FloatArray:
    """Costs of the topics that have documents to judge, 0 for the others."""
    if not needed.any():
        raise QueryError("no topic has a document to judge")
    if costs is None:
        return needed
    given = np.asarray(costs, dtype=np.float64)
    if given.shape != needed.shape:
        shape = f"not of the shape {given.shape}"
        raise QueryError(f"costs must be a vector of {len(needed)} numbers, one per topic, {shape}")
    wrong = (needed > 0.0) & ~(np.isfinite(given) & (given > 0.0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise QueryError(f"the cost of topic {pool.topics[at]!r} must be above 0, not {given[at]}")
    return np.where(needed > 0.0, given, 0.0)


def _check_drawable(pool: Pool, never: BoolArray) -> None:
    if never.any():
        name = pool.topics[int(np.argmax(never))]
        raise QueryError(f"topic {name!r} would never be drawn; floor must be above 0")


def _affordable(cost: float, budget: float) -> bool:
    return cost <= budget * (1.0 + ROUNDING)


def _steps(pool: Pool, cost: FloatArray, budget: float, batch_budget: float | None) -> FloatArray:
    check_number(budget, name="budget", least=1.0, error=QueryError)
    size = budget if batch_budget is None else batch_budget
    check_number(size, name="batch_budget", error=QueryError)
    if size > budget:
        raise QueryError(f"batch_budget must be at most the budget, {budget!r}, not {size!r}")
    total = float(cost.sum())
    if not _affordable(budget, total):
        raise QueryError(
            f"budget must be at most {total:.12g}, what all topics cost together, not {budget!r}"
        )
    dearest = np.argsort(-cost, kind="stable")[:2]
    if not _affordable(float(cost[dearest].sum()), size):
        names = " and ".join(repr(pool.topics[topic]) for topic in dearest.tolist())
        raise QueryError(
            f"batch size (batch_budget) must be at least {cost[dearest].sum():g}, to pay for the"
            f" two most expensive topics, {names}, not {size:g}"
        )
    needed = int(np.ceil(min(budget, float(cost.sum())) / size * (1.0 - ROUNDING)))
    return np.asarray(np.minimum(size * np.arange(1, needed + 1), budget))


# ------------------------------------------------------------------------------------- drawing


def draw_queries(pool: Pool, design: QueryDesign, *, seed: str) -> QuerySample:
    """Draw topics to the budget of every batch (Sawade et al. 2013, Algorithm 1).

    Draw t is the topic in whose stretch of the cumulated q the t-th uniform number of the seed
    falls. A batch ends before the draw that would exceed its budget; see the module's text.

    Parameters
    ----------
    pool, design : Pool, QueryDesign
        The design must have been made for this pool.
    seed : str
        Any text.

    Raises
    ------
    QueryError
        If the design belongs to another pool, or the budget would take more than `MAX_DRAWS`.
    """
    check_seed(seed)
    if design.pool_digest != pool.digest:
        raise QueryError("the design belongs to another pool")
    steps = design.steps[:-1] if design.is_census else design.steps
    draws, spent = _draw_beyond(design, float(steps[-1]), seed) if len(steps) else _NO_DRAWS
    ends = np.searchsorted(spent, steps * (1.0 + ROUNDING), side="right")
    kept = draws[: ends[-1]] if len(ends) else draws
    draw_batch = np.searchsorted(ends, np.arange(len(kept)), side="right") + 1
    batch = np.full(len(pool.topics), design.batches)
    topics, first = np.unique(kept, return_index=True)
    batch[topics] = draw_batch[first]
    chosen = np.flatnonzero(design.eligible) if design.is_census else topics
    return QuerySample(
        topic=frozen(chosen.astype(np.int64)),
        batch=frozen(batch[chosen].astype(np.int32)),
        draws=frozen(kept),
        draw_batch=frozen(draw_batch.astype(np.int32)),
        pool_digest=pool.digest,
    )


_NO_DRAWS = (np.array([], dtype=np.int64), np.array([], dtype=np.float64))


def _draw_beyond(design: QueryDesign, budget: float, seed: str) -> tuple[IntArray, FloatArray]:
    """Draws until the budget is exceeded, and what they cost together up to each."""
    cumulated = np.cumsum(design.probability)
    cumulated /= cumulated[-1]
    draws, spent = _NO_DRAWS
    wanted = 2 * int(design.planned_draws()) + 100
    while not len(spent) or _affordable(float(spent[-1]), budget):
        if len(draws) >= MAX_DRAWS:
            raise QueryError(f"the budget takes over {MAX_DRAWS} draws; use a larger floor")
        uniforms = uniform_numbers(seed, number=wanted - len(draws), start=len(draws))
        more = np.searchsorted(cumulated, uniforms, side="right").astype(np.int64)
        draws = np.concatenate([draws, more])
        topics, first = np.unique(draws, return_index=True)
        paid = np.zeros(len(draws))
        paid[first] = design.cost[topics]
        spent, wanted = np.cumsum(paid), 2 * wanted
    return draws, spent
