"""SYNTH: the artificial collection on which sampled evaluation of rankings was first measured.

6000 users, 2000 items, grades 0 to 4 (Schnabel et al. 2016, section 7.1). Every system is a fixed
permutation of the perfect ranking: which grade stands at a place differs between users, but not
to which rank a system moves it. All sums over users and items are therefore sums over places, with
the mean grade and the mean squared grade of each.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, column_sums, frozen
from estimation.core.data.pool import Pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.sampling.goals import Goal
from estimation.core.sampling.priors import Prior

USERS = 6000
ITEMS = 2000
GRADE_SHARES = (0.54, 0.25, 0.175, 0.03, 0.005)
MAX_GRADE = len(GRADE_SHARES) - 1
TOPIC = "all users"
TINY = 1e-12  # what stands for 0 where a moment must be positive


@dataclass(frozen=True)
class System:
    """A permutation of the perfect ranking.

    Attributes
    ----------
    kind : {"reverse", "shift"}
        ``reverse``: the top `amount` stand in reverse order. ``shift``: every item is moved down
        by `amount` ranks, and the last ones come back at the top.
    amount : int
        Between 0 and the length of the list.
    """

    kind: Literal["reverse", "shift"]
    amount: int

    def ranks(self, items: int) -> IntArray:
        """Return the 1-based rank that each place of the perfect ranking gets.

        Raises
        ------
        ValueError
            If the amount is not between 0 and `items`.
        """
        if not 0 <= self.amount <= items:
            raise ValueError(f"amount must lie between 0 and {items}, not {self.amount}")
        place = np.arange(items, dtype=np.int64)
        if self.kind == "shift":
            return (place + self.amount) % items + 1
        return np.where(place < self.amount, self.amount - 1 - place, place) + 1


# The "SHIFT-5" of the papers is a shift by 3: no other gives their 274.94, nor 4.72 at depth 5.
SYSTEMS: Mapping[str, System] = {
    "OPT": System("shift", 0),
    "REV-75": System("reverse", 75),
    "REV-150": System("reverse", 150),
    "SHIFT-5": System("shift", 3),
    "SHIFT-7": System("shift", 7),
}


@dataclass(frozen=True, eq=False)
class Population:
    """The grades of all users, items ordered by grade.

    Attributes
    ----------
    at_least : ndarray of int64, shape (users, MAX_GRADE)
        Column g - 1: how many items have grade g or better, so that grades fall from place to
        place.
    items : int
    """

    at_least: IntArray
    items: int

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and mean square of the grade at each place, each of shape (items,)."""
        users = len(self.at_least)
        mean, square = np.zeros(self.items), np.zeros(self.items)
        for grade, places in enumerate(self.at_least.T, start=1):
            ends = np.bincount(places, minlength=self.items + 1)
            share = 1.0 - np.cumsum(ends)[:-1] / users
            mean += share
            square += (2 * grade - 1) * share  # grade^2 = 1 + 3 + ... + (2 grade - 1)
        return mean, square

    def grades(self, users: IntArray, places: IntArray) -> IntArray:
        """Return the grades of (user, 0-based place of the perfect ranking)."""
        return np.asarray((places[:, None] < self.at_least[users]).sum(axis=1), dtype=np.int64)

    def user_values(self, weights: FloatArray) -> FloatArray:
        """Return sum over places of weight * grade for each user, shape (users,).

        Parameters
        ----------
        weights : ndarray of float64, shape (items,)
            Weight of the rank to which a system moves each place.
        """
        cumulated = np.append(0.0, np.cumsum(weights))
        return np.asarray(cumulated[self.at_least].sum(axis=1), dtype=np.float64)


def generate(rng: np.random.Generator, *, users: int = USERS, items: int = ITEMS) -> Population:
    """Draw every grade independently with the probabilities `GRADE_SHARES`.

    The papers draw probabilities for each user and item from a Dirichlet distribution and then
    the grade from these; a grade then has exactly the probabilities that are used here.
    """
    counts = rng.multinomial(items, GRADE_SHARES, size=users)
    at_least = np.cumsum(counts[:, ::-1], axis=1)[:, -2::-1]
    return Population(frozen(at_least.astype(np.int64)), items)


def ranked_lists(system: System, *, items: int) -> RankedLists:
    """Return a system as one ranked list over places, whose docnos are the places."""
    order = np.argsort(system.ranks(items))
    return RankedLists((TOPIC,), np.array([0, items]), place_docnos(items)[order])


def place_docnos(items: int) -> np.ndarray[tuple[int], np.dtype[np.bytes_]]:
    """Return the docnos of the places: zero-padded, so that a pool keeps them in order."""
    return np.array([f"{place:06d}".encode() for place in range(items)])


def expected_grade(ranks: FloatArray, *, items: int) -> FloatArray:
    """Return 4 (1 - r / items), what the papers expect at rank r; a trace at the last rank."""
    return np.maximum(MAX_GRADE * (1.0 - ranks / items), TINY)


def make_prior(pool: Pool, goal: Goal) -> Prior:
    """Return the papers' prior: the mean of `expected_grade` over the runs of the goal."""
    wanted = np.isin(pool.run, [pool.run_index(tag) for tag in goal.all_runs])
    expected = column_sums(
        pool.entry_pair[wanted],
        expected_grade(pool.rank[wanted].astype(np.float64), items=pool.depth),
        number=len(pool),
    ) / len(goal.all_runs)
    return Prior("expected grade", frozen(expected), frozen(MAX_GRADE * expected))
