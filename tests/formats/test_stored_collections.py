"""Files that earlier versions wrote are read, and say what they said then."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.formats.stored_collections import (
    EARLIER,
    NUMBERS,
    STORED,
    collections,
    published,
    stored,
)

CLOSE = {"rel": 1e-9, "abs": 1e-9}
EXPECTED: dict[str, Any] = json.loads(NUMBERS.read_text())


def test_every_kind_is_stored() -> None:
    assert sorted(EXPECTED) == sorted(path.stem for path in STORED.glob("*.zip"))
    assert sorted(EXPECTED) == sorted([*EARLIER, *(name for name, _ in collections())])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_numbers_are_those_that_were_published(name: str) -> None:
    assert list(differences(EXPECTED[name], published(stored(name)), name)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXPECTED.keys() - EARLIER.keys()))
def test_the_same_rounds_are_drawn_today(name: str) -> None:
    found = dict(collections())[name]
    assert list(differences(EXPECTED[name], published(found), name)) == []


@pytest.mark.slow
def test_a_number_that_moved_is_found() -> None:
    moved = json.loads(json.dumps(EXPECTED["poisson"]))
    moved["DCG@5 student"]["ht low"][2] += 1e-6
    told = list(differences(EXPECTED["poisson"], moved, "poisson"))
    assert len(told) == 1
    assert told[0].startswith("poisson / DCG@5 student / ht low / 2: ")


def differences(then: Any, now: Any, where: str) -> Iterator[str]:
    """Where two values differ by more than rounding."""
    if isinstance(then, dict) and isinstance(now, dict) and then.keys() == now.keys():
        for key in then:
            yield from differences(then[key], now[key], f"{where} / {key}")
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for at, (one, other) in enumerate(zip(then, now, strict=True)):
            yield from differences(one, other, f"{where} / {at}")
    elif isinstance(then, float) and isinstance(now, float):
        if now != pytest.approx(then, nan_ok=True, **CLOSE):
            yield f"{where}: {then} then, {now} now"
    elif then != now:
        yield f"{where}: {then!r} then, {now!r} now"
