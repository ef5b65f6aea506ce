"""``manage.py shards`` as somebody types it who has run files and qrels, and nothing else."""

import io
import shutil
from concurrent.futures import BrokenExecutor, Executor
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from estimation.core.measures.table import parse_measure
from estimation.core.shards.places import place_of
from estimation.management.commands import shards as command
from estimation.research.simulation import true_values
from tests.core.length import bounded
from tests.core.sharded_pools import DEPTH, NAMES, TAGS, grades_of, some_lines, whole_pool
from tests.support.object_storage import object_storage

RESULTS = ("values.tsv", "sample.tsv", "estimates.tsv")


def shards(*arguments: object) -> str:
    out = io.StringIO()
    call_command("shards", *map(str, arguments), "--workers", "0", stdout=out, stderr=out)
    return out.getvalue()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs, and judgments of every pair of the pool."""
    folder = tmp_path_factory.mktemp("files")
    topic, run, docno, score = some_lines()
    for code, tag in enumerate(TAGS.tolist()):
        rows = np.flatnonzero(run == code)
        lines = [
            f"{NAMES[topic[row]].decode()} Q0 {docno[row].decode()} 0 {score[row]} {tag.decode()}\n"
            for row in rows
        ]
        (folder / f"{tag.decode()}.run").write_text("".join(lines))
    pool = whole_pool()
    judged = zip(pool.topic.tolist(), pool.docno.tolist(), grades_of(pool).tolist(), strict=True)
    lines = [f"{NAMES[t].decode()} 0 {docno.decode()} {grade}\n" for t, docno, grade in judged]
    (folder / "qrels").write_text("".join(lines))
    return folder


def arguments(files: Path, folder: Path, number: int) -> list[object]:
    runs = sorted(files.glob("*.run"))
    return [
        folder, *runs, "--depth", DEPTH, "--shards", number, "--qrels", files / "qrels",
        "--judged", files / "qrels", "--budget", 300, "--batch-size", 100,
        "--measure", "P@10", "--measure", "AP", "--design-measure", "DCG@10",
    ]  # fmt: skip


@pytest.mark.slow
def test_the_files_do_not_depend_on_the_number_of_shards(files: Path, tmp_path: Path) -> None:
    for number in (1, 5):
        said = shards(*arguments(files, tmp_path / str(number), number))
        assert f"{len(whole_pool())} pairs" in said
        assert "AP is not estimated from shards yet" in said
    for name in RESULTS:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "5" / name).read_bytes()
    rows = [line.split("\t") for line in (tmp_path / "5" / "values.tsv").read_text().split("\n")]
    pool = whole_pool()
    truth = true_values(pool, grades=grades_of(pool), measure=parse_measure("AP"))
    assert [float(value) for _, measure, value in rows[1:-1] if measure == "AP"] == truth.tolist()
    sample = (tmp_path / "5" / "sample.tsv").read_text().splitlines()
    assert sample[0] == "topic\tdocno\tbatch\tprobability"
    assert 200 < len(sample) < 400


RUN = """\
a Q0 d1 1 9 r
a Q0 d2 2 8 r
a Q0 d3 3 7 r
b Q0 d1 1 9 r
b Q0 d4 2 8 r
c Q0 d1 1 9 r
"""
QRELS = "a 0 d1 1\na 0 d3 2\na 0 d8 3\na 0 d9 0\nb 0 d1 1\nb 0 d7 2\nb 0 d8 1\n"
OF_TREC_EVAL = {  # by pytrec_eval 0.5.11: no run returns d7 and d8, and c is not judged
    "P@1": 1.0,
    "AP": (0.5555555555555555 + 0.3333333333333333) / 2,
    "Rprec": (0.6666666666666666 + 0.3333333333333333) / 2,
    "nDCG@3": (0.42000399150792816 + 0.31939394323979897) / 2,
}


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_values_are_those_of_trec_eval_beside_whatever_runs(
    tmp_path: Path, others: bool, number: int
) -> None:
    (tmp_path / "r.run").write_text(RUN)
    (tmp_path / "s.run").write_text("a Q0 d8 1 9 s\nb Q0 d7 1 9 s\nd Q0 d1 1 9 s\n")
    (tmp_path / "qrels").write_text(QRELS)
    runs = [tmp_path / f"{tag}.run" for tag in ("r", "s")[: 1 + others]]
    asked = [each for measure in OF_TREC_EVAL for each in ("--measure", measure)]
    said = shards(
        tmp_path / "w", *runs, "--qrels", tmp_path / "qrels", "--shards", number, *asked
    )  # fmt: skip
    rows = [line.split("\t") for line in (tmp_path / "w" / "values.tsv").read_text().splitlines()]
    found = {measure: float(value) for tag, measure, value in rows[1:] if tag == "r"}
    assert found == pytest.approx(OF_TREC_EVAL, rel=1e-12)
    assert "means over the 2 topics that are judged, of which runs return 2" in said


def test_what_is_wrong_is_said_in_one_line(files: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.run").write_text("t01 Q0 d1 1 much r\n")
    with pytest.raises(CommandError, match=r"bad\.run:1: expected a finite number, found"):
        shards(tmp_path / "results", tmp_path / "bad.run")
    with pytest.raises(CommandError, match="is not a known measure"):
        shards(tmp_path / "results", files / "run0.run", "--measure", "Q@10")
    with pytest.raises(CommandError, match="nowhere"):
        shards(tmp_path / "results", files / "nowhere")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--budget", 0], "--budget must be at least 1, not 0"),
        (["--budget", 5, "--batch-size", 0], "--batch-size must be at least 1, not 0"),
        (["--workers", -1], "--workers must be at least 0, not -1"),
        (
            ["--qrels", "qrels", "--depth", 99],
            "the cutoff of nDCG@100, not 99; --measure says what",
        ),
        (["--judged", "judged"], "give the --budget that it was drawn with"),
    ],
)
def test_what_would_be_passed_over_is_refused(
    files: Path, tmp_path: Path, asked: list[object], told: str
) -> None:
    with pytest.raises(CommandError, match=told):
        call_command("shards", *map(str, [tmp_path / "results", files / "run0.run", *asked]))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--measure", "Q@10"], "'Q' is not a known measure"),
        (["--design-measure", "Q@10", "--budget", 5], "'Q' is not a known measure"),
        (
            ["--measure", "ERR@20", "--qrels", "{files}/qrels"],
            "of the family gain or ratio: ERR@20",
        ),
        (["--measure", "MAE", "--budget", 5], "MAE needs the scores of the runs"),
        (["--design-measure", "wSwaps", "--budget", 5], "wSwaps is judged on pairs of documents"),
        (["--floor", 2, "--budget", 5], "--floor must lie between 0 and 1, not 2.0"),
        (["--floor", "nan"], "--floor must lie between 0 and 1, not nan"),
        (["--depth", 0], "--depth must be at least 1, not 0"),
        (["--shards", 0], "--shards must be at least 1, not 0"),
        (["--shards", 100_001], "--shards must be a whole number between 1 and 100000, not 100001"),
        (["--budget", 100_001, "--batch-size", 1], "can be cut into at most 100000 batches"),
        (["--goal", "ranking", "--budget", 5], "--goal ranking needs at least 2 runs, not 1"),
        (["--qrels", "{files}/run0.run"], r"run0\.run, line 1: expected 4 fields"),
        (["--judged", "{files}/nowhere", "--budget", 5], "nowhere"),
    ],
)
def test_what_is_wrong_is_said_before_runs_are_read(
    files: Path, tmp_path: Path, asked: list[object], told: str
) -> None:
    given = [str(each).format(files=files) for each in asked]
    with pytest.raises(CommandError, match=told):
        shards(tmp_path / "results", files / "run0.run", *given)
    assert not (tmp_path / "results" / "runfilelines").exists()


def test_an_estimate_of_a_measure_that_looks_deeper_than_the_pool_says_so(
    files: Path, tmp_path: Path
) -> None:
    given = [tmp_path / "results", files / "run0.run", "--budget", 300, "--measure", "P@10"]
    for depth, told in ((9, True), (10, False)):
        said = shards(*given, "--depth", depth, "--judged", files / "qrels")
        assert ("P@10 is cut at rank 9, the --depth of the pool" in said) == told


def test_a_document_that_is_judged_twice_is_refused_by_its_line(
    files: Path, tmp_path: Path
) -> None:
    """Of a sample several judgments are the rule, and what they were read to is another result."""
    (tmp_path / "twice").write_text("t01 0 d1 1\n\nt02 0 d1 1\nt01 0 d1 1\n")
    given = [tmp_path / "results", files / "run0.run", "--budget", 5]
    with pytest.raises(CommandError, match="have no judgment"):
        shards(*given, "--judged", tmp_path / "twice")
    with pytest.raises(CommandError, match=r"twice, line 4, docno: .* stands in line 1 too"):
        shards(*given, "--qrels", tmp_path / "twice")


def test_what_is_damaged_may_be_deleted(files: Path, tmp_path: Path) -> None:
    given = [tmp_path / "w", files / "run0.run", "--depth", 5]
    shards(*given)
    (pool, *_) = (tmp_path / "w" / "poollines").iterdir()
    np.save(pool / "rank.npy", np.zeros(9, dtype=int))
    sampled = [*given, "--budget", 20]
    (facts, *_) = (tmp_path / "w" / "cutlines").glob("*/facts.json")
    facts.unlink()
    with pytest.raises(CommandError, match=f"^{facts.parent} is no folder of .* delete it, and it"):
        shards(*sampled)
    shutil.rmtree(facts.parent)
    with pytest.raises(CommandError, match=f"^{pool}: the column 'rank' is .* delete it, and it"):
        shards(*sampled)
    shutil.rmtree(pool)
    assert "sample.tsv" in shards(*sampled)


def test_a_run_that_is_named_twice_is_refused_by_its_file(files: Path, tmp_path: Path) -> None:
    run = files / "run0.run"
    with pytest.raises(CommandError, match=f"^{run} has the same content as {run}"):
        shards(tmp_path / "results", run, files / "run1.run", run)


def test_too_little_memory_is_said(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def large(*_: object, **__: object) -> None:
        np.empty(1 << 55)

    monkeypatch.setattr(command, "build_shards", large)
    with pytest.raises(CommandError, match="not enough memory: each process holds a file, or one"):
        shards(tmp_path / "w", files / "run0.run")


def test_two_files_of_one_tag_make_no_common_list(tmp_path: Path) -> None:
    """Many programs write the same tag into all they make; parts of a run have other topics."""
    for name, lines in {
        "a": "1 Q0 d1 1 9 r\n",
        "b": "1 Q0 d2 1 9 r\n",
        "c": "2 Q0 d1 1 9 r\n",
    }.items():
        (tmp_path / name).write_text(lines)
    told = f"^{tmp_path}/a and {tmp_path}/b both have lines of the run 'r' for topic '1': give them"
    with pytest.raises(CommandError, match=told):
        shards(tmp_path / "w", tmp_path / "a", tmp_path / "c", tmp_path / "b")
    assert "2 topics and 1 runs" in shards(tmp_path / "w", tmp_path / "a", tmp_path / "c")


@pytest.mark.slow
def test_work_goes_on_when_workers_end(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = command.evaluate_shards, []

    def broken(executor: Executor, *given: object, **named: object) -> object:
        calls.append(1)
        if len(calls) < 3:
            raise BrokenExecutor
        return real(executor, *given, **named)

    monkeypatch.setattr(command, "evaluate_shards", broken)
    said = shards(*arguments(files, tmp_path / "killed", 5))
    assert said.count("A worker ended.") == 2
    calls.clear()
    monkeypatch.setattr(command, "MOST_ATTEMPTS", 1)
    with pytest.raises(CommandError, match="Workers ended 1 times, perhaps for want of memory"):
        shards(*arguments(files, tmp_path / "killed", 5))


@pytest.mark.slow
def test_an_s3_server_keeps_the_same_results(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By processes of their own, of which none finds what it needs in a folder."""
    shards(*arguments(files, tmp_path / "folder", 5))
    with object_storage() as bucket:
        for copies in bounded(("one",), ("one", "two")):
            monkeypatch.setenv("EVALSITE_COPIES", str(tmp_path / copies))
            out = io.StringIO()
            place = f"{bucket}/{copies}"
            call_command("shards", *map(str, arguments(files, place, 5)), stdout=out, stderr=out)
            assert f"{place}/values.tsv" in out.getvalue()
            for name in RESULTS:
                assert (place_of(place) / name).read() == (tmp_path / "folder" / name).read_bytes()
        monkeypatch.setenv("EVALSITE_COPIES", str(tmp_path / "three"))
        shards(*arguments(files, f"{bucket}/one", 5))
        fetched = sum(path.stat().st_size for path in (tmp_path / "three").rglob("*.npy"))
        kept = sum(path.stat().st_size for path in (tmp_path / "one").rglob("*.npy"))
        assert 0 < fetched < kept / 2, "what is done is not done again, nor looked at"
        with pytest.raises(CommandError, match="nobucket"):
            shards(*arguments(files, "s3://nobucket/x", 5))
