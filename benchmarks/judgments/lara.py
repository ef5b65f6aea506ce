"""Judging with a language model's help: LARA of Takehi, Voorhees, Sakai and Soboroff (SIGIR 2025).

People judge the pairs of which the machine, calibrated by what was judged so far, is least sure: of
which the two most likely grades are most nearly as likely. After every 32 judgments (100 times at
most) the calibration learns. In the end every other pair has its most likely grade, as if it had
been judged; kinder to values is the gain that is expected of it.

The calibration is the published one, a logistic curve of the machine's grade for each threshold of
the scale, but fitted by Newton's method to all judgments instead of one step of descent for the
last ones. It begins with believing the machine, which `BELIEF` judgments' worth of penalty recalls.
"""

import numpy as np
from scipy import special

from estimation.core.arrays import FloatArray, IntArray

BATCH = 32  # judgments, as published
STEEP = 4.0  # of the curve before any judgment: half a grade away from a threshold it says .88
BELIEF = 1.0
REFITS = 100
TIES = 1e-9  # of what the machine is sure of: below it random numbers decide
STEPS = 4  # of Newton's method, from where it was


def lara_chances(
    machine: FloatArray,
    grades: IntArray,
    *,
    max_grade: int,
    budget: int,
    numbers: FloatArray,
) -> tuple[IntArray, FloatArray]:
    """Return the pairs that are judged, ascending, and how likely every pair has which grade.

    Parameters
    ----------
    machine : ndarray of float64, shape (N,)
    grades : ndarray of int64, shape (N,)
        True grades. Only those of judged pairs have a part.
    numbers : ndarray of float64, shape (N,)
        Random numbers, which order pairs of which the machine is equally sure.

    Returns
    -------
    ndarray of int64, shape (n,)
    ndarray of float64, shape (N, grades)
        Of judged pairs 1 for the grade that they were given.
    """
    judged = np.zeros(len(machine), dtype=bool)
    curves = np.array([[-STEEP * (each - 0.5), STEEP] for each in range(1, max_grade + 1)])
    believed = curves.copy()
    while (left := budget - int(judged.sum())) > 0:
        likely = np.partition(_chances(curves, machine), (-2, -1), axis=1)
        sure = likely[:, -1] - likely[:, -2] + TIES * numbers
        sure[judged] = np.inf
        many = min(left, max(BATCH, budget // REFITS))
        judged[np.argpartition(sure, many - 1)[:many]] = True
        for place, start in enumerate(believed):
            reached = (grades[judged] > place).astype(np.float64)
            curves[place] = _fitted(machine[judged], reached, believed=start, found=curves[place])
    known = np.eye(max_grade + 1)[grades]
    return np.flatnonzero(judged), np.where(judged[:, None], known, _chances(curves, machine))


def _chances(curves: FloatArray, machine: FloatArray) -> FloatArray:
    """Of each grade, shape (N, grades); reaching a grade is never likelier than a lower one."""
    reached = special.expit(curves[:, :1] + curves[:, 1:] * machine).T
    reached = np.minimum.accumulate(reached, axis=1)
    ends = np.ones((len(machine), 1))
    return -np.diff(np.concatenate([ends, reached, 0.0 * ends], axis=1), axis=1)


def _fitted(
    machine: FloatArray, reached: FloatArray, *, believed: FloatArray, found: FloatArray
) -> FloatArray:
    """Intercept and slope of a logistic curve, drawn towards those that are believed."""
    rows = np.stack([np.ones(len(machine)), machine], axis=1)
    for _ in range(STEPS):
        chance = special.expit(rows @ found)
        slope = rows.T @ (reached - chance) - BELIEF * (found - believed)
        bend = (rows * (chance * (1.0 - chance))[:, None]).T @ rows + BELIEF * np.eye(2)
        found = found + np.clip(np.linalg.solve(bend, slope), -2.0, 2.0)
    return found
