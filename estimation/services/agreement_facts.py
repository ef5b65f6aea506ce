"""How far labels agree, as plain facts that are stored: of people, and of a machine against them.

Each is told as judged, and weighted by the draw where what pairs stand for is known: judged pairs
are no fair sample. A batch is part of a sample, and none of the pool: it is told as judged. Nothing
of it goes into an estimate, a design or a plan.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimation.core.arrays import FloatArray, IntArray
from estimation.core.collections.base import RoundCollection
from estimation.core.estimates.agreement import Bounded
from estimation.core.labels.alpha import Reliability, alphas_by, by_grade, reliability
from estimation.core.labels.ratings import OneAgainstOthers, Ratings
from estimation.core.rounds.active.rounds import ActiveRound
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.rounds import PairRound, TopicRound
from estimation.services.pair_weights import pair_weights
from estimation.services.round_labels import RoundLabels


@dataclass(frozen=True, eq=False)
class LabeledPairs:
    """Of each judged pair: its place in the pool and topic; None: what it stands for (``weight``),
    or with which ``batch`` it came, is not known."""

    place: IntArray
    topic: IntArray
    weight: FloatArray | None
    batch: IntArray | None

    @classmethod
    def of(cls, collection: RoundCollection, place: IntArray) -> "LabeledPairs":
        pool, drawn = collection.pool, collection.drawn
        known, batch = pair_weights(collection), None
        if isinstance(drawn, PairRound | TopicRound | ActiveRound | AdaptiveRound):
            served = drawn.served(pool)
            of_pool = np.zeros(len(pool), dtype=np.int64)
            of_pool[served.pair] = served.batch
            batch = of_pool[place]
        weight = None if known is None else known[place]
        return cls(place, pool.topic[place].astype(np.int64), weight, batch)


def ratings_of(
    said: RoundLabels, rows: IntArray, *, grades: int
) -> tuple[IntArray, list[str], Ratings]:
    """Some rows, with pairs and raters counted from 0: the place of each pair in the pool, and the
    name of each rater."""
    place, pair = np.unique(said.pair[rows], return_inverse=True)
    who, rater = np.unique(said.assessor[rows], return_inverse=True)
    names = [said.names[at] for at in who.tolist()]
    return place, names, Ratings(pair, rater, said.grade[rows], len(place), len(names), grades)


def agreement_facts(
    ratings: Ratings | OneAgainstOthers, judged: LabeledPairs, topics: Sequence[str]
) -> dict[str, Any]:
    """Alpha of all pairs, by grade, by topic and by batch."""
    of_grades = ratings if isinstance(ratings, OneAgainstOthers) else ratings.counts
    grades, weight = by_grade(of_grades), judged.weight
    heavy = None if weight is None else by_grade(of_grades, weight)
    return {
        "plain": alphas(reliability(ratings)),
        "drawn": None if weight is None else alphas(reliability(ratings, weight=weight)),
        "grades": {
            "again": numbers(grades.again),
            "alpha": numbers(grades.alpha),
            "drawn": None if heavy is None else numbers(heavy.alpha),
            "table": grades.table.tolist(),
        },
        "topics": _topics(ratings, judged, topics),
        "batches": _batches(ratings, judged.batch),
    }


def _topics(
    ratings: Ratings | OneAgainstOthers, judged: LabeledPairs, names: Sequence[str]
) -> list[dict[str, Any]]:
    """Those with something to compare, in which there is least agreement first."""
    values, pairs = alphas_by(ratings, judged.topic, groups=len(names), metric="ordinal")
    heavy = np.full(len(names), np.nan)
    if judged.weight is not None:
        heavy, _ = alphas_by(
            ratings, judged.topic, groups=len(names), metric="ordinal", weight=judged.weight
        )
    worst = np.argsort(np.where(np.isnan(values), np.inf, values), kind="stable")
    return [
        {
            "topic": names[at],
            "alpha": number(values[at]),
            "drawn": number(heavy[at]),
            "pairs": int(pairs[at]),
        }
        for at in worst.tolist()
        if pairs[at]
    ]


def _batches(ratings: Ratings | OneAgainstOthers, batch: IntArray | None) -> list[dict[str, Any]]:
    if batch is None:
        return []
    last = int(batch.max())
    values, pairs = alphas_by(ratings, batch, groups=last + 1, metric="ordinal")
    return [
        {"batch": at, "alpha": number(values[at]), "pairs": int(pairs[at])}
        for at in range(1, last + 1)
    ]


def alphas(found: Reliability) -> dict[str, Any]:
    values = {metric: interval(value) for metric, value in found.by_metric.items()}
    counts = {"pairs": found.pairs, "labels": found.judgments}
    return values | counts | {"cautions": list(found.cautions)}


def interval(found: Bounded) -> list[float | None]:
    return [number(each) for each in (found.value, found.low, found.high)]


def numbers(found: FloatArray) -> list[float | None]:
    return [number(each) for each in found.tolist()]


def number(value: float) -> float | None:
    """None of what is not known, which JSON has no number for."""
    return float(value) if np.isfinite(value) else None
