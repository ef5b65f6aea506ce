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
from tests.support.crowd import Crowd, Organizer, Shift, assessors
from tests.support.journal import Journal, Said, contradictions, tables_of
from tests.support.material import small_material

pytestmark = [pytest.mark.services, pytest.mark.slow]

ROUND = {
    "measure": "DCG@10", "reported": ["P@5"], "budget": 560, "batch_size": 40, "labels": 2,
    "method": "poisson",
    "seed": "backup",
}  # fmt: skip


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


@pytest.mark.parametrize("stack", ["sqlite", "postgres"])
def test_another_site_goes_on_from_a_backup(
    saved: Saved, make_site: MakeSite, tmp_path: Path, stack: str
) -> None:
    site = make_site(stack, start=False)
    site.manage("restore", str(saved.folder))
    site.manage("backup", str(tmp_path / "again"))
    assert tables_told(tmp_path / "again") == tables_told(saved.folder)
    assert "DIFFERENT" not in site.manage("recompute")
    tables = tables_of(site.python)
    stored = {row.key for row in tables.judgments}
    assert acknowledged(saved.before) <= stored <= {each.key for each in saved.after}
    assert contradictions(tables) == []
    site.start()
    olga = site.api()
    assert olga.sign_in("olga", "correct-horse-7").status in (200, 302)
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
    for message, harm in HARMS.items():
        folder = tmp_path / "copy"
        shutil.copytree(whole, folder)
        harm(folder)
        with pytest.raises(AssertionError, match=f"CommandError: .*{message}"):
            site.manage("restore", str(folder))
        shutil.rmtree(folder)
    site.manage("restore", str(whole))
    with pytest.raises(AssertionError, match=r"This site is in use: it has rows of judging\.User"):
        site.manage("restore", str(whole))
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
