"""Predicted grades in an evaluation: never a bias, a variance that is told, and what is refused."""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.scope import find_pairs
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample
from estimation.research.simulation import true_values
from tests.core.comparing import OF_ONE_RUN
from tests.core.length import bounded
from tests.core.plain_estimates import estimates_alone

EXACT = {"rel": 1e-12, "abs": 1e-12}
EXP, DCG = parse_measure("DCG(dcg='exp-log2')@4"), parse_measure("DCG@4")
NAN = float("nan")
GRADES = np.array([3, 0, 1, 2, 0, 3, 1, 2])
PREDICTED = np.array([2.0, 0.5, 1.0, 2.5, NAN, 2.0, 0.2, NAN])
OTHER = np.array([0, 0, 1, 2, 0, 0, 1, 2])  # what assessors say half of the time


@pytest.fixture
def pool(ranked) -> Pool:
    """Eight pairs, three runs."""
    runs = {
        "a": ranked({"1": "uvwx", "2": "pq"}),
        "b": ranked({"1": "xwyz", "2": "qp"}),
        "c": ranked({"1": "vzux", "2": "p"}),
    }
    return build_pool(["1", "2"], runs, depth=4)


def design_of(pool: Pool, method: str = "poisson", budget: int = 4) -> Design:
    goal = goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=DCG, max_grade=3)
    return make_design(
        pool, goal=goal, measure=DCG, prior=prior, method=method, budget=budget, batch_size=budget
    )


def outcomes(design: Design) -> Iterator[tuple[float, Sample]]:
    inclusion = design.inclusion()
    for taken in product([False, True], repeat=len(inclusion)):
        chance = float(np.prod(np.where(taken, inclusion, 1 - inclusion)))
        pair, none = np.flatnonzero(taken), np.array([], dtype=np.int64)
        batch = np.ones(len(pair), dtype=np.int32)
        if chance > 0:
            yield chance, Sample(pair, batch, inclusion[pair], none, design.pool_digest)


def asked(
    pool: Pool, design: Design, sample: Sample, *, grades: np.ndarray = GRADES, **options
) -> MeasureResult:
    settings = {
        "labels": LabelRows(sample.pair, grades[sample.pair]), "measures": [EXP], "max_grade": 3,
        "predictions": PREDICTED,
    }  # fmt: skip
    return evaluate(pool, PairRound(design, sample), **(settings | options)).results[0]


# --------------------------------------------------------------------------------------- unbiased


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
def test_every_sample_together_gives_the_truth(pool: Pool) -> None:
    design = design_of(pool)
    mean, topics, plain = 0.0, 0.0, 0.0
    for chance, sample in outcomes(design):
        found = asked(pool, design, sample)
        assert (found.primary, set(found.estimators)) == ("di", {"di", "ht"})
        assert found.by_topic.sum(axis=0) == pytest.approx(found.estimate.value, **EXACT)
        mean = mean + chance * found.estimate.value
        topics = topics + chance * found.by_topic
        plain = plain + chance * found.estimators["ht"].value
    truth = true_values(pool, grades=GRADES, measure=EXP)
    assert mean == pytest.approx(truth, **EXACT)
    assert plain == pytest.approx(truth, **EXACT)
    assert topics.sum(axis=0) == pytest.approx(truth, **EXACT)


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
def test_twin_that_predicts_where_nothing_can_be_sampled_would_be_seen(pool: Pool) -> None:
    """Without its correction a prediction is a bias: the same sum with one pair never sampled."""
    design = design_of(pool)
    truth, mean = true_values(pool, grades=GRADES, measure=EXP), 0.0
    for chance, sample in outcomes(design):
        kept = sample.pair[sample.pair != 0]
        batch, none = np.ones(len(kept), dtype=np.int32), np.array([], dtype=np.int64)
        lost = Sample(kept, batch, design.inclusion()[kept], none, design.pool_digest)
        mean = mean + chance * asked(pool, design, lost).estimate.value
    assert np.abs(mean / truth - 1.0).max() > 0.05


def noisy_moments(pool: Pool, labels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, variance and told variance over every sample and every label of so many assessors.

    Of a pair only how many of them say what is said half of the time is of any influence.
    """
    # With six pairs two are certain, and three quarters of the samples cannot come to be.
    design, noisy = design_of(pool, budget=bounded(6, 4)), np.flatnonzero(OTHER != GRADES)
    mean, square, told = 0.0, 0.0, 0.0
    for chance, sample in outcomes(design):
        among = np.flatnonzero(np.isin(sample.pair, noisy)).tolist()
        for others in product(range(labels + 1), repeat=len(among)):
            grades, weight = np.tile(GRADES[sample.pair], (labels, 1)), chance
            for at, number in zip(among, others, strict=True):
                grades[:number, at] = OTHER[sample.pair[at]]
                weight *= math.comb(labels, number) / 2**labels
            rows = LabelRows(np.tile(sample.pair, labels), grades.ravel())
            found = asked(pool, design, sample, labels=rows).estimate
            mean = mean + weight * found.value
            square = square + weight * found.value**2
            told = told + weight * np.diag(found.covariance)
    return mean, square - mean**2, told


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
def test_disagreement_leaves_it_unbiased_and_is_in_its_variance(pool: Pool) -> None:
    truth = true_values(pool, grades=GRADES, measure=EXP) / 2
    truth = truth + true_values(pool, grades=OTHER, measure=EXP) / 2
    mean, variance, told = noisy_moments(pool, labels=2)
    assert mean == pytest.approx(truth, **EXACT)
    assert told == pytest.approx(variance, rel=0.1)
    mean, variance, told = noisy_moments(pool, labels=1)
    assert mean == pytest.approx(truth, **EXACT)
    assert told[0] < 0.8 * variance[0]  # one label of each does not show the disagreement


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
def test_the_variance_is_what_is_told(pool: Pool) -> None:
    """Cross-fitting costs the exactness of the variance, but little: over every sample."""
    design = design_of(pool, budget=5)
    mean, square, told = 0.0, 0.0, 0.0
    for chance, sample in outcomes(design):
        found = asked(pool, design, sample).estimate
        mean = mean + chance * found.value
        square = square + chance * found.value**2
        told = told + chance * np.diag(found.covariance)
    assert told == pytest.approx(square - mean**2, rel=0.15)


def test_nothing_predicted_is_horvitz_thompson(pool: Pool) -> None:
    design = design_of(pool)
    found = asked(pool, design, draw(pool, design, seed="s"), predictions=np.full(8, NAN))
    plain = found.estimators["ht"]
    assert found.estimate.value == pytest.approx(plain.value, **EXACT)
    assert found.estimate.covariance == pytest.approx(plain.covariance, **EXACT)


def test_only_the_order_of_predicted_grades_counts(pool: Pool) -> None:
    design = design_of(pool)
    sample = draw(pool, design, seed="s")
    found = [
        asked(pool, design, sample, predictions=predicted).estimate.value
        for predicted in (PREDICTED, PREDICTED / 1000.0, np.sqrt(PREDICTED))
    ]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_a_census_has_no_use_for_predictions(pool: Pool) -> None:
    design = design_of(pool, budget=8)
    found = asked(pool, design, draw(pool, design, seed="s"))
    truth = true_values(pool, grades=GRADES, measure=EXP)
    assert found.estimate.value == pytest.approx(truth, **EXACT)
    assert found.estimate.low == pytest.approx(truth, **EXACT)
    assert found.estimate.high == pytest.approx(truth, **EXACT)


def test_flawless_predictions_are_no_proof(pool: Pool) -> None:
    """What they are worth is learned from a handful of pairs: the others may still differ."""
    design = design_of(pool, budget=5)
    sample = draw(pool, design, seed="s")
    found = asked(pool, design, sample, predictions=GRADES.astype(float)).estimate
    truth = true_values(pool, grades=GRADES, measure=EXP)
    assert np.all(found.se > 0.0)
    assert np.all(found.low < truth - 1.0)
    assert np.all(found.high > truth + 1.0)


def test_measures_that_are_no_gains_stay_as_they_are(pool: Pool) -> None:
    design = design_of(pool)
    sample = draw(pool, design, seed="s")
    rows = LabelRows(sample.pair, GRADES[sample.pair])
    options = {"labels": rows, "measures": [parse_measure("AP"), EXP], "max_grade": 3}
    usual = evaluate(pool, PairRound(design, sample), **options).results
    found = evaluate(pool, PairRound(design, sample), **options, predictions=PREDICTED).results
    assert (found[0].primary, list(found[0].estimators)) == ("ht", ["ht"])
    assert np.array_equal(found[0].estimate.high, usual[0].estimate.high)
    assert found[1].primary == "di"
    plain = found[1].estimators["ht"]
    assert np.array_equal(plain.high, usual[1].estimate.high)
    value = found[1].estimate.value
    assert np.array_equal(found[1].ranking.difference, np.subtract.outer(value, value))


# -------------------------------------------------------------------------------------- later runs


def with_later(ranked) -> Pool:
    """A later run that returns documents of the pool and one that is new."""
    runs = {
        "a": ranked({"1": "uvwx", "2": "pq"}),
        "b": ranked({"1": "xwyz", "2": "qp"}),
        "bb": ranked({"1": "zuvn", "2": "pq"}),
        "c": ranked({"1": "vzux", "2": "p"}),
    }
    return build_pool(["1", "2"], runs, depth=4)


FULLY = bounded(16, 1)
"""Of so many samples one is compared with all that is told; of the others the estimates are."""


def later(pool: Pool, joined: Pool, design: Design, sample: Sample) -> MeasureResult:
    return evaluate(
        pool, PairRound(design, sample), joined=joined,
        labels=LabelRows(sample.pair, GRADES[sample.pair]),
        measures=[EXP], max_grade=3, predictions=PREDICTED,
    ).results[0]  # fmt: skip


@pytest.mark.slow
def test_later_runs_are_unbiased_and_change_nothing(pool: Pool, ranked) -> None:
    joined, design = with_later(ranked), design_of(pool)
    place = find_pairs(
        pool.topic, pool.docno, among_topic=joined.topic, among_docno=joined.docno
    )  # fmt: skip
    grades = np.zeros(len(joined), dtype=np.int64)
    grades[place] = GRADES
    truth = true_values(joined, grades=grades, measure=EXP)
    at, mean = [joined.runs.index(tag) for tag in pool.runs], 0.0
    for number, (chance, sample) in enumerate(outcomes(design)):
        fully = number % FULLY == FULLY - 1
        with nullcontext() if fully else estimates_alone():
            now, before = later(pool, joined, design, sample), asked(pool, design, sample)
        for field in OF_ONE_RUN if fully else ("value",):
            numbers = getattr(now.estimate, field)[at]
            assert numbers.tolist() == getattr(before.estimate, field).tolist()
        matrix = now.estimate.covariance[np.ix_(at, at)]
        assert matrix == pytest.approx(before.estimate.covariance, **EXACT)
        assert now.by_topic[:, at] == pytest.approx(before.by_topic, **EXACT)
        assert now.by_topic.sum(axis=0) == pytest.approx(now.estimate.value, **EXACT)
        mean = mean + chance * now.estimate.value
    assert mean == pytest.approx(truth, **EXACT)
    assert now.support[joined.runs.index("bb")] < 1.0


# ----------------------------------------------------------------------------------- bad arguments


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"predictions": PREDICTED[:5]}, r"predictions must be one grade per pair of the pool, 8, "
         r"not of the shape \(5,\)"),
        ({"predictions": [1.0]}, r"predictions must be one grade per pair of the pool, 8, not \[1"),
        ({"predictions": np.where(np.arange(8) == 3, 3.5, PREDICTED)},
         r"predictions must lie between 0 and 3, or be nan, not 3\.5 \(item 3\)"),
        ({"predictions": np.where(np.arange(8) == 6, -np.inf, PREDICTED)},
         r"predictions must lie between 0 and 3, or be nan, not -inf \(item 6\)"),
        ({"interval": "chernoff"}, "predictions do not go with .* interval 'chernoff'"),
    ],
)  # fmt: skip
def test_bad_predictions_are_refused(pool: Pool, options: dict, message: str) -> None:
    design = design_of(pool)
    with pytest.raises(ValueError, match=message):
        asked(pool, design, draw(pool, design, seed="s"), **options)


@pytest.mark.parametrize("method", ["iid", "priority", "per-query"])
def test_predictions_are_for_poisson_samples(pool: Pool, method: str) -> None:
    design = design_of(pool, method)
    with pytest.raises(ValueError, match=f"of the method poisson, not {method}"):
        asked(pool, design, draw(pool, design, seed="s"))
