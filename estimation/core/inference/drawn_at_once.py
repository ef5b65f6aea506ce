"""Ratios to the second order from samples drawn at once, of which denominators are hardly known.

The expansion of `second_order` serves them, too, what a pair adds by surprise being 1/pi of its
label. It matters where relevant documents are scattered below the top: most topics have none of
them in the sample and few have one that counts for very many, ratios of estimates are far too high,
and no series of *their* errors converges; this one goes by what the model is wrong about.
(Cranfield, 3 %
of all other documents relevant, 8 000 pairs: AP told .28 for .14, no run covered.) But what is
expected knows no topics there, and may be wrong about all alike (TREC-8, AP, 5 %: .024 too low,
where values are right), so that all runs are followed together or none is: where the mean of the
squares is beyond `SURE_OF_ALL` standard errors and `NOTABLE_OF_ALL` of the values, wholly from a
`RAMP` more; and what is not followed is not believed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..estimates.ratio_labels import by_levels
from ..estimates.ratio_lines import Tangent
from ..estimates.ratio_moments import RatioNoise
from . import second_order
from .ratio_outlook import levels_of
from .second_order import SecondMoments, to_second_order

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from ..data.labels import LabelRows
    from ..estimates.drawn import Drawn
    from ..estimates.ratio_labels import RatioEstimate
    from ..measures.table import Measure
    from .outlook import Outlook
    from .ratio_outlook import AtOutlook

SURE_OF_ALL, NOTABLE_OF_ALL, RAMP = 3.5, 1.0, 0.25
LEAST_VARIANCE = 0.02  # relative, of the denominators of topics, mean


def of_sample(
    at: AtOutlook, measure: Measure, outlook: Outlook, *, drawn: Drawn, rows: LabelRows
) -> FloatArray | None:
    """Return what a sample drawn at once says of ratios over T to the second order, (T, k).

    Less what disagreement moves them by, as ratios of estimates are.

    None where denominators are known so well that ratios of estimates say it, of draws by topic,
    whose pairs are not as good as independent, and where nothing was found.

    Parameters
    ----------
    at : AtOutlook
    measure, outlook : Measure, Outlook
        Those of `at`.
    drawn : Drawn
    rows : LabelRows
        Judgments of the drawn pairs, `pair` counting positions in `drawn.pair`.
    """
    levels, gain = levels_of(measure, outlook)
    labels = by_levels(rows, len(drawn.pair), gain, outlook.grades[1:][levels])
    known = at.relative_variance.mean() < LEAST_VARIANCE
    if known or drawn.stratum is not None or not labels.reach.any():
        return None
    frame, inclusion = at.tangent.frame, drawn.inclusion[drawn.pair]
    reach, estimated = frame.gains.reach.copy(), np.zeros_like(frame.gains.reach)
    reach[:, drawn.pair] = labels.reach
    estimated[:, drawn.pair] = missed = labels.reach / inclusion
    tangent = Tangent.of(replace(frame, gains=replace(frame.gains, reach=reach)), measure)
    found = SecondMoments.of(
        tangent, drawn.pair, missed=missed, reached=labels.reach, uncertain=1.0 - inclusion
    )
    noise = RatioNoise.of(tangent, labels, rows, drawn.pair, 1.0 / inclusion)
    return to_second_order(measure, tangent, estimated, found) - noise.bias(measure)


def share_followed(
    found: RatioEstimate, further: FloatArray, runs: IntArray | None = None
) -> float:
    """How far all runs follow the second order of ratios over T, (T, k), between 0 and 1.

    By the means of squares and variances over some runs, those of the round: values of runs do not
    hang on who else is asked for.
    """
    if len(further) < second_order.LEAST_TOPICS:
        return 0.0
    columns = slice(None) if runs is None else runs
    off = (further - found.by_topic)[:, columns]
    squares, chance = second_order.sums_told(off)
    square, spread = float(squares.mean()), float(np.diag(chance).mean())
    variance = np.maximum(np.diag(found.estimate.covariance), 0.0)[columns]
    least = max(SURE_OF_ALL**2 * spread, NOTABLE_OF_ALL**2 * float(variance.mean()))
    if square <= least:
        return 0.0
    beyond = np.sqrt(square / least) - 1.0 if least > 0.0 else RAMP
    return float(min(beyond / RAMP, 1.0) * (1.0 - spread / square))


def following(found: RatioEstimate, further: FloatArray, share: float) -> RatioEstimate:
    """What a sample drawn at once says of ratios if it follows their second order, (T, k), so far.

    What is not followed is not believed, and of the rest intervals allow for as much.
    """
    if not share:
        return found
    off = further - found.by_topic
    _, chance = second_order.sums_told(off)
    shares = np.full(off.shape[1], share)
    rest = second_order.rest_of(off.sum(axis=0), chance, shares, shares)
    by_topic = found.by_topic + share * off
    return replace(
        found,
        estimate=replace(found.estimate, value=by_topic.sum(axis=0)),
        by_topic=by_topic,
        bias=found.bias - rest.taken,
        rest=rest,
    )
