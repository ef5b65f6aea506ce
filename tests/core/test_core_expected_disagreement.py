"""Pairs with one judgment have the disagreement that it lets one expect."""

import numpy as np
import pytest

from estimation.core.data import labels as labels_of
from estimation.core.data.labels import LabelRows, PairLabels, pair_labels
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates import ratio_moments
from estimation.core.estimates.ratio_frames import Frame, Gains
from estimation.core.estimates.ratio_labels import levels_reached
from estimation.core.estimates.ratio_lines import Tangent
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values

DCG = parse_measure("DCG@10")
TOPICS, DOCUMENTS, WRONG, TWICE, TRIALS = 20, 10, 0.2, 0.1, 60
# What pairs judged (1, 3) and (2, 2) add to the spreads of grades 1, 2 and 3, and to their numbers.
SEEN = [(0.5 * 2.0, 0.5), (0.0, 1.0), (0.5 * 2.0, 0.5)]


def rows_of(*grades: tuple[int, ...], repeated: list[float] | None = None) -> LabelRows:
    """The judgments of pairs one after the other."""
    pair = np.repeat(np.arange(len(grades)), [len(each) for each in grades])
    grade = np.array([grade for each in grades for grade in each])
    return LabelRows(pair, grade, None if repeated is None else np.array(repeated)[pair])


def expected_of(rows: LabelRows) -> PairLabels:
    return pair_labels(rows, pairs=int(rows.pair.max()) + 1, measure=DCG)


def test_it_is_that_of_the_pairs_that_were_judged_twice_and_have_the_grade() -> None:
    labels = expected_of(rows_of((0, 0), (0, 2), (1, 1), (0,), (1,), (2,)))
    of_all = (2.0 + 1 / 2) / (3 + 1)  # s2 of the second pair, and of the one that is thought up
    others = labels_of.OTHERS
    useless, useful, best = (
        (0.5 * 2.0 + others * of_all) / (1.5 + others),
        (0.0 + others * of_all) / (1.0 + others),
        (0.5 * 2.0 + others * of_all) / (0.5 + others),
    )
    of_each = [useless, (useless + best) / 2, useful, useless, useful, best]
    assert labels.expected == pytest.approx(of_each)
    told = labels.with_expected()
    assert told.noise == pytest.approx([0, 1.0, 0, useless, useful, best])
    assert told.likely_noise == pytest.approx(np.array(of_each) / [2, 2, 2, 1, 1, 1])
    some = np.array([1, 4])
    assert told.of(some).noise == pytest.approx(told.noise[some])
    assert told.of(some).likely_noise == pytest.approx(told.likely_noise[some])


def test_pairs_count_for_as_many_as_they_stand_for() -> None:
    """The first was hardly to be judged twice, and stands for nine; the second was, for none."""
    labels = expected_of(rows_of((0, 1), (0, 0), (0,), repeated=[0.1, 1.0, 0.1]))
    others = labels_of.OTHERS
    of_all = (2 * 0.5 + 0.5) / (2 + 1)
    assert labels.expected[2] == pytest.approx((1.0 * 0.5 + others * of_all) / (1.0 + others))
    alike = expected_of(rows_of((0, 1), (0, 0), (0,), repeated=[1.0, 1.0, 0.1]))
    assert np.isfinite(alike.expected).all(), "those that were to be judged twice stand for none"


def test_where_none_was_judged_twice_nothing_is_expected() -> None:
    labels = expected_of(rows_of((0,), (2,)))
    assert labels.expected is None
    assert labels.likely_noise is None
    assert labels.with_expected() is labels


def test_where_all_were_judged_twice_none_has_no_noise_to_expect() -> None:
    """The estimate of their variance stays what their own judgments say, without bias."""
    labels = expected_of(rows_of((0, 2), (1, 1), (0, 0)))
    assert labels.with_expected().noise == pytest.approx([1.0, 0, 0])
    assert np.all(labels.with_expected().likely_noise > 0.1)


def alike() -> tuple[Pool, np.ndarray]:
    """Two runs that differ in the order of two documents of three topics, and a third."""
    generator = np.random.default_rng(3)
    topics = [f"t{number:02}" for number in range(TOPICS)]
    names = np.array([f"d{at}".encode() for at in range(DOCUMENTS)])
    first = [generator.permutation(names) for _ in topics]
    second = [each.copy() for each in first]
    for each in second[:3]:
        each[[3, 4]] = each[[4, 3]]
    third = [generator.permutation(names) for _ in topics]
    bounds = np.arange(TOPICS + 1) * DOCUMENTS
    runs = {
        tag: RankedLists(tuple(topics), bounds, np.concatenate(lists))
        for tag, lists in {"a": first, "b": second, "c": third}.items()
    }
    pool = build_pool(topics, runs, depth=DOCUMENTS)
    return pool, (generator.random(len(pool)) < 0.4).astype(np.int64)


def false_verdicts(measure: Measure = DCG) -> float:
    """Share of campaigns in which assessors who err tell alike runs apart: both are as good.

    Everything is judged once, and one pair in ten twice.
    """
    pool, grades = alike()
    about = {"goal": goals.ranking(*pool.runs), "measure": measure, "max_grade": 1}
    prior = make_prior(pool, name="rank", **about)
    budget = len(pool)
    planned = make_design(pool, prior=prior, budget=budget, batch_size=budget, **about)
    part = PairRound(planned, draw(pool, planned, seed="x"))
    swapped = np.flatnonzero(pool.topic < 3)
    grades[swapped] = 1  # so that the truth is a tie, with any share of errors
    told = []
    for trial in range(TRIALS):
        generator = np.random.default_rng(trial)
        pairs = np.append(np.arange(len(pool)), np.flatnonzero(generator.random(len(pool)) < TWICE))
        wrong = generator.random(len(pairs)) < WRONG
        labels = LabelRows(pairs, np.where(wrong, 1 - grades[pairs], grades[pairs]))
        asked = {"labels": labels, "measures": [measure], "max_grade": 1}
        told.append(bool(evaluate(pool, part, **asked).results[0].ranking.verdicts[0, 1]))
    truth = true_values(pool, grades=grades, measure=measure)
    assert truth[0] == pytest.approx(truth[1])
    return float(np.mean(told))


@pytest.mark.slow
def test_runs_that_differ_in_few_pairs_are_not_told_apart_by_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin knows the noise of a difference from the pairs that were judged twice alone."""
    assert false_verdicts() <= 0.05
    monkeypatch.setattr(PairLabels, "with_expected", lambda labels: labels)
    monkeypatch.setattr(PairLabels, "likely_noise", None)
    assert false_verdicts() > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nDCG", "AP"])
def test_nor_by_noise_of_ratios(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The twin, too, knows of no noise but that of pairs that were judged twice."""
    measure = parse_measure(name)
    assert false_verdicts(measure) <= 0.05
    alone = ratio_moments._by_grade
    monkeypatch.setattr(ratio_moments, "_by_grade", lambda *asked: 0.0 * alone(*asked))
    assert false_verdicts(measure) > 0.3


def test_moments_of_one_judgment_are_those_of_its_grade_level_by_level() -> None:
    """By hand, of three levels that add 1 each, u and h of the first pair being 1 and fall / 2."""
    pool, _ = alike()
    measure = parse_measure("nDCG")
    rows = rows_of((1, 3), (2, 2), (0,), (3,))
    labels = levels_reached(rows, 4, measure)
    gains = Gains(labels.gain, labels.reach, np.arange(4), np.ones(4))
    tangent = Tangent.of(Frame.of(pool, measure, gains, None), measure)
    found, likely = ratio_moments._moments(tangent, labels, rows, np.arange(4))
    assert labels.gain.tolist() == [1.0, 1.0, 1.0]
    fall = tangent.level_slope[1:, pool.topic[0]].sum() / 2
    assert found[:, 0] == pytest.approx([1.0, fall, fall**2])
    assert found[:, 1].tolist() == [0.0, 0.0, 0.0]
    of_all, others = (2.0 + 3 * (0.5 / 3)) / (2 + 1), labels_of.OTHERS
    assert found[0, 2] == pytest.approx(of_all)
    assert found[0, 3] == pytest.approx((0.5 * 2.0 + others * of_all) / (0.5 + others))
    assert np.all(found[1] ** 2 <= found[0] * found[2] * (1 + 1e-12))
    assert likely[:, 2:] == pytest.approx(found[:, 2:])
    of_one, of_two, of_three = ((x + others * of_all) / (y + others) for x, y in SEEN)
    assert likely[0, :2] == pytest.approx([(of_one + of_three) / 4, of_two / 2])


def some_topics(runs: dict[str, list[list[int]]]) -> Pool:
    """A pool of lists of documents, a list for each topic."""
    topics = [f"t{number:02}" for number in range(len(next(iter(runs.values()))))]
    lists = {
        tag: RankedLists(
            tuple(topics),
            np.append(0, np.cumsum([len(each) for each in of_topics])),
            np.array([f"d{at:02}".encode() for each in of_topics for at in each]),
        )
        for tag, of_topics in runs.items()
    }
    return build_pool(topics, lists, depth=DOCUMENTS)


def judged_twice(pool: Pool, grades: np.ndarray, measure: Measure, trial: int) -> MeasureResult:
    """A round in which two judge every pair, who err one time in five."""
    about = {"goal": goals.absolute(*pool.runs), "measure": measure, "max_grade": 1}
    prior = make_prior(pool, name="rank", **about)
    budget = len(pool)
    planned = make_design(pool, prior=prior, budget=budget, batch_size=budget, **about)
    part = PairRound(planned, draw(pool, planned, seed="x"))
    pairs = np.repeat(np.arange(len(pool)), 2)
    wrong = np.random.default_rng(trial).random(len(pairs)) < WRONG
    labels = LabelRows(pairs, np.where(wrong, 1 - grades[pairs], grades[pairs]))
    return evaluate(pool, part, labels=labels, measures=[measure], max_grade=1).results[0]


def covered_where_few_pairs_count() -> float:
    """How often a run is covered that returns four documents of one topic of six."""
    lists = [list(range(4)) for _ in range(6)]
    nothing: list[list[int]] = [[]] * 5
    pool = some_topics(
        {"few": [lists[0], *nothing], "all": lists, "back": [x[::-1] for x in lists]}
    )
    grades = (np.arange(len(pool)) % 4 == 0).astype(np.int64)
    measure = parse_measure("P@10")
    few = pool.run_index("few")
    said = WRONG + (1 - 2 * WRONG) * grades
    truth = float(pool.weights(measure, np.arange(len(pool))).toarray()[:, few] @ said)
    told = [judged_twice(pool, grades, measure, trial).estimate for trial in range(300)]
    return float(np.mean([each.low[few] <= truth <= each.high[few] for each in told]))


def test_who_counts_in_few_pairs_is_not_exact_where_these_agree_by_chance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin believes each pair, also those whose two judgments are alike."""
    assert covered_where_few_pairs_count() >= 0.93
    monkeypatch.setattr(PairLabels, "likely_noise", None)
    assert covered_where_few_pairs_count() < 0.8
