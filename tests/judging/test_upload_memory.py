"""What is read goes through memory in pieces: a file four times as long takes no more of it."""

import io
import json
import tracemalloc
from collections.abc import Iterator

import pytest
from django.core.files.base import File

from judging import selectors
from judging.models import Campaign, Job, Topic, Upload
from judging.services import jobs, loaders, uploads
from judging.services.uploads import Load, Reading
from tests.support import factories

pytestmark = pytest.mark.django_db

TEXT = "a narrative of some length " * 2000
FEW, MANY = 200, 800


@pytest.fixture
def campaign() -> Campaign:
    return factories.campaign(topics=0)


def file_of(kind: str, count: int) -> bytes:
    key, long = {"topics": ("topic_id", "narrative"), "documents": ("docno", "text")}[kind]
    rows = ({key: f"{count}-{n}", "title": f"title {n}", long: TEXT} for n in range(count))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def peak(campaign: Campaign, kind: str, count: int) -> int:
    """Bytes that reading the file had at most."""
    file: File[bytes] = File(io.BytesIO(file_of(kind, count)), name="f")
    row = uploads.store(campaign=campaign, by=campaign.created_by, file=file, name="f", kind=kind)
    job = Job.objects.get(kind="upload", target=row.pk)
    tracemalloc.start()
    try:
        jobs.run(job.pk)
        found = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    row.refresh_from_db()
    assert row.state == Upload.State.ACCEPTED, row.errors
    assert row.summary == {kind: count}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["topics", "documents"])
def test_a_longer_file_takes_no_more_memory(campaign: Campaign, kind: str) -> None:
    few = peak(campaign, kind, FEW)

    assert peak(campaign, kind, MANY) < 1.5 * few
    brought = campaign.topics if kind == "topics" else selectors.documents(campaign)
    assert brought.count() == FEW + MANY


@pytest.mark.slow
def test_a_loader_that_keeps_all_topics_is_found_out(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keeps_all(reading: Reading) -> Load:
        topics = list(loaders._topics(reading))
        reading.summary = {"topics": len(topics)}
        return lambda: Topic.objects.bulk_create(topics, batch_size=100) and None

    few = peak(campaign, "topics", FEW)
    monkeypatch.setitem(uploads._loaders, "topics", keeps_all)

    assert peak(campaign, "topics", MANY) >= 1.5 * few


@pytest.mark.slow
def test_topics_are_all_or_nothing_even_when_the_second_reading_fails(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = "".join(f"{n}\ttitle {n}\n" for n in range(2500)).encode()
    read, seen = loaders.read_topics, 0

    def failing(*args: object, **kwargs: object) -> Iterator[object]:
        nonlocal seen
        seen += 1
        for number, record in enumerate(read(*args, **kwargs)):  # type: ignore[arg-type]
            if seen == 2 and number == 2200:
                raise RuntimeError("the disk is gone")
            yield record

    monkeypatch.setattr(loaders, "read_topics", failing)
    file: File[bytes] = File(io.BytesIO(content), name="t.tsv")
    row = uploads.store(campaign=campaign, by=campaign.created_by, file=file, name="t.tsv")
    jobs.run(Job.objects.get(target=row.pk, kind="upload").pk)
    assert not campaign.topics.exists()

    Job.objects.update(due=row.created)
    factories.run_due_jobs()

    assert campaign.topics.count() == 2500


def test_a_topics_file_has_a_bound_of_its_own(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaders, "MAX_TOPICS_BYTES", 1000)

    row = factories.stored_upload(campaign, b"1\t" + b"a" * 2000, name="t.tsv", kind="topics")

    assert row.state == Upload.State.REJECTED
    assert "expected at most 1000 bytes of text" in row.errors[0]["message"]
