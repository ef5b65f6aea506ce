"""Scores of gold: corrected for chance, with intervals, and untold where they say nothing."""

import itertools

import numpy as np
import pytest

from judging.gold_scores import SKEWED, score_of


def test_luck_scores_nothing_on_average_whatever_grades_it_likes() -> None:
    """All answers that are possible, each with its chance: right and chance have the same mean."""
    accepted = [{0}, {0}, {1}, {1, 2}, {2}]
    for liking in ([1 / 3] * 3, [0.7, 0.2, 0.1], [0.05, 0.05, 0.9]):
        above = 0.0
        for given in itertools.product(range(3), repeat=len(accepted)):
            found = score_of(list(zip(given, accepted, strict=True)), least=5)
            assert found.by_chance is not None
            weight = float(np.prod([liking[grade] for grade in given]))
            above += weight * (found.right / len(accepted) - found.by_chance)
        assert abs(above) < 1e-12


def test_a_chance_that_is_the_same_for_everybody_is_caught() -> None:
    """One over the number of grades: whoever likes the grade that is often right scores by that."""
    accepted, liking, above = [{0}, {0}, {0}, {1}, {2}], [0.7, 0.2, 0.1], 0.0
    for given in itertools.product(range(3), repeat=len(accepted)):
        right = np.mean([grade in each for grade, each in zip(given, accepted, strict=True)])
        above += float(np.prod([liking[grade] for grade in given])) * (float(right) - 1 / 3)
    assert above > 0.1


def test_scores_say_what_they_are_and_when_they_cannot_be_trusted() -> None:
    right = [(n % 4, {n % 4}) for n in range(12)]
    found = score_of(right, least=10)
    assert (found.answers, found.right, found.score, found.untold) == (12, 12, 1.0, "")
    assert found.low is not None
    assert 0.5 < found.low < 1.0 == found.high
    always = score_of([(0, {n % 4}) for n in range(12)], least=10)
    assert always.score == pytest.approx(0.0)
    assert always.high is not None
    assert always.high > 0
    assert score_of(right[:9], least=10).untold == "few"
    skewed = score_of([(0, {0})] * 11 + [(1, {1})], least=10)
    assert (skewed.untold, skewed.score) == ("skewed", None)
    assert skewed.by_chance is not None
    assert skewed.by_chance > SKEWED


@pytest.mark.slow
@pytest.mark.parametrize(("skill", "count"), [(0.3, 20), (0.6, 20), (0.9, 40)])
def test_intervals_of_scores_hold_what_they_say(skill: float, count: int) -> None:
    """Somebody knows the answer with a chance, and guesses otherwise: the score is that chance."""
    random, held, tries = np.random.default_rng(7), 0, 2000
    truth = random.integers(4, size=count)
    for _ in range(tries):
        knows = random.random(count) < skill
        given = np.where(knows, truth, random.integers(4, size=count))
        rows = [(int(a), {int(b)}) for a, b in zip(given, truth, strict=True)]
        found = score_of(rows, least=10)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= skill <= found.high
    assert 0.925 <= held / tries <= 0.99
