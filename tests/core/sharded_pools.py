"""A campaign whose lines lie in several inputs, and the same in one pool."""

from pathlib import Path

import numpy as np

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists, rank_lines
from estimation.core.shards.lines import judgment_lines, run_lines
from estimation.core.shards.store import write_columns

NUMBERS = (1, 2, 7, 64)  # of shards
TOPICS, DOCUMENTS, RUNS, DEPTH = 90, 60, 5, 12
NAMES = np.array([f"t{topic:02}".encode() for topic in range(TOPICS)])
TAGS = np.array([f"run{run}".encode() for run in range(RUNS)])


def some_lines() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Topic, run, docno and score of lines in no order, with ties; some lists are missing."""
    rng = np.random.default_rng(3)
    grid = np.indices((TOPICS, RUNS, DOCUMENTS)).reshape(3, -1)
    topic, run, document = grid[:, rng.permutation(grid.shape[1])]
    kept = (rng.random(len(topic)) < 0.4) & ((topic + run) % 11 > 0)
    docno = np.array([f"d{each:02}".encode() for each in document.tolist()])
    score = np.round(rng.normal(size=len(topic)) + (document % 7 == 0), 1)
    return topic[kept], run[kept], docno[kept], score[kept]


def write_inputs(folder: Path, number: int = 3) -> list[Path]:
    """Write the lines as inputs that know different names, so that codes differ."""
    places = []
    topic, run, docno, score = some_lines()
    for part in range(number):
        rows = np.arange(part, len(topic), number)
        topics, topic_code = np.unique(NAMES[topic[rows]][::-1], return_inverse=True)
        runs, run_code = np.unique(TAGS[run[rows]], return_inverse=True)
        places.append(folder / f"input{part}")
        lines = run_lines(
            topics=topics,
            runs=runs,
            topic=topic_code[::-1],
            run=run_code,
            docno=docno[rows],
            score=score[rows],
        )
        write_columns(places[-1], *lines)
    return places


def whole_runs(depth: int | None = None) -> dict[str, RankedLists]:
    """The lists of all lines, as one process has them."""
    topic, run, docno, score = some_lines()
    return {
        tag.decode(): rank_lines(NAMES[topic[rows]], docno[rows], score[rows], depth=depth)
        for code, tag in enumerate(TAGS.tolist())
        if len(rows := np.flatnonzero(run == code))
    }


def whole_pool() -> Pool:
    """The pool of all lines, as one process makes it."""
    return build_pool([name.decode() for name in NAMES.tolist()], whole_runs(), depth=DEPTH)


def grades_of(pool: Pool) -> np.ndarray:
    """The grade of each pair: 0 to 3, by its names."""
    documents = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return np.where((documents * 5 + pool.topic) % 3 == 0, (documents + pool.topic) % 4, 0)


def write_judgments(folder: Path, pool: Pool, *, least: int = 1) -> Path:
    """Write judgments of all pairs with a grade of at least so much, last topics first."""
    grades = grades_of(pool)
    kept = np.flatnonzero(grades >= least)[::-1]
    place = folder / f"judgments{least}"
    lines = judgment_lines(
        topics=NAMES, topic=pool.topic[kept], docno=pool.docno[kept], grade=grades[kept]
    )
    write_columns(place, *lines)
    return place
