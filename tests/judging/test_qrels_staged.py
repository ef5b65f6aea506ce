"""Qrels are staged some at a time, and all there at once when the file is accepted."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from judging.models import Campaign, Job, KnownGrade, Upload
from judging.services import bulk, jobs, loaders, uploads
from tests.support import factories

pytestmark = pytest.mark.django_db
LINES, PART = 95, 10


@pytest.fixture
def campaign(monkeypatch: pytest.MonkeyPatch) -> Campaign:
    monkeypatch.setattr(loaders, "AT_ONCE", PART)
    made = factories.campaign(topics=0)
    factories.stored_upload(made, b"1\tone\n2\ttwo\n3\tthree\n", name="topics.tsv", kind="topics")
    return made


def qrels(count: int = LINES) -> bytes:
    return "".join(f"{1 + n % 3} 0 d{n} {n % 2}\n" for n in range(count)).encode()


def asked(campaign: Campaign, content: bytes, name: str = "q") -> tuple[Upload, Job]:
    upload = factories.stored(campaign, content, name=name, kind="qrels")
    return upload, Job.objects.get(kind="upload", target=upload.pk)


def interrupted(monkeypatch: pytest.MonkeyPatch, after: int, work: Callable[[], object]) -> None:
    """Does something before a part of the grades is inserted, once."""
    insert, parts = bulk.insert, []

    def watched(model: Any, columns: Any, **options: Any) -> None:
        if model is KnownGrade:
            parts.append(len(columns["docno"]))
            if len(parts) == after:
                work()
        insert(model, columns, **options)

    monkeypatch.setattr(bulk, "insert", watched)


def killed() -> None:
    raise SystemExit


def test_no_statement_has_more_than_some_of_them(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each in a transaction of its own: other writers wait for so many at most."""
    parts: list[int] = []
    fences: list[int] = []
    insert, fence = bulk.insert, jobs.Running.fence
    monkeypatch.setattr(jobs.Running, "fence", lambda job: (fences.append(1), fence(job))[1])

    def watched(model: Any, columns: Any, **options: Any) -> None:
        if model is KnownGrade:
            parts.append(len(columns["docno"]))
        insert(model, columns, **options)

    monkeypatch.setattr(bulk, "insert", watched)
    upload, job = asked(campaign, qrels())
    jobs.run(job.pk)
    upload.refresh_from_db()
    assert (upload.state, upload.summary) == (Upload.State.ACCEPTED, {"qrels": LINES})
    assert parts == [PART] * (LINES // PART) + [LINES % PART]
    assert len(fences) == len(parts) + 1, "and the one that accepts"
    assert campaign.known_grades.count() == LINES
    rows = KnownGrade.objects.values_list("topic__topic_id", "docno", "grade")
    assert set(rows) == {(str(1 + n % 3), f"d{n}", n % 2) for n in range(LINES)}


def test_a_file_that_is_half_read_has_none_and_is_read_again_from_its_beginning(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload, job = asked(campaign, qrels())
    with monkeypatch.context() as patched:
        interrupted(patched, 4, killed)
        with pytest.raises(SystemExit):
            jobs.run(job.pk)
    assert KnownGrade.every.count() == 3 * PART
    assert KnownGrade.objects.count() == campaign.known_grades.count() == 0
    jobs.run(job.pk)
    upload.refresh_from_db()
    assert upload.state == Upload.State.ACCEPTED
    assert KnownGrade.objects.count() == KnownGrade.every.count() == LINES


def test_who_has_lost_the_lease_stages_no_more(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, job = asked(campaign, qrels())
    interrupted(monkeypatch, 2, lambda: Job.objects.filter(pk=job.pk).update(token="another"))
    jobs.run(job.pk)
    assert KnownGrade.every.count() <= 2 * PART
    assert KnownGrade.objects.count() == 0


def test_what_a_canceled_file_left_keeps_no_other_out(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload, job = asked(campaign, qrels())
    with monkeypatch.context() as patched:
        cancel = lambda: uploads.cancel(upload=upload, by=campaign.created_by)  # noqa: E731
        interrupted(patched, 4, cancel)
        jobs.run(job.pk)
    upload.refresh_from_db()
    assert upload.state == Upload.State.REJECTED
    assert KnownGrade.every.count() >= 3 * PART
    other, _ = asked(campaign, qrels(), "r")
    factories.run_due_jobs()
    other.refresh_from_db()
    assert (other.state, other.errors) == (Upload.State.ACCEPTED, [])
    assert set(KnownGrade.every.values_list("upload", flat=True)) == {other.pk}
    assert KnownGrade.objects.count() == LINES


def test_two_files_of_the_same_pairs_are_not_both_taken_in(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one is read while the first is staged, and knows nothing of it."""
    first, job = asked(campaign, qrels())
    second, its_job = asked(campaign, qrels(), "r")
    with monkeypatch.context() as patched:
        interrupted(patched, 3, lambda: jobs.run(its_job.pk))
        jobs.run(job.pk)
    first.refresh_from_db()
    second.refresh_from_db()
    assert {first.state, second.state} == {Upload.State.ACCEPTED, Upload.State.REJECTED}
    (told,) = second.errors
    assert told["message"] == "Another upload has brought the same pairs meanwhile."
    assert KnownGrade.objects.count() == LINES


def test_known_pairs_are_told_line_by_line_whatever_their_topics(campaign: Campaign) -> None:
    first = "2 0 b 0\n1 0 a 1\n1 0 dé 1\n2 0 c 1\n"
    factories.stored_upload(campaign, first.encode(), name="q", kind="qrels")
    second = "2 0 a 1\n2 0 b 1\n3 0 a 0\n1 0 dé 0\n1 0 a 0\n2 0 c 1\n"
    again = factories.stored_upload(campaign, second.encode(), name="r", kind="qrels")
    assert again.state == Upload.State.REJECTED
    assert [row["line"] for row in again.errors] == [2, 4, 5, 6]
    assert KnownGrade.every.count() == 4


def test_of_many_known_pairs_the_first_are_told(campaign: Campaign) -> None:
    factories.stored_upload(campaign, qrels(), name="q", kind="qrels")
    again = factories.stored_upload(campaign, qrels(), name="r", kind="qrels")
    assert again.error_count == LINES
    assert [row["line"] for row in again.errors] == list(range(1, 51))


def held(campaign: Campaign, count: int) -> int:
    """The most bytes that reading so many judgments takes."""
    _, job = asked(campaign, "".join(f"1 0 FBIS4-{n:07} 1\n" for n in range(count)).encode())
    tracemalloc.start()
    try:
        jobs.run(job.pk)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        campaign.uploads.filter(kind="qrels").delete()


@pytest.mark.slow
def test_a_judgment_takes_columns_and_no_text(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaders, "AT_ONCE", 1000)
    few, many = held(campaign, 120_000), held(campaign, 240_000)
    assert (many - few) / 120_000 < 120
