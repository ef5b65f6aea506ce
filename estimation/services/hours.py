"""Rounds that keep to hours: what they are, what was used of them, and what is left pays for.

What is measured are judgments of complete batches, by the clock alone, and it is looked at once,
when the next batch is planned: why that biases nothing is said in `core.rounds.adaptive.hours`.
What was seen then stays with the round, however times change afterwards.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from estimation.core.data.pool import Pool
from estimation.core.rounds.adaptive.hours import Hours, TimeTaken
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.rounds import PlannedRound
from estimation.core.sampling.designs import Design
from estimation.models import Round
from estimation.services.reaching import SECONDS, hours_each
from estimation.services.sittings import hours_of, sittings_of
from judging.times import work_time


@dataclass(frozen=True)
class HoursSoFar:
    """How fast people are, and how many ``pairs`` were drawn by then, in all that is judged."""

    hours: Hours
    taken: TimeTaken
    pairs: float

    @property
    def budget(self) -> float:
        return self.hours.budget(self.taken, pairs=self.pairs)

    def told(self, *, batch: int, expected: float) -> dict[str, Any]:
        """What stays with the round; ``expected``: pairs of all batches, as planned now."""
        return {
            "batch": batch,
            "judgments": self.taken.judgments,
            "timed": self.taken.timed,
            "seconds": self.hours.pace(self.taken),
            "hours": self.hours.seconds / SECONDS,
            "used": self.hours.used(self.taken) / SECONDS,
            "budget": self.budget,
            "expected": expected,
        }


def hours_so_far(row: Round, pool: Pool, drawn: PlannedRound) -> HoursSoFar | None:
    """Measured by all judgments of a round so far; None where it does not keep to hours."""
    if not (row.keeps_hours and row.drawn and isinstance(drawn, AdaptiveRound)):
        return None
    pairs = np.array(row.draws.order_by().values_list("pair", flat=True), dtype=np.int64)
    taken = TimeTaken(*work_time(row.campaign, pairs, since=row.drawn))
    return HoursSoFar(hours_kept(row, pool, drawn.design.design), taken, drawn.spent)


def hours_kept(row: Round, pool: Pool, design: Design) -> Hours:
    """The hours that the preview tells of the budget, topics that are read included."""
    chance = design.inclusion()
    pairs = float(chance.sum())
    reading = hours_of(row, sittings_of(row, pool, chance, batches=design.batches))
    seconds = (pairs * hours_each(row) + reading) * SECONDS
    return Hours(seconds, seconds / (pairs * row.labels_each), row.labels_each)
