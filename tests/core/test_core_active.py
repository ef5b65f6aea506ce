"""Active sampling: exact inclusion probabilities, deterministic plans, unbiased estimates."""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from estimation.core.archives import ArchiveError
from estimation.core.data.labels import LabelError, LabelRows
from estimation.core.data.pool import build_pool
from estimation.core.rounds.active.estimates import ActiveEstimate, estimate
from estimation.core.rounds.active.lists import ActiveError, ActiveFrame, make_frame, rank_prior
from estimation.core.rounds.active.sampling import ActiveState, plan_batch, start
from estimation.core.rounds.active.weights import (
    inclusion_weights,
    joint_inclusion,
    sequential_weights,
)
from tests.core.active_plans import one_topic, replay
from tests.core.length import bounded

CHANCE = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.0, 0.2, 0.3]])
DRAWS = np.array([2, 2])
VALUE = np.array([1.0, 2.0, 0.5, 3.0])


# ------------------------------------------------------------------- inclusion probabilities


def samples() -> Iterator[tuple[float, np.ndarray]]:
    """Every sequence of two draws in each of two rounds, with its probability."""
    rounds = [row for row, number in zip(CHANCE, DRAWS, strict=True) for _ in range(number)]
    for sequence in product(range(4), repeat=len(rounds)):
        probability = float(np.prod([row[i] for row, i in zip(rounds, sequence, strict=True)]))
        if probability > 0:
            yield probability, np.unique(sequence)


def test_inclusion_probabilities_are_those_of_all_samples() -> None:
    found = joint_inclusion(CHANCE, draws=DRAWS)
    joint = np.zeros((4, 4))
    for probability, documents in samples():
        joint[np.ix_(documents, documents)] += probability
    np.testing.assert_allclose(found.joint, joint, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.single, np.diag(joint), rtol=0, atol=1e-14)
    independent = np.multiply.outer(found.single, found.single)
    np.testing.assert_allclose(found.excess, joint - independent, rtol=0, atol=1e-14)
    assert np.abs(independent - joint)[0, 1] > 0.005  # independence would be noticed


def test_totals_and_their_variance_are_unbiased_for_fixed_rounds() -> None:
    mean = square = variance = without_pairs = 0.0
    for probability, documents in samples():
        weights = inclusion_weights(joint_inclusion(CHANCE[:, documents], draws=DRAWS))
        y = VALUE[documents]
        total = float(weights.single @ y)
        mean += probability * total
        square += probability * total**2
        variance += probability * float(y @ weights.quadratic @ y)
        without_pairs += probability * float(np.diag(weights.quadratic) @ y**2)
    assert mean == pytest.approx(VALUE.sum(), abs=1e-12)
    assert variance == pytest.approx(square - mean**2, abs=1e-12)
    assert without_pairs > 1.3 * variance


@pytest.mark.parametrize("scale", [1e-3, 1e-9, 1e-15])
def test_joint_probabilities_keep_their_digits(scale: float) -> None:
    chance = np.array([[0.3 * scale, 0.7 * scale], [scale, 0.1 * scale]])
    draws = np.array([3, 40])
    found = joint_inclusion(chance, draws=draws)
    absent = [Fraction(1), Fraction(1), Fraction(1)]
    for (first, second), number in zip(chance.tolist(), draws.tolist(), strict=True):
        for place, p in enumerate((Fraction(first), Fraction(second))):
            absent[place] *= (1 - p) ** number
        absent[2] *= (1 - Fraction(first) - Fraction(second)) ** number
    assert found.single[0] == pytest.approx(float(1 - absent[0]), rel=1e-13)
    excess = absent[2] - absent[0] * absent[1]
    assert found.excess[0, 1] == pytest.approx(float(excess), rel=1e-12)
    joint = 1 - absent[0] - absent[1] + absent[2]
    assert found.joint[0, 1] == pytest.approx(float(joint), rel=1e-12)


def test_a_certain_document_is_certain() -> None:
    found = joint_inclusion(np.array([[1.0, 0.0], [0.5, 0.5]]), draws=np.array([1, 1]))
    np.testing.assert_allclose(found.joint, [[1.0, 0.5], [0.5, 0.5]], atol=1e-15)
    np.testing.assert_allclose(found.excess, [[0.0, 0.0], [0.0, 0.25]], atol=1e-15)


@pytest.mark.parametrize(
    ("probability", "draws", "message"),
    [
        (np.array([[0.5, 1.5]]), np.array([1]), "between 0 and 1"),
        (np.array([[0.5, 0.5]]), np.array([-1]), r"draws must be at least 0, not -1 \(item 0\)"),
        (np.array([[0.5, 0.5]]), np.array([1, 1]), "a row for each"),
    ],
)
def test_bad_rounds_are_refused(probability, draws, message: str) -> None:
    with pytest.raises(ActiveError, match=message):
        joint_inclusion(probability, draws=draws)


def test_conditional_probabilities_must_be_positive() -> None:
    with pytest.raises(ActiveError, match=r"in \(0, 1\]"):
        sequential_weights(np.array([0.5, 0.0]), documents=3, steps=np.array([0]))


def test_sequential_weights_are_those_of_the_estimates_they_average() -> None:
    conditional, y = np.array([0.1, 0.5, 0.3, 0.4, 0.8]), np.array([2.0, 0.0, 1.0, 3.0, 0.5])
    each = np.array([y[:s].sum() + y[s] / conditional[s] for s in range(5)])  # T_s
    share = np.array([s / (9 - s + 1) ** 2 for s in range(1, 6)])
    share /= share.sum()
    steps = np.array([4, 0, 3, 2])  # in any order, without the document that has y = 0
    found = sequential_weights(conditional, documents=9, steps=steps)
    value, z = share @ each, y[steps]
    assert found.single @ z == pytest.approx(value, rel=1e-13)


def test_rank_prior_is_the_weight_of_a_rank_in_average_precision() -> None:
    for length in (1, 2, 7, 100):
        raw = [1.0 + sum(1.0 / s for s in range(rank, length + 1)) for rank in range(1, length + 1)]
        found = rank_prior(np.arange(1, length + 1), np.full(length, length))
        np.testing.assert_allclose(found, np.array(raw) / sum(raw), rtol=1e-13)


# ----------------------------------------------------------------------------------- planning


@pytest.fixture
def frame(ranked) -> ActiveFrame:
    runs = {
        "alpha": ranked({"t1": "abcdef", "t2": "xyz"}),
        "beta": ranked({"t1": "bgcah", "t2": "zx"}),
        "gamma": ranked({"t1": "hgfe"}),
    }
    return make_frame(build_pool(["t1", "t2", "t3"], runs, depth=6))


GRADES = np.array([1, 0, 1, 0, 0, 1, 0, 1, 0, 2, 1])  # a..h of t1, x..z of t2


def truth_of(state: ActiveState) -> LabelRows:
    return LabelRows(state.pair, GRADES[state.pair])


def campaign(frame: ActiveFrame, batches: int | None = None, **options) -> ActiveState:
    limits = options.pop("limits", None)
    state = start(frame, **({"seed": "s"} | options))
    while batches is None or state.batches < batches:
        new = plan_batch(frame, state, labels=truth_of(state), limits=limits)
        if new is state:
            return state
        state = new
    return state


def same(first: ActiveState, second: ActiveState) -> bool:
    arrays = ("pair", "pair_round", "round_topic", "round_batch", "round_draws")
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in (*arrays, "run_probability", "log_absent")
    )


def test_a_batch_brings_so_many_new_documents_of_every_topic(frame) -> None:
    state = campaign(frame, 1)
    topics = frame.pool.topic[state.latest]
    assert np.bincount(topics).tolist() == [3, 3]
    assert np.all(state.round_draws >= 3)
    assert state.run_probability[0].tolist() == [1 / 3] * 3
    assert state.run_probability[1].tolist() == [0.5, 0.5, 0.0]  # gamma does not return t2


def test_every_document_is_sampled_in_the_end_and_none_twice(frame) -> None:
    state = campaign(frame, batch_size=2)
    assert sorted(state.pair.tolist()) == list(range(11))
    assert state.batches == 4


def test_limits_are_kept_and_topics_without_any_left_need_no_labels(frame) -> None:
    state = campaign(frame, limits=np.array([4, 2, 0]))
    assert np.bincount(frame.pool.topic[state.pair]).tolist() == [4, 2]
    limits = one_topic(frame, state, 1)
    only = plan_batch(frame, state, labels=truth_of(state), limits=limits)
    assert frame.pool.topic[only.latest].tolist() == [1]
    some = truth_of(state)
    known = frame.pool.topic[some.pair] == 1
    fewer = LabelRows(some.pair[known], some.grade[known])
    assert same(only, plan_batch(frame, state, labels=fewer, limits=limits))


def test_runs_are_drawn_in_proportion_to_average_precision(frame) -> None:
    first = campaign(frame, 1)
    second = plan_batch(frame, first, labels=truth_of(first))
    weight = np.zeros(3)
    pairs = np.sort(first.pair[frame.pool.topic[first.pair] == 0])
    share = dict(zip(pairs.tolist(), GRADES[pairs] / first.inclusion(pairs), strict=True))
    for run, letters in enumerate(["abcdef", "bgcah", "hgfe"]):
        above = 0.0
        for rank, letter in enumerate(letters, start=1):
            gain = share.get("abcdefgh".index(letter), 0.0)
            weight[run] += (gain * above + gain) / rank
            above += gain
    assert weight.sum() > 0
    row = np.flatnonzero((second.round_batch == 2) & (second.round_topic == 0))[0]
    np.testing.assert_allclose(second.run_probability[row], weight / weight.sum(), rtol=1e-12)


def test_without_a_relevant_document_all_runs_stay_equally_likely(frame) -> None:
    first = campaign(frame, 1)
    nothing = LabelRows(first.pair, np.zeros_like(first.pair))
    second = plan_batch(frame, first, labels=nothing)
    np.testing.assert_array_equal(second.run_probability[2], second.run_probability[0])
    mixed = plan_batch(
        frame, campaign(frame, 1, uniform_share=0.3), labels=truth_of(first)
    ).run_probability[2]
    learned = plan_batch(frame, first, labels=truth_of(first)).run_probability[2]
    np.testing.assert_allclose(mixed, 0.7 * learned + 0.1, rtol=1e-14)


def test_only_seed_and_labels_decide(frame) -> None:
    state = campaign(frame, 2)
    rows = truth_of(state)
    turned = LabelRows(rows.pair[::-1].copy(), rows.grade[::-1].copy())
    again = plan_batch(frame, state, labels=turned)
    assert same(again, plan_batch(frame, state, labels=rows))
    assert same(again, replay(frame, again, truth_of(again)))
    assert not same(campaign(frame, 2), campaign(frame, 2, seed="other"))
    wrong = LabelRows(rows.pair, 1 - np.minimum(rows.grade, 1))
    assert not same(again, replay(frame, again, wrong))


def test_replay_follows_limits_and_topics(frame) -> None:
    state = campaign(frame, limits=np.array([5, 2, 0]))
    state = plan_batch(frame, state, labels=truth_of(state), limits=one_topic(frame, state, 0))
    assert same(state, replay(frame, state, truth_of(state)))


def test_states_are_stored_bit_by_bit(frame, tmp_path: Path) -> None:
    state = campaign(frame, 2, uniform_share=0.1)
    state.save(tmp_path / "state")
    loaded = ActiveState.load(tmp_path / "state")
    assert same(state, loaded)
    for name in ("seed", "batch_size", "relevant_from", "uniform_share", "pool_digest"):
        assert getattr(loaded, name) == getattr(state, name)
    frame.pool.save(tmp_path / "pool")
    with pytest.raises(ArchiveError):
        ActiveState.load(tmp_path / "pool")


@pytest.mark.slow
def test_the_number_of_draws_has_its_distribution(frame) -> None:
    """Two new documents: after document i the wait is geometric with mean 1/(1 - p_i)."""
    chance = frame.lists(0).document_probability(frame.lists(0).uniform)
    expected = 1.0 + float((chance / (1.0 - chance)).sum())
    draws, first = [], []
    for number in range(1500):
        state = plan_batch(
            frame,
            start(frame, seed=str(number), batch_size=2),
            labels=LabelRows(np.array([], dtype=np.int64), np.array([], dtype=np.int64)),
            limits=np.array([99, 0, 0]),
        )
        draws.append(int(state.round_draws[0]))
        first.append(int(state.pair[0]))
    error = np.std(draws) / np.sqrt(len(draws))
    assert abs(np.mean(draws) - expected) <= 3 * error
    assert abs(2.0 - expected) > 3 * error  # as if no document came up twice
    frequency = np.bincount(first, minlength=8) / len(first)
    assert np.abs(frequency - chance).max() <= 4 * np.sqrt(0.25 / len(first))


def test_bad_arguments_are_refused(frame, tiny_pool) -> None:
    state = campaign(frame, 1)
    with pytest.raises(ActiveError, match="batch_size must be a whole number of at least 1, not 0"):
        start(frame, seed="s", batch_size=0)
    with pytest.raises(ActiveError, match="relevant_from"):
        start(frame, seed="s", relevant_from=0)
    with pytest.raises(ActiveError, match="uniform_share"):
        start(frame, seed="s", uniform_share=1.5)
    with pytest.raises(ActiveError, match="another pool"):
        plan_batch(make_frame(tiny_pool), state, labels=truth_of(state))
    with pytest.raises(ActiveError, match="another pool"):
        estimate(make_frame(tiny_pool), state, labels=truth_of(state), measures=["AP"])
    with pytest.raises(ActiveError, match="limits"):
        plan_batch(frame, state, labels=truth_of(state), limits=np.array([1, 2]))
    with pytest.raises(ActiveError, match="has no documents"):
        frame.lists(2)
    with pytest.raises(ActiveError, match="no estimator for 'ERR@10'"):
        estimate(frame, state, labels=truth_of(state), measures=["ERR@10"])
    with pytest.raises(ActiveError, match="uniform_share above 0"):
        estimate(frame, state, labels=truth_of(state), measures=["AP"], form="sequential")
    with pytest.raises(ActiveError, match="form must be one of"):
        estimate(frame, state, labels=truth_of(state), measures=["AP"], form="other")


def test_a_missing_or_foreign_label_is_refused(frame) -> None:
    state = campaign(frame, 1)
    rows = truth_of(state)
    for labels, message in (
        (LabelRows(rows.pair[1:], rows.grade[1:]), "no label"),
        (LabelRows(np.append(rows.pair, 99), np.append(rows.grade, 0)), "not sampled"),
    ):
        with pytest.raises(LabelError, match=message):
            plan_batch(frame, state, labels=labels)
        with pytest.raises(LabelError, match=message):
            estimate(frame, state, labels=labels, measures=["AP"])


# ---------------------------------------------------------------------------------- estimates

LETTERS = {"alpha": "abcdef", "beta": "bgcah", "gamma": "hgfe"}


def plain_values(weights: dict[str, float], pair, letters: str) -> dict[str, float]:
    """AP, Rprec and P@2 of a list by loops; `pair(a, b)` is the weight of two documents."""
    relevant = sum(weights.values())
    precision = sum(
        pair(first, second) / (rank + 1)
        for rank, first in enumerate(letters)
        for second in letters[: rank + 1]
        if first in weights and second in weights
    )
    whole = math.floor(relevant)
    inside = sum(weights.get(each, 0.0) for each in letters[:whole])
    inside += (relevant - whole) * sum(
        weights.get(each, 0.0) for each in letters[whole : whole + 1]
    )
    return {
        "AP": precision / relevant,
        "Rprec": inside / relevant,
        "P@2": sum(weights.get(each, 0.0) for each in letters[:2]) / 2,
    }


@pytest.mark.parametrize("form", ["corrected", "paper"])
def test_estimates_are_those_of_plain_loops(frame, form: str) -> None:
    state = campaign(frame, 2)
    rows = truth_of(state)
    rounds = np.flatnonzero(state.round_topic == 0)
    draws = state.round_draws[rounds]
    chance = {
        letter: np.array([frame.lists(0).document_probability(p)[place] for p in
                          state.run_probability[rounds]])
        for place, letter in enumerate("abcdefgh")
    }  # fmt: skip

    def absent(*letters: str) -> float:
        total = sum(chance[each] for each in letters)
        return float(np.prod((1.0 - total) ** draws))

    found = [each for each in "abcdefgh" if "abcdefgh".index(each) in state.pair.tolist()]
    weights = {each: 1.0 / (1.0 - absent(each)) for each in found if GRADES["abcdefgh".index(each)]}
    assert len(weights) >= 2

    def pair(first: str, second: str) -> float:
        if form == "paper":
            return weights[first] * weights[second]
        if first == second:
            return weights[first]
        return 1.0 / (1.0 - absent(first) - absent(second) + absent(first, second))

    results = estimate(frame, state, labels=rows, measures=["AP", "Rprec", "P@2"], form=form)
    for result in results:
        for run, letters in enumerate(LETTERS.values()):
            expected = plain_values(weights, pair, letters)[result.measure]
            assert result.topic_value[0, run] == pytest.approx(expected, rel=1e-12), result.measure
        np.testing.assert_allclose(result.value, result.topic_value.sum(axis=0) / 3)
        assert result.relevant[0] == pytest.approx(sum(weights.values()))
        assert result.judged.tolist() == [6, 3, 0]
        np.testing.assert_allclose(result.covariance, result.covariance.T)


def test_a_census_is_exact_and_certain(frame) -> None:
    state = campaign(frame, uniform_share=0.2)
    results = estimate(
        frame, state, labels=truth_of(state), measures=["AP", "Rprec", "P@2"], form="sequential"
    )
    weights = {letter: 1.0 for letter, grade in zip("abcdefgh", GRADES, strict=False) if grade}
    for result in results:
        for run, letters in enumerate(LETTERS.values()):
            expected = plain_values(weights, lambda *_: 1.0, letters)[result.measure]
            assert result.topic_value[0, run] == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(result.covariance, 0.0, atol=1e-15)
        np.testing.assert_allclose(result.relevant, [4.0, 2.0, 0.0], rtol=1e-12)


def all_plans(frame: ActiveFrame, state: ActiveState, length: int) -> Iterator[tuple]:
    """Every sequence of documents of topic 0 that active sampling can bring, one per round."""
    if len(state.pair) == length:
        yield 1.0, state
        return
    limits = one_topic(frame, state, 0)
    next_round = plan_batch(frame, state, labels=truth_of(state), limits=limits)
    chance = frame.lists(0).document_probability(next_round.run_probability[-1])
    chance[state.pair] = 0.0
    for document in np.flatnonzero(chance).tolist():
        pair = np.append(state.pair, document)
        for probability, plan in all_plans(frame, replace(next_round, pair=pair), length):
            yield probability * chance[document] / chance.sum(), plan


@pytest.mark.usefixtures("values_alone")
@pytest.mark.slow
def test_sequential_estimates_are_unbiased_over_all_adaptive_plans(frame) -> None:
    """Four documents, one per round, each round steered by the labels of the ones before."""
    begin = start(frame, seed="s", batch_size=1, uniform_share=0.2)
    mean = relevant = unweighted = total = 0.0
    for probability, plan in all_plans(frame, begin, 4):
        labels = truth_of(plan)
        result = estimate(frame, plan, labels=labels, measures=["P@2"], form="sequential")[0]
        total += probability
        mean += probability * result.topic_value[0]
        relevant += probability * result.relevant[0]
        unweighted += probability * float(0 in plan.pair) * 0.5 * 8 / 4
    assert total == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(mean, [0.5, 0.0, 0.5], atol=1e-12)
    assert relevant == pytest.approx(4.0, abs=1e-12)
    assert abs(unweighted - 0.5) > 0.01  # four of eight documents, as if all were alike


@pytest.mark.usefixtures("values_alone")
@pytest.mark.slow
def test_the_published_weights_are_biased(frame) -> None:
    """The product formula with rounds that react to labels misses R = 4; the other does not."""
    published, sequential = [], []
    for number in range(400):
        state = campaign(
            frame, seed=str(number), batch_size=1, uniform_share=0.2, limits=np.array([4, 0, 0])
        )
        labels = truth_of(state)
        for form, values in (("corrected", published), ("sequential", sequential)):
            found = estimate(frame, state, labels=labels, measures=["P@2"], form=form)[0]
            values.append(found.relevant[0])
    error = [np.std(each) / np.sqrt(len(each)) for each in (published, sequential)]
    assert abs(np.mean(sequential) - 4.0) <= 3 * error[1]
    assert abs(np.mean(published) - 4.0) > 5 * error[0]


# ------------------------------------------------------------------------------------- TREC-8


def trec8_campaign(
    frame: ActiveFrame, grades: np.ndarray, seed: str, form: str, share: float
) -> tuple[ActiveEstimate, ...]:
    limits = np.round(frame.sizes * 0.10).astype(np.int64)
    state = start(frame, seed=seed, uniform_share=share)
    while True:
        labels = LabelRows(state.pair, grades[state.pair])
        new = plan_batch(frame, state, labels=labels, limits=limits)
        if new is state:
            assert len(state.pair) == limits.sum()
            return estimate(frame, state, labels=labels, measures=["AP", "P@30"], form=form)
        state = new


def rms(values: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(((values - truth) ** 2).mean(axis=-1)).mean())


@pytest.mark.usefixtures("values_alone")
@pytest.mark.slow
def test_trec8_at_ten_percent(trec8) -> None:
    """Li and Kanoulas 2017, figure 5: less error in AP than what it is compared with."""
    from estimation.research.baselines.estimates import estimate as estimate_selection
    from estimation.research.baselines.estimates import values_from_grades
    from estimation.research.baselines.select import select
    from estimation.research.baselines.selections import share_budgets

    pool = trec8.pool(depth=100)
    grades, frame = trec8.grades(pool), make_frame(pool)
    truth = {
        name: values_from_grades(pool, grades=grades, measure=name).mean(axis=0)
        for name in ("AP", "P@30")
    }
    errors = {}
    asked = ("sequential", 0.1, bounded(3, 4)), ("corrected", 0.0, bounded(2, 4))
    for form, share, trials in asked:
        found = [trec8_campaign(frame, grades, f"trec8-{n}", form, share) for n in range(trials)]
        errors[form] = rms(np.array([each[0].value for each in found]), truth["AP"])
        precision = [(each[1].value - truth["P@30"]).mean() for each in found]
        relevant = [each[0].relevant.sum() / grades.sum() - 1.0 for each in found]
        if form == "sequential":
            error = 4.0 / np.sqrt(trials)
            assert abs(np.mean(precision)) <= error * np.std(precision, ddof=1)
            assert abs(np.mean(relevant)) <= error * np.std(relevant, ddof=1)
        else:  # biased, and by how much
            wider = np.sqrt(4 / trials)
            assert np.mean(relevant) == pytest.approx(-0.115, abs=0.03 * wider)
            assert np.mean(precision) == pytest.approx(-0.003, abs=0.0015 * wider)
    budget = share_budgets(pool, share=0.10)
    for name in ("mtf", "mab", "stratified"):
        chosen = select(pool, name, grades=grades, budget=budget, seed="0")
        value = estimate_selection(pool, chosen, grades=grades, measure="AP")
        assert errors["sequential"] < 0.6 * rms(value, truth["AP"]), name
        assert errors["corrected"] < rms(value, truth["AP"]), name
