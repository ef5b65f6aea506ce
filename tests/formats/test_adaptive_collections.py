"""Judged collections of adaptive rounds as files: nothing is lost, and nothing wrong is taken."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimation.core.collections.base import RoundCollection
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import walk
from estimation.formats.collections import active, adaptive, archive, ranked, tables
from estimation.formats.collections.adaptive import MODELS, PAIRS, STEPS
from estimation.formats.collections.archive import DRAWS, FACTS, JUDGMENTS
from estimation.formats.collections.ranked import LISTS
from tests.core.simulated_pools import harmful_predictions, helpful_predictions
from tests.core.test_core_adaptive_collection import CASES, MEASURES, Case, with_predictions
from tests.core.test_core_later_runs import LATE, RUNS, pool_of
from tests.formats.collection_files import (
    Change,
    assert_a_lost_judgment_is_named,
    assert_bad_fact,
    assert_read_back,
    cell,
    fact,
    facts_of,
    first,
    first_with,
    header_alone,
    line,
    member,
    read,
    repacked,
    rows_of,
    twice,
    with_row,
    without,
    written,
)

NUMBERS = ("value", "se", "df", "low", "high", "covariance", "difference_df", "finds", "expected")


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def read_back(content: bytes) -> RoundCollection:
    found, problems = read(content)
    assert found is not None, problems.as_dict()
    return found


@pytest.mark.parametrize("batches", [1, None])
def test_what_is_written_is_read_back_to_the_bit(case: Case, batches: int | None) -> None:
    assert_read_back(case.collected(batches, seeds=["süß"]))


@pytest.mark.slow
@pytest.mark.parametrize("batches", [1, None])
def test_what_is_read_back_has_the_same_estimates_to_the_bit(
    case: Case, batches: int | None
) -> None:
    """Those that the server has, which never wrote or read the collection."""
    found = read_back(written(case.collected(batches)))
    assert_same_bits(case.asked(batches), found.evaluate(found.pool, measures=MEASURES))


@pytest.mark.slow
def test_a_later_run_has_the_same_estimates_to_the_bit() -> None:
    given = with_predictions()
    joined = pool_of(RUNS | LATE)
    then = given.asked(joined=joined)
    found = read_back(written(given.collected()))
    assert_same_bits(then, found.evaluate(joined, measures=MEASURES))


@pytest.mark.slow
@pytest.mark.parametrize("even", [False, True])
def test_pairs_of_a_topic_together_are_read_back_so(even: bool) -> None:
    gains = [each for each in MEASURES if each.family == "gain"]
    case = Case(reported=gains[1:], topic_minimum=6.0, even_topics=even)
    found = read_back(written(collected := case.collected(measures=gains)))
    plan = found.drawn.design
    assert (plan.topic_minimum, plan.even_topics) == (6.0, even)
    then = collected.evaluate(collected.pool, measures=gains)
    assert_same_bits(then, found.evaluate(found.pool, measures=gains))


def assert_same_bits(then: object, now: object) -> None:
    for before, after in zip(then.results, now.results, strict=True):  # type: ignore[attr-defined]
        assert before.runs == after.runs
        assert before.by_topic.tolist() == after.by_topic.tolist()
        for field in NUMBERS:
            one, other = (np.asarray(getattr(each.estimate, field)) for each in (before, after))
            assert one.tolist() == other.tolist(), field
        for field, value in vars(before.ranking).items():
            assert np.array_equal(value, getattr(after.ranking, field), equal_nan=True), field


KINDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "helpful": helpful_predictions,
    **{
        name: lambda grades, name=name: harmful_predictions(grades)[name]  # type: ignore[misc]
        for name in ("heavy tails", "constant")
    },
}


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    seed=st.text("aß ", max_size=3),
    budget=st.integers(1, 90),
    batches=st.integers(1, 6),
    floor=st.sampled_from([0.0, 0.1, 1.0]),
    costs=st.booleans(),
    predicted=st.lists(st.sampled_from(sorted(KINDS)), max_size=2),
    missing=st.floats(0.0, 1.0),
    used=st.integers(1, 6),
)
def test_what_is_read_and_written_again_is_the_same_bytes(
    seed: str, budget: int, batches: int, floor: float, costs: bool, predicted: list[str],
    missing: float, used: int,
) -> None:  # fmt: skip
    pool, rng = pool_of(RUNS), np.random.default_rng(budget)
    options: dict = {"budget": budget, "batches": min(batches, budget), "floor": floor}
    if costs:
        options["costs"] = np.exp(rng.normal(size=len(pool)))
    if predicted:
        grades = rng.integers(4, size=len(pool))
        columns = np.stack([KINDS[name](grades) for name in predicted], axis=1)
        options["predicted"] = np.where(rng.random(columns.shape) < missing, np.nan, columns)
    case = Case(**options)
    content = written(case.collected(min(used, case.drawn.planned), seeds=[seed]))
    assert written(read_back(content)) == content


def test_a_prediction_that_is_missing_is_an_empty_cell() -> None:
    case = with_predictions()
    rows = rows_of(written(case.collected()), PAIRS)
    predicted = case.drawn.design.predicted
    assert predicted is not None
    assert [row[4] for row in rows] == [repr(each) for each in predicted[:, 0].tolist()]
    told = [float(row[5]) if row[5] else math.nan for row in rows]
    assert np.array_equal(told, predicted[:, 1], equal_nan=True)


def test_the_constants_of_a_census_are_infinite() -> None:
    content = written(CASES["census"]().collected())
    assert facts_of(content)["steps"][-1] == "inf"
    assert rows_of(content, STEPS)[-1] == ["2", "2", "inf"]


def test_nothing_is_told_of_batches_that_are_not_complete() -> None:
    whole, part = (written(Case().collected(batches, seeds=["secret"])) for batches in (None, 2))
    assert b"secret" in member(whole, FACTS)
    assert b"secret" not in member(part, FACTS)
    for name, column in ((STEPS, 0), (MODELS, 0), (DRAWS, 2)):
        assert max(row[column] for row in rows_of(part, name)) == "2"
        assert max(row[column] for row in rows_of(whole, name)) == "4"
    judged = {tuple(row[:2]) for row in rows_of(part, JUDGMENTS)}
    assert judged == {tuple(row[:2]) for row in rows_of(part, DRAWS)}


# --------------------------------------------------------------------------------- hostile

GOOD = written(Case().collected(3))
TOPIC, DOCNO = rows_of(GOOD, DRAWS)[0][:2]
CERTAIN = written(CASES["census"]().collected())
PREDICTED = written(with_predictions().collected(2))
COSTS = written(CASES["costs"]().collected(2))


def undrawn() -> list[str]:
    drawn = {tuple(row[:2]) for row in rows_of(GOOD, DRAWS)}
    return next(row[:2] for row in rows_of(GOOD, PAIRS) if tuple(row[:2]) not in drawn)


def raised(number: int, column: int, by: float) -> Change:
    return line(
        number,
        lambda row: [*row[:column], repr(float(row[column]) * by), *row[column + 1 :]],
    )


ONE = "a number from 1e-60 to 1, found"


@pytest.mark.parametrize(
    ("name", "change", "number", "field", "message"),
    [
        (LISTS, cell(2, 2, "run9"), 2, "run", "a run of collection.json, found 'run9'"),
        (LISTS, cell(2, 3, "11"), 2, "rank", "a whole number from 1 to 10, found '11'"),
        (LISTS, cell(3, 3, "1"), 3, "rank", "expected rank 2 next in the list of 'run0'"),
        (LISTS, cell(3, 1, "x"), 3, "docno", "a pair of pairs.tsv.gz, found docno 'x' of topic"),
        (LISTS, header_alone, None, "pool", "which follows from the tables, found"),
        (LISTS, without(11), None, "pool", "which follows from the tables, found"),
        (PAIRS, cell(2, 0, "t9"), 2, "topic", "a topic of collection.json, found 't9'"),
        (PAIRS, cell(2, 1, "../x"), 2, "docno", "that is no path"),
        (PAIRS, cell(2, 2, "nan"), 2, "size", "a number from 0 to 1, found 'nan'"),
        (PAIRS, cell(2, 2, "inf"), 2, "size", "a number from 0 to 1, found 'inf'"),
        (PAIRS, cell(2, 2, "-0.1"), 2, "size", "a number from 0 to 1, found '-0.1'"),
        (PAIRS, cell(2, 2, ""), 2, "size", "a number from 0 to 1, found ''"),
        (PAIRS, cell(2, 2, "0.5"), None, "size", "expected numbers that add up to 1, found 1."),
        (PAIRS, cell(2, 3, "1.5"), 2, "belief", "a number from 0 to 1, found '1.5'"),
        (PAIRS, cell(2, 3, "1e999"), 2, "belief", "found '1e999'"),
        (PAIRS, twice(2), None, "docno", "once, found it on line 2 already"),
        (PAIRS, with_row("t6", "more", "0.0", "0.1"), None, "pool", "which follows from the tab"),
        (PAIRS, line(2, lambda cells: cells[:3]), 2, "columns", "expected 4 columns"),
        (STEPS, cell(2, 0, "0"), 2, "batch", "a whole number from 1 to 4, found '0'"),
        (STEPS, cell(2, 0, "5"), 2, "batch", "a whole number from 1 to 4, found '5'"),
        (STEPS, cell(3, 0, "3"), 3, "until", "the batch itself or a later one, found the constant"),
        (STEPS, cell(2, 1, "5"), 2, "until", "a whole number from 1 to 4, found '5'"),
        (STEPS, cell(2, 2, "-1.0"), 2, "constant", "of at least 0, or inf, found '-1.0'"),
        (STEPS, cell(2, 2, "nan"), 2, "constant", "of at least 0, or inf, found 'nan'"),
        (STEPS, cell(2, 2, "1e999"), 2, "constant", "of at least 0, or inf, found '1e999'"),
        (STEPS, cell(2, 2, "inf"), 3, "constant", "constants that never fall, found"),
        (STEPS, cell(3, 2, "0.0"), 3, "constant", "constants that never fall, found 0.0"),
        (STEPS, twice(2), None, "until", "the constant of batch 1 for batch 1 once, found it on"),
        (STEPS, without(2), None, "until", "constants of batch 1 for each batch from 1 to 4, fou"),
        (STEPS, without(10), None, "until", "constants of batch 3 for each batch from 3 to 4, f"),
        (STEPS, header_alone, None, "until", "constants of batch 1 for each batch from 1 to 4, f"),
        (STEPS, with_row("4", "4", "inf"), None, "certain", "in batch 4, where it was certain, f"),
        (MODELS, cell(2, 0, "1"), 2, "batch", "a whole number from 2 to 4, found '1'"),
        (MODELS, cell(2, 0, "4"), 2, "batch", "a batch of steps.tsv.gz, found parameter 1 of lev"),
        (MODELS, cell(2, 1, "4"), 2, "level", "a whole number from 1 to 3, found '4'"),
        (MODELS, cell(2, 2, "-1"), 2, "parameter", "a whole number from 0 to"),
        (MODELS, cell(2, 2, "0"), None, "parameter", "parameter 0 of level 1 in batch 2 once, fo"),
        (MODELS, cell(2, 3, "1e7"), 2, "coefficient", "from -1e+06 to 1e+06, found '1e7'"),
        (MODELS, cell(2, 3, "nan"), 2, "coefficient", "from -1e+06 to 1e+06, found 'nan'"),
        (MODELS, twice(2), None, "parameter", "parameter 1 of level 1 in batch 2 once, found it o"),
        (MODELS, without(2), None, "coefficient", "coefficients in batch 2 for each of t"),
        (DRAWS, cell(2, 1, "nobody"), 2, "docno", "a pair of pairs.tsv.gz with a size above 0, f"),
        (DRAWS, cell(2, 2, "0"), 2, "batch", "a whole number from 1 to 4, found '0'"),
        (DRAWS, cell(2, 2, "4"), 2, "batch", "a batch of steps.tsv.gz, found 4"),
        (DRAWS, cell(2, 3, "0"), 2, "chance", f"{ONE} '0'"),
        (DRAWS, cell(2, 3, "1.1"), 2, "chance", f"{ONE} '1.1'"),
        (DRAWS, cell(2, 3, "inf"), 2, "chance", f"{ONE} 'inf'"),
        (DRAWS, raised(2, 3, 1.0 + 1e-8), 2, "chance", "which follows from the steps, found"),
        (DRAWS, raised(2, 3, 1.0 - 1e-8), 2, "chance", "which follows from the steps, found"),
        (DRAWS, twice(2), None, "docno", "once, found it on line 2 already"),
        (DRAWS, with_row(TOPIC, DOCNO, "2", "0.1"), None, "docno", "found it on line 2 already"),
        (DRAWS, with_row(*undrawn(), "2", "0.5"), None, "chance", "follows from the steps, found"),
        (JUDGMENTS, cell(2, 2, "4"), 2, "grade", "from 0 to 3, found '4'"),
        (JUDGMENTS, cell(2, 1, "nobody"), 2, "docno", "a pair of draws.tsv.gz, found docno 'nob"),
        (JUDGMENTS, with_row(*undrawn(), "1"), None, "docno", "a pair of draws.tsv.gz, found"),
        (JUDGMENTS, header_alone, None, "docno", "a pair of draws.tsv.gz, found none"),
    ],
)
def test_a_bad_line_is_named(
    name: str, change: Change, number: int | None, field: str, message: str
) -> None:
    file, at, where, told = first(repacked(GOOD, name, change))
    assert number is None or at == number
    assert file == "c.zip/" + {"pool": FACTS, "certain": DRAWS}.get(field, name)
    assert where == {"certain": "docno"}.get(field, field)
    assert message in told


def test_a_size_of_another_pair_changes_what_could_be_drawn() -> None:
    """The sizes still add up to 1, but chances follow from others."""
    rows = rows_of(GOOD, PAIRS)
    drawn = {tuple(row[:2]) for row in rows_of(GOOD, DRAWS)}
    one, other = (
        next(at for at, row in enumerate(rows) if (tuple(row[:2]) in drawn) == wanted
             and float(row[2]) > 0)
        for wanted in (True, False)
    )  # fmt: skip
    spoilt = repacked(GOOD, PAIRS, cell(one + 2, 2, rows[other][2]))
    spoilt = repacked(spoilt, PAIRS, cell(other + 2, 2, rows[one][2]))
    file, _, field, message = first(spoilt)
    assert (file, field) == (f"c.zip/{DRAWS}", "chance")
    assert "which follows from the steps" in message


def test_a_pair_without_a_size_was_not_drawn() -> None:
    rows = rows_of(GOOD, PAIRS)
    at = next(n for n, row in enumerate(rows) if row[:2] == [TOPIC, DOCNO])
    more = next(n for n, row in enumerate(rows) if row[:2] == undrawn())
    both = repr(float(rows[at][2]) + float(rows[more][2]))
    spoilt = repacked(GOOD, PAIRS, cell(at + 2, 2, "0.0"))
    spoilt = repacked(spoilt, PAIRS, cell(more + 2, 2, both))
    file, number, field, message = first(spoilt)
    assert (file, number, field) == (f"c.zip/{DRAWS}", 2, "docno")
    named = f"docno {DOCNO!r} of topic {TOPIC!r}"
    assert message == f"expected a pair of {PAIRS} with a size above 0, found {named}"


def test_what_was_learned_is_what_chances_follow_from() -> None:
    file, _, field, _ = first(repacked(GOOD, MODELS, cell(2, 3, "1.0")))
    assert (file, field) == (f"c.zip/{DRAWS}", "chance")


def test_a_constant_is_what_chances_follow_from() -> None:
    found = read(repacked(GOOD, STEPS, raised(2, 2, 0.9)))[1]
    assert {problem.field for problem in found.errors} == {"chance"}
    assert found.errors[0].file == f"c.zip/{DRAWS}"


def test_what_was_certain_was_drawn() -> None:
    lost = rows_of(CERTAIN, DRAWS)[-1]

    def change(data: bytes) -> bytes:
        return data.replace("\t".join(lost).encode() + b"\n", b"")

    spoilt = repacked(CERTAIN, DRAWS, change)
    file, _, field, message = first(spoilt)
    assert (file, field) == (f"c.zip/{DRAWS}", "docno")
    named = f"document {lost[1]!r} of topic {lost[0]!r}"
    assert message == f"expected {named} in batch {lost[2]}, where it was certain, found nothing"


@pytest.mark.parametrize(
    ("content", "column", "value", "message"),
    [
        (PREDICTED, 4, "nan", "a number from -1e+300 to 1e+300, or nothing, found 'nan'"),
        (PREDICTED, 5, "1e301", "or nothing, found '1e301'"),
        (PREDICTED, 5, " ", "or nothing, found ' '"),
        (COSTS, 4, "", "a number from 1e-15 to 1e+15, found ''"),
        (COSTS, 4, "0", "a number from 1e-15 to 1e+15, found '0'"),
        (COSTS, 4, "1e16", "a number from 1e-15 to 1e+15, found '1e16'"),
    ],
)
def test_costs_and_predictions_are_numbers(
    content: bytes, column: int, value: str, message: str
) -> None:
    file, number, _, told = first(repacked(content, PAIRS, cell(2, column, value)))
    assert (file, number) == (f"c.zip/{PAIRS}", 2)
    assert message in told


def test_costs_and_predictions_are_those_that_the_batches_rest_on() -> None:
    for content in (COSTS, PREDICTED):
        file, _, field, _ = first(repacked(content, PAIRS, raised(2, 4, 50.0)))
        assert (file, field) == (f"c.zip/{DRAWS}", "chance")


def test_a_document_without_judgment_is_named() -> None:
    assert_a_lost_judgment_is_named(GOOD)


GOAL, STEP = facts_of(GOOD)["goal"], facts_of(GOOD)["steps"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", "evalsite-adaptive-collection-9", "evalsite-adaptive-collection-1"),
        ("topics", [], "a list of 1 to"),
        ("depth", 0, "a whole number from 1"),
        ("depth", 12, None),
        ("max_grade", 0, "a whole number from 1"),
        ("max_grade", 2, None),
        ("pool", "0" * 64, "which follows from the tables, found 000"),
        ("measures", [], "a list of 1 to 100 names"),
        ("runs", ["run0", "run1"], None),
        ("runs", ["run0", "run1", "run2", "run3"], None),
        ("seed", 5, "null or a short text"),
        ("seed", "s", "expected null, because there are batches left"),
        ("goal", GOAL | {"runs": ["run0", "run9"]}, "runs of the collection, found 'run9'"),
        ("goal", GOAL | {"kind": "fancy"}, "fancy"),
        ("goal", GOAL | {"kind": "single", "runs": ["run0"]}, None),
        ("measure", "ERR@5", "expected a sum of gains or a ratio, found ERR@5"),
        ("measure", "Fancy@10", "Fancy"),
        ("measure", "MSE", "expected a sum of gains or a ratio, found MSE"),
        ("measure", "P@1", None),
        ("reported", ["ERR@10"], "expected a sum of gains or a ratio, found ERR@10"),
        ("reported", "P@1", "a list of names of measures"),
        ("prior", 1, "a short text"),
        ("rule", "third", "one of first, second, uniform"),
        ("budget", 0, "a number from 1 to 1e12"),
        ("budget", 1e13, "a number from 1 to 1e12"),
        ("budget", 76, None),
        ("batch_size", 0.5, "a number from 1 to 1e12"),
        ("floor", 1.5, "a number from 0 to 1"),
        ("floor", 0.9, None),
        ("steps", [], "a list of positive numbers"),
        ("steps", [*STEP[:-1], 0], "a list of positive numbers"),
        ("steps", [*STEP[:-1], "infinity"], "a list of positive numbers"),
        ("steps", STEP[::-1], "expected steps that never fall"),
        ("steps", STEP[:-1], "expected 4 of them, one per batch, found 3"),
        ("costs", 1, "true or false"),
        ("costs", True, None),
        ("predicted", True, "a number of columns from 0 to 20"),
        ("predicted", 21, "a number of columns from 0 to 20"),
        ("predicted", 1, None),
        ("topic_minimum", 0, "a number above 0, up to 1000"),
        ("topic_minimum", 1001, "a number above 0, up to 1000"),
        ("topic_minimum", None, "a number above 0, up to 1000"),
        ("topic_minimum", 5, "expected sums of gains, not AP@5"),
        ("extra", 1, "expected no such field"),
    ],
)
def test_a_bad_fact_is_named(field: str, value: object, message: str | None) -> None:
    assert_bad_fact(GOOD, field, value, message)


def test_endless_batches_are_refused() -> None:
    """They would be counted one by one."""
    file, _, field, message = first(repacked(GOOD, FACTS, fact("budget", 1e12)))
    assert (file, field) == (f"c.zip/{FACTS}", "batch_size")
    assert message == "expected at most 100000 batches of a budget of 1000000000000.0, found 15"


def test_another_format_is_no_disguise() -> None:
    """Nor can pairs be said to have been drawn by batches."""
    file, _, field, _ = first(repacked(GOOD, FACTS, fact("format", active.FORMAT)))
    assert file == f"c.zip/{FACTS}"
    assert field != "format"


@pytest.mark.parametrize(
    ("name", "number", "column", "value"),
    [
        (PAIRS, 2, 2, "1e-320"), (STEPS, 2, 2, "5e-324"), (STEPS, 5, 2, "1.7e308"),
        (STEPS, 2, 2, "0.0"), (MODELS, 2, 3, "1000000.0"), (MODELS, 3, 3, "-1e6"),
    ],
)  # fmt: skip
def test_extreme_numbers_are_refused_or_read(
    name: str, number: int, column: int, value: str
) -> None:
    found, problems = read(repacked(GOOD, name, cell(number, column, value)))
    assert found is not None or problems.errors


@pytest.mark.parametrize(("share", "drawn"), [(1e-55, True), (1e-95, False)])
def test_whoever_could_be_drawn_at_all_leaves_all_numbers_finite(share: float, drawn: bool) -> None:
    """The least likely pairs that are taken, of those that were drawn and of the others."""
    found = read_back(written(unlikely(share, drawn=drawn)))
    result = found.evaluate(RUNS | LATE, measures=[MEASURES[0]]).results[0]
    for field in ("value", "se", "low", "high", "covariance"):
        assert np.all(np.isfinite(getattr(result.estimate, field))), field


def test_less_likely_ones_are_refused() -> None:
    file, _, field, message = first(written(unlikely(1e-65, drawn=True)))
    assert (file, field) == (f"c.zip/{DRAWS}", "chance")
    assert message.startswith("expected a number from 1e-60 to 1, found")
    file, _, field, message = first(written(unlikely(1e-110, drawn=False)))
    assert (file, field) == (f"c.zip/{STEPS}", "constant")
    assert message.startswith("expected no chance below 1e-100 in batch 1, found")


def unlikely(share: float, *, drawn: bool) -> RoundCollection:
    """A sound collection in which a pair of the first batch, or one of no batch, has next to no
    size; nothing was learned."""
    given = Case().collected()
    plan, state = given.drawn.design, given.drawn.sample
    others = np.setdiff1d(np.flatnonzero(plan.design.eligible), state.pair)
    size = plan.design.size.copy()
    size[state.pair[state.batch == 1][0] if drawn else others[0]] = share
    plan = replace(plan, design=replace(plan.design, size=size / size.sum()))
    state = replace(state, steps=tuple(replace(step, model=None) for step in state.steps))
    chance = np.zeros(len(state.pair))
    for passed in walk(plan.frame(given.pool), state):
        own = state.batch == passed.number
        chance[own] = passed.chances.by(0)[state.pair[own]]
    return replace(given, drawn=AdaptiveRound(plan, replace(state, chance=chance)))


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*limit: object, content: bytes = GOOD) -> tuple[str, str, str]:
        return first_with(monkeypatch, limit, content)

    rows = "expected at most 5 rows, found more"
    assert refused(tables, "MAX_ROWS", 5) == (f"c.zip/{PAIRS}", "", rows)
    assert refused(ranked, "MAX_ENTRIES", 5) == (f"c.zip/{LISTS}", "", rows)
    assert refused(adaptive, "MAX_ENTRIES", 5) == (f"c.zip/{MODELS}", "", rows)
    cells = "expected at most 20 runs times topics, found more"
    assert refused(ranked, "MAX_CELLS", 20) == (f"c.zip/{FACTS}", "runs", cells)
    walked = "expected at most 20 batches times pairs and entries of lists"
    assert refused(adaptive, "MAX_WALKED", 20) == (f"c.zip/{STEPS}", "", walked)
    assert refused(adaptive, "MAX_BATCHES", 1)[:2] == (f"c.zip/{FACTS}", "batch_size")
    assert refused(archive, "MAX_FACTS", 9) == (
        "c.zip", FACTS, "expected at most 9 bytes, found more",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        (ranked, "MAX_ENTRIES", "at most 1 rows, with topic, docno, run, rank"),
        (ranked, "MAX_CELLS", "at most 1 runs times topics"),
        (adaptive, "MAX_ENTRIES", "at most 1 rows, with batch, level, parameter, coefficient"),
        (adaptive, "MAX_WALKED", "at most 1 batches times pairs and entries of lists"),
        (adaptive, "MAX_PREDICTED", "at most 1 columns of predicted grades"),
    ],
)
def test_what_no_reader_would_take_is_not_written(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, message: str
) -> None:
    given = with_predictions().collected()
    monkeypatch.setattr(module, name, 1)
    with pytest.raises(ValueError, match=message):
        written(given)
