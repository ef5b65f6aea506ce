"""What budgets are foretold to reach, against what simulated rounds came to have."""

from pathlib import Path

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.inference.looked_at import LIKELY
from estimation.core.measures.table import parse_measure
from estimation.core.planning.planning import expected_half_widths
from estimation.core.planning.prospects import PLENTIFUL, reached_by_budget
from estimation.core.planning.reached import Reached, ReachedByBudget
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from tests.core.conftest import read_grades, read_run, topic_ids
from tests.core.simulated_pools import simulated_pool

MEASURE = parse_measure("DCG@10")


def planned(pool: Pool, budget: int, *, max_grade: int, goal: str = "ranking", **options):
    about = {"goal": getattr(goals, goal)(*pool.runs), "measure": MEASURE, "max_grade": max_grade}
    prior = make_prior(pool, name="rank", **about)
    return make_design(
        pool, prior=prior, budget=budget, batch_size=budget, **about, **options
    ), prior


def reached(pool: Pool, budget: int, *, max_grade: int, **options) -> ReachedByBudget:
    design, prior = planned(pool, budget, max_grade=max_grade, **options)
    costs = options.get("costs")
    return reached_by_budget(
        pool, design, measure=MEASURE, prior=prior, max_grade=max_grade, costs=costs, work=costs
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "max_grade"), [("cranfield", 4), ("dl2019", 3)])
@pytest.mark.parametrize("budget", [250, 1000, 2500])
def test_what_came_lies_in_what_was_foretold(
    data_dir: Path, name: str, max_grade: int, budget: int
) -> None:
    """Within the tolerances that the pages and docs state."""
    folder = data_dir / name
    tags = [path.name.removesuffix(".gz") for path in sorted((folder / "runs").iterdir())]
    runs = {
        tag: read_run(path, depth=10)
        for tag, path in zip(tags, sorted((folder / "runs").iterdir()), strict=True)
    }
    pool = build_pool(topic_ids(folder), runs, depth=10)
    grades = np.minimum(read_grades(folder / "qrels.txt", pool), max_grade)
    design, _ = planned(pool, budget, max_grade=max_grade)
    foretold = reached(pool, budget, max_grade=max_grade).at(budget)
    widths, decided = [], []
    for seed in map(str, range(4)):
        part = PairRound(design, draw(pool, design, seed=seed))
        labels = LabelRows(part.sample.pair, grades[part.sample.pair])
        found = evaluate(pool, part, labels=labels, measures=[MEASURE], max_grade=max_grade)
        result = found.results[0]
        widths.append(np.median(result.estimate.high - result.estimate.low) / 2.0)
        decided.append(np.count_nonzero(result.ranking.verdicts == 1))
    share = np.mean(decided) / (len(pool.runs) * (len(pool.runs) - 1) / 2)
    assert 0.65 * foretold.half_width < np.mean(widths) < 1.05 * foretold.half_width_most
    assert foretold.decided_least - 0.02 < share < foretold.decided_most + 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("name", "max_grade"), [("cranfield", 4), ("dl2019", 3)])
def test_the_best_two_are_told_apart_about_as_often_as_foretold(
    data_dir: Path, name: str, max_grade: int
) -> None:
    """Over sets of runs: one set has one lead, which is anything."""
    folder, rng = data_dir / name, np.random.default_rng(3)
    paths = sorted((folder / "runs").iterdir())
    lists = {path.name.removesuffix(".gz"): read_run(path, depth=10) for path in paths}
    least, most, came = [], [], []
    for runs in (2, 4, 8, 16) * 4:
        some = {tag: lists[tag] for tag in rng.choice(list(lists), runs, replace=False).tolist()}
        pool = build_pool(topic_ids(folder), some, depth=10)
        grades = np.minimum(read_grades(folder / "qrels.txt", pool), max_grade)
        best, second = np.argsort(-np.asarray(pool.weights(MEASURE).T @ grades).ravel())[:2]
        design, _ = planned(pool, len(pool) // 3, max_grade=max_grade)
        foretold = reached(pool, len(pool) // 3, max_grade=max_grade).at(len(pool) // 3)
        part = PairRound(design, draw(pool, design, seed=str(len(came))))
        labels = LabelRows(part.sample.pair, grades[part.sample.pair])
        found = evaluate(pool, part, labels=labels, measures=[MEASURE], max_grade=max_grade)
        least.append(foretold.best_least)
        most.append(foretold.best_most)
        came.append(found.results[0].ranking.verdicts[best, second] == 1)
    assert np.mean(least) - 0.15 < np.mean(came) < np.mean(most) + 0.1


def test_the_prior_alone_is_caught_on_a_collection_with_many_relevant_documents() -> None:
    """The broken twin: one exact number, by a prior that knows nothing of how much is relevant."""
    pool, grades = simulated_pool()
    rng = np.random.default_rng(1)
    many = np.where(rng.random(len(grades)) < 0.25, rng.integers(1, 4, len(grades)), grades)
    design, prior = planned(pool, 500, max_grade=3)
    foretold = reached(pool, 500, max_grade=3).at(500)
    part = PairRound(design, draw(pool, design, seed="x"))
    labels = LabelRows(part.sample.pair, many[part.sample.pair])
    found = evaluate(pool, part, labels=labels, measures=[MEASURE], max_grade=3).results[0]
    came = np.median(found.estimate.high - found.estimate.low) / 2.0
    alone = expected_half_widths(pool, design, measure=MEASURE, prior=prior, max_grade=3)
    assert foretold.half_width == pytest.approx(np.median(alone.half_width), rel=1e-9)
    assert came > 1.15 * foretold.half_width
    assert came < 1.2 * foretold.half_width_most


@pytest.mark.parametrize("method", ["poisson", "priority", "iid", "per-query"])
def test_more_budget_reaches_more(method: str) -> None:
    pool, _ = simulated_pool()
    lines = reached(pool, 300, max_grade=3, method=method).lines
    for name, sign in (
        ("budget", 1), ("work", 1), ("half_width", -1), ("half_width_most", -1),
        ("decided_least", 1), ("decided_most", 1), ("best_least", 1), ("best_most", 1),
    ):  # fmt: skip
        column = sign * np.array([getattr(each, name) for each in lines])
        assert np.all(np.diff(column) >= -1e-6), name
    assert all(each.half_width <= each.half_width_most for each in lines)
    assert all(each.decided_least <= each.decided_most for each in lines)
    assert all(0.0 <= each.best_least <= each.best_most <= 1.0 for each in lines)
    assert all(each.best_most <= each.decided_most + 0.02 for each in lines), "the best are close"
    assert 300 in [each.budget for each in lines]


@pytest.mark.parametrize("method", ["poisson", pytest.param("iid", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["decided", "best"])
def test_what_a_budget_decides_is_the_same_whichever_budget_the_design_has(
    method: str, name: str
) -> None:
    """Else a share that is asked for would change as soon as its budget is taken."""
    pool, _ = simulated_pool()
    before = reached(pool, 40, max_grade=3, method=method)
    for budget in (55, 300, len(pool) // 2, len(pool) - 2):
        then = reached(pool, budget, max_grade=3, method=method)
        for end in ("least", "most"):
            told = [getattr(each.at(budget), f"{name}_{end}") for each in (before, then)]
            assert told[1] == pytest.approx(told[0], rel=1e-9, abs=1e-12)


def test_where_the_fewest_verdicts_rise_no_more_is_told_by_the_pool_alone() -> None:
    """Between two budgets that are worked out lies where the middle pair that may be missed becomes
    a likely one: up to there the fewest verdicts rise, and not again before all is judged."""
    pool, _ = simulated_pool()
    design, _ = planned(pool, 40, max_grade=3)

    def is_likely(budget: float) -> bool:
        chance = design.new_after(float(design.steps_for([budget])[0]))[design.eligible]
        return bool(np.median(chance[chance < 1.0]) >= LIKELY)

    lines = reached(pool, 40, max_grade=3).lines
    at = next(number for number, each in enumerate(lines) if is_likely(each.budget))
    assert 3 < at < len(lines) - 4
    assert len({each.decided_least for each in lines[at:-1]}) == 1
    assert lines[at - 2].decided_least < lines[at].decided_least < lines[-1].decided_least


def test_with_all_judged_everything_is_known_and_costs_are_counted() -> None:
    pool, _ = simulated_pool()
    costs = np.linspace(0.5, 1.5, len(pool))
    whole = reached(pool, 300, max_grade=3, costs=costs).lines[-1]
    design, _ = planned(pool, 300, max_grade=3, costs=costs)
    assert whole.budget == pytest.approx(costs[design.eligible].sum())
    assert whole.work == pytest.approx(whole.budget)
    assert (whole.half_width, whole.half_width_most) == (0.0, 0.0)
    assert whole.decided_least == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("wanted", [0.05, 0.2, 1.0])
def test_the_budget_for_a_half_width_gives_it_and_little_less_does_not(wanted: float) -> None:
    """The table against the prediction itself, made anew for the budget that it gives."""
    pool, _ = simulated_pool()
    answer = reached(pool, 300, max_grade=3).budget_for("half_width", wanted)
    assert answer.hoped is not None

    def half_width(budget: int) -> float:
        design, prior = planned(pool, budget, max_grade=3)
        found = expected_half_widths(pool, design, measure=MEASURE, prior=prior, max_grade=3)
        return float(np.median(found.half_width))

    budget = int(np.ceil(answer.hoped))
    assert half_width(budget) <= wanted * 1.02
    assert half_width(int(0.9 * budget)) > wanted


def line(budget: float, width: float, decided: float) -> Reached:
    best = decided / 4, decided * 0.9
    return Reached(budget, budget, width, 2 * width, decided / 2, decided, *best)


def test_both_ways_agree_and_what_cannot_be_had_is_said() -> None:
    table = ReachedByBudget((line(10, 4.0, 0.2), line(30, 2.0, 0.6), line(90, 1.0, 0.8)))
    assert table.at(20) == line(20, 3.0, 0.4)
    assert (table.at(1), table.at(1000)) == (table.lines[0], table.lines[-1])
    for budget in (10.0, 20.0, 60.0, 90.0):
        found = table.at(budget)
        assert table.budget_for("half_width", found.half_width).hoped == pytest.approx(budget)
        assert table.budget_for("decided", found.decided_most).hoped == pytest.approx(budget)
        assert table.budget_for("best", found.best_most).hoped == pytest.approx(budget)
        assert table.budget_for("best", found.best_least).careful == pytest.approx(budget)
    never = table.budget_for("half_width", 0.5)
    assert (never.hoped, never.careful) == (None, None)
    assert table.budget_for("decided", 0.7).careful is None
    assert table.budget_for("hours", 45.0, hours_each=1.0).hoped == 45.0
    assert table.budget_for("hours", 5.0, hours_each=1.0).hoped == 5.0
    assert table.budget_for("hours", 1e9, hours_each=1.0).hoped == 90.0
    assert ReachedByBudget.of_facts(table.facts()) == table


def test_what_the_sample_cannot_support_is_infinite_at_every_budget() -> None:
    never = ReachedByBudget(tuple(line(budget, np.inf, 0.1) for budget in (10.0, 30.0, 90.0)))
    assert [never.at(budget).half_width for budget in (5, 10, 20, 30, 99)] == [np.inf] * 5
    assert never.budget_for("half_width", 1e300).careful is None
    late = ReachedByBudget((line(10, np.inf, 0.1), line(30, 2.0, 0.5)))
    assert late.budget_for("half_width", 3.0).hoped == 30.0
    assert ReachedByBudget.of_facts(never.facts()) == never


@pytest.mark.parametrize("wanted", [0.0, -1.0, float("nan")])
def test_what_is_wanted_is_a_number_above_zero(wanted: float) -> None:
    table = ReachedByBudget((line(10, 4.0, 0.2),))
    with pytest.raises(ValueError, match="wanted must be above 0"):
        table.budget_for("half_width", wanted)
    with pytest.raises(ValueError, match="hours_each must be above 0"):
        table.budget_for("hours", 1.0)


def test_two_runs_are_the_best_two_and_few_are_told_apart_less_than_many_differ() -> None:
    """Of two runs the chance is that of their difference, less what would be told the wrong way."""
    pool, _ = simulated_pool()
    two = build_pool(pool.topics, {tag: _returned(pool, tag) for tag in pool.runs[:2]}, depth=10)
    whole = reached(two, 100, max_grade=3)
    for each in whole.lines:
        assert each.best_most <= each.decided_most + 0.02
        assert each.best_most >= each.decided_most - 0.05
    many = reached(pool, 100, max_grade=3).at(300)
    assert many.best_most < many.decided_most - 0.1


def _returned(pool: Pool, tag: str) -> RankedLists:
    """The documents that a run returns for each topic, the best first."""
    mine = np.flatnonzero(pool.run == pool.runs.index(tag))
    topic = pool.topic[pool.entry_pair[mine]]
    order = mine[np.lexsort((pool.rank[mine], topic))]
    starts = np.append(0, np.cumsum(np.bincount(topic, minlength=len(pool.topics))))
    return RankedLists(pool.topics, starts, pool.docno[pool.entry_pair[order]])


@pytest.mark.parametrize("runs", [1, 3])
def test_one_topic_or_one_run_has_a_table_and_ends_with_everything_judged(runs: int) -> None:
    names = np.array([f"d{number:02}".encode() for number in range(12)])
    ends = np.array([0, len(names)])
    lists = {f"run{each}": RankedLists(("t",), ends, np.roll(names, each)) for each in range(runs)}
    pool = build_pool(["t"], lists, depth=10)
    found = reached(pool, 4, max_grade=3, goal="absolute")
    last = found.lines[-1]
    assert (last.half_width, last.half_width_most) == (0.0, 0.0)
    assert last.budget <= len(pool)
    assert found.at(1e9) == last, "more than there is buys no more"
    assert last.best_most == 1.0 if runs == 1 else 0.9 < last.best_most <= 1.0


def test_one_run_has_no_differences_and_out_of_reach_is_never_decided() -> None:
    pool, _ = simulated_pool()
    about = {"goal": goals.single(pool.runs[0]), "measure": MEASURE, "max_grade": 3}
    prior = make_prior(pool, name="rank", **about)
    design = make_design(pool, prior=prior, budget=100, batch_size=100, floor=0.0, **about)
    found = reached_by_budget(pool, design, measure=MEASURE, prior=prior, max_grade=3)
    assert found.lines[-1].decided_most == 0.0
    assert found.lines[-1].best_most == 0.0
    assert found.lines[-1].half_width == 0.0, "of the run of the goal alone"
    assert 0.0 < PLENTIFUL < 1.0
