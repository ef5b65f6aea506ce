"""Topics that take part by classes: batches as large as planned, estimates unbiased, and intervals
that hold."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from estimation import core as library
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.adaptive import topic_choice
from estimation.core.rounds.adaptive.batch_weights import BatchWeights
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan, walk
from estimation.core.rounds.adaptive.topic_choice import BY_COINS, TopicChoice, choice_of
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import load_round
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values
from tests.core import test_core_adaptive_topics
from tests.core.length import bounded
from tests.core.simulated_pools import simulated_pool
from tests.core.test_core_adaptive import DCG, begun, plan_for, plan_of, played
from tests.core.test_core_adaptive_topics import every_round, grades_of, values, ways

EXACT = {"rel": 1e-12, "abs": 1e-12}
WANTED = [
    np.array([0.5, 0.45, 0.4, 0.36, 0.3]),  # two of five
    np.array([0.4, 0.3, 0.3, 0.04, 0.03, 0.02]),  # a whole class, and one of less than a topic
    np.array([0.9, 0.8, 0.75, 0.2]),
    np.array([0.1, 0.1, 0.05]),  # less than a topic in all
    np.array([1.0, 0.7, 0.65, 0.3]),  # one that is certain
    np.array([0.6, 0.6]),
]


@pytest.mark.parametrize("wanted", WANTED)
def test_every_topic_takes_part_with_its_chance(wanted: np.ndarray) -> None:
    choice = TopicChoice.in_classes(wanted, 0.4 * wanted)
    every = list(ways(choice))
    assert sum(share for share, _ in every) == pytest.approx(1.0, **EXACT)
    mean = sum(share * part for share, part in every)
    assert mean == pytest.approx(choice.chance, **EXACT)
    assert (choice.chance >= 0.4 * wanted).all()
    assert (choice.chance <= 1.0).all()
    assert min(part.sum() for _, part in every) >= 1
    spread = sum(share * part.sum() ** 2 for share, part in every) - mean.sum() ** 2
    assert spread <= 0.25 * len(np.unique(choice.group)) + 1e-12


@pytest.mark.parametrize(("least", "topics"), [(0.1, 1.0), (0.27, 2.0)])
def test_of_a_class_a_whole_number_takes_part(least: float, topics: float) -> None:
    """The nearest, or the next where a pair is likelier than that."""
    wanted = np.array([0.3, 0.3, 0.3, 0.26, 0.26])
    choice = TopicChoice.in_classes(wanted, np.full(5, least))
    assert choice.chance == pytest.approx(np.full(5, topics / 5.0), **EXACT)


def _covariance(choice: TopicChoice) -> np.ndarray:
    """Of one over its chance where a topic takes part, and 0 elsewhere."""
    told = [(share, part / choice.chance) for share, part in ways(choice)]
    return sum(share * np.multiply.outer(each, each) for share, each in told) - 1.0


@pytest.mark.parametrize("wanted", WANTED)
def test_what_is_told_of_the_variance_is_never_below_it(wanted: np.ndarray) -> None:
    """Whatever the topics' sums; and it is the variance where those of each class add up to 0."""
    choice = TopicChoice.in_classes(wanted, 0.4 * wanted)
    true, told = _covariance(choice), np.diag(choice.moved / choice.chance)
    assert np.linalg.eigvalsh(told - true).min() >= -1e-9
    sums = np.random.default_rng(3).normal(size=len(wanted))
    for number in set(choice.group.tolist()) - {BY_COINS}:
        sums[choice.group == number] -= sums[choice.group == number].mean()
    assert sums @ told @ sums == pytest.approx(sums @ true @ sums, **EXACT)


@pytest.mark.parametrize("wanted", WANTED[:2])
def test_twin_that_takes_topics_of_a_class_for_independent_is_caught(wanted: np.ndarray) -> None:
    choice = TopicChoice.in_classes(wanted, 0.4 * wanted)
    told = np.diag((1.0 - choice.chance) / choice.chance)
    assert np.linalg.eigvalsh(told - _covariance(choice)).min() < -0.01


@pytest.mark.parametrize("wanted", WANTED)
def test_sets_come_as_often_as_they_should(wanted: np.ndarray) -> None:
    choice, random, times = TopicChoice.in_classes(wanted, 0.4 * wanted), {}, 20_000
    generator = np.random.default_rng(4)
    for _ in range(times):
        numbers, coins = generator.random(len(wanted)), generator.random(choice.classes)
        part = choice.taking_part(numbers, coins).tobytes()
        random[part] = random.get(part, 0) + 1
    every = {part.tobytes(): share for share, part in ways(choice)}
    assert random.keys() <= every.keys()
    for part, share in every.items():
        off = abs(random.get(part, 0) - times * share)
        assert off < 5.0 * np.sqrt(times * share) + 1.0


def test_topics_without_pairs_do_not_stand_for_one_that_has_some() -> None:
    topic, chance = np.array([0, 0, 2], dtype=np.int32), np.array([0.1, 0.1, 0.1])
    choice = choice_of(topic, chance, 5.0, topics=4, even=True)
    assert choice.chance[[0, 2]].sum() == pytest.approx(1.0, **EXACT)


@pytest.fixture
def pool(ranked: Callable) -> Pool:
    """Five pairs of three topics, two runs."""
    runs = {
        "a": ranked({"1": "uv", "2": "p", "3": "x"}),
        "b": ranked({"1": "vu", "2": "q", "3": "x"}),
    }
    return build_pool(["1", "2", "3"], runs, depth=2)


def together(pool: Pool, minimum: float = 2.0, budget: int = 3) -> AdaptivePlan:
    plan = plan_for(pool, budget=budget, batches=2)
    return replace(plan, topic_minimum=minimum, even_topics=True)


def moments(pool: Pool, plan: AdaptivePlan) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Mean and covariance of the values over all rounds, what is told of it, and how many rounds,
    by their chance, have a class of which not all topics took part."""
    mean, square, told, parted = 0.0, 0.0, 0.0, 0.0
    for chance, drawn in every_round(pool, begun(plan), batches=2):
        found = values(pool, drawn)
        mean = mean + chance * found.value
        square = square + chance * np.multiply.outer(found.value, found.value)
        told = told + chance * found.covariance
        frame, step = plan.frame(pool), drawn.sample.steps[-1]
        last = every_batch(frame, drawn)[-1]
        parted += chance * bool((frame.topics_at(step.model, last).group >= 0).any())
    return mean, square - np.multiply.outer(mean, mean), told, parted


def every_batch(frame, drawn: AdaptiveRound) -> list[np.ndarray]:
    """The chances of pairs in each batch of a round."""
    return [batch.chances.by(0) for batch in walk(frame, drawn.sample)]


@pytest.mark.slow
@pytest.mark.parametrize("minimum", [1.5, 2.0])
def test_values_are_unbiased_and_variances_never_too_small(
    pool: Pool, eager: None, minimum: float
) -> None:
    """Over all rounds that can come to be, the first batch included."""
    mean, covariance, told, parted = moments(pool, together(pool, minimum))
    assert mean == pytest.approx(true_values(pool, grades=grades_of(pool), measure=DCG), **EXACT)
    assert np.linalg.eigvalsh(told - covariance).min() >= -1e-9
    assert parted > 0.5
    assert (np.diag(told) < 2.0 * np.diag(covariance)).all()


def test_the_squares_and_the_noise_of_labels_add_up(large: tuple) -> None:
    """What a label's own variance counts for: the square of what the label is multiplied by."""
    pool, grades = large
    plan = replace(plan_of(pool), topic_minimum=8.0, even_topics=True)
    drawn, _ = played(pool, grades, plan)
    frame, pairs = plan.frame(pool), drawn.sample.pair
    weights = BatchWeights.of(frame, walk(frame, drawn.sample), [DCG], drawn.planned)
    judged = weights.of_judged(pairs)
    in_squares = (judged.opened - judged.chance) * judged.inside + judged.in_topics
    counted = judged.on_noise + judged.on_find**2 * in_squares
    assert counted == pytest.approx(judged.on_label**2, **EXACT)
    assert (judged.inside < 1.0).any()


@pytest.mark.slow
def test_twin_that_takes_topics_for_independent_tells_too_little(
    ranked: Callable, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that are good for different topics: what one gets the other lacks."""
    runs = {"a": ranked({"1": "u", "2": "x"}), "b": ranked({"2": "x", "3": "p"})}
    apart = build_pool(["1", "2", "3"], runs, depth=2)
    _, covariance, told, _ = moments(apart, together(apart, budget=2))
    assert np.linalg.eigvalsh(told - covariance).min() >= -1e-9
    monkeypatch.setattr(topic_choice, "_moved", lambda _topics, chance: 1.0 - chance)
    _, _, told, _ = moments(apart, together(apart, budget=2))
    assert np.linalg.eigvalsh(told - covariance).min() < -1e-3


@pytest.mark.slow
def test_twin_that_always_takes_the_first_topics_of_a_class_is_biased(
    pool: Pool, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_of_each_size(choice: TopicChoice) -> Iterator[tuple[float, np.ndarray]]:
        sizes: dict[int, tuple[float, np.ndarray]] = {}
        for share, part in ways(choice):
            before, first = sizes.get(int(part.sum()), (0.0, part))
            sizes[int(part.sum())] = before + share, first
        yield from sizes.values()

    monkeypatch.setattr(test_core_adaptive_topics, "ways", first_of_each_size)
    mean, *_ = moments(pool, together(pool))
    true = true_values(pool, grades=grades_of(pool), measure=DCG)
    assert np.abs(mean - true).max() > 0.01


@pytest.fixture(scope="module")
def large() -> tuple[Pool, np.ndarray]:
    return simulated_pool()


def sizes_of(large: tuple, plan: AdaptivePlan, *, rounds: int) -> np.ndarray:
    """How many pairs the batches of seeded rounds have, (rounds, batches)."""
    pool, grades = large
    found = []
    for seed in range(rounds):
        drawn, _ = played(pool, grades, plan, seed=str(seed))
        found.append([len(drawn.sample.of_batch(n)) for n in range(1, drawn.planned + 1)])
    return np.array(found)


@pytest.mark.slow
def test_batches_are_about_as_large_as_planned(large: tuple) -> None:
    plan = replace(plan_of(large[0]), topic_minimum=8.0)
    coins = sizes_of(large, plan, rounds=20)
    even = sizes_of(large, replace(plan, even_topics=True), rounds=20)
    assert even[:, 1:].std() < 0.5 * coins[:, 1:].std()
    assert even.min() > 0
    assert even.mean(axis=0) == pytest.approx(np.full(5, 40.0), rel=0.15)


@pytest.mark.slow
def test_rounds_are_drawn_again_and_keep_their_rule(large: tuple, tmp_path) -> None:
    pool, grades = large
    by_coins = replace(plan_of(pool), topic_minimum=8.0)
    for number, plan in enumerate((by_coins, replace(by_coins, even_topics=True))):
        drawn, _ = played(pool, grades, plan)
        names = tmp_path / f"design {number}", tmp_path / f"sample {number}"
        drawn.design.save(names[0]), drawn.sample.save(names[1])
        stored = load_round(*names)
        assert stored.design.even_topics is plan.even_topics
        again = stored.redrawn(pool, seed="s")
        assert again.sample.pair.tolist() == drawn.sample.pair.tolist()
        assert again.sample.batch.tolist() == drawn.sample.batch.tolist()


def test_new_rounds_of_the_library_take_topics_by_classes(large: tuple) -> None:
    asked = {"measure": "DCG@5", "budget": 50, "method": "adaptive", "max_grade": 3}
    assert library.make_design(large[0], **asked, topic_minimum=5.0).even_topics
    assert not library.make_design(large[0], **asked).even_topics


def test_by_coins_is_what_it_was(large: tuple) -> None:
    """As rounds of earlier versions are drawn again: each topic by its own number."""
    topic, chance = np.array([0, 0, 1, 2, 2, 4]), np.array([0.2, 0.3, 0.6, 0.9, 0.9, 0.0])
    choice = choice_of(topic.astype(np.int32), chance, 2.0, topics=5, even=False)
    assert choice.chance == pytest.approx([0.3, 0.6, 0.9, 1.0, 1.0], **EXACT)
    numbers = np.array([0.31, 0.59, 0.1, 0.999, 0.999])
    taking = choice.taking_part(numbers, np.zeros(choice.classes))
    assert taking.tolist() == [False, True, True, True, True]
    assert choice.moved.tolist() == (1.0 - choice.chance).tolist()
    assert set(choice.inside.tolist()) == {1.0}
    pool, grades = large
    drawn, _ = played(pool, grades, replace(plan_of(pool), topic_minimum=8.0))
    assert len(np.unique(pool.topic[drawn.sample.of_batch(1)])) > 14  # all may take part


class Trials:
    """Seeded rounds on Cranfield: what they err by, and what they tell of it, (trials, k)."""

    def __init__(self, cranfield: Any, *, trials: int) -> None:
        pool, measure = cranfield.pool(depth=10), parse_measure("DCG@10")
        grades, goal = cranfield.grades(pool), goals.absolute(*cranfield.tags)
        best = int(grades.max())
        prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=best)
        asked = {"goal": goal, "measure": measure, "prior": prior, "method": "adaptive"}
        design = make_design(pool, **asked, budget=250, batch_size=25)
        plan = AdaptivePlan(design, best, topic_minimum=5.0, even_topics=True)
        true = true_values(pool, grades=grades, measure=measure)
        given = {"measures": [measure], "max_grade": best}
        error, told, sizes = [], [], []
        for seed in range(trials):
            drawn = AdaptiveRound.begin(pool, plan, seed=str(seed))
            while drawn.planned < drawn.batches:
                pairs = drawn.sample.pair
                drawn = drawn.extended(pool, labels=LabelRows(pairs, grades[pairs]))
            labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
            found = evaluate(pool, drawn, labels=labels, **given).results[0].estimate
            error.append(found.value - true)
            told.append(np.diag(found.covariance))
            sizes.append(np.bincount(drawn.sample.batch)[1:])
        self.error, self.told, self.sizes = map(np.array, (error, told, sizes))

    @property
    def covered(self) -> float:
        return float(np.mean(np.abs(self.error) < 1.96 * np.sqrt(self.told)))


TRIALS = bounded(40, 200)


@pytest.mark.slow
def test_intervals_hold_on_cranfield(cranfield: Any) -> None:
    found = Trials(cranfield, trials=TRIALS)
    off = found.error.mean(axis=0) / (found.error.std(axis=0, ddof=1) / np.sqrt(TRIALS))
    assert np.sqrt((off**2).mean()) < 2.0
    assert found.covered > 0.9
    assert 0.8 < found.told.mean() / found.error.var(axis=0, ddof=1).mean() < 1.5
    assert found.sizes.min() > 0
    assert found.sizes.std() < 9.0  # by coins 16


@pytest.mark.slow
def test_twin_that_forgets_that_topics_were_chosen_does_not_cover(
    cranfield: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = TopicChoice.in_classes

    def forgotten(wanted: np.ndarray, least: np.ndarray) -> TopicChoice:
        choice = alone(wanted, least)
        return replace(choice, moved=np.zeros(len(wanted)), inside=np.ones(len(wanted)))

    monkeypatch.setattr(TopicChoice, "in_classes", forgotten)
    found = Trials(cranfield, trials=TRIALS)
    assert found.told.mean() / found.error.var(axis=0, ddof=1).mean() < 0.8
