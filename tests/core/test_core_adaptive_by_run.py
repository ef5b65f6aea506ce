"""Adaptive rounds of preferences: unbiased over all samples, honest, and told again from a file."""

import io
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.scope import Scope
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.inference.uncertainty import level
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.adaptive import grades as model
from estimation.core.rounds.adaptive.by_run import ByRun
from estimation.core.rounds.adaptive.comparing import numbers_of_two
from estimation.core.rounds.adaptive.finds import Finds
from estimation.core.rounds.adaptive.grades import Features
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.sampled import planned_alone, weighed
from estimation.core.rounds.adaptive.sampling import reached
from estimation.core.rounds.adaptive.state import AdaptivePlan, AdaptiveState, walk
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import DrawnRound, MeasureResult
from estimation.core.rounds.rounds import draw_round
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values
from tests.core.collecting import publish
from tests.core.length import bounded
from tests.core.test_core_adaptive import _each, begun, every_round
from tests.core.test_core_adaptive_topics import _outcomes
from tests.core.test_core_preferences import RUNS, TOPICS, scored

EXACT = {"rel": 1e-11, "abs": 1e-12}
SWAPS, WEIGHTED = MEASURES = [parse_measure(text) for text in ("#ofSwaps", "wSwaps")]
BEST, GRADES = 2, np.array([2, 0, 1, 0, 2])
LATER = scored({"1": {"y": 2.0, "x": 1.0, "z": 0.0}, "2": {"q": 3.0, "p": 1.0}})
BATCHES = bounded(2, 3)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learn from the very first judgment, so that a tiny round is as adaptive as a large one."""
    monkeypatch.setattr(model, "LEAST_JUDGED", 1)
    monkeypatch.setattr(model, "LEAST_FOUND", 0)


def pool_of(runs: dict = RUNS, *, depth: int = 3, topics: list[str] = TOPICS) -> Pool:
    """By default five pairs of documents, three runs."""
    return preference_pool(build_pool(topics, runs, depth=depth), depth=depth)


def design_for(
    pool: Pool, measure: Measure, *, budget: float = 3, batches: int = 3, **options
) -> Design:
    goal = options.pop("goal", goals.absolute(*pool.runs))
    prior = make_prior(pool, name="constant", goal=goal, measure=measure, max_grade=BEST)
    given = {"goal": goal, "measure": measure, "prior": prior, "method": "adaptive"} | options
    return make_design(pool, budget=budget, batch_size=-(-budget // batches), **given)


def plan_for(pool: Pool, measure: Measure, **options) -> AdaptivePlan:
    together = options.pop("topic_minimum", 0.0)
    design = design_for(pool, measure, **options)
    return AdaptivePlan(design, BEST, options.get("costs"), topic_minimum=together)


def run_totals(drawn: AdaptiveRound, scope: Scope, measure: Measure, rows: LabelRows) -> ByRun:
    pool = scope.sampled or scope.pool
    frame = drawn.design.frame(pool)
    weights = weighed(frame, drawn.sample, (measure,)).weights
    return ByRun(frame, scope, weights, measure, drawn.sample.pair, rows)


def moments(
    pool: Pool, plan: AdaptivePlan, measure: Measure, *, batches: int, joined: Pool | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and covariance of the values, and mean of the estimated covariance."""
    scope, play = Scope.of(pool, joined), _by_topics if plan.together else every_round
    mean, square, estimated = 0.0, 0.0, 0.0
    for chance, drawn in play(pool, begun(plan), batches=batches, grades=GRADES):
        pairs = drawn.sample.pair
        rows = LabelRows(np.arange(len(pairs)), GRADES[pairs])
        found = run_totals(drawn, scope, measure, rows).estimate()
        mean = mean + chance * found.value
        square = square + chance * np.multiply.outer(found.value, found.value)
        estimated = estimated + chance * found.covariance
    return mean, square - np.multiply.outer(mean, mean), estimated


def _by_topics(
    pool: Pool, drawn: AdaptiveRound, *, batches: int, grades: np.ndarray
) -> Iterator[tuple[float, AdaptiveRound]]:
    """As `every_round`, where topics take part by chance."""
    if batches == 0:
        yield 1.0, drawn
        return
    pairs = drawn.sample.pair
    planned = drawn.next_batch(pool, labels=LabelRows(pairs, grades[pairs]))
    for share, taken in _outcomes(pool, planned):
        longer = drawn.with_batch(planned, taken)
        for rest, whole in _by_topics(pool, longer, batches=batches - 1, grades=grades):
            yield share * rest, whole


def truth_of(pool: Pool, measure: Measure) -> np.ndarray:
    return true_values(pool, grades=GRADES, measure=measure)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_values_are_unbiased_and_so_are_their_variances(eager: None, measure: Measure) -> None:
    pool = pool_of()
    mean, covariance, estimated = moments(pool, plan_for(pool, measure), measure, batches=BATCHES)
    assert mean == pytest.approx(truth_of(pool, measure), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"goal": goals.ranking("a", "b", "c")},
        {"goal": goals.pair("a", "b")},
        {"goal": goals.winner("a", "b", "c")},
        {"costs": np.array([1.0, 2.0, 0.5, 1.0, 3.0])},
        {"floor": 0.0},
        {"topic_minimum": 1.5},
    ],
    ids=["ranking", "pair", "winner", "costs", "no floor", "topics together"],
)
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_whatever_the_plan_rests_on_values_are_unbiased(
    eager: None, measure: Measure, options: dict
) -> None:
    pool = pool_of()
    plan = plan_for(pool, measure, **options)
    mean, covariance, estimated = moments(pool, plan, measure, batches=2)
    assert mean == pytest.approx(truth_of(pool, measure), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_a_run_that_joins_later_is_unbiased(eager: None, measure: Measure) -> None:
    pool, joined = pool_of(), pool_of({**RUNS, "later": LATER})
    assert len(joined) == len(pool)
    mean, covariance, estimated = moments(
        pool, plan_for(pool, measure), measure, batches=2, joined=joined
    )
    assert mean == pytest.approx(truth_of(joined, measure), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_with_one_prediction_for_all_runs_the_squares_would_be_wrong(
    monkeypatch: pytest.MonkeyPatch, eager: None, measure: Measure
) -> None:
    """The twin: what a batch expects of the mean run is taken off the finds of each of them.

    Values would be unbiased if it were put back for the mean run as well; what batches predicted
    is put back as it was for each run, so that it must be taken off so, too.
    """
    right = ByRun._predicted.func

    def of_mean_run(self: ByRun) -> np.ndarray:
        told, weight = right(self), np.diff(self.terms.weights.indptr)
        pair = np.repeat(np.arange(len(weight)), weight)
        return (np.bincount(pair, told, len(weight)) / np.maximum(weight, 1))[pair]

    monkeypatch.setattr(ByRun, "_predicted", property(of_mean_run))
    pool = pool_of()
    truth = truth_of(pool, measure)
    mean, _, _ = moments(pool, plan_for(pool, measure), measure, batches=2)
    assert np.abs(mean - truth).max() > 1e-3 * truth.max()


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_weights_by_all_chances_together_would_be_biased(eager: None, measure: Measure) -> None:
    """The twin: one over the chance to be drawn by any batch, as if it had been fixed before."""
    pool, mean = pool_of(), 0.0
    of_entries = np.repeat(GRADES, np.diff(pool.indptr))
    added = pool.entry_weights(measure) * measure.entry_utilities(of_entries, pool.predictions)
    rows = pool.by_pair(added).toarray()
    plan = plan_for(pool, measure)
    for chance, drawn in every_round(pool, begun(plan), batches=2, grades=GRADES):
        *_, last = walk(drawn.design.frame(pool), drawn.sample)
        pairs, together = drawn.sample.pair, reached(last.before, last.chances)
        mean = mean + chance * (rows[pairs] / together[pairs, None]).sum(axis=0)
    truth = truth_of(pool, measure)
    assert np.abs(mean - truth).max() > 1e-3 * truth.max()


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_two_people_who_disagree_make_the_variance_larger_by_what_they_cost(
    eager: None, measure: Measure
) -> None:
    """Over all samples and all labels: two labels of a pair, each by the toss of a coin."""
    pool = pool_of()
    plan, scope = plan_for(pool, measure, budget=2, batches=2), Scope.of(pool)
    mean, square, estimated, truth = 0.0, 0.0, 0.0, 0.0
    for given in product([0, 2], repeat=2):
        first, second = GRADES.copy(), GRADES.copy()
        first[0], second[0] = given
        truth = truth + sum(
            true_values(pool, grades=each, measure=measure) / 8 for each in (first, second)
        )
        drawn = begun(plan)
        for chance, whole in _judged_twice(pool, drawn, first, second, batches=2):
            pairs = whole.sample.pair
            both = np.sort(np.stack([first[pairs], second[pairs]], axis=1))
            rows = LabelRows(np.repeat(np.arange(len(pairs)), 2), both.ravel())
            found = run_totals(whole, scope, measure, rows).estimate()
            mean = mean + chance / 4 * found.value
            square = square + chance / 4 * np.multiply.outer(found.value, found.value)
            estimated = estimated + chance / 4 * found.covariance
    assert mean == pytest.approx(truth, **EXACT)
    assert estimated == pytest.approx(square - np.multiply.outer(mean, mean), rel=1e-10, abs=1e-12)


def _judged_twice(
    pool: Pool, drawn: AdaptiveRound, first: np.ndarray, second: np.ndarray, *, batches: int
) -> Iterator[tuple[float, AdaptiveRound]]:
    """As `every_round`, with two labels of each pair."""
    if batches == 0:
        yield 1.0, drawn
        return
    pairs = drawn.sample.pair
    rows = LabelRows(np.repeat(pairs, 2), np.stack([first[pairs], second[pairs]], axis=1).ravel())
    for share, longer in _each(drawn, drawn.next_batch(pool, labels=rows)):
        for rest, whole in _judged_twice(pool, longer, first, second, batches=batches - 1):
            yield share * rest, whole


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_what_is_expected_of_the_truth_is_about_what_is_found(
    eager: None, measure: Measure
) -> None:
    """Over all rounds: with an outlook that is the truth the expected covariance is the true one.

    Not exactly, as how far batches' predictions differ is told of all grades together.
    """
    pool = pool_of()
    scope, levels = Scope.of(pool), np.arange(1, BEST + 1)
    outlook = KnownOutlook(levels, (levels[:, None] <= GRADES).astype(np.float64))
    expected, estimated = 0.0, 0.0
    for chance, drawn in every_round(
        pool, begun(plan_for(pool, measure)), batches=2, grades=GRADES
    ):
        pairs = drawn.sample.pair
        found = run_totals(drawn, scope, measure, LabelRows(np.arange(len(pairs)), GRADES[pairs]))
        planned = planned_alone(found.frame, drawn.sample)
        expected = expected + chance * found.unseen(outlook, planned).covariance
        estimated = estimated + chance * found.estimate().covariance
    assert np.diag(expected) == pytest.approx(np.diag(estimated), rel=0.1)


# ------------------------------------------------------------------------------ of usual size


def collection() -> tuple[Pool, np.ndarray]:
    """Six runs over twenty topics, of documents with grades; the better one is preferred."""
    rng, topics, documents = np.random.default_rng(5), 20, 30
    quality = rng.choice(4, size=(topics, documents), p=(0.6, 0.2, 0.12, 0.08))
    names = [f"t{topic:02}" for topic in range(topics)]
    runs = {}
    for run in range(6):
        scores = quality + rng.normal(scale=0.6 + run / 4.0, size=quality.shape)
        runs[f"r{run}"] = scored(
            {
                name: {f"d{number:02}": float(of_topic[number]) for number in range(documents)}
                for name, of_topic in zip(names, scores, strict=True)
            }
        )
    pool = pool_of(runs, depth=8, topics=names)
    first, second = (
        quality[pool.topic, [int(docno[1:]) for docno in each.tolist()]]
        for each in (pool.docno, pool.other)
    )
    return pool, 1 + np.sign(first - second)


@pytest.fixture(scope="module")
def large() -> tuple[Pool, np.ndarray]:
    return collection()


def played(
    pool: Pool, grades: np.ndarray, plan: AdaptivePlan, *, seed: str
) -> tuple[AdaptiveRound, LabelRows]:
    drawn = AdaptiveRound.begin(pool, plan, seed=seed)
    while drawn.planned < drawn.batches:
        pairs = drawn.pairs(pool)
        drawn = drawn.extended(pool, labels=LabelRows(pairs, grades[pairs]))
    pairs = drawn.pairs(pool)
    return drawn, LabelRows(pairs, grades[pairs])


def told(pool: Pool, drawn: DrawnRound, labels: LabelRows, measure: Measure) -> MeasureResult:
    return evaluate(pool, drawn, labels=labels, measures=[measure], max_grade=1).results[0]


def in_poisson(pool: Pool, grades: np.ndarray, design: Design, seed: str) -> MeasureResult:
    drawn = draw_round(pool, design, seed=seed)
    pairs = drawn.pairs(pool)
    return told(pool, drawn, LabelRows(pairs, grades[pairs]), design.measure)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_it_is_nearer_than_poisson_rounds_unbiased_and_intervals_hold(
    large: tuple[Pool, np.ndarray], measure: Measure
) -> None:
    """Of 300 pairs in ten batches; the number of judged pairs is the same on average."""
    (pool, grades), trials = large, bounded(60, 300)
    truth = true_values(pool, grades=grades, measure=measure)
    plan = plan_for(pool, measure, budget=300, batches=10)
    poisson = design_for(pool, measure, budget=300, batches=10, method="poisson")
    errors, of_poisson, held, judged = [], [], [], []
    for trial in range(trials):
        drawn, labels = played(pool, grades, plan, seed=f"{trial}")
        found = told(pool, drawn, labels, measure).estimate
        errors.append(found.value - truth)
        held.append((found.low <= truth) & (truth <= found.high))
        judged.append(len(labels.pair))
        of_poisson.append(in_poisson(pool, grades, poisson, f"{trial}").estimate.value - truth)
    spread = np.std(errors, axis=0, ddof=1) / np.sqrt(trials)
    assert np.all(np.abs(np.mean(errors, axis=0)) < 4.0 * spread)
    assert np.mean(np.square(errors)) < 0.8 * np.mean(np.square(of_poisson))
    assert np.mean(held) > 0.93
    assert np.min(np.mean(held, axis=0)) > 0.87
    assert np.mean(judged) == pytest.approx(300, rel=0.03)


def test_the_level_is_told_by_the_squares_of_the_goals_runs(large: tuple[Pool, np.ndarray]) -> None:
    pool, drawn, labels = published_of(large)
    rows = LabelRows(np.arange(len(labels.pair)), labels.grade)
    found = run_totals(drawn, Scope.of(pool), SWAPS, rows)
    judged, missed = found.weights.of_judged(found.pairs), found.missed.toarray()[:, :2]
    counted = judged.on_find**2 * (1.0 - judged.chance)
    values = counted * (missed**2).sum(axis=1)
    apart = counted * (missed[:, 0] - missed[:, 1]) ** 2 / 2.0
    each = values.sum() / 8.0
    by_hand = max(level(values, 2.0 * each), level(apart, each))
    of_two = np.arange(len(pool.runs)) < 2
    assert by_hand > 1.0
    assert found.level(each * np.eye(len(pool.runs)), of_two) == pytest.approx(by_hand)
    assert found.level(1000.0 * each * np.eye(len(pool.runs)), of_two) == 1.0


def test_sizes_are_how_far_utilities_of_all_runs_may_be_apart(
    large: tuple[Pool, np.ndarray],
) -> None:
    """By hand, of the goal of all values: not of one utility for all runs."""
    pool, drawn, _ = published_of(large)
    frame, learned = drawn.design.frame(pool), drawn.sample.steps[-1].model
    none = np.zeros(len(pool), dtype=np.bool_)
    reached = learned.reach(frame.features)
    shares = np.stack([1.0 - reached[0], reached[0] - reached[1], reached[1]])
    shares = np.maximum(shares, 1e-4)
    shares /= shares.sum(axis=0)
    added = [
        pool.by_pair(pool.entry_weights(SWAPS) * pool.entry_utilities(SWAPS, grade)).toarray()
        for grade in range(3)
    ]
    mean = sum(share[:, None] * each for share, each in zip(shares, added, strict=True))
    parts = list(zip(shares, added, strict=True))
    variance = sum(share * ((each - mean) ** 2).sum(axis=1) for share, each in parts)
    square = sum(share * (each**2).sum(axis=1) for share, each in parts)
    size = np.sqrt(np.maximum(variance, 0.1 * square))
    floor = drawn.design.design.floor
    expected = (1.0 - floor) * size / size.sum() + floor / len(pool)
    assert frame.sizes(learned, none) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("grade", [0, 1, 2])
def test_where_all_judgments_are_alike_values_are_finite_and_within_their_limits(
    large: tuple[Pool, np.ndarray], grade: int
) -> None:
    pool, grades = large[0], np.full(len(large[0]), grade)
    drawn, labels = played(pool, grades, plan_for(pool, SWAPS, budget=80, batches=4), seed="s")
    found, truth = told(pool, drawn, labels, SWAPS), true_values(pool, grades=grades, measure=SWAPS)
    assert np.all(np.isfinite(found.estimate.covariance))
    assert np.all((found.estimate.low <= truth) & (truth <= found.estimate.high))
    assert np.all((found.estimate.low >= 0.0) & (found.estimate.high <= 1.0))


def test_one_topic_and_runs_that_are_alike(large: tuple[Pool, np.ndarray]) -> None:
    lists = {"1": {f"d{number:02}": float(-number) for number in range(12)}}
    turned = {"1": {docno: -score for docno, score in lists["1"].items()}}
    runs = {"a": scored(lists), "b": scored(turned), "c": scored(lists)}
    pool = pool_of(runs, depth=8, topics=["1"])
    grades = np.random.default_rng(1).choice(3, size=len(pool))
    drawn, labels = played(pool, grades, plan_for(pool, SWAPS, budget=25, batches=3), seed="s")
    found = told(pool, drawn, labels, SWAPS)
    assert found.estimate.value[0] == found.estimate.value[2]
    assert found.ranking.difference[0, 2] == 0.0
    assert not found.ranking.adjusted_p[0, 2] < 0.05


def test_when_all_is_judged_values_are_exact(large: tuple[Pool, np.ndarray]) -> None:
    pool, grades = large
    drawn, labels = played(pool, grades, plan_for(pool, WEIGHTED, budget=len(pool)), seed="s")
    found = told(pool, drawn, labels, WEIGHTED).estimate
    truth = true_values(pool, grades=grades, measure=WEIGHTED)
    assert found.value == pytest.approx(truth, rel=1e-9)
    assert found.high - found.low == pytest.approx(0.0, abs=1e-12)


def test_a_judged_pair_does_not_count_for_itself(large: tuple[Pool, np.ndarray]) -> None:
    """What is told of a pair by the others is the same whatever was said of it."""
    pool, grades = large
    features, pairs = Features.of(pool), np.arange(0, len(pool), 7)
    rows = []
    for grade in (0, 2):
        given = grades[pairs].copy()
        given[3] = grade
        reach = np.stack([given >= 1, given >= 2], axis=1).astype(float)
        rows.append(features.of_finds(Finds.of(pairs, reach))[pairs])
    assert rows[0][3] == pytest.approx(rows[1][3], abs=1e-12)
    assert np.any(rows[0] != rows[1])
    assert np.any(rows[0][:, 0] != 0.0)


def test_which_document_comes_first_says_nothing() -> None:
    """With other names, in the contrary order, features that have a sign are the same turned."""
    names = "abcdefgh"
    lists = {"1": {name: float(score) for score, name in enumerate("cagbdhef")}}
    other = {"1": {name: float(score) for score, name in enumerate("gfabhcde")}}
    turned = dict(zip(names, reversed(names), strict=True))
    runs = [{"r": scored(lists), "s": scored(other)}]
    runs.append(
        {
            tag: scored({"1": {turned[name]: score for name, score in each["1"].items()}})
            for tag, each in (("r", lists), ("s", other))
        }
    )
    pools = [pool_of(each, depth=8, topics=["1"]) for each in runs]
    numbers = [np.stack(numbers_of_two(pool), axis=1) for pool in pools]
    named = [
        {(a.decode(), b.decode()): row for a, b, row in zip(p.docno, p.other, n, strict=True)}
        for p, n in zip(pools, numbers, strict=True)
    ]
    for (first, second), row in named[0].items():
        same = named[1][turned[second], turned[first]]
        assert same == pytest.approx(row * [1.0, -1.0, -1.0])


# ------------------------------------------------------------------------------------- the file


def published_of(large: tuple[Pool, np.ndarray]) -> tuple[Pool, AdaptiveRound, LabelRows]:
    pool, grades = large
    plan = plan_for(pool, SWAPS, budget=120, batches=4, reported=[WEIGHTED])
    return pool, *played(pool, grades, plan, seed="s")


def test_a_round_that_was_stored_is_the_same(large: tuple[Pool, np.ndarray]) -> None:
    pool, drawn, labels = published_of(large)
    plan, state = io.BytesIO(), io.BytesIO()
    drawn.design.save(plan)
    drawn.sample.save(state)
    plan.seek(0)
    state.seek(0)
    again = AdaptiveRound(AdaptivePlan.load(plan), AdaptiveState.load(state))
    assert told(pool, again, labels, SWAPS).estimate.value.tolist() == (
        told(pool, drawn, labels, SWAPS).estimate.value.tolist()
    )
    redrawn = again.redrawn(pool, seed="s")
    assert redrawn.sample.pair.tolist() == drawn.sample.pair.tolist()


def test_a_published_round_tells_the_same_of_its_runs_and_of_later_ones(
    large: tuple[Pool, np.ndarray],
) -> None:
    pool, drawn, labels = published_of(large)
    found = publish(pool, drawn, labels=labels, max_grade=BEST, version="0.1", measures=MEASURES)
    before = evaluate(pool, drawn, labels=labels, measures=MEASURES, max_grade=1)
    now = found.evaluate(found.pool, measures=MEASURES)
    for one, two in zip(before.results, now.results, strict=True):
        assert one.estimate.value.tolist() == two.estimate.value.tolist()
        assert one.estimate.high.tolist() == two.estimate.high.tolist()
    later = {"later": scored({name: {"d00": 2.0, "d01": 1.0} for name in pool.topics})}
    of_later = found.evaluate(later, measures=[SWAPS]).results[0]
    assert of_later.runs == ("later",)
    assert 0.0 <= of_later.support[0] <= 1.0
