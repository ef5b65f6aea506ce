"""What estimates say topic by topic: what is judged, how far runs differ, what is uncertain."""

from dataclasses import dataclass

import numpy as np
from django.db.models import Count

from estimation.models import EstimateSet
from estimation.selectors import Pairwise, RankingTable, draws_behind, pairwise
from estimation.stored import matrices, stored_facts


@dataclass(frozen=True)
class TopicSpread:
    """One topic under one measure.

    ``judged`` of ``pairs`` in the pool (None where an older version did not count them).
    ``spread``: standard deviation among the runs of what the topic contributes to their values;
    None where nothing is judged. ``uncertainty``: the share of the sampling variance of all runs
    together that comes from it; None where the sample does not tell it topic by topic.
    """

    pk: int
    topic_id: str
    title: str
    judged: int
    pairs: int | None
    spread: float | None
    uncertainty: float | None


NOISY = 10
"""Judged pairs that say something of a run below which what a topic adds to it is mostly noise."""


@dataclass(frozen=True)
class TopicContribution:
    """What one topic adds to the value of a run; ``value`` is None where nothing is judged that
    says something of it, in ``judged`` pairs (None where an older version did not count them)."""

    value: float | None
    judged: int | None

    @property
    def noisy(self) -> bool:
        return self.value is not None and (self.judged is None or self.judged < NOISY)


def contributions(shown: EstimateSet, measure: str, topic_id: str) -> dict[str, TopicContribution]:
    """By the tags of runs; empty where the estimates do not tell of the topic."""
    facts = stored_facts(shown)
    index, topics = facts["measures"].index(measure), list(facts.get("topics", ()))
    if topic_id not in topics:
        return {}
    place, names = topics.index(topic_id), (f"by_topic_{index}", f"judged_{index}")
    arrays = matrices(shown, names[:1], optional=names[1:])
    values = arrays[names[0]][place].tolist()
    counts = arrays[names[1]][place].tolist() if names[1] in arrays else [None] * len(values)
    return {
        tag: TopicContribution(value if count or (count is None and value) else None, count)
        for tag, value, count in zip(facts["runs"], values, counts, strict=True)
    }


def topic_results(table: RankingTable) -> list[TopicSpread]:
    """Every topic, in the order of the pool: by id."""
    shown = table.estimate_set
    pairs = table.pairs or pairwise(shown, table.measure)
    rows = table.round.campaign.topics.values_list("topic_id", "pk", "title")
    named = {topic_id: (pk, title) for topic_id, pk, title in rows}
    topics = list(pairs.topics or sorted(named, key=str.encode))
    judged, in_pool, variance = _stored(shown, table.measure)
    if judged is None:
        judged = _counted(shown, topics)
    spread = _spread(pairs, [row.tag for row in table.known])
    shares = _shares(variance)
    return [
        TopicSpread(
            pk=named[topic_id][0],
            topic_id=topic_id,
            title=named[topic_id][1],
            judged=judged[at],
            pairs=in_pool[at] if in_pool else None,
            spread=spread[at] if judged[at] and spread else None,
            uncertainty=shares[at] if shares else None,
        )
        for at, topic_id in enumerate(topics)
    ]


def uncertainty_of(shown: EstimateSet, topic_id: str) -> float | None:
    """The topic's share of the sampling variance under the round's first measure, as there."""
    variance = matrices(shown, (), optional=["variance_0"]).get("variance_0")
    shares, topics = _shares(variance), list(stored_facts(shown).get("topics", ()))
    return shares[topics.index(topic_id)] if shares and topic_id in topics else None


def _stored(
    shown: EstimateSet, measure: str
) -> tuple[list[int] | None, list[int] | None, np.ndarray | None]:
    """Judged pairs and pairs of each topic, and variances by topic and run, as far as known."""
    name = f"variance_{stored_facts(shown)['measures'].index(measure)}"
    wanted = ["judged_topic", "pool_topic", name]
    arrays = matrices(shown, (), optional=wanted)
    counts = [arrays[each].tolist() if each in arrays else None for each in wanted[:2]]
    return counts[0], counts[1], arrays.get(name)


def _counted(shown: EstimateSet, topics: list[str]) -> list[int]:
    rows = draws_behind(shown).order_by().values("pair__topic__topic_id")
    counts = dict(rows.annotate(n=Count("pair", distinct=True)).values_list(*_COUNTED))
    return [counts.get(topic_id, 0) for topic_id in topics]


_COUNTED = ("pair__topic__topic_id", "n")


def _spread(pairs: Pairwise, known: list[str]) -> list[float] | None:
    """Of two known runs at least."""
    among = np.isin(pairs.runs, known)
    if np.count_nonzero(among) < 2:
        return None
    found: list[float] = pairs.by_topic[:, among].std(axis=1, ddof=1).tolist()
    return found


def _shares(variance: np.ndarray | None) -> list[float] | None:
    if variance is None:
        return None
    total = float(variance.sum())
    found: list[float] = (variance.sum(axis=1) / total).tolist() if total > 0.0 else []
    return found or None
