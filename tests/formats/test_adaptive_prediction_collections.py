"""Judged collections of adaptive rounds of predictions as files."""

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.pool import build_pool
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.formats.collections import adaptive
from estimation.formats.collections.adaptive import MODELS
from estimation.formats.collections.archive import DRAWS, FACTS
from estimation.formats.collections.ranked import LISTS
from tests.core.adaptive_by_run import ACCURACY, MAE, MSE, PREDICTED, plan_for, played
from tests.core.collecting import publish
from tests.core.test_core_preferences import scored
from tests.formats.collection_files import (
    Change,
    assert_read_back,
    cell,
    fact,
    facts_of,
    first,
    member,
    read,
    repacked,
    rows_of,
    without,
    written,
)

TOPICS = [f"t{number}" for number in range(8)]
MEASURES = [MSE, MAE, ACCURACY]


def lists(seed: int, *, topics: list[str] = TOPICS):
    """Ten documents of each topic, with scores of three digits."""
    rng = np.random.default_rng(seed)
    return scored(
        {
            topic: {
                f"d{number}": round(float(rng.uniform(0, PREDICTED.best)), 3)
                for number in range(10)
            }
            for topic in topics
        }
    )


class Case:
    """Three batches, of which a model planned the last."""

    def __init__(self) -> None:
        runs = {f"r{number}": lists(number) for number in range(3)}
        self.pool = build_pool(TOPICS, runs, depth=8, scores=True)
        mean = self.pool.by_pair(self.pool.score) @ np.ones(3) / np.diff(self.pool.indptr)
        grades = 4 * np.argsort(np.argsort(mean)) // len(mean)  # each for a quarter of the pairs
        plan = plan_for(self.pool, MSE, budget=45, batches=3, reported=[MAE, ACCURACY])
        self.drawn, self.labels = played(self.pool, grades, plan, seed="s")
        assert self.drawn.sample.steps[-1].model.scoring.part > 0.0

    def collected(self) -> RoundCollection:
        return publish(
            self.pool, self.drawn, labels=self.labels, max_grade=PREDICTED.best, version="0.1",
            measures=MEASURES, seeds=["s"],
        )  # fmt: skip


CASE = Case()
GOOD = written(CASE.collected())


def test_what_is_written_is_read_back_to_the_bit() -> None:
    assert_read_back(CASE.collected())


def test_what_is_read_back_has_the_estimates_of_the_round_and_of_later_runs() -> None:
    found, problems = read(GOOD)
    assert found is not None, problems.as_dict()
    told = evaluate(
        CASE.pool, CASE.drawn, labels=CASE.labels, measures=MEASURES, max_grade=PREDICTED.best
    ).results
    again = found.evaluate(found.pool, measures=MEASURES).results
    for one, two in zip(told, again, strict=True):
        for name in ("value", "low", "high", "covariance"):
            np.testing.assert_array_equal(getattr(one.estimate, name), getattr(two.estimate, name))
    later = {"later": lists(9)}
    before = CASE.collected().evaluate(later, measures=MEASURES).results
    after = found.evaluate(later, measures=MEASURES).results
    for one, two in zip(before, after, strict=True):
        assert one.estimate.value.tolist() == two.estimate.value.tolist()
        assert one.estimate.high.tolist() == two.estimate.high.tolist()


def test_lists_have_scores() -> None:
    assert facts_of(GOOD)["format"] == adaptive.OF_PREDICTIONS
    assert member(GOOD, LISTS).decode().startswith("topic\tdocno\trun\trank\tscore\n")


def test_a_round_for_gains_that_reports_errors_keeps_scores_as_well() -> None:
    made = Case()
    plan = plan_for(made.pool, parse_measure("P@2"), budget=45, reported=[MAE])
    made.drawn, made.labels = played(made.pool, np.ones(len(made.pool), int), plan, seed="s")
    found, problems = read(written(made.collected()))
    assert found is not None, problems.as_dict()
    assert found.evaluate(found.pool, measures=[MAE]).results[0].estimate.value.any()


@pytest.mark.parametrize(
    ("change", "field", "told"),
    [
        (fact("format", adaptive.FORMAT), "measure", "a sum of gains or a ratio, found MSE"),
        (fact("reported", ["wSwaps"]), "reported", "a sum of gains, a ratio or a prediction"),
    ],
)
def test_a_fact_that_does_not_go_with_predictions_is_named(
    change: Change, field: str, told: str
) -> None:
    _, _, where, message = first(repacked(GOOD, FACTS, change))
    assert where == field
    assert told in message


def test_scores_and_parts_that_cannot_be_are_named() -> None:
    message = first(repacked(GOOD, LISTS, cell(2, 4, "1e21")))[3]
    assert message == "expected a number from -1e+20 to 1e+20, found '1e21'"
    rows = rows_of(GOOD, MODELS)
    decline = max(int(row[2]) for row in rows) - 5 - 3
    part = next(at for at, row in enumerate(rows, start=2) if int(row[2]) == decline + 1)
    message = first(repacked(GOOD, MODELS, cell(part, 3, "1.5")))[3]
    assert message.startswith("expected a part from 0 to 1, or an error, found")
    message = first(repacked(GOOD, MODELS, without(part)))[3]
    assert "expected 8 numbers of scores in batch" in message


def test_another_part_in_sizes_leads_to_other_chances() -> None:
    rows = rows_of(GOOD, MODELS)
    decline = max(int(row[2]) for row in rows) - 5 - 3
    at = next(at for at, row in enumerate(rows, start=2) if int(row[2]) == decline + 2)
    other = "1.0" if rows[at - 2][3] == "0.0" else "0.0"
    file, _, _, message = first(repacked(GOOD, MODELS, cell(at, 3, other)))
    assert (file, "which follows from the steps" in message) == (f"c.zip/{DRAWS}", True)
