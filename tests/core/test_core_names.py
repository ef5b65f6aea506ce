"""Unknown names are answered with the nearest ones, and the public face knows its own."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from estimation import core
from estimation.core.arrays import nearest
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import PoolError
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import DesignError
from estimation.core.sampling.goals import Goal, GoalError, ranking
from estimation.core.sampling.methods import check_interval
from estimation.core.sampling.priors import PriorError, make_prior

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture
def pool() -> Pool:
    lists = core.rank_scores({"1": {"d1": 2.0, "d2": 1.0}})
    return build_pool(["1"], {"bm25-title": lists, "bm25-body": lists, "dph": lists}, depth=2)


@pytest.mark.parametrize(
    ("wrong", "known", "meant"),
    [
        ("poison", ("poisson", "priority"), " (did you mean 'poisson'?)"),
        ("NDCG@10", ("nDCG@10", "DCG@100", "P@10"), " (did you mean 'nDCG@10'?)"),
        ("read_run", ("read_runs", "read_qrels"), " (did you mean 'read_runs'?)"),
        ("rank-1", ("rank-2", "rank-3"), " (did you mean 'rank-3' or 'rank-2'?)"),
        ("zeta", ("alpha", "beta"), ""),
        ("DGC", ("DCG", "nDCG"), " (did you mean 'DCG'?)"),
        ("x", (), ""),
        (None, ("none at all",), ""),
    ],
)
def test_the_nearest_names_are_meant(wrong: object, known: tuple[str, ...], meant: str) -> None:
    assert nearest(wrong, known) == meant


def test_every_message_about_a_name_says_what_may_be_meant(pool: Pool) -> None:
    measure, goal = parse_measure("P@2"), ranking("dph", "bm25-body")
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=1)
    asked = {"goal": goal, "measure": measure, "prior": prior, "budget": 2, "batch_size": 2}
    with pytest.raises(MeasureError, match="did you mean 'nDCG'"):
        parse_measure("NDGC@10")
    with pytest.raises(MeasureError, match=r"not 'NDCG10' \(did you mean 'nDCG@10'"):
        parse_measure("NDCG10")
    with pytest.raises(PoolError, match=r"no run 'bm25-titel' \(did you mean 'bm25-title'"):
        pool.run_index("bm25-titel")
    with pytest.raises(GoalError, match="did you mean 'ranking'"):
        Goal("rankings", ("a", "b"))
    with pytest.raises(PriorError, match=r"not 'fussion' \(did you mean 'fusion'\?\)\."):
        make_prior(pool, name="fussion", goal=goal, measure=measure, max_grade=1)
    with pytest.raises(DesignError, match=r"not 'poison' \(did you mean 'poisson'\?\)\."):
        make_design(pool, method="poison", **asked)
    with pytest.raises(ValueError, match="did you mean 'bernstein'"):
        check_interval("bernstien", method="poisson")


# ------------------------------------------------------------------------------ the public face


def test_the_face_has_the_names_that_type_checkers_see() -> None:
    source = Path(core.__file__).read_text("utf-8").partition("if TYPE_CHECKING:")[2]
    block = source.partition("\n_WHERE")[0]
    typed = {line.split(" as ")[1].strip() for line in block.splitlines() if " as " in line}
    assert typed == set(core.__all__)
    assert set(core.__all__) <= set(dir(core))


@pytest.mark.parametrize("name", core.__all__)
def test_every_name_of_the_face_is_there(name: str) -> None:
    value = getattr(core, name)
    assert getattr(value, "__name__", name) == name


@pytest.mark.parametrize("name", [n for n in core.__all__ if n[0].islower()])
def test_public_functions_are_typed(name: str) -> None:
    assert "return" in inspect.get_annotations(getattr(core, name))


def test_unknown_names_of_the_face_are_answered_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match="did you mean 'evaluate'"):
        core.evaluat  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute '_evaluate'$"):
        core._evaluate  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'evaluat'"):
        exec("from estimation.core import evaluat")


def test_importing_the_face_loads_nothing() -> None:
    code = "import sys, estimation.core as c; dir(c); c.__all__; print('numpy' in sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
