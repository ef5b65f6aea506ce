"""Which uncertain pairs the expected variance is summed over, and what they add to each run.

All of them, as long as they are few. Where runs are deep, pairs that are chosen at random stand for
all, each for one over its chance: sums are then right on average, over the choice. Who is chosen
depends on the pool and the design alone, not on judgments, and hardly on how many batches are
judged, so that it is kept for the next one.

A pair adds to the variances of all runs that return it, so that those are right that share most of
what they return with others. Not so the difference of two runs that are nearly alike: it lies in
the few pairs in which they differ, and would be found to be certain if none of these was chosen.
These pairs are chosen with higher chances.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import (
    BoolArray,
    FloatArray,
    Indices,
    IntArray,
    SparseMatrix,
    array_digest,
    mixed_bits,
    share_of,
)
from ..data.entries import Entries, entries_down_to, last_rank, shares_of_squares
from ..data.kept import kept, nbytes
from ..estimates.held_products import Couples, few_runs
from ..estimates.products import cross_product, cross_products
from ..estimates.topic_sums import TopicSums
from .missed import Missed
from .uncertainty import MOSTLY

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from ..data.pool import Pool
    from ..estimates.drawn import Drawn
    from ..measures.table import Measure

# Where uncertain pairs have more entries that count, pairs with about so many stand for all.
MOST_ENTRIES, KEPT_ENTRIES = 350_000, 200_000
# Where they are fewer, those that some batch can draw are kept for all batches, if they have not
# many times as many; and how many bytes are kept with a pool.
HELD, MOST_KEPT, MOST_OF_SOME = 4, 90_000_000, 45_000_000
LIKELY = MOSTLY
MOST_NUMBERS = 64  # rounds and ranks of which it is kept how many these are
EVENLY = 0.2  # share of them that are chosen whatever they may add
ROUNDS = 4  # in which pairs that are sure to be looked at are set apart
# Variance of a difference over those of both values, below which runs are nearly alike; and how
# many more pairs are looked at for the sake of each two of them.
NEAR, FOR_EACH = 0.05, 200


@dataclass(frozen=True, eq=False)
class Rows:
    """What m pairs add to each run, one row a pair.

    Attributes
    ----------
    pair : ndarray of int64, shape (m,)
        In any order.
    weight : ndarray of float64, shape (m,)
        For how many pairs this one stands; 0 of pairs that are certain.
    entry : ndarray of int64 or int32, shape (e,)
        Entries of the pool.
    matrix : csr_array, shape (m, k)
    factor : ndarray of float64, shape (m,)
        What E[y_ij y_il] is multiplied by.
    couples : Couples or None
        The products of the last pairs, where they are kept.
    raised : dict
        The matrix turned round, (k, m), with each entry to a power, as it was asked for; shared
        by rows that differ in factors alone.
    """

    pool: Pool
    pair: IntArray
    weight: FloatArray
    entry: Indices
    matrix: SparseMatrix
    factor: FloatArray
    couples: Couples | None = None
    raised: dict[int, SparseMatrix] = field(default_factory=dict)

    @classmethod
    def of(
        cls, pool: Pool, measure: Measure, entries: Entries, pairs: IntArray, weight: FloatArray
    ) -> Rows:
        """The weights of some pairs, each for so many; the factors are 1."""
        entries = entries.of(pairs)
        table = pool.rank_weights(measure)
        weights = pool.entry_weights(measure) if table is None else table
        data = weights[entries.in_pool if table is None else entries.rank]
        shape = len(pairs), len(pool.runs)
        matrix = sparse.csr_array((data, entries.run, entries.ends.astype(np.int32)), shape=shape)
        return cls(pool, pairs, weight, entries.in_pool, matrix, np.ones(len(pairs)))

    @classmethod
    def to_keep(
        cls, pool: Pool, measure: Measure, entries: Entries, pairs: IntArray, weight: FloatArray
    ) -> Rows:
        """The same, pairs of many runs first, with the products of the others.

        Of few runs all are in their order, so that numbers of two runs have the same bits whatever
        the others return.
        """
        number = entries.number(pairs)
        many = number > few_runs(number)
        order = np.concatenate([np.flatnonzero(many), np.flatnonzero(~many)])
        rows = cls.of(pool, measure, entries, pairs[order], weight[order])
        return replace(rows, couples=Couples.of(rows.matrix, int(np.count_nonzero(many))))

    def coupled(self) -> Rows:
        """The same in that order with those products, for sums with many weights."""
        if self.couples is not None:
            return self
        number = np.diff(self.matrix.indptr)
        many = number > few_runs(number)
        order = np.concatenate([np.flatnonzero(many), np.flatnonzero(~many)])
        matrix = self.matrix[order]
        place = self.matrix.indices, self.matrix.indptr
        entry = sparse.csr_array((self.entry, *place), self.matrix.shape)[order].data
        couples = Couples.of(matrix, int(np.count_nonzero(many)))
        pair, weight, factor = self.pair[order], self.weight[order], self.factor[order]
        return Rows(self.pool, pair, weight, entry, matrix, factor, couples)

    @property
    def nbytes(self) -> int:
        """What they take in memory, about."""
        couples = 0 if self.couples is None else self.couples.nbytes
        return couples + (16 + 12 * len(self.raised)) * len(self.entry) + 24 * len(self.pair)

    def drawn(self, drawn: Drawn) -> Rows:
        """The same with the factors of a sample."""
        factor = drawn.factors(self.pair)
        weight = np.where(factor > 0.0, self.weight, 0.0)
        return replace(self, factor=factor * weight, weight=weight)

    def times(self, utility: FloatArray) -> Rows:
        """The same, each entry multiplied by a number."""
        place = self.matrix.indices, self.matrix.indptr
        matrix = sparse.csr_array((self.matrix.data * utility, *place), self.matrix.shape)
        return replace(self, matrix=matrix, couples=None, raised={})

    def by_run(self, power: int) -> SparseMatrix:
        """The matrix turned round, which sums take a third of the time from, with each entry to a
        power; NumPy takes ten times as long for that."""
        if power not in self.raised:
            self.raised[power] = self._by_run(power)
        return self.raised[power]

    def _by_run(self, power: int) -> SparseMatrix:
        if power == 1:
            return self.matrix.tocsc().T
        once, lower = self.by_run(1), self.by_run(power - 1)
        data = lower.data * once.data
        return sparse.csr_array((data, once.indices, once.indptr), once.shape)

    def sums(self, numbers: FloatArray, *, power: int = 1) -> FloatArray:
        """sum_i number_i y_ij^power, shape (k,), from numbers of shape (m,)."""
        return np.asarray(self.by_run(power) @ numbers, dtype=np.float64)

    def cubes(self, numbers: FloatArray) -> FloatArray:
        """sum_i factor_i number_i y_ij^3, shape (k,)."""
        return self.sums(self.factor * numbers, power=3)

    def total(self, numbers: FloatArray) -> FloatArray:
        """sum_i number_i y_ij over all pairs, shape (k,)."""
        return self.sums(self.weight * numbers)

    def gram(self, numbers: FloatArray) -> FloatArray:
        """sum_i factor_i number_i y_ij y_il, shape (k, k)."""
        return self.grams([self.factor * numbers])[0]

    def grams(self, weights: Sequence[FloatArray]) -> list[FloatArray]:
        """sum_i weight_i y_ij y_il for several weights of the m pairs, shape (k, k) each."""
        if (couples := self.couples) is None:
            return list(self._products(self.matrix, np.stack(weights)))
        of_many = self._products(couples.head, np.stack(weights)[:, : couples.first])
        return [many + couples.gram(each) for many, each in zip(of_many, weights, strict=True)]

    def _products(self, matrix: SparseMatrix, weights: FloatArray) -> FloatArray:
        """Of pairs that have a weight."""
        some = np.flatnonzero(np.add.reduce(weights, axis=0))
        if len(some) == matrix.shape[0]:
            return cross_products(matrix, weights)
        return cross_products(matrix[some], weights[:, some])

    def by_topic(self, numbers: FloatArray) -> FloatArray:
        """sum_i number_i y_ij over the pairs of each topic, shape (T, k)."""
        topic = self.pool.topic[self.pair].astype(np.int64)
        sums = TopicSums(self.matrix, topic, len(self.pool.topics))
        return sums.of(self.weight * numbers)


def looked_at(pool: Pool, drawn: Drawn, measure: Measure) -> Rows:
    """Return the uncertain pairs that have an entry which counts, or some that stand for them."""
    entries = entries_down_to(pool, last_rank(pool, measure))

    def keep(key: Hashable, work: Callable[[], Rows]) -> Rows:
        return kept(pool.kept, "rows", (measure, drawn.key, key), work, most=MOST_KEPT, size=nbytes)

    able = kept(
        pool.kept,
        "number of entries",
        (drawn.key, len(entries.run)),
        lambda: int(entries.numbers.sum(where=drawn.eligible)),
        most=MOST_NUMBERS,
    )
    uncertain = _uncertain_entries(drawn, entries, able)
    if uncertain > MOST_ENTRIES:
        constant = _constant(drawn)
        rows = keep(
            constant, lambda: _chosen(pool, measure, drawn.belief, _factor(drawn, constant))
        )
    elif able <= min(MOST_ENTRIES, HELD * uncertain):
        rows = keep("all", lambda: _held(pool, measure, entries, drawn))
    else:
        rows = _of_some(pool, measure, entries, drawn.varies(entries.counted))
    return rows.drawn(drawn)


def _of_some(pool: Pool, measure: Measure, entries: Entries, some: BoolArray) -> Rows:
    """Some of the pairs with an entry that counts, kept as the next batch may have the same."""

    def work() -> Rows:
        pairs = entries.counted[some]
        return Rows.to_keep(pool, measure, entries, pairs, np.ones(len(pairs)))

    key = measure, array_digest(np.packbits(some))
    return kept(pool.kept, "rows of some", key, work, most=MOST_OF_SOME, size=nbytes)


def _uncertain_entries(drawn: Drawn, entries: Entries, able: int) -> int:
    """How many of the entries are of pairs that are not certain, which of draws none is."""
    if drawn.counts is not None:
        return able
    return able - int(entries.number(drawn.certain).sum())


def _held(pool: Pool, measure: Measure, entries: Entries, drawn: Drawn) -> Rows:
    """All pairs that can be drawn and have an entry which counts."""
    pairs = entries.counted[drawn.eligible[entries.counted]]
    return Rows.to_keep(pool, measure, entries, pairs, np.ones(len(pairs)))


def _constant(drawn: Drawn) -> float | None:
    """The constant of Poisson's probabilities, down to a power of 2, so that some batches share it.

    None where nothing but the rate is needed, which all batches share, or where there is none.
    """
    if drawn.rate is None or drawn.counts is not None:
        return None
    first = int(next(iter(drawn.uncertain), 0))
    return float(2.0 ** np.floor(np.log2(drawn.inclusion[first] / drawn.rate[first])))


def _factor(drawn: Drawn, constant: float | None) -> FloatArray:
    """About what the sample's factors are in proportion to, whichever of its batches are drawn."""
    if drawn.rate is None:
        return drawn.factor
    chance = drawn.rate if constant is None else np.minimum(1.0, constant * drawn.rate)
    most = 0.0 if constant is None else 1.0
    return share_of(1.0 - most * chance, of=chance)


def _chosen(pool: Pool, measure: Measure, belief: FloatArray | None, factor: FloatArray) -> Rows:
    """Some of the pairs with a factor, which stand for all of them."""
    entries = entries_down_to(pool, last_rank(pool, measure))
    doubt = factor if belief is None else factor * belief
    pairs = entries.counted[factor[entries.counted] > 0.0]
    number = entries.number(pairs)
    added = doubt[pairs] * shares_of_squares(pool, measure)[pairs] / np.sqrt(number)
    share = (1.0 - EVENLY) * added / max(added.sum(), 1e-300) + EVENLY / len(pairs)
    chance = _with_sum(share, number, KEPT_ENTRIES)
    near = _near(Rows.of(pool, measure, entries, pairs, np.ones(len(pairs))), doubt)
    if len(near):
        more = _of_differences(pool, measure, entries, near, doubt)[pairs]
        chance = np.maximum(chance, np.minimum(1.0, FOR_EACH * more))
    chosen = (mixed_bits(pairs) >> np.uint64(11)).astype(np.float64) * 2.0**-53 < chance
    return Rows.to_keep(pool, measure, entries, pairs[chosen], 1.0 / chance[chosen])


def _with_sum(share: FloatArray, number: Indices, total: int) -> FloatArray:
    """Chances up to 1, in proportion to shares below, that add up to a total of numbers or less."""
    chance, certain = share, np.zeros(len(share), dtype=bool)
    for _ in range(ROUNDS):
        left = total - number[certain].sum()
        chance = np.where(certain, 1.0, share * (left / max(share @ (number * ~certain), 1e-300)))
        certain |= chance >= 1.0
    return np.minimum(chance, 1.0)


def _near(rows: Rows, doubt: FloatArray) -> IntArray:
    """Every two runs that differ in next to nothing of what is believed to be uncertain, (n, 2)."""
    products = cross_product(rows.matrix, doubt[rows.pair])
    single = np.diag(products)
    both = np.add.outer(single, single)
    near = np.triu((both - 2.0 * products < NEAR * both) & (both > 0.0), k=1)
    return np.argwhere(near)


def _of_differences(
    pool: Pool, measure: Measure, entries: Entries, near: IntArray, doubt: FloatArray
) -> FloatArray:
    """The share of each of the N pairs in what is uncertain of differences, added up over these."""
    squares = _squared_differences(pool, measure, entries, near)
    of_pairs = doubt[squares.indices] * squares.data
    column = np.repeat(np.arange(len(near)), np.diff(squares.indptr))
    total = np.bincount(column, of_pairs, len(near))
    np.divide(of_pairs, total[column], out=of_pairs, where=of_pairs > 0.0)
    return np.bincount(squares.indices, of_pairs, len(pool)).astype(np.float64)


def _squared_differences(
    pool: Pool, measure: Measure, entries: Entries, near: IntArray
) -> SparseMatrix:
    """(w_ij - w_il)^2 of N pairs for every two runs j and l, csc_array (N, n)."""
    runs, columns = np.unique(near, return_inverse=True)
    first, second = columns.reshape(near.shape).T
    table = pool.rank_weights(measure)
    weights = pool.entry_weights(measure)[entries.in_pool] if table is None else entries.rank
    place = entries.run, entries.ends.astype(sparse.get_index_dtype(maxval=len(entries.run)))
    rows = sparse.csr_array((weights, *place), shape=(len(pool), len(pool.runs)))[:, runs].tocsc()
    if table is not None:
        rows = sparse.csc_array((table[rows.data], rows.indices, rows.indptr), shape=rows.shape)
    differences = rows[:, first] - rows[:, second]
    differences.data **= 2
    return differences


def belief_in(rows: Rows, drawn: Drawn) -> FloatArray | None:
    """Return what the prior believed of each of the pairs; None without a prior."""
    return None if drawn.belief is None else drawn.belief[rows.pair]


def doubt_of(
    rows: Rows, drawn: Drawn, *, belief: FloatArray | None, total: FloatArray
) -> FloatArray:
    """Return `Unseen.doubt`: sqrt(sum_i factor_i b_i w_ij^2) over b sum_i w_ij, shape (k,).

    b_i is the `belief` in a pair, b that in the pairs of a sample.
    """
    squares = rows.sums(rows.factor * (1.0 if belief is None else belief), power=2)
    return share_of(np.sqrt(squares), of=drawn.usual_belief * total)


def missed_of(
    terms: Iterable[tuple[Rows, FloatArray]], squares: FloatArray, lost: FloatArray | None = None
) -> Missed:
    """Return what is expected to be missed of rows whose factors say how likely they are.

    With each, what is expected of the utility of its pairs, its square and its cube, shape (3, m),
    and `Missed.squares` of all; `Missed.lost`, where that is known.
    """
    terms = list(terms)
    parts = [
        (rows.sums(rows.factor * first), rows.cubes(third)) for rows, (first, _, third) in terms
    ]
    total, cubes = (sum(each[1:], start=each[0]) for each in zip(*parts, strict=True))
    return Missed(squares, np.sqrt(share_of(cubes, of=total)), _left(terms[0][0]), lost)


def _left(rows: Rows) -> FloatArray:
    """`Missed.left` of rows whose factors say for how many pairs that are not in the sample."""
    squares = rows.by_run(2)
    largest, some = np.zeros(squares.shape[0]), np.flatnonzero(np.diff(squares.indptr))
    largest[some] = np.maximum.reduceat(squares.data, squares.indptr[some])
    missed = rows.sums(rows.factor, power=2)
    sampled = rows.sums(rows.weight - rows.factor, power=2)
    return share_of(missed, of=np.maximum(sampled, 0.0) + largest)
