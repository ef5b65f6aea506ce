"""Simulated trials: exact reports, truth under noise, calibrated draws, no bias, seeds."""

from collections.abc import Iterator
from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy import stats

from estimation.core.arrays import FloatArray
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import PoolError
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.goals import Goal
from estimation.core.sampling.priors import make_prior
from estimation.research.trials.methods import (
    METHODS,
    Outcome,
    Player,
    Spread,
    _calibrated,
    methods_for,
    prepare,
)
from estimation.research.trials.reports import TrialReport, play_trials
from estimation.research.trials.settings import Assessors, Setting, TrialError
from tests.core.length import bounded
from tests.core.plain_trials import trial_values_alone

LETTERS = "abcdefghijklmnopqrst"
TAGS = ("r0", "r1", "r2", "r3")
EVERY_GOAL = [
    goals.single("r1"),
    goals.absolute(*TAGS),
    goals.pair("r2", "r0"),
    goals.baseline("r0", "r1", "r3", against="r2"),
    goals.ranking(*TAGS),
]


@pytest.fixture
def setting(ranked) -> Setting:
    """Four topics, four runs with ten of twenty documents, grades 0 to 2."""
    rng = np.random.default_rng(8)
    runs = {
        tag: ranked({f"t{t}": "".join(rng.permutation(list(LETTERS))[:10]) for t in range(4)})
        for tag in TAGS
    }
    pool = build_pool([f"t{t}" for t in range(4)], runs, depth=10)
    grades = rng.choice(3, size=len(pool), p=[0.5, 0.3, 0.2])
    goal, measure = goals.absolute(*TAGS), parse_measure("DCG@10")
    predicted = np.clip(grades + rng.uniform(-0.5, 0.5, len(grades)), 0, 2)
    return Setting(pool, grades, 2, goal, measure, budget=40, predicted=predicted)


def report(setting: Setting, method: str, trials: int = 3, seed: str = "7") -> TrialReport:
    return play_trials(setting, method, prepare(setting, method), trials=trials, seed=seed)


# --------------------------------------------------------------------------------- exact reports


def scripted(outcomes: list[Outcome]) -> Player:
    rows: Iterator[Outcome] = iter(outcomes)
    return lambda seed: next(rows)


def outcomes(truth: FloatArray) -> list[Outcome]:
    """Two trials whose errors are (1, 0, 0, -1) and (3, 0, 0, 1), with variances 1 and df 3."""
    errors = [np.array([1.0, 0, 0, -1.0]), np.array([3.0, 0, 0, 1.0])]
    return [
        Outcome(truth + error, judged, Spread.of(truth + error, np.eye(4), df=3.0))
        for error, judged in zip(errors, (10, 13), strict=True)
    ]


@pytest.mark.parametrize(
    ("goal", "rmse", "bias", "variances", "scale", "inside"),
    [
        (goals.single("r0"), 5, 4, [2], 1, 2 / 2),
        (goals.absolute(*TAGS), 12 / 8, 4 / 4, [2, 0, 0, 2], 1, 8 / 8),
        (goals.pair("r0", "r3"), 4, 4, [0], 2**0.5, 2 / 2),
        (goals.baseline("r3", against="r0"), 4, 4, [0], 2**0.5, 2 / 2),
        (goals.ranking(*TAGS), (2 + 6) / 8, 3 / 4, [0.5, 0.5, 0.5, 0.5], 0.75**0.5, 8 / 8),
    ],
)
def test_errors_are_those_of_what_the_goal_asks_for(
    setting: Setting,
    goal: Goal,
    rmse: float,
    bias: float,
    variances: list[float],
    scale: float,
    inside: float,
) -> None:
    """Squares of rmse and bias by hand; half widths are t(3) times the standard error."""
    chosen = replace(setting, goal=goal)
    found = play_trials(chosen, "made up", scripted(outcomes(chosen.truth())), trials=2, seed="")
    assert found.rmse == pytest.approx(np.sqrt(rmse), rel=1e-12)
    assert found.bias == pytest.approx(np.sqrt(bias), rel=1e-12)
    assert found.sd == pytest.approx(np.sqrt(np.mean(variances)), abs=1e-12)
    assert found.judged_pairs == 11.5
    assert found.coverage == inside
    if goal.kind not in ("single", "absolute"):  # theirs are cut at 0
        assert found.half_width == pytest.approx(stats.t.ppf(0.975, 3) * scale, rel=1e-9)
    assert (found.method, found.goal, found.measure) == ("made up", goal.kind, "DCG@10")
    assert (found.trials, found.budget, found.systems) == (2, 40, goal.all_runs)


def test_narrow_intervals_are_counted_as_misses(setting: Setting) -> None:
    narrow = [
        Outcome(each.value, 1, Spread.of(each.value, np.eye(4) / 1e6, df=3.0))
        for each in outcomes(setting.truth())
    ]
    found = play_trials(setting, "made up", scripted(narrow), trials=2, seed="")
    assert found.coverage == 4 / 8


def test_one_trial_without_an_interval_leaves_none(setting: Setting) -> None:
    first, second = outcomes(setting.truth())
    player = scripted([first, replace(second, spread=None)])
    found = play_trials(setting, "made up", player, trials=2, seed="")
    assert (found.coverage, found.half_width) == (None, None)
    assert Spread.of(setting.truth(), np.full((4, 4), np.inf), df=1.0) is None


def test_one_trial_has_no_sd_and_one_system_no_order(setting: Setting) -> None:
    found = report(replace(setting, goal=goals.single("r0")), "uniform", trials=1)
    assert (found.sd, found.kendall_tau) == (None, None)


# ----------------------------------------------------------------------------------------- truth


def census(setting: Setting, measure: str) -> Setting:
    return replace(setting, measure=parse_measure(measure), budget=len(setting.pool))


@pytest.mark.parametrize("goal", EVERY_GOAL, ids=lambda goal: goal.kind)
@pytest.mark.parametrize(
    "measure",
    ["P@3", "DCG(dcg='exp-ln')@10", "RBP(p=0.7)", "Mean(max=2)", "AP", "Rprec", "nDCG@5", "ERR@4"],
)
def test_when_everything_is_judged_no_method_errs(
    setting: Setting, measure: str, goal: Goal
) -> None:
    """Methods with replacement never judge everything, active sampling keeps its weights."""
    chosen = replace(census(setting, measure), goal=goal)
    able = [name for name, method in METHODS.items() if method.estimates(chosen.measure)]
    exact = [name for name in able if name not in ("iid", "per-query", "active")]
    assert exact
    for name in exact:
        found = report(chosen, name, trials=1)
        assert found.rmse < 1e-12, name
        assert found.kendall_tau in (None, pytest.approx(1.0)), name
        assert found.coverage in (None, 1.0), name


def test_the_truth_of_noisy_judgments_is_the_expected_utility(setting: Setting) -> None:
    """Gains 0, 1, 3 of the true grades 0, 1, 2; another grade with probability 0.2."""
    noisy = replace(
        setting, measure=parse_measure("Gain(gain='exp')@2"), assessors=Assessors(noise=0.2)
    )
    expected = np.array([0.1 * 1 + 0.1 * 3, 0.8 * 1 + 0.1 * 3, 0.8 * 3 + 0.1 * 1])
    pool, found = noisy.pool, noisy.truth()
    for run in range(4):
        mine = (pool.run == run) & (pool.rank <= 2)
        by_hand = expected[noisy.grades[pool.entry_pair[mine]]].sum() / 2 / 4
        assert found[run] == pytest.approx(by_hand, rel=1e-12)


def test_assessors_err_as_often_as_told(setting: Setting) -> None:
    pairs = np.arange(len(setting.pool))
    noisy = replace(setting, assessors=Assessors(labels=40, noise=0.3))
    given = noisy.judged("x", pairs)
    for grade in range(3):
        mine = given[:, setting.grades == grade].ravel()
        shares = np.bincount(mine, minlength=3) / mine.size
        wanted = np.where(np.arange(3) == grade, 0.7, 0.15)
        assert np.all(np.abs(shares - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / mine.size))
    assert not np.array_equal(given[0], given[1])
    assert np.array_equal(noisy.judged("x", pairs[5:9]), given[:, 5:9])
    assert not np.array_equal(noisy.judged("y", pairs), given)


def test_assessors_without_noise_tell_the_truth(setting: Setting) -> None:
    rows = replace(setting, assessors=Assessors(labels=2)).rows("x", np.array([4, 7]))
    assert rows.pair.tolist() == [4, 7, 4, 7]
    assert rows.grade.tolist() == setting.grades[[4, 7, 4, 7]].tolist()


# ----------------------------------------------------------------------------------- the methods

UNBIASED = (
    "poisson",
    "difference",
    "priority",
    "iid",
    "per-query",
    "active",
    "uniform",
    "stratified",
    "deep",
)


def largest_z(setting: Setting, method: str, *truths: FloatArray, trials: int) -> Iterator[float]:
    """How far the mean over the same trials is off several truths, in standard errors."""
    player = prepare(setting, method)
    with trial_values_alone():
        values = np.stack([player(f"z/{number}").value for number in range(trials)])
    error = values.std(axis=0, ddof=1) / np.sqrt(trials)
    for truth in truths:
        yield float(np.abs((values.mean(axis=0) - truth) / error).max())


@pytest.mark.slow
@pytest.mark.parametrize("method", UNBIASED)
def test_estimates_are_right_on_average(setting: Setting, method: str) -> None:
    """Also with noisy assessors, two per pair. Against the noiseless truth they are not."""
    noisy = replace(setting, assessors=Assessors(labels=2, noise=0.3))
    right, noiseless = largest_z(
        noisy, method, noisy.truth(), setting.truth(), trials=bounded(250, 400)
    )
    assert right < 4.5
    assert noiseless > 4.5


@pytest.mark.slow
def test_whole_topics_are_right_on_average_about_noisy_assessors(setting: Setting) -> None:
    """ERR of a topic is linear in the gain of each document, so a census has no bias."""
    noisy = replace(census(setting, "ERR@5"), assessors=Assessors(labels=2, noise=0.3))
    truths = noisy.truth(), census(setting, "ERR@5").truth()
    right, noiseless = largest_z(noisy, "query", *truths, trials=150)
    assert right < 4.0
    assert noiseless > 6.0


def values_of(setting: Setting, method: str, trials: int = 100) -> TrialReport:
    with trial_values_alone():
        return report(setting, method, trials)


@pytest.mark.slow
def test_good_predictions_help_and_misleading_ones_do_little_harm(setting: Setting) -> None:
    """The design is the same for both estimators, and bad for misleading predictions."""
    helped, plain = (values_of(setting, method) for method in ("difference", "poisson"))
    assert helped.rmse < 0.9 * plain.rmse
    assert helped.judged_pairs == plain.judged_pairs
    assert helped.bias < 4 * helped.sd / 10
    misled = replace(setting, predicted=2.0 - setting.grades)
    helped, plain = (values_of(misled, method) for method in ("difference", "poisson"))
    assert helped.rmse < 1.1 * plain.rmse
    assert helped.bias < 4 * helped.sd / 10


def test_unfounded_predictions_are_refused(setting: Setting) -> None:
    with pytest.raises(TrialError, match="predicted grades for the method difference"):
        prepare(replace(setting, predicted=None), "difference")


# ------------------------------------------------------------------------- guaranteed intervals

GUARANTEED = [
    ("iid", "hoeffding"),
    ("iid", "empirical-bernstein"),
    ("poisson", "bernstein"),
    ("poisson", "chernoff"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "kind"), GUARANTEED)
@pytest.mark.parametrize("goal", EVERY_GOAL, ids=lambda goal: goal.kind)
def test_guaranteed_intervals_are_wider_and_cover(
    setting: Setting, goal: Goal, method: str, kind: str
) -> None:
    usual = replace(setting, goal=goal)
    plain, found = (
        report(each, method, trials=8) for each in (usual, replace(usual, interval=kind))
    )
    assert (found.rmse, found.bias, found.kendall_tau) == (
        plain.rmse, plain.bias, plain.kendall_tau
    )  # fmt: skip
    assert found.half_width > plain.half_width
    assert found.coverage == 1.0


def test_limits_of_differences_are_the_sums_of_their_bounds(setting: Setting) -> None:
    """Against the mean of four runs: the three differences, over four, at a third of the error."""
    wide = replace(setting, goal=goals.ranking(*TAGS), interval="bernstein")
    outcome = prepare(wide, "poisson")("7/0")
    assert outcome.spread is not None
    bound = outcome.spread.differences
    assert bound is not None
    expected = bound.below(1.0 - 0.05 / 3.0).sum(axis=1) / 4.0
    found = report(wide, "poisson", trials=1)
    assert found.half_width == pytest.approx(expected.mean())
    pair = replace(setting, goal=goals.pair("r2", "r0"), interval="bernstein")
    assert report(pair, "poisson", trials=1).half_width == pytest.approx(
        prepare(pair, "poisson")("7/0").spread.differences.below(0.95)[2, 0]
    )


@pytest.mark.parametrize(
    ("method", "kind", "message"),
    [
        ("iid", "chernoff", "interval must be one of student, hoeffding, .* method iid, not 'cher"),
        ("poisson", "hoeffding", "one of student, bernstein, chernoff for the method poisson"),
        ("difference", "chernoff", "one of student for the method difference, not 'chernoff'"),
        ("top", "bernstein", "one of student for the method top, not 'bernstein'"),
    ],
)
def test_intervals_that_a_method_lacks_are_refused(
    setting: Setting, method: str, kind: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        prepare(replace(setting, interval=kind), method)


def test_methods_for_a_kind_of_intervals() -> None:
    dcg, average = parse_measure("DCG@10"), parse_measure("AP")
    assert methods_for(dcg, interval="hoeffding") == ("iid",)
    assert methods_for(dcg, interval="chernoff") == ("poisson",)
    assert methods_for(average, interval="chernoff") == ()


@pytest.mark.parametrize("method", ["top", "mtf", "mab"])
def test_unjudged_documents_cost_a_bias(setting: Setting, method: str) -> None:
    found = report(setting, method, trials=20)
    assert found.bias > 0.2
    assert (found.coverage, found.half_width) == (None, None)


def test_more_labels_average_noise_out(setting: Setting) -> None:
    everything = replace(setting, budget=len(setting.pool))
    one, many = (
        report(replace(everything, assessors=Assessors(labels, noise=0.4)), method, trials=60)
        for labels, method in ((1, "top"), (9, "top"))
    )
    assert one.rmse / many.rmse == pytest.approx(3.0, rel=0.25)
    twin = report(replace(everything, assessors=Assessors(1, noise=0.4)), "poisson", trials=60)
    assert twin.rmse == pytest.approx(one.rmse, rel=1e-9)  # the same labels, the same truth


@pytest.mark.parametrize("method", ["iid", "per-query"])
@pytest.mark.parametrize("pairs", [20, 47, 75])
def test_draws_are_calibrated_to_expected_pairs(setting: Setting, method: str, pairs: int) -> None:
    pool = setting.pool
    prior = make_prior(pool, name="rank", goal=setting.goal, measure=setting.measure, max_grade=2)
    design = make_design(
        pool, goal=setting.goal, measure=setting.measure, prior=prior, budget=8, batch_size=8,
        method=method,
    )  # fmt: skip
    found = _calibrated(design, pairs)
    strata = 4 if method == "per-query" else 1
    assert found.draws() == found.step() * strata

    def expected(step: float) -> float:
        return float((1.0 - (1.0 - design.size * strata) ** step).sum())

    errors = [abs(expected(found.step() + more) - pairs) for more in (-1, 0, 1)]
    assert min(errors) == errors[1]


@pytest.mark.slow
def test_pairs_cost_what_was_asked(setting: Setting) -> None:
    calibrated = values_of(replace(setting, unit="pairs"), "iid", trials=200)
    assert calibrated.judged_pairs == pytest.approx(40, abs=1.0)
    drawn = values_of(setting, "iid", trials=200)
    assert drawn.judged_pairs < 36
    assert calibrated.sd < drawn.sd


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report(setting: Setting) -> None:
    def facts(found: TrialReport) -> dict[str, object]:
        return {**asdict(found), "seconds_per_trial": None}

    first = {name: facts(report(setting, name)) for name in METHODS if name != "query"}
    again = {name: facts(report(setting, name)) for name in reversed(METHODS) if name != "query"}
    assert first == again
    random = [name for name in first if name != "top"]
    assert all(facts(report(setting, name, seed="8")) != first[name] for name in random)


def test_a_longer_series_begins_with_the_shorter(setting: Setting) -> None:
    seeds: list[str] = []
    player = prepare(setting, "iid")

    def watched(seed: str) -> Outcome:
        seeds.append(seed)
        return player(seed)

    steps: list[int] = []
    play_trials(
        setting, "iid", watched, trials=3, seed="s", after_each=lambda: steps.append(len(seeds))
    )
    assert seeds == ["s/0", "s/1", "s/2"]
    assert steps == [1, 2, 3]


# ----------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": 0}, r"budget must be .* between 1 and the 7\d pairs of the pool, not 0"),
        ({"budget": 81}, r"budget must be .* between 1 and the 7\d pairs of the pool, not 81"),
        ({"unit": "euros"}, "unit must be one of draws, pairs, not 'euros'"),
        ({"max_grade": 1}, r"grades must lie between 0 and 1, not 2 \(item \d+\)"),
        ({"max_grade": 0}, "max_grade must be a whole number between 1 and 50, not 0"),
        ({"grades": np.zeros(3, dtype=np.int64)}, "grades must hold one grade per pair"),
        ({"interval": "wide"}, "interval must be one of student, .*, chernoff, not 'wide'"),
        (
            {"measure": parse_measure("AP"), "interval": "chernoff"},
            "interval must be student for AP, not 'chernoff'",
        ),
    ],
)
def test_bad_settings(setting: Setting, change: dict[str, object], message: str) -> None:
    with pytest.raises(TrialError, match=message):
        replace(setting, **change)


def test_bad_arguments(setting: Setting) -> None:
    with pytest.raises(PoolError, match="no run 'r9'"):
        replace(setting, goal=goals.single("r9"))
    with pytest.raises(TrialError, match="labels must be a whole number of at least 1, not 0"):
        Assessors(labels=0)
    with pytest.raises(ValueError, match="noise must lie between 0 and 1"):
        Assessors(noise=1.5)
    with pytest.raises(TrialError, match=r"method must be one of poisson, .*mab, not 'magic'"):
        prepare(setting, "magic")
    with pytest.raises(TrialError, match="trials must be a whole number of at least 1, not 0"):
        report(setting, "iid", trials=0)
    with pytest.raises(TrialError, match=r"iid reaches .* pairs in 1000000 draws, not 7"):
        prepare(census(replace(setting, goal=goals.pair("r0", "r1"), unit="pairs"), "P@3"), "iid")


DRAWN = "poisson, priority, iid, per-query, adaptive, query"


@pytest.mark.parametrize(
    ("measure", "method", "able"),
    [
        ("ERR@5", "iid", "query"),
        ("AP@5", "active", f"{DRAWN}, uniform"),
        ("nDCG@5", "uniform", f"{DRAWN}, top, deep, mtf, mab"),
        ("nDCG", "stratified", f"{DRAWN}, top, deep, mtf, mab"),
        ("AP", "difference", f"{DRAWN}, active, uniform"),
        ("Mean", "query", "poisson, priority, iid, per-query, adaptive, difference, active"),
    ],
)
def test_a_method_without_an_estimator(
    setting: Setting, measure: str, method: str, able: str
) -> None:
    message = f"method {method} does not estimate .*; these do: {able}"
    with pytest.raises(TrialError, match=message):
        prepare(replace(setting, measure=parse_measure(measure)), method)


def test_errors_of_scores_need_scores(setting: Setting) -> None:
    with pytest.raises(MeasureError, match="MAE needs the scores of the runs"):
        prepare(replace(setting, measure=parse_measure("MAE"), prior="constant"), "iid")


@pytest.mark.parametrize("method", ["uniform", "stratified", "active", "per-query", "query"])
def test_budgets_that_leave_out_topics_are_refused_before_the_first_trial(
    setting: Setting, method: str
) -> None:
    with pytest.raises(ValueError, match=r"(budget|topic)"):
        prepare(replace(setting, budget=3), method)


def test_a_sample_may_be_empty(setting: Setting) -> None:
    """At one expected pair a third of the Poisson samples are."""
    found = report(replace(setting, budget=1), "poisson", trials=60)
    assert 0.5 < found.judged_pairs < 1.5
    assert found.kendall_tau is not None
    assert -1.0 < found.kendall_tau < 1.0


def test_runs_that_are_not_of_the_goal_do_not_count(setting: Setting) -> None:
    """Errors are averaged over the goal's runs only, in a pool of more."""
    pool: Pool = setting.pool
    alone = replace(setting, goal=goals.single("r3"), budget=len(pool))
    found = report(alone, "top", trials=1)
    assert found.systems == ("r3",)
    assert found.rmse < 1e-12
    most = report(replace(alone, budget=10), "top", trials=1)
    truth, value = alone.truth()[3], prepare(replace(alone, budget=10), "top")("").value[3]
    assert most.rmse == pytest.approx(abs(value - truth), rel=1e-12)
