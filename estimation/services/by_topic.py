"""What estimates rest on in each topic: stored beside them, for pages that compare topics.

It describes; no number of a ranking follows from it.
"""

import numpy as np

from estimation.core.arrays import IntArray
from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import pair_labels, select_rows
from estimation.core.data.pool import Pool
from estimation.core.data.preferences import part_names
from estimation.core.data.scope import find_pairs
from estimation.core.estimates.by_topic import judged_by_topic, variance_by_topic
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
    judged = np.unique(collection.labels.pair)
    topics, place = len(joined.topics), _places(collection, joined, judged)
    arrays = {
        "judged_topic": np.bincount(collection.topic[judged], minlength=topics).astype(np.int32),
        "pool_topic": np.bincount(joined.topic, minlength=topics).astype(np.int32),
    }
    for index, result in enumerate(results):
        counts = judged_by_topic(joined, result.measure, place)
        arrays[f"judged_{index}"] = counts.astype(np.int32)
        found = _variance(collection, joined, result)
        if found is not None:
            arrays[f"variance_{index}"] = found
    return arrays


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


def _variance(
    collection: RoundCollection, joined: Pool, result: MeasureResult
) -> np.ndarray | None:
    """Of sums of gains from pairs that were drawn independently, or from adaptive batches.

    Draws with replacement, samples of a fixed size and whole topics do not split like this: what
    one topic has more, others have less. Ratios are estimated along a line whose errors are kept
    for all topics together.
    """
    drawn = collection.drawn
    if result.measure.family != "gain":
        return None
    if isinstance(drawn, AdaptiveRound):
        asked = Asked(collection.labels, (result.measure,), collection.max_grade)
        scope = collection.scope_of(joined, asked.measures)
        return drawn.variance_by_topic(scope, asked, result.measure)
    if not isinstance(drawn, PairRound | RoundsTogether):
        return None
    if not SAMPLING_METHODS[drawn.method].independent or result.primary != "ht":
        return None
    found = drawn.drawn(collection.topic)
    rows = select_rows(
        collection.labels,
        sampled=collection.sampled,
        prefix=found.pair,
        max_grade=collection.max_grade,
        pool=None,
    )
    labels = pair_labels(rows, pairs=len(found.pair), measure=result.measure)
    return variance_by_topic(
        joined,
        result.measure,
        pairs=_places(collection, joined, found.pair),
        labels=labels.mean,
        probability=found.inclusion[found.pair],
    )
