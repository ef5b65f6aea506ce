"""Parts of errors whose squares sum to the covariance of an adaptive round; see `estimates`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from ...arrays import FloatArray, IntArray, SparseMatrix
    from ...data.scope import Scope
    from .batch_weights import BatchWeights, JudgedWeights


def moved_alone(judged: JudgedWeights, moved: FloatArray) -> FloatArray:
    """Return what each pair adds by itself: moved times what is left of the chance of its topic."""
    left = np.maximum(judged.opened - judged.chance, 0.0)
    return np.asarray(moved * np.sqrt(left * judged.inside))


def parts_of_error(
    scope: Scope, weights: BatchWeights, pairs: IntArray, of_runs: SparseMatrix, moved: FloatArray
) -> tuple[SparseMatrix, IntArray]:
    """Return parts of the error of every run whose squares sum to what is told of its covariance,
    (parts, k).

    A part for each pair, and one for each topic that took part in a batch by chance; and the topic
    of each, (parts,).
    """
    judged = weights.of_judged(pairs)
    topic = scope.pool.topic[scope.places(pairs)].astype(np.int64)
    alone = of_runs.copy()
    alone.data *= np.repeat(moved_alone(judged, moved), np.diff(alone.indptr))
    named = weights.batch[pairs] * len(scope.pool.topics) + topic
    _, first, group = np.unique(named, return_index=True, return_inverse=True)
    adding = moved * np.sqrt(judged.in_topics)
    shape = len(first), len(pairs)
    sums = sparse.csr_array((adding, (group, np.arange(len(pairs)))), shape=shape) @ of_runs
    parts = sparse.csr_array(sparse.vstack([alone, sums]))
    parts.eliminate_zeros()
    return parts, np.append(topic, topic[first])
