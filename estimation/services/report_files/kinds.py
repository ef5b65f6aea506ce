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


@dataclass(frozen=True)
class ReportKind:
    """A file that is made of one estimate set.

    ``name`` is that of the file; ``purpose`` says in a sentence what it is good for; ``group``:
    among which files it stands in lists; ``is_page``: it is a page of HTML that the site shows as
    well.
    """

    name: str
    purpose: str
    content_type: str
    make: Callable[[Round, EstimateSet], str | bytes]
    group: Group
    is_page: bool = False
