"""Uploads: stored, read, all or nothing; everything uploaded is hostile. On both databases."""

import gzip
import io
import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.files.base import File

from estimation.models import Run
from estimation.services import rounds
from judging import selectors
from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import Campaign, Document, Job, KnownGrade, Topic, Upload
from judging.services import jobs, uploads
from tests.support import factories

pytestmark = pytest.mark.django_db

RUN = b"t1 Q0 a 1 3.0 sys\nt1 Q0 b 2 2.0 sys\nt2 Q0 a 1 1.0 sys\n"


@pytest.fixture
def campaign() -> Campaign:
    return factories.campaign(topics=2)


def upload(
    campaign: Campaign, content: bytes, name: str = "f.txt", kind: str | None = None
) -> Upload:
    return factories.stored_upload(campaign, content, name=name, kind=kind)


def problem(row: Upload) -> tuple[int | None, str, str]:
    first = row.errors[0]
    return first["line"], first["field"], first["message"]


@pytest.mark.slow
def test_each_kind_is_guessed_and_read(campaign: Campaign) -> None:
    rows = {
        "topics.tsv": b"id\ttitle\n9\tnine lives\n",
        "docs.jsonl": b'{"docno": "a", "title": "A", "text": "about a"}\n',
        "sys.run": RUN,
        "sys2.run.gz": gzip.compress(RUN.replace(b"sys", b"sys2")),
        "qrels.txt": b"t1 0 a 3\n",
    }

    read = {name: upload(campaign, content, name) for name, content in rows.items()}

    assert {row.state for row in read.values()} == {Upload.State.ACCEPTED}
    assert [row.kind for row in read.values()] == ["topics", "documents", "run", "run", "qrels"]
    assert campaign.topics.filter(topic_id="9", title="nine lives").exists()
    assert selectors.documents(campaign).get().text == "about a"
    assert list(Run.objects.values_list("tag", "topic_count", "line_count")) == [
        ("sys", 2, 3),
        ("sys2", 2, 3),
    ]
    assert KnownGrade.objects.get().grade == 3


HOSTILE = [
    (b"t1 Q0 a 1 3.0 sys\nt1 Q0 a 2 2.0 sys\n", "run", 2, "docno", "line 1"),
    (b"t1 Q0 a 1 nan sys\n", "run", 1, "score", "finite"),
    (b"t1 Q0 a 1 3.0 sys\nt1 Q0 b 2 2.0 other\n", "run", 2, "tag", "other"),
    (b"t1 Q0 a 1 3.0\n", "run", 1, "columns", "6"),
    (b"t1 Q0 a\x00b 1 3.0 sys\n", "run", 1, "", "NUL"),
    (b"t1 Q0 \xff\xfe 1 3.0 sys\n", "run", 1, "", "UTF-8"),
    (b"t1 Q0 ../../etc/passwd 1 3.0 sys\n", "run", 1, "docno", "path"),
    (b'{"docno": "/etc/passwd", "text": "x"}\n', "documents", 1, "docno", "path"),
    (b'{"docno": "a", "text": "x\\u0000y"}\n', "documents", 1, "text", "U+0000"),
    (b'{"docno": "a", "text": "\\ud800"}\n', "documents", 1, "text", "surrogate"),
    (b'{"docno": "' + b"a" * 300 + b'", "text": "x"}\n', "documents", 1, "docno", "255"),
    (b'{"docno": "a"\n', "documents", 1, "", "JSON"),
    (b"id\ttitle\n1\tone\n1\ttwo\n", "topics", 3, "topic", "line 2"),
    (b"t1\tagain\n", "topics", 1, "topic", "already"),
    (b"t1 0 a 9\n", "qrels", 1, "grade", "0"),
    (b"t1 0 a high\n", "qrels", 1, "grade", "high"),
    (b"", "run", None, "", ""),
]


@pytest.mark.parametrize(("content", "kind", "line", "field", "word"), HOSTILE)
def test_bad_files_are_refused_with_line_field_and_reason_and_change_nothing(
    campaign: Campaign, content: bytes, kind: str, line: int | None, field: str, word: str
) -> None:
    row = upload(campaign, content, "bad", kind)

    assert row.state == Upload.State.REJECTED
    assert row.error_count == 1
    found = problem(row)
    assert row.errors[0]["file"] == "bad"
    assert found[0] == line
    assert found[1] == field
    assert word.lower() in found[2].lower()
    assert not Run.objects.exists()
    assert not Document.objects.exists()
    assert not KnownGrade.objects.exists()
    assert Topic.objects.count() == 2


def test_at_most_fifty_errors_are_kept_and_all_are_counted(campaign: Campaign) -> None:
    row = upload(campaign, b"t1 Q0 a 1 x sys\n" * 70, "bad.run", "run")

    assert len(row.errors) == 50
    assert row.error_count >= 70


@pytest.mark.slow
def test_a_gzip_bomb_is_refused(campaign: Campaign) -> None:
    bomb = gzip.compress((b" " * 1000 + b"\n") * 50_000)

    row = upload(campaign, bomb, "bomb.gz", "documents")

    assert row.state == Upload.State.REJECTED
    assert row.error_count >= 1


def test_one_endless_line_is_refused(campaign: Campaign) -> None:
    row = upload(campaign, b"x" * 5_000_000, "endless", "documents")

    assert row.state == Upload.State.REJECTED
    assert problem(row)[0] == 1


def test_warnings_do_not_reject(campaign: Campaign) -> None:
    content = b"t1 Q0 a 2 1.0 sys\nt1 Q0 b 1 0.5 sys\nt9 Q0 a 1 1.0 sys\n"

    row = upload(campaign, content, "odd.run", "run")

    assert row.state == Upload.State.ACCEPTED
    text = " ".join(warning["message"] for warning in row.warnings)
    assert row.warning_count == 3
    assert "t9" in text
    assert "t2" in text
    assert row.summary["lines_left_out"] == 1


def test_ids_that_are_there_already_are_refused(campaign: Campaign) -> None:
    document = b'{"docno": "a", "text": "x"}\n'
    upload(campaign, document, "docs.jsonl")
    upload(campaign, RUN, "a.run")

    again = upload(campaign, document, "docs2.jsonl")
    same_tag = upload(campaign, RUN, "b.run")

    assert (again.state, problem(again)[:2]) == (Upload.State.REJECTED, (1, "docno"))
    assert (same_tag.state, problem(same_tag)[1]) == (Upload.State.REJECTED, "tag")
    assert Document.objects.count() == 1


def test_check_only_tells_and_keeps_nothing(campaign: Campaign) -> None:
    file: File[bytes] = File(io.BytesIO(RUN), name="a.run")
    row = uploads.store(
        campaign=campaign, by=campaign.created_by, file=file, name="a.run", check_only=True
    )
    factories.run_due_jobs()

    row.refresh_from_db()
    assert row.state == Upload.State.CHECKED
    assert row.summary["lines"] == 3
    assert not Run.objects.exists()


@pytest.mark.slow
def test_documents_are_invisible_until_the_upload_is_accepted(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []

    def look(_self: jobs.Running) -> None:
        seen.append((Document.objects.count(), selectors.documents(campaign).count()))

    monkeypatch.setattr(jobs.Running, "fence", look)
    lines = (json.dumps({"docno": f"d{n}", "text": "x"}) for n in range(2500))
    row = upload(campaign, "\n".join(lines).encode(), "docs.jsonl")

    assert row.state == Upload.State.ACCEPTED
    assert seen == [(0, 0), (1000, 0), (2000, 0), (2500, 0)]
    assert selectors.documents(campaign).count() == 2500


def test_a_read_that_was_cut_off_starts_again_from_nothing(campaign: Campaign) -> None:
    file: File[bytes] = File(io.BytesIO(b'{"docno": "a", "text": "x"}\n'), name="d.jsonl")
    row = uploads.store(campaign=campaign, by=campaign.created_by, file=file, name="d.jsonl")
    Upload.objects.update(state=Upload.State.READING)
    Document.objects.create(campaign=campaign, upload=row, docno="a", text="half")

    factories.run_due_jobs()

    assert Document.objects.get().text == "x"
    row.refresh_from_db()
    assert row.state == Upload.State.ACCEPTED


def dies_thrice(row: Upload) -> None:
    """What a file leaves that kills every worker: claimed, begun, never ended."""
    for _ in range(jobs.MAX_ATTEMPTS):
        assert jobs.claim(Job.objects.get(kind="upload", target=row.pk).pk) is not None
        Upload.objects.filter(pk=row.pk).update(state=Upload.State.READING)
        Job.objects.filter(target=row.pk).update(lease_until=seconds_from_now(-1))
    jobs.wake_due()


@pytest.mark.slow
def test_a_file_whose_reader_dies_three_times_holds_up_nobody(campaign: Campaign) -> None:
    by = campaign.created_by
    deadly: File[bytes] = File(io.BytesIO(b"t9\tnine\n"), name="topics.tsv")
    row = uploads.store(campaign=campaign, by=by, file=deadly, name="topics.tsv", kind="topics")

    dies_thrice(row)

    row.refresh_from_db()
    assert (row.state, row.error_count) == (Upload.State.REJECTED, 1)
    assert "died 3 times" in row.errors[0]["message"]
    run = upload(campaign, RUN, "a.run")
    assert run.state == Upload.State.ACCEPTED
    drafted = rounds.draft(
        campaign=campaign, by=by, plan=rounds.RoundPlan(measure="P@2", budget=2, batch_size=2)
    )
    rounds.request_draw(row=drafted, by=by)
    factories.run_due_jobs()
    assert campaign.rounds.get().state == "drawn"


def test_a_file_that_was_given_up_can_be_read_again_or_removed(campaign: Campaign) -> None:
    by = campaign.created_by
    rows = []
    for name in ("a.run", "b.run"):
        content: File[bytes] = File(io.BytesIO(RUN.replace(b"sys", name.encode())), name=name)
        rows.append(uploads.store(campaign=campaign, by=by, file=content, name=name))
        dies_thrice(rows[-1])

    uploads.read_again(upload=rows[0], by=by)
    factories.run_due_jobs()
    uploads.remove(upload=rows[1], by=by)

    rows[0].refresh_from_db()
    assert (rows[0].state, rows[0].error_count, rows[0].errors) == (Upload.State.ACCEPTED, 0, [])
    assert list(Job.objects.filter(kind="upload").values_list("target", flat=True)) == [rows[0].pk]
    with pytest.raises(UserError) as refused:
        uploads.read_again(upload=rows[0], by=by)
    assert refused.value.code == "not_failed"


def test_documents_of_a_file_that_was_given_up_are_gone(campaign: Campaign) -> None:
    file: File[bytes] = File(io.BytesIO(b'{"docno": "a", "text": "x"}\n'), name="d.jsonl")
    row = uploads.store(campaign=campaign, by=campaign.created_by, file=file, name="d.jsonl")
    Document.objects.create(campaign=campaign, upload=row, docno="a", text="half")

    dies_thrice(row)

    assert not Document.objects.exists()
    assert upload(campaign, b'{"docno": "a", "text": "y"}\n', "e.jsonl").state == "accepted"


def test_a_file_is_not_removed_while_it_is_read(campaign: Campaign) -> None:
    file: File[bytes] = File(io.BytesIO(RUN), name="a.run")
    row = uploads.store(campaign=campaign, by=campaign.created_by, file=file, name="a.run")
    jobs.claim(Job.objects.get(kind="upload").pk)
    Upload.objects.update(state=Upload.State.READING)

    with pytest.raises(UserError) as refused:
        uploads.remove(upload=row, by=campaign.created_by)

    assert refused.value.code == "in_use"
    assert Job.objects.filter(kind="upload", target=row.pk).exists()


def test_a_run_waits_for_topics_that_are_on_their_way() -> None:
    campaign = factories.campaign(topics=0)
    run_file: File[bytes] = File(io.BytesIO(RUN), name="a.run")
    topics: File[bytes] = File(io.BytesIO(b"t1\tone\nt2\ttwo\n"), name="topics.tsv")
    run = uploads.store(campaign=campaign, by=campaign.created_by, file=run_file, name="a.run")
    uploads.store(campaign=campaign, by=campaign.created_by, file=topics, name="topics.tsv")

    jobs.run(Job.objects.get(target=run.pk).pk)
    waiting = Job.objects.get(target=run.pk)
    assert (waiting.state, waiting.note) == (Job.State.QUEUED, "waits for the topics")
    Job.objects.update(due=waiting.created)
    factories.run_due_jobs()
    Job.objects.filter(target=run.pk).update(due=waiting.created)
    factories.run_due_jobs()

    assert Run.objects.get().topic_count == 2


def test_an_upload_can_be_removed_until_a_round_is_drawn(campaign: Campaign) -> None:
    row = upload(campaign, RUN, "a.run")
    stored = row.file.storage.path(row.file.name)
    assert stored.startswith(str(django_settings.MEDIA_ROOT))

    factories.released_batch(campaign, ["a"])
    with pytest.raises(UserError) as refused:
        uploads.remove(upload=row, by=campaign.created_by)
    assert refused.value.code == "in_use"
    campaign.batches.all().delete()
    uploads.remove(upload=row, by=campaign.created_by)

    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "C:\\x\\run.txt", "a\x00b\n.run", "x" * 999, ""]
)
def test_file_names_are_shown_but_never_become_paths(campaign: Campaign, name: str) -> None:
    row = upload(campaign, RUN, name, "run")

    assert row.state == Upload.State.ACCEPTED
    assert "/" not in row.name
    assert row.name.isprintable()
    assert len(row.name) <= 255
    assert row.file.name.startswith("uploads/")


def test_too_large_a_file_is_refused_at_once(campaign: Campaign, settings: object) -> None:
    settings.UPLOAD_MAX_BYTES = 10  # type: ignore[attr-defined]

    with pytest.raises(UserError) as refused:
        upload(campaign, RUN, "a.run")

    assert refused.value.status == 413
    assert not Upload.objects.filter(name="a.run").exists()


def test_a_file_that_would_fill_the_disk_is_refused_before_it_is_written(
    campaign: Campaign, settings: Any
) -> None:
    settings.MIN_FREE_BYTES = 2 * shutil.disk_usage(settings.DATA_DIR).free
    before = set(settings.MEDIA_ROOT.rglob("*"))

    with pytest.raises(UserError) as refused:
        upload(campaign, RUN, "a.run")

    assert (refused.value.code, refused.value.status) == ("storage_full", 507)
    assert set(settings.MEDIA_ROOT.rglob("*")) == before
    assert not Upload.objects.filter(name="a.run").exists()


def test_a_file_of_no_known_kind_is_asked_about(campaign: Campaign) -> None:
    guesses: list[Callable[[], object]] = [
        lambda: upload(campaign, b"\x89PNG\r\n\x1a\n\x00\x00", "a.png"),
        lambda: upload(campaign, b"hello world", "notes.txt"),
    ]
    for guess in guesses:
        with pytest.raises(UserError) as refused:
            guess()
        assert refused.value.field == "kind"
