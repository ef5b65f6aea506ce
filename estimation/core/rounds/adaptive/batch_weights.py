"""What the batches of an adaptive round count each pair for, whatever was found; see `sampling`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ...arrays import divided, frozen, pieces
from ...estimates.topic_sums import totals_by_topic
from .frame import utility_steps
from .past import in_squares
from .run_utilities import shares_of_grades

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...arrays import FloatArray, IntArray
    from ...data.scope import Scope
    from ...measures.table import Measure
    from .frame import AdaptiveFrame
    from .past import Past
    from .sampling import DrawnBatch, Openness

MOST_AT_ONCE = 3_000_000  # pairs of batches that are added up together
AT_ONCE = 1 << 13  # pairs of which all sums stand in a processor's cache
LEAST: FloatArray = frozen(np.full(AT_ONCE, np.finfo(np.float64).tiny))  # in the place of 0
Array = TypeVar("Array", "FloatArray", "IntArray")


@dataclass(frozen=True, eq=False)
class JudgedWeights:
    """What the n judged pairs count for: columns of `BatchWeights`, (n,) each."""

    on_label: FloatArray
    on_find: FloatArray
    chance: FloatArray
    opened: FloatArray
    in_topics: FloatArray
    inside: FloatArray

    @cached_property
    def on_noise(self) -> FloatArray:
        """What the variance of a label counts for beyond its part in the squares.

        The square of what the label is multiplied by, less (A/p)^2 (1 - p), which is in the
        squares: of pairs whose topics take part by classes (A/p)^2 (1 - p (1 - c)/q).
        """
        counted = self.on_find**2 * (1.0 - self.chance * self.inside)
        return np.asarray(self.on_label**2 - counted)

    @cached_property
    def all_open(self) -> bool:
        """Whether all topics took part in every batch for certain."""
        return bool(np.all(self.opened == 1.0))


@dataclass(frozen=True, eq=False)
class BatchWeights:
    """What batches count each pair for, whatever the measure.

    Attributes
    ----------
    on_label : ndarray of float64, shape (N,)
        Of judged pairs: what their label is multiplied by; 0 of the others.
    on_find : ndarray of float64, shape (N,)
        A / p of the batch in which the pair was judged.
    chance : ndarray of float64, shape (N,)
        p of that batch.
    spread : ndarray of float64, shape (N,)
        sum_b A_b^2 (1 - p_b) / p_b over the batches before which the pair was open.
    once, cubes : ndarray of float64, shape (N,)
        sum_b A_b (1 - p_b) and sum_b A_b^3 (1 - p_b) / p_b^2 over them.
    by_mean : list of ndarray of float64, shape (4, N)
        Of each measure: sum_b A_b m_b over batches before which the pair was open, the part of it
        that no label replaced taken as it is; m of the batch in which it was judged; and sums of
        A_b^2 (1 - p_b) / p_b times m_b and m_b^2.
    batch : ndarray of int64, shape (N,)
        In which the pair was judged, from 1; 0 of the others.
    opened : ndarray of float64, shape (N,)
        The chance of the pair's topic to take part in that batch.
    in_topics : ndarray of float64, shape (N,)
        What the square of the sum of that topic's pairs counts for (`TopicChoice.moved`).
    inside : ndarray of float64, shape (N,)
        What the square of the pair itself counts for (`TopicChoice.inside`).
    by_grade : ndarray of float64, shape (3, L + 1, N)
        Where the utility depends on the run: the first three of these of the share of grade 0 and
        of each level, 0 of batches that nothing was learned for. Empty without such a measure.
    untold : ndarray of float64, shape (3, 0 or 1, N)
        For predictions: `spread`, `once` and `cubes` of the batches of which nothing was predicted.
    apart : ndarray of float64, shape (N,)
        With these: sum_b A_b^2 (1 - p_b) / p_b times the sum of their squares.
    reach : ndarray of float64, shape (3, L, N)
        For ratios: the first three of these of the share of judgments that reach each level of the
        model. Empty without any.
    totals : dict
        What the values of runs would be if each pair had what batches predicted, by topic, (T, k),
        of the measures and pools that were asked for: no label is in it.
    judged : list
        The judged pairs that were asked for last, with `of_judged`.
    """

    on_label: FloatArray
    on_find: FloatArray
    chance: FloatArray
    spread: FloatArray
    once: FloatArray
    cubes: FloatArray
    by_mean: list[FloatArray]
    reach: FloatArray
    batch: IntArray
    opened: FloatArray
    in_topics: FloatArray
    inside: FloatArray
    by_grade: FloatArray
    apart: FloatArray
    untold: FloatArray
    totals: dict[tuple[str, int], FloatArray] = field(default_factory=dict)
    judged: list[tuple[IntArray, JudgedWeights]] = field(default_factory=list)

    @classmethod
    def of(
        cls, frame: AdaptiveFrame, met: Iterable[DrawnBatch], measures: Sequence[Measure], ends: int
    ) -> BatchWeights:
        """Add up the batches of a sample of which the last is number `ends`."""
        pairs = len(frame.at)
        left = np.ones(pairs) if frame.past is None else frame.past.left[frame.at]
        label, find, chance, spread, once, cubes = np.zeros((6, pairs))
        of_steps = {_rises(frame, measure): np.zeros((4, pairs)) for measure in measures}
        of_steps[()] = np.zeros((0, pairs))
        means = [of_steps[_rises(frame, measure)] for measure in measures]
        levels = len(frame.levels) if any(each.family == "ratio" for each in measures) else 0
        reach = np.zeros((3, levels, pairs))
        batches = np.zeros(pairs, dtype=np.int64)
        topics = np.ones(pairs), np.zeros(pairs), np.ones(pairs)
        grades = len(frame.levels) + 1 if any(each.is_by_run for each in measures) else 0
        by_grade, apart = np.zeros((3, grades, pairs)), np.zeros(pairs)
        predicts = any(each.family == "prediction" for each in measures)
        of_runs = by_grade, apart, np.zeros((3, int(predicts), pairs))
        sums = cls(
            label, find, chance, spread, once, cubes, means, reach, batches, *topics, *of_runs
        )
        for several in _together(met, max(1, MOST_AT_ONCE // max(1, pairs))):
            adding = [sums._adding(frame, batch, measures) for batch in several]
            for piece in pieces(pairs, AT_ONCE):  # all batches of a piece are added up in a cache
                for each in adding:
                    sums._add_piece(each, piece, left[piece], ends)
            for each in adding:
                sums._add_drawn(frame, each)
        every = sums._of_all(frame)
        if frame.past is not None:
            every._add_past(frame.past, [np.array(_rises(frame, each)) for each in measures])
        return every

    def _of_all(self, frame: AdaptiveFrame) -> BatchWeights:
        """The same of all N pairs: those that cannot be drawn count for nothing."""
        if len(frame.at) == len(frame.pool):
            return self

        def spread(found: Array, other: float = 0) -> Array:
            every = np.full((*found.shape[:-1], len(frame.pool)), other, dtype=found.dtype)
            every[..., frame.at] = found
            return every

        found_later = ("totals", "judged")
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        given = {name: each for name, each in given.items() if name not in found_later}
        means = [spread(each) for each in given.pop("by_mean")]
        certain = {name: spread(given.pop(name), 1) for name in ("opened", "inside")}
        others = {name: spread(found) for name, found in given.items()}
        return BatchWeights(by_mean=means, **certain, **others)

    def _add_past(self, past: Past, rises: Sequence[FloatArray]) -> None:
        """Add what was there before; `rises` are those of each measure's utility."""
        at, sums = past.judged, past.sums_of(len(rises[0]))
        self.on_label[at], self.on_find[at] = sums.on_label, sums.on_find
        self.chance[at] = sums.chance
        if past.sums is None:
            return
        self.spread[:] += sums.spread
        self.once[:] += sums.once
        self.cubes[:] += sums.cubes
        several = {id(mean): (mean, rise) for mean, rise in zip(self.by_mean, rises, strict=True)}
        for mean, rise in several.values():  # measures may share sums
            mean[0] += rise @ sums.shared
            mean[1, at] = rise @ sums.reached
            mean[2] += rise @ sums.moved
            mean[3] += in_squares(rise) @ sums.products
        if self.reach.size:
            self.reach[0] += sums.shared
            self.reach[1][:, at] = sums.reached
            self.reach[2] += sums.moved

    def predicted_totals(self, scope: Scope, at: int, measure: Measure) -> FloatArray:
        """Return what is predicted of the values of a scope's runs by topic, (T, k); found once."""
        key = scope.pool.digest, at
        if key not in self.totals:
            predicted = scope.spread(self.by_mean[at][0])
            self.totals[key] = frozen(totals_by_topic(scope.pool, measure, predicted))
        return self.totals[key]

    def of_judged(self, pairs: IntArray) -> JudgedWeights:
        """Return what the judged pairs count for; those that were asked for last are kept."""
        for same, found in self.judged:
            if same is pairs:
                return found
        columns = (self.on_label, self.on_find, self.chance, self.opened)
        topics = self.in_topics, self.inside
        found = JudgedWeights(*(each[pairs] for each in (*columns, *topics)))
        self.judged[:] = [(pairs, found)]
        return found

    def _adding(
        self, frame: AdaptiveFrame, batch: DrawnBatch, measures: Sequence[Measure]
    ) -> _Adding:
        model = batch.step.model
        if model is None:
            return _Adding(batch, [], np.zeros((0, len(frame.at))), 0.0)
        reached = frame.reached(model)
        of_steps = {_rises(frame, each): at for at, each in enumerate(measures)}
        of_steps.pop((), None)
        means = [(self.by_mean[at], _means(rises, reached)) for rises, at in of_steps.items()]
        return _Adding(batch, means, reached, 1.0 if frame.pool.is_of_preferences else model.part)

    def _add_piece(self, adding: _Adding, piece: slice, left: FloatArray, ends: int) -> None:
        """Add what the pairs of a piece were open for; what is left of them is taken from."""
        batch = adding.batch
        chance = batch.chances.by_of(piece, 0)
        share = batch.chances.share_of(piece, batch.number, left, ends - batch.number, chance)
        left -= share
        here = np.flatnonzero(batch.drawn[piece])
        self.on_find[piece][here], self.on_label[piece][here] = share[here], left[here]
        weight = share / np.maximum(chance, LEAST[: len(chance)])
        once = np.subtract(1.0, chance, out=chance)
        once *= share
        spread = once * weight
        self.once[piece] += once
        self.spread[piece] += spread
        weight *= spread
        self.cubes[piece] += weight
        if self.untold.size and adding.part == 0.0:
            self.untold[:, 0, piece] += spread, once, weight
        for sums, every in adding.means:
            mean = every[piece]
            sums[0, piece] += share * mean
            moved = spread * mean
            sums[2, piece] += moved
            moved *= mean
            sums[3, piece] += moved
        if self.reach.size and len(adding.reached):
            reached = adding.reached[:, piece]
            self.reach[0][:, piece] += share * reached
            self.reach[2][:, piece] += spread * reached
        if self.by_grade.size and len(adding.reached):
            shares = adding.part * shares_of_grades(adding.reached[:, piece])
            self.by_grade[0][:, piece] += share * shares
            self.by_grade[2][:, piece] += spread * shares
            self.apart[piece] += spread * (shares**2).sum(axis=0)

    def _add_drawn(self, frame: AdaptiveFrame, adding: _Adding) -> None:
        """Add what the pairs of the batch count for, from their shares and what is left."""
        batch, drawn = adding.batch, np.flatnonzero(adding.batch.drawn)
        chance = batch.chances.by_of(drawn, 0)
        weight = divided(self.on_find[drawn], chance, chance > 0.0)
        self.on_find[drawn] = weight
        self.on_label[drawn] += weight
        self.chance[drawn] = chance
        self.batch[drawn] = batch.number
        if frame.topic_minimum > 1.0:
            choice = frame.topics_at(batch.step.model, batch.chances.by(0))
            self.opened[drawn] = choice.chance[frame.topic[drawn]]
            self.in_topics[drawn] = choice.moved[frame.topic[drawn]]
            self.inside[drawn] = choice.inside[frame.topic[drawn]]
        for sums, mean in adding.means:
            sums[1][drawn] = mean[drawn]
        if self.reach.size and len(adding.reached):
            self.reach[1][:, drawn] = adding.reached[:, drawn]
        if self.by_grade.size and len(adding.reached):
            shares = adding.part * shares_of_grades(adding.reached[:, drawn])
            self.by_grade[1][:, drawn] = shares


@dataclass(frozen=True, eq=False)
class _Adding:
    """A batch that is added: where what it predicts goes, and that, (n,); what it expects.

    `part` of what it predicts counts where utilities depend on the run.
    """

    batch: DrawnBatch
    means: list[tuple[FloatArray, FloatArray]]
    reached: FloatArray
    part: float


def _together(met: Iterable[DrawnBatch], most: int) -> Iterator[list[DrawnBatch]]:
    """So many batches at a time, without where pairs stood before them."""
    going = (batch.alone() for batch in met)
    while several := list(islice(going, most)):
        yield several


def _means(rises: tuple[float, ...], reached: FloatArray) -> FloatArray:
    """What is expected of utilities that rise so at each level, (n,)."""
    found: FloatArray = reached[0] if rises == (1.0,) else np.array(rises) @ reached
    return found


def _rises(frame: AdaptiveFrame, measure: Measure) -> tuple[float, ...]:
    """By how much the utility rises at each level: all that a measure's means hang on.

    Empty where it depends on the run (`BatchWeights.by_grade`).
    """
    return () if measure.is_by_run else tuple(utility_steps(measure, frame.levels).tolist())


@dataclass(frozen=True, eq=False)
class Weighed:
    """The weights of batches for some measures, and where pairs stand after the last of them."""

    measures: tuple[Measure, ...]
    weights: BatchWeights
    standing: Openness
