"""What the budgets of an adaptive round reach before anything is judged: played, as ranges.

An adaptive round learns from its batches, and what it learns hangs on what will be found. So it is
played (`played`) in worlds that public collections span (`worlds`): with few relevant documents and
with many, where grades are predicted, with predictions that tell something and that tell nothing,
and of a race with runs that are alike and that are apart. What a top-up starts from tells which
world it is: it is played in those that the judgments allow (`judged_worlds`), unless they are too
few for a model; judged pairs keep them. What is told is between the worlds. The wide end is the
careful one.

Half widths are those of the product's own intervals after the batches of the played rounds. Between
these, before the first and after the last, they fall as those of the design alone would, but for a
factor that changes by a power of what the design leaves. Verdicts are those of `prospects`, by the
covariances that the played rounds estimate, and by differences that are spread as there. A world
that has its grades drawn once has them right to a few percent for sums of gains, and to a quarter
for ratios of few finds, which is less than worlds differ by.

A top-up that continues a round has shares that were made for about its budget. So it is played to
twice that, and beyond widths fall as those of the design.

Why this biases nothing: a budget is chosen by it before anything is drawn, from pool, design and
predictions, and of a top-up from what was judged before. Alone it is unbiased given all of that;
together, if that there is one does not follow from what was found, as `rounds.adaptive.past` says.
Nothing that is played has a part in a draw, a chance or an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from ..arrays import check_confidence, frozen, pieces
from ..data.kept import kept
from ..data.labels import LabelRows
from ..data.restriction import of_topics
from ..inference.intervals import difference_variances
from ..inference.out_of_reach import OutOfReach
from ..rounds.adaptive.rounds import AdaptiveRound
from ..rounds.adaptive.top_ups import unlearned
from ..sampling.priors import Prior
from .judged_worlds import JudgedWorlds
from .planning import largest_values, value_products
from .played import play
from .prospects import (
    SPREADS,
    before_nearly_all,
    budgets_of,
    decided_by_budget,
    shares_of,
    table_of,
)
from .worlds import drawn_grades, worlds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..arrays import BoolArray, FloatArray, IntArray
    from ..data.pool import Pool
    from ..measures.table import Measure
    from ..rounds.adaptive.state import AdaptivePlan
    from .played import Played
    from .reached import ReachedByBudget

LEAST_BATCHES, LEAST_PAIRS = 2, 60.0
"""Of a round that learns: with fewer, what it reaches is that of its design."""
DRAWN = 2  # grades of each world
MOST_PLAYED, LEAST_TOPICS = 200_000, 6
"""Entries of a pool that is played whole; of a larger one some topics are, which learn less."""
BEFORE = 2  # budgets below those that are played, for which verdicts are worked out
NEXT_TO_NOTHING = 1e-9
MOST_ALONE = 8  # sets of budgets of which what the design leaves is kept


def learns(plan: AdaptivePlan) -> bool:
    """Whether a round of this plan can learn enough to be played.

    What a top-up starts from is learned before its first batch, so that one is enough. A round by a
    measure whose utilities depend on the run is foretold by its design: worlds have one utility of
    every pair.
    """
    design = plan.design
    return (
        not plan.measure.is_by_run
        and (plan.past is not None or design.batches >= LEAST_BATCHES)
        and float(design.payable.sum()) >= LEAST_PAIRS
    )


@dataclass(frozen=True, eq=False)
class LearningProspects:
    """An adaptive round played in worlds.

    Attributes
    ----------
    pool, plan : Pool, AdaptivePlan
    measures : tuple of Measure
        That are told of, that of the goal first.
    played : tuple of Played
        One for each world, all with the same budgets.
    products : tuple of ndarray of float64, shape (k, k) each
        What values vary by there, by the first measure.
    confidence : float
        Of intervals, and of all verdicts together.
    """

    pool: Pool
    plan: AdaptivePlan
    measures: tuple[Measure, ...]
    played: tuple[Played, ...]
    products: tuple[FloatArray, ...]
    confidence: float = 0.95

    @classmethod
    def of(
        cls,
        pool: Pool,
        plan: AdaptivePlan,
        *,
        measures: Sequence[Measure],
        confidence: float = 0.95,
        labels: LabelRows | None = None,
    ) -> LearningProspects:
        """Play them.

        Of a top-up `labels` are those of the pairs of its past.

        Raises
        ------
        ValueError
            If the plan is of another pool, or does not learn (`learns`).
        LabelError
            If a pair of its past has no label.
        """
        if not learns(plan):
            raise ValueError(
                "a plan that is played has two batches, or tops up what is judged, and 60 pairs or "
                "more, and a measure whose utilities are those of pairs, whatever the run"
            )
        check_confidence(confidence)
        known = LabelRows(*np.zeros((2, 0), dtype=np.int64)) if labels is None else labels
        some, of_some, known = _some_topics(pool, plan, known)
        best = plan.max_grade
        budget = _payable(plan) / _payable(of_some)
        topics = len(some.topics) / len(pool.topics)
        played, products = [], []
        for draw in _worlds(some, of_some, known):
            grades = [_keeping(known, draw(number=each)) for each in range(DRAWN)]
            about = {"measures": measures, "confidence": confidence, "known": known}
            found = play(some, of_some, grades, **about)  # type: ignore[arg-type]
            played.append(found.scaled(budget=budget, variance=topics))
            drawn = _as_drawn(measures[0], grades[0])
            moved = value_products(some, measure=measures[0], prior=drawn, max_grade=best)
            products.append(topics * moved)
        return cls(pool, plan, tuple(measures), tuple(played), tuple(products), confidence)

    def half_widths(self, measure: Measure, budgets: Sequence[float]) -> FloatArray:
        """Return half widths between the worlds, shape (2, n, k): the narrow and the wide ones.

        Infinite for runs with weight on pairs that the design cannot sample, and where nothing is
        known of a run in a world, however much is judged.
        """
        at = self.measures.index(measure)
        by_world = [
            self._between(each.half_width[at], np.asarray(budgets, dtype=np.float64))
            for each in self.played
        ]
        highest = np.where(self._reachable(measure), self._largest(measure) / 2.0, np.inf)
        missed = ~self._reachable(measure)
        found = np.stack([np.min(by_world, axis=0), np.max(by_world, axis=0)])
        return np.where(missed, np.inf, np.minimum(found, highest))

    def differences(self, measure: Measure, budget: float) -> tuple[float, float]:
        """Return the half width of the middle difference, the narrow and the wide one."""
        at, quantile = self.measures.index(measure), special.ndtri(0.5 + self.confidence / 2.0)
        found = [
            float(self._between(each.difference[at][:, None], np.array([float(budget)]))[0, 0])
            for each in self.played
        ]
        return quantile * min(found), quantile * max(found)

    def every_difference(self, budget: float) -> FloatArray:
        """Return the wide half width of each difference by the first measure, (k, k)."""
        runs, quantile = len(self.pool.runs), special.ndtri(0.5 + self.confidence / 2.0)
        found = []
        for each in self.played:
            errors = [np.sqrt(difference_variances(some)).ravel() for some in each.covariance]
            found.append(self._between(np.stack(errors), np.array([float(budget)]))[0])
        reachable = self._reachable(self.measures[0])
        widths = quantile * np.max(found, axis=0).reshape(runs, runs)
        return np.where(np.logical_and.outer(reachable, reachable), widths, np.inf)

    def reached(
        self,
        *,
        work: FloatArray | None = None,
        besides: Callable[[FloatArray, float], float] | None = None,
    ) -> ReachedByBudget:
        """Foretell what any budget reaches; see `prospects.reached_by_budget`.

        What is said of a budget is the same whichever budget the design has, as long as it has as
        many batches.
        """
        design, costs = self.plan.design, self.plan.costs
        budgets, grid = budgets_of(design, costs)
        reachable = self._reachable(self.measures[0])
        known = reachable if reachable.any() else np.ones_like(reachable)
        narrow, wide = self._middle(known, budgets)
        nodes, played = self._nodes(grid[0]), self.played
        steps = design.steps_for(nodes.tolist(), costs=costs)
        error = 1.0 - self.confidence
        least, most = (
            [
                decided_by_budget(
                    self._covariances(each, nodes),
                    products,
                    spread,
                    reachable=reachable,
                    error=error,
                )
                for each, products in zip(played, self.products, strict=True)
            ]
            for spread in SPREADS
        )
        fewest = before_nearly_all(design, steps, np.min(least, axis=0))
        shares = shares_of(fewest, np.max(most, axis=0), nodes, grid, budgets)
        return table_of(
            design, budgets, (narrow, wide), shares, costs=costs, work=work, besides=besides
        )

    def _nodes(self, first: float) -> FloatArray:
        """Budgets for which verdicts are worked out: some, the played ones, and the whole."""
        played = self.played[0].budgets
        before = np.geomspace(first, played[0], BEFORE + 1)[: -1 if first < played[0] else 0]
        return np.concatenate([before, played, [self.whole]])

    def _covariances(self, played: Played, nodes: FloatArray) -> list[FloatArray]:
        """The covariance at each node: before what was played as much more as there is less."""
        first, missing = played.budgets[0], len(nodes) - len(played.budgets) - 1
        before = [played.covariance[0] * first / node for node in nodes[:missing].tolist()]
        return [*before, *played.covariance, np.zeros_like(played.covariance[0])]

    def _middle(self, known: BoolArray, budgets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The half width of the middle run in the kindest and in the other worlds, (n,) each."""
        highest = self._largest(self.measures[0])[known] / 2.0
        found = []
        for each in self.played:
            middle = np.median(each.half_width[0][:, known], axis=1)
            between = self._between(middle[:, None], budgets)[:, 0]
            found.append(np.minimum(between, np.median(highest)))
        return np.min(found, axis=0), np.max(found, axis=0)

    @property
    def whole(self) -> float:
        """The budget that judges everything."""
        return _payable(self.plan)

    def _between(self, widths: FloatArray, budgets: FloatArray) -> FloatArray:
        """Widths, (m, c), at the budgets that were played, as they are at n others, (n, c).

        No width is below that of a larger budget: between two of these it is a power of what the
        design alone would leave, which falls.
        """
        nodes = self.played[0].budgets
        falling = np.maximum.accumulate(widths[::-1], axis=0)[::-1]
        before, at = self._alone(nodes), self._alone(budgets)
        with np.errstate(divide="ignore"):
            times = np.log(falling / before[:, None])
            places, logs = -np.log(before), -np.log(at)
        columns = [np.exp(np.interp(logs, places, each)) for each in times.T]
        known = np.isfinite(widths).all(axis=0)
        return np.where(known, at[:, None] * np.stack(columns, axis=1), np.inf)

    def _alone(self, budgets: FloatArray) -> FloatArray:
        """What the design alone would leave of errors by the goal, in some unit, (n,)."""
        key = budgets.tobytes()
        return kept(self._kept, "alone", key, lambda: self._left_alone(budgets), most=MOST_ALONE)

    @cached_property
    def _kept(self) -> dict[str, Any]:
        return {}

    def _left_alone(self, budgets: FloatArray) -> FloatArray:
        design, drawn = unlearned(self.plan), self.plan.design.eligible
        steps = design.steps_for(budgets.tolist(), costs=self.plan.costs).tolist()
        total = np.zeros(len(steps))
        for piece in pieces(len(design.size)):
            some, mine = design.of(piece), drawn[piece]
            size = some.size[mine]
            for at, step in enumerate(steps):
                chance = some.inclusion_after(step)[mine]
                total[at] += np.sum(size**2 * (1.0 - chance) / chance)
        return np.sqrt(total)

    def _reachable(self, measure: Measure) -> BoolArray:
        support = OutOfReach.of(self.pool, unlearned(self.plan).eligible).support(measure)
        return np.asarray(support == 1.0)

    def _largest(self, measure: Measure) -> FloatArray:
        best = self.plan.max_grade
        of_gain = measure.family == "gain"
        return largest_values(
            self.pool, measure, best=measure.max_utility(best) if of_gain else best
        )


def _payable(plan: AdaptivePlan) -> float:
    """What all pairs cost that can be judged."""
    payable = plan.design.payable
    return float(payable.sum() if plan.costs is None else np.sum(payable * plan.costs))


def _worlds(pool: Pool, plan: AdaptivePlan, known: LabelRows) -> list[Callable[..., IntArray]]:
    """What draws grades for every pair in each world; `number` says which of several draws."""
    frame, model = plan.frame(pool), None
    if plan.past is not None:
        model = AdaptiveRound.unplanned(plan, seed="played").learned(frame, known)
    if model is None:
        kinds = {"predicted": plan.predicted is not None, "race": plan.goal.kind == "winner"}
        return [partial(drawn_grades, frame, each) for each in worlds_of(**kinds)]
    found = JudgedWorlds.of(frame, model)
    return [partial(found.drawn_grades, careful=each) for each in (False, True)]


def _keeping(known: LabelRows, drawn: IntArray) -> IntArray:
    """Drawn grades but where somebody judged: there the mean, as a whole grade."""
    number = np.bincount(known.pair, minlength=len(drawn))
    total = np.bincount(known.pair, weights=known.grade, minlength=len(drawn))
    mean = np.rint(total / np.maximum(number, 1)).astype(np.int64)
    return np.where(number > 0, mean, drawn)


def _some_topics(
    pool: Pool, plan: AdaptivePlan, known: LabelRows
) -> tuple[Pool, AdaptivePlan, LabelRows]:
    """The pool of so many topics, evenly spread, that it may be played, and the plan for it."""
    topics = len(pool.topics)
    most = max(LEAST_TOPICS, int(topics * MOST_PLAYED / max(len(pool.run), 1)))
    if most >= topics:
        return pool, plan, known
    places = np.linspace(0, topics - 1, most).astype(np.int64)
    some, pairs = of_topics(pool, np.unique(places))
    size = plan.design.size[pairs]
    if not size.sum() > 0.0 or np.count_nonzero(size) < LEAST_PAIRS:
        return pool, plan, known
    share = len(places) / topics
    design = replace(
        plan.design, size=frozen(size / size.sum()), pool_digest=some.digest, belief=None,
        budget=share * plan.design.budget,
    )  # fmt: skip
    costs, predicted = (
        None if each is None else each[pairs] for each in (plan.costs, plan.predicted)
    )
    past = None if plan.past is None else plan.past.of_pairs(pairs)
    of_some = replace(plan, design=design, costs=costs, predicted=predicted, past=past)
    return some, of_some, _of_pairs(known, pairs)


def _of_pairs(labels: LabelRows, pairs: IntArray) -> LabelRows:
    """Those of some pairs, ascending, as the pool of these alone has them."""
    kept = np.isin(labels.pair, pairs)
    return LabelRows(np.searchsorted(pairs, labels.pair[kept]), labels.grade[kept])


def _as_drawn(measure: Measure, grades: IntArray) -> Prior:
    """What is believed of utilities where they are known."""
    utility = measure.utilities(grades)
    known = np.maximum(utility, NEXT_TO_NOTHING * max(float(utility.max(initial=0.0)), 1.0))
    return Prior("constant", known, known**2)
