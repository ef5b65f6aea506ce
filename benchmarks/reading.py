"""Reading and checking run files: processor time, beside a bare read and trec_eval's own parser.

`.venv/bin/python -m benchmarks.reading` makes run files (128 of 50 topics with 1 000 documents) and
reads them with `read_run`, which checks every line, finds repeated documents and puts all lists in
trec_eval's order. Peers read the same files in processes of their own: `pytrec_eval.parse_run`, and
bare reads of Polars and PyArrow, which check nothing. Name the Python that has a peer:

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install polars pyarrow
    .venv/bin/python -m benchmarks.reading --peers /tmp/peers/bin/python

All take turns, and the least of `--passes` counts, so that a busy machine changes little.
`--blanks` writes several blanks between columns, `--letters` docnos and tags that are not ASCII,
`--long` scores of 17 digits, `--unsorted` lists in no order.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

from benchmarks.figures import Figure, tell

TOPICS, DEPTH = 50, 1000
WAYS = ("blanks", "letters", "long", "unsorted")
MOST_TIMES = {"pytrec_eval": 0.8, "polars": 3.0, "pyarrow": 3.0}
READ = {
    "pytrec_eval": """
import pytrec_eval
def read(path):
    with open(path) as file:
        return sum(map(len, pytrec_eval.parse_run(file).values()))
""",
    "polars": """
import polars
SCHEMA = {"q": polars.String, "i": polars.String, "d": polars.String,
          "r": polars.Float64, "s": polars.Float64, "t": polars.String}
def read(path):
    return len(polars.read_csv(
        path, has_header=False, separator=" ", quote_char=None, schema=SCHEMA))
""",
    "pyarrow": """
import pyarrow, pyarrow.csv as csv
TEXT, NUMBER = pyarrow.binary(), pyarrow.float64()
TYPES = {"q": TEXT, "i": TEXT, "d": TEXT, "r": NUMBER, "s": NUMBER, "t": TEXT}
def read(path):
    return len(csv.read_csv(
        path, csv.ReadOptions(column_names=list(TYPES), use_threads=False),
        csv.ParseOptions(delimiter=" ", quote_char=False), csv.ConvertOptions(column_types=TYPES)))
""",
    "evalsite": """
from estimation.formats.runs import read_run
from judging.formats.problems import Problems
def read(path):
    problems = Problems(path)
    with open(path, "rb") as file:
        run = read_run(file, problems, topics=[str(401 + topic) for topic in range(50)])
    assert run is not None and not problems.warnings, problems
    return run.lines
""",
}
SERVE = """
import sys, time
read(sys.argv[1])  # what is imported and grown at first use
for line in sys.stdin:
    started = time.process_time()
    lines = sum(read(path) for path in sys.argv[1:])
    print(time.process_time() - started, lines, flush=True)
"""


class Reader:
    """A process that reads all files whenever it is told to."""

    def __init__(self, python: str, name: str, paths: list[Path]) -> None:
        command = [python, "-c", READ[name] + SERVE, *map(str, paths)]
        self.name, self.seconds, self.lines = name, float("inf"), 0
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def read(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split()
        if not answer:
            raise SystemExit(f"{self.name} cannot read the files")
        self.seconds, self.lines = min(self.seconds, float(answer[0])), int(answer[1])


def write_runs(folder: Path, runs: int, ways: Collection[str] = ()) -> list[Path]:
    """Write run files in which lists get shorter scores from top to bottom, as programs do; in some
    of the `WAYS`."""
    rng, paths = random.Random("reading"), []
    blank = " \t " if "blanks" in ways else " "
    collection, tag = ("ÜT", "Läufer") if "letters" in ways else ("FT", "run")
    for number in range(runs):
        lines = []
        for topic in range(TOPICS):
            docnos = rng.sample(range(500_000), DEPTH)
            scores = sorted((rng.gammavariate(2, 3) for _ in docnos), reverse=True)
            for rank, (docno, score) in enumerate(zip(docnos, scores, strict=True), 1):
                text = repr(score) if "long" in ways else f"{score:.6f}"
                name = f"{collection}{docno % 1000}-{docno}"
                cells = [str(401 + topic), "Q0", name, str(rank), text, f"{tag}{number}"]
                lines.append(blank.join(cells) + "\n")
        if "unsorted" in ways:
            rng.shuffle(lines)
        paths.append(folder / f"run{number}.txt")
        paths[-1].write_text("".join(lines))
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", default=sys.executable, help="the Python that has the libraries")
    parser.add_argument("--runs", type=int, default=128)
    parser.add_argument("--passes", type=int, default=3)
    for name in WAYS:
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ways = [name for name in WAYS if getattr(options, name)]
        paths = write_runs(Path(folder), options.runs, ways)
        started = time.perf_counter()
        readers = [Reader(sys.executable, name, paths) for name in ("evalsite", "pytrec_eval")] + [
            Reader(options.peers, name, paths) for name in found(options)
        ]
        for _ in range(options.passes):
            for reader in readers:
                reader.read()
        size = sum(path.stat().st_size for path in paths) / 2**20
    ours = readers[0]
    print(f"{options.runs} files, {ours.lines:,} lines, {size:.0f} MB; seconds of one processor")
    work = ", ".join([f"read and check {options.runs} run files", *ways])
    for reader in readers[1:]:
        most = MOST_TIMES[reader.name]
        tell(Figure(work, ours.seconds, "s", reader.name, reader.seconds, most_times=most))
    print(f"({time.perf_counter() - started:.0f} s in all)")


def found(options: argparse.Namespace) -> list[str]:
    """The libraries that the other Python has; a blank is one character to them."""
    names = [] if options.blanks else ["polars", "pyarrow"]
    return [name for name in names if _has(options.peers, name)]


def _has(python: str, library: str) -> bool:
    ask = [python, "-c", f"import {library}"]
    return not subprocess.run(ask, stderr=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    main()
