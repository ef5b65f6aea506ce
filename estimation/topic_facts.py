"""What there is to say of one topic, for its page and for programs.

How much of the uncertainty of all runs together comes from the topic is told where the sample
splits by topic. What a topic adds to an estimate is mostly nothing or far too much, from few
judgments: it is marked as noisy where they are few, and nothing is concluded from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from django.conf import settings

from estimation import selectors
from estimation.formats.overlaps import top_of_topic
from estimation.models import EstimateSet, Round, Run
from estimation.scales import decimals
from estimation.standing import pooled_by_runs, pooled_in
from estimation.topic_results import TopicContribution, contributions, uncertainty_of
from judging.answers import AnsweredPair, AnswersApart, agreements, grade_counts, pairs_of
from judging.models import Topic


@dataclass(frozen=True)
class TopicRun:
    """Of what a run returns for the topic down to the campaign's depth, how many documents are
    ``drawn``, ``judged``, and ``relevant``: judged better than grade 0 by somebody. ``adds`` to the
    value of the run is what the topic contributes, None without estimates that tell of it."""

    id: int
    tag: str
    withdrawn: bool
    documents: int
    drawn: int
    judged: int
    relevant: int
    adds: TopicContribution | None = None


@dataclass(frozen=True)
class TopicFacts:
    """``pooled``: pairs in the pool of the ``round`` shown first; None before any draw.

    ``uncertainty``: the topic's share of the sampling variance of the values of that round's runs
    under ``measure``, its first; None where its estimates do not tell it topic by topic.
    """

    topic: Topic
    round: Round | None
    pooled: int | None
    pairs: list[AnsweredPair]
    grades: list[int]
    agreement: AnswersApart
    runs: list[TopicRun]
    uncertainty: float | None

    @property
    def measure(self) -> str:
        return self.round.measure if self.round else ""

    @property
    def digits(self) -> int:
        """Decimals of what the topic adds to values."""
        told = [abs(run.adds.value) for run in self.runs if run.adds and run.adds.value]
        return decimals(max(told)) if told else 2

    @property
    def adds(self) -> bool:
        return any(run.adds for run in self.runs)

    @property
    def drawn(self) -> int:
        return len(self.pairs)

    @cached_property
    def judged(self) -> int:
        return sum(bool(pair.grades) for pair in self.pairs)

    @cached_property
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
        agreement=agreements(campaign).get(topic.pk, AnswersApart()),
        runs=_runs(topic, drawn, pairs, _adds(shown, drawn, topic)),
        uncertainty=uncertainty_of(shown, topic.topic_id) if shown else None,
    )


def _adds(
    shown: EstimateSet | None, row: Round | None, topic: Topic
) -> dict[str, TopicContribution]:
    return contributions(shown, row.measure, topic.topic_id) if shown and row else {}


def _runs(
    topic: Topic,
    drawn_from: Round | None,
    pairs: Sequence[AnsweredPair],
    adds: Mapping[str, TopicContribution],
) -> list[TopicRun]:
    """By what they return that is relevant, most first."""
    drawn = {name.encode() for pair in pairs for name in (pair.docno, pair.other) if name}
    judged = {
        name.encode() for p in pairs if p.grades for name in (p.docno, p.other) if name
    }  # of preferences both documents
    relevant = {pair.docno.encode() for pair in pairs if pair.relevant}
    asked = topic.topic_id, topic.campaign.depth
    pooled = pooled_by_runs(drawn_from, *asked) if drawn_from else {}
    rows = []
    for run in Run.objects.filter(campaign=topic.campaign):
        top = set(pooled[run.tag] if run.tag in pooled else top_of_topic(_path(run), *asked))
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


def _path(run: Run) -> str:
    return str(Path(settings.MEDIA_ROOT) / run.file)
