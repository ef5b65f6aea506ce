"""What guaranteed intervals promise before judging is what they are afterwards."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.table import parse_measure
from estimation.core.planning.guaranteed_planning import guaranteed_half_widths
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior

MEASURE = parse_measure("DCG@10")
METHODS = {
    "hoeffding": "iid",
    "hoeffding-paper": "iid",
    "empirical-bernstein": "iid",
    "bernstein": "poisson",
    "chernoff": "poisson",
}


@pytest.fixture(scope="module")
def pool() -> Pool:
    rng = np.random.default_rng(4)
    topics = tuple(f"t{n}" for n in range(30))
    runs = {}
    for tag in ("one", "two", "three"):
        docnos = [f"d{n}".encode() for _ in topics for n in rng.permutation(40)[:20]]
        runs[tag] = RankedLists(topics, np.arange(0, 601, 20), np.array(docnos))
    return build_pool(topics, runs, depth=20)


def parts(pool: Pool, method: str, **options):
    goal = goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=MEASURE, max_grade=3)
    settings = {"budget": 300, "batch_size": 100, "method": method, "eps": 0.1} | options
    design = make_design(pool, goal=goal, measure=MEASURE, prior=prior, **settings)
    return prior, design


def half_lengths(
    pool: Pool, kind: str, *, samples: int, **options
) -> tuple[np.ndarray, np.ndarray]:
    """What is promised, and half the lengths of intervals, (samples, k), when the prior is true."""
    prior, design = parts(pool, METHODS[kind], **options)
    rng = np.random.default_rng(8)
    chance = prior.expected / MEASURE.max_utility(3)
    lengths = []
    for seed in range(samples):
        truth = np.where(rng.random(len(pool)) < chance, 3, 0)
        sample = draw(pool, design, seed=str(seed))
        found = evaluate(
            pool, PairRound(design, sample), labels=LabelRows(sample.pair, truth[sample.pair]),
            measures=[MEASURE], max_grade=3, interval=kind,
        ).results[0].estimate  # fmt: skip
        lengths.append((found.high - found.low) / 2)
    promised = guaranteed_half_widths(
        pool, design, kind=kind, measure=MEASURE, prior=prior, max_grade=3
    )
    return promised, np.array(lengths)


@pytest.mark.slow
@pytest.mark.parametrize("kind", METHODS)
def test_the_promise_is_what_the_intervals_are(pool: Pool, kind: str) -> None:
    """On average when the prior is true; many of them are cut where values end."""
    promised, found = half_lengths(pool, kind, samples=25)
    assert found.mean(axis=0) == pytest.approx(promised, rel=0.05)
    assert 1.12 * found.mean(axis=0) != pytest.approx(promised, rel=0.05)
    assert np.all(promised <= MEASURE.largest_value(max_grade=3, depth=20) / 2)


@pytest.mark.parametrize(
    ("kind", "budget"), [("hoeffding", 9000), ("hoeffding-paper", 9000), ("bernstein", 900)]
)
def test_what_follows_from_the_design_is_known(pool: Pool, kind: str, budget: int) -> None:
    """Where nothing is cut, no label has any influence."""
    promised, found = half_lengths(pool, kind, samples=3, budget=budget, batch_size=budget)
    assert found == pytest.approx(np.tile(promised, (3, 1)), rel=1e-12)


def test_a_larger_budget_promises_narrower_intervals(pool: Pool) -> None:
    for kind, method in METHODS.items():
        widths = []
        for budget in (200, 400):
            prior, design = parts(pool, method, budget=budget)
            widths.append(
                guaranteed_half_widths(
                    pool, design, kind=kind, measure=MEASURE, prior=prior, max_grade=3
                )
            )
        assert np.all(widths[1] < widths[0]), kind


def test_runs_out_of_reach_are_promised_nothing(pool: Pool) -> None:
    goal = goals.single("one")
    prior = make_prior(pool, name="rank", goal=goal, measure=MEASURE, max_grade=3)
    design = make_design(
        pool, goal=goal, measure=MEASURE, prior=prior, budget=50, batch_size=50, method="iid"
    )
    widths = guaranteed_half_widths(
        pool, design, kind="hoeffding", measure=MEASURE, prior=prior, max_grade=3
    )
    assert np.isfinite(widths).tolist() == [tag == "one" for tag in pool.runs]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "student"}, "kind must be one of guaranteed intervals, not 'student'"),
        ({"kind": "hoeffding"}, "interval must be one of student, bernstein, chernoff"),
        ({"measure": parse_measure("AP")}, "measure must be a sum of gains, not AP"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_what_does_not_fit_is_refused(pool: Pool, options, message: str) -> None:
    prior, design = parts(pool, "poisson")
    given = {"kind": "chernoff", "measure": MEASURE, "prior": prior, "max_grade": 3} | options
    with pytest.raises(ValueError, match=message):
        guaranteed_half_widths(pool, design, **given)
