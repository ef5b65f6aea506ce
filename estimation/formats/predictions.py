"""Predicted grades: topic, docno, and a grade or the probabilities of all grades.

Written by whoever judged before: a language model, a classifier, scores that were mapped to
grades. A file has one of the two forms; there is no header. Under the header ``topic docno cost``
it has a third: what it costs to judge the pair.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from estimation.core.archives import ArchiveError, ArchiveFile, read_archive, write_archive
from estimation.core.arrays import (
    BytesArray,
    FloatArray,
    IntArray,
    content_digest,
    frozen,
    portable_bytes,
)
from estimation.formats.columns import (
    MAX_DOCNO_BYTES,
    MAX_TOPICS,
    known_topics,
    parsed_number,
    report_duplicates,
)
from judging.formats.lines import DEFAULT_LIMITS, BinaryFile, Limits, decode_line, read_chunks
from judging.formats.problems import Problems, id_problem, show

FORMAT = "evalsite-predictions-1"
SUM_TOLERANCE = 1e-3  # probabilities are written with few decimals

LEAST_COST, LARGEST_COST = 1e-6, 1e6
COST_HEADER = ["topic", "docno", "cost"]

_ROUNDING = 1e-9  # so that 0.333 three times is within the tolerance
_GRADE_COLUMNS = 3
FORMS = ("grades", "probabilities", "costs")
_BLANKS = re.compile(r"[ \t]+")


@dataclass(frozen=True, eq=False)
class PredictionFile:
    """Predicted grades as read, in the order of a pool: by topic, then by docno, as UTF-8 bytes.

    It has one of grades, probabilities and costs.

    Attributes
    ----------
    max_grade : int
        G, the best grade of the scale that the file was read for; 0 for costs.
    topics : tuple of str
        The T topics with a prediction, or a cost.
    indptr : ndarray of int64, shape (T + 1,)
        Rows ``indptr[t]:indptr[t + 1]`` belong to topic t.
    docnos : ndarray of bytes, shape (m,)
        UTF-8 docnos.
    grades : ndarray of float64, shape (m,), or None
        Predicted grades from 0 to G, if the file has grades.
    probabilities : ndarray of float64, shape (m, G + 1), or None
        Probabilities of the grades 0..G as written, if the file has them: sums are nearly 1.
    lines : int
        Lines read, without empty ones and the header.
    costs : ndarray of float64, shape (m,), or None
        Costs, if the file has them.
    """

    max_grade: int
    topics: tuple[str, ...]
    indptr: IntArray
    docnos: BytesArray
    grades: FloatArray | None
    probabilities: FloatArray | None
    lines: int
    costs: FloatArray | None = None

    def __post_init__(self) -> None:
        rows, bounds = len(self.docnos), self.indptr
        shape = (rows,) if self.probabilities is None else (rows, self.max_grade + 1)
        if len(self._columns) != 1 or self.values.shape != shape:
            wanted = "a grade, probabilities of all grades, or a cost"
            raise ArchiveError(f"there must be {wanted} per docno")
        if len(bounds) != len(self.topics) + 1 or bounds[0] != 0 or bounds[-1] != rows:
            raise ArchiveError("indptr does not fit the topics and docnos")

    @property
    def _columns(self) -> dict[str, FloatArray]:
        found = {name: getattr(self, name) for name in FORMS}
        return {name: values for name, values in found.items() if values is not None}

    @property
    def form(self) -> str:
        """What the file has: grades, probabilities or costs."""
        return next(iter(self._columns))

    @property
    def values(self) -> FloatArray:
        """The grades, the probabilities or the costs, whichever the file has."""
        return next(iter(self._columns.values()))

    @property
    def dropped(self) -> int:
        """Lines of unknown topics, which were left out."""
        return self.lines - len(self.docnos)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what is predicted; the order of the lines plays no part."""
        head = "\0".join([FORMAT, str(self.max_grade), *self.topics]).encode()
        columns = (self.indptr, self.docnos, self.values)
        return content_digest([head, *map(portable_bytes, columns)])

    def expected_grades(self) -> FloatArray:
        """Return the mean of each row's distribution, shape (m,)."""
        self._refuse_costs()
        if self.grades is not None:
            return self.grades
        means = (self.distributions() * np.arange(self.max_grade + 1.0)).sum(axis=1)
        return np.asarray(np.minimum(means, float(self.max_grade)))

    def distributions(self) -> FloatArray:
        """Return probabilities of the grades 0..G that sum to 1, shape (m, G + 1).

        A grade between two whole ones becomes those two, so that its mean stays.
        """
        self._refuse_costs()
        if self.probabilities is not None:
            return np.asarray(self.probabilities / self.probabilities.sum(axis=1, keepdims=True))
        grades = self.values
        lower = np.minimum(grades.astype(np.int64), self.max_grade - 1)
        result = np.zeros((len(grades), self.max_grade + 1))
        rows = np.arange(len(grades))
        result[rows, lower + 1] = grades - lower
        result[rows, lower] = 1.0 - result[rows, lower + 1]
        return result

    def _refuse_costs(self) -> None:
        if self.costs is not None:
            raise ValueError("costs are no predicted grades")


def read_predictions(
    file: BinaryFile,
    problems: Problems,
    *,
    max_grade: int,
    topics: Collection[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    max_lines: int = 1_500_000,
) -> PredictionFile | None:
    """Read predicted grades, plain or gzip, and return them, or None when there is an error.

    Grades lie between 0 and `max_grade`, at least 1; costs between `LEAST_COST` and
    `LARGEST_COST`. `topics` are the topics that are known:
    lines of others are dropped with a warning, and so is told which have no line. Raises
    `UnreadableError`, its problem recorded, when reading cannot go on.
    """
    reader = _Reader(problems, max_grade, max_lines)
    for first, chunk in read_chunks(file, problems, limits):
        reader.read(first, chunk)
    lines, names = reader.lines(), reader.topics
    if not len(lines.number) and problems.ok:
        problems.error(None, "", f"expected lines of {reader.what}s, found none in the file")
    report_duplicates(lines.topic, lines.docno, lines.number, names, problems)
    known = known_topics(
        lines.topic, lines.number, names, topics, problems, missing=f"without any {reader.what}"
    )
    if not problems.ok:
        return None
    kept = _Lines(lines.topic[known], lines.docno[known], lines.number[known], lines.value[known])
    return _arranged(kept, names, 0 if reader.has_costs else max_grade, len(lines.number))


@dataclass(frozen=True, eq=False)
class _Lines:
    """Columns of lines: topic code, docno, line number, and one value or one per grade."""

    topic: IntArray
    docno: BytesArray
    number: IntArray
    value: FloatArray


class _Reader:
    """Takes chunks of lines and collects the good lines of all."""

    def __init__(self, problems: Problems, max_grade: int, max_lines: int) -> None:
        self.topics: list[str] = []
        self._codes: dict[str, int] = {}
        self._problems, self._max_grade, self._max_lines = problems, max_grade, max_lines
        whole = _GRADE_COLUMNS + max_grade
        self._forms = {
            _GRADE_COLUMNS: "3 columns (topic, docno, grade)",
            whole: f"{whole} columns (topic, docno, probabilities of the grades 0 to {max_grade})",
        }
        self._columns, self._form_line = 0, 0  # how many columns lines have, as of which line
        self.has_costs = False
        self._parts: list[_Lines] = []
        self._count, self._width = 0, 1

    def read(self, first: int, chunk: bytes) -> None:
        """Read whole lines, the first of which has the number `first`."""
        rows: list[tuple[int, bytes, int, list[float]]] = []
        for number, raw in enumerate(chunk.removesuffix(b"\n").split(b"\n"), first):
            text = decode_line(raw, number, self._problems)
            cells = _BLANKS.split(text.strip(" \t")) if text else [""]
            if cells == [""] or self._is_header(cells, number):
                continue
            if not self._has_columns(len(cells), number):
                continue
            topic, docno, *texts = cells
            values = [parsed_number(text) + 0.0 for text in texts]  # no negative zeros
            if self._is_good(topic, docno, texts, values, number):
                rows.append((self._code(topic, number), docno.encode(), number, values))
        if rows:
            self._add(rows)

    @property
    def what(self) -> str:
        """What a line tells of a pair."""
        return "cost" if self.has_costs else "predicted grade"

    def _is_header(self, cells: Sequence[str], line: int) -> bool:
        if self._columns or [cell.lower() for cell in cells] != COST_HEADER:
            return False
        self.has_costs = True
        self._columns, self._form_line = len(COST_HEADER), line
        self._forms = {self._columns: f"{self._columns} columns (topic, docno, cost)"}
        return True

    def lines(self) -> _Lines:
        """Return all good lines in the order of the file."""
        if not self._parts:
            return _lines([], [], [], [])
        columns = zip(*((p.topic, p.docno, p.number, p.value) for p in self._parts), strict=True)
        return _Lines(*(np.concatenate(column) for column in columns))

    def _has_columns(self, count: int, line: int) -> bool:
        """Tell whether a line has the columns of the file's form, which the first one decides."""
        if not self._columns and count in self._forms:
            self._columns, self._form_line = count, line
        if count == self._columns:
            return True
        wanted = " or ".join(self._forms.values())
        if self._columns:
            wanted = f"{self._forms[self._columns]} as on line {self._form_line}"
        self._problems.error(line, "columns", f"expected {wanted}, found {count}")
        return False

    def _is_good(
        self, topic: str, docno: str, texts: Sequence[str], values: Sequence[float], line: int
    ) -> bool:
        named = None if topic in self._codes else id_problem(topic, "topic")
        ids = [("topic", named), ("docno", id_problem(docno))]
        faults = [*ids, *self._value_faults(texts, values)]
        found = [(field, fault) for field, fault in faults if fault]
        for field, fault in found:
            self._problems.error(line, field, fault)
        return not found

    def _value_faults(
        self, texts: Sequence[str], values: Sequence[float]
    ) -> list[tuple[str, str | None]]:
        if self.has_costs:
            wanted = f"expected a number from {LEAST_COST:.6f} to {LARGEST_COST:.0f}"
            good = LEAST_COST <= values[0] <= LARGEST_COST
            return [("cost", None if good else f"{wanted}, found {show(texts[0])}")]
        if len(values) == 1:
            wanted = f"expected a number from 0 to {self._max_grade}, found {show(texts[0])}"
            return [("grade", None if 0.0 <= values[0] <= self._max_grade else wanted)]
        wrong: list[tuple[str, str | None]] = [
            (f"p{grade}", f"expected a probability from 0 to 1, found {show(texts[grade])}")
            for grade, value in enumerate(values)
            if not 0.0 <= value <= 1.0 + SUM_TOLERANCE
        ]
        total = sum(values)
        if not wrong and abs(total - 1.0) > SUM_TOLERANCE + _ROUNDING:
            message = f"expected probabilities that sum to 1, found a sum of {total:.6g}"
            wrong.append(("probabilities", message))
        return wrong

    def _code(self, topic: str, line: int) -> int:
        code = self._codes.setdefault(topic, len(self.topics))
        if code == len(self.topics):
            self.topics.append(topic)
            if code >= MAX_TOPICS:
                self._problems.fatal(line, "topic", f"expected at most {MAX_TOPICS} topics")
        return code

    def _add(self, rows: Sequence[tuple[int, bytes, int, list[float]]]) -> None:
        lines = _lines(*zip(*rows, strict=True))
        self._count += len(lines.number)
        self._width = max(self._width, lines.docno.itemsize)
        at = int(lines.number[-1])
        if self._count > self._max_lines:
            self._problems.fatal(at, "", f"expected at most {self._max_lines} lines, found more")
        if self._count * self._width > MAX_DOCNO_BYTES:
            message = f"expected shorter docnos or fewer lines: over {MAX_DOCNO_BYTES} bytes"
            self._problems.fatal(at, "docno", message)
        self._parts.append(lines)


def _lines(
    topic: Sequence[int],
    docno: Sequence[bytes],
    number: Sequence[int],
    value: Sequence[Sequence[float]],
) -> _Lines:
    return _Lines(
        np.array(topic, dtype=np.int64),
        np.array(docno, dtype=np.bytes_),
        np.array(number, dtype=np.int64),
        np.array(value, dtype=np.float64),
    )


def _arranged(lines: _Lines, names: Sequence[str], max_grade: int, total: int) -> PredictionFile:
    used = sorted({int(code) for code in np.unique(lines.topic)}, key=lambda c: names[c].encode())
    places = np.zeros(len(names), dtype=np.int64)
    places[used] = np.arange(len(used))
    topic = places[lines.topic]
    order = np.lexsort((lines.docno, topic))
    width = max(1, int(np.char.str_len(lines.docno).max(initial=1)))
    value = lines.value[order]
    form = "probabilities" if value.shape[1] > 1 else "grades" if max_grade else "costs"
    found = frozen(value if form == "probabilities" else value[:, 0])
    return PredictionFile(
        max_grade=max_grade,
        topics=tuple(names[code] for code in used),
        indptr=frozen(np.searchsorted(topic[order], np.arange(len(used) + 1)).astype(np.int64)),
        docnos=frozen(lines.docno[order].astype(f"S{width}")),
        lines=total,
        **dict.fromkeys(FORMS) | {form: found},
    )


def save_predictions(file: ArchiveFile, found: PredictionFile) -> None:
    """Write predicted grades to a path or binary file as npz, without pickles."""
    facts = {"max_grade": found.max_grade, "topics": found.topics, "lines": found.lines}
    arrays = {"indptr": found.indptr, "docnos": found.docnos, found.form: found.values}
    write_archive(file, FORMAT, facts, arrays)


def load_predictions(file: ArchiveFile) -> PredictionFile:
    """Read what `save_predictions` wrote; ValueError if it is damaged or something else."""
    facts, arrays = read_archive(file, FORMAT, ("indptr", "docnos"), optional=FORMS)
    columns = {name: frozen(array) for name, array in arrays.items()}
    return PredictionFile(
        max_grade=facts["max_grade"],
        topics=tuple(facts["topics"]),
        indptr=columns["indptr"],
        docnos=columns["docnos"],
        grades=columns.get("grades"),
        probabilities=columns.get("probabilities"),
        lines=facts["lines"],
        costs=columns.get("costs"),
    )
