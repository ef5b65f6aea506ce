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
from estimation.core.rounds.combining import RoundsTogether
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.methods import SAMPLING_METHODS


def topic_arrays(
    collection: RoundCollection, joined: Pool, results: tuple[MeasureResult, ...]
) -> dict[str, np.ndarray]:
    """Judged pairs by topic and run, and variances where the sample has one for each topic.

    ``judged_topic`` and ``pool_topic`` count the judged pairs and all pairs of each topic;
    ``judged_n`` and ``variance_n`` are of the n-th measure, topics by runs.
    """
    judged = np.flatnonzero(np.bincount(collection.labels.pair))
    topics, place = len(joined.topics), _places(collection, joined, judged)
    arrays = {
        "judged_topic": np.bincount(collection.topic[judged], minlength=topics).astype(np.int32),
        "pool_topic": np.bincount(joined.topic, minlength=topics).astype(np.int32),
    }
    counts = judged_by_topic(joined, [result.measure for result in results], place)
    arrays |= {f"judged_{n}": each.astype(np.int32) for n, each in enumerate(counts)}
    drawn = collection.drawn
    if isinstance(drawn, PairRound | RoundsTogether) and SAMPLING_METHODS[drawn.method].independent:
        arrays |= _variances(collection, drawn, joined, results)
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


def _variances(
    collection: RoundCollection,
    drawn: PairRound | RoundsTogether,
    joined: Pool,
    results: tuple[MeasureResult, ...],
) -> dict[str, np.ndarray]:
    """Of pairs that were drawn independently, and estimates by these alone."""
    found = drawn.drawn(collection.topic)
    rows = select_rows(
        collection.labels,
        sampled=collection.sampled,
        prefix=found.pair,
        max_grade=collection.max_grade,
        pool=None,
    )
    places = _places(collection, joined, found.pair)
    chances = found.inclusion[found.pair]
    return {
        f"variance_{n}": variance_by_topic(
            joined,
            each.measure,
            pairs=places,
            labels=pair_labels(rows, pairs=len(found.pair), measure=each.measure).mean,
            probability=chances,
        )
        for n, each in enumerate(results)
        if each.primary == "ht" and each.measure.family == "gain"
    }
