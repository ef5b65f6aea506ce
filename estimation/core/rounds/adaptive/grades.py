"""A model of grades that learns from judgments where relevant documents stand.

For each level g of the scale the chance that a judgment reaches it is logistic in what is known of
a pair before it is judged: how many runs return it, how high, and which; its topic; how many of its
neighbors were found to be relevant; how far down the finds of its topic go; and grades that
somebody predicted. All effects but the intercept are shrunk towards 0 (ridge regression), those of
topics and runs more, because there are many of them; those of topics the less, the more of each was
judged. In simulated rounds on three collections this told residuals better than the products of
`raking`, above all where much is judged.

Neighbors
    Documents that answer a topic alike are returned by the same runs at like ranks (van Rijsbergen
    1979, *Information Retrieval*, chapter 3, the cluster hypothesis). With pair i as a vector a_i
    of 1 / sqrt(rank) by run, of length 1, a judged pair l of its topic counts for it by a_i a_l,
    and the feature is the odds of the relevant ones,

        log (s_i + C r) / (n_i - s_i + C (1 - r)) - log r / (1 - r),
        n_i = sum_l a_i a_l,  s_i = sum_l a_i a_l v_l,  l != i judged before,

    v_l being the mean share of the judgments of l that reach a level, r the mean of all v_l. A
    judged pair does not count for itself, so that the model learns what others tell of it. Of a
    pair that was not judged it hangs on judgments of other pairs alone, as all of a plan does
    (`sampling`).

Decline
    Where a topic has few relevant documents they stand at the top of lists, with nothing below;
    where it has many they go on. So the same odds among all judged pairs of a topic, a_i a_l = 1,
    times how high the pair stands are a feature, too. Without it the model expects relevant
    documents far down in just those topics where one more would move a ratio most.

Where scores of runs are predictions, log-odds begin where these say (`scoring`). Where two
documents are compared, the features are those of `comparing`, as many.

Predictions enter as features, never as labels: what they are worth is learned. Useless ones would
have coefficients near 0 and not of 0, by chance, and chances of pairs would follow them: with 250
judgments that cost 1 to 3 % of the error. So predictions have coefficients only where these lower
twice the loss by more than `logistic.LEAST_TOLD` for each of their columns: as chance does on
average.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse, special

from ...arrays import (
    FloatArray,
    Int32Array,
    IntArray,
    SparseMatrix,
    array_digest,
    column_sums,
    frozen,
)
from ...data.pool_ranks import best_rank, number_of_runs
from .columns import (
    by_topic_and_run,
    numbers_of_predicted,
    reciprocal_ranks,
)
from .comparing import documents_of_two, numbers_of_two, told_by_comparisons
from .finds import Finds
from .logistic import LevelFits
from .scoring import Scores, fit_scores, standardized

if TYPE_CHECKING:
    from ...data.pool import Pool
    from .scoring import Scoring

RIDGE, TOPIC_RIDGE, RUN_RIDGE = 1.0, 2.0, 5.0
HALVED = 100.0  # judged pairs of a topic, on average, that halve the penalty of topics
FREE = 1e-3  # of the intercept
MOST_LEVELS = 5
MOST_FITTED = 8192  # judged pairs that a model is fitted to
LEAST_JUDGED, LEAST_FOUND = 12, 2  # before anything is learned
DECIMALS = 6  # of coefficients, so that no plan hangs on the last bits of a fit
LEAST_CHANCE = 1e-4
AS_USUAL = 5.0  # neighbors that count as if they were as all judged pairs are
HIGH = 2  # the column of how high a pair stands, in reciprocal ranks
OF_LISTS = 4  # columns that lists of runs tell, and 1; others are of predictions
OF_FINDS = 2  # features that tell what was found: neighbors and decline, the last of a model


def grade_levels(max_grade: int, *, most: int = MOST_LEVELS) -> IntArray:
    """Return the grades whose reach is modeled: all above 0, or some that are evenly spaced.

    >>> grade_levels(3).tolist(), grade_levels(10).tolist()
    ([1, 2, 3], [1, 3, 6, 8, 10])
    """
    number = min(max_grade, most)
    return np.unique(np.round(np.linspace(1, max_grade, number)).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Features:
    """What is known of pairs of a pool before anything is judged: of all N, or of n of them.

    Attributes
    ----------
    pool : Pool
    columns : ndarray of float64, shape (n, 1 + F)
        1, and F numbers with mean 0 and variance 1 over the pool.
    topic : ndarray of int32, shape (n,)
    runs : csr_array of int8, shape (n, k)
        1 where a run returns a pair.
    pair : ndarray of int64, shape (n,)
        Which pairs of the pool they are, ascending.
    likeness : csr_array of float32, shape (n, T k)
        1 / sqrt(rank) where a run returns a pair, rows of length 1. Runs have columns of their own
        in every topic, so that sums by topic are one product.
    documents : ndarray of int64, shape (n, 2), or None
        Which two are compared, in a pool of preferences: runs then have 1 where they rank the
        first above the second, else -1.
    scored : Scores or None
        The scores of runs, where these are predictions.
    """

    pool: Pool
    columns: FloatArray
    topic: Int32Array
    runs: SparseMatrix
    pair: IntArray
    likeness: SparseMatrix
    documents: IntArray | None = None
    scored: Scores | None = None

    @classmethod
    def of(
        cls, pool: Pool, predicted: FloatArray | None = None, *, scores: bool = False
    ) -> Features:
        """Return those of a pool; `predicted` has a column of grades, (N, S), NaN for none.

        With `scores` those of the runs are predictions.
        """
        one, reciprocal = np.ones(len(pool)), reciprocal_ranks(pool)
        of_two = pool.is_of_preferences
        numbers = numbers_of_two(pool) if of_two else _numbers(pool, reciprocal)
        for grades in () if predicted is None else predicted.T:
            numbers += numbers_of_predicted(grades)
        columns = frozen(np.stack([one, *map(standardized, numbers)], axis=1))
        said = pool.predictions if of_two else np.ones(len(pool.run))
        runs = pool.by_pair(said.astype(np.int8))
        of_entries = np.repeat(reciprocal, np.diff(pool.indptr))
        likeness = np.sqrt(1.0 / (pool.rank * of_entries)).astype(np.float32)
        every = np.arange(len(pool))
        alike = by_topic_and_run(pool, likeness)
        documents = frozen(documents_of_two(pool)) if of_two else None
        scored = Scores.of(pool) if scores else None
        return cls(pool, columns, pool.topic, runs, every, alike, documents, scored)

    def of_pairs(self, pairs: IntArray) -> Features:
        """Return those of n pairs, ascending."""
        if len(pairs) == len(self.topic):
            return self
        columns, topic = frozen(self.columns[pairs]), frozen(self.topic[pairs])
        documents = None if self.documents is None else frozen(self.documents[pairs])
        given = columns, topic, self.runs[pairs], frozen(pairs), self.likeness[pairs], documents
        return Features(self.pool, *given, self.scored and self.scored.of_pairs(pairs))

    @property
    def parameters(self) -> int:
        """Number of coefficients of a level, without those of what was found."""
        return int(self.columns.shape[1]) + len(self.pool.topics) + len(self.pool.runs)

    def ridge(self, judged: int) -> FloatArray:
        """By how much each coefficient is shrunk with n judged pairs, (parameters + OF_FINDS,)."""
        numbers, pool = self.columns.shape[1] - 1, self.pool
        of_topics = TOPIC_RIDGE / (1.0 + judged / (HALVED * len(pool.topics)))
        parts = [FREE], [RIDGE] * numbers, [of_topics] * len(pool.topics)
        return np.concatenate([*parts, [RUN_RIDGE] * len(pool.runs), [RIDGE] * OF_FINDS])

    def matrix(self) -> SparseMatrix:
        """Return all features but those of what was found, csr_array, (n, parameters)."""
        number = len(self.topic)
        place = self.topic, np.arange(number + 1)
        shape = number, len(self.pool.topics)
        of_topics = sparse.csr_array((np.ones(number), *place), shape=shape)
        return sparse.csr_array(
            sparse.hstack([sparse.csr_array(self.columns), of_topics, self.runs])
        )

    def scores(self, coefficients: FloatArray) -> FloatArray:
        """Return the linear predictor of each pair, shape (n,), sums taken in order."""
        first, topics = self.columns.shape[1], len(self.pool.topics)
        total = np.zeros(len(self.topic))
        for column, coefficient in zip(self.columns.T, coefficients[:first], strict=True):
            total += column * coefficient
        total += coefficients[first : first + topics][self.topic]
        total += self.runs @ coefficients[first + topics : self.parameters]
        return total

    def of_finds(self, finds: Finds) -> FloatArray:
        """Return what was found around each pair, shape (n, OF_FINDS), 0 where nothing was judged.

        Neighbors and decline. All judged pairs must be among the n pairs.
        """
        return self.of_finds_of(self, finds)

    def of_finds_of(self, some: Features, finds: Finds) -> FloatArray:
        """Return the same of some of the n pairs, shape (m, OF_FINDS)."""
        itself, judged = some._place(finds.judged)
        if self.documents is not None and some.documents is not None:
            of_judged = self.documents[self._place(finds.judged)[0]]
            return told_by_comparisons(some.documents, of_judged, itself, judged, finds)
        alike, all_of_topic = some.likeness @ self._sums(finds), self._by_topic(finds)[some.topic]
        for counted in (alike, all_of_topic):
            counted[itself] -= finds.both[judged]
        neighbors, topic = (_odds(counted, finds) for counted in (alike, all_of_topic))
        return np.stack([neighbors, topic * some.columns[:, HIGH]], axis=1)

    def _sums(self, finds: Finds) -> FloatArray:
        """Sums of `Finds.both` by topic and run, (T k, 2): the same for all features of a pool."""
        for pool, found in finds.sums:
            if pool is self.pool:
                return found
        at, _ = self._place(finds.judged)
        found = np.asarray(self.likeness[at].T @ finds.both, dtype=np.float64)
        finds.sums[:] = [(self.pool, found)]
        return found

    def _by_topic(self, finds: Finds) -> FloatArray:
        """Sums of `Finds.both` by topic, (T, 2)."""
        at, _ = self._place(finds.judged)
        number, topic = len(self.pool.topics), self.topic[at]
        return np.stack([column_sums(topic, each, number=number) for each in finds.both.T], axis=1)

    def _place(self, pairs: IntArray) -> tuple[IntArray, IntArray | slice]:
        """Where pairs of the pool, ascending, stand among the n, and which of them do."""
        if len(self.pair) == len(self.pool):
            return pairs, slice(None)
        place = np.minimum(np.searchsorted(self.pair, pairs), len(self.pair) - 1)
        own = np.flatnonzero(self.pair[place] == pairs)
        return place[own], own


def _odds(counted: FloatArray, finds: Finds) -> FloatArray:
    """The logarithm of the odds among counted judgments, (n, 2), over those among all, (n,)."""
    relevant, number = np.maximum(counted, 0.0).T
    rate = (finds.share.sum() + 0.5) / (len(finds.share) + 1.0)
    others = np.maximum(number - relevant, 0.0) + AS_USUAL * (1.0 - rate)
    return np.asarray(np.log((relevant + AS_USUAL * rate) / others) - special.logit(rate))


def _numbers(pool: Pool, reciprocal: FloatArray) -> list[FloatArray]:
    """How many runs return each pair, and how high."""
    return [
        np.log(np.maximum(number_of_runs(pool), 1)),
        np.log(np.maximum(reciprocal, 1e-9)),
        np.log(np.asarray(best_rank(pool), dtype=np.float64)),
    ]


@dataclass(frozen=True, eq=False)
class LearnedGrades:
    """Chances of every level: coefficients, (L, parameters + OF_FINDS); what they come from.

    Models of batches that were planned before one of these features was looked at have no
    coefficient of it. Without neighbors they keep what was found only where measures are ratios,
    whose sizes hang on it.
    """

    levels: IntArray
    coefficients: FloatArray
    found: Finds | None = None
    scoring: Scoring | None = None

    def reach(self, features: Features) -> FloatArray:
        """Return the expected share of judgments of each pair with at least each level, (L, n).

        Never rising from one level to the next. All judged pairs must be among the n pairs.
        """
        return self.reach_of(features, features)

    def reach_of(self, some: Features, among: Features) -> FloatArray:
        """Return the same of some of the n pairs."""
        told = self._told_by_finds(some, among)
        reached = np.zeros((len(self.levels), len(some.topic)))
        if self.scoring is not None and some.scored is not None:
            reached += self.scoring.log_odds(some.scored, self.levels)
        for level, coefficients in enumerate(self.coefficients):
            scores = some.scores(coefficients)
            for column, weight in zip(told.T, coefficients[some.parameters :], strict=False):
                scores += weight * column
            reached[level] = special.expit(scores + reached[level])
        np.clip(reached, LEAST_CHANCE, 1.0 - LEAST_CHANCE, out=reached)
        for lower, higher in pairwise(reached):
            np.minimum(lower, higher, out=higher)
        return reached

    @property
    def part(self) -> float:
        """The share of what it predicts of runs' utilities that estimates take off.

        All of preferences between documents; of errors of scores as far as it was found to be
        right (`trust`), and nothing where nobody looked, as the measure of the round is another.
        """
        return 0.0 if self.scoring is None else self.scoring.part

    @property
    def content(self) -> list[FloatArray | IntArray]:
        """All that it is."""
        found = self.found
        of_finds: list[FloatArray | IntArray] = []
        if found is not None:
            of_finds = [found.judged, found.pair, found.reach]
        of_scores = [] if self.scoring is None else [self.scoring.numbers]
        return [self.levels, self.coefficients, *of_finds, *of_scores]

    @property
    def digests(self) -> tuple[bytes, ...]:
        """What it is found by."""
        of_finds = () if self.found is None else self.found.digests
        of_scores = () if self.scoring is None else (array_digest(self.scoring.numbers),)
        own = array_digest(self.levels), array_digest(self.coefficients)
        return *own, *of_finds, *of_scores

    def knows_neighbors(self, features: Features) -> bool:
        """Whether it looks at neighbors."""
        return bool(self.coefficients.shape[1] > features.parameters)

    def _told_by_finds(self, some: Features, among: Features) -> FloatArray:
        """The features of what was found that have coefficients, (n, 0 to OF_FINDS)."""
        looked_at = self.coefficients.shape[1] - some.parameters
        if self.found is None or not looked_at:
            return np.zeros((len(some.topic), 0))
        return among.of_finds_of(some, self.found)[:, :looked_at]


def fit_grades(
    features: Features,
    pairs: IntArray,
    reached: FloatArray,
    *,
    levels: IntArray,
    before: LearnedGrades | None = None,
    as_before: bool = False,
) -> LearnedGrades | None:
    """Fit the model to judged pairs.

    Parameters
    ----------
    features : Features
    pairs : ndarray of int64, shape (n,)
    reached : ndarray of float64, shape (n, L)
        Share of the judgments of each pair that reach each level.
    levels : ndarray of int64, shape (L,)
    before : LearnedGrades, optional
        Of fewer judgments: where to begin, which saves time and moves nothing.
    as_before : bool
        Scores have a part if they had one then. Otherwise they have if the loss is less with it.

    Returns
    -------
    LearnedGrades or None
        None where there is too little to learn from: few judgments, or (nearly) all alike.
    """
    judged, found = len(pairs), float(reached[:, 0].sum()) if len(pairs) else 0.0
    if judged < LEAST_JUDGED or not LEAST_FOUND <= found <= judged - LEAST_FOUND:
        return None
    every = max(1, -(-judged // MOST_FITTED))
    some, finds = features.of_pairs(pairs[::every]), Finds.of(pairs, reached)
    told = sparse.csr_array(features.of_finds_of(some, finds))
    rows = sparse.csr_array(sparse.hstack([some.matrix(), told]))
    of_predictions = np.arange(OF_LISTS, features.columns.shape[1])
    asked = LevelFits(rows, reached[::every], features.ridge(judged), of_predictions)
    start = None if before is None else before.coefficients
    if some.scored is None:
        scoring, fitted = None, asked.fit(start).fitted
    else:
        grades = asked.reached @ np.diff(levels, prepend=0).astype(np.float64)
        told_by_scores = fit_scores(some.scored, grades, levels)
        earlier = None if before is None else before.scoring
        scoring, fitted = asked.fit_scored(*told_by_scores, start, earlier, as_told=as_before)
    coefficients = frozen(np.round(np.stack(fitted), DECIMALS))
    return LearnedGrades(levels, coefficients, finds, scoring)
