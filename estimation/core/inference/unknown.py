"""What a sample does not tell: values and differences that are not known, and why.

A value or a difference about which the judged pairs say next to nothing is *unknown*: it is shown
without a point, gives no verdict and narrows no possible rank. Why it is unknown is a `Reason`.
"""

from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

MOST_DOUBT = 0.5  # a standard error, as a share of a value


class Reason(IntEnum):
    """Why a value or a difference is not known; `KNOWN` if it is."""

    KNOWN = 0
    TOO_LITTLE = 1  # the judged pairs say too little about it
    FEW_RELEVANT = 2  # ratio measures: too few relevant documents were found in the topics


Reasons: TypeAlias = NDArray[np.int8]  # of `Reason`, in the shape of what they are about


def all_known(*shape: int) -> Reasons:
    """Return that everything is known."""
    return np.full(shape, Reason.KNOWN, dtype=np.int8)


def none_known(runs: int, reason: Reason) -> Reasons:
    """Return that no difference between two runs is known, and why, shape (runs, runs)."""
    apart = ~np.eye(runs, dtype=np.bool_)
    return np.where(apart, np.int8(reason), all_known(runs, runs))


def name_of(reason: int) -> str | None:
    """Return what a reason is called in answers, tables and files; None if it is known."""
    return Reason(reason).name.lower() if reason else None
