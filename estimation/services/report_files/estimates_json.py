"""Everything a program needs to use the numbers and to know where they come from."""

import json
import math
from typing import Any

from estimation import report_data, selectors
from estimation.models import EstimateSet, Round
from estimation.numbers import EstimateLine, estimate_lines, unknown_differences
from estimation.services import quoting
from estimation.services.report_files.estimates_csv import COLUMNS
from estimation.services.report_files.kinds import ReportKind
from estimation.unknown import name_of, purpose_of
from estimation.validity import validity_of
from judging.services import pseudonyms


def make(row: Round, shown: EstimateSet) -> str:
    lines = estimate_lines(row, shown)
    document = {
        "campaign": row.campaign.slug,
        "round": row.number,
        "design": quoting.facts_of(row),
        "batches": shown.batches,
        "earlier_rounds": shown.earlier,
        "intervals": shown.intervals,
        "validity": vars(validity_of(shown)),
        "pairs": shown.pair_count,
        "labels": shown.label_count,
        "decided_by_organizer": shown.decided_count,
        "label_noise_measured": shown.noise_measured,
        "runs_left_out": shown.left_out,
        "runs_withdrawn": shown.withdrawn,
        "computed": shown.created.isoformat(),
        "digest": shown.digest,
        "label_digest": shown.label_digest,
        "provenance": shown.provenance,
        "estimates": [
            {column: _finite(getattr(line, column)) for column in COLUMNS} for line in lines
        ],
        "exclusions": _exclusions(row, shown),
        "pairwise": [_pairwise(row, shown, lines, name) for name in selectors.measures_of(row)],
    }
    return json.dumps(document, indent=1, allow_nan=False)


def _exclusions(row: Round, shown: EstimateSet) -> dict[str, Any]:
    """Whose work counts nowhere, by pseudonyms, and what the numbers would be if it counted; null
    where that is not known."""
    lines, figure = report_data.excluded_work(row), report_data.without_exclusions(row, shown)
    called = pseudonyms.by_name(row.campaign, [each.who for each in lines])
    known = figure is not None and figure.known
    return {
        "in_force": [{**vars(each), "who": called[each.who]} for each in lines],
        "if_it_counted": selectors.label_quality(shown)["excluded"]["ways"] if known else None,
    }


def _finite(value: Any) -> Any:
    """JSON has no infinity: unknown instead."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _pairwise(
    row: Round, shown: EstimateSet, lines: list[EstimateLine], measure: str
) -> dict[str, Any]:
    pairs = selectors.pairwise(shown, measure)
    purpose = purpose_of(row, shown, measure, {line.run for line in lines if line.late})
    ranked = [line.run for line in lines if (line.measure, line.rank is None) == (measure, False)]
    return {
        "measure": measure,
        "runs": pairs.runs,
        "tiers": [tier or None for tier in pairs.tiers(ranked).tolist()],
        "covariance": pairs.covariance.tolist(),
        "verdicts": pairs.verdicts.tolist(),
        "negligible": pairs.equivalence.within if pairs.equivalence else None,
        "equivalent": pairs.equivalent.astype(int).tolist(),
        "unknown": [[name_of(reason) for reason in line] for line in pairs.unknown.tolist()],
        "unknown_differences": [vars(found) for found in unknown_differences(pairs, purpose)],
    }


ESTIMATES_JSON = ReportKind(
    "estimates.json",
    "The same with covariances, verdicts and the design.",
    content_type="application/json",
    make=make,
    group="For programs",
)
