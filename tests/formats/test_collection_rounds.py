"""Collections of several rounds as files: every check holds for every round."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.sampling.draws import draw
from estimation.core.sampling.methods import OF_PAIRS as METHODS
from estimation.formats.collections import pairs
from estimation.formats.collections.archive import DRAWS, FACTS, JUDGMENTS
from estimation.formats.collections.outlooks import OUTLOOK
from estimation.formats.collections.pairs import INELIGIBLE, PAIRS
from tests.formats.collection_files import (
    assert_read_back,
    cell,
    first,
    first_with,
    line,
    member,
    of_round,
    read,
    repacked,
    written,
)
from tests.formats.test_collections import collected, part, pooled


def of_three(method: str = "poisson") -> RoundCollection:
    """Rounds with unlike eligible pairs, of 2, 2 and 1 batches.

    The first and the last share their random numbers, unless pairs are drawn again.
    """
    pool = pooled()
    parts = [
        part(pool, method, "a"),
        part(pool, method, "b", budget=9, batch_size=3, reported=[]),
        part(pool, method, "a" if method == "poisson" else "c", budget=12, batch_size=12),
    ]
    narrow = parts[1].design.size * (pool.topic < 2)
    design = replace(parts[1].design, size=narrow / narrow.sum())
    parts[1] = replace(parts[1], design=design, sample=draw(pool, design, seed="b"))
    return collected(pool, parts, seeds=[None, "b", None])


GOOD = written(of_three())
GOOD_IID = written(of_three("iid"))
Rows = list[list[str]]


def rows(content: bytes, name: str) -> Rows:
    return [row.split("\t") for row in member(content, name).decode().splitlines()]


def edited(content: bytes, name: str, change: Callable[[Rows], Rows]) -> bytes:
    def changed(data: bytes) -> bytes:
        cells = [row.split("\t") for row in data.decode().splitlines()]
        return "\n".join("\t".join(row) for row in change(cells)).encode()

    return repacked(content, name, changed)


def number_of(content: bytes, name: str, number: int) -> int:
    """The line of the first row of a round."""
    return 1 + next(at for at, row in enumerate(rows(content, name)) if row[2] == str(number))


@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_what_is_written_is_read_back_to_the_bit(method: str) -> None:
    found = assert_read_back(of_three(method))
    assert isinstance(found, RoundCollection)
    assert [len(each.sample) > 0 for each in found.parts] == [True] * 3


def test_what_is_told_of_rounds() -> None:
    facts = json.loads(member(GOOD, FACTS))
    assert "seed" not in facts
    told = facts["rounds"]
    assert [each["numbers"] for each in told] == [1, 2, 1]
    assert [each["seed"] for each in told] == [None, "b", None]
    assert [len(each["steps"]) for each in told] == [2, 2, 1]
    assert [each["numbers"] for each in json.loads(member(GOOD_IID, FACTS))["rounds"]] == [1, 2, 3]
    found = rows(GOOD, PAIRS)[1:]
    assert [row[2] for row in found] == sorted(row[2] for row in found)
    for number in "123":
        keys = [(row[0], row[1].encode()) for row in found if row[2] == number]
        assert keys == sorted(keys)
    narrow = {(row[0], row[1]) for row in found if row[2] == "2"}
    assert narrow < {(row[0], row[1]) for row in found if row[2] == "1"}


def test_rows_may_come_in_any_order() -> None:
    rng = np.random.default_rng(5)

    def shuffled(cells: Rows) -> Rows:
        return [cells[0], *(cells[1 + at] for at in rng.permutation(len(cells) - 1))]

    for content in (GOOD, GOOD_IID):
        mixed = content
        for name in (PAIRS, INELIGIBLE, DRAWS, JUDGMENTS, OUTLOOK):
            mixed = edited(mixed, name, shuffled)
        found, problems = read(mixed)
        assert problems.errors == []
        assert found is not None
        assert written(found) == content


# ---------------------------------------------------------------------------------- hostile


@pytest.mark.parametrize(
    ("name", "column", "value", "field", "message"),
    [
        (PAIRS, 2, "0", "round", "a whole number from 1 to 3, found '0'"),
        (PAIRS, 2, "4", "round", "a whole number from 1 to 3, found '4'"),
        (PAIRS, 2, "x", "round", "a whole number from 1 to 3, found 'x'"),
        (PAIRS, 4, "0.9", "probability", "which follows from the size, found 0.9"),
        (DRAWS, 2, "4", "round", "a whole number from 1 to 3, found '4'"),
        (DRAWS, 3, "3", "batch", "a whole number from 1 to 2, found '3'"),
        (DRAWS, 4, "2", "count", "a whole number from 1 to 1, found '2'"),
    ],
)
def test_a_bad_line_is_named(name: str, column: int, value: str, field: str, message: str) -> None:
    for number in (1, 2, 3):
        at = number_of(GOOD, name, number)
        file, found_at, where, told = first(repacked(GOOD, name, cell(at, column, value)))
        assert (file, found_at, where) == (f"c.zip/{name}", at, field)
        assert message in told


def test_batches_are_those_of_the_round() -> None:
    """Other rounds have two."""
    at = number_of(GOOD, DRAWS, 3)
    _, found_at, field, message = first(repacked(GOOD, DRAWS, cell(at, 3, "2")))
    assert (found_at, field) == (at, "batch")
    assert message == "expected a batch from 1 to 1 in round 3, found 2"


def test_a_pair_is_drawn_in_a_round_that_could() -> None:
    """Topic t3 is not eligible in round 2, but in the others."""
    drawn = next(row for row in rows(GOOD, DRAWS)[1:] if row[:1] == ["t3"])
    at = number_of(GOOD, DRAWS, 2)
    change = line(at, lambda cells: [*drawn[:2], *cells[2:]])
    _, found_at, field, message = first(repacked(GOOD, DRAWS, change))
    assert (found_at, field) == (at, "docno")
    assert f"docno {drawn[1]!r} of topic 't3' in round 2" in message


def test_a_pair_is_drawn_once_in_a_round_and_may_be_in_others() -> None:
    keys = [tuple(row[:2]) for row in rows(GOOD, DRAWS)[1:]]
    assert len(set(keys)) < len(keys)
    for number in (1, 2, 3):
        at = number_of(GOOD, DRAWS, number) - 1
        again = edited(GOOD, DRAWS, lambda cells, at=at: [*cells, cells[at]])
        _, _, field, message = first(again)
        assert field == "docno"
        assert f"once, found it on line {at + 1} already" in message


def test_a_pair_has_one_size_in_a_round_and_is_not_ineligible_as_well() -> None:
    at = number_of(GOOD, PAIRS, 2) - 1
    twice = edited(GOOD, PAIRS, lambda cells: [*cells, cells[at]])
    assert f"once, found it on line {at + 1} already" in first(twice)[3]
    never = edited(GOOD, INELIGIBLE, lambda cells: [*cells, rows(GOOD, PAIRS)[at][:2]])
    file, _, _, message = first(never)
    assert file == f"c.zip/{INELIGIBLE}"
    assert "of pairs.tsv.gz already" in message


def test_a_lost_row_is_missed_in_the_sizes_of_its_round() -> None:
    for number in (1, 2, 3):
        drawn = {tuple(row[:2]) for row in rows(GOOD, DRAWS) if row[2] == str(number)}
        at = next(
            at
            for at, row in enumerate(rows(GOOD, PAIRS))
            if row[2] == str(number) and tuple(row[:2]) not in drawn
        )
        shorter = edited(GOOD, PAIRS, lambda cells, at=at: cells[:at] + cells[at + 1 :])
        assert "the sizes of all pairs must make up a whole" in first(shorter)[3]


def test_a_round_without_pairs_is_refused() -> None:
    def without(name: str, content: bytes) -> bytes:
        return edited(content, name, lambda cells: [row for row in cells if row[2] != "3"])

    assert "make up a whole, not 0.0" in first(without(DRAWS, without(PAIRS, GOOD)))[3]


def test_draws_are_as_many_as_the_steps_of_their_round_say() -> None:
    at = number_of(GOOD_IID, DRAWS, 2)
    _, _, field, message = first(repacked(GOOD_IID, DRAWS, cell(at, 4, "9")))
    assert field == "count"
    assert message.startswith("expected 3 draws in batch 1 of round 2, found")


def test_a_judged_pair_is_one_that_some_round_drew() -> None:
    drawn = {tuple(row[:2]) for row in rows(GOOD, DRAWS)}
    judged = {tuple(row[:2]) for row in rows(GOOD, JUDGMENTS)}
    assert judged == drawn
    topic, docno = next(row[:2] for row in rows(GOOD, PAIRS)[1:] if tuple(row[:2]) not in drawn)
    change = line(2, lambda cells: [topic, docno, *cells[2:]])
    _, at, _, message = first(repacked(GOOD, JUDGMENTS, change))
    assert at == 2
    assert message == f"expected a pair of {DRAWS}, found docno {docno!r} of topic {topic!r}"


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_sampled_pair_of_any_round_needs_a_judgment(lost: int) -> None:
    at = number_of(GOOD, DRAWS, lost)
    key = rows(GOOD, DRAWS)[at - 1][:2]
    shorter = edited(GOOD, JUDGMENTS, lambda cells: [row for row in cells if row[:2] != key])
    file, _, _, message = first(shorter)
    assert file == f"c.zip/{DRAWS}"
    assert f"a judgment of docno {key[1]!r}" in message


@pytest.mark.parametrize(
    ("number", "field", "value", "message"),
    [
        (2, "method", "guess", f"one of {', '.join(METHODS)}, found 'guess'"),
        (2, "steps", [5, 4], "steps that never fall"),
        (3, "numbers", 1001, "a whole number from 1 to 1000"),
        (3, "numbers", 1.0, "a whole number from 1 to 1000"),
        (2, "seed", ["b"], "null or a short text"),
        (3, "extra", 1, "expected no such field"),
    ],
)
def test_a_bad_fact_is_named_with_its_round(
    number: int, field: str, value: object, message: str
) -> None:
    file, _, where, told = first(repacked(GOOD, FACTS, of_round(number, field, value)))
    assert (file, where.replace("'", "")) == (f"c.zip/{FACTS}", f"round {number}: {field}")
    assert message in told


@pytest.mark.parametrize(
    ("number", "field", "value", "message"),
    [
        (2, "method", "priority", "several rounds must all be by poisson or all by iid, not"),
        (2, "numbers", 3, "numbers must count up from 1 as they come, not 1, 3, 1"),
        (1, "numbers", 2, "numbers must count up from 1 as they come, not 2, 2, 1"),
        (2, "numbers", 1, "rounds 1, 2, 3 share their numbers and so must have one seed"),
        (1, "seed", "a", "rounds 1, 3 share their numbers and so must have one seed"),
        (3, "numbers", 3, ""),
    ],
)
def test_what_is_said_of_rounds_must_fit(
    number: int, field: str, value: object, message: str
) -> None:
    """That rounds share their numbers can be kept back: nothing in the file contradicts it."""
    found, problems = read(repacked(GOOD, FACTS, of_round(number, field, value)))
    assert (found is None) is bool(message)
    assert [message in problem.message for problem in problems.errors] == [True] * bool(message)


def test_samples_must_agree_with_shared_numbers() -> None:
    """Round 2 has numbers of its own; said to have those of the others, it contradicts them."""
    claimed = repacked(GOOD, FACTS, of_round(2, "numbers", 1))
    claimed = repacked(claimed, FACTS, of_round(2, "seed", None))
    assert "rounds 1, 2, 3 do not share their numbers" in first(claimed)[3]


def test_methods_must_be_alike() -> None:
    poisson = [round(step, 3) for step in of_three().parts[1].design.steps.tolist()]
    mixed = repacked(GOOD_IID, FACTS, of_round(2, "method", "poisson"))
    mixed = repacked(mixed, FACTS, of_round(2, "steps", poisson))
    found, problems = read(mixed)
    assert found is None
    assert problems.errors


def test_sizes_and_rounds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    number = len(of_three())
    _, _, message = first_with(monkeypatch, (pairs, "MAX_SIZES", 3 * number - 1), GOOD)
    assert message == (
        f"expected at most {3 * number - 1} pairs times rounds, found {number} times 3"
    )
    assert max(draws_in_rounds(GOOD_IID)) < 20 < sum(draws_in_rounds(GOOD_IID))
    _, _, message = first_with(monkeypatch, (pairs, "MAX_DRAWS", 20), GOOD_IID)
    assert message == "expected at most 20 draws, found more"


def draws_in_rounds(content: bytes) -> list[int]:
    found = rows(content, DRAWS)[1:]
    return [sum(int(row[4]) for row in found if row[2] == number) for number in "123"]
