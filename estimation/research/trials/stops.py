"""Rounds that stop by a rule, on trial: when they do, and whether what they are told then is true.

The rule is looked at, look by look, with the numbers that hold at all looks at once, as in the
application; and, as the broken twin, with those that hold at one look that was fixed beforehand.
What counts is what is told at the look at which it comes true, or at the last one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from estimation.research.trials.honesty import Claims, Honesty, check, honesty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from estimation.core.planning.stopping import StoppingRule
    from estimation.core.rounds.results import Evaluation
    from estimation.research.trials.honesty import Checked, Truth


@dataclass(frozen=True, eq=False)
class End:
    """The end of a round with a rule: whether it came before the last look, and what is told."""

    early: bool
    judged_pairs: int
    claims: Claims

    @classmethod
    def of(cls, rule: StoppingRule, looks: Sequence[Evaluation]) -> End:
        """Return the first look at which the rule holds, or the last."""
        last = len(looks) - 1
        at = next((n for n, each in enumerate(looks) if rule.holds(each.results[0])), last)
        found = looks[at]
        return cls(at < last, found.judged_pairs, Claims.of(found.results[0]))


@dataclass(frozen=True, eq=False)
class Ends:
    """Both ends of a trial: by what holds at all looks, and by what holds at one."""

    told: End
    one_look: End

    @classmethod
    def of(
        cls, rule: StoppingRule, anytime: Sequence[Evaluation], fixed: Sequence[Evaluation]
    ) -> Ends:
        """Return those of the looks of a trial."""
        return cls(End.of(rule, anytime), End.of(rule, fixed))


@dataclass(frozen=True)
class Stopping:
    """What a rule did over all trials.

    Attributes
    ----------
    early : float
        Share of the trials that stopped before the last look.
    judged_pairs : float
        Distinct pairs that were judged until then, on average.
    honesty : Honesty
        Of what was told then.
    """

    early: float
    judged_pairs: float
    honesty: Honesty


@dataclass(frozen=True)
class Stops:
    """The same of both: as it is told, and of the twin that looks at numbers for one look."""

    told: Stopping
    one_look: Stopping


def stops(trials: Sequence[tuple[Ends, Checked, Checked]], runs: Sequence[str]) -> Stops:
    """Sum up trials, each with what became of the claims of both of its ends."""
    told = [(each.told, checked) for each, checked, _ in trials]
    one_look = [(each.one_look, checked) for each, _, checked in trials]
    return Stops(_summed(told, runs), _summed(one_look, runs))


def checked(ends: Ends, truth: Truth) -> tuple[Ends, Checked, Checked]:
    """Hold what both ends tell against the truth."""
    return ends, check([ends.told.claims], truth), check([ends.one_look.claims], truth)


def _summed(ends: Sequence[tuple[End, Checked]], runs: Sequence[str]) -> Stopping:
    return Stopping(
        early=float(np.mean([end.early for end, _ in ends])),
        judged_pairs=float(np.mean([end.judged_pairs for end, _ in ends])),
        honesty=honesty([each for _, each in ends], runs),
    )
