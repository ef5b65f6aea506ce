"""What was only checked is taken in: the file is read once more, by the job of every upload."""

from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from judging.errors import UserError
from judging.models import Campaign, Job, Upload, User
from judging.services import audit, campaigns, jobs, present, uploads


def take_in(*, upload: Upload, by: User, confirmed: dict[str, Any] | None = None) -> None:
    """Has a worker read a file anew that was only checked and is good, and take it in.

    ``confirmed`` is what somebody was shown before, for the loader to hold against what is so then.

    Raises UserError ``not_checked`` (409), ``archive`` (409), ``topics_missing`` (409),
    ``campaign_closed`` (409), ``gone`` (404) and, for one that replaces another, ``being_drawn``
    (409).
    """
    with transaction.atomic():
        campaigns.refuse_if_closed(campaigns.lock(upload.campaign_id))
        if upload.kind == Upload.Kind.ARCHIVE:
            raise UserError("archive", _unpacked(upload), status=409)
        if upload.replaces_id is not None:
            uploads.refuse_while_drawn(upload)
        rows = Upload.objects.filter(pk=upload.pk)
        if not _made_due(rows, campaign=upload.campaign, confirmed=confirmed):
            present.refuse_if_gone(rows, upload.name)
            message = f"{upload.name} is not checked, or has been taken in already."
            raise UserError("not_checked", message, status=409)
        audit.record(
            "take file in", by=by, campaign=upload.campaign_id, target=upload, file=upload.name
        )


def take_in_drop(*, campaign: Campaign, by: User, drop: str) -> int:
    """Has a worker take in all files of a drop that were only checked and are good; how many.

    They are made due together, so that whoever is read against topics waits for those of the same
    drop, in whatever order workers come to them. Whoever clicks twice finds nothing left to do.

    Raises UserError ``topics_missing`` (409), ``campaign_closed`` (409).
    """
    with transaction.atomic():
        campaigns.refuse_if_closed(campaigns.lock(campaign.pk))
        rows = campaign.uploads.filter(drop=drop, replaces=None)
        taken = _made_due(rows.exclude(kind=Upload.Kind.ARCHIVE), campaign=campaign)
        if taken:
            unpacked = rows.filter(kind=Upload.Kind.ARCHIVE, state=Upload.State.CHECKED)
            unpacked.update(state=Upload.State.ACCEPTED, check_only=False)
            audit.record("take files in", by=by, campaign=campaign, files=taken)
    return taken


def _made_due(
    rows: QuerySet[Upload], *, campaign: Campaign, confirmed: dict[str, Any] | None = None
) -> int:
    """Under the campaign's lock. Of a file, its job's row is locked before its own."""
    checked = rows.filter(state=Upload.State.CHECKED).order_by("pk")
    found = dict(checked.values_list("pk", "kind"))
    _refuse_without_topics(campaign, found.values())
    for pk in found:
        jobs.request("upload", pk, campaign=campaign)
    again: dict[str, Any] = {
        "state": Upload.State.STORED,
        "check_only": False,
        "finished": None,
        "summary": {"confirmed": confirmed or {}},
    }
    return Upload.objects.filter(pk__in=found, state=Upload.State.CHECKED).update(**again)


def _refuse_without_topics(campaign: Campaign, kinds: Collection[str]) -> None:
    """What was checked against topics that were only checked too would be rejected without them."""
    read_against = {Upload.Kind.RUN, Upload.Kind.QRELS, Upload.Kind.PREDICTIONS}
    if not read_against & set(kinds) or Upload.Kind.TOPICS in kinds or campaign.topics.exists():
        return
    on_the_way = [Upload.State.STORED, Upload.State.READING]
    coming = campaign.uploads.filter(kind=Upload.Kind.TOPICS, check_only=False)
    if coming.filter(state__in=on_the_way).exists():
        return
    message = "The campaign has no topics yet, and this is read against them: take them in first."
    raise UserError("topics_missing", message, status=409)


def _unpacked(upload: Upload) -> str:
    return f"{upload.name} is an archive: its files are uploads of their own. Take those in."


# ------------------------------------------------------------------------------------- dismissing


def dismiss(*, campaign: Campaign, by: User, drop: str) -> int:
    """Removes all files of a drop that brought nothing: only checked, or rejected; how many.

    What is still read stays, and so does what was taken in. An archive counts as its files.
    """
    settled = (Upload.State.CHECKED, Upload.State.REJECTED)
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        of_drop = campaign.uploads.filter(drop=drop).values("pk")
        reading = Job.objects.filter(kind="upload", target__in=of_drop).order_by("pk")
        list(reading.select_for_update().values_list("pk", flat=True))
        rows = list(campaign.uploads.filter(drop=drop, state__in=settled))
        Job.objects.filter(kind="upload", target__in=[row.pk for row in rows]).delete()
        campaign.uploads.filter(pk__in=[row.pk for row in rows]).delete()
        unpacked = [row for row in rows if (row.kind, row.state) == UNPACKED]
        files = len(rows) - len(unpacked) or len(rows)
        if rows:
            audit.record("dismiss files", by=by, campaign=campaign, files=files)
        transaction.on_commit(lambda: _forget([row.file for row in rows]))
    return files


UNPACKED = (Upload.Kind.ARCHIVE, Upload.State.CHECKED)


def _forget(files: list[Any]) -> None:
    for file in files:
        file.delete(save=False)
