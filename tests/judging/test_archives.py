"""Archives: every file in one is an upload; one that cannot be taken keeps all of them out."""

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping

import pytest
from django.core.files.base import ContentFile

from judging.formats import archive as reader
from judging.formats.archive import read_archive
from judging.formats.lines import Limits
from judging.formats.problems import Problems, UnreadableError
from judging.models import Campaign, Topic, Upload
from judging.services import jobs, uploads
from tests.support import factories

pytestmark = pytest.mark.django_db

FILES = {
    "campaign/topics.tsv": b"1\tfirst question\n2\tsecond question\n",
    "campaign/qrels.txt": b"1 0 a 1\n2 0 b 0\n",
}


def zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return buffer.getvalue()


def taped(files: Mapping[str, bytes], mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as packed:  # type: ignore[call-overload]
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def tape(files: Mapping[str, bytes]) -> bytes:
    return taped(files, "w")


PACKERS: dict[str, Callable[[Mapping[str, bytes]], bytes]] = {
    "all.zip": zipped,
    "all.tar.gz": taped,
    "all.tar": tape,
}


@pytest.fixture
def campaign() -> Campaign:
    made = factories.campaign(topics=0)
    made.uploads.all().delete()
    return made


def states(campaign: Campaign) -> dict[str, str]:
    return dict(campaign.uploads.values_list("name", "state"))


@pytest.mark.parametrize("name", PACKERS)
def test_every_file_of_an_archive_is_an_upload(name: str, campaign: Campaign) -> None:
    upload = factories.stored_upload(campaign, PACKERS[name](FILES), name=name)
    assert upload.kind == Upload.Kind.ARCHIVE
    assert upload.summary == {"files": 2}
    assert states(campaign) == {name: "accepted", "topics.tsv": "accepted", "qrels.txt": "accepted"}
    assert campaign.topics.count() == 2
    assert campaign.known_grades.count() == 2


def test_check_only_checks_the_files_and_takes_nothing(campaign: Campaign) -> None:
    uploads.store(
        campaign=campaign,
        by=campaign.created_by,
        file=ContentFile(zipped({"topics.tsv": FILES["campaign/topics.tsv"]})),
        name="all.zip",
        check_only=True,
    )
    factories.run_due_jobs()
    assert states(campaign) == {"all.zip": "checked", "topics.tsv": "checked"}
    assert not Topic.objects.exists()


def odd(name: str) -> bytes:
    """A tar archive with a link in it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as packed:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(entry)
    return buffer.getvalue()


def with_password() -> bytes:
    content = bytearray(zipped(FILES))
    central = content.find(b"PK\x01\x02")
    content[6] |= 1
    content[central + 8] |= 1
    return bytes(content)


REFUSED = {
    "nested": (zipped({"inner.zip": zipped(FILES), **FILES}), "An archive in an archive"),
    "unknown": (zipped({"notes.txt": b"nothing\n", **FILES}), "notes.txt Nobody can tell"),
    "picture": (
        taped({"a.png": b"\x89PNG\r\n\x1a\n" + bytes(100), **FILES}),
        "a.png This is a",
    ),
    "link": (odd("topics.tsv"), "no file but a link"),
    "password": (with_password(), "password"),
    "cut off": (taped(FILES)[:-30], "cannot be read to its end"),
    "broken": (zipped(FILES)[:-30], "cannot be read to its end"),
    "empty": (zipped({"folder/": b""}), "no file in this archive"),
    "empty zip": (zipped({}), "no file in this archive"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_one_bad_file_refuses_the_archive_and_changes_nothing(
    case: str, campaign: Campaign
) -> None:
    content, said = REFUSED[case]
    upload = factories.stored_upload(campaign, content, name="all", kind="archive")
    assert upload.state == Upload.State.REJECTED
    told = " ".join(f"{each['field']} {each['message']}" for each in upload.errors)
    assert said in told
    assert list(states(campaign)) == ["all"]


def test_names_never_become_paths_and_hidden_files_stay_out(campaign: Campaign) -> None:
    files = {
        "../../etc/topics.tsv": FILES["campaign/topics.tsv"],
        "__MACOSX/._topics.tsv": b"\x00\x05",
        ".DS_Store": b"\x00",
        "c:\\runs\\qrels.txt": FILES["campaign/qrels.txt"],
    }
    factories.stored_upload(campaign, zipped(files), name="all.zip")
    assert set(states(campaign)) == {"all.zip", "topics.tsv", "qrels.txt"}
    for row in campaign.uploads.all():
        assert "/" not in row.file.name.removeprefix("uploads/")


@pytest.mark.slow
def test_a_bomb_ends_at_what_packing_explains() -> None:
    bomb = zipped({"bomb.txt": bytes(64 * 2**20)})
    problems = Problems("bomb.zip")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_RATIO_FREE", 2**20)
        members = read_archive(io.BytesIO(bomb), problems, limits=Limits())
        member, taken = next(members), []
        with pytest.raises(UnreadableError):
            taken.extend(iter(lambda: len(member.file.read(2**20)), 0))
    assert sum(taken) <= 100 * len(bomb) + 2**20
    assert "more than" in str(problems.errors)


def test_too_many_files_are_refused(monkeypatch: pytest.MonkeyPatch, campaign: Campaign) -> None:
    monkeypatch.setattr(reader, "MAX_FILES", 1)
    upload = factories.stored_upload(campaign, zipped(FILES), name="all.zip")
    assert upload.state == Upload.State.REJECTED
    assert "more than 1 files" in str(upload.errors)


def test_going_on_after_a_kill_stores_no_file_twice(campaign: Campaign) -> None:
    upload = factories.stored(campaign, zipped(FILES), name="all.zip")
    row = Upload.objects.get(pk=upload.pk)
    job = upload_job(row)
    jobs.run(job)
    Upload.objects.filter(pk=row.pk).update(state=Upload.State.READING)
    jobs.request("upload", row.pk, campaign=campaign)
    factories.run_due_jobs()
    assert campaign.uploads.count() == 3


def upload_job(row: Upload) -> int:
    from judging.selectors import job_of

    job = job_of("upload", row.pk)
    assert job is not None
    return job.pk
