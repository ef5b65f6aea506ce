"""What rounds foretell of AP, nDCG and Rprec, against what later batches brought."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import build_pool
from estimation.core.data.scope import Scope
from estimation.core.inference.intervals import difference_variances
from estimation.core.inference.ratio_knowledge import FREEDOM_OF_FINDS
from estimation.core.inference.ratio_outlook import AtOutlook
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning import ahead, forecasts
from estimation.core.planning.ahead import ahead_of_pairs
from estimation.core.planning.forecasts import forecast
from estimation.core.planning.foretold import Forecast
from estimation.core.planning.ratio_ahead import (
    RatiosMissed,
    covariances_then,
    ratio_exactness,
    with_inclusion,
)
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from tests.core import test_core_adaptive_forecasts as adaptive
from tests.core.test_core_adaptive_forecasts import BEST, GRADES, POOL, end, middle

AP, NDCG, RPREC = map(parse_measure, ("AP", "nDCG@10", "Rprec"))
SEEDS = [str(number) for number in range(5)]


def design(measure: Measure, method: str = "poisson") -> Design:
    about = {"goal": goals.ranking(*POOL.runs), "measure": measure, "max_grade": BEST}
    prior = make_prior(POOL, name="rank", **about)
    return make_design(POOL, prior=prior, budget=600, batch_size=150, method=method, **about)


def looked(planned: Design, seed: str, batches: int) -> tuple[PairRound, MeasureResult]:
    part = PairRound(planned, draw(POOL, planned, seed=seed))
    labels = LabelRows(part.sample.pair, GRADES[part.sample.pair])
    asked = {"measures": [planned.measure], "max_grade": BEST, "batches": batches}
    return part, evaluate(POOL, part, labels=labels, **asked).results[0]


def told(planned: Design, seed: str) -> Forecast:
    part, found = looked(planned, seed, 1)
    return forecast(Scope.of(POOL), part, batches=1, result=found, max_grade=BEST)


def decided(found: Forecast) -> float:
    return next(each.decided for each in reversed(found.steps) if each.batches is not None)


@pytest.mark.slow
@pytest.mark.parametrize("measure", [AP, NDCG, RPREC], ids=str)
@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_half_widths_of_rounds_drawn_at_once_come_as_foretold(
    measure: Measure, method: str
) -> None:
    planned, ratios = design(measure, method), []
    for seed in SEEDS:
        found = told(planned, seed)
        assert found.steps[0].half_width == middle(looked(planned, seed, 1)[1])
        ratios.append(end(found) / middle(looked(planned, seed, planned.batches)[1]))
    assert 0.75 < np.median(ratios) < 1.3


@pytest.mark.slow
@pytest.mark.parametrize("measure", [AP, NDCG, RPREC], ids=str)
def test_half_widths_of_adaptive_rounds_come_as_foretold(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a twin for which later batches bring nothing."""
    planned, ratios, twin = adaptive.plan(measure=measure), [], []
    for seed in SEEDS:
        late = adaptive.looked(adaptive.played(planned, 8, seed=seed))
        drawn = adaptive.played(planned, 2, seed=seed)
        found = adaptive.told(drawn)
        assert found.steps[0].half_width == middle(adaptive.looked(drawn))
        assert found.steps[-1].half_width == pytest.approx(0.0, abs=1e-9), "all is judged"
        ratios.append(end(found) / middle(late))
        with monkeypatch.context() as patch:
            patch.setattr(RatiosMissed, "after", lambda missed, *_: missed.now)
            twin.append(end(adaptive.told(drawn)) / middle(late))
    assert 0.7 < np.median(ratios) < 1.5
    assert np.median(twin) > 2.0


@pytest.mark.slow
def test_verdicts_come_as_foretold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin takes standard errors for what differences really err by."""
    planned, came, foretold, twin = design(AP), [], [], []
    for seed in SEEDS:
        late = looked(planned, seed, planned.batches)[1]
        came.append(np.count_nonzero(late.ranking.verdicts == 1))
        foretold.append(decided(told(planned, seed)))
        with monkeypatch.context() as patch:
            patch.setattr(forecasts, "ratio_exactness", lambda _: 1.0)
            twin.append(decided(told(planned, seed)))
    assert 0.8 < np.sum(foretold) / np.sum(came) < 1.15
    assert np.sum(twin) / np.sum(came) < 0.8


@pytest.mark.parametrize("measure", [AP, NDCG, RPREC], ids=str)
def test_what_falls_is_what_is_expected_of_each_later_sample(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By itself, in full, for every step; the twin takes the factors of now."""
    planned = design(measure)
    part, found = looked(planned, "x", 1)
    assert found.outlook is not None
    ahead_now = ahead_of_pairs(Scope.of(POOL), part, 1, found)
    for after in ahead_now.later[:2]:
        drawn = part.drawn(POOL.topic) if after.batches == 4 else part.prefix(POOL, after.batches)
        drawn = drawn if after.batches == 4 else drawn.drawn(POOL.topic)
        at = AtOutlook.of(POOL, measure, drawn.over(Scope.of(POOL)), found.outlook)
        assert after.covariance == pytest.approx(at.covariance, rel=1e-4, abs=1e-9)
    monkeypatch.setattr(ahead, "with_inclusion", lambda at, _: at)
    twin = ahead_of_pairs(Scope.of(POOL), part, 1, found).later[1].covariance
    assert np.trace(twin) > 1.2 * np.trace(ahead_now.later[1].covariance)


def test_a_run_that_came_later_is_foretold_with_the_others() -> None:
    """Nothing is expected of what it alone returns, and its forecast is finite all the same."""
    runs = {tag: adaptive._lists(tag) for tag in POOL.runs}
    sampled = dict(list(runs.items())[:-1])
    pool = build_pool(POOL.topics, sampled, depth=POOL.depth)
    scope = Scope.of(pool, build_pool(POOL.topics, runs, depth=POOL.depth))
    about = {"goal": goals.ranking(*pool.runs), "measure": AP, "max_grade": BEST}
    prior = make_prior(pool, name="rank", **about)
    planned = make_design(pool, prior=prior, budget=400, batch_size=100, **about)
    part = PairRound(planned, draw(pool, planned, seed="x"))
    labels = LabelRows(part.sample.pair, part.sample.pair % 5 // 4)
    asked = {"batches": 2, "max_grade": BEST}
    result = evaluate(pool, part, labels=labels, measures=[AP], joined=scope.pool, **asked)
    found = forecast(scope, part, result=result.results[0], **asked)
    assert found.differences == 15
    assert np.all(np.diff([each.half_width for each in found.steps]) <= 1e-12)


@pytest.mark.parametrize("of", ["poisson", "adaptive"])
def test_disagreement_between_assessors_stays_when_everything_is_judged(of: str) -> None:
    if of == "poisson":
        planned = design(AP)
        part = PairRound(planned, draw(POOL, planned, seed="x"))
        pair = part.sample.pair[part.sample.batch <= 2]
        asked = {"batches": 2}
    else:
        part = adaptive.played(adaptive.plan(measure=AP), 2)
        pair, asked = part.sample.pair, {"batches": part.planned}
    once = LabelRows(pair, GRADES[pair])
    second = LabelRows(np.tile(pair, 2), np.concatenate([GRADES[pair], GRADES[pair] ^ 1]))
    left = []
    for labels in (once, second):
        result = evaluate(POOL, part, labels=labels, measures=[AP], max_grade=BEST, **asked)
        about = {"result": result.results[0], "max_grade": BEST, "labels": labels}
        found = forecast(Scope.of(POOL), part, **asked, **about)
        left.append(found.steps[-1].half_width / found.steps[0].half_width)
    assert left[0] == pytest.approx(0.0, abs=1e-6)
    assert left[1] > 0.05


def test_where_all_is_certain_nothing_is_left() -> None:
    planned = design(AP)
    part, found = looked(planned, "x", 1)
    assert found.outlook is not None
    at = AtOutlook.of(POOL, AP, part.prefix(POOL, 1).drawn(POOL.topic), found.outlook)
    (left,) = covariances_then([with_inclusion(at, np.ones(len(POOL)))])
    assert left == pytest.approx(0.0, abs=1e-15)
    assert covariances_then([]) == []


def test_differences_err_by_what_all_squares_say_as_far_as_there_are_finds() -> None:
    _, found = looked(design(AP), "x", 2)
    estimate, two = found.estimate, np.triu_indices(len(found.runs), k=1)
    usual = found.ranking.difference_se**2
    for share, finds in ((0.25, 5.0), (0.25, 1e9), (1.0, 5.0), (4.0, 5.0)):
        squares = share * usual / 2.0
        covariance = np.where(np.eye(len(squares)) > 0.0, 0.0, -squares)
        df = np.full_like(usual, FREEDOM_OF_FINDS * finds)
        changed = replace(estimate, covariance=covariance, difference_df=df)
        other = replace(found, estimators={found.primary: changed})
        assert difference_variances(covariance)[two] == pytest.approx(share * usual[two])
        wanted = 1.0 + (min(share, 1.0) - 1.0) * finds / (finds + 5.0)
        assert ratio_exactness(other) ** 2 == pytest.approx(wanted)
