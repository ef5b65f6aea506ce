"""Values of runs in shards: from complete judgments, and from those of a sample.

Every topic has its values from one shard alone. Means over topics are taken from the first topic to
the last, and a sample's estimates from its pairs in their order; so the bits are those of one pool,
however many shards there are (but for the disagreement of a sample that is most of a large pool,
which there is added up in another order: `held_products`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..arrays import spread_rows
from ..data.entries import weights_of
from ..data.judged_runs import judged_in_pool
from ..data.labels import LabelError, LabelRows, pair_labels, pair_name, select_rows
from ..data.qrels import Qrels
from ..estimates.complete import complete_values
from ..estimates.estimators import horvitz_thompson_poisson
from ..measures.kinds import MAX_GRADE, MeasureError
from .lines import CutLines, Dealt, lines_of
from .pools import read_own_topics, read_pool
from .running import ShardStep, StepResult, do_steps
from .store import read_columns, seal_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Executor

    from ..arrays import BoolArray, FloatArray, IntArray, SparseMatrix
    from ..data.pool import Pool
    from ..estimates.totals import Totals
    from ..measures.table import Measure
    from .building import ShardedPool
    from .designing import ShardedSample
    from .frames import ShardFrame
    from .places import Place


# Part of what values follow from: before, R was of the documents in the pool.
ALL_JUDGED = "of all judged documents"
COMPLETE, SAMPLED = ("gain", "ratio"), ("gain",)  # families that are evaluated and estimated


def check_families(measures: Sequence[Measure], families: tuple[str, ...]) -> None:
    """Raise MeasureError unless all measures are of some families."""
    for measure in measures:
        if measure.family not in families:
            named = " or ".join(families)
            raise MeasureError(f"In shards this needs a measure of the family {named}: {measure}")


@dataclass(frozen=True)
class JudgedStep(ShardStep):
    """A step that needs a judgment of each of some pairs of its shard."""

    frame: ShardFrame
    shard: int

    def _refuse(self, pool: Pool, missing: IntArray, what: str) -> None:
        """LabelError if a pair has none. Other shards are not looked at, which the words say."""
        if len(missing):
            here = f"{len(missing)} {what} of shard {self.shard + 1} of {self.frame.shards}"
            first = pair_name(int(missing[0]), pool)
            raise LabelError(f"{here} have no judgment; the first is {first}")


@dataclass(frozen=True)
class TopicValues(JudgedStep):
    """Values of every run on the topics of a shard, from judgments of all its documents.

    The result has ``topic``, (t,), and ``value``, (measures, t, k).

    Attributes
    ----------
    judgments : tuple of Place
        Places of `lines.CutLines`, of all that have lines for the shard.
    unlisted : int or None
        The grade of pairs without a judgment; LabelError if there is one and this is None.
    """

    pool: Place
    judgments: tuple[Place, ...]
    measures: tuple[Measure, ...]
    unlisted: int | None

    @property
    def inputs(self) -> tuple[Any, ...]:
        measures = [str(measure) for measure in self.measures]
        return self.pool.name, _names(self.judgments), measures, self.unlisted, ALL_JUDGED

    def work(self) -> StepResult:
        """Work out all measures."""
        pool = read_own_topics(self.frame, self.shard, self.pool)
        grades, judged = judged_in_pool(pool, _qrels(self.judgments, self.shard))
        missing = np.flatnonzero(grades < 0)
        if self.unlisted is None:
            self._refuse(pool, missing, "pairs")
        grades[missing] = self.unlisted or 0
        known = (
            np.concatenate([judged.topic, pool.topic[missing]]),
            np.concatenate([judged.grade, grades[missing]]),
        )
        topic = self.frame.topics_of(self.shard)
        value = np.zeros((len(self.measures), len(topic), len(pool.runs)))
        if len(pool):
            value[:] = complete_values(pool, grades=grades, measures=self.measures, known=known)
        return {}, {"topic": topic, "value": value}


def judged_topics(judgments: Sequence[Place]) -> tuple[str, ...]:
    """Return the topics that judgments are of, sorted as UTF-8, whether a run has them or not."""
    named: set[bytes] = set()
    for place in judgments:
        named.update(read_columns(place, ("topics",))[1]["topics"].tolist())
    return tuple(name.decode() for name in sorted(named))


def evaluate_shards(
    executor: Executor,
    pool: ShardedPool,
    judgments: Sequence[Place],
    *,
    measures: Sequence[Measure],
    unlisted: int | None = 0,
) -> FloatArray:
    """Return the value of every run on every judged topic when everything is judged.

    Topics, R and ideal lists are those of the judgments, as of `library.evaluate_complete` and
    trec_eval. Lists are cut at the depth of the pool.

    Parameters
    ----------
    executor, pool
        As for `building.build_shards`, and what it returned.
    judgments : sequence of Place
        `lines.judgment_lines`, written by `store.write_columns`, one row a document.
    measures : sequence of Measure
        Of the families gain and ratio.
    unlisted : int, optional
        The grade of pairs without a judgment; None if there must be none.

    Returns
    -------
    ndarray of float64, shape (measures, T, k)
        Of `judged_topics`; 0 where a run returns nothing. The mean over topics, ``.mean(axis=1)``,
        is the value of the run.

    Raises
    ------
    MeasureError
        If a measure is of another family.
    LabelError
        If no topic is judged, a document has two judgments, or a pair has none and `unlisted` is
        None.
    """
    check_families(measures, COMPLETE)
    topics = judged_topics(judgments)
    if not topics:
        raise LabelError("no topic is judged")
    cut = _cut(executor, pool, judgments)
    steps = [
        TopicValues(pool.root, pool.frame, shard, place, cuts, tuple(measures), unlisted)
        for shard, (place, cuts) in enumerate(zip(pool.places, cut, strict=True))
    ]
    among = {name: at for at, name in enumerate(topics)}
    row = np.array([among.get(name, -1) for name in pool.frame.topics])
    value = np.zeros((len(measures), len(topics), len(pool.frame.runs)))
    for place in do_steps(executor, steps):
        _, columns = read_columns(place)
        judged = np.flatnonzero(row[columns["topic"]] >= 0)
        value[:, row[columns["topic"][judged]]] = columns["value"][:, judged]
    return value


# ---------------------------------------------------------------------------- from a sample


@dataclass(frozen=True)
class SampledTerms(JudgedStep):
    """The judgments of the sampled pairs of a shard, and what these count for.

    The result has the weights of the pairs as ``data``, ``indices`` and ``indptr`` of a csr_array,
    of each pair ``probability``, ``topic`` and the ``number`` of its judgments, and the ``grade``
    of each judgment, pair by pair.
    """

    pool: Place
    sample: Place
    judgments: tuple[Place, ...]
    measure: Measure
    max_grade: int
    unlisted: int | None

    @property
    def inputs(self) -> tuple[Any, ...]:
        told = str(self.measure), self.max_grade, self.unlisted
        return self.sample.name, _names(self.judgments), *told

    def work(self) -> StepResult:
        """Look up the judgments of the sampled pairs, and what these count for."""
        pool = read_pool(self.frame, self.pool)
        _, drawn = read_columns(self.sample, ["pair", "probability"])
        pairs = np.asarray(drawn["pair"])
        rows = _judged(pool, self.judgments, self.shard, pairs, self.unlisted)
        self._refuse(pool, pairs[~np.isin(pairs, rows.pair)], "sampled pairs")
        rows = select_rows(rows, sampled=pairs, prefix=pairs, max_grade=self.max_grade, pool=pool)
        every = np.ones(len(pairs), dtype=np.bool_)
        weights = weights_of(pool, self.measure, pairs, wanted=every)
        return {}, {
            **{name: getattr(weights, name) for name in ("data", "indices", "indptr")},
            "number": np.bincount(rows.pair, minlength=len(pairs)),
            "grade": rows.grade,
            "probability": drawn["probability"],
            "topic": pool.topic[pairs],
        }


def estimate_shards(
    executor: Executor,
    pool: ShardedPool,
    sample: ShardedSample,
    judgments: Sequence[Place],
    *,
    measure: Measure,
    max_grade: int = MAX_GRADE,
    unlisted: int | None = None,
) -> Totals:
    """Estimate the value of every run from the judgments of a sample, with covariance.

    Parameters
    ----------
    executor, pool, judgments
        As for `evaluate_shards`; several rows of a pair are several judgments.
    sample : ShardedSample
        All of it must be judged.
    measure : Measure
        Of the family gain.
    max_grade : int
        The best grade of the scale.
    unlisted : int, optional
        The grade of sampled pairs without a judgment; by default there must be none.

    Returns
    -------
    Totals
        Those of `estimators.horvitz_thompson_poisson`, from all sampled pairs in their order. Their
        rows come together in this process, no others; what a judgment lets one expect is from all.

    Raises
    ------
    MeasureError
        If the measure is of another family.
    LabelError
        If a sampled pair has no judgment, or a grade is off the scale.
    """
    check_families([measure], SAMPLED)
    cut = _cut(executor, pool, judgments)
    steps = [
        SampledTerms(pool.root, pool.frame, shard, *places, measure, max_grade, unlisted)
        for shard, places in enumerate(zip(pool.places, sample.places, cut, strict=True))
    ]
    parts = [read_columns(place)[1] for place in do_steps(executor, steps)]
    order = np.argsort(np.concatenate([part["topic"] for part in parts]), kind="stable")
    rows = _rows_in_order(parts, order)
    labels = pair_labels(rows, pairs=len(order), measure=measure).with_expected()
    weights = sparse.vstack([_weights(part, len(pool.frame.runs)) for part in parts], format="csr")
    chance = np.concatenate([part["probability"] for part in parts])[order]
    return horvitz_thompson_poisson(
        _some_filled(weights[order], labels.wanted), labels, probability=chance
    )


def _rows_in_order(parts: Sequence[Mapping[str, Any]], order: IntArray) -> LabelRows:
    """The judgments of all sampled pairs, sorted by (pair, grade), as one pool has them."""
    number, grade = (np.concatenate([part[name] for part in parts]) for name in ("number", "grade"))
    first, ordered = np.cumsum(number) - number, number[order]
    pair = np.repeat(np.arange(len(order)), ordered)
    place = np.arange(len(pair)) + np.repeat(first[order] - np.cumsum(ordered) + ordered, ordered)
    return LabelRows(pair, grade[place])


def _some_filled(rows: SparseMatrix, wanted: BoolArray) -> SparseMatrix:
    """Return an array of which the rows that are not wanted are empty."""
    return rows if wanted.all() else spread_rows(rows[np.flatnonzero(wanted)], wanted)


def _weights(part: Mapping[str, Any], runs: int) -> SparseMatrix:
    entries = part["data"], part["indices"], part["indptr"]
    return sparse.csr_array(entries, shape=(len(part["number"]), runs))


def _cut(
    executor: Executor, pool: ShardedPool, judgments: Sequence[Place]
) -> tuple[tuple[Place, ...], ...]:
    """The cuts of judgments that each shard looks at."""
    steps = [CutLines(pool.root, each, seal_of(each), pool.frame) for each in judgments]
    return Dealt.of(do_steps(executor, steps), pool.frame.shards).cuts


def _names(places: Sequence[Place]) -> list[str]:
    return [place.name for place in places]


def _judged(
    pool: Pool, judgments: Sequence[Place], shard: int, pairs: IntArray, unlisted: int | None
) -> LabelRows:
    """The judgments of pairs of a shard; with a grade for `unlisted` ones, every pair has one."""
    return _qrels(judgments, shard).labels(pool, pairs, unlisted=unlisted)


def _qrels(judgments: Sequence[Place], shard: int) -> Qrels:
    """All judgments of the topics of a shard."""
    parts = [lines_of(cut, shard) for cut in judgments]
    nothing = np.array([], dtype="S1")
    return Qrels(
        np.concatenate([nothing, *(part["topics"][part["topic"]] for part in parts)]),
        np.concatenate([nothing, *(part["docno"] for part in parts)]),
        np.concatenate([np.array([], dtype=np.int64), *(part["grade"] for part in parts)]),
    )
