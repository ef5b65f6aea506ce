"""How many labels each pair of a round gets, where further ones go where they pay.

For how much a label counts is w s / pi (`sampling.overlap`): w the weight of its pair for the goal,
s how far assessors are expected to be apart, and pi the chance of the pair to be judged. In a round
that is drawn at once all of it follows from the design: what weighs much is returned high by many
runs, and people differ less over it, so that s falls with w (`CLEARER`). In an adaptive round a
batch is planned when those before it are judged, and so are its labels: pi is the chance to be
judged by the end of the round as it is foreseen then, and s is what the model expects that learned
from these batches. The pairs of a batch were in none of them, so that what decides how many labels
a pair gets is known before its first one; given that, labels are those of assessors at random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..sampling.designs import DesignError
from ..sampling.goals import effective_weights
from ..sampling.methods import MOST_FURTHER
from ..sampling.overlap import LabelPlan, plan_labels
from .adaptive.rounds import AdaptiveRound
from .adaptive.state import walk
from .rounds import PairRound

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from ..data.pool import Pool
    from ..sampling.designs import Design
    from .results import DrawnRound

CLEARER = 0.4
"""The power of its weight by which people are taken to differ less over a pair, before anything is
learned. With 0, further labels of P@10 did harm where all is judged (docs/decisions/0076)."""


def plan_of_round(
    pool: Pool, drawn: DrawnRound, *, labels: int, share: float, further: float, given: int = 0
) -> tuple[IntArray, LabelPlan]:
    """Plan the labels of the pairs of a round; of an adaptive one those of its last batch.

    Parameters
    ----------
    pool : Pool
    drawn : DrawnRound
        Of pairs without replacement, or adaptive, made for a sum of gains.
    labels, share, further
        As of `plan_labels`.
    given : int
        Of an adaptive round: labels beyond `labels` that its earlier batches asked for.

    Returns
    -------
    ndarray of int64, shape (n,)
        The pairs, ascending.
    LabelPlan
        Of these.

    Raises
    ------
    DesignError
        If the round is of another kind.
    ValueError
        As `plan_labels`.
    """
    asked = {"labels": labels, "share": share}
    if isinstance(drawn, PairRound) and not drawn.design.with_replacement:
        plan = plan_of_design(pool, drawn.design, further=further, **asked)  # type: ignore[arg-type]
        pairs = drawn.sample.pair
        return pairs, plan.of(pairs)
    if not isinstance(drawn, AdaptiveRound):
        raise DesignError(f"rounds of the method {drawn.method} have no further labels")
    _check_measure(drawn.design.design)
    frame, state = drawn.design.frame(pool), drawn.sample
    *_, last = walk(frame, state)
    foreseen = last.chances.by(last.ahead)
    before, ahead = int((state.batch < state.batches).sum()), float(foreseen.sum())
    left = (share + further) * (before + ahead) - given
    rate = left / ahead - share if ahead > 0.0 else 0.0
    rate = min(max(rate, 0.0), float(MOST_FURTHER)) if further > 0.0 else 0.0
    weights = frame.goal_weights(last.step.race)
    model = last.step.model
    far = _unlearned(weights) if model is None else weights * frame.spread_of_labels(model)
    plan = plan_labels(_counts(far, foreseen), foreseen, further=rate, **asked)  # type: ignore[arg-type]
    pairs = state.of_batch(last.number)
    return pairs, plan.of(frame.place(pairs))


def plan_of_design(
    pool: Pool, design: Design, *, labels: int, share: float, further: float
) -> LabelPlan:
    """Plan the labels of all pairs of a pool, if they are sampled by a design; as `plan_of_round`.

    Of an adaptive round these are the labels if nothing is learned.
    """
    return plan_of_distances(
        expected_distances(pool, design), design, labels=labels, share=share, further=further
    )


def expected_distances(pool: Pool, design: Design) -> FloatArray:
    """Return weights times how far labels of each pair are expected to be apart, (N,), in some
    unit: before anybody has judged, the same for every budget. DesignError as `plan_of_round`."""
    _check_measure(design)
    return _unlearned(effective_weights(pool, design.goal, design.measure))


def plan_of_distances(
    distances: FloatArray, design: Design, *, labels: int, share: float, further: float
) -> LabelPlan:
    """Return `plan_of_design`, given `expected_distances`."""
    chance = design.inclusion()
    counts = _counts(distances, chance)
    return plan_labels(counts, chance, labels=labels, share=share, further=further)


def _unlearned(weights: FloatArray) -> FloatArray:
    """Weights times how far labels are expected to be apart, where nobody has said anything."""
    return np.asarray(weights ** (1.0 - CLEARER))


def _counts(weights: FloatArray, chance: FloatArray) -> FloatArray:
    none = np.zeros_like(weights)
    return np.asarray(np.divide(weights, chance, out=none, where=chance > 0.0))


def _check_measure(design: Design) -> None:
    if design.measure.family != "gain":
        raise DesignError(
            f"further labels go where they pay for sums of gains, not {design.measure}"
        )
