"""What is stored of a round of adaptive sampling: its plan, and the batches planned so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...archives import ArchiveFile, read_archive, write_archive
from ...arrays import FloatArray, Int32Array, IntArray, frozen
from ...sampling.designs import DESIGN_ARRAYS, Design
from ...sampling.goals import Race
from ...sampling.methods import MOST_TOGETHER
from ...tables import FactSheet
from .finds import Finds
from .frame import AdaptiveFrame
from .grades import LearnedGrades
from .past import PAST_ARRAYS, Past
from .sampling import AdaptiveStep, DrawnBatch, Openness, after, passed_batch
from .scoring import Scoring

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...data.pool import Pool
    from ...estimates.drawn import Drawn
    from ...measures.table import Measure
    from ...sampling.goals import Goal
    from .batch_weights import Weighed

FAMILIES = "gain", "ratio", "preference", "prediction"  # of measures that rounds estimate
PLAN_FORMAT, STATE_FORMAT = "evalsite-adaptive-plan-1", "evalsite-adaptive-1"
OF_MODELS = "levels", "coefficients", "found", "reach", "scoring"  # what a batch was planned by
OF_RACES = "leader", "priority"
IN_STEPS = *OF_MODELS, *OF_RACES, "budget"
MOST_WALKED = 9_000_000  # pairs of all batches, of which sizes are kept: ten of 900 000, 81 MB
NOTHING_FOUND = Finds(np.zeros(0, dtype=np.int64), np.zeros((0, 0)))


class AdaptiveError(ValueError):
    """An adaptive round that cannot be planned; the message is a sentence for the organizer."""


@dataclass(frozen=True, eq=False, repr=False)
class AdaptivePlan(FactSheet):
    """What is fixed before anything is judged.

    Attributes
    ----------
    design : Design
        With the method ``adaptive``, from `allocation.make_design`: the first batch, and the
        others as long as nothing is learned.
    max_grade : int
        The best grade of the scale.
    costs : ndarray of float64, shape (N,), or None
        Of judging each pair, as the design has them.
    predicted : ndarray of float64, shape (N, S), or None
        Predicted grades, a column for each who predicted them, NaN where nothing is predicted.
    topic_minimum : float
        Pairs of a topic in a batch that has any of it, as expected; up to 1: as it comes. For sums
        of gains alone: products of two pairs, of which ratios are made, need pairs of a topic that
        are drawn independently.
    even_topics : bool
        Whether topics then take part by classes, else as in earlier versions (`topic_choice`).

    Raises
    ------
    AdaptiveError
        If the design is of another method, numbers are not one per pair, or the minimum is not
        from 0 to `MOST_TOGETHER`, or goes with a ratio.
    """

    design: Design
    max_grade: int
    costs: FloatArray | None = None
    predicted: FloatArray | None = None
    topic_minimum: float = 0.0
    past: Past | None = None
    even_topics: bool = False
    FACTS: ClassVar = ("goal", "measure", "budget", "batches", "max_grade")

    def __post_init__(self) -> None:
        if self.design.method != "adaptive":
            raise AdaptiveError(f"design must be of the method adaptive, not {self.design.method}")
        for measure in (self.measure, *self.design.reported):
            if measure.family not in FAMILIES:
                raise AdaptiveError(f"Adaptive rounds do not estimate {measure}.")
            if self.topic_minimum > 1.0 and measure.family == "ratio":
                raise AdaptiveError(f"Adaptive rounds by topics do not estimate {measure}.")
            if self.past is not None and measure.is_by_run:
                raise AdaptiveError(f"Adaptive rounds do not top up what is judged for {measure}.")
        if not 0.0 <= self.topic_minimum <= MOST_TOGETHER:
            message = f"topic_minimum must be from 0 to {MOST_TOGETHER}"
            raise AdaptiveError(f"{message}, not {self.topic_minimum!r}")
        pairs = len(self.design.size)
        for name, numbers in (("costs", self.costs), ("predicted", self.predicted)):
            if numbers is not None and len(numbers) != pairs:
                raise AdaptiveError(f"{name} must be one per pair, {pairs}, not {len(numbers)}")
        if self.past is not None and self.design.eligible[self.past.judged].any():
            raise AdaptiveError("a pair that was judged before cannot be drawn: its size must be 0")

    @property
    def together(self) -> float | None:
        """The minimum of pairs of a topic, None without one."""
        return self.topic_minimum if self.topic_minimum > 1.0 else None

    @property
    def evenly(self) -> bool | None:
        """The same, None where a collection says nothing of it."""
        return True if self.even_topics else None

    @property
    def goal(self) -> Goal:
        """What the round is optimized for."""
        return self.design.goal

    @property
    def measure(self) -> Measure:
        """The measure of the goal."""
        return self.design.measure

    @property
    def budget(self) -> float:
        """What may be spent."""
        return self.design.budget

    @property
    def batches(self) -> int:
        """Number of batches."""
        return self.design.batches

    @property
    def is_census(self) -> bool:
        """Whether everything that can be sampled will be judged."""
        return self.design.is_census

    @property
    def pool_digest(self) -> str:
        """Digest of the pool."""
        return self.design.pool_digest

    def frame(self, pool: Pool) -> AdaptiveFrame:
        """Return what stays the same in all batches; that of the pool asked for last is kept."""
        for frame in self._frames:
            if frame.pool is pool:
                return frame
        given = self.costs, self.predicted, self.topic_minimum, self.past, self.even_topics
        frame = AdaptiveFrame(pool, self.design, self.max_grade, *given)
        self._frames[:] = [frame]
        return frame

    @cached_property
    def _frames(self) -> list[AdaptiveFrame]:
        return []

    def save(self, file: ArchiveFile) -> None:
        """Write the plan to a path or a binary file."""
        facts, arrays = self.design.stored()
        given = {"costs": self.costs, "predicted": self.predicted}
        arrays |= {name: each for name, each in given.items() if each is not None}
        arrays |= {} if self.past is None else self.past.stored()
        facts |= {"max_grade": self.max_grade}
        of_topics = {"topic_minimum": self.topic_minimum, "even_topics": self.even_topics}
        facts |= {name: each for name, each in of_topics.items() if each}
        write_archive(file, PLAN_FORMAT, facts, arrays)

    @classmethod
    def load(cls, file: ArchiveFile) -> AdaptivePlan:
        """Read what `save` wrote; raise ValueError if it is damaged or something else."""
        (needed, optional), own = DESIGN_ARRAYS, ("costs", "predicted")
        facts, arrays = read_archive(
            file, PLAN_FORMAT, needed, optional=(*optional, *own, *PAST_ARRAYS)
        )
        best, together = facts.pop("max_grade"), facts.pop("topic_minimum", 0.0)
        even = facts.pop("even_topics", False)
        given = {name: frozen(arrays.pop(name)) for name in own if name in arrays}
        past = Past.restored(arrays)
        design = Design.restored(facts, arrays)
        return cls(design, best, **given, topic_minimum=together, past=past, even_topics=even)


@dataclass(frozen=True, eq=False)
class AdaptiveState:
    """The batches that were planned.

    Attributes
    ----------
    seed : str
    pair : ndarray of int64, shape (n,)
        Drawn pairs, ascending.
    batch : ndarray of int32, shape (n,)
        1-based batch of each; 0 of those that were judged before the round.
    chance : ndarray of float64, shape (n,)
        The chance with which it was drawn then, given that it was not before.
    steps : tuple of AdaptiveStep
        How each batch was planned.
    """

    seed: str
    pair: IntArray
    batch: Int32Array
    chance: FloatArray
    steps: tuple[AdaptiveStep, ...]

    @cached_property
    def weighed(self) -> list[tuple[Pool, Design, Weighed]]:
        """What the batches count every pair for, once it was worked out (`sampled`)."""
        return []

    @cached_property
    def planned(self) -> list[tuple[Design, Drawn]]:
        """What the design alone would have drawn, once it was asked for (`sampled`)."""
        return []

    @cached_property
    def walks(self) -> list[Walked]:
        """What `walk` went through last."""
        return []

    @property
    def batches(self) -> int:
        """Number of batches that were planned."""
        return len(self.steps)

    def of_batch(self, number: int) -> IntArray:
        """Return the pairs of a batch."""
        found: IntArray = self.pair[self.batch == number]
        return found

    def first(self, batches: int) -> AdaptiveState:
        """Return the first batches."""
        kept = self.batch <= batches
        pair, batch, chance = (frozen(each[kept]) for each in (self.pair, self.batch, self.chance))
        return AdaptiveState(self.seed, pair, batch, chance, self.steps[:batches])

    def after(self, past: Past | None) -> AdaptiveState:
        """Return the same with the pairs that were judged before, which no batch drew.

        Models know which pairs were judged by then, and of stored ones only this tells it.
        """
        judged = frozen(np.zeros(0, dtype=np.int64)) if past is None else past.judged
        order = np.argsort(np.append(judged, self.pair), kind="stable")
        none = np.zeros(len(judged))
        both = (judged, self.pair), (none, self.batch), (none + 1.0, self.chance)
        pair, batch, chance = (
            frozen(np.append(before.astype(drawn.dtype), drawn)[order]) for before, drawn in both
        )
        return AdaptiveState(self.seed, pair, batch, chance, with_judged(self.steps, pair, batch))

    def following(self, before: AdaptiveState) -> AdaptiveState:
        """Return the same with all that was worked out of an earlier state, if it began as that."""
        if self.seed != before.seed or not self._begins_as(before):
            return self
        longer = replace(self, steps=(*before.steps, *self.steps[before.batches :]))
        longer.walks.extend(before.walks)
        return longer

    def _begins_as(self, before: AdaptiveState) -> bool:
        if before.batches > self.batches:
            return False
        kept = self.batch <= before.batches
        both = (self.pair, before.pair), (self.batch, before.batch), (self.chance, before.chance)
        same = all(np.array_equal(mine[kept], its) for mine, its in both)
        steps = zip(self.steps, before.steps, strict=False)
        return same and all(mine.is_as(its) for mine, its in steps)

    def save(self, file: ArchiveFile) -> None:
        """Write the state to a path or a binary file."""
        arrays: dict[str, Any] = {"pair": self.pair, "batch": self.batch, "chance": self.chance}
        before = NOTHING_FOUND
        for number, step in enumerate(self.steps, start=1):
            arrays[f"constants {number}"] = step.constants
            if step.model is not None:
                arrays[f"levels {number}"] = step.model.levels
                arrays[f"coefficients {number}"] = step.model.coefficients
                if step.model.found is not None:
                    changes = step.model.found.since(before)
                    arrays[f"found {number}"], arrays[f"reach {number}"] = changes
                    before = step.model.found
                if step.model.scoring is not None:
                    arrays[f"scoring {number}"] = step.model.scoring.numbers
            if step.race is not None:
                arrays[f"leader {number}"] = np.array([step.race.leader])
                arrays[f"priority {number}"] = step.race.priority
            if step.budget is not None:
                arrays[f"budget {number}"] = np.array([step.budget])
        facts = {"seed": self.seed, "batches": self.batches, "found": "changes"}
        write_archive(file, STATE_FORMAT, facts, arrays)

    @classmethod
    def load(cls, file: ArchiveFile) -> AdaptiveState:
        """Read what `save` wrote; raise ValueError if it is damaged or something else."""
        facts, _ = read_archive(file, STATE_FORMAT, ())
        numbers = range(1, facts["batches"] + 1)
        needed = ["pair", "batch", "chance", *(f"constants {each}" for each in numbers)]
        learned = [f"{kind} {each}" for each in numbers for kind in IN_STEPS]
        _, arrays = read_archive(file, STATE_FORMAT, needed, optional=learned)
        arrays = {name: frozen(array) for name, array in arrays.items()}
        models = _models(arrays, numbers, changes=facts.get("found") == "changes")
        steps = (
            AdaptiveStep(model, arrays[f"constants {each}"], *_race_and_budget(arrays, each))
            for each, model in zip(numbers, models, strict=True)
        )
        pair, batch, chance = (arrays[name] for name in ("pair", "batch", "chance"))
        return cls(facts["seed"], pair, batch, chance, with_judged(steps, pair, batch))


def with_judged(
    steps: Iterable[AdaptiveStep], pair: IntArray, batch: Int32Array
) -> tuple[AdaptiveStep, ...]:
    """Tell models that know what was found which pairs were judged: those of batches before."""
    return tuple(
        replace(step, model=_knowing(step.model, pair[batch < each]))
        for each, step in enumerate(steps, start=1)
    )


def _knowing(model: LearnedGrades | None, judged: IntArray) -> LearnedGrades | None:
    if model is None or model.found is None:
        return model
    return replace(model, found=replace(model.found, judged=frozen(judged)))


def _models(
    arrays: dict[str, Any], numbers: Iterable[int], *, changes: bool
) -> Iterator[LearnedGrades | None]:
    """What each batch was planned by. Its finds are told by what changed since the last of them;
    earlier versions stored all of them with every batch."""
    before = NOTHING_FOUND
    for number in numbers:
        found = [arrays.get(f"{kind} {number}") for kind in OF_MODELS]
        levels, coefficients, pair, reach, told = found
        if levels is None or coefficients is None:
            yield None
        elif pair is None or reach is None:
            yield LearnedGrades(levels, coefficients)
        else:
            before = (before if changes else NOTHING_FOUND).with_changes(pair, reach)
            scoring = None if told is None else Scoring.of(told)
            yield LearnedGrades(levels, coefficients, before, scoring)


def _race_and_budget(arrays: dict[str, Any], number: int) -> tuple[Race | None, float | None]:
    leader, priority, budget = (arrays.get(f"{kind} {number}") for kind in (*OF_RACES, "budget"))
    race = None if leader is None or priority is None else Race(int(leader[0]), priority)
    return race, None if budget is None else float(budget[0])


@dataclass(frozen=True, eq=False)
class Walked:
    """Batches of a frame that were gone through, and where pairs stand after the last of them."""

    frame: AdaptiveFrame
    met: tuple[DrawnBatch, ...]
    standing: Openness


class Walk:
    """Goes through the batches of a round again, from where it went last.

    Attributes
    ----------
    standing : Openness
        Where pairs stand after the batch that was met last, and is done with.
    """

    def __init__(self, frame: AdaptiveFrame, state: AdaptiveState) -> None:
        self._frame, self._state = frame, state
        self._known = [*(each for each in state.walks if each.frame is frame)][:1]
        self.standing = self._known[0].standing if self._known else Openness.of(frame)

    def __iter__(self) -> Iterator[DrawnBatch]:
        frame, state = self._frame, self._state
        met = [batch for each in self._known for batch in each.met]
        yield from (batch.alone() for batch in met)
        is_kept = len(frame.at) * state.batches <= MOST_WALKED
        for number, step in enumerate(state.steps[len(met) :], start=1 + len(met)):
            passed = passed_batch(frame, number, step, self.standing, state.of_batch(number))
            yield passed
            self.standing = after(passed)
            met += [passed.alone()] if is_kept else []
        if is_kept:
            state.walks[:] = [Walked(frame, tuple(met), self.standing)]


def walk(frame: AdaptiveFrame, state: AdaptiveState) -> Walk:
    """Go through the batches of a round again."""
    return Walk(frame, state)


def standing_after(frame: AdaptiveFrame, state: AdaptiveState) -> Openness:
    """Return where pairs stand after all batches of a state."""
    going = walk(frame, state)
    for _ in going:
        pass
    return going.standing
