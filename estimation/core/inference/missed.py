"""What is expected of relevant pairs that nobody judged, where most pairs are judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..arrays import share_of
from ..upper import above, every_two
from .intervals import difference_variances, normal_quantile
from .poisson_numbers import poisson_quantiles

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray, IntArray

MOST_MISSED = 20  # pairs; where more are, intervals are longer than any one of them counts
SOME_EXPECTED = 0.5  # pairs; where fewer are, how seldom more are missed is not known well
MOST_COUNTED = 1e9  # pairs that a difference is told in


@dataclass(frozen=True, eq=False)
class Missed:
    """What is expected of relevant pairs that are not in the sample.

    Attributes
    ----------
    squares : ndarray of float64, shape (k, k)
        sum_i (1 - pi_i) E[y_ij y_il].
    step : ndarray of float64, shape (k,)
        What one of them would add to each value: the root mean square, each counted as much as it
        adds.
    left : ndarray of float64, shape (k,), or None
        Each run's uncertain pairs that are not in the sample, for every one that is and one more;
        pairs count by the squares of their weights.
    lost : ndarray of float64, shape (k,), or None
        The share of each run's squares, from 0 to 1, that is of pairs which lower its value: those
        that are worse than is told of them. None where that is not known.
    """

    squares: FloatArray
    step: FloatArray
    left: FloatArray | None = None
    lost: FloatArray | None = None

    def p_values(self, difference: FloatArray) -> FloatArray:
        """Return how seldom so much is missed as would make each difference of a tie, shape (k, k).

        Where nearly everything is judged, two runs differ in few pairs that may have been missed,
        and each of these is hardly relevant: the expected variance is next to 0, and a normal
        distribution gives next to no chance to what one relevant pair more would change. But of
        thousands of differences some are hit (`ranks.adjusted_by_missed`).

        How many are missed of either run is about Poisson. Those of the run ahead make up for those
        of the other, so that a difference is off by a difference of two Poisson numbers (Skellam).
        Nothing makes up for any where it is not known which pairs raise a value (`lost`), nor where
        `few` are expected.

        Parameters
        ----------
        difference : ndarray of float64, shape (k, k)
            Antisymmetric.

        Returns
        -------
        ndarray of float64, shape (k, k)
            Symmetric, from 0 to 1; 1 where there is no difference.
        """
        first, second, step, expected = self._of_pairs()
        lead, number = difference[first, second], share_of(expected, of=step**2)
        few = number < SOME_EXPECTED
        behind = np.where(few, number, number * self._share_behind(lead, expected))
        ahead = number - behind
        enough = np.ceil(share_of(np.abs(lead), of=step) + behind - ahead - 0.5)
        single = _skellam_at_least(np.where(few, np.maximum(enough, 1.0), enough), behind, ahead)
        found = np.ones_like(self.squares)
        found[first, second] = found[second, first] = np.where(lead == 0.0, 1.0, single)
        return found

    def few(self) -> BoolArray:
        """Say of which differences next to nothing is expected to be missed, shape (k, k).

        How seldom more is missed hangs there on pairs that the model calls useless, and may be
        wrong about.
        """
        first, second, step, expected = self._of_pairs()
        found = np.zeros(self.squares.shape, dtype=np.bool_)
        of_two = share_of(expected, of=step**2) < SOME_EXPECTED
        found[first, second] = found[second, first] = of_two
        return found

    def _share_behind(self, lead: FloatArray, expected: FloatArray) -> FloatArray:
        """The share of what is missed of every two runs that speaks for the one behind."""
        if self.lost is None:
            return np.ones_like(lead)
        first, second = np.triu_indices(len(self.step), k=1)
        behind, ahead = np.where(lead > 0.0, (second, first), (first, second))
        own = np.diag(self.squares)[behind] - self.squares[first, second]
        of_behind = np.clip(share_of(own, of=expected), 0.0, 1.0)
        found = of_behind * (1.0 - self.lost[behind]) + (1.0 - of_behind) * self.lost[ahead]
        return np.asarray(found, dtype=np.float64)

    def least_errors(self, *, confidence: float) -> FloatArray:
        """Return standard errors that those of differences are at least, shape (k, k).

        For intervals of all differences at once: with these, as many pairs as all but a share
        `1 - confidence` of the trials miss at most, over all differences, are as seldom missed as a
        normal distribution has it.
        """
        error = self._error_of_one(confidence)
        first, second, step, expected = self._of_pairs()
        number = share_of(expected, of=step**2)
        some = np.flatnonzero(-np.expm1(-number) > error)
        number, step = number[some], step[some]
        of_two = (poisson_quantiles(1.0 - error, number) + 0.5 - number) * step
        least = np.zeros_like(self.squares)
        least[first[some], second[some]] = least[second[some], first[some]] = of_two
        return least / normal_quantile(confidence=1.0 - error)

    def _error_of_one(self, confidence: float) -> float:
        """The error of each difference, if that of all is shared out evenly."""
        runs = len(self.step)
        return (1.0 - confidence) / max(1, runs * (runs - 1) // 2)

    def least_margins(self, *, confidence: float) -> FloatArray:
        """Return half widths that those of single differences are at least, shape (k, k).

        As `least_reach` has it for values, and with a Poisson number, as there are many of them:
        by as many pairs as are missed at most in all but half of `1 - confidence` of the trials.
        Of what is left of two runs, so much counts as they differ in, and of two that nothing tells
        apart none.
        """
        first, second, step, expected = self._of_pairs()
        number, own = share_of(expected, of=step**2), np.diag(self.squares)
        if self.left is not None:
            apart = np.minimum(share_of(expected, of=own[first] + own[second]), 1.0)
            number += apart * np.maximum(self.left[first], self.left[second])
        error = (1.0 - confidence) / 2.0
        some = np.flatnonzero((-np.expm1(-number) > error) & (number < MOST_MISSED))
        beyond = poisson_quantiles(1.0 - error, number[some]) + 0.5 - number[some]
        least = np.zeros_like(self.squares)
        least[first[some], second[some]] = least[second[some], first[some]] = beyond * step[some]
        return least

    def _of_pairs(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Both runs of every two, the larger step, and what is expected of the difference."""
        first, second = every_two(len(self.step))
        step = np.maximum(self.step[first], self.step[second])
        return first, second, step, above(difference_variances(self.squares))

    def least_reach(self, *, confidence: float) -> FloatArray:
        """Return how far at least values may lie above their estimates, shape (k,).

        One missed pair counts in full, where few pairs are uncertain and an interval has next to no
        length. So values reach up by as many pairs as are missed at most in all but half of
        `1 - confidence` of the trials, and by half of one more for what was found in their place.
        The model learns of a run by what was found; where the one relevant pair that could tell of
        it was missed, next to nothing is expected of it. So it is expected as if one more of its
        sampled pairs had been relevant, as `left` has it, and is known to within itself at best, up
        to one: the number is Poisson's with an expectation that varies so (negative binomial).
        Where many are missed, and where fewer trials miss any, it is 0.
        """
        error, of_one = (1.0 - confidence) / 2.0, self.step**2
        expected = np.maximum(np.diag(self.squares), 0.0)
        number = np.divide(expected, of_one, out=np.zeros_like(of_one), where=of_one > 0.0)
        if self.left is not None:
            number = number + self.left
        shape = np.maximum(number, 1.0) ** 2
        odds, most, left = shape / (shape + number), np.zeros_like(number), np.arange(len(number))
        for missed in range(MOST_MISSED):
            within = special.betainc(shape[left], missed + 1.0, odds[left]) >= 1.0 - error
            most[left[within]], left = missed, left[~within]
        return np.where(most > 0.0, (most + 0.5 - number) * self.step, 0.0)


def _skellam_at_least(enough: FloatArray, more: FloatArray, less: FloatArray) -> FloatArray:
    """The chance that one Poisson number is so much larger than another, by their means, (n,)."""
    number = np.clip(enough, -MOST_COUNTED, MOST_COUNTED)
    above = special.chndtr(2.0 * more, 2.0 * np.maximum(number, 1.0), 2.0 * less)
    below = special.chndtr(2.0 * less, 2.0 * np.maximum(1.0 - number, 1.0), 2.0 * more)
    return np.asarray(np.where(number >= 1.0, above, 1.0 - below), dtype=np.float64)
