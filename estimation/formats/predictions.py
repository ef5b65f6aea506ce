"""Predicted grades: topic, docno, and a grade or the probabilities of all grades.

Written by whoever judged before: a language model, a classifier, scores that were mapped to
grades. A file has one of the two forms; there is no header. Under the header ``topic docno cost``
it has a third: what it costs to judge the pair.

As in files of runs, chunks of plain lines are read as columns, and others line by line.
"""

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
)
from judging.formats.cells import PlainLines, parsed_number, split_cells
from judging.formats.columns import MAX_LINES, LineReader, Lines
from judging.formats.lines import DEFAULT_LIMITS, BinaryFile, Limits
from judging.formats.problems import Problems, show

FORMAT = "evalsite-predictions-1"
SUM_TOLERANCE = 1e-3  # probabilities are written with few decimals

LEAST_COST, LARGEST_COST = 1e-6, 1e6
COST_HEADER = ["topic", "docno", "cost"]

_ROUNDING = 1e-9  # so that 0.333 three times is within the tolerance
_GRADE_COLUMNS = 3
_DOCNO, _VALUES = 1, 2
FORMS = ("grades", "probabilities", "costs")


@dataclass(frozen=True, eq=False)
class PredictionFile:
    """Predicted grades as read, in the order of a pool: by topic, then by docno, as UTF-8 bytes.

    Attributes
    ----------
    form : str
        What the file has: grades, probabilities or costs, as `FORMS` names them.
    max_grade : int
        G, the best grade of the scale that the file was read for; 0 for costs.
    topics : tuple of str
        The T topics with a prediction, or a cost.
    indptr : ndarray of int64, shape (T + 1,)
        Rows ``indptr[t]:indptr[t + 1]`` belong to topic t.
    docnos : ndarray of bytes, shape (m,)
        UTF-8 docnos.
    values : ndarray of float64, shape (m,), or (m, G + 1)
        Predicted grades from 0 to G, or costs; or probabilities of the grades 0..G as written,
        whose sums are nearly 1.
    lines : int
        Lines read, without empty ones and the header.
    """

    form: str
    max_grade: int
    topics: tuple[str, ...]
    indptr: IntArray
    docnos: BytesArray
    values: FloatArray
    lines: int

    def __post_init__(self) -> None:
        rows, bounds = len(self.docnos), self.indptr
        shape = (rows, self.max_grade + 1) if self.form == "probabilities" else (rows,)
        if self.form not in FORMS or self.values.shape != shape:
            wanted = "a grade, probabilities of all grades, or a cost"
            raise ArchiveError(f"there must be {wanted} per docno")
        if len(bounds) != len(self.topics) + 1 or bounds[0] != 0 or bounds[-1] != rows:
            raise ArchiveError("indptr does not fit the topics and docnos")

    @property
    def dropped(self) -> int:
        """Lines of unknown topics, which were left out."""
        return self.lines - len(self.docnos)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what is predicted; the order of the lines plays no part."""
        head = "\0".join([FORMAT, str(self.max_grade), *self.topics]).encode()
        columns = (self.indptr, self.docnos, self.values)
        return content_digest([head, *columns])

    def expected_grades(self) -> FloatArray:
        """Return the mean of each row's distribution, shape (m,)."""
        self._refuse_costs()
        if self.form == "grades":
            return self.values
        means = (self.distributions() * np.arange(self.max_grade + 1.0)).sum(axis=1)
        return np.asarray(np.minimum(means, float(self.max_grade)))

    def distributions(self) -> FloatArray:
        """Return probabilities of the grades 0..G that sum to 1, shape (m, G + 1).

        A grade between two whole ones becomes those two, so that its mean stays.
        """
        self._refuse_costs()
        grades = self.values
        if self.form == "probabilities":
            return np.asarray(grades / grades.sum(axis=1, keepdims=True))
        lower = np.minimum(grades.astype(np.int64), self.max_grade - 1)
        result = np.zeros((len(grades), self.max_grade + 1))
        rows = np.arange(len(grades))
        result[rows, lower + 1] = grades - lower
        result[rows, lower] = 1.0 - result[rows, lower + 1]
        return result

    def _refuse_costs(self) -> None:
        if self.form == "costs":
            raise ValueError("costs are no predicted grades")


def read_predictions(
    file: BinaryFile,
    problems: Problems,
    *,
    max_grade: int,
    topics: Collection[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    max_lines: int = MAX_LINES,
) -> PredictionFile | None:
    """Read predicted grades, plain or gzip, and return them, or None when there is an error.

    Grades lie between 0 and `max_grade`, at least 1; costs between `LEAST_COST` and
    `LARGEST_COST`. `topics` are the topics that are known:
    lines of others are dropped with a warning, and so is told which have no line. Raises
    `UnreadableError`, its problem recorded, when reading cannot go on.
    """
    reader = _Reader(problems, max_grade, max_lines)
    lines = reader.read(file, limits)
    kept = lines.of(topics, problems, missing=f"without any {reader.unit}")
    return _arranged(kept, reader, len(lines)) if problems.ok else None


class _Reader(LineReader):
    """Takes chunks of lines, each with a value of its pair or one per grade."""

    def __init__(self, problems: Problems, max_grade: int, max_lines: int) -> None:
        super().__init__(problems, max_lines)
        self.max_grade = max_grade
        whole = _GRADE_COLUMNS + max_grade
        self._forms = {
            _GRADE_COLUMNS: "3 columns (topic, docno, grade)",
            whole: f"{whole} columns (topic, docno, probabilities of the grades 0 to {max_grade})",
        }
        self._columns, self._form_line = 0, 0  # how many columns lines have, as of which line
        self.form = "grades"

    @property
    def unit(self) -> str:
        """What a line tells of a pair."""
        return "cost" if self.form == "costs" else "predicted grade"

    @property
    def what(self) -> str:
        return f"lines of {self.unit}s"

    def read_chunk(self, first: int, chunk: bytes) -> None:
        """Read whole lines, the first of which has the number `first`."""
        count = self._columns or len(chunk[: chunk.find(b"\n") + 1].split())
        cells = split_cells(chunk, count) if count in self._forms else None
        if cells is None or not self._add_plain(first, cells):
            super().read_chunk(first, chunk)

    def _add_plain(self, first: int, cells: PlainLines) -> bool:
        """Keep the lines of a chunk, or return False, with nothing kept."""
        count = len(cells.begin)
        values = np.stack([cells.numbers(column) for column in range(_VALUES, count)], axis=1)
        values += 0.0  # no negative zeros
        form = self.form if self._columns else self._form_of(count)
        if not self._are_good(form, values):
            return False
        return self.add_cells(first, cells, _DOCNO, values) and self._has_columns(count, first)

    def _are_good(self, form: str, values: FloatArray) -> bool:
        """Whether there is nothing wrong with the values of any line; none is where one is NaN."""
        if form == "costs":
            return bool(np.all((values >= LEAST_COST) & (values <= LARGEST_COST)))
        most = self.max_grade if form == "grades" else 1.0 + SUM_TOLERANCE
        if not np.all((values >= 0.0) & (values <= most)):
            return False
        if form == "grades":
            return True
        total = sum(values.T)  # from the first to the last, as for one line
        return bool(np.all(np.abs(total - 1.0) <= SUM_TOLERANCE + _ROUNDING))

    def parsed(self, cells: Sequence[str], line: int) -> tuple[str, str, Sequence[float]] | None:
        if self._is_header(cells, line) or not self._has_columns(len(cells), line):
            return None
        topic, docno, *texts = cells
        values = [parsed_number(text) + 0.0 for text in texts]  # no negative zeros
        faults = self._value_faults(texts, values)
        return (topic, docno, values) if self.is_good(topic, docno, faults, line) else None

    def _is_header(self, cells: Sequence[str], line: int) -> bool:
        if self._columns or [cell.lower() for cell in cells] != COST_HEADER:
            return False
        self.form = "costs"
        self._columns, self._form_line = len(COST_HEADER), line
        self._forms = {self._columns: f"{self._columns} columns (topic, docno, cost)"}
        return True

    def _has_columns(self, count: int, line: int) -> bool:
        """Tell whether a line has the columns of the file's form, which the first one decides."""
        if not self._columns and count in self._forms:
            self._columns, self._form_line = count, line
            self.form = self._form_of(count)
        if count == self._columns:
            return True
        wanted = " or ".join(self._forms.values())
        if self._columns:
            wanted = f"{self._forms[self._columns]} as on line {self._form_line}"
        self.problems.error(line, "columns", f"expected {wanted}, found {count}")
        return False

    def _form_of(self, count: int) -> str:
        return "probabilities" if count > _GRADE_COLUMNS else "grades"

    def _value_faults(self, texts: Sequence[str], values: Sequence[float]) -> dict[str, str | None]:
        """What is wrong with the values, by field."""
        if self.form == "costs":
            wanted = f"expected a number from {LEAST_COST:.6f} to {LARGEST_COST:.0f}"
            good = LEAST_COST <= values[0] <= LARGEST_COST
            return {"cost": None if good else f"{wanted}, found {show(texts[0])}"}
        if self.form == "grades":
            wanted = f"expected a number from 0 to {self.max_grade}, found {show(texts[0])}"
            return {"grade": None if 0.0 <= values[0] <= self.max_grade else wanted}
        wrong: dict[str, str | None] = {
            f"p{grade}": f"expected a probability from 0 to 1, found {show(texts[grade])}"
            for grade, value in enumerate(values)
            if not 0.0 <= value <= 1.0 + SUM_TOLERANCE
        }
        total = sum(values)
        if not wrong and abs(total - 1.0) > SUM_TOLERANCE + _ROUNDING:
            message = f"expected probabilities that sum to 1, found a sum of {total:.6g}"
            wrong["probabilities"] = message
        return wrong


def _arranged(lines: Lines, reader: _Reader, total: int) -> PredictionFile:
    topics, topic, indptr = lines.by_topic()
    order = np.lexsort((lines.docno, topic))
    width = max(1, int(np.char.str_len(lines.docno).max(initial=1)))
    values = lines.values[order]
    return PredictionFile(
        form=reader.form,
        max_grade=0 if reader.form == "costs" else reader.max_grade,
        topics=topics,
        indptr=frozen(indptr),
        docnos=frozen(lines.docno[order].astype(f"S{width}")),
        values=frozen(values if reader.form == "probabilities" else values[:, 0]),
        lines=total,
    )


def save_predictions(file: ArchiveFile, found: PredictionFile) -> None:
    """Write predicted grades to a path or binary file as npz, without pickles."""
    facts = {"max_grade": found.max_grade, "topics": found.topics, "lines": found.lines}
    arrays = {"indptr": found.indptr, "docnos": found.docnos, found.form: found.values}
    write_archive(file, FORMAT, facts, arrays)


def load_predictions(file: ArchiveFile) -> PredictionFile:
    """Read what `save_predictions` wrote; ValueError if it is damaged or something else."""
    facts, arrays = read_archive(file, FORMAT, ("indptr", "docnos"), optional=FORMS)
    indptr, docnos = (frozen(arrays.pop(name)) for name in ("indptr", "docnos"))
    form = "".join(arrays)  # the name of the one that is left
    return PredictionFile(
        form=form,
        max_grade=facts["max_grade"],
        topics=tuple(facts["topics"]),
        indptr=indptr,
        docnos=docnos,
        values=frozen(arrays.get(form, docnos[:0])),
        lines=facts["lines"],
    )
