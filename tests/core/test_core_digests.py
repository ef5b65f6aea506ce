"""Digests of arrays are those of what they hold now."""

import numpy as np

from estimation.core.arrays import array_digest, frozen


def test_a_frozen_array_has_the_digest_of_its_numbers_however_often() -> None:
    numbers = np.arange(1000.0)
    told = [array_digest(frozen(numbers)) for _ in range(3)]
    kept = frozen(numbers)
    assert told == [array_digest(kept)] * 3 == [array_digest(numbers)] * 3
    assert array_digest(frozen(numbers[1:])) != told[0]


def test_an_array_that_can_change_is_looked_at_each_time() -> None:
    numbers = np.arange(1000.0)
    before = array_digest(numbers)
    numbers[7] = -1.0
    assert array_digest(numbers) != before
    numbers[7] = 7.0
    assert array_digest(numbers) == before


def test_digests_of_arrays_that_are_gone_are_of_no_other() -> None:
    """An array may stand where another one stood."""
    told = {array_digest(frozen(np.full(1000, number))) for number in range(50)}
    assert len(told) == 50
