"""What people's disagreement adds to intervals, in words and lines, and what would lessen it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from estimation.findings import NOTE, OPEN, Finding
from estimation.label_figures import TENTATIVE, QualityFigure
from estimation.models import EstimateSet, Round

MUCH, LITTLE = 0.25, 0.1
"""Shares of the variance from which better guidelines are worth the work, and up to which no label
is."""
NEARLY_ALL = 0.95
"""Share of the pool that is judged, from which there are hardly any pairs left to draw."""
FEWEST_PAIRS = 5
"""With two labels, below which nothing is said of a topic."""
NAMED = 3


@dataclass(frozen=True)
class NoiseLine:
    """``share`` of the variance; ``narrower``: by which part, if all people agreed."""

    run: str
    share: float
    narrower: float


@dataclass(frozen=True)
class NoiseFigure:
    """Runs by the share, the largest first, and what follows from it."""

    measure: str
    lines: list[NoiseLine]
    findings: list[Finding]


def noise_figure(
    row: Round,
    shown: EstimateSet,
    measure: str,
    shares: Mapping[str, float],
    quality: QualityFigure | None,
    best: int = 0,
) -> NoiseFigure | None:
    """Of stored shares; None without any. ``best``: the number of labels of a pair that is foretold
    to give the narrowest intervals; 0: unknown."""
    if not shares:
        return None
    ordered = sorted(shares.items(), key=lambda each: (-each[1], each[0]))
    lines = [NoiseLine(run, share, 1.0 - math.sqrt(1.0 - share)) for run, share in ordered]
    middle = float(median(shares.values()))
    every = row.pool is not None and shown.pair_count >= NEARLY_ALL * row.pool.pair_count
    found = [_of_width(middle, measure), _of_labels(middle, every=every, best=best)]
    if middle >= MUCH and quality is not None:
        found += _of_guidelines(quality)
    return NoiseFigure(measure, lines, found)


def _of_width(middle: float, measure: str) -> Finding:
    narrower = 1.0 - math.sqrt(1.0 - middle)
    text = (
        f"Of the variance of the middle run by {measure}, {_percent(middle)} is that people "
        f"differ over the same pair; the rest is pairs that nobody judged. If all people agreed, "
        f"its interval would be {_percent(narrower)} narrower."
    )
    return Finding(NOTE, text)


def _of_labels(middle: float, *, every: bool, best: int) -> Finding:
    if not every and best > 1:
        text = (
            "What carries these values is judged for certain already, so that further labels of "
            "it make intervals narrower than further pairs do."
        )
    elif not every:
        text = (
            "More pairs make intervals narrower than more labels of these: a label for a pair that "
            "nobody has judged lessens both parts, a further label of a judged one this part alone."
        )
    elif middle <= LITTLE:
        text = "Nearly all pairs are judged, and people hardly differ: there is little to gain."
    else:
        text = (
            "Nearly all pairs are judged, so that only more labels, or labels that differ less, "
            "make intervals narrower. A round with “Further labels where they pay” spends them "
            "best."
        )
    return Finding(NOTE, text)


def _of_guidelines(quality: QualityFigure) -> list[Finding]:
    """Where people agree least: of grades those that are least often said again."""
    topics = [
        str(each["topic"])
        for each in quality.topics
        if each["alpha"] is not None and each["alpha"] < TENTATIVE and each["pairs"] >= FEWEST_PAIRS
    ]
    told = [(line.again, line.name) for line in quality.grades if line.again is not None]
    grades = [name for again, name in sorted(told) if again < 0.5]
    parts = []
    if topics:
        parts.append(f"the topic{'s' * (len(topics[:NAMED]) > 1)} {_listed(topics)}")
    if grades:
        parts.append(f"the grade{'s' * (len(grades[:NAMED]) > 1)} {_listed(grades)}")
    if not parts:
        return []
    text = f"Better guidelines lessen it too. People differ most over {' and over '.join(parts)}."
    return [Finding(OPEN, text)]


def _listed(names: Sequence[str]) -> str:
    *others, last = [f"“{name}”" for name in names[:NAMED]]
    return f"{', '.join(others)} and {last}" if others else last


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
