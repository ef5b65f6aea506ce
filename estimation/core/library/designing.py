"""What people call who import the core: from run files to a sample, from judgments to a ranking.

These functions read names and texts, fill in what is usual, and call the core; no number is worked
out here. Each is one step:

1. `pool_runs`: the pool of the runs;
2. `make_design`: with which probability every pair is drawn; `expected_precision` and
   `precision_by_budget` say what that promises;
3. `draw_round`: the pairs to judge;
4. `evaluate`: what their judgments say of every run.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import is_number, nearest
from ..data.pool import Pool, build_pool
from ..data.qrels import Qrels
from ..data.ranked_lists import PoolError, RankedLists, rank_lines
from ..measures.kinds import PREFERENCE_MAX_GRADE
from ..rounds.active.rounds import make_plan
from ..rounds.adaptive.state import AdaptivePlan
from ..rounds.topics.allocation import make_query_design
from ..rounds.topics.grade_models import uniform_grades
from ..sampling.allocation import make_design as make_pair_design
from ..sampling.designs import DesignError
from ..sampling.methods import SAMPLING_METHODS
from .arguments import (
    check_kind,
    check_of_topics,
    check_pool,
    check_runs,
    check_text,
    named_topics,
)
from .names import check_estimated, named_goal, named_measure, named_measures, named_prior

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..measures.table import Measure
    from ..rounds.rounds import AnyDesign
    from ..sampling.goals import Goal
    from ..sampling.priors import Prior

BATCHES = 10  # that a budget is cut into unless somebody says how large they shall be
LEARNED = "predicted", "topic_minimum"  # options of adaptive rounds alone
SAID = {
    *("pool", "goal", "measure", "prior", "model", "budget", "batch_size", "method", "reported"),
    "max_grade",
}
"""What is no option of a method's own function, because `make_design` says it."""


def rank_scores(scores: Mapping[str, Mapping[str, float]]) -> RankedLists:
    """Rank documents by their scores, topic by topic, as trec_eval does: a run from a mapping.

    Examples
    --------
    >>> run = rank_scores({"1": {"d1": 0.5, "d2": 0.9}})
    >>> run.topics, run.docnos.tolist()
    (('1',), [b'd2', b'd1'])
    """
    lines = list(_lines(scores))
    topics, docnos, numbers = zip(*lines, strict=True) if lines else ((), (), ())
    return rank_lines(topics, docnos, numbers)


def _lines(scores: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[bytes, bytes, float]]:
    if not isinstance(scores, Mapping):
        raise PoolError(f"scores must be a mapping of topics to docnos to scores, not {scores!r}")
    for topic, of_topic in scores.items():
        check_text(topic, name="a topic")
        if not isinstance(of_topic, Mapping):
            told = f"the topic {topic!r} must have a mapping of docnos to scores"
            raise PoolError(f"{told}, not {of_topic!r}")
        for docno, score in of_topic.items():
            check_text(docno, name=f"a docno of the topic {topic!r}")
            if not is_number(score):
                told = f"docno {docno!r} of topic {topic!r} has {score!r}"
                raise PoolError(f"scores must be finite numbers; {told}")
            yield topic.encode(), docno.encode(), score


def pool_runs(
    runs: Mapping[str, RankedLists],
    *,
    depth: int,
    topics: Iterable[str] | None = None,
    scores: bool = False,
    judged: Qrels | None = None,
) -> Pool:
    """Pool the first documents of every run and topic: all that can be judged.

    Parameters
    ----------
    runs : mapping of str to RankedLists
        As `read_runs` returns them.
    depth : int
        Documents per topic and run. Deeper measures are cut there.
    topics : iterable of str, optional
        All topics that values are means over, also those for which nothing is returned. By default
        those of `judged`, else all for which any run returns something.
    scores : bool
        Keep the scores of the runs, for MAE, MSE and Accuracy.
    judged : Qrels, optional
        Judgments whose documents belong to the pool even where no run returns them: AP and nDCG
        count the relevant ones.

    Examples
    --------
    >>> runs = read_runs("demo/collection/runs")
    >>> pool = pool_runs(runs, depth=10)
    >>> len(pool), len(pool.topics), len(pool.runs)
    (3223, 50, 20)
    """
    check_runs(runs, name="runs")
    if judged is not None:
        check_kind(judged, Qrels, name="judged", see="read_qrels", error=PoolError)
    extra: dict[str, list[str]] = {}
    if topics is None:
        every = judged.topics if judged else {name for run in runs.values() for name in run.topics}
    else:
        every = set(named_topics(topics))
    if judged is not None:
        for topic, docno in zip(judged.topic.tolist(), judged.docno.tolist(), strict=True):
            extra.setdefault(topic.decode(), []).append(docno.decode())
    kept = {topic: docnos for topic, docnos in extra.items() if topic in set(every)}
    check_of_topics(runs, every, name="runs")
    return build_pool(sorted(every), runs, depth=depth, scores=scores, extra=kept)


def make_design(
    pool: Pool,
    *,
    measure: Measure | str,
    budget: float,
    goal: Goal | str = "ranking",
    method: str = "poisson",
    prior: Prior | str = "rank",
    batch_size: float | None = None,
    max_grade: int | None = None,
    reported: Sequence[Measure | str] | Measure | str = (),
    **options: Any,
) -> AnyDesign:
    """Work out with which probability every pair, or topic, is drawn.

    Parameters
    ----------
    pool : Pool
    measure : Measure or str
        What the sample is optimized for.
    budget : float
        Pairs to judge, or draws (``iid``, ``per-query``); of ``query`` documents to judge.
    goal : Goal or str
        ``ranking``, ``absolute`` or, of ``adaptive`` rounds, ``winner`` for all runs of the pool,
        or a `Goal`.
    method : str
        A way of sampling: ``adaptive``, ``poisson``, ``priority``, ``iid``, ``per-query``,
        ``query`` (whole topics) or ``active``. By default ``poisson``, of which all batches can be
        drawn at once; ``adaptive`` is more exact, and needs the judgments of each before the next.
    prior : Prior or str
        What is believed of relevance before anything is judged: ``rank``, ``fusion``, ``constant``,
        or a `Prior`. ``query`` and ``active`` have none. Measures of predictions and preferences
        have the prior ``constant`` alone, which they get.
    batch_size : float, optional
        What a batch may take of the budget; by default a tenth.
    max_grade : int, optional
        The best grade of the scale. Needed for ``adaptive``, ``query`` and for measures of
        predictions.
    reported : Measure, str, or a sequence of them
        Further measures that will be estimated.
    options
        Others of the method's own function: ``rule``, ``eps``, ``floor``, ``costs``; of
        ``adaptive`` also ``predicted``, grades that somebody predicted, (N, S), NaN for none, and
        ``topic_minimum``, so many pairs of a topic together in a batch, as expected.

    Raises
    ------
    ValueError
        If a name is unknown or a number out of range; the message says what is meant or allowed.

    Examples
    --------
    >>> pool = pool_runs(read_runs("demo/collection/runs"), depth=10)
    >>> design = make_design(pool, measure="DCG@10", budget=400)
    >>> design.batches, round(design.expected_pairs), design.is_census
    (10, 400, False)
    >>> make_design(pool, measure="DCG@10", budget=400, method="poison")
    Traceback (most recent call last):
    DesignError: The method is one of adaptive, ..., not 'poison' (did you mean 'poisson'?).
    """
    if method not in SAMPLING_METHODS:
        names = ", ".join(SAMPLING_METHODS)
        meant = nearest(method, SAMPLING_METHODS)
        raise DesignError(f"The method is one of {names}, not {method!r}{meant}.")
    check_pool(pool)
    main, others = named_measure(measure), named_measures(reported)
    check_estimated((main, *others), method)
    if not is_number(budget):
        raise DesignError(f"budget must be a number, not {budget!r}")
    size = max(2, -(-budget // BATCHES)) if batch_size is None else batch_size
    draws = SAMPLING_METHODS[method].draws
    if method == "active":
        _check_options(options, (), method)
        return make_plan(pool, measures=(main, *others), budget=int(budget), batch_size=int(size))
    aim = named_goal(pool, goal)
    if draws == "topics":
        _check_options(options, _parameters(make_query_design), method)
        model = uniform_grades(pool, max_grade=_needed(max_grade, method))
        options = {"batch_budget": batch_size, "measures": others, **options}
        return make_query_design(
            pool, goal=aim, measure=main, model=model, budget=budget, **options
        )
    learned = LEARNED if method == "adaptive" else ()
    _check_options(options, (*_parameters(make_pair_design), *learned), method)
    if options.get("costs") is not None:
        options["costs"] = np.asarray(options["costs"], dtype=np.float64)
    own = {name: options.pop(name) for name in learned if name in options}
    design = make_pair_design(
        pool,
        goal=aim,
        measure=main,
        prior=named_prior(pool, prior, aim, main, max_grade),
        budget=budget,
        batch_size=size,
        method=method,  # type: ignore[arg-type]  # a name of the table that draws pairs
        reported=others,
        max_grade=max_grade,
        **options,
    )
    if method != "adaptive":
        return design
    best = PREFERENCE_MAX_GRADE if pool.is_of_preferences else _needed(max_grade, method)
    even = own.get("topic_minimum", 0.0) > 1.0
    return AdaptivePlan(design, best, options.get("costs"), **own, even_topics=even)


def _parameters(makes: Callable[..., object]) -> list[str]:
    return [name for name in signature(makes).parameters if name not in SAID]


def _check_options(options: Iterable[str], known: Sequence[str], method: str) -> None:
    for name in options:
        if name not in known:
            listed = ", ".join(known) or "none"
            told = f"The method {method!r} has no option {name!r}{nearest(name, known)}"
            raise DesignError(f"{told}; its options: {listed}.")


def _needed(max_grade: int | None, method: str) -> int:
    if max_grade is None:
        raise DesignError(f"max_grade is needed for the method {method!r}.")
    return max_grade
