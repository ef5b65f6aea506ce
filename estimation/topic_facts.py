"""What there is to say of one topic, for its page and for programs.

How much of the uncertainty of a run one topic carries is not told: variances are stored of runs and
of differences of two, and not topic by topic.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from estimation import selectors
from estimation.formats.overlaps import top_of_topic
from estimation.models import EstimateSet, Round, Run
from estimation.selectors import pairwise
from estimation.standing import pooled_in
from judging.answers import Agreement, JudgedPair, agreements, grade_counts, pairs_of
from judging.models import Campaign, Topic


@dataclass(frozen=True)
class TopicRun:
    """Of what a run returns for the topic down to the campaign's depth, how many documents are
    ``drawn``, ``judged``, and ``relevant``: judged better than grade 0 by somebody.

    ``adds``: what the topic adds to the estimate of the run; None where it is not known.
    """

    id: int
    tag: str
    withdrawn: bool
    documents: int
    drawn: int
    judged: int
    relevant: int
    adds: float | None


@dataclass(frozen=True)
class TopicFacts:
    """``pooled``: pairs in the pool of the ``round`` shown first; None before any draw."""

    topic: Topic
    round: Round | None
    pooled: int | None
    pairs: list[JudgedPair]
    grades: list[int]
    agreement: Agreement
    runs: list[TopicRun]

    @property
    def drawn(self) -> int:
        return len(self.pairs)

    @property
    def judged(self) -> int:
        return sum(bool(pair.grades) for pair in self.pairs)

    @property
    def relevant(self) -> int:
        return sum(pair.relevant for pair in self.pairs)

    @property
    def compared(self) -> int:
        """Judged pairs of two documents, which have no grade of the scale."""
        return sum(bool(pair.other and pair.grades) for pair in self.pairs)


def topic_facts(topic: Topic) -> TopicFacts:
    """All of it, in a number of queries that hangs neither on runs nor on topics."""
    campaign = topic.campaign
    pairs = pairs_of(topic)
    row = selectors.current_round(campaign)
    drawn = row if row is not None and row.is_drawn else None
    shown = selectors.latest_estimates(drawn) if drawn else None
    return TopicFacts(
        topic=topic,
        round=drawn,
        pooled=pooled_in(drawn, topic.topic_id) if drawn else None,
        pairs=pairs,
        grades=grade_counts(pairs, len(campaign.grades)),
        agreement=agreements(campaign).get(topic.pk, Agreement()),
        runs=_runs(campaign, topic, pairs, shown),
    )


def _runs(
    campaign: Campaign, topic: Topic, pairs: Sequence[JudgedPair], shown: EstimateSet | None
) -> list[TopicRun]:
    """By what they return that is relevant, most first."""
    drawn = {name.encode() for pair in pairs for name in (pair.docno, pair.other) if name}
    judged = {
        name.encode() for p in pairs if p.grades for name in (p.docno, p.other) if name
    }  # of preferences both documents
    relevant = {pair.docno.encode() for pair in pairs if pair.relevant}
    adds = _adds(shown, topic) if shown else {}
    rows = []
    for run in Run.objects.filter(campaign=campaign):
        path = str(Path(settings.MEDIA_ROOT) / run.file)
        top = set(top_of_topic(path, topic.topic_id, campaign.depth))
        rows.append(
            TopicRun(
                id=run.pk,
                tag=run.tag,
                withdrawn=run.withdrawn is not None,
                documents=len(top),
                drawn=len(top & drawn),
                judged=len(top & judged),
                relevant=len(top & relevant),
                adds=adds.get(run.tag),
            )
        )
    return sorted(rows, key=lambda each: (-each.relevant, -each.judged, each.tag))


def _adds(shown: EstimateSet, topic: Topic) -> dict[str, float]:
    """What a topic adds to the estimates of runs, as far as these are known."""
    pairs = pairwise(shown, shown.round.measure)
    if topic.topic_id not in pairs.topics:
        return {}
    line = pairs.by_topic[list(pairs.topics).index(topic.topic_id)]
    known = set(
        shown.estimates.filter(measure=shown.round.measure, primary=True, unknown=0).values_list(
            "run__tag", flat=True
        )
    )
    columns = zip(pairs.runs, line.tolist(), strict=True)
    return {tag: value for tag, value in columns if tag in known}
