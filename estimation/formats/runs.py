"""Runs in TREC's six columns: topic, Q0, docno, rank, score, tag.

Most files are sound, so a chunk of lines is first cut and checked as columns
(`judging.formats.cells`); only a chunk with something unusual in it is read line by line, and
reported line by line. Comment lines (#) may stand before the first line of a run: what they say in
ir_metadata is kept beside it.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimation.core.archives import ArchiveFile, read_archive, write_archive
from estimation.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    float_ranks,
    frozen,
    order_of,
)
from estimation.core.data.ranked_lists import RankedLists, trec_eval_order
from estimation.core.data.scores import EXPECTED, first_unusable
from estimation.formats.comment_head import (
    MAX_HEAD_BYTES,
    HeadError,
    read_metadata,
    split_head,
)
from estimation.formats.run_columns import COLUMNS, FORMAT, read_columns
from judging.formats.cells import PlainLines, parsed_number, split_cells
from judging.formats.columns import MAX_LINES, LineReader, Lines
from judging.formats.lines import DEFAULT_LIMITS, BinaryFile, Limits
from judging.formats.problems import Problems, id_problem, show

_COLUMNS = ("topic", "Q0", "docno", "rank", "score", "tag")
_DOCNO, _RANK, _SCORE, _TAG = range(2, 6)
_RETURNS_NOTHING = "missing: the run returns nothing there"


@dataclass(frozen=True, eq=False)
class RunFile:
    """A run as read: its ranked lists in trec_eval's order.

    Attributes
    ----------
    tag : str
        The name that the run gives itself.
    lists : RankedLists
        Topics sorted as UTF-8 bytes; each with at least one document.
    scores : ndarray of float64, shape (L,)
        Scores in the order of ``lists.docnos``.
    lines : int
        Lines read, without empty ones.
    dropped : int
        Lines of unknown topics among them, which are not in `lists`.
    metadata : tuple of (str, str)
        Names and values of the ir_metadata at its head.
    """

    tag: str
    lists: RankedLists
    scores: FloatArray
    lines: int
    dropped: int
    metadata: tuple[tuple[str, str], ...] = ()


def read_run(
    file: BinaryFile,
    problems: Problems,
    *,
    topics: Collection[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    max_lines: int = MAX_LINES,
) -> RunFile | None:
    """Read a run, plain or gzip, and return it, or None when it has an error.

    `topics` are the topics that are known: lines of others are dropped with a warning, and so
    is told which are missing. The order is trec_eval's; the rank column is only compared to it.
    Raises `UnreadableError`, its problem recorded, when reading cannot go on.
    """
    reader = _Reader(problems, max_lines)
    lines = reader.read(file, limits)
    _warn_of_ranks(lines, problems)
    _warn_of_scores(lines, problems)
    known = lines.of(topics, problems, missing=_RETURNS_NOTHING)
    metadata = _metadata(reader.head, problems)
    return _ranked(reader.tag, known, len(lines), metadata) if problems.ok else None


def _metadata(head: list[bytes], problems: Problems) -> tuple[tuple[str, str], ...]:
    """What cannot be read of it keeps no run out."""
    try:
        return tuple(read_metadata(head))
    except HeadError as error:
        problems.warning(1, "ir_metadata", f"it is left out, as it cannot be read: {error}")
        return ()


class _Reader(LineReader):
    """Takes chunks of lines of scores and ranks, the latter NaN when they are no numbers."""

    what = "the lines of a run"

    def __init__(self, problems: Problems, max_lines: int) -> None:
        super().__init__(problems, max_lines)
        self.tag = ""
        self._tag_line = 0
        self._other_tags: set[str] = set()
        self.head: list[bytes] = []
        self._in_head, self._head_bytes = True, 0

    def read_chunk(self, first: int, chunk: bytes) -> None:
        """Read whole lines, the first of which has the number `first`."""
        if self._in_head:
            first, chunk = self._without_head(first, chunk)
            if not chunk:
                return
        cells = split_cells(chunk, len(_COLUMNS))
        if cells is None or not self._add_plain(first, cells):
            super().read_chunk(first, chunk)

    def _without_head(self, first: int, chunk: bytes) -> tuple[int, bytes]:
        """Keep the comment lines before all others, and return the rest with its first number."""
        head, rest = split_head(chunk)
        self._in_head = not rest
        self._head_bytes += len(chunk) - len(rest)
        if self._head_bytes > MAX_HEAD_BYTES:
            message = f"expected at most {MAX_HEAD_BYTES} bytes of comments before the run"
            self.problems.fatal(first, "", message)
        self.head += head
        return first + len(head), rest

    def _add_plain(self, first: int, cells: PlainLines) -> bool:
        """Keep the lines of a chunk, or return False, with nothing kept."""
        tag, score = cells.cell(_TAG, 0).decode(), cells.numbers(_SCORE)
        if (self.tag or tag) != tag or id_problem(tag, "tag") or not cells.is_constant(_TAG):
            return False
        if not np.all(np.isfinite(score)):
            return False
        values = np.stack([score, cells.numbers(_RANK)], axis=1)
        if not self.add_cells(first, cells, _DOCNO, values):
            return False
        self._set_tag(tag, first)
        return True

    def _set_tag(self, tag: str, line: int) -> None:
        if not self.tag:
            self.tag, self._tag_line = tag, line

    def parsed(self, cells: Sequence[str], line: int) -> tuple[str, str, Sequence[float]] | None:
        if len(cells) != len(_COLUMNS):
            wanted = f"expected {len(_COLUMNS)} columns ({', '.join(_COLUMNS)})"
            self.problems.error(line, "columns", f"{wanted}, found {len(cells)}")
            return None
        topic, _, docno, rank, score, tag = cells
        values = parsed_number(score), parsed_number(rank)
        wrong = (
            None if math.isfinite(values[0]) else f"expected a finite number, found {show(score)}"
        )
        faults = {"score": wrong, "tag": self._tag_fault(tag, line)}
        return (topic, docno, values) if self.is_good(topic, docno, faults, line) else None

    def _tag_fault(self, tag: str, line: int) -> str | None:
        """Return what is wrong with a tag; each tag too many is reported once."""
        fault = id_problem(tag, "tag")
        if fault is None:
            self._set_tag(tag, line)
        if fault is not None or tag == self.tag or tag in self._other_tags:
            return fault
        self._other_tags.add(tag)
        wanted = f"expected the tag {show(self.tag)} of line {self._tag_line} in the whole file"
        return f"{wanted}, found {show(tag)}"


def _warn_of_ranks(lines: Lines, problems: Problems) -> None:
    score, rank = lines.values.T
    is_number = np.isfinite(rank)
    readable: BoolArray | slice = slice(None)  # copies nothing
    if not is_number.all():
        readable = is_number
        count, first = int((~is_number).sum()), int(lines.number[~is_number][0])
        which = "1 line" if count == 1 else f"{count} lines"
        message = f"the rank of {which} is no number; the order is by score"
        problems.warning(first, "rank", message)
    against = rank_contradictions(lines.topic[readable], score[readable], rank[readable])
    if against.any():
        count, first = int(against.sum()), int(lines.number[readable][against][0])
        which = "1 line scores" if count == 1 else f"{count} lines score"
        its = "its" if count == 1 else "their"
        message = f"{which} higher than a line with a better rank in {its} topic"
        problems.warning(first, "rank", f"{message}; the order is by score")


def _warn_of_scores(lines: Lines, problems: Problems) -> None:
    """Only order counts for most measures; those that take scores for grades refuse wild ones."""
    score = lines.values[:, 0]
    at = first_unusable(score)
    if at is not None:
        problems.warning(int(lines.number[at]), "score", f"{EXPECTED}, found {score[at]:g}")


def rank_contradictions(topic: IntArray, score: FloatArray, rank: FloatArray) -> BoolArray:
    """Tell which lines score higher than another line of their topic with a better rank.

    Scores are compared in single precision, as in trec_eval's order.
    """
    with np.errstate(over="ignore", under="ignore"):
        single = score.astype(np.float32)
    if _are_ranked(topic, single, rank):
        return np.zeros(len(topic), dtype=np.bool_)
    order = _by_rank(topic, rank)
    topic, rank = topic[order], rank[order]
    # Later topics get lower keys, so that the running minimum starts anew with each of them.
    key = float_ranks(single)[order] - (topic << 32)
    lowest = np.minimum.accumulate(key)
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (topic[1:] != topic[:-1]) | (rank[1:] != rank[:-1])
    group = np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    against = np.zeros(len(order), dtype=np.bool_)
    against[order] = (group > 0) & (key > lowest[np.maximum(group - 1, 0)])
    return against


def _by_rank(topic: IntArray, rank: FloatArray) -> IntArray:
    if rank.min() >= 0 and rank.max() < 2**31:
        whole = rank.astype(np.int64)
        if np.array_equal(whole, rank):
            return order_of(whole, topic)
    return np.lexsort((rank, topic))


def _are_ranked(topic: IntArray, score: NDArray[np.float32], rank: FloatArray) -> bool:
    """Whether the lines of each topic stand together, by rank, and none scores above one before."""
    other = topic[1:] != topic[:-1]
    together = np.count_nonzero(other) + 1 == np.count_nonzero(np.bincount(topic))
    in_order = (rank[1:] > rank[:-1]) & (score[1:] <= score[:-1])
    return not len(topic) or bool(together and np.all(other | in_order))


def _ranked(
    tag: str, lines: Lines, total: int, metadata: tuple[tuple[str, str], ...] = ()
) -> RunFile:
    topics, topic, indptr = lines.by_topic()
    order = trec_eval_order(lines.values[:, 0], lines.docno, topics=topic)
    docno, score = lines.docno[order], lines.values[order, 0]
    for column in (docno, score):  # which nobody else has: they are not copied to be frozen
        column.flags.writeable = False
    lists = RankedLists(topics, frozen(indptr), frozen(docno))
    return RunFile(tag, lists, frozen(score), total, total - len(lines), metadata)


def save_run(file: ArchiveFile, run: RunFile) -> None:
    """Write a run to a path or binary file as npz, without pickles."""
    facts = {"tag": run.tag, "topics": run.lists.topics, "lines": run.lines, "dropped": run.dropped}
    arrays = {"indptr": run.lists.indptr, "docnos": run.lists.docnos, "scores": run.scores}
    write_archive(file, FORMAT, facts, arrays)


def load_lists(file: ArchiveFile, *, scores: bool) -> RankedLists:
    """Read the ranked lists of what `save_run` wrote, with their scores or without."""
    facts, columns = read_columns(file, COLUMNS if scores else ("indptr", "docnos"))
    return RankedLists(
        tuple(facts["topics"]), columns["indptr"], columns["docnos"], columns.get("scores")
    )


def read_some_lists(
    file: ArchiveFile, topics: Collection[str], *, depth: int, scores: bool
) -> RankedLists:
    """Return the first `depth` documents that a stored run returns for some topics.

    Of a path no more than these is copied, and the file is open only meanwhile. ValueError if it
    is damaged or something else.
    """
    names = COLUMNS if scores else COLUMNS[:2]
    facts, arrays = read_archive(file, FORMAT, names)
    wanted = [at for at, topic in enumerate(facts["topics"]) if topic in topics]
    starts = arrays["indptr"][wanted]
    ends = np.minimum(arrays["indptr"][1:][wanted], starts + depth)
    heads = [slice(*bounds) for bounds in zip(starts.tolist(), ends.tolist(), strict=True)]
    docnos, scored = (_joined(arrays.get(name), heads) for name in COLUMNS[1:])
    indptr = np.append(0, np.cumsum(ends - starts))
    told = tuple(facts["topics"][at] for at in wanted)
    return RankedLists(told, indptr, docnos, scored if scores else None)


def _joined(column: NDArray[Any] | None, rows: Sequence[slice]) -> NDArray[Any]:
    if column is None:
        return np.array([])
    return np.concatenate([column[:0], *(column[each] for each in rows)])
