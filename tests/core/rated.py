"""Judgments by several raters: made up, and of the public collections."""

import gzip
from pathlib import Path

import numpy as np

from estimation.core.labels.ratings import Ratings

Rows = list[tuple[str, str, int]]


def of_rows(rows: Rows, *, grades: int) -> Ratings:
    """Of (pair, rater, grade); of what a rater says again of a pair, the last counts."""
    said = {(pair, rater): grade for pair, rater, grade in rows}
    pairs = {name: at for at, name in enumerate(sorted({pair for pair, _ in said}))}
    raters = {name: at for at, name in enumerate(sorted({rater for _, rater in said}))}
    return Ratings(
        np.array([pairs[pair] for pair, _ in said]),
        np.array([raters[rater] for _, rater in said]),
        np.array(list(said.values())),
        len(pairs),
        len(raters),
        grades,
    )


def crowd(data_dir: Path) -> Ratings:
    """The votes of the TREC 2011 crowd: 956 workers, two grades."""
    with gzip.open(data_dir / "crowd-trec2011" / "labels.tsv.gz", "rt") as lines:
        next(lines)
        cells = [line.rstrip("\n").split("\t") for line in lines]
    return of_rows([(f"{c[0]} {c[1]}", c[2], int(c[3])) for c in cells], grades=2)


def passages(data_dir: Path, kind: str) -> Ratings:
    """Passages judged again: ``main`` by two people each, ``agreement`` by eight; four grades."""
    with gzip.open(data_dir / "dl2019" / "annotators.tsv.gz", "rt") as lines:
        next(lines)
        cells = [line.rstrip("\n").split("\t") for line in lines]
    chosen = [c for c in cells if c[0] == kind]
    return of_rows([(f"{c[1]} {c[2]}", c[3], int(c[4])) for c in chosen], grades=4)


def simulated(
    rng: np.random.Generator,
    *,
    pairs: int,
    raters: int,
    each: int,
    grades: int = 4,
    noise: float = 0.6,
    lenient: np.ndarray | None = None,
) -> tuple[Ratings, np.ndarray]:
    """Every pair graded by ``each`` raters chosen at random, and the true level of each pair."""
    level = np.clip(rng.normal(0.9, 1.1, pairs), 0, grades - 1)
    shift = np.zeros(raters) if lenient is None else lenient
    who = np.argsort(rng.random((pairs, raters)), axis=1)[:, :each].ravel()
    pair = np.repeat(np.arange(pairs), each)
    said = np.round(level[pair] + shift[who] + rng.normal(0, noise, len(pair)))
    grade = np.clip(said, 0, grades - 1).astype(np.int64)
    return Ratings(pair, who, grade, pairs, raters, grades), level
