"""Shards: processor time and memory of build, design, draw and evaluation, by number of lines.

`.venv/bin/python -m benchmarks.scaling` generates campaigns of 4e6 and 2e7 lines (100 runs, depth
1000, as many topics as that takes), and more with ``--lines``: the lines, too, are made by the
workers, input by input, so that no process ever holds all. Every size is worked on by ``--workers``
processes of its own; with ``--dask`` they are those of a Dask cluster that is started for it, each
with at most 4 GiB, and with ``--kill 60`` one of them is killed after so many seconds of building
(a worker of Dask is started again). Shown per size:

* seconds of processor time of each stage, of workers and this process together, and microseconds a
  line of all stages but the making of lines;
* the exponent of growth from the size before: 1 is linear;
* the largest memory of a worker and of the reducing process, mapped files included.

``--shard-lines`` is how many lines a shard has on average. With ``--keep FOLDER`` results stay, and
a second run has nothing to do but its reductions.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import Figure, tell
from estimation.core.measures.table import parse_measure
from estimation.core.sampling import goals
from estimation.core.shards.building import build_shards
from estimation.core.shards.designing import design_shards, draw_shards
from estimation.core.shards.executors import open_executor
from estimation.core.shards.lines import judgment_lines, run_lines
from estimation.core.shards.running import ShardStep, StepResult, do_steps
from estimation.core.shards.values import estimate_shards, evaluate_shards

RUNS, DEPTH, DOCUMENTS, RELEVANT = 100, 1000, 8000, 0.01
TOPICS_PER_INPUT = 10
MEASURES = tuple(map(parse_measure, ("P@10", "nDCG@100", "AP")))
DESIGN = parse_measure("DCG@100")


@dataclass(frozen=True)
class MadeTopics(ShardStep):
    """Made-up topics: grades, and for each run a list by grade, common error and own error."""

    first: int
    number: int
    judged: bool

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.first, self.number, self.judged, RUNS, DEPTH, DOCUMENTS, RELEVANT

    def work(self) -> StepResult:
        made = [self._topic(self.first + place) for place in range(self.number)]
        names = np.array([f"t{self.first + place:06}".encode() for place in range(self.number)])
        if self.judged:
            found = [np.flatnonzero(grade) for grade, _, _ in made]
            docno = [_docnos(self.first + place)[rows] for place, rows in enumerate(found)]
            return judgment_lines(
                topics=names,
                topic=np.repeat(np.arange(self.number), [len(rows) for rows in found]),
                docno=np.concatenate(docno),
                grade=np.concatenate(
                    [grade[rows] for (grade, _, _), rows in zip(made, found, strict=True)]
                ),
            )
        documents = [_docnos(self.first + place)[top] for place, (_, top, _) in enumerate(made)]
        return run_lines(
            topics=names,
            runs=np.array([f"run{run:03}".encode() for run in range(RUNS)]),
            topic=np.repeat(np.arange(self.number, dtype=np.int32), RUNS * DEPTH),
            run=np.tile(np.repeat(np.arange(RUNS, dtype=np.int32), DEPTH), self.number),
            docno=np.concatenate([each.ravel() for each in documents]),
            score=np.concatenate([score.ravel() for _, _, score in made]).astype(np.float64),
        )

    def _topic(self, topic: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Grades of documents; the top of every run and its scores, (runs, depth) each."""
        rng = np.random.default_rng([11, topic])
        chance = rng.random(DOCUMENTS)
        grade = (chance < RELEVANT).astype(np.int64) + (chance < RELEVANT / 4)
        if self.judged:
            return grade, np.array([]), np.array([])
        common = (grade + rng.normal(size=DOCUMENTS)).astype(np.float32)
        own = rng.standard_normal((RUNS, DOCUMENTS), dtype=np.float32)
        score = common + own * np.linspace(0.5, 1.5, RUNS, dtype=np.float32)[:, None]
        top = np.argpartition(-score, DEPTH, axis=1)[:, :DEPTH]
        return grade, top, np.take_along_axis(score, top, axis=1)


def _docnos(topic: int) -> np.ndarray:
    return np.array([f"doc-{topic:06}-{number:05}".encode() for number in range(DOCUMENTS)])


class Workers:
    """Processes of a Dask cluster on this machine: their time and memory, also of the killed."""

    def __init__(self, number: int) -> None:
        from distributed import LocalCluster

        self.seconds: dict[Any, float] = {}
        self.megabytes = 0.0
        self.cluster = LocalCluster(
            n_workers=number, threads_per_worker=1, memory_limit="4GiB", dashboard_address=None
        )  # fmt: skip
        self.address = str(self.cluster.scheduler_address)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.look()
            time.sleep(0.2)

    def look(self) -> None:
        import psutil

        for process in psutil.Process().children(recursive=True):
            try:
                used, status = process.cpu_times(), Path(f"/proc/{process.pid}/status").read_text()
            except (psutil.Error, OSError):
                continue
            self.seconds[process] = used.user + used.system
            held = int(status.partition("VmHWM:")[2].split()[0]) if "VmHWM:" in status else 0
            self.megabytes = max(self.megabytes, held / 1024)

    def kill_one(self) -> None:
        """The one that has worked most."""
        there = [each for each in self.seconds if each.is_running()]
        max(there, key=lambda each: self.seconds[each]).kill()


class Stages:
    """Processor seconds of stages, on workers of their own; or all on those of one cluster."""

    def __init__(self, workers: int, cluster: Workers | None) -> None:
        self.workers, self.cluster = workers, cluster
        self.seconds: dict[str, float] = {}
        self.waited: dict[str, float] = {}

    def run(self, name: str, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        scheduler = self.cluster.address if self.cluster else None
        with self._timed(name), open_executor(self.workers, scheduler=scheduler) as executor:
            return work(executor, *given, **named)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        before, started = self.processor_seconds(), time.perf_counter()
        yield
        self.seconds[name] = self.processor_seconds() - before
        self.waited[name] = time.perf_counter() - started
        print(f"  {name}: {self.waited[name]:.0f} s", file=sys.stderr, flush=True)

    def processor_seconds(self) -> float:
        own = resource.getrusage(resource.RUSAGE_SELF)
        if self.cluster is not None:
            self.cluster.look()
            return own.ru_utime + own.ru_stime + sum(self.cluster.seconds.values())
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime

    @property
    def megabytes(self) -> float:
        """The largest resident size of a worker."""
        if self.cluster is not None:
            return self.cluster.megabytes
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def measured(folder: Path, lines: int, options: argparse.Namespace) -> dict[str, Any]:
    """Do everything for so many lines, and return what it took."""
    topics = max(1, round(lines / (RUNS * DEPTH)))
    shards = max(1, round(lines / options.shard_lines))
    blocks = [
        (first, min(TOPICS_PER_INPUT, topics - first))
        for first in range(0, topics, TOPICS_PER_INPUT)
    ]
    stages = Stages(options.workers, Workers(options.workers) if options.dask else None)
    made = stages.run(
        "make", do_steps,
        [MadeTopics(folder, *block, judged) for judged in (False, True) for block in blocks],
    )  # fmt: skip
    inputs, judgments = made[: len(blocks)], made[len(blocks) :]
    if options.kill and stages.cluster:
        killing = threading.Timer(options.kill, stages.cluster.kill_one)
        killing.daemon = True
        killing.start()
    pool = stages.run("build", build_shards, folder, inputs, shards=shards, depth=DEPTH)
    budget = 20 * topics
    design = stages.run(
        "design", design_shards, pool, goal=goals.absolute(*pool.frame.runs), measure=DESIGN,
        budget=budget, batch_size=budget, reported=MEASURES,
    )  # fmt: skip
    sample = stages.run("draw", draw_shards, design, seed="scaling")
    values = stages.run("evaluate", evaluate_shards, pool, judgments, measures=MEASURES)
    totals = stages.run(
        "estimate", estimate_shards, pool, sample, judgments, measure=DESIGN, unlisted=0
    )
    return {
        "lines": pool.entries,
        "pairs": pool.pairs,
        "shards": shards,
        "seconds": stages.seconds,
        "waited": sum(stages.waited.values()),
        "worker MB": round(stages.megabytes),
        "reducer MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "sampled": len(sample.docno),
        "means": values.mean(axis=(1, 2)).tolist(),
        "first total": [float(totals.value[0]), float(totals.covariance[0, 0])],
    }


def apart(folder: Path, lines: int, options: argparse.Namespace) -> dict[str, Any]:
    """The same in a process of its own, whose memory is that of this size alone."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--only", str(lines), "--keep", folder]
    command += ["--workers", str(options.workers), "--shard-lines", str(options.shard_lines)]
    command += ["--dask"] * options.dask + ["--kill", str(options.kill)] * bool(options.kill)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout))


def show(found: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Print a size beside the one before."""
    shown = ", ".join(f"{name} {seconds:.1f}" for name, seconds in found["seconds"].items())
    worked = [_worked(each) for each in (found, before or found)]
    print(f"{found['lines']:,} lines, {found['pairs']:,} pairs, {found['shards']} shards")
    print(f"  processor seconds: {shown}; {1e6 * worked[0] / found['lines']:.2f} µs a line")
    print(f"  largest worker {found['worker MB']} MB, reducer {found['reducer MB']} MB")
    if before is not None:
        growth = math.log(worked[0] / worked[1]) / math.log(found["lines"] / before["lines"])
        memory = found["worker MB"] / before["worker MB"]
        print(f"  growth: time with exponent {growth:.2f}, memory of a worker times {memory:.2f}")
        work = f"{found['lines']:,} lines in shards"
        each = [1e6 * _worked(known) / known["lines"] for known in (found, before)]
        beside = f"with {before['lines']:,}"
        tell(Figure(f"{work}: a line", each[0], "µs", beside, each[1], most_times=1.15))
        sizes = found["worker MB"], "MB", beside, before["worker MB"]
        tell(Figure(f"{work}: largest worker", *sizes, most=4096.0, most_times=1.15))
    print(f"  ({found['waited']:.0f} s in all; {found['sampled']} sampled; means {found['means']})")


def _worked(found: dict[str, Any]) -> float:
    return sum(seconds for name, seconds in found["seconds"].items() if name != "make")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=float, nargs="+", default=[4e6, 2e7])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--shard-lines", type=float, default=2e6)
    parser.add_argument("--dask", action="store_true", help="on a Dask cluster of this machine")
    parser.add_argument("--kill", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--keep", type=Path, help="a folder for all results")
    parser.add_argument("--only", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measured(options.keep, int(options.only), options)))
        return
    before = None
    for lines in options.lines:
        with tempfile.TemporaryDirectory() as folder:
            kept = options.keep / str(int(lines)) if options.keep else Path(folder)
            found = apart(kept, int(lines), options)
        show(found, before)
        before = found


if __name__ == "__main__":
    main()
