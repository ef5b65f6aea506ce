"""The methods beside Poisson and independent draws: per query, priority, uniform, with costs."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design, DesignError
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.random_numbers import permanent_random_numbers
from estimation.core.sampling.samples import Sample
from estimation.research.simulation import true_values

EXACT = {"rel": 1e-12, "abs": 1e-12}
DCG = parse_measure("DCG@2")


@pytest.fixture
def two_topics(ranked) -> Pool:
    """Two topics with three and two pairs; the third topic has none."""
    runs = {"a": ranked({"1": "xy", "2": "p"}), "b": ranked({"1": "yz", "2": "qp"})}
    return build_pool(["1", "2", "3"], runs, depth=2)


@pytest.fixture
def wide_pool(ranked) -> Pool:
    rng = np.random.default_rng(4)
    letters = list("abcdefghijklmnopqrst")
    runs = {
        name: ranked({f"t{t}": "".join(rng.permutation(letters)) for t in range(12)})
        for name in ("one", "two", "three")
    }
    return build_pool([f"t{t}" for t in range(12)], runs, depth=12)


def design_of(pool: Pool, method: str, **options) -> Design:
    goal = goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=DCG, max_grade=3)
    settings = {"budget": 4, "batch_size": 2} | options
    return make_design(pool, goal=goal, measure=DCG, prior=prior, method=method, **settings)


def grades_of(pool: Pool) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 4, len(pool))


# ------------------------------------------------------------------------------- per query


def per_query_samples(pool: Pool, design: Design) -> Iterator[tuple[float, Sample]]:
    """Every sequence of two draws in each of the two topics."""
    of_topic = [np.flatnonzero((pool.topic == topic) & design.eligible) for topic in (0, 1)]
    order = [of_topic[0], of_topic[1]] * 2
    for sequence in product(*order):
        draws = np.array(sequence)
        pair, first = np.unique(draws, return_index=True)
        batch = np.where(first < 2, 1, 2).astype(np.int32)
        chance = float(np.prod(2 * design.size[draws]))
        yield chance, Sample(pair, batch, design.inclusion()[pair], draws, design.pool_digest)


def moments(pool: Pool, design: Design, grades: np.ndarray) -> tuple[np.ndarray, ...]:
    mean, square, estimated, total = 0.0, 0.0, 0.0, 0.0
    for chance, sample in per_query_samples(pool, design):
        labels = LabelRows(sample.pair, grades[sample.pair])
        result = evaluate(
            pool, PairRound(design, sample), labels=labels, measures=[DCG], max_grade=3
        ).results[0]  # fmt: skip
        found = result.estimators["is"]
        total += chance
        mean = mean + chance * found.value
        square = square + chance * np.multiply.outer(found.value, found.value)
        estimated = estimated + chance * found.covariance
    assert total == pytest.approx(1.0, abs=1e-12)
    return mean, square - np.multiply.outer(mean, mean), estimated


@pytest.mark.usefixtures("estimates_alone")
def test_draws_per_query_are_unbiased_with_their_covariance(two_topics: Pool) -> None:
    design, grades = design_of(two_topics, "per-query"), grades_of(two_topics)
    assert design.strata == 2
    assert design.steps.tolist() == [1.0, 2.0]
    mean, covariance, estimated = moments(two_topics, design, grades)
    assert mean == pytest.approx(true_values(two_topics, grades=grades, measure=DCG), **EXACT)
    assert estimated == pytest.approx(covariance, **EXACT)


@pytest.mark.slow
@pytest.mark.usefixtures("estimates_alone")
def test_twin_that_takes_draws_per_query_for_draws_from_all_is_caught(two_topics: Pool) -> None:
    """The value is the same; the spread between topics is no error of these draws."""
    design, grades = design_of(two_topics, "per-query"), grades_of(two_topics)
    mean, covariance, _ = moments(two_topics, design, grades)
    taken_for_iid = replace(design, method="iid", steps=design.steps * 2, strata=1)
    _, _, estimated = _as_iid(two_topics, design, taken_for_iid, grades)
    assert mean == pytest.approx(true_values(two_topics, grades=grades, measure=DCG), **EXACT)
    assert np.abs(estimated / covariance - 1).max() > 0.02


def _as_iid(pool: Pool, design: Design, wrong: Design, grades: np.ndarray) -> tuple:
    estimated = 0.0
    for chance, sample in per_query_samples(pool, design):
        labels = LabelRows(sample.pair, grades[sample.pair])
        result = evaluate(
            pool, PairRound(wrong, sample), labels=labels, measures=[DCG], max_grade=3
        )
        estimated = estimated + chance * result.results[0].estimators["is"].covariance
    return None, None, estimated


def test_every_topic_is_drawn_from_equally_often(wide_pool: Pool) -> None:
    design = design_of(wide_pool, "per-query", budget=65, batch_size=24)
    assert design.steps.tolist() == [2.0, 4.0, 5.0]
    sample = draw(wide_pool, design, seed="q")
    for batches, number in ((1, 2), (2, 4), (3, 5)):
        draws = sample.draws[: design.draws(batches)]
        assert np.bincount(wide_pool.topic[draws], minlength=12).tolist() == [number] * 12
        assert np.array_equal(np.unique(draws), sample.prefix(batches))
    assert design.eligible[sample.pair].all()


@pytest.mark.slow
def test_pairs_are_drawn_per_query_as_often_as_the_design_says(two_topics: Pool) -> None:
    design = design_of(two_topics, "per-query")
    hits = np.zeros(len(two_topics))
    for number in range(3000):
        hits[draw(two_topics, design, seed=f"f{number}").prefix(1)] += 1
    for batches, fits in ((1, True), (2, False)):
        expected = design.inclusion(batches)
        z = (hits / 3000 - expected) / np.sqrt(np.maximum(expected * (1 - expected), 1e-3) / 3000)
        assert (np.abs(z).max() < 4) == fits


def test_a_budget_below_one_draw_per_topic_is_refused(two_topics: Pool, wide_pool: Pool) -> None:
    with pytest.raises(DesignError, match="at least 12"):
        design_of(wide_pool, "per-query", budget=11, batch_size=4)


# -------------------------------------------------------------------------------- priority


def test_priority_samples_have_their_size_and_their_threshold(wide_pool: Pool) -> None:
    design = design_of(wide_pool, "priority", budget=30, batch_size=12)
    for number in range(50):
        sample = draw(wide_pool, design, seed=f"p{number}")
        ratio = permanent_random_numbers(wide_pool, seed=f"p{number}") / np.where(
            design.eligible, design.size, np.nan
        )
        for batches, size in ((1, 12), (2, 24), (3, 30)):
            inside = sample.prefix(batches)
            assert len(inside) == size
            constant = sample.constants[batches - 1]
            assert np.nanmax(ratio[inside]) < constant
            for pair in inside[:3]:
                others = np.sort(np.delete(ratio, pair))
                # What a pair had to be below does not depend on its own number: hence unbiased.
                assert constant == others[size - 1]
        expected = np.minimum(1.0, sample.constants[-1] * design.size[sample.pair])
        assert np.array_equal(sample.probability, expected)


def told_of(
    pool: Pool, design: Design, grades: np.ndarray, seed: str
) -> tuple[np.ndarray, np.ndarray, int]:
    """Values, their variances as the sample alone estimates them, and the pairs that it judges."""
    sample = draw(pool, design, seed=seed)
    labels = LabelRows(sample.pair, grades[sample.pair])
    found = evaluate(pool, PairRound(design, sample), labels=labels, measures=[DCG], max_grade=3)
    estimate = found.results[0].estimate
    return estimate.value, np.diag(estimate.covariance), found.judged_pairs


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
def test_priority_estimates_are_unbiased_with_their_variance(wide_pool: Pool) -> None:
    design = design_of(wide_pool, "priority", budget=30, batch_size=15)
    grades = grades_of(wide_pool)
    found = [told_of(wide_pool, design, grades, f"s{number}") for number in range(1500)]
    value, squares = np.array([each[0] for each in found]), [each[1] for each in found]
    sd = value.std(axis=0, ddof=1)
    bias = value.mean(axis=0) - true_values(wide_pool, grades=grades, measure=DCG)
    assert np.abs(bias / (sd / np.sqrt(len(found)))).max() < 4
    ratio = np.mean(squares, axis=0) / sd**2
    assert np.abs(ratio - 1).max() < 0.12
    assert {judged for *_, judged in found} == {30}


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
def test_twin_with_the_threshold_of_the_last_pair_inside_is_caught(wide_pool: Pool) -> None:
    """The n-th ratio in place of the (n + 1)-th: probabilities too small, values too large."""
    design, grades = design_of(wide_pool, "priority", budget=3, batch_size=3), grades_of(wide_pool)
    truth = true_values(wide_pool, grades=grades, measure=DCG)
    values = []
    for number in range(1000):
        sample = draw(wide_pool, design, seed=f"s{number}")
        ratio = permanent_random_numbers(wide_pool, seed=f"s{number}", pairs=sample.pair)
        wrong = np.array([(ratio / design.size[sample.pair]).max()])
        result = evaluate(
            wide_pool,
            PairRound(design, replace(sample, constants=wrong)),
            labels=LabelRows(sample.pair, grades[sample.pair]),
            measures=[DCG],
            max_grade=3,
        )
        values.append(result.results[0].estimate.value)
    found = np.array(values)
    z = (found.mean(axis=0) - truth) / (found.std(axis=0, ddof=1) / np.sqrt(len(found)))
    assert z.min() > 4


def test_a_priority_sample_of_everything_is_a_census(wide_pool: Pool) -> None:
    design = design_of(wide_pool, "priority", budget=len(wide_pool), batch_size=100)
    sample = draw(wide_pool, design, seed="all")
    assert np.array_equal(sample.pair, np.flatnonzero(design.eligible))
    assert (sample.probability == 1.0).all()
    grades = grades_of(wide_pool)
    labels = LabelRows(sample.pair, grades[sample.pair])
    result = evaluate(
        wide_pool, PairRound(design, sample), labels=labels, measures=[DCG], max_grade=3
    )
    truth = true_values(wide_pool, grades=grades, measure=DCG)
    assert result.results[0].estimate.value == pytest.approx(truth, **EXACT)


# ------------------------------------------------------------------------ uniform and costs


@pytest.mark.parametrize("method", ["poisson", "priority", "iid"])
def test_the_uniform_rule_looks_at_nothing_but_eligibility(wide_pool: Pool, method: str) -> None:
    design = design_of(wide_pool, method, rule="uniform", budget=12)
    assert np.unique(design.size[design.eligible]) == pytest.approx(1 / design.eligible.sum())


def test_costs_enter_by_their_root_and_the_budget_is_spent(wide_pool: Pool) -> None:
    costs = np.random.default_rng(2).uniform(0.5, 4.0, len(wide_pool))
    plain = design_of(wide_pool, "poisson", budget=20, batch_size=10, floor=0.0)
    dear = design_of(wide_pool, "poisson", budget=20, batch_size=10, floor=0.0, costs=costs)
    reached = plain.eligible
    ratio = (dear.size * np.sqrt(costs) / np.where(reached, plain.size, 1))[reached]
    assert ratio == pytest.approx(np.full(reached.sum(), ratio[0]), rel=1e-9)
    for batches, spent in ((1, 10.0), (2, 20.0)):
        assert (costs * dear.inclusion(batches)).sum() == pytest.approx(spent, rel=1e-9)
    drawn = design_of(wide_pool, "iid", budget=50, batch_size=25, costs=costs)
    assert drawn.steps[-1] == np.floor(50 / (drawn.size @ costs))


def test_bad_costs_are_refused_by_name(wide_pool: Pool) -> None:
    costs = np.ones(len(wide_pool))
    costs[7] = 0.0
    with pytest.raises(DesignError, match=r"costs must be positive, from .* not 0.0 .item 7"):
        design_of(wide_pool, "poisson", costs=costs)
    with pytest.raises(DesignError, match="takes no costs"):
        design_of(wide_pool, "priority", costs=np.ones(len(wide_pool)))
    with pytest.raises(DesignError, match="one number per pair"):
        design_of(wide_pool, "iid", costs=np.ones(3))
