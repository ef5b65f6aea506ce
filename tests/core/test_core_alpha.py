"""Agreement: against the package krippendorff, scikit-learn, and sums over every two judgments.

The same of a campaign's page and answer, by ``python -m benchmarks.labels``.

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
from estimation.core.labels.ratings import OneAgainstOthers, Ratings
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


def against_one_by_one(
    machine: list[int], others: list[list[int]], weight: list[float], metric: Metric
) -> float:
    """Alpha of one rater and others, of whom each counts a share of their pair, from lists alone.

    Weights are scaled so that there are two judgments for each pair that weighs anything.
    """
    used = [
        (own, given, heavy)
        for own, given, heavy in zip(machine, others, weight, strict=True)
        if own >= 0 and given and heavy > 0
    ]
    scale = len(used) / sum(heavy for _, _, heavy in used)
    values = [(own, heavy * scale) for own, _, heavy in used]
    values += [(g, heavy * scale / len(given)) for _, given, heavy in used for g in given]
    often = [sum(share for grade, share in values if grade == at) for at in range(4)]

    def apart(one: int, other: int) -> float:
        if metric == "nominal":
            return float(one != other)
        if metric == "interval":
            return float((one - other) ** 2)
        low, high = sorted((one, other))
        return (sum(often[low : high + 1]) - (often[low] + often[high]) / 2) ** 2

    total = 2.0 * len(used)
    within = sum(
        2.0 * heavy * scale * sum(apart(own, grade) for grade in given) / len(given)
        for own, given, heavy in used
    )
    between = sum(often[c] * often[k] * apart(c, k) for c in range(4) for k in range(4))
    return 1.0 - (total - 1.0) * within / between


def machine_and_people(
    rng: np.random.Generator, pairs: int, most: int
) -> tuple[np.ndarray, np.ndarray, list[list[int]]]:
    """A machine that graded nine of ten pairs, and none to ``most`` people of each."""
    level = rng.integers(0, 4, pairs)
    people = [
        np.clip(at + rng.integers(-1, 2, rng.integers(0, most + 1)), 0, 3).tolist()
        for at in level.tolist()
    ]
    machine = np.clip(level + rng.integers(0, 2, pairs), 0, 3)
    machine[rng.random(pairs) < 0.1] = -1
    counts = np.array([np.bincount(np.array(given, int), minlength=4) for given in people])
    return machine, counts, people


def test_against_one_other_each_it_is_alpha_of_the_package() -> None:
    package = pytest.importorskip("krippendorff")
    machine, counts, people = machine_and_people(np.random.default_rng(21), 200, 1)
    table = [
        [at if at >= 0 else np.nan for at in machine.tolist()],
        [given[0] if given else np.nan for given in people],
    ]
    found = reliability(OneAgainstOthers(machine, counts))
    assert found.pairs == sum(
        own >= 0 and bool(of) for own, of in zip(machine, people, strict=True)
    )
    for metric in METRICS:
        theirs = package.alpha(reliability_data=table, level_of_measurement=metric)
        assert found.by_metric[metric].value == pytest.approx(theirs, abs=1e-9)
        assert found.by_metric[metric].low < theirs < found.by_metric[metric].high


def test_against_others_it_is_that_of_the_judgments_one_by_one_with_any_weights() -> None:
    """The twin takes the machine for one more person, and so tells of people's disagreement too."""
    rng = np.random.default_rng(22)
    machine, counts, people = machine_and_people(rng, 150, 4)
    weight = np.where(rng.random(150) < 0.2, 0.0, rng.uniform(0.5, 9.0, 150))
    against, group = OneAgainstOthers(machine, counts), np.arange(150) % 3
    for heavy in (np.ones(150), weight):
        found = reliability(against, weight=heavy)
        for metric in METRICS:
            expected = against_one_by_one(machine.tolist(), people, heavy.tolist(), metric)
            assert found.by_metric[metric].value == pytest.approx(expected, abs=1e-12)
        values, number = alphas_by(against, group, groups=4, metric="ordinal", weight=heavy)
        for at in range(3):
            rows = np.flatnonzero(group == at).tolist()
            inside = [machine[row] for row in rows], [people[row] for row in rows]
            expected = against_one_by_one(*inside, heavy[rows].tolist(), "ordinal")
            assert values[at] == pytest.approx(expected, abs=1e-12)
        assert number.sum() == found.pairs
        assert np.isnan(values[3])
        for grade, value in enumerate(by_grade(against, heavy).alpha.tolist()):
            is_it = [int(own == grade) if own >= 0 else -1 for own in machine.tolist()]
            others = [[int(each == grade) for each in given] for given in people]
            yes_no = against_one_by_one(is_it, others, heavy.tolist(), "nominal")
            assert value == pytest.approx(yes_no, abs=1e-12)
    own = np.where(machine >= 0, machine, 0)
    whole = counts + np.eye(4, dtype=np.int64)[own] * (machine >= 0)[:, None]
    twin = alpha_of(coincidences(whole), "ordinal")
    assert abs(twin - alpha_of(coincidences(against), "ordinal")) > 1e-2


@pytest.mark.slow
def test_against_others_intervals_hold_what_they_say() -> None:
    """With one to three people a pair, whose judgments stay together when pairs are redrawn.

    The twin redraws judgments, as if those of a pair knew nothing of each other."""
    truth = reliability(_against(np.random.default_rng(30), 60_000)).by_metric["interval"].value
    inside = narrow = 0
    for at in range(200):
        found = reliability(_against(np.random.default_rng(100 + at), 80), seed=at)
        one = found.by_metric["interval"]
        inside += one.low <= truth <= one.high
        twin = _one_by_one(np.random.default_rng(100 + at), 80)
        two = reliability(twin, seed=at).by_metric["interval"]
        narrow += two.low <= truth <= two.high
    assert 0.90 <= inside / 200 <= 0.985
    assert narrow < inside - 10


def _against(rng: np.random.Generator, pairs: int) -> OneAgainstOthers:
    level = rng.normal(1.5, 1.2, pairs)
    own = np.clip(np.round(level + rng.normal(0, 1.0, pairs)), 0, 3).astype(np.int64)
    which = np.repeat(np.arange(pairs), 1 + 3 * (np.arange(pairs) % 2))
    said = np.clip(np.round(level[which] + rng.normal(0, 0.3, len(which))), 0, 3).astype(np.int64)
    counts = np.bincount(which * 4 + said, minlength=4 * pairs).reshape(pairs, 4)
    return OneAgainstOthers(own, counts)


def _one_by_one(rng: np.random.Generator, pairs: int) -> OneAgainstOthers:
    whole = _against(rng, pairs)
    pair, grade = np.nonzero(whole.counts)
    times = whole.counts[pair, grade]
    pair, grade = np.repeat(pair, times), np.repeat(grade, times)
    return OneAgainstOthers(whole.grade[pair], np.eye(4, dtype=np.int64)[grade])


@pytest.mark.parametrize(
    ("machine", "people", "weight", "pairs", "cautions"),
    [
        ([-1, -1], [[1], [2]], [1, 1], 0, ("none",)),  # it graded nothing that people judged
        ([1, 2], [[], []], [1, 1], 0, ("none",)),
        ([1, 2], [[1], [2]], [0, 0], 0, ("none",)),  # nothing is known of what they stand for
        ([1, 1], [[1, 1], [1]], [1, 1], 2, ("constant",)),
        ([2], [[1]], [3], 1, ("few",)),
    ],
)
def test_against_nobody_or_without_two_grades_it_is_not_known(
    machine: list[int],
    people: list[list[int]],
    weight: list[float],
    pairs: int,
    cautions: tuple[str, ...],
) -> None:
    counts = np.array([np.bincount(np.array(given, int), minlength=4) for given in people])
    against = OneAgainstOthers(np.array(machine), counts)
    found = reliability(against, weight=np.array(weight, dtype=float))
    assert (found.pairs, found.cautions) == (pairs, cautions)
    for each in found.by_metric.values():
        assert np.isnan(each.value) == (cautions != ("few",))
        assert np.isnan([each.low, each.high]).all()


def test_a_grade_off_the_scale_is_refused() -> None:
    for grade in (-2, 4):
        with pytest.raises(ValueError, match="grade"):
            OneAgainstOthers(np.array([grade]), np.ones((1, 4), dtype=np.int64))
    with pytest.raises(ValueError, match="one value for each pair"):
        OneAgainstOthers(np.array([1, 2]), np.ones((1, 4), dtype=np.int64))


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
