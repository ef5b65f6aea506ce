"""Runs in TREC's six columns: topic, Q0, docno, rank, score, tag.

Most files are sound, so a chunk of lines is first checked and split as a whole; only a chunk with
something unusual in it is read line by line, and reported line by line.
"""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from estimation.core.archives import ArchiveFile, write_archive
from estimation.core.arrays import BoolArray, BytesArray, FloatArray, IntArray, frozen
from estimation.core.data.ranked_lists import RankedLists, trec_eval_order
from estimation.core.data.scores import EXPECTED, first_unusable
from estimation.formats.columns import (
    MAX_DOCNO_BYTES,
    MAX_NUMBER,
    MAX_TOPICS,
    known_topics,
    parsed_number,
    report_duplicates,
)
from estimation.formats.run_columns import FORMAT, read_columns
from judging.formats.lines import (
    DEFAULT_LIMITS,
    BinaryFile,
    Limits,
    decode_line,
    read_chunks,
)
from judging.formats.problems import MAX_ID_LENGTH, Problems, id_problem, show

_COLUMNS = ("topic", "Q0", "docno", "rank", "score", "tag")
_RETURNS_NOTHING = "missing: the run returns nothing there"
_BLANKS = re.compile(r"[ \t]+")
_UNUSUAL = bytes(byte for byte in range(32) if byte not in b"\t\n") + b"\x7f\\"
_PATH_LIKE = re.compile(rb"(?:^| )(?:[/~]|[A-Za-z]:)|(?:^|[ /])\.{1,2}(?:[ /]|$)")


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
    """

    tag: str
    lists: RankedLists
    scores: FloatArray
    lines: int
    dropped: int


@dataclass(frozen=True, eq=False)
class _Lines:
    """Columns of lines: topic code, docno, score, rank (NaN when it is no number), line number."""

    topic: IntArray
    docno: BytesArray
    score: FloatArray
    rank: FloatArray
    number: IntArray


def read_run(
    file: BinaryFile,
    problems: Problems,
    *,
    topics: Collection[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    max_lines: int = 1_500_000,
) -> RunFile | None:
    """Read a run, plain or gzip, and return it, or None when it has an error.

    `topics` are the topics that are known: lines of others are dropped with a warning, and so
    is told which are missing. The order is trec_eval's; the rank column is only compared to it.
    Raises `UnreadableError`, its problem recorded, when reading cannot go on.
    """
    reader = _Reader(problems, max_lines)
    for first, chunk in read_chunks(file, problems, limits):
        reader.read(first, chunk)
    lines, names = reader.lines(), reader.topics
    if not len(lines.number) and problems.ok:
        problems.error(None, "", "expected the lines of a run, found none in the file")
    report_duplicates(lines.topic, lines.docno, lines.number, names, problems)
    _warn_of_ranks(lines, problems)
    _warn_of_scores(lines, problems)
    known = known_topics(
        lines.topic, lines.number, names, topics, problems, missing=_RETURNS_NOTHING
    )
    if not problems.ok:
        return None
    return _ranked(reader.tag, lines, names, known)


class _Reader:
    """Takes chunks of lines and collects the good lines of all."""

    def __init__(self, problems: Problems, max_lines: int) -> None:
        self.tag = ""
        self.topics: list[str] = []
        self._codes: dict[bytes, int] = {}
        self._problems, self._max_lines = problems, max_lines
        self._tag_line = 0
        self._other_tags: set[str] = set()
        self._parts: list[_Lines] = []
        self._count, self._width = 0, 1

    def read(self, first: int, chunk: bytes) -> None:
        """Read whole lines, the first of which has the number `first`."""
        rows = _split_plain(chunk)
        if rows is None or not self._add_plain(first, rows):
            self._read_by_line(first, chunk)

    def lines(self) -> _Lines:
        """Return all good lines in the order of the file."""
        parts = self._parts or [_lines([], [], [], [], [])]
        columns = zip(*((p.topic, p.docno, p.score, p.rank, p.number) for p in parts), strict=True)
        return _Lines(*(np.concatenate(column) for column in columns))

    def _add_plain(self, first: int, rows: Sequence[Sequence[bytes]]) -> bool:
        topics, _, docnos, ranks, scores, tags = zip(*rows, strict=True)
        names, numbers = set(tags), (_plain_numbers(scores), _plain_numbers(ranks))
        if len(names) > 1 or numbers[0] is None or numbers[1] is None:
            return False
        tag = names.pop().decode()
        if (self.tag or tag) != tag or id_problem(tag, "tag") or not _are_plain_ids(docnos):
            return False
        if not np.all(np.isfinite(numbers[0])) or not self._know_topics(topics, first):
            return False
        self._set_tag(tag, first)
        codes = [self._codes[topic] for topic in topics]
        lines = range(first, first + len(rows))
        self._add(_lines(codes, docnos, numbers[0], numbers[1], lines))
        return True

    def _know_topics(self, topics: Sequence[bytes], line: int) -> bool:
        fresh = [topic for topic in dict.fromkeys(topics) if topic not in self._codes]
        if any(id_problem(topic.decode(), "topic") for topic in fresh):
            return False
        for topic in fresh:
            self._code(topic, line)
        return True

    def _code(self, topic: bytes, line: int) -> int:
        code = self._codes.setdefault(topic, len(self.topics))
        if code == len(self.topics):
            self.topics.append(topic.decode())
            if code >= MAX_TOPICS:
                self._problems.fatal(line, "topic", f"expected at most {MAX_TOPICS} topics")
        return code

    def _set_tag(self, tag: str, line: int) -> None:
        if not self.tag:
            self.tag, self._tag_line = tag, line

    def _read_by_line(self, first: int, chunk: bytes) -> None:
        rows: list[tuple[int, bytes, float, float, int]] = []
        for number, raw in enumerate(chunk.removesuffix(b"\n").split(b"\n"), first):
            text = decode_line(raw, number, self._problems)
            cells = _BLANKS.split(text.strip(" \t")) if text else [""]
            if cells == [""]:
                continue
            if len(cells) != len(_COLUMNS):
                wanted = f"expected {len(_COLUMNS)} columns ({', '.join(_COLUMNS)})"
                self._problems.error(number, "columns", f"{wanted}, found {len(cells)}")
            elif self._is_good(cells, number):
                topic, _, docno, rank, score, _ = cells
                code = self._code(topic.encode(), number)
                rows.append((code, docno.encode(), float(score), parsed_number(rank), number))
        if rows:
            self._add(_lines(*zip(*rows, strict=True)))

    def _is_good(self, cells: Sequence[str], line: int) -> bool:
        topic, _, docno, _, score, tag = cells
        faults = {
            "topic": id_problem(topic, "topic"),
            "docno": id_problem(docno),
            "score": None
            if math.isfinite(parsed_number(score))
            else f"expected a finite number, found {show(score)}",
            "tag": self._tag_fault(tag, line),
        }
        for field, fault in faults.items():
            if fault:
                self._problems.error(line, field, fault)
        return not any(faults.values())

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

    def _add(self, lines: _Lines) -> None:
        self._count += len(lines.number)
        self._width = max(self._width, lines.docno.itemsize)
        at = int(lines.number[-1])
        if self._count > self._max_lines:
            self._problems.fatal(at, "", f"expected at most {self._max_lines} lines, found more")
        if self._count * self._width > MAX_DOCNO_BYTES:
            message = f"expected shorter docnos or fewer lines: over {MAX_DOCNO_BYTES} bytes"
            self._problems.fatal(at, "docno", message)
        self._parts.append(lines)


def _split_plain(chunk: bytes) -> list[list[bytes]] | None:
    """Split lines of six ASCII columns, or return None when something else is among them."""
    chunk = chunk.replace(b"\r\n", b"\n").removesuffix(b"\n")
    if not chunk.isascii() or len(chunk.translate(None, _UNUSUAL)) < len(chunk):
        return None
    rows = [line.split() for line in chunk.split(b"\n")]
    return rows if set(map(len, rows)) == {len(_COLUMNS)} else None


def _are_plain_ids(ids: Sequence[bytes]) -> bool:
    return max(map(len, ids)) <= MAX_ID_LENGTH and not _PATH_LIKE.search(b" ".join(ids))


def _plain_numbers(texts: Sequence[bytes]) -> FloatArray | None:
    if max(map(len, texts)) > MAX_NUMBER or b"_" in b" ".join(texts):
        return None
    try:
        return np.array(list(map(float, texts)))
    except ValueError:
        return None


def _lines(topic: Any, docno: Any, score: Any, rank: Any, number: Any) -> _Lines:
    return _Lines(
        np.array(topic, dtype=np.int64),
        np.array(docno, dtype=np.bytes_),
        np.array(score, dtype=np.float64),
        np.array(rank, dtype=np.float64),
        np.array(number, dtype=np.int64),
    )


def _warn_of_ranks(lines: _Lines, problems: Problems) -> None:
    readable = np.isfinite(lines.rank)
    if not readable.all():
        count, first = int((~readable).sum()), int(lines.number[~readable][0])
        message = f"the rank of {count} lines is no number; the order is by score"
        problems.warning(first, "rank", message)
    against = rank_contradictions(
        lines.topic[readable], lines.score[readable], lines.rank[readable]
    )
    if against.any():
        count, first = int(against.sum()), int(lines.number[readable][against][0])
        message = f"{count} lines score higher than a line with a better rank in their topic"
        problems.warning(first, "rank", f"{message}; the order is by score")


def _warn_of_scores(lines: _Lines, problems: Problems) -> None:
    """Only order counts for most measures; those that take scores for grades refuse wild ones."""
    at = first_unusable(lines.score)
    if at is not None:
        problems.warning(int(lines.number[at]), "score", f"{EXPECTED}, found {lines.score[at]:g}")


def rank_contradictions(topic: IntArray, score: FloatArray, rank: FloatArray) -> BoolArray:
    """Tell which lines score higher than another line of their topic with a better rank.

    Scores are compared in single precision, as in trec_eval's order.
    """
    if not len(topic):
        return np.zeros(0, dtype=np.bool_)
    with np.errstate(over="ignore", under="ignore"):
        _, level = np.unique(score.astype(np.float32), return_inverse=True)
    order = np.lexsort((rank, topic))
    topic, rank = topic[order], rank[order]
    # Later topics get lower keys, so that the running minimum starts anew with each of them.
    key = level[order] - topic * len(topic)
    lowest = np.minimum.accumulate(key)
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (topic[1:] != topic[:-1]) | (rank[1:] != rank[:-1])
    group = np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    against = np.zeros(len(order), dtype=np.bool_)
    against[order] = (group > 0) & (key > lowest[np.maximum(group - 1, 0)])
    return against


def _ranked(tag: str, lines: _Lines, names: Sequence[str], known: BoolArray) -> RunFile:
    used = sorted(
        {int(code) for code in np.unique(lines.topic[known])}, key=lambda c: _utf8(names[c])
    )
    places = np.zeros(len(names), dtype=np.int64)
    places[used] = np.arange(len(used))
    topic, docno, score = places[lines.topic[known]], lines.docno[known], lines.score[known]
    order = trec_eval_order(score, docno, topics=topic)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(topic, minlength=len(used)))])
    lists = RankedLists(
        tuple(names[code] for code in used), frozen(indptr.astype(np.int64)), frozen(docno[order])
    )
    total = len(lines.number)
    return RunFile(tag, lists, frozen(score[order]), total, total - len(order))


def _utf8(text: str) -> bytes:
    return text.encode()


def save_run(file: ArchiveFile, run: RunFile) -> None:
    """Write a run to a path or binary file as npz, without pickles."""
    facts = {"tag": run.tag, "topics": run.lists.topics, "lines": run.lines, "dropped": run.dropped}
    arrays = {"indptr": run.lists.indptr, "docnos": run.lists.docnos, "scores": run.scores}
    write_archive(file, FORMAT, facts, arrays)


def load_run(file: ArchiveFile) -> RunFile:
    """Read what `save_run` wrote; raise ValueError if it is damaged or something else."""
    facts, columns = read_columns(file)
    lists = RankedLists(tuple(facts["topics"]), columns["indptr"], columns["docnos"])
    return RunFile(facts["tag"], lists, columns["scores"], facts["lines"], facts["dropped"])


def run_lines(run: RunFile) -> Iterator[str]:
    """Yield the six-column lines of a run; ValueError for an id no reader would take."""
    _refuse_bad_id(run.tag, "tag")
    bounds = run.lists.indptr.tolist()
    for place, topic in enumerate(run.lists.topics):
        _refuse_bad_id(topic, "topic")
        entries = slice(bounds[place], bounds[place + 1])
        pairs = zip(run.lists.docnos[entries].tolist(), run.scores[entries].tolist(), strict=True)
        for rank, (name, score) in enumerate(pairs, 1):
            docno = name.decode()
            _refuse_bad_id(docno, "docno")
            yield f"{topic} Q0 {docno} {rank} {score!r} {run.tag}\n"


def _refuse_bad_id(text: str, what: str) -> None:
    fault = id_problem(text, what)
    if fault is not None:
        raise ValueError(fault)


def write_run(file: IO[bytes], run: RunFile) -> int:
    """Write a run's lines as UTF-8 and return their number."""
    count = 0
    for line in run_lines(run):
        file.write(line.encode())
        count += 1
    return count
