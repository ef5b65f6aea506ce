"""What an exclusion left to be judged again, and what mends it: the same words wherever it is told.

Estimates rest on batches that are complete in a row from the first. Where work was excluded,
batches that were complete lack labels, and numbers that were there rest on fewer batches or are
gone until others have judged the freed pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from judging.models import Batch

NAMED = 3
"""Of so many batches it is told of each how many pairs lack labels."""
SERVED = (Batch.State.OPEN, Batch.State.HELD)


@dataclass(frozen=True)
class FreedBatch:
    """A batch that was complete, and the ``pairs`` of it that lack labels now."""

    number: int
    pairs: int


@dataclass(frozen=True)
class JudgedAgain:
    """``used``: batches that the numbers rest on meanwhile; ``excluded``: whose work is;
    ``still``: why nobody is handed anything meanwhile, as the end of a sentence."""

    freed: Sequence[FreedBatch]
    used: int
    excluded: Sequence[str]
    still: str = ""

    @property
    def pairs(self) -> int:
        return sum(each.pairs for each in self.freed)

    @property
    def what(self) -> str:
        """What happened, and which places are free: a line, however many batches there are."""
        why = f"The work of {_listed(self.excluded)} is excluded" if self.excluded else ""
        places = f"{_pairs(self.pairs)} of {len(self.freed)} batches"
        if len(self.freed) <= NAMED:
            found = [f"{_pairs(each.pairs)} of batch {each.number}" for each in self.freed]
            places = _listed(found)
        verb = "lacks" if self.pairs == 1 else "lack"
        said = f"{places} {verb} labels"
        return f"{why}, so that {said}." if why else f"{said[0].upper()}{said[1:]}."

    @property
    def until(self) -> str:
        """What the numbers are until then."""
        if not self.used:
            return "Until others have judged them, there are no estimates."
        first = "batch" if self.used == 1 else f"{self.used} batches"
        return f"Until others have judged them, the numbers rest on the first {first} alone."

    @property
    def mend(self) -> str:
        if self.still:
            them = "it" if self.pairs == 1 else "them"
            return (
                f"Nobody is handed {them} while {self.still}: have it go on, or decide {them} "
                "yourself in the queue."
            )
        pairs = "This pair is" if self.pairs == 1 else "These pairs are"
        return (
            f"{pairs} handed out before all others, to assessors who have not judged them: invite "
            "somebody if nobody is left, or decide them yourself in the queue."
        )

    @property
    def text(self) -> str:
        return f"{self.what} {self.until} {self.mend}"


def _pairs(count: int) -> str:
    return f"{count:,} pair{'' if count == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
