"""Scores as large as measures of predictions take: every number is finite, a larger one is not."""

from collections.abc import Iterator

import numpy as np
import pytest

from estimation.core.data import scores
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import PoolError, RankedLists
from estimation.core.measures.table import parse_measure
from estimation.core.planning.planning import expected_half_widths
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import DesignError
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior

TOPICS = ("t0", "t1", "t2")
METHODS = ("poisson", "priority", "iid", "per-query")
NUMBERS = ("value", "se", "df", "low", "high", "covariance", "difference_df")


def scored(largest: float, *, wild: int) -> RankedLists:
    """Twelve documents per topic, of which the first have a large score."""
    docnos = np.array([b"d%d" % n for n in range(12)] * len(TOPICS))
    given = np.arange(len(docnos)) % 4 * 1.0
    given[:wild] = largest
    return RankedLists(TOPICS, np.arange(0, 37, 12), docnos, given)


def pool_of(largest: float) -> Pool:
    runs = {"tame": scored(3.0, wild=1), "one": scored(largest, wild=1)}
    runs |= {"many": scored(-largest, wild=12)}
    return build_pool(TOPICS, runs, depth=12, scores=True)


def numbers(pool: Pool, method: str) -> Iterator[np.ndarray]:
    """What is stored of a preview and of estimates, with one and with two labels per pair."""
    for name in ("MSE", "MAE", "Accuracy"):
        measure, goal = parse_measure(name), goals.absolute(*pool.runs)
        about = {"goal": goal, "measure": measure, "max_grade": 3}
        prior = make_prior(pool, name="constant", **about)
        sizes = {"budget": 20, "batch_size": 10, "method": method, "eps": 1e-3}
        design = make_design(pool, prior=prior, **about, **sizes)
        yield design.size
        yield expected_half_widths(
            pool, design, measure=measure, prior=prior, max_grade=3
        ).difference_half_width
        pair = draw(pool, design, seed="s").pair
        once = LabelRows(pair, np.arange(len(pair)) % 4)
        twice = LabelRows(np.repeat(pair, 2), np.sort(np.arange(2 * len(pair)) % 4))
        for labels in (once, twice):
            (found,) = evaluate(
                pool, PairRound(design, draw(pool, design, seed="s")),
                labels=labels, measures=[measure], max_grade=3,
            ).results  # fmt: skip
            for estimator in found.estimators.values():
                yield from (getattr(estimator, field) for field in NUMBERS)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", METHODS)
def test_the_largest_scores_give_finite_numbers(method: str) -> None:
    pool = pool_of(scores.MOST_SCORE)
    assert all(np.isfinite(each).all() for each in numbers(pool, method))


@pytest.mark.parametrize(
    ("goal", "rule"),
    [(goals.single("halves"), "has a weight"), (goals.pair("halves", "thirds"), "do not differ")],
)
def test_scores_that_are_no_grades_say_why_accuracy_has_nothing_to_sample(
    goal: goals.Goal, rule: str
) -> None:
    docnos = np.array([b"d1", b"d2"])
    runs = {
        tag: RankedLists(("t",), np.array([0, 2]), docnos, np.array([1.0, 2.0]) + share)
        for tag, share in (("halves", 1 / 2), ("thirds", 1 / 3))
    }
    pool = build_pool(("t",), runs, depth=2, scores=True)
    about = {"goal": goal, "measure": parse_measure("Accuracy"), "max_grade": 3}
    prior = make_prior(pool, name="constant", **about)
    with pytest.raises(DesignError, match=f"{rule} under Accuracy. A score counts as right only"):
        make_design(pool, prior=prior, budget=2, batch_size=1, method="poisson", **about)


@pytest.mark.filterwarnings("error")
def test_a_limit_that_only_squares_respect_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "MOST_SCORE", 1e160)
    with pytest.raises(RuntimeWarning, match=r"overflow|invalid"):
        list(numbers(pool_of(1e50), "iid"))


def test_a_larger_one_is_refused_by_name() -> None:
    said = r"run 'many' gives 'd0' of topic 't0' the score -1e\+21; measures of predictions"
    runs = {"many": scored(-1e21, wild=12)}
    with pytest.raises(PoolError, match=said):
        build_pool(TOPICS, runs, depth=12, scores=True)
    assert build_pool(TOPICS, runs, depth=12).score is None
