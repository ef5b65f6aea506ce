"""Ratios of adaptive rounds where topics have one relevant document, or one run all that is."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.inference import ratio_outlook, second_order
from estimation.core.inference.looks import Look
from estimation.core.inference.ratio_knowledge import knowledge_at
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.adaptive import answers, ratios
from estimation.core.rounds.adaptive.beyond import Beyond
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.evaluation import evaluate
from estimation.research.simulation import true_values
from tests.core.test_core_adaptive import labels_of, played
from tests.core.test_core_adaptive_ratios import AP, RPREC, plan_of

TOPICS, DOCUMENTS, RUNS, DEPTH = 50, 40, 6, 15
TRIALS = 8


@pytest.fixture(scope="module")
def known_items() -> tuple[Pool, np.ndarray]:
    """Six runs, the first of which returns the document first in nine topics of ten."""
    generator = np.random.default_rng(14)
    topics = [f"t{number:02}" for number in range(TOPICS)]
    wanted = generator.integers(DOCUMENTS, size=TOPICS)
    runs = {}
    for run in range(RUNS):
        scores = generator.normal(scale=1.0 + run / 2.0, size=(TOPICS, DOCUMENTS))
        scores[np.arange(TOPICS), wanted] += 3.0
        best = np.argsort(-scores, axis=1)[:, :DEPTH]
        docnos = np.array([f"d{document:02}".encode() for document in best.ravel()])
        runs[f"r{run}"] = RankedLists(tuple(topics), np.arange(TOPICS + 1) * DEPTH, docnos)
    pool = build_pool(topics, runs, depth=DEPTH)
    documents = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return pool, (documents == wanted[pool.topic]).astype(np.int64)


def shares_held(
    pool: Pool, grades: np.ndarray, measure: Measure, *, judged: float = 0.1
) -> tuple[float, float]:
    """How many values and how many differences, of those that are told, are where it is told."""
    truth, first = true_values(pool, grades=grades, measure=measure), np.triu_indices(RUNS, k=1)
    plan = plan_of(pool, measure, budget=int(judged * len(pool)), batches=10)
    values, differences = [], []
    for trial in range(TRIALS):
        drawn, labels = played(pool, grades, plan, seed=f"k{trial}")
        found = evaluate(pool, drawn, labels=labels, measures=[measure], max_grade=3).results[0]
        shown, ranking = found.estimate, found.ranking
        held = (shown.low <= truth) & (truth <= shown.high)
        values.append(held[shown.unknown == 0])
        off = np.abs(ranking.difference - np.subtract.outer(truth, truth)) <= ranking.margin
        differences.append(off[first][ranking.unknown[first] == 0])
    return float(np.mean(np.concatenate(values))), float(np.mean(np.concatenate(differences)))


@pytest.mark.slow
@pytest.mark.parametrize("measure", [AP, parse_measure("nDCG@20")], ids=str)
def test_what_topics_without_a_find_hold_is_allowed_for(
    known_items: tuple, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin goes by what is told of these topics alone, and not by what knows more: of nDCG a
    line, and products of finds."""
    values, differences = shares_held(*known_items, measure)
    assert values > 0.92
    assert differences > 0.95
    monkeypatch.setattr(Beyond, "told_low", lambda _, told, *_given: np.zeros(told.shape[1]))
    monkeypatch.setattr(ratio_outlook, "BENT", 0.0)
    monkeypatch.setattr(second_order, "LEAST_TOPICS", 10**9)
    assert shares_held(*known_items, measure)[1] < 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("measure", "judged", "least"), [(AP, 0.2, 0.97), (RPREC, 0.1, 0.8)])
def test_where_one_document_is_there_topics_count_as_much_as_is_expected_of_them(
    known_items: tuple,
    measure: Measure,
    judged: float,
    least: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin counts them as if pairs were relevant or not independently."""
    values, differences = shares_held(*known_items, measure, judged=judged)
    assert values > 0.94
    assert differences > least
    monkeypatch.setattr(ratios, "share_at_most", lambda nothing, _measure: 1.0 - nothing)
    monkeypatch.setattr(second_order, "LEAST_TOPICS", 10**9)
    assert shares_held(*known_items, measure, judged=judged)[1] < least - 0.02


# ----------------------------------------------------------------- before anything is found


def held_at_first_looks(pool: Pool, grades: np.ndarray, measure: Measure) -> float:
    """How many values are where it is told, known or not, after each of three batches of six."""
    truth = true_values(pool, grades=grades, measure=measure)
    plan, held = plan_of(pool, measure, budget=60, batches=10), []
    for trial in range(TRIALS):
        drawn = AdaptiveRound.begin(pool, plan, seed=f"f{trial}")
        for number in (1, 2, 3):
            labels = labels_of(drawn.sample.pair, grades)
            look = Look(number, 10)
            given = {"labels": labels, "measures": [measure], "max_grade": 3, "look": look}
            shown = evaluate(pool, drawn, batches=number, **given).results[0].estimate
            held.append((shown.low <= truth) & (truth <= shown.high))
            drawn = drawn.extended(pool, labels=labels)
    return float(np.mean(held))


@pytest.mark.parametrize("measure", [AP, parse_measure("nDCG@10"), RPREC], ids=str)
def test_values_of_which_nothing_was_found_can_be_all_that_values_can(
    known_items: tuple, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin goes by errors, which are shares of a value that is 0."""
    assert held_at_first_looks(*known_items, measure) > 0.98
    monkeypatch.setattr(
        answers,
        "knowledge_at",
        lambda *at, **more: replace(knowledge_at(*at, **more), nothing=False),
    )
    assert held_at_first_looks(*known_items, measure) < 0.9


# ------------------------------------------------------------ one run, nearly all of it judged


def share_of_samples(pool: Pool, grades: np.ndarray, *, trials: int = 12) -> float:
    """How often AP of the one run is where it is told."""
    truth, held = true_values(pool, grades=grades, measure=AP), []
    plan = plan_of(pool, AP, budget=round(0.9 * len(pool)), batches=10)
    for trial in range(trials):
        drawn, labels = played(pool, grades, plan, seed=f"a{trial}")
        found = evaluate(pool, drawn, labels=labels, measures=[AP], max_grade=3).results[0].estimate
        assert found.unknown[0] == 0
        held.append(found.low[0] <= truth[0] <= found.high[0])
    return float(np.mean(held))


@pytest.mark.slow
def test_values_allow_for_counts_that_are_not_below_what_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator, depth, topics = np.random.default_rng(9), 30, [f"t{at:02}" for at in range(25)]
    relevant = generator.choice(3, size=(25, 60), p=(0.8, 0.15, 0.05))
    best = np.argsort(-(relevant + generator.normal(size=relevant.shape)), axis=1)[:, :depth]
    docnos = np.array([f"d{document:02}".encode() for document in best.ravel()])
    lists = RankedLists(tuple(topics), np.arange(26) * depth, docnos)
    pool = build_pool(topics, {"a": lists}, depth=depth)
    documents = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    grades = relevant[pool.topic, documents]
    assert share_of_samples(pool, grades) > 0.9
    monkeypatch.setattr(second_order, "LEAST_TOPICS", 10**9)  # products of finds know it as well
    monkeypatch.setattr(ratios, "lowered", lambda _line, _of, told: np.zeros(told.shape[1]))
    assert share_of_samples(pool, grades) < 0.6
