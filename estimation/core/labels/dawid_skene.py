"""How good each rater is where nobody knows the truth: the model of Dawid and Skene (1979).

Every pair has one true grade k, with chance rho_k, and rater a says g of such a pair with chance
pi_akg, independently of the others. What was said tells all of them by expectation maximization,
which starts at the shares of the grades that each pair was given:

    T_ik  proportional to  rho_k prod over judgments (a, g) of i of pi_akg          (expectation)
    rho_k = mean of T_ik,   pi_akg proportional to s_kg + sum over a's judgments of g of T_ik

with s_kg pseudo-judgments: s for the true grade itself, and `ASTRAY` s shared out among the others.
They keep a rater who said little from being told for certain, and take people for readers until
they show otherwise: alike in all cells, they would take every grade that is rare for an error. The
likelihood (with s the posterior density) rises at every step.

The model believes in one true grade, where the estimates of evalsite are about the mean of what
assessors say: it describes raters, and no estimate uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import check_number, check_whole, column_sums, frozen

if TYPE_CHECKING:
    from ..arrays import FloatArray
    from .ratings import Ratings

TOLERANCE = 1e-9
STEPS = 2000
ASTRAY = 0.25
LEAST_CHANCE = 1e-10  # no grade is impossible, as in the reference implementations


@dataclass(frozen=True, eq=False)
class DawidSkene:
    """What the model tells.

    Attributes
    ----------
    posterior : ndarray of float64, shape (pairs, G)
        Chance of every grade to be the true one; that of any pair for one without judgments.
    prior : ndarray of float64, shape (G,)
        rho.
    confusion : ndarray of float64, shape (raters, G, G)
        pi: of each rater, the chance to say a grade (column) where another is true (row).
    log_likelihood : float
        Of the judgments, per judgment, with the pseudo-judgments' part.
    steps : int
        Until it moved by less than the tolerance.
    converged : bool
    """

    posterior: FloatArray
    prior: FloatArray
    confusion: FloatArray
    log_likelihood: float
    steps: int
    converged: bool

    @property
    def competence(self) -> FloatArray:
        """Chance of each rater to say the true grade, shape (raters,): sum_k rho_k pi_akk."""
        right = np.diagonal(self.confusion, axis1=1, axis2=2)
        return np.asarray((right * self.prior).sum(axis=1))

    @property
    def informed(self) -> FloatArray:
        """What a rater's grades tell of the true one, shape (raters,): from 0 to 1.

        The mutual information of what they say and what is true, over the entropy of what is true.
        0 for whoever answers without looking, however often that is right; somebody who is
        consistently too high tells as much as one who is not. nan where nothing is to be told.
        """
        prior = self.prior
        said = (self.confusion * prior[:, None]).sum(axis=1)
        ratio = self.confusion / np.maximum(said, LEAST_CHANCE)[:, None, :]
        logs = np.log(np.maximum(ratio, LEAST_CHANCE))
        told = (prior[:, None] * self.confusion * logs).sum(axis=(1, 2))
        entropy = -float((prior * np.log(np.maximum(prior, LEAST_CHANCE))).sum())
        if not entropy > 1e-12:
            return np.full(len(told), np.nan)
        return np.asarray(np.clip(told / entropy, 0.0, 1.0))


def dawid_skene(
    ratings: Ratings,
    *,
    pseudo: float = 0.0,
    tolerance: float = TOLERANCE,
    steps: int = STEPS,
) -> DawidSkene:
    """Fit the model; the same judgments give the same result, in whatever order they come.

    Parameters
    ----------
    ratings : Ratings
    pseudo : float
        s, at least 0.
    tolerance : float
        It ends where the log likelihood per judgment rises by less.
    steps : int
        At most so many.

    Raises
    ------
    ValueError
        Without any judgment.
    """
    check_number(pseudo, name="pseudo", least=0.0)
    check_number(tolerance, name="tolerance", least=0.0)
    check_whole(steps, name="steps")
    if not len(ratings):
        raise ValueError("there must be a judgment to learn from")
    number = ratings.counts.sum(axis=1)
    judged = number > 0
    posterior = ratings.counts / np.maximum(number, 1)[:, None]
    prior, confusion = _maximized(ratings, posterior, judged, pseudo)
    before, reached, done = -np.inf, -np.inf, 0
    while done < steps:
        done += 1
        posterior, likelihood = _expected(ratings, prior, confusion, judged)
        reached = (likelihood + _pseudo_part(confusion, pseudo)) / len(ratings)
        prior, confusion = _maximized(ratings, posterior, judged, pseudo)
        if reached - before < tolerance:
            break
        before = reached
    found = frozen(posterior), frozen(prior), frozen(confusion)
    return DawidSkene(*found, reached, done, reached - before < tolerance)


def _maximized(
    ratings: Ratings, posterior: FloatArray, judged: FloatArray, pseudo: float
) -> tuple[FloatArray, FloatArray]:
    grades, raters = ratings.grades, ratings.raters
    prior = posterior[judged].mean(axis=0)
    cells = ratings.rater * grades + ratings.grade
    columns = [
        column_sums(cells, posterior[ratings.pair, true], number=raters * grades)
        for true in range(grades)
    ]
    said = np.stack([column.reshape(raters, grades) for column in columns], axis=1)
    said = np.maximum(said + _pseudo_judgments(grades, pseudo), LEAST_CHANCE)
    return np.maximum(prior, LEAST_CHANCE), said / said.sum(axis=2, keepdims=True)


def _expected(
    ratings: Ratings, prior: FloatArray, confusion: FloatArray, judged: FloatArray
) -> tuple[FloatArray, float]:
    logs = np.log(confusion)
    columns = [
        column_sums(ratings.pair, logs[ratings.rater, true, ratings.grade], number=ratings.pairs)
        for true in range(ratings.grades)
    ]
    joint = np.stack(columns, axis=1) + np.log(prior)
    most = joint.max(axis=1)
    shares = np.exp(joint - most[:, None])
    total = shares.sum(axis=1)
    likelihood = float((most + np.log(total))[judged].sum())
    return shares / total[:, None], likelihood


def _pseudo_judgments(grades: int, pseudo: float) -> FloatArray:
    same = np.eye(grades)
    return np.asarray(pseudo * (same + (1.0 - same) * ASTRAY / (grades - 1)))


def _pseudo_part(confusion: FloatArray, pseudo: float) -> float:
    each = _pseudo_judgments(confusion.shape[1], pseudo)
    return float((each * np.log(confusion)).sum())
