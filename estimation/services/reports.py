"""Reports: files made by the worker from one estimate set, kept for download.

What files there are, and how each is made, is in `report_files`.
"""

from typing import Any

from django.db import transaction

from estimation import selectors
from estimation.models import EstimateSet, Report, Round
from estimation.plans import NAMED
from estimation.services import files, quoting
from estimation.services.report_files.kinds import NotForThisRound
from estimation.services.report_files.table import REPORTS
from judging.errors import UserError
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
    """The job: makes what is still missing of the latest estimate set's reports.

    One that cannot be made keeps none of the others from being made: raises its UserError after
    them. Where there is none of a round like this, a row says why in its place; asked again, it
    is tried again, as what was missing may be there by then.
    """
    named = ("campaign", "pool", *NAMED)
    row = quoting.as_drawn(Round.objects.select_related(*named).get(pk=job.target))
    shown = selectors.latest_estimates(row)
    if shown is None:
        return
    there = set(shown.reports.filter(refused="").values_list("name", flat=True))
    missing = [name for name in REPORTS if name not in there]
    refused: UserError | None = None
    for count, name in enumerate(missing):
        job.report(count / len(missing), name)
        try:
            made = REPORTS[name].make(row, shown)
        except NotForThisRound as why:
            _keep(job, shown, name, refused=why.message[:500])
            continue
        except UserError as error:
            refused = refused or error
            continue
        content = made.encode() if isinstance(made, str) else made
        kept = files.keep("reports", content)
        _keep(job, shown, name, file=kept, digest=kept.rsplit("/", 1)[-1], size=len(content))
    if refused is not None:
        raise refused


def _keep(job: jobs.Running, shown: EstimateSet, name: str, **values: Any) -> None:
    with transaction.atomic():
        job.fence()
        empty = {"file": "", "digest": "", "size": 0, "refused": ""}
        Report.objects.update_or_create(estimate_set=shown, name=name, defaults={**empty, **values})
