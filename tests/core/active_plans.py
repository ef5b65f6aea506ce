"""Plans of active rounds, for tests: of one topic, and made once more."""

import numpy as np

from estimation.core.data.labels import LabelRows
from estimation.core.rounds.active.lists import ActiveFrame
from estimation.core.rounds.active.sampling import ActiveState, plan_batch, start


def one_topic(frame: ActiveFrame, state: ActiveState, topic: int) -> np.ndarray:
    """Limits under which no other topic is planned."""
    limits = np.bincount(frame.pool.topic[state.pair], minlength=len(frame.pool.topics))
    limits[topic] = len(frame.pool)
    return limits


def replay(frame: ActiveFrame, state: ActiveState, labels: LabelRows) -> ActiveState:
    """All batches planned again from seed and labels: which topics got how much is told by limits.
    The same bits, if the state came about as it should."""
    again = start(
        frame, seed=state.seed, batch_size=state.batch_size, relevant_from=state.relevant_from,
        uniform_share=state.uniform_share,
    )  # fmt: skip
    batch = state.round_batch[state.pair_round]
    for number in range(1, state.batches + 1):
        known = np.isin(labels.pair, again.pair)
        rows = LabelRows(labels.pair[known], labels.grade[known])
        taken = frame.pool.topic[state.pair[batch <= number]]
        limits = np.bincount(taken, minlength=len(frame.pool.topics))
        again = plan_batch(frame, again, labels=rows, limits=limits)
    return again
