"""How much pairs matter for a goal whose measure is a ratio, as a model of grades has it.

How much a pair moves the AP, nDCG or Rprec of a run depends on how many relevant documents its
topic has, and for AP on what else is relevant in the list. Of both more is known after every batch:
what was judged is taken as it is, what was not as a model of grades has it. The weights of a batch
hang on judgments of the batches before it alone, so that they bias nothing (`sampling`); what they
rested on is stored with the batch, and no correction of a label changes them afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import added, column_sums, share_of
from ...estimates.ratio_frames import Frame, Gains
from ...estimates.ratio_lines import Tangent

if TYPE_CHECKING:
    from ...arrays import BoolArray, FloatArray, IntArray
    from ...data.pool import Pool
    from ...measures.table import Measure
    from ...sampling.goals import Goal, Race

OVERDISPERSION = 1.0  # relative variance of what is expected of a topic beyond what was found


@dataclass(frozen=True, eq=False)
class Known:
    """The judged pairs, (N,), the finds among them, (f,), and the shares of these, (L, f).

    What is judged weighs as it is, and pulls at the weights of what is open: of a topic in which
    enough was found for an ideal list of ten no more is needed.
    """

    judged: BoolArray
    pair: IntArray
    reach: FloatArray

    def put_in(self, reached: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return shares of all pairs, judged ones as they are, and those of the finds, (L, N)."""
        found = np.zeros_like(reached)
        found[:, self.pair] = self.reach
        return np.where(self.judged, found, reached), found


def ratio_weights(
    pool: Pool,
    goal: Goal,
    measure: Measure,
    *,
    levels: IntArray,
    reached: FloatArray,
    known: Known | None = None,
    race: Race | None = None,
) -> FloatArray:
    """Return the weight of every pair for a goal, as `goals.effective_weights`.

    The measure is linearized where every pair has what is expected of it: a unit of utility of pair
    i moves run j by z_ij = a_ij - b_xj h_i, through the numerator if the run returns it, and
    through the denominator of its topic x in any case. The z_ij take the place of the w_ij.

    Parameters
    ----------
    pool, goal, measure : Pool, Goal, Measure
        The measure is of the family ratio.
    levels : ndarray of int64, shape (L,)
        Grades, as those of `LearnedGrades`.
    reached : ndarray of float64, shape (L, N)
        The expected share of judgments with at least each.
    known : Known, optional
        What was found so far. What is expected of open pairs of a topic may then be nothing or
        twice as much, and slopes of an ideal list are those over that range: slopes at the
        expected count say of a topic of which ten are expected and five are found that nothing
        more need be known of it.
    race : Race, optional
        As for `goals.effective_weights`.

    Returns
    -------
    ndarray of float64, shape (N,)
        Hangs on the judgments through the model alone, like the chances of a batch, which they are
        for.
    """
    gain = np.diff(measure.utilities(np.append(0, levels)))
    counted = gain > 0.0
    if not counted.any():
        return np.zeros(len(pool))
    gain, expected, every = gain[counted], reached[counted], np.arange(len(pool))
    gains = Gains(gain, expected, every, np.ones(len(pool)))
    if known is not None:
        expected, found = (each[counted] for each in known.put_in(reached))
        gains = _uncertain(pool, gains, expected, found)
    slopes = _Slopes.of(Tangent.of(Frame.of(pool, measure, gains, None), measure), reached[counted])
    runs = [pool.run_index(tag) for tag in goal.runs]
    if race is not None:
        total, squares = slopes.weighted(race.priority.astype(np.float64))
        ahead, _ = slopes.sums([race.leader])
        squares = squares - 2.0 * ahead * total + race.priority.sum() * ahead**2
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)), dtype=np.float64)
    total, squares = slopes.sums(runs)
    if goal.kind in ("ranking", "winner"):
        squares = squares - total**2 / len(runs)
    elif goal.kind == "pair":
        squares = 2.0 * squares - total**2
    elif goal.kind == "baseline":
        other, _ = slopes.sums([pool.run_index(goal.all_runs[-1])])
        squares = squares - 2.0 * other * total + len(runs) * other**2
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)), dtype=np.float64)


def _uncertain(pool: Pool, gains: Gains, expected: FloatArray, found: FloatArray) -> Gains:
    """What is expected of pairs, and how uncertain counts are: by as much as is still expected."""
    number = len(pool.topics)
    least = np.stack([column_sums(pool.topic, each, number=number) for each in found])
    left = expected - found
    more = np.stack([column_sums(pool.topic, each, number=number) for each in left])
    variances = left * (1.0 - left + OVERDISPERSION * more[:, pool.topic])
    return replace(gains, reach=expected, variances=variances, least=least)


@dataclass(frozen=True, eq=False)
class _Slopes:
    """z_ij of all pairs and runs, not formed where a run does not return a pair."""

    tangent: Tangent
    falling: FloatArray  # (N,) h_i

    @classmethod
    def of(cls, tangent: Tangent, reached: FloatArray) -> _Slopes:
        gain, slopes = tangent.frame.gains.gain, tangent.level_slope[:, tangent.frame.topic]
        return cls(tangent, share_of(added(gain, slopes * reached), of=added(gain, reached)))

    def sums(self, runs: list[int]) -> tuple[FloatArray, FloatArray]:
        """Return the sums over some runs of z_ij, and of its squares, shape (N,) each."""
        chosen = np.zeros(self.tangent.frame.runs)
        chosen[runs] = 1.0
        return self.weighted(chosen)

    def weighted(self, chosen: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the same of all runs, each counted so often, shape (k,)."""
        frame, slope, by_topic = self.tangent.frame, self.tangent.slope, self.tangent.topic_slope
        pair, run, topic = frame.place, frame.cell % frame.runs, frame.topic
        below = by_topic[topic[pair], run] * self.falling[pair]
        linear = slope * chosen[run]
        squares = self._per_pair(linear * (slope - 2.0 * below))
        total = self._per_pair(linear) - (by_topic * chosen).sum(axis=1)[topic] * self.falling
        squares += (by_topic**2 * chosen).sum(axis=1)[topic] * self.falling**2
        return total, squares

    def _per_pair(self, values: FloatArray) -> FloatArray:
        return column_sums(self.tangent.frame.place, values, number=len(self.falling))
