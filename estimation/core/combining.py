"""One estimate from several rounds over the same pool.

Draws with replacement
    The balance heuristic (Schnabel et al. 2016, eq. 5): every draw is weighted by the mean
    probability of all rounds, Qbar_i = sum_b n_b Q_b(i) / n, whichever round it came from. A pair
    that one round hardly ever draws and another often then has no huge weight.
Poisson
    The union of the samples is one Poisson sample. With the same permanent random numbers a pair
    is in it when it is in the most generous round, pi_i = max_b pi_b,i; with numbers of their own
    pi_i = 1 - prod_b (1 - pi_b,i).

Both are unbiased if no round's design depends on the labels of another. A round that is designed
after a look at earlier labels, or made because an interval was still too wide, is not covered.
Priority samples are left out: the threshold of each depends on its own pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray
from estimation.core.designs import Design
from estimation.core.drawn import Drawn
from estimation.core.draws import Sample
from estimation.core.evaluation import Evaluation, check_question, evaluate_drawn
from estimation.core.interval_kinds import IntervalKind
from estimation.core.labels import LabelRows, select_rows
from estimation.core.measures import PREFERENCE_MAX_GRADE, Measure
from estimation.core.methods import SAMPLING_METHODS, check_interval, draws_again, with_option
from estimation.core.outlook import Outlook
from estimation.core.pool import Pool


class CombiningError(ValueError):
    """Rounds that cannot be estimated from together; the message names the round."""


@dataclass(frozen=True, eq=False)
class Part:
    """A round, or its first batches.

    Attributes
    ----------
    design, sample : Design, Sample
    batches : int or None
        Complete batches from the first; None: all.
    numbers : str
        The seed that it was drawn with, or any other name of its random numbers: parts with the
        same name share them. Empty: no other part has them.
    """

    design: Design
    sample: Sample
    batches: int | None = None
    numbers: str = ""

    @property
    def used(self) -> int:
        """The number of batches."""
        return self.design.batches if self.batches is None else self.batches


def evaluate_together(
    pool: Pool,
    parts: Sequence[Part],
    *,
    labels: LabelRows,
    measures: Sequence[Measure],
    max_grade: int,
    confidence: float = 0.95,
    interval: IntervalKind = "student",
    outlook: Outlook | None = None,
) -> Evaluation:
    """Estimate every measure for every run from several rounds.

    Parameters
    ----------
    pool : Pool
    parts : sequence of Part
        All with the method ``iid``, or all with ``poisson``.
    labels : LabelRows
        Judgments of the drawn pairs. A pair that several rounds drew has the same judgments in
        all of them.
    measures : sequence of Measure
        No ratio measures with ``iid``.
    max_grade : int
        The best grade of the scale.
    confidence : float
    interval : IntervalKind
        As for `evaluate`, but not ``empirical-bernstein``: draws of different rounds are not
        alike.
    outlook : Outlook, optional
        As for `evaluate`.

    Raises
    ------
    CombiningError
        If there is no part, the methods differ or allow no combination, a part belongs to another
        pool, or parts by ``iid`` share their random numbers: their draws are then the same.
    ValueError
        If the method does not allow the interval.
    LabelError
        If a drawn pair has no judgment.
    """
    check_question(measures, max_grade, confidence)
    drawn = drawn_together(pool, parts)
    ratios = SAMPLING_METHODS[parts[0].design.method].refused_together(measures)
    if ratios:
        several = "cannot be estimated from several rounds of draws"
        raise CombiningError(f"ratio measures {several}: {ratios[0]}")
    _check_kind(interval, parts[0].design.method)
    best = PREFERENCE_MAX_GRADE if pool.is_of_preferences else max_grade
    rows = select_rows(labels, sampled=drawn.pair, prefix=drawn.pair, max_grade=best, pool=pool)
    return evaluate_drawn(
        pool,
        drawn,
        rows=rows,
        measures=measures,
        max_grade=best,
        batches=sum(part.used for part in parts),
        confidence=confidence,
        interval=interval,
        outlook=outlook,
    )


def drawn_together(pool: Pool, parts: Sequence[Part]) -> Drawn:
    """Return what several rounds drew, with the probabilities of all of them together."""
    _check_parts(pool, parts)
    singles = [Drawn.of(pool, part.design, part.sample, part.used) for part in parts]
    pair = np.unique(np.concatenate([each.pair for each in singles]))
    inclusion = _inclusion(parts, singles)
    belief = _belief(singles)
    if singles[0].counts is None:
        return Drawn(pair, inclusion, inclusion, inclusion[pair], belief=belief)
    expected = np.sum([each.expected for each in singles], axis=0)
    mean = expected / sum(each.draws or 0 for each in singles)
    row = np.concatenate([np.searchsorted(pair, each.pair) for each in singles])
    return Drawn(
        pair=pair,
        inclusion=inclusion,
        expected=expected,
        probability=mean[pair][row],
        counts=np.concatenate([each.counts for each in singles if each.counts is not None]),
        stratum=np.repeat(np.arange(len(singles)), [len(each.pair) for each in singles]),
        row=row,
        belief=belief,
    )


def _belief(singles: Sequence[Drawn]) -> FloatArray | None:
    """The mean of what the parts believed of every pair; None unless all of them tell."""
    told = [each.belief for each in singles if each.belief is not None]
    return np.asarray(np.mean(told, axis=0)) if len(told) == len(singles) else None


def _check_kind(interval: IntervalKind, method: str) -> None:
    check_interval(interval, method=method)
    allowed = SAMPLING_METHODS[method].intervals_together
    if interval not in allowed:
        others = ", ".join(allowed)
        raise ValueError(
            f"interval must be one of {others} for several rounds, whose draws are not alike, "
            f"not {interval!r}"
        )


def _inclusion(parts: Sequence[Part], singles: Sequence[Drawn]) -> FloatArray:
    """Of the union: the most generous of the parts that share their numbers, the others apart.

    Exactly 0 where no part can draw a pair, and exactly what it is where only one can.
    """
    by_numbers: dict[str, FloatArray] = {}
    for place, (part, single) in enumerate(zip(parts, singles, strict=True)):
        name = f"seed {part.numbers}" if part.numbers else f"part {place}"
        before = by_numbers.get(name, single.inclusion)
        by_numbers[name] = np.maximum(before, single.inclusion)
    first, *others = by_numbers.values()
    inclusion = first
    for other in others:
        inclusion = inclusion + (1.0 - inclusion) * other
    return inclusion


def _check_parts(pool: Pool, parts: Sequence[Part]) -> None:
    if not parts:
        raise CombiningError("parts must hold at least one round")
    methods = [part.design.method for part in parts]
    for number, (part, method) in enumerate(zip(parts, methods, strict=True)):
        if method not in with_option("with_earlier"):
            allowed = " or ".join(with_option("with_earlier"))
            raise CombiningError(f"parts[{number}] is drawn by {method!r}, not by {allowed}")
        if method != methods[0]:
            raise CombiningError(
                f"parts[{number}] is drawn by {method!r}, parts[0] by {methods[0]!r}"
            )
        if not pool.digest == part.design.pool_digest == part.sample.pool_digest:
            raise CombiningError(f"parts[{number}] belongs to another pool")
        shared = part.numbers and part.numbers in [each.numbers for each in parts[:number]]
        if shared and draws_again(method):
            raise CombiningError(f"parts[{number}] has the same draws as another part: one seed")
