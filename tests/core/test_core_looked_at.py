"""Pairs that stand for all in what is expected: right on average, also between near-duplicates."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.entries import entries_down_to
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.estimates.drawn import Drawn
from estimation.core.inference import looked_at, unseen
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.inference.reach import Reach
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from tests.core.test_core_uncertainty import P10, alike, campaigns, share_with_false_verdicts

FEW = 300  # entries of the 4800 of the pool


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looked_at, "MOST_ENTRIES", FEW)
    monkeypatch.setattr(looked_at, "KEPT_ENTRIES", FEW)


def design_of(pool: Pool, method: str, budget: int = 300) -> Design:
    goal = goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=P10, max_grade=1)
    return make_design(
        pool, goal=goal, measure=P10, prior=prior, budget=budget, batch_size=40, max_grade=1,
        method=method, eps=0.1 if method == "iid" else 0.0,
    )  # fmt: skip


def drawn_of(pool: Pool, method: str, batches: int | None = None) -> Drawn:
    design = design_of(pool, method)
    return Drawn.of(
        design, draw(pool, design, seed="a"), batches or design.batches, topic=pool.topic
    )


def differences(pool: Pool, drawn: Drawn) -> np.ndarray:
    """Expected variance of each difference of two runs."""
    outlook = KnownOutlook(np.array([1]), np.full((1, len(pool)), 0.3))
    reach = Reach(pool, drawn.pair, drawn.inclusion)
    covariance = unseen.unseen(reach, drawn, outlook, measure=P10).covariance
    single = np.diag(covariance)
    return np.add.outer(single, single) - 2.0 * covariance


def of_near_duplicates(found: np.ndarray) -> np.ndarray:
    """Of the runs that were made from one, each two of them."""
    of_one = np.kron(np.eye(3), np.ones((4, 4))) > 0.0
    return found[np.triu(of_one, k=1)]


@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_what_near_duplicates_differ_in_is_looked_at(method: str, monkeypatch) -> None:
    pool, _ = alike()
    drawn = drawn_of(pool, method)
    exact = of_near_duplicates(differences(pool, drawn))
    assert np.all(exact > 0.0)
    monkeypatch.setattr(looked_at, "MOST_ENTRIES", FEW)
    monkeypatch.setattr(looked_at, "KEPT_ENTRIES", FEW)
    found = of_near_duplicates(differences(pool, drawn))
    assert np.abs(found / exact - 1.0).max() < 0.35
    assert np.mean(found / exact) == pytest.approx(1.0, abs=0.1)
    pool.kept.clear()
    monkeypatch.setattr(looked_at, "FOR_EACH", 0)  # the twin
    blind = of_near_duplicates(differences(pool, drawn))
    assert (blind < 0.1 * exact).any()


@pytest.mark.parametrize(("method", "times"), [("poisson", 4), ("iid", 1)])
def test_batches_share_who_is_looked_at(method: str, times: int, few: None, monkeypatch) -> None:
    pool, _ = alike()
    chosen = []
    choose = looked_at._chosen

    def counting(*arguments: object) -> looked_at.Rows:
        chosen.append(arguments)
        return choose(*arguments)

    monkeypatch.setattr(looked_at, "_chosen", counting)
    rows = [
        looked_at.looked_at(pool, drawn_of(pool, method, batches), P10)
        for batches in (4, 5, 6, 7, 2, 3, 1)
    ]
    assert len(chosen) == times  # for Poisson as often as probabilities double
    assert rows[0].pair.tolist() == rows[1].pair.tolist()
    left = rows[1].factor > 0.0
    assert np.all(rows[0].factor[left] > rows[1].factor[left])
    assert np.count_nonzero(rows[0].weight > 1.0) > 10


def test_pairs_that_are_certain_count_for_nothing(few: None) -> None:
    pool, _ = alike()
    design = design_of(pool, "poisson", budget=700)
    drawn = Drawn.of(design, draw(pool, design, seed="a"), design.batches, topic=pool.topic)
    rows = looked_at.looked_at(pool, drawn, P10)
    certain = drawn.inclusion[rows.pair] == 1.0
    assert 0 < np.count_nonzero(certain) < len(certain)
    assert not rows.weight[certain].any()
    assert not rows.factor[certain].any()
    uncertain = entries_down_to(pool, 10).number(drawn.uncertain)
    assert rows.weight.sum() == pytest.approx(np.count_nonzero(uncertain), rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("entries", [FEW, 10**6], ids=["some", "all"])
def test_the_bits_do_not_depend_on_what_is_kept(
    entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looked_at, "MOST_ENTRIES", entries)
    monkeypatch.setattr(looked_at, "KEPT_ENTRIES", entries)
    pool, grades = alike()
    measures = [P10, parse_measure("DCG@10"), parse_measure("P@5")]

    def found(pool: Pool, method: str) -> bytes:
        design = design_of(pool, method)
        sample = draw(pool, design, seed="b")
        labels = LabelRows(sample.pair, grades[sample.pair])
        results = evaluate(
            pool, PairRound(design, sample), labels=labels, measures=measures, max_grade=1
        )
        return b"".join(
            array.tobytes()
            for each in results.results
            for array in (each.estimate.low, each.estimate.high, each.ranking.verdicts)
        )

    once = [found(alike()[0], method) for method in ("poisson", "iid", "poisson")]
    again = [found(pool, method) for method in ("poisson", "iid", "poisson")]
    assert again == once
    assert once[0] != once[1]


def test_pairs_that_are_held_for_all_batches_add_what_those_of_one_add(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool, _ = alike()
    for method, batches in [("poisson", 2), ("poisson", 7), ("iid", 3)]:
        drawn = drawn_of(pool, method, batches)
        held = looked_at.looked_at(pool, drawn, P10)
        assert held.couples is not None
        with monkeypatch.context() as patch:
            patch.setattr(looked_at, "MOST_ENTRIES", 0)  # but all that are uncertain
            patch.setattr(looked_at, "_uncertain_entries", lambda *_: 0)
            alone = looked_at.looked_at(pool, drawn, P10)
        assert alone.couples is not None
        alone = replace(alone, couples=None)
        uncertain, order = np.argsort(held.pair[held.factor > 0.0]), np.argsort(alone.pair)
        for name in ("pair", "factor"):
            some = getattr(held, name)[held.factor > 0.0][uncertain]
            assert some.tolist() == getattr(alone, name)[order].tolist()
        numbers = np.random.default_rng(4).random(len(pool))
        for name in ("gram", "cubes", "total", "by_topic"):
            found, expected = (getattr(of, name)(numbers[of.pair]) for of in (held, alone))
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.slow
def test_near_duplicates_get_no_false_verdicts_where_some_stand_for_all(
    few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, grades = alike()
    budget = int(0.7 * len(pool))
    found = campaigns(pool, grades, budget, 100)
    assert share_with_false_verdicts(found, pool, grades) <= 0.05 + 2 * 0.022
    pool.kept.clear()
    monkeypatch.setattr(looked_at, "FOR_EACH", 0)  # the twin
    assert share_with_false_verdicts(campaigns(pool, grades, budget, 40), pool, grades) > 0.15
