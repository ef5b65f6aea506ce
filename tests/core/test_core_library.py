"""The library's steps: texts for objects, what is usual filled in, later runs, files."""

from pathlib import Path

import numpy as np
import pytest

from estimation import core
from estimation.core.data.labels import LabelError, LabelRows
from estimation.core.data.pool import Pool
from estimation.core.data.ranked_lists import PoolError
from estimation.core.planning.learning import LearningProspects
from estimation.core.planning.planning import expected_half_widths
from estimation.core.rounds import evaluation
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.goals import ranking
from estimation.core.sampling.priors import make_prior

DCG = core.parse_measure("DCG@5")


def runs_of(number: int, seed: int = 0) -> dict[str, dict[str, dict[str, float]]]:
    rng = np.random.default_rng(seed)
    return {
        f"run{at}": {
            str(topic): {f"d{doc}": float(rng.random()) for doc in range(12)} for topic in range(15)
        }
        for at in range(number)
    }


@pytest.fixture
def pool() -> Pool:
    return core.pool_runs({t: core.rank_scores(r) for t, r in runs_of(4).items()}, depth=6)


@pytest.fixture
def judged(pool: Pool) -> core.Qrels:
    rng = np.random.default_rng(5)
    names = [f"d{doc}" for doc in range(12)]
    return core.Qrels.of({t: {d: int(rng.integers(3)) for d in names} for t in pool.topics})


def test_a_design_is_that_of_the_core(pool: Pool) -> None:
    goal = ranking(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=DCG, max_grade=2)
    theirs = make_design(pool, goal=goal, measure=DCG, prior=prior, budget=80, batch_size=8)
    ours = core.make_design(pool, measure="dcg@5", budget=80)
    np.testing.assert_allclose(ours.size, theirs.size, rtol=1e-14)
    np.testing.assert_allclose(ours.steps, theirs.steps, rtol=1e-12)
    assert (ours.batches, ours.goal, ours.method) == (10, goal, "poisson")


@pytest.mark.parametrize(
    "method", ["adaptive", "poisson", "priority", "iid", "per-query", "query", "active"]
)
def test_every_method_goes_from_a_pool_to_a_ranking(
    pool: Pool, judged: core.Qrels, method: str
) -> None:
    design = core.make_design(pool, measure="P@5", budget=140, method=method, max_grade=2)
    drawn = core.draw_round(pool, design, seed="s")
    if isinstance(drawn, core.ActiveRound | core.AdaptiveRound):
        for _ in range(drawn.batches - 1):
            drawn = drawn.extended(pool, labels=judged.labels(pool, drawn.served(pool).pair))
    found = core.evaluate(pool, drawn, labels=judged, measures=("P@5",), max_grade=2)
    assert sorted(found["P@5"].columns()["run"]) == list(pool.runs)
    assert method in repr(drawn)


def test_an_evaluation_is_that_of_the_core(pool: Pool, judged: core.Qrels) -> None:
    drawn = core.draw_round(pool, core.make_design(pool, measure="DCG@5", budget=80), seed="s")
    labels = judged.labels(pool, drawn.served(pool).pair)
    theirs = evaluation.evaluate(pool, drawn, labels=labels, measures=[DCG], max_grade=2)
    for given in (labels, judged):  # judgments of other pairs are left out
        for measures in ("DCG@5", DCG, ["DCG@5"], (DCG,)):
            ours = core.evaluate(pool, drawn, labels=given, measures=measures, max_grade=2)
            assert ours.columns() == theirs.columns()


def test_a_later_run_is_ranked_with_the_others(pool: Pool, judged: core.Qrels) -> None:
    drawn = core.draw_round(pool, core.make_design(pool, measure="DCG@5", budget=90), seed="s")
    asked = {"labels": judged, "measures": ["DCG@5", "AP"], "max_grade": 2}
    alone = core.evaluate(pool, drawn, **asked)
    later = {"new": core.rank_scores(runs_of(1, seed=9)["run0"])}
    both = core.evaluate(pool, drawn, **asked, later=later)
    for before, after in zip(alone.results, both.results, strict=True):
        assert after.runs == ("new", *before.runs)
        np.testing.assert_allclose(after.estimate.value[1:], before.estimate.value, rtol=1e-12)
        assert after.support[0] < 1.0
    with pytest.raises(PoolError, match="has a run 'run1' already"):
        core.evaluate(pool, drawn, **asked, later={"run1": later["new"]})


@pytest.mark.parametrize("method", ["adaptive", "poisson", "iid", "active"])
def test_of_a_later_run_that_the_sample_does_not_reach_nothing_is_known(
    pool: Pool, judged: core.Qrels, method: str
) -> None:
    """But what holds whatever its documents are: an interval, verdicts, that a copy is no worse."""
    design = core.make_design(pool, measure="P@5", budget=100, method=method, max_grade=2)
    drawn = core.draw_round(pool, design, seed="s")
    if isinstance(drawn, core.ActiveRound | core.AdaptiveRound):
        for _ in range(drawn.batches - 1):
            drawn = drawn.extended(pool, labels=judged.labels(pool, drawn.served(pool).pair))
    new = {topic: {f"new{n}": -float(n) for n in range(6)} for topic in pool.topics}
    lists = {
        "new": new, "copy": new, "stub": {"0": {"new0": 1.0}}, "empty": {"0": {}},
        "known": {topic: {"d1": 2.0} | new[topic] for topic in pool.topics},
    }  # fmt: skip
    later = {tag: core.rank_scores(each) for tag, each in lists.items()}
    asked = {"labels": judged, "measures": ("P@5", "AP"), "max_grade": 2, "later": later}
    for result in core.evaluate(pool, drawn, **asked).results:
        found, ranking = result.estimate, result.ranking
        at = {tag: result.runs.index(tag) for tag in result.runs}
        unreached = [at[tag] for tag in ("new", "copy", "stub")]
        assert np.flatnonzero(result.support == 0.0).tolist() == sorted(unreached)
        assert (found.unknown[unreached] == core.Reason.TOO_LITTLE).all()
        assert found.low[unreached].tolist() == [0.0, 0.0, 0.0]
        assert (found.high[[at["new"], at["copy"]]] == 1.0).all()
        assert ranking.unknown[at["new"], at["run0"]] == core.Reason.TOO_LITTLE
        assert ranking.adjusted_p[at["new"], at["run0"]] == 1.0
        assert not (ranking.unknown.astype(bool) & (ranking.verdicts != 0)).any()
        assert result.tiers[unreached].tolist() == [0, 0, 0]
        assert result.columns()["value"][result.columns()["run"].index("new")] is None
    sums = core.evaluate(pool, drawn, **asked)["P@5"]
    at = {tag: sums.runs.index(tag) for tag in sums.runs}
    assert sums.estimate.high[at["stub"]] == pytest.approx(1 / 75)
    assert not sums.estimate.unknown[[at["empty"], at["known"]]].any()
    assert sums.estimate.high[at["empty"]] == 0.0
    assert sums.ranking.verdicts[at["run0"], at["stub"]] == 1
    assert sums.ranking.unknown[at["run0"], at["stub"]] == core.Reason.KNOWN
    assert sums.ranking.unknown[at["new"], at["copy"]] == core.Reason.KNOWN


def test_a_drawn_pair_without_a_judgment_is_named(pool: Pool) -> None:
    drawn = core.draw_round(pool, core.make_design(pool, measure="DCG@5", budget=80), seed="s")
    with pytest.raises(LabelError, match="sampled pairs of these batches have no label"):
        core.evaluate(pool, drawn, labels=core.Qrels.of({}), measures="P@5", max_grade=1)


def test_rounds_together_share_numbers_by_their_seeds(pool: Pool, judged: core.Qrels) -> None:
    designs = [core.make_design(pool, measure=name, budget=60) for name in ("P@5", "DCG@5")]
    rounds = [core.draw_round(pool, each, seed="one") for each in designs]
    both = core.together(rounds, seeds=["one", "one"])
    labels = judged.labels(pool, np.union1d(*(each.sample.pair for each in rounds)))
    found = core.evaluate(pool, both, labels=labels, measures="P@5", max_grade=2)
    assert (
        found.columns()
        == core.evaluate(pool, both, labels=judged, measures="P@5", max_grade=2).columns()
    )
    largest = np.maximum(*(each.design.inclusion() for each in rounds))
    np.testing.assert_allclose(both.drawn(pool.topic).inclusion, largest)
    with pytest.raises(ValueError, match="seeds must hold one for each round, 2, not 1"):
        core.together(rounds, seeds=["one"])


@pytest.mark.parametrize("grade", [1, 3])
def test_what_is_promised_is_that_of_the_core(pool: Pool, grade: int) -> None:
    goal = ranking(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=DCG, max_grade=grade)
    design = core.make_design(pool, measure="DCG@5", budget=80)
    ours = core.expected_precision(pool, design, max_grade=grade)
    theirs = expected_half_widths(pool, design, measure=DCG, prior=prior, max_grade=grade)
    np.testing.assert_allclose(ours.half_width, theirs.half_width, rtol=1e-12)
    curve = core.precision_by_budget(pool, design, budgets=[80, 40], max_grade=grade)
    np.testing.assert_allclose(curve.half_width[0], theirs.half_width, rtol=1e-9)


@pytest.fixture
def adaptive(pool: Pool) -> core.AdaptivePlan:
    return core.make_design(pool, measure="DCG@5", budget=80, method="adaptive", max_grade=2)


def test_an_adaptive_round_promises_the_wide_end_of_what_was_played(
    pool: Pool, adaptive: core.AdaptivePlan
) -> None:
    ours = core.expected_precision(pool, adaptive)
    played = LearningProspects.of(pool, adaptive, measures=[DCG])
    np.testing.assert_array_equal(ours.half_width, played.half_widths(DCG, [80.0])[1, 0])
    differences = ours.difference_half_width[np.triu_indices(len(pool.runs), 1)]
    assert np.median(differences) == pytest.approx(played.differences(DCG, 80.0)[1], rel=0.3)
    np.testing.assert_array_equal(np.diag(ours.difference_half_width), 0.0)
    curve = core.precision_by_budget(pool, adaptive, budgets=[40, 80])
    np.testing.assert_array_equal(curve.half_width[1], ours.half_width)
    surer = core.expected_precision(pool, adaptive, confidence=0.99)
    assert np.all(surer.half_width > ours.half_width)


def test_a_top_up_promises_what_was_played_from_its_labels(
    pool: Pool, adaptive: core.AdaptivePlan
) -> None:
    judged = np.arange(0, len(pool), 2)
    labels = LabelRows(judged, judged % 3)
    plan = core.top_up(adaptive, judged=judged)
    ours = core.expected_precision(pool, plan, labels=labels)
    played = LearningProspects.of(pool, plan, measures=[DCG], labels=labels)
    wide = played.half_widths(DCG, [plan.budget])[1, 0]
    np.testing.assert_array_equal(ours.half_width, wide)
    curve = core.precision_by_budget(pool, plan, budgets=[plan.budget], labels=labels)
    np.testing.assert_array_equal(curve.half_width[0], wide)
    with pytest.raises(LabelError):
        core.expected_precision(pool, plan)


def test_a_top_up_that_is_too_small_to_be_played_counts_what_is_judged() -> None:
    """Its own design has no size of judged pairs: every run was as if it could not be sampled."""
    runs = {t: core.rank_scores(r) for t, r in runs_of(3).items()}
    small = core.pool_runs(runs, depth=2)
    judged = np.arange(0, len(small), 2)
    left, labels = len(small) - len(judged), LabelRows(judged, judged % 3)
    asked = {"measure": "DCG@5", "budget": 15, "batch_size": 5, "max_grade": 2}
    adaptive, poisson = (
        core.top_up(core.make_design(small, method=each, **asked), judged=judged)
        for each in ("adaptive", "poisson")
    )
    ours = core.expected_precision(small, adaptive, max_grade=2, labels=labels)
    theirs = core.expected_precision(small, poisson, max_grade=2)
    np.testing.assert_allclose(ours.half_width, theirs.half_width, rtol=1e-12)
    curve = core.precision_by_budget(
        small, adaptive, budgets=[15, left], max_grade=2, labels=labels
    )
    np.testing.assert_allclose(curve.half_width[0], theirs.half_width, rtol=1e-12)
    assert np.all(curve.half_width[1] == 0.0)


def test_an_adaptive_round_of_one_batch_promises_what_its_design_does(pool: Pool) -> None:
    asked = {"measure": "DCG@5", "budget": 80, "batch_size": 80}
    adaptive = core.make_design(pool, method="adaptive", max_grade=2, **asked)
    poisson = core.make_design(pool, measure="DCG@5", budget=80)
    ours, theirs = (
        core.expected_precision(pool, each, max_grade=2) for each in (adaptive, poisson)
    )
    np.testing.assert_allclose(ours.half_width, theirs.half_width, rtol=1e-12)
    ours, theirs = (
        core.precision_by_budget(pool, each, budgets=[40, 80]) for each in (adaptive, poisson)
    )
    np.testing.assert_allclose(ours.half_width, theirs.half_width, rtol=1e-12)
    active = core.make_design(pool, measure="AP", budget=80, method="active")
    with pytest.raises(core.DesignError, match=r"designs of pairs, not by an ActivePlan"):
        core.expected_precision(pool, active)


def test_what_batches_that_learn_do_not_have_is_told(
    pool: Pool, judged: core.Qrels, adaptive: core.AdaptivePlan, tmp_path: Path
) -> None:
    drawn = core.draw_round(pool, adaptive, seed="s")
    plain = core.make_design(pool, measure="DCG@5", budget=80)
    labels = judged.labels(pool, drawn.pairs(pool))
    with pytest.raises(core.DesignError, match="by adaptive do not fit into prels"):
        core.write_prels(tmp_path / "p", pool, drawn, labels=labels)
    assert not (tmp_path / "p").exists()
    with pytest.raises(core.CombiningError, match="topped up with the judged pairs alone"):
        core.top_up(adaptive, rounds=[drawn], seeds=["s"])  # type: ignore[call-overload]
    message = r"rounds\[0\] is by adaptive, and not by poisson"
    with pytest.raises(core.CombiningError, match=message):
        core.top_up(plain, rounds=[drawn], seeds=["s"])
    with pytest.raises(core.CombiningError, match=message):
        core.together([drawn], seeds=["s"])
    with pytest.raises(core.CombiningError, match=message):
        core.carry_over(drawn, pool, larger=pool, like=plain)


def test_an_adaptive_round_goes_on_from_its_files(
    pool: Pool, judged: core.Qrels, adaptive: core.AdaptivePlan, tmp_path: Path
) -> None:
    drawn = again = core.draw_round(pool, adaptive, seed="s")
    for _ in range(2):
        labels = judged.labels(pool, drawn.pairs(pool))
        again.design.save(tmp_path / "design"), again.sample.save(tmp_path / "sample")
        again = core.load_round(tmp_path / "design", tmp_path / "sample")
        drawn, again = (each.extended(pool, labels=labels) for each in (drawn, again))
    assert drawn.served(pool).columns() == again.served(pool).columns()


def test_texts_that_name_nothing_are_refused(pool: Pool) -> None:
    asked = {"measure": "P@5", "budget": 50}
    with pytest.raises(core.GoalError, match=r"'pair' names runs: pair\(\.\.\.\)"):
        core.make_design(pool, **asked, goal="pair")
    with pytest.raises(core.GoalError, match=r"not 'rankng' .did you mean 'ranking'"):
        core.make_design(pool, **asked, goal="rankng")
    with pytest.raises(core.DesignError, match=r"not 'activ' .did you mean 'active'"):
        core.make_design(pool, **asked, method="activ")
    with pytest.raises(core.PriorError, match=r"not 'ranks' .did you mean 'rank'"):
        core.make_design(pool, **asked, prior="ranks")
    with pytest.raises(core.DesignError, match="max_grade is needed"):
        core.make_design(pool, **asked, method="query")
    with pytest.raises(core.DesignError, match=r"no option 'flor' .did you mean 'floor'"):
        core.make_design(pool, **asked, flor=0.2)
    with pytest.raises(core.DesignError, match=r"'poisson' has no option 'topic_minimum'"):
        core.make_design(pool, **asked, topic_minimum=3.0)
    with pytest.raises(core.DesignError, match=r"'active' has no option 'floor'; .*: none"):
        core.make_design(pool, measure="AP", budget=50, method="active", floor=0.2)
    with pytest.raises(core.DesignError, match=r"no option 'deph' .did you mean 'depth'"):
        core.make_design(pool, **asked, method="query", max_grade=2, deph=3)


def test_a_pool_of_judgments_has_their_documents_and_topics() -> None:
    run = core.rank_scores({"1": {"a": 1.0}, "3": {"a": 1.0}})
    judged = core.Qrels.of({"1": {"z": 1}, "2": {"y": 0}})
    pool = core.pool_runs({"r": run}, depth=2, judged=judged)
    assert (pool.topics, pool.docno.tolist()) == (("1", "2"), [b"a", b"z", b"y"])
    assert core.pool_runs({"r": run}, depth=2).topics == ("1", "3")
    assert core.pool_runs({"r": run}, depth=2, topics=["1"], judged=judged).topics == ("1",)


def test_our_sample_as_prels_comes_back(pool: Pool, judged: core.Qrels, tmp_path: Path) -> None:
    drawn = core.draw_round(pool, core.make_design(pool, measure="P@5", budget=80), seed="s")
    labels = judged.labels(pool, drawn.served(pool).pair)
    assert core.write_prels(tmp_path / "p", pool, drawn, labels=labels) == len(labels.pair)
    prels = core.read_prels(tmp_path / "p")
    again = core.given_round(pool, prels)
    ours, theirs = (
        core.evaluate(pool, each, labels=judged, measures=("P@5", "DCG@5"), max_grade=2)
        for each in (drawn, again)
    )
    for one, other in zip(ours.results, theirs.results, strict=True):
        np.testing.assert_array_equal(one.estimate.value, other.estimate.value)


def test_prels_have_place_for_one_judgment(pool: Pool, tmp_path: Path) -> None:
    drawn = core.draw_round(pool, core.make_design(pool, measure="P@5", budget=80), seed="s")
    pair = drawn.sample.pair
    twice = core.LabelRows(np.append(pair, pair[0]), np.zeros(len(pair) + 1, dtype=np.int64))
    with pytest.raises(LabelError, match="has several judgments"):
        core.write_prels(tmp_path / "p", pool, drawn, labels=twice)
    with pytest.raises(LabelError, match="was drawn but has no judgment"):
        core.write_prels(tmp_path / "p", pool, drawn, labels=core.LabelRows(pair[:0], pair[:0]))
