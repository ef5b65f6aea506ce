"""The shipped demo collection is consistent, well formed, small, and worth judging."""

import gzip
import json
import math
import re
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from demo.assessors import load_truth
from demo.documents import Document
from demo.relevance import grade_all, load_corrections, load_topics, unmatched_rules

DEMO = Path(__file__).parents[2] / "demo"
COLLECTION = DEMO / "collection"
DOCNO = re.compile(r"[A-Za-z0-9._-]+")


def read(name: str) -> str:
    raw = (COLLECTION / name).read_bytes()
    return (gzip.decompress(raw) if name.endswith(".gz") else raw).decode("utf-8")


def jsonl(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in read(name).splitlines()]


def run_names() -> list[str]:
    return sorted(path.name for path in (COLLECTION / "runs").iterdir())


def load_run(name: str) -> dict[str, list[tuple[str, int, float]]]:
    found: dict[str, list[tuple[str, int, float]]] = {}
    for line in read(f"runs/{name}").splitlines():
        topic, _, docno, rank, score, _ = line.split(" ")
        found.setdefault(topic, []).append((docno, int(rank), float(score)))
    return found


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return [Document(**row) for row in jsonl("docs.jsonl.gz")]


@pytest.fixture(scope="module")
def truth() -> dict[tuple[str, str], int]:
    return load_truth(COLLECTION / "qrels.txt.gz")


@pytest.fixture(scope="module")
def manifest() -> dict[str, object]:
    return json.loads(read("manifest.json"))


def true_values(truth: dict[tuple[str, str], int], name: str) -> dict[str, float]:
    """Mean DCG@10 and P@10 with each topic's list sorted by trec_eval's order."""
    run = load_run(name)
    precision = gain = 0.0
    for topic, rows in run.items():
        ordered = sorted(rows, key=lambda row: row[0], reverse=True)
        ordered.sort(key=lambda row: row[2], reverse=True)
        grades = [truth.get((topic, docno), 0) for docno, _, _ in ordered[:10]]
        precision += sum(grade > 0 for grade in grades) / 10
        gain += sum(g / math.log2(2 + place) for place, g in enumerate(grades))
    return {"P@10": precision / len(run), "DCG@10": gain / len(run)}


def test_documents_are_many_unique_sorted_and_clean(documents: list[Document]) -> None:
    docnos = [document.docno for document in documents]
    assert 1500 <= len(docnos) <= 3000
    assert docnos == sorted(set(docnos))
    for document in documents:
        assert DOCNO.fullmatch(document.docno)
        assert not any(part.startswith("_") for part in document.docno.split("."))
        assert document.title.startswith(document.docno)
        assert len(document.text) <= 3010
        assert all(c.isprintable() or c == "\n" for c in document.title + document.text)


def test_no_text_shows_an_address_or_a_local_path(documents: list[Document]) -> None:
    suspicious = re.compile(r" at 0x[0-9a-f]{6}|/home/|/root/|/usr/lib/python|site-packages/\w")
    shown = [d.docno for d in documents if suspicious.search(f"{d.title}\n{d.text}")]
    assert shown == []


def test_topics_are_numbered_complete_and_those_of_the_rules_file() -> None:
    rows = jsonl("topics.jsonl")
    assert len(rows) >= 48
    assert [row["id"] for row in rows] == [str(n) for n in range(1, len(rows) + 1)]
    assert all(list(row) == ["id", "title", "description", "narrative"] for row in rows)
    assert all(len(row["narrative"].split()) > 20 for row in rows)
    assert len({row["title"] for row in rows}) == len(rows)
    hand = [(t.id, t.title, t.description, t.narrative) for t in load_topics()]
    assert hand == [tuple(row.values()) for row in rows]


def test_every_narrative_names_the_grades() -> None:
    for topic in load_topics():
        for word in ("Perfect", "Relevant", "Related"):
            assert word in topic.narrative, topic.id


@pytest.mark.slow
def test_every_rule_matches_a_document_and_a_stray_rule_would_be_seen(
    documents: list[Document],
) -> None:
    topics = load_topics()
    assert unmatched_rules(topics, documents) == []
    without_strip = [d for d in documents if d.docno != "str.strip"]
    assert unmatched_rules(topics, without_strip) == ["1: str.strip"]


@pytest.mark.slow
def test_every_correction_names_a_topic_and_a_document_and_changes_a_grade(
    documents: list[Document],
) -> None:
    topics, corrections = load_topics(), load_corrections()
    ruled = grade_all(topics, documents, [])
    assert corrections
    for correction in corrections:
        assert correction.topic in {topic.id for topic in topics}
        assert correction.docno in {document.docno for document in documents}
        assert ruled.get((correction.topic, correction.docno), 0) != correction.grade
        assert correction.reason


@pytest.mark.slow
def test_qrels_are_what_rules_and_corrections_give(
    documents: list[Document], truth: dict[tuple[str, str], int]
) -> None:
    assert truth == grade_all(load_topics(), documents, load_corrections())


def test_every_topic_has_relevant_documents_but_not_too_many(
    truth: dict[tuple[str, str], int],
) -> None:
    related = Counter(topic for topic, _ in truth)
    perfect = Counter(topic for (topic, _), grade in truth.items() if grade == 3)
    assert set(related) == set(perfect) == {row["id"] for row in jsonl("topics.jsonl")}
    assert 3 <= min(related.values()) <= max(related.values()) <= 40
    assert max(perfect.values()) <= 10
    assert set(truth.values()) == {1, 2, 3}


@pytest.mark.parametrize("name", run_names())
def test_run_is_well_formed(name: str, documents: list[Document]) -> None:
    tag = name.removesuffix(".run.gz")
    lines = read(f"runs/{name}").splitlines()
    assert all(line.split(" ")[1] == "Q0" and line.split(" ")[5] == tag for line in lines)
    run, docnos = load_run(name), {document.docno for document in documents}
    assert list(run) == [row["id"] for row in jsonl("topics.jsonl")]
    for rows in run.values():
        assert 1 <= len(rows) <= 100
        assert [rank for _, rank, _ in rows] == list(range(1, len(rows) + 1))
        assert len({docno for docno, _, _ in rows} & docnos) == len(rows)
        keys = [(score, docno) for docno, _, score in rows]
        assert keys == sorted(keys, reverse=True)
        assert all(math.isfinite(score) for score, _ in keys)


def test_runs_differ_as_a_campaign_needs(truth: dict[tuple[str, str], int]) -> None:
    names = run_names()
    assert len(names) >= 14
    gain = {name.removesuffix(".run.gz"): true_values(truth, name)["DCG@10"] for name in names}
    assert max(gain.values()) > 5
    assert gain["random"] < 0.2
    assert gain["longest-first"] < 1
    assert gain["bm25-reversed"] < 1
    good = sorted(value for value in gain.values() if value > 2)
    assert good[-1] - good[0] > 2
    assert len({read(f"runs/{name}") for name in names}) == len(names)


def test_near_duplicates_are_close_but_not_equal(truth: dict[tuple[str, str], int]) -> None:
    first, second = (load_run(f"{tag}.run.gz") for tag in ("bm25", "bm25-b072"))
    top = [([row[0] for row in first[t][:10]], [row[0] for row in second[t][:10]]) for t in first]
    shared = sum(len(set(a) & set(b)) for a, b in top) / (10 * len(top))
    values = [true_values(truth, f"{tag}.run.gz")["DCG@10"] for tag in ("bm25", "bm25-b072")]
    assert 0.9 < shared < 1
    assert 0 < abs(values[0] - values[1]) < 0.2


@pytest.mark.slow
def test_manifest_counts_and_true_values_are_those_of_the_files(
    manifest: dict[str, object], truth: dict[tuple[str, str], int], documents: list[Document]
) -> None:
    assert manifest["documents"] == len(documents)
    assert manifest["topics"] == len(jsonl("topics.jsonl"))
    grades = Counter(truth.values())
    assert manifest["grades"] == {str(grade): grades[grade] for grade in (1, 2, 3)}
    stated = manifest["true_values"]
    assert isinstance(stated, dict)
    assert sorted(f"{tag}.run.gz" for tag in stated) == run_names()
    for tag, values in stated.items():
        assert values == pytest.approx(true_values(truth, f"{tag}.run.gz"), abs=1e-4)


def test_readme_tells_the_same_numbers(manifest: dict[str, object]) -> None:
    readme = (DEMO / "README.md").read_text(encoding="utf-8")
    stated = manifest["true_values"]
    assert isinstance(stated, dict)
    for tag, values in stated.items():
        row = f"| `{tag}` | {values['P@10']:.3f} | {values['DCG@10']:.3f} |"
        assert row in readme
    assert f"| documents | {manifest['documents']} |" in readme
    assert f"| topics | {manifest['topics']} |" in readme


def test_campaign_describes_grades_runs_and_qrels() -> None:
    campaign = json.loads(read("campaign.json"))
    assert campaign["slug"] == "python-functions"
    assert [g["grade"] for g in campaign["grades"]] == [0, 1, 2, 3]
    names = ["Not relevant", "Related", "Relevant", "Perfect"]
    assert [g["name"] for g in campaign["grades"]] == names
    assert sorted(f"{tag}.run.gz" for tag in campaign["runs"]) == run_names()
    assert campaign["qrels"] == {"file": "qrels.txt.gz", "unlisted_grade": 0}
    assert len(campaign["guidelines"].split("\n\n")) >= 3
    assert not re.search(r"[*_#`]", campaign["guidelines"])


def test_collection_is_small() -> None:
    files = [path for path in COLLECTION.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 2_000_000


def test_excluded_patterns_are_excluded(documents: list[Document]) -> None:
    lines = (DEMO / "modules.txt").read_text(encoding="utf-8").splitlines()
    patterns = [line[1:] for line in lines if line.startswith("!")]
    assert patterns
    kept = [d.docno for d in documents if any(fnmatchcase(d.docno, p) for p in patterns)]
    assert kept == []
