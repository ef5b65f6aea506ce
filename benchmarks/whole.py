"""Complete judgments: processor time from files to values, beside other libraries.

`.venv/bin/python -m benchmarks.whole` makes files of TREC-8's size (128 runs, 50 topics, 1 000
documents, some 87 000 judgments) and takes P@10, nDCG@100 and AP of every run and topic from them.
Every library does it in a process of its own, with its own reader; all take turns, and the least of
`--passes` counts. Values are held against those of pytrec_eval, to 1e-10. Name the Python that has
the others:

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install pytrec_eval-terrier ir_measures ranx
    .venv/bin/python -m benchmarks.whole --peers /tmp/peers/bin/python

`evalsite` reads with the site's reader, `evalsite, library` with `read_runs`; `evalsite, pool` has
the pool in memory, as a server has, and what it took to build it stands under "read".
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.figures import Figure, tell

TOPICS, DEPTH, DOCUMENTS, JUDGED, RELEVANT = 50, 1000, 528_000, 1737, 100
CANDIDATES = 20_000  # documents of a topic that runs return any of
WANTED = 1e-10
FILES = 0.5  # of pytrec_eval's time
POOL = "evalsite, pool"
MEASURES = ("P@10", "nDCG@100", "AP")

EACH_RUN = """
def work(paths, qrels):
    started = clock()
    judged = read_qrels(qrels)
    read, found = clock() - started, []
    for path in paths:
        started = clock()
        run = read_run(path)
        read += clock() - started
        started = clock()
        found.append(evaluate(judged, run))
        evaluated.append(clock() - started)
    values = [[[each[topic][m] for each in found] for topic in TOPICS] for m in range(3)]
    return read, sum(evaluated), values
"""
OURS = """
import numpy as np
from estimation import core as ev
MEASURES = ["P@10", "nDCG@100", "AP"]
def evaluate(runs, judged):
    found = ev.evaluate_complete(runs, judged, measures=MEASURES)
    return found.by_topic[:, [found.topics.index(t) for t in TOPICS]][:, :, ORDER(found.runs)]
def ORDER(tags):
    return [tags.index(f"run{n}") for n in range(len(tags))]
def work(paths, qrels):
    started = clock()
    runs, judged = read(paths, qrels)
    between = clock()
    values = evaluate(runs, judged)
    return between - started, clock() - between, values.tolist()
version = ev.__version__
"""
PEERS = {
    "evalsite": OURS + """
from estimation.formats.runs import read_run
from judging.formats.problems import Problems
def read(paths, qrels):
    runs = {}
    for path in paths:
        with open(path, "rb") as file:
            run = read_run(file, Problems(path), topics=TOPICS)
        runs[run.tag] = run.lists
    return runs, ev.read_qrels(qrels)
""",
    "evalsite, library": OURS + """
def read(paths, qrels):
    return ev.read_runs(paths), ev.read_qrels(qrels)
""",
    "evalsite, pool": OURS + """
def read(paths, qrels):
    judged = ev.read_qrels(qrels)
    pool = ev.pool_runs(ev.read_runs(paths), depth=1000, judged=judged)
    labels = judged.labels(pool, unlisted=0)
    grades = np.zeros(len(pool), dtype=np.int64)
    grades[labels.pair] = labels.grade
    return pool, grades
""",
    "pytrec_eval": """
import pytrec_eval
from importlib.metadata import version as of
version = of("pytrec_eval-terrier")
NAMES = "P_10", "ndcg_cut_100", "map"
def read_qrels(path):
    with open(path) as file:
        judged = pytrec_eval.parse_qrel(file)
    return pytrec_eval.RelevanceEvaluator(judged, {"P.10", "ndcg_cut.100", "map"})
def read_run(path):
    with open(path) as file:
        return pytrec_eval.parse_run(file)
def evaluate(judged, run):
    found = judged.evaluate(run)
    return {topic: [found[topic][name] for name in NAMES] for topic in found}
""" + EACH_RUN,
    "ir_measures": """
import ir_measures
from importlib.metadata import version as of
version = of("ir_measures")
WANTED = [ir_measures.parse_measure(text) for text in ("P@10", "nDCG@100", "AP")]
def read_qrels(path):
    return ir_measures.evaluator(WANTED, list(ir_measures.read_trec_qrels(path)))
def read_run(path):
    return list(ir_measures.read_trec_run(path))
def evaluate(judged, run):
    found = {}
    for each in judged.iter_calc(run):
        found.setdefault(each.query_id, [0.0] * 3)[WANTED.index(each.measure)] = each.value
    return found
""" + EACH_RUN,
    "ranx": """
import ranx
from importlib.metadata import version as of
version = of("ranx")
NAMES = ["precision@10", "ndcg@100", "map"]
def read_qrels(path):
    return ranx.Qrels.from_file(path, kind="trec")
def read_run(path):
    return ranx.Run.from_file(path, kind="trec")
def evaluate(judged, run):
    found = ranx.evaluate(judged, run, NAMES, return_mean=False)
    return {t: [found[n][at] for n in NAMES] for at, t in enumerate(judged.keys())}
""" + EACH_RUN,
}  # fmt: skip
SERVE = """
import json, sys
TOPICS = [str(401 + topic) for topic in range(50)]
evaluated = []
work(sys.argv[3:4], sys.argv[2])  # what is imported, compiled and grown at first use
print(version, flush=True)
for line in sys.stdin:
    evaluated.clear()
    reading, evaluating, values = work(sys.argv[3:], sys.argv[2])
    with open(sys.argv[1], "w") as file:
        json.dump(values, file)
    print(reading, evaluating, flush=True)
"""


class Peer:
    """A process that reads all files and evaluates all runs whenever it is told to."""

    def __init__(self, python: str, name: str, folder: Path, paths: Sequence[Path]) -> None:
        self.name, self.values = name, folder / f"{name}.json"
        self.read, self.evaluated = float("inf"), float("inf")
        code = "from time import process_time as clock\n" + PEERS[name] + SERVE
        files = map(str, (self.values, folder / "qrels", *paths))
        threads = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [python, "-c", code, *files], env={**os.environ, **threads}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.version = self._answer()[0]

    def take_turn(self) -> None:
        assert self.process.stdin is not None
        print(file=self.process.stdin, flush=True)
        read, evaluated = map(float, self._answer())
        if read + evaluated < self.total:
            self.read, self.evaluated = read, evaluated

    @property
    def total(self) -> float:
        return self.read + self.evaluated

    def found(self) -> np.ndarray:
        """Values, shape (measures, topics, runs)."""
        return np.array(json.loads(self.values.read_text()))

    def _answer(self) -> list[str]:
        assert self.process.stdout is not None
        answer = self.process.stdout.readline().split()
        if not answer:
            raise SystemExit(f"{self.name} cannot do it")
        return answer


def write_files(folder: Path, runs: int) -> list[Path]:
    """Runs that mostly agree, with some equal scores, and judgments of what most of them return."""
    rng = np.random.default_rng(8)
    lines: list[list[str]] = [[] for _ in range(runs)]
    judged = []
    for topic in range(401, 401 + TOPICS):
        numbers = rng.choice(DOCUMENTS, CANDIDATES, replace=False)
        names = [f"FT{number % 1000}-{number}" for number in numbers.tolist()]
        worth = rng.exponential(size=CANDIDATES)
        for run, rows in enumerate(lines):
            score = np.round(worth + rng.normal(size=CANDIDATES), 4)
            best = np.argsort(-score, kind="stable")[:DEPTH]
            rows.extend(
                f"{topic} Q0 {names[at]} {rank} {score[at]:.6f} run{run}\n"
                for rank, at in enumerate(best.tolist(), 1)
            )
        believed = worth + 0.5 * rng.normal(size=CANDIDATES)
        for place, at in enumerate(np.argsort(-believed)[:JUDGED].tolist()):
            grade = 2 if place < RELEVANT // 4 else int(place < RELEVANT)
            judged.append(f"{topic} 0 {names[at]} {grade}\n")
    (folder / "qrels").write_text("".join(judged))
    paths = [folder / f"run{number}" for number in range(runs)]
    for path, rows in zip(paths, lines, strict=True):
        path.write_text("".join(rows))
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", default=sys.executable, help="the Python that has the libraries")
    parser.add_argument("--runs", type=int, default=128)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=list(PEERS), metavar="NAME")
    options = parser.parse_args()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write_files(folder, options.runs)
        peers = [
            Peer(sys.executable if "evalsite" in each else options.peers, each, folder, paths)
            for each in options.only
        ]
        for _ in range(options.passes):
            for peer in peers:
                peer.take_turn()
        lines = options.runs * TOPICS * DEPTH
        print(f"{options.runs} runs, {lines:,} lines; P@10, nDCG@100, AP; seconds of one processor")
        report(peers)
    print(f"({time.perf_counter() - started:.0f} s in all)")


def report(peers: Sequence[Peer]) -> None:
    """Print what each took, and how far its values are from those of pytrec_eval."""
    oracle = next(peer for peer in peers if peer.name == "pytrec_eval")
    truth = oracle.found()
    head = f"{'':30} {'read':>8} {'evaluate':>9} {'total':>8} {'of pytrec_eval':>15}"
    print(f"{head} {'evaluate':>9} {'apart':>8}")
    for peer in peers:
        apart = float(np.abs(peer.found() - truth).max())
        assert "evalsite" not in peer.name or apart <= WANTED, f"{peer.name} is {apart} apart"
        print(
            f"{peer.name + ' ' + peer.version:30} {peer.read:8.2f} {peer.evaluated:9.3f}"
            f" {peer.total:8.2f} {peer.total / oracle.total:15.2f}"
            f" {peer.evaluated / oracle.evaluated:9.4f} {apart:8.0e}"
        )
    for peer in peers:
        if peer is not oracle:
            most = FILES if "evalsite" in peer.name else None
            work = f"files to values, {peer.name}"
            tell(Figure(work, peer.total, "s", oracle.name, oracle.total, most_times=most))
    pool = next((peer for peer in peers if peer.name == POOL), None)
    if pool is not None:
        taken = pool.evaluated, "s", oracle.name, oracle.evaluated
        tell(Figure("P@10, nDCG@100, AP from the pool", *taken, most=0.06, most_times=0.02))


if __name__ == "__main__":
    main()
