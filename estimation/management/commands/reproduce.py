"""``manage.py reproduce``: do the published tables come out?"""

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from estimation.core.arrays import nearest
from estimation.management.whole_files import read_runs, read_whole
from estimation.research.published import experiments, reproduction
from estimation.research.published.experiments import Collection
from estimation.research.published.numbers import KEYS, TRIALS
from estimation.research.published.reproduction import Reproduced
from judging.formats.lines import BinaryFile
from judging.formats.problems import Problems
from judging.formats.qrels import grades_by_pair, read_qrels

TRIALS_TITLE = "simulated draws: what the formulas promise, and what happened"
HEADER = ("row", "column", "expected", "measured", "ratio", "accepted", "")


class Command(BaseCommand):
    help = (
        "Prints published tables about sampled evaluation beside the values that this program "
        f"computes. Tables: {', '.join(KEYS)}; by default all. Exit status 1 if a number does "
        "not agree and is not a noted miss."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("table", nargs="*", help=f"any of {', '.join(KEYS)}")
        parser.add_argument(
            "--trec8", type=Path, metavar="DIR", help="folder with qrels.txt and runs/ of TREC-8"
        )
        parser.add_argument("--trials", type=int, default=100, help="simulated draws per run")
        parser.add_argument("--seed", type=int, default=2016, help="of all that is random")
        parser.add_argument("--json", action="store_true", help="one JSON list instead of tables")

    def handle(self, *_args: Any, **options: Any) -> None:
        keys, trials, seed = _keys(options["table"]), options["trials"], options["seed"]
        if trials < 2:
            raise CommandError(f"--trials must be at least 2, not {trials}.")
        if seed < 0:
            raise CommandError(f"--seed must be at least 0, not {seed}.")
        collections = [experiments.synth(seed=seed)]
        if options["trec8"]:
            collections.append(_trec8(options["trec8"]))
        found: list[Reproduced] = []
        for collection in collections:
            for title, rows in _compared(collection, keys, trials, seed):
                found.extend(rows)
                if not options["json"]:
                    self._print(title, rows)
        if options["json"]:
            self.stdout.write(json.dumps([_record(row) for row in found], indent=1))
        else:
            self._summarize(found, is_complete=bool(options["trec8"]))
        failed = sum(row.verdict == "FAIL" for row in found)
        if failed:
            raise CommandError(f"{failed} of {len(found)} numbers do not agree.")

    def _print(self, title: str, rows: Sequence[Reproduced]) -> None:
        self.stdout.write(f"\n{title}")
        for line in _aligned([HEADER, *map(_cells, rows)]):
            self.stdout.write(f"  {line}".rstrip())

    def _summarize(self, found: Sequence[Reproduced], *, is_complete: bool) -> None:
        counts = Counter(row.verdict for row in found)
        self.stdout.write(
            f"\n{counts['pass']} of {len(found)} numbers agree, {counts['noted']} noted "
            f"miss{'' if counts['noted'] == 1 else 'es'}, "
            f"{counts['FAIL']} failures."
        )
        for row in found:
            if row.verdict == "noted":
                self.stdout.write(f"Noted: {row.table} {row.row}, {row.column}: {row.note}.")
        if not is_complete:
            self.stdout.write("TREC-8 was left out: give its folder with --trec8.")


def _keys(given: Sequence[str]) -> list[str]:
    """The canonical names of tables, typed in any case."""
    known = {key.lower(): key for key in KEYS}
    for name in given:
        if name.lower() not in known:
            told = f"There is no table {name!r}{nearest(name, KEYS)}"
            raise CommandError(f"{told}; there are {', '.join(KEYS)}.")
    return [known[name.lower()] for name in given] or list(KEYS)


def _compared(
    collection: Collection, keys: Sequence[str], trials: int, seed: int
) -> Iterable[tuple[str, tuple[Reproduced, ...]]]:
    for table in reproduction.tables(keys, collection.name):
        title = f"{table.key}, {table.collection} ({table.reference}): {table.title}"
        yield title, reproduction.compare(table, collection)
    if TRIALS in keys:
        rows = reproduction.compare_trials(collection, trials=trials, seed=seed)
        yield f"{TRIALS}, {collection.name} ({trials} trials): {TRIALS_TITLE}", rows


def _trec8(folder: Path) -> Collection:
    files = sorted([*folder.glob("runs/*.run"), *folder.glob("runs/*.run.gz")])
    if not files or not (folder / "qrels.txt").is_file():
        raise CommandError(f"{folder} is not the folder of TREC-8: it needs qrels.txt and runs/.")
    try:
        return experiments.trec8(
            read_runs(files, "run"), read_whole(folder / "qrels.txt", "qrels", _grades)
        )
    except experiments.ReproductionError as error:
        raise CommandError(str(error)) from None


def _grades(file: BinaryFile, problems: Problems) -> dict[tuple[str, str], int]:
    return grades_by_pair(read_qrels(file, problems))


def _cells(row: Reproduced) -> tuple[str, ...]:
    accepted = f"{row.low:.4g} to {row.high:.4g}"
    numbers = (f"{row.expected:.6g}", f"{row.measured:.6g}", f"{row.ratio:.3f}")
    return (row.row, row.column, *numbers, accepted, row.verdict)


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side: the two names flush left, the numbers flush right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if 2 <= place < 5 else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]


def _record(row: Reproduced) -> dict[str, Any]:
    record = {item.name: getattr(row, item.name) for item in fields(row)}
    ratio = row.ratio if math.isfinite(row.ratio) else None
    return record | {"ratio": ratio, "verdict": row.verdict}
