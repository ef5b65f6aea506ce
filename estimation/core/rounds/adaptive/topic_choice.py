"""Which topics take part in a batch, where pairs of a topic are drawn together; see `sampling`.

By coins
    Every topic takes part with a chance of its own, independently of the others, so that the number
    of topics in a batch varies as a number of rare events does, and the number of pairs m times so.

By classes
    Topics of like chances make up a class of T topics, with one chance q for all of them. Of a
    class just Tq are chosen, every set of so many as likely as any other; if Tq = k + f is not
    whole, k + 1 with chance f, else k. Classes are independent. A topic of a class takes part with
    chance q, and two of one with a chance r <= q^2, so that

        Var( sum_g [g takes part] y_g / q ) = a (1 - q)/q sum_g y_g^2 + (r - q^2)/q^2 (sum_g y_g)^2

    with a = 1 + (q^2 - r)/(q (1 - q)), at most T/(T - 1). The last term is never positive: what
    coins of the same chances would give, times a, is never below the variance, whatever the y are,
    and for covariances of several sums the difference is a matrix without negative eigenvalues. It
    is the variance itself if the y of a class sum to 0, as errors of a model do about. This bound
    is what estimates take. It needs no joint chances, also holds where one topic of a class is
    chosen, and is a sum over topics.

Chances and classes follow from the chances of the pairs alone, and so from the past.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import column_sums

if TYPE_CHECKING:
    from ...arrays import BoolArray, FloatArray, Int32Array, IntArray

LIKE = 0.5  # chances of a class are not below this share of its largest
ROUNDING = 1e-9
BY_COINS = -1


@dataclass(frozen=True, eq=False)
class TopicChoice:
    """The chances of T topics to take part in a batch, and how they are chosen.

    Attributes
    ----------
    chance : ndarray of float64, shape (T,)
        Above 0, up to 1.
    moved : ndarray of float64, shape (T,)
        What the square of a topic's sum counts for in the variance, c: 1 - q of independent topics.
    inside : ndarray of float64, shape (T,)
        What squares of its pairs count for besides, by (q - p)/p^2: (1 - c)/q, so that the variance
        inside of topics is told without bias. 1 of independent topics.
    group : ndarray of int64, shape (T,)
        The class of each; `BY_COINS` of those that take part independently, or for certain.
    """

    chance: FloatArray
    moved: FloatArray
    inside: FloatArray
    group: IntArray

    @classmethod
    def independent(cls, chance: FloatArray) -> TopicChoice:
        """Every topic by a coin of its own."""
        return cls(chance, 1.0 - chance, np.ones(len(chance)), np.full(len(chance), BY_COINS))

    @classmethod
    def in_classes(cls, wanted: FloatArray, least: FloatArray) -> TopicChoice:
        """Classes of topics with chances of about `wanted`, and of `least` or more, (T,) each.

        Both lie from 0 to 1; `least` is 0 of topics without pairs. Of the others one takes part at
        least.
        """
        chance, group = wanted.copy(), np.full(len(wanted), BY_COINS)
        moved, inside = np.zeros(len(wanted)), np.ones(len(wanted))
        uncertain = np.flatnonzero(wanted < 1.0)
        order = uncertain[np.argsort(-wanted[uncertain], kind="stable")]
        some = bool(np.any((wanted >= 1.0) & (least > 0.0)))
        classes = 0
        for members in _cut(order, wanted[order]):
            alike = _chance_of(wanted[members], float(least[members].max()), alone=not some)
            chance[members], some = alike, True
            if alike < 1.0:
                counts = _moved(len(members), alike)
                moved[members], inside[members] = counts, max(1.0 - counts, 0.0) / alike
            if alike < 1.0 and len(members) > 1:
                group[members] = classes
                classes += 1
        return cls(chance, moved, inside, group)

    @property
    def classes(self) -> int:
        """How many coins `taking_part` needs beside the numbers of topics."""
        return int(self.group.max(initial=-1)) + 1

    def taking_part(self, numbers: FloatArray, coins: FloatArray) -> BoolArray:
        """Return which topics take part, (T,), by independent uniform numbers.

        Parameters
        ----------
        numbers : ndarray of float64, shape (T,)
            Of the topics: the order of those of a class is as likely as any other.
        coins : ndarray of float64, shape (`classes`,)
        """
        taking = numbers < self.chance
        for number, coin in enumerate(coins.tolist()):
            members = np.flatnonzero(self.group == number)
            whole, rest = _parts(len(members), float(self.chance[members[0]]))
            first = np.argsort(numbers[members], kind="stable")[: whole + (coin < rest)]
            taking[members] = False
            taking[members[first]] = True
        return taking


def choice_of(
    topic: Int32Array, chance: FloatArray, minimum: float, *, topics: int, even: bool
) -> TopicChoice:
    """Return how topics take part in a batch whose n pairs have these chances, (n,).

    Parameters
    ----------
    topic : ndarray of int32, shape (n,)
    chance : ndarray of float64, shape (n,)
    minimum : float
        Pairs of a topic that takes part, as expected.
    topics : int
        Number of topics, T.
    even : bool
        By classes rather than by coins.
    """
    number, largest = column_sums(topic, chance, number=topics), np.zeros(topics)
    np.maximum.at(largest, topic, chance)
    wanted = np.where(number > 0.0, np.clip(number / minimum, largest, 1.0), 1.0)
    return TopicChoice.in_classes(wanted, largest) if even else TopicChoice.independent(wanted)


def _cut(order: IntArray, wanted: FloatArray) -> list[IntArray]:
    """Cut topics, by falling chances, into classes of like chances that sum to about whole numbers.

    What is left at the end and would not make up one topic is a class, however small chances are.
    """
    found, start = [], 0
    while start < len(order):
        left = wanted[start:]
        alike = int(np.count_nonzero(left >= LIKE * left[0]))
        if float(left.sum()) < 1.0:
            alike = len(left)
        sums = np.cumsum(left[:alike])
        near = np.abs(sums - np.round(sums)) <= left[:alike] / 2.0
        whole = np.flatnonzero(near & (sums >= 1.0 - left[:alike] / 2.0))
        at_end = start + alike == len(order)
        length = int(whole[-1]) + 1 if len(whole) and not at_end else alike
        found.append(order[start : start + length])
        start += length
    return found


def _chance_of(wanted: FloatArray, least: float, *, alone: bool) -> float:
    """The chance of the topics of a class: such that the nearest whole number takes part.

    The next one, if a pair is likelier than that. Where it is 0 the chance stays as it is, but for
    topics that are alone, of which one takes part.
    """
    topics = len(wanted)
    number = max(float(wanted.sum()), least * topics)
    if number < 0.5 and not alone:
        return number / topics
    whole = max(float(np.round(number)), 1.0)
    if whole < least * topics:
        whole = float(np.ceil(number))
    return min(1.0, whole / topics)


def _parts(topics: int, chance: float) -> tuple[int, float]:
    """How many topics of a class take part for certain, and the chance that one more does."""
    number = topics * chance
    whole = int(np.floor(number + ROUNDING))
    return whole, max(number - whole, 0.0)


def _moved(topics: int, chance: float) -> float:
    """a (1 - q) of a class."""
    if topics == 1:
        return 1.0 - chance
    whole, rest = _parts(topics, chance)
    both = whole * (whole - 1.0 + 2.0 * rest) / (topics * (topics - 1.0))
    return 1.0 - chance + (chance * chance - both) / chance
