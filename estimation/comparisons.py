"""Two runs of a ranking side by side."""

from dataclasses import dataclass

from estimation.conclusions import pair_states, what_next
from estimation.core.inference.unknown import Reason
from estimation.selectors import Pairwise, RankedRun, RankingTable, pairwise
from estimation.unknown import name_of
from judging.models import Campaign


@dataclass(frozen=True)
class TopicDifference:
    """What one topic contributes to the difference of two runs."""

    topic_id: str
    title: str
    difference: float


@dataclass(frozen=True)
class RunComparison:
    """The difference of two runs, first less second; no numbers where it is not known.

    ``state``: one of `conclusions.STATES`, ``next``: what it means where nothing is settled.
    ``within``: by how much the two differ at most, if they are equivalent, else 0.
    """

    measure: str
    first: RankedRun
    second: RankedRun
    difference: float | None
    low: float | None
    high: float | None
    adjusted_p: float
    verdict: int
    topics: list[TopicDifference]
    unknown: str | None = None
    unknown_why: str | None = None
    state: str = ""
    next: str = ""
    within: float = 0.0


def compare(table: RankingTable, first: str, second: str) -> RunComparison | None:
    """The difference of two runs of a ranking, with its interval; None if there is no such run."""
    rows = {row.tag: row for row in table.rows}
    if first not in rows or second not in rows:
        return None
    pairs = table.pairs or pairwise(table.estimate_set, table.measure)
    i, j = pairs.runs.index(first), pairs.runs.index(second)
    reason = pairs.reason(first, second)
    known, margin = reason == Reason.KNOWN, float(pairs.margin[i, j])
    difference = table.estimated[first] - table.estimated[second]
    states = pair_states(table.round, pairs)
    state, more = str(states.state[i, j]), float(states.more[i, j])
    return RunComparison(
        measure=table.measure,
        first=rows[first],
        second=rows[second],
        difference=difference if known else None,
        low=difference - margin if known else None,
        high=difference + margin if known else None,
        adjusted_p=float(pairs.adjusted_p[i, j]),
        verdict=int(pairs.verdicts[i, j]),
        topics=_by_topic(table.round.campaign, pairs, i, j) if known else [],
        unknown=name_of(reason),
        unknown_why=table.purpose.of_difference(reason, first, second),
        state=state,
        next=what_next(state, more, equivalence=pairs.equivalence is not None),
        within=pairs.within(first, second),
    )


def _by_topic(campaign: Campaign, pairs: Pairwise, i: int, j: int) -> list[TopicDifference]:
    """The topics that contribute to a difference of two runs, the largest first."""
    titles = dict(campaign.topics.values_list("topic_id", "title"))
    topics = pairs.topics or sorted(titles, key=str.encode)
    parts = pairs.by_topic[:, i] - pairs.by_topic[:, j]
    rows = [
        TopicDifference(topic_id, titles[topic_id], part)
        for topic_id, part in zip(topics, parts.tolist(), strict=True)
        if part
    ]
    return sorted(rows, key=lambda row: -abs(row.difference))
