"""Somebody else's sample: unbiased over every sample that could have been drawn, honest beyond."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from estimation import core
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.rounds.given import GivenError

GRADES = {"1": {"a": 1, "b": 0, "c": 1, "d": 1}, "2": {"a": 0, "b": 1, "e": 1}}
CHANCES = {"1": {"a": 0.9, "b": 0.2, "c": 0.5, "d": 1.0}, "2": {"a": 0.3, "b": 0.6, "e": 0.25}}
PAIRS = [(topic, docno) for topic, docnos in GRADES.items() for docno in docnos]
MEASURES = ("P@2", "DCG@3", "RBP(p=0.5)")
DECOY = "2 y 0 1 1\n1 y 0 1 1\n"  # of no run: every topic has a judged pair, whatever was drawn


@pytest.fixture
def pool() -> Pool:
    orders = {"first": ("abcd", "abe"), "second": ("dcba", "eba"), "third": ("bd", "a")}
    return core.pool_runs(
        {
            tag: core.rank_scores(
                {str(t): {d: -float(r) for r, d in enumerate(o)} for t, o in enumerate(each, 1)}
            )
            for tag, each in orders.items()
        },
        depth=3,
    )


def values(pool: Pool, path: Path, *, strata: bool = False, **asked: float) -> np.ndarray:
    """What is estimated from a file, (measures, runs)."""
    sampled = core.read_strata(path) if strata else core.read_prels(path)
    drawn = core.given_round(pool, sampled, **asked)
    found = core.evaluate(pool, drawn, labels=sampled, measures=MEASURES, max_grade=1)
    return np.array([each.estimate.value for each in found.results])


def truth(pool: Pool) -> np.ndarray:
    grade = np.array(
        [GRADES[pool.topics[t]][d.decode()] for t, d in zip(pool.topic, pool.docno, strict=True)]
    )
    measures = map(core.parse_measure, MEASURES)
    return np.array([pool.weights(m).T @ m.utilities(grade) for m in measures])


def all_prels() -> Iterator[tuple[float, str]]:
    """Every sample of independent draws, as prels, with its probability."""
    for code in range(2 ** len(PAIRS)):
        chance, lines = 1.0, DECOY
        for bit, (topic, docno) in enumerate(PAIRS):
            drawn, pi = code >> bit & 1, CHANCES[topic][docno]
            chance *= pi if drawn else 1.0 - pi
            lines += f"{topic} {docno} {GRADES[topic][docno]} 1 {pi}\n" if drawn else ""
        if chance > 0.0:
            yield chance, lines


@pytest.mark.slow
def test_prels_are_unbiased_over_all_samples(pool: Pool, tmp_path: Path) -> None:
    mean, total, path = np.zeros((3, 3)), 0.0, tmp_path / "prels"
    for chance, lines in all_prels():
        path.write_text(lines)
        mean += chance * values(pool, path)
        total += chance
    assert total == pytest.approx(1.0)
    np.testing.assert_allclose(mean, truth(pool), atol=1e-12)


@pytest.mark.slow
def test_a_twin_that_counts_chosen_pairs_beside_the_sample_is_biased(
    pool: Pool, tmp_path: Path
) -> None:
    """What was not sampled is judged too, with the method 0: it must not count."""
    mean, wrong, path = np.zeros((3, 3)), np.zeros((3, 3)), tmp_path / "prels"
    for chance, lines in all_prels():
        known = {tuple(line.split()[:2]) for line in lines.splitlines()}
        rest = "".join(f"{t} {d} {GRADES[t][d]} 0 1\n" for t, d in PAIRS if (t, d) not in known)
        path.write_text(lines + rest)
        mean += chance * values(pool, path)
        path.write_text(lines + rest.replace(" 0 1\n", " 1 1\n"))
        wrong += chance * values(pool, path)
    np.testing.assert_allclose(mean, truth(pool), atol=1e-12)
    assert np.all(wrong[:, :2] > truth(pool)[:, :2] + 0.01)  # the third returns what is certain


def test_strata_are_unbiased_and_their_variances_not_too_small(pool: Pool, tmp_path: Path) -> None:
    """Two of four, and two of three: independence is assumed and overstates what varies."""
    found, variances, path = [], [], tmp_path / "strata"
    for drawn in combinations("abcd", 2):
        for others in combinations("abe", 2):
            judged = {*(("1", d) for d in drawn), *(("2", d) for d in others)}
            rows = [f"{t} 0 {d} 1 {GRADES[t][d] if (t, d) in judged else -1}" for t, d in PAIRS]
            path.write_text("\n".join(rows))
            strata = core.read_strata(path)
            each = core.evaluate(
                pool, core.given_round(pool, strata), labels=strata, measures="DCG@3", max_grade=1
            )
            assert each.results[0].support.tolist() == [1.0, 1.0, 1.0]
            found.append(each.results[0].estimate.value)
            variances.append(np.diag(each.results[0].estimate.covariance))
    np.testing.assert_allclose(np.mean(found, axis=0), truth(pool)[1], atol=1e-12)
    assert np.all(np.mean(variances, axis=0) >= np.var(found, axis=0))


def test_it_is_what_a_round_of_ours_says_if_all_probabilities_are_known(pool: Pool) -> None:
    design = core.make_design(pool, measure="P@2", budget=4, batch_size=4, goal="absolute")
    drawn = core.draw_round(pool, design, seed="s")
    given = core.GivenRound(drawn.sample.pair, design.inclusion(), pool.digest)
    labels = LabelRows(drawn.sample.pair, np.arange(len(drawn.sample.pair)) % 2)
    ours, theirs = (
        core.evaluate(pool, each, labels=labels, measures=("P@2", "AP"), max_grade=1)
        for each in (drawn, given)
    )
    for one, other in zip(ours.results, theirs.results, strict=True):
        raw, same = (
            each.estimate.value + (0.0 if each.ratio_bias is None else each.ratio_bias)
            for each in (one, other)  # what is expected of the bias hangs on the design, too
        )
        np.testing.assert_allclose(raw, same, rtol=1e-12)
        np.testing.assert_allclose(one.estimate.covariance, other.estimate.covariance)
        np.testing.assert_array_equal(one.support, other.support)


def test_no_value_depends_on_pairs_that_the_file_does_not_list(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "prels"
    path.write_text(DECOY + "1 a 1 1 0.5\n2 b 1 1 0.25\n")
    base = values(pool, path)
    for unlisted in (0.0, 0.1, 1.0):
        np.testing.assert_array_equal(values(pool, path, unlisted=unlisted), base)


def test_unlisted_pairs_have_the_mean_probability_of_what_was_not_drawn(
    pool: Pool, tmp_path: Path
) -> None:
    path = tmp_path / "prels"
    path.write_text("1 a 1 1 0.5\n1 b 0 1 0.2\n1 z 0 1 1\n2 b 1 1 1\n")
    given = core.given_round(pool, core.read_prels(path))
    topic = np.array(pool.topics)[pool.topic]
    mean = (0.5 + 0.8) / (0.5 / 0.5 + 0.8 / 0.2)
    np.testing.assert_allclose(given.inclusion[topic == "1"], [0.5, 0.2, mean, mean])
    # Where all that was drawn was certain, nothing else could be drawn.
    np.testing.assert_array_equal(given.inclusion[topic == "2"], [0.0, 1.0, 0.0])


def test_pairs_out_of_reach_lower_the_support(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "prels"
    path.write_text("1 a 1 1 0.5\n2 a 1 1 1\n")
    sampled = core.read_prels(path)
    drawn = core.given_round(pool, sampled, unlisted=0.0)
    found = core.evaluate(pool, drawn, labels=sampled, measures="P@2", max_grade=1)
    np.testing.assert_allclose(found["P@2"].support, [0.5, 0.0, 1 / 3])


def test_topics_without_a_judgment_are_named(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "prels"
    path.write_text("1 a 1 1 0.5\n")
    sampled = core.read_prels(path)
    with pytest.raises(GivenError, match="no judgment of 1 topics of the pool: 2"):
        core.given_round(pool, sampled)
    alone = core.pool_runs({"r": core.rank_scores({"1": {"a": 1.0}})}, depth=1)
    with pytest.raises(GivenError, match="unlisted must lie between 0 and 1"):
        core.given_round(alone, sampled, unlisted=2.0)


def test_it_belongs_to_its_pool(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "prels"
    path.write_text("1 a 1 1 0.5\n2 a 0 1 1\n")
    sampled = core.read_prels(path)
    other = core.pool_runs({"r": core.rank_scores({"1": {"a": 1.0}, "2": {"a": 1.0}})}, depth=3)
    drawn = core.given_round(pool, sampled)
    with pytest.raises(GivenError, match="belongs to another pool"):
        core.evaluate(
            other,
            drawn,
            labels=LabelRows(np.array([0]), np.array([1])),
            measures="P@2",
            max_grade=1,
        )


def test_later_runs_are_scored_from_it(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "prels"
    path.write_text("1 a 1 1 0.5\n2 a 0 1 1\n")
    sampled = core.read_prels(path)
    later = {"new": core.rank_scores({"1": {"a": 2.0, "new": 1.0}})}
    drawn = core.given_round(pool, sampled)
    found = core.evaluate(pool, drawn, labels=sampled, measures="P@2", max_grade=1, later=later)
    result = found["P@2"]
    assert result.runs == ("first", "new", "second", "third")
    assert result.estimate.value[1] == 0.5
    assert result.support[1] == 0.5
