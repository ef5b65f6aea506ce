"""Runs whose scores measures of predictions cannot take."""

from estimation.formats.run_columns import score_fault
from estimation.material import taking_part
from estimation.models import Run
from estimation.services import files
from judging.models import Campaign


def fault_of(run: Run, *, depth: int) -> str | None:
    """Why rounds of predictions down to a depth cannot take the run; None if they can."""
    return score_fault(files.path_of(run.file), depth=depth)


def first_fault(campaign: Campaign, *, depth: int) -> str | None:
    """The same for the first run of the campaign that they cannot take."""
    faults = (fault_of(run, depth=depth) for run in taking_part(campaign).order_by("tag"))
    return next(filter(None, faults), None)
