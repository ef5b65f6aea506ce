"""Files too large to be written for a test."""

from collections.abc import Callable


class Generated:
    """A file made as it is read, of `count` blocks."""

    def __init__(self, count: int, line: Callable[[int], str]) -> None:
        self.count, self.line, self.number = count, line, 0

    def read(self, size: int, /) -> bytes:
        if self.number >= self.count:
            return b""
        self.number += 1
        first = self.number * 10_000
        return "".join(self.line(first + n) for n in range(10_000)).encode()
