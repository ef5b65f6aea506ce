"""Agreement: against the package krippendorff, scikit-learn, and sums over every two judgments.

Twins count every two judgments of a pair alike, however many it has, and drawn pairs alike, however
likely they were; both are caught.
"""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from estimation.core.labels.alpha import (
    METRICS,
    Metric,
    alpha_of,
    alphas_by,
    by_grade,
    coincidences,
    reliability,
)
from estimation.core.labels.ratings import Ratings
from estimation.core.labels.two_raters import every_two, weighted_kappa
from tests.core.rated import crowd, of_rows, passages, simulated


def one_by_one(ratings: Ratings, metric: Metric) -> float:
    """Alpha from judgments alone: the mean distance within pairs over that between any two."""
    of_pairs: dict[int, list[int]] = {}
    for pair, grade in zip(ratings.pair.tolist(), ratings.grade.tolist(), strict=True):
        of_pairs.setdefault(pair, []).append(grade)
    several = [given for given in of_pairs.values() if len(given) > 1]
    every = sorted(grade for given in several for grade in given)
    often = [every.count(grade) for grade in range(ratings.grades)]

    def apart(one: int, other: int) -> float:
        if metric == "nominal":
            return float(one != other)
        if metric == "interval":
            return float((one - other) ** 2)
        low, high = sorted((one, other))
        return (sum(often[low : high + 1]) - (often[low] + often[high]) / 2) ** 2

    within = sum(
        apart(one, other) / (len(given) - 1)
        for given in several
        for one, other in permutations(given, 2)
    ) / len(every)
    between = sum(
        often[one] * often[other] * apart(one, other)
        for one in range(ratings.grades)
        for other in range(ratings.grades)
    ) / (len(every) * (len(every) - 1))
    return 1.0 - within / between


@pytest.mark.slow
def test_alpha_of_the_crowd_is_that_of_the_package(data_dir: Path) -> None:
    package = pytest.importorskip("krippendorff")
    ratings = crowd(data_dir)
    assert (ratings.pairs, ratings.raters) == (3387, 956)
    found = reliability(ratings)
    for metric in METRICS:
        theirs = package.alpha(value_counts=ratings.counts, level_of_measurement=metric)
        assert found.by_metric[metric].value == pytest.approx(theirs, abs=1e-9)
        assert found.by_metric[metric].low < theirs < found.by_metric[metric].high


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "raters"), [("main", 8), ("agreement", 8)])
def test_alpha_of_passages_is_that_of_the_package_and_of_every_two_judgments(
    data_dir: Path, kind: str, raters: int
) -> None:
    package = pytest.importorskip("krippendorff")
    ratings = passages(data_dir, kind)
    assert ratings.raters == raters
    table = coincidences(ratings.counts)
    for metric in METRICS:
        theirs = package.alpha(value_counts=ratings.counts, level_of_measurement=metric)
        assert alpha_of(table, metric) == pytest.approx(theirs, abs=1e-9)
        assert alpha_of(table, metric) == pytest.approx(one_by_one(ratings, metric), abs=1e-9)


def test_pairs_with_many_judgments_count_no_more_than_their_judgments() -> None:
    """The twin adds up all couples, so that a pair of eight counts 28 times one of two."""
    ratings, _ = simulated(np.random.default_rng(1), pairs=40, raters=8, each=5)
    fewer = ratings.part((ratings.pair < 20) | (np.arange(len(ratings)) % 5 < 2))
    table = coincidences(fewer.counts)
    assert alpha_of(table, "interval") == pytest.approx(one_by_one(fewer, "interval"), abs=1e-12)
    counts = fewer.counts[fewer.several].astype(float)
    twin = np.einsum("uc,uk->ck", counts, counts) - np.diag(counts.sum(axis=0))
    assert abs(alpha_of(twin, "interval") - one_by_one(fewer, "interval")) > 1e-3
    assert table.sum() == pytest.approx(fewer.counts[fewer.several].sum())


def test_weighted_by_the_draw_it_is_that_of_the_pool() -> None:
    """Pairs that are more likely drawn are those that people agree on less."""
    rng = np.random.default_rng(5)
    ratings, level = simulated(rng, pairs=3000, raters=9, each=2)
    pool = alpha_of(coincidences(ratings.counts), "ordinal")
    chance = np.where((level > 0.3) & (level < 2.2), 0.25, 0.05)
    plain, heavy = [], []
    for _ in range(60):
        drawn = rng.random(3000) < chance
        some = ratings.part(drawn[ratings.pair])
        plain.append(alpha_of(coincidences(some.counts), "ordinal"))
        heavy.append(alpha_of(coincidences(some.counts, np.where(drawn, 1 / chance, 0)), "ordinal"))
    error = np.std(heavy) / np.sqrt(60)
    assert abs(np.mean(heavy) - pool) < 3.5 * error + 0.005
    assert abs(np.mean(plain) - pool) > 8 * error


def test_equal_weights_are_none_and_neither_order_nor_names_matter() -> None:
    rng = np.random.default_rng(2)
    ratings, _ = simulated(rng, pairs=80, raters=6, each=3)
    same = reliability(ratings, weight=np.full(80, 7.5))
    mixed = rng.permutation(len(ratings))
    again = Ratings(
        ratings.pair[mixed], ratings.rater[mixed], ratings.grade[mixed], 80, 6, ratings.grades
    )
    first, second = reliability(ratings), reliability(again)
    for metric in METRICS:
        assert first.by_metric[metric] == second.by_metric[metric]
        assert same.by_metric[metric].value == pytest.approx(first.by_metric[metric].value)
    assert (first.pairs, first.judgments, first.cautions) == (80, 240, ())


@pytest.mark.slow
def test_intervals_hold_what_they_say() -> None:
    """The truth is alpha of very many pairs; each sample has 120 of them."""
    rng = np.random.default_rng(11)
    everything, _ = simulated(rng, pairs=60_000, raters=12, each=2)
    truth = alpha_of(coincidences(everything.counts), "interval")
    inside = 0
    for at in range(150):
        rows = (everything.pair >= 120 * at) & (everything.pair < 120 * (at + 1))
        some = everything.part(rows)
        found = reliability(some, seed=at).by_metric["interval"]
        inside += found.low <= truth <= found.high
    assert 0.88 <= inside / 150 <= 0.99


def test_what_cannot_be_relied_on_says_why() -> None:
    rng = np.random.default_rng(3)
    few, _ = simulated(rng, pairs=10, raters=3, each=2)
    assert reliability(few).cautions == ("few",)
    alone = reliability(of_rows([("a", "x", 1), ("b", "y", 0)], grades=2))
    assert alone.cautions == ("none",)
    assert np.isnan(alone.by_metric["nominal"].value)
    same = [(str(at), who, 1) for at in range(50) for who in "xy"]
    constant = reliability(of_rows(same, grades=3))
    assert constant.cautions == ("constant",)
    assert np.isnan(constant.by_metric["ordinal"].value)
    skewed = reliability(of_rows([*same, ("0", "x", 0), ("1", "y", 2)], grades=3))
    assert skewed.cautions == ("skewed",)


def test_alpha_by_topic_is_that_of_the_topic_alone() -> None:
    ratings, _ = simulated(np.random.default_rng(4), pairs=90, raters=5, each=3)
    group = np.arange(90) % 4
    values, pairs = alphas_by(ratings, group, groups=5, metric="ordinal")
    for at in range(4):
        alone = ratings.part(group[ratings.pair] == at)
        assert values[at] == pytest.approx(one_by_one(alone, "ordinal"), abs=1e-12)
        assert pairs[at] == np.count_nonzero(group == at)
    assert np.isnan(values[4])


def test_by_grade_it_is_alpha_of_that_grade_against_the_others(data_dir: Path) -> None:
    ratings = passages(data_dir, "agreement")
    found = by_grade(ratings.counts)
    for grade in range(4):
        is_it = (ratings.grade == grade).astype(np.int64)
        yes_no = Ratings(ratings.pair, ratings.rater, is_it, ratings.pairs, ratings.raters, 2)
        assert found.alpha[grade] == pytest.approx(one_by_one(yes_no, "nominal"), abs=1e-12)
    np.testing.assert_allclose(found.table.sum(axis=1), 1.0)
    beside = [
        other == 3
        for pair in range(ratings.pairs)
        for one, other in permutations(ratings.grade[ratings.pair == pair].tolist(), 2)
        if one == 3
    ]
    assert found.again[3] == pytest.approx(np.mean(beside))


@pytest.mark.slow
def test_kappa_of_every_two_is_that_of_scikit_learn(data_dir: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    ratings = passages(data_dir, "agreement")
    couples = every_two(ratings, least=20)
    assert [(each.first, each.second) for each in couples] == [
        (one, other) for one in range(8) for other in range(one + 1, 8)
    ]
    by_rater = [ratings.grade[ratings.rater == rater] for rater in range(8)]
    for each in couples:
        two = by_rater[each.first], by_rater[each.second]
        np.testing.assert_array_equal(
            each.counts, metrics.confusion_matrix(*two, labels=[0, 1, 2, 3])
        )
        for weights, theirs in (("linear", "linear"), ("quadratic", "quadratic"), ("equal", None)):
            expected = metrics.cohen_kappa_score(*two, labels=[0, 1, 2, 3], weights=theirs)
            assert weighted_kappa(each.counts, weights) == pytest.approx(expected, abs=1e-12)
            assert weighted_kappa(each.shares, weights) == pytest.approx(expected, abs=1e-12)


def test_two_who_share_too_little_are_no_couple() -> None:
    rows = [(str(at), who, at % 2) for at in range(6) for who in "xy"]
    assert len(every_two(of_rows(rows, grades=2), least=6)) == 1
    assert every_two(of_rows(rows, grades=2), least=7) == []
    assert np.isnan(weighted_kappa(np.array([[4, 0], [0, 0]])))


@pytest.mark.parametrize(
    ("column", "message"),
    [(0, "pair must lie"), (1, "rater must lie"), (2, "grade must lie")],
)
def test_rows_out_of_range_are_refused(column: int, message: str) -> None:
    columns = [np.array([0, 1]), np.array([0, 1]), np.array([0, 1])]
    columns[column][1] = 9
    with pytest.raises(ValueError, match=message):
        Ratings(*columns, 2, 2, 2)


def test_a_rater_does_not_grade_a_pair_twice() -> None:
    with pytest.raises(ValueError, match="rater 1 graded pair 0 twice"):
        Ratings(np.array([0, 0, 0]), np.array([1, 0, 1]), np.array([1, 1, 0]), 1, 2, 2)
