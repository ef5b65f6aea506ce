"""Whole topics on judged collections: TREC's ERR, and the labels that choosing topics saves."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import query_sampling
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.topics.values import judged_topics
from estimation.core.sampling import goals
from estimation.core.sampling.goals import Goal

_JUDGED: dict[Path, query_sampling.JudgedCollection] = {}


def judged(folder: Path) -> query_sampling.JudgedCollection:
    """The learning-to-rank collection, with a grade model that is fitted once."""
    if folder not in _JUDGED:
        _JUDGED[folder] = query_sampling.read_collection(folder, query_sampling.PAIR)
    return _JUDGED[folder]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval, the oracle, needs perl")
def test_err_agrees_with_gdeval(data_dir: Path) -> None:
    """TREC's own program, whose scale ends at grade 4 and which prints five digits."""
    ir_measures = pytest.importorskip("ir_measures")
    data = judged(data_dir / "ltr-rank")
    names = [data.pool.topics[t] for t in data.pool.topic]
    docnos = [each.decode() for each in data.pool.docno]
    qrels: dict[str, dict[str, int]] = {}
    for topic, docno, grade in zip(names, docnos, data.grades.tolist(), strict=True):
        qrels.setdefault(topic, {})[docno] = grade
    tag = query_sampling.SINGLE
    run: dict[str, dict[str, float]] = {}
    for entry in np.flatnonzero(data.pool.run == data.pool.run_index(tag)):
        pair = data.pool.entry_pair[entry]
        run.setdefault(names[pair], {})[docnos[pair]] = 1000.0 - float(data.pool.rank[entry])
    theirs = {
        each.query_id: each.value
        for each in ir_measures.iter_calc([ir_measures.ERR @ 20], qrels, run)
    }
    measure = parse_measure("ERR@20")
    ours = judged_topics(
        data.pool, labels=data.labels, measure=measure, max_grade=4, runs=[tag]
    ).value
    assert len(theirs) == len(data.pool.topics)
    assert ours[:, 0] == pytest.approx([theirs[each] for each in data.pool.topics], abs=6e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("goal", "text", "design", "least", "most"),
    [
        (goals.pair(*query_sampling.PAIR), "ERR", "active", 0.25, 0.55),
        (goals.pair(*query_sampling.PAIR), "DCG(dcg='exp-log2')", "active", 0.10, 0.40),
        (goals.single(query_sampling.SINGLE), "ERR", "active", -0.05, 0.20),
        (goals.single(query_sampling.SINGLE), "ERR", "unbiased", 0.35, 0.60),
        (goals.single(query_sampling.SINGLE), "AP", "unbiased", 0.04, 0.26),
    ],
)
def test_choosing_topics_saves_labels(
    data_dir: Path, goal: Goal, text: str, design: str, least: float, most: float
) -> None:
    """Sawade et al. 2013, section 5, on other data; the twin draws with shuffled chances."""
    data = judged(data_dir / "ltr-rank")
    setting = query_sampling.Setting(goal, parse_measure(text))
    budgets, repeats = (200, 300, 450, 700, 1000, 1500), 400
    passive = [error_at(data, setting, "passive", budget, repeats) for budget in budgets]
    error = error_at(data, setting, design, 450, 2 * repeats)
    curve = {"budgets": budgets, "passive": passive}
    assert least < query_sampling.saved(450, error, **curve) < most
    if least > 0.0:
        twin = error_at(data, setting, design, 450, repeats, shuffled=True)
        assert query_sampling.saved(450, twin, **curve) < 0.0


def error_at(
    data: query_sampling.JudgedCollection,
    setting: query_sampling.Setting,
    name: str,
    budget: int,
    repeats: int,
    *,
    shuffled: bool = False,
) -> float:
    design = query_sampling.designs(data, setting, budget)[name]
    if shuffled:
        chances = np.random.default_rng(8).permutation(design.probability)
        design = replace(design, probability=chances)
    return query_sampling.root_mean_square_error(data, setting, design, repeats=repeats)
