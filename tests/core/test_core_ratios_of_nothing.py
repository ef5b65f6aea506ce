"""Ratios where topics have nothing relevant, or nothing was found: values, intervals, forecasts."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.scope import Scope
from estimation.core.estimates.ratio_labels import BiasLeft, RatioEstimate
from estimation.core.inference.ratio_knowledge import RatioKnowledge, knowledge_at
from estimation.core.inference.ratio_outlook import AtOutlook
from estimation.core.inference.unknown import Reason
from estimation.core.measures.table import Measure
from estimation.core.planning import contenders, forecasts
from estimation.core.planning.ahead import Ahead
from estimation.core.planning.contenders import Contenders, Horizon
from estimation.core.planning.forecasts import forecast
from estimation.core.planning.stopping import StoppingRule
from estimation.core.rounds.adaptive import answers, slopes
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values
from tests.core.simulated_pools import simulated_pool
from tests.core.test_core_adaptive import played
from tests.core.test_core_adaptive_ratios import AP, NDCG, RPREC, estimated, plan_of

TOPICS, ALONE, DOCUMENTS, RUNS = 50, 20, 12, ("a", "b", "c")
TRIALS = 15


@pytest.fixture(scope="module")
def sparse() -> tuple[Pool, np.ndarray]:
    """Of two fifths of the topics one document is pooled, of the others twelve.

    A quarter of all is relevant, so that most of the first have nothing relevant.
    """
    generator = np.random.default_rng(7)
    topics, lists = [f"t{number:02}" for number in range(TOPICS)], {}
    for tag in RUNS:
        lists[tag] = {
            topic: generator.permutation(
                np.array([f"d{at:02}".encode() for at in range(1 if number < ALONE else DOCUMENTS)])
            )
            for number, topic in enumerate(topics)
        }
    runs = {
        tag: RankedLists(
            tuple(each),
            np.concatenate([[0], np.cumsum([len(found) for found in each.values()])]),
            np.concatenate(list(each.values())),
        )
        for tag, each in lists.items()
    }
    pool = build_pool(topics, runs, depth=DOCUMENTS)
    return pool, (generator.random(len(pool)) < 0.25).astype(np.int64)


def ranked(pool: Pool) -> AdaptivePlan:
    """To order runs, topics of one document are all one, and few of them are judged."""
    return plan_of(pool, AP, budget=130, goal=goals.ranking(*RUNS))


def errors_and_covered(pool: Pool, grades: np.ndarray) -> tuple[float, float]:
    """The mean error of AP, and the share of the shown values that their intervals hold."""
    truth, plan = true_values(pool, grades=grades, measure=AP), ranked(pool)
    errors, held = [], []
    for trial in range(TRIALS):
        found = estimated(pool, *played(pool, grades, plan, seed=f"n{trial}"), AP)
        shown = found.unknown == 0
        errors.append(found.value - truth)
        held.append(((found.low <= truth) & (truth <= found.high))[shown])
    return float(np.mean(errors)), float(np.mean(np.concatenate(held)))


@pytest.mark.slow
def test_a_topic_that_may_have_nothing_relevant_counts_so_much_less(
    sparse: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin takes what is expected of a topic for its ratio, however little it is."""
    error, covered = errors_and_covered(*sparse)
    assert abs(error) < 0.05
    assert covered > 0.93
    monkeypatch.setattr(slopes, "chance_of_nothing", lambda frame, _: np.zeros(len(frame.sizes)))
    error, covered = errors_and_covered(*sparse)
    assert error > 0.1
    assert covered < 0.5


def test_the_chance_of_nothing_is_that_of_all_pairs_and_none_where_something_was_found(
    sparse: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, grades = sparse
    asked: list[tuple[AtOutlook, RatioEstimate]] = []
    monkeypatch.setattr(answers, "knowledge_at", _kept_in(asked))
    drawn, labels = played(pool, grades, ranked(pool), seed="n")
    estimated(pool, drawn, labels, AP)
    at, estimate = asked[-1]
    nothing = at.nothing
    assert nothing is not None
    judged = np.isin(np.arange(len(pool)), drawn.sample.pair)
    for topic in range(TOPICS):
        here = pool.topic == topic
        found = bool((grades[here & judged] > 0).any())
        reach = at.tangent.frame.gains.reach[0][here]
        wanted = 0.0 if found else float(np.prod(1.0 - reach))
        assert nothing[topic] == pytest.approx(wanted, rel=1e-6, abs=1e-12)
    ratio = at.tangent.by_topic
    more = (nothing * (1.0 - nothing))[:, None] * ratio
    assert np.diag(at.of_nothing).min() > 0.0
    assert at.of_nothing == pytest.approx(more.T @ ratio, abs=1e-12)
    known = knowledge_at(at, AP, estimate)
    without = knowledge_at(replace(at, nothing=None), AP, estimate)
    assert known.expected - without.expected == pytest.approx(at.of_nothing)
    assert known.of_values - without.of_values == pytest.approx(np.diag(at.of_nothing))


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_topics_without_anything_relevant_make_no_interval_of_all_runs_long(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of twenty; the twin has slopes of one over the next to nothing expected of them."""
    pool, grades = simulated_pool()
    grades = np.where(pool.topic < 3, 0, grades)
    truth, plan = (
        true_values(pool, grades=grades, measure=AP),
        plan_of(pool, AP, budget=round(share * len(pool))),
    )

    def told(trial: int) -> tuple[float, float]:
        found = estimated(pool, *played(pool, grades, plan, seed=f"b{trial}"), AP)
        held = (found.low <= truth) & (truth <= found.high)
        return float(np.median(found.high - found.low)) / 2.0, float(held.mean())

    half, held = np.mean([told(trial) for trial in range(TRIALS)], axis=0)
    assert half < (0.075 if share < 0.5 else 0.02)
    assert held > 0.93
    unbounded = property(lambda self: np.ones(len(self.nothing)))
    monkeypatch.setattr(AtOutlook, "bounds", unbounded)
    assert told(0)[0] > 1.5 * half


def test_slopes_are_bounded_by_what_a_topic_can_err_by(
    sparse: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, grades = sparse
    asked: list[tuple[AtOutlook, RatioEstimate]] = []
    monkeypatch.setattr(answers, "knowledge_at", _kept_in(asked))
    estimated(pool, *played(pool, grades, plan_of(pool, AP, budget=300)), AP)
    at = asked[-1][0]
    assert np.all(at.bounds >= 1.0 - 1e-6), "they are by now"
    free = at.bounded(np.full(TOPICS, 100.0))
    scale = free.bounds
    some = at.nothing > 0.0
    assert np.all(scale[~some] == 1.0), "where something was found nothing is bounded"
    assert np.any(scale[some] < 1.0)
    most = (1.0 - at.nothing) / TOPICS**2
    for topic in np.flatnonzero(scale < 1.0):
        alone = replace(free, factor=np.where(pool.topic == topic, free.factor, 0.0))
        assert np.diag(alone.bounded(scale).covariance).max() <= most[topic] * (1 + 1e-9)


@pytest.mark.parametrize("method", ["adaptive", "poisson"])
@pytest.mark.parametrize("measure", [AP, NDCG, RPREC], ids=str)
def test_where_nothing_relevant_was_found_nothing_is_known(
    sparse: tuple, measure: Measure, method: str
) -> None:
    """And a forecast says what it says of nothing, and does not fail."""
    pool, useless = sparse[0], np.zeros(len(sparse[0]), dtype=np.int64)
    if method == "adaptive":
        part, labels = played(pool, useless, plan_of(pool, measure, budget=150))
        batches = part.planned
    else:
        about = {"goal": goals.ranking(*pool.runs), "measure": measure, "max_grade": 3}
        prior = make_prior(pool, name="rank", **about)
        planned = make_design(pool, prior=prior, budget=120, batch_size=60, **about)
        part, batches = PairRound(planned, draw(pool, planned, seed="x")), 2
        labels = LabelRows(part.sample.pair, useless[part.sample.pair])
    asked = {"labels": labels, "max_grade": 3}
    result = evaluate(pool, part, measures=[measure], batches=batches, **asked).results[0]
    assert np.all(result.estimate.value == 0.0)
    assert np.all(result.estimate.unknown == Reason.FEW_RELEVANT)
    assert not StoppingRule("width", width=0.05).holds(result)
    found = forecast(Scope.of(pool), part, batches=batches, result=result, **asked)
    assert np.all(np.isfinite([each.half_width for each in found.steps]))
    assert np.all(np.diff([each.half_width for each in found.steps]) <= 1e-12)


def test_where_everything_is_judged_that_nothing_is_relevant_is_known(sparse: tuple) -> None:
    pool, useless = sparse[0], np.zeros(len(sparse[0]), dtype=np.int64)
    drawn, labels = played(pool, useless, plan_of(pool, AP, budget=len(pool)))
    found = estimated(pool, drawn, labels, AP)
    assert not found.unknown.any()
    assert np.all(found.high == 0.0)


@pytest.mark.parametrize("method", ["adaptive", "poisson"])
def test_of_topics_with_one_document_nothing_is_known_before_something_was_found(
    method: str,
) -> None:
    """Nothing moves their ratios, so that the standard error is 0 or rounding: 0 of 0 is known."""
    topics = [f"t{number:02}" for number in range(30)]
    every = RankedLists(tuple(topics), np.arange(31), np.full(30, b"d", dtype="S1"))
    pool = build_pool(topics, dict.fromkeys(("a", "b"), every), depth=1)
    useless, goal = np.zeros(30, dtype=np.int64), goals.absolute("a", "b")
    if method == "adaptive":
        part, labels = played(pool, useless, plan_of(pool, AP, budget=12, goal=goal))
    else:
        about = {"goal": goal, "measure": AP, "max_grade": 3}
        prior = make_prior(pool, name="rank", **about)
        planned = make_design(pool, prior=prior, budget=12, batch_size=6, **about)
        part = PairRound(planned, draw(pool, planned, seed="x"))
        labels = LabelRows(part.sample.pair, useless[part.sample.pair])
    result = evaluate(pool, part, labels=labels, measures=[AP], max_grade=3).results[0]
    assert np.all(result.estimate.unknown == Reason.FEW_RELEVANT)
    assert not StoppingRule("width", width=0.05).holds(result)


def test_no_standard_error_of_0_makes_nothing_known(
    sparse: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is expected, and none was found, no size of an error tells that it is so."""
    pool, useless = sparse[0], np.zeros(len(sparse[0]), dtype=np.int64)
    asked: list[tuple[AtOutlook, RatioEstimate]] = []
    monkeypatch.setattr(answers, "knowledge_at", _kept_in(asked))
    estimated(pool, *played(pool, useless, ranked(pool)), AP)
    (at, found), none = asked[-1], np.zeros(len(pool))
    at = replace(at, squares=none, crossed=none, falling=none, nothing=None)
    exact = np.zeros((3, 3))
    found = replace(
        found,
        estimate=replace(found.estimate, covariance=exact, noise=exact, value=exact[0]),
        left=BiasLeft(exact[0], exact[0]),
    )
    known = knowledge_at(at, AP, found)
    assert np.all(known.of_values == 0.0)
    assert np.all(known.unknown == Reason.FEW_RELEVANT)
    assert np.count_nonzero(known.difference_unknown) == 6
    one = np.append(1, np.zeros(len(found.found) - 1, dtype=np.int64))
    assert not knowledge_at(at, AP, replace(found, found=one)).unknown.any(), "by errors alone"


def _kept_in(asked: list[tuple[AtOutlook, RatioEstimate]]) -> Callable[..., RatioKnowledge]:
    def caught(at: AtOutlook, measure: Measure, found: RatioEstimate, **more) -> RatioKnowledge:
        asked.append((at, found))
        return knowledge_at(at, measure, found, **more)

    return caught


def test_futures_of_runs_that_nothing_parts_are_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin divides by the smallest of all numbers, and fails."""
    equal, steps = Contenders.of(np.zeros(4), np.zeros((4, 4))), [Horizon(np.zeros((4, 4)), 3.0)]
    assert equal.decided(steps).tolist() == [0.0]
    monkeypatch.setattr(contenders, "SMALLEST", 1e-309)
    with pytest.raises(np.linalg.LinAlgError), np.errstate(all="ignore"):
        equal.decided(steps)


def test_no_half_width_is_foretold_to_grow(sparse: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a later step leaves may be worked out in another way, and be more than there is now."""
    pool, grades = sparse
    drawn, labels = played(pool, grades, ranked(pool))
    asked = {"labels": labels, "max_grade": 3}
    result = evaluate(pool, drawn, measures=[AP], **asked).results[0]
    known = forecasts._ahead

    def growing(*args) -> Ahead:
        found = known(*args)
        later = [replace(each, covariance=2.0 * found.covariance) for each in found.later]
        return replace(found, later=tuple(later))

    monkeypatch.setattr(forecasts, "_ahead", growing)
    found = forecast(Scope.of(pool), drawn, batches=drawn.planned, result=result, **asked)
    widths = [each.half_width for each in found.steps]
    assert len(widths) > 1
    assert max(widths) == pytest.approx(widths[0])
