"""Reports: files made by the worker from one estimate set, kept for download.

``estimates.csv`` and ``judgments.csv`` are for people and spreadsheets, ``estimates.json`` and
``qrels.txt`` for programs, ``report.html`` reads like the evaluation section of a paper.
``collection.zip`` is what estimates of further runs need.
"""

import json
import math
from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.template.loader import render_to_string

from estimation import report_data, selectors
from estimation.models import EstimateSet, Report, Round
from estimation.numbers import EstimateLine, estimate_lines, unknown_differences
from estimation.plans import NAMED
from estimation.services import files, quoting
from estimation.unknown import name_of, purpose_of
from judging import selectors as judging
from judging.errors import UserError
from judging.formats.csvfile import csv_lines
from judging.formats.qrels import qrels_lines
from judging.models import User
from judging.services import audit, jobs


def request(*, row: Round, by: User) -> None:
    """Has the worker make the reports of the round's latest estimates.

    Raises UserError ``nothing_to_report`` (409) before the first batch is complete.
    """
    if selectors.latest_estimates(row) is None:
        message = "There is nothing to report before the first batch is complete."
        raise UserError("nothing_to_report", message, status=409)
    with transaction.atomic():
        audit.record("ask for report", by=by, campaign=row.campaign_id, target=row)
        jobs.request("report", row.pk, campaign=row.campaign_id)


def make(job: jobs.Running) -> None:
    """The job: makes what is still missing of the latest estimate set's reports."""
    named = ("campaign", "pool", *NAMED)
    row = quoting.as_drawn(Round.objects.select_related(*named).get(pk=job.target))
    shown = selectors.latest_estimates(row)
    if shown is None:
        return
    there = set(shown.reports.values_list("name", flat=True))
    missing = [name for name in MAKERS if name not in there]
    for count, name in enumerate(missing):
        job.report(count / len(missing), name)
        made = MAKERS[name](row, shown)
        content = made.encode() if isinstance(made, str) else made
        kept = files.keep("reports", content)
        with transaction.atomic():
            job.fence()
            Report.objects.create(
                estimate_set=shown,
                name=name,
                file=kept,
                digest=kept.rsplit("/", 1)[-1],
                size=len(content),
            )


ESTIMATE_COLUMNS = (
    "run", "measure", "estimator", "primary", "value", "se", "df", "low", "high",
    "rank", "rank_low", "rank_high", "support", "sample_size", "late", "unknown", "unknown_why",
)  # fmt: skip


def estimates_csv(row: Round, shown: EstimateSet) -> str:
    """A value that is not known is an empty cell: who overlooks the reason finds no number."""
    lines = estimate_lines(row, shown)
    rows = [[getattr(line, column) for column in ESTIMATE_COLUMNS] for line in lines]
    return "".join(csv_lines(ESTIMATE_COLUMNS, rows))


def estimates_json(row: Round, shown: EstimateSet) -> str:
    """Everything a program needs to use the numbers and to know where they come from."""
    lines = estimate_lines(row, shown)
    document = {
        "campaign": row.campaign.slug,
        "round": row.number,
        "design": quoting.facts_of(row),
        "batches": shown.batches,
        "earlier_rounds": shown.earlier,
        "intervals": shown.intervals,
        "pairs": shown.pair_count,
        "labels": shown.label_count,
        "decided_by_organizer": shown.decided_count,
        "label_noise_measured": shown.noise_measured,
        "runs_left_out": shown.left_out,
        "computed": shown.created.isoformat(),
        "digest": shown.digest,
        "label_digest": shown.label_digest,
        "provenance": shown.provenance,
        "estimates": [
            {column: _finite(getattr(line, column)) for column in ESTIMATE_COLUMNS}
            for line in lines
        ],
        "pairwise": [_pairwise(row, shown, lines, name) for name in selectors.measures_of(row)],
    }
    return json.dumps(document, indent=1, allow_nan=False)


def _finite(value: Any) -> Any:
    """JSON has no infinity: unknown instead."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _pairwise(
    row: Round, shown: EstimateSet, lines: list[EstimateLine], measure: str
) -> dict[str, Any]:
    pairs = selectors.pairwise(shown, measure)
    purpose = purpose_of(row, shown, measure, {line.run for line in lines if line.late})
    return {
        "measure": measure,
        "runs": pairs.runs,
        "covariance": pairs.covariance.tolist(),
        "verdicts": pairs.verdicts.tolist(),
        "unknown": [[name_of(reason) for reason in line] for line in pairs.unknown.tolist()],
        "unknown_differences": [vars(found) for found in unknown_differences(pairs, purpose)],
    }


def qrels_txt(row: Round, shown: EstimateSet) -> str:
    """The judged pairs with their mean grade, rounded to a whole one, as trec_eval reads them.

    Judged pairs are not a sample of equal chances: scoring runs on this file with trec_eval is
    not an estimate. judgments.csv has the probabilities.
    """
    grades: dict[tuple[str, str], list[int]] = {}
    for line in _label_lines(shown):
        if line["other"]:  # a preference is no grade of a document
            continue
        grades.setdefault((line["topic"], line["docno"]), []).append(line["grade"])
    rows = [
        (topic, docno, math.floor(sum(given) / len(given) + 0.5))
        for (topic, docno), given in sorted(grades.items())
    ]
    return "".join(qrels_lines(rows))


JUDGMENT_COLUMNS = (
    "topic", "docno", "other", "assessor", "grade", "decided_by_organizer", "round", "probability",
    "batch", "draws",
)  # fmt: skip


def judgments_csv(row: Round, shown: EstimateSet) -> str:
    rows = [[line[c] for c in JUDGMENT_COLUMNS] for line in _label_lines(shown)]
    return "".join(csv_lines(JUDGMENT_COLUMNS, rows))


OF_DRAWS = {
    "topic": "pair__topic__topic_id",
    "docno": "pair__docno",
    "other": "pair__other",
    "round": "round__number",
    "probability": "probability",
    "batch": "batch_number",
    "draws": "count",
}
"""Columns of `_label_lines` that a draw gives, and where they stand: rounds hold much beside."""


def _label_lines(shown: EstimateSet) -> list[dict[str, Any]]:
    """One line per label and round that drew its pair, in canonical order."""
    draws = selectors.draws_behind(shown)
    by_pair: dict[int, list[dict[str, Any]]] = {}
    for pair, *values in draws.values_list("pair_id", *OF_DRAWS.values()):
        by_pair.setdefault(pair, []).append(dict(zip(OF_DRAWS, values, strict=True)))
    lines = [
        {
            **drawn,
            "assessor": label.assessor,
            "grade": label.grade,
            "decided_by_organizer": label.decided,
        }
        for label in judging.labels(draws.values("pair"))
        for drawn in by_pair[label.pair]
    ]
    order = ("topic", "docno", "other", "assessor", "round")
    return sorted(lines, key=lambda line: [line[name] for name in order])


def report_html(row: Round, shown: EstimateSet) -> str:
    context = report_data.report(row, shown)
    return render_to_string("estimation/report_document.html", {"report": context})


def collection_zip(row: Round, shown: EstimateSet) -> bytes:
    from estimation.services import collections  # noqa: PLC0415  (SciPy is for workers only)

    return collections.collection_zip(row, shown)


MAKERS: dict[str, Callable[[Round, EstimateSet], str | bytes]] = {
    Report.Name.ESTIMATES_CSV: estimates_csv,
    Report.Name.ESTIMATES_JSON: estimates_json,
    Report.Name.QRELS: qrels_txt,
    Report.Name.JUDGMENTS: judgments_csv,
    Report.Name.HTML: report_html,
    Report.Name.COLLECTION: collection_zip,
}
