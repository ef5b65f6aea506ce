"""Variances, what is unknown, and verdicts: worst cases, ties, and rules that are broken."""

from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.totals import Totals
from estimation.core.inference import knowledge, uncertainty
from estimation.core.inference.intervals import gamma_limits
from estimation.core.inference.missed import Missed
from estimation.core.inference.ranks import rank_runs
from estimation.core.inference.simultaneous import equivalence
from estimation.core.inference.uncertainty import Losses, Unseen
from estimation.core.inference.unknown import Reason
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample
from tests.core.length import bounded

P10 = parse_measure("P@10")
TOPICS = 40
TRIALS = bounded(80, 150)
ERROR = np.sqrt(0.05 * 0.95 / TRIALS)  # the standard error of a share of .05 of the trials


# ----------------------------------------------------------------------------------- variances


def test_a_variance_is_half_way_to_larger_squares_and_as_far_to_smaller_ones_as_finds_tell() -> (
    None
):
    squares, expected = np.diag([1.0, 4.0, 0.0]), np.diag([2.0, 2.0, 2.0])
    assert uncertainty.variances(squares, expected).tolist() == [2.0, 3.0, 2.0]
    assert uncertainty.variances(squares, None).tolist() == [1.0, 4.0, 0.0]
    found = uncertainty.variances_of_differences(squares, expected)
    assert found.tolist() == [[0.0, 4.5, 4.0], [4.5, 0.0, 4.0], [4.0, 4.0, 0.0]]
    many = np.full((3, 3), 5.0)
    assert uncertainty.variances(squares, expected, many).tolist() == [1.75, 3.0, 1.5]
    both = uncertainty.variances_of_differences(squares, expected, many)
    assert both.tolist() == [[0.0, 4.5, 3.25], [4.5, 0.0, 4.0], [3.25, 4.0, 0.0]]
    contrast = np.array([[1.0, -1.0, 0.0]])
    assert uncertainty.variances_of_contrasts(contrast, squares, expected).tolist() == [4.5]


SPREAD = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])


def test_differences_are_unknown_by_what_the_design_lets_one_expect() -> None:
    value, covariance = np.array([5.0, 4.0, 4.0]), np.zeros((3, 3))
    found = knowledge.unknown_differences(value, covariance, 100.0 * SPREAD)
    assert found[0, 1] == Reason.TOO_LITTLE
    assert found[1, 2] == Reason.KNOWN  # the same documents: their difference has no variance
    assert np.diag(found).tolist() == [Reason.KNOWN] * 3
    assert not knowledge.unknown_differences(value, covariance, SPREAD).any()


def test_differences_that_few_finds_carry_are_shown_and_give_no_verdict() -> None:
    covariance, finds = np.zeros((3, 3)), np.full((3, 3), 3.9)
    few = knowledge.few_finds(finds, covariance, SPREAD)
    assert few.tolist() == [[False, True, True], [True, False, False], [True, False, False]]
    assert not knowledge.few_finds(finds + 0.2, covariance, SPREAD).any()
    told = {
        "covariance": covariance, "expected": SPREAD / 100.0, "finds": finds,
        "df": np.full((3, 3), 1000.0), "tags": ("a", "b", "c"),
    }  # fmt: skip
    ranking, bold = (rank_runs(np.array([5.0, 4.0, 4.0]), few=each, **told) for each in (few, None))
    assert not ranking.verdicts.any()
    assert bold.verdicts[0, 1] == 1
    assert not ranking.unknown.any()
    assert np.array_equal(ranking.margin, bold.margin)
    alike = equivalence(ranking, 2.0, confidence=0.95, slack=np.zeros((3, 3)), few=few)
    assert alike.pairs(ranking.unknown).tolist() == [
        [False, False, False], [False, False, True], [False, True, False],
    ]  # fmt: skip
    assert np.isfinite([alike.low, alike.high]).all()
    twin = equivalence(ranking, 2.0, confidence=0.95, slack=np.zeros((3, 3)))
    assert twin.pairs(ranking.unknown)[0, 1]


def test_what_alone_tells_how_much_is_expected_leaves_its_own_degrees_of_freedom() -> None:
    finds = np.array([[9.0, 6.0, 3.0], [6.0, 9.0, 3.0], [3.0, 3.0, 9.0]])
    many = uncertainty.AS_NORMAL
    assert (uncertainty.freedom(finds, SPREAD) == many).all()
    alone = uncertainty.freedom(finds, SPREAD, (0, 1))
    assert alone.tolist() == [[many, 5.0, many], [5.0, many, many], [many, many, many]]
    assert uncertainty.freedom(finds, None).tolist() == (finds - 1.0).tolist()


@pytest.mark.parametrize("mean", [0.3, 1.0, 4.0, 20.0])
def test_gamma_limits_of_equal_weights_are_those_of_a_poisson_count(mean: float) -> None:
    counts = np.arange(200.0)
    step = np.full(200, 2.0)
    low, high = gamma_limits(2.0 * counts, variance=4.0 * counts, step=step)
    log_chance = counts * np.log(mean) - mean - np.cumsum(np.log(np.maximum(counts, 1.0)))
    inside = (low <= 2.0 * mean) & (2.0 * mean <= high)
    covered = np.exp(log_chance)[inside].sum()
    assert 0.95 <= covered < 0.999
    symmetric = np.abs(2.0 * counts - 2.0 * mean) <= 1.96 * 2.0 * np.sqrt(counts)
    assert mean > 5.0 or np.exp(log_chance)[symmetric].sum() < 0.93  # the twin


def test_limits_are_those_without_predictions_where_predictions_take_nothing_away() -> None:
    """The find more is parted as the variance is: continuous, and one in all."""
    zero, value, variance = np.zeros((2, 2)), np.array([0.3, 0.02]), np.array([0.01, 0.001])
    found = Totals(value, zero, zero, zero, np.array([0.1, 0.0]))
    find = np.array([0.05, 0.02])
    doubt = np.zeros(2)

    def limits(losses: Losses | None) -> np.ndarray:
        ends = uncertainty.value_limits(
            found, Unseen(zero, find, doubt, losses), variance, confidence=0.95
        )
        return np.array(ends)

    plain = limits(None)
    assert limits(Losses(np.full(2, 9.0), np.zeros(2))) == pytest.approx(plain, rel=1e-12)
    nearly = limits(Losses(find, np.full(2, 1e-7)))
    assert nearly == pytest.approx(plain, rel=1e-3, abs=1e-6)
    low, high = limits(Losses(find, np.ones(2)))
    assert high == pytest.approx(value)  # what is certain to be too much raises nothing
    assert (low < plain[0]).all()


# ---------------------------------------------------------------- every sample of a tiny case


def tie(chance: float) -> tuple[Pool, Design]:
    """Two runs with one document each, both relevant; one certain, the other sampled at times."""
    lists = {
        "sure": RankedLists(("t",), np.array([0, 1]), np.array([b"a"])),
        "hidden": RankedLists(("t",), np.array([0, 1]), np.array([b"b"])),
    }
    pool = build_pool(["t"], lists, depth=1)
    goal, measure = goals.absolute(*pool.runs), parse_measure("P@1")
    prior = make_prior(pool, name="constant", goal=goal, measure=measure, max_grade=1)
    design = make_design(
        pool, goal=goal, measure=measure, prior=prior, budget=1, batch_size=1, max_grade=1
    )
    size = np.array([1.0, chance]) / (1.0 + chance)
    return pool, Design(**{**vars(design), "size": size, "steps": np.array([1.0 + chance])})


def test_a_hidden_document_makes_no_verdict_in_any_sample() -> None:
    """A tie: with squares alone one sample in four calls the first run better, with p = 0."""
    pool, design = tie(0.75)
    chance = design.inclusion()
    assert chance == pytest.approx([1.0, 0.75])
    false, false_by_squares = 0.0, 0.0
    for taken in product([False, True], repeat=2):
        probability = np.prod(np.where(taken, chance, 1.0 - chance))
        pairs = np.flatnonzero(taken)
        if probability == 0.0:
            continue
        sample = Sample(
            pairs, np.ones(len(pairs), dtype=np.int32), chance[pairs], pairs[:0], pool.digest
        )
        result = evaluate(
            pool, PairRound(design, sample),
            labels=LabelRows(pairs, np.ones(len(pairs), dtype=np.int64)),
            measures=[parse_measure("P@1")], max_grade=1,
        ).results[0]  # fmt: skip
        false += probability * bool(result.ranking.verdicts.any())
        single = np.diag(result.estimate.covariance)
        certain = single.sum() == 0.0 and result.estimate.value[0] != result.estimate.value[1]
        false_by_squares += probability * certain
    assert false == 0.0
    assert false_by_squares == pytest.approx(0.25)


# ----------------------------------------------------- runs that are nearly alike, in simulation


def alike(copies: int = 4, bases: int = 3) -> tuple[Pool, np.ndarray]:
    """Runs of which some differ in few documents, and the grades of their pool."""
    rng = np.random.default_rng(3)
    names = tuple(f"t{topic:02}" for topic in range(TOPICS))
    bounds = np.arange(0, (TOPICS + 1) * 10, 10)
    lists = {}
    for base in range(bases):
        own = np.stack([rng.choice(40, 30, replace=False) for _ in range(TOPICS)])
        for copy in range(copies):
            changed = own.copy()
            for topic in rng.choice(TOPICS, 5 * (copy > 0), replace=False):
                first, second = rng.integers(0, 10), rng.integers(10, 30)
                changed[topic, [first, second]] = changed[topic, [second, first]]
            docnos = np.array(
                [f"{topic}-{n}".encode() for topic in range(TOPICS) for n in changed[topic, :10]]
            )
            lists[f"run{base}{copy}"] = RankedLists(names, bounds, docnos)
    pool = build_pool(names, lists, depth=10)
    return pool, (rng.random(len(pool)) < 0.3).astype(np.int64)


def campaigns(
    pool: Pool, grades: np.ndarray, budget: int, trials: int, goal: goals.Goal | None = None
) -> list[MeasureResult]:
    goal = goal or goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=P10, max_grade=1)
    design = make_design(
        pool, goal=goal, measure=P10, prior=prior, budget=budget, batch_size=budget, max_grade=1
    )
    results = []
    for trial in range(trials):
        sample = draw(pool, design, seed=f"alike {trial}")
        labels = LabelRows(sample.pair, grades[sample.pair])
        found = evaluate(
            pool, PairRound(design, sample), labels=labels, measures=[P10], max_grade=1
        )
        results.append(found.results[0])
    return results


def share_with_false_verdicts(
    results: list[MeasureResult], pool: Pool, grades: np.ndarray
) -> float:
    truth = pool.weights(P10).T @ grades
    differences = np.subtract.outer(truth, truth)
    sign = np.where(np.abs(differences) < 1e-12, 0.0, np.sign(differences))
    false = [
        bool(np.any((each.ranking.verdicts != 0) & (each.ranking.verdicts != sign)))
        for each in results
    ]
    return float(np.mean(false))


@pytest.mark.slow
def test_runs_that_are_nearly_alike_get_no_false_verdicts() -> None:
    pool, grades = alike()
    for share in (0.4, 0.7, 0.9, 0.97):
        found = campaigns(pool, grades, int(share * len(pool)), TRIALS)
        assert share_with_false_verdicts(found, pool, grades) <= 0.05 + 2 * ERROR


@pytest.mark.slow
def test_without_a_floor_for_differences_they_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: what squares alone say, with nothing unknown."""
    pool, grades = alike()
    monkeypatch.setattr(Missed, "p_values", lambda self, _: np.zeros_like(self.squares))
    monkeypatch.setattr(uncertainty, "_together", lambda squares, expected, finds: squares)
    monkeypatch.setattr(knowledge, "LEAST_FINDS", 0.0)
    found = campaigns(pool, grades, int(0.6 * len(pool)), 60)
    assert share_with_false_verdicts(found, pool, grades) > 0.3


@pytest.mark.slow
def test_differences_that_a_round_was_not_made_for_are_covered_where_they_are_shown() -> None:
    """The twin hides by what was found, few finds and low values, and shows the lucky ones."""
    pool, grades = alike(copies=1, bases=20)
    truth = pool.weights(P10).T @ grades
    once = np.triu_indices(len(pool.runs), k=1)
    held: list[np.ndarray] = []
    lucky: list[np.ndarray] = []
    for each in campaigns(pool, grades, 400, 100, goals.pair(*pool.runs[:2])):
        off = np.abs(each.ranking.difference - np.subtract.outer(truth, truth))
        inside, shown = off <= each.ranking.margin, each.estimate
        assert shown.expected is not None
        assert shown.difference_few is not None
        held.append(inside[once][each.ranking.unknown[once] == Reason.KNOWN])
        hidden = knowledge.unknown_differences(shown.value, shown.covariance, shown.expected) > 0
        lucky.append(inside[once][~(hidden | shown.difference_few)[once]])
    assert 0.94 < np.concatenate(held).mean() < 0.99
    assert np.concatenate(lucky).mean() < 0.92


@pytest.mark.slow
def test_values_are_covered_run_by_run() -> None:
    pool, grades = alike(copies=2, bases=6)
    truth = pool.weights(P10).T @ grades
    for budget in (60, 250, 600):
        found = [each.estimate for each in campaigns(pool, grades, budget, TRIALS)]
        inside = np.mean([(e.low <= truth) & (truth <= e.high) for e in found], axis=0)
        assert inside.min() > 0.95 - 4.5 * ERROR
        assert 0.95 - 0.84 * ERROR < inside.mean() < 0.995
