"""Judged collections: what a sample and its judgments say about runs that arrive later.

A collection holds what an estimate needs apart from the runs: every pair of the pool with its
size, from which the inclusion probabilities follow, the pairs that were drawn, and what was said
of them. A run is then estimated from the pairs of it that happen to be sampled, each over its
probability, exactly as one that was there from the beginning.

Why this is unbiased: the probabilities were fixed before anything was drawn, and the expectation
of sum_S w_i v_i / pi_i is sum_i w_i v_i whatever weights w the run has (Horvitz and Thompson 1952;
for draws with replacement Schnabel et al. 2016, eq. 3), provided that

- the weights do not depend on which pairs were drawn or on how they were judged. So it holds for a
  run that had no part in the design and for one that had, but not for a run that was trained or
  tuned on these judgments, which will look better than it is;
- every document with a weight was eligible. The others have probability 0 and are never seen: the
  expectation of a linear measure is then the part of the value that eligible pairs make up, a
  lower bound, and the result's support, the share of the weight on eligible pairs, is below 1.
  Under a ratio measure relevant documents are missing from the denominator as well, so that the
  estimate may be off in either direction.

Averaging over judged pairs alone, as if they had been drawn with equal chances, is not unbiased.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from estimation.core.arrays import (
    BytesArray,
    FloatArray,
    Int32Array,
    IntArray,
    check_whole,
    frozen,
    index_array,
    refuse,
)
from estimation.core.designs import Design
from estimation.core.draws import Sample
from estimation.core.evaluation import Evaluation, evaluate
from estimation.core.interval_kinds import IntervalKind
from estimation.core.labels import LabelRows
from estimation.core.measures import Measure
from estimation.core.pool import Pool, RankedLists, build_pool

SUM_TOLERANCE = 1e-6


class CollectionError(ValueError):
    """Parts that do not make a judged collection; the message names the first one."""


@dataclass(frozen=True, eq=False)
class JudgedCollection:
    """The complete batches of a sample of a pool of N pairs, with their judgments.

    Build one with `JudgedCollection.of`.

    Attributes
    ----------
    topics : tuple of str
        All topics of the campaign, sorted, also those without any pair: values are means over
        them.
    depth : int
        Documents per topic and run that are looked at.
    topic : ndarray of int32, shape (N,)
        Topic of each pair, as a position in `topics`.
    docno : ndarray of bytes, shape (N,)
        UTF-8 docno of each pair; pairs are sorted by (topic, docno).
    design : Design
        Sizes of the N pairs, 0 for those that were never eligible, and the steps of these batches
        alone; for ``priority`` the constants that came to be. What the design was made from tells
        where the collection comes from and has no influence.
    sample : Sample
        The pairs drawn in these batches, as positions among the N. The order of draws within a
        batch is not kept.
    labels : LabelRows
        One row per judgment, without the assessor, by (pair, grade).
    max_grade : int
        The best grade of the scale.
    version : str
        The evalsite that made it.
    seed : str or None
        The seed of the draw, where the draw may be known.

    Raises
    ------
    CollectionError
        If the parts do not fit each other.
    """

    topics: tuple[str, ...]
    depth: int
    topic: Int32Array
    docno: BytesArray
    design: Design
    sample: Sample
    labels: LabelRows
    max_grade: int
    version: str
    seed: str | None = None

    def __post_init__(self) -> None:
        _check_pairs(self)
        _check_design(self)
        _check_draws(self)
        _check_labels(self)

    @classmethod
    def of(
        cls,
        pool: Pool,
        design: Design,
        sample: Sample,
        *,
        labels: LabelRows,
        batches: int,
        max_grade: int,
        version: str,
        seed: str | None = None,
    ) -> "JudgedCollection":
        """Collect the first batches of a sample.

        Parameters
        ----------
        pool, design, sample : Pool, Design, Sample
            As they were when the sample was drawn.
        labels : LabelRows
            The judgments of the pairs of these batches, as positions in the pool.
        batches : int
            Number of batches, counted from the first, of which every pair is judged.
        max_grade, version, seed
            As the attributes.

        Raises
        ------
        CollectionError
            If pool, design and sample do not belong together, the pool is of preferences, or a
            pair of these batches is not judged.
        ValueError
            If `batches` is not between 1 and the number of the design's batches.
        """
        if not pool.digest == design.pool_digest == sample.pool_digest:
            raise CollectionError("pool, design and sample do not belong together")
        if pool.is_of_preferences:
            raise CollectionError("preferences between documents do not make a judged collection")
        design.step(batches)
        steps = (sample.constants if len(sample.constants) else design.steps)[:batches]
        design = replace(design, steps=frozen(steps))
        order = np.lexsort((labels.grade, labels.pair))
        return cls(
            topics=pool.topics,
            depth=pool.depth,
            topic=pool.topic,
            docno=pool.docno,
            design=design,
            sample=_first_batches(sample, design),
            labels=LabelRows(frozen(labels.pair[order]), frozen(labels.grade[order])),
            max_grade=max_grade,
            version=version,
            seed=seed,
        )

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.docno)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What the sample was drawn for; the first is the goal's."""
        return self.design.measure, *self.design.reported

    def pool_for(self, runs: Mapping[str, RankedLists], *, scores: bool = False) -> Pool:
        """Pool runs over the collection's topics, with all pairs of the collection.

        A pair that no run returns has weight 0, but ratio measures count it.

        Parameters
        ----------
        runs : mapping of str to RankedLists
            At least one. Topics that are not the collection's are ignored.
        scores : bool
            Keep the runs' scores, for measures of predictions.

        Raises
        ------
        PoolError
            As `build_pool`.
        """
        bounds = np.searchsorted(self.topic, np.arange(len(self.topics) + 1))
        extra = {
            topic: [docno.decode() for docno in self.docno[start:stop].tolist()]
            for topic, start, stop in zip(self.topics, bounds[:-1], bounds[1:], strict=True)
        }
        return build_pool(self.topics, runs, depth=self.depth, scores=scores, extra=extra)


def evaluate_runs(
    collection: JudgedCollection,
    runs: Mapping[str, RankedLists],
    *,
    measures: Sequence[Measure],
    confidence: float = 0.95,
    interval: IntervalKind = "student",
) -> Evaluation:
    """Estimate any runs from a judged collection.

    See the module's text for when the estimates are unbiased. A run of the original pool gets the
    estimates and intervals that it had there. `MeasureResult.support` is below 1 where documents
    of a run could never be sampled, because no run of the pool returned them or the design left
    them out.

    Parameters
    ----------
    collection : JudgedCollection
    runs : mapping of str to RankedLists
        With scores if a measure is of predictions.
    measures : sequence of Measure
        At least one; not only those that the sample was drawn for.
    confidence : float
        Of the intervals, and of all verdicts of a measure together.
    interval : IntervalKind
        One of `interval_kinds` of the design's method; see `evaluate`.

    Raises
    ------
    PoolError, MeasureError
        (ValueErrors.) If the runs cannot be pooled, or a measure needs what is not there.
    ValueError
        If there is no measure, the confidence is out of range, or the method does not allow the
        interval.
    """
    needs_scores = any(measure.family == "prediction" for measure in measures)
    pool = collection.pool_for(runs, scores=needs_scores)
    place = find_pairs(
        collection.topic, collection.docno, among_topic=pool.topic, among_docno=pool.docno
    )
    design, sample, labels = carry_over(
        collection.design, collection.sample, collection.labels, pool=pool, place=place
    )
    return evaluate(
        pool,
        design,
        sample,
        labels=labels,
        measures=measures,
        max_grade=collection.max_grade,
        confidence=confidence,
        interval=interval,
    )


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
    return (
        replace(design, size=frozen(size), pool_digest=pool.digest),
        replace(
            sample,
            pair=place[sample.pair],
            draws=place[sample.draws],
            pool_digest=pool.digest,
        ),
        LabelRows(place[labels.pair], labels.grade),
    )


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


def _first_batches(sample: Sample, design: Design) -> Sample:
    """The sample of the design's batches, draws sorted within each."""
    taken = sample.batch <= design.batches
    pair = sample.pair[taken]
    draws = sample.draws
    if design.with_replacement:
        ends = (design.steps * design.strata).astype(np.int64)
        draws = np.concatenate([np.sort(part) for part in np.split(draws, ends)[:-1]])
    return Sample(
        pair=frozen(pair),
        batch=frozen(sample.batch[taken]),
        probability=frozen(design.inclusion()[pair]),
        draws=frozen(draws),
        pool_digest=sample.pool_digest,
        constants=frozen(sample.constants[: design.batches]),
    )


# ---------------------------------------------------------------------------------- checks


def _name(collection: JudgedCollection, pair: int) -> str:
    topic = collection.topics[int(collection.topic[pair])]
    return f"docno {collection.docno[pair].decode()!r} of topic {topic!r}"


def _check_pairs(collection: JudgedCollection) -> None:
    topics, topic, docno = collection.topics, collection.topic, collection.docno
    if not topics or not len(docno):
        raise CollectionError("a collection needs at least one topic and one pair")
    for first, second in pairwise(topics):
        if first.encode() >= second.encode():
            raise CollectionError(f"topics must ascend: {second!r} comes after {first!r}")
    for name, number in (("depth", collection.depth), ("max_grade", collection.max_grade)):
        check_whole(number, name=name, error=CollectionError)
    if not len(topic) == len(docno) == len(collection.design.size):
        lengths = f"{len(topic)}, {len(docno)} and {len(collection.design.size)}"
        raise CollectionError(f"topic, docno and size must be of one length, not {lengths}")
    index_array(topic, below=len(topics), name="topic", error=CollectionError)
    rising = (topic[1:] > topic[:-1]) | ((topic[1:] == topic[:-1]) & (docno[1:] > docno[:-1]))
    if not rising.all():
        at = int(np.argmin(rising)) + 1
        raise CollectionError(f"pairs must ascend, each once: {_name(collection, at)} does not")


def _check_design(collection: JudgedCollection) -> None:
    design = collection.design
    bad = ~(np.isfinite(design.size) & (design.size >= 0.0))
    if bad.any():
        at = int(np.argmax(bad))
        value = float(design.size[at])
        raise CollectionError(f"size of {_name(collection, at)} must be >= 0, not {value!r}")
    _check_steps(design)
    _check_total("all pairs", float(design.size.sum()))
    if design.method == "per-query":
        shares = np.bincount(collection.topic, weights=design.size, minlength=1)
        used = np.flatnonzero(shares)
        if len(used) != design.strata:
            raise CollectionError(f"strata must be {len(used)}, not {design.strata}")
        for topic in used.tolist():
            _check_total(f"topic {collection.topics[topic]!r}", shares[topic] * design.strata)
    elif design.strata != 1:
        raise CollectionError(f"strata must be 1 for {design.method}, not {design.strata}")


def _check_total(what: str, total: float) -> None:
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise CollectionError(f"the sizes of {what} must make up a whole, not {total!r} of it")


def _check_steps(design: Design) -> None:
    steps: FloatArray = design.steps
    if not len(steps) or not np.all(steps > 0.0) or np.any(steps[1:] < steps[:-1]):
        raise CollectionError(f"steps must be positive and never fall, not {steps.tolist()}")
    if design.with_replacement and not np.all(np.isfinite(steps) & (steps == np.floor(steps))):
        raise CollectionError(f"steps must be whole numbers of draws, not {steps.tolist()}")


def _check_draws(collection: JudgedCollection) -> None:
    design, sample = collection.design, collection.sample
    size = len(design.size)
    index_array(sample.pair, below=size, name="sample.pair", error=CollectionError)
    falling = np.diff(sample.pair) <= 0
    if falling.any():
        second = int(sample.pair[int(np.argmax(falling)) + 1])
        name = _name(collection, second)
        raise CollectionError(f"the sampled pairs must ascend, each once: {name} does not")
    never = sample.pair[design.size[sample.pair] <= 0.0]
    if len(never):
        raise CollectionError(f"{_name(collection, int(never[0]))} was drawn with probability 0")
    number = design.draws() or 0
    if len(sample.draws) != number:
        raise CollectionError(f"draws must be {number} by the steps, not {len(sample.draws)}")
    if number and not np.array_equal(np.unique(sample.draws), sample.pair):
        differ = np.setxor1d(sample.draws, sample.pair)
        raise CollectionError(f"the sampled pairs are not those drawn: {differ[0]} is only in one")
    wrong = (sample.batch < 1) | (sample.batch > design.batches)
    rule = f"lie between 1 and {design.batches}"
    refuse(wrong, sample.batch, name="batch", rule=rule, error=CollectionError)


def _check_labels(collection: JudgedCollection) -> None:
    labels, pair = collection.labels, collection.sample.pair
    foreign = labels.pair[~np.isin(labels.pair, pair)]
    if len(foreign):
        raise CollectionError(f"{_name(collection, int(foreign[0]))} is judged but was not sampled")
    missing = pair[~np.isin(pair, labels.pair)]
    if len(missing):
        raise CollectionError(f"{_name(collection, int(missing[0]))} was sampled but is not judged")
    off = labels.grade[(labels.grade < 0) | (labels.grade > collection.max_grade)]
    if len(off):
        limit = collection.max_grade
        raise CollectionError(f"grade must lie between 0 and {limit}, not {int(off[0])}")
