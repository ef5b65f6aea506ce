"""Differences that are settled by what was judged: never false, and as near as can be said."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows, pair_labels
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.pool_ranks import best_rank
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.inference import settled
from estimation.core.inference.ranks import rank_runs
from estimation.core.inference.settled import as_far_as_certain, least_differences
from estimation.core.inference.simultaneous import equivalence, margins
from estimation.core.inference.single import ends
from estimation.core.inference.unknown import Reason
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds import comparison
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import draw_round
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.grade_models import uniform_grades
from estimation.core.sampling import goals
from estimation.core.sampling.goals import Goal
from estimation.research.simulation import true_values
from estimation.research.trials.honesty import Honesty
from estimation.research.trials.methods import prepare
from estimation.research.trials.reports import play_trials
from estimation.research.trials.settings import Setting
from tests.core.length import bounded
from tests.core.simulated_pools import simulated_pool

DCG = parse_measure("DCG@3")
MAX_GRADE = 2
MEASURES = ("DCG@3", "P(rel=2)@3", *bounded([], ["P@2", "RBP(p=0.8)"]))
"""Weights by rank and grades as they are, and all weights alike and a least grade."""


@pytest.fixture
def small(ranked: Callable) -> Pool:
    """Six pairs, three runs, of which two differ in a swap and a document."""
    runs = {
        "a": ranked({"1": "uvw", "2": "pq"}),
        "b": ranked({"1": "vuw", "2": "pr"}),
        "c": ranked({"1": "wu", "2": "r"}),
    }
    return build_pool(["1", "2"], runs, depth=3)


def least_of(
    pool: Pool, measure: Measure, pairs: np.ndarray, grades: np.ndarray, **options: Any
) -> np.ndarray | None:
    """What is settled of all differences where these pairs have one judgment each."""
    labels = LabelRows(np.arange(len(pairs)), grades[pairs])
    return least_differences(
        pool,
        measure,
        pairs=pairs,
        labels=pair_labels(labels, pairs=len(pairs), measure=measure),
        max_grade=MAX_GRADE,
        **{"than": np.zeros((len(pool.runs),) * 2)} | options,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURES)
def test_the_least_difference_is_that_of_the_worst_grades_there_could_be(
    small: Pool, name: str
) -> None:
    """All grades of all subsets of pairs: the bound holds, is met, and is told when above 0."""
    measure, pairs = parse_measure(name), len(small)
    every = np.array(list(product(range(MAX_GRADE + 1), repeat=pairs)))
    values = np.array([true_values(small, grades=each, measure=measure) for each in every])
    differences = values[:, :, None] - values[:, None, :]
    told = 0
    for chosen in product([False, True], repeat=pairs):
        judged = np.flatnonzero(chosen)
        _, alike = np.unique(every[:, judged], axis=0, return_inverse=True)
        for group in range(alike.max() + 1):
            same = np.flatnonzero(alike.ravel() == group)
            worst = differences[same].min(axis=0)
            found = least_of(small, measure, judged, every[same[0]])
            assert (found is None) == (not np.any(worst > 1e-9))
            if found is not None:
                told += 1
                assert found == pytest.approx(worst, abs=1e-9)
                assert np.all((found > 0.0) <= (worst > 1e-9)), "rounding settles nothing"
    assert told > 100


def test_a_pool_of_many_topics_by_plain_loops() -> None:
    """Nine of ten pairs judged, by chance: pair by pair, with the grade that is worst for each."""
    pool, grades = simulated_pool()
    measure, rng = parse_measure("DCG@10"), np.random.default_rng(1)
    grades = np.minimum(grades, MAX_GRADE)
    judged = np.sort(rng.choice(len(pool), int(0.9 * len(pool)), replace=False))
    found = least_of(pool, measure, judged, grades)
    assert found is not None
    weights = pool.weights(measure).toarray()
    gain, best = measure.utilities(grades), measure.max_utility(MAX_GRADE)
    apart = weights[:, :, None] - weights[:, None, :]
    open_pairs = np.setdiff1d(np.arange(len(pool)), judged)
    plain = np.einsum("ijl,i->jl", apart[judged], gain[judged])
    plain += np.minimum(apart[open_pairs], 0.0).sum(axis=0) * best
    assert found == pytest.approx(plain, abs=1e-9)
    truth = true_values(pool, grades=grades, measure=measure)
    assert np.all(found <= np.subtract.outer(truth, truth))


def test_what_is_kept_with_a_pool_is_of_the_pairs_that_are_judged() -> None:
    """Asked in any order a pool says what a new one says."""
    kept, grades = simulated_pool()
    rng, grades = np.random.default_rng(12), np.minimum(grades, MAX_GRADE)
    judged = [np.flatnonzero(rng.random(len(kept)) < share) for share in (0.9, 0.95, 0.99)]
    measures = [parse_measure(name) for name in ("DCG@10", "P@10")]
    seen = 0
    for which in (0, 1, 2, 0, 1, 1):
        for measure in measures:
            asked = measure, judged[which], np.where(which == 1, MAX_GRADE - grades, grades)
            told, fresh = least_of(kept, *asked), least_of(simulated_pool()[0], *asked)
            assert (told is None) == (fresh is None)
            if told is not None and fresh is not None:
                seen += 1
                assert np.array_equal(told, fresh)
    assert seen >= 6


def test_who_forgets_what_is_not_judged_is_wrong() -> None:
    """The twin takes unjudged documents for useless, and calls the worse run the better one."""
    pool, grades = simulated_pool()
    measure, grades = parse_measure("P@10"), np.minimum(grades, MAX_GRADE)
    truth = true_values(pool, grades=grades, measure=measure)
    order, wrong = np.sign(np.subtract.outer(truth, truth)), 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        judged = np.sort(rng.choice(len(pool), int(0.8 * len(pool)), replace=False))
        found = least_of(pool, measure, judged, grades)
        if found is not None:
            assert np.all(order[found > 0.0] == 1.0)
        known = pool.weights(measure, judged).T @ measure.utilities(grades[judged])
        wrong += np.any((np.subtract.outer(known, known) > 0.0) & (order < 0.0))
    assert wrong > 0


def test_nothing_is_settled_of_what_is_not_known_or_not_asked_for(small: Pool) -> None:
    """Several labels of a pair, ratios, nobody asks, or what is not judged is too much to see."""
    grades, every = np.array([2, 0, 1, 0, 2, 1])[: len(small)], np.arange(len(small))
    assert least_of(small, DCG, every, grades) is not None
    assert least_of(small, DCG, every, grades, than=np.full((3, 3), np.inf)) is None
    assert least_of(small, parse_measure("AP"), every, grades) is None
    twice = LabelRows(np.append(every, 0), np.append(grades, grades[0]))
    labels = pair_labels(twice, pairs=len(small), measure=DCG)
    given = {"pairs": every, "max_grade": MAX_GRADE, "than": np.zeros((3, 3))}
    assert least_differences(small, DCG, labels=labels, **given) is None


def test_too_much_that_is_open_is_not_looked_at(
    small: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    grades = np.array([2, 0, 1, 0, 2, 1])[: len(small)]
    most = np.arange(1, len(small))
    assert least_of(small, DCG, most, grades) is not None
    monkeypatch.setattr(settled, "MOST_ENTRIES", 0)
    assert least_of(small, DCG, most, grades) is None
    assert least_of(small, DCG, np.arange(len(small)), grades) is not None


# ---------------------------------------------------------------------------------- verdicts


VALUES = np.array([0.5, 0.45, 0.3])
GIVEN: dict[str, Any] = {
    "covariance": 0.01 * np.eye(3),
    "df": np.full((3, 3), 1e6),
    "tags": ("a", "b", "c"),
}


def surely(first: int, second: int, least: float) -> np.ndarray:
    """One difference is known to be at least so much, and all to be at most 1."""
    found = np.full((3, 3), -1.0)
    found[first, second] = least
    return found


def test_what_is_settled_is_a_verdict_and_no_more() -> None:
    open_, decided = (
        rank_runs(VALUES, **GIVEN),
        rank_runs(VALUES, **GIVEN, surely=surely(0, 1, 0.01)),
    )
    assert not open_.verdicts.any()
    assert decided.verdicts.tolist() == [[0, 1, 0], [-1, 0, 0], [0, 0, 0]]
    assert decided.adjusted_p[0, 1] == decided.adjusted_p[1, 0] == 0.0
    assert decided.rank_high.tolist() == [2, 3, 3]
    assert decided.rank_low.tolist() == [1, 2, 1]


def test_what_is_next_to_certain_is_not_called_settled() -> None:
    """Thousands of standard errors apart, of which no distribution has a chance to tell."""
    sure = rank_runs(VALUES, **GIVEN | {"covariance": 1e-12 * np.eye(3)})
    assert np.count_nonzero(sure.verdicts) == 6
    assert np.all(sure.adjusted_p > 0.0)
    exact = rank_runs(VALUES, **GIVEN | {"covariance": np.zeros((3, 3))})
    assert exact.adjusted_p[0, 1] == 0.0, "but where there is no error at all"


def test_no_verdict_is_against_the_order_of_the_estimates() -> None:
    against = rank_runs(VALUES, **GIVEN, surely=surely(1, 0, 0.01))
    assert not against.verdicts.any()
    assert against.adjusted_p.min() > 0.05


def test_what_is_not_known_stays_so_and_few_finds_do_not_matter() -> None:
    """A difference that is not shown has no verdict; finds are no matter where all is certain."""
    unknown = np.zeros((3, 3), dtype=np.int8)
    unknown[0, 1] = unknown[1, 0] = next(each for each in Reason if each != Reason.KNOWN)
    settled_ = surely(0, 1, 0.01)
    assert not rank_runs(VALUES, **GIVEN, surely=settled_, unknown=unknown).verdicts.any()
    few = np.ones((3, 3), dtype=bool)
    assert rank_runs(VALUES, **GIVEN, surely=settled_, few=few).verdicts[0, 1] == 1


def test_the_others_are_compared_without_what_is_settled() -> None:
    """Holm's steps and the largest deviates: p-values of the rest fall, and none rises."""
    values, covariance = np.array([0.5, 0.47, 0.25]), 0.005 * np.eye(3)
    given = GIVEN | {"covariance": covariance}
    before = rank_runs(values, **given)
    after = rank_runs(values, **given, surely=surely(0, 1, 0.01))
    assert after.adjusted_p[0, 2] < before.adjusted_p[0, 2]
    assert np.all(after.adjusted_p <= before.adjusted_p)


def test_margins_reach_no_further_than_what_is_certain() -> None:
    margin, difference = np.array([[0.0, 0.3], [0.3, 0.0]]), np.array([[0.0, 0.1], [-0.1, 0.0]])
    certain = np.array([[0.0, 0.05], [-0.2, 0.0]])
    assert as_far_as_certain(margin, difference, certain)[0, 1] == pytest.approx(0.1)
    assert as_far_as_certain(margin, difference, certain)[1, 0] == pytest.approx(0.1)
    assert as_far_as_certain(margin / 10, difference, certain)[0, 1] == pytest.approx(0.03)
    least = np.full((3, 3), -1.0)
    least[0, 1], least[1, 0] = 0.02, -0.09
    ranking = rank_runs(VALUES, **GIVEN, surely=least)
    assert ranking.margin[0, 1] == pytest.approx(0.04)
    assert margins(ranking, 0.95, surely=least)[0, 1] == pytest.approx(0.04)


def test_an_estimate_that_cannot_be_is_tested_where_it_can() -> None:
    """A tie for certain has no verdict, however sure its estimate is, and is within the margin."""
    sure = GIVEN | {"covariance": 1e-8 * np.eye(3)}
    assert rank_runs(VALUES, **sure).verdicts[0, 1] == 1
    for most, verdict in ((0.0, 0), (-0.02, 0), (0.03, 1)):
        least = np.full((3, 3), -1.0)
        least[0, 1], least[1, 0] = min(most, 0.0), -most
        found = rank_runs(VALUES, **sure, surely=least)
        assert found.verdicts[0, 1] == -found.verdicts[1, 0] == verdict
        assert found.margin[0, 1] == pytest.approx(0.05 - min(most, 0.0))


def test_an_interval_ends_at_0_where_the_sign_is_certain() -> None:
    assert ends(0.2, 0.5, 0.3) == (pytest.approx(-0.3), 0.7)
    assert ends(0.2, 0.5, 0.0) == (0.0, 0.7)
    assert ends(-0.2, 0.5, 0.0) == (-0.7, 0.0)
    assert ends(0.2, 0.1, 0.0) == (pytest.approx(0.1), pytest.approx(0.3))


def test_equivalence_lies_within_what_is_certain() -> None:
    """Surely between .02 and .04: within .05, and not within .03, whatever the estimate says."""
    given: dict[str, Any] = {"confidence": 0.95, "slack": np.zeros((3, 3))}
    least = np.full((3, 3), -1.0)
    least[0, 1], least[1, 0] = 0.02, -0.04
    for covariance in (0.01, 1e-9):  # the second is sure of .05, which cannot be
        ranking = rank_runs(VALUES, **GIVEN | {"covariance": covariance * np.eye(3)})
        alike = [
            equivalence(ranking, within, **given, surely=least).pairs(ranking.unknown)[0, 1]
            for within in (0.045, 0.03)
        ]
        assert alike == [True, False]
    assert not equivalence(ranking, 0.045, **given).pairs(ranking.unknown)[0, 1]


# ------------------------------------------------------------------------------------ rounds


def alike_pool() -> tuple[Pool, np.ndarray]:
    """Six variants of one run: each puts other documents in the place of a few."""
    rng, names = np.random.default_rng(3), [f"t{topic:02}" for topic in range(20)]
    every = np.array([f"d{document:02}".encode() for document in range(30)])
    runs = {}
    for run in range(6):
        lists = np.tile(every[:10], (len(names), 1))
        for topic in rng.choice(len(names), 8, replace=False):
            lists[topic, rng.integers(10)] = every[10 + rng.integers(20)]
        docnos = lists.ravel()
        runs[f"r{run}"] = RankedLists(tuple(names), np.arange(len(names) + 1) * 10, docnos)
    pool = build_pool(names, runs, depth=10)
    return pool, (rng.random(len(pool)) < 0.5).astype(np.int64)


# Of the pool. What differences need is drawn first, by methods that have goals.
SHARES = {"poisson": 0.35, "priority": 0.35, "adaptive": 0.35, "active": 0.95, "query": 0.95}


def played(pool: Pool, grades: np.ndarray, method: str, *, goal: Goal, share: float) -> Honesty:
    """What rounds tell in some trials."""
    budget, measure = int(share * len(pool)), parse_measure("P@10")
    setting = Setting(pool, grades, 1, goal, measure, budget=budget, unit="pairs")
    player = prepare(setting, method)
    return play_trials(setting, method, player, trials=bounded(12, 20), seed="settled").honesty


def of_variants(method: str) -> Honesty:
    pool, grades = alike_pool()
    goal = goals.ranking(*pool.runs)
    return played(pool, grades, method, goal=goal, share=SHARES[method])


@pytest.mark.slow
def test_near_copies_that_are_tied_have_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Active rounds of three runs, of which two are tied; by the twin, which knows not what is
    judged, their difference is held more seldom."""
    told, (pool, grades) = [], tied_copies()
    for _ in ("with it", "without"):
        found = played(pool, grades, "active", goal=goals.absolute(*pool.runs), share=0.95)
        told.append((found.familywise_error, found.difference_coverage))
        monkeypatch.setattr(comparison, "least_differences", lambda *_, **__: None)
    (error, covered), (error_without, covered_without) = told
    assert error <= min(0.1, error_without)
    assert covered > covered_without


def tied_copies() -> tuple[Pool, np.ndarray]:
    """A run, one that swaps two documents of the same grade in some topics, and another run."""
    rng, names = np.random.default_rng(8), [f"t{topic:02}" for topic in range(30)]
    grades = (rng.random((30, 60)) < 0.2).astype(np.int64)
    scores = [grades + rng.normal(scale=scale, size=grades.shape) for scale in (1.0, 3.0)]
    one, other = (np.argsort(-each, axis=1)[:, :20] for each in scores)
    copy = one.copy()
    for topic in range(0, 30, 5):
        alike = np.flatnonzero(grades[topic, one[topic, 10:]] == grades[topic, one[topic, 0]])
        if len(alike):
            swapped = [0, 10 + alike[0]]
            copy[topic, swapped] = one[topic, swapped[::-1]]
    documents = np.array([f"d{document:02}".encode() for document in range(60)])
    bounds = np.arange(31) * 20
    runs = {"one": one, "copy": copy, "other": other}
    lists = {
        tag: RankedLists(tuple(names), bounds, documents[order.ravel()])
        for tag, order in runs.items()
    }
    pool = build_pool(names, lists, depth=20)
    document = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return pool, grades[pool.topic, document]


@pytest.mark.slow
@pytest.mark.parametrize("method", list(SHARES))
def test_rounds_of_every_method_tell_what_is_settled(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More verdicts than by errors of estimates alone, and false as seldom as any may be."""
    found = of_variants(method)
    monkeypatch.setattr(comparison, "least_differences", lambda *_, **__: None)
    without = of_variants(method)
    assert found.true_verdicts is not None
    assert without.true_verdicts is not None
    assert found.true_verdicts > 1.5 * without.true_verdicts
    assert found.familywise_error <= max(0.05, without.familywise_error)
    assert found.difference_coverage >= without.difference_coverage, "shorter, and as true"


def test_whole_topics_may_lack_the_labels_that_only_another_measure_needs() -> None:
    """The design is for P@20 too; who asks for P@5 needs what runs return down to rank 5."""
    pool, grades = simulated_pool()
    measure, deep = map(parse_measure, ("P@5", "P@20"))
    design = make_query_design(
        pool,
        goal=goals.absolute(*pool.runs),
        measure=measure,
        measures=[measure, deep],
        model=uniform_grades(pool, max_grade=3),
        budget=900,
    )
    drawn = draw_round(pool, design, seed="s")
    every = drawn.pairs(pool)
    shallow = every[best_rank(pool)[every] <= 5]
    assert len(shallow) < len(every)
    whole, part = (
        evaluate(
            pool, drawn, labels=LabelRows(each, grades[each]), measures=[measure], max_grade=3
        ).results[0]
        for each in (every, shallow)
    )
    assert part.estimate.value.tolist() == whole.estimate.value.tolist()
