"""Where the time of the three hottest paths goes, beside what nobody could do without.

``python -m benchmarks.profiles [--page docs/benchmarks.md]``. Reading run files, the recompute of a
round of 100 000 judgments, and a judgment that is sent by REST, each in a process of its own and
after it was done once. Shares are of the own time of functions, by `cProfile`, which makes those
with many short calls look longer than they are. Floors: moving the bytes through memory once, at
the speed of a copy; the same statements by the bare driver, which fetches all rows, and writes and
commits what a judgment does.
"""

import argparse
import cProfile
import os
import pstats
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

BEGINS, ENDS = "<!-- profiles: begins -->", "<!-- profiles: ends -->"
SHOWN, RUNS, JUDGMENTS = 6, 16, 200
ROOT = Path(__file__).resolve().parents[1]


def profiled(title: str, work: Callable[[], object], floor: str) -> Iterator[str]:
    """A table of the functions with the most own time."""
    profile = cProfile.Profile(time.process_time)
    profile.runcall(work)
    stats: dict[Any, Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(each[2] for each in stats.values())
    spots = sorted(stats.items(), key=lambda item: -item[1][2])[:SHOWN]
    yield from (f"**{title}.** {floor}", "", "| share | calls | function |", "| --: | --: | --- |")
    for (file, line, name), (_, calls, seconds, *_) in spots:
        yield f"| {100 * seconds / total:.0f} % | {calls:,} | {_named(file, line, name)} |"
    yield ""


def _named(file: str, line: int, name: str) -> str:
    if not line:
        return f"`{name.strip('<>').replace('built-in method ', '').partition(' at 0x')[0]}`"
    path = Path(file)
    if path.is_relative_to(ROOT) and ".venv" not in path.parts:
        return f"`{path.relative_to(ROOT)}`, {name}"
    return f"`{'/'.join(path.parts[-2:])}`, {name}"


def bytes_a_second() -> float:
    """How fast memory is copied."""
    source = np.ones(64 * 2**20, dtype=np.uint8)
    target = np.empty_like(source)
    spent = []
    for _ in range(5):
        started = time.process_time()
        np.copyto(target, source)
        spent.append(time.process_time() - started)
    return len(source) / max(min(spent), 1e-6)


def of_reading() -> Iterator[str]:
    from benchmarks.reading import write_runs
    from estimation.formats.runs import read_run
    from judging.formats.problems import Problems

    topics = [str(401 + topic) for topic in range(50)]

    def read(paths: list[Path]) -> None:
        for path in paths:
            with path.open("rb") as file:
                if read_run(file, Problems(path.name), topics=topics) is None:
                    raise SystemExit(f"{path} cannot be read")

    with tempfile.TemporaryDirectory() as folder:
        paths = write_runs(Path(folder), RUNS)
        read(paths)
        started = time.process_time()
        read(paths)
        seconds, size = time.process_time() - started, sum(path.stat().st_size for path in paths)
        floor = 1000 * size / bytes_a_second()
        told = f"{1000 * seconds:.0f} ms; their {size / 2**20:.0f} MB are copied in {floor:.0f} ms"
        title = f"Reading and checking {RUNS} run files of 50 000 lines"
        yield from profiled(title, lambda: read(paths), told + ".")


def of_recompute() -> Iterator[str]:
    from benchmarks import recompute  # sets Django up

    # isort: split
    from django.core.management import call_command
    from django.db import connection

    from benchmarks.core import synthetic
    from estimation.services import pools

    call_command("migrate", verbosity=0)
    judged = recompute.campaign(synthetic(noise=2.0), recompute.GIVEN.depth)
    row = recompute.drawn(judged, "poisson", recompute.LARGE)
    ids = list(row.round_batches.order_by("number").values_list("batch", flat=True))
    judged.fill(ids)
    judged.complete(ids)
    for _ in range(2):
        seconds = recompute.corrected(row).every
    _, pool = pools.ensure(judged.campaign)
    size = sum(getattr(pool, name).nbytes for name in ("topic", "docno", "indptr", "run", "rank"))
    statements: list[tuple[str, Any]] = []

    def keep(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(keep):
        recompute.corrected(row)
    asked = [each for each in statements if each[0].startswith("SELECT")]
    driver, copied = by_the_driver(asked), 1000 * size / bytes_a_second()
    told = (
        f"{1000 * seconds:.0f} ms; its {len(asked)} questions to the database take {driver:.0f} ms "
        f"by the bare driver, the {size / 2**20:.0f} MB of the pool are copied in {copied:.1f} ms."
    )
    title = f"The recompute after {recompute.LARGE:,} judgments"
    yield from profiled(title, lambda: recompute.corrected(row), told)


def of_judging() -> Iterator[str]:
    from benchmarks import judging  # sets Django up

    # isort: split
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    judge = judging.by_rest(*judging.drawn("profile", 100))
    for number in range(50):
        judge(number)()
    said: judging.Statements = []
    before = judging.copy_database()
    with judging.recorded(said):
        judge(50)()

    def send(first: int) -> None:
        for number in range(first, first + JUDGMENTS):
            judge(number)()

    started = time.process_time()
    send(51)
    seconds = (time.process_time() - started) / JUDGMENTS
    driver = on_copies(before, [(each.sql, each.values) for each in said])
    told = (
        f"{1000 * seconds:.1f} ms; its {len(said)} statements, with the commit, take "
        f"{driver:.2f} ms by the bare driver."
    )

    yield from profiled(
        "A judgment by REST, with the next pair", lambda: send(51 + JUDGMENTS), told
    )


def by_the_driver(asked: list[tuple[str, Any]], times: int = 5) -> float:
    """Milliseconds of SQLite's driver for some statements, all rows fetched."""
    import sqlite3

    from django.db import connection

    connection.ensure_connection()
    spent = []
    driver: sqlite3.Connection = connection.connection
    bare = [(sql.replace("%s", "?").replace("%%", "%"), tuple(of or ())) for sql, of in asked]
    for _ in range(times):
        started = time.process_time()
        for each in bare:
            sqlite3.Connection.execute(driver, *each).fetchall()
        spent.append(time.process_time() - started)
    return 1000 * min(spent)


def on_copies(database: str, said: list[tuple[str, Any]], times: int = 5) -> float:
    """Milliseconds of SQLite's driver for statements that change the database: each time on a copy
    of it, by a connection that is set as the site's is. What is open is closed for it."""
    from django.db import connection

    kept, spent = connection.settings_dict["NAME"], []
    for turn in range(times):
        connection.close()
        connection.settings_dict["NAME"] = shutil.copy(database, f"{database}-{turn}")
        spent.append(by_the_driver(said, times=1))
    connection.close()
    connection.settings_dict["NAME"] = kept
    return min(spent)


PATHS = {"reading": of_reading, "recompute": of_recompute, "judging": of_judging}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path, help="write the tables between its marks")
    parser.add_argument("--only", choices=PATHS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        print("\n".join(PATHS[given.only]()))
        return
    lines = [""]
    for name in PATHS:
        command = [sys.executable, "-m", "benchmarks.profiles", "--only", name]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        print(done.stdout, flush=True)
        lines.append(done.stdout[done.stdout.index("**") :].rstrip("\n"))
        lines.append("")
    if given.page:
        before, _, rest = given.page.read_text().partition(BEGINS)
        _, _, after = rest.partition(ENDS)
        told = "\n".join([before + BEGINS, *lines, ENDS + after])
        given.page.write_text(told)


if __name__ == "__main__":
    main()
