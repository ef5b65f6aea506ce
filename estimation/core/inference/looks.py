"""Numbers that are looked at after every batch: how much of the error each look may spend.

A round has a number B of batches that was fixed before the draw, so that there are B looks at most.
What is told at look b is worked out at the confidence 1 - a_b, where the a_b add up to the error
alpha of all looks together:

    a_b = alpha * b / (B (B - 1))   for b < B,        a_B = alpha / 2.

P(anything is false at any look) <= sum_b P(it is false at look b) <= sum_b a_b = alpha (Boole),
*whatever the looks have to do with one another*: so it holds for every way of sampling, for values
as for verdicts and possible ranks, and however it is decided when to stop. What is asked of a look
is only what is asked of one look, at a higher confidence. The first batch end is the first look.

Half is kept for the end, where most will be told; there intervals are about 1.14 times as wide as
for one look (normal quantiles 2.24 and 1.96). What comes before gets more the later it is: few
judgments tell little, and limits are least exact there, far out in the tails as nowhere else.

The a_b follow from b and B alone, which nobody's judgments can move. Levels that hung on what was
found (on an estimated variance, on how many were relevant) would be chosen together with the
numbers that they are to guard: where chance has made a value look certain it would also be given
more of the error, and the sum of what was spent would be no bound for what is false. For the same
reason B is that of the design and not of the batches that were judged in the end: a round that
stops early has spent what it had spent.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import check_whole

AT_THE_END = 0.5  # share of the error that is kept for the last of several looks


@dataclass(frozen=True)
class Look:
    """One of the looks that were planned before anything was drawn.

    Attributes
    ----------
    number : int
        Which it is: the number of complete batches, from 1.
    planned : int
        B, how many there will be if the round ends as planned.

    Raises
    ------
    ValueError
        If `number` is not between 1 and `planned`.

    Examples
    --------
    >>> [round(Look(each, 3).share, 4) for each in (1, 2, 3)]
    [0.1667, 0.3333, 0.5]
    """

    number: int
    planned: int

    def __post_init__(self) -> None:
        check_whole(self.planned, name="planned looks")
        check_whole(self.number, name="look", most=self.planned, of="planned looks")

    @property
    def share(self) -> float:
        """Share of the error that this look may spend; those of all looks add up to 1."""
        if self.planned == 1:
            return 1.0
        if self.number == self.planned:
            return AT_THE_END
        earlier = self.planned * (self.planned - 1) / 2.0
        return (1.0 - AT_THE_END) * self.number / earlier

    def confidence(self, overall: float) -> float:
        """Return the confidence of this look alone, for one of all looks together.

        Of the only look it is that one, to the last bit.
        """
        return overall if self.planned == 1 else 1.0 - (1.0 - overall) * self.share
