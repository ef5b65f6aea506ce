"""What was only checked is taken in: the file is read once more, by the job of every upload."""

from typing import Any

from django.db import transaction

from judging.errors import UserError
from judging.models import Upload, User
from judging.services import audit, jobs, present, uploads


def take_in(*, upload: Upload, by: User, confirmed: dict[str, Any] | None = None) -> None:
    """Has a worker read a file anew that was only checked and is good, and take it in.

    ``confirmed`` is what somebody was shown before, for the loader to hold against what is so then.

    Raises UserError ``not_checked`` (409), ``campaign_closed`` (409), ``gone`` (404) and, for one
    that replaces another, ``being_drawn`` (409).
    """
    uploads.refuse_if_closed(upload.campaign)
    with transaction.atomic():
        if upload.replaces_id is not None:
            uploads.refuse_while_drawn(upload)
        good = Upload.objects.filter(pk=upload.pk, state=Upload.State.CHECKED)
        now: dict[str, Any] = {"state": Upload.State.STORED, "check_only": False, "finished": None}
        if not good.update(summary={"confirmed": confirmed or {}}, **now):
            present.refuse_if_gone(Upload.objects.filter(pk=upload.pk), upload.name)
            message = f"{upload.name} is not checked, or has been taken in already."
            raise UserError("not_checked", message, status=409)
        audit.record(
            "take file in", by=by, campaign=upload.campaign_id, target=upload, file=upload.name
        )
        jobs.request("upload", upload.pk, campaign=upload.campaign_id)
