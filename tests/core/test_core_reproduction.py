"""Published tables come out, and come out wrong when something is wrong."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from estimation.core.data.pool import build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.planning.planning import expected_half_widths
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.priors import Prior
from estimation.research.published import experiments, numbers, reproduction, synthetic
from estimation.research.published.experiments import Collection, Experiment, Trials
from estimation.research.published.numbers import TABLES, Tolerance
from estimation.research.published.reproduction import Reproduced, compare, compare_trials
from estimation.research.published.synthetic import System


def named(collection: str) -> list:
    return [
        pytest.param(each, id=f"{each.key}-{each.collection}")
        for each in TABLES
        if each.collection == collection
    ]


def failures(rows: Iterable[Reproduced]) -> set[tuple[str, str, str]]:
    return {(row.table, row.row, row.column) for row in rows if row.verdict == "FAIL"}


def table(key: str, collection: str) -> numbers.PublishedTable:
    return reproduction.tables([key], collection)[0]


@pytest.fixture(scope="module")
def synth() -> Collection:
    return experiments.synth()


@pytest.fixture(scope="module")
def trec8_collection(trec8) -> Collection:
    grades = {}
    for line in (trec8.folder / "qrels.txt").read_text().splitlines():
        topic, _, docno, grade = line.split()
        grades[topic, docno] = int(grade)
    return experiments.trec8({tag: trec8.run(tag) for tag in trec8.tags}, grades)


# ------------------------------------------------------------------------------ the real tables


@pytest.mark.parametrize("each", named("SYNTH"))
def test_tables_of_synth(synth: Collection, each: numbers.PublishedTable) -> None:
    rows = compare(each, synth)
    assert len(rows) == sum(text != "-" for line in each.rows.values() for text in line)
    assert failures(rows) == set()


@pytest.mark.slow
@pytest.mark.parametrize("each", named("TREC-8"))
def test_tables_of_trec8(trec8_collection: Collection, each: numbers.PublishedTable) -> None:
    assert failures(compare(each, trec8_collection)) == set()


def test_noted_misses_are_misses(synth: Collection) -> None:
    noted = [each for each in TABLES if each.misses]
    assert [each.collection for each in noted] == ["SYNTH"]
    for each in noted:
        missed = {(row.row, row.column) for row in compare(each, synth) if row.verdict == "noted"}
        assert missed == set(each.misses)


def test_every_table_is_in_the_list_of_keys() -> None:
    assert set(numbers.KEYS) == {each.key for each in TABLES} | {numbers.TRIALS}
    for each in TABLES:
        assert all(len(line) == len(each.columns) for line in each.rows.values()), each.key


@pytest.mark.slow
def test_simulated_draws_of_synth_do_what_the_formulas_say(synth: Collection) -> None:
    assert failures(compare_trials(synth, trials=40, seed=7)) == set()


@pytest.mark.slow
def test_simulated_draws_of_trec8_do_what_the_formulas_say(trec8_collection: Collection) -> None:
    assert failures(compare_trials(trec8_collection, trials=40, seed=7)) == set()


@pytest.mark.slow
def test_sixty_five_runs_are_fully_judged(trec8_collection: Collection) -> None:
    assert len(trec8_collection.lists) == 65
    assert trec8_collection.inputs == 50


# -------------------------------------------------------------------------------- broken twins


def test_a_shift_by_five_is_not_the_published_shift_5() -> None:
    twin = experiments.synth(systems={**synthetic.SYSTEMS, "SHIFT-5": System("shift", 5)})
    assert failures(compare(table("A2", "SYNTH"), twin)) == {
        ("A2", "SHIFT-5", "U"),
        ("A2", "SHIFT-5", "TOP-5"),
    }


def test_without_eps_the_intervals_are_not_the_published_ones() -> None:
    found = failures(compare(table("B9", "SYNTH"), experiments.synth(eps=0.0)))
    assert {row for _, row, column in found if column == "Hoeffding"} == set(synthetic.SYSTEMS)
    assert {row for _, row, column in found if column == "CLT"}


@pytest.mark.parametrize("key", ["A5", "A6", "A7", "B6", "B8"])
def test_the_wrong_number_of_inputs_is_noticed(synth: Collection, key: str) -> None:
    """Five percent too many draws: a variance that is too small by 4.8 %."""
    each = table(key, "SYNTH")
    assert failures(compare(each, replace(synth, inputs=6300)))


def test_the_wrong_number_of_draws_is_noticed(synth: Collection) -> None:
    assert len(failures(compare(table("B9", "SYNTH"), replace(synth, budget=27_000)))) == 15


@pytest.mark.parametrize("key", ["B6", "B9", "exact"])
def test_the_wrong_prior_is_noticed(synth: Collection, key: str) -> None:
    def flat(pool, goal) -> Prior:
        return Prior("flat", np.full(len(pool), 2.0), np.full(len(pool), 4.0))

    assert failures(compare(table(key, "SYNTH"), replace(synth, prior=flat)))


def shifted(trials: Trials, by: float) -> Trials:
    return Trials(trials.value + by, trials.low + by, trials.high + by)


def stretched(trials: Trials, by: float) -> Trials:
    half = (trials.high - trials.low) / 2 * by
    return Trials(trials.value, trials.value - half, trials.value + half)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "column"),
    [
        (lambda trials: shifted(trials, 0.01 * trials.value.mean()), "mean"),
        (lambda trials: stretched(trials, 1.05), "half width"),
        (lambda trials: stretched(trials, 0.5), "coverage"),
        (lambda trials: replace(trials, value=trials.value.mean() + 0 * trials.value), "sd"),
    ],
)
def test_broken_draws_are_noticed(synth: Collection, change, column: str) -> None:
    twin = replace(synth, play=lambda *given: change(synth.play(*given)), singles=("OPT",))
    found = {name for _, _, name in failures(compare_trials(twin, trials=20, seed=7))}
    assert column in found


# -------------------------------------------------------- one topic of places for all the users


SMALL = {"OPT": System("shift", 0), "REV": System("reverse", 4), "SHIFT": System("shift", 2)}


@pytest.fixture
def small() -> Collection:
    return experiments.synth(systems=SMALL, users=5, items=8, eps=0.05, seed=3)


def whole(collection: Collection) -> tuple[Collection, np.ndarray]:
    """The same collection with a topic for every user; also the grades, users x places."""
    users, items = 5, 8
    population = synthetic.generate(np.random.default_rng(3), users=users, items=items)
    grid = np.indices((users, items)).reshape(2, -1)
    grades = population.grades(grid[0], grid[1]).reshape(users, items)
    topics = tuple(f"user {number}" for number in range(users))
    lists = {
        tag: RankedLists(topics, np.arange(users + 1) * items, np.tile(each.docnos, users))
        for tag, each in collection.lists.items()
    }

    def moments(pool) -> tuple[np.ndarray, np.ndarray]:
        grade = grades[pool.topic, pool.docno.astype(int)].astype(float)
        return grade, grade**2

    return replace(collection, lists=lists, moments=moments), grades


def test_moments_and_values_are_those_of_the_table_of_grades(small: Collection) -> None:
    _, grades = whole(small)
    assert (np.diff(grades, axis=1) <= 0).all()
    assert grades.max() >= 2
    setting = small.everything
    mean, square = setting.moments
    assert mean == pytest.approx(grades.mean(axis=0), abs=1e-12)
    assert square == pytest.approx((grades**2).mean(axis=0), abs=1e-12)
    for tag, system in SMALL.items():
        weights = 1 / np.log(1 + system.ranks(8))
        assert small.input_values(tag) == pytest.approx(grades @ weights, abs=1e-12)
        value = setting.values[setting.pool.run_index(tag)]
        assert value == pytest.approx((grades @ weights).mean(), abs=1e-12)


@pytest.mark.parametrize("key", ["A5", "A6", "A7", "B6", "B8", "B9", "exact"])
def test_places_give_the_same_variances_as_users_times_places(small: Collection, key: str) -> None:
    """Also where Q follows each utility: there are users with different utilities at a place."""
    measure = reproduction._MEASURED[key]
    reduced, complete = measure(small), measure(whole(small)[0])
    assert reduced == pytest.approx(complete, rel=1e-6)
    twin = replace(small, moments=lambda pool: (small.moments(pool)[0], small.moments(pool)[0]))
    if key == "A5":
        assert measure(twin) != pytest.approx(complete, rel=1e-3)


def test_variances_are_those_of_one_draw_enumerated(small: Collection) -> None:
    """The analytic standard deviation against all outcomes of one draw."""
    complete, grades = whole(small)
    setting = Experiment(complete, ("OPT",))
    goal = goals.single("OPT")
    design = setting.design(goal, setting.prior(goal), draws=25, eps=0.05)
    weights = setting.pool.weights(complete.measure).toarray()[:, 0]
    z = weights * grades[setting.pool.topic, setting.pool.docno.astype(int)] / design.size
    mean = (design.size * z).sum()
    variance = (design.size * (z - mean) ** 2).sum() / 25
    assert mean == pytest.approx(setting.values[0], rel=1e-12)
    assert setting.sd(design) ** 2 == pytest.approx(variance, rel=1e-9)


def test_systems_permute() -> None:
    assert System("shift", 2).ranks(5).tolist() == [3, 4, 5, 1, 2]
    assert System("reverse", 3).ranks(5).tolist() == [3, 2, 1, 4, 5]
    assert synthetic.ranked_lists(System("shift", 2), items=5).docnos.tolist() == [
        b"000003", b"000004", b"000000", b"000001", b"000002"
    ]  # fmt: skip
    with pytest.raises(ValueError, match="between 0 and 5, not 6"):
        System("shift", 6).ranks(5)


def test_grades_have_the_papers_shares() -> None:
    population = synthetic.generate(np.random.default_rng(1))
    counts = -np.diff(population.at_least, axis=1, prepend=2000, append=0).sum(axis=0)
    shares = np.array(synthetic.GRADE_SHARES)
    number = 6000 * 2000
    z = (counts / number - shares) / np.sqrt(shares * (1 - shares) / number)
    assert np.abs(z).max() < 4
    other = (counts / number - shares[[1, 0, 2, 3, 4]]) / np.sqrt(shares * (1 - shares) / number)
    assert np.abs(other).max() > 100


# ---------------------------------------------------------------------- tolerances, preparation


def test_tolerances() -> None:
    assert Tolerance(0.04).accepted("2.50") == pytest.approx((2.4, 2.6))
    assert Tolerance(digit=True).accepted("2.50") == pytest.approx((2.495, 2.505))
    assert Tolerance(0.04, digit=True).accepted("0.09") == pytest.approx((0.085, 0.095))
    assert Tolerance(0.04, digit=True).accepted("38.29")[1] == pytest.approx(38.29 * 1.04)
    low, high = Tolerance(trials=100).accepted("1.33")
    assert not low <= 1.7325 <= high
    assert low <= 1.70 <= high


@pytest.mark.parametrize("trials", [2, 25, 100])
def test_ranges_of_trials(trials: int) -> None:
    chi = np.sqrt(stats.chi2.ppf([0.0005, 0.9995], trials - 1) / (trials - 1))
    assert numbers.spread_factors(trials) == pytest.approx(chi, rel=1e-9)
    binomial = stats.binom.ppf([0.0005, 0.9995], trials, 0.95) / trials
    assert numbers.coverage_range(trials, confidence=0.95) == pytest.approx(binomial)
    low, high = numbers.mean_range(10.0, sd=2.0, trials=trials)
    assert stats.norm.cdf(high, 10.0, 2.0 / np.sqrt(trials)) == pytest.approx(0.9995)
    assert low + high == pytest.approx(20.0)


def test_one_trial_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2, not 1"):
        numbers.spread_factors(1)


def test_ratio_and_verdict() -> None:
    row = Reproduced("A2", "SYNTH", "OPT", "U", "published", 0.0, 0.0, 0.0, 0.0)
    assert (row.ratio, row.verdict) == (1.0, "pass")
    wrong = replace(row, measured=0.1)
    assert (wrong.ratio, wrong.verdict) == (float("inf"), "FAIL")
    assert replace(wrong, note="known").verdict == "noted"


def test_a_table_needs_its_own_collection(synth: Collection) -> None:
    with pytest.raises(ValueError, match="about TREC-8, not SYNTH"):
        compare(table("A2", "TREC-8"), synth)


def test_only_fully_judged_runs_are_kept(ranked) -> None:
    runs = {
        "good": ranked({"t1": "abc", "t2": "xyz"}),
        "unjudged": ranked({"t1": "aq", "t2": "xy"}),
        "short": ranked({"t1": "a", "t2": "xy"}),
        "partial": ranked({"t1": "ab"}),
        "unjudged below": ranked({"t2": "yxq", "t1": "baq"}),
    }
    grades = {("t1", "a"): 1, ("t1", "b"): 0, ("t2", "x"): 0, ("t2", "y"): 1}
    kept = experiments.fully_judged(runs, grades, topics=("t1", "t2"), depth=2)
    assert list(kept) == ["good", "unjudged below"]
    assert kept["unjudged below"].docnos.tolist() == [b"b", b"a", b"y", b"x"]
    assert kept["good"].indptr.tolist() == [0, 2, 4]


def test_a_missing_run_is_named(ranked) -> None:
    with pytest.raises(experiments.ReproductionError, match="mds08a3"):
        experiments.trec8({"other": ranked({"t1": "ab"})}, {("t1", "a"): 1}, depth=1)


@pytest.mark.slow
def test_the_library_alone_gives_a_published_number(trec8_collection: Collection) -> None:
    """SQRT on TREC-8 with plain calls, beside the machinery of the tables."""
    lists = trec8_collection.lists
    pool = build_pool(next(iter(lists.values())).topics, lists, depth=100)
    goal = goals.absolute(*pool.runs)
    design = make_design(
        pool,
        goal=goal,
        measure=trec8_collection.measure,
        prior=trec8_collection.prior(pool, goal),
        budget=50,
        batch_size=50,
        method="iid",
    )
    grade = np.maximum(trec8_collection.moments(pool)[0], 1e-12)
    found = expected_half_widths(
        pool,
        design,
        measure=trec8_collection.measure,
        prior=Prior("truth", grade, grade),
        confidence=0.001,  # so narrow that no half width is cut at the largest value
    )
    assert np.mean((found.half_width / stats.norm.ppf(0.5005)) ** 2) == pytest.approx(
        39.5, abs=0.05
    )
