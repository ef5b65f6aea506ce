"""Expected disagreement in active rounds: of documents that were found useless as well."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows, PairLabels
from estimation.core.data.pool import Pool
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.active.rounds import ActiveRound, make_plan
from estimation.core.rounds.active.weights import (
    inclusion_weights,
    joint_inclusion,
    lacking_of_inclusion,
    lacking_of_steps,
    sequential_weights,
)
from estimation.core.rounds.evaluation import evaluate
from tests.core.test_core_expected_disagreement import TWICE, WRONG, alike

TRIALS = 20


@pytest.mark.parametrize(("steps", "documents"), [(1, 5), (2, 5), (3, 9), (10, 30), (12, 12)])
def test_what_the_form_lacks_is_that_of_its_diagonal(steps: int, documents: int) -> None:
    random = np.random.default_rng(steps)
    chances = random.uniform(0.01, 1.0, steps)
    weights = sequential_weights(chances, documents=documents, steps=np.arange(steps))
    expected = weights.single**2 - np.diag(weights.quadratic)
    assert lacking_of_steps(chances, documents=documents) == pytest.approx(expected, rel=1e-12)
    chances, draws = random.uniform(0.0, 0.08, (3, steps)), np.array([1, 3, 2])
    weights = inclusion_weights(joint_inclusion(chances, draws=draws))
    expected = weights.single**2 - np.diag(weights.quadratic)
    assert lacking_of_inclusion(chances, draws=draws) == pytest.approx(expected, rel=1e-12)


def judged(pool: Pool, drawn: ActiveRound, grades: np.ndarray, trial: int) -> LabelRows:
    random = np.random.default_rng(trial)
    pairs = np.repeat(np.arange(len(pool)), 1 + (random.random(len(pool)) < TWICE))
    given = np.where(random.random(len(pairs)) < WRONG, 1 - grades[pairs], grades[pairs])
    inside = np.isin(pairs, drawn.pairs(pool))
    return LabelRows(pairs[inside], given[inside])


def false_verdicts(measure: Measure) -> float:
    """Share of campaigns, everything judged, in which errors tell apart runs that are as good."""
    pool, grades = alike()
    grades[pool.topic < 3] = 1  # the first two runs have these in another order
    plan = make_plan(pool, measures=[measure], budget=len(pool), batch_size=len(pool))
    told = []
    for trial in range(TRIALS):
        drawn = ActiveRound.begin(pool, plan, seed=str(trial))
        labels = judged(pool, drawn, grades, trial)
        found = evaluate(pool, drawn, labels=labels, measures=[measure], max_grade=1).results[0]
        told.append(bool(found.ranking.verdicts[0, 1]))
    return float(np.mean(told))


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["DCG@10", "AP"])
def test_a_census_does_not_tell_runs_apart_by_noise(
    measure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin knows the noise of a difference from the pairs that were judged twice alone."""
    assert false_verdicts(parse_measure(measure)) <= 0.1
    monkeypatch.setattr(PairLabels, "with_expected", lambda labels: labels)
    monkeypatch.setattr(PairLabels, "likely_noise", None)
    assert false_verdicts(parse_measure(measure)) > 0.3
