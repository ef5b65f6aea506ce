"""What is declared of a kind of report file; `table` has all of them."""

from collections.abc import Callable
from dataclasses import dataclass

from estimation.models import EstimateSet, Round


@dataclass(frozen=True)
class ReportKind:
    """A file that is made of one estimate set.

    ``name`` is that of the file; ``purpose`` says in a sentence what it is good for; ``is_page``:
    it is a page of HTML that the site shows as well.
    """

    name: str
    purpose: str
    content_type: str
    make: Callable[[Round, EstimateSet], str | bytes]
    is_page: bool = False
