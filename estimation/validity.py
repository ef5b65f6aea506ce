"""What is said of when intervals, verdicts and possible ranks hold: at every look, or at the end.

The one place for these words: pages, REST answers, reports and ``manage.py score`` take them from
here. What holds is worked out in `estimation.core.inference.looks`.
"""

from dataclasses import dataclass

from estimation.core.inference.looks import Look
from estimation.models import CONFIDENCE, EstimateSet, Round

ANYTIME, FIXED = "anytime", "fixed-time"
KINDS = [(ANYTIME, "at all planned looks at once"), (FIXED, "at one look")]


@dataclass(frozen=True)
class Validity:
    """When everything that is told holds.

    ``look`` of ``looks`` planned ones; ``looks`` is None where nobody knows how many were planned.
    ``why`` says it in a sentence.
    """

    kind: str
    look: int | None
    looks: int | None
    why: str


def anytime(look: Look, *, confidence: float = CONFIDENCE) -> Validity:
    """Of a round that has batches left, or whose last one might not have come."""
    if look.planned == 1:  # the only look has all of the error: a rule has cost nothing
        return at_the_end(1, confidence=confidence)
    others = "that has ended as planned" if look.number < look.planned else "without a rule to stop"
    why = (
        f"Valid at every look: intervals, verdicts and possible ranks keep their "
        f"{_percent(confidence)} over all {look.planned} planned looks, of which this is number "
        f"{look.number}, so that you may look after every batch and stop at any; they are wider "
        f"than those of a round {others}."
    )
    return Validity(ANYTIME, look.number, look.planned, why)


def at_the_end(looks: int, *, confidence: float = CONFIDENCE) -> Validity:
    """Of a round of which all batches are complete."""
    batches = "its only batch" if looks == 1 else f"its {looks} batches"
    why = (
        f"Valid at this look: intervals, verdicts and possible ranks have their "
        f"{_percent(confidence)} at the end that was planned before the draw, after {batches}; "
        "they make no allowance for having looked before."
    )
    return Validity(FIXED, None, looks, why)


def of_a_file(look: Look | None, *, confidence: float) -> Validity:
    """Of a judged collection; one of an earlier version does not say of batches to come."""
    if look is not None:
        return anytime(look, confidence=confidence)
    why = (
        "Valid at this look: the collection says of no batches to come, so that intervals, "
        f"verdicts and possible ranks have their {_percent(confidence)} at the end of the round as "
        "it was planned before the draw; collections of an earlier evalsite may be of rounds that "
        "had not ended."
    )
    return Validity(FIXED, None, None, why)


def _percent(confidence: float) -> str:
    return f"{100 * confidence:.4g} %"


AT_ONE_LOOK = Validity(
    FIXED,
    None,
    None,
    "Valid at one look: intervals, verdicts and possible ranks have their 95 % if nobody looked "
    "before or stopped because of what was seen; they are of an earlier evalsite, and the next "
    "batch brings ones that are valid at every look.",
)


def validity_of(shown: EstimateSet) -> Validity:
    """When the numbers of estimates hold."""
    if shown.look:
        return anytime(Look(shown.look, shown.looks))
    if shown.looks:
        return at_the_end(shown.looks)
    return at_the_end(shown.batches) if _is_the_end(shown) else AT_ONE_LOOK


def _is_the_end(shown: EstimateSet) -> bool:
    """Of estimates of an earlier version, whether their round was complete."""
    row = shown.round
    return row.state == Round.State.COMPLETE and shown.batches == row.round_batches.count()
