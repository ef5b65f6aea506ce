"""Adaptive rounds under measures whose utility depends on the run: preferences.

Of a grade g a pair i adds w_ij u_j(g) to run j, where u_j compares g with what the run says of the
pair. So a value is a sum over grades of sums of gains, the gain being [v_i = g] and the weight
w_ij u_j(g), and all that the martingale of `sampling` asks for is there: before batch b the model
says the share x_big of every grade, so that

    m_bij = sum_g x_big u_j(g)

is fixed as m_bi of a gain is, by judgments of other pairs. Estimates are those of `estimates` with
w_ij v_ij and w_ij m_bij in the place of w_ij v_i and w_ij m_bi, and as unbiased, whatever the model
says, and so are the squares that tell how far they are off. Before anything is learned m is 0 for
all runs, as of gains.

What a batch leaves open of a pair is no number but a covariance over runs, that of u_ij over the
grades. A pair's size is the root of what the goal makes of it (`frame`), and so is what is
expected that estimates miss: with the grades' shares s_ig of an outlook, and the mean m of what
batches predicted, each counted as in `estimates`,

    f_i sum_g s_ig (u_j(g) - m_ij) (u_l(g) - m_il),

where f_i is sum_b A_b^2 (1 - p_b) / p_b, raised by how far the batches' predictions were from their
mean, as the squared distance of x_b from the grade tells it. Batches that predicted nothing of the
errors of scores are told apart from the others: what they miss are gains alone, and all of them. It
is no part of any estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ...arrays import column_sums, share_of
from ...data.pool_ranks import total_weights
from ...estimates.estimators import contributions_and_products, finds_up_to
from ...estimates.terms import linear_terms
from ...estimates.topic_sums import TopicSums
from ...estimates.totals import DifferenceEstimate
from ...inference.knowledge import LEAST_FINDS
from ...inference.looked_at import LIKELY, belief_in, doubt_of, looked_at, missed_of
from ...inference.uncertainty import Losses, Unseen, level
from .error_parts import moved_alone, parts_of_error
from .run_utilities import added_by_grade, expected_entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...arrays import BoolArray, FloatArray, IntArray, SparseMatrix
    from ...data.labels import LabelRows
    from ...data.scope import Scope
    from ...estimates.drawn import Drawn
    from ...estimates.terms import Terms
    from ...inference.looked_at import Rows
    from ...inference.outlook import Outlook
    from ...measures.table import Measure
    from .batch_weights import BatchWeights
    from .frame import AdaptiveFrame


@dataclass(frozen=True, eq=False)
class ByRun:
    """What the batches of a round say of the runs of a scope, under such a measure.

    Attributes
    ----------
    frame, scope : AdaptiveFrame, Scope
    weights : BatchWeights
        With `BatchWeights.by_grade`.
    measure : Measure
        Its utility depends on the run.
    pairs : ndarray of int64, shape (n,)
        The judged pairs of the sampled pool, ascending.
    rows : LabelRows
        Of these; `pair` counts positions among them.
    """

    frame: AdaptiveFrame
    scope: Scope
    weights: BatchWeights
    measure: Measure
    pairs: IntArray
    rows: LabelRows

    @cached_property
    def terms(self) -> Terms:
        """What judged pairs add to each run, w_ij v_ij."""
        place = self.scope.places(self.pairs)
        return linear_terms(self.scope.pool, self.measure, pairs=place, rows=self.rows)

    @cached_property
    def by_grade(self) -> list[FloatArray]:
        """w_ij u_j of each grade, (E,) each."""
        return added_by_grade(self.scope.pool, self.measure, self.frame.levels)

    @cached_property
    def _predicted(self) -> FloatArray:
        """What the batch in which a judged pair was judged had predicted of it, by entry of these:
        w_ij m_ij."""
        pool, at_batch = self.scope.pool, self.weights.by_grade[1][:, self.pairs]
        entry, number = pool.entries_of(self.scope.places(self.pairs))
        found = np.zeros(len(entry))
        for added, share in zip(self.by_grade, at_batch, strict=True):
            found += added[entry] * np.repeat(share, number)
        return found

    @cached_property
    def missed(self) -> SparseMatrix:
        """w_ij (v_ij - m_ij) of judged pairs, (n, k)."""
        return self._with(self.terms.weights.data - self._predicted)

    def _with(self, data: FloatArray) -> SparseMatrix:
        """Numbers of the judged pairs' entries, in their places."""
        same = self.terms.weights
        return sparse.csr_array((data, same.indices, same.indptr), shape=same.shape)

    def _of_entries(self, numbers: FloatArray) -> FloatArray:
        """Numbers of the judged pairs for each of their entries."""
        return np.repeat(numbers, np.diff(self.terms.weights.indptr))

    def estimate(self) -> DifferenceEstimate:
        """Estimate the values of the runs; see `estimates.estimate_totals`."""
        pool, judged, terms = self.scope.pool, self.weights.of_judged(self.pairs), self.terms
        told = self._of_entries(judged.on_label) * terms.weights.data
        corrected = self._with(told - self._of_entries(judged.on_find) * self._predicted)
        topic = pool.topic[self.scope.places(self.pairs)].astype(np.int64)
        sums = TopicSums(corrected, topic, len(pool.topics))
        by_topic = self._predicted_totals() + sums.of(np.ones(len(self.pairs)))
        parts, squares = self.missed, moved_alone(judged, judged.on_find) ** 2
        if not judged.all_open:
            given = self.scope, self.weights, self.pairs
            parts, _ = parts_of_error(*given, self.missed, judged.on_find)
            squares = np.ones(parts.shape[0])
        contributions, covariance = contributions_and_products(parts, squares)
        noise, likely = terms.noise_of_runs(judged.on_noise)
        uncertain = self._with(
            self.missed.data * self._of_entries(np.where(judged.chance < 1.0, judged.on_find, 0.0))
        )
        once = np.ones(len(self.pairs))
        return DifferenceEstimate(
            value=by_topic.sum(axis=0),
            covariance=covariance + noise,
            contributions=contributions,
            noise=noise,
            sure=np.zeros(len(pool.runs)),
            by_topic=by_topic,
            expected=np.zeros(0),
            gains=uncertain.maximum(0.0).T @ once,
            losses=(-uncertain).maximum(0.0).T @ once,
            finds=finds_up_to(LEAST_FINDS, terms.weights, judged.on_label**2),
            noise_by_grades=likely,
        )

    def _predicted_totals(self) -> FloatArray:
        """What values would be if each pair had what batches predicted, by topic, (T, k)."""
        pool, shares = self.scope.pool, map(self.scope.spread, self.weights.by_grade[0])
        entries = expected_entries(pool, self.by_grade, np.stack(list(shares)))
        runs, topics = len(pool.runs), len(pool.topics)
        return column_sums(pool.entry_cell, entries, number=runs * topics).reshape(topics, runs)

    def unseen(self, outlook: Outlook, planned: Drawn) -> Unseen:
        """Work out what is expected of the pairs that could have been missed.

        Parameters
        ----------
        outlook : Outlook
            Of the pairs of the sampled pool.
        planned : Drawn
            What the design alone would have drawn of the scope's pairs, as for
            `answers.unseen_of_batches`.
        """
        pool, weights = self.scope.pool, self.weights
        rows = looked_at(pool, planned, self.measure)
        belief = belief_in(rows, planned)
        doubt = doubt_of(rows, planned, belief=belief, total=total_weights(pool, self.measure))
        origin = self.scope.origin[rows.pair]
        known, pairs = origin >= 0, np.maximum(origin, 0)
        rows = replace(rows, factor=rows.weight * known)
        expected = _Expected.of(self, outlook, rows, pairs)
        open_pairs = known & (weights.on_label[pairs] == 0.0)
        mostly_open = not np.any(known) or np.mean(open_pairs[known]) > 1.0 - LIKELY
        found = _Sums(len(pool.runs))
        left = None if mostly_open else replace(rows, factor=rows.weight * open_pairs)
        counted = _Counted.of(weights, pairs)
        for grade in expected.grades():
            found.add(rows, grade, counted, left)
        return found.unseen(doubt, left)

    def level(self, covariance: FloatArray, runs: BoolArray) -> float:
        """Return by how much all that is expected is to be multiplied; see `outlooks`.

        Parameters
        ----------
        covariance : ndarray of float64, shape (k, k)
            What is expected of the scope's runs.
        runs : ndarray of bool, shape (k,)
            Those of the goal.
        """
        judged, expected = self.weights.of_judged(self.pairs), covariance[np.ix_(runs, runs)]
        missed, total = self.missed[:, np.flatnonzero(runs)], float(np.trace(expected))
        ones = np.ones(missed.shape[1])
        counted = judged.on_find**2 * (1.0 - judged.chance)
        values = missed.power(2) @ ones
        apart = np.maximum(values - (missed @ ones) ** 2 / len(ones), 0.0)
        of_means = max(total - float(expected.sum()) / len(ones), 0.0)
        return max(level(counted * values, total), level(counted * apart, of_means))


@dataclass(frozen=True, eq=False)
class _OfGrade:
    """A grade of the outlook: its share of each pair, (m,), by how much it counts in squares, and
    rows of utilities and of how far these are from what was predicted."""

    share: FloatArray
    squares: FloatArray
    utility: Rows
    apart: Rows


@dataclass(frozen=True, eq=False)
class _Expected:
    """What is expected of m pairs.

    Attributes
    ----------
    shares : ndarray of float64, shape (G, m)
        Of the grades of the outlook.
    factor : ndarray of float64, shape (m,)
        f_i of the module's text.
    predicted : ndarray of float64, shape (e,)
        m_ij of each entry, without the weight.
    """

    measure: Measure
    outlook: Outlook
    rows: Rows
    shares: FloatArray
    factor: FloatArray
    predicted: FloatArray

    @classmethod
    def of(cls, told: ByRun, outlook: Outlook, rows: Rows, pairs: IntArray) -> _Expected:
        shares, weights = outlook.shares(pairs), told.weights
        spread, summed = _Counted.of(weights, pairs).spread, weights.by_grade[2][:, pairs]
        mean = share_of(summed, of=np.broadcast_to(spread, summed.shape))
        place = np.searchsorted(told.frame.levels, outlook.grades, side="right")
        itself = np.zeros(len(pairs))
        both = np.zeros(len(pairs))
        for at, share in zip(place.tolist(), shares, strict=True):
            itself += share * mean[at]
            both += share * summed[at]
        exact = np.maximum(spread - 2.0 * both + weights.apart[pairs], 0.0)
        of_mean = np.maximum(1.0 - 2.0 * itself + (mean**2).sum(axis=0), 0.0)
        factor = np.where(of_mean > 0.0, share_of(exact, of=of_mean), spread)
        number = np.diff(rows.matrix.indptr)
        weight = told.scope.pool.entry_weights(told.measure)[rows.entry]
        predicted = np.zeros(len(rows.entry))
        for added, share in zip(told.by_grade, mean, strict=True):
            predicted += share_of(added[rows.entry], of=weight) * np.repeat(share, number)
        return cls(told.measure, outlook, rows, shares, factor, predicted)

    def grades(self) -> Iterator[_OfGrade]:
        """Go through the grades of the outlook."""
        pool, entry = self.rows.pool, self.rows.entry
        for grade, share in zip(self.outlook.grades.tolist(), self.shares, strict=True):
            utility = pool.entry_utilities(self.measure, grade)[entry]
            apart = self.rows.times(utility - self.predicted)
            yield _OfGrade(share, share * self.factor, self.rows.times(utility), apart)


@dataclass(frozen=True, eq=False)
class _Counted:
    """What m pairs count for in batches that predicted something of them, (m,) each; and in those
    that did not: the same three, (3, m)."""

    spread: FloatArray
    once: FloatArray
    cubes: FloatArray
    untold: FloatArray | None

    @classmethod
    def of(cls, weights: BatchWeights, pairs: IntArray) -> _Counted:
        every = np.stack([each[pairs] for each in (weights.spread, weights.once, weights.cubes)])
        if not weights.untold.size:
            return cls(every[0], every[1], every[2], None)
        untold = weights.untold[:, 0, pairs]
        spread, once, cubes = np.maximum(every - untold, 0.0)
        return cls(spread, once, cubes, untold)


class _Sums:
    """Sums over the grades of an outlook of what is expected of k runs."""

    def __init__(self, runs: int) -> None:
        self._covariance, self._of_left = np.zeros((2, runs, runs))
        self._mean, self._squares, self._cubes = np.zeros((3, 2, runs))
        self._usual = np.zeros(runs)
        self._better: list[tuple[Rows, FloatArray]] = []

    def add(self, rows: Rows, grade: _OfGrade, counted: _Counted, left: Rows | None) -> None:
        """Add a grade; `left` are the rows by how likely pairs are not judged, where that is told.

        Gains and losses are counted from the mean of what batches predicted of the pair.
        """
        self._covariance += grade.apart.gram(grade.squares)
        self._usual += grade.utility.sums(rows.factor * grade.share)
        for side, sign in enumerate((1.0, -1.0)):
            one = _one_side(grade.apart, sign)
            self._mean[side] += one.sums(rows.factor * counted.once * grade.share)
            self._squares[side] += one.sums(rows.factor * grade.squares, power=2)
            self._cubes[side] += one.cubes(counted.cubes * grade.share)
        if counted.untold is not None:
            spread, once, cubes = counted.untold * grade.share
            self._covariance += grade.utility.gram(spread)
            self._mean[0] += grade.utility.sums(rows.factor * once)
            self._squares[0] += grade.utility.sums(rows.factor * spread, power=2)
            self._cubes[0] += grade.utility.cubes(cubes)
        if left is not None:
            self._of_left += replace(grade.apart, factor=left.factor).gram(grade.share)
            better = replace(_one_side(grade.apart, 1.0), factor=left.factor)
            self._better.append((better, np.broadcast_to(grade.share, (3, len(grade.share)))))

    def unseen(self, doubt: FloatArray, left: Rows | None) -> Unseen:
        """Put them together."""
        (gains, losses), (find, loss) = self._squares, np.sqrt(share_of(self._cubes, of=self._mean))
        missed = None
        if left is not None:
            nothing = left, np.zeros((3, len(left.pair)))  # by which it is told how many are left
            missed = missed_of([nothing, *self._better], self._of_left)
        lost = Losses(loss, share_of(losses, of=gains + losses))
        return Unseen(self._covariance, find, doubt, lost, missed, self._usual)


def _one_side(rows: Rows, sign: float) -> Rows:
    """The part of each entry that lies above 0, or below, without its sign."""
    data = np.maximum(sign * rows.matrix.data, 0.0)
    place = rows.matrix.indices, rows.matrix.indptr
    matrix = sparse.csr_array((data, *place), shape=rows.matrix.shape)
    return replace(rows, matrix=matrix, couples=None, raised={})
