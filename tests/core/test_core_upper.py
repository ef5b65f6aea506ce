"""What stands above the diagonal of matrices of runs: NumPy's own indexes, found once."""

import numpy as np
import pytest

from estimation.core.upper import above, every_two, mirrored


@pytest.mark.parametrize("runs", [0, 1, 2, 5, 129])
def test_numbers_above_the_diagonal_are_those_of_numpy(runs: int) -> None:
    matrix = np.arange(float(runs * runs)).reshape(runs, runs)
    first, second = np.triu_indices(runs, k=1)
    assert np.array_equal(every_two(runs), (first, second))
    for each in (matrix, matrix.T, np.asfortranarray(matrix)):
        assert np.array_equal(above(each), each[first, second])
    turned = mirrored(matrix[first, second], runs, diagonal=7.0)
    assert np.array_equal(turned, turned.T)
    assert np.array_equal(turned[first, second], matrix[first, second])
    assert np.array_equal(np.diag(turned), np.full(runs, 7.0))


def test_places_are_found_once_and_nobody_can_write_to_them() -> None:
    first, second = every_two(6)
    assert every_two(6)[0] is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 3
    numbers = above(np.ones((6, 6)))
    numbers[:] = 5.0  # what is read off is the caller's own
    assert np.array_equal(above(np.ones((6, 6))), np.ones(15))
    assert len(second) == 15
