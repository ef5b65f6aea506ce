"""Work in the background that failed: what it was, and whose result is missed."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from estimation.machines import AGREEMENT, ASKING
from estimation.models import Round
from judging.models import Campaign, Job, Upload
from judging.selectors import BULK_JOBS, DRAW

QUALITY = "label-quality"
"""The kind of job that looks at the labels behind new estimates."""
OF_ROUNDS = {
    "preview": "The preview of a round",
    DRAW: "Drawing a round",
    "recompute": "Computing the estimates",
    "plan-batch": "Planning the next batch",
    "stop-round": "Ending a round by its rule",
    "report": "Making the report",
    QUALITY: "Looking at the labels",
}
"""Kinds whose target is a round."""
OF_NUMBERS = ("recompute", "plan-batch", "stop-round")
"""Kinds without which the numbers of a drawn round stay as they are."""
SHOWN = (*OF_NUMBERS, QUALITY)
"""Kinds whose results stand on the pages of a round."""
OF_MACHINES = {
    ASKING: "Asking a machine judge",
    AGREEMENT: "Comparing a machine judge with people",
}
OF_MATERIAL = {
    "upload": "Reading a file",
    "copy-files": "Copying the files of a campaign",
    "copy-known-pairs": "Copying training and gold of a campaign",
}
OF_PEOPLE = {
    "look-at-people": "Looking at how people answer",
    "letter": "Sending a letter",
    "apply-quality-rules": "Applying the rules about people",
}
OF_THE_SITE = {
    "delete-campaign": "Deleting a campaign",
    "sweep-files": "Removing files that no campaign needs",
    "measure-storage": "Measuring what files take",
}
"""Kinds that are of no campaign, or of none that is there any more."""
NAMES = {**OF_THE_SITE, **OF_MATERIAL, **OF_ROUNDS, **OF_MACHINES, **OF_PEOPLE, **BULK_JOBS}


@dataclass(frozen=True)
class FailedWork:
    """``round`` is the number of the round that it was for, if it was for one."""

    job: Job
    round: int | None

    @property
    def name(self) -> str:
        return NAMES.get(self.job.kind, self.job.kind)

    @property
    def holds_up_judging(self) -> bool:
        """Whether the next batch of its round is planned after it, if batches are planned."""
        return self.job.kind in OF_NUMBERS

    @property
    def is_draw(self) -> bool:
        """Its round is a draft again: to be looked at, and drawn anew."""
        return self.job.kind == DRAW


def failed(campaign: Campaign) -> list[FailedWork]:
    """What failed in a campaign and nobody has asked for again, latest first."""
    rows = Job.objects.filter(campaign=campaign, state=Job.State.FAILED)
    return _with_rounds(rows.exclude(_of_files_gone(campaign)).order_by("-pk"))


def failed_of_site() -> list[FailedWork]:
    """What failed and is of no campaign, latest first: for administrators."""
    rows = Job.objects.filter(kind__in=OF_THE_SITE, state=Job.State.FAILED)
    return [FailedWork(job, None) for job in rows.order_by("-pk")]


def failed_for(row: Round, kinds: Sequence[str]) -> list[FailedWork]:
    """What failed of the work for one round."""
    rows = Job.objects.filter(kind__in=kinds, target=row.pk, state=Job.State.FAILED)
    return [FailedWork(job, row.number) for job in rows.order_by("pk")]


def _of_files_gone(campaign: Campaign) -> Q:
    """A file that was rejected is shown as such, and whoever removed it misses nothing."""
    waiting = [Upload.State.STORED, Upload.State.READING]
    there = campaign.uploads.filter(state__in=waiting)
    return Q(kind="upload") & ~Q(target__in=there.values("pk"))


def _with_rounds(rows: QuerySet[Job]) -> list[FailedWork]:
    found = list(rows)
    targets = {job.target for job in found if job.kind in OF_ROUNDS}
    numbers = dict(Round.objects.filter(pk__in=targets).values_list("pk", "number"))
    return [
        FailedWork(job, numbers.get(job.target) if job.kind in OF_ROUNDS else None) for job in found
    ]
