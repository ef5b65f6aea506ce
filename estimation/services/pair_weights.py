"""How many pairs of the pool each judged pair stands for, where something is told of labels."""

import numpy as np

from estimation.core.arrays import FloatArray
from estimation.core.collections.base import RoundCollection
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.sampled import weighed_before
from estimation.core.rounds.combining import RoundsTogether
from estimation.core.rounds.rounds import PairRound, TopicRound


def pair_weights(collection: RoundCollection) -> FloatArray | None:
    """Of every pair of the pool, 0 where it was not drawn; None where that is not known.

    Sums over judged pairs, each multiplied by it, estimate those over the pool without bias: one
    over the chance with which the pair was drawn; of adaptive rounds what all batches together
    count its label for. Active rounds choose pairs by what was found, and have nothing like it.
    """
    pool, drawn = collection.pool, collection.drawn
    weight = np.zeros(len(pool))
    if isinstance(drawn, AdaptiveRound):
        frame = drawn.design.frame(pool)
        found = weighed_before(frame, drawn.sample, drawn.measures[0]).weights.on_label
        weight[drawn.sample.pair] = found[drawn.sample.pair]
    elif isinstance(drawn, PairRound | RoundsTogether):
        of_pairs = drawn.drawn(pool.topic)
        weight[of_pairs.pair] = 1.0 / of_pairs.inclusion[of_pairs.pair]
    elif isinstance(drawn, TopicRound):
        served = drawn.served(pool)
        weight[served.pair] = 1.0 / served.probability
    else:
        return None
    return weight
