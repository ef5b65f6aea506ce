"""Files are read within bounds and can be canceled, whatever their reader does with them."""

import io
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.base import File
from django.db import connection

from judging import (
    selectors,
    tasks,  # noqa: F401  (loaders and handlers register themselves)
)
from judging.errors import UserError
from judging.models import AuditEntry, Campaign, Document, Job, KnownGrade, Upload
from judging.services import bounds, jobs, uploads
from judging.services.uploads import Load, Reading
from tests.support import factories

pytestmark = pytest.mark.django_db

DOCUMENTS = b'{"docno": "a", "text": "x"}\n{"docno": "b", "text": "y"}\n'


@pytest.fixture
def campaign() -> Campaign:
    return factories.campaign(topics=1)


def stored(campaign: Campaign, content: bytes, kind: str = "qrels") -> Upload:
    file: File[bytes] = File(io.BytesIO(content), name="f")
    return uploads.store(campaign=campaign, by=campaign.created_by, file=file, name="f", kind=kind)


def read(row: Upload) -> Upload:
    jobs.run(Job.objects.get(kind="upload", target=row.pk).pk)
    row.refresh_from_db()
    return row


def endless(reading: Reading) -> Load:
    """A reader that never comes to an end, and takes every Exception for a bad line."""
    reading.summary = {"begun": True}
    while True:
        try:
            sum(range(1000))
        except Exception:
            continue


@pytest.fixture
def endless_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(uploads._loaders, "qrels", endless)


def job_state(row: Upload) -> str:
    return Job.objects.get(kind="upload", target=row.pk).state


@pytest.mark.slow
@pytest.mark.usefixtures("endless_reader")
def test_a_file_that_takes_too_much_of_the_processor_is_refused_and_says_so(
    campaign: Campaign, settings: Any
) -> None:
    settings.UPLOAD_CPU_SECONDS = 0.3

    row = read(stored(campaign, b"t1 0 a 1\n"))

    assert row.state == Upload.State.REJECTED
    assert "takes more than 0.3 seconds of processor time" in row.errors[0]["message"]
    assert "split it" in row.errors[0]["message"]
    assert job_state(row) == Job.State.DONE


@pytest.mark.slow
def test_a_file_that_only_waits_is_refused_too(
    campaign: Campaign, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asleep(_reading: Reading) -> Load:
        time.sleep(600)
        raise AssertionError("nothing woke it")

    monkeypatch.setitem(uploads._loaders, "qrels", asleep)
    settings.UPLOAD_SECONDS = 0.3

    row = read(stored(campaign, b"t1 0 a 1\n"))

    assert row.state == Upload.State.REJECTED
    assert "takes longer than 0.3 seconds" in row.errors[0]["message"]


@pytest.mark.slow
def test_a_file_that_takes_too_much_memory_is_refused_and_the_next_one_is_read(
    campaign: Campaign, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hungry(_reading: Reading) -> Load:
        taken: list[bytearray] = []
        while len(taken) < 2000:
            taken.append(bytearray(2**20))
        raise AssertionError("2 GB were taken")

    settings.UPLOAD_MEMORY_BYTES = 64 * 2**20
    with monkeypatch.context() as patched:
        patched.setitem(uploads._loaders, "qrels", hungry)
        row = read(stored(campaign, b"t1 0 a 1\n"))

    assert row.state == Upload.State.REJECTED
    assert "needs more than 64 MB of memory" in row.errors[0]["message"]
    assert not KnownGrade.objects.exists()
    assert read(stored(campaign, b"t1 0 a 1\n")).state == Upload.State.ACCEPTED


@pytest.mark.slow
def test_what_was_staged_of_a_refused_file_does_not_keep_its_ids(
    campaign: Campaign, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = uploads._loaders["documents"]

    def staged_then_endless(reading: Reading) -> Load:
        loader(reading)
        assert Document.objects.filter(upload=reading.upload).count() == 2
        return endless(reading)

    monkeypatch.setitem(uploads._loaders, "documents", staged_then_endless)
    settings.UPLOAD_CPU_SECONDS = 0.3
    assert read(stored(campaign, DOCUMENTS, "documents")).state == Upload.State.REJECTED
    assert not Document.objects.exists()

    monkeypatch.setitem(uploads._loaders, "documents", loader)
    assert read(stored(campaign, DOCUMENTS, "documents")).state == Upload.State.ACCEPTED
    assert selectors.documents(campaign).count() == 2


def test_a_file_within_its_bounds_leaves_no_timer_and_no_limit(campaign: Campaign) -> None:
    assert read(stored(campaign, b"t1 0 a 1\n")).state == Upload.State.ACCEPTED

    with bounds.kept(bounds.WorkBounds(0, 0, 0)):
        assert len(bytearray(32 * 2**20)) == 32 * 2**20
    assert bounds.signal.getitimer(bounds.signal.ITIMER_REAL)[1] == 0.0
    assert bounds.resource.getrlimit(bounds.resource.RLIMIT_AS)[0] == (
        bounds.resource.RLIM_INFINITY
    )


def test_a_file_that_waits_is_canceled_and_never_read(campaign: Campaign) -> None:
    row = stored(campaign, b"t1 0 a 1\n")

    uploads.cancel(upload=row, by=campaign.created_by)

    assert job_state(row) == Job.State.DONE
    row = read(row)
    assert row.state == Upload.State.REJECTED
    assert row.errors[0]["message"] == (
        f"The reading of this file was canceled by {campaign.created_by}."
        " Upload it again to have it read."
    )
    assert AuditEntry.objects.filter(action="cancel upload", campaign=campaign).exists()
    assert not KnownGrade.objects.exists()


def test_a_file_that_was_read_is_not_canceled(campaign: Campaign) -> None:
    row = read(stored(campaign, b"t1 0 a 1\n"))

    with pytest.raises(UserError) as refused:
        uploads.cancel(upload=row, by=campaign.created_by)

    assert (refused.value.code, refused.value.status) == ("not_reading", 409)
    row.refresh_from_db()
    assert row.state == Upload.State.ACCEPTED
    assert KnownGrade.objects.count() == 1


def test_a_file_whose_reader_died_can_be_canceled_and_removed(campaign: Campaign) -> None:
    row = stored(campaign, b"t1 0 a 1\n")
    Upload.objects.update(state=Upload.State.READING)
    Job.objects.update(state=Job.State.FAILED, error="The worker died.")

    uploads.cancel(upload=row, by=campaign.created_by)
    row.refresh_from_db()
    uploads.remove(upload=row, by=campaign.created_by)

    assert not Upload.objects.filter(pk=row.pk).exists()


def as_soon_as(begun: Callable[[], bool], work: Callable[[], None]) -> threading.Thread:
    def wait() -> None:
        try:
            while not begun():
                time.sleep(0.05)
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_canceling_stops_the_worker_in_the_middle_of_the_file(
    campaign: Campaign, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long before a bound does, which is there so that a worker nobody stops ends as well."""
    ended: list[type[BaseException]] = []

    def telling(reading: Reading) -> Load:
        try:
            return endless(reading)
        except BaseException as stopped:
            ended.append(type(stopped))
            raise

    monkeypatch.setitem(uploads._loaders, "qrels", telling)
    settings.JOB_LEASE_SECONDS, settings.UPLOAD_CPU_SECONDS = 2, 20
    row = stored(campaign, b"t1 0 a 1\n")
    reading = Upload.objects.filter(pk=row.pk, state=Upload.State.READING)

    person = as_soon_as(reading.exists, lambda: uploads.cancel(upload=row, by=campaign.created_by))
    row = read(row)
    person.join()

    assert row.state == Upload.State.REJECTED
    assert "canceled" in row.errors[0]["message"]
    assert ended == [bounds.Unwanted]
    assert job_state(row) == Job.State.DONE


def test_uploads_wait_in_a_queue_of_their_own(settings: Any) -> None:
    folder = settings.DATA_DIR / "queue"
    before = set(folder.glob("*.msg"))

    assert jobs.hint(1, "upload")
    assert jobs.hint(2, "recompute")

    sent = sorted(path.name.split(".", 1)[1] for path in set(folder.glob("*.msg")) - before)
    assert sent == ["celery.msg", "uploads.msg"]
