"""The model of grades: what it learns from the judgments, and what it leaves alone."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.scope import Scope
from estimation.core.estimates.drawn import Drawn
from estimation.core.inference import raking
from estimation.core.inference.fitting import fit_outlook, outlook_of
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.inference.raking import Model, Traits
from estimation.core.measures.table import parse_measure
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior

TOPICS, RUNS, DEPTH = 30, 6, 10
GAIN = parse_measure("DCG@10")


def own_lists(run: int) -> RankedLists:
    """Documents of this run alone, but for the first three, which all runs return."""
    docnos = [
        [f"c{topic}-{n}".encode() for n in range(3)]
        + [f"r{run}-{topic}-{n}".encode() for n in range(DEPTH - 3)]
        for topic in range(TOPICS)
    ]
    return RankedLists(
        tuple(f"t{topic:02}" for topic in range(TOPICS)),
        np.arange(0, (TOPICS + 1) * DEPTH, DEPTH),
        np.array([docno for each in docnos for docno in each]),
    )


@pytest.fixture(scope="module")
def pool() -> Pool:
    runs = {f"run{run}": own_lists(run) for run in range(RUNS)}
    return build_pool([f"t{topic:02}" for topic in range(TOPICS)], runs, depth=DEPTH)


def drawn_of(pool: Pool, budget: int, seed: str = "s") -> Drawn:
    goal = goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=GAIN, max_grade=2)
    design = make_design(
        pool, goal=goal, measure=GAIN, prior=prior, budget=budget, batch_size=budget
    )
    return Drawn.of(design, draw(pool, design, seed=seed), 1, topic=pool.topic)


def rows_of(drawn: Drawn, grades: np.ndarray) -> LabelRows:
    return LabelRows(np.arange(len(drawn.pair)), grades[drawn.pair])


def of_run(pool: Pool, run: int) -> np.ndarray:
    """The pairs that only this run returns."""
    alone = np.diff(pool.indptr) == 1
    return np.flatnonzero(alone & (pool.run[pool.indptr[:-1]] == run))


def test_a_run_whose_documents_are_good_is_expected_to_have_more_good_ones(pool: Pool) -> None:
    grades = np.zeros(len(pool), dtype=np.int64)
    rng = np.random.default_rng(4)
    for run in range(RUNS):
        own = of_run(pool, run)
        grades[own] = rng.random(len(own)) < (0.6 if run == 2 else 0.1)
    drawn = drawn_of(pool, 400)
    outlook = fit_outlook(pool, drawn, rows_of(drawn, grades), max_grade=1)
    means = [outlook.reach(of_run(pool, run)).mean() for run in range(RUNS)]
    assert means[2] == pytest.approx(0.6, abs=0.12)
    assert max(mean for run, mean in enumerate(means) if run != 2) < 0.25


def test_topics_and_shared_documents_are_told_apart(pool: Pool) -> None:
    shared = np.diff(pool.indptr) == RUNS
    rich = pool.topic < TOPICS / 2
    drawn = drawn_of(pool, 500)
    outlook = fit_outlook(pool, drawn, rows_of(drawn, (shared & rich).astype(int)), max_grade=1)
    reach = outlook.reach(np.arange(len(pool)))[0]
    assert reach[shared & rich].mean() > 0.75
    assert reach[shared & ~rich].mean() < 0.2
    assert reach[~shared].mean() < 0.1


def test_shares_of_grades_are_shares(pool: Pool) -> None:
    grades = np.random.default_rng(5).integers(0, 4, len(pool))
    drawn = drawn_of(pool, 300)
    outlook = fit_outlook(pool, drawn, rows_of(drawn, grades), max_grade=3)
    every = np.arange(len(pool))
    shares = outlook.shares(every)
    assert outlook.grades.tolist() == [0, 1, 2, 3]
    assert np.all(shares >= 0.0)
    assert shares.sum(axis=0) == pytest.approx(np.ones(len(pool)))
    first, second, third = outlook.moments(GAIN, every)
    by_hand = GAIN.utilities(outlook.grades)
    assert first == pytest.approx(by_hand @ shares)
    assert second == pytest.approx(by_hand**2 @ shares)
    assert third == pytest.approx(by_hand**3 @ shares)
    assert first.mean() == pytest.approx(1.5, abs=0.2)


def test_some_pairs_get_what_they_get_among_all(pool: Pool) -> None:
    grades = np.random.default_rng(6).integers(0, 3, len(pool))
    drawn = drawn_of(pool, 300)
    fitted = fit_outlook(pool, drawn, rows_of(drawn, grades), max_grade=2)
    everywhere, some = fitted.everywhere(), np.arange(3, len(pool), 7)
    assert fitted.reach(some).tolist() == everywhere.reach(some).tolist()


def test_each_pair_is_worked_out_once_whoever_asks(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, asked = drawn_of(pool, 300), []
    grades = np.random.default_rng(6).integers(0, 3, len(pool))
    fitted = fit_outlook(pool, drawn, rows_of(drawn, grades), max_grade=2)
    shares = Model.shares

    def counted(self: Model, traits: Traits, **more: bool) -> np.ndarray:
        asked.extend(traits.pairs.tolist())
        return shares(self, traits, **more)

    monkeypatch.setattr(Model, "shares", counted)
    of_measures = np.array([9, 4, 30]), np.array([4, 50, 9, 2]), np.array([2, 4])
    found = [fitted.reach(pairs).tolist() for pairs in of_measures]
    assert sorted(asked) == [2, 4, 9, 30, 50]
    everywhere = fitted.everywhere()
    assert found == [everywhere.reach(pairs).tolist() for pairs in of_measures]
    assert sorted(asked) == list(range(len(pool)))


def test_a_larger_pool_expects_nothing_of_its_other_pairs(pool: Pool) -> None:
    outlook = KnownOutlook(np.array([1, 2]), np.array([[0.5, 0.4], [0.2, 0.1]]))
    moved = outlook.over(Scope(pool, np.array([1, 3]), None))
    found = moved.reach(np.array([3, 0, 1, 4]))
    assert found.tolist() == [[0.4, 0, 0.5, 0], [0.1, 0, 0.2, 0]]


@pytest.mark.parametrize("grade", [0, 2])
def test_judgments_that_are_all_alike_leave_numbers_within_bounds(pool: Pool, grade: int) -> None:
    drawn = drawn_of(pool, 100)
    alike = np.full(len(pool), grade)
    reach = fit_outlook(pool, drawn, rows_of(drawn, alike), max_grade=2).everywhere().reached
    assert np.all((reach > 0.0) & (reach <= 1.0))
    assert np.all(np.diff(reach, axis=0) <= 0.0)
    assert (reach.mean() > 0.7) == (grade == 2)


def test_a_sample_without_pairs_has_an_outlook_too(pool: Pool) -> None:
    nothing = np.array([], dtype=np.int64)
    chance = np.full(len(pool), 0.01)
    drawn = Drawn(nothing, chance, chance, chance[nothing])
    outlook = fit_outlook(pool, drawn, LabelRows(nothing, nothing), max_grade=1)
    assert np.all(np.isfinite(outlook.reach(np.arange(len(pool)))))


def test_judgments_beyond_the_prefix_have_no_influence(pool: Pool) -> None:
    grades = np.random.default_rng(7).integers(0, 2, len(pool))
    drawn = drawn_of(pool, 200)
    kept = replace(drawn, pair=drawn.pair[::2], probability=drawn.probability[::2])
    labels = LabelRows(drawn.pair, grades[drawn.pair])
    found = outlook_of(pool, kept, labels, sampled=drawn.pair, max_grade=1)
    alone = LabelRows(kept.pair, grades[kept.pair])
    expected = outlook_of(pool, kept, alone, sampled=kept.pair, max_grade=1)
    assert found.reached.tolist() == expected.reached.tolist()


def test_classes_of_whole_numbers_are_those_of_any() -> None:
    values = np.array([7, 1, 3, 4, 9, 4, 1])
    for edges in ([], [4], [1, 3, 4], [0, 9, 12]):
        found = raking._classes(values, np.array(edges, dtype=np.int32))
        assert found.tolist() == [sum(value > edge for edge in edges) for value in values]
        assert found.tolist() == raking._classes(values.astype(float), np.array(edges)).tolist()
