"""Competence, severity, aggregates: against literal steps, numbers of crowd-kit, simulation."""

from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows, pair_labels
from estimation.core.labels.aggregates import (
    adjusted_mean,
    leniency,
    majority,
    most_likely,
    rows_of_grades,
)
from estimation.core.labels.dawid_skene import dawid_skene
from estimation.core.labels.ratings import Ratings
from estimation.core.labels.severity import severity
from estimation.core.measures.table import parse_measure
from tests.core.rated import crowd, of_rows, simulated


def literal(ratings: Ratings, steps: int, pseudo: float) -> tuple[np.ndarray, list[float]]:
    """Expectation maximization with dictionaries, one judgment at a time."""
    rows = list(
        zip(ratings.pair.tolist(), ratings.rater.tolist(), ratings.grade.tolist(), strict=True)
    )
    grades = range(ratings.grades)
    post = {}
    for pair in range(ratings.pairs):
        given = [g for p, _, g in rows if p == pair]
        post[pair] = [given.count(g) / len(given) for g in grades]
    likelihoods = []
    for step in range(steps + 1):
        prior = [sum(each[k] for each in post.values()) / len(post) for k in grades]
        said = {
            (a, k): [
                (pseudo if x == k else pseudo / 4 / (ratings.grades - 1))
                + sum(post[p][k] for p, r, g in rows if (r, g) == (a, x))
                for x in grades
            ]
            for a in range(ratings.raters)
            for k in grades
        }
        said = {key: [max(each, 1e-10) for each in cells] for key, cells in said.items()}
        chance = {key: [each / sum(cells) for each in cells] for key, cells in said.items()}
        if step == steps:
            return np.array([post[pair] for pair in range(ratings.pairs)]), likelihoods
        total = 0.0
        for pair in post:
            joint = [
                max(prior[k], 1e-10)
                * exp(sum(log(chance[a, k][g]) for p, a, g in rows if p == pair))
                for k in grades
            ]
            total += log(sum(joint))
            post[pair] = [each / sum(joint) for each in joint]
        penalty = sum(
            (pseudo if x == k else pseudo / 4 / (ratings.grades - 1)) * log(each)
            for (_, k), cells in chance.items()
            for x, each in enumerate(cells)
        )
        likelihoods.append((total + penalty) / len(rows))
    raise AssertionError


@pytest.mark.parametrize("pseudo", [0.0, 0.5])
def test_the_steps_are_those_of_one_judgment_at_a_time(pseudo: float) -> None:
    ratings, _ = simulated(np.random.default_rng(7), pairs=25, raters=4, each=3, grades=3)
    expected, likelihoods = literal(ratings, 12, pseudo)
    found = dawid_skene(ratings, pseudo=pseudo, tolerance=0.0, steps=12)
    np.testing.assert_allclose(found.posterior, expected, atol=1e-9)
    assert found.log_likelihood == pytest.approx(likelihoods[-1], abs=1e-9)
    assert likelihoods == sorted(likelihoods)


@pytest.mark.slow
def test_the_crowd_is_what_crowd_kit_makes_of_it(data_dir: Path) -> None:
    """Numbers of DawidSkene of crowd-kit 1.4.2 after 100 and 1000 steps, on the same votes.

    ``python -m benchmarks.labels`` has crowd-kit compute them anew (``--steps 1000``: in minutes).
    """
    ratings = crowd(data_dir)
    early = dawid_skene(ratings, tolerance=0.0, steps=100)
    assert early.steps == 100
    np.testing.assert_allclose(early.prior, [0.4450787297711588, 0.5549212702288416], atol=1e-8)
    assert early.posterior[:, 1].sum() == pytest.approx(1879.5183423232234, abs=1e-5)
    late = dawid_skene(ratings, tolerance=0.0, steps=1000)
    assert late.converged
    np.testing.assert_allclose(late.prior, [0.4450081282672377, 0.5549918717327622], atol=1e-6)
    assert late.posterior[:, 1].sum() == pytest.approx(1879.757469617698, abs=1e-3)


@pytest.mark.slow
def test_the_crowds_truth_is_nearer_to_gold_than_its_majority(data_dir: Path) -> None:
    ratings = crowd(data_dir)
    lines = (data_dir / "crowd-trec2011" / "gold.tsv").read_text().splitlines()[1:]
    gold = {tuple(c[:2]): int(c[2]) for c in (line.split("\t") for line in lines)}
    model = dawid_skene(ratings, pseudo=0.5)
    names = _pairs_of(data_dir)
    known = np.array([gold.get(name, -1) for name in names])
    true = known > 0
    right = [
        np.mean(aggregate[known >= 0] == true[known >= 0])
        for aggregate in (most_likely(model, ratings.counts), majority(ratings.counts))
    ]
    assert np.count_nonzero(known >= 0) > 300
    assert right[0] > right[1]


def _pairs_of(data_dir: Path) -> list[tuple[str, ...]]:
    import gzip

    with gzip.open(data_dir / "crowd-trec2011" / "labels.tsv.gz", "rt") as lines:
        next(lines)
        found = {tuple(line.split("\t")[:2]) for line in lines}
    return sorted(found, key=lambda name: f"{name[0]} {name[1]}")


def test_where_all_agree_a_grade_that_is_rare_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin has as many pseudo-judgments in every cell, and takes rare grades for errors."""
    grade = np.repeat([0, 1, 2, 3], [24, 3, 2, 1])
    pair = np.repeat(np.arange(30), 2)
    ratings = Ratings(pair, np.tile([0, 1], 30), grade[pair], 30, 2, 4)
    found = dawid_skene(ratings, pseudo=0.5)
    np.testing.assert_array_equal(most_likely(found, ratings.counts), grade)
    monkeypatch.setattr("estimation.core.labels.dawid_skene.ASTRAY", 3.0)
    twin = dawid_skene(ratings, pseudo=0.5)
    assert (most_likely(twin, ratings.counts) != grade).any()


def test_confusions_are_found_again_and_spammers_tell_nothing() -> None:
    rng = np.random.default_rng(8)
    truth = rng.choice(3, size=600, p=[0.5, 0.3, 0.2])
    good = np.array([[0.85, 0.1, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]])
    lenient = np.array([[0.3, 0.6, 0.1], [0.0, 0.3, 0.7], [0.0, 0.0, 1.0]])
    luck = np.full((3, 3), 1 / 3)
    one = np.tile([0.0, 1.0, 0.0], (3, 1))
    kinds = [good, good, good, good, lenient, luck, one]
    pair, rater = (each.ravel() for each in np.mgrid[:600, : len(kinds)])
    chance = np.array(kinds)[rater, truth[pair]]
    grade = (rng.random(len(pair))[:, None] > chance.cumsum(axis=1)).sum(axis=1)
    found = dawid_skene(Ratings(pair, rater, grade, 600, len(kinds), 3), pseudo=0.5)
    assert found.converged
    np.testing.assert_allclose(found.confusion[:5], np.array(kinds)[:5], atol=0.08)
    assert np.mean(found.posterior.argmax(axis=1) == truth) > 0.95
    assert found.competence[0] == pytest.approx(0.82, abs=0.04)
    assert found.informed[5:].max() < 0.02
    assert found.informed[:5].min() > 0.3
    assert found.competence[6] > found.informed[6] + 0.2  # right at times, and tells nothing


def test_bias_is_against_the_others_and_not_against_a_mean_with_oneself() -> None:
    """The twin has the person in the mean, and halves what two differ by."""
    rows = [(str(at), "kind", 2) for at in range(20)] + [(str(at), "strict", 1) for at in range(20)]
    ratings = of_rows(rows, grades=3)
    found = severity(ratings, topic=np.arange(20) % 4)
    np.testing.assert_allclose(found.bias, [1.0, -1.0])
    np.testing.assert_allclose(found.spread, 0.0)
    np.testing.assert_array_equal(found.shared, [20, 20])
    np.testing.assert_array_equal(found.same, 0.0)


def test_bias_is_that_of_the_judgments_one_by_one() -> None:
    ratings, _ = simulated(np.random.default_rng(9), pairs=60, raters=7, each=3)
    topic = np.arange(60) % 9
    weight = np.random.default_rng(1).uniform(0.5, 4.0, 60)
    found = severity(ratings, topic=topic, weight=weight)
    for rater in range(7):
        apart, heavy = [], []
        for pair, grade in zip(
            ratings.pair[ratings.rater == rater], ratings.grade[ratings.rater == rater], strict=True
        ):
            others = ratings.grade[(ratings.pair == pair) & (ratings.rater != rater)]
            apart.append(grade - others.mean())
            heavy.append(weight[pair])
        assert found.bias[rater] == pytest.approx(np.average(apart, weights=heavy))
        assert found.low[rater] < found.bias[rater] < found.high[rater]


def test_the_interval_of_a_bias_holds_what_it_says() -> None:
    rng, inside, told = np.random.default_rng(10), 0, 0
    lenient = np.array([0.5, 0.0, 0.0, -0.5, 0.0])
    # what the bias would be with very many pairs: grades end where the scale ends
    many, _ = simulated(rng, pairs=60_000, raters=5, each=2, lenient=lenient)
    truth = severity(many, topic=np.arange(60_000)).bias
    for _ in range(100):
        some, _ = simulated(rng, pairs=120, raters=5, each=2, lenient=lenient)
        found = severity(some, topic=np.arange(120) % 12)
        inside += int(((found.low <= truth) & (truth <= found.high)).sum())
        told += 5
    assert 0.90 <= inside / told <= 0.98
    assert truth[0] > 0.3 > -0.2 > truth[3]


def test_of_too_little_nothing_is_told() -> None:
    rows = [(str(at), who, at % 2) for at in range(4) for who in "xy"]
    found = severity(of_rows(rows, grades=2), topic=np.zeros(4, dtype=np.int64))
    assert np.isnan(found.bias).all()
    rows = [(str(at), who, at % 2) for at in range(8) for who in "xy"]
    found = severity(of_rows(rows, grades=2), topic=np.arange(8) % 2)
    assert np.isfinite(found.bias).all()
    assert np.isnan(found.low).all()  # two topics
    with pytest.raises(ValueError, match="a judgment"):
        dawid_skene(of_rows(rows, grades=2).part(np.zeros(16, dtype=bool)))


def test_the_majority_of_a_tie_is_the_nearest_to_the_mean() -> None:
    counts = np.array([[1, 0, 2, 0], [2, 2, 0, 0], [1, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 1]])
    assert majority(counts).tolist() == [2, 0, 1, -1, 0]


@pytest.mark.slow
def test_leniency_is_found_where_people_judged_different_pairs() -> None:
    lenient = np.array([0.4, 0.0, -0.4, 0.2, -0.2, 0.0])
    ratings, level = simulated(
        np.random.default_rng(12), pairs=3000, raters=6, each=3, grades=9, lenient=lenient + 3
    )
    found = leniency(ratings)
    np.testing.assert_allclose(found, lenient, atol=0.06)
    plain = ratings.pair[ratings.rater < 2]
    kind = np.unique(plain)
    mean = np.bincount(ratings.pair, weights=ratings.grade) / 3
    off = [np.mean((each - level - 3)[kind] ** 2) for each in (adjusted_mean(ratings), mean)]
    assert off[0] < off[1]


def test_who_shares_no_pair_is_neither_lenient_nor_severe() -> None:
    rows = [(str(at), "alone", 2) for at in range(9)] + [("x", "a", 2), ("x", "b", 0)]
    found = leniency(of_rows(rows, grades=3))
    assert found[1] == 0.0  # a, alone, b
    assert found[0] > 0.0 > found[2]


def test_rows_of_grades_have_their_gain_and_that_between_two_in_proportion() -> None:
    measure = parse_measure("DCG@10")
    rows = rows_of_grades(np.array([1.25, 0.0, np.nan, 3.0]))
    assert isinstance(rows, LabelRows)
    assert np.unique(rows.pair).tolist() == [0, 1, 3]
    place = np.searchsorted([0, 1, 3], rows.pair)
    found = pair_labels(LabelRows(place, rows.grade), pairs=3, measure=measure)
    gain = measure.utilities(np.arange(4))
    expected = [0.75 * gain[1] + 0.25 * gain[2], gain[0], gain[3]]
    np.testing.assert_allclose(found.mean, expected, atol=1e-12)
    whole = rows_of_grades(np.array([2, -1, 0]))
    assert (whole.pair.tolist(), whole.grade.tolist()) == ([0, 2], [2, 0])
