"""``manage.py reproduce`` as somebody types it."""

import gzip
import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command


def reproduce(*arguments: str) -> str:
    out = io.StringIO()
    call_command("reproduce", *arguments, stdout=out)
    return out.getvalue()


def test_a_table_shows_expected_and_measured_values() -> None:
    lines = reproduce("A5").splitlines()
    assert lines[1].startswith("A5, SYNTH (published): [A] Table 5")
    assert lines[2].split() == ["row", "column", "expected", "measured", "ratio", "accepted"]
    rows = [line.split() for line in lines[3:7]]
    assert [row[-1] for row in rows] == ["pass"] * 4
    assert rows[0][:4] == ["naive", "prior", "p", "2.15"]
    assert "4 of 4 numbers agree, 0 noted misses, 0 failures." in lines
    assert lines[-1].startswith("TREC-8 was left out")


def test_tables_come_in_their_order_and_in_any_case() -> None:
    printed = reproduce("b8", "A7", "a7")
    titles = [line.split(",")[0] for line in printed.splitlines() if ", SYNTH" in line]
    assert titles == ["A7", "B8"]


def test_a_noted_miss_is_told_and_no_failure() -> None:
    printed = reproduce("A3")
    assert "14 of 15 numbers agree, 1 noted miss, 0 failures." in printed
    assert "Noted: A3 REV-150, P: " in printed


def test_json_has_every_number() -> None:
    rows = json.loads(reproduce("A2", "A3", "--json"))
    assert len(rows) == 30
    first = rows[0]
    assert (first["table"], first["row"], first["column"]) == ("A2", "OPT", "U")
    assert first["expected"] == 284.4
    assert first["ratio"] == pytest.approx(first["measured"] / 284.4)
    assert first["low"] < first["measured"] < first["high"]
    assert {row["verdict"] for row in rows} == {"pass", "noted"}


def test_a_number_that_does_not_agree_ends_in_an_error() -> None:
    """One seed in five generates users who are 0.1 % better off than those of the papers."""
    out = io.StringIO()
    with pytest.raises(CommandError, match="numbers do not agree"):
        call_command("reproduce", "A2", "--seed", "3", stdout=out)
    assert "FAIL" in out.getvalue()


@pytest.mark.slow
def test_trials_are_drawn() -> None:
    printed = reproduce("trials", "--trials", "5")
    assert "trials, SYNTH (5 trials)" in printed
    assert "20 of 20 numbers agree" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["A99"], "no table 'A99'; there are A2, A3"),
        (["A2", "--trials", "1"], "--trials must be at least 2, not 1"),
        (["A2", "--seed", "-1"], "--seed must be at least 0, not -1"),
        (["A2", "--trec8", "/nowhere"], "/nowhere is not the folder of TREC-8"),
    ],
)
def test_bad_arguments(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        reproduce(*arguments)


RUN = "401 Q0 a 1 2.0 {tag}\n401 Q0 b 2 1.0 {tag}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    (tmp_path / "qrels.txt").write_text("401 0 a 1\n401 0 b 0\n")
    (tmp_path / "runs" / "one.run.gz").write_bytes(gzip.compress(RUN.format(tag="one").encode()))
    return tmp_path


def test_a_folder_without_the_published_runs(folder: Path) -> None:
    with pytest.raises(CommandError, match="The run mds08a3 is missing"):
        reproduce("A2", "--trec8", str(folder))


def test_an_error_in_a_file_is_told_with_its_place(folder: Path) -> None:
    (folder / "runs" / "two.run").write_text(RUN.format(tag="two") + "401 Q0 c 3 high two\n")
    with pytest.raises(CommandError, match=r"two\.run:3: score: expected a finite number"):
        reproduce("A2", "--trec8", str(folder))


def test_qrels_that_cannot_be_read(folder: Path) -> None:
    (folder / "qrels.txt").write_bytes(b"PK\x03\x04")
    with pytest.raises(CommandError, match=r"qrels\.txt:.*zip archive"):
        reproduce("A2", "--trec8", str(folder))


def test_a_run_that_is_there_twice(folder: Path) -> None:
    (folder / "runs" / "two.run").write_text(RUN.format(tag="one"))
    with pytest.raises(CommandError, match="another file has the run one already"):
        reproduce("A2", "--trec8", str(folder))


@pytest.mark.slow
def test_trec8_as_it_was_published(data_dir: Path) -> None:
    printed = reproduce("A2", "B6", "exact", "--trec8", str(data_dir / "trec8"))
    assert "62 of 62 numbers agree, 0 noted misses, 0 failures." in printed
    assert "left out" not in printed
    line = next(line for line in printed.splitlines() if line.strip().startswith("MEAN  prior p"))
    assert line.split()[-1] == "pass"
