"""Ratio measures: what is expected of their errors, and when they are withheld."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows, PairLabels
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.drawn import Drawn
from estimation.core.estimates.estimators import horvitz_thompson_poisson
from estimation.core.estimates.ratio_frames import Frame, Gains
from estimation.core.estimates.ratio_lines import Tangent
from estimation.core.estimates.ratios import _stored, estimate_ratios
from estimation.core.inference import second_order
from estimation.core.inference.intervals import difference_variances
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.inference.ratio_knowledge import knowledge_at
from estimation.core.inference.ratio_outlook import AtOutlook
from estimation.core.inference.unknown import Reason
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds import pair_estimates
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.limits import limits_of_ratios
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.draws import draw
from estimation.research.simulation import true_values
from tests.core.ratio_pools import (
    AP,
    EXACT,
    RATIOS,
    design_for,
    grades_of,
    pool_with,
    results,
    three_runs,
)

# ------------------------------------------------------------------------- expected covariance


@pytest.fixture
def tiny() -> Pool:
    return pool_with(["one", "two"], depth=1)


def outlook_for(pool: Pool) -> KnownOutlook:
    chance = np.random.default_rng(3).uniform(0.05, 0.9, len(pool))
    return KnownOutlook(np.array([1, 2, 3]), chance * np.array([[1.0], [0.6], [0.2]]))


def other_outlook_for(pool: Pool) -> KnownOutlook:
    return KnownOutlook(np.array([1, 2, 3]), outlook_for(pool).reached / 3.0)


def drawn_for(pool: Pool) -> Drawn:
    inclusion = np.random.default_rng(4).uniform(0.1, 1.0, len(pool))
    inclusion[::5] = 1.0
    none = np.zeros(0, dtype=np.int64)
    return Drawn(none, inclusion, inclusion, np.zeros(0))


def pair_by_pair(pool: Pool, measure: Measure, drawn: Drawn, outlook: KnownOutlook) -> np.ndarray:
    """sum_i (1 - pi) / pi E[z z'], the mean over the grades of every pair, without the factor."""
    everything, best = np.arange(len(pool)), measure.utilities(np.array([0, 1, 2, 3]))
    levels = np.flatnonzero(np.diff(best) > 0.0)
    gains = Gains(np.diff(best)[levels], outlook.reached[levels], everything, np.ones(len(pool)))
    line = Tangent.of(Frame.of(pool, measure, gains, None), measure)
    shares, total = outlook.shares(everything), 0.0
    for grade, share in enumerate(shares):
        reached = np.tile((levels + 1 <= grade).astype(float)[:, None], len(pool))
        z = line.moved(everything, reached)
        total = total + (z.T * ((1.0 / drawn.inclusion - 1.0) * share)) @ z
    return np.asarray(total)


@pytest.mark.parametrize("measure", RATIOS, ids=str)
def test_expected_covariance_is_that_of_every_pair_and_grade(tiny: Pool, measure) -> None:
    outlook, drawn = outlook_for(tiny), drawn_for(tiny)
    at = AtOutlook.of(tiny, measure, drawn, outlook)
    far = replace(at, factor=at.factor * 1e-9)  # so that the factor for large errors is 1
    expected = pair_by_pair(tiny, measure, drawn, outlook)
    assert far.covariance * 1e9 == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert np.all(np.diag(at.covariance) > np.diag(expected))


@pytest.mark.slow
def test_expected_covariance_is_what_squares_are_on_average() -> None:
    """Over every sample: of pairs whose grades are known, with slopes that do not vary."""
    z = np.random.default_rng(5).normal(size=(7, 3))
    inclusion = np.array([0.3, 0.6, 1.0, 0.5, 0.4, 0.7, 0.2])
    mean = 0.0
    for taken in product([False, True], repeat=7):
        chance = float(np.prod(np.where(taken, inclusion, 1.0 - inclusion)))
        pairs = np.flatnonzero(taken)
        labels = PairLabels(
            np.ones(len(pairs)), np.ones(len(pairs), dtype=np.int64), np.zeros(len(pairs)), False
        )
        found = horvitz_thompson_poisson(_stored(z[pairs]), labels, probability=inclusion[pairs])
        mean = mean + chance * found.covariance
    assert mean == pytest.approx((z.T * (1.0 / inclusion - 1.0)) @ z, **EXACT)


@pytest.mark.parametrize("measure", RATIOS, ids=str)
def test_squares_allow_for_what_tangents_leave_out_and_half_widths_for_squares(measure) -> None:
    """Whatever is expected."""
    pool = three_runs()
    design = design_for(pool, "poisson", budget=250)
    sample = draw(pool, design, seed="squares")
    rows = LabelRows(np.arange(len(sample.pair)), grades_of(pool)[sample.pair])
    drawn, topics = Drawn.of(design, sample, 1, topic=pool.topic), len(pool.topics)
    asked = {"drawn": drawn, "rows": rows, "expected_bias": np.zeros((topics, 3))}
    once, fourfold = (
        estimate_ratios(pool, measure, more=np.full(topics, times), **asked) for times in (1.0, 4.0)
    )
    assert fourfold.estimate.covariance == pytest.approx(4.0 * once.estimate.covariance, **EXACT)
    assert np.array_equal(fourfold.by_topic, once.by_topic)
    at = AtOutlook.of(pool, measure, drawn, outlook_for(pool))
    told = limits_of_ratios(fourfold.estimate, knowledge_at(at, measure, fourfold), 0.95, 1.0)
    squares = np.sqrt(difference_variances(fourfold.estimate.covariance))
    apart = np.triu_indices(3, k=1)
    assert np.all(told.difference_margin[apart] >= 1.95 * squares[apart])
    assert np.all(told.se >= np.sqrt(np.diag(fourfold.estimate.covariance)) * (1.0 - 1e-12))


# ---------------------------------------------------------------- what a value takes from it


def test_an_outlook_moves_a_value_by_half_of_what_it_tells_of_the_bias(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before correction values are of the sample alone, as covariances of the tangents are."""
    even = property(lambda self: np.ones_like(self.tangent.reciprocal))
    monkeypatch.setattr(AtOutlook, "more", even)
    pool = three_runs()
    design = design_for(pool, "poisson", budget=250)
    sample = draw(pool, design, seed="values")
    rows = LabelRows(sample.pair, grades_of(pool)[sample.pair])
    drawn = Drawn.of(design, sample, 1, topic=pool.topic)
    for measure in RATIOS:
        seen = []
        for outlook in (outlook_for(pool), other_outlook_for(pool)):
            asked = {"labels": rows, "measures": [measure], "max_grade": 3, "outlook": outlook}
            found = evaluate(pool, PairRound(design, sample), **asked).results[0]
            expected = AtOutlook.of(pool, measure, drawn, outlook).bias_by_topic()
            seen.append((found, expected))
        (one, of_one), (other, of_other) = seen
        assert np.abs(one.estimate.value - other.estimate.value).min() > 1e-4
        assert one.estimate.covariance.tolist() == other.estimate.covariance.tolist()
        raw = [each.estimate.value + each.ratio_bias for each, _ in seen]
        assert raw[0] == pytest.approx(raw[1], **EXACT)
        # Of no topic more is taken off than its ratio, and nothing where nothing was found.
        whole = np.maximum(of_one, of_other) < np.minimum(one.by_topic, other.by_topic) / 2.0
        whole &= one.by_topic > 0.0
        assert whole.mean() > 0.25
        moved = (one.by_topic - other.by_topic)[whole]
        assert moved == pytest.approx((of_other - of_one)[whole] / 2.0, **EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nDCG", "Rprec"])
def test_the_mean_of_two_biases_leaves_less_than_that_of_finds_alone(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Of few relevant documents the unlikely ones are missed; the twin expects nothing of them."""
    monkeypatch.setattr(second_order, "LEAST_TOPICS", 10**9)  # of what is left of either
    pool, grades = few_relevant()
    measure, design = parse_measure(name), design_for(pool, "poisson", budget=1500)
    truth = true_values(pool, grades=grades, measure=measure)
    seeds = [f"two {trial}" for trial in range(TRIALS)]
    both = [of_trial(pool, design, grades, seed, measure) for seed in seeds]
    monkeypatch.setattr(AtOutlook, "bias_by_topic", lambda at, *_: 0.0 * at.tangent.by_topic)
    half = [of_trial(pool, design, grades, seed, measure) for seed in seeds]
    left = np.mean([found.estimate.value - truth for found in both])
    of_finds = np.mean([found.estimate.value - found.ratio_bias - truth for found in half])
    assert abs(left) < 0.8 * abs(of_finds)


def test_nothing_is_withheld_of_a_census() -> None:
    pool = three_runs()
    for found in results(pool, "poisson", budget=len(pool)):
        assert not found.estimate.unknown.any()
        assert not found.ranking.unknown.any()


# -------------------------------------------------------------------------- few relevant documents

TOPICS = [f"t{number:03d}" for number in range(120)]
FEW, TRIALS = 4, 30


def few_relevant() -> tuple[Pool, np.ndarray]:
    """Eight runs of different depths of interest; in each of 120 topics 4 of 40 are relevant."""
    rng = np.random.default_rng(8)
    relevant = np.array([rng.permutation(40)[:FEW] for _ in TOPICS])
    runs = {}
    for number in range(8):
        docnos = []
        for found in relevant:
            score = rng.normal(size=40)
            score[found] += 2.0 * (number % 4) / 3.0
            docnos += [f"d{each:02d}".encode() for each in np.argsort(-score)]
        bounds = np.arange(0, len(docnos) + 1, 40)
        runs[f"run {number}"] = RankedLists(tuple(TOPICS), bounds, np.array(docnos))
    pool = build_pool(TOPICS, runs, depth=40)
    document = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return pool, (relevant[pool.topic] == document[:, None]).any(axis=1).astype(np.int64)


def told(pool: Pool, grades: np.ndarray, budget: int, trials: int = TRIALS) -> tuple[float, float]:
    """Share of the values shown whose interval is false, and of trials with a false verdict."""
    design = design_for(pool, "poisson", budget=budget)
    truth = true_values(pool, grades=grades, measure=AP)
    order = np.sign(np.subtract.outer(truth, truth))
    shown = missed = false = 0
    for trial in range(trials):
        found = of_trial(pool, design, grades, f"few {trial}")
        known = found.estimate.unknown == Reason.KNOWN
        inside = (found.estimate.low <= truth) & (truth <= found.estimate.high)
        shown, missed = shown + known.sum(), missed + (known & ~inside).sum()
        said = found.ranking.verdicts
        false += bool(np.any((said != 0) & (said != order)))
    return missed / max(shown, 1), false / trials


def of_trial(
    pool: Pool, design, grades: np.ndarray, seed: str, measure: Measure = AP
) -> MeasureResult:
    sample = draw(pool, design, seed=seed)
    labels = LabelRows(sample.pair, grades[sample.pair])
    return evaluate(
        pool, PairRound(design, sample), labels=labels, measures=[measure], max_grade=1
    ).results[0]


@pytest.mark.slow
def test_little_that_is_false_is_told_where_few_relevant_documents_were_found(monkeypatch) -> None:
    """The twin goes by ratios and squares of what was found alone, and withholds nothing."""
    pool, grades = few_relevant()
    missed, false = told(pool, grades, 1000)
    assert missed <= 0.15
    assert false <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / TRIALS)

    monkeypatch.setattr(pair_estimates, "knowledge_at", lambda *_, **__: None)
    monkeypatch.setattr(second_order, "LEAST_TOPICS", 10**9)
    missed, _ = told(pool, grades, 1000)
    assert missed > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["AP(rel=2)", "Rprec(rel=2)", "nDCG", "AP"])
@pytest.mark.parametrize("grade", [0, 1])
def test_scales_on_which_nothing_is_relevant_have_numbers_too(name: str, grade: int) -> None:
    pool, _ = few_relevant()
    design = design_for(pool, "poisson", budget=60)
    sample = draw(pool, design, seed="scale")
    labels = LabelRows(sample.pair, np.full(len(sample.pair), grade))
    asked = {"labels": labels, "measures": [parse_measure(name)], "max_grade": 1}
    found = evaluate(pool, PairRound(design, sample), **asked).results[0].estimate
    for numbers in (found.value, found.se, found.low, found.high, found.expected):
        assert np.all(np.isfinite(numbers))


def test_a_sample_that_overlooks_every_topic_has_finite_errors() -> None:
    pool, _ = few_relevant()
    chance = np.full(len(pool), 1e-12)
    nothing = np.array([], dtype=np.int64)
    drawn = Drawn(nothing, chance, chance, chance[nothing])
    at = AtOutlook.of(pool, AP, drawn, KnownOutlook(np.array([1]), np.full((1, len(pool)), 1.0)))
    assert at.overlooked < 1.0


@pytest.mark.slow
def test_everything_is_withheld_where_hardly_anything_was_found() -> None:
    pool, grades = few_relevant()
    design = design_for(pool, "poisson", budget=300)
    for trial in range(10):
        found = of_trial(pool, design, grades, f"hardly {trial}")
        assert np.all(found.estimate.unknown == Reason.FEW_RELEVANT)
        assert not found.ranking.verdicts.any()


def test_ratios_are_shown_where_enough_was_found() -> None:
    pool, grades = few_relevant()
    design = design_for(pool, "poisson", budget=int(0.9 * len(pool)))
    found = of_trial(pool, design, grades, "enough")
    assert not found.estimate.unknown.any()
    assert found.ranking.verdicts.any()


def test_reasons_have_the_shapes_of_what_they_are_about() -> None:
    found = results(three_runs(), "poisson", budget=60)[0]
    assert found.estimate.unknown.shape == (3,)
    assert np.array_equal(found.ranking.unknown, found.ranking.unknown.T)
    assert not np.diag(found.ranking.unknown).any()
    assert not found.ranking.verdicts[found.ranking.unknown != Reason.KNOWN].any()
