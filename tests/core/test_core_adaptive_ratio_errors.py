"""How far ratios from adaptive rounds may be off: by what is expected, and by single documents."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.scope import Scope
from estimation.core.estimates.ratio_labels import BiasLeft, RatioEstimate
from estimation.core.estimates.totals import Totals
from estimation.core.inference import ratio_knowledge
from estimation.core.inference.intervals import difference_variances
from estimation.core.inference.missed import Missed
from estimation.core.inference.of_all_runs import OfAllRuns
from estimation.core.inference.ratio_knowledge import RatioKnowledge, knowledge_at
from estimation.core.inference.ratio_outlook import AtOutlook
from estimation.core.inference.uncertainty import variances_of_differences
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.adaptive.batch_weights import BatchWeights
from estimation.core.rounds.adaptive.outlooks import model_outlook
from estimation.core.rounds.adaptive.slopes import at_outlook
from estimation.core.rounds.adaptive.state import walk
from estimation.core.rounds.limits import limits_of_ratios
from estimation.research.simulation import true_values
from tests.core.test_core_adaptive import played
from tests.core.test_core_adaptive_ratios import AP, RPREC, estimated, labels_at, plan_of

NDCG = parse_measure("nDCG@5")
TOPICS, DEPTH = 30, 10
TRIALS = 15


@pytest.fixture(scope="module")
def by_hand() -> tuple[Pool, np.ndarray]:
    """Six runs that find the same, and one of which every second document is its own.

    Of these one in thirty is relevant, and very much so.
    """
    generator = np.random.default_rng(1)
    topics, relevance = [f"t{number:02}" for number in range(TOPICS)], {}
    lists: dict[str, list[np.ndarray]] = {
        tag: [] for tag in (*(f"run{n}" for n in range(6)), "hand")
    }
    docnos = np.array([f"d{number:03}" for number in range(40)])
    own = np.array([f"h{number:03}" for number in range(DEPTH)])
    for topic in topics:
        grades = np.zeros(40, dtype=int)
        grades[generator.permutation(14)[:4]] = generator.integers(1, 4, 4)
        for tag, rows in lists.items():
            noise = 2.0 if tag == "hand" else 1.2
            order = np.argsort(-(1.5 * grades + noise * generator.normal(size=40)), kind="stable")
            first = docnos[order][:DEPTH]
            rows.append(np.where(np.arange(DEPTH) % 2 == 0, own, first) if tag == "hand" else first)
        relevance |= {(topic, docno): grade for docno, grade in zip(docnos, grades, strict=True)}
        relevance |= {(topic, docno): 3 * int(generator.random() < 0.03) for docno in own}
    bounds = np.arange(TOPICS + 1) * DEPTH
    runs = {
        tag: RankedLists(tuple(topics), bounds, np.concatenate(rows).astype("S4"))
        for tag, rows in lists.items()
    }
    pool = build_pool(topics, runs, depth=DEPTH)
    pairs = zip(pool.topic.tolist(), pool.docno.tolist(), strict=True)
    return pool, np.array([relevance[topics[topic], docno.decode()] for topic, docno in pairs])


def line_of(by_hand: tuple, measure: Measure) -> tuple[AtOutlook, np.ndarray]:
    """A round that is linearized, and which of its pairs were not judged."""
    pool, grades = by_hand
    drawn, labels = played(pool, grades, plan_of(pool, measure, budget=400))
    frame, pairs = drawn.design.frame(pool), drawn.sample.pair
    weights = BatchWeights.of(frame, walk(frame, drawn.sample), [measure], drawn.planned)
    outlook = model_outlook(frame, drawn.sample.steps[-1].model)
    rows = labels_at(labels, pairs)
    line = at_outlook(Scope.of(pool), weights, measure, outlook, pairs=pairs, rows=rows)
    unjudged = np.ones(len(pool), dtype=bool)
    unjudged[pairs] = False
    return line.at, unjudged


@pytest.mark.parametrize("measure", [AP, NDCG, RPREC], ids=str)
def test_what_unjudged_pairs_would_change_is_as_pair_by_pair(
    by_hand: tuple, measure: Measure
) -> None:
    """Each pair moves every run, through the numerator of those that return it."""
    at, unjudged = line_of(by_hand, measure)
    tangent, pairs = at.tangent, np.arange(len(unjudged))
    best = np.ones((len(tangent.frame.gains.gain), len(pairs)))
    moved, listed = tangent.moved(pairs, best), tangent.slopes.copy()
    listed.data[:] = 1.0
    every = listed.toarray() > 0.0
    gain = tangent.frame.gains.gain.sum()
    taken = np.maximum(gain * tangent.slopes.toarray() - moved, 0.0)
    for run in range(moved.shape[1]):
        returned = every[:, run]
        step = np.maximum(moved[:, run], 0.0)
        likely = np.where(unjudged & returned, at.squares * step, 0.0)
        found = at.missed(unjudged)
        assert found.step[run] ** 2 == pytest.approx((likely * step**2).sum() / likely.sum())
        sampled = ~unjudged & returned & (at.factor > 0.0)
        of = (step[sampled] ** 2).sum() + (step[unjudged | sampled] ** 2).max()
        assert found.left[run] == pytest.approx((step[unjudged & returned] ** 2).sum() / of)
        elsewhere, step = at.missed_elsewhere(unjudged), taken[:, run]
        likely = np.where(unjudged, at.squares, 0.0)
        root = (likely * step**3).sum() / (likely * step).sum()
        assert elsewhere.step[run] ** 2 == pytest.approx(root)
        assert elsewhere.squares[run, run] == pytest.approx((likely * step**2).sum() / gain**2)
        of = (step[~unjudged & (at.factor > 0.0)] ** 2).sum() + (step**2).max()
        assert elsewhere.left[run] == pytest.approx((step[unjudged] ** 2).sum() / of)


@pytest.mark.slow
def test_limits_hold_where_one_document_more_may_be_relevant(by_hand: tuple) -> None:
    """Of the run by hand, and of others, from which its documents take as they are relevant."""
    covered = coverage(*by_hand)
    assert covered.min() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("part", ["missed", "missed_elsewhere"])
def test_what_a_model_expects_alone_would_be_too_little(
    by_hand: tuple, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """The twins: limits by the expected variance alone."""
    none = Missed(np.zeros((7, 7)), np.zeros(7))
    monkeypatch.setattr(AtOutlook, part, lambda _at, _unjudged: none)
    covered = coverage(*by_hand)
    assert covered[0] < 0.75 if part == "missed" else covered[1:].mean() < 0.9


def coverage(pool: Pool, grades: np.ndarray) -> np.ndarray:
    truth, plan = true_values(pool, grades=grades, measure=NDCG), plan_of(pool, NDCG, budget=650)
    held = []
    for trial in range(TRIALS):
        found = estimated(pool, *played(pool, grades, plan, seed=f"t{trial}"), NDCG)
        held.append((found.low <= truth + 1e-12) & (truth <= found.high + 1e-12))
    return np.mean(held, axis=0)


def test_where_all_is_judged_nothing_is_allowed_for(by_hand: tuple) -> None:
    at, unjudged = line_of(by_hand, NDCG)
    for missed in (at.missed(unjudged & False), at.missed_elsewhere(unjudged & False)):
        assert missed.least_reach(confidence=0.95) == pytest.approx(0.0, abs=1e-15)
        assert missed.least_errors(confidence=0.95) == pytest.approx(0.0, abs=1e-15)


def test_two_runs_that_one_document_may_part_are_not_told_apart_by_less(by_hand: tuple) -> None:
    """Standard errors of their difference are not below what it would change."""
    pool, grades = by_hand
    drawn, labels = played(pool, grades, plan_of(pool, NDCG, budget=650))
    found = estimated(pool, drawn, labels, NDCG)
    assert found.difference_least is not None
    assert found.difference_least[0, 1:].min() > 0.0


def estimate_with(squares: np.ndarray, finds: np.ndarray) -> RatioEstimate:
    """Values of .3 with such squares, each carried by so many finds; no bias is left."""
    runs, none = len(squares), np.zeros((1, len(squares)))
    totals = Totals(
        value=np.full(runs, 0.3),
        covariance=squares,
        contributions=finds,
        noise=np.zeros_like(squares),
        sure=np.zeros(runs),
    )
    left = BiasLeft(none[0], none[0])
    return RatioEstimate(totals, none, none[0], np.ones(1, dtype=np.int64), False, left)


def known_of(
    by_hand: tuple, share: float, finds: float, goal: np.ndarray | None
) -> tuple[RatioEstimate, RatioKnowledge]:
    """What is known where squares are such a share of what is expected; no value has a find."""
    at, _ = line_of(by_hand, AP)
    usual, every = at.covariance, np.arange(7)
    found = estimate_with(share * usual, finds * (1.0 - np.eye(7)))
    told = {}
    if goal is not None:
        known = {"sampled": every >= 0, "goal": np.isin(every, goal)}
        told = {"of_all": OfAllRuns.of(at.covariance, found, **known), "goal": known["goal"]}
    return found, knowledge_at(at, AP, found, **told)


def expected_of(by_hand: tuple, share: float, finds: float, goal: np.ndarray | None) -> np.ndarray:
    """What is expected of differences there, without what is always possible."""
    found, known = known_of(by_hand, share, finds, goal)
    return known.expected - np.diag((ratio_knowledge.INEXACT * found.estimate.value) ** 2)


def test_what_parts_runs_is_expected_as_the_squares_of_all_have_it(by_hand: tuple) -> None:
    usual, every = expected_of(by_hand, 0.2, 15.0, None), np.arange(7)
    found = expected_of(by_hand, 0.2, 15.0, every)
    less = (5.0 + 15.0 * 0.2) / (5.0 + 15.0)
    apart = np.triu_indices(7, k=1)
    assert difference_variances(found)[apart] == pytest.approx(
        less * difference_variances(usual)[apart]
    )
    assert found.mean() == pytest.approx(usual.mean())
    assert found == pytest.approx(found.T, rel=1e-12)
    for share, goal in ((1.5, every), (0.2, every[:2]), (0.2, every[:0])):
        untold = expected_of(by_hand, share, 15.0, goal)
        assert untold == pytest.approx(usual), "larger squares, or too few runs, change nothing"
    assert expected_of(by_hand, 0.2, 0.0, every) == pytest.approx(usual), "nothing was found"


def test_values_keep_what_is_expected_of_them_where_differences_follow_squares(
    by_hand: tuple,
) -> None:
    """A run unlike the others is known by no squares of theirs."""
    found, known = known_of(by_hand, 0.2, 15.0, np.arange(7))
    _, usual = known_of(by_hand, 0.2, 15.0, None)
    assert known.of_values == pytest.approx(np.diag(usual.expected))
    assert known.of_values == pytest.approx(usual.of_values)
    assert np.diag(known.expected).max() < 0.9 * known.of_values.max(), "differences do not"
    shown = limits_of_ratios(found.estimate, replace(known, missed=None), 0.95, 1.0)
    assert shown.se == pytest.approx(np.sqrt(known.of_values))
    assert np.all(shown.high - shown.value > 1.9 * shown.se)


def test_values_err_by_no_less_than_what_was_found_tells(by_hand: tuple) -> None:
    """Of a run that finds what no other does a model expects too little; differences mix both."""
    found, known = known_of(by_hand, 2.0, 15.0, None)
    squares = np.diag(found.estimate.covariance)
    always = (ratio_knowledge.INEXACT * found.estimate.value) ** 2
    assert known.of_values == pytest.approx(squares + always)
    assert np.all(np.diag(known.expected) < 0.8 * known.of_values)


def test_runs_outside_of_the_goal_keep_what_is_expected_of_them(by_hand: tuple) -> None:
    """What runs of the goal differ by tells nothing of one that joined later."""
    goal, usual = np.arange(1, 7), expected_of(by_hand, 0.2, 15.0, None)
    found = expected_of(by_hand, 0.2, 15.0, goal)
    assert found[0, 0] == pytest.approx(usual[0, 0])
    apart, before = difference_variances(found), difference_variances(usual)
    two = np.triu_indices(6, k=1)
    times = (5.0 + 3.0) / 20.0
    assert apart[1:, 1:][two] == pytest.approx(times * before[1:, 1:][two])
    assert np.all(apart[0, 1:] > times * before[0, 1:])


def test_what_runs_share_of_a_bias_widens_values_and_is_in_no_difference(by_hand: tuple) -> None:
    at, _ = line_of(by_hand, AP)
    found = estimate_with(0.5 * at.covariance, np.zeros((7, 7)))
    usual = knowledge_at(at, AP, found)
    assert not usual.unknown.any(), "or nothing could be withheld"
    every = np.ones(7, dtype=bool)

    def with_bias(bias: float) -> RatioKnowledge:
        other = replace(found, left=BiasLeft(np.zeros(7), np.full(7, bias)))
        of_all = OfAllRuns.of(at.covariance, other, sampled=every, goal=~every)
        return knowledge_at(at, AP, other, of_all=of_all, goal=~every)

    shared, biased = with_bias(0.02), with_bias(0.2)
    assert shared.expected - usual.expected == pytest.approx(np.full((7, 7), 0.02**2))
    assert biased.unknown.all()
    for each in (shared, biased):
        assert np.array_equal(each.difference_unknown, usual.difference_unknown)


@pytest.mark.slow
@pytest.mark.parametrize("twin", [False, True])
def test_differences_are_covered_and_those_of_a_twin_are_not(
    by_hand: tuple, monkeypatch: pytest.MonkeyPatch, twin: bool
) -> None:
    """The twin expects that nothing parts runs, so that squares alone tell."""
    if twin:
        alike = lambda _, expected, *__: np.full_like(expected, expected.mean())  # noqa: E731
        monkeypatch.setattr(OfAllRuns, "as_far_apart", alike)
    pool, grades = by_hand
    truth, plan = true_values(pool, grades=grades, measure=AP), plan_of(pool, AP, budget=400)
    apart, within = np.triu_indices(7, k=1), []
    for trial in range(TRIALS):
        found = estimated(pool, *played(pool, grades, plan, seed=f"d{trial}"), AP)
        error = np.sqrt(variances_of_differences(found.covariance, found.expected))
        off = np.subtract.outer(found.value - truth, found.value - truth)
        within.append(np.mean((np.abs(off) <= 1.96 * error)[apart]))
    assert np.mean(within) < 0.9 if twin else 0.94 < np.mean(within) < 0.995
