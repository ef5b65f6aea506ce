"""How many labels per pair: exact moments on tiny pools, brute force on crowd votes."""

import gzip
import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from estimation.core.data.labels import LabelError, PairLabels
from estimation.core.data.pool import Pool
from estimation.core.data.ranked_lists import PoolError
from estimation.core.estimates.estimators import importance_sampling
from estimation.core.measures.table import parse_measure
from estimation.core.planning.label_planning import (
    JudgedSample,
    goal_contrasts,
    predicted_variances,
    recommended_labels,
)
from estimation.core.sampling import goals
from estimation.core.sampling.goals import effective_weights

EXACT = {"rel": 1e-12, "abs": 1e-12}
WEIGHTS = np.array([[0.5, 0.2], [0.3, 0.3], [0.1, 0.6]])
INCLUSION = np.array([0.25, 1.0, 0.6])
CHANCE = np.array([0.2, 0.5, 0.3])
UTILITY = np.array([[0.0, 3.0], [1.0, 7.0], [0.0, 1.0]])  # what two kinds of assessors say
SHARE = np.array([0.3, 0.5, 0.8])  # of the second kind
MEAN = (1 - SHARE) * UTILITY[:, 0] + SHARE * UTILITY[:, 1]
SPREAD = SHARE * (1 - SHARE) * (UTILITY[:, 1] - UTILITY[:, 0]) ** 2
CONTRAST = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
COSTS = {"pair_cost": 5.0, "label_cost": 2.0}

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


def components(advice) -> np.ndarray:
    return np.stack([advice.between, advice.within])


def poisson_mean(number: np.ndarray, contrasts: np.ndarray | None = None) -> np.ndarray:
    total = np.zeros((2, 2 if contrasts is None else contrasts.shape[1]))
    for probability, pairs in poisson_subsets():
        for chance, _, labels in judged(pairs, number[pairs]):
            advice = recommended_labels(
                weights_of(pairs),
                labels,
                probability=INCLUSION[pairs],
                contrasts=contrasts,
                **COSTS,
            )
            total += probability * chance * components(advice)
    return total


def poisson_truth(weights: np.ndarray) -> np.ndarray:
    uncertain = (weights**2 / INCLUSION[:, None])[INCLUSION < 1]
    return np.stack([MEAN[INCLUSION < 1] ** 2 @ uncertain, SPREAD[INCLUSION < 1] @ uncertain])


@pytest.mark.parametrize("number", [np.array([2, 2, 3]), np.array([3, 2, 2])])
def test_poisson_components_are_unbiased(number: np.ndarray) -> None:
    assert poisson_mean(number) == pytest.approx(poisson_truth(WEIGHTS), **EXACT)


def test_components_of_contrasts_are_unbiased() -> None:
    found = poisson_mean(np.array([2, 2, 2]), CONTRAST)
    assert found == pytest.approx(poisson_truth(WEIGHTS @ CONTRAST), **EXACT)


def test_twin_that_squares_noisy_means_is_caught() -> None:
    biased = MEAN**2 + SPREAD / 2
    uncertain = (WEIGHTS**2 / INCLUSION[:, None])[INCLUSION < 1]
    found = poisson_mean(np.array([2, 2, 2]))[0]
    assert np.all(found < 0.95 * (biased[INCLUSION < 1] @ uncertain))


def random_repeats(repeat_share: float | None) -> np.ndarray:
    """Each pair gets a second label with probability 0.4."""
    total = np.zeros((2, 2))
    for probability, pairs in poisson_subsets():
        for extra in product([1, 2], repeat=len(pairs)):
            number = np.array(extra, dtype=np.int64)
            if np.all(number == 1):
                continue  # nothing is measured: contributes 0 to both
            chosen = float(np.prod(np.where(number == 2, 0.4, 0.6)))
            for chance, _, labels in judged(pairs, number):
                advice = recommended_labels(
                    weights_of(pairs), labels, probability=INCLUSION[pairs],
                    repeat_share=repeat_share, **COSTS,
                )  # fmt: skip
                total += probability * chosen * chance * components(advice)
    return total


def test_a_known_share_of_second_labels_keeps_components_unbiased() -> None:
    assert random_repeats(0.4) == pytest.approx(poisson_truth(WEIGHTS), **EXACT)
    assert random_repeats(1.0) == pytest.approx(0.4 * poisson_truth(WEIGHTS), **EXACT)


def iid_mean(draws: int, number: np.ndarray, contrasts: np.ndarray | None = None) -> np.ndarray:
    total = np.zeros((2, 2 if contrasts is None else contrasts.shape[1]))
    for probability, pairs, counts in draw_sequences(draws):
        for chance, _, labels in judged(pairs, number[pairs]):
            advice = recommended_labels(
                weights_of(pairs), labels, probability=CHANCE[pairs], counts=counts,
                contrasts=contrasts, **COSTS,
            )  # fmt: skip
            total += probability * chance * components(advice)
    return total


@pytest.mark.slow
@pytest.mark.parametrize("draws", [2, 3])
def test_components_of_draws_are_unbiased(draws: int) -> None:
    number, squares = np.array([2, 2, 2]), WEIGHTS**2 / CHANCE[:, None]
    between = MEAN**2 @ squares - (MEAN @ WEIGHTS) ** 2
    within = SPREAD @ (squares - WEIGHTS**2)
    expected = np.stack([between, within]) / draws
    assert iid_mean(draws, number) == pytest.approx(expected, **EXACT)
    assert iid_mean(draws, number, np.eye(2)) == pytest.approx(expected, **EXACT)


# ------------------------------------------------------------------- the best number of labels


def advice_for(
    between: float, within: float, pair_cost: float = 5.0, label_cost: float = 2.0
) -> tuple[float, float]:
    """Advice when a pair of inclusion 1/2 and weight 1 shows just these components."""
    labels = PairLabels(
        np.array([math.sqrt(between / 4 + within / 8)]), np.array([2]),
        np.array([within / 4]), True,
    )  # fmt: skip
    found = recommended_labels(
        sparse.csr_array([[1.0]]), labels, probability=np.array([0.5]), pair_cost=pair_cost,
        label_cost=label_cost,
    )  # fmt: skip
    assert components(found)[:, 0] == pytest.approx([between, within])
    assert found.goal_optimum == pytest.approx(found.optimum[0])
    assert found.goal_labels == found.labels[0]
    assert found.repeated_pairs == 1
    return float(found.optimum[0]), float(found.labels[0])


@pytest.mark.parametrize("within", [0.1, 1.0, 2.0, 3.7, 9.0, 40.0])
@pytest.mark.parametrize("pair_cost", [0.5, 5.0, 20.0])
def test_the_optimum_is_the_best_of_all_numbers(within: float, pair_cost: float) -> None:
    optimum, labels = advice_for(1.5, within, pair_cost)
    assert optimum == pytest.approx(math.sqrt(pair_cost / 2.0 * within / 1.5))
    price = {r: (pair_cost + 2.0 * r) * (1.5 + within / r) for r in range(1, 60)}
    assert price[int(labels)] == pytest.approx(min(price.values()))


def test_one_label_where_assessors_agree_or_pairs_are_free() -> None:
    assert advice_for(1.5, 0.0) == (0.0, 1.0)
    assert advice_for(1.5, 4.0, pair_cost=0.0) == (0.0, 1.0)


def test_no_finite_number_where_disagreement_drowns_the_pairs() -> None:
    drowned = PairLabels(np.array([0.1]), np.array([2]), np.array([4.0]), True)
    found = recommended_labels(
        sparse.csr_array([[1.0]]), drowned, probability=np.array([0.5]), **COSTS
    )
    assert found.between[0] < 0.0
    assert (found.optimum[0], found.labels[0]) == (math.inf, math.inf)


@pytest.mark.parametrize("pair_cost", [0.0, 5.0])
def test_no_number_where_no_pair_is_uncertain_or_has_any_utility(pair_cost: float) -> None:
    census, worthless = [[0.0, 3.0], [1.0, 7.0]], [[0.0, 0.0], [0.0, 0.0]]
    for rows, chance in ((census, 1.0), (worthless, 0.5)):
        found = recommended_labels(
            weights_of(np.arange(2)), labels_of(rows), probability=np.full(2, chance),
            pair_cost=pair_cost, label_cost=1.0,
        )  # fmt: skip
        assert components(found).tolist() == [[0.0, 0.0], [0.0, 0.0]]
        assert np.isnan([*found.optimum, *found.labels, found.goal_optimum]).all()


GOALS = [
    goals.single("beta"),
    goals.absolute("alpha", "gamma"),
    goals.pair("gamma", "alpha"),
    goals.baseline("gamma", "alpha", against="beta"),
    goals.ranking("alpha", "beta", "gamma"),
]


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.kind)
def test_contrasts_have_the_effective_weights_of_the_goal(tiny_pool: Pool, goal) -> None:
    measure = parse_measure("DCG@2")
    contrasts = goal_contrasts(goal, runs=tiny_pool.runs)
    combined = tiny_pool.weights(measure) @ contrasts
    expected = effective_weights(tiny_pool, goal, measure)
    assert np.sqrt((combined**2).sum(axis=1)) == pytest.approx(expected, **EXACT)


def test_the_goal_has_the_sum_of_its_contrasts() -> None:
    labels = labels_of([[0.0, 3.0], [7.0, 7.0], [0.0, 1.0]])
    options = {"probability": np.full(3, 0.5), **COSTS}
    found = recommended_labels(weights_of(np.arange(3)), labels, contrasts=CONTRAST, **options)
    expected = math.sqrt(2.5 * found.within.sum() / found.between.sum())
    assert found.goal_optimum == pytest.approx(expected)
    assert len(found.optimum) == 3
    moved = recommended_labels(
        weights_of(np.array([2, 0, 1])), labels_of([[1.0, 0.0], [3.0, 0.0], [7.0, 7.0]]),
        contrasts=CONTRAST, **options,
    )  # fmt: skip
    assert components(moved) == pytest.approx(components(found), **EXACT)


# ------------------------------------------------------------------------ predicted variances


def poisson_prediction(number: int) -> np.ndarray:
    """Mean over all outcomes of the prediction for the very design, `number` labels per pair."""
    total = np.zeros(2)
    for probability, pairs in poisson_subsets():
        for chance, _, labels in judged(pairs, np.full(len(pairs), 2)):
            sample = JudgedSample(weights_of(pairs), labels, INCLUSION[pairs])
            budget = len(pairs) * (5.0 + 2.0 * number)
            found = predicted_variances(sample, labels_per_pair=[number], budget=budget, **COSTS)
            total += probability * chance * found[0]
    return total


@pytest.mark.parametrize("number", [1, 2, 5])
def test_prediction_for_the_same_design_is_its_variance(number: int) -> None:
    first = MEAN**2 @ (WEIGHTS**2 * ((1 - INCLUSION) / INCLUSION)[:, None])
    expected = first + SPREAD @ (WEIGHTS**2 / INCLUSION[:, None]) / number
    assert poisson_prediction(number) == pytest.approx(expected, **EXACT)


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
            found = predicted_variances(
                sample, labels_per_pair=[number], budget=len(pairs) * (5.0 + 2.0 * number), **COSTS
            )
            predicted += probability * chance * found[0]
    assert predicted == pytest.approx(square - mean**2, rel=1e-11)


def population(expected: np.ndarray | None = None) -> JudgedSample:
    """A large pool of which every pair is in the sample as often as its inclusion says."""
    labels = labels_of([[0.0, 3.0], [1.0, 7.0], [0.0, 1.0]])
    return JudgedSample(weights_of(np.arange(3)), labels, INCLUSION, expected=expected)


def test_a_larger_budget_raises_probabilities_up_to_one() -> None:
    labels = population().labels
    utility, spread = labels.mean**2 - labels.variance / 2, labels.variance
    # pairs expected: 1 / 0.25 min(1, 0.25 t) + 1 + 1 / 0.6 min(1, 0.6 t); t = 2: 2 + 1 + 1 / 0.6
    later = np.array([0.5, 1.0, 1.0])
    terms = (utility * (1 - later) / later + spread / (3 * later)) / INCLUSION
    budget = (3 + 1 / 0.6) * (5.0 + 3 * 2.0)
    found = predicted_variances(population(), labels_per_pair=[3], budget=budget, **COSTS)
    assert found[0] == pytest.approx(terms @ WEIGHTS**2)


def test_a_smaller_budget_makes_certain_pairs_uncertain() -> None:
    sample = population(expected=np.array([0.25, 1.6, 0.6]))
    labels = sample.labels
    later = np.array([0.125, 0.8, 0.3])
    utility, spread = labels.mean**2 - labels.variance / 2, labels.variance
    terms = (utility * (1 - later) / later + spread / later) / INCLUSION
    budget = (later / INCLUSION).sum() * 7.0
    found = predicted_variances(sample, labels_per_pair=[1], budget=budget, **COSTS)
    assert found[0] == pytest.approx(terms @ WEIGHTS**2)
    kept = predicted_variances(population(), labels_per_pair=[1], budget=budget, **COSTS)
    assert np.all(kept != pytest.approx(found, rel=0.01))


def test_budgets_that_no_design_of_these_pairs_has_give_no_number() -> None:
    every = (1 / INCLUSION).sum() * 7.0
    budgets = {every * 1.01: True, every: False, 1.01 * 7.0: False, 0.99 * 7.0: True}
    for budget, nan in budgets.items():
        found = predicted_variances(population(), labels_per_pair=[1], budget=budget, **COSTS)
        assert np.isnan(found).all() == nan, budget
    census = predicted_variances(population(), labels_per_pair=[1], budget=every, **COSTS)
    expected = population().labels.variance @ (WEIGHTS**2 / INCLUSION[:, None])
    assert census[0] == pytest.approx(expected)


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
    costs = {"pair_cost": pair_cost, "label_cost": 1.0}
    pilots = [world.pilot(pairs, 2) for _ in range(200)]
    predicted = np.nanmean(
        [predicted_variances(p, labels_per_pair=NUMBERS, budget=budget, **costs) for p in pilots],
        axis=0,
    )
    tried = np.array([
        world.campaign_variance(budget / (pair_cost + number), number) for number in NUMBERS
    ])  # fmt: skip
    error = tried * math.sqrt(2 / TRIALS)
    assert np.abs(predicted / tried - 1).max() < 4 * (error / tried).max()
    unchanged = np.broadcast_to(tried[1], tried.shape)  # twin: the number makes no difference
    assert np.abs(unchanged / tried - 1).max() > 4 * (error / tried).max()


@pytest.mark.parametrize(("collection", "pairs"), [("crowd", 250.0), ("annotators", 60.0)])
@pytest.mark.parametrize("pair_cost", [1.0, 8.0, 40.0])
def test_advice_finds_the_optimum_of_the_crowd(collection, pairs, pair_cost, request) -> None:
    world = Crowd(request.getfixturevalue(collection), seed=4)
    chance = world.inclusion(pairs)
    scale = (world.weights**2 / chance[:, None]).sum(axis=1)
    truth = math.sqrt(pair_cost * (world.spread @ scale) / (world.mean**2 @ scale))
    samples = [world.pilot(pairs, 2) for _ in range(30)]
    found = np.array([
        recommended_labels(
            s.weights, s.labels, probability=s.probability, pair_cost=pair_cost, label_cost=1.0
        ).goal_optimum
        for s in samples
    ])  # fmt: skip
    deviation = np.median(found) - truth
    assert abs(deviation) < 4 * 1.25 * found.std() / math.sqrt(len(found)) + 0.02 * truth
    inverse = 1 / np.median(found) if pair_cost > 1.0 else 2.5 * np.median(found)
    assert abs(inverse - truth) > 4 * 1.25 * found.std() / math.sqrt(len(found)) + 0.02 * truth


# -------------------------------------------------------------------------------- bad input

LABELS = labels_of([[0.0, 3.0], [1.0, 7.0], [0.0]])
GOOD = {"probability": INCLUSION, **COSTS}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probability": np.array([0.5, 0.0, 1.0])}, r"probability must lie .* 0.0 \(item 1\)"),
        ({"probability": np.array([0.5, 1.0, np.nan])}, r"probability must lie .* nan \(item 2\)"),
        ({"probability": np.array([0.5])}, r"probability has the shape \(1,\), not \(3,\)"),
        ({"counts": np.array([1, 0, 1])}, r"counts must be at least 1, not 0 \(item 1\)"),
        ({"contrasts": np.ones((3, 1))}, r"contrasts has the shape \(3, 1\), not \(2, c\)"),
        ({"repeat_share": 0.0}, r"repeat_share must lie in \(0, 1\], not 0.0"),
        ({"pair_cost": -1.0}, "pair_cost must be a finite number of at least 0, not -1.0"),
        ({"pair_cost": math.nan}, "pair_cost .* nan"),
        ({"label_cost": 0.0}, "label_cost must be a finite number above 0, not 0.0"),
    ],
)
def test_numbers_out_of_range_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recommended_labels(weights_of(np.arange(3)), LABELS, **(GOOD | options))


def test_samples_that_do_not_fit_are_refused() -> None:
    weights = weights_of(np.arange(3))
    with pytest.raises(ValueError, match="labels describe 3 pairs, weights 2"):
        recommended_labels(weights[:2], LABELS, probability=INCLUSION[:2], **COSTS)
    with pytest.raises(ValueError, match=r"expected must agree .* not 0.7 \(item 2\)"):
        JudgedSample(weights, LABELS, INCLUSION, expected=np.array([0.25, 1.0, 0.7]))
    with pytest.raises(ValueError, match="not both"):
        JudgedSample(weights, LABELS, INCLUSION, np.ones(3, dtype=np.int64), INCLUSION)
    with pytest.raises(LabelError, match="No pair has two labels"):
        recommended_labels(weights, labels_of([[1.0], [0.0], [2.0]]), **GOOD)
    with pytest.raises(PoolError, match="no run 'delta'"):
        goal_contrasts(goals.pair("alpha", "delta"), runs=("alpha", "beta"))
    sample = JudgedSample(weights, LABELS, INCLUSION)
    for budget in (0.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="budget must be a finite number above 0"):
            predicted_variances(sample, labels_per_pair=[1], budget=budget, **COSTS)
    with pytest.raises(ValueError, match=r"labels_per_pair must be at least 1, not 0 \(item 1\)"):
        predicted_variances(sample, labels_per_pair=[1, 0], budget=20.0, **COSTS)
