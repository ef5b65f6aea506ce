"""Whole numbers as text, many at once: what Python writes for each of them."""

import numpy as np
import pytest

from estimation.services import exact


@pytest.mark.parametrize(
    "numbers", [[0], [7, 0, 10, 99, 100, 10**12], [0, 0, 0], list(range(1200))]
)
def test_whole_numbers_and_what_follows_them(numbers: list[int]) -> None:
    endings = ["; ", "", ", longer than others\n"]
    which = np.arange(len(numbers)) % 3
    expected = "".join(f"{number}{endings[at]}" for number, at in zip(numbers, which, strict=True))
    assert exact.counted(np.array(numbers), endings, which) == expected.encode()


def test_of_none_there_is_nothing() -> None:
    assert exact.counted(np.zeros(0, dtype=np.int64), ["x"], np.zeros(0, dtype=np.int64)) == b""
