"""What estimates rest on in each topic: stored beside them, for pages that compare topics.

It describes; no number of a ranking follows from it.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from estimation.core.arrays import IntArray
from estimation.core.collections.base import RoundCollection
from estimation.core.data.pool import Pool
from estimation.core.data.preferences import part_names
from estimation.core.data.scope import find_pairs
from estimation.core.estimates.by_topic import judged_by_topic
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.combining import RoundsTogether
from estimation.core.rounds.results import Asked, MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.methods import SAMPLING_METHODS


def topic_arrays(
    collection: RoundCollection, joined: Pool, results: tuple[MeasureResult, ...]
) -> dict[str, np.ndarray]:
    """Judged pairs by topic and run, and variances where the sample has one for each topic.

    ``judged_topic`` and ``pool_topic`` count the judged pairs and all pairs of each topic;
    ``judged_n`` and ``variance_n`` are of the n-th measure, topics by runs.
    """
    judged = _once(collection.labels.pair)
    topics, place = len(joined.topics), _places(collection, joined, judged)
    ends = np.searchsorted(joined.topic, np.arange(topics + 1))
    arrays = {
        "judged_topic": np.bincount(collection.topic[judged], minlength=topics).astype(np.int32),
        "pool_topic": np.diff(ends).astype(np.int32),
    }
    counts = judged_by_topic(joined, [result.measure for result in results], place)
    arrays |= {f"judged_{n}": each.astype(np.int32) for n, each in enumerate(counts)}
    of_gains = {n: each for n, each in enumerate(results) if each.measure.family == "gain"}
    variances = _variances(collection, joined, of_gains)
    return arrays | {f"variance_{n}": each for n, each in variances}


def _once(pairs: IntArray) -> IntArray:
    """Each pair of labels, which stand in order of their pairs, once."""
    return pairs[np.diff(pairs, prepend=-1) > 0]


def _places(collection: RoundCollection, joined: Pool, pairs: IntArray) -> IntArray:
    """Where pairs of the collection stand among those of the estimated runs."""
    if joined is collection.pool:
        return pairs
    return find_pairs(
        collection.topic[pairs],
        collection.docno[pairs],
        among_topic=joined.topic,
        among_docno=part_names(joined),
    )


Results = Mapping[int, MeasureResult]
Variances = Iterator[tuple[int, np.ndarray]]


def _variances(collection: RoundCollection, joined: Pool, of_gains: Results) -> Variances:
    """Of sums of gains from pairs that were drawn independently, or from adaptive batches.

    Draws with replacement, samples of a fixed size and whole topics do not split like this: what
    one topic has more, others have less. Ratios are estimated along a line whose errors are kept
    for all topics together.
    """
    drawn = collection.drawn
    if isinstance(drawn, AdaptiveRound):
        measures = tuple(each.measure for each in of_gains.values())
        asked = Asked(collection.labels, measures, collection.max_grade)
        scope = collection.scope_of(joined, measures)
        for n, each in of_gains.items():
            yield n, drawn.variance_by_topic(scope, asked, each.measure)
        return
    if isinstance(drawn, PairRound | RoundsTogether) and SAMPLING_METHODS[drawn.method].independent:
        for n, each in of_gains.items():
            if each.primary == "ht" and each.variance_by_topic is not None:
                yield n, each.variance_by_topic
