"""What was expected of pairs, in files of collections: runs get the very numbers of the round."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.rounds.combining import RoundsTogether
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import Evaluation
from estimation.formats.collections import tables
from estimation.formats.collections.archive import TooLargeError
from estimation.formats.collections.outlooks import OUTLOOK
from estimation.formats.collections.pairs import INELIGIBLE, PAIRS
from tests.core.comparing import OF_ONE_RUN, OF_TWO_RUNS
from tests.formats import test_collection_rounds as of_rounds
from tests.formats import test_preference_collections as of_preferences
from tests.formats.collection_files import (
    Change,
    assert_equal,
    assert_read_back,
    cell,
    first,
    first_with,
    header_alone,
    line,
    member,
    packed,
    raw_members,
    read,
    repacked,
    rows_of,
    twice,
    with_row,
    within_reach,
    without,
    written,
)
from tests.formats.test_collections import GOOD, collected, lists, part

RUNS = {f"r{number}": lists(number) for number in range(4)}
FEW = lists(4)
RUNS["r4"] = RankedLists(FEW.topics[:2], FEW.indptr[:3], FEW.docnos[:16])
TOPICS = [f"t{number}" for number in range(5)]
OF_TWO = (*OF_TWO_RUNS, "difference_df", "difference_unknown")
Runs = Mapping[str, RankedLists]


def pool_of_five() -> Pool:
    """Two runs have no part in the goal, and one of these lacks topics."""
    return build_pool(TOPICS, RUNS, depth=8)


def runs_of(pool: Pool) -> dict[str, RankedLists]:
    return {tag: RUNS[tag] for tag in pool.runs}


def round_of(method: str, seeds: str = "s", **options) -> tuple[Pool, RoundCollection]:
    """A round, or one for every seed; the second one believes something else of its pairs."""
    pool = pool_of_five()
    parts = [part(pool, method, seed, budget=30, batch_size=10, **options) for seed in seeds]
    for number, each in enumerate(parts[1:], start=2):
        belief = each.design.belief ** (1.0 / number)
        parts[number - 1] = replace(each, design=replace(each.design, belief=belief))
    return pool, collected(pool, parts)


def preferences(seeds: str = "s") -> tuple[Pool, RoundCollection]:
    return of_preferences.pooled(), of_preferences.collection(seeds=seeds)


def found_by_the_round(pool: Pool, given: RoundCollection) -> Evaluation:
    """Of the pool's own runs, with an outlook that is fitted anew."""
    asked = {
        "labels": given.labels, "measures": given.measures, "max_grade": given.max_grade,
    }  # fmt: skip
    return evaluate(pool, given.drawn, **asked)


def reread(given: RoundCollection) -> RoundCollection:
    found, problems = read(written(given))
    assert isinstance(found, RoundCollection), problems.errors
    return found


def differing(then: Evaluation, now: Evaluation) -> set[str]:
    """The numbers of runs in which two evaluations are not the same to the last bit."""
    found = set()
    for before, after in zip(then.results, now.results, strict=True):
        at = [before.runs.index(tag) for tag in after.runs]
        one, other = before.estimate, after.estimate
        for name in OF_ONE_RUN:
            if getattr(one, name)[at].tolist() != getattr(other, name).tolist():
                found.add(name)
        for name in OF_TWO:
            if getattr(one, name)[np.ix_(at, at)].tolist() != getattr(other, name).tolist():
                found.add(name)
        if len(at) == len(before.runs):
            verdicts = (each.ranking.verdicts.tolist() for each in (before, after))
            if len({str(each) for each in verdicts}) > 1:
                found.add("verdicts")
    return found


ROUNDS: dict[str, Callable[[], tuple[Pool, RoundCollection]]] = {
    "poisson": lambda: round_of("poisson"),
    "priority": lambda: round_of("priority"),
    "draws": lambda: round_of("iid"),
    "draws by topic": lambda: round_of("per-query"),
    "the goal's pairs alone": lambda: round_of("poisson", floor=0.0, reported=[]),
    "two rounds": lambda: round_of("poisson", "st"),
    "three rounds of draws": lambda: round_of("iid", "stu"),
    "preferences": preferences,
    "two rounds of preferences": lambda: preferences("st"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ROUNDS)
def test_runs_of_the_pool_get_the_numbers_of_the_round(kind: str) -> None:
    """To the last bit, whichever of them are asked for."""
    pool, given = ROUNDS[kind]()
    then, found, runs = found_by_the_round(pool, given), reread(given), runs_of(pool)
    for tags in (pool.runs, ("r1",), ("r2", "r0")):
        now = found.evaluate({tag: runs[tag] for tag in tags}, measures=given.measures)
        assert differing(then, now) == set(), tags


@pytest.mark.parametrize("method", ["poisson", "iid", "per-query"])
def test_a_run_that_lacks_topics_gets_the_numbers_of_the_round_alone(method: str) -> None:
    pool, given = round_of(method)
    now = reread(given).evaluate({"r4": RUNS["r4"]}, measures=given.measures)
    assert differing(found_by_the_round(pool, given), now) == set()


@pytest.mark.parametrize("kind", ROUNDS)
def test_twin_that_leaves_the_outlook_out_is_caught(kind: str) -> None:
    """Fitted to some of the runs, it is another one: values stay, intervals do not."""
    pool, given = ROUNDS[kind]()
    twin = replace(reread(given), outlook=None)
    runs = runs_of(pool)
    now = twin.evaluate({tag: runs[tag] for tag in ("r2", "r0")}, measures=given.measures)
    told = differing(found_by_the_round(pool, given), now)
    assert {"expected", "se", "low", "high"} <= told
    assert not {"value", "covariance"} & told


def test_twin_that_forgets_what_was_believed_is_caught() -> None:
    """What is said to be unknown depends on it, and how far up intervals reach."""
    pool, given = round_of("poisson", floor=0.9)
    (only,) = reread(given).parts
    drawn = replace(only, design=replace(only.design, belief=None))
    twin = replace(reread(given), drawn=drawn)
    now = twin.evaluate(runs_of(pool), measures=given.measures)
    assert differing(found_by_the_round(pool, given), now) == {"unknown", "high"}


# ------------------------------------------------------------------------- what is in the file


def test_there_is_a_row_for_every_pair_that_a_round_could_draw() -> None:
    """Some of them in one of the rounds alone: what the others believed of them counts as well."""
    assert {tuple(row[:2]) for row in ROWS} == {tuple(row[:2]) for row in rows_of(GOOD, PAIRS)}
    content = of_rounds.GOOD
    sizes, rows = rows_of(content, PAIRS), rows_of(content, OUTLOOK)
    keys = [(row[0], row[1].encode()) for row in rows]
    assert keys == sorted({(row[0], row[1].encode()) for row in sizes})
    assert len(sizes) < 3 * len(rows)
    assert all(float(belief) > 0.0 for row in rows for belief in row[2:5])


def test_pairs_out_of_reach_have_no_row_and_no_influence() -> None:
    pool, given = ROUNDS["the goal's pairs alone"]()
    content, kept = written(given), reread(given)
    never, told = rows_of(content, INELIGIBLE), [row[:2] for row in rows_of(content, OUTLOOK)]
    assert never
    assert not [row for row in never if row in told]
    assert_equal(within_reach(given), kept)
    assert kept.outlook.reached.tolist() != given.outlook.reached.tolist()
    found = [each.evaluate(runs_of(pool), measures=given.measures) for each in (given, kept)]
    assert differing(*found) == set()


def test_a_file_of_an_earlier_version_is_read_without() -> None:
    """Its runs are estimated by an outlook of their own."""
    _, given = round_of("poisson")
    members = raw_members(written(given))
    del members[OUTLOOK]
    found, problems = read(packed(members))
    assert isinstance(found, RoundCollection), problems.errors
    assert found.outlook is None
    assert [each.design.belief for each in found.parts] == [None]
    now = found.evaluate({"late": lists(7)}, measures=given.measures)
    before = reread(given).evaluate({"late": lists(7)}, measures=given.measures)
    assert {"expected"} <= differing(before, now)
    assert not {"value", "covariance"} & differing(before, now)
    assert raw_members(written(found)) == members


def test_rounds_may_have_believed_nothing() -> None:
    """They were drawn by a version that did not keep it."""
    _, given = round_of("poisson", "stu")
    first_part = given.parts[0]
    parts = (
        replace(first_part, design=replace(first_part.design, belief=None)),
        *given.parts[1:],
    )
    without_first = replace(given, drawn=RoundsTogether(parts))
    assert_read_back(without_first)
    header = member(written(without_first), OUTLOOK).decode().splitlines()[0]
    assert header == "topic\tdocno\tbelief_2\tbelief_3\treach_1\treach_2\treach_3"
    nothing = [replace(each, design=replace(each.design, belief=None)) for each in given.parts]
    found = reread(replace(given, drawn=RoundsTogether(tuple(nothing))))
    assert [each.design.belief for each in found.parts] == [None] * 3
    assert found.outlook is not None


def test_grades_that_are_not_told_apart_have_no_column() -> None:
    _, given = round_of("poisson")
    assert given.outlook is not None
    outlook = replace(
        given.outlook, levels=given.outlook.levels[1:], reached=given.outlook.reached[1:]
    )
    found = assert_read_back(replace(given, outlook=outlook))
    assert isinstance(found, RoundCollection)
    assert found.outlook is not None
    assert found.outlook.levels.tolist() == [2, 3]


# ------------------------------------------------------------------------------------- hostile

HEADER = "topic\tdocno\tbelief_1\treach_1\treach_2\treach_3"
ROWS = rows_of(GOOD, OUTLOOK)


def header(*names: str) -> Change:
    """Other names of the columns, of which there may be fewer."""

    def change(data: bytes) -> bytes:
        rows = [row.split("\t")[: len(names) + 2] for row in data.decode().splitlines()]
        rows[0][2:] = names
        return "\n".join("\t".join(row) for row in rows).encode()

    return change


def numbers(values: str) -> Change:
    """Other ones in the third line."""
    told = [repr(float(value)) for value in values.split()]
    return line(3, lambda cells: [*cells[:2], *told])


@pytest.mark.parametrize(
    ("change", "number", "field", "message"),
    [
        (cell(3, 2, "1.5"), 3, "belief_1", "a number from 0 to 1, found '1.5'"),
        (cell(3, 2, "-0.1"), 3, "belief_1", "a number from 0 to 1, found '-0.1'"),
        (cell(3, 2, ""), 3, "belief_1", "a number from 0 to 1, found ''"),
        (cell(3, 3, "nan"), 3, "reach_1", "a number from 0 to 1, found 'nan'"),
        (cell(3, 3, "inf"), 3, "reach_1", "a number from 0 to 1, found 'inf'"),
        (cell(3, 4, "1_0"), 3, "reach_2", "a number from 0 to 1, found '1_0'"),
        (cell(3, 5, "1.0000000000000002"), 3, "reach_3", "from 0 to 1, found '1.0000000000000002'"),
        (cell(3, 5, "0." + "0" * 50), 3, "reach_3", "a number from 0 to 1, found '0.000"),
        (numbers(".5 .25 .5 .5"), 3, "reach_2", "at most 0.25, which is reach_1, found 0.5"),
        (numbers(".5 1. 0. 5e-324"), 3, "reach_3", "at most 0.0, which is reach_2, found 5e-324"),
        (cell(3, 0, "t9"), 3, "topic", "a topic of collection.json, found 't9'"),
        (cell(3, 1, "../x"), 3, "docno", "that is no path"),
        (cell(3, 1, "nobody"), 3, "docno", "a pair of pairs.tsv.gz, found docno 'nobody' of topic"),
        (line(4, lambda cells: cells[:5]), 4, "columns", "expected 6 columns"),
        (twice(2), 2 + len(ROWS), "docno", "once, found it on line 2 already"),
        (lambda data: b"", 1, "columns", "expected the header 'topic\\tdocno\\tbelief_1"),
        (header("belief_2", "reach_1"), 1, "columns", ", or a part of it"),
        (header("belief_01", "reach_1"), 1, "columns", ", or a part of it"),
        (header("belief_1", "reach_2", "reach_1"), 1, "columns", ", or a part of it"),
        (header("belief_1", "reach_1", "reach_1"), 1, "columns", ", or a part of it"),
        (header("belief_1", "reach_0"), 1, "columns", ", or a part of it"),
        (header("belief_1", "reach_1", "reach_4"), 1, "columns", ", or a part of it"),
        (header("reach_1", "belief_1"), 1, "columns", ", or a part of it"),
        (header(), 1, "columns", "expected one of the columns belief_1 to reach_3, found none"),
    ],
)
def test_a_bad_line_is_named(change: Change, number: int, field: str, message: str) -> None:
    assert member(GOOD, OUTLOOK).decode().startswith(HEADER + "\n")
    file, at, where, told = first(repacked(GOOD, OUTLOOK, change))
    assert (file, at, where) == (f"c.zip/{OUTLOOK}", number, field)
    assert message in told


def test_every_pair_that_could_be_drawn_is_there() -> None:
    topic, docno, *_ = ROWS[3]
    told = f"expected docno {docno!r} of topic {topic!r} in {OUTLOOK} as well, found nothing"
    for content in (GOOD, of_rounds.GOOD):
        key = rows_of(content, PAIRS)[3][:2]
        at = 2 + [row[:2] for row in rows_of(content, OUTLOOK)].index(key)
        found = first(repacked(content, OUTLOOK, without(at)))
        assert found == (f"c.zip/{PAIRS}", 5, "docno", told)
    assert "in outlook.tsv.gz as well" in first(repacked(GOOD, OUTLOOK, header_alone))[3]


def test_no_other_pair_is_there() -> None:
    content = of_rounds.GOOD
    topic, docno = rows_of(content, INELIGIBLE)[0]
    more = with_row(topic, docno, *["0.5"] * 6)
    file, _, field, message = first(repacked(content, OUTLOOK, more))
    assert (file, field) == (f"c.zip/{OUTLOOK}", "docno")
    assert message == f"expected a pair of {PAIRS}, found docno {docno!r} of topic {topic!r}"


def test_of_preferences_both_documents_are_named() -> None:
    content = of_preferences.GOOD
    topic, docno, *_ = rows_of(content, OUTLOOK)[0]
    message = first(repacked(content, OUTLOOK, cell(2, 2, "zzz")))[3]
    told = f"documents {docno!r} and 'zzz' of topic {topic!r}"
    assert message == f"expected a pair of {PAIRS}, found {told}"


def test_many_columns_have_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is read, and no more is written."""
    _, given = round_of("poisson")
    levels = np.arange(1, 21)
    reach = np.repeat(np.linspace(0.9, 0.1, 20)[:, None], len(given), axis=1)
    fine = replace(given, max_grade=20, outlook=KnownOutlook(levels, reach))
    content = written(fine)
    assert 19 < len(rows_of(content, OUTLOOK)) <= len(rows_of(content, PAIRS)) < 100
    refused = first_with(monkeypatch, (tables, "MAX_ROWS", 100), content)
    assert refused == (f"c.zip/{OUTLOOK}", "", "expected at most 19 rows, found more")
    monkeypatch.setattr(tables, "MAX_ROWS", 100)
    with pytest.raises(
        TooLargeError, match="at most 19 rows, with topic, docno, belief_1, reach_1"
    ):
        written(fine)
    assert read(written(given))[1].ok


def test_a_file_that_is_lost_from_the_list_is_missed() -> None:
    """One bit is enough: a long comment of one entry takes the place of the next."""
    content = bytearray(GOOD)
    at = content.rindex(b"PK\x01\x02", 0, content.rindex(b"judgments.tsv.gz"))
    content[at + 33] ^= 8
    _, _, _, message = first(bytes(content))
    assert message == "expected a zip file of 6 files, as it says, found 5"
