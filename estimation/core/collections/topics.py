"""Judged collections of whole topics that were drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, frozen, index_array, refuse
from ..data.labels import LabelRows
from ..data.pool import Pool
from ..measures.table import Measure
from ..rounds.rounds import TopicRound
from ..rounds.topics.designs import (
    ESTIMATORS,
    ROUNDING,
    RULES,
    QueryDesign,
    QuerySample,
    labeled_pairs,
    labeling_costs,
)
from .base import CollectionError
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

    def _check_drawn(self) -> None:
        _check_design(self.design, self.pool)
        _check_steps(self.design)
        _check_sample(self.design, self.sample)
        _check_spent(self.design, self.sample)


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


# ---------------------------------------------------------------------------------- checks


def _check_design(design: QueryDesign, pool: Pool) -> None:
    absent = sorted(set(design.runs) - set(pool.runs))
    if not design.runs or absent:
        raise CollectionError(f"the design needs runs, and of the pool, not {absent[:1]}")
    if design.rule not in RULES or design.estimator not in ESTIMATORS:
        raise CollectionError(f"no such rule or estimator: {design.rule}, {design.estimator}")
    needed = labeling_costs(pool, runs=design.runs, depth=design.depth) > 0.0
    for name, values in (("probability", design.probability), ("cost", design.cost)):
        if values.shape != needed.shape:
            raise CollectionError(f"{name} must have a number for each of the topics")
        fine = np.where(needed, np.isfinite(values) & (values > 0.0), values == 0.0)
        if not fine.all():
            at = int(np.argmin(fine))
            rule = "above 0" if needed[at] else "0, because it has nothing to judge"
            told = f"of topic {pool.topics[at]!r} must be {rule}, not {float(values[at])!r}"
            raise CollectionError(f"{name} {told}")
    total = float(design.probability.sum())
    if abs(total - 1.0) > _SUM_TOLERANCE:
        raise CollectionError(f"the probabilities of all topics must add up to 1, not {total!r}")


def _check_steps(design: QueryDesign) -> None:
    steps = design.steps
    if not len(steps) or not np.all(np.isfinite(steps) & (steps > 0.0)):
        raise CollectionError(f"steps must be positive and finite, not {steps.tolist()}")
    if np.any(steps[1:] < steps[:-1]):
        raise CollectionError(f"steps must never fall, not {steps.tolist()}")
    total, dearest = float(design.cost.sum()), float(np.sort(design.cost)[-2:].sum())
    if steps[-1] > total * (1.0 + ROUNDING):
        raise CollectionError(f"steps must end at {total!r}, what all topics cost, or below")
    if steps[0] * (1.0 + ROUNDING) < dearest:
        told = "of the two most expensive topics"
        raise CollectionError(f"steps must start at {dearest!r}, the cost {told}, or above")


def _check_sample(design: QueryDesign, sample: QuerySample) -> None:
    topics = len(design.probability)
    for name in ("topic", "draws"):
        index_array(getattr(sample, name), below=topics, name=name, error=CollectionError)
    for topic, batch, name in (
        (sample.topic, sample.batch, "batch"),
        (sample.draws, sample.draw_batch, "draw_batch"),
    ):
        if len(topic) != len(batch):
            raise CollectionError(f"{name} must have one number for each topic")
        rule = f"lie between 1 and {design.batches}"
        wrong = (batch < 1) | (batch > design.batches)
        refuse(wrong, batch, name=name, rule=rule, error=CollectionError)
    if np.any(np.diff(sample.topic) <= 0):
        raise CollectionError("the drawn topics must ascend, each once")
    never = np.flatnonzero(design.probability[sample.topic] == 0.0)
    if len(never):
        raise CollectionError(f"topic {never[0]} of the sample could not be drawn")
    if not np.array_equal(np.lexsort((sample.draws, sample.draw_batch)), range(len(sample.draws))):
        raise CollectionError("draws must ascend by (batch, topic)")
    _check_first_batches(design, sample)


def _check_first_batches(design: QueryDesign, sample: QuerySample) -> None:
    """A topic enters when it is first drawn; a census takes the rest in its last batch."""
    batch = np.zeros(len(design.probability), dtype=np.int64)
    topic, first = np.unique(sample.draws, return_index=True)
    batch[topic] = sample.draw_batch[first]
    if design.is_census:
        batch[design.eligible & (batch == 0)] = design.batches
    told = np.zeros_like(batch)
    told[sample.topic] = sample.batch
    if not np.array_equal(batch, told):
        at = int(np.argmax(batch != told))
        rule = f"its draws say {batch[at]}"
        raise CollectionError(f"batch of topic {at} must be that of its first draw: {rule}")


def _check_spent(design: QueryDesign, sample: QuerySample) -> None:
    over = spent_by_batch(design, sample) > design.steps * (1.0 + ROUNDING)
    if over.any():
        batch = int(np.argmax(over)) + 1
        raise CollectionError(f"the topics of batch {batch} cost more than its step allows")
    last = design.is_census and design.batches == 1
    draws = int(np.count_nonzero(sample.draw_batch == 1))
    if not last and draws < LEAST_DRAWS:
        raise CollectionError(f"the first batch needs {LEAST_DRAWS} draws or more, not {draws}")
    if design.is_census and np.any(sample.draw_batch == design.batches):
        raise CollectionError("the last batch of a census has no draws: it takes what is left")
