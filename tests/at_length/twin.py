"""The broken twin: a server that acknowledges before it writes, which the journal must catch."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.at_length.tally import Tally
from tests.support import hasty
from tests.support.client import Api
from tests.support.crowd import Assessor, Shift
from tests.support.journal import Journal, differences
from tests.support.ports import free_port
from tests.support.site import REPO

KILLS = 3
PAUSE_SECONDS = 0.08


def hasty_is_caught() -> Tally:
    tally = Tally("broken twin")
    with tempfile.TemporaryDirectory(prefix="evs-twin-") as folder:
        found = judged_by_hasty(Path(folder))
    lost = sum(line.startswith("lost") for line in found)
    tally.expect(lost > 0, f"{lost} judgments lost by a server that answers before it writes")
    return tally


def judged_by_hasty(folder: Path) -> list[str]:
    """The same assessors, the same journal and the same comparison; what it says."""
    file, port = folder / "stored", free_port()
    journal = Journal(folder / "journal")
    people = [_assessor(name, port, journal) for name in ("ann", "bob")]
    server = _start(port, file)
    with Shift(people) as shift:
        for _ in range(KILLS):
            shift.wait_acknowledged(shift.acknowledged + 10)
            server.kill()
            server.wait()
            server = _start(port, file)
        shift.stop.set()
    time.sleep(2 * hasty.LATER_SECONDS)
    server.kill()
    server.wait()
    return differences(journal.read(), hasty.rows(file))


def _assessor(name: str, port: int, journal: Journal) -> Assessor:
    def pause() -> None:
        time.sleep(PAUSE_SECONDS)

    return Assessor(name, Api(f"http://127.0.0.1:{port}"), "/", lambda _: 1, pause, journal)


def _start(port: int, file: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", hasty.__name__, str(port), str(file)], cwd=REPO)
