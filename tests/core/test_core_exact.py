"""Every sample of a tiny pool: expectations are the truth, to rounding.

Each statement has a broken twin, an estimator with one plausible mistake, that the same
enumeration must catch.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from estimation.core.data.labels import LabelRows, PairLabels, pair_labels
from estimation.core.data.pool import Pool
from estimation.core.estimates.estimators import (
    horvitz_thompson_iid,
    horvitz_thompson_poisson,
    importance_sampling,
)
from estimation.core.estimates.products import cross_product
from estimation.core.estimates.totals import Totals
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample
from estimation.research.simulation import true_values

EXACT = {"rel": 1e-12, "abs": 1e-12}
WEIGHTS = np.array([[0.5, 0.2, 0.0], [0.3, 0.3, 0.1], [0.0, 0.4, 0.4], [0.2, 0.0, 0.7]])
UTILITY = np.array([1.0, 3.0, 0.5, 2.0])
CHANCE = np.array([0.1, 0.4, 0.3, 0.2])  # of one draw
INCLUSION = np.array([0.25, 1.0, 0.6, 0.4])

Weighted = tuple[float, Totals]
Estimator = Callable[..., Totals]


def noiseless(values: np.ndarray) -> PairLabels:
    number = np.ones(len(values), dtype=np.int64)
    return PairLabels(values, number, np.zeros(len(values)), False)


def rows(pairs: np.ndarray) -> sparse.csr_array:
    return sparse.csr_array(WEIGHTS[pairs])


def poisson_samples() -> Iterator[tuple[float, np.ndarray]]:
    for taken in product([False, True], repeat=len(INCLUSION)):
        probability = float(np.prod(np.where(taken, INCLUSION, 1 - INCLUSION)))
        if probability > 0:
            yield probability, np.flatnonzero(taken)


def draw_sequences(draws: int) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    for sequence in product(range(len(CHANCE)), repeat=draws):
        pairs, counts = np.unique(sequence, return_counts=True)
        yield float(np.prod(CHANCE[list(sequence)])), pairs, counts


def moments(outcomes: Iterator[Weighted]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean of the value, its true covariance, and the mean of the estimated covariance."""
    k = WEIGHTS.shape[1]
    total, mean, square, estimated = 0.0, np.zeros(k), np.zeros((k, k)), np.zeros((k, k))
    for probability, estimate in outcomes:
        total += probability
        mean += probability * estimate.value
        square += probability * np.multiply.outer(estimate.value, estimate.value)
        estimated += probability * estimate.covariance
    assert total == pytest.approx(1.0, abs=1e-12)
    return mean, square - np.multiply.outer(mean, mean), estimated


# ----------------------------------------------------------------------- certain labels


def poisson_outcomes(estimator: Estimator) -> Iterator[Weighted]:
    for probability, pairs in poisson_samples():
        chances = INCLUSION[pairs]
        yield probability, estimator(rows(pairs), noiseless(UTILITY[pairs]), probability=chances)


def is_outcomes(estimator: Estimator, draws: int) -> Iterator[Weighted]:
    for probability, pairs, counts in draw_sequences(draws):
        labels = noiseless(UTILITY[pairs])
        yield probability, estimator(rows(pairs), labels, probability=CHANCE[pairs], counts=counts)


def ht_iid_outcomes(estimator: Estimator, draws: int) -> Iterator[Weighted]:
    for probability, pairs, _ in draw_sequences(draws):
        labels = noiseless(UTILITY[pairs])
        yield probability, estimator(rows(pairs), labels, probability=CHANCE[pairs], draws=draws)


def test_poisson_value_and_covariance_are_unbiased() -> None:
    mean, covariance, estimated = moments(poisson_outcomes(horvitz_thompson_poisson))
    assert mean == pytest.approx(UTILITY @ WEIGHTS, **EXACT)
    assert estimated == pytest.approx(covariance, **EXACT)


def test_poisson_twin_that_divides_once_is_caught() -> None:
    def divides_once(weights, labels, *, probability):
        good = horvitz_thompson_poisson(weights, labels, probability=probability)
        scale = (1 - probability) / probability * labels.mean**2
        return replace(good, covariance=cross_product(weights, scale))

    _, covariance, estimated = moments(poisson_outcomes(divides_once))
    assert estimated != pytest.approx(covariance, rel=1e-3)


@pytest.mark.parametrize("draws", [1, 2, 3])
def test_importance_sampling_value_is_unbiased(draws: int) -> None:
    mean, _, _ = moments(is_outcomes(importance_sampling, draws))
    assert mean == pytest.approx(UTILITY @ WEIGHTS, **EXACT)


@pytest.mark.parametrize("draws", [2, 3])
def test_importance_sampling_covariance_is_unbiased(draws: int) -> None:
    _, covariance, estimated = moments(is_outcomes(importance_sampling, draws))
    assert estimated == pytest.approx(covariance, **EXACT)


def forgets_multiplicity(weights, labels, *, probability, counts):
    return importance_sampling(
        weights, labels, probability=probability, counts=np.ones_like(counts)
    )


def test_importance_sampling_twin_that_forgets_multiplicity_is_caught() -> None:
    mean, covariance, estimated = moments(is_outcomes(forgets_multiplicity, 3))
    assert mean != pytest.approx(UTILITY @ WEIGHTS, rel=1e-3)
    assert estimated != pytest.approx(covariance, rel=1e-3)


@pytest.mark.parametrize("draws", [1, 2, 3])
def test_horvitz_thompson_value_of_iid_is_unbiased(draws: int) -> None:
    mean, _, _ = moments(ht_iid_outcomes(horvitz_thompson_iid, draws))
    assert mean == pytest.approx(UTILITY @ WEIGHTS, **EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("draws", [2, 3, 4])
def test_horvitz_thompson_covariance_of_iid_is_unbiased(draws: int) -> None:
    _, covariance, estimated = moments(ht_iid_outcomes(horvitz_thompson_iid, draws))
    assert estimated == pytest.approx(covariance, **EXACT)


def test_iid_twin_that_takes_pairs_for_independent_is_caught() -> None:
    def independent(weights, labels, *, probability, draws):
        inclusion = 1 - (1 - probability) ** draws
        return horvitz_thompson_poisson(weights, labels, probability=inclusion)

    mean, covariance, estimated = moments(ht_iid_outcomes(independent, 3))
    assert mean == pytest.approx(UTILITY @ WEIGHTS, **EXACT)
    assert estimated != pytest.approx(covariance, rel=1e-3)


def test_joint_terms_do_not_depend_on_the_block_size(monkeypatch) -> None:
    pairs = np.arange(4)
    arguments = {"probability": CHANCE, "draws": 5}
    whole = horvitz_thompson_iid(rows(pairs), noiseless(UTILITY), **arguments)
    monkeypatch.setattr("estimation.core.estimates.joint.BLOCK_CELLS", 5)
    blocks = horvitz_thompson_iid(rows(pairs), noiseless(UTILITY), **arguments)
    assert blocks.covariance == pytest.approx(whole.covariance, rel=1e-14)


def test_contributions_that_are_not_counted_are_none_and_change_nothing_else() -> None:
    arguments = {"probability": CHANCE, "draws": 5}
    counted, spared = (
        horvitz_thompson_iid(
            rows(np.arange(4)), noiseless(UTILITY), **arguments, count_contributions=whether
        )
        for whether in (True, False)
    )
    assert (counted.value == spared.value).all()
    assert (counted.covariance == spared.covariance).all()
    assert counted.contributions.any()
    assert not spared.contributions.any()


def test_a_pair_that_every_draw_takes_is_known_exactly() -> None:
    weights, labels = sparse.csr_array([[0.5]]), noiseless(np.array([2.0]))
    certain = {"probability": np.array([1.0])}
    for estimate in (
        importance_sampling(weights, labels, **certain, counts=np.array([3])),
        horvitz_thompson_iid(weights, labels, **certain, draws=3),
        horvitz_thompson_poisson(weights, labels, **certain),
    ):
        assert estimate.value.tolist() == [1.0]
        assert estimate.covariance == pytest.approx(np.zeros((1, 1)), abs=1e-15)


# ----------------------------------------------------------------------- uncertain labels

MEASURE = parse_measure("DCG(dcg='exp-log2')@3")  # utilities 0, 1, 3, 7
GRADES = {0: (0, 2), 1: (1, 3), 2: (0, 1)}  # what two kinds of assessors say about a pair
SHARE = np.array([0.3, 0.5, 0.8])  # of the second kind
JUDGMENTS = np.array([2, 2, 3])
EXPECTED = np.array([
    sum(chance * float(MEASURE.utilities(np.array([grade]))[0])
        for chance, grade in zip((1 - s, s), GRADES[i], strict=True))
    for i, s in enumerate(SHARE)
])  # fmt: skip


def judged(pairs: np.ndarray, number: np.ndarray = JUDGMENTS) -> Iterator[tuple[float, LabelRows]]:
    """Every set of judgments of some pairs, with its probability."""
    position = np.repeat(np.arange(len(pairs)), number[pairs])
    for kinds in product([0, 1], repeat=len(position)):
        second = np.array(kinds, dtype=np.int64)
        chance = SHARE[pairs[position]]
        grade = np.array(
            [GRADES[int(pairs[p])][kind] for p, kind in zip(position, kinds, strict=True)],
            dtype=np.int64,
        )
        order = np.lexsort((grade, position))
        probability = float(np.prod(np.where(second == 1, chance, 1 - chance)))
        yield probability, LabelRows(position[order], grade[order])


Aggregate = Callable[[LabelRows, int], PairLabels]


def mean_labels(found: LabelRows, pairs: int) -> PairLabels:
    return pair_labels(found, pairs=pairs, measure=MEASURE)


def noisy_poisson(label: Aggregate, number: np.ndarray = JUDGMENTS) -> Iterator[Weighted]:
    for probability, pairs in noisy_subsets():
        for chance, found in judged(pairs, number):
            yield (
                probability * chance,
                horvitz_thompson_poisson(
                    rows(pairs), label(found, len(pairs)), probability=NOISY_INCLUSION[pairs]
                ),
            )


NOISY_INCLUSION = np.array([0.25, 1.0, 0.6])


def noisy_subsets() -> Iterator[tuple[float, np.ndarray]]:
    for taken in product([False, True], repeat=3):
        probability = float(np.prod(np.where(taken, NOISY_INCLUSION, 1 - NOISY_INCLUSION)))
        if probability > 0:
            yield probability, np.flatnonzero(taken)


def noisy_iid(estimator: Estimator, label: Aggregate, draws: int = 2) -> Iterator[Weighted]:
    chances = np.array([0.2, 0.5, 0.3])
    for sequence in product(range(3), repeat=draws):
        pairs, counts = np.unique(sequence, return_counts=True)
        drawn = float(np.prod(chances[list(sequence)]))
        for chance, found in judged(pairs):
            arguments = (rows(pairs), label(found, len(pairs)))
            if estimator is horvitz_thompson_iid:
                yield drawn * chance, estimator(*arguments, probability=chances[pairs], draws=draws)
            else:
                yield (
                    drawn * chance,
                    estimator(*arguments, probability=chances[pairs], counts=counts),
                )


NOISY: dict[str, Callable[[Aggregate], Iterator[Weighted]]] = {
    "poisson": noisy_poisson,
    "iid is": lambda label: noisy_iid(importance_sampling, label),
    "iid is, 3 draws": lambda label: noisy_iid(importance_sampling, label, 3),
    "iid ht": lambda label: noisy_iid(horvitz_thompson_iid, label),
}


@pytest.mark.slow
@pytest.mark.parametrize("design", NOISY)
def test_noisy_labels_leave_value_and_covariance_unbiased(design: str) -> None:
    mean, covariance, estimated = moments(NOISY[design](mean_labels))
    assert mean == pytest.approx(EXPECTED @ WEIGHTS[:3], **EXACT)
    assert estimated == pytest.approx(covariance, **EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("design", NOISY)
def test_twin_without_label_noise_is_caught(design: str) -> None:
    def without_noise(found: LabelRows, pairs: int) -> PairLabels:
        return noiseless(mean_labels(found, pairs).mean)

    _, covariance, estimated = moments(NOISY[design](without_noise))
    assert np.all(np.diag(estimated) < np.diag(covariance) - 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("design", NOISY)
def test_twin_with_the_population_variance_is_caught(design: str) -> None:
    def population(found: LabelRows, pairs: int) -> PairLabels:
        good = mean_labels(found, pairs)
        shrunk = good.variance * (good.number - 1) / good.number
        return PairLabels(good.mean, good.number, shrunk, True)

    _, covariance, estimated = moments(NOISY[design](population))
    assert estimated != pytest.approx(covariance, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("design", NOISY)
def test_twin_that_takes_the_majority_is_caught(design: str) -> None:
    def majority(found: LabelRows, pairs: int) -> PairLabels:
        medians = [np.median(found.grade[found.pair == p]) for p in range(pairs)]
        return noiseless(MEASURE.utilities(np.floor(medians).astype(np.int64)))

    mean, _, _ = moments(NOISY[design](majority))
    assert mean != pytest.approx(EXPECTED @ WEIGHTS[:3], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("design", NOISY)
def test_twin_that_averages_grades_is_caught(design: str) -> None:
    def grade_mean(found: LabelRows, pairs: int) -> PairLabels:
        grades = np.bincount(found.pair, weights=found.grade, minlength=pairs)
        mean = grades / np.bincount(found.pair, minlength=pairs)
        return noiseless(2.0**mean - 1.0)

    mean, _, _ = moments(NOISY[design](grade_mean))
    assert mean != pytest.approx(EXPECTED @ WEIGHTS[:3], rel=1e-3)


def some_repeated(label: Aggregate) -> Iterator[Weighted]:
    """One sampled pair, each with the same chance, has two judgments; the others have one."""
    for probability, pairs in noisy_subsets():
        for chosen in pairs:
            number = np.where(np.arange(3) == chosen, 2, 1)
            for chance, found in judged(pairs, number):
                yield (
                    probability * chance / len(pairs),
                    horvitz_thompson_poisson(
                        rows(pairs), label(found, len(pairs)), probability=NOISY_INCLUSION[pairs]
                    ),
                )


def test_pairs_judged_twice_stand_for_those_judged_once() -> None:
    """Exactly, although assessors disagree more on one pair than on another."""
    mean, covariance, estimated = moments(some_repeated(mean_labels))
    assert mean == pytest.approx(EXPECTED @ WEIGHTS[:3], **EXACT)
    assert estimated == pytest.approx(covariance, **EXACT)


def test_twin_that_fills_in_the_mean_disagreement_is_caught() -> None:
    def filled(found: LabelRows, pairs: int) -> PairLabels:
        good = mean_labels(found, pairs)
        repeated = good.number >= 2
        variance = np.where(repeated, good.variance, good.variance[repeated].mean())
        return replace(good, variance=variance, singles=0.0)

    _, covariance, estimated = moments(some_repeated(filled))
    assert np.abs(np.diag(estimated) / np.diag(covariance) - 1).max() > 0.02


@pytest.mark.slow
def test_twin_that_discounts_the_noise_of_repeated_draws_is_caught() -> None:
    def discounted(weights, labels, *, probability, counts):
        share = (counts.sum() - 1) / counts.sum()
        less = PairLabels(labels.mean, labels.number, labels.variance * share, True)
        return importance_sampling(weights, less, probability=probability, counts=counts)

    _, covariance, estimated = moments(noisy_iid(discounted, mean_labels))
    assert np.all(np.diag(estimated) < np.diag(covariance) - 1e-3)


# ----------------------------------------------- evaluate: every prefix of batches is a sample


GRADE = np.array([3, 0, 1, 2, 1])
DCG = parse_measure("DCG@2")


def design_for(pool: Pool, method: str) -> Design:
    goal = goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=DCG, max_grade=3)
    return make_design(
        pool, goal=goal, measure=DCG, prior=prior, method=method, budget=3, batch_size=2
    )


def poisson_entries(design: Design) -> Iterator[tuple[float, Sample]]:
    """Every way in which pairs enter in batch 1, in batch 2, or never."""
    first, both = design.inclusion(1), design.inclusion(2)
    chances = np.stack([1 - both, first, both - first])
    for entry in product(range(3), repeat=len(first)):
        batch = np.array(entry, dtype=np.int32)
        probability = float(np.prod(chances[batch, np.arange(len(batch))]))
        pair = np.flatnonzero(batch)
        none = np.array([], dtype=np.int64)
        yield probability, Sample(pair, batch[pair], both[pair], none, design.pool_digest)


def iid_entries(design: Design) -> Iterator[tuple[float, Sample]]:
    """Every sequence of three draws, two of them in the first batch."""
    for sequence in product(range(len(design.size)), repeat=3):
        draws = np.array(sequence)
        pair, first = np.unique(draws, return_index=True)
        batch = np.where(first < 2, 1, 2).astype(np.int32)
        probability = float(np.prod(design.size[draws]))
        yield probability, Sample(pair, batch, design.inclusion()[pair], draws, design.pool_digest)


ENTRIES = {"poisson": poisson_entries, "iid": iid_entries}


def evaluated(pool: Pool, method: str, estimator: str, batches: int, probabilities: Design):
    for probability, sample in ENTRIES[method](design_for(pool, method)):
        labels = LabelRows(sample.pair, GRADE[sample.pair])
        result = evaluate(
            pool, PairRound(probabilities, sample), labels=labels, measures=[DCG], max_grade=3,
            batches=batches,
        ).results[0].estimators[estimator]  # fmt: skip
        none = np.zeros_like(result.covariance)
        nothing = none, none, np.zeros_like(result.value)
        yield probability, Totals(result.value, result.covariance, *nothing)


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
@pytest.mark.parametrize(("method", "estimator"), [("poisson", "ht"), ("iid", "is"), ("iid", "ht")])
@pytest.mark.parametrize("batches", [1, 2])
def test_every_prefix_of_batches_is_exactly_the_design(
    tiny_pool: Pool, method: str, estimator: str, batches: int
) -> None:
    design = design_for(tiny_pool, method)
    found = moments(evaluated(tiny_pool, method, estimator, batches, design))
    mean, covariance, estimated = found
    assert mean == pytest.approx(true_values(tiny_pool, grades=GRADE, measure=DCG), **EXACT)
    assert estimated == pytest.approx(covariance, **EXACT)


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
def test_twin_with_the_probabilities_of_another_prefix_is_caught(tiny_pool: Pool) -> None:
    design = design_for(tiny_pool, "poisson")
    steps = np.array([design.steps[1], design.steps[1]])
    wrong = Design(**{**vars(design), "steps": steps})
    mean, _, _ = moments(evaluated(tiny_pool, "poisson", "ht", 1, wrong))
    assert mean != pytest.approx(true_values(tiny_pool, grades=GRADE, measure=DCG), rel=1e-3)
