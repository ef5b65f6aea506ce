"""Rounds over pools of which one holds the other: exact over all samples of two tiny rounds."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.scope import place_of_pairs
from estimation.core.rounds.combining import RoundsTogether, part_over
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.research.simulation import true_values
from tests.core.test_core_combining import (
    DCG,
    EXACT,
    GRADES,
    design_of,
    draws_of,
    moments,
    poisson_of,
)


@pytest.fixture
def larger(tiny_pool: Pool, ranked) -> Pool:
    """With a run that came between the rounds, and one more document in the first topic."""
    runs = {
        "alpha": ranked({"t1": "ab", "t2": "xy"}),
        "beta": ranked({"t1": "bc", "t2": "x"}),
        "gamma": ranked({"t2": "yx"}),
        "novel": ranked({"t1": "nb"}),
    }
    pool = build_pool(["t1", "t2", "t3"], runs, depth=2)
    assert len(pool) == len(tiny_pool) + 1
    return pool


def grades_in(larger: Pool, smaller: Pool) -> np.ndarray:
    grades = np.full(len(larger), 3)
    grades[place_of_pairs(smaller, larger)] = GRADES
    return grades


def together(
    smaller: Pool, larger: Pool, method: str, *, seeds: tuple[str, str] = ("s", "t")
) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    first = design_of(smaller, method, "alpha")
    second = design_of(larger, method, "novel", budget=2 if method == "iid" else 1)
    every, grades = draws_of if method == "iid" else poisson_of, grades_in(larger, smaller)
    later = [(two, PairRound(second, b, numbers=seeds[1])) for two, b in every(second)]
    for one, a in every(first):
        part = part_over(
            PairRound(first, a, numbers=seeds[0]), pool=smaller, joined=larger, like=second
        )
        for two, other in later:
            pairs = np.union1d(part.sample.pair, other.sample.pair)
            found = evaluate(
                larger, RoundsTogether((part, other)), labels=LabelRows(pairs, grades[pairs]),
                measures=[DCG], max_grade=3,
            ).results[0].estimate  # fmt: skip
            yield one * two, found.value, found.covariance


@pytest.mark.slow
@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.parametrize("method", ["iid", "poisson"])
def test_rounds_over_two_pools_are_unbiased_with_their_covariance(
    tiny_pool: Pool, larger: Pool, method: str
) -> None:
    mean, covariance, estimated = moments(together(tiny_pool, larger, method))
    truth = true_values(larger, grades=grades_in(larger, tiny_pool), measure=DCG)
    assert mean == pytest.approx(truth, **EXACT)
    assert estimated == pytest.approx(covariance, **EXACT)


@pytest.mark.slow
@pytest.mark.usefixtures("estimates_alone")
def test_twin_that_gives_new_pairs_the_chance_of_both_rounds_is_caught(
    tiny_pool: Pool, larger: Pool
) -> None:
    first, second = (
        design_of(tiny_pool, "poisson", "alpha"),
        design_of(larger, "poisson", "novel", budget=1),
    )
    grades, mean = grades_in(larger, tiny_pool), 0.0
    later = [(two, PairRound(second, b)) for two, b in poisson_of(second)]
    for one, a in poisson_of(first):
        part = part_over(PairRound(first, a), pool=tiny_pool, joined=larger, like=second)
        size = np.where(part.design.size > 0, part.design.size, second.size)
        wrong = replace(part, design=replace(part.design, size=size))
        for two, other in later:
            pairs = np.union1d(part.sample.pair, other.sample.pair)
            found = evaluate(
                larger, RoundsTogether((wrong, other)), labels=LabelRows(pairs, grades[pairs]),
                measures=[DCG], max_grade=3,
            ).results[0].estimate  # fmt: skip
            mean = mean + one * two * found.value
    truth = true_values(larger, grades=grades, measure=DCG)
    assert np.abs(mean / truth - 1)[larger.runs.index("novel")] > 0.05


def test_pairs_keep_their_probability_and_new_ones_have_that_of_the_later_round(
    tiny_pool: Pool, larger: Pool
) -> None:
    first, second = (
        design_of(tiny_pool, "poisson", "alpha"),
        design_of(larger, "poisson", "novel", budget=1),
    )
    a, b = draw(tiny_pool, first, seed="s"), draw(larger, second, seed="t")
    part = part_over(PairRound(first, a, numbers="s"), pool=tiny_pool, joined=larger, like=second)
    drawn = RoundsTogether((part, PairRound(second, b, numbers="t"))).drawn(larger.topic)
    place = place_of_pairs(tiny_pool, larger)
    new = np.setdiff1d(np.arange(len(larger)), place)
    one, two = first.inclusion(), second.inclusion()
    assert drawn.inclusion[place] == pytest.approx(1 - (1 - one) * (1 - two[place]), **EXACT)
    assert drawn.inclusion[new].tolist() == two[new].tolist()
    assert drawn.belief is not None
    assert second.belief is not None
    assert drawn.belief[new].tolist() == second.belief[new].tolist()


def test_a_seed_that_both_rounds_have_makes_one_larger_sample(
    tiny_pool: Pool, larger: Pool
) -> None:
    """A pair's permanent random number is that of its name, in whatever pool it is."""
    small: Design = design_of(tiny_pool, "poisson", "beta", budget=1)
    large = design_of(larger, "poisson", "beta", budget=3)
    for seed in "abcdefgh":
        a, b = draw(tiny_pool, small, seed=seed), draw(larger, large, seed=seed)
        place = place_of_pairs(tiny_pool, larger)
        assert set(place[a.pair].tolist()) <= set(b.pair.tolist())


def test_a_pool_that_lacks_a_run_takes_no_part(tiny_pool: Pool, larger: Pool) -> None:
    design = design_of(larger, "poisson", "novel")
    part = PairRound(design, draw(larger, design, seed="s"))
    with pytest.raises(ValueError, match="joined lacks the run 'novel'"):
        part_over(part, pool=larger, joined=tiny_pool, like=design)
