"""Adaptive rounds of errors of scores: unbiased over all samples, near where models are right."""

import io
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.scope import Scope
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.adaptive import grades as model
from estimation.core.rounds.adaptive import trust
from estimation.core.rounds.adaptive.by_run import ByRun
from estimation.core.rounds.adaptive.past import Past
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.sampled import planned_alone, weighed
from estimation.core.rounds.adaptive.sampling import reached
from estimation.core.rounds.adaptive.scoring import Scores, fit_scores
from estimation.core.rounds.adaptive.state import AdaptiveError, AdaptivePlan, AdaptiveState, walk
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import DrawnRound, MeasureResult
from estimation.core.rounds.rounds import draw_round
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values
from tests.core.length import bounded
from tests.core.test_core_adaptive import begun, every_round
from tests.core.test_core_preferences import RUNS, TOPICS, scored

EXACT = {"rel": 1e-11, "abs": 1e-12}
ACCURACY, MAE, MSE = MEASURES = [parse_measure(text) for text in ("Accuracy", "MAE", "MSE")]
BEST, GRADES = 3, np.array([1, 3, 0, 2, 0, 1])
LATER = scored({"1": {"y": 2.0, "x": 1.0, "z": 0.0}, "2": {"q": 3.0, "p": 1.0}})
BATCHES = bounded(2, 3)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learn from the very first judgment, so that a tiny round is as adaptive as a large one."""
    monkeypatch.setattr(model, "LEAST_JUDGED", 1)
    monkeypatch.setattr(model, "LEAST_FOUND", 0)


def pool_of(runs: dict = RUNS, *, depth: int = 3, topics: list[str] = TOPICS) -> Pool:
    """By default six documents, three runs."""
    return build_pool(topics, runs, depth=depth, scores=True)


def design_for(
    pool: Pool, measure: Measure, *, budget: float = 3, batches: int = 3, **options
) -> Design:
    goal = options.pop("goal", goals.absolute(*pool.runs))
    prior = make_prior(pool, name="constant", goal=goal, measure=measure, max_grade=BEST)
    given = {"goal": goal, "measure": measure, "prior": prior, "method": "adaptive"} | options
    return make_design(
        pool, budget=budget, batch_size=-(-budget // batches), max_grade=BEST, **given
    )


def plan_for(pool: Pool, measure: Measure, **options) -> AdaptivePlan:
    together = options.pop("topic_minimum", 0.0)
    design = design_for(pool, measure, **options)
    return AdaptivePlan(design, BEST, options.get("costs"), topic_minimum=together)


def run_totals(drawn: AdaptiveRound, scope: Scope, measure: Measure, rows: LabelRows) -> ByRun:
    frame = drawn.design.frame(scope.sampled or scope.pool)
    weights = weighed(frame, drawn.sample, (measure,)).weights
    return ByRun(frame, scope, weights, measure, drawn.sample.pair, rows)


def moments(
    pool: Pool,
    plan: AdaptivePlan,
    measure: Measure,
    *,
    batches: int,
    joined: Pool | None = None,
    turned=lambda drawn: drawn,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and covariance of the values, and mean of the estimated covariance."""
    scope = Scope.of(pool, joined)
    mean, square, estimated = 0.0, 0.0, 0.0
    for chance, drawn in every_round(pool, begun(plan), batches=batches, grades=GRADES):
        pairs = drawn.sample.pair
        rows = LabelRows(np.arange(len(pairs)), GRADES[pairs])
        found = run_totals(turned(drawn), scope, measure, rows).estimate()
        mean = mean + chance * found.value
        square = square + chance * np.multiply.outer(found.value, found.value)
        estimated = estimated + chance * found.covariance
    return mean, square - np.multiply.outer(mean, mean), estimated


def truth_of(pool: Pool, measure: Measure) -> np.ndarray:
    return true_values(pool, grades=GRADES, measure=measure)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_values_are_unbiased_and_so_are_their_variances(eager: None, measure: Measure) -> None:
    """With models that have parts of all kinds, which earlier judgments say."""
    pool, plan = pool_of(), plan_for(pool_of(), measure)
    mean, covariance, estimated = moments(pool, plan, measure, batches=BATCHES)
    assert mean == pytest.approx(truth_of(pool, measure), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)
    steps = [
        step.model.scoring
        for _, drawn in every_round(pool, begun(plan), batches=2, grades=GRADES)
        for step in drawn.sample.steps
        if step.model is not None
    ]
    assert len({each.part for each in steps}) > 3
    assert len({each.of_sizes for each in steps}) > 1
    assert any(each.tells for each in steps)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"goal": goals.ranking("a", "b", "c")},
        {"goal": goals.pair("a", "b")},
        {"goal": goals.winner("a", "b", "c")},
        {"costs": np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.5])},
        {"floor": 0.0},
        {"reported": [parse_measure("P@2")]},
    ],
    ids=["ranking", "pair", "winner", "costs", "no floor", "beside gains"],
)
@pytest.mark.parametrize("measure", [MAE, MSE], ids=str)
def test_whatever_the_plan_rests_on_values_are_unbiased(
    eager: None, measure: Measure, options: dict
) -> None:
    pool = pool_of()
    plan = plan_for(pool, measure, **options)
    mean, covariance, estimated = moments(pool, plan, measure, batches=2)
    assert mean == pytest.approx(truth_of(pool, measure), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
def test_errors_that_are_reported_beside_gains_are_unbiased(eager: None) -> None:
    """Nobody looked how right the model is with them: nothing of it is taken off."""
    pool = pool_of()
    plan = plan_for(pool, parse_measure("P@2"), reported=[MSE])
    mean, covariance, estimated = moments(pool, plan, MSE, batches=2)
    assert mean == pytest.approx(truth_of(pool, MSE), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_a_run_that_joins_later_is_unbiased(eager: None, measure: Measure) -> None:
    pool, joined = pool_of(), pool_of({**RUNS, "later": LATER})
    assert len(joined) == len(pool)
    mean, covariance, estimated = moments(
        pool, plan_for(pool, measure), measure, batches=2, joined=joined
    )
    assert mean == pytest.approx(truth_of(joined, measure), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_a_part_that_follows_from_its_own_batch_would_be_biased(
    monkeypatch: pytest.MonkeyPatch, eager: None, measure: Measure
) -> None:
    """The twin: all of a prediction is taken off where the batch found much, else nothing.

    The chances stay as they are, as the sizes are those of the design.
    """
    monkeypatch.setattr(trust._Judged, "of_sizes", lambda self, part: 0.0)

    def turned(drawn: AdaptiveRound) -> AdaptiveRound:
        steps = []
        for number, step in enumerate(drawn.sample.steps, start=1):
            if step.model is not None:
                found = GRADES[drawn.sample.of_batch(number)].sum()
                scoring = replace(step.model.scoring, part=float(found > 2))
                steps.append(replace(step, model=replace(step.model, scoring=scoring)))
            else:
                steps.append(step)
        sample = replace(drawn.sample, steps=tuple(steps))
        return replace(drawn, sample=sample)

    pool = pool_of()
    plan, truth = plan_for(pool, measure), truth_of(pool, measure)
    as_it_is, _, _ = moments(pool, plan, measure, batches=2)
    assert as_it_is == pytest.approx(truth, **EXACT)
    mean, _, _ = moments(pool, plan, measure, batches=2, turned=turned)
    assert np.abs(mean - truth).max() > 1e-3 * truth.max()


@pytest.mark.slow
@pytest.mark.parametrize("measure", bounded([ACCURACY], [ACCURACY, MSE]), ids=str)
def test_weights_by_all_chances_together_would_be_biased(eager: None, measure: Measure) -> None:
    """The twin: one over the chance to be drawn by any batch, as if it had been fixed before."""
    pool, mean = pool_of(), 0.0
    of_entries = np.repeat(GRADES, np.diff(pool.indptr))
    added = pool.entry_weights(measure) * measure.entry_utilities(of_entries, pool.predictions)
    rows = pool.by_pair(added).toarray()
    plan = plan_for(pool, measure)
    for chance, drawn in every_round(pool, begun(plan), batches=3, grades=GRADES):
        *_, last = walk(drawn.design.frame(pool), drawn.sample)
        pairs, together = drawn.sample.pair, reached(last.before, last.chances)
        mean = mean + chance * (rows[pairs] / together[pairs, None]).sum(axis=0)
    truth = truth_of(pool, measure)
    assert np.abs(mean - truth).max() > 1e-3 * truth.max()


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_what_is_expected_of_the_truth_is_about_what_is_found(
    eager: None, measure: Measure
) -> None:
    """Over all rounds: with an outlook that is the truth the expected covariance is the true one.

    Not exactly, as how far batches' predictions differ is told of all grades together.
    """
    pool, levels = pool_of(), np.arange(1, BEST + 1)
    scope = Scope.of(pool)
    outlook = KnownOutlook(levels, (levels[:, None] <= GRADES).astype(np.float64))
    expected, estimated = 0.0, 0.0
    for chance, drawn in every_round(
        pool, begun(plan_for(pool, measure)), batches=2, grades=GRADES
    ):
        pairs = drawn.sample.pair
        found = run_totals(drawn, scope, measure, LabelRows(np.arange(len(pairs)), GRADES[pairs]))
        planned = planned_alone(found.frame, drawn.sample)
        expected = expected + chance * found.unseen(outlook, planned).covariance
        estimated = estimated + chance * found.estimate().covariance
    assert np.diag(expected) == pytest.approx(np.diag(estimated), rel=0.1)


# ------------------------------------------------------------------------------ of usual size


def collection(off: float, *, runs: int = 5, seed: int = 5) -> tuple[Pool, np.ndarray]:
    """Runs over twenty topics of forty documents, scores off by so much, of a run upside down."""
    rng, topics, documents = np.random.default_rng(seed), 20, 40
    grades = rng.choice(4, size=(topics, documents), p=(0.5, 0.25, 0.15, 0.1))
    names = [f"t{topic:02}" for topic in range(topics)]
    made = {}
    for run in range(runs):
        scores = grades + rng.normal(scale=off * (1.0 + run / 4.0), size=grades.shape)
        made[f"r{run}"] = scored(
            {
                name: {f"d{number:02}": float(of_topic[number]) for number in range(documents)}
                for name, of_topic in zip(names, scores, strict=True)
            }
        )
    pool = pool_of(made, depth=documents, topics=names)
    return pool, grades[pool.topic, [int(docno[1:]) for docno in pool.docno.tolist()]]


def played(
    pool: Pool, grades: np.ndarray, plan: AdaptivePlan, *, seed: str
) -> tuple[AdaptiveRound, LabelRows]:
    drawn = AdaptiveRound.begin(pool, plan, seed=seed)
    while drawn.planned < drawn.batches:
        pairs = drawn.pairs(pool)
        drawn = drawn.extended(pool, labels=LabelRows(pairs, grades[pairs]))
    pairs = drawn.pairs(pool)
    return drawn, LabelRows(pairs, grades[pairs])


def told(pool: Pool, drawn: DrawnRound, labels: LabelRows, measure: Measure) -> MeasureResult:
    return evaluate(pool, drawn, labels=labels, measures=[measure], max_grade=BEST).results[0]


def in_poisson(pool: Pool, grades: np.ndarray, design: Design, seed: str) -> MeasureResult:
    drawn = draw_round(pool, design, seed=seed)
    pairs = drawn.pairs(pool)
    return told(pool, drawn, LabelRows(pairs, grades[pairs]), design.measure)


@pytest.mark.slow
@pytest.mark.parametrize(("off", "budget"), [(0.05, 60), (0.5, 150)], ids=["nearly right", "noisy"])
@pytest.mark.parametrize("measure", [MAE, MSE], ids=str)
def test_it_is_nearer_than_poisson_rounds_unbiased_and_intervals_hold(
    measure: Measure, off: float, budget: int
) -> None:
    """Where runs are nearly right a model that is trusted with all is many times as far off."""
    (pool, grades), trials = collection(off), bounded(30, 200)
    truth = true_values(pool, grades=grades, measure=measure)
    plan = plan_for(pool, measure, budget=budget, batches=10)
    poisson = design_for(pool, measure, budget=budget, batches=10, method="poisson")
    errors, of_poisson, held = [], [], []
    for trial in range(trials):
        drawn, labels = played(pool, grades, plan, seed=f"{trial}")
        found = told(pool, drawn, labels, measure).estimate
        errors.append(found.value - truth)
        held.append((found.low <= truth) & (truth <= found.high))
        of_poisson.append(in_poisson(pool, grades, poisson, f"{trial}").estimate.value - truth)
    spread = np.std(errors, axis=0, ddof=1) / np.sqrt(trials)
    assert np.all(np.abs(np.mean(errors, axis=0)) < 4.0 * spread)
    assert np.mean(np.square(errors)) < 0.7 * np.mean(np.square(of_poisson))
    assert np.mean(held) > 0.93


def test_where_scores_tell_nothing_a_batch_is_as_one_of_the_design() -> None:
    """Scores of one value: what is taken off is small, and no size is far from the design's."""
    pool, grades = collection(0.05)
    pool = replace(pool, score=np.full(len(pool.run), 1.0))
    drawn, labels = played(pool, grades, plan_for(pool, MSE, budget=80, batches=4), seed="s")
    found = told(pool, drawn, labels, MSE)
    assert np.all(np.isfinite(found.estimate.covariance))
    assert np.ptp(found.estimate.value) == pytest.approx(0.0, abs=1e-12)


def test_intervals_allow_for_what_batches_missed_that_predicted_nothing() -> None:
    """Of pairs that a model knew later: in the first batch all of their utility was missed.

    Taken for the mean of all batches' predictions, these are as good as sure, and what the first
    batch missed is told as a loss.
    """
    pool, grades = collection(0.05)
    plan = plan_for(pool, MSE, budget=80, batches=4)
    drawn, labels = played(pool, grades, plan, seed="s")
    rows = LabelRows(np.arange(len(labels.pair)), labels.grade)
    found = run_totals(drawn, Scope.of(pool), MSE, rows)
    assert drawn.sample.steps[-1].model.scoring.part > 0.5
    levels = np.arange(1, BEST + 1)
    outlook = KnownOutlook(levels, (levels[:, None] <= grades).astype(np.float64))
    missed = found.unseen(outlook, planned_alone(found.frame, drawn.sample))
    untold = found.weights.untold[0, 0]
    utility = pool.entry_weights(MSE) * MSE.entry_utilities(
        np.repeat(grades, np.diff(pool.indptr)), pool.predictions
    )
    squares = pool.by_pair(utility**2).T @ untold
    assert np.all(np.diag(missed.covariance) >= squares * (1.0 - 1e-9))
    assert np.all(missed.losses.share <= 1.0 - squares / np.diag(missed.covariance) + 1e-9)


def test_the_line_tells_the_grade_whatever_scale_scores_are_on() -> None:
    pool, grades = collection(0.05)
    turned = replace(pool, score=40.0 - 7.0 * pool.score)
    pairs, levels = np.arange(0, len(pool), 20), np.arange(1, BEST + 1)
    for each in (pool, turned):
        scores = Scores.of(each)
        scoring, begin = fit_scores(scores.of_pairs(pairs), grades[pairs].astype(float), levels)
        assert scoring.off < 0.1
        assert np.all((begin > 0.0) == (grades[pairs] >= levels[:, None]))
        every = scoring.log_odds(scores, levels) > 0.0
        assert np.mean(every == (grades >= levels[:, None])) > 0.99


def test_every_grade_is_modeled() -> None:
    """On a long scale one that is told as its neighbor is a whole grade off."""
    pool, _ = collection(0.05)
    for measure, levels in ((MSE, range(1, 10)), (parse_measure("P@5"), (1, 3, 5, 7, 9))):
        plan = AdaptivePlan(design_for(pool, measure, budget=80), 9)
        assert plan.frame(pool).levels.tolist() == list(levels)


def test_a_judged_pair_does_not_tell_its_own_grade() -> None:
    """What log-odds of judged pairs begin with is told by the others alone."""
    pool, grades = collection(0.5)
    pairs, levels = np.arange(0, len(pool), 40), np.arange(1, BEST + 1)
    scores, given = Scores.of(pool).of_pairs(pairs), grades[pairs].astype(float)
    changed = given.copy()
    changed[3] = BEST - changed[3]
    found = []
    for each in (given, changed):
        scoring, begin = fit_scores(scores, each, levels)
        found.append(begin[:, 3] * scoring.off / 1.702 + (levels - 0.5))
    assert found[0] == pytest.approx(found[1], abs=1e-9)


@pytest.mark.slow
def test_a_model_that_tells_nothing_costs_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are nearly right, and the model does not see their scores; a twin is all trusted."""

    def unseen(pool: Pool) -> Scores:
        return Scores(np.zeros(len(pool)), pool.by_pair(np.zeros(len(pool.run))))

    monkeypatch.setattr(Scores, "of", unseen)
    (pool, grades), trials = collection(0.05), bounded(20, 100)
    truth = true_values(pool, grades=grades, measure=MSE)
    plan = plan_for(pool, MSE, budget=60, batches=10)
    poisson = design_for(pool, MSE, budget=60, batches=10, method="poisson")

    def error_of_rounds() -> float:
        errors = [
            told(pool, *played(pool, grades, plan, seed=f"{trial}"), MSE).estimate.value - truth
            for trial in range(trials)
        ]
        return float(np.mean(np.square(errors)))

    of_poisson = [
        in_poisson(pool, grades, poisson, f"{trial}").estimate.value - truth
        for trial in range(trials)
    ]
    least = float(np.mean(np.square(of_poisson)))
    assert error_of_rounds() < 1.2 * least
    monkeypatch.setattr(trust._Judged, "part", lambda self: 1.0)
    assert error_of_rounds() > 10.0 * least


# ------------------------------------------------------------------------------------- the file


def test_a_round_that_was_stored_is_the_same() -> None:
    pool, grades = collection(0.3)
    plan = plan_for(pool, MSE, budget=80, batches=4, reported=[MAE])
    drawn, labels = played(pool, grades, plan, seed="s")
    plan_file, state = io.BytesIO(), io.BytesIO()
    drawn.design.save(plan_file)
    drawn.sample.save(state)
    plan_file.seek(0)
    state.seek(0)
    again = AdaptiveRound(AdaptivePlan.load(plan_file), AdaptiveState.load(state))
    for one, two in zip(drawn.sample.steps, again.sample.steps, strict=True):
        assert one.is_as(two)
    for measure in (MSE, MAE):
        assert told(pool, again, labels, measure).estimate.value.tolist() == (
            told(pool, drawn, labels, measure).estimate.value.tolist()
        )
    assert again.redrawn(pool, seed="s").sample.pair.tolist() == drawn.sample.pair.tolist()


def test_what_is_judged_is_not_topped_up_where_errors_are_reported() -> None:
    pool, _ = collection(0.3)
    design = design_for(pool, parse_measure("P@5"), budget=80, batches=4, reported=[MAE])
    past = Past.alone(np.array([0]), pairs=len(pool))
    with pytest.raises(AdaptiveError, match="do not top up what is judged for MAE"):
        AdaptivePlan(design, BEST, past=past)
