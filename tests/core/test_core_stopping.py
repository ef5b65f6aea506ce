"""Rounds that stop by a rule tell what is false as seldom as others; with twins that do not."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.inference.equivalence import Equivalence
from estimation.core.inference.intervals import student_intervals
from estimation.core.inference.looks import Look
from estimation.core.inference.ranks import rank_runs
from estimation.core.inference.unknown import Reason
from estimation.core.measures.table import parse_measure
from estimation.core.planning.stopping import StoppingRule
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from tests.core.length import bounded
from tests.core.simulated_pools import simulated_pool

POOL, GRADES = simulated_pool()
MEASURE = parse_measure("DCG@30")


def design():
    about = {"goal": goals.ranking(*POOL.runs), "measure": MEASURE, "max_grade": 3}
    prior = make_prior(POOL, name="rank", **about)
    return make_design(POOL, prior=prior, budget=1200, batch_size=120, method="poisson", **about)


PLANNED = design()


def told(seed: str, batches: int) -> MeasureResult:
    part = PairRound(PLANNED, draw(POOL, PLANNED, seed=seed))
    labels = LabelRows(part.sample.pair, GRADES[part.sample.pair])
    about = {"max_grade": 3, "batches": batches, "look": Look(batches, PLANNED.batches)}
    return evaluate(POOL, part, labels=labels, measures=[MEASURE], **about).results[0]


def ranked(verdicts: list[list[int]], *, alike: list[tuple[int, int]] = []) -> MeasureResult:  # noqa: B006
    """The runs in their order, with these verdicts, and some pairs equivalent."""
    found = told("x", 3)
    k = len(verdicts)
    low, high = np.full((k, k), -9.0), np.full((k, k), 9.0)
    for i, j in (*alike, *((j, i) for i, j in alike)):
        low[i, j], high[i, j] = -0.5, 0.5
    ranking = replace(
        found.ranking, verdicts=np.array(verdicts, np.int8), order=np.arange(k),
        unknown=np.zeros((k, k), np.int8),
    )  # fmt: skip
    return replace(
        found, ranking=ranking, equivalence=Equivalence(1.0, low, high) if alike else None
    )


OPEN = [[0, 0, 0], [0, 0, 0], [0, 0, 0]]
WON = [[0, 1, 1], [-1, 0, 0], [-1, 0, 0]]
LOST = [[0, 0, 1], [0, 0, 1], [-1, -1, 0]]


def test_the_best_is_known_when_it_is_better_than_or_equivalent_to_all_others() -> None:
    rule = StoppingRule("best")
    assert [rule.holds(ranked(each)) for each in (OPEN, WON, LOST)] == [False, True, False]
    assert rule.holds(ranked(LOST, alike=[(0, 1)]))
    assert not rule.holds(ranked(OPEN, alike=[(0, 1)]))
    assert rule.holds(ranked(OPEN, alike=[(0, 1), (1, 2)])), "the second is as good as both"
    assert not rule.holds(ranked([[0]])), "of one run nothing is to be found out"


def test_the_first_are_known_when_each_is_settled_against_all_others() -> None:
    rule = StoppingRule("top", top=2)
    assert [rule.holds(ranked(each)) for each in (OPEN, WON, LOST)] == [False, False, True]
    assert rule.holds(ranked(WON, alike=[(1, 2)]))
    assert not StoppingRule("top", top=3).holds(ranked(LOST)), "all of them are no finding"


def test_widths_are_those_of_the_worst_run_and_its_longer_side() -> None:
    found = told("x", 8)
    each = found.estimate
    worst = float(np.max(np.maximum(each.high - each.value, each.value - each.low)))
    assert StoppingRule("width", width=worst).holds(found)
    assert not StoppingRule("width", width=worst * 0.999).holds(found)
    unknown = each.unknown.copy()
    unknown[0] = Reason.TOO_LITTLE
    withheld = replace(found, estimators={found.primary: replace(each, unknown=unknown)})
    assert not StoppingRule("width", width=1e9).holds(withheld)


@pytest.mark.parametrize(
    "given", [{"kind": "soon"}, {"kind": "top", "top": 0}, {"kind": "width", "width": 0.0}]
)
def test_a_rule_that_says_nothing_is_refused(given: dict) -> None:
    with pytest.raises(ValueError, match=r"stopping rule|top|half width"):
        StoppingRule(**given)


LOOKS, TRIALS = bounded((10, 200), (20, 400))
EQUAL = np.array([0.0, 0.0])
"""Two runs of which none is better: whatever stops because one seems so is false."""


def normal_result(value: np.ndarray, se: float, confidence: float) -> MeasureResult:
    """Of independent normal estimates with one standard error, as far as rules look at it."""
    k, tags = len(value), tuple("abcdefghij"[: len(value)])
    limits = student_intervals(
        value, variance=np.full(k, se**2), df=np.full(k, 1e9), confidence=confidence
    )
    covariance, df = np.eye(k) * se**2, np.full((k, k), 1e9)
    ranking = rank_runs(value, covariance=covariance, df=df, tags=tags, confidence=confidence)
    estimate = SimpleNamespace(
        value=value,
        low=limits.low,
        high=limits.high,
        half_width=limits.high - value,
        unknown=np.zeros(k, np.int8),
    )
    return SimpleNamespace(ranking=ranking, estimate=estimate, equivalence=None)  # type: ignore[return-value]


def stopped(
    rule: StoppingRule, truth: np.ndarray, rng: np.random.Generator, *, anytime: bool
) -> tuple[MeasureResult, int]:
    """What is told in the end of a round with a rule, and at which look."""
    steps = rng.normal(scale=np.sqrt(LOOKS), size=(LOOKS, len(truth)))
    for look in range(1, LOOKS + 1):
        value, se = truth + steps[:look].mean(axis=0), float(np.sqrt(LOOKS / look))
        level = Look(look, LOOKS).confidence(0.95) if anytime else 0.95
        found = normal_result(value, se, level)
        if rule.holds(found):
            break
    return found, look


def false_verdict(truth: np.ndarray, found: MeasureResult) -> bool:
    better = found.ranking.verdicts == 1
    return bool(np.any(better & (np.subtract.outer(truth, truth) <= 0.0)))


def missed(truth: np.ndarray, found: MeasureResult) -> float:
    return float(np.mean((truth < found.estimate.low) | (truth > found.estimate.high)))


RULES = {
    "best": (StoppingRule("best"), EQUAL),
    "top": (StoppingRule("top", top=2), np.array([40.0, 0.0, 0.0])),
    "width": (StoppingRule("width", width=3.0), EQUAL),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_what_is_told_when_a_rule_has_fired_is_seldom_false(name: str) -> None:
    """Any false verdict in at most .05; the twin is told what holds at one look fixed before."""
    rule, truth = RULES[name]
    share, outside = {}, {}
    for anytime in (True, False):
        rng = np.random.default_rng(sorted(RULES).index(name))
        ends = [stopped(rule, truth, rng, anytime=anytime)[0] for _ in range(TRIALS)]
        share[anytime] = np.mean([false_verdict(truth, each) for each in ends])
        outside[anytime] = np.mean([missed(truth, each) for each in ends])
    chance = 3.0 * np.sqrt(0.05 * 0.95 / TRIALS)
    assert share[True] <= 0.05 + chance
    assert outside[True] <= 0.05
    if name != "width":  # widths by the design alone stop where everybody knows beforehand
        assert share[False] > 0.05 + chance
        assert outside[False] > outside[True]


@pytest.mark.slow
def test_rules_fire_where_they_can_and_save() -> None:
    rng, truth = np.random.default_rng(7), np.array([12.0, 0.0, 0.0, 0.0])
    looks = [stopped(StoppingRule("best"), truth, rng, anytime=True)[1] for _ in range(50)]
    assert np.mean(looks) < 0.7 * LOOKS
    never = [stopped(StoppingRule("best"), EQUAL, rng, anytime=True)[1] for _ in range(50)]
    assert np.mean(never) > 0.9 * LOOKS
