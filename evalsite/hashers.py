"""How passwords are stored, and how many are worked out at once."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.hashers import Argon2PasswordHasher

from evalsite import allocator

ROOM_KIB = 60 * 1024

allocator.give_large_back()


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
