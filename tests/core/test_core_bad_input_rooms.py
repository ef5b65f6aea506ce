"""Bad arguments in the rooms of the core: queries, active, baselines, trials, published."""

from collections.abc import Callable

import numpy as np
import pytest

from estimation.core.data.labels import LabelError, LabelRows
from estimation.core.data.pool import Pool
from estimation.core.data.ranked_lists import PoolError
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.planning.topic_planning import expected_query_half_widths
from estimation.core.rounds.active.lists import ActiveError
from estimation.core.rounds.active.weights import joint_inclusion, sequential_weights
from estimation.core.rounds.topics.designs import QueryError
from estimation.core.rounds.topics.draws import draw_queries
from estimation.core.rounds.topics.grade_models import GradeModelError, uniform_grades
from estimation.core.sampling import goals
from estimation.research.baselines.estimates import values_from_grades
from estimation.research.baselines.select import select_top
from estimation.research.baselines.selections import BudgetError, share_budgets, topic_budgets
from estimation.research.baselines.stratified import ap_prior, stratify
from estimation.research.published.numbers import spread_factors
from estimation.research.published.reproduction import tables
from estimation.research.trials.methods import prepare
from estimation.research.trials.reports import play_trials
from estimation.research.trials.settings import Assessors, TrialError
from tests.core.bad_input import (
    BETWEEN,
    DCG,
    NAN,
    THEIR_RUNS,
    WHOLE,
    Case,
    Given,
    check,
    parameters,
    whole,
)

QUERIES: list[Case] = [
    ("budget 0", lambda g: g.queries(budget=0), QueryError,
     "budget must be a finite number of at least 1, not 0"),
    ("budget nan", lambda g: g.queries(budget=NAN), QueryError,
     "budget must be a finite number of at least 1, not nan"),
    ("above the pool", lambda g: g.queries(budget=5.5), QueryError,
     r"budget must be at most 5, what all topics cost together, not 5\.5"),
    ("batch", lambda g: g.queries(batch_budget=NAN), QueryError,
     "batch_budget must be a finite number above 0, not nan"),
    ("batch above", lambda g: g.queries(batch_budget=6), QueryError,
     r"batch_budget must be at most the budget, 5\.0, not 6"),
    ("cost", lambda g: g.queries(costs=[1.0, NAN, 1.0]), QueryError,
     "the cost of topic 't2' must be above 0, not nan"),
    ("costs", lambda g: g.queries(costs=[1.0]), QueryError,
     r"costs must be a vector of 3 numbers, one per topic, not of the shape \(1,\)"),
    ("rule", lambda g: g.queries(rule="best"), QueryError,
     "the rule is one of active, uniC, uniform, not 'best'"),
    ("estimator", lambda g: g.queries(estimator="best"), QueryError,
     "the estimator is one of ratio, unbiased, not 'best'"),
    ("floor", lambda g: g.queries(floor=-1), QueryError,
     "floor must lie between 0 and 1, not -1"),
    ("depth", lambda g: g.queries(depth=1), QueryError,
     "depth must be a whole number of at least 2, not 1"),
    ("measure", lambda g: g.queries(measure="DCG@2"), MeasureError,
     r"measure must be a Measure \(see parse_measure\), not 'DCG@2'"),
    ("baseline", lambda g: g.queries(goal=goals.baseline("alpha", against="zeta")), PoolError,
     f"the pool has no run 'zeta', the baseline of the goal; {THEIR_RUNS}"),
    ("reported", lambda g: g.queries(reported=["zeta"]), PoolError,
     f"the pool has no run 'zeta'; {THEIR_RUNS}"),
    ("seed", lambda g: draw_queries(g.pool, g.queries(), seed=7), ValueError,
     "seed must be a text, not 7"),
    ("scale", lambda g: uniform_grades(g.pool, max_grade=0), GradeModelError,
     f"max_grade {BETWEEN} 1 and 50, not 0"),
    ("pair", lambda g: g.topic_values([0, 99], [0, 0]), QueryError,
     r"labels: pair must lie between 0 and 4, not 99 \(item 1\)"),
    ("grade", lambda g: g.topic_values([0, 1], [0, 4]), QueryError,
     r"labels: grade must lie between 0 and 3, not 4 \(item 1\)"),
    ("topic", lambda g: g.topic_values([0], [0], topics=whole([3])), QueryError,
     r"topics must lie between 0 and 2, not 3 \(item 0\)"),
    ("missing", lambda g: g.topic_values([0], [0]), QueryError,
     r"topic 't1', docno 'b' has no judgment \([0-9] are missing\)"),
    ("value", lambda g: g.ratio(values=np.array([[1.0], [NAN]])), ValueError,
     r"values must be finite, not nan \(item 1\)"),
    ("weight", lambda g: g.ratio(weight=np.array([1.0, 0.0])), ValueError,
     r"weight must be finite and above 0, not 0\.0 \(item 1\)"),
    ("count", lambda g: g.ratio(counts=whole([2, 0])), ValueError,
     r"counts must be at least 1, not 0 \(item 1\)"),
    ("budgets", lambda g: expected_query_half_widths(
        g.pool, g.queries(), measure=DCG, model=uniform_grades(g.pool, max_grade=3),
        budgets=[1, 0]), ValueError, r"budgets must be above 0, not 0\.0 \(item 1\)"),
]  # fmt: skip

ACTIVE: list[Case] = [
    ("budget 0", lambda g: g.plan(budget=0), ActiveError,
     f"budget {BETWEEN} 1 and the 5 pairs of the pool, not 0"),
    ("above the pool", lambda g: g.plan(budget=6), ActiveError,
     f"budget {BETWEEN} 1 and the 5 pairs of the pool, not 6"),
    ("budget nan", lambda g: g.plan(budget=NAN), ActiveError,
     f"budget {BETWEEN} 1 and the 5 pairs of the pool, not nan"),
    ("batch", lambda g: g.plan(batch_size=0), ActiveError, f"batch_size {WHOLE} 0"),
    ("measure", lambda g: g.plan(measures=["AP"]), MeasureError,
     r"measures\[0\] must be a Measure \(see parse_measure\), not 'AP'"),
    ("no measure", lambda g: g.plan(measures=[]), ActiveError,
     "there must be a measure to estimate; measures holds none"),
    ("other measure", lambda g: g.plan(measures=[parse_measure("ERR@5")]), ActiveError,
     r"Active sampling estimates AP, Rprec, P, DCG, Gain and RBP, not ERR@5\."),
    ("seed", lambda g: g.active(seed=7), ValueError, "seed must be a text, not 7"),
    ("new documents", lambda g: g.active(batch_size=0.5), ActiveError, rf"batch_size {WHOLE} 0\.5"),
    ("relevant", lambda g: g.active(relevant_from=0), ActiveError,
     f"relevant_from {BETWEEN} 1 and 50, not 0"),
    ("uniform share", lambda g: g.active(uniform_share=NAN), ActiveError,
     "uniform_share must lie between 0 and 1, not nan"),
    ("not judged", lambda g: g.next_batch(LabelRows(whole([]), whole([]))), LabelError,
     "2 sampled pairs of these topics have no label; the first is document '.' of topic 't1'"),
    ("not sampled", lambda g: g.next_batch(g.rows(
        [pair for pair in range(5) if pair not in g.first_active()][:1])), LabelError,
     r"document '.' of topic 't1' was judged but not sampled \(row 0\)"),
    ("off the scale", lambda g: g.next_batch(g.rows(g.first_active(), [0, 77])), LabelError,
     r"grade 77 of document '.' of topic 't2' does not lie between 0 and 50 \(row 1\)"),
    ("limit", lambda g: g.next_batch(g.rows(g.first_active()), limits=whole([1, -2, 1])),
     ActiveError, r"limits must not be negative, not -2 \(item 1\)"),
    ("limits", lambda g: g.next_batch(g.rows(g.first_active()), limits=whole([1])), ActiveError,
     r"limits must be 3 numbers, one per topic, not of the shape \(1,\)"),
    ("form", lambda g: g.estimate_active(form="best"), ActiveError,
     "form must be one of corrected, paper, sequential, not 'best'"),
    ("sequential", lambda g: g.estimate_active(form="sequential"), ActiveError,
     r"the form 'sequential' needs a sample with a uniform_share above 0, not 0\.0"),
    ("estimated measure", lambda g: g.estimate_active(measures=["ERR@5"]), ActiveError,
     "an active sample has no estimator for 'ERR@5', only for AP, Rprec of whole lists and sums of "
     "gains"),
    ("probability", lambda g: joint_inclusion(np.array([[0.5, NAN]]), draws=whole([1])),
     ActiveError, r"probability must lie between 0 and 1, not nan \(item 1\)"),
    ("conditional", lambda g: sequential_weights(
        np.array([1.0, 0.0]), documents=2, steps=whole([0])), ActiveError,
     r"conditional must lie in \(0, 1\], not 0\.0 \(item 1\)"),
]  # fmt: skip

BASELINES_AND_TRIALS: list[Case] = [
    ("name", lambda g: g.select("best"), ValueError,
     "name must be one of uniform, top, deep, mtf, mab, stratified, not 'best'"),
    ("budget 0", lambda g: g.select(budget=0), BudgetError,
     "budget must lie between 1 and the 5 pairs of the pool, not 0"),
    ("above the pool", lambda g: topic_budgets(g.pool, budget=6), BudgetError,
     "budget must lie between 1 and the 5 pairs of the pool, not 6"),
    ("budget nan", lambda g: g.select(budget=NAN), BudgetError,
     "budget must be one whole number, not nan"),
    ("by topic", lambda g: g.select(budget=whole([1, 3, 0])), BudgetError,
     "the budget of topic 't2' must lie between 0 and its 2 pairs, not 3"),
    ("nothing", lambda g: g.select(budget=whole([0, 0, 0])), BudgetError,
     r"budget must be above 0 for at least one topic, not \[0, 0, 0\]"),
    ("budgets", lambda g: g.select(budget=np.ones(2)), BudgetError,
     "budget must be one whole number, or 3, one per topic, not an array of float64 of the shape "
     r"\(2,\)"),
    ("share", lambda g: share_budgets(g.pool, share=NAN), ValueError,
     "share must lie between 0 and 1, not nan"),
    ("grade", lambda g: g.select(grades=whole([0, -1, 0, 0, 0])), ValueError,
     r"grades must lie between 0 and 50, not -1 \(item 1\)"),
    ("grades", lambda g: g.select(grades=whole([0])), ValueError,
     r"grades must hold one grade per pair of the pool, 5; they have the shape \(1,\)"),
    ("known grades", lambda g: values_from_grades(g.pool, grades=np.full(5, NAN), measure=DCG),
     ValueError, r"grades must be a vector of integers, not nan \(item 0\)"),
    ("no runs", lambda g: select_top(g.pool, budget=1, runs=[]), ValueError,
     r"runs must name at least one run, not \[\]"),
    ("run", lambda g: select_top(g.pool, budget=1, runs=["alpha", "zeta"]), PoolError,
     f"the pool has no run 'zeta'; {THEIR_RUNS}"),
    ("prior's depth", lambda g: ap_prior(0), ValueError, f"depth {WHOLE} 0"),
    ("strata", lambda g: stratify(whole([0, 1]), np.ones(2), draws=3), ValueError,
     f"draws {BETWEEN} 1 and the 2 documents, not 3"),
    ("prior of strata", lambda g: stratify(whole([0, 1]), np.array([1.0, NAN]), draws=1),
     ValueError, r"prior must be positive and finite, not nan \(item 1\)"),
    ("trial's budget", lambda g: g.setting(budget=6), TrialError,
     f"budget {BETWEEN} 1 and the 5 pairs of the pool, not 6"),
    ("half a budget", lambda g: g.setting(budget=2.5), TrialError,
     rf"budget {BETWEEN} 1 and the 5 pairs of the pool, not 2\.5"),
    ("unit", lambda g: g.setting(unit="euros"), TrialError,
     "unit must be one of draws, pairs, not 'euros'"),
    ("trial's grade", lambda g: g.setting(max_grade=2), TrialError,
     r"grades must lie between 0 and 2, not 3 \(item 0\)"),
    ("trial's grade nan", lambda g: g.setting(grades=np.full(5, NAN)), TrialError,
     r"grades must be a vector of integers, not nan \(item 0\)"),
    ("best grade", lambda g: g.setting(max_grade=0), TrialError,
     f"max_grade {BETWEEN} 1 and 50, not 0"),
    ("baseline", lambda g: g.setting(goal=goals.baseline("alpha", against="zeta")), PoolError,
     f"the pool has no run 'zeta', the baseline of the goal; {THEIR_RUNS}"),
    ("method", lambda g: prepare(g.setting(), "magic"), TrialError,
     "method must be one of poisson, priority, iid, per-query, adaptive, difference, query, "
     "active, uniform, stratified, top, deep, mtf, mab, not 'magic'"),
    ("assessors", lambda g: Assessors(labels=0), TrialError, f"labels {WHOLE} 0"),
    ("noise", lambda g: Assessors(noise=NAN), TrialError,
     "noise must lie between 0 and 1, not nan"),
    ("trials", lambda g: play_trials(g.setting(), "iid", lambda seed: None, trials=0, seed="s"),
     TrialError, f"trials {WHOLE} 0"),
    ("published trials", lambda g: spread_factors(1), ValueError,
     "trials must be a whole number of at least 2, not 1"),
    ("table", lambda g: tables(["Z9"], "SYNTH"), ValueError, "a table is one of A.*, not 'Z9'"),
]  # fmt: skip

CASES = parameters(
    {
        "queries": QUERIES,
        "active": ACTIVE,
        "baselines and trials": BASELINES_AND_TRIALS,
    }
)


@pytest.mark.parametrize(("call", "error", "message"), CASES)
def test_bad_input_is_named(
    tiny_pool: Pool, call: Callable[[Given], object], error: type[ValueError], message: str
) -> None:
    check(Given(tiny_pool), call, error, message)
