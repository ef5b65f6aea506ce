"""``manage.py score`` of what is not known: the reason where others have a number."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.inference.unknown import Reason
from estimation.core.sampling import goals
from estimation.formats.runs import read_run
from estimation.management.purposes import purpose_of
from estimation.unknown import FURTHER
from judging.formats.problems import Problems
from tests.estimation.test_score_command import MATERIAL, folder, loaded, score
from tests.support import unknown

__all__ = ["folder"]

YET = f"Not known yet: too few of the documents behind this value were judged. {FURTHER}"
APART = f"Not known yet: too few relevant documents tell the two apart so far. {FURTHER}"
LATER = (
    "Not known: too few documents of runs that joined after the draw were judged. A new round "
    "would tell."
)


@pytest.fixture
def unsure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, ...]:
    """A collection of run1 and run2, and three runs; nothing is known of run2 and the late run4."""
    values = {"run2": Reason.TOO_LITTLE, "run4": Reason.TOO_LITTLE}
    differences = [*unknown.all_of("run2", ("run1", "run4")), ("run1", "run4")]
    unknown.patch(monkeypatch, values=values, differences=differences)
    return folder / "collection.zip", *(folder / f"run{n}.run" for n in (1, 2, 4))


def test_the_table_has_the_reason_where_others_have_a_number(unsure: tuple[Path, ...]) -> None:
    said = score(*unsure, "--measure", "DCG@10", "--per-topic")
    blocks = said.out.split("runid")[1:]
    rows = [[line.split("\t") for line in block.splitlines()[1:]] for block in blocks]
    of = [{cells[0].strip(): cells[2] for cells in block if cells[1] == "all"} for block in rows]
    for found in of[1:]:
        assert (found["DCG@10"], found["DCG@10_se"]) == ("unknown", "unknown")
        assert found["DCG@10_unknown"] == "too_little"
        assert float(found["DCG@10_low"]) <= float(found["DCG@10_high"])
    assert "DCG@10_unknown" not in of[0]
    assert float(of[0]["DCG@10"]) > 0
    topics = [[cells for cells in block if cells[1] != "all"] for block in rows]
    assert list(map(len, topics)) == [6, 0, 0], "topics would add up to the value"
    assert f"run2: DCG@10 is n{YET[1:]}" in said.err
    assert f"run4: DCG@10 is n{LATER[1:]}" in said.err
    assert "run1: DCG@10 is n" not in said.err


def lists_of(tag: str) -> RankedLists:
    run = read_run(io.BytesIO(MATERIAL.runs[f"{tag}.run"]), Problems(tag))
    assert run is not None
    return run.lists


def records(*arguments: object) -> dict[str, dict[str, Any]]:
    said = score(*arguments, "--measure", "DCG@10", "--per-topic", "--format", "json")
    return {found["tag"]: found for found in json.loads(said.out)}


def test_json_has_the_reason_and_no_number(unsure: tuple[Path, ...]) -> None:
    found = records(*unsure)
    for tag, why in (("run2", YET), ("run4", LATER)):
        of_run = found[tag]
        assert (of_run["value"], of_run["se"], of_run["topics"]) == (None, None, None)
        assert (of_run["unknown"], of_run["unknown_why"]) == ("too_little", why)
        assert of_run["low"] <= of_run["high"]
    known = found["run1"]
    assert (known["unknown"], known["unknown_why"]) == (None, None)
    assert known["value"] > 0
    differences = {each["tag"]: each for each in known["differences"]}
    for each in differences.values():
        assert (each["value"], each["low"], each["high"], each["se"]) == (None,) * 4
        assert (each["verdict"], each["unknown"]) == (0, "too_little")
    assert differences["run2"]["unknown_why"] == APART
    assert differences["run4"]["unknown_why"] == LATER


def test_the_twin_where_all_is_known_has_every_number(folder: Path) -> None:
    found = records(folder / "collection.zip", folder / "run1.run", folder / "run2.run")
    for of_run in found.values():
        assert of_run["value"] > 0
        assert (of_run["unknown"], of_run["unknown_why"]) == (None, None)
        (difference,) = of_run["differences"]
        assert difference["value"] is not None
        assert difference["unknown"] is None


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        (goals.single("run1"), "this round was made to measure run1; for the other runs"),
        (goals.pair("run1", "run2"), "this round was made for differences, not for values"),
        (goals.baseline("run1", against="run2"), "this round was made for differences, not for"),
    ],
)
def test_the_goal_of_the_collection_gives_the_reason(
    folder: Path, goal: goals.Goal, said: str
) -> None:
    collection = loaded(folder / "collection.zip")
    assert isinstance(collection, RoundCollection)
    part = collection.parts[0]
    other = replace(part, design=replace(part.design, goal=goal))
    changed = replace(collection, drawn=other)
    runs = {tag: lists_of(tag) for tag in ("run1", "run2")}
    result = collection.evaluate(runs, measures=collection.measures[:1]).results[0]
    assert said in (purpose_of(changed, result).of_value(Reason.TOO_LITTLE, "run2") or "")
