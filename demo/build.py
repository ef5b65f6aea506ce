"""Build the demo collection: ``python -m demo.build [--output DIR]``.

The same Python, NumPy, SciPy and platform give the same bytes; see README.md.
"""

import argparse
import gzip
import hashlib
import json
import math
import platform
import shutil
import sys
import tomllib
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import scipy

from demo.documents import Document, build_documents
from demo.relevance import (
    Grades,
    Topic,
    grade_all,
    load_corrections,
    load_topics,
    qrels_lines,
    unmatched_rules,
)
from demo.runs import build_indexes, rankers, ranking, run_lines

HERE = Path(__file__).parent
CAMPAIGN_FILE = HERE / "campaign.toml"
CUTOFF = 10

Ranked = dict[str, list[tuple[str, float]]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Build everything into the folder that the command line names."""
    parser = argparse.ArgumentParser(description="Build the demo collection.")
    parser.add_argument("--output", type=Path, default=HERE / "collection")
    output: Path = parser.parse_args(arguments).output
    build(output)
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    print(f"{output}: {size / 1e6:.2f} MB")


def build(output: Path) -> None:
    """Write topics, documents, runs, qrels, campaign.json and manifest.json."""
    topics, documents, corrections = load_topics(), build_documents(), load_corrections()
    problems = unmatched_rules(topics, documents)
    if problems:
        raise SystemExit("rules that match no document:\n" + "\n".join(problems))
    grades = grade_all(topics, documents, corrections)
    runs = _rank(topics, documents)
    _write_all(output, topics, documents, grades, runs)
    _write_json(output / "campaign.json", _campaign())
    _write_json(output / "manifest.json", _manifest(output, topics, documents, grades, runs))


def _rank(topics: Sequence[Topic], documents: Sequence[Document]) -> dict[str, Ranked]:
    indexes = build_indexes(documents)
    return {
        tag: {topic.id: ranking(ranker(topic), indexes.docnos) for topic in topics}
        for tag, ranker in rankers(indexes).items()
    }


def _write_all(
    output: Path,
    topics: Sequence[Topic],
    documents: Sequence[Document],
    grades: Grades,
    runs: Mapping[str, Ranked],
) -> None:
    shutil.rmtree(output / "runs", ignore_errors=True)
    (output / "runs").mkdir(parents=True)
    (output / "topics.jsonl").write_bytes(_text(map(_topic_line, topics)))
    _write_gzip(output / "docs.jsonl.gz", map(_document_line, documents))
    _write_gzip(output / "qrels.txt.gz", qrels_lines(grades))
    for tag, ranked in runs.items():
        lines = (line for topic, found in ranked.items() for line in run_lines(tag, topic, found))
        _write_gzip(output / "runs" / f"{tag}.run.gz", lines)


def _topic_line(topic: Topic) -> str:
    keys = ("id", "title", "description", "narrative")
    return _json_line({key: getattr(topic, key) for key in keys})


def _document_line(document: Document) -> str:
    keys = ("docno", "title", "text")
    return _json_line({key: getattr(document, key) for key in keys})


def _campaign() -> dict[str, object]:
    facts = tomllib.loads(CAMPAIGN_FILE.read_text(encoding="utf-8"))
    facts["guidelines"] = "\n\n".join(facts["guidelines"])
    facts["qrels"] = {"file": "qrels.txt.gz", "unlisted_grade": 0}
    return facts


def _manifest(
    output: Path,
    topics: Sequence[Topic],
    documents: Sequence[Document],
    grades: Grades,
    runs: Mapping[str, Ranked],
) -> dict[str, object]:
    return {
        "built_with": build_environment(),
        "documents": len(documents),
        "topics": len(topics),
        "grades": {str(g): count for g, count in sorted(Counter(grades.values()).items())},
        "true_values": {tag: _true_values(ranked, grades) for tag, ranked in runs.items()},
        "sha256": {
            path.relative_to(output).as_posix(): hashlib.sha256(content(path)).hexdigest()
            for path in sorted(output.rglob("*"))
            if path.is_file() and path.name != "manifest.json"
        },
    }


def build_environment() -> dict[str, str]:
    """What the bytes of a build depend on beside this folder."""
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "platform": sys.platform,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
    }


def content(path: Path) -> bytes:
    """Bytes of a file, decompressed when it is gzip: independent of the zlib version."""
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def _true_values(ranked: Ranked, grades: Grades) -> dict[str, float]:
    precision, gain = 0.0, 0.0
    for topic, found in ranked.items():
        for place, (docno, _) in enumerate(found[:CUTOFF], start=1):
            grade = grades.get((topic, docno), 0)
            precision += (grade > 0) / CUTOFF
            gain += grade / math.log2(1 + place)
    return {
        "P@10": round(precision / len(ranked), 4),
        "DCG@10": round(gain / len(ranked), 4),
    }


def _write_gzip(path: Path, lines: Iterable[str]) -> None:
    path.write_bytes(gzip.compress(_text(lines), compresslevel=9, mtime=0))


def _write_json(path: Path, value: object) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    path.write_bytes(text.encode("utf-8"))


def _json_line(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def _text(lines: Iterable[str]) -> bytes:
    return "".join(lines).encode("utf-8")


if __name__ == "__main__":
    main()
