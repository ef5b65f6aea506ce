"""The table that `make bench` prints, and what it is put together from."""

import importlib.util
import json
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import machine as machine_module
from benchmarks import whole
from benchmarks.bars import of_recompute
from benchmarks.figures import KEPT, Figure, as_json, read_figures, table, tell
from benchmarks.machine import in_words, machine
from benchmarks.peers import names


@pytest.mark.parametrize(
    ("figure", "met"),
    [
        (Figure("a", 2.0, "s"), None),
        (Figure("a", 2.0, "s", most=2.0), True),
        (Figure("a", 2.1, "s", most=2.0), False),
        (Figure("a", 2.0, "s", "b", 1.0, most_times=2.0), True),
        (Figure("a", 2.1, "s", "b", 1.0, most_times=2.0), False),
        (Figure("a", 2.1, "s", "b", 1.0, most=3.0, most_times=2.0), False),
        (Figure("a", 2.1, "s", most_times=2.0), None),  # there was nothing to measure it by
        (Figure("a", None, "s", "b", 1.0, most=3.0, most_times=2.0), None),  # nor anything measured
    ],
)
def test_a_figure_is_as_good_as_it_should_be_in_every_way_that_was_asked(
    figure: Figure, met: bool | None
) -> None:
    assert figure.met is met


@pytest.mark.parametrize(
    ("judgments", "most", "adaptive"),
    [
        (0, 0.06, 0.078),
        (10_000, 0.08, 0.104),
        (50_000, 0.16, 0.208),
        (99_999, 0.25, 0.325),
        (100_000, 0.25, 0.325),
        (1_000_000, 2.06, 2.678),
        (1_000_001, None, None),
    ],
)
def test_a_recompute_of_fewer_judgments_should_take_less(
    judgments: int, most: float | None, adaptive: float | None
) -> None:
    assert of_recompute(judgments, adaptive=False) == most
    assert of_recompute(judgments, adaptive=True) == adaptive


def test_figures_are_collected_in_the_order_in_which_they_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "figures"
    monkeypatch.setenv(KEPT, str(kept))
    told = [Figure("read", 1.5, "s", "bare", 0.5, most_times=2.0), Figure("rest", 290.0, "MB")]
    for each in told:
        tell(each)
    assert read_figures(kept) == told
    assert "read   1.5 s   0.5 bare   3.00   2 times   missed" in capsys.readouterr().out
    lines = table(told)
    assert lines[2] == "| read | 1.5 s | 0.5 bare | 3.00 | 2 times | missed |"
    assert {line.count("|") for line in lines} == {7}
    rows = json.loads(as_json(told, machine()))
    assert [row["met"] for row in rows["figures"]] == [False, None]
    assert rows["machine"]["processors"] > 0


def test_a_figure_that_there_is_not_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "figures"
    monkeypatch.setenv(KEPT, str(kept))
    absent = Figure("read", None, "s", "bare", 0.5, why="not measured: no such file")
    tell(absent)
    assert "read   not measured: no such file   0.5 bare" in capsys.readouterr().out
    assert read_figures(kept) == [absent]
    assert table([absent])[2] == "| read | not measured: no such file | 0.5 bare |  |  |  |"
    (row,) = json.loads(as_json([absent], machine()))["figures"]
    assert (row["value"], row["times"], row["met"]) == (None, None, None)


def test_nothing_is_kept_where_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEPT, raising=False)
    tell(Figure("read", 1.0, "s"))


def test_machine_and_versions_stand_at_the_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "COMMANDS", {"none": ("platform",)})
    kept = tmp_path / "figures.json"
    assert command.main(["--only", "none", "--json", str(kept)]) == 0
    head = capsys.readouterr().out.splitlines()[0]
    told = json.loads(kept.read_text())["machine"]
    for name in ("processors", "python", "numpy", "scipy", "Django", "sqlite"):
        assert str(told[name]) in head
    assert told["peers"] == {}


def test_versions_of_peers_are_those_of_their_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "names", lambda: ["numpy", "pytest"])
    told = machine(Path(sys.executable))
    versions = {name: metadata.version(name) for name in ("numpy", "pytest")}
    assert told["peers"] == versions
    assert f"numpy {versions['numpy']}, pytest {versions['pytest']}; " in in_words(told)


def test_peers_are_those_that_are_installed() -> None:
    assert {"ir_measures", "polars", "pyarrow", "ranx"} < set(names())
    assert names("label-peers")


def test_every_command_is_a_module_that_is_there() -> None:
    for module, *_ in command.COMMANDS.values():
        assert importlib.util.find_spec(module) is not None, module
    with pytest.raises(SystemExit):
        command._options().parse_args(["--only", "reading,nothing"])


def test_the_table_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{command.BEGINS}\nold\n{command.ENDS}\nafter\n")
    for value in (1.0, 2.0):
        command.write_page(page, [Figure("work", value, "s")], machine())
    text = page.read_text()
    assert text.startswith(f"before\n{command.BEGINS}\n\n{in_words(machine())}\n")
    assert text.endswith(f"{command.ENDS}\nafter\n")
    assert "| work | 2 s |" in text
    assert "1 s" not in text
    assert "old" not in text
    page.write_text("nothing")
    with pytest.raises(SystemExit):
        command.write_page(page, [], machine())
    assert page.read_text() == "nothing"


def test_all_that_files_are_evaluated_with_stands_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "figures"
    monkeypatch.setenv(KEPT, str(kept))
    others = ["evalsite", "evalsite, library", "ir_measures", "ranx"]
    whole.report([_Told(name) for name in [*others, "pytrec_eval"]])
    figures = read_figures(kept)
    assert [each.work for each in figures] == [f"files to values, {name}" for name in others]
    assert [each.most_times for each in figures] == [0.5, 0.5, None, None]
    assert {(each.beside, each.reference) for each in figures} == {("pytrec_eval", 3.0)}


class _Told(whole.Peer):
    """One that has read and evaluated."""

    def __init__(self, name: str) -> None:
        self.name, self.version, self.read, self.evaluated = name, "1", 1.0, 2.0

    def found(self) -> np.ndarray:
        return np.zeros((3, 2, 1))
