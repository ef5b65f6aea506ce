"""The variance of active samples: exactly unbiased for totals, and intervals that cover."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows, pair_labels
from estimation.core.data.pool import build_pool
from estimation.core.data.ranked_lists import rank_lines
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.active.estimates import estimate
from estimation.core.rounds.active.expected import (
    LikelyUtility,
    Logistic,
    expected_covariance,
    expected_moments,
)
from estimation.core.rounds.active.lists import ActiveError, ActiveFrame, make_frame
from estimation.core.rounds.active.rounds import ActiveRound, make_plan
from estimation.core.rounds.active.sampling import ActiveState, plan_batch, start
from estimation.core.rounds.active.steps import History, Steps
from estimation.core.rounds.active.values import TopicSample, topic_line, topic_result
from estimation.core.rounds.active.weights import sequential_weights, step_shares
from estimation.core.rounds.evaluation import evaluate
from tests.core.length import bounded

RUNS = {"alpha": "abcde", "beta": "bdca", "gamma": "ebd"}
CHANCES = np.array([0.7, 0.0, 0.4, 1.0, 0.0])  # that an assessor finds a..e relevant


@pytest.fixture
def frame(ranked) -> ActiveFrame:
    runs = {tag: ranked({"t1": letters}) for tag, letters in RUNS.items()}
    return make_frame(build_pool(["t1"], runs, depth=5))


Labels = tuple[tuple[int, ...], ...]


def outcomes(chance: float, number: int) -> list[tuple[float, tuple[int, ...]]]:
    """All sets of so many judgments of a document, with their probabilities."""
    found = []
    for grades in product((0, 1), repeat=number):
        probability = float(np.prod([chance if grade else 1.0 - chance for grade in grades]))
        if probability > 0.0:
            found.append((probability, grades))
    return found


def rows_of(pairs: np.ndarray, labels: Labels) -> LabelRows:
    given = [(pair, grade) for pair, each in zip(pairs, labels, strict=True) for grade in each]
    return LabelRows(*np.array(given, dtype=np.int64).reshape(-1, 2).T)


def all_plans(
    frame: ActiveFrame, state: ActiveState, labels: Labels, *, length: int, number: int
) -> Iterator[tuple[float, ActiveState, Labels]]:
    """Every sequence of documents and judgments, one document per round.

    Each round is steered by the judgments of the ones before, whatever they happened to be.
    """
    if len(state.pair) == length:
        yield 1.0, state, labels
        return
    planned = plan_batch(frame, state, labels=rows_of(state.pair, labels))
    chance = frame.lists(0).document_probability(planned.run_probability[-1])
    chance[state.pair] = 0.0
    for document in np.flatnonzero(chance).tolist():
        after = replace(planned, pair=np.append(state.pair, document))
        for likely, grades in outcomes(CHANCES[document], number):
            for probability, plan, given in all_plans(
                frame, after, (*labels, grades), length=length, number=number
            ):
                yield likely * probability * chance[document] / chance.sum(), plan, given


@pytest.mark.usefixtures("values_alone")
@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def test_the_variance_is_unbiased_over_all_plans_and_judgments(frame, number: int) -> None:
    begin = start(frame, seed="s", batch_size=1, uniform_share=0.3)
    mean = square = variance = without = doubled = total = 0.0
    for probability, plan, given in all_plans(frame, begin, (), length=3, number=number):
        labels = rows_of(plan.pair, given)
        found = estimate(frame, plan, labels=labels, measures=["P@2"], form="sequential")[0]
        total += probability
        mean += probability * found.relevant[0]
        square += probability * found.relevant[0] ** 2
        variance += probability * found.relevant_variance[0]
        history = History.of(frame, plan)
        weights = Steps.of(frame.lists(0), history, 0).weights(plan.pair)
        rows = LabelRows(np.repeat(np.arange(3), number), labels.grade)
        judged = pair_labels(rows, pairs=3, measure=parse_measure("P@2"))
        form = judged.mean @ weights.quadratic @ judged.mean
        without += probability * form
        doubled += probability * (form + weights.single**2 @ judged.noise)
    truth = square - mean**2
    assert total == pytest.approx(1.0, abs=1e-12)
    assert mean == pytest.approx(CHANCES.sum(), abs=1e-12)
    if number == 2:
        assert variance == pytest.approx(truth, abs=1e-12)
        assert abs(without - truth) > 0.01 * truth  # without the disagreement
        assert abs(doubled - truth) > 0.1 * truth  # with what is in the labels counted twice
    else:  # one judgment each: disagreement cannot be measured, and is missing
        assert variance < truth - 0.1


def test_the_expected_variance_is_exact_with_the_true_moments(frame) -> None:
    """Over all plans that labels without noise can steer; a wrong model is noticed."""
    grades = np.array([1, 0, 1, 1, 0])
    truth = LikelyUtility(grades.astype(np.float64), grades.astype(np.float64))
    wrong = LikelyUtility(truth.mean * 0.5, truth.square * 0.5)
    measure = parse_measure("DCG@4")
    values, expected, halved = [], [], []
    for probability, plan in plans_of(frame, grades, length=3):
        steps = Steps.of(frame.lists(0), History.of(frame, plan), 0)
        sample = TopicSample.of(
            frame.lists(0), np.sort(plan.pair), steps.weights(np.sort(plan.pair))
        )
        result = topic_result(sample, measure, truth.mean[sample.documents], "sequential")
        line = topic_line(sample, measure, truth.mean[sample.documents], result)
        for moments, into in ((truth, expected), (wrong, halved)):
            found = expected_covariance(steps, line, moments, spread=steps.spread())
            into.append(probability * found)
        values.append((probability, result.value))
    weights = np.array([each for each, _ in values])
    value = np.array([each for _, each in values])
    error = value - weights @ value
    covariance = (error * weights[:, None]).T @ error
    np.testing.assert_allclose(np.sum(expected, axis=0), covariance, atol=1e-12)
    assert np.abs(np.sum(halved, axis=0) - covariance).max() > 0.1 * covariance.max()


def plans_of(
    frame: ActiveFrame, grades: np.ndarray, *, length: int
) -> Iterator[tuple[float, ActiveState]]:
    def extended(state: ActiveState) -> Iterator[tuple[float, ActiveState]]:
        if len(state.pair) == length:
            yield 1.0, state
            return
        planned = plan_batch(frame, state, labels=LabelRows(state.pair, grades[state.pair]))
        chance = frame.lists(0).document_probability(planned.run_probability[-1])
        chance[state.pair] = 0.0
        for document in np.flatnonzero(chance).tolist():
            after = replace(planned, pair=np.append(state.pair, document))
            for probability, plan in extended(after):
                yield probability * chance[document] / chance.sum(), plan

    yield from extended(start(frame, seed="s", batch_size=1, uniform_share=0.3))


def test_the_unbiased_form_is_that_of_differences_of_steps() -> None:
    conditional, y = np.array([0.1, 0.5, 0.3, 0.4, 0.8]), np.array([2.0, 0.0, 1.0, 3.0, 0.5])
    each = np.array([y[:s].sum() + y[s] / conditional[s] for s in range(5)])  # T_s
    squares = step_shares(5, 9) ** 2
    coupled = np.add.outer(squares, squares) / 3 - squares.sum() / 12
    np.fill_diagonal(coupled, 0.0)
    np.testing.assert_allclose(coupled.sum(axis=1), squares, atol=1e-15)
    expected = (coupled * np.subtract.outer(each, each) ** 2).sum() / 2
    steps = np.array([4, 0, 3, 2])  # in any order, without the document that has y = 0
    found = sequential_weights(conditional, documents=9, steps=steps)
    assert y[steps] @ found.quadratic @ y[steps] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("number", [1, 2])
def test_one_or_two_steps_show_no_variance(number: int) -> None:
    found = sequential_weights(np.full(number, 0.5), documents=9, steps=np.arange(number))
    np.testing.assert_array_equal(found.quadratic, 0.0)


# ------------------------------------------------------------------- the parts and their sum


def census_precision(y: np.ndarray, letters: str) -> float:
    """AP of a list, for utilities that need not be 0 or 1."""
    places = [ord(letter) - ord("a") for letter in letters]
    above = np.append(0.0, np.cumsum(y[places]))[:-1]
    ranks = np.arange(1, len(places) + 1)
    return float((y[places] * (1.0 + above) / ranks).sum() / y.sum())


def test_precision_is_linearized_by_its_derivatives(frame) -> None:
    y = np.array([1.0, 0.25, 0.5, 0.0, 0.75])
    everything = np.arange(5)
    weights = sequential_weights(np.array([0.3, 0.3, 0.5, 0.6, 1.0]), documents=5, steps=everything)
    sample = TopicSample.of(frame.lists(0), everything, weights)
    result = topic_result(sample, parse_measure("AP"), y, "sequential")
    rows = topic_line(sample, parse_measure("AP"), y, result).rows(everything)
    for run, letters in enumerate(RUNS.values()):
        assert result.value[run] == pytest.approx(census_precision(y, letters), rel=1e-12)
        for place in range(5):
            step = np.zeros(5)
            step[place] = 1e-6
            rise = census_precision(y + step, letters) - census_precision(y - step, letters)
            assert rows[place, run] == pytest.approx(rise / 2e-6, abs=1e-8), (letters, place)


def test_the_variance_is_the_mean_of_two_and_the_disagreement(frame) -> None:
    plan = next(plan for _, plan in plans_of(frame, np.array([1, 0, 1, 1, 0]), length=4))
    labels = rows_of(plan.pair, ((0, 1), (1,), (1, 1, 0), (0,)))
    found = estimate(frame, plan, labels=labels, measures=["DCG@4"], form="sequential")[0]
    assert found.noise_measured
    steps = Steps.of(frame.lists(0), History.of(frame, plan), 0)
    weights = steps.weights(plan.pair)
    y, of_all = np.array([0.5, 1.0, 2 / 3, 0.0]), (1 / 2 + 1 / 3 + 1 / 2) / 3.0
    expected_of_0 = (0.5 / 2 + 1 / 9 + 3.0 * of_all) / (0.5 + 1 / 3 + 3.0)
    expected_of_1 = (0.5 / 2 + 2 / 9 + 3.0 * of_all) / (0.5 + 2 / 3 + 3.0)
    noise = np.array([0.5 / 2, expected_of_1, 1 / 9, expected_of_0])
    sample = TopicSample.of(frame.lists(0), plan.pair, weights)
    result = topic_result(sample, parse_measure("DCG@4"), y, "sequential")
    line = topic_line(sample, parse_measure("DCG@4"), y, result)
    z = line.rows(plan.pair)
    design = (z * y[:, None]).T @ weights.quadratic @ (z * y[:, None])
    missing = (weights.single**2 - np.diag(weights.quadratic)) * noise
    moments = expected_moments({0: steps}, {0: y})[0]
    expected = expected_covariance(steps, line, moments, spread=steps.spread())
    whole = (design + expected) / 2 + (z * missing[:, None]).T @ z
    np.testing.assert_allclose(found.covariance, whole, rtol=1e-12)
    assert (missing > 0.0).any()


def test_ratios_have_the_square_of_their_bias_in_the_covariance(frame) -> None:
    grades = np.array([1, 0, 1, 1, 0])
    plan = next(plan for _, plan in plans_of(frame, grades, length=4))
    labels = LabelRows(plan.pair, grades[plan.pair])
    weights = Steps.of(frame.lists(0), History.of(frame, plan), 0).weights(plan.pair)
    sample = TopicSample.of(frame.lists(0), plan.pair, weights)
    y = grades[plan.pair].astype(np.float64)
    for name in ("AP", "Rprec"):
        found = estimate(frame, plan, labels=labels, measures=[name], form="sequential")[0]
        result = topic_result(sample, parse_measure(name), y, "sequential")
        # -Cov(z, R^) / R with z = (a - level) / R, by plain sums
        relevant = weights.single @ y
        bias = -(y @ weights.quadratic @ result.moved) / relevant
        assert np.abs(bias).max() > 1e-3
        added = np.diag(found.covariance) - found.topic_variance[0]
        np.testing.assert_allclose(added, bias**2, rtol=1e-9, atol=1e-15)
    plain = topic_result(sample, parse_measure("AP"), y, "corrected").value
    corrected = topic_result(sample, parse_measure("AP"), y, "sequential")
    np.testing.assert_allclose(corrected.value, plain - corrected.bias, rtol=1e-12)


def test_the_steps_of_r_precision_are_in_its_variance(frame) -> None:
    """Runs that find the same documents around the cutoff go together, also in what is added."""
    grades = np.array([1, 0, 1, 1, 0])
    plan = next(plan for _, plan in plans_of(frame, grades, length=4))
    steps = Steps.of(frame.lists(0), History.of(frame, plan), 0)
    sample = TopicSample.of(frame.lists(0), plan.pair, steps.weights(plan.pair))
    y = grades[plan.pair].astype(np.float64)
    result = topic_result(sample, parse_measure("Rprec"), y, "sequential")
    share = y * sample.weights.single
    near = np.abs(sample.rank - result.scale) <= result.scale / 2
    both = np.einsum("i,ij,il->jl", share / result.scale, near, near)
    own = np.minimum(np.diag(both), 1.0)
    assert result.density is not None
    np.testing.assert_allclose(result.density, both - np.outer(own, own), rtol=1e-12, atol=1e-15)
    differences = np.add.outer(np.diag(result.density), np.diag(result.density))
    assert np.all(differences - 2.0 * result.density >= -1e-12)


def test_the_spread_is_the_sum_over_the_steps_before_which_a_document_was_unknown(frame) -> None:
    plan = next(plan for _, plan in plans_of(frame, np.array([1, 0, 1, 1, 0]), length=3))
    lists = frame.lists(0)
    steps, share = Steps.of(lists, History.of(frame, plan), 0), step_shares(3, 5)
    for limit in (np.inf, 2.0):
        expected, unknown = np.zeros(5), set(range(5))
        for step, document in enumerate(plan.pair.tolist()):
            chance = lists.document_probability(plan.run_probability[step])
            for each in unknown:
                more = chance[sorted(unknown)].sum() / chance[each] - 1.0
                bounded = more / (1.0 + share[step] * more / limit) ** 2
                expected[each] += share[step] ** 2 * (1.0 + bounded)
            unknown.remove(document)
        np.testing.assert_allclose(steps.spread(limit), expected, rtol=1e-12)


def test_the_model_finds_what_made_the_labels() -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(20_000, 2)) * [1.0, 3.0] + [4.0, -2.0]
    truth = 1.0 / (1.0 + np.exp(1.0 - 1.2 * (rows[:, 0] - 4.0) + 0.4 * (rows[:, 1] + 2.0)))
    model = Logistic.fit(rows, rng.random(len(rows)) < truth)
    np.testing.assert_allclose(model.chance(rows), truth, atol=0.03)
    np.testing.assert_allclose(model.coefficient, [1.2, -1.2, -1.0], atol=0.1)


@pytest.mark.parametrize("labels", [[False, False, False], [True, True, True]])
def test_the_model_is_never_certain(labels: list[bool]) -> None:
    rows = np.array([[0.0], [1.0], [2.0]])
    chance = Logistic.fit(rows, np.array(labels)).chance(rows)
    expected = 3.5 / 4 if labels[0] else 0.5 / 4
    np.testing.assert_allclose(chance, expected, rtol=1e-6)


# ---------------------------------------------------------------------------------- coverage

TOPICS, DOCUMENTS, SYSTEMS, DEPTH = 12, 150, 12, 30
SHARE, CAMPAIGNS = 0.25, bounded(36, 60)


def collection() -> tuple[ActiveFrame, np.ndarray]:
    """Runs of different quality that share some of their errors."""
    rng = np.random.default_rng(1)
    rate = np.clip(rng.gamma(2.0, 0.05, size=TOPICS), 0.02, 0.3)
    relevant = rng.random((TOPICS, DOCUMENTS)) < rate[:, None]
    errors = rng.normal(size=(3, TOPICS, DOCUMENTS))
    names = [f"t{topic}" for topic in range(TOPICS)]
    runs = {}
    for run, quality in enumerate(rng.uniform(0.2, 2.2, SYSTEMS)):
        own = rng.normal(size=(TOPICS, DOCUMENTS))
        score = quality * relevant + 0.8 * errors[run % 3] + 0.8 * own
        best = np.argsort(-score, axis=1)[:, :DEPTH]
        docnos = np.char.add("d", best.ravel().astype(np.str_)).astype(np.bytes_)
        ranks = np.tile(np.arange(DEPTH, 0, -1.0), TOPICS)
        runs[f"r{run}"] = rank_lines(
            np.repeat(names, DEPTH).astype(np.bytes_), docnos, ranks, depth=DEPTH
        )
    pool = build_pool(names, runs, depth=DEPTH)
    places = [int(docno[1:]) for docno in pool.docno]
    return make_frame(pool), relevant[pool.topic, places].astype(np.int64)


def true_values(frame: ActiveFrame, grades: np.ndarray, measure: str) -> np.ndarray:
    pool, parsed = frame.pool, parse_measure(measure)
    weights = pool.weights(parsed, np.arange(len(pool)))
    return np.asarray(weights.T @ grades, dtype=np.float64)


def within(value: np.ndarray, half: np.ndarray, truth: np.ndarray) -> float:
    return float((np.abs(value - truth) <= half).mean())


@pytest.mark.slow
def test_intervals_cover() -> None:
    """Two-sided; and the unbiased variance alone, as if it were good enough, does not cover."""
    frame, grades = collection()
    pool, measures = frame.pool, [parse_measure("P@10"), parse_measure("DCG@30")]
    truth = [true_values(frame, grades, str(measure)) for measure in measures]
    plan = make_plan(
        pool, measures=measures, budget=round(SHARE * len(pool)), batch_size=3 * TOPICS
    )
    covered, alone, above, doubled = [], [], [], []
    for campaign in range(CAMPAIGNS):
        drawn = ActiveRound.begin(pool, plan, seed=str(campaign))
        while True:
            labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
            longer = drawn.extended(pool, labels=labels)
            if longer is drawn:
                break
            drawn = longer
        found = evaluate(pool, drawn, labels=labels, measures=measures, max_grade=1).results
        history = History.of(frame, drawn.sample)
        design = [design_variance(frame, history, labels, measure) for measure in measures]
        for measure, result in enumerate(found):
            shown = result.estimators["sq"]
            inside = (shown.low <= truth[measure]) & (truth[measure] <= shown.high)
            half = 1.96 * np.sqrt(np.maximum(design[measure], 0.0))
            covered.append(inside.mean())
            alone.append(within(shown.value, half, truth[measure]))
            doubled.append(within(shown.value, 2.0 * 1.96 * shown.se, truth[measure]))
            above.append((truth[measure] > shown.high).mean())
    # 2 measures of 12 runs go together within a campaign: 0.0075 is the standard error seen of 60.
    wider = 3.0 * 0.0075 * (np.sqrt(60 / CAMPAIGNS) - 1.0)
    assert 0.935 - wider <= np.mean(covered) <= 0.99, np.mean(covered)
    assert np.mean(above) <= 0.04 + wider
    assert np.mean(alone) <= 0.91 - wider, np.mean(alone)
    assert np.mean(doubled) > 0.99, np.mean(doubled)


def design_variance(frame: ActiveFrame, history: History, labels: LabelRows, measure) -> np.ndarray:
    """The unbiased estimate of the variance of every run."""
    pool = frame.pool
    grade = np.zeros(len(pool))
    grade[labels.pair] = labels.grade
    weights = pool.weights(measure, np.arange(len(pool)))
    total = np.zeros(len(pool.runs))
    for topic in range(len(pool.topics)):
        steps = Steps.of(frame.lists(topic), history, topic)
        pairs = steps.document + frame.lists(topic).start
        y = weights[pairs].toarray() * grade[pairs][:, None]
        form = steps.weights(steps.document).quadratic
        total += np.einsum("ij,il,lj->j", y, form, y)
    return total


# ------------------------------------------------------------------------------------- rounds


def evaluated(frame: ActiveFrame, judgments: dict[int, tuple[int, ...]], *, budget: int, size: int):
    """The results of a round over a one-topic pool, with given judgments of its documents."""
    measures = [parse_measure(name) for name in ("P@2", "AP", "Rprec")]
    plan = make_plan(frame.pool, measures=measures, budget=budget, batch_size=size)
    drawn = ActiveRound.begin(frame.pool, plan, seed="s")
    for _ in range(drawn.batches):
        pairs = drawn.sample.pair
        labels = rows_of(pairs, tuple(judgments[pair] for pair in pairs.tolist()))
        drawn = drawn.extended(frame.pool, labels=labels)
    return evaluate(frame.pool, drawn, labels=labels, measures=measures, max_grade=1).results


def test_a_round_says_whether_disagreement_is_in_its_errors(frame) -> None:
    once = dict.fromkeys(range(5), (1,))
    twice = {0: (1, 0), 1: (0, 0), 2: (1, 0), 3: (1, 1), 4: (0, 0)}
    for result in evaluated(frame, once, budget=4, size=1):
        assert not result.label_noise_measured
    precision, *ratios = evaluated(frame, twice, budget=5, size=5)
    assert all(result.label_noise_measured for result in (precision, *ratios))
    # A census. Document a has the mean 1/2 with the variance 1/4, and half of it counts for alpha.
    # About those of the others two agree each, which may be by chance: as much is expected of them
    # as their grades let one, and half of that counts.
    sq = precision.estimators["sq"]
    np.testing.assert_allclose(np.diag(sq.covariance), [0.0625, 0.0, 0.0], atol=1e-14)
    of_all = (2 * 0.5 + 0.5) / (5 + 1)
    useless, useful = ((1.0 * 0.5 + 3 * of_all) / (number + 3) for number in (3, 2))
    of_differing = (useless + useful) / 2
    likely = np.array([of_differing + useless, useless + useful, 2 * useless]) / 2 / 2**2
    assert sq.se**2 == pytest.approx([0.0625, likely[1] / 2, likely[2] / 2])
    assert likely[0] / 2 < 0.0625
    assert all(result.estimators["sq"].se[0] > 0.05 for result in ratios)
    for result in evaluated(frame, once, budget=5, size=5):
        np.testing.assert_allclose(result.estimators["sq"].se, 0.0, atol=1e-7)


@pytest.mark.parametrize(("budget", "size"), [(1, 1), (2, 1), (2, 2), (3, 1), (5, 1)])
@pytest.mark.parametrize("grade", [0, 1])
def test_small_rounds_have_finite_intervals(frame, budget: int, size: int, grade: int) -> None:
    for result in evaluated(frame, dict.fromkeys(range(5), (grade,)), budget=budget, size=size):
        shown = result.estimators["sq"]
        for each in (shown.value, shown.se, shown.low, shown.high, shown.covariance):
            assert np.all(np.isfinite(each)), result.measure
        assert np.all((shown.low >= 0.0) & (shown.low <= shown.high)), result.measure


def test_every_topic_gets_a_pair_and_the_budget_is_spent() -> None:
    pool, measures = collection()[0].pool, [parse_measure("DCG@10")]
    sizes = np.bincount(pool.topic)
    for budget in (len(sizes), len(sizes) + 1, len(pool) // 7, len(pool) - 1, len(pool)):
        limits = make_plan(pool, measures=measures, budget=budget, batch_size=TOPICS).limits
        assert limits.sum() == budget
        assert np.all((limits >= 1) & (limits <= sizes))
        assert np.abs(limits / budget - sizes / len(pool)).max() < 1.0 / TOPICS
    with pytest.raises(ActiveError, match=f"budget must be at least {TOPICS}, a pair a topic"):
        make_plan(pool, measures=measures, budget=TOPICS - 1, batch_size=TOPICS)


def test_a_census_leaves_nothing_open(frame) -> None:
    """Also for a run in which nobody found anything; with a pair less there is an interval."""
    for relevant in ((1, 1, 0, 0, 0), (0, 0, 0, 0, 0)):
        judgments = {pair: (grade,) for pair, grade in enumerate(relevant)}
        for result in evaluated(frame, judgments, budget=5, size=5):
            shown = result.estimate
            assert shown.low.tolist() == shown.high.tolist() == shown.value.tolist()
        for result in evaluated(frame, judgments, budget=4, size=4):
            assert np.all(result.estimate.high > result.estimate.low)
