"""Is what simulated trials tell about all runs true? Exactly, on samples that can be counted."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values
from estimation.research.trials import honesty, reports
from estimation.research.trials.honesty import (
    Checked,
    Claims,
    Honesty,
    Order,
    Standings,
    Truth,
    check,
    ranks_hold,
)
from estimation.research.trials.methods import METHODS, Outcome, Player, prepare
from estimation.research.trials.reports import TrialReport, play_trials
from estimation.research.trials.settings import Setting, TrialError

# ------------------------------------------------------------------- every sample of three pairs

HALF_WIDTHS = np.array([0.25, 0.5, 1.0])


@pytest.fixture
def counted(ranked) -> Setting:
    """P@2 of a, which returns p and q, of b: r and s, and of c: p and r; only s is useless.

    So a and c are worth 1 and are tied, and b is worth 1/2.
    """
    runs = {"a": ranked({"t": "pq"}), "b": ranked({"t": "rs"}), "c": ranked({"t": "pr"})}
    pool = build_pool(["t"], runs, depth=2)
    grades, goal = np.array([1, 1, 1, 0]), goals.absolute("a", "b", "c")
    return Setting(pool, grades, 1, goal, parse_measure("P@2"), budget=2)


def told(p: int, q: int, r: int) -> Claims:
    """What a bold method tells when each pair is judged with probability 1/2.

    Whoever leads by 1 is surely better, and a value of 0 is withheld.
    """
    value = np.array([p + q, r, p + r], dtype=np.float64)
    return Claims(value - HALF_WIDTHS, value + HALF_WIDTHS, value > 0.0, leads(value))


def leads(value: np.ndarray) -> Standings:
    ahead = np.subtract.outer(value, value)
    verdicts = np.where(np.abs(ahead) >= 1.0, np.sign(ahead), 0).astype(np.int8)
    return standings(verdicts)


def standings(verdicts: Sequence[Sequence[int]] | np.ndarray) -> Standings:
    given = np.asarray(verdicts, dtype=np.int8)
    better, worse = (np.count_nonzero(given == sign, axis=1) for sign in (-1, 1))
    return Standings(given, 1 + better, len(given) - worse)


def every_sample(setting: Setting, *, looks: int) -> Honesty:
    """The honesty of `told` over all samples, looked at again after another sample, or not."""
    samples = list(itertools.product((0, 1), repeat=3))
    trials: Iterator[Outcome] = (
        Outcome(setting.truth(), 2, None, tuple(told(*each) for each in seen))
        for seen in itertools.product(samples, repeat=looks)
    )
    player: Player = lambda seed: next(trials)  # noqa: E731
    chosen = replace(setting, looks=looks)
    return play_trials(chosen, "bold", player, trials=8**looks, seed="").honesty


ONCE = Honesty(
    worst_run_coverage=4 / 6,
    value_coverage=14 / 16,
    coverage_error=(8 / 7 * 1.375) ** 0.5 / 16,
    withheld=8 / 24,
    worst_run="a",
    median_half_width=0.5,
    familywise_error=4 / 8,
    reversed_verdicts=1 / 8,
    rank_coverage=4 / 8,
    true_verdicts=8 / 8,
)
TWICE = replace(
    ONCE,
    worst_run_coverage=32 / 60,
    value_coverage=140 / 168,
    coverage_error=(64 / 63 * 46 / 3) ** 0.5 / 168,
    familywise_error=48 / 64,
    reversed_verdicts=15 / 64,
    rank_coverage=16 / 64,
)


def is_as(found: Honesty, expected: Honesty) -> bool:
    got, wanted = asdict(found), asdict(expected)
    return got.pop("worst_run") == wanted.pop("worst_run") and got == pytest.approx(wanted)


def test_every_sample_together_gives_what_can_be_counted(counted: Setting) -> None:
    """By hand. The only reversed verdict is b before a, when r alone is judged; q alone, r alone,
    p with q and p with r part the tied a and c."""
    assert counted.truth().tolist() == [1.0, 0.5, 1.0]
    assert is_as(every_sample(counted, looks=1), ONCE)


def test_what_is_false_at_any_of_two_looks_is_false(counted: Setting) -> None:
    """Each look is right half the time, so that both are a quarter of it. How much is told, and
    withheld, is that of the second look."""
    assert is_as(every_sample(counted, looks=2), TWICE)


def order_by(any_false: Callable, true: Callable) -> Callable:
    """`honesty._order` that calls verdicts false, and true, in its own way."""

    def broken(looks: Sequence[Standings], truth: Truth) -> Order:
        right = honesty.__dict__["_rightly"](looks, truth)
        said = np.stack([each.verdicts for each in looks])
        return replace(
            right,
            any_false=bool(np.any(any_false(said, truth.order))),
            true_verdicts=int(np.count_nonzero(true(said[-1], truth.order))) // 2,
        )

    return broken


def is_reversed(said: np.ndarray, so: np.ndarray) -> np.ndarray:
    return said * so == -1


def is_false(said: np.ndarray, so: np.ndarray) -> np.ndarray:
    return (said != 0) & (said != so)


def is_true(said: np.ndarray, so: np.ndarray) -> np.ndarray:
    return (said != 0) & (said == so)


def is_not_reversed(said: np.ndarray, so: np.ndarray) -> np.ndarray:
    return (said != 0) & (said != -so)


def averaged(*given: object) -> Honesty:
    found = honesty.__dict__["_rightly"](*given)
    return replace(found, worst_run_coverage=found.value_coverage)


def at_the_last_look(looks: Sequence[Claims], truth: Truth) -> Checked:
    return check(looks[-1:], truth)


def without_ties(value: np.ndarray, *, lower_is_better: bool = False) -> Truth:
    """Rounding, made up by a perturbation, is taken for a difference."""
    noisy = value * (1.0 + 1e-15 * np.arange(len(value)))
    return Truth(value, np.sign(np.subtract.outer(noisy, noisy)).astype(np.int8))


@pytest.mark.parametrize(
    ("where", "name", "broken", "wrong"),
    [
        (honesty, "_order", order_by(is_reversed, is_true), "familywise_error"),
        (honesty, "_order", order_by(is_false, is_not_reversed), "true_verdicts"),
        (honesty, "_of_values", averaged, "worst_run_coverage"),
        (reports, "check", at_the_last_look, "familywise_error"),
        (Truth, "of", without_ties, "reversed_verdicts"),
    ],
    ids=["only a wrong sign is false", "ties are true", "the average run", "the last look",
         "rounding is a difference"],
)  # fmt: skip
def test_a_broken_count_is_noticed(
    counted: Setting, monkeypatch, where: object, name: str, broken: Callable, wrong: str
) -> None:
    monkeypatch.setattr(honesty, "_rightly", getattr(where, name), raising=False)
    monkeypatch.setattr(where, name, broken)
    found = every_sample(counted, looks=2)
    assert not is_as(found, TWICE)
    assert getattr(found, wrong) != pytest.approx(getattr(TWICE, wrong))


# ------------------------------------------------------------------------------------------ order


def test_ties_of_the_truth_are_differences_of_rounding_size() -> None:
    value = np.array([2.0, 1.0, 1.0 + 1e-13, 1.0 + 1e-11])
    assert Truth.of(value).order.tolist() == [
        [0, 1, 1, 1],
        [-1, 0, 0, -1],
        [-1, 0, 0, -1],
        [-1, 1, 1, 0],
    ]
    assert np.array_equal(Truth.of(value, lower_is_better=True).order, -Truth.of(value).order)


def test_tied_runs_share_the_ranks_that_they_take() -> None:
    """x is best, y and z are tied, w is worst: both y and z have the ranks 2 and 3."""
    truth = Truth.of(np.array([3.0, 2.0, 2.0, 1.0]))
    wide = Standings(
        np.zeros((4, 4), dtype=np.int8), np.array([1, 2, 2, 4]), np.array([1, 3, 3, 4])
    )
    assert ranks_hold(wide, truth)
    for narrow in ([1, 3, 2, 4], [2, 2, 2, 4]):
        assert not ranks_hold(replace(wide, rank_low=np.array(narrow)), truth)
    for narrow in ([1, 2, 3, 4], [1, 3, 3, 3]):
        assert not ranks_hold(replace(wide, rank_high=np.array(narrow)), truth)


@pytest.mark.slow
def test_ranks_hold_whenever_no_verdict_is_false() -> None:
    """Over all orders of four runs and all sets of verdicts; the other way round is not so."""
    more = 0
    for levels in itertools.combinations_with_replacement((1.0, 2.0, 3.0), 4):
        truth = Truth.of(np.array(levels))
        for above in itertools.product((-1, 0, 1), repeat=6):
            verdicts = np.zeros((4, 4), dtype=np.int8)
            verdicts[np.triu_indices(4, k=1)] = above
            verdicts -= verdicts.T
            order = honesty.__dict__["_order"]([standings(verdicts)], truth)
            assert order.ranks_hold or order.any_false
            assert order.any_false or not order.any_reversed
            more += order.ranks_hold and order.any_false
    assert more > 0


@pytest.fixture
def predicted() -> Pool:
    """Two runs predict the grades of six documents: good is off by 0.1, bad by 1."""
    docnos = np.array([b"a", b"b", b"c", b"d", b"e", b"f"])
    runs = {
        "bad": RankedLists(("t",), np.array([0, 6]), docnos, np.array([1.0, 0, 1, 0, 1, 0])),
        "good": RankedLists(("t",), np.array([0, 6]), docnos, np.array([0.1, 1.1] * 3)),
    }
    return build_pool(["t"], runs, depth=6, scores=True)


def all_judged(pool: Pool, measure: str, grades: np.ndarray) -> MeasureResult:
    parsed, goal = parse_measure(measure), goals.ranking(*pool.runs)
    prior = make_prior(pool, name="constant", goal=goal, measure=parsed, max_grade=1)
    number = len(pool)
    design = make_design(
        pool, goal=goal, measure=parsed, prior=prior, budget=number, batch_size=number, max_grade=1
    )
    sample = draw(pool, design, seed="s")
    labels = LabelRows(sample.pair, grades[sample.pair])
    found = evaluate(pool, PairRound(design, sample), labels=labels, measures=[parsed], max_grade=1)
    return found.results[0]


def test_where_small_values_are_good_better_means_smaller(predicted: Pool) -> None:
    """With the twin that takes the larger error for the better run."""
    measure, grades = parse_measure("MAE"), np.array([0, 1, 0, 1, 0, 1])
    result, truth = (
        all_judged(predicted, "MAE", grades),
        true_values(predicted, grades=grades, measure=measure),
    )
    assert truth == pytest.approx([1.0, 0.1])
    lower = measure.lower_is_better
    found = check([Claims.of(result)], Truth.of(truth, lower_is_better=lower)).order
    assert found == Order(any_false=False, any_reversed=False, ranks_hold=True, true_verdicts=1)
    twin = check([Claims.of(result)], Truth.of(truth)).order
    assert twin == Order(any_false=True, any_reversed=True, ranks_hold=False, true_verdicts=0)


def test_claims_are_what_is_shown(predicted: Pool) -> None:
    """By the primary estimator; what is unknown is withheld."""
    result = all_judged(predicted, "MAE", np.array([0, 1, 0, 1, 0, 1]))
    claims, shown = Claims.of(result), result.estimate
    assert claims.low is shown.low
    assert claims.high is shown.high
    assert claims.shown.tolist() == [True, True]
    assert claims.standings is not None
    assert claims.standings.verdicts is result.ranking.verdicts
    assert claims.standings.rank_low is result.ranking.rank_low
    assert claims.standings.rank_high is result.ranking.rank_high
    unknown = replace(shown, unknown=np.array([0, 2], dtype=np.int8))
    doubted = replace(result, estimators={result.primary: unknown})
    assert Claims.of(doubted).shown.tolist() == [True, False]


# ----------------------------------------------------------------------- withheld, and nothing


def honest(trials: Sequence[Sequence[Claims]], value: Sequence[float]) -> Honesty:
    truth = Truth.of(np.array(value))
    return honesty.honesty([check(each, truth) for each in trials], ("a", "b"))


def values_only(low: Sequence[float], high: Sequence[float], *shown: bool) -> Claims:
    return Claims(np.array(low), np.array(high), np.array(shown))


def test_a_run_counts_in_the_trials_in_which_its_value_was_shown() -> None:
    """a: shown once and missed; b: shown three times and covered twice, withheld once."""
    missed, covered, nothing = (0.0, 0.5), (0.5, 1.5), (0.0, 0.0)
    trials = [
        [values_only((missed[0], covered[0]), (missed[1], covered[1]), True, True)],
        [values_only((missed[0], covered[0]), (missed[1], covered[1]), False, True)],
        [values_only((covered[0], missed[0]), (covered[1], missed[1]), False, True)],
        [values_only(nothing, nothing, False, False)],
    ]
    found = honest(trials, [1.0, 1.0])
    assert found == Honesty(
        worst_run_coverage=0.0, value_coverage=2 / 4, coverage_error=(4 / 3 * 0.5) ** 0.5 / 4,
        withheld=4 / 8, worst_run="a", median_half_width=0.375,
    )  # fmt: skip
    only_b = honest(trials[1:], [1.0, 1.0])
    assert (only_b.worst_run, only_b.worst_run_coverage) == ("b", 0.5)


def test_runs_that_err_together_tell_no_more_than_one() -> None:
    """Half of the trials miss both runs; who counts intervals is told of half the variance."""
    hit, miss = (values_only((each, each), (1.5, 3.0), True, True) for each in (1.0, 2.0))
    found = honest([[hit], [miss]] * 10, [1.2, 1.2])
    assert found.coverage_error == pytest.approx((0.5 * 0.5 / 19) ** 0.5)
    alone = honest([[hit]], [1.2, 1.2])
    assert (alone.value_coverage, alone.coverage_error) == (1.0, None)


def test_values_that_are_never_shown_are_neither_right_nor_wrong() -> None:
    nothing = [[values_only((0.0, 0.0), (0.0, 0.0), False, False)]]
    assert honest(nothing, [1.0, 1.0]) == Honesty(withheld=1.0)
    before = [[values_only((0.5, 0.0), (1.5, 0.5), True, True), *nothing[0]]]
    assert honest(before, [1.0, 1.0]) == Honesty(
        worst_run_coverage=0.0, value_coverage=0.5, withheld=1.0, worst_run="b"
    )


def test_an_interval_of_no_length_is_met_up_to_rounding() -> None:
    exact = [[values_only((0.3, 1e3), (0.3, 1e3), True, True)]]
    assert honest(exact, [0.1 + 0.2, 1e3]).value_coverage == 1.0
    assert honest(exact, [0.3 + 1e-8, 1e3]).value_coverage == 0.5


def test_one_trial_without_intervals_or_verdicts_leaves_none() -> None:
    truth = Truth.of(np.array([2.0, 1.0]))
    bare = values_only((0.0, 0.0), (3.0, 3.0), True, True)
    full = replace(bare, standings=standings([[0, 1], [-1, 0]]))
    both = [check([full], truth), check([bare], truth)]
    assert honesty.honesty([both[0], None], ("a", "b")) == Honesty()
    mixed = honesty.honesty(both, ("a", "b"))
    assert (mixed.value_coverage, mixed.familywise_error) == (1.0, None)
    assert (mixed.rank_coverage, mixed.true_verdicts) == (None, None)
    assert honesty.honesty(both[:1], ("a", "b")).true_verdicts == 1.0


# ------------------------------------------------------------------------------- whole methods

LETTERS = "abcdefghijklmnopqrst"
TAGS = ("r0", "r1", "r2", "r3")


@pytest.fixture
def setting(ranked) -> Setting:
    """Six topics, four runs with ten of twenty documents, grades 0 to 2."""
    rng = np.random.default_rng(8)
    runs = {
        tag: ranked({f"t{t}": "".join(rng.permutation(list(LETTERS))[:10]) for t in range(6)})
        for tag in TAGS
    }
    pool = build_pool([f"t{t}" for t in range(6)], runs, depth=10)
    grades = rng.choice(3, size=len(pool), p=[0.5, 0.3, 0.2])
    goal, measure = goals.pair("r2", "r0"), parse_measure("DCG@10")
    predicted = np.clip(grades + rng.uniform(-0.5, 0.5, len(grades)), 0, 2)
    return Setting(pool, grades, 2, goal, measure, budget=60, predicted=predicted)


def report(setting: Setting, method: str, trials: int = 4) -> TrialReport:
    return play_trials(setting, method, prepare(setting, method), trials=trials, seed="7")


def of_the_last_look(found: TrialReport) -> dict[str, object]:
    same = ("withheld", "median_half_width", "true_verdicts")
    of_all = {name: getattr(found.honesty, name) for name in same}
    return {**asdict(found), "honesty": of_all, "looks": None, "seconds_per_trial": None}


BATCHED = [name for name, method in METHODS.items() if method.has_batches]


@pytest.mark.parametrize("method", BATCHED)
def test_the_last_of_several_looks_is_the_only_look(setting: Setting, method: str) -> None:
    """Batches change nothing about the whole sample; earlier looks can only bring mistakes."""
    measure = parse_measure("DCG@10")
    chosen = replace(setting, measure=measure, budget=len(setting.pool))
    once, twice = (report(replace(chosen, looks=looks), method) for looks in (1, 2))
    assert twice.looks == 2
    assert of_the_last_look(twice) == of_the_last_look(once)
    assert twice.honesty.value_coverage <= once.honesty.value_coverage
    assert twice.honesty.familywise_error >= once.honesty.familywise_error
    assert twice.honesty.rank_coverage <= once.honesty.rank_coverage


def test_looks_are_at_prefixes_of_the_batches(setting: Setting) -> None:
    """What `evaluate` says after each batch of a design that is cut into three."""
    chosen = replace(setting, looks=3)
    prior = make_prior(
        chosen.pool, name="rank", goal=chosen.goal, measure=chosen.measure, max_grade=2
    )
    design = make_design(
        chosen.pool, goal=chosen.goal, measure=chosen.measure, prior=prior, budget=60, batch_size=20
    )
    outcome, sample = prepare(chosen, "poisson")("7/0"), draw(chosen.pool, design, seed="7/0")
    assert len(outcome.looks) == 3
    for number, claims in enumerate(outcome.looks, start=1):
        found = evaluate(
            chosen.pool, PairRound(design, sample), labels=chosen.rows("7/0", sample.pair),
            measures=[chosen.measure], max_grade=2, batches=number,
        ).results[0]  # fmt: skip
        assert np.array_equal(claims.low, found.estimate.low)
        assert np.array_equal(claims.high, found.estimate.high)
        assert claims.standings is not None
        assert np.array_equal(claims.standings.verdicts, found.ranking.verdicts)
    assert not np.array_equal(outcome.looks[0].high, outcome.looks[2].high)


def test_looks_in_pairs_are_at_equal_shares_of_the_pairs(setting: Setting) -> None:
    chosen = replace(setting, unit="pairs", looks=3)
    player = prepare(chosen, "iid")
    once = prepare(replace(chosen, looks=1), "iid")
    assert len(player("7/0").looks) == 3
    for seed in ("7/0", "7/1"):
        assert np.array_equal(player(seed).value, once(seed).value)


@pytest.mark.parametrize("method", ["uniform", "stratified", "deep"])
def test_samples_without_verdicts_have_intervals_only(setting: Setting, method: str) -> None:
    found = report(setting, method).honesty
    assert 0.0 <= found.worst_run_coverage <= found.value_coverage <= 1.0
    assert found.withheld == 0.0
    assert found.worst_run in TAGS
    assert found.median_half_width > 0.0
    verdicts = ("familywise_error", "reversed_verdicts", "rank_coverage", "true_verdicts")
    assert [getattr(found, name) for name in verdicts] == [None] * 4


@pytest.mark.parametrize("method", ["top", "mtf", "mab"])
def test_methods_without_intervals_tell_nothing(setting: Setting, method: str) -> None:
    assert report(setting, method).honesty == Honesty()


@pytest.mark.parametrize("method", ["poisson", "iid", "active", "query"])
def test_it_is_about_all_runs_whatever_the_goal(setting: Setting, method: str) -> None:
    """With everything judged, or nearly so: of six differences, with a goal of one or none."""
    chosen = replace(setting, goal=goals.single("r1"), budget=len(setting.pool))
    found = report(chosen, method).honesty
    if method in ("poisson", "query"):
        assert (found.worst_run_coverage, found.value_coverage, found.worst_run) == (1.0, 1.0, "r0")
        assert (found.familywise_error, found.rank_coverage, found.true_verdicts) == (0.0, 1.0, 6.0)
    assert found.value_coverage is not None
    assert found.true_verdicts is not None


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize("method", [name for name in METHODS if name not in BATCHED])
def test_methods_without_batches_are_looked_at_once(setting: Setting, method: str) -> None:
    able = "poisson, priority, iid, per-query, adaptive, difference, query, active"
    message = f"looks must be 1 for the method {method}, which has no .*, not 2; these have: {able}"
    with pytest.raises(TrialError, match=message):
        prepare(replace(setting, looks=2), method)


@pytest.mark.parametrize(
    ("method", "looks", "message"),
    [
        ("poisson", 59, "looks must be fewer than 59: a budget of 60 cannot be cut into so many"),
        ("priority", 61, "looks must be fewer than 61: a budget of 60 cannot be cut into so many"),
        ("iid", 60, "at least 2 draws in the first batch"),
        ("per-query", 15, "looks must be fewer than 15: a budget of 60 cannot be cut"),
        ("query", 5, "batch size .* must be at least"),
        ("active", 5, "looks must be fewer than 5: a budget of 60 has 4 batches"),
    ],
)
def test_budgets_that_cannot_be_cut(
    setting: Setting, method: str, looks: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        prepare(replace(setting, looks=looks), method)


@pytest.mark.parametrize("looks", [0, 1.5])
def test_bad_looks(setting: Setting, looks: object) -> None:
    with pytest.raises(TrialError, match="looks must be a whole number of at least 1, not"):
        replace(setting, looks=looks)
