"""What glibc does with memory that is not used any more. Elsewhere nothing is done."""

import ctypes
import gc
from contextlib import suppress

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
APART_FROM_BYTES = 16 * 2**20
KEPT_BYTES = 32 * 2**20


def give_large_back() -> None:
    """What is larger goes back to the system when it is let go, and is not kept for its thread.

    By itself glibc raises the size from which memory is taken apart to that of the largest that
    was let go: after eight sign-ins at once each of their threads would keep the 19 MiB of a hash.
    """
    _set(M_MMAP_THRESHOLD, APART_FROM_BYTES)


def keep_small() -> None:
    """The process keeps some of what it lets go for what it takes next.

    A recompute makes hundreds of arrays of a megabyte. Where each goes back, the system has to find
    and clear its pages for the next one again: a tenth of the time of the recompute.
    """
    give_large_back()  # with either given, glibc raises none of the two any more
    _set(M_TRIM_THRESHOLD, KEPT_BYTES)


def share() -> None:
    """All threads take memory from one arena; ask for it before there are any.

    By itself glibc gives each of them another one, of which every answer leaves something unused.
    Threads of Python take turns anyhow.
    """
    _set(M_ARENA_MAX, 1)


def give_back() -> None:
    """All that the process does not use goes back to the system now.

    What lies free between what is used stays with the process, whatever was set: of a web server
    that has shown many pages a tenth. It takes a tenth of a second, so ask for it at rest.
    """
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _set(name: int, number: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(name, number)
