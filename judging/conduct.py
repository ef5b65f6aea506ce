"""How somebody judges, from times, lengths and the order of answers: rules of plain numbers.

*Too fast* never looks at a grade, so that an exclusion for it leaves estimates unbiased. *Patterns*
do look at grades; they are told to organizers, who look before they decide, and an exclusion for
one is labeled as one for grades. Each rule asks how likely what was found would be of somebody who
judges like the others, so that a campaign in which nearly nothing is relevant accuses nobody.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, log1p

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Grades = NDArray[np.int64]

# ---------------------------------------------------------------------------------- too fast

LEAST_TIMES = 10
"""Judgments with a time and a text, from which it is told what somebody needs."""
BASE = 600.0
"""Characters that it takes as long to read as to look at the page, take in the topic and answer."""
FAR = 3.0
"""Robust standard deviations below the usual logarithm of their time: less is too fast."""
LEAST_SPREAD = 0.35
"""Of the logarithm: nobody is so even that two thirds of their usual time would be too fast."""
GLANCE, FASTEST = 100.0, 100.0
"""Of the first so many characters nobody reads more a second: skilled readers take in some 20 to
40, and what is called speed reading beyond that is skimming (Rayner et al. 2016)."""
HASTY, LEAST_QUICK = 0.1, 3
"""Share and number of somebody's judgments too fast from which they are called hasty."""
SLOPE_POINTS = 200


@dataclass(frozen=True)
class ReadingPace:
    """What somebody usually needs: log seconds = ``middle`` + ``slope`` log(BASE + characters).

    ``spread`` is 1.4826 times the median absolute deviation, at least ``LEAST_SPREAD``.
    """

    middle: float
    slope: float
    spread: float

    @classmethod
    def of(cls, seconds: Numbers, characters: Numbers) -> "ReadingPace | None":
        """From their own times; None where too few are known.

        The slope is the median of those between any two judgments (Theil 1950, Sen 1968), from
        none to as the text is long; a few quick or forgotten pages do not move it.
        """
        if len(seconds) < LEAST_TIMES:
            return None
        size, took = np.log(BASE + characters), np.log(np.maximum(seconds, 0.01))
        slope = _slope(size, took)
        rest = took - slope * size
        middle = float(np.median(rest))
        spread = 1.4826 * float(np.median(np.abs(rest - middle)))
        return cls(middle, slope, max(spread, LEAST_SPREAD))

    def usual(self, characters: Numbers) -> Numbers:
        """Seconds that they usually need for texts of these lengths."""
        return np.asarray(np.exp(self.middle + self.slope * np.log(BASE + characters)))

    def too_fast(self, seconds: Numbers, characters: Numbers) -> NDArray[np.bool_]:
        """Which judgments took far less than they usually need, or less than anybody needs."""
        bound = self.usual(characters) * exp(-FAR * self.spread)
        return np.asarray((seconds < bound) | (seconds < floor(characters)))


def too_fast(seconds: Numbers, characters: Numbers) -> NDArray[np.bool_]:
    """Which judgments of one person were; none where too few tell what they usually need."""
    pace = ReadingPace.of(seconds, characters)
    return (
        np.zeros(len(seconds), dtype=np.bool_)
        if pace is None
        else pace.too_fast(seconds, characters)
    )


def floor(characters: Numbers) -> Numbers:
    """Seconds in which nobody has read the beginning of such a text."""
    return np.asarray(np.minimum(characters, GLANCE) / FASTEST)


def _slope(size: Numbers, took: Numbers) -> float:
    at = np.unique(np.linspace(0, len(size) - 1, SLOPE_POINTS).astype(np.int64))
    size, took = size[at], took[at]
    one, other = np.triu_indices(len(size), 1)
    run = size[other] - size[one]
    apart = np.abs(run) > 1e-9
    if not apart.any():
        return 0.0
    return float(np.clip(np.median((took[other] - took[one])[apart] / run[apart]), 0.0, 1.0))


# ---------------------------------------------------------------------------------- patterns

LEAST_ANSWERS = 20
"""Answers from which a pattern is told."""
NEARLY_ALL = 0.95
UNLIKELY = 1e-4
"""Chance of a pattern by itself, of one person, below which it is named."""
LONGEST_CYCLE = 6
BELOW, NONE = 2.5, 2.0
"""Standard errors by which a correlation with others lies below the usual one, and above none at
most, where answers are called unrelated."""

ONE_GRADE, CYCLE, UNRELATED, SAME = "one grade", "cycle", "unrelated", "same"


@dataclass(frozen=True)
class Pattern:
    """``kind``: ``one grade`` (the same answer nearly always, where others differ), ``cycle``
    (answers come round in an order), ``unrelated`` (answers have nothing to do with those of
    others), ``same`` (nearly all answers are those of ``other``, though people differ).

    ``matching`` of ``among`` answers show it.
    """

    kind: str
    matching: int
    among: int
    grade: int | None = None
    period: int | None = None
    other: str = ""

    @property
    def sentence(self) -> str:
        of_them = f"{self.matching:,} of {self.among:,}"
        return {
            ONE_GRADE: f"One grade for nearly all: {of_them} answers are grade {self.grade}, "
            "where others differ.",
            CYCLE: f"An order that comes round: {of_them} answers are the same as the one "
            f"{self.period} before.",
            UNRELATED: f"No relation to what others say: of {self.among:,} pairs in common, "
            "answers go with those of others no better than luck would have it.",
            SAME: f"The same answers as {self.other}: {of_them} pairs that both judged, where "
            "people differ more often.",
        }[self.kind]


def of_order(grades: Grades, *, shares: Numbers, every: Grades | None = None) -> list[Pattern]:
    """Patterns of somebody's answers in their order; ``shares`` of each grade are of others,
    for the same pairs if there are enough.

    ``every``: with those between them that no others are held against, as gold is: who answers in
    turn does so whatever the pair, and where some are left out nothing comes round.
    """
    if len(grades) < LEAST_ANSWERS:
        return []
    found = _one_grade(grades, shares) or _cycle(grades if every is None else every)
    return [found] if found else []


def _one_grade(grades: Grades, shares: Numbers) -> Pattern | None:
    if not shares.sum():  # nobody else has judged
        return None
    counts = np.bincount(grades, minlength=len(shares))
    grade = int(counts.argmax())
    often, among = int(counts[grade]), len(grades)
    share = float(shares[grade])
    if often < NEARLY_ALL * among or chance_of(often, among, share) >= UNLIKELY:
        return None
    return Pattern(ONE_GRADE, often, among, grade=grade)


def _cycle(grades: Grades) -> Pattern | None:
    """Of two answers or more in turn. Topics come in a row, so that neighbors are alike anyway;
    somebody whose answers are mostly one grade repeats themselves at every distance."""
    counts = np.bincount(grades)
    if counts.max() > 0.8 * len(grades):
        return None
    neighbors = float(np.mean(grades[1:] == grades[:-1]))
    by_luck = max(neighbors, float(((counts / len(grades)) ** 2).sum()))
    for period in range(2, LONGEST_CYCLE + 1):
        same = int(np.count_nonzero(grades[period:] == grades[:-period]))
        among = len(grades) - period
        if same >= 0.9 * among and chance_of(same, among, by_luck) < UNLIKELY:
            return Pattern(CYCLE, same, among, period=period)
    return None


def correlation(own: Numbers, others: Numbers) -> float | None:
    """Of answers with the mean answers of others to the same pairs; None of too few, or where one
    side says the same always.

    Severe and lenient people relate to others as well as anybody does.
    """
    if len(own) < LEAST_ANSWERS or np.ptp(own) == 0 or np.ptp(others) == 0:
        return None
    return float(np.clip(np.corrcoef(own, others)[0, 1], -0.999, 0.999))


def unrelated(found: float, among: int, *, usual: float) -> Pattern | None:
    """Whether a correlation is surely below the ``usual`` one of the campaign, and not above none.

    By Fisher's z. Where people hardly agree anyway, or of few pairs, nothing is surely below.
    """
    error = 1.0 / np.sqrt(among - 3)
    z, expected = np.arctanh(found), np.arctanh(np.clip(usual, -0.999, 0.999))
    if z >= min(expected - BELOW * error, NONE * error):
        return None
    return Pattern(UNRELATED, 0, among)


def same_answers(equal: int, among: int, usual: float, other: str) -> Pattern | None:
    """Whether somebody answers as one other person does, where couples usually agree as often as
    ``usual`` says."""
    if among < LEAST_ANSWERS or equal < NEARLY_ALL * among:
        return None
    if chance_of(equal, among, usual) >= UNLIKELY:
        return None
    return Pattern(SAME, equal, among, other=other)


def chance_of(least: int, among: int, share: float) -> float:
    """Of so many or more of ``among`` independent ones that are so with the chance ``share``."""
    if least <= 0 or share >= 1.0:
        return 1.0
    if share <= 0.0:
        return 0.0
    total = 0.0
    for count in range(least, among + 1):
        ways = lgamma(among + 1) - lgamma(count + 1) - lgamma(among - count + 1)
        total += exp(ways + count * log(share) + (among - count) * log1p(-share))
    return min(total, 1.0)


# ------------------------------------------------------------------------------- change over time

PARTS, LEAST_PART = 4, 10
"""Into so many parts work is cut, where each has so many judgments at least."""
CHANGED = 3.0
"""Standard errors between the first part and the last, from which a change is told."""


@dataclass(frozen=True)
class Stretch:
    """A part of somebody's work, from judgment ``first`` to ``last``, counted from 1.

    ``seconds``: the median; ``above``: grades above those of others on average, of ``shared``
    pairs in common. None where too little is known.
    """

    first: int
    last: int
    seconds: float | None
    above: float | None
    shared: int


@dataclass(frozen=True)
class Change:
    """The parts in order, and by how much the last is above the first, where that is no luck."""

    parts: list[Stretch]
    drift: float | None

    @property
    def compares(self) -> bool:
        """Whether anything stands beside what others said; a preference has no height."""
        return any(part.shared for part in self.parts)


def over_time(seconds: Sequence[float | None], apart: Sequence[float | None]) -> Change | None:
    """What changed in the order of somebody's judgments; None of too few.

    ``apart``: grades above the mean of others; None of pairs that nobody else judged.
    """
    count = min(PARTS, len(seconds) // LEAST_PART)
    if count < 2:
        return None
    ends = np.linspace(0, len(seconds), count + 1).round().astype(int).tolist()
    parts, samples = [], []
    for start, end in itertools.pairwise(ends):
        times = [each for each in seconds[start:end] if each is not None]
        gaps = [each for each in apart[start:end] if each is not None]
        known = len(gaps) >= LEAST_PART // 2
        parts.append(
            Stretch(
                start + 1,
                end,
                float(np.median(times)) if len(times) >= LEAST_PART // 2 else None,
                float(np.mean(gaps)) if known else None,
                len(gaps),
            )
        )
        samples.append(gaps if known else [])
    return Change(parts, _drift(samples[0], samples[-1]))


def _drift(first: Sequence[float], last: Sequence[float]) -> float | None:
    if min(len(first), len(last)) < LEAST_PART:
        return None
    error = np.sqrt(sum(float(np.var(each, ddof=1)) / len(each) for each in (first, last)))
    moved = float(np.mean(last) - np.mean(first))
    return moved if abs(moved) > CHANGED * error and moved else None
