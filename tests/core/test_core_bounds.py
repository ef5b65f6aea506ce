"""Guaranteed intervals: by hand, against the published width, and their exact coverage.

Coverage is computed, not simulated, where all outcomes of a small population can be listed: the
bound must hold for every utility vector. Each has a twin with one plausible mistake that fails.
"""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from scipy import sparse, stats

from estimation.core.data.labels import PairLabels
from estimation.core.inference.basis import draw_covariance
from estimation.core.inference.bounds import (
    empirical_bernstein_half_widths,
    hoeffding_half_widths,
    label_noise_ranges,
)
from estimation.core.inference.intervals import difference_variances, zero_limit
from estimation.core.inference.poisson_bounds import (
    bernstein_half_widths,
    chernoff_limits,
    poisson_bernstein_scales,
)
from estimation.core.inference.ranges import BLOCK_ROWS, BoundError, difference_ranges, draw_ranges

WEIGHTS = np.array([[0.5, 0.2, 0.0], [0.3, 0.3, 0.1], [0.0, 0.4, 0.4], [0.2, 0.0, 0.7]])
CHANCE = np.array([0.05, 0.45, 0.3, 0.2])  # of one draw
BEST = 3.0
MATRIX = sparse.csr_array(WEIGHTS)
DRAWS = 25


def poisson_half_widths(
    weights: sparse.csr_array,
    *,
    confidence: float = 0.95,
    differences: bool = False,
    **population: object,
) -> np.ndarray:
    """Bernstein's bound of a Poisson sample."""
    scales = poisson_bernstein_scales(weights, differences=differences, **population)
    return bernstein_half_widths(*scales, confidence=confidence)


# ------------------------------------------------------------------------------- by hand


def test_range_of_a_draw_is_its_largest_value() -> None:
    found = draw_ranges(MATRIX, probability=CHANCE, max_utility=BEST)
    assert found == pytest.approx(BEST * (WEIGHTS / CHANCE[:, None]).max(axis=0))


def brute_difference_ranges(weights: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Over both utilities that a pair can have at the extremes, 0 and M."""
    terms = (weights[:, :, None] - weights[:, None, :]) / chance[:, None, None]
    outcomes = np.concatenate([BEST * terms, 0.0 * terms])
    return outcomes.max(axis=0) - outcomes.min(axis=0)


def test_range_of_a_difference_counts_that_nothing_may_be_gained() -> None:
    found = difference_ranges(MATRIX, probability=CHANCE, max_utility=BEST)
    assert found == pytest.approx(brute_difference_ranges(WEIGHTS, CHANCE))
    dominated = np.array([[2.0, 1.0], [4.0, 1.0]])
    even = np.array([0.5, 0.5])
    found = difference_ranges(sparse.csr_array(dominated), probability=even, max_utility=BEST)
    assert found.tolist() == [[0.0, 18.0], [18.0, 0.0]]


def test_difference_ranges_of_more_pairs_than_a_block() -> None:
    rng = np.random.default_rng(5)
    dense = rng.random((2 * BLOCK_ROWS + 7, 4)) * (rng.random((2 * BLOCK_ROWS + 7, 4)) < 0.5)
    chance = rng.dirichlet(np.ones(len(dense)))
    found = difference_ranges(sparse.csr_array(dense), probability=chance, max_utility=BEST)
    assert found == pytest.approx(brute_difference_ranges(dense, chance))


def test_ranges_do_not_depend_on_the_order_of_runs_and_pairs() -> None:
    runs, pairs = [2, 0, 1], [3, 1, 0, 2]
    moved = sparse.csr_array(WEIGHTS[pairs][:, runs])
    options = {"probability": CHANCE[pairs], "max_utility": BEST}
    plain = {"probability": CHANCE, "max_utility": BEST}
    assert np.array_equal(draw_ranges(moved, **options), draw_ranges(MATRIX, **plain)[runs])
    whole = difference_ranges(MATRIX, **plain)
    assert np.array_equal(difference_ranges(moved, **options), whole[np.ix_(runs, runs)])
    for differences in (False, True):
        first = poisson_half_widths(MATRIX, **plain, differences=differences)
        second = poisson_half_widths(moved, **options, differences=differences)
        expected = first[np.ix_(runs, runs)] if differences else first[runs]
        assert second == pytest.approx(expected, rel=1e-12)


def test_half_widths_by_hand() -> None:
    ranges = np.array([2.0, 0.0])
    log = math.log(2 / 0.1)
    found = hoeffding_half_widths(ranges, draws=50, confidence=0.9)
    assert found == pytest.approx([2 * math.sqrt(log / 100), 0])
    variance = np.array([0.3, 0.0])
    found = empirical_bernstein_half_widths(ranges, variance=variance, draws=50, confidence=0.9)
    log = math.log(30)
    assert found == pytest.approx([math.sqrt(0.6 * log / 50) + 6 * log / 50, 0])


def test_matrices_of_differences_keep_their_shape() -> None:
    ranges = difference_ranges(MATRIX, probability=CHANCE, max_utility=BEST)
    assert hoeffding_half_widths(ranges, draws=9).shape == (3, 3)
    found = empirical_bernstein_half_widths(ranges, variance=ranges, draws=9)
    assert found.shape == (3, 3)
    assert np.diag(found).tolist() == [0.0] * 3


# ------------------------------------------------------------------------- published width


def synth_half_width(eps: float, form: str = "paper") -> float:
    """One run of SYNTH: 6000 users alike, 2000 ranks, Q in proportion to p * lambda + eps."""
    ranks = np.arange(1, 2001)
    discount = 1 / np.log(1 + ranks)
    size = 4 * (1 - ranks / 2000) * discount + eps
    weights = sparse.csr_array(discount[:, None] / 6000)
    ranges = draw_ranges(weights, probability=size / (6000 * size.sum()), max_utility=4.0)
    return float(hoeffding_half_widths(ranges, draws=30_000, form=form)[0])


def test_the_printed_form_gives_the_published_width() -> None:
    """Schnabel, Swaminathan and Joachims, table 9: 367.79; eps is known to three digits."""
    assert synth_half_width(0.0163) == pytest.approx(367.79, rel=0.003)
    assert synth_half_width(0.01635) < 367.79 < synth_half_width(0.01625)
    assert synth_half_width(0.0163, "corrected") == pytest.approx(367.79 / 2, rel=0.003)


# ------------------------------------------------------------------- exact coverage of draws


def compositions(total: int, parts: int) -> np.ndarray:
    """Every way in which `total` draws fall on `parts` pairs."""
    cells = [c for c in product(range(total + 1), repeat=parts - 1) if sum(c) <= total]
    return np.array([(*c, total - sum(c)) for c in cells])


COUNTS = compositions(DRAWS, len(CHANCE))
LIKELIHOOD = stats.multinomial.pmf(COUNTS, DRAWS, CHANCE)
UTILITIES = [BEST * np.array(hit) for hit in product([0.0, 0.5, 1.0], repeat=4)]


def coverages(contrast: np.ndarray, width_of) -> np.ndarray:
    """P(|mean - truth| <= width) for every utility vector; width_of(variance) -> half widths."""
    found = []
    for utility in UTILITIES:
        terms = utility * contrast / CHANCE
        mean = COUNTS @ terms / DRAWS
        variance = np.maximum(COUNTS @ terms**2 - DRAWS * mean**2, 0.0) / (DRAWS - 1)
        inside = np.abs(mean - utility @ contrast) <= width_of(variance) + 1e-12
        found.append(LIKELIHOOD[inside].sum())
    return np.array(found)


CONTRASTS = [
    ("run 0", WEIGHTS[:, 0], lambda: _ranges()[0]),
    ("run 2", WEIGHTS[:, 2], lambda: _ranges()[2]),
    ("0 less 1", WEIGHTS[:, 0] - WEIGHTS[:, 1], lambda: _difference_ranges()[0, 1]),
    ("1 less 2", WEIGHTS[:, 1] - WEIGHTS[:, 2], lambda: _difference_ranges()[1, 2]),
]


def _ranges() -> np.ndarray:
    return draw_ranges(MATRIX, probability=CHANCE, max_utility=BEST)


def _difference_ranges() -> np.ndarray:
    return difference_ranges(MATRIX, probability=CHANCE, max_utility=BEST)


def bernstein(scale: float):
    ranges = np.full(len(COUNTS), scale)
    return lambda variance: empirical_bernstein_half_widths(
        ranges, variance=variance, draws=DRAWS, confidence=0.9
    )


@pytest.mark.parametrize(
    ("contrast", "scale"), [c[1:] for c in CONTRASTS], ids=[c[0] for c in CONTRASTS]
)
def test_bounds_cover_every_utility_vector(contrast: np.ndarray, scale) -> None:
    assert LIKELIHOOD.sum() == pytest.approx(1.0)
    width = hoeffding_half_widths(np.array([scale()]), draws=DRAWS, confidence=0.9)[0]
    assert coverages(contrast, lambda _: width).min() >= 0.9
    assert coverages(contrast, bernstein(scale())).min() >= 0.9


def test_twins_without_the_range_factor_are_caught() -> None:
    contrast = WEIGHTS[:, 0]
    width = hoeffding_half_widths(np.array([BEST]), draws=DRAWS, confidence=0.9)[0]
    assert coverages(contrast, lambda _: width).min() < 0.9
    assert coverages(contrast, bernstein(0.0)).min() < 0.9


def test_the_bound_is_not_wider_than_it_claims() -> None:
    """On a fair coin Hoeffding's bound of 60 % covers 60 to 95 %; the printed form covers more."""
    heads = np.arange(41)
    error = np.abs(heads / 40 - 0.5)
    chance = stats.binom.pmf(heads, 40, 0.5)

    def covered(form: str) -> float:
        width = hoeffding_half_widths(np.ones(1), draws=40, confidence=0.6, form=form)
        return float(chance[error <= width].sum())

    assert 0.6 <= covered("corrected") < 0.95
    assert covered("paper") > 0.98


def test_the_empirical_bound_shrinks_with_the_variance() -> None:
    ranges = np.ones(2)
    found = empirical_bernstein_half_widths(ranges, variance=np.array([1e-4, 0.25]), draws=2000)
    hoeffding = hoeffding_half_widths(ranges, draws=2000)
    assert found[0] < hoeffding[0] / 3
    assert found[1] > hoeffding[1]


def test_covariance_of_draws_is_the_sample_covariance() -> None:
    sequence = np.array([1, 1, 3, 2, 1, 3, 2])
    utility = np.array([1.0, 3.0, 0.5, 2.0])
    pairs, counts = np.unique(sequence, return_counts=True)
    labels = PairLabels(utility[pairs], np.full(3, 2), np.full(3, 9.0), True)
    found = draw_covariance(
        sparse.csr_array(WEIGHTS[pairs]), labels, probability=CHANCE[pairs], counts=counts
    )
    terms = (utility / CHANCE)[sequence, None] * WEIGHTS[sequence]
    assert found == pytest.approx(np.cov(terms, rowvar=False))
    differences = difference_variances(found)
    assert differences[0, 1] == pytest.approx(np.var(terms[:, 0] - terms[:, 1], ddof=1))


# ----------------------------------------------------------------------- disagreeing assessors


def noisy_campaigns(campaigns: int, draws: int) -> np.ndarray:
    """Errors of run 0 when each pair has one 0-or-M label that repeated draws bring again."""
    rng = np.random.default_rng(11)
    share = np.array([0.5, 0.5, 0.4, 0.6])
    label = BEST * (rng.random((campaigns, 4)) < share)
    counts = rng.multinomial(draws, CHANCE, size=campaigns)
    value = (counts * label * (WEIGHTS[:, 0] / CHANCE)).sum(axis=1) / draws
    return np.abs(value - BEST * share @ WEIGHTS[:, 0])


def of_assessors(confidence: float, differences: bool = False) -> np.ndarray:
    ranges = label_noise_ranges(MATRIX, max_utility=BEST, differences=differences)
    return hoeffding_half_widths(ranges, draws=1, confidence=confidence)


def test_labels_that_repeat_need_the_bound_for_assessors() -> None:
    errors = noisy_campaigns(4000, draws=2000)
    draws_alone = hoeffding_half_widths(_ranges()[:1], draws=2000, confidence=0.9)[0]
    assert (errors <= draws_alone).mean() < 0.8
    half = hoeffding_half_widths(_ranges()[:1], draws=2000, confidence=0.95)[0]
    noise = of_assessors(0.95)[0]
    assert (errors <= half + noise).mean() >= 0.9
    assert noise == pytest.approx(BEST * math.sqrt(math.log(40) * 0.38 / 2))


def test_disagreement_moves_differences_only_where_runs_differ() -> None:
    apart = of_assessors(0.95, differences=True)
    squares = ((WEIGHTS[:, 0] - WEIGHTS[:, 1]) ** 2).sum()
    assert apart[0, 1] == pytest.approx(BEST * math.sqrt(math.log(40) * squares / 2))


# ---------------------------------------------------------------- exact coverage under poisson

INCLUSION = np.array([0.05, 1.0, 0.3, 0.6])


def poisson_outcomes(noisy: bool) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For every mean utility vector: its truth per run, probabilities and values of all outcomes.

    A noisy label is 0 or M with the vector's mean; otherwise it is the mean itself.
    """
    states = np.array(list(product([0, 1, 2], repeat=4)))  # not sampled, label 0, label M
    for utility in UTILITIES:
        if noisy:
            hit = utility / BEST
            chances = np.stack([1 - INCLUSION, INCLUSION * (1 - hit), INCLUSION * hit])
            labels = np.array([0.0, 0.0, BEST])[states]
        else:
            chances = np.stack([1 - INCLUSION, INCLUSION, np.zeros(4)])
            labels = np.where(states > 0, utility, 0.0)
        likelihood = chances[states, np.arange(4)].prod(axis=1)
        yield utility @ WEIGHTS, likelihood, (labels / INCLUSION) @ WEIGHTS


def poisson_coverage(noisy: bool, covers) -> np.ndarray:
    """Lowest coverage over utility vectors; covers(truth, values) -> (outcomes, ...)."""
    found = []
    for truth, likelihood, values in poisson_outcomes(noisy):
        assert likelihood.sum() == pytest.approx(1.0)
        found.append(np.tensordot(likelihood, covers(truth, values), axes=1))
    return np.min(found, axis=0)


def within(width: np.ndarray):
    return lambda truth, values: np.abs(values - truth) <= width + 1e-12


def differences_within(width: np.ndarray):
    def covers(truth: np.ndarray, values: np.ndarray) -> np.ndarray:
        apart = values[:, :, None] - values[:, None, :]
        return np.abs(apart - np.subtract.outer(truth, truth)) <= width + 1e-12

    return covers


@pytest.mark.parametrize("noisy", [True, False])
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_bernstein_covers_poisson_samples(noisy: bool, confidence: float) -> None:
    options = {"probability": INCLUSION, "max_utility": BEST, "confidence": confidence}
    width = poisson_half_widths(MATRIX, **options)
    assert poisson_coverage(noisy, within(width)).min() >= confidence
    apart = poisson_half_widths(MATRIX, differences=True, **options)
    assert poisson_coverage(noisy, differences_within(apart)).min() >= confidence


def test_bernstein_by_hand_and_for_certain_pairs() -> None:
    weights = sparse.csr_array([[0.5], [2.0]])
    options = {"probability": np.array([0.2, 1.0]), "max_utility": BEST, "confidence": 0.9}
    log = math.log(20)
    linear, variance = 7.5 * log / 3, 1.5**2 * 4 + 36 / 4
    expected = linear + math.sqrt(linear**2 + 2 * variance * log)
    assert poisson_half_widths(weights, **options) == pytest.approx([expected])


def test_bernstein_allows_for_assessors_in_a_census() -> None:
    """With certain labels nothing varies there, and a bound that forgets assessors would be 0."""
    found = poisson_half_widths(MATRIX, probability=np.ones(4), max_utility=BEST)
    assert found.min() > 0.0


def test_bernstein_twin_without_the_linear_term_is_caught() -> None:
    variance = ((BEST * WEIGHTS) ** 2 * ((1 - INCLUSION) / INCLUSION)[:, None]).sum(axis=0)
    width = np.sqrt(2 * 0.1 * variance)  # ln(2 / 0.9) instead of ln(2 / 0.1)
    assert poisson_coverage(False, within(width)).min() < 0.9


def chernoff(scale: np.ndarray, confidence: float):
    def covers(truth: np.ndarray, values: np.ndarray) -> np.ndarray:
        scales = np.broadcast_to(scale, values.shape)
        low, high = chernoff_limits(values, scale=scales, confidence=confidence)
        return (low <= truth + 1e-12) & (truth <= high + 1e-12)

    return covers


@pytest.mark.slow
@pytest.mark.parametrize("noisy", [True, False])
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_chernoff_limits_cover_poisson_samples(noisy: bool, confidence: float) -> None:
    scale = BEST * (WEIGHTS / INCLUSION[:, None]).max(axis=0)
    assert poisson_coverage(noisy, chernoff(scale, confidence)).min() >= confidence
    assert poisson_coverage(noisy, chernoff(scale / 10, confidence)).min() < confidence


def test_chernoff_limits_solve_their_equation() -> None:
    value, scale = np.array([0.0, 1e-9, 3.0, 4e4, 5.0]), np.array([2.0, 2.0, 2.0, 0.5, 0.0])
    low, high = chernoff_limits(value, scale=scale, confidence=0.9)
    log, sums = math.log(20), value[1:4] / scale[1:4]
    for end in (low, high):
        mean = end[1:4] / scale[1:4]
        with np.errstate(divide="ignore"):
            found = mean - sums + sums * np.log(sums / mean)
        reached = end[1:4] > 1e-6
        assert found[reached] == pytest.approx(log, rel=1e-5)
    assert np.all((low >= 0.0) & (low <= value) & (value <= high))
    assert (low[0], high[0]) == (0.0, pytest.approx(2.0 * log))
    assert (low[4], high[4]) == (5.0, 5.0)


def test_an_estimate_of_zero_has_the_limit_that_pages_show() -> None:
    ratios = np.array([0.4, 7.0])
    expected = zero_limit(ratios, max_utility=BEST, confidence=0.9)
    found = chernoff_limits(np.zeros(2), scale=BEST * ratios, confidence=0.9)
    assert found[1] == pytest.approx(expected, rel=1e-12)


def test_chernoff_limits_of_draws_are_narrower_than_hoeffding() -> None:
    ranges = np.array([23_400.0])
    low, high = chernoff_limits(np.array([284.4]), scale=ranges / 30_000)
    assert max(high[0] - 284.4, 284.4 - low[0]) < hoeffding_half_widths(ranges, draws=30_000)[0] / 4


# ------------------------------------------------------------------------------- bad input


UNREACHED = np.array([0.0, 0.5, 0.3, 0.2])


def test_weights_out_of_reach_are_refused() -> None:
    options = {"probability": UNREACHED, "max_utility": BEST}
    message = "probability is 0 for pair 0, on which run 0 has the weight 0.5"
    for bound in (draw_ranges, poisson_half_widths):
        with pytest.raises(BoundError, match=message):
            bound(MATRIX, **options)
    same = sparse.csr_array(np.column_stack([WEIGHTS[:, 0], WEIGHTS[:, 0], WEIGHTS[:, 2]]))
    message = r"pair 0, on which the runs 0 and 2 have the weights 0\.5"
    with pytest.raises(BoundError, match=message):
        difference_ranges(same, **options)
    with pytest.raises(BoundError, match=message):
        poisson_half_widths(same, **options, differences=True)
    twins = sparse.csr_array(WEIGHTS[:, [0, 0]])
    assert difference_ranges(twins, **options).tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probability": np.array([0.5, 0.5])}, r"probability has the shape \(2,\)"),
        ({"probability": np.array([0.5, 1.5, 0.3, 0.2])}, r"between 0 and 1, not 1.5 \(item 1\)"),
        ({"probability": np.array([0.5, 0.1, np.nan, 0.2])}, r"probability .* nan \(item 2\)"),
        ({"max_utility": 0.0}, "max_utility must be a finite number above 0, not 0.0"),
        ({"max_utility": math.inf}, "max_utility .* inf"),
    ],
)
def test_populations_that_make_no_sense_are_refused(options: dict, message: str) -> None:
    for bound in (draw_ranges, difference_ranges, poisson_half_widths):
        with pytest.raises(BoundError, match=message):
            bound(MATRIX, **({"probability": CHANCE, "max_utility": BEST} | options))


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_weights_that_make_no_sense_are_refused(bad: float) -> None:
    weights = sparse.csr_array([[0.5, 0.1], [0.0, bad]])
    options = {"max_utility": BEST}
    even = {"probability": np.array([0.5, 0.5])}
    with pytest.raises(BoundError, match=r"weights must be finite .* \(item 2\)"):
        label_noise_ranges(weights, **options)
    for bound in (draw_ranges, difference_ranges, poisson_half_widths):
        with pytest.raises(BoundError, match=r"weights must be finite .* \(item 2\)"):
            bound(weights, **options, **even)


def test_numbers_out_of_range_are_refused() -> None:
    one = np.ones(1)
    for confidence in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="confidence"):
            hoeffding_half_widths(one, draws=5, confidence=confidence)
    with pytest.raises(BoundError, match="draws must be at least 1, not 0"):
        hoeffding_half_widths(one, draws=0)
    with pytest.raises(BoundError, match=r"ranges must be at least 0, not -1.0 \(item 0\)"):
        hoeffding_half_widths(-one, draws=1)
    with pytest.raises(BoundError, match="form must be one of corrected, paper, not 'printed'"):
        hoeffding_half_widths(one, draws=1, form="printed")
    with pytest.raises(BoundError, match="draws must be at least 2, not 1"):
        empirical_bernstein_half_widths(one, variance=one, draws=1)
    with pytest.raises(BoundError, match=r"variance must be at least 0, not nan \(item 0\)"):
        empirical_bernstein_half_widths(one, variance=one * math.nan, draws=2)
    with pytest.raises(BoundError, match="variance has the shape"):
        empirical_bernstein_half_widths(one, variance=np.ones(2), draws=2)
    with pytest.raises(BoundError, match=r"value must be finite and at least 0, not -1\.0"):
        chernoff_limits(-one, scale=one)
    with pytest.raises(BoundError, match=r"value has the shape \(1,\), but scale \(2,\)"):
        chernoff_limits(one, scale=np.ones(2))
    labels = PairLabels(one, np.array([1]), np.zeros(1), False)
    with pytest.raises(BoundError, match="counts must add up to at least 2 draws, not 1"):
        draw_covariance(
            sparse.csr_array([[1.0]]), labels, probability=one / 2, counts=np.array([1])
        )
