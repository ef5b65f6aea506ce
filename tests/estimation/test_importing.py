"""A campaign from a folder: what is in it is taken whole, or refused in words."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from judging.models import Campaign
from tests.support import factories
from tests.support.material import small_material

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    material = small_material()
    (tmp_path / "runs").mkdir()
    (tmp_path / "topics.tsv").write_bytes(material.topics)
    for name, content in material.runs.items():
        (tmp_path / "runs" / name).write_bytes(content)
    return tmp_path


def imported(folder: Path) -> Campaign:
    factories.user("organizer", is_organizer=True)
    call_command("import_campaign", folder, organizer="organizer", verbosity=0)
    return Campaign.objects.get()


def test_a_folder_becomes_a_campaign_with_its_description(folder: Path) -> None:
    grades = [{"grade": 0, "name": "no"}, {"grade": 1, "name": "yes", "meaning": "it does"}]
    facts = {"name": "Small", "guidelines": ["One.", "Two."], "grades": grades, "more": [1]}
    (folder / "campaign.json").write_text(json.dumps(facts))
    made = imported(folder)
    assert (made.name, made.guidelines, made.max_grade) == ("Small", "One.\n\nTwo.", 1)
    assert made.runs.count() == 6


def test_a_description_may_begin_with_a_byte_order_mark(folder: Path) -> None:
    """As the editor of Windows writes it; every other file may, too."""
    (folder / "campaign.json").write_text('{"name": "Marked"}', "utf-8-sig")
    assert imported(folder).name == "Marked"


def test_hidden_files_are_no_runs(folder: Path) -> None:
    """Some systems leave such files in every folder that somebody has looked at."""
    (folder / "runs" / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    assert imported(folder).runs.count() == 6


def test_what_is_not_read_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Documents in several files, say: without a word the later ones would have no text."""
    for number in (1, 2):
        (folder / f"docs.{number}.jsonl").write_text(f'{{"docno": "n{number}", "text": "x"}}\n')
    (folder / "qrels.old").mkdir()
    (folder / "runs" / "more").mkdir()
    (folder / "runs" / ".hidden").touch()
    assert imported(folder).documents.count() == 1
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("left out")]
    assert told == [
        "left out: docs.2.jsonl: docs.1.jsonl is read",
        "left out: runs/more: it is no file",
        "left out: qrels.old: it is no file",
    ]


def test_fields_of_the_description_that_are_not_read_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slip of the pen would otherwise leave the depth what it is without a word."""
    grades = [{"grade": 0, "name": "no"}, {"name": "yes", "Meaning": "it does"}]
    (folder / "campaign.json").write_text(json.dumps({"depht": 5, "grades": grades}))
    assert imported(folder).depth == 100
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("left out")]
    assert told == [
        "left out: campaign.json: 'depht' is none of name, slug, guidelines, grades, depth",
        "left out: campaign.json: 'Meaning' of a grade is none of grade, name, meaning",
    ]


@pytest.mark.parametrize(("number", "said"), [(1, "1 file was"), (2, "2 files were")])
def test_files_that_are_rejected_are_counted(number: int, said: str, folder: Path) -> None:
    for name in "xyz"[:number]:
        (folder / "runs" / f"{name}.run").write_bytes(b"t1 Q0 d1\n")
    with pytest.raises(CommandError, match=f"^{said} rejected; nothing was imported.$"):
        imported(folder)
    assert not Campaign.objects.exists()


WRONG: list[tuple[str, Any]] = [
    ("name", 5), ("slug", ["a"]), ("guidelines", 5), ("guidelines", ["a", 1]), ("grades", "abc"),
    ("grades", [{"meaning": "x"}]), ("grades", [1]), ("grades", [{"name": 5}]), ("depth", "10"),
    ("depth", None), ("depth", True), ("depth", 10.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_what_the_description_of_a_campaign_has_wrong_is_named(
    name: str, value: Any, folder: Path
) -> None:
    (folder / "campaign.json").write_text(json.dumps({name: value}))
    with pytest.raises(CommandError, match=f"campaign.json: {name}: expected "):
        imported(folder)
    assert not Campaign.objects.exists()
