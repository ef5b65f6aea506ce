"""The file of some estimates: what is told of them, and matrices between runs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.conf import settings
from numpy.typing import NDArray

from estimation.core.archives import read_archive
from estimation.models import EstimateSet

MATRICES_FORMAT = "evalsite-matrices-1"


def stored_facts(shown: EstimateSet) -> dict[str, Any]:
    """What is told beside the matrices: read once for all that a page asks of this row."""
    if shown.facts is None:
        shown.facts, _ = read_archive(_path(shown), MATRICES_FORMAT, ())
    return shown.facts


def matrices(
    shown: EstimateSet, wanted: Iterable[str], *, optional: Iterable[str] = ()
) -> dict[str, NDArray[Any]]:
    """By name; those that are optional may be missing."""
    return read_archive(_path(shown), MATRICES_FORMAT, wanted, optional=optional)[1]


def _path(shown: EstimateSet) -> Path:
    return Path(settings.MEDIA_ROOT) / shown.matrices_file
