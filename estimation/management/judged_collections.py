"""Reads a judged collection from files: a folder of runs, qrels, perhaps predicted grades."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from django.core.management.base import CommandError

from estimation.core.arrays import FloatArray, IntArray
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.kinds import MAX_GRADE
from estimation.management.whole_files import read_runs, read_whole
from estimation.research.published.experiments import fully_judged
from judging.formats.fields import not_empty
from judging.formats.lines import BinaryFile, filled, read_lines
from judging.formats.problems import Problems, id_problem, show
from judging.formats.qrels import grades_by_pair, read_qrels

PairKey = tuple[str, str]  # topic, docno
PREDICTED_COLUMNS = 4


@dataclass(frozen=True, eq=False)
class JudgedCollection:
    """Runs, and the grades of what they return.

    Attributes
    ----------
    topics : tuple of str
        Topics of the qrels that at least one run answers.
    runs : mapping of str to RankedLists
        By tag.
    grades : mapping of (topic, docno) to int
        As the qrels have them, but 0 for grades below 0.
    not_full : tuple of str
        Tags of runs that were left out because their top is not full and judged.
    """

    topics: tuple[str, ...]
    runs: Mapping[str, RankedLists]
    grades: Mapping[PairKey, int]
    not_full: tuple[str, ...] = ()

    @property
    def max_grade(self) -> int:
        """The best grade of the qrels, at least 1."""
        return max(1, *self.grades.values())

    def pool(self, *, depth: int, scores: bool = False) -> Pool:
        """Pool the top of all runs, with their scores or without."""
        return build_pool(self.topics, self.runs, depth=depth, scores=scores)

    def only(self, tags: Sequence[str]) -> "JudgedCollection":
        """Keep some runs, as if there had been no others: the topics are those that they answer."""
        for tag in tags:
            if tag not in self.runs:
                listed = ", ".join(self.runs)
                raise CommandError(f"--runs: there is no run {tag!r}; there are {listed}.")
        kept = {tag: lists for tag, lists in self.runs.items() if tag in tags}
        answered = {topic for lists in kept.values() for topic in lists.topics}
        topics = tuple(topic for topic in self.topics if topic in answered)
        if not topics:
            raise CommandError(f"--runs {','.join(tags)}: they answer no topic of the qrels.")
        return JudgedCollection(topics, kept, self.grades)

    def only_fully_judged(self, depth: int) -> "JudgedCollection":
        """Keep the runs with `depth` documents for every topic, all of them judged."""
        known = set(self.topics)
        judged = {key: grade for key, grade in self.grades.items() if key[0] in known}
        kept = fully_judged(self.runs, judged, topics=self.topics, depth=depth)
        if not kept:
            raise CommandError(f"--fully-judged: of no run the top {depth} is full and judged.")
        left_out = tuple(tag for tag in self.runs if tag not in kept)
        return JudgedCollection(self.topics, kept, self.grades, left_out)


def grades_of(pool: Pool, grades: Mapping[PairKey, int]) -> tuple[IntArray, int]:
    """Return the grade of every pair of a pool, 0 if it has none, and how many have none."""
    found = [grades.get(key) for key in _keys(pool)]
    return np.array([grade or 0 for grade in found], dtype=np.int64), found.count(None)


def preferences_of(pool: Pool, grades: Mapping[PairKey, int]) -> IntArray:
    """Return the preference of every two documents of a pool: for the one of the better grade."""
    if pool.other is None:
        raise ValueError("the pool is not one of preferences")
    first, _ = grades_of(pool, grades)
    second, _ = grades_of(replace(pool, docno=pool.other), grades)
    return np.asarray(1 + np.sign(first - second), dtype=np.int64)


def predicted_of(pool: Pool, predicted: Mapping[PairKey, float]) -> FloatArray:
    """Return the predicted grade of every pair of a pool, NaN if it has none."""
    return np.array([predicted.get(key, math.nan) for key in _keys(pool)], dtype=np.float64)


def _keys(pool: Pool) -> list[PairKey]:
    docnos = np.char.decode(pool.docno, "utf-8").tolist()
    return [
        (pool.topics[topic], docno)
        for topic, docno in zip(pool.topic.tolist(), docnos, strict=True)
    ]


# --------------------------------------------------------------------------------------- reading


def read_collection(
    folder: Path, qrels: Path, *, after_each: Callable[[int], None] = lambda _total: None
) -> JudgedCollection:
    """Read all files of a folder as runs, and the qrels.

    Hidden files are left alone. `after_each` is called after every run with their number.

    Raises CommandError for the first thing that is wrong, with file, line and message.
    """
    grades = read_whole(qrels, "QRELS", _grades)
    if not folder.is_dir():
        raise CommandError(f"RUNS_DIR {folder} is no folder.")
    files = sorted(
        path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")
    )
    if not files:
        raise CommandError(f"RUNS_DIR {folder} has no files.")
    runs = read_runs(files, "RUNS_DIR", after_each=after_each)
    answered = {topic for lists in runs.values() for topic in lists.topics}
    topics = tuple(sorted({topic for topic, _ in grades} & answered))
    if not topics:
        raise CommandError(f"{qrels} has no topic that a run in {folder} answers.")
    return JudgedCollection(topics, dict(sorted(runs.items())), grades)


def read_predicted(path: Path, *, max_grade: int) -> dict[PairKey, float]:
    """Read predicted grades: topic, iteration, docno, grade; as qrels, but for decimals."""

    def reader(file: BinaryFile, problems: Problems) -> dict[PairKey, float]:
        return _predicted(file, problems, max_grade)

    return read_whole(path, "predicted grades", reader)


def _grades(file: BinaryFile, problems: Problems) -> dict[PairKey, int]:
    lines = read_qrels(file, problems)
    grade = lines.values[:, 0]
    for row in np.flatnonzero(grade > MAX_GRADE).tolist():
        message = f"expected a grade of at most {MAX_GRADE}, found {grade[row]:.0f}"
        problems.error(int(lines.number[row]), "grade", message)
    return grades_by_pair(replace(lines, values=np.maximum(lines.values, 0.0)))


def _predicted(file: BinaryFile, problems: Problems, max_grade: int) -> dict[PairKey, float]:
    found: dict[PairKey, float] = {}
    lines = filled(read_lines(file, problems))
    for number, text in not_empty(lines, "predicted grades", problems):
        cells = text.split()
        if len(cells) != PREDICTED_COLUMNS:
            message = "expected 4 columns (topic, iteration, docno, predicted grade)"
            problems.error(number, "columns", f"{message}, found {len(cells)}")
            continue
        topic, _, docno, grade = cells
        faults = {
            "topic": id_problem(topic, "topic"),
            "docno": f"topic {show(topic)} has {show(docno)} twice"
            if (topic, docno) in found
            else id_problem(docno),
            "grade": _predicted_problem(grade, max_grade),
        }
        for field, fault in faults.items():
            if fault:
                problems.error(number, field, fault)
        if not any(faults.values()):
            found[topic, docno] = float(grade)
    return found


def _predicted_problem(text: str, max_grade: int) -> str | None:
    try:
        grade = float(text)
    except ValueError:
        grade = math.nan
    if 0.0 <= grade <= max_grade:
        return None
    return f"expected a number from 0 to {max_grade}, found {show(text)}"
