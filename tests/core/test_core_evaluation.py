"""The entry point: what it refuses, what has no influence, limiting cases, equal bits."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from estimation.core import Design, Evaluation, MeasureResult, PairRound, RankedLists, Reason
from estimation.core.data.labels import LabelError, LabelRows, pair_labels
from estimation.core.data.pool import Pool, build_pool
from estimation.core.estimates.drawn import Drawn
from estimation.core.inference.fitting import outlook_of
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.random_numbers import extra_labels
from estimation.core.sampling.samples import Sample
from estimation.research.simulation import Simulation, simulate, true_values

DCG, PRECISION = parse_measure("DCG@10"), parse_measure("P@5")
TOPICS = [f"topic {number}" for number in range(12)]


def shuffled_lists(seed: int, rename: dict[str, str] | None = None) -> RankedLists:
    """A run that ranks 25 documents per topic in its own order."""
    docnos = []
    for place in range(len(TOPICS)):
        order = np.random.default_rng([seed, place]).permutation(25)
        docnos += [f"doc {number:02d}".encode() for number in order]
    names = tuple((rename or {}).get(topic, topic) for topic in TOPICS)
    return RankedLists(names, np.arange(0, len(docnos) + 1, 25), np.array(docnos))


def pool_of(*tags: str) -> Pool:
    return build_pool(TOPICS, {t: shuffled_lists(i) for i, t in enumerate(tags)}, depth=20)


@pytest.fixture
def pool() -> Pool:
    return pool_of("one", "three", "two")


def design_of(pool: Pool, method: str = "poisson", **options) -> Design:
    goal = options.pop("goal", goals.absolute(*pool.runs))
    measure = options.pop("measure", DCG)
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=3)
    settings = {"budget": 120, "batch_size": 40, "reported": [PRECISION]} | options
    return make_design(pool, goal=goal, measure=measure, prior=prior, method=method, **settings)


def pair_hash(pool: Pool, pair: int, salt: str) -> int:
    text = f"{pool.topics[pool.topic[pair]]}|{pool.docno[pair].decode()}|{salt}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def grades_of(pool: Pool) -> np.ndarray:
    return np.array([max(0, pair_hash(pool, i, "g") % 6 - 2) for i in range(len(pool))])


def judgments(pool: Pool, sample: Sample, number: int | None = None) -> LabelRows:
    """Noisy judgments of every sampled pair: one or two, or a fixed number."""
    counts = extra_labels(pool, seed="j", pairs=sample.pair, labels=number or 1,
                          share=0.0 if number else 0.5)  # fmt: skip
    pair = np.repeat(sample.pair, counts)
    assessor = np.concatenate([np.arange(count) for count in counts])
    noise = [pair_hash(pool, p, f"n{a}") % 2 for p, a in zip(pair.tolist(), assessor, strict=True)]
    return LabelRows(pair, np.minimum(grades_of(pool)[pair] + np.array(noise), 3))


def campaign(pool: Pool, method: str = "poisson", measures=(DCG, PRECISION), **options):
    design = design_of(pool, method)
    sample = draw(pool, design, seed="s")
    labels = options.pop("labels", None) or judgments(pool, sample)
    return evaluate(
        pool, PairRound(design, sample), labels=labels, measures=measures, max_grade=3, **options
    )


def bits(evaluation: Evaluation) -> str:
    """A digest of every published number."""
    state = hashlib.sha256()
    for result in evaluation.results:
        holders = [*result.estimators.values(), result.ranking, result]
        for holder in holders:
            for name, value in sorted(vars(holder).items()):
                if isinstance(value, np.ndarray):
                    state.update(name.encode() + value.tobytes())
    return state.hexdigest()


METHODS = pytest.mark.parametrize("method", ["poisson", "iid"])


# -------------------------------------------------------------------------- what has no influence


@METHODS
def test_order_of_rows_does_not_change_a_bit(pool: Pool, method: str) -> None:
    sample = draw(pool, design_of(pool, method), seed="s")
    rows = judgments(pool, sample, 7)
    expected = bits(campaign(pool, method, labels=rows))
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(rows.pair))
        shuffled = LabelRows(rows.pair[order], rows.grade[order])
        assert bits(campaign(pool, method, labels=shuffled)) == expected
    fewer = rows.grade.copy()
    fewer[np.argmax(fewer > 0)] -= 1
    assert bits(campaign(pool, method, labels=LabelRows(rows.pair, fewer))) != expected


@METHODS
def test_renaming_runs_permutes_the_results(pool: Pool, method: str) -> None:
    renamed = build_pool(
        TOPICS, {"z": shuffled_lists(0), "y": shuffled_lists(1), "x": shuffled_lists(2)}, depth=20
    )
    before, after = campaign(pool, method).results[0], campaign(renamed, method).results[0]
    places = [renamed.runs.index(new) for new in "zyx"]
    for name in ("value", "se", "low", "high", "df"):
        expected = getattr(before.estimate, name)
        assert getattr(after.estimate, name)[places] == pytest.approx(expected, rel=1e-12)
    covariance = after.estimate.covariance[np.ix_(places, places)]
    assert covariance == pytest.approx(before.estimate.covariance, rel=1e-12)
    assert after.ranking.verdicts[np.ix_(places, places)].tolist() == (
        before.ranking.verdicts.tolist()
    )


def test_topics_in_another_order_estimate_the_same_truth(pool: Pool) -> None:
    rename = {topic: f"{99 - place}" for place, topic in enumerate(TOPICS)}
    runs = {tag: shuffled_lists(i, rename) for i, tag in enumerate(("one", "three", "two"))}
    other = build_pool(rename.values(), runs, depth=20)
    backwards = {new: old for old, new in rename.items()}
    keys = [(backwards[other.topics[t]], d) for t, d in zip(other.topic, other.docno, strict=True)]
    own = {(pool.topics[t], d): i
           for i, (t, d) in enumerate(zip(pool.topic, pool.docno, strict=True))}  # fmt: skip
    places = np.array([own[key] for key in keys])
    first, second = design_of(pool), design_of(other)
    assert second.size == pytest.approx(first.size[places], rel=1e-12)
    taken = draw(pool, first, seed="s")
    moved = np.flatnonzero(np.isin(places, taken.pair))
    batch = dict(zip(taken.pair.tolist(), taken.batch.tolist(), strict=True))
    same = Sample(
        moved,
        np.array([batch[places[i]] for i in moved], dtype=np.int32),
        second.inclusion()[moved],
        taken.draws,
        other.digest,
    )
    grades = grades_of(pool)
    results = [
        evaluate(
            p, PairRound(d, s), labels=LabelRows(s.pair, g[s.pair]), measures=[DCG], max_grade=3
        )
        for p, d, s, g in ((pool, first, taken, grades), (other, second, same, grades[places]))
    ]
    for name in ("value", "se", "df"):
        one, two = (getattr(each.results[0].estimate, name) for each in results)
        assert two == pytest.approx(one, rel=1e-12)


def test_a_duplicate_run_has_the_same_numbers_and_no_verdict() -> None:
    runs = {"copy": shuffled_lists(0), "one": shuffled_lists(0), "two": shuffled_lists(1)}
    result = campaign(build_pool(TOPICS, runs, depth=20)).results[0]
    assert result.estimate.value[0] == result.estimate.value[1]
    assert result.estimate.covariance[0, 0] == result.estimate.covariance[0, 1]
    assert result.ranking.verdicts[0, 1] == 0
    assert result.ranking.adjusted_p[0, 1] == 1.0


SCRIPT = """
import sys
sys.path[:0] = {paths!r}
from test_core_evaluation import bits, campaign, pool_of
print(*[bits(campaign(pool_of("one", "three", "two"), m)) for m in ("poisson", "iid")])
"""


@pytest.mark.parametrize("threads", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_equal_bits_in_a_fresh_process_with_any_number_of_threads(pool: Pool, threads: str) -> None:
    here = Path(__file__).resolve()
    script = SCRIPT.format(paths=[str(here.parent), str(here.parents[2])])
    environment = dict(os.environ, OMP_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads)
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == [bits(campaign(pool, m)) for m in ("poisson", "iid")]


# ---------------------------------------------------------------------------------- limiting cases


def plain_mean(runs: dict[str, RankedLists], measure: Measure, grade: dict) -> list[float]:
    """The measure from its definition, topic by topic."""
    values = []
    for _, lists in sorted(runs.items()):
        total = 0.0
        for place, topic in enumerate(lists.topics):
            docnos = lists.docnos[lists.indptr[place] : lists.indptr[place + 1]].tolist()
            for rank, docno in enumerate(docnos[:20], start=1):
                gain = measure.utilities(np.array([grade[topic, docno]]))[0]
                total += measure.weights([rank])[0] * gain
        values.append(total / len(TOPICS))
    return values


@pytest.mark.parametrize("text", ["DCG@10", "P(rel=2)@5", "RBP(p=0.6)", "Gain(gain='exp')@3"])
def test_a_census_gives_the_measure_itself(pool: Pool, text: str) -> None:
    measure = parse_measure(text)
    design = design_of(pool, measure=measure, budget=len(pool))
    sample = draw(pool, design, seed="s")
    labels = LabelRows(sample.pair, grades_of(pool)[sample.pair])
    result = evaluate(
        pool, PairRound(design, sample), labels=labels, measures=[measure], max_grade=3
    ).results[0]
    runs = {tag: shuffled_lists(i) for i, tag in enumerate(("one", "three", "two"))}
    keys = zip((pool.topics[t] for t in pool.topic), pool.docno.tolist(), strict=True)
    grade = dict(zip(keys, grades_of(pool).tolist(), strict=True))
    assert result.estimate.value == pytest.approx(plain_mean(runs, measure, grade), rel=1e-12)
    assert result.estimate.se.tolist() == [0.0] * 3
    assert result.estimate.low.tolist() == result.estimate.value.tolist()
    assert result.ranking.rank_low.tolist() == result.ranking.rank.tolist()


def test_importance_sampling_with_the_perfect_distribution_has_no_variance(ranked) -> None:
    """Q proportional to w v: every draw gives the value itself (Schnabel et al. 2016, eq. 4)."""
    pool = build_pool(["t"], {"r": ranked({"t": "abc"})}, depth=3)
    grades, measure = np.array([3, 1, 2]), parse_measure("DCG@3")
    design = design_of(pool, "iid", measure=measure, budget=30, batch_size=10)
    ideal = pool.weights(measure).toarray()[:, 0] * grades
    perfect = Design(**{**vars(design), "size": ideal / ideal.sum()})
    simulated = simulate(
        pool, perfect, grades=grades, measure=measure, max_grade=3, seeds=["a", "b", "c"]
    )
    assert simulated.value == pytest.approx(np.full((3, 1), simulated.truth[0]))
    squares = evaluate(
        pool, PairRound(perfect, sample := draw(pool, perfect, seed="a")),
        labels=LabelRows(sample.pair, grades[sample.pair]), measures=[measure], max_grade=3,
    ).results[0].estimate.covariance  # fmt: skip
    assert np.abs(squares).max() < 1e-14


def test_many_draws_come_close_to_the_truth_for_both_estimators(pool: Pool) -> None:
    design = design_of(pool, "iid", budget=30_000, batch_size=30_000)
    sample = draw(pool, design, seed="s")
    grades = grades_of(pool)
    result = evaluate(
        pool, PairRound(design, sample), labels=LabelRows(sample.pair, grades[sample.pair]),
        measures=[DCG], max_grade=3,
    ).results[0]  # fmt: skip
    truth = true_values(pool, grades=grades, measure=DCG)
    assert result.estimators["ht"].value == pytest.approx(truth, rel=1e-6)
    assert result.estimators["is"].value == pytest.approx(truth, rel=0.05)
    assert np.all(result.estimators["ht"].se < result.estimators["is"].se / 10)


def test_support_is_the_share_of_weight_that_can_be_sampled(pool: Pool) -> None:
    design = design_of(pool, "iid", goal=goals.single("one"), reported=[])
    sample = draw(pool, design, seed="s")
    result = evaluate(
        pool, PairRound(design, sample), labels=judgments(pool, sample), measures=[DCG], max_grade=3
    ).results[0]
    weights = pool.weights(DCG).toarray()
    reached = weights[design.eligible].sum(axis=0) / weights.sum(axis=0)
    assert result.support == pytest.approx(reached)
    assert result.support[0] == 1.0
    assert np.all(result.support[1:] < 0.9)


def test_effective_sample_size_by_hand(pool: Pool) -> None:
    design = design_of(pool)
    sample = draw(pool, design, seed="s")
    shares = pool.weights(DCG, sample.pair).toarray() / sample.probability[:, None]
    expected = shares.sum(axis=0) ** 2 / (shares**2).sum(axis=0)
    assert campaign(pool).results[0].effective_sample_size == pytest.approx(expected)


def test_no_interval_reaches_below_zero(pool: Pool) -> None:
    sample = draw(pool, design_of(pool), seed="s")
    shared = pool.weights(DCG, sample.pair).toarray().min(axis=1)
    one = (np.argmax(shared * (sample.probability < 1)) == np.arange(len(sample))).astype(int)
    found = campaign(pool, labels=LabelRows(sample.pair, one)).results[0].estimate
    assert np.all(found.value < 1.96 * found.se)
    assert np.all((found.low >= 0.0) & (found.low < 0.2 * found.value))
    assert np.all(found.high > found.value)


@pytest.mark.parametrize("text", ["P@1", "DCG@3", "Mean(max=3)"])
def test_intervals_end_where_values_do(pool: Pool, text: str) -> None:
    measure = parse_measure(text)
    ended = 0
    for seed in range(20):
        design = design_of(pool, budget=12, batch_size=12)
        sample = draw(pool, design, seed=f"end {seed}")
        best = LabelRows(sample.pair, np.full(len(sample.pair), 3))
        found = evaluate(
            pool, PairRound(design, sample), labels=best, measures=[measure], max_grade=3
        )
        highest = measure.largest_value(max_grade=3, depth=pool.depth)
        shown = found.results[0].estimate
        assert np.all(shown.high <= np.maximum(highest, shown.value))
        student = shown.value + 2.0 * shown.se
        ended += np.count_nonzero((student > shown.high) & (shown.high == highest))
    assert ended > 0


def test_values_stay_below_the_largest_one(pool: Pool) -> None:
    """In a census of the best grades it is reached, where lists are full."""
    for text in ("P@1", "DCG@3", "Gain(gain='exp')@2", "RBP(p=0.8)", "Mean(max=3)"):
        measure = parse_measure(text)
        design = design_of(pool, measure=measure, budget=len(pool), batch_size=len(pool))
        sample = draw(pool, design, seed="census")
        best = LabelRows(sample.pair, np.full(len(sample.pair), 3))
        found = evaluate(
            pool, PairRound(design, sample), labels=best, measures=[measure], max_grade=3
        )
        highest = measure.largest_value(max_grade=3, depth=pool.depth)
        assert np.all(found.results[0].estimate.value <= highest * (1.0 + 1e-12))
        assert found.results[0].estimate.value.max() == pytest.approx(highest, rel=1e-12)


def test_certain_pairs_alone_leave_the_rest_open(pool: Pool) -> None:
    sample = draw(pool, design_of(pool), seed="s")
    certain = (sample.probability == 1).astype(int)
    assert 0 < certain.sum() < len(sample)
    found = campaign(pool, labels=LabelRows(sample.pair, certain)).results[0].estimate
    nothing = campaign(pool, labels=LabelRows(sample.pair, 0 * certain)).results[0].estimate
    assert np.diag(found.covariance).tolist() == [0.0] * 3
    assert np.all(found.se > 0.0)
    assert found.low == pytest.approx(found.value)
    assert np.all(found.high > found.value)
    assert np.all(found.high - found.value > 0.4 * nothing.high)


def usual_find(pool: Pool, design: Design, sample: Sample, labels: LabelRows) -> np.ndarray:
    """What the model expects a find to add to every run, its root mean square."""
    drawn = Drawn.of(design, sample, design.batches, topic=pool.topic)
    outlook = outlook_of(pool, drawn, labels, sampled=sample.pair, max_grade=3)
    uncertain = np.flatnonzero((drawn.inclusion > 0.0) & (drawn.inclusion < 1.0))
    first, _, third = outlook.moments(DCG, uncertain)
    weights, chance = pool.weights(DCG, uncertain).toarray().T, drawn.inclusion[uncertain]
    return np.sqrt(weights**3 @ ((1.0 - chance) / chance**2 * third) / (weights @ first))


def test_runs_without_any_positive_label_keep_an_interval(pool: Pool) -> None:
    design = design_of(pool)
    sample = draw(pool, design, seed="s")
    nothing = LabelRows(sample.pair, np.zeros_like(sample.pair))
    result = campaign(pool, labels=nothing).results[0]
    shown = result.estimate
    assert shown.value.tolist() == [0.0] * 3
    count_of_none = -np.log(0.025) * usual_find(pool, design, sample, nothing)
    assert np.all((shown.high > count_of_none) & (shown.high < 1.3 * count_of_none))
    assert result.ranking.unknown[0, 1] == Reason.TOO_LITTLE
    assert shown.low.tolist() == [0.0] * 3
    assert not result.ranking.verdicts.any()


def test_label_noise_widens_intervals_only_when_it_was_measured(pool: Pool) -> None:
    sample = draw(pool, design_of(pool), seed="s")
    single, double = judgments(pool, sample, 1), judgments(pool, sample, 2)
    once, twice = (campaign(pool, labels=rows).results[0] for rows in (single, double))
    assert not once.label_noise_measured
    assert twice.label_noise_measured
    same = LabelRows(np.repeat(single.pair, 2), np.repeat(single.grade, 2))
    agreed = campaign(pool, labels=same).results[0]
    assert agreed.estimate.covariance == pytest.approx(once.estimate.covariance)
    assert campaign(pool, labels=double).judgments == 2 * len(sample)


def test_labels_are_means_of_utilities() -> None:
    rows = LabelRows(np.array([0, 0, 1, 2, 2, 2]), np.array([0, 2, 3, 1, 1, 1]))
    found = pair_labels(rows, pairs=3, measure=parse_measure("DCG(dcg='exp-log2')"))
    assert found.mean.tolist() == [1.5, 7.0, 1.0]
    assert found.number.tolist() == [2, 1, 3]
    assert found.variance.tolist() == [4.5, 0.0, 0.0]
    assert found.noise.tolist() == [4.5 * (1 / 2 + 1 / 2), 0.0, 0.0]  # one single per two repeated


@METHODS
def test_later_batches_have_no_influence_on_a_prefix(pool: Pool, method: str) -> None:
    design = design_of(pool, method)
    sample = draw(pool, design, seed="s")
    rows = judgments(pool, sample)
    early = np.isin(rows.pair, sample.prefix(2))
    kept = LabelRows(rows.pair[early], rows.grade[early])
    whole, part = campaign(pool, method, batches=2), campaign(pool, method, labels=kept, batches=2)
    assert bits(whole) == bits(part)
    assert part.judged_pairs == len(sample.prefix(2))
    assert part.draws == (80 if method == "iid" else None)
    shorter = design_of(pool, method, budget=80)
    again = draw(pool, shorter, seed="s")
    fresh = evaluate(
        pool, PairRound(shorter, again), labels=kept, measures=[DCG, PRECISION], max_grade=3
    )
    assert bits(fresh) == bits(part)


# ------------------------------------------------------------------------------- what is refused


def test_no_sampled_pair_is_dropped_silently(pool: Pool) -> None:
    sample = draw(pool, design_of(pool), seed="s")
    rows = judgments(pool, sample, 1)
    with pytest.raises(LabelError, match="1 sampled pairs of these batches have no label"):
        campaign(pool, labels=LabelRows(rows.pair[1:], rows.grade[1:]))


def test_rows_off_the_sample_or_the_scale_are_refused(pool: Pool) -> None:
    sample = draw(pool, design_of(pool), seed="s")
    rows = judgments(pool, sample, 1)
    stranger = np.setdiff1d(np.arange(len(pool)), sample.pair)[:1]
    with pytest.raises(LabelError, match="not sampled"):
        campaign(pool, labels=LabelRows(np.append(rows.pair, stranger), np.append(rows.grade, 0)))
    for grade in (-1, 4):
        wrong = rows.grade.copy()
        wrong[0] = grade
        with pytest.raises(LabelError, match="between 0 and 3"):
            campaign(pool, labels=LabelRows(rows.pair, wrong))


def test_things_that_do_not_belong_together_are_refused(pool: Pool) -> None:
    design, other = design_of(pool), pool_of("one", "two")
    sample = draw(pool, design, seed="s")
    arguments = {"labels": judgments(pool, sample), "max_grade": 3}
    with pytest.raises(ValueError, match="do not belong together"):
        evaluate(other, PairRound(design, sample), measures=[DCG], **arguments)
    with pytest.raises(ValueError, match="must be a measure"):
        evaluate(pool, PairRound(design, sample), measures=[], **arguments)
    for batches in (0, 4):
        with pytest.raises(ValueError, match="between 1 and 3"):
            evaluate(pool, PairRound(design, sample), measures=[DCG], batches=batches, **arguments)
    with pytest.raises(ValueError, match="confidence"):
        evaluate(pool, PairRound(design, sample), measures=[DCG], confidence=95, **arguments)


def test_an_empty_batch_is_an_estimate_too(pool: Pool) -> None:
    design = design_of(pool, budget=2, batch_size=1)
    seed = next(s for s in map(str, range(100)) if not len(draw(pool, design, seed=s).prefix(1)))
    sample = draw(pool, design, seed=seed)
    labels = LabelRows(sample.pair, grades_of(pool)[sample.pair])
    found = evaluate(
        pool, PairRound(design, sample), labels=labels, measures=[DCG], max_grade=3, batches=1
    )
    result: MeasureResult = found.results[0]
    assert found.judged_pairs == 0
    assert result.estimate.value.tolist() == [0.0] * 3
    assert np.all(result.estimate.high > 0)


def test_bias_spread_and_coverage_of_simulations_by_hand() -> None:
    value = np.array([[1.0], [2.0], [6.0], [3.0]])
    found = Simulation(
        truth=np.array([2.5]),
        value=value,
        se=np.ones((4, 1)),
        low=value - 1,
        high=value + 1,
        judged_pairs=np.ones(4, dtype=np.int64),
    )
    assert found.bias.tolist() == [0.5]
    assert found.sd[0] == pytest.approx(np.sqrt(14 / 3))
    assert found.coverage.tolist() == [0.5]


def test_simulation_refuses_what_does_not_fit(pool: Pool) -> None:
    design = design_of(pool)
    arguments = {"measure": DCG, "max_grade": 3}
    with pytest.raises(ValueError, match="one grade per pair"):
        simulate(pool, design, grades=np.array([1]), seeds=["a"], **arguments)
    with pytest.raises(ValueError, match="must be a seed"):
        simulate(pool, design, grades=grades_of(pool), seeds=[], **arguments)


@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_what_topics_contribute_adds_up_to_the_estimates(pool: Pool, method: str) -> None:
    evaluation = campaign(pool, method)
    for result in evaluation.results:
        assert result.by_topic.shape == (len(TOPICS), 3)
        np.testing.assert_allclose(result.by_topic.sum(axis=0), result.estimate.value, atol=1e-12)


def test_a_topic_contributes_the_weighted_gains_of_its_own_pairs(pool: Pool) -> None:
    design = design_of(pool, budget=len(pool), batch_size=10**6)
    sample = draw(pool, design, seed="all")
    grade = grades_of(pool)
    labels = LabelRows(sample.pair, grade[sample.pair])
    result = evaluate(
        pool, PairRound(design, sample), labels=labels, measures=[DCG], max_grade=3
    ).results[0]
    for topic in range(len(TOPICS)):
        mine = pool.topic == topic
        expected = (pool.weights(DCG).toarray()[mine] * grade[mine][:, None]).sum(axis=0)
        np.testing.assert_allclose(result.by_topic[topic], expected, atol=1e-12)
