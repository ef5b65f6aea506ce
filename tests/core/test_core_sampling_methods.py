"""The table of methods says what the core does, method by method."""

from typing import get_args

import pytest

from estimation.core.data.pool import Pool
from estimation.core.measures.kinds import KINDS
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.active.rounds import ActiveError, make_plan
from estimation.core.sampling import designs
from estimation.core.sampling.interval_kinds import INTERVAL_KINDS
from estimation.core.sampling.methods import (
    SAMPLING_METHODS,
    check_interval,
    draws_again,
    estimating,
    interval_kinds,
    with_option,
)

OF_PAIRS = [name for name, method in SAMPLING_METHODS.items() if method.draws == "pairs"]
WITH_SIZES = ["adaptive", *OF_PAIRS]  # its first batch is drawn as theirs are


def test_designs_over_pairs_are_those_of_the_table() -> None:
    assert set(WITH_SIZES) == set(get_args(designs.Method)) == set(designs.METHODS)
    assert with_option("rule") == tuple(WITH_SIZES)


def test_every_measure_and_every_kind_of_interval_has_a_method() -> None:
    assert all(estimating(name) for name in KINDS)
    assert {kind for name in SAMPLING_METHODS for kind in interval_kinds(name)} == {*INTERVAL_KINDS}
    assert interval_kinds("a baseline") == ("student",)
    assert not draws_again("a baseline")


@pytest.mark.parametrize("name", SAMPLING_METHODS)
def test_the_usual_interval_comes_first_and_no_other_is_let_through(name: str) -> None:
    allowed = interval_kinds(name)
    assert allowed[0] == "student"
    for kind in INTERVAL_KINDS:
        if kind in allowed:
            check_interval(kind, method=name)
        else:
            with pytest.raises(ValueError, match=f"for the method {name}, not '{kind}'"):
                check_interval(kind, method=name)


def test_draws_have_eps_and_others_a_floor() -> None:
    for name in WITH_SIZES:
        again = draws_again(name)
        assert ("eps" in SAMPLING_METHODS[name].options) == again
        assert ("floor" in SAMPLING_METHODS[name].options) == (not again)


@pytest.mark.parametrize("measure", KINDS)
def test_active_plans_take_the_measures_that_the_table_has(tiny_pool: Pool, measure: str) -> None:
    asked = parse_measure(KINDS[measure].example)
    whole = asked.cutoff is None or asked.family != "ratio"
    if SAMPLING_METHODS["active"].estimates(measure) and whole:
        assert make_plan(tiny_pool, measures=[asked], budget=3, batch_size=3).batches >= 1
    else:
        with pytest.raises(ActiveError, match="Active sampling estimates"):
            make_plan(tiny_pool, measures=[asked], budget=3, batch_size=3)


def test_what_several_rounds_together_lack_is_told() -> None:
    draws = SAMPLING_METHODS["iid"]
    assert draws.intervals_together == ("student", "hoeffding", "hoeffding-paper")
    asked = [parse_measure(text) for text in ("AP", "P@5", "nDCG@5")]
    assert draws.refused_together(asked) == ["AP", "nDCG@5"]
    assert SAMPLING_METHODS["poisson"].refused_together(asked) == []
