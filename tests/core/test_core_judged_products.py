"""Sums over judged pairs from products that are held: the same numbers, with the pool's bits."""

import numpy as np
import pytest
from scipy import sparse

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates import held_products
from estimation.core.estimates.held_products import HeldWeights, JudgedProducts
from estimation.core.estimates.products import BLOCK_PAIRS
from estimation.core.measures.table import Measure, parse_measure

DCG, P = parse_measure("DCG@30"), parse_measure("P@5")


@pytest.fixture(scope="module")
def pool() -> Pool:
    """Of 24 runs that agree on the first documents and hardly on any other."""
    rng = np.random.default_rng(5)
    topics = tuple(f"t{number}" for number in range(20))
    names = np.array([f"d{at:04}".encode() for at in range(300)])
    runs = {}
    for run in range(24):
        common = [np.argsort(np.arange(300) + 40 * rng.random(300))[:40] for _ in topics]
        bounds = np.arange(len(topics) + 1) * 40
        runs[f"r{run:02}"] = RankedLists(topics, bounds, names[np.concatenate(common)])
    return build_pool(topics, runs, depth=40)


def products(pool: Pool, measure: Measure = DCG, share: float = 1.0) -> JudgedProducts:
    pairs = np.flatnonzero(np.random.default_rng(1).random(len(pool)) < share)
    return JudgedProducts.of(pool, measure, pairs, pool.weights(measure, pairs))


def expected(rows: sparse.csr_array, scale: np.ndarray) -> np.ndarray:
    dense = rows.toarray()
    return np.asarray(np.einsum("i,ij,il->jl", scale, dense, dense))


@pytest.mark.parametrize("measure", [DCG, P])
@pytest.mark.parametrize("most_coupled", [0, 3, 21, 100])
def test_they_are_the_sums(
    pool: Pool, measure: Measure, most_coupled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_products, "MOST_COUPLED", most_coupled)
    pool.kept.clear()
    found = products(pool, measure)
    assert len(found.pairs) > BLOCK_PAIRS
    assert found.held is not None
    scale = np.random.default_rng(2).random(len(found.pairs)) * (found.pairs % 3 > 0)
    gram = found.gram(scale)
    assert gram == pytest.approx(expected(found.weights, scale), rel=1e-13)
    assert (gram == gram.T).all()
    assert found.gram(scale.copy()) is gram
    assert found.gram(2.0 * scale) == pytest.approx(2.0 * gram, rel=1e-13)


def test_a_lost_pair_is_caught(pool: Pool) -> None:
    found, ones = products(pool), np.ones(len(pool))
    held = HeldWeights.of(pool, DCG)
    twin = HeldWeights(held.pair[::-1].copy(), held.couples)
    weight = np.linspace(1.0, 2.0, len(pool))
    assert held.gram(ones) == pytest.approx(expected(found.weights, ones), rel=1e-13)
    assert twin.gram(weight) != pytest.approx(held.gram(weight), rel=1e-3)


def test_few_pairs_are_looked_at_alone(pool: Pool) -> None:
    assert products(pool, share=0.5).held is None
    assert products(pool, share=0.95).held is products(pool, share=0.9).held
    few = JudgedProducts.of(pool, DCG, np.arange(100), pool.weights(DCG, np.arange(100)))
    assert few.held is None
