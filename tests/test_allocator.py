"""Memory that a worker lets go serves for what it takes next, and is not asked for again."""

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


def pages_asked_for(by: str) -> int:
    command = [sys.executable, "-c", AGAIN_AND_AGAIN, by]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return int(done.stdout)


@pytest.mark.slow
def test_a_worker_asks_for_the_same_memory_once() -> None:
    pages = 10 * 24_000_000 // 4096
    assert pages_asked_for("keep_small") < pages // 20
    assert pages_asked_for("give_large_back") > pages // 2  # the twin keeps nothing
