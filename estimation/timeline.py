"""The rounds of a campaign as they followed one another, and what can be done with each now.

Read in six statements at most, however many rounds and batches there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, takewhile

from django.db.models import QuerySet
from django.utils import timezone

from estimation.endings import ended_at, standing, still_because
from estimation.models import EstimateSet, Round, RoundBatch
from estimation.scales import Tick, ticks_between
from estimation.services.extending import why_not
from judging import selectors as judging
from judging.models import Batch, Campaign
from judging.pace import pace

LEAST_WIDTH = 1.5
"""Percent of the axis that the bar of a short round takes, to be seen."""


@dataclass(frozen=True)
class Slice:
    """A batch on the page: ``width`` and ``done`` in percent of the strip."""

    number: int
    state: str
    pairs: int
    finished: int
    x: float
    width: float
    done: float


@dataclass(frozen=True)
class Follower:
    """A round that rests on the judgments of another one, and on how many of its batches."""

    number: int
    batches: int
    certain: bool


@dataclass(frozen=True)
class RoundLine:
    """``start`` to ``end`` is from the draw to the end of the round; to now, if it goes on, and to
    the last judgment where the campaign does not. ``x`` and ``width`` place it on the axis of all
    rounds, in percent. ``counts`` are rounds whose judgments count in this one, ``counted`` drawn
    ones in which its own do. ``not_extended`` says why it cannot be.
    """

    round: Round
    start: datetime | None
    end: datetime | None
    slices: list[Slice]
    complete: int
    pairs: int
    finished: int
    counts: list[Follower]
    not_extended: str
    counted: list[Follower] = field(default_factory=list)
    x: float = 0.0
    width: float = 0.0

    @property
    def batches(self) -> int:
        """Planned ones of a round that goes on included, as its budget foresees them."""
        row = self.round
        goes_on = row.sampling.draws == "batches" and row.is_going
        return max(len(self.slices), -(-row.budget // row.batch_size) if goes_on else 0)

    @property
    def state(self) -> str:
        return standing(self.round)

    @property
    def still(self) -> str:
        """Why it stands still, though it has not ended."""
        return still_because(self.round)

    @property
    def can_pause(self) -> bool:
        return self.round.is_going and not self.round.is_paused

    @property
    def can_end(self) -> bool:
        return self.round.is_going and self.complete > 0

    @property
    def extra(self) -> int:
        """With how many pairs the form for more begins."""
        return max(self.round.budget, 1)


@dataclass(frozen=True)
class Timeline:
    """Latest first; ``first`` and ``last`` are the ends of the axis, None without a draw.

    ``ticks`` are dates or times of day between them.
    """

    lines: list[RoundLine]
    first: datetime | None
    last: datetime | None
    ticks: list[Tick] = field(default_factory=list)


def timeline(campaign: Campaign) -> Timeline:
    rounds = list(_rounds(campaign))
    for row in rounds:
        row.campaign = campaign
    batches, behind, named = _batches(campaign), _behind(campaign), _named(rounds)
    until, ahead = _until(campaign, rounds), _ahead(batches.values())
    lines = [
        _line(
            row,
            batches.get(row.pk, []),
            ahead,
            _counts(row, behind.get(row.pk), *named.get(row.pk, ([], {}))),
            until,
        )
        for row in rounds
    ]
    counted = {line.round.number: line.counted for line in lines}
    for line in lines:
        for each in line.counts:
            if line.round.is_drawn and each.number in counted:
                told = Follower(line.round.number, each.batches, each.certain)
                counted[each.number].append(told)
    starts = [line.start for line in lines if line.start]
    first = min(starts, default=None)
    last = max((line.end for line in lines if line.end), default=None)
    ticks = ticks_between(first, last) if first and last else []
    return Timeline([_placed(line, first, last) for line in lines], first, last, ticks)


def _rounds(campaign: Campaign) -> QuerySet[Round]:
    rows = Round.objects.filter(campaign=campaign).select_related("run", "baseline")
    return rows.defer("preview", "provenance", "design").order_by("-number")


def _named(rounds: Sequence[Round]) -> Mapping[int, tuple[list[int], dict[str, int]]]:
    """Of rounds that rest on others: which count, and how many batches of which are certain.

    Read out of their previews where they lie, which are long; not at all where no round does.
    """
    resting = [row.pk for row in rounds if row.with_earlier or row.top_up]
    if not resting:
        return {}
    shown = ("pk", "preview__earlier__counting", "preview__top_up__batches")
    found = Round.objects.filter(pk__in=resting).values_list(*shown)
    return {pk: (counting or [], certain or {}) for pk, counting, certain in found}


def _batches(campaign: Campaign) -> Mapping[int, list[RoundBatch]]:
    rows = RoundBatch.objects.filter(round__campaign=campaign).select_related("batch")
    released = rows.exclude(batch__state=Batch.State.PREPARING).order_by("number")
    found: dict[int, list[RoundBatch]] = {}
    for each in released:
        found.setdefault(each.round_id, []).append(each)
    return found


def _ahead(of_rounds: Iterable[Sequence[RoundBatch]]) -> Mapping[int, int]:
    """How many pairs of batches to come are judged already, by batch: of later rounds."""
    later = [links for links in of_rounds if links[0].batch.number > 1]
    return judging.finished_ahead([judging.progress_of(each.batch) for each in chain(*later)])


def _behind(campaign: Campaign) -> Mapping[int, EstimateSet]:
    """The latest estimates of rounds that count earlier ones, without what is long in them."""
    rows = EstimateSet.objects.filter(round__campaign=campaign, round__with_earlier=True)
    rows = rows.order_by("round", "number")
    return {each.round_id: each for each in rows.only("round", "number", "batches", "earlier")}


def _until(campaign: Campaign, rounds: Sequence[Round]) -> datetime | None:
    """To where the bars of rounds go that have not ended."""
    if campaign.state == Campaign.State.OPEN or not any(row.is_going for row in rounds):
        return timezone.now()
    return pace(campaign).latest


def _line(
    row: Round,
    links: Sequence[RoundBatch],
    ahead: Mapping[int, int],
    counts: list[Follower],
    until: datetime | None,
) -> RoundLine:
    states = [each.batch.state for each in links]
    complete = len(list(takewhile(lambda state: state == Batch.State.COMPLETE, states)))
    slices = _slices(links, ahead)
    return RoundLine(
        round=row,
        start=row.drawn,
        end=_end(row, links, until),
        slices=slices,
        complete=complete,
        pairs=sum(each.pairs for each in slices),
        finished=sum(each.finished for each in slices),
        counts=counts,
        not_extended=why_not(row, complete=complete),
    )


def _end(row: Round, links: Sequence[RoundBatch], until: datetime | None) -> datetime | None:
    if row.drawn is None:
        return None
    if not row.has_ended:
        return max(row.drawn, until or row.drawn)
    done = [each.batch.completed for each in links if each.batch.completed]
    return ended_at(row) or max(done, default=row.drawn)


def _counts(
    row: Round, shown: EstimateSet | None, counting: Sequence[int], certain: Mapping[str, int]
) -> list[Follower]:
    """Of which rounds judgments count with this one: as its estimates say, else its preview, which
    tells it for good of an adaptive round that goes on with others."""
    if row.top_up and not row.is_of_a_union:
        is_certain = not row.with_earlier
        return [Follower(int(number), each, is_certain) for number, each in certain.items()]
    if shown is not None:
        return [Follower(int(number), each, False) for number, each in shown.earlier.items()]
    return [Follower(number, 0, False) for number in counting]


def _slices(links: Sequence[RoundBatch], ahead: Mapping[int, int]) -> list[Slice]:
    number = max(1, len(links))
    found = []
    for at, link in enumerate(links):
        batch = link.batch
        begun = batch.state != Batch.State.WAITING
        finished = ahead.get(batch.pk, judging.progress_of(batch).finished)
        width = 100.0 / number
        done = width * finished / batch.pair_count if batch.pair_count else width * begun
        found.append(
            Slice(
                link.number, batch.state, batch.pair_count, finished,
                round(at * width, 3), round(width, 3), round(done, 3),
            )
        )  # fmt: skip
    return found


def _placed(line: RoundLine, first: datetime | None, last: datetime | None) -> RoundLine:
    if line.start is None or line.end is None or first is None or last is None:
        return line
    whole = (last - first).total_seconds()
    at = 100.0 * (line.start - first).total_seconds() / whole if whole else 0.0
    width = 100.0 * (line.end - line.start).total_seconds() / whole if whole else 100.0
    width = max(width, LEAST_WIDTH)
    at = min(at, 100.0 - width)
    return replace(line, x=round(at, 3), width=round(width, 3))
