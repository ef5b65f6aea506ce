"""What a top-up is foretold to reach, played from what was judged, against what came."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from scipy import special

from estimation.core.data.labels import LabelError, LabelRows
from estimation.core.data.pool import Pool
from estimation.core.data.restriction import of_topics, restricted
from estimation.core.data.scope import Scope
from estimation.core.measures.table import parse_measure
from estimation.core.planning import judged_worlds, learning, played
from estimation.core.planning.judged_worlds import JudgedWorlds
from estimation.core.planning.learning import LearningProspects, learns
from estimation.core.planning.played import ASKED, growing
from estimation.core.planning.worlds import FEW, MANY, World, drawn_grades
from estimation.core.rounds.adaptive.frame import AdaptiveFrame
from estimation.core.rounds.adaptive.grades import OF_LISTS, LearnedGrades
from estimation.core.rounds.adaptive.past import SUMS, Past
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.adaptive.top_ups import continued, topped_up
from estimation.core.rounds.evaluation import evaluate
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.priors import make_prior
from tests.core.length import bounded
from tests.core.simulated_pools import simulated_pool

DCG, BEST, OLD = parse_measure("DCG@10"), 3, ("r0", "r1", "r2", "r3")
WAYS = "alone", "together"
TIMES = bounded(3, 8)


def planned(pool: Pool, budget: int, *, batches: int = 10, **more: object) -> AdaptivePlan:
    """As if nothing was judged."""
    about = {"goal": goals.absolute(*pool.runs), "measure": DCG, "max_grade": BEST}
    design = make_design(
        pool, prior=make_prior(pool, name="rank", **about), budget=budget, method="adaptive",
        batch_size=-(-budget // batches), **about,
    )  # fmt: skip
    return AdaptivePlan(design, BEST, **more)


def judged_to_the_end(
    pool: Pool, plan: AdaptivePlan, grades: np.ndarray, seed: str
) -> AdaptiveRound:
    drawn = AdaptiveRound.begin(pool, plan, seed=seed, labels=labels_of(plan, grades))
    while drawn.planned < drawn.batches:
        pairs = drawn.sample.pair
        drawn = drawn.extended(pool, labels=LabelRows(pairs, grades[pairs]))
    return drawn


def labels_of(plan: AdaptivePlan, grades: np.ndarray) -> LabelRows:
    """Of the pairs of its past."""
    pairs = np.zeros(0, np.int64) if plan.past is None else plan.past.judged
    return LabelRows(pairs, grades[pairs])


@cache
def first_round(seed: str = "first", budget: int = 300) -> AdaptiveRound:
    """Of the old runs."""
    pool, grades = simulated_pool()
    smaller = restricted(pool, OLD)
    return judged_to_the_end(smaller, planned(smaller, budget), grades, seed)


def grown(way: str, budget: int, *, seed: str = "first", **more: object) -> AdaptivePlan:
    """A top-up, by all runs, of a round by the old ones, over the same pairs."""
    pool, _ = simulated_pool()
    first, smaller = first_round(seed), restricted(pool, OLD)
    past = Past.alone(first.sample.pair, pairs=len(pool))
    if way == "together":
        frame, scope = first.design.frame(smaller), Scope.of(smaller, pool)
        past = continued(scope, frame, first.sample, past.judged, budget=float(budget))
    return topped_up(planned(pool, budget, **more), past)


def prospects(pool: Pool, plan: AdaptivePlan, grades: np.ndarray) -> LearningProspects:
    return LearningProspects.of(pool, plan, measures=[DCG], labels=labels_of(plan, grades))


def came(pool: Pool, plan: AdaptivePlan, grades: np.ndarray, seed: str) -> float:
    """The half width of the middle run."""
    drawn = judged_to_the_end(pool, plan, grades, seed)
    labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
    asked = {"measures": [DCG], "max_grade": BEST}
    found = evaluate(pool, drawn, labels=labels, **asked).results[0]
    return float(np.median(found.estimate.half_width))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("budget", [60, 200])
def test_what_came_lies_in_what_was_played_from_what_was_judged(way: str, budget: int) -> None:
    """With a twin that is played in worlds which know nothing of it."""
    pool, grades = simulated_pool()
    over, twin = [], []
    for turn in range(TIMES):
        plan = grown(way, budget, seed=f"first {turn}")
        width = came(pool, plan, grades, f"second {turn}")
        told = prospects(pool, plan, grades).reached().at(budget)
        over.append([told.half_width / width, told.half_width_most / width])
        with pytest.MonkeyPatch.context() as broken:
            broken.setattr(learning, "JudgedWorlds", _KnowsNothing)
            told = prospects(pool, plan, grades).reached().at(budget)
        twin.append([told.half_width / width, told.half_width_most / width])
    least, most = np.median(over, axis=0)
    assert least < 1.5
    assert 0.8 < most < 1.6
    assert np.median(twin, axis=0)[1] > 1.6


class _KnowsNothing:
    """Worlds with few and many relevant documents, whatever was judged."""

    def __init__(self, frame: AdaptiveFrame) -> None:
        self.frame = frame

    @classmethod
    def of(cls, frame: AdaptiveFrame, _: LearnedGrades) -> "_KnowsNothing":
        return cls(frame)

    def drawn_grades(self, *, careful: bool, number: int) -> np.ndarray:
        return drawn_grades(self.frame, World(MANY if careful else FEW), number=number)


@pytest.mark.parametrize("way", WAYS)
def test_the_draw_after_what_was_played_is_the_draw_without(way: str) -> None:
    """Chances, draws and estimates; with a twin that leaves something behind in what pools keep."""
    _, grades = simulated_pool()
    plan = grown(way, 60)

    def told(pool: Pool) -> list[np.ndarray]:
        drawn = judged_to_the_end(pool, plan, grades, "a seed")
        labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
        found = evaluate(pool, drawn, labels=labels, measures=[DCG], max_grade=BEST)
        sample = drawn.sample
        return [sample.pair, sample.batch, sample.chance, found.results[0].estimate.value]

    def is_the_same(after: Callable[[Pool], object]) -> bool:
        pool, fresh = (replace(simulated_pool()[0]) for _ in range(2))
        after(pool)
        return all(map(np.array_equal, told(pool), told(fresh)))

    assert is_the_same(lambda pool: prospects(pool, plan, grades).reached())

    def leaves_its_grades_behind(pool: Pool) -> None:
        """As if they had been judged."""
        prospects(pool, plan, grades)
        model = AdaptiveRound.unplanned(plan, seed="a seed").learned(
            plan.frame(pool), labels_of(plan, grades)
        )
        reached = plan.frame(pool).reached(model)
        reached.flags.writeable = True
        reached[:] = reached[:, ::-1]

    assert not is_the_same(leaves_its_grades_behind)


def worlds_of(plan: AdaptivePlan, pool: Pool, grades: np.ndarray) -> JudgedWorlds:
    frame = plan.frame(pool)
    model = AdaptiveRound.unplanned(plan, seed="").learned(frame, labels_of(plan, grades))
    return JudgedWorlds.of(frame, model)


def test_grades_are_drawn_as_often_as_the_model_expects() -> None:
    """In kind worlds; in careful ones they vary more from draw to draw, and neighbors do not."""
    pool, grades = simulated_pool()
    worlds = worlds_of(grown("alone", 60), pool, grades)
    reached = worlds.model.reach(worlds.frame.features)
    draw = partial(worlds.drawn_grades, careful=False)
    kind, careful = (
        np.stack([worlds.drawn_grades(careful=each, number=n) for n in range(40)])
        for each in (False, True)
    )
    for level, chance in zip(worlds.model.levels.tolist(), reached, strict=True):
        assert (kind >= level).mean() == pytest.approx(chance.mean(), rel=0.05)
    spread = [(each > 0).mean(axis=1).std() for each in (kind, careful)]
    assert spread[1] > 1.25 * spread[0]
    likeness = worlds.frame.features.likeness
    alike = (likeness @ likeness.T).toarray() > 0.9
    np.fill_diagonal(alike, 0)
    off = (kind > 0) - reached[0]
    by_itself = (careful > 0) - (careful > 0).mean(axis=0)
    together = [
        np.mean([x @ alike @ x for x in each]) / alike.sum() / np.var(each)
        for each in (off, by_itself)
    ]
    assert together[0] > 0.06
    assert abs(together[1]) < 0.03
    assert np.array_equal(draw(number=3), kind[3]), "the same everywhere"
    assert set(np.unique(kind)) <= {0, 1, 2, 3}


def test_coefficients_are_off_as_far_as_their_likelihood_has_it() -> None:
    """The covariance is the inverse of the second derivatives, in full: found by differences."""
    pool, grades = simulated_pool()
    worlds = worlds_of(grown("alone", 60), pool, grades)
    frame, model = worlds.frame, worlds.model
    some, finds = frame.features.of_pairs(model.found.judged), model.found
    rows = np.hstack([some.matrix().toarray(), frame.features.of_finds_of(some, finds)])
    ridge = frame.features.ridge(len(finds.judged))
    for coefficients, root in zip(model.coefficients, worlds.roots, strict=True):
        chance = special.expit(rows @ coefficients)
        curved = rows.T @ ((chance * (1.0 - chance))[:, None] * rows) + np.diag(ridge)
        assert root @ root.T @ curved == pytest.approx(np.eye(len(ridge)), abs=1e-6)


def test_of_very_many_coefficients_each_is_off_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, grades = simulated_pool()
    plan = grown("alone", 60)
    full = worlds_of(plan, pool, grades)
    monkeypatch.setattr(judged_worlds, "MOST_FEATURES", 1)
    alone = worlds_of(plan, pool, grades)
    for root, deviations in zip(full.roots, alone.roots, strict=True):
        assert deviations.ndim == 1
        assert np.all(deviations <= np.sqrt((root**2).sum(axis=1)) * (1.0 + 1e-9))
    drawn = alone.drawn_grades(careful=True)
    assert (drawn > 0).mean() == pytest.approx(
        (full.drawn_grades(careful=True) > 0).mean(), rel=0.5
    )


def test_predictions_that_the_model_does_without_are_not_off() -> None:
    pool, grades = simulated_pool()
    noise = np.random.default_rng(3).random((len(pool), 1))
    worlds = worlds_of(grown("alone", 60, predicted=noise), pool, grades)
    doubted = worlds.model.coefficients[:, OF_LISTS : worlds.frame.features.columns.shape[1]]
    assert (doubted == 0.0).any()
    for root, coefficients in zip(worlds.roots, worlds.model.coefficients, strict=True):
        without = np.flatnonzero(coefficients == 0.0)
        inside = (without >= OF_LISTS) & (without < worlds.frame.features.columns.shape[1])
        assert not root[without[inside]].any()
        assert np.abs(root).sum(axis=1)[coefficients != 0.0].min() > 0.0


def test_judged_pairs_keep_what_was_said_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that was said, also where people differ; drawn grades are for the others."""
    pool, grades = simulated_pool()
    plan, seen = grown("alone", 60), []
    known = labels_of(plan, grades)
    twice = LabelRows(np.repeat(known.pair, 2), np.stack([known.grade, 0 * known.grade], 1).ravel())

    def looked_at(*given: object, **asked: object) -> object:
        seen.append(asked["labels"])
        return evaluate(*given, **asked)

    monkeypatch.setattr(played, "evaluate", looked_at)
    LearningProspects.of(pool, plan, measures=[DCG], labels=twice)
    assert seen
    for labels in seen:
        own = np.isin(labels.pair, known.pair)
        assert np.array_equal(labels.pair[own], twice.pair)
        assert np.array_equal(labels.grade[own], twice.grade)
        assert len(np.unique(labels.pair[~own])) == np.count_nonzero(~own)


def test_what_was_found_tells_the_world() -> None:
    """The same pairs were found, with the lowest grade or the best; and none at all."""
    pool, grades = simulated_pool()
    plan = grown("alone", 60)
    low, high = (
        prospects(pool, plan, best * (grades > 0)).reached().at(60).half_width for best in (1, 3)
    )
    assert high > 2.0 * low
    nothing = prospects(pool, plan, np.zeros_like(grades)).reached().at(60)
    assert nothing.half_width < 0.8 * nothing.half_width_most, "no model: few and many, as before"


def test_a_label_is_wanted_of_every_pair_that_is_topped_up() -> None:
    pool, grades = simulated_pool()
    plan = grown("alone", 60)
    known = labels_of(plan, grades)
    for some in (None, LabelRows(known.pair[1:], known.grade[1:])):
        with pytest.raises(LabelError):
            LearningProspects.of(pool, plan, measures=[DCG], labels=some)


def test_what_is_said_of_a_top_up_is_the_same_however_many_batches_it_has() -> None:
    """As it has learned before the first; and that is about what comes."""
    pool, grades = simulated_pool()
    one, ten = (grown("alone", 200, batches=each) for each in (1, 10))
    assert learns(one)
    told = [prospects(pool, each, grades).reached().at(200).half_width_most for each in (one, ten)]
    assert told[0] == pytest.approx(told[1], rel=0.01)
    widths = [
        np.median([came(pool, each, grades, f"second {turn}") for turn in range(TIMES)])
        for each in (one, ten)
    ]
    assert widths[0] == pytest.approx(widths[1], rel=0.25)


def test_a_round_that_goes_on_is_played_to_twice_its_budget() -> None:
    """Its shares are made for about that: far beyond they leave it wide, whatever is judged."""
    pool, grades = simulated_pool()
    small, large, alone = grown("together", 60), grown("together", 240), grown("alone", 60)
    assert growing(small)[-1] == ASKED * 60
    assert growing(alone)[-1] > 2.0 * ASKED * 60
    told, itself = (
        prospects(pool, each, grades).reached().at(240).half_width_most for each in (small, large)
    )
    assert told == pytest.approx(itself, rel=0.35)
    lines = prospects(pool, small, grades).reached().lines
    widths = np.array([each.half_width_most for each in lines])
    assert np.all(np.diff(widths) <= 1e-9)
    assert widths[-1] == 0.0


def test_no_width_is_below_that_of_a_larger_budget() -> None:
    """Nor where two budgets that were played came to the same one, or to a wider one by chance."""
    pool, grades = simulated_pool()
    found = prospects(pool, grown("alone", 60), grades)
    nodes = found.played[0].budgets
    wide = np.full_like(found.played[0].half_width[0], 0.3)
    wide[len(nodes) // 2] = 0.2
    played = tuple(replace(each, half_width=(wide,)) for each in found.played)
    around = np.geomspace(nodes[0] / 2.0, found.whole, 200)
    widths = replace(found, played=played).half_widths(DCG, around)[1]
    assert np.all(np.diff(widths, axis=0) <= 1e-12)
    assert widths[np.searchsorted(around, nodes[0])] == pytest.approx(0.3, rel=1e-9)


def test_a_few_pairs_more_are_played_from_the_first_one_on() -> None:
    """Below the first line of the table, which then needs none before them."""
    pool, grades = simulated_pool()
    smaller, old = of_topics(pool, np.arange(5))
    grades = grades[old]
    first = judged_to_the_end(smaller, planned(smaller, 30), grades, "first")
    frame, scope = first.design.frame(smaller), Scope.of(smaller)
    past = continued(scope, frame, first.sample, first.sample.pair, budget=32.0)
    plan = topped_up(planned(smaller, 32, batches=2), past)
    lines = prospects(smaller, plan, grades).reached().lines
    assert growing(plan)[0] < lines[0].budget
    assert all(0.0 <= each.decided_least <= each.decided_most <= 1.0 for each in lines)


@pytest.mark.parametrize("way", WAYS)
def test_some_topics_tell_of_all_of_a_large_pool(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a twin for which values of some topics vary as those of all do."""
    pool, grades = simulated_pool()
    plan = grown(way, 200)
    whole = prospects(pool, plan, grades).reached().at(200).half_width_most
    monkeypatch.setattr(learning, "MOST_PLAYED", len(pool.run) // 2)
    part = prospects(pool, plan, grades).reached().at(200).half_width_most
    assert part != whole
    assert part == pytest.approx(whole, rel=0.5)
    as_is = played.Played.scaled
    monkeypatch.setattr(
        played.Played,
        "scaled",
        lambda self, *, budget, variance: as_is(self, budget=budget, variance=1.0),
    )
    twin = prospects(pool, plan, grades).reached().at(200).half_width_most
    assert twin != pytest.approx(whole, rel=0.5)


def test_the_past_of_some_pairs_is_that_of_the_pool_of_these_alone() -> None:
    pool, _ = simulated_pool()
    past = grown("together", 60).past
    some, pairs = of_topics(pool, np.array([2, 5]))
    found = past.of_pairs(pairs)
    kept = np.isin(past.judged, pairs)
    assert np.array_equal(pairs[found.judged], past.judged[kept])
    assert len(found.left) == len(some)
    for name in SUMS:
        before, after = (getattr(each.sums, name) for each in (past, found))
        by_pair = before.shape[-1] == len(pool)
        assert np.array_equal(after, before[..., pairs if by_pair else kept]), name
    alone = Past.alone(past.judged, pairs=len(pool)).of_pairs(pairs)
    assert alone.sums is None
    assert np.array_equal(alone.judged, found.judged)
