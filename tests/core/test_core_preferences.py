"""Measures whose utility depends on the run: predictions, and preferences between two documents."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import PoolError, rank_lines
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.combining import RoundsTogether
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.goals import GoalError
from estimation.core.sampling.priors import PriorError, make_prior
from estimation.core.sampling.random_numbers import permanent_random_numbers
from estimation.core.sampling.samples import Sample

EXACT = {"rel": 1e-12, "abs": 1e-12}


def scored(lines: dict[str, dict[str, float]]):
    rows = [(t, d, s) for t, listed in lines.items() for d, s in listed.items()]
    topics, docnos, scores = (np.array(column) for column in zip(*rows, strict=True))
    return rank_lines(topics.astype("S"), docnos.astype("S"), scores)


RUNS = {
    "a": scored({"1": {"x": 3.0, "y": 1.5, "z": 0.0}, "2": {"p": 1.0}}),
    "b": scored({"1": {"z": 2.0, "y": 1.0, "x": 0.5}, "2": {"p": 0.5, "q": 0.0}}),
    "c": scored({"1": {"x": 1.0, "w": 0.5}}),
}
TOPICS = ["1", "2"]


@pytest.fixture
def documents() -> Pool:
    return build_pool(TOPICS, RUNS, depth=3, scores=True)


@pytest.fixture
def preferences(documents: Pool) -> Pool:
    return preference_pool(documents, depth=3)


def named(pool: Pool) -> list[tuple[str, str, str]]:
    return [
        (pool.topics[topic], docno.decode(), other.decode())
        for topic, docno, other in zip(pool.topic, pool.docno, pool.other, strict=True)
    ]


# ----------------------------------------------------------------------- the pool of preferences


def test_every_two_documents_of_a_list_are_a_part_in_canonical_order(preferences: Pool) -> None:
    assert named(preferences) == [
        ("1", "w", "x"),
        ("1", "x", "y"),
        ("1", "x", "z"),
        ("1", "y", "z"),
        ("2", "p", "q"),
    ]
    assert preferences.list_lengths.tolist() == [[3, 3, 1], [0, 1, 0]]
    entries = slice(*preferences.indptr[1:3])
    assert preferences.run[entries].tolist() == [0, 1]
    assert preferences.rank[entries].tolist() == [1, 3]
    assert preferences.other_rank[entries].tolist() == [2, 2]
    assert preferences.predictions[entries].tolist() == [1.0, -1.0]


def test_depth_cuts_the_lists_before_pairs_are_made(documents: Pool) -> None:
    assert named(preference_pool(documents, depth=2)) == [
        ("1", "w", "x"),
        ("1", "x", "y"),
        ("1", "y", "z"),
        ("2", "p", "q"),
    ]
    for depth in (1, 4):
        with pytest.raises(PoolError, match=f"between 2 and 3, not {depth}"):
            preference_pool(documents, depth=depth)


def test_the_order_of_runs_topics_and_lines_has_no_influence(preferences: Pool) -> None:
    shuffled = {tag: RUNS[tag] for tag in ("c", "a", "b")}
    again = preference_pool(build_pool(TOPICS[::-1], shuffled, depth=3), depth=3)
    assert again.digest == preferences.digest


def test_a_saved_pool_keeps_its_optional_columns(tmp_path, documents: Pool, preferences) -> None:
    for pool in (documents, preferences):
        pool.save(tmp_path / "pool.npz")
        again = Pool.load(tmp_path / "pool.npz")
        assert again.digest == pool.digest
        assert again.predictions.tolist() == pool.predictions.tolist()
    assert build_pool(TOPICS, RUNS, depth=3).digest != documents.digest


def test_random_numbers_of_preferences_are_of_both_documents(preferences: Pool) -> None:
    numbers = permanent_random_numbers(preferences, seed="s")
    assert len(np.unique(numbers)) == len(preferences)
    some = permanent_random_numbers(preferences, seed="s", pairs=np.array([3, 1]))
    assert some.tolist() == numbers[[3, 1]].tolist()


def test_measures_are_refused_on_pools_of_the_wrong_kind(documents: Pool, preferences) -> None:
    with pytest.raises(MeasureError, match="pairs of documents"):
        documents.weights(parse_measure("#ofSwaps"))
    with pytest.raises(MeasureError, match="on documents"):
        preferences.weights(parse_measure("P@2"))
    with pytest.raises(MeasureError, match="needs the scores"):
        build_pool(TOPICS, RUNS, depth=3).weights(parse_measure("MAE"))


# --------------------------------------------------------------------------- values by hand


def census(pool: Pool, text: str, grades: dict) -> np.ndarray:
    """Values of the runs when every part is judged."""
    measure, goal = parse_measure(text), goals.absolute(*pool.runs)
    prior = make_prior(pool, name="constant", goal=goal, measure=measure, max_grade=3)
    design = make_design(
        pool, goal=goal, measure=measure, prior=prior, budget=len(pool), batch_size=99, max_grade=3
    )
    assert design.is_census
    names = zip(pool.topic.tolist(), pool.docno.tolist(), strict=True)
    if pool.other is not None:
        names = zip(pool.topic.tolist(), pool.docno.tolist(), pool.other.tolist(), strict=True)
    grade = np.array([grades[tuple(x.decode() if isinstance(x, bytes) else TOPICS[x] for x in n)]
                      for n in names])  # fmt: skip
    pair = np.arange(len(pool))
    none = np.array([], dtype=np.int64)
    sample = Sample(pair, np.ones(len(pool), np.int32), np.ones(len(pool)), none, pool.digest)
    result = evaluate(
        pool,
        PairRound(design, sample),
        labels=LabelRows(pair, grade),
        measures=[measure],
        max_grade=3,
    ).results[0]
    assert (result.estimate.se == 0).all()
    assert result.by_topic.sum(axis=0) == pytest.approx(result.estimate.value, **EXACT)
    return result.estimate.value


GRADES = {("1", "w"): 0, ("1", "x"): 3, ("1", "y"): 1, ("1", "z"): 0, ("2", "p"): 1, ("2", "q"): 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MAE", [(0.5 / 3 + 0) / 2, (4.5 / 3 + 2.5 / 2) / 2, (2.5 / 2) / 2]),
        ("MSE", [(0.25 / 3) / 2, ((4 + 6.25) / 3 + 4.25 / 2) / 2, (4.25 / 2) / 2]),
        ("Accuracy", [(2 / 3 + 1) / 2, (1 / 3) / 2, 0.0]),
        ("Mean(max=3)", [(4 / 9 + 1 / 3) / 2, (4 / 9 + 1 / 2) / 2, (1 / 2) / 2]),
    ],
)
def test_values_of_predictions_by_hand(documents: Pool, text: str, expected) -> None:
    assert census(documents, text, GRADES) == pytest.approx(expected, **EXACT)


PREFERRED = {
    ("1", "w", "x"): 0,
    ("1", "x", "y"): 2,
    ("1", "x", "z"): 1,
    ("1", "y", "z"): 0,
    ("2", "p", "q"): 0,
}


def test_swaps_by_hand(preferences: Pool) -> None:
    """Run a ranks x y z, b ranks z y x and p q, c ranks x w; z is better than y, q than p."""
    assert census(preferences, "#ofSwaps", PREFERRED) == pytest.approx([1 / 6, 2 / 3, 0], **EXACT)
    weighted = [(1 / 6) / 3 / 2, ((1 / 6) / 3 + 1 / 2) / 2, 0]
    assert census(preferences, "wSwaps", PREFERRED) == pytest.approx(weighted, **EXACT)


# --------------------------------------------------- noisy labels, every sample and every label


CHANCES = {0: 0.2, 1: 0.3, 2: 0.5}  # of the grade an assessor gives
LABELS = 2


def design_of(pool: Pool, text: str) -> Design:
    measure, goal = parse_measure(text), goals.ranking(*pool.runs)
    prior = make_prior(pool, name="constant", goal=goal, measure=measure, max_grade=2)
    return make_design(
        pool, goal=goal, measure=measure, prior=prior, budget=2, batch_size=2, max_grade=2
    )


def small(pool: Pool) -> bool:
    return len(pool) <= 3


def outcomes(pool: Pool, design: Design) -> Iterator[tuple[float, Sample, LabelRows]]:
    inclusion = design.inclusion()
    none = np.array([], dtype=np.int64)
    for taken in product([False, True], repeat=len(pool)):
        chance = float(np.prod(np.where(taken, inclusion, 1 - inclusion)))
        pair = np.flatnonzero(taken)
        if chance == 0:
            continue
        batch = np.ones(len(pair), dtype=np.int32)
        sample = Sample(pair, batch, inclusion[pair], none, pool.digest)
        for grades in product(CHANCES, repeat=LABELS * len(pair)):
            weight = float(np.prod([CHANCES[grade] for grade in grades]))
            labels = LabelRows(np.repeat(pair, LABELS), np.array(grades, dtype=np.int64))
            yield chance * weight, sample, labels


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
@pytest.mark.parametrize("text", ["MAE", "#ofSwaps"])
def test_noisy_labels_leave_value_and_covariance_unbiased(text: str) -> None:
    runs = {
        "a": scored({"1": {"x": 2.0, "y": 0.5, "z": 0.3}}),
        "b": scored({"1": {"y": 1.5, "z": 1.0, "x": 0.0}}),
    }
    pool = build_pool(["1"], runs, depth=3, scores=True)
    if text == "#ofSwaps":
        pool = preference_pool(pool, depth=3)
    design, measure = design_of(pool, text), parse_measure(text)
    mean, square, estimated, without = 0.0, 0.0, 0.0, 0.0
    for chance, sample, labels in outcomes(pool, design):
        found = evaluate(
            pool, PairRound(design, sample), labels=labels, measures=[measure], max_grade=2
        ).results[0].estimate  # fmt: skip
        mean = mean + chance * found.value
        square = square + chance * np.multiply.outer(found.value, found.value)
        estimated = estimated + chance * found.covariance
        y = found.value if len(sample.pair) == 0 else _first_stage(pool, measure, sample, labels)
        without = without + chance * y if len(sample.pair) else without
    truth = sum(
        chance * np.bincount(pool.run, pool.entry_weights(measure)
                             * pool.entry_utilities(measure, grade), minlength=2)
        for grade, chance in CHANCES.items()
    )  # fmt: skip
    covariance = square - np.multiply.outer(mean, mean)
    assert mean == pytest.approx(truth, **EXACT)
    assert estimated == pytest.approx(covariance, **EXACT)
    assert np.abs(without / covariance - 1).max() > 0.05  # the twin without the noise term


def _first_stage(pool: Pool, measure, sample: Sample, labels: LabelRows) -> np.ndarray:
    """sum (1 - pi)/pi^2 y y': what is left when disagreement is forgotten."""
    total = np.zeros((2, 2))
    for pair, pi in zip(sample.pair, sample.probability, strict=True):
        grades = labels.grade[labels.pair == pair]
        y = np.zeros(2)
        entries = slice(*pool.indptr[pair : pair + 2])
        for grade in grades:
            utility = pool.entry_utilities(measure, int(grade))[entries]
            y[pool.run[entries]] += pool.entry_weights(measure)[entries] * utility / len(grades)
        total += (1 - pi) / pi**2 * np.multiply.outer(y, y)
    return total


# ------------------------------------------------------------------------------- designs


def test_parts_on_which_two_runs_agree_have_no_weight_for_their_difference(preferences) -> None:
    measure = parse_measure("#ofSwaps")
    weights = goals.effective_weights(preferences, goals.pair("a", "b"), measure)
    by_name = dict(zip(named(preferences), weights.tolist(), strict=True))
    assert by_name["1", "w", "x"] == 0
    assert by_name["1", "x", "y"] > 0
    # Opposite orders: one of the two swaps at either strict preference, of three grades.
    assert by_name["1", "x", "y"] == pytest.approx(np.sqrt(2 / 3) / 6)


def test_predictions_need_the_scale_and_have_no_prior_by_rank(documents: Pool) -> None:
    measure, goal = parse_measure("MAE"), goals.single("a")
    with pytest.raises(GoalError, match="max_grade is needed"):
        goals.effective_weights(documents, goal, measure)
    with pytest.raises(PriorError, match="constant"):
        make_prior(documents, name="rank", goal=goal, measure=measure, max_grade=3)


def test_predicted_grades_are_checked_pair_by_pair(documents: Pool) -> None:
    measure, goal = parse_measure("DCG(dcg='exp-log2')@3"), goals.absolute("a", "b")
    asked = {"goal": goal, "measure": measure, "max_grade": 3}
    grades = np.full(len(documents), np.nan)
    unknown = make_prior(documents, name="scores", grades=grades, **asked)
    by_rank = make_prior(documents, name="rank", **asked)
    assert np.array_equal(unknown.expected, by_rank.expected)
    grades[[0, 1, 2]] = 0.0, 3.5, 3.0
    with pytest.raises(PriorError, match=r"'x' of topic '1' is 3.5, outside 0 to 3"):
        make_prior(documents, name="scores", grades=grades, **asked)
    with pytest.raises(PriorError, match="one predicted grade per pair"):
        make_prior(documents, name="scores", **asked)


def test_fusion_rises_with_the_weight_that_the_runs_give(documents: Pool) -> None:
    measure, goal = parse_measure("DCG@3"), goals.single("a")
    prior = make_prior(documents, name="fusion", goal=goal, measure=measure, max_grade=1)
    weight = documents.weights(measure).sum(axis=1)
    first = documents.topic == 0
    assert np.array_equal(np.argsort(prior.expected[first]), np.argsort(weight[first]))
    assert ((prior.expected > 0) & (prior.expected < 1)).all()


def test_rounds_of_preferences_go_together_whatever_the_scale(preferences: Pool) -> None:
    """A preference is 2 at most, also where documents are only relevant or not."""
    design = design_of(preferences, "#ofSwaps")
    sample = draw(preferences, design, seed="s")
    labels = LabelRows(sample.pair, np.full(len(sample.pair), 2))
    asked = {"labels": labels, "measures": [parse_measure("#ofSwaps")], "max_grade": 1}
    alone = evaluate(preferences, PairRound(design, sample), **asked).results[0].estimate
    parts = [PairRound(design, sample, numbers="s"), PairRound(design, sample, numbers="s")]
    found = evaluate(preferences, RoundsTogether(tuple(parts)), **asked).results[0].estimate
    assert found.value == pytest.approx(alone.value, rel=1e-12)
