"""Judged collections of preferences as files: two documents in every row."""

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.measures.kinds import PREFERENCE_MAX_GRADE
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.methods import OF_PAIRS as METHODS
from estimation.core.sampling.priors import make_prior
from estimation.formats.collections import pair_facts
from estimation.formats.collections.archive import DRAWS, FACTS, JUDGMENTS, TooLargeError
from estimation.formats.collections.outlooks import OUTLOOK
from estimation.formats.collections.pairs import PAIRS
from tests.core.collecting import publish
from tests.formats.collection_files import (
    Change,
    assert_read_back,
    cell,
    fact,
    facts_of,
    first,
    member,
    of_round,
    repacked,
    rows_of,
    written,
)
from tests.formats.test_collections import lists

MEASURE = parse_measure("wSwaps")


def pooled() -> Pool:
    documents = build_pool(
        [f"t{n}" for n in range(5)], {f"r{n}": lists(n) for n in range(3)}, depth=4
    )
    return preference_pool(documents, depth=4)


def collection(method: str = "poisson", seeds: str = "s") -> RoundCollection:
    """Of so many rounds."""
    pool, parts = pooled(), []
    goal = goals.absolute("r0", "r1")
    prior = make_prior(pool, name="constant", goal=goal, measure=MEASURE, max_grade=2)
    for seed in seeds:
        design = make_design(
            pool, goal=goal, measure=MEASURE, prior=prior, method=method, budget=24, batch_size=12,
            reported=[parse_measure("#ofSwaps")], max_grade=PREFERENCE_MAX_GRADE, floor=0.0,
        )  # fmt: skip
        parts.append(PairRound(design, draw(pool, design, seed=seed), numbers=seed))
    pairs = np.repeat(np.unique(np.concatenate([part.sample.pair for part in parts])), 2)
    labels = LabelRows(pairs, np.random.default_rng(1).integers(0, 3, len(pairs)))
    return publish(
        pool, parts, labels=labels, max_grade=PREFERENCE_MAX_GRADE, version="0.1", seeds=seeds
    )


GOOD = written(collection())


@pytest.mark.parametrize("method", METHODS)
def test_what_is_written_is_read_back_to_the_bit(method: str) -> None:
    assert_read_back(collection(method))


def test_rounds_that_go_together_are_read_back() -> None:
    assert_read_back(collection(seeds="st"))


def test_every_row_names_two_documents() -> None:
    assert facts_of(GOOD)["format"] == "evalsite-preference-collection-1"
    assert facts_of(GOOD)["max_grade"] == 2
    assert member(GOOD, JUDGMENTS).decode().startswith("topic\tdocno\tother\tgrade\n")
    for row in rows_of(GOOD, PAIRS):
        assert row[1].encode() < row[2].encode()


# ----------------------------------------------------------------------------------- spoilt


@pytest.mark.parametrize(
    ("change", "field", "told"),
    [
        (fact("depth", 1), "depth", "a whole number from 2 to 200 for preferences, found 1"),
        (fact("depth", 201), "depth", "a whole number from 2 to 200 for preferences, found 201"),
        (fact("format", pair_facts.FORMAT), "round 1: measure",
         "a measure of documents, which the format says, found wSwaps"),
        (of_round(1, "reported", ["P@5"]), "round 1: measure",
         "a measure of preferences, which the format says, found P@5"),
    ],
)  # fmt: skip
def test_a_fact_that_does_not_go_with_preferences_is_named(
    change: Change, field: str, told: str
) -> None:
    file, _, where, message = first(repacked(GOOD, FACTS, change))
    assert (file, where, message) == (f"c.zip/{FACTS}", field, f"expected {told}")


def test_grades_are_those_of_preferences() -> None:
    message = first(repacked(GOOD, FACTS, fact("max_grade", 1)))[3]
    assert message in {
        "expected a whole number from 0 to 1, found '2'",
        "max_grade of preferences must be 2, not 1",
    }
    assert first(repacked(GOOD, FACTS, fact("max_grade", 3)))[3] == (
        "max_grade of preferences must be 2, not 3"
    )


def test_a_bad_docno_is_named_by_its_column() -> None:
    for column, field in ((1, "docno"), (2, "other")):
        file, line, where, message = first(repacked(GOOD, DRAWS, cell(2, column, "a b")))
        assert (file, line, where) == (f"c.zip/{DRAWS}", 2, field)
        assert "white space" in message


def test_the_other_document_comes_later() -> None:
    topic, docno, other, *_ = rows_of(GOOD, PAIRS)[0]
    turned = repacked(GOOD, PAIRS, cell(2, 1, other))
    for name in (PAIRS, DRAWS, JUDGMENTS, OUTLOOK):
        for number, row in enumerate(rows_of(turned, name), start=2):
            if row[0] == topic and row[2] == other and row[1] in (docno, other):
                turned = repacked(turned, name, cell(number, 1, other))
    assert "must be judged together, the first in byte order first" in first(turned)[3]


def test_a_pair_that_was_not_drawn_is_named_by_both_documents() -> None:
    topic, docno, *_ = rows_of(GOOD, JUDGMENTS)[0]
    file, line, field, message = first(repacked(GOOD, JUDGMENTS, cell(2, 2, "zzz")))
    assert (file, line, field) == (f"c.zip/{JUDGMENTS}", 2, "docno")
    assert message == (
        f"expected a pair of {DRAWS}, found documents {docno!r} and 'zzz' of topic {topic!r}"
    )


def test_lists_too_deep_for_a_reader_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    given = collection()
    monkeypatch.setattr(pair_facts, "MAX_PREFERENCE_DEPTH", 3)
    with pytest.raises(TooLargeError, match="depth of at most 3"):
        written(given)
