"""Sampling designs: with which probability every pair of a pool is drawn, batch by batch.

Four methods:

poisson
    Every pair is in the sample, or not, by its own permanent random number; after batch b it is
    in with probability min(1, c_b * size).
priority
    The fixed-size form of it (Duffield, Lund and Thorup 2007): after batch b the sample holds the
    n_b pairs with the smallest ratio of random number and size; c_b is the next ratio.
iid
    Draws with replacement from the distribution `size`; after batch b there were n_b of them
    (Schnabel et al. 2016, section 3).
per-query
    As many draws with replacement in every topic (Schnabel, Swaminathan and Joachims 2015,
    UBIS-k); after batch b there were k_b of them in each.

And the first batch of a fifth, whose others are planned from judgments: adaptive
(`rounds.adaptive.sampling`). What is said here of ``poisson`` holds for what it would draw if
nothing were learned.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from ..archives import ArchiveFile, read_archive, write_archive
from ..arrays import BoolArray, Digests, FloatArray, array_digest, check_whole, frozen
from ..measures.table import Measure, parse_measure
from ..tables import FactSheet
from .goals import Goal
from .methods import SAMPLING_METHODS, draws_again
from .probabilities import FallingSizes, drawn_probabilities, poisson_probabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..arrays import IntArray

FORMAT = "evalsite-design-1"
DESIGN_ARRAYS = ("size", "steps"), ("belief",)  # those that there are, and those that may be
Method: TypeAlias = Literal["poisson", "priority", "iid", "per-query", "adaptive"]
Rule: TypeAlias = Literal["first", "second", "uniform"]
METHODS: tuple[Method, ...] = get_args(Method)
RULES: tuple[Rule, ...] = ("first", "second", "uniform")
MAX_BATCHES = 100_000


class DesignError(ValueError):
    """A design that cannot be made; the message is a sentence for the organizer."""


@dataclass(frozen=True, eq=False, repr=False)
class Design(FactSheet):
    """Sampling probabilities of the N pairs of a pool, for all batches.

    Build one with `allocation.make_design`.

    Attributes
    ----------
    method : {"poisson", "priority", "iid", "per-query", "adaptive"}
    size : ndarray of float64, shape (N,)
        Sums to 1. ``iid``: the probability Q_i of one draw; ``per-query``: of a draw in a random
        eligible topic. ``poisson``, ``priority``: relative size, to which the inclusion
        probability is proportional until it reaches 1. 0: never sampled.
    steps : ndarray of float64, shape (B,)
        Per batch, increasing. ``iid``: draws n_b made so far (whole numbers); ``per-query``: in
        each topic. ``poisson``: constant c_b; infinite when every eligible pair is certain.
        ``priority``: the same constants, as expected; the sample holds those that came to be.
    goal, measure, reported, prior, rule, budget, batch_size, eps, floor
        What the design was made from, as given to `allocation.make_design`.
    for_all_runs : float
        Share of the sizes, a part of the floor, that serves the values of all runs where the goal
        leaves some out, or the pool goes below the cutoff of nDCG; 0 in designs of a version that
        spread all of it evenly.
    pool_digest : str
        Digest of the pool that the design belongs to.
    strata : int
        ``per-query``: number of topics with eligible pairs; otherwise 1.
    belief : ndarray of float64, shape (N,), or None
        What the prior expected of every pair, as a share of the best utility; None in designs that
        were made by a version that did not keep it. No probability depends on it.
    """

    method: Method
    size: FloatArray
    steps: FloatArray
    goal: Goal
    measure: Measure
    reported: tuple[Measure, ...]
    prior: str
    rule: Rule
    budget: float
    batch_size: float
    eps: float
    floor: float
    pool_digest: str
    strata: int = 1
    for_all_runs: float = 0.0
    belief: FloatArray | None = None
    FACTS: ClassVar = (
        *("method", "goal", "measure", "reported", "prior", "rule", "budget", "batch_size"),
        *("batches", "reachable_pairs", "expected_pairs", "is_census"),
    )

    @property
    def with_replacement(self) -> bool:
        """Whether the sample is one of draws, among which a pair may come twice."""
        return draws_again(self.method)

    @property
    def by_topic(self) -> bool:
        """Whether every topic has as many draws."""
        return SAMPLING_METHODS[self.method].by_topic

    @property
    def eligible(self) -> BoolArray:
        """Which pairs can be sampled at all, shape (N,)."""
        return np.asarray(self.size > 0.0)

    @cached_property
    def digests(self) -> Digests:
        """Sizes and beliefs with their digests, as what is drawn is told apart by them."""
        given = self.size, self.belief
        return tuple((each, array_digest(each)) for each in given if each is not None)

    @property
    def reachable_pairs(self) -> int:
        """The number of pairs that can be sampled."""
        return int(np.count_nonzero(self.size))

    @property
    def expected_pairs(self) -> float:
        """The number of distinct pairs that all batches are expected to hold."""
        return float(self.inclusion().sum())

    @property
    def batches(self) -> int:
        """The number B of batches."""
        return len(self.steps)

    @property
    def is_census(self) -> bool:
        """Whether the full budget takes every eligible pair with probability 1."""
        return not self.with_replacement and bool(np.isinf(self.steps[-1]))

    def step(self, batches: int | None = None) -> float:
        """Return n_b, k_b or c_b after the first `batches` batches (default: all).

        Raises
        ------
        ValueError
            If `batches` is not between 1 and B.
        """
        last = self.batches if batches is None else batches
        check_whole(last, name="batches", most=self.batches)
        return float(self.steps[last - 1])

    @property
    def spending(self) -> FloatArray:
        """What may be spent, as expected, by the end of each batch, shape (B,)."""
        return cumulative(self.budget, self.batch_size)[: self.batches]

    def draws(self, batches: int | None = None) -> int | None:
        """Return how many draws there are after some batches; None without replacement."""
        return int(self.step(batches)) * self.strata if self.with_replacement else None

    def inclusion(self, batches: int | None = None) -> FloatArray:
        """Return the probability that each pair is in the sample after some batches.

        ``poisson``: min(1, c_b * size). ``iid``: 1 - (1 - Q)^n_b; ``per-query``: the same with
        the Q of the topic. ``priority``: as for ``poisson``, which is what to expect; the
        probabilities to estimate with come from the sample.

        Parameters
        ----------
        batches : int, optional
            Number of batches, counted from the first; by default all.

        Returns
        -------
        ndarray of float64, shape (N,)
            0 exactly where the pair is not eligible.
        """
        return self.inclusion_after(self.step(batches))

    def inclusion_after(self, step: float) -> FloatArray:
        """Return the inclusion probabilities after n or k draws, or with the constant c."""
        if self.with_replacement:
            return drawn_probabilities(self.size * self.strata, draws=step)
        return poisson_probabilities(self.size, constant=step)

    def of(self, pairs: slice | IntArray) -> Design:
        """Return the same of some pairs alone, whose sizes and chances stay what they are; without
        what was believed of them."""
        return replace(self, size=self.size[pairs], belief=None)

    @property
    def payable(self) -> FloatArray:
        """How likely each pair is to be paid for if everything is drawn, shape (N,)."""
        return self.eligible.astype(np.float64)

    def new_after(self, step: float) -> FloatArray:
        """Return how likely each pair is to be paid for after n or k draws, or with c: if drawn."""
        return self.inclusion_after(step)

    def steps_for(self, budgets: Sequence[float], *, costs: FloatArray | None = None) -> FloatArray:
        """Return the constants, or numbers of draws, that budgets pay for, shape (B,).

        `costs` are those that the design was made with, by default 1 for each pair.
        """
        targets = np.asarray(budgets, dtype=np.float64)
        if self.with_replacement:
            return targets / (self.strata if costs is None else float(np.sum(self.size * costs)))
        return self._falling(costs).constants(targets)

    def _falling(self, costs: FloatArray | None) -> FallingSizes:
        """Sizes in order, which those who plan ask for again and again: put once."""
        for known, found in self._orders:
            if known is costs:
                return found
        self._orders[:] = [(costs, FallingSizes.of(self.size, costs))]
        return self._orders[0][1]

    @cached_property
    def _orders(self) -> list[tuple[FloatArray | None, FallingSizes]]:
        return []

    def save(self, file: ArchiveFile) -> None:
        """Write the design to a path or a binary file; `load` gives back the same bits."""
        write_archive(file, FORMAT, *self.stored())

    def stored(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what is written of the design: facts and arrays, for `restored`."""
        facts = {name: getattr(self, name) for name in _PLAIN}
        facts |= {"goal": asdict(self.goal), "measure": str(self.measure)}
        facts |= {"reported": [str(measure) for measure in self.reported]}
        arrays = {"size": self.size, "steps": self.steps}
        if self.belief is not None:
            arrays["belief"] = self.belief
        return facts, arrays

    @classmethod
    def load(cls, file: ArchiveFile) -> Design:
        """Read what `save` wrote; raise ValueError if it is damaged or something else."""
        needed, optional = DESIGN_ARRAYS
        return cls.restored(*read_archive(file, FORMAT, needed, optional=optional))

    @classmethod
    def restored(cls, facts: dict[str, Any], arrays: dict[str, Any]) -> Design:
        """Return the design of which `stored` gave these."""
        goal = facts["goal"]
        facts["goal"] = Goal(goal["kind"], tuple(goal["runs"]), goal["against"])
        facts["measure"] = parse_measure(facts["measure"])
        facts["reported"] = tuple(parse_measure(text) for text in facts["reported"])
        columns: dict[str, Any] = {name: frozen(array) for name, array in arrays.items()}
        return cls(**columns, **facts)


def cumulative(budget: float, batch_size: float) -> FloatArray:
    """Return what batches of a size spend of a budget by the end of each, shape (B,)."""
    full = np.arange(batch_size, budget, batch_size, dtype=np.float64)
    return np.append(full, float(budget))


_PLAIN = (
    "method", "prior", "rule", "budget", "batch_size", "eps", "floor", "pool_digest", "strata",
    "for_all_runs",
)  # fmt: skip
