"""What two runs return for one topic, rank by rank, with what is known of each document."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Substr

from estimation.formats.run_columns import read_columns
from estimation.models import EstimateSet, Run
from estimation.selectors import draws_behind
from judging import selectors as judging
from judging.models import Campaign, Document, Pair, Topic

SNIPPET = 240
"""Characters of a document that are shown."""


@dataclass(frozen=True)
class DrawnIn:
    """The chance with which a round drew a pair; of adaptive rounds, in that batch."""

    round: int
    batch: int
    probability: float


@dataclass(frozen=True)
class ShownDocument:
    """A document of a topic. Without ``labels`` nobody has judged it, and ``grade`` is None.

    ``grade`` is the mean of ``labels`` labels. ``counts``: whether the estimates rest on them, with
    the chances of the rounds that drew it. ``title`` and ``snippet`` are empty where there is no
    text, and ``document`` and ``pair``, the row ids, None where there is none.
    """

    docno: str
    document: int | None
    title: str
    snippet: str
    pair: int | None
    grade: float | None
    labels: int
    counts: bool
    drawn: tuple[DrawnIn, ...] = ()


@dataclass(frozen=True)
class RankedDocument:
    """``elsewhere``: its rank in the other run, None if that does not return it."""

    rank: int
    known: ShownDocument
    elsewhere: int | None


@dataclass(frozen=True)
class DocumentsCompared:
    """``first`` and ``second``: the first ``depth`` documents of the two runs.

    ``lengths``: how many documents each run returns for the topic.
    """

    topic: Topic
    tags: tuple[str, str]
    first: list[RankedDocument]
    second: list[RankedDocument]
    lengths: tuple[int, int]
    depth: int

    @property
    def in_common(self) -> int:
        """Documents that stand on both sides."""
        there = {line.known.docno for line in self.second}
        return sum(line.known.docno in there for line in self.first)

    @property
    def judged(self) -> int:
        """Different documents of either side that have labels."""
        lines = {line.known.docno: line.known for line in (*self.first, *self.second)}
        return sum(known.labels > 0 for known in lines.values())

    @property
    def documents(self) -> int:
        return len({line.known.docno for line in (*self.first, *self.second)})


def documents_compared(
    shown: EstimateSet, topic: Topic, tags: tuple[str, str], *, depth: int
) -> DocumentsCompared | None:
    """Two runs of a campaign side by side; None if it has no such runs.

    Reads what was uploaded and what was said: nothing is drawn, weighted or left out by it.
    """
    campaign = shown.round.campaign
    runs = {run.tag: run for run in Run.objects.filter(campaign=campaign, tag__in=tags)}
    if set(tags) - set(runs):
        return None
    first, second = (_list_of(runs[tag], topic.topic_id) for tag in tags)
    wanted = sorted({*first[:depth], *second[:depth]})
    known = _known(shown, campaign, topic, wanted)
    return DocumentsCompared(
        topic=topic,
        tags=tags,
        first=_ranked(first, second, known, depth),
        second=_ranked(second, first, known, depth),
        lengths=(len(first), len(second)),
        depth=depth,
    )


def _list_of(run: Run, topic_id: str) -> list[str]:
    """What a run returns for a topic, best first."""
    facts, columns = read_columns(Path(settings.MEDIA_ROOT) / run.file, ("indptr", "docnos"))
    if topic_id not in facts["topics"]:
        return []
    at = facts["topics"].index(topic_id)
    start, stop = columns["indptr"][at : at + 2].tolist()
    return [docno.decode() for docno in columns["docnos"][start:stop].tolist()]


def _ranked(
    own: Sequence[str], other: Sequence[str], known: dict[str, ShownDocument], depth: int
) -> list[RankedDocument]:
    rank = {docno: at for at, docno in enumerate(other, start=1)}
    lines = enumerate(own[:depth], start=1)
    return [RankedDocument(at, known[docno], rank.get(docno)) for at, docno in lines]


def _known(
    shown: EstimateSet, campaign: Campaign, topic: Topic, docnos: list[str]
) -> dict[str, ShownDocument]:
    texts = _texts(campaign, docnos)
    there = campaign.pairs.filter(topic=topic, docno__in=docnos, other="")
    pairs = dict(there.values_list("docno", "pk"))
    grades = _grades(there.values_list("pk", flat=True))
    drawn = _drawn(shown, topic, docnos)
    found = {}
    for docno in docnos:
        document, title, snippet = texts.get(docno, (None, "", ""))
        pair = pairs.get(docno)
        given = grades.get(pair, []) if pair else []
        found[docno] = ShownDocument(
            docno=docno,
            document=document,
            title=title,
            snippet=snippet,
            pair=pair,
            grade=float(np.mean(given)) if given else None,
            labels=len(given),
            counts=bool(given) and pair in drawn,
            drawn=tuple(drawn.get(pair, ())) if pair else (),
        )
    return found


def _texts(campaign: Campaign, docnos: list[str]) -> dict[str, tuple[int, str, str]]:
    rows: QuerySet[Document] = judging.documents(campaign).filter(docno__in=docnos)
    cut = rows.annotate(snippet=Substr("text", 1, SNIPPET + 1))
    return {
        docno: (pk, title, f"{text[:SNIPPET].rstrip()} …" if len(text) > SNIPPET else text)
        for docno, pk, title, text in cut.values_list("docno", "pk", "title", "snippet")
    }


def _grades(pairs: QuerySet[Pair, int]) -> dict[int, list[int]]:
    found = defaultdict(list)
    for label in judging.labels(pairs):
        found[label.pair].append(label.grade)
    return found


def _drawn(shown: EstimateSet, topic: Topic, docnos: list[str]) -> dict[int, list[DrawnIn]]:
    """Of the batches that the estimates rest on."""
    rows = draws_behind(shown).filter(pair__topic=topic, pair__docno__in=docnos, pair__other="")
    found: dict[int, list[DrawnIn]] = defaultdict(list)
    columns = ("pair_id", "round__number", "batch_number", "probability")
    for pair, number, batch, probability in rows.order_by("round__number").values_list(*columns):
        found[pair].append(DrawnIn(number, batch, probability))
    return found
