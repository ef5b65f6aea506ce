"""What a drill counts, and the table that `make drills` prints."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support.crowd import Assessor
from tests.support.journal import Said, Tables, contradictions, differences

COLUMNS = ("faults", "requests", "acknowledged", "lost", "doubled", "above cap", "mismatches")
MUST_BE_ZERO = COLUMNS[3:]


@dataclass
class Tally:
    """The outcome of one drill. ``notes`` say what else was seen."""

    drill: str
    faults: int = 0
    requests: int = 0
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    above_cap: int = 0
    mismatches: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def counts(self) -> tuple[int, ...]:
        return (
            *(self.faults, self.requests, self.acknowledged),
            *(self.lost, self.doubled, self.above_cap, self.mismatches),
        )

    @property
    def passed(self) -> bool:
        return not any(self.counts[COLUMNS.index(name)] for name in MUST_BE_ZERO)

    def expect(self, held: bool, sentence: str) -> None:
        """Notes what was seen; if it is not what must be, it is a mismatch."""
        self.notes.append(sentence if held else f"WRONG: {sentence}")
        self.mismatches += not held

    def compare(self, said: Sequence[Said], tables: Tables) -> None:
        """Holds what clients know against what is stored, and the tables against each other."""
        self.acknowledged = sum(one.acknowledged for one in said)
        for line in (*differences(said, tables.judgments), *contradictions(tables)):
            self._count(line)

    def _count(self, line: str) -> None:
        match line.split(":", maxsplit=1)[0]:
            case "lost":
                self.lost += 1
            case "doubled" | "judged twice":
                self.doubled += 1
            case "more labels than wanted":
                self.above_cap += 1
            case _:
                self.mismatches += 1
        if len(self.notes) < 30:
            self.notes.append(f"WRONG: {line}")

    def add_requests(self, people: Sequence[Assessor]) -> None:
        statuses: Counter[int] = sum((person.statuses for person in people), Counter())
        self.requests += statuses.total()
        told = (f"{n} × {status or 'no answer'}" for status, n in sorted(statuses.items()))
        cut = sum(person.cut for person in people)
        self.notes.append("answers: " + ", ".join(told) + f"; {cut} requests cut off")


def table(tallies: Sequence[Tally]) -> str:
    """One line for each drill, and their sum."""
    total = Tally(
        "total", *(sum(column) for column in zip(*(t.counts for t in tallies), strict=True))
    )
    rows = [("drill", *COLUMNS)]
    rows += [(t.drill, *(f"{n:,}" for n in t.counts)) for t in (*tallies, total)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_line(row, widths) for row in rows]
    rule = "-" * len(lines[0])
    return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1]])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        row[0].ljust(widths[0]),
        *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
    ]
    return "  ".join(cells)
