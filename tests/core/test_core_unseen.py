"""What is expected of pairs that a sample may miss, against sums over all samples."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from estimation.core.data.entries import entries_down_to
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.drawn import Drawn
from estimation.core.inference import looked_at, unseen
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.inference.reach import Reach
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample

EXACT = {"rel": 1e-12, "abs": 1e-12}
DCG = parse_measure("DCG@2")
REACH = np.array([[0.9, 0.3, 0.5, 0.1, 0.7], [0.4, 0.3, 0.1, 0.0, 0.2]])


def design_of(pool: Pool, method: str, budget: int, measure: Measure = DCG) -> Design:
    goal = goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=2)
    return make_design(
        pool, goal=goal, measure=measure, prior=prior, budget=budget, batch_size=budget,
        method=method, eps=0.1 if method in ("iid", "per-query") else 0.0,
    )  # fmt: skip


def empty_sample(pool: Pool) -> Sample:
    nothing = np.array([], dtype=np.int64)
    return Sample(nothing, nothing.astype(np.int32), nothing * 1.0, nothing, pool.digest)


def expected(pool: Pool, drawn: Drawn, measure: Measure = DCG) -> unseen.Unseen:
    reach = Reach(pool, drawn.pair, drawn.inclusion)
    return unseen.unseen(reach, drawn, KnownOutlook(np.array([1, 2]), REACH), measure=measure)


def every_gain(pool: Pool) -> list[tuple[float, np.ndarray]]:
    """All grades of all pairs, with their probability by `REACH`, and their utilities."""
    shares = -np.diff(REACH, axis=0, prepend=1.0, append=0.0)
    return [
        (float(np.prod(shares[list(grades), range(len(pool))])), DCG.utilities(np.array(grades)))
        for grades in product(range(3), repeat=len(pool))
    ]


def test_poisson_expectation_is_the_variance_over_all_samples_and_grades(tiny_pool: Pool) -> None:
    design = design_of(tiny_pool, "poisson", 3)
    chance = design.inclusion()
    assert np.any(chance == 1.0)
    weights = tiny_pool.weights(DCG).toarray()
    covariance = np.zeros((3, 3))
    for probability, gains in every_gain(tiny_pool):
        terms = weights * gains[:, None]
        covariance += probability * (terms.T * ((1.0 - chance) / chance)) @ terms
    nothing = np.array([], dtype=np.int64)
    found = expected(tiny_pool, Drawn(nothing, chance, chance, chance[nothing]))
    assert found.covariance == pytest.approx(covariance, **EXACT)
    uncertain = chance < 1.0
    mean, cubes = np.zeros((2, 3))
    for probability, gains in every_gain(tiny_pool):
        terms, factor = weights[uncertain].T * gains[uncertain], chance[uncertain]
        mean += probability * terms.sum(axis=1)
        cubes += probability * terms**3 @ ((1.0 - factor) / factor**2)
    assert found.find == pytest.approx(np.sqrt(cubes / mean), **EXACT)


def test_expectation_of_draws_is_their_variance_at_the_expected_values(tiny_pool: Pool) -> None:
    """Over all draws; but of U_j U_l the product of expectations, which is what it costs little."""
    design, draws = design_of(tiny_pool, "iid", 4), 4
    chance = design.size
    weights = tiny_pool.weights(DCG).toarray()
    squares, mean = np.zeros((3, 3)), np.zeros(3)
    for probability, gains in every_gain(tiny_pool):
        terms = weights * gains[:, None]
        squares += probability * (terms.T / chance) @ terms
        mean += probability * terms.sum(axis=0)
    nothing = np.array([], dtype=np.int64)
    found = expected(
        tiny_pool,
        Drawn(nothing, design.inclusion(), draws * chance, chance[nothing], counts=np.array([4])),
    )
    assert found.covariance == pytest.approx((squares - np.outer(mean, mean)) / draws, **EXACT)


def test_draws_per_topic_do_not_vary_between_topics(tiny_pool: Pool) -> None:
    design = design_of(tiny_pool, "per-query", 6)
    rest = np.arange(len(tiny_pool))
    chance = np.minimum(design.size, 1.0)
    together = Drawn(rest, design.inclusion(), 6 * chance, chance, counts=np.ones(5, dtype=int))
    apart = Drawn(
        rest, design.inclusion(), 6 * chance, chance, counts=np.ones(5, dtype=int),
        stratum=tiny_pool.topic.astype(np.int64),
    )  # fmt: skip
    less = np.diag(expected(tiny_pool, together).covariance - expected(tiny_pool, apart).covariance)
    assert np.all(less > 0.0)


def test_finds_that_a_sample_missed_count_half_way_to_what_the_prior_has(tiny_pool: Pool) -> None:
    """A sample without the heavy finds of a run lets one expect that there are none."""
    chance = np.array([0.9, 0.8, 0.1, 0.7, 0.6])
    nothing, belief = np.array([], dtype=np.int64), np.array([0.4, 0.3, 0.2, 0.5, 0.1])
    drawn = Drawn(nothing, chance, chance, chance[nothing], belief=belief)
    reach = Reach(tiny_pool, drawn.pair, chance)
    missed = np.array([0.9, 0.9, 1e-9, 0.9, 0.9])  # the third is not believed in any more

    def find(reached: np.ndarray, drawn: Drawn) -> np.ndarray:
        outlook = KnownOutlook(np.array([1, 2]), np.stack([reached, reached]))
        return unseen.unseen(reach, drawn, outlook, measure=DCG).find

    weights = tiny_pool.weights(DCG).toarray()
    most = float(DCG.utilities(np.array([2]))[0])
    by_prior = most * np.sqrt(
        (belief * (1.0 - chance) / chance**2) @ weights**3 / (belief @ weights)
    )
    returning = weights[2] > 0.0
    alone = find(missed, replace(drawn, belief=None))
    assert returning.any()
    assert np.all(alone[returning] < 0.7 * by_prior[returning])
    assert find(missed, drawn) == pytest.approx(np.maximum(alone, np.sqrt(alone * by_prior)))
    assert find(0.9 * belief, drawn) == pytest.approx(by_prior)


def test_doubt_depends_neither_on_judgments_nor_on_other_runs(tiny_pool: Pool) -> None:
    chance = design_of(tiny_pool, "poisson", 3).inclusion()
    nothing = np.array([], dtype=np.int64)
    belief = np.array([0.4, 0.3, 0.2, 0.5, 0.1])
    drawn = Drawn(nothing, chance, chance, chance[nothing], belief=belief)
    found = expected(tiny_pool, drawn).doubt
    other = KnownOutlook(np.array([1, 2]), 0.1 * REACH)
    reach = Reach(tiny_pool, drawn.pair, chance)
    assert unseen.unseen(reach, drawn, other, measure=DCG).doubt.tolist() == found.tolist()
    weights = tiny_pool.weights(DCG).toarray()
    factor = np.where(chance < 1.0, (1.0 - chance) / chance, 0.0)
    usual = (chance * belief).sum() / chance.sum()
    by_hand = np.sqrt((factor * belief) @ weights**2) / (usual * weights.sum(axis=0))
    assert found == pytest.approx(by_hand)


def many_entries(runs: int = 8, topics: int = 40, depth: int = 30) -> Pool:
    rng = np.random.default_rng(11)
    lists = {}
    for run in range(runs):
        docnos = np.concatenate(
            [
                [f"{topic}-{n}".encode() for n in rng.choice(60, depth, replace=False)]
                for topic in range(topics)
            ]
        )
        names = tuple(f"t{topic:02}" for topic in range(topics))
        lists[f"run{run}"] = RankedLists(names, np.arange(0, (topics + 1) * depth, depth), docnos)
    lists["twin"] = lists["run0"]
    return build_pool([f"t{topic:02}" for topic in range(topics)], lists, depth=depth)


def differences(covariance: np.ndarray) -> np.ndarray:
    single = np.diag(covariance)
    return np.add.outer(single, single) - 2.0 * covariance


@pytest.mark.slow
def test_pairs_that_stand_for_all_have_their_variances_on_average(monkeypatch) -> None:
    """Over pools that differ in nothing but the order of topics, and so in which pairs are kept."""
    measure, ratios, kept = parse_measure("DCG@30"), [], []
    for topics in range(30, 42):
        pool = many_entries(topics=topics)
        design = design_of(pool, "poisson", 8 * topics, measure)
        drawn = Drawn.of(design, empty_sample(pool), 1, topic=pool.topic)
        outlook = KnownOutlook(np.array([1]), np.full((1, len(pool)), 0.2))
        reach = Reach(pool, drawn.pair, drawn.inclusion)
        exact = unseen.unseen(reach, drawn, outlook, measure=measure)
        with monkeypatch.context() as patch:
            patch.setattr(looked_at, "MOST_ENTRIES", len(pool.run) // 2)
            patch.setattr(looked_at, "KEPT_ENTRIES", len(pool.run) // 2)
            few = unseen.unseen(reach, drawn, outlook, measure=measure)
            some = looked_at.looked_at(pool, drawn, measure)
        kept.append(len(some.pair) / len(drawn.uncertain))
        assert some.weight.sum() == pytest.approx(len(drawn.uncertain), rel=0.1)
        for of in (np.diag, differences):
            there, here = of(exact.covariance), of(few.covariance)
            far = there > 1e-9
            ratios.append(here[far] / there[far])
        twins = pool.runs.index("run0"), pool.runs.index("twin")
        assert differences(few.covariance)[twins] == pytest.approx(0.0, abs=1e-15)
        assert few.find == pytest.approx(exact.find, rel=0.2)
    assert 0.3 < np.mean(kept) < 0.6
    assert np.mean(np.concatenate(ratios)) == pytest.approx(1.0, abs=0.03)
    assert np.abs(np.concatenate(ratios) - 1.0).max() < 0.4


def test_measures_that_count_few_pairs_are_exact_in_large_pools(monkeypatch) -> None:
    """Of many uncertain pairs only those that the measure counts are looked at, all of them."""
    pool, measure = many_entries(), parse_measure("DCG@3")
    design = design_of(pool, "poisson", 300, parse_measure("DCG@30"))
    drawn = Drawn.of(design, empty_sample(pool), 1, topic=pool.topic)
    outlook = KnownOutlook(np.array([1]), np.full((1, len(pool)), 0.2))
    reach = Reach(pool, drawn.pair, drawn.inclusion)
    exact = unseen.unseen(reach, drawn, outlook, measure=measure)
    entries = entries_down_to(pool, 3)
    monkeypatch.setattr(looked_at, "MOST_ENTRIES", len(entries.run))
    some = looked_at.looked_at(pool, drawn, measure)
    assert 100 < len(some.pair) < 0.7 * len(drawn.uncertain)
    assert np.all(some.weight == 1.0)
    again = unseen.unseen(reach, drawn, outlook, measure=measure)
    assert again.covariance == pytest.approx(exact.covariance, **EXACT)
    assert again.find == pytest.approx(exact.find, **EXACT)
    assert again.doubt == pytest.approx(exact.doubt, **EXACT)


def test_a_rule_that_looks_at_the_sample_alone_would_see_nothing(tiny_pool: Pool) -> None:
    """The twin: squares of what was found are 0 in samples that found nothing."""
    chance = design_of(tiny_pool, "poisson", 3).inclusion()
    nothing = np.array([], dtype=np.int64)
    found = expected(tiny_pool, Drawn(nothing, chance, chance, chance[nothing]))
    assert np.all(np.diag(found.covariance) > 0.0)
