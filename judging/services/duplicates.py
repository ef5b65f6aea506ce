"""A campaign begun anew from another: its settings, and on request the files it was made from.

The files are read again, as if they had been uploaded, by the job of every upload: one way for
data to go. No judgment comes along, nor anything that rests on one.
"""

from dataclasses import replace

from django.db import transaction
from django.db.models import Exists, OuterRef

from judging.errors import UserError
from judging.models import Campaign, Upload, User
from judging.services import audit, campaigns, jobs, uploads

COPY = "copy-files"


def duplicate(*, campaign: Campaign, by: User, name: str, with_files: bool) -> Campaign:
    """A new campaign in draft, with ``by`` as its organizer; its files follow by a job.

    Raises UserError as `campaigns.create` does, and ``gone`` (404) while the other is deleted.
    """
    plan = replace(campaigns.plan_of(campaign), name=name, slug=campaigns.free_slug(name))
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        made = campaigns.create(by=by, plan=plan)
        audit.record("duplicate campaign", by=by, campaign=campaign, target=made, files=with_files)
        if with_files:
            asked = {"campaign": campaign.pk, "by": by.pk}
            jobs.request(COPY, made.pk, campaign=made, data=asked)
    return made


def copy_files(job: jobs.Running) -> None:
    """The job: stores the accepted files of the other campaign. Safe to run again at any point.

    A file that has been stored before, by its digest and name, is not stored again; the files of an
    archive are files by themselves. Of what was replaced, the latest version comes along.
    """
    made = Campaign.objects.get(pk=job.target)
    by = User.objects.get(pk=job.data["by"])
    accepted = Upload.objects.filter(campaign=job.data["campaign"], state=Upload.State.ACCEPTED)
    newer = Upload.objects.filter(replaces=OuterRef("pk"), state=Upload.State.ACCEPTED)
    latest = accepted.exclude(Exists(newer)).exclude(kind=Upload.Kind.ARCHIVE)
    rows = list(latest.order_by("pk"))
    for done, row in enumerate(rows):
        job.report(done / len(rows), row.name)
        if not made.uploads.filter(sha256=row.sha256, name=row.name).exists():
            _store_again(row, made, by)


def _store_again(row: Upload, made: Campaign, by: User) -> None:
    try:
        with row.file.open("rb") as file:
            uploads.store(campaign=made, by=by, file=file, name=row.name, kind=row.kind)
    except FileNotFoundError:
        raise UserError("file_gone", f"{row.name}: the site has lost this file.") from None
    except UserError as error:
        raise UserError(error.code, f"{row.name}: {error.message}") from error
