"""Agreement of predicted and judged grades: against scikit-learn, by the jackknife, by simulation.

The twin of the simulation counts every judgment alike, whatever its chance, and is caught.
"""

import numpy as np
import pytest

from estimation.core.estimates.agreement import GradeAgreement, agreement

BEST = 3


def grades(
    rng: np.random.Generator, topics: int, each: int, *, noise: float = 0.6, kind: float = 0.4
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Judged and predicted grades of topics that differ in both difficulty and bias."""
    topic = np.repeat(np.arange(topics), each)
    level = rng.normal(0.6, 0.7, topics)[topic]
    judged = np.clip(np.round(level + rng.normal(0, 0.9, len(topic))), 0, BEST).astype(np.int64)
    shift = rng.normal(kind, 0.3, topics)[topic]
    predicted = np.round(judged + shift + rng.normal(0, noise, len(topic)))
    return np.clip(predicted, 0, BEST).astype(np.int64), judged, topic


def compared(
    predicted: np.ndarray, judged: np.ndarray, topic: np.ndarray, weight: np.ndarray | None = None
) -> GradeAgreement:
    given = np.ones(len(topic)) if weight is None else weight
    topics = int(topic.max()) + 1
    return agreement(predicted, judged, weight=given, topic=topic, topics=topics, max_grade=BEST)


def test_kappa_is_that_of_scikit_learn_with_any_weights() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        predicted, judged, topic = grades(rng, 12, 15)
        weight = rng.uniform(0.1, 9.0, len(topic))
        found = compared(predicted, judged, topic, weight)
        names = list(range(BEST + 1))
        for given, expected in ((weight, found), (None, compared(predicted, judged, topic))):
            theirs = metrics.cohen_kappa_score(
                predicted, judged, labels=names, weights="quadratic", sample_weight=given
            )
            assert expected.kappa.value == pytest.approx(theirs, abs=1e-12)
        table = metrics.confusion_matrix(judged, predicted, labels=names, sample_weight=weight)
        np.testing.assert_allclose(found.table, table / weight.sum(), atol=1e-12)


def test_its_error_is_that_of_the_jackknife_over_topics() -> None:
    """Leaving out one topic at a time knows nothing of derivatives."""
    rng = np.random.default_rng(3)
    predicted, judged, topic = grades(rng, 60, 12)
    weight = rng.uniform(0.5, 4.0, len(topic))
    found = compared(predicted, judged, topic, weight).kappa

    left = []
    for gone in range(60):
        stay = topic != gone
        left.append(compared(predicted[stay], judged[stay], topic[stay], weight[stay]).kappa.value)
    jackknife = np.sqrt(59 / 60 * ((np.array(left) - np.mean(left)) ** 2).sum())
    half = (np.arctanh(found.high) - np.arctanh(found.low)) / 2
    assert half * (1 - found.value**2) / 2.0 == pytest.approx(jackknife, rel=0.05)


def test_bias_and_topics_are_weighted_means() -> None:
    predicted, judged = np.array([3, 0, 1, 2]), np.array([1, 0, 2, 2])
    topic, weight = np.array([0, 0, 2, 2]), np.array([1.0, 3.0, 2.0, 2.0])
    found = agreement(predicted, judged, weight=weight, topic=topic, topics=4, max_grade=3)

    assert found.bias.value == pytest.approx((2 * 1 - 1 * 2) / 8)
    assert found.equal == pytest.approx(5 / 8)
    np.testing.assert_allclose(found.topic_bias, [0.5, np.nan, -0.5, np.nan])
    np.testing.assert_allclose(found.topic_error, [0.5, np.nan, 0.5, np.nan])
    assert found.topic_pairs.tolist() == [2, 0, 2, 0]
    assert found.counts.sum() == 4
    assert found.counts[1, 3] == 1


@pytest.mark.parametrize(
    ("predicted", "judged", "topic", "value"),
    [
        ([1, 1, 1], [1, 1, 1], [0, 1, 2], np.nan),  # nothing to agree on
        ([0, 1, 2], [0, 1, 2], [0, 1, 2], 1.0),
        ([0, 3], [3, 0], [0, 1], -1.0),
        ([2, 2, 2], [0, 1, 3], [0, 1, 2], 0.0),  # says the same of all
        ([0, 1, 2, 2], [0, 2, 1, 2], [0, 0, 0, 0], 0.636),  # a single topic
    ],
)
def test_degenerate_cases_have_no_false_interval(
    predicted: list[int], judged: list[int], topic: list[int], value: float
) -> None:
    found = compared(np.array(predicted), np.array(judged), np.array(topic)).kappa
    np.testing.assert_allclose(found.value, value, atol=1e-3)
    assert np.isnan(found.low) or found.low <= found.value <= found.high


def test_what_is_not_as_it_must_be_is_refused() -> None:
    good = {"weight": np.ones(2), "topic": np.array([0, 1]), "topics": 2, "max_grade": 3}
    one = np.array([0, 3])
    for bad in (
        {"weight": np.array([1.0, 0.0])},
        {"weight": np.array([1.0, np.nan])},
        {"topic": np.array([0, 2])},
        {"max_grade": 2},
    ):
        with pytest.raises(ValueError, match="must"):
            agreement(one, one, **good | bad)
    with pytest.raises(ValueError, match="at least 1"):
        agreement(one[:0], one[:0], **good)


def sampled(seed: int, *, weighted: bool, topics: int = 50) -> tuple[bool, bool, float]:
    """Are the true kappa and the true bias of all topics within the intervals of one sample?

    Topics are drawn from many, and of theirs the pairs that seem relevant with higher chances.
    """
    rng = np.random.default_rng(seed)
    predicted, judged, topic = grades(rng, topics, 40)
    chance = np.array([0.08, 0.2, 0.5, 0.9])[predicted]
    taken = rng.random(len(topic)) < chance
    weight = 1.0 / chance[taken] if weighted else np.ones(taken.sum())
    found = compared(predicted[taken], judged[taken], topic[taken], weight)
    kappa, bias = found.kappa, found.bias
    held = kappa.low <= TRUTH.kappa.value <= kappa.high
    return held, bias.low <= TRUTH.bias.value <= bias.high, kappa.value


TRUTH = compared(*grades(np.random.default_rng(0), 20_000, 40))


@pytest.mark.slow
@pytest.mark.parametrize("topics", [15, 50])
def test_intervals_hold_as_often_as_they_say(topics: int) -> None:
    trials = np.array([sampled(seed, weighted=True, topics=topics) for seed in range(1, 401)])
    kappa, bias = trials[:, 0].mean(), trials[:, 1].mean()
    assert 0.92 <= kappa <= 0.98, kappa
    assert 0.92 <= bias <= 0.98, bias


@pytest.mark.slow
def test_the_twin_without_weights_is_caught() -> None:
    trials = np.array([sampled(seed, weighted=False) for seed in range(1, 101)])
    assert trials[:, :2].mean(axis=0).min() < 0.5
