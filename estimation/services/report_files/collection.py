"""What estimates of further runs need."""

from estimation.models import EstimateSet, Round
from estimation.services.report_files.kinds import ReportKind


def make(row: Round, shown: EstimateSet) -> bytes:
    from estimation.services import collections  # noqa: PLC0415  (SciPy is for workers only)

    return collections.collection_zip(row, shown)


COLLECTION = ReportKind(
    "collection.zip",
    "Judgments and probabilities, from which “manage.py score” estimates further runs.",
    content_type="application/zip",
    make=make,
    group="For programs",
)
