"""Rounds that are estimated together with the ones before them.

Such estimates are unbiased if no round was planned from what another had found; see
`core.rounds.combining`. All rounds with a lower number take part that were drawn before it, by the
same method and from the same pool, or from one whose pairs are all in it: runs may have come in
between. One that was planned before and drawn after it does not: how many looks there will be was
told by then.
A pair keeps its probability, and a new one was out of reach of the earlier round, so that it counts
with that of the later alone (`estimation.core.rounds.combining.part_over`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.db.models import QuerySet

from estimation.core.arrays import IntArray
from estimation.core.data.pool import Pool
from estimation.core.data.scope import place_of_pairs
from estimation.core.rounds.combining import part_over
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.designs import Design
from estimation.core.sampling.samples import Sample
from estimation.models import EstimateSet, Round
from estimation.selectors import complete_batches
from estimation.services import files, pools


@dataclass(frozen=True)
class Counted:
    """A round, and how many of its batches count."""

    row: Round
    batches: int

    @property
    def part(self) -> PairRound:
        """Over the round's own pool."""
        row = self.row
        design, sample = files.path_of(row.design_file), files.path_of(row.sample_file)
        return PairRound(Design.load(design), Sample.load(sample), self.batches, row.seed)


def counted(row: Round) -> list[Counted]:
    """A drawn round, the last, and those that are estimated together with it.

    Of some of them no batch may be complete yet. What earlier batches of an adaptive round count
    for is part of what it was drawn from (`topping`).
    """
    earlier: list[Round] = []
    if row.is_of_a_union and row.pool is not None:
        pool = pools.load(row.pool)
        earlier = [each for each in _earlier(row) if not _why_not(each, row, pool)]
    return [Counted(each, complete_batches(each)) for each in (*earlier, row)]


def look(every: Sequence[Counted], own_batches: int) -> tuple[int, int]:
    """Which look estimates from rounds are, and how many were planned: batches of all of them.

    They are counted whether a round has begun or not, because how many looks there will be must
    be known before the first: it is the designs' doing, and nobody's who judges. Each complete
    batch of any of the rounds is a look at what all of them say.
    """
    *earlier, own = every
    planned = own_batches + sum(each.row.round_batches.count() for each in earlier)
    return own.batches + sum(each.batches for each in earlier), planned


def behind(row: Round, shown: EstimateSet) -> list[Counted]:
    """The same as estimates of the round had them."""
    batches = shown.all_batches
    rows = Round.objects.filter(campaign=row.campaign_id, number__in=batches)
    rows = rows.select_related("campaign", "pool").order_by("number")
    return [Counted(each, batches[each.number]) for each in rows]


def faults(row: Round, pool: Pool) -> dict[int, str]:
    """Why drawn rounds before this one do not count with it, by their number; or nothing."""
    found = {each.number: _why_not(each, row, pool) for each in _earlier(row)}
    return _of_one_chain(row, found) if row.sampling.draws == "batches" else found


def _of_one_chain(row: Round, found: dict[int, str]) -> dict[int, str]:
    """An adaptive round continues one other alone, and those that this continues."""
    counting = [number for number, why in found.items() if not why]
    at, chain = max(counting, default=0), set[int]()
    while at:
        chain.add(at)
        before = row.campaign.rounds.get(number=at)
        at = max(_counted_by(before), default=0)
    why_not = "only the latest adaptive round is continued; what is judged of it is certain here"
    return found | dict.fromkeys(set(counting) - chain, why_not)


def _counted_by(row: Round) -> list[int]:
    if not row.with_earlier:
        return []
    told: list[int] = (row.preview.get("earlier") or {}).get("counting", [])
    return told


def told(row: Round, pool: Pool) -> dict[str, Any] | None:
    """Which rounds count as well, and why others do not; None if none is asked for."""
    if not row.with_earlier:
        return None
    found = faults(row, pool)
    return {
        "counting": [number for number, why in found.items() if not why],
        "left_out": {str(number): why for number, why in found.items() if why},
    }


def _earlier(row: Round) -> QuerySet[Round]:
    rows = Round.objects.filter(campaign=row.campaign_id, number__lt=row.number)
    if row.drawn is not None:
        rows = rows.exclude(drawn__gt=row.drawn)
    return rows.exclude(pool=None).select_related("pool").order_by("number")


def _why_not(earlier: Round, row: Round, pool: Pool) -> str:
    """Why an earlier round cannot be estimated together with one from this pool; or nothing."""
    if earlier.method != row.method:
        learns = " and its probabilities followed from judgments"
        ending = learns if earlier.sampling.draws == "batches" else ""
        return f"its method is {earlier.get_method_display()}{ending}"
    if by_itself := _by_itself(earlier):
        return by_itself
    if earlier.pool is None or earlier.pool_id == row.pool_id:
        return ""
    smaller = pools.load(earlier.pool)
    if pools.kind_of(smaller) != pools.kind_of(pool):
        return "its measures are about other parts of the runs"
    try:
        place_of_pairs(smaller, pool)
    except ValueError:
        return _difference(smaller, pool)
    return ""


def _by_itself(earlier: Round) -> str:
    """Why a round counts with no later one, whatever that is; or nothing."""
    if earlier.topic_minimum > 1:
        return "its batches drew pairs of a topic together"
    if earlier.sampling.draws == "pairs" and earlier.top_up and not earlier.with_earlier:
        return "it took judged pairs for certain, so that its probabilities followed from draws"
    return "its further labels went where they pay for it" if earlier.further else ""


def _difference(smaller: Pool, pool: Pool) -> str:
    gone = sorted(set(smaller.runs) - set(pool.runs))
    if gone:
        return f"it was drawn with the run {gone[0]}, which takes part no more"
    if smaller.depth != pool.depth:
        return f"it looked {smaller.depth} ranks deep, and this one looks {pool.depth}"
    if smaller.topics != pool.topics:
        return "it was drawn from other topics"
    return "it holds documents that no run returns any more"


def parts_of(pool: Pool, own: PairRound, counted: Sequence[Counted]) -> list[PairRound]:
    """What the rounds drew, all over the pool of the last of them, which drew its ``own``."""
    *earlier, last = counted
    own = replace(own, numbers=last.row.seed)
    return [*(_over(pool, each, last.row, own.design) for each in earlier), own]


def _over(pool: Pool, counted: Counted, row: Round, like: Design) -> PairRound:
    smaller = counted.row.pool
    if smaller is None or smaller.pk == row.pool_id:
        return counted.part
    return part_over(counted.part, pool=pools.load(smaller), joined=pool, like=like)


def places_of(pool: Pool, row: Round, drawn_by: IntArray, position: IntArray) -> IntArray:
    """Where in the pool of the round what was drawn stands, from the rounds that drew it, by their
    row ids, and the positions in their own pools."""
    found = position.copy()
    rounds = {each.pk: each for each in _earlier(row)}
    for number in np.unique(drawn_by).tolist():
        smaller = rounds[number].pool if number in rounds else None
        if smaller is not None and smaller.pk != row.pool_id:
            own = drawn_by == number
            found[own] = place_of_pairs(pools.load(smaller), pool)[position[own]]
    return found
