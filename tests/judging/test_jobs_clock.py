"""Leases of jobs, and clocks of the database that were ahead and are set back."""

from typing import Any

import pytest
from django.conf import settings as configured

from judging.clock import seconds_from_now
from judging.models import Job
from judging.services import jobs
from tests.judging.test_jobs import done

pytestmark = pytest.mark.django_db(transaction=True)


__all__ = ["done"]  # the fixture


def test_a_clock_that_was_ahead_and_is_set_back_keeps_no_work_waiting(
    monkeypatch: pytest.MonkeyPatch, done: list[int]
) -> None:
    """Hints and leases of the day that the clock was ahead are no reason to wait for a day."""
    woken: list[object] = []
    monkeypatch.setattr(
        jobs.current_app, "send_task", lambda *_args, **options: woken.append(options)
    )
    day = seconds_from_now(86_400)
    job = jobs.request("probe", 7)
    jobs.run(job.pk)
    Job.objects.update(hinted=day)
    jobs.request("probe", 7)
    assert len(woken) == 2
    jobs.run(job.pk)
    assert done == [7, 7]

    jobs.request("probe", 7)
    assert jobs.claim(job.pk)
    Job.objects.update(lease_until=seconds_from_now(3 * configured.JOB_LEASE_SECONDS))
    assert jobs.wake_due() == 0, "as a worker with another setting has it"
    Job.objects.update(lease_until=day, hinted=day)  # and then the machine lost its power
    assert jobs.wake_due() == 1
    jobs.run(job.pk)
    assert done == [7, 7, 7]


@pytest.mark.slow
def test_what_was_asked_for_under_a_clock_that_was_ahead_is_due_when_it_is_set_back(
    monkeypatch: pytest.MonkeyPatch, done: list[int]
) -> None:
    monkeypatch.setattr(jobs.current_app, "send_task", lambda *_args, **_options: None)

    def ask_meanwhile(running: jobs.Running) -> None:
        if not done:
            jobs.request("probe", 7)
            Job.objects.update(due=seconds_from_now(1500))
        done.append(running.target)

    jobs.handles("probe")(ask_meanwhile)
    job = jobs.request("probe", 7)
    jobs.run(job.pk)
    jobs.run(job.pk)
    assert done == [7, 7], "it was asked for while it ran"

    jobs.request("probe", 7)
    Job.objects.update(due=seconds_from_now(3000), hinted=None)
    assert jobs.wake_due() == 0, "so long a job may wait"
    Job.objects.update(due=seconds_from_now(86_400))
    assert jobs.wake_due() == 1
    jobs.run(job.pk)
    assert done == [7, 7, 7]


def test_a_lease_is_as_long_as_the_settings_have_it_now(done: list[int], settings: Any) -> None:
    leases = []
    for seconds in (40, 4000):
        settings.JOB_LEASE_SECONDS = seconds
        running = jobs.claim(jobs.request("probe", seconds).pk)
        assert running is not None
        running.prolong()
        within = Job.objects.filter(
            lease_until__gt=seconds_from_now(seconds - 30),
            lease_until__lte=seconds_from_now(seconds),
        )
        leases.append(within.filter(pk=running.id).exists())
    assert leases == [True, True]
