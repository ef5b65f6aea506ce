"""The labels that a round is estimated from, as columns in an order that knows no time."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, reduce
from typing import Self

import numpy as np

from estimation.core.arrays import BoolArray, IntArray, content_digest
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.models import Round, RoundBatch
from estimation.selectors import draws_in
from estimation.services import together
from estimation.services.together import Counted
from judging.labels import LabelColumns, PlacedPairs, label_columns
from judging.models import SeniorGrade

ALL_BATCHES = 2**31 - 1
PLACES = "round_id", "batch_number", "position"


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundLabels(LabelRows):
    """One row per label, by pair, name of the assessor, grade; ``pair`` is its place in the pool.

    ``assessor`` counts in ``names``, which are in order. ``people``: what would count without
    senior grades; None where none counts.
    """

    assessor: IntArray
    decided: BoolArray
    names: list[str]
    people: "RoundLabels | None" = None

    @classmethod
    def of(
        cls,
        row: Round,
        pool: Pool,
        counted: Sequence[Counted],
        *,
        taken_back: Collection[int] = (),
    ) -> "RoundLabels":
        """What was said of the pairs of complete batches, with those of earlier rounds that count.

        A label counts once, however many of the rounds drew its pair. ``taken_back``: see
        `judging.labels.label_columns`.
        """
        alone = len(counted) == 1
        found = label_columns(_complete(counted), taken_back=taken_back)

        def made(columns: LabelColumns) -> "RoundLabels":
            if alone:
                return cls._in_order(columns, columns.places[0])._with_chances(counted[0])
            return cls._in_order(columns, together.places_of(pool, row, *columns.places))

        of_people = found.without_seniors()
        if of_people is None:
            return made(found)
        return replace(made(found.counting()), people=made(of_people))

    @classmethod
    def _in_order(cls, found: LabelColumns, pair: IntArray) -> "RoundLabels":
        """Sorted as one number each, which is several times as fast as by columns."""
        columns = (pair, found.assessor, found.grade, found.decided.astype(np.int64))
        sizes = [1 + int(column.max(initial=0)) for column in columns]
        sizes[1] = len(found.names)
        keys = reduce(
            lambda key, part: key * part[0] + part[1], zip(sizes, columns, strict=True), 0 * pair
        )
        keys.sort()
        keys = keys[np.diff(keys, prepend=-1) > 0]
        parts = []
        for size in reversed(sizes[1:]):
            keys, part = np.divmod(keys, size)
            parts.append(part)
        decided, grade, assessor = parts
        kept = decided.astype(np.bool_)
        return cls(keys, grade, assessor=assessor, decided=kept, names=found.names)

    def _with_chances(self, counted: Counted) -> "RoundLabels":
        """With what was decided for their pairs, where further labels go where they pay.

        It was fixed with the batches, so that it is no part of the digest. Such a round counts with
        no other one (`together`).
        """
        if not counted.row.further:
            return self
        draws = draws_in({counted.row.pk: counted.batches}).exclude(repeated=None)
        found = dict(draws.values_list("position", "repeated"))  # as texts they would lose digits
        chance = np.ones(1 + int(max(self.pair.max(initial=0), max(found, default=0))))
        chance[list(found)] = list(found.values())
        return replace(self, repeated=chance[self.pair])

    def digest(self) -> str:
        """SHA-256 of all rows: equal if nothing was said since, and nothing corrected."""
        said = np.bincount(self.assessor, minlength=len(self.names)) > 0
        names = json.dumps([self.names[code] for code in np.flatnonzero(said).tolist()])
        assessor = (np.cumsum(said, dtype=np.int32) - 1)[self.assessor]
        columns = self.pair, assessor, self.grade.astype(np.int32), self.decided
        return content_digest([names.encode(), *columns])


def _complete(counted: Sequence[Counted]) -> PlacedPairs:
    """What was drawn in the complete batches of rounds, by positions in their pools; of several
    rounds by their row ids before."""
    drawn = _drawn(*map(_Drawn.of, counted))
    rounds, batch, position = drawn.places
    complete = {each.row.pk: each.batches for each in counted}
    numbers = np.array(sorted(complete))
    last = np.array([complete[number] for number in numbers.tolist()])
    kept = batch <= last[np.searchsorted(numbers, rounds)]
    return drawn.where(kept, *((position,) if len(counted) == 1 else (rounds, position)))


@dataclass(frozen=True)
class _Drawn:
    """What tells apart what was drawn for rounds: it never changes until more is drawn.

    A round that is drawn another time has another time. ``batches``: where these are drawn one by
    one, how many are complete; else 0, as all were drawn at once.
    """

    pk: int
    time: datetime | None
    sample: str
    batches: int

    @classmethod
    def of(cls, counted: Counted) -> Self:
        row = counted.row
        one_by_one = row.sampling.draws == "batches"
        return cls(row.pk, row.drawn, row.sample_file, counted.batches if one_by_one else 0)


@lru_cache(maxsize=2)
def _drawn(*rounds: _Drawn) -> PlacedPairs:
    """All draws of some rounds, or those of their complete batches, by round, batch, position.

    They are kept by a worker, and no label is: reading them takes as long as reading labels. Where
    batches are drawn one by one, those of the batches that it knows are not read again.
    """
    every = draws_in({each.pk: each.batches or ALL_BATCHES for each in rounds})
    if len(rounds) > 1 or not rounds[0].batches:
        return PlacedPairs.of(every, *PLACES)
    known, there = _latest(rounds[0].pk), _completions(rounds[0])
    if known and known[0][0] == there[: len(known[0][0])]:
        completions, found = known[0]
        more = every.filter(batch_number__gt=len(completions))
        found = found.with_more(every, more, *PLACES)
    else:
        found = PlacedPairs.of(every, *PLACES)
    known[:] = [(there, found)]
    return found


Completions = list[tuple[int, datetime | None]]


def _completions(drawn: _Drawn) -> Completions:
    """When the batches that count were complete: which tells them from others of these numbers."""
    batches = RoundBatch.objects.filter(round=drawn.pk, number__lte=drawn.batches)
    return list(batches.order_by("number").values_list("batch", "batch__completed"))


@lru_cache(maxsize=2)
def _latest(pk: int) -> list[tuple[Completions, PlacedPairs]]:
    """What was read last of a round whose batches are drawn one by one, and which these were."""
    return []


def senior_rows(row: Round, pool: Pool, counted: Sequence[Counted]) -> LabelRows:
    """The senior grades that are in force for pairs of complete batches, whether they count or not;
    one row per pair, by its place in the pool."""
    drawn = draws_in({each.row.pk: each.batches for each in counted})
    told = SeniorGrade.objects.filter(ended=None).filter(pair__in=drawn.values("pair"))
    grades = dict(told.values_list("pair_id", "grade"))
    where = drawn.filter(pair__in=list(grades)).values_list("round_id", "position", "pair_id")
    rounds, positions, pairs = np.array(list(where), dtype=np.int64).reshape(-1, 3).T
    place, first = np.unique(together.places_of(pool, row, rounds, positions), return_index=True)
    grade = np.array([grades[pair] for pair in pairs[first].tolist()], dtype=np.int64)
    return LabelRows(place, grade)
