"""Numbers as answers and files give them: what is not known comes without its number.

Its interval and its possible ranks stay: they hold, and are wide.
"""

from dataclasses import dataclass

import numpy as np
from django.db.models import QuerySet

from estimation.models import Estimate, EstimateSet, Round
from estimation.selectors import Pairwise
from estimation.unknown import Purpose, name_of, purpose_of


@dataclass(frozen=True)
class EstimateLine:
    """A run's value of a measure by an estimator; without value, error and rank if not known."""

    run: str
    measure: str
    estimator: str
    primary: bool
    value: float | None
    se: float | None
    df: float | None
    low: float
    high: float
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    support: float
    sample_size: float
    late: bool
    unknown: str | None
    unknown_why: str | None


def estimate_lines(
    row: Round, shown: EstimateSet, rows: QuerySet[Estimate] | None = None
) -> list[EstimateLine]:
    """The estimates of a set, or some of them, by measure, the primary estimator first, by rank."""
    chosen = Estimate.objects.filter(estimate_set=shown) if rows is None else rows
    found = list(chosen.select_related("run"))
    late = {estimate.run.tag for estimate in found if estimate.late}
    measures = {estimate.measure for estimate in found}
    purposes = {measure: purpose_of(row, shown, measure, late) for measure in measures}
    return [_line(estimate, purposes[estimate.measure]) for estimate in sorted(found, key=_place)]


def _place(estimate: Estimate) -> tuple[str, bool, str, bool, int, str]:
    known = not estimate.unknown
    rank = (estimate.rank or 0) if known else 0
    by = estimate.measure, not estimate.primary, estimate.estimator
    return (*by, not known, rank, estimate.run.tag)


def _line(estimate: Estimate, purpose: Purpose) -> EstimateLine:
    known, tag = not estimate.unknown, estimate.run.tag
    return EstimateLine(
        run=tag,
        measure=estimate.measure,
        estimator=estimate.estimator,
        primary=estimate.primary,
        value=estimate.value if known else None,
        se=estimate.se if known else None,
        df=estimate.df if known else None,
        low=estimate.low,
        high=estimate.high,
        rank=estimate.rank if known else None,
        rank_low=estimate.rank_low,
        rank_high=estimate.rank_high,
        support=estimate.support,
        sample_size=estimate.sample_size,
        late=estimate.late,
        unknown=name_of(estimate.unknown),
        unknown_why=purpose.of_value(estimate.unknown, tag),
    )


@dataclass(frozen=True)
class UnknownDifferences:
    """Differences that are not known for the same reason, each as the tags of its two runs."""

    unknown: str
    unknown_why: str
    pairs: list[tuple[str, str]]


def unknown_differences(pairs: Pairwise, purpose: Purpose) -> list[UnknownDifferences]:
    """The differences that are not known, by what is said of them."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for i, j in np.argwhere(np.triu(pairs.unknown)).tolist():
        first, second, reason = pairs.runs[i], pairs.runs[j], int(pairs.unknown[i, j])
        said = name_of(reason) or "", purpose.of_difference(reason, first, second) or ""
        found.setdefault(said, []).append((first, second))
    return [UnknownDifferences(*said, between) for said, between in found.items()]
