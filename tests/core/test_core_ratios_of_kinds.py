"""Ratios of adaptive rounds over topics of two kinds, which no model of grades tells apart."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.ratio_frames import Frame, Gains
from estimation.core.estimates.ratio_labels import Rest
from estimation.core.estimates.ratio_lines import Tangent
from estimation.core.inference import second_order
from estimation.core.inference.second_order import SecondMoments, followed
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.adaptive import ratios
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.research.simulation import true_values
from tests.core.length import bounded
from tests.core.test_core_adaptive import played
from tests.core.test_core_adaptive_ratios import plan_of

TOPICS, DOCUMENTS, DEPTH, TRIALS = 300, 40, 10, bounded(8, 100)
MEASURES = [parse_measure(text) for text in ("nDCG@10", "AP", "Rprec")]
RELEVANT = np.where(np.arange(TOPICS) % 2 == 0, 2, 20)
STRENGTHS = {"a": (2.2, 0.0), "b": (0.2, 0.8), "c": (0.7, 0.5), "d": (0.9, 0.65), "e": (1.1, 0.8)}
"""Of runs, in topics with little and with much that is relevant."""


def names_of(topics: int) -> tuple[str, ...]:
    return tuple(f"t{number:03}" for number in range(topics))


def lists_of(scores: np.ndarray) -> RankedLists:
    best = np.argsort(-scores, axis=1)[:, :DEPTH]
    docnos = np.array([f"d{document:03}".encode() for document in best.ravel()])
    return RankedLists(names_of(len(scores)), np.arange(len(scores) + 1) * DEPTH, docnos)


def pool_of(
    strengths: dict[str, tuple[float, float]], number: np.ndarray = RELEVANT
) -> tuple[Pool, np.ndarray]:
    rng = np.random.default_rng(1)
    relevant = rng.permuted(np.arange(DOCUMENTS) < number[:, None], axis=1)
    common, much = rng.normal(size=relevant.shape), (number > 2).astype(int)
    runs = {
        tag: lists_of(
            np.array(strength)[much][:, None] * relevant
            + (common + rng.normal(size=relevant.shape)) / np.sqrt(2.0)
        )
        for tag, strength in strengths.items()
    }
    pool = build_pool(names_of(len(relevant)), runs, depth=DEPTH)
    documents = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return pool, relevant[pool.topic, documents].astype(np.int64)


def samples_of(
    pool: Pool, grades: np.ndarray, measure: Measure, *, judged: int = 2, trials: int = TRIALS
) -> list[tuple[AdaptiveRound, LabelRows]]:
    plan = plan_of(pool, measure, budget=judged * TOPICS, batches=4)
    return [played(pool, grades, plan, seed=f"k{trial}") for trial in range(trials)]


def results_of(
    pool: Pool, measure: Measure, drawn: AdaptiveRound, labels: LabelRows
) -> MeasureResult:
    return evaluate(pool, drawn, labels=labels, measures=[measure], max_grade=1).results[0]


def as_ratios_are(by_topic: np.ndarray, *_: np.ndarray) -> tuple[np.ndarray, Rest]:
    """The twin that knows nothing of the second order."""
    runs = by_topic.shape[1]
    return by_topic, Rest(np.zeros(runs), np.zeros((runs, runs)), np.zeros(runs))


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[np.ndarray, np.ndarray]]:
    """Values by topics, and to the second order, of all that is estimated from now on."""
    kept: list[tuple[np.ndarray, np.ndarray]] = []

    def recording(by_topic: np.ndarray, *given: np.ndarray) -> tuple[np.ndarray, Rest]:
        kept.append((by_topic, given[0]))
        return followed(by_topic, *given)

    monkeypatch.setattr(ratios, "followed", recording)
    return kept


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_intervals_allow_for_what_a_model_cannot_know(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two judged of each topic."""
    pool, grades = pool_of(STRENGTHS)
    truth = true_values(pool, grades=grades, measure=measure)
    true, two = np.subtract.outer(truth, truth), np.triu_indices(len(truth), 1)
    samples = samples_of(pool, grades, measure)
    covered, known = {}, {}
    for told in (followed, as_ratios_are):
        monkeypatch.setattr(ratios, "followed", told)
        found = [results_of(pool, measure, *sample) for sample in samples]
        off = np.array([np.abs(each.ranking.difference - true)[two] for each in found])
        covered[told] = (off <= [each.ranking.margin[two] for each in found]).mean()
        values = np.array([np.abs(each.estimate.value - truth) for each in found])
        known[told] = (values <= [each.estimate.half_width for each in found]).mean()
        reversed_ones = [np.any(each.ranking.verdicts * true < 0) for each in found]
        assert told is as_ratios_are or not any(reversed_ones)
    assert covered[followed] > max(0.75, covered[as_ratios_are] + 0.1)
    assert known[followed] >= max(0.85, known[as_ratios_are] + 0.03)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_values_follow_what_is_sure(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six judged of each topic, of Rprec four, as models tell such kinds apart with six."""
    pool, grades = pool_of(STRENGTHS)
    truth = true_values(pool, grades=grades, measure=measure)
    judged = 4 if measure.name == "Rprec" else 6
    samples = samples_of(pool, grades, measure, judged=judged, trials=TRIALS // 2)
    errors, held = {}, {}
    for told in (followed, as_ratios_are):
        monkeypatch.setattr(ratios, "followed", told)
        found = [results_of(pool, measure, *sample).estimate for sample in samples]
        off = np.array([each.value - truth for each in found])
        errors[told] = np.sqrt(np.mean(off**2))
        within = np.array([each.low <= truth for each in found])
        held[told] = (within & np.array([truth <= each.high for each in found])).mean(axis=0)
    assert errors[followed] < (0.9 if measure.name == "Rprec" else 0.75) * errors[as_ratios_are]
    assert held[followed].min() >= 0.75 > held[as_ratios_are].min()


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_products_of_finds_tell_what_values_are_off_by(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the two runs that are good in other kinds; not what is linear in finds alone."""
    pool, grades = pool_of(STRENGTHS)
    truth = true_values(pool, grades=grades, measure=measure)
    kept, lines = recorded(monkeypatch), []

    def beside(
        measure: Measure, at: Tangent, reach: np.ndarray, found: SecondMoments
    ) -> np.ndarray:
        lines.append(at.along(reach))
        return second_order.to_second_order(measure, at, reach, found)

    monkeypatch.setattr(ratios, "to_second_order", beside)
    for sample in samples_of(pool, grades, measure, judged=4):
        results_of(pool, measure, *sample)
    by_value, to_second_order, by_line = (
        np.mean([each[:, 0].sum() - each[:, 1].sum() for each in some]) - truth[0] + truth[1]
        for some in (*zip(*kept, strict=True), lines)
    )
    assert by_value < -0.1
    assert abs(to_second_order) < 0.4 * abs(by_value) < abs(by_line)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_nothing_is_left_where_all_is_judged(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Around what a model expects it would be as much as the model is wrong about."""
    pool, grades = pool_of(STRENGTHS, RELEVANT[:30])
    kept = recorded(monkeypatch)
    plan = plan_of(pool, measure, budget=len(pool), batches=3)
    results_of(pool, measure, *played(pool, grades, plan))
    ((value, further),) = kept
    assert further == pytest.approx(value, abs=1e-12)
    values, rest = followed(value, further, np.zeros(value.shape[1]))
    assert values == pytest.approx(value, abs=1e-12)
    assert rest.of_values == pytest.approx(0.0, abs=1e-12)
    assert rest.of_differences == pytest.approx(0.0, abs=1e-12)


# ---------------------------------------------------------------------- the expansion


def tangent_at(pool: Pool, measure: Measure, reach: np.ndarray) -> Tangent:
    gains = Gains(np.array([1.0]), reach, np.arange(len(pool)), np.ones(len(pool)))
    return Tangent.of(Frame.of(pool, measure, gains, None), measure)


@pytest.mark.parametrize("measure", MEASURES[1:], ids=str)
def test_what_is_left_out_is_of_the_third_order(measure: Measure) -> None:
    """By a line alone it is of the second: half of a step leaves a quarter. (That of Rprec is taken
    over a whole document: how steep it is hangs on the step.)"""
    pool, grades = pool_of(STRENGTHS, RELEVANT[:30])
    reach = (0.3 + 0.5 * grades)[None, :]
    at, step = tangent_at(pool, measure, reach), np.random.default_rng(1).normal(size=reach.shape)
    none = SecondMoments(np.zeros_like(at.by_topic), *np.zeros((2, 1, len(at.by_topic))))
    left, by_line = [], []
    for size in (0.04, 0.02):
        moved = reach + size * step
        true = tangent_at(pool, measure, moved).by_topic
        left.append(np.abs(second_order.to_second_order(measure, at, moved, none) - true).mean())
        by_line.append(np.abs(at.along(moved) - true).mean())
    assert left[1] < 0.1 * by_line[1]
    if measure.name == "AP":
        assert left[0] / left[1] > 6.0
        assert by_line[0] / by_line[1] < 5.0


def test_ideal_lists_bend_as_their_second_difference_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists that are squares of counts bend by the square of a step, less what pairs have alone."""
    pool, grades = pool_of(STRENGTHS, RELEVANT[:30])
    at = tangent_at(pool, MEASURES[0], 1.0 + grades[None, :])
    count = at.frame.per_topic(at.frame.gains.reach[0])
    monkeypatch.setattr(second_order, "discounted", lambda _measure, number: number**2)
    moved = np.random.default_rng(2).normal(size=(1, len(pool)))
    square = at.frame.per_topic(moved[0]) ** 2
    alone = 0.3 * square[None, :]
    assert np.all(count > np.sqrt(square)), "no step goes below 0"

    def bent(measure: Measure, number: np.ndarray) -> np.ndarray:
        found = SecondMoments(np.zeros_like(at.by_topic), alone, number[None, :])
        return second_order._bent_list(measure, at, moved, found)

    assert bent(MEASURES[0], np.zeros_like(count)) == pytest.approx(0.7 * square)
    assert not bent(MEASURES[0], count).any(), "it can only become longer"
    assert not bent(MEASURES[1], np.zeros_like(count)).any()


# ---------------------------------------------------------------------- what is followed


def test_chance_is_hardly_followed_and_its_square_not_allowed_for() -> None:
    rng, none = np.random.default_rng(3), np.zeros((50, 2))
    noise = rng.normal(size=(2000, 50, 2))
    told = [followed(none, each, np.zeros(2)) for each in noise]
    followed_by = np.array([values.sum(axis=0) for values, _ in told])
    assert np.mean(followed_by**2) < 0.02 * 50.0
    assert abs(followed_by.mean()) < 0.1
    of_values = np.mean([rest.of_values for _, rest in told])
    of_differences = np.mean([rest.of_differences[0, 1] for _, rest in told])
    for square, variance in ((of_values, 50.0), (of_differences, 100.0)):
        assert 0.4 < square / variance < 0.6  # E max(z^2 - 1, 0) = .48


def test_what_is_sure_is_followed_and_the_rest_allowed_for() -> None:
    off = np.array([0.4, 0.0]) + 0.5 * np.random.default_rng(4).normal(size=(400, 2))
    values, rest = followed(np.zeros((400, 2)), off, np.zeros(2))
    total, chance = off.sum(axis=0), ((off - off.mean(axis=0)) ** 2).sum(axis=0)
    share = 1.0 - second_order.SURE**2 * chance[0] / total[0] ** 2
    assert share > 0.9
    assert values.sum(axis=0) == pytest.approx([share * total[0], 0.0])
    left = (1.0 - share) ** 2 * (total[0] ** 2 - chance[0])
    assert rest.of_values[0] == pytest.approx(max(left, 0.0) + share**2 * chance[0])
    assert np.array_equal(rest.of_differences, rest.of_differences.T)
    assert np.all(np.diag(rest.of_differences) == 0.0)
    small = followed(np.zeros((400, 2)), off, np.full(2, total[0] ** 2 / 4.0))
    assert not small[0].any(), "two standard errors of the value"
    assert small[1].of_values[0] == pytest.approx(total[0] ** 2 - chance[0])


def test_few_topics_tell_no_sampling_variance() -> None:
    some = np.ones((second_order.LEAST_TOPICS - 1, 2))
    values, rest = followed(some, 2.0 * some, np.zeros(2))
    assert values is some
    assert not rest.of_values.any()
    assert not rest.of_differences.any()
