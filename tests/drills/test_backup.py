"""A backup while people judge, restored into another site, on the same database and on the other.

What was acknowledged before the backup began is in it, what was asked for after its end is not, and
the numbers of the restored site follow from its rows bit for bit.
"""

import gzip
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeSite
from tests.core.length import LONG
from tests.support.crowd import Crowd, Organizer, Shift, assessors
from tests.support.journal import Journal, Said, contradictions, tables_of
from tests.support.material import small_material
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

ROUND = {
    "measure": "DCG@10", "reported": ["P@5"], "budget": 560, "batch_size": 40, "labels": 2,
    "method": "poisson",
    "seed": "backup",
}  # fmt: skip

COMMANDS = """
from django.core.management import CommandError, call_command
for words in {lines}:
    try:
        call_command(*words)
    except CommandError as error:
        print("CommandError:", error)
"""


@dataclass(frozen=True)
class Saved:
    """A backup, and what the assessors' journal said before and after it was made."""

    stack: str
    folder: Path
    before: list[Said]
    after: list[Said]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def saved(
    request: pytest.FixtureRequest, make_site: MakeSite, tmp_path_factory: pytest.TempPathFactory
) -> Saved:
    site = make_site(request.param)
    key = site.add_users("olga", organizer=True)["olga"]
    organizer = Organizer(site, site.api(key), "backup")
    material = small_material()
    organizer.create()
    organizer.bring(material)
    organizer.draft(**ROUND)
    organizer.draw()
    organizer.open()
    journal = Journal(tmp_path_factory.mktemp("journal") / "journal")
    keys, crowd = organizer.enlist("ann", "bob", "cy"), Crowd(material.truth, max_grade=3, seed="b")
    people = assessors(organizer, keys, crowd, journal=journal, pace=lambda: time.sleep(0.1))
    folder = tmp_path_factory.mktemp("backup") / "monday"
    with Shift(people) as shift:
        shift.wait_acknowledged(80)
        before = journal.read()
        site.manage("backup", str(folder))
        after = journal.read()
        assert len(acknowledged(after)) > len(acknowledged(before))  # nobody was kept from judging
        shift.stop.set()
    site.stop()
    return Saved(request.param, folder, before, after)


def acknowledged(said: list[Said]) -> set[str]:
    return {each.key for each in said if each.acknowledged}


def tables_told(folder: Path) -> dict[str, Any]:
    """Number and digest of the rows of every table."""
    tables: dict[str, Any] = json.loads((folder / "manifest.json").read_text())["tables"]
    return tables


def commands(site: Site, *each: list[object]) -> str:
    """What manage.py prints for all of them, one after the other in one process; an error is told
    as by the command line, and the next one follows."""
    lines = [[str(word) for word in words] for words in each]
    return site.python(COMMANDS.format(lines=lines))


@pytest.mark.parametrize("stack", ["sqlite", "postgres"])
def test_another_site_goes_on_from_a_backup(
    saved: Saved, make_site: MakeSite, tmp_path: Path, stack: str
) -> None:
    site = make_site(stack, start=False)
    again = tmp_path / "again"
    told = commands(site, ["restore", saved.folder], ["backup", again], ["recompute"])
    assert tables_told(again) == tables_told(saved.folder)
    if ": due " in told:  # a batch was complete, and its estimates were not there yet
        site.python("from tests.support import factories; factories.run_due_jobs()")
        told += commands(site, ["recompute"])
    assert ": equal " in told
    assert "CommandError" not in told
    assert "DIFFERENT" not in told
    tables = tables_of(site.python)
    stored = {row.key for row in tables.judgments}
    assert acknowledged(saved.before) <= stored <= {each.key for each in saved.after}
    assert contradictions(tables) == []
    if LONG or stack != saved.stack:
        site.start()
        assert site.api().sign_in("olga", "correct-horse-7").status in (200, 302)
    new = site.add_users("new")  # ids go on where they ended
    assert len(new) == 1
    site.stop()


def test_what_is_no_whole_backup_changes_nothing(make_site: MakeSite, tmp_path: Path) -> None:
    source = make_site("sqlite", start=False)
    source.add_users("olga")
    whole = tmp_path / "whole"
    source.manage("backup", str(whole))
    written = [path.stat().st_mode & 0o077 for path in (whole, *whole.rglob("*"))]
    assert not any(written)
    with pytest.raises(AssertionError, match="whole is not empty"):
        source.manage("backup", str(whole))
    site = make_site("sqlite", start=False)
    for number, harm in enumerate(HARMS.values()):
        shutil.copytree(whole, tmp_path / f"copy{number}")
        harm(tmp_path / f"copy{number}")
    copies = [["restore", tmp_path / f"copy{number}"] for number in range(len(HARMS))]
    told = commands(site, *copies, ["restore", whole], ["restore", whole])
    errors = [line for line in told.splitlines() if line.startswith("CommandError: ")]
    messages = [*HARMS, "This site is in use: it has rows of judging.User"]
    assert len(errors) == len(messages), told
    assert all(message in error for message, error in zip(messages, errors, strict=True)), errors
    for each in (source, site):
        each.stop()


def change(folder: Path) -> None:
    rows = folder / "rows" / "judging.User.jsonl.gz"
    rows.write_bytes(gzip.compress(gzip.decompress(rows.read_bytes()).replace(b"olga", b"ogla")))


def leave_a_migration_out(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["migrations"].pop()
    (folder / "manifest.json").write_text(json.dumps(manifest))


HARMS: dict[str, Callable[[Path], object]] = {
    "it has no manifest.json": lambda folder: (folder / "manifest.json").unlink(),
    "Judgment.jsonl.gz is missing": lambda folder: (
        folder / "rows" / "judging.Judgment.jsonl.gz"
    ).unlink(),
    "User.jsonl.gz is missing or was changed": change,
    "with another schema: judging": leave_a_migration_out,
}
