"""Orders of several keys by one sort, and whole numbers in the order of floats."""

import numpy as np
import pytest

from estimation.core.arrays import float_ranks, order_of


@pytest.mark.parametrize("most", [(1, 1), (50, 2**32), (2**40, 2**40), (2**62, 1)])
@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_one_sort_gives_the_order_of_all_keys_and_keeps_that_of_equal_ones(
    count: int, most: tuple[int, int]
) -> None:
    rng = np.random.default_rng(count)
    keys = [np.minimum(rng.integers(0, limit, count), rng.integers(0, 2**62)) for limit in most]
    keys = [np.repeat(key[::2], 2)[:count] if count else key for key in keys]
    np.testing.assert_array_equal(order_of(*keys), np.lexsort(keys))


def test_the_largest_numbers_leave_room_for_the_sign() -> None:
    keys = np.array([2**61 - 1, 0, 2**61 - 1]), np.array([0, 0, 0])
    assert order_of(*keys).tolist() == [1, 0, 2]
    assert order_of(np.array([2**62 + 1, 2**62, 5])).tolist() == [2, 1, 0]


def test_whole_numbers_stand_in_the_order_of_floats() -> None:
    ordered = np.array(
        [-np.inf, -3e38, -1.5, -1.0, -1e-45, 0.0, 1e-45, 1e-38, 1.0, np.nextafter(1, 2), np.inf],
        dtype=np.float32,
    )
    ordered = np.unique(ordered)
    ranks = float_ranks(ordered)
    assert np.all(np.diff(ranks) > 0)
    assert ranks[0] == 0
    assert ranks[-1] < 2**32
    assert float_ranks(np.array([-0.0, 0.0], dtype=np.float32)).tolist() == [0x7F800000] * 2
