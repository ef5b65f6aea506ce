"""Samples of ours as files that others read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data.labels import LabelError, LabelRows, pair_name
from ..sampling.designs import DesignError
from ..sampling.methods import SAMPLING_METHODS

if TYPE_CHECKING:
    from ..arrays import FloatArray
    from ..data.pool import Pool
    from ..data.trec import Place
    from ..rounds.rounds import Round


def write_prels(place: Place, pool: Pool, drawn: Round, *, labels: LabelRows) -> int:
    """Write the judged pairs of a round as prels, with their probabilities; return how many.

    The columns are topic, docno, grade, method (1: sampled) and the probability to be among all
    batches, which `read_prels` and programs for prels read. Rounds whose batches are planned from
    judgments have no such file: one over the probability with which a pair came, given that it had
    not come before, would make every value wrong.

    Raises
    ------
    DesignError
        If batches were planned from the judgments of those before.
    LabelError
        If a drawn pair has no judgment, or more than one, for which prels have no place.

    Examples
    --------
    >>> pool = pool_runs({"a": rank_scores({"1": {"d1": 2.0, "d2": 1.0}})}, depth=2)
    >>> design = make_design(pool, measure="P@2", budget=2, goal="absolute")
    >>> drawn = draw_round(pool, design, seed="any text")
    >>> labels = Qrels.of({"1": {"d1": 1, "d2": 0}}).labels(pool)
    >>> write_prels("our.prels", pool, drawn, labels=labels)
    2
    >>> read_prels("our.prels").grade
    array([1, 0])
    """
    if SAMPLING_METHODS[drawn.method].draws == "batches":
        told = "nobody knows with which probability a pair comes into any of their batches"
        raise DesignError(f"Rounds by {drawn.method} do not fit into prels: {told}.")
    served = drawn.served(pool)
    grades = _grades(pool, labels)[served.pair]
    rows = zip(
        pool.topic[served.pair].tolist(),
        pool.docno[served.pair].tolist(),
        grades.tolist(),
        served.probability.tolist(),
        strict=True,
    )
    lines = []
    for pair, (topic, docno, grade, chance) in zip(served.pair.tolist(), rows, strict=True):
        if np.isnan(grade):
            raise LabelError(f"{pair_name(pair, pool)} was drawn but has no judgment")
        lines.append(f"{pool.topics[topic]} {docno.decode()} {int(grade)} 1 {chance!r}\n")
    with open(place, "w", encoding="utf-8") as file:
        file.writelines(lines)
    return len(lines)


def _grades(pool: Pool, labels: LabelRows) -> FloatArray:
    """The grade of every pair of the pool; NaN where there is none."""
    twice = np.flatnonzero(np.bincount(labels.pair, minlength=len(pool)) > 1)
    if len(twice):
        name = pair_name(int(twice[0]), pool)
        raise LabelError(f"{name} has several judgments; prels have place for one")
    grades = np.full(len(pool), np.nan)
    grades[labels.pair] = labels.grade
    return grades
