"""How far verdicts stand back: exactly as far as documents out of reach may change a difference."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from estimation.core import evaluation, goals
from estimation.core.combining import Part
from estimation.core.designs import Design, make_design
from estimation.core.draws import Sample, draw
from estimation.core.evaluation import evaluate
from estimation.core.labels import LabelRows
from estimation.core.measures import PREFERENCE_MAX_GRADE, Measure, parse_measure
from estimation.core.pair_collection import PairCollection
from estimation.core.pool import Pool, RankedLists, build_pool
from estimation.core.preferences import preference_pool
from estimation.core.priors import make_prior
from estimation.core.reach import Reach
from estimation.core.simulation import true_values
from estimation.core.slack import slack

MAX_GRADE = 2
EXACT = {"rel": 1e-11, "abs": 1e-11}
TOPICS = ["t1", "t2"]
RUNS = {
    "alpha": {"t1": "abc", "t2": "xy"},
    "beta": {"t1": "cba", "t2": "xz"},
    "gamma": {"t1": "bd", "t2": "zx"},
}
SUMS = ["DCG@2", "P(rel=2)@3", "RBP(p=0.5)", "MAE", "MSE", "Accuracy", "Mean"]
BOUNDS = ["AP", "nDCG@2", "Rprec", "ERR@2"]
Slack = Callable[..., np.ndarray]


def lists(ranking: dict[str, str], seed: int) -> RankedLists:
    docnos = np.array([letter.encode() for row in ranking.values() for letter in row])
    scores = np.random.default_rng(seed).integers(0, 5, len(docnos)) / 2.0
    return RankedLists(tuple(ranking), np.cumsum([0, *map(len, ranking.values())]), docnos, scores)


def pool_of(runs: dict[str, dict[str, str]]) -> Pool:
    ranked = {tag: lists(each, seed) for seed, (tag, each) in enumerate(sorted(runs.items()))}
    return build_pool(TOPICS, ranked, depth=3, scores=True)


def slack_of(
    pool: Pool, measure: Measure, *, eligible: np.ndarray, max_grade: int, **rest: np.ndarray
) -> np.ndarray:
    return slack(Reach.of_design(pool, eligible), measure, max_grade=max_grade, **rest)


def least_slack(pool: Pool, measure: Measure, eligible: np.ndarray, scale: int) -> np.ndarray:
    """The most that any difference loses over all grades of the pairs out of reach.

    What is within reach has the same grades in every case, where sums are concerned any.
    """
    sign = -1.0 if measure.lower_is_better else 1.0
    reached, rest = np.flatnonzero(eligible), np.flatnonzero(~eligible)
    most = np.zeros((len(pool.runs), len(pool.runs)))
    for known in product(range(scale + 1), repeat=0 if measure.is_linear else len(reached)):
        grades = np.zeros(len(pool), dtype=np.int64)
        grades[reached] = known if known else 0
        estimated = within_reach(pool, measure, grades, eligible)
        for levels in product(range(scale + 1), repeat=len(rest)):
            grades[rest] = levels
            true = sign * truth(pool, measure, grades)
            lost = np.subtract.outer(sign * estimated, sign * estimated) - np.subtract.outer(
                true, true
            )
            most = np.maximum(most, lost)
    return most


def within_reach(
    pool: Pool, measure: Measure, grades: np.ndarray, eligible: np.ndarray
) -> np.ndarray:
    """What an estimate is of: the terms of eligible pairs, others being taken for useless."""
    if not measure.is_linear:
        return truth(pool, measure, np.where(eligible, grades, 0))
    utilities = [
        measure.entry_utilities(np.array([grades[pair]]), pool.predictions[entry : entry + 1])[0]
        for entry, pair in enumerate(pool.entry_pair)
    ]
    terms = pool.entry_weights(measure) * utilities * eligible[pool.entry_pair]
    return np.bincount(pool.run, weights=terms, minlength=len(pool.runs))


def truth(pool: Pool, measure: Measure, grades: np.ndarray) -> np.ndarray:
    return (err_at_2 if measure.name == "ERR" else true_values)(
        pool, grades=grades, measure=measure
    )


def err_at_2(pool: Pool, *, grades: np.ndarray, measure: Measure) -> np.ndarray:
    """The chance to be satisfied by the first document; by the second, if not, counts half."""
    values = np.zeros((len(pool.topics), len(pool.runs), 3))
    stops = measure.utilities(grades)
    values[pool.topic[pool.entry_pair], pool.run, pool.rank - 1] = stops[pool.entry_pair]
    first, second = values[:, :, 0], values[:, :, 1]
    return np.asarray((first + (1.0 - first) * second / 2.0).mean(axis=0))


def without(pool: Pool, letters: str) -> np.ndarray:
    return ~np.isin(pool.docno, [letter.encode() for letter in letters])


@pytest.mark.parametrize("letters", ["a", "bd", "xz", "abz"])
@pytest.mark.parametrize("text", SUMS)
def test_slack_is_the_most_that_a_difference_can_lose(text: str, letters: str) -> None:
    pool, measure = pool_of(RUNS), parse_measure(text)
    eligible = without(pool, letters)
    wanted = least_slack(pool, measure, eligible, MAX_GRADE)
    found = slack_of(pool, measure, eligible=eligible, max_grade=MAX_GRADE)
    assert wanted.max() > 0.0
    assert found == pytest.approx(wanted, **EXACT)


@pytest.mark.parametrize("text", ["#ofSwaps", "wSwaps"])
def test_slack_of_preferences_is_the_most_that_a_difference_can_lose(text: str) -> None:
    pool, measure = preference_pool(pool_of(RUNS), depth=3), parse_measure(text)
    eligible = np.arange(len(pool)) % 2 == 0
    found = slack_of(pool, measure, eligible=eligible, max_grade=PREFERENCE_MAX_GRADE)
    wanted = least_slack(pool, measure, eligible, PREFERENCE_MAX_GRADE)
    assert wanted.max() > 0.0
    assert found == pytest.approx(wanted, **EXACT)


@pytest.mark.parametrize("letters", ["a", "z", "bx"])
@pytest.mark.parametrize("text", BOUNDS)
def test_no_difference_of_ratios_loses_more_than_the_slack(text: str, letters: str) -> None:
    pool, measure = pool_of(RUNS), parse_measure(text)
    eligible = without(pool, letters)
    wanted = least_slack(pool, measure, eligible, max_grade := 1)
    found = slack_of(pool, measure, eligible=eligible, max_grade=max_grade)
    assert wanted.max() > 0.0
    assert np.all(wanted <= found + 1e-12)
    assert not found.diagonal().any()


def as_others_see_it(pool: Pool, measure: Measure, grades: np.ndarray, added: np.ndarray):
    """The values where pairs that are added count for the runs that return them alone."""
    values = []
    for run in range(len(pool.runs)):
        own = np.zeros(len(pool), dtype=bool)
        own[pool.entry_pair[pool.run == run]] = True
        values.append(truth(pool, measure, np.where(added & ~own, 0, grades))[run])
    return np.array(values)


def of_columns(pool: Pool, eligible: np.ndarray) -> np.ndarray:
    """The twin: what a run adds speaks for it alone, as under measures of gains."""
    out = np.flatnonzero(~eligible[pool.entry_pair])
    has = np.zeros((len(pool.topics), len(pool.runs)))
    has[pool.topic[pool.entry_pair[out]], pool.run[out]] = 1.0
    return np.tile(has.mean(axis=0), (len(pool.runs), 1))


@pytest.mark.parametrize("text", ["AP", "nDCG@2", "nDCG@3", "Rprec"])
def test_what_a_later_run_adds_may_lower_its_own_ratio(text: str) -> None:
    """More relevant documents make every one found count less, below the cutoff as well."""
    runs = {"late": {"t1": "abd", "t2": "xyz"}, "old": {"t1": "ba", "t2": "xy"}}
    pool, measure = pool_of(runs), parse_measure(text)
    added = ~without(pool, "d")
    most = np.zeros((2, 2))
    for levels in product(range(2), repeat=len(pool)):
        grades = np.array(levels)
        seen = as_others_see_it(pool, measure, np.where(added, 0, grades), added)
        true = as_others_see_it(pool, measure, grades, added)
        lost = np.subtract.outer(seen, seen) - np.subtract.outer(true, true)
        most = np.maximum(most, lost)
    found = slack_of(pool, measure, eligible=~added, max_grade=1, added=added)
    assert np.all(most <= found + 1e-12)
    assert most[0, 1] > of_columns(pool, ~added)[0, 1] == 0.0
    assert found.tolist() == [[0.0, 0.5], [0.5, 0.0]]


def test_documents_of_later_runs_alone_leave_the_ratios_of_others_alone() -> None:
    pool = pool_of(RUNS)
    added = ~without(pool, "d")
    found = slack_of(pool, parse_measure("AP"), eligible=~added, max_grade=MAX_GRADE, added=added)
    assert found.tolist() == [[0.0, 0.0, 0.5], [0.0, 0.0, 0.5], [0.5, 0.5, 0.0]]
    everybody = slack_of(pool, parse_measure("AP"), eligible=~added, max_grade=MAX_GRADE)
    assert everybody.tolist() == [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]


@pytest.mark.parametrize("text", [*SUMS, *BOUNDS])
def test_there_is_no_slack_where_all_is_within_reach(text: str) -> None:
    pool = pool_of(RUNS)
    found = slack_of(
        pool, parse_measure(text), eligible=np.ones(len(pool), dtype=bool), max_grade=MAX_GRADE
    )
    assert not found.any()


def test_the_order_of_runs_has_no_influence() -> None:
    names = {"alpha": "zeta", "beta": "eta", "gamma": "alpha"}
    renamed = {names[tag]: each for tag, each in RUNS.items()}
    for text in ("DCG@2", "AP"):
        these, those = (
            slack_of(pool, parse_measure(text), eligible=without(pool, "bz"), max_grade=MAX_GRADE)
            for pool in (pool_of(RUNS), pool_of(renamed))
        )
        order = [sorted(renamed).index(names[tag]) for tag in sorted(RUNS)]
        assert those[np.ix_(order, order)] == pytest.approx(these, **EXACT)


# --------------------------------------------------------------- verdicts of rounds, of collections


def no_slack(reach: Reach, *_: object, **__: object) -> np.ndarray:
    """The twin: as if what is within reach were all that there is."""
    return np.zeros((len(reach.pool.runs), len(reach.pool.runs)))


def of_one_run(reach: Reach, measure: Measure, *, max_grade: int, **_: object) -> np.ndarray:
    """The other twin: all that a run has out of reach, also where both have it."""
    pool = reach.pool
    out = np.flatnonzero(reach.inclusion[pool.entry_pair] <= 0.0)
    terms = pool.entry_weights(measure)[out] * max_grade
    return np.tile(np.bincount(pool.run[out], terms, len(pool.runs)), (len(pool.runs), 1))


def census_for(pool: Pool, goal: goals.Goal, measure: Measure) -> tuple[Design, Sample]:
    prior = make_prior(pool, name="constant", goal=goal, measure=measure, max_grade=MAX_GRADE)
    least = make_design(
        pool, goal=goal, measure=measure, prior=prior, method="poisson", budget=1, batch_size=1,
        floor=0.0,
    )  # fmt: skip
    budget = int(np.count_nonzero(least.eligible))
    design = make_design(
        pool, goal=goal, measure=measure, prior=prior, method="poisson", budget=budget,
        batch_size=budget, floor=0.0,
    )  # fmt: skip
    return design, draw(pool, design, seed="s")


def false_verdicts(goal: goals.Goal, measure: Measure, *, collected: bool) -> tuple[int, int, int]:
    """Wrong verdicts, all verdicts, and those between the goal's two, over all grades.

    All that the design can draw is judged, so that nothing but the rest is unknown.
    """
    pool = pool_of(RUNS)
    design, sample = census_for(pool, goal, measure)
    reached, rest = sample.pair, np.flatnonzero(~design.eligible)
    assert len(rest)
    wrong = given = of_goal = 0
    grades = np.zeros(len(pool), dtype=np.int64)
    ranked = {tag: lists(each, 0) for tag, each in RUNS.items()}
    for levels in product(range(MAX_GRADE + 1), repeat=len(reached)):
        labels = LabelRows(reached, np.array(levels))
        asked = {"labels": labels, "max_grade": MAX_GRADE}
        if collected:
            found = PairCollection.of(pool, [Part(design, sample, 1)], version="0", **asked)
            (result,) = found.evaluate(ranked, measures=[measure]).results
        else:
            (result,) = evaluate(pool, design, sample, measures=[measure], **asked).results
        verdicts = result.ranking.verdicts
        given += np.count_nonzero(verdicts)
        of_goal += np.count_nonzero(verdicts[:2, :2])
        grades[reached] = levels
        for others in product(range(MAX_GRADE + 1), repeat=len(rest)):
            grades[rest] = others
            truth = true_values(pool, grades=grades, measure=measure)
            better = np.sign(np.round(np.subtract.outer(truth, truth), 12))
            wrong += np.count_nonzero((verdicts != 0) & (verdicts != better))
    return wrong, given, of_goal


@pytest.mark.parametrize("collected", [False, True])
def test_no_verdict_hangs_on_documents_that_the_design_left_out(collected: bool) -> None:
    """Under DCG@2 the pair alpha, beta leaves x out, and the documents of gamma alone."""
    wrong, given, of_goal = false_verdicts(
        goals.pair("alpha", "beta"), parse_measure("DCG@2"), collected=collected
    )
    assert wrong == 0
    assert given > of_goal > 0


@pytest.mark.parametrize("collected", [False, True])
def test_the_twin_that_takes_the_reached_part_for_all_is_caught(
    collected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "slack", no_slack)
    wrong, given, _ = false_verdicts(
        goals.pair("alpha", "beta"), parse_measure("DCG@2"), collected=collected
    )
    assert wrong > 0
    assert given > 0


def test_the_twin_that_counts_what_both_have_finds_nothing_about_the_pair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = false_verdicts(goals.pair("alpha", "beta"), parse_measure("P@3"), collected=False)
    monkeypatch.setattr(evaluation, "slack", of_one_run)
    lost = false_verdicts(goals.pair("alpha", "beta"), parse_measure("P@3"), collected=False)
    assert kept[0] == lost[0] == 0
    assert lost[2] < kept[2]


# ------------------------------------------------------------------------ large pools, little slack


def test_negligible_entries_are_allowed_for_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, eligible = pool_of(RUNS), without(pool_of(RUNS), "abz")
    for text in SUMS:
        asked = {"eligible": eligible, "max_grade": MAX_GRADE}
        exact = slack_of(pool, parse_measure(text), **asked)
        with monkeypatch.context() as patch:
            patch.setattr("estimation.core.slack.NEGLIGIBLE", 1.0)
            larger = slack_of(pool, parse_measure(text), **asked)
        assert np.all(larger >= exact - 1e-12)
        assert larger.sum() > exact.sum()


def test_next_to_nothing_is_allowed_for_without_a_look_at_every_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And by no less than is needed."""
    pool, measure = pool_of(RUNS), parse_measure("RBP(p=0.5)")
    asked = {"eligible": without(pool, "abz"), "max_grade": MAX_GRADE}
    exact = slack_of(pool, measure, **asked)
    monkeypatch.setattr("estimation.core.slack.LITTLE", 1.1)
    with monkeypatch.context() as patch:
        patch.setattr("estimation.core.slack._most_gained", None)
        found = slack_of(pool, measure, **asked)
    assert np.all(found >= exact)
    assert found.sum() > exact.sum()
    assert not found.diagonal().any()
    for text in ("MSE", "AP"):
        changed = slack_of(pool, parse_measure(text), **asked)
        monkeypatch.setattr("estimation.core.slack.LITTLE", 1e-6)
        assert changed.tolist() == slack_of(pool, parse_measure(text), **asked).tolist()
        monkeypatch.setattr("estimation.core.slack.LITTLE", 1.1)


def test_a_large_term_that_both_have_hides_no_small_one() -> None:
    """Scores are far off for one document, where both runs are, and differ on others."""
    scores = {"a": (1e9, 1.0, 0.0), "b": (1e9, 1.0, 3.0)}
    docnos = np.array([b"x", b"y", b"z"])
    runs = {
        tag: RankedLists(("t1",), np.array([0, 3]), docnos, np.array(each))
        for tag, each in scores.items()
    }
    pool = build_pool(["t1"], runs, depth=3, scores=True)
    found = slack_of(pool, parse_measure("MSE"), eligible=pool.docno == b"y", max_grade=3)
    assert np.all(found[[0, 1], [1, 0]] >= 3.0)
