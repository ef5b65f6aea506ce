"""Blocks of judgments at a desk: what they took, and whether all of them are stored."""

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from benchmarks.clients import GRADES, of_everybody
from benchmarks.desks.desk import Desk, Label

T = TypeVar("T")
BEFORE, BLOCKS, JUDGMENTS = 5, 3, 15  # of each: before anything is measured, and in each block


class NotInstalled(Exception):
    """A tool cannot be installed on this machine."""


class Lost(Exception):
    """What is stored is not what was said."""


@dataclass
class Trials:
    """``spent`` is in milliseconds for a judgment, one for each block; ``waits`` are in seconds."""

    desk: Desk
    blocks: list[int] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def warm(self) -> None:
        self._judged(BEFORE)

    def block(self) -> None:
        before = self.desk.seconds()
        waits = self._judged(JUDGMENTS)
        self.spent.append(1000 * (self.desk.seconds() - before) / len(waits))
        self.waits += waits

    def _judged(self, judgments: int) -> list[float]:
        self.blocks.append(judgments)
        return of_everybody(self.desk.clients, judgments)

    def took(self) -> "Took":
        """Raises Lost if a label is missing, or is there that nobody gave."""
        said = Counter(number % GRADES for judgments in self.blocks for number in range(judgments))
        labels = self.desk.stored()
        found = Counter((label.person, label.grade) for label in labels)
        people = range(len(self.desk.clients))
        if found != Counter({(who, grade): n for who in people for grade, n in said.items()}):
            given = len(people) * sum(self.blocks)
            raise Lost(f"of {given} labels that were given {len(labels)} are stored")
        return Took.of(statistics.median(self.spent), self.waits, labels)


@dataclass(frozen=True)
class Took:
    """``cost`` is in milliseconds of all processes for a judgment, ``median`` and ``p95`` are in
    seconds that people wait. ``beyond`` labels are of items that had the one they should have,
    ``doubles`` by somebody who had given one of the item."""

    cost: float
    median: float
    p95: float
    labels: int
    beyond: int
    doubles: int

    @classmethod
    def of(cls, cost: float, waits: Sequence[float], labels: Sequence[Label]) -> "Took":
        cuts = statistics.quantiles(waits, n=100)
        items = {label.item for label in labels}
        given = {(label.item, label.person) for label in labels}
        beyond, doubles = len(labels) - len(items), len(labels) - len(given)
        return cls(cost, cuts[49], cuts[94], len(labels), beyond, doubles)


def measured(
    ours: Callable[[], AbstractContextManager[Mapping[str, Desk]]],
    starts: Mapping[str, Callable[[], AbstractContextManager[Desk]]],
) -> dict[str, Took | Exception]:
    """By its name what each desk took, ours first, or what it failed with.

    Blocks of judgments take turns, so that what disturbs the machine for a while disturbs all of
    them. Raises what ours fail with.
    """
    found: dict[str, Took | Exception] = {}

    def tried(name: str, act: Callable[[], T]) -> T | None:
        try:
            return act()
        except Exception as error:
            if name not in starts:
                raise
            found[name] = error
            return None

    with ExitStack() as stack:
        enter = stack.enter_context
        begun = {name: tried(name, partial(enter, start())) for name, start in starts.items()}
        own = enter(ours())
        trials = {name: Trials(desk) for name, desk in (begun | own).items() if desk is not None}
        for act in (Trials.warm, *[Trials.block] * BLOCKS, Trials.took):
            for name in [name for name in trials if name not in found]:
                told = tried(name, partial(act, trials[name]))
                if isinstance(told, Took):
                    found[name] = told
    return {name: found[name] for name in (*own, *starts)}
