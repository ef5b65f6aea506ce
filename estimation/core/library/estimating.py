"""From judgments to estimates: of a round, of several, of somebody else's sample."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..data.labels import LabelError, LabelRows
from ..data.pool import Pool, build_pool
from ..data.qrels import Qrels, SampledQrels
from ..data.ranked_lists import PoolError, RankedLists
from ..inference.looks import Look
from ..rounds import evaluation
from ..rounds.combining import RoundsTogether
from ..rounds.given import GivenError, GivenRound
from .arguments import (
    check_drawn,
    check_kind,
    check_of_topics,
    check_pool,
    check_runs,
    check_seeds,
)
from .names import check_of_pairs, named_measures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..arrays import FloatArray
    from ..inference.outlook import Outlook
    from ..measures.table import Measure
    from ..rounds.results import DrawnRound, Evaluation
    from ..rounds.rounds import PairRound
    from ..sampling.interval_kinds import IntervalKind


def evaluate(
    pool: Pool,
    drawn: DrawnRound,
    *,
    labels: LabelRows | Qrels,
    measures: Sequence[Measure | str] | Measure | str,
    max_grade: int,
    later: Mapping[str, RankedLists] | None = None,
    batches: int | None = None,
    confidence: float = 0.95,
    interval: IntervalKind = "student",
    predictions: FloatArray | None = None,
    outlook: Outlook | None = None,
    look: Look | None = None,
) -> Evaluation:
    """Estimate measures for every run, with intervals and a ranking.

    Parameters
    ----------
    pool : Pool
        As it was when the sample was drawn.
    drawn
        What `draw_round`, `together` or `given_round` returned.
    labels : LabelRows or Qrels
        The judgments. Rows of a `Qrels` for pairs that were not drawn are left out.
    measures : Measure, str, or a sequence of them
        For example ``"DCG@10"``.
    max_grade : int
        The best grade of the scale.
    later : mapping of str to RankedLists, optional
        Runs that came after the draw: they are estimated and ranked with the others. Documents
        that only they return could not be drawn; `MeasureResult.support` says how much that is.
    batches, confidence, interval, predictions, outlook, look
        As in `rounds.evaluation.evaluate`.

    Raises
    ------
    ValueError
        `LabelError` if a drawn pair has no judgment, `MeasureError` if a measure is unknown or
        cannot be estimated, and others as the function above.

    Examples
    --------
    >>> pool = pool_runs(read_runs("demo/collection/runs"), depth=10)
    >>> design = make_design(pool, measure="P@10", budget=600)
    >>> drawn = draw_round(pool, design, seed="a seed")
    >>> truth = read_qrels("demo/collection/qrels.txt.gz")
    >>> labels = truth.labels(pool, drawn.served(pool).pair, unlisted=0)
    >>> found = evaluate(pool, drawn, labels=labels, measures="P@10", max_grade=3)
    >>> list(found.columns())
    ['measure', 'run', 'value', 'low', 'high', 'rank', 'possible ranks', 'support', 'unknown']
    """
    check_pool(pool)
    check_drawn(drawn)
    check_kind(labels, LabelRows, Qrels, name="labels", see="Qrels.labels", error=LabelError)
    if look is not None:
        check_kind(look, Look, name="look", see="Look(5, 10), the fifth of ten")
    if isinstance(labels, Qrels):
        labels = labels.labels(pool, drawn.pairs(pool))
    return evaluation.evaluate(
        pool,
        drawn,
        labels=labels,
        measures=list(named_measures(measures)),
        max_grade=max_grade,
        joined=None if later is None else _joined(pool, later),
        batches=batches,
        confidence=confidence,
        interval=interval,
        predictions=predictions,
        outlook=outlook,
        look=look,
    )


def together(rounds: Sequence[PairRound], *, seeds: Sequence[str]) -> RoundsTogether:
    """Put rounds over one pool together, so that one estimate is made from all of them.

    No round may have been designed after a look at the judgments of another, nor have been made
    because an interval was still too wide.

    Parameters
    ----------
    rounds : sequence of PairRound
        All by ``poisson``, or all by ``iid``.
    seeds : sequence of str
        What each was drawn with. Rounds by ``poisson`` with one seed share their random numbers.

    Raises
    ------
    CombiningError
        If the rounds cannot be put together.

    Examples
    --------
    >>> pool = pool_runs(read_runs("demo/collection/runs"), depth=10)
    >>> first = make_design(pool, measure="P@10", budget=300)
    >>> second = make_design(pool, measure="DCG@10", budget=300, goal="absolute")
    >>> seeds = ["monday", "tuesday"]
    >>> rounds = [draw_round(pool, d, seed=s) for d, s in zip([first, second], seeds)]
    >>> together(rounds, seeds=seeds).method
    'poisson'
    """
    check_of_pairs(rounds, having="with_earlier")
    check_seeds(seeds, len(rounds))
    named = zip(rounds, seeds, strict=True)
    return RoundsTogether(tuple(replace(each, numbers=seed) for each, seed in named))


def given_round(pool: Pool, sampled: SampledQrels, *, unlisted: float | None = None) -> GivenRound:
    """Take judgments of somebody else's sample for a round over a pool, to estimate from.

    Values are unbiased (Horvitz-Thompson) if all pairs of the pool could be sampled. Intervals and
    verdicts assume that pairs were drawn independently of each other, since the files do not tell
    how likely two were drawn together; see `rounds.given`.

    Parameters
    ----------
    pool : Pool
        Of runs, with the topics of the sample: `pool_runs` with ``judged=sampled``.
    sampled : SampledQrels
        From `read_prels` or `read_strata`.
    unlisted : float, optional
        The probability of pairs of the pool that the file does not list, which no value depends
        on. 0 says that they were out of reach, as documents of runs are that came later. By default
        0 for strata; for prels it is estimated, topic by topic.

    Raises
    ------
    GivenError
        If the sample has nothing of a topic of the pool.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("a.run").write_text("1 Q0 d1 1 2.0 a\\n1 Q0 d2 2 1.0 a\\n")
    >>> _ = Path("sample.prels").write_text("1 d1 1 1 0.5\\n1 d3 0 1 0.5\\n")
    >>> prels = read_prels("sample.prels")
    >>> pool = pool_runs(read_runs("a.run"), depth=2, judged=prels)
    >>> drawn = given_round(pool, prels)
    >>> found = evaluate(pool, drawn, labels=prels, measures="P@2", max_grade=1)
    >>> found["P@2"].estimate.value
    array([1.])
    """
    check_pool(pool)
    check_kind(sampled, SampledQrels, name="sampled", see="read_prels", error=GivenError)
    return GivenRound.of(pool, sampled, unlisted=unlisted)


def _joined(pool: Pool, later: Mapping[str, RankedLists]) -> Pool:
    """The pool with later runs beside its own, and all of its pairs."""
    check_runs(later, name="later")
    for tag, run in later.items():
        check_of_topics({tag: run}, pool.topics, name=f"lists of later[{tag!r}]")
    twice = sorted(set(pool.runs) & set(later))
    if twice:
        raise PoolError(f"the pool has a run {twice[0]!r} already; call the later one otherwise")
    runs = {tag: _lists(pool, at) for at, tag in enumerate(pool.runs)} | dict(later)
    extra = {
        name: [docno.decode() for docno in pool.docno[pool.topic == at].tolist()]
        for at, name in enumerate(pool.topics)
    }
    return build_pool(pool.topics, runs, depth=pool.depth, extra=extra)


def _lists(pool: Pool, run: int) -> RankedLists:
    """What a run of a pool returns, down to the pool's depth, without scores."""
    at = np.flatnonzero(pool.run == run)
    pairs = pool.entry_pair[at]
    order = np.lexsort((pool.rank[at], pool.topic[pairs]))
    bounds = np.searchsorted(pool.topic[pairs], np.arange(len(pool.topics) + 1))
    return RankedLists(pool.topics, bounds.astype(np.int64), pool.docno[pairs[order]])
