"""Choosing whole topics to judge, under labeling costs (Sawade et al. 2013).

Topics are drawn with replacement from q; all documents that the runs return for a drawn topic are
judged, which serves measures that are no sums over documents: ERR, and the ratios AP, nDCG and
Rprec. Ratios depend on every document of the topic's pool, so that for them the whole pool of the
topic is judged, whatever the cutoff. A topic that is drawn again costs nothing more.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ...archives import ArchiveFile, read_archive, write_archive
from ...arrays import (
    BoolArray,
    FloatArray,
    column_sums,
    frozen,
)
from ...measures.table import Measure, parse_measure
from ...sampling.goals import Goal
from ...tables import FactSheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...data.pool import Pool

Rule = Literal["active", "uniC", "uniform"]
Estimator = Literal["ratio", "unbiased"]
RULES: tuple[Rule, ...] = ("active", "uniC", "uniform")
ESTIMATORS: tuple[Estimator, ...] = ("ratio", "unbiased")
ROUNDING = 1e-9  # budgets that a sum of costs exceeds by no more than this share are kept
FORMAT = "evalsite-query-design-1"


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
        return affordable(float(self.cost.sum()), float(self.steps[-1]))

    def planned_draws(self) -> float:
        """Return budget / sum cost q, the number of draws if none recurred (Theorem 1)."""
        return self.budget / float(np.sum(self.cost * self.probability))

    def save(self, file: ArchiveFile) -> None:
        """Write the design to a path or a binary file; `load` gives back the same bits."""
        facts = {name: getattr(self, name) for name in _PLAIN}
        facts |= {"goal": asdict(self.goal), "measure": str(self.measure), "runs": self.runs}
        write_archive(file, FORMAT, facts, {name: getattr(self, name) for name in _COLUMNS})

    @classmethod
    def load(cls, file: ArchiveFile) -> QueryDesign:
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


def affordable(cost: float, budget: float) -> bool:
    """Whether a sum of costs is within a budget, but for rounding."""
    return cost <= budget * (1.0 + ROUNDING)
