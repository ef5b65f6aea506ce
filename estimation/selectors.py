"""Reads of rounds and their numbers, as plain data: one shape for page, REST answer and report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, reduce
from operator import or_
from typing import Any

import numpy as np
from django.db.models import Q, QuerySet
from numpy.typing import NDArray

from estimation.core.inference.equivalence import Equivalence, best_or_equivalent
from estimation.core.inference.tiers import places, tiers
from estimation.core.inference.unknown import Reason, Reasons, all_known
from estimation.core.measures.table import parse_measure
from estimation.core.planning.foretold import Forecast
from estimation.endings import still_now
from estimation.machines import MachineJudge
from estimation.models import Draw, Estimate, EstimateSet, Round
from estimation.prefixes import complete_first, complete_now
from estimation.reopened import SERVED, FreedBatch, JudgedAgain
from estimation.stored import matrices, stored_facts
from estimation.unknown import Purpose, is_bounded, name_of, purpose_of
from estimation.validity import Validity, validity_of
from judging import selectors as judging
from judging.models import Batch, Campaign, Job
from judging.stuck import stuck_ids
from judging.workers import Service, serving


def complete_batches(row: Round) -> int:
    """Complete batches in a row from the first: the prefix that estimates rest on."""
    return complete_now(row)


def told_batches(row: Round) -> int:
    """The most batches that estimates of the round have rested on; some may lack labels now."""
    return row.estimate_sets.order_by("-batches").values_list("batches", flat=True).first() or 0


def draws_of(campaign: Campaign, batches: Mapping[int, int]) -> QuerySet[Draw]:
    """What was drawn in the first batches of rounds, by their numbers.

    A pair that several of the rounds drew is there several times.
    """
    wanted = Q(pk__in=[])
    for number, last in batches.items():
        wanted |= Q(round__number=number, batch_number__lte=last)
    return Draw.objects.filter(wanted, round__campaign=campaign)


def draws_in(batches: Mapping[int, int]) -> QuerySet[Draw]:
    """The same, by row ids of the rounds: databases know how many draws these have."""
    wanted = (Q(round=pk, batch_number__lte=last) for pk, last in batches.items())
    return Draw.objects.filter(reduce(or_, wanted, Q(pk__in=[])))


def draws_behind(shown: EstimateSet) -> QuerySet[Draw]:
    """What was drawn in the batches that estimates rest on."""
    return draws_of(shown.round.campaign, shown.all_batches)


def rounds_of(campaign: Campaign) -> QuerySet[Round]:
    return Round.objects.filter(campaign=campaign).select_related("run", "baseline", "pool")


def current_round(campaign: Campaign) -> Round | None:
    """The round that pages show when none is named: the last drawn one, else the last."""
    drawn = rounds_of(campaign).exclude(state__in=Round.NOT_DRAWN)
    return drawn.order_by("-number").first() or last_round(campaign)


def last_round(campaign: Campaign) -> Round | None:
    return rounds_of(campaign).order_by("-number").first()


@dataclass(frozen=True)
class RoundBatchProgress:
    number: int
    state: str
    pairs: int
    finished: int
    opened: datetime | None
    completed: datetime | None


@dataclass(frozen=True)
class RoundProgress:
    """How far a round is, and whether its numbers are up to date."""

    batches: list[RoundBatchProgress]
    used: int
    pairs: int
    finished: int
    stuck: int
    recompute: Job | None
    again: JudgedAgain | None = None

    @cached_property
    def workers(self) -> Service:
        return serving("recompute")

    @property
    def complete(self) -> int:
        return sum(batch.state == Batch.State.COMPLETE for batch in self.batches)


def round_progress(row: Round) -> RoundProgress:
    links = row.round_batches.select_related("batch").order_by("number")
    every = [(link.number, judging.progress_of(link.batch)) for link in links]
    ahead = judging.finished_ahead([batch for _, batch in every])
    batches = [
        RoundBatchProgress(
            number,
            batch.state,
            batch.pairs,
            ahead.get(batch.id, batch.finished),
            batch.opened,
            batch.completed,
        )
        for number, batch in every
        if batch.state != Batch.State.PREPARING
    ]
    used = complete_first(batch.state for _, batch in every)
    return RoundProgress(
        batches=batches,
        used=used,
        pairs=sum(batch.pairs for batch in batches),
        finished=sum(batch.finished for batch in batches),
        stuck=len(stuck_ids(row.campaign)),
        recompute=judging.job_of("recompute", row.pk),
        again=_judged_again(row, batches, used),
    )


def judged_again(row: Round) -> JudgedAgain | None:
    """What of a round is judged again, as work was excluded; None where nothing is."""
    return round_progress(row).again


def _judged_again(
    row: Round, batches: Sequence[RoundBatchProgress], used: int
) -> JudgedAgain | None:
    served = [each for each in batches if each.state in SERVED and each.number > used]
    told = told_batches(row) if served else 0
    freed = [
        FreedBatch(each.number, each.pairs - each.finished)
        for each in served
        if each.number <= told and each.pairs > each.finished
    ]
    if not freed:
        return None
    holding = judging.exclusions(row.campaign).filter(ended=None)
    return JudgedAgain(freed, used, sorted(str(each.assessor) for each in holding), still_now(row))


@dataclass(frozen=True)
class RankedRun:
    """A row of the ranking.

    ``tier``: 1 the best, with the places ``first`` to ``last`` that its runs take up; inside of it
    no order is claimed, and ``rank``, the place by estimate, says nothing. ``ranks_before``: the
    possible ranks of the estimates before (None: new), and ``moved``: ranks gained since then, 0
    unless those that were possible then and those that are now exclude each other.
    ``as_good_as_leader``: no run is surely better, so that it may be the best.

    A run whose value is not known has neither value nor rank; ``unknown`` names the reason, and
    ``unknown_why`` says it with what would mend it. Its possible ranks and its interval hold.
    """

    tag: str
    rank: int | None
    rank_low: int
    rank_high: int
    value: float | None
    se: float | None
    low: float
    high: float
    support: float
    sample_size: float
    estimator: str
    as_good_as_leader: bool
    moved: int | None
    late: bool = False
    unknown: str | None = None
    unknown_why: str | None = None
    tier: int | None = None
    first: int | None = None
    last: int | None = None
    ranks_before: tuple[int, int] | None = None

    @property
    def open_part(self) -> bool:
        """Whether documents that count for it could not be drawn."""
        return self.support < 1.0


@dataclass(frozen=True)
class RankingTable:
    """The runs under one measure, from one estimate set: tier by tier.

    In a tier they stand by their possible ranks, then by tag, so that nothing in their order hangs
    on chance; so do those whose value is not known, which come last. ``estimated`` has
    the numbers of all runs, for known differences between values that are not. ``pairs`` compares
    every two runs, read once with the table.
    """

    round: Round
    estimate_set: EstimateSet
    measure: str
    measures: list[str]
    rows: list[RankedRun]
    estimated: Mapping[str, float] = field(default_factory=dict)
    pairs: "Pairwise | None" = None

    @property
    def known(self) -> list[RankedRun]:
        """The runs whose value is known, in order of estimate."""
        return sorted((row for row in self.rows if row.rank), key=lambda row: row.rank or 0)

    @property
    def by_estimate(self) -> list[RankedRun]:
        """All runs, those whose value is not known last."""
        return [*self.known, *self.unknown]

    @property
    def unknown(self) -> list[RankedRun]:
        return [row for row in self.rows if row.unknown]

    @property
    def unknown_rivals(self) -> list[RankedRun]:
        """Runs whose value is not known and that may be the best."""
        return [row for row in self.unknown if row.rank_low == 1]

    @property
    def purpose(self) -> Purpose:
        """What the sample was made for."""
        late = [row.tag for row in self.late]
        return purpose_of(self.round, self.estimate_set, self.measure, late)

    @property
    def supported(self) -> bool:
        """Whether the sample covers all weight of all runs."""
        return all(row.support >= 1.0 for row in self.rows)

    @property
    def bounded(self) -> bool:
        return is_bounded(self.measure)

    @property
    def lower_is_better(self) -> bool:
        """Whether the run with the smallest value is the best."""
        return parse_measure(self.measure).lower_is_better

    @property
    def interval(self) -> str:
        """The kind of the intervals, verdicts and possible ranks."""
        kind: str = self.estimate_set.intervals.get(self.measure, Round.Interval.STUDENT)
        return kind

    @property
    def interval_name(self) -> str:
        """Who it is called after."""
        return str(Round.Interval(self.interval).label).partition(":")[0]

    @property
    def guaranteed(self) -> bool:
        """Whether they hold for any sample, and not only about."""
        return bool(self.interval != Round.Interval.STUDENT)

    @property
    def validity(self) -> Validity:
        return validity_of(self.estimate_set)

    @property
    def late(self) -> list[RankedRun]:
        return [row for row in self.rows if row.late]


def latest_estimates(row: Round) -> EstimateSet | None:
    """None where they rest on batches that are not complete any more: work in them was excluded."""
    found = row.estimate_sets.order_by("-number").first()
    return found if found and found.batches <= complete_batches(row) else None


def measures_of(row: Round) -> list[str]:
    return [row.measure, *row.reported]


def ranking_table(
    row: Round, measure: str | None = None, estimate_set: EstimateSet | None = None
) -> RankingTable | None:
    """The ranking by a measure (default: the round's); None before the first batch is complete."""
    shown = estimate_set or latest_estimates(row)
    measure = measure or row.measure
    if shown is None or measure not in measures_of(row):
        return None
    rows = Estimate.objects.filter(estimate_set=shown, measure=measure, primary=True)
    estimates = sorted(rows.select_related("run"), key=lambda each: (each.rank or 0, each.run.tag))
    late = [estimate.run.tag for estimate in estimates if estimate.late]
    purpose = purpose_of(row, shown, measure, late)
    before = _ranks_before(shown, measure)
    pairs = pairwise(shown, measure)
    known = [estimate.run.tag for estimate in estimates if not estimate.unknown]
    divided = _tiers(pairs, known)
    ranked = [_ranked(each, purpose, before, divided) for each in estimates]
    return RankingTable(
        row,
        shown,
        measure,
        measures_of(row),
        rows=sorted(ranked, key=_place),
        estimated={estimate.run.tag: estimate.value for estimate in estimates},
        pairs=pairs,
    )


def _place(row: RankedRun) -> tuple[bool, int, int, int, str]:
    """By what is decided alone: tiers, possible ranks, tags. Values have no part in it."""
    return (row.tier is None, row.tier or 0, row.rank_low, row.rank_high, row.tag)


def _ranked(
    estimate: Estimate,
    purpose: Purpose,
    before: dict[int, tuple[int, int]],
    divided: dict[str, tuple[int, int, int]],
) -> RankedRun:
    known, tag = not estimate.unknown, estimate.run.tag
    ranks, earlier = (estimate.rank_low or 0, estimate.rank_high or 0), before.get(estimate.run_id)
    tier, first, last = divided.get(tag, (None, None, None))
    return RankedRun(
        tag=tag,
        rank=estimate.rank or 0 if known else None,
        rank_low=ranks[0],
        rank_high=ranks[1],
        value=estimate.value if known else None,
        se=estimate.se if known else None,
        low=estimate.low,
        high=estimate.high,
        support=estimate.support,
        sample_size=estimate.sample_size,
        estimator=estimate.estimator,
        as_good_as_leader=known and ranks[0] == 1,
        moved=_moved(earlier, ranks) if known and earlier else None,
        late=estimate.late,
        unknown=name_of(estimate.unknown),
        unknown_why=purpose.of_value(estimate.unknown, tag),
        tier=tier,
        first=first,
        last=last,
        ranks_before=earlier if known else None,
    )


def _moved(before: tuple[int, int], now: tuple[int, int]) -> int:
    """Ranks gained for sure: the least that possible ranks of then and now leave open.

    True ranks do not move with the judgments. Possible ranks only exclude each other where the runs
    are others than before, or where one of them is wrong.
    """
    return max(before[0] - now[1], 0) - max(now[0] - before[1], 0)


def _tiers(pairs: "Pairwise", known: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    """The tier of each run whose value is known, and the places that the tier takes up."""
    numbers = pairs.tiers(known)
    columns = zip(numbers.tolist(), *(each.tolist() for each in places(numbers)), strict=True)
    return {tag: found for tag, found in zip(pairs.runs, columns, strict=True) if found[0]}


def _ranks_before(shown: EstimateSet, measure: str) -> dict[int, tuple[int, int]]:
    before = EstimateSet.objects.filter(round=shown.round_id, number=shown.number - 1)
    rows = Estimate.objects.filter(estimate_set__in=before, measure=measure, primary=True)
    known = rows.filter(unknown=Reason.KNOWN)
    ranks = known.values_list("run_id", "rank_low", "rank_high")
    return {run: (low or 0, high or 0) for run, low, high in ranks}


@dataclass(frozen=True, eq=False)
class Pairwise:
    """Comparisons of every two runs; rows and columns in the order of ``runs``.

    ``verdicts``: 1 where the row's run is surely better, -1 surely worse, 0 undecided (over
    all pairs at once). ``margin``: half width of the 95 % interval of one difference taken alone.
    ``unknown``: why a difference is not known, a `Reason`. ``by_topic``: what each of ``topics``
    (a row) contributes to the runs' values; old estimates name none: they are all of the campaign,
    in the pool's order. ``forecast``: what was foretold with them, and ``until`` how many pairs are
    judged when two runs are told apart (`Forecast.until`); of the goal's measure alone, as
    ``equivalence``, which is there if some differences do not matter. ``judged``: how many judged
    pairs say something of each run in each topic; None in older files.
    """

    measure: str
    runs: list[str]
    covariance: NDArray[np.float64]
    margin: NDArray[np.float64]
    adjusted_p: NDArray[np.float64]
    verdicts: NDArray[np.int8]
    unknown: Reasons
    by_topic: NDArray[np.float64]
    topics: Sequence[str] = ()
    forecast: Forecast | None = None
    until: NDArray[np.float64] | None = None
    equivalence: Equivalence | None = None
    judged: NDArray[np.int32] | None = None

    @property
    def equivalent(self) -> NDArray[np.bool_]:
        """Which pairs differ by no more than what is negligible, for sure."""
        if self.equivalence is None:
            return np.zeros(self.verdicts.shape, dtype=np.bool_)
        return self.equivalence.pairs(self.unknown)

    @property
    def shown_margin(self) -> NDArray[np.float64]:
        """The margins of what is known; NaN elsewhere."""
        return np.where(self.unknown == Reason.KNOWN, self.margin, np.nan)

    def tiers(self, known: Sequence[str]) -> NDArray[np.int64]:
        """The tier of each run, 1 the best; 0 for runs that are not among the known."""
        return tiers(self.verdicts, np.isin(self.runs, known))

    @property
    def enough(self) -> list[str]:
        """Runs that are surely the best, or at most negligibly worse."""
        good = best_or_equivalent(self.verdicts, self.equivalent)
        return [tag for tag, is_good in zip(self.runs, good.tolist(), strict=True) if is_good]

    def verdict(self, first: str, second: str) -> int:
        return int(self.verdicts[self.runs.index(first), self.runs.index(second)])

    def within(self, first: str, second: str) -> float:
        """By how much two equivalent runs differ at most; 0 for others."""
        at = self.runs.index(first), self.runs.index(second)
        return self.equivalence.within if self.equivalence and self.equivalent[at] else 0.0

    def reason(self, first: str, second: str) -> int:
        """Why the difference of two runs is not known, a `Reason`."""
        return int(self.unknown[self.runs.index(first), self.runs.index(second)])


def pairwise(estimate_set: EstimateSet, measure: str) -> Pairwise:
    facts = stored_facts(estimate_set)
    index = facts["measures"].index(measure)
    fields = ("covariance", "margin", "adjusted_p", "verdicts", "by_topic")
    wanted, unknown = [f"{name}_{index}" for name in fields], f"unknown_{index}"
    further = ("until", "margin_low", "margin_high", "judged")
    more = [unknown, *(f"{name}_{index}" for name in further)]
    arrays = matrices(estimate_set, wanted, optional=more)
    runs, told = list(facts["runs"]), None if index else facts.get("forecast")
    return Pairwise(
        measure,
        runs,
        unknown=arrays.get(unknown, all_known(len(runs), len(runs))),  # older files know all
        topics=facts.get("topics", ()),
        forecast=Forecast.of_facts(told) if told else None,
        until=arrays.get(f"until_{index}"),
        equivalence=_equivalence(facts, arrays, index),
        judged=arrays.get(f"judged_{index}"),
        **{name: arrays[f"{name}_{index}"] for name in fields},
    )


def _equivalence(
    facts: Mapping[str, Any], arrays: Mapping[str, Any], index: int
) -> Equivalence | None:
    low, high = (arrays.get(f"margin_{end}_{index}") for end in ("low", "high"))
    within = facts.get("negligible") or 0.0
    return Equivalence(within, low, high) if low is not None and high is not None else None


def label_comparison(estimate_set: EstimateSet, measure: str) -> dict[str, Any] | None:
    """What other numbers of labels per pair would give (a `LabelComparison`), where it is known."""
    found: dict[str, Any] | None = stored_facts(estimate_set).get("labels", {}).get(measure)
    return found


def label_noise(estimate_set: EstimateSet, measure: str) -> dict[str, float]:
    """The share of people's disagreement in the variance of each run, where it is known."""
    facts = stored_facts(estimate_set)
    shares = facts.get("noise", {}).get(measure) or []
    named = zip(facts["runs"], shares, strict=False)
    return {run: share for run, share in named if share is not None}


def label_quality(estimate_set: EstimateSet) -> dict[str, Any]:
    """What the worker found of the labels behind estimates; empty where it found nothing, and
    as long as it has not looked."""
    return estimate_set.quality or {}


def machines_compared(row: Round) -> list[tuple[str, dict[str, Any]]]:
    """Machine judges that were held against the judgments of a round: name, and what was found."""
    judges = MachineJudge.objects.filter(campaign=row.campaign_id).order_by("pk")
    return [
        (each.name, each.agreement) for each in judges if each.agreement.get("round") == row.number
    ]
