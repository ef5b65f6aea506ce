"""The collections themselves: TREC-8 with its 129 runs, and Cranfield with its texts."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from estimation.formats.runs import RunFile, read_run
from judging.formats.documents import read_documents
from judging.formats.guess import guess_kind
from judging.formats.problems import Problem, Problems
from judging.formats.qrels import grades_by_pair, qrels_lines, read_qrels
from judging.formats.topics import TopicRecord, read_topics
from tests.formats.run_files import run_lines

DATA = Path(
    os.environ.get("EVALSITE_TEST_DATA", Path(__file__).resolve().parents[2] / "../shared/data")
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (DATA / "trec8").is_dir(), reason=f"no test collections in {DATA} (EVALSITE_TEST_DATA)"
    ),
]

Row = tuple[str, str, int, float]


def topics_of(path: Path) -> tuple[list[TopicRecord], Problems]:
    problems = Problems(path.name)
    with path.open("rb") as file:
        return list(read_topics(file, problems)), problems


@pytest.fixture(scope="module")
def trec8() -> dict[Path, tuple[RunFile | None, Problems]]:
    topics = [topic.topic_id for topic in topics_of(DATA / "trec8/topics.tsv")[0]]
    found = {}
    for path in sorted((DATA / "trec8/runs").glob("*.run.gz")):
        problems = Problems(path.name)
        with path.open("rb") as file:
            found[path] = (read_run(file, problems, topics=topics), problems)
    return found


def rows_of(path: Path) -> list[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        cells = [line.split() for line in lines]
    return [(topic, docno, int(rank), float(score)) for topic, _, docno, rank, score, _ in cells]


def contradicting_lines(rows: list[Row]) -> list[int]:
    """Return the lines scoring above a line of better rank, by comparing all pairs of lines."""
    found: list[int] = []
    lines: dict[str, list[int]] = {}
    for number, row in enumerate(rows, 1):
        lines.setdefault(row[0], []).append(number)
    for numbers in map(np.array, lines.values()):
        rank = np.array([rows[n - 1][2] for n in numbers])
        score = np.array([rows[n - 1][3] for n in numbers], dtype=np.float32)
        against = (rank[:, None] < rank[None, :]) & (score[:, None] < score[None, :])
        found += numbers[against.any(axis=0)].tolist()
    return sorted(found)


def test_all_runs_of_trec8_are_accepted(
    trec8: dict[Path, tuple[RunFile | None, Problems]],
) -> None:
    assert len(trec8) == 129
    assert [problems.errors for _, problems in trec8.values() if not problems.ok] == []
    runs = {path.name: run for path, (run, _) in trec8.items() if run is not None}
    assert sum(run.lines for run in runs.values()) == 640_467
    assert {name.removesuffix(".run.gz") for name in runs} == {run.tag for run in runs.values()}
    assert all(len(run.lists.topics) == 50 for run in runs.values())
    assert all(run.dropped == 0 for run in runs.values())


def test_the_warnings_of_trec8_are_exactly_the_contradicting_ranks(
    trec8: dict[Path, tuple[RunFile | None, Problems]],
) -> None:
    expected: dict[str, list[Problem]] = {}
    for path in trec8:
        lines = contradicting_lines(rows_of(path))
        message = "lines score higher than a line with a better rank in their topic"
        message = f"{len(lines)} {message}; the order is by score"
        warning = Problem(path.name, lines[0], "rank", message, "warning") if lines else None
        expected[path.name] = [warning] if warning else []
    assert {path.name: problems.warnings for path, (_, problems) in trec8.items()} == expected
    assert any(expected.values())
    assert not all(expected.values())


def by_topic(rows: list[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return dict(sorted(found.items()))


def in_single_precision(row: Row) -> tuple[float, bytes]:
    return float(np.float32(row[3])), row[1].encode()


def test_the_order_of_trec8_is_that_of_its_files(
    trec8: dict[Path, tuple[RunFile | None, Problems]],
) -> None:
    """The files are in trec_eval's order, but for scores that only double precision tells apart."""
    resorted = set()
    for path, (run, _) in trec8.items():
        assert run is not None
        topics = by_topic(rows_of(path))
        expected = []
        for rows in topics.values():
            expected += sorted(rows, key=in_single_precision, reverse=True)
            if expected[-len(rows) :] != rows:
                resorted.add(run.tag)
                assert rows == sorted(rows, key=lambda r: (r[3], r[1].encode()), reverse=True)
        assert run.lists.topics == tuple(topics)
        assert [name.decode() for name in run.lists.docnos.tolist()] == [r[1] for r in expected]
        assert run.scores.tolist() == [r[3] for r in expected]
    assert resorted == {"Dm8Nbn", "Dm8NbnR", "uwmt8a0"}


@pytest.mark.parametrize("tag", ["uwmt8a0", "Dm8NbnR", "UB99SW", "mds08a3"])
def test_the_order_is_that_of_trec_eval_itself(
    tag: str, trec8: dict[Path, tuple[RunFile | None, Problems]]
) -> None:
    """One document relevant at a time: the reciprocal rank tells where trec_eval puts it."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    path = DATA / f"trec8/runs/{tag}.run.gz"
    run = trec8[path][0]
    assert run is not None
    topic = run.lists.topics[0]
    scores = {docno: score for t, docno, _, score in rows_of(path) if t == topic}
    for rank, name in enumerate(run.lists.docnos[: run.lists.indptr[1]].tolist(), 1):
        evaluator = pytrec_eval.RelevanceEvaluator({topic: {name.decode(): 1}}, {"recip_rank"})
        assert evaluator.evaluate({topic: scores})[topic]["recip_rank"] == pytest.approx(1 / rank)


def test_a_run_of_trec8_survives_writing(
    trec8: dict[Path, tuple[RunFile | None, Problems]],
) -> None:
    for name in ("mds08a3", "1", "UB99SW"):
        run = next(r for p, (r, _) in trec8.items() if p.name == f"{name}.run.gz" and r)
        expected = rows_of(DATA / f"trec8/runs/{name}.run.gz")
        found = [line.split() for line in run_lines(run)]
        pairs = sorted((cells[0], cells[2], float(cells[4])) for cells in found)
        assert pairs == sorted((topic, docno, score) for topic, docno, _, score in expected)


def test_the_topics_of_trec8_agree_between_their_two_files() -> None:
    marked, marked_problems = topics_of(DATA / "trec8/topics.sgml")
    columns, column_problems = topics_of(DATA / "trec8/topics.tsv")

    def squeezed(topics: list[TopicRecord]) -> list[list[str]]:
        texts = [(t.topic_id, t.title, t.description, t.narrative) for t in topics]
        return [[" ".join(text.split()) for text in each] for each in texts]

    assert len(marked) == 50
    assert squeezed(marked) == squeezed(columns)
    assert all(all(texts) for texts in squeezed(marked))
    for problems in (marked_problems, column_problems):
        assert (problems.errors, problems.warnings) == ([], [])
    with (DATA / "trec8/topics.sgml").open() as file:
        starts = [number for number, line in enumerate(file, 1) if line.startswith("<top>")]
    assert [topic.line for topic in marked] == starts


def test_the_judgments_of_trec8_are_read_and_written_byte_for_byte() -> None:
    path, problems = DATA / "trec8/qrels.txt", Problems("qrels.txt")
    with path.open("rb") as file:
        found = grades_by_pair(read_qrels(file, problems, grades=(0, 1)))
    rows = [(topic, docno, grade) for (topic, docno), grade in found.items()]
    assert (problems.errors, problems.warnings) == ([], [])
    assert (len(rows), sum(grade for *_, grade in rows)) == (86_830, 4_728)
    assert "".join(qrels_lines(rows)).encode() == path.read_bytes()


def test_cranfield_is_read_whole() -> None:
    folder = DATA / "cranfield"
    topics, problems = topics_of(folder / "topics.tsv")
    assert [topic.topic_id for topic in topics] == [str(n) for n in range(1, 226)]
    assert (problems.errors, problems.warnings) == ([], [])

    problems = Problems("docs")
    with (folder / "docs.jsonl.gz").open("rb") as file:
        documents = list(read_documents(file, problems))
    with gzip.open(folder / "docs.jsonl.gz", "rt") as lines:
        expected = [json.loads(line) for line in lines]
    assert [(d.docno, d.title, d.text) for d in documents] == [
        (e["docno"], e["title"].strip(), e["text"].strip()) for e in expected
    ]
    assert problems.ok
    assert [(p.line, p.message) for p in problems.warnings] == [
        (n, f"document '{n}' has no text") for n in (471, 995)
    ]

    problems = Problems("qrels")
    with (folder / "qrels.txt").open("rb") as file:
        qrels = read_qrels(file, problems, grades=range(5))
    assert (problems.errors, problems.warnings, len(qrels)) == ([], [], 1_837)
    assert [np.count_nonzero(qrels.values == grade) for grade in range(5)] == [
        0,
        363,
        734,
        387,
        353,
    ]


def collection_files() -> Iterator[tuple[str, str, str]]:
    for name in ("trec8", "cranfield", "dl2019"):
        yield f"{name}/topics.tsv", "topics", "tsv"
        yield f"{name}/qrels.txt", "qrels", "trec"
        for path in sorted((DATA / name / "runs").glob("*")):
            yield f"{name}/runs/{path.name}", "run", "trec"
    yield "trec8/topics.sgml", "topics", "trec"
    yield "cranfield/docs.jsonl.gz", "documents", "jsonl"


def test_every_file_is_guessed_without_its_name() -> None:
    wrong = []
    for name, kind, form in collection_files():
        with (DATA / name).open("rb") as file:
            guess = guess_kind("upload", file.read(4096))
        if guess is None or (guess.kind, guess.format) != (kind, form):
            wrong.append((name, guess))
    assert wrong == []
