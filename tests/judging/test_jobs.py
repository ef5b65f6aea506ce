"""Jobs: rows that are claimed once, fenced, tried again, and never forgotten."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.db.models.sql.compiler import SQLCompiler

from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import Job
from judging.services import jobs

pytestmark = pytest.mark.django_db


@pytest.fixture
def done() -> Iterator[list[int]]:
    """What the handler of the kind "probe" was given, in order."""
    seen: list[int] = []
    jobs.handles("probe")(lambda job: seen.append(job.target))
    yield seen
    del jobs._handlers["probe"]
    jobs._give_up.pop("probe", None)


def handler(kind: str, work: jobs.Handler) -> None:
    jobs.handles(kind)(work)


def test_a_requested_job_runs_once_however_often_it_is_woken(done: list[int]) -> None:
    job = jobs.request("probe", 7)

    for _ in range(3):
        jobs.run(job.pk)

    assert done == [7]
    job.refresh_from_db()
    assert (job.state, job.done, job.progress) == (Job.State.DONE, 1, 100)


def test_requests_coalesce_while_it_waits_and_run_once_more_if_asked_meanwhile(
    done: list[int],
) -> None:
    job = jobs.request("probe", 7)
    jobs.request("probe", 7)
    jobs.request("probe", 7)
    jobs.run(job.pk)
    assert done == [7]

    def ask_again(running: jobs.Running) -> None:
        done.append(running.target)
        if len(done) == 2:
            jobs.request("probe", 7)

    handler("probe", ask_again)
    jobs.request("probe", 7)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.QUEUED
    jobs.run(job.pk)

    assert done == [7, 7, 7]
    job.refresh_from_db()
    assert (job.state, job.requested, job.done) == (Job.State.DONE, 5, 5)


def test_a_running_job_is_not_claimed_until_its_lease_runs_out(done: list[int]) -> None:
    job = jobs.request("probe", 7)
    first = jobs.claim(job.pk)
    assert first is not None

    assert jobs.claim(job.pk) is None
    Job.objects.update(lease_until=seconds_from_now(-1))
    second = jobs.claim(job.pk)

    assert second is not None
    with pytest.raises(jobs.LeaseLost), transaction.atomic():
        first.fence()
    second.fence()


def test_who_has_lost_the_lease_writes_nothing(done: list[int]) -> None:
    job = jobs.request("probe", 7)
    written: list[str] = []

    def slow(running: jobs.Running) -> None:
        Job.objects.filter(pk=running.id).update(token="somebody else")
        with transaction.atomic():
            running.fence()
            written.append("results")

    handler("probe", slow)
    jobs.run(job.pk)

    assert written == []
    job.refresh_from_db()
    assert (job.state, job.token) == (Job.State.RUNNING, "somebody else")


def test_a_bug_is_tried_three_times_and_then_shown(done: list[int]) -> None:
    job = jobs.request("probe", 7)

    def broken(running: jobs.Running) -> None:
        done.append(running.target)
        raise ValueError("boom")

    handler("probe", broken)
    for _ in range(5):
        Job.objects.update(due=seconds_from_now(-1))
        jobs.run(job.pk)

    assert done == [7] * jobs.MAX_ATTEMPTS
    job.refresh_from_db()
    assert (job.state, job.error) == (Job.State.FAILED, "ValueError: boom")
    handler("probe", lambda running: done.append(0))
    jobs.request("probe", 7)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == (Job.State.DONE, "")


def test_what_hinders_a_job_is_told_as_a_sentence_and_it_is_tried_again(done: list[int]) -> None:
    job = jobs.request("probe", 7)

    def hindered(_running: jobs.Running) -> None:
        raise jobs.Hindered("The cluster is away.")

    handler("probe", hindered)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error, job.attempts) == (Job.State.QUEUED, "The cluster is away.", 1)
    for _ in range(jobs.MAX_ATTEMPTS):
        Job.objects.update(due=seconds_from_now(-1))
        jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == (Job.State.FAILED, "The cluster is away.")


def test_a_job_that_is_removed_while_it_fails_ends_without_another_error(done: list[int]) -> None:
    """Its round was discarded, or its file removed, while a worker was at it."""

    def removed(running: jobs.Running) -> None:
        Job.objects.filter(pk=running.id).delete()
        raise ValueError("nothing is there")

    handler("probe", removed)
    jobs.run(jobs.request("probe", 7).pk)

    assert not Job.objects.exists()


def test_an_error_of_the_user_fails_at_once_with_its_sentence(done: list[int]) -> None:
    job = jobs.request("probe", 7)

    def refuse(_running: jobs.Running) -> None:
        raise UserError("no_runs", "Upload a run first.")

    handler("probe", refuse)
    jobs.run(job.pk)

    job.refresh_from_db()
    assert (job.state, job.error, job.attempts) == (Job.State.FAILED, "Upload a run first.", 1)


def test_a_job_that_must_wait_is_due_again_later(done: list[int]) -> None:
    job = jobs.request("probe", 7)

    def wait(_running: jobs.Running) -> None:
        raise jobs.NotYet(30, "waits for the topics")

    handler("probe", wait)
    jobs.run(job.pk)
    jobs.run(job.pk)

    job.refresh_from_db()
    assert (job.state, job.note, job.attempts) == (Job.State.QUEUED, "waits for the topics", 0)


@pytest.mark.parametrize("asked_meanwhile", [False, True])
def test_a_worker_that_must_end_gives_its_job_back(done: list[int], asked_meanwhile: bool) -> None:
    def told_to_end(running: jobs.Running) -> None:
        if asked_meanwhile:
            jobs.request("probe", running.target)
        sys.exit(1)

    handler("probe", told_to_end)
    job = jobs.request("probe", 7)
    with pytest.raises(SystemExit):
        jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.attempts, job.token) == (Job.State.QUEUED, 0, "")

    handler("probe", lambda running: done.append(running.target))
    jobs.run(job.pk)
    assert done == [7]


def test_a_worker_that_dies_three_times_over_a_job_fails_it() -> None:
    job = jobs.request("probe", 7)
    for _ in range(jobs.MAX_ATTEMPTS):
        assert jobs.claim(job.pk) is not None
        Job.objects.update(lease_until=seconds_from_now(-1))

    jobs.wake_due()

    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    assert "died 3 times" in job.error


@pytest.mark.parametrize("error", [UserError("no", "No."), ValueError("boom")])
def test_what_is_asked_for_while_a_run_fails_is_done(done: list[int], error: Exception) -> None:
    job = jobs.request("probe", 7)

    def fails_while_somebody_asks(_running: jobs.Running) -> None:
        jobs.request("probe", 7)
        raise error

    Job.objects.update(attempts=jobs.MAX_ATTEMPTS - 1)
    handler("probe", fails_while_somebody_asks)
    jobs.run(job.pk)
    handler("probe", lambda running: done.append(running.target))
    Job.objects.update(due=seconds_from_now(-1))
    jobs.run(job.pk)

    assert done == [7]
    job.refresh_from_db()
    assert (job.state, job.requested, job.done, job.error) == (Job.State.DONE, 2, 2, "")


def test_what_is_asked_for_while_a_worker_dies_for_the_third_time_is_done(done: list[int]) -> None:
    job = jobs.request("probe", 7)
    for _ in range(jobs.MAX_ATTEMPTS):
        Job.objects.update(lease_until=seconds_from_now(-1))
        assert jobs.claim(job.pk) is not None
    jobs.request("probe", 7)
    Job.objects.update(lease_until=seconds_from_now(-1))

    jobs.wake_due()
    jobs.run(job.pk)

    assert done == [7]
    job.refresh_from_db()
    assert (job.state, job.requested, job.done) == (Job.State.DONE, 2, 2)


def test_a_job_that_failed_has_failed_at_all_that_was_asked_for(done: list[int]) -> None:
    job = jobs.request("probe", 7)
    jobs.request("probe", 7)
    for _ in range(jobs.MAX_ATTEMPTS):
        assert jobs.claim(job.pk) is not None
        Job.objects.update(lease_until=seconds_from_now(-1))

    jobs.wake_due()

    job.refresh_from_db()
    assert (job.state, job.requested, job.done) == (Job.State.FAILED, 2, 2)


def test_a_kind_is_told_once_of_the_job_that_failed_for_good(done: list[int]) -> None:
    told: list[tuple[int, str]] = []

    def refuse(_running: jobs.Running) -> None:
        raise UserError("no", "No.")

    jobs.handles("probe", give_up=lambda target, error: told.append((target, error)))(refuse)
    jobs.run(jobs.request("probe", 7).pk)
    assert told == [(7, "No.")]

    job = jobs.request("probe", 8)
    for _ in range(jobs.MAX_ATTEMPTS):
        jobs.claim(job.pk)
        Job.objects.update(lease_until=seconds_from_now(-1))
    jobs.wake_due()
    jobs.wake_due()
    assert told[1:] == [(8, "The worker died 3 times over this job.")]


def test_a_job_that_cannot_be_given_up_does_not_hold_up_the_others(done: list[int]) -> None:
    def broken(target: int, _error: str) -> None:
        if target == 1:
            raise ValueError("boom")

    jobs.handles("probe", give_up=broken)(lambda running: None)
    for target in (1, 2):
        job = jobs.request("probe", target)
        for _ in range(jobs.MAX_ATTEMPTS):
            jobs.claim(job.pk)
            Job.objects.update(lease_until=seconds_from_now(-1))

    jobs.wake_due()

    states = dict(Job.objects.values_list("target", "state"))
    assert states == {1: Job.State.RUNNING, 2: Job.State.FAILED}


def test_only_a_failed_job_is_tried_again_and_with_what_it_was_asked_for(done: list[int]) -> None:
    seen: list[object] = []

    def refuse(running: jobs.Running) -> None:
        seen.append(running.data)
        raise UserError("no", "No.")

    handler("probe", refuse)
    job = jobs.request("probe", 7, data={"grade": 2})
    with pytest.raises(UserError) as refused:
        jobs.retry(job)
    assert refused.value.code == "not_failed"
    jobs.run(job.pk)
    jobs.retry(job)
    jobs.run(job.pk)

    assert seen == [{"grade": 2}, {"grade": 2}]


def told(job: Job) -> tuple[object, ...]:
    job.refresh_from_db()
    return job.state, job.progress, job.note, job.started, job.finished


WAITS = (Job.State.QUEUED, 0, "", None, None)


@pytest.mark.parametrize("error", [None, UserError("no", "No.")])
def test_a_job_that_is_asked_for_again_tells_nothing_of_its_earlier_run(
    done: list[int], error: Exception | None
) -> None:
    meanwhile = iter([False, True])

    def work(running: jobs.Running) -> None:
        running.report(0.5, "half")
        if next(meanwhile):
            before = told(job)
            jobs.request("probe", 7)
            assert told(job) == before, "of what runs it is told how far it is"
        if error:
            raise error

    handler("probe", work)
    job = jobs.request("probe", 7)
    jobs.run(job.pk)
    assert told(job)[0] in (Job.State.DONE, Job.State.FAILED)
    assert job.started
    assert job.finished
    jobs.request("probe", 7)
    assert told(job) == WAITS
    jobs.run(job.pk)
    assert told(job) == WAITS, "asked for while it ran"


def test_a_failed_job_that_is_tried_again_tells_nothing_of_its_failure(done: list[int]) -> None:
    def refuse(running: jobs.Running) -> None:
        raise UserError("no", "No.")

    handler("probe", refuse)
    job = jobs.request("probe", 7)
    jobs.run(job.pk)
    assert told(job)[0] == Job.State.FAILED
    jobs.retry(job)
    assert told(job) == WAITS


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_lease_is_prolonged_while_the_work_goes_on(done: list[int], settings: object) -> None:
    settings.JOB_LEASE_SECONDS = 1  # type: ignore[attr-defined]
    job = jobs.request("probe", 7)
    rivals: list[object] = []

    def long(running: jobs.Running) -> None:
        for _ in range(6):
            time.sleep(0.4)
            rivals.append(jobs.claim(running.id))

    handler("probe", long)
    jobs.run(job.pk)

    assert rivals == [None] * 6
    job.refresh_from_db()
    assert job.state == Job.State.DONE


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_does_not_answer_never_breaks_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[object] = []

    def refuse(*args: object, **_kwargs: object) -> None:
        calls.append(args)
        raise ConnectionError("no broker")

    monkeypatch.setattr(jobs.current_app, "send_task", refuse)
    monkeypatch.setattr(jobs, "_broker_pause_until", 0.0)

    first = jobs.request("probe", 1)
    second = jobs.request("probe", 2)

    assert len(calls) == 1
    assert {first.state, second.state} == {Job.State.QUEUED}
    assert Job.objects.filter(hinted__isnull=True).count() == 2


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_worker_is_woken_once_for_what_is_asked_for_often(
    monkeypatch: pytest.MonkeyPatch, done: list[int]
) -> None:
    """A queue of one message each would keep other work waiting behind hundreds of them."""
    woken: list[object] = []
    monkeypatch.setattr(
        jobs.current_app, "send_task", lambda *_args, **options: woken.append(options)
    )

    job = jobs.request("probe", 7)
    for _ in range(5):
        jobs.request("probe", 7)
    assert len(woken) == 1

    def ask_meanwhile(running: jobs.Running) -> None:
        if not done:
            jobs.request("probe", 7)
            assert len(woken) == 1, "nobody can take what runs"
        done.append(running.target)

    handler("probe", ask_meanwhile)
    jobs.run(job.pk)
    assert len(woken) == 2, "what was asked for meanwhile is due"
    jobs.run(job.pk)
    assert done == [7, 7]

    jobs.request("probe", 7)
    assert len(woken) == 3


@pytest.mark.django_db(transaction=True)
def test_what_a_worker_died_over_wakes_another_at_once_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    woken: list[object] = []
    monkeypatch.setattr(
        jobs.current_app, "send_task", lambda *_args, **options: woken.append(options)
    )

    job = jobs.request("probe", 7)
    assert jobs.claim(job.pk)
    assert jobs.wake_due() == 0, "somebody is at it"
    Job.objects.update(lease_until=seconds_from_now(-0.001))
    assert jobs.wake_due() == 1, "who took the job has used up its hint"
    assert jobs.wake_due() == 0, "the new hint is underway"
    assert len(woken) == 2


@pytest.mark.django_db(transaction=True)
def test_what_waits_for_later_wakes_a_worker_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    woken: list[object] = []
    monkeypatch.setattr(
        jobs.current_app, "send_task", lambda *_args, **options: woken.append(options)
    )

    def wait(_running: jobs.Running) -> None:
        raise jobs.NotYet(1000.0, "waits")

    handler("probe", wait)
    jobs.run(jobs.request("probe", 7).pk)
    jobs.request("probe", 7)
    assert len(woken) == 2


@pytest.mark.sqlite_only
def test_a_job_compiles_no_statement_anew(done: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """To build the same statements again took several times as long as they take."""
    jobs.run(jobs.request("probe", 7).pk)
    built: list[str] = []
    as_sql = SQLCompiler.as_sql

    def seen(self: SQLCompiler, *args: Any, **options: Any) -> Any:
        built.append(str(self.query.model))
        return as_sql(self, *args, **options)

    monkeypatch.setattr(SQLCompiler, "as_sql", seen)
    jobs.run(jobs.request("probe", 7).pk)
    assert (done, built) == ([7, 7], [])
