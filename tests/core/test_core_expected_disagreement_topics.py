"""Expected disagreement in rounds of whole topics: where all are judged, it is all there is."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows, PairLabels
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import TopicRound
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.draws import draw_queries
from estimation.core.rounds.topics.grade_models import uniform_grades
from estimation.core.sampling import goals
from tests.core.test_core_expected_disagreement import TWICE, WRONG, alike

TRIALS = 60


def false_verdicts(measure: str, share: float = 1.0) -> float:
    """Share of campaigns in which errors tell apart runs that are as good."""
    pool, grades = alike()
    grades[pool.topic < 3] = 1  # the first two runs have these in another order
    about = {"goal": goals.ranking(*pool.runs), "measure": parse_measure(measure)}
    model = uniform_grades(pool, max_grade=1)
    design = make_query_design(pool, model=model, budget=share * len(pool), **about)
    told = []
    for trial in range(TRIALS):
        sample, random = draw_queries(pool, design, seed=str(trial)), np.random.default_rng(trial)
        inside = np.flatnonzero(np.isin(pool.topic, sample.topic))
        pairs = np.append(inside, inside[random.random(len(inside)) < TWICE])
        wrong = random.random(len(pairs)) < WRONG
        labels = LabelRows(pairs, np.where(wrong, 1 - grades[pairs], grades[pairs]))
        asked = {"labels": labels, "measures": [about["measure"]], "max_grade": 1}
        found = evaluate(pool, TopicRound(design, sample), **asked).results[0]
        told.append(bool(found.ranking.verdicts[0, 1]))
    return float(np.mean(told))


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["DCG@10", "ERR@10"])
def test_a_census_does_not_tell_runs_apart_by_noise(
    measure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin knows the noise of a difference from the pairs that were judged twice alone."""
    assert false_verdicts(measure) <= 0.05
    monkeypatch.setattr(PairLabels, "with_expected", lambda labels: labels)
    monkeypatch.setattr(PairLabels, "likely_noise", None)
    assert false_verdicts(measure) > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["DCG@10", "ERR@10"])
def test_of_drawn_topics_differences_have_what_is_expected_beside_noise(
    measure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How differences vary between topics is told by all runs, so that even the twin is right."""
    assert false_verdicts(measure, share=0.9) <= 0.05
    monkeypatch.setattr(PairLabels, "with_expected", lambda labels: labels)
    monkeypatch.setattr(PairLabels, "likely_noise", None)
    assert false_verdicts(measure, share=0.9) <= 0.05
