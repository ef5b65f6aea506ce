"""What processes of the product do with memory."""

import gc
import re

from celery.signals import worker_process_init
from django.contrib.auth.hashers import Argon2PasswordHasher

from evalsite.hashers import PasswordHasher


def test_eight_sign_ins_at_once_fit_into_a_small_server() -> None:
    encoded = PasswordHasher().encode("correct-horse-7", PasswordHasher().salt())
    parameters = dict(re.findall(r"([mtp])=(\d+)", encoded))
    assert 8 * int(parameters["m"]) < 200 * 1024  # KiB
    assert (int(parameters["t"]), int(parameters["p"])) == (2, 1)
    assert PasswordHasher().verify("correct-horse-7", encoded)
    assert not PasswordHasher().must_update(encoded)


def test_a_password_of_before_is_stored_anew_when_it_is_used() -> None:
    before = Argon2PasswordHasher().encode("correct-horse-7", PasswordHasher().salt())
    assert PasswordHasher().verify("correct-horse-7", before)
    assert PasswordHasher().must_update(before)


def test_a_worker_no_longer_looks_through_what_it_started_with() -> None:
    import evalsite.celery  # noqa: F401

    try:
        worker_process_init.send(sender=None)
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()
