"""Hours of work as the budget of an adaptive round: how many pairs they pay for, as of now.

Before each batch the pace is measured from the judgments of the batches before it, and the pairs of
the batches that are left become as many as the hours that are left pay for. Of few judgments little
is known, so that the pace that was assumed counts as much as `ASSUMED` of them:

    pace = (ASSUMED a + T) / (ASSUMED + m),

a being the assumed seconds of a judgment and T the seconds of the m judgments whose time is known.

Why this biases nothing: how long the judgments of earlier batches took is known before a batch is
drawn, as their grades are, and the chances of a batch may hang on both (`sampling`). People may
well take longer for relevant documents; what a batch says of every pair is right on average for any
chances above 0. The number of batches stays what it was. No batch ends sooner, and no round,
because its own judgments were slow: that would be biased.
"""

from __future__ import annotations

from dataclasses import dataclass

ASSUMED = 2.0  # judgments that the assumed pace counts as much as


@dataclass(frozen=True)
class TimeTaken:
    """What is known of the time that judgments took.

    Attributes
    ----------
    judgments : int
        All that took time.
    timed : int
        Those of which it is known.
    seconds : float
        Of these, in all.
    """

    judgments: int
    timed: int
    seconds: float


@dataclass(frozen=True)
class Hours:
    """The hours that a round keeps to, and what was assumed of them.

    Attributes
    ----------
    seconds : float
        Of all judgments of the round.
    each : float
        That a judgment was assumed to take, above 0.
    labels : float
        Judgments that a pair gets, on average.

    Raises
    ------
    ValueError
        If one of these is not above 0.
    """

    seconds: float
    each: float
    labels: float = 1.0

    def __post_init__(self) -> None:
        for name in ("seconds", "each", "labels"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)}")

    def pace(self, taken: TimeTaken) -> float:
        """Return the seconds of a judgment, by those so far and what was assumed.

        >>> Hours(36_000.0, 30.0).pace(TimeTaken(8, 8, 8 * 80.0))
        70.0
        """
        return (ASSUMED * self.each + taken.seconds) / (ASSUMED + taken.timed)

    def used(self, taken: TimeTaken) -> float:
        """Return the seconds so far; judgments of unknown time are taken to keep the pace."""
        return taken.seconds + (taken.judgments - taken.timed) * self.pace(taken)

    def budget(self, taken: TimeTaken, *, pairs: float) -> float:
        """Return how many pairs are paid for in all, those judged so far included.

        >>> Hours(36_000.0, 30.0).budget(TimeTaken(98, 98, 5940.0), pairs=98)
        599.0
        """
        left = max(self.seconds - self.used(taken), 0.0)
        return pairs + left / (self.pace(taken) * self.labels)
