"""Tiers: groups of runs between which the order is decided, and inside which it is not.

A *cut* is a set of runs of which every one is surely better than every run outside of it. Of two
cuts one holds the other: were a in the first alone and b in the second alone, a would be surely
better than b and b than a. So the cuts stand in a row, and tiers are what lies between one and the
next. They are the finest division of the runs into groups in a row such that whichever two runs of
different groups one takes, the order of their groups is a verdict.

Nothing but verdicts has a part in it: not the values, so that no run is above another by chance,
and not the order of the runs. Verdicts need not be transitive, as the difference of two runs may be
known better than that of two others which is larger. Runs hang together in a tier where a chain of
open comparisons leads from one to the other *or* verdicts go in a circle; two runs of one tier may
well have a verdict, which stands among the pairs.

Every order between tiers is a verdict on each pair of runs that it is about. So where all verdicts
hold at once with some confidence, at one look or at all of them, the tiers do, with the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..arrays import BoolArray, IntArray


def tiers(verdicts: NDArray[np.int8], among: BoolArray) -> IntArray:
    """Divide runs into tiers; see the module's text.

    Parameters
    ----------
    verdicts : ndarray of int8, shape (k, k)
        As `Ranking.verdicts`: 1 where the row's run is surely better than the column's.
    among : ndarray of bool, shape (k,)
        The runs that are divided: those whose value is known. A run of which too little is known
        has a verdict on nobody, and would hold all others together.

    Returns
    -------
    ndarray of int64, shape (k,)
        Number of each run's tier, 1 the best; 0 for runs that are not divided.

    Examples
    --------
    >>> first_beats_both = np.array([[0, 1, 1], [-1, 0, 0], [-1, 0, 0]], dtype=np.int8)
    >>> tiers(first_beats_both, np.ones(3, dtype=bool))
    array([1, 2, 2])
    """
    runs = np.flatnonzero(among)
    number = np.zeros(len(among), dtype=np.int64)
    if not len(runs):
        return number
    better = verdicts[np.ix_(runs, runs)] == 1
    # A run of a cut of r wins at least m - r times and one outside fewer: by wins, cuts come first.
    order = np.argsort(-np.count_nonzero(better, axis=1), kind="stable")
    behind = ~better[np.ix_(order, order)]  # nobody is better than itself
    last = len(runs) - np.argmax(behind[:, ::-1], axis=1)  # beyond it a run beats all others
    within = np.maximum.accumulate(last)
    begins = np.append(0, within[:-1]) <= np.arange(len(runs))
    number[runs[order]] = np.cumsum(begins)
    return number


def places(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first and the last place of each run's tier; 0 for runs that are in none.

    Parameters
    ----------
    numbers : ndarray of int64, shape (k,)
        From `tiers`.

    Examples
    --------
    >>> places(np.array([1, 2, 2, 0]))
    (array([1, 2, 2, 0]), array([1, 3, 3, 0]))
    """
    size = np.bincount(numbers)
    size[0] = 0
    last = np.cumsum(size)
    return (last - size + (size > 0))[numbers], last[numbers]
