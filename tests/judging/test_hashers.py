"""Passwords that are looked at at once take no more memory than was set aside for them."""

import subprocess
import sys
import threading
import time

import pytest
from argon2 import PasswordHasher as Argon2

from evalsite import hashers
from evalsite.hashers import HashingRoom, PasswordHasher
from tests.support.races import at_once

KIB = 1024


def crowd(hasher: PasswordHasher, encoded: str, people: int = 8) -> list[object]:
    return at_once([lambda: hasher.verify("a long password", encoded)] * people)


@pytest.mark.slow
@pytest.mark.django_db
def test_eight_who_sign_in_at_once_share_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    room = HashingRoom(hashers.ROOM_KIB)
    monkeypatch.setattr(hashers, "room", room)
    hasher = PasswordHasher()
    encoded = hasher.encode("a long password", "salt" * 4)

    assert crowd(hasher, encoded) == [True] * 8
    assert not hasher.verify("another password", encoded)
    assert room.most == 3 * hasher.memory_cost < room.size


@pytest.mark.django_db
def test_one_of_other_parameters_is_looked_at_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    room = HashingRoom(KIB)
    monkeypatch.setattr(hashers, "room", room)
    stored = Argon2(time_cost=1, memory_cost=4 * KIB, parallelism=1).hash("a long password")

    assert crowd(PasswordHasher(), f"argon2{stored}") == [True] * 8
    assert room.most == room.size
    assert PasswordHasher().must_update(f"argon2{stored}")


def test_the_parameters_are_not_below_what_is_recommended() -> None:
    """OWASP: Argon2id with at least 19 MiB, two passes and one lane."""
    hasher = PasswordHasher()
    assert (hasher.memory_cost, hasher.time_cost, hasher.parallelism) >= (19 * KIB, 2, 1)
    assert "$argon2id$" in hasher.encode("a long password", "salt" * 4)


def most_inside(room: HashingRoom, needs: list[int]) -> tuple[int, list[int]]:
    """The most that was taken at once, and the order in which they had it."""
    inside, most, order, guard = 0, 0, [], threading.Lock()

    def work(number: int) -> None:
        nonlocal inside, most
        with room.taken(needs[number]):
            with guard:
                order.append(number)
                inside += needs[number]
                most = max(most, inside)
            time.sleep(0.02)
            with guard:
                inside -= needs[number]

    with room.taken(room.size):
        threads = []
        for number in range(len(needs)):
            threads.append(threading.Thread(target=work, args=(number,)))
            threads[-1].start()
            while len(room._waiting) <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    return most, order


def test_whoever_comes_first_has_it_first_also_one_who_needs_much() -> None:
    most, order = most_inside(HashingRoom(10), [3, 3, 10, 3, 3, 3, 3])

    assert most == 10
    assert set(order[:2]) == {0, 1}
    assert order[2] == 2


def test_what_goes_wrong_inside_gives_the_room_back() -> None:
    room = HashingRoom(10)
    with pytest.raises(RuntimeError), room.taken(7):
        raise RuntimeError
    with room.taken(10):
        assert room.most == 10


EIGHT_AT_ONCE = r"""
import re, sys, threading
from pathlib import Path
from argon2 import PasswordHasher as Argon2
from django.conf import settings
settings.configure()
from evalsite.hashers import PasswordHasher, HashingRoom
from evalsite import hashers
if sys.argv[1] == "without":
    hashers.room = HashingRoom(2**40)
# not ru_maxrss, which begins with what the process had that started this one
most = lambda: int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024
stored = [PasswordHasher().encode("words", "salt" * 4), "argon2" + Argon2().hash("words")]
before = most()
for encoded in [stored[0], *stored, stored[0]]:
    every = [
        threading.Thread(target=PasswordHasher().verify, args=("words", encoded)) for _ in range(8)
    ]
    [each.start() for each in every]
    [each.join() for each in every]
print(most() - before)
"""


def grown_mebibytes(room: str) -> float:
    command = [sys.executable, "-c", EIGHT_AT_ONCE, room]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return float(done.stdout)


@pytest.mark.slow
def test_eight_at_once_of_either_kind_take_little_memory_and_keep_none() -> None:
    """Passwords of today, 19 MiB each, and those that Argon2's own defaults stored, 64 MiB."""
    assert grown_mebibytes("with") < 100


@pytest.mark.slow
def test_without_room_the_memory_is_seen() -> None:
    assert grown_mebibytes("without") > 150
