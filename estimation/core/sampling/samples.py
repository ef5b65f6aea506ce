"""What was drawn: the pairs of a sample, and those that assessors are given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..archives import ArchiveFile, read_archive, write_archive
from ..arrays import FloatArray, Int32Array, IntArray, frozen
from ..tables import Columns, Tabled

if TYPE_CHECKING:
    from ..data.pool import Pool

FORMAT = "evalsite-sample-1"


@dataclass(frozen=True, eq=False)
class Sample:
    """The distinct pairs drawn under a design, each with the batch in which it first enters.

    Attributes
    ----------
    pair : ndarray of int64, shape (n,)
        Sampled pairs as positions in the pool, ascending.
    batch : ndarray of int32, shape (n,)
        1-based batch in which the pair enters. A batch may be empty under ``poisson``.
    probability : ndarray of float64, shape (n,)
        Probability of the pair to be in the sample of all batches.
    draws : ndarray of int64, shape (number of draws,)
        With replacement: the drawn pairs in the order of drawing, with repetitions; batch b ends
        after the first ``design.draws(b)`` of them. Otherwise empty.
    pool_digest : str
        Digest of the pool.
    constants : ndarray of float64, shape (B,)
        ``priority``: the constant c_b of each batch, such that pairs are in the sample with
        probability min(1, c_b * size). Otherwise empty.
    """

    pair: IntArray
    batch: Int32Array
    probability: FloatArray
    draws: IntArray
    pool_digest: str
    constants: FloatArray = field(default_factory=lambda: frozen(np.array([])))

    def __len__(self) -> int:
        """Return the number of distinct pairs."""
        return len(self.pair)

    def prefix(self, batches: int) -> IntArray:
        """Return the pairs of the first `batches` batches, ascending."""
        return self.pair[self.batch <= batches]

    def save(self, file: ArchiveFile) -> None:
        """Write the sample to a path or a binary file."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        if len(self.constants):
            columns["constants"] = self.constants
        write_archive(file, FORMAT, {"pool_digest": self.pool_digest}, columns)

    @classmethod
    def load(cls, file: ArchiveFile) -> Sample:
        """Read what `save` wrote; raise ValueError if it is damaged or something else."""
        facts, columns = read_archive(file, FORMAT, _COLUMNS, optional=["constants"])
        arrays = {name: frozen(column) for name, column in columns.items()}
        return cls(pool_digest=facts["pool_digest"], **arrays)


_COLUMNS = ("pair", "batch", "probability", "draws")


@dataclass(frozen=True, eq=False, repr=False)
class Served(Tabled):
    """The pairs that a round of any kind has for assessors.

    Attributes
    ----------
    pair : ndarray of int64, shape (n,)
        Positions in the pool, ascending.
    batch : ndarray of int32, shape (n,)
        1-based batch of each.
    probability : ndarray of float64, shape (n,)
        Probability, in (0, 1], to be in the sample of all batches.
    draws : ndarray of int64, shape (n,)
        How often each was drawn; 1 without replacement.
    pool : Pool
        The pool of the pairs.
    """

    pair: IntArray
    batch: Int32Array
    probability: FloatArray
    draws: IntArray
    pool: Pool

    @property
    def caption(self) -> str:
        """How much there is to judge."""
        batches = int(self.batch.max(initial=0))
        return f"{len(self.pair)} to judge, in {batches} {'batch' if batches == 1 else 'batches'}"

    def columns(self) -> Columns:
        """Return topic, docno, batch and probability, batch by batch; of preferences two docnos."""
        order = np.lexsort((self.pair, self.batch))
        pair, other = self.pair[order], self.pool.other
        return {
            "topic": [self.pool.topics[at] for at in self.pool.topic[pair].tolist()],
            "docno": [name.decode() for name in self.pool.docno[pair].tolist()],
            **({} if other is None else {"other": [n.decode() for n in other[pair].tolist()]}),
            "batch": self.batch[order].tolist(),
            "probability": self.probability[order].tolist(),
        }
