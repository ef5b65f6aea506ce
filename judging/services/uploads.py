"""Uploads: stored first, read in the worker as a stream, all or nothing.

``store`` keeps the file and makes its reading due. ``read`` is the job: the loader of the file's
kind goes over the whole file and collects every problem; only a file without errors is loaded.
Loaders are registered with ``loads``: see judging.services.loaders, and estimation for runs.
"""

import hashlib
import shutil
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from django.conf import settings
from django.core.files.base import File
from django.db import IntegrityError, connection, transaction
from django.db.models import ProtectedError, QuerySet
from django.db.models.functions import Now

from judging import selectors
from judging.errors import UserError
from judging.formats.guess import Guess, guess_kind, unknown_kind
from judging.formats.lines import Limits
from judging.formats.problems import Problems, UnreadableError
from judging.models import Batch, Campaign, Document, GoldPair, Job, Pair, Upload, User
from judging.services import audit, batches, campaigns, jobs, present
from judging.services.bounds import OutOfBounds, Unwanted, WorkBounds, kept

CHUNK = 1000
HEAD_BYTES = 65536
SPLIT_IT = "split it into several, or ask the administrator for a higher limit."
MAX_NAME = 255
ROOM_AGAIN_SECONDS = 60


@dataclass
class Reading:
    """An upload while it is read: what its loader needs, and where problems go."""

    upload: Upload
    campaign: Campaign
    job: jobs.Running
    problems: Problems
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def limits(self) -> Limits:
        return Limits(max_bytes=settings.UPLOAD_MAX_UNPACKED_BYTES)

    def quietly(self) -> "Reading":
        """The same upload for a second pass, whose problems are known already."""
        return replace(self, problems=Problems(self.upload.name))

    def open(self) -> BinaryIO:
        return self.upload.file.open("rb")  # type: ignore[return-value]


class Refused(Exception):
    """Raised by a load: what the file brings cannot be taken in any more; the message says why."""


Load = Callable[[], None]
Loader = Callable[[Reading], Load]
"""Checks the whole file, reporting problems and progress; returns what loads it, if it is good.

The load is called in the transaction that marks the upload accepted, with the job fenced. A loader
of many rows may stage them before, as long as they stay invisible until the upload is accepted
and are dropped when it is not.
"""
_loaders: dict[str, Loader] = {}


def loads(kind: str) -> Callable[[Loader], Loader]:
    """Registers the loader of a kind of upload."""

    def register(loader: Loader) -> Loader:
        _loaders[kind] = loader
        return loader

    return register


def store(
    *,
    campaign: Campaign,
    by: User,
    file: "File[bytes]",
    name: str,
    kind: str | None = None,
    check_only: bool = False,
    drop: str = "",
    replaces: Upload | None = None,
    about: dict[str, Any] | None = None,
) -> Upload:
    """Keeps the file and has a worker read it. ``kind`` None: guessed from name and content.
    ``about``: what is said of it; of a new version what is said of the one before.

    One that ``replaces`` another, once something is drawn, is only checked until it is confirmed.

    Raises UserError: ``too_large`` (413), ``kind_unknown``, ``campaign_closed`` (409),
    ``storage_full`` (507); ``being_drawn`` (409) for one that replaces another.
    """
    campaigns.refuse_if_closed(campaign)
    if file.size > settings.UPLOAD_MAX_BYTES:
        limit = f"at most {settings.UPLOAD_MAX_BYTES // 2**20} MB"
        message = f"{shown_name(name)} is too large: expected {limit}."
        raise UserError("too_large", message, status=413)
    ensure_room(file.size)
    head = file.read(HEAD_BYTES)
    file.seek(0)
    guess = None if kind else _guess(name, head)
    upload = Upload(
        campaign=campaign,
        kind=guess.kind if guess else kind or "",
        kind_why=guess.why if guess else "",
        drop=drop,
        replaces=replaces,
        about=replaces.about if replaces else about or {},
        name=shown_name(name),
        size=file.size,
        sha256=sha256_of(file),
        check_only=check_only,
        created_by=by,
    )
    upload.file.save(f"{upload.sha256[:16]}", file, save=False)
    try:
        _save(upload, by)
    except UserError:
        upload.file.delete(save=False)
        raise
    return upload


def _save(upload: Upload, by: User) -> None:
    kind, file, campaign = upload.kind, upload.name, upload.campaign
    with transaction.atomic():
        if upload.replaces_id is not None:
            refuse_while_drawn(upload)
            upload.check_only = upload.check_only or selectors.is_drawn(campaign)
        upload.save()
        audit.record("upload", by=by, campaign=campaign, target=upload, file=file, kind=kind)
        jobs.request("upload", upload.pk, campaign=campaign)


def new_drop() -> str:
    """What files that come at once have in common."""
    return uuid.uuid4().hex


def refuse_while_drawn(upload: Upload) -> None:
    """A new version is not read while a draw may be looking at the old one.

    From here on a draw waits until the file is read, as for any file.
    """
    campaigns.refuse_while_drawn(campaigns.lock(upload.campaign_id))


def ensure_room(size: int) -> None:
    """Uploads end before the disk does, so that judgments still have room on it.

    Raises UserError ``storage_full`` (507).
    """
    settings.MEDIA_ROOT.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(settings.MEDIA_ROOT).free - size < settings.MIN_FREE_BYTES:
        message = (
            f"There is no room for {size / 2**20:,.1f} MB: the disk of this site is almost full."
            " Try again when its administrator has made room."
        )
        again = {"retry_after": ROOM_AGAIN_SECONDS}
        raise UserError("storage_full", message, status=507, data=again)


def shown_name(name: str) -> str:
    """A file's name as shown: it never becomes a path."""
    printable = "".join(c for c in name if c.isprintable())
    return printable.replace("\\", "/").rsplit("/", 1)[-1][-MAX_NAME:] or "unnamed"


def _guess(name: str, head: bytes) -> Guess:
    guess = guess_kind(name, head)
    if guess is None:
        raise UserError("kind_unknown", unknown_kind(shown_name(name), head), field="kind")
    return guess


def sha256_of(file: "File[bytes]") -> str:
    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    file.seek(0)
    return digest.hexdigest()


def read(job: jobs.Running) -> None:
    """The job: reads one upload and accepts or rejects it. Safe to run again at any point."""
    if not _unread(job.target).update(state=Upload.State.READING):
        return
    upload = Upload.objects.select_related("campaign").filter(pk=job.target).first()
    if upload is None:  # removed just now
        raise jobs.LeaseLost(f"upload {job.target}")
    reading = Reading(upload, upload.campaign, job, Problems(upload.name))
    try:
        with kept(_bounds(), unwanted=job.lost.is_set):
            accepted = _load(reading)
    except OutOfBounds as stopped:
        accepted = False
        reading.problems.error(None, "", f"Reading this file {stopped}: {SPLIT_IT}")
        _begin_anew()
    except Unwanted:
        _begin_anew()
        raise jobs.LeaseLost(f"upload {upload.pk}") from None
    if accepted:
        return
    checked = Upload.State.CHECKED if reading.problems.ok else Upload.State.REJECTED
    with transaction.atomic():
        job.fence()
        if _conclude(reading, checked):
            _drop_staged(upload)


def _unread(pk: int) -> QuerySet[Upload]:
    on_the_way = [Upload.State.STORED, Upload.State.READING]
    return Upload.objects.filter(pk=pk, state__in=on_the_way)


def give_up(pk: int, error: str) -> None:
    """A file whose reading failed for good is rejected, so that nothing waits for it any more."""
    upload = _unread(pk).first()
    if upload is None:
        return
    problems = Problems(upload.name)
    message = f"This file could not be read: {error} Try again, or upload another one."
    problems.error(None, "", message)
    if _unread(pk).update(state=Upload.State.REJECTED, finished=Now(), **problems.as_dict()):
        _drop_staged(upload)
        audit.record("upload given up", by=None, campaign=upload.campaign_id, target=upload)


def read_again(*, upload: Upload, by: User | None) -> Job:
    """Has a worker read a file anew whose reading had failed.

    Raises UserError ``not_failed`` (409), ``gone`` (404), ``being_drawn`` (409).
    """
    with transaction.atomic():
        if upload.replaces_id is not None:
            refuse_while_drawn(upload)
        job = selectors.job_of("upload", upload.pk)
        if job is None:  # it goes with its upload
            raise present.gone(upload.name)
        again = jobs.retry(job)
        Upload.objects.filter(pk=upload.pk, state=Upload.State.REJECTED).update(
            state=Upload.State.STORED, finished=None, errors=[], error_count=0
        )
        audit.record("try again", by=by, campaign=upload.campaign_id, target=upload, work="upload")
    return again


def _begin_anew() -> None:
    """Whoever was stopped may have been in the middle of a statement."""
    if not connection.in_atomic_block:
        connection.close()


def _bounds() -> WorkBounds:
    return WorkBounds(
        cpu_seconds=settings.UPLOAD_CPU_SECONDS,
        seconds=settings.UPLOAD_SECONDS,
        memory_bytes=settings.UPLOAD_MEMORY_BYTES,
    )


def _load(reading: Reading) -> bool:
    """Goes over the file, and takes in what it holds if it is good and shall be: is it so?"""
    upload = reading.upload
    load: Load | None = None
    with suppress(UnreadableError):  # it stands among the problems
        load = _loaders[upload.kind](reading)
    if load is None or not reading.problems.ok or upload.check_only:
        return False
    try:
        with transaction.atomic():
            reading.job.fence()
            load()
            _conclude(reading, Upload.State.ACCEPTED)
    except Refused as why:
        reading.problems.error(None, "", str(why))
        return False
    except IntegrityError:
        reading.problems.error(None, "", "Another upload has brought the same ids meanwhile.")
        return False
    return True


def _drop_staged(upload: Upload) -> None:
    """Staged rows would keep their ids from the next upload."""
    Document.objects.filter(upload=upload).delete()


def cancel(*, upload: Upload, by: User) -> None:
    """Ends the reading of an upload, or keeps it from beginning; its worker stops within seconds.

    Raises UserError ``not_reading`` (409) when it was read meanwhile, ``gone`` (404) when it was
    removed. The job is locked first, as whoever concludes the reading does: either way, one of the
    two is told the truth.
    """
    problems = Problems(upload.name)
    who = by.get_username()
    again = "Upload it again to have it read."
    problems.error(None, "", f"The reading of this file was canceled by {who}. {again}")
    with transaction.atomic():
        jobs.withdraw("upload", upload.pk)
        told = problems.as_dict() | {"summary": {selectors.CANCELED: who}}
        canceled = _unread(upload.pk).update(state=Upload.State.REJECTED, finished=Now(), **told)
        if not canceled:
            present.refuse_if_gone(Upload.objects.filter(pk=upload.pk), upload.name)
            message = f"{upload.name} has been read, or its reading canceled, already."
            raise UserError("not_reading", message, status=409)
        _drop_staged(upload)
        audit.record(
            "cancel upload", by=by, campaign=upload.campaign_id, target=upload, file=upload.name
        )


def _conclude(reading: Reading, state: Upload.State) -> bool:
    """False where it is concluded already: a bound may be hit just after the file was taken in."""
    upload, found = reading.upload, reading.problems.as_dict()
    concluded = Upload.objects.filter(pk=upload.pk, state=Upload.State.READING).update(
        state=state, summary=reading.summary, finished=Now(), **found
    )
    if not concluded:
        return False
    audit.record(
        f"upload {state}",
        by=upload.created_by,
        campaign=upload.campaign_id,
        target=upload,
        errors=found["error_count"],
    )
    return True


def remove(*, upload: Upload, by: User) -> None:
    """Takes an upload and all it brought out of the campaign, while nothing rests on it.

    Raises UserError ``in_use`` (409) when pairs of its topics or rounds rest on it, ``being_drawn``
    (409) while a draw is under way, and ``gone`` (404) when somebody else has removed it. What a
    round alone may name, such as predicted grades, is kept by a protected foreign key of that
    round.
    """
    with transaction.atomic():
        campaign = campaigns.lock(upload.campaign_id)
        job = Job.objects.filter(kind="upload", target=upload.pk)
        failed = job.filter(state=Job.State.FAILED).exists()
        job.delete()  # whoever is about to read it has lost it
        upload = present.now(Upload.objects.filter(pk=upload.pk), upload.name)
        if upload.state == Upload.State.READING and not failed:
            message = "This file is being read. Wait, or cancel that first."
            raise UserError("in_use", message, status=409)
        _refuse_if_used(upload, campaign)
        audit.record(
            "remove upload", by=by, campaign=upload.campaign_id, target=upload, file=upload.name
        )
        file = upload.file
        try:
            if upload.kind == Upload.Kind.TOPICS:
                _drop_pairs(campaign)
            upload.delete()
        except ProtectedError:
            message = (
                "A round, gold, the training or a norming session names what this file brought. "
                "Change or discard a drafted round, or take out these pairs, first."
            )
            raise UserError("in_use", message, status=409) from None
        transaction.on_commit(lambda: file.delete(save=False))


def _refuse_if_used(upload: Upload, campaign: Campaign) -> None:
    if upload.state != Upload.State.ACCEPTED or not upload.is_sampled:
        return
    if selectors.is_drawn(campaign):
        message = "A round has been drawn from this material; it can no longer be removed."
        raise UserError("in_use", message, status=409)
    campaigns.refuse_while_drawn(campaign)


def _drop_pairs(campaign: Campaign) -> None:
    """Pairs that a draw left when it was given up, and that would keep their topics for ever."""
    if selectors.is_drawn(campaign):
        return
    batches.discard(campaign.batches.filter(state=Batch.State.PREPARING))
    GoldPair.objects.filter(campaign=campaign, pair__assignments__isnull=True).delete()
    rows = Pair.every.filter(campaign=campaign, batch_pairs__isnull=True, gold_pair__isnull=True)
    rows.delete()
