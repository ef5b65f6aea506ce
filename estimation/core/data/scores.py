"""Scores that predict grades: how large they may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..arrays import FloatArray

MOST_SCORE = 1e20
"""Errors are squared, their variance squares them again, and how sure that is a third time, each
over probabilities: 1e20 to the eighth power is finite, with room for the least probabilities."""
EXPECTED = (
    f"measures of predictions (MAE, MSE, Accuracy) take scores from -{MOST_SCORE:g} to "
    f"{MOST_SCORE:g}, on the scale of the grades"
)


def first_unusable(scores: FloatArray) -> int | None:
    """Return the position of the first score that measures of predictions cannot take, if any."""
    usable = np.abs(scores) <= MOST_SCORE
    return None if usable.all() else int(np.argmin(usable))


def refusal(run: str, *, topic: str, docno: str, score: float) -> str:
    """Return the sentence for a score that cannot be taken."""
    return f"run {run!r} gives {docno!r} of topic {topic!r} the score {score:g}; {EXPECTED}"
