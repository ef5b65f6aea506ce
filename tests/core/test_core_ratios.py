"""Ratio measures from samples: what can be checked exactly."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.ratio_frames import DrawChances, Frame, Gains
from estimation.core.estimates.ratio_lines import Numerator, Tangent, denominator
from estimation.core.inference.unknown import Reason
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample
from estimation.research.simulation import true_topic_values, true_values
from tests.core.ratio_pools import (
    AP,
    EXACT,
    METHODS,
    RATIOS,
    TOPICS,
    design_for,
    grades_of,
    pool_with,
    results,
    three_runs,
)


@pytest.fixture
def pool() -> Pool:
    return three_runs()


# --------------------------------------------------------------------- exactly, all samples


def lists(**topics: str) -> RankedLists:
    docnos = [letter.encode() for row in topics.values() for letter in row]
    bounds = np.cumsum([0, *map(len, topics.values())])
    return RankedLists(tuple(topics), bounds, np.array(docnos, dtype=np.bytes_))


@pytest.fixture
def small() -> Pool:
    """Two topics, three runs, seven pairs, one of them (z of t2) returned by no run."""
    runs = {
        "alpha": lists(t1="abcd", t2="xy"),
        "beta": lists(t1="dcb", t2="yx"),
        "gamma": lists(t1="ca"),
    }
    return build_pool(["t1", "t2"], runs, depth=4, extra={"t2": ["z"]})


UTILITY = np.array([1.0, 0.5, 1.0, 0.75, 1.0, 0.5, 1.0])
INCLUSION = np.array([0.3, 0.6, 1.0, 0.5, 0.4, 0.7, 0.2])
CHANCE = np.array([0.1, 0.2, 0.15, 0.05, 0.25, 0.15, 0.1])
Moments = tuple[np.ndarray, np.ndarray]


def by_definition(pool: Pool, utility: np.ndarray, cutoff: int = 99) -> Moments:
    """Numerators of AP (T, k) and R (T,), pair by pair."""
    numerator = np.zeros((len(pool.topics), len(pool.runs)))
    for topic, run in product(range(len(pool.topics)), range(len(pool.runs))):
        entries = np.flatnonzero((pool.run == run) & (pool.topic[pool.entry_pair] == topic))
        placed = [(int(pool.rank[e]), int(pool.entry_pair[e])) for e in entries]
        for rank, pair in placed:
            if rank <= cutoff:
                above = sum(utility[other] for r, other in placed if r < rank)
                numerator[topic, run] += utility[pair] * (1.0 + above) / rank
    return numerator, np.bincount(pool.topic, weights=utility)


def frame_of(
    pool: Pool,
    pairs: np.ndarray,
    inclusion: np.ndarray,
    draws: DrawChances | None,
    measure: Measure,
) -> Frame:
    gains = Gains(np.ones(1), UTILITY[None, pairs], pairs, inclusion)
    return Frame.of(pool, measure, gains, draws)


def poisson_frames(pool: Pool, measure: Measure = AP) -> Iterator[tuple[float, Frame]]:
    for taken in product([False, True], repeat=len(pool)):
        probability = float(np.prod(np.where(taken, INCLUSION, 1 - INCLUSION)))
        pairs = np.flatnonzero(taken)
        yield probability, frame_of(pool, pairs, INCLUSION[pairs], None, measure)


def iid_frames(pool: Pool, number: int) -> Iterator[tuple[float, Frame]]:
    for sequence in product(range(len(pool)), repeat=number):
        pairs = np.unique(sequence)
        probability = float(np.prod(CHANCE[list(sequence)]))
        inclusion = 1.0 - (1.0 - CHANCE[pairs]) ** number
        draws = DrawChances(CHANCE[pairs], number, False)
        yield probability, frame_of(pool, pairs, inclusion, draws, AP)


def per_query_frames(pool: Pool, number: int) -> Iterator[tuple[float, Frame]]:
    chance = CHANCE / np.bincount(pool.topic, weights=CHANCE)[pool.topic]
    inside = [np.flatnonzero(pool.topic == topic).tolist() for topic in range(2)]
    for first in product(inside[0], repeat=number):
        for second in product(inside[1], repeat=number):
            pairs = np.unique(first + second)
            probability = float(np.prod(chance[[*first, *second]]))
            inclusion = 1.0 - (1.0 - chance[pairs]) ** number
            draws = DrawChances(chance[pairs], number, True)
            yield probability, frame_of(pool, pairs, inclusion, draws, AP)


def mean_of(frames: Iterator[tuple[float, Frame]], twin=None, measure: Measure = AP) -> Moments:
    total, numerator, count = 0.0, 0.0, 0.0
    for probability, frame in frames:
        total += probability
        found = Numerator.of(frame if twin is None else twin(frame), measure).total
        numerator = numerator + probability * found
        count = count + probability * denominator(frame, AP).value
    assert total == pytest.approx(1.0, abs=1e-12)
    return np.asarray(numerator), np.asarray(count)


FRAMES = {
    "poisson": poisson_frames,
    "iid, 2": lambda pool: iid_frames(pool, 2),
    "iid, 3": lambda pool: iid_frames(pool, 3),
    "per-query, 2": lambda pool: per_query_frames(pool, 2),
    "per-query, 3": lambda pool: per_query_frames(pool, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("design", FRAMES)
def test_numerator_and_count_are_unbiased(small: Pool, design: str) -> None:
    numerator, count = mean_of(FRAMES[design](small))
    expected = by_definition(small, UTILITY)
    assert numerator == pytest.approx(expected[0], **EXACT)
    assert count == pytest.approx(expected[1], **EXACT)


def test_numerator_at_a_cutoff_is_unbiased_and_counts_all_relevant(small: Pool) -> None:
    cut = parse_measure("AP@2")
    numerator, count = mean_of(poisson_frames(small, cut), measure=cut)
    assert numerator == pytest.approx(by_definition(small, UTILITY, cutoff=2)[0], **EXACT)
    assert count == pytest.approx(by_definition(small, UTILITY)[1], **EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("design", FRAMES)
def test_twin_with_the_printed_form_is_caught(small: Pool, design: str) -> None:
    """1/(pi_i pi_l) also for i = l, as Li and Kanoulas (2017) print it."""
    expected, total = by_definition(small, UTILITY)[0], 0.0
    for probability, frame in FRAMES[design](small):
        value = frame.expanded[frame.place]
        squared = value * (1.0 / frame.gains.inclusion[frame.place] - 1.0) / frame.rank
        total = total + probability * (Numerator.of(frame, AP).total + frame.per_cell(squared))
    returned = expected > 0.0
    assert np.all(total[returned] > expected[returned] * 1.05)


@pytest.mark.slow
@pytest.mark.parametrize("design", [name for name in FRAMES if name != "poisson"])
def test_twin_that_takes_draws_for_independent_is_caught(small: Pool, design: str) -> None:
    numerator, _ = mean_of(FRAMES[design](small), twin=lambda frame: replace(frame, draws=None))
    assert numerator != pytest.approx(by_definition(small, UTILITY)[0], rel=1e-3)


@pytest.mark.slow
def test_numerator_and_count_are_unbiased_under_priority_sampling(small: Pool) -> None:
    """Within 4 standard errors over 4000 samples; the printed form is off by more."""
    goal = goals.absolute(*small.runs)
    prior = make_prior(small, name="rank", goal=goal, measure=AP, max_grade=1)
    design = make_design(
        small, goal=goal, measure=AP, prior=prior, budget=4, batch_size=4, method="priority"
    )
    found, printed, counts = [], [], []
    for number in range(4000):
        sample = draw(small, design, seed=f"priority {number}")
        frame = frame_of(small, sample.pair, sample.probability, None, AP)
        value = frame.expanded[frame.place] / frame.rank
        squared = frame.per_cell(value * (1.0 / frame.gains.inclusion[frame.place] - 1.0))
        found.append(Numerator.of(frame, AP).total[:, :2].ravel())
        printed.append(found[-1] + squared[:, :2].ravel())
        counts.append(denominator(frame, AP).value)
    numerator, count = by_definition(small, UTILITY)
    assert np.abs(errors(found, numerator[:, :2].ravel())).max() < 4.0
    assert np.abs(errors(counts, count)).max() < 4.0
    assert np.abs(errors(printed, numerator[:, :2].ravel())).min() > 4.0


def errors(values: list[np.ndarray], truth: np.ndarray) -> np.ndarray:
    """Mean less truth, in standard errors of the mean."""
    sample = np.array(values)
    return (sample.mean(axis=0) - truth) / (sample.std(axis=0, ddof=1) / np.sqrt(len(sample)))


@pytest.mark.slow
def test_independent_judgments_of_two_assessors_leave_the_numerator_unbiased(small: Pool) -> None:
    share = np.array([0.3, 0.5, 0.8, 0.6])  # of assessors who find a document of t1 relevant
    total = 0.0
    for votes in product([0, 1, 2], repeat=4):
        chance = np.array([[(1 - s) ** 2, 2 * s * (1 - s), s**2] for s in share])
        vote_probability = float(np.prod(chance[np.arange(4), list(votes)]))
        for taken in product([False, True], repeat=4):
            drawn = float(np.prod(np.where(taken, INCLUSION[:4], 1 - INCLUSION[:4])))
            pairs = np.flatnonzero(taken)
            utility = np.array(votes)[pairs] / 2.0
            gains = Gains(np.ones(1), utility[None, :], pairs, INCLUSION[pairs])
            found = Numerator.of(Frame.of(small, AP, gains, None), AP).total
            total = total + drawn * vote_probability * found
    expected = by_definition(small, np.concatenate([share, np.zeros(3)]))[0]
    assert total == pytest.approx(expected, **EXACT)


# --------------------------------------------------------------------------------- slopes


@pytest.mark.parametrize("measure", [AP, parse_measure("AP@2"), parse_measure("nDCG@1")], ids=str)
def test_slopes_are_the_derivatives_by_the_weights_of_pairs(small: Pool, measure) -> None:
    """By central differences; nDCG@1 has a flat ideal, where secant and derivative agree."""
    pairs = np.arange(len(small))
    line = Tangent.of(frame_of(small, pairs, INCLUSION, None, measure), measure)
    z = line.moved(pairs, UTILITY[None, :])
    for pair in pairs.tolist():
        ends = []
        for step in (1e-6, -1e-6):
            inclusion = INCLUSION.copy()
            inclusion[pair] = 1.0 / (1.0 / inclusion[pair] + step)
            moved = Tangent.of(frame_of(small, pairs, inclusion, None, measure), measure)
            ends.append(moved.by_topic.sum(axis=0))
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(z[pair], rel=1e-6, abs=1e-8)


@pytest.mark.slow
def test_slopes_of_joint_probabilities_add_up_to_the_numerator(small: Pool) -> None:
    """The numerator has terms of one and of two documents, which slopes count once and twice."""
    for _, frame in iid_frames(small, 3):
        found = Numerator.of(frame, AP)
        value = frame.expanded[frame.place]
        alone = frame.per_cell(value / frame.rank)
        assert frame.per_cell(value * found.slope) == pytest.approx(2 * found.total - alone)


# ------------------------------------------------------------------------- through evaluate


@pytest.mark.parametrize("method", ["poisson", "priority"])
def test_a_census_is_certain_and_exact(pool: Pool, method: str) -> None:
    for found in results(pool, method, budget=len(pool)):
        truth = true_topic_values(pool, grades=grades_of(pool), measure=found.measure)
        assert found.by_topic * len(TOPICS) == pytest.approx(truth, **EXACT)
        assert found.estimate.value == pytest.approx(truth.mean(axis=0), **EXACT)
        assert np.all(found.estimate.se == 0.0)
        assert np.all(found.estimate.low == found.estimate.value)
        assert np.all(found.estimate.high == found.estimate.value)
        assert np.all(found.ratio_bias == 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["iid", "per-query"])
def test_very_many_draws_come_to_the_truth(pool: Pool, method: str) -> None:
    """Every pair is drawn, and counts once however often that was."""
    for found in results(pool, method, budget=200_000):
        truth = true_values(pool, grades=grades_of(pool), measure=found.measure)
        assert found.estimate.value == pytest.approx(truth, abs=1e-6)
        assert np.all(found.estimate.se < 1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_what_topics_contribute_adds_up(pool: Pool, method: str) -> None:
    for found in results(pool, method):
        assert found.primary == "ht"
        assert found.by_topic.sum(axis=0) == pytest.approx(found.estimate.value, rel=1e-12)
        assert found.by_topic.min() >= 0.0
        assert found.relevant_found.shape == (len(TOPICS),)


def numbers_of(found) -> list[np.ndarray]:
    estimate = found.estimate
    return [estimate.value, estimate.se, estimate.low, estimate.high, estimate.covariance,
            found.by_topic, found.ratio_bias]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_order_of_label_rows_does_not_change_a_bit(pool: Pool, method: str) -> None:
    design = design_for(pool, method)
    sample = draw(pool, design, seed="s")
    rng = np.random.default_rng(4)
    pair = np.repeat(sample.pair, rng.integers(1, 4, len(sample)))
    grade = np.minimum(grades_of(pool)[pair] + rng.integers(0, 2, len(pair)), 3)
    order = rng.permutation(len(pair))
    both = [
        evaluate(
            pool,
            PairRound(design, sample),
            labels=LabelRows(pair[o], grade[o]),
            measures=RATIOS,
            max_grade=3,
        ).results
        for o in (np.arange(len(pair)), order)
    ]
    for before, after in zip(*both, strict=True):
        for first, second in zip(numbers_of(before), numbers_of(after), strict=True):
            assert first.tobytes() == second.tobytes()
    fewer = grade.copy()
    fewer[np.argmax(fewer == 1)] = 0
    changed = evaluate(
        pool, PairRound(design, sample), labels=LabelRows(pair, fewer), measures=RATIOS, max_grade=3
    ).results
    assert changed[0].estimate.value.tobytes() != both[0][0].estimate.value.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_renaming_runs_permutes_values(pool: Pool, method: str) -> None:
    """With the same sample; a design made anew differs in the last bit of its sizes."""
    renamed = pool_with(["z", "y", "x"])
    back = [pool.runs.index(old) for old in ("one", "three", "two")]
    places = [renamed.runs.index(new) for new in "zyx"]
    design = design_for(pool, method)
    sample = draw(pool, design, seed="s")
    labels = LabelRows(sample.pair, grades_of(pool)[sample.pair])
    before, after = (
        evaluate(
            each,
            PairRound(
                replace(design, pool_digest=each.digest), replace(sample, pool_digest=each.digest)
            ),
            labels=labels, measures=RATIOS, max_grade=3,
        ).results
        for each in (pool, renamed)
    )  # fmt: skip
    for first, second in zip(before, after, strict=True):
        for name in (
            "se",
            "low",
            "high",
            "value",
        ):  # outlooks add up what a pair's runs say in order
            old, new = getattr(first.estimate, name)[back], getattr(second.estimate, name)[places]
            assert new == pytest.approx(old, rel=1e-12), name
        assert second.by_topic[:, places] == pytest.approx(first.by_topic[:, back], rel=1e-12)


def test_a_topic_without_relevant_documents_counts_zero(pool: Pool) -> None:
    grades = np.where(pool.topic == 3, 0, grades_of(pool))
    for found in results(pool, "poisson", grades=grades):
        assert np.all(found.by_topic[3] == 0.0)
        assert found.relevant_found[3] == 0


@pytest.mark.slow
def test_where_nothing_relevant_was_found_everything_is_withheld(pool: Pool) -> None:
    for method in METHODS:
        for found in results(pool, method, grades=np.zeros(len(pool), dtype=np.int64)):
            assert found.estimate.value.tolist() == [0.0] * 3
            assert found.estimate.unknown.tolist() == [Reason.FEW_RELEVANT] * 3
            others = ~np.eye(3, dtype=bool)
            assert np.all(found.ranking.unknown[others] == Reason.FEW_RELEVANT)
            assert not found.ranking.verdicts.any()


@pytest.mark.slow
@pytest.mark.parametrize("relevant", [(), (3,)])
@pytest.mark.parametrize("method", METHODS)
def test_several_judgments_of_what_is_of_no_use_tell_as_much_as_one(
    pool: Pool, method: str, relevant: tuple[int, ...]
) -> None:
    """Also where nothing useful was found yet, in all topics or in all but one."""
    design = design_for(pool, method)
    sample, grades = draw(pool, design, seed="s"), grades_of(pool)
    pair = np.sort(np.unique(sample.pair))
    told = np.where(np.isin(pool.topic, relevant), np.maximum(grades, 1), 0)[pair]
    asked = {"measures": RATIOS, "max_grade": 3}
    for times in (2, np.where(np.arange(len(pair)) % 3 == 0, 1, 2)):
        once, often = (
            evaluate(pool, PairRound(design, sample), labels=labels, **asked).results
            for labels in (
                LabelRows(pair, told),
                LabelRows(np.repeat(pair, times), np.repeat(told, times)),
            )
        )
        for one, other in zip(once, often, strict=True):
            assert other.estimate.value == pytest.approx(one.estimate.value, rel=1e-4)
            np.testing.assert_array_equal(other.estimate.unknown, one.estimate.unknown)
            assert np.isfinite(other.estimate.high).all()


def test_where_every_find_was_certain_what_may_be_missing_counts(pool: Pool) -> None:
    """No squares of uncertain finds, but the outlook expects more among the uncertain pairs."""
    design = design_for(pool, "poisson")
    certain = design.inclusion() >= 1.0
    for found in results(pool, "poisson", grades=np.where(certain, grades_of(pool), 0)):
        assert np.all(np.diag(found.estimate.covariance) == 0.0)
        shown = found.estimate.unknown == Reason.KNOWN
        assert np.all(found.estimate.se[shown] > 0.0)


@pytest.mark.slow
def test_ratios_are_never_more_than_one(pool: Pool) -> None:
    for seed in range(20):
        for found in results(pool, "poisson", budget=30, seed=f"few {seed}"):
            assert np.all(found.estimate.high <= np.maximum(found.estimate.value, 1.0))
            assert np.all(found.estimate.low >= 0.0)


# ------------------------------------------------------------------------ graded, by hand


def single_list(letters: str, grades: dict[str, int], extra: str = "") -> tuple[Pool, np.ndarray]:
    pool = build_pool(["t"], {"r": lists(t=letters)}, depth=9, extra={"t": list(extra)})
    return pool, np.array([grades.get(docno.decode(), 0) for docno in pool.docno])


def test_measures_of_one_list_by_hand() -> None:
    pool, grades = single_list("abcde", {"a": 1, "c": 3, "e": 2, "y": 2, "z": 3}, extra="yz")

    def value(text: str) -> float:
        return float(true_values(pool, grades=grades, measure=parse_measure(text))[0])

    log = np.log2(np.arange(2, 9))
    assert value("AP") == pytest.approx((1 + 2 / 3 + 3 / 5) / 5)
    assert value("AP(rel=2)") == pytest.approx((1 / 3 + 2 / 5) / 4)
    assert value("AP@3") == pytest.approx((1 + 2 / 3) / 5)
    assert value("Rprec") == pytest.approx(3 / 5)
    found, ideal = 1 / log[0] + 3 / log[2] + 2 / log[4], np.array([3, 3, 2, 2, 1]) / log[:5]
    assert value("nDCG") == pytest.approx(found / ideal.sum())
    assert value("nDCG(dcg='ln')") == pytest.approx(found / ideal.sum())
    assert value("nDCG@3") == pytest.approx((1 / log[0] + 3 / log[2]) / ideal[:3].sum())
    found, ideal = 1 / log[0] + 7 / log[2] + 3 / log[4], np.array([7, 7, 3, 3, 1]) / log[:5]
    assert value("nDCG(dcg='exp-log2')") == pytest.approx(found / ideal.sum())


def sampled_values(pool: Pool, grades: np.ndarray, inclusion: np.ndarray, text: str) -> float:
    """The uncorrected ratio of a Poisson sample that took everything."""
    goal = goals.absolute(*pool.runs)
    measure = parse_measure(text)
    prior = make_prior(pool, name="constant", goal=goal, measure=measure, max_grade=3)
    design = make_design(
        pool, goal=goal, measure=measure, prior=prior, budget=1, batch_size=1, floor=0.0
    )
    design = replace(design, size=inclusion / inclusion.sum(), steps=inclusion.sum()[None])
    every = np.arange(len(pool))
    sample = Sample(every, np.ones(len(pool), dtype=np.int32), inclusion, every[:0], pool.digest)
    found = evaluate(
        pool,
        PairRound(design, sample),
        labels=LabelRows(every, grades),
        measures=[measure],
        max_grade=3,
    ).results[0]
    return float(found.estimate.value[0] + found.ratio_bias[0])


def test_counts_between_whole_numbers_are_interpolated() -> None:
    pool, grades = single_list("abc", {"a": 1, "c": 2})
    inclusion = np.array([0.8, 0.5, 0.4])
    count = 1 / 0.8 + 1 / 0.4  # 3.75; one of grade 2: 2.5
    ideal = (1 + 1 / np.log2(3) + 0.5 + 0.75 / np.log2(5)) + (1 + 1 / np.log2(3) + 0.5 * 0.5)
    found = 1 / 0.8 + 2 / 0.4 / 2
    assert sampled_values(pool, grades, inclusion, "nDCG") == pytest.approx(found / ideal)
    assert sampled_values(pool, grades, inclusion, "Rprec") == pytest.approx(1.0)
    assert sampled_values(pool, grades, inclusion, "AP") == pytest.approx(
        (1 / 0.8 + (1 + 1 / 0.8) / 0.4 / 3) / count
    )
    inclusion = np.array([1.0, 0.5, 0.8])  # R = 2.25: the third rank is in by a quarter
    assert sampled_values(pool, grades, inclusion, "Rprec") == pytest.approx(
        (1 + 0.25 / 0.8) / 2.25
    )
