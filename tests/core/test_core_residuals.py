"""What is expected of what predictions leave over, and intervals that are made of it."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.estimates.drawn import Drawn
from estimation.core.inference.fitting import Residuals, fit_residuals
from estimation.core.measures.table import parse_measure
from estimation.core.rounds import pair_estimates
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample
from tests.core.simulated_pools import harmful_predictions, helpful_predictions, simulated_pool
from tests.core.test_core_agreement_by_chance import pool_of

DCG, RBP = parse_measure("DCG@30"), parse_measure("RBP(p=0.8)")
BUDGET, TRIALS = 300, 80


@pytest.fixture(scope="module")
def judged() -> tuple[Pool, np.ndarray]:
    return simulated_pool()


@pytest.fixture(scope="module")
def design(judged) -> Design:
    pool, _ = judged
    goal = goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=DCG, max_grade=3)
    return make_design(pool, goal=goal, measure=DCG, prior=prior, budget=BUDGET, batch_size=BUDGET)


def fitted(
    pool: Pool, design: Design, sample: Sample, left: np.ndarray, *, largest: float = 3.0, **options
) -> Residuals:
    drawn = Drawn.of(design, sample, 1, topic=pool.topic)
    return fit_residuals(pool, drawn, left[sample.pair], largest=largest, **options)


def test_both_sides_and_all_powers_come_out_on_average(judged, design) -> None:
    """Over the sampled pairs, what is expected is what was found: but for what draws it to 1."""
    pool, grades = judged
    predictions = helpful_predictions(grades)
    left = grades - 0.8
    sample = draw(pool, design, seed="one")
    moments = fitted(pool, design, sample, left, predictions=predictions).moments(sample.pair)
    assert moments.shape == (2, 3, len(sample.pair))
    assert moments.min() >= 0.0
    for side, sign in zip(moments, (1.0, -1.0), strict=True):
        for power, expected in enumerate(side, 1):
            found = np.maximum(sign * left[sample.pair], 0.0) ** power
            assert expected.sum() == pytest.approx(found.sum(), rel=0.1)


def test_what_is_predicted_best_is_known_best(judged, design) -> None:
    """Residuals that are small where predictions are high are expected to be small there."""
    pool, _ = judged
    predictions = np.arange(len(pool)) / len(pool)
    left = np.where(predictions > 0.7, 0.1, 2.0)
    sample = draw(pool, design, seed="two")
    squares = fitted(pool, design, sample, left, predictions=predictions).moments(
        np.arange(len(pool))
    )[0, 1]
    assert squares[predictions > 0.75].max() < 0.5 * squares[predictions < 0.65].min()


def test_nothing_left_over_is_expected_to_be_little(judged, design) -> None:
    """Of 300 pairs without residual one learns that few others have one, not that none has."""
    pool, _ = judged
    sample = draw(pool, design, seed="three")
    asked = {"predictions": np.full(len(pool), np.nan), "largest": 1.0}
    every = np.arange(len(pool))
    moments = fitted(pool, design, sample, np.zeros(len(pool)), **asked).moments(every)
    assert moments.min() > 0.0
    assert moments.max() < 0.05
    hardly = fitted(pool, design, sample, np.full(len(pool), 1e-6), **asked).moments(every)
    assert np.median(hardly[0] / moments[0]) > 0.2, "and next to nothing says hardly more"


def few_alike(trial: int) -> bool:
    """Whether a run is covered whose judged documents, about ten, are nearly always all relevant.

    Seven of eight are; predictions say nothing.
    """
    listed = [list(range(8)) for _ in range(10)]
    pool = pool_of(a=listed, b=[each[:4] for each in listed])
    grades = np.array([number % 8 < 7 for number in range(len(pool))]).astype(np.int64)
    about = {"goal": goals.single("a"), "measure": RBP, "max_grade": 1}
    prior = make_prior(pool, name="rank", **about)
    design = make_design(pool, prior=prior, budget=12, batch_size=12, **about)
    sample = draw(pool, design, seed=str(trial))
    found = evaluate(
        pool, PairRound(design, sample), labels=LabelRows(sample.pair, grades[sample.pair]),
        measures=[RBP], max_grade=1, predictions=np.ones(len(pool)),
    ).results[0]  # fmt: skip
    truth = pool.weights(RBP).T @ grades
    at = pool.run_index("a")
    return bool(found.estimate.low[at] <= truth[at] <= found.estimate.high[at])


def test_a_few_judged_documents_that_are_all_alike_do_not_make_values_exact(monkeypatch) -> None:
    """The twin takes what predictions leave over to be as small everywhere as it was there."""
    assert np.mean([few_alike(trial) for trial in range(TRIALS)]) > 0.93
    usual = pair_estimates.fit_residuals

    def twin(pool, drawn, left, **options):
        most = float(np.abs(left).max(initial=0.0)) or 1.0
        return usual(pool, drawn, left, **(options | {"largest": most}))

    monkeypatch.setattr(pair_estimates, "fit_residuals", twin)
    assert np.mean([few_alike(trial) for trial in range(TRIALS)]) < 0.85


def test_predictions_make_no_value_known_that_the_design_says_little_of(judged) -> None:
    pool, grades = judged
    goal = goals.single(pool.runs[0])
    prior = make_prior(pool, name="rank", goal=goal, measure=DCG, max_grade=3)
    design = make_design(
        pool, goal=goal, measure=DCG, prior=prior, budget=40, batch_size=40, floor=0.02
    )
    sample = draw(pool, design, seed="little")
    found = evaluate(
        pool, PairRound(design, sample),
        labels=LabelRows(sample.pair, grades[sample.pair]), measures=[DCG],
        max_grade=3, predictions=helpful_predictions(grades),
    ).results[0].estimators  # fmt: skip
    assert 0 < np.count_nonzero(found["di"].unknown) < len(pool.runs)
    assert found["di"].unknown.tolist() == found["ht"].unknown.tolist()


# ------------------------------------------------------------------------------------- intervals


def misses(judged, design: Design, predictions: np.ndarray) -> tuple[float, float]:
    """Shares of values above and below their intervals, over trials and runs."""
    pool, grades = judged
    truth = pool.weights(DCG).T @ grades
    above, below = [], []
    for trial in range(TRIALS):
        sample = draw(pool, design, seed=f"trial {trial}")
        labels = LabelRows(sample.pair, grades[sample.pair])
        found = evaluate(
            pool, PairRound(design, sample), labels=labels, measures=[DCG], max_grade=3,
            predictions=predictions,
        ).results[0].estimate  # fmt: skip
        above.append(truth > found.high)
        below.append(truth < found.low)
    return float(np.mean(above)), float(np.mean(below))


KINDS = {
    "helpful": helpful_predictions,
    "heavy tails": lambda grades: harmful_predictions(grades)["heavy tails"],
    "nothing": lambda grades: np.full(len(grades), np.nan),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_covered(judged, design, kind: str) -> None:
    above, below = misses(judged, design, KINDS[kind](judged[1]))
    assert 0.01 < above + below < 0.07
    assert above < 0.05
    assert below < 0.05


@pytest.mark.slow
def test_twin_by_squares_alone_is_caught(judged, design, monkeypatch) -> None:
    """Normal intervals by the variance that the sampled pairs show miss above what is true."""

    def by_squares(estimate, _unseen, _variance, *, confidence):
        margin = 1.96 * np.sqrt(np.diag(estimate.covariance))
        return estimate.value - margin, estimate.value + margin

    monkeypatch.setattr("estimation.core.rounds.limits.value_limits", by_squares)
    above, _ = misses(judged, design, KINDS["heavy tails"](judged[1]))
    assert above > 0.05
