"""Numbers as text, many at once: what Python writes for each of them."""

import numpy as np
import pytest

from estimation.services import exact

RNG = np.random.default_rng(1)
LIMITS = np.finfo(np.float64)
SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 0.1, np.inf, -np.inf, np.nan, -np.nan, LIMITS.max, LIMITS.min,
    LIMITS.tiny, -LIMITS.tiny, LIMITS.smallest_subnormal, 3 * LIMITS.smallest_subnormal,
]  # fmt: skip
NUMBERS = {
    "special": np.array(SPECIAL),
    "any bits": RNG.integers(0, 2**64, 5000, dtype=np.uint64).view(np.float64),
    "usual": RNG.normal(size=5000),
    "zeros": np.zeros(10),
    "of two columns": RNG.normal(size=(40, 30)).T[::2],
    "whole": np.arange(-5, 200),
    "of eight bits": np.arange(-128, 128, dtype=np.int8),
    "verdicts": RNG.integers(-1, 2, (40, 30), dtype=np.int8).T,
    "yes and no": np.array([True, False]),
    "none": np.zeros(0),
}


@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
def test_floats_are_written_as_python_writes_them(numbers: np.ndarray) -> None:
    expected = " ".join(float(number).hex() for number in numbers.ravel().tolist())
    assert exact.hexadecimal(numbers) == expected.encode()


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
