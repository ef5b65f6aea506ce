"""Judged collections of adaptive rounds of preferences and of predictions as files."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.scoring import OF_SCORES
from estimation.core.rounds.evaluation import evaluate
from estimation.formats.collections import adaptive
from estimation.formats.collections.adaptive import MODELS, PAIRS
from estimation.formats.collections.archive import DRAWS, FACTS, JUDGMENTS
from estimation.formats.collections.ranked import LISTS
from tests.core.adaptive_by_run import (
    ACCURACY,
    MAE,
    MSE,
    PREDICTED,
    PREFERENCES,
    best_of,
    plan_for,
    played,
)
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
    twice,
    without,
    written,
)
from tests.formats.test_collections import lists

TOPICS = [f"t{number}" for number in range(8)]


def with_scores(seed: int) -> RankedLists:
    """Ten documents of each topic, with scores of three digits."""
    rng, best = np.random.default_rng(seed), PREDICTED.best
    return scored(
        {
            topic: {f"d{number}": round(float(rng.uniform(0, best)), 3) for number in range(10)}
            for topic in TOPICS
        }
    )


@dataclass(frozen=True, eq=False)
class Case:
    """Three batches, of which a model planned the last; the first of the measures is the goal's."""

    pool: Pool
    measures: list[Measure]
    drawn: AdaptiveRound
    labels: LabelRows

    @classmethod
    def of(cls, pool: Pool, grades: np.ndarray, measures: list[Measure], *, budget: int) -> "Case":
        goal, *reported = measures
        plan = plan_for(pool, goal, budget=budget, batches=3, reported=reported)
        return cls(pool, measures, *played(pool, grades, plan, seed="s"))

    def collected(self) -> RoundCollection:
        return publish(
            self.pool, self.drawn, labels=self.labels, max_grade=best_of(self.pool), version="0.1",
            measures=self.measures, seeds=["s"],
        )  # fmt: skip


def of_preferences() -> Case:
    runs = {f"r{number}": lists(number) for number in range(3)}
    pool = preference_pool(build_pool(TOPICS, runs, depth=4), depth=4)
    grades = np.random.default_rng(2).choice(3, size=len(pool))
    made = Case.of(pool, grades, PREFERENCES[::-1], budget=60)
    assert made.drawn.sample.steps[-1].model is not None
    return made


def of_predictions() -> Case:
    runs = {f"r{number}": with_scores(number) for number in range(3)}
    pool = build_pool(TOPICS, runs, depth=8, scores=True)
    mean = pool.by_pair(pool.score) @ np.ones(3) / np.diff(pool.indptr)
    grades = 4 * np.argsort(np.argsort(mean)) // len(mean)  # each for a quarter of the pairs
    made = Case.of(pool, grades, [MSE, MAE, ACCURACY], budget=45)
    assert made.drawn.sample.steps[-1].model.scoring.part > 0.0
    return made


COMPARISONS, PREDICTIONS = of_preferences(), of_predictions()
OF_PREFERENCES, OF_PREDICTIONS = (written(each.collected()) for each in (COMPARISONS, PREDICTIONS))
of_both = pytest.mark.parametrize(
    ("case", "later"),
    [(COMPARISONS, lists), (PREDICTIONS, with_scores)],
    ids=["preferences", "predictions"],
)


@of_both
def test_what_is_written_is_read_back_to_the_bit(
    case: Case, later: Callable[[int], RankedLists]
) -> None:
    assert_read_back(case.collected())


@of_both
def test_what_is_read_back_has_the_estimates_of_the_round_and_of_later_runs(
    case: Case, later: Callable[[int], RankedLists]
) -> None:
    found, problems = read(written(case.collected()))
    assert found is not None, problems.as_dict()
    asked = {"measures": case.measures, "max_grade": best_of(case.pool)}
    told = evaluate(case.pool, case.drawn, labels=case.labels, **asked).results
    again = found.evaluate(found.pool, measures=case.measures).results
    for one, two in zip(told, again, strict=True):
        for name in ("value", "low", "high", "covariance"):
            np.testing.assert_array_equal(getattr(one.estimate, name), getattr(two.estimate, name))
    joined = {"later": later(9)}
    before = case.collected().evaluate(joined, measures=case.measures).results
    after = found.evaluate(joined, measures=case.measures).results
    for one, two in zip(before, after, strict=True):
        assert one.estimate.value.tolist() == two.estimate.value.tolist()
        assert one.estimate.high.tolist() == two.estimate.high.tolist()


@pytest.mark.parametrize(
    ("archive", "change", "field", "told"),
    [
        (OF_PREFERENCES, fact("depth", 1), "depth",
         "a whole number from 2 to 200 for preferences, found 1"),
        (OF_PREFERENCES, fact("max_grade", 3), "max_grade", "2 for preferences, found 3"),
        (OF_PREFERENCES, fact("format", adaptive.FORMAT), "measure",
         "a sum of gains or a ratio, found wSwaps"),
        (OF_PREFERENCES, fact("reported", ["P@5"]), "reported",
         "a measure of preferences, found P@5"),
        (OF_PREDICTIONS, fact("format", adaptive.FORMAT), "measure",
         "a sum of gains or a ratio, found MSE"),
        (OF_PREDICTIONS, fact("reported", ["wSwaps"]), "reported",
         "a sum of gains, a ratio or a prediction, found wSwaps"),
    ],
)  # fmt: skip
def test_a_fact_that_does_not_go_with_the_kind_is_named(
    archive: bytes, change: Change, field: str, told: str
) -> None:
    file, _, where, message = first(repacked(archive, FACTS, change))
    assert (file, where, message) == (f"c.zip/{FACTS}", field, f"expected {told}")


# ----------------------------------------------------------------------------- preferences


def test_every_row_of_pairs_lists_and_judgments_names_two_documents() -> None:
    assert facts_of(OF_PREFERENCES)["format"] == adaptive.OF_PREFERENCES
    for name in (PAIRS, LISTS, DRAWS, JUDGMENTS):
        assert member(OF_PREFERENCES, name).decode().startswith("topic\tdocno\tother\t")
    assert (
        member(OF_PREFERENCES, LISTS)
        .decode()
        .startswith("topic\tdocno\tother\trun\trank\tother_rank\n")
    )


def test_a_document_that_is_compared_with_none_takes_no_room() -> None:
    """Its long name makes the docnos of the pool wider, and is in no table."""
    alone = {tag: lists(number) for number, tag in enumerate(("r0", "r1", "r2"))}
    docnos = alone["r2"].docnos.astype("S40")
    cut = type(alone["r2"])(("t9",), np.array([0, 1]), np.array([b"x" * 40]))
    assert docnos.dtype.itemsize == 40
    pool = preference_pool(build_pool([*TOPICS, "t9"], {**alone, "r3": cut}, depth=4), depth=4)
    grades = np.random.default_rng(2).choice(3, size=len(pool))
    found, problems = read(written(Case.of(pool, grades, PREFERENCES[::-1], budget=60).collected()))
    assert found is not None, problems.as_dict()
    assert found.pool.docno.dtype.itemsize < pool.docno.dtype.itemsize


def test_ranks_that_are_of_no_lists_are_refused() -> None:
    """Whoever changes one, and the digest with it."""
    rows = rows_of(OF_PREFERENCES, LISTS)
    number, row = next((at, each) for at, each in enumerate(rows, start=2) if each[4] == "1")
    changed = "3" if row[5] != "3" else "4"
    spoilt = repacked(OF_PREFERENCES, LISTS, cell(number, 4, changed))
    file, _, field, message = first(spoilt)
    assert (file, field) == (f"c.zip/{FACTS}", "pool")
    digest = message.removeprefix("expected ").split(",")[0]
    file, _, field, message = first(repacked(spoilt, FACTS, fact("pool", digest)))
    assert (file, field) == (f"c.zip/{LISTS}", "rank")
    assert message == "expected ranks that are those of one list for each run"


def test_a_pair_that_stands_twice_in_a_list_or_in_none_of_the_pairs_is_named() -> None:
    row = rows_of(OF_PREFERENCES, LISTS)[0]
    assert f"in the list of {row[3]} once" in first(repacked(OF_PREFERENCES, LISTS, twice(2)))[3]
    message = first(repacked(OF_PREFERENCES, LISTS, cell(2, 2, "zzz")))[3]
    assert message.startswith(f"expected a pair of {PAIRS}, found documents")


def test_a_judgment_that_is_missing_is_named_by_both_documents() -> None:
    topic, docno, other, *_ = rows_of(OF_PREFERENCES, JUDGMENTS)[0]
    message = first(repacked(OF_PREFERENCES, JUDGMENTS, without(2)))[3]
    told = f"a judgment of documents {docno!r} and {other!r} of topic {topic!r}"
    assert told in message


def test_a_chance_that_does_not_follow_is_refused() -> None:
    number = next(
        at for at, row in enumerate(rows_of(OF_PREFERENCES, DRAWS), start=2) if row[4] != "1.0"
    )
    spoilt = repacked(OF_PREFERENCES, DRAWS, cell(number, 4, "0.9876"))
    assert first(spoilt)[3].endswith("found 0.9876")
    assert rows_of(OF_PREFERENCES, MODELS)


# ----------------------------------------------------------------------------- predictions


def test_lists_have_scores() -> None:
    assert facts_of(OF_PREDICTIONS)["format"] == adaptive.OF_PREDICTIONS
    assert member(OF_PREDICTIONS, LISTS).decode().startswith("topic\tdocno\trun\trank\tscore\n")


def test_a_round_for_gains_that_reports_errors_keeps_scores_as_well() -> None:
    pool, measures = PREDICTIONS.pool, [parse_measure("P@2"), MAE]
    made = Case.of(pool, np.ones(len(pool), int), measures, budget=45)
    found, problems = read(written(made.collected()))
    assert found is not None, problems.as_dict()
    assert found.evaluate(found.pool, measures=[MAE]).results[0].estimate.value.any()


def line_of_scoring(rows: list[list[str]], number: int) -> int:
    """The first line of so many of a batch's numbers of scores, which stand behind all others."""
    decline = max(int(row[2]) for row in rows) - OF_SCORES - len(PREDICTIONS.pool.runs)
    lines = enumerate(rows, start=2)
    return next(at for at, row in lines if int(row[2]) == decline + number)


def test_scores_and_parts_that_cannot_be_are_named() -> None:
    message = first(repacked(OF_PREDICTIONS, LISTS, cell(2, 4, "1e21")))[3]
    assert message == "expected a number from -1e+20 to 1e+20, found '1e21'"
    rows = rows_of(OF_PREDICTIONS, MODELS)
    part = line_of_scoring(rows, 1)
    message = first(repacked(OF_PREDICTIONS, MODELS, cell(part, 3, "1.5")))[3]
    assert message.startswith("expected a part from 0 to 1, or an error, found")
    message = first(repacked(OF_PREDICTIONS, MODELS, without(part)))[3]
    assert "expected 8 numbers of scores in batch" in message


def test_another_part_in_sizes_leads_to_other_chances() -> None:
    rows = rows_of(OF_PREDICTIONS, MODELS)
    at = line_of_scoring(rows, 2)
    other = "1.0" if rows[at - 2][3] == "0.0" else "0.0"
    file, _, _, message = first(repacked(OF_PREDICTIONS, MODELS, cell(at, 3, other)))
    assert (file, "which follows from the steps" in message) == (f"c.zip/{DRAWS}", True)
