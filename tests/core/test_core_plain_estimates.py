"""What tests leave out changes no estimate: `plain_estimates` gives the bits of whole answers."""

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.active.rounds import make_plan
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PlannedRound, Round, draw_round
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.grade_models import uniform_grades
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Method
from estimation.core.sampling.priors import make_prior
from estimation.research.trials.methods import prepare
from estimation.research.trials.settings import Setting
from tests.core.plain_estimates import (
    estimates_alone,
    guarantees_alone,
    values_alone,
)
from tests.core.plain_trials import trial_values_alone
from tests.core.simulated_pools import helpful_predictions, simulated_pool

POOL, GRADES = simulated_pool()
GOAL, MEASURES = goals.absolute(*POOL.runs), [parse_measure(name) for name in ("DCG@20", "AP")]
METHODS = ["poisson", "priority", "iid", "per-query", "query", "active", "adaptive"]


def judged(drawn: Round) -> LabelRows:
    """Twice, and here and there not alike."""
    pair = np.repeat(drawn.pairs(POOL), 2)
    return LabelRows(pair, np.where(np.arange(len(pair)) % 7, GRADES[pair], 1))


def drawn_by(method: str) -> Round:
    about = {"goal": GOAL, "measure": MEASURES[0]}
    if method == "query":
        model = uniform_grades(POOL, max_grade=3)
        design = make_query_design(POOL, **about, measures=MEASURES, model=model, budget=900)
        return draw_round(POOL, design, seed="s")
    if method == "active":
        plan = make_plan(POOL, measures=MEASURES, budget=200, batch_size=60)
        return to_the_end(draw_round(POOL, plan, seed="s"))
    return of_pairs(method, **about)  # type: ignore[arg-type]


def of_pairs(method: Method, **about: object) -> Round:
    prior = make_prior(POOL, name="rank", max_grade=3, **about)  # type: ignore[arg-type]
    design = make_design(POOL, prior=prior, budget=200, batch_size=50, method=method, **about)  # type: ignore[arg-type]
    if method != "adaptive":
        return draw_round(POOL, design, seed="s")
    return to_the_end(draw_round(POOL, AdaptivePlan(design, 3), seed="s"))


def to_the_end(drawn: Round) -> Round:
    assert isinstance(drawn, PlannedRound)
    while (longer := drawn.extended(POOL, labels=judged(drawn))) is not drawn:
        drawn = longer
        if drawn.planned == drawn.batches:
            break
    return drawn


def told(
    drawn: Round, left_out: AbstractContextManager[None], **options: object
) -> list[MeasureResult]:
    with left_out:
        found = evaluate(
            POOL, drawn, labels=judged(drawn), measures=MEASURES, max_grade=3, **options
        )  # type: ignore[arg-type]
    return list(found.results)


def bits(results: list[MeasureResult], *names: str) -> list[object]:
    numbers = [
        getattr(estimator, name).tolist()
        for result in results
        for estimator in result.estimators.values()
        for name in names
    ]
    facts = [(each.primary, list(each.estimators), each.label_noise_measured) for each in results]
    beside = [
        None if numbers is None else numbers.tolist()
        for each in results
        for numbers in (each.by_topic, each.ratio_bias, each.relevant_found)
    ]
    return [numbers, facts, beside]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_estimates_alone_are_those_of_whole_answers(method: str) -> None:
    drawn = drawn_by(method)
    every = ("value", "covariance")
    whole = told(drawn, nullcontext())
    assert bits(told(drawn, estimates_alone()), *every) == bits(whole, *every)
    assert bits(told(drawn, values_alone()), "value") == bits(whole, "value")
    assert all(each.ranking is not None for each in told(drawn, nullcontext()))


@pytest.mark.parametrize(("method", "kind"), [("iid", "hoeffding"), ("poisson", "chernoff")])
def test_guarantees_alone_are_those_of_whole_answers(method: str, kind: str) -> None:
    drawn, options = drawn_by(method), {"interval": kind}
    whole, alone = (told(drawn, each, **options) for each in (nullcontext(), guarantees_alone()))
    assert whole[0].interval == alone[0].interval == kind
    for name in ("value", "covariance", "low", "high"):
        same = getattr(alone[0].estimate, name) == getattr(whole[0].estimate, name)
        assert same.all(), name


def test_they_are_with_predictions() -> None:
    drawn, options = drawn_by("poisson"), {"predictions": helpful_predictions(GRADES)}
    whole, alone = (told(drawn, each, **options) for each in (nullcontext(), estimates_alone()))
    assert whole[0].primary == "di"
    assert bits(alone, "value", "covariance") == bits(whole, "value", "covariance")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "adaptive", "active", "query", "uniform"])
def test_values_of_trials_are_those_of_whole_trials(method: str) -> None:
    setting = Setting(POOL, GRADES, 3, GOAL, MEASURES[0], budget=400)
    whole = prepare(setting, method)("seed")
    with trial_values_alone():
        alone = prepare(setting, method)("seed")
    assert alone.value.tolist() == whole.value.tolist()
    assert alone.judged_pairs == whole.judged_pairs
