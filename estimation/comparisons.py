"""Two runs of a ranking side by side."""

from dataclasses import dataclass

from estimation.conclusions import pair_states, what_next, why_open
from estimation.core.inference.single import ends
from estimation.core.inference.unknown import Reason
from estimation.selectors import Pairwise, RankedRun, RankingTable, pairwise
from estimation.unknown import name_of
from judging.models import Campaign


@dataclass(frozen=True)
class TopicDifference:
    """What one topic contributes to the difference of two runs; None where nothing is judged.

    ``judged``: pairs that say something of the first run and of the second, a pair that says
    something of both in each; None for estimates of versions that did not count them.
    """

    pk: int
    topic_id: str
    title: str
    difference: float | None
    judged: tuple[int, int] | None = None


@dataclass(frozen=True)
class RunComparison:
    """The difference of two runs, first less second; no numbers where it is not known.

    ``state``: one of `conclusions.STATES`, ``next``: what it means where nothing is settled.
    ``within``: by how much the two differ at most, if they are equivalent, else 0. ``settled``:
    whether what was judged settles which is better, whatever the other documents are; the interval
    then ends at 0 where it would go on.
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
    settled: bool = False


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
    why = why_open(table.round, table.estimate_set, pairs)
    verdict, adjusted = int(pairs.verdicts[i, j]), float(pairs.adjusted_p[i, j])
    low, high = ends(difference, margin, adjusted)
    return RunComparison(
        measure=table.measure,
        first=rows[first],
        second=rows[second],
        difference=difference if known else None,
        low=low if known else None,
        high=high if known else None,
        adjusted_p=adjusted,
        verdict=verdict,
        topics=_by_topic(table.round.campaign, pairs, i, j) if known else [],
        unknown=name_of(reason),
        unknown_why=table.purpose.of_difference(reason, first, second),
        state=state,
        next=what_next(state, more, equivalence=pairs.equivalence is not None, why_open=why),
        within=pairs.within(first, second),
        settled=verdict != 0 and adjusted == 0.0,
    )


def _by_topic(campaign: Campaign, pairs: Pairwise, i: int, j: int) -> list[TopicDifference]:
    """Every topic, from what speaks most for the first run to what speaks most for the second.

    Those of which nothing is judged come last. A model may expect something of them, which is part
    of the estimates of rounds that have one; but nobody has looked.
    """
    rows = campaign.topics.values_list("topic_id", "pk", "title")
    named = {topic_id: (pk, title) for topic_id, pk, title in rows}
    topics = pairs.topics or sorted(named, key=str.encode)
    parts = (pairs.by_topic[:, i] - pairs.by_topic[:, j]).tolist()
    judged: list[tuple[int, int] | None] = [None] * len(parts)
    if pairs.judged is not None:
        counts = pairs.judged[:, [i, j]].tolist()
        judged = [(first, second) for first, second in counts]
    found = [
        TopicDifference(
            named[topic_id][0],
            topic_id,
            named[topic_id][1],
            difference=part if (any(seen) if seen is not None else part) else None,
            judged=seen,
        )
        for topic_id, part, seen in zip(topics, parts, judged, strict=True)
    ]
    return sorted(found, key=lambda row: (row.difference is None, -(row.difference or 0.0)))
