"""Measures of one ranked list as their definitions say them, document by document."""

import math
from collections.abc import Callable, Mapping, Sequence

from estimation.core.measures.table import Measure

Grades = Mapping[str, int]


def naive_order(scores: Mapping[str, float]) -> list[str]:
    """Best first; equal scores by docno, the last letter first."""
    return sorted(sorted(scores, reverse=True), key=lambda docno: -scores[docno])


def naive_value(measure: Measure, ranked: Sequence[str], judged: Grades, best: int) -> float:
    """The value of a list where documents without a judgment, or below 0, have grade 0."""
    given = dict(measure.params)
    found = [max(judged.get(docno, 0), 0) for docno in ranked]
    every = [max(grade, 0) for grade in judged.values()]
    return WAYS[measure.name](found, every, given, measure.cutoff, best)


def _relevant(grades: Sequence[int], given: Mapping[str, object]) -> list[bool]:
    return [grade >= int(given["rel"]) for grade in grades]


def _precision(found, _every, given, cutoff, _best) -> float:
    return sum(_relevant(found[:cutoff], given)) / cutoff


def _gain(name: object, grade: int) -> float:
    return 2.0**grade - 1.0 if str(name).startswith("exp") else float(grade)


def _dcg(found, _every, given, cutoff, _best) -> float:
    base = 2.0 if str(given["dcg"]).endswith("log2") else math.e
    gains = [_gain(given["dcg"], grade) for grade in found[:cutoff]]
    return sum(gain / math.log(1 + rank, base) for rank, gain in enumerate(gains, 1))


def _ndcg(found, every, given, cutoff, best) -> float:
    ideal = _dcg(sorted(every, reverse=True), every, given, cutoff, best)
    return _dcg(found, every, given, cutoff, best) / ideal if ideal else 0.0


def _mean_gain(found, _every, given, cutoff, _best) -> float:
    return sum(_gain(given["gain"], grade) for grade in found[:cutoff]) / cutoff


def _rbp(found, _every, given, cutoff, _best) -> float:
    p, hits = float(given["p"]), _relevant(found[:cutoff], given)
    return sum((1 - p) * p**place for place, hit in enumerate(hits) if hit)


def _mean(found, _every, given, _cutoff, _best) -> float:
    return sum(grade / int(given["max"]) for grade in found) / len(found) if found else 0.0


def _average_precision(found, every, given, cutoff, _best) -> float:
    hits, total = _relevant(found[:cutoff], given), sum(_relevant(every, given))
    sums = sum(sum(hits[:rank]) / rank for rank, hit in enumerate(hits, 1) if hit)
    return sums / total if total else 0.0


def _r_precision(found, every, given, _cutoff, _best) -> float:
    total = sum(_relevant(every, given))
    return sum(_relevant(found[:total], given)) / total if total else 0.0


def _satisfied(found, _every, _given, cutoff, best) -> float:
    value, going = 0.0, 1.0
    for rank, grade in enumerate(found[:cutoff], 1):
        stops = (2**grade - 1) / 2**best
        value += going * stops / rank
        going *= 1.0 - stops
    return value


def _first_relevant(found, _every, given, cutoff, _best) -> float:
    hits = _relevant(found[:cutoff], given)
    return 1.0 / (1 + hits.index(True)) if any(hits) else 0.0


WAYS: Mapping[str, Callable[..., float]] = {
    "P": _precision,
    "DCG": _dcg,
    "nDCG": _ndcg,
    "Gain": _mean_gain,
    "RBP": _rbp,
    "Mean": _mean,
    "AP": _average_precision,
    "Rprec": _r_precision,
    "ERR": _satisfied,
    "RR": _first_relevant,
}
