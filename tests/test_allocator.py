"""Memory that a worker lets go serves for what it takes next, and is not asked for again; what is
not used at rest goes back, and threads share what they take it from."""

import subprocess
import sys

import pytest

# Forty arrays of 600 kB at once, as a recompute has them, again and again: 24 MB. The largest that
# was let go before decides what glibc does by itself.
AGAIN_AND_AGAIN = """
import resource, sys
import numpy as np
from evalsite import allocator
getattr(allocator, sys.argv[1])()
def work():
    held = [np.ones(75_000) for _ in range(40)]
    return sum(len(each) for each in held)
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

# What is kept stands at the end of what is let go, so that nothing goes back by itself.
LET_GO = """
import sys
from evalsite import allocator
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
taken = [bytes(2_000) for _ in range(30_000)]
kept = taken[-1]
del taken
before = resident()
getattr(allocator, sys.argv[1], lambda: None)()
print(before - resident())
"""
OF_THREADS = """
import sys, threading
from evalsite import allocator
getattr(allocator, sys.argv[1], lambda: None)()
def reserved():
    return int(open("/proc/self/statm").read().split()[0]) * 4096
together, before = threading.Barrier(9), reserved()
def take():
    held = [bytes(2_000) for _ in range(100)]
    together.wait()
    together.wait()
threads = [threading.Thread(target=take) for _ in range(8)]
for each in threads:
    each.start()
together.wait()
print(reserved() - before)
together.wait()
"""


def bytes_told(program: str, by: str) -> int:
    command = [sys.executable, "-c", program, by]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return int(done.stdout)


def test_what_is_not_used_goes_back_at_rest() -> None:
    assert bytes_told(LET_GO, "give_back") > 50e6
    assert bytes_told(LET_GO, "nothing") < 5e6  # the twin waits for the end of the process


def test_threads_share_what_they_take_memory_from() -> None:
    of_an_arena = 64 * 2**20  # addresses that glibc sets aside for each
    stacks = 8 * 9 * 2**20
    assert bytes_told(OF_THREADS, "share") < stacks + of_an_arena
    assert bytes_told(OF_THREADS, "nothing") > stacks + 3 * of_an_arena


def pages_asked_for(by: str) -> int:
    command = [sys.executable, "-c", AGAIN_AND_AGAIN, by]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return int(done.stdout)


@pytest.mark.slow
def test_a_worker_asks_for_the_same_memory_once() -> None:
    pages = 10 * 24_000_000 // 4096
    assert pages_asked_for("keep_small") < pages // 20
    assert pages_asked_for("give_large_back") > pages // 2  # the twin keeps nothing
