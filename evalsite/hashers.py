"""How passwords are stored, and how many are worked out at once."""

import ctypes
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.contrib.auth.hashers import Argon2PasswordHasher

ROOM_KIB = 60 * 1024
M_MMAP_THRESHOLD, MMAP_FROM_BYTES = -3, 16 * 2**20


def give_memory_back() -> None:
    """What a hash took goes back to the system after it, and is not kept for its thread.

    glibc raises the size from which memory is taken apart, with the first hash, to that of a hash:
    afterwards each of eight threads keeps 19 MiB. Where there is no glibc, nothing is done.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, MMAP_FROM_BYTES)


give_memory_back()


class HashingRoom:
    """Memory for hashes, given to those who wait in the order in which they came.

    One that needs more than there is has all of it, alone.
    """

    def __init__(self, kibibytes: int) -> None:
        self.size = self._free = kibibytes
        self.most = 0
        """The most that was ever taken at once."""
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, kibibytes: int) -> Iterator[None]:
        needed, me = min(kibibytes, self.size), object()
        with self._changed:
            self._waiting.append(me)
            self._changed.wait_for(lambda: self._waiting[0] is me and self._free >= needed)
            self._waiting.popleft()
            self._free -= needed
            self.most = max(self.most, self.size - self._free)
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += needed
                self._changed.notify_all()


room = HashingRoom(ROOM_KIB)


class PasswordHasher(Argon2PasswordHasher):
    """Argon2id with 19 MiB and two passes, the least that OWASP recommends; three at once.

    Django's default takes 100 MiB for each sign-in: eight at once fill a small server. Passwords
    that were stored with other parameters are stored anew when they are used; until then each is
    looked at alone. Whoever signs in meanwhile waits some hundredths of a second.
    """

    memory_cost = 19 * 1024
    time_cost = 2
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        with room.taken(self.memory_cost):
            return str(super().encode(password, salt))

    def verify(self, password: str, encoded: str) -> bool:
        with room.taken(self.decode(encoded)["memory_cost"]):
            return bool(super().verify(password, encoded))
