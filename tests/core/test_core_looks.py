"""Looking after every batch: what each look may spend, and that all of them hold at once."""

import math

import numpy as np
import pytest
from scipy import special

from estimation.core.arrays import FloatArray
from estimation.core.data.labels import LabelRows
from estimation.core.inference import multiplicity
from estimation.core.inference.looks import AT_THE_END, Look
from estimation.core.inference.multiplicity import holm, largest_deviates
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import Evaluation
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.research.trials.methods import prepare
from estimation.research.trials.reports import TrialReport, play_trials
from estimation.research.trials.settings import Setting
from tests.core.length import bounded
from tests.core.simulated_pools import simulated_pool

ALPHA = 0.05


def errors(planned: int) -> FloatArray:
    """The errors of all planned looks, as their confidences have them."""
    every = range(1, planned + 1)
    return np.array([1.0 - Look(each, planned).confidence(1.0 - ALPHA) for each in every])


# ------------------------------------------------------------------------------- what is spent


@pytest.mark.parametrize("planned", [2, 3, 5, 20, 300])
def test_the_looks_spend_what_there_is_and_more_the_later_they_are(planned: int) -> None:
    spent = errors(planned)
    assert spent.sum() == pytest.approx(ALPHA, rel=1e-9)
    assert math.fsum(Look(b, planned).share for b in range(1, planned + 1)) == pytest.approx(1.0)
    assert np.all(spent > 0.0)
    assert np.all(np.diff(spent)[:-1] > 0.0)
    assert spent[-1] >= spent[-2]
    assert spent[-1] == pytest.approx(ALPHA * AT_THE_END)


def test_by_hand() -> None:
    assert [Look(b, 4).share for b in (1, 2, 3, 4)] == pytest.approx([1 / 12, 1 / 6, 1 / 4, 1 / 2])


def test_the_only_look_is_at_the_confidence_itself() -> None:
    assert [Look(1, 1).confidence(each) for each in (0.95, 0.9, 0.1)] == [0.95, 0.9, 0.1]


@pytest.mark.parametrize(
    ("number", "planned", "message"),
    [
        (0, 3, "look must be a whole number between 1 and the 3 planned looks, not 0"),
        (4, 3, "look must be a whole number between 1 and the 3 planned looks, not 4"),
        (1, 0, "planned looks must be a whole number of at least 1, not 0"),
        (1.5, 3, "look must be a whole number between 1 and the 3 planned looks, not 1.5"),
    ],
)
def test_looks_that_were_not_planned(number: object, planned: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Look(number, planned)  # type: ignore[arg-type]


# ------------------------------------------------- all of them at once, for normal estimates


def ever_outside(spent: FloatArray, *, growing: bool, paths: int = 40_000) -> float:
    """Share of campaigns in which a normal estimate is ever further off than its interval is long.

    ``growing``: its error at a look is the mean of as many independent errors as there were looks,
    as of a sample that grows by equal batches. Else the looks have nothing to do with each other.
    """
    noise = np.random.default_rng(11).normal(size=(paths, len(spent)))
    if growing:
        noise = np.cumsum(noise, axis=1) / np.sqrt(np.arange(1, len(spent) + 1))
    return float(np.mean(np.any(np.abs(noise) > -special.ndtri(spent / 2.0), axis=1)))


def is_promised(share: float, *, paths: int = 40_000) -> bool:
    """At most the error, up to chance, and at least half of it: intervals are not endless."""
    chance = 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / paths)
    return ALPHA / 2.0 - chance <= share <= ALPHA + chance


@pytest.mark.parametrize("growing", [True, False], ids=["growing", "apart"])
@pytest.mark.parametrize("planned", [2, 5, 20])
def test_normal_estimates_hold_at_all_looks_at_once(planned: int, growing: bool) -> None:
    assert is_promised(ever_outside(errors(planned), growing=growing))


def test_looks_that_are_apart_spend_all_of_it() -> None:
    spent = errors(20)
    exactly = 1.0 - np.prod(1.0 - spent)
    assert ever_outside(spent, growing=False) == pytest.approx(exactly, abs=0.004)


@pytest.mark.parametrize("growing", [True, False], ids=["growing", "apart"])
@pytest.mark.parametrize("planned", [2, 5, 20])
def test_a_twin_that_spends_all_at_every_look_is_caught(planned: int, growing: bool) -> None:
    assert not is_promised(ever_outside(np.full(planned, ALPHA), growing=growing))


def test_a_twin_that_spends_next_to_nothing_is_caught() -> None:
    assert not is_promised(ever_outside(errors(20) / 10.0, growing=True))


# ------------------------------------------------------------------------- Poisson samples

TRIALS = bounded(80, 250)
# Three standard errors of a share of so many trials, less those of 250.
WIDER = 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA)) * (TRIALS**-0.5 - 250**-0.5)


@pytest.fixture(scope="module")
def watched() -> TrialReport:
    """Campaigns of 240 pairs, looked at after each of twelve batches."""
    pool, grades = simulated_pool()
    setting = Setting(
        pool,
        grades,
        3,
        goals.absolute(*pool.runs),
        parse_measure("P@20"),
        budget=240,
        looks=12,
        anytime=True,
    )
    player = prepare(setting, "poisson")
    return play_trials(setting, "poisson", player, trials=TRIALS, seed="watched")


@pytest.mark.slow
def test_every_run_is_covered_at_all_looks_at_once(watched: TrialReport) -> None:
    found = watched.anytime
    assert found is not None
    assert found.value_coverage is not None
    assert found.worst_run_coverage is not None
    assert 0.95 - WIDER <= found.value_coverage < 0.998
    assert found.worst_run_coverage >= 0.93 - WIDER
    assert found.rank_coverage is not None
    assert found.rank_coverage >= 0.95 - WIDER
    assert found.familywise_error is not None
    assert found.familywise_error <= 0.05 + WIDER
    assert found.true_verdicts is not None
    assert found.true_verdicts > 1.0


@pytest.mark.slow
def test_a_twin_for_one_look_is_caught(watched: TrialReport) -> None:
    found = watched.honesty
    assert found.value_coverage is not None
    assert found.value_coverage < 0.9 - WIDER


@pytest.mark.slow
def test_at_the_end_intervals_are_little_wider(watched: TrialReport) -> None:
    assert watched.anytime is not None
    wide, narrow = watched.anytime.median_half_width, watched.honesty.median_half_width
    assert wide is not None
    assert narrow is not None
    assert 1.05 < wide / narrow < 1.25


# ------------------------------------------------------------------- what an evaluation tells


def seen(
    *, batches: int, look: Look | None, budget: int = 600, of: int = 4, **more: object
) -> Evaluation:
    pool, grades = simulated_pool()
    goal, measure = goals.ranking(*pool.runs), parse_measure("P@10")
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=3)
    design = make_design(
        pool, goal=goal, measure=measure, prior=prior, budget=budget, batch_size=-(-budget // of)
    )
    sample = draw(pool, design, seed="looks")
    labels = LabelRows(sample.pair, grades[sample.pair])
    drawn = PairRound(design, sample)
    return evaluate(
        pool,
        drawn,
        labels=labels,
        measures=[measure],
        max_grade=3,
        batches=batches,
        look=look,
        **more,  # type: ignore[arg-type]
    )


def test_a_look_changes_what_is_certain_and_no_estimate() -> None:
    once, always = seen(batches=2, look=None), seen(batches=2, look=Look(2, 4))
    assert (once.look, always.look) == (None, Look(2, 4))
    assert always.confidence == once.confidence == 0.95
    assert always.caption.endswith("95 % intervals at all 4 looks, this is look 2")
    one, all_ = once.results[0], always.results[0]
    for name in ("value", "se", "covariance", "unknown"):
        assert np.array_equal(getattr(one.estimate, name), getattr(all_.estimate, name))
    assert np.all(all_.estimate.low <= one.estimate.low)
    assert np.all(all_.estimate.high > one.estimate.high)
    assert np.all((all_.ranking.margin > one.ranking.margin) | np.eye(6, dtype=bool))
    assert np.all(np.abs(all_.ranking.verdicts) <= np.abs(one.ranking.verdicts))
    assert np.any(all_.ranking.adjusted_p > one.ranking.adjusted_p)
    assert np.any(all_.ranking.verdicts)


def test_it_is_as_one_look_at_the_confidence_of_the_look() -> None:
    look = Look(2, 4)
    always = seen(batches=2, look=look).results[0]
    alone = seen(batches=2, look=None, confidence=look.confidence(0.95)).results[0]
    assert np.array_equal(always.estimate.low, alone.estimate.low)
    assert np.array_equal(always.estimate.high, alone.estimate.high)
    for name in ("verdicts", "rank_low", "rank_high", "margin"):
        assert np.array_equal(getattr(always.ranking, name), getattr(alone.ranking, name))


def test_adjusted_p_values_are_compared_with_five_percent_at_every_look() -> None:
    for number in (1, 2, 3, 4):
        ranking = seen(batches=number, look=Look(number, 4)).results[0].ranking
        assert np.all((ranking.adjusted_p <= 0.05) == (ranking.verdicts != 0))
        assert np.all(ranking.adjusted_p <= 1.0)


def test_a_round_of_one_batch_is_looked_at_once() -> None:
    once, always = (seen(batches=1, of=1, look=look).results[0] for look in (None, Look(1, 1)))
    for name in ("low", "high"):
        assert getattr(once.estimate, name).tolist() == getattr(always.estimate, name).tolist()
    for name in ("verdicts", "adjusted_p", "margin", "rank_low", "rank_high"):
        assert getattr(once.ranking, name).tolist() == getattr(always.ranking, name).tolist()


def test_a_census_at_the_last_look_is_certain() -> None:
    pool, _ = simulated_pool()
    last = seen(batches=2, budget=len(pool), look=Look(2, 2)).results[0]
    assert last.estimate.low == pytest.approx(last.estimate.value)
    assert last.estimate.high == pytest.approx(last.estimate.value)


def test_batches_that_are_empty_cost_their_look_and_nothing_else() -> None:
    """A batch of a pair, on average, that happens to bring none."""
    pool, grades = simulated_pool()
    goal, measure = goals.ranking(*pool.runs), parse_measure("P@10")
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=3)
    design = make_design(pool, goal=goal, measure=measure, prior=prior, budget=4, batch_size=1)
    samples = (draw(pool, design, seed=f"seed {number}") for number in range(200))
    sample = next(each for each in samples if 1 not in each.batch)
    drawn, labels = PairRound(design, sample), LabelRows(sample.pair, grades[sample.pair])
    for number in (1, 2, 4):
        found = evaluate(
            pool,
            drawn,
            labels=labels,
            measures=[measure],
            max_grade=3,
            batches=number,
            look=Look(number, design.batches),
        )
        told = found.results[0]
        assert np.all(np.isfinite(told.estimate.high))
        assert np.all(told.estimate.low <= told.estimate.value)
        assert not np.any(told.ranking.verdicts)


@pytest.mark.parametrize("kind", ["chernoff", "bernstein"])
def test_guaranteed_intervals_are_wider_in_the_same_way(kind: str) -> None:
    once = seen(batches=3, look=None, interval=kind).results[0]
    always = seen(batches=3, look=Look(3, 4), interval=kind).results[0]
    assert np.all(always.estimate.high >= once.estimate.high)
    assert np.any(always.estimate.high > once.estimate.high)
    assert np.all((always.ranking.adjusted_p <= 0.05) == (always.ranking.verdicts != 0))


# ------------------------------------------------------------------ p-values far in the tails


def of_runs(runs: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(runs)
    mixed = rng.normal(size=(runs, runs + 3))
    single = 2.0 * special.ndtr(-np.abs(rng.normal(size=(runs, runs)) * 3.0))
    upper = np.triu(single, 1)
    return upper + upper.T + np.eye(runs), mixed @ mixed.T


def test_where_vectors_cannot_resolve_the_error_it_is_holms() -> None:
    p_values, covariance = of_runs(30)
    for number, holms in ((20, False), (15, True), (1, True)):
        error = 1.0 - Look(number, 20).confidence(0.95)
        found = largest_deviates(p_values, covariance, error=error)
        assert np.array_equal(found, holm(p_values)) == holms


def test_small_errors_have_enough_vectors_beyond_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least 12.5 of them are beyond: of 100 runs, 404 would be too few for 2.5 %."""
    drawn: list[int] = []
    normal = multiplicity.normal_vectors

    def noted(number: int, runs: int) -> FloatArray:
        drawn.append(number)
        return normal(number, runs)

    monkeypatch.setattr(multiplicity, "normal_vectors", noted)
    p_values, covariance = of_runs(100)
    for error in (0.05, 0.025, 0.0125):
        largest_deviates(p_values, covariance, error=error)
    assert drawn == [404, 500, 1000]


@pytest.mark.slow
def test_family_wise_error_far_out_is_what_it_shall_be() -> None:
    """Normal values without any difference: at every error some trial has a verdict that seldom."""
    rng, runs, trials = np.random.default_rng(3), 8, 4000
    covariance = np.eye(runs) + 0.5
    values = rng.multivariate_normal(np.zeros(runs), covariance, size=trials)
    spread = np.sqrt(2.0)
    for error in (0.025, 0.0125, 0.005):
        false = 0
        for value in values:
            single = 2.0 * special.ndtr(-np.abs(np.subtract.outer(value, value)) / spread)
            adjusted = largest_deviates(single, covariance, error=error)
            false += bool(np.any(np.triu(adjusted, 1) + np.tril(np.ones((runs, runs))) <= error))
        chance = 3.0 * math.sqrt(error / trials)
        assert 0.4 * error - chance <= false / trials <= error + chance
