"""How good the labels are that estimates rest on; worked out after them, and stored beside them.

Agreement, what is told of every assessor, and what the ranking would be if the labels of a pair
were put together in another way. It reads the labels and changes none, and nothing of it goes into
an estimate, a design or a plan: it is told to organizers, who decide.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from django.db import transaction
from django.db.models import Count, Max

from estimation.core.arrays import FloatArray, IntArray
from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.estimates.agreement import Bounded
from estimation.core.inference.orders import kendall_tau
from estimation.core.labels.aggregates import (
    adjusted_mean,
    majority,
    most_likely,
    rows_of_grades,
)
from estimation.core.labels.dawid_skene import DawidSkene, dawid_skene
from estimation.core.labels.ratings import Ratings
from estimation.core.labels.severity import Severity, severity
from estimation.core.labels.two_raters import every_two, weighted_kappa
from estimation.core.sampling.interval_kinds import IntervalKind
from estimation.models import EstimateSet, Round
from estimation.selectors import complete_batches
from estimation.services import estimates, taken_back, together
from estimation.services.agreement_facts import (
    LabeledPairs,
    agreement_facts,
    interval,
    number,
    numbers,
    ratings_of,
)
from estimation.services.collections import Gathered
from estimation.services.round_labels import RoundLabels, senior_rows
from estimation.services.taken_back import known_values
from judging.models import SeniorGrade
from judging.services import jobs

PSEUDO, TOLERANCE, STEPS = 0.5, 1e-6, 300
"""Of Dawid and Skene's model: half a judgment in every cell, until it hardly moves."""
LEAST_COUPLE, MOST_COUPLES = 10, 100
"""Pairs that two people have in common to be compared, and how many couples are told of."""
NO_SENIORS = [0, 0]
LEAST_COMPETENCE = 20
"""Pairs in common with others, from which the model's word on a person is told."""


def look(job: jobs.Running) -> None:
    """The job: what labels are like is kept beside the latest estimates of the round. Idempotent.

    Where labels have changed since, or batches were opened again until none is complete, it leaves
    that to the estimates that are due. Senior grades
    that do not count, and work that is excluded, change no label, so that it is told by itself
    which ones it has seen.
    """
    row = Round.objects.select_related("campaign", "pool").get(pk=job.target)
    shown = row.estimate_sets.last()
    if shown is None or not row.is_drawn or complete_batches(row) == 0:
        return
    seniors, aside = _seniors(row), taken_back.seen(row)
    if shown.quality is not None and _has_seen(shown.quality, seniors, aside):
        return
    inputs = estimates.gather(row, job)
    if shown.label_digest != inputs.gathered.label_digest:
        return
    told = senior_rows(row, inputs.collection.pool, together.behind(row, shown))
    found = quality(inputs.gathered, inputs.joined, told, interval=cast(IntervalKind, row.interval))
    if found and seniors != NO_SENIORS:
        found["seniors"] = seniors
    if aside["exclusions"]:
        found["excluded"] = aside | {"ways": taken_back.facts(row, shown, inputs)}
    with transaction.atomic():
        job.fence()
        EstimateSet.objects.filter(pk=shown.pk).update(quality=found)


def _has_seen(found: Mapping[str, Any], seniors: list[int], aside: Mapping[str, Any]) -> bool:
    told = found.get("excluded", taken_back.NOTHING)
    seen = {name: told[name] for name in taken_back.NOTHING}
    return (found.get("seniors", NO_SENIORS), seen) == (seniors, aside)


def _seniors(row: Round) -> list[int]:
    """How many senior grades are in force in the campaign, and which is the latest."""
    there = SeniorGrade.objects.filter(pair__campaign=row.campaign_id, ended=None).order_by()
    found = there.aggregate(count=Count("pk"), last=Max("pk"))
    return [found["count"], found["last"] or 0]


def quality(
    gathered: Gathered, joined: Pool, seniors: LabelRows, *, interval: IntervalKind
) -> dict[str, Any]:
    """Plain facts for pages, answers and reports; empty as long as no person gave a label.

    People are told of by what they said, whether a senior grade counts in its place or not. Runs
    are estimated only where labels could be put together in another way.
    """
    said = gathered.said.people or gathered.said
    found = _Said.of(said, gathered.collection)
    if found is None:
        return {}
    told = found.agreement() | found.people()
    if found.ratings.several.any() or len(seniors.pair):
        ways = _ways(found, said, seniors, counts=said is not gathered.said)
        told["otherwise"] = _otherwise(ways, gathered.collection, joined, interval)
    return told


class _Said:
    """What people said of the pairs that were judged, which are counted from 0.

    ``names`` are those of the raters.
    """

    def __init__(
        self, ratings: Ratings, names: list[str], judged: LabeledPairs, pool: Pool
    ) -> None:
        self.ratings, self.names, self.judged, self.pool = ratings, names, judged, pool
        self.model: DawidSkene = dawid_skene(
            ratings, pseudo=PSEUDO, tolerance=TOLERANCE, steps=STEPS
        )

    @classmethod
    def of(cls, said: RoundLabels, collection: RoundCollection) -> "_Said | None":
        rows = np.flatnonzero(~said.decided)
        if not len(rows):
            return None
        place, names, ratings = ratings_of(said, rows, grades=collection.max_grade + 1)
        return cls(ratings, names, LabeledPairs.of(collection, place), collection.pool)

    def agreement(self) -> dict[str, Any]:
        ratings = self.ratings
        told: dict[str, Any] = {"labels": len(ratings), "pairs": ratings.pairs}
        told |= agreement_facts(ratings, self.judged, self.pool.topics)
        told["grades"]["counts"] = self._beside()
        return told | {"couples": self._couples()}

    def _beside(self) -> list[list[int]]:
        """How often one person said the row's grade, and another of the same pair the column's."""
        twos, size = self.ratings.twos, self.ratings.grades
        cells = np.concatenate(
            [
                twos.first_grade * size + twos.second_grade,
                twos.second_grade * size + twos.first_grade,
            ]
        )
        counted = np.bincount(cells, minlength=size**2).reshape(size, size)
        return list(counted.tolist())

    def _couples(self) -> list[dict[str, Any]]:
        """Those with most pairs in common."""
        found = every_two(self.ratings, least=LEAST_COUPLE, weight=self.judged.weight)
        found.sort(key=lambda each: (-each.pairs, each.first, each.second))
        return [
            {
                "first": self.names[each.first],
                "second": self.names[each.second],
                "pairs": each.pairs,
                "linear": number(weighted_kappa(each.counts, "linear")),
                "quadratic": number(weighted_kappa(each.counts, "quadratic")),
                "drawn": number(weighted_kappa(each.shares, "quadratic"))
                if self.judged.weight is not None
                else None,
                "counts": each.counts.tolist(),
            }
            for each in found[:MOST_COUPLES]
        ]

    def people(self) -> dict[str, Any]:
        """Everybody who gave a label that counts, by name. A preference has no height."""
        given = severity(self.ratings, topic=self.judged.topic)
        heights = not self.pool.is_of_preferences
        labels = np.bincount(self.ratings.rater, minlength=len(self.names))
        beside = self._others()
        rows = [
            self._person(at, given, heights=heights, labels=int(labels[at]), others=beside[at])
            for at in range(len(self.names))
        ]
        return {"people": rows, "heights": heights, "prior": numbers(self.model.prior)}

    def _others(self) -> list[int]:
        """With how many others each of them shares a pair."""
        twos = self.ratings.twos
        couples = np.unique(twos.first * self.ratings.raters + twos.second)
        ends = np.concatenate(np.divmod(couples, self.ratings.raters))
        return list(np.bincount(ends, minlength=self.ratings.raters).tolist())

    def _person(
        self, at: int, given: Severity, *, heights: bool, labels: int, others: int
    ) -> dict[str, Any]:
        shared = int(given.shared[at])
        why = _why_untold(shared, others, len(self.names))
        bias = Bounded(*(float(each[at]) for each in (given.bias, given.low, given.high)))
        model = self.model
        return {
            "name": self.names[at],
            "labels": labels,
            "shared": shared,
            "same": number(given.same[at]),
            "bias": interval(bias) if heights else [None, None, None],
            "spread": number(given.spread[at]) if heights else None,
            "untold": why,
            "competence": None if why else number(model.competence[at]),
            "informed": None if why else number(model.informed[at]),
            "confusion": None if why else model.confusion[at].tolist(),
        }


def _why_untold(shared: int, others: int, raters: int) -> str:
    """Why the model's word on a person would be none; empty if it is one."""
    if raters < 3:
        return "two"
    if shared < LEAST_COMPETENCE:
        return "few"
    return "one" if others < 2 else ""


def _ways(
    found: _Said, said: RoundLabels, seniors: LabelRows, *, counts: bool
) -> dict[str, LabelRows]:
    """Other labels than those that estimates rest on; nobody's estimates.

    What the organizer decided of pairs that nobody judged stays as it is. Pairs with one label
    have it by the majority; the others may correct it by what is known of the person. With senior
    grades in their place, and without them: whichever of the two does not count.
    """
    ways: dict[str, LabelRows] = {}
    if found.ratings.several.any():
        grades: dict[str, FloatArray | IntArray] = {
            "majority": majority(found.ratings.counts),
            "likely": most_likely(found.model, found.ratings.counts),
        }
        if not found.pool.is_of_preferences:
            grades["adjusted"] = adjusted_mean(found.ratings)
        for name, each in grades.items():
            ways[name] = _over_pool(rows_of_grades(each), found.judged.place, said)
    if counts:
        ways["people"] = said
    elif len(seniors.pair):
        ways["senior"] = _in_place(seniors, said)
    return ways


def _otherwise(
    ways: Mapping[str, LabelRows],
    collection: RoundCollection,
    joined: Pool,
    interval: IntervalKind,
) -> dict[str, Any]:
    """Values of the goal's measure as they are, and by other labels."""
    measure = collection.measures[0]
    asked = {"mean": collection} | {
        name: replace(collection, labels=rows) for name, rows in ways.items()
    }
    results = {
        name: each.evaluate(joined, measures=[measure], interval=interval).results[0]
        for name, each in asked.items()
    }
    values = {name: known_values(result) for name, result in results.items()}
    tau = {name: _tau(values["mean"], values[name]) for name in ways}
    runs = list(results["mean"].runs)
    told = {"measure": str(measure), "runs": runs, "lower": measure.lower_is_better}
    return told | {"values": values, "tau": tau}


def _in_place(seniors: LabelRows, said: RoundLabels) -> LabelRows:
    """What was said, with senior grades in the place of all labels of their pairs."""
    others = said.chosen(~np.isin(said.pair, seniors.pair))
    repeated = None
    if others.repeated is not None:
        repeated = np.concatenate([others.repeated, np.ones(len(seniors.pair))])
    pair = np.concatenate([others.pair, seniors.pair])
    return LabelRows(pair, np.concatenate([others.grade, seniors.grade]), repeated)


def _over_pool(rows: LabelRows, place: IntArray, said: RoundLabels) -> LabelRows:
    """The rows as positions in the pool; of pairs that nobody judged, what was decided."""
    alone = said.decided & ~np.isin(said.pair, place)
    pair = np.concatenate([place[rows.pair], said.pair[alone]])
    return LabelRows(pair, np.concatenate([rows.grade, said.grade[alone]]))


def _tau(one: list[float | None], other: list[float | None]) -> float | None:
    """Of the runs that both know; None of fewer than two, or where the first knows no order."""
    known = [row for row in zip(one, other, strict=True) if None not in row]
    first, second = np.array(known, dtype=np.float64).reshape(-1, 2).T
    return kendall_tau(second, first)
