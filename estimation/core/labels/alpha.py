"""Krippendorff's alpha: how much of the disagreement that chance would bring is not there.

With n_uc judgments of pair u for grade c and m_u of them in all, pairs with m_u >= 2 have the
coincidences

    o_ck = sum_u w_u n_uc (n_uk - [c = k]) / (m_u - 1),   n_c = sum_k o_ck,   n = sum_c n_c,

and alpha = 1 - (n - 1) sum_ck o_ck d_ck / sum_ck n_c n_k d_ck (Krippendorff 2019, chapter 12). The
distance d of two grades is 1 for any two that differ (nominal), (c - k)^2 (interval), or the square
of the judgments that lie from one to the other, the two themselves by half (ordinal).

One rater against all others, as a machine against people (`ratings.OneAgainstOthers`): only their
judgment x_u is held against those of the m_u others, each of these counted 1 / m_u, so that every
pair has two judgments, and what the others differ among themselves is no part of it:

    o_ck = sum_u w_u ([x_u = c] n_uk + n_uc [x_u = k]) / m_u.

With one other for each pair that is alpha of these two raters.

The weights w_u are 1 for agreement on just these pairs. With one over the chance with which each
was drawn, all o_ck estimate those of the whole pool without bias, and alpha, a ratio of them, with
a bias of the order of one over the number of pairs. They are scaled so that n stays the number of
judgments: it tells how much there is, and not what it stands for.

Intervals come from drawing the pairs again with replacement (Efron 1979), each with its weight and
all of its judgments: percentiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from ..arrays import check_confidence, column_sums
from ..estimates.agreement import Bounded
from .ratings import OneAgainstOthers, checked_weight

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from .ratings import Ratings

Metric: TypeAlias = Literal["nominal", "ordinal", "interval"]
METRICS: tuple[Metric, ...] = get_args(Metric)
FEW = 30
"""Pairs with two judgments or more, below which an alpha is not to be relied on."""
SKEWED = 0.9
"""Share of one grade from which on chance explains most of any agreement."""
DEGENERATE = 0.05
"""Share of the redrawn samples without two grades, above which no interval is told."""
RESAMPLES, UNITS = 1000, 2000
"""Redrawn samples, and of how many units at most each is drawn."""


@dataclass(frozen=True)
class Reliability:
    """Alpha with its interval by each metric, and what it rests on.

    Attributes
    ----------
    by_metric : dict of str to Bounded
        nan where all judgments are one grade, or no pair has two.
    pairs : int
        With two judgments or more.
    judgments : int
        Of these pairs; of one rater against others, those of the others.
    cautions : tuple of str
        Why it cannot be relied on yet: ``none`` (nothing to compare), ``constant`` (one grade
        only), ``few`` (below `FEW` pairs), ``skewed`` (one grade has `SKEWED` of the judgments,
        weighted).
    """

    by_metric: dict[str, Bounded]
    pairs: int
    judgments: int
    cautions: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Compared:
    """What is added up, of the pairs with something to compare that weigh anything.

    ``chosen``: which pairs these are. ``cells``, shape (n, G * G): what each adds to the
    coincidences. ``sizes``: of how many judgments. ``weight``: of each.
    """

    chosen: IntArray
    cells: FloatArray
    sizes: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, ratings: Ratings | OneAgainstOthers, weight: FloatArray | None) -> _Compared:
        given = checked_weight(weight, ratings.pairs)
        chosen = np.flatnonzero(ratings.several & (given > 0.0))
        counts = ratings.counts[chosen]
        if isinstance(ratings, OneAgainstOthers):
            return cls(chosen, *_crossed(ratings.grade[chosen], counts), given[chosen])
        return cls(chosen, *_contributions(counts), given[chosen])

    def table(self, some: IntArray | None = None) -> FloatArray:
        """Return the coincidences of all of these pairs, or of some."""
        if some is None:
            return _scaled(self.cells, self.sizes, self.weight)
        return _scaled(self.cells[some], self.sizes[some], self.weight[some])


def coincidences(
    counts: IntArray | OneAgainstOthers, weight: FloatArray | None = None
) -> FloatArray:
    """Return o, shape (G, G), of counts of grades by pair, shape (n, G); see the module."""
    if isinstance(counts, OneAgainstOthers):
        return _Compared.of(counts, weight).table()
    given = checked_weight(weight, len(counts))
    several = counts.sum(axis=1) >= 2
    cells, sizes = _contributions(counts[several])
    return _scaled(cells, sizes, given[several])


def alpha_of(table: FloatArray, metric: Metric) -> float:
    """Return alpha of coincidences; nan without two grades."""
    return float(_alphas(table[None], metric)[0])


def _alphas(tables: FloatArray, metric: Metric) -> FloatArray:
    """Return alpha of many tables, shape (B, G, G), at once."""
    margin = tables.sum(axis=2)
    total = margin.sum(axis=1)
    apart = distances(margin, metric)
    expected = (margin[:, :, None] * margin[:, None, :] * apart).sum(axis=(1, 2))
    found = (total - 1.0) * (tables * apart).sum(axis=(1, 2))
    nothing = np.full(len(tables), np.nan)
    known = (expected > 0.0) & (total > 1.0)
    return np.asarray(1.0 - np.divide(found, expected, out=nothing, where=known))


def distances(margin: FloatArray, metric: Metric) -> FloatArray:
    """Return the distance of every two grades, shape (..., G, G).

    `margin`, shape (..., G), says how often each is given.

    Raises
    ------
    ValueError
        If there is no such metric.
    """
    grade = np.arange(margin.shape[-1], dtype=np.float64)
    if metric == "nominal":
        return np.asarray((grade[:, None] != grade).astype(np.float64))
    if metric == "interval":
        return np.asarray((grade[:, None] - grade) ** 2)
    if metric != "ordinal":
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, not {metric!r}")
    middle = np.cumsum(margin, axis=-1) - margin / 2.0  # from the first grade to the midst of each
    return np.asarray((middle[..., :, None] - middle[..., None, :]) ** 2)


def reliability(
    ratings: Ratings | OneAgainstOthers,
    *,
    weight: FloatArray | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Reliability:
    """Work out alpha by every metric, with bootstrap intervals over pairs.

    It tells of judgments that were given, and changes none; which pairs have two judgments is
    decided by the draw, so that redrawing them is what another draw would do.

    Parameters
    ----------
    ratings : Ratings or OneAgainstOthers
    weight : ndarray of float64, shape (pairs,), optional
        At least 0; by default 1 each.
    confidence : float
    seed : int
        Of the redrawn samples: the same labels give the same interval.
    """
    check_confidence(confidence)
    found = _Compared.of(ratings, weight)
    table = found.table()
    drawn = _redrawn(found.cells, found.sizes, found.weight, seed)
    return Reliability(
        {metric: _bounded(table, drawn, metric, confidence) for metric in METRICS},
        len(found.chosen),
        int(ratings.counts[found.chosen].sum()),
        _cautions(table, len(found.chosen)),
    )


def alphas_by(
    ratings: Ratings | OneAgainstOthers,
    group: IntArray,
    *,
    groups: int,
    metric: Metric,
    weight: FloatArray | None = None,
) -> tuple[FloatArray, IntArray]:
    """Return alpha within every group of pairs, and how many pairs have something to compare there.

    Parameters
    ----------
    group : ndarray of int64, shape (pairs,)
        Of each pair, from 0 to `groups` - 1: its topic, or the batch that it came with.

    Returns
    -------
    alpha : ndarray of float64, shape (groups,)
        nan where nothing can be said.
    pairs : ndarray of int64, shape (groups,)
    """
    found = _Compared.of(ratings, weight)
    values, number = np.full(groups, np.nan), np.zeros(groups, dtype=np.int64)
    of_pairs = group[found.chosen]
    order = np.argsort(of_pairs, kind="stable")
    bounds = np.searchsorted(of_pairs[order], np.arange(groups + 1))
    for at in range(groups):
        inside = order[bounds[at] : bounds[at + 1]]
        number[at] = len(inside)
        if len(inside):
            values[at] = alpha_of(found.table(inside), metric)
    return values, number


@dataclass(frozen=True, eq=False)
class GradeReliability:
    """Of each grade, shape (G,): whether another rater says it too, and by how much more than luck.

    Attributes
    ----------
    again : ndarray of float64
        Share of judgments beside a judgment of this grade that are of it as well; nan where it was
        not given.
    alpha : ndarray of float64
        Of this grade against all others.
    table : ndarray of float64, shape (G, G)
        Of judgments beside one of the row's grade, the share of each grade; rows sum to 1 or are 0.
    """

    again: FloatArray
    alpha: FloatArray
    table: FloatArray


def by_grade(
    counts: IntArray | OneAgainstOthers, weight: FloatArray | None = None
) -> GradeReliability:
    """Work out which grades raters agree on, from counts of grades by pair, shape (n, G)."""
    table = coincidences(counts, weight)
    margin = table.sum(axis=1)
    shares = np.divide(table, margin[:, None], out=np.zeros_like(table), where=margin[:, None] > 0)
    again = np.where(margin > 0, np.diag(shares), np.nan)
    alphas = [alpha_of(_one_against_all(table, grade), "nominal") for grade in range(len(margin))]
    return GradeReliability(again, np.array(alphas), shares)


def _one_against_all(table: FloatArray, grade: int) -> FloatArray:
    own = table[grade, grade]
    beside = table[grade].sum() - own
    rest = table.sum() - own - 2.0 * beside
    return np.array([[own, beside], [beside, rest]])


def _contributions(counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return what each pair adds to the coincidences, shape (n, G * G), and its judgments, (n,)."""
    number = counts.sum(axis=1).astype(np.float64)
    each = counts.astype(np.float64)
    cells = each[:, :, None] * each[:, None, :]
    diagonal = np.arange(counts.shape[1])
    cells[:, diagonal, diagonal] -= each
    cells /= np.maximum(number - 1.0, 1.0)[:, None, None]
    return cells.reshape(len(counts), counts.shape[1] ** 2), number


def _crossed(grade: IntArray, counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the same of one rater's grades, shape (n,), against the others' counts alone."""
    share = counts / counts.sum(axis=1, keepdims=True)
    own = (grade[:, None] == np.arange(counts.shape[1])).astype(np.float64)
    cells = own[:, :, None] * share[:, None, :]
    cells += share[:, :, None] * own[:, None, :]
    return cells.reshape(len(counts), counts.shape[1] ** 2), np.full(len(counts), 2.0)


def _scaled(cells: FloatArray, sizes: FloatArray, weight: FloatArray) -> FloatArray:
    """Add up what pairs contribute, so that the sum stays the number of judgments."""
    side = round(cells.shape[1] ** 0.5)
    table = (cells * weight[:, None]).sum(axis=0)
    total, judgments = float(table.sum()), float(sizes[weight > 0.0].sum())
    return np.asarray(table.reshape(side, side) * (judgments / total if total > 0.0 else 0.0))


def _redrawn(cells: FloatArray, sizes: FloatArray, weight: FloatArray, seed: int) -> FloatArray:
    """Return coincidences of samples drawn from these pairs with replacement, shape (B, G, G).

    Pairs that were judged alike and weigh the same are drawn as one kind: the same distribution.
    More than `UNITS` kinds are dealt at random into so many hands of pairs, and hands are drawn:
    the sum of a hand of independent pairs varies as they do.
    """
    pairs, side = len(cells), round(cells.shape[1] ** 0.5)
    if pairs < 2:
        return np.zeros((0, side, side))
    random = np.random.default_rng(seed)
    whole = np.column_stack([cells * weight[:, None], sizes])
    kinds, number = np.unique(whole, axis=0, return_counts=True)
    if len(kinds) > UNITS:
        hand = random.permutation(pairs) % UNITS
        sums = [column_sums(hand, column, number=UNITS) for column in whole.T]
        kinds, number = np.stack(sums, axis=1), np.ones(UNITS, dtype=np.int64)
    units = int(number.sum())
    times = random.multinomial(units, number / units, size=RESAMPLES).astype(np.float64)
    sums = np.einsum("bu,ug->bg", times, kinds)  # in a fixed order, not by BLAS
    tables, judgments = sums[:, :-1], sums[:, -1:]
    total = tables.sum(axis=1, keepdims=True)
    scale = np.divide(judgments, total, out=np.zeros_like(total), where=total > 0.0)
    return np.asarray((tables * scale).reshape(RESAMPLES, side, side))


def _bounded(table: FloatArray, drawn: FloatArray, metric: Metric, confidence: float) -> Bounded:
    value = alpha_of(table, metric)
    found = _alphas(drawn, metric)
    known = found[np.isfinite(found)]
    if len(known) < max(1.0, (1.0 - DEGENERATE) * len(found)) or not np.isfinite(value):
        return Bounded(value, np.nan, np.nan)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(known, [tail, 1.0 - tail])
    return Bounded(value, float(low), float(high))


def _cautions(table: FloatArray, pairs: int) -> tuple[str, ...]:
    if not pairs:
        return ("none",)
    share = table.sum(axis=1) / table.sum()
    if np.count_nonzero(share) < 2:
        return ("constant",)
    found = ["few"] if pairs < FEW else []
    return (*found, "skewed") if share.max() >= SKEWED else tuple(found)
