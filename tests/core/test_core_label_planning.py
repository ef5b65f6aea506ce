"""Variances with other numbers of labels: exact on tiny pools, brute force on crowd votes."""

import gzip
import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, sparse

from estimation.core.data.labels import PairLabels
from estimation.core.estimates.estimators import importance_sampling
from estimation.core.planning import label_advice
from estimation.core.planning.label_advice import (
    BISECTIONS,
    JudgedSample,
    _bisected,
    predicted_variances,
)
from tests.core.length import bounded

EXACT = {"rel": 1e-12, "abs": 1e-12}
WEIGHTS = np.array([[0.5, 0.2], [0.3, 0.3], [0.1, 0.6]])
INCLUSION = np.array([0.25, 1.0, 0.6])
CHANCE = np.array([0.2, 0.5, 0.3])
UTILITY = np.array([[0.0, 3.0], [1.0, 7.0], [0.0, 1.0]])  # what two kinds of assessors say
SHARE = np.array([0.3, 0.5, 0.8])  # of the second kind
MEAN = (1 - SHARE) * UTILITY[:, 0] + SHARE * UTILITY[:, 1]
SPREAD = SHARE * (1 - SHARE) * (UTILITY[:, 1] - UTILITY[:, 0]) ** 2

Judged = tuple[float, np.ndarray, PairLabels]


def labels_of(rows: list[list[float]]) -> PairLabels:
    """As `pair_labels` makes them, from the utilities of every pair."""
    number = np.array([len(row) for row in rows], dtype=np.int64)
    mean = np.array([np.mean(row) for row in rows])
    variance = np.array([np.var(row, ddof=1) if len(row) > 1 else 0.0 for row in rows])
    repeated = number >= 2
    if repeated.any():
        variance[~repeated] = variance[repeated].mean()
    return PairLabels(mean, number, variance, bool(repeated.any()))


def judged(pairs: np.ndarray, number: np.ndarray) -> Iterator[Judged]:
    """Every set of judgments of some pairs, `number` for each, with its probability."""
    for kinds in product([0, 1], repeat=int(number.sum())):
        chances, rows, rest = 1.0, [], list(kinds)
        for pair, n in zip(pairs.tolist(), number.tolist(), strict=True):
            row, rest = rest[:n], rest[n:]
            chances *= math.prod(SHARE[pair] if kind else 1 - SHARE[pair] for kind in row)
            rows.append([UTILITY[pair, kind] for kind in row])
        yield chances, pairs, labels_of(rows)


def poisson_subsets() -> Iterator[tuple[float, np.ndarray]]:
    for taken in product([False, True], repeat=3):
        probability = float(np.prod(np.where(taken, INCLUSION, 1 - INCLUSION)))
        if probability > 0:
            yield probability, np.flatnonzero(taken)


def draw_sequences(draws: int) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    for sequence in product(range(3), repeat=draws):
        pairs, counts = np.unique(sequence, return_counts=True)
        yield float(np.prod(CHANCE[list(sequence)])), pairs, counts


def weights_of(pairs: np.ndarray) -> sparse.csr_array:
    return sparse.csr_array(WEIGHTS[pairs])


# ------------------------------------------------------------------------ predicted variances


def poisson_prediction(number: int) -> np.ndarray:
    """Mean over all outcomes of the prediction for the very design, `number` labels per pair."""
    total = np.zeros(2)
    for probability, pairs in poisson_subsets():
        for chance, _, labels in judged(pairs, np.full(len(pairs), 2)):
            sample = JudgedSample(weights_of(pairs), labels, INCLUSION[pairs])
            found = predicted_variances(sample, labels=number, pairs=len(pairs))
            total += probability * chance * found
    return total


@pytest.mark.parametrize("number", [1, 2, 5])
def test_prediction_for_the_same_design_is_its_variance(number: int) -> None:
    first = MEAN**2 @ (WEIGHTS**2 * ((1 - INCLUSION) / INCLUSION)[:, None])
    expected = first + SPREAD @ (WEIGHTS**2 / INCLUSION[:, None]) / number
    assert poisson_prediction(number) == pytest.approx(expected, **EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 3])
def test_prediction_for_the_same_draws_is_their_variance(number: int) -> None:
    """Against the variance of all outcomes, listed."""
    mean, square, predicted = np.zeros(2), np.zeros(2), np.zeros(2)
    for probability, pairs, counts in draw_sequences(2):
        for chance, _, labels in judged(pairs, np.full(len(pairs), number)):
            value = importance_sampling(
                weights_of(pairs), labels, probability=CHANCE[pairs], counts=counts
            ).value
            mean, square = (
                mean + probability * chance * value,
                square + probability * chance * value**2,
            )
        for chance, _, labels in judged(pairs, np.full(len(pairs), 2)):
            sample = JudgedSample(weights_of(pairs), labels, CHANCE[pairs], counts)
            found = predicted_variances(sample, labels=number, pairs=len(pairs))
            predicted += probability * chance * found
    assert predicted == pytest.approx(square - mean**2, rel=1e-11)


def population(expected: np.ndarray | None = None) -> JudgedSample:
    """A large pool of which every pair is in the sample as often as its inclusion says."""
    labels = labels_of([[0.0, 3.0], [1.0, 7.0], [0.0, 1.0]])
    return JudgedSample(weights_of(np.arange(3)), labels, INCLUSION, expected=expected)


def test_more_pairs_raise_probabilities_up_to_one() -> None:
    labels = population().labels
    utility, spread = labels.mean**2 - labels.variance / 2, labels.variance
    # pairs expected: 1 / 0.25 min(1, 0.25 t) + 1 + 1 / 0.6 min(1, 0.6 t); t = 2: 2 + 1 + 1 / 0.6
    later = np.array([0.5, 1.0, 1.0])
    terms = (utility * (1 - later) / later + spread / (3 * later)) / INCLUSION
    found = predicted_variances(population(), labels=3, pairs=3 + 1 / 0.6)
    assert found == pytest.approx(terms @ WEIGHTS**2)


def test_fewer_pairs_make_certain_ones_uncertain() -> None:
    sample = population(expected=np.array([0.25, 1.6, 0.6]))
    labels = sample.labels
    later = np.array([0.125, 0.8, 0.3])
    utility, spread = labels.mean**2 - labels.variance / 2, labels.variance
    terms = (utility * (1 - later) / later + spread / later) / INCLUSION
    pairs = (later / INCLUSION).sum()
    found = predicted_variances(sample, labels=1, pairs=pairs)
    assert found == pytest.approx(terms @ WEIGHTS**2)
    kept = predicted_variances(population(), labels=1, pairs=pairs)
    assert np.all(kept != pytest.approx(found, rel=0.01))


def test_numbers_of_pairs_that_no_design_of_these_has_give_no_variance() -> None:
    every = (1 / INCLUSION).sum()
    for pairs, there in {every * 1.01: False, every: True, 1.01: True, 0.99: False}.items():
        found = predicted_variances(population(), labels=1, pairs=pairs)
        assert (found is not None) == there, pairs
    census = predicted_variances(population(), labels=1, pairs=every)
    expected = population().labels.variance @ (WEIGHTS**2 / INCLUSION[:, None])
    assert census == pytest.approx(expected)


# ----------------------------------------------------------------------------- crowd votes

TRIALS = 3000
NUMBERS = [1, 2, 3, 4, 6, 9]


@pytest.fixture(scope="module")
def crowd(data_dir: Path) -> list[np.ndarray]:
    """0/1 votes on every item of the TREC 2011 crowdsourcing track with ten votes or more."""
    votes: dict[tuple[str, str], list[int]] = {}
    with gzip.open(data_dir / "crowd-trec2011" / "labels.tsv.gz", "rt") as lines:
        next(lines)
        for line in lines:
            topic, docno, _, label, *_ = line.split("\t")
            votes.setdefault((topic, docno), []).append(int(label))
    return [np.array(found) for found in votes.values() if len(found) >= 10]


@pytest.fixture(scope="module")
def annotators(data_dir: Path) -> list[np.ndarray]:
    """Labels 0-3 of eight people on each of the 188 pairs of DL 2019 that all of them judged."""
    found: dict[tuple[str, str], list[int]] = {}
    with gzip.open(data_dir / "dl2019" / "annotators.tsv.gz", "rt") as lines:
        next(lines)
        for line in lines:
            part, topic, docno, _, label = line.split("\t")
            if part == "agreement":
                found.setdefault((topic, docno), []).append(int(label))
    return [np.array(labels) for labels in found.values()]


class Crowd:
    """A pool whose assessors answer by drawing one of the recorded labels of the pair."""

    def __init__(self, votes: list[np.ndarray], seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.votes = votes
        self.mean = np.array([found.mean() for found in votes])
        self.spread = np.array([found.var() for found in votes])
        ranks = self.rng.integers(1, 21, size=(len(votes), 2))
        self.weights = 1 / np.log2(1 + ranks) / 20
        self.size = np.sqrt((self.weights**2).sum(axis=1))

    def inclusion(self, pairs: float) -> np.ndarray:
        found = pairs * self.size / self.size.sum()
        assert found.max() <= 1.0
        return found

    def answers(self, pair: int, number: int) -> list[float]:
        return self.rng.choice(self.votes[pair], size=number).astype(float).tolist()

    def campaign_variance(self, pairs: float, number: int) -> np.ndarray:
        """Variance of the estimates of `TRIALS` campaigns, by brute force, shape (2,)."""
        chance = self.inclusion(pairs)
        values = np.empty((TRIALS, 2))
        width = max(map(len, self.votes))
        table = np.stack([np.resize(found, width) for found in self.votes])
        lengths = np.array([len(found) for found in self.votes])
        for value in values:
            taken = np.flatnonzero(self.rng.random(len(chance)) < chance)
            picks = (self.rng.random((number, len(taken))) * lengths[taken]).astype(int)
            label = table[taken, picks].mean(axis=0)
            value[:] = (label / chance[taken]) @ self.weights[taken]
        truth = self.mean @ self.weights
        assert np.abs(values.mean(axis=0) - truth).max() < 4 * values.std(axis=0).max() / 54
        return values.var(axis=0, ddof=1)

    def pilot(self, pairs: float, number: int) -> JudgedSample:
        chance = self.inclusion(pairs)
        taken = np.flatnonzero(self.rng.random(len(chance)) < chance)
        labels = labels_of([self.answers(pair, number) for pair in taken.tolist()])
        weights = sparse.csr_array(self.weights[taken])
        return JudgedSample(weights, labels, chance[taken])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("collection", "pairs", "pair_cost"), [("crowd", 250.0, 8.0), ("annotators", 60.0, 8.0)]
)
def test_predictions_agree_with_brute_force(collection, pairs, pair_cost, request) -> None:
    """Two labels per pair were seen; six other numbers are predicted, then tried."""
    world = Crowd(request.getfixturevalue(collection), seed=3)
    budget = pairs * (pair_cost + 2)
    affordable = {number: budget / (pair_cost + number) for number in NUMBERS}
    pilots = [world.pilot(pairs, 2) for _ in range(bounded(100, 200))]
    predicted = [
        np.mean([
            variance for pilot in pilots
            if (variance := predicted_variances(pilot, labels=n, pairs=affordable[n])) is not None
        ], axis=0)
        for n in NUMBERS
    ]  # fmt: skip
    tried = np.array([world.campaign_variance(affordable[n], n) for n in NUMBERS])
    error = tried * math.sqrt(2 / TRIALS)
    assert np.abs(predicted / tried - 1).max() < 4 * (error / tried).max()
    unchanged = np.broadcast_to(tried[1], tried.shape)  # twin: the number makes no difference
    assert np.abs(unchanged / tried - 1).max() > 4 * (error / tried).max()


# ------------------------------------------------------------------------------- the bisection


def plainly_bisected(excess, high: float) -> float:
    """Every step looked at."""
    low = 0.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if excess(middle) < 0.0 else (low, middle)
    return high


def excess_of(seed: int, method: str):
    """How many more pairs are expected at a scale than are wanted, and how often that is asked."""
    rng = np.random.default_rng(seed)
    expected = rng.exponential(size=400) * 10.0 ** rng.uniform(-3, 1)
    chance = np.minimum(1.0, expected)
    counts = rng.poisson(5.0, size=400) if method == "iid" else None
    probability = expected / expected.sum() if method == "iid" else chance
    sample = JudgedSample(None, None, probability, counts, None if counts is not None else expected)
    expects = sample.expects
    wanted = expects(1.0) * rng.uniform(0.05, 0.95)
    asked: list[float] = []

    def excess(scale: float) -> float:
        asked.append(scale)
        return expects(scale) - wanted

    return excess, asked


@pytest.mark.parametrize("method", ["poisson", "iid"])
@pytest.mark.parametrize("high", [1.0, 8.0])
def test_a_bisection_that_skips_what_is_known_ends_at_the_same_number(method, high) -> None:
    for seed in range(30):
        excess, asked = excess_of(seed, method)
        expected = plainly_bisected(excess, high)
        asked.clear()
        assert _bisected(excess, high) == expected
        assert len(asked) < 40


def test_and_one_that_takes_its_root_for_exact_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        label_advice, "_bisected", lambda excess, high: optimize.brentq(excess, 0, high, rtol=1e-9)
    )
    excesses = [excess_of(seed, "poisson")[0] for seed in range(30)]
    assert any(label_advice._bisected(e, 1.0) != plainly_bisected(e, 1.0) for e in excesses)


def test_there_may_be_nothing_to_look_for() -> None:
    for wanted in (0.0, 1.0):
        excess = lambda scale, wanted=wanted: scale - wanted  # noqa: E731
        assert _bisected(excess, 1.0) == plainly_bisected(excess, 1.0)


def test_as_many_pairs_as_there_are_can_be_asked_for() -> None:
    """A design comes to expect as many at some scale, whatever the rounding of their sum."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        expected = rng.exponential(size=300) * 10.0 ** rng.uniform(-3, 1)
        sample = JudgedSample(None, None, np.minimum(1.0, expected), None, expected)
        assert sample.expects(2.0**60) == sample.every
        assert sample.every == pytest.approx((1.0 / sample.chance).sum())
        found = label_advice._scaled(sample, sample.every)
        assert found is not None
        assert found[1] == pytest.approx(1.0)
