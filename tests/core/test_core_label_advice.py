"""Labels per pair compared: against the estimates themselves, by brute force, and its limits."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.table import parse_measure
from estimation.core.planning.label_advice import LabelComparison, compare_labels, supports
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample
from tests.core.length import bounded
from tests.core.plain_estimates import estimates_alone

DCG = parse_measure("DCG@10")
TOPICS = [f"topic {number:02d}" for number in range(20)]
DEPTH = 20


def lists(seed: int) -> RankedLists:
    rng = np.random.default_rng(seed)
    docnos = [f"d{n:02d}".encode() for _ in TOPICS for n in rng.permutation(30)[:DEPTH]]
    return RankedLists(tuple(TOPICS), np.arange(0, len(docnos) + 1, DEPTH), np.array(docnos))


@pytest.fixture(scope="module")
def pool() -> Pool:
    return build_pool(TOPICS, {tag: lists(at) for at, tag in enumerate("abc")}, depth=DEPTH)


def design_of(
    pool: Pool, method: str = "poisson", *, budget: int = 150, batches: int = 2
) -> Design:
    goal = goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=DCG, max_grade=3)
    return make_design(
        pool, goal=goal, measure=DCG, prior=prior, method=method, budget=budget,
        batch_size=-(-budget // batches),
    )  # fmt: skip


def judged(pool: Pool, sample: Sample, number: np.ndarray, *, seed: int = 1, noise: float = 0.3):
    """Judgments of every sampled pair; some of the time an assessor grades at random."""
    rng = np.random.default_rng(seed)
    pair = np.repeat(sample.pair, number)
    truth = (np.random.default_rng(0).random(len(pool)) < 0.3) * 3
    grade = np.where(rng.random(len(pair)) < noise, rng.integers(0, 4, len(pair)), truth[pair])
    return LabelRows(pair, grade)


def same(sample: Sample, number: int) -> np.ndarray:
    return np.full(len(sample.pair), number)


def compared(pool, design, sample, rows, wanted, **options) -> LabelComparison:
    settings = {"measures": [DCG], "max_grade": 3} | options
    part = PairRound(design, sample, settings.pop("batches", design.batches))
    (found,) = compare_labels(pool, part, labels=rows, wanted=wanted, **settings)
    return found


@pytest.mark.parametrize("method", ["poisson", "priority"])
@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("number", [2, 3])
def test_the_number_there_is_gives_the_half_width_there_is(pool, method, batches, number) -> None:
    design = design_of(pool, method)
    sample = draw(pool, design, seed="s")
    rows, wanted = judged(pool, sample, same(sample, number)), same(sample, number)
    found = compared(pool, design, sample, rows, wanted, batches=batches)
    evaluation = evaluate(
        pool, PairRound(design, sample), labels=rows, measures=[DCG], max_grade=3, batches=batches
    )
    variance = np.diag(evaluation.results[0].estimate.covariance)
    chosen = found.choices[number - 1]
    assert chosen.labels == number
    assert chosen.half_width == pytest.approx(1.959963985 * np.sqrt(np.median(variance)), rel=1e-8)
    assert chosen.pairs == pytest.approx(evaluation.judged_pairs)
    assert found.work == evaluation.judgments
    assert found.repeated_pairs == evaluation.judged_pairs


def budget_for(pool: Pool, method: str, pairs: float) -> int:
    """The budget with which so many distinct pairs are expected."""
    budgets = range(20, 500)
    return min(
        budgets, key=lambda n: abs(design_of(pool, method, budget=n).inclusion().sum() - pairs)
    )


def spread(pool: Pool, method: str, number: int, work: float, trials: int) -> float:
    """Standard deviation of the middle run's estimate, drawing and judging again and again."""
    design = design_of(pool, method, budget=budget_for(pool, method, work / number))
    values = []
    for trial in range(trials):
        sample = draw(pool, design, seed=f"trial {trial}")
        rows = judged(pool, sample, same(sample, number), seed=trial)
        with estimates_alone():
            (result,) = evaluate(
                pool, PairRound(design, sample), labels=rows, measures=[DCG], max_grade=3
            ).results
        values.append(result.estimate.value)
    return float(np.median(np.std(values, axis=0, ddof=1)))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_predictions_agree_with_drawing_again(pool: Pool, method: str) -> None:
    """From samples with two labels per pair: what one and three would give for the same labels."""
    design = design_of(pool, method, budget=100)
    predicted = []
    for trial in range(bounded(30, 60)):
        sample = draw(pool, design, seed=f"two {trial}")
        rows = judged(pool, sample, same(sample, 2), seed=1000 + trial)
        found = compared(pool, design, sample, rows, same(sample, 2))
        predicted.append([choice.half_width for choice in found.choices])
    middle = np.median(np.array(predicted, dtype=float), axis=0) / 1.959963985
    work = 2 * design.inclusion().sum()
    truth = np.array([spread(pool, method, number, work, 300) for number in (1, 2, 3)])
    assert middle == pytest.approx(truth, rel=0.1)
    twin = middle[[1, 1, 1]]  # "the number of labels does not matter"
    assert twin != pytest.approx(truth, rel=0.1)


def test_one_label_is_best_while_there_are_pairs_to_judge(pool: Pool) -> None:
    design = design_of(pool)
    sample = draw(pool, design, seed="s")
    found = compared(pool, design, sample, judged(pool, sample, same(sample, 2)), same(sample, 2))
    widths = [choice.half_width for choice in found.choices]
    assert widths == sorted(widths)
    assert found.choices[0].pairs == pytest.approx(2 * found.choices[1].pairs)


def test_further_labels_are_best_once_every_pair_is_judged(pool: Pool) -> None:
    design = design_of(pool, budget=len(pool), batches=1)
    assert design.is_census
    sample = draw(pool, design, seed="s")
    rows = judged(pool, sample, same(sample, 2))
    found = compared(pool, design, sample, rows, same(sample, 2))
    one, two, three = found.choices
    assert one.pairs == two.pairs == len(sample.pair) == np.count_nonzero(design.eligible)
    assert three.pairs == pytest.approx(2 * two.pairs / 3)
    assert one.half_width == pytest.approx(np.sqrt(2) * two.half_width)
    assert two.half_width < three.half_width


def test_pairs_that_got_their_second_label_by_chance_of_another_round_do_not_count(
    pool: Pool,
) -> None:
    """Only heavy pairs are judged again: taken for random ones they would distort everything."""
    design = design_of(pool)
    sample = draw(pool, design, seed="s")
    heavy = design.size[sample.pair] > np.median(design.size[sample.pair])
    rng = np.random.default_rng(5)
    wanted = 1 + (rng.random(len(sample.pair)) < 0.5)
    rows = judged(pool, sample, np.maximum(wanted, 1 + heavy))
    found = compared(pool, design, sample, rows, wanted)
    assert found.repeated_pairs == np.count_nonzero(wanted == 2)
    assert compared(pool, design, sample, rows, same(sample, 1)).choices == ()
    taken_for_random = compared(pool, design, sample, rows, np.maximum(wanted, 1 + heavy))
    assert taken_for_random.choices[0].half_width != pytest.approx(
        found.choices[0].half_width, rel=0.01
    )


def test_without_a_second_label_nothing_is_said(pool: Pool) -> None:
    design = design_of(pool)
    sample = draw(pool, design, seed="s")
    rows = judged(pool, sample, same(sample, 1))
    assert compared(pool, design, sample, rows, same(sample, 1)) == LabelComparison(
        len(sample.pair), 0, ()
    )
    assert compared(pool, design, sample, rows, same(sample, 2)).choices == ()


def test_nothing_relevant_gives_no_half_width(pool: Pool) -> None:
    design = design_of(pool)
    sample = draw(pool, design, seed="s")
    rows = LabelRows(np.repeat(sample.pair, 2), np.zeros(2 * len(sample.pair), dtype=np.int64))
    found = compared(pool, design, sample, rows, same(sample, 2))
    assert [choice.half_width for choice in found.choices] == [None] * 3


def test_what_cannot_be_compared_is_refused(pool: Pool) -> None:
    design = design_of(pool, "per-query")
    sample = draw(pool, design, seed="s")
    rows = judged(pool, sample, same(sample, 2))
    assert not supports(design, DCG)
    assert not supports(design_of(pool), parse_measure("AP"))
    assert not supports(object(), DCG)
    with pytest.raises(ValueError, match="not compared for DCG@10 and the method 'per-query'"):
        compared(pool, design, sample, rows, same(sample, 2))
    good = design_of(pool)
    drawn = draw(pool, good, seed="s")
    with pytest.raises(ValueError, match="wanted has the shape"):
        compared(pool, good, drawn, judged(pool, drawn, same(drawn, 2)), np.array([2]))
