"""How far the grades of several people are apart: shares, alpha, and who is far from the middle.

Krippendorff's alpha is that of ``estimation.core.labels.alpha`` by its ordinal metric, which says
where it is from. It is worked out here once more, as this side knows nothing of that one and web
processes load none of it; a test holds the two against each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

Grades = Mapping[int, int]
"""What each person says of a pair, by the person."""


@dataclass(frozen=True)
class NormAgreement:
    """Of ``twos``, every two people on every pair that both answered, ``equal`` gave one grade.

    ``alpha`` is None where there is nothing that chance could have done: fewer than two grades, or
    no pair that two people answered. ``pairs`` have two answers or more.
    """

    pairs: int
    twos: int
    equal: int
    alpha: float | None

    @property
    def share(self) -> float | None:
        return self.equal / self.twos if self.twos else None


def agreement(said: Iterable[Grades]) -> NormAgreement:
    """Of what was said of each pair."""
    several = [list(grades.values()) for grades in said if len(grades) > 1]
    scale = 1 + max((max(grades) for grades in several), default=0)
    counts = np.zeros((len(several), scale), dtype=np.int64)
    for row, grades in enumerate(several):
        for grade in grades:
            counts[row, grade] += 1
    sizes = counts.sum(axis=1)
    twos = int((sizes * (sizes - 1) // 2).sum())
    equal = int((counts * (counts - 1) // 2).sum())
    return NormAgreement(len(several), twos, equal, _alpha(counts))


def _alpha(counts: "np.ndarray[tuple[int, int], np.dtype[np.int64]]") -> float | None:
    """Of counts of grades by pair, each pair with two answers or more."""
    if not len(counts):
        return None
    met = counts[:, :, None] * (counts[:, None, :] - np.eye(counts.shape[1], dtype=np.int64))
    table = (met / (counts.sum(axis=1) - 1)[:, None, None]).sum(axis=0)
    margin = table.sum(axis=1)
    middle = np.cumsum(margin) - margin / 2.0
    apart = (middle[:, None] - middle) ** 2
    expected = float((margin[:, None] * margin * apart).sum())
    if expected <= 0.0:
        return None
    return 1.0 - float((margin.sum() - 1.0) * (table * apart).sum()) / expected


@dataclass(frozen=True)
class Distance:
    """How far somebody is from the median of each pair that others answered too.

    ``mean`` is that of the distances, in grades; ``above`` is positive for who grades higher.
    """

    pairs: int
    mean: float
    above: float


def distances(said: Iterable[Grades]) -> dict[int, Distance]:
    """Of everybody who answered a pair that somebody else answered."""
    gaps: dict[int, list[float]] = {}
    for grades in said:
        if len(grades) > 1:
            middle = float(median(grades.values()))
            for person, grade in grades.items():
                gaps.setdefault(person, []).append(grade - middle)
    return {person: _distance(found) for person, found in gaps.items()}


def _distance(gaps: Sequence[float]) -> Distance:
    count = len(gaps)
    return Distance(count, sum(abs(gap) for gap in gaps) / count, sum(gaps) / count)
