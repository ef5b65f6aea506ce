"""What a model of grades is told of what was found, and that it learns from it."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from estimation.core.archives import read_archive, write_archive
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.adaptive.grades import (
    AS_USUAL,
    HIGH,
    OF_FINDS,
    Features,
    Finds,
    LearnedGrades,
    fit_grades,
)
from estimation.core.rounds.adaptive.logistic import RidgeLogistic
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import (
    OF_MODELS,
    STATE_FORMAT,
    AdaptiveState,
)
from estimation.core.rounds.evaluation import evaluate
from tests.core.test_core_adaptive import begun, every_round, plan_for
from tests.core.test_core_adaptive import pool as tiny

__all__ = ["tiny"]  # a fixture

TOPICS, RUNS, DEPTH = 12, 8, 20
DCG = parse_measure("DCG@10")


@pytest.fixture(scope="module")
def pool() -> Pool:
    """Two families of four runs, which return documents of their own in every topic."""
    rng = np.random.default_rng(5)
    topics = tuple(f"t{topic:02}" for topic in range(TOPICS))
    runs = {}
    for run in range(RUNS):
        docnos = [
            f"{'ab'[run % 2]}{at:02}".encode()
            for _ in topics
            for at in rng.permutation(2 * DEPTH)[:DEPTH]
        ]
        bounds = np.arange(TOPICS + 1) * DEPTH
        runs[f"run{run}"] = RankedLists(topics, bounds, np.array(docnos))
    return build_pool(list(topics), runs, depth=DEPTH)


def clustered(pool: Pool) -> np.ndarray:
    """In each topic documents of one family are relevant six times in ten, others hardly ever."""
    rng = np.random.default_rng(6)
    family = np.array([docno[:1] == b"a" for docno in pool.docno])
    good = family == (pool.topic % 2 == 0)
    return (rng.random(len(pool)) < np.where(good, 0.6, 0.03)).astype(float)


def finds_of(pool: Pool, share: int = 3) -> Finds:
    judged = np.arange(0, len(pool), share)
    rng = np.random.default_rng(7)
    first = rng.integers(0, 3, len(judged)) / 2.0
    return Finds.of(judged, np.stack([first, np.where(first == 1.0, 0.5, 0.0)], axis=1))


def by_hand(pool: Pool, finds: Finds, *, alike: bool = True) -> np.ndarray:
    """The odds of every pair, from vectors of every two pairs of a topic; or as if all were one."""
    vectors = np.zeros((len(pool), len(pool.runs)))
    pair = np.repeat(np.arange(len(pool)), np.diff(pool.indptr))
    vectors[pair, pool.run if alike else 0] = 1.0 / np.sqrt(pool.rank)
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    value = dict(zip(finds.judged.tolist(), finds.share.tolist(), strict=True))
    rate = (sum(value.values()) + 0.5) / (len(value) + 1)
    found = np.zeros(len(pool))
    for one in range(len(pool)):
        number = relevant = 0.0
        for other, share in value.items():
            if other != one and pool.topic[other] == pool.topic[one]:
                number += vectors[one] @ vectors[other]
                relevant += share * (vectors[one] @ vectors[other])
        odds = (relevant + AS_USUAL * rate) / (number - relevant + AS_USUAL * (1 - rate))
        found[one] = np.log(odds) - np.log(rate / (1 - rate))
    return found


def test_they_are_the_odds_of_relevant_neighbors_and_of_the_topic(pool: Pool) -> None:
    features, finds = Features.of(pool), finds_of(pool)
    neighbors, decline = features.of_finds(finds).T
    np.testing.assert_allclose(neighbors, by_hand(pool, finds), rtol=1e-5, atol=1e-6)
    of_topic = by_hand(pool, finds, alike=False)
    np.testing.assert_allclose(decline, of_topic * features.columns[:, HIGH], rtol=1e-9)
    assert neighbors.std() > 0.1
    assert decline.std() > 0.01


def test_the_decline_is_by_how_high_a_pair_stands(pool: Pool) -> None:
    """By the column of the features that has the logarithm of the sum of reciprocal ranks."""
    high = np.log([sum(1.0 / pool.rank[a:b]) for a, b in pairwise(pool.indptr)])
    wanted = (high - high.mean()) / high.std()
    np.testing.assert_allclose(Features.of(pool).columns[:, HIGH], wanted, atol=1e-9)


def test_of_some_pairs_they_are_what_they_are_of_all(pool: Pool) -> None:
    features, finds = Features.of(pool), finds_of(pool)
    some = np.union1d(finds.judged, np.arange(0, len(pool), 7))
    assert np.array_equal(features.of_pairs(some).of_finds(finds), features.of_finds(finds)[some])


def test_where_nothing_was_judged_nothing_is_told(pool: Pool) -> None:
    finds = finds_of(pool)
    first = Finds.of(
        finds.judged[pool.topic[finds.judged] > 0],
        np.repeat(finds.share[pool.topic[finds.judged] > 0, None], 2, axis=1),
    )
    found = Features.of(pool).of_finds(first)
    np.testing.assert_allclose(found[pool.topic == 0], 0.0, atol=1e-12)
    assert np.abs(found[pool.topic > 0]).min() > 0.0
    nothing = Finds.of(finds.judged[:0], np.zeros((0, 2)))
    np.testing.assert_allclose(Features.of(pool).of_finds(nothing), 0.0, atol=1e-12)


def test_a_pair_does_not_count_for_itself_and_others_of_its_topic_do(pool: Pool) -> None:
    """Two labels change places, so that the rate of all stays what it was."""
    features, judged = Features.of(pool), np.arange(0, len(pool), 3)
    own, other = 0, int(np.flatnonzero(pool.topic[judged] == 5)[0])
    shares = np.zeros((len(judged), 1))
    shares[own] = 1.0
    before = features.of_finds(Finds.of(judged, shares))
    shares[[own, other]] = shares[[other, own]]
    after = features.of_finds(Finds.of(judged, shares))
    topic = pool.topic[judged[own]]
    assert after[judged[own]] == pytest.approx(before[judged[own]], abs=1e-12)
    alike = (pool.topic == topic) & (after < before - 1e-6).any(axis=1)
    assert np.count_nonzero(alike) > 3
    others = ~np.isin(pool.topic, [topic, 5])
    np.testing.assert_allclose(after[others], before[others], atol=1e-12)


def deviance(pool: Pool, labels: np.ndarray) -> float:
    """Of what a model that learned from one pair in four says of the others."""
    features, judged = Features.of(pool), np.arange(0, len(pool), 4)
    model = fit_grades(features, judged, labels[judged, None], levels=np.array([1]))
    assert model is not None
    left = np.setdiff1d(np.arange(len(pool)), judged)
    said, label = model.reach(features)[0][left], labels[left]
    return float(-np.mean(label * np.log(said) + (1.0 - label) * np.log(1.0 - said)))


def test_where_relevant_documents_are_neighbors_a_model_learns_it(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = clustered(pool)
    learned = deviance(pool, labels)
    shuffled = np.random.default_rng(8).permutation(labels)
    by_chance = deviance(pool, shuffled)

    def itself_too(self: Features, some: Features, finds: Finds) -> np.ndarray:
        """The twin: a judged pair tells its own label."""
        share = np.zeros(len(self.pair))
        share[np.searchsorted(self.pair, finds.judged)] = finds.share
        own = 4.0 * share[np.searchsorted(self.pair, some.pair)]
        return told(self, some, finds) + own[:, None] * [1.0, 0.0]

    told = Features.of_finds_of
    monkeypatch.setattr(Features, "of_finds_of", itself_too)
    assert learned < 0.9 * deviance(pool, labels)
    blind_to(0, monkeypatch)
    assert learned < 0.8 * deviance(pool, labels)
    assert by_chance < 1.02 * deviance(pool, shuffled)


def blind_to(feature: int, monkeypatch: pytest.MonkeyPatch, told=Features.of_finds_of) -> None:
    """Models see nothing in one of the features of what was found."""
    seen = np.arange(OF_FINDS) != feature
    monkeypatch.setattr(Features, "of_finds_of", lambda *given: told(*given) * seen)


def declining(pool: Pool) -> np.ndarray:
    """In half of the topics the first ranks alone are relevant; in the others any rank is."""
    high, rng = Features.of(pool).columns[:, HIGH], np.random.default_rng(10)
    few = special.expit(6.0 * (high - 1.2))
    return (rng.random(len(pool)) < np.where(pool.topic % 2 == 0, few, 0.5)).astype(float)


def test_where_few_relevant_documents_stand_at_the_top_a_model_learns_it(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so expects less far down in their topics, where without it it expects too much."""
    labels = declining(pool)
    judged = np.arange(0, len(pool), 4)
    low = np.flatnonzero((pool.topic % 2 == 0) & (Features.of(pool).columns[:, HIGH] < 0.0))
    low = np.setdiff1d(low, judged)

    def expected() -> float:
        model = fit_grades(Features.of(pool), judged, labels[judged, None], levels=np.array([1]))
        assert model is not None
        return float(model.reach(Features.of(pool))[0][low].sum())

    learned, seen = deviance(pool, labels), expected()
    blind_to(1, monkeypatch)
    assert labels[low].sum() == 0.0, "of some 170"
    assert expected() > 1.7 * seen
    assert learned < 0.9 * deviance(pool, labels)


def test_models_of_earlier_versions_say_what_they_said(pool: Pool) -> None:
    features, rng = Features.of(pool), np.random.default_rng(9)
    coefficients = rng.normal(size=(1, features.parameters))
    earlier = LearnedGrades(np.array([1]), coefficients)
    said = np.clip(special.expit(features.scores(coefficients[0])), 1e-4, 1.0 - 1e-4)
    assert np.array_equal(earlier.reach(features)[0], said)
    assert np.array_equal(replace(earlier, found=finds_of(pool)).reach(features)[0], said)
    finds = finds_of(pool)
    for own in ([1.0], [1.0, -0.5]):  # neighbors, and the decline
        longer = LearnedGrades(np.array([1]), np.append(coefficients, [own], axis=1), finds)
        scores = features.scores(coefficients[0]) + features.of_finds(finds)[:, : len(own)] @ own
        said = np.clip(special.expit(scores), 1e-4, 1.0 - 1e-4)
        np.testing.assert_allclose(longer.reach(features)[0], said, rtol=1e-12)


@pytest.mark.parametrize("looked_at", [0, 1])
def test_a_model_begins_where_one_of_an_earlier_version_ended(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    """And ends where it would have without it."""
    begun: list[np.ndarray] = []
    fit = RidgeLogistic.fit

    def noting(self: RidgeLogistic, start: np.ndarray) -> np.ndarray:
        begun.append(start)
        return fit(self, start)

    monkeypatch.setattr(RidgeLogistic, "fit", noting)
    features, labels, judged = Features.of(pool), clustered(pool), np.arange(0, len(pool), 4)
    earlier = LearnedGrades(np.array([1]), np.ones((1, features.parameters + looked_at)))
    shares, levels = labels[judged, None], np.array([1])
    model = fit_grades(features, judged, shares, levels=levels, before=earlier)
    assert model is not None
    assert model.knows_neighbors(features)
    ones = features.parameters + looked_at
    assert begun[0].tolist() == [1.0] * ones + [0.0] * (OF_FINDS - looked_at)
    alone = fit_grades(features, judged, shares, levels=levels)
    assert alone is not None
    np.testing.assert_array_equal(model.coefficients, alone.coefficients)


def test_models_of_the_enumerated_rounds_look_at_neighbors(tiny: Pool, eager: None) -> None:
    """So what is shown by all samples of a tiny round is shown of such models."""
    plan = plan_for(tiny)
    models = [
        step.model
        for _, drawn in every_round(tiny, begun(plan), batches=2)
        for step in drawn.sample.steps
        if step.model is not None
    ]
    for feature in range(1, OF_FINDS + 1):
        looking = [
            model for model in models if np.abs(model.coefficients[:, -feature]).max() > 0.01
        ]
        assert 4 * len(looking) > len(models) > 100
    assert all(model.knows_neighbors(plan.frame(tiny).features) for model in models)


# ------------------------------------------------------------------------------ what is stored


def judged_round(pool: Pool, labels: np.ndarray, *, corrected: bool = False) -> AdaptiveRound:
    """Four batches; before the last one, labels of some finds are corrected."""
    plan = plan_for(pool, measure=DCG, budget=120, batches=4, max_grade=1, reported=[])
    drawn, said = AdaptiveRound.begin(pool, plan, seed="stored"), labels.copy()
    while drawn.planned < drawn.batches:
        pairs = drawn.pairs(pool)
        if corrected and drawn.planned == 3:
            first = drawn.sample.of_batch(1)
            said[first[said[first] > 0][:3]] = 0.0
        drawn = drawn.extended(pool, labels=LabelRows(pairs, said[pairs].astype(np.int64)))
    return drawn


def finds_in(state: AdaptiveState) -> list[Finds]:
    return [step.model.found for step in state.steps if step.model and step.model.found]


def assert_same_finds(one: AdaptiveState, other: AdaptiveState) -> None:
    pairs = zip(finds_in(one), finds_in(other), strict=True)
    for before, after in pairs:
        for name in ("pair", "reach", "judged"):
            assert np.array_equal(getattr(before, name), getattr(after, name)), name


@pytest.mark.parametrize("corrected", [False, True])
def test_what_was_found_is_stored_by_what_changed(
    pool: Pool, tmp_path: Path, corrected: bool
) -> None:
    state = judged_round(pool, clustered(pool), corrected=corrected).sample
    assert len(finds_in(state)) == 3
    state.save(tmp_path / "state")
    assert_same_finds(AdaptiveState.load(tmp_path / "state"), state)
    numbers = [f"found {batch}" for batch in (2, 3, 4)]
    names = [f"{kind} {batch}" for kind in OF_MODELS for batch in (2, 3, 4)]
    constants = [f"constants {batch}" for batch in (1, 2, 3, 4)]
    _, arrays = read_archive(
        tmp_path / "state", STATE_FORMAT, ["pair", "batch", "chance", *constants], optional=names
    )
    stored = sum(len(arrays[name]) for name in numbers)
    ever = np.unique(np.concatenate([each.pair for each in finds_in(state)]))
    lost = np.setdiff1d(finds_in(state)[0].pair, finds_in(state)[-1].pair)
    assert (len(lost) > 0) == corrected
    assert stored == len(ever) + len(lost)
    assert stored < sum(len(each.pair) for each in finds_in(state))


def test_what_earlier_versions_stored_is_all_of_it(pool: Pool, tmp_path: Path) -> None:
    """With every batch all finds, and no fact that says that they are changes."""
    state = judged_round(pool, clustered(pool)).sample
    arrays = {"pair": state.pair, "batch": state.batch, "chance": state.chance}
    for number, step in enumerate(state.steps, start=1):
        arrays[f"constants {number}"] = step.constants
        if step.model is not None and step.model.found is not None:
            arrays[f"levels {number}"] = step.model.levels
            arrays[f"coefficients {number}"] = step.model.coefficients
            arrays[f"found {number}"] = step.model.found.pair
            arrays[f"reach {number}"] = step.model.found.reach
    facts = {"seed": state.seed, "batches": state.batches}
    write_archive(tmp_path / "state", STATE_FORMAT, facts, arrays)
    assert_same_finds(AdaptiveState.load(tmp_path / "state"), state)


def test_a_round_of_an_earlier_version_goes_on(pool: Pool, tmp_path: Path) -> None:
    """Its models have no coefficient of neighbors and no finds; the next one has both."""
    drawn, labels = judged_round(pool, clustered(pool)), clustered(pool).astype(np.int64)
    parameters = drawn.design.frame(pool).features.parameters
    first = drawn.sample.first(3)
    earlier = [
        step.model and LearnedGrades(step.model.levels, step.model.coefficients[:, :parameters])
        for step in first.steps
    ]
    steps = (replace(step, model=model) for step, model in zip(first.steps, earlier, strict=True))
    replace(first, steps=tuple(steps)).save(tmp_path / "state")
    begun = replace(drawn, sample=AdaptiveState.load(tmp_path / "state"))
    assert finds_in(begun.sample) == []
    pairs = begun.pairs(pool)
    longer = begun.extended(pool, labels=LabelRows(pairs, labels[pairs]))
    (found,) = finds_in(longer.sample)
    assert np.array_equal(found.judged, pairs)
    pairs = longer.pairs(pool)
    given = {"labels": LabelRows(pairs, labels[pairs]), "measures": [DCG], "max_grade": 1}
    told = evaluate(pool, longer, **given)
    assert np.isfinite(told.results[0].estimate.value).all()
