"""Several rounds, one estimate: exact over all samples of a tiny pool."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.combining import CombiningError, RoundsTogether
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample
from estimation.research.simulation import true_values

EXACT = {"rel": 1e-12, "abs": 1e-12}
DCG = parse_measure("DCG@2")
GRADES = np.array([3, 0, 1, 2, 1])
CHANCES = {0: 0.6, 3: 0.4}  # of the grade that an assessor gives, whatever the pair


def design_of(pool: Pool, method: str, run: str, budget: int = 2) -> Design:
    """A design for one run: rounds for different runs differ a lot."""
    goal = goals.single(run)
    prior = make_prior(pool, name="rank", goal=goal, measure=DCG, max_grade=3)
    return make_design(
        pool, goal=goal, measure=DCG, prior=prior, method=method, budget=budget,
        batch_size=budget, eps=0.05,
    )  # fmt: skip


def designs(pool: Pool, method: str) -> tuple[Design, Design]:
    return design_of(pool, method, "alpha"), design_of(pool, method, "beta")


def draws_of(design: Design) -> Iterator[tuple[float, Sample]]:
    for sequence in product(np.flatnonzero(design.eligible), repeat=2):
        drawn = np.array(sequence)
        pair = np.unique(drawn)
        chance = float(np.prod(design.size[drawn]))
        batch = np.ones(len(pair), dtype=np.int32)
        yield chance, Sample(pair, batch, design.inclusion()[pair], drawn, design.pool_digest)


def poisson_of(design: Design) -> Iterator[tuple[float, Sample]]:
    inclusion = design.inclusion()
    for taken in product([False, True], repeat=len(inclusion)):
        chance = float(np.prod(np.where(taken, inclusion, 1 - inclusion)))
        pair = np.flatnonzero(taken)
        batch, none = np.ones(len(pair), dtype=np.int32), np.array([], dtype=np.int64)
        if chance > 0:
            yield chance, Sample(pair, batch, inclusion[pair], none, design.pool_digest)


def labels_of(*samples: Sample) -> LabelRows:
    pairs = np.unique(np.concatenate([each.pair for each in samples]))
    return LabelRows(pairs, GRADES[pairs])


def moments(outcomes: Iterator[tuple[float, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, ...]:
    mean, square, estimated = 0.0, 0.0, 0.0
    for chance, value, covariance in outcomes:
        mean = mean + chance * value
        square = square + chance * np.multiply.outer(value, value)
        estimated = estimated + chance * covariance
    return mean, square - np.multiply.outer(mean, mean), estimated


def together(pool: Pool, method: str, **options) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    first, second = designs(pool, method)
    every = draws_of if method == "iid" else poisson_of
    for (one, a), (two, b) in product(list(every(first)), list(every(second))):
        found = evaluate(
            pool, RoundsTogether((PairRound(first, a), PairRound(second, b))),
            labels=labels_of(a, b), measures=[DCG],
            max_grade=3, **options,
        ).results[0].estimate  # fmt: skip
        yield one * two, found.value, found.covariance


@pytest.mark.slow
@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.parametrize("method", ["iid", "poisson"])
def test_two_rounds_are_unbiased_with_their_covariance(tiny_pool: Pool, method: str) -> None:
    mean, covariance, estimated = moments(together(tiny_pool, method))
    assert mean == pytest.approx(true_values(tiny_pool, grades=GRADES, measure=DCG), **EXACT)
    assert estimated == pytest.approx(covariance, **EXACT)


@pytest.mark.slow
@pytest.mark.usefixtures("estimates_alone")
def test_twin_that_weights_each_draw_by_its_own_round_is_caught(tiny_pool: Pool) -> None:
    """Draws of the first round say nothing of pairs that it cannot draw."""
    first, second = (replace(each, eps=0.0) for each in designs(tiny_pool, "iid"))
    narrow = replace(first, size=np.where(np.arange(5) < 2, 0.5, 0.0))
    mean = 0.0
    for (one, a), (two, b) in product(list(draws_of(narrow)), list(draws_of(second))):
        values = []
        for design, sample in ((narrow, a), (second, b)):
            labels = LabelRows(sample.pair, GRADES[sample.pair])
            found = evaluate(
                tiny_pool, PairRound(design, sample), labels=labels, measures=[DCG], max_grade=3
            )
            values.append(found.results[0].estimate.value)
        mean = mean + one * two * (values[0] + values[1]) / 2
    truth = true_values(tiny_pool, grades=GRADES, measure=DCG)
    assert np.abs(mean / truth - 1).max() > 0.05
    balanced = moments(
        (one * two, *_estimate(tiny_pool, narrow, a, second, b))
        for (one, a), (two, b) in product(list(draws_of(narrow)), list(draws_of(second)))
    )[0]
    assert balanced == pytest.approx(truth, **EXACT)


def _estimate(pool: Pool, first: Design, a: Sample, second: Design, b: Sample):
    found = evaluate(
        pool, RoundsTogether((PairRound(first, a), PairRound(second, b))),
        labels=labels_of(a, b), measures=[DCG],
        max_grade=3,
    ).results[0].estimate  # fmt: skip
    return found.value, found.covariance


@pytest.mark.slow
@pytest.mark.usefixtures("estimates_alone")
def test_noisy_labels_of_pairs_that_both_rounds_drew_count_once(ranked) -> None:
    pool = build_pool(["1"], {"a": ranked({"1": "xy"}), "b": ranked({"1": "yx"})}, depth=2)
    first, second = design_of(pool, "iid", "a"), design_of(pool, "iid", "b")

    def outcomes() -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        for (one, a), (two, b) in product(list(draws_of(first)), list(draws_of(second))):
            pairs = np.unique(np.append(a.pair, b.pair))
            for grades in product(CHANCES, repeat=2 * len(pairs)):
                chance = float(np.prod([CHANCES[grade] for grade in grades]))
                labels = LabelRows(np.repeat(pairs, 2), np.array(grades, dtype=np.int64))
                found = evaluate(
                    pool, RoundsTogether((PairRound(first, a), PairRound(second, b))),
                    labels=labels, measures=[DCG],
                    max_grade=3,
                ).results[0].estimate  # fmt: skip
                yield one * two * chance, found.value, found.covariance

    mean, covariance, estimated = moments(outcomes())
    truth = pool.weights(DCG).sum(axis=0) * 0.4 * 3
    assert mean == pytest.approx(truth, **EXACT)
    assert estimated == pytest.approx(covariance, **EXACT)


@pytest.mark.slow
@pytest.mark.usefixtures("estimates_alone")
def test_rounds_with_the_same_numbers_are_one_larger_sample(tiny_pool: Pool) -> None:
    small, large = (
        design_of(tiny_pool, "poisson", "alpha", 2),
        design_of(tiny_pool, "poisson", "beta", 3),
    )
    parts = [PairRound(each, draw(tiny_pool, each, seed="one")) for each in (small, large)]
    drawn = RoundsTogether(tuple([replace(part, numbers="one") for part in parts])).drawn(
        tiny_pool.topic
    )
    most = np.maximum(small.inclusion(), large.inclusion())
    assert np.array_equal(drawn.inclusion, most)
    hits = np.zeros(len(tiny_pool))
    for number in range(4000):
        again = [
            PairRound(each, draw(tiny_pool, each, seed=f"s{number}")) for each in (small, large)
        ]
        hits[RoundsTogether(tuple(again)).drawn(tiny_pool.topic).pair] += 1
    z = (hits / 4000 - most) / np.sqrt(np.maximum(most * (1 - most), 1e-9) / 4000)
    assert np.abs(z[most < 1]).max() < 4
    apart = RoundsTogether(tuple(parts)).drawn(tiny_pool.topic).inclusion
    wrong = (hits / 4000 - apart) / np.sqrt(np.maximum(apart * (1 - apart), 1e-9) / 4000)
    assert np.abs(wrong[apart < 1]).max() > 4


def test_some_rounds_share_their_numbers_and_others_do_not(tiny_pool: Pool) -> None:
    small, large = (design_of(tiny_pool, "poisson", "alpha", budget) for budget in (1, 2))
    other = design_of(tiny_pool, "poisson", "beta", 2)
    parts = [
        PairRound(each, draw(tiny_pool, each, seed=seed), numbers=seed)
        for each, seed in ((small, "one"), (other, "two"), (large, "one"))
    ]
    expected = 1.0 - (1.0 - large.inclusion()) * (1.0 - other.inclusion())
    assert RoundsTogether(tuple(parts)).drawn(tiny_pool.topic).inclusion == pytest.approx(
        expected, **EXACT
    )
    assert not np.allclose(
        RoundsTogether(tuple(parts[1:])).drawn(tiny_pool.topic).inclusion, large.inclusion()
    )


def test_draws_of_one_seed_are_not_two_samples(tiny_pool: Pool) -> None:
    first, second = designs(tiny_pool, "iid")
    parts = [
        PairRound(each, draw(tiny_pool, each, seed="s"), numbers="s") for each in (first, second)
    ]
    with pytest.raises(CombiningError, match=r"parts\[1\] has the same draws .* one seed"):
        RoundsTogether(tuple(parts)).drawn(tiny_pool.topic)


def test_one_round_alone_is_what_it_is(tiny_pool: Pool) -> None:
    for method in ("iid", "poisson"):
        design = design_of(tiny_pool, method, "alpha")
        sample = draw(tiny_pool, design, seed="s")
        labels = labels_of(sample)
        alone = evaluate(
            tiny_pool, PairRound(design, sample), labels=labels, measures=[DCG], max_grade=3
        )
        found = evaluate(
            tiny_pool,
            RoundsTogether((PairRound(design, sample),)),
            labels=labels,
            measures=[DCG],
            max_grade=3,
        )
        for name in ("value", "se", "low", "high"):
            assert getattr(found.results[0].estimate, name) == pytest.approx(
                getattr(alone.results[0].estimate, name), **EXACT
            )


def test_rounds_that_do_not_go_together_are_refused(tiny_pool: Pool, ranked) -> None:
    iid, poisson = design_of(tiny_pool, "iid", "alpha"), design_of(tiny_pool, "poisson", "alpha")
    priority = design_of(tiny_pool, "priority", "alpha")
    part = {each.method: PairRound(each, draw(tiny_pool, each, seed="s"))
            for each in (iid, poisson, priority)}  # fmt: skip
    given = {"labels": labels_of(part["iid"].sample), "measures": [DCG], "max_grade": 3}
    for parts, message in (
        ([], "at least one round"),
        ([part["iid"], part["poisson"]], "all be by poisson or all by iid, not iid, poisson"),
        ([part["priority"]], "all be by poisson or all by iid, not priority"),
    ):
        with pytest.raises(CombiningError, match=message):
            evaluate(tiny_pool, RoundsTogether(tuple(parts)), **given)
    with pytest.raises(MeasureError, match="ratio measures"):
        evaluate(
            tiny_pool, RoundsTogether((part["iid"],)), **given | {"measures": [parse_measure("AP")]}
        )
