"""What a sample tells of values and differences, and what it does not.

What the sample says next to nothing about is *unknown* (`Reason`): a value whose standard error, as
the prior has it, is a large share of what is usual (`Unseen.doubt`); a difference whose expected
standard error is a large share of the mean of the two values as they are expected, unless it is
certain: unless no pair in which the two runs differ could have been missed.

What was found has no part in this, or next to none (a model of grades has). What is hidden by what
was found leaves the lucky ones: as long as a difference was hidden where few finds carried it or
the estimated values were low, one in ten of those that a round was not made for was shown, and
their intervals held .85 to .90 times. So a difference that fewer than `LEAST_FINDS` finds carry is
told with its interval, and gives no verdict.

Of a run that has all its weight on pairs out of reach the sample says nothing: its value is 0
whatever they are. Neither is known then how it differs from another run, unless they differ in no
pair out of reach, or a verdict holds whatever the grades of these are (`slack`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .intervals import ROUNDING, difference_variances
from .uncertainty import variances, variances_of_differences
from .unknown import MOST_DOUBT, Reason, Reasons, all_known

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..arrays import BoolArray, FloatArray
    from .uncertainty import Pooled

LEAST_FINDS = 4.0


def unknown_values(doubt: FloatArray) -> Reasons:
    """Say which values are unknown, shape (k,), from `Unseen.doubt`."""
    return np.where(doubt > MOST_DOUBT, np.int8(Reason.TOO_LITTLE), all_known(len(doubt)))


def unknown_differences(usual: FloatArray, covariance: FloatArray, expected: FloatArray) -> Reasons:
    """Say which differences are unknown, shape (k, k), beside the usual values, (k,)."""
    mean = np.add.outer(usual, usual) / 2.0
    spread = np.sqrt(difference_variances(expected)) > MOST_DOUBT * mean
    unknown = _if_uncertain(spread, covariance, expected)
    return np.where(unknown, np.int8(Reason.TOO_LITTLE), all_known(*unknown.shape))


def few_finds(finds: FloatArray, covariance: FloatArray, expected: FloatArray) -> BoolArray:
    """Say which uncertain differences too few finds carry for a verdict, shape (k, k)."""
    return _if_uncertain(finds < LEAST_FINDS, covariance, expected)


def unvaried_differences(covariance: FloatArray, pooled: Pooled) -> Reasons:
    """Say which differences are unknown, (k, k), from topics: those that vary between none of them.

    As long as nothing was found all are 0, and in two topics all may be the same by chance; then
    neither their squares nor other runs tell how they vary. They are known of runs whose lists are
    the same.
    """
    vary = _uncertain(covariance, pooled.covariance, pooled.freedom)
    unlike = _uncertain(pooled.apart, None)
    return np.where(unlike & ~vary, np.int8(Reason.TOO_LITTLE), all_known(*covariance.shape))


def unreached_runs(support: FloatArray) -> BoolArray:
    """Say of which runs nothing could be sampled, shape (k,), from `OutOfReach.support`."""
    return np.asarray(support <= ROUNDING, dtype=np.bool_)


def unreached_differences(
    unreached: BoolArray, slack: FloatArray, verdicts: NDArray[np.int8], *, most: FloatArray
) -> BoolArray:
    """Say which differences from such runs are not known, shape (k, k), symmetric.

    `most` is what pairs out of reach can add to each value, (k,): `slack` has the rounding of it.
    """
    apart = np.maximum(slack, slack.T) > 2.0 * ROUNDING * np.add.outer(most, most)
    unknown = np.logical_or.outer(unreached, unreached) & apart & (verdicts == 0)
    return np.asarray(unknown, dtype=np.bool_)


def _if_uncertain(
    differences: BoolArray, covariance: FloatArray, expected: FloatArray
) -> BoolArray:
    """Those of some differences, (k, k), in which a pair may have been missed."""
    return differences & _uncertain(covariance, expected) if differences.any() else differences


def _uncertain(
    covariance: FloatArray, expected: FloatArray | None, freedom: float | None = None
) -> BoolArray:
    """In which differences a pair may have been missed, (k, k)."""
    variance = variances_of_differences(covariance, expected, freedom=freedom)
    single = variances(covariance, expected, freedom=freedom)
    uncertain = variance > 2.0 * ROUNDING * np.add.outer(single, single)
    np.fill_diagonal(uncertain, False)
    return np.asarray(uncertain, dtype=np.bool_)
