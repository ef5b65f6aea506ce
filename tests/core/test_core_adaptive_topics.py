"""Pairs of a topic together: unbiased as ever, with variances that know of it."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy import sparse

from estimation.core.data.labels import PairLabels
from estimation.core.data.pool import Pool
from estimation.core.data.scope import Scope
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.adaptive import estimates
from estimation.core.rounds.adaptive.batch_weights import BatchWeights
from estimation.core.rounds.adaptive.rounds import AdaptiveRound, PlannedBatch
from estimation.core.rounds.adaptive.state import AdaptiveError, AdaptivePlan, walk
from estimation.core.rounds.adaptive.topic_choice import BY_COINS, TopicChoice
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import load_round
from estimation.core.sampling.random_numbers import batch_random_numbers, topic_random_numbers
from estimation.research.simulation import true_values
from tests.core.length import bounded
from tests.core.simulated_pools import simulated_pool
from tests.core.test_core_adaptive import (
    DCG,
    GRADES,
    NDCG,
    begun,
    labels_of,
    plan_for,
    plan_of,
    played,
    pool,
)
from tests.core.test_core_adaptive import every_round as every_plain_round

__all__ = ["pool"]  # the fixture

EXACT = {"rel": 1e-12, "abs": 1e-12}


def grades_of(pool: Pool) -> np.ndarray:
    return np.resize(GRADES, len(pool))


def together(pool: Pool, minimum: float, **options) -> AdaptivePlan:
    return replace(plan_for(pool, **options), topic_minimum=minimum)


def every_round(
    pool: Pool, drawn: AdaptiveRound, *, batches: int
) -> Iterator[tuple[float, AdaptiveRound]]:
    """All rounds that can come to be, with their probabilities."""
    if batches == 0:
        yield 1.0, drawn
        return
    labels = labels_of(drawn.sample.pair, grades_of(pool))
    planned = drawn.next_batch(pool, labels=labels)
    for share, pairs in _outcomes(pool, planned):
        longer = drawn.with_batch(planned, pairs)
        for rest, whole in every_round(pool, longer, batches=batches - 1):
            yield share * rest, whole


def _outcomes(pool: Pool, planned: PlannedBatch) -> Iterator[tuple[float, np.ndarray]]:
    """Every way in which topics take part, and then pairs."""
    chance, topics = planned.chances.by(0), planned.topics
    assert topics is not None
    for share, part in ways(topics):
        inside = chance / topics.chance[pool.topic] * part[pool.topic]
        yield from _pairs_of(inside, share)


def ways(choice: TopicChoice) -> Iterator[tuple[float, np.ndarray]]:
    """Every set of topics that may take part, as a mask, with its probability."""
    together = [np.flatnonzero(choice.group == each) for each in range(choice.classes)]
    alone = [np.array([each]) for each in np.flatnonzero(choice.group == BY_COINS)]
    parts = [_ways_of(each, float(choice.chance[each[0]])) for each in (*together, *alone)]
    for several in product(*parts):
        part = np.zeros(len(choice.chance), dtype=bool)
        for _, members in several:
            part[members] = True
        yield float(np.prod([share for share, _ in several])), part


def _ways_of(members: np.ndarray, chance: float) -> list[tuple[float, np.ndarray]]:
    """Of one class, or of a topic alone: every set of k topics alike, or of k + 1."""
    number, found = len(members) * chance, []
    whole = int(number + 1e-9)
    for size, share in ((whole, 1.0 - (number - whole)), (whole + 1, number - whole)):
        sets = list(combinations(members.tolist(), size))
        if share > 1e-12:
            found += [(share / len(sets), np.array(each, dtype=int)) for each in sets]
    return found


def _pairs_of(chance: np.ndarray, share: float) -> Iterator[tuple[float, np.ndarray]]:
    possible = np.flatnonzero(chance > 0.0)
    for number in range(len(possible) + 1):
        for pairs in combinations(possible.tolist(), number):
            taken = np.isin(possible, pairs)
            sure = np.where(taken, chance[possible], 1.0 - chance[possible])
            if (each := share * float(np.prod(sure))) > 0.0:
                yield each, np.array(pairs, dtype=np.int64)


def values(pool: Pool, drawn: AdaptiveRound, measure=DCG, ask=estimates.estimate_totals):
    """As `estimated_by`, with the grades of this pool."""
    frame, pairs = drawn.design.frame(pool), drawn.sample.pair
    weights = BatchWeights.of(frame, walk(frame, drawn.sample), [measure], drawn.planned)
    number = np.ones(len(pairs), dtype=np.int64)
    utility = measure.utilities(grades_of(pool)[pairs])
    labels = PairLabels(utility, number, np.zeros(len(pairs)), False)
    return ask(Scope.of(pool, None), weights, 0, measure=measure, pairs=pairs, labels=labels)


def _told_and_true(pool: Pool, rounds: Iterator[tuple[float, AdaptiveRound]]) -> np.ndarray:
    """Of each topic and run: what is told of the variance on average, and what it is."""
    mean, square, told = 0.0, 0.0, 0.0
    for chance, drawn in rounds:
        found = values(pool, drawn)
        parts = values(pool, drawn, ask=estimates.variance_by_topic)
        assert parts.sum(axis=0) == pytest.approx(np.diag(found.covariance), **EXACT)
        mean = mean + chance * found.by_topic
        square = square + chance * found.by_topic**2
        told = told + chance * parts
    return np.array([told, square - mean**2])


@pytest.mark.slow
def test_the_variances_of_topics_are_unbiased_and_add_up(pool: Pool, eager: None) -> None:
    """Over all rounds that can come to be; topics learn of each other, and stay uncorrelated."""
    told, true = _told_and_true(
        pool, every_plain_round(pool, begun(plan_for(pool)), batches=bounded(2, 3))
    )
    assert told == pytest.approx(true, rel=1e-10, abs=1e-12)
    assert (told > 1e-6).all()


@pytest.mark.slow
def test_variances_of_topics_that_take_part_by_chance(pool: Pool, eager: None) -> None:
    plan = together(pool, 1.5, budget=3, batches=2)
    told, true = _told_and_true(pool, every_round(pool, begun(plan), batches=2))
    assert told == pytest.approx(true, rel=1e-10, abs=1e-12)


def test_contributions_are_counted_among_what_can_be_off(pool: Pool, eager: None) -> None:
    """Kish's number of the terms of the covariance: pairs that were certain are none of them."""
    certain = 0
    for _, drawn in every_plain_round(pool, begun(plan_for(pool, budget=4, batches=2)), batches=2):
        frame, pairs = drawn.design.frame(pool), drawn.sample.pair
        weights = BatchWeights.of(frame, walk(frame, drawn.sample), [DCG], drawn.planned)
        judged = weights.of_judged(pairs)
        missed = DCG.utilities(grades_of(pool)[pairs]) - weights.by_mean[0][1, pairs]
        terms = (judged.on_find * missed * np.sqrt(1.0 - judged.chance))[:, None]
        terms = terms * pool.weights(DCG, pairs).toarray()
        certain += int(np.any(judged.chance == 1.0))
        squares = np.append(terms, terms[:, :1] - terms[:, 1:], axis=1) ** 2
        carried, powers = squares.sum(axis=0) ** 2, (squares**2).sum(axis=0)
        expected = np.divide(carried, powers, out=np.zeros(3), where=powers > 1e-15)
        found = values(pool, drawn)
        assert np.diag(found.covariance) == pytest.approx(squares.sum(axis=0)[:2], **EXACT)
        told = found.contributions
        assert [*np.diag(told), told[0, 1]] == pytest.approx(expected, rel=1e-6)
    assert certain


def moments(pool: Pool, plan: AdaptivePlan, *, batches: int):
    mean, square, told, total, thinned = 0.0, 0.0, 0.0, 0.0, 0.0
    for chance, drawn in every_round(pool, begun(plan), batches=batches):
        found = values(pool, drawn)
        mean = mean + chance * found.value
        square = square + chance * np.multiply.outer(found.value, found.value)
        told = told + chance * found.covariance
        total += chance
        last = drawn.sample.steps[-1].model
        thinned += chance * (last is not None)
    return mean, square - np.multiply.outer(mean, mean), told, total, thinned


@pytest.mark.slow
@pytest.mark.parametrize(("minimum", "batches"), [(1.5, 2), (3.0, 2), (2.0, 3)])
def test_values_and_variances_are_unbiased(
    pool: Pool, eager: None, minimum: float, batches: int
) -> None:
    plan = together(pool, minimum, budget=3, batches=batches)
    mean, covariance, told, total, learned = moments(pool, plan, batches=batches)
    assert total == pytest.approx(1.0, **EXACT)
    assert learned > 0.5
    assert mean == pytest.approx(true_values(pool, grades=grades_of(pool), measure=DCG), **EXACT)
    assert told == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
def test_twin_that_takes_pairs_of_a_topic_for_independent_is_caught(
    pool: Pool, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = together(pool, 3.0, budget=3, batches=2)
    _, covariance, *_ = moments(pool, plan, batches=2)
    monkeypatch.setattr(estimates, "parts_of_error", alone)
    _, _, told, *_ = moments(pool, plan, batches=2)
    assert np.abs(told / covariance - 1.0).max() > 0.01


def alone(scope, weights, pairs, of_runs, moved):
    """As if pairs of a topic were drawn independently of each other."""
    spread = moved * np.sqrt(1.0 - weights.chance[pairs])
    parts = sparse.csr_array(sparse.diags_array(spread) @ of_runs)
    return parts, scope.pool.topic[scope.place[pairs]].astype(np.int64)


@pytest.fixture(scope="module")
def large() -> tuple[Pool, np.ndarray]:
    return simulated_pool()


@pytest.mark.slow
def test_later_batches_have_fewer_topics_and_as_many_pairs(large: tuple) -> None:
    pool, grades = large
    plan = replace(plan_of(pool), topic_minimum=8.0)
    topics, pairs = np.zeros(5), np.zeros(5)
    for seed in range(20):
        drawn, _ = played(pool, grades, plan, seed=str(seed))
        found = [drawn.sample.of_batch(number) for number in range(1, 6)]
        topics += [len(np.unique(pool.topic[each])) / 20 for each in found]
        pairs += [len(each) / 20 for each in found]
    assert topics[0] > 14  # nothing is learned, and all take part
    assert topics[1:].max() < 7
    assert pairs == pytest.approx(40, rel=0.25)
    assert pairs.sum() == pytest.approx(200, rel=0.05)


@pytest.mark.slow
def test_it_is_drawn_again_from_seed_and_models_and_saved_with_its_minimum(
    large: tuple, tmp_path
) -> None:
    pool, grades = large
    drawn, labels = played(pool, grades, replace(plan_of(pool), topic_minimum=8.0))
    again = drawn.redrawn(pool, seed="s")
    assert again.sample.pair.tolist() == drawn.sample.pair.tolist()
    assert drawn.redrawn(pool, seed="t").sample.pair.tolist() != drawn.sample.pair.tolist()
    drawn.design.save(tmp_path / "design"), drawn.sample.save(tmp_path / "sample")
    stored = load_round(tmp_path / "design", tmp_path / "sample")
    assert stored.design.topic_minimum == 8.0
    one, other = (
        evaluate(pool, each, labels=labels, measures=[NDCG], max_grade=3).results[0].estimate
        for each in (drawn, stored)
    )
    assert one.covariance.tolist() == other.covariance.tolist()


def test_without_a_minimum_nothing_is_other_than_before(large: tuple) -> None:
    pool, grades = large
    plain, _ = played(pool, grades, plan_of(pool))
    one, _ = played(pool, grades, replace(plan_of(pool), topic_minimum=1.0))
    assert one.sample.pair.tolist() == plain.sample.pair.tolist()


def test_ratios_and_senseless_minima_are_refused(large: tuple) -> None:
    pool, grades = large
    ap = plan_of(pool, measure=parse_measure("AP"))
    with pytest.raises(AdaptiveError, match="by topics do not estimate AP"):
        replace(ap, topic_minimum=2.0)
    for wrong in (-1.0, 1001.0, float("nan"), float("inf")):
        with pytest.raises(AdaptiveError, match="topic_minimum must be from 0"):
            replace(plan_of(pool), topic_minimum=wrong)
    drawn, labels = played(pool, grades, replace(plan_of(pool), topic_minimum=2.0))
    with pytest.raises(MeasureError, match="AP is not estimated"):
        evaluate(pool, drawn, labels=labels, measures=[ap.measure], max_grade=3)


def test_numbers_of_batches_and_topics_are_their_own(large: tuple) -> None:
    pool, _ = large
    pairs = np.arange(len(pool))
    one, other = (batch_random_numbers(pool, seed="s", batch=b, pairs=pairs) for b in (1, 2))
    topics = [topic_random_numbers(pool, seed="s", batch=b) for b in (1, 2)]
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.1
    assert len({*topics[0].tolist(), *topics[1].tolist()}) == 2 * len(pool.topics)
    assert one.mean() == pytest.approx(0.5, abs=0.05)
