"""Archives: every file in one is an upload of its own, as if it had been chosen by itself.

An archive is looked through first; one with anything in it that cannot be taken changes nothing.
Then its files are stored one by one. A worker that is killed meanwhile leaves those it has stored;
the next one goes on after them.
"""

import tempfile
from collections.abc import Iterator

from django.conf import settings
from django.core.files.base import File

from judging.errors import UserError
from judging.formats.archive import Member, read_archive
from judging.formats.guess import SAY_WHICH, guess_kind, unknown_kind
from judging.models import Upload
from judging.services.uploads import HEAD_BYTES, Load, Reading, loads, sha256_of, shown_name, store

IN_MEMORY = 2**20


@loads(Upload.Kind.ARCHIVE)
def unpack(reading: Reading) -> Load:
    names = [_checked(reading, member) for member in _members(reading)]
    if not names and reading.problems.ok:
        reading.problems.error(None, "", "There is no file in this archive.")
    reading.summary = {"files": len(names)}
    if reading.problems.ok:
        silent = reading.quietly()
        for done, member in enumerate(_members(silent)):
            reading.job.report(done / len(names), shown_name(member.name))
            _store(reading, member)
    return lambda: None


def _members(reading: Reading) -> Iterator[Member]:
    with reading.open() as file:
        yield from read_archive(file, reading.problems, limits=reading.limits)


def _checked(reading: Reading, member: Member) -> str:
    """Its name; a file of no known kind is a problem, and so is an archive in an archive."""
    name, head = shown_name(member.name), member.file.read(HEAD_BYTES)
    guess = guess_kind(name, head)
    if guess is None:
        reading.problems.error(None, name, _unknown(name, head))
    elif guess.kind == "archive":
        reading.problems.error(None, name, "An archive in an archive: unpack it first.")
    size = len(head)
    while chunk := member.file.read(IN_MEMORY):
        size += len(chunk)
    if size > settings.UPLOAD_MAX_BYTES:
        limit = f"at most {settings.UPLOAD_MAX_BYTES // 2**20} MB"
        reading.problems.error(None, name, f"This file is too large: expected {limit}.")
    return name


def _unknown(name: str, head: bytes) -> str:
    """Nobody can choose the kind of a file inside; the field says which it is."""
    said = unknown_kind(name, head).removeprefix(name)
    return TAKE_IT_OUT if SAY_WHICH in said else f"This{said}"


TAKE_IT_OUT = (
    "Nobody can tell what this holds: take it out of the archive. If it is material, upload it by "
    "itself, and choose its kind."
)


def _store(reading: Reading, member: Member) -> None:
    name = shown_name(member.name)
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as copy:
        size = 0
        while chunk := member.file.read(IN_MEMORY):
            size += copy.write(chunk)
        copy.seek(0)
        file: File[bytes] = File(copy, name=name)
        file.size = size
        since = reading.upload.created
        before = reading.campaign.uploads.filter(name=name, created__gte=since)
        if before.filter(sha256=sha256_of(file)).exists():
            return
        try:
            store(
                campaign=reading.campaign,
                by=reading.upload.created_by,
                file=file,
                name=name,
                check_only=reading.upload.check_only,
                drop=reading.upload.drop,
            )
        except UserError as error:
            reading.problems.error(None, name, error.message)
