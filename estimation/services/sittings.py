"""The reading of topics as a part of the work: paid once for each batch, topic and reader.

Within a batch the pairs of a topic come in a row, and assessors go on with topics that they know
(`judging.services.assignments`). How long it takes is said for planning; no number of a ranking
depends on it.
"""

import math

import numpy as np

from estimation.core.arrays import FloatArray
from estimation.core.data.pool import Pool
from estimation.core.planning.sittings import expected_sittings
from estimation.models import Round
from estimation.plans import plan_of, with_budget
from estimation.services.reaching import SECONDS, hours_each


def sittings_of(row: Round, pool: Pool, chance: FloatArray, *, batches: int) -> float:
    """How often somebody is expected to read a topic, by the chance of each pair to be judged.

    A pair that gets one label more has one reader more. Further labels where they pay are taken to
    go to as many pairs as they can.
    """
    asked = {"batches": batches, "minimum": float(row.topic_minimum)}
    readers = row.labels * expected_sittings(pool, chance, **asked)  # type: ignore[arg-type]
    more = row.extra_share + row.further
    while more > 0.0:
        readers += expected_sittings(pool, chance, **asked, share=min(more, 1.0))  # type: ignore[arg-type]
        more -= 1.0
    return readers


def whole_topics(row: Round, inclusion: FloatArray) -> float:
    """The same of topics whose documents are judged at a time."""
    return float(inclusion.sum() * (row.labels + bool(row.extra_share)))


def hours_of(row: Round, sittings: float) -> float:
    return sittings * row.topic_seconds / SECONDS


def as_judged(row: Round, pool: Pool, chance: FloatArray, budget: float) -> float:
    """What reading topics counts for, in pairs that could be judged in the same time.

    A budget for more than there is keeps its batches, of which fewer are drawn.
    """
    if not row.topic_seconds:
        return 0.0
    is_all = bool(np.all(chance[chance > 0.0] >= 1.0))
    asked = max(budget, row.budget) if is_all else budget
    size = with_budget(plan_of(row), max(1, round(asked))).batch_size or 1
    batches = max(1, math.ceil(budget / size))
    sittings = sittings_of(row, pool, np.minimum(chance, 1.0), batches=batches)
    return hours_of(row, sittings) / hours_each(row)
