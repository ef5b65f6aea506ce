"""Draws: stateless numbers, sharding, order, and the number of labels."""

import hashlib
import io

import numpy as np
import pytest
from scipy import stats

from estimation.core.data.pool import Pool, build_pool
from estimation.core.measures.table import parse_measure
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.random_numbers import (
    extra_labels,
    permanent_random_numbers,
    uniform_numbers,
)
from estimation.core.sampling.samples import Sample

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def wide_pool(ranked) -> Pool:
    """60 topics, two runs, 26 documents each: 1560 pairs."""
    topics = [f"t{number:02d}" for number in range(60)]
    runs = {
        "up": ranked(dict.fromkeys(topics, LETTERS)),
        "down": ranked(dict.fromkeys(topics, LETTERS[::-1])),
    }
    return build_pool(topics, runs, depth=26)


def design_of(pool: Pool, method: str, **options) -> Design:
    measure, goal = parse_measure("DCG@20"), goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=1)
    settings = {"budget": 300, "batch_size": 100} | options
    return make_design(pool, goal=goal, measure=measure, prior=prior, method=method, **settings)


def test_a_number_is_the_hash_of_seed_topic_and_docno(tiny_pool: Pool) -> None:
    framed = b"".join(len(part).to_bytes(4, "big") + part for part in (b"pair", b"seed", b"t2"))
    word = int.from_bytes(hashlib.sha256(framed + b"x").digest()[:8], "big") >> 12
    (found,) = permanent_random_numbers(tiny_pool, seed="seed", pairs=np.array([3]))
    assert found == (word + 0.5) / 2**52


def test_texts_that_run_together_give_different_numbers(ranked) -> None:
    first = build_pool(["t1"], {"r": ranked({"t1": "a"})}, depth=1)
    second = build_pool(["t"], {"r": ranked({"t": "a"})}, depth=1)
    numbers = [
        permanent_random_numbers(first, seed="s")[0],
        permanent_random_numbers(second, seed="st1")[0],
        permanent_random_numbers(second, seed="s")[0],
    ]
    assert len(set(numbers)) == 3


def test_numbers_do_not_depend_on_shards_runs_or_other_pairs(wide_pool: Pool, ranked) -> None:
    whole = permanent_random_numbers(wide_pool, seed="s")
    shards = [
        permanent_random_numbers(wide_pool, seed="s", pairs=shard)
        for shard in np.array_split(np.arange(len(wide_pool)), 7)
    ]
    assert np.array_equal(np.concatenate(shards), whole)
    smaller = build_pool(["t05"], {"other": ranked({"t05": "zc"})}, depth=9)
    same = [5 * 26 + LETTERS.index(letter) for letter in "cz"]
    assert np.array_equal(permanent_random_numbers(smaller, seed="s"), whole[same])


@pytest.mark.parametrize("seed", ["s", "another", ""])
def test_numbers_are_uniform(wide_pool: Pool, seed: str) -> None:
    for numbers in (
        permanent_random_numbers(wide_pool, seed=seed),
        uniform_numbers(seed, number=2000),
    ):
        assert 0.0 < numbers.min() <= numbers.max() < 1.0
        assert stats.kstest(numbers, "uniform").pvalue > 0.001
    squeezed = permanent_random_numbers(wide_pool, seed=seed) ** 1.1
    assert stats.kstest(squeezed, "uniform").pvalue < 0.05


def test_counter_mode_can_start_anywhere() -> None:
    whole = uniform_numbers("s", number=10)
    assert np.array_equal(uniform_numbers("s", number=4, start=6), whole[6:])


def test_poisson_prefixes_are_the_samples_of_their_own_thresholds(wide_pool: Pool) -> None:
    design = design_of(wide_pool, "poisson")
    sample = draw(wide_pool, design, seed="s")
    numbers = permanent_random_numbers(wide_pool, seed="s")
    for batches in (1, 2, 3):
        expected = np.flatnonzero(numbers < design.inclusion(batches))
        assert np.array_equal(sample.prefix(batches), expected)
    assert np.array_equal(sample.probability, design.inclusion()[sample.pair])


def test_a_larger_budget_only_adds_pairs(wide_pool: Pool) -> None:
    small = draw(wide_pool, design_of(wide_pool, "poisson"), seed="s")
    large = draw(wide_pool, design_of(wide_pool, "poisson", budget=500), seed="s")
    assert np.isin(small.pair, large.pair).all()
    assert np.array_equal(large.prefix(3), small.pair)


def test_iid_prefixes_are_the_first_draws(wide_pool: Pool) -> None:
    design = design_of(wide_pool, "iid")
    sample = draw(wide_pool, design, seed="s")
    cumulated = np.cumsum(design.size) / design.size.sum()
    expected = [int(np.argmax(cumulated > u)) for u in uniform_numbers("s", number=300)]
    assert sample.draws.tolist() == expected
    for batches in (1, 2, 3):
        first = np.unique(sample.draws[: 100 * batches])
        assert np.array_equal(sample.prefix(batches), first)


def frequencies(pool: Pool, design: Design, batches: int, seeds: int) -> np.ndarray:
    hits = np.zeros(len(pool))
    for number in range(seeds):
        hits[draw(pool, design, seed=f"f{number}").prefix(batches)] += 1
    return hits / seeds


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "iid"])
@pytest.mark.parametrize("batches", [1, 2])
def test_pairs_are_drawn_as_often_as_the_design_says(tiny_pool, method, batches) -> None:
    design = design_of(tiny_pool, method, budget=4, batch_size=2)
    seeds = 4000
    found = frequencies(tiny_pool, design, batches, seeds)
    expected = design.inclusion(batches)
    z = (found - expected) / np.sqrt(np.maximum(expected * (1 - expected), 1e-9) / seeds)
    assert np.abs(z).max() < 4
    wrong = design.inclusion(3 - batches)
    z = (found - wrong) / np.sqrt(np.maximum(wrong * (1 - wrong), 1e-3) / seeds)
    assert np.abs(z).max() > 4


def test_pairs_that_are_not_eligible_are_never_drawn(wide_pool: Pool) -> None:
    for method, budget in (("poisson", len(wide_pool)), ("iid", 10_000)):
        design = design_of(wide_pool, method, budget=budget, batch_size=10_000)
        sample = draw(wide_pool, design, seed="s")
        assert design.eligible[sample.pair].all()


def test_a_census_draws_everything_exactly_once(wide_pool: Pool) -> None:
    design = design_of(wide_pool, "poisson", budget=len(wide_pool), batch_size=500)
    sample = draw(wide_pool, design, seed="s")
    assert sample.pair.tolist() == np.flatnonzero(design.eligible).tolist()
    assert set(sample.probability.tolist()) == {1.0}


def test_a_design_of_another_pool_is_refused(tiny_pool: Pool, wide_pool: Pool) -> None:
    with pytest.raises(ValueError, match="another pool"):
        draw(wide_pool, design_of(tiny_pool, "iid"), seed="s")


def test_extra_labels_go_to_a_share_of_the_pairs(wide_pool: Pool) -> None:
    pairs = np.arange(len(wide_pool))
    labels = extra_labels(wide_pool, seed="s", pairs=pairs, labels=2, share=0.3)
    assert set(labels.tolist()) == {2, 3}
    share = (labels == 3).mean()
    assert abs(share - 0.3) < 4 * np.sqrt(0.3 * 0.7 / len(pairs))
    halves = [
        extra_labels(wide_pool, seed="s", pairs=part, labels=2, share=0.3)
        for part in (pairs[:700], pairs[700:])
    ]
    assert np.array_equal(np.concatenate(halves), labels)
    for share, only in ((0.0, 1), (1.0, 2)):
        found = extra_labels(wide_pool, seed="s", pairs=pairs, labels=1, share=share)
        assert set(found.tolist()) == {only}


def test_extra_labels_are_independent_of_the_draw(wide_pool: Pool) -> None:
    numbers = permanent_random_numbers(wide_pool, seed="s")
    more = extra_labels(wide_pool, seed="s", pairs=np.arange(1560), labels=1, share=0.5) == 2
    assert stats.ks_2samp(numbers[more], numbers[~more]).pvalue > 0.001


def test_numbers_of_labels_out_of_range_are_refused(wide_pool: Pool) -> None:
    for labels, share, pairs in ((0, 0.5, [1]), (1, 1.5, [1]), (1, 0.5, [1560]), (1, 0.5, [0.5])):
        with pytest.raises(ValueError):  # noqa: PT011 - four different sentences
            extra_labels(wide_pool, seed="s", pairs=np.array(pairs), labels=labels, share=share)


@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_saved_sample_is_the_same_sample(wide_pool: Pool, method: str) -> None:
    sample = draw(wide_pool, design_of(wide_pool, method), seed="s")
    file = io.BytesIO()
    sample.save(file)
    file.seek(0)
    loaded = Sample.load(file)
    for name in sample.__dataclass_fields__:
        assert np.array_equal(getattr(loaded, name), getattr(sample, name)), name


@pytest.mark.parametrize("method", ["poisson", "priority", "iid"])
def test_numbers_that_somebody_has_change_nothing(wide_pool: Pool, method: str) -> None:
    """With the twin that has those of another seed."""
    design = design_of(wide_pool, method)
    own, others = (permanent_random_numbers(wide_pool, seed=seed) for seed in ("s", "other"))
    usual = draw(wide_pool, design, seed="s")
    found = draw(wide_pool, design, seed="s", numbers=own)
    for name in ("pair", "batch", "probability", "draws", "constants"):
        assert np.array_equal(getattr(found, name), getattr(usual, name))
    twin = draw(wide_pool, design, seed="s", numbers=others)
    assert np.array_equal(twin.pair, usual.pair) == (method == "iid")
    with pytest.raises(ValueError, match=r"numbers must be 1560, one per pair, not \(1559,\)"):
        draw(wide_pool, design, seed="s", numbers=own[1:])
