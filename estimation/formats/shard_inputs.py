"""What shards are made from: run files and qrels, each read once by one worker, and stored runs."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import PoolError
from estimation.core.data.trec import read_qrels
from estimation.core.shards.lines import judgment_lines, run_lines
from estimation.core.shards.places import Place
from estimation.core.shards.pools import ShardPool
from estimation.core.shards.running import ShardStep, StepResult
from estimation.core.shards.store import read_columns
from estimation.formats.runs import read_run, read_some_lists
from judging.formats.lines import Limits
from judging.formats.problems import Problems, UnreadableError

MOST_BYTES, MOST_LINES = 1 << 40, 1 << 31  # one file is held by one worker whole
SHOWN_ERRORS = 10


@dataclass(frozen=True)
class RunFileLines(ShardStep):
    """The lines of a run file in TREC's six columns, plain or gzip.

    Attributes
    ----------
    path : Path
    digest : str
        SHA-256 of the file.
    """

    path: Path
    digest: str

    @property
    def inputs(self) -> tuple[Any, ...]:
        return (self.digest,)

    def work(self) -> StepResult:
        """Read the file; PoolError with what is wrong with it."""
        problems, run = Problems(str(self.path)), None
        try:
            with self.path.open("rb") as file:
                run = read_run(
                    file, problems, limits=Limits(max_bytes=MOST_BYTES), max_lines=MOST_LINES
                )
        except UnreadableError:
            pass
        if run is None:
            told = (f"{each.file}:{each.line or '-'}: {each.message}" for each in problems.errors)
            raise PoolError("\n".join(list(told)[:SHOWN_ERRORS]))
        lists = run.lists
        return run_lines(
            topics=np.array([topic.encode() for topic in lists.topics], dtype=np.bytes_),
            runs=np.array([run.tag.encode()]),
            topic=np.repeat(np.arange(len(lists.topics)), np.diff(lists.indptr)),
            run=np.zeros(len(lists.docnos), dtype=np.int32),
            docno=lists.docnos,
            score=run.scores,
        )


@dataclass(frozen=True)
class QrelsFileLines(ShardStep):
    """The judgments of a qrels file; grades below 0 count as 0.

    Attributes
    ----------
    path, digest
        As of `RunFileLines`.
    once : bool
        Whether a document that is judged twice is refused.
    """

    path: Path
    digest: str
    once: bool

    @property
    def inputs(self) -> tuple[Any, ...]:
        return (self.digest, "once") if self.once else (self.digest,)

    def work(self) -> StepResult:
        """Read the file; TrecError with the first thing that is wrong with it."""
        qrels = read_qrels(self.path, below_zero=0, once=self.once)
        topics, topic = np.unique(qrels.topic, return_inverse=True)
        return judgment_lines(topics=topics, topic=topic, docno=qrels.docno, grade=qrels.grade)


@dataclass(frozen=True)
class PoolStoredRuns(ShardPool):
    """The pool of a shard, from runs that were read and stored: their lists as they are.

    Lists stand in a stored run by topic, so that nothing is cut first: a shard copies those of its
    topics, of one run after the other. It has the pairs, in the order, that the whole pool has of
    these topics: which pairs there are, and so what can be sampled, hangs on no shard.

    Attributes
    ----------
    files : tuple of Path
        Of the runs of the frame, in their order; named by the digests of their content.
    scores : bool
        Whether the pool holds the scores of the runs.
    preferences : bool
        Whether its parts are two documents, to be compared.
    """

    files: tuple[Path, ...]
    scores: bool = False
    preferences: bool = False

    @property
    def inputs(self) -> tuple[Any, ...]:
        names = [file.name for file in self.files]
        return self.frame.key, self.shard, names, self.scores, self.preferences

    def pooled(self, topics: Sequence[str]) -> Pool:
        """Pool the lists of the shard."""
        wanted, depth = frozenset(topics), self.frame.depth
        lists = {
            tag: read_some_lists(file, wanted, depth=depth, scores=self.scores)
            for tag, file in zip(self.frame.runs, self.files, strict=True)
        }
        pool = build_pool(topics, lists, depth=depth, scores=self.scores)
        return preference_pool(pool, depth=depth) if self.preferences else pool


def refuse_shared_lists(paths: Sequence[Path], inputs: Sequence[Place]) -> None:
    """Raise PoolError if two files have lines of one run for one topic: one list would be made.

    Files that are parts of a run, each with topics of its own, are taken.
    """
    files: dict[bytes, list[tuple[Path, Place]]] = defaultdict(list)
    for path, place in zip(paths, inputs, strict=True):
        _, names = read_columns(place, ["runs"])
        files[names["runs"][0]].append((path, place))
    for tag, several in files.items():
        if len(several) > 1:
            _refuse_shared_topic(tag.decode(), several)


def _refuse_shared_topic(tag: str, files: Sequence[tuple[Path, Place]]) -> None:
    first: dict[bytes, Path] = {}
    for path, place in files:
        _, names = read_columns(place, ["topics"])
        for topic in names["topics"].tolist():
            if first.setdefault(topic, path) is not path:
                both = f"{first[topic]} and {path} both have lines of the run {tag!r}"
                raise PoolError(f"{both} for topic {topic.decode()!r}: give them different tags")
