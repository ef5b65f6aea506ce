"""AP and nDCG of judgments that disagree: what that moves values by on average is taken off."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.complete import complete_values
from estimation.core.estimates.ratio_moments import RatioNoise
from estimation.core.estimates.ratios import judged_ratios, ratios_of_shares
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.sampling import goals
from estimation.research.trials import methods
from estimation.research.trials.settings import Assessors, Setting
from tests.core.length import bounded
from tests.core.ratio_pools import RATIOS, grades_of, three_runs

SHALLOW = [parse_measure(text) for text in ("AP", "nDCG@5")]
TRIALS = bounded(400, 4000)


@pytest.fixture(scope="module")
def world() -> tuple[Pool, np.ndarray]:
    """30 topics of eight documents, of three runs; how many find each useful, (N,).

    So few are that one judgment more or less moves the denominator by much.
    """
    topics, rng = [f"t{number:02d}" for number in range(30)], np.random.default_rng(3)
    runs = {}
    for tag, rows in (("one", 8), ("three", 6), ("two", 5)):
        names = [f"d{rank}".encode() for _ in topics for rank in rng.permutation(8)[:rows]]
        ends = np.arange(0, len(names) + 1, rows)
        runs[tag] = RankedLists(tuple(topics), ends, np.array(names))
    pool = build_pool(topics, runs, depth=8)
    return pool, np.where(rng.random(len(pool)) < 0.5, 0.7, 0.05)


def judged(pool: Pool, share: np.ndarray, trial: int, number: int = 4) -> LabelRows:
    """So many judgments of every pair, of which that share finds it useful."""
    useful = np.random.default_rng(trial).random((len(pool), number)) < share[:, None]
    grade = np.sort(useful.astype(np.int64), axis=1).ravel()
    return LabelRows(np.repeat(np.arange(len(pool)), number), grade)


def off_by(world: tuple[Pool, np.ndarray], measure: Measure) -> np.ndarray:
    """Mean error of the three values in every trial, shape (trials,)."""
    pool, share = world
    true = ratios_of_shares(pool, measure, gain=np.ones(1), reach=share[None, :]).mean(axis=0)
    found = [
        judged_ratios(pool, measure, rows=judged(pool, share, trial)).value.mean(axis=0)
        for trial in range(TRIALS)
    ]
    return np.array(found - true).mean(axis=1)


@pytest.mark.slow
def test_what_disagreement_moves_values_by_is_taken_off(world) -> None:
    ap = parse_measure("AP")
    told = off_by(world, ap)
    with mock.patch.object(RatioNoise, "bias", return_value=0.0):
        untold = off_by(world, ap)
    error = told.std() / np.sqrt(TRIALS)
    assert abs(told.mean()) < 3.0 * error
    assert abs(untold.mean()) > 6.0 * error


def test_all_rounds_of_judged_pairs_have_the_same_ratios(world) -> None:
    """All is judged: whatever the round, the numbers are those of whole topics."""
    pool, share = world
    for measure in SHALLOW:
        setting = Setting(
            pool=pool,
            grades=(share > 0.5).astype(np.int64),
            max_grade=1,
            goal=goals.absolute(*pool.runs),
            measure=measure,
            budget=len(pool),
            assessors=Assessors(labels=3, noise=0.2),
        )
        rows = setting.rows("s", np.arange(len(pool)))
        order = np.lexsort((rows.grade, rows.pair))
        rows = LabelRows(rows.pair[order], rows.grade[order])
        told = judged_ratios(pool, measure, rows=rows).value.mean(axis=0)
        once = ratios_of_shares(
            pool, measure, gain=np.ones(1), reach=shares_of(rows, len(pool))[None, :]
        ).mean(axis=0)
        assert not np.allclose(told, once, rtol=1e-3)
        for name in ("poisson", "adaptive"):
            assert methods.prepare(setting, name)("s").value == pytest.approx(told, rel=1e-9)


def test_one_pair_of_which_people_disagree_moves_no_others(world) -> None:
    """What a single judgment may be off by is for intervals, and takes nothing off the values."""
    pool, share = world
    once = judged(pool, share, 0, 1)
    pair = int(np.flatnonzero(once.grade)[0])
    again = LabelRows(np.insert(once.pair, pair, pair), np.insert(once.grade, pair, 0))
    topic = pool.topic[pair]
    for measure in SHALLOW:
        alone, two = (judged_ratios(pool, measure, rows=rows).value for rows in (once, again))
        others = np.arange(len(pool.topics)) != topic
        assert two[others] == pytest.approx(alone[others], abs=0.0)
        assert not np.array_equal(two[topic], alone[topic])


def shares_of(rows: LabelRows, pairs: int) -> np.ndarray:
    return np.bincount(rows.pair, rows.grade > 0, minlength=pairs) / np.bincount(rows.pair)


@pytest.mark.parametrize("measure", RATIOS, ids=str)
def test_shares_of_all_or_none_are_grades(measure: Measure) -> None:
    pool = three_runs()
    grades = grades_of(pool)
    gain = np.diff(measure.utilities(np.arange(4)))
    rising = np.flatnonzero(gain > 0.0)
    reach = (grades > rising[:, None]).astype(np.float64)
    found = ratios_of_shares(pool, measure, gain=gain[rising], reach=reach)
    complete = complete_values(pool, grades=grades, measures=[measure])[0]
    assert found == pytest.approx(complete, abs=1e-12)


def test_a_ratio_of_shares_is_the_one_that_is_defined(ranked) -> None:
    """AP of three documents, in part relevant: a document is a pair with itself once."""
    pool = build_pool(["t"], {"run": ranked({"t": "abc"})}, depth=3)
    a, b, c = share = np.array([0.5, 0.25, 1.0])
    order = np.array([pool.docno.tolist().index(each) for each in (b"a", b"b", b"c")])
    reach = np.empty(3)
    reach[order] = share
    found = ratios_of_shares(pool, parse_measure("AP"), gain=np.ones(1), reach=reach[None, :])
    ap = (a + (b + a * b) / 2.0 + (c + (a + b) * c) / 3.0) / (a + b + c)
    assert found == pytest.approx(np.array([[ap]]))
    with pytest.raises(MeasureError):
        ratios_of_shares(pool, parse_measure("MAE"), gain=np.ones(1), reach=reach[None, :])


@pytest.mark.parametrize("text", ["AP", "nDCG@3", "Rprec"])
def test_trials_know_the_truth_of_noisy_judgments(text: str) -> None:
    """Of two grades, of which judgments have the other one with a chance, shares are known."""
    pool, measure = three_runs(), parse_measure(text)
    grades = (grades_of(pool) > 0).astype(np.int64)
    setting = Setting(
        pool=pool,
        grades=grades,
        max_grade=1,
        goal=goals.absolute(*pool.runs),
        measure=measure,
        budget=len(pool),
        assessors=Assessors(labels=2, noise=0.2),
    )
    share = np.where(grades > 0, 0.8, 0.2)[None, :]
    expected = ratios_of_shares(pool, measure, gain=np.ones(1), reach=share).mean(axis=0)
    assert setting.truth() == pytest.approx(expected, rel=1e-12)
    plain = replace(setting, assessors=Assessors())
    assert not np.allclose(plain.truth(), expected, rtol=0.05)


@pytest.mark.parametrize("text", ["AP(rel=3)", "Rprec(rel=3)"])
def test_trials_of_a_scale_on_which_nothing_is_relevant_are_0(text: str) -> None:
    pool = three_runs()
    setting = Setting(
        pool=pool,
        grades=(grades_of(pool) > 0).astype(np.int64),
        max_grade=1,
        goal=goals.absolute(*pool.runs),
        measure=parse_measure(text),
        budget=len(pool),
        assessors=Assessors(labels=2, noise=0.2),
    )
    assert setting.truth().tolist() == [0.0, 0.0, 0.0]
