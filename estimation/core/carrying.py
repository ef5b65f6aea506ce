"""What is known of the pairs of a pool, said of a larger pool that has them among others."""

from dataclasses import replace

import numpy as np

from estimation.core.arrays import BytesArray, Int32Array, IntArray, frozen
from estimation.core.combining import Part
from estimation.core.designs import Design
from estimation.core.draws import Sample
from estimation.core.labels import LabelRows
from estimation.core.pool import Pool


def carry_over(
    design: Design, sample: Sample, labels: LabelRows, *, pool: Pool, place: IntArray
) -> tuple[Design, Sample, LabelRows]:
    """Say of a larger pool what is known of a sample of a smaller one.

    Parameters
    ----------
    design, sample, labels : Design, Sample, LabelRows
        Of the smaller pool, of N pairs.
    pool : Pool
        The larger one. Its other pairs were never eligible: they get size 0.
    place : ndarray of int64, shape (N,)
        Where the N pairs stand in it, ascending; see `find_pairs`.
    """
    size = np.zeros(len(pool))
    size[place] = design.size
    belief = design.belief
    if belief is not None:
        belief = np.zeros(len(pool))
        belief[place] = design.belief
    return (
        replace(design, size=frozen(size), belief=belief, pool_digest=pool.digest),
        replace(
            sample,
            pair=place[sample.pair],
            draws=place[sample.draws],
            pool_digest=pool.digest,
        ),
        LabelRows(place[labels.pair], labels.grade),
    )


def carry_part(part: Part, *, pool: Pool, place: IntArray) -> Part:
    """Say of a larger pool what is known of a round over a smaller one; see `carry_over`."""
    nothing = LabelRows(*np.zeros((2, 0), dtype=np.int64))
    design, sample, _ = carry_over(part.design, part.sample, nothing, pool=pool, place=place)
    return replace(part, design=design, sample=sample)


def find_pairs(
    topic: Int32Array | IntArray,
    docno: BytesArray,
    *,
    among_topic: Int32Array | IntArray,
    among_docno: BytesArray,
) -> IntArray:
    """Return where pairs stand among others.

    Parameters
    ----------
    topic, docno : ndarray, shape (n,)
        The wanted pairs, in any order.
    among_topic, among_docno : ndarray, shape (N,)
        Pairs sorted by (topic, docno), topics counted as in `topic`.

    Returns
    -------
    ndarray of int64, shape (n,)
        Positions among the N; -1 for a pair that is not there.
    """
    found = np.full(len(docno), -1, dtype=np.int64)
    order = np.argsort(topic, kind="stable")
    names, starts = np.unique(topic[order], return_index=True)
    for name, start, stop in zip(names.tolist(), starts, [*starts[1:], len(order)], strict=False):
        rows = order[start:stop]
        first, last = np.searchsorted(among_topic, [name, name + 1])
        if first == last:
            continue
        inside = np.searchsorted(among_docno[first:last], docno[rows])
        inside = np.minimum(inside, last - first - 1) + first
        found[rows] = np.where(among_docno[inside] == docno[rows], inside, -1)
    return found
