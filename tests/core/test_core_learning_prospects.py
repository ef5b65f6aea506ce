"""What adaptive rounds are foretold to reach before anything is judged, against what came."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.restriction import of_topics
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning import learning, played
from estimation.core.planning.learning import LearningProspects, learns
from estimation.core.planning.played import play
from estimation.core.planning.prospects import reached_by_budget
from estimation.core.planning.worlds import FEW, MANY, TRUST, World, drawn_grades, worlds_of
from estimation.core.rounds.adaptive import rounds
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.sampled import Sampled
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import Asked, Evaluation
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.priors import make_prior
from tests.core.conftest import read_grades, read_run, topic_ids
from tests.core.simulated_pools import helpful_predictions, simulated_pool

DCG = parse_measure("DCG@10")
NOTHING = LabelRows(*np.zeros((2, 0), dtype=np.int64))


def planned(
    pool: Pool, budget: int, *, best: int = 3, measure: Measure = DCG, batches: int = 10, **more
) -> AdaptivePlan:
    about = {
        "goal": more.pop("goal", goals.absolute(*pool.runs)), "measure": measure, "max_grade": best,
    }  # fmt: skip
    prior = make_prior(pool, name="rank", **about)
    costs = more.get("costs")
    design = make_design(
        pool, prior=prior, budget=budget, batch_size=-(-budget // batches), method="adaptive",
        costs=costs, **about,
    )  # fmt: skip
    return AdaptivePlan(design, best, **more)


def came(pool: Pool, plan: AdaptivePlan, grades: np.ndarray, *, seed: str) -> float:
    """The half width of the middle run at the end of a round."""
    drawn = AdaptiveRound.begin(pool, plan, seed=seed)
    labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
    while drawn.planned < drawn.batches:
        drawn = drawn.extended(pool, labels=labels)
        labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
    asked = {"measures": [plan.measure], "max_grade": plan.max_grade}
    result = evaluate(pool, drawn, labels=labels, **asked).results[0]
    return float(np.median(result.estimate.half_width))


def prospects(pool: Pool, plan: AdaptivePlan) -> LearningProspects:
    return LearningProspects.of(pool, plan, measures=[plan.measure])


@cache
def collection(folder: Path) -> tuple[Pool, np.ndarray]:
    paths = sorted((folder / "runs").iterdir())
    runs = {path.name.removesuffix(".gz"): read_run(path, depth=10) for path in paths}
    pool = build_pool(topic_ids(folder), runs, depth=10)
    return pool, read_grades(folder / "qrels.txt", pool)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "best", "measure", "budget"),
    [
        ("cranfield", 4, "DCG@10", 250), ("cranfield", 4, "DCG@10", 1000),
        ("cranfield", 4, "P@10", 3000), ("dl2019", 3, "DCG@10", 250),
        ("dl2019", 3, "P(rel=2)@10", 1000), ("dl2019", 3, "nDCG@10", 250),
        ("trec8", 1, "P@10", 250), ("trec8", 1, "RBP(p=0.8)", 1000), ("trec8", 1, "AP", 1000),
    ],
)  # fmt: skip
def test_what_came_lies_in_what_was_played_and_the_careful_end_is_careful(
    data_dir: Path, name: str, best: int, measure: str, budget: int
) -> None:
    """As pages and docs state; the narrow end of ratios is not as narrow as they may come."""
    pool, grades = collection(data_dir / name)
    grades = np.clip(grades, 0, best)
    plan = planned(pool, budget, best=best, measure=parse_measure(measure))
    width = np.median([came(pool, plan, grades, seed=str(seed)) for seed in range(5)])
    told = prospects(pool, plan).reached().at(budget)
    assert width < 1.25 * told.half_width_most
    assert width > told.half_width / 1.25 or plan.measure.family == "ratio"


@pytest.mark.slow
def test_the_design_alone_foretells_far_too_little_on_a_collection(data_dir: Path) -> None:
    """The broken twin: what the first batch rests on, taken for the whole round."""
    pool, grades = collection(data_dir / "trec8")
    plan = planned(pool, 1000, best=1, measure=parse_measure("P@10"))
    width = came(pool, plan, np.clip(grades, 0, 1), seed="1")
    prior = make_prior(
        pool, name="rank", goal=plan.goal, measure=plan.measure, max_grade=plan.max_grade
    )
    alone = reached_by_budget(
        pool, plan.design, measure=plan.measure, prior=prior, max_grade=plan.max_grade
    ).at(1000)
    assert width > 2.0 * alone.half_width


@pytest.mark.parametrize("budget", [150, 400])
def test_a_round_of_growing_batches_tells_of_rounds_of_equal_ones(budget: int) -> None:
    """In the world in which both are played; with a twin that learns nothing."""
    pool, _ = simulated_pool()
    plan = planned(pool, budget)
    every = [drawn_grades(plan.frame(pool), World(1.5), number=each) for each in range(6)]

    def told() -> float:
        widths = []
        for grades in every:
            found = play(pool, plan, [grades], measures=[DCG], known=NOTHING)
            told = LearningProspects(pool, plan, (DCG,), (found,), (np.eye(len(pool.runs)),))
            widths.append(np.log(np.median(told.half_widths(DCG, [budget])[0])))
        return float(np.exp(np.mean(widths)))

    width = [came(pool, plan, each, seed=str(seed)) for seed, each in enumerate(every)]
    expected = float(np.exp(np.mean(np.log(width))))
    assert told() == pytest.approx(expected, rel=0.1)
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(rounds, "fit_grades", lambda *_, **__: None)
        assert told() != pytest.approx(expected, rel=0.1)


def test_few_batches_learn_less_and_are_played_as_they_are() -> None:
    """Of one batch there is nothing to play."""
    pool, _ = simulated_pool()
    two, ten = (planned(pool, 300, batches=each) for each in (2, 10))
    widths = [prospects(pool, plan).reached().at(300) for plan in (two, ten)]
    assert widths[0].half_width_most > 1.02 * widths[1].half_width_most
    assert learns(two)
    one = planned(pool, 300, batches=1)
    assert not learns(one)
    with pytest.raises(ValueError, match="two batches"):
        prospects(pool, one)


def test_worlds_have_few_and_many_relevant_documents_high_in_lists() -> None:
    pool, _ = simulated_pool()
    frame = planned(pool, 300).frame(pool)
    few, many = (drawn_grades(frame, World(each)) for each in (FEW, MANY))
    assert 0.02 < np.mean(few > 0) < 0.6 * np.mean(many > 0)
    assert set(np.unique(many)) == {0, 1, 2, 3}
    high = np.unique(pool.entry_pair[pool.rank <= 5])
    assert np.mean(many[high] > 0) > 1.2 * np.mean(many > 0)
    assert np.array_equal(many, drawn_grades(frame, World(MANY))), "the same everywhere"
    assert not np.array_equal(many, drawn_grades(frame, World(MANY), number=1))


def test_neighbors_have_like_grades_in_worlds() -> None:
    """Documents that the same runs return at like ranks; with a twin that deals grades out anew."""
    pool, _ = simulated_pool()
    frame = planned(pool, 300).frame(pool)
    likeness = frame.features.likeness
    alike = (likeness @ likeness.T).toarray()
    np.fill_diagonal(alike, 0.0)
    near = alike > 0.9

    def together(grades: np.ndarray) -> float:
        centered = (grades > 0) - np.mean(grades > 0)
        return float(centered @ near @ centered / near.sum() / np.var(centered))

    found = [drawn_grades(frame, World(1.5), number=each) for each in range(4)]
    rng = np.random.default_rng(1)
    assert np.mean([together(each) for each in found]) > 0.15
    assert abs(np.mean([together(rng.permutation(each)) for each in found])) < 0.05


def test_predicted_grades_are_worth_much_and_nothing() -> None:
    """What is foretold with them reaches from the one to the other, not beyond."""
    pool, grades = simulated_pool()
    predicted = helpful_predictions(grades)[:, None]
    plan, without = planned(pool, 300, predicted=predicted), planned(pool, 300)
    assert [each.trust for each in worlds_of(predicted=True)] == [0.0, TRUST, 0.0, TRUST]
    frame = plan.frame(pool)
    by_rank, helped = (
        np.mean(
            [
                np.corrcoef(predicted[:, 0], drawn_grades(frame, World(1.5, trust), number=each))
                for each in range(4)
            ],
            axis=0,
        )[0, 1]
        for trust in (0.0, TRUST)
    )
    assert helped > by_rank + 0.2
    told, alone = (prospects(pool, each).reached().at(300) for each in (plan, without))
    assert told.half_width < 0.95 * alone.half_width
    assert told.half_width_most == pytest.approx(alone.half_width_most, rel=0.15)


def test_more_budget_reaches_more_and_with_all_judged_everything_is_known() -> None:
    pool, _ = simulated_pool()
    lines = prospects(pool, planned(pool, 300)).reached().lines
    for name, sign in (
        ("budget", 1), ("work", 1), ("half_width", -1), ("half_width_most", -1),
        ("decided_least", 1), ("decided_most", 1), ("best_least", 1), ("best_most", 1),
    ):  # fmt: skip
        column = sign * np.array([getattr(each, name) for each in lines])
        assert np.all(np.diff(column) >= -1e-6), name
    assert all(each.half_width <= each.half_width_most for each in lines)
    assert all(each.decided_least <= each.decided_most for each in lines)
    assert (lines[-1].half_width, lines[-1].half_width_most) == (0.0, 0.0)
    assert lines[-1].budget == np.count_nonzero(planned(pool, 300).design.eligible)
    assert 300 in [each.budget for each in lines]


def test_what_is_said_of_a_budget_is_the_same_whichever_the_design_has() -> None:
    pool, _ = simulated_pool()
    before, then = (prospects(pool, planned(pool, each)).reached() for each in (100, 400))
    for budget in (100.0, 250.0, 400.0):
        told, again = before.at(budget), then.at(budget)
        assert again.half_width_most == pytest.approx(told.half_width_most, rel=0.02)
        assert again.decided_least == pytest.approx(told.decided_least, abs=0.01)


def test_what_pairs_cost_is_what_budgets_pay_for() -> None:
    pool, _ = simulated_pool()
    plan = planned(pool, 300)
    dear = planned(pool, 600, costs=np.full(len(pool), 2.0))
    cheap, twice = (prospects(pool, each).reached() for each in (plan, dear))
    assert twice.lines[-1].budget == pytest.approx(2.0 * cheap.lines[-1].budget)
    assert twice.at(600).half_width_most == pytest.approx(cheap.at(300).half_width_most, rel=0.02)


def test_a_race_is_played_with_runs_that_are_alike_and_apart() -> None:
    """One leads by more where they are; other rounds are not played so."""
    pool, _ = simulated_pool()
    frame, weights = planned(pool, 300).frame(pool), pool.weights(parse_measure("P@10"))
    ahead = []
    for world in worlds_of(predicted=False, race=True):
        values = [weights.T @ (drawn_grades(frame, world, number=each) > 0) for each in range(4)]
        ahead.append(np.mean([np.max(each) - np.median(each) for each in values]))
    assert len(ahead) == 4
    assert ahead[1] > 2.0 * ahead[0]
    assert ahead[3] > 2.0 * ahead[2]
    with_predictions = worlds_of(predicted=True, race=True)
    assert len(with_predictions) == 6
    assert {each.trust for each in with_predictions if each.apart} == {0.0}
    race = planned(pool, 300, goal=goals.winner(*pool.runs))
    assert len(prospects(pool, race).played) == 4
    assert len(prospects(pool, planned(pool, 300)).played) == 2


def test_a_race_that_is_played_is_estimated_once_after_each_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is told of a batch says who is in the race of the next one, too: the same numbers."""
    pool, grades = simulated_pool()
    plan = planned(pool, 300, goal=goals.winner(*pool.runs))
    answer, seen = rounds.answer_of_batches, []

    def counted(sampled: Sampled, asked: Asked) -> Evaluation:
        seen.append(sampled.state.batches)
        return answer(sampled, asked)

    def told() -> list[list[list[float]]]:
        found = play(pool, plan, [grades], measures=[DCG], known=NOTHING)
        return found.covariance.tolist()

    monkeypatch.setattr(rounds, "answer_of_batches", counted)
    once = told()
    assert seen == sorted(set(seen)) != []
    monkeypatch.setattr(played, "_under", lambda *_: None)
    assert told() == once
    assert len(seen) > 2 * len(set(seen)), "the twin works out some of it twice"


@pytest.mark.slow
def test_a_race_that_is_soon_decided_is_told_with_care(data_dir: Path) -> None:
    """Runs that are behind are hardly judged then; worlds of runs that are alike have .6 of it."""
    pool, grades = collection(data_dir / "trec8")
    measure, goal = parse_measure("RBP(p=0.8)"), goals.winner(*pool.runs)
    plan = planned(pool, 1000, best=1, measure=measure, goal=goal)
    grades = np.clip(grades, 0, 1)
    width = np.median([came(pool, plan, grades, seed=str(seed)) for seed in range(3)])
    assert width < 1.25 * prospects(pool, plan).reached().at(1000).half_width_most


def test_some_topics_tell_of_all_of_a_large_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a twin for which values of some topics vary as those of all do."""
    pool, _ = simulated_pool()
    plan = planned(pool, 400)
    whole = prospects(pool, plan).reached()
    monkeypatch.setattr(learning, "MOST_PLAYED", len(pool.run) // 2)
    part = prospects(pool, plan).reached()
    widths = [each.at(400).half_width_most for each in (whole, part)]
    assert widths[0] != widths[1]
    assert widths[1] == pytest.approx(widths[0], rel=0.2)
    shares = [each.at(400).decided_most for each in (whole, part)]
    assert shares[1] == pytest.approx(shares[0], abs=0.2)
    as_is = played.Played.scaled
    monkeypatch.setattr(
        played.Played,
        "scaled",
        lambda self, *, budget, variance: as_is(self, budget=budget, variance=1.0),
    )
    twin = prospects(pool, plan).reached().at(400).half_width_most
    assert twin != pytest.approx(widths[0], rel=0.2)


def test_runs_of_which_nothing_was_found_are_not_told_apart() -> None:
    """Their estimates do not vary in what was played, and are not known for that."""
    topics, runs, depth = [f"t{each:02}" for each in range(30)], 16, 60
    ends = np.arange(len(topics) + 1) * depth
    names = (
        [f"{run}-{topic}-{rank}".encode() for topic in topics for rank in range(depth)]
        for run in range(runs)
    )
    lists = {
        f"run{at:02}": RankedLists(tuple(topics), ends, np.array(each))
        for at, each in enumerate(names)
    }
    pool = build_pool(topics, lists, depth=depth)
    found = prospects(pool, planned(pool, 500)).reached()
    assert found.at(100).decided_most < 0.05


def test_the_pool_of_some_topics_is_what_is_built_from_them() -> None:
    pool, _ = simulated_pool()
    some, pairs = of_topics(pool, np.array([2, 5]))
    assert some.topics == (pool.topics[2], pool.topics[5])
    assert np.array_equal(some.docno, pool.docno[pairs])
    assert np.array_equal(np.unique(pool.topic[pairs]), [2, 5])
    before, after = (each.weights(DCG).toarray() for each in (pool, some))
    assert after == pytest.approx(before[pairs] * len(pool.topics) / 2.0)


def test_what_is_played_is_no_part_of_a_round() -> None:
    """The same pairs are drawn, whatever was played before, and the same is played again."""
    pool, grades = simulated_pool()
    plan = planned(pool, 200)

    def drawn() -> np.ndarray:
        found = AdaptiveRound.begin(pool, plan, seed="a seed")
        for _ in range(3):
            found = found.extended(
                pool, labels=LabelRows(found.sample.pair, grades[found.sample.pair])
            )
        return found.sample.pair

    before, told = drawn(), prospects(pool, plan).reached()
    fresh = replace(pool)
    assert np.array_equal(drawn(), before)
    assert prospects(fresh, plan).reached() == told
