"""The sampled documents of a topic one by one, in the order in which they were new."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .weights import Weights, lacking_of_steps, sequential_weights, step_shares

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ...arrays import FloatArray, IntArray
    from .lists import ActiveFrame, TopicLists
    from .sampling import ActiveState


@dataclass(frozen=True, eq=False)
class History:
    """A state, by topic: its rounds, and its sampled pairs in the order of drawing."""

    state: ActiveState
    rounds: list[IntArray]
    drawn: list[IntArray]

    @classmethod
    def of(cls, frame: ActiveFrame, state: ActiveState) -> History:
        """Group a state by topic."""
        number = len(frame.pool.topics)
        rounds, round_spans = grouped(state.round_topic, number)
        drawn, drawn_spans = grouped(frame.pool.topic[state.pair], number)
        return cls(state, [rounds[s] for s in round_spans], [drawn[s] for s in drawn_spans])


def grouped(topic: NDArray[np.integer], number: int) -> tuple[IntArray, list[slice]]:
    """Order by topic, otherwise as it was, and the slice of each topic."""
    order = np.argsort(topic, kind="stable")
    bounds = np.searchsorted(topic[order], np.arange(number + 1)).tolist()
    return order, [slice(first, last) for first, last in pairwise(bounds)]


@dataclass(frozen=True, eq=False)
class Steps:
    """n steps of a topic with N documents, in m rounds; build them with `Steps.of`."""

    lists: TopicLists
    runs: FloatArray  # (m, k): p_t(k) of each round
    first: IntArray  # (m + 1,): steps of round t are first[t]:first[t + 1]
    document: IntArray  # (n,): the new document of each step, within the topic
    mass: FloatArray  # (n,): probability that a draw of the step brings any new document
    conditional: FloatArray  # (n,): q_s, in (0, 1], chance of the document given all before

    @classmethod
    def of(cls, lists: TopicLists, history: History, topic: int) -> Steps:
        """Work out the probabilities of all steps of a topic."""
        state, drawn = history.state, history.drawn[topic]
        rounds = history.rounds[topic]
        document = state.pair[drawn] - lists.start
        first = np.searchsorted(state.pair_round[drawn], np.append(rounds, rounds[-1] + 1))
        mass, conditional = np.empty((2, len(drawn)))
        unknown = np.ones(len(lists), dtype=np.bool_)
        for row, (start, stop) in zip(rounds, pairwise(first.tolist()), strict=True):
            chance = lists.document_probability(state.run_probability[row])
            for step in range(start, stop):
                mass[step] = chance[unknown].sum()
                conditional[step] = chance[document[step]] / mass[step]
                unknown[document[step]] = False
        conditional = np.minimum(conditional, 1.0)  # a last document: above by rounding
        return cls(lists, state.run_probability[rounds], first, document, mass, conditional)

    def __len__(self) -> int:
        """Return the number n of steps."""
        return len(self.document)

    @property
    def share(self) -> FloatArray:
        """c_s, shape (n,)."""
        return step_shares(len(self), len(self.lists))

    def places(self, documents: IntArray) -> IntArray:
        """Return the steps in which documents were new."""
        order = np.argsort(self.document)
        found = order[np.searchsorted(self.document[order], documents)]
        return np.asarray(found, dtype=np.int64)

    def weights(self, documents: IntArray) -> Weights:
        """Return the `sequential_weights` of sampled documents."""
        steps = self.places(documents)
        return sequential_weights(self.conditional, documents=len(self.lists), steps=steps)

    def lacking(self, documents: IntArray) -> FloatArray:
        """Return `lacking_of_steps` of sampled documents."""
        lacking = lacking_of_steps(self.conditional, documents=len(self.lists))
        return lacking[self.places(documents)]

    def rounds(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield the steps of each round with the probabilities p_t(i) of all N documents."""
        for (start, stop), runs in zip(pairwise(self.first.tolist()), self.runs, strict=True):
            yield slice(start, stop), self.lists.document_probability(runs)

    def spread(self, limit: float = np.inf) -> FloatArray:
        """Return A_i = sum_s c_s^2 / q_s(i) over the steps before which i was unknown, shape (N,).

        q_s(i) is the chance of document i in step s, whichever came. The total of y is estimated
        with the variance E[sum_i A_i y_i^2 - sum_s c_s^2 (total unknown before s)^2].

        With a limit L, 1/q_s - 1 in 1/q_s = 1 + (1/q_s - 1) is divided by (1 + c_s (1/q_s - 1) /
        L)^2: what comes with the additional weight u moves a ratio whose denominator is L by
        u / (L + u), not by u / L.
        """
        share, spread = self.share, np.zeros(len(self.lists))
        unknown = np.ones(len(self.lists), dtype=np.bool_)
        for span, chance in self.rounds():
            for step in range(span.start, span.stop):
                if share[step] > 0.0:
                    weight = share[step] * np.maximum(self.mass[step] / chance[unknown] - 1.0, 0.0)
                    bounded = weight / (1.0 + weight / limit) ** 2
                    spread[unknown] += share[step] * (share[step] + bounded)
                unknown[self.document[step]] = False
        return spread
