"""What is said of values and differences that are not known: why, and what would mend it.

The one place for these words: pages, REST answers, reports and ``manage.py score`` take them from
here. What is not known is decided in `estimation.core.inference.unknown`.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from estimation.core.inference.unknown import Reason
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import Measure, parse_measure
from estimation.models import EstimateSet, Round
from judging.models import Campaign

NAMES = {int(reason): reason.name.lower() for reason in Reason if reason != Reason.KNOWN}
"""What a reason is called in answers and files."""
CHOICES = [(name, name) for name in NAMES.values()]
ENOUGH_RELEVANT, MORE_FOR = 30, {("active", "Rprec"): 45}
"""Relevant documents found per topic, from which on the intervals of ratio measures hold."""
FURTHER = "Further batches, or a new round with a larger budget, would tell."
ANEW = "A new round with a larger budget would tell."
OUT_OF_THE_RACE = "few judgments go to runs that are behind in the race for the best."
LATER = "too few documents of runs that joined after the draw were judged. A new round would tell."


def hoped_if(preview: Mapping[str, Any]) -> str:
    """On what condition the hoped end of a range comes that a preview tells."""
    return "at best" if preview.get("learns") else "if all is as the prior expects"


def name_of(reason: int) -> str | None:
    """What the reason is called; None if there is nothing unknown."""
    return NAMES.get(reason)


def continued(why: str) -> str:
    """A reason as it goes on after "is" or "are"."""
    return why[:1].lower() + why[1:]


def enough_relevant(measure: Measure, *, method: str) -> int:
    return MORE_FOR.get((method, measure.name), ENOUGH_RELEVANT)


@dataclass(frozen=True)
class Purpose:
    """What a sample was made for, and what that leaves out.

    ``goal`` and the tags ``run`` and ``baseline`` are a round's; ``late`` are tags of runs that no
    goal knew of, ``relevant_found`` the median of a topic. Of a round that has ``ended`` no batch
    comes any more.
    """

    goal: str
    measure: Measure
    run: str = ""
    baseline: str = ""
    late: Collection[str] = ()
    relevant_found: float | None = None
    enough: int = ENOUGH_RELEVANT
    ended: bool = False

    def of_value(self, reason: int, tag: str) -> str | None:
        """Why the value of a run is not known; None if it is."""
        if reason == Reason.TOO_LITTLE:
            return self._value(tag)
        return self._few_relevant() if reason else None

    def of_difference(self, reason: int, first: str, second: str) -> str | None:
        """Why the difference of two runs is not known; None if it is."""
        if reason == Reason.TOO_LITTLE:
            return self._difference({first, second})
        return self._few_relevant() if reason else None

    @property
    def made_for(self) -> str:
        compared = f"{self.run} and {self.baseline}" if self.run else f"runs with {self.baseline}"
        what = (
            f"to measure {self.run}" if self.goal == Round.Goal.SINGLE else f"to compare {compared}"
        )
        return f"this round was made {what}"

    @property
    def named(self) -> set[str]:
        """The runs that the goal names one by one."""
        return {tag for tag in (self.run, self.baseline) if tag}

    def _value(self, tag: str) -> str:
        told = "A round with the goal absolute would tell."
        if self.goal in (Round.Goal.SINGLE, Round.Goal.PAIR) and tag not in self.named:
            return f"Not known: {self.made_for}; for the other runs it sampled too little. {told}"
        if tag in self.late:
            return f"Not known: {LATER}"
        if self.goal not in (Round.Goal.SINGLE, Round.Goal.ABSOLUTE):
            return f"Not known: this round was made for differences, not for values. {told}"
        what = f"{self._pairs_of}documents"
        return f"Not known yet: too few of the {what} behind this value were judged. {self._mend}"

    def _difference(self, compared: set[str]) -> str:
        if self._for_other_differences(compared):
            what = "differences" if self.goal == Round.Goal.SINGLE else "other differences"
            return (
                f"Not known: {self.made_for}; for {what} it sampled too little. "
                "A round with the goal ranking would tell."
            )
        if compared & set(self.late):
            return f"Not known: {LATER}"
        if self.goal == Round.Goal.WINNER:
            return f"Not known yet: {OUT_OF_THE_RACE} A round with the goal ranking would tell."
        few = f"too few {self._pairs_of or 'relevant '}documents tell the two apart so far"
        return f"Not known yet: {few}. {self._mend}"

    @property
    def _mend(self) -> str:
        return ANEW if self.ended else FURTHER

    @property
    def _pairs_of(self) -> str:
        """Of a preference it is two documents that are judged, and neither is relevant by it."""
        return "pairs of " if self.measure.family == "preference" else ""

    def _for_other_differences(self, compared: set[str]) -> bool:
        if self.goal == Round.Goal.PAIR:
            return compared != self.named
        if self.goal == Round.Goal.BASELINE:
            return self.baseline not in compared
        return self.goal == Round.Goal.SINGLE

    def _few_relevant(self) -> str:
        cutoff = self.measure.cutoff or 10
        instead = f"judge more, or use P@{cutoff} or DCG@{cutoff}"
        needs = f"Not known: {self.measure} needs relevant documents to count from"
        found = self.relevant_found
        if found is None or found >= self.enough:
            return f"{needs}, and too few were found; {instead}."
        were = "was" if found == 1 else "were"
        return (
            f"{needs}; {found:g} {were} found per topic (median); about {self.enough} would do, "
            f"so {instead}."
        )


def purpose_of(row: Round, shown: EstimateSet, measure: str, late: Iterable[str]) -> Purpose:
    """What the sample of a round was made for; ``late`` are the runs that came after the draw."""
    parsed = parse_measure(measure)
    aims = row.sampling.for_goal
    return Purpose(
        goal=row.goal if aims else Round.Goal.ABSOLUTE,
        measure=parsed,
        run=row.run.tag if aims and row.run else "",
        baseline=row.baseline.tag if aims and row.baseline else "",
        late=frozenset(late),
        relevant_found=shown.relevant_found,
        enough=enough_relevant(parsed, method=row.method),
        ended=row.has_ended,
    )


def is_bounded(measure: str) -> bool:
    """Whether values that take documents out of reach for not relevant are lower bounds; ratios may
    be off either way."""
    return parse_measure(measure).family != "ratio"


def largest_value(campaign: Campaign, measure: str, *, depth: int) -> float:
    """A limit above which no run's value lies; infinite for a measure without values on the
    campaign's scale, which is told elsewhere."""
    try:
        return parse_measure(measure).largest_value(max_grade=campaign.max_grade, depth=depth)
    except MeasureError:
        return math.inf
