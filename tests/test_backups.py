"""Backups: rows of one moment, whatever is written meanwhile."""

import contextlib
import errno
import json
import re
import shutil
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from evalsite.management import backups
from judging.models import Campaign, CrowdLink
from judging.services import crowd_links
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


def campaigns_in_backup(folder: Path) -> int:
    """Of a backup in the middle of which, when accounts are written, a campaign is made."""

    def make() -> None:
        factories.campaign(slug=folder.name)
        connection.close()

    def say(line: str) -> None:
        if line.endswith("judging.User"):
            writer = threading.Thread(target=make)
            writer.start()
            writer.join()

    backups.back_up(folder, say=say)
    manifest = json.loads((folder / "manifest.json").read_text())
    return int(manifest["tables"]["judging.Campaign"]["rows"])


@pytest.mark.slow
def test_rows_are_those_of_one_moment(tmp_path: Path) -> None:
    assert campaigns_in_backup(tmp_path / "one") == 0
    assert Campaign.objects.count() == 1
    assert campaigns_in_backup(tmp_path / "two") == 1


@pytest.mark.slow
def test_twin_that_reads_table_after_table_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "_one_moment", contextlib.nullcontext)
    assert campaigns_in_backup(tmp_path / "one") == 1


def test_what_guests_are_paid_comes_back_to_the_last_digit(tmp_path: Path) -> None:
    """A site with a crowd link has amounts of money, which JSON does not know."""
    made = factories.campaign(slug="paid")
    plan = crowd_links.LinkPlan(
        name="l", most_people=2, judgments=3, consent="c", per_judgment=Decimal("0.1234")
    )
    crowd_links.make(campaign=made, by=made.created_by, plan=plan)
    before = list(CrowdLink.objects.values())
    backups.back_up(tmp_path / "backup", say=str)
    _delete_all_rows()
    backups.restore(tmp_path / "backup", say=str)
    assert list(CrowdLink.objects.values()) == before
    assert before[0]["per_judgment"] == Decimal("0.1234")


def _delete_all_rows() -> None:
    with transaction.atomic():
        for table in backups._tables():
            table._base_manager.all()._raw_delete(using="default")


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"half")])
def test_a_copy_that_lacks_files_is_no_whole_backup(
    tmp_path: Path, harm: Callable[[Path], object]
) -> None:
    """Else the rows would be there, and what they name would not."""
    stored = factories.stored(factories.campaign(), b"1\tTitle\n", name="topics.tsv").file.name
    backups.back_up(tmp_path, say=str)
    harm(tmp_path / "files" / stored)
    with pytest.raises(backups.BackupError, match="Files are missing"):
        backups.restore(tmp_path, say=str)


def test_a_file_that_is_removed_while_rows_are_written_is_in_the_backup(
    tmp_path: Path, settings: Any
) -> None:
    """As with its campaign, which the rows still have."""
    stored = factories.stored(factories.campaign(), b"1\tTitle\n", name="topics.tsv").file.name

    def say(line: str) -> None:
        if line.endswith("judging.User"):
            (Path(settings.MEDIA_ROOT) / stored).unlink()

    backups.back_up(tmp_path, say=say)
    assert (tmp_path / "files" / stored).read_bytes() == b"1\tTitle\n"


def test_a_file_that_is_removed_before_it_is_copied_fails_no_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.stored(factories.campaign(), b"1\tTitle\n", name="topics.tsv")
    copy = shutil.copy2

    def too_late(path: Path, into: Path) -> None:
        path.unlink()
        copy(path, into)

    monkeypatch.setattr(shutil, "copy2", too_late)
    backups.back_up(tmp_path, say=str)
    assert backups._manifest(tmp_path)["files"] == {"number": 0, "bytes": 0}


def test_a_file_that_a_desktop_left_keeps_no_backup_from_being_restored(tmp_path: Path) -> None:
    stored = factories.stored(factories.campaign(), b"1\tTitle\n", name="topics.tsv").file.name
    backups.back_up(tmp_path, say=str)
    (tmp_path / "files" / stored).with_name(".DS_Store").write_bytes(b"icons")
    with pytest.raises(backups.BackupError) as refused:
        backups.restore(tmp_path, say=str)
    assert "Files are missing" not in str(refused.value), "that this site is not empty"


def test_what_is_no_folder_and_no_manifest_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.umask", lambda _: None)  # that of this process stays
    (tmp_path / "file").touch()
    (tmp_path / "manifest.json").write_text("{")
    for command in ("backup", "restore"):
        with pytest.raises(CommandError, match="/file is no folder"):
            call_command(command, tmp_path / "file")
    with pytest.raises(CommandError, match="it is no JSON"):
        call_command("restore", tmp_path)
    for other in ("null", "[]", '{"name": "a web page"}'):
        (tmp_path / "manifest.json").write_text(other)
        with pytest.raises(CommandError, match=r"is no backup: its manifest\.json is of"):
            call_command("restore", tmp_path)


def test_what_a_full_disk_left_of_a_backup_is_said_to_be_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.umask", lambda _: None)  # that of this process stays
    monkeypatch.setattr(backups, "_write", full)
    said = f"No space left on device. {tmp_path / 'half'} is no whole backup: remove it."
    with pytest.raises(CommandError, match=re.escape(said)):
        call_command("backup", tmp_path / "half")
    assert (tmp_path / "half" / "rows").is_dir()


def test_files_that_a_full_disk_cut_off_are_copied_when_it_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Whoever restores makes room and does it again; half a file was taken for a whole one."""
    factories.stored(factories.campaign(), b"1\tTitle\n", name="topics.tsv")
    backups.back_up(tmp_path / "backup", say=str)
    _delete_all_rows()
    settings.MEDIA_ROOT = str(tmp_path / "new")

    def full(_source: Path, into: Path) -> None:
        into.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copy2", full)
        with pytest.raises(OSError, match="No space left"):
            backups.restore(tmp_path / "backup", say=str)
    assert not Campaign.objects.exists()
    backups.restore(tmp_path / "backup", say=str)
    saved = backups._whole(tmp_path / "backup" / "files")
    copied = backups._whole(tmp_path / "new")
    assert [path.read_bytes() for path in copied] == [path.read_bytes() for path in saved]
