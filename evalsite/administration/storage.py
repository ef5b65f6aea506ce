"""What takes room on the disk: the database, and the files that its rows name.

Sizes come from one walk through the folder of files; what a row names, from one query a table. A
worker does that, when somebody has looked at what it found before and that is no longer fresh:
pages show what is kept, with its time. Nothing is measured where nobody looks, so that a site at
rest stays at rest.
"""

import os
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from estimation.models import EstimateSet, MachineJudge, Prediction, Report, Round, Run, StoredPool
from evalsite.private import database_files
from judging.models import Job, KeptFigure, Upload
from judging.services import jobs

MEASURE = "measure-storage"
FRESH = 600
"""Seconds for which what was measured is shown without looking again."""
MOST_LISTED = 100
NAMED_WITHIN = 3600
"""Seconds that a file may be there before a row names it: results are written before their rows."""
SOURCES: tuple[tuple[str, type[Model], tuple[str, ...], str], ...] = (
    ("Uploads", Upload, ("file",), "campaign"),
    ("Runs", Run, ("file",), "campaign"),
    ("Predicted grades and costs", Prediction, ("file",), "campaign"),
    ("Pools", StoredPool, ("file",), "campaign"),
    ("Samples and designs", Round, ("design_file", "sample_file"), "campaign"),
    ("Estimates", EstimateSet, ("matrices_file",), "round__campaign"),
    ("Reports", Report, ("file",), "estimate_set__round__campaign"),
    ("Plans of machine judges", MachineJudge, ("plan_file",), "campaign"),
)
"""Every column that names a file, what it is called, and the way to its campaign."""


@dataclass(frozen=True)
class KindOfFile:
    name: str
    files: int
    size: int


@dataclass(frozen=True)
class LooseFile:
    """A file that no row names: of work that was cut off. ``age`` in seconds."""

    name: str
    size: int
    age: float


@dataclass(frozen=True)
class Storage:
    """``by_campaign``: bytes by row id; a file that several campaigns name counts in each. Of the
    ``loose_count`` files that no row names the largest are listed."""

    kinds: list[KindOfFile]
    by_campaign: dict[int, int]
    loose: list[LooseFile]
    loose_count: int
    loose_size: int
    missing: int
    database: int
    free: int
    total: int

    @property
    def files(self) -> int:
        return sum(kind.size for kind in self.kinds) + self.loose_size


@dataclass(frozen=True)
class KeptStorage:
    """What was found, and when; None before a worker has ever looked. ``measuring``: one was asked
    to look again, ``failed`` says why the last one could not."""

    found: Storage | None
    measured: datetime | None
    measuring: bool
    failed: str

    @property
    def sizes(self) -> dict[int, int]:
        return self.found.by_campaign if self.found else {}


def kept() -> KeptStorage:
    """What is kept; where it is not fresh, a worker is asked to look again."""
    row = KeptFigure.objects.filter(name=MEASURE).first()
    job = Job.objects.filter(kind=MEASURE, target=0).first()
    fresh = row is not None and abs((timezone.now() - row.measured).total_seconds()) < FRESH
    pending = job is not None and job.state in (Job.State.QUEUED, Job.State.RUNNING)
    failed = job.error if job is not None and job.state == Job.State.FAILED else ""
    if not fresh and not pending and not failed:
        jobs.request(MEASURE, 0)
        pending = True
    found = _from_json(row.value) if row is not None else None
    return KeptStorage(found, row.measured if row is not None else None, pending, failed)


def measure(job: jobs.Running) -> None:
    """The job."""
    value = asdict(storage())
    with transaction.atomic():
        job.fence()
        KeptFigure.objects.update_or_create(
            name=MEASURE, defaults={"value": value, "measured": timezone.now()}
        )


def _from_json(value: dict[str, Any]) -> Storage:
    """The inverse of `asdict`; JSON has no numbers for keys."""
    return Storage(
        **value
        | {
            "kinds": [KindOfFile(**each) for each in value["kinds"]],
            "by_campaign": {int(pk): size for pk, size in value["by_campaign"].items()},
            "loose": [LooseFile(**each) for each in value["loose"]],
        }
    )


def storage() -> Storage:
    """Reads every folder of files once. Nothing is removed by looking."""
    there: dict[str, tuple[int, float]] = dict(_walk(Path(settings.MEDIA_ROOT)))
    named: set[str] = set()
    by_campaign: dict[int, int] = defaultdict(int)
    kinds, missing = [], 0
    for kind, model, columns, campaign in SOURCES:
        found = _named(model, columns, campaign)
        missing += len({name for name, _ in found} - set(there))
        for name, owner in found:
            by_campaign[owner] += there[name][0] if name in there else 0
        own = {name for name, _ in found if name in there} - named
        kinds.append(KindOfFile(kind, len(own), sum(there[name][0] for name in own)))
        named |= own
    loose = _loose(there, named)
    disk = shutil.disk_usage(settings.MEDIA_ROOT if there else settings.DATA_DIR)
    return Storage(
        kinds=kinds,
        by_campaign=dict(by_campaign),
        loose=loose[:MOST_LISTED],
        loose_count=len(loose),
        loose_size=sum(each.size for each in loose),
        missing=missing,
        database=database_size(),
        free=disk.free,
        total=disk.total,
    )


def _walk(folder: Path) -> Iterator[tuple[str, tuple[int, float]]]:
    """Name relative to the folder, with size and time of the last change."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent) / name
            try:
                known = path.stat()
            except FileNotFoundError:  # it went while this looked
                continue
            yield path.relative_to(folder).as_posix(), (known.st_size, known.st_mtime)


def _named(model: type[Model], columns: tuple[str, ...], campaign: str) -> set[tuple[str, int]]:
    """What the rows of a table name, each with its campaign."""
    rows = model._base_manager.order_by().values_list(campaign, *columns)
    return {(name, owner) for owner, *names in rows for name in names if name}


def _loose(there: dict[str, tuple[int, float]], named: set[str]) -> list[LooseFile]:
    now = time.time()
    found = [
        LooseFile(name, size, now - changed)
        for name, (size, changed) in there.items()
        if name not in named and now - changed > NAMED_WITHIN
    ]
    return sorted(found, key=lambda each: (-each.size, each.name))


def database_size() -> int:
    """Bytes of the database, with what SQLite keeps beside its file."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            return int(cursor.fetchone()[0])
    name = str(connection.settings_dict["NAME"])
    if name.startswith((":", "file:")):
        return 0
    return sum(path.stat().st_size for path in database_files(Path(name)))
