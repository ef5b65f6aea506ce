"""`make drills`: ``python -m tests.at_length [--only NAME ...]``.

Faults for minutes instead of seconds, against real sites. Prints a table; ends with 1 if anything
was lost, doubled, above its cap or otherwise not as it must be, or if a broken twin went unnoticed.
"""

import argparse
import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from tests.at_length.tally import Tally, table

Drill = Callable[[], Tally]
MACHINE = Path(__file__).resolve().parents[1] / "drills" / "test_machine.py"
PYTEST = [sys.executable, "-m", "pytest", "-q", "--timeout=0"]
DATABASES: dict[str, dict[str, str]] = {
    "SQLite": {},
    "PostgreSQL": {"EVALSITE_TEST_DATABASE": "postgres"},
}
NOTHING_COLLECTED = 5


def drills() -> dict[str, tuple[Drill, ...]]:
    """By the names that DRILL takes."""
    from tests.at_length import full_disk, hostile, kills, services, slow_clients, stops, twin

    return {
        "twin": (twin.hasty_is_caught,),
        "stops": (stops.on_production, stops.on_up),
        "frozen": (services.postgres_frozen, services.redis_frozen),
        "absent": (services.redis_absent,),
        "disk": (full_disk.on_up,),
        "slow": (slow_clients.on_production, slow_clients.on_up),
        "hostile": (hostile.on_production, hostile.on_up),
        "kills": (kills.on_production, kills.on_up),
    }


def versions() -> str:
    names = ("django", "celery", "gunicorn", "waitress", "psycopg", "redis")
    found = [f"Python {sys.version.split()[0]}", *(f"{name} {version(name)}" for name in names)]
    programs = (["postgres", "--version"], ["redis-server", "--version"], ["nginx", "-v"])
    return ", ".join([*found, *map(_printed, programs)])


def _printed(command: list[str]) -> str:
    path = f"{os.environ['PATH']}:/usr/sbin"
    program = shutil.which(command[0], path=path)
    if program is None:
        return f"no {command[0]}"
    done = subprocess.run([program, command[1]], capture_output=True, text=True, check=False)
    return " ".join((done.stdout or done.stderr).split()[:4])


def run(drill: Drill) -> Tally:
    """A drill that breaks off is a mismatch, and keeps no other from running."""
    began = time.monotonic()
    try:
        tally = drill()
    except Exception as broken:
        traceback.print_exc()
        tally = Tally(f"{drill.__module__.rsplit('.', 1)[-1]}.{drill.__name__}", mismatches=1)
        tally.notes.append(f"WRONG: broke off: {type(broken).__name__}: {str(broken)[:300]}")
    print(f"\n{tally.drill} ({time.monotonic() - began:.0f} s)", *tally.notes, sep="\n  ")
    sys.stdout.flush()
    return tally


def machine() -> int:
    """The state machine of organizers, assessors and workers, with many steps, on each database."""
    tests = [str(MACHINE)] if MACHINE.exists() else ["-m", "machine", str(MACHINE.parents[1])]
    codes = set()
    for database, env in DATABASES.items():
        print(f"\nstate machine, {database}", flush=True)
        codes.add(subprocess.run([*PYTEST, *tests], env=os.environ | env, check=False).returncode)
    return max(codes - {NOTHING_COLLECTED}, default=0)


def main() -> int:
    from tests.at_length.ground import SEED

    known = drills()
    parser = argparse.ArgumentParser(prog="make drills", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=[*known, "machine"], metavar="NAME")
    chosen = parser.parse_args().only or [*known, "machine"]
    print(f"seed {SEED}; {versions()}")
    tallies = [run(drill) for name in chosen if name in known for drill in known[name]]
    code = machine() if "machine" in chosen else 0
    if tallies:
        print(f"\n{table(tallies)}")
    return int(code != 0 or not all(tally.passed for tally in tallies))


if __name__ == "__main__":
    os.environ["EVALSITE_DRILLS"] = "long"
    os.environ.setdefault("EVALSITE_DRILL_SECONDS", "180")  # of the state machine
    os.environ["EVALSITE_DATA"] = tempfile.mkdtemp(prefix="evs-drills-")
    atexit.register(shutil.rmtree, os.environ["EVALSITE_DATA"], ignore_errors=True)
    sys.exit(main())
