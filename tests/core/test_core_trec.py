"""TREC's files: what is read, in which order, and how what is wrong is named."""

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimation.core import Qrels, TrecError, read_prels, read_qrels, read_runs, read_strata
from estimation.core.data.pool import build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import PoolError, RankedLists

RUN = "1 Q0 b 1 2.0 one\n1 Q0 a 2 2.0 one\n1 Q0 c 3 5 one\n"


def written(folder: Path, content: str | bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def lists(run: RankedLists) -> dict[str, list[bytes]]:
    ends = run.indptr.tolist()
    return {
        topic: run.docnos[ends[at] : ends[at + 1]].tolist() for at, topic in enumerate(run.topics)
    }


# -------------------------------------------------------------------------------------- runs


def test_a_run_is_ordered_as_trec_eval_does(tmp_path: Path) -> None:
    """By score, then by docno from the last; the rank column plays no part."""
    (run,) = read_runs(written(tmp_path, RUN)).values()
    assert lists(run) == {"1": [b"c", b"b", b"a"]}
    assert run.scores is not None
    assert run.scores.tolist() == [5.0, 2.0, 2.0]


def test_a_run_agrees_with_trec_eval(tmp_path: Path) -> None:
    oracle = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(1)
    scores = {f"d{i}": float(rng.integers(5)) for i in range(40)}
    grades = {f"d{i}": int(rng.integers(2)) for i in range(40)}
    text = "".join(f"q Q0 {d} 0 {s} tag\n" for d, s in scores.items())
    run = read_runs(written(tmp_path, text))["tag"]
    first = [grades[name.decode()] for name in run.docnos[:10]]
    told = oracle.RelevanceEvaluator({"q": grades}, {"P_10"}).evaluate({"q": scores})
    assert told["q"]["P_10"] == pytest.approx(np.mean(first))


def test_files_folders_and_tags(tmp_path: Path) -> None:
    written(tmp_path, gzip.compress(RUN.encode()), "one.run.gz")
    written(tmp_path, RUN.replace("one", "two") + "2 Q0 a 1 1 three\n\n", "others.run")
    written(tmp_path, "not a run", ".hidden")
    (tmp_path / "folder").mkdir()
    assert list(read_runs(tmp_path)) == ["one", "three", "two"]
    assert list(read_runs([tmp_path / "others.run", tmp_path / "one.run.gz"])) == [
        *("one", "three", "two"),
    ]
    assert list(read_runs(os.fspath(tmp_path / "one.run.gz"))) == ["one"]
    assert list(read_runs({"mine": tmp_path / "one.run.gz"})) == ["mine"]
    assert lists(read_runs(tmp_path, depth=1)["two"]) == {"1": [b"c"]}


def test_two_files_of_one_tag_need_names(tmp_path: Path) -> None:
    first, second = written(tmp_path, RUN, "first"), written(tmp_path, RUN, "second")
    with pytest.raises(TrecError, match=r"first and .*second both have a run of the tag 'one'"):
        read_runs([first, second])
    assert list(read_runs({"b": first, "a": second})) == ["a", "b"]
    two = written(tmp_path, RUN + "1 Q0 a 1 1 two\n", "two")
    with pytest.raises(TrecError, match="two: expected one run, 'a', found 'one', 'two'"):
        read_runs({"a": two})


WRONG_RUNS = [
    ("1 Q0 a 1 2.0\n", r"line 1: expected 6 fields \(topic Q0 docno rank score tag\), found 5"),
    ("\n" + RUN + "1 Q0 d 1 x one\n", r"line 5, score: expected a finite number, found 'x'"),
    ("1 Q0 d 1 nan one\n", r"line 1, score: expected a finite number, found 'nan'"),
    (RUN + "1 Q0 a 9 1.0 one\n", r"run 'one': docno 'a' occurs twice in topic '1'"),
    (b"1 Q0 \xff 1 2.0 one\n", r"line 1, docno: expected UTF-8, found"),
    (b"1 Q0 a\0 1 2.0 one\n", r"line 1, docno: expected a name without the byte 0"),
    ("", r"expected lines of topic Q0 docno rank score tag, found none"),
    (gzip.compress(RUN.encode(), mtime=0)[:-9], r"expected a whole gzip file"),
]


@pytest.mark.parametrize(("content", "message"), WRONG_RUNS)
def test_what_is_wrong_in_a_run_is_named(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    with pytest.raises(TrecError, match=f"{tmp_path}/file.*{message}"):
        read_runs(written(tmp_path, content))


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(TrecError, match="missing: No such file"):
        read_runs(tmp_path / "missing")
    with pytest.raises(TrecError, match="expected run files in this folder"):
        read_runs(tmp_path)
    with pytest.raises(TrecError, match="places holds none"):
        read_runs([])


# ------------------------------------------------------------------------------------- qrels


def test_qrels_keep_every_judgment(tmp_path: Path) -> None:
    qrels = read_qrels(written(tmp_path, "1 0 a 2\n1 0 a 0\n2 0 b 1\n2 0 c -1\n"))
    assert (qrels.docno.tolist(), qrels.grade.tolist()) == ([b"a", b"a", b"b"], [2, 0, 1])
    assert qrels.topics == ("1", "2")
    junk = read_qrels(tmp_path / "file", below_zero=0)
    assert junk.grade.tolist() == [2, 0, 1, 0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 0 a\n", r"line 1: expected 4 fields \(topic iteration docno grade\), found 3"),
        ("1 0 a 1.5\n", r"line 1, grade: expected a whole number of at most 50, found '1.5'"),
        ("1 0 a 51\n", r"line 1, grade: expected a whole number of at most 50, found '51'"),
        ("1 0 a good\n", r"line 1, grade: .*, found 'good'"),
    ],
)
def test_what_is_wrong_in_qrels_is_named(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(TrecError, match=message):
        read_qrels(written(tmp_path, content))


@pytest.mark.parametrize("depth", [0, -1, 1.5, float("nan"), [1], "1", True])
def test_depths_that_are_none_are_refused(tmp_path: Path, depth: Any) -> None:
    (tmp_path / "r").write_text("1 Q0 d1 1 2.0 r\n")
    with pytest.raises(TrecError, match=r"^depth must be a whole number of at least 1"):
        read_runs(tmp_path / "r", depth=depth)


def test_complete_judgments_have_a_pair_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1 0 a 1\n1 0 b 0\n2 0 a 1\n\n1 0 b 0\n")
    assert len(read_qrels(tmp_path / "file")) == 4
    with pytest.raises(TrecError, match=r"line 5, docno: docno 'b' of topic '1' stands in line 2"):
        read_qrels(tmp_path / "file", once=True)
    (tmp_path / "file").write_text("1 0 a 1\n1 0 b 0\n2 0 a 1\n")
    assert len(read_qrels(tmp_path / "file", once=True)) == 3


@pytest.mark.parametrize("below_zero", [-1, 0.5, float("nan"), "0", 51])
def test_grades_that_are_none_are_refused(tmp_path: Path, below_zero: Any) -> None:
    (tmp_path / "file").write_text("1 0 a -1\n")
    with pytest.raises(TrecError, match=r"^below_zero must be a whole number between 0 and 50"):
        read_qrels(tmp_path / "file", below_zero=below_zero)


def test_labels_are_those_of_wanted_pairs() -> None:
    run = RankedLists(("1",), np.array([0, 3]), np.array([b"a", b"b", b"c"]))
    pool = build_pool(["1", "2"], {"r": run}, depth=3)
    qrels = Qrels.of({"1": {"b": 2, "z": 1}, "9": {"a": 3}})
    assert qrels.places(pool).tolist() == [1, -1, -1]
    assert qrels.labels(pool).pair.tolist() == [1]
    assert qrels.labels(pool, np.array([0])).pair.tolist() == []
    told = qrels.labels(pool, np.array([1, 2]), unlisted=0)
    assert (told.pair.tolist(), told.grade.tolist()) == ([1, 2], [2, 0])
    with pytest.raises(PoolError, match="pool of preferences"):
        qrels.labels(preference_pool(pool, depth=2))


# --------------------------------------------------------------- somebody else's probabilities


def test_prels_leave_out_what_was_not_sampled(tmp_path: Path) -> None:
    path = written(tmp_path, "1 a 1 1 0.25\n1 b 0 0 1\n1 c -1 2 1\n2 a 2 4 1e-3\n")
    prels = read_prels(path)
    assert (prels.docno.tolist(), prels.probability.tolist()) == ([b"a", b"a"], [0.25, 0.001])
    assert (prels.left_out, prels.lists_all) == (1, False)
    assert read_prels(path, methods=[0, 1], below_zero=0).docno.tolist() == [b"a", b"b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 a 1 1 0\n", r"line 1, probability: expected a probability above 0 and at most 1"),
        ("1 a 1 1 1.5\n", r"line 1, probability: expected .*, found '1.5'"),
        ("1 a 1 x 1\n", r"line 1, method: expected a whole number"),
        ("1 a 1 1 1\n1 a 0 1 1\n", r"line 2, docno: docno 'a' of topic '1' stands in line 1 too"),
        ("1 0 a 1\n", r"line 1: expected 5 fields \(topic docno grade method probability\)"),
    ],
)
def test_what_is_wrong_in_prels_is_named(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(TrecError, match=message):
        read_prels(written(tmp_path, content))


def test_strata_count_their_probabilities(tmp_path: Path) -> None:
    """By topic and stratum: the same stratum of another topic is another one."""
    rows = ["1 0 a 1 1", "1 0 b 1 -1", "1 0 c 1 0", "1 0 d 2 2", "1 0 e 3 -1", "2 0 a 1 0"]
    strata = read_strata(written(tmp_path, "\n".join(rows)))
    assert strata.docno.tolist() == [b"a", b"c", b"d", b"a"]
    assert strata.probability.tolist() == [2 / 3, 2 / 3, 1.0, 1.0]
    _, docno, chance = strata.others
    assert (docno.tolist(), chance.tolist()) == ([b"b"], [2 / 3])  # e had no chance


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sampled", "topics"),
    [
        ("prels.mq.1-10000.txt.gz", 42_925, 1_778),
        ("prels.mq.10001-20000.txt.gz", 7_742, 784),
        ("prels.mq.20001-60000.txt.gz", 13_066, 687),
        ("prels.web.1-50.txt.gz", 2_498, 50),
    ],
)
def test_published_prels_are_read(data_dir: Path, name: str, sampled: int, topics: int) -> None:
    path = data_dir / "mq-prels" / name
    if not path.exists():
        pytest.skip(f"no {path}")
    every = read_prels(path, methods=range(10), below_zero=0)
    assert len(every.topics) == topics
    assert np.count_nonzero(every.probability < 1.0) == sampled
    alone = read_prels(path, below_zero=0)
    assert len(alone) + alone.left_out == len(every)
    assert np.count_nonzero(alone.probability < 1.0) == sampled
