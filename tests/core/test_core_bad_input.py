"""Bad arguments, over all public entry points: the whole message of every refusal.

Each message names the argument, what was given, and the first offending item. The valid call
beside each bad one is what the other tests of the core make.
"""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.labels import LabelError, LabelRows, pair_labels, select_rows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import PoolError, RankedLists, trec_eval_order
from estimation.core.estimates.estimators import (
    effective_sample_size,
    horvitz_thompson_iid,
    horvitz_thompson_poisson,
)
from estimation.core.inference.bounds import hoeffding_half_widths
from estimation.core.inference.intervals import student_intervals
from estimation.core.inference.ranges import BoundError
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.planning.planning import half_width_curve
from estimation.core.rounds.combining import CombiningError
from estimation.core.sampling import goals
from estimation.core.sampling.designs import METHODS, DesignError
from estimation.core.sampling.draws import draw
from estimation.core.sampling.goals import Goal, GoalError, effective_weights
from estimation.core.sampling.priors import Prior, PriorError
from estimation.core.sampling.random_numbers import (
    extra_labels,
    folds,
    permanent_random_numbers,
    uniform_numbers,
)
from estimation.research.simulation import true_values
from tests.core.bad_input import (
    BETWEEN,
    CUT,
    DCG,
    MEASURES,
    NAN,
    P1,
    THEIR_RUNS,
    WHOLE,
    Case,
    Given,
    check,
    parameters,
    whole,
)

DESIGNS: list[Case] = [
    ("budget 0", lambda g: g.design(budget=0), DesignError, f"budget {WHOLE} 0"),
    ("budget nan", lambda g: g.design(budget=NAN), DesignError, f"budget {WHOLE} nan"),
    ("budget 2.5", lambda g: g.design(budget=2.5), DesignError, rf"budget {WHOLE} 2\.5"),
    ("budget text", lambda g: g.design(budget="3"), DesignError, f"budget {WHOLE} '3'"),
    ("budget true", lambda g: g.design(budget=True), DesignError, f"budget {WHOLE} True"),
    ("budget none", lambda g: g.design(budget=None), DesignError, f"budget {WHOLE} None"),
    ("batch nan", lambda g: g.design(batch_size=NAN), DesignError, f"batch_size {WHOLE} nan"),
    ("batch half", lambda g: g.iid(batch_size=2.5), DesignError, rf"batch_size {WHOLE} 2\.5"),
    ("above the pool", lambda g: g.design(budget=6), DesignError,
     r"budget must be at most 5, the pairs of the whole pool, not 6\."),
    ("far above it", lambda g: g.design(budget=10**7, method="priority"), DesignError,
     r"budget must be at most 5, the pairs of the whole pool, not 10000000\."),
    ("above all costs", lambda g: g.design(budget=10.5, costs=np.full(5, 2.0)), DesignError,
     r"budget must be at most 10, the cost of the whole pool, not 10\.5\."),
    ("budget nan at a cost", lambda g: g.design(budget=NAN, costs=np.ones(5)), DesignError,
     "budget must be a finite number of at least 1, not nan"),
    ("budget 0.5 at a cost", lambda g: g.design(budget=0.5, costs=np.ones(5)), DesignError,
     r"budget must be a finite number of at least 1, not 0\.5"),
    ("one draw", lambda g: g.iid(budget=1), DesignError,
     r"Draws with replacement need at least 2 draws in the first batch; budget is 1\."),
    ("one draw at a time", lambda g: g.iid(batch_size=1), DesignError,
     r"Draws with replacement need at least 2 draws in the first batch; batch_size is 1\."),
    ("too many batches", lambda g: g.iid(budget=300_000), DesignError, re.escape(CUT)),
    ("eps", lambda g: g.iid(eps=-0.1), DesignError,
     r"eps must be a finite number of at least 0, not -0\.1"),
    ("floor", lambda g: g.design(floor=1.5), DesignError,
     r"floor must lie between 0 and 1, not 1\.5"),
    ("floor nan", lambda g: g.design(floor=NAN), DesignError,
     "floor must lie between 0 and 1, not nan"),
    ("floor text", lambda g: g.design(floor="x"), DesignError,
     "floor must lie between 0 and 1, not 'x'"),
    ("method", lambda g: g.design(method="best"), DesignError,
     rf"The method is one of {', '.join(METHODS)}, not 'best'\."),
    ("rule", lambda g: g.design(rule="third"), DesignError,
     r"The rule is one of first, second, uniform, not 'third'\."),
    ("no rule", lambda g: g.design(rule=""), DesignError,
     r"The rule is one of first, second, uniform, not ''\."),
    ("reported", lambda g: g.design(reported=(P1, "P@1")), MeasureError,
     r"reported\[1\] must be a Measure \(see parse_measure\), not 'P@1'"),
    ("measure", lambda g: g.design(measure="DCG@2"), MeasureError,
     r"measure must be a Measure \(see parse_measure\), not 'DCG@2'"),
    ("goal", lambda g: g.design(goal="ranking"), GoalError,
     r"goal must be a Goal \(see goals\.absolute and the like\), not 'ranking'"),
    ("prior", lambda g: g.design(prior="rank"), DesignError,
     r"prior must be a Prior \(see make_prior\), not 'rank'\."),
    ("prior of another", lambda g: g.design(prior=Prior("p", np.ones(4), np.ones(4))), DesignError,
     r"The prior belongs to another pool: it describes 4 pairs, the pool has 5\."),
    ("cost", lambda g: g.design(costs=np.array([1, 1, 0, 1, 1.0])), DesignError,
     r"costs must be positive, from 1e-15 to 1e\+15, not 0\.0 \(item 2\)"),
    ("costs", lambda g: g.design(costs=np.ones(4)), DesignError,
     r"costs must hold one number per pair, 5, not \(4,\)\."),
    ("baseline", lambda g: g.design(goal=goals.baseline("alpha", against="zeta")), PoolError,
     f"the pool has no run 'zeta', the baseline of the goal; {THEIR_RUNS}"),
    ("run of the goal", lambda g: g.design(goal=goals.pair("alpha", "zeta")), PoolError,
     f"the pool has no run 'zeta', which the goal names; {THEIR_RUNS}"),
    ("batches", lambda g: g.design().inclusion(4), ValueError, f"batches {BETWEEN} 1 and 2, not 4"),
    ("half a batch", lambda g: g.design().step(0.5), ValueError,
     rf"batches {BETWEEN} 1 and 2, not 0\.5"),
]  # fmt: skip

PRIORS_AND_GOALS: list[Case] = [
    ("moment nan", lambda g: Prior("p", np.ones(2), np.array([1.0, NAN])), PriorError,
     r"second_moment must be positive and finite, not nan \(item 1\)"),
    ("moment 0", lambda g: Prior("p", np.array([1.0, 1.0, 0.0]), np.ones(3)), PriorError,
     r"expected must be positive and finite, not 0\.0 \(item 2\)"),
    ("lengths", lambda g: Prior("p", np.ones(3), np.ones(2)), PriorError,
     r"expected and second_moment must be of one length, not \(3,\) and \(2,\)"),
    ("best grade", lambda g: g.prior(max_grade=-1), PriorError,
     f"max_grade {BETWEEN} 1 and 50, not -1"),
    ("best grade nan", lambda g: g.prior(max_grade=NAN), PriorError,
     f"max_grade {BETWEEN} 1 and 50, not nan"),
    ("name", lambda g: g.prior(name="oracle"), PriorError,
     r"The prior is one of constant, rank, fusion, scores, not 'oracle'\."),
    ("no scores", lambda g: g.prior(name="scores"), PriorError,
     r"The prior scores needs one predicted grade per pair, 5; grades has none\."),
    ("predicted grade", lambda g: g.prior(name="scores", grades=np.array([0, 0, 4, 0, 0.0])),
     PriorError, r"The predicted grade of 'c' of topic 't1' is 4, outside 0 to 3\."),
    ("prior's goal", lambda g: g.prior(goal=goals.single("zeta")), PoolError,
     f"the pool has no run 'zeta', which the goal names; {THEIR_RUNS}"),
    ("kind", lambda g: Goal("best", ("a",)), GoalError,
     "the goal is one of single, absolute, pair, baseline, ranking, winner, not 'best'"),
    ("one of two", lambda g: Goal("pair", ("a",)), GoalError,
     r"the goal 'pair' needs exactly 2 runs, not 1 \(a\)"),
    ("two for one", lambda g: Goal("single", ("a", "b")), GoalError,
     r"the goal 'single' needs exactly 1 run, not 2 \(a, b\)"),
    ("one to rank", lambda g: goals.ranking("a"), GoalError,
     r"the goal 'ranking' needs at least 2 runs, not 1 \(a\)"),
    ("nobody to race with", lambda g: goals.winner("a"), GoalError,
     r"the goal 'winner' needs at least 2 runs, not 1 \(a\)"),
    ("no race", lambda g: goals.check_serves(goals.winner("a", "b"), "poisson"), GoalError,
     "the goal 'winner' needs the method adaptive, which learns who is still in the race, "
     "not 'poisson'"),
    ("none", lambda g: goals.absolute(), GoalError,
     "the goal 'absolute' needs at least 1 run, not 0"),
    ("twice", lambda g: goals.ranking("a", "b", "a"), GoalError,
     "the goal 'ranking' names the run 'a' twice"),
    ("itself", lambda g: goals.baseline("a", "b", against="b"), GoalError,
     "the goal 'baseline' names the run 'b' twice"),
    ("no baseline", lambda g: Goal("baseline", ("a",)), GoalError,
     "the goal 'baseline' needs a baseline; against is None"),
    ("a baseline too much", lambda g: Goal("single", ("a",), "b"), GoalError,
     "the goal 'single' has no baseline; against is 'b'"),
    ("weights for", lambda g: effective_weights(g.pool, goals.single("zeta"), DCG), PoolError,
     f"the pool has no run 'zeta', which the goal names; {THEIR_RUNS}"),
]  # fmt: skip

MEASURED: list[Case] = [
    ("unknown", lambda g: parse_measure("NCG@5"), MeasureError,
     f"'NCG' is not a known measure; known are {MEASURES}"),
    ("unreadable", lambda g: parse_measure("P@"), MeasureError,
     f"A measure is written like {MEASURES}, not 'P@'"),
    ("parameter", lambda g: parse_measure("P(rel=x)@5"), MeasureError,
     "rel of P must be a grade .*, not 'x'"),
    ("parameter's value", lambda g: parse_measure("RBP(p=2)"), MeasureError,
     r"p of RBP must be .*, not 2\.0"),
    ("parameter's name", lambda g: parse_measure("P(q=1)@5"), MeasureError,
     "P takes the parameters rel .*, each once, not 'q=1'"),
    ("cutoff", lambda g: parse_measure("P@0"), MeasureError,
     "The cutoff of P must be between 1 and [0-9]+, not 0"),
    ("rank", lambda g: DCG.weights([1, 0]), ValueError,
     r"ranks must start at 1, not 0\.0 \(item 1\)"),
    ("rank nan", lambda g: DCG.weights([1, NAN]), ValueError,
     r"ranks must start at 1, not nan \(item 1\)"),
    ("grade nan", lambda g: DCG.utilities(np.array([NAN])), ValueError,
     r"grades must be integers, not nan \(item 0\)"),
    ("grade", lambda g: DCG.utilities(whole([0, 99])), ValueError,
     r"grades must lie between 0 and 50, not 99 \(item 1\)"),
    ("scale", lambda g: DCG.max_utility(-1), MeasureError, f"max_grade {BETWEEN} 0 and 50, not -1"),
]  # fmt: skip

POOLS: list[Case] = [
    ("run", lambda g: g.pool.run_index("zeta"), PoolError,
     f"the pool has no run 'zeta'; {THEIR_RUNS}"),
    ("one of many", lambda g: build_pool(
        ["t"], {f"r{i:02d}": RankedLists((), whole([0]), np.array([], "S1")) for i in range(12)},
        depth=1,
    ).run_index("zeta"), PoolError,
     "the pool has no run 'zeta'; its runs are r00, .*, r09 and 2 more"),
    ("depth", lambda g: build_pool(["t"], {"r": RankedLists((), whole([0]), np.array([], "S1"))},
                                   depth=0), PoolError, f"depth {WHOLE} 0"),
    ("no runs", lambda g: build_pool(["t"], {}, depth=1), PoolError,
     "a pool needs at least one topic and one run, not 1 topics and 0 runs"),
    ("score", lambda g: trec_eval_order([1.0, NAN], [b"a", b"b"]), PoolError,
     r"scores must be finite numbers; docno 'b' has nan \(item 1\)"),
    ("scores", lambda g: trec_eval_order([1.0], [b"a", b"b"]), PoolError,
     "scores and docnos must be of one length, not 1, 2"),
    ("topic twice", lambda g: RankedLists(("t", "u", "t"), whole([0] * 4), np.array([], "S1")),
     PoolError, "topic 't' occurs twice among the ranked lists of a run"),
    ("falling", lambda g: RankedLists(("t", "u"), whole([0, 2, 1]), np.array([b"a"])), PoolError,
     "indptr must not decrease, as it does at topic 'u'"),
    ("preferences", lambda g: preference_pool(g.pool, depth=3), PoolError,
     f"depth {BETWEEN} 2 and 2, not 3"),
]  # fmt: skip

DRAWS: list[Case] = [
    ("negative pair", lambda g: permanent_random_numbers(g.pool, seed="s", pairs=whole([0, -1])),
     ValueError, r"pairs must lie between 0 and 4, not -1 \(item 1\)"),
    ("pair beyond", lambda g: permanent_random_numbers(g.pool, seed="s", pairs=whole([9])),
     ValueError, r"pairs must lie between 0 and 4, not 9 \(item 0\)"),
    ("half a pair", lambda g: permanent_random_numbers(g.pool, seed="s", pairs=np.array([0, 1.5])),
     ValueError, r"pairs must be a vector of integers, not 1\.5 \(item 1\)"),
    ("matrix of pairs", lambda g: folds(g.pool, number=2, pairs=whole([[0]])), ValueError,
     r"pairs must be a vector, not an array of the shape \(1, 1\)"),
    ("seed", lambda g: draw(g.pool, g.census, seed=7), ValueError, "seed must be a text, not 7"),
    ("numbers' seed", lambda g: uniform_numbers(7, number=1), ValueError,
     "seed must be a text, not 7"),
    ("numbers", lambda g: uniform_numbers("s", number=-1), ValueError,
     "number must be a whole number of at least 0, not -1"),
    ("folds", lambda g: folds(g.pool, number=1), ValueError,
     "number must be a whole number of at least 2, not 1"),
    ("labels", lambda g: extra_labels(g.pool, seed="s", pairs=whole([0]), labels=0, share=0.5),
     ValueError, f"labels {WHOLE} 0"),
    ("share", lambda g: extra_labels(g.pool, seed="s", pairs=whole([0]), labels=1, share=NAN),
     ValueError, "share must lie between 0 and 1, not nan"),
]  # fmt: skip

ESTIMATORS: list[Case] = [
    ("probability nan", lambda g: g.drawn(probability=np.array([0.5, NAN])), ValueError,
     r"probability must lie in \(0, 1\], not nan \(item 1\)"),
    ("probability 0", lambda g: horvitz_thompson_poisson(
        g.weights(), g.labels(), probability=np.array([0.0, 1.0])), ValueError,
     r"probability must lie in \(0, 1\], not 0\.0 \(item 0\)"),
    ("probability above 1", lambda g: horvitz_thompson_iid(
        g.weights(), g.labels(), probability=np.array([1.0, 1.5]), draws=3), ValueError,
     r"probability must lie in \(0, 1\], not 1\.5 \(item 1\)"),
    ("weight nan", lambda g: g.drawn(weights=g.weights(first=NAN)), ValueError,
     r"weights must be finite, not nan \(item 0\)"),
    ("label nan", lambda g: g.drawn(labels=g.labels(mean=np.array([1.0, NAN]))), ValueError,
     r"labels\.mean must be finite, not nan \(item 1\)"),
    ("no label", lambda g: g.drawn(labels=g.labels(number=whole([0, 1]))), ValueError,
     r"labels\.number must be at least 1, not 0 \(item 0\)"),
    ("disagreement", lambda g: g.drawn(labels=g.labels(variance=np.array([0.0, -1.0]))), ValueError,
     r"labels\.variance must be finite and at least 0, not -1\.0 \(item 1\)"),
    ("count", lambda g: g.drawn(counts=whole([1, 0])), ValueError,
     r"counts must be at least 1, not 0 \(item 1\)"),
    ("counts", lambda g: g.drawn(counts=whole([1])), ValueError,
     r"counts has the shape \(1,\), not \(2,\)"),
    ("pairs", lambda g: g.drawn(probability=np.ones(3)), ValueError,
     "weights, labels and probability must be of the same pairs, not 2, 2 and 3"),
    ("draws", lambda g: horvitz_thompson_iid(
        g.weights(), g.labels(), probability=np.array([0.4, 0.6]), draws=1), ValueError,
     "draws must be at least the number of distinct pairs, 2: 1"),
    ("size", lambda g: effective_sample_size(g.weights(), probability=np.array([1.0, 0.0])),
     ValueError, r"probability must lie in \(0, 1\], not 0\.0 \(item 1\)"),
    ("prediction", lambda g: g.difference(predictions=np.array([0, 0, np.inf, 0, 0])), ValueError,
     r"predictions must be finite, or nan, not inf \(item 2\)"),
    ("predictions", lambda g: g.difference(predictions=np.ones(4)), ValueError,
     r"predictions must be one number per pair, 5, not of the shape \(4,\)"),
    ("inclusion nan", lambda g: g.difference(inclusion=np.array([1, NAN, 1, 1, 1])), ValueError,
     r"inclusion must lie between 0 and 1, not nan \(item 1\)"),
    ("sampled with 0", lambda g: g.difference(inclusion=np.array([1.0, 0, 1, 1, 1])), ValueError,
     r"inclusion\[pairs\] must be above 0, not 0\.0 \(item 1\)"),
    ("pair beyond", lambda g: g.difference(pairs=whole([0, 5])), ValueError,
     r"pairs must lie between 0 and 4, not 5 \(item 1\)"),
    ("df", lambda g: student_intervals(np.ones(2), variance=np.ones(2), df=np.array([2.0, 0.0])),
     ValueError, r"df must be at least 1, not 0\.0 \(item 1\)"),
    ("confidence", lambda g: student_intervals(
        np.ones(1), variance=np.ones(1), df=np.ones(1), confidence=1), ValueError,
     "confidence must lie strictly between 0 and 1, not 1"),
    ("value nan", lambda g: g.ranked(value=np.array([1.0, NAN])), ValueError,
     r"value must be finite, not nan \(item 1\)"),
    ("covariance nan", lambda g: g.ranked(covariance=np.array([[1.0, NAN], [NAN, 1.0]])),
     ValueError, r"covariance must be a number, not nan \(item 1\)"),
    ("values", lambda g: g.ranked(value=np.ones(3)), ValueError,
     r"value, covariance and df must be those of the runs, not \(3,\), \(2, 2\) and \(2, 2\)"
     " for 2 runs"),
    ("form", lambda g: hoeffding_half_widths(np.ones(1), draws=2, form="best"), BoundError,
     "form must be one of corrected, paper, not 'best'"),
    ("budgets", lambda g: half_width_curve(
        g.pool, g.design(), measure=DCG, prior=g.prior(), budgets=[1, NAN]), ValueError,
     r"budgets must be finite and at least 1, not nan \(item 1\)"),
]  # fmt: skip

LABELS: list[Case] = [
    ("grades of floats", lambda g: LabelRows(whole([0, 1]), np.array([1.0, NAN])), LabelError,
     r"grade must be a vector of integers, not nan \(item 1\)"),
    ("whole floats", lambda g: LabelRows(whole([0]), np.array([1.0])), LabelError,
     r"grade must be a vector of integers, not 1\.0 \(item 0\)"),
    ("pairs of floats", lambda g: LabelRows(np.array([0.5]), whole([1])), LabelError,
     r"pair must be a vector of integers, not 0\.5 \(item 0\)"),
    ("rows", lambda g: LabelRows(whole([0, 1]), whole([1])), LabelError,
     r"pair and grade must be vectors of one length, not \(2,\) and \(1,\)"),
    ("off the scale", lambda g: g.evaluate(grades=[0, 1, 4, 1, 0]), LabelError,
     r"grade 4 of document 'c' of topic 't1' does not lie between 0 and 3 \(row 2\)"),
    ("below the scale", lambda g: g.evaluate(grades=[0, 1, 0, -1, 0]), LabelError,
     r"grade -1 of document 'x' of topic 't2' does not lie between 0 and 3 \(row 3\)"),
    ("not judged", lambda g: g.evaluate((0, 1, 4)), LabelError,
     "2 sampled pairs of these batches have no label; the first is document 'c' of topic 't1'"),
    ("not sampled", lambda g: select_rows(
        g.rows([0, 2]), sampled=whole([0]), prefix=whole([0]), max_grade=3), LabelError,
     r"pair 2 was judged but not sampled \(row 1\)"),
    ("not sampled, by name", lambda g: select_rows(
        g.rows([0, 2]), sampled=whole([0]), prefix=whole([0]), max_grade=3, pool=g.pool),
     LabelError, r"document 'c' of topic 't1' was judged but not sampled \(row 1\)"),
    ("outside the pool", lambda g: g.evaluate((0, 1, 2, 3, 9)), LabelError,
     r"pair 9, outside 0 to 4, was judged but not sampled \(row 4\)"),
    ("before the pool", lambda g: g.evaluate((0, 1, 2, 3, -1)), LabelError,
     r"pair -1, outside 0 to 4, was judged but not sampled \(row 4\)"),
    ("mean of nothing", lambda g: pair_labels(g.rows([0]), pairs=2, measure=DCG), LabelError,
     "every pair needs at least one label; pair 1 has none"),
    ("measures", lambda g: g.evaluate(measures=[DCG, "P@1"]), MeasureError,
     r"measures\[1\] must be a Measure \(see parse_measure\), not 'P@1'"),
    ("no measures", lambda g: g.evaluate(measures=[]), ValueError,
     "there must be a measure to estimate; measures holds none"),
    ("best grade", lambda g: g.evaluate(max_grade=NAN), ValueError,
     f"max_grade {BETWEEN} 1 and 50, not nan"),
    ("confidence", lambda g: g.evaluate(confidence="95"), ValueError,
     "confidence must lie strictly between 0 and 1, not '95'"),
    ("batches", lambda g: g.evaluate(batches=2), ValueError,
     f"batches {BETWEEN} 1 and 1, not 2"),
    ("sampled without a chance", lambda g: g.evaluate(
        design=replace(g.census, size=np.array([0.5, 0.5, 0.0, 0.0, 0.0]))), ValueError,
     "document 'c' of topic 't1' was sampled but has no probability: "
     r"the design's size for it is 0\.0"),
    ("size nan", lambda g: g.evaluate(
        design=replace(g.census, size=np.array([0.5, NAN, 0.5, 0.0, 0.0]))), ValueError,
     "document 'b' of topic 't1' was sampled but has no probability: the design's size for it is "
     "nan"),
    ("sampled outside", lambda g: g.evaluate(
        sample=replace(draw(g.pool, g.census, seed="s"), pair=whole([0, 1, 2, 3, 7]))), ValueError,
     r"sample\.pair must lie between 0 and 4, not 7 \(item 4\)"),
    ("together", lambda g: g.together(), CombiningError, "parts must hold at least one round"),
    ("batches together", lambda g: g.together(replace(g.part, complete=0)), ValueError,
     f"batches {BETWEEN} 1 and 1, not 0"),
    ("not judged together", lambda g: g.together(g.part, labels=g.rows([0, 1, 2, 3])), LabelError,
     "1 sampled pairs of these batches have no label; the first is document 'y' of topic 't2'"),
    ("measures together", lambda g: g.together(g.part, measures=["P@1"]), MeasureError,
     r"measures\[0\] must be a Measure \(see parse_measure\), not 'P@1'"),
    ("grades simulated", lambda g: g.simulate(grades=whole([0, 1, 99, 0, 0])), ValueError,
     r"grades must lie between 0 and 50, not 99 \(item 2\)"),
    ("estimator", lambda g: g.simulate(estimator="best"), ValueError,
     "estimator must be one of ht, not 'best'"),
    ("no seeds", lambda g: g.simulate(seeds=[]), ValueError,
     "there must be a seed; seeds holds none"),
    ("true grades", lambda g: true_values(g.pool, grades=np.full(5, NAN), measure=DCG), ValueError,
     r"grades must be a vector of integers, not nan \(item 0\)"),
    ("number of grades", lambda g: true_values(g.pool, grades=whole([0]), measure=DCG), ValueError,
     r"grades must hold one grade per pair of the pool, 5; they have the shape \(1,\)"),
]  # fmt: skip

CASES = parameters(
    {
        "designs": DESIGNS,
        "priors and goals": PRIORS_AND_GOALS,
        "measures": MEASURED,
        "pools": POOLS,
        "draws": DRAWS,
        "estimators": ESTIMATORS,
        "labels": LABELS,
    }
)


@pytest.mark.slow
@pytest.mark.parametrize(("call", "error", "message"), CASES)
def test_bad_input_is_named(
    tiny_pool: Pool, call: Callable[[Given], object], error: type[ValueError], message: str
) -> None:
    check(Given(tiny_pool), call, error, message)


def test_the_same_calls_with_good_arguments_work(tiny_pool: Pool) -> None:
    """Otherwise the table could pass because everything is refused."""
    given = Given(tiny_pool)
    calls = [
        given.prior, given.design, given.iid, given.evaluate, given.drawn, given.difference,
        given.simulate, given.queries, given.ratio, given.plan, given.active,
        given.estimate_active, given.select, given.setting, given.ranked,
    ]  # fmt: skip
    assert all(call() is not None for call in calls)
    assert given.together(given.part).judged_pairs == 5
    assert given.next_batch(given.rows(given.first_active())) is not None
    assert given.topic_values([0, 1, 2, 3, 4], [0, 0, 0, 0, 0]) is not None


def test_a_budget_between_the_eligible_pairs_and_the_pool_is_a_census(tiny_pool: Pool) -> None:
    """Nothing is cut silently: the design says that it is a census."""
    given = Given(tiny_pool)
    for method in ("poisson", "priority"):
        design = given.design(goal=goals.single("gamma"), floor=0.0, budget=4, method=method)
        assert np.count_nonzero(design.eligible) == 2
        assert design.is_census
        assert not given.design(goal=goals.single("gamma"), floor=0.0, budget=1).is_census
    paid = given.design(budget=7.5, batch_size=2.5, costs=np.full(5, 1.5))
    assert paid.is_census
    assert paid.batches == 3


def test_draws_may_be_more_than_there_are_pairs(tiny_pool: Pool) -> None:
    assert Given(tiny_pool).iid(budget=1000, batch_size=500).draws() == 1000
