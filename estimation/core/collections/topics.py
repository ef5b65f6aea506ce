"""Judged collections of whole topics that were drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, frozen
from ..data.labels import LabelRows
from ..data.pool import Pool
from ..measures.table import Measure
from ..rounds.rounds import TopicRound
from ..rounds.topics.designs import (
    QueryDesign,
    QuerySample,
    labeled_pairs,
)
from .ranked import (
    RankedCollection,
    check_round,
    pooled,
    without_scores,
)

LEAST_DRAWS = 2  # fewer show no variance
_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class TopicCollection(RankedCollection):
    """Topics that were drawn, and the judgments of their documents.

    Build one with `TopicCollection.of`.

    Attributes
    ----------
    design : QueryDesign
        Of the pool, with the steps of the complete batches alone. What its probabilities were
        made from tells where the collection comes from and has no influence.
    sample : QuerySample
        The topics of these batches. The order of draws within a batch is not kept: draws ascend
        by (batch, topic).
    """

    design: QueryDesign
    sample: QuerySample

    @classmethod
    def of(
        cls,
        pool: Pool,
        design: QueryDesign,
        sample: QuerySample,
        *,
        labels: LabelRows,
        batches: int,
        max_grade: int,
        version: str,
        seed: str | None = None,
        measures: Sequence[Measure] = (),
    ) -> "TopicCollection":
        """Collect the first batches of a round of topics.

        Parameters
        ----------
        pool, design, sample : Pool, QueryDesign, QuerySample
            As they were when the sample was drawn.
        labels : LabelRows
            Judgments of the documents of these batches, as positions in the pool; those of others
            are left out.
        batches : int
            Number of batches, counted from the first, of which every document is judged.
        max_grade, version
            As the attributes.
        seed : str, optional
            The seed of the draw. It is kept if these are all batches: later ones follow from it.
        measures : sequence of Measure, optional
            What the round was made for; by default the measure of the goal.

        Raises
        ------
        CollectionError
            If pool, design and sample do not belong together, or a document of these batches is
            not judged.
        ValueError
            If `batches` is not between 1 and the number of the design's batches.
        """
        check_round(pool, TopicRound(design, sample))
        design.step(batches)
        pool = without_scores(pool)
        first = TopicRound(
            replace(design, steps=frozen(design.steps[:batches]), pool_digest=pool.digest),
            replace(_first_batches(sample, batches), pool_digest=pool.digest),
        )
        return cls(
            **pooled(pool, labels, sampled=first.served(pool).pair),
            max_grade=max_grade,
            version=version,
            made_for=tuple(measures) or (design.measure,),
            seed=seed if batches == design.batches else None,
            design=first.design,
            sample=first.sample,
        )

    @property
    def drawn(self) -> TopicRound:
        """The round of these batches."""
        return TopicRound(self.design, self.sample)

    @property
    def sampled(self) -> IntArray:
        """The documents that are judged, as positions among the N, ascending."""
        return self.drawn.served(self.pool).pair

    @property
    def within_reach(self) -> BoolArray:
        """Whether each pair is judged where its topic is drawn, shape (N,)."""
        return labeled_pairs(self.pool, runs=self.design.runs, depth=self.design.depth)


def _first_batches(sample: QuerySample, batches: int) -> QuerySample:
    """The sample of these batches, draws sorted within each."""
    taken, drawn = sample.batch <= batches, sample.draw_batch <= batches
    draws, draw_batch = sample.draws[drawn], sample.draw_batch[drawn]
    order = np.lexsort((draws, draw_batch))
    return replace(
        sample,
        topic=frozen(sample.topic[taken]),
        batch=frozen(sample.batch[taken]),
        draws=frozen(draws[order]),
        draw_batch=frozen(draw_batch[order]),
    )


def spent_by_batch(design: QueryDesign, sample: QuerySample) -> FloatArray:
    """Return what the topics of the batches 1..b cost together, shape (B,)."""
    cost = np.bincount(
        sample.batch - 1, weights=design.cost[sample.topic], minlength=design.batches
    )
    return np.cumsum(cost)
