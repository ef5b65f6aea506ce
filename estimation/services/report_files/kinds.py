"""What is declared of a kind of report file; `table` has all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from estimation.models import EstimateSet, Round
from judging.errors import UserError

Group = Literal["To read", "For a paper", "Numbers", "Judgments", "For programs"]
GROUPS: tuple[Group, ...] = get_args(Group)
"""In the order of lists."""


class NotForThisRound(UserError):
    """There is no such file of a round like this, or on this site, and that is no fault.

    The message says why, and what would help; it is kept where the file would be.
    """

    def __init__(self, message: str) -> None:
        super().__init__("not_for_this_round", message, status=409)


NO_GRADE = "Not of this round: a preference is no grade of one document."
WITHOUT_ONE_CHANCE = {
    "batches": "the probabilities of every batch followed from the judgments before it, so that "
    "no pair has one probability that a column could hold. collection.zip has all of them",
    "topics": "whole topics were drawn, whose pairs came together or not at all",
}
"""Ways of sampling whose pairs have no probability of their own to put beside them."""


def no_one_chance(row: Round) -> str:
    """Why no file has one probability for each pair of a round; nothing where there may be one."""
    why = WITHOUT_ONE_CHANCE.get(row.sampling.draws)
    return f"Not of this round: {why}." if why else ""


@dataclass(frozen=True)
class ReportKind:
    """A file that is made of one estimate set.

    ``name`` is that of the file; ``purpose`` says in a sentence what it is good for; ``group``:
    among which files it stands in lists; ``is_page``: it is a page of HTML that the site shows as
    well. ``why_not``: why there can be none of a round, as far as that is known beforehand.
    """

    name: str
    purpose: str
    content_type: str
    make: Callable[[Round, EstimateSet], str | bytes]
    group: Group
    is_page: bool = False
    why_not: Callable[[Round], str] = lambda _row: ""
