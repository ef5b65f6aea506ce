"""Where a campaign is: what every page for its organizers says something of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from django.db.models import F, Max, Sum
from django.utils import timezone

from estimation import selectors, work
from estimation.endings import still_because
from estimation.material import taking_part
from estimation.models import EstimateSet, Round, RoundBatch
from estimation.others import LeftToOthers, left_to_others
from estimation.pacing import expected_pairs
from judging import selectors as judging
from judging.coming import OpenLinks, open_links
from judging.models import Batch, BatchPair, Campaign
from judging.pace import Pace, pace
from judging.stuck import how_many_have_come, how_many_judge
from judging.workers import Service, unserved

A_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Action:
    """A link: name of the URL, its arguments after the slug, and the words."""

    url: str
    label: str
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True)
class Situation:
    """What the next step, cards and notices rest on: each fact is read once, when it is asked for.

    ``row`` is the current round, ``planned`` the last one, if it is not drawn yet. Whoever has
    looked already gives what was ``seen``: the progress of a round, by its row id.
    """

    campaign: Campaign
    seen: Mapping[int, selectors.RoundProgress] = field(default_factory=dict)

    @cached_property
    def _rounds(self) -> list[Round]:
        """Without what is long in them, which next to no rule asks for."""
        rows = selectors.rounds_of(self.campaign).defer("preview", "provenance")
        found = list(rows.order_by("-number"))
        for row in found:
            row.campaign = self.campaign
        return found

    @cached_property
    def row(self) -> Round | None:
        drawn = (row for row in self._rounds if row.is_drawn)
        return next(drawn, self._rounds[0] if self._rounds else None)

    @property
    def planned(self) -> Round | None:
        last = self._rounds[0] if self._rounds else None
        return None if last is None or last.is_drawn else last

    @property
    def paused(self) -> Round | None:
        """The last of the rounds that pause, where no other one goes on."""
        going = [row for row in self._rounds if row.is_going]
        return going[0] if going and all(row.is_paused for row in going) else None

    @property
    def still(self) -> str:
        """Why nothing is judged, though a round has not ended; nothing where one goes on."""
        reasons = [still_because(row) for row in self._rounds if row.is_going]
        return reasons[0] if reasons and all(reasons) else ""

    @cached_property
    def counting(self) -> list[Round]:
        """Earlier rounds that count with the current one and of which more is to be judged."""
        if self.row is None or not self.row.is_of_a_union or not self.drawn:
            return []
        plan = Round.objects.filter(pk=self.row.pk)
        numbers = plan.values_list("preview__earlier__counting", flat=True).first() or []
        links = RoundBatch.objects.filter(round__campaign=self.campaign, round__number__in=numbers)
        lacking = links.exclude(batch__state__in=[Batch.State.COMPLETE, Batch.State.DROPPED])
        rounds = set(lacking.values_list("round", flat=True)) if numbers else set()
        return [row for row in reversed(self._rounds) if row.pk in rounds]

    @property
    def drawn(self) -> bool:
        return self.row is not None and self.row.is_drawn

    @cached_property
    def material(self) -> judging.Material:
        return judging.material(self.campaign)

    @cached_property
    def runs(self) -> int:
        return taking_part(self.campaign).count()

    @cached_property
    def progress(self) -> selectors.RoundProgress | None:
        if self.row is None or not self.drawn:
            return None
        return self.seen.get(self.row.pk) or selectors.round_progress(self.row)

    @cached_property
    def told(self) -> Round | None:
        """The last other round with estimates: what is known while the current one has none."""
        sets = EstimateSet.objects.filter(round__campaign=self.campaign)
        rounds = set(sets.values_list("round", flat=True))
        return next((row for row in self._rounds if row.pk in rounds and row != self.row), None)

    @cached_property
    def assessors(self) -> int:
        """Who is handed pairs: those whose work is excluded are not."""
        return how_many_judge(self.campaign)

    @property
    def few(self) -> bool:
        """Whether there are fewer than the pairs want labels, who may still come left aside."""
        return self.assessors < max(1, self.labels_wanted)

    @cached_property
    def crowd(self) -> OpenLinks:
        """Who may come by links: asked for where there are few."""
        return open_links(self.campaign)

    @cached_property
    def others(self) -> LeftToOthers | None:
        """What waits for labels of others, where enough people may judge: of the last round that
        does, as an earlier one may still go on when the current one has ended."""
        return None if self.few else next(filter(None, map(left_to_others, self._rounds)), None)

    @cached_property
    def awaited(self) -> int:
        """Assessors who are invited, where none has come and nothing is judged yet."""
        if self.judged or not self.assessors or how_many_have_come(self.campaign):
            return 0
        return self.assessors

    @cached_property
    def unserved(self) -> list[Service]:
        return unserved()

    @cached_property
    def failed(self) -> list[work.FailedWork]:
        return work.failed(self.campaign)

    @cached_property
    def pace(self) -> Pace | None:
        """Told while a round is judged."""
        going = self.row is not None and self.drawn and not self.row.has_ended
        return pace(self.campaign) if going else None

    @property
    def silent_since(self) -> datetime | None:
        """When somebody last judged, or could begin to, if that was later; None while no round is
        judged."""
        if self.pace is None or self.progress is None or self.row is None:
            return None
        begun = min((each.opened for each in self.progress.batches if each.opened), default=None)
        since = max(filter(None, (begun, self.pace.latest)), default=None)
        if since is None or timezone.now() - since > A_DAY:  # else it makes no difference
            since = max(filter(None, (since, self._could_begin)), default=None)
        return since

    @property
    def _could_begin(self) -> datetime | None:
        """When the round was there, and the campaign was opened, or opened again: the first who
        comes then opens a batch."""
        opened = self.campaign.audit.filter(action="campaign open").order_by("-pk")
        at = opened.values_list("created", flat=True).first()
        return max(filter(None, (at, self.row.drawn if self.row else None)), default=None)

    @cached_property
    def labels_wanted(self) -> int:
        """Labels that some pairs of the current round want."""
        if self.row is None or not self.row.further or not self.drawn:
            return self.row.most_labels if self.row else 0
        asked = BatchPair.objects.filter(batch__in=self.row.round_batches.values("batch"))
        return int(asked.aggregate(most=Max("labels"))["most"] or 0)

    @property
    def expected(self) -> int:
        """Pairs of the current round; what is not planned yet as its budget foresees it."""
        drawn = self.progress.pairs if self.progress else 0
        going = self.row is not None and not self.row.has_ended
        if self.row is None or not going or self.row.sampling.draws != "batches":
            return drawn
        if (paced := expected_pairs(self.row)) is not None:
            return max(drawn, paced)
        foreseen = min(self.row.budget, self.row.preview.get("eligible_pairs", self.row.budget))
        return max(drawn, foreseen if self.row.costs == Round.Costs.EQUAL else 0)

    @property
    def foresees(self) -> bool:
        """Whether some of the expected pairs belong to batches that are not planned yet."""
        return self.progress is not None and self.expected > self.progress.pairs

    @property
    def of_round(self) -> int | None:
        """The current round, whose pairs are counted, where another one may be on show."""
        drawn = [row.number for row in self._rounds if row.is_drawn]
        return drawn[0] if len(drawn) > 1 else None

    @property
    def judged(self) -> int:
        return self.progress.finished if self.progress else 0

    @property
    def days_left(self) -> float | None:
        """Until the current round is judged, at the pace of the last days; None if untold, or
        while it pauses."""
        if self.row is None or self.pace is None or self.row.is_paused:
            return None
        each = self.row.labels_each
        said = _said_of_unfinished(self.row) if each > 1.0 else 0
        return self.pace.days_for(max(0.0, (self.expected - self.judged) * each - said))


def _said_of_unfinished(row: Round) -> int:
    """Labels of its pairs that want more of them."""
    batches = row.round_batches.filter(batch__state=Batch.State.OPEN).values("batch")
    asked = BatchPair.objects.filter(batch__in=batches, pair__judged__lt=F("labels"))
    found = asked.filter(pair__decided=False).aggregate(said=Sum("pair__judged"))
    return int(found["said"] or 0)
