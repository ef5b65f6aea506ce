"""A disk that is full while people judge and upload: all is refused or kept, and room mends it."""

import contextlib
import itertools
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.at_length.ground import Ground, embedded, prepare
from tests.at_length.tally import Tally

MEGABYTES = 160
TIMES = 4
FULL_SECONDS = 12.0
REFUSALS = {503, 507}
CANNOT_MOUNT = "left out: a file system can be mounted by root alone (run make drills as root)"


class NotAllowed(Exception):
    """This account may not mount."""


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A file system of its own in memory. Raises NotAllowed."""
    folder = Path(tempfile.mkdtemp(prefix="evs-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "evs-disk", folder]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        folder.rmdir()
        raise NotAllowed
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


@contextlib.contextmanager
def full(folder: Path) -> Iterator[None]:
    """Writes until nothing more fits, again and again, as whatever fills a disk does."""
    ballast = folder / "ballast"
    fill(ballast)
    try:
        yield
    finally:
        ballast.unlink()


def fill(ballast: Path) -> None:
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def on_up() -> Tally:
    name = "full disk, up"
    try:
        with small_disk(MEGABYTES) as folder:
            data = folder / "data"
            data.mkdir()
            with embedded(data=data, MIN_FREE_MB="1") as site:
                ground = prepare(site, name)
                drill(ground, folder)
                tally = ground.tally
    except NotAllowed:
        tally = Tally(name, notes=[CANNOT_MOUNT])
    return tally


def drill(ground: Ground, folder: Path) -> None:
    tally, statuses = ground.tally, []
    with ground.judging():
        for turn in range(TIMES):
            ground.go_on(5)
            with full(folder):
                tally.faults += 1
                until, numbers = time.monotonic() + FULL_SECONDS, itertools.count()
                while time.monotonic() < until:
                    statuses.append(upload(ground, f"{turn}-{next(numbers)}"))
                    ground.go_on(0.5)
                    fill(folder / "ballast")
            waited = ground.wait_more(20, seconds=60)
            tally.notes.append(f"20 more judgments {waited:.1f} s after there was room again")
    expect_refusals(ground, statuses)
    expect_whole(ground)


def upload(ground: Ground, name: str) -> int:
    """The status of an upload that does not fit."""
    content = b"".join(b"t1 0 %s-%d 1\n" % (name.encode(), n) for n in range(100_000))
    base = f"{ground.organizer.base}uploads/"
    parts = [("files", f"{name}.qrels", content)]
    return ground.organizer.api.upload(base, {"kind": "qrels"}, parts).status


def expect_refusals(ground: Ground, uploads: list[int]) -> None:
    tally = ground.tally
    judging = {status for person in ground.people for status in person.statuses}
    tally.expect(set(uploads) <= REFUSALS, f"uploads were answered {sorted(set(uploads))}")
    tally.expect(bool(judging & REFUSALS), "judgments were refused while the disk was full")
    unexpected = judging - REFUSALS - {200, 201}
    tally.expect(not unexpected, f"other answers: {sorted(unexpected)}")


def expect_whole(ground: Ground) -> None:
    """The file of the database is sound, and nothing is left of what did not fit."""
    with contextlib.closing(sqlite3.connect(ground.site.data / "evalsite.sqlite3")) as database:
        said = database.execute("PRAGMA integrity_check").fetchone()[0]
    ground.tally.expect(said == "ok", f"integrity_check: {said}")
    ready = ground.site.ready()
    ground.tally.expect(ready, "the site is ready")
