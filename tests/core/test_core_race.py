"""The goal "winner": who is in the race, and that nothing is biased by running it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.adaptive.race import LEAST_SHARE, WHOLE, race_of
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan, walk
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import load_round
from estimation.core.sampling import goals
from estimation.core.sampling.goals import GoalError, Race
from estimation.research.simulation import true_values
from tests.core.simulated_pools import simulated_pool
from tests.core.test_core_adaptive import (
    _each,
    begun,
    estimated_by,
    labels_of,
    plan_for,
    played,
)

DCG, PRECISION = parse_measure("DCG@3"), parse_measure("P@2")
TAGS = ("a", "b", "c")
GRADES = np.array([2, 0, 1, 0, 2])
EXACT = {"rel": 1e-12, "abs": 1e-12}


@pytest.fixture
def pool(ranked: Callable) -> Pool:
    """Five pairs, three runs."""
    runs = {
        "a": ranked({"1": "uv", "2": "pq"}),
        "b": ranked({"1": "wu", "2": "qp"}),
        "c": ranked({"1": "vw", "2": "q"}),
    }
    return build_pool(["1", "2"], runs, depth=3)


def race_plan(pool: Pool, **options: Any) -> AdaptivePlan:
    return plan_for(pool, **{"goal": goals.winner(*pool.runs)} | options)


def every_race(
    pool: Pool, drawn: AdaptiveRound, *, batches: int, peeking: bool = False, negligible: float = 0
) -> Iterator[tuple[float, AdaptiveRound]]:
    """All rounds that can come to be, with their probabilities.

    Peeking: a batch is counted as if it had been planned by a race that its own labels are in.
    """
    if batches == 0:
        yield 1.0, drawn
        return
    labels = labels_of(drawn.sample.pair)
    planned = drawn.next_batch(pool, labels=labels, negligible=negligible)
    for share, longer in _each(drawn, planned):
        peeks = peeking and planned.step.race is not None
        taken = _by_its_own_labels(pool, longer) if peeks else longer
        rest = every_race(pool, taken, batches=batches - 1, peeking=peeking, negligible=negligible)
        for chance, whole in rest:
            yield share * chance, whole


def _by_its_own_labels(pool: Pool, drawn: AdaptiveRound) -> AdaptiveRound:
    *before, last = drawn.sample.steps
    then = drawn.next_batch(pool, labels=labels_of(drawn.sample.pair)).step.race
    return replace(drawn, sample=replace(drawn.sample, steps=(*before, replace(last, race=then))))


def moments(
    pool: Pool, plan: AdaptivePlan, *, batches: int, measure: Measure = DCG, **options: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Mean and covariance of the values, mean of the estimated one, and the share with a race."""
    mean, square, estimated, raced = 0.0, 0.0, 0.0, 0.0
    for chance, drawn in every_race(pool, begun(plan), batches=batches, **options):
        found = estimated_by(pool, drawn, measure, None)
        mean = mean + chance * found.value
        square = square + chance * np.multiply.outer(found.value, found.value)
        estimated = estimated + chance * found.covariance
        raced += chance * any(step.race is not None for step in drawn.sample.steps)
    return mean, square - np.multiply.outer(mean, mean), estimated, raced


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"floor": 0.0, "reported": []},
        {"costs": np.array([1.0, 2.0, 0.5, 1.0, 3.0])},
        {"goal": goals.winner("a", "c")},
        {"measure": PRECISION, "reported": [DCG]},
    ],
    ids=["usual", "no floor", "costs", "two of three", "binary"],
)
def test_values_are_unbiased_in_every_race_and_so_are_their_variances(
    pool: Pool, eager: None, options: dict
) -> None:
    plan = race_plan(pool, **options)
    mean, covariance, estimated, raced = moments(pool, plan, batches=2)
    assert raced > 0.3
    known = pool.weights(DCG, np.flatnonzero(~plan.design.eligible)).toarray()
    if not known.any():
        assert mean == pytest.approx(true_values(pool, grades=GRADES, measure=DCG), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
def test_a_race_of_two_batches_is_unbiased(pool: Pool, eager: None) -> None:
    mean, covariance, estimated, _ = moments(pool, race_plan(pool), batches=3)
    assert mean == pytest.approx(true_values(pool, grades=GRADES, measure=DCG), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
def test_differences_that_do_not_matter_bias_nothing(pool: Pool, eager: None) -> None:
    mean, _, _, _ = moments(pool, race_plan(pool), batches=2, negligible=0.2)
    assert mean == pytest.approx(true_values(pool, grades=GRADES, measure=DCG), **EXACT)


@pytest.mark.slow
def test_a_race_that_looks_at_the_labels_of_its_own_batch_would_be_biased(
    pool: Pool, eager: None
) -> None:
    """The twin."""
    mean, _, _, _ = moments(pool, race_plan(pool), batches=2, peeking=True)
    truth = true_values(pool, grades=GRADES, measure=DCG)
    assert np.abs(mean - truth).max() > 1e-3 * truth.max()


# ------------------------------------------------------------------------------ of usual size


NDCG = parse_measure("DCG@10")


@pytest.fixture(scope="module")
def large() -> tuple[Pool, np.ndarray]:
    return simulated_pool()


def usual_plan(pool: Pool, **options: Any) -> AdaptivePlan:
    given = {"budget": 300, "batches": 6, "max_grade": 3, "measure": NDCG, "reported": []}
    return race_plan(pool, **given | options)


def told(pool: Pool, drawn: AdaptiveRound, labels: LabelRows) -> MeasureResult:
    return evaluate(pool, drawn, labels=labels, measures=[NDCG], max_grade=3).results[0]


def test_the_first_batch_is_that_of_a_ranking(large: tuple) -> None:
    pool, _ = large
    one = AdaptiveRound.begin(pool, usual_plan(pool), seed="s")
    other = AdaptiveRound.begin(pool, usual_plan(pool, goal=goals.ranking(*pool.runs)), seed="s")
    assert one.sample.pair.tolist() == other.sample.pair.tolist()


@pytest.mark.slow
def test_who_leads_by_the_batches_before_is_compared_with_all_others(large: tuple) -> None:
    pool, grades = large
    drawn, labels = played(pool, grades, usual_plan(pool))
    assert drawn.sample.steps[0].race is None
    for number, step in enumerate(drawn.sample.steps[1:], start=1):
        before = told(pool, drawn.prefix(pool, number), labels)
        race = step.race
        assert race is not None
        assert race.leader == before.ranking.order[0]
        others = np.arange(len(pool.runs)) != race.leader
        assert race.priority[race.leader] == 0
        assert race.priority[others].min() >= 1
        assert abs(int(race.priority.sum()) - WHOLE) <= len(pool.runs)


def told_by_hand(large: tuple, behind: list[float], variance: float = 0.5) -> MeasureResult:
    """Values so far behind that of the first run, each with this variance of its own."""
    pool, grades = large
    found = told(pool, *played(pool, grades, usual_plan(pool, budget=50, batches=1)))
    value = -np.array(behind + [99.0] * (len(pool.runs) - len(behind)))
    ranking = replace(
        found.ranking,
        order=np.argsort(-value, kind="stable"),
        difference=np.subtract.outer(value, value),
    )
    shown = replace(
        found.estimate,
        value=value,
        covariance=variance * np.eye(len(value)),
        expected=variance * np.eye(len(value)),
        difference_unknown=np.zeros((len(value), len(value)), dtype=np.int8),
        difference_least=None,
    )
    return replace(found, ranking=ranking, estimators={found.primary: shown})


def test_priorities_by_hand(large: tuple) -> None:
    """Of differences with the variance 1: 1 / (d^2 + 1)^3, and a thousandth for all alike."""
    tags = large[0].runs[:4]
    found = told_by_hand(large, [0.0, 0.0, 1.0, 4.0])
    race = race_of(found, goals.winner(*tags))
    assert race is not None
    assert race.leader == 0
    share = np.array([0.0, 1.0, 1 / 8, 1 / 17**3])
    share *= (1 - LEAST_SHARE) / share.sum()
    wanted = np.round(WHOLE * np.where(share > 0.0, share + LEAST_SHARE / 3, 0.0))
    assert race.priority[:4].tolist() == wanted.tolist()
    assert not race.priority[4:].any()


def test_who_leads_is_among_the_runs_of_the_goal(large: tuple) -> None:
    found = told_by_hand(large, [0.0, 0.5, 1.0, 4.0])
    race = race_of(found, goals.winner(*large[0].runs[1:4]))
    assert race is not None
    assert race.leader == 1
    assert race.priority[0] == 0


def test_what_is_known_to_be_negligible_is_settled_as_well(large: tuple) -> None:
    """What is left of the negligible difference is to be told apart from 0, if that is larger."""
    tags = large[0].runs[:3]
    near, far = told_by_hand(large, [0.0, 0.1, 2.0]), told_by_hand(large, [0.0, 3.9, 2.0])
    priorities = [
        race_of(near, goals.winner(*tags), negligible=4.0),
        race_of(far, goals.winner(*tags)),
    ]
    assert priorities[0].priority.tolist() == priorities[1].priority.tolist()


def test_a_difference_that_is_not_known_is_as_uncertain_as_it_is_large(large: tuple) -> None:
    found = told_by_hand(large, [0.0, 5.0, 5.0], variance=0.1)
    unknown = found.estimate.difference_unknown.copy()
    unknown[0, 1] = unknown[1, 0] = 1
    shown = replace(found.estimate, difference_unknown=unknown)
    race = race_of(
        replace(found, estimators={found.primary: shown}), goals.winner(*large[0].runs[:3])
    )
    assert race.priority[1] > 100 * race.priority[2]


def test_nobody_races_where_all_is_certain(large: tuple) -> None:
    found = told_by_hand(large, [0.0, 5.0, 6.0], variance=0.0)
    assert race_of(found, goals.winner(*large[0].runs[:3])) is None


def test_who_is_settled_to_be_worse_is_out_of_the_race(large: tuple) -> None:
    """As p-values of 0 say, however wide the standard error is; a thousandth is for all alike."""
    found = told_by_hand(large, [0.0, 0.1, 2.0])
    adjusted = found.ranking.adjusted_p.copy()
    adjusted[0, 1] = adjusted[1, 0] = 0.0
    settled = replace(found, ranking=replace(found.ranking, adjusted_p=adjusted))
    before, after = (race_of(each, goals.winner(*large[0].runs[:3])) for each in (found, settled))
    assert before.priority[1] > 100 * before.priority[2]
    assert after.priority[1:3].tolist() == [500, 999_500]


@pytest.mark.slow
def test_what_was_saved_is_the_same_race(large: tuple, tmp_path) -> None:
    pool, grades = large
    drawn, labels = played(pool, grades, usual_plan(pool))
    drawn.design.save(tmp_path / "design"), drawn.sample.save(tmp_path / "sample")
    again = load_round(tmp_path / "design", tmp_path / "sample")
    assert isinstance(again, AdaptiveRound)
    assert again.design.goal == drawn.design.goal
    for one, two in zip(again.sample.steps[1:], drawn.sample.steps[1:], strict=True):
        assert one.race is not None
        assert two.race is not None
        assert one.race.leader == two.race.leader
        assert one.race.priority.tolist() == two.race.priority.tolist()
    assert told(pool, again, labels).estimate.value.tolist() == (
        told(pool, drawn, labels).estimate.value.tolist()
    )


@pytest.mark.slow
def test_a_race_is_drawn_again_without_labels(large: tuple) -> None:
    pool, grades = large
    drawn, _ = played(pool, grades, usual_plan(pool))
    again = drawn.redrawn(pool, seed="s")
    assert again.sample.pair.tolist() == drawn.sample.pair.tolist()
    assert again.sample.chance.tolist() == drawn.sample.chance.tolist()
    *most, last = drawn.sample.steps
    turned = Race(last.race.leader, last.race.priority[::-1].copy())
    steps = (*most, replace(last, race=turned))
    other = replace(drawn, sample=replace(drawn.sample, steps=steps)).redrawn(pool, seed="s")
    assert other.sample.chance.tolist() != drawn.sample.chance.tolist()


@pytest.mark.parametrize("grade", [0, 3])
def test_where_nothing_is_learned_nobody_races(large: tuple, grade: int) -> None:
    pool, _ = large
    drawn, labels = played(pool, np.full(len(pool), grade), usual_plan(pool))
    assert all(step.race is None for step in drawn.sample.steps)
    assert np.all(np.isfinite(told(pool, drawn, labels).estimate.value))


def test_runs_that_return_the_same_do_not_race_each_other(large: tuple) -> None:
    pool, _ = large
    entries = np.flatnonzero(pool.run == 0)
    pairs = pool.entry_pair[entries]
    twice = np.repeat(entries, 2)
    twins = replace(
        pool,
        runs=("one", "two"),
        topic=pool.topic[pairs],
        docno=pool.docno[pairs],
        indptr=np.arange(0, len(twice) + 1, 2),
        run=np.tile(np.array([0, 1], dtype=np.int32), len(entries)),
        rank=pool.rank[twice],
    )
    with pytest.raises(ValueError, match="one, two do not differ under DCG@10"):
        usual_plan(twins)


@pytest.mark.slow
def test_a_twin_of_the_leader_takes_nothing_from_the_others(large: tuple) -> None:
    pool, grades = large
    drawn, _ = played(pool, grades, usual_plan(pool))
    best = pool.runs[drawn.sample.steps[-1].race.leader]
    doubled = _doubled(pool, best)
    again, _ = played(doubled, grades, usual_plan(doubled))
    race = again.sample.steps[-1].race
    twins = [doubled.run_index(best), doubled.run_index(f"{best}-twin")]
    assert race.leader in twins
    other = twins[1 - twins.index(race.leader)]
    assert race.priority[other] <= WHOLE * LEAST_SHARE


def _doubled(pool: Pool, tag: str) -> Pool:
    """The pool with one more run, which returns what another does."""
    index, more = pool.run_index(tag), len(pool.runs)
    own = pool.run == index
    ends = np.cumsum(own)[pool.indptr[1:] - 1]
    at = pool.indptr[1:][pool.entry_pair[own]]  # the last among the entries of its pair
    return replace(
        pool,
        runs=(*pool.runs, f"{tag}-twin"),
        indptr=np.append(0, pool.indptr[1:] + ends),
        run=np.insert(pool.run, at, more),
        rank=np.insert(pool.rank, at, pool.rank[own]),
    )


@pytest.mark.slow
def test_ratio_measures_race_as_well(large: tuple) -> None:
    pool, grades = large
    measure = parse_measure("AP")
    drawn, _ = played(pool, grades, usual_plan(pool, measure=measure, max_grade=3))
    assert drawn.sample.steps[-1].race is not None
    *_, last = walk(drawn.design.frame(pool), drawn.sample)
    chance = last.chances.by(0)
    assert np.all(chance[last.before.open] > 0.0)


@pytest.mark.slow
def test_no_pair_that_could_be_drawn_is_out_of_reach_in_a_race(large: tuple) -> None:
    pool, grades = large
    drawn, _ = played(pool, grades, usual_plan(pool, floor=0.0))
    for passed in walk(drawn.design.frame(pool), drawn.sample.first(drawn.planned)):
        assert np.all(passed.chances.by(0)[passed.before.open] > 0.0)


def test_other_methods_do_not_learn_who_is_in_the_race(pool: Pool) -> None:
    from estimation.core.sampling.allocation import make_design
    from estimation.core.sampling.priors import make_prior

    goal = goals.winner(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=DCG, max_grade=2)
    for method in ("poisson", "priority", "iid", "per-query"):
        with pytest.raises(GoalError, match=f"needs the method adaptive, .*, not '{method}'"):
            make_design(
                pool, goal=goal, measure=DCG, prior=prior, budget=4, batch_size=2, method=method
            )
