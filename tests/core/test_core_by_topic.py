"""What is judged of every topic and run, and where the variance comes from."""

import numpy as np
import pytest

from estimation.core.data.labels import PairLabels
from estimation.core.data.pool import Pool, build_pool
from estimation.core.estimates import rows
from estimation.core.estimates.by_topic import judged_by_topic, variance_by_topic
from estimation.core.estimates.estimators import horvitz_thompson_poisson
from estimation.core.estimates.rows import found_rows
from estimation.core.estimates.topic_sums import (
    JudgedSums,
    TopicSums,
    judged_sums,
    totals_by_topic,
)
from estimation.core.measures.table import parse_measure
from tests.core.ratio_pools import TOPICS, shuffled
from tests.core.simulated_pools import simulated_pool


@pytest.fixture(scope="module")
def pool() -> Pool:
    return simulated_pool()[0]


@pytest.fixture(scope="module")
def grades() -> np.ndarray:
    return simulated_pool()[1]


@pytest.mark.parametrize("name", ["DCG@5", "P@30", "AP", "Mean"])
def test_judged_pairs_are_counted_where_they_count(pool: Pool, name: str) -> None:
    measure = parse_measure(name)
    pairs = np.flatnonzero(np.random.default_rng(1).random(len(pool)) < 0.2)
    cutoff = 5 if name == "DCG@5" else pool.depth
    expected = np.zeros((len(pool.topics), len(pool.runs)), dtype=int)
    for pair in pairs.tolist():
        for entry in range(pool.indptr[pair], pool.indptr[pair + 1]):
            if pool.rank[entry] <= cutoff:
                expected[pool.topic[pair], pool.run[entry]] += 1
    assert (expected == 0).any() == (name == "DCG@5")
    other = parse_measure("AP")
    found, _ = judged_by_topic(pool, [measure, other], pairs)
    assert np.array_equal(found, expected)


def test_nothing_judged_counts_for_nobody(pool: Pool) -> None:
    (found,) = judged_by_topic(pool, [parse_measure("DCG@5")], np.zeros(0, dtype=np.int64))
    assert found.shape == (len(pool.topics), len(pool.runs))
    assert not found.any()


def test_the_variances_of_topics_add_up_to_that_of_the_estimate(
    pool: Pool, grades: np.ndarray
) -> None:
    measure = parse_measure("DCG@10")
    rng = np.random.default_rng(2)
    chance = 0.05 + 0.9 * rng.random(len(pool))
    pairs = np.flatnonzero(rng.random(len(pool)) < chance)
    labels = measure.utilities(grades[pairs])
    once = np.ones(len(pairs), dtype=np.int64)
    whole = horvitz_thompson_poisson(
        pool.weights(measure)[pairs],
        PairLabels(labels, once, np.zeros(len(pairs)), False),
        probability=chance[pairs],
    )
    sums = TopicSums(pool.weights(measure)[pairs], pool.topic[pairs], len(pool.topics))
    found = variance_by_topic(sums, labels, chance[pairs])
    assert found.shape == (len(pool.topics), len(pool.runs))
    assert found.sum(axis=0) == pytest.approx(np.diag(whole.covariance))


def test_the_variance_of_a_topic_is_what_samples_of_it_show(pool: Pool, grades: np.ndarray) -> None:
    """Over all samples of the few relevant pairs of one topic, drawn one by one."""
    measure = parse_measure("DCG@10")
    topic = 3
    weights = pool.weights(measure).toarray()[:, 0]
    within = np.flatnonzero((pool.topic == topic) & (grades > 0) & (weights > 0.0))[:8]
    labels, chance = measure.utilities(grades[within]), np.linspace(0.2, 1.0, len(within))
    value = mean_square = expected = 0.0
    for drawn in range(2 ** len(within)):
        taken = np.array([bool(drawn >> bit & 1) for bit in range(len(within))])
        share = float(np.prod(np.where(taken, chance, 1.0 - chance)))
        if not share:
            continue
        estimate = float(np.sum((weights[within] * labels / chance)[taken]))
        value, mean_square = value + share * estimate, mean_square + share * estimate**2
        some = within[taken]
        sums = TopicSums(pool.weights(measure)[some], pool.topic[some], len(pool.topics))
        told = variance_by_topic(sums, labels[taken], chance[taken])
        expected += share * float(told[topic, 0])
    assert expected == pytest.approx(mean_square - value**2)
    assert expected > 0.0


@pytest.mark.parametrize("name", ["DCG@5", "P@30", "RBP(p=0.8)"])
def test_sums_that_are_kept_have_the_bits_of_others(pool: Pool, name: str) -> None:
    measure, rng = parse_measure(name), np.random.default_rng(4)
    pairs = np.flatnonzero(rng.random(len(pool)) < 0.3)
    held = judged_sums(pool, measure, pairs)
    assert isinstance(held, JudgedSums)
    plain = TopicSums(held.weights, held.topic, held.topics)
    for factors in (rng.normal(size=len(pairs)), rng.random(len(pairs)) * (pairs % 9 == 0)):
        for power in (1, 2):
            one, other = (sums.of(factors, power=power) for sums in (held, plain))
            assert one.shape == (len(pool.topics), len(pool.runs))
            assert np.array_equal(one, other)


def test_sums_of_pairs_with_a_label_have_the_bits_of_sums_of_all(
    pool: Pool, grades: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are taken once, of pairs with a label, whatever the factors of these are."""
    measure, pairs = parse_measure("DCG@10"), np.arange(0, len(pool), 2)
    labels, weights, topic = grades[pairs] * 1.0, pool.weights(measure)[pairs], pool.topic[pairs]
    plain = TopicSums(weights, topic, len(pool.topics))
    taken, rows_taken = [], rows.taken
    monkeypatch.setattr(rows, "taken", lambda *given: taken.append(1) or rows_taken(*given))
    found = TopicSums.of_found(found_rows(weights, labels), topic, len(pool.topics))
    for factors in (labels / 3.0, labels * (pairs % 6 == 0)):
        for power in (1, 2):
            one, other = (sums.of(factors, power=power) for sums in (found, plain))
            assert one.any()
            assert np.array_equal(one, other)
    assert len(taken) == 1
    assert found.weights.shape[0] < np.count_nonzero(labels) < len(pairs) / 2
    broken = TopicSums.of_found(
        found_rows(weights, labels * (pairs % 4 == 0)), topic, len(pool.topics)
    )
    assert not np.array_equal(broken.of(labels), plain.of(labels)), "a twin that leaves some out"


def test_what_is_judged_is_told_of_the_pairs_that_were_asked_for(pool: Pool) -> None:
    """It is kept, for these very pairs and measures."""
    dcg, precision = (parse_measure(name) for name in ("DCG@5", "P@30"))
    few, many = np.arange(0, len(pool), 7), np.arange(0, len(pool), 2)
    found = [judged_by_topic(pool, *asked) for asked in (([dcg], few), ([precision], few))]
    found += [judged_by_topic(pool, *asked) for asked in (([dcg], many), ([dcg], few))]
    totals = [int(each[0].sum()) for each in found]
    assert totals[0] == totals[3]
    assert totals[0] < totals[1]
    assert totals[0] < totals[2]


@pytest.mark.parametrize(("name", "last"), [("RBP(p=0.5)", 60), ("RBP(p=0.8)", 80), ("P@7", 7)])
def test_totals_of_all_pairs_leave_out_ranks_that_are_less_than_rounding(
    name: str, last: int
) -> None:
    """So do the weights of judged pairs: what one has and the other lacks is in no number."""
    lists = {f"run{seed}": shuffled(seed, TOPICS[:2], 80) for seed in range(3)}
    deep, measure = build_pool(TOPICS[:2], lists, depth=80), parse_measure(name)
    labels = np.random.default_rng(3).random(len(deep))
    found = totals_by_topic(deep, measure, labels)
    every = np.stack([
        deep.weights(measure, pairs).T @ labels[pairs]
        for pairs in (np.flatnonzero(deep.topic == topic) for topic in range(2))
    ])  # fmt: skip
    np.testing.assert_allclose(found, every, rtol=1e-14)
    assert list(deep.kept["ranks by topic"]) == [last]
