"""What holds for every design of every small pool: hypothesis looks for one where it fails."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import PoolError, rank_lines
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design, DesignError
from estimation.core.sampling.draws import draw
from estimation.core.sampling.goals import Goal, GoalError, effective_weights
from estimation.core.sampling.priors import PriorError, make_prior
from estimation.core.sampling.random_numbers import permanent_random_numbers, uniform_numbers
from tests.core.length import bounded

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")
st = hypothesis.strategies
given, assume, note = hypothesis.given, hypothesis.assume, hypothesis.note
PROPERTY = hypothesis.settings(
    deadline=None,
    max_examples=bounded(25, 50),
    suppress_health_check=[hypothesis.HealthCheck.filter_too_much],
)

pytestmark = pytest.mark.slow

METHODS = ("poisson", "iid")
MEASURES = ("DCG@2", "DCG", "P@1", "P(rel=2)@3", "RBP(p=0.5)", "Gain(gain='exp')@2")
TAGS, TOPICS, DOCNOS = ("ra", "rb", "rc", "rd"), ("t1", "t2", "t3"), "abcdef"
MAX_GRADE = 2
CLOSE = {"rel": 1e-9, "abs": 1e-12}


@dataclass(frozen=True)
class Campaign:
    """Ranked lists (tag, topic -> docnos) and what is wanted from them."""

    lists: Mapping[tuple[str, str], tuple[str, ...]]
    tags: tuple[str, ...]
    topics: tuple[str, ...]
    depth: int
    goal: Goal
    measure: str
    prior: str

    def pool(self, order: int = 0) -> Pool:
        """The pool; `order` reverses, or not, the order in which everything is given."""
        turn = -1 if order else 1
        runs = {}
        for tag in self.tags[::turn]:
            lines = [
                (topic.encode(), docno.encode(), -rank)
                for topic in self.topics
                for rank, docno in enumerate(self.lists[tag, topic])
            ][::turn]
            topics, docnos, scores = zip(*lines, strict=True) if lines else ((), (), ())
            runs[tag] = rank_lines(
                np.array(topics, "S4"), np.array(docnos, "S4"), np.array(scores, float)
            )
        return build_pool(self.topics[::turn], runs, depth=self.depth)

    def design(self, pool: Pool, **options) -> Design:
        measure = parse_measure(self.measure)
        prior = make_prior(
            pool, name=self.prior, goal=self.goal, measure=measure, max_grade=MAX_GRADE
        )
        return make_design(pool, goal=self.goal, measure=measure, prior=prior, **options)

    def renamed(self, tags: dict, topics: dict, docnos: dict) -> "Campaign":
        against = self.goal.against
        goal = replace(
            self.goal,
            runs=tuple(tags[tag] for tag in self.goal.runs),
            against=None if against is None else tags[against],
        )
        lists = {
            (tags[tag], topics[topic]): tuple(docnos[docno] for docno in found)
            for (tag, topic), found in self.lists.items()
        }
        return replace(
            self, lists=lists, goal=goal, tags=tuple(tags[tag] for tag in self.tags),
            topics=tuple(topics[topic] for topic in self.topics),
        )  # fmt: skip


def goal_of(kind: str, tags: list[str]) -> Goal:
    return {
        "single": lambda: goals.single(tags[0]),
        "absolute": lambda: goals.absolute(*tags),
        "pair": lambda: goals.pair(*tags[:2]),
        "baseline": lambda: goals.baseline(*tags[1:], against=tags[0]),
        "ranking": lambda: goals.ranking(*tags),
    }[kind]()


@st.composite
def campaigns(choose, kind: str) -> Campaign:
    tags = TAGS[: choose(st.integers(2, 4))]
    topics = TOPICS[: choose(st.integers(1, 3))]
    ranking = st.lists(st.sampled_from(DOCNOS), unique=True, max_size=6).map(tuple)
    lists = {(tag, topic): choose(ranking) for tag in tags for topic in topics}
    wanted = choose(st.permutations(tags))[: choose(st.integers(2, len(tags)))]
    campaign = Campaign(
        lists, tags, topics, choose(st.integers(1, 6)), goal_of(kind, wanted),
        choose(st.sampled_from(MEASURES)), choose(st.sampled_from(["rank", "constant"])),
    )  # fmt: skip
    pool = campaign.pool()
    assume(effective_weights(pool, campaign.goal, parse_measure(campaign.measure)).any())
    return campaign


@st.composite
def options_of(choose, method: str) -> dict:
    least = 2 if method == "iid" else 1
    return {
        "method": method,
        "budget": choose(st.integers(least, 40)),
        "batch_size": choose(st.integers(least, 12)),
        "rule": choose(st.sampled_from([None, "first", "second"])),
        "eps": choose(st.sampled_from([0.0, 0.05])),
        "floor": choose(st.sampled_from([0.0, 0.1, 1.0])),
    }


def with_designs(test):
    """Run a test on campaigns of all five goals and options of both methods."""
    test = PROPERTY(given(data=st.data())(test))
    test = pytest.mark.parametrize("kind", goals.kinds_for("poisson"))(test)
    return pytest.mark.parametrize("method", METHODS)(test)


def chosen(data, kind: str, method: str) -> tuple[Campaign, dict]:
    campaign, options = data.draw(campaigns(kind)), data.draw(options_of(method))
    if method == "poisson":
        options["budget"] = min(options["budget"], len(campaign.pool()))
    return campaign, options


def touched(pool: Pool, campaign: Campaign) -> np.ndarray:
    """Pairs with a weight in any run under the campaign's measure."""
    return pool.weights(parse_measure(campaign.measure)).max(axis=1).toarray().ravel() > 0.0


# ------------------------------------------------------------------------------- probabilities


@with_designs
def test_probabilities_sum_to_the_budget_of_every_batch(kind, method, data) -> None:
    campaign, options = chosen(data, kind, method)
    design = campaign.design(campaign.pool(), **options)
    assert design.size.sum() == pytest.approx(1.0)
    within = min(options["budget"], np.count_nonzero(design.eligible))
    for batches in range(1, design.batches + 1):
        spent = batches * options["batch_size"]
        if method == "poisson":
            total = design.inclusion(batches).sum()
            assert total == pytest.approx(min(spent, within), **CLOSE)
        else:
            assert design.step(batches) == min(spent, options["budget"])
    assert np.all(np.diff(design.steps) > 0.0)


@with_designs
def test_probabilities_are_probabilities_and_positive_on_the_support(kind, method, data) -> None:
    campaign, options = chosen(data, kind, method)
    pool = campaign.pool()
    design = campaign.design(pool, **options)
    reaches_all = options["floor"] > 0.0 if method == "poisson" else options["eps"] > 0.0
    weighted = effective_weights(pool, campaign.goal, design.measure) > 0.0
    expected = touched(pool, campaign) if reaches_all else weighted
    for batches in range(1, design.batches + 1):
        chance = design.inclusion(batches)
        assert np.all((chance >= 0.0) & (chance <= 1.0))
        assert np.array_equal(chance > 0.0, expected)
    assert np.array_equal(design.eligible, expected)


@with_designs
def test_probabilities_grow_with_the_budget_and_the_batches(kind, method, data) -> None:
    campaign, options = chosen(data, kind, method)
    pool = campaign.pool()
    design = campaign.design(pool, **options)
    more = options["budget"] + data.draw(st.integers(1, 20))
    if method == "poisson":
        more = min(more, len(pool))
    larger = campaign.design(pool, **(options | {"budget": more}))
    assert np.all(larger.inclusion() >= design.inclusion())
    assert np.array_equal(larger.size, design.size)
    for batches in range(1, design.batches):
        assert np.all(design.inclusion(batches + 1) >= design.inclusion(batches))
    if method == "poisson" and options["budget"] >= np.count_nonzero(design.eligible):
        assert design.is_census
        assert set(design.inclusion()[design.eligible].tolist()) == {1.0}


@with_designs
def test_costs_are_spent_to_the_budget(kind, method, data) -> None:
    campaign, options = chosen(data, kind, method)
    pool = campaign.pool()
    costs = np.array(data.draw(st.lists(
        st.sampled_from([1.0, 1.5, 4.0]), min_size=len(pool), max_size=len(pool)
    )))  # fmt: skip
    most = np.inf if method == "iid" else costs.sum()
    options |= {"budget": min(options["budget"] + 10, most), "batch_size": 50, "costs": costs}
    design = campaign.design(pool, **options)
    if method == "poisson":
        whole = costs[design.eligible].sum()
        expected = min(options["budget"], whole)
        assert costs @ design.inclusion() == pytest.approx(expected, **CLOSE)
    else:
        one_draw = costs @ design.size
        assert design.step() == np.floor(options["budget"] / one_draw + 1e-9)
    assert design.size.sum() == pytest.approx(1.0)


# --------------------------------------------------------------------------------- invariance


def by_name(pool: Pool, values: np.ndarray) -> dict[tuple[str, str], float]:
    keys = zip((pool.topics[t] for t in pool.topic), pool.docno.tolist(), strict=True)
    return {(t, d.decode()): v for (t, d), v in zip(keys, values.tolist(), strict=True)}


@with_designs
def test_the_order_of_the_input_has_no_influence(kind, method, data) -> None:
    campaign, options = chosen(data, kind, method)
    first, second = campaign.pool(), campaign.pool(order=1)
    assert first.digest == second.digest
    assert np.array_equal(
        campaign.design(first, **options).size, campaign.design(second, **options).size
    )
    shuffled = replace(campaign.goal, runs=tuple(reversed(campaign.goal.runs)))
    turned = replace(campaign, goal=shuffled).design(first, **options)
    assert turned.inclusion() == pytest.approx(campaign.design(first, **options).inclusion())


@with_designs
def test_names_have_no_influence_on_probabilities(kind, method, data) -> None:
    campaign, options = chosen(data, kind, method)
    names = [
        dict(zip(each, data.draw(st.permutations(each)), strict=True))
        for each in (campaign.tags, campaign.topics, tuple(DOCNOS))
    ]
    other = campaign.renamed(*names)
    pool, renamed = campaign.pool(), other.pool()
    found = by_name(renamed, other.design(renamed, **options).inclusion())
    for (topic, docno), chance in by_name(
        pool, campaign.design(pool, **options).inclusion()
    ).items():
        assert found[names[1][topic], names[2][docno]] == pytest.approx(chance, **CLOSE)


@PROPERTY
@given(data=st.data(), seed=st.text(max_size=8))
def test_permanent_numbers_of_any_subset_are_those_of_the_whole(data, seed) -> None:
    campaign = data.draw(campaigns("absolute"))
    pool = campaign.pool()
    whole = permanent_random_numbers(pool, seed=seed)
    assert np.all((whole > 0.0) & (whole < 1.0))
    subset = np.array(data.draw(st.lists(st.integers(0, len(pool) - 1))), dtype=np.int64)
    assert np.array_equal(permanent_random_numbers(pool, seed=seed, pairs=subset), whole[subset])
    fewer = replace(campaign, topics=campaign.topics[:1], depth=1).pool()
    named = by_name(pool, whole)
    for key, number in by_name(fewer, permanent_random_numbers(fewer, seed=seed)).items():
        assert named[key] == number


# -------------------------------------------------------------------------------------- draws


@with_designs
def test_every_prefix_of_batches_is_a_sample_of_its_own_design(kind, method, data) -> None:
    campaign, options = chosen(data, kind, method)
    pool = campaign.pool()
    design = campaign.design(pool, **options)
    sample = draw(pool, design, seed="s")
    assert np.all(np.diff(sample.pair) > 0)
    numbers = permanent_random_numbers(pool, seed="s")
    for batches in range(1, design.batches + 1):
        expected = np.flatnonzero(numbers < design.inclusion(batches))
        if method == "iid":
            expected = np.unique(sample.draws[: int(design.step(batches))])
        assert np.array_equal(sample.prefix(batches), expected)
        alone = {"budget": min(options["budget"], batches * options["batch_size"])}
        single = draw(pool, campaign.design(pool, **(options | alone)), seed="s")
        assert np.array_equal(single.pair, expected)
    assert np.array_equal(sample.probability, design.inclusion()[sample.pair])
    if method == "iid":
        assert len(sample.draws) == options["budget"]
        assert np.all(design.eligible[sample.draws])


def test_twin_that_numbers_pairs_by_position_is_caught() -> None:
    """Random numbers that go by the place in the pool change when the pool does."""
    lists = {("ra", "t1"): tuple("abc"), ("ra", "t2"): tuple("xyz")}
    campaign = Campaign(lists, ("ra",), ("t1", "t2"), 3, goals.single("ra"), "DCG@2", "rank")
    whole, fewer = campaign.pool(), replace(campaign, topics=("t2",)).pool()
    kept = np.flatnonzero(whole.topic == 1)
    by_position = uniform_numbers("s", number=len(whole))
    assert not np.array_equal(by_position[kept], uniform_numbers("s", number=len(fewer)))
    numbers = permanent_random_numbers(whole, seed="s")
    assert np.array_equal(numbers[kept], permanent_random_numbers(fewer, seed="s"))


# ---------------------------------------------------------------------------------- bad input


def design_with(pool: Pool, **options) -> Design:
    goal, measure = goals.absolute("alpha", "beta"), parse_measure("DCG@2")
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=MAX_GRADE)
    settings = {"goal": goal, "measure": measure, "prior": prior, "budget": 3, "batch_size": 2}
    return make_design(pool, **(settings | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget must be a whole number of at least 1, not 0"),
        ({"budget": -3}, "budget must be a whole number of at least 1, not -3"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, not 0"),
        ({"eps": -0.1, "method": "iid"}, r"eps must be .* not -0\.1"),
        ({"eps": float("inf"), "method": "iid"}, "eps must be .* not inf"),
        ({"floor": -0.1}, r"floor must lie between 0 and 1, not -0\.1"),
        ({"floor": float("nan")}, "floor must lie between 0 and 1, not nan"),
        ({"method": "systematic"}, "method is one of poisson, .*iid.* not 'systematic'"),
        ({"rule": "third"}, "rule is one of first, second.* not 'third'"),
        (
            {"costs": np.array([1.0, 2.0, np.nan, 1.0, 1.0])},
            r"costs must.*not nan \(item 2\)",
        ),
        (
            {"costs": np.array([1.0, 0.0, -1.0, 1.0, 1.0])},
            r"costs must.*not 0\.0 \(item 1\)",
        ),
    ],
)
def test_bad_numbers_are_named_with_their_value(tiny_pool: Pool, options, message) -> None:
    with pytest.raises(DesignError, match=message):
        design_with(tiny_pool, **options)


def test_unknown_names_list_what_is_accepted(tiny_pool: Pool) -> None:
    with pytest.raises(GoalError, match=f"one of {', '.join(goals.KINDS)}, not 'best'"):
        Goal("best", ("alpha",))
    with pytest.raises(PriorError, match=r"one of (?=.*rank)(?=.*constant).*, not 'oracle'"):
        make_prior(
            tiny_pool, name="oracle", goal=goals.single("alpha"), measure=parse_measure("DCG@2"),
            max_grade=MAX_GRADE,
        )  # fmt: skip
    with pytest.raises(MeasureError, match=r"'NCG' is not a known measure; known are .*DCG@100"):
        parse_measure("NCG@5")


@pytest.mark.parametrize(
    "goal",
    [
        goals.baseline("alpha", "beta", against="delta"),
        goals.pair("alpha", "delta"),
        goals.ranking("delta", "beta"),
        goals.single("delta"),
        goals.absolute("beta", "delta"),
    ],
    ids=lambda goal: goal.kind,
)
def test_a_run_that_is_not_in_the_pool_is_named(tiny_pool: Pool, goal: Goal) -> None:
    for method in METHODS:
        with pytest.raises(PoolError, match="no run 'delta'"):
            design_with(tiny_pool, goal=goal, method=method)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0, -1.0])
@pytest.mark.parametrize("moment", ["expected", "second_moment"])
def test_priors_that_are_not_positive_numbers_are_refused(tiny_pool, bad, moment) -> None:
    good = make_prior(
        tiny_pool, name="rank", goal=goals.single("alpha"), measure=parse_measure("DCG@2"),
        max_grade=MAX_GRADE,
    )  # fmt: skip
    values = getattr(good, moment).copy()
    values[3] = bad
    with pytest.raises(PriorError):
        replace(good, **{moment: values})
