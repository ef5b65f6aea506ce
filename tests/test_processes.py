"""What processes of the product do with memory, and what becomes of those that die."""

import errno
import gc
import os
import re
import sys
from pathlib import Path

import pytest
from celery.signals import task_prerun
from django.contrib.auth.hashers import Argon2PasswordHasher

from evalsite.hashers import PasswordHasher
from evalsite.management.processes import Child
from evalsite.management.supervisor import (
    LONGEST_PAUSE_SECONDS,
    MAX_QUICK_DEATHS,
    GaveUp,
    Supervisor,
)


def test_eight_sign_ins_at_once_fit_into_a_small_server() -> None:
    encoded = PasswordHasher().encode("correct-horse-7", PasswordHasher().salt())
    parameters = dict(re.findall(r"([mtp])=(\d+)", encoded))
    assert 8 * int(parameters["m"]) < 200 * 1024  # KiB
    assert (int(parameters["t"]), int(parameters["p"])) == (2, 1)
    assert PasswordHasher().verify("correct-horse-7", encoded)
    assert not PasswordHasher().must_update(encoded)


@pytest.mark.slow
def test_a_password_of_before_is_stored_anew_when_it_is_used() -> None:
    before = Argon2PasswordHasher().encode("correct-horse-7", PasswordHasher().salt())
    assert PasswordHasher().verify("correct-horse-7", before)
    assert PasswordHasher().must_update(before)


@pytest.mark.slow
def test_a_worker_no_longer_looks_through_what_it_started_with() -> None:
    from evalsite import celery

    try:
        celery._load.cache_clear()
        task_prerun.send(sender=None)
        assert gc.get_freeze_count() > 10_000
        gc.unfreeze()
        task_prerun.send(sender=None)
        assert gc.get_freeze_count() == 0, "with its first job, and not with each"
    finally:
        gc.unfreeze()


@pytest.fixture
def dying(tmp_path: Path) -> Child:
    command = [sys.executable, "-c", ""]
    return Child("worker", command, tmp_path / "log", dict(os.environ), tmp_path)


def deaths(supervisor: Supervisor, child: Child, times: int) -> list[float]:
    """The pauses after so many ends of a child right after its start."""
    pauses = []
    for _ in range(times):
        child.start()
        assert child.process is not None
        child.process.wait()
        pauses.append(supervisor._pause_after_death(child, child.started))
    return pauses


@pytest.mark.slow
def test_a_child_that_never_works_is_given_up(dying: Child) -> None:
    supervisor = Supervisor([dying], [].append)
    with pytest.raises(GaveUp, match="ended 5 times in a row"):
        deaths(supervisor, dying, MAX_QUICK_DEATHS)


@pytest.mark.slow
def test_a_site_that_has_worked_is_never_given_up(dying: Child) -> None:
    """A disk that is full for a minute ends workers again and again."""
    supervisor = Supervisor([dying], [].append, announced=True)

    pauses = deaths(supervisor, dying, 4 * MAX_QUICK_DEATHS)

    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE_SECONDS


def test_a_supervisor_that_nobody_hears_goes_on(dying: Child) -> None:
    def full(_line: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert deaths(Supervisor([dying], full), dying, 1) == [0.25]
