"""The two lengths of a test: bounded in the usual suite, in full with EVALSITE_DRILLS=long."""

import os
from typing import TypeVar

T = TypeVar("T")

LONG = os.environ.get("EVALSITE_DRILLS") == "long"


def bounded(usual: T, at_length: T) -> T:
    """What the usual suite takes, or what the drills take: trials, cases, seconds."""
    return at_length if LONG else usual
