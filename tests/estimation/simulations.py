"""A small judged collection, and ``manage.py simulate`` as somebody types it."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management import call_command

TAGS = ["alpha", "beta", "gamma"]
TOPICS = ["1", "2", "3"]
Simulate = Callable[..., str]


def write_collection(folder: Path) -> Path:
    """Three runs with eight of twelve documents for three topics; grades 0 to 2."""
    rng = np.random.default_rng(5)
    (folder / "runs").mkdir()
    for tag in TAGS:
        lines = [
            f"{topic} Q0 d{docno} {rank} {20 - rank} {tag}"
            for topic in TOPICS
            for rank, docno in enumerate(rng.permutation(12)[:8], start=1)
        ]
        content = "\n".join(lines).encode() + b"\n"
        (folder / "runs" / f"{tag}.run.gz").write_bytes(gzip.compress(content))
    grades = rng.integers(0, 3, size=(3, 12))
    qrels = [
        f"{topic} 0 d{docno} {grades[place, docno]}"
        for place, topic in enumerate(TOPICS)
        for docno in range(12)
    ]
    elsewhere = ["9 0 d1 1", "1 0 never 2"]
    (folder / "qrels.txt").write_text("\n".join([*qrels, *elsewhere]) + "\n")
    return folder


def simulated(folder: Path) -> Simulate:
    """Return what runs the command on a folder, and gives back what it prints."""

    def run(*arguments: str, err: io.StringIO | None = None) -> str:
        out = io.StringIO()
        files = (str(folder / "runs"), str(folder / "qrels.txt"))
        given = ("--measure", "DCG@8", "--trials", "3", *arguments)
        call_command("simulate", *files, *given, stdout=out, stderr=err or io.StringIO())
        return out.getvalue()

    return run


def rows(simulate: Simulate, *arguments: str) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in row.items() if key != "seconds_per_trial"}
        for row in json.loads(simulate("--json", *arguments))
    ]
