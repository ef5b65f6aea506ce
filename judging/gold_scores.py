"""How well somebody answers pairs whose grade is known, beyond what luck would bring.

Only answers to gold go in. So whether somebody is excluded by their score depends on nothing that
was said of a sampled pair, and of those who remain every label is what it would have been without
any exclusion: estimates stay unbiased for the mean label of people who pass. (They are then about
these people, as with a test before the work. Who were excluded by how far they agree with others on
sampled pairs would be picked by the labels that count, and what remains is no fair sample of them.)
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import sqrt

Z = 1.959964
"""Of a 95 % interval."""
SKEWED = 0.8
"""Share of right answers that luck alone brings, from which no score is told."""


@dataclass(frozen=True)
class GoldScore:
    """``right`` of ``answers``; ``by_chance`` is the share that their own grades, dealt to the
    pairs at random, would get right (None of fewer than two).

    ``score`` is (right − chance) / (1 − chance), 1 of somebody who is always right and about 0 of
    whoever does not look; ``low`` and ``high`` are its 95 % interval. ``untold`` says why there is
    none: ``few`` answers, or ``skewed``, as luck would get nearly all right.
    """

    answers: int = 0
    right: int = 0
    by_chance: float | None = None
    score: float | None = None
    low: float | None = None
    high: float | None = None
    untold: str = "few"


NO_SCORE = GoldScore()


def score_of(answers: Sequence[tuple[int, Collection[int]]], *, least: int) -> GoldScore:
    """From the grade that was given and those that are right, for each pair.

    Chance is the mean, over all pairs and all of their *other* answers, of being right with that
    answer, so that whoever answers by luck, with whatever liking for some grades, scores 0 on
    average: for independent answers both shares then have the same expectation. The interval is
    Wilson's of the share of right answers, with chance as it was found.
    """
    count = len(answers)
    right = sum(grade in accepted for grade, accepted in answers)
    if count < 2:
        return GoldScore(count, right)
    given = Counter(grade for grade, _ in answers)
    others = sum(
        sum(given[each] for each in accepted) - (grade in accepted) for grade, accepted in answers
    )
    chance = others / (count * (count - 1))
    if count < least or chance > SKEWED:
        return GoldScore(count, right, chance, untold="few" if count < least else "skewed")
    low, high = _wilson(right, count)
    score, low, high = ((each - chance) / (1.0 - chance) for each in (right / count, low, high))
    return GoldScore(count, right, chance, score, low, high, untold="")


def _wilson(right: int, count: int) -> tuple[float, float]:
    share, square = right / count, Z * Z / count
    middle = (share + square / 2.0) / (1.0 + square)
    half = Z * sqrt(share * (1.0 - share) / count + square / (4.0 * count)) / (1.0 + square)
    return max(0.0, middle - half), min(1.0, middle + half)
