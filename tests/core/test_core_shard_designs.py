"""Designs and draws in shards: the same bits for any number of shards, and those of one pool."""

from pathlib import Path

import numpy as np
import pytest

from estimation.core.measures.table import parse_measure
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design, DesignError
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import PriorError, make_prior
from estimation.core.sampling.probabilities import poisson_thresholds
from estimation.core.shards import sizes
from estimation.core.shards.designing import ShardedDesign, design_shards, draw_shards, solved
from estimation.core.shards.pools import read_pool
from estimation.core.shards.running import SerialExecutor
from estimation.core.shards.store import read_columns
from tests.core.sharded_pools import NUMBERS, whole_pool
from tests.core.test_core_shards import built

pytestmark = pytest.mark.usefixtures("no_disk_waits")

RUNS = ("run0", "run2", "run3")
CASES = {
    "absolute": (goals.absolute(*RUNS), "DCG@10", "rank", 0.1),
    "ranking": (goals.ranking(*RUNS), "P@10", "rank", 0.1),
    "baseline, fusion": (goals.baseline(*RUNS, against="run1"), "DCG@10", "fusion", 0.3),
    "a ratio, no floor": (goals.absolute(*RUNS), "AP", "constant", 0.0),
    "sizes next to 0": (goals.absolute(*RUNS), "RBP(p=0.0001)", "rank", 0.0),
}


CAPPED = ("absolute", "sizes next to 0")  # cases in which some of 700 pairs are certain


def one_design(case: str, budget: int, batch_size: int) -> Design:
    goal, measure, prior, floor = CASES[case]
    pool, parsed = whole_pool(), parse_measure(measure)
    believed = make_prior(pool, name=prior, goal=goal, measure=parsed, max_grade=3)
    return make_design(
        pool, goal=goal, measure=parsed, prior=believed, budget=budget, batch_size=batch_size,
        floor=floor, reported=[parse_measure("P@5")], max_grade=3,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of all tests here: what one has built is there for the next."""
    return tmp_path_factory.mktemp("shards")


def sharded_design(
    folder: Path, case: str, shards: int, budget: int, batch_size: int
) -> ShardedDesign:
    goal, measure, prior, floor = CASES[case]
    return design_shards(
        SerialExecutor(), built(folder, shards), goal=goal, measure=parse_measure(measure),
        prior=prior, budget=budget, batch_size=batch_size, floor=floor,
        reported=[parse_measure("P@5")], max_grade=3,
    )  # fmt: skip


def sizes_in_order(design: ShardedDesign) -> np.ndarray:
    """The sizes of all pairs in the order of the whole pool."""
    pool = design.pool
    topic = np.concatenate([read_pool(pool.frame, place).topic for place in pool.places])
    size = np.concatenate([read_columns(place, ["size"])[1]["size"] for place in design.sizes])
    return size[np.argsort(topic, kind="stable")]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("budget", [40, 700])
def test_probabilities_are_those_of_one_pool_but_for_rounding(
    folder: Path, case: str, budget: int
) -> None:
    one, several = one_design(case, budget, 30), sharded_design(folder, case, 7, budget, 30)
    np.testing.assert_allclose(sizes_in_order(several), one.size, rtol=1e-13)
    np.testing.assert_allclose(several.steps, one.steps, rtol=1e-12)
    assert np.any(one.inclusion() == 1.0) == (budget == 700 and case in CAPPED)
    inclusion = np.minimum(1.0, several.steps[-1] * sizes_in_order(several))
    np.testing.assert_allclose(inclusion, one.inclusion(), rtol=1e-12)
    assert inclusion.sum() == pytest.approx(budget, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_bits_do_not_depend_on_the_number_of_shards(folder: Path, case: str) -> None:
    designs = [sharded_design(folder, case, shards, 300, 45) for shards in NUMBERS]
    assert len({design.steps.tobytes() for design in designs}) == 1
    assert len({sizes_in_order(design).tobytes() for design in designs}) == 1
    samples = [draw_shards(SerialExecutor(), design, seed="any") for design in designs]
    for name in ("topic", "docno", "batch", "probability"):
        assert len({getattr(sample, name).tobytes() for sample in samples}) == 1


@pytest.mark.slow
def test_sums_in_the_order_of_shards_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "over_topics", lambda sums: float(np.cumsum(sums)[-1]))
    designs = [sharded_design(tmp_path, "absolute", shards, 300, 45) for shards in NUMBERS]
    assert len({sizes_in_order(design).tobytes() for design in designs}) > 1
    assert len({design.steps.tobytes() for design in designs}) > 1


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_sample_is_the_one_drawn_from_one_pool(folder: Path, case: str) -> None:
    one, pool = one_design(case, 300, 45), whole_pool()
    expected = draw(pool, one, seed="any")
    found = draw_shards(SerialExecutor(), sharded_design(folder, case, 7, 300, 45), seed="any")
    assert len(expected) > 200
    assert found.topic.tolist() == pool.topic[expected.pair].tolist()
    assert found.docno.tolist() == pool.docno[expected.pair].tolist()
    assert found.batch.tolist() == expected.batch.tolist()
    np.testing.assert_allclose(found.probability, expected.probability, rtol=1e-12)


@pytest.mark.slow
def test_a_budget_for_all_is_a_census(folder: Path) -> None:
    one = one_design("absolute", len(whole_pool()), 400)
    several = sharded_design(folder, "absolute", 7, len(whole_pool()), 400)
    assert np.isinf(several.steps[-1])
    np.testing.assert_allclose(several.steps, one.steps, rtol=1e-12)
    sample = draw_shards(SerialExecutor(), several, seed="any")
    assert len(sample.docno) == one.reachable_pairs


def test_what_cannot_be_designed_is_refused(folder: Path) -> None:
    pool = built(folder, 2)
    plan = {"measure": parse_measure("P@10"), "budget": 10, "batch_size": 5}
    same = goals.ranking("run0", "run1")
    with pytest.raises(PriorError, match="In shards the prior is one of"):
        design_shards(SerialExecutor(), pool, goal=same, prior="scores", **plan)
    with pytest.raises(DesignError, match="budget must be at most"):
        design_shards(SerialExecutor(), pool, goal=same, **(plan | {"budget": 10**6}))


# ------------------------------------------------------------------------- the constants alone


def sums_of(size: np.ndarray):
    def sums(constants: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        certain = size[:, None] >= 1.0 / constants
        least = np.where(certain, size[:, None], np.inf).min(axis=0)
        return certain.sum(axis=0), least, np.where(certain, 0.0, size[:, None]).sum(axis=0)

    return sums


@pytest.mark.parametrize("seed", range(20))
def test_constants_are_those_of_one_process(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = rng.pareto(0.5 + seed / 10.0, size=400) + 1e-9
    size[: 5 * seed] = size[0]  # many of one size become certain together
    size /= size.sum()
    targets = np.append(np.sort(rng.uniform(0.5, 399.0, size=30)), [399.9999, 400.0])
    expected = poisson_thresholds(size, targets=targets)
    np.testing.assert_allclose(solved(targets, sums_of(size), len(size)), expected, rtol=1e-11)


def test_one_step_alone_would_not_do() -> None:
    size = np.array([0.7, 0.2, 0.05, 0.05])
    targets = np.array([2.2])
    (constant,) = solved(targets, sums_of(size), len(size)).tolist()
    assert np.minimum(1.0, constant * size).sum() == pytest.approx(2.2, rel=1e-15)
    assert np.minimum(1.0, targets[0] * size).sum() < 1.7
