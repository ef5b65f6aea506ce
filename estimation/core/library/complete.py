"""Values of runs where everything is judged, or taken to be: from runs and qrels, or of a pool.

Nothing is drawn or estimated. How much of what a measure looks at is judged is counted beside every
value, because documents without a judgment count as not relevant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..arrays import check_whole, refuse
from ..data.judged_runs import JudgedDocuments, judged_in_pool, lists_of_runs
from ..data.judged_tops import PooledTops
from ..data.labels import LabelError
from ..data.pool import Pool
from ..data.qrels import Qrels
from ..data.ranked_lists import PoolError
from ..estimates.complete import complete_values, last_rank, list_values, need_lengths
from ..measures.kinds import MAX_GRADE, MeasureError
from ..measures.table import Measure, parse_measure
from ..tables import Columns, Tabled, by_rows
from .arguments import check_of_topics, check_runs, named_topics
from .names import named_measures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from ..arrays import FloatArray, IntArray
    from ..data.judged_tops import JudgedTops
    from ..data.ranked_lists import RankedLists

MOST_DEPTH = 1 << 40  # deeper than any list


def evaluate_complete(
    runs: Mapping[str, RankedLists] | Pool,
    judged: Qrels | ArrayLike,
    *,
    measures: Sequence[Measure | str] | Measure | str,
    topics: Iterable[str] | None = None,
    max_grade: int | None = None,
) -> CompleteEvaluation:
    """Say the values of runs whose documents are all judged: trec_eval's, of all runs at once.

    Documents without a judgment count as not relevant, as in trec_eval. That is right where all
    that runs return down to the cutoff was judged. It is wrong for runs that came after the
    judging, or where only a sample was judged: their values come out too low, and nothing tells by
    how much. `CompleteMeasure.judged` says how many documents were judged; `evaluate` estimates
    from a sample.

    Parameters
    ----------
    runs : mapping of str to RankedLists, or Pool
        As `read_runs` returns them; or a pool, whose lists are cut at its depth.
    judged : Qrels, or array_like of int, shape (N,)
        One judgment a document, a grade below 0 saying that there is none; or, of a pool, the grade
        of each of its pairs. R and the ideal list count all judged documents of a topic, those that
        no run returns too.
    measures : Measure, str, or a sequence of them
        For example ``["P@10", "nDCG@100", "AP"]``.
    topics : iterable of str, optional
        All topics that values are means over; a run that leaves one out has 0 there. By default
        those of the pool, or of the judgments, as with trec_eval's option -c.
    max_grade : int, optional
        The best grade of the scale, which ERR needs; by default the best that was given.

    Raises
    ------
    LabelError
        If a document has two judgments, a grade is above `max_grade`, or there is not one grade for
        each pair of the pool.
    MeasureError
        If a measure is unknown, or about scores or preferences and not of a pool that has them.
    PoolError
        If there is no run or no topic, or a run returns a judged document twice.

    Examples
    --------
    >>> runs = {"a": rank_scores({"1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}})}
    >>> qrels = Qrels.of({"1": {"d2": 1, "d3": 0, "d4": 1}})
    >>> found = evaluate_complete(runs, qrels, measures=["P@2", "AP"])
    >>> found.columns()
    {'measure': ['P@2', 'AP'], 'run': ['a', 'a'], 'value': [0.5, 0.25], 'judged': [0.5, 0.6...]}
    >>> found["AP"].by_topic.shape, found["AP"].columns()["topic"]
    ((1, 1), ['1'])
    """
    wanted = named_measures(measures)
    if isinstance(runs, Pool):
        if topics is not None:
            raise PoolError("a pool has its topics: topics can be said of runs alone")
        return _of_pool(runs, judged, wanted, max_grade)
    if not isinstance(judged, Qrels):
        raise LabelError("runs are judged by Qrels; grades by position are those of a pool")
    check_runs(runs, name="runs")
    names = judged.topics if topics is None else named_topics(topics)
    return _of_runs(runs, judged, tuple(names), wanted, max_grade)


@dataclass(frozen=True, eq=False, repr=False)
class CompleteMeasure(Tabled):
    """A measure of k runs on T topics; documents without a judgment count as not relevant.

    Attributes
    ----------
    measure : Measure
    topics, runs : tuple of str
    by_topic : ndarray of float64, shape (T, k)
        The value of every topic; 0 where a run returns nothing, or nothing is relevant.
    judged, looked_at : ndarray of int64, shape (T, k)
        Documents of each list down to the cutoff, in all and judged.
    """

    measure: Measure
    topics: tuple[str, ...]
    runs: tuple[str, ...]
    by_topic: FloatArray
    judged: IntArray
    looked_at: IntArray

    @property
    def value(self) -> FloatArray:
        """The mean over all topics, shape (k,)."""
        return np.asarray(self.by_topic.mean(axis=0), dtype=np.float64)

    @property
    def judged_share(self) -> FloatArray:
        """Which share of the documents that the measure looks at is judged, (k,); NaN of none."""
        return _share(self.judged.sum(axis=0), self.looked_at.sum(axis=0))

    @property
    def caption(self) -> str:
        """The measure, and what is not judged."""
        return f"{self.measure}; what is not judged counts as not relevant"

    def columns(self) -> Columns:
        """Return a row for every run and topic; ``judged`` is None where a run returns nothing."""
        share = _share(self.judged, self.looked_at)
        rows = [
            [tag, topic, float(self.by_topic[at, run]), _known(share[at, run])]
            for run, tag in enumerate(self.runs)
            for at, topic in enumerate(self.topics)
        ]
        return by_rows(("run", "topic", "value", "judged"), rows)


@dataclass(frozen=True, eq=False, repr=False)
class CompleteEvaluation(Tabled):
    """Measures of k runs on T topics where everything is judged; `found["P@10"]` is one of them.

    Attributes
    ----------
    topics, runs : tuple of str
    measures : tuple of Measure
        M of them, in the order in which they were asked for.
    by_topic : ndarray of float64, shape (M, T, k)
    tops : JudgedTops
        Which documents are judged.
    """

    topics: tuple[str, ...]
    runs: tuple[str, ...]
    measures: tuple[Measure, ...]
    by_topic: FloatArray
    tops: JudgedTops

    MOST_ROWS: ClassVar = 60

    @cached_property
    def results(self) -> tuple[CompleteMeasure, ...]:
        """Every measure, with what is judged of what it looks at."""
        depths = [each.cutoff or MOST_DEPTH for each in self.measures]
        counts = {depth: self.tops.counts(depth) for depth in set(depths)}
        each = zip(self.measures, self.by_topic, depths, strict=True)
        return tuple(
            CompleteMeasure(measure, self.topics, self.runs, values, *counts[depth])
            for measure, values, depth in each
        )

    @property
    def caption(self) -> str:
        """What the numbers rest on."""
        told = f"{len(self.runs)} runs, {len(self.topics)} topics"
        return f"{told}; what is not judged counts as not relevant"

    def columns(self) -> Columns:
        """Return a row for every measure and run, best first, with the share that is judged."""
        return by_rows(
            ("measure", "run", "value", "judged"),
            [row for each in self.results for row in _best_first(each)],
        )

    def __getitem__(self, measure: str | Measure) -> CompleteMeasure:
        """Return a measure; MeasureError if it was not asked for."""
        wanted = parse_measure(measure) if isinstance(measure, str) else measure
        for each in self.results:
            if each.measure == wanted:
                return each
        told = ", ".join(map(str, self.measures))
        raise MeasureError(f"{wanted} was not asked for; there is {told}")


def _best_first(found: CompleteMeasure) -> list[list[Any]]:
    value, share = found.value, found.judged_share
    order = np.argsort(value if found.measure.lower_is_better else -value, kind="stable")
    return [
        [str(found.measure), found.runs[run], float(value[run]), _known(share[run])]
        for run in order.tolist()
    ]


# --------------------------------------------------------------------------------- two sources


def _of_runs(
    runs: Mapping[str, RankedLists],
    qrels: Qrels,
    topics: tuple[str, ...],
    measures: tuple[Measure, ...],
    max_grade: int | None,
) -> CompleteEvaluation:
    if not runs or not topics:
        raise PoolError(f"there must be a run and a topic, not {len(runs)} and {len(topics)}")
    check_of_topics(runs, topics, name="runs")
    for each in measures:
        each.check_pooled(preferences=False, scores=False)
    tags = tuple(sorted(runs, key=str.encode))
    judged = JudgedDocuments.of(qrels, topics)
    best = _best(judged.grade, max_grade)
    whole = need_lengths(measures)
    last = None if whole else last_rank(measures, MOST_DEPTH)
    lists, tops = lists_of_runs({tag: runs[tag] for tag in tags}, judged, last=last)
    if whole:
        lists = replace(lists, lengths=tops.counts(MOST_DEPTH)[1])
    values = [list_values(lists, each, max_grade=best) for each in measures]
    by_topic = np.stack(values) if values else np.zeros((0, len(topics), len(tags)))
    return CompleteEvaluation(topics, tags, measures, by_topic, tops)


def _of_pool(
    pool: Pool, judged: Qrels | ArrayLike, measures: tuple[Measure, ...], max_grade: int | None
) -> CompleteEvaluation:
    known = None
    if isinstance(judged, Qrels):
        grades, documents = judged_in_pool(pool, judged)
        known = documents.topic, documents.grade
    else:
        grades = np.asarray(judged)
        if grades.shape != (len(pool),) or not np.issubdtype(grades.dtype, np.integer):
            wanted = f"{len(pool)} whole numbers, one grade for each pair of the pool"
            raise LabelError(f"grades must be {wanted}, not {grades.dtype} of {grades.shape}")
    if pool.is_of_preferences and grades.min(initial=0) < 0:
        raise LabelError("every pair of documents needs a preference; none can count as another")
    best = _best(grades if known is None else known[1], max_grade)
    values = complete_values(
        pool, grades=np.maximum(grades, 0), measures=measures, max_grade=best, known=known
    )
    tops = PooledTops(pool, grades >= 0)
    return CompleteEvaluation(pool.topics, pool.runs, measures, values, tops)


def _best(grades: IntArray, max_grade: int | None) -> int:
    """The best grade of the scale, by default of the judgments; LabelError if one is better."""
    most = MAX_GRADE if max_grade is None else max_grade
    check_whole(most, name="max_grade", most=MAX_GRADE, error=LabelError)
    refuse(grades > most, grades, name="grades", rule=f"be at most {most}", error=LabelError)
    return max(1, int(grades.max(initial=1))) if max_grade is None else max_grade


def _share(part: IntArray, whole: IntArray) -> FloatArray:
    share = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=share, where=whole > 0)
    return share


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
