"""Equivalence is claimed as seldom falsely as verdicts are, with which it shares their error."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.core.arrays import BoolArray, FloatArray
from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.inference.equivalence import (
    SHARE,
    Equivalence,
    Negligible,
    best_or_equivalent,
    verdict_confidence,
)
from estimation.core.inference.intervals import student_intervals
from estimation.core.inference.looks import Look
from estimation.core.inference.ranks import Ranking, rank_runs
from estimation.core.inference.simultaneous import equivalence, margins
from estimation.core.inference.unknown import Reason, all_known
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from tests.core.length import bounded
from tests.core.simulated_pools import simulated_pool

NORMAL = 1e9


def ranked(value: FloatArray, se: float, confidence: float) -> Ranking:
    """Of independent estimates with one standard error."""
    k = len(value)
    tags = tuple(f"run{n:02}" for n in range(k))
    of_all = {"covariance": np.eye(k) * se**2, "df": np.full((k, k), NORMAL)}
    return rank_runs(value, tags=tags, confidence=confidence, **of_all)


def claimed(
    value: FloatArray, se: float, within: float, confidence: float = 0.95
) -> tuple[Ranking, BoolArray]:
    """Verdicts and equivalence as they are told together."""
    ranking = ranked(value, se, verdict_confidence(confidence))
    none = np.zeros((len(value), len(value)))
    found = equivalence(ranking, within, confidence=confidence, slack=none)
    return ranking, found.pairs(ranking.unknown)


def alone(
    value: FloatArray, se: float, within: float, confidence: float = 0.95
) -> tuple[Ranking, BoolArray]:
    """The broken twin: verdicts have all of the error, and intervals are of one difference."""
    ranking = ranked(value, se, confidence)
    inside = np.abs(ranking.difference) + ranking.margin <= within
    np.fill_diagonal(inside, False)
    return ranking, inside


def false(truth: FloatArray, within: float, found: tuple[Ranking, BoolArray]) -> bool:
    """Whether any claim of either kind is."""
    ranking, equivalent = found
    difference = np.subtract.outer(truth, truth)
    wrong = (ranking.verdicts == 1) & (difference <= 0.0)
    return bool(np.any(wrong | (equivalent & (np.abs(difference) > within))))


def test_the_rule_by_hand() -> None:
    """Two runs: an error of 1 % on either side, so 2.33 standard errors of the difference."""
    se = 0.1 / np.sqrt(2.0)
    value = np.array([1.0, 0.9])
    for within, expected in ((0.33, False), (0.34, True)):
        _, found = claimed(value, se, within)
        assert found.tolist() == [[False, expected], [expected, False]]


def test_a_difference_may_be_surely_there_and_surely_too_small() -> None:
    ranking, found = claimed(np.array([1.0, 0.9]), 0.001, 0.2)
    assert ranking.verdicts[0, 1] == 1
    assert found[0, 1]


def test_what_is_out_of_reach_counts_against_equivalence_on_its_side() -> None:
    ranking = ranked(np.array([1.0, 1.0]), 0.001, 0.95)
    slack = np.array([[0.0, 0.3], [0.0, 0.0]])
    for within, expected in ((0.25, False), (0.35, True)):
        found = equivalence(ranking, within, confidence=0.95, slack=slack)
        assert found.low[0, 1] == pytest.approx(-0.3, abs=0.01)
        assert found.high[0, 1] == pytest.approx(0.0, abs=0.01)
        assert found.low[1, 0] == -found.high[0, 1]
        assert found.pairs(ranking.unknown)[0, 1] == expected


def test_what_is_not_known_is_not_equivalent() -> None:
    ranking, _ = claimed(np.zeros(3), 0.001, 1.0)
    found = equivalence(ranking, 1.0, confidence=0.95, slack=np.zeros((3, 3)))
    unknown = all_known(3, 3)
    assert found.pairs(unknown).sum() == 6
    unknown[0, 1] = unknown[1, 0] = Reason.TOO_LITTLE
    assert found.pairs(unknown).sum() == 4


def test_the_best_or_equivalent_is_settled_against_everybody() -> None:
    verdicts = np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 0]], dtype=np.int8)
    none = np.zeros((3, 3), dtype=np.bool_)
    assert not best_or_equivalent(verdicts, none).any()
    close = none.copy()
    close[0, 2] = close[2, 0] = True
    assert best_or_equivalent(verdicts, close).tolist() == [True, False, False]


@pytest.mark.parametrize("difference", [0.0, -1.0, np.nan, np.inf])
def test_a_negligible_difference_is_a_number_above_0(difference: float) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        Negligible(parse_measure("P@10"), difference)


def test_losses_are_turned_around() -> None:
    found = Equivalence(1.0, np.array([[0.0, -0.5]]), np.array([[0.0, 2.0]]))
    assert found.turned(1.0) is found
    assert found.turned(-1.0).low.tolist() == [[0.0, -2.0]]


WORST = {
    "just too far apart": (np.array([0.0, 1.0 + 1e-9]), 1.0 / 4.5),
    "equal runs beside a border": (np.array([0.0, 0.0, 1.0 + 1e-9]), 1.0 / 5.5),
    "a ladder": (np.arange(6) * (1.0 + 1e-9), 1.0 / 6.0),
    "many equal": (np.array([0.0] * 5 + [1.0 + 1e-9] * 5), 1.0 / 7.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORST)
def test_any_false_claim_of_either_kind_is_seldom(name: str) -> None:
    """At the border of what matters, where a false equivalence is likeliest; with the twin.

    In standard errors the borders are where intervals for equivalence can be short enough.
    """
    truth, se = WORST[name]
    rng, within = np.random.default_rng(sorted(WORST).index(name)), 1.0
    trials = 2000 if name == "a ladder" else bounded(800, 2000)  # there claims are rare
    wrong, twin, claims = 0, 0, 0
    for _ in range(trials):
        value = truth + rng.normal(scale=se / np.sqrt(2.0), size=len(truth))
        found = claimed(value, se / np.sqrt(2.0), within)
        wrong += false(truth, within, found)
        twin += false(truth, within, alone(value, se / np.sqrt(2.0), within))
        claims += bool(found[1].any())
    allowed = 0.05 * trials + 3.0 * np.sqrt(0.05 * 0.95 * trials)
    assert wrong <= allowed
    assert claims > 0
    if len(truth) > 2:
        assert twin > allowed


@pytest.mark.slow
def test_it_holds_at_all_looks_at_once_and_a_twin_at_each_look_is_caught() -> None:
    """A run stops being looked at when there is a claim; normal estimates that get better."""
    rng, trials, planned, within = np.random.default_rng(5), bounded(200, 400), 10, 1.0
    truth, end = np.array([0.0, 0.0, 1.0 + 1e-9, 1.0 + 1e-9]), 1.0 / 7.0
    wrong = twin = 0
    for _ in range(trials):
        steps = rng.normal(scale=end * np.sqrt(planned / 2.0), size=(planned, len(truth)))
        found, found_twin = False, False
        for look in range(1, planned + 1):
            value = truth + steps[:look].mean(axis=0)
            se = end * np.sqrt(planned / look / 2.0)
            level = Look(look, planned).confidence(0.95)
            found |= false(truth, within, claimed(value, se, within, level))
            found_twin |= false(truth, within, alone(value, se, within))
        wrong, twin = wrong + found, twin + found_twin
    allowed = 0.05 * trials + 3.0 * np.sqrt(0.05 * 0.95 * trials)
    assert wrong <= allowed
    assert twin > allowed


def test_margins_stay_those_of_one_difference() -> None:
    ranking = ranked(np.array([1.0, 0.5, 0.4]), 0.1, verdict_confidence(0.95))
    wide = student_intervals(
        ranking.difference, variance=ranking.difference_se**2, df=ranking.difference_df
    )
    assert np.allclose(margins(ranking, 0.95), wide.high - ranking.difference)
    assert np.all(ranking.margin[0, 1:] > margins(ranking, 0.95)[0, 1:])


@pytest.mark.parametrize("interval", ["student", "bernstein"])
def test_a_collection_says_which_runs_are_equivalent_and_no_value_changes(interval: str) -> None:
    pool, grades = simulated_pool()
    goal = parse_measure("DCG@10")
    prior = make_prior(
        pool, name="rank", goal=goals.absolute(*pool.runs), measure=goal, max_grade=3
    )
    design = make_design(
        pool, goal=goals.absolute(*pool.runs), measure=goal, prior=prior, method="poisson",
        budget=len(pool) // 2, batch_size=len(pool) // 2,
    )  # fmt: skip
    sample = draw(pool, design, seed="s")
    labels = LabelRows(sample.pair, grades[sample.pair])
    given = RoundCollection(pool, PairRound(design, sample), labels, 3, (goal,))
    plain = given.evaluate(given.pool, measures=[goal], interval=interval)[goal]
    assert plain.equivalence is None
    large = replace(given, negligible=1e6).evaluate(given.pool, measures=[goal], interval=interval)[
        goal
    ]
    assert large.equivalence is not None
    known = large.ranking.unknown == Reason.KNOWN
    np.fill_diagonal(known, False)
    assert np.array_equal(large.equivalence.pairs(large.ranking.unknown), known)
    assert np.array_equal(large.estimate.value, plain.estimate.value)
    assert np.array_equal(large.estimate.low, plain.estimate.low)
    assert np.allclose(large.ranking.margin, plain.ranking.margin, rtol=1e-12)
    shared = np.minimum(plain.ranking.adjusted_p / (1.0 - SHARE), 1.0)
    assert np.allclose(large.ranking.adjusted_p, shared)
