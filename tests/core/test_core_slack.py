"""How far verdicts stand back: exactly as far as documents out of reach may change a difference."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from estimation.core import Design, LabelRows, Measure, PairRound, RankedLists, parse_measure
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.inference import out_of_reach
from estimation.core.inference import slack as slack_of_core
from estimation.core.inference.in_common import in_common
from estimation.core.inference.out_of_reach import OutOfReach
from estimation.core.inference.slack import slack
from estimation.core.measures.kinds import PREFERENCE_MAX_GRADE
from estimation.core.rounds import comparison
from estimation.core.rounds.evaluation import evaluate
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample
from estimation.research.simulation import true_values
from tests.core.collecting import publish

MAX_GRADE, EXACT = 2, {"rel": 1e-11, "abs": 1e-11}
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
    return slack(OutOfReach(pool, eligible), measure, max_grade=max_grade, **rest)


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


def no_slack(out: OutOfReach, *_: object, **__: object) -> np.ndarray:
    """The twin: as if what is within reach were all that there is."""
    return np.zeros((len(out.pool.runs), len(out.pool.runs)))


def of_one_run(out: OutOfReach, measure: Measure, *, max_grade: int, **_: object) -> np.ndarray:
    """The other twin: all that a run has out of reach, also where both have it."""
    pool = out.pool
    missed = np.flatnonzero(~out.eligible[pool.entry_pair])
    terms = pool.entry_weights(measure)[missed] * max_grade
    return np.tile(np.bincount(pool.run[missed], terms, len(pool.runs)), (len(pool.runs), 1))


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
            found = publish(pool, [PairRound(design, sample, 1)], version="0", **asked)
            (result,) = found.evaluate(ranked, measures=[measure]).results
        else:
            (result,) = evaluate(
                pool, PairRound(design, sample), measures=[measure], **asked
            ).results
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


@pytest.mark.parametrize("collected", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_verdict_hangs_on_documents_that_the_design_left_out(collected: bool) -> None:
    """Under DCG@2 the pair alpha, beta leaves x out, and the documents of gamma alone."""
    wrong, given, of_goal = false_verdicts(
        goals.pair("alpha", "beta"), parse_measure("DCG@2"), collected=collected
    )
    assert wrong == 0
    assert given > of_goal > 0


@pytest.mark.parametrize("collected", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_twin_that_takes_the_reached_part_for_all_is_caught(
    collected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "slack", no_slack)
    wrong, given, _ = false_verdicts(
        goals.pair("alpha", "beta"), parse_measure("DCG@2"), collected=collected
    )
    assert wrong > 0
    assert given > 0


@pytest.mark.slow
def test_a_twin_that_counts_what_both_have_tells_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pool as small what was judged settles the pair with either; nobody looks here."""
    monkeypatch.setattr(comparison, "least_differences", lambda *_, **__: None)
    kept = false_verdicts(goals.pair("alpha", "beta"), parse_measure("P@3"), collected=False)
    monkeypatch.setattr(comparison, "slack", of_one_run)
    lost = false_verdicts(goals.pair("alpha", "beta"), parse_measure("P@3"), collected=False)
    assert kept[0] == lost[0] == 0
    assert lost[2] < kept[2]


# ------------------------------------------------------------------------ large pools, little slack


def test_next_to_nothing_is_allowed_for_without_a_look_at_every_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And by no less than is needed."""
    pool, measure = pool_of(RUNS), parse_measure("RBP(p=0.5)")
    asked = {"eligible": without(pool, "abz"), "max_grade": MAX_GRADE}
    exact = slack_of(pool, measure, **asked)
    monkeypatch.setattr("estimation.core.inference.slack.LITTLE", 1.1)
    with monkeypatch.context() as patch:
        patch.setattr("estimation.core.inference.slack._in_common", None)
        found = slack_of(pool, measure, **asked)
    assert np.all(found >= exact)
    assert found.sum() > exact.sum()
    assert not found.diagonal().any()
    for text in ("MSE", "AP"):
        changed = slack_of(pool, parse_measure(text), **asked)
        monkeypatch.setattr("estimation.core.inference.slack.LITTLE", 1e-6)
        assert changed.tolist() == slack_of(pool, parse_measure(text), **asked).tolist()
        monkeypatch.setattr("estimation.core.inference.slack.LITTLE", 1.1)


def deep_pool() -> Pool:
    """Six runs of 40 documents in two topics; the second is nearly the first, to the last rank."""
    rng = np.random.default_rng(6)
    docnos = np.array([f"d{number:02}".encode() for number in range(70)])
    lists = {f"run{run}": [rng.permutation(docnos)[:40] for _ in TOPICS] for run in range(6)}
    lists["run1"] = [each.copy() for each in lists["run0"]]
    for each in lists["run1"]:
        each[[20, 21]] = each[[21, 20]]
    bounds = np.array([0, 40, 80])
    runs = {
        tag: RankedLists(tuple(TOPICS), bounds, np.concatenate(each)) for tag, each in lists.items()
    }
    return build_pool(TOPICS, runs, depth=40)


def gained(pool: Pool, measure: Measure, eligible: np.ndarray) -> np.ndarray:
    """The most that the column's run gains over the row's out of reach, pair by pair."""
    weights = pool.weights(measure).toarray()[~eligible]
    ahead = np.maximum(weights[:, None, :] - weights[:, :, None], 0.0).sum(axis=0)
    return np.asarray(ahead * measure.max_utility(MAX_GRADE))


def in_full(pool: Pool, measure: Measure, eligible: np.ndarray) -> np.ndarray:
    """The same as if no run had anything in common with another one."""
    weights = pool.weights(measure).toarray()[~eligible] * measure.max_utility(MAX_GRADE)
    most = np.tile(weights.sum(axis=0), (len(pool.runs), 1))
    np.fill_diagonal(most, 0.0)
    return most


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let so few entries be compared that of twelve lists these are 12 ranks, at first 4.

    Returns the number of entries of every comparison.
    """
    found: list[int] = []

    def counting(rows: sparse.csr_array) -> np.ndarray:
        found.append(rows.nnz)
        return in_common(rows)

    monkeypatch.setattr(out_of_reach, "COMPARED", 12 * 12)
    monkeypatch.setattr(slack_of_core, "in_common", counting)
    return found


DEEP = np.arange(len(deep_pool())) % 10 == 0
ALIKE = np.ix_([0, 1], [0, 1])


@pytest.mark.parametrize("text", ["DCG", "DCG@30", "DCG@12", "P@4", "RBP(p=0.8)", "RBP(p=0.5)"])
def test_deep_lists_are_compared_in_part_and_no_slack_is_too_small(
    text: str, compared: list[int]
) -> None:
    pool, measure = deep_pool(), parse_measure(text)
    asked = {"eligible": DEEP, "max_grade": MAX_GRADE}
    found, exact = slack_of(pool, measure, **asked), gained(pool, measure, DEEP)
    assert np.all(found >= exact - 1e-12)
    assert np.all(found <= in_full(pool, measure, DEEP) + 1e-9)
    assert compared[0] <= 12 * 12
    if text in ("DCG@12", "P@4"):
        assert found == pytest.approx(exact, rel=1e-11, abs=1e-10)
        assert len(compared) == 1


def test_runs_that_are_nearly_alike_are_compared_to_the_last_rank(compared: list[int]) -> None:
    pool, measure = deep_pool(), parse_measure("DCG")
    found = slack_of(pool, measure, eligible=DEEP, max_grade=MAX_GRADE)
    exact, full = gained(pool, measure, DEEP), in_full(pool, measure, DEEP)
    assert found[ALIKE] == pytest.approx(exact[ALIKE], rel=1e-11, abs=1e-10)
    assert 0.0 < exact[0, 1] < 0.01 * full[0, 1]
    others = np.ones_like(found, dtype=bool)
    others[ALIKE] = False
    np.fill_diagonal(others, False)
    assert np.all(found[others] > exact[others])
    assert len(compared) == 2
    assert compared[1] == np.count_nonzero(pool.run[~DEEP[pool.entry_pair]] <= 1)


def test_the_twin_that_looks_no_further_is_caught(
    compared: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slack_of_core, "ALIKE", 1.1)
    pool, measure = deep_pool(), parse_measure("DCG")
    found = slack_of(pool, measure, eligible=DEEP, max_grade=MAX_GRADE)
    assert found[0, 1] > 0.5 * in_full(pool, measure, DEEP)[0, 1]
    assert found[0, 1] > 50 * gained(pool, measure, DEEP)[0, 1]


def test_the_twin_that_leaves_out_what_it_does_not_compare_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if runs had as much in common as they could have."""

    def of_first_ranks(out: OutOfReach, measure: Measure) -> np.ndarray:
        return np.minimum.outer(*[out.missing(measure)] * 2)

    monkeypatch.setattr(slack_of_core, "_in_common", of_first_ranks)
    pool, measure = deep_pool(), parse_measure("DCG")
    found = slack_of(pool, measure, eligible=DEEP, max_grade=MAX_GRADE)
    assert not np.all(found >= gained(pool, measure, DEEP) - 1e-12)


def test_the_end_of_a_list_costs_no_more_than_its_share(
    compared: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And next to nothing between runs that are alike above."""
    monkeypatch.setattr(slack_of_core, "TAIL", 0.1)
    pool, measure = deep_pool(), parse_measure("RBP(p=0.8)")
    found = slack_of(pool, measure, eligible=DEEP, max_grade=MAX_GRADE)
    lost = found - gained(pool, measure, DEEP)
    whole = measure.largest_value(max_grade=MAX_GRADE, depth=pool.depth)
    assert 1e-4 * whole < lost.max() <= 0.1 * whole
    assert lost[ALIKE].max() <= slack_of_core.LITTLE * whole
    assert len(compared) == 2


def test_where_little_is_out_of_reach_all_ranks_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool, few = deep_pool(), np.arange(len(deep_pool())) % 10 > 0
    monkeypatch.setattr(out_of_reach, "COMPARED", int(np.count_nonzero(~few[pool.entry_pair])))
    for text in ("DCG", "RBP(p=0.5)"):
        found = slack_of(pool, parse_measure(text), eligible=few, max_grade=MAX_GRADE)
        assert found == pytest.approx(gained(pool, parse_measure(text), few), **EXACT)


@pytest.mark.usefixtures("compared")
def test_the_order_of_measures_has_no_influence() -> None:
    pool = deep_pool()
    measures = [parse_measure(text) for text in ("DCG@12", "P@4", "RBP(p=0.5)", "DCG")]
    asked = {"max_grade": MAX_GRADE}
    one, other = OutOfReach(pool, DEEP), OutOfReach(pool, DEEP)
    these = [slack(one, each, **asked).tolist() for each in measures]
    those = [slack(other, each, **asked).tolist() for each in reversed(measures)]
    assert these == those[::-1]


@pytest.mark.usefixtures("compared")
def test_the_order_of_deep_runs_has_no_influence() -> None:
    pool, measure = deep_pool(), parse_measure("DCG")
    order = np.array([3, 5, 0, 2, 1, 4])
    runs = {}
    for place, run in enumerate(order.tolist()):
        mine = pool.run == run
        by_rank = np.lexsort([pool.rank[mine], pool.topic[pool.entry_pair[mine]]])
        docnos = pool.docno[pool.entry_pair[mine][by_rank]]
        runs[f"run{place}"] = RankedLists(tuple(TOPICS), np.array([0, 40, 80]), docnos)
    these, those = (
        slack_of(each, measure, eligible=DEEP, max_grade=MAX_GRADE)
        for each in (pool, build_pool(TOPICS, runs, depth=40))
    )
    assert those == pytest.approx(these[np.ix_(order, order)], **EXACT)


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
