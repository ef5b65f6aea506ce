"""Files of columns that no row names: what a deleted campaign leaves, and work that was cut off.

Files are named by their content, so that campaigns may share one. It goes when no row of any
campaign names it, and no work that is under way can: whoever finds the file there already makes it
young again before it writes the row (`files.keep_written`), and work is stopped after
JOB_TIME_LIMIT_SECONDS. So what is older and named by nobody will be named by nobody.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db.models import Model

from estimation.core.shards.store import remove_all
from estimation.models import EstimateSet, MachineJudge, Prediction, Report, Round, Run, StoredPool
from estimation.services import files, sharding
from judging.services import jobs

SWEEP = "sweep-files"
NAMED_BY: dict[str, tuple[tuple[type[Model], str], ...]] = {
    "runs": ((Run, "file"),),
    "predictions": ((Prediction, "file"),),
    "pools": ((StoredPool, "file"),),
    "designs": ((Round, "design_file"),),
    "samples": ((Round, "sample_file"),),
    "matrices": ((EstimateSet, "matrices_file"),),
    "reports": ((Report, "file"),),
    "machine-orders": ((MachineJudge, "plan_file"),),
}
"""Which columns name the files of each folder."""
ASIDE = ".gone-"


def request() -> None:
    """Has a worker remove what no row names; by its target there is one such job."""
    jobs.request(SWEEP, 0)


def sweep(job: jobs.Running) -> None:
    """The job. Comes back when the youngest file that no row names is old enough to go.

    Safe to run again at any point, and at the same time twice.
    """
    youngest = 0.0
    for at, folder in enumerate(NAMED_BY):
        job.report(at / len(NAMED_BY), folder)
        for path in list(_unnamed(folder)):
            job.prolong()  # or stop, if somebody else does this now
            youngest = max(youngest, _remove(path))
    _remove_shards()
    if youngest:
        wait = min(max(1.0, youngest + grace() - time.time()), grace())
        raise jobs.NotYet(wait, "The last files go when no work can need them any more.")


def _remove_shards() -> None:
    """Shards of pools that nobody went on with; at an address of object storage they stay."""
    place = sharding.folder()
    if isinstance(place, Path) and place.is_dir():
        for each in list(place.iterdir()):
            touched = [path.stat().st_mtime for path in (each, *each.glob("*"))]
            if max(touched) + grace() < time.time():
                remove_all(each)


def grace() -> float:
    """Seconds after which nobody who has kept a file is still about to write its row."""
    return float(settings.CELERY_TASK_TIME_LIMIT)


def _unnamed(folder: str) -> Iterator[Path]:
    """The files of a folder are listed before the rows are read: a new one is named by then, or
    young."""
    place = files.path_of(folder)
    there = sorted(place.iterdir()) if place.is_dir() else []
    named = {name for model, column in NAMED_BY[folder] for name in _names(model, column)}
    for path in there:
        if f"{folder}/{path.name}" not in named:
            yield path


def _names(model: type[Model], column: str) -> Iterator[str]:
    rows = model._base_manager.order_by().values_list(column, flat=True)
    return rows.iterator(chunk_size=5000)


def _remove(path: Path) -> float:
    """Removes the file if it is old enough, and returns 0; else returns when it was kept last.

    It is put aside first: whoever makes it young in just this moment finds out, or is found out.
    """
    try:
        kept = path.stat().st_mtime
        if path.name.startswith(ASIDE):  # whoever put it aside was killed: look at it again
            path.rename(path.with_name(path.name.removeprefix(ASIDE)))
            return kept
        if kept + grace() > time.time():
            return kept
        if path.name.startswith("."):  # a draft that was never finished
            path.unlink()
            return 0.0
        aside = path.with_name(f"{ASIDE}{path.name}")
        path.rename(aside)
        if aside.stat().st_mtime != kept:
            aside.rename(path)
            return time.time()
        aside.unlink()
    except FileNotFoundError:  # another worker does the same
        pass
    return 0.0
