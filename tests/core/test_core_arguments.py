"""Who gives the library something else than it takes is told what it takes."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimation import core

RUNS = {
    "first": core.rank_scores({"1": {"a": 3.0, "b": 2.0, "c": 1.0}, "2": {"a": 2.0, "d": 1.0}}),
    "second": core.rank_scores({"1": {"b": 3.0, "d": 2.0}, "2": {"d": 2.0, "e": 1.0}}),
}
POOL = core.pool_runs(RUNS, depth=3)
DESIGN = core.make_design(POOL, measure="P@3", budget=3, batch_size=3)
DRAWN = core.draw_round(POOL, DESIGN, seed="a seed")
QRELS = core.Qrels.of({"1": {"a": 1, "b": 0, "c": 1, "d": 0}, "2": {"a": 1, "d": 0, "e": 1}})
ASKED: dict[str, Any] = {"labels": QRELS, "measures": "P@3", "max_grade": 1}


def evaluated(drawn: Any = DRAWN, **changed: Any) -> core.Evaluation:
    return core.evaluate(POOL, drawn, **ASKED | changed)


def designed(**changed: Any) -> Any:
    return core.make_design(POOL, **{"measure": "P@3", "budget": 3} | changed)


def complete(runs: Any = RUNS, **changed: Any) -> core.CompleteEvaluation:
    return core.evaluate_complete(runs, QRELS, **{"measures": "P@3"} | changed)


AS_MAPPING = "must be a mapping of names to RankedLists (see read_runs and rank_scores), not"
AS_RUN = "must be RankedLists (see read_runs and rank_scores), not"
ELSEWHERE = {"new": core.rank_scores({"3": {"a": 1.0}})}
A_PATH: Any = "demo/collection/runs"
MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: core.rank_scores([]), "scores must be a mapping of topics to docnos to scores"),
    (lambda: core.rank_scores({"1": ["a"]}), "'1' must have a mapping of docnos to scores"),
    (lambda: core.rank_scores({1: {"a": 1.0}}), "a topic must be a text, not 1"),
    (lambda: core.rank_scores({"1": {7: 1.0}}), "a docno of the topic '1' must be a text, not 7"),
    (lambda: core.rank_scores({"1": {"a": "x"}}), "docno 'a' of topic '1' has 'x'"),
    (lambda: core.read_runs(5), "places must be a path, or several, of files of runs, not 5"),
    (lambda: core.pool_runs(A_PATH, depth=3), f"runs {AS_MAPPING} a str"),
    (lambda: core.pool_runs({"a": {}}, depth=3), f"runs['a'] {AS_RUN} a dict"),
    (lambda: core.pool_runs(RUNS, depth=3, topics="12"), "must be a list of texts, not '12'"),
    (lambda: core.pool_runs(RUNS, depth=3, topics=[1]), "a topic must be a text, not 1"),
    (lambda: core.pool_runs(RUNS, depth=3, topics=["3"]), "topics 3; they have the topics 1, 2"),
    (lambda: core.pool_runs(RUNS, depth=3, judged={}), "judged must be Qrels (see read_qrels)"),
    (lambda: core.make_design(RUNS, measure="P@3", budget=3), "pool must be Pool (see pool_runs)"),
    (lambda: core.preference_pool(RUNS, depth=2), "pool must be Pool (see pool_runs), not a dict"),
    (lambda: QRELS.labels(RUNS), "pool must be Pool (see pool_runs), not a dict"),
    (
        lambda: core.carry_over(DRAWN, RUNS, larger=POOL, like=DESIGN),
        "pool must be Pool (see pool_runs), not a dict",
    ),
    (
        lambda: core.carry_over(DRAWN, POOL, larger=RUNS, like=DESIGN),
        "pool must be Pool (see pool_runs), not a dict",
    ),
    (
        lambda: core.carry_over(DRAWN, POOL, larger=POOL, like=DRAWN),
        "like must be Design (see make_design), not a PairRound",
    ),
    (lambda: designed(measure=10), "A measure is written like"),
    (lambda: designed(budget="3"), "budget must be a number, not '3'"),
    (lambda: designed(costs=[1.0, 2.0]), "costs must hold one number per pair, 7, not (2,)"),
    (lambda: designed(rule="frist"), "not 'frist' (did you mean 'first'?)"),
    (lambda: core.ranking(["first", "second"]), "names runs by texts, not ['first', 'second']"),
    (lambda: core.draw_round(POOL, "poisson", seed="s"), "what make_design returned, not a str"),
    (lambda: core.expected_precision(RUNS, DESIGN), "pool must be Pool (see pool_runs)"),
    (lambda: QRELS.labels(POOL, [-1]), "pairs must lie between 0 and 6, not -1"),
    (lambda: QRELS.labels(POOL, [7]), "pairs must lie between 0 and 6, not 7"),
    (lambda: QRELS.labels(POOL, [1.5]), "pairs must be a vector of integers, not 1.5"),
    (lambda: QRELS.labels(POOL, unlisted=-1), "unlisted must be a whole number of at least 0"),
    (lambda: core.Qrels.of([]), "grades must be a mapping of topics to docnos to grades"),
    (lambda: core.Qrels.of({1: {"a": 1}}), "grades must be a mapping of topics to docnos"),
    (lambda: core.Qrels.of({"1": {"a": 1.5}}), "docno 'a' of topic '1' has 1.5"),
    (lambda: core.Qrels.of({"1": {"a": float("nan")}}), "docno 'a' of topic '1' has nan"),
    (lambda: core.Qrels.of({"1": {"a": True}}), "docno 'a' of topic '1' has True"),
    (lambda: evaluated(drawn=DESIGN), "drawn must be what draw_round, together or given_round"),
    (lambda: evaluated(labels=None), "must be LabelRows or Qrels (see Qrels.labels), not None"),
    (lambda: evaluated(labels=core.LabelRows(["a"], ["b"])), "vector of integers, not 'a'"),
    (lambda: evaluated(measures=5), "measures must be a measure or a list of them, not 5"),
    (lambda: evaluated(look=3), "look must be Look (see Look(5, 10), the fifth of ten)"),
    (lambda: evaluated(later=[RUNS]), f"later {AS_MAPPING} a list"),
    (lambda: evaluated(later={"new": {}}), f"later['new'] {AS_RUN} a dict"),
    (lambda: complete("runs"), f"runs {AS_MAPPING} a str"),
    (lambda: complete({"a": {}}), f"runs['a'] {AS_RUN} a dict"),
    (lambda: complete(topics=["3"]), "runs return nothing for the topics 3; they have the topics"),
    (
        lambda: evaluated(later=ELSEWHERE),
        "lists of later['new'] return nothing for the topics 1, 2",
    ),
    (lambda: complete(topics="12"), "topics must be a list of texts, not '12'"),
    (lambda: core.together(DRAWN, seeds="s"), "rounds must be a list of rounds, not a PairRound"),
    (lambda: core.together([DESIGN], seeds=["s"]), "what draw_round returned, not a Design"),
    (lambda: core.together([DRAWN], seeds=[]), "seeds must hold one for each round, 1, not 0"),
    (lambda: core.together([DRAWN], seeds="s"), "one for each round, not 's'"),
    (lambda: core.top_up(DESIGN, rounds=[DRAWN]), "seeds must hold one for each round, 1, not 0"),
    (lambda: core.top_up(DRAWN, judged=[1]), "by poisson top up, not a PairRound"),
    (lambda: core.given_round(POOL, QRELS), "sampled must be SampledQrels (see read_prels)"),
    (lambda: core.write_prels("p", POOL, DRAWN, labels=QRELS), "labels must be LabelRows"),
]


@pytest.mark.parametrize(("call", "told"), MISTAKES, ids=[told for _, told in MISTAKES])
def test_what_was_expected_is_told(call: Callable[[], object], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        call()


@pytest.mark.parametrize("method", ["poisson", "adaptive", "active"])
@pytest.mark.parametrize("asked", [{"measure": "ERR@3"}, {"reported": "ERR@3"}])
def test_nobody_judges_for_a_measure_that_the_method_does_not_estimate(
    method: str, asked: dict[str, str]
) -> None:
    message = f"ERR@3 is estimated from rounds by query, not by {method}"
    with pytest.raises(core.MeasureError, match=message):
        designed(method=method, max_grade=1, **asked)
    assert designed(method="query", goal="absolute", max_grade=1, budget=7, **asked)


def test_lists_do_where_arrays_are_meant() -> None:
    labels = QRELS.labels(POOL, DRAWN.served(POOL).pair)
    lists = core.LabelRows(labels.pair.tolist(), labels.grade.tolist())
    assert evaluated(labels=lists).columns() == evaluated(labels=labels).columns()
    assert len(core.LabelRows([], []).pair) == 0
    assert designed(costs=[1.0] * len(POOL)).expected_pairs > 0
    assert designed(reported="DCG@3").reported == designed(reported=["DCG@3"]).reported
    assert core.Qrels.of({"1": {"a": np.int64(1)}}).grade.tolist() == [1]


def test_files_of_something_else_are_named(tmp_path: Path) -> None:
    (
        POOL.save(tmp_path / "pool"),
        DESIGN.save(tmp_path / "design"),
        DRAWN.sample.save(tmp_path / "s"),
    )
    with pytest.raises(ValueError, match=r"file of a design, found one of the form evalsite-pool"):
        core.load_round(tmp_path / "pool", tmp_path / "s")
    with pytest.raises(ValueError, match=r"^pool: expected a file of the form evalsite-sample"):
        core.load_round(tmp_path / "design", tmp_path / "pool")
    (tmp_path / "text").write_text("none")
    with pytest.raises(ValueError, match=r"^text: not an archive, or damaged"):
        core.load_round(tmp_path / "text", tmp_path / "s")
