"""Judging's job handlers."""

from judging import selectors
from judging.services import (  # noqa: F401  (loaders register themselves)
    archives,
    decisions,
    deletion,
    duplicates,
    jobs,
    known_grades,
    letters,
    loaders,
    looks,
    quality,
    sending,
    uploads,
)

jobs.handles("upload", give_up=uploads.give_up)(uploads.read)
jobs.handles(selectors.COPY)(duplicates.copy_files)
jobs.handles(duplicates.COPY_KNOWN)(duplicates.copy_known)
jobs.handles("judge-from-qrels")(known_grades.judge)
jobs.handles("decide-rest")(decisions.rest)
jobs.handles(looks.LOOK)(looks.look)
jobs.handles(quality.APPLY)(quality.apply)
jobs.handles(letters.SEND)(sending.send)
jobs.handles(deletion.DELETE)(deletion.delete)
