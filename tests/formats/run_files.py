"""Runs as files, for tests of what reads them."""

from collections.abc import Iterator

from estimation.formats.runs import RunFile
from judging.formats.problems import id_problem


def run_lines(run: RunFile) -> Iterator[str]:
    """The six-column lines of a run; its ids must be such as a reader takes."""
    bounds = run.lists.indptr.tolist()
    for place, topic in enumerate(run.lists.topics):
        entries = slice(bounds[place], bounds[place + 1])
        pairs = zip(run.lists.docnos[entries].tolist(), run.scores[entries].tolist(), strict=True)
        for rank, (name, score) in enumerate(pairs, 1):
            ids = topic, name.decode(), run.tag
            assert [id_problem(each) for each in ids] == [None] * 3
            yield f"{topic} Q0 {name.decode()} {rank} {score!r} {run.tag}\n"
